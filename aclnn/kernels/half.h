/* float16 and bfloat16: conversions that round once, to nearest even, and keep subnormals,
 * infinities and NaN payloads.
 *
 * Compilers do not vectorise _Float16 on x86, so float16 uses the conversion instructions where
 * the instruction set has them, and branch-free integer code elsewhere.
 */
#ifndef ACLNN_HALF_H
#define ACLNN_HALF_H

#include <stddef.h>
#include <stdint.h>
#include "unaligned.h"
#include "vector_math.h"

#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#define bfloat16_t aclnn_bfloat16_t /* not the type of that name in arm_neon.h */
#endif

typedef struct UNALIGNED { uint16_t bits; } half_t;
typedef struct UNALIGNED { uint16_t bits; } bfloat16_t;

static inline float bfloat16_to_f32(bfloat16_t x) { return f32_of_bits((uint32_t)x.bits << 16); }

static inline bfloat16_t bfloat16_of_f32(float x) {
    uint32_t b = bits_of_f32(x);
    uint32_t rounded = (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
    uint32_t quiet = (b >> 16) | 0x40u;
    bfloat16_t r = { (uint16_t)((b & 0x7fffffffu) > 0x7f800000u ? quiet : rounded) };
    return r;
}

static inline float half_to_f32(half_t x) {
    uint32_t sign = (uint32_t)(x.bits & 0x8000u) << 16;
    uint32_t magnitude = (uint32_t)(x.bits & 0x7fffu) << 13;
    /* Multiplying by 2^112 moves the exponent's bias and makes subnormals normal. */
    float scaled = f32_of_bits(magnitude) * 0x1p112f;
    uint32_t special = magnitude | 0x7f800000u | (magnitude > 0x0f800000u ? 0x400000u : 0u);
    uint32_t b = magnitude >= 0x0f800000u ? special : bits_of_f32(scaled);
    return f32_of_bits(b | sign);
}

static inline half_t half_of_f32(float x) {
    uint32_t b = bits_of_f32(x);
    uint32_t sign = (b >> 16) & 0x8000u;
    uint32_t magnitude = b & 0x7fffffffu;
    /* Normal halves: round in place; subnormal ones: let an addition align and round. */
    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    uint32_t tiny = bits_of_f32(f32_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t finite = magnitude < 0x38800000u ? tiny : normal;
    uint32_t special = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : 0x7c00u;
    half_t r = { (uint16_t)((magnitude >= 0x477ff000u ? special : finite) | sign) };
    return r;
}

static inline half_t half_of_f64(double x) { return half_of_f32(f32_to_odd(x)); }
static inline bfloat16_t bfloat16_of_f64(double x) { return bfloat16_of_f32(f32_to_odd(x)); }

static inline void halves_to_floats(
        const half_t *restrict src, unaligned_float *restrict dst, ptrdiff_t n) {
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(src + i))));
#endif
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
#elif defined(__aarch64__)
    for (; i + 8 <= n; i += 8) {
        float16x8_t halves = vreinterpretq_f16_u8(vld1q_u8((const uint8_t *)(src + i)));
        vst1q_u8((uint8_t *)(dst + i), vreinterpretq_u8_f32(vcvt_f32_f16(vget_low_f16(halves))));
        vst1q_u8((uint8_t *)(dst + i + 4), vreinterpretq_u8_f32(vcvt_high_f32_f16(halves)));
    }
#endif
    for (; i < n; i++) dst[i] = half_to_f32(src[i]);
}

static inline void floats_to_halves(
        const unaligned_float *restrict src, half_t *restrict dst, ptrdiff_t n) {
    ptrdiff_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(dst + i), _mm512_cvtps_ph(_mm512_loadu_ps(src + i), 0));
#endif
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(dst + i), _mm256_cvtps_ph(_mm256_loadu_ps(src + i), 0));
#elif defined(__aarch64__)
    for (; i + 8 <= n; i += 8) {
        float32x4_t low = vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)(src + i)));
        float32x4_t high = vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)(src + i + 4)));
        float16x8_t halves = vcvt_high_f16_f32(vcvt_f16_f32(low), high);
        vst1q_u8((uint8_t *)(dst + i), vreinterpretq_u8_f16(halves));
    }
#endif
    for (; i < n; i++) dst[i] = half_of_f32(src[i]);
}

#endif
