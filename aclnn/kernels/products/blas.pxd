"""The BLAS routines that matrix products call, and which matrices they can read."""

from aclnn.kernels.number cimport real

cdef enum:
    MOST_INT = 2147483647
    # OpenBLAS runs products of fewer multiplications than this on the thread that calls. Those that
    # are larger use threads of its own, one product at a time, whoever calls.
    SERIAL_WORK = 524288
    # Elements of a matrix from which OpenBLAS may divide its product with a vector.
    VECTOR_WORK = 8192

cdef extern from "products/blas_threads.h" nogil:
    int blas_bind(int threads)
    void blas_release(int bound)
    void blas_enter()
    void blas_leave()
    int blas_found(size_t number, size_t set_number, size_t set_for_thread)

ctypedef void (*sgemm_fn)(char *, char *, int *, int *, int *, float *, float *, int *, float *,
                          int *, float *, float *, int *) noexcept nogil
ctypedef void (*dgemm_fn)(char *, char *, int *, int *, int *, double *, double *, int *, double *,
                          int *, double *, double *, int *) noexcept nogil
ctypedef void (*sgemv_fn)(char *, int *, int *, float *, float *, int *, float *, int *, float *,
                          float *, int *) noexcept nogil
ctypedef void (*dgemv_fn)(char *, int *, int *, double *, double *, int *, double *, int *,
                          double *, double *, int *) noexcept nogil


cdef struct blas_t:
    void *gemm
    void *gemv


cdef struct matrix_t:
    char *data
    ptrdiff_t rows, cols
    ptrdiff_t row_stride, col_stride     # bytes


cdef struct operand_t:
    # A matrix as BLAS takes it: dense runs of elements, `step` elements apart.
    char *data
    ptrdiff_t step
    bint by_columns                      # the runs are columns


cdef inline ptrdiff_t run_step(ptrdiff_t count, ptrdiff_t length, ptrdiff_t stride,
                               ptrdiff_t inner, ptrdiff_t itemsize) noexcept nogil:
    """Elements from one of `count` dense runs of `length` elements to the next; 0: no such runs."""
    if count > MOST_INT or length > MOST_INT or (length > 1 and inner != itemsize):
        return 0
    if count <= 1:
        return max(length, 1)
    if stride % itemsize or not max(length, 1) * itemsize <= stride <= MOST_INT * itemsize:
        return 0
    return stride // itemsize


cdef inline bint as_operand(const matrix_t *matrix, ptrdiff_t itemsize,
                            operand_t *operand) noexcept nogil:
    """How BLAS reads a matrix; false where it cannot."""
    operand.data = matrix.data
    operand.by_columns = False
    operand.step = run_step(matrix.rows, matrix.cols, matrix.row_stride, matrix.col_stride,
                            itemsize)
    if operand.step:
        return True
    operand.by_columns = True
    operand.step = run_step(matrix.cols, matrix.rows, matrix.col_stride, matrix.row_stride,
                            itemsize)
    return operand.step != 0


cdef inline operand_t part(const operand_t *operand, ptrdiff_t row, ptrdiff_t col,
                           ptrdiff_t itemsize) noexcept nogil:
    """What is left of a matrix from an element on."""
    cdef operand_t found = operand[0]
    if operand.by_columns:
        found.data += (row + col * operand.step) * itemsize
    else:
        found.data += (row * operand.step + col) * itemsize
    return found


cdef inline void gemm(const blas_t *blas, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, real alpha,
                      const operand_t *a, const operand_t *b, real beta,
                      const operand_t *out) noexcept nogil:
    """out = beta*out + alpha*(a@b) with `out` by rows.

    BLAS knows matrices by columns: those of `out` by rows are those of its transpose, b'@a'.
    """
    cdef char how_a = b"T" if a.by_columns else b"N"
    cdef char how_b = b"T" if b.by_columns else b"N"
    cdef int rows = <int>m, cols = <int>n, inner = <int>k
    cdef int step_a = <int>a.step, step_b = <int>b.step, step_out = <int>out.step
    if real is float:
        (<sgemm_fn>blas.gemm)(
            &how_b, &how_a, &cols, &rows, &inner, &alpha, <float *>b.data, &step_b,
            <float *>a.data, &step_a, &beta, <float *>out.data, &step_out)
    else:
        (<dgemm_fn>blas.gemm)(
            &how_b, &how_a, &cols, &rows, &inner, &alpha, <double *>b.data, &step_b,
            <double *>a.data, &step_a, &beta, <double *>out.data, &step_out)


cdef inline void gemv(const blas_t *blas, ptrdiff_t m, ptrdiff_t k, real alpha,
                      const operand_t *a, char *x, ptrdiff_t x_step, real beta, char *out,
                      ptrdiff_t out_step) noexcept nogil:
    """out = beta*out + alpha*(a@x) for vectors with `x_step` and `out_step` elements between."""
    cdef char how = b"N" if a.by_columns else b"T"
    cdef int rows = <int>(m if a.by_columns else k), cols = <int>(k if a.by_columns else m)
    cdef int step_a = <int>a.step, step_x = <int>x_step, step_out = <int>out_step
    if real is float:
        (<sgemv_fn>blas.gemv)(&how, &rows, &cols, &alpha, <float *>a.data, &step_a, <float *>x,
                              &step_x, &beta, <float *>out, &step_out)
    else:
        (<dgemv_fn>blas.gemv)(&how, &rows, &cols, &alpha, <double *>a.data, &step_a, <double *>x,
                              &step_x, &beta, <double *>out, &step_out)
