/* The functions that formulas are made of, in double: branch-free, so that loops vectorise.
 *
 * Polynomials are Chebyshev interpolants of the functions named; `tools/coefficients.py`
 * makes the constants.  Every error stated is relative and of the approximation; evaluation adds
 * a few units of 2^-53.
 */
#ifndef ACLNN_VECTOR_MATH_H
#define ACLNN_VECTOR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* However many formulas there are: loops that call functions do not vectorise. */
#if defined(__GNUC__)
#define ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define ALWAYS_INLINE static inline
#endif

#if defined(__FMA__) || defined(__aarch64__)
static inline double fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
/* Without the instruction: exact product in double, two roundings of the sum.  Good enough for
 * residuals of float32, whose products double holds exactly. */
static inline double fma_f64(double a, double b, double c) { return a * b + c; }
#endif

static inline uint32_t bits_of_f32(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }
static inline float f32_of_bits(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }
static inline uint64_t bits_of_f64(double x) { uint64_t b; memcpy(&b, &x, 8); return b; }
static inline double f64_of_bits(uint64_t b) { double x; memcpy(&x, &b, 8); return x; }

/* a * b - p for p = the rounded product: exact. */
ALWAYS_INLINE double product_error(double a, double b, double p) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fma(a, b, -p);
#else
    /* Veltkamp's splitting, Dekker's product. */
    double ca = 0x1.0000002p27 * a, cb = 0x1.0000002p27 * b;
    double ah = ca - (ca - a), bh = cb - (cb - b);
    double al = a - ah, bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

/* `near`, or its odd neighbour on the side where the sign of `error` says the exact value lies.
 * Rounding that once more, to fewer bits, gives what rounding the exact value would have: a tie
 * that only the error breaks is broken. */
ALWAYS_INLINE double odd_f64(double near, double error) {
    uint64_t b = bits_of_f64(near);
    /* Chosen as doubles, whose comparisons every instruction set can select by. */
    uint64_t inexact = bits_of_f64(((error < 0.0) | (error > 0.0)) ? 0x1p-1074 : 0.0) & ~b;
    uint64_t inward = (bits_of_f64(error) ^ b) >> 63;
    return f64_of_bits(b + inexact - ((inexact & inward) << 1));
}

/* a + c b of floats, or of less precise numbers, rounded to odd. The sum's rounding error and the product's
 * are added: where one is all that is left of the sum, the other is nothing. */
ALWAYS_INLINE double odd_scaled_sum(double a, double b, double c) {
    double product = c * b, low = product_error(c, b, product);
    double sum = a + product, taken = sum - a;
    double rest = (a - (sum - taken)) + (product - taken) + low;
    double near = rest == 0.0 ? sum : sum + rest; /* -0 stays */
    double odd = odd_f64(near, rest - (near - sum));
    return sum - sum == 0.0 ? odd : sum;
}

/* The float32 nearest to x, but to odd: a second rounding, to fewer bits, then gives what one
 * rounding would have. */
static inline float f32_to_odd(double x) {
    float near = (float)x;
    double back = (double)near;
    uint32_t b = bits_of_f32(near);
    uint32_t inexact = (uint32_t)(back != x) & (uint32_t)(x == x) & ~b & 1u;
    uint32_t outward = (uint32_t)((back < x) == (x > 0.0));
    /* An even neighbour becomes the odd one on x's side; infinity goes back to the largest. */
    return f32_of_bits(b + (inexact ? (outward ? 1u : 0xffffffffu) : 0u));
}

/* `near`, or its odd neighbour on the side where the sign of `error` says the exact value lies. */
ALWAYS_INLINE float odd_f32(float near, float error) {
    uint32_t b = bits_of_f32(near);
    uint32_t inexact = bits_of_f32(((error < 0.0f) | (error > 0.0f)) ? 0x1p-149f : 0.0f) & ~b;
    uint32_t inward = (bits_of_f32(error) ^ b) >> 31;
    return f32_of_bits(b + inexact - ((inexact & inward) << 1));
}

/* What a form in float gives where the form in double has to decide: a NaN that no computation makes. */
#define IN_DOUBT 0x7fc0d0b7u
ALWAYS_INLINE float in_doubt(void) { return f32_of_bits(IN_DOUBT); }
ALWAYS_INLINE uint32_t is_in_doubt(float r) { return bits_of_f32(r) == IN_DOUBT; }

/* The float nearest to a value of which x, with an error of at most 2^-45, is `known`, or it is a NaN; in
 * doubt where it may be either of two, or no normal number. Integers of 32 bits and no branches: SSE2 has
 * vectors for no more. */
ALWAYS_INLINE float f32_or_doubt(double x, int known) {
    const uint32_t margin = 0x200, before_tie = 0x10000000 - margin;
    uint32_t from_tie = ((uint32_t)bits_of_f64(x) - before_tie) & 0x1fffffff;
    double size = __builtin_fabs(x);
    int sure = (from_tie > 2 * margin) & (size >= 0x1p-126) & (size < 0x1p127);
    return (sure | (x == 0.0) | (x != x)) & known ? (float)x : in_doubt();
}
/* A float that rounds to the same half as the value; in doubt near halves and ties of them, all of which
 * end in 12 zeros. */
ALWAYS_INLINE float half_or_doubt(double x, int known) {
    float r = (float)x, size = __builtin_fabsf(r);
    int sure = ((bits_of_f32(r) & 0xfff) != 0) & (size >= 0x1p-126f) & (size < 0x1p127f);
    return (sure | (x == 0.0) | (x != x)) & known ? r : in_doubt();
}

#if defined(__FMA__) || defined(__aarch64__)
#define FUSED 1
ALWAYS_INLINE float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
#define FUSED 0 /* no form in float that would gain anything from a function for it */
ALWAYS_INLINE float fma_f32(float a, float b, float c) { return a * b + c; }
#endif

/* a + c b, rounded once. */
static inline float scaled_sum_f32(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(c, b, a);
#else
    return c == 1.0f ? a + b : c == -1.0f ? a - b : (float)odd_scaled_sum(a, b, c);
#endif
}
static inline double scaled_sum_f64(double a, double b, double c) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fma(c, b, a);
#else
    if (c == 1.0) return a + b;
    if (c == -1.0) return a - b;
    return fma(c, b, a);
#endif
}
/* Not inlined: loops over what is shorter ask for c only once. */
__attribute__((noinline, const)) static float scaled_sum_to_odd(float a, float b, float c) {
    return f32_to_odd(odd_scaled_sum(a, b, c));
}
/* Of halves of one dtype, for a rounding to it: c = 1 and -1 leave nothing that shows. */
static inline float scaled_sum_half(float a, float b, float c) {
    if (c == 1.0f || c == -1.0f) return a + c * b;
    return scaled_sum_to_odd(a, b, c);
}

/* Below it floats have fewer digits than halves need to be rounded once: they are made odd. */
#define SCARCE 0x1p-100f
#define AMPLE 0x1p100f

/* r, made odd as `ample`, which is the exact value times 2^100 or rounded from it with all digits, says. */
static inline float scarce_to_odd(float r, float ample) {
    float back = r * AMPLE;
    uint32_t b = bits_of_f32(r);
    uint32_t inexact = back != ample ? ~b & 1u : 0u;
    uint32_t step = __builtin_fabsf(ample) > __builtin_fabsf(back) ? 1u : 0xffffffffu;
    uint32_t odd = b + (inexact ? step : 0u);
    return __builtin_fabsf(r) < SCARCE ? f32_of_bits(odd) : r;
}
/* Products of halves of one dtype: exact, unless they are scarce. */
static inline float product_half(float a, float b) {
    int first = __builtin_fabsf(a) < __builtin_fabsf(b);
    float less = first ? a : b, more = first ? b : a;
    return scarce_to_odd(a * b, less * AMPLE * more);
}
static inline float quotient_half(float a, float b) {
    /* Of larger numerators only an infinite divisor makes scarce quotients, and any numerator the same. */
    float near = __builtin_fabsf(a) < 0x1p28f ? a : 1.0f;
    return scarce_to_odd(a / b, near * AMPLE / b);
}

/* r, or the one NaN where r or x is any: bits of NaNs must not depend on the lane. */
static inline float ordered_f32(float r, float x) {
    return __builtin_isunordered(r, x) ? __builtin_nanf("") : r;
}
static inline double ordered_f64(double r, double x) {
    return __builtin_isunordered(r, x) ? __builtin_nan("") : r;
}

/* e^y = 2^n e^r with |r| <= ln(2)/2: adding 1.5 * 2^52 rounds to an integer and leaves it in the
 * low bits (Cody & Waite's reduction, ln 2 in two parts). */
ALWAYS_INLINE double exp_reduce(double y, double *scale) {
    const double magic = 0x1.8p52;
    double shifted = fma_f64(y, 0x1.71547652b82fep+0, magic);
    double n = shifted - magic;
    *scale = f64_of_bits((bits_of_f64(shifted) << 52) + 0x3ff0000000000000ull);
    return fma_f64(n, -0x1.ef35793c76730p-45, fma_f64(n, -0x1.62e42fefa3800p-1, y));
}

/* (e^r - 1 - r) / r^2 for |r| <= ln(2)/2, error 2^-55 of e^r. */
ALWAYS_INLINE double exp_tail(double r) {
    double p = 0x1.af3ce42b12b24p-26;
    p = fma_f64(p, r, 0x1.2894f52583578p-22);
    p = fma_f64(p, r, 0x1.71de0be2b5e96p-19);
    p = fma_f64(p, r, 0x1.a019b621f9d08p-16);
    p = fma_f64(p, r, 0x1.a01a01a83ba17p-13);
    p = fma_f64(p, r, 0x1.6c16c1794e1dcp-10);
    p = fma_f64(p, r, 0x1.1111111110918p-7);
    p = fma_f64(p, r, 0x1.5555555553b6cp-5);
    p = fma_f64(p, r, 0x1.5555555555556p-3);
    p = fma_f64(p, r, 0x1.0000000000001p-1);
    return p;
}

/* e^y for |y| <= 708, to 2^-52. */
ALWAYS_INLINE double exp_f64(double y) {
    double scale;
    double r = exp_reduce(y, &scale);
    return fma_f64(r * r, exp_tail(r), r + 1.0) * scale;
}

/* e^y - 1 for |y| <= 708, accurate near 0: there scale is 1 and the last line adds nothing. */
ALWAYS_INLINE double expm1_f64(double y) {
    double scale;
    double r = exp_reduce(y, &scale);
    double small = fma_f64(r * r, exp_tail(r), r);
    return fma_f64(small, scale, scale - 1.0);
}

/* 2^x for |x| <= 708, to 2^-52, and exact for whole numbers. */
ALWAYS_INLINE double exp2_f64(double x) {
    const double magic = 0x1.8p52;
    double shifted = x + magic;
    double rest = (x - (shifted - magic)) * 0x1.62e42fefa39efp-1;
    double scale = f64_of_bits((bits_of_f64(shifted) << 52) + 0x3ff0000000000000ull);
    return fma_f64(rest * rest, exp_tail(rest), rest + 1.0) * scale;
}

/* The variable of the two functions below: maps t in [0, inf) to [-1, 1). */
ALWAYS_INLINE double mills_variable(double t) { return (t - 4.0) / (t + 4.0); }

/* GELU' on the left is phi(t) (t0 - t) S(t), t = -x, with the root t0 = 0.75179...;
 * S for t in [0, 40], error 2^-49. */
ALWAYS_INLINE double gelu_slope_factor(double u) {
    double p = -0x1.14bda73ee204ap-28;
    p = fma_f64(p, u, -0x1.39778a4b21bccp-26);
    p = fma_f64(p, u, 0x1.ad2ad6d61cbcdp-29);
    p = fma_f64(p, u, 0x1.3ca864d2cbc08p-23);
    p = fma_f64(p, u, 0x1.076144140ec2dp-23);
    p = fma_f64(p, u, -0x1.d2b11dabb3a3ep-21);
    p = fma_f64(p, u, -0x1.495b7501209bcp-20);
    p = fma_f64(p, u, 0x1.74c17719b9129p-18);
    p = fma_f64(p, u, 0x1.298e08f1ca9a9p-17);
    p = fma_f64(p, u, -0x1.7b385f74667e4p-15);
    p = fma_f64(p, u, -0x1.6f7d52dd937c2p-15);
    p = fma_f64(p, u, 0x1.e84a8da877a18p-12);
    p = fma_f64(p, u, -0x1.96625cb037cadp-12);
    p = fma_f64(p, u, -0x1.25c3f1f7151a0p-8);
    p = fma_f64(p, u, 0x1.865ae026813aep-6);
    p = fma_f64(p, u, -0x1.2056078bf14b7p-4);
    p = fma_f64(p, u, 0x1.366418c394779p-3);
    p = fma_f64(p, u, -0x1.09517ade70259p-2);
    p = fma_f64(p, u, 0x1.2899786f40c2ap+0);
    return p;
}

/* (t + 4) Phi(-t) / phi(t), Mills' ratio times t + 4, for t in [0, 40], error 2^-51. */
ALWAYS_INLINE double mills_factor(double u) {
    double p = 0x1.4deaca5f7d3adp-26;
    p = fma_f64(p, u, 0x1.1ed946555918bp-25);
    p = fma_f64(p, u, -0x1.4bc283b216a0ap-23);
    p = fma_f64(p, u, -0x1.92f571f793d34p-22);
    p = fma_f64(p, u, 0x1.49c18498bc366p-21);
    p = fma_f64(p, u, 0x1.54ede538e8285p-19);
    p = fma_f64(p, u, -0x1.9b1c5640511c5p-20);
    p = fma_f64(p, u, -0x1.f16aaa0cd3237p-17);
    p = fma_f64(p, u, 0x1.dc89af4a0f723p-20);
    p = fma_f64(p, u, 0x1.7177a6bc6601dp-14);
    p = fma_f64(p, u, -0x1.4095f5859a0e3p-18);
    p = fma_f64(p, u, -0x1.2fb3f1be6fbdep-11);
    p = fma_f64(p, u, 0x1.5e7acd0d6a4a4p-12);
    p = fma_f64(p, u, 0x1.0be6d53121853p-8);
    p = fma_f64(p, u, -0x1.1dcfea353949fp-7);
    p = fma_f64(p, u, -0x1.35aa3c8e98657p-6);
    p = fma_f64(p, u, 0x1.360ce25fe2062p-3);
    p = fma_f64(p, u, -0x1.dec30ee67cda7p-2);
    p = fma_f64(p, u, 0x1.f0d9856bc40b1p-1);
    p = fma_f64(p, u, -0x1.8615d9b491635p+0);
    p = fma_f64(p, u, 0x1.e4aa012912ddbp+0);
    return p;
}

/* (artanh(s)/s - 1) / s^2 by z = s^2 up to 0.0297, error 2^-52. */
ALWAYS_INLINE double atanh_tail(double z) {
    double p = 0x1.0c45910d13931p-4;
    p = fma_f64(p, z, 0x1.0fb84017ed703p-4);
    p = fma_f64(p, z, 0x1.3b1c722e2b32bp-4);
    p = fma_f64(p, z, 0x1.745cf7e4fccffp-4);
    p = fma_f64(p, z, 0x1.c71c72040d1cdp-4);
    p = fma_f64(p, z, 0x1.2492492475444p-3);
    p = fma_f64(p, z, 0x1.9999999999a42p-3);
    p = fma_f64(p, z, 0x1.5555555555555p-2);
    return p;
}

/* ln q for q >= 0: q = 2^e m with m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m-1)/(m+1)). */
ALWAYS_INLINE double log_f64(double q) {
    uint64_t bits = bits_of_f64(q) - 0x3fe6a09e667f3bcdull;
    /* No conversion, which AVX2 has none of: e + 2048 becomes the last bits of 2^52. */
    uint64_t biased = (bits + 0x8000000000000000ull) >> 52;
    double e = f64_of_bits(biased | 0x4330000000000000ull) - (0x1p52 + 2048.0);
    double m = f64_of_bits((bits & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
    double s = (m - 1.0) / (m + 1.0);
    double z = s * s;
    double series = fma_f64(s * z, atanh_tail(z), s);
    return fma_f64(e, 0x1.62e42fefa3800p-1, fma_f64(e, 0x1.ef35793c76730p-45, 2.0 * series));
}

/* erfinv(x) / x as a function of w = -ln(1 - x^2) in [0, 17], error 2^-38. */
ALWAYS_INLINE double erfinv_factor(double w) {
    double p = 0x1.eb5a0cf407c2dp-36;
    p = fma_f64(p, w, 0x1.44c8597f0c840p-28);
    p = fma_f64(p, w, 0x1.bd32c8f125e81p-24);
    p = fma_f64(p, w, 0x1.118d059a6885ap-19);
    p = fma_f64(p, w, 0x1.ef6f25cb2b383p-16);
    p = fma_f64(p, w, 0x1.54789a7f8fcb6p-12);
    p = fma_f64(p, w, 0x1.69a99478ed293p-9);
    p = fma_f64(p, w, 0x1.2bae8826dc2ebp-6);
    p = fma_f64(p, w, 0x1.78a99e560b2e0p-4);
    p = fma_f64(p, w, 0x1.4c6998b922e46p-2);
    p = fma_f64(p, w, 0x1.c5bf891b4807cp-1);
    double q = 0x1.7f0ed6036e00ep-41;
    q = fma_f64(q, w, 0x1.0dc6152eced16p-31);
    q = fma_f64(q, w, 0x1.e036ee2cd5a77p-26);
    q = fma_f64(q, w, 0x1.ac02cf4d01fe6p-22);
    q = fma_f64(q, w, 0x1.508526b0f59eap-17);
    q = fma_f64(q, w, 0x1.599e90f232f18p-14);
    q = fma_f64(q, w, 0x1.5891688f55a3dp-10);
    q = fma_f64(q, w, 0x1.5cb5429eadeecp-8);
    q = fma_f64(q, w, 0x1.039578727ea50p-4);
    q = fma_f64(q, w, 0x1.ac04dd9311ce7p-4);
    q = fma_f64(q, w, 0x1.0000000000000p+0);
    return p / q;
}

#endif
