/* Hard shrinkage and its gradient over vectors. */
#ifndef ACLNN_SIMD_HARDSHRINK_H
#define ACLNN_SIMD_HARDSHRINK_H

#include "simd/loop_args.h"
#include "simd/track.h"

typedef struct { uint32_t low, reach; uint16_t half_low, half_reach, bf16_low, bf16_reach; } hardshrink_t;
PARAMS_FIT(hardshrink_t);
#define HARDSHRINK_PARAMS(params) OWN_PARAMS(hardshrink_t, params)

/* Which magnitudes pass, as bits of each type: from `low` on, `reach` more, up to infinity. */
static void prepare_hardshrink_backward(params_t *params, elem_type type) {
    const double *p = params->p;
    hardshrink_t *keep = HARDSHRINK_PARAMS(params);
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
    keep->bf16_low = none ? 0xffffu : (bits >> 16) + 1u;
    keep->bf16_reach = none ? 0u : 0x7f80u - keep->bf16_low;
}

/* The forward form: with a bound below 0 zeros pass too. */
static void prepare_hardshrink(params_t *params, elem_type type) {
    static const hardshrink_t all = { 0, 0x7f800000u, 0, 0x7c00u, 0, 0x7f80u };
    prepare_hardshrink_backward(params, type);
    if (params->p[0] < 0) *HARDSHRINK_PARAMS(params) = all;
}

#ifdef LANES

static const domain_t HARDSHRINK_DOMAIN = { 0 };

INLINED veci hardshrink_f32_line(const void *params, const char *a, const char *b, track_t *track) {
    const hardshrink_t *keep = params;
    return vi_keep_within(vi_load(a), vi_load(b), keep->low, keep->reach);
}
INLINED veci keep_f16(const char *a, const char *b, uint16_t low, uint16_t reach) {
    veci size = vi_and(vi_load(b), vi16_set(0x7fff));
    return vi16_select_within(size, low, reach, vi_load(a), vi_set(0u));
}
INLINED veci hardshrink_f16_line(const void *params, const char *a, const char *b, track_t *track) {
    const hardshrink_t *keep = params;
    return keep_f16(a, b, keep->half_low, keep->half_reach);
}
INLINED veci hardshrink_bf16_line(const void *params, const char *a, const char *b, track_t *track) {
    const hardshrink_t *keep = params;
    return keep_f16(a, b, keep->bf16_low, keep->bf16_reach);
}
INLINED vecf hardshrink_vec(const params_t *params, vecf g, vecf x, track_t *track) {
    const hardshrink_t *keep = HARDSHRINK_PARAMS(params);
    return vi_as_floats(vi_keep_within(vf_bits(g), vf_bits(x), keep->low, keep->reach));
}

#endif

#endif
