"""The kernel that puts elements into a stretch of memory: out = base, but for a strided piece.

Calls that share memory in part need it when they become one graph, whose values never change. Base
and output are one-dimensional and have as many bytes; their dtypes may differ, as bytes are copied.
"""

from libc.string cimport memcpy

from aclnn.kernels._kernel_reference cimport State
from aclnn.graph.runtime.kernel_abi cimport array_view

from aclnn.graph.runtime.kernel import Kernel

cdef enum:
    MOST_DIMS = 8

cdef struct placing_state:
    bint has_piece
    ptrdiff_t base_size, out_size, piece_size  # bytes of an element
    ptrdiff_t nbytes                           # of the base, and of the output
    ptrdiff_t offset                           # bytes from the output's first to the piece's
    ptrdiff_t strides[MOST_DIMS]               # of the piece in the output, in bytes


cdef inline char *byte_at(const array_view *view, ptrdiff_t size, ptrdiff_t place) noexcept nogil:
    """Address of the byte at a place of a one-dimensional array."""
    return view.data + place // size * view.strides[0] + place % size


cdef inline bint is_dense(const array_view *view, ptrdiff_t size) noexcept nogil:
    return view.shape[0] <= 1 or view.strides[0] == size


cdef void copy_base(const array_view *base, const array_view *out,
                    const placing_state *state) noexcept nogil:
    cdef ptrdiff_t place
    if is_dense(base, state.base_size) and is_dense(out, state.out_size):
        if base.data != out.data:
            memcpy(out.data, base.data, state.nbytes)
        return
    for place in range(state.nbytes):
        byte_at(out, state.out_size, place)[0] = byte_at(base, state.base_size, place)[0]


cdef void put_item(const array_view *out, const placing_state *state, ptrdiff_t place,
                   const char *item) noexcept nogil:
    cdef ptrdiff_t byte
    for byte in range(state.piece_size):
        byte_at(out, state.out_size, place + byte)[0] = item[byte]


cdef void put_piece(const array_view *piece, const array_view *out,
                    const placing_state *state) noexcept nogil:
    cdef ptrdiff_t index[MOST_DIMS]
    cdef ptrdiff_t place = state.offset
    cdef const char *item = piece.data
    cdef bint dense = is_dense(out, state.out_size)
    cdef int axis
    for axis in range(piece.ndim):
        index[axis] = 0
        if piece.shape[axis] == 0:
            return
    while True:
        if dense:
            memcpy(out.data + place, item, state.piece_size)
        else:
            put_item(out, state, place, item)
        axis = piece.ndim - 1
        while axis >= 0 and index[axis] == piece.shape[axis] - 1:
            place -= index[axis] * state.strides[axis]
            item -= index[axis] * piece.strides[axis]
            index[axis] = 0
            axis -= 1
        if axis < 0:
            return
        index[axis] += 1
        place += state.strides[axis]
        item += piece.strides[axis]


cdef int place_elements(const array_view *views, const void *given, const void *params,
                        void *scratch, ptrdiff_t chunk, ptrdiff_t chunks) noexcept nogil:
    cdef const placing_state *state = <const placing_state *>given
    cdef const array_view *out = &views[2 if state.has_piece else 1]
    copy_base(&views[0], out, state)
    if state.has_piece:
        put_piece(&views[1], out, state)
    return 0


def placing_kernel(base_size, out_size, nbytes, piece_size=0, offset=0, tuple strides=()):
    """The kernel for one layout of base, piece and output.

    Parameters
    ----------
    base_size, out_size : int
        Bytes of an element.
    nbytes : int
        Of the base, and of the output.
    piece_size : int
        Bytes of an element of the piece; 0 for none: the bytes are the base's.
    offset : int
        Bytes from the output's first element to the piece's.
    strides : tuple of int
        Of the piece in the output, in bytes.

    Returns
    -------
    Kernel
    """
    cdef State kept = State(sizeof(placing_state))
    cdef placing_state *state = <placing_state *>kept.data
    cdef int axis
    if len(strides) > MOST_DIMS:
        raise ValueError(f"{len(strides)} dimensions, at most {MOST_DIMS} are possible")
    state.has_piece = piece_size > 0
    state.base_size, state.out_size = base_size, out_size
    state.piece_size, state.nbytes, state.offset = piece_size, nbytes, offset
    for axis in range(len(strides)):
        state.strides[axis] = strides[axis]
    return Kernel(
        fn=<size_t>&place_elements,
        state=<size_t>kept.data,
        name="place" if piece_size else "bytes",
        itemsizes=(base_size, piece_size, out_size) if piece_size else (base_size, out_size),
        cost=0.2 * nbytes,
        owner=kept,
    )
