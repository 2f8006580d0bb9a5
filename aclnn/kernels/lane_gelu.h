/* GELU and its gradient by lanes, exact and with tanh. */
#ifndef ACLNN_LANE_GELU_H
#define ACLNN_LANE_GELU_H

#include "lane_exp.h"
#include "lane_loops.h"

#ifdef LANES

#define GELU_LAST 0xc13fffffu /* beside -12, where the tables end */
#define GELU_FARTHEST 0x1.7ffffep+3f /* the distance of that */
#define GELU_BEYOND 0x1.9p+3f /* a distance at which all factors are 0, of sixteen lanes */
#define GELU_TANH_LAST 0xc10fffffu /* beside -9, where e^(-2w) is 2^-96 and its tables end */
#define GELU_TANH_FARTHEST 0x1.1ffffep+3f
/* Roots of the gradients, negative: multiples of 2^-20, whose distance to larger numbers is exact. */
#define GELU_ROOT 0x1.80eaep-1f
#define GELU_TANH_ROOT 0x1.8142ap-1f
#define GELU_BESIDE 0x36000000u /* 2^-19: so near the root its low part has too few digits */

static inline int is_beside(float x, float root) {
    float t = x < 0.0f ? -x : x;
    return (bits_of_f32(root - t) & 0x7fffffffu) <= GELU_BESIDE;
}
static inline int gelu_backward_suspect(float g, float x, float r, const double *p) {
    return is_extreme(r) | (bits_of_f32(x) > GELU_LAST) | is_beside(x, GELU_ROOT);
}
static inline int gelu_backward_tanh_suspect(float g, float x, float r, const double *p) {
    return is_extreme(r) | (bits_of_f32(x) > GELU_TANH_LAST) | is_beside(x, GELU_TANH_ROOT);
}
static inline int gelu_suspect(float x, float same, float r, const double *p) {
    return is_extreme(r) | (bits_of_f32(x) > GELU_LAST);
}
static inline int gelu_tanh_suspect(float x, float same, float r, const double *p) {
    return is_extreme(r) | (bits_of_f32(x) > GELU_TANH_LAST);
}

/* At -t, GELU over -t and its gradient over t0 - t, t0 its root, are an exponential times a smooth factor
 * F(t). The exact form has e^(-t^2/2); F is Mills' ratio, or S of the gradient, over sqrt(2 pi). The form
 * with tanh has e^(-2w); F is 1/(1 + e^(-2w)), or its own S.
 *
 * The exponential is e^(-y/2), with y = t^2 or 4w, so that t^2 need not be halved, and becomes
 * power e^(-r/2); F = lead (1 + shape), and power * lead is exact. Octaves are taken off with an ln(2) of
 * 13 bits, so that any number of them is exact. What they lack together is e^(EXP_LACK (y - r) / 2): the
 * part in y is as smooth as F, and in its tables; that in r is in the polynomial of the rest. */
/* z (rise + rise_low) + constant, which may be known to be 0. */
typedef struct { lanes_t z, rise, rise_low, constant; int through_0; } shape_t;
typedef struct { lanes_t power, r, lead; shape_t shape; } gelu_parts_t;
#define EXP_LACK 0x1.82a316p-15f /* ln(2) is LN2 (1 + EXP_LACK) */

/* How t is cut into intervals: (bits of place) >> shift numbers them, place = offset + scale t. There are
 * many where a register, or two of them, look many up. Where they are few and long, z is stretched, which
 * saves three of eight coefficients of a factor of phi. */
typedef struct { const float *centers; float offset, scale; int shift, places, stretched; } cut_t;
#if LANES == 16
static const cut_t SLOPE_CUT = { SLOPE_CENTERS, 1.0f, 1.0f, 20, 32, 0 };
static const cut_t MILLS_CUT = { MILLS_CENTERS, 1.0f, 1.0f, 20, 32, 0 };
static const cut_t NEAR_CUT = { 0, 1.0f, 1.125f, 20, 32, 0 };
static const cut_t TANH_CUT = { GELU_TANH_CENTERS, 1.0f, 1.625f, 20, 32, 0 };
#else
static const cut_t SLOPE_CUT = { SLOPE_WIDE_CENTERS, 7.0f, 1.75f, 21, 8, 1 };
static const cut_t MILLS_CUT = { MILLS_WIDE_CENTERS, 1.0f, 1.25f, 21, 16, 0 };
static const cut_t NEAR_CUT = { GELU_WIDE_CENTERS, 7.0f, 1.75f, 21, 8, 1 };
static const cut_t TANH_CUT = { GELU_TANH_WIDE_CENTERS, 1.0f, 1.625f, 21, 16, 0 };
#define GELU_SHIFTS GELU_WIDE_SHIFTS
#define SLOPE_LEADS SLOPE_WIDE_LEADS
#define SLOPE_SHAPES SLOPE_WIDE_SHAPES
#define SLOPE_NEAR_SHAPES SLOPE_WIDE_NEAR_SHAPES
#define MILLS_LEADS MILLS_WIDE_LEADS
#define MILLS_SHAPES MILLS_WIDE_SHAPES
#define MILLS_NEAR_SHAPES MILLS_WIDE_NEAR_SHAPES
#define TANH_SLOPE_LEADS TANH_SLOPE_WIDE_LEADS
#define TANH_SLOPE_SHAPES TANH_SLOPE_WIDE_SHAPES
#define TANH_SHARE_LEADS TANH_SHARE_WIDE_LEADS
#define TANH_SHARE_SHAPES TANH_SHARE_WIDE_SHAPES
#endif

INLINED lanes_t pick_interval(cut_t cut, const float *row, ints_t interval) {
#if LANES == 16
    return pick32(row, interval);
#else
    return cut.places == 8 ? pick8(row, interval) : pick16(row, interval);
#endif
}

/* Polynomials in z, a row for each power, constant first; `through_0`: they have none. */
typedef struct { cut_t cut; const float *rows; int count, through_0; } polynomials_t;
#define POLYNOMIALS(cut, table, through_0) \
    { cut, (table)[0], (int)(sizeof(table) / sizeof((table)[0])), through_0 }
#define SLOPE_NEAR (polynomials_t)POLYNOMIALS(NEAR_CUT, SLOPE_NEAR_SHAPES, 0)
#define MILLS_NEAR (polynomials_t)POLYNOMIALS(NEAR_CUT, MILLS_NEAR_SHAPES, 0)

/* A factor; whether it is one of phi, whose shapes are 0 at their centers, and whether it is so flat on
 * every interval that what rounding takes from its shape does not matter. */
typedef struct { const float *leads; polynomials_t shapes; int of_phi, flat; } factor_t;
#define FACTOR(name, cut, of_phi, flat) \
    (factor_t){ name##_LEADS, POLYNOMIALS(cut, name##_SHAPES, of_phi), of_phi, flat }
#define SLOPE FACTOR(SLOPE, SLOPE_CUT, 1, 1)
#define MILLS FACTOR(MILLS, MILLS_CUT, 1, LANES == 16)
#define TANH_SLOPE FACTOR(TANH_SLOPE, TANH_CUT, 0, LANES == 16)
#define TANH_SHARE FACTOR(TANH_SHARE, TANH_CUT, 0, LANES == 16)

INLINED shape_t gelu_polynomial(polynomials_t p, lanes_t t, ints_t *interval) {
    const lanes_t offset = lanes_of(p.cut.offset);
    lanes_t place = p.cut.scale == 1.0f ? plus(t, offset) : fma_of(t, lanes_of(p.cut.scale), offset);
    *interval = int_right(bits_of(place), p.cut.shift);
    lanes_t z = p.cut.centers ? minus(t, pick_interval(p.cut, p.cut.centers, *interval)) : t;
    if (p.cut.stretched) z = divided(z, place);
    const int first = p.through_0 ? 0 : 1; /* row of what is linear */
    lanes_t sum = pick_interval(p.cut, p.rows + (p.count - 1) * p.cut.places, *interval);
    for (int k = p.count - 2; k > first; k--)
        sum = fma_of(sum, z, pick_interval(p.cut, p.rows + k * p.cut.places, *interval));
    lanes_t linear = pick_interval(p.cut, p.rows + first * p.cut.places, *interval);
    lanes_t rise = fma_of(sum, z, linear), rise_low = fma_of(sum, z, minus(linear, rise));
    shape_t shape = { z, rise, rise_low, lanes_of(0.0f), p.through_0 };
    if (!p.through_0) shape.constant = pick_interval(p.cut, p.rows, *interval);
    return shape;
}
INLINED lanes_t gelu_sum(shape_t shape) {
    return shape.through_0 ? times(shape.rise, shape.z) : fma_of(shape.rise, shape.z, shape.constant);
}

/* 4w = sqrt(32/pi) (t + 0.044715 t^3) = near + low. The first coefficient has so few bits that what
 * rounding takes from the sum is exact. */
typedef struct { lanes_t near, low; } tanh_argument_t;
INLINED tanh_argument_t gelu_tanh_argument(lanes_t t) {
    const lanes_t linear = lanes_of(0x1.98p+1f), linear_low = lanes_of(0x1.08a67ap-8f);
    const lanes_t cubic = lanes_of(0x1.2444f2p-3f), cubic_low = lanes_of(0x1.49b16ap-28f);
    lanes_t square = times(t, t), square_low = fms_of(t, t, square);
    lanes_t factor = fma_of(cubic, square, linear);
    lanes_t factor_low = fma_of(cubic, square_low, fma_of(cubic_low, square, linear_low));
    factor_low = plus(fma_of(cubic, square, minus(linear, factor)), factor_low);
    lanes_t near = times(t, factor);
    tanh_argument_t argument = { near, fma_of(t, factor_low, fms_of(t, factor, near)) };
    return argument;
}

/* t, and y with the same square, for the power. `wraps`: where the power is too small for a float it may
 * become any number, for there the factor is 0. */
typedef struct { lanes_t t, y; int wraps; } gelu_argument_t;

INLINED gelu_parts_t gelu_single_parts(factor_t factor, gelu_argument_t at) {
    gelu_parts_t parts;
    whole_t n;
    const lanes_t t = at.t, y = at.y;
    if (factor.of_phi) {
        n = exp_whole(times(y, y), -0.5f, EXP_STEPS);
        lanes_t taken = exp_taken(n, LN2 * 2.0f, EXP_STEPS);
        parts.r = plus(fma_of(y, y, taken), pick_step(GELU_SHIFTS, n.steps));
    } else {
        tanh_argument_t w = gelu_tanh_argument(t);
        n = exp_whole(plus(w.near, w.low), -0.5f, EXP_STEPS);
        lanes_t low = plus(w.low, pick_step(GELU_SHIFTS, n.steps));
        parts.r = plus(fma_of(n.octaves, lanes_of(LN2 * 2.0f), w.near), low);
    }
    parts.power = at.wraps ? power_of_bits(pick_step((const float *)EXP_POWER_BITS, n.steps), EXP_STEPS, n)
                           : exp_power(pick_step((const float *)EXP_POWERS, n.steps), EXP_STEPS, n);
    ints_t interval;
    parts.shape = gelu_polynomial(factor.shapes, t, &interval);
    parts.lead = pick_interval(factor.shapes.cut, factor.leads, interval);
    return parts;
}

/* For t that were halves: t^2 is exact. */
INLINED gelu_parts_t gelu_half_parts(polynomials_t factor, lanes_t t) {
    gelu_parts_t parts;
    lanes_t square = times(t, t);
    whole_t n = exp_whole(square, -0.5f, EXP_NEAR_STEPS);
    parts.r = fma_of(n.octaves, lanes_of(LN2_NEAR * 2.0f), square);
    parts.power = exp_power(pick_near_step((const float *)EXP_NEAR_POWERS, n.steps), EXP_NEAR_STEPS, n);
    ints_t interval;
    parts.lead = gelu_sum(gelu_polynomial(factor, t, &interval));
    return parts;
}

/* (1 + shape) (e^(-(1 + EXP_LACK) r/2) - 1) + addend. */
INLINED lanes_t gelu_rest(const gelu_parts_t *parts, lanes_t shape, lanes_t addend) {
    const float scale = -0.5f * (1.0f + EXP_LACK);
    lanes_t tail = fma_of(parts->r, exp_tail_lanes(parts->r, scale), lanes_of(scale));
    return fma_of(fma_of(parts->r, shape, parts->r), tail, addend);
}

/* (tail + low) times what lead and power leave of the product, but for `tail` itself. */
INLINED lanes_t gelu_grown(factor_t factor, const gelu_parts_t *parts, lanes_t tail, lanes_t low) {
    lanes_t shape = gelu_sum(parts->shape);
    lanes_t whole = plus(tail, low);
    if (factor.flat && LANES == 16) return fma_of(whole, gelu_rest(parts, shape, shape), low);
    /* On longer intervals shapes are larger: rounding them once more, with the rest, would take too much. */
    if (factor.flat) return fma_of(whole, shape, fma_of(whole, gelu_rest(parts, shape, lanes_of(0.0f)), low));
    const shape_t *part = &parts->shape;
    lanes_t large = times(part->rise, part->z);
    lanes_t small = plus(fms_of(part->rise, part->z, large), part->constant);
    small = fma_of(part->rise_low, part->z, small);
    lanes_t rest = gelu_rest(parts, shape, small);
    return fma_of(tail, large, fma_of(tail, rest, fma_of(low, plus(large, rest), low)));
}

/* t, as far as there are intervals: beyond, they begin again. */
INLINED lanes_t gelu_bounded(lanes_t x) { return at_most(magnitude(x), GELU_FARTHEST); }

/* The same for those that find out what lies beyond. With sixteen lanes factors of phi need no look at x
 * for that: their tables end in zeros, which are seen. */
#if LANES == 16
INLINED lanes_t gelu_distance(lanes_t x) { return magnitude(x); }
#else
INLINED lanes_t gelu_distance(lanes_t x) { return gelu_bounded(x); }
#endif
/* Gradients of 0 need a power that keeps its sign, whatever x is, and a distance that is no number where x
 * is none; others do not, and take fewer operations. */
INLINED gelu_argument_t gelu_single_argument(factor_t factor, lanes_t x, seen_t *seen) {
#if LANES == 16
    if (factor.of_phi && seen->nonzero) return (gelu_argument_t){ lesser_magnitude(x, GELU_BEYOND), x, 1 };
    if (factor.of_phi) return (gelu_argument_t){ magnitude(x), x, 0 };
#endif
    see_argument(seen, x);
    lanes_t t = at_most(magnitude(x), factor.of_phi ? GELU_FARTHEST : GELU_TANH_FARTHEST);
    return (gelu_argument_t){ t, t, 0 };
}

typedef struct { float near, low; } root_t;
/* The root of GELU's gradient, and with tanh. */
#define SLOPE_ROOT (root_t){ GELU_ROOT, -0x1.cd01fep-22f }
#define TANH_SLOPE_ROOT (root_t){ GELU_TANH_ROOT, -0x1.85a06cp-27f }

/* On the right the gradient is 1 - tail: there the tail is negative, and the product gets its sign. */
INLINED lanes_t gelu_backward_single(factor_t factor, root_t root, lanes_t g, lanes_t x, seen_t *seen) {
    const lanes_t one = lanes_of(1.0f);
    gelu_argument_t at = gelu_single_argument(factor, x, seen);
    gelu_parts_t parts = gelu_single_parts(factor, at);
    choice_t right = above_zero(x);
    lanes_t lead = negative_where(right, times(parts.power, parts.lead));
    lanes_t near = minus(lanes_of(root.near), at.t);
    lanes_t near_low = plus(minus(minus(lanes_of(root.near), near), at.t), lanes_of(root.low));
    lanes_t tail = times(near, lead);
    lanes_t slope = plus_where(right, tail, one);
    lanes_t low = fma_of(near_low, lead, fms_of(near, lead, minus_where(right, slope, one)));
    lanes_t slope_low = gelu_grown(factor, &parts, tail, low);
    if (!factor.flat) { /* the low part is not small: of its product with g too much would be lost */
        lanes_t sum = plus(slope, slope_low);
        slope_low = plus(minus(slope, sum), slope_low);
        slope = sum;
    }
    choice_t some = not_zero(g);
    lanes_t result = fma_of(g, slope, added_to(seen, times(g, slope_low), some));
    see_size(seen, result, some);
    seen->nearest = least_magnitude(seen->nearest, near);
    return show(seen, result);
}
INLINED lanes_t gelu_backward_single_lanes(const params_t *none, lanes_t g, lanes_t x, seen_t *seen) {
    return gelu_backward_single(SLOPE, SLOPE_ROOT, g, x, seen);
}
INLINED lanes_t gelu_backward_tanh_single_lanes(const params_t *none, lanes_t g, lanes_t x, seen_t *seen) {
    return gelu_backward_single(TANH_SLOPE, TANH_SLOPE_ROOT, g, x, seen);
}

/* `t` may be less than the distance of x, so that exponents last. */
INLINED lanes_t gelu_backward_short(lanes_t distance, lanes_t t, lanes_t g, lanes_t x, seen_t *seen) {
    gelu_parts_t parts = gelu_half_parts(SLOPE_NEAR, t);
    lanes_t near = plus(minus(lanes_of(SLOPE_ROOT.near), distance), lanes_of(SLOPE_ROOT.low));
    lanes_t rest = exp_near_rest(parts.r, -0.5f);
    lanes_t lead = times(times(near, parts.power), parts.lead);
    lanes_t tail = fma_of(lead, rest, lead);
    return show(seen, times(g, one_minus_where(above_zero(x), tail)));
}

/* Results are 0 long before, whatever a half is multiplied by; what is infinite stays it. */
INLINED lanes_t gelu_backward_half_lanes(const params_t *none, lanes_t g, lanes_t x, seen_t *seen) {
    return gelu_backward_short(magnitude(x), gelu_bounded(x), g, x, seen);
}

INLINED lanes_t gelu_backward_bfloat_lanes(const params_t *none, lanes_t g, lanes_t x, seen_t *seen) {
    see_argument(seen, x);
    lanes_t t = gelu_distance(x);
    return gelu_backward_short(t, t, g, x, seen);
}

/* Of all halves the worst, with gradient 1, is 4.5e-7 off; another 6e-8 for the product with the
 * gradient, and for that with 1 + or - the bound, which is exact itself. */
static const limits_t GELU_BACKWARD_LIMITS = {
    .bound = 0x1.4p-21f, .most = GELU_LAST, .near = GELU_BESIDE, .finite = 1, .as_one = 1,
};
LOOPS(gelu_backward, gelu_backward_half_lanes, gelu_backward_bfloat_lanes, gelu_backward_single_lanes,
      a, GELU_BACKWARD_LIMITS, 0)
LOOPS_TABLE(gelu_backward)

/* max(x, 0) - t Phi(-t); of the product with the tail's first part what rounding takes is exact. For
 * zeros all that is taken away is +0, so that they keep their signs. */
INLINED lanes_t gelu_single(factor_t factor, lanes_t x, seen_t *seen) {
    gelu_argument_t at = gelu_single_argument(factor, x, seen);
    gelu_parts_t parts = gelu_single_parts(factor, at);
    lanes_t t = at.t, positive = positive_part(x);
    lanes_t tail = times(parts.power, parts.lead), shape = gelu_sum(parts.shape);
    lanes_t near = fnma_of(t, tail, positive);
    lanes_t low = fma_of(t, tail, minus(near, positive));
    lanes_t product = times(t, tail);
    low = fma_of(product, gelu_rest(&parts, shape, factor.flat ? shape : lanes_of(0.0f)), low);
    if (!factor.flat) low = fma_of(product, shape, low);
    lanes_t result = minus(near, low);
    see_size(seen, result, not_zero(x));
    return show(seen, result);
}
INLINED lanes_t gelu_single_lanes(const params_t *none, lanes_t x, lanes_t same, seen_t *seen) {
    return gelu_single(MILLS, x, seen);
}
INLINED lanes_t gelu_tanh_single_lanes(const params_t *none, lanes_t x, lanes_t same, seen_t *seen) {
    return gelu_single(TANH_SHARE, x, seen);
}

INLINED lanes_t gelu_short(lanes_t t, lanes_t x, seen_t *seen) {
    gelu_parts_t parts = gelu_half_parts(MILLS_NEAR, t);
    lanes_t lead = times(parts.power, parts.lead);
    lanes_t tail = fma_of(lead, exp_near_rest(parts.r, -0.5f), lead);
    return show(seen, fnma_of(magnitude(x), tail, positive_part(x)));
}
INLINED lanes_t gelu_half_lanes(const params_t *none, lanes_t x, lanes_t same, seen_t *seen) {
    return gelu_short(gelu_bounded(x), x, seen);
}
INLINED lanes_t gelu_bfloat_lanes(const params_t *none, lanes_t x, lanes_t same, seen_t *seen) {
    see_argument(seen, x);
    return gelu_short(gelu_distance(x), x, seen);
}

/* Half as much again as a bound with which every half still comes out right: nothing else takes part. */
static const limits_t GELU_LIMITS = { .bound = 0x1.8p-22f, .most = GELU_LAST, .finite = 1, .as_one = 1 };
LOOPS(gelu, gelu_half_lanes, gelu_bfloat_lanes, gelu_single_lanes, a, GELU_LIMITS, 0)
LOOPS_TABLE(gelu)

/* With tanh halves are computed as floats are: with fewer digits of w their exponentials would be too far
 * off. */
static const limits_t GELU_TANH_LIMITS = { .bound = 2e-7f, .most = GELU_TANH_LAST, .finite = 1 };
static const limits_t GELU_BACKWARD_TANH_LIMITS = {
    .bound = 2e-7f, .most = GELU_TANH_LAST, .near = GELU_BESIDE, .finite = 1, .as_one = 1,
};
LOOPS(gelu_tanh, gelu_tanh_single_lanes, gelu_tanh_single_lanes, gelu_tanh_single_lanes, a, GELU_TANH_LIMITS, 0)
LOOPS_TABLE(gelu_tanh)
LOOPS(gelu_backward_tanh, gelu_backward_tanh_single_lanes, gelu_backward_tanh_single_lanes,
      gelu_backward_tanh_single_lanes, a, GELU_BACKWARD_TANH_LIMITS, 0)
LOOPS_TABLE(gelu_backward_tanh)

MARK(gelu)
MARK(gelu_tanh)
MARK(gelu_backward)
MARK(gelu_backward_tanh)

#define GELU_FORMS \
    { "gelu", { &gelu_loops, NULL, gelu_mark } }, \
    { "gelu_tanh", { &gelu_tanh_loops, NULL, gelu_tanh_mark } }, \
    { "gelu_backward", { &gelu_backward_loops, NULL, gelu_backward_mark } }, \
    { "gelu_backward_tanh", { &gelu_backward_tanh_loops, NULL, gelu_backward_tanh_mark } },

#endif

#endif
