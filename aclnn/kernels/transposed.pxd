"""Tiles with operands that are dense along columns.

Parts of them are transposed, then computed a few rows at a time.
"""

from libc.stdint cimport uintptr_t

from aclnn.kernels.computation cimport compute_state
from aclnn.kernels.formula_loops cimport MOST_INPUTS
from aclnn.kernels.simd.loop_args cimport hints_t
from aclnn.kernels.tile cimport (
    LINE,
    block_t,
    is_column_dense,
    is_transposed,
    line_in,
    one_row,
    place,
    prefetch,
    transpose_block,
)
from aclnn.graph.runtime.kernel_abi cimport TILE_PREFETCH_NEAR, tile_view

cdef enum:
    TRANSPOSED = 65536    # bytes of the copies of a part of all operands
    TRANSPOSED_ROW = 512  # bytes of its rows
    AS_ONE = 2048         # elements of rows that follow one another, to compute in one go
    TOGETHER = 256        # the same of rows that do not


cdef struct transposed_t:
    # A part of a tile with copies of transposed operands, and from a certain row on.
    tile_view views[MOST_INPUTS + 1]
    tile_view now[MOST_INPUTS + 1]
    char memory[TRANSPOSED + MOST_INPUTS * LINE]


ctypedef void (*rows_fn)(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                         const compute_state *state, const void *params, hints_t *hints,
                         int flags) noexcept nogil


cdef inline void compute_transposed(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                                    const compute_state *state, const void *params,
                                    hints_t *hints, int flags,
                                    rows_fn compute_rows) noexcept nogil:
    """A tile by parts, each transposed first and then computed a few rows at a time."""
    cdef transposed_t transposed
    cdef block_t part
    cdef ptrdiff_t row, group, high = rows, wide = cols
    part_shape(state, &high, &wide)
    part.row = 0
    while part.row < rows:
        part.rows = min(high, rows - part.row)
        part.col = 0
        while part.col < cols:
            part.cols = min(wide, cols - part.col)
            group = transpose_part(views, &part, state, &transposed)
            row = 0
            while row < part.rows:
                group = min(group, part.rows - row)
                go_to_row(views, &part, state, row, group, flags, &transposed)
                compute_rows(transposed.now, group, part.cols, state, params, hints, 0)
                row += group
            part.col += wide
        part.row += high


cdef inline bint any_column_dense(const tile_view *views,
                                  const compute_state *state) noexcept nogil:
    cdef int k
    for k in range(state.n_inputs):
        if is_column_dense(&views[k], state.sizes[k]):
            return True
    return False


cdef inline void part_shape(const compute_state *state, ptrdiff_t *high,
                            ptrdiff_t *wide) noexcept nogil:
    """So that a copy fits into the nearest cache together with what is computed from it."""
    cdef ptrdiff_t size = state.sizes[0]
    cdef int k
    for k in range(1, state.n_inputs):
        size = max(size, state.sizes[k])
    wide[0] = min(wide[0], TRANSPOSED_ROW // size)
    high[0] = min(high[0], copy_bytes_of(state) // (wide[0] * size))


cdef inline ptrdiff_t copy_bytes_of(const compute_state *state) noexcept nogil:
    """Room for the copy of an operand: where there are more than two, each gets less."""
    return TRANSPOSED // max(2, state.n_inputs)


cdef inline ptrdiff_t transpose_part(const tile_view *views, const block_t *part,
                                     const compute_state *state,
                                     transposed_t *transposed) noexcept nogil:
    """Put dense copies in the place of transposed operands; how many rows to compute in one go."""
    cdef tile_view *view
    cdef char *dense
    cdef ptrdiff_t size
    cdef int k, n = state.n_inputs + 1
    for k in range(n):
        view, size = &transposed.views[k], state.sizes[k]
        view[0] = views[k]
        view.data = place(&views[k], part)
        if k == state.n_inputs or not is_column_dense(view, size):
            continue
        dense = line_in(transposed.memory + k * (copy_bytes_of(state) + LINE))
        transpose_block(view.data, view.col_stride, dense, part.cols * size, part.rows, part.cols,
                        size)
        view.data, view.row_stride, view.col_stride = dense, part.cols * size, size
    return max(1, (AS_ONE if one_row(transposed.views, n, part.cols) else TOGETHER) // part.cols)


cdef inline void go_to_row(const tile_view *views, const block_t *part, const compute_state *state,
                           ptrdiff_t row, ptrdiff_t group, int flags,
                           transposed_t *transposed) noexcept nogil:
    """Go to a row of a part that was transposed, and prefetch a share of the next part: as much of
    it as the rows are of this one. A burst for all of it would stall."""
    cdef int k
    for k in range(state.n_inputs + 1):
        transposed.now[k] = transposed.views[k]
        transposed.now[k].data += row * transposed.views[k].row_stride
        if flags & TILE_PREFETCH_NEAR:
            prefetch_share(&views[k], part, state.sizes[k], row, group)


cdef inline void prefetch_share(const tile_view *view, const block_t *part, ptrdiff_t size,
                                ptrdiff_t row, ptrdiff_t group) noexcept nogil:
    """Ask for a share of the part next to this one: as much of it as these rows are of this one."""
    cdef uintptr_t source = <uintptr_t>place(view, part) + part.cols * view.col_stride
    cdef bint across = is_transposed(view)
    cdef ptrdiff_t lines = part.cols if across else part.rows
    cdef ptrdiff_t step = view.col_stride if across else view.row_stride
    cdef ptrdiff_t nbytes = (part.rows if across else part.cols) * size
    cdef ptrdiff_t i, k
    for i in range(lines * row // part.rows, lines * (row + group) // part.rows):
        k = 0
        while k < nbytes:
            prefetch(<const char *>(source + i * step + k))
            k += LINE
