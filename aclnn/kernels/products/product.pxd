"""One product: its matrices, how BLAS takes them, and how the work is cut."""

from libc.stdint cimport int64_t

from aclnn.kernels.element cimport load_fn, store_fn
from aclnn.kernels.products.blas cimport as_operand, blas_t, matrix_t, operand_t

cdef extern from "kernel_abi.h":
    ctypedef struct array_view:
        char *data
        int ndim
        const ptrdiff_t *shape
        const ptrdiff_t *strides
    ctypedef union kernel_number:
        double real
    ctypedef struct call_context:
        int threads
        int64_t detail
    ctypedef int (*call_kernel)(const array_view *views, const void *state, const void *params,
                                void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                                call_context *context) noexcept nogil

cdef enum:
    MOST_DIMS = 64
    A = 0             # operands; the output comes last
    B = 1
    C = 2
    OUT = 3
    OPERANDS = 4
    # Elements of operands that are converted together, so that the results' bits do not depend on
    # how the work is cut: every element of the output is summed up by strips, in the same order.
    STRIP = 64        # rows of a, columns of b
    DEPTH = 112       # of them; STRIP * STRIP * DEPTH is below SERIAL_WORK
    PANEL = 256       # rows and columns of results that are summed up at a time, at most
    # Multiplications of a matrix of a batch above which BLAS's own threads do better than ours.
    LARGE_ENTRY = 134217728
    CHUNK_WORK = 1048576  # multiplications that are worth handing to a thread: 20 microseconds


cdef struct product_state:
    blas_t blas
    int n_operands           # 3, or 4 with c
    bint scaled              # takes alpha and beta
    bint dense               # all operands have the type that is computed in, unrounded
    int itemsize             # of the type that is computed in
    load_fn load[3]          # of a, b and c, to that type
    store_fn store


cdef struct product_t:
    # What a call's shapes and strides make of it.
    ptrdiff_t m, n, k
    int ndim                       # of the batch
    ptrdiff_t batch                # how many matrices
    ptrdiff_t shape[MOST_DIMS]
    ptrdiff_t steps[4][MOST_DIMS]  # bytes from one matrix of an operand to the next
    matrix_t matrices[4]           # the first of each operand
    load_fn load[3]
    bint has_c
    bint direct                    # BLAS reads a and b and writes out where they lie
    bint serial                    # by calls that BLAS runs on the calling thread


cdef inline int describe(const array_view *views, const product_state *state,
                         product_t *p) noexcept nogil:
    """Find out how a product is done; nonzero for views that are none.

    It is asked when the kernel is planned and again when it runs: shapes and strides decide.
    """
    cdef const array_view *out = &views[state.n_operands - 1]
    cdef int which
    p.has_c = state.n_operands == 4
    p.ndim = 0
    p.batch = 1
    for which in range(OUT):
        p.load[which] = state.load[which]
    if out.ndim < 2 or out.ndim > MOST_DIMS:
        return 1
    for which in range(OPERANDS):
        if is_there(p, which) and set_matrix(view_of(views, state, which), out,
                                             &p.matrices[which]):
            return 1
    p.m, p.n, p.k = p.matrices[OUT].rows, p.matrices[OUT].cols, p.matrices[A].cols
    if not shapes_agree(p):
        return 1
    set_batch(views, state, out.ndim - 2, out.shape, p)
    if has_dense_columns(&p.matrices[OUT]):
        transpose(p)
    p.direct = state.dense and p.k > 0 and is_direct(p, state.itemsize)
    p.serial = not p.direct or (p.batch > 1 and <double>p.m * p.n * p.k <= LARGE_ENTRY)
    if not p.serial and p.m == 1:
        transpose(p)  # a row becomes a column, for which BLAS has a routine
    return 0


cdef inline bint is_there(const product_t *p, int which) noexcept nogil:
    return which != C or p.has_c


cdef inline const array_view *view_of(const array_view *views, const product_state *state,
                                      int which) noexcept nogil:
    return &views[state.n_operands - 1 if which == OUT else which]


cdef inline int set_matrix(const array_view *view, const array_view *out,
                           matrix_t *matrix) noexcept nogil:
    cdef int ndim = out.ndim, axis
    if view.ndim != ndim:
        return 1
    for axis in range(ndim - 2):
        if view.shape[axis] != out.shape[axis]:
            return 1
    matrix.data = view.data
    matrix.rows, matrix.cols = view.shape[ndim - 2], view.shape[ndim - 1]
    matrix.row_stride, matrix.col_stride = view.strides[ndim - 2], view.strides[ndim - 1]
    return 0


cdef inline bint shapes_agree(const product_t *p) noexcept nogil:
    if p.matrices[A].rows != p.m or p.matrices[B].rows != p.k or p.matrices[B].cols != p.n:
        return False
    return not p.has_c or (p.matrices[C].rows == p.m and p.matrices[C].cols == p.n)


cdef inline void set_batch(const array_view *views, const product_state *state, int ndim,
                           const ptrdiff_t *shape, product_t *p) noexcept nogil:
    """The batch's axes from the innermost on, less those that are more rows of one matrix."""
    cdef int axis, which
    for axis in range(ndim - 1, -1, -1):
        if shape[axis] == 1 or continues_rows(views, state, axis, p):
            continue
        p.shape[p.ndim] = shape[axis]
        p.batch *= shape[axis]
        for which in range(OPERANDS):
            if is_there(p, which):
                p.steps[which][p.ndim] = view_of(views, state, which).strides[axis]
        p.ndim += 1


cdef inline bint continues_rows(const array_view *views, const product_state *state, int axis,
                                product_t *p) noexcept nogil:
    """Let a batch with one b for all be one matrix of many rows, where its strides are such."""
    cdef int which
    cdef const array_view *other
    if p.ndim or views[B].strides[axis] != 0:
        return False
    for which in range(OPERANDS):
        if which != B and is_there(p, which) and p.m > 1:
            other = view_of(views, state, which)
            if other.strides[axis] != p.m * p.matrices[which].row_stride:
                return False
    for which in range(OPERANDS):
        if which != B and is_there(p, which):
            if p.m == 1:
                p.matrices[which].row_stride = view_of(views, state, which).strides[axis]
            p.matrices[which].rows *= views[A].shape[axis]
    p.m *= views[A].shape[axis]
    return True


cdef inline bint has_dense_columns(const matrix_t *matrix) noexcept nogil:
    """Whether results are better made as the transpose."""
    return matrix.rows > 1 and matrix.cols > 1 and 0 < matrix.row_stride < matrix.col_stride


cdef inline void transpose(product_t *p) noexcept nogil:
    """(a@b)' = b'@a'."""
    cdef ptrdiff_t step
    cdef int axis, which
    p.m, p.n = p.n, p.m
    p.matrices[A], p.matrices[B] = p.matrices[B], p.matrices[A]
    p.load[A], p.load[B] = p.load[B], p.load[A]
    for which in range(OPERANDS):
        flip(&p.matrices[which])
    for axis in range(p.ndim):
        step = p.steps[A][axis]
        p.steps[A][axis] = p.steps[B][axis]
        p.steps[B][axis] = step


cdef inline void flip(matrix_t *matrix) noexcept nogil:
    matrix.rows, matrix.cols = matrix.cols, matrix.rows
    matrix.row_stride, matrix.col_stride = matrix.col_stride, matrix.row_stride


cdef inline bint is_direct(const product_t *p, ptrdiff_t itemsize) noexcept nogil:
    cdef operand_t operand
    if not (as_operand(&p.matrices[A], itemsize, &operand)
            and as_operand(&p.matrices[B], itemsize, &operand)):
        return False
    return as_operand(&p.matrices[OUT], itemsize, &operand) and not operand.by_columns


cdef inline matrix_t entry(const product_t *p, int which, ptrdiff_t index) noexcept nogil:
    """A matrix of the batch."""
    cdef matrix_t found = p.matrices[which]
    cdef int axis
    for axis in range(p.ndim):
        found.data += index % p.shape[axis] * p.steps[which][axis]
        index //= p.shape[axis]
    return found


cdef inline ptrdiff_t strips_of(ptrdiff_t length) noexcept nogil:
    return (length + STRIP - 1) // STRIP


cdef inline ptrdiff_t most_chunks(const product_t *p, ptrdiff_t threads) noexcept nogil:
    """Into how many calls the work is cut."""
    cdef double work = <double>p.batch * p.m * p.n * max(p.k, 1)
    cdef ptrdiff_t parts = p.batch
    if not p.serial:
        return 1
    if not p.direct:
        parts *= strips_of(p.m) * strips_of(p.n)
    return max(1, min(threads, parts, <ptrdiff_t>(min(work, 1e15) / CHUNK_WORK)))
