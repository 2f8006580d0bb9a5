"""Gradients of softmax and its logarithm of dense rows: a sum, then the pass that writes.

What is written is computed by the kernel's own last pass, on rows where they lie.
"""

from libc.string cimport memcpy

from aclnn.kernels.rows.blocks cimport displaces_itself
from aclnn.kernels.rows.dense cimport (
    BESIDE,
    PLAIN,
    PRODUCTS,
    LINES,
    SEVERAL,
    WIDE,
    begin_total,
    dense_t,
    sum_row_along,
    sum_rows_along,
    sum_rows_beside,
    term_t,
)
from aclnn.kernels.rows.sums cimport CHUNK, sum_t, total
from aclnn.kernels.rows.vecd cimport VECD, m_none, magnitude_t, vecd
from aclnn.kernels.rows.walk cimport (
    BLOCK,
    EVERY,
    INPUTS,
    element,
    group_t,
    row_state,
    rows_along,
    run_t,
    tile_view,
)

cdef enum:
    COLUMNS_AT_ONCE = 32  # of rows beside each other
    COPIED = 32768        # bytes of an operand
    LINE_PART = 32        # bytes that a copy moves at a time


cdef inline bint all_along(const tile_view *views, const row_state *state, ptrdiff_t cols,
                           const dense_t *like) noexcept nogil:
    """Whether registers of all operands lie beside each other along rows, and are full."""
    cdef int k
    for k in range(INPUTS):
        if views[state.inputs[k].view].col_stride != sizeof(dense_t):
            return False
    return views[state.out.view].col_stride == sizeof(dense_t) and cols % VECD == 0


cdef inline bint all_beside(const tile_view *views, const row_state *state, ptrdiff_t rows,
                            const dense_t *like) noexcept nogil:
    cdef int k
    for k in range(INPUTS):
        if views[state.inputs[k].view].row_stride != sizeof(dense_t):
            return False
    return views[state.out.view].row_stride == sizeof(dense_t) and rows >= BESIDE * VECD


cdef inline bint has_own_type(const row_state *state) noexcept nogil:
    return state.inputs[0].same and state.inputs[1].same and state.out.same


cdef inline void begin_run(run_t *run, ptrdiff_t lane) noexcept nogil:
    run.lane, run.rows, run.row_step, run.begins = lane, 1, 0, False
    run.part_mask, run.partial, run.live, run.kept = 0, -1, 0, NULL


cdef inline void write_row(const tile_view *views, const row_state *state, ptrdiff_t row,
                           ptrdiff_t cols, group_t *group, run_t *run,
                           const dense_t *like) noexcept nogil:
    """By the last pass, block by block of one row."""
    cdef ptrdiff_t col = 0
    run.step = run.second_step = run.out_step = VECD * sizeof(dense_t)
    while col < cols:
        run.n = min(<ptrdiff_t>BLOCK, (cols - col) // VECD)
        run.second = element(&views[state.inputs[1].view], row, col)
        run.out = element(&views[state.out.view], row, col)
        state.passes[state.n_passes - 1].run(
            element(&views[state.inputs[0].view], row, col), group, run)
        col += run.n * VECD


cdef inline ptrdiff_t sum_and_write_along(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                          ptrdiff_t cols, const row_state *state, term_t term,
                                          const dense_t *like) noexcept nogil:
    cdef const tile_view *first = &views[state.inputs[0].view]
    cdef const tile_view *second = &views[state.inputs[1].view]
    cdef ptrdiff_t most_rows = rows_along(cols // VECD, state), n, k
    cdef vecd parts[1]
    cdef group_t group
    cdef run_t run
    cdef sum_t sum
    cdef magnitude_t most = m_none()
    cdef const dense_t *x
    cdef const dense_t *y
    while row < rows:
        n = min(most_rows, rows - row)
        x = <const dense_t *>element(first, row, 0)
        y = <const dense_t *>element(second, row, 0)
        begin_total(&sum, parts)
        if n < SEVERAL and cols > n * CHUNK:
            n = 1
            sum_row_along(x, y, cols, term, &sum, &most)
        else:
            sum_rows_along(x, first.row_stride, y, second.row_stride, n, cols, term, &sum, &most)
        group.values[0] = total(&sum, &group.values[1])
        for k in range(n):
            begin_run(&run, k)
            write_row(views, state, row + k, cols, &group, &run, like)
        row += n
    return row


cdef struct lines_t:
    # Rows beside each other: where their operands begin, and bytes from column to column.
    const char *first
    const char *second
    char *out
    ptrdiff_t step, second_step, out_step
    ptrdiff_t lines


cdef inline void write_beside(const lines_t *at, const row_state *state, ptrdiff_t cols,
                              group_t *groups, const dense_t *like) noexcept nogil:
    """By the last pass, so that lines of memory that hold parts of several groups are read once."""
    cdef ptrdiff_t col = 0, i, offset
    cdef run_t run
    begin_run(&run, EVERY)
    run.step, run.second_step, run.out_step = at.step, at.second_step, at.out_step
    while col < cols:
        run.n = min(<ptrdiff_t>COLUMNS_AT_ONCE, cols - col)
        for i in range(at.lines * BESIDE):
            offset = i * VECD * sizeof(dense_t)
            run.second = at.second + col * at.second_step + offset
            run.out = at.out + col * at.out_step + offset
            state.passes[state.n_passes - 1].run(at.first + col * at.step + offset, &groups[i],
                                                 &run)
        col += run.n


cdef inline void sum_and_write_lines(const lines_t *at, const row_state *state, ptrdiff_t cols,
                                     term_t term, const dense_t *like) noexcept nogil:
    cdef vecd parts[WIDE]
    cdef group_t groups[WIDE]
    cdef sum_t sums[WIDE]
    cdef magnitude_t most = m_none()
    cdef ptrdiff_t i
    sum_rows_beside(<const dense_t *>at.first, at.step, <const dense_t *>at.second, at.second_step,
                    at.lines, cols, term, sums, parts, &most)
    for i in range(at.lines * BESIDE):
        groups[i].values[0] = total(&sums[i], &groups[i].values[1])
    write_beside(at, state, cols, groups, like)


cdef inline void copy_lines(const char *source, ptrdiff_t step, char *target, ptrdiff_t to,
                            ptrdiff_t nbytes, ptrdiff_t cols) noexcept nogil:
    """A column after the other, a whole number of registers of each."""
    cdef ptrdiff_t k, i
    for k in range(cols):
        i = 0
        while i < nbytes:
            memcpy(target + k * to + i, source + k * step + i, LINE_PART)
            i += LINE_PART


cdef inline void sum_and_write_copies(const lines_t *at, const row_state *state, ptrdiff_t cols,
                                      term_t term, const dense_t *like) noexcept nogil:
    """By way of copies: columns that lie so that many share few sets of a cache are read once."""
    cdef char[COPIED] first
    cdef char[COPIED] second
    cdef ptrdiff_t nbytes = at.lines * BESIDE * VECD * sizeof(dense_t)
    cdef lines_t own
    copy_lines(at.first, at.step, <char *>first, nbytes, nbytes, cols)
    copy_lines(at.second, at.second_step, <char *>second, nbytes, nbytes, cols)
    own.first = own.out = <char *>first
    own.second = <char *>second
    own.step = own.second_step = own.out_step = nbytes
    own.lines = at.lines
    sum_and_write_lines(&own, state, cols, term, like)
    copy_lines(<char *>first, nbytes, at.out, at.out_step, nbytes, cols)


cdef inline ptrdiff_t sum_and_write_beside(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                           ptrdiff_t cols, const row_state *state, term_t term,
                                           const dense_t *like) noexcept nogil:
    cdef const tile_view *first = &views[state.inputs[0].view]
    cdef const tile_view *second = &views[state.inputs[1].view]
    cdef const tile_view *out = &views[state.out.view]
    cdef ptrdiff_t line = BESIDE * VECD * sizeof(dense_t)
    cdef ptrdiff_t most = min(<ptrdiff_t>LINES, COPIED // (cols * line))
    cdef bint copies = displaces_itself(first) and most > 0
    cdef lines_t at
    at.step, at.second_step, at.out_step = first.col_stride, second.col_stride, out.col_stride
    while row + BESIDE * VECD <= rows:
        at.first, at.second = element(first, row, 0), element(second, row, 0)
        at.out = element(out, row, 0)
        at.lines = (rows - row) // (BESIDE * VECD)
        if copies:
            at.lines = min(at.lines, most)
            sum_and_write_copies(&at, state, cols, term, like)
        else:
            at.lines = min(at.lines, <ptrdiff_t>1)
            sum_and_write_lines(&at, state, cols, term, like)
        row += at.lines * BESIDE * VECD
    return row


cdef inline ptrdiff_t sum_and_write(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                    ptrdiff_t cols, const row_state *state, term_t term,
                                    const dense_t *like) noexcept nogil:
    if not has_own_type(state):
        return row
    if all_along(views, state, cols, like):
        return sum_and_write_along(views, row, rows, cols, state, term, like)
    if all_beside(views, state, rows - row, like):
        return sum_and_write_beside(views, row, rows, cols, state, term, like)
    return row


cdef inline ptrdiff_t dense_softmax_backward(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                             ptrdiff_t cols, const void *state,
                                             const dense_t *like) noexcept nogil:
    return sum_and_write(views, row, rows, cols, <const row_state *>state, PRODUCTS, like)


cdef inline ptrdiff_t dense_log_softmax_backward(const tile_view *views, ptrdiff_t row,
                                                 ptrdiff_t rows, ptrdiff_t cols, const void *state,
                                                 const dense_t *like) noexcept nogil:
    return sum_and_write(views, row, rows, cols, <const row_state *>state, PLAIN, like)
