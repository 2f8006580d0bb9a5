"""Facts for loops over half precision about formulas that a float rounds as it should."""

from aclnn.kernels.simd.loop_args cimport params_t
from aclnn.kernels.simd.track cimport domain_t, track_t
from aclnn.kernels.simd.vector cimport mask_t, vecf

cdef extern from "simd/exact.h" nogil:
    const domain_t EXACT_DOMAIN
    const domain_t CHOICE_DOMAIN
    const domain_t FLOAT_DOMAIN
    bint is_short(double) noexcept
    const domain_t ONCE_ROUNDED_DOMAIN
    domain_t in_range_domain(float) noexcept
    domain_t half_domain(float) noexcept
    bint exact_is_exceptional(float, float, float, const double *) noexcept
    vecf tracked(track_t *, vecf) noexcept
    vecf tracked_where(track_t *, vecf, mask_t) noexcept
    bint scaled_is_exceptional(float, float, float, const double *) noexcept
