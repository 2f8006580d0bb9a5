"""Softmax, its logarithm and their gradients of dense rows.

Exponentials, and what is written, are computed by the kernel's own passes, on rows where they lie.
"""

from libc.string cimport memcpy

from aclnn.kernels.rows.blocks cimport displaces_itself
from aclnn.kernels.rows.dense cimport (
    BESIDE,
    PLAIN,
    PRODUCTS,
    LINES,
    SEVERAL,
    STRIP,
    WIDE,
    begin_total,
    dense_t,
    find_most_beside,
    folded_most,
    most_of_rows,
    sum_row_along,
    sum_rows_along,
    sum_rows_beside,
    term_t,
)
from aclnn.kernels.rows.sums cimport (
    CHUNK,
    PARTS,
    SUM,
    begin_sums,
    end_chunk,
    most_parts,
    sum_t,
    sums_t,
    total,
    used_parts,
)
from aclnn.kernels.rows.vecd cimport VECD, m_none, magnitude_t, v_of_floats, v_set, vecd
from aclnn.kernels.rows.vecw cimport vecw, w_high, w_low
from aclnn.kernels.rows.walk cimport (
    BLOCK,
    EVERY,
    INPUTS,
    element,
    group_t,
    pass_t,
    row_state,
    rows_along,
    run_fn,
    run_t,
)
from aclnn.graph.runtime.kernel_abi cimport tile_view

cdef enum:
    COLUMNS_AT_ONCE = 32  # of adjacent rows
    COPIED = 32768        # bytes of an operand
    LINE_PART = 32        # bytes that a copy moves at a time
    MOST_COLUMNS = 512    # of rows whose exponentials are kept here
    MOST_KEPT = MOST_COLUMNS


cdef inline bint all_along(const tile_view *views, const row_state *state, ptrdiff_t cols,
                           const dense_t *like) noexcept nogil:
    """Whether registers of all operands are adjacent along rows, and are full."""
    cdef int k
    for k in range(INPUTS):
        if (state.inputs[k].view >= 0
                and views[state.inputs[k].view].col_stride != sizeof(dense_t)):
            return False
    return views[state.out.view].col_stride == sizeof(dense_t) and cols % VECD == 0


cdef inline bint all_beside(const tile_view *views, const row_state *state, ptrdiff_t rows,
                            const dense_t *like) noexcept nogil:
    cdef int k
    for k in range(INPUTS):
        if (state.inputs[k].view >= 0
                and views[state.inputs[k].view].row_stride != sizeof(dense_t)):
            return False
    return views[state.out.view].row_stride == sizeof(dense_t) and rows >= BESIDE * VECD


cdef inline bint has_own_type(const row_state *state) noexcept nogil:
    return (state.inputs[0].same and (state.inputs[1].same or state.inputs[1].view < 0)
            and state.out.same)


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
    # Adjacent rows: where their operands begin, and bytes from column to column.
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


# --- Softmax and its logarithm, of rows that are short --------------------------------------------

cdef struct exponentials_t:
    # What passes of up to eight rows need: partial sums, exponentials, and what is found out.
    group_t group
    vecd parts[VECD * PARTS]
    vecd kept[MOST_KEPT]


cdef inline void sum_exponentials(exponentials_t *own, const row_state *state, const char *x,
                                  ptrdiff_t row_step, run_t *run, ptrdiff_t registers, vecd most,
                                  ptrdiff_t rows, ptrdiff_t cols) noexcept nogil:
    """By the second pass; `run` says how registers lie."""
    cdef const pass_t *step = &state.passes[1]
    cdef bint along = run.lane != EVERY
    cdef sums_t kind
    cdef ptrdiff_t k
    own.group.rows, own.group.doubt = rows, False
    own.group.sums[0].parts = own.group.sums[1].parts = own.parts
    own.group.values[0], own.group.values[2] = most, v_set(1)
    kind.reduction, kind.floats, kind.along, kind.rows = SUM, step.floats, along, rows
    kind.begun = False
    kind.parts = min(used_parts(along, registers), most_parts(along, False))
    begin_sums(own.group.sums, &kind)
    run.n, run.part_mask = registers, most_parts(along, False) - 1
    run.kept = own.kept if state.run_kept != NULL else NULL
    if not along:
        step.run(x, &own.group, run)
    for k in range(rows if along else 0):
        run.lane = k
        if k and run.kept != NULL:
            run.kept += registers
        step.run(x + k * row_step, &own.group, run)
    end_chunk(own.group.sums, &kind)
    step.finish(&own.group, cols, NULL)


cdef inline void write_exponentials(exponentials_t *own, const row_state *state, const char *x,
                                    ptrdiff_t row_step, char *out, ptrdiff_t out_row_step,
                                    run_t *run) noexcept nogil:
    """By the last pass, which takes what was kept or begins once more."""
    cdef run_fn todo = state.passes[state.n_passes - 1].run
    cdef ptrdiff_t k
    if state.run_kept != NULL:
        todo = state.run_kept
    if run.lane == EVERY:
        run.kept, run.out = own.kept, out
        todo(x, &own.group, run)
        return
    for k in range(own.group.rows):
        run.lane, run.kept, run.out = k, own.kept + k * run.n, out + k * out_row_step
        todo(x + k * row_step, &own.group, run)


cdef inline ptrdiff_t exponentials_along(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                         ptrdiff_t cols, const row_state *state,
                                         const dense_t *like) noexcept nogil:
    cdef const tile_view *first = &views[state.inputs[0].view]
    cdef const tile_view *out = &views[state.out.view]
    cdef exponentials_t own
    cdef run_t run
    cdef const char *x
    cdef ptrdiff_t n
    while row < rows:
        n = min(<ptrdiff_t>VECD, rows - row)
        x = element(first, row, 0)
        begin_run(&run, 0)
        run.step = run.out_step = VECD * sizeof(dense_t)
        sum_exponentials(&own, state, x, first.row_stride, &run, cols // VECD,
                         most_of_rows(<const dense_t *>x, first.row_stride, n, cols), n, cols)
        if own.group.doubt:
            return row
        write_exponentials(&own, state, x, first.row_stride, element(out, row, 0), out.row_stride,
                           &run)
        row += n
    return row


cdef inline bint exponentials_of_lines(exponentials_t *own, const lines_t *at,
                                       const row_state *state, ptrdiff_t cols,
                                       const dense_t *like) noexcept nogil:
    """Whether none of the rows is uncertain."""
    cdef vecw parts[LINES * STRIP]
    cdef vecw most
    cdef vecd values
    cdef run_t run
    cdef ptrdiff_t i, offset
    find_most_beside(parts, <const dense_t *>at.first, at.step, at.lines, cols)
    begin_run(&run, EVERY)
    run.step, run.out_step = at.step, at.out_step
    for i in range(at.lines * BESIDE):
        offset = i * VECD * sizeof(dense_t)
        if i % BESIDE == 0:
            most = folded_most(parts + i // BESIDE * STRIP)
        values = v_of_floats(w_low(most) if i % BESIDE == 0 else w_high(most))
        sum_exponentials(own, state, at.first + offset, 0, &run, cols, values, VECD, cols)
        if own.group.doubt:
            return False
        write_exponentials(own, state, at.first + offset, 0, at.out + offset, 0, &run)
    return True


cdef inline ptrdiff_t exponentials_beside(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                          ptrdiff_t cols, const row_state *state,
                                          const dense_t *like) noexcept nogil:
    cdef const tile_view *first = &views[state.inputs[0].view]
    cdef const tile_view *out = &views[state.out.view]
    cdef ptrdiff_t line = BESIDE * VECD * sizeof(dense_t), nbytes
    cdef char[COPIED] copies
    cdef exponentials_t own
    cdef lines_t at
    while row + BESIDE * VECD <= rows:
        # Results of rows before one that is uncertain are not there yet: a copy takes them.
        at.lines = min(min(<ptrdiff_t>LINES, (rows - row) // (BESIDE * VECD)),
                       COPIED // (cols * line))
        nbytes = at.lines * line
        copy_lines(element(first, row, 0), first.col_stride, <char *>copies, nbytes, nbytes, cols)
        at.first = at.out = <char *>copies
        at.step = at.out_step = nbytes
        if not exponentials_of_lines(&own, &at, state, cols, like):
            return row
        copy_lines(<char *>copies, nbytes, element(out, row, 0), out.col_stride, nbytes, cols)
        row += at.lines * BESIDE * VECD
    return row


cdef inline ptrdiff_t dense_exponentials(const tile_view *views, ptrdiff_t row, ptrdiff_t rows,
                                         ptrdiff_t cols, const void *args,
                                         const dense_t *like) noexcept nogil:
    """Softmax, or its logarithm."""
    cdef const row_state *state = <const row_state *>args
    if cols > MOST_COLUMNS or not has_own_type(state):
        return row
    if all_along(views, state, cols, like):
        return exponentials_along(views, row, rows, cols, state, like)
    if all_beside(views, state, rows - row, like):
        return exponentials_beside(views, row, rows, cols, state, like)
    return row
