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

cdef int item_size(int dtype) noexcept nogil
cdef bint same_layout(const operand_t *a, const operand_t *b) noexcept nogil
cdef void extent(const operand_t *operand, int64_t *low, int64_t *high) noexcept nogil
cdef Overlap overlap(const operand_t *a, const operand_t *out, int64_t out_low,
                     int64_t out_high) noexcept nogil
cdef object spec_at(const operand_t *operand, char *address, object owner)
