/* Domains of formulas in half precision that a float rounds so that a second rounding does not show, or once. */
#ifndef ACLNN_SIMD_EXACT_H
#define ACLNN_SIMD_EXACT_H

#include "simd/track.h"

#ifdef LANES

/* In float32: none is exceptional. */
static const domain_t CHOICE_DOMAIN = { 0 };
static const domain_t EXACT_DOMAIN = { .one_nan = 1 };
/* A number of the node may have been rounded as well. */
static const domain_t ONCE_ROUNDED_DOMAIN = { .rel_error = 2.38e-7f, .one_nan = 1 };

/* With this bound of the relative error; in range: floats are never too small or too large for float16. */
INLINED domain_t in_range_domain(float rel_error) {
    return (domain_t){ .rel_error = rel_error, .one_nan = 1 };
}
INLINED domain_t half_domain(float rel_error) {
    return (domain_t){ .rel_error = rel_error, .one_nan = 1, .check_finite = 1 };
}
/* The exact value rounded once, or left open. */
static const domain_t OPEN_DOMAIN = { .rel_error = 2.38e-7f };
static const domain_t FLOAT_DOMAIN = { .check_finite = 1 };

static inline int exact_is_exceptional(float a, float b, float r, const double *p) { return is_extreme(r); }

/* Of what is 0 only where the first element is. */
static inline int scaled_is_exceptional(float a, float b, float r, const double *p) {
    return is_extreme(r) | ((r == 0.0f) & (a != 0.0f));
}

/* Whether a number of the node has as few digits as every half. */
static inline int is_short(double number) {
    return (double)(float)number == number && (bits_of_f32((float)number) & 0xffffu) == 0;
}

/* Floats have fewer digits below the least normal one, which products and quotients of bfloat16 reach. */
INLINED vecf tracked(track_t *track, vecf r) {
    track_magnitude(track, r, vf_is_nonzero(r));
    return track_result(track, r);
}
/* The same of what is 0 only where `some` is not set. */
INLINED vecf tracked_where(track_t *track, vecf r, mask_t some) {
#if LANES == 16
    track_magnitude(track, r, some);
#else
    vecf size = vf_select(some, vf_abs(r), vf_set(1.0f));
    track->min_bits = vi_min(track->min_bits, vf_bits(size));
#endif
    return track_result(track, r);
}

#endif

#endif
