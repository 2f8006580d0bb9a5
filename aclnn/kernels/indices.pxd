"""Indices: reading them, and whether they are within a dimension."""

from libc.stdint cimport int64_t, uint64_t

from aclnn.kernels.element cimport unaligned_int32, unaligned_int64
from aclnn.kernels.lines cimport line_of, lines_in
from aclnn.graph.runtime.kernel_abi cimport array_view

cdef enum:
    INDEX_DIMS = 8


cdef inline int64_t index_at(const char *place, int size) noexcept nogil:
    if size == 4:
        return (<const unaligned_int32 *>place)[0]
    return (<const unaligned_int64 *>place)[0]


cdef inline bint are_within(const char *at, ptrdiff_t step, ptrdiff_t n, int size, int64_t least,
                            int64_t length) noexcept nogil:
    """All of a line, without a branch for each."""
    cdef uint64_t outside = 0, several = <uint64_t>(length - least)
    cdef ptrdiff_t i
    if size == 4:
        for i in range(n):
            outside |= <uint64_t>(index_at(at + i * step, 4) - least) >= several
    else:
        for i in range(n):
            # A difference that wraps is of an index that is not within either.
            outside |= <uint64_t>(index_at(at + i * step, 8)) - <uint64_t>least >= several
    return outside == 0


cdef inline bint is_within(const array_view *index, int size, int64_t least, int64_t length,
                           ptrdiff_t chunk, ptrdiff_t chunks, int64_t *bad) noexcept nogil:
    """Whether all indices of a share are from the least to one less than the length; dimensions
    that are walked with a stride of 0 count once."""
    cdef ptrdiff_t[INDEX_DIMS] shape
    cdef ptrdiff_t[INDEX_DIMS] strides
    cdef ptrdiff_t lines, line, begin, end, i, n = 1, step = 0
    cdef array_view kept
    cdef int axis, last
    cdef const char *at
    cdef int64_t found
    kept.data, kept.ndim, kept.shape, kept.strides = index.data, 0, shape, strides
    for axis in range(index.ndim):
        if index.shape[axis] != 1 and (index.strides[axis] != 0 or index.shape[axis] == 0):
            shape[kept.ndim], strides[kept.ndim] = index.shape[axis], index.strides[axis]
            kept.ndim += 1
    last = max(kept.ndim - 1, 0)
    if kept.ndim:
        n, step = shape[last], strides[last]
    lines = lines_in(shape, last, -1)
    begin, end = lines * chunk // chunks, lines * (chunk + 1) // chunks
    if lines == 1:  # which is cut itself
        kept.data += n * chunk // chunks * step
        n = n * (chunk + 1) // chunks - n * chunk // chunks
        begin, end = 0, 1
    for line in range(begin, end):
        at = line_of(&kept, shape, last, -1, line)
        if are_within(at, step, n, size, least, length):
            continue
        for i in range(n):
            found = index_at(at + i * step, size)
            if found < least or found >= length:
                bad[0] = found
                return False
    return True
