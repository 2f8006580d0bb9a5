/* Exponentials over vectors: octaves and their steps from tables in registers, the rest a polynomial. */
#ifndef ACLNN_SIMD_EXP_H
#define ACLNN_SIMD_EXP_H

#include "simd/tables.h"
#include "simd.h"

#ifdef LANES

/* Steps of an octave: as many as a lookup in one vector, or in two, can tell apart. */
#if LANES == 16
enum { EXP_STEPS = 16, EXP_NEAR_STEPS = 32 };
#define lookup_step vf_lookup16
#define lookup_near_step vf_lookup32
#else
enum { EXP_STEPS = 8, EXP_NEAR_STEPS = 8 };
#define lookup_step vf_lookup8
#define lookup_near_step vf_lookup8
#define EXP_POWERS EXP_WIDE_POWER_BITS
#define EXP_SHIFTS EXP_WIDE_SHIFTS
#define EXP_NEAR_POWERS EXP_WIDE_NEAR_POWER_BITS
#define EXP_POWER_BITS EXP_WIDE_POWER_BITS
#endif
/* ln(2) in two parts, the first of 13 bits. */
#define LN2 0x1.62ep-1f
#define LN2_LOW 0x1.0bfbe8p-15f
/* The float nearest to it is nearer than others are: 2.7e-9 of it. */
#define LN2_NEAR 0x1.62e43p-1f

/* e^(scale r) - 1, less scale r and over r^2, for |scale r| <= ln(2) / (2 EXP_STEPS) + 2^-12; the
 * error of the exponential is 2^-28.6 for 16 steps, 2^-31 for 8. The long one is as good for e^r - 1. */
INLINED vecf exp_long_tail(vecf r, float scale) {
    const float square = scale * scale;
    vecf tail = vf_fma(
        r, vf_set(0x1.555aep-5f * square * square), vf_set(0x1.555da4p-3f * scale * square));
    return vf_fma(r, tail, vf_set(0.5f * square));
}
INLINED vecf exp_tail_vec(vecf r, float scale) {
#if LANES == 16
    const float square = scale * scale;
    return vf_fma(r, vf_set(0x1.5556e8p-3f * scale * square), vf_set(0x1.0001f8p-1f * square));
#else
    return exp_long_tail(r, scale);
#endif
}

INLINED vecf exp_rest(vecf r) {
    return vf_fma(vf_mul(r, r), exp_tail_vec(r, 1.0f), r);
}

/* e^(scale r) - 1 for |scale r| <= ln(2) / (2 EXP_NEAR_STEPS), error 2^-24.1 for 32 steps. */
INLINED vecf exp_near_rest(vecf r, float scale) {
#if LANES == 16
    return vf_mul(r, vf_fma(r, vf_set(0x1.00007cp-1f * scale * scale), vf_set(0x1.0000f6p+0f * scale)));
#else
    vecf tail = vf_fma(
        r, vf_set(0x1.555b7ep-3f * scale * scale * scale), vf_set(0x1.0007b4p-1f * scale * scale));
    return vf_mul(r, vf_fma(r, tail, vf_set(scale)));
#endif
}

/* Octaves, in whole steps: as a number, and how many steps they are in the low bits of `steps`. */
typedef struct { vecf octaves; veci steps; } whole_t;

/* So large that its last bit is a step of an octave. */
static inline float exp_magic(int steps) { return 0x1.8p23f / (float)steps; }

/* How often scale y contains ln(2). */
INLINED whole_t exp_whole(vecf y, float scale, int steps) {
    const vecf magic = vf_set(exp_magic(steps));
    vecf shifted = vf_fma(y, vf_set(0x1.715476p+0f * scale), magic);
    whole_t whole = { vf_sub(shifted, magic), vf_bits(shifted) };
    return whole;
}
/* Octaves times so much, which is exact: in one operation, where nothing else is asked of the octaves. */
INLINED vecf exp_taken(whole_t n, float octave, int steps) {
    return vf_fma(vi_as_floats(n.steps), vf_set(octave), vf_set(-octave * exp_magic(steps)));
}

/* A number of steps, shifted so far that the octaves in it reach the exponent; what it holds besides,
 * tables of bits lack. */
INLINED veci step_bits(int steps, veci n) { return vi_shift_left(n, 23 - __builtin_ctz(steps)); }
INLINED vecf power_of_bits(vecf pending, int steps, whole_t n) {
    return vi_as_floats(vi_add(vf_bits(pending), step_bits(steps, n.steps)));
}

/* 2^octaves, from the step that a table of 2^(j/steps) was asked for. With sixteen lanes the octaves as a
 * number serve as well as bits, if they are there. */
#if LANES == 16
INLINED vecf exp_power(vecf pending, int steps, whole_t n) {
    return vf_scale_by_exp2(pending, n.octaves);
}
INLINED veci octave_bits(int steps, veci n) { return vi_set(0u); }
#else
#define exp_power power_of_bits
#define octave_bits step_bits
#endif

#endif

#endif
