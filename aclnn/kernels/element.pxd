"""Types of elements and of functions that convert them (`conversion.pxd`), and copies."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from aclnn.kernels.unaligned cimport (
    unaligned_double,
    unaligned_float,
    unaligned_int16,
    unaligned_int32,
    unaligned_int64,
    unaligned_pair,
    unaligned_uint16,
    unaligned_uint32,
    unaligned_uint64,
)

cdef extern from "half.h" nogil:
    ctypedef struct half_t:
        uint16_t bits
    ctypedef struct bfloat16_t:
        uint16_t bits
    float half_to_f32(half_t) noexcept
    float bfloat16_to_f32(bfloat16_t) noexcept
    half_t half_of_f32(float) noexcept
    bfloat16_t bfloat16_of_f32(float) noexcept
    half_t half_of_f64(double) noexcept
    bfloat16_t bfloat16_of_f64(double) noexcept
    void halves_to_floats(const half_t *, unaligned_float *, ptrdiff_t) noexcept
    void floats_to_halves(const unaligned_float *, half_t *, ptrdiff_t) noexcept

cdef extern from "number.h" nogil:
    ctypedef struct bool_t:
        uint8_t truth
    ctypedef struct unaligned_complex64:
        float real
        float imag
    ctypedef struct unaligned_complex128:
        double real
        double imag

ctypedef fused bits_t:
    uint8_t
    unaligned_uint16
    unaligned_uint32
    unaligned_uint64
    unaligned_pair

ctypedef void (*load_fn)(const char *, ptrdiff_t, void *, ptrdiff_t) noexcept nogil
ctypedef void (*store_fn)(const void *, char *, ptrdiff_t, ptrdiff_t) noexcept nogil


cdef inline void copy_bits(const bits_t *src, ptrdiff_t src_stride, bits_t *dst,
                           ptrdiff_t dst_stride, ptrdiff_t n) noexcept nogil:
    """Elements as they are, payloads of NaNs included."""
    cdef ptrdiff_t i
    cdef bits_t value
    if src_stride == sizeof(bits_t) and dst_stride == sizeof(bits_t):
        memcpy(dst, src, n * sizeof(bits_t))
        return
    if dst_stride == sizeof(bits_t) and src_stride == 0:
        value = src[0]
        for i in range(n):
            dst[i] = value
        return
    if dst_stride == sizeof(bits_t) and src_stride == 2 * sizeof(bits_t):
        # A stride that is known lets the compiler load whole registers.
        for i in range(n):
            dst[i] = src[2 * i]
        return
    for i in range(n):
        (<bits_t *>(<char *>dst + i * dst_stride))[0] = (
            <const bits_t *>(<const char *>src + i * src_stride))[0]


cdef inline void copy_elements(const char *src, ptrdiff_t src_stride, char *dst,
                               ptrdiff_t dst_stride, ptrdiff_t n, int size) noexcept nogil:
    cdef ptrdiff_t i
    if size == 1:
        copy_bits(<const uint8_t *>src, src_stride, <uint8_t *>dst, dst_stride, n)
    elif size == 2:
        copy_bits(<const unaligned_uint16 *>src, src_stride, <unaligned_uint16 *>dst, dst_stride, n)
    elif size == 4:
        copy_bits(<const unaligned_uint32 *>src, src_stride, <unaligned_uint32 *>dst, dst_stride, n)
    elif size == 8:
        copy_bits(<const unaligned_uint64 *>src, src_stride, <unaligned_uint64 *>dst, dst_stride, n)
    elif size == 16:
        copy_bits(<const unaligned_pair *>src, src_stride, <unaligned_pair *>dst, dst_stride, n)
    elif src_stride == size and dst_stride == size:
        memcpy(dst, src, n * size)
    else:
        for i in range(n):
            memcpy(dst + i * dst_stride, src + i * src_stride, size)


cdef inline void copy_element(char *target, const char *source, ptrdiff_t size) noexcept nogil:
    if size == 2:
        memcpy(target, source, 2)
    elif size == 4:
        memcpy(target, source, 4)
    else:
        memcpy(target, source, size)
