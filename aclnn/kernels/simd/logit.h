/* Logit and its gradient over vectors. */
#ifndef ACLNN_SIMD_LOGIT_H
#define ACLNN_SIMD_LOGIT_H

#include "simd/exp.h"
#include "simd/log.h"
#include "simd/loop_args.h"
#include "simd/track.h"

#ifdef LANES

typedef struct {
    float low, high, first, last, outside;
    int open, whole, symmetric, extreme, crossed;
} logit_t;
PARAMS_FIT(logit_t);
#define LOGIT_PARAMS(params) OWN_PARAMS(logit_t, params)

#define LOGIT_FIRST 0x00800000u /* the least normal number */
#define LOGIT_REACH (0x3f7fffffu - LOGIT_FIRST) /* and how far it is from there to what is less than 1 */

static inline int logit_extreme(const double *p) { return !(p[0] < 1); }
/* The bounds cross. */
static inline int logit_crossed(const double *p) { return !(p[0] <= 0.5); }
static inline int logit_is_exceptional(float x, float same, float r, const double *p) {
    float low = (float)p[0], high = 1.0f - low;
    float z = p[0] < 0 ? x : x < low ? low : x > high ? high : x;
    return logit_crossed(p) | (bits_of_f32(z) - LOGIT_FIRST > LOGIT_REACH);
}
static inline int logit_backward_is_exceptional(float x, float dy, float r, const double *p) {
    float product = x * (1.0f - x);
    return logit_extreme(p) | is_extreme(r) | is_extreme(dy) | (product == 0) | (product - product != 0);
}

static void prepare_logit(params_t *params, elem_type type) {
    const double *p = params->p;
    logit_t *logit = LOGIT_PARAMS(params);
    float eps = (float)p[0];
    logit->low = eps < 0 ? 0.0f : eps;
    logit->high = eps < 0 ? 1.0f : 1.0f - eps;
    logit->outside = eps < 0 ? __builtin_nanf("") : 0.0f;
    logit->open = eps < 0;
    logit->first = eps < 0 ? -INFINITY : logit->low;
    logit->last = eps < 0 ? INFINITY : logit->high;
    /* Sixteen lanes test for bounds faster than half precision is searched for NaNs. */
    logit->whole = logit->open && (type == F32 || LANES == 8);
    logit->symmetric = logit->high >= 0.5f && logit->low == 1.0f - logit->high;
    logit->extreme = logit_extreme(p);
    logit->crossed = logit_crossed(p);
}

INLINED vecf logit_inside(const logit_t *logit, vecf q, vecf x) {
    return vf_select(vf_between(x, logit->low, logit->high), q, vf_set(logit->outside));
}

/* What is known of the bounds: nothing; that they are as far from 0 as from 1; that they are 0 and 1;
 * and that most likely all x are between these as well. */
typedef enum { ANY, SYMMETRIC, OPEN, WHOLE } bounds_t;

/* z/(1 - z) = 2^octaves w/rest, w/rest between 0.66 and 1.51; the bits of a number are its logarithm, near
 * enough to tell octaves. `rest` is 1 - z rounded; w - rest is exact. */
typedef struct { vecf w, rest, octaves; } odds_t; /* octaves times 2^23 */
INLINED odds_t logit_odds(vecf z) {
    odds_t odds;
    odds.rest = vf_sub(vf_set(1.0f), z);
    veci ratio = vi_sub(vf_bits(z), vf_bits(odds.rest));
    veci octaves = vi_and(vi_add(ratio, vi_set(0x400000u)), vi_set(0xff800000u));
    odds.w = vi_as_floats(vi_sub(vf_bits(z), octaves));
    odds.octaves = vi_to_floats(octaves);
    return odds;
}
/* ln(odds) = octaves ln(2) + 2 atanh(u), u = (w - rest)/(w + rest) = 2w/(w + rest) - 1, in two parts: where
 * there are no octaves nothing may be lost of 2u, and elsewhere it is as large as the result. `sum_low` is
 * what rounding took from 1 - z and from the sum. */
INLINED vecf log_odds(vecf z) {
    const vecf two = vf_set(2.0f);
    odds_t odds = logit_odds(z);
    vecf rest_low = vf_sub(vf_sub(vf_set(1.0f), odds.rest), z);
    vecf sum = vf_add(odds.w, odds.rest), difference = vf_fms(two, odds.w, sum);
    vecf sum_low = vf_add(vf_sub(difference, vf_sub(odds.w, odds.rest)), rest_low);
    vecf inverse = vf_reciprocal_estimate(sum), near = vf_mul(difference, inverse);
    vecf residual = vf_sub(vf_fnma(near, sum, difference), sum_low);
    vecf near_low = vf_mul(vf_fnma(near, sum_low, residual), inverse);
    vecf head = vf_mul(odds.octaves, vf_set(LN2 * 0x1p-23f)); /* exact */
    vecf main = vf_fma(two, near, head), low = vf_fma(two, near, vf_sub(head, main));
    low = vf_fma(two, near_low, vf_fma(odds.octaves, vf_set(LN2_LOW * 0x1p-23f), low));
    return vf_add(main, vf_atanh_rest(vf_add(near, near_low), low));
}
/* The same in half precision: then w + rest is exact where there are no octaves. */
INLINED vecf log_odds_short(vecf z) {
    odds_t odds = logit_odds(z);
    vecf sum = vf_add(odds.w, odds.rest), difference = vf_sub(odds.w, odds.rest);
    vecf inverse = vf_reciprocal_estimate(sum), near = vf_mul(difference, inverse);
    vecf u = vf_fma(vf_fnma(near, sum, difference), inverse, near);
    return vf_atanh_rest(u, vf_fma(odds.octaves, vf_set(LN2_NEAR * 0x1p-23f), vf_add(u, u)));
}

INLINED vecf logit_clipped(const logit_t *logit, bounds_t bounds, vecf x) {
    return bounds == OPEN ? x : vf_at_most(vf_at_least(x, logit->first), logit->last);
}
INLINED vecf logit_f32(const logit_t *logit, bounds_t bounds, vecf x, track_t *track) {
    vecf z = logit_clipped(logit, bounds, x);
    track->max_bits = vi_max(track->max_bits, vi_sub(vf_bits(z), vi_set(LOGIT_FIRST)));
    return log_odds(z);
}
/* In half precision many are 0 or 1. */
INLINED vecf logit_at_ends(vecf z, vecf result, track_t *track) {
    mask_t not_0 = vf_is_nonzero(z), not_1 = vf_is_nonzero(vf_sub(vf_set(1.0f), z));
    track_argument(track, z);
    track_magnitude(track, z, not_0);
    return vf_select(not_0, vf_select(not_1, result, vf_set(INFINITY)), vf_set(-INFINITY));
}
INLINED vecf logit_bounded_f32_vec(const params_t *params, vecf x, vecf same, track_t *track) {
    return logit_f32(LOGIT_PARAMS(params), ANY, x, track);
}
/* Bounds need not be representable in half precision, nor is a clamped x then. */
INLINED vecf logit_bounded_half_vec(const params_t *params, vecf x, vecf same, track_t *track) {
    vecf z = logit_clipped(LOGIT_PARAMS(params), ANY, x);
    return logit_at_ends(z, log_odds(z), track);
}
INLINED vecf logit_unbounded_f32_vec(const params_t *params, vecf x, vecf same, track_t *track) {
    return logit_f32(LOGIT_PARAMS(params), OPEN, x, track);
}
INLINED vecf logit_unbounded_half_vec(const params_t *params, vecf x, vecf same, track_t *track) {
    return logit_at_ends(x, log_odds_short(x), track);
}

/* Over all numbers of half precision the largest error is 1.2e-7; tools/bounds.py shows no more than this. */
static const domain_t LOGIT_DOMAIN = { .rel_error = 2.6e-7f, .max_bits = 0x3f800000u };
static const domain_t LOGIT_F32_DOMAIN = { .max_bits = LOGIT_REACH };

/* x (1 - x) = y - y^2 for the lesser one of the two, y, which is exact where it is 1 - x; in two
 * parts, because y is at most twice the difference. The residual of a quotient that is 2^-14 off
 * leaves 2^-28. */
INLINED vecf logit_backward_f32(
        const logit_t *logit, bounds_t bounds, vecf x, vecf dy, track_t *track) {
    vecf y = vf_min(x, vf_sub(vf_set(1.0f), x));
    vecf product = vf_fnma(y, y, y);
    vecf low = vf_fnma(y, y, vf_sub(y, product));
    vecf inverse = vf_reciprocal_estimate(product);
    vecf near = vf_mul(dy, inverse);
    vecf residual = vf_fnma(near, low, vf_fnma(near, product, dy));
    mask_t some = vf_is_nonzero(dy);
    vecf q = track_result(track, vf_fma(residual, inverse, near)); /* no number where x is infinite */
    if (!track->nonzero) q = vf_zeros_signed_as(q, near, some);
    track_magnitude(track, dy, some);
    if (bounds == ANY) return logit_inside(logit, q, x);
    if (bounds == SYMMETRIC) return vf_select(vf_ge(y, logit->low), q, vf_set(logit->outside));
    track_lowest(track, y);
    return q;
}
INLINED vecf logit_backward_f32_vec(const params_t *params, vecf x, vecf dy, track_t *track) {
    return logit_backward_f32(LOGIT_PARAMS(params), ANY, x, dy, track);
}
INLINED vecf logit_symmetric_f32_vec(const params_t *params, vecf x, vecf dy, track_t *track) {
    return logit_backward_f32(LOGIT_PARAMS(params), SYMMETRIC, x, dy, track);
}
INLINED vecf logit_whole_f32_vec(const params_t *params, vecf x, vecf dy, track_t *track) {
    return logit_backward_f32(LOGIT_PARAMS(params), WHOLE, x, dy, track);
}

/* With 0 and 1 for bounds, where x lies outside the product is negative. NaNs are expected then: the
 * formula makes them one. */
INLINED vecf logit_backward_short(
        const logit_t *logit, bounds_t bounds, vecf x, vecf dy, track_t *track) {
    vecf product = vf_mul(x, vf_sub(vf_set(1.0f), x)), q = vf_div(dy, product);
    if (bounds == OPEN) return vf_select(vf_ge_and_ordered(product, 0.0f, q), q, vf_set(logit->outside));
    track_result(track, product);
    if (bounds == ANY) return logit_inside(logit, q, x);
    track_lowest(track, product);
    return q;
}
INLINED vecf logit_backward_half_vec(const params_t *params, vecf x, vecf dy, track_t *track) {
    return logit_backward_short(LOGIT_PARAMS(params), ANY, x, dy, track);
}
INLINED vecf logit_open_half_vec(const params_t *params, vecf x, vecf dy, track_t *track) {
    return logit_backward_short(LOGIT_PARAMS(params), OPEN, x, dy, track);
}
INLINED vecf logit_whole_half_vec(const params_t *params, vecf x, vecf dy, track_t *track) {
    return logit_backward_short(LOGIT_PARAMS(params), WHOLE, x, dy, track);
}

static const domain_t LOGIT_BACKWARD_DOMAIN = { .rel_error = 2.5e-7f, .check_finite = 1, .one_nan = 1 };
static const domain_t LOGIT_OPEN_DOMAIN = { .rel_error = 2.5e-7f };
static const domain_t LOGIT_WHOLE_DOMAIN = { .rel_error = 2.5e-7f, .check_finite = 1, .one_nan = 1, .check_negative = 1 };

#endif

#endif
