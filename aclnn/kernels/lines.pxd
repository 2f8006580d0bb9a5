"""Lines of operands: where the elements along one axis begin, for each place along the others."""

from aclnn.graph.runtime.kernel_abi cimport array_view


cdef inline char *line_of(const array_view *view, const ptrdiff_t *shape, int ndim, int but,
                          ptrdiff_t line) noexcept nogil:
    """Begin of the `line`-th line, of those over the first `ndim` dimensions without one."""
    cdef char *found = view.data
    cdef int axis
    for axis in range(ndim - 1, -1, -1):
        if axis == but or shape[axis] == 1:
            continue
        found += line % shape[axis] * view.strides[axis]
        line //= shape[axis]
    return found


cdef inline ptrdiff_t lines_in(const ptrdiff_t *shape, int ndim, int but) noexcept nogil:
    cdef ptrdiff_t count = 1
    cdef int axis
    for axis in range(ndim):
        if axis != but:
            count *= shape[axis]
    return count
