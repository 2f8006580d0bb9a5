/* Operands of matrix products as the panels that `microkernel.h` multiplies.
 *
 * A panel holds `count` rows of A (or columns of B), element k of each beside element k of the others:
 *
 *     to[k * width + i] = element k of row i,   0 for count <= i < width
 *
 * `pack_down` reads an operand whose neighbours in the panel are neighbours in memory (columns of a B by rows),
 * `pack_across` one whose elements along k are (rows of an A by rows), which it transposes in registers.
 * `step` is bytes from one k to the next, or from one row to the next. Halves are widened on the way. Either may
 * write, but for zeros never reads, up to a register's lanes beyond the panel, where the next one begins.
 *
 * `pack_pairs_down` and `pack_pairs_across` make pairs of bfloat16 for `pairs_tile`. They give the least exponent
 * of the operand's elements that are not 0: `pairs_exact` says of those of two operands whether all of the dot
 * products' sums are what fused multiply-adds give, with numbers below the normal ones, which the dot products
 * take for 0.
 */
#ifndef ACLNN_PACKING_H
#define ACLNN_PACKING_H

#include "products/microkernel.h"

/* --- Registers of elements ---------------------------------------------------------------------- */

/* The first n; zeros follow. */
INLINED vecf f32_widened_first(const int kind, const char *p, ptrdiff_t n) {
    if (n >= F32_LANES) return f32_widened(kind, p);
#if defined(LANES) && LANES == 16
    if (kind == OF_F32) return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
    vech halves = _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1u), p);
    return kind == OF_F16 ? vf_from_f16(halves) : vf_from_bf16(halves);
#else
#if defined(LANES) && defined(__AVX2__)
    static const int32_t some[16] = { -1, -1, -1, -1, -1, -1, -1, -1 };
    if (kind == OF_F32) return _mm256_maskload_ps((const float *)p, _mm256_loadu_si256((const __m256i *)(some + 8 - n)));
#endif
    char bytes[F32_LANES * 4] = { 0 };
    memcpy(bytes, p, (size_t)(n * bytes_of(kind)));
    return f32_widened(kind, bytes);
#endif
}

/* Lane j of register i becomes lane i of register j. */
INLINED void f32_transpose(vecf *r) {
#if defined(LANES) && LANES == 16
    vecf t[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
#elif defined(LANES) && defined(__AVX2__)
    vecf t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        vecf low = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
        r[i] = low;
    }
#else
    float from[F32_LANES][F32_LANES], to[F32_LANES][F32_LANES];
    for (int i = 0; i < F32_LANES; i++) vf_store(from[i], r[i]);
    for (int i = 0; i < F32_LANES; i++)
        for (int j = 0; j < F32_LANES; j++) to[i][j] = from[j][i];
    for (int i = 0; i < F32_LANES; i++) r[i] = vf_load(to[i]);
#endif
}

/* Sixteen bytes of each of `F32_LANES` rows at a time, so that only lanes of sixteen bytes are left to
 * transpose: half as many operations as in registers alone. Where rows are so far apart that the nearest
 * cache holds a line of hardly a dozen of them, each line is read once. Elements are of 32 bits, or pairs of 16. */
enum { APART = 2048 };
INLINED void f32_load_transposed(const char *from, ptrdiff_t step, vecf *r) {
#if defined(LANES) && LANES == 16
    if (step % APART == 0) {
#pragma GCC unroll 16
        for (int j = 0; j < 16; j++) r[j] = vf_load(from + j * step);
        f32_transpose(r);
        return;
    }
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        vecf v[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const char *row = from + i * step + c * 16;
            v[i] = _mm512_castps128_ps512(_mm_loadu_ps((const float *)row));
            v[i] = _mm512_mask_broadcast_f32x4(v[i], 0x00f0, _mm_loadu_ps((const float *)(row + 4 * step)));
            v[i] = _mm512_mask_broadcast_f32x4(v[i], 0x0f00, _mm_loadu_ps((const float *)(row + 8 * step)));
            v[i] = _mm512_mask_broadcast_f32x4(v[i], 0xf000, _mm_loadu_ps((const float *)(row + 12 * step)));
        }
        const vecf low = _mm512_unpacklo_ps(v[0], v[1]), high = _mm512_unpackhi_ps(v[0], v[1]);
        const vecf low2 = _mm512_unpacklo_ps(v[2], v[3]), high2 = _mm512_unpackhi_ps(v[2], v[3]);
        r[4 * c] = _mm512_shuffle_ps(low, low2, 0x44);
        r[4 * c + 1] = _mm512_shuffle_ps(low, low2, 0xee);
        r[4 * c + 2] = _mm512_shuffle_ps(high, high2, 0x44);
        r[4 * c + 3] = _mm512_shuffle_ps(high, high2, 0xee);
    }
#else
#pragma GCC unroll 8
    for (int j = 0; j < F32_LANES; j++) r[j] = vf_load(from + j * step);
    f32_transpose(r);
#endif
}

#if defined(LANES) && LANES == 16
/* Elements of 16 bits by pairs: a register holds two of each of 16 rows. */
INLINED vecf low_half(const int kind, veci pairs) {
    if (kind == OF_BF16) return vi_as_floats(vi_shift_left(pairs, 16));
    return vf_from_f16(_mm512_cvtepi32_epi16(pairs));
}
INLINED vecf high_half(const int kind, veci pairs) {
    if (kind == OF_BF16) return vi_as_floats(vi_and(pairs, vi_set(0xffff0000u)));
    return vf_from_f16(_mm512_cvtepi32_epi16(vi_shift_right(pairs, 16)));
}
#endif

/* --- Floats ------------------------------------------------------------------------------------ */

/* The elements beside those of a panel, which are likely to be the next one's. */
INLINED void fetch_beside(const char *row, ptrdiff_t size) {
    for (ptrdiff_t line = 0; line < size; line += 64) __builtin_prefetch(row + size + line);
}

INLINED void pack_down_of(const int kind, const char *from, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count,
                          float *to, ptrdiff_t width) {
    for (ptrdiff_t k = 0; k < depth; k++) {
        for (ptrdiff_t i = 0; i < width; i += F32_LANES)
            vf_store(to + i, f32_widened_first(kind, from + i * bytes_of(kind), count > i ? count - i : 0));
        fetch_beside(from, width * bytes_of(kind));
        from += step;
        to += width;
    }
}

/* A line of each of the rows that are likely to be the next panel's: the CPU does not foresee so many. */
INLINED void fetch_rows(const char *row, ptrdiff_t step) {
#pragma GCC unroll 16
    for (int j = 0; j < F32_LANES; j++) __builtin_prefetch(row + j * step, 0, 2);
}

INLINED void pack_across_of(const int kind, const char *from, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count,
                            float *to, ptrdiff_t width) {
    ptrdiff_t k = 0;
#if defined(LANES) && LANES == 16
    for (; kind != OF_F32 && count == width && width % 16 == 0 && k + 32 <= depth; k += 32)
        for (ptrdiff_t i = 0; i < width; i += 16) {
            vecf block[16];
            fetch_rows(from + (i + width) * step + k * 2, step);
            f32_load_transposed(from + i * step + k * 2, step, block);
#pragma GCC unroll 16
            for (int j = 0; j < 16; j++) {
                vf_store(to + (k + 2 * j) * width + i, low_half(kind, vf_bits(block[j])));
                vf_store(to + (k + 2 * j + 1) * width + i, high_half(kind, vf_bits(block[j])));
            }
        }
#endif
    for (; k < depth; k += F32_LANES) {
        const ptrdiff_t some = depth - k < F32_LANES ? depth - k : F32_LANES;
        for (ptrdiff_t i = 0; i < width; i += F32_LANES) {
            const ptrdiff_t rows = count - i < F32_LANES ? count - i : F32_LANES;
            const char *row = from + i * step + k * bytes_of(kind);
            vecf block[F32_LANES];
            if (kind == OF_F32 && rows == F32_LANES && some == F32_LANES) {
                fetch_rows(row + width * step, step);
                f32_load_transposed(row, step, block);
            } else {
                for (int j = 0; j < F32_LANES; j++)
                    block[j] = j < rows ? f32_widened_first(kind, row + j * step, some) : vf_set(0);
                f32_transpose(block);
            }
            float *place = to + k * width + i;
            if (some == F32_LANES) {
#pragma GCC unroll 16
                for (int j = 0; j < F32_LANES; j++) vf_store(place + j * width, block[j]);
            } else {
                for (int j = 0; j < some; j++) vf_store(place + j * width, block[j]);
            }
        }
    }
}

typedef void (*f32_pack_fn)(const char *from, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count, float *to,
                            ptrdiff_t width);

#define PACKS_OF(kind) \
    static void pack_down_##kind(const char *from, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count, \
                                 float *to, ptrdiff_t width) { \
        pack_down_of(kind, from, step, depth, count, to, width); \
    } \
    static void pack_across_##kind(const char *from, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count, \
                                   float *to, ptrdiff_t width) { \
        pack_across_of(kind, from, step, depth, count, to, width); \
    }
PACKS_OF(OF_F32) PACKS_OF(OF_F16) PACKS_OF(OF_BF16)
#undef PACKS_OF

static const f32_pack_fn f32_packs_down[4] = {
    NULL, pack_down_OF_F32, pack_down_OF_F16, pack_down_OF_BF16,
};
static const f32_pack_fn f32_packs_across[4] = {
    NULL, pack_across_OF_F32, pack_across_OF_F16, pack_across_OF_BF16,
};

static inline void f32_pack_down(int kind, const char *from, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count,
                                 float *to, ptrdiff_t width) {
    f32_packs_down[kind](from, step, depth, count, to, width);
}
static inline void f32_pack_across(int kind, const char *from, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count,
                                   float *to, ptrdiff_t width) {
    f32_packs_across[kind](from, step, depth, count, to, width);
}

/* --- Doubles ----------------------------------------------------------------------------------- */

/* Any strides: from one k to the next, and from one row to the next. */
static inline void f64_pack(const char *from, ptrdiff_t k_step, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count,
                            double *to, ptrdiff_t width) {
    for (ptrdiff_t k = 0; k < depth; k++) {
        for (ptrdiff_t i = 0; i < count; i++) memcpy(to + i, from + i * step, sizeof *to);
        for (ptrdiff_t i = count; i < width; i++) to[i] = 0;
        from += k_step;
        to += width;
    }
}

/* --- Pairs of bfloat16 -------------------------------------------------------------------------- */

enum { NO_EXPONENT = 256 }; /* of an operand of zeros */

/* Elements are whole multiples of 2^(exponent - 134), their products and the sums of these of the square of
 * that: all of them are 0 or normal. */
static inline int pairs_exact(int a, int b) { return a > 0 && b > 0 && a + b >= 142; }

#ifdef PAIRS
/* Twice the bits without the sign, less one: the least of all that are not 0. */
INLINED veci least_of(veci least, veci pairs) {
    return vi16_min(least, vi16_add(vi16_add(pairs, pairs), vi16_set(0xffff)));
}
static inline int exponent_of(veci least) {
    uint16_t all[32];
    unsigned found = 0xffff;
    vi_store(all, least);
    for (int i = 0; i < 32; i++) found = all[i] < found ? all[i] : found;
    return (int)((found + 1) >> 8);
}

INLINED veci halves_first(const char *p, ptrdiff_t n) {
    if (n >= 32) return vi_load(p);
    return _mm512_maskz_loadu_epi16((__mmask32)((1u << (n > 0 ? n : 0)) - 1u), p);
}

static int pack_pairs_down(const char *from, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count, uint32_t *to,
                           ptrdiff_t width) {
    const veci low = _mm512_set_epi16(15, 47, 14, 46, 13, 45, 12, 44, 11, 43, 10, 42, 9, 41, 8, 40, 7, 39, 6, 38, 5,
                                      37, 4, 36, 3, 35, 2, 34, 1, 33, 0, 32);
    const veci high = vi16_add(low, vi16_set(16));
    veci least = vi16_set(0xffff);
    for (ptrdiff_t k = 0; k < depth; k += 2) {
        for (ptrdiff_t i = 0; i < width; i += 32) {
            veci even = halves_first(from + i * 2, count - i);
            veci odd = k + 1 < depth ? halves_first(from + step + i * 2, count - i) : vi_set(0);
            least = least_of(least_of(least, even), odd);
            __builtin_prefetch(from + i * 2 + 64);
            __builtin_prefetch(from + step + i * 2 + 64);
            vi_store(to + i, _mm512_permutex2var_epi16(even, low, odd));
            if (width - i > 16) vi_store(to + i + 16, _mm512_permutex2var_epi16(even, high, odd));
        }
        from += 2 * step;
        to += width;
    }
    return exponent_of(least);
}

static int pack_pairs_across(const char *from, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count, uint32_t *to,
                             ptrdiff_t width) {
    veci least = vi16_set(0xffff);
    for (ptrdiff_t k = 0; k < depth; k += 32) {
        const ptrdiff_t some = (depth - k + 1) / 2;
        for (ptrdiff_t i = 0; i < width; i += 16) {
            const char *row = from + i * step + k * 2;
            vecf block[16];
            if (count - i >= 16 && depth - k >= 32) {
                fetch_rows(row + width * step, step);
                f32_load_transposed(row, step, block);
#pragma GCC unroll 16
                for (int j = 0; j < 16; j++) {
                    least = least_of(least, vf_bits(block[j]));
                    vi_store(to + (k / 2 + j) * width + i, _mm512_rol_epi32(vf_bits(block[j]), 16));
                }
                continue;
            }
#pragma GCC unroll 16
            for (int j = 0; j < 16; j++) {
                veci pairs = i + j < count ? halves_first(row + j * step, depth - k) : vi_set(0);
                least = least_of(least, pairs);
                block[j] = vi_as_floats(_mm512_rol_epi32(pairs, 16));
            }
            f32_transpose(block);
            uint32_t *place = to + k / 2 * width + i;
            for (int j = 0; j < 16 && j < some; j++) vf_store(place + j * width, block[j]);
        }
    }
    return exponent_of(least);
}
#else
static inline int pack_pairs_down(const char *from, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count, uint32_t *to,
                                  ptrdiff_t width) { return 0; }
static inline int pack_pairs_across(const char *from, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count,
                                    uint32_t *to, ptrdiff_t width) { return 0; }
#endif

#endif
