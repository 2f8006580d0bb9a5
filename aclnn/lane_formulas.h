/* Operators by lanes, for float32 results and for halves: loaded, computed, rounded and stored in
 * one go.
 *
 * A loop tells whether some element is suspect: not finite, smaller than what its parts can be told
 * apart in, or outside the range of its formula. `..._suspect` tells which, from an element's
 * inputs and what the loop made of it. Halves are rounded from a float whose error has a bound;
 * where that leaves two candidates, the loop notes a doubt. Suspect and doubtful elements are
 * computed again in double. So no lane branches, and odd values cost nothing until they occur.
 */
#ifndef ACLNN_LANE_FORMULAS_H
#define ACLNN_LANE_FORMULAS_H

#include "lanes.h"
#include "lane_tables.h"
#include "half.h"
#include "vector_math.h"

#ifdef LANES
#define IF_LANES(loop) loop
#else
#define IF_LANES(loop) NULL
#endif

/* How elements lie in memory. */
typedef enum { SINGLE, HALF, BFLOAT } kind_t;
enum { SUSPECTS = 1, DOUBTS = 2 };
enum { PREFETCH_A = 1, PREFETCH_B = 2, PREFETCH_OUT = 4, PREFETCH_FAR = 8 };

#define TINY 0x03800000u /* 2^-120: parts of a product below it may be less than the smallest float */
#define ELU_LAST 0xc2a00000u /* -80: the power's exponent must not run out */
#if defined(LANES) && LANES == 16
#define GELU_LAST 0xc13fffffu /* beside -12, where the tables end */
#else
#define GELU_LAST 0xc14e6666u /* -12.9 */
#endif
#define GELU_ROOT 0x1.80eaep-1f /* a multiple of 2^-20: its distance to larger numbers is exact */
#define GELU_BESIDE 0x36000000u /* 2^-19: so near the root its low part has too few digits */

static inline int is_extreme(float r) {
    uint32_t size = bits_of_f32(r) & 0x7fffffffu;
    return (size >= 0x7f800000u) | (size - 1u < TINY - 1u);
}

static inline int leaky_relu_suspect(float g, float x, float r, const double *p) { return is_extreme(r); }

/* Scalars so far from 1 that the lanes might over- or underflow on the way. */
static inline int elu_backward_odd(const double *p) {
    double slope = p[0] * p[1] * p[2];
    return !(p[2] > 0 && p[2] <= 1024 && slope <= 1048576 && slope >= 9.5e-7);
}
static inline int elu_backward_suspect(float g, float x, float r, const double *p) {
    float y = (float)p[2] * (x < 0.0f ? x : 0.0f);
    return elu_backward_odd(p) | is_extreme(r) | (bits_of_f32(y) > ELU_LAST);
}
static inline int gelu_backward_suspect(float g, float x, float r, const double *p) {
    float t = x < 0.0f ? -x : x, near = GELU_ROOT - t;
    int beside = (bits_of_f32(near) & 0x7fffffffu) <= GELU_BESIDE;
    return is_extreme(r) | (bits_of_f32(x) > GELU_LAST) | beside;
}
static inline int logit_backward_odd(const double *p) { return !(p[0] < 1); }
static inline int logit_backward_suspect(float x, float dy, float r, const double *p) {
    float product = x * (1.0f - x);
    return logit_backward_odd(p) | is_extreme(r) | is_extreme(dy) | (product == 0) | (product - product != 0);
}

#ifdef LANES

/* What a loop saw: a sum that is finite if all are that it was shown, and not too large for a product
 * of two; what it was shown last; the least magnitude that is not 0; the most of the bits of an
 * argument; how near it came to a root. */
typedef struct { lanes_t finite, shown, nearest; ints_t least, most; } seen_t;

static inline seen_t nothing_seen(void) {
    seen_t seen = { lanes_of(0.0f), lanes_of(0.0f), lanes_of(1.0f), ints_of(0xffffffffu), ints_of(0u) };
    return seen;
}
/* Show what has to be finite; loops take account of what they were shown, two at a time. */
static inline lanes_t show(seen_t *seen, lanes_t r) {
    seen->shown = r;
    return r;
}
static inline void see_finite(seen_t *seen, lanes_t one, lanes_t other) {
    seen->finite = fma_of(one, other, seen->finite);
}
static inline void see_size(seen_t *seen, lanes_t r, choice_t some) {
    seen->least = least_size(seen->least, r, some);
}
/* Of halves: the most, without signs, and the least that is not 0. */
static inline void see_short_most(seen_t *seen, ints_t r) {
    seen->most = short_most(seen->most, short_plus(r, r));
}
static inline void see_short_sizes(seen_t *seen, ints_t r) {
    ints_t twice = short_plus(r, r);
    seen->most = short_most(seen->most, twice);
    seen->least = short_least(seen->least, short_plus(twice, short_of(0xffffu)));
}
static inline void see_argument(seen_t *seen, lanes_t x) {
    seen->most = int_most(seen->most, bits_of(x));
}
/* Two that looked in turns, so that neither waits for the other, become one. */
static inline seen_t seen_by_both(const seen_t *a, const seen_t *b) {
    seen_t both = {
        plus(a->finite, b->finite), a->shown, least_magnitude(a->nearest, b->nearest),
        int_least(a->least, b->least), int_most(a->most, b->most),
    };
    return both;
}

/* What a formula's lanes can tell apart: `bound`, of a half's relative error before it is rounded,
 * 0 if it was rounded to odd or is exact; `most`, the bits of the largest argument that it knows, and
 * `near`, those of the distance to a root at which it does not any more, 0 if it knows all; `finite`:
 * it shows what has to be finite; `nan`: its NaNs have to be made one; `as_one`: it needs
 * so many registers that what two of them have seen is kept in one place. */
typedef struct { float bound; uint32_t most, near; int finite, nan, as_one; } limits_t;

static inline int odd_seen(const seen_t *seen, limits_t limits) {
    choice_t odd = either(not_zero(minus(seen->finite, seen->finite)), int_at_most(seen->least, ints_of(TINY - 1u)));
    if (limits.most != 0) odd = either(odd, int_at_most(ints_of(limits.most + 1u), seen->most));
    if (limits.near != 0) odd = either(odd, int_at_most(bits_of(seen->nearest), ints_of(limits.near)));
    return any(odd);
}
static inline int nan_seen(const seen_t *seen, uint16_t infinity) {
    return any_short_at_least(seen->most, (uint16_t)(2 * infinity + 1));
}

/* Exponentials by steps of an octave: as many as a register, or two of them, can look up. */
#if LANES == 16
enum { EXP_STEPS = 16, EXP_NEAR_STEPS = 32 };
#define pick_step pick16
#define pick_near_step pick32
#else
enum { EXP_STEPS = 8, EXP_NEAR_STEPS = 8 };
#define pick_step pick8
#define pick_near_step pick8
#define EXP_POWERS EXP_WIDE_POWERS
#define EXP_SHIFTS EXP_WIDE_SHIFTS
#define EXP_NEAR_POWERS EXP_WIDE_NEAR_POWERS
#define GELU_SHIFTS GELU_WIDE_SHIFTS
#endif
/* ln(2) in two parts, the first of 13 bits. */
#define LN2 0x1.62ep-1f
#define LN2_LOW 0x1.0bfbe8p-15f
/* The float nearest to it is nearer than others are: 2.7e-9 of it. */
#define LN2_NEAR 0x1.62e43p-1f

/* e^(scale r) - 1, less scale r and over r^2, for |scale r| <= ln(2) / (2 EXP_STEPS) + 2^-12; the
 * error of the exponential is 2^-28.6 for 16 steps, 2^-31 for 8. */
static inline lanes_t exp_tail_lanes(lanes_t r, float scale) {
    const float square = scale * scale;
#if LANES == 16
    return fma_of(r, lanes_of(0x1.5556e8p-3f * scale * square), lanes_of(0x1.0001f8p-1f * square));
#else
    lanes_t tail = fma_of(
        r, lanes_of(0x1.555aep-5f * square * square), lanes_of(0x1.555da4p-3f * scale * square));
    return fma_of(r, tail, lanes_of(0.5f * square));
#endif
}

static inline lanes_t exp_rest(lanes_t r) {
    return fma_of(times(r, r), exp_tail_lanes(r, 1.0f), r);
}

/* e^(scale r) - 1 for |scale r| <= ln(2) / (2 EXP_NEAR_STEPS), error 2^-24.1 for 32 steps. */
static inline lanes_t exp_near_rest(lanes_t r, float scale) {
#if LANES == 16
    return times(r, fma_of(r, lanes_of(0x1.00007cp-1f * scale * scale), lanes_of(0x1.0000f6p+0f * scale)));
#else
    lanes_t tail = fma_of(
        r, lanes_of(0x1.555b7ep-3f * scale * scale * scale), lanes_of(0x1.0007b4p-1f * scale * scale));
    return times(r, fma_of(r, tail, lanes_of(scale)));
#endif
}

/* Octaves, in whole steps: as a number, and how many steps they are in the low bits of `steps`. */
typedef struct { lanes_t octaves; ints_t steps; } whole_t;

/* How often scale y contains ln(2). */
static inline whole_t exp_whole(lanes_t y, float scale, int steps) {
    const lanes_t magic = lanes_of(0x1.8p23f / (float)steps);
    lanes_t shifted = fma_of(y, lanes_of(0x1.715476p+0f * scale), magic);
    whole_t whole = { minus(shifted, magic), bits_of(shifted) };
    return whole;
}

/* 2^octaves, from the step that a table of 2^(j/steps) was asked for. */
#if LANES == 16
static inline lanes_t exp_power(lanes_t picked, int steps, whole_t n) {
    return times_octaves(picked, n.octaves);
}
static inline ints_t octave_bits(int steps, ints_t n) { return ints_of(0u); }
#else
/* A number of steps, shifted so far that the octaves in it reach the exponent. What it holds besides
 * tables do not. */
static inline ints_t octave_bits(int steps, ints_t n) { return int_left(n, 23 - __builtin_ctz(steps)); }
static inline lanes_t exp_power(lanes_t picked, int steps, whole_t n) {
    return floats_of(int_plus(bits_of(picked), octave_bits(steps, n.steps)));
}
#endif

typedef struct {
    float powers[EXP_STEPS], shifts[EXP_STEPS], near_powers[EXP_NEAR_STEPS], rate, scale;
    int odd;
} elu_t;
typedef struct { float low, high, outside; int even, odd; } logit_t;
typedef struct { uint32_t low, reach; uint16_t half_low, half_reach, bfloat_low, bfloat_reach; } keep_t;
typedef struct { float slope, near; int at_once; } scale_t;

/* What lines need is little, so that it can be copied. */
typedef union { keep_t keep; scale_t scale; } line_facts_t;

/* A call's scalars, and what a formula makes of them once for a whole tile. */
typedef struct {
    double p[4];
    union { elu_t elu; logit_t logit; line_facts_t line; };
} facts_t;

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

/* The slope joins the tables: its first twelve bits the powers, which stay exact, the logarithm of
 * the rest the shifts. */
static inline void elu_prepare(const double *p, elu_t *elu) {
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
    elu->odd = elu_backward_odd(p);
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
    lanes_t growth = as_addend(times(times(g, power), rest), some);
    lanes_t negative = fma_of(g, power, growth);
    lanes_t result = choose(above_zero(x), times(g, lanes_of(elu->scale)), negative);
    see_size(seen, negative, some);
    return show(seen, result);
}

static inline __attribute__((always_inline)) lanes_t elu_backward_half(
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
    return elu_backward_half(ELU(facts), 0, g, x, seen);
}
static inline lanes_t elu_unit_single_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    return elu_backward_single(ELU(facts), 1, g, x, seen);
}
static inline lanes_t elu_unit_half_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    return elu_backward_half(ELU(facts), 1, g, x, seen);
}

/* --- GELU ------------------------------------------------------------------------------------ */

/* e^(-t^2/2) = power e^(-r/2), so that t^2 need not be halved, and the factor
 * S(t)/sqrt(2 pi) = lead (1 + shape); power * lead is exact. Octaves are taken off by a short ln(2):
 * n octaves more need n times the same more, and r more by it too. Since n is t^2 but for r, the
 * tables of the shape have what they need, and EXP_LACK is what r needs. */
typedef struct { lanes_t power, r, lead, shape; } gelu_t;
#define EXP_LACK 0x1.82a316p-15f /* ln(2) is LN2 (1 + EXP_LACK) */

/* Numbers the intervals of the tables for halves. */
static inline lanes_t gelu_near_place(lanes_t t) { return fma_of(t, lanes_of(1.125f), lanes_of(1.0f)); }

/* S(t)/sqrt(2 pi) from the tables of the interval that t lies in: many intervals and short
 * polynomials where a register holds many elements. */
#if LANES == 16
static inline void gelu_shape(lanes_t t, gelu_t *parts) {
    ints_t interval = int_right(bits_of(plus(t, lanes_of(1.0f))), 20);
    lanes_t z = minus(t, pick32(GELU_CENTERS, interval));
    lanes_t shape = pick32(GELU_SHAPES[4], interval);
    for (int k = 3; k >= 0; k--) shape = fma_of(shape, z, pick32(GELU_SHAPES[k], interval));
    parts->shape = shape;
    parts->lead = pick32(GELU_LEADS, interval);
}
static inline lanes_t gelu_near_shape(lanes_t t) {
    ints_t interval = int_right(bits_of(gelu_near_place(t)), 20);
    lanes_t shape = pick32(GELU_NEAR_SHAPES[3], interval);
    for (int k = 2; k >= 0; k--) shape = fma_of(shape, t, pick32(GELU_NEAR_SHAPES[k], interval));
    return shape;
}
#else
static inline void gelu_shape(lanes_t t, gelu_t *parts) {
    ints_t interval = int_right(bits_of(plus(t, lanes_of(1.0f))), 22);
    lanes_t z = minus(t, pick8(GELU_WIDE_CENTERS, interval));
    lanes_t shape = pick8(GELU_WIDE_SHAPES[7], interval);
    for (int k = 6; k >= 0; k--) shape = fma_of(shape, z, pick8(GELU_WIDE_SHAPES[k], interval));
    parts->shape = shape;
    parts->lead = pick8(GELU_WIDE_LEADS, interval);
}
static inline lanes_t gelu_near_shape(lanes_t t) {
    ints_t interval = int_right(bits_of(gelu_near_place(t)), 22);
    lanes_t shape = pick8(GELU_WIDE_NEAR_SHAPES[6], interval);
    for (int k = 5; k >= 0; k--) shape = fma_of(shape, t, pick8(GELU_WIDE_NEAR_SHAPES[k], interval));
    return shape;
}
#endif

static inline gelu_t gelu_single_parts(lanes_t t) {
    gelu_t parts;
    whole_t n = exp_whole(times(t, t), -0.5f, EXP_STEPS);
    lanes_t taken = times(n.octaves, lanes_of(LN2 * 2.0f)); /* exact */
    parts.r = plus(fma_of(t, t, taken), pick_step(GELU_SHIFTS, n.steps));
    parts.power = exp_power(pick_step((const float *)EXP_POWERS, n.steps), EXP_STEPS, n);
    gelu_shape(t, &parts);
    return parts;
}

/* For t that were halves: t^2 is exact. */
static inline gelu_t gelu_half_parts(lanes_t t) {
    gelu_t parts;
    lanes_t square = times(t, t);
    whole_t n = exp_whole(square, -0.5f, EXP_NEAR_STEPS);
    parts.r = fma_of(n.octaves, lanes_of(LN2_NEAR * 2.0f), square);
    parts.power = exp_power(pick_near_step((const float *)EXP_NEAR_POWERS, n.steps), EXP_NEAR_STEPS, n);
    parts.lead = gelu_near_shape(t);
    return parts;
}

/* (1 + shape) e^(-(1 + EXP_LACK) r/2) - 1. */
static inline lanes_t gelu_rest(const gelu_t *parts) {
    const float scale = -0.5f * (1.0f + EXP_LACK);
    lanes_t tail = fma_of(parts->r, exp_tail_lanes(parts->r, scale), lanes_of(scale));
    return fma_of(fma_of(parts->r, parts->shape, parts->r), tail, parts->shape);
}

/* t, at most 13: beyond, exponents run out where powers are made of bits, and a power that is 0 leaves
 * the result no sign. */
static inline lanes_t gelu_bounded(lanes_t x) { return at_most(magnitude(x), 13.0f); }

/* The same for those that find out what lies beyond. With sixteen lanes singles need no look at x for
 * that: their tables end in zeros, which are seen. */
#if LANES == 16
static inline lanes_t gelu_distance(lanes_t x) { return magnitude(x); }
static inline void see_single_argument(seen_t *seen, lanes_t x) {}
#else
static inline lanes_t gelu_distance(lanes_t x) { return gelu_bounded(x); }
static inline void see_single_argument(seen_t *seen, lanes_t x) { see_argument(seen, x); }
#endif

#define GELU_ROOT_LOW -0x1.cd01fep-22f
static inline lanes_t gelu_backward_single_lanes(const void *none, lanes_t g, lanes_t x, seen_t *seen) {
    const lanes_t one = lanes_of(1.0f), root = lanes_of(GELU_ROOT);
    lanes_t t = gelu_distance(x);
    gelu_t parts = gelu_single_parts(t);
    /* On the right 1 - tail: there the tail is negative, and the product gets its sign. */
    choice_t right = above_zero(x);
    lanes_t lead = negative_where(right, times(parts.power, parts.lead));
    lanes_t near = minus(root, t);
    lanes_t near_low = plus(minus(minus(root, near), t), lanes_of(GELU_ROOT_LOW));
    lanes_t tail = times(near, lead);
    lanes_t slope = plus_where(right, tail, one);
    lanes_t low = fma_of(near_low, lead, fms_of(near, lead, minus_where(right, slope, one)));
    lanes_t slope_low = fma_of(plus(tail, low), gelu_rest(&parts), low);
    choice_t some = not_zero(g);
    lanes_t result = fma_of(g, slope, as_addend(times(g, slope_low), some));
    see_single_argument(seen, x);
    see_size(seen, result, some);
    seen->nearest = least_magnitude(seen->nearest, near);
    return show(seen, result);
}

/* `t` may be less than the distance of x, so that exponents last. */
static inline lanes_t gelu_backward_short(
        lanes_t distance, lanes_t t, lanes_t g, lanes_t x, seen_t *seen) {
    gelu_t parts = gelu_half_parts(t);
    lanes_t near = plus(minus(lanes_of(GELU_ROOT), distance), lanes_of(GELU_ROOT_LOW));
    lanes_t rest = exp_near_rest(parts.r, -0.5f);
    lanes_t lead = times(times(near, parts.power), parts.lead);
    lanes_t tail = fma_of(lead, rest, lead);
    return show(seen, times(g, rest_of_1_where(above_zero(x), tail)));
}

/* Results are 0 long before 13, whatever a half is multiplied by; what is infinite stays it. */
static inline lanes_t gelu_backward_half_lanes(const void *none, lanes_t g, lanes_t x, seen_t *seen) {
    return gelu_backward_short(magnitude(x), gelu_bounded(x), g, x, seen);
}

static inline lanes_t gelu_backward_bfloat_lanes(const void *none, lanes_t g, lanes_t x, seen_t *seen) {
    see_argument(seen, x);
    lanes_t t = gelu_distance(x);
    return gelu_backward_short(t, t, g, x, seen);
}

/* --- Logit ----------------------------------------------------------------------------------- */


static inline void logit_prepare(const double *p, logit_t *logit) {
    float eps = (float)p[0];
    logit->low = eps < 0 ? 0.0f : eps;
    logit->high = eps < 0 ? 1.0f : 1.0f - eps;
    logit->outside = eps < 0 ? __builtin_nanf("") : 0.0f;
    logit->even = logit->high >= 0.5f && logit->low == 1.0f - logit->high;
    logit->odd = logit_backward_odd(p);
}

#define LOGIT(s) (&((const facts_t *)(s))->logit)
static inline lanes_t logit_inside(const logit_t *logit, lanes_t q, lanes_t x) {
    return choose(between(x, logit->low, logit->high), q, lanes_of(logit->outside));
}

/* x (1 - x) = y - y^2 for the lesser one of the two, y, which is exact where it is 1 - x; in two
 * parts, because y is at most twice the difference. The residual of a quotient that is 2^-14 off
 * leaves 2^-28. `even`: the bounds are known to be as far from 0 as from 1, so that y tells. */
static inline __attribute__((always_inline)) lanes_t logit_backward_single(
        const logit_t *logit, int even, lanes_t x, lanes_t dy, seen_t *seen) {
    lanes_t y = lesser(x, minus(lanes_of(1.0f), x));
    lanes_t product = fnma_of(y, y, y);
    lanes_t low = fnma_of(y, y, minus(y, product));
    lanes_t inverse = near_inverse(product);
    lanes_t near = times(dy, inverse);
    lanes_t residual = fnma_of(near, low, fnma_of(near, product, dy));
    choice_t some = not_zero(dy);
    lanes_t q = with_sign_of(fma_of(residual, inverse, near), near, some);
    see_size(seen, dy, some);
    show(seen, q);
    if (even) return choose(reaches(y, logit->low), q, lanes_of(logit->outside));
    return logit_inside(logit, q, x);
}
static inline lanes_t logit_backward_single_lanes(const void *facts, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_single(LOGIT(facts), 0, x, dy, seen);
}
static inline lanes_t logit_even_single_lanes(const void *facts, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_single(LOGIT(facts), 1, x, dy, seen);
}

static inline lanes_t logit_backward_half_lanes(const void *facts, lanes_t x, lanes_t dy, seen_t *seen) {
    lanes_t product = show(seen, times(x, minus(lanes_of(1.0f), x)));
    return logit_inside(LOGIT(facts), over(dy, product), x);
}


/* --- Leaky ReLU and hard shrinkage ------------------------------------------------------------ */

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

static inline void scale_prepare(const double *p, ptrdiff_t n, kind_t kind, scale_t *scale) {
    float slope = scale->slope = scale->near = (float)p[0];
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

/* Which magnitudes pass, as bits of each type: from `low` on, `reach` more, up to infinity. */

static inline void keep_prepare(const double *p, keep_t *keep) {
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

/* --- Loops ----------------------------------------------------------------------------------- */

/* `n` is how many elements there are to compute, `kind` that of all operands, SINGLE if they differ. */
static void elu_facts(facts_t *facts, ptrdiff_t n, kind_t kind) { elu_prepare(facts->p, &facts->elu); }
static void logit_facts(facts_t *facts, ptrdiff_t n, kind_t kind) { logit_prepare(facts->p, &facts->logit); }
static void keep_facts(facts_t *facts, ptrdiff_t n, kind_t kind) { keep_prepare(facts->p, &facts->line.keep); }
static void scale_facts(facts_t *facts, ptrdiff_t n, kind_t kind) {
    scale_prepare(facts->p, n, kind, &facts->line.scale);
}

/* Bytes between reading and asking for: into the cache nearby, and into the one behind it. */
enum { NEAR_AHEAD = 1024, FAR_AHEAD = 16384 };

/* Where operands are: in the nearest cache, in a core's others, or beyond. A loop for each, because
 * what is tested in a loop is tested again and again. */
typedef enum { HERE, NEAR, FAR } distance_t;

/* By way of integers: what lies ahead may lie beyond the array, and is not touched. */
static inline __attribute__((always_inline)) void prefetch_ahead(
        const char *p, ptrdiff_t offset, ptrdiff_t n, distance_t distance) {
    for (ptrdiff_t k = 0; k < n; k += 64) {
        uintptr_t here = (uintptr_t)p + (uintptr_t)(offset + k);
        __builtin_prefetch((const void *)(here + NEAR_AHEAD), 0, 3);
        if (distance == FAR) __builtin_prefetch((const void *)(here + FAR_AHEAD), 0, 2);
    }
}

static inline ptrdiff_t size_of(kind_t kind) { return kind == SINGLE ? 4 : 2; }

static inline lanes_t from_kind(kind_t kind, halves_t h) {
    return kind == HALF ? from_halves(h) : from_bfloats(h);
}
static inline lanes_t load_kind(kind_t kind, const char *p) {
    if (kind == SINGLE) return lanes_load((const float *)p);
    return from_kind(kind, halves_load((const uint16_t *)p));
}

/* The upper halves become those of x rounded; see `rounded`. */
static inline ints_t rounded_bfloats(lanes_t x, float bound, uint16_t *doubt) {
    if (bound == 0) return nearest_upper(bits_of(x));
    /* Within so many units of the middle of two neighbours; elsewhere as many do not matter. */
    const uint32_t reach = bound < 4e-7f ? 8 : 16;
    ints_t above = int_plus(bits_of(x), ints_of(0x8000u + reach));
    *doubt = (uint16_t)which_miss(above, ints_of(0x10000u - 2 * reach));
    return above;
}

/* Floats to halves of a kind; a NaN stays one, with what its upper half says, and becomes quiet. */
static inline halves_t narrowed(kind_t kind, lanes_t x) {
    if (kind == HALF) return to_halves(x);
    lanes_t rounded = floats_of(nearest_upper(bits_of(x)));
    return upper_halves(bits_of(choose(is_nan(x), plus(x, x), rounded)));
}

/* Round x to halves. `bound` is of its relative error; 0: it was rounded to odd, or is exact. */
static inline halves_t rounded(kind_t kind, lanes_t x, float bound, uint16_t *doubt) {
    if (kind == HALF && bound == 0) return to_halves(x);
    if (kind == HALF) {
        halves_t low = to_halves(times(x, lanes_of(1.0f - bound)));
        *doubt = (uint16_t)which_differ(low, to_halves(times(x, lanes_of(1.0f + bound))));
        return low;
    }
    return upper_halves(rounded_bfloats(x, bound, doubt));
}

typedef lanes_t (*lane_formula)(const void *, lanes_t, lanes_t, seen_t *);

typedef struct {
    const char *a, *b; /* the same where there is one input */
    char *out;
    ptrdiff_t n;
    const void *facts;
    uint16_t *doubts; /* a bit for each lane, a number for each register */
    int stream; /* past the cache */
    int prefetch; /* ahead of reads: bits of PREFETCH_... */
    kind_t stored; /* results, once rounded: as what they are; halves as floats or floats as halves */
} span_t;

/* Ask for what comes after the n bytes at `offset` of operands that are alike. */
static inline __attribute__((always_inline)) void prefetch_operands(
        const span_t *s, ptrdiff_t offset, ptrdiff_t n, distance_t distance) {
    if (distance == HERE) return;
    if (s->prefetch & PREFETCH_A) prefetch_ahead(s->a, offset, n, distance);
    if (s->prefetch & PREFETCH_B) prefetch_ahead(s->b, offset, n, distance);
    if (distance == NEAR && s->prefetch & PREFETCH_OUT) prefetch_ahead(s->out, offset, n, distance);
}

/* Bytes of results before the first multiple of a register's size, none where there is hardly more.
 * Registers that cross lines take twice as long to store; so the first one is computed where it
 * lies, and those after it begin at the multiple, some of its results once more. */
static inline ptrdiff_t bytes_to_register(const span_t *s, ptrdiff_t size) {
    enum { WIDE = LANES * 4 };
    ptrdiff_t head = (ptrdiff_t)(-(uintptr_t)s->out & (WIDE - 1u));
    return s->n * size >= 16 * WIDE ? head : 0;
}

static inline distance_t distance_of(const span_t *s) {
    if (s->stream || s->prefetch & PREFETCH_FAR) return FAR;
    return s->prefetch ? NEAR : HERE;
}

static inline __attribute__((always_inline)) lanes_t at(
        lane_formula formula, kind_t in, const span_t *s, ptrdiff_t i, seen_t *seen) {
    lanes_t a = load_kind(in, s->a + i * size_of(in));
    lanes_t b = s->a == s->b ? a : load_kind(in, s->b + i * size_of(in));
    return formula(s->facts, a, b, seen);
}

/* Loads and rounds two registers of bfloats, which take turns in memory. */
static inline __attribute__((always_inline)) ints_t at_interleaved(
        lane_formula formula, limits_t limits, const span_t *s, ptrdiff_t i, seen_t *seen) {
    const ints_t upper = ints_of(0xffff0000u);
    uint16_t *doubt = s->doubts + i / LANES;
    ints_t a = ints_load(s->a + 2 * i), b = s->a == s->b ? a : ints_load(s->b + 2 * i);
    lanes_t even_a = floats_of(int_left(a, 16)), odd_a = floats_of(int_and(a, upper));
    lanes_t even_b = floats_of(int_left(b, 16)), odd_b = floats_of(int_and(b, upper));
    lanes_t even = formula(s->facts, even_a, even_b, &seen[0]), shown = seen[0].shown;
    lanes_t odd = formula(s->facts, odd_a, odd_b, &seen[!limits.as_one]);
    if (limits.finite) see_finite(&seen[0], shown, seen[!limits.as_one].shown);
    return interleave_upper(rounded_bfloats(even, limits.bound, doubt),
                       rounded_bfloats(odd, limits.bound, doubt + 1));
}

/* Loads and rounds two registers, to halves that follow one another. */
static inline __attribute__((always_inline)) ints_t at_both(
        lane_formula formula, kind_t in, kind_t out, limits_t limits, const span_t *s, ptrdiff_t i,
        seen_t *seen) {
    uint16_t *doubt = s->doubts + i / LANES;
    lanes_t x = at(formula, in, s, i, &seen[0]), shown = seen[0].shown;
    halves_t low = rounded(out, x, limits.bound, doubt);
    lanes_t y = at(formula, in, s, i + LANES, &seen[!limits.as_one]);
    if (limits.finite) see_finite(&seen[0], shown, seen[!limits.as_one].shown);
    return both_halves(low, rounded(out, y, limits.bound, doubt + 1));
}

static inline void put_lanes(float *target, lanes_t x, int stream) {
    if (stream) stream_lanes(target, x);
    else lanes_store(target, x);
}
static inline void put_line(char *target, ints_t line, int stream) {
    if (stream) ints_stream(target, line);
    else ints_store(target, line);
}
/* A line of a kind, at `offset` among others: as it is, or as two lines of floats. */
static inline __attribute__((always_inline)) void put_kind(
        char *out, ptrdiff_t offset, ints_t line, kind_t kind, kind_t stored, int stream) {
    if (stored == kind) {
        put_line(out + offset, line, stream);
        return;
    }
    float *target = (float *)(out + 2 * offset);
    put_lanes(target, from_kind(kind, low_halves(line)), stream);
    put_lanes(target + LANES, from_kind(kind, high_halves(line)), stream);
}

/* Two registers at a time, so that halves fill a line. */
static inline __attribute__((always_inline)) ptrdiff_t over_pairs(
        lane_formula formula, kind_t in, kind_t out, kind_t stored, limits_t limits,
        distance_t distance, const span_t *s, ptrdiff_t i, seen_t *all_seen) {
    const int stream = distance == FAR && s->stream;
    seen_t seen[2] = { all_seen[0], all_seen[1] };
    for (; i + 2 * LANES <= s->n; i += 2 * LANES) {
        prefetch_operands(s, i * size_of(in), 2 * LANES * size_of(in), distance);
        if (out == SINGLE) {
            float *target = (float *)s->out + i;
            lanes_t low = at(formula, in, s, i, &seen[0]), shown = seen[0].shown;
            lanes_t high = at(formula, in, s, i + LANES, &seen[!limits.as_one]);
            if (limits.finite) see_finite(&seen[0], shown, seen[!limits.as_one].shown);
            if (stored != SINGLE) {
                ints_t line = both_halves(narrowed(stored, low), narrowed(stored, high));
                put_line(s->out + 2 * i, line, stream);
                continue;
            }
            put_lanes(target, low, stream);
            put_lanes(target + LANES, high, stream);
            continue;
        }
        ints_t line = in == BFLOAT ? at_interleaved(formula, limits, s, i, seen)
                                   : at_both(formula, in, out, limits, s, i, seen);
        if (limits.nan) see_short_most(&seen[0], line);
        put_kind(s->out, 2 * i, line, out, stored, stream);
    }
    all_seen[0] = seen[0];
    all_seen[1] = seen[1];
    return i;
}

/* One register, for what is left of a row. */
static inline __attribute__((always_inline)) void over_one(
        lane_formula formula, kind_t in, kind_t out, kind_t stored, limits_t limits,
        const span_t *s, seen_t *seen) {
    lanes_t x = at(formula, in, s, 0, seen);
    if (limits.finite) see_finite(seen, seen->shown, lanes_of(0.0f));
    if (out == SINGLE) {
        if (stored == SINGLE) lanes_store((float *)s->out, x);
        else halves_store((uint16_t *)s->out, narrowed(stored, x));
        return;
    }
    halves_t h = rounded(out, x, limits.bound, s->doubts);
    if (limits.nan) see_short_most(seen, both_halves(h, h));
    if (stored == SINGLE) lanes_store((float *)s->out, from_kind(out, h));
    else halves_store((uint16_t *)s->out, h);
}

static inline span_t span_at(const span_t *s, ptrdiff_t i, ptrdiff_t in_size, ptrdiff_t out_size) {
    span_t part = {
        s->a + i * in_size, s->b + i * in_size, s->out + i * out_size, LANES, s->facts,
        s->doubts + i / LANES, 0, 0, s->stored,
    };
    return part;
}

/* Bytes of numbers that no formula minds: 0.53 or 4e-5, whatever the type. */
enum { FILLER = 0x38 };

/* The last elements, fewer than a register holds, are computed together with some before them;
 * where these have doubts, which are numbered, or there are none, by way of copies that are filled
 * up. */
static inline __attribute__((always_inline)) int over_lanes(
        lane_formula formula, kind_t in, kind_t out, kind_t stored, limits_t limits, span_t s) {
    seen_t seen[2] = { nothing_seen(), nothing_seen() };
    distance_t distance = distance_of(&s);
    /* Doubts are numbered from the beginning: halves begin there. */
    ptrdiff_t done = out == SINGLE && stored == SINGLE ? bytes_to_register(&s, 4) / 4 : 0;
    if (done) over_one(formula, in, out, stored, limits, &s, &seen[0]);
    done = distance == FAR    ? over_pairs(formula, in, out, stored, limits, FAR, &s, done, seen)
           : distance == NEAR ? over_pairs(formula, in, out, stored, limits, NEAR, &s, done, seen)
                              : over_pairs(formula, in, out, stored, limits, HERE, &s, done, seen);
    while (done < s.n) {
        /* A line that went past the cache must not be written again. */
        if (out == SINGLE && !s.stream && s.n >= LANES && s.n - done < LANES) done = s.n - LANES;
        ptrdiff_t rest = s.n - done;
        span_t last = span_at(&s, done, size_of(in), size_of(stored));
        char a[LANES * 4], b[LANES * 4], result[LANES * 4];
        if (rest < LANES) {
            ints_store(a, first_bytes(last.a, rest * size_of(in), FILLER));
            if (last.a != last.b) ints_store(b, first_bytes(last.b, rest * size_of(in), FILLER));
            last.b = last.a == last.b ? a : b;
            last.a = a;
            last.out = result;
        }
        over_one(formula, in, out, stored, limits, &last, &seen[0]);
        if (rest < LANES) put_first_bytes(s.out + done * size_of(stored), rest * size_of(stored), ints_load(result));
        done += LANES;
    }
    seen_t all = seen_by_both(&seen[0], &seen[1]);
    if (out != SINGLE && limits.nan && nan_seen(&all, out == HALF ? 0x7c00u : 0x7f80u)) return 1;
    return odd_seen(&all, limits);
}

static inline int any_doubt(const uint16_t *doubts, ptrdiff_t n) {
    unsigned found = 0;
    for (ptrdiff_t i = 0; i < (n + LANES - 1) / LANES; i++) found |= doubts[i];
    return found != 0;
}

/* Every bit moves to twice its place. */
static inline uint32_t spread_bits(uint32_t x) {
    x = (x | x << 8) & 0x00ff00ffu;
    x = (x | x << 4) & 0x0f0f0f0fu;
    x = (x | x << 2) & 0x33333333u;
    return (x | x << 1) & 0x55555555u;
}

/* Put doubts about elements that took turns in order; what does not fill two registers did not. */
static inline void order_doubts(uint16_t *doubts, ptrdiff_t n) {
    const uint32_t lanes = (1u << LANES) - 1u;
    for (ptrdiff_t i = 0; i < n / (2 * LANES); i++, doubts += 2) {
        if (!(doubts[0] | doubts[1])) continue;
        uint32_t both = spread_bits(doubts[0]) | spread_bits(doubts[1]) << 1;
        doubts[0] = (uint16_t)(both & lanes);
        doubts[1] = (uint16_t)(both >> LANES);
    }
}

/* What a loop finds: SUSPECTS, DOUBTS or both. Doubts are only set for halves. */
typedef int (*lane_loop)(const span_t *);

#define LOOP(name, formula, in, out, limits, odd) \
    static int name(const span_t *s) { \
        int found = (s->stored == out      ? over_lanes(formula, in, out, out, limits, *s) \
                     : out != SINGLE       ? over_lanes(formula, in, out, SINGLE, limits, *s) \
                     : s->stored == HALF   ? over_lanes(formula, in, out, HALF, limits, *s) \
                                           : over_lanes(formula, in, out, BFLOAT, limits, *s)) | (odd); \
        int doubts = out != SINGLE && limits.bound != 0 && any_doubt(s->doubts, s->n); \
        if (doubts && in == BFLOAT && out == BFLOAT) order_doubts(s->doubts, s->n); \
        return (found ? SUSPECTS : 0) | (doubts ? DOUBTS : 0); \
    }
/* Operands that are all alike, then halves from float32 buffers. The forms for halves may stand on
 * inputs that were halves; `from_float` does not. */
#define LOOPS(name, half, bfloat, from_float, limits, odd) \
    LOOP(name##_0, name##_single_lanes, SINGLE, SINGLE, limits, odd) \
    LOOP(name##_1, half, HALF, HALF, limits, odd) \
    LOOP(name##_2, bfloat, BFLOAT, BFLOAT, limits, odd) \
    LOOP(name##_3, from_float, SINGLE, HALF, limits, odd) \
    LOOP(name##_4, from_float, SINGLE, BFLOAT, limits, odd)
#define LOOPS_TABLE(name) \
    static const lane_loop name##_loops[5] = { name##_0, name##_1, name##_2, name##_3, name##_4 };

#define FACTS(s) ((const facts_t *)(s)->facts)
static const limits_t NO_LIMITS = { 0 };
static const limits_t LEAKY_LIMITS = { .finite = 1 };
static const limits_t ELU_LIMITS = { .bound = 3.5e-7f, .most = ELU_LAST, .finite = 1 };
/* Of all halves the worst, with gradient 1, is 4.5e-7 off; another 6e-8 for the product with the
 * gradient, and for that with 1 + or - the bound, which is exact itself. */
static const limits_t GELU_LIMITS = {
    .bound = 0x1.4p-21f, .most = GELU_LAST, .near = GELU_BESIDE, .finite = 1, .as_one = 1,
};
static const limits_t LOGIT_LIMITS = { .bound = 2.5e-7f, .finite = 1, .nan = 1 };
LOOPS(elu_backward, elu_backward_half_lanes, elu_backward_half_lanes, elu_backward_single_lanes, ELU_LIMITS, FACTS(s)->elu.odd)
LOOPS(gelu_backward, gelu_backward_half_lanes, gelu_backward_bfloat_lanes, gelu_backward_single_lanes, GELU_LIMITS, 0)
LOOPS(logit_backward, logit_backward_half_lanes, logit_backward_half_lanes, logit_backward_half_lanes, LOGIT_LIMITS, FACTS(s)->logit.odd)
LOOPS(leaky_relu, leaky_relu_half_lanes, leaky_relu_bfloat_lanes, leaky_relu_bfloat_lanes, LEAKY_LIMITS, 0)
LOOPS(elu_unit, elu_unit_half_lanes, elu_unit_half_lanes, elu_unit_single_lanes, ELU_LIMITS, FACTS(s)->elu.odd)
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
LOOPS_TABLE(gelu_backward)
LOOP(logit_even, logit_even_single_lanes, SINGLE, SINGLE, LOGIT_LIMITS, FACTS(s)->logit.odd)
static int logit_by_bounds(const span_t *s) {
    return FACTS(s)->logit.even ? logit_even(s) : logit_backward_0(s);
}
static const lane_loop logit_backward_loops[5] = {
    logit_by_bounds, logit_backward_1, logit_backward_2, logit_backward_3, logit_backward_4,
};

/* What needs no more than bits, or is rounded at once, goes by lines: registers of memory, whatever
 * they hold. Span and facts are copied: they might lie where results go, for all that is known of
 * pointers, and would be read again for every line. */
typedef ints_t (*line_formula)(const line_facts_t *facts, const char *a, const char *b, seen_t *seen);

static inline __attribute__((always_inline)) ptrdiff_t over_whole_lines(
        line_formula formula, kind_t kind, kind_t stored, const span_t *s, const line_facts_t *facts,
        ptrdiff_t i, ptrdiff_t bytes, distance_t distance, seen_t *seen) {
    enum { WIDE = LANES * 4 };
    const int stream = distance == FAR && s->stream;
    for (; i + 2 * WIDE <= bytes; i += 2 * WIDE) {
        prefetch_operands(s, i, 2 * WIDE, distance);
        ints_t line = formula(facts, s->a + i, s->b + i, seen);
        ints_t next = formula(facts, s->a + i + WIDE, s->b + i + WIDE, seen);
        put_kind(s->out, i, line, kind, stored, stream);
        put_kind(s->out, i + WIDE, next, kind, stored, stream);
    }
    for (; i + WIDE <= bytes; i += WIDE)
        put_kind(s->out, i, formula(facts, s->a + i, s->b + i, seen), kind, stored, stream);
    return i;
}

static inline __attribute__((always_inline)) int over_lines(
        line_formula formula, kind_t kind, kind_t stored, span_t s, line_facts_t facts) {
    enum { WIDE = LANES * 4 };
    const ptrdiff_t size = size_of(kind);
    seen_t seen = nothing_seen();
    ptrdiff_t bytes = s.n * size;
    distance_t distance = distance_of(&s);
    ptrdiff_t i = kind == stored ? bytes_to_register(&s, size) : 0;
    if (i) ints_store(s.out, formula(&facts, s.a, s.b, &seen));
    i = distance == FAR    ? over_whole_lines(formula, kind, stored, &s, &facts, i, bytes, FAR, &seen)
        : distance == NEAR ? over_whole_lines(formula, kind, stored, &s, &facts, i, bytes, NEAR, &seen)
                           : over_whole_lines(formula, kind, stored, &s, &facts, i, bytes, HERE, &seen);
    if (i < bytes && bytes >= WIDE && !s.stream) {
        i = bytes - WIDE;
        put_kind(s.out, i, formula(&facts, s.a + i, s.b + i, &seen), kind, stored, 0);
    } else if (i < bytes) {
        char a[WIDE], b[WIDE], result[2 * WIDE];
        ptrdiff_t rest = bytes - i;
        ints_store(a, first_bytes(s.a + i, rest, FILLER));
        ints_store(b, first_bytes(s.b + i, rest, FILLER));
        put_kind(result, 0, formula(&facts, a, b, &seen), kind, stored, 0);
        if (kind == stored) put_first_bytes(s.out + i, rest, ints_load(result));
        else memcpy(s.out + 2 * i, result, (size_t)(2 * rest));
    }
    /* There is one NaN, and a bfloat up to the least that is normal may have been rounded twice. */
    uint16_t infinity = kind == HALF ? 0x7c00u : 0x7f80u;
    return nan_seen(&seen, infinity) | any_short_at_most(seen.least, 0xffu) ? SUSPECTS : 0;
}

#define LINE_LOOP(name, formula, kind) \
    static int name(const span_t *s) { \
        if (s->stored != kind) return over_lines(formula, kind, SINGLE, *s, FACTS(s)->line); \
        return over_lines(formula, kind, kind, *s, FACTS(s)->line); \
    }

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

#else

enum { LANES = 16 };
typedef struct { double p[4]; } facts_t;
typedef struct {
    const char *a, *b;
    char *out;
    ptrdiff_t n;
    const void *facts;
    uint16_t *doubts;
    int stream; /* past the cache */
    int prefetch; /* ahead of reads: bits of PREFETCH_... */
    kind_t stored; /* results, once rounded: as what they are; halves as floats or floats as halves */
} span_t;
typedef int (*lane_loop)(const span_t *);

#endif

#endif
