/* As many floats as a register holds, sixteen with AVX-512 and eight with AVX2: the operations that
 * the formulas of `lane_elu.h` and its like are made of. Compilers vectorise plain loops well, but do not
 * look tables up in registers, which is what makes exponentials cheap.
 *
 * LANES is not defined where there are no such registers; plain loops then do the work.
 */
#ifndef ACLNN_LANES_H
#define ACLNN_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Loops over lanes hold no calls, however many loops there are. */
#define INLINED static inline __attribute__((always_inline))

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__)
#include <immintrin.h>
#define LANES 16
typedef __m512 lanes_t;
typedef __m512i ints_t;
typedef __mmask16 choice_t;

INLINED lanes_t lanes_of(float x) { return _mm512_set1_ps(x); }
INLINED ints_t ints_of(uint32_t x) { return _mm512_set1_epi32((int)x); }
INLINED lanes_t lanes_load(const void *p) { return _mm512_loadu_ps(p); }
INLINED void lanes_store(void *p, lanes_t x) { _mm512_storeu_ps(p, x); }
INLINED ints_t bits_of(lanes_t x) { return _mm512_castps_si512(x); }
INLINED lanes_t floats_of(ints_t x) { return _mm512_castsi512_ps(x); }
INLINED lanes_t plus(lanes_t a, lanes_t b) { return _mm512_add_ps(a, b); }
INLINED lanes_t minus(lanes_t a, lanes_t b) { return _mm512_sub_ps(a, b); }
INLINED lanes_t times(lanes_t a, lanes_t b) { return _mm512_mul_ps(a, b); }
INLINED lanes_t fma_of(lanes_t a, lanes_t b, lanes_t c) { return _mm512_fmadd_ps(a, b, c); }
INLINED lanes_t fms_of(lanes_t a, lanes_t b, lanes_t c) { return _mm512_fmsub_ps(a, b, c); }
INLINED lanes_t fnma_of(lanes_t a, lanes_t b, lanes_t c) { return _mm512_fnmadd_ps(a, b, c); }
/* A NaN in `x` stays. */
INLINED lanes_t at_most(lanes_t x, float bound) { return _mm512_min_ps(lanes_of(bound), x); }
INLINED lanes_t at_least(lanes_t x, float bound) { return _mm512_max_ps(lanes_of(bound), x); }
/* The larger one of 0 and x; of two zeros, and of a NaN, x itself. */
INLINED lanes_t positive_part(lanes_t x) { return at_least(x, 0.0f); }
INLINED lanes_t magnitude(lanes_t x) { return _mm512_abs_ps(x); }
INLINED lanes_t divided(lanes_t a, lanes_t b) { return _mm512_div_ps(a, b); }
/* 1 / x, or 2^-14 of it off. */
INLINED lanes_t near_inverse(lanes_t x) { return _mm512_rcp14_ps(x); }
INLINED lanes_t lesser(lanes_t a, lanes_t b) { return _mm512_min_ps(a, b); }
INLINED ints_t int_plus(ints_t a, ints_t b) { return _mm512_add_epi32(a, b); }
INLINED ints_t int_minus(ints_t a, ints_t b) { return _mm512_sub_epi32(a, b); }
INLINED ints_t int_and(ints_t a, ints_t b) { return _mm512_and_si512(a, b); }
INLINED ints_t int_xor(ints_t a, ints_t b) { return _mm512_xor_si512(a, b); }
INLINED ints_t numbers_from(uint32_t first) {
    return int_plus(ints_of(first), _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
INLINED ints_t int_left(ints_t a, int n) { return _mm512_slli_epi32(a, (unsigned)n); }
INLINED ints_t int_right(ints_t a, int n) { return _mm512_srli_epi32(a, (unsigned)n); }
INLINED lanes_t floats_from(ints_t a) { return _mm512_cvtepi32_ps(a); }
INLINED ints_t int_least(ints_t a, ints_t b) { return _mm512_min_epu32(a, b); }
INLINED ints_t int_most(ints_t a, ints_t b) { return _mm512_max_epu32(a, b); }
INLINED choice_t above_zero(lanes_t x) {
    return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ);
}
INLINED choice_t int_at_most(ints_t x, ints_t y) { return _mm512_cmple_epu32_mask(x, y); }
INLINED lanes_t choose(choice_t c, lanes_t yes, lanes_t no) {
    return _mm512_mask_mov_ps(no, c, yes);
}
/* a, or a + b, a - b, -a where `c`. */
INLINED lanes_t plus_where(choice_t c, lanes_t a, lanes_t b) {
    return _mm512_mask_add_ps(a, c, a, b);
}
INLINED lanes_t minus_where(choice_t c, lanes_t a, lanes_t b) {
    return _mm512_mask_sub_ps(a, c, a, b);
}
INLINED lanes_t negative_where(choice_t c, lanes_t a) {
    return _mm512_mask_sub_ps(a, c, lanes_of(-0.0f), a);
}
/* 1 - a where `c`, a elsewhere. */
INLINED lanes_t one_minus_where(choice_t c, lanes_t a) {
    return _mm512_mask_sub_ps(a, c, lanes_of(1.0f), a);
}
INLINED choice_t not_zero(lanes_t x) {
    return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
}
/* Where `some` is not set, x and s are zeros, and s has the sign that x should have. */
INLINED lanes_t with_sign_of(lanes_t x, lanes_t s, choice_t some) {
    return _mm512_mask_mov_ps(s, some, x);
}
/* An addend that leaves a zero its sign where `some` is not set and it is a zero itself. */
INLINED lanes_t as_addend(lanes_t x, choice_t some) {
    return _mm512_mask_mov_ps(lanes_of(-0.0f), some, x);
}
enum { LESSER_MAGNITUDE = 0x0a }; /* for the instruction that picks one of a range's ends */
/* The lesser of `least`, bits without a sign, and the magnitude of x; NaNs do not count. */
INLINED ints_t lesser_size(ints_t least, lanes_t x) {
    return bits_of(_mm512_range_ps(floats_of(least), x, LESSER_MAGNITUDE));
}
/* The magnitude of x, up to a bound; the bound for a NaN. */
INLINED lanes_t lesser_magnitude(lanes_t x, float bound) {
    return _mm512_range_ps(x, lanes_of(bound), LESSER_MAGNITUDE);
}
/* The same, of x where `some`. */
INLINED ints_t least_size(ints_t least, lanes_t x, choice_t some) {
    return bits_of(_mm512_mask_range_ps(floats_of(least), some, floats_of(least), x, LESSER_MAGNITUDE));
}
INLINED lanes_t least_magnitude(lanes_t least, lanes_t x) {
    return _mm512_range_ps(least, x, LESSER_MAGNITUDE);
}
INLINED choice_t either(choice_t a, choice_t b) { return (choice_t)(a | b); }
INLINED int any(choice_t c) { return c != 0; }
/* x times 2 to the largest whole number up to n; below the least float, 0. */
INLINED lanes_t times_octaves(lanes_t x, lanes_t n) { return _mm512_scalef_ps(x, n); }
INLINED choice_t between(lanes_t x, float low, float high) {
    choice_t above = _mm512_cmp_ps_mask(x, lanes_of(low), _CMP_GE_OQ);
    return _mm512_mask_cmp_ps_mask(above, x, lanes_of(high), _CMP_LE_OQ);
}
INLINED choice_t reaches(lanes_t x, float low) {
    return _mm512_cmp_ps_mask(x, lanes_of(low), _CMP_GE_OQ);
}
/* The same, where y is a number. */
INLINED choice_t reaches_beside(lanes_t x, float low, lanes_t y) {
    return _mm512_mask_cmp_ps_mask(reaches(x, low), y, y, _CMP_ORD_Q);
}
INLINED choice_t is_nan(lanes_t x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }
INLINED choice_t not_above_zero(lanes_t x) {
    return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NGT_UQ);
}
/* a, or a * b where `c`. */
INLINED lanes_t choose_times(choice_t c, lanes_t a, lanes_t b) {
    return _mm512_mask_mul_ps(a, c, a, b);
}
/* The same rounded to odd: a later rounding to a half then gives what one rounding would have. */
INLINED lanes_t choose_times_to_odd(choice_t c, lanes_t a, lanes_t b) {
    lanes_t p = _mm512_mask_mul_round_ps(a, c, a, b, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    choice_t inexact = _mm512_mask_cmp_ps_mask(c, fms_of(a, b, p), _mm512_setzero_ps(), _CMP_NEQ_UQ);
    return floats_of(_mm512_mask_or_epi32(bits_of(p), inexact, bits_of(p), ints_of(1u)));
}

/* Halves: as many as there are lanes. */
typedef __m256i halves_t;
INLINED halves_t halves_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINED void halves_store(void *p, halves_t h) { _mm256_storeu_si256((__m256i *)p, h); }
INLINED lanes_t from_halves(halves_t h) { return _mm512_cvtph_ps(h); }
INLINED halves_t to_halves(lanes_t x) { return _mm512_cvtps_ph(x, 0); }
/* What is converted on its way to memory takes half as many operations as in a register. */
INLINED void put_halves(void *p, lanes_t x) {
    __asm__("vcvtps2ph $0, %1, %0" : "=m"(*(__m256i_u *)p) : "v"(x));
}
INLINED lanes_t from_bfloats(halves_t h) {
    return floats_of(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
INLINED halves_t upper_halves(ints_t x) { return _mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16)); }
/* The upper half of each becomes the nearest one, with ties to even. */
INLINED ints_t nearest_upper(ints_t x) {
    ints_t above = _mm512_add_epi32(x, ints_of(0x7fffu));
    choice_t odd = _mm512_test_epi32_mask(x, ints_of(0x10000u));
    return _mm512_mask_add_epi32(above, odd, above, ints_of(1u));
}
INLINED unsigned which_differ(halves_t a, halves_t b) { return _mm256_cmpneq_epi16_mask(a, b); }
INLINED unsigned which_miss(ints_t x, ints_t bits) { return _mm512_testn_epi32_mask(x, bits); }
INLINED void stream_lanes(void *p, lanes_t x) { _mm512_stream_ps(p, x); }

/* Twice as many halves, a register full. */
INLINED ints_t both_halves(halves_t low, halves_t high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
INLINED halves_t low_halves(ints_t both) { return _mm512_castsi512_si256(both); }
INLINED halves_t high_halves(ints_t both) { return _mm512_extracti64x4_epi64(both, 1); }
/* The upper halves of two registers, taking turns. */
INLINED ints_t interleave_upper(ints_t even, ints_t odd) {
    return _mm512_mask_mov_epi16(int_right(even, 16), 0xaaaaaaaau, odd);
}
INLINED ints_t short_of(uint16_t x) { return _mm512_set1_epi16((short)x); }
INLINED ints_t short_plus(ints_t a, ints_t b) { return _mm512_add_epi16(a, b); }
INLINED ints_t short_least(ints_t a, ints_t b) { return _mm512_min_epu16(a, b); }
INLINED ints_t short_most(ints_t a, ints_t b) { return _mm512_max_epu16(a, b); }
INLINED int any_short_at_least(ints_t x, uint16_t y) {
    return _mm512_cmpge_epu16_mask(x, short_of(y)) != 0;
}
INLINED int any_short_at_most(ints_t x, uint16_t y) {
    return _mm512_cmple_epu16_mask(x, short_of(y)) != 0;
}
/* `yes` where x lies `reach` or less above `low`, `no` elsewhere. */
INLINED ints_t short_within(ints_t x, uint16_t low, uint16_t reach, ints_t yes, ints_t no) {
    __mmask32 c = _mm512_cmple_epu16_mask(_mm512_sub_epi16(x, short_of(low)), short_of(reach));
    return _mm512_mask_mov_epi16(no, c, yes);
}
/* `yes` where x, as a half or a bfloat, is positive or a NaN without a sign, `no` elsewhere. */
INLINED ints_t short_positive(ints_t x, ints_t yes, ints_t no) {
    return _mm512_mask_mov_epi16(no, _mm512_cmpgt_epi16_mask(x, _mm512_setzero_si512()), yes);
}
/* Elements of `g` where the magnitude of `x` lies `reach` or less above `low`, 0 elsewhere. */
INLINED ints_t kept(ints_t g, ints_t x, uint32_t low, uint32_t reach) {
    ints_t size = _mm512_and_si512(x, ints_of(0x7fffffffu));
    choice_t c = _mm512_cmple_epu32_mask(_mm512_sub_epi32(size, ints_of(low)), ints_of(reach));
    return _mm512_maskz_mov_epi32(c, g);
}
INLINED ints_t ints_load(const void *p) { return _mm512_loadu_si512(p); }
INLINED void ints_store(void *p, ints_t x) { _mm512_storeu_si512(p, x); }
/* Numbers of those of eight words of 64 bits that are not 0, from `first` on; how many they are. */
INLINED int list_words(const void *words, int first, int *listed) {
    __m512i eight = _mm512_loadu_si512(words);
    __mmask8 some = _mm512_test_epi64_mask(eight, eight);
    __m256i numbers = _mm256_add_epi32(_mm256_set1_epi32(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    _mm256_storeu_si256((__m256i *)listed, _mm256_maskz_compress_epi32(some, numbers));
    return __builtin_popcount(some);
}
INLINED void ints_stream(void *p, ints_t x) { _mm512_stream_si512((__m512i *)p, x); }
/* The first n bytes of a register from memory, the others of `filler`; and the first n to memory.
 * Nothing beyond them is touched. */
INLINED ints_t first_bytes(const void *p, ptrdiff_t n, char filler) {
    return _mm512_mask_loadu_epi8(_mm512_set1_epi8(filler), ((__mmask64)1 << n) - 1u, p);
}
INLINED void put_first_bytes(void *p, ptrdiff_t n, ints_t x) {
    _mm512_mask_storeu_epi8(p, ((__mmask64)1 << n) - 1u, x);
}

/* The low three, four or five bits of `index` pick an element. */
INLINED lanes_t pick16(const float *table, ints_t index) {
    return _mm512_permutexvar_ps(index, _mm512_loadu_ps(table));
}
INLINED lanes_t pick32(const float *table, ints_t index) {
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16));
}

/* Of two registers that follow one another. */
INLINED lanes_t pick_of_both(lanes_t low, ints_t index, lanes_t high) {
    return _mm512_permutex2var_ps(low, index, high);
}

#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define LANES 8
typedef __m256 lanes_t;
typedef __m256i ints_t;
typedef __m256 choice_t;

INLINED lanes_t lanes_of(float x) { return _mm256_set1_ps(x); }
INLINED ints_t ints_of(uint32_t x) { return _mm256_set1_epi32((int)x); }
INLINED lanes_t lanes_load(const void *p) { return _mm256_loadu_ps(p); }
INLINED void lanes_store(void *p, lanes_t x) { _mm256_storeu_ps(p, x); }
INLINED ints_t bits_of(lanes_t x) { return _mm256_castps_si256(x); }
INLINED lanes_t floats_of(ints_t x) { return _mm256_castsi256_ps(x); }
INLINED lanes_t plus(lanes_t a, lanes_t b) { return _mm256_add_ps(a, b); }
INLINED lanes_t minus(lanes_t a, lanes_t b) { return _mm256_sub_ps(a, b); }
INLINED lanes_t times(lanes_t a, lanes_t b) { return _mm256_mul_ps(a, b); }
INLINED lanes_t fma_of(lanes_t a, lanes_t b, lanes_t c) { return _mm256_fmadd_ps(a, b, c); }
INLINED lanes_t fms_of(lanes_t a, lanes_t b, lanes_t c) { return _mm256_fmsub_ps(a, b, c); }
INLINED lanes_t fnma_of(lanes_t a, lanes_t b, lanes_t c) { return _mm256_fnmadd_ps(a, b, c); }
INLINED lanes_t divided(lanes_t a, lanes_t b) { return _mm256_div_ps(a, b); }
INLINED lanes_t near_inverse(lanes_t x) { return divided(lanes_of(1.0f), x); }
INLINED lanes_t lesser(lanes_t a, lanes_t b) { return _mm256_min_ps(a, b); }
INLINED lanes_t at_most(lanes_t x, float bound) { return _mm256_min_ps(lanes_of(bound), x); }
INLINED lanes_t at_least(lanes_t x, float bound) { return _mm256_max_ps(lanes_of(bound), x); }
INLINED lanes_t positive_part(lanes_t x) { return at_least(x, 0.0f); }
INLINED lanes_t magnitude(lanes_t x) { return _mm256_andnot_ps(lanes_of(-0.0f), x); }
INLINED ints_t int_plus(ints_t a, ints_t b) { return _mm256_add_epi32(a, b); }
INLINED ints_t int_minus(ints_t a, ints_t b) { return _mm256_sub_epi32(a, b); }
INLINED ints_t int_and(ints_t a, ints_t b) { return _mm256_and_si256(a, b); }
INLINED ints_t int_xor(ints_t a, ints_t b) { return _mm256_xor_si256(a, b); }
INLINED ints_t numbers_from(uint32_t first) {
    return int_plus(ints_of(first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINED ints_t int_left(ints_t a, int n) { return _mm256_slli_epi32(a, n); }
INLINED ints_t int_right(ints_t a, int n) { return _mm256_srli_epi32(a, n); }
INLINED lanes_t floats_from(ints_t a) { return _mm256_cvtepi32_ps(a); }
INLINED ints_t int_least(ints_t a, ints_t b) { return _mm256_min_epu32(a, b); }
INLINED ints_t int_most(ints_t a, ints_t b) { return _mm256_max_epu32(a, b); }
INLINED choice_t above_zero(lanes_t x) {
    return _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GT_OQ);
}
INLINED choice_t int_at_most(ints_t x, ints_t y) {
    return floats_of(_mm256_cmpeq_epi32(_mm256_min_epu32(x, y), x));
}
INLINED lanes_t choose(choice_t c, lanes_t yes, lanes_t no) {
    return _mm256_blendv_ps(no, yes, c);
}
INLINED lanes_t plus_where(choice_t c, lanes_t a, lanes_t b) {
    return _mm256_add_ps(a, _mm256_and_ps(c, b));
}
INLINED lanes_t minus_where(choice_t c, lanes_t a, lanes_t b) {
    return _mm256_sub_ps(a, _mm256_and_ps(c, b));
}
INLINED lanes_t negative_where(choice_t c, lanes_t a) {
    return _mm256_xor_ps(a, _mm256_and_ps(c, lanes_of(-0.0f)));
}
INLINED lanes_t one_minus_where(choice_t c, lanes_t a) {
    return plus_where(c, negative_where(c, a), lanes_of(1.0f));
}
INLINED lanes_t with_sign_of(lanes_t x, lanes_t s, choice_t some) {
    return _mm256_or_ps(x, _mm256_and_ps(s, lanes_of(-0.0f)));
}
INLINED lanes_t as_addend(lanes_t x, choice_t some) {
    return _mm256_or_ps(x, _mm256_andnot_ps(some, lanes_of(-0.0f)));
}
INLINED ints_t lesser_size(ints_t least, lanes_t x) {
    return int_least(least, bits_of(magnitude(x)));
}
/* Magnitudes are 1 less here, and 0 the largest. */
INLINED ints_t least_size(ints_t least, lanes_t x, choice_t some) {
    return int_least(least, int_plus(bits_of(magnitude(x)), ints_of(0xffffffffu)));
}
INLINED lanes_t least_magnitude(lanes_t least, lanes_t x) {
    return _mm256_min_ps(magnitude(x), least);
}
INLINED choice_t not_zero(lanes_t x) {
    return _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NEQ_UQ);
}
INLINED choice_t either(choice_t a, choice_t b) { return _mm256_or_ps(a, b); }
INLINED int any(choice_t c) { return _mm256_movemask_ps(c) != 0; }
INLINED choice_t between(lanes_t x, float low, float high) {
    choice_t above = _mm256_cmp_ps(x, lanes_of(low), _CMP_GE_OQ);
    return _mm256_and_ps(above, _mm256_cmp_ps(x, lanes_of(high), _CMP_LE_OQ));
}
INLINED choice_t reaches(lanes_t x, float low) {
    return _mm256_cmp_ps(x, lanes_of(low), _CMP_GE_OQ);
}
INLINED choice_t reaches_beside(lanes_t x, float low, lanes_t y) {
    return _mm256_and_ps(reaches(x, low), _mm256_cmp_ps(y, y, _CMP_ORD_Q));
}
INLINED choice_t is_nan(lanes_t x) { return _mm256_cmp_ps(x, x, _CMP_UNORD_Q); }
INLINED choice_t not_above_zero(lanes_t x) {
    return _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NGT_UQ);
}
INLINED lanes_t choose_times(choice_t c, lanes_t a, lanes_t b) {
    return _mm256_blendv_ps(a, times(a, b), c);
}
INLINED lanes_t choose_times_to_odd(choice_t c, lanes_t a, lanes_t b) {
    lanes_t p = times(a, b), error = fms_of(a, b, p);
    __m256i exact = bits_of(_mm256_cmp_ps(error, _mm256_setzero_ps(), _CMP_EQ_OQ));
    /* -1 where p was rounded away from 0. */
    __m256i outward = _mm256_srai_epi32(bits_of(_mm256_xor_ps(error, p)), 31);
    __m256i odd = _mm256_or_si256(_mm256_add_epi32(bits_of(p), outward), ints_of(1u));
    return _mm256_blendv_ps(a, _mm256_blendv_ps(floats_of(odd), p, floats_of(exact)), c);
}

typedef __m128i halves_t;
INLINED halves_t halves_load(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
INLINED void halves_store(void *p, halves_t h) { _mm_storeu_si128((__m128i *)p, h); }
INLINED lanes_t from_halves(halves_t h) { return _mm256_cvtph_ps(h); }
INLINED halves_t to_halves(lanes_t x) { return _mm256_cvtps_ph(x, 0); }
INLINED void put_halves(void *p, lanes_t x) {
    __asm__("vcvtps2ph $0, %1, %0" : "=m"(*(__m128i_u *)p) : "x"(x));
}
INLINED lanes_t from_bfloats(halves_t h) {
    return floats_of(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
INLINED halves_t upper_halves(ints_t x) {
    __m256i high = _mm256_srli_epi32(x, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}
INLINED ints_t nearest_upper(ints_t x) {
    ints_t even = _mm256_and_si256(_mm256_srli_epi32(x, 16), ints_of(1u));
    return int_plus(x, int_plus(even, ints_of(0x7fffu)));
}
INLINED unsigned which_differ(halves_t a, halves_t b) {
    __m128i same = _mm_cmpeq_epi16(a, b);
    return 0xffu & ~(unsigned)_mm_movemask_epi8(_mm_packs_epi16(same, same));
}
INLINED unsigned which_miss(ints_t x, ints_t bits) {
    __m256i miss = _mm256_cmpeq_epi32(_mm256_and_si256(x, bits), _mm256_setzero_si256());
    return (unsigned)_mm256_movemask_ps(floats_of(miss));
}
INLINED void stream_lanes(void *p, lanes_t x) { _mm256_stream_ps(p, x); }

INLINED ints_t both_halves(halves_t low, halves_t high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
INLINED halves_t low_halves(ints_t both) { return _mm256_castsi256_si128(both); }
INLINED halves_t high_halves(ints_t both) { return _mm256_extracti128_si256(both, 1); }
INLINED ints_t interleave_upper(ints_t even, ints_t odd) {
    return _mm256_blend_epi16(int_right(even, 16), odd, 0xaa);
}
INLINED ints_t short_of(uint16_t x) { return _mm256_set1_epi16((short)x); }
INLINED ints_t short_plus(ints_t a, ints_t b) { return _mm256_add_epi16(a, b); }
INLINED ints_t short_least(ints_t a, ints_t b) { return _mm256_min_epu16(a, b); }
INLINED ints_t short_most(ints_t a, ints_t b) { return _mm256_max_epu16(a, b); }
INLINED int any_short_at_least(ints_t x, uint16_t y) {
    return _mm256_movemask_epi8(_mm256_cmpeq_epi16(short_most(x, short_of(y)), x)) != 0;
}
INLINED int any_short_at_most(ints_t x, uint16_t y) {
    return _mm256_movemask_epi8(_mm256_cmpeq_epi16(short_least(x, short_of(y)), x)) != 0;
}
INLINED ints_t short_within(ints_t x, uint16_t low, uint16_t reach, ints_t yes, ints_t no) {
    __m256i above = _mm256_sub_epi16(x, short_of(low));
    __m256i c = _mm256_cmpeq_epi16(short_least(above, short_of(reach)), above);
    return _mm256_or_si256(_mm256_and_si256(c, yes), _mm256_andnot_si256(c, no));
}
INLINED ints_t short_positive(ints_t x, ints_t yes, ints_t no) {
    __m256i c = _mm256_cmpgt_epi16(x, _mm256_setzero_si256());
    return _mm256_or_si256(_mm256_and_si256(c, yes), _mm256_andnot_si256(c, no));
}
INLINED ints_t kept(ints_t g, ints_t x, uint32_t low, uint32_t reach) {
    __m256i above = _mm256_sub_epi32(_mm256_and_si256(x, ints_of(0x7fffffffu)), ints_of(low));
    return _mm256_and_si256(g, _mm256_cmpeq_epi32(_mm256_min_epu32(above, ints_of(reach)), above));
}
INLINED ints_t ints_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINED void ints_store(void *p, ints_t x) { _mm256_storeu_si256((__m256i *)p, x); }
INLINED void ints_stream(void *p, ints_t x) { _mm256_stream_si256((__m256i *)p, x); }
INLINED ints_t first_bytes(const void *p, ptrdiff_t n, char filler) {
    char bytes[32];
    memset(bytes, filler, sizeof bytes);
    memcpy(bytes, p, (size_t)n);
    return ints_load(bytes);
}
INLINED void put_first_bytes(void *p, ptrdiff_t n, ints_t x) {
    char bytes[32];
    ints_store(bytes, x);
    memcpy(p, bytes, (size_t)n);
}

INLINED lanes_t pick8(const float *table, ints_t index) {
    return _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), index);
}
INLINED lanes_t pick16(const float *table, ints_t index) {
    lanes_t upper = floats_of(int_left(index, 28)); /* whose sign is the fourth bit */
    return choose(upper, pick8(table + 8, index), pick8(table, index));
}
#endif

#if !defined(LANES) || LANES != 16
/* What registers of sixteen have an operation for. */
static inline int list_words(const void *words, int first, int *listed) {
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
