"""Arguments of opaque kernels, their state, and walks over dimensions."""

from libc.stdint cimport int64_t
from libc.stdlib cimport llabs

from aclnn.kernels.element cimport load_fn, store_fn
from aclnn.kernels.rows.running cimport lines_fn
from aclnn.graph.runtime.kernel_abi cimport array_view

cdef enum:
    MOST_DIMS = 8
    BLOCK = 256         # elements that are converted at a time

cdef struct opaque_state:
    int axis
    int size            # bytes of an element that is copied
    int index_size
    bint is_whole       # computed in int64, not in double
    int64_t diagonal
    load_fn load
    store_fn store
    lines_fn behind, across  # loops where elements of a line, or lines, are dense; or NULL
    int64_t length       # of the table: indices are less
    bint wraps           # whether negative indices count from its end


cdef struct walk_t:
    # Over the elements of some dimensions: of up to three operands, where the current one is.
    int ndim
    int operands
    ptrdiff_t shape[MOST_DIMS]
    ptrdiff_t strides[3][MOST_DIMS]
    ptrdiff_t index[MOST_DIMS]
    char *data[3]


cdef inline void walk_over(walk_t *walk, const array_view *views, int operands, int first, int last,
                           int but) noexcept nogil:
    """The dimensions [first, last), without one; shapes are the last operand's."""
    cdef int axis, k
    walk.ndim, walk.operands = 0, operands
    for k in range(operands):
        walk.data[k] = views[k].data
    for axis in range(first, last):
        if axis == but:
            continue
        walk.shape[walk.ndim] = views[operands - 1].shape[axis]
        for k in range(operands):
            walk.strides[k][walk.ndim] = views[k].strides[axis]
        walk.ndim += 1


cdef inline ptrdiff_t elements_of(const walk_t *walk) noexcept nogil:
    cdef ptrdiff_t count = 1
    cdef int axis
    for axis in range(walk.ndim):
        count *= walk.shape[axis]
    return count


cdef inline void walk_to(walk_t *walk, ptrdiff_t place) noexcept nogil:
    """Go from the first element to the `place`-th."""
    cdef int axis, k
    for axis in range(walk.ndim - 1, -1, -1):
        walk.index[axis] = place % walk.shape[axis]
        place //= walk.shape[axis]
        for k in range(walk.operands):
            walk.data[k] += walk.index[axis] * walk.strides[k][axis]


cdef inline void walk_on(walk_t *walk) noexcept nogil:
    cdef int axis = walk.ndim - 1, k
    while axis >= 0:
        walk.index[axis] += 1
        for k in range(walk.operands):
            walk.data[k] += walk.strides[k][axis]
        if walk.index[axis] < walk.shape[axis]:
            return
        for k in range(walk.operands):
            walk.data[k] -= walk.shape[axis] * walk.strides[k][axis]
        walk.index[axis] = 0
        axis -= 1


cdef inline void walk_by(walk_t *walk, ptrdiff_t n) noexcept nogil:
    """Go on by `n` elements of the last dimension, at most to its end."""
    cdef int last = walk.ndim - 1, k
    walk.index[last] += n - 1
    for k in range(walk.operands):
        walk.data[k] += (n - 1) * walk.strides[k][last]
    walk_on(walk)


cdef inline bint lies_across(const walk_t *walk, ptrdiff_t step) noexcept nogil:
    """Whether elements of neighbouring lines lie nearer to each other than those of a line."""
    cdef int last = walk.ndim - 1
    return (walk.ndim > 0 and walk.shape[last] > 1
            and llabs(walk.strides[0][last]) < llabs(step))
