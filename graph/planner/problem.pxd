"""Problems of placing, as searches see them: buffers, sections, parts, and work that is left."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset


cdef extern from *:
    """
    #define ENDLESS ((int64_t)0x3FFFFFFFFFFFFFFF)
    #define FIRST_SEED ((uint64_t)88172645463325252)
    """
    const int64_t ENDLESS
    const uint64_t FIRST_SEED

cdef enum:
    CLOCK_EVERY = 256  # nodes between looks at the clock

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    enum: CLOCK_MONOTONIC
    int clock_gettime(int which, timespec *now)

cdef extern from "Python.h":
    int check_signals "PyErr_CheckSignals"() noexcept


cdef enum:
    CHECKS = 20  # of signals in a second


cdef struct buffer_t:
    int first        # sections
    int last
    int64_t size     # in units
    int which        # lifetime


cdef struct key_t:
    int64_t first
    int64_t second
    int which


cdef struct placed_t:
    int64_t begin
    int64_t end
    int first
    int last


cdef struct part_t:
    int count
    int sections
    buffer_t *buffers  # by first and last section, size and number
    int64_t *best      # their places
    int64_t size       # of the best
    int64_t bound      # that no places are below


cdef struct work_t:
    int64_t visits
    int64_t limit
    double deadline    # 0: none
    bint interrupted   # a signal's handler raised
    double next_check  # when signals are looked at again
    int64_t nodes      # of trees
    placed_t *placed   # of one first fit, by place
    key_t *keys
    int *order
    int64_t *offsets


cdef inline bint meet(const buffer_t *a, const buffer_t *b) noexcept nogil:
    return a.first <= b.last and b.first <= a.last


cdef inline void list_members(const part_t *p, int *starts, int *members) noexcept nogil:
    """The buffers of each section, in order: those of section c from ``starts[c]`` on."""
    cdef int k, c
    memset(starts, 0, (p.sections + 1) * sizeof(int))
    for k in range(p.count):
        for c in range(p.buffers[k].first, p.buffers[k].last + 1):
            starts[c + 1] += 1
    for c in range(p.sections):
        starts[c + 1] += starts[c]
    for k in range(p.count):
        for c in range(p.buffers[k].first, p.buffers[k].last + 1):
            members[starts[c]] = k
            starts[c] += 1
    for c in range(p.sections, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0


cdef inline double clock() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <double>now.tv_sec + 1e-9 * <double>now.tv_nsec


cdef inline bint late(work_t *w) noexcept nogil:
    """Whether the search has to stop at once: its time is over, or a signal's handler raised."""
    cdef double now
    if w.deadline == 0 or w.interrupted:
        return w.interrupted
    now = clock()
    if now >= w.next_check:
        w.next_check = now + 1.0 / CHECKS
        with gil:
            w.interrupted = check_signals() != 0
    return w.interrupted or now >= w.deadline


cdef inline bint over(work_t *w) noexcept nogil:
    """Whether nothing more is to be begun."""
    return w.visits >= w.limit or late(w)


cdef inline double drawn(uint64_t *seed) noexcept nogil:
    """A number from 0 to 1, by xorshift."""
    seed[0] ^= seed[0] << 13
    seed[0] ^= seed[0] >> 7
    seed[0] ^= seed[0] << 17
    return <double>(seed[0] >> 11) / 9007199254740992.0


cdef inline double roughly_log2(int64_t number) noexcept nogil:
    """Straight between powers of two, so that it is the same everywhere."""
    cdef int power = 0
    while number >> (power + 1):
        power += 1
    return power - 1 + <double>number / <double>(<int64_t>1 << power)
