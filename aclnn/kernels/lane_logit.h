/* Logit and its gradient by lanes. */
#ifndef ACLNN_LANE_LOGIT_H
#define ACLNN_LANE_LOGIT_H

#include "lane_exp.h"
#include "lane_loops.h"

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
static inline int logit_suspect(float x, float same, float r, const double *p) {
    float low = (float)p[0], high = 1.0f - low;
    float z = p[0] < 0 ? x : x < low ? low : x > high ? high : x;
    return logit_crossed(p) | (bits_of_f32(z) - LOGIT_FIRST > LOGIT_REACH);
}
static inline int logit_backward_suspect(float x, float dy, float r, const double *p) {
    float product = x * (1.0f - x);
    return logit_extreme(p) | is_extreme(r) | is_extreme(dy) | (product == 0) | (product - product != 0);
}

static void prepare_logit(params_t *params, kind_t kind) {
    const double *p = params->p;
    logit_t *logit = LOGIT_PARAMS(params);
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

INLINED lanes_t logit_inside(const logit_t *logit, lanes_t q, lanes_t x) {
    return choose(between(x, logit->low, logit->high), q, lanes_of(logit->outside));
}

/* What is known of the bounds: nothing; that they are as far from 0 as from 1; that they are 0 and 1;
 * and that, besides, most likely all x lie between them. */
typedef enum { ANY, SYMMETRIC, OPEN, WHOLE } bounds_t;

/* z/(1 - z) = 2^octaves w/rest, w/rest between 0.66 and 1.51; the bits of a number are its logarithm, near
 * enough to tell octaves. `rest` is 1 - z rounded; w - rest is exact. */
typedef struct { lanes_t w, rest, octaves; } odds_t; /* octaves times 2^23 */
INLINED odds_t logit_odds(lanes_t z) {
    odds_t odds;
    odds.rest = minus(lanes_of(1.0f), z);
    ints_t ratio = int_minus(bits_of(z), bits_of(odds.rest));
    ints_t octaves = int_and(int_plus(ratio, ints_of(0x400000u)), ints_of(0xff800000u));
    odds.w = floats_of(int_minus(bits_of(z), octaves));
    odds.octaves = floats_from(octaves);
    return odds;
}
/* ln((1 + u)/(1 - u)) - 2u + addend for |u| up to a fifth, error 2^-28 of 2u. */
INLINED lanes_t atanh_rest(lanes_t u, lanes_t addend) {
    lanes_t square = times(u, u);
    lanes_t rest = fma_of(square, lanes_of(0x1.3735c6p-2f), lanes_of(0x1.99248ap-2f));
    return fma_of(times(u, square), fma_of(square, rest, lanes_of(0x1.5555c4p-1f)), addend);
}
/* ln(odds) = octaves ln(2) + 2 atanh(u), u = (w - rest)/(w + rest) = 2w/(w + rest) - 1, in two parts: where
 * there are no octaves nothing may be lost of 2u, and elsewhere it is as large as the result. `sum_low` is
 * what rounding took from 1 - z and from the sum. */
INLINED lanes_t log_odds(lanes_t z) {
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
INLINED lanes_t log_odds_short(lanes_t z) {
    odds_t odds = logit_odds(z);
    lanes_t sum = plus(odds.w, odds.rest), difference = minus(odds.w, odds.rest);
    lanes_t inverse = near_inverse(sum), near = times(difference, inverse);
    lanes_t u = fma_of(fnma_of(near, sum, difference), inverse, near);
    return atanh_rest(u, fma_of(odds.octaves, lanes_of(LN2_NEAR * 0x1p-23f), plus(u, u)));
}

INLINED lanes_t logit_clipped(const logit_t *logit, bounds_t bounds, lanes_t x) {
    return bounds == OPEN ? x : at_most(at_least(x, logit->first), logit->last);
}
INLINED lanes_t logit_single(const logit_t *logit, bounds_t bounds, lanes_t x, seen_t *seen) {
    lanes_t z = logit_clipped(logit, bounds, x);
    seen->most = int_most(seen->most, int_minus(bits_of(z), ints_of(LOGIT_FIRST)));
    return log_odds(z);
}
/* Of halves many are 0 or 1. */
INLINED lanes_t logit_at_ends(lanes_t z, lanes_t result, seen_t *seen) {
    choice_t not_0 = not_zero(z), not_1 = not_zero(minus(lanes_of(1.0f), z));
    see_argument(seen, z);
    see_size(seen, z, not_0);
    return choose(not_0, choose(not_1, result, lanes_of(INFINITY)), lanes_of(-INFINITY));
}
INLINED lanes_t logit_bounded_single_lanes(const params_t *params, lanes_t x, lanes_t same, seen_t *seen) {
    return logit_single(LOGIT_PARAMS(params), ANY, x, seen);
}
/* Bounds need not be halves, nor what lies between them one then. */
INLINED lanes_t logit_bounded_half_lanes(const params_t *params, lanes_t x, lanes_t same, seen_t *seen) {
    lanes_t z = logit_clipped(LOGIT_PARAMS(params), ANY, x);
    return logit_at_ends(z, log_odds(z), seen);
}
INLINED lanes_t logit_unbounded_single_lanes(const params_t *params, lanes_t x, lanes_t same, seen_t *seen) {
    return logit_single(LOGIT_PARAMS(params), OPEN, x, seen);
}
INLINED lanes_t logit_unbounded_half_lanes(const params_t *params, lanes_t x, lanes_t same, seen_t *seen) {
    return logit_at_ends(x, log_odds_short(x), seen);
}

/* Of all halves the worst is 1.2e-7 off. */
static const limits_t LOGIT_LIMITS = { .bound = 2e-7f, .most = 0x3f800000u };
static const limits_t LOGIT_SINGLE_LIMITS = { .most = LOGIT_REACH };
#define CROSSED(s) LOGIT_PARAMS(s->params)->crossed
LOOP(logit_bounded_single_loop, logit_bounded_single_lanes, SINGLE, SINGLE, LOGIT_SINGLE_LIMITS, CROSSED(s))
LOOP(logit_bounded_half_loop, logit_bounded_half_lanes, HALF, HALF, LOGIT_LIMITS, CROSSED(s))
LOOP(logit_bounded_bfloat_loop, logit_bounded_half_lanes, BFLOAT, BFLOAT, LOGIT_LIMITS, CROSSED(s))
LOOP(logit_to_half_loop, logit_bounded_half_lanes, SINGLE, HALF, LOGIT_LIMITS, CROSSED(s))
LOOP(logit_to_bfloat_loop, logit_bounded_half_lanes, SINGLE, BFLOAT, LOGIT_LIMITS, CROSSED(s))
LOOP(logit_unbounded_single_loop, logit_unbounded_single_lanes, SINGLE, SINGLE, LOGIT_SINGLE_LIMITS, 0)
LOOP(logit_unbounded_half_loop, logit_unbounded_half_lanes, HALF, HALF, LOGIT_LIMITS, 0)
LOOP(logit_unbounded_bfloat_loop, logit_unbounded_half_lanes, BFLOAT, BFLOAT, LOGIT_LIMITS, 0)
#define LOGIT_IF_BOUNDED(kind) \
    static int logit_##kind##_loop(const span_t *s) { \
        int open = LOGIT_PARAMS(s->params)->open; \
        return open ? logit_unbounded_##kind##_loop(s) : logit_bounded_##kind##_loop(s); \
    }
LOGIT_IF_BOUNDED(single)
LOGIT_IF_BOUNDED(half)
LOGIT_IF_BOUNDED(bfloat)
LOOPS_TABLE(logit)

/* x (1 - x) = y - y^2 for the lesser one of the two, y, which is exact where it is 1 - x; in two
 * parts, because y is at most twice the difference. The residual of a quotient that is 2^-14 off
 * leaves 2^-28. */
INLINED lanes_t logit_backward_single(
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
INLINED lanes_t logit_backward_single_lanes(const params_t *params, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_single(LOGIT_PARAMS(params), ANY, x, dy, seen);
}
INLINED lanes_t logit_symmetric_single_lanes(const params_t *params, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_single(LOGIT_PARAMS(params), SYMMETRIC, x, dy, seen);
}
INLINED lanes_t logit_whole_single_lanes(const params_t *params, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_single(LOGIT_PARAMS(params), WHOLE, x, dy, seen);
}

/* With 0 and 1 for bounds, where x lies outside the product is negative. NaNs are expected then: the
 * formula makes them one. */
INLINED lanes_t logit_backward_short(
        const logit_t *logit, bounds_t bounds, lanes_t x, lanes_t dy, seen_t *seen) {
    lanes_t product = times(x, minus(lanes_of(1.0f), x)), q = divided(dy, product);
    if (bounds == OPEN) return choose(reaches_beside(product, 0.0f, q), q, lanes_of(logit->outside));
    show(seen, product);
    if (bounds == ANY) return logit_inside(logit, q, x);
    see_lowest(seen, product);
    return q;
}
INLINED lanes_t logit_backward_half_lanes(const params_t *params, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_short(LOGIT_PARAMS(params), ANY, x, dy, seen);
}
INLINED lanes_t logit_open_half_lanes(const params_t *params, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_short(LOGIT_PARAMS(params), OPEN, x, dy, seen);
}
INLINED lanes_t logit_whole_half_lanes(const params_t *params, lanes_t x, lanes_t dy, seen_t *seen) {
    return logit_backward_short(LOGIT_PARAMS(params), WHOLE, x, dy, seen);
}

static const limits_t LOGIT_BACKWARD_LIMITS = { .bound = 2.5e-7f, .finite = 1, .nan = 1 };
static const limits_t LOGIT_OPEN_LIMITS = { .bound = 2.5e-7f };
static const limits_t LOGIT_WHOLE_LIMITS = { .bound = 2.5e-7f, .finite = 1, .nan = 1, .outside = 1 };
LOOPS(logit_backward, logit_backward_half_lanes, logit_backward_half_lanes, logit_backward_half_lanes,
      b, LOGIT_BACKWARD_LIMITS, LOGIT_PARAMS(s->params)->extreme)
SINGLE_LOOP(logit_whole_single_loop, logit_whole_single_lanes, b, LOGIT_WHOLE_LIMITS, 0)
LOOP(logit_whole_half_loop, logit_whole_half_lanes, HALF, HALF, LOGIT_WHOLE_LIMITS, 0)
LOOP(logit_whole_bfloat_loop, logit_whole_half_lanes, BFLOAT, BFLOAT, LOGIT_WHOLE_LIMITS, 0)
SINGLE_LOOP(logit_symmetric_single_loop, logit_symmetric_single_lanes, b, LOGIT_BACKWARD_LIMITS,
            LOGIT_PARAMS(s->params)->extreme)
LOOP(logit_open_half_loop, logit_open_half_lanes, HALF, HALF, LOGIT_OPEN_LIMITS, 0)
LOOP(logit_open_bfloat_loop, logit_open_half_lanes, BFLOAT, BFLOAT, LOGIT_OPEN_LIMITS, 0)
/* Inputs are never where results go: what turns out to need bounds can be computed once more. Where one
 * element lies outside, others do too: the blocks that follow are not expected not to. What was staged is
 * gone after the first time. */
#define LOGIT_BY_BOUNDS(kind, special) \
    static int logit_by_bounds_##kind##_loop(const span_t *s) { \
        const logit_t *logit = LOGIT_PARAMS(s->params); \
        span_t span = *s; \
        if (logit->whole && !s->hints->outside) { \
            int found = logit_whole_##kind##_loop(s); \
            if (!(found & OUTSIDE)) return found; \
            s->hints->outside = 1; \
            span.staged_target = NULL; \
        } \
        return logit->special ? logit_##special##_##kind##_loop(&span) : logit_backward_##kind##_loop(&span); \
    }
LOGIT_BY_BOUNDS(single, symmetric)
LOGIT_BY_BOUNDS(half, open)
LOGIT_BY_BOUNDS(bfloat, open)
static const lane_loops_t logit_by_bounds_loops = {
    logit_by_bounds_single_loop, logit_by_bounds_half_loop, logit_by_bounds_bfloat_loop,
    logit_backward_to_half_loop, logit_backward_to_bfloat_loop,
};

MARK(logit)
MARK(logit_backward)

#define LOGIT_FORMS \
    { "logit", { &logit_loops, prepare_logit, logit_mark } }, \
    { "logit_backward", { &logit_by_bounds_loops, prepare_logit, logit_backward_mark } },

#endif

#endif
