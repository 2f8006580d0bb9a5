/* GELU and its gradient over vectors, exact and with tanh. */
#ifndef ACLNN_SIMD_GELU_H
#define ACLNN_SIMD_GELU_H

#include "simd/exp.h"
#include "simd/loop_args.h"
#include "simd/track.h"

#ifdef LANES

#define GELU_LAST 0xc13fffffu /* beside -12, where the tables end */
#define GELU_FARTHEST 0x1.7ffffep+3f /* the distance of that */
#define GELU_BEYOND 0x1.9p+3f /* with sixteen lanes all factors are 0 from there on */
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
static inline int gelu_backward_is_exceptional(float g, float x, float r, const double *p) {
    return is_extreme(r) | (bits_of_f32(x) > GELU_LAST) | is_beside(x, GELU_ROOT);
}
static inline int gelu_backward_tanh_is_exceptional(float g, float x, float r, const double *p) {
    return is_extreme(r) | (bits_of_f32(x) > GELU_TANH_LAST) | is_beside(x, GELU_TANH_ROOT);
}
static inline int gelu_is_exceptional(float x, float same, float r, const double *p) {
    return is_extreme(r) | (bits_of_f32(x) > GELU_LAST);
}
static inline int times_gelu_is_exceptional(float a, float x, float r, const double *p) {
    return is_extreme(r) | is_extreme(x) | (bits_of_f32(x) > GELU_LAST);
}
static inline int gelu_tanh_is_exceptional(float x, float same, float r, const double *p) {
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
typedef struct { vecf z, rise, rise_low, constant; int through_0; } shape_t;
typedef struct { vecf power, r, lead; shape_t shape; } gelu_parts_t;
#define EXP_LACK 0x1.82a316p-15f /* ln(2) is LN2 (1 + EXP_LACK) */

/* How t is cut into intervals: (bits of place) >> shift numbers them, place = offset + scale t. There are
 * many where a vector, or two of them, hold many entries. Where they are few and long, z is stretched, which
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

INLINED vecf lookup_interval(cut_t cut, const float *row, veci interval) {
#if LANES == 16
    return vf_lookup32(row, interval);
#else
    return cut.places == 8 ? vf_lookup8(row, interval) : vf_lookup16(row, interval);
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

INLINED shape_t gelu_polynomial(polynomials_t p, vecf t, veci *interval) {
    const vecf offset = vf_set(p.cut.offset);
    vecf place = p.cut.scale == 1.0f ? vf_add(t, offset) : vf_fma(t, vf_set(p.cut.scale), offset);
    *interval = vi_shift_right(vf_bits(place), p.cut.shift);
    vecf z = p.cut.centers ? vf_sub(t, lookup_interval(p.cut, p.cut.centers, *interval)) : t;
    if (p.cut.stretched) z = vf_div(z, place);
    const int first = p.through_0 ? 0 : 1; /* row of what is linear */
    vecf sum = lookup_interval(p.cut, p.rows + (p.count - 1) * p.cut.places, *interval);
    for (int k = p.count - 2; k > first; k--)
        sum = vf_fma(sum, z, lookup_interval(p.cut, p.rows + k * p.cut.places, *interval));
    vecf linear = lookup_interval(p.cut, p.rows + first * p.cut.places, *interval);
    vecf rise = vf_fma(sum, z, linear), rise_low = vf_fma(sum, z, vf_sub(linear, rise));
    shape_t shape = { z, rise, rise_low, vf_set(0.0f), p.through_0 };
    if (!p.through_0) shape.constant = lookup_interval(p.cut, p.rows, *interval);
    return shape;
}
INLINED vecf gelu_sum(shape_t shape) {
    return shape.through_0 ? vf_mul(shape.rise, shape.z) : vf_fma(shape.rise, shape.z, shape.constant);
}

/* 4w = sqrt(32/pi) (t + 0.044715 t^3) = near + low. The first coefficient has so few bits that what
 * rounding takes from the sum is exact. */
typedef struct { vecf near, low; } tanh_argument_t;
INLINED tanh_argument_t gelu_tanh_argument(vecf t) {
    const vecf linear = vf_set(0x1.98p+1f), linear_low = vf_set(0x1.08a67ap-8f);
    const vecf cubic = vf_set(0x1.2444f2p-3f), cubic_low = vf_set(0x1.49b16ap-28f);
    vecf square = vf_mul(t, t), square_low = vf_fms(t, t, square);
    vecf factor = vf_fma(cubic, square, linear);
    vecf factor_low = vf_fma(cubic, square_low, vf_fma(cubic_low, square, linear_low));
    factor_low = vf_add(vf_fma(cubic, square, vf_sub(linear, factor)), factor_low);
    vecf near = vf_mul(t, factor);
    tanh_argument_t argument = { near, vf_fma(t, factor_low, vf_fms(t, factor, near)) };
    return argument;
}

/* t, and y with the same square, for the power. `wraps`: where the power is too small for a float it may
 * become any number, for there the factor is 0. */
typedef struct { vecf t, y; int wraps; } gelu_argument_t;

INLINED gelu_parts_t gelu_f32_parts(factor_t factor, gelu_argument_t at) {
    gelu_parts_t parts;
    whole_t n;
    const vecf t = at.t, y = at.y;
    if (factor.of_phi) {
        n = exp_whole(vf_mul(y, y), -0.5f, EXP_STEPS);
        vecf taken = exp_taken(n, LN2 * 2.0f, EXP_STEPS);
        parts.r = vf_add(vf_fma(y, y, taken), lookup_step(GELU_SHIFTS, n.steps));
    } else {
        tanh_argument_t w = gelu_tanh_argument(t);
        n = exp_whole(vf_add(w.near, w.low), -0.5f, EXP_STEPS);
        vecf low = vf_add(w.low, lookup_step(GELU_SHIFTS, n.steps));
        parts.r = vf_add(vf_fma(n.octaves, vf_set(LN2 * 2.0f), w.near), low);
    }
    parts.power = at.wraps ? power_of_bits(lookup_step((const float *)EXP_POWER_BITS, n.steps), EXP_STEPS, n)
                           : exp_power(lookup_step((const float *)EXP_POWERS, n.steps), EXP_STEPS, n);
    veci interval;
    parts.shape = gelu_polynomial(factor.shapes, t, &interval);
    parts.lead = lookup_interval(factor.shapes.cut, factor.leads, interval);
    return parts;
}

/* For t in half precision: t^2 is exact. */
INLINED gelu_parts_t gelu_f16_parts(polynomials_t factor, vecf t) {
    gelu_parts_t parts;
    vecf square = vf_mul(t, t);
    whole_t n = exp_whole(square, -0.5f, EXP_NEAR_STEPS);
    parts.r = vf_fma(n.octaves, vf_set(LN2_NEAR * 2.0f), square);
    parts.power = exp_power(lookup_near_step((const float *)EXP_NEAR_POWERS, n.steps), EXP_NEAR_STEPS, n);
    veci interval;
    parts.lead = gelu_sum(gelu_polynomial(factor, t, &interval));
    return parts;
}

/* (1 + shape) (e^(-(1 + EXP_LACK) r/2) - 1) + addend. */
INLINED vecf gelu_rest(const gelu_parts_t *parts, vecf shape, vecf addend) {
    const float scale = -0.5f * (1.0f + EXP_LACK);
    vecf tail = vf_fma(parts->r, exp_tail_vec(parts->r, scale), vf_set(scale));
    return vf_fma(vf_fma(parts->r, shape, parts->r), tail, addend);
}

/* (tail + low) times what lead and power leave of the product, but for `tail` itself. */
INLINED vecf gelu_grown(factor_t factor, const gelu_parts_t *parts, vecf tail, vecf low) {
    vecf shape = gelu_sum(parts->shape);
    vecf whole = vf_add(tail, low);
    if (factor.flat && LANES == 16) return vf_fma(whole, gelu_rest(parts, shape, shape), low);
    /* On longer intervals shapes are larger: rounding them once more, with the rest, would take too much. */
    if (factor.flat) return vf_fma(whole, shape, vf_fma(whole, gelu_rest(parts, shape, vf_set(0.0f)), low));
    const shape_t *part = &parts->shape;
    vecf large = vf_mul(part->rise, part->z);
    vecf small = vf_add(vf_fms(part->rise, part->z, large), part->constant);
    small = vf_fma(part->rise_low, part->z, small);
    vecf rest = gelu_rest(parts, shape, small);
    return vf_fma(tail, large, vf_fma(tail, rest, vf_fma(low, vf_add(large, rest), low)));
}

/* t, as far as there are intervals: beyond, they begin again. */
INLINED vecf gelu_bounded(vecf x) { return vf_at_most(vf_abs(x), GELU_FARTHEST); }

/* The same where arguments that are farther are tracked. With sixteen lanes factors of phi need no tracking of
 * x for that: their tables end in zeros, which the tracked magnitudes show. */
#if LANES == 16
INLINED vecf gelu_distance(vecf x) { return vf_abs(x); }
#else
INLINED vecf gelu_distance(vecf x) { return gelu_bounded(x); }
#endif
/* Gradients of 0 need a power that keeps its sign, whatever x is, and a distance that is no number where x
 * is none; others do not, and take fewer operations. */
INLINED gelu_argument_t gelu_f32_argument(factor_t factor, vecf x, track_t *track) {
#if LANES == 16
    if (factor.of_phi && track->nonzero) return (gelu_argument_t){ vf_abs_at_most(x, GELU_BEYOND), x, 1 };
    if (factor.of_phi) return (gelu_argument_t){ vf_abs(x), x, 0 };
#endif
    track_argument(track, x);
    vecf t = vf_at_most(vf_abs(x), factor.of_phi ? GELU_FARTHEST : GELU_TANH_FARTHEST);
    return (gelu_argument_t){ t, t, 0 };
}

typedef struct { float near, low; } root_t;
/* The root of GELU's gradient, and with tanh. */
#define SLOPE_ROOT (root_t){ GELU_ROOT, -0x1.cd01fep-22f }
#define TANH_SLOPE_ROOT (root_t){ GELU_TANH_ROOT, -0x1.85a06cp-27f }

/* On the right the gradient is 1 - tail: there the tail is negative, and the product gets its sign. */
INLINED vecf gelu_backward_f32(factor_t factor, root_t root, vecf g, vecf x, track_t *track) {
    const vecf one = vf_set(1.0f);
    gelu_argument_t at = gelu_f32_argument(factor, x, track);
    gelu_parts_t parts = gelu_f32_parts(factor, at);
    mask_t right = vf_is_positive(x);
    vecf lead = vf_negate_where(right, vf_mul(parts.power, parts.lead));
    vecf near = vf_sub(vf_set(root.near), at.t);
    vecf near_low = vf_add(vf_sub(vf_sub(vf_set(root.near), near), at.t), vf_set(root.low));
    vecf tail = vf_mul(near, lead);
    vecf slope = vf_add_where(right, tail, one);
    vecf low = vf_fma(near_low, lead, vf_fms(near, lead, vf_sub_where(right, slope, one)));
    vecf slope_low = gelu_grown(factor, &parts, tail, low);
    if (!factor.flat) { /* the low part is not small: of its product with g too much would be lost */
        vecf sum = vf_add(slope, slope_low);
        slope_low = vf_add(vf_sub(slope, sum), slope_low);
        slope = sum;
    }
    mask_t some = vf_is_nonzero(g);
    vecf result = vf_fma(g, slope, zero_safe_addend(track, vf_mul(g, slope_low), some));
    track_magnitude(track, result, some);
    track->lowest = vf_min_abs(track->lowest, near);
    return track_result(track, result);
}
INLINED vecf gelu_backward_f32_vec(const params_t *none, vecf g, vecf x, track_t *track) {
    return gelu_backward_f32(SLOPE, SLOPE_ROOT, g, x, track);
}
INLINED vecf gelu_backward_tanh_f32_vec(const params_t *none, vecf g, vecf x, track_t *track) {
    return gelu_backward_f32(TANH_SLOPE, TANH_SLOPE_ROOT, g, x, track);
}

/* `t` may be less than the distance of x, so that exponents last. */
INLINED vecf gelu_backward_short(vecf distance, vecf t, vecf g, vecf x, track_t *track) {
    gelu_parts_t parts = gelu_f16_parts(SLOPE_NEAR, t);
    vecf near = vf_add(vf_sub(vf_set(SLOPE_ROOT.near), distance), vf_set(SLOPE_ROOT.low));
    vecf rest = exp_near_rest(parts.r, -0.5f);
    vecf lead = vf_mul(vf_mul(near, parts.power), parts.lead);
    vecf tail = vf_fma(lead, rest, lead);
    return track_result(track, vf_mul(g, vf_one_minus_where(vf_is_positive(x), tail)));
}

/* Results are 0 long before, whatever they are multiplied by; infinities stay. */
INLINED vecf gelu_backward_f16_vec(const params_t *none, vecf g, vecf x, track_t *track) {
    return gelu_backward_short(vf_abs(x), gelu_bounded(x), g, x, track);
}

INLINED vecf gelu_backward_bf16_vec(const params_t *none, vecf g, vecf x, track_t *track) {
    track_argument(track, x);
    vecf t = gelu_distance(x);
    return gelu_backward_short(t, t, g, x, track);
}

/* Over all numbers of half precision the largest error, with gradient 1, is 4.5e-7; another 6e-8 for the
 * product with the gradient, and for that with 1 + or - the bound, which is exact itself. */
static const domain_t GELU_BACKWARD_DOMAIN = {
    .rel_error = 0x1.4p-21f, .max_bits = GELU_LAST, .root_gap = GELU_BESIDE, .check_finite = 1, .share_tracking = 1,
};

/* max(x, 0) - t Phi(-t); of the product with the tail's first part what rounding takes is exact. For
 * zeros all that is taken away is +0, so that they keep their signs. The result is near - low. */
typedef struct { vecf near, low; } gelu_result_t;
INLINED gelu_result_t gelu_f32_result(factor_t factor, vecf x, track_t *track) {
    gelu_argument_t at = gelu_f32_argument(factor, x, track);
    gelu_parts_t parts = gelu_f32_parts(factor, at);
    vecf t = at.t, positive = vf_positive_part(x);
    vecf tail = vf_mul(parts.power, parts.lead), shape = gelu_sum(parts.shape);
    vecf near = vf_fnma(t, tail, positive);
    vecf low = vf_fma(t, tail, vf_sub(near, positive));
    vecf product = vf_mul(t, tail);
    low = vf_fma(product, gelu_rest(&parts, shape, factor.flat ? shape : vf_set(0.0f)), low);
    if (!factor.flat) low = vf_fma(product, shape, low);
    return (gelu_result_t){ near, low };
}
INLINED vecf gelu_f32(factor_t factor, vecf x, track_t *track) {
    gelu_result_t r = gelu_f32_result(factor, x, track);
    vecf result = vf_sub(r.near, r.low);
    track_magnitude(track, result, vf_is_nonzero(x));
    return track_result(track, result);
}
/* a GELU(x), of GELU before it is rounded. An x may be too small for it although the product is not. */
INLINED vecf times_gelu_vec(const params_t *none, vecf a, vecf x, track_t *track) {
    gelu_result_t r = gelu_f32_result(MILLS, x, track);
    vecf gelu = vf_sub(r.near, r.low), rest = vf_sub(vf_sub(r.near, gelu), r.low);
    mask_t some = mask_and(vf_is_nonzero(a), vf_is_nonzero(x));
    vecf result = vf_fma(a, gelu, zero_safe_addend(track, vf_mul(a, rest), some));
    track_argument(track, x);
    track_magnitude(track, x, vf_is_nonzero(x));
    track_magnitude(track, result, some);
    return track_result(track, result);
}
INLINED vecf gelu_f32_vec(const params_t *none, vecf x, vecf same, track_t *track) {
    return gelu_f32(MILLS, x, track);
}
INLINED vecf gelu_tanh_f32_vec(const params_t *none, vecf x, vecf same, track_t *track) {
    return gelu_f32(TANH_SHARE, x, track);
}

INLINED vecf gelu_short(vecf t, vecf x, track_t *track) {
    gelu_parts_t parts = gelu_f16_parts(MILLS_NEAR, t);
    vecf lead = vf_mul(parts.power, parts.lead);
    vecf tail = vf_fma(lead, exp_near_rest(parts.r, -0.5f), lead);
    return track_result(track, vf_fnma(vf_abs(x), tail, vf_positive_part(x)));
}
INLINED vecf gelu_f16_vec(const params_t *none, vecf x, vecf same, track_t *track) {
    return gelu_short(gelu_bounded(x), x, track);
}
INLINED vecf gelu_bf16_vec(const params_t *none, vecf x, vecf same, track_t *track) {
    track_argument(track, x);
    return gelu_short(gelu_distance(x), x, track);
}

/* Half as much again as a bound with which every result in half precision is correctly rounded: nothing else
 * takes part, and the tests compute all of them. In the tails errors are up to 6.7e-7. */
static const domain_t GELU_DOMAIN = { .rel_error = 0x1.8p-22f, .max_bits = GELU_LAST, .check_finite = 1, .share_tracking = 1 };

/* Half precision is computed as float32 is, whose bound is 2^-23; it lets products be rounded once more. */
static const domain_t TIMES_GELU_DOMAIN = { .rel_error = 2e-7f, .max_bits = GELU_LAST, .check_finite = 1, .share_tracking = 1 };

/* With tanh, half precision is computed as float32 is: with fewer digits of w the exponentials would be too
 * inaccurate. */
static const domain_t GELU_TANH_DOMAIN = { .rel_error = 2e-7f, .max_bits = GELU_TANH_LAST, .check_finite = 1 };
static const domain_t GELU_BACKWARD_TANH_DOMAIN = {
    .rel_error = 2e-7f, .max_bits = GELU_TANH_LAST, .root_gap = GELU_BESIDE, .check_finite = 1, .share_tracking = 1,
};

#endif

#endif
