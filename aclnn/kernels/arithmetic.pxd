"""Sums, products, quotients and choices of half precision over vectors of floats.

What `formulas.pxd` says of them there holds here: a float rounds a sum or a quotient of two halves
so that a second rounding does not show, and products are exact; of numbers of the node, which have
the digits of a float, their records say so, and the rounding test decides.  A result that is a
NaN is computed as a double again, so that what matters is only that it is one.
"""

from libc.math cimport NAN

from aclnn.kernels.simd.vector cimport mask_t, vecf, veci, vf_add, vf_select, vi_and, vi_set

cdef extern from "simd.h" nogil:
    vecf vf_abs(vecf) noexcept
    vecf vf_floor(vecf) noexcept
    vecf vf_sub(vecf, vecf) noexcept
    vecf vf_truth(mask_t) noexcept
    vecf vf_untruth(mask_t) noexcept
    mask_t vf_is_above(vecf, vecf) noexcept
    mask_t vf_is_at_most(vecf, vecf) noexcept
    mask_t vf_is_equal(vecf, vecf) noexcept
    mask_t vf_is_nonzero(vecf) noexcept
    mask_t mask_and(mask_t, mask_t) noexcept
    mask_t mask_or(mask_t, mask_t) noexcept
    veci vi_xor(veci, veci) noexcept

cdef extern from "simd/pair.h" nogil:
    vecf vf_set(float) noexcept
    vecf vf_fma(vecf, vecf, vecf) noexcept
    vecf vf_mul(vecf, vecf) noexcept
    vecf vf_neg(vecf) noexcept
    vecf vf_div(vecf, vecf) noexcept
    vecf vf_sqrt(vecf) noexcept
    vecf vf_where_above(vecf, vecf, vecf, vecf) noexcept
    vecf vf_bounded(vecf, float, float) noexcept
    vecf vf_where_at_most(vecf, vecf, vecf, vecf) noexcept


cdef inline vecf add(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_fma(b, vf_set(<float>p[0]), a)


cdef inline vecf sub(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_fma(b, vf_set(<float>-p[0]), a)


cdef inline vecf mul(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_mul(a, b)


cdef inline vecf rsub(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_fma(a, vf_set(<float>-p[0]), b)


cdef inline vecf adds(vecf a, const double *p) noexcept nogil:
    return vf_fma(vf_set(<float>p[0]), vf_set(<float>p[1]), a)


cdef inline vecf subs(vecf a, const double *p) noexcept nogil:
    return vf_fma(vf_set(<float>p[0]), vf_set(<float>-p[1]), a)


cdef inline vecf rsubs(vecf a, const double *p) noexcept nogil:
    return vf_fma(a, vf_set(<float>-p[1]), vf_set(<float>p[0]))


cdef inline vecf divs(vecf a, const double *p) noexcept nogil:
    return vf_div(a, vf_set(<float>p[0]))


cdef inline vecf floor(vecf a, const double *p) noexcept nogil:
    return vf_floor(a)


cdef inline vecf ceil(vecf a, const double *p) noexcept nogil:
    return vf_neg(vf_floor(vf_neg(a)))


cdef inline vecf trunc(vecf a, const double *p) noexcept nogil:
    return vf_where_above(vf_set(0), a, vf_neg(vf_floor(vf_neg(a))), vf_floor(a))


cdef inline vecf frac(vecf a, const double *p) noexcept nogil:
    return vf_sub(a, trunc(a, p))


cdef inline vecf round(vecf a, const double *p) noexcept nogil:
    """Adding 2^23 rounds what is less; what is not has no digits behind the point."""
    cdef vecf size = vf_abs(a)
    cdef vecf whole = vf_sub(vf_add(size, vf_set(8388608)), vf_set(8388608))
    whole = vf_where_above(vf_set(0), a, vf_neg(whole), whole)
    whole = vf_where_above(size, vf_set(0.5), whole, vf_mul(a, vf_set(0)))
    return vf_where_above(vf_set(8388608), size, whole, vf_floor(a))


cdef inline vecf sign(vecf a, const double *p) noexcept nogil:
    cdef vecf below = vf_where_above(vf_set(0), a, vf_set(-1), vf_set(0))
    return vf_where_above(a, vf_set(0), vf_set(1), below)


cdef inline vecf muls(vecf a, const double *p) noexcept nogil:
    return vf_mul(a, vf_set(<float>p[0]))


cdef inline vecf square(vecf a, const double *p) noexcept nogil:
    return vf_mul(a, a)


cdef inline vecf div(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_div(a, b)


cdef inline vecf reciprocal(vecf a, const double *p) noexcept nogil:
    return vf_div(vf_set(1), a)


cdef inline vecf sqrt(vecf a, const double *p) noexcept nogil:
    return vf_sqrt(a)


# As bits, two to a lane, which need no conversion.
cdef inline veci neg(veci a, const double *p) noexcept nogil:
    return vi_xor(a, vi_set(0x80008000))


cdef inline veci abs(veci a, const double *p) noexcept nogil:
    return vi_and(a, vi_set(0x7fff7fff))


cdef inline vecf number(double c) noexcept nogil:
    return vf_set(<float>c)


# --- Choices --------------------------------------------------------------------------------------

cdef inline vecf maximum(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_where_at_most(a, a, vf_where_above(a, b, a, b), a)


cdef inline vecf minimum(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_where_at_most(a, a, vf_where_above(b, a, a, b), a)


cdef inline vecf clamp(vecf x, const double *p) noexcept nogil:
    cdef vecf low = number(p[0]), high = number(p[1])
    cdef vecf above = vf_where_at_most(low, low, vf_where_above(low, x, low, x), low)
    return vf_where_at_most(high, high, vf_where_above(above, high, high, above), high)


cdef inline vecf relu(vecf x, const double *p) noexcept nogil:
    return vf_where_at_most(x, number(0), number(0), x)


cdef inline vecf relu_backward(vecf g, vecf x, const double *p) noexcept nogil:
    return vf_where_at_most(x, number(0), number(0), g)


cdef inline vecf threshold(vecf x, const double *p) noexcept nogil:
    return vf_where_at_most(x, number(p[0]), number(p[1]), x)


cdef inline vecf threshold_backward(vecf g, vecf x, const double *p) noexcept nogil:
    return vf_where_at_most(x, number(p[0]), number(0), g)


cdef inline vecf hardtanh_backward(vecf g, vecf x, const double *p) noexcept nogil:
    cdef vecf above = vf_where_at_most(x, number(p[0]), number(0), g)
    return vf_where_at_most(number(p[1]), x, number(0), above)


cdef inline vecf unless_near(vecf x, double bound, vecf r) noexcept nogil:
    """`r`, but 0 where x is between -bound and bound."""
    cdef vecf above = vf_where_at_most(number(-bound), x, number(0), r)
    return vf_where_at_most(x, number(bound), above, r)


cdef inline vecf softshrink_backward(vecf g, vecf x, const double *p) noexcept nogil:
    return unless_near(x, p[0], g)


# --- Choices of sums and products -----------------------------------------------------------------

cdef inline vecf softshrink(vecf x, const double *p) noexcept nogil:
    """A NaN stays; nothing is beyond a bound that is NaN."""
    cdef vecf added = vf_where_above(x, number(0), number(-p[0]), number(p[0]))
    cdef vecf beyond = vf_where_above(vf_abs(x), number(p[0]), vf_add(x, added), number(0))
    return vf_where_at_most(x, x, beyond, x)


cdef inline vecf shrink(vecf x, const double *p) noexcept nogil:
    """p: lambd, bias; a NaN gives 0."""
    cdef vecf left = vf_where_above(number(-p[0]), x, vf_add(x, number(p[1])), number(0))
    cdef vecf less = vf_where_above(x, number(0), vf_add(x, number(-p[1])), left)
    return vf_where_above(x, number(p[0]), less, left)


cdef inline vecf add_relu(vecf a, vecf b, const double *p) noexcept nogil:
    cdef vecf total = vf_fma(b, number(p[0]), a)
    return vf_where_at_most(total, number(0), number(0), total)


cdef inline vecf squared_relu(vecf x, const double *p) noexcept nogil:
    return vf_where_at_most(x, number(0), number(0), vf_mul(x, x))


cdef inline vecf prelu(vecf x, vecf w, const double *p) noexcept nogil:
    return vf_where_above(x, number(0), x, vf_mul(x, w))


cdef inline vecf hardsigmoid(vecf x, const double *p) noexcept nogil:
    """The sum is exact wherever the quotient is near the middle of two halves, of which it is never
    nearer to one than a float shows."""
    cdef vecf near = vf_bounded(x, -3, 3)
    return vf_div(vf_add(number(3), near), number(6))


cdef inline vecf hardsigmoid_backward(vecf g, vecf x, const double *p) noexcept nogil:
    cdef vecf above = vf_where_above(x, number(-3), vf_div(g, number(6)), number(0))
    return vf_where_above(number(3), x, above, number(0))


# --- Comparisons and logic ------------------------------------------------------------------------

cdef inline vecf eq(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_truth(vf_is_equal(a, b))


cdef inline vecf ne(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_untruth(vf_is_equal(a, b))


cdef inline vecf lt(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_truth(vf_is_above(b, a))


cdef inline vecf le(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_truth(vf_is_at_most(a, b))


cdef inline vecf gt(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_truth(vf_is_above(a, b))


cdef inline vecf ge(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_truth(vf_is_at_most(b, a))


cdef inline vecf logical_and(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_truth(mask_and(vf_is_nonzero(a), vf_is_nonzero(b)))


cdef inline vecf logical_or(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_truth(mask_or(vf_is_nonzero(a), vf_is_nonzero(b)))


cdef inline vecf logical_xor(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_select(vf_is_nonzero(a), vf_untruth(vf_is_nonzero(b)), vf_truth(vf_is_nonzero(b)))


cdef inline vecf logical_not(vecf a, const double *p) noexcept nogil:
    return vf_untruth(vf_is_nonzero(a))
