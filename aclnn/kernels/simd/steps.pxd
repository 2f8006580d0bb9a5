"""Steps of programs on registers (`steps.h`): how one runs, and what formulas it runs there.

A step takes eight vectors of floats, changes them, and ends in a call of the next step, which the
compiler makes a jump.  Numbers in half precision are floats here; a step that gives one rounds it.
"""

from libc.stdint cimport uint32_t

from aclnn.kernels.simd.loop_args cimport elem_type, params_t, simd_loop
from aclnn.kernels.simd.vector cimport mask_t, vecf, veci

cdef extern from "simd/steps.h" nogil:
    enum:
        STEP_ELEMENTS
        FRAME_OPERANDS
    ctypedef struct step_t
    ctypedef struct frame_t
    ctypedef void (*step_fn)(vecf, vecf, vecf, vecf, vecf, vecf, vecf, vecf, const step_t *,
                             frame_t *, ptrdiff_t) noexcept nogil
    ctypedef struct step_t:
        step_fn run
        int operand
        int other
        int size
        int other_size
        int params
        const void *kernel
        void (*instead)(const step_t *, frame_t *, ptrdiff_t) noexcept nogil
        simd_loop path
    ctypedef struct frame_t:
        const char *params
        char *data[48]
        bint streams
        char *given
        char *made
    vecf vf_complete(vecf) noexcept
    vecf vf_quiet(vecf) noexcept
    vecf vf_sum_to_odd(vecf, vecf) noexcept
    vecf vf_product_to_odd(vecf, vecf) noexcept
    vecf vf_quotient_to_odd(vecf, vecf) noexcept
    uint32_t scarce_below(float) noexcept
    mask_t vf_is_scarce(vecf, uint32_t) noexcept
    vecf vf_where(vecf, vecf, vecf) noexcept
    vecf vf_beyond(vecf, vecf, float) noexcept
    vecf vf_round_f16(vecf) noexcept
    vecf vf_round_bf16(vecf) noexcept
    vecf vf_round_bf16_at_once(vecf) noexcept
    veci vf_join_bf16(vecf, vecf) noexcept
    veci vf_join_f16(vecf, vecf) noexcept
    vecf vf_from_bool(const void *) noexcept
    void vf_store_bool(void *, vecf) noexcept

cdef extern from "simd/leaky_relu.h" nogil:
    ctypedef struct leaky_relu_t:
        float near
        bint at_once
    void prepare_leaky_relu(params_t *, elem_type) noexcept

cdef extern from "simd.h" nogil:
    vecf vf_canonical(vecf) noexcept
    vecf vf_truth(mask_t) noexcept
    bint mask_any(mask_t) noexcept
    mask_t mask_or(mask_t, mask_t) noexcept
    mask_t vf_is_nonzero(vecf) noexcept
    mask_t vf_is_above(vecf, vecf) noexcept
    vecf vf_abs(vecf) noexcept
    vecf vf_sub(vecf, vecf) noexcept
    vecf vf_floor(vecf) noexcept
    vecf vf_load(const void *) noexcept

cdef extern from "simd/pair.h" nogil:
    vecf vf_set(float) noexcept
    vecf vf_neg(vecf) noexcept
    vecf vf_mul(vecf, vecf) noexcept
    vecf vf_where_above(vecf, vecf, vecf, vecf) noexcept
    vecf vf_where_at_most(vecf, vecf, vecf, vecf) noexcept

ctypedef vecf (*finish_fn)(vecf) noexcept nogil
ctypedef vecf (*of_one)(vecf, const double *) noexcept nogil
ctypedef vecf (*of_two)(vecf, vecf, const double *) noexcept nogil
ctypedef vecf (*of_three)(vecf, vecf, vecf, const double *) noexcept nogil


# --- Running a step -------------------------------------------------------------------------------

cdef inline const double *numbers_of(const step_t *step, const frame_t *frame) noexcept nogil:
    return <const double *>(frame.params + step.params)


cdef inline char *operand_of(const step_t *step, const frame_t *frame,
                             ptrdiff_t i) noexcept nogil:
    return frame.data[step.operand] + i * step.size


cdef inline char *other_of(const step_t *step, const frame_t *frame, ptrdiff_t i) noexcept nogil:
    return frame.data[step.other] + i * step.other_size


cdef inline vecf at(const char *p, int k) noexcept nogil:
    """The vector number k of floats."""
    return vf_load(p + k * (STEP_ELEMENTS // 2))


cdef inline void run_of_one(of_one formula, finish_fn finish, vecf a, vecf b, vecf c, vecf d,
                            vecf e, vecf f, vecf g, vecf h, const step_t *step, frame_t *frame,
                            ptrdiff_t i) noexcept nogil:
    cdef const double *p = numbers_of(step, frame)
    cdef const step_t *next = step + 1
    a = vf_complete(finish(formula(a, p)))
    b = vf_complete(finish(formula(b, p)))
    c = vf_complete(finish(formula(c, p)))
    d = vf_complete(finish(formula(d, p)))
    e = vf_complete(finish(formula(e, p)))
    f = vf_complete(finish(formula(f, p)))
    g = vf_complete(finish(formula(g, p)))
    h = vf_complete(finish(formula(h, p)))
    next.run(a, b, c, d, e, f, g, h, next, frame, i)


cdef inline void run_of_two(of_two formula, finish_fn finish, vecf a, vecf b, vecf c, vecf d,
                            vecf e, vecf f, vecf g, vecf h, const step_t *step, frame_t *frame,
                            ptrdiff_t i) noexcept nogil:
    cdef const double *p = numbers_of(step, frame)
    cdef const char *y = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    a = vf_complete(finish(formula(a, at(y, 0), p)))
    b = vf_complete(finish(formula(b, at(y, 1), p)))
    c = vf_complete(finish(formula(c, at(y, 2), p)))
    d = vf_complete(finish(formula(d, at(y, 3), p)))
    e = vf_complete(finish(formula(e, at(y, 4), p)))
    f = vf_complete(finish(formula(f, at(y, 5), p)))
    g = vf_complete(finish(formula(g, at(y, 6), p)))
    h = vf_complete(finish(formula(h, at(y, 7), p)))
    next.run(a, b, c, d, e, f, g, h, next, frame, i)


cdef inline void run_of_three(of_three formula, finish_fn finish, vecf a, vecf b, vecf c, vecf d,
                              vecf e, vecf f, vecf g, vecf h, const step_t *step, frame_t *frame,
                              ptrdiff_t i) noexcept nogil:
    cdef const double *p = numbers_of(step, frame)
    cdef const char *y = operand_of(step, frame, i)
    cdef const char *z = other_of(step, frame, i)
    cdef const step_t *next = step + 1
    a = vf_complete(finish(formula(a, at(y, 0), at(z, 0), p)))
    b = vf_complete(finish(formula(b, at(y, 1), at(z, 1), p)))
    c = vf_complete(finish(formula(c, at(y, 2), at(z, 2), p)))
    d = vf_complete(finish(formula(d, at(y, 3), at(z, 3), p)))
    e = vf_complete(finish(formula(e, at(y, 4), at(z, 4), p)))
    f = vf_complete(finish(formula(f, at(y, 5), at(z, 5), p)))
    g = vf_complete(finish(formula(g, at(y, 6), at(z, 6), p)))
    h = vf_complete(finish(formula(h, at(y, 7), at(z, 7), p)))
    next.run(a, b, c, d, e, f, g, h, next, frame, i)


# --- What becomes of a result ---------------------------------------------------------------------

cdef inline vecf as_it_is(vecf r) noexcept nogil:
    return r


# NaNs become the one NaN, or stay some NaN where nothing tells them apart (`raw`).

cdef inline vecf to_f16(vecf r) noexcept nogil:
    return vf_round_f16(vf_canonical(r))


cdef inline vecf to_f16_raw(vecf r) noexcept nogil:
    return vf_round_f16(r)


cdef inline vecf to_bf16(vecf r) noexcept nogil:
    return vf_round_bf16(vf_canonical(r))


cdef inline vecf to_bf16_raw(vecf r) noexcept nogil:
    return vf_round_bf16(r)


cdef inline vecf to_bf16_at_once(vecf r) noexcept nogil:
    """Conversion of what is never between two neighbours, and is no NaN but in its upper half."""
    return vf_round_bf16_at_once(r)


# --- Formulas that `arithmetic.pxd` does not have -------------------------------------------------

cdef inline vecf same(vecf x, const double *p) noexcept nogil:
    return x


cdef inline vecf filled(vecf x, const double *p) noexcept nogil:
    return vf_set(<float>p[0])


cdef inline vecf neg(vecf x, const double *p) noexcept nogil:
    return vf_neg(x)


cdef inline vecf abs(vecf x, const double *p) noexcept nogil:
    return vf_abs(x)


cdef inline vecf scaled_where_not_positive(vecf g, vecf x, const double *p) noexcept nogil:
    return vf_where_above(x, vf_set(0), g, vf_mul(g, vf_set(<float>p[0])))


cdef inline vecf leaky_relu_backward(vecf g, vecf x, const double *p) noexcept nogil:
    cdef vecf product = vf_canonical(vf_mul(g, vf_set(<float>p[0])))
    return vf_where_above(x, vf_set(0), g, product)


cdef inline vecf leaky_relu(vecf x, const double *p) noexcept nogil:
    return scaled_where_not_positive(x, x, p)


# Of half precision: p[0], then what `prepare_leaky_relu` makes of it.

cdef inline const leaky_relu_t *leaky(const double *p) noexcept nogil:
    return <const leaky_relu_t *>(p + 1)


cdef inline vecf leaky_relu_backward_near(vecf g, vecf x, const double *p) noexcept nogil:
    return vf_where_above(x, vf_set(0), g, vf_canonical(vf_mul(g, vf_set(leaky(p).near))))


cdef inline vecf leaky_relu_near(vecf x, const double *p) noexcept nogil:
    return vf_where_above(x, vf_set(0), x, vf_mul(x, vf_set(leaky(p).near)))


cdef inline vecf leaky_relu_backward_to_odd(vecf g, vecf x, const double *p) noexcept nogil:
    cdef vecf product = vf_canonical(vf_product_to_odd(g, vf_set(<float>p[0])))
    return vf_where_above(x, vf_set(0), g, product)


cdef inline vecf leaky_relu_to_odd(vecf x, const double *p) noexcept nogil:
    return vf_where_above(x, vf_set(0), x, vf_product_to_odd(x, vf_set(<float>p[0])))


cdef inline vecf hardshrink(vecf x, const double *p) noexcept nogil:
    return vf_beyond(x, x, <float>p[0])


cdef inline vecf hardshrink_backward(vecf g, vecf x, const double *p) noexcept nogil:
    return vf_beyond(g, x, 0 if p[0] < 0 else <float>p[0])


cdef inline vecf prelu_backward(vecf g, vecf x, vecf w, const double *p) noexcept nogil:
    return vf_where_above(x, vf_set(0), g, vf_canonical(vf_mul(g, w)))


cdef inline vecf heaviside(vecf x, vecf at_0, const double *p) noexcept nogil:
    return vf_where(x, vf_truth(vf_is_above(x, vf_set(0))), at_0)


cdef inline vecf where(vecf c, vecf a, vecf b, const double *p) noexcept nogil:
    return vf_where(c, a, b)


cdef inline vecf adds_to_odd(vecf a, const double *p) noexcept nogil:
    return vf_sum_to_odd(a, vf_set(<float>(p[0] * p[1])))


cdef inline vecf subs_to_odd(vecf a, const double *p) noexcept nogil:
    return vf_sum_to_odd(a, vf_set(<float>(-p[0] * p[1])))


cdef inline vecf rsubs_to_odd(vecf a, const double *p) noexcept nogil:
    return vf_sum_to_odd(vf_mul(a, vf_set(<float>-p[1])), vf_set(<float>p[0]))


cdef inline vecf muls_to_odd(vecf a, const double *p) noexcept nogil:
    return vf_product_to_odd(a, vf_set(<float>p[0]))


cdef inline vecf divs_to_odd(vecf a, const double *p) noexcept nogil:
    return vf_quotient_to_odd(a, vf_set(<float>p[0]))


cdef inline vecf div_to_odd(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_quotient_to_odd(a, b)


cdef inline vecf reciprocal_to_odd(vecf a, const double *p) noexcept nogil:
    return vf_quotient_to_odd(vf_set(1), a)
