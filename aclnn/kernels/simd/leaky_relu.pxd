"""Leaky ReLU and its gradient over vectors (`leaky_relu.h`)."""

from libc.stdint cimport uint16_t

from aclnn.kernels.simd.loop_args cimport BF16, F16, F32, elem_type, loop_args, params_t
from aclnn.kernels.simd.loops cimport classify, run, run_lines
from aclnn.kernels.simd.track cimport domain_t, track_t
from aclnn.kernels.simd.vector cimport vecf, veci
from aclnn.kernels.unaligned cimport unaligned_float

cdef extern from "simd/leaky_relu.h" nogil:
    ctypedef struct leaky_relu_t:
        bint at_once
    const domain_t LEAKY_RELU_DOMAIN
    vecf leaky_relu_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf leaky_relu_f16_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf leaky_relu_bf16_vec(const params_t *, vecf, vecf, track_t *) noexcept
    veci leaky_relu_f16_line(const void *, const char *, const char *, track_t *) noexcept
    veci leaky_relu_bf16_line(const void *, const char *, const char *, track_t *) noexcept
    veci leaky_backward_f16_line(const void *, const char *, const char *, track_t *) noexcept
    veci leaky_backward_bf16_line(const void *, const char *, const char *, track_t *) noexcept
    bint leaky_relu_is_exceptional(float, float, float, const double *) noexcept
    bint leaky_relu_computed_is_exceptional(float, float, float, const double *) noexcept
    void prepare_leaky_relu(params_t *, elem_type) noexcept


cdef inline int leaky_relu_f32(const loop_args *args) noexcept nogil:
    return run(leaky_relu_f32_vec, F32, F32, LEAKY_RELU_DOMAIN, args)


cdef inline int leaky_relu_to_f16(const loop_args *args) noexcept nogil:
    return run(leaky_relu_bf16_vec, F32, F16, LEAKY_RELU_DOMAIN, args)


cdef inline int leaky_relu_to_bf16(const loop_args *args) noexcept nogil:
    return run(leaky_relu_bf16_vec, F32, BF16, LEAKY_RELU_DOMAIN, args)


cdef inline int leaky_relu_f16(const loop_args *args) noexcept nogil:
    cdef leaky_relu_t own = (<const leaky_relu_t *>args.params.own)[0]
    if not own.at_once:
        return run(leaky_relu_f16_vec, F16, F16, LEAKY_RELU_DOMAIN, args)
    if args.a == args.b:
        return run_lines(leaky_relu_f16_line, F16, args[0], &own)
    return run_lines(leaky_backward_f16_line, F16, args[0], &own)


cdef inline int leaky_relu_bf16(const loop_args *args) noexcept nogil:
    cdef leaky_relu_t own = (<const leaky_relu_t *>args.params.own)[0]
    if not own.at_once:
        return run(leaky_relu_bf16_vec, BF16, BF16, LEAKY_RELU_DOMAIN, args)
    if args.a == args.b:
        return run_lines(leaky_relu_bf16_line, BF16, args[0], &own)
    return run_lines(leaky_backward_bf16_line, BF16, args[0], &own)


cdef inline void classify_leaky_relu(
        const unaligned_float *a, const unaligned_float *b, const unaligned_float *r,
        uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    classify(leaky_relu_is_exceptional, a, b, r, exceptional, n, p)


cdef inline void classify_leaky_relu_f32(
        const unaligned_float *a, const unaligned_float *b, const unaligned_float *r,
        uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    classify(leaky_relu_computed_is_exceptional, a, b, r, exceptional, n, p)
