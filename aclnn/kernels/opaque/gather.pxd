"""Gathers: all indices are looked at before anything is written, each again before it is used."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from aclnn.kernels.element cimport (
    bits_t,
    copy_elements,
    unaligned_pair,
    unaligned_uint16,
    unaligned_uint32,
    unaligned_uint64,
)
from aclnn.kernels.indices cimport index_at, is_within
from aclnn.kernels.opaque.walk cimport (
    elements_of,
    opaque_state,
    walk_on,
    walk_over,
    walk_t,
    walk_to,
)
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context

cdef enum:
    OUT_OF_RANGE = 101  # an index that no element has; records say what that means


cdef inline int64_t from_the_front(int64_t index, const opaque_state *state) noexcept nogil:
    """Negative indices count from the end where that is asked for; else they stay as they are."""
    return index + state.length if index < 0 and state.wraps else index


cdef inline bint gather_elements(const char *table, ptrdiff_t table_step, const char *index,
                                 ptrdiff_t index_step, bits_t *out, ptrdiff_t out_step,
                                 ptrdiff_t n, ptrdiff_t stride, const opaque_state *state,
                                 int64_t *bad) noexcept nogil:
    """Elements one by one, each by its own index; whether there were all of them."""
    cdef ptrdiff_t k
    cdef int64_t j, length = state.length
    cdef int index_size = state.index_size
    for k in range(n):
        j = from_the_front(index_at(index + k * index_step, index_size), state)
        if <uint64_t>j >= <uint64_t>length:
            bad[0] = index_at(index + k * index_step, index_size)
            return False
        (<bits_t *>(<char *>out + k * out_step))[0] = (
            <const bits_t *>(table + k * table_step + j * stride))[0]
    return True


cdef inline bint gather_line(const walk_t *walk, const array_view *views, int axis,
                             ptrdiff_t stride, const opaque_state *state,
                             int64_t *bad) noexcept nogil:
    cdef ptrdiff_t step = 0 if axis == state.axis else views[0].strides[axis]
    cdef ptrdiff_t by = views[1].strides[axis], to = views[2].strides[axis]
    cdef ptrdiff_t n = views[2].shape[axis]
    if state.size == 1:
        return gather_elements(walk.data[0], step, walk.data[1], by, <uint8_t *>walk.data[2], to, n,
                               stride, state, bad)
    if state.size == 2:
        return gather_elements(walk.data[0], step, walk.data[1], by,
                               <unaligned_uint16 *>walk.data[2], to, n, stride, state, bad)
    if state.size == 4:
        return gather_elements(walk.data[0], step, walk.data[1], by,
                               <unaligned_uint32 *>walk.data[2], to, n, stride, state, bad)
    if state.size == 8:
        return gather_elements(walk.data[0], step, walk.data[1], by,
                               <unaligned_uint64 *>walk.data[2], to, n, stride, state, bad)
    return gather_elements(walk.data[0], step, walk.data[1], by, <unaligned_pair *>walk.data[2], to,
                           n, stride, state, bad)


cdef inline void merge_dims(walk_t *walk) noexcept nogil:
    """Make one dimension of neighbours that all operands walk through as one."""
    cdef int axis, k, to = 0
    cdef bint together
    for axis in range(1, walk.ndim):
        together = True
        for k in range(walk.operands):
            together &= walk.strides[k][to] == walk.shape[axis] * walk.strides[k][axis]
        if together:
            walk.shape[to] *= walk.shape[axis]
        else:
            to += 1
            walk.shape[to] = walk.shape[axis]
        for k in range(walk.operands):
            walk.strides[k][to] = walk.strides[k][axis]
    walk.ndim = min(walk.ndim, to + 1)


cdef inline void copy_piece(walk_t *piece, const char *source, char *target,
                            int size) noexcept nogil:
    """Copy what one index stands for: as many elements as the dimensions behind it have."""
    cdef int last = piece.ndim - 1
    cdef ptrdiff_t n = piece.shape[last]
    cdef ptrdiff_t lines, _k
    piece.data[0], piece.data[1] = <char *>source, target
    piece.ndim = last
    lines = elements_of(piece)
    walk_to(piece, 0)
    for _k in range(lines):
        copy_elements(piece.data[0], piece.strides[0][last], piece.data[1], piece.strides[1][last],
                      n, size)
        walk_on(piece)
    piece.ndim = last + 1


cdef inline int check_gather(const array_view *views, const void *given, const void *params,
                             void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                             call_context *context) noexcept nogil:
    cdef const opaque_state *state = <const opaque_state *>given
    return 0 if is_within(&views[1], state.index_size, -state.length if state.wraps else 0,
                          state.length, chunk, chunks, &context.detail) else OUT_OF_RANGE


cdef inline int gather(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    cdef const opaque_state *state = <const opaque_state *>given
    cdef int behind = views[2].ndim, axis = state.axis
    cdef ptrdiff_t stride = views[0].strides[axis]
    cdef ptrdiff_t _k, end, lines
    cdef array_view[2] ends
    cdef walk_t walk, piece
    cdef int64_t j
    # One index for many elements: the dimensions behind the last one that it differs along.
    while behind - 1 > axis and (views[1].strides[behind - 1] == 0
                                 or views[2].shape[behind - 1] == 1):
        behind -= 1
    ends[0], ends[1] = views[0], views[2]
    walk_over(&piece, ends, 2, behind, views[2].ndim, -1)
    merge_dims(&piece)
    walk_over(&walk, views, 3, 0, behind if piece.ndim else behind - 1, -1)
    if axis < walk.ndim:
        walk.strides[0][axis] = 0
    lines = elements_of(&walk)
    end = lines * (chunk + 1) // chunks
    walk_to(&walk, lines * chunk // chunks)
    for _k in range(lines * chunk // chunks, end):
        if piece.ndim == 0:
            if not gather_line(&walk, views, behind - 1, stride, state, &context.detail):
                return OUT_OF_RANGE
        else:
            j = from_the_front(index_at(walk.data[1], state.index_size), state)
            if <uint64_t>j >= <uint64_t>state.length:
                context.detail = index_at(walk.data[1], state.index_size)
                return OUT_OF_RANGE
            copy_piece(&piece, walk.data[0] + j * stride, walk.data[2], state.size)
        walk_on(&walk)
    return 0
