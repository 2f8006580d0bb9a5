/* Hard shrinkage and its gradient by lanes. */
#ifndef ACLNN_LANE_HARDSHRINK_H
#define ACLNN_LANE_HARDSHRINK_H

#include "lane_loops.h"

typedef struct { uint32_t low, reach; uint16_t half_low, half_reach, bfloat_low, bfloat_reach; } hardshrink_t;
PARAMS_FIT(hardshrink_t);
#define HARDSHRINK_PARAMS(params) OWN_PARAMS(hardshrink_t, params)

/* Which magnitudes pass, as bits of each type: from `low` on, `reach` more, up to infinity. */
static void prepare_hardshrink_backward(params_t *params, kind_t kind) {
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
    keep->bfloat_low = none ? 0xffffu : (bits >> 16) + 1u;
    keep->bfloat_reach = none ? 0u : 0x7f80u - keep->bfloat_low;
}

/* The forward form: with a bound below 0 zeros pass too. */
static void prepare_hardshrink(params_t *params, kind_t kind) {
    static const hardshrink_t all = { 0, 0x7f800000u, 0, 0x7c00u, 0, 0x7f80u };
    prepare_hardshrink_backward(params, kind);
    if (params->p[0] < 0) *HARDSHRINK_PARAMS(params) = all;
}

#ifdef LANES

static const limits_t NO_LIMITS = { 0 };

INLINED ints_t hardshrink_single_line(const void *params, const char *a, const char *b, seen_t *seen) {
    const hardshrink_t *keep = params;
    return kept(ints_load(a), ints_load(b), keep->low, keep->reach);
}
INLINED ints_t kept_halves(const char *a, const char *b, uint16_t low, uint16_t reach) {
    ints_t size = int_and(ints_load(b), short_of(0x7fff));
    return short_within(size, low, reach, ints_load(a), ints_of(0u));
}
INLINED ints_t hardshrink_half_line(const void *params, const char *a, const char *b, seen_t *seen) {
    const hardshrink_t *keep = params;
    return kept_halves(a, b, keep->half_low, keep->half_reach);
}
INLINED ints_t hardshrink_bfloat_line(const void *params, const char *a, const char *b, seen_t *seen) {
    const hardshrink_t *keep = params;
    return kept_halves(a, b, keep->bfloat_low, keep->bfloat_reach);
}
INLINED lanes_t hardshrink_from_float(const params_t *params, lanes_t g, lanes_t x, seen_t *seen) {
    const hardshrink_t *keep = HARDSHRINK_PARAMS(params);
    return floats_of(kept(bits_of(g), bits_of(x), keep->low, keep->reach));
}
LINE_LOOP(hardshrink_singles, hardshrink_single_line, hardshrink_t, SINGLE)
LINE_LOOP(hardshrink_half_loop, hardshrink_half_line, hardshrink_t, HALF)
LINE_LOOP(hardshrink_bfloat_loop, hardshrink_bfloat_line, hardshrink_t, BFLOAT)
LOOP(hardshrink_to_half_loop, hardshrink_from_float, SINGLE, HALF, NO_LIMITS, 0)
LOOP(hardshrink_to_bfloat_loop, hardshrink_from_float, SINGLE, BFLOAT, NO_LIMITS, 0)
LOOP(hardshrink_narrowed, hardshrink_from_float, SINGLE, SINGLE, NO_LIMITS, 0)
static int hardshrink_single_loop(const span_t *s) {
    return s->stored == SINGLE ? hardshrink_singles(s) : hardshrink_narrowed(s);
}
LOOPS_TABLE(hardshrink)

#else

/* Halves are bits here too: by way of a double, a signaling NaN would come back as a quiet one. What has
 * other types goes by the plain form, which keeps them itself or has to convert them. */
INLINED uint16_t kept_bits(uint16_t g, uint16_t x, uint16_t low, uint16_t reach) {
    return (uint16_t)((x & 0x7fffu) - low) <= reach ? g : 0;
}
#define HARDSHRINK_LOOP(name, type, low, reach) \
    static int name(const span_t *s) { \
        const hardshrink_t keep = *HARDSHRINK_PARAMS(s->params); \
        const unaligned_uint16 *g = (const unaligned_uint16 *)s->a, *x = (const unaligned_uint16 *)s->b; \
        unaligned_uint16 *out = (unaligned_uint16 *)s->out; \
        unaligned_float *single = (unaligned_float *)s->out; \
        const ptrdiff_t n = s->n; \
        if (s->stored != SINGLE) { \
            for (ptrdiff_t i = 0; i < n; i++) out[i] = kept_bits(g[i], x[i], keep.low, keep.reach); \
            return 0; \
        } \
        for (ptrdiff_t i = 0; i < n; i++) { \
            type##_t kept = { kept_bits(g[i], x[i], keep.low, keep.reach) }; \
            single[i] = type##_to_f32(kept); \
        } \
        return 0; \
    }
HARDSHRINK_LOOP(hardshrink_half_loop, half, half_low, half_reach)
HARDSHRINK_LOOP(hardshrink_bfloat_loop, bfloat16, bfloat_low, bfloat_reach)
static const lane_loops_t hardshrink_loops = { NULL, hardshrink_half_loop, hardshrink_bfloat_loop, NULL, NULL };

#endif

#define HARDSHRINK_FORMS \
    { "hardshrink", { &hardshrink_loops, prepare_hardshrink, NULL } }, \
    { "hardshrink_backward", { &hardshrink_loops, prepare_hardshrink_backward, NULL } },

#endif
