"""Results that bypass the cache, staged in it until those hard to round are recomputed.

To replace one result of a line that was stored past the cache, all of the line would have to be
read from memory, which holds up the stores after it.  So the results of a block are streamed while
those of the next one take their place.
"""

from aclnn.kernels.recompute cimport HALVES_IN_PLACE
from aclnn.kernels.simd.loop_args cimport LANES, loop_args
from aclnn.kernels.tile cimport LINE, line_in, stream_bytes


cdef struct staging_t:
    char memory[HALVES_IN_PLACE * 2 + LINE]
    char *target        # where they go, which begins with a line
    ptrdiff_t nbytes    # of them; 0: nothing is staged


cdef inline void flush_staged(staging_t *staging, ptrdiff_t begin) noexcept nogil:
    """Stream what is staged, from byte `begin` on."""
    if begin < staging.nbytes:
        stream_bytes(staging.target + begin, line_in(staging.memory) + begin,
                     staging.nbytes - begin)


cdef inline void lend_staging(staging_t *staging, loop_args *args) noexcept nogil:
    """Let a loop stage its results; its whole lines stream what they take the place of."""
    cdef ptrdiff_t whole = args.n // (2 * LANES) * (4 * LANES)
    args.staging = line_in(staging.memory)
    if staging.nbytes < whole:
        flush_staged(staging, 0)
        return
    flush_staged(staging, whole)
    args.staged_target = staging.target


cdef inline void keep_staged(staging_t *staging, loop_args *args) noexcept nogil:
    """The results of a loop are staged now: there they are found and replaced."""
    staging.target = args.out
    staging.nbytes = 2 * args.n
    args.out = args.staging
