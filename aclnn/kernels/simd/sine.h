/* Sines over vectors. Quarter turns are taken off in three parts: the first leaves an exact rest. */
#ifndef ACLNN_SIMD_SINE_H
#define ACLNN_SIMD_SINE_H

#include "simd/pair.h"

#ifdef LANES

/* pi/2, in parts that are positive, so that -0 less none of them stays -0. */
#define QUARTER 0x1.921fb4p+0f
#define QUARTER_LOW 0x1.4442dp-24f
#define QUARTER_LEAST 0x1.846988p-48f
#define PER_QUARTER 0x1.45f306p-1f
/* Beyond, parts of pi/2 are too few. Whole numbers are read from the last bits of what is added to this. */
#define SINE_LAST 65536.0f
#define SINE_MAGIC 0x1.8p23f

/* The sine from half a turn on both sides of 0, over r and less 1, by r^2; error 2^-25.5 of 1. */
INLINED vecf sine_rest(vecf square) {
    vecf rest = vf_fma(square, vf_set(0x1.5e253ap-19f), vf_set(-0x1.9f77bep-13f));
    return vf_fma(square, vf_fma(square, rest, vf_set(0x1.110fp-7f)), vf_set(-0x1.55554cp-3f));
}
/* sin(x + turn quarters), turn 0 or 1: half turns are taken off, so that one series is enough. */
INLINED vecf vf_sine(vecf x, int turn) {
    const vecf magic = vf_set(SINE_MAGIC);
    vecf shifted = vf_add(vf_fma(x, vf_set(0.5f * PER_QUARTER), vf_set(-0.5f * turn)), magic);
    vecf half_turns = vf_sub(shifted, magic);
    vecf quarters = vf_add(vf_add(half_turns, half_turns), vf_set(turn));
    vecf r = vf_fnma(quarters, vf_set(QUARTER_LOW), vf_fnma(quarters, vf_set(QUARTER), x));
    r = vf_fnma(quarters, vf_set(QUARTER_LEAST), r);
    vecf square = vf_mul(r, r);
    vecf size = vf_mul(r, vf_fma(square, sine_rest(square), vf_set(1.0f)));
    veci odd = vi_shift_left(vi_add(vf_bits(shifted), vi_set(turn)), 31);
    vecf sine = vi_as_floats(vi_xor(vf_bits(size), odd));
    return vf_within(x, -SINE_LAST, SINE_LAST, sine);
}

/* What is left of an operand, to 2^-45 of 1 and 2^-28 of itself; numbers of quarters in the last bits. */
typedef struct { vecf high, low; veci quarters; } turned_t;
INLINED turned_t without_quarters(vecf x) {
    const vecf magic = vf_set(SINE_MAGIC);
    vecf shifted = vf_fma(x, vf_set(PER_QUARTER), magic), quarters = vf_sub(shifted, magic);
    vecf rest = vf_fnma(quarters, vf_set(QUARTER), x); /* exact, and a multiple of the last bit of `less` */
    vecf less = vf_mul(quarters, vf_set(QUARTER_LOW)), lost = vf_fms(quarters, vf_set(QUARTER_LOW), less);
    vecf high = vf_sub(rest, less);
    vecf low = vf_add(vf_sub(high, rest), less);
    low = vf_add(low, vf_fma(quarters, vf_set(QUARTER_LEAST), lost));
    return (turned_t){ high, vf_neg(low), vf_bits(shifted) };
}
/* Error 2^-28, of an operand. */
INLINED pair_t pair_sine(pair_t x, int turn) {
    const vecf one = vf_set(1.0f), half = vf_set(0.5f);
    turned_t t = without_quarters(x.high);
    vecf r = t.high, square = vf_mul(r, r), halved = vf_mul(half, square);
    /* sin r = r + r^3 (...) */
    vecf rest = vf_fma(square, vf_set(0x1.6cbcfep-19f), vf_set(-0x1.a00f2ap-13f));
    rest = vf_fma(square, vf_fma(square, rest, vf_set(0x1.111108p-7f)), vf_set(-0x1.555556p-3f));
    vecf sine_low = vf_fma(vf_mul(r, square), rest, vf_fnma(t.low, halved, t.low));
    /* cos r = 1 - r^2/2 + r^4 (...) */
    vecf near = vf_sub(one, halved), lost = vf_sub(vf_sub(one, near), halved);
    lost = vf_fnma(half, vf_fms(r, r, square), vf_fnma(r, t.low, lost));
    vecf tail = vf_fma(square, vf_set(0x1.9a8ad6p-16f), vf_set(-0x1.6c0ea6p-10f));
    tail = vf_fma(square, tail, vf_set(0x1.55554ep-5f));
    vecf cosine_low = vf_fma(vf_mul(square, square), tail, lost);
    veci number = vi_add(t.quarters, vi_set(turn));
    mask_t odd = vf_is_negative(vi_as_floats(vi_or(vi_shift_left(number, 31), vi_set(0x3f800000u))));
    veci sign = vi_and(vi_shift_left(number, 30), vi_set(0x80000000u));
    vecf high = vi_as_floats(vi_xor(vf_bits(vf_select(odd, near, r)), sign));
    vecf low = vi_as_floats(vi_xor(vf_bits(vf_select(odd, cosine_low, sine_low)), sign));
    return pair_within(x, -SINE_LAST, SINE_LAST, pair_of(high, low));
}

#else
vecf vf_sine(vecf, int);
pair_t pair_sine(pair_t, int);
#endif

#endif
