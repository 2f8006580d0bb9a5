"""GELU and its gradient, exact and with tanh, over vectors (`gelu.h`)."""

from libc.stdint cimport uint16_t

from aclnn.kernels.simd.loop_args cimport BF16, F16, F32, loop_args, params_t
from aclnn.kernels.simd.loops cimport classify, run, run_f32
from aclnn.kernels.simd.track cimport domain_t, track_t
from aclnn.kernels.simd.vector cimport vecf
from aclnn.kernels.unaligned cimport unaligned_float

cdef extern from "simd/gelu.h" nogil:
    const domain_t GELU_DOMAIN
    vecf gelu_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf gelu_f16_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf gelu_bf16_vec(const params_t *, vecf, vecf, track_t *) noexcept
    bint gelu_is_exceptional(float, float, float, const double *) noexcept
    const domain_t TIMES_GELU_DOMAIN
    vecf times_gelu_vec(const params_t *, vecf, vecf, track_t *) noexcept
    bint times_gelu_is_exceptional(float, float, float, const double *) noexcept
    const domain_t GELU_TANH_DOMAIN
    vecf gelu_tanh_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    bint gelu_tanh_is_exceptional(float, float, float, const double *) noexcept
    const domain_t GELU_BACKWARD_DOMAIN
    vecf gelu_backward_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf gelu_backward_f16_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf gelu_backward_bf16_vec(const params_t *, vecf, vecf, track_t *) noexcept
    bint gelu_backward_is_exceptional(float, float, float, const double *) noexcept
    const domain_t GELU_BACKWARD_TANH_DOMAIN
    vecf gelu_backward_tanh_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    bint gelu_backward_tanh_is_exceptional(float, float, float, const double *) noexcept


cdef inline int gelu_f32(const loop_args *args) noexcept nogil:
    return run_f32(gelu_f32_vec, args.a, GELU_DOMAIN, args)


cdef inline int gelu_f16(const loop_args *args) noexcept nogil:
    return run(gelu_f16_vec, F16, F16, GELU_DOMAIN, args)


cdef inline int gelu_bf16(const loop_args *args) noexcept nogil:
    return run(gelu_bf16_vec, BF16, BF16, GELU_DOMAIN, args)


cdef inline int gelu_to_f16(const loop_args *args) noexcept nogil:
    return run(gelu_f32_vec, F32, F16, GELU_DOMAIN, args)


cdef inline int gelu_to_bf16(const loop_args *args) noexcept nogil:
    return run(gelu_f32_vec, F32, BF16, GELU_DOMAIN, args)


cdef inline void classify_gelu(
        const unaligned_float *a, const unaligned_float *b, const unaligned_float *r,
        uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    classify(gelu_is_exceptional, a, b, r, exceptional, n, p)


cdef inline int times_gelu_f32(const loop_args *args) noexcept nogil:
    return run_f32(times_gelu_vec, args.a, TIMES_GELU_DOMAIN, args)


cdef inline int times_gelu_f16(const loop_args *args) noexcept nogil:
    return run(times_gelu_vec, F16, F16, TIMES_GELU_DOMAIN, args)


cdef inline int times_gelu_bf16(const loop_args *args) noexcept nogil:
    return run(times_gelu_vec, BF16, BF16, TIMES_GELU_DOMAIN, args)


cdef inline int times_gelu_to_f16(const loop_args *args) noexcept nogil:
    return run(times_gelu_vec, F32, F16, TIMES_GELU_DOMAIN, args)


cdef inline int times_gelu_to_bf16(const loop_args *args) noexcept nogil:
    return run(times_gelu_vec, F32, BF16, TIMES_GELU_DOMAIN, args)


cdef inline void classify_times_gelu(
        const unaligned_float *a, const unaligned_float *b, const unaligned_float *r,
        uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    classify(times_gelu_is_exceptional, a, b, r, exceptional, n, p)


cdef inline int gelu_tanh_f32(const loop_args *args) noexcept nogil:
    return run_f32(gelu_tanh_f32_vec, args.a, GELU_TANH_DOMAIN, args)


cdef inline int gelu_tanh_f16(const loop_args *args) noexcept nogil:
    return run(gelu_tanh_f32_vec, F16, F16, GELU_TANH_DOMAIN, args)


cdef inline int gelu_tanh_bf16(const loop_args *args) noexcept nogil:
    return run(gelu_tanh_f32_vec, BF16, BF16, GELU_TANH_DOMAIN, args)


cdef inline int gelu_tanh_to_f16(const loop_args *args) noexcept nogil:
    return run(gelu_tanh_f32_vec, F32, F16, GELU_TANH_DOMAIN, args)


cdef inline int gelu_tanh_to_bf16(const loop_args *args) noexcept nogil:
    return run(gelu_tanh_f32_vec, F32, BF16, GELU_TANH_DOMAIN, args)


cdef inline void classify_gelu_tanh(
        const unaligned_float *a, const unaligned_float *b, const unaligned_float *r,
        uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    classify(gelu_tanh_is_exceptional, a, b, r, exceptional, n, p)


cdef inline int gelu_backward_f32(const loop_args *args) noexcept nogil:
    return run_f32(gelu_backward_f32_vec, args.a, GELU_BACKWARD_DOMAIN, args)


cdef inline int gelu_backward_f16(const loop_args *args) noexcept nogil:
    return run(gelu_backward_f16_vec, F16, F16, GELU_BACKWARD_DOMAIN, args)


cdef inline int gelu_backward_bf16(const loop_args *args) noexcept nogil:
    return run(gelu_backward_bf16_vec, BF16, BF16, GELU_BACKWARD_DOMAIN, args)


cdef inline int gelu_backward_to_f16(const loop_args *args) noexcept nogil:
    return run(gelu_backward_f32_vec, F32, F16, GELU_BACKWARD_DOMAIN, args)


cdef inline int gelu_backward_to_bf16(const loop_args *args) noexcept nogil:
    return run(gelu_backward_f32_vec, F32, BF16, GELU_BACKWARD_DOMAIN, args)


cdef inline void classify_gelu_backward(
        const unaligned_float *a, const unaligned_float *b, const unaligned_float *r,
        uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    classify(gelu_backward_is_exceptional, a, b, r, exceptional, n, p)


cdef inline int gelu_backward_tanh_f32(const loop_args *args) noexcept nogil:
    return run_f32(gelu_backward_tanh_f32_vec, args.a, GELU_BACKWARD_TANH_DOMAIN, args)


cdef inline int gelu_backward_tanh_f16(const loop_args *args) noexcept nogil:
    return run(gelu_backward_tanh_f32_vec, F16, F16, GELU_BACKWARD_TANH_DOMAIN, args)


cdef inline int gelu_backward_tanh_bf16(const loop_args *args) noexcept nogil:
    return run(gelu_backward_tanh_f32_vec, BF16, BF16, GELU_BACKWARD_TANH_DOMAIN, args)


cdef inline int gelu_backward_tanh_to_f16(const loop_args *args) noexcept nogil:
    return run(gelu_backward_tanh_f32_vec, F32, F16, GELU_BACKWARD_TANH_DOMAIN, args)


cdef inline int gelu_backward_tanh_to_bf16(const loop_args *args) noexcept nogil:
    return run(gelu_backward_tanh_f32_vec, F32, BF16, GELU_BACKWARD_TANH_DOMAIN, args)


cdef inline void classify_gelu_backward_tanh(
        const unaligned_float *a, const unaligned_float *b, const unaligned_float *r,
        uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    classify(gelu_backward_tanh_is_exceptional, a, b, r, exceptional, n, p)
