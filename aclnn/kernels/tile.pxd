"""A tile and its blocks: rectangles whose buffers stay in the first-level cache."""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport llabs

from aclnn.graph.runtime.kernel_abi cimport tile_view

cdef extern from "stream_store.h" nogil:
    void stream_bytes(char *, const char *, ptrdiff_t) noexcept
    void stream_fence() noexcept
    void copy_bytes(char *, const char *, ptrdiff_t) noexcept
    void prefetch "__builtin_prefetch"(const char *) noexcept

cdef extern from * nogil:
    """
    #define prefetch_behind(p) __builtin_prefetch(p, 0, 2)
    """
    void prefetch_behind(const char *) noexcept  # into the cache behind the nearest one

cdef extern from "transpose.h" nogil:
    void transpose_block(const char *, ptrdiff_t, char *, ptrdiff_t, ptrdiff_t, ptrdiff_t,
                         ptrdiff_t) noexcept

cdef enum:
    LINE = 64     # bytes of a cache line
    # Bytes from what is read to what is prefetched into the nearest cache; into the one behind it,
    # from twice as far: a page.
    AHEAD = 2048
    # Elements of a block:
    BLOCK = 1024  # at most, where it has buffers: three of them in double are 24 KiB
    PATCH = 32    # side of a square block, for operands that are transposed
    # The same of larger numbers, or of more than two operands that are read.
    BLOCK_OF_MANY = 256
    PATCH_OF_MANY = 16


cdef struct block_t:
    # A rectangle of a tile.
    ptrdiff_t row, col, rows, cols
    ptrdiff_t widest         # columns of the widest one
    int flags                # of the tile
    bint dense               # its rows are: results need not be spread


cdef inline char *place(const tile_view *view, const block_t *block) noexcept nogil:
    return view.data + block.row * view.row_stride + block.col * view.col_stride


cdef inline char *line_in(char *memory) noexcept nogil:
    """Begin of the first line of the cache."""
    return memory + (-<ptrdiff_t><uintptr_t>memory & (LINE - 1))


cdef inline ptrdiff_t to_line(const tile_view *out, ptrdiff_t row) noexcept nogil:
    """Elements of a dense row before its first line boundary."""
    cdef char *start = out.data + row * out.row_stride
    cdef ptrdiff_t size = out.col_stride
    if size <= 0 or size > 8:
        return 0
    return (line_in(start) - start) // size


cdef inline bint one_row(const tile_view *views, int n, ptrdiff_t cols) noexcept nogil:
    """Whether the rows of every operand follow one another without a break."""
    cdef int k
    for k in range(n):
        if views[k].row_stride != cols * views[k].col_stride:
            return False
    return True


cdef inline void block_shape(const tile_view *views, int n, ptrdiff_t rows, ptrdiff_t cols,
                             ptrdiff_t most, ptrdiff_t *high, ptrdiff_t *wide) noexcept nogil:
    """Long rows as they are, short rows together, square patches where an operand is transposed.

    Blocks have at most so many elements: BLOCK, or BLOCK_OF_MANY.
    """
    cdef int k
    high[0] = 1
    wide[0] = most
    if rows == 1:
        return
    for k in range(n):
        if is_transposed(&views[k]):
            high[0] = wide[0] = PATCH if most == BLOCK else PATCH_OF_MANY
            return
    if cols < most:
        wide[0] = cols
        high[0] = most // cols


cdef inline bint is_transposed(const tile_view *view) noexcept nogil:
    return view.row_stride != 0 and llabs(view.row_stride) < llabs(view.col_stride)


cdef inline bint is_column_dense(const tile_view *view, ptrdiff_t size) noexcept nogil:
    """Whether elements of this size follow one another along a column."""
    return view.row_stride == size and is_transposed(view)


cdef inline void prefetch_row(const char *source, ptrdiff_t nbytes) noexcept nogil:
    """Prefetch what later blocks will read; nothing, where the stride is not positive."""
    cdef uintptr_t ahead = <uintptr_t>source + AHEAD
    cdef ptrdiff_t i = 0
    while i < nbytes:
        prefetch(<const char *>(ahead + i))
        prefetch_behind(<const char *>(ahead + AHEAD + i))
        i += LINE
