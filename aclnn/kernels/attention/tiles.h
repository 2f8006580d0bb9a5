/* Tiles of attention: packing of keys and values, the two products, and the softmax between them.
 *
 * A tile has KEYS keys, counted from the first key, whatever the queries are. Of a row of scores each is the
 * sum over the depth from its first element to its last; a row of results is the sum over the keys of a tile
 * in their order. How many rows a call has, and which, changes no bit of a row.
 */
#ifndef ACLNN_ATTENTION_TILES_H
#define ACLNN_ATTENTION_TILES_H

#include "attention/vectors.h"

enum {
    KEYS = 128,          /* of a tile */
    WIDTH = 2 * LANES,   /* keys of a packed panel */
    PARTS = 16,          /* partial sums of a row of exponentials, on every instruction set */
    PANELS = KEYS / WIDTH
};

enum { IS_F32, IS_F16, IS_BF16 }; /* elements of operands */

typedef struct {
    const char *data;
    ptrdiff_t step; /* bytes from an element of a row to the next */
} row_t;

/* --- Elements ------------------------------------------------------------------------------------ */

INLINED float element_at(const char *at, int type) {
    if (type == IS_F32) {
        float x;
        memcpy(&x, at, sizeof x);
        return x;
    }
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return type == IS_F16 ? half_to_f32((half_t) { bits }) : bfloat16_to_f32((bfloat16_t) { bits });
}

INLINED void put_element(char *at, int type, float x) {
    if (type == IS_F32) {
        memcpy(at, &x, sizeof x);
        return;
    }
    uint16_t bits = type == IS_F16 ? half_of_f32(x).bits : bfloat16_of_f32(x).bits;
    memcpy(at, &bits, sizeof bits);
}

INLINED ptrdiff_t size_of_element(int type) { return type == IS_F32 ? 4 : 2; }

/* n elements as floats. */
static inline void widen(const char *from, ptrdiff_t step, int type, float *to, ptrdiff_t n) {
    ptrdiff_t k = 0;
    if (step == size_of_element(type)) {
        if (type == IS_F32) {
            memcpy(to, from, (size_t)n * sizeof(float));
            return;
        }
#if defined(__AVX2__)
        for (; k + LANES <= n; k += LANES) {
            vech h = vh_load(from + 2 * k);
            vf_store(to + k, type == IS_F16 ? vf_from_f16(h) : vf_from_bf16(h));
        }
#endif
    }
    for (; k < n; k++)
        to[k] = element_at(from + k * step, type);
}

static inline void narrow(const float *from, char *to, ptrdiff_t step, int type, ptrdiff_t n) {
    for (ptrdiff_t k = 0; k < n; k++)
        put_element(to + k * step, type, from[k]);
}

/* --- Packing ------------------------------------------------------------------------------------- */

#if defined(__AVX2__)
#define HAS_COLUMNS
/* Four columns of LANES rows of floats. */
INLINED void four_columns(const float *x, ptrdiff_t row, vecf *columns) {
#if LANES == 16
#define ROWS_FROM(k) _mm512_insertf32x4(_mm512_insertf32x4(_mm512_insertf32x4(_mm512_castps128_ps512( \
        _mm_loadu_ps(x + (k) * row)), _mm_loadu_ps(x + ((k) + 4) * row), 1), \
        _mm_loadu_ps(x + ((k) + 8) * row), 2), _mm_loadu_ps(x + ((k) + 12) * row), 3)
    __m512 a = ROWS_FROM(0), b = ROWS_FROM(1), c = ROWS_FROM(2), e = ROWS_FROM(3);
    __m512d p = _mm512_castps_pd(_mm512_unpacklo_ps(a, b)), q = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
    __m512d r = _mm512_castps_pd(_mm512_unpacklo_ps(c, e)), s = _mm512_castps_pd(_mm512_unpackhi_ps(c, e));
    columns[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(p, r));
    columns[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(p, r));
    columns[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(q, s));
    columns[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(q, s));
#else
#define ROWS_FROM(k) _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(x + (k) * row)), \
        _mm_loadu_ps(x + ((k) + 4) * row), 1)
    __m256 a = ROWS_FROM(0), b = ROWS_FROM(1), c = ROWS_FROM(2), e = ROWS_FROM(3);
    __m256d p = _mm256_castps_pd(_mm256_unpacklo_ps(a, b)), q = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
    __m256d r = _mm256_castps_pd(_mm256_unpacklo_ps(c, e)), s = _mm256_castps_pd(_mm256_unpackhi_ps(c, e));
    columns[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(p, r));
    columns[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(p, r));
    columns[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(q, s));
    columns[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(q, s));
#endif
#undef ROWS_FROM
}
#endif

/* LANES rows of floats become `depth` vectors, `to_step` floats apart. */
static inline void transpose_rows(
    const float *from, ptrdiff_t row, ptrdiff_t depth, float *to, ptrdiff_t to_step) {
    ptrdiff_t d = 0;
#ifdef HAS_COLUMNS
    for (; d + 4 <= depth; d += 4) {
        vecf columns[4];
        four_columns(from + d, row, columns);
        for (int k = 0; k < 4; k++)
            vf_store(to + (d + k) * to_step, columns[k]);
    }
#endif
    for (; d < depth; d++)
        for (int k = 0; k < LANES; k++)
            to[d * to_step + k] = from[k * row + d];
}

/* Rows at one distance from each other, or not: 0. */
static inline ptrdiff_t distance_of(const row_t *rows, ptrdiff_t n) {
    ptrdiff_t step = n > 1 ? rows[1].data - rows[0].data : 4;
    for (ptrdiff_t k = 1; k < n; k++)
        if (rows[k].data - rows[k - 1].data != step) return 0;
    return step;
}

/* Keys of a tile, a part of whose depth comes from `rows`, into panels [depth][WIDTH]: elements
 * [first, first + n) of `depth`. `buffer`: LANES rows of n floats. Keys that there are not are zeros. */
static inline void pack_keys(
    const row_t *rows, ptrdiff_t keys, int type, ptrdiff_t first, ptrdiff_t n, ptrdiff_t depth, float *to,
    float *buffer) {
    for (ptrdiff_t j = 0; j < keys; j += LANES) {
        float *panel = to + (j / WIDTH) * depth * WIDTH + j % WIDTH + first * WIDTH;
        ptrdiff_t have = keys - j < LANES ? keys - j : LANES;
        ptrdiff_t step = type == IS_F32 && have == LANES && rows[j].step == 4 ? distance_of(rows + j, LANES) : 0;
        if (step != 0 && step % 4 == 0) {
            transpose_rows((const float *)(const void *)rows[j].data, step / 4, n, panel, WIDTH);
            continue;
        }
        for (ptrdiff_t k = 0; k < LANES; k++)
            if (k < have) widen(rows[j + k].data, rows[j + k].step, type, buffer + k * n, n);
            else memset(buffer + k * n, 0, (size_t)n * sizeof(float));
        transpose_rows(buffer, n, n, panel, WIDTH);
    }
    /* Products may take two panels at a time. */
    for (ptrdiff_t j = (keys + LANES - 1) / LANES * LANES; j % (2 * WIDTH); j += LANES)
        for (ptrdiff_t d = 0; d < n; d++)
            vf_store(to + (j / WIDTH) * depth * WIDTH + (first + d) * WIDTH + j % WIDTH, vf_set(0.0f));
}

/* Values of a tile as rows of whole vectors: `width` floats each. */
static inline void pack_values(
    const row_t *rows, ptrdiff_t keys, int type, ptrdiff_t n, ptrdiff_t width, float *to) {
    for (ptrdiff_t j = 0; j < keys; j++) {
        widen(rows[j].data, rows[j].step, type, to + j * width, n);
        for (ptrdiff_t k = n; k < width; k++)
            to[j * width + k] = 0.0f;
    }
}

/* --- Products ------------------------------------------------------------------------------------ */

/* scores[m][KEYS] = scale * q k' of M rows, COLS vectors of keys; q is packed [depth][ROWS]. */
#define SCORES(M, COLS) \
    static void scores_##M(const float *q, const float *k, ptrdiff_t depth, float scale, float *scores) { \
        vecf sum[M][COLS]; \
        for (int m = 0; m < M; m++) \
            for (int c = 0; c < COLS; c++) \
                sum[m][c] = vf_set(0.0f); \
        for (ptrdiff_t d = 0; d < depth; d++) { \
            vecf key[COLS]; \
            for (int c = 0; c < COLS; c++) \
                key[c] = vf_load(k + (c / 2) * depth * WIDTH + d * WIDTH + (c % 2) * LANES); \
            for (int m = 0; m < M; m++) { \
                vecf x = vf_set(q[d * ROWS + m]); \
                for (int c = 0; c < COLS; c++) \
                    sum[m][c] = vf_fma(x, key[c], sum[m][c]); \
            } \
        } \
        for (int m = 0; m < M; m++) \
            for (int c = 0; c < COLS; c++) \
                vf_store(scores + m * KEYS + c * LANES, vf_mul(sum[m][c], vf_set(scale))); \
    }

#ifdef HAS_COLUMNS
/* Scores of one row with keys that are rows of floats, a multiple of LANES of them: each key is read once. */
static void scores_of_row(
    const float *q, const float *k, ptrdiff_t row, ptrdiff_t keys, ptrdiff_t depth, float scale, float *scores) {
    for (ptrdiff_t j = 0; j < keys; j += LANES, k += LANES * row) {
        vecf sum = vf_set(0.0f);
        ptrdiff_t d = 0;
        for (; d + 4 <= depth; d += 4) {
            vecf columns[4];
            four_columns(k + d, row, columns);
            for (int c = 0; c < 4; c++)
                sum = vf_fma(vf_set(q[(d + c) * ROWS]), columns[c], sum);
        }
        for (; d < depth; d++) {
            float column[LANES];
            for (int c = 0; c < LANES; c++)
                column[c] = k[c * row + d];
            sum = vf_fma(vf_set(q[d * ROWS]), vf_load(column), sum);
        }
        vf_store(scores + j, vf_mul(sum, vf_set(scale)));
    }
}
#endif

/* out[m][width] = factor[m] * out[m] + p v, over `keys` keys, of COLS vectors of columns. */
#define WEIGHTED(M, COLS) \
    INLINED void weighted_##M##_##COLS( \
        const float *p, const float *v, ptrdiff_t row, ptrdiff_t keys, const float *factor, float *out, \
        ptrdiff_t width) { \
        vecf sum[M][COLS]; \
        for (int m = 0; m < M; m++) \
            for (int c = 0; c < COLS; c++) \
                sum[m][c] = vf_mul(vf_set(factor[m]), vf_load(out + m * width + c * LANES)); \
        for (ptrdiff_t j = 0; j < keys; j++) { \
            vecf value[COLS]; \
            for (int c = 0; c < COLS; c++) \
                value[c] = vf_load((const char *)v + j * row + c * LANES * 4); \
            for (int m = 0; m < M; m++) { \
                vecf x = vf_set(p[m * KEYS + j]); \
                for (int c = 0; c < COLS; c++) \
                    sum[m][c] = vf_fma(x, value[c], sum[m][c]); \
            } \
        } \
        for (int m = 0; m < M; m++) \
            for (int c = 0; c < COLS; c++) \
                vf_store(out + m * width + c * LANES, sum[m][c]); \
    }

/* COLS vectors of keys and of columns at a time; few columns more one by one. */
#define PRODUCTS(M, COLS) \
    SCORES(M, COLS) \
    WEIGHTED(M, COLS) \
    WEIGHTED(M, 1) \
    static void weighted_##M( \
        const float *p, const float *v, ptrdiff_t row, ptrdiff_t keys, const float *factor, float *out, \
        ptrdiff_t width) { \
        ptrdiff_t c = MORE_##M; \
        for (; c + COLS * LANES <= width; c += COLS * LANES) \
            weighted_##M##_##COLS(p, v + c, row, keys, factor, out + c, width); \
        for (; c < width; c += LANES) \
            weighted_##M##_1(p, v + c, row, keys, factor, out + c, width); \
    }

/* Few rows need more columns to have as many sums under way. */
#if ROWS == 14
WEIGHTED(1, 8)
static inline ptrdiff_t wide_columns(
    const float *p, const float *v, ptrdiff_t row, ptrdiff_t keys, const float *factor, float *out,
    ptrdiff_t width) {
    ptrdiff_t c = 0;
    for (; c + 8 * LANES <= width; c += 8 * LANES)
        weighted_1_8(p, v + c, row, keys, factor, out + c, width);
    return c;
}
#define MORE_1 wide_columns(p, v, row, keys, factor, out, width)
#else
#define MORE_1 0
#endif
#define MORE_2 0
#define MORE_4 0
#define MORE_6 0
#define MORE_8 0
#define MORE_14 0
PRODUCTS(1, 4)
PRODUCTS(2, 4)
#if ROWS == 14
PRODUCTS(4, 4)
PRODUCTS(8, 2)
PRODUCTS(14, 2)
#elif ROWS == 6
PRODUCTS(4, 2)
PRODUCTS(6, 2)
#else
PRODUCTS(4, 2)
#endif

typedef void scores_fn(const float *, const float *, ptrdiff_t, float, float *);
typedef void weighted_fn(const float *, const float *, ptrdiff_t, ptrdiff_t, const float *, float *, ptrdiff_t);
typedef struct {
    int rows, cols; /* vectors of keys that `scores` does at a time */
    scores_fn *scores;
    weighted_fn *weighted;
} products_t;

static const products_t PRODUCTS_OF[] = {
    { 1, 4, scores_1, weighted_1 },
    { 2, 4, scores_2, weighted_2 },
#if ROWS == 14
    { 4, 4, scores_4, weighted_4 },
    { 8, 2, scores_8, weighted_8 },
    { 14, 2, scores_14, weighted_14 },
#elif ROWS == 6
    { 4, 2, scores_4, weighted_4 },
    { 6, 2, scores_6, weighted_6 },
#else
    { 4, 2, scores_4, weighted_4 },
#endif
};

/* Those for `rows` rows or a few more. */
static inline const products_t *products_of(ptrdiff_t rows) {
    const products_t *found = PRODUCTS_OF;
    while (found->rows < rows)
        found++;
    return found;
}

#endif
