"""Hard shrinkage of half precision by its bits, where there are no vectors.

Through double, a signaling NaN would become quiet.  What has other types goes through the plain
loop, which keeps elements as they are or has to convert them.
"""

from libc.stdint cimport uint16_t

from aclnn.kernels.element cimport bfloat16_t, half_t
from aclnn.kernels.simd.loop_args cimport elem_type, loop_args, params_t

cdef extern from "simd/hardshrink.h" nogil:
    ctypedef struct hardshrink_t:
        uint16_t half_low
        uint16_t half_reach
        uint16_t bf16_low
        uint16_t bf16_reach
    void prepare_hardshrink(params_t *, elem_type) noexcept
    void prepare_hardshrink_backward(params_t *, elem_type) noexcept

ctypedef fused half_type:
    half_t
    bfloat16_t


cdef inline uint16_t keep_within(uint16_t g, uint16_t x, uint16_t low,
                                 uint16_t reach) noexcept nogil:
    return g if <uint16_t>((x & 0x7fff) - low) <= reach else 0


cdef inline void keep_all(const half_type *g, const half_type *x, half_type *out,
                          ptrdiff_t n, uint16_t low, uint16_t reach) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i].bits = keep_within(g[i].bits, x[i].bits, low, reach)


cdef inline int hardshrink_f16_scalar(const loop_args *args) noexcept nogil:
    cdef hardshrink_t own = (<const hardshrink_t *>args.params.own)[0]
    keep_all(<const half_t *>args.a, <const half_t *>args.b, <half_t *>args.out, args.n,
             own.half_low, own.half_reach)
    return 0


cdef inline int hardshrink_bf16_scalar(const loop_args *args) noexcept nogil:
    cdef hardshrink_t own = (<const hardshrink_t *>args.params.own)[0]
    keep_all(<const bfloat16_t *>args.a, <const bfloat16_t *>args.b, <bfloat16_t *>args.out, args.n,
             own.bf16_low, own.bf16_reach)
    return 0
