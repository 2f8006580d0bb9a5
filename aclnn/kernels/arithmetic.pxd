"""Sums, products and quotients of half precision over vectors of floats.

What `formulas.pxd` says of them there holds here: a float rounds a sum or a quotient of two halves
so that a second rounding does not show, and products are exact; of numbers of the node, which have
the digits of a float, `vector_forms.py` says so, and the rounding test decides.
"""

from aclnn.kernels.simd.vector cimport vecf

cdef extern from "simd/pair.h" nogil:
    vecf vf_set(float) noexcept
    vecf vf_fma(vecf, vecf, vecf) noexcept
    vecf vf_mul(vecf, vecf) noexcept
    vecf vf_div(vecf, vecf) noexcept
    vecf vf_sqrt(vecf) noexcept
    vecf vf_neg(vecf) noexcept
    vecf vf_abs(vecf) noexcept


cdef inline vecf add(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_fma(b, vf_set(<float>p[0]), a)


cdef inline vecf sub(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_fma(b, vf_set(<float>-p[0]), a)


cdef inline vecf mul(vecf a, vecf b, const double *p) noexcept nogil:
    return vf_mul(a, b)


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


cdef inline vecf neg(vecf a, const double *p) noexcept nogil:
    return vf_neg(a)


cdef inline vecf abs(vecf a, const double *p) noexcept nogil:
    return vf_abs(a)
