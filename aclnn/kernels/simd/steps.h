/* Programs on registers: what their steps share.
 *
 * A step is a function that takes eight vectors, changes them and ends in a call of the next step, which a
 * compiler makes a jump: the calling conventions of x86-64 and AArch64 pass the first eight vectors in
 * registers, so that between steps nothing is stored.
 */
#ifndef ACLNN_SIMD_STEPS_H
#define ACLNN_SIMD_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "simd.h"
#include "simd/leaky_relu.h"
#include "simd/loop_args.h"
#include "vector_math.h"

enum { FRAME_OPERANDS = 48 };

#ifdef LANES
enum { STEP_ELEMENTS = 8 * LANES }; /* that the eight vectors hold */

typedef struct step step_t;
typedef struct frame frame_t;
typedef void (*step_fn)(vecf, vecf, vecf, vecf, vecf, vecf, vecf, vecf, const step_t *, frame_t *, ptrdiff_t);

struct step {
    step_fn run;
    int operand, other; /* places in `data` of what the step reads besides the vectors, or writes */
    int size, other_size; /* bytes of their elements; 0: the same 8 vectors whatever the index */
    int params; /* bytes from the program's parameters to those of the node */
    const void *kernel; /* the node's own, for results that the step leaves to it; NULL of most */
    void (*instead)(const step_t *, frame_t *, ptrdiff_t);
    int (*path)(const loop_args *); /* computes blocks in memory */
};

/* Of one call of a kernel, and a row of its tile. */
struct frame {
    const char *params;
    char *data[FRAME_OPERANDS];
    int streams; /* whether steps that stream do */
    char *given, *made; /* what a step was given, and what the node's own kernel makes of it instead */
};

/* A result that is complete before the next one is begun: with sixteen registers there is no room for both. */
#if LANES == 8 && defined(__x86_64__)
INLINED vecf vf_complete(vecf r) {
    __asm__ volatile("" : "+x"(r));
    return r;
}
#else
INLINED vecf vf_complete(vecf r) { return r; }
#endif

INLINED vecf vf_quiet(vecf x) {
    return vf_select(vf_is_nan(x), vi_as_floats(vi_or(vf_bits(x), vi_set(0x00400000u))), x);
}

INLINED mask_t vf_is_finite(vecf x) { return vf_is_at_most(vf_abs(x), vf_set(3.4028234e38f)); }

/* `near`, or its odd neighbour on the side where the error lies. */
INLINED vecf vf_odd(vecf near, vecf error) {
    veci bits = vf_bits(near);
    veci outward = vi_shift_right_signed(vi_xor(vf_bits(error), bits), 31); /* -1: rounded away from 0 */
    veci odd = vi_or(vi_add(bits, outward), vi_set(1u));
    vecf found = vf_select(vf_is_nonzero(error), vi_as_floats(odd), near);
    return vf_select(vf_is_finite(near), found, near);
}

/* a + b and a * b, rounded to odd: rounding once more, to half precision, gives what one rounding would have. */
INLINED vecf vf_sum_to_odd(vecf a, vecf b) {
    vecf sum = vf_add(a, b), taken = vf_sub(sum, a);
    return vf_odd(sum, vf_add(vf_sub(a, vf_sub(sum, taken)), vf_sub(b, taken)));
}
INLINED vecf vf_product_to_odd(vecf a, vecf b) {
    vecf product = vf_mul(a, b);
    return vf_odd(product, vf_fms(a, b, product));
}
INLINED vecf vf_quotient_to_odd(vecf a, vecf b) {
    vecf quotient = vf_div(a, b), rest = vf_fnma(quotient, b, a);
    /* The remainder has the sign of the error where the divisor is positive. */
    vecf error = vi_as_floats(vi_xor(vf_bits(rest), vi_and(vf_bits(b), vi_set(0x80000000u))));
    return vf_odd(quotient, vf_select(vf_is_nan(rest), vf_set(0.0f), error));
}

/* The bits of magnitudes, less one, below which the error of a product with the factor may be lost. */
static inline uint32_t scarce_below(float factor) {
    float bound = 0x1p-100f / __builtin_fabsf(factor);
    return bound > 0.0f && bound < __builtin_inff() ? bits_of_f32(bound) : 0u;
}
INLINED mask_t vf_is_scarce(vecf g, uint32_t below) {
    return vi_le(vi_add(vf_bits(vf_abs(g)), vi_set(0xffffffffu)), vi_set(below));
}

/* Products of bfloat16 with a number, rounded to odd from doubles, where x is not positive; x: NULL: of all. */
static void scarce_products(float *g, const float *x, float factor) {
    for (int k = 0; k < STEP_ELEMENTS; k++) {
        float product = f32_to_odd((double)g[k] * factor);
        g[k] = x && x[k] > 0.0f ? g[k] : product;
    }
}

/* Where c is not 0. */
INLINED vecf vf_where(vecf c, vecf yes, vecf no) { return vf_select(vf_is_nonzero(c), yes, no); }

/* Elements g whose operand's magnitude exceeds the bound, else 0; of NaNs none does. */
INLINED vecf vf_beyond(vecf g, vecf x, float bound) {
    return vf_select(vf_is_above(vf_abs(x), vf_set(bound)), g, vf_set(0.0f));
}

/* Rounded to half precision, as floats. */
INLINED vecf vf_round_f16(vecf x) { return vf_from_f16(vf_to_f16(x)); }
INLINED vecf vf_round_bf16(vecf x) {
    return vi_as_floats(vi_and(vi_round_to_upper(vf_bits(x)), vi_set(0xffff0000u)));
}

INLINED vecf vf_round_bf16_at_once(vecf x) {
    return vi_as_floats(vi_and(vi_add(vf_bits(x), vi_set(0x8000u)), vi_set(0xffff0000u)));
}

/* Two vectors of floats that are bfloat16 numbers. */
INLINED veci vf_join_bf16(vecf low, vecf high) {
    return vi_join(vi_upper_halves(vf_bits(low)), vi_upper_halves(vf_bits(high)));
}
INLINED veci vf_join_f16(vecf low, vecf high) { return vi_join(vf_to_f16(low), vf_to_f16(high)); }

/* Truth values in bytes. */
#if LANES == 16
INLINED vecf vf_from_bool(const void *p) {
    return vf_truth(_mm512_test_epi32_mask(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)), vi_set(0xffu)));
}
INLINED void vf_store_bool(void *p, vecf x) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(x)));
}
#elif defined(__AVX2__)
INLINED vecf vf_from_bool(const void *p) {
    __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
    return vf_truth(vf_is_nonzero(_mm256_cvtepi32_ps(wide)));
}
INLINED void vf_store_bool(void *p, vecf x) {
    __m256i whole = _mm256_cvttps_epi32(x);
    __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(words, words));
}
#else
INLINED vecf vf_from_bool(const void *p) {
    float truth[LANES];
    for (int k = 0; k < LANES; k++) truth[k] = ((const unsigned char *)p)[k] != 0;
    return vf_load(truth);
}
INLINED void vf_store_bool(void *p, vecf x) {
    float truth[LANES];
    vf_store(truth, x);
    for (int k = 0; k < LANES; k++) ((unsigned char *)p)[k] = truth[k] != 0.0f;
}
#endif

#endif

#endif
