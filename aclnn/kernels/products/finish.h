/* What is done with a tile of sums: rounded to the output's elements, from registers. */
#ifndef ACLNN_FINISH_H
#define ACLNN_FINISH_H

#include "products/packing.h"

INLINED void store_tile_of(const int kind, const float *tile, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t cols,
                           char *out, ptrdiff_t stride) {
#ifdef LANES
    for (ptrdiff_t i = 0; i < rows; i++, tile += step, out += stride)
        for (ptrdiff_t j = 0; j < cols; j += F32_LANES) {
            const ptrdiff_t n = cols - j < F32_LANES ? cols - j : F32_LANES;
            char *place = out + j * bytes_of(kind);
            vecf x = vf_load(tile + j);
            if (kind == OF_F32) {
                if (n == F32_LANES) vf_store(place, x);
                else vi_store_first(place, n * 4, vf_bits(x));
                continue;
            }
            vech halves = kind == OF_F16 ? vf_to_f16(x) : vi_upper_halves(vi_round_to_upper(vf_bits(x)));
            if (n == F32_LANES) vh_store(place, halves);
            else vi_store_first(place, n * 2, vi_join(halves, halves));
        }
#else
    for (ptrdiff_t i = 0; i < rows; i++, tile += step, out += stride) {
        if (kind == OF_F32) memcpy(out, tile, (size_t)cols * 4);
        for (ptrdiff_t j = 0; kind != OF_F32 && j < cols; j++) {
            uint16_t bits = kind == OF_F16 ? half_of_f32(tile[j]).bits : bfloat16_of_f32(tile[j]).bits;
            memcpy(out + j * 2, &bits, 2);
        }
    }
#endif
}

/* Rows of `cols` elements beside each other, `stride` bytes apart; NaNs are those of `vf_tidy`. */
static void f32_store_tile(int kind, const float *tile, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t cols, char *out,
                           ptrdiff_t stride) {
    if (kind == OF_F32) store_tile_of(OF_F32, tile, step, rows, cols, out, stride);
    else if (kind == OF_F16) store_tile_of(OF_F16, tile, step, rows, cols, out, stride);
    else store_tile_of(OF_BF16, tile, step, rows, cols, out, stride);
}

INLINED void load_tile_of(const int kind, const char *from, ptrdiff_t stride, ptrdiff_t rows, ptrdiff_t cols,
                          float *tile, ptrdiff_t step) {
    for (ptrdiff_t i = 0; i < rows; i++, tile += step, from += stride)
        for (ptrdiff_t j = 0; j < cols; j += F32_LANES)
            vf_store(tile + j, f32_widened_first(kind, from + j * bytes_of(kind), cols - j));
}

/* The same rows, read; registers begin within `step`. */
static void f32_load_tile(int kind, const char *from, ptrdiff_t stride, ptrdiff_t rows, ptrdiff_t cols, float *tile,
                          ptrdiff_t step) {
    if (kind == OF_F32) load_tile_of(OF_F32, from, stride, rows, cols, tile, step);
    else if (kind == OF_F16) load_tile_of(OF_F16, from, stride, rows, cols, tile, step);
    else load_tile_of(OF_BF16, from, stride, rows, cols, tile, step);
}

#endif
