"""Reads of a loop's operands: where they are cached, prefetches, loads across cache lines."""

from libc.stdint cimport uintptr_t

from aclnn.kernels.simd.convert cimport load_as_f32, size_of
from aclnn.kernels.simd.loop_args cimport (
    PREFETCH_A,
    PREFETCH_B,
    PREFETCH_FAR,
    PREFETCH_OUT,
    elem_type,
    loop_args,
)
from aclnn.kernels.simd.vector cimport (
    LANES,
    vecf,
    veci,
    vf_load,
    vf_lookup_both,
    vf_set,
    vi_count_from,
)
from aclnn.kernels.tile cimport LINE, prefetch, prefetch_behind

cdef enum:
    # Bytes from what is read to what is prefetched: into the first-level cache, and, a page ahead,
    # into the second, because hardware prefetchers stop at the end of a page.
    NEAR_AHEAD = 1024
    FAR_AHEAD = 4096
    # Elements: a loop that is shorter finds its operands in the first-level cache, which hides what
    # a load across two lines takes.
    SHIFTED_FROM = 2048

# Where operands are: in the first-level cache; there, across its lines; in a core's other caches;
# beyond. Each has a loop of its own, because a test inside a loop is made again and again.
cdef enum distance_t:
    HERE
    NEAR
    FAR


cdef struct shifted_t:
    # An operand of float32 that crosses lines, read a line at a time: two loads would take longer
    # than computing. Each vector is looked up in the last two lines.
    const char *lines
    veci index
    vecf last


cdef inline distance_t distance_of(const loop_args *args) noexcept nogil:
    if args.stream or args.prefetch & PREFETCH_FAR:
        return FAR
    return NEAR if args.prefetch else HERE


cdef inline void prefetch_ahead(const char *p, ptrdiff_t offset, ptrdiff_t n,
                                distance_t distance) noexcept nogil:
    """As integers: what is ahead may lie behind the array, and is not accessed."""
    cdef uintptr_t here = <uintptr_t>p + <uintptr_t>offset
    cdef ptrdiff_t k = 0
    while k < n:
        prefetch(<const char *>(here + <uintptr_t>k + NEAR_AHEAD))
        if distance == FAR:
            prefetch_behind(<const char *>(here + <uintptr_t>k + FAR_AHEAD))
        k += LINE


cdef inline void prefetch_operands(const loop_args *args, ptrdiff_t offset, ptrdiff_t n,
                                   distance_t distance) noexcept nogil:
    """Prefetch what follows the n bytes at `offset`."""
    if distance == HERE:
        return
    if args.prefetch & PREFETCH_A:
        prefetch_ahead(args.a, offset, n, distance)
    if args.prefetch & PREFETCH_B:
        prefetch_ahead(args.b, offset, n, distance)
    if distance == NEAR and args.prefetch & PREFETCH_OUT:
        prefetch_ahead(args.out, offset, n, distance)


cdef inline bint is_shifted(const loop_args *args, ptrdiff_t i) noexcept nogil:
    """Whether it pays to read both operands by lines, from element `i` on."""
    cdef uintptr_t a = <uintptr_t>args.a + 4 * <uintptr_t>i
    cdef uintptr_t b = <uintptr_t>args.b + 4 * <uintptr_t>i
    if LANES != 16 or args.n - i < SHIFTED_FROM:
        return False
    return a != b and (a | b) % LINE != 0 and (a | b) % 4 == 0


cdef inline shifted_t shifted_from(const char *operand, ptrdiff_t i) noexcept nogil:
    cdef unsigned int before = <unsigned int>(<uintptr_t>(operand + 4 * i) % LINE // 4)
    cdef shifted_t shifted
    # Where a vector is a line, it is all of the next one. No line is read that has no element.
    cdef unsigned int first = before if before else LANES
    shifted.lines = operand - 4 * <ptrdiff_t>first
    shifted.index = vi_count_from(first)
    shifted.last = vf_load(shifted.lines + 4 * i) if before else vf_set(0)
    return shifted


cdef inline vecf next_shifted(shifted_t *shifted, ptrdiff_t i) noexcept nogil:
    cdef vecf line = vf_load(shifted.lines + 4 * (i + LANES))
    cdef vecf found = vf_lookup_both(shifted.last, shifted.index, line)
    shifted.last = line
    return found


cdef inline vecf load_operand(const char *operand, elem_type type, ptrdiff_t i,
                              shifted_t *shifted) noexcept nogil:
    """A vector from element `i` on; `shifted`: NULL where it is loaded in place."""
    if shifted != NULL:
        return next_shifted(shifted, i)
    return load_as_f32(type, operand + i * size_of(type))
