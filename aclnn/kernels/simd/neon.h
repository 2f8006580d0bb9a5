/* The operations of `simd.h` on AArch64: eight lanes, in two registers of NEON.
 *
 * Every AArch64 CPU has these, conversions of float16 and fused multiply-add among them. NaNs, zeros and
 * subnormal numbers come out as with AVX2; selections keep what is not selected, as with AVX-512.
 */
#ifndef ACLNN_SIMD_NEON_H
#define ACLNN_SIMD_NEON_H

#include <arm_neon.h>

#define LANES 8
typedef struct { float32x4_t low, high; } vecf;
typedef struct { uint32x4_t low, high; } veci;
typedef veci mask_t; /* all bits of a lane, or none */
typedef uint16x8_t vech;

/* Operations that are one instruction on each register. */
#define NEON_UNARY(result, name, type, op) \
    INLINED result name(type a) { return (result){ op(a.low), op(a.high) }; }
#define NEON_BINARY(result, name, type, op) \
    INLINED result name(type a, type b) { return (result){ op(a.low, b.low), op(a.high, b.high) }; }
/* The same on elements of 16 bits, which lie in the registers of those of 32. */
#define NEON_HALVES(name, op) \
    INLINED veci name(veci a, veci b) { return vi_join(op(vi_low_half(a), vi_low_half(b)), \
                                                       op(vi_high_half(a), vi_high_half(b))); }

INLINED vecf vf_set(float x) { return (vecf){ vdupq_n_f32(x), vdupq_n_f32(x) }; }
INLINED veci vi_set(uint32_t x) { return (veci){ vdupq_n_u32(x), vdupq_n_u32(x) }; }
/* Addresses need not be aligned to elements. */
INLINED veci vi_load(const void *p) {
    const uint8_t *bytes = p;
    return (veci){ vreinterpretq_u32_u8(vld1q_u8(bytes)), vreinterpretq_u32_u8(vld1q_u8(bytes + 16)) };
}
INLINED void vi_store(void *p, veci x) {
    uint8_t *bytes = p;
    vst1q_u8(bytes, vreinterpretq_u8_u32(x.low));
    vst1q_u8(bytes + 16, vreinterpretq_u8_u32(x.high));
}
NEON_UNARY(veci, vf_bits, vecf, vreinterpretq_u32_f32)
NEON_UNARY(vecf, vi_as_floats, veci, vreinterpretq_f32_u32)
INLINED vecf vf_load(const void *p) { return vi_as_floats(vi_load(p)); }
INLINED void vf_store(void *p, vecf x) { vi_store(p, vf_bits(x)); }
/* Stores that bypass the cache are of little use to these CPUs. */
INLINED void vi_stream(void *p, veci x) { vi_store(p, x); }
INLINED void vf_stream(void *p, vecf x) { vf_store(p, x); }
INLINED veci vi_load_first(const void *p, ptrdiff_t n, char filler) {
    char bytes[32];
    memset(bytes, filler, sizeof bytes);
    memcpy(bytes, p, (size_t)n);
    return vi_load(bytes);
}
INLINED void vi_store_first(void *p, ptrdiff_t n, veci x) {
    char bytes[32];
    vi_store(bytes, x);
    memcpy(p, bytes, (size_t)n);
}

NEON_BINARY(veci, vi_add, veci, vaddq_u32)
NEON_BINARY(veci, vi_sub, veci, vsubq_u32)
NEON_BINARY(veci, vi_and, veci, vandq_u32)
NEON_BINARY(veci, vi_xor, veci, veorq_u32)
NEON_BINARY(veci, vi_or, veci, vorrq_u32)
NEON_BINARY(veci, vi_min, veci, vminq_u32)
NEON_BINARY(veci, vi_max, veci, vmaxq_u32)
NEON_BINARY(mask_t, vi_le, veci, vcleq_u32)
NEON_BINARY(mask_t, vi_ge, veci, vcgeq_u32)
NEON_BINARY(mask_t, mask_and, mask_t, vandq_u32)
NEON_BINARY(mask_t, mask_or, mask_t, vorrq_u32)
INLINED veci vi_count_from(uint32_t first) {
    const uint32_t counted[LANES] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    return vi_add(vi_set(first), vi_load(counted));
}
/* By operators: shifts by constants are one instruction then. */
INLINED veci vi_shift_left(veci a, int n) { return (veci){ a.low << n, a.high << n }; }
INLINED veci vi_shift_right(veci a, int n) { return (veci){ a.low >> n, a.high >> n }; }
INLINED veci vi_shift_right_signed(veci a, int n) {
    return (veci){ (uint32x4_t)((int32x4_t)a.low >> n), (uint32x4_t)((int32x4_t)a.high >> n) };
}
INLINED vecf vi_to_floats(veci a) {
    return (vecf){ vcvtq_f32_s32((int32x4_t)a.low), vcvtq_f32_s32((int32x4_t)a.high) };
}
INLINED int mask_any(mask_t c) { return vmaxvq_u32(vorrq_u32(c.low, c.high)) != 0; }
/* A bit for each of eight elements that are all bits or none. */
INLINED unsigned bits_of_eight(uint16x8_t c) {
    const uint16_t places[LANES] = { 1, 2, 4, 8, 16, 32, 64, 128 };
    return vaddvq_u16(vandq_u16(c, vld1q_u16(places)));
}
INLINED unsigned mask_bits(mask_t c) {
    return bits_of_eight(vcombine_u16(vmovn_u32(c.low), vmovn_u32(c.high)));
}

NEON_BINARY(vecf, vf_add, vecf, vaddq_f32)
NEON_BINARY(vecf, vf_sub, vecf, vsubq_f32)
NEON_BINARY(vecf, vf_mul, vecf, vmulq_f32)
NEON_BINARY(vecf, vf_div, vecf, vdivq_f32)
NEON_UNARY(vecf, vf_sqrt, vecf, vsqrtq_f32)
NEON_UNARY(vecf, vf_abs, vecf, vabsq_f32)
NEON_UNARY(vecf, vf_floor, vecf, vrndmq_f32)
INLINED vecf vf_fma(vecf a, vecf b, vecf c) {
    return (vecf){ vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high) };
}
INLINED vecf vf_fnma(vecf a, vecf b, vecf c) {
    return (vecf){ vfmsq_f32(c.low, a.low, b.low), vfmsq_f32(c.high, a.high, b.high) };
}
INLINED vecf vf_fms(vecf a, vecf b, vecf c) {
    return (vecf){ vfmaq_f32(vnegq_f32(c.low), a.low, b.low), vfmaq_f32(vnegq_f32(c.high), a.high, b.high) };
}
/* What the instructions estimate is good to 2^-8: as far as needed, a quotient is as short. */
INLINED vecf vf_reciprocal_estimate(vecf x) { return vf_div(vf_set(1.0f), x); }
INLINED vecf vf_rsqrt_estimate(vecf x) { return vf_reciprocal_estimate(vf_sqrt(x)); }

INLINED veci vi_select(mask_t c, veci yes, veci no) {
    return (veci){ vbslq_u32(c.low, yes.low, no.low), vbslq_u32(c.high, yes.high, no.high) };
}
INLINED vecf vf_select(mask_t c, vecf yes, vecf no) {
    return (vecf){ vbslq_f32(c.low, yes.low, no.low), vbslq_f32(c.high, yes.high, no.high) };
}
NEON_UNARY(mask_t, vf_is_positive, vecf, vcgtzq_f32)
NEON_UNARY(mask_t, vf_is_negative, vecf, vcltzq_f32)
NEON_BINARY(mask_t, vf_is_less, vecf, vcltq_f32)
NEON_BINARY(mask_t, vf_is_at_least, vecf, vcgeq_f32)
NEON_BINARY(mask_t, vf_is_above, vecf, vcgtq_f32)
NEON_BINARY(mask_t, vf_is_at_most, vecf, vcleq_f32)
NEON_BINARY(mask_t, vf_is_equal, vecf, vceqq_f32)
NEON_UNARY(mask_t, mask_not, mask_t, vmvnq_u32)
INLINED mask_t vf_is_nan(vecf x) { return mask_not(vf_is_equal(x, x)); }
INLINED mask_t vf_is_not_positive(vecf x) { return mask_not(vf_is_positive(x)); }
INLINED mask_t vf_is_nonzero(vecf x) { return mask_not(vf_is_equal(x, vf_set(0.0f))); }
INLINED mask_t vf_ge(vecf x, float low) { return vf_is_at_least(x, vf_set(low)); }
INLINED mask_t vf_between(vecf x, float low, float high) {
    return mask_and(vf_ge(x, low), vf_is_at_least(vf_set(high), x));
}
INLINED mask_t vf_ge_and_ordered(vecf x, float low, vecf y) {
    return mask_and(vf_ge(x, low), vf_is_equal(y, y));
}
/* b, unless a is less: where either is a NaN, or both are zeros, b too. */
INLINED vecf vf_min(vecf a, vecf b) { return vf_select(vf_is_less(a, b), a, b); }
INLINED vecf vf_at_most(vecf x, float bound) { return vf_min(vf_set(bound), x); }
INLINED vecf vf_at_least(vecf x, float bound) {
    return vf_select(vf_is_less(x, vf_set(bound)), vf_set(bound), x);
}
INLINED vecf vf_positive_part(vecf x) { return vf_at_least(x, 0.0f); }
INLINED vecf vf_min_abs(vecf least, vecf x) { return vf_min(vf_abs(x), least); }

INLINED vecf vf_add_where(mask_t c, vecf a, vecf b) { return vf_select(c, vf_add(a, b), a); }
INLINED vecf vf_sub_where(mask_t c, vecf a, vecf b) { return vf_select(c, vf_sub(a, b), a); }
INLINED vecf vf_mul_where(mask_t c, vecf a, vecf b) { return vf_select(c, vf_mul(a, b), a); }
INLINED vecf vf_negate_where(mask_t c, vecf a) {
    return vi_as_floats(vi_xor(vf_bits(a), vi_and(c, vi_set(0x80000000u))));
}
INLINED vecf vf_one_minus_where(mask_t c, vecf a) { return vf_select(c, vf_sub(vf_set(1.0f), a), a); }
INLINED vecf vf_zeros_signed_as(vecf x, vecf s, mask_t some) { return vf_select(some, x, s); }
INLINED vecf vf_signed_addend(vecf x, mask_t some) { return vf_select(some, x, vf_set(-0.0f)); }
INLINED vecf vf_mul_to_odd_where(mask_t c, vecf a, vecf b) {
    vecf p = vf_mul(a, b), error = vf_fms(a, b, p);
    /* -1 where p was rounded away from 0. */
    veci outward = vi_shift_right_signed(vi_xor(vf_bits(error), vf_bits(p)), 31);
    vecf odd = vi_as_floats(vi_or(vi_add(vf_bits(p), outward), vi_set(1u)));
    return vf_select(c, vf_select(vf_is_equal(error, vf_set(0.0f)), p, odd), a);
}
INLINED veci vi_min_magnitude(veci least, vecf x) { return vi_min(least, vf_bits(vf_abs(x))); }
/* Magnitudes are 1 less here, and 0 the largest. */
INLINED veci vi_min_magnitude_where(veci least, vecf x, mask_t some) {
    return vi_min(least, vi_sub(vf_bits(vf_abs(x)), vi_set(1u)));
}

INLINED vech vh_load(const void *p) { return vreinterpretq_u16_u8(vld1q_u8(p)); }
INLINED void vh_store(void *p, vech h) { vst1q_u8(p, vreinterpretq_u8_u16(h)); }
INLINED vecf vf_from_f16(vech h) {
    float16x8_t halves = vreinterpretq_f16_u16(h);
    return (vecf){ vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves) };
}
INLINED vech vf_to_f16(vecf x) {
    return vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(x.low), x.high));
}
INLINED void vf_store_f16(void *p, vecf x) { vh_store(p, vf_to_f16(x)); }
INLINED vecf vf_from_bf16(vech h) {
    return vi_as_floats((veci){ vshll_n_u16(vget_low_u16(h), 16), vshll_high_n_u16(h, 16) });
}
INLINED vech vi_upper_halves(veci x) {
    return vshrn_high_n_u32(vshrn_n_u32(x.low, 16), x.high, 16);
}
INLINED veci vi_round_to_upper(veci x) {
    veci even = vi_and(vi_shift_right(x, 16), vi_set(1u));
    return vi_add(x, vi_add(even, vi_set(0x7fffu)));
}
INLINED unsigned vh_differ(vech a, vech b) { return bits_of_eight(vmvnq_u16(vceqq_u16(a, b))); }
INLINED unsigned vi_misses(veci x, veci bits) {
    return mask_bits((veci){ vceqzq_u32(vandq_u32(x.low, bits.low)), vceqzq_u32(vandq_u32(x.high, bits.high)) });
}

INLINED veci vi_join(vech low, vech high) {
    return (veci){ vreinterpretq_u32_u16(low), vreinterpretq_u32_u16(high) };
}
INLINED vech vi_low_half(veci both) { return vreinterpretq_u16_u32(both.low); }
INLINED vech vi_high_half(veci both) { return vreinterpretq_u16_u32(both.high); }
INLINED veci vi_interleave_upper(veci even, veci odd) {
    return (veci){ vsriq_n_u32(odd.low, even.low, 16), vsriq_n_u32(odd.high, even.high, 16) };
}
INLINED veci vi16_set(uint16_t x) { return vi_join(vdupq_n_u16(x), vdupq_n_u16(x)); }
NEON_HALVES(vi16_add, vaddq_u16)
NEON_HALVES(vi16_sub, vsubq_u16)
NEON_HALVES(vi16_min, vminq_u16)
NEON_HALVES(vi16_max, vmaxq_u16)
NEON_HALVES(vi16_le, vcleq_u16)
INLINED int vi16_any_ge(veci x, uint16_t y) { return mask_any(vi16_le(vi16_set(y), x)); }
INLINED int vi16_any_le(veci x, uint16_t y) { return mask_any(vi16_le(x, vi16_set(y))); }
INLINED veci vi16_select_within(veci x, uint16_t low, uint16_t reach, veci yes, veci no) {
    return vi_select(vi16_le(vi16_sub(x, vi16_set(low)), vi16_set(reach)), yes, no);
}
INLINED veci vi16_select_positive(veci x, veci yes, veci no) {
    return vi_select((veci){ vreinterpretq_u32_u16(vcgtzq_s16(vreinterpretq_s16_u32(x.low))),
                             vreinterpretq_u32_u16(vcgtzq_s16(vreinterpretq_s16_u32(x.high))) }, yes, no);
}
INLINED veci vi_keep_within(veci g, veci x, uint32_t low, uint32_t reach) {
    veci above = vi_sub(vi_and(x, vi_set(0x7fffffffu)), vi_set(low));
    return vi_and(g, vi_le(above, vi_set(reach)));
}

/* Tables are looked up byte by byte: element n is the bytes from 4 n on. */
INLINED uint8x16_t bytes_of_elements(uint32x4_t index) {
    return vreinterpretq_u8_u32(vmlaq_u32(vdupq_n_u32(0x03020100u), index, vdupq_n_u32(0x04040404u)));
}
INLINED vecf lookup_four(uint8x16x4_t table, veci index) {
    veci low_bits = vi_and(index, vi_set(15u));
    return (vecf){ vreinterpretq_f32_u8(vqtbl4q_u8(table, bytes_of_elements(low_bits.low))),
                   vreinterpretq_f32_u8(vqtbl4q_u8(table, bytes_of_elements(low_bits.high))) };
}
INLINED vecf vf_lookup_both(vecf low, veci index, vecf high) {
    return lookup_four((uint8x16x4_t){ {
        vreinterpretq_u8_f32(low.low), vreinterpretq_u8_f32(low.high),
        vreinterpretq_u8_f32(high.low), vreinterpretq_u8_f32(high.high),
    } }, index);
}
INLINED vecf vf_lookup16(const float *table, veci index) {
    return vf_lookup_both(vf_load(table), index, vf_load(table + 8));
}
INLINED vecf vf_lookup8(const float *table, veci index) {
    vecf whole = vf_load(table);
    uint8x16x2_t bytes = { { vreinterpretq_u8_f32(whole.low), vreinterpretq_u8_f32(whole.high) } };
    veci low_bits = vi_and(index, vi_set(7u));
    return (vecf){ vreinterpretq_f32_u8(vqtbl2q_u8(bytes, bytes_of_elements(low_bits.low))),
                   vreinterpretq_f32_u8(vqtbl2q_u8(bytes, bytes_of_elements(low_bits.high))) };
}

#undef NEON_UNARY
#undef NEON_BINARY
#undef NEON_HALVES

#endif
