/* Leaky ReLU and its gradient over vectors. */
#ifndef ACLNN_SIMD_LEAKY_RELU_H
#define ACLNN_SIMD_LEAKY_RELU_H

#include "simd/loop_args.h"
#include "simd/track.h"

#ifdef LANES

typedef struct { float slope, near; int at_once; } leaky_relu_t;
PARAMS_FIT(leaky_relu_t);
#define LEAKY_RELU_PARAMS(params) OWN_PARAMS(leaky_relu_t, params)

static inline int leaky_relu_is_exceptional(float g, float x, float r, const double *p) { return is_extreme(r); }

INLINED vecf leaky_relu_f32_vec(const params_t *params, vecf g, vecf x, track_t *track) {
    vecf slope = vf_set(LEAKY_RELU_PARAMS(params)->slope);
    return track_result(track, vf_mul_where(vf_is_not_positive(x), g, slope));
}

INLINED vecf leaky_relu_f16_vec(const params_t *params, vecf g, vecf x, track_t *track) {
    vecf slope = vf_set(LEAKY_RELU_PARAMS(params)->slope);
    return track_result(track, vf_mul_to_odd_where(vf_is_not_positive(x), g, slope));
}

/* Below what floats can tell apart, rounding to odd loses what it stands on. */
INLINED vecf leaky_relu_bf16_vec(const params_t *params, vecf g, vecf x, track_t *track) {
    vecf result = leaky_relu_f16_vec(params, g, x, track);
    track_magnitude(track, result, vf_is_nonzero(result));
    return result;
}

/* A product that is rounded to float32 and then to half precision is rounded wrongly where the first
 * rounding gives a midpoint of the second. That depends on the digits of the slope and of the operand
 * alone, so that all operands can be tried beforehand.
 *
 * Whether the product with `near`, rounded to float32, lies on the same side of every midpoint as the
 * exact product with `slope`: the same first twelve bits, and after them nothing, or something. */
static inline int on_same_sides(float slope, float near) {
    const unsigned all = (1u << LANES) - 1u;
    unsigned wrong = 0;
    for (uint32_t j = 0; j < 1u << 10; j += LANES) {
        veci mantissa = vi_shift_left(vi_count_from(j), 13);
        vecf x = vi_as_floats(vi_add(mantissa, vi_set(0x3f800000u)));
        veci odd = vf_bits(vf_mul_to_odd_where(vf_is_positive(x), x, vf_set(slope)));
        veci rounded = vf_bits(vf_mul(x, vf_set(near)));
        wrong |= all & ~vi_misses(vi_xor(odd, rounded), vi_set(0xfffff000u));
        wrong |= vi_misses(odd, vi_set(0xfffu)) ^ vi_misses(rounded, vi_set(0xfffu));
    }
    return !wrong;
}

/* Whether no product of a bfloat16 with the slope becomes a midpoint: then ties need no care either. */
static inline int never_in_the_middle(float slope) {
    unsigned found = 0;
    for (uint32_t j = 0; j < 1u << 7; j += LANES) {
        veci mantissa = vi_shift_left(vi_count_from(j), 16);
        vecf x = vi_as_floats(vi_add(mantissa, vi_set(0x3f800000u)));
        veci product = vf_bits(vf_mul(x, vf_set(slope)));
        found |= vi_misses(vi_xor(product, vi_set(0x8000u)), vi_set(0xffffu));
    }
    return !found;
}

/* Whether all results of a type may be rounded at once; `near` is what operands are multiplied by then. */
static int can_round_at_once(elem_type type, float slope, float *near) {
    *near = slope;
    if (is_extreme(slope)) return 0;
    if (type == BF16) return never_in_the_middle(slope);
    /* Products with decimal fractions often come close to midpoints, those with their neighbours do not. */
    for (int step = 0; step < 3; step++) {
        *near = f32_of_bits(bits_of_f32(slope) + (step == 2 ? 0xffffffffu : (uint32_t)step));
        if (on_same_sides(slope, *near)) return 1;
    }
    return 0;
}

/* The last answer of a thread: most runs have the same slope, and a short one takes less time than the
 * search. */
typedef struct { elem_type type; uint32_t slope; leaky_relu_t found; } leaky_relu_memo_t;
static _Thread_local leaky_relu_memo_t leaky_relu_memo = { F32, 0, { 0.0f, 0.0f, 0 } };

static void prepare_leaky_relu(params_t *params, elem_type type) {
    leaky_relu_memo_t *memo = &leaky_relu_memo;
    float slope = (float)params->p[0];
    if (type == F32) {
        *LEAKY_RELU_PARAMS(params) = (leaky_relu_t){ slope, slope, 0 };
        return;
    }
    if (type != memo->type || bits_of_f32(slope) != memo->slope) {
        memo->type = type;
        memo->slope = bits_of_f32(slope);
        memo->found.slope = slope;
        memo->found.at_once = can_round_at_once(type, slope, &memo->found.near);
    }
    *LEAKY_RELU_PARAMS(params) = memo->found;
}

static const domain_t LEAKY_RELU_DOMAIN = { .check_finite = 1 };

INLINED vecf scaled(const leaky_relu_t *params, vecf g) {
    return vf_mul(g, vf_set(params->near));
}
INLINED veci scaled_f16(const leaky_relu_t *params, const char *g) {
    vecf low = vf_from_f16(vh_load(g)), high = vf_from_f16(vh_load(g + 2 * LANES));
    return vi_join(vf_to_f16(scaled(params, low)), vf_to_f16(scaled(params, high)));
}
INLINED veci scaled_bf16(const leaky_relu_t *params, const char *p) {
    const veci middle = vi_set(0x8000u);
    veci g = vi_load(p);
    vecf even = vi_as_floats(vi_shift_left(g, 16)), odd = vi_as_floats(vi_and(g, vi_set(0xffff0000u)));
    return vi_interleave_upper(vi_add(vf_bits(scaled(params, even)), middle),
                       vi_add(vf_bits(scaled(params, odd)), middle));
}
INLINED veci leaky_relu_f16_line(
        const void *params, const char *x, const char *unused, track_t *track) {
    veci same = vi_load(x), result = vi16_select_positive(same, same, scaled_f16(params, x));
    track_half_max(track, result);
    return result;
}
INLINED veci leaky_relu_bf16_line(
        const void *params, const char *x, const char *unused, track_t *track) {
    veci same = vi_load(x), result = vi16_select_positive(same, same, scaled_bf16(params, x));
    track_half_range(track, result);
    return result;
}
/* A NaN in x that was taken for positive would not show in the result. */
INLINED veci leaky_backward_f16_line(
        const void *params, const char *g, const char *x, track_t *track) {
    veci result = vi16_select_within(vi_load(x), 1u, 0x7c00u - 1u, vi_load(g), scaled_f16(params, g));
    track_half_max(track, result);
    return result;
}
INLINED veci leaky_backward_bf16_line(
        const void *params, const char *g, const char *x, track_t *track) {
    veci result = vi16_select_within(vi_load(x), 1u, 0x7f80u - 1u, vi_load(g), scaled_bf16(params, g));
    track_half_range(track, result);
    return result;
}

/* Float32 elements that are kept are not recomputed: through double, a signaling NaN would become quiet. Half
 * precision is converted, so that its NaNs become quiet anyway. */
static inline int leaky_relu_computed_is_exceptional(float g, float x, float r, const double *p) {
    return is_extreme(r) & !(x > 0.0f);
}

#endif

#endif
