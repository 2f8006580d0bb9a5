"""Blocks by plain loops: loaded into what is computed in, computed there, rounded when stored."""

from aclnn.kernels.cast cimport RECAST, WIDEST, cast_row, cast_state, write_cast
from aclnn.kernels.computation cimport compute_state
from aclnn.kernels.formula_loops cimport MOST_INPUTS
from aclnn.kernels.tile cimport (
    BLOCK,
    BLOCK_OF_MANY,
    LINE,
    block_t,
    line_in,
    place,
    prefetch_row,
    stream_bytes,
)
from aclnn.graph.runtime.kernel_abi cimport TILE_PREFETCH_FAR, TILE_STREAM, tile_view

cdef enum:
    # Elements of a block whose results bypass the cache: few, so that reads and writes take turns.
    STREAMED = 512
    ROOM = 3 * BLOCK * 8  # bytes of the blocks of all inputs and of the results


cdef inline ptrdiff_t loop_block_limit(const compute_state *state) noexcept nogil:
    """Elements of a block, at most, so that there is room for all operands."""
    return BLOCK if (state.n_inputs + 1) * state.number_size * BLOCK <= ROOM else BLOCK_OF_MANY


cdef inline void compute_by_loops(const tile_view *views, const block_t *block,
                                  const compute_state *state, const void *params) noexcept nogil:
    cdef int flags = block.flags
    cdef char memory[ROOM + LINE]
    cdef char *buffers = line_in(memory)
    cdef ptrdiff_t room = loop_block_limit(state) * state.number_size
    cdef const void *inputs[MOST_INPUTS]
    cdef const tile_view *out = &views[state.n_inputs]
    cdef char *results = buffers + state.n_inputs * room
    cdef bint direct = block.rows == 1 and writes_in_place(views, state, flags)
    cdef int k
    for k in range(state.n_inputs):
        if flags & TILE_PREFETCH_FAR and block.rows == 1:
            prefetch_row(place(&views[k], block), block.cols * views[k].col_stride)
        inputs[k] = read_block(&views[k], block, state, k, buffers + k * room)
    if direct:
        results = place(out, block)
    state.loop(inputs, results, block.rows * block.cols, params)
    if not direct:
        write_block(out, block, state, results, flags)


cdef inline ptrdiff_t loop_width(const tile_view *views, ptrdiff_t cols, const compute_state *state,
                                 int flags) noexcept nogil:
    """Elements of a row that are computed in one go."""
    cdef ptrdiff_t most = loop_block_limit(state)
    if nothing_to_convert(views, state, flags):
        return cols  # no buffer limits what is read and written in place
    if not state.cast.copy:
        return min(most, <ptrdiff_t>RECAST)
    return min(most, <ptrdiff_t>STREAMED) if flags & TILE_STREAM else most


cdef inline bint nothing_to_convert(const tile_view *views, const compute_state *state,
                                    int flags) noexcept nogil:
    cdef int k
    for k in range(state.n_inputs):
        if not state.dense_input[k] or views[k].col_stride != state.number_size:
            return False
    return writes_in_place(views, state, flags)


cdef inline bint writes_in_place(const tile_view *views, const compute_state *state,
                                 int flags) noexcept nogil:
    """Whether a row of results has the type that is computed in, is stored like any other memory,
    and overlaps no input: compilers make fast loops of what does not overlap."""
    cdef const tile_view *out = &views[state.n_inputs]
    cdef int k
    for k in range(state.n_inputs):
        if views[k].data == out.data:
            return False
    return (state.dense_result and state.cast.copy and out.col_stride == state.number_size
            and not flags & TILE_STREAM)


cdef inline const char *read_block(const tile_view *view, const block_t *block,
                                   const compute_state *state, int k, char *buffer) noexcept nogil:
    """The block of an input as what is computed in: its own memory, or converted into `buffer`."""
    cdef char *source = place(view, block)
    cdef char *target = buffer
    cdef ptrdiff_t _i
    if state.dense_input[k] and block.rows == 1 and view.col_stride == state.number_size:
        return source
    for _i in range(block.rows):
        if state.converted[k]:
            load_converted(source, view.col_stride, target, block.cols, state, k)
        else:
            state.loads[k](source, view.col_stride, target, block.cols)
        source += view.row_stride
        target += block.cols * state.number_size
    return buffer


cdef inline void load_converted(const char *source, ptrdiff_t stride, char *target, ptrdiff_t n,
                                const compute_state *state, int k) noexcept nogil:
    """By way of the dtype that an input is converted to first."""
    cdef char converted[WIDEST * BLOCK]
    cdef const cast_state *cast = &state.casts[k]
    cast_row(source, stride, converted, cast.out_size, n, cast, False)
    state.loads[k](converted, cast.out_size, target, n)


cdef inline void write_block(const tile_view *view, const block_t *block,
                             const compute_state *state, const char *buffer,
                             int flags) noexcept nogil:
    cdef char *target = place(view, block)
    cdef char rounded[WIDEST * BLOCK]
    cdef ptrdiff_t i, size = state.number_size
    if not state.cast.copy:
        if not state.dense_result:
            state.store(buffer, rounded, state.result_size, block.rows * block.cols)
            buffer = rounded
        write_cast(view, block, &state.cast, buffer, flags)
        return
    if flags & TILE_STREAM and block.rows == 1 and view.col_stride == state.result_size:
        if state.dense_result:
            stream_bytes(target, buffer, block.cols * size)
        else:
            state.store(buffer, rounded, state.result_size, block.cols)
            stream_bytes(target, rounded, block.cols * state.result_size)
        return
    for i in range(block.rows):
        state.store(buffer + i * block.cols * size, target + i * view.row_stride, view.col_stride,
                    block.cols)
