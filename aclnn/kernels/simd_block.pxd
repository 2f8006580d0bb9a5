"""Blocks computed by a fast path: from operands in place if they are dense, else from copies."""

from libc.stdint cimport uint16_t, uintptr_t

from aclnn.kernels.cast cimport RECAST, cast_row, write_cast
from aclnn.kernels.computation cimport compute_state
from aclnn.kernels.element cimport copy_elements
from aclnn.kernels.recompute cimport (
    HALVES_IN_PLACE,
    MASKS_ROOM,
    MOST_OPERANDS,
    enqueue_found,
    pending_t,
    recompute_pending,
)
from aclnn.kernels.simd.loop_args cimport (
    PREFETCH_A,
    PREFETCH_B,
    PREFETCH_C,
    PREFETCH_FAR,
    PREFETCH_OUT,
    STAGED,
    hints_t,
    loop_args,
    params_t,
)
from aclnn.kernels.staging cimport keep_staged, lend_staging, staging_t
from aclnn.kernels.tile cimport (
    BLOCK,
    LINE,
    block_t,
    copy_bytes,
    is_column_dense,
    line_in,
    place,
    prefetch_row,
    transpose_block,
)
from aclnn.graph.runtime.kernel_abi cimport (
    TILE_PREFETCH_FAR,
    TILE_PREFETCH_NEAR,
    TILE_STREAM,
    tile_view,
)

cdef enum:
    # Elements of a block:
    IN_PLACE = 8192      # that is read and written in place; half precision has its own number
    CONVERTED = 1024     # that is read from conversions
    COPIED_BYTES = 1024  # that is read from copies, in bytes
    REPEATED_BYTES = 4096  # the same, where copies only repeat an element
    FILLED = 256         # of a row that is copied while the next ones are prefetched
    NO_ROW = -1


cdef struct copies_t:
    # A block of each operand that cannot be read in place. What is repeated along a row
    # stays for the whole row, whose number is kept.
    char buffers[MOST_OPERANDS][BLOCK * 4]
    ptrdiff_t repeated[MOST_OPERANDS]


cdef inline void compute_by_simd(const tile_view *views, const block_t *block,
                                 const compute_state *state, const params_t *params,
                                 hints_t *hints, pending_t *pending, copies_t *copies,
                                 staging_t *staging) noexcept nogil:
    """A block in one go, from operands where they lie if they are dense, else from buffers."""
    cdef char memory[BLOCK * 4 + LINE]
    cdef char *results = line_in(memory)
    cdef uint16_t hard[MASKS_ROOM]
    cdef const tile_view *out = &views[state.n_inputs]
    cdef bint direct = block.dense and state.cast.copy
    cdef bint copied
    cdef loop_args args
    cdef int found
    args.n = block.rows * block.cols
    args.params, args.hints, args.hard = params, hints, hard
    copied = take_inputs(&args, views, block, state, copies)
    args.out = place(out, block) if direct else results
    args.stream = direct and block.flags & TILE_STREAM and <uintptr_t>args.out % LINE == 0
    args.staging = args.staged_target = NULL
    if args.stream and not copied:  # else blocks are too small to recompute for each of them
        lend_staging(staging, &args)
    if block.flags & TILE_PREFETCH_FAR:
        args.prefetch |= PREFETCH_FAR
    elif block.flags & TILE_PREFETCH_NEAR and direct and state.all_alike and state.cast.copy:
        args.prefetch |= PREFETCH_OUT
    found = state.simd(&args)
    if found & STAGED:
        keep_staged(staging, &args)
    pending.target = args.out
    if block.dense and not direct:
        pending.target = place(out, block)
        write_cast(out, block, &state.cast, results, block.flags)
    if found:
        enqueue_found(&args, found, pending)
    if found & STAGED or not block.dense:
        recompute_pending(pending)
    if not block.dense:
        scatter(results, out, block, state)


cdef inline bint take_inputs(loop_args *args, const tile_view *views, const block_t *block,
                             const compute_state *state, copies_t *copies) noexcept nogil:
    """Take the inputs' places, and which of them are prefetched; whether any had to be copied."""
    cdef const tile_view *out = &views[state.n_inputs]
    cdef const char *inputs[MOST_OPERANDS]
    cdef bint copied = False
    cdef int k
    args.prefetch = 0
    for k in range(state.n_inputs):
        inputs[k] = place(&views[k], block)
        if not (block.dense and in_place(&views[k], out, state, k)):
            fill(&views[k], block, state, k, copies)
            inputs[k] = copies.buffers[k]
            copied = True
        elif block.flags & TILE_PREFETCH_NEAR and (views[k].row_stride or not out.row_stride):
            # A row that is repeated is near.
            args.prefetch |= PREFETCH_A if k == 0 else PREFETCH_B if k == 1 else PREFETCH_C
    args.a = inputs[0]
    args.b = inputs[min(1, state.n_inputs - 1)]
    args.c = inputs[state.n_inputs - 1]
    return copied


cdef inline ptrdiff_t simd_width(const tile_view *views, const compute_state *state) noexcept nogil:
    """Elements of a row that are computed in one go."""
    if not state.cast.copy:
        return RECAST
    if not all_in_place(views, state):
        return filled_width(views, state)
    # Recomputing what is hard to round is faster for many at a time.
    return IN_PLACE if state.result_size == 4 else HALVES_IN_PLACE


cdef inline bint in_place(const tile_view *view, const tile_view *out, const compute_state *state,
                          int k) noexcept nogil:
    """Whether an input's row can be read in place, and does not overlap the results.

    Operands of recomputed results are read again, so results must not have replaced them.
    """
    cdef ptrdiff_t size = state.read_size
    if not (state.all_alike or state.dense_input[k]):
        return False
    return view.col_stride == size and view.data != out.data


cdef inline bint all_in_place(const tile_view *views, const compute_state *state) noexcept nogil:
    cdef const tile_view *out = &views[state.n_inputs]
    cdef int k
    for k in range(state.n_inputs):
        if not in_place(&views[k], out, state, k):
            return False
    return out.col_stride == state.cast.out_size


cdef inline ptrdiff_t filled_width(const tile_view *views,
                                   const compute_state *state) noexcept nogil:
    """Elements of a block when some operand is copied: few, so that fetching, computing and storing
    take turns; more where nothing has to be fetched."""
    cdef int k
    if not state.all_alike:
        return CONVERTED
    for k in range(state.n_inputs):
        if views[k].col_stride != 0 and not in_place(&views[k], &views[state.n_inputs], state, k):
            return COPIED_BYTES // state.result_size
    return repeated_width(state)


cdef inline ptrdiff_t repeated_width(const compute_state *state) noexcept nogil:
    return REPEATED_BYTES // state.result_size if state.all_alike else CONVERTED


cdef inline void fill(const tile_view *view, const block_t *block, const compute_state *state,
                      int k, copies_t *copies) noexcept nogil:
    """A dense copy of a block: as it is where all operands are alike, else in float."""
    cdef const char *source = place(view, block)
    cdef char *buffer = copies.buffers[k]
    cdef ptrdiff_t size = state.read_size
    cdef ptrdiff_t _i
    if view.col_stride == 0 and block.rows == 1 and block.widest <= repeated_width(state):
        if copies.repeated[k] != block.row:
            repeat(source, buffer, block.widest, state, k)
        copies.repeated[k] = block.row
        return
    copies.repeated[k] = NO_ROW
    for _i in range(block.rows):
        fill_row(source, view.col_stride, buffer, block, state, k)
        source += view.row_stride
        buffer += block.cols * size


cdef inline void repeat(const char *source, char *buffer, ptrdiff_t n, const compute_state *state,
                        int k) noexcept nogil:
    """Fill a buffer with n times one element."""
    if state.all_alike:
        copy_elements(source, 0, buffer, state.result_size, n, state.result_size)
    else:
        state.loads[k](source, 0, buffer, n)


cdef inline void fill_row(const char *source, ptrdiff_t stride, char *buffer, const block_t *block,
                          const compute_state *state, int k) noexcept nogil:
    """By parts, so that what is asked for and what is read take turns."""
    cdef ptrdiff_t size = state.read_size
    cdef ptrdiff_t part = FILLED if block.flags & TILE_PREFETCH_FAR else block.cols
    cdef ptrdiff_t n, begin = 0
    while begin < block.cols:
        n = min(part, block.cols - begin)
        if block.flags & TILE_PREFETCH_FAR:
            prefetch_row(source, n * stride)
        if state.all_alike:
            copy_elements(source, stride, buffer, size, n, size)
        else:
            state.loads[k](source, stride, buffer, n)
        source += n * stride
        buffer += n * size
        begin += n


cdef inline void scatter(const char *results, const tile_view *out, const block_t *block,
                         const compute_state *state) noexcept nogil:
    """Rows of results to where they belong."""
    cdef char recast[BLOCK * 16]
    cdef char *target = place(out, block)
    cdef ptrdiff_t _i, size = state.cast.out_size
    if not state.cast.copy:
        cast_row(results, state.result_size, recast, size, block.rows * block.cols, &state.cast,
                 False)
        results = recast
    if is_column_dense(out, size):
        transpose_block(results, block.cols * size, target, out.col_stride, block.cols, block.rows,
                        size)
        return
    for _i in range(block.rows):
        if out.col_stride == size:
            copy_bytes(target, results, block.cols * size)
        else:
            copy_elements(results, size, target, out.col_stride, block.cols, size)
        target += out.row_stride
        results += block.cols * size
