/* Tiles of matrix products, from packed panels: sums of int8 products, which are exact, or of floats.
 *
 * A group is the four bytes that a column has for consecutive k: four integers of 8 bits, two of 16, or one
 * float. A panel of B holds for each group those of TILE_COLS columns side by side; A has one row of groups
 * after the other. So one loop serves all three: broadcast a group of A, multiply it with two vectors of
 * groups of B, add. With four integers A holds bytes from 0 to 255: 128 is added while it is packed, and
 * 128 times the sum of B's column is taken off the result.
 */
#ifndef ACLNN_TILES_H
#define ACLNN_TILES_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

enum { TILE_COLS_MOST = 32, TILE_ROWS_MOST = 12, TILE_GROUP = 4 };

#if defined(__AVX512BW__)
enum { TILE_ROWS = 12, TILE_COLS = 32 };
typedef __m512i tile_vec;
#define tile_zero() _mm512_setzero_si512()
#define tile_load(p) _mm512_loadu_si512((const void *)(p))
#define tile_store(p, x) _mm512_storeu_si512((void *)(p), x)
#define tile_spread(p) _mm512_castps_si512(_mm512_broadcastss_ps(_mm_load_ss((const float *)(p))))
#define TILE_PAIRS(sum, a, b) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
typedef __m512 float_vec;
#define float_zero() _mm512_setzero_ps()
#define float_load(p) _mm512_loadu_ps((const float *)(p))
#define float_store(p, x) _mm512_storeu_ps((float *)(p), x)
#define float_spread(p) _mm512_broadcastss_ps(_mm_load_ss((const float *)(p)))
#define TILE_FLOATS(sum, a, b) _mm512_fmadd_ps(a, b, sum)
#elif defined(__AVX2__)
enum { TILE_ROWS = 6, TILE_COLS = 16 };
typedef __m256i tile_vec;
#define tile_zero() _mm256_setzero_si256()
#define tile_load(p) _mm256_loadu_si256((const __m256i_u *)(p))
#define tile_store(p, x) _mm256_storeu_si256((__m256i_u *)(p), x)
#define tile_spread(p) _mm256_castps_si256(_mm256_broadcast_ss((const float *)(p)))
#define TILE_PAIRS(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
typedef __m256 float_vec;
#define float_zero() _mm256_setzero_ps()
#define float_load(p) _mm256_loadu_ps((const float *)(p))
#define float_store(p, x) _mm256_storeu_ps((float *)(p), x)
#define float_spread(p) _mm256_broadcast_ss((const float *)(p))
#define TILE_FLOATS(sum, a, b) _mm256_fmadd_ps(a, b, sum)
#elif defined(__SSE2__)
enum { TILE_ROWS = 6, TILE_COLS = 8 };
typedef __m128i tile_vec;
#define tile_zero() _mm_setzero_si128()
#define tile_load(p) _mm_loadu_si128((const __m128i_u *)(p))
#define tile_store(p, x) _mm_storeu_si128((__m128i_u *)(p), x)
#define tile_spread(p) _mm_castps_si128(_mm_load1_ps((const float *)(p)))
#define TILE_PAIRS(sum, a, b) _mm_add_epi32(sum, _mm_madd_epi16(a, b))
typedef __m128 float_vec;
#define float_zero() _mm_setzero_ps()
#define float_load(p) _mm_loadu_ps((const float *)(p))
#define float_store(p, x) _mm_storeu_ps((float *)(p), x)
#define float_spread(p) _mm_load1_ps((const float *)(p))
#define TILE_FLOATS(sum, a, b) _mm_add_ps(_mm_mul_ps(a, b), sum)
#else
enum { TILE_ROWS = 6, TILE_COLS = 8 };
typedef struct { int32_t lane[4]; } tile_vec;
static inline tile_vec tile_zero(void) { tile_vec z = {{0}}; return z; }
static inline tile_vec tile_load(const void *p) { tile_vec x; memcpy(&x, p, sizeof x); return x; }
static inline void tile_store(void *p, tile_vec x) { memcpy(p, &x, sizeof x); }
static inline tile_vec tile_spread(const void *p) {
    int32_t x;
    memcpy(&x, p, sizeof x);
    return (tile_vec){{x, x, x, x}};
}
static inline tile_vec TILE_PAIRS(tile_vec sum, tile_vec a, tile_vec b) {
    int i;
    for (i = 0; i < 4; i++)
        sum.lane[i] += (int16_t)a.lane[i] * (int16_t)b.lane[i]
            + (a.lane[i] >> 16) * (b.lane[i] >> 16);
    return sum;
}
typedef struct { float lane[4]; } float_vec;
static inline float_vec float_zero(void) { float_vec z = {{0}}; return z; }
static inline float_vec float_load(const void *p) { float_vec x; memcpy(&x, p, sizeof x); return x; }
static inline void float_store(void *p, float_vec x) { memcpy(p, &x, sizeof x); }
static inline float_vec float_spread(const void *p) {
    float x;
    memcpy(&x, p, sizeof x);
    return (float_vec){{x, x, x, x}};
}
static inline float_vec TILE_FLOATS(float_vec sum, float_vec a, float_vec b) {
    int i;
    for (i = 0; i < 4; i++) sum.lane[i] = __builtin_fmaf(a.lane[i], b.lane[i], sum.lane[i]);
    return sum;
}
#endif

/* Rows from `a`, `step` bytes apart, times one panel, of which there are so many `groups`: the sums of a row are
 * TILE_COLS numbers of `out`. With `more` they are added to those that are there. */
#define TILE_FUNCTIONS(NAME, TARGET, OF, STEP)                                                         \
    TARGET static inline __attribute__((always_inline)) void NAME##_of(                                \
        const char *a, ptrdiff_t step, const char *b, ptrdiff_t groups, int32_t *out, const int rows,  \
        const int more) {                                                                              \
        enum { BYTES = sizeof(OF##_vec) };                                                             \
        OF##_vec sums[TILE_ROWS][2];                                                                   \
        const char *threes[TILE_ROWS / 3 + 1]; /* of three rows each: an address has few registers */  \
        ptrdiff_t g;                                                                                   \
        int r;                                                                                         \
        if (more) {                                                                                    \
            _Pragma("GCC unroll 12") for (r = 0; r < rows; r++) {                                      \
                sums[r][0] = OF##_load(out + r * TILE_COLS);                                           \
                sums[r][1] = OF##_load(out + r * TILE_COLS + TILE_COLS / 2);                           \
            }                                                                                          \
        } else {                                                                                       \
            _Pragma("GCC unroll 12") for (r = 0; r < rows; r++) sums[r][0] = sums[r][1] = OF##_zero(); \
        }                                                                                              \
        _Pragma("GCC unroll 4") for (r = 0; 3 * r < rows; r++) threes[r] = a + 3 * r * step;           \
        _Pragma("GCC unroll 2") for (g = 0; g < groups; g++, b += 2 * BYTES) {                         \
            const OF##_vec b0 = OF##_load(b), b1 = OF##_load(b + BYTES);                               \
            _Pragma("GCC unroll 12") for (r = 0; r < rows; r++) {                                      \
                const OF##_vec x = OF##_spread(threes[r / 3] + r % 3 * step);                          \
                sums[r][0] = STEP(sums[r][0], x, b0);                                                  \
                sums[r][1] = STEP(sums[r][1], x, b1);                                                  \
            }                                                                                          \
            _Pragma("GCC unroll 4") for (r = 0; 3 * r < rows; r++) threes[r] += TILE_GROUP;            \
        }                                                                                              \
        _Pragma("GCC unroll 12") for (r = 0; r < rows; r++) {                                          \
            OF##_store(out + r * TILE_COLS, sums[r][0]);                                               \
            OF##_store(out + r * TILE_COLS + TILE_COLS / 2, sums[r][1]);                               \
        }                                                                                              \
    }                                                                                                  \
    TARGET static int NAME(const char *a, ptrdiff_t step, const char *b, ptrdiff_t groups,             \
                           int32_t *out, ptrdiff_t rows, int more) {                                   \
        if (rows >= TILE_ROWS) return NAME##_of(a, step, b, groups, out, TILE_ROWS, more), TILE_ROWS;  \
        if (rows >= 8 && TILE_ROWS > 8)                                                                \
            return NAME##_of(a, step, b, groups, out, 8 % TILE_ROWS, more), 8;                         \
        if (rows >= 4) return NAME##_of(a, step, b, groups, out, 4, more), 4;                          \
        if (rows >= 2) return NAME##_of(a, step, b, groups, out, 2, more), 2;                          \
        return NAME##_of(a, step, b, groups, out, 1, more), 1;                                         \
    }

TILE_FUNCTIONS(tile_of_pairs, , tile, TILE_PAIRS)
TILE_FUNCTIONS(tile_of_floats, , float, TILE_FLOATS)

#if defined(__AVX512BW__)
#define TILE_VNNI __attribute__((target("avx512vnni")))
#define TILE_QUADS(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
TILE_FUNCTIONS(tile_of_quads, TILE_VNNI, tile, TILE_QUADS)
/* Integers of a group: four where the CPU has the instruction for it, else two. */
static inline int tile_integers(void) { return __builtin_cpu_supports("avx512vnni") ? 4 : 2; }
#else
#define tile_of_quads tile_of_pairs
static inline int tile_integers(void) { return 2; }
#endif

/* Integers of four bits, of which elements of `unit` bytes, `step` bytes apart, hold 2 * unit, the first in
 * the lowest bits; n is a multiple of as many. */
static inline void take_bytes(const uint8_t *x, ptrdiff_t bytes, int8_t *to) {
    ptrdiff_t i = 0;
#if defined(__SSE2__)
    const __m128i low = _mm_set1_epi8(15), sign = _mm_set1_epi8(8);
    for (; i + 8 <= bytes; i += 8) {
        const __m128i both = _mm_loadl_epi64((const __m128i_u *)(x + i));
        const __m128i second = _mm_and_si128(_mm_srli_epi16(both, 4), low);
        const __m128i apart = _mm_unpacklo_epi8(_mm_and_si128(both, low), second);
        _mm_storeu_si128((__m128i_u *)(to + 2 * i), _mm_sub_epi8(_mm_xor_si128(apart, sign), sign));
    }
#elif defined(__ARM_NEON)
    for (; i + 8 <= bytes; i += 8) {
        const int8x8_t both = vreinterpret_s8_u8(vld1_u8(x + i));
        int8x8x2_t apart = {{vshr_n_s8(vshl_n_s8(both, 4), 4), vshr_n_s8(both, 4)}};
        vst2_s8(to + 2 * i, apart);
    }
#endif
    for (; i < bytes; i++) {
        to[2 * i] = (int8_t)((x[i] & 15) ^ 8) - 8;
        to[2 * i + 1] = (int8_t)((x[i] >> 4) ^ 8) - 8;
    }
}
static inline void take_nibbles(const char *x, ptrdiff_t step, int unit, ptrdiff_t n, int8_t *to) {
    ptrdiff_t i;
    if (step == unit || n <= 2 * unit) {
        take_bytes((const uint8_t *)x, n / 2, to);
        return;
    }
    for (i = 0; i < n; i += 2 * unit, x += step) take_bytes((const uint8_t *)x, unit, to + i);
}

/* The sum of products of bytes and floats, in lanes that are added at the end: n is a multiple of 8. */
#if defined(__AVX2__)
static inline __m256 bytes_times_floats(__m256 sum, const int8_t *w, const float *x) {
    const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i_u *)w));
    return _mm256_fmadd_ps(_mm256_cvtepi32_ps(wide), _mm256_loadu_ps(x), sum);
}
static inline float dot_of_eights(const int8_t *w, const float *x, ptrdiff_t n) {
    __m256 a = _mm256_setzero_ps(), b = a;
    __m128 half;
    ptrdiff_t i = 0;
    for (; i + 16 <= n; i += 16) {
        a = bytes_times_floats(a, w + i, x + i);
        b = bytes_times_floats(b, w + i + 8, x + i + 8);
    }
    if (i < n) a = bytes_times_floats(a, w + i, x + i);
    a = _mm256_add_ps(a, b);
    half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
#else
static inline float dot_of_eights(const int8_t *w, const float *x, ptrdiff_t n) {
    float lane[8] = {0};
    ptrdiff_t i;
    int c;
    for (i = 0; i < n; i += 8)
        for (c = 0; c < 8; c++) lane[c] += (float)w[i + c] * x[i + c];
    for (c = 0; c < 4; c++) lane[c] += lane[c + 4];
    return lane[0] + lane[2] + (lane[1] + lane[3]);
}
#endif
static inline float dot_of_bytes(const int8_t *w, const float *x, ptrdiff_t n) {
    ptrdiff_t i = n / 8 * 8;
    float sum = dot_of_eights(w, x, i);
    for (; i < n; i++) sum += (float)w[i] * x[i];
    return sum;
}

/* The same of floats, which bytes stand for by a table. */
static inline void take_by_table(const char *w, ptrdiff_t step, const float *table, float *to, ptrdiff_t n) {
    ptrdiff_t i;
    for (i = 0; i < n; i++) to[i] = table[(uint8_t)w[i * step]];
}
static inline float dot_of_floats(const float *w, const float *x, ptrdiff_t n) {
    float lane[16] = {0}, sum;
    ptrdiff_t i;
    int c;
    for (i = 0; i + 16 <= n; i += 16)
        for (c = 0; c < 16; c++) lane[c] += w[i + c] * x[i + c];
    for (c = 0; c < 8; c++) lane[c] += lane[c + 8];
    for (c = 0; c < 4; c++) lane[c] += lane[c + 4];
    sum = lane[0] + lane[2] + (lane[1] + lane[3]);
    for (; i < n; i++) sum += w[i] * x[i];
    return sum;
}

/* Columns of integers of `bits`, whose bytes are adjacent, as rows of floats: (integer + offset) * scale, of each
 * column its own. Where vectors do it, 16 bytes of eight columns change places at a time. */
static inline int32_t integer_at(const char *x, int bits, ptrdiff_t i) {
    if (bits == 8) return (int8_t)x[i];
    return (int32_t)((((uint8_t)x[i / 2] >> (i % 2 * 4)) & 15) ^ 8) - 8;
}
#if defined(__AVX2__)
enum { COLUMNS_AT_ONCE = 8 };
static inline __attribute__((always_inline)) void spread_columns(const char *x, ptrdiff_t next, const int bits,
                                                                 __m256 scale, __m256 offset, float *to) {
    __m256i both[4], places[4], low[2], high[2];
    int i, j;
    _Pragma("GCC unroll 4") for (i = 0; i < 4; i++) {
        const __m128i one = _mm_loadu_si128((const __m128i_u *)(x + i * next));
        const __m128i other = _mm_loadu_si128((const __m128i_u *)(x + (i + 4) * next));
        both[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(one), other, 1);
    }
    _Pragma("GCC unroll 2") for (i = 0; i < 2; i++) {
        low[i] = _mm256_unpacklo_epi32(both[2 * i], both[2 * i + 1]);
        high[i] = _mm256_unpackhi_epi32(both[2 * i], both[2 * i + 1]);
    }
    places[0] = _mm256_unpacklo_epi64(low[0], low[1]), places[1] = _mm256_unpackhi_epi64(low[0], low[1]);
    places[2] = _mm256_unpacklo_epi64(high[0], high[1]), places[3] = _mm256_unpackhi_epi64(high[0], high[1]);
    _Pragma("GCC unroll 4") for (j = 0; j < 4; j++) {
        _Pragma("GCC unroll 8") for (i = 0; i < 32 / bits; i++, to += TILE_COLS) {
            const __m256i top = _mm256_slli_epi32(places[j], 32 - bits * (i + 1));
            const __m256 whole = _mm256_cvtepi32_ps(_mm256_srai_epi32(top, 32 - bits));
            _mm256_storeu_ps(to, _mm256_mul_ps(_mm256_add_ps(whole, offset), scale));
        }
    }
}
#else
enum { COLUMNS_AT_ONCE = 0 };
#endif
static inline void rows_of_columns(const char *x, ptrdiff_t next, int bits, ptrdiff_t k, int cols,
                                   const float *scale, const float *offset, float *to) {
    ptrdiff_t i, done = 0;
    int c = 0;
#if defined(__AVX2__)
    const ptrdiff_t unit = 128 / bits;
    for (; c + 8 <= cols; c += 8) {
        const __m256 by = _mm256_loadu_ps(scale + c), plus = _mm256_loadu_ps(offset + c);
        const char *at = x + c * next;
        for (done = 0; done + unit <= k; done += unit, at += 16) {
            if (bits == 4) spread_columns(at, next, 4, by, plus, to + done * TILE_COLS + c);
            else spread_columns(at, next, 8, by, plus, to + done * TILE_COLS + c);
        }
    }
    for (i = done; i < k; i++) {
        int before;
        for (before = 0; before < c; before++)
            to[i * TILE_COLS + before]
                = ((float)integer_at(x + before * next, bits, i) + offset[before]) * scale[before];
    }
#endif
    (void)done;
    for (; c < cols; c++)
        for (i = 0; i < k; i++)
            to[i * TILE_COLS + c] = ((float)integer_at(x + c * next, bits, i) + offset[c]) * scale[c];
}

/* The sum of products of integers of four bits, in groups of a scale each, and floats: k and groups are multiples of
 * eight. Lanes are added at the end. */
static inline float dot_of_nibbles(const char *w, const float *x, const char *scales, ptrdiff_t step, ptrdiff_t k,
                                   ptrdiff_t of_group) {
    float lane[8] = {0}, scale;
    ptrdiff_t begin, end, i;
    int c;
#if defined(__AVX2__)
    const __m256i shifts = _mm256_setr_epi32(28, 24, 20, 16, 12, 8, 4, 0);
    __m256 sum = _mm256_setzero_ps();
    (void)c, (void)lane;
#define EIGHT(sum, n)                                                                                 \
    do {                                                                                              \
        int32_t bits;                                                                                 \
        memcpy(&bits, w + (n) / 2, 4);                                                                \
        sum = _mm256_fmadd_ps(                                                                        \
            _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_sllv_epi32(_mm256_set1_epi32(bits), shifts), 28)), \
            _mm256_loadu_ps(x + (n)), sum);                                                           \
    } while (0)
    for (begin = 0; begin < k; begin = end, scales += step) {
        __m256 part = _mm256_setzero_ps(), other = part;
        end = begin + of_group < k ? begin + of_group : k;
        for (i = begin; i + 32 <= end; i += 32) {
            EIGHT(part, i);
            EIGHT(other, i + 8);
            EIGHT(part, i + 16);
            EIGHT(other, i + 24);
        }
        for (; i < end; i += 8) EIGHT(part, i);
        memcpy(&scale, scales, 4);
        sum = _mm256_fmadd_ps(_mm256_set1_ps(scale), _mm256_add_ps(part, other), sum);
    }
#undef EIGHT
    {
        __m128 half = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
        half = _mm_add_ps(half, _mm_movehl_ps(half, half));
        return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
    }
#else
    for (begin = 0; begin < k; begin = end, scales += step) {
        float part[8] = {0};
        end = begin + of_group < k ? begin + of_group : k;
        for (i = begin; i < end; i += 8)
            for (c = 0; c < 8; c++) part[c] += (float)integer_at(w, 4, i + c) * x[i + c];
        memcpy(&scale, scales, 4);
        for (c = 0; c < 8; c++) lane[c] += scale * part[c];
    }
    for (c = 0; c < 4; c++) lane[c] += lane[c + 4];
    return lane[0] + lane[2] + (lane[1] + lane[3]);
#endif
}

/* What offsets add to such a sum: of each group its scale, offset, and sum of floats. Numbers of groups that are
 * adjacent are multiplied in lanes. */
static inline float dot_of_offsets(const char *scales, ptrdiff_t step, const char *offsets, ptrdiff_t next,
                                   const float *sums, ptrdiff_t groups) {
    float lane[8] = {0}, scale[8], offset[8], found;
    ptrdiff_t g = 0;
    int c;
    if (step == sizeof(float) && next == sizeof(float))
        for (; g + 8 <= groups; g += 8) {
            memcpy(scale, scales + g * step, sizeof scale), memcpy(offset, offsets + g * next, sizeof offset);
            for (c = 0; c < 8; c++) lane[c] += scale[c] * (offset[c] * sums[g + c]);
        }
    for (c = 0; c < 4; c++) lane[c] += lane[c + 4];
    found = lane[0] + lane[2] + (lane[1] + lane[3]);
    for (; g < groups; g++) {
        memcpy(scale, scales + g * step, sizeof(float)), memcpy(offset, offsets + g * next, sizeof(float));
        found += scale[0] * (offset[0] * sums[g]);
    }
    return found;
}

/* Rows of int8 with k side by side, as groups; what lies beyond k is 0 in B, so anything here. */
static inline void pack_quads_of_row(const int8_t *x, ptrdiff_t step, ptrdiff_t k, char *to) {
    ptrdiff_t i;
    if (step == 1)
        for (i = 0; i < k; i++) to[i] = (char)(x[i] ^ -128);
    else
        for (i = 0; i < k; i++) to[i] = (char)(x[i * step] ^ -128);
    for (; i % 4; i++) to[i] = 0;
}
static inline void pack_pairs_of_row(const int8_t *x, ptrdiff_t step, ptrdiff_t k, char *to) {
    int16_t *wide = (int16_t *)to;
    ptrdiff_t i;
    if (step == 1)
        for (i = 0; i < k; i++) wide[i] = x[i];
    else
        for (i = 0; i < k; i++) wide[i] = x[i * step];
    for (; i % 2; i++) wide[i] = 0;
}

#if defined(__AVX512BW__)
/* Four rows of 32 bytes, so that the four of a column lie side by side. */
TILE_VNNI static inline __attribute__((always_inline)) void interleave_rows(const int8_t *x, ptrdiff_t by,
                                                                            char *to) {
    const __m256i a = _mm256_loadu_si256((const __m256i_u *)x);
    const __m256i b = _mm256_loadu_si256((const __m256i_u *)(x + by));
    const __m256i c = _mm256_loadu_si256((const __m256i_u *)(x + 2 * by));
    const __m256i d = _mm256_loadu_si256((const __m256i_u *)(x + 3 * by));
    const __m256i ab = _mm256_unpacklo_epi8(a, b), ab2 = _mm256_unpackhi_epi8(a, b);
    const __m256i cd = _mm256_unpacklo_epi8(c, d), cd2 = _mm256_unpackhi_epi8(c, d);
    /* Each has columns of the first sixteen in its lower half, of the others in its upper one. */
    const __m256i p = _mm256_unpacklo_epi16(ab, cd), q = _mm256_unpackhi_epi16(ab, cd);
    const __m256i r = _mm256_unpacklo_epi16(ab2, cd2), s = _mm256_unpackhi_epi16(ab2, cd2);
    _mm256_storeu_si256((__m256i_u *)to, _mm256_permute2x128_si256(p, q, 0x20));
    _mm256_storeu_si256((__m256i_u *)(to + 32), _mm256_permute2x128_si256(r, s, 0x20));
    _mm256_storeu_si256((__m256i_u *)(to + 64), _mm256_permute2x128_si256(p, q, 0x31));
    _mm256_storeu_si256((__m256i_u *)(to + 96), _mm256_permute2x128_si256(r, s, 0x31));
}
/* Sixteen groups of sixteen columns, `next` bytes apart: groups of 4 bytes change places with columns. */
TILE_VNNI static inline __attribute__((always_inline)) void transpose_groups(const int8_t *x, ptrdiff_t next,
                                                                             char *to) {
    __m512i rows[16], other[16];
    int i;
    _Pragma("GCC unroll 16") for (i = 0; i < 16; i++) rows[i] = tile_load(x + i * next);
    _Pragma("GCC unroll 8") for (i = 0; i < 8; i++) {
        other[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
        other[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
    }
    _Pragma("GCC unroll 4") for (i = 0; i < 4; i++) {
        rows[4 * i] = _mm512_unpacklo_epi64(other[4 * i], other[4 * i + 2]);
        rows[4 * i + 1] = _mm512_unpackhi_epi64(other[4 * i], other[4 * i + 2]);
        rows[4 * i + 2] = _mm512_unpacklo_epi64(other[4 * i + 1], other[4 * i + 3]);
        rows[4 * i + 3] = _mm512_unpackhi_epi64(other[4 * i + 1], other[4 * i + 3]);
    }
    /* rows[4 * q + j] has groups j, 4 + j, 8 + j, 12 + j of columns 4 * q to 4 * q + 3. */
    _Pragma("GCC unroll 4") for (i = 0; i < 4; i++) {
        const __m512i low = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0x88);
        const __m512i low2 = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0x88);
        const __m512i high = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0xdd);
        const __m512i high2 = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0xdd);
        const ptrdiff_t step = TILE_GROUP * TILE_COLS;
        tile_store(to + i * step, _mm512_shuffle_i32x4(low, low2, 0x88));
        tile_store(to + (8 + i) * step, _mm512_shuffle_i32x4(low, low2, 0xdd));
        tile_store(to + (4 + i) * step, _mm512_shuffle_i32x4(high, high2, 0x88));
        tile_store(to + (12 + i) * step, _mm512_shuffle_i32x4(high, high2, 0xdd));
    }
}
/* What of a whole panel these can pack: gives how many k. */
TILE_VNNI static ptrdiff_t pack_whole_quads(const int8_t *x, ptrdiff_t by, ptrdiff_t next, ptrdiff_t k,
                                            char *to) {
    ptrdiff_t i = 0;
    if (next == 1)
        for (; i + 4 <= k; i += 4) interleave_rows(x + i * by, by, to + i * TILE_COLS);
    else if (by == 1)
        for (; i + 64 <= k; i += 64) {
            transpose_groups(x + i, next, to + i * TILE_COLS);
            transpose_groups(x + i + 16 * next, next, to + i * TILE_COLS + 64);
        }
    return i;
}
/* 128 times the sum of each column. */
TILE_VNNI static void add_quads(const char *packed, ptrdiff_t groups, int32_t *sums) {
    const __m512i factor = _mm512_set1_epi8(-128); /* which counts as 128 */
    __m512i a = tile_zero(), b = tile_zero();
    for (; groups > 0; groups--, packed += TILE_GROUP * TILE_COLS) {
        a = _mm512_dpbusd_epi32(a, factor, tile_load(packed));
        b = _mm512_dpbusd_epi32(b, factor, tile_load(packed + 64));
    }
    tile_store(sums, a);
    tile_store(sums + 16, b);
}
#else
static inline ptrdiff_t pack_whole_quads(const int8_t *x, ptrdiff_t by, ptrdiff_t next, ptrdiff_t k,
                                         char *to) {
    return 0;
}
static inline void add_quads(const char *packed, ptrdiff_t groups, int32_t *sums) {}
#endif

/* A panel of `cols` columns, the rest zeros: `by` bytes to the next k, `next` to the next column. */
static inline void pack_quads(const int8_t *x, ptrdiff_t by, ptrdiff_t next, ptrdiff_t k, int cols,
                              char *to, int32_t *sums) {
    ptrdiff_t i = cols == TILE_COLS ? pack_whole_quads(x, by, next, k, to) : 0;
    int c, t;
    for (; i < k; i += 4) {
        char *group = to + i * TILE_COLS;
        memset(group, 0, TILE_GROUP * TILE_COLS);
        for (t = 0; t < 4 && i + t < k; t++)
            for (c = 0; c < cols; c++) group[4 * c + t] = x[(i + t) * by + c * next];
    }
    add_quads(to, (k + 3) / 4, sums);
}
/* Elements of a row of TILE_COLS and of the next one, in turns. */
static inline void pair_rows(const int8_t *at, const int8_t *after, int16_t *wide) {
    int c = 0;
#if defined(__AVX2__)
    for (; c + 16 <= TILE_COLS; c += 16, wide += 32) {
        const __m128i a = _mm_loadu_si128((const __m128i_u *)(at + c));
        const __m128i b = _mm_loadu_si128((const __m128i_u *)(after + c));
        _mm256_storeu_si256((__m256i_u *)wide, _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(a, b)));
        _mm256_storeu_si256((__m256i_u *)(wide + 16), _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(a, b)));
    }
#endif
    for (; c < TILE_COLS; c++, wide += 2) wide[0] = at[c], wide[1] = after[c];
}
static inline void pack_pairs(const int8_t *x, ptrdiff_t by, ptrdiff_t next, ptrdiff_t k, int cols,
                              char *to) {
    ptrdiff_t i;
    int c;
    for (i = 0; i < k; i += 2, to += TILE_GROUP * TILE_COLS) {
        const int8_t *at = x + i * by, *after = at + by;
        int16_t *wide = (int16_t *)to;
        if (k - i < 2 || cols < TILE_COLS) {
            memset(to, 0, TILE_GROUP * TILE_COLS);
            for (c = 0; c < cols; c++) {
                wide[2 * c] = at[c * next];
                if (i + 1 < k) wide[2 * c + 1] = after[c * next];
            }
        } else if (next == 1) {
            pair_rows(at, after, wide);
        } else {
            for (c = 0; c < TILE_COLS; c++)
                wide[2 * c] = at[c * next], wide[2 * c + 1] = after[c * next];
        }
    }
}

/* --- Quantisation --------------------------------------------------------------------------------- */

/* The largest magnitude: of floats without their sign, whose bits are ordered as they are; NaN is more. */
static inline float largest_magnitude(const float *x, ptrdiff_t n) {
    int32_t most = 0, bits;
    float found;
    ptrdiff_t i;
    for (i = 0; i < n; i++) {
        memcpy(&bits, x + i, 4);
        bits &= 0x7fffffff;
        most = bits > most ? bits : most;
    }
    memcpy(&found, &most, 4);
    return found;
}
/* The least and the largest; NaN is beyond both. */
static inline int32_t ordered_bits(int32_t bits) { return bits ^ (int32_t)((uint32_t)(bits >> 31) >> 1); }
static inline void find_range(const float *x, ptrdiff_t n, float *least, float *most) {
    int32_t low = INT32_MAX, high = INT32_MIN, bits;
    ptrdiff_t i;
    for (i = 0; i < n; i++) {
        memcpy(&bits, x + i, 4);
        bits = ordered_bits(bits);
        low = bits < low ? bits : low;
        high = bits > high ? bits : high;
    }
    low = ordered_bits(low), high = ordered_bits(high);
    memcpy(least, &low, 4), memcpy(most, &high, 4);
}

/* Whole numbers, nearest even, within bounds of at most 22 bits; a NaN gives 0. */
static inline int32_t nearest_within(float x, float low, float high) {
    float inside = x > low ? x : low;
    inside = inside < high ? inside : high;
    inside = x == x ? inside : 0.0f;
    return (int32_t)((inside + 12582912.0f) - 12582912.0f);
}

/* Sums of integers, from `less` on, as integers of a byte: one product and one sum in double precision, rounded to the
 * nearest between `low` and `high`, which are whole numbers, and `zero` after that. */
static inline void requantize_row(const int32_t *sums, int32_t less, double scale, double shift, double low, double high,
                                  double zero, uint8_t *out, ptrdiff_t n) {
    const double magic = 0x1.8p52;
    ptrdiff_t i;
    for (i = 0; i < n; i++) {
        double x = (double)(sums[i] - less) * scale + shift;
        x = x > low ? x : low;
        x = x < high ? x : high;
        out[i] = (uint8_t)(int32_t)(((x + magic) - magic) + zero);
    }
}

/* The nearest of all integers of 32 bits; 0 for a NaN. */
static inline int32_t nearest_of_all(float x) {
    if (x != x) return 0;
    if (x >= 2147483648.0f) return INT32_MAX;
    return x <= -2147483648.0f ? INT32_MIN : (int32_t)rintf(x);
}

#endif
