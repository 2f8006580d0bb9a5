/* Sixteen floats, whatever registers they take: two of `vecs`, for passes that compute in float.
 *
 * In a `vecw` lie two neighbouring registers of a row, or of eight rows: both are loaded and stored where they
 * lie, `step` bytes from each other.  A step of 0 handles one register twice.
 */
#ifndef ACLNN_VECW_H
#define ACLNN_VECW_H

#include "vecd.h"

/* Whether it is known to the compiler that registers lie beside each other: then two are one. */
#define IS_DENSE(step, size) (__builtin_constant_p(step) && (step) == VECD * (ptrdiff_t)(size))

#ifdef VECD_STORES

typedef __m512 vecw;

VECD_INLINE vecw w_set(float x) { return _mm512_set1_ps(x); }
VECD_INLINE vecw w_of_two(vecs low, vecs high) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}
VECD_INLINE vecs w_low(vecw a) { return _mm512_castps512_ps256(a); }
VECD_INLINE vecs w_high(vecw a) { return _mm512_extractf32x8_ps(a, 1); }
VECD_INLINE vecw w_add(vecw a, vecw b) { return _mm512_add_ps(a, b); }
VECD_INLINE vecw w_sub(vecw a, vecw b) { return _mm512_sub_ps(a, b); }
VECD_INLINE vecw w_mul(vecw a, vecw b) { return _mm512_mul_ps(a, b); }
VECD_INLINE vecw w_fma(vecw a, vecw b, vecw c) { return _mm512_fmadd_ps(a, b, c); }
VECD_INLINE vecw w_fms(vecw a, vecw b, vecw c) { return _mm512_fmsub_ps(a, b, c); }
VECD_INLINE vecw w_fnma(vecw a, vecw b, vecw c) { return _mm512_fnmadd_ps(a, b, c); }
VECD_INLINE vecw w_max(vecw a, vecw b) { return _mm512_max_ps(a, b); }
VECD_INLINE vecw w_min(vecw a, vecw b) { return _mm512_min_ps(a, b); }
VECD_INLINE vecw w_abs(vecw a) { return _mm512_abs_ps(a); }
VECD_INLINE vecw w_where_less(vecw x, vecw y, vecw a, vecw b) {
    return _mm512_mask_mov_ps(b, _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), a);
}
VECD_INLINE vecw w_where_number(vecw x, vecw a, vecw b) {
    return _mm512_mask_mov_ps(b, _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), a);
}
/* Whether x < y in any lane. */
VECD_INLINE int w_any_less(vecw x, vecw y) { return _mm512_cmp_ps_mask(x, y, _CMP_LT_OQ) != 0; }
/* Whether x <= y in every lane. */
VECD_INLINE int w_all_at_most(vecw x, vecw y) {
    return _mm512_cmp_ps_mask(x, y, _CMP_LE_OQ) == 0xffff;
}
/* Whether no lane of either is a NaN. */
VECD_INLINE int w_all_numbers(vecw a, vecw b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q) == 0;
}
/* The bits of `shifted` from bit 23 on, added to the exponent. */
VECD_INLINE vecw w_scaled(vecw a, vecw shifted) {
    __m512i n = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), n));
}
/* One of eight floats, by the last bits of `places`, which are said twice here. */
VECD_INLINE vecw w_table(const float *table, vecw places) {
    return _mm512_permutexvar_ps(_mm512_castps_si512(places), _mm512_load_ps(table));
}
/* The bits of `shifted` from bit 20 on, added: an eighth of the exponent's. */
VECD_INLINE vecw w_scaled_by_eighths(vecw a, vecw shifted) {
    __m512i n = _mm512_slli_epi32(_mm512_castps_si512(shifted), 20);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), n));
}
VECD_INLINE vecw w_load_f32(const float *p, ptrdiff_t step) {
    if (IS_DENSE(step, sizeof *p)) return _mm512_loadu_ps(p);
    return w_of_two(s_load_f32(p), s_load_f32((const float *)((const char *)p + step)));
}
VECD_INLINE __m256i w_sixteen(const void *p, ptrdiff_t step) {
    if (IS_DENSE(step, 2)) return _mm256_loadu_si256((const __m256i *)p);
    __m128i low = _mm_loadu_si128((const __m128i *)p);
    __m128i high = _mm_loadu_si128((const __m128i *)((const char *)p + step));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
VECD_INLINE vecw w_load_half(const half_t *p, ptrdiff_t step) {
    return _mm512_cvtph_ps(w_sixteen(p, step));
}
VECD_INLINE vecw w_load_bfloat16(const bfloat16_t *p, ptrdiff_t step) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(w_sixteen(p, step)), 16));
}
VECD_INLINE void w_store_as_f32(float *p, ptrdiff_t step, vecw a) {
    if (IS_DENSE(step, sizeof *p)) {
        _mm512_storeu_ps(p, a);
        return;
    }
    _mm256_storeu_ps(p, w_low(a));
    _mm256_storeu_ps((float *)((char *)p + step), w_high(a));
}
VECD_INLINE void w_put_sixteen(void *p, ptrdiff_t step, __m256i a) {
    if (IS_DENSE(step, 2)) {
        _mm256_storeu_si256((__m256i *)p, a);
        return;
    }
    _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(a));
    _mm_storeu_si128((__m128i *)((char *)p + step), _mm256_extracti128_si256(a, 1));
}
VECD_INLINE void w_store_as_half(half_t *p, ptrdiff_t step, vecw a) {
    w_put_sixteen(p, step, _mm512_cvtps_ph(a, 0));
}
VECD_INLINE void w_store_as_bfloat16(bfloat16_t *p, ptrdiff_t step, vecw a) {
    __m512i b = _mm512_castps_si512(a);
    __m512i last = _mm512_and_si512(_mm512_srli_epi32(b, 16), _mm512_set1_epi32(1));
    b = _mm512_add_epi32(b, _mm512_add_epi32(last, _mm512_set1_epi32(0x7fff)));
    w_put_sixteen(p, step, _mm512_cvtepi32_epi16(_mm512_srli_epi32(b, 16)));
}

#else

typedef struct { vecs low, high; } vecw;

#define VECW_EACH(one, other) vecw r = { one, other }; return r;
VECD_INLINE vecw w_of_two(vecs low, vecs high) { VECW_EACH(low, high) }
VECD_INLINE vecw w_set(float x) { VECW_EACH(s_set(x), s_set(x)) }
VECD_INLINE vecs w_low(vecw a) { return a.low; }
VECD_INLINE vecs w_high(vecw a) { return a.high; }
VECD_INLINE vecw w_add(vecw a, vecw b) { VECW_EACH(s_add(a.low, b.low), s_add(a.high, b.high)) }
VECD_INLINE vecw w_sub(vecw a, vecw b) { VECW_EACH(s_sub(a.low, b.low), s_sub(a.high, b.high)) }
VECD_INLINE vecw w_mul(vecw a, vecw b) { VECW_EACH(s_mul(a.low, b.low), s_mul(a.high, b.high)) }
VECD_INLINE vecw w_fma(vecw a, vecw b, vecw c) {
    VECW_EACH(s_fma(a.low, b.low, c.low), s_fma(a.high, b.high, c.high))
}
VECD_INLINE vecw w_fms(vecw a, vecw b, vecw c) {
    VECW_EACH(s_fms(a.low, b.low, c.low), s_fms(a.high, b.high, c.high))
}
VECD_INLINE vecw w_fnma(vecw a, vecw b, vecw c) {
    VECW_EACH(s_fnma(a.low, b.low, c.low), s_fnma(a.high, b.high, c.high))
}
VECD_INLINE vecw w_max(vecw a, vecw b) { VECW_EACH(s_max(a.low, b.low), s_max(a.high, b.high)) }
VECD_INLINE vecw w_min(vecw a, vecw b) { VECW_EACH(s_min(a.low, b.low), s_min(a.high, b.high)) }
VECD_INLINE vecw w_abs(vecw a) { VECW_EACH(s_abs(a.low), s_abs(a.high)) }
VECD_INLINE vecw w_where_less(vecw x, vecw y, vecw a, vecw b) {
    VECW_EACH(s_where_less(x.low, y.low, a.low, b.low), s_where_less(x.high, y.high, a.high, b.high))
}
VECD_INLINE vecw w_where_number(vecw x, vecw a, vecw b) {
    VECW_EACH(s_where_number(x.low, a.low, b.low), s_where_number(x.high, a.high, b.high))
}
VECD_INLINE int w_any_less(vecw x, vecw y) {
    return s_any_less(x.low, y.low) | s_any_less(x.high, y.high);
}
VECD_INLINE int w_all_at_most(vecw x, vecw y) {
    return s_all_at_most(x.low, y.low) & s_all_at_most(x.high, y.high);
}
VECD_INLINE int w_all_numbers(vecw a, vecw b) {
    return s_all_numbers(a.low, b.low) & s_all_numbers(a.high, b.high);
}
VECD_INLINE vecw w_scaled(vecw a, vecw shifted) {
    VECW_EACH(s_scaled(a.low, shifted.low), s_scaled(a.high, shifted.high))
}
VECD_INLINE vecw w_table(const float *table, vecw places) {
    VECW_EACH(s_table(table, places.low), s_table(table, places.high))
}
VECD_INLINE vecw w_scaled_by_eighths(vecw a, vecw shifted) {
    VECW_EACH(s_scaled_by_eighths(a.low, shifted.low), s_scaled_by_eighths(a.high, shifted.high))
}
#define VECW_MEMORY(type, name) \
    VECD_INLINE vecw w_load_##name(const type *p, ptrdiff_t step) { \
        VECW_EACH(s_load_##name(p), s_load_##name((const type *)((const char *)p + step))) \
    } \
    VECD_INLINE void w_store_as_##name(type *p, ptrdiff_t step, vecw a) { \
        s_store_as_##name(p, a.low); \
        s_store_as_##name((type *)((char *)p + step), a.high); \
    }
VECW_MEMORY(float, f32)
VECW_MEMORY(half_t, half)
VECW_MEMORY(bfloat16_t, bfloat16)
#endif

/* One NaN for all: bits must not depend on where an element lies. */
VECD_INLINE vecw w_canonical(vecw a) { return w_where_number(a, a, w_set(NAN)); }
#define VECW_STORE(type, name) \
    VECD_INLINE void w_store_##name(type *p, ptrdiff_t step, vecw a) { \
        w_store_as_##name(p, step, w_canonical(a)); \
    }
VECW_STORE(float, f32)
VECW_STORE(half_t, half)
VECW_STORE(bfloat16_t, bfloat16)

/* The larger one, or a NaN where either is one. */
VECD_INLINE vecw w_max_or_nan(vecw a, vecw b) { return w_where_number(a, w_max(a, b), a); }

/* The same eight floats twice. */
VECD_INLINE vecw w_twice(vecs a) { return w_of_two(a, a); }

/* a - b, and what that loses. A few operations are products with 1: as many as that can be begun at a time
 * besides additions, of which there would be too many. */
VECD_INLINE vecw w_two_difference(vecw a, vecw b, vecw *lost) {
    const vecw one = w_set(1.0f);
    vecw difference = w_sub(a, b);
    vecw taken = w_fms(a, one, difference);
    *lost = w_fma(w_fms(a, one, w_add(difference, taken)), one, w_sub(taken, b));
    return difference;
}

/* So many are computed step by step beside each other, as `EXPS` in vecd.h. */
#ifdef VECD_STORES
enum { WIDES = 2 };
#else
enum { WIDES = 1 };
#endif
#define WIDES_EACH(statement) for (int i = 0; i < WIDES; i++) { statement; }

/* e^y of each, with 2^64 times the results of a float: those of y = -130 and less count as nothing. Error
 * 2^-22, which halves can bear: n ln 2 is left out beyond a float's digits. */
VECD_INLINE void w_exps_of_halves(vecw *y) {
    const vecw magic = w_set(0x1.8p23f + 64);
    vecw shifted[WIDES], square[WIDES], low[WIDES], high[WIDES];
    WIDES_EACH(y[i] = w_max(w_set(-130.0f), y[i]))
    WIDES_EACH(shifted[i] = w_fma(y[i], w_set(0x1.715476p+0f), magic))
    WIDES_EACH(y[i] = w_fma(w_sub(shifted[i], magic), w_set(-0x1.62e43p-1f), y[i]))
    WIDES_EACH(square[i] = w_mul(y[i], y[i]))
    WIDES_EACH(low[i] = w_add(y[i], w_set(1.0f)))
    WIDES_EACH(high[i] = w_fma(y[i], w_set(0x1.5557bp-3f), w_set(0x1.fffdfcp-2f)))
    WIDES_EACH(y[i] = w_fma(y[i], w_set(0x1.10625p-7f), w_set(0x1.572a64p-5f)))
    WIDES_EACH(high[i] = w_fma(square[i], y[i], high[i]))
    WIDES_EACH(low[i] = w_fma(square[i], high[i], low[i]))
    WIDES_EACH(y[i] = w_scaled(low[i], shifted[i]))
}

VECD_INLINE vecw w_exp_of_halves(vecw y) {
    vecw all[WIDES];
    WIDES_EACH(all[i] = y)
    w_exps_of_halves(all);
    return all[0];
}

/* 2^(i/8), twice: floats, of whose bits i << 20 is taken away, and what they lack, relative to themselves. */
#define EIGHTHS(a, b, c, d, e, f, g, h) { a, b, c, d, e, f, g, h, a, b, c, d, e, f, g, h }
static const float POWERS_OF_EIGHTHS[16] __attribute__((aligned(64))) = EIGHTHS(
    0x1p+0f, 0x1.f72b84p-1f, 0x1.f06fe0p-1f, 0x1.ebfdaep-1f, 0x1.ea09e6p-1f, 0x1.eace54p-1f, 0x1.ee89fap-1f,
    0x1.f5818ep-1f);
static const float LACK_OF_EIGHTHS[16] __attribute__((aligned(64))) = EIGHTHS(
    0.0f, -0x1.9c0c22p-27f, 0x1.125002p-25f, -0x1.0a3550p-25f, 0x1.26055cp-26f, 0x1.67a1cap-28f, -0x1.f9c304p-27f,
    -0x1.a5217cp-28f);

/* e^y of each as (1 + more + lack) y, for |y| <= 87, error 2^-27.4; 0 below -230, and nonsense in between. */
VECD_INLINE void w_exps_in_three(vecw *y, vecw *more, vecw *lack) {
    const vecw magic = w_set(0x1.8p23f);
    vecw shifted[WIDES], n[WIDES], r[WIDES], square[WIDES], q[WIDES];
    WIDES_EACH(y[i] = w_max(w_set(-231.0f), y[i]))
    WIDES_EACH(shifted[i] = w_fma(y[i], w_set(0x1.715476p+3f), magic))
    WIDES_EACH(n[i] = w_sub(shifted[i], magic))
    /* The first product is exact, n having ten bits, and so is the difference. */
    WIDES_EACH(r[i] = w_fnma(n[i], w_set(0x1.62e8p-4f), y[i]))
    WIDES_EACH(r[i] = w_fnma(n[i], w_set(-0x1.e8082ep-19f), r[i]))
    WIDES_EACH(square[i] = w_mul(r[i], r[i]))
    WIDES_EACH(q[i] = w_fma(r[i], w_set(0x1.555daap-5f), w_set(0x1.555c7ap-3f)))
    WIDES_EACH(q[i] = w_fma(r[i], q[i], w_set(0.5f)))
    WIDES_EACH(more[i] = w_fma(square[i], q[i], r[i]))
    WIDES_EACH(lack[i] = w_table(LACK_OF_EIGHTHS, shifted[i]))
    WIDES_EACH(n[i] = w_scaled_by_eighths(w_table(POWERS_OF_EIGHTHS, shifted[i]), shifted[i]))
    WIDES_EACH(y[i] = w_where_less(y[i], w_set(-230.0f), w_set(0.0f), n[i]))
}

/* The sum of a row's gradients in two parts, and of its size, what has to be left of a difference. */
typedef struct { vecw near, rest, share; } fall_t;

/* g - e^y sum(g) of each, and what it has to be for its digits to be right: a NaN where y is too large. */
VECD_INLINE void w_falls(const vecw *gradients, const vecw *outputs, const fall_t *fall, vecw *results,
                         vecw *sizes) {
    vecw high[WIDES], more[WIDES], lack[WIDES];
    WIDES_EACH(high[i] = outputs[i])
    w_exps_in_three(high, more, lack);
    WIDES_EACH(lack[i] = w_fma(fall->near, lack[i], fall->rest))
    WIDES_EACH(more[i] = w_fma(fall->near, more[i], lack[i]))
    WIDES_EACH(results[i] = w_fnma(high[i], more[i], w_fnma(fall->near, high[i], gradients[i])))
    WIDES_EACH(sizes[i] = w_where_less(w_abs(outputs[i]), w_set(87.0f), w_mul(high[i], fall->share), w_set(NAN)))
    WIDES_EACH(sizes[i] = w_where_less(outputs[i], w_set(-230.0f), w_set(0.0f), sizes[i]))
}

#endif
