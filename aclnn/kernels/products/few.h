/* Products of one to four rows, at the speed of memory: every element of B is read once, where it lies.
 *
 * `f32_few_down` reads a B by rows, some rows at a time from their beginning to their end. `f32_few_across` reads
 * a B by columns, which it transposes in registers. Both give a piece's sums, as tiles do (`microkernel.h`):
 *
 *     sums[i * step + j] = sum over k of a[k * rows + i] * b[k, j],      step a multiple of lanes
 */
#ifndef ACLNN_FEW_H
#define ACLNN_FEW_H

#include "products/packing.h"

/* Columns whose sums the nearest cache holds; across, so many that parts of their rows lie near each other. */
enum { FEW_ROWS = 4, FEW_COLS = 1024, FEW_COLS_ACROSS = 256 };

INLINED void few_terms(const int kind, const int rows, const int terms, const float *a, const char *b,
                       ptrdiff_t b_step, ptrdiff_t cols, float *sums, ptrdiff_t step, int add) {
    vecf factors[8][FEW_ROWS];
#pragma GCC unroll 8
    for (int k = 0; k < terms; k++)
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) factors[k][i] = vf_set(a[k * rows + i]);
    for (ptrdiff_t j = 0; j < cols; j += F32_LANES) {
        const ptrdiff_t n = cols - j;
        vecf x[FEW_ROWS];
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) x[i] = add ? vf_load(sums + i * step + j) : vf_set(0);
#pragma GCC unroll 8
        for (int k = 0; k < terms; k++) {
            const char *place = b + k * b_step + j * bytes_of(kind);
            const vecf y = n < F32_LANES ? f32_widened_first(kind, place, n) : f32_widened(kind, place);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) x[i] = vf_fma(factors[k][i], y, x[i]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) vf_store(sums + i * step + j, x[i]);
    }
}

INLINED void few_down_of(const int kind, const int rows, ptrdiff_t depth, const float *a, const char *b,
                         ptrdiff_t b_step, ptrdiff_t cols, float *sums, ptrdiff_t step) {
    const int terms = rows > 2 ? 4 : 8;
    ptrdiff_t k = 0;
    for (; k + terms <= depth; k += terms)
        few_terms(kind, rows, terms, a + k * rows, b + k * b_step, b_step, cols, sums, step, k > 0);
    for (; k < depth; k++)
        few_terms(kind, rows, 1, a + k * rows, b + k * b_step, b_step, cols, sums, step, k > 0);
}

/* Terms of `F32_LANES` columns from column `j` on, `some` of them, added to x. */
INLINED void few_block(const int kind, const int rows, const float *a, const char *b, ptrdiff_t b_step,
                       ptrdiff_t count, ptrdiff_t some, vecf *x) {
    vecf block[F32_LANES];
    for (int j = 0; j < F32_LANES; j++)
        block[j] = j < count ? f32_widened_first(kind, b + j * b_step, some) : vf_set(0);
    f32_transpose(block);
    for (ptrdiff_t k = 0; k < some; k++)
        for (int i = 0; i < rows; i++) x[i] = vf_fma(vf_set(a[k * rows + i]), block[k], x[i]);
}

/* The same of all columns and as many terms as a register of elements of B holds. */
INLINED void few_whole_block(const int kind, const int rows, const float *a, const char *b, ptrdiff_t b_step,
                             vecf *x) {
    vecf block[F32_LANES];
#if defined(LANES) && LANES == 16
    f32_load_transposed(b, b_step, block);
    if (kind != OF_F32) {
#pragma GCC unroll 16
        for (int k = 0; k < F32_LANES; k++) {
            const veci pairs = vf_bits(block[k]);
            const vecf low = low_half(kind, pairs), high = high_half(kind, pairs);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) {
                x[i] = vf_fma(vf_set(a[2 * k * rows + i]), low, x[i]);
                x[i] = vf_fma(vf_set(a[(2 * k + 1) * rows + i]), high, x[i]);
            }
        }
        return;
    }
#else
#pragma GCC unroll 8
    for (int j = 0; j < F32_LANES; j++) block[j] = f32_widened(kind, b + j * b_step);
    f32_transpose(block);
#endif
#pragma GCC unroll 16
    for (int k = 0; k < F32_LANES; k++)
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) x[i] = vf_fma(vf_set(a[k * rows + i]), block[k], x[i]);
}

INLINED ptrdiff_t whole_block_of(const int kind) {
#if defined(LANES) && LANES == 16
    return kind == OF_F32 ? 16 : 32;
#else
    return F32_LANES;
#endif
}

/* Registers of columns whose sums take turns, so that those of one row have two chains of additions. With registers of
 * sixteen lanes one is as fast, and memory fetches what comes next of so few columns by itself. */
INLINED int turns_of(const int rows) { return F32_LANES == 16 || rows > 1 ? 1 : 2; }

/* Bytes of columns that are copied at a time, `FEW_STEP` bytes apart. */
enum { FEW_RUN = 512, FEW_STEP = FEW_RUN + 64 };

/* The nearest cache holds a line of hardly a dozen columns that are as far apart as `APART`. Where it takes several
 * blocks to use a line up, runs of columns are copied to where they are transposed from, one after the other, while
 * those after them come to the second-level cache. */
INLINED void copy_runs(const char *b, ptrdiff_t b_step, const char *next, char *to) {
    for (int j = 0; j < 2 * F32_LANES; j++, b += b_step, next += b_step, to += FEW_STEP)
        for (int line = 0; line < FEW_RUN; line += F32_LANES * 4) {
            vf_store(to + line, vf_load(b + line));
            if (line % 64 == 0) __builtin_prefetch(next + line, 0, 2);
        }
}

/* As many terms as there are whole runs, of two registers of columns of one row; how many. */
INLINED ptrdiff_t few_copied(const int kind, const int rows, ptrdiff_t depth, const float *a, const char *b,
                             ptrdiff_t b_step, vecf x[2][FEW_ROWS]) {
    const ptrdiff_t whole = whole_block_of(kind), run = FEW_RUN / bytes_of(kind);
    char runs[2 * F32_LANES * FEW_STEP] __attribute__((aligned(64)));
    ptrdiff_t k = 0;
    for (; k + run <= depth; k += run) {
        const char *begin = b + k * bytes_of(kind);
        copy_runs(begin, b_step, k + 2 * run <= depth ? begin + FEW_RUN : b + 2 * F32_LANES * b_step, runs);
        for (ptrdiff_t at = 0; at < run; at += whole)
            for (int turn = 0; turn < 2; turn++)
                few_whole_block(kind, rows, a + (k + at) * rows,
                                runs + turn * F32_LANES * FEW_STEP + at * bytes_of(kind), FEW_STEP, x[turn]);
    }
    return k;
}

/* Terms before the first whole line of columns `APART`, which share sets of the nearest cache: of two lines that loads
 * went across, the second would be gone before the next block. */
INLINED ptrdiff_t few_lead(const int kind, const char *b, ptrdiff_t b_step, ptrdiff_t depth) {
    const ptrdiff_t before = (ptrdiff_t)(-(uintptr_t)b & 63);
    if (F32_LANES < 16 || b_step % APART != 0 || before % bytes_of(kind) != 0) return 0;
    return before / bytes_of(kind) < depth ? before / bytes_of(kind) : 0;
}

INLINED void few_across_of(const int kind, const int rows, ptrdiff_t depth, const float *a, const char *b,
                           ptrdiff_t b_step, ptrdiff_t cols, float *sums, ptrdiff_t step) {
    const ptrdiff_t whole = whole_block_of(kind);
    const int turns = turns_of(rows);
    for (ptrdiff_t j = 0; j < cols; j += turns * F32_LANES) {
        vecf x[2][FEW_ROWS];
        for (int i = 0; i < rows; i++) x[0][i] = x[1][i] = vf_set(0);
        const char *place = b + j * b_step;
        ptrdiff_t k = 0;
        if (cols - j >= turns * F32_LANES) {
            for (const ptrdiff_t lead = few_lead(kind, place, b_step, depth); k < lead;) {
                const ptrdiff_t some = lead - k < F32_LANES ? lead - k : F32_LANES;
                few_block(kind, rows, a + k * rows, place + k * bytes_of(kind), b_step, F32_LANES, some, x[0]);
                k += some;
            }
            if (turns == 2 && kind != OF_F32 && b_step % APART == 0)
                k = few_copied(kind, rows, depth, a, place, b_step, x);
            for (; k + whole <= depth; k += whole)
                for (int turn = 0; turn < turns; turn++)
                    few_whole_block(kind, rows, a + k * rows,
                                    place + turn * F32_LANES * b_step + k * bytes_of(kind), b_step, x[turn]);
        }
        for (; k < depth; k += F32_LANES)
            for (int turn = 0; turn < turns; turn++)
                few_block(kind, rows, a + k * rows, place + turn * F32_LANES * b_step + k * bytes_of(kind), b_step,
                          cols - j - turn * F32_LANES, depth - k < F32_LANES ? depth - k : F32_LANES, x[turn]);
        for (int turn = 0; turn < turns && cols - j > turn * F32_LANES; turn++)
            for (int i = 0; i < rows; i++) vf_store(sums + i * step + j + turn * F32_LANES, x[turn][i]);
    }
}

typedef void (*f32_few_fn)(ptrdiff_t depth, const float *a, const char *b, ptrdiff_t b_step, ptrdiff_t cols,
                           float *sums, ptrdiff_t step);

#define FEW_OF(kind, rows) \
    static void few_down_##kind##_##rows(ptrdiff_t depth, const float *a, const char *b, ptrdiff_t b_step, \
                                         ptrdiff_t cols, float *sums, ptrdiff_t step) { \
        few_down_of(kind, rows, depth, a, b, b_step, cols, sums, step); \
    } \
    static void few_across_##kind##_##rows(ptrdiff_t depth, const float *a, const char *b, ptrdiff_t b_step, \
                                           ptrdiff_t cols, float *sums, ptrdiff_t step) { \
        few_across_of(kind, rows, depth, a, b, b_step, cols, sums, step); \
    }
#define FEW_OF_KIND(kind) FEW_OF(kind, 1) FEW_OF(kind, 2) FEW_OF(kind, 3) FEW_OF(kind, 4)
FEW_OF_KIND(OF_F32) FEW_OF_KIND(OF_F16) FEW_OF_KIND(OF_BF16)
#undef FEW_OF
#undef FEW_OF_KIND

#define EACH_OF(way, kind) \
    { few_##way##_##kind##_1, few_##way##_##kind##_2, few_##way##_##kind##_3, few_##way##_##kind##_4 }
static const f32_few_fn f32_fews_down[4][FEW_ROWS] = {
    { NULL }, EACH_OF(down, OF_F32), EACH_OF(down, OF_F16), EACH_OF(down, OF_BF16),
};
static const f32_few_fn f32_fews_across[4][FEW_ROWS] = {
    { NULL }, EACH_OF(across, OF_F32), EACH_OF(across, OF_F16), EACH_OF(across, OF_BF16),
};
#undef EACH_OF

static inline void f32_few_down(int kind, int rows, ptrdiff_t depth, const float *a, const char *b,
                                ptrdiff_t b_step, ptrdiff_t cols, float *sums, ptrdiff_t step) {
    f32_fews_down[kind][rows - 1](depth, a, b, b_step, cols, sums, step);
}
static inline void f32_few_across(int kind, int rows, ptrdiff_t depth, const float *a, const char *b,
                                  ptrdiff_t b_step, ptrdiff_t cols, float *sums, ptrdiff_t step) {
    f32_fews_across[kind][rows - 1](depth, a, b, b_step, cols, sums, step);
}

/* What sums of pieces add up to, in place of the first `cols` floats of rows `stride` bytes apart. */
static void f32_add_sums(const float *sums, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t cols, char *total,
                         ptrdiff_t stride, int add) {
    for (ptrdiff_t i = 0; i < rows; i++, sums += step, total += stride)
        for (ptrdiff_t j = 0; j < cols; j += F32_LANES) {
            const ptrdiff_t n = cols - j;
            vecf x = vf_load(sums + j);
            if (add) x = vf_add(f32_widened_first(OF_F32, total + j * 4, n), x);
            x = vf_tidy(x);
            if (n >= F32_LANES) vf_store(total + j * 4, x);
            else {
                float all[F32_LANES];
                vf_store(all, x);
                memcpy(total + j * 4, all, (size_t)n * 4);
            }
        }
}

#endif
