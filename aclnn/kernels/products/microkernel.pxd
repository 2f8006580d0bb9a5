"""Micro-kernels of products, and panels for them: what `microkernel.h` and `packing.h` declare."""

from libc.stdint cimport uint32_t

cdef extern from "products/packing.h" nogil:
    enum:
        PIECE
        F32_LANES
        F64_LANES
        F32_WIDE
        F64_WIDE
        MOST_TILE_ROWS
        IN_PANEL
        OF_F32
        OF_F16
        OF_BF16
        OF_F64
    ctypedef void (*f32_tile_fn)(ptrdiff_t depth, const float *a, const char *b,
                                 ptrdiff_t b_step, float *copy, float *out, ptrdiff_t out_step,
                                 int add) noexcept nogil
    f32_tile_fn f32_tiles[14][2][4]
    void f32_tile(int rows, int vectors, ptrdiff_t depth, const float *a, const float *b,
                  float *out, ptrdiff_t out_step, int add) noexcept
    void f64_tile(int rows, int vectors, ptrdiff_t depth, const double *a, const double *b,
                  double *out, ptrdiff_t out_step, int add) noexcept
    void pairs_tile(int rows, int vectors, ptrdiff_t depth, const uint32_t *a, const uint32_t *b,
                    float *out, ptrdiff_t out_step, int add) noexcept
    bint pairs_usable() noexcept
    bint pairs_exact(int a, int b) noexcept
    void f32_pack_down(int kind, const char *source, ptrdiff_t step, ptrdiff_t depth,
                       ptrdiff_t count, float *to, ptrdiff_t width) noexcept
    void f32_pack_across(int kind, const char *source, ptrdiff_t step, ptrdiff_t depth,
                         ptrdiff_t count, float *to, ptrdiff_t width) noexcept
    void f64_pack(const char *source, ptrdiff_t k_step, ptrdiff_t step, ptrdiff_t depth,
                  ptrdiff_t count, double *to, ptrdiff_t width) noexcept
    int pack_pairs_down(const char *source, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count,
                        uint32_t *to, ptrdiff_t width) noexcept
    int pack_pairs_across(const char *source, ptrdiff_t step, ptrdiff_t depth, ptrdiff_t count,
                          uint32_t *to, ptrdiff_t width) noexcept

cdef extern from "products/few.h" nogil:
    enum:
        FEW_ROWS
        FEW_COLS
        FEW_COLS_ACROSS
    void f32_few_down(int kind, int rows, ptrdiff_t depth, const float *a, const char *b,
                      ptrdiff_t b_step, ptrdiff_t cols, float *sums, ptrdiff_t step) noexcept
    void f32_few_across(int kind, int rows, ptrdiff_t depth, const float *a, const char *b,
                        ptrdiff_t b_step, ptrdiff_t cols, float *sums, ptrdiff_t step) noexcept
    void f32_add_sums(const float *sums, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t cols,
                      char *total, ptrdiff_t stride, int add) noexcept

cdef extern from "products/panels.h" nogil:
    enum:
        IN_PAIRS
    ptrdiff_t panel_bytes(ptrdiff_t wide, ptrdiff_t rows, int size) noexcept
    void copy_panel(const char *source, ptrdiff_t step, ptrdiff_t k_step, ptrdiff_t depth,
                    ptrdiff_t count, int size, char *to, ptrdiff_t width) noexcept
    int copy_pairs(const char *source, ptrdiff_t step, ptrdiff_t k_step, ptrdiff_t depth,
                   ptrdiff_t count, uint32_t *to, ptrdiff_t width) noexcept
    void widen_pairs(const uint32_t *source, ptrdiff_t depth, ptrdiff_t width, float *to) noexcept
    void f32_few_panels(int kind, int rows, ptrdiff_t depth, const float *a, const char *b,
                        ptrdiff_t panel, ptrdiff_t cols, float *sums, ptrdiff_t step) noexcept

cdef extern from "products/finish.h" nogil:
    void f32_store_tile(int kind, const float *tile, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t cols,
                        char *out, ptrdiff_t stride) noexcept
    void f32_load_tile(int kind, const char *source, ptrdiff_t stride, ptrdiff_t rows,
                       ptrdiff_t cols, float *tile, ptrdiff_t step) noexcept
