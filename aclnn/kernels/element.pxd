"""Elements of all dtypes: converted to what is computed in, rounded once from it, or copied."""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from aclnn.kernels.formulas cimport real

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
    void halves_to_floats(const half_t *, float *, ptrdiff_t) noexcept
    void floats_to_halves(const float *, half_t *, ptrdiff_t) noexcept

ctypedef fused source_t:
    float
    double
    half_t
    bfloat16_t
    int8_t
    uint8_t
    int16_t
    int32_t
    int64_t

ctypedef fused long_t:
    int32_t
    int64_t

ctypedef fused target_t:
    float
    double
    half_t
    bfloat16_t

ctypedef struct pair_t:
    uint64_t low
    uint64_t high

ctypedef fused part_t:
    float
    double

ctypedef fused bits_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    pair_t

ctypedef void (*load_fn)(const char *, ptrdiff_t, void *, ptrdiff_t) noexcept nogil
ctypedef void (*store_fn)(const void *, char *, ptrdiff_t, ptrdiff_t) noexcept nogil


cdef inline real loaded(source_t x, real like) noexcept nogil:
    if source_t is half_t:
        return half_to_f32(x)
    elif source_t is bfloat16_t:
        return bfloat16_to_f32(x)
    else:
        return <real>x


cdef inline void load(const source_t *src, ptrdiff_t stride, real *dst, ptrdiff_t n) noexcept nogil:
    """Convert `n` elements, `stride` bytes apart, to a dense run of float or double."""
    cdef ptrdiff_t i
    cdef real value
    if stride == sizeof(source_t):
        if source_t is half_t:
            if real is float:
                halves_to_floats(src, dst, n)
                return
        for i in range(n):
            dst[i] = loaded(src[i], <real>0)
    elif stride == 0:
        value = loaded(src[0], <real>0)
        for i in range(n):
            dst[i] = value
    else:
        for i in range(n):
            dst[i] = loaded((<const source_t *>(<const char *>src + i * stride))[0], <real>0)


cdef inline void load_by_float(const long_t *src, ptrdiff_t stride, double *dst,
                               ptrdiff_t n) noexcept nogil:
    """What a float cannot hold is rounded to one, as where the formula is computed in float."""
    cdef ptrdiff_t i
    for i in range(n):
        dst[i] = <float>(<const long_t *>(<const char *>src + i * stride))[0]


cdef inline target_t stored(real x, target_t like) noexcept nogil:
    if target_t is half_t:
        if real is float:
            return half_of_f32(x)
        else:
            return half_of_f64(x)
    elif target_t is bfloat16_t:
        if real is float:
            return bfloat16_of_f32(x)
        else:
            return bfloat16_of_f64(x)
    else:
        return <target_t>x


cdef inline void store(const real *src, target_t *dst, ptrdiff_t stride,
                       ptrdiff_t n) noexcept nogil:
    """Round a dense run to elements `stride` bytes apart."""
    cdef ptrdiff_t i
    if stride == sizeof(target_t):
        if target_t is half_t:
            if real is float:
                floats_to_halves(src, dst, n)
                return
        for i in range(n):
            dst[i] = stored(src[i], dst[0])
    else:
        for i in range(n):
            (<target_t *>(<char *>dst + i * stride))[0] = stored(src[i], dst[0])


cdef inline void store_complex(const real *src, part_t *dst, ptrdiff_t stride,
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
        copy_bits(<const uint16_t *>src, src_stride, <uint16_t *>dst, dst_stride, n)
    elif size == 4:
        copy_bits(<const uint32_t *>src, src_stride, <uint32_t *>dst, dst_stride, n)
    elif size == 8:
        copy_bits(<const uint64_t *>src, src_stride, <uint64_t *>dst, dst_stride, n)
    else:
        copy_bits(<const pair_t *>src, src_stride, <pair_t *>dst, dst_stride, n)


cdef inline void copy_element(char *target, const char *source, ptrdiff_t size) noexcept nogil:
    if size == 2:
        memcpy(target, source, 2)
    elif size == 4:
        memcpy(target, source, 4)
    else:
        memcpy(target, source, size)
