/* Operators by lanes, for float32 results and for halves: loaded, computed, rounded and stored in
 * one go.
 *
 * A loop tells whether some element is suspect: not finite, smaller than what its parts can be told
 * apart in, or outside the range of its formula. `..._suspect` tells which, from an element's
 * inputs and what the loop made of it. Halves are rounded from a float whose error has a bound;
 * where that leaves two candidates, the loop notes a doubt. Suspect and doubtful elements are
 * computed again in double. So no lane branches, and odd values cost nothing until they occur.
 */
#ifndef ACLNN_LANE_FORMULAS_H
#define ACLNN_LANE_FORMULAS_H

#include "lanes.h"
#include "lane_tables.h"
#include "half.h"
#include "vector_math.h"

#ifdef LANES
#define IF_LANES(loop) loop
#else
#define IF_LANES(loop) NULL
#endif

#define TINY 0x03800000u /* 2^-120: parts of a product below it may be less than the smallest float */
#define ELU_LAST 0xc2a00000u /* -80: the power's exponent must not run out */
#define GELU_LAST 0xc14e6666u /* -12.9 */
#define GELU_BESIDE 0xbf407500u /* within 2^-16 of the root its low part has too few digits */
#define GELU_REACH 0x200u

static inline int not_plain(float r) {
    uint32_t size = bits_of_f32(r) & 0x7fffffffu;
    return (size >= 0x7f800000u) | (size - 1u < TINY - 1u);
}

static inline int leaky_relu_suspect(float g, float x, float r, const double *p) { return not_plain(r); }

/* Scalars so far from 1 that the lanes might over- or underflow on the way. */
static inline int elu_backward_odd(const double *p) {
    double slope = p[0] * p[1] * p[2];
    return !(p[2] > 0 && p[2] <= 1024 && slope <= 1048576 && slope >= 9.5e-7);
}
static inline int elu_backward_suspect(float g, float x, float r, const double *p) {
    float y = (float)p[2] * (x < 0.0f ? x : 0.0f);
    return elu_backward_odd(p) | not_plain(r) | (bits_of_f32(y) > ELU_LAST);
}
static inline int gelu_backward_suspect(float g, float x, float r, const double *p) {
    return not_plain(r) | (bits_of_f32(x) > GELU_LAST) | (bits_of_f32(x) - GELU_BESIDE < GELU_REACH);
}
static inline int logit_backward_odd(const double *p) { return !(p[0] < 1); }
static inline int logit_backward_suspect(float x, float dy, float r, const double *p) {
    float product = x * (1.0f - x);
    return logit_backward_odd(p) | not_plain(r) | not_plain(dy) | (product == 0) | (product - product != 0);
}

#ifdef LANES

/* What a loop saw: r * 0 summed up, so that a NaN remains of any that is not finite; the least
 * magnitude that is not 0; the most and the least of keys that a formula makes of its argument. */
typedef struct { lanes_t finite; ints_t least, most, key; } seen_t;

static inline seen_t nothing_seen(void) {
    seen_t seen = { lanes_of(0.0f), ints_of(0xffffffffu), ints_of(0u), ints_of(0xffffffffu) };
    return seen;
}
static inline void see_finite(seen_t *seen, lanes_t r) {
    seen->finite = fma_of(r, lanes_of(0.0f), seen->finite);
}
static inline void see_size(seen_t *seen, lanes_t r) {
    /* The sign shifted out, and 0 made the largest. */
    ints_t twice = int_plus(int_left(bits_of(r), 1), ints_of(0xffffffffu));
    seen->least = int_least(seen->least, twice);
}
static inline void see_argument(seen_t *seen, lanes_t x) {
    seen->most = int_most(seen->most, bits_of(x));
}
/* `most` is the largest argument, `key` the smallest key that the formula knows. */
static inline int odd_seen(const seen_t *seen, uint32_t most, uint32_t key) {
    choice_t odd = either(not_zero(seen->finite), int_at_most(seen->least, ints_of(2u * TINY - 2u)));
    if (most != 0xffffffffu) odd = either(odd, int_at_most(ints_of(most + 1u), seen->most));
    if (key != 0) odd = either(odd, int_at_most(seen->key, ints_of(key - 1u)));
    return any(odd);
}

/* e^r - 1 is r + r^2 (c1 + c2 r) for |r| <= ln(2)/32 + 2^-12, error 2^-28.6. */
static inline lanes_t exp_rest(lanes_t r) {
    lanes_t tail = fma_of(r, lanes_of(0x1.5556e8p-3f), lanes_of(0x1.0001f8p-1f));
    return fma_of(times(r, r), tail, r);
}

/* y + y_low = n ln(2)/16 + the return value; *n is n in the low bits of 1.5 * 2^23 + n. */
static inline lanes_t exp_reduced(lanes_t y, lanes_t y_low, ints_t *n) {
    const lanes_t magic = lanes_of(0x1.8p23f);
    lanes_t shifted = fma_of(y, lanes_of(0x1.715476p+4f), magic);
    lanes_t whole = minus(shifted, magic);
    *n = bits_of(shifted);
    return plus(fma_of(whole, lanes_of(-0x1.62ep-5f), y),
                fma_of(whole, lanes_of(-0x1.0bfbe8p-19f), y_low));
}

/* 2^(n/16) of a table whose bits have j << 19 taken off element j. */
static inline lanes_t exp_power(const float *table, ints_t n) {
    return floats_of(int_plus(bits_of(pick16(table, n)), int_left(n, 19)));
}

typedef struct { float powers[16], shifts[16], near_powers[16], rate, scale; int odd; } elu_t;
typedef struct { uint32_t low, reach; float outside; int odd; } logit_t;
typedef struct { uint32_t low, reach; uint16_t half_low, half_reach, bfloat_low, bfloat_reach; } keep_t;

/* A call's scalars, and what a formula makes of them once for a whole tile. */
typedef struct {
    double p[4];
    union { elu_t elu; logit_t logit; keep_t keep; };
} facts_t;

/* --- ELU ------------------------------------------------------------------------------------- */


/* The slope joins the tables: its first twelve bits the powers, which stay exact, the logarithm of
 * the rest the shifts. */
static inline void elu_prepare(const double *p, elu_t *elu) {
    double slope = p[2] * p[0] * p[1];
    float near = (float)slope;
    float lead = f32_of_bits((bits_of_f32(near) + 0x800u) & 0xfffff000u);
    float rest = (float)((slope - lead) / lead);
    float shift = rest - 0.5f * rest * rest;
    for (uint32_t j = 0; j < 16; j++) {
        uint32_t offset = j << 19;
        elu->powers[j] = f32_of_bits(bits_of_f32(lead * f32_of_bits(EXP_POWERS[j] + offset)) - offset);
        elu->near_powers[j] =
            f32_of_bits(bits_of_f32(near * f32_of_bits(EXP_NEAR_POWERS[j] + offset)) - offset);
        elu->shifts[j] = EXP_SHIFTS[j] + shift;
    }
    elu->rate = (float)p[2];
    elu->scale = (float)p[1];
    elu->odd = elu_backward_odd(p);
}

static inline lanes_t elu_reduced(const elu_t *elu, lanes_t x, ints_t *n, seen_t *seen) {
    lanes_t below = at_most(x, 0.0f);
    lanes_t rate = lanes_of(elu->rate);
    lanes_t y = times(rate, below);
    see_argument(seen, y);
    return exp_reduced(y, fms_of(rate, below, y), n);
}

/* g slope e^y by g's product with the power, exact in two parts, and the rest of the exponential. */
static inline lanes_t elu_backward_single_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    const elu_t *elu = &((const facts_t *)facts)->elu;
    ints_t n;
    lanes_t r = elu_reduced(elu, x, &n, seen);
    lanes_t rest = exp_rest(plus(r, pick16(elu->shifts, n)));
    lanes_t power = exp_power(elu->powers, n);
    lanes_t product = times(g, power);
    lanes_t negative = plus(product, fma_of(product, rest, fms_of(g, power, product)));
    negative = with_sign_of(negative, product);
    lanes_t result = choose(above_zero(x), times(g, lanes_of(elu->scale)), negative);
    see_finite(seen, result);
    see_size(seen, negative);
    return result;
}

static inline lanes_t elu_backward_half_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    const elu_t *elu = &((const facts_t *)facts)->elu;
    ints_t n;
    lanes_t r = elu_reduced(elu, x, &n, seen);
    lanes_t rest = exp_rest(r);
    lanes_t power = exp_power(elu->near_powers, n);
    lanes_t negative = times(g, fma_of(power, rest, power));
    lanes_t result = choose(above_zero(x), times(g, lanes_of(elu->scale)), negative);
    see_finite(seen, result);
    return result;
}

/* --- GELU ------------------------------------------------------------------------------------ */

/* e^(-t^2/2) = power (1 + ...r), with -2 r so that t^2 need not be halved, and the factor
 * S(t)/sqrt(2 pi) = lead (1 + shape); power * lead is exact. */
typedef struct { lanes_t power, r, lead, shape; } gelu_t;

/* square + square_low = t^2 = -n ln(2)/8 + the return value. */
static inline lanes_t gelu_reduced(lanes_t square, ints_t *n, lanes_t *whole) {
    const lanes_t magic = lanes_of(0x1.8p23f);
    lanes_t shifted = fma_of(square, lanes_of(-0x1.715476p+3f), magic);
    *whole = minus(shifted, magic);
    *n = bits_of(shifted);
    return fma_of(*whole, lanes_of(0x1.62ep-4f), square);
}
#define GELU_STEP_LOW 0x1.0bfbe8p-18f

/* S(t)/sqrt(2 pi) from the tables of the interval that t lies in: many intervals and short
 * polynomials where a register holds many elements. */
#if LANES == 16
static inline void gelu_shape(lanes_t t, gelu_t *parts) {
    ints_t interval = int_right(bits_of(plus(t, lanes_of(1.0f))), 20);
    lanes_t z = minus(t, pick32(GELU_CENTERS, interval));
    lanes_t shape = pick32(GELU_SHAPES[4], interval);
    for (int k = 3; k >= 0; k--) shape = fma_of(shape, z, pick32(GELU_SHAPES[k], interval));
    parts->shape = shape;
    parts->lead = pick32(GELU_LEADS, interval);
}
static inline lanes_t gelu_near_shape(lanes_t t) {
    ints_t interval = int_right(bits_of(plus(t, lanes_of(1.0f))), 20);
    lanes_t z = minus(t, pick32(GELU_CENTERS, interval));
    lanes_t shape = pick32(GELU_NEAR_SHAPES[3], interval);
    for (int k = 2; k >= 0; k--) shape = fma_of(shape, z, pick32(GELU_NEAR_SHAPES[k], interval));
    return shape;
}
#else
static inline void gelu_shape(lanes_t t, gelu_t *parts) {
    ints_t interval = int_right(bits_of(plus(t, lanes_of(1.0f))), 22);
    lanes_t z = minus(t, pick8(GELU_WIDE_CENTERS, interval));
    lanes_t shape = pick8(GELU_WIDE_SHAPES[7], interval);
    for (int k = 6; k >= 0; k--) shape = fma_of(shape, z, pick8(GELU_WIDE_SHAPES[k], interval));
    parts->shape = shape;
    parts->lead = pick8(GELU_WIDE_LEADS, interval);
}
static inline lanes_t gelu_near_shape(lanes_t t) {
    ints_t interval = int_right(bits_of(plus(t, lanes_of(1.0f))), 22);
    lanes_t z = minus(t, pick8(GELU_WIDE_CENTERS, interval));
    lanes_t shape = pick8(GELU_WIDE_NEAR_SHAPES[6], interval);
    for (int k = 5; k >= 0; k--) shape = fma_of(shape, z, pick8(GELU_WIDE_NEAR_SHAPES[k], interval));
    return shape;
}
#endif

static inline gelu_t gelu_single_parts(lanes_t t) {
    gelu_t parts;
    ints_t n;
    lanes_t whole, square = times(t, t);
    lanes_t low = fms_of(t, t, square);
    parts.r = gelu_reduced(square, &n, &whole);
    parts.r = plus(parts.r, fma_of(whole, lanes_of(GELU_STEP_LOW), low));
    parts.r = plus(parts.r, pick16(GELU_SHIFTS, n));
    parts.power = exp_power((const float *)EXP_POWERS, n);
    gelu_shape(t, &parts);
    return parts;
}

/* For t that were halves: t^2 is exact. */
static inline gelu_t gelu_half_parts(lanes_t t) {
    gelu_t parts;
    ints_t n;
    lanes_t whole;
    parts.r = gelu_reduced(times(t, t), &n, &whole);
    parts.r = fma_of(whole, lanes_of(GELU_STEP_LOW), parts.r);
    parts.power = exp_power((const float *)EXP_NEAR_POWERS, n);
    parts.lead = gelu_near_shape(t);
    return parts;
}

/* (1 + shape) e^r - 1, with r as above. */
static inline lanes_t gelu_rest(const gelu_t *parts) {
    lanes_t tail = fma_of(parts->r, lanes_of(-0x1.5556e8p-6f), lanes_of(0x1.0001f8p-3f));
    tail = fma_of(parts->r, tail, lanes_of(-0.5f));
    return fma_of(fma_of(parts->r, parts->shape, parts->r), tail, parts->shape);
}

#define GELU_END 13.0f
#define GELU_ROOT 0x1.80eaep-1f /* a multiple of 2^-20: root - t is exact beyond the root */
#define GELU_ROOT_LOW -0x1.cd01fep-22f
static inline lanes_t gelu_backward_single_lanes(const void *none, lanes_t g, lanes_t x, seen_t *seen) {
    const lanes_t one = lanes_of(1.0f), root = lanes_of(GELU_ROOT);
    lanes_t t = at_most(magnitude(x), GELU_END);
    gelu_t parts = gelu_single_parts(t);
    lanes_t lead = times(parts.power, parts.lead);
    lanes_t near = minus(root, t);
    lanes_t near_low = plus(minus(minus(root, near), t), lanes_of(GELU_ROOT_LOW));
    lanes_t tail = times(near, lead);
    lanes_t low = fma_of(near_low, lead, fms_of(near, lead, tail));
    low = fma_of(plus(tail, low), gelu_rest(&parts), low);
    /* 1 - tail on the right, and what its rounding lost. */
    choice_t right = above_zero(x);
    lanes_t slope = choose_minus(right, one, tail, tail);
    lanes_t taken = choose_minus(right, one, slope, tail);
    lanes_t slope_low = choose_minus(right, minus(taken, tail), low, low);
    lanes_t main = times(g, slope);
    lanes_t result = with_sign_of(fma_of(g, slope, times(g, slope_low)), main);
    see_argument(seen, x);
    see_finite(seen, result);
    see_size(seen, result);
    seen->key = int_least(seen->key, int_plus(bits_of(x), ints_of(0u - GELU_BESIDE)));
    return result;
}

static inline lanes_t gelu_backward_half_lanes(const void *none, lanes_t g, lanes_t x, seen_t *seen) {
    lanes_t t = at_most(magnitude(x), GELU_END);
    gelu_t parts = gelu_half_parts(t);
    lanes_t near = plus(minus(lanes_of(GELU_ROOT), t), lanes_of(GELU_ROOT_LOW));
    lanes_t rest = fma_of(parts.r, lanes_of(-0x1.5556e8p-6f), lanes_of(0x1.0001f8p-3f));
    rest = times(parts.r, fma_of(parts.r, rest, lanes_of(-0.5f)));
    lanes_t lead = times(times(near, parts.power), parts.lead);
    lanes_t tail = fma_of(lead, rest, lead);
    lanes_t result = times(g, choose_minus(above_zero(x), lanes_of(1.0f), tail, tail));
    see_argument(seen, x);
    see_finite(seen, result);
    return result;
}

/* --- Logit ----------------------------------------------------------------------------------- */


static inline void logit_prepare(const double *p, logit_t *logit) {
    float eps = (float)p[0];
    float low = eps < 0 ? 0.0f : eps, high = eps < 0 ? 1.0f : 1.0f - eps;
    /* Bits of what is not negative are in order; an interval that is empty holds one NaN. */
    logit->low = low <= high ? bits_of_f32(low) : 0xffffffffu;
    logit->reach = low <= high ? bits_of_f32(high) - bits_of_f32(low) : 0u;
    logit->outside = eps < 0 ? __builtin_nanf("") : 0.0f;
    logit->odd = logit_backward_odd(p);
}

static inline lanes_t logit_inside(const void *facts, lanes_t q, lanes_t x) {
    const logit_t *logit = &((const facts_t *)facts)->logit;
    /* Adding 0 makes -0 the 0 that lies inside. */
    ints_t above = int_plus(bits_of(plus(x, lanes_of(0.0f))), ints_of(0u - logit->low));
    return choose(int_at_most(above, ints_of(logit->reach)), q, lanes_of(logit->outside));
}

/* The residual of the quotient, with 1 - x and the product in two parts. */
static inline lanes_t logit_backward_single_lanes(const void *facts, lanes_t x, lanes_t dy, seen_t *seen) {
    const lanes_t one = lanes_of(1.0f);
    lanes_t w = minus(one, x);
    lanes_t product = times(x, w);
    lanes_t low = fma_of(x, minus(minus(one, w), x), fms_of(x, w, product));
    lanes_t reciprocal = over(one, product);
    lanes_t near = times(dy, reciprocal);
    lanes_t residual = fnma_of(near, low, fnma_of(near, product, dy));
    lanes_t q = with_sign_of(fma_of(residual, reciprocal, near), near);
    see_size(seen, dy);
    see_finite(seen, q);
    return logit_inside(facts, q, x);
}

static inline lanes_t logit_backward_half_lanes(const void *facts, lanes_t x, lanes_t dy, seen_t *seen) {
    lanes_t product = times(x, minus(lanes_of(1.0f), x));
    lanes_t q = over(dy, product);
    see_finite(seen, product);
    return logit_inside(facts, ordered(q), x);
}

/* --- Leaky ReLU and hard shrinkage ------------------------------------------------------------ */

static inline lanes_t leaky_relu_single_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    lanes_t r = choose_times(not_above_zero(x), g, lanes_of((float)*(const double *)facts));
    see_finite(seen, r);
    return r;
}

static inline lanes_t leaky_relu_half_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    lanes_t r = choose_times_to_odd(not_above_zero(x), g, lanes_of((float)*(const double *)facts));
    see_finite(seen, r);
    return r;
}

/* Below what floats can tell apart, rounding to odd loses what it stands on. */
static inline lanes_t leaky_relu_bfloat_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    lanes_t result = leaky_relu_half_lanes(facts, g, x, seen);
    see_size(seen, result);
    return result;
}

/* Which magnitudes pass, as bits of each type: from `low` on, `reach` more, up to infinity. */

static inline void keep_prepare(const double *p, keep_t *keep) {
    float bound = p[0] < 0 ? 0.0f : (float)p[0];
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

/* --- Loops ----------------------------------------------------------------------------------- */

static inline void elu_facts(facts_t *facts) { elu_prepare(facts->p, &facts->elu); }
static inline void logit_facts(facts_t *facts) { logit_prepare(facts->p, &facts->logit); }
static inline void keep_facts(facts_t *facts) { keep_prepare(facts->p, &facts->keep); }

/* Bytes between reading and asking for: into the cache nearby, and into the one behind it. */
enum { NEAR_AHEAD = 1024, FAR_AHEAD = 16384 };
enum { ASK_A = 1, ASK_B = 2 };

/* By way of integers: what lies ahead may lie beyond the array, and is not touched. */
static inline void ask_ahead(const char *p, ptrdiff_t offset, ptrdiff_t n) {
    for (ptrdiff_t k = 0; k < n; k += 64) {
        uintptr_t here = (uintptr_t)p + (uintptr_t)(offset + k);
        __builtin_prefetch((const void *)(here + NEAR_AHEAD), 0, 3);
        __builtin_prefetch((const void *)(here + FAR_AHEAD), 0, 2);
    }
}

/* How elements lie in memory. */
typedef enum { SINGLE, HALF, BFLOAT } kind_t;

static inline ptrdiff_t size_of(kind_t kind) { return kind == SINGLE ? 4 : 2; }

static inline lanes_t load_kind(kind_t kind, const char *p) {
    if (kind == HALF) return from_halves(halves_load((const uint16_t *)p));
    if (kind == BFLOAT) return from_bfloats(halves_load((const uint16_t *)p));
    return lanes_load((const float *)p);
}

/* Round x to halves. `bound` is of its relative error; 0: it was rounded to odd, or is exact. */
static inline halves_t rounded(kind_t kind, lanes_t x, float bound, uint16_t *doubt) {
    if (kind == HALF && bound == 0) return to_halves(x);
    if (kind == HALF) {
        halves_t low = to_halves(times(x, lanes_of(1.0f - bound)));
        *doubt = (uint16_t)which_differ(low, to_halves(times(x, lanes_of(1.0f + bound))));
        return low;
    }
    if (bound == 0) return rounded_halves(bits_of(x));
    /* Within so many units of the middle of two neighbours; elsewhere as many do not matter. */
    const uint32_t reach = bound < 4e-7f ? 8 : 16;
    ints_t above = int_plus(bits_of(x), ints_of(0x8000u + reach));
    *doubt = (uint16_t)which_miss(above, ints_of(0x10000u - 2 * reach));
    return upper_halves(above);
}

typedef lanes_t (*lane_formula)(const void *, lanes_t, lanes_t, seen_t *);

typedef struct {
    const char *a, *b; /* the same where there is one input */
    char *out;
    ptrdiff_t n;
    const void *facts;
    uint16_t *doubts; /* a bit for each lane, a number for each register */
    int stream; /* past the cache */
    int ask;    /* ahead for what will be read: ASK_A, ASK_B or both */
} span_t;

static inline __attribute__((always_inline)) lanes_t at(
        lane_formula formula, kind_t in, const span_t *s, ptrdiff_t i, seen_t *seen) {
    lanes_t a = load_kind(in, s->a + i * size_of(in));
    lanes_t b = s->a == s->b ? a : load_kind(in, s->b + i * size_of(in));
    return formula(s->facts, a, b, seen);
}

/* Two registers at a time, so that halves fill a line. */
static inline __attribute__((always_inline)) ptrdiff_t over_pairs(
        lane_formula formula, kind_t in, kind_t out, float bound, const span_t *s, seen_t *seen) {
    ptrdiff_t i = 0;
    for (; i + 2 * LANES <= s->n; i += 2 * LANES) {
        if (s->ask & ASK_A) ask_ahead(s->a, i * size_of(in), 2 * LANES * size_of(in));
        if (s->ask & ASK_B) ask_ahead(s->b, i * size_of(in), 2 * LANES * size_of(in));
        lanes_t x = at(formula, in, s, i, seen);
        lanes_t y = at(formula, in, s, i + LANES, seen);
        if (out == SINGLE) {
            float *target = (float *)s->out + i;
            if (s->stream) {
                stream_lanes(target, x);
                stream_lanes(target + LANES, y);
            } else {
                lanes_store(target, x);
                lanes_store(target + LANES, y);
            }
        } else {
            uint16_t *target = (uint16_t *)s->out + i;
            uint16_t *doubt = s->doubts + i / LANES;
            halves_t low = rounded(out, x, bound, doubt), high = rounded(out, y, bound, doubt + 1);
            if (s->stream) {
                stream_halves(target, low, high);
            } else {
                halves_store(target, low);
                halves_store(target + LANES, high);
            }
        }
    }
    return i;
}

/* One register, for what is left of a row. */
static inline __attribute__((always_inline)) void over_one(
        lane_formula formula, kind_t in, kind_t out, float bound, const span_t *s, seen_t *seen) {
    lanes_t x = at(formula, in, s, 0, seen);
    if (out == SINGLE) lanes_store((float *)s->out, x);
    else halves_store((uint16_t *)s->out, rounded(out, x, bound, s->doubts));
}

/* The last elements, fewer than a register holds, go through copies that are filled up with numbers
 * that no formula minds: bytes of 0x38 are 0.53 or 4e-5, whatever the type. */
static inline __attribute__((always_inline)) int over_lanes(
        lane_formula formula, kind_t in, kind_t out, float bound, uint32_t most, uint32_t key,
        span_t s) {
    seen_t seen = nothing_seen();
    ptrdiff_t done = over_pairs(formula, in, out, bound, &s, &seen);
    while (done < s.n) {
        ptrdiff_t rest = s.n - done;
        span_t last = {
            s.a + done * size_of(in), s.b + done * size_of(in), s.out + done * size_of(out),
            LANES, s.facts, s.doubts + done / LANES, 0, 0,
        };
        char a[LANES * 4], b[LANES * 4], result[LANES * 4];
        if (rest < LANES) {
            memset(a, 0x38, sizeof a);
            memset(b, 0x38, sizeof b);
            memcpy(a, last.a, (size_t)(rest * size_of(in)));
            memcpy(b, last.b, (size_t)(rest * size_of(in)));
            last.b = last.a == last.b ? a : b;
            last.a = a;
            last.out = result;
        }
        over_one(formula, in, out, bound, &last, &seen);
        if (rest < LANES) memcpy(s.out + done * size_of(out), result, (size_t)(rest * size_of(out)));
        done += LANES;
    }
    return odd_seen(&seen, most, key);
}

static inline int any_doubt(const uint16_t *doubts, ptrdiff_t n) {
    unsigned found = 0;
    for (ptrdiff_t i = 0; i < (n + LANES - 1) / LANES; i++) found |= doubts[i];
    return found != 0;
}

enum { SUSPECTS = 1, DOUBTS = 2 };

/* What a loop finds: SUSPECTS, DOUBTS or both. Doubts are only set for halves. */
typedef int (*lane_loop)(const span_t *);

#define LOOP(name, formula, in, out, bound, most, key, odd) \
    static int name(const span_t *s) { \
        int found = over_lanes(formula, in, out, bound, most, key, *s) | (odd); \
        int doubts = out != SINGLE && bound != 0 && any_doubt(s->doubts, s->n); \
        return (found ? SUSPECTS : 0) | (doubts ? DOUBTS : 0); \
    }
/* Operands that are all alike, then halves from float32 buffers. The forms for halves may stand on
 * inputs that were halves; `from_float` does not. */
#define LOOPS(name, half, bfloat, from_float, bound, most, key, odd) \
    LOOP(name##_0, name##_single_lanes, SINGLE, SINGLE, 0, most, key, odd) \
    LOOP(name##_1, half, HALF, HALF, bound, most, key, odd) \
    LOOP(name##_2, bfloat, BFLOAT, BFLOAT, bound, most, key, odd) \
    LOOP(name##_3, from_float, SINGLE, HALF, bound, most, key, odd) \
    LOOP(name##_4, from_float, SINGLE, BFLOAT, bound, most, key, odd) \
    static const lane_loop name##_loops[5] = { name##_0, name##_1, name##_2, name##_3, name##_4 };

#define FACTS(s) ((const facts_t *)(s)->facts)
LOOPS(elu_backward, elu_backward_half_lanes, elu_backward_half_lanes, elu_backward_single_lanes, 2.9e-7f, ELU_LAST, 0, FACTS(s)->elu.odd)
LOOPS(gelu_backward, gelu_backward_half_lanes, gelu_backward_half_lanes, gelu_backward_single_lanes, 5.2e-7f, GELU_LAST, GELU_REACH, 0)
LOOPS(logit_backward, logit_backward_half_lanes, logit_backward_half_lanes, logit_backward_half_lanes, 1.7e-7f, 0xffffffffu, 0, FACTS(s)->logit.odd)
LOOPS(leaky_relu, leaky_relu_half_lanes, leaky_relu_bfloat_lanes, leaky_relu_bfloat_lanes, 0.0f, 0xffffffffu, 0, 0)

/* Hard shrinkage moves bits: a line at a time, whatever the type. */
static inline __attribute__((always_inline)) int keep_lines(
        const span_t *s, ptrdiff_t size, uint32_t low, uint32_t reach) {
    enum { WIDE = LANES * 4 };
    ptrdiff_t i = 0, bytes = s->n * size;
    for (; i + WIDE <= bytes; i += WIDE) {
        if (s->ask & ASK_A) ask_ahead(s->a, i, WIDE);
        if (s->ask & ASK_B) ask_ahead(s->b, i, WIDE);
        ints_t g = ints_load(s->a + i), x = s->a == s->b ? g : ints_load(s->b + i);
        ints_t r = size == 2 ? kept_halves(g, x, (uint16_t)low, (uint16_t)reach) : kept(g, x, low, reach);
        if (s->stream) ints_stream(s->out + i, r);
        else ints_store(s->out + i, r);
    }
    for (; i < bytes; i += size) {
        uint32_t x = 0, none = 0;
        memcpy(&x, s->b + i, (size_t)size);
        uint32_t above = (x & (size == 2 ? 0x7fffu : 0x7fffffffu)) - low;
        above = size == 2 ? above & 0xffffu : above;
        memcpy(s->out + i, above <= reach ? s->a + i : (const char *)&none, (size_t)size);
    }
    return 0;
}
static int hardshrink_0(const span_t *s) {
    return keep_lines(s, 4, FACTS(s)->keep.low, FACTS(s)->keep.reach);
}
static int hardshrink_1(const span_t *s) {
    return keep_lines(s, 2, FACTS(s)->keep.half_low, FACTS(s)->keep.half_reach);
}
static int hardshrink_2(const span_t *s) {
    return keep_lines(s, 2, FACTS(s)->keep.bfloat_low, FACTS(s)->keep.bfloat_reach);
}
static inline lanes_t hardshrink_half_lanes(const void *facts, lanes_t g, lanes_t x, seen_t *seen) {
    const keep_t *keep = &((const facts_t *)facts)->keep;
    return floats_of(kept(bits_of(g), bits_of(x), keep->low, keep->reach));
}
LOOP(hardshrink_3, hardshrink_half_lanes, SINGLE, HALF, 0.0f, 0xffffffffu, 0, 0)
LOOP(hardshrink_4, hardshrink_half_lanes, SINGLE, BFLOAT, 0.0f, 0xffffffffu, 0, 0)
static const lane_loop hardshrink_loops[5] = {
    hardshrink_0, hardshrink_1, hardshrink_2, hardshrink_3, hardshrink_4,
};

#else

enum { SUSPECTS = 1, DOUBTS = 2, LANES = 16, ASK_A = 1, ASK_B = 2 };
typedef struct { double p[4]; } facts_t;
typedef struct {
    const char *a, *b;
    char *out;
    ptrdiff_t n;
    const void *facts;
    uint16_t *doubts;
    int stream; /* past the cache */
    int ask;    /* ahead for what will be read: ASK_A, ASK_B or both */
} span_t;
typedef int (*lane_loop)(const span_t *);

#endif

#endif
