"""Blocks by plain loops: loaded into float or double, computed there, rounded when stored."""

from aclnn.kernels.cast cimport RECAST, write_cast
from aclnn.kernels.computation cimport compute_state, double_loop, float_loop
from aclnn.kernels.element cimport unaligned_double, unaligned_float
from aclnn.kernels.formulas cimport real
from aclnn.kernels.tile cimport (
    BLOCK,
    LINE,
    TILE_PREFETCH_FAR,
    TILE_STREAM,
    block_t,
    line_in,
    place,
    prefetch_row,
    stream_bytes,
    tile_view,
)

cdef enum:
    # Elements of a block whose results bypass the cache: few, so that reads and writes take turns.
    STREAMED = 512


cdef inline void compute_by_loops(const tile_view *views, const block_t *block,
                                  const compute_state *state, const double *scalars,
                                  real like) noexcept nogil:
    cdef int flags = block.flags
    cdef char memory[3 * BLOCK * 8 + LINE]
    cdef char *buffers = line_in(memory)
    cdef const char *inputs[2]
    cdef const tile_view *out = &views[state.n_inputs]
    cdef ptrdiff_t count = block.rows * block.cols
    cdef ptrdiff_t room = BLOCK * sizeof(real)
    cdef char *result = buffers + 2 * room
    cdef bint direct = block.rows == 1 and writes_in_place(out, state, sizeof(real), flags)
    cdef int k
    inputs[0] = inputs[1] = buffers + room
    for k in range(state.n_inputs):
        if flags & TILE_PREFETCH_FAR and block.rows == 1:
            prefetch_row(place(&views[k], block), block.cols * views[k].col_stride)
        inputs[k] = read_block(&views[k], block, state, k, buffers + k * room, sizeof(real))
    if direct:
        result = place(out, block)
    if real is float:
        (<float_loop>state.loop)(
            <const unaligned_float *>inputs[0], <const unaligned_float *>inputs[1],
            <unaligned_float *>result, count, scalars)
    else:
        (<double_loop>state.loop)(
            <const unaligned_double *>inputs[0], <const unaligned_double *>inputs[1],
            <unaligned_double *>result, count, scalars)
    if not direct:
        write_block(out, block, state, result, sizeof(real), flags)


cdef inline ptrdiff_t loop_width(const tile_view *views, ptrdiff_t cols, const compute_state *state,
                                 ptrdiff_t size, int flags) noexcept nogil:
    """Elements of a row that are computed in one go; `size` is of what is computed in."""
    if nothing_to_convert(views, state, size, flags):
        return cols  # no buffer limits what is read and written where it lies
    if not state.stores:
        return RECAST
    return STREAMED if flags & TILE_STREAM else BLOCK


cdef inline bint nothing_to_convert(const tile_view *views, const compute_state *state,
                                    ptrdiff_t size, int flags) noexcept nogil:
    cdef int k
    for k in range(state.n_inputs):
        if not state.dense_input[k] or views[k].col_stride != size:
            return False
    return writes_in_place(&views[state.n_inputs], state, size, flags)


cdef inline bint writes_in_place(const tile_view *out, const compute_state *state, ptrdiff_t size,
                                 int flags) noexcept nogil:
    """Whether a row of results has the compute type and is stored like any other memory."""
    return (state.dense_result and state.cast.copy and out.col_stride == size
            and not flags & TILE_STREAM)


cdef inline const char *read_block(const tile_view *view, const block_t *block,
                                   const compute_state *state, int k, char *buffer,
                                   ptrdiff_t size) noexcept nogil:
    """The block of an input in the compute type: its own memory, or converted into `buffer`."""
    cdef char *source = place(view, block)
    cdef ptrdiff_t i
    if state.dense_input[k] and block.rows == 1 and view.col_stride == size:
        return source
    for i in range(block.rows):
        state.loads[k](source + i * view.row_stride, view.col_stride,
                       buffer + i * block.cols * size, block.cols)
    return buffer


cdef inline void write_block(const tile_view *view, const block_t *block,
                             const compute_state *state, const char *buffer, ptrdiff_t size,
                             int flags) noexcept nogil:
    cdef char *target = place(view, block)
    cdef char rounded[BLOCK * 8]
    cdef ptrdiff_t i
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
