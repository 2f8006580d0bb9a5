"""Conversion of elements of all dtypes to what is computed in, and back, rounded once.

Only `_kernels` has these functions, once for each instruction set; other modules take them from
there with `load_of` and `store_of`. A module that includes them takes seconds more to translate.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from aclnn.kernels.element cimport (
    bfloat16_of_f32,
    bfloat16_of_f64,
    bfloat16_t,
    bfloat16_to_f32,
    bool_t,
    floats_to_halves,
    half_of_f32,
    half_of_f64,
    half_t,
    half_to_f32,
    halves_to_floats,
    unaligned_complex64,
    unaligned_complex128,
)
from aclnn.kernels.unaligned cimport (
    unaligned_double,
    unaligned_float,
    unaligned_int16,
    unaligned_int32,
    unaligned_int64,
    unaligned_uint16,
    unaligned_uint32,
    unaligned_uint64,
)

cdef extern from "number.h" nogil:
    double odd_of_i64(int64_t) noexcept
    double odd_of_u64(uint64_t) noexcept
    int64_t i64_of(double) noexcept
    uint64_t u64_of(double) noexcept
    int64_t bounded_whole(double, double, double) noexcept
    int32_t bounded_i32(float, float, float) noexcept

# What is computed in, in memory.
ctypedef fused number_t:
    unaligned_float
    unaligned_double
    unaligned_int64
    unaligned_complex128

ctypedef fused real_t:
    unaligned_float
    unaligned_double

# What elements are.
ctypedef fused element_t:
    unaligned_float
    unaligned_double
    half_t
    bfloat16_t
    int8_t
    uint8_t
    bool_t
    unaligned_int16
    unaligned_uint16
    unaligned_int32
    unaligned_uint32
    unaligned_int64
    unaligned_uint64
    unaligned_complex64
    unaligned_complex128

ctypedef fused integer_t:
    int8_t
    uint8_t
    unaligned_int16
    unaligned_uint16
    unaligned_int32
    unaligned_uint32
    unaligned_int64
    unaligned_uint64

ctypedef fused long_t:
    unaligned_int64
    unaligned_uint64


cdef inline number_t from_real(double x, const number_t *like) noexcept nogil:
    """A floating number in another type, which holds it, or a whole number of it."""
    cdef unaligned_complex128 z
    if number_t is unaligned_complex128:
        z.real, z.imag = x, 0
        return z
    elif number_t is unaligned_int64:
        return i64_of(x)
    else:
        return <number_t>x


cdef inline number_t loaded(element_t x, const number_t *like) noexcept nogil:
    """An element, rounded at most once; of a complex one the real part, where that is wanted."""
    cdef unaligned_complex128 z
    if element_t is half_t:
        if number_t is unaligned_float:
            return half_to_f32(x)
        else:
            return from_real(half_to_f32(x), like)
    elif element_t is bfloat16_t:
        if number_t is unaligned_float:
            return bfloat16_to_f32(x)
        else:
            return from_real(bfloat16_to_f32(x), like)
    elif element_t is unaligned_complex64 or element_t is unaligned_complex128:
        if number_t is unaligned_complex128:
            z.real, z.imag = x.real, x.imag
            return z
        elif number_t is unaligned_int64:
            return i64_of(x.real)
        else:
            return <number_t>x.real
    elif element_t is bool_t:
        if number_t is unaligned_complex128:
            return from_real(x.truth != 0, like)
        else:
            return <number_t>(x.truth != 0)
    elif number_t is unaligned_complex128:
        return from_real(<double>x, like)
    elif number_t is unaligned_int64 and (element_t is unaligned_float
                                          or element_t is unaligned_double):
        return i64_of(x)
    else:
        return <number_t>x


cdef inline void load(const element_t *src, ptrdiff_t stride, number_t *dst,
                      ptrdiff_t n) noexcept nogil:
    """Convert `n` elements, `stride` bytes apart, to a dense run of what is computed in."""
    cdef ptrdiff_t i
    cdef number_t value
    if stride == sizeof(element_t):
        if element_t is half_t:
            if number_t is unaligned_float:
                halves_to_floats(src, dst, n)
                return
        for i in range(n):
            dst[i] = loaded(src[i], dst)
    elif stride == 0:
        value = loaded(src[0], dst)
        for i in range(n):
            dst[i] = value
    else:
        for i in range(n):
            dst[i] = loaded((<const element_t *>(<const char *>src + i * stride))[0], dst)


cdef inline void load_odd(const long_t *src, ptrdiff_t stride, unaligned_double *dst,
                          ptrdiff_t n) noexcept nogil:
    """Load integers; what a double cannot hold is rounded to odd, and later once more."""
    cdef ptrdiff_t i
    cdef const long_t *element
    for i in range(n):
        element = <const long_t *>(<const char *>src + i * stride)
        dst[i] = odd_of_i64(element[0]) if long_t is unaligned_int64 else odd_of_u64(element[0])


cdef inline integer_t to_integer(real_t x, const integer_t *like) noexcept nogil:
    """Towards zero; what is too large becomes the largest, a NaN 0."""
    if integer_t is unaligned_int64:
        return i64_of(x)
    elif integer_t is unaligned_uint64:
        return u64_of(x)
    elif integer_t is unaligned_int32:
        return <int32_t>bounded_whole(x, -2147483648.0, 2147483647.0)
    elif integer_t is unaligned_uint32:
        return <uint32_t>bounded_whole(x, 0, 4294967295.0)
    elif real_t is unaligned_double:
        return <integer_t>bounded_whole(x, least(like), most(like))
    else:
        return <integer_t>bounded_i32(x, least(like), most(like))


cdef inline int least(const integer_t *like) noexcept nogil:
    """Smallest integer of at most 16 bits."""
    if integer_t is int8_t:
        return -128
    elif integer_t is unaligned_int16:
        return -32768
    else:
        return 0


cdef inline int most(const integer_t *like) noexcept nogil:
    if integer_t is int8_t:
        return 127
    elif integer_t is uint8_t:
        return 255
    elif integer_t is unaligned_int16:
        return 32767
    else:
        return 65535


cdef inline element_t stored(number_t x, const element_t *like) noexcept nogil:
    """A number as an element, rounded once; whole ones wrap, complex ones become real."""
    cdef bool_t truth
    cdef element_t z
    if element_t is bool_t:
        if number_t is unaligned_complex128:
            truth.truth = (x.real != 0) | (x.imag != 0)
        else:
            truth.truth = x != 0
        return truth
    elif element_t is unaligned_complex64 or element_t is unaligned_complex128:
        if number_t is unaligned_complex128:
            z.real, z.imag = x.real, x.imag
        else:
            z.real, z.imag = x, 0
        return z
    elif number_t is unaligned_complex128:
        return stored(<unaligned_double>x.real, like)
    elif element_t is half_t:
        if number_t is unaligned_float:
            return half_of_f32(x)
        elif number_t is unaligned_double:
            return half_of_f64(x)
        else:
            return half_of_f64(odd_of_i64(x))
    elif element_t is bfloat16_t:
        if number_t is unaligned_float:
            return bfloat16_of_f32(x)
        elif number_t is unaligned_double:
            return bfloat16_of_f64(x)
        else:
            return bfloat16_of_f64(odd_of_i64(x))
    elif element_t is unaligned_float or element_t is unaligned_double:
        return <element_t>x
    elif number_t is unaligned_int64:
        return <element_t>x
    else:
        return to_integer(x, like)


cdef inline void store(const number_t *src, element_t *dst, ptrdiff_t stride,
                       ptrdiff_t n) noexcept nogil:
    """Round a dense run to elements `stride` bytes apart."""
    cdef ptrdiff_t i
    if stride == sizeof(element_t):
        if element_t is half_t:
            if number_t is unaligned_float:
                floats_to_halves(src, dst, n)
                return
        for i in range(n):
            dst[i] = stored(src[i], dst)
    else:
        for i in range(n):
            (<element_t *>(<char *>dst + i * stride))[0] = stored(src[i], dst)
