/* Leaky ReLU and its gradient by lanes. */
#ifndef ACLNN_LANE_LEAKY_RELU_H
#define ACLNN_LANE_LEAKY_RELU_H

#include "lane_loops.h"

#ifdef LANES

typedef struct { float slope, near; int at_once; } leaky_relu_t;
PARAMS_FIT(leaky_relu_t);
#define LEAKY_RELU_PARAMS(params) OWN_PARAMS(leaky_relu_t, params)

static inline int leaky_relu_suspect(float g, float x, float r, const double *p) { return is_extreme(r); }

INLINED lanes_t leaky_relu_single_lanes(const params_t *params, lanes_t g, lanes_t x, seen_t *seen) {
    lanes_t slope = lanes_of(LEAKY_RELU_PARAMS(params)->slope);
    return show(seen, choose_times(not_above_zero(x), g, slope));
}

INLINED lanes_t leaky_relu_half_lanes(const params_t *params, lanes_t g, lanes_t x, seen_t *seen) {
    lanes_t slope = lanes_of(LEAKY_RELU_PARAMS(params)->slope);
    return show(seen, choose_times_to_odd(not_above_zero(x), g, slope));
}

/* Below what floats can tell apart, rounding to odd loses what it stands on. */
INLINED lanes_t leaky_relu_bfloat_lanes(const params_t *params, lanes_t g, lanes_t x, seen_t *seen) {
    lanes_t result = leaky_relu_half_lanes(params, g, x, seen);
    see_size(seen, result, not_zero(result));
    return result;
}

/* A product that is rounded to a float and then to a half may come out wrong: where the first
 * rounding lands in the middle of two halves. Whether that happens depends on the digits of the
 * slope and of the half alone, so that all halves can be tried before.
 *
 * Whether the product with `near`, rounded to a float, lies on the same side of every middle as the
 * exact product with `slope`: the same first twelve digits, and after them nothing, or something. */
static inline int on_same_sides(float slope, float near) {
    const unsigned all = (1u << LANES) - 1u;
    unsigned wrong = 0;
    for (uint32_t j = 0; j < 1u << 10; j += LANES) {
        ints_t mantissa = int_left(numbers_from(j), 13);
        lanes_t x = floats_of(int_plus(mantissa, ints_of(0x3f800000u)));
        ints_t odd = bits_of(choose_times_to_odd(above_zero(x), x, lanes_of(slope)));
        ints_t rounded = bits_of(times(x, lanes_of(near)));
        wrong |= all & ~which_miss(int_xor(odd, rounded), ints_of(0xfffff000u));
        wrong |= which_miss(odd, ints_of(0xfffu)) ^ which_miss(rounded, ints_of(0xfffu));
    }
    return !wrong;
}

/* Whether no product of a bfloat with the slope becomes a middle: then ties need no care either. */
static inline int never_in_the_middle(float slope) {
    unsigned found = 0;
    for (uint32_t j = 0; j < 1u << 7; j += LANES) {
        ints_t mantissa = int_left(numbers_from(j), 16);
        lanes_t x = floats_of(int_plus(mantissa, ints_of(0x3f800000u)));
        ints_t product = bits_of(times(x, lanes_of(slope)));
        found |= which_miss(int_xor(product, ints_of(0x8000u)), ints_of(0xffffu));
    }
    return !found;
}

/* Whether all halves of a kind may be rounded at once; `near` is what they are multiplied by then. */
static int can_round_at_once(kind_t kind, float slope, float *near) {
    *near = slope;
    if (is_extreme(slope)) return 0;
    if (kind == BFLOAT) return never_in_the_middle(slope);
    /* Decimal fractions often come close to middles, and their neighbours do not. */
    for (int step = 0; step < 3; step++) {
        *near = f32_of_bits(bits_of_f32(slope) + (step == 2 ? 0xffffffffu : (uint32_t)step));
        if (on_same_sides(slope, *near)) return 1;
    }
    return 0;
}

/* What a thread found out last: runs mostly come with one slope, and a short one takes less time than to
 * find out. */
typedef struct { kind_t kind; uint32_t slope; leaky_relu_t found; } leaky_relu_memo_t;
static _Thread_local leaky_relu_memo_t leaky_relu_memo = { SINGLE, 0, { 0.0f, 0.0f, 0 } };

static void prepare_leaky_relu(params_t *params, kind_t kind) {
    leaky_relu_memo_t *memo = &leaky_relu_memo;
    float slope = (float)params->p[0];
    if (kind == SINGLE) {
        *LEAKY_RELU_PARAMS(params) = (leaky_relu_t){ slope, slope, 0 };
        return;
    }
    if (kind != memo->kind || bits_of_f32(slope) != memo->slope) {
        memo->kind = kind;
        memo->slope = bits_of_f32(slope);
        memo->found.slope = slope;
        memo->found.at_once = can_round_at_once(kind, slope, &memo->found.near);
    }
    *LEAKY_RELU_PARAMS(params) = memo->found;
}

static const limits_t LEAKY_RELU_LIMITS = { .finite = 1 };
LOOP(leaky_relu_single_loop, leaky_relu_single_lanes, SINGLE, SINGLE, LEAKY_RELU_LIMITS, 0)
HALF_LOOPS(leaky_relu, leaky_relu_half_lanes, leaky_relu_bfloat_lanes, leaky_relu_bfloat_lanes, LEAKY_RELU_LIMITS, 0)

INLINED lanes_t scaled(const leaky_relu_t *params, lanes_t g) {
    return times(g, lanes_of(params->near));
}
INLINED ints_t scaled_halves(const leaky_relu_t *params, const char *g) {
    lanes_t low = load_kind(HALF, g), high = load_kind(HALF, g + 2 * LANES);
    return both_halves(to_halves(scaled(params, low)), to_halves(scaled(params, high)));
}
INLINED ints_t scaled_bfloats(const leaky_relu_t *params, const char *p) {
    const ints_t middle = ints_of(0x8000u);
    ints_t g = ints_load(p);
    lanes_t even = floats_of(int_left(g, 16)), odd = floats_of(int_and(g, ints_of(0xffff0000u)));
    return interleave_upper(int_plus(bits_of(scaled(params, even)), middle),
                       int_plus(bits_of(scaled(params, odd)), middle));
}
INLINED ints_t leaky_relu_half_line(
        const void *params, const char *x, const char *unused, seen_t *seen) {
    ints_t same = ints_load(x), result = short_positive(same, same, scaled_halves(params, x));
    see_short_most(seen, result);
    return result;
}
INLINED ints_t leaky_relu_bfloat_line(
        const void *params, const char *x, const char *unused, seen_t *seen) {
    ints_t same = ints_load(x), result = short_positive(same, same, scaled_bfloats(params, x));
    see_short_sizes(seen, result);
    return result;
}
/* A NaN in x does not show in the result, if it is taken for positive. */
INLINED ints_t leaky_backward_half_line(
        const void *params, const char *g, const char *x, seen_t *seen) {
    ints_t result = short_within(ints_load(x), 1u, 0x7c00u - 1u, ints_load(g), scaled_halves(params, g));
    see_short_most(seen, result);
    return result;
}
INLINED ints_t leaky_backward_bfloat_line(
        const void *params, const char *g, const char *x, seen_t *seen) {
    ints_t result = short_within(ints_load(x), 1u, 0x7f80u - 1u, ints_load(g), scaled_bfloats(params, g));
    see_short_sizes(seen, result);
    return result;
}
LINE_LOOP(leaky_relu_at_once_half, leaky_relu_half_line, leaky_relu_t, HALF)
LINE_LOOP(leaky_relu_at_once_bfloat, leaky_relu_bfloat_line, leaky_relu_t, BFLOAT)
LINE_LOOP(leaky_backward_at_once_half, leaky_backward_half_line, leaky_relu_t, HALF)
LINE_LOOP(leaky_backward_at_once_bfloat, leaky_backward_bfloat_line, leaky_relu_t, BFLOAT)
static int leaky_relu_by_slope_half_loop(const span_t *s) {
    if (!LEAKY_RELU_PARAMS(s->params)->at_once) return leaky_relu_half_loop(s);
    return s->a == s->b ? leaky_relu_at_once_half(s) : leaky_backward_at_once_half(s);
}
static int leaky_relu_by_slope_bfloat_loop(const span_t *s) {
    if (!LEAKY_RELU_PARAMS(s->params)->at_once) return leaky_relu_bfloat_loop(s);
    return s->a == s->b ? leaky_relu_at_once_bfloat(s) : leaky_backward_at_once_bfloat(s);
}
static const lane_loops_t leaky_relu_loops = {
    leaky_relu_single_loop, leaky_relu_by_slope_half_loop, leaky_relu_by_slope_bfloat_loop,
    leaky_relu_to_half_loop, leaky_relu_to_bfloat_loop,
};

MARK(leaky_relu)

/* What a single keeps is not computed: not even a NaN, which by way of a double would become quiet. Halves
 * are converted, so that theirs become quiet anyway. */
static inline int leaky_relu_computed_suspect(float g, float x, float r, const double *p) {
    return is_extreme(r) & !(x > 0.0f);
}
MARK(leaky_relu_computed)

#define LEAKY_RELU_FORMS \
    { "leaky_relu", { &leaky_relu_loops, prepare_leaky_relu, leaky_relu_mark, leaky_relu_computed_mark } }, \
    { "leaky_relu_backward", { &leaky_relu_loops, prepare_leaky_relu, leaky_relu_mark, leaky_relu_computed_mark } },

#endif

#endif
