"""Results that wait in the cache until their doubts are settled, and only then go past it.

To mend one result of a line that was streamed, all of the line would have to be read from memory,
which holds up whatever is streamed after it.  So the results of a block go on their way while those
of the next one take their place.
"""

from aclnn.kernels.doubt cimport HALVES_IN_PLACE
from aclnn.kernels.lane cimport LANES, span_t
from aclnn.kernels.tile cimport LINE, line_in, stream_bytes


cdef struct waiting_t:
    char memory[HALVES_IN_PLACE * 2 + LINE]
    char *home          # where they go, which begins with a line
    ptrdiff_t nbytes    # of them; 0: nothing waits


cdef inline void send_home(waiting_t *waiting, ptrdiff_t begin) noexcept nogil:
    """What waits, from byte `begin` on."""
    if begin < waiting.nbytes:
        stream_bytes(waiting.home + begin, line_in(waiting.memory) + begin, waiting.nbytes - begin)


cdef inline void lend_room(waiting_t *waiting, span_t *span) noexcept nogil:
    """Let results of a span wait, whose whole lines send home what waited there."""
    cdef ptrdiff_t whole = span.n // (2 * LANES) * (4 * LANES)
    span.waiting = line_in(waiting.memory)
    if waiting.nbytes < whole:
        send_home(waiting, 0)
        return
    send_home(waiting, whole)
    span.home = waiting.home


cdef inline void let_wait(waiting_t *waiting, span_t *span) noexcept nogil:
    """Results of a span wait now: that is where they are to be found, and mended."""
    waiting.home = span.out
    waiting.nbytes = 2 * span.n
    span.out = span.waiting
