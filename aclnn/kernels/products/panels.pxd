"""Products by panels of results that are summed up in float or double, whatever the operands are.

The panels' rows of a and columns of b are converted to dense strips that stay in the cache.
Results are rounded once, when a panel is complete.
"""

from libc.math cimport NAN
from libc.stdlib cimport llabs
from libc.string cimport memset

from aclnn.kernels.element cimport load_fn
from aclnn.kernels.number cimport real
from aclnn.kernels.products.blas cimport gemm, matrix_t, operand_t
from aclnn.kernels.products.product cimport (
    A,
    B,
    C,
    DEPTH,
    OUT,
    PANEL,
    STRIP,
    entry,
    product_state,
    product_t,
    strips_of,
)


cdef struct grid_t:
    # Panels of a product, and what they need of the scratch.
    ptrdiff_t high, wide           # of a panel, whole strips
    ptrdiff_t down, across         # panels of a matrix


cdef struct scratch_t:
    # Room for one panel; all of it begins with a cache line.
    char *results
    char *row                      # of c
    char *left                     # strips of a
    char *right                    # strips of b


cdef struct strips_t:
    # Rows of a, or columns of b, as dense strips.
    char *data
    bint along_k                   # k varies fastest
    ptrdiff_t length, depth


cdef inline grid_t grid_of(const product_t *p, ptrdiff_t chunks) noexcept nogil:
    """Panels as large as may be, but enough of them for all chunks to have about the same."""
    cdef grid_t grid
    cdef ptrdiff_t panels
    grid.high = min(strips_of(p.m) * STRIP, <ptrdiff_t>PANEL)
    grid.wide = min(strips_of(p.n) * STRIP, <ptrdiff_t>PANEL)
    while True:
        grid.down = (p.m + grid.high - 1) // grid.high
        grid.across = (p.n + grid.wide - 1) // grid.wide
        panels = p.batch * grid.down * grid.across
        if panels % chunks == 0 or panels >= 8 * chunks or grid.high + grid.wide == 2 * STRIP:
            return grid
        if grid.high >= grid.wide:
            grid.high = strips_of(grid.high // 2) * STRIP
        else:
            grid.wide = strips_of(grid.wide // 2) * STRIP


cdef inline ptrdiff_t lay_out(const product_t *p, const grid_t *grid, ptrdiff_t itemsize,
                              char *memory, scratch_t *scratch) noexcept nogil:
    """Divide the scratch; gives the bytes that it takes."""
    cdef ptrdiff_t depth = min(p.k, <ptrdiff_t>DEPTH)
    cdef ptrdiff_t used = 0
    scratch.results = memory
    used += grid.high * grid.wide * itemsize
    scratch.row = memory + used
    used += grid.wide * itemsize
    scratch.left = memory + used
    used += grid.high * depth * itemsize
    scratch.right = memory + used
    return used + grid.wide * depth * itemsize


cdef inline void multiply_panels(const product_t *p, const product_state *state, real alpha,
                                 real beta, char *memory, ptrdiff_t chunk,
                                 ptrdiff_t chunks) noexcept nogil:
    """This chunk's panels."""
    cdef grid_t grid = grid_of(p, chunks)
    cdef scratch_t scratch
    cdef matrix_t a, b, c, out
    cdef ptrdiff_t panels = grid.down * grid.across, all_panels = p.batch * panels
    cdef ptrdiff_t index, inside
    lay_out(p, &grid, sizeof(real), memory, &scratch)
    for index in range(chunk * all_panels // chunks, (chunk + 1) * all_panels // chunks):
        inside = index % panels
        a, b = entry(p, A, index // panels), entry(p, B, index // panels)
        out = entry(p, OUT, index // panels)
        narrow(&a, inside // grid.across * grid.high, grid.high, 0, p.k)
        narrow(&b, 0, p.k, inside % grid.across * grid.wide, grid.wide)
        narrow(&out, inside // grid.across * grid.high, grid.high,
               inside % grid.across * grid.wide, grid.wide)
        sum_up(p, &a, &b, state, grid.wide, &scratch, alpha)
        if beta != 0:
            c = entry(p, C, index // panels)
            narrow(&c, inside // grid.across * grid.high, grid.high,
                   inside % grid.across * grid.wide, grid.wide)
        finish(p, &out, &c, state, grid.wide, &scratch, alpha, beta)


cdef inline void narrow(matrix_t *matrix, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t col,
                        ptrdiff_t cols) noexcept nogil:
    """The part of a matrix from an element on, of at most so many rows and columns."""
    matrix.data += row * matrix.row_stride + col * matrix.col_stride
    matrix.rows, matrix.cols = min(rows, matrix.rows - row), min(cols, matrix.cols - col)


cdef inline void sum_up(const product_t *p, const matrix_t *a, const matrix_t *b,
                        const product_state *state, ptrdiff_t wide, const scratch_t *scratch,
                        real alpha) noexcept nogil:
    """a@b into the scratch; nothing where it counts for nothing, as in BLAS."""
    cdef ptrdiff_t k = a.cols if alpha != 0 else 0
    cdef ptrdiff_t depth
    cdef matrix_t left, right
    cdef strips_t rows, cols
    if k == 0:
        memset(scratch.results, 0, a.rows * wide * sizeof(real))
    depth = 0
    while depth < k:
        left, right = a[0], b[0]
        narrow(&left, 0, a.rows, depth, DEPTH)
        narrow(&right, depth, DEPTH, 0, b.cols)
        rows = pack(scratch.left, left.data, left.row_stride, left.col_stride, left.rows,
                    left.cols, p.load[A], alpha)
        cols = pack(scratch.right, right.data, right.col_stride, right.row_stride, right.cols,
                    right.rows, p.load[B], alpha)
        multiply_strips(&rows, &cols, state, wide, scratch.results, depth > 0, alpha)
        depth += DEPTH


cdef inline strips_t pack(char *target, const char *source, ptrdiff_t stride, ptrdiff_t k_stride,
                          ptrdiff_t length, ptrdiff_t depth, load_fn load,
                          real like) noexcept nogil:
    """Convert `length` rows of a (or columns of b), of `depth` elements, by strips.

    Within a strip, what varies fastest in the operand varies fastest.
    """
    cdef strips_t strips
    cdef ptrdiff_t begin, i, wide
    strips.data, strips.length, strips.depth = target, length, depth
    strips.along_k = llabs(k_stride) <= llabs(stride)
    begin = 0
    while begin < length:
        wide = min(<ptrdiff_t>STRIP, length - begin)
        if strips.along_k:
            for i in range(wide):
                load(source + (begin + i) * stride, k_stride,
                     target + i * depth * <ptrdiff_t>sizeof(real), depth)
        else:
            for i in range(depth):
                load(source + begin * stride + i * k_stride, stride,
                     target + i * STRIP * <ptrdiff_t>sizeof(real), wide)
        target += STRIP * depth * <ptrdiff_t>sizeof(real)
        begin += STRIP
    return strips


cdef inline operand_t strip(const strips_t *strips, ptrdiff_t begin, bint is_a,
                            ptrdiff_t itemsize) noexcept nogil:
    cdef operand_t found
    found.data = strips.data + begin * strips.depth * itemsize
    found.step = strips.depth if strips.along_k else STRIP
    found.by_columns = strips.along_k != is_a
    return found


cdef inline void multiply_strips(const strips_t *rows, const strips_t *cols,
                                 const product_state *state, ptrdiff_t wide, char *results,
                                 bint more, real like) noexcept nogil:
    """Add the product of strips to the results, each by a call that BLAS runs on this thread."""
    cdef ptrdiff_t row, col
    cdef operand_t left, right, out
    out.step, out.by_columns = wide, False
    col = 0
    while col < cols.length:
        right = strip(cols, col, False, sizeof(real))
        row = 0
        while row < rows.length:
            left = strip(rows, row, True, sizeof(real))
            out.data = results + (row * wide + col) * <ptrdiff_t>sizeof(real)
            gemm(&state.blas, min(<ptrdiff_t>STRIP, rows.length - row),
                 min(<ptrdiff_t>STRIP, cols.length - col), rows.depth, <real>1, &left, &right,
                 <real>(1 if more else 0), &out)
            row += STRIP
        col += STRIP


cdef inline void finish(const product_t *p, const matrix_t *out, const matrix_t *c,
                        const product_state *state, ptrdiff_t wide, const scratch_t *scratch,
                        real alpha, real beta) noexcept nogil:
    """Write a panel, row by row: what is to be done with sums before they are rounded goes here."""
    cdef real *sums = <real *>scratch.results
    cdef real *addends = <real *>scratch.row
    cdef ptrdiff_t i, j
    for i in range(out.rows):
        if beta != 0:
            p.load[C](c.data + i * c.row_stride, c.col_stride, <char *>addends, out.cols)
            if alpha == 0:  # the product is not computed: a sum with 0 would lose the sign of -0
                for j in range(out.cols):
                    sums[j] = beta * addends[j]
            else:
                for j in range(out.cols):
                    sums[j] = beta * addends[j] + alpha * sums[j]
        elif alpha != 1 and alpha != 0:
            for j in range(out.cols):
                sums[j] *= alpha
        for j in range(out.cols):
            sums[j] = sums[j] if sums[j] == sums[j] else <real>NAN
        state.store(<const char *>sums, out.data + i * out.row_stride, out.col_stride, out.cols)
        sums += wide
