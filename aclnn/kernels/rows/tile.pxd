"""A tile of rows: panel by panel, each in passes, each pass block by block."""

from aclnn.kernels.rows.blocks cimport (
    displaces_itself,
    gather_panel,
    is_beside,
    is_in_place,
    lane_stride,
    out_place,
    read_block,
    read_wide,
    scatter_panel,
    step_in_place,
    write_block,
    write_result,
)
from aclnn.kernels.rows.sums cimport (
    CHUNK,
    MOST_OR_NAN,
    NOTHING,
    begin_chunk,
    begin_sums,
    end_chunk,
    most_parts,
    reduction_t,
    sums_t,
    used_parts,
)
from aclnn.kernels.rows.vecd cimport VECD, v_canonical, vecd
from aclnn.kernels.rows.walk cimport (
    ACROSS,
    BLOCK,
    COLUMNS,
    EVERY,
    GIVEN,
    GROUPS,
    INPUTS,
    KEPT,
    RESIDENT,
    RESULTS,
    element,
    goes_along,
    group_t,
    lay_out,
    operand_t,
    output_t,
    pass_t,
    row_state,
    rows_along,
    run_fn,
    run_t,
    spot_t,
    walk_t,
)
from aclnn.graph.runtime.kernel_abi cimport kernel_number, tile_view


cdef inline void row_tile(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                          const void *opaque, const void *params, void *scratch,
                          int flags) noexcept nogil:
    cdef const row_state *state = <const row_state *>opaque
    cdef walk_t walk
    cdef ptrdiff_t row = 0, end
    if state.dense != NULL:
        row = state.dense(views, row, rows, cols, state, NULL)
    if row == rows:
        return
    begin_walk(&walk, views, rows, cols, state, <char *>scratch)
    while row < rows:
        # What it has left out are uncertain rows, or all.
        end = rows if state.dense == NULL else min(rows, row + GROUPS * VECD)
        walk_rows(&walk, row, end, <const kernel_number *>params)
        row = end if state.dense == NULL else state.dense(views, end, rows, cols, state, NULL)


cdef inline void walk_rows(walk_t *walk, ptrdiff_t row, ptrdiff_t end,
                           const kernel_number *numbers) noexcept nogil:
    cdef int p
    while row < end:
        row = begin_panel(walk, row, end)
        for p in range(walk.state.n_passes):
            run_pass(walk, p, numbers)
        write_results(walk)


cdef inline void begin_walk(walk_t *walk, const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                            const row_state *state, char *scratch) noexcept nogil:
    walk.views, walk.state, walk.cols = views, state, cols
    lay_out(&walk.work, state, rows, cols, scratch)
    walk.begun = False
    walk.along = goes_along(views, state, rows, cols)
    walk.wide = BLOCK * VECD if walk.along else ACROSS
    walk.registers = (cols + VECD - 1) // VECD if walk.along else cols
    walk.rows = rows_along(walk.registers, state) if walk.along else VECD
    walk.parts = used_parts(walk.along, walk.registers)


cdef inline ptrdiff_t begin_panel(walk_t *walk, ptrdiff_t row, ptrdiff_t rows) noexcept nogil:
    """The next groups of rows, with what is given for these; the row behind them."""
    cdef ptrdiff_t most = 1 if walk.along else GROUPS, kept = 0
    cdef group_t *group
    cdef int k
    walk.groups = 0
    walk.first = not walk.begun
    walk.begun = True
    walk.whole = not walk.along and rows - row >= GROUPS * VECD
    while walk.groups < most and row < rows:
        group = &walk.work.groups[walk.groups]
        group.row = row
        group.rows = min(walk.rows, rows - row)
        group.doubt = False
        for k in range(GIVEN):
            read_lanes(walk, group, &walk.state.given[k], &group.given[k])
        row += group.rows
        walk.groups += 1
        kept += group.rows if walk.along else 1
    walk.keep = walk.state.run_kept != NULL and kept * walk.registers <= KEPT
    return row


cdef inline void read_lanes(const walk_t *walk, group_t *group, const operand_t *operand,
                            vecd *lanes) noexcept nogil:
    """The first element of each row."""
    cdef spot_t spot
    spot.row, spot.rows, spot.col, spot.cols = group.row, group.rows, 0, 1
    spot.n, spot.along, spot.full = 1, False, group.rows == VECD
    read_wide(walk.views, operand, &spot, lanes, <char *>walk.work.raw)


cdef inline sums_t kind_of(const walk_t *walk, const pass_t *step,
                           const group_t *group) noexcept nogil:
    cdef sums_t kind
    kind.reduction, kind.floats = step.reduction, step.floats
    kind.along, kind.rows = walk.along, group.rows
    kind.begun = walk.along and step.many
    kind.parts = min(walk.parts, most_parts(walk.along, step.few))
    return kind


cdef inline void begin_pass(walk_t *walk, const pass_t *step) noexcept nogil:
    cdef sums_t kind
    cdef ptrdiff_t g
    for g in range(walk.groups):
        if step.from_first:
            read_lanes(walk, &walk.work.groups[g], &walk.state.inputs[0],
                       &walk.work.groups[g].values[0])
        if step.reduction != NOTHING:
            kind = kind_of(walk, step, &walk.work.groups[g])
            begin_sums(walk.work.groups[g].sums, &kind)


cdef inline void run_pass(walk_t *walk, int number, const kernel_number *numbers) noexcept nogil:
    cdef const pass_t *step = &walk.state.passes[number]
    cdef spot_t spot
    cdef ptrdiff_t g
    if step.if_doubtful and not any_doubt(walk):
        return
    begin_pass(walk, step)
    spot.along = walk.along
    spot.col = 0
    while spot.col < walk.cols:
        spot.cols = min(walk.wide, walk.cols - spot.col)
        spot.n = (spot.cols + VECD - 1) // VECD if walk.along else spot.cols
        run_blocks(walk, number, &spot)
        spot.col += spot.cols
    if step.finish != NULL:
        for g in range(walk.groups):
            if is_due(step, &walk.work.groups[g]):
                step.finish(&walk.work.groups[g], walk.cols, numbers)


cdef inline bint is_due(const pass_t *step, const group_t *group) noexcept nogil:
    return group.doubt or not step.if_doubtful


cdef inline bint any_doubt(const walk_t *walk) noexcept nogil:
    cdef ptrdiff_t g
    for g in range(walk.groups):
        if walk.work.groups[g].doubt:
            return True
    return False


cdef inline bint is_chunk_end(reduction_t reduction, ptrdiff_t col, ptrdiff_t cols) noexcept nogil:
    """Whether partial sums are added up before that column; maxima lose nothing in any number."""
    if reduction == NOTHING:
        return False
    return col == cols or (reduction != MOST_OR_NAN and col % CHUNK == 0)


cdef inline void run_blocks(walk_t *walk, int number, spot_t *spot) noexcept nogil:
    """The same columns of all groups: weights are read once, and lines of memory as a whole."""
    cdef const pass_t *step = &walk.state.passes[number]
    cdef bint last = spot.col + spot.cols == walk.cols
    cdef bint ends = is_chunk_end(step.reduction, spot.col + spot.cols, walk.cols)
    cdef run_t run
    cdef sums_t kind
    cdef ptrdiff_t g
    spot.row, spot.rows = walk.work.groups[0].row, VECD
    spot.full = not walk.along or spot.cols % VECD == 0
    if step.columns:
        read_columns(walk, spot, &run)
    run.n = spot.n
    run.part_mask = most_parts(walk.along, step.few) - 1
    run.live = spot.cols % VECD
    run.partial = -1 if spot.full else run.n - 1
    run.rows = 1
    run.begins = (walk.along and step.many
                  and (spot.col == 0 or is_chunk_end(step.reduction, spot.col, walk.cols)))
    stage_panel(walk, number, spot)
    for g in range(walk.groups):
        if not is_due(step, &walk.work.groups[g]):
            continue
        run_group(walk, number, spot, &run, g)
        if ends:
            kind = kind_of(walk, step, &walk.work.groups[g])
            end_chunk(walk.work.groups[g].sums, &kind)
            if not last:
                begin_chunk(walk.work.groups[g].sums, &kind)
    if step.writes and in_panel(walk, walk.state.out.view, walk.state.out.same):
        spot.row = walk.work.groups[0].row
        scatter_panel(&walk.views[walk.state.out.view], spot, <char *>walk.work.made,
                      walk.state.size)


cdef inline void read_columns(walk_t *walk, const spot_t *spot, run_t *run) noexcept nogil:
    """Operands of which all rows have the same: for a whole tile, where there is room for them."""
    cdef bint resident = walk.along and walk.registers <= RESIDENT
    cdef ptrdiff_t place = spot.col // VECD if resident else 0
    cdef vecd *columns
    cdef int k
    for k in range(COLUMNS):
        columns = walk.work.columns[k] + place
        if walk.first or not resident:
            read_wide(walk.views, &walk.state.columns[k], spot, columns,
                      <char *>walk.work.raw)
        run.columns[k] = columns


cdef inline bint in_panel(const walk_t *walk, int view, bint same) noexcept nogil:
    """Whether rows are adjacent, so that lines of memory hold parts of all groups,
    and would be gone before the next group reads them."""
    return (walk.whole and same and is_beside(&walk.views[view], walk.state.size)
            and displaces_itself(&walk.views[view]))


cdef inline bint is_kept(const walk_t *walk, int number) noexcept nogil:
    """Whether the pass before left what this one needs."""
    return walk.keep and number == walk.state.n_passes - 1


cdef inline void stage_panel(const walk_t *walk, int number, const spot_t *spot) noexcept nogil:
    cdef int k
    if is_kept(walk, number):
        return
    for k in range(walk.state.passes[number].inputs):
        if in_panel(walk, walk.state.inputs[k].view, walk.state.inputs[k].same):
            gather_panel(&walk.views[walk.state.inputs[k].view], spot,
                         <char *>walk.work.staged[k], walk.state.size)


cdef inline const char *input_block(const walk_t *walk, int k, const spot_t *spot, ptrdiff_t g,
                                    ptrdiff_t *step) noexcept nogil:
    cdef const operand_t *operand = &walk.state.inputs[k]
    if in_panel(walk, operand.view, operand.same):
        step[0] = VECD * operand.size
        return <const char *>walk.work.staged[k] + g * ACROSS * step[0]
    return read_block(walk.views, operand, spot, <char *>walk.work.staged[k],
                      <char *>walk.work.raw, step)


cdef inline void run_group(walk_t *walk, int number, spot_t *spot, run_t *run,
                           ptrdiff_t g) noexcept nogil:
    cdef group_t *group = &walk.work.groups[g]
    cdef ptrdiff_t lane
    if not walk.along:
        spot.row, spot.rows, spot.full = group.row, group.rows, group.rows == VECD
        run.lane = EVERY
        run.kept = walk.work.kept + g * walk.registers + spot.col if walk.keep else NULL
        run_block(walk, number, spot, run, g)
        return
    spot.rows, spot.full = 1, spot.cols % VECD == 0
    if walk.state.passes[number].many and is_in_place(walk.views, &walk.state.inputs[0], spot):
        spot.row, run.lane = group.row, 0
        run.rows, run.row_step = group.rows, walk.views[walk.state.inputs[0].view].row_stride
        run_block(walk, number, spot, run, g)
        return
    if are_in_place(walk, number, spot):
        run_lanes(walk, number, spot, run, group)
        return
    for lane in range(group.rows):
        spot.row = group.row + lane
        run.lane = lane
        run.kept = walk.work.kept + lane * walk.registers + spot.col // VECD if walk.keep else NULL
        run_block(walk, number, spot, run, g)


cdef inline bint are_in_place(const walk_t *walk, int number, const spot_t *spot) noexcept nogil:
    """Whether a pass reads and writes registers along rows where they lie."""
    cdef const pass_t *step = &walk.state.passes[number]
    cdef const output_t *out = &walk.state.out
    cdef int k
    for k in range(step.inputs):
        if not is_in_place(walk.views, &walk.state.inputs[k], spot):
            return False
    return not step.writes or (
        out.same and spot.full and lane_stride(&walk.views[out.view], True) == out.size)


cdef inline void run_lanes(walk_t *walk, int number, spot_t *spot, run_t *run,
                           group_t *group) noexcept nogil:
    """A group's rows one after the other, of which only the places differ."""
    cdef const row_state *state = walk.state
    cdef const pass_t *step = &state.passes[number]
    cdef run_fn todo = state.run_kept if is_kept(walk, number) else step.run
    cdef const tile_view *view = &walk.views[state.inputs[0].view]
    cdef const char *first = element(view, group.row, spot.col)
    cdef ptrdiff_t first_row = view.row_stride, second_row = 0, out_row = 0
    run.step = step_in_place(view, True)
    run.kept = walk.work.kept + spot.col // VECD if walk.keep else NULL
    if step.inputs == INPUTS:
        view = &walk.views[state.inputs[1].view]
        run.second, run.second_step = element(view, group.row, spot.col), step_in_place(view, True)
        second_row = view.row_stride
    if step.writes:
        view = &walk.views[state.out.view]
        run.out, run.out_step = element(view, group.row, spot.col), step_in_place(view, True)
        out_row = view.row_stride
    for run.lane in range(group.rows):
        todo(first, group, run)
        first += first_row
        run.second += second_row
        run.out += out_row
        if walk.keep:
            run.kept += walk.registers


cdef inline void run_block(walk_t *walk, int number, const spot_t *spot, run_t *run,
                           ptrdiff_t g) noexcept nogil:
    cdef const row_state *state = walk.state
    cdef const pass_t *step = &state.passes[number]
    cdef group_t *group = &walk.work.groups[g]
    cdef char *made = <char *>walk.work.made
    cdef const char *first = NULL
    cdef run_fn todo = state.run_kept if is_kept(walk, number) else step.run
    if not is_kept(walk, number):
        first = input_block(walk, 0, spot, g, &run.step)
    if step.inputs == INPUTS:
        run.second = input_block(walk, 1, spot, g, &run.second_step)
    if not step.writes:
        todo(first, group, run)
        return
    if in_panel(walk, state.out.view, state.out.same):
        run.out_step = VECD * state.size
        run.out = made + g * ACROSS * run.out_step
        todo(first, group, run)
        return
    run.out = out_place(walk.views, &state.out, spot, made, &run.out_step)
    todo(first, group, run)
    if run.out == made:
        write_block(walk.views, &state.out, spot, made, <char *>walk.work.raw)


cdef inline void write_results(const walk_t *walk) noexcept nogil:
    cdef group_t *group
    cdef ptrdiff_t g
    cdef int k
    for g in range(walk.groups):
        group = &walk.work.groups[g]
        for k in range(RESULTS):
            if walk.state.results[k].view >= 0:
                write_result(walk.views, &walk.state.results[k], group.row, group.rows,
                             v_canonical(group.results[k]), <char *>walk.work.raw)
