/* Right operands that are packed once, ahead of all products with them.
 *
 * A packed matrix is its panels of `F32_WIDE` (`F64_WIDE`) columns, one after the other, each piece by piece of
 * k. Elements keep their type: the rows of a piece follow each other,
 *
 *     piece[k * width + j] = element [k, j],        0 behind the columns
 *
 * where the last panel is as wide as registers make its columns, though its pieces have as much room,
 *
 * or they are pairs of bfloat16 as `pairs_tile` takes them (`IN_PAIRS`). Behind all panels is for each piece of each
 * panel of pairs the least exponent (`packing.h`).
 *
 * `f32_few_panels` multiplies one to four rows by panels, whose streams from memory take turns. */
#ifndef ACLNN_PANELS_H
#define ACLNN_PANELS_H

#include "products/few.h"

enum { IN_PAIRS = 5 }; /* besides the kinds of `microkernel.h` */

/* Bytes from one panel to the next: `rows` is k, even where elements are paired. */
static inline ptrdiff_t panel_bytes(ptrdiff_t wide, ptrdiff_t rows, int size) { return wide * (rows + rows % 2) * size; }

/* Copy a piece of a panel: any strides, `step` bytes from one column to the next, `k_step` from one row. */
static void copy_panel(const char *from, ptrdiff_t step, ptrdiff_t k_step, ptrdiff_t depth, ptrdiff_t count, int size,
                       char *to, ptrdiff_t width) {
    for (ptrdiff_t k = 0; k < depth; k++, from += k_step, to += width * size) {
        if (step == size)
            memcpy(to, from, (size_t)(count * size));
        else if (size == 2)
            for (ptrdiff_t j = 0; j < count; j++) memcpy(to + 2 * j, from + j * step, 2);
        else if (size == 4)
            for (ptrdiff_t j = 0; j < count; j++) memcpy(to + 4 * j, from + j * step, 4);
        else
            for (ptrdiff_t j = 0; j < count; j++) memcpy(to + size * j, from + j * step, (size_t)size);
        memset(to + count * size, 0, (size_t)((width - count) * size));
    }
}

/* The same as pairs; gives the least exponent of elements that are not 0. */
static int copy_pairs(const char *from, ptrdiff_t step, ptrdiff_t k_step, ptrdiff_t depth, ptrdiff_t count,
                      uint32_t *to, ptrdiff_t width) {
    unsigned least = 0xffff;
    for (ptrdiff_t k = 0; k < depth; k += 2, from += 2 * k_step, to += width) {
        for (ptrdiff_t j = 0; j < count; j++) {
            uint16_t even, odd = 0;
            memcpy(&even, from + j * step, 2);
            if (k + 1 < depth) memcpy(&odd, from + j * step + k_step, 2);
            to[j] = (uint32_t)even << 16 | odd;
            const unsigned a = (2u * even - 1) & 0xffff, b = (2u * odd - 1) & 0xffff;
            least = a < least ? a : least;
            least = b < least ? b : least;
        }
        memset(to + count, 0, (size_t)(width - count) * sizeof *to);
    }
    return (int)((least + 1) >> 8);
}

/* --- Pairs of bfloat16 as floats ----------------------------------------------------------------- */

#ifdef PAIRS
INLINED vecf first_of_pairs(veci pairs) { return high_half(OF_BF16, pairs); }
INLINED vecf second_of_pairs(veci pairs) { return low_half(OF_BF16, pairs); }

static void widen_pairs(const uint32_t *from, ptrdiff_t depth, ptrdiff_t width, float *to) {
    for (ptrdiff_t k = 0; k < depth; k += 2, from += width, to += 2 * width)
        for (ptrdiff_t j = 0; j < width; j += F32_LANES) {
            const veci pairs = vi_load(from + j);
            vf_store(to + j, first_of_pairs(pairs));
            if (k + 1 < depth) vf_store(to + width + j, second_of_pairs(pairs));
        }
}
#else
static void widen_pairs(const uint32_t *from, ptrdiff_t depth, ptrdiff_t width, float *to) {}
#endif

/* --- Few rows -------------------------------------------------------------------------------------- */

/* Panels that are read side by side: as many as leave enough chains of sums, and registers. */
#if defined(LANES) && LANES == 16
#define SIDE_BY_SIDE(rows) ((rows) < 3 ? 4 : 2)
#else
#define SIDE_BY_SIDE(rows) ((rows) < 2 ? 4 : (rows) < 3 ? 2 : 1)
#endif

INLINED void few_rows_of_panels(const int kind, const int rows, const int panels, const int vectors, ptrdiff_t depth,
                                const float *a, const char *b, ptrdiff_t panel, float *sums, ptrdiff_t step) {
    vecf x[FEW_ROWS][4][2];
    const ptrdiff_t line = (ptrdiff_t)vectors * F32_LANES * (kind == IN_PAIRS ? 4 : bytes_of(kind));
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int p = 0; p < panels; p++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) x[i][p][v] = vf_set(0);
    for (ptrdiff_t k = 0; k < depth; k += kind == IN_PAIRS ? 2 : 1, b += line)
#pragma GCC unroll 4
        for (int p = 0; p < panels; p++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) {
                const char *place = b + p * panel;
#ifdef PAIRS
                if (kind == IN_PAIRS) {
                    const veci pairs = vi_load(place + v * F32_LANES * 4);
                    const vecf first = first_of_pairs(pairs), second = second_of_pairs(pairs);
                    if (v == 0) __builtin_prefetch(place + 16 * line);
#pragma GCC unroll 4
                    for (int i = 0; i < rows; i++) x[i][p][v] = vf_fma(vf_set(a[k * rows + i]), first, x[i][p][v]);
                    if (k + 1 < depth)
#pragma GCC unroll 4
                        for (int i = 0; i < rows; i++)
                            x[i][p][v] = vf_fma(vf_set(a[(k + 1) * rows + i]), second, x[i][p][v]);
                    continue;
                }
#endif
                const vecf y = f32_widened(kind, place + v * F32_LANES * bytes_of(kind));
                if (v * F32_LANES * bytes_of(kind) % 64 == 0)
                    __builtin_prefetch(place + v * F32_LANES * bytes_of(kind) + 16 * line);
#pragma GCC unroll 4
                for (int i = 0; i < rows; i++) x[i][p][v] = vf_fma(vf_set(a[k * rows + i]), y, x[i][p][v]);
            }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int p = 0; p < panels; p++)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++)
                vf_store(sums + i * step + (p * vectors + v) * F32_LANES, x[i][p][v]);
}

/* `cols` columns from panels that are `panel` bytes apart. */
INLINED void few_panels_of(const int kind, const int rows, ptrdiff_t depth, const float *a, const char *b,
                           ptrdiff_t panel, ptrdiff_t cols, float *sums, ptrdiff_t step) {
    const int many = SIDE_BY_SIDE(rows);
    for (; cols > (many - 1) * F32_WIDE + F32_LANES; cols -= many * F32_WIDE) {
        few_rows_of_panels(kind, rows, many, 2, depth, a, b, panel, sums, step);
        b += many * panel;
        sums += many * F32_WIDE;
    }
    for (; cols > F32_LANES; cols -= F32_WIDE) {
        few_rows_of_panels(kind, rows, 1, 2, depth, a, b, panel, sums, step);
        b += panel;
        sums += F32_WIDE;
    }
    if (cols > 0) few_rows_of_panels(kind, rows, 1, 1, depth, a, b, panel, sums, step);
}

#define FEW_OF(kind, rows) \
    static void few_panels_##kind##_##rows(ptrdiff_t depth, const float *a, const char *b, ptrdiff_t panel, \
                                           ptrdiff_t cols, float *sums, ptrdiff_t step) { \
        few_panels_of(kind, rows, depth, a, b, panel, cols, sums, step); \
    }
#define FEW_OF_KIND(kind) FEW_OF(kind, 1) FEW_OF(kind, 2) FEW_OF(kind, 3) FEW_OF(kind, 4)
FEW_OF_KIND(OF_F32) FEW_OF_KIND(OF_F16) FEW_OF_KIND(OF_BF16)
#ifdef PAIRS
FEW_OF_KIND(IN_PAIRS)
#endif
#undef FEW_OF
#undef FEW_OF_KIND

#define EACH_OF(kind) { few_panels_##kind##_1, few_panels_##kind##_2, few_panels_##kind##_3, few_panels_##kind##_4 }
static const f32_few_fn f32_fews_of_panels[6][FEW_ROWS] = {
    { NULL }, EACH_OF(OF_F32), EACH_OF(OF_F16), EACH_OF(OF_BF16), { NULL },
#ifdef PAIRS
    EACH_OF(IN_PAIRS),
#endif
};
#undef EACH_OF

static inline void f32_few_panels(int kind, int rows, ptrdiff_t depth, const float *a, const char *b, ptrdiff_t panel,
                                  ptrdiff_t cols, float *sums, ptrdiff_t step) {
    f32_fews_of_panels[kind][rows - 1](depth, a, b, panel, cols, sums, step);
}

#endif
