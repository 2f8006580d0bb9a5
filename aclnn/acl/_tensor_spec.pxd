from libc.stdint cimport int64_t

cdef enum:
    MAX_DIMS = 8
    ABSENT = -1       # ndim of an output that is still to be made, and of an input that is null
    UNDESCRIBED = -2  # ndim of what rules alone see: more dimensions, larger sizes, no strides
    FORMAT_ND = 2     # of memory: as the strides say

cdef enum Overlap:
    DISJOINT = 0  # no byte in common, as far as the extents tell
    IDENTICAL = 1  # the same elements at the same addresses: safe in place
    PARTIAL = 2  # bytes in common in another way: the input must be copied first
    EITHER = 3  # planned apart, and right in place, too

cdef struct operand_t:
    char *data
    int dtype
    int format
    int ndim
    bint writable
    int64_t shape[MAX_DIMS]
    int64_t strides[MAX_DIMS]  # elements

cdef class TensorSpec:
    cdef operand_t operand
    cdef readonly object dtype
    cdef readonly tuple shape, strides
    cdef readonly object owner

cdef object spec_at(const operand_t *operand, char *address, object owner)

cdef int ITEM_SIZES[64]  # bytes per element by CANN's number
cdef int ITEM_BITS[64]   # bits, of which elements of fewer than eight share bytes

cdef inline int item_size(int dtype) noexcept nogil:
    return ITEM_SIZES[dtype] if 0 <= dtype < 64 else 0

cdef inline int64_t bytes_before(int dtype, int64_t elements) noexcept nogil:
    """Bytes from the start of memory to that in which the element behind so many begins."""
    if 0 <= dtype < 64 and ITEM_BITS[dtype] < 8:
        return (elements * ITEM_BITS[dtype]) >> 3
    return elements * item_size(dtype)

cdef inline int64_t bytes_of(int dtype, int64_t elements) noexcept nogil:
    """Bytes of so many elements, one after the other."""
    if 0 <= dtype < 64 and ITEM_BITS[dtype] < 8:
        return (elements * ITEM_BITS[dtype] + 7) >> 3
    return elements * item_size(dtype)

cdef inline bint splits_a_byte(int dtype, int64_t elements) noexcept nogil:
    """Whether the element behind so many begins inside a byte."""
    return 0 <= dtype < 64 and ITEM_BITS[dtype] < 8 and elements * ITEM_BITS[dtype] & 7 != 0

cdef inline void extent(const operand_t *operand, int64_t *low, int64_t *high) noexcept nogil:
    """The bytes an operand can touch, counted from its first element's address."""
    cdef int64_t before = 0, behind = 1, reach
    cdef int axis
    for axis in range(operand.ndim):
        if operand.shape[axis] == 0:
            low[0] = high[0] = 0
            return
        reach = (operand.shape[axis] - 1) * operand.strides[axis]
        if reach < 0:
            before += reach
        else:
            behind += reach
    low[0] = bytes_before(operand.dtype, before)
    high[0] = bytes_of(operand.dtype, behind)

cdef inline bint same_layout(const operand_t *a, const operand_t *b) noexcept nogil:
    """Whether elements lie alike; a stride along a single element is none, or where there are
    none.
    """
    cdef int axis
    cdef bint alike = True
    if a.ndim != b.ndim or item_size(a.dtype) != item_size(b.dtype):
        return False
    for axis in range(a.ndim):
        if a.shape[axis] != b.shape[axis]:
            return False
        if a.shape[axis] > 1 and a.strides[axis] != b.strides[axis]:
            alike = False
    if alike:
        return True
    for axis in range(a.ndim):
        if a.shape[axis] == 0:
            return True
    return False

cdef inline Overlap overlap(const operand_t *a, const operand_t *out, int64_t out_low,
                            int64_t out_high) noexcept nogil:
    """The overlap of an input with an output, whose extent is known."""
    cdef int64_t a_low, a_high
    if a.data == NULL or a.ndim == ABSENT:
        return DISJOINT
    extent(a, &a_low, &a_high)
    if a.data + a_high <= out.data + out_low or out.data + out_high <= a.data + a_low:
        return DISJOINT
    return IDENTICAL if a.data == out.data and same_layout(a, out) else PARTIAL
