/* Transposing blocks: eight by eight elements in registers, so that every line is read and written
 * once, as a whole. */
#ifndef ACLNN_TRANSPOSE_H
#define ACLNN_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { SIDE = 8 }; /* of what is transposed in registers */

/* Strides are bytes from one row to the next; `from` has as many rows as `to` has columns. */
static inline __attribute__((always_inline)) void transpose_scalar(
        const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride, ptrdiff_t rows,
        ptrdiff_t cols, size_t size) {
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t j = 0; j < cols; j++)
            memcpy(to + i * to_stride + j * (ptrdiff_t)size,
                   from + j * from_stride + i * (ptrdiff_t)size, size);
}

#if defined(__SSE2__)
/* Neighbours of a pair of rows take turns: thrice that, with ever longer neighbours, and each row has
 * become a column. */
static inline void transpose_eight_halves(
        const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride) {
    __m128i a[SIDE], b[SIDE];
    for (int k = 0; k < SIDE; k++) a[k] = _mm_loadu_si128((const __m128i *)(from + k * from_stride));
    for (int k = 0; k < SIDE / 2; k++) {
        b[2 * k] = _mm_unpacklo_epi16(a[k], a[k + 4]);
        b[2 * k + 1] = _mm_unpackhi_epi16(a[k], a[k + 4]);
    }
    for (int k = 0; k < SIDE / 2; k++) {
        a[2 * k] = _mm_unpacklo_epi16(b[k], b[k + 4]);
        a[2 * k + 1] = _mm_unpackhi_epi16(b[k], b[k + 4]);
    }
    for (int k = 0; k < SIDE / 2; k++) {
        b[2 * k] = _mm_unpacklo_epi16(a[k], a[k + 4]);
        b[2 * k + 1] = _mm_unpackhi_epi16(a[k], a[k + 4]);
    }
    for (int k = 0; k < SIDE; k++) _mm_storeu_si128((__m128i *)(to + k * to_stride), b[k]);
}
#endif

#if defined(__AVX2__)
/* The same with singles, in halves of a register at first. */
static inline void transpose_eight_singles(
        const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride) {
    __m256 a[SIDE], b[SIDE];
    for (int k = 0; k < SIDE; k++) a[k] = _mm256_loadu_ps((const float *)(from + k * from_stride));
    for (int k = 0; k < SIDE; k += 2) {
        b[k] = _mm256_unpacklo_ps(a[k], a[k + 1]);
        b[k + 1] = _mm256_unpackhi_ps(a[k], a[k + 1]);
    }
    for (int k = 0; k < SIDE; k += 4) {
        a[k] = _mm256_shuffle_ps(b[k], b[k + 2], 0x44);
        a[k + 1] = _mm256_shuffle_ps(b[k], b[k + 2], 0xee);
        a[k + 2] = _mm256_shuffle_ps(b[k + 1], b[k + 3], 0x44);
        a[k + 3] = _mm256_shuffle_ps(b[k + 1], b[k + 3], 0xee);
    }
    for (int k = 0; k < SIDE / 2; k++) {
        b[k] = _mm256_permute2f128_ps(a[k], a[k + 4], 0x20);
        b[k + 4] = _mm256_permute2f128_ps(a[k], a[k + 4], 0x31);
    }
    for (int k = 0; k < SIDE; k++) _mm256_storeu_ps((float *)(to + k * to_stride), b[k]);
}
#elif defined(__SSE2__)
static inline void transpose_four_singles(
        const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride) {
    __m128i a[4], b[4];
    for (int k = 0; k < 4; k++) a[k] = _mm_loadu_si128((const __m128i *)(from + k * from_stride));
    for (int k = 0; k < 2; k++) {
        b[2 * k] = _mm_unpacklo_epi32(a[k], a[k + 2]);
        b[2 * k + 1] = _mm_unpackhi_epi32(a[k], a[k + 2]);
    }
    for (int k = 0; k < 2; k++) {
        a[2 * k] = _mm_unpacklo_epi32(b[k], b[k + 2]);
        a[2 * k + 1] = _mm_unpackhi_epi32(b[k], b[k + 2]);
    }
    for (int k = 0; k < 4; k++) _mm_storeu_si128((__m128i *)(to + k * to_stride), a[k]);
}
static inline void transpose_eight_singles(
        const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride) {
    for (int i = 0; i < SIDE; i += 4)
        for (int j = 0; j < SIDE; j += 4)
            transpose_four_singles(
                from + j * from_stride + i * 4, from_stride, to + i * to_stride + j * 4, to_stride);
}
#endif

#if defined(__SSE2__)
static inline __attribute__((always_inline)) void transpose_sized(
        const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride, ptrdiff_t rows,
        ptrdiff_t cols, ptrdiff_t size) {
    const ptrdiff_t high = rows - rows % SIDE, wide = cols - cols % SIDE;
    for (ptrdiff_t i = 0; i < high; i += SIDE)
        for (ptrdiff_t j = 0; j < wide; j += SIDE) {
            const char *corner = from + j * from_stride + i * size;
            char *target = to + i * to_stride + j * size;
            if (size == 2) transpose_eight_halves(corner, from_stride, target, to_stride);
            else transpose_eight_singles(corner, from_stride, target, to_stride);
        }
    transpose_scalar(from + wide * from_stride, from_stride, to + wide * size, to_stride, high,
                     cols - wide, (size_t)size);
    transpose_scalar(from + high * size, from_stride, to + high * to_stride, to_stride, rows - high,
                     cols, (size_t)size);
}
#else
#define transpose_sized transpose_scalar
#endif

/* Row i of `to` becomes column i of `from`: `rows` and `cols` are those of `to`. Elements of `size`
 * bytes follow one another in the rows of both. */
static inline void transpose_block(
        const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride, ptrdiff_t rows,
        ptrdiff_t cols, ptrdiff_t size) {
    if (size == 4) transpose_sized(from, from_stride, to, to_stride, rows, cols, 4);
    else if (size == 2) transpose_sized(from, from_stride, to, to_stride, rows, cols, 2);
    else if (size == 8) transpose_scalar(from, from_stride, to, to_stride, rows, cols, 8);
    else if (size == 1) transpose_scalar(from, from_stride, to, to_stride, rows, cols, 1);
    else if (size == 16) transpose_scalar(from, from_stride, to, to_stride, rows, cols, 16);
    else transpose_scalar(from, from_stride, to, to_stride, rows, cols, (size_t)size);
}

#endif
