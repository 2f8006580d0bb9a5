/* ELU and its gradient over vectors. */
#ifndef ACLNN_SIMD_ELU_H
#define ACLNN_SIMD_ELU_H

#include "simd/exp.h"
#include "simd/loop_args.h"
#include "simd/track.h"

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

/* Scalars so far from 1 that intermediate results might overflow or underflow. */
static inline int elu_backward_extreme(const double *p) {
    double slope = p[0] * p[1] * p[2];
    return !(p[2] > 0 && p[2] <= 1024 && slope <= 1048576 && slope >= 9.5e-7);
}
static inline int elu_extreme(const double *p) {
    double factor = p[0] * p[1], size = factor < 0 ? -factor : factor;
    return !(p[2] > 0 && p[2] <= 1024 && size <= 1048576 && size >= 9.5e-7 && p[2] * size >= 9.5e-7);
}
static inline int elu_is_exceptional(float x, float same, float r, const double *p) {
    return elu_extreme(p) | is_extreme(x) | is_extreme(r);
}
static inline int elu_backward_is_exceptional(float g, float x, float r, const double *p) {
    float y = (float)p[2] * (x < 0.0f ? x : 0.0f);
    return elu_backward_extreme(p) | is_extreme(r) | (bits_of_f32(y) > ELU_LAST);
}

/* `table` of powers times `factor`. */
INLINED void scale_powers(const void *table, int steps, float factor, float *scaled) {
    for (int j = 0; j < steps; j += LANES) {
        veci offset = octave_bits(steps, vi_count_from((uint32_t)j));
        vecf power = vi_as_floats(vi_add(vi_load((const float *)table + j), offset));
        veci bits = vf_bits(vf_mul(vf_set(factor), power));
        vi_store(scaled + j, vi_sub(bits, offset));
    }
}

_Static_assert(
    sizeof(((elu_backward_t *)0)->powers) >= EXP_STEPS * sizeof(float)
        && sizeof(((elu_backward_t *)0)->shifts) >= EXP_STEPS * sizeof(float)
        && sizeof(((elu_backward_t *)0)->near_powers) >= EXP_NEAR_STEPS * sizeof(float),
    "there is room for the tables");

/* The slope joins the tables: its first twelve bits the powers, which stay exact, the logarithm of
 * the rest the shifts. */
static void prepare_elu_backward(params_t *params, elem_type type) {
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
        vf_store(elu->shifts + j, vf_add(vf_load(EXP_SHIFTS + j), vf_set(shift)));
    elu->rate = (float)p[2];
    elu->scale = (float)p[1];
    elu->extreme = elu_backward_extreme(p);
}

/* rate min(x, 0) = n octaves + the return value; `unit`: the rate is known to be 1. */
INLINED vecf elu_reduced(const elu_backward_t *elu, vecf x, int unit, int steps, whole_t *n, track_t *track) {
    const vecf high = vf_set(-LN2), low = vf_set(-LN2_LOW);
    const vecf rate = vf_set(elu->rate);
    vecf below = vf_at_most(x, 0.0f);
    vecf y = unit ? below : vf_mul(rate, below);
    *n = exp_whole(y, 1.0f, steps);
    track_argument(track, y);
    if (unit) return vf_fma(n->octaves, low, vf_fma(n->octaves, high, y));
    return vf_add(vf_fma(n->octaves, high, y), vf_fma(n->octaves, low, vf_fms(rate, below, y)));
}

/* g slope e^y = g power + what the rest of the exponential adds to that, rounded together. */
INLINED vecf elu_backward_f32(const elu_backward_t *elu, int unit, vecf g, vecf x, track_t *track) {
    whole_t n;
    vecf r = elu_reduced(elu, x, unit, EXP_STEPS, &n, track);
    vecf rest = exp_rest(vf_add(r, lookup_step(elu->shifts, n.steps)));
    vecf power = exp_power(lookup_step(elu->powers, n.steps), EXP_STEPS, n);
    mask_t some = vf_is_nonzero(g);
    vecf growth = zero_safe_addend(track, vf_mul(vf_mul(g, power), rest), some);
    vecf negative = vf_fma(g, power, growth);
    vecf result = vf_select(vf_is_positive(x), vf_mul(g, vf_set(elu->scale)), negative);
    track_magnitude(track, negative, some);
    return track_result(track, result);
}

INLINED vecf elu_backward_short(const elu_backward_t *elu, int unit, vecf g, vecf x, track_t *track) {
    whole_t n;
    vecf rest = exp_near_rest(elu_reduced(elu, x, unit, EXP_NEAR_STEPS, &n, track), 1.0f);
    vecf power = exp_power(lookup_near_step(elu->near_powers, n.steps), EXP_NEAR_STEPS, n);
    vecf slope = vf_select(vf_is_positive(x), vf_set(elu->scale), vf_fma(power, rest, power));
    return track_result(track, vf_mul(g, slope));
}

INLINED vecf elu_backward_f32_vec(const params_t *params, vecf g, vecf x, track_t *track) {
    return elu_backward_f32(ELU_BACKWARD_PARAMS(params), 0, g, x, track);
}
INLINED vecf elu_backward_half_vec(const params_t *params, vecf g, vecf x, track_t *track) {
    return elu_backward_short(ELU_BACKWARD_PARAMS(params), 0, g, x, track);
}
INLINED vecf elu_unit_f32_vec(const params_t *params, vecf g, vecf x, track_t *track) {
    return elu_backward_f32(ELU_BACKWARD_PARAMS(params), 1, g, x, track);
}
INLINED vecf elu_unit_half_vec(const params_t *params, vecf g, vecf x, track_t *track) {
    return elu_backward_short(ELU_BACKWARD_PARAMS(params), 1, g, x, track);
}

static const domain_t ELU_BACKWARD_DOMAIN = { .rel_error = 3.6e-7f, .max_bits = ELU_LAST, .check_finite = 1 };

static void prepare_elu(params_t *params, elem_type type) {
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
typedef struct { vecf power, high, low; } decay_t;
INLINED decay_t elu_decay(const elu_t *elu, vecf x) {
    const vecf rate = vf_set(elu->rate);
    decay_t d;
    vecf below = vf_at_least(vf_at_most(x, 0.0f), elu->last), y = vf_mul(rate, below);
    whole_t n = exp_whole(y, 1.0f, EXP_STEPS);
    d.high = vf_fma(n.octaves, vf_set(-LN2), y);
    d.low = vf_fma(n.octaves, vf_set(-LN2_LOW), lookup_step(EXP_SHIFTS, n.steps));
    d.low = vf_add(d.low, vf_fms(rate, below, y));
    d.power = exp_power(lookup_step((const float *)EXP_POWERS, n.steps), EXP_STEPS, n);
    return d;
}
INLINED vecf elu_chosen(const elu_t *elu, vecf x, vecf negative) {
    return vf_select(vf_is_positive(x), vf_mul(x, vf_set(elu->scale)), negative);
}

/* factor (power - 1 + power (high + rest)), every sum in two parts: near the root of e^y - 1 they are
 * as large as it, or larger. */
INLINED vecf elu_f32_vec(const params_t *params, vecf x, vecf same, track_t *track) {
    const elu_t *elu = ELU_PARAMS(params);
    const vecf one = vf_set(1.0f), factor = vf_set(elu->factor);
    decay_t d = elu_decay(elu, x);
    vecf r = vf_add(d.high, d.low);
    vecf rest = vf_fma(vf_mul(r, r), exp_long_tail(r, 1.0f), d.low);
    vecf head = vf_sub(d.power, one), head_low = vf_sub(d.power, vf_add(head, one));
    vecf near = vf_fma(d.power, d.high, head);
    vecf near_low = vf_add(vf_fma(d.power, d.high, vf_sub(head, near)), head_low);
    vecf low = vf_fma(d.power, rest, near_low);
    low = vf_fma(vf_set(elu->factor_low), near, vf_mul(factor, low));
    mask_t some = vf_is_nonzero(x);
    vecf result = elu_chosen(elu, x, vf_fma(factor, near, zero_safe_addend(track, low, some)));
    track_magnitude(track, x, some); /* of which a result of 0 may be all that is left */
    track_magnitude(track, result, some);
    return track_result(track, result);
}

INLINED vecf elu_half_vec(const params_t *params, vecf x, vecf same, track_t *track) {
    const elu_t *elu = ELU_PARAMS(params);
    decay_t d = elu_decay(elu, x);
    vecf r = vf_add(d.high, d.low), rest = vf_fma(vf_mul(r, r), exp_long_tail(r, 1.0f), r);
    vecf grown = vf_fma(d.power, rest, vf_sub(d.power, vf_set(1.0f)));
    return track_result(track, elu_chosen(elu, x, vf_mul(grown, vf_set(elu->factor))));
}

/* The exponent is 2e-7 of the least that is not near 0; four roundings. */
static const domain_t ELU_DOMAIN = { .rel_error = 3.9e-7f, .check_finite = 1 };

#endif

#endif
