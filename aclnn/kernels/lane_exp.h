/* Exponentials by lanes: octaves and their steps from tables in registers, the rest a polynomial. */
#ifndef ACLNN_LANE_EXP_H
#define ACLNN_LANE_EXP_H

#include "lane_tables.h"
#include "lanes.h"

#ifdef LANES

/* Exponentials by steps of an octave: as many as a register, or two of them, can look up. */
#if LANES == 16
enum { EXP_STEPS = 16, EXP_NEAR_STEPS = 32 };
#define pick_step pick16
#define pick_near_step pick32
#else
enum { EXP_STEPS = 8, EXP_NEAR_STEPS = 8 };
#define pick_step pick8
#define pick_near_step pick8
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
INLINED lanes_t exp_long_tail(lanes_t r, float scale) {
    const float square = scale * scale;
    lanes_t tail = fma_of(
        r, lanes_of(0x1.555aep-5f * square * square), lanes_of(0x1.555da4p-3f * scale * square));
    return fma_of(r, tail, lanes_of(0.5f * square));
}
INLINED lanes_t exp_tail_lanes(lanes_t r, float scale) {
#if LANES == 16
    const float square = scale * scale;
    return fma_of(r, lanes_of(0x1.5556e8p-3f * scale * square), lanes_of(0x1.0001f8p-1f * square));
#else
    return exp_long_tail(r, scale);
#endif
}

INLINED lanes_t exp_rest(lanes_t r) {
    return fma_of(times(r, r), exp_tail_lanes(r, 1.0f), r);
}

/* e^(scale r) - 1 for |scale r| <= ln(2) / (2 EXP_NEAR_STEPS), error 2^-24.1 for 32 steps. */
INLINED lanes_t exp_near_rest(lanes_t r, float scale) {
#if LANES == 16
    return times(r, fma_of(r, lanes_of(0x1.00007cp-1f * scale * scale), lanes_of(0x1.0000f6p+0f * scale)));
#else
    lanes_t tail = fma_of(
        r, lanes_of(0x1.555b7ep-3f * scale * scale * scale), lanes_of(0x1.0007b4p-1f * scale * scale));
    return times(r, fma_of(r, tail, lanes_of(scale)));
#endif
}

/* Octaves, in whole steps: as a number, and how many steps they are in the low bits of `steps`. */
typedef struct { lanes_t octaves; ints_t steps; } whole_t;

/* So large that its last bit is a step of an octave. */
static inline float exp_magic(int steps) { return 0x1.8p23f / (float)steps; }

/* How often scale y contains ln(2). */
INLINED whole_t exp_whole(lanes_t y, float scale, int steps) {
    const lanes_t magic = lanes_of(exp_magic(steps));
    lanes_t shifted = fma_of(y, lanes_of(0x1.715476p+0f * scale), magic);
    whole_t whole = { minus(shifted, magic), bits_of(shifted) };
    return whole;
}
/* Octaves times so much, which is exact: in one operation, where nothing else is asked of the octaves. */
INLINED lanes_t exp_taken(whole_t n, float octave, int steps) {
    return fma_of(floats_of(n.steps), lanes_of(octave), lanes_of(-octave * exp_magic(steps)));
}

/* A number of steps, shifted so far that the octaves in it reach the exponent; what it holds besides,
 * tables of bits lack. */
INLINED ints_t step_bits(int steps, ints_t n) { return int_left(n, 23 - __builtin_ctz(steps)); }
INLINED lanes_t power_of_bits(lanes_t picked, int steps, whole_t n) {
    return floats_of(int_plus(bits_of(picked), step_bits(steps, n.steps)));
}

/* 2^octaves, from the step that a table of 2^(j/steps) was asked for. With sixteen lanes the octaves as a
 * number serve as well as bits, if they are there. */
#if LANES == 16
INLINED lanes_t exp_power(lanes_t picked, int steps, whole_t n) {
    return times_octaves(picked, n.octaves);
}
INLINED ints_t octave_bits(int steps, ints_t n) { return ints_of(0u); }
#else
#define exp_power power_of_bits
#define octave_bits step_bits
#endif

#endif

#endif
