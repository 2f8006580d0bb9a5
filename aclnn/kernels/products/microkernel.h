/* The micro-kernels of matrix products: small tiles of results, summed up in registers.
 *
 * A tile is the product of a panel of A and a panel of B:
 *
 *     panel of A: depth x rows             panel of B: depth x columns = vectors * lanes
 *     a[k * rows + i]                      b[k * columns + j]
 *
 *     out[i * out_step + j] (+)= sum over k of a[k, i] * b[k, j]
 *
 * `f32_tiles[rows - 1][vectors - 1][kind]` multiply a B that is no panel, whose rows are `b_step` bytes apart,
 * and make a panel of it.
 *
 * Every sum begins with +0 and takes its terms one after the other, k ascending, by fused multiply-add (by
 * multiplication and addition where the instruction set has no other). So the bits of a sum depend neither
 * on the tile that it is part of nor on the lane that it lies in. What is longer than `PIECE` is summed by
 * pieces of so many terms, which are added one after the other: whoever calls a tile sees to that.
 *
 * `f32_tile`, `f64_tile` multiply floats and doubles. `pairs_tile` multiplies bfloat16 by the CPU's dot
 * products, where `pairs_usable()`: element [k, i] of a panel is then a pair of bfloat16, of 2k + 1 in the low
 * half and 2k in the high one, and depth counts pairs. It gives the bits of `f32_tile` where no number
 * below the normal ones is involved (`packing.h` finds out).
 */
#ifndef ACLNN_MICROKERNEL_H
#define ACLNN_MICROKERNEL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include "half.h"
#include "simd.h"

enum { PIECE = 256 }; /* terms that are summed up in one go: part of what results are */

/* --- Vectors of floats and of doubles -------------------------------------------------------- */

#ifdef LANES
#define F32_LANES LANES
INLINED vecf vf_tidy(vecf x) { return vf_select(vf_is_nan(x), vf_set(NAN), x); }
#else
#define F32_LANES 4
typedef float vecf __attribute__((vector_size(16)));
INLINED vecf vf_set(float x) { return (vecf){ x, x, x, x }; }
INLINED vecf vf_load(const void *p) { vecf x; memcpy(&x, p, sizeof x); return x; }
INLINED void vf_store(void *p, vecf x) { memcpy(p, &x, sizeof x); }
INLINED vecf vf_add(vecf a, vecf b) { return a + b; }
INLINED vecf vf_mul(vecf a, vecf b) { return a * b; }
INLINED vecf vf_fma(vecf a, vecf b, vecf c) { return a * b + c; }
INLINED vecf vf_tidy(vecf x) {
    for (int i = 0; i < 4; i++) x[i] = x[i] == x[i] ? x[i] : NAN;
    return x;
}
#endif

#if defined(__AVX512F__)
#define F64_LANES 8
typedef __m512d vec_f64;
INLINED vec_f64 f64_set(double x) { return _mm512_set1_pd(x); }
INLINED vec_f64 f64_load(const void *p) { return _mm512_loadu_pd(p); }
INLINED void f64_store(void *p, vec_f64 x) { _mm512_storeu_pd(p, x); }
INLINED vec_f64 f64_add(vec_f64 a, vec_f64 b) { return _mm512_add_pd(a, b); }
INLINED vec_f64 f64_fma(vec_f64 a, vec_f64 b, vec_f64 c) { return _mm512_fmadd_pd(a, b, c); }
INLINED vec_f64 f64_tidy(vec_f64 x) {
    return _mm512_mask_mov_pd(x, _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q), f64_set(NAN));
}
#elif defined(__AVX2__) && defined(__FMA__)
#define F64_LANES 4
typedef __m256d vec_f64;
INLINED vec_f64 f64_set(double x) { return _mm256_set1_pd(x); }
INLINED vec_f64 f64_load(const void *p) { return _mm256_loadu_pd(p); }
INLINED void f64_store(void *p, vec_f64 x) { _mm256_storeu_pd(p, x); }
INLINED vec_f64 f64_add(vec_f64 a, vec_f64 b) { return _mm256_add_pd(a, b); }
INLINED vec_f64 f64_fma(vec_f64 a, vec_f64 b, vec_f64 c) { return _mm256_fmadd_pd(a, b, c); }
INLINED vec_f64 f64_tidy(vec_f64 x) {
    return _mm256_blendv_pd(x, f64_set(NAN), _mm256_cmp_pd(x, x, _CMP_UNORD_Q));
}
#else
#define F64_LANES 2
typedef double vec_f64 __attribute__((vector_size(16)));
INLINED vec_f64 f64_set(double x) { return (vec_f64){ x, x }; }
INLINED vec_f64 f64_load(const void *p) { vec_f64 x; memcpy(&x, p, sizeof x); return x; }
INLINED void f64_store(void *p, vec_f64 x) { memcpy(p, &x, sizeof x); }
INLINED vec_f64 f64_add(vec_f64 a, vec_f64 b) { return a + b; }
#if defined(ACLNN_NEON)
INLINED vec_f64 f64_fma(vec_f64 a, vec_f64 b, vec_f64 c) {
    return (vec_f64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
#else
INLINED vec_f64 f64_fma(vec_f64 a, vec_f64 b, vec_f64 c) { return a * b + c; }
#endif
INLINED vec_f64 f64_tidy(vec_f64 x) {
    for (int i = 0; i < 2; i++) x[i] = x[i] == x[i] ? x[i] : NAN;
    return x;
}
#endif

/* --- Elements -------------------------------------------------------------------------------- */

/* What an operand's elements are; those of a panel are what is computed in. */
enum { IN_PANEL, OF_F32, OF_F16, OF_BF16, OF_F64 };

INLINED int bytes_of(const int kind) { return kind == OF_F32 ? 4 : kind == OF_F64 ? 8 : 2; }

INLINED vecf f32_widened(const int kind, const char *p) {
#ifdef LANES
    if (kind == OF_F16) return vf_from_f16(vh_load(p));
    if (kind == OF_BF16) return vf_from_bf16(vh_load(p));
    return vf_load(p);
#else
    float elements[F32_LANES];
    uint16_t bits[F32_LANES];
    if (kind != OF_F16 && kind != OF_BF16) return vf_load(p);
    memcpy(bits, p, sizeof bits);
    for (int i = 0; i < F32_LANES; i++)
        elements[i] = kind == OF_F16 ? half_to_f32((half_t){ bits[i] })
                                     : bfloat16_to_f32((bfloat16_t){ bits[i] });
    return vf_load(elements);
#endif
}

/* --- Tiles ----------------------------------------------------------------------------------- */

/* Results of the largest tile, which leave registers for a row of B and an element of A. */
#if defined(__AVX512F__)
#define TILE_ROWS 14 /* of 32 registers, 28 are sums */
#elif defined(LANES)
#define TILE_ROWS 6 /* of 16 registers, 12; of NEON's 32, which are half as long, 24 */
#else
#define TILE_ROWS 4
#endif
enum { TILE_VECTORS = 2, MOST_TILE_ROWS = TILE_ROWS };
enum { F32_WIDE = TILE_VECTORS * F32_LANES, F64_WIDE = TILE_VECTORS * F64_LANES };

#define TILE_TARGET
#define OPERAND float
#define RESULT float
#define VEC vecf
#define BY_ROW(p) vf_set(*(p))
#define BY_COLUMNS(kind, p) f32_widened(kind, p)
#define OPERAND_LANES F32_LANES
#define MULTIPLY_ADD(a, b, sum) vf_fma(a, b, sum)
#define ZERO vf_set(0)
#define LOAD(p) vf_load(p)
#define ADD(a, b) vf_add(a, b)
#define STORE(p, x) vf_store(p, vf_tidy(x))
#define STORE_OPERAND(p, x) vf_store(p, x)
#define TILE_KINDS 3
#define NAME(name) f32_##name
#include "tile.h"

#define TILE_TARGET
#define OPERAND double
#define RESULT double
#define VEC vec_f64
#define BY_ROW(p) f64_set(*(p))
#define BY_COLUMNS(kind, p) f64_load(p)
#define OPERAND_LANES F64_LANES
#define MULTIPLY_ADD(a, b, sum) f64_fma(a, b, sum)
#define ZERO f64_set(0)
#define LOAD(p) f64_load(p)
#define ADD(a, b) f64_add(a, b)
#define STORE(p, x) f64_store(p, f64_tidy(x))
#define STORE_OPERAND(p, x) f64_store(p, x)
#define TILE_KINDS 0
#define NAME(name) f64_##name
#include "tile.h"

/* --- Pairs of bfloat16 ------------------------------------------------------------------------ */

#if defined(__AVX512F__) && defined(__x86_64__) && (__GNUC__ >= 10 || defined(__clang__))
#define PAIRS
#define PAIRS_TARGET __attribute__((target("avx512bf16")))

#define TILE_TARGET PAIRS_TARGET
#define OPERAND uint32_t
#define RESULT float
#define VEC vecf
#define BY_ROW(p) vi_set(*(p))
#define BY_COLUMNS(kind, p) vi_load(p)
#define OPERAND_LANES F32_LANES
#define MULTIPLY_ADD(a, b, sum) _mm512_dpbf16_ps(sum, (__m512bh)(a), (__m512bh)(b))
#define ZERO vf_set(0)
#define LOAD(p) vf_load(p)
#define ADD(a, b) vf_add(a, b)
#define STORE(p, x) vf_store(p, vf_tidy(x))
#define STORE_OPERAND(p, x) vi_store(p, x)
#define TILE_KINDS 0
#define NAME(name) pairs_##name
#include "tile.h"

/* Whether dot products of pairs are two multiply-adds, first of the high halves, then of the low ones: what
 * manuals leave open. The terms here round differently in any other order, and if they are added at once. */
PAIRS_TARGET static int pairs_as_expected(void) {
    for (uint32_t seed = 1; seed < 400; seed++) {
        uint32_t state = seed * 2654435761u, a[F32_LANES], b[F32_LANES];
        float sums[F32_LANES], found[F32_LANES];
        for (int i = 0; i < F32_LANES; i++) {
            uint32_t bits[3];
            for (int j = 0; j < 3; j++) {
                state = state * 1664525u + 1013904223u;
                bits[j] = (state & 0x807f807fu) | 0x3c003c00u;
                bits[j] += state >> 8 & 0x03800000u;
                bits[j] += state >> 12 & 0x00000380u;
            }
            a[i] = bits[0], b[i] = bits[1];
            bits[2] &= seed % 3 ? 0xffffffffu : 0x80000000u;
            memcpy(&sums[i], &bits[2], sizeof sums[i]);
        }
        vf_store(found, _mm512_dpbf16_ps(vf_load(sums), (__m512bh)vi_load(a), (__m512bh)vi_load(b)));
        for (int i = 0; i < F32_LANES; i++) {
            float high_a, high_b, low_a, low_b;
            uint32_t bits[4] = { a[i] & 0xffff0000u, b[i] & 0xffff0000u, a[i] << 16, b[i] << 16 };
            memcpy(&high_a, &bits[0], 4), memcpy(&high_b, &bits[1], 4);
            memcpy(&low_a, &bits[2], 4), memcpy(&low_b, &bits[3], 4);
            if (found[i] != fmaf(low_a, low_b, fmaf(high_a, high_b, sums[i]))) return 0;
        }
    }
    return 1;
}

/* Found out once, in some microseconds. */
static int pairs_usable(void) {
    static int found = -1;
    int usable = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (usable < 0) {
        __builtin_cpu_init();
        usable = __builtin_cpu_supports("avx512bf16") && pairs_as_expected();
        __atomic_store_n(&found, usable, __ATOMIC_RELAXED);
    }
    return usable;
}
#else
static int pairs_usable(void) { return 0; }
static inline void pairs_tile(int rows, int vectors, ptrdiff_t depth, const uint32_t *a, const uint32_t *b,
                              float *out, ptrdiff_t out_step, int add) {}
#endif

#endif
