"""Sums with a product over vectors (`sums.h`): addcmul, and points between two."""

from aclnn.kernels.simd.loop_args cimport BF16, F16, F32, elem_type, loop_args
from aclnn.kernels.simd.rounded cimport run_rounded
from aclnn.kernels.simd.vector cimport vecf

cdef extern from "simd/sums.h" nogil:
    vecf addcmul_plain(const double *, vecf, vecf, vecf, bint, unsigned int *) noexcept
    vecf addcmul_scaled(const double *, vecf, vecf, vecf, bint, unsigned int *) noexcept
    vecf lerp_rounded(const double *, vecf, vecf, vecf, bint, unsigned int *) noexcept
    vecf lerps_rounded(const double *, vecf, vecf, vecf, bint, unsigned int *) noexcept


cdef inline int run_addcmul(elem_type read, elem_type out, const loop_args *args) noexcept nogil:
    cdef double value[1]  # in a copy, which no result overlaps
    value[0] = args.params.p[0]
    if value[0] == 1:
        return run_rounded(addcmul_plain, read, out, args, value)
    return run_rounded(addcmul_scaled, read, out, args, value)


cdef inline int run_lerps(elem_type read, elem_type out, const loop_args *args) noexcept nogil:
    cdef double weight[1]
    weight[0] = args.params.p[0]
    return run_rounded(lerps_rounded, read, out, args, weight)


cdef inline int addcmul_f32(const loop_args *args) noexcept nogil:
    return run_addcmul(F32, F32, args)


cdef inline int addcmul_f16(const loop_args *args) noexcept nogil:
    return run_addcmul(F16, F16, args)


cdef inline int addcmul_bf16(const loop_args *args) noexcept nogil:
    return run_addcmul(BF16, BF16, args)


cdef inline int addcmul_to_f16(const loop_args *args) noexcept nogil:
    return run_addcmul(F32, F16, args)


cdef inline int addcmul_to_bf16(const loop_args *args) noexcept nogil:
    return run_addcmul(F32, BF16, args)


cdef inline int lerp_f32(const loop_args *args) noexcept nogil:
    return run_rounded(lerp_rounded, F32, F32, args, NULL)


cdef inline int lerp_f16(const loop_args *args) noexcept nogil:
    return run_rounded(lerp_rounded, F16, F16, args, NULL)


cdef inline int lerp_bf16(const loop_args *args) noexcept nogil:
    return run_rounded(lerp_rounded, BF16, BF16, args, NULL)


cdef inline int lerp_to_f16(const loop_args *args) noexcept nogil:
    return run_rounded(lerp_rounded, F32, F16, args, NULL)


cdef inline int lerp_to_bf16(const loop_args *args) noexcept nogil:
    return run_rounded(lerp_rounded, F32, BF16, args, NULL)


cdef inline int lerps_f32(const loop_args *args) noexcept nogil:
    return run_lerps(F32, F32, args)


cdef inline int lerps_f16(const loop_args *args) noexcept nogil:
    return run_lerps(F16, F16, args)


cdef inline int lerps_bf16(const loop_args *args) noexcept nogil:
    return run_lerps(BF16, BF16, args)


cdef inline int lerps_to_f16(const loop_args *args) noexcept nogil:
    return run_lerps(F32, F16, args)


cdef inline int lerps_to_bf16(const loop_args *args) noexcept nogil:
    return run_lerps(F32, BF16, args)
