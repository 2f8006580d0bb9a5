/* Operators by lanes, for float32 results and for halves: loaded, computed, rounded and stored in
 * one go by the loops of `lane_loops.h`.
 *
 * A loop tells whether some element is suspect: not finite, smaller than what its parts can be told
 * apart in, or outside the range of its formula. `..._suspect` tells which, from an element's
 * inputs and what the loop made of it. Suspect and doubtful elements are computed again in double. So
 * no lane branches, and unusual values cost nothing until they occur.
 */
#ifndef ACLNN_LANE_FORMULAS_H
#define ACLNN_LANE_FORMULAS_H

#include "lane_exp.h"
#include "lane_loops.h"

#ifdef LANES

#define ELU_LAST 0xc2a00000u /* -80: the power's exponent must not run out */
#define GELU_LAST 0xc13fffffu /* beside -12, where the tables end */
#define GELU_FARTHEST 0x1.7ffffep+3f /* the distance of that */
#define GELU_BEYOND 0x1.9p+3f /* a distance at which all factors are 0, of sixteen lanes */
#define GELU_TANH_LAST 0xc10fffffu /* beside -9, where e^(-2w) is 2^-96 and its tables end */
#define GELU_TANH_FARTHEST 0x1.1ffffep+3f
/* Roots of the gradients, negative: multiples of 2^-20, whose distance to larger numbers is exact. */
#define GELU_ROOT 0x1.80eaep-1f
#define GELU_TANH_ROOT 0x1.8142ap-1f
#define LOGIT_FIRST 0x00800000u /* the least normal number */
#define LOGIT_REACH (0x3f7fffffu - LOGIT_FIRST) /* and how far it is from there to what is less than 1 */
#define GELU_BESIDE 0x36000000u /* 2^-19: so near the root its low part has too few digits */

static inline int leaky_relu_suspect(float g, float x, float r, const double *p) { return is_extreme(r); }

/* Scalars so far from 1 that the lanes might over- or underflow on the way. */
static inline int elu_backward_extreme(const double *p) {
    double slope = p[0] * p[1] * p[2];
    return !(p[2] > 0 && p[2] <= 1024 && slope <= 1048576 && slope >= 9.5e-7);
}
static inline int elu_extreme(const double *p) {
    double factor = p[0] * p[1], size = factor < 0 ? -factor : factor;
    return !(p[2] > 0 && p[2] <= 1024 && size <= 1048576 && size >= 9.5e-7 && p[2] * size >= 9.5e-7);
}
static inline int elu_suspect(float x, float same, float r, const double *p) {
    return elu_extreme(p) | is_extreme(x) | is_extreme(r);
}
static inline int elu_backward_suspect(float g, float x, float r, const double *p) {
    float y = (float)p[2] * (x < 0.0f ? x : 0.0f);
    return elu_backward_extreme(p) | is_extreme(r) | (bits_of_f32(y) > ELU_LAST);
}
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
static inline int logit_extreme(const double *p) { return !(p[0] < 1); }
/* The bounds cross. */
static inline int logit_crossed(const double *p) { return !(p[0] <= 0.5); }
static inline int logit_suspect(float x, float same, float r, const double *p) {
    float low = (float)p[0], high = 1.0f - low;
    float z = p[0] < 0 ? x : x < low ? low : x > high ? high : x;
    return logit_crossed(p) | (bits_of_f32(z) - LOGIT_FIRST > LOGIT_REACH);
}
static inline int logit_backward_suspect(float x, float dy, float r, const double *p) {
    float product = x * (1.0f - x);
    return logit_extreme(p) | is_extreme(r) | is_extreme(dy) | (product == 0) | (product - product != 0);
}

/* Of the functions that prepare facts, `n` is how many elements there are to compute, `kind` that of
 * all operands, SINGLE if they differ. */
static const limits_t NO_LIMITS = { 0 };

static void no_facts(facts_t *facts, ptrdiff_t n, kind_t kind) {}

/* --- ELU ------------------------------------------------------------------------------------- */

/* `table` of powers times `factor`. */
static inline void scale_powers(const void *table, int steps, float factor, float *scaled) {
    for (int j = 0; j < steps; j += LANES) {
        ints_t offset = octave_bits(steps, numbers_from((uint32_t)j));
        lanes_t power = floats_of(int_plus(ints_load((const float *)table + j), offset));
        ints_t bits = bits_of(times(lanes_of(factor), power));
        ints_store(scaled + j, int_minus(bits, offset));
    }
}

_Static_assert(
    sizeof(((elu_t *)0)->powers) >= EXP_STEPS * sizeof(float)
        && sizeof(((elu_t *)0)->shifts) >= EXP_STEPS * sizeof(float)
        && sizeof(((elu_t *)0)->near_powers) >= EXP_NEAR_STEPS * sizeof(float),
    "there is room for the tables");

/* The slope joins the tables: its first twelve bits the powers, which stay exact, the logarithm of
 * the rest the shifts. */
static void elu_facts(facts_t *facts, ptrdiff_t n, kind_t kind) {
    const double *p = facts->p;
    elu_t *elu = &facts->elu;
    double slope = p[2] * p[0] * p[1];
    float near = (float)slope;
    float lead = f32_of_bits((bits_of_f32(near) + 0x800u) & 0xfffff000u);
    float rest = (float)((slope - lead) / lead);
    float shift = rest - 0.5f * rest * rest;
    scale_powers(EXP_POWERS, EXP_STEPS, lead, elu->powers);
    scale_powers(EXP_NEAR_POWERS, EXP_NEAR_STEPS, near, elu->near_powers);
    for (int j = 0; j < EXP_STEPS; j += LANES)
        lanes_store(elu->shifts + j, plus(lanes_load(EXP_SHIFTS + j), lanes_of(shift)));
    elu->rate = (float)p[2];
    elu->scale = (float)p[1];
    elu->extreme = elu_backward_extreme(p);
}

/* rate min(x, 0) = n octaves + the return value; `unit`: the rate is known to be 1. */
static inline __attribute__((always_inline)) lanes_t elu_reduced(
        const elu_t *elu, lanes_t x, int unit, int steps, whole_t *n, seen_t *seen) {
    const lanes_t high = lanes_of(-LN2), low = lanes_of(-LN2_LOW);
    const lanes_t rate = lanes_of(elu->rate);
    lanes_t below = at_most(x, 0.0f);
    lanes_t y = unit ? below : times(rate, below);
    *n = exp_whole(y, 1.0f, steps);
    see_argument(seen, y);
    if (unit) return fma_of(n->octaves, low, fma_of(n->octaves, high, y));
    return plus(fma_of(n->octaves, high, y), fma_of(n->octaves, low, fms_of(rate, below, y)));
}

/* g slope e^y = g power + what the rest of the exponential adds to that, rounded together. */
static inline __attribute__((always_inline)) lanes_t elu_backward_single(
        const elu_t *elu, int unit, lanes_t g, lanes_t x, seen_t *seen) {
    whole_t n;
    lanes_t r = elu_reduced(elu, x, unit, EXP_STEPS, &n, seen);
    lanes_t rest = exp_rest(plus(r, pick_step(elu->shifts, n.steps)));
    lanes_t power = exp_power(pick_step(elu->powers, n.steps), EXP_STEPS, n);
    choice_t some = not_zero(g);
    lanes_t growth = added_to(seen, times(times(g, power), rest), some);
    lanes_t negative = fma_of(g, power, growth);
    lanes_t result = choose(above_zero(x), times(g, lanes_of(elu->scale)), negative);
    see_size(seen, negative, some);
    return show(seen, result);
}

static inline __attribute__((always_inline)) lanes_t elu_backward_short(
        const elu_t *elu, int unit, lanes_t g, lanes_t x, seen_t *seen) {
    whole_t n;
    lanes_t rest = exp_near_rest(elu_reduced(elu, x, unit, EXP_NEAR_STEPS, &n, seen), 1.0f);
    lanes_t power = exp_power(pick_near_step(elu->near_powers, n.steps), EXP_NEAR_STEPS, n);
    lanes_t slope = choose(above_zero(x), lanes_of(elu->scale), fma_of(power, rest, power));
    return show(seen, times(g, slope));
}

#define ELU(s) (&((const facts_t *)(s))->elu)
static inline lanes_t elu_backward_single_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    return elu_backward_single(ELU(facts), 0, g, x, seen);
}
static inline lanes_t elu_backward_half_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    return elu_backward_short(ELU(facts), 0, g, x, seen);
}
static inline lanes_t elu_unit_single_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    return elu_backward_single(ELU(facts), 1, g, x, seen);
}
static inline lanes_t elu_unit_half_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    return elu_backward_short(ELU(facts), 1, g, x, seen);
}

static const limits_t ELU_LIMITS = { .bound = 3.5e-7f, .most = ELU_LAST, .finite = 1 };
LOOPS(elu_backward, elu_backward_half_lanes, elu_backward_half_lanes, elu_backward_single_lanes, a,
      ELU_LIMITS, FACTS(s)->elu.extreme)
LOOPS(elu_unit, elu_unit_half_lanes, elu_unit_half_lanes, elu_unit_single_lanes, a,
      ELU_LIMITS, FACTS(s)->elu.extreme)
#define ELU_BY_RATE(kind) \
    static int elu_by_rate_##kind(const span_t *s) { \
        return FACTS(s)->elu.rate == 1.0f ? elu_unit_##kind(s) : elu_backward_##kind(s); \
    }
ELU_BY_RATE(0)
ELU_BY_RATE(1)
ELU_BY_RATE(2)
ELU_BY_RATE(3)
ELU_BY_RATE(4)
LOOPS_TABLE(elu_by_rate)

static void growth_facts(facts_t *facts, ptrdiff_t n, kind_t kind) {
    const double *p = facts->p;
    growth_t *growth = &facts->growth;
    double factor = p[0] * p[1];
    growth->rate = (float)p[2];
    growth->scale = (float)p[1];
    growth->factor = (float)factor;
    growth->factor_low = (float)(factor - growth->factor);
    growth->last = (float)(-80.0 / p[2]);
    growth->extreme = elu_extreme(p);
}

#define GROWTH(s) (&((const facts_t *)(s))->growth)
/* e^y for y = rate max(min(x, 0), last): power (1 + high + low + what a polynomial makes of both). From
 * `last` on e^y - 1 is -1 to the last digit. `high` is exact. */
typedef struct { lanes_t power, high, low; } decay_t;
static inline decay_t elu_decay(const growth_t *growth, lanes_t x) {
    const lanes_t rate = lanes_of(growth->rate);
    decay_t d;
    lanes_t below = at_least(at_most(x, 0.0f), lanes_of(growth->last)), y = times(rate, below);
    whole_t n = exp_whole(y, 1.0f, EXP_STEPS);
    d.high = fma_of(n.octaves, lanes_of(-LN2), y);
    d.low = fma_of(n.octaves, lanes_of(-LN2_LOW), pick_step(EXP_SHIFTS, n.steps));
    d.low = plus(d.low, fms_of(rate, below, y));
    d.power = exp_power(pick_step((const float *)EXP_POWERS, n.steps), EXP_STEPS, n);
    return d;
}
static inline lanes_t elu_chosen(const growth_t *growth, lanes_t x, lanes_t negative) {
    return choose(above_zero(x), times(x, lanes_of(growth->scale)), negative);
}

/* factor (power - 1 + power (high + rest)), every sum in two parts: near the root of e^y - 1 they are
 * as large as it, or larger. */
static inline lanes_t elu_single_lanes(const void *facts, lanes_t x, lanes_t same, seen_t *seen) {
    const growth_t *growth = GROWTH(facts);
    const lanes_t one = lanes_of(1.0f), factor = lanes_of(growth->factor);
    decay_t d = elu_decay(growth, x);
    lanes_t r = plus(d.high, d.low);
    lanes_t rest = fma_of(times(r, r), exp_long_tail(r, 1.0f), d.low);
    lanes_t head = minus(d.power, one), head_low = minus(d.power, plus(head, one));
    lanes_t near = fma_of(d.power, d.high, head);
    lanes_t near_low = plus(fma_of(d.power, d.high, minus(head, near)), head_low);
    lanes_t low = fma_of(d.power, rest, near_low);
    low = fma_of(lanes_of(growth->factor_low), near, times(factor, low));
    choice_t some = not_zero(x);
    lanes_t result = elu_chosen(growth, x, fma_of(factor, near, added_to(seen, low, some)));
    see_size(seen, x, some); /* of which a result of 0 may be all that is left */
    see_size(seen, result, some);
    return show(seen, result);
}

static inline lanes_t elu_half_lanes(const void *facts, lanes_t x, lanes_t same, seen_t *seen) {
    const growth_t *growth = GROWTH(facts);
    decay_t d = elu_decay(growth, x);
    lanes_t r = plus(d.high, d.low), rest = fma_of(times(r, r), exp_long_tail(r, 1.0f), r);
    lanes_t grown = fma_of(d.power, rest, minus(d.power, lanes_of(1.0f)));
    return show(seen, elu_chosen(growth, x, times(grown, lanes_of(growth->factor))));
}

/* The exponent is 2e-7 of the least that is not near 0; four roundings. */
static const limits_t GROWTH_LIMITS = { .bound = 3.9e-7f, .finite = 1 };
LOOPS(elu, elu_half_lanes, elu_half_lanes, elu_single_lanes, a, GROWTH_LIMITS, FACTS(s)->growth.extreme)
LOOPS_TABLE(elu)

/* --- GELU ------------------------------------------------------------------------------------ */

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
typedef struct { lanes_t power, r, lead; shape_t shape; } gelu_t;
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

static inline __attribute__((always_inline)) lanes_t pick_interval(
        cut_t cut, const float *row, ints_t interval) {
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

static inline __attribute__((always_inline)) shape_t gelu_polynomial(
        polynomials_t p, lanes_t t, ints_t *interval) {
    const lanes_t offset = lanes_of(p.cut.offset);
    lanes_t place = p.cut.scale == 1.0f ? plus(t, offset) : fma_of(t, lanes_of(p.cut.scale), offset);
    *interval = int_right(bits_of(place), p.cut.shift);
    lanes_t z = p.cut.centers ? minus(t, pick_interval(p.cut, p.cut.centers, *interval)) : t;
    if (p.cut.stretched) z = over(z, place);
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
static inline __attribute__((always_inline)) lanes_t gelu_sum(shape_t shape) {
    return shape.through_0 ? times(shape.rise, shape.z) : fma_of(shape.rise, shape.z, shape.constant);
}

/* 4w = sqrt(32/pi) (t + 0.044715 t^3) = near + low. The first coefficient has so few bits that what
 * rounding takes from the sum is exact. */
typedef struct { lanes_t near, low; } tanh_argument_t;
static inline tanh_argument_t gelu_tanh_argument(lanes_t t) {
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

static inline __attribute__((always_inline)) gelu_t gelu_single_parts(factor_t factor, gelu_argument_t at) {
    gelu_t parts;
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
static inline __attribute__((always_inline)) gelu_t gelu_half_parts(polynomials_t factor, lanes_t t) {
    gelu_t parts;
    lanes_t square = times(t, t);
    whole_t n = exp_whole(square, -0.5f, EXP_NEAR_STEPS);
    parts.r = fma_of(n.octaves, lanes_of(LN2_NEAR * 2.0f), square);
    parts.power = exp_power(pick_near_step((const float *)EXP_NEAR_POWERS, n.steps), EXP_NEAR_STEPS, n);
    ints_t interval;
    parts.lead = gelu_sum(gelu_polynomial(factor, t, &interval));
    return parts;
}

/* (1 + shape) (e^(-(1 + EXP_LACK) r/2) - 1) + addend. */
static inline lanes_t gelu_rest(const gelu_t *parts, lanes_t shape, lanes_t addend) {
    const float scale = -0.5f * (1.0f + EXP_LACK);
    lanes_t tail = fma_of(parts->r, exp_tail_lanes(parts->r, scale), lanes_of(scale));
    return fma_of(fma_of(parts->r, shape, parts->r), tail, addend);
}

/* (tail + low) times what lead and power leave of the product, but for `tail` itself. */
static inline __attribute__((always_inline)) lanes_t gelu_grown(
        factor_t factor, const gelu_t *parts, lanes_t tail, lanes_t low) {
    lanes_t shape = gelu_sum(parts->shape);
    if (factor.flat) return fma_of(plus(tail, low), gelu_rest(parts, shape, shape), low);
    const shape_t *part = &parts->shape;
    lanes_t large = times(part->rise, part->z);
    lanes_t small = plus(fms_of(part->rise, part->z, large), part->constant);
    small = fma_of(part->rise_low, part->z, small);
    lanes_t rest = gelu_rest(parts, shape, small);
    return fma_of(tail, large, fma_of(tail, rest, fma_of(low, plus(large, rest), low)));
}

/* t, as far as there are intervals: beyond, they begin again. */
static inline lanes_t gelu_bounded(lanes_t x) { return at_most(magnitude(x), GELU_FARTHEST); }

/* The same for those that find out what lies beyond. With sixteen lanes factors of phi need no look at x
 * for that: their tables end in zeros, which are seen. */
#if LANES == 16
static inline lanes_t gelu_distance(lanes_t x) { return magnitude(x); }
#else
static inline lanes_t gelu_distance(lanes_t x) { return gelu_bounded(x); }
#endif
/* Gradients of 0 need a power that keeps its sign, whatever x is, and a distance that is no number where x
 * is none; others do not, and take fewer operations. */
static inline __attribute__((always_inline)) gelu_argument_t gelu_single_argument(
        factor_t factor, lanes_t x, seen_t *seen) {
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
static inline __attribute__((always_inline)) lanes_t gelu_backward_single(
        factor_t factor, root_t root, lanes_t g, lanes_t x, seen_t *seen) {
    const lanes_t one = lanes_of(1.0f);
    gelu_argument_t at = gelu_single_argument(factor, x, seen);
    gelu_t parts = gelu_single_parts(factor, at);
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
static inline lanes_t gelu_backward_single_lanes(const void *none, lanes_t g, lanes_t x, seen_t *seen) {
    return gelu_backward_single(SLOPE, SLOPE_ROOT, g, x, seen);
}
static inline lanes_t gelu_backward_tanh_single_lanes(
        const void *none, lanes_t g, lanes_t x, seen_t *seen) {
    return gelu_backward_single(TANH_SLOPE, TANH_SLOPE_ROOT, g, x, seen);
}

/* `t` may be less than the distance of x, so that exponents last. */
static inline lanes_t gelu_backward_short(
        lanes_t distance, lanes_t t, lanes_t g, lanes_t x, seen_t *seen) {
    gelu_t parts = gelu_half_parts(SLOPE_NEAR, t);
    lanes_t near = plus(minus(lanes_of(SLOPE_ROOT.near), distance), lanes_of(SLOPE_ROOT.low));
    lanes_t rest = exp_near_rest(parts.r, -0.5f);
    lanes_t lead = times(times(near, parts.power), parts.lead);
    lanes_t tail = fma_of(lead, rest, lead);
    return show(seen, times(g, rest_of_1_where(above_zero(x), tail)));
}

/* Results are 0 long before, whatever a half is multiplied by; what is infinite stays it. */
static inline lanes_t gelu_backward_half_lanes(const void *none, lanes_t g, lanes_t x, seen_t *seen) {
    return gelu_backward_short(magnitude(x), gelu_bounded(x), g, x, seen);
}

static inline lanes_t gelu_backward_bfloat_lanes(const void *none, lanes_t g, lanes_t x, seen_t *seen) {
    see_argument(seen, x);
    lanes_t t = gelu_distance(x);
    return gelu_backward_short(t, t, g, x, seen);
}

/* Of all halves the worst, with gradient 1, is 4.5e-7 off; another 6e-8 for the product with the
 * gradient, and for that with 1 + or - the bound, which is exact itself. */
static const limits_t GELU_LIMITS = {
    .bound = 0x1.4p-21f, .most = GELU_LAST, .near = GELU_BESIDE, .finite = 1, .as_one = 1,
};
LOOPS(gelu_backward, gelu_backward_half_lanes, gelu_backward_bfloat_lanes, gelu_backward_single_lanes,
      a, GELU_LIMITS, 0)
LOOPS_TABLE(gelu_backward)

/* max(x, 0) - t Phi(-t); of the product with the tail's first part what rounding takes is exact. For
 * zeros all that is taken away is +0, so that they keep their signs. */
static inline __attribute__((always_inline)) lanes_t gelu_single(
        factor_t factor, lanes_t x, seen_t *seen) {
    gelu_argument_t at = gelu_single_argument(factor, x, seen);
    gelu_t parts = gelu_single_parts(factor, at);
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
static inline lanes_t gelu_single_lanes(const void *none, lanes_t x, lanes_t same, seen_t *seen) {
    return gelu_single(MILLS, x, seen);
}
static inline lanes_t gelu_tanh_single_lanes(const void *none, lanes_t x, lanes_t same, seen_t *seen) {
    return gelu_single(TANH_SHARE, x, seen);
}

static inline __attribute__((always_inline)) lanes_t gelu_short(lanes_t t, lanes_t x, seen_t *seen) {
    gelu_t parts = gelu_half_parts(MILLS_NEAR, t);
    lanes_t lead = times(parts.power, parts.lead);
    lanes_t tail = fma_of(lead, exp_near_rest(parts.r, -0.5f), lead);
    return show(seen, fnma_of(magnitude(x), tail, positive_part(x)));
}
static inline lanes_t gelu_half_lanes(const void *none, lanes_t x, lanes_t same, seen_t *seen) {
    return gelu_short(gelu_bounded(x), x, seen);
}
static inline lanes_t gelu_bfloat_lanes(const void *none, lanes_t x, lanes_t same, seen_t *seen) {
    see_argument(seen, x);
    return gelu_short(gelu_distance(x), x, seen);
}

/* Half as much again as a bound with which every half still comes out right: nothing else takes part. */
static const limits_t MILLS_LIMITS = { .bound = 0x1.8p-22f, .most = GELU_LAST, .finite = 1, .as_one = 1 };
LOOPS(gelu, gelu_half_lanes, gelu_bfloat_lanes, gelu_single_lanes, a, MILLS_LIMITS, 0)
LOOPS_TABLE(gelu)

/* With tanh halves are computed as floats are: with fewer digits of w their exponentials would be too far
 * off. */
static const limits_t TANH_LIMITS = { .bound = 2e-7f, .most = GELU_TANH_LAST, .finite = 1 };
static const limits_t TANH_SLOPE_LIMITS = {
    .bound = 2e-7f, .most = GELU_TANH_LAST, .near = GELU_BESIDE, .finite = 1, .as_one = 1,
};
LOOPS(gelu_tanh, gelu_tanh_single_lanes, gelu_tanh_single_lanes, gelu_tanh_single_lanes, a, TANH_LIMITS, 0)
LOOPS_TABLE(gelu_tanh)
LOOPS(gelu_backward_tanh, gelu_backward_tanh_single_lanes, gelu_backward_tanh_single_lanes,
      gelu_backward_tanh_single_lanes, a, TANH_SLOPE_LIMITS, 0)
LOOPS_TABLE(gelu_backward_tanh)

/* --- Logit ----------------------------------------------------------------------------------- */

static void logit_facts(facts_t *facts, ptrdiff_t n, kind_t kind) {
    const double *p = facts->p;
    logit_t *logit = &facts->logit;
    float eps = (float)p[0];
    logit->low = eps < 0 ? 0.0f : eps;
    logit->high = eps < 0 ? 1.0f : 1.0f - eps;
    logit->outside = eps < 0 ? __builtin_nanf("") : 0.0f;
    logit->open = eps < 0;
    logit->first = eps < 0 ? -INFINITY : logit->low;
    logit->last = eps < 0 ? INFINITY : logit->high;
    /* Registers of sixteen test for bounds faster than halves are looked through for NaNs. */
    logit->whole = logit->open && (kind == SINGLE || LANES == 8);
    logit->symmetric = logit->high >= 0.5f && logit->low == 1.0f - logit->high;
    logit->extreme = logit_extreme(p);
    logit->crossed = logit_crossed(p);
}

#define LOGIT(s) (&((const facts_t *)(s))->logit)
static inline lanes_t logit_inside(const logit_t *logit, lanes_t q, lanes_t x) {
    return choose(between(x, logit->low, logit->high), q, lanes_of(logit->outside));
}

/* What is known of the bounds: nothing; that they are as far from 0 as from 1; that they are 0 and 1;
 * and that, besides, most likely all x lie between them. */
typedef enum { ANY, SYMMETRIC, OPEN, WHOLE } bounds_t;

/* z/(1 - z) = 2^octaves w/rest, w/rest between 0.66 and 1.51; the bits of a number are its logarithm, near
 * enough to tell octaves. `rest` is 1 - z rounded; w - rest is exact. */
typedef struct { lanes_t w, rest, octaves; } odds_t; /* octaves times 2^23 */
static inline odds_t logit_odds(lanes_t z) {
    odds_t odds;
    odds.rest = minus(lanes_of(1.0f), z);
    ints_t ratio = int_minus(bits_of(z), bits_of(odds.rest));
    ints_t octaves = int_and(int_plus(ratio, ints_of(0x400000u)), ints_of(0xff800000u));
    odds.w = floats_of(int_minus(bits_of(z), octaves));
    odds.octaves = floats_from(octaves);
    return odds;
}
/* ln((1 + u)/(1 - u)) - 2u + addend for |u| up to a fifth, error 2^-28 of 2u. */
static inline lanes_t atanh_rest(lanes_t u, lanes_t addend) {
    lanes_t square = times(u, u);
    lanes_t rest = fma_of(square, lanes_of(0x1.3735c6p-2f), lanes_of(0x1.99248ap-2f));
    return fma_of(times(u, square), fma_of(square, rest, lanes_of(0x1.5555c4p-1f)), addend);
}
/* ln(odds) = octaves ln(2) + 2 atanh(u), u = (w - rest)/(w + rest) = 2w/(w + rest) - 1, in two parts: where
 * there are no octaves nothing may be lost of 2u, and elsewhere it is as large as the result. */
static inline lanes_t log_odds(lanes_t z) {
    const lanes_t two = lanes_of(2.0f);
    odds_t odds = logit_odds(z);
    lanes_t rest_low = minus(minus(lanes_of(1.0f), odds.rest), z);
    lanes_t sum = plus(odds.w, odds.rest), difference = fms_of(two, odds.w, sum);
    lanes_t sum_low = plus(minus(difference, minus(odds.w, odds.rest)), rest_low);
    lanes_t inverse = near_inverse(sum), near = times(difference, inverse);
    lanes_t residual = minus(fnma_of(near, sum, difference), sum_low);
    lanes_t near_low = times(fnma_of(near, sum_low, residual), inverse);
    lanes_t head = times(odds.octaves, lanes_of(LN2 * 0x1p-23f)); /* exact */
    lanes_t main = fma_of(two, near, head), low = fma_of(two, near, minus(head, main));
    low = fma_of(two, near_low, fma_of(odds.octaves, lanes_of(LN2_LOW * 0x1p-23f), low));
    return plus(main, atanh_rest(plus(near, near_low), low));
}
/* The same of what was a half: then w + rest is exact where there are no octaves. */
static inline lanes_t log_odds_short(lanes_t z) {
    odds_t odds = logit_odds(z);
    lanes_t sum = plus(odds.w, odds.rest), difference = minus(odds.w, odds.rest);
    lanes_t inverse = near_inverse(sum), near = times(difference, inverse);
    lanes_t u = fma_of(fnma_of(near, sum, difference), inverse, near);
    return atanh_rest(u, fma_of(odds.octaves, lanes_of(LN2_NEAR * 0x1p-23f), plus(u, u)));
}

static inline __attribute__((always_inline)) lanes_t logit_clipped(
        const logit_t *logit, bounds_t bounds, lanes_t x) {
    return bounds == OPEN ? x : at_most(at_least(x, lanes_of(logit->first)), logit->last);
}
static inline __attribute__((always_inline)) lanes_t logit_single(
        const logit_t *logit, bounds_t bounds, lanes_t x, seen_t *seen) {
    lanes_t z = logit_clipped(logit, bounds, x);
    seen->most = int_most(seen->most, int_minus(bits_of(z), ints_of(LOGIT_FIRST)));
    return log_odds(z);
}
/* Of halves many are 0 or 1. */
static inline lanes_t logit_at_ends(lanes_t z, lanes_t result, seen_t *seen) {
    choice_t not_0 = not_zero(z), not_1 = not_zero(minus(lanes_of(1.0f), z));
    see_argument(seen, z);
    see_size(seen, z, not_0);
    return choose(not_0, choose(not_1, result, lanes_of(INFINITY)), lanes_of(-INFINITY));
}
static inline __attribute__((always_inline)) lanes_t logit_short(
        const logit_t *logit, bounds_t bounds, lanes_t x, seen_t *seen) {
    lanes_t z = logit_clipped(logit, bounds, x);
    return logit_at_ends(z, log_odds_short(z), seen);
}
static inline lanes_t logit_bounded_single_lanes(const void *facts, lanes_t x, lanes_t same, seen_t *seen) {
    return logit_single(LOGIT(facts), ANY, x, seen);
}
static inline lanes_t logit_bounded_half_lanes(const void *facts, lanes_t x, lanes_t same, seen_t *seen) {
    return logit_short(LOGIT(facts), ANY, x, seen);
}
static inline lanes_t logit_from_float(const void *facts, lanes_t x, lanes_t same, seen_t *seen) {
    lanes_t z = logit_clipped(LOGIT(facts), ANY, x);
    return logit_at_ends(z, log_odds(z), seen);
}
static inline lanes_t logit_unbounded_single_lanes(const void *facts, lanes_t x, lanes_t same, seen_t *seen) {
    return logit_single(LOGIT(facts), OPEN, x, seen);
}
static inline lanes_t logit_unbounded_half_lanes(const void *facts, lanes_t x, lanes_t same, seen_t *seen) {
    return logit_short(LOGIT(facts), OPEN, x, seen);
}

static const limits_t ODDS_LIMITS = { .bound = 3.9e-7f, .most = 0x3f800000u };
static const limits_t SINGLE_ODDS_LIMITS = { .most = LOGIT_REACH };
LOOP(logit_bounded_0, logit_bounded_single_lanes, SINGLE, SINGLE, SINGLE_ODDS_LIMITS, FACTS(s)->logit.crossed)
LOOP(logit_bounded_1, logit_bounded_half_lanes, HALF, HALF, ODDS_LIMITS, FACTS(s)->logit.crossed)
LOOP(logit_bounded_2, logit_bounded_half_lanes, BFLOAT, BFLOAT, ODDS_LIMITS, FACTS(s)->logit.crossed)
LOOP(logit_3, logit_from_float, SINGLE, HALF, ODDS_LIMITS, FACTS(s)->logit.crossed)
LOOP(logit_4, logit_from_float, SINGLE, BFLOAT, ODDS_LIMITS, FACTS(s)->logit.crossed)
LOOP(logit_unbounded_0, logit_unbounded_single_lanes, SINGLE, SINGLE, SINGLE_ODDS_LIMITS, 0)
LOOP(logit_unbounded_1, logit_unbounded_half_lanes, HALF, HALF, ODDS_LIMITS, 0)
LOOP(logit_unbounded_2, logit_unbounded_half_lanes, BFLOAT, BFLOAT, ODDS_LIMITS, 0)
#define LOGIT_IF_BOUNDED(kind) \
    static int logit_##kind(const span_t *s) { \
        return FACTS(s)->logit.open ? logit_unbounded_##kind(s) : logit_bounded_##kind(s); \
    }
LOGIT_IF_BOUNDED(0)
LOGIT_IF_BOUNDED(1)
LOGIT_IF_BOUNDED(2)
LOOPS_TABLE(logit)

/* x (1 - x) = y - y^2 for the lesser one of the two, y, which is exact where it is 1 - x; in two
 * parts, because y is at most twice the difference. The residual of a quotient that is 2^-14 off
 * leaves 2^-28. */
static inline __attribute__((always_inline)) lanes_t logit_backward_single(
        const logit_t *logit, bounds_t bounds, lanes_t x, lanes_t dy, seen_t *seen) {
    lanes_t y = lesser(x, minus(lanes_of(1.0f), x));
    lanes_t product = fnma_of(y, y, y);
    lanes_t low = fnma_of(y, y, minus(y, product));
    lanes_t inverse = near_inverse(product);
    lanes_t near = times(dy, inverse);
    lanes_t residual = fnma_of(near, low, fnma_of(near, product, dy));
    choice_t some = not_zero(dy);
    lanes_t q = show(seen, fma_of(residual, inverse, near)); /* no number where x is infinite */
    if (!seen->nonzero) q = with_sign_of(q, near, some);
    see_size(seen, dy, some);
    if (bounds == ANY) return logit_inside(logit, q, x);
    if (bounds == SYMMETRIC) return choose(reaches(y, logit->low), q, lanes_of(logit->outside));
    see_lowest(seen, y);
    return q;
}
static inline lanes_t logit_backward_single_lanes(const void *facts, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_single(LOGIT(facts), ANY, x, dy, seen);
}
static inline lanes_t logit_symmetric_single_lanes(const void *facts, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_single(LOGIT(facts), SYMMETRIC, x, dy, seen);
}
static inline lanes_t logit_whole_single_lanes(const void *facts, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_single(LOGIT(facts), WHOLE, x, dy, seen);
}

/* With 0 and 1 for bounds, where x lies outside the product is negative. NaNs are expected then: the
 * formula makes them one. */
static inline __attribute__((always_inline)) lanes_t logit_backward_short(
        const logit_t *logit, bounds_t bounds, lanes_t x, lanes_t dy, seen_t *seen) {
    lanes_t product = times(x, minus(lanes_of(1.0f), x)), q = over(dy, product);
    if (bounds == OPEN) return choose(reaches_beside(product, 0.0f, q), q, lanes_of(logit->outside));
    show(seen, product);
    if (bounds == ANY) return logit_inside(logit, q, x);
    see_lowest(seen, product);
    return q;
}
static inline lanes_t logit_backward_half_lanes(const void *facts, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_short(LOGIT(facts), ANY, x, dy, seen);
}
static inline lanes_t logit_open_half_lanes(const void *facts, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_short(LOGIT(facts), OPEN, x, dy, seen);
}
static inline lanes_t logit_whole_half_lanes(const void *facts, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_short(LOGIT(facts), WHOLE, x, dy, seen);
}

static const limits_t LOGIT_LIMITS = { .bound = 2.5e-7f, .finite = 1, .nan = 1 };
static const limits_t OPEN_LIMITS = { .bound = 2.5e-7f };
static const limits_t WHOLE_LIMITS = { .bound = 2.5e-7f, .finite = 1, .nan = 1, .outside = 1 };
LOOPS(logit_backward, logit_backward_half_lanes, logit_backward_half_lanes, logit_backward_half_lanes,
      b, LOGIT_LIMITS, FACTS(s)->logit.extreme)
SINGLE_LOOP(logit_whole_0, logit_whole_single_lanes, b, WHOLE_LIMITS, 0)
LOOP(logit_whole_1, logit_whole_half_lanes, HALF, HALF, WHOLE_LIMITS, 0)
LOOP(logit_whole_2, logit_whole_half_lanes, BFLOAT, BFLOAT, WHOLE_LIMITS, 0)
SINGLE_LOOP(logit_symmetric_0, logit_symmetric_single_lanes, b, LOGIT_LIMITS, FACTS(s)->logit.extreme)
LOOP(logit_open_1, logit_open_half_lanes, HALF, HALF, OPEN_LIMITS, 0)
LOOP(logit_open_2, logit_open_half_lanes, BFLOAT, BFLOAT, OPEN_LIMITS, 0)
/* Inputs are never where results go: what turns out to need bounds can be computed once more. Where one
 * element lies outside, others do too: the blocks that follow are not expected not to. Facts belong to
 * one run of a kernel, on one thread. */
#define LOGIT_BY_BOUNDS(kind, special) \
    static int logit_by_bounds_##kind(const span_t *s) { \
        const logit_t *logit = &FACTS(s)->logit; \
        int found = logit->whole ? logit_whole_##kind(s) : OUTSIDE; \
        if (!(found & OUTSIDE)) return found; \
        ((facts_t *)s->facts)->logit.whole = 0; \
        return logit->special ? logit_##special##_##kind(s) : logit_backward_##kind(s); \
    }
LOGIT_BY_BOUNDS(0, symmetric)
LOGIT_BY_BOUNDS(1, open)
LOGIT_BY_BOUNDS(2, open)
static const lane_loop logit_by_bounds_loops[5] = {
    logit_by_bounds_0, logit_by_bounds_1, logit_by_bounds_2, logit_backward_3, logit_backward_4,
};

/* --- Leaky ReLU --------------------------------------------------------------------------------- */

static inline lanes_t leaky_relu_single_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    lanes_t slope = lanes_of(((const facts_t *)facts)->line.scale.slope);
    return show(seen, choose_times(not_above_zero(x), g, slope));
}

static inline lanes_t leaky_relu_half_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    lanes_t slope = lanes_of(((const facts_t *)facts)->line.scale.slope);
    return show(seen, choose_times_to_odd(not_above_zero(x), g, slope));
}

/* Below what floats can tell apart, rounding to odd loses what it stands on. */
static inline lanes_t leaky_relu_bfloat_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    lanes_t result = leaky_relu_half_lanes(facts, g, x, seen);
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

/* Up to so many elements finding out takes longer than it saves. */
enum { FEW_HALVES = 16384, FEW_BFLOATS = 512 };

static void scale_facts(facts_t *facts, ptrdiff_t n, kind_t kind) {
    scale_t *scale = &facts->line.scale;
    float slope = scale->slope = scale->near = (float)facts->p[0];
    scale->at_once = 0;
    if (is_extreme(slope)) return;
    if (kind == BFLOAT && n >= FEW_BFLOATS) scale->at_once = never_in_the_middle(slope);
    if (kind != HALF || n < FEW_HALVES) return;
    /* Decimal fractions often come close to middles, and their neighbours do not. */
    for (int step = 0; step < 3 && !scale->at_once; step++) {
        uint32_t bits = bits_of_f32(slope) + (step == 2 ? 0xffffffffu : (uint32_t)step);
        scale->near = f32_of_bits(bits);
        scale->at_once = on_same_sides(slope, scale->near);
    }
}

static const limits_t LEAKY_LIMITS = { .finite = 1 };
LOOP(leaky_relu_0, leaky_relu_single_lanes, SINGLE, SINGLE, LEAKY_LIMITS, 0)
HALF_LOOPS(leaky_relu, leaky_relu_half_lanes, leaky_relu_bfloat_lanes, leaky_relu_bfloat_lanes, LEAKY_LIMITS, 0)

static inline lanes_t scaled(const line_facts_t *facts, lanes_t g) {
    return times(g, lanes_of(facts->scale.near));
}
static inline ints_t scaled_halves(const line_facts_t *facts, const char *g) {
    lanes_t low = load_kind(HALF, g), high = load_kind(HALF, g + 2 * LANES);
    return both_halves(to_halves(scaled(facts, low)), to_halves(scaled(facts, high)));
}
static inline ints_t scaled_bfloats(const line_facts_t *facts, const char *p) {
    const ints_t middle = ints_of(0x8000u);
    ints_t g = ints_load(p);
    lanes_t even = floats_of(int_left(g, 16)), odd = floats_of(int_and(g, ints_of(0xffff0000u)));
    return interleave_upper(int_plus(bits_of(scaled(facts, even)), middle),
                       int_plus(bits_of(scaled(facts, odd)), middle));
}
static inline ints_t leaky_relu_half_line(
        const line_facts_t *facts, const char *x, const char *unused, seen_t *seen) {
    ints_t same = ints_load(x), result = short_positive(same, same, scaled_halves(facts, x));
    see_short_most(seen, result);
    return result;
}
static inline ints_t leaky_relu_bfloat_line(
        const line_facts_t *facts, const char *x, const char *unused, seen_t *seen) {
    ints_t same = ints_load(x), result = short_positive(same, same, scaled_bfloats(facts, x));
    see_short_sizes(seen, result);
    return result;
}
/* A NaN in x does not show in the result, if it is taken for positive. */
static inline ints_t leaky_backward_half_line(
        const line_facts_t *facts, const char *g, const char *x, seen_t *seen) {
    ints_t result = short_within(ints_load(x), 1u, 0x7c00u - 1u, ints_load(g), scaled_halves(facts, g));
    see_short_most(seen, result);
    return result;
}
static inline ints_t leaky_backward_bfloat_line(
        const line_facts_t *facts, const char *g, const char *x, seen_t *seen) {
    ints_t result = short_within(ints_load(x), 1u, 0x7f80u - 1u, ints_load(g), scaled_bfloats(facts, g));
    see_short_sizes(seen, result);
    return result;
}
LINE_LOOP(leaky_relu_half, leaky_relu_half_line, HALF)
LINE_LOOP(leaky_relu_bfloat, leaky_relu_bfloat_line, BFLOAT)
LINE_LOOP(leaky_backward_half, leaky_backward_half_line, HALF)
LINE_LOOP(leaky_backward_bfloat, leaky_backward_bfloat_line, BFLOAT)
static int leaky_relu_by_slope_1(const span_t *s) {
    if (!FACTS(s)->line.scale.at_once) return leaky_relu_1(s);
    return s->a == s->b ? leaky_relu_half(s) : leaky_backward_half(s);
}
static int leaky_relu_by_slope_2(const span_t *s) {
    if (!FACTS(s)->line.scale.at_once) return leaky_relu_2(s);
    return s->a == s->b ? leaky_relu_bfloat(s) : leaky_backward_bfloat(s);
}
static const lane_loop leaky_relu_loops[5] = {
    leaky_relu_0, leaky_relu_by_slope_1, leaky_relu_by_slope_2, leaky_relu_3, leaky_relu_4,
};

/* --- Hard shrinkage ------------------------------------------------------------------------------- */

/* Which magnitudes pass, as bits of each type: from `low` on, `reach` more, up to infinity. */
static void keep_facts(facts_t *facts, ptrdiff_t n, kind_t kind) {
    const double *p = facts->p;
    keep_t *keep = &facts->line.keep;
    float bound = p[0] <= 0 ? 0.0f : (float)p[0]; /* the sign of -0 would be part of its bits */
    uint32_t bits = bits_of_f32(bound);
    uint16_t half = half_of_f32(bound).bits;
    half_t rounded = { half };
    half -= half_to_f32(rounded) > bound;
    int none = !(bound < INFINITY);
    keep->low = none ? 0xffffffffu : bits + 1u;
    keep->reach = none ? 0u : 0x7f800000u - keep->low;
    none |= half >= 0x7c00u;
    keep->half_low = none ? 0xffffu : half + 1u;
    keep->half_reach = none ? 0u : 0x7c00u - keep->half_low;
    none = !(bound < INFINITY);
    keep->bfloat_low = none ? 0xffffu : (bits >> 16) + 1u;
    keep->bfloat_reach = none ? 0u : 0x7f80u - keep->bfloat_low;
}

/* The forward form: with a bound below 0 zeros pass too. */
static void keep_own_facts(facts_t *facts, ptrdiff_t n, kind_t kind) {
    static const keep_t all = { 0, 0x7f800000u, 0, 0x7c00u, 0, 0x7f80u };
    keep_facts(facts, n, kind);
    if (facts->p[0] < 0) facts->line.keep = all;
}

static inline ints_t hardshrink_single_line(
        const line_facts_t *facts, const char *a, const char *b, seen_t *seen) {
    const keep_t *keep = &facts->keep;
    return kept(ints_load(a), ints_load(b), keep->low, keep->reach);
}
static inline ints_t kept_halves(const char *a, const char *b, uint16_t low, uint16_t reach) {
    ints_t size = int_and(ints_load(b), short_of(0x7fff));
    return short_within(size, low, reach, ints_load(a), ints_of(0u));
}
static inline ints_t hardshrink_half_line(
        const line_facts_t *facts, const char *a, const char *b, seen_t *seen) {
    const keep_t *keep = &facts->keep;
    return kept_halves(a, b, keep->half_low, keep->half_reach);
}
static inline ints_t hardshrink_bfloat_line(
        const line_facts_t *facts, const char *a, const char *b, seen_t *seen) {
    const keep_t *keep = &facts->keep;
    return kept_halves(a, b, keep->bfloat_low, keep->bfloat_reach);
}
static inline lanes_t hardshrink_from_float(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    const keep_t *keep = &((const facts_t *)facts)->line.keep;
    return floats_of(kept(bits_of(g), bits_of(x), keep->low, keep->reach));
}
LINE_LOOP(hardshrink_singles, hardshrink_single_line, SINGLE)
LINE_LOOP(hardshrink_1, hardshrink_half_line, HALF)
LINE_LOOP(hardshrink_2, hardshrink_bfloat_line, BFLOAT)
LOOP(hardshrink_3, hardshrink_from_float, SINGLE, HALF, NO_LIMITS, 0)
LOOP(hardshrink_4, hardshrink_from_float, SINGLE, BFLOAT, NO_LIMITS, 0)
LOOP(hardshrink_narrowed, hardshrink_from_float, SINGLE, SINGLE, NO_LIMITS, 0)
static int hardshrink_0(const span_t *s) {
    return s->stored == SINGLE ? hardshrink_singles(s) : hardshrink_narrowed(s);
}
LOOPS_TABLE(hardshrink)

/* --- What kernels find here ------------------------------------------------------------------------ */

/* Mark the elements that lanes leave to the double form. */
#define MARK(name) \
    static void name##_mark(const float *a, const float *b, const float *r, uint16_t *suspect, \
                            ptrdiff_t n, const double *p) { \
        for (ptrdiff_t i = 0; i < n; i++) suspect[i] |= name##_suspect(a[i], b[i], r[i], p); \
    }
MARK(leaky_relu)
MARK(elu)
MARK(elu_backward)
MARK(gelu)
MARK(gelu_tanh)
MARK(gelu_backward)
MARK(gelu_backward_tanh)
MARK(logit)
MARK(logit_backward)

#endif

typedef void (*facts_fn)(facts_t *, ptrdiff_t, kind_t);
typedef void (*mark_fn)(const float *, const float *, const float *, uint16_t *, ptrdiff_t, const double *);

/* The form for registers of a formula of `_formulas.pxd`: its loops, the function that prepares facts
 * for them or NULL, and the one that marks elements, or NULL where it leaves none. */
typedef struct { const lane_loop *loops; facts_fn prepare; mark_fn mark; } lane_form_t;

static const struct { const char *formula; lane_form_t form; } LANE_FORMS[] = {
#ifdef LANES
    { "leaky_relu", { leaky_relu_loops, scale_facts, leaky_relu_mark } },
    { "leaky_relu_backward", { leaky_relu_loops, scale_facts, leaky_relu_mark } },
    { "hardshrink", { hardshrink_loops, keep_own_facts, NULL } },
    { "hardshrink_backward", { hardshrink_loops, keep_facts, NULL } },
    { "elu", { elu_loops, growth_facts, elu_mark } },
    { "elu_backward", { elu_by_rate_loops, elu_facts, elu_backward_mark } },
    { "gelu", { gelu_loops, no_facts, gelu_mark } },
    { "gelu_tanh", { gelu_tanh_loops, no_facts, gelu_tanh_mark } },
    { "gelu_backward", { gelu_backward_loops, no_facts, gelu_backward_mark } },
    { "gelu_backward_tanh", { gelu_backward_tanh_loops, no_facts, gelu_backward_tanh_mark } },
    { "logit", { logit_loops, logit_facts, logit_mark } },
    { "logit_backward", { logit_by_bounds_loops, logit_facts, logit_backward_mark } },
#endif
    { NULL, { NULL, NULL, NULL } },
};

static inline lane_form_t lane_form_of(const char *formula) {
    ptrdiff_t k = 0;
    while (LANE_FORMS[k].formula && strcmp(LANE_FORMS[k].formula, formula) != 0) k++;
    return LANE_FORMS[k].form;
}

#endif
