"""Products whose operands BLAS reads and writes where they lie."""

from libc.math cimport NAN
from libc.string cimport memcpy, memset

from aclnn.kernels.number cimport real
from aclnn.kernels.products.blas cimport (
    SERIAL_WORK,
    VECTOR_WORK,
    as_operand,
    blas_bind,
    blas_release,
    blas_t,
    gemm,
    gemv,
    matrix_t,
    operand_t,
    part,
)
from aclnn.kernels.products.product cimport (
    A,
    B,
    C,
    DEPTH,
    OUT,
    STRIP,
    entry,
    product_state,
    product_t,
)


cdef inline void multiply_entries(const product_t *p, const product_state *state, real alpha,
                                  real beta, int threads, ptrdiff_t begin,
                                  ptrdiff_t end) noexcept nogil:
    """Matrices of the batch from `begin` on."""
    cdef bint divided = may_be_divided(p)
    cdef int bound = 0
    cdef matrix_t a, b, out
    cdef operand_t left, right, result
    cdef ptrdiff_t index
    for index in range(begin, end):
        a, b, out = entry(p, A, index), entry(p, B, index), entry(p, OUT, index)
        if beta != 0:
            copy_c(p, entry(p, C, index), &out)
        if alpha == 0:  # not every BLAS leaves out the product, which may not be finite
            scale(&out, beta)
            continue
        as_operand(&a, sizeof(real), &left)
        as_operand(&b, sizeof(real), &right)
        as_operand(&out, sizeof(real), &result)
        if divided:
            bound = blas_bind(threads)
        if p.serial:
            multiply_serially(p, &state.blas, alpha, beta, &left, &right, &result)
        elif p.n == 1:
            multiply_vector(p, &state.blas, alpha, beta, &left, &b, &out)
        else:
            gemm(&state.blas, p.m, p.n, p.k, alpha, &left, &right, beta, &result)
        if divided:
            blas_release(bound)
        tidy_nans(&out, <real>0)


cdef inline void scale(const matrix_t *out, real beta) noexcept nogil:
    """out = beta*out; with a beta of 0 nobody looks at it."""
    cdef ptrdiff_t i, j
    cdef char *place
    cdef real found
    for i in range(out.rows):
        for j in range(out.cols):
            place = out.data + i * out.row_stride + j * out.col_stride
            found = beta * element(place, beta) if beta != 0 else 0
            found = found if found == found else <real>NAN
            memcpy(place, &found, sizeof(real))


cdef inline real element(const char *place, real like) noexcept nogil:
    """One that need not be aligned, as memory of a capture may begin anywhere."""
    cdef real found
    memcpy(&found, place, sizeof(real))
    return found


cdef inline bint may_be_divided(const product_t *p) noexcept nogil:
    """Whether BLAS may use threads of its own."""
    cdef double work = <double>p.m * p.n * p.k
    if p.n == 1 or p.m == 1:
        return work >= VECTOR_WORK
    return not p.serial and work >= SERIAL_WORK


cdef inline void tidy_nans(const matrix_t *out, real like) noexcept nogil:
    """Make every NaN the one that all kernels compute; BLAS leaves its sign to the processor."""
    cdef ptrdiff_t i, j
    cdef char *row
    cdef real one = <real>NAN
    for i in range(out.rows):
        row = out.data + i * out.row_stride
        if has_no_nan(row, out.cols, like):
            continue
        for j in range(out.cols):
            if element(row + j * <ptrdiff_t>sizeof(real), like) != element(
                    row + j * <ptrdiff_t>sizeof(real), like):
                memcpy(row + j * <ptrdiff_t>sizeof(real), &one, sizeof(real))


cdef inline bint has_no_nan(const char *row, ptrdiff_t n, real like) noexcept nogil:
    cdef int found = 0
    cdef ptrdiff_t j
    cdef real here
    for j in range(n):
        here = element(row + j * <ptrdiff_t>sizeof(real), like)
        found |= here != here
    return not found


cdef inline void copy_c(const product_t *p, matrix_t c, const matrix_t *out) noexcept nogil:
    """BLAS adds to what is in the output."""
    cdef ptrdiff_t i
    if c.data == out.data and c.row_stride == out.row_stride and c.col_stride == out.col_stride:
        return
    for i in range(out.rows):
        p.load[C](c.data + i * c.row_stride, c.col_stride, out.data + i * out.row_stride,
                  out.cols)


cdef inline void multiply_vector(const product_t *p, const blas_t *blas, real alpha, real beta,
                                 const operand_t *a, const matrix_t *b,
                                 const matrix_t *out) noexcept nogil:
    """One column: BLAS has a routine that does not copy the matrix for it."""
    cdef ptrdiff_t step = out.row_stride // <ptrdiff_t>sizeof(real) if p.m > 1 else 1
    cdef ptrdiff_t _i
    cdef char *target = out.data
    # Not every BLAS forgets a NaN of the output that is multiplied by 0.
    if beta == 0:
        for _i in range(p.m):
            memset(target, 0, sizeof(real))
            target += out.row_stride
    gemv(blas, p.m, p.k, alpha, a, b.data,
         b.row_stride // <ptrdiff_t>sizeof(real) if p.k > 1 else 1, beta, out.data, step)


cdef inline void multiply_serially(const product_t *p, const blas_t *blas, real alpha, real beta,
                                   const operand_t *a, const operand_t *b,
                                   const operand_t *out) noexcept nogil:
    """By calls so small that BLAS runs them on this thread."""
    cdef ptrdiff_t inner = p.k if p.m * p.n * p.k < SERIAL_WORK else min(p.k, <ptrdiff_t>DEPTH)
    cdef ptrdiff_t wide = p.n if p.m * p.n * p.k < SERIAL_WORK else min(p.n, <ptrdiff_t>STRIP)
    cdef ptrdiff_t high = min(p.m, (SERIAL_WORK - 1) // (inner * wide))
    cdef ptrdiff_t row, col, depth
    cdef operand_t left, right, result
    row = 0
    while row < p.m:
        col = 0
        while col < p.n:
            result = part(out, row, col, sizeof(real))
            depth = 0
            while depth < p.k:
                left = part(a, row, depth, sizeof(real))
                right = part(b, depth, col, sizeof(real))
                gemm(blas, min(high, p.m - row), min(wide, p.n - col), min(inner, p.k - depth),
                     alpha, &left, &right, beta if depth == 0 else <real>1, &result)
                depth += inner
            col += wide
        row += high
