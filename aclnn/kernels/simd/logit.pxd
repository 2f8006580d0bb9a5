"""Logit and its gradient over vectors (`logit.h`)."""

from libc.stdint cimport uint16_t

from aclnn.kernels.simd.loop_args cimport (
    BF16,
    EXCEPTIONAL,
    F16,
    F32,
    OUT_OF_DOMAIN,
    elem_type,
    loop_args,
    params_t,
)
from aclnn.kernels.simd.loops cimport classify, run, run_f32
from aclnn.kernels.simd.track cimport domain_t, track_t
from aclnn.kernels.simd.vector cimport vecf
from aclnn.kernels.unaligned cimport unaligned_float

cdef extern from "simd/logit.h" nogil:
    ctypedef struct logit_t:
        bint open
        bint whole
        bint symmetric
        bint extreme
        bint crossed
    const domain_t LOGIT_DOMAIN
    const domain_t LOGIT_F32_DOMAIN
    const domain_t LOGIT_BACKWARD_DOMAIN
    const domain_t LOGIT_OPEN_DOMAIN
    const domain_t LOGIT_WHOLE_DOMAIN
    vecf logit_bounded_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf logit_bounded_half_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf logit_unbounded_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf logit_unbounded_half_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf logit_backward_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf logit_backward_half_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf logit_symmetric_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf logit_whole_f32_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf logit_whole_half_vec(const params_t *, vecf, vecf, track_t *) noexcept
    vecf logit_open_half_vec(const params_t *, vecf, vecf, track_t *) noexcept
    bint logit_is_exceptional(float, float, float, const double *) noexcept
    bint logit_backward_is_exceptional(float, float, float, const double *) noexcept
    void prepare_logit(params_t *, elem_type) noexcept


cdef inline const logit_t *logit_params(const loop_args *args) noexcept nogil:
    return <const logit_t *>args.params.own


cdef inline int crossed(const loop_args *args) noexcept nogil:
    return EXCEPTIONAL if logit_params(args).crossed else 0


cdef inline int logit_f32(const loop_args *args) noexcept nogil:
    if logit_params(args).open:
        return run(logit_unbounded_f32_vec, F32, F32, LOGIT_F32_DOMAIN, args)
    return run(logit_bounded_f32_vec, F32, F32, LOGIT_F32_DOMAIN, args) | crossed(args)


cdef inline int logit_f16(const loop_args *args) noexcept nogil:
    if logit_params(args).open:
        return run(logit_unbounded_half_vec, F16, F16, LOGIT_DOMAIN, args)
    return run(logit_bounded_half_vec, F16, F16, LOGIT_DOMAIN, args) | crossed(args)


cdef inline int logit_bf16(const loop_args *args) noexcept nogil:
    if logit_params(args).open:
        return run(logit_unbounded_half_vec, BF16, BF16, LOGIT_DOMAIN, args)
    return run(logit_bounded_half_vec, BF16, BF16, LOGIT_DOMAIN, args) | crossed(args)


cdef inline int logit_to_f16(const loop_args *args) noexcept nogil:
    return run(logit_bounded_half_vec, F32, F16, LOGIT_DOMAIN, args) | crossed(args)


cdef inline int logit_to_bf16(const loop_args *args) noexcept nogil:
    return run(logit_bounded_half_vec, F32, BF16, LOGIT_DOMAIN, args) | crossed(args)


cdef inline void classify_logit(
        const unaligned_float *a, const unaligned_float *b, const unaligned_float *r,
        uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    classify(logit_is_exceptional, a, b, r, exceptional, n, p)


cdef inline int extreme_eps(const loop_args *args) noexcept nogil:
    return EXCEPTIONAL if logit_params(args).extreme else 0


cdef inline bint expects_inside(const loop_args *args) noexcept nogil:
    """Whether all x most likely lie between 0 and 1, which are the bounds."""
    return logit_params(args).whole and not args.hints.outside


cdef inline loop_args after_outside(const loop_args *args) noexcept nogil:
    """The arguments of a block that is computed once more, because an x is outside.

    Inputs are never where results go.  The blocks that follow are expected to have such x too;
    what was staged is gone after the first time.
    """
    cdef loop_args again = args[0]
    args.hints.outside = 1
    again.staged_target = NULL
    return again


cdef inline int logit_backward_f32(const loop_args *args) noexcept nogil:
    cdef loop_args again = args[0]
    cdef int found
    if expects_inside(args):
        found = run_f32(logit_whole_f32_vec, args.b, LOGIT_WHOLE_DOMAIN, args)
        if not found & OUT_OF_DOMAIN:
            return found
        again = after_outside(args)
    if logit_params(args).symmetric:
        return extreme_eps(args) | run_f32(
            logit_symmetric_f32_vec, again.b, LOGIT_BACKWARD_DOMAIN, &again)
    return extreme_eps(args) | run_f32(
        logit_backward_f32_vec, again.b, LOGIT_BACKWARD_DOMAIN, &again)


cdef inline int logit_backward_f16(const loop_args *args) noexcept nogil:
    cdef loop_args again = args[0]
    cdef int found
    if expects_inside(args):
        found = run(logit_whole_half_vec, F16, F16, LOGIT_WHOLE_DOMAIN, args)
        if not found & OUT_OF_DOMAIN:
            return found
        again = after_outside(args)
    if logit_params(args).open:
        return run(logit_open_half_vec, F16, F16, LOGIT_OPEN_DOMAIN, &again)
    return run(logit_backward_half_vec, F16, F16, LOGIT_BACKWARD_DOMAIN, &again) | extreme_eps(args)


cdef inline int logit_backward_bf16(const loop_args *args) noexcept nogil:
    cdef loop_args again = args[0]
    cdef int found
    if expects_inside(args):
        found = run(logit_whole_half_vec, BF16, BF16, LOGIT_WHOLE_DOMAIN, args)
        if not found & OUT_OF_DOMAIN:
            return found
        again = after_outside(args)
    if logit_params(args).open:
        return run(logit_open_half_vec, BF16, BF16, LOGIT_OPEN_DOMAIN, &again)
    return extreme_eps(args) | run(
        logit_backward_half_vec, BF16, BF16, LOGIT_BACKWARD_DOMAIN, &again)


cdef inline int logit_backward_to_f16(const loop_args *args) noexcept nogil:
    return run(logit_backward_half_vec, F32, F16, LOGIT_BACKWARD_DOMAIN, args) | extreme_eps(args)


cdef inline int logit_backward_to_bf16(const loop_args *args) noexcept nogil:
    return run(logit_backward_half_vec, F32, BF16, LOGIT_BACKWARD_DOMAIN, args) | extreme_eps(args)


cdef inline void classify_logit_backward(
        const unaligned_float *a, const unaligned_float *b, const unaligned_float *r,
        uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    classify(logit_backward_is_exceptional, a, b, r, exceptional, n, p)
