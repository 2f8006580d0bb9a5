"""Loops over vectors for formulas that a float rounds once in all dtypes, of up to three elements.

The formula marks the lanes that it leaves open; results in half precision pass the rounding test
besides.
"""

from libc.stdint cimport uint16_t
from libc.string cimport memcpy

from aclnn.kernels.simd.convert cimport load_as_f32, round_half, size_of, two_t
from aclnn.kernels.simd.loop_args cimport (
    F32,
    HARD_TO_ROUND,
    PREFETCH_C,
    STAGED,
    elem_type,
    loop_args,
)
from aclnn.kernels.simd.loops cimport FILLER, VECTOR_BYTES, any_hard, is_staged, store_two
from aclnn.kernels.simd.operands cimport distance_of, prefetch_ahead, prefetch_operands
from aclnn.kernels.simd.track cimport domain_t, track_init, track_t
from aclnn.kernels.simd.vector cimport (
    LANES,
    vecf,
    vf_store,
    vh_store,
    vi_load_first,
    vi_store,
)

cdef extern from "simd/exact.h" nogil:
    const domain_t OPEN_DOMAIN

# A formula of the node's numbers and three elements, which are the same where it takes fewer;
# whether results become half precision.
ctypedef vecf (*rounded_formula)(const double *p, vecf a, vecf b, vecf c, bint half,
                                 unsigned int *open) noexcept nogil


cdef inline vecf compute_rounded(rounded_formula formula, elem_type read, elem_type out,
                                 const loop_args *args, const double *p, ptrdiff_t i,
                                 unsigned int *open) noexcept nogil:
    cdef ptrdiff_t at = i * size_of(read)
    cdef vecf a = load_as_f32(read, args.a + at)
    cdef vecf b = load_as_f32(read, args.b + at)
    return formula(p, a, b, load_as_f32(read, args.c + at), out != F32, open)


cdef inline void run_last_rounded(rounded_formula formula, elem_type read, elem_type out,
                                  loop_args args, const double *p, ptrdiff_t i,
                                  ptrdiff_t n) noexcept nogil:
    """The last elements, at most as many as a vector has: by way of copies that are filled up."""
    cdef char a[VECTOR_BYTES]
    cdef char b[VECTOR_BYTES]
    cdef char c[VECTOR_BYTES]
    cdef char result[VECTOR_BYTES]
    cdef char *target = args.out + i * size_of(out)
    cdef ptrdiff_t at = i * size_of(read), nbytes = n * size_of(read)
    cdef uint16_t hard = 0
    cdef unsigned int open
    cdef vecf r
    if n == LANES:
        args.a, args.b, args.c = args.a + at, args.b + at, args.c + at
    else:
        vi_store(a, vi_load_first(args.a + at, nbytes, FILLER))
        vi_store(b, vi_load_first(args.b + at, nbytes, FILLER))
        vi_store(c, vi_load_first(args.c + at, nbytes, FILLER))
        args.a, args.b, args.c = a, b, c
    r = compute_rounded(formula, read, out, &args, p, 0, &open)
    if out == F32:
        vf_store(result, r)
    else:
        vh_store(result, round_half(out, r, OPEN_DOMAIN.rel_error, &hard))
    args.hard[i // LANES] = <uint16_t>(hard | open)
    memcpy(target, result, n * size_of(out))


cdef inline int run_rounded(rounded_formula formula, elem_type read, elem_type out,
                            const loop_args *given, const double *p) noexcept nogil:
    cdef loop_args args = given[0]
    cdef track_t track = track_init(0)
    cdef uint16_t *hard
    cdef unsigned int open[2]
    cdef two_t two
    cdef ptrdiff_t i = 0, step = 2 * LANES * size_of(read)
    while i + 2 * LANES <= args.n:
        if args.prefetch:
            prefetch_operands(&args, i * size_of(read), step, distance_of(&args))
            if args.prefetch & PREFETCH_C:
                prefetch_ahead(args.c, i * size_of(read), step, distance_of(&args))
        two.low = compute_rounded(formula, read, out, &args, p, i, &open[0])
        two.high = compute_rounded(formula, read, out, &args, p, i + LANES, &open[1])
        hard = args.hard + i // LANES
        if out == F32:
            hard[0] = hard[1] = 0
        store_two(out, OPEN_DOMAIN, &args, i, two, args.stream, &track)
        hard[0] |= <uint16_t>open[0]
        hard[1] |= <uint16_t>open[1]
        i += 2 * LANES
    if is_staged(out, OPEN_DOMAIN, &args):
        args.out = args.staging
    while i < args.n:
        run_last_rounded(formula, read, out, args, p, i, min(<ptrdiff_t>LANES, args.n - i))
        i += LANES
    cdef int found = HARD_TO_ROUND if any_hard(args.hard, args.n) else 0
    return found | (STAGED if is_staged(out, OPEN_DOMAIN, &args) else 0)
