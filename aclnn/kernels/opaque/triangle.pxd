"""Triangles of matrices; elsewhere there are zeros."""

from libc.stdint cimport uint64_t

from aclnn.kernels.element cimport copy_elements
from aclnn.kernels.opaque.walk cimport (
    elements_of,
    opaque_state,
    walk_on,
    walk_over,
    walk_t,
    walk_to,
)
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context


cdef inline void copy_some(const array_view *views, const char *x, char *y, ptrdiff_t begin,
                           ptrdiff_t end, bint kept, int size) noexcept nogil:
    """Columns of a row, or zeros."""
    cdef ptrdiff_t from_step = views[0].strides[views[0].ndim - 1]
    cdef ptrdiff_t to_step = views[1].strides[views[1].ndim - 1]
    cdef uint64_t[2] nothing  # no bit is set
    if begin >= end or (kept and x == y):
        return
    nothing[0] = nothing[1] = 0
    if kept:
        copy_elements(x + begin * from_step, from_step, y + begin * to_step, to_step, end - begin,
                      size)
    else:
        copy_elements(<const char *>nothing, 0, y + begin * to_step, to_step, end - begin, size)


cdef inline void triangle(const array_view *views, const opaque_state *state, bint below,
                          ptrdiff_t chunk, ptrdiff_t chunks) noexcept nogil:
    cdef int rank = views[1].ndim
    cdef ptrdiff_t cols = views[1].shape[rank - 1], rows = views[1].shape[rank - 2]
    cdef ptrdiff_t k, cut, lines, begin
    cdef walk_t walk
    walk_over(&walk, views, 2, 0, rank - 1, -1)
    lines = elements_of(&walk)
    begin = lines * chunk // chunks
    walk_to(&walk, begin)
    for k in range(begin, lines * (chunk + 1) // chunks):
        # Columns before it are on or below the diagonal; else before it.
        cut = k % rows + state.diagonal + (1 if below else 0)
        cut = max(0, min(cut, cols))
        copy_some(views, walk.data[0], walk.data[1], 0, cut, below, state.size)
        copy_some(views, walk.data[0], walk.data[1], cut, cols, not below, state.size)
        walk_on(&walk)


cdef inline int tril(const array_view *views, const void *given, const void *params, void *scratch,
                     ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    triangle(views, <const opaque_state *>given, True, chunk, chunks)
    return 0


cdef inline int triu(const array_view *views, const void *given, const void *params, void *scratch,
                     ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    triangle(views, <const opaque_state *>given, False, chunk, chunks)
    return 0
