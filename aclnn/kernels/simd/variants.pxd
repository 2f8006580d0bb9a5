"""Loops over vectors for formulas that are written once (`numbers.pxd`).

Of a formula there are two loops, over whole vectors of floats: in pairs of vectors for float32, in
vectors for half precision.  What surrounds them here is the same for all, and compiled once:
conversions, the rounding test, remainders.  Results that no vector form can be trusted with are
marked by lane and computed as doubles.
"""

from libc.stdint cimport uint16_t, uintptr_t
from libc.string cimport memcpy, memset

from aclnn.kernels.simd.convert cimport (
    load_as_f32,
    round_two,
    size_of,
    store_line,
    two_t,
)
from aclnn.kernels.simd.loop_args cimport (
    BF16,
    F16,
    F32,
    HARD_TO_ROUND,
    PREFETCH_A,
    PREFETCH_B,
    PREFETCH_FAR,
    STAGED,
    elem_type,
    loop_args,
)
from aclnn.kernels.simd.loops cimport VECTOR_BYTES, any_hard, is_staged, store_staged
from aclnn.kernels.simd.operands cimport FAR_AHEAD, NEAR_AHEAD
from aclnn.kernels.simd.track cimport domain_t
from aclnn.kernels.simd.vector cimport (
    LANES,
    mask_t,
    vecf,
    veci,
    vf_load,
    vf_store,
)
from aclnn.kernels.tile cimport prefetch

cdef extern from "simd/pair.h" nogil:
    ctypedef struct pair_t:
        pass
    pair_t pair_exactly(vecf) noexcept
    vecf pair_rounded(pair_t, mask_t) noexcept
    mask_t vf_is_nonzero(vecf) noexcept
    unsigned unusual_lanes(vecf, mask_t) noexcept
    unsigned lanes_within(vecf, float, float) noexcept
    unsigned lanes_beyond(vecf, float) noexcept

cdef enum:
    CHUNK = 512  # elements that are converted, computed and rounded while they are in the cache

# So many vectors of results, and the lanes of each that have to be computed as doubles.  `ahead`:
# bytes from what is read to what is prefetched, or 0.
ctypedef void (*form_loop)(const char *a, const char *b, char *out, ptrdiff_t vectors,
                           const double *p, uint16_t *hard, bint stream,
                           ptrdiff_t ahead) noexcept nogil


cdef inline ptrdiff_t vectors_of(ptrdiff_t n) noexcept nogil:
    return (n + LANES - 1) // LANES


cdef inline void prefetch_from(const char *p, ptrdiff_t ahead) noexcept nogil:
    """As an integer: what is ahead may lie behind the array, and is not accessed."""
    prefetch(<const char *>(<uintptr_t>p + <uintptr_t>ahead))


cdef inline const char *as_floats(const char *source, elem_type read, ptrdiff_t n,
                                  float *buffer, ptrdiff_t ahead) noexcept nogil:
    """Elements where they are if they fill vectors of floats; else converted and filled up."""
    cdef ptrdiff_t i = 0
    cdef char rest[4 * CHUNK]
    if read == F32 and n % LANES == 0:
        return source
    if n % LANES:
        memset(rest, 0x38, sizeof(rest))  # numbers that suit every formula
        memcpy(rest, source, n * size_of(read))
        source = rest
    while i < n:
        if ahead:
            prefetch_from(source + i * size_of(read), ahead)
        vf_store(buffer + i, load_as_f32(read, source + i * size_of(read)))
        i += LANES
    return <const char *>buffer


cdef inline void run_chunk(form_loop form, elem_type read, const loop_args *args, ptrdiff_t begin,
                           ptrdiff_t n, float *results) noexcept nogil:
    """Elements from `begin` on as floats, not yet rounded to half precision."""
    cdef float a[CHUNK]
    cdef float b[CHUNK]
    cdef ptrdiff_t offset = begin * size_of(read)
    cdef ptrdiff_t far = FAR_AHEAD if args.prefetch & PREFETCH_FAR else NEAR_AHEAD
    cdef const char *first = as_floats(args.a + offset, read, n, a,
                                       far if args.prefetch & PREFETCH_A else 0)
    cdef const char *second = first
    if args.a != args.b:
        second = as_floats(args.b + offset, read, n, b, far if args.prefetch & PREFETCH_B else 0)
    form(first, second, <char *>results, vectors_of(n), <const double *>args.params,
         args.hard + begin // LANES, False, 0)


cdef inline int run_form_f32(form_loop form, const loop_args *args) noexcept nogil:
    cdef float results[CHUNK]
    cdef ptrdiff_t rest = args.n % LANES
    cdef ptrdiff_t done = args.n - rest
    form(args.a, args.b, args.out, done // LANES, <const double *>args.params, args.hard,
         args.stream, NEAR_AHEAD if args.prefetch else 0)
    if rest:
        run_chunk(form, F32, args, done, rest, results)
        memcpy(args.out + 4 * done, results, 4 * rest)
    return HARD_TO_ROUND if any_hard(args.hard, args.n) else 0


cdef inline int run_form_half(form_loop form, elem_type read, elem_type out, float rel_error,
                              const loop_args *args) noexcept nogil:
    cdef domain_t domain
    cdef float results[CHUNK]
    cdef ptrdiff_t n, begin = 0
    memset(&domain, 0, sizeof(domain))
    domain.rel_error = rel_error
    while begin < args.n:
        n = min(<ptrdiff_t>CHUNK, args.n - begin)
        if n < args.n - begin or n % (2 * LANES) == 0:
            run_chunk(form, read, args, begin, n, results)
        else:
            memset(results, 0x38, sizeof(results))
            run_chunk(form, read, args, begin, n, results)
        round_chunk(out, domain, args, begin, n, results)
        begin += n
    cdef int found = HARD_TO_ROUND if any_hard(args.hard, args.n) else 0
    return found | (STAGED if is_staged(out, domain, args) else 0)


cdef inline void round_chunk(elem_type out, domain_t domain, const loop_args *args,
                             ptrdiff_t begin, ptrdiff_t n, const float *results) noexcept nogil:
    cdef bint staged = args.stream and is_staged(out, domain, args)
    cdef uint16_t hard[2]
    cdef char last[VECTOR_BYTES]
    cdef char *target = args.staging if staged else args.out
    cdef ptrdiff_t i = 0
    cdef two_t two
    cdef veci line
    while i < n:
        two.low, two.high = vf_load(results + i), vf_load(results + i + LANES)
        line = round_two(out, two, domain.rel_error, hard)
        args.hard[(begin + i) // LANES] |= hard[0]
        if i + LANES < n:
            args.hard[(begin + i) // LANES + 1] |= hard[1]
        if i + 2 * LANES > n:
            store_line(last, line, False)
            memcpy(target + 2 * (begin + i), last, 2 * (n - i))
        elif staged:
            store_staged(args, 2 * (begin + i), line)
        else:
            store_line(args.out + 2 * (begin + i), line, args.stream)
        i += 2 * LANES


cdef inline int run_form_f16(form_loop form, float rel_error, const loop_args *args) noexcept nogil:
    return run_form_half(form, F16, F16, rel_error, args)


cdef inline int run_form_bf16(form_loop form, float rel_error,
                              const loop_args *args) noexcept nogil:
    return run_form_half(form, BF16, BF16, rel_error, args)


cdef inline int run_form_to_f16(form_loop form, float rel_error,
                                const loop_args *args) noexcept nogil:
    return run_form_half(form, F32, F16, rel_error, args)


cdef inline int run_form_to_bf16(form_loop form, float rel_error,
                                 const loop_args *args) noexcept nogil:
    return run_form_half(form, F32, BF16, rel_error, args)
