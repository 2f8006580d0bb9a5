"""Operations on vectors of float32, of 32-bit and of 16-bit integers (`simd.h`)."""

from libc.stdint cimport uint16_t, uint32_t

cdef extern from "simd.h" nogil:
    enum:
        LANES  # of a vector
    ctypedef struct vecf:
        pass
    ctypedef struct veci:
        pass
    ctypedef struct vech:
        pass
    ctypedef struct mask_t:
        pass

    vecf vf_set(float) noexcept
    vecf vf_load(const void *) noexcept
    void vf_store(void *, vecf) noexcept
    void vf_stream(void *, vecf) noexcept
    vecf vf_add(vecf, vecf) noexcept
    vecf vf_mul(vecf, vecf) noexcept
    bint vf_both_zero_or_at_least(vecf, vecf, float) noexcept
    mask_t vf_is_nan(vecf) noexcept
    vecf vf_canonical(vecf) noexcept
    vecf vf_select(mask_t, vecf, vecf) noexcept
    vecf vf_lookup_both(vecf, veci, vecf) noexcept
    veci vf_bits(vecf) noexcept
    vecf vi_as_floats(veci) noexcept

    veci vi_set(uint32_t) noexcept
    veci vi_load(const void *) noexcept
    void vi_store(void *, veci) noexcept
    void vi_stream(void *, veci) noexcept
    veci vi_load_first(const void *, ptrdiff_t, char) noexcept
    void vi_store_first(void *, ptrdiff_t, veci) noexcept
    veci vi_count_from(uint32_t) noexcept
    veci vi_add(veci, veci) noexcept
    veci vi_and(veci, veci) noexcept
    veci vi_shift_left(veci, int) noexcept
    unsigned vi_misses(veci, veci) noexcept
    veci vi_round_to_upper(veci) noexcept
    vech vi_upper_halves(veci) noexcept
    veci vi_interleave_upper(veci, veci) noexcept
    bint vi16_any_le(veci, uint16_t) noexcept

    vech vh_load(const void *) noexcept
    void vh_store(void *, vech) noexcept
    unsigned vh_differ(vech, vech) noexcept
    vecf vf_from_f16(vech) noexcept
    vecf vf_from_bf16(vech) noexcept
    vech vf_to_f16(vecf) noexcept
    vech vf_to_f16_by_memory(vecf) noexcept
    void vf_store_f16(void *, vecf) noexcept
    veci vi_join(vech, vech) noexcept
    vech vi_low_half(veci) noexcept
    vech vi_high_half(veci) noexcept
