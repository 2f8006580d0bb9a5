"""Products with images that are finished in registers: what `direct.h` declares."""

from aclnn.kernels.products.image cimport image_t

cdef extern from "products/direct.h" nogil:
    enum:
        END_NONE
        END_RELU
        END_CLAMP
        END_NAN
        END_HARDSWISH
        END_SILU
    ctypedef struct direct_end:
        const float *bias
        const char *more
        ptrdiff_t more_row
        bint scales_sums
        float alpha
        int kind
        float low
        float high
        double (*formula)(double x, const double *p) noexcept
    ctypedef struct direct_t:
        const image_t *image
        bint in_place
        ptrdiff_t rows
        ptrdiff_t panels
        char *out
        ptrdiff_t out_row
        direct_end end
        float *panel
    bint direct_has_smooth_ends() noexcept
    double direct_hardswish(double x, const double *p) noexcept
    ptrdiff_t direct_row(const direct_t *d, ptrdiff_t panel) noexcept
    void direct_smooth_rows(const direct_end *end, ptrdiff_t rows, ptrdiff_t cols,
                            const char *source, ptrdiff_t source_row, char *out,
                            ptrdiff_t out_row) noexcept
    void direct_end_rows(const direct_end *end, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t cols,
                         const float *sums, ptrdiff_t step, char *out, ptrdiff_t out_row,
                         const char *more) noexcept
    void direct_columns(const direct_t *d, const float *left, ptrdiff_t begin, ptrdiff_t depth,
                        ptrdiff_t first, ptrdiff_t end, ptrdiff_t col, ptrdiff_t cols,
                        bint last) noexcept
    void direct_plane(const char *data, const ptrdiff_t *places, ptrdiff_t taps,
                      const float *weights, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t cols,
                      char *out, const direct_end *end) noexcept
