/* Products whose right operand is an image: columns are positions of a kernel on it, and rows its taps.
 *
 * The image of a cell is laid out once, with its margins of zeros, so that everything a tap reads for a row of
 * positions lies side by side: a column of panels is copied from it, run by run, and few rows are multiplied
 * where they lie. With a stride along rows the elements of each residue lie together. What is copied may extend
 * beyond a run by less than IMAGE_SLACK bytes; the runs after it, or nobody, take its place. */
#ifndef ACLNN_IMAGE_H
#define ACLNN_IMAGE_H

#include <string.h>

#include "products/packing.h"

enum { IMAGE_SLACK = 512, IMAGE_RUNS = 32, IMAGE_ROWS = 4 };

typedef struct {
    const char *data;
    int size;                /* bytes of an element */
    ptrdiff_t taps;          /* of each channel */
    const ptrdiff_t *places; /* bytes from a position to what each tap reads */
    ptrdiff_t channel;       /* bytes from a channel to the next */
    ptrdiff_t cols, rows;    /* positions of a row, rows of a plane */
    ptrdiff_t row, plane;    /* bytes from one to the next */
    int scattered;           /* whether results of positions do not lie side by side */
    ptrdiff_t out_col, out_row, out_plane;
} image_t;

typedef struct {
    ptrdiff_t from;  /* bytes from the image's beginning */
    ptrdiff_t to;    /* bytes from the results' */
    ptrdiff_t count; /* of positions */
} image_run;

typedef uint32_t image_four __attribute__((aligned(1), may_alias));
typedef uint16_t image_two __attribute__((aligned(1), may_alias));

INLINED void image_four_of(const char *from, const ptrdiff_t step, char *to, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) ((image_four *)to)[i] = *(const image_four *)(from + i * step);
}
INLINED void image_two_of(const char *from, const ptrdiff_t step, char *to, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i++) ((image_two *)to)[i] = *(const image_two *)(from + i * step);
}

/* n elements of 2 or 4 bytes, `step` bytes apart, side by side; steps of two have loops of vectors. */
static inline void image_elements(const char *from, ptrdiff_t step, char *to, ptrdiff_t n, int size) {
    if (step == size) memcpy(to, from, (size_t)(n * size));
    else if (size == 4 && step == 8) image_four_of(from, 8, to, n);
    else if (size == 2 && step == 4) image_two_of(from, 4, to, n);
    else if (size == 4) image_four_of(from, step, to, n);
    else image_two_of(from, step, to, n);
}

/* The same, `to_step` bytes apart. */
static inline void image_gather(const char *from, ptrdiff_t step, char *to, ptrdiff_t to_step, ptrdiff_t n,
                                int size) {
    for (ptrdiff_t i = 0; i < n; i++, from += step, to += to_step)
        if (size == 4) *(image_four *)to = *(const image_four *)from;
        else *(image_two *)to = *(const image_two *)from;
}

/* The positions of one row from a column on, up to another one. */
static inline image_run image_run_at(const image_t *image, ptrdiff_t col, ptrdiff_t end) {
    const ptrdiff_t x = col % image->cols, line = col / image->cols;
    const ptrdiff_t y = line % image->rows, z = line / image->rows;
    image_run run;
    run.from = z * image->plane + y * image->row + x * image->size;
    run.to = z * image->out_plane + y * image->out_row + x * image->out_col;
    run.count = image->cols - x < end - col ? image->cols - x : end - col;
    return run;
}

/* Rows begin to begin + depth of the operand, in n <= 32 columns; `width` bytes from one to the next. */
static inline void image_panel(const image_t *image, ptrdiff_t begin, ptrdiff_t depth, ptrdiff_t col, ptrdiff_t n,
                               char *to, ptrdiff_t width) {
    ptrdiff_t from[IMAGE_RUNS], first[IMAGE_RUNS], bytes[IMAGE_RUNS], tap = begin % image->taps;
    const char *channel = image->data + begin / image->taps * image->channel;
    int runs = 0;
    for (ptrdiff_t at = col; at < col + n; runs++) {
        const image_run run = image_run_at(image, at, col + n);
        from[runs] = run.from;
        first[runs] = (at - col) * image->size;
        bytes[runs] = run.count * image->size;
        at += run.count;
    }
    for (ptrdiff_t k = 0; k < depth; k++, to += width) {
        const char *place = channel + image->places[tap];
        for (int r = 0; r < runs; r++)
            for (ptrdiff_t at = 0; at < bytes[r]; at += 64) memcpy(to + first[r] + at, place + from[r] + at, 64);
        if (++tap == image->taps) tap = 0, channel += image->channel;
    }
}

INLINED void image_block(const image_t *image, const int rows, const int vectors, ptrdiff_t begin, ptrdiff_t depth,
                         const float *a, ptrdiff_t from, float *sums, ptrdiff_t step) {
    ptrdiff_t tap = begin % image->taps;
    const char *channel = image->data + begin / image->taps * image->channel + from;
    vecf x[IMAGE_ROWS][4];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) x[i][v] = vf_set(0);
    for (ptrdiff_t k = 0; k < depth; k++) {
        const float *place = (const float *)(channel + image->places[tap]);
        vecf y[4];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) y[v] = vf_load(place + v * F32_LANES);
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) x[i][v] = vf_fma(vf_set(a[k * rows + i]), y[v], x[i][v]);
        if (++tap == image->taps) tap = 0, channel += image->channel;
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) vf_store(sums + i * step + v * F32_LANES, x[i][v]);
}

INLINED void image_few_of(const image_t *image, const int rows, ptrdiff_t begin, ptrdiff_t depth, const float *a,
                          ptrdiff_t col, ptrdiff_t n, float *sums, ptrdiff_t step) {
    const ptrdiff_t end = col + n;
    while (col < end) {
        const image_run run = image_run_at(image, col, end);
        for (ptrdiff_t x = 0; x < run.count;) {
            const ptrdiff_t from = run.from + x * image->size;
            const ptrdiff_t left = run.count - x;
            if (left > 2 * F32_LANES) {
                image_block(image, rows, 4, begin, depth, a, from, sums + x, step);
                x += 4 * F32_LANES;
            } else if (left > F32_LANES) {
                image_block(image, rows, 2, begin, depth, a, from, sums + x, step);
                x += 2 * F32_LANES;
            } else {
                image_block(image, rows, 1, begin, depth, a, from, sums + x, step);
                x += F32_LANES;
            }
        }
        col += run.count;
        sums += run.count;
    }
}

/* Sums of one to four rows and a piece of their terms, of floats: as those of `few.h`, but that `sums` has room for
 * 64 more columns. */
static inline void image_few(const image_t *image, int rows, ptrdiff_t begin, ptrdiff_t depth, const float *a,
                             ptrdiff_t col, ptrdiff_t n, float *sums, ptrdiff_t step) {
    switch (rows) {
    case 1: image_few_of(image, 1, begin, depth, a, col, n, sums, step); break;
    case 2: image_few_of(image, 2, begin, depth, a, col, n, sums, step); break;
    case 3: image_few_of(image, 3, begin, depth, a, col, n, sums, step); break;
    default: image_few_of(image, 4, begin, depth, a, col, n, sums, step);
    }
}

/* --- One row of weights, one channel ------------------------------------------------------------- */

/* Sums of a channel by itself, as of depthwise convolutions: what is set up for a product would take longer than
 * the sums of a small image. Vectors of positions lie in rows; IMAGE_CHAINS of them are summed up side by side. */
enum { IMAGE_CHAINS = 8 };

INLINED void plane_of_taps(const char *data, const ptrdiff_t *places, const ptrdiff_t taps, const float *weights,
                           const float *bias, const ptrdiff_t row, const ptrdiff_t vectors, const ptrdiff_t total,
                           float *sums) {
    ptrdiff_t line = 0, vector = 0;
    for (ptrdiff_t at = 0; at < total; at += IMAGE_CHAINS) {
        const char *from[IMAGE_CHAINS];
        vecf x[IMAGE_CHAINS];
#pragma GCC unroll 8
        for (int i = 0; i < IMAGE_CHAINS; i++) {
            from[i] = data + line * row + vector * F32_LANES * 4;
            x[i] = vf_set(0);
            if (at + i + 1 < total && ++vector == vectors) vector = 0, line++;
        }
#pragma GCC unroll 9
        for (ptrdiff_t k = 0; k < taps; k++) {
            const vecf weight = vf_set(weights[k]);
            const ptrdiff_t place = places[k];
#pragma GCC unroll 8
            for (int i = 0; i < IMAGE_CHAINS; i++) x[i] = vf_fma(weight, vf_load(from[i] + place), x[i]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < IMAGE_CHAINS; i++) {
            if (bias != NULL) x[i] = vf_add(vf_set(*bias), x[i]);
            vf_store(sums + (at + i) * F32_LANES, vf_tidy(x[i]));
        }
    }
}

/* Sums of rows of `vectors` vectors each, `row` bytes apart, one vector after the other; `sums` has room for
 * IMAGE_CHAINS more. `bias`: NULL for none. */
static inline void image_plane(const char *data, const ptrdiff_t *places, ptrdiff_t taps, const float *weights,
                               const float *bias, ptrdiff_t row, ptrdiff_t vectors, ptrdiff_t rows, float *sums) {
    if (taps == 9) plane_of_taps(data, places, 9, weights, bias, row, vectors, rows * vectors, sums);
    else plane_of_taps(data, places, taps, weights, bias, row, vectors, rows * vectors, sums);
}

/* Every second of the sums of each row, `step` floats apart. */
static inline void image_every_second(const float *sums, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t cols,
                                      float *restrict to) {
    for (; rows--; sums += step, to += cols)
        for (ptrdiff_t j = 0; j < cols; j++) to[j] = sums[2 * j];
}

/* Rows of n > 0 floats, `row` bytes apart, to others, `to_row` bytes apart. What is stored beyond the end of a row are
 * zeros, less than a vector: rows after it take their place. */
static void image_rows(const char *from, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t n, char *to, ptrdiff_t to_row) {
    for (; rows--; from += row, to += to_row) {
        if (n < F32_LANES) {
            vf_store(to, f32_widened_first(OF_F32, from, n));
            continue;
        }
        for (ptrdiff_t j = 0; j + F32_LANES <= n; j += F32_LANES) vf_store(to + j * 4, vf_load(from + j * 4));
        vf_store(to + (n - F32_LANES) * 4, vf_load(from + (n - F32_LANES) * 4));
    }
}

/* Every second float of two vectors, from the first (0) or the second one (1) on. */
INLINED vecf image_seconds(vecf a, vecf b, const int from) {
#if defined(LANES) && LANES == 16
    const veci places = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, from ? _mm512_add_epi32(places, _mm512_set1_epi32(1)) : places, b);
#elif defined(LANES) && defined(__AVX2__)
    const vecf mixed = from ? _mm256_shuffle_ps(a, b, 0xdd) : _mm256_shuffle_ps(a, b, 0x88);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
#else
    float both[2 * F32_LANES], made[F32_LANES];
    vf_store(both, a);
    vf_store(both + F32_LANES, b);
    for (int i = 0; i < F32_LANES; i++)
        made[i] = both[2 * i + from];
    return vf_load(made);
#endif
}

/* The same for images whose elements at even and odd places lie apart: of each row of n floats the first, third and so
 * on to `to`, the others to `between`. Either may be the first in a row: what is stored beyond its end comes before
 * what lies there, as the last vectors of a row are stored before all others. */
static void image_pairs(const char *from, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t n, char *to, char *between,
                        ptrdiff_t to_row) {
    const ptrdiff_t last = (n - 1) / (2 * F32_LANES) * F32_LANES, left = n - 2 * last;
    for (; rows--; from += row, to += to_row, between += to_row) {
        const char *place = from + 8 * last;
        const vecf a = f32_widened_first(OF_F32, place, left);
        const vecf b = left > F32_LANES ? f32_widened_first(OF_F32, place + F32_LANES * 4, left - F32_LANES) : vf_set(0);
        vf_store((to < between ? to : between) + last * 4, image_seconds(a, b, to > between));
        vf_store((to < between ? between : to) + last * 4, image_seconds(a, b, to < between));
        for (ptrdiff_t j = 0; j < last; j += F32_LANES) {
            const vecf one = vf_load(from + 8 * j), other = vf_load(from + 8 * j + F32_LANES * 4);
            vf_store(to + j * 4, image_seconds(one, other, 0));
            vf_store(between + j * 4, image_seconds(one, other, 1));
        }
    }
}

/* A row of n elements as floats; zeros follow up to the end of the last vector, where the next row's margin is. */
static inline void image_row(int kind, const char *from, ptrdiff_t n, float *to) {
    const int size = bytes_of(kind);
    for (ptrdiff_t j = 0; j < n; j += F32_LANES) {
        const char *place = from + j * size;
        vecf x;
        switch (kind) {
        case OF_F16: x = f32_widened_first(OF_F16, place, n - j); break;
        case OF_BF16: x = f32_widened_first(OF_BF16, place, n - j); break;
        default: x = f32_widened_first(OF_F32, place, n - j);
        }
        vf_store(to + j, x);
    }
}

#endif
