"""ELU and its gradient over vectors (`elu.h`)."""

from libc.stdint cimport uint16_t

from aclnn.kernels.simd.loop_args cimport (
    BF16,
    EXCEPTIONAL,
    F16,
    F32,
    elem_type,
    loop_args,
    params_t,
)
from aclnn.kernels.simd.loops cimport classify, run, run_f32
from aclnn.kernels.simd.track cimport domain_t, track_t
from aclnn.kernels.simd.vector cimport vecf
from aclnn.kernels.unaligned cimport unaligned_float

cdef extern from "simd/elu.h" nogil:
    ctypedef struct elu_t:
        bint extreme
    ctypedef struct elu_backward_t:
        float rate
        bint extreme
    const domain_t ELU_DOMAIN
    const domain_t ELU_BACKWARD_DOMAIN
    vecf elu_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf elu_half_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf elu_backward_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf elu_backward_half_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf elu_unit_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf elu_unit_half_vec(const params_t *, vecf, vecf, track_t *) noexcept
    bint elu_is_exceptional(float, float, float, const double *) noexcept
    bint elu_backward_is_exceptional(float, float, float, const double *) noexcept
    void prepare_elu(params_t *, elem_type) noexcept
    void prepare_elu_backward(params_t *, elem_type) noexcept


cdef inline int elu_extreme(const loop_args *args) noexcept nogil:
    return EXCEPTIONAL if (<const elu_t *>args.params.own).extreme else 0


cdef inline int elu_f32(const loop_args *args) noexcept nogil:
    return run_f32(elu_f32_vec, args.a, ELU_DOMAIN, args) | elu_extreme(args)


cdef inline int elu_f16(const loop_args *args) noexcept nogil:
    return run(elu_half_vec, F16, F16, ELU_DOMAIN, args) | elu_extreme(args)


cdef inline int elu_bf16(const loop_args *args) noexcept nogil:
    return run(elu_half_vec, BF16, BF16, ELU_DOMAIN, args) | elu_extreme(args)


cdef inline int elu_to_f16(const loop_args *args) noexcept nogil:
    return run(elu_f32_vec, F32, F16, ELU_DOMAIN, args) | elu_extreme(args)


cdef inline int elu_to_bf16(const loop_args *args) noexcept nogil:
    return run(elu_f32_vec, F32, BF16, ELU_DOMAIN, args) | elu_extreme(args)


cdef inline void classify_elu(
        const unaligned_float *a, const unaligned_float *b, const unaligned_float *r,
        uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    classify(elu_is_exceptional, a, b, r, exceptional, n, p)


cdef inline int extreme_slope(const loop_args *args) noexcept nogil:
    return EXCEPTIONAL if (<const elu_backward_t *>args.params.own).extreme else 0


cdef inline bint has_unit_rate(const loop_args *args) noexcept nogil:
    """Whether nothing is multiplied, so that no second part is needed."""
    return (<const elu_backward_t *>args.params.own).rate == 1


cdef inline int elu_backward_f32(const loop_args *args) noexcept nogil:
    if has_unit_rate(args):
        return run_f32(elu_unit_f32_vec, args.a, ELU_BACKWARD_DOMAIN, args) | extreme_slope(args)
    return run_f32(elu_backward_f32_vec, args.a, ELU_BACKWARD_DOMAIN, args) | extreme_slope(args)


cdef inline int elu_backward_f16(const loop_args *args) noexcept nogil:
    if has_unit_rate(args):
        return run(elu_unit_half_vec, F16, F16, ELU_BACKWARD_DOMAIN, args) | extreme_slope(args)
    return run(elu_backward_half_vec, F16, F16, ELU_BACKWARD_DOMAIN, args) | extreme_slope(args)


cdef inline int elu_backward_bf16(const loop_args *args) noexcept nogil:
    if has_unit_rate(args):
        return run(elu_unit_half_vec, BF16, BF16, ELU_BACKWARD_DOMAIN, args) | extreme_slope(args)
    return run(elu_backward_half_vec, BF16, BF16, ELU_BACKWARD_DOMAIN, args) | extreme_slope(args)


cdef inline int elu_backward_to_f16(const loop_args *args) noexcept nogil:
    if has_unit_rate(args):
        return run(elu_unit_f32_vec, F32, F16, ELU_BACKWARD_DOMAIN, args) | extreme_slope(args)
    return run(elu_backward_f32_vec, F32, F16, ELU_BACKWARD_DOMAIN, args) | extreme_slope(args)


cdef inline int elu_backward_to_bf16(const loop_args *args) noexcept nogil:
    if has_unit_rate(args):
        return run(elu_unit_f32_vec, F32, BF16, ELU_BACKWARD_DOMAIN, args) | extreme_slope(args)
    return run(elu_backward_f32_vec, F32, BF16, ELU_BACKWARD_DOMAIN, args) | extreme_slope(args)


cdef inline void classify_elu_backward(
        const unaligned_float *a, const unaligned_float *b, const unaligned_float *r,
        uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    classify(elu_backward_is_exceptional, a, b, r, exceptional, n, p)
