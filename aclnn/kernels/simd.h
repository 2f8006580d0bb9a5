/* Operations on vectors of float32 (vecf), of 32-bit integers (veci) and of half as many bits (vech):
 * sixteen lanes with AVX-512, eight with AVX2 and with NEON (`simd/neon.h`). Compilers vectorise plain loops well, but do not look
 * tables up in registers, which is what makes exponentials cheap.
 *
 * A prefix tells the operand: vf_ float32, vi_ 32-bit integers, vi16_ 16-bit integers, vh_ half precision.
 * LANES is not defined where there are no such vectors; there are no fast paths then.
 */
#ifndef ACLNN_SIMD_H
#define ACLNN_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Loops over vectors hold no calls, however many loops there are. */
#define INLINED static inline __attribute__((always_inline))

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__)
#include <immintrin.h>
#define LANES 16
typedef __m512 vecf;
typedef __m512i veci;
typedef __mmask16 mask_t;

INLINED vecf vf_set(float x) { return _mm512_set1_ps(x); }
INLINED veci vi_set(uint32_t x) { return _mm512_set1_epi32((int)x); }
INLINED vecf vf_load(const void *p) { return _mm512_loadu_ps(p); }
INLINED void vf_store(void *p, vecf x) { _mm512_storeu_ps(p, x); }
INLINED veci vf_bits(vecf x) { return _mm512_castps_si512(x); }
INLINED vecf vi_as_floats(veci x) { return _mm512_castsi512_ps(x); }
INLINED vecf vf_add(vecf a, vecf b) { return _mm512_add_ps(a, b); }
INLINED vecf vf_sub(vecf a, vecf b) { return _mm512_sub_ps(a, b); }
INLINED vecf vf_mul(vecf a, vecf b) { return _mm512_mul_ps(a, b); }
INLINED vecf vf_fma(vecf a, vecf b, vecf c) { return _mm512_fmadd_ps(a, b, c); }
INLINED vecf vf_fms(vecf a, vecf b, vecf c) { return _mm512_fmsub_ps(a, b, c); }
INLINED vecf vf_fnma(vecf a, vecf b, vecf c) { return _mm512_fnmadd_ps(a, b, c); }
/* A NaN in `x` stays. */
INLINED vecf vf_at_most(vecf x, float bound) { return _mm512_min_ps(vf_set(bound), x); }
INLINED vecf vf_at_least(vecf x, float bound) { return _mm512_max_ps(vf_set(bound), x); }
/* max(0, x); x itself if it is a zero or a NaN. */
INLINED vecf vf_positive_part(vecf x) { return vf_at_least(x, 0.0f); }
INLINED vecf vf_abs(vecf x) { return _mm512_abs_ps(x); }
INLINED vecf vf_div(vecf a, vecf b) { return _mm512_div_ps(a, b); }
/* 1 / x, with a relative error of at most 2^-14. */
INLINED vecf vf_reciprocal_estimate(vecf x) { return _mm512_rcp14_ps(x); }
INLINED vecf vf_sqrt(vecf x) { return _mm512_sqrt_ps(x); }
/* 1 / sqrt(x), error 2^-14. */
INLINED vecf vf_rsqrt_estimate(vecf x) { return _mm512_rsqrt14_ps(x); }
INLINED vecf vf_min(vecf a, vecf b) { return _mm512_min_ps(a, b); }
INLINED veci vi_add(veci a, veci b) { return _mm512_add_epi32(a, b); }
INLINED veci vi_sub(veci a, veci b) { return _mm512_sub_epi32(a, b); }
INLINED veci vi_and(veci a, veci b) { return _mm512_and_si512(a, b); }
INLINED veci vi_xor(veci a, veci b) { return _mm512_xor_si512(a, b); }
INLINED veci vi_or(veci a, veci b) { return _mm512_or_si512(a, b); }
INLINED veci vi_count_from(uint32_t first) {
    return vi_add(vi_set(first), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
INLINED veci vi_shift_left(veci a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
INLINED veci vi_shift_right(veci a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
INLINED veci vi_shift_right_signed(veci a, int n) { return _mm512_srai_epi32(a, (unsigned)n); }
INLINED vecf vi_to_floats(veci a) { return _mm512_cvtepi32_ps(a); }
INLINED veci vi_min(veci a, veci b) { return _mm512_min_epu32(a, b); }
INLINED veci vi_max(veci a, veci b) { return _mm512_max_epu32(a, b); }
INLINED mask_t vf_is_positive(vecf x) {
    return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ);
}
INLINED mask_t vf_is_negative(vecf x) {
    return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
}
INLINED mask_t vi_le(veci x, veci y) { return _mm512_cmple_epu32_mask(x, y); }
INLINED mask_t vi_ge(veci x, veci y) { return _mm512_cmpge_epu32_mask(x, y); }
INLINED mask_t mask_and(mask_t a, mask_t b) { return (mask_t)(a & b); }
INLINED vecf vf_select(mask_t c, vecf yes, vecf no) {
    return _mm512_mask_mov_ps(no, c, yes);
}
/* a, or a + b, a - b, -a where `c`. */
INLINED vecf vf_add_where(mask_t c, vecf a, vecf b) {
    return _mm512_mask_add_ps(a, c, a, b);
}
INLINED vecf vf_sub_where(mask_t c, vecf a, vecf b) {
    return _mm512_mask_sub_ps(a, c, a, b);
}
INLINED vecf vf_negate_where(mask_t c, vecf a) {
    return _mm512_mask_sub_ps(a, c, vf_set(-0.0f), a);
}
/* 1 - a where `c`, a elsewhere. */
INLINED vecf vf_one_minus_where(mask_t c, vecf a) {
    return _mm512_mask_sub_ps(a, c, vf_set(1.0f), a);
}
INLINED mask_t vf_is_nonzero(vecf x) {
    return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
}
/* Where `some` is not set, x and s are zeros, and x gets the sign of s. */
INLINED vecf vf_zeros_signed_as(vecf x, vecf s, mask_t some) {
    return _mm512_mask_mov_ps(s, some, x);
}
/* An addend that leaves a zero its sign where `some` is not set and it is a zero itself. */
INLINED vecf vf_signed_addend(vecf x, mask_t some) {
    return _mm512_mask_mov_ps(vf_set(-0.0f), some, x);
}
enum { LESSER_MAGNITUDE = 0x0a }; /* for the instruction that picks one of a range's ends */
/* The lesser of `least`, bits without a sign, and the magnitude of x; NaNs do not count. */
INLINED veci vi_min_magnitude(veci least, vecf x) {
    return vf_bits(_mm512_range_ps(vi_as_floats(least), x, LESSER_MAGNITUDE));
}
/* The magnitude of x, up to a bound; the bound for a NaN. */
INLINED vecf vf_abs_at_most(vecf x, float bound) {
    return _mm512_range_ps(x, vf_set(bound), LESSER_MAGNITUDE);
}
/* The same, of x where `some`. */
INLINED veci vi_min_magnitude_where(veci least, vecf x, mask_t some) {
    return vf_bits(_mm512_mask_range_ps(vi_as_floats(least), some, vi_as_floats(least), x, LESSER_MAGNITUDE));
}
INLINED vecf vf_min_abs(vecf least, vecf x) {
    return _mm512_range_ps(least, x, LESSER_MAGNITUDE);
}
INLINED mask_t mask_or(mask_t a, mask_t b) { return (mask_t)(a | b); }
INLINED int mask_any(mask_t c) { return c != 0; }
INLINED unsigned mask_bits(mask_t c) { return c; } /* a bit for each lane */
/* x times 2 to the largest whole number up to n; below the least float, 0. */
INLINED vecf vf_scale_by_exp2(vecf x, vecf n) { return _mm512_scalef_ps(x, n); }
INLINED mask_t vf_between(vecf x, float low, float high) {
    mask_t above = _mm512_cmp_ps_mask(x, vf_set(low), _CMP_GE_OQ);
    return _mm512_mask_cmp_ps_mask(above, x, vf_set(high), _CMP_LE_OQ);
}
INLINED mask_t vf_ge(vecf x, float low) {
    return _mm512_cmp_ps_mask(x, vf_set(low), _CMP_GE_OQ);
}
/* The same, where y is a number. */
INLINED mask_t vf_ge_and_ordered(vecf x, float low, vecf y) {
    return _mm512_mask_cmp_ps_mask(vf_ge(x, low), y, y, _CMP_ORD_Q);
}
INLINED vecf vf_floor(vecf x) { return _mm512_floor_ps(x); }
INLINED mask_t vf_is_above(vecf a, vecf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
INLINED mask_t vf_is_at_most(vecf a, vecf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
INLINED mask_t vf_is_equal(vecf a, vecf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
INLINED mask_t vf_is_nan(vecf x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }
INLINED mask_t vf_is_not_positive(vecf x) {
    return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NGT_UQ);
}
/* a, or a * b where `c`. */
INLINED vecf vf_mul_where(mask_t c, vecf a, vecf b) {
    return _mm512_mask_mul_ps(a, c, a, b);
}
/* The same rounded to odd, so that a later rounding to half precision is correct. */
INLINED vecf vf_mul_to_odd_where(mask_t c, vecf a, vecf b) {
    vecf p = _mm512_mask_mul_round_ps(a, c, a, b, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    mask_t inexact = _mm512_mask_cmp_ps_mask(c, vf_fms(a, b, p), _mm512_setzero_ps(), _CMP_NEQ_UQ);
    return vi_as_floats(_mm512_mask_or_epi32(vf_bits(p), inexact, vf_bits(p), vi_set(1u)));
}

/* Half precision: as many elements as there are lanes. */
typedef __m256i vech;
INLINED vech vh_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINED void vh_store(void *p, vech h) { _mm256_storeu_si256((__m256i *)p, h); }
INLINED vecf vf_from_f16(vech h) { return _mm512_cvtph_ps(h); }
INLINED vech vf_to_f16(vecf x) { return _mm512_cvtps_ph(x, 0); }
/* A conversion on the way to memory takes half as many operations as one in a register. */
INLINED void vf_store_f16(void *p, vecf x) {
    __asm__("vcvtps2ph $0, %1, %0" : "=m"(*(__m256i_u *)p) : "v"(x));
}
INLINED vecf vf_from_bf16(vech h) {
    return vi_as_floats(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
INLINED vech vi_upper_halves(veci x) { return _mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16)); }
/* The upper half of each becomes the nearest one, with ties to even. */
INLINED veci vi_round_to_upper(veci x) {
    veci above = _mm512_add_epi32(x, vi_set(0x7fffu));
    mask_t odd = _mm512_test_epi32_mask(x, vi_set(0x10000u));
    return _mm512_mask_add_epi32(above, odd, above, vi_set(1u));
}
INLINED unsigned vh_differ(vech a, vech b) { return _mm256_cmpneq_epi16_mask(a, b); }
INLINED unsigned vi_misses(veci x, veci bits) { return _mm512_testn_epi32_mask(x, bits); }
INLINED void vf_stream(void *p, vecf x) { _mm512_stream_ps(p, x); }

/* Twice as many elements of half precision. */
INLINED veci vi_join(vech low, vech high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
INLINED vech vi_low_half(veci both) { return _mm512_castsi512_si256(both); }
INLINED vech vi_high_half(veci both) { return _mm512_extracti64x4_epi64(both, 1); }
/* The upper halves of two vectors, interleaved. */
INLINED veci vi_interleave_upper(veci even, veci odd) {
    return _mm512_mask_mov_epi16(vi_shift_right(even, 16), 0xaaaaaaaau, odd);
}
INLINED veci vi16_set(uint16_t x) { return _mm512_set1_epi16((short)x); }
INLINED veci vi16_add(veci a, veci b) { return _mm512_add_epi16(a, b); }
INLINED veci vi16_min(veci a, veci b) { return _mm512_min_epu16(a, b); }
INLINED veci vi16_max(veci a, veci b) { return _mm512_max_epu16(a, b); }
INLINED int vi16_any_ge(veci x, uint16_t y) {
    return _mm512_cmpge_epu16_mask(x, vi16_set(y)) != 0;
}
INLINED int vi16_any_le(veci x, uint16_t y) {
    return _mm512_cmple_epu16_mask(x, vi16_set(y)) != 0;
}
/* `yes` where x lies `reach` or less above `low`, `no` elsewhere. */
INLINED veci vi16_select_within(veci x, uint16_t low, uint16_t reach, veci yes, veci no) {
    __mmask32 c = _mm512_cmple_epu16_mask(_mm512_sub_epi16(x, vi16_set(low)), vi16_set(reach));
    return _mm512_mask_mov_epi16(no, c, yes);
}
/* `yes` where x, in half precision, is positive or a NaN without a sign, `no` elsewhere. */
INLINED veci vi16_select_positive(veci x, veci yes, veci no) {
    return _mm512_mask_mov_epi16(no, _mm512_cmpgt_epi16_mask(x, _mm512_setzero_si512()), yes);
}
/* Elements of `g` where the magnitude of `x` lies `reach` or less above `low`, 0 elsewhere. */
INLINED veci vi_keep_within(veci g, veci x, uint32_t low, uint32_t reach) {
    veci size = _mm512_and_si512(x, vi_set(0x7fffffffu));
    mask_t c = _mm512_cmple_epu32_mask(_mm512_sub_epi32(size, vi_set(low)), vi_set(reach));
    return _mm512_maskz_mov_epi32(c, g);
}
INLINED veci vi_load(const void *p) { return _mm512_loadu_si512(p); }
INLINED void vi_store(void *p, veci x) { _mm512_storeu_si512(p, x); }
/* Numbers of those of eight words of 64 bits that are not 0, from `first` on; how many they are. */
INLINED int list_nonzero_words(const void *words, int first, int *listed) {
    __m512i eight = _mm512_loadu_si512(words);
    __mmask8 some = _mm512_test_epi64_mask(eight, eight);
    __m256i numbers = _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    _mm256_storeu_si256((__m256i *)listed, _mm256_maskz_compress_epi32(some, numbers));
    return __builtin_popcount(some);
}
INLINED void vi_stream(void *p, veci x) { _mm512_stream_si512((__m512i *)p, x); }
/* The first n bytes of a vector from memory, the others of `filler`; and the first n to memory.
 * Nothing beyond them is accessed. */
INLINED veci vi_load_first(const void *p, ptrdiff_t n, char filler) {
    return _mm512_mask_loadu_epi8(_mm512_set1_epi8(filler), ((__mmask64)1 << n) - 1u, p);
}
INLINED void vi_store_first(void *p, ptrdiff_t n, veci x) {
    _mm512_mask_storeu_epi8(p, ((__mmask64)1 << n) - 1u, x);
}

/* The low three, four or five bits of `index` pick an element. */
INLINED vecf vf_lookup16(const float *table, veci index) {
    return _mm512_permutexvar_ps(index, _mm512_loadu_ps(table));
}
INLINED vecf vf_lookup32(const float *table, veci index) {
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16));
}

/* The same of two vectors that follow one another. */
INLINED vecf vf_lookup_both(vecf low, veci index, vecf high) {
    return _mm512_permutex2var_ps(low, index, high);
}

#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define LANES 8
typedef __m256 vecf;
typedef __m256i veci;
typedef __m256 mask_t;

INLINED vecf vf_set(float x) { return _mm256_set1_ps(x); }
INLINED veci vi_set(uint32_t x) { return _mm256_set1_epi32((int)x); }
INLINED vecf vf_load(const void *p) { return _mm256_loadu_ps(p); }
INLINED void vf_store(void *p, vecf x) { _mm256_storeu_ps(p, x); }
INLINED veci vf_bits(vecf x) { return _mm256_castps_si256(x); }
INLINED vecf vi_as_floats(veci x) { return _mm256_castsi256_ps(x); }
INLINED vecf vf_add(vecf a, vecf b) { return _mm256_add_ps(a, b); }
INLINED vecf vf_sub(vecf a, vecf b) { return _mm256_sub_ps(a, b); }
INLINED vecf vf_mul(vecf a, vecf b) { return _mm256_mul_ps(a, b); }
INLINED vecf vf_fma(vecf a, vecf b, vecf c) { return _mm256_fmadd_ps(a, b, c); }
INLINED vecf vf_fms(vecf a, vecf b, vecf c) { return _mm256_fmsub_ps(a, b, c); }
INLINED vecf vf_fnma(vecf a, vecf b, vecf c) { return _mm256_fnmadd_ps(a, b, c); }
INLINED vecf vf_div(vecf a, vecf b) { return _mm256_div_ps(a, b); }
INLINED vecf vf_reciprocal_estimate(vecf x) { return vf_div(vf_set(1.0f), x); }
INLINED vecf vf_sqrt(vecf x) { return _mm256_sqrt_ps(x); }
/* Error 1.5 * 2^-12. */
INLINED vecf vf_rsqrt_estimate(vecf x) { return _mm256_rsqrt_ps(x); }
INLINED vecf vf_min(vecf a, vecf b) { return _mm256_min_ps(a, b); }
INLINED vecf vf_at_most(vecf x, float bound) { return _mm256_min_ps(vf_set(bound), x); }
INLINED vecf vf_at_least(vecf x, float bound) { return _mm256_max_ps(vf_set(bound), x); }
INLINED vecf vf_positive_part(vecf x) { return vf_at_least(x, 0.0f); }
INLINED vecf vf_abs(vecf x) { return _mm256_andnot_ps(vf_set(-0.0f), x); }
INLINED veci vi_add(veci a, veci b) { return _mm256_add_epi32(a, b); }
INLINED veci vi_sub(veci a, veci b) { return _mm256_sub_epi32(a, b); }
INLINED veci vi_and(veci a, veci b) { return _mm256_and_si256(a, b); }
INLINED veci vi_xor(veci a, veci b) { return _mm256_xor_si256(a, b); }
INLINED veci vi_or(veci a, veci b) { return _mm256_or_si256(a, b); }
INLINED veci vi_count_from(uint32_t first) {
    return vi_add(vi_set(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINED veci vi_shift_left(veci a, int n) { return _mm256_slli_epi32(a, n); }
INLINED veci vi_shift_right(veci a, int n) { return _mm256_srli_epi32(a, n); }
INLINED veci vi_shift_right_signed(veci a, int n) { return _mm256_srai_epi32(a, n); }
INLINED vecf vi_to_floats(veci a) { return _mm256_cvtepi32_ps(a); }
INLINED veci vi_min(veci a, veci b) { return _mm256_min_epu32(a, b); }
INLINED veci vi_max(veci a, veci b) { return _mm256_max_epu32(a, b); }
INLINED mask_t vf_is_positive(vecf x) {
    return _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GT_OQ);
}
INLINED mask_t vf_is_negative(vecf x) {
    return _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);
}
INLINED mask_t vi_le(veci x, veci y) {
    return vi_as_floats(_mm256_cmpeq_epi32(_mm256_min_epu32(x, y), x));
}
INLINED mask_t vi_ge(veci x, veci y) { return vi_le(y, x); }
INLINED mask_t mask_and(mask_t a, mask_t b) { return _mm256_and_ps(a, b); }
INLINED vecf vf_select(mask_t c, vecf yes, vecf no) {
    return _mm256_blendv_ps(no, yes, c);
}
INLINED vecf vf_add_where(mask_t c, vecf a, vecf b) {
    return _mm256_add_ps(a, _mm256_and_ps(c, b));
}
INLINED vecf vf_sub_where(mask_t c, vecf a, vecf b) {
    return _mm256_sub_ps(a, _mm256_and_ps(c, b));
}
INLINED vecf vf_negate_where(mask_t c, vecf a) {
    return _mm256_xor_ps(a, _mm256_and_ps(c, vf_set(-0.0f)));
}
INLINED vecf vf_one_minus_where(mask_t c, vecf a) {
    return vf_add_where(c, vf_negate_where(c, a), vf_set(1.0f));
}
INLINED vecf vf_zeros_signed_as(vecf x, vecf s, mask_t some) {
    return _mm256_or_ps(x, _mm256_and_ps(s, vf_set(-0.0f)));
}
INLINED vecf vf_signed_addend(vecf x, mask_t some) {
    return _mm256_or_ps(x, _mm256_andnot_ps(some, vf_set(-0.0f)));
}
INLINED veci vi_min_magnitude(veci least, vecf x) {
    return vi_min(least, vf_bits(vf_abs(x)));
}
/* Magnitudes are 1 less here, and 0 the largest. */
INLINED veci vi_min_magnitude_where(veci least, vecf x, mask_t some) {
    return vi_min(least, vi_add(vf_bits(vf_abs(x)), vi_set(0xffffffffu)));
}
INLINED vecf vf_min_abs(vecf least, vecf x) {
    return _mm256_min_ps(vf_abs(x), least);
}
INLINED mask_t vf_is_nonzero(vecf x) {
    return _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NEQ_UQ);
}
INLINED mask_t mask_or(mask_t a, mask_t b) { return _mm256_or_ps(a, b); }
INLINED unsigned mask_bits(mask_t c) { return (unsigned)_mm256_movemask_ps(c); }
INLINED int mask_any(mask_t c) { return mask_bits(c) != 0; }
INLINED mask_t vf_between(vecf x, float low, float high) {
    mask_t above = _mm256_cmp_ps(x, vf_set(low), _CMP_GE_OQ);
    return _mm256_and_ps(above, _mm256_cmp_ps(x, vf_set(high), _CMP_LE_OQ));
}
INLINED mask_t vf_ge(vecf x, float low) {
    return _mm256_cmp_ps(x, vf_set(low), _CMP_GE_OQ);
}
INLINED mask_t vf_ge_and_ordered(vecf x, float low, vecf y) {
    return _mm256_and_ps(vf_ge(x, low), _mm256_cmp_ps(y, y, _CMP_ORD_Q));
}
INLINED vecf vf_floor(vecf x) { return _mm256_floor_ps(x); }
INLINED mask_t vf_is_above(vecf a, vecf b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
INLINED mask_t vf_is_at_most(vecf a, vecf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
INLINED mask_t vf_is_equal(vecf a, vecf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
INLINED mask_t vf_is_nan(vecf x) { return _mm256_cmp_ps(x, x, _CMP_UNORD_Q); }
INLINED mask_t vf_is_not_positive(vecf x) {
    return _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NGT_UQ);
}
INLINED vecf vf_mul_where(mask_t c, vecf a, vecf b) {
    return _mm256_blendv_ps(a, vf_mul(a, b), c);
}
INLINED vecf vf_mul_to_odd_where(mask_t c, vecf a, vecf b) {
    vecf p = vf_mul(a, b), error = vf_fms(a, b, p);
    __m256i exact = vf_bits(_mm256_cmp_ps(error, _mm256_setzero_ps(), _CMP_EQ_OQ));
    /* -1 where p was rounded away from 0. */
    __m256i outward = _mm256_srai_epi32(vf_bits(_mm256_xor_ps(error, p)), 31);
    __m256i odd = _mm256_or_si256(_mm256_add_epi32(vf_bits(p), outward), vi_set(1u));
    return _mm256_blendv_ps(a, _mm256_blendv_ps(vi_as_floats(odd), p, vi_as_floats(exact)), c);
}

typedef __m128i vech;
INLINED vech vh_load(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
INLINED void vh_store(void *p, vech h) { _mm_storeu_si128((__m128i *)p, h); }
INLINED vecf vf_from_f16(vech h) { return _mm256_cvtph_ps(h); }
INLINED vech vf_to_f16(vecf x) { return _mm256_cvtps_ph(x, 0); }
INLINED void vf_store_f16(void *p, vecf x) {
    __asm__("vcvtps2ph $0, %1, %0" : "=m"(*(__m128i_u *)p) : "x"(x));
}
INLINED vecf vf_from_bf16(vech h) {
    return vi_as_floats(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
INLINED vech vi_upper_halves(veci x) {
    __m256i high = _mm256_srli_epi32(x, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}
INLINED veci vi_round_to_upper(veci x) {
    veci even = _mm256_and_si256(_mm256_srli_epi32(x, 16), vi_set(1u));
    return vi_add(x, vi_add(even, vi_set(0x7fffu)));
}
INLINED unsigned vh_differ(vech a, vech b) {
    __m128i same = _mm_cmpeq_epi16(a, b);
    return 0xffu & ~(unsigned)_mm_movemask_epi8(_mm_packs_epi16(same, same));
}
INLINED unsigned vi_misses(veci x, veci bits) {
    __m256i miss = _mm256_cmpeq_epi32(_mm256_and_si256(x, bits), _mm256_setzero_si256());
    return (unsigned)_mm256_movemask_ps(vi_as_floats(miss));
}
INLINED void vf_stream(void *p, vecf x) { _mm256_stream_ps(p, x); }

INLINED veci vi_join(vech low, vech high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
INLINED vech vi_low_half(veci both) { return _mm256_castsi256_si128(both); }
INLINED vech vi_high_half(veci both) { return _mm256_extracti128_si256(both, 1); }
INLINED veci vi_interleave_upper(veci even, veci odd) {
    return _mm256_blend_epi16(vi_shift_right(even, 16), odd, 0xaa);
}
INLINED veci vi16_set(uint16_t x) { return _mm256_set1_epi16((short)x); }
INLINED veci vi16_add(veci a, veci b) { return _mm256_add_epi16(a, b); }
INLINED veci vi16_min(veci a, veci b) { return _mm256_min_epu16(a, b); }
INLINED veci vi16_max(veci a, veci b) { return _mm256_max_epu16(a, b); }
INLINED int vi16_any_ge(veci x, uint16_t y) {
    return _mm256_movemask_epi8(_mm256_cmpeq_epi16(vi16_max(x, vi16_set(y)), x)) != 0;
}
INLINED int vi16_any_le(veci x, uint16_t y) {
    return _mm256_movemask_epi8(_mm256_cmpeq_epi16(vi16_min(x, vi16_set(y)), x)) != 0;
}
INLINED veci vi16_select_within(veci x, uint16_t low, uint16_t reach, veci yes, veci no) {
    __m256i above = _mm256_sub_epi16(x, vi16_set(low));
    __m256i c = _mm256_cmpeq_epi16(vi16_min(above, vi16_set(reach)), above);
    return _mm256_or_si256(_mm256_and_si256(c, yes), _mm256_andnot_si256(c, no));
}
INLINED veci vi16_select_positive(veci x, veci yes, veci no) {
    __m256i c = _mm256_cmpgt_epi16(x, _mm256_setzero_si256());
    return _mm256_or_si256(_mm256_and_si256(c, yes), _mm256_andnot_si256(c, no));
}
INLINED veci vi_keep_within(veci g, veci x, uint32_t low, uint32_t reach) {
    __m256i above = _mm256_sub_epi32(_mm256_and_si256(x, vi_set(0x7fffffffu)), vi_set(low));
    return _mm256_and_si256(g, _mm256_cmpeq_epi32(_mm256_min_epu32(above, vi_set(reach)), above));
}
INLINED veci vi_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINED void vi_store(void *p, veci x) { _mm256_storeu_si256((__m256i *)p, x); }
INLINED void vi_stream(void *p, veci x) { _mm256_stream_si256((__m256i *)p, x); }
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

INLINED vecf vf_lookup8(const float *table, veci index) {
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), index);
}
INLINED vecf vf_lookup16(const float *table, veci index) {
    vecf upper = vi_as_floats(vi_shift_left(index, 28)); /* whose sign is the fourth bit */
    return vf_select(upper, vf_lookup8(table + 8, index), vf_lookup8(table, index));
}
INLINED vecf vf_lookup_both(vecf low, veci index, vecf high) {
    vecf upper = vi_as_floats(vi_shift_left(index, 28));
    vecf from_low = _mm256_permutevar8x32_ps(low, index);
    return vf_select(upper, _mm256_permutevar8x32_ps(high, index), from_low);
}

#elif defined(ACLNN_NEON) /* all AArch64 CPUs have it: the generic kernels do without */
#include "simd/neon.h"
#endif

#ifdef LANES
/* The one NaN for all. */
INLINED vecf vf_canonical(vecf r) { return vf_select(vf_is_nan(r), vf_set(__builtin_nanf("")), r); }
INLINED vecf vf_truth(mask_t c) { return vf_select(c, vf_set(1.0f), vf_set(0.0f)); }
INLINED vecf vf_untruth(mask_t c) { return vf_select(c, vf_set(0.0f), vf_set(1.0f)); }
/* Whether all magnitudes are 0 or at least that, and none is a NaN. */
INLINED int vf_both_zero_or_at_least(vecf x, vecf y, float least) {
    const unsigned all = (1u << LANES) - 1;
    const vecf zero = vf_set(0.0f);
    vecf size_x = vf_abs(x), size_y = vf_abs(y);
    mask_t x_is = vf_ge(size_x, least), y_is = vf_ge(size_y, least);
    if (mask_bits(mask_and(x_is, y_is)) == all) return 1;
    x_is = mask_or(x_is, vf_is_at_most(size_x, zero));
    y_is = mask_or(y_is, vf_is_at_most(size_y, zero));
    return mask_bits(mask_and(x_is, y_is)) == all;
}
/* The same through memory: half as many operations as in a register. */
INLINED vech vf_to_f16_by_memory(vecf x) {
    uint16_t halves[LANES] __attribute__((aligned(LANES * 2)));
    vf_store_f16(halves, x);
    return vh_load(halves);
}
#endif

#if !defined(LANES) || LANES != 16
/* What sixteen lanes have an operation for. */
static inline int list_nonzero_words(const void *words, int first, int *listed) {
    int count = 0;
    for (int k = 0; k < 8; k++) {
        uint64_t word;
        memcpy(&word, (const char *)words + 8 * k, 8);
        listed[count] = first + k;
        count += word != 0;
    }
    return count;
}
#endif

#endif
