"""Sums of integers, exact in 64 bits, modulo 2^64 beyond; truth values count as 0 and 1."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport llabs

from aclnn.kernels.rows.walk cimport element
from aclnn.kernels.unaligned cimport unaligned_int16, unaligned_int32, unaligned_int64
from aclnn.graph.runtime.kernel_abi cimport tile_view

cdef enum:
    BESIDE = 256  # adjacent rows, added up at a time

# A byte that is not 0 is true.
cdef struct truth_t:
    uint8_t byte

ctypedef fused whole_t:
    int8_t
    uint8_t
    unaligned_int16
    unaligned_int32
    unaligned_int64
    truth_t

ctypedef void (*add_fn)(const void *, ptrdiff_t, int64_t *, ptrdiff_t) noexcept nogil
ctypedef int64_t (*sum_fn)(const void *, ptrdiff_t, ptrdiff_t) noexcept nogil


cdef struct whole_state:
    int out_size
    ptrdiff_t size
    sum_fn row_sum
    add_fn add


cdef inline int64_t whole(whole_t x) noexcept nogil:
    if whole_t is truth_t:
        return x.byte != 0
    else:
        return <int64_t>x


cdef inline int64_t row_sum(const whole_t *x, ptrdiff_t stride, ptrdiff_t n) noexcept nogil:
    cdef int64_t sum = 0
    cdef ptrdiff_t i
    if stride == sizeof(whole_t):
        for i in range(n):
            sum += whole(x[i])
    else:
        for i in range(n):
            sum += whole((<const whole_t *>(<const char *>x + i * stride))[0])
    return sum


cdef inline void add_column(const whole_t *x, ptrdiff_t stride, int64_t *sums,
                            ptrdiff_t n) noexcept nogil:
    cdef ptrdiff_t i
    if stride == sizeof(whole_t):
        for i in range(n):
            sums[i] += whole(x[i])
    else:
        for i in range(n):
            sums[i] += whole((<const whole_t *>(<const char *>x + i * stride))[0])


cdef inline void sum_whole(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                           const void *opaque, const void *params, void *scratch,
                           int flags) noexcept nogil:
    cdef const whole_state *state = <const whole_state *>opaque
    cdef const tile_view *view = &views[0]
    cdef int64_t sums[BESIDE]
    cdef ptrdiff_t row = 0, count, i, j
    cdef bint across = (view.row_stride != 0 and rows > 1
                        and llabs(view.row_stride) < llabs(view.col_stride))
    while row < rows:
        count = min(BESIDE, rows - row)
        for i in range(count):
            sums[i] = 0 if across else state.row_sum(element(view, row + i, 0), view.col_stride,
                                                     cols)
        for j in range(cols if across else 0):
            state.add(element(view, row, j), view.row_stride, sums, count)
        for i in range(count):
            store_whole(sums[i], element(&views[1], row + i, 0), state.out_size)
        row += count


cdef inline void store_whole(int64_t value, char *target, int size) noexcept nogil:
    """Store the bits that the output's dtype has room for."""
    if size == 8:
        (<unaligned_int64 *>target)[0] = value
    elif size == 4:
        (<unaligned_int32 *>target)[0] = <int32_t>value
    elif size == 2:
        (<unaligned_int16 *>target)[0] = <int16_t>value
    else:
        (<int8_t *>target)[0] = <int8_t>value
