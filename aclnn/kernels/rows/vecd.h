/* Eight doubles, whatever registers they take: what row-wise kernels compute with.
 *
 * An operation gives the same bits on every instruction set that has FMA.  In a `vecd` lie eight columns of
 * one row, or one column of eight rows.
 */
#ifndef ACLNN_VECD_H
#define ACLNN_VECD_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "../half.h"

/* What is made small calls these functions: its rows took 2.2 times as many bytes with all of them inlined. */
#ifdef __OPTIMIZE_SIZE__
#define VECD_INLINE static inline
#else
#define VECD_INLINE static inline __attribute__((always_inline))
#endif

enum { VECD = 8 };

/* Doubles that stand for less precise elements, and are computed with as these would be. */
typedef struct { double v; } wide_single_t;
typedef struct { double v; } wide_half_t;

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>

#define VECD_FLOATS
typedef __m512d vecd;

VECD_INLINE vecd v_set(double x) { return _mm512_set1_pd(x); }
VECD_INLINE vecd v_load(const double *p) { return _mm512_loadu_pd(p); }
VECD_INLINE void v_store(double *p, vecd a) { _mm512_storeu_pd(p, a); }
VECD_INLINE vecd v_add(vecd a, vecd b) { return _mm512_add_pd(a, b); }
VECD_INLINE vecd v_sub(vecd a, vecd b) { return _mm512_sub_pd(a, b); }
VECD_INLINE vecd v_mul(vecd a, vecd b) { return _mm512_mul_pd(a, b); }
VECD_INLINE vecd v_div(vecd a, vecd b) { return _mm512_div_pd(a, b); }
VECD_INLINE vecd v_sqrt(vecd a) { return _mm512_sqrt_pd(a); }
VECD_INLINE vecd v_fma(vecd a, vecd b, vecd c) { return _mm512_fmadd_pd(a, b, c); }
/* The larger one; `b` where either is a NaN. */
VECD_INLINE vecd v_max(vecd a, vecd b) { return _mm512_max_pd(a, b); }
VECD_INLINE vecd v_min(vecd a, vecd b) { return _mm512_min_pd(a, b); }
/* a where x < y, else b. */
VECD_INLINE vecd v_where_less(vecd x, vecd y, vecd a, vecd b) {
    return _mm512_mask_mov_pd(b, _mm512_cmp_pd_mask(x, y, _CMP_LT_OQ), a);
}
/* 0 where x and y are equal, else a. */
VECD_INLINE vecd v_zero_where_equal(vecd x, vecd y, vecd a) {
    return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(x, y, _CMP_NEQ_UQ), a);
}
/* a where x is a number, else b. */
VECD_INLINE vecd v_where_number(vecd x, vecd a, vecd b) {
    return _mm512_mask_mov_pd(b, _mm512_cmp_pd_mask(x, x, _CMP_ORD_Q), a);
}
/* The bits of `a` from bit 52 on, moved there from bit 0 on. */
VECD_INLINE vecd v_as_exponent(vecd a) {
    return _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_castpd_si512(a), 52));
}
VECD_INLINE vecd v_add_bits(vecd a, vecd b) {
    return _mm512_castsi512_pd(
        _mm512_add_epi64(_mm512_castpd_si512(a), _mm512_castpd_si512(b)));
}
/* Lane i has that of i ^ 4, i ^ 2 or i ^ 1. */
VECD_INLINE vecd v_swap_fours(vecd a) { return _mm512_shuffle_f64x2(a, a, 0x4e); }
VECD_INLINE vecd v_swap_twos(vecd a) { return _mm512_permutex_pd(a, 0x4e); }
VECD_INLINE vecd v_swap_ones(vecd a) { return _mm512_permute_pd(a, 0x55); }
VECD_INLINE vecd v_spread_first(vecd a) { return _mm512_broadcastsd_pd(_mm512_castpd512_pd128(a)); }
/* Lane j of register i becomes lane i of register j. */
VECD_INLINE void v_transpose(vecd *r) {
    vecd pairs[8], fours[8];
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm512_unpacklo_pd(r[i], r[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_pd(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            fours[i + j] = _mm512_shuffle_f64x2(pairs[i + j], pairs[i + j + 2], 0x88);
            fours[i + j + 2] = _mm512_shuffle_f64x2(pairs[i + j], pairs[i + j + 2], 0xdd);
        }
    for (int j = 0; j < 4; j++) {
        r[j] = _mm512_shuffle_f64x2(fours[j], fours[j + 4], 0x88);
        r[j + 4] = _mm512_shuffle_f64x2(fours[j], fours[j + 4], 0xdd);
    }
}
/* Whether x <= y in every lane. */
VECD_INLINE int v_all_at_most(vecd x, vecd y) {
    return _mm512_cmp_pd_mask(x, y, _CMP_LE_OQ) == 0xff;
}
/* a * b - p for p = the rounded product: exact. */
VECD_INLINE vecd v_product_error(vecd a, vecd b, vecd p) { return _mm512_fmsub_pd(a, b, p); }
VECD_INLINE vecd v_abs(vecd a) { return _mm512_abs_pd(a); }
VECD_INLINE vecd v_of_floats(__m256 x) { return _mm512_cvtps_pd(x); }
/* One NaN for all: bits must not depend on where an element lies. */
VECD_INLINE __m256 v_canonical_floats(__m256 a) {
    return _mm256_mask_mov_ps(a, _mm256_cmp_ps_mask(a, a, _CMP_UNORD_Q), _mm256_set1_ps(NAN));
}
VECD_INLINE void v_store_f32(float *p, vecd a) {
    _mm256_storeu_ps(p, v_canonical_floats(_mm512_cvtpd_ps(a)));
}
/* Rounded to odd, so that rounding once more is as if it were done once. */
VECD_INLINE __m256 v_odd_floats(__m256 near, __mmask8 inexact) {
    __m256i bits = _mm256_castps_si256(near);
    return v_canonical_floats(_mm256_castsi256_ps(
        _mm256_mask_or_epi32(bits, inexact, bits, _mm256_set1_epi32(1))));
}
/* What a float has no room for is what is inexact; below its normal numbers halves are zero. */
VECD_INLINE void v_store_half(half_t *p, vecd a) {
    __m256 near = _mm512_cvt_roundpd_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __mmask8 inexact = _mm512_test_epi64_mask(_mm512_castpd_si512(a), _mm512_set1_epi64(0x1fffffff));
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v_odd_floats(near, inexact), 0));
}
VECD_INLINE void v_store_bfloat16(bfloat16_t *p, vecd a) {
    __m256 near = _mm512_cvt_roundpd_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __mmask8 inexact = _mm512_cmp_pd_mask(_mm512_cvtps_pd(near), a, _CMP_NEQ_OQ);
    __m256i b = _mm256_castps_si256(v_odd_floats(near, inexact));
    __m256i last = _mm256_and_si256(_mm256_srli_epi32(b, 16), _mm256_set1_epi32(1));
    b = _mm256_add_epi32(b, _mm256_add_epi32(last, _mm256_set1_epi32(0x7fff)));
    _mm_storeu_si128((__m128i *)p, _mm256_cvtepi32_epi16(_mm256_srli_epi32(b, 16)));
}
#define VECD_STORES

#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>

#define VECD_FLOATS
typedef struct { __m256d low, high; } vecd;

#define VECD_UNARY(name, intrinsic) \
    VECD_INLINE vecd name(vecd a) { vecd r = { intrinsic(a.low), intrinsic(a.high) }; return r; }
#define VECD_BINARY(name, intrinsic) \
    VECD_INLINE vecd name(vecd a, vecd b) { \
        vecd r = { intrinsic(a.low, b.low), intrinsic(a.high, b.high) }; \
        return r; \
    }
VECD_BINARY(v_add, _mm256_add_pd)
VECD_BINARY(v_sub, _mm256_sub_pd)
VECD_BINARY(v_mul, _mm256_mul_pd)
VECD_BINARY(v_div, _mm256_div_pd)
VECD_BINARY(v_max, _mm256_max_pd)
VECD_BINARY(v_min, _mm256_min_pd)
VECD_UNARY(v_sqrt, _mm256_sqrt_pd)

VECD_INLINE vecd v_set(double x) {
    vecd r = { _mm256_set1_pd(x), _mm256_set1_pd(x) };
    return r;
}
VECD_INLINE vecd v_load(const double *p) {
    vecd r = { _mm256_loadu_pd(p), _mm256_loadu_pd(p + 4) };
    return r;
}
VECD_INLINE void v_store(double *p, vecd a) {
    _mm256_storeu_pd(p, a.low);
    _mm256_storeu_pd(p + 4, a.high);
}
VECD_INLINE vecd v_fma(vecd a, vecd b, vecd c) {
    vecd r = { _mm256_fmadd_pd(a.low, b.low, c.low), _mm256_fmadd_pd(a.high, b.high, c.high) };
    return r;
}
VECD_INLINE vecd v_where_less(vecd x, vecd y, vecd a, vecd b) {
    vecd r = {
        _mm256_blendv_pd(b.low, a.low, _mm256_cmp_pd(x.low, y.low, _CMP_LT_OQ)),
        _mm256_blendv_pd(b.high, a.high, _mm256_cmp_pd(x.high, y.high, _CMP_LT_OQ)),
    };
    return r;
}
VECD_INLINE vecd v_zero_where_equal(vecd x, vecd y, vecd a) {
    vecd r = {
        _mm256_and_pd(_mm256_cmp_pd(x.low, y.low, _CMP_NEQ_UQ), a.low),
        _mm256_and_pd(_mm256_cmp_pd(x.high, y.high, _CMP_NEQ_UQ), a.high),
    };
    return r;
}
VECD_INLINE vecd v_where_number(vecd x, vecd a, vecd b) {
    vecd r = {
        _mm256_blendv_pd(b.low, a.low, _mm256_cmp_pd(x.low, x.low, _CMP_ORD_Q)),
        _mm256_blendv_pd(b.high, a.high, _mm256_cmp_pd(x.high, x.high, _CMP_ORD_Q)),
    };
    return r;
}
VECD_INLINE __m256d four_as_exponent(__m256d a) {
    return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(a), 52));
}
VECD_UNARY(v_as_exponent, four_as_exponent)
VECD_INLINE __m256d four_add_bits(__m256d a, __m256d b) {
    return _mm256_castsi256_pd(
        _mm256_add_epi64(_mm256_castpd_si256(a), _mm256_castpd_si256(b)));
}
VECD_BINARY(v_add_bits, four_add_bits)
VECD_INLINE vecd v_swap_fours(vecd a) {
    vecd r = { a.high, a.low };
    return r;
}
VECD_INLINE __m256d four_swap_twos(__m256d a) { return _mm256_permute2f128_pd(a, a, 1); }
VECD_UNARY(v_swap_twos, four_swap_twos)
VECD_INLINE __m256d four_swap_ones(__m256d a) { return _mm256_permute_pd(a, 5); }
VECD_UNARY(v_swap_ones, four_swap_ones)
VECD_INLINE vecd v_spread_first(vecd a) {
    __m256d first = _mm256_broadcastsd_pd(_mm256_castpd256_pd128(a.low));
    vecd r = { first, first };
    return r;
}
VECD_INLINE void four_transpose(__m256d *a, __m256d *b, __m256d *c, __m256d *d) {
    __m256d ab = _mm256_unpacklo_pd(*a, *b), above = _mm256_unpackhi_pd(*a, *b);
    __m256d cd = _mm256_unpacklo_pd(*c, *d), beyond = _mm256_unpackhi_pd(*c, *d);
    *a = _mm256_permute2f128_pd(ab, cd, 0x20);
    *b = _mm256_permute2f128_pd(above, beyond, 0x20);
    *c = _mm256_permute2f128_pd(ab, cd, 0x31);
    *d = _mm256_permute2f128_pd(above, beyond, 0x31);
}
/* Lane j of register i becomes lane i of register j. */
VECD_INLINE void v_transpose(vecd *r) {
    four_transpose(&r[0].low, &r[1].low, &r[2].low, &r[3].low);
    four_transpose(&r[0].high, &r[1].high, &r[2].high, &r[3].high);
    four_transpose(&r[4].low, &r[5].low, &r[6].low, &r[7].low);
    four_transpose(&r[4].high, &r[5].high, &r[6].high, &r[7].high);
    for (int i = 0; i < 4; i++) {
        __m256d other = r[i].high;
        r[i].high = r[i + 4].low;
        r[i + 4].low = other;
    }
}
VECD_INLINE int v_all_at_most(vecd x, vecd y) {
    return (_mm256_movemask_pd(_mm256_cmp_pd(x.low, y.low, _CMP_LE_OQ))
            & _mm256_movemask_pd(_mm256_cmp_pd(x.high, y.high, _CMP_LE_OQ))) == 0xf;
}
VECD_INLINE vecd v_product_error(vecd a, vecd b, vecd p) {
    vecd r = { _mm256_fmsub_pd(a.low, b.low, p.low), _mm256_fmsub_pd(a.high, b.high, p.high) };
    return r;
}
VECD_INLINE __m256d four_abs(__m256d a) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a); }
VECD_UNARY(v_abs, four_abs)
VECD_INLINE vecd v_of_floats(__m256 x) {
    vecd r = {
        _mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)),
    };
    return r;
}
/* The low half of each of four masks. */
VECD_INLINE __m128i four_masks(__m256d mask) {
    __m256 wide = _mm256_castpd_ps(mask);
    return _mm_castps_si128(_mm_shuffle_ps(
        _mm256_castps256_ps128(wide), _mm256_extractf128_ps(wide, 1), 0x88));
}
/* Rounded to odd, so that rounding once more is as if it were done once: an even neighbour that is
 * inexact becomes the odd one on the other side of the number. */
VECD_INLINE __m128 four_odd_floats(__m256d a) {
    __m128 near = _mm256_cvtpd_ps(a);
    __m256d back = _mm256_cvtps_pd(near);
    __m128i bits = _mm_castps_si128(near);
    __m128i inexact = four_masks(_mm256_cmp_pd(back, a, _CMP_NEQ_OQ));
    __m128i inward = four_masks(_mm256_xor_pd(
        _mm256_cmp_pd(back, a, _CMP_LT_OQ), _mm256_cmp_pd(a, _mm256_setzero_pd(), _CMP_GT_OQ)));
    __m128i step = _mm_or_si128(inward, _mm_set1_epi32(1)); /* -1 inward, 1 outward */
    __m128i odd = _mm_cmpeq_epi32(_mm_and_si128(bits, _mm_set1_epi32(1)), _mm_set1_epi32(1));
    step = _mm_andnot_si128(odd, _mm_and_si128(step, inexact));
    return _mm_castsi128_ps(_mm_add_epi32(bits, step));
}
VECD_INLINE __m128i four_bfloats(__m128 odd) {
    __m128i b = _mm_castps_si128(odd);
    __m128i last = _mm_and_si128(_mm_srli_epi32(b, 16), _mm_set1_epi32(1));
    return _mm_srli_epi32(_mm_add_epi32(b, _mm_add_epi32(last, _mm_set1_epi32(0x7fff))), 16);
}
VECD_INLINE __m256d four_canonical(__m256d a) {
    return _mm256_blendv_pd(a, _mm256_set1_pd(NAN), _mm256_cmp_pd(a, a, _CMP_UNORD_Q));
}
/* By way of floats that are rounded to odd: always right. */
static __attribute__((noinline)) void v_store_hard_half(half_t *p, vecd a) {
    __m128 low = four_odd_floats(four_canonical(a.low)), high = four_odd_floats(four_canonical(a.high));
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(_mm256_set_m128(high, low), 0));
}
static __attribute__((noinline)) void v_store_hard_bfloat16(bfloat16_t *p, vecd a) {
    __m128i low = four_bfloats(four_odd_floats(four_canonical(a.low)));
    __m128i high = four_bfloats(four_odd_floats(four_canonical(a.high)));
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi32(low, high));
}
/* Whether a float, rounded from a double, is a NaN or ends in `middle`, as those between two halves do: then
 * rounding once more may be wrong. Subnormal halves have middles that end in zeros. */
VECD_INLINE int is_hard(__m256 near, int end, int middle) {
    __m256i ends = _mm256_and_si256(_mm256_castps_si256(near), _mm256_set1_epi32(end));
    __m256 hard = _mm256_castsi256_ps(_mm256_cmpeq_epi32(ends, _mm256_set1_epi32(middle)));
    return _mm256_movemask_ps(_mm256_or_ps(hard, _mm256_cmp_ps(near, near, _CMP_UNORD_Q)));
}
#define VECD_HARD_STORES

#else

typedef struct { double v[VECD]; } vecd;

#define VECD_EACH(expression) \
    vecd r; \
    for (int k = 0; k < VECD; k++) r.v[k] = (expression); \
    return r;
VECD_INLINE vecd v_set(double x) { VECD_EACH(x) }
VECD_INLINE vecd v_load(const double *p) { VECD_EACH(p[k]) }
VECD_INLINE void v_store(double *p, vecd a) { memcpy(p, a.v, sizeof a.v); }
VECD_INLINE vecd v_add(vecd a, vecd b) { VECD_EACH(a.v[k] + b.v[k]) }
VECD_INLINE vecd v_sub(vecd a, vecd b) { VECD_EACH(a.v[k] - b.v[k]) }
VECD_INLINE vecd v_mul(vecd a, vecd b) { VECD_EACH(a.v[k] * b.v[k]) }
VECD_INLINE vecd v_div(vecd a, vecd b) { VECD_EACH(a.v[k] / b.v[k]) }
VECD_INLINE vecd v_sqrt(vecd a) { VECD_EACH(sqrt(a.v[k])) }
VECD_INLINE vecd v_fma(vecd a, vecd b, vecd c) { VECD_EACH(fma_f64(a.v[k], b.v[k], c.v[k])) }
VECD_INLINE vecd v_max(vecd a, vecd b) { VECD_EACH(a.v[k] > b.v[k] ? a.v[k] : b.v[k]) }
VECD_INLINE vecd v_min(vecd a, vecd b) { VECD_EACH(a.v[k] < b.v[k] ? a.v[k] : b.v[k]) }
VECD_INLINE vecd v_where_less(vecd x, vecd y, vecd a, vecd b) {
    VECD_EACH(x.v[k] < y.v[k] ? a.v[k] : b.v[k])
}
VECD_INLINE vecd v_zero_where_equal(vecd x, vecd y, vecd a) {
    VECD_EACH(x.v[k] == y.v[k] ? 0.0 : a.v[k])
}
VECD_INLINE vecd v_where_number(vecd x, vecd a, vecd b) {
    VECD_EACH(x.v[k] == x.v[k] ? a.v[k] : b.v[k])
}
VECD_INLINE vecd v_as_exponent(vecd a) { VECD_EACH(f64_of_bits(bits_of_f64(a.v[k]) << 52)) }
VECD_INLINE vecd v_add_bits(vecd a, vecd b) {
    VECD_EACH(f64_of_bits(bits_of_f64(a.v[k]) + bits_of_f64(b.v[k])))
}
VECD_INLINE vecd v_swap_fours(vecd a) { VECD_EACH(a.v[k ^ 4]) }
VECD_INLINE vecd v_swap_twos(vecd a) { VECD_EACH(a.v[k ^ 2]) }
VECD_INLINE vecd v_swap_ones(vecd a) { VECD_EACH(a.v[k ^ 1]) }
VECD_INLINE vecd v_spread_first(vecd a) { VECD_EACH(a.v[0]) }
VECD_INLINE vecd v_product_error(vecd a, vecd b, vecd p) {
    VECD_EACH(product_error(a.v[k], b.v[k], p.v[k]))
}
VECD_INLINE void v_transpose(vecd *r) {
    for (int i = 0; i < VECD; i++)
        for (int j = 0; j < i; j++) {
            double other = r[i].v[j];
            r[i].v[j] = r[j].v[i];
            r[j].v[i] = other;
        }
}
VECD_INLINE int v_all_at_most(vecd x, vecd y) {
    int all = 1;
    for (int k = 0; k < VECD; k++) all &= x.v[k] <= y.v[k];
    return all;
}
VECD_INLINE vecd v_abs(vecd a) { VECD_EACH(fabs(a.v[k])) }
typedef struct { float v[VECD]; } vecs;
VECD_INLINE vecs s_set(float x) {
    vecs r;
    for (int k = 0; k < VECD; k++) r.v[k] = x;
    return r;
}
VECD_INLINE vecs s_load_f32(const float *p) {
    vecs r;
    for (int k = 0; k < VECD; k++) r.v[k] = p[k];
    return r;
}
VECD_INLINE vecs s_load_half(const half_t *p) {
    vecs r;
    for (int k = 0; k < VECD; k++) r.v[k] = half_to_f32(p[k]);
    return r;
}
VECD_INLINE vecs s_load_bfloat16(const bfloat16_t *p) {
    vecs r;
    for (int k = 0; k < VECD; k++) r.v[k] = bfloat16_to_f32(p[k]);
    return r;
}
#define VECS_EACH(expression) \
    vecs r; \
    for (int k = 0; k < VECD; k++) r.v[k] = (expression); \
    return r;
VECD_INLINE vecs s_max(vecs a, vecs b) { VECS_EACH(a.v[k] > b.v[k] ? a.v[k] : b.v[k]) }
VECD_INLINE vecs s_min(vecs a, vecs b) { VECS_EACH(a.v[k] < b.v[k] ? a.v[k] : b.v[k]) }
VECD_INLINE vecs s_add(vecs a, vecs b) { VECS_EACH(a.v[k] + b.v[k]) }
VECD_INLINE vecs s_sub(vecs a, vecs b) { VECS_EACH(a.v[k] - b.v[k]) }
VECD_INLINE vecs s_mul(vecs a, vecs b) { VECS_EACH(a.v[k] * b.v[k]) }
VECD_INLINE vecs s_fma(vecs a, vecs b, vecs c) { VECS_EACH((float)((double)a.v[k] * b.v[k] + c.v[k])) }
VECD_INLINE vecs s_where_less(vecs x, vecs y, vecs a, vecs b) {
    VECS_EACH(x.v[k] < y.v[k] ? a.v[k] : b.v[k])
}
VECD_INLINE vecs s_where_number(vecs x, vecs a, vecs b) {
    VECS_EACH(x.v[k] == x.v[k] ? a.v[k] : b.v[k])
}
VECD_INLINE vecs s_scaled(vecs a, vecs shifted) {
    VECS_EACH(f32_of_bits(bits_of_f32(a.v[k]) + (bits_of_f32(shifted.v[k]) << 23)))
}
VECD_INLINE vecs s_table(const float *table, vecs places) {
    VECS_EACH(table[bits_of_f32(places.v[k]) & 7])
}
VECD_INLINE vecs s_scaled_by_eighths(vecs a, vecs shifted) {
    VECS_EACH(f32_of_bits(bits_of_f32(a.v[k]) + (bits_of_f32(shifted.v[k]) << 20)))
}
VECD_INLINE vecs s_fms(vecs a, vecs b, vecs c) { VECS_EACH((float)((double)a.v[k] * b.v[k] - c.v[k])) }
VECD_INLINE vecs s_fnma(vecs a, vecs b, vecs c) { VECS_EACH((float)(c.v[k] - (double)a.v[k] * b.v[k])) }
VECD_INLINE vecs s_abs(vecs a) { VECS_EACH(fabsf(a.v[k])) }
VECD_INLINE int s_any_less(vecs x, vecs y) {
    int any = 0;
    for (int k = 0; k < VECD; k++) any |= x.v[k] < y.v[k];
    return any;
}
VECD_INLINE int s_all_numbers(vecs x, vecs y) {
    int all = 1;
    for (int k = 0; k < VECD; k++) all &= x.v[k] == x.v[k] && y.v[k] == y.v[k];
    return all;
}
VECD_INLINE int s_all_at_most(vecs x, vecs y) {
    int all = 1;
    for (int k = 0; k < VECD; k++) all &= x.v[k] <= y.v[k];
    return all;
}
VECD_INLINE vecs s_of_doubles(vecd a) { VECS_EACH((float)a.v[k]) }
VECD_INLINE void s_store(float *p, vecs a) { memcpy(p, a.v, sizeof a.v); }
VECD_INLINE void s_store_as_half(half_t *p, vecs a) {
    for (int k = 0; k < VECD; k++) p[k] = half_of_f32(a.v[k]);
}
VECD_INLINE void s_store_as_bfloat16(bfloat16_t *p, vecs a) {
    for (int k = 0; k < VECD; k++) p[k] = bfloat16_of_f32(a.v[k]);
}
VECD_INLINE vecd v_of_floats(vecs a) { VECD_EACH((double)a.v[k]) }
VECD_INLINE void v_store_as_f32(float *p, vecd a) {
    for (int k = 0; k < VECD; k++) p[k] = (float)a.v[k];
}
VECD_INLINE void v_store_as_half(half_t *p, vecd a) {
    for (int k = 0; k < VECD; k++) p[k] = half_of_f64(a.v[k]);
}
VECD_INLINE void v_store_as_bfloat16(bfloat16_t *p, vecd a) {
    for (int k = 0; k < VECD; k++) p[k] = bfloat16_of_f64(a.v[k]);
}
#endif

/* Eight floats: what halves and floats are as they are loaded. */
#ifdef VECD_FLOATS
typedef __m256 vecs;
VECD_INLINE vecs s_set(float x) { return _mm256_set1_ps(x); }
VECD_INLINE vecs s_load_f32(const float *p) { return _mm256_loadu_ps(p); }
VECD_INLINE vecs s_load_half(const half_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
VECD_INLINE vecs s_load_bfloat16(const bfloat16_t *p) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
VECD_INLINE vecs s_max(vecs a, vecs b) { return _mm256_max_ps(a, b); }
VECD_INLINE vecs s_min(vecs a, vecs b) { return _mm256_min_ps(a, b); }
VECD_INLINE vecs s_add(vecs a, vecs b) { return _mm256_add_ps(a, b); }
VECD_INLINE vecs s_sub(vecs a, vecs b) { return _mm256_sub_ps(a, b); }
VECD_INLINE vecs s_mul(vecs a, vecs b) { return _mm256_mul_ps(a, b); }
VECD_INLINE vecs s_fma(vecs a, vecs b, vecs c) { return _mm256_fmadd_ps(a, b, c); }
VECD_INLINE vecs s_where_less(vecs x, vecs y, vecs a, vecs b) {
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, y, _CMP_LT_OQ));
}
VECD_INLINE vecs s_where_number(vecs x, vecs a, vecs b) {
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, x, _CMP_ORD_Q));
}
/* The bits of `shifted` from bit 23 on, added to the exponent. */
VECD_INLINE vecs s_scaled(vecs a, vecs shifted) {
    __m256i n = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), n));
}
/* One of eight floats, by the last bits of `places`. */
VECD_INLINE vecs s_table(const float *table, vecs places) {
    return _mm256_permutevar8x32_ps(_mm256_load_ps(table), _mm256_castps_si256(places));
}
/* The bits of `shifted` from bit 20 on, added. */
VECD_INLINE vecs s_scaled_by_eighths(vecs a, vecs shifted) {
    __m256i n = _mm256_slli_epi32(_mm256_castps_si256(shifted), 20);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), n));
}
VECD_INLINE vecs s_fms(vecs a, vecs b, vecs c) { return _mm256_fmsub_ps(a, b, c); }
VECD_INLINE vecs s_fnma(vecs a, vecs b, vecs c) { return _mm256_fnmadd_ps(a, b, c); }
VECD_INLINE vecs s_abs(vecs a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
/* Whether x < y in any lane. */
VECD_INLINE int s_any_less(vecs x, vecs y) {
    return _mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_LT_OQ)) != 0;
}
VECD_INLINE int s_all_numbers(vecs x, vecs y) {
    return _mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q)) == 0;
}
VECD_INLINE int s_all_at_most(vecs x, vecs y) {
    return _mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_LE_OQ)) == 0xff;
}
VECD_INLINE void s_store(float *p, vecs a) { _mm256_storeu_ps(p, a); }
VECD_INLINE void s_store_as_half(half_t *p, vecs a) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(a, 0));
}
VECD_INLINE void s_store_as_bfloat16(bfloat16_t *p, vecs a) {
    __m256i b = _mm256_castps_si256(a);
    __m256i last = _mm256_and_si256(_mm256_srli_epi32(b, 16), _mm256_set1_epi32(1));
    b = _mm256_add_epi32(b, _mm256_add_epi32(last, _mm256_set1_epi32(0x7fff)));
    b = _mm256_srli_epi32(b, 16);
    __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(b), _mm256_extracti128_si256(b, 1));
    _mm_storeu_si128((__m128i *)p, halves);
}
#ifdef VECD_STORES
VECD_INLINE vecs s_of_doubles(vecd a) { return _mm512_cvtpd_ps(a); }
#else
VECD_INLINE vecs s_of_doubles(vecd a) {
    return _mm256_set_m128(_mm256_cvtpd_ps(a.high), _mm256_cvtpd_ps(a.low));
}
#endif
#endif
VECD_INLINE vecs s_canonical(vecs a) { return s_where_number(a, a, s_set(NAN)); }
VECD_INLINE void s_store_as_f32(float *p, vecs a) { s_store(p, a); }
VECD_INLINE void s_store_f32(float *p, vecs a) { s_store(p, s_canonical(a)); }
VECD_INLINE void s_store_half(half_t *p, vecs a) { s_store_as_half(p, s_canonical(a)); }
VECD_INLINE void s_store_bfloat16(bfloat16_t *p, vecs a) { s_store_as_bfloat16(p, s_canonical(a)); }
VECD_INLINE vecs s_max_or_nan(vecs a, vecs b) { return s_where_number(a, s_max(a, b), a); }
/* The largest of n registers beside each other, by fours, and of those in `held`; NaN in one of these where
 * any is. */
#ifdef VECD_STORES
VECD_INLINE __m512 wide_load_f32(const float *p) { return _mm512_loadu_ps(p); }
VECD_INLINE __m512 wide_load_half(const half_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
VECD_INLINE __m512 wide_load_bfloat16(const bfloat16_t *p) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
VECD_INLINE __m512 s_joined(vecs a, vecs b) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1);
}
#define S_MOST(type, name) \
    VECD_INLINE void s_most_##name(vecs *held, const type *x, ptrdiff_t n) { \
        __m512 even = s_joined(held[0], held[1]), odd = s_joined(held[2], held[3]); \
        __mmask16 none = _mm512_cmp_ps_mask(even, odd, _CMP_UNORD_Q); \
        for (ptrdiff_t k = 0; k < n; k += 4, x += 4 * VECD) { \
            __m512 a = wide_load_##name(x), b = wide_load_##name(x + 2 * VECD); \
            even = _mm512_max_ps(even, a); \
            odd = _mm512_max_ps(odd, b); \
            none |= _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); \
        } \
        held[0] = none ? s_set(NAN) : _mm512_castps512_ps256(even); \
        held[1] = _mm512_extractf32x8_ps(even, 1); \
        held[2] = _mm512_castps512_ps256(odd); \
        held[3] = _mm512_extractf32x8_ps(odd, 1); \
    }
#else
#define S_MOST(type, name) \
    VECD_INLINE void s_most_##name(vecs *held, const type *x, ptrdiff_t n) { \
        for (ptrdiff_t k = 0; k < n; k += 4, x += 4 * VECD) \
            for (int i = 0; i < 4; i++) \
                held[i] = s_max_or_nan(held[i], s_load_##name(x + i * VECD)); \
    }
#endif
S_MOST(float, f32)
S_MOST(half_t, half)
S_MOST(bfloat16_t, bfloat16)
/* The first `count` lanes of `a`, and those of `b` behind them. */
VECD_INLINE vecs s_lanes_from(vecs a, vecs b, ptrdiff_t count) {
    static const float places[VECD] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    return s_where_less(s_load_f32(places), s_set((float)count), a, b);
}
VECD_INLINE vecd v_load_f32(const float *p) { return v_of_floats(s_load_f32(p)); }
VECD_INLINE vecd v_load_half(const half_t *p) { return v_of_floats(s_load_half(p)); }
VECD_INLINE vecd v_load_bfloat16(const bfloat16_t *p) { return v_of_floats(s_load_bfloat16(p)); }

/* One NaN for all: bits must not depend on where an element lies. */
VECD_INLINE vecd v_canonical(vecd a) { return v_where_number(a, a, v_set(NAN)); }
VECD_INLINE void v_store_f64(double *p, vecd a) { v_store(p, v_canonical(a)); }
#ifdef VECD_HARD_STORES
VECD_INLINE void v_store_f32(float *p, vecd a) { s_store_f32(p, s_of_doubles(a)); }
VECD_INLINE void v_store_half(half_t *p, vecd a) {
    vecs near = s_of_doubles(a);
    if (__builtin_expect(is_hard(near, 0xfff, 0), 0)) v_store_hard_half(p, a);
    else s_store_as_half(p, near);
}
VECD_INLINE void v_store_bfloat16(bfloat16_t *p, vecd a) {
    vecs near = s_of_doubles(a);
    if (__builtin_expect(is_hard(near, 0xffff, 0x8000), 0)) v_store_hard_bfloat16(p, a);
    else s_store_as_bfloat16(p, near);
}
#elif !defined(VECD_STORES)
VECD_INLINE void v_store_f32(float *p, vecd a) { v_store_as_f32(p, v_canonical(a)); }
VECD_INLINE void v_store_half(half_t *p, vecd a) { v_store_as_half(p, v_canonical(a)); }
VECD_INLINE void v_store_bfloat16(bfloat16_t *p, vecd a) { v_store_as_bfloat16(p, v_canonical(a)); }
#endif

/* a + b and a - b, where conversions take what begins additions: products have units of their own. */
#ifdef VECD_FLOATS
VECD_INLINE vecd v_add_as_product(vecd a, vecd b) { return v_fma(b, v_set(1.0), a); }
VECD_INLINE vecd v_sub_as_product(vecd a, vecd b) { return v_product_error(a, v_set(1.0), b); }
#else
VECD_INLINE vecd v_add_as_product(vecd a, vecd b) { return v_add(a, b); }
VECD_INLINE vecd v_sub_as_product(vecd a, vecd b) { return v_sub(a, b); }
#endif

/* Two contiguous registers. */
#ifdef VECD_STORES
VECD_INLINE __m512 v_all_floats(vecd a, vecd b) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(a)), _mm512_cvtpd_ps(b), 1);
}
VECD_INLINE void v_store_two_f32(float *p, vecd a, vecd b) {
    __m512 near = v_all_floats(a, b);
    __mmask16 none = _mm512_cmp_ps_mask(near, near, _CMP_UNORD_Q);
    _mm512_storeu_ps(p, _mm512_mask_mov_ps(near, none, _mm512_set1_ps(NAN)));
}
/* Whether a float, rounded from a double, is a NaN or ends in `middle`, as those between two halves do: then
 * rounding once more may be wrong. Subnormal halves have middles that end in zeros. */
VECD_INLINE int is_hard(__m512 near, int end, int middle) {
    __m512i ends = _mm512_and_si512(_mm512_castps_si512(near), _mm512_set1_epi32(end));
    __mmask16 hard = _mm512_cmpeq_epi32_mask(ends, _mm512_set1_epi32(middle));
    return (hard | _mm512_cmp_ps_mask(near, near, _CMP_UNORD_Q)) != 0;
}
static __attribute__((noinline)) void v_store_hard_halves(half_t *p, vecd a, vecd b) {
    v_store_half(p, a);
    v_store_half(p + VECD, b);
}
static __attribute__((noinline)) void v_store_hard_bfloats16(bfloat16_t *p, vecd a, vecd b) {
    v_store_bfloat16(p, a);
    v_store_bfloat16(p + VECD, b);
}
VECD_INLINE void v_store_two_half(half_t *p, vecd a, vecd b) {
    __m512 near = v_all_floats(a, b);
    if (__builtin_expect(is_hard(near, 0xfff, 0), 0)) v_store_hard_halves(p, a, b);
    else _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(near, 0));
}
VECD_INLINE void v_store_two_bfloat16(bfloat16_t *p, vecd a, vecd b) {
    __m512 near = v_all_floats(a, b);
    if (__builtin_expect(is_hard(near, 0xffff, 0x8000), 0)) v_store_hard_bfloats16(p, a, b);
    else {
        /* No float is in the middle: half of a last place decides. */
        __m512i bits = _mm512_add_epi32(_mm512_castps_si512(near), _mm512_set1_epi32(0x8000));
        __m256i halves = _mm512_cvtepi32_epi16(_mm512_srli_epi32(bits, 16));
        _mm256_storeu_si256((__m256i *)p, halves);
    }
}
#else
#define VECD_STORE_TWO(type, name) \
    VECD_INLINE void v_store_two_##name(type *p, vecd a, vecd b) { \
        v_store_##name(p, a); \
        v_store_##name(p + VECD, b); \
    }
VECD_STORE_TWO(float, f32)
VECD_STORE_TWO(half_t, half)
VECD_STORE_TWO(bfloat16_t, bfloat16)
#endif

/* The larger one, or a NaN where either is one. */
VECD_INLINE vecd v_max_or_nan(vecd a, vecd b) { return v_where_number(a, v_max(a, b), a); }

/* The first `count` lanes of `a`, and those of `b` behind them. */
VECD_INLINE vecd v_lanes_from(vecd a, vecd b, ptrdiff_t count) {
    static const double places[VECD] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    return v_where_less(v_load(places), v_set((double)count), a, b);
}

/* a + b, and what that loses (Knuth's TwoSum). */
VECD_INLINE vecd v_two_sum(vecd a, vecd b, vecd *lost) {
    vecd sum = v_add(a, b);
    vecd taken = v_sub(sum, a);
    *lost = v_add(v_sub(a, v_sub(sum, taken)), v_sub(b, taken));
    return sum;
}

VECD_INLINE vecd v_log(vecd a) {
    double x[VECD];
    v_store(x, a);
    for (int k = 0; k < VECD; k++) x[k] = log_f64(x[k]);
    return v_load(x);
}

/* ln(1 + t) for t >= 0: the logarithm of the rounded sum, and what rounding took. */
VECD_INLINE vecd v_log1p(vecd t) {
    vecd lost, sum = v_two_sum(v_set(1.0), t, &lost);
    vecd r = v_add(v_log(sum), v_div(lost, sum));
    return v_where_less(t, v_set(INFINITY), r, t);
}

/* So many exponentials are computed step by step together, by polynomials whose halves do not wait for
 * each other: what a processor looks ahead is full of operations that wait. Of sixteen registers one exponential
 * takes ten; of two, half would be in memory, and all of it takes 1.7 times as long. */
#ifdef VECD_STORES
enum { EXPS = 4 };
#else
enum { EXPS = 1 };
#endif
#define EXPS_EACH(statement) for (int i = 0; i < EXPS; i++) { statement; }

/* What is left of y when the nearest n ln 2 is taken away; n is what `shifted` ends in. What is less than
 * -708 is 2^-1021 and counts as nothing beside the 1 of the largest element. */
VECD_INLINE vecd v_exp_rest(vecd y, vecd *shifted) {
    const vecd magic = v_set(0x1.8p52);
    y = v_max(v_set(-708.0), y);
    *shifted = v_fma(y, v_set(0x1.71547652b82fep+0), magic);
    return v_fma(v_sub(*shifted, magic), v_set(-0x1.62e42fefa39efp-1), y);
}

/* e^y of each, y at most 709, for quotients of 24 bits: error 2^-28. */
VECD_INLINE void v_exps_of_floats(vecd *y) {
    vecd shifted[EXPS], square[EXPS], low[EXPS], middle[EXPS], high[EXPS];
    EXPS_EACH(y[i] = v_exp_rest(y[i], &shifted[i]))
    EXPS_EACH(square[i] = v_mul(y[i], y[i]))
    EXPS_EACH(low[i] = v_add(y[i], v_set(1.0)))
    EXPS_EACH(middle[i] = v_fma(y[i], v_set(0x1.555491042590ep-3), v_set(0x1.fffffb97a556ap-2)))
    EXPS_EACH(high[i] = v_fma(y[i], v_set(0x1.123a1f4898962p-7), v_set(0x1.5558f2f692779p-5)))
    EXPS_EACH(high[i] = v_fma(square[i], v_set(0x1.6a23cf0c161fbp-10), high[i]))
    EXPS_EACH(middle[i] = v_fma(square[i], high[i], middle[i]))
    EXPS_EACH(low[i] = v_fma(square[i], middle[i], low[i]))
    EXPS_EACH(y[i] = v_add_bits(low[i], v_as_exponent(shifted[i])))
}

/* e^y, y at most 709, for what may cancel: error 2^-32. */
VECD_INLINE vecd v_exp_short(vecd y) {
    static const double factors[] = {
        0x1.6d431504c53d3p-10, 0x1.1110e0f726534p-7, 0x1.5554e9114ecf9p-5, 0x1.5555555a78232p-3,
        0x1.0000000b8f62bp-1, 1.0, 1.0,
    };
    vecd shifted, p = v_set(0x1.a124e3f154d32p-13);
    y = v_exp_rest(y, &shifted);
    for (int k = 0; k < 7; k++) p = v_fma(p, y, v_set(factors[k]));
    return v_add_bits(p, v_as_exponent(shifted));
}

VECD_INLINE vecd v_exp_of_floats(vecd y) {
    vecd all[EXPS];
    EXPS_EACH(all[i] = y)
    v_exps_of_floats(all);
    return all[0];
}

/* e^(y + low) for any y, |low| less than a few of its last places, to a few units of 2^-53. The power of
 * two is two factors: results reach from subnormal numbers to infinity. */
VECD_INLINE vecd v_exp_long(vecd y, vecd low) {
    const vecd magic = v_set(0x1.8p52), one = v_set(1.0);
    y = v_min(v_set(1400.0), v_max(v_set(-1400.0), y));
    /* That of a y far beyond is large itself, and would make results negative. */
    low = v_min(v_set(0x1p-30), v_max(v_set(-0x1p-30), low));
    vecd n = v_sub(v_fma(y, v_set(0x1.71547652b82fep+0), magic), magic);
    vecd r = v_fma(n, v_set(-0x1.62e42fefa3800p-1), y);
    low = v_fma(n, v_set(-0x1.ef35793c76730p-45), low);
    r = v_add(r, low);
    vecd p = v_set(0x1.af3ce42b12b24p-26);
    p = v_fma(p, r, v_set(0x1.2894f52583578p-22));
    p = v_fma(p, r, v_set(0x1.71de0be2b5e96p-19));
    p = v_fma(p, r, v_set(0x1.a019b621f9d08p-16));
    p = v_fma(p, r, v_set(0x1.a01a01a83ba17p-13));
    p = v_fma(p, r, v_set(0x1.6c16c1794e1dcp-10));
    p = v_fma(p, r, v_set(0x1.1111111110918p-7));
    p = v_fma(p, r, v_set(0x1.5555555553b6cp-5));
    p = v_fma(p, r, v_set(0x1.5555555555556p-3));
    p = v_fma(p, r, v_set(0x1.0000000000001p-1));
    p = v_add(v_fma(v_mul(r, r), p, r), one);
    vecd half = v_fma(n, v_set(0.5), magic);
    vecd rest = v_add(v_sub(n, v_sub(half, magic)), magic);
    vecd first = v_add_bits(one, v_as_exponent(half));
    return v_mul(v_mul(p, first), v_add_bits(one, v_as_exponent(rest)));
}

/* The largest absolute value of elements, `CLOSE` or half as many at a time; NaNs count as anything. */
enum { CLOSE = 32 };
#ifdef VECD_STORES
typedef struct { __m512i even, odd; } magnitude_t;
VECD_INLINE magnitude_t m_none(void) {
    magnitude_t m = { _mm512_setzero_si512(), _mm512_setzero_si512() };
    return m;
}
VECD_INLINE __m512i m_larger(__m512i m, const float *p) {
    return _mm512_castps_si512(_mm512_range_ps(_mm512_castsi512_ps(m), _mm512_loadu_ps(p), 0xb));
}
VECD_INLINE void m_see_f32(magnitude_t *m, const float *p) {
    m->even = m_larger(m->even, p);
    m->odd = m_larger(m->odd, p + 16);
}
VECD_INLINE void m_see_half_f32(magnitude_t *m, const float *p) { m->even = m_larger(m->even, p); }
VECD_INLINE void m_see_bfloat16(magnitude_t *m, const bfloat16_t *p) {
    __m512i size = _mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi16(0x7fff));
    m->even = _mm512_max_epu16(m->even, size);
}
VECD_INLINE void m_see_half_bfloat16(magnitude_t *m, const bfloat16_t *p) {
    __m256i size = _mm256_loadu_si256((const __m256i *)p);
    size = _mm256_and_si256(size, _mm256_set1_epi16(0x7fff));
    m->odd = _mm512_zextsi256_si512(_mm256_max_epu16(_mm512_castsi512_si256(m->odd), size));
}
#elif defined(VECD_FLOATS)
typedef struct { __m256i even, odd; } magnitude_t;
VECD_INLINE magnitude_t m_none(void) {
    magnitude_t m = { _mm256_setzero_si256(), _mm256_setzero_si256() };
    return m;
}
VECD_INLINE __m256i m_larger(__m256i m, const float *p) {
    return _mm256_castps_si256(
        _mm256_max_ps(_mm256_castsi256_ps(m), s_abs(_mm256_loadu_ps(p))));
}
VECD_INLINE void m_see_half_f32(magnitude_t *m, const float *p) {
    m->even = m_larger(m->even, p);
    m->odd = m_larger(m->odd, p + 8);
}
VECD_INLINE void m_see_f32(magnitude_t *m, const float *p) {
    m_see_half_f32(m, p);
    m_see_half_f32(m, p + 16);
}
VECD_INLINE __m256i m_larger_bfloats(__m256i m, const bfloat16_t *p) {
    __m256i size = _mm256_loadu_si256((const __m256i *)p);
    return _mm256_max_epu16(m, _mm256_and_si256(size, _mm256_set1_epi16(0x7fff)));
}
VECD_INLINE void m_see_half_bfloat16(magnitude_t *m, const bfloat16_t *p) {
    m->even = m_larger_bfloats(m->even, p);
}
VECD_INLINE void m_see_bfloat16(magnitude_t *m, const bfloat16_t *p) {
    m->even = m_larger_bfloats(m->even, p);
    m->odd = m_larger_bfloats(m->odd, p + 16);
}
#else
typedef struct { float most; } magnitude_t;
VECD_INLINE magnitude_t m_none(void) {
    magnitude_t m = { 0 };
    return m;
}
VECD_INLINE void m_larger(magnitude_t *m, float x) { m->most = fabsf(x) > m->most ? fabsf(x) : m->most; }
VECD_INLINE void m_see_half_f32(magnitude_t *m, const float *p) {
    for (int k = 0; k < CLOSE / 2; k++) m_larger(m, p[k]);
}
VECD_INLINE void m_see_f32(magnitude_t *m, const float *p) {
    m_see_half_f32(m, p);
    m_see_half_f32(m, p + CLOSE / 2);
}
VECD_INLINE void m_see_half_bfloat16(magnitude_t *m, const bfloat16_t *p) {
    for (int k = 0; k < CLOSE / 2; k++) m_larger(m, bfloat16_to_f32(p[k]));
}
VECD_INLINE void m_see_bfloat16(magnitude_t *m, const bfloat16_t *p) {
    m_see_half_bfloat16(m, p);
    m_see_half_bfloat16(m, p + CLOSE / 2);
}
#endif
#ifdef VECD_STORES
VECD_INLINE double m_most_f32(const magnitude_t *m) {
    return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_castsi512_ps(m->even), _mm512_castsi512_ps(m->odd)));
}
VECD_INLINE __m256i m_sixteen_sizes(const magnitude_t *m) {
    __m512i most = _mm512_max_epu16(m->even, m->odd);
    return _mm256_max_epu16(_mm512_castsi512_si256(most), _mm512_extracti64x4_epi64(most, 1));
}
#elif defined(VECD_FLOATS)
VECD_INLINE double m_most_f32(const magnitude_t *m) {
    __m256 most = _mm256_max_ps(_mm256_castsi256_ps(m->even), _mm256_castsi256_ps(m->odd));
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ps(four, _mm_movehdup_ps(four)));
}
VECD_INLINE __m256i m_sixteen_sizes(const magnitude_t *m) { return _mm256_max_epu16(m->even, m->odd); }
#endif
#ifdef VECD_FLOATS
/* The largest of eight is what is least when all bits are turned. */
VECD_INLINE double m_most_bfloat16(const magnitude_t *m) {
    __m256i sizes = m_sixteen_sizes(m);
    __m128i most = _mm_max_epu16(_mm256_castsi256_si128(sizes), _mm256_extracti128_si256(sizes, 1));
    most = _mm_minpos_epu16(_mm_xor_si128(most, _mm_set1_epi16(-1)));
    bfloat16_t found = { (uint16_t)~_mm_extract_epi16(most, 0) };
    return bfloat16_to_f32(found);
}
#else
VECD_INLINE double m_most_f32(const magnitude_t *m) { return m->most; }
VECD_INLINE double m_most_bfloat16(const magnitude_t *m) { return m->most; }
#endif

#endif
