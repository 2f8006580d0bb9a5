"""Vectors loaded from elements of any floating type, and rounded to it.

A result that is to be half precision is rounded from a float32 whose relative error is bounded.
Where both ends of the error's interval do not round to the same number, the rounding test fails:
the result is hard to round, and is computed again in double.
"""

from libc.stdint cimport uint16_t, uint32_t

from aclnn.kernels.simd.loop_args cimport F16, F32, elem_type
from aclnn.kernels.simd.vector cimport (
    vecf,
    vech,
    veci,
    vf_bits,
    vf_from_bf16,
    vf_from_f16,
    vf_both_zero_or_at_least,
    vf_load,
    vf_mul,
    vf_set,
    vf_store,
    vf_store_f16,
    vf_stream,
    vf_to_f16,
    vf_to_f16_by_memory,
    vh_differ,
    vh_load,
    vi_add,
    vi_join,
    vi_misses,
    vi_round_to_upper,
    vi_set,
    vi_store,
    vi_stream,
    vi_upper_halves,
)


cdef struct two_t:
    # Two vectors that follow one another in memory.
    vecf low
    vecf high


cdef inline ptrdiff_t size_of(elem_type type) noexcept nogil:
    return 4 if type == F32 else 2


cdef inline vecf from_half_type(elem_type type, vech h) noexcept nogil:
    return vf_from_f16(h) if type == F16 else vf_from_bf16(h)


cdef inline vecf load_as_f32(elem_type type, const char *p) noexcept nogil:
    if type == F32:
        return vf_load(p)
    return from_half_type(type, vh_load(p))


# --- Rounding with a test -------------------------------------------------------------------------
# `rel_error`: the bound of the relative error; 0: the result is exact or was rounded to odd.

cdef inline uint32_t reach_of(float rel_error) noexcept nogil:
    """Units of float32, from the midpoint of two neighbours, within which results are hard to
    round: a unit is at least 2^-24 of the result.  Elsewhere they do not matter."""
    return 4 if rel_error <= 2.384e-7 else 8 if rel_error <= 4.768e-7 else 16


cdef inline veci round_bf16(vecf x, float rel_error, uint16_t *hard) noexcept nogil:
    """The upper halves become the results."""
    cdef uint32_t reach
    cdef veci above
    if rel_error == 0:
        return vi_round_to_upper(vf_bits(x))
    reach = reach_of(rel_error)
    above = vi_add(vf_bits(x), vi_set(0x8000 + reach))
    hard[0] = <uint16_t>vi_misses(above, vi_set(0x10000 - 2 * reach))
    return above


cdef inline float outward(float rel_error) noexcept nogil:
    """The bound, and what rounding takes from 1 and the bound and from products with that."""
    return rel_error + <float>1.1920929e-07


cdef inline uint16_t test_rounding(vech low, vecf x, float rel_error) noexcept nogil:
    """The lanes where `low`, of x less the bound, is not what x plus the bound rounds to."""
    cdef vecf most = vf_mul(x, vf_set(1 + outward(rel_error)))
    return <uint16_t>vh_differ(low, vf_to_f16_by_memory(most))


cdef inline vech round_half(elem_type type, vecf x, float rel_error,
                            uint16_t *hard) noexcept nogil:
    cdef vech low
    if type != F16:
        return vi_upper_halves(round_bf16(x, rel_error, hard))
    if rel_error == 0:
        return vf_to_f16(x)
    low = vf_to_f16(vf_mul(x, vf_set(1 - outward(rel_error))))
    hard[0] = test_rounding(low, x, rel_error)
    return low


cdef inline bint all_normal_f16(two_t two) noexcept nogil:
    """Whether no result is subnormal in float16, or a NaN."""
    return vf_both_zero_or_at_least(two.low, two.high, 6.103515625e-05)


cdef inline uint16_t hard_normal_f16(vecf x, float rel_error) noexcept nogil:
    """Normal results that are hard to round, by their distance, in bits, from the middle of two
    neighbours: that takes fewer operations than rounding both ends of an interval."""
    cdef uint32_t reach = reach_of(rel_error)
    return <uint16_t>vi_misses(vi_add(vf_bits(x), vi_set(0x1000 + reach)),
                               vi_set(0x2000 - 2 * reach))


cdef inline void store_normal_f16(char *target, vecf x, float rel_error,
                                  uint16_t *hard) noexcept nogil:
    vf_store_f16(target, x)
    hard[0] = hard_normal_f16(x, rel_error)


cdef inline veci round_two(elem_type type, two_t two, float rel_error,
                           uint16_t *hard) noexcept nogil:
    cdef vech low
    if type == F16 and rel_error != 0 and all_normal_f16(two):
        hard[0] = hard_normal_f16(two.low, rel_error)
        hard[1] = hard_normal_f16(two.high, rel_error)
        return vi_join(vf_to_f16(two.low), vf_to_f16(two.high))
    low = round_half(type, two.low, rel_error, hard)
    return vi_join(low, round_half(type, two.high, rel_error, hard + 1))


# --- Stores ---------------------------------------------------------------------------------------

cdef inline void store_f32(char *target, vecf x, bint stream) noexcept nogil:
    if stream:
        vf_stream(target, x)
    else:
        vf_store(target, x)


cdef inline void store_line(char *target, veci line, bint stream) noexcept nogil:
    if stream:
        vi_stream(target, line)
    else:
        vi_store(target, line)
