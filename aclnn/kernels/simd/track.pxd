"""Range tracking (`track.h`): what a loop accumulates to tell whether any result is exceptional."""

from libc.stdint cimport uint16_t, uint32_t

from aclnn.kernels.simd.vector cimport veci, vecf

cdef extern from "simd/track.h" nogil:
    ctypedef struct track_t:
        vecf last
        veci min_bits
    ctypedef struct domain_t:
        float rel_error
        bint check_finite
        bint one_nan
        bint share_tracking
        bint check_negative
        bint nonzero
        uint32_t max_bits
        uint32_t root_gap
    track_t track_init(int) noexcept
    track_t track_merge(const track_t *, const track_t *) noexcept
    void track_finite(track_t *, vecf, vecf) noexcept
    void track_half_max(track_t *, veci) noexcept
    bint is_range_exceptional(const track_t *, domain_t) noexcept
    bint has_negative(const track_t *) noexcept
    bint has_zero(const track_t *) noexcept
    bint has_nan(const track_t *, uint16_t) noexcept
