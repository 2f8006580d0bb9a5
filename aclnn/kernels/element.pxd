"""Elements of all dtypes: converted to what is computed in, rounded once from it, or copied."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "unaligned.h" nogil:
    ctypedef float unaligned_float
    ctypedef double unaligned_double
    ctypedef int16_t unaligned_int16
    ctypedef int32_t unaligned_int32
    ctypedef int64_t unaligned_int64
    ctypedef uint16_t unaligned_uint16
    ctypedef uint32_t unaligned_uint32
    ctypedef uint64_t unaligned_uint64
    ctypedef struct unaligned_pair:
        pass

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

# What is computed in, in memory.
ctypedef fused real_t:
    unaligned_float
    unaligned_double

ctypedef fused source_t:
    unaligned_float
    unaligned_double
    half_t
    bfloat16_t
    int8_t
    uint8_t
    unaligned_int16
    unaligned_int32
    unaligned_int64

ctypedef fused long_t:
    unaligned_int32
    unaligned_int64

ctypedef fused target_t:
    unaligned_float
    unaligned_double
    half_t
    bfloat16_t

ctypedef fused part_t:
    unaligned_float
    unaligned_double

ctypedef fused bits_t:
    uint8_t
    unaligned_uint16
    unaligned_uint32
    unaligned_uint64
    unaligned_pair

ctypedef void (*load_fn)(const char *, ptrdiff_t, void *, ptrdiff_t) noexcept nogil
ctypedef void (*store_fn)(const void *, char *, ptrdiff_t, ptrdiff_t) noexcept nogil


cdef inline real_t loaded(source_t x, real_t like) noexcept nogil:
    if source_t is half_t:
        return half_to_f32(x)
    elif source_t is bfloat16_t:
        return bfloat16_to_f32(x)
    else:
        return <real_t>x


cdef inline void load(const source_t *src, ptrdiff_t stride, real_t *dst,
                      ptrdiff_t n) noexcept nogil:
    """Convert `n` elements, `stride` bytes apart, to a dense run of float or double."""
    cdef ptrdiff_t i
    cdef real_t value
    if stride == sizeof(source_t):
        if source_t is half_t:
            if real_t is unaligned_float:
                halves_to_floats(src, dst, n)
                return
        for i in range(n):
            dst[i] = loaded(src[i], <real_t>0)
    elif stride == 0:
        value = loaded(src[0], <real_t>0)
        for i in range(n):
            dst[i] = value
    else:
        for i in range(n):
            dst[i] = loaded((<const source_t *>(<const char *>src + i * stride))[0], <real_t>0)


cdef inline void load_by_float(const long_t *src, ptrdiff_t stride, unaligned_double *dst,
                               ptrdiff_t n) noexcept nogil:
    """What a float cannot hold is rounded to one, as where the formula is computed in float."""
    cdef ptrdiff_t i
    for i in range(n):
        dst[i] = <float>(<const long_t *>(<const char *>src + i * stride))[0]


cdef inline target_t stored(real_t x, target_t like) noexcept nogil:
    if target_t is half_t:
        if real_t is unaligned_float:
            return half_of_f32(x)
        else:
            return half_of_f64(x)
    elif target_t is bfloat16_t:
        if real_t is unaligned_float:
            return bfloat16_of_f32(x)
        else:
            return bfloat16_of_f64(x)
    else:
        return <target_t>x


cdef inline void store(const real_t *src, target_t *dst, ptrdiff_t stride,
                       ptrdiff_t n) noexcept nogil:
    """Round a dense run to elements `stride` bytes apart."""
    cdef ptrdiff_t i
    if stride == sizeof(target_t):
        if target_t is half_t:
            if real_t is unaligned_float:
                floats_to_halves(src, dst, n)
                return
        for i in range(n):
            dst[i] = stored(src[i], dst[0])
    else:
        for i in range(n):
            (<target_t *>(<char *>dst + i * stride))[0] = stored(src[i], dst[0])


cdef inline void store_complex(const real_t *src, part_t *dst, ptrdiff_t stride,
                               ptrdiff_t n) noexcept nogil:
    """Real parts from a dense run, imaginary parts zero."""
    cdef ptrdiff_t i
    cdef part_t *element
    for i in range(n):
        element = <part_t *>(<char *>dst + i * stride)
        element[0] = <part_t>src[i]
        element[1] = 0


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
    if size == 1:
        copy_bits(<const uint8_t *>src, src_stride, <uint8_t *>dst, dst_stride, n)
    elif size == 2:
        copy_bits(<const unaligned_uint16 *>src, src_stride, <unaligned_uint16 *>dst, dst_stride, n)
    elif size == 4:
        copy_bits(<const unaligned_uint32 *>src, src_stride, <unaligned_uint32 *>dst, dst_stride, n)
    elif size == 8:
        copy_bits(<const unaligned_uint64 *>src, src_stride, <unaligned_uint64 *>dst, dst_stride, n)
    else:
        copy_bits(<const unaligned_pair *>src, src_stride, <unaligned_pair *>dst, dst_stride, n)


cdef inline void copy_element(char *target, const char *source, ptrdiff_t size) noexcept nogil:
    if size == 2:
        memcpy(target, source, 2)
    elif size == 4:
        memcpy(target, source, 4)
    else:
        memcpy(target, source, size)
