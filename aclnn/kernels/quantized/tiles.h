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

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { TILE_COLS_MOST = 32, TILE_ROWS_MOST = 12, TILE_GROUP = 4 };

#if defined(__AVX512BW__)
enum { TILE_ROWS = 12, TILE_COLS = 32 };
typedef __m512i tile_vec;
#define TILE_ZERO() _mm512_setzero_si512()
#define TILE_LOAD(p) _mm512_loadu_si512((const void *)(p))
#define TILE_STORE(p, x) _mm512_storeu_si512((void *)(p), x)
#define TILE_SPREAD(x) _mm512_set1_epi32(x)
#define TILE_PAIRS(sum, a, b) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
#define TILE_FLOATS(sum, a, b)                                                                         \
    _mm512_castps_si512(_mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b),              \
                                        _mm512_castsi512_ps(sum)))
#elif defined(__AVX2__)
enum { TILE_ROWS = 6, TILE_COLS = 16 };
typedef __m256i tile_vec;
#define TILE_ZERO() _mm256_setzero_si256()
#define TILE_LOAD(p) _mm256_loadu_si256((const __m256i_u *)(p))
#define TILE_STORE(p, x) _mm256_storeu_si256((__m256i_u *)(p), x)
#define TILE_SPREAD(x) _mm256_set1_epi32(x)
#define TILE_PAIRS(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#define TILE_FLOATS(sum, a, b)                                                                         \
    _mm256_castps_si256(_mm256_fmadd_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b),              \
                                        _mm256_castsi256_ps(sum)))
#elif defined(__SSE2__)
enum { TILE_ROWS = 6, TILE_COLS = 8 };
typedef __m128i tile_vec;
#define TILE_ZERO() _mm_setzero_si128()
#define TILE_LOAD(p) _mm_loadu_si128((const __m128i_u *)(p))
#define TILE_STORE(p, x) _mm_storeu_si128((__m128i_u *)(p), x)
#define TILE_SPREAD(x) _mm_set1_epi32(x)
#define TILE_PAIRS(sum, a, b) _mm_add_epi32(sum, _mm_madd_epi16(a, b))
#define TILE_FLOATS(sum, a, b)                                                                         \
    _mm_castps_si128(                                                                                  \
        _mm_add_ps(_mm_mul_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b)), _mm_castsi128_ps(sum)))
#else
enum { TILE_ROWS = 6, TILE_COLS = 8 };
typedef struct { int32_t lane[4]; } tile_vec;
static inline tile_vec TILE_ZERO(void) { tile_vec z = {{0}}; return z; }
static inline tile_vec TILE_LOAD(const void *p) { tile_vec x; memcpy(&x, p, sizeof x); return x; }
static inline void TILE_STORE(void *p, tile_vec x) { memcpy(p, &x, sizeof x); }
static inline tile_vec TILE_SPREAD(int32_t x) { tile_vec y = {{x, x, x, x}}; return y; }
static inline tile_vec TILE_PAIRS(tile_vec sum, tile_vec a, tile_vec b) {
    int i;
    for (i = 0; i < 4; i++)
        sum.lane[i] += (int16_t)a.lane[i] * (int16_t)b.lane[i]
            + (a.lane[i] >> 16) * (b.lane[i] >> 16);
    return sum;
}
static inline tile_vec TILE_FLOATS(tile_vec sum, tile_vec a, tile_vec b) {
    float x[4], y[4], z[4];
    int i;
    memcpy(x, &a, sizeof x), memcpy(y, &b, sizeof y), memcpy(z, &sum, sizeof z);
    for (i = 0; i < 4; i++) z[i] = __builtin_fmaf(x[i], y[i], z[i]);
    memcpy(&sum, z, sizeof z);
    return sum;
}
#endif

/* Rows from `a`, `step` bytes apart, times one panel: sums of a row lie `to` apart in `out`. */
#define TILE_FUNCTIONS(NAME, TARGET, STEP)                                                             \
    TARGET static inline __attribute__((always_inline)) void NAME##_of(                                \
        const char *a, ptrdiff_t step, const char *b, ptrdiff_t groups, int32_t *out, const int rows) { \
        enum { BYTES = sizeof(tile_vec) };                                                             \
        tile_vec sums[TILE_ROWS][2];                                                                   \
        ptrdiff_t g;                                                                                   \
        int r;                                                                                         \
        _Pragma("GCC unroll 12") for (r = 0; r < rows; r++) sums[r][0] = sums[r][1] = TILE_ZERO();     \
        for (g = 0; g < groups; g++, b += 2 * BYTES) {                                                 \
            const tile_vec b0 = TILE_LOAD(b), b1 = TILE_LOAD(b + BYTES);                               \
            _Pragma("GCC unroll 12") for (r = 0; r < rows; r++) {                                      \
                int32_t group;                                                                         \
                tile_vec x;                                                                            \
                memcpy(&group, a + r * step + TILE_GROUP * g, TILE_GROUP);                             \
                x = TILE_SPREAD(group);                                                                \
                sums[r][0] = STEP(sums[r][0], x, b0);                                                  \
                sums[r][1] = STEP(sums[r][1], x, b1);                                                  \
            }                                                                                          \
        }                                                                                              \
        _Pragma("GCC unroll 12") for (r = 0; r < rows; r++) {                                          \
            TILE_STORE(out + r * TILE_COLS, sums[r][0]);                                               \
            TILE_STORE(out + r * TILE_COLS + TILE_COLS / 2, sums[r][1]);                               \
        }                                                                                              \
    }                                                                                                  \
    TARGET static int NAME(const char *a, ptrdiff_t step, const char *b, ptrdiff_t groups,             \
                           int32_t *out, ptrdiff_t rows) {                                             \
        if (rows >= TILE_ROWS) return NAME##_of(a, step, b, groups, out, TILE_ROWS), TILE_ROWS;        \
        if (rows >= 8 && TILE_ROWS > 8) return NAME##_of(a, step, b, groups, out, 8 % TILE_ROWS), 8;   \
        if (rows >= 4) return NAME##_of(a, step, b, groups, out, 4), 4;                                \
        if (rows >= 2) return NAME##_of(a, step, b, groups, out, 2), 2;                                \
        return NAME##_of(a, step, b, groups, out, 1), 1;                                               \
    }

TILE_FUNCTIONS(tile_of_pairs, , TILE_PAIRS)
TILE_FUNCTIONS(tile_of_floats, , TILE_FLOATS)

#if defined(__AVX512BW__)
#define TILE_VNNI __attribute__((target("avx512vnni")))
#define TILE_QUADS(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
TILE_FUNCTIONS(tile_of_quads, TILE_VNNI, TILE_QUADS)
/* Integers of a group: four where the CPU has the instruction for it, else two. */
static inline int tile_integers(void) { return __builtin_cpu_supports("avx512vnni") ? 4 : 2; }
#else
#define tile_of_quads tile_of_pairs
static inline int tile_integers(void) { return 2; }
#endif

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

/* A panel of `cols` columns, the rest zeros: `by` bytes to the next k, `next` to the next column. */
static inline void pack_quads(const int8_t *x, ptrdiff_t by, ptrdiff_t next, ptrdiff_t k, int cols,
                              char *to, int32_t *sums) {
    ptrdiff_t i;
    int c, t;
    for (c = 0; c < TILE_COLS; c++) sums[c] = 0;
    for (i = 0; i < k; i += 4, to += TILE_GROUP * TILE_COLS) {
        const int8_t *at = x + i * by;
        if (k - i < 4 || cols < TILE_COLS) {
            memset(to, 0, TILE_GROUP * TILE_COLS);
            for (t = 0; t < 4 && i + t < k; t++)
                for (c = 0; c < cols; c++) to[4 * c + t] = at[t * by + c * next];
        } else if (next == 1) {
            for (c = 0; c < TILE_COLS; c++)
                for (t = 0; t < 4; t++) to[4 * c + t] = at[t * by + c];
        } else if (by == 1) {
            for (c = 0; c < TILE_COLS; c++) memcpy(to + 4 * c, at + c * next, 4);
        } else {
            for (c = 0; c < TILE_COLS; c++)
                for (t = 0; t < 4; t++) to[4 * c + t] = at[t * by + c * next];
        }
        for (c = 0; c < TILE_COLS; c++) {
            const int8_t *own = (const int8_t *)to + 4 * c;
            sums[c] += own[0] + own[1] + own[2] + own[3];
        }
    }
    for (c = 0; c < TILE_COLS; c++) sums[c] = (int32_t)((uint32_t)sums[c] * 128u);
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
            for (c = 0; c < TILE_COLS; c++) wide[2 * c] = at[c], wide[2 * c + 1] = after[c];
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

#endif
