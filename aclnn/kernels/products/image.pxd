"""Images as operands of products: what `image.h` declares."""

cdef extern from "products/image.h" nogil:
    enum:
        IMAGE_SLACK
        IMAGE_ROWS
        IMAGE_CHAINS
    void image_plane(const char *data, const ptrdiff_t *places, ptrdiff_t taps,
                     const float *weights, const float *bias, ptrdiff_t row, ptrdiff_t vectors,
                     ptrdiff_t rows, float *sums) noexcept
    void image_every_second(const float *sums, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t cols,
                            float *to) noexcept
    void image_rows(const char *source, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t n, char *to,
                    ptrdiff_t to_row) noexcept
    void image_pairs(const char *source, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t n, char *to,
                     char *between, ptrdiff_t to_row) noexcept
    void image_row(int kind, const char *source, ptrdiff_t n, float *to) noexcept
    ctypedef struct image_t:
        const char *data
        int size
        ptrdiff_t taps
        const ptrdiff_t *places
        ptrdiff_t channel
        ptrdiff_t cols
        ptrdiff_t rows
        ptrdiff_t row
        ptrdiff_t plane
        bint scattered
        ptrdiff_t out_col
        ptrdiff_t out_row
        ptrdiff_t out_plane
    ctypedef struct image_run:
        ptrdiff_t to
        ptrdiff_t count
    void image_elements(const char *place, ptrdiff_t step, char *to, ptrdiff_t n,
                        int size) noexcept
    void image_gather(const char *place, ptrdiff_t step, char *to, ptrdiff_t to_step, ptrdiff_t n,
                      int size) noexcept
    image_run image_run_at(const image_t *image, ptrdiff_t col, ptrdiff_t end) noexcept
    void image_panel(const image_t *image, ptrdiff_t begin, ptrdiff_t depth, ptrdiff_t col,
                     ptrdiff_t n, char *to, ptrdiff_t width) noexcept
    void image_few(const image_t *image, int rows, ptrdiff_t begin, ptrdiff_t depth,
                   const float *a, ptrdiff_t col, ptrdiff_t n, float *sums,
                   ptrdiff_t step) noexcept
