"""Casts, which are also every copy: of tiles, and of rounded results to an output's dtype."""

from aclnn.kernels.element cimport copy_elements, load_fn, store_fn
from aclnn.kernels.tile cimport (
    BLOCK,
    block_shape,
    block_t,
    is_column_dense,
    one_row,
    place,
    stream_bytes,
    transpose_block,
)
from aclnn.graph.runtime.kernel_abi cimport TILE_STREAM, tile_view

cdef enum:
    RECAST = 512  # elements of a block of results that are converted once more
    WIDEST = 16   # bytes of the largest element, and of the largest number that is computed in


cdef struct cast_state:
    int in_size
    int out_size
    int size                 # of the type by way of which it goes
    bint copy
    bint from_it             # the input has this type
    bint to_it               # the output has it
    load_fn load
    store_fn store


cdef inline void cast_tile(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                           const void *opaque, const void *params, void *scratch,
                           int flags) noexcept nogil:
    cdef const cast_state *state = <const cast_state *>opaque
    cdef block_t block
    cdef ptrdiff_t high, wide
    if rows > 1 and one_row(views, 2, cols):
        cols *= rows
        rows = 1
    block_shape(views, 2, rows, cols, BLOCK, &high, &wide)
    block.row = 0
    while block.row < rows:
        block.rows = min(high, rows - block.row)
        block.col = 0
        while block.col < cols:
            block.cols = min(wide, cols - block.col)
            cast_block(views, &block, state, flags)
            block.col += wide
        block.row += high


cdef inline void cast_block(const tile_view *views, const block_t *block, const cast_state *state,
                            int flags) noexcept nogil:
    cdef ptrdiff_t in_stride = views[0].col_stride, out_stride = views[1].col_stride
    cdef bint stream = flags & TILE_STREAM and out_stride == state.out_size
    cdef char *source
    cdef char *target
    cdef ptrdiff_t i
    if state.copy and is_column_dense(&views[0], state.in_size) and out_stride == state.in_size:
        transpose_block(place(&views[0], block), in_stride, place(&views[1], block),
                        views[1].row_stride, block.rows, block.cols, state.in_size)
        return
    for i in range(block.rows):
        source = place(&views[0], block) + i * views[0].row_stride
        target = place(&views[1], block) + i * views[1].row_stride
        if not state.copy:
            cast_row(source, in_stride, target, out_stride, block.cols, state, stream)
        elif stream and in_stride == out_stride:
            stream_bytes(target, source, block.cols * state.in_size)
        else:
            copy_elements(source, in_stride, target, out_stride, block.cols, state.in_size)


cdef inline void cast_row(const char *source, ptrdiff_t in_stride, char *target,
                          ptrdiff_t out_stride, ptrdiff_t n, const cast_state *state,
                          bint stream) noexcept nogil:
    """By way of a type that holds the elements of one of both, which they may have already."""
    cdef char buffer[WIDEST * BLOCK]
    cdef char rounded[WIDEST * BLOCK]
    if state.to_it and out_stride == state.size and not stream:
        state.load(source, in_stride, target, n)
        return
    if not (state.from_it and in_stride == state.size):
        state.load(source, in_stride, buffer, n)
        source = buffer
    if not stream:
        state.store(source, target, out_stride, n)
    elif state.to_it:
        stream_bytes(target, source, n * state.size)
    else:
        state.store(source, rounded, state.out_size, n)
        stream_bytes(target, rounded, n * state.out_size)


cdef inline void write_cast(const tile_view *view, const block_t *block, const cast_state *state,
                            const char *results, int flags) noexcept nogil:
    """Rounded results in the output's dtype."""
    cdef char *target = place(view, block)
    cdef bint stream = (flags & TILE_STREAM and block.rows == 1
                        and view.col_stride == state.out_size)
    cdef ptrdiff_t _i
    for _i in range(block.rows):
        cast_row(results, state.in_size, target, view.col_stride, block.cols, state, stream)
        results += block.cols * state.in_size
        target += view.row_stride
