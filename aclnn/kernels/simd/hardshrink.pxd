"""Hard shrinkage and its gradient over vectors (`hardshrink.h`)."""

from aclnn.kernels.simd.loop_args cimport BF16, F16, F32, elem_type, loop_args, params_t
from aclnn.kernels.simd.loops cimport run, run_lines
from aclnn.kernels.simd.track cimport domain_t, track_t
from aclnn.kernels.simd.vector cimport vecf, veci

cdef extern from "simd/hardshrink.h" nogil:
    ctypedef struct hardshrink_t:
        pass
    const domain_t HARDSHRINK_DOMAIN
    vecf hardshrink_vec(const params_t *, vecf, vecf, track_t *) noexcept
    veci hardshrink_f32_line(const void *, const char *, const char *, track_t *) noexcept
    veci hardshrink_f16_line(const void *, const char *, const char *, track_t *) noexcept
    veci hardshrink_bf16_line(const void *, const char *, const char *, track_t *) noexcept
    void prepare_hardshrink(params_t *, elem_type) noexcept
    void prepare_hardshrink_backward(params_t *, elem_type) noexcept


cdef inline int hardshrink_f32(const loop_args *args) noexcept nogil:
    cdef hardshrink_t own = (<const hardshrink_t *>args.params.own)[0]
    return run_lines(hardshrink_f32_line, F32, args[0], &own)


cdef inline int hardshrink_f16(const loop_args *args) noexcept nogil:
    cdef hardshrink_t own = (<const hardshrink_t *>args.params.own)[0]
    return run_lines(hardshrink_f16_line, F16, args[0], &own)


cdef inline int hardshrink_bf16(const loop_args *args) noexcept nogil:
    cdef hardshrink_t own = (<const hardshrink_t *>args.params.own)[0]
    return run_lines(hardshrink_bf16_line, BF16, args[0], &own)


cdef inline int hardshrink_to_f16(const loop_args *args) noexcept nogil:
    return run(hardshrink_vec, F32, F16, HARDSHRINK_DOMAIN, args)


cdef inline int hardshrink_to_bf16(const loop_args *args) noexcept nogil:
    return run(hardshrink_vec, F32, BF16, HARDSHRINK_DOMAIN, args)
