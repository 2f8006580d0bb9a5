/* Numbers over vectors, in two precisions, and the functions that activations are made of.
 *
 * A `vecf` is a number to about 2^-23, enough for half precision. A `pair_t` is the sum of two vectors, the
 * low one at most a unit in the last place or so of the high one: a number to about 2^-28, enough for float32
 * to be rounded nearly always correctly. Names that begin with vf_ are on vectors, those with pair_ on pairs.
 * Errors stated are relative; those of operands add to them.
 *
 * `exact` says that the low part is 0. The compiler knows it, so that what is not there costs nothing.
 */
#ifndef ACLNN_SIMD_PAIR_H
#define ACLNN_SIMD_PAIR_H

#include "simd/exp.h"
#include "simd/log.h"
#include "simd/track.h"

#ifdef LANES

typedef struct {
    vecf high, low;
    int exact;
} pair_t;

INLINED pair_t pair_exactly(vecf x) { return (pair_t){ x, vf_set(0.0f), 1 }; }
INLINED pair_t pair_of(vecf high, vecf low) { return (pair_t){ high, low, 0 }; }
/* A number that is known to float32, or one in two parts. */
INLINED pair_t pair_set(double c) {
    float high = (float)c;
    if (__builtin_constant_p(c) && (double)high == c) return pair_exactly(vf_set(high));
    return pair_of(vf_set(high), vf_set((float)(c - high)));
}

/* Rounded where `some`; elsewhere the result is 0, whose sign is the high part's. */
INLINED vecf pair_rounded(pair_t a, mask_t some) {
    if (a.exact) return a.high;
#if LANES == 16
    return vf_add_where(some, a.high, a.low);
#else
    return vf_add(a.high, vf_select(some, a.low, vf_set(-0.0f)));
#endif
}
/* high + low, of which high is the larger one or 0: the same in parts that do not overlap. */
INLINED pair_t pair_of_parts(vecf high, vecf low) {
    vecf sum = vf_add(high, low);
    return pair_of(sum, vf_sub(low, vf_sub(sum, high)));
}

INLINED pair_t pair_neg(pair_t a) {
    const vecf sign = vf_set(-0.0f);
    a.high = vi_as_floats(vi_xor(vf_bits(a.high), vf_bits(sign)));
    if (!a.exact) a.low = vi_as_floats(vi_xor(vf_bits(a.low), vf_bits(sign)));
    return a;
}
INLINED vecf vf_neg(vecf a) { return vi_as_floats(vi_xor(vf_bits(a), vf_bits(vf_set(-0.0f)))); }

INLINED vecf low_of_both(pair_t a, pair_t b, vecf low) {
    if (!a.exact) low = vf_add(low, a.low);
    if (!b.exact) low = vf_add(low, b.low);
    return low;
}
/* a + b, 2^-45 of the larger one (Knuth). */
INLINED pair_t pair_add(pair_t a, pair_t b) {
    vecf sum = vf_add(a.high, b.high), of_b = vf_sub(sum, a.high);
    vecf lost = vf_add(vf_sub(a.high, vf_sub(sum, of_b)), vf_sub(b.high, of_b));
    return pair_of(sum, low_of_both(a, b, lost));
}
/* The same where a is the larger one, or 0 (Dekker). */
INLINED pair_t pair_add_less(pair_t a, pair_t b) {
    vecf sum = vf_add(a.high, b.high);
    return pair_of(sum, low_of_both(a, b, vf_sub(b.high, vf_sub(sum, a.high))));
}
/* a b, 2^-45. */
INLINED pair_t pair_mul(pair_t a, pair_t b) {
    vecf high = vf_mul(a.high, b.high), low = vf_fms(a.high, b.high, high);
    if (!b.exact) low = vf_fma(a.high, b.low, low);
    if (!a.exact) low = vf_fma(a.low, b.high, low);
    return pair_of(high, low);
}
/* 1 / x, error 2^-26. */
INLINED vecf vf_inverse(vecf x) {
    vecf near = vf_reciprocal_estimate(x);
#if LANES == 16
    near = vf_fma(near, vf_fnma(x, near, vf_set(1.0f)), near);
#endif
    return near;
}
/* a / b, 2^-28 with sixteen lanes. */
INLINED pair_t pair_div(pair_t a, pair_t b) {
    vecf inverse = vf_reciprocal_estimate(b.high), high = vf_mul(a.high, inverse);
    vecf rest = vf_fnma(high, b.high, a.high);
    if (!b.exact) rest = vf_fnma(high, b.low, rest);
    if (!a.exact) rest = vf_add(rest, a.low);
    return pair_of(high, vf_mul(rest, inverse));
}
INLINED vecf vf_quotient(vecf a, vecf b) { return vf_mul(a, vf_inverse(b)); }

INLINED vecf vf_where_negative(vecf x, vecf yes, vecf no) {
    return vf_select(vf_is_negative(x), yes, no);
}
INLINED pair_t pair_where(mask_t c, pair_t yes, pair_t no) {
    vecf high = vf_select(c, yes.high, no.high);
    if (yes.exact && no.exact) return pair_exactly(high);
    return pair_of(high, vf_select(c, yes.low, no.low));
}
INLINED pair_t pair_where_negative(pair_t x, pair_t yes, pair_t no) {
    return pair_where(vf_is_negative(x.high), yes, no);
}
/* Where x > bound. */
INLINED vecf vf_where_above(vecf x, vecf bound, vecf yes, vecf no) {
    return vf_select(vf_is_above(x, bound), yes, no);
}
/* Where x <= bound. */
INLINED vecf vf_where_at_most(vecf x, vecf bound, vecf yes, vecf no) {
    return vf_select(vf_is_at_most(x, bound), yes, no);
}
INLINED pair_t pair_where_above(pair_t x, pair_t bound, pair_t yes, pair_t no) {
    if (x.exact && bound.exact) return pair_where(vf_is_above(x.high, bound.high), yes, no);
    vecf gap = vf_sub(x.high, bound.high);
    gap = vf_add(gap, vf_sub(x.low, bound.low));
    return pair_where(vf_is_positive(gap), yes, no);
}
INLINED pair_t pair_where_at_most(pair_t x, vecf bound, pair_t yes, pair_t no) {
    return pair_where(vf_is_at_most(x.high, bound), yes, no);
}
INLINED vecf vf_bounded(vecf x, float low, float high) { return vf_at_most(vf_at_least(x, low), high); }
INLINED pair_t pair_bounded(pair_t x, float low, float high) {
    return pair_exactly(vf_bounded(x.high, low, high));
}

/* Where c x > bound: what is rounded once keeps its sign. */
INLINED vecf vf_where_product_above(vecf c, vecf x, vecf bound, vecf yes, vecf no) {
    return vf_select(vf_is_positive(vf_fms(c, x, bound)), yes, no);
}
INLINED pair_t pair_where_product_above(vecf c, pair_t x, vecf bound, pair_t yes, pair_t no) {
    return pair_where(vf_is_positive(vf_fms(c, x.high, bound)), yes, no);
}

/* The magnitude of `size` with the sign of x. */
INLINED vecf vf_signed_as(vecf size, vecf x) {
    veci sign = vi_and(vf_bits(x), vi_set(0x80000000u)), bits = vi_and(vf_bits(size), vi_set(0x7fffffffu));
    return vi_as_floats(vi_or(sign, bits));
}
/* Of a pair that has no sign, or is 0. */
INLINED pair_t pair_signed_as(pair_t size, pair_t x) {
    veci sign = vi_and(vf_bits(x.high), vi_set(0x80000000u));
    return pair_of(vf_signed_as(size.high, x.high), vi_as_floats(vi_xor(vf_bits(size.low), sign)));
}

/* What has the sign of x, unless it is 0: then too. */
INLINED pair_t pair_zero_as(pair_t r, pair_t x) { return pair_of(vf_signed_as(r.high, x.high), r.low); }

/* -|x|, but no less than where e^x - 1 is -1 to all digits by far; a NaN stays. */
#define LEAST 75.0f
INLINED vecf vf_least(vecf x) { return vf_neg(vf_at_most(vf_abs(x), LEAST)); }
INLINED pair_t pair_abs(pair_t x) {
    vecf high = vf_abs(x.high);
    return x.exact ? pair_exactly(high) : pair_of(high, vf_negate_where(vf_is_negative(x.high), x.low));
}
INLINED pair_t pair_least(pair_t x) {
    pair_t y = pair_neg(pair_abs(x));
    mask_t beyond = vf_is_positive(vf_sub(vf_abs(x.high), vf_set(LEAST)));
    y.high = vf_least(x.high);
    if (!y.exact) y.low = vf_select(beyond, vf_set(0.0f), y.low);
    return y;
}

/* y less whole octaves: `high` is exact, `low` has what the power lacks. */
typedef struct { vecf power, high, low; } octaves_t;
INLINED octaves_t pair_octaves(pair_t y) {
    octaves_t o;
    whole_t n = exp_whole(y.high, 1.0f, EXP_STEPS);
    o.high = vf_fma(n.octaves, vf_set(-LN2), y.high);
    o.low = vf_fma(n.octaves, vf_set(-LN2_LOW), lookup_step(EXP_SHIFTS, n.steps));
    if (!y.exact) o.low = vf_add(o.low, y.low);
    o.power = exp_power(lookup_step((const float *)EXP_POWERS, n.steps), EXP_STEPS, n);
    return o;
}
/* e^-x; infinity where it is more than floats can be, and 0, or not all of its digits, where it is less than
 * a normal number. Sixteen lanes have an operation for the exponent that goes there by itself. */
#define GROWTH_FIRST -87.0f
#define NORMAL_LAST 87.0f
INLINED vecf decayed(vecf x, vecf q) {
#if LANES == 16
    return q;
#else
    return vf_select(vf_is_positive(vf_sub(x, vf_set(NORMAL_LAST))), vf_set(0.0f), q);
#endif
}
INLINED vecf growing(vecf x) {
#if LANES == 16
    return x;
#else
    return vf_at_most(vf_at_least(x, GROWTH_FIRST), NORMAL_LAST);
#endif
}
INLINED vecf grown(vecf x, vecf e) {
#if LANES == 16
    return e;
#else
    return vf_select(vf_is_negative(vf_sub(x, vf_set(GROWTH_FIRST))), vf_set(INFINITY), e);
#endif
}
/* Error 2^-23.5 and 2.7e-9 for each octave. */
INLINED vecf vf_exp_minus(vecf x) {
    vecf y = growing(x);
    whole_t n = exp_whole(y, -1.0f, EXP_NEAR_STEPS);
    vecf rest = exp_near_rest(vf_fma(n.octaves, vf_set(LN2_NEAR), y), -1.0f);
    vecf power = exp_power(lookup_near_step((const float *)EXP_NEAR_POWERS, n.steps), EXP_NEAR_STEPS, n);
    power = decayed(x, power);
    return grown(x, vf_fma(power, rest, power));
}
/* e^-(c x), to as much: what rounding takes of a product would show, the more the larger that is. */
INLINED vecf exp_minus_of_parts(vecf t, vecf low) {
    vecf y = growing(t);
    whole_t n = exp_whole(y, -1.0f, EXP_NEAR_STEPS);
    vecf r = vf_add(vf_fma(n.octaves, vf_set(LN2_NEAR), y), low);
    vecf rest = exp_near_rest(r, -1.0f);
    vecf power = exp_power(lookup_near_step((const float *)EXP_NEAR_POWERS, n.steps), EXP_NEAR_STEPS, n);
    power = decayed(t, power);
    return grown(t, vf_fma(power, rest, power));
}
INLINED vecf vf_exp_minus_product(vecf c, vecf c_low, vecf x) {
    vecf t = vf_mul(c, x);
    return exp_minus_of_parts(t, vf_fma(c_low, x, vf_fms(c, x, t)));
}
INLINED vecf vf_decay_of_product(vecf c, vecf c_low, vecf x) {
    vecf t = vf_mul(c, x), low = vf_fma(c_low, x, vf_fms(c, x, t));
    mask_t minus = vf_is_negative(t);
    return exp_minus_of_parts(vf_abs(t), vf_negate_where(minus, low));
}
/* Error 2^-28.5. */
INLINED pair_t pair_exp_minus(pair_t x) {
    vecf y = growing(x.high);
    whole_t n = exp_whole(y, -1.0f, EXP_STEPS);
    vecf low = vf_fms(n.octaves, vf_set(LN2_LOW), lookup_step(EXP_SHIFTS, n.steps));
    if (!x.exact) low = vf_add(low, x.low);
    vecf r = vf_add(vf_fma(n.octaves, vf_set(LN2), y), low);
    vecf rest = vf_fms(vf_mul(r, r), exp_tail_vec(r, -1.0f), r);
    vecf power = decayed(x.high, exp_power(lookup_step((const float *)EXP_POWERS, n.steps), EXP_STEPS, n));
    vecf high = vf_fma(power, rest, power);
    return pair_of(grown(x.high, high), vf_fma(power, rest, vf_sub(power, high)));
}
/* Error 2^-32: what a sum with it may leave of it needs more digits. */
INLINED pair_t pair_exp_minus_long(pair_t x) {
    vecf y = growing(x.high);
    whole_t n = exp_whole(y, -1.0f, EXP_STEPS);
    vecf low = vf_fms(n.octaves, vf_set(LN2_LOW), lookup_step(EXP_SHIFTS, n.steps));
    if (!x.exact) low = vf_add(low, x.low);
    vecf high = vf_fma(n.octaves, vf_set(LN2), y), r = vf_add(high, low);
    vecf rest = vf_fms(vf_mul(r, r), exp_long_tail(r, -1.0f), low);
    vecf power = decayed(x.high, exp_power(lookup_step((const float *)EXP_POWERS, n.steps), EXP_STEPS, n));
    vecf near = vf_fnma(power, high, power), lost = vf_fnma(power, high, vf_sub(power, near));
    pair_t e = pair_of_parts(near, vf_fma(power, rest, lost));
    return pair_of(grown(x.high, e.high), e.low);
}
/* (1 + e^-t (1 + t)) / (1 + e^-t)^2, error 2^-21.2, but 2^-32 of 1 where the numerator is small: 1 + t is exact
 * there, and the exponential has two parts. No half is so near to its root that this shows. */
INLINED vecf vf_swish_slope(vecf t) {
    const vecf one = vf_set(1.0f);
    pair_t e = pair_exp_minus_long(pair_exactly(t));
    vecf sum = vf_add(one, t), inverse = vf_inverse(vf_add(one, e.high));
    vecf bend = vf_fma(e.low, sum, vf_fma(e.high, sum, one));
    return vf_mul(vf_mul(bend, inverse), inverse);
}
/* e^-|x|. */
INLINED vecf vf_decay(vecf x) { return vf_exp_minus(vf_abs(x)); }
INLINED pair_t pair_decay(pair_t x) { return pair_exp_minus(pair_abs(x)); }
INLINED pair_t pair_decay_long(pair_t x) { return pair_exp_minus_long(pair_abs(x)); }
/* e^y - 1, error 2^-22.5. */
INLINED vecf vf_expm1(vecf y) {
    octaves_t o = pair_octaves(pair_exactly(y));
    vecf r = vf_add(o.high, o.low), rest = vf_fma(vf_mul(r, r), exp_long_tail(r, 1.0f), r);
    return vf_fma(o.power, rest, vf_sub(o.power, vf_set(1.0f)));
}
/* e^y - 1, error 2^-28: every sum is in two parts, for near y = 0 they are as large as it, or larger. */
INLINED pair_t pair_expm1(pair_t y) {
    const vecf one = vf_set(1.0f);
    octaves_t o = pair_octaves(y);
    vecf r = vf_add(o.high, o.low);
    vecf rest = vf_fma(vf_mul(r, r), exp_long_tail(r, 1.0f), o.low);
    vecf head = vf_sub(o.power, one), of_one = vf_sub(head, o.power);
    vecf head_low = vf_sub(vf_sub(o.power, vf_sub(head, of_one)), vf_add(one, of_one));
    vecf near = vf_fma(o.power, o.high, head);
    vecf near_low = vf_add(vf_fma(o.power, o.high, vf_sub(head, near)), head_low);
    return pair_of_parts(near, vf_fma(o.power, rest, near_low));
}

#define LOG1P_HALVED 0.41421357f
/* ln(1 + q) = 2 artanh(q / (2 + q)) for q in [0, 1]; from sqrt(2) - 1 on ln(2) + ln((1 + q)/2). */
INLINED vecf vf_log1p(vecf q) {
    mask_t far = vf_is_positive(vf_sub(q, vf_set(LOG1P_HALVED)));
    vecf above = vf_sub_where(far, q, vf_set(1.0f));
    vecf u = vf_quotient(above, vf_add(q, vf_select(far, vf_set(3.0f), vf_set(2.0f))));
    return vf_atanh_rest(u, vf_add(vf_add(u, u), vf_select(far, vf_set(LN2_NEAR), vf_set(0.0f))));
}
INLINED pair_t pair_log1p(pair_t q) {
    const vecf two = vf_set(2.0f), none = vf_set(0.0f);
    mask_t far = vf_is_positive(vf_sub(q.high, vf_set(LOG1P_HALVED)));
    vecf taken = vf_select(far, vf_set(1.0f), none), base = vf_select(far, vf_set(3.0f), two);
    vecf above = vf_sub(q.high, taken), sum = vf_add(base, q.high);
    vecf above_low = vf_sub(q.high, vf_add(above, taken)), sum_low = vf_sub(q.high, vf_sub(sum, base));
    if (!q.exact) above_low = vf_add(above_low, q.low), sum_low = vf_add(sum_low, q.low);
    pair_t u = pair_div(pair_of(above, above_low), pair_of(sum, sum_low));
    u = pair_of_parts(u.high, u.low); /* of a quotient the high part alone has 14 bits */
    vecf head = vf_select(far, vf_set(LN2), none);
    vecf main = vf_fma(two, u.high, head), low = vf_fma(two, u.high, vf_sub(head, main));
    low = vf_add(vf_fma(two, u.low, low), vf_select(far, vf_set(LN2_LOW), none));
    return pair_of_parts(main, vf_atanh_rest(vf_add(u.high, u.low), low));
}

/* What is left to doubles where x is not in [low, high]. */
INLINED vecf vf_within(vecf x, float low, float high, vecf r) {
    return vf_select(vf_between(x, low, high), r, vf_set(__builtin_nanf("")));
}
INLINED pair_t pair_within(pair_t x, float low, float high, pair_t r) {
    return pair_of(vf_within(x.high, low, high, r.high), r.low);
}
/* The same where it is below a bound. */
INLINED vecf vf_unless_below(vecf x, float low, vecf r) {
    return vf_select(vf_ge(x, low), r, vf_set(__builtin_nanf("")));
}
INLINED pair_t pair_unless_below(pair_t x, float low, pair_t r) {
    return pair_of(vf_unless_below(x.high, low, r.high), r.low);
}

/* 2^x of an operand of which both are normal numbers, error 2^-24 and 2^-28.5: no part of ln(2) to take off. */
#define EXP2_FIRST -125.0f
#define EXP2_LAST 127.0f
INLINED whole_t exp2_whole(vecf x, int steps) {
    const vecf magic = vf_set(exp_magic(steps));
    vecf shifted = vf_add(x, magic);
    return (whole_t){ vf_sub(shifted, magic), vf_bits(shifted) };
}
INLINED vecf vf_exp2(vecf x) {
    whole_t n = exp2_whole(x, EXP_NEAR_STEPS);
    vecf rest = exp_near_rest(vf_sub(x, n.octaves), LN2_NEAR);
    vecf power = exp_power(lookup_near_step((const float *)EXP_NEAR_POWERS, n.steps), EXP_NEAR_STEPS, n);
    return vf_within(x, EXP2_FIRST, EXP2_LAST, vf_fma(power, rest, power));
}
INLINED pair_t pair_exp2(pair_t x) {
    whole_t n = exp2_whole(x.high, EXP_STEPS);
    vecf r = vf_fma(vf_sub(x.high, n.octaves), vf_set(LN2_NEAR), lookup_step(EXP_SHIFTS, n.steps));
    vecf rest = vf_fma(vf_mul(r, r), exp_tail_vec(r, 1.0f), r);
    vecf power = exp_power(lookup_step((const float *)EXP_POWERS, n.steps), EXP_STEPS, n);
    vecf high = vf_fma(power, rest, power);
    pair_t e = pair_of(high, vf_fma(power, rest, vf_sub(power, high)));
    return pair_within(x, EXP2_FIRST, EXP2_LAST, e);
}

/* x = 2^octaves m, m from sqrt(1/2) to sqrt(2), of a normal number. */
#define ROOT_HALF_BITS 0x3f3504f3u
typedef struct { vecf m, octaves; veci shift; } parts_t;
INLINED parts_t parts_of(vecf x) {
    veci octaves = vi_shift_right_signed(vi_sub(vf_bits(x), vi_set(ROOT_HALF_BITS)), 23);
    veci shift = vi_shift_left(octaves, 23);
    return (parts_t){ vi_as_floats(vi_sub(vf_bits(x), shift)), vi_to_floats(octaves), shift };
}
/* ln x of a normal number, 2^-22 of it: octaves ln(2) + 2 artanh((m - 1)/(m + 1)). */
INLINED vecf vf_log(vecf x) {
    const vecf one = vf_set(1.0f);
    parts_t p = parts_of(x);
    vecf u = vf_quotient(vf_sub(p.m, one), vf_add(p.m, one));
    vecf r = vf_atanh_rest(u, vf_fma(p.octaves, vf_set(LN2_NEAR), vf_add(u, u)));
    return vf_within(x, 0x1p-126f, 0x1.fffffep127f, r);
}
/* 2^-28 of it; the low part of x is scaled as the high one is. */
INLINED pair_t pair_log(pair_t x) {
    const vecf one = vf_set(1.0f), two = vf_set(2.0f);
    parts_t p = parts_of(x.high);
    vecf less = vf_sub(p.m, one), sum = vf_add(one, p.m), sum_low = vf_sub(p.m, vf_sub(sum, one));
    pair_t u;
    if (x.exact) u = pair_div(pair_exactly(less), pair_of(sum, sum_low));
    else {
        vecf scale = vi_as_floats(vi_sub(vi_set(0x3f800000u), p.shift)), low = vf_mul(x.low, scale);
        u = pair_div(pair_add(pair_exactly(less), pair_exactly(low)), pair_of(sum, vf_add(sum_low, low)));
    }
    vecf head = vf_mul(p.octaves, vf_set(LN2)); /* exact */
    vecf main = vf_fma(two, u.high, head), low = vf_fma(two, u.high, vf_sub(head, main));
    low = vf_fma(p.octaves, vf_set(LN2_LOW), vf_fma(two, u.low, low));
    pair_t r = pair_of_parts(main, vf_atanh_rest(vf_add(u.high, u.low), low));
    return pair_within(x, 0x1p-126f, 0x1.fffffep127f, r);
}
/* ln(1 + x), near 0 too. */
INLINED pair_t pair_log_of_sum(pair_t x) { return pair_log(pair_add(pair_exactly(vf_set(1.0f)), x)); }
INLINED vecf vf_log_of_sum(vecf x) {
    pair_t r = pair_log_of_sum(pair_exactly(x));
    return vf_add(r.high, r.low);
}
/* 1 / sqrt(x) from an estimate y: y (1 + e/2 + 3 e^2/8), e = 1 - x y^2. */
INLINED vecf vf_rsqrt(vecf x) {
    vecf y = vf_rsqrt_estimate(x), e = vf_fnma(vf_mul(x, y), y, vf_set(1.0f));
    return vf_fma(vf_mul(y, e), vf_fma(e, vf_set(0.375f), vf_set(0.5f)), y);
}
INLINED pair_t pair_rsqrt(pair_t x) {
    vecf y = vf_rsqrt_estimate(x.high), product = vf_mul(x.high, y), low = vf_fms(x.high, y, product);
    vecf e = vf_fnma(low, y, vf_fnma(product, y, vf_set(1.0f)));
    return pair_of(y, vf_mul(vf_mul(y, e), vf_fma(e, vf_set(0.375f), vf_set(0.5f))));
}

/* Lanes that no form over vectors is trusted with. */
typedef unsigned lanes_t;
INLINED lanes_t lanes_of(mask_t c) { return mask_bits(c); }
/* The result is no finite number, or less than 2^-100 although it should not be 0: a pair's low part may be
 * less than the smallest float then. */
#define SCANT 0x0d800000u
INLINED lanes_t unusual_lanes(vecf r, mask_t some) {
    veci size = vi_sub(vi_and(vf_bits(r), vi_set(0x7fffffffu)), vi_set(SCANT));
    /* Nothing times an infinity need not be 0. */
    mask_t open = mask_or(some, vf_is_nonzero(r));
    return lanes_of(mask_and(vi_ge(size, vi_set(0x7f800000u - SCANT)), open));
}
INLINED lanes_t lanes_within(vecf x, float root, float gap) {
    return lanes_of(vf_is_positive(vf_sub(vf_abs(vf_set(gap)), vf_abs(vf_sub(x, vf_set(root))))));
}
/* Whether any magnitude is less than `least`. */
INLINED int vf_any_below(vecf x, float least) {
    return mask_any(vf_is_negative(vf_sub(vf_abs(x), vf_set(least))));
}
/* e^(rate x) has less than all digits. */
#define DECAY_LAST 75.0f
INLINED lanes_t lanes_beyond(vecf x, float rate) {
    return lanes_of(vf_is_negative(vf_add(vf_mul(x, vf_set(rate)), vf_set(DECAY_LAST))));
}

#else
/* What formulas name that compute as doubles alone here: declared, never called. */
typedef struct { float none; } vecf;
typedef struct { vecf high, low; int exact; } pair_t;
vecf vf_set(float);
vecf vf_add(vecf, vecf);
vecf vf_mul(vecf, vecf);
vecf vf_fnma(vecf, vecf, vecf);
vecf vf_neg(vecf);
vecf vf_quotient(vecf, vecf);
vecf vf_least(vecf);
vecf vf_decay(vecf);
vecf vf_exp_minus(vecf);
vecf vf_exp_minus_product(vecf, vecf, vecf);
vecf vf_decay_of_product(vecf, vecf, vecf);
vecf vf_expm1(vecf);
vecf vf_log(vecf);
vecf vf_rsqrt(vecf);
vecf vf_log_of_sum(vecf);
vecf vf_within(vecf, float, float, vecf);
vecf vf_unless_below(vecf, float, vecf);
pair_t pair_unless_below(pair_t, float, pair_t);
vecf vf_log1p(vecf);
vecf vf_where_negative(vecf, vecf, vecf);
vecf vf_where_above(vecf, vecf, vecf, vecf);
vecf vf_where_at_most(vecf, vecf, vecf, vecf);
vecf vf_bounded(vecf, float, float);
vecf vf_exp2(vecf);
pair_t pair_exp2(pair_t);
vecf vf_swish_slope(vecf);
vecf vf_where_product_above(vecf, vecf, vecf, vecf, vecf);
vecf vf_signed_as(vecf, vecf);
pair_t pair_set(double);
pair_t pair_add(pair_t, pair_t);
pair_t pair_add_less(pair_t, pair_t);
pair_t pair_mul(pair_t, pair_t);
pair_t pair_neg(pair_t);
pair_t pair_div(pair_t, pair_t);
pair_t pair_least(pair_t);
pair_t pair_decay(pair_t);
pair_t pair_decay_long(pair_t);
pair_t pair_exp_minus(pair_t);
pair_t pair_exp_minus_long(pair_t);
pair_t pair_expm1(pair_t);
pair_t pair_log(pair_t);
pair_t pair_rsqrt(pair_t);
pair_t pair_zero_as(pair_t, pair_t);
pair_t pair_log_of_sum(pair_t);
pair_t pair_within(pair_t, float, float, pair_t);
pair_t pair_log1p(pair_t);
pair_t pair_where_negative(pair_t, pair_t, pair_t);
pair_t pair_where_above(pair_t, pair_t, pair_t, pair_t);
pair_t pair_where_at_most(pair_t, vecf, pair_t, pair_t);
pair_t pair_bounded(pair_t, float, float);
pair_t pair_where_product_above(vecf, pair_t, vecf, pair_t, pair_t);
pair_t pair_signed_as(pair_t, pair_t);
#endif

#endif
