"""Steps on results: kernels of pointwise nodes, and what they make of their numbers."""

from aclnn.kernels.products.product cimport (
    EXTRA,
    MOST_PARTS,
    MOST_READS,
    OPERANDS,
    finish_t,
    part_t,
    product_state,
)
from aclnn.kernels.programs cimport PROGRAM_OPERANDS, program_t, run_program
from aclnn.graph.runtime.kernel_abi cimport kernel_number, prepare_kernel, tile_kernel, tile_view

cdef enum:
    STEP_LINE = 64
    STEP_COLS = 1024  # that kernels without a program take at a time


cdef struct prepared_t:
    # Steps' numbers, and what a kernel makes of them.
    prepare_kernel prepare
    const void *state
    int n_numbers
    ptrdiff_t params


cdef struct steps_state:
    # A state whose parameters are prepared: alpha and beta come first.
    product_state product
    prepared_t prepared[MOST_PARTS]
    int n_prepared


cdef inline void prepare_steps(void *params, const void *args, const kernel_number *numbers,
                               int n_numbers) noexcept nogil:
    cdef const steps_state *state = <const steps_state *>args
    cdef const prepared_t *one
    cdef char *block = <char *>params
    cdef kernel_number *own = <kernel_number *>params
    cdef int n, k
    if state.product.scaled:
        own[0], own[1] = numbers[0], numbers[1]
        numbers += 2
    for n in range(state.n_prepared):
        one = &state.prepared[n]
        if one.prepare != NULL:
            one.prepare(block + one.params, one.state, numbers, one.n_numbers)
        else:
            own = <kernel_number *>(block + one.params)
            for k in range(one.n_numbers):
                own[k] = numbers[k]
        numbers += one.n_numbers


cdef inline ptrdiff_t set_steps(steps_state *stepped, tuple steps, int extras,
                                bint scaled) except -1:
    """Set steps on the results; the bytes of the parameters."""
    cdef product_state *state = &stepped.product
    cdef part_t *part
    cdef prepared_t *prepared
    cdef ptrdiff_t room = STEP_LINE if scaled else 0
    cdef int n, k
    cdef bint whole = len(steps[0]) == 3
    if not 0 < len(steps) <= MOST_PARTS:
        raise ValueError(f"a product takes 1 to {MOST_PARTS} steps, not {len(steps)}")
    state.finishes = True
    stepped.n_prepared = <int>len(steps)
    for n, (kernel, reads, numbers, *itemsize) in enumerate(steps):
        if len(reads) > (PROGRAM_OPERANDS - 1 if whole else MOST_READS):
            raise ValueError(f"{kernel.name}: steps on products read at most {MOST_READS} operands")
        prepared = &stepped.prepared[n]
        prepared.prepare = <prepare_kernel><size_t>kernel.prepare
        prepared.state = <const void *><size_t>kernel.state
        prepared.n_numbers, prepared.params = numbers, room
        size = kernel.params_size if prepared.prepare != NULL else 8 * numbers
        room += (size + STEP_LINE - 1) // STEP_LINE * STEP_LINE
        if whole:
            state.finish.program = <const program_t *><size_t>kernel.state
            state.finish.n_reads, state.finish.params = <int>len(reads), prepared.params
            for k in range(<int>len(reads)):
                state.finish.reads[k] = place_of(reads[k], extras)
            continue
        part = &state.finish.parts[n]
        state.finish.n_parts += 1
        part.run, part.state = <tile_kernel><size_t>kernel.fn, <const void *><size_t>kernel.state
        part.n_reads, part.params, part.size = <int>len(reads), prepared.params, itemsize[0]
        for k in range(<int>len(reads)):
            part.reads[k] = place_of(reads[k], extras)
    return max(room, 1)


cdef inline int place_of(int read, int extras) except -1:
    if read < 0:
        return 0
    return EXTRA + read if read < extras else OPERANDS + read - extras


cdef inline tile_view view_of_rows(char *data, ptrdiff_t step, ptrdiff_t size) noexcept nogil:
    cdef tile_view view
    view.data, view.row_stride, view.col_stride = data, step, size
    return view


cdef inline void run_finish(const finish_t *finish, const tile_view *sums, const tile_view *extras,
                            const tile_view *out, ptrdiff_t rows, ptrdiff_t cols,
                            const char *params) noexcept nogil:
    """Pointwise steps on float32 results, the last of which writes the output."""
    cdef tile_view views[PROGRAM_OPERANDS]
    cdef int k, which
    cdef ptrdiff_t i, begin
    if finish.program == NULL:
        for i in range(rows):
            begin = 0
            while begin < cols:
                run_parts(finish, sums, extras, out, i, begin,
                          min(<ptrdiff_t>STEP_COLS, cols - begin), params)
                begin += STEP_COLS
        return
    for k in range(finish.n_reads):
        which = finish.reads[k]
        views[k] = sums[0] if which < EXTRA else extras[which - EXTRA]
    views[finish.n_reads] = out[0]
    run_program(finish.program, views, rows, cols, params + finish.params, 0)


cdef inline tile_view element_of(const tile_view *view, ptrdiff_t row,
                                 ptrdiff_t col) noexcept nogil:
    return view_of_rows(view.data + row * view.row_stride + col * view.col_stride,
                        view.row_stride, view.col_stride)


cdef inline void run_parts(const finish_t *finish, const tile_view *sums, const tile_view *extras,
                           const tile_view *out, ptrdiff_t row, ptrdiff_t col, ptrdiff_t cols,
                           const char *params) noexcept nogil:
    """The same, kernel after kernel, of a part of a row."""
    cdef float[MOST_PARTS][STEP_COLS] made
    cdef tile_view views[MOST_READS + 1]
    cdef const part_t *part
    cdef int n, k, which
    for n in range(finish.n_parts):
        part = &finish.parts[n]
        for k in range(part.n_reads):
            which = part.reads[k]
            if which >= OPERANDS:
                views[k] = view_of_rows(<char *>made[which - OPERANDS], 0,
                                        finish.parts[which - OPERANDS].size)
            elif which >= EXTRA:
                views[k] = element_of(&extras[which - EXTRA], row, col)
            else:
                views[k] = element_of(sums, row, col)
        views[part.n_reads] = view_of_rows(<char *>made[n], 0, part.size)
        if n + 1 == finish.n_parts:
            views[part.n_reads] = element_of(out, row, col)
        part.run(views, 1, cols, part.state, params + part.params, NULL, 0)
