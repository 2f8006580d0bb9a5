/* Products of weights with an image whose results are finished in registers: floats, in the order of all products.
 *
 * Weights are packed: for each piece of k, panel after panel of about as many rows,
 *
 *     left[begin * rows + row * depth + k * panel rows + i] = weight [row + i, begin + k]
 *
 * The first panel of weights reads an image's columns where they lie, `offsets[k]` bytes from their first position, and
 * makes a panel of them on the way. Where columns lie in several rows of positions, or end within a register, the
 * panel is made first. Sums of several pieces wait in the output. To the last piece's are added what `ends` says. */
#ifndef ACLNN_DIRECT_H
#define ACLNN_DIRECT_H

#include "products/finish.h"
#include "products/image.h"
#ifdef LANES
#include <float.h>
#include "simd/pair.h"
#endif

enum { END_NONE, END_RELU, END_CLAMP, END_NAN, END_HARDSWISH, END_SILU };

/* Whether the activations after END_NAN may be asked for: single kernels compute them over vectors, too. */
static inline int direct_has_smooth_ends(void) {
#ifdef LANES
    return 1;
#else
    return 0;
#endif
}

/* What is done with complete sums: bias, an operand that is added (by way of alpha), and an activation. */
typedef struct {
    const float *bias;      /* of each row; NULL for none */
    const char *more;       /* NULL for none; its rows are `more_row` bytes apart */
    ptrdiff_t more_row;
    int scales_sums;        /* alpha times the sums is added to `more`; else the other way round */
    float alpha;
    int kind;
    float low, high;        /* numbers: with a bound that is NaN, all results are, as END_NAN says */
    double (*formula)(double, const double *); /* of an activation after END_NAN: what vectors cannot say */
} direct_end;

typedef struct {
    const image_t *image;
    int in_place;           /* nothing behind the last column may be read */
    ptrdiff_t rows, panels; /* of all weights of the group */
    char *out;              /* of the first of these rows, and of the first column */
    ptrdiff_t out_row;
    direct_end end;
    float *panel;           /* room for a piece of columns, and IMAGE_SLACK bytes */
} direct_t;

static inline ptrdiff_t direct_row(const direct_t *d, ptrdiff_t panel) { return d->rows * panel / d->panels; }

/* --- Ends ------------------------------------------------------------------------------------------ */

#ifdef LANES
INLINED vecf direct_positive(vecf x) { return vf_select(vf_is_at_most(x, vf_set(0)), vf_set(0), x); }
INLINED vecf direct_bounded(vecf x, float low, float high) { return vf_at_most(vf_at_least(x, low), high); }
#else
INLINED vecf direct_positive(vecf x) {
    for (int i = 0; i < F32_LANES; i++) x[i] = x[i] <= 0 ? 0 : x[i];
    return x;
}
INLINED vecf direct_bounded(vecf x, float low, float high) {
    for (int i = 0; i < F32_LANES; i++) {
        x[i] = x[i] < low ? low : x[i];
        x[i] = x[i] > high ? high : x[i];
    }
    return x;
}
#endif

/* As relu and clamp of single kernels (`arithmetic.pxd`): NaN stays. */
INLINED vecf direct_activated(const int kind, vecf x, float low, float high) {
    return kind == END_RELU ? direct_positive(x) : direct_bounded(x, low, high);
}
INLINED int is_short_end(const direct_end *end) { return end->kind && end->kind <= END_CLAMP; }
INLINED vecf direct_added(const direct_end *end, vecf x, vecf more) {
    return end->scales_sums ? vf_fma(x, vf_set(end->alpha), more) : vf_fma(more, vf_set(end->alpha), x);
}

/* As hardswish and silu of single kernels (`activations.pxd`), bit for bit: in pairs of vectors, and by the formula
 * for doubles where a result is no finite number, or so small that vectors may lose digits of it. */
INLINED vecf direct_smooth(const int kind, const direct_end *end, vecf x) {
#ifdef LANES
    const pair_t one = pair_exactly(x);
    mask_t is_sure = vf_is_equal(x, vf_set(0));
    vecf made;
    if (kind == END_SILU) {
        made = pair_rounded(pair_div(one, pair_add(pair_set(1), pair_exp_minus(one))), vf_is_nonzero(x));
    } else {
        const pair_t ramp = pair_add_less(pair_set(3), pair_bounded(one, -3, 3));
        const pair_t middle = pair_mul(pair_set(1 / 6.0), pair_mul(one, ramp));
        const pair_t found = pair_where_at_most(one, vf_set(-3), pair_set(0), middle);
        made = pair_rounded(found, vf_is_nonzero(found.low));
        is_sure = mask_or(is_sure, vf_is_at_most(x, vf_set(-3)));
    }
    is_sure = mask_or(is_sure, vf_between(vf_abs(made), 0x1p-119f, FLT_MAX));
    const unsigned sure = mask_bits(is_sure);
    if (sure == (1u << LANES) - 1) return made;
    float from[LANES], to[LANES];
    vf_store(from, x), vf_store(to, made);
    for (int i = 0; i < LANES; i++)
        if (!(sure >> i & 1)) to[i] = (float)end->formula(from[i], NULL);
    return vf_load(to);
#else
    return x;
#endif
}

#ifdef LANES
/* The same of two vectors side by side, whose chains of operations overlap, where all of it is known to end well: no
 * zero, and neither results nor exponentials beyond the normal numbers. */
enum { SMOOTH = 2 };
#define EACH _Pragma("GCC unroll 2") for (int i = 0; i < SMOOTH; i++)

INLINED int direct_is_usual(const int kind, const vecf *x) {
    const float most = kind == END_SILU ? 80.0f : 0x1p100f;
    const mask_t first = vf_between(vf_abs(x[0]), 0x1p-100f, most);
    return mask_bits(mask_and(first, vf_between(vf_abs(x[1]), 0x1p-100f, most))) == (1u << LANES) - 1;
}
INLINED void direct_usual_hardswish(const vecf *x, char *out) {
    vecf found[SMOOTH];
    EACH {
        const pair_t one = pair_exactly(x[i]), ramp = pair_add_less(pair_set(3), pair_bounded(one, -3, 3));
        const pair_t middle = pair_mul(pair_set(1 / 6.0), pair_mul(one, ramp));
        found[i] = vf_select(vf_is_at_most(x[i], vf_set(-3)), vf_set(0), vf_add(middle.high, middle.low));
    }
    EACH vf_store(out + i * F32_LANES * 4, found[i]);
}
/* e^-x as `pair_exp_minus` has it, and x / (1 + e^-x). */
INLINED void direct_usual_silu(const vecf *x, char *out) {
    whole_t n[SMOOTH];
    vecf r[SMOOTH], rest[SMOOTH], power[SMOOTH], inverse[SMOOTH], found[SMOOTH];
    pair_t e[SMOOTH];
    EACH n[i] = exp_whole(x[i], -1.0f, EXP_STEPS);
    EACH r[i] = vf_fms(n[i].octaves, vf_set(LN2_LOW), lookup_step(EXP_SHIFTS, n[i].steps));
    EACH r[i] = vf_add(vf_fma(n[i].octaves, vf_set(LN2), x[i]), r[i]);
    EACH rest[i] = vf_fms(vf_mul(r[i], r[i]), exp_tail_vec(r[i], -1.0f), r[i]);
    EACH power[i] = exp_power(lookup_step((const float *)EXP_POWERS, n[i].steps), EXP_STEPS, n[i]);
    EACH e[i].high = vf_fma(power[i], rest[i], power[i]);
    EACH e[i] = pair_of(e[i].high, vf_fma(power[i], rest[i], vf_sub(power[i], e[i].high)));
    EACH e[i] = pair_add(pair_set(1), e[i]);
    EACH inverse[i] = vf_reciprocal_estimate(e[i].high);
    EACH found[i] = vf_mul(x[i], inverse[i]);
    EACH rest[i] = vf_fnma(found[i], e[i].low, vf_fnma(found[i], e[i].high, x[i]));
    EACH vf_store(out + i * F32_LANES * 4, vf_add(found[i], vf_mul(rest[i], inverse[i])));
}
#undef EACH
#endif

/* The next larger double of one that is not 0. */
static double next_above(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += x > 0 ? 1 : -1;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* The formula of hardswish for doubles: beside 0 it is a little more than half of x, which breaks ties. */
static double direct_hardswish(double x, const double *p) {
    (void)p;
    if (fabs(x) < 1e-9) return x ? next_above(x / 2) : x;
    return x > 3 ? x : x <= -3 ? 0 : x * (x + 3) / 6;
}
INLINED void direct_smooth_row(const int kind, const direct_end *end, const char *from, char *out, ptrdiff_t n) {
#ifdef LANES
    for (; n >= SMOOTH * F32_LANES; n -= SMOOTH * F32_LANES) {
        const vecf x[SMOOTH] = { vf_load(from), vf_load(from + F32_LANES * 4) };
        if (!direct_is_usual(kind, x)) {
            vf_store(out, vf_tidy(direct_smooth(kind, end, x[0])));
            vf_store(out + F32_LANES * 4, vf_tidy(direct_smooth(kind, end, x[1])));
        } else if (kind == END_SILU) {
            direct_usual_silu(x, out);
        } else {
            direct_usual_hardswish(x, out);
        }
        from += SMOOTH * F32_LANES * 4, out += SMOOTH * F32_LANES * 4;
    }
#endif
    for (; n >= F32_LANES; n -= F32_LANES, from += F32_LANES * 4, out += F32_LANES * 4)
        vf_store(out, vf_tidy(direct_smooth(kind, end, vf_load(from))));
    if (n <= 0) return;
    const vecf x = vf_tidy(direct_smooth(kind, end, f32_widened_first(OF_F32, from, n)));
    memcpy(out, &x, (size_t)n * 4);
}
/* These activations of rows, which are too long to be there for each tile; with END_NAN there is nothing else. */
static void direct_smooth_rows(const direct_end *end, ptrdiff_t rows, ptrdiff_t cols, const char *from,
                               ptrdiff_t from_row, char *out, ptrdiff_t out_row) {
    for (ptrdiff_t i = 0; i < rows; i++, from += from_row, out += out_row) {
        if (end->kind == END_SILU) direct_smooth_row(END_SILU, end, from, out, cols);
        else if (end->kind == END_HARDSWISH) direct_smooth_row(END_HARDSWISH, end, from, out, cols);
        else for (ptrdiff_t j = 0; j < cols; j++) ((float *)out)[j] = NAN;
    }
}

/* Rows of complete sums, where they lie: what tiles at the edge and sums that were made elsewhere end with. */
static void direct_end_rows(const direct_end *end, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t cols, const float *sums,
                            ptrdiff_t step, char *out, ptrdiff_t out_row, const char *more) {
    char *const first = out;
    for (ptrdiff_t i = 0; i < rows; i++, sums += step, out += out_row, more += more ? end->more_row : 0)
        for (ptrdiff_t j = 0; j < cols; j += F32_LANES) {
            const ptrdiff_t n = cols - j < F32_LANES ? cols - j : F32_LANES;
            vecf x = f32_widened_first(OF_F32, (const char *)(sums + j), n);
            if (end->bias) x = vf_add(vf_set(end->bias[row + i]), x);
            if (more) x = direct_added(end, x, f32_widened_first(OF_F32, more + j * 4, n));
            if (is_short_end(end)) x = direct_activated(end->kind, x, end->low, end->high);
            x = vf_tidy(x);
            if (n == F32_LANES) vf_store(out + j * 4, x);
            else memcpy(out + j * 4, &x, (size_t)n * 4);
        }
    if (end->kind > END_CLAMP) direct_smooth_rows(end, rows, cols, first, out_row, first, out_row);
}

/* --- Tiles ----------------------------------------------------------------------------------------- */

INLINED void direct_sized(const int rows, const int vectors, const int on_the_way, ptrdiff_t depth, const float *a,
                          const char *b, const ptrdiff_t *offsets, float *panel, char *out, ptrdiff_t out_row, int add,
                          const direct_end *end, ptrdiff_t row, const char *more) {
    vecf sums[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(out + i * out_row, 1);
        if (vectors > 1) __builtin_prefetch(out + i * out_row + F32_LANES * 4, 1);
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) sums[i][j] = vf_set(0);
    }
    for (ptrdiff_t k = 0; k < depth; k++) {
        vecf columns[TILE_VECTORS];
        const char *from = on_the_way ? b + offsets[k] : (const char *)panel;
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) columns[j] = vf_load(from + j * F32_LANES * 4);
        if (on_the_way)
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) vf_store(panel + j * F32_LANES, columns[j]);
        panel += vectors * F32_LANES;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            const vecf one = vf_set(a[i]);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) sums[i][j] = vf_fma(one, columns[j], sums[i][j]);
        }
        a += rows;
    }
    if (add)
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                sums[i][j] = vf_add(vf_load(out + i * out_row + j * F32_LANES * 4), sums[i][j]);
    if (end && end->bias)
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            const vecf bias = vf_set(end->bias[row + i]);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) sums[i][j] = vf_add(bias, sums[i][j]);
        }
    if (end && more)
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                sums[i][j] = direct_added(end, sums[i][j], vf_load(more + i * end->more_row + j * F32_LANES * 4));
    if (end && end->kind == END_RELU) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) sums[i][j] = direct_activated(END_RELU, sums[i][j], 0, 0);
    } else if (end && end->kind == END_CLAMP) {
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) sums[i][j] = direct_activated(END_CLAMP, sums[i][j], end->low, end->high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++) vf_store(out + i * out_row + j * F32_LANES * 4, vf_tidy(sums[i][j]));
}

#define DIRECT_ARGUMENTS \
    ptrdiff_t depth, const float *a, const char *b, const ptrdiff_t *offsets, float *panel, char *out, \
            ptrdiff_t out_row, int add, const direct_end *end, ptrdiff_t row, const char *more
typedef void (*direct_fn)(DIRECT_ARGUMENTS);
#define DIRECT_SIZED(rows, vectors, way) \
    static void direct_tile_##rows##_##vectors##_##way(DIRECT_ARGUMENTS) { \
        direct_sized(rows, vectors, way, depth, a, b, offsets, panel, out, out_row, add, end, row, more); \
    }
#define ALL_OF(rows) \
    DIRECT_SIZED(rows, 1, 0) DIRECT_SIZED(rows, 1, 1) DIRECT_SIZED(rows, 2, 0) DIRECT_SIZED(rows, 2, 1)
ALL_OF(1) ALL_OF(2) ALL_OF(3) ALL_OF(4)
#if TILE_ROWS > 4
ALL_OF(5) ALL_OF(6)
#endif
#if TILE_ROWS > 6
ALL_OF(7) ALL_OF(8) ALL_OF(9) ALL_OF(10) ALL_OF(11) ALL_OF(12) ALL_OF(13) ALL_OF(14)
#endif
#undef ALL_OF
#define ALL_OF(rows) \
    { { direct_tile_##rows##_1_0, direct_tile_##rows##_1_1 }, { direct_tile_##rows##_2_0, direct_tile_##rows##_2_1 } }
static const direct_fn direct_tiles[TILE_ROWS][TILE_VECTORS][2] = {
    ALL_OF(1), ALL_OF(2), ALL_OF(3), ALL_OF(4),
#if TILE_ROWS > 4
    ALL_OF(5), ALL_OF(6),
#endif
#if TILE_ROWS > 6
    ALL_OF(7), ALL_OF(8), ALL_OF(9), ALL_OF(10), ALL_OF(11), ALL_OF(12), ALL_OF(13), ALL_OF(14),
#endif
};
#undef ALL_OF
#undef DIRECT_SIZED
#undef DIRECT_ARGUMENTS

/* --- Columns --------------------------------------------------------------------------------------- */

/* Vectors that make up a row of a panel, in their order: what lies behind a run of positions gives way to the next one, or
 * to the next row. */
typedef struct {
    int count;
    const char *from[2 * IMAGE_RUNS];
    ptrdiff_t at[2 * IMAGE_RUNS], left[2 * IMAGE_RUNS]; /* of the panel's columns; of positions of the run */
} direct_pieces;

INLINED void direct_pack_of(const int count, const direct_pieces *pieces, const ptrdiff_t *offsets, ptrdiff_t depth,
                            ptrdiff_t step, float *to) {
    for (ptrdiff_t k = 0; k < depth; k++, to += step)
#pragma GCC unroll 4
        for (int i = 0; i < count; i++) vf_store(to + pieces->at[i], vf_load(pieces->from[i] + offsets[k]));
}
/* A panel of n columns from several rows of positions, or of fewer than its registers hold. */
static void direct_pack(const direct_t *d, const ptrdiff_t *offsets, ptrdiff_t depth, ptrdiff_t col, ptrdiff_t n,
                        const int vectors, float *to) {
    const ptrdiff_t step = vectors * F32_LANES;
    direct_pieces pieces;
    pieces.count = 0;
    for (ptrdiff_t at = col; at < col + n;) {
        const image_run run = image_run_at(d->image, at, col + n);
        for (ptrdiff_t j = 0; j < run.count; j += F32_LANES, pieces.count++) {
            pieces.from[pieces.count] = d->image->data + run.from + j * 4;
            pieces.at[pieces.count] = at - col + j;
            pieces.left[pieces.count] = run.count - j;
        }
        at += run.count;
    }
    if (d->in_place) {
        for (ptrdiff_t k = 0; k < depth; k++, to += step)
            for (int i = 0; i < pieces.count; i++)
                vf_store(to + pieces.at[i], f32_widened_first(OF_F32, pieces.from[i] + offsets[k], pieces.left[i]));
        return;
    }
    switch (pieces.count) {
    case 1: direct_pack_of(1, &pieces, offsets, depth, step, to); break;
    case 2: direct_pack_of(2, &pieces, offsets, depth, step, to); break;
    case 3: direct_pack_of(3, &pieces, offsets, depth, step, to); break;
    case 4: direct_pack_of(4, &pieces, offsets, depth, step, to); break;
    default: direct_pack_of(pieces.count, &pieces, offsets, depth, step, to);
    }
}

/* Columns of a tile, and their panel. */
typedef struct {
    ptrdiff_t col, n, from;
    int vectors, is_edge, is_run; /* whether they fill no register, and are one run of the image */
    float *panel;
} direct_part;

/* Tiles that a panel of weights multiplies one after the other, where short columns leave room for their panels:
 * results are stored in long runs of few rows. Two or three tiles gain nothing. */
enum { LEAST_PARTS = 4, DIRECT_PARTS = 16 };
static inline int direct_parts(ptrdiff_t depth) {
    const ptrdiff_t parts = PIECE / depth;
    return parts < LEAST_PARTS ? 1 : parts < DIRECT_PARTS ? (int)parts : DIRECT_PARTS;
}

INLINED void direct_tile_of(const direct_t *d, const direct_part *part, const direct_fn tile, const float *a,
                            const ptrdiff_t *offsets, ptrdiff_t begin, ptrdiff_t depth, ptrdiff_t row, ptrdiff_t rows,
                            int last) {
    char *out = d->out + row * d->out_row + part->col * 4;
    const char *more = d->end.more ? d->end.more + row * d->end.more_row + part->col * 4 : NULL;
    if (!part->is_edge) {
        const direct_end *end = last ? &d->end : NULL;
        tile(depth, a, d->image->data + part->from, offsets, part->panel, out, d->out_row, begin > 0, end, row, more);
        return;
    }
    float sums[TILE_ROWS * F32_WIDE];
    const ptrdiff_t step = part->vectors * F32_LANES, n = part->n;
    if (begin > 0) f32_load_tile(OF_F32, out, d->out_row, rows, n, sums, step);
    tile(depth, a, NULL, offsets, part->panel, (char *)sums, step * 4, begin > 0, NULL, row, NULL);
    if (last) direct_end_rows(&d->end, row, rows, n, sums, step, out, d->out_row, more);
    else f32_store_tile(OF_F32, sums, step, rows, n, out, d->out_row);
}

/* Columns that are left over, a few: lanes are then rows of a panel of weights, and several panels are summed up side
 * by side. A tile would leave nearly all lanes empty. Behind weights is room for a vector. */
enum { NARROW_COLS = MOST_TILE_ROWS > F32_LANES ? 0 : 2, NARROW_PANELS = 4 };

static void direct_narrow_end(const direct_t *d, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t col, int add, int last,
                              vecf x) {
    char *const out = d->out + row * d->out_row + col * 4;
    float sums[F32_LANES], others[F32_LANES] = { 0 };
    if (add) {
        for (ptrdiff_t i = 0; i < rows; i++) memcpy(others + i, out + i * d->out_row, 4);
        x = vf_add(vf_load(others), x);
    }
    if (last && d->end.bias) x = vf_add(f32_widened_first(OF_F32, (const char *)(d->end.bias + row), rows), x);
    vf_store(sums, x);
    if (last) {
        const char *more = d->end.more ? d->end.more + row * d->end.more_row + col * 4 : NULL;
        direct_end end = d->end;
        end.bias = NULL;
        for (ptrdiff_t i = 0; more && i < rows; i++) memcpy(others + i, more + i * end.more_row, 4);
        direct_end_rows(&end, 0, 1, rows, sums, 0, (char *)sums, 0, more ? (const char *)others : NULL);
    }
    for (ptrdiff_t i = 0; i < rows; i++) memcpy(out + i * d->out_row, sums + i, 4);
}
static void direct_narrow(const direct_t *d, const direct_part *part, const float *left, ptrdiff_t begin,
                          ptrdiff_t depth, ptrdiff_t first, ptrdiff_t end, int last) {
    const ptrdiff_t step = part->vectors * F32_LANES;
    for (ptrdiff_t p = first; p < end; p += NARROW_PANELS)
        for (ptrdiff_t j = 0; j < part->n; j++) {
            const float *from[NARROW_PANELS], *b = part->panel + j;
            ptrdiff_t rows[NARROW_PANELS];
            vecf x[NARROW_PANELS];
            for (int i = 0; i < NARROW_PANELS; i++) {
                const ptrdiff_t panel = p + i < end ? p + i : p, row = direct_row(d, panel);
                from[i] = left + (row - direct_row(d, first)) * depth;
                rows[i] = direct_row(d, panel + 1) - row;
                x[i] = vf_set(0);
            }
            for (ptrdiff_t k = 0; k < depth; k++, b += step)
#pragma GCC unroll 4
                for (int i = 0; i < NARROW_PANELS; i++)
                    x[i] = vf_fma(vf_load(from[i]), vf_set(*b), x[i]), from[i] += rows[i];
            for (int i = 0; i < NARROW_PANELS && p + i < end; i++)
                direct_narrow_end(d, direct_row(d, p + i), rows[i], part->col + j, begin > 0, last, x[i]);
        }
}

/* A piece of k for some columns and panels of weights; with `last`, the results. `left` is the first panel's. */
static void direct_columns(const direct_t *d, const float *left, ptrdiff_t begin, ptrdiff_t depth, ptrdiff_t first,
                           ptrdiff_t end, ptrdiff_t col, ptrdiff_t cols, int last) {
    const image_t *image = d->image;
    ptrdiff_t offsets[PIECE], tap = begin % image->taps, channel = begin / image->taps * image->channel;
    const ptrdiff_t row0 = direct_row(d, first);
    const int most = direct_parts(depth), is_smooth = last && d->end.kind > END_CLAMP;
    direct_t plain = *d; /* what tiles do: activations that are too long for them follow, of rows of several */
    if (is_smooth) plain.end.kind = END_NONE;
    for (ptrdiff_t k = 0; k < depth; k++) {
        offsets[k] = channel + image->places[tap];
        if (++tap == image->taps) tap = 0, channel += image->channel;
    }
    for (const ptrdiff_t stop = col + cols; col < stop;) {
        direct_part parts[DIRECT_PARTS];
        int count = 0;
        for (; count < most && col < stop; count++, col += F32_WIDE) {
            direct_part *part = &parts[count];
            part->col = col, part->n = stop - col < F32_WIDE ? stop - col : F32_WIDE;
            part->vectors = part->n > F32_LANES ? 2 : 1;
            part->is_edge = part->n < part->vectors * F32_LANES;
            const image_run run = image_run_at(image, col, col + part->n);
            part->is_run = run.count == part->n && !part->is_edge, part->from = run.from;
            part->panel = d->panel + count * depth * F32_WIDE;
            if (!part->is_run) direct_pack(d, offsets, depth, col, part->n, part->vectors, part->panel);
        }
        if (parts[count - 1].n <= NARROW_COLS)
            direct_narrow(d, &parts[--count], left, begin, depth, first, end, last);
        for (ptrdiff_t p = first; p < end; p++) {
            const ptrdiff_t row = direct_row(d, p), rows = direct_row(d, p + 1) - row;
            const float *a = left + (row - row0) * depth;
            for (int i = 0; i < count; i++) {
                const direct_fn tile = direct_tiles[rows - 1][parts[i].vectors - 1][parts[i].is_run && p == first];
                direct_tile_of(&plain, &parts[i], tile, a, offsets, begin, depth, row, rows, last);
            }
            if (is_smooth && count > 0) {
                char *out = d->out + row * d->out_row + parts[0].col * 4;
                const ptrdiff_t n = parts[count - 1].col + parts[count - 1].n - parts[0].col;
                direct_smooth_rows(&d->end, rows, n, out, d->out_row, out, d->out_row);
            }
        }
    }
}

/* --- One row of weights, one channel --------------------------------------------------------------- */

/* Results of a channel by itself, `row` bytes of the image apart. Vectors of positions are results of a row; the last
 * one overlaps the one before it. Where a row is shorter than a vector, the next row overwrites what is stored behind
 * it, so rows have to be contiguous. */
enum { PLANE_ROWS = 7 };

INLINED void plane_store(const direct_end *end, vecf x, char *to, ptrdiff_t n) {
    if (end->bias) x = vf_add(vf_set(*end->bias), x);
    if (is_short_end(end)) x = direct_activated(end->kind, x, end->low, end->high);
    x = vf_tidy(x);
    if (n >= F32_LANES) vf_store(to, x);
    else memcpy(to, &x, (size_t)n * 4);
}
INLINED ptrdiff_t plane_col(ptrdiff_t vector, ptrdiff_t cols) {
    const ptrdiff_t x = vector * F32_LANES, last = cols > F32_LANES ? cols - F32_LANES : 0;
    return x < last ? x : last;
}

/* Some rows of results, whose sums share what is read of the weights. `left` rows of the plane begin at `out`. */
#define PLANE_ARGUMENTS \
    const char *data, const ptrdiff_t *places, ptrdiff_t taps, const float *weights, ptrdiff_t row, ptrdiff_t left, \
            ptrdiff_t cols, char *out, const direct_end *end
INLINED void plane_of_any(const int rows, PLANE_ARGUMENTS) {
    const ptrdiff_t vectors = (cols + F32_LANES - 1) / F32_LANES;
    for (ptrdiff_t v = 0; v < vectors; v++) {
        const ptrdiff_t x = plane_col(v, cols);
        vecf sums[PLANE_ROWS];
#pragma GCC unroll 7
        for (int r = 0; r < rows; r++) sums[r] = vf_set(0);
        for (ptrdiff_t k = 0; k < taps; k++) {
            const vecf weight = vf_set(weights[k]);
            const char *from = data + places[k] + x * 4;
#pragma GCC unroll 7
            for (int r = 0; r < rows; r++) sums[r] = vf_fma(weight, vf_load(from + r * row), sums[r]);
        }
#pragma GCC unroll 7
        for (int r = 0; r < rows; r++)
            plane_store(end, sums[r], out + (r * cols + x) * 4, (left - r) * cols - x);
    }
}
/* The same of 3 x 3 with steps of 1 between rows: a vector of the image is read once for three rows of results. */
INLINED void plane_of_nine(const int rows, PLANE_ARGUMENTS) {
    const ptrdiff_t vectors = (cols + F32_LANES - 1) / F32_LANES;
    vecf w[9];
#pragma GCC unroll 9
    for (int k = 0; k < 9; k++) w[k] = vf_set(weights[k]);
    for (ptrdiff_t v = 0; v < vectors; v++) {
        const ptrdiff_t x = plane_col(v, cols);
        vecf sums[PLANE_ROWS];
#pragma GCC unroll 7
        for (int r = 0; r < rows; r++) sums[r] = vf_set(0);
#pragma GCC unroll 9
        for (int i = 0; i < rows + 2; i++)
#pragma GCC unroll 3
            for (int j = 0; j < 3; j++) {
                const vecf one = vf_load(data + i * row + places[j] + x * 4);
#pragma GCC unroll 7
                for (int r = 0; r < rows; r++)
                    if (i - r >= 0 && i - r < 3) sums[r] = vf_fma(w[(i - r) * 3 + j], one, sums[r]);
            }
#pragma GCC unroll 7
        for (int r = 0; r < rows; r++)
            plane_store(end, sums[r], out + (r * cols + x) * 4, (left - r) * cols - x);
    }
}

typedef void (*plane_fn)(PLANE_ARGUMENTS);
#define PLANE_SIZED(name, rows) \
    static void name##_##rows(PLANE_ARGUMENTS) { name(rows, data, places, taps, weights, row, left, cols, out, end); }
#define ALL_OF(name) \
    PLANE_SIZED(name, 1) PLANE_SIZED(name, 2) PLANE_SIZED(name, 3) PLANE_SIZED(name, 4) PLANE_SIZED(name, 5) \
    PLANE_SIZED(name, 6) PLANE_SIZED(name, 7)
ALL_OF(plane_of_any) ALL_OF(plane_of_nine)
#undef ALL_OF
#define ALL_OF(name) { name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7 }
static const plane_fn planes[2][PLANE_ROWS] = { ALL_OF(plane_of_any), ALL_OF(plane_of_nine) };
#undef ALL_OF
#undef PLANE_SIZED
#undef PLANE_ARGUMENTS

static void direct_plane(const char *data, const ptrdiff_t *places, ptrdiff_t taps, const float *weights, ptrdiff_t row,
                         ptrdiff_t rows, ptrdiff_t cols, char *out, const direct_end *end) {
    const int is_square = taps == 9 && places[4] - places[3] == places[1] - places[0]
                          && places[5] - places[3] == places[2] - places[0];
    const plane_fn *sized = planes[is_square && places[3] - places[0] == row && places[6] - places[3] == row];
    const ptrdiff_t blocks = (rows + PLANE_ROWS - 1) / PLANE_ROWS;
    ptrdiff_t first = 0;
    for (ptrdiff_t block = 0; block < blocks; block++) { /* of about as many rows */
        const ptrdiff_t n = (rows - first + blocks - block - 1) / (blocks - block);
        sized[n - 1](data + first * row, places, taps, weights, row, rows - first, cols, out + first * cols * 4, end);
        first += n;
    }
    if (end->kind > END_CLAMP) direct_smooth_rows(end, 1, rows * cols, out, 0, out, 0);
}

#endif
