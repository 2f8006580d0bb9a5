/* ELU and its gradient by lanes. */
#ifndef ACLNN_LANE_ELU_H
#define ACLNN_LANE_ELU_H

#include "lane_exp.h"
#include "lane_loops.h"

#ifdef LANES

typedef struct {
    float powers[16], shifts[16], near_powers[32], rate, scale;
    int extreme;
} elu_backward_t;
typedef struct { float rate, scale, factor, factor_low, last; int extreme; } elu_t;
PARAMS_FIT(elu_backward_t);
PARAMS_FIT(elu_t);
#define ELU_BACKWARD_PARAMS(params) OWN_PARAMS(elu_backward_t, params)
#define ELU_PARAMS(params) OWN_PARAMS(elu_t, params)

#define ELU_LAST 0xc2a00000u /* -80: the power's exponent must not run out */

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

/* `table` of powers times `factor`. */
INLINED void scale_powers(const void *table, int steps, float factor, float *scaled) {
    for (int j = 0; j < steps; j += LANES) {
        ints_t offset = octave_bits(steps, numbers_from((uint32_t)j));
        lanes_t power = floats_of(int_plus(ints_load((const float *)table + j), offset));
        ints_t bits = bits_of(times(lanes_of(factor), power));
        ints_store(scaled + j, int_minus(bits, offset));
    }
}

_Static_assert(
    sizeof(((elu_backward_t *)0)->powers) >= EXP_STEPS * sizeof(float)
        && sizeof(((elu_backward_t *)0)->shifts) >= EXP_STEPS * sizeof(float)
        && sizeof(((elu_backward_t *)0)->near_powers) >= EXP_NEAR_STEPS * sizeof(float),
    "there is room for the tables");

/* The slope joins the tables: its first twelve bits the powers, which stay exact, the logarithm of
 * the rest the shifts. */
static void prepare_elu_backward(params_t *params, kind_t kind) {
    const double *p = params->p;
    elu_backward_t *elu = ELU_BACKWARD_PARAMS(params);
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
INLINED lanes_t elu_reduced(const elu_backward_t *elu, lanes_t x, int unit, int steps, whole_t *n, seen_t *seen) {
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
INLINED lanes_t elu_backward_single(const elu_backward_t *elu, int unit, lanes_t g, lanes_t x, seen_t *seen) {
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

INLINED lanes_t elu_backward_short(const elu_backward_t *elu, int unit, lanes_t g, lanes_t x, seen_t *seen) {
    whole_t n;
    lanes_t rest = exp_near_rest(elu_reduced(elu, x, unit, EXP_NEAR_STEPS, &n, seen), 1.0f);
    lanes_t power = exp_power(pick_near_step(elu->near_powers, n.steps), EXP_NEAR_STEPS, n);
    lanes_t slope = choose(above_zero(x), lanes_of(elu->scale), fma_of(power, rest, power));
    return show(seen, times(g, slope));
}

INLINED lanes_t elu_backward_single_lanes(const params_t *params, lanes_t g, lanes_t x, seen_t *seen) {
    return elu_backward_single(ELU_BACKWARD_PARAMS(params), 0, g, x, seen);
}
INLINED lanes_t elu_backward_half_lanes(const params_t *params, lanes_t g, lanes_t x, seen_t *seen) {
    return elu_backward_short(ELU_BACKWARD_PARAMS(params), 0, g, x, seen);
}
INLINED lanes_t elu_unit_single_lanes(const params_t *params, lanes_t g, lanes_t x, seen_t *seen) {
    return elu_backward_single(ELU_BACKWARD_PARAMS(params), 1, g, x, seen);
}
INLINED lanes_t elu_unit_half_lanes(const params_t *params, lanes_t g, lanes_t x, seen_t *seen) {
    return elu_backward_short(ELU_BACKWARD_PARAMS(params), 1, g, x, seen);
}

static const limits_t ELU_BACKWARD_LIMITS = { .bound = 3.5e-7f, .most = ELU_LAST, .finite = 1 };
LOOPS(elu_backward, elu_backward_half_lanes, elu_backward_half_lanes, elu_backward_single_lanes, a,
      ELU_BACKWARD_LIMITS, ELU_BACKWARD_PARAMS(s->params)->extreme)
LOOPS(elu_unit, elu_unit_half_lanes, elu_unit_half_lanes, elu_unit_single_lanes, a,
      ELU_BACKWARD_LIMITS, ELU_BACKWARD_PARAMS(s->params)->extreme)
#define ELU_BY_RATE(kind) \
    static int elu_by_rate_##kind##_loop(const span_t *s) { \
        int unit = ELU_BACKWARD_PARAMS(s->params)->rate == 1.0f; \
        return unit ? elu_unit_##kind##_loop(s) : elu_backward_##kind##_loop(s); \
    }
ELU_BY_RATE(single)
ELU_BY_RATE(half)
ELU_BY_RATE(bfloat)
ELU_BY_RATE(to_half)
ELU_BY_RATE(to_bfloat)
LOOPS_TABLE(elu_by_rate)

static void prepare_elu(params_t *params, kind_t kind) {
    const double *p = params->p;
    elu_t *elu = ELU_PARAMS(params);
    double factor = p[0] * p[1];
    elu->rate = (float)p[2];
    elu->scale = (float)p[1];
    elu->factor = (float)factor;
    elu->factor_low = (float)(factor - elu->factor);
    elu->last = (float)(-80.0 / p[2]);
    elu->extreme = elu_extreme(p);
}

/* e^y for y = rate max(min(x, 0), last): power (1 + high + low + what a polynomial makes of both). From
 * `last` on e^y - 1 is -1 to the last digit. `high` is exact. */
typedef struct { lanes_t power, high, low; } decay_t;
INLINED decay_t elu_decay(const elu_t *elu, lanes_t x) {
    const lanes_t rate = lanes_of(elu->rate);
    decay_t d;
    lanes_t below = at_least(at_most(x, 0.0f), elu->last), y = times(rate, below);
    whole_t n = exp_whole(y, 1.0f, EXP_STEPS);
    d.high = fma_of(n.octaves, lanes_of(-LN2), y);
    d.low = fma_of(n.octaves, lanes_of(-LN2_LOW), pick_step(EXP_SHIFTS, n.steps));
    d.low = plus(d.low, fms_of(rate, below, y));
    d.power = exp_power(pick_step((const float *)EXP_POWERS, n.steps), EXP_STEPS, n);
    return d;
}
INLINED lanes_t elu_chosen(const elu_t *elu, lanes_t x, lanes_t negative) {
    return choose(above_zero(x), times(x, lanes_of(elu->scale)), negative);
}

/* factor (power - 1 + power (high + rest)), every sum in two parts: near the root of e^y - 1 they are
 * as large as it, or larger. */
INLINED lanes_t elu_single_lanes(const params_t *params, lanes_t x, lanes_t same, seen_t *seen) {
    const elu_t *elu = ELU_PARAMS(params);
    const lanes_t one = lanes_of(1.0f), factor = lanes_of(elu->factor);
    decay_t d = elu_decay(elu, x);
    lanes_t r = plus(d.high, d.low);
    lanes_t rest = fma_of(times(r, r), exp_long_tail(r, 1.0f), d.low);
    lanes_t head = minus(d.power, one), head_low = minus(d.power, plus(head, one));
    lanes_t near = fma_of(d.power, d.high, head);
    lanes_t near_low = plus(fma_of(d.power, d.high, minus(head, near)), head_low);
    lanes_t low = fma_of(d.power, rest, near_low);
    low = fma_of(lanes_of(elu->factor_low), near, times(factor, low));
    choice_t some = not_zero(x);
    lanes_t result = elu_chosen(elu, x, fma_of(factor, near, added_to(seen, low, some)));
    see_size(seen, x, some); /* of which a result of 0 may be all that is left */
    see_size(seen, result, some);
    return show(seen, result);
}

INLINED lanes_t elu_half_lanes(const params_t *params, lanes_t x, lanes_t same, seen_t *seen) {
    const elu_t *elu = ELU_PARAMS(params);
    decay_t d = elu_decay(elu, x);
    lanes_t r = plus(d.high, d.low), rest = fma_of(times(r, r), exp_long_tail(r, 1.0f), r);
    lanes_t grown = fma_of(d.power, rest, minus(d.power, lanes_of(1.0f)));
    return show(seen, elu_chosen(elu, x, times(grown, lanes_of(elu->factor))));
}

/* The exponent is 2e-7 of the least that is not near 0; four roundings. */
static const limits_t ELU_LIMITS = { .bound = 3.9e-7f, .finite = 1 };
LOOPS(elu, elu_half_lanes, elu_half_lanes, elu_single_lanes, a, ELU_LIMITS, ELU_PARAMS(s->params)->extreme)
LOOPS_TABLE(elu)

MARK(elu)
MARK(elu_backward)

#define ELU_FORMS \
    { "elu", { &elu_loops, prepare_elu, elu_mark } }, \
    { "elu_backward", { &elu_by_rate_loops, prepare_elu_backward, elu_backward_mark } },

#endif

#endif
