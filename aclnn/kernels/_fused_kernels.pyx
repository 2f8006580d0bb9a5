"""Kernels of several pointwise nodes: programs on registers.

A program is a sequence of steps (`kernels/simd/steps.pxd`): loads, formulas, roundings, spills of
values that are read again, and stores.  Every step is compiled once; a value between two steps
stays in eight vector registers.  What no step does is a call of the node's own kernel on a block
of elements in the nearest cache.  Results are bitwise those of the nodes' own kernels.

Steps are compiled once for each instruction set whose calling convention passes vectors in
registers, functions that Python calls once (`kernels/instruction_sets.h`).
"""

from libc.stdint cimport PTRDIFF_MAX, uint16_t, uint32_t, uintptr_t
from libc.string cimport memcmp, memcpy, memset

from typing import NamedTuple

from aclnn.acl.dtypes import ITEM_SIZES
from aclnn.graph.runtime.kernel import Kernel

cimport aclnn.kernels.activations as activations  # no-cython-lint: what is included needs it
cimport aclnn.kernels.arithmetic as arithmetic  # no-cython-lint: as above
from aclnn.kernels._kernel_reference cimport State
from aclnn.kernels.computation cimport compute_state
from aclnn.kernels.element cimport copy_elements
from aclnn.kernels.formula_loops cimport MOST_INPUTS
from aclnn.kernels.instruction_sets cimport SETS, SETS_BUILT, set_in_use, take_set
from aclnn.kernels.numbers cimport pair_t  # no-cython-lint: as above
from aclnn.kernels.programs cimport PROGRAM_OPERANDS, program_t
from aclnn.kernels.simd.exact cimport FLOAT_DOMAIN, tracked, tracked_where  # no-cython-lint
from aclnn.kernels.simd.variants cimport pair_exactly, pair_rounded  # no-cython-lint: as above
from aclnn.kernels.recompute cimport enqueue_found, pending_t, recompute_pending
from aclnn.kernels.simd.loop_args cimport (
    BF16,
    F16,
    MASKS_TOGETHER,
    ZEROS_UNKNOWN,
    elem_type,
    hints_t,
    loop_args,
    params_t,
    simd_loop,
)
from aclnn.kernels.simd.steps cimport *  # no-cython-lint: as above
from aclnn.kernels.simd.track cimport *  # no-cython-lint: as above
from aclnn.kernels.simd.vector cimport (
    LANES,
    mask_t,
    vecf,
    veci,
    vf_bits,
    vf_from_bf16,
    vf_from_f16,
    vf_set,
    vf_store,
    vf_stream,
    vh_load,
    vi_and,
    vi_as_floats,
    vi_interleave_upper,
    vi_load,
    vi_set,
    vi_shift_left,
    vi_store,
    vi_stream,
)
from aclnn.kernels.tile cimport LINE, line_in, one_row, prefetch, to_line
from aclnn.graph.runtime.kernel_abi cimport (
    TILE_PREFETCH_FAR,
    TILE_PREFETCH_NEAR,
    TILE_STREAM,
    kernel_number,
    prepare_kernel,
    tile_kernel,
    tile_view,
)

cdef enum:
    SLOT = STEP_ELEMENTS * 4  # bytes of what eight vectors hold
    MOST_OPERANDS = PROGRAM_OPERANDS  # of a program, outside of registers
    MOST_SLOTS = 16     # of values that are read again
    FIRST_SLOT = MOST_OPERANDS
    FIRST_BLOCK = FIRST_SLOT + MOST_SLOTS
    MOST_BLOCKS = 16    # of values that lie in memory between segments
    MOST_STEPS = 128
    BLOCKS_BYTES = 32768  # of these, so that the nearest cache holds them
    MOST_BLOCK = 16384    # elements
    STREAM_ROW = 32768    # bytes of a row that is worth streaming where it begins with no line
    PART = STEP_ELEMENTS * 8  # bytes of as many elements as eight vectors hold
    FAR_AHEAD = 4096    # bytes from what is read to what is prefetched
    FILLER = 0x38       # bytes of numbers that suit every formula
    MOST_NAMES = 256
    MOST_NUMBERS = 64
    PREPARED = 16       # bytes of what is made of a number

cdef extern from "simd/steps.h" nogil:
    void scarce_products(float *g, const float *x, float factor) noexcept


# --- Steps: loads and stores ----------------------------------------------------------------------

cdef void load_f32(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                   const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef const char *x = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    next.run(at(x, 0), at(x, 1), at(x, 2), at(x, 3), at(x, 4), at(x, 5), at(x, 6), at(x, 7), next,
             frame, i)


cdef inline vecf f16_at(const char *x, int k) noexcept nogil:
    return vf_from_f16(vh_load(x + k * 2 * LANES))


cdef void load_f16(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                   const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef const char *x = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    next.run(f16_at(x, 0), f16_at(x, 1), f16_at(x, 2), f16_at(x, 3), f16_at(x, 4), f16_at(x, 5),
             f16_at(x, 6), f16_at(x, 7), next, frame, i)


cdef inline vecf bf16_at(const char *x, int k) noexcept nogil:
    return vf_from_bf16(vh_load(x + k * 2 * LANES))


cdef void load_bf16(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                    const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef const char *x = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    next.run(bf16_at(x, 0), bf16_at(x, 1), bf16_at(x, 2), bf16_at(x, 3), bf16_at(x, 4),
             bf16_at(x, 5), bf16_at(x, 6), bf16_at(x, 7), next, frame, i)


cdef inline vecf quiet_at(const char *x, int k) noexcept nogil:
    return vf_complete(vf_quiet(bf16_at(x, k)))


cdef void load_bf16_quiet(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                          const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    """Signaling NaNs become quiet, as where half precision is computed with."""
    cdef const char *x = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    next.run(quiet_at(x, 0), quiet_at(x, 1), quiet_at(x, 2), quiet_at(x, 3), quiet_at(x, 4),
             quiet_at(x, 5), quiet_at(x, 6), quiet_at(x, 7), next, frame, i)


# Where all that is in memory is bfloat16, vectors hold even and odd elements: that takes fewer
# operations.

cdef inline veci pairs_at(const char *x, int k) noexcept nogil:
    return vi_load(x + k * 4 * LANES)


cdef inline vecf even(veci pairs) noexcept nogil:
    return vi_as_floats(vi_shift_left(pairs, 16))


cdef inline vecf odd(veci pairs) noexcept nogil:
    return vi_as_floats(vi_and(pairs, vi_set(0xffff0000)))


cdef void load_bf16_pairs(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                          const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef const char *x = operand_of(step, frame, i)
    cdef veci p = pairs_at(x, 0), q = pairs_at(x, 1), r = pairs_at(x, 2), s = pairs_at(x, 3)
    cdef const step_t *next = step + 1
    next.run(even(p), odd(p), even(q), odd(q), even(r), odd(r), even(s), odd(s), next, frame, i)


cdef void load_bf16_pairs_quiet(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                                const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef const char *x = operand_of(step, frame, i)
    cdef veci p = pairs_at(x, 0), q = pairs_at(x, 1), r = pairs_at(x, 2), s = pairs_at(x, 3)
    cdef const step_t *next = step + 1
    a, b = vf_complete(vf_quiet(even(p))), vf_complete(vf_quiet(odd(p)))
    c, d = vf_complete(vf_quiet(even(q))), vf_complete(vf_quiet(odd(q)))
    e, f = vf_complete(vf_quiet(even(r))), vf_complete(vf_quiet(odd(r)))
    g, h = vf_complete(vf_quiet(even(s))), vf_complete(vf_quiet(odd(s)))
    next.run(a, b, c, d, e, f, g, h, next, frame, i)


cdef inline vecf bool_at(const char *x, int k) noexcept nogil:
    return vf_from_bool(x + k * LANES)


cdef void load_bool(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                    const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef const char *x = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    next.run(bool_at(x, 0), bool_at(x, 1), bool_at(x, 2), bool_at(x, 3), bool_at(x, 4),
             bool_at(x, 5), bool_at(x, 6), bool_at(x, 7), next, frame, i)


cdef inline void fetch(const char *p, ptrdiff_t n) noexcept nogil:
    """As an integer: what is ahead may lie behind the array, and is not accessed."""
    cdef uintptr_t ahead = <uintptr_t>p + FAR_AHEAD
    cdef ptrdiff_t k = 0
    while k < n:
        prefetch(<const char *>(ahead + <uintptr_t>k))
        k += LINE


cdef void prefetch_step(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                        const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef const step_t *next = step + 1
    fetch(operand_of(step, frame, i), STEP_ELEMENTS * step.size)
    next.run(a, b, c, d, e, f, g, h, next, frame, i)


cdef inline void put(char *p, int k, vecf x) noexcept nogil:
    vf_store(p + k * (SLOT // 8), x)


cdef void store_f32(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                    const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef char *out = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    put(out, 0, a)
    put(out, 1, b)
    put(out, 2, c)
    put(out, 3, d)
    put(out, 4, e)
    put(out, 5, f)
    put(out, 6, g)
    put(out, 7, h)
    next.run(a, b, c, d, e, f, g, h, next, frame, i)


cdef inline void stream(char *p, int k, vecf x) noexcept nogil:
    vf_stream(p + k * (SLOT // 8), x)


cdef void stream_f32(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                     const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef char *out = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    if <uintptr_t>out % LINE or not frame.streams:
        store_f32(a, b, c, d, e, f, g, h, step, frame, i)
        return
    stream(out, 0, a)
    stream(out, 1, b)
    stream(out, 2, c)
    stream(out, 3, d)
    stream(out, 4, e)
    stream(out, 5, f)
    stream(out, 6, g)
    stream(out, 7, h)
    next.run(a, b, c, d, e, f, g, h, next, frame, i)


cdef inline void put_line(char *p, int k, veci line, bint past) noexcept nogil:
    if past:
        vi_stream(p + k * 4 * LANES, line)
    else:
        vi_store(p + k * 4 * LANES, line)


cdef inline void put_f16(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                         const step_t *step, frame_t *frame, ptrdiff_t i,
                         bint past) noexcept nogil:
    cdef char *out = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    put_line(out, 0, vf_join_f16(a, b), past)
    put_line(out, 1, vf_join_f16(c, d), past)
    put_line(out, 2, vf_join_f16(e, f), past)
    put_line(out, 3, vf_join_f16(g, h), past)
    next.run(a, b, c, d, e, f, g, h, next, frame, i)


cdef inline void put_bf16(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                          const step_t *step, frame_t *frame, ptrdiff_t i,
                          bint past) noexcept nogil:
    cdef char *out = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    put_line(out, 0, vf_join_bf16(a, b), past)
    put_line(out, 1, vf_join_bf16(c, d), past)
    put_line(out, 2, vf_join_bf16(e, f), past)
    put_line(out, 3, vf_join_bf16(g, h), past)
    next.run(a, b, c, d, e, f, g, h, next, frame, i)


cdef inline veci joined_pairs(vecf x, vecf y) noexcept nogil:
    return vi_interleave_upper(vf_bits(x), vf_bits(y))


cdef inline void put_bf16_pairs(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                                const step_t *step, frame_t *frame, ptrdiff_t i,
                                bint past) noexcept nogil:
    cdef char *out = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    put_line(out, 0, joined_pairs(a, b), past)
    put_line(out, 1, joined_pairs(c, d), past)
    put_line(out, 2, joined_pairs(e, f), past)
    put_line(out, 3, joined_pairs(g, h), past)
    next.run(a, b, c, d, e, f, g, h, next, frame, i)


cdef void store_bf16_pairs(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                           const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    put_bf16_pairs(a, b, c, d, e, f, g, h, step, frame, i, False)


cdef void stream_bf16_pairs(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                            const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    if <uintptr_t>operand_of(step, frame, i) % LINE or not frame.streams:
        store_bf16_pairs(a, b, c, d, e, f, g, h, step, frame, i)
        return
    put_bf16_pairs(a, b, c, d, e, f, g, h, step, frame, i, True)


cdef void store_f16(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                    const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    put_f16(a, b, c, d, e, f, g, h, step, frame, i, False)


cdef void store_bf16(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                     const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    put_bf16(a, b, c, d, e, f, g, h, step, frame, i, False)


cdef void stream_f16(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                     const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    if <uintptr_t>operand_of(step, frame, i) % LINE or not frame.streams:
        store_f16(a, b, c, d, e, f, g, h, step, frame, i)
        return
    put_f16(a, b, c, d, e, f, g, h, step, frame, i, True)


cdef void stream_bf16(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                      const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    if <uintptr_t>operand_of(step, frame, i) % LINE or not frame.streams:
        store_bf16(a, b, c, d, e, f, g, h, step, frame, i)
        return
    put_bf16(a, b, c, d, e, f, g, h, step, frame, i, True)


cdef void store_bool(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                     const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef char *out = operand_of(step, frame, i)
    cdef const step_t *next = step + 1
    vf_store_bool(out, a)
    vf_store_bool(out + LANES, b)
    vf_store_bool(out + 2 * LANES, c)
    vf_store_bool(out + 3 * LANES, d)
    vf_store_bool(out + 4 * LANES, e)
    vf_store_bool(out + 5 * LANES, f)
    vf_store_bool(out + 6 * LANES, g)
    vf_store_bool(out + 7 * LANES, h)
    next.run(a, b, c, d, e, f, g, h, next, frame, i)


cdef void finish_block(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                       const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    """The last step, which returns: without tail calls, a program takes as many frames as steps."""


# --- Products that are scarce ---------------------------------------------------------------------

cdef inline bint any_scarce(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                            const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    """Whether a product with the node's number is so small that rounding it takes more digits."""
    cdef uint32_t p = scarce_below(<float>numbers_of(step, frame)[0])
    cdef mask_t low = mask_or(mask_or(vf_is_scarce(a, p), vf_is_scarce(b, p)),
                              mask_or(vf_is_scarce(c, p), vf_is_scarce(d, p)))
    cdef mask_t high = mask_or(mask_or(vf_is_scarce(e, p), vf_is_scarce(f, p)),
                               mask_or(vf_is_scarce(g, p), vf_is_scarce(h, p)))
    return mask_any(mask_or(low, high))


cdef inline bint is_at_once(const step_t *step, const frame_t *frame) noexcept nogil:
    """Whether products with the node's slope may be rounded twice."""
    return leaky(numbers_of(step, frame)).at_once


cdef void by_scarce(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                    const step_t *step, frame_t *frame, ptrdiff_t i, const float *x,
                    bint itself) noexcept nogil:
    """Go on with products rounded from doubles, where `x` or what is multiplied is not above 0."""
    cdef char memory[SLOT + LINE]
    cdef char *v = line_in(memory)
    cdef const step_t *next = step + 1
    put(v, 0, a)
    put(v, 1, b)
    put(v, 2, c)
    put(v, 3, d)
    put(v, 4, e)
    put(v, 5, f)
    put(v, 6, g)
    put(v, 7, h)
    scarce_products(<float *>v, <const float *>v if itself else x,
                    <float>numbers_of(step, frame)[0])
    next.run(to_bf16(at(v, 0)), to_bf16(at(v, 1)), to_bf16(at(v, 2)), to_bf16(at(v, 3)),
             to_bf16(at(v, 4)), to_bf16(at(v, 5)), to_bf16(at(v, 6)), to_bf16(at(v, 7)), next,
             frame, i)


cdef void scarce_of_all(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                        const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    by_scarce(a, b, c, d, e, f, g, h, step, frame, i, NULL, False)


cdef void scarce_of_one(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                        const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    by_scarce(a, b, c, d, e, f, g, h, step, frame, i, NULL, True)


cdef void scarce_of_two(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                        const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    by_scarce(a, b, c, d, e, f, g, h, step, frame, i,
              <const float *>operand_of(step, frame, i), False)


# --- Steps in pairs of vectors --------------------------------------------------------------------

cdef struct own_kernel:
    # That of a node, which computes what a step leaves to it.
    tile_kernel run
    const void *state


cdef inline void spread(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                        char *block) noexcept nogil:
    put(block, 0, a)
    put(block, 1, b)
    put(block, 2, c)
    put(block, 3, d)
    put(block, 4, e)
    put(block, 5, f)
    put(block, 6, g)
    put(block, 7, h)


cdef void by_own_kernel(const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    """Go on with what the node's own kernel makes of what a step was given."""
    cdef const own_kernel *own = <const own_kernel *>step.kernel
    cdef const step_t *next = step + 1
    cdef tile_view views[3]
    cdef char *v = frame.made
    cdef int n = 1
    views[0] = tile_view(frame.given, 0, sizeof(float))
    if step.operand >= 0:
        views[n] = tile_view(operand_of(step, frame, i), 0, sizeof(float))
        n += 1
    views[n] = tile_view(v, 0, sizeof(float))
    own.run(views, 1, STEP_ELEMENTS, own.state, frame.params + step.params, NULL, 0)
    next.run(at(v, 0), at(v, 1), at(v, 2), at(v, 3), at(v, 4), at(v, 5), at(v, 6), at(v, 7), next,
             frame, i)


# --- Steps that compute in memory -----------------------------------------------------------------
#
# Formulas of many operations take registers of their own: their vectors are stored into a block in
# the nearest cache, and the fast path of the node's kernel computes that.

cdef inline loop_args args_of(const step_t *step, const frame_t *frame, ptrdiff_t i, hints_t *hints,
                              uint16_t *hard) noexcept nogil:
    """Arguments of a fast path."""
    cdef loop_args args
    args.a = args.b = frame.given
    if step.operand >= 0:
        args.b = operand_of(step, frame, i)
    args.c = args.b
    if step.other >= 0:
        args.c = other_of(step, frame, i)
    hints.zeros, hints.outside = ZEROS_UNKNOWN, 0
    args.out, args.n, args.hints, args.hard = frame.made, STEP_ELEMENTS, hints, hard
    args.params = <const params_t *>numbers_of(step, frame)
    args.stream = args.prefetch = 0
    args.staging = args.staged_target = NULL
    return args


cdef void compute_open(const step_t *step, const loop_args *args, int found) noexcept nogil:
    """Results that a fast path leaves open."""
    cdef pending_t pending
    pending.state, pending.params = <const compute_state *>step.kernel, args.params
    pending.target, pending.size = args.out, pending.state.result_size
    pending.recast, pending.count = False, 0
    enqueue_found(args, found, &pending)
    recompute_pending(&pending)


cdef inline void run_path(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                          const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef hints_t hints
    cdef uint16_t[8 + MASKS_TOGETHER] hard
    cdef loop_args args
    cdef int found
    spread(a, b, c, d, e, f, g, h, frame.given)
    args = args_of(step, frame, i, &hints, hard)
    memset(hard, 0, sizeof(hard))
    found = step.path(&args)
    if found:
        compute_open(step, &args, found)


cdef void path_f32(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                   const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef const step_t *next = step + 1
    cdef const char *v = frame.made
    run_path(a, b, c, d, e, f, g, h, step, frame, i)
    next.run(at(v, 0), at(v, 1), at(v, 2), at(v, 3), at(v, 4), at(v, 5), at(v, 6), at(v, 7), next,
             frame, i)


cdef void path_f16(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                   const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef const step_t *next = step + 1
    cdef const char *v = frame.made
    run_path(a, b, c, d, e, f, g, h, step, frame, i)
    next.run(f16_at(v, 0), f16_at(v, 1), f16_at(v, 2), f16_at(v, 3), f16_at(v, 4), f16_at(v, 5),
             f16_at(v, 6), f16_at(v, 7), next, frame, i)


cdef void path_bf16(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                    const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef const step_t *next = step + 1
    cdef const char *v = frame.made
    run_path(a, b, c, d, e, f, g, h, step, frame, i)
    next.run(bf16_at(v, 0), bf16_at(v, 1), bf16_at(v, 2), bf16_at(v, 3), bf16_at(v, 4),
             bf16_at(v, 5), bf16_at(v, 6), bf16_at(v, 7), next, frame, i)


# --- Steps: formulas ------------------------------------------------------------------------------

class StepFacts(NamedTuple):
    """Facts about a formula's step for a dtype of results.

    `unit`: numbers of the node that must be 1 or -1; `blind`: it does not tell NaNs of operands
    apart; `prepared`: it takes parameters that are made of the node's first number once a run;
    `rounds`: results are rounded to half precision.
    """

    unit: tuple
    blind: bool
    prepared: bool
    rounds: bool


# By instruction set; and those of results whose NaNs nothing tells apart.
cdef step_fn[SETS][2][MOST_NAMES] _functions
cdef dict _numbers = {}  # of formula and dtype of the result
STEPS = {}  # the same: facts


cdef add_step(str formula, str dtype, tuple unit, bint blind, bint prepared, bint rounds,
              step_fn run, step_fn raw):
    cdef int number = _numbers.setdefault((formula, dtype), len(_numbers)), isa = set_in_use()
    if number == MOST_NAMES:
        raise ValueError(f"{formula}: there are places for {MOST_NAMES} steps")
    _functions[isa][0][number], _functions[isa][1][number] = run, raw
    STEPS[formula, dtype] = StepFacts(unit, bool(blind), bool(prepared), bool(rounds))


cdef step_fn[SETS][MOST_NAMES] _pair_functions
PAIRS = {}  # numbers of steps in pairs, by formula
BUILT = SETS_BUILT  # a bit for each instruction set whose loops are here
cdef set _entered = set()  # those whose steps are in the tables


def use(int number):
    """Use the steps of an instruction set, by its number, in this thread."""
    take_set(number)
    enter_steps()


cdef int enter_steps() except -1:
    cdef int number = set_in_use()
    if number not in _entered:
        enter()
        _entered.add(number)
    return 0


cdef add_pair_step(str formula, step_fn run):
    cdef int number = PAIRS.setdefault(formula, len(PAIRS))
    _pair_functions[set_in_use()][number] = run


include "register_steps.pxi"


cdef step_fn loads(str dtype, bint pairs, bint quiet) except NULL:
    if pairs:
        return load_bf16_pairs_quiet if quiet else load_bf16_pairs
    if dtype == "float32":
        return load_f32
    if dtype == "float16":
        return load_f16
    if dtype == "bfloat16":
        return load_bf16_quiet if quiet else load_bf16
    return load_bool


cdef step_fn stores(str dtype, bint past, bint pairs) except NULL:
    if pairs:
        return stream_bf16_pairs if past else store_bf16_pairs
    if dtype == "float32":
        return stream_f32 if past else store_f32
    if dtype == "float16":
        return stream_f16 if past else store_f16
    if dtype == "bfloat16":
        return stream_bf16 if past else store_bf16
    return store_bool


# --- The kernel -----------------------------------------------------------------------------------

cdef struct operand_t:
    int size          # bytes of an element
    bint output
    step_fn load      # to floats, of what repeats one element; NULL: it is read in place

cdef struct number_t:
    int offset        # bytes from where the parameters begin
    int count
    prepare_kernel prepare  # makes what a kernel takes of the numbers; NULL: as they are
    const void *state

cdef struct block_slot:
    ptrdiff_t offset  # bytes from where they begin
    int size          # of an element

# Some steps on registers, or the call of a node's own kernel.
cdef struct segment_t:
    const step_t *first
    tile_kernel run
    const void *state
    int params
    int flags         # of a tile's, those that its operands take
    int n_views
    int places[MOST_INPUTS + 1]

cdef struct fused_state:
    program_t program  # comes first: it is what other kernels know
    int n_numbers
    int n_operands    # of the tile, inputs first
    int n_slots
    int n_blocks
    int n_segments
    bint streams
    bint pairs        # vectors hold even and odd elements
    ptrdiff_t block   # elements that all segments compute before the next ones
    number_t numbers[MOST_NUMBERS]
    operand_t operands[MOST_OPERANDS]
    block_slot blocks[MOST_BLOCKS]
    segment_t segments[MOST_STEPS]
    step_t steps[MOST_STEPS]
    own_kernel own[MOST_STEPS]  # of steps with the same number


cdef struct buffers_t:
    # Memory of one call; all of it is aligned.
    char slots[(MOST_SLOTS + MOST_OPERANDS) * SLOT + LINE]
    char rows[MOST_OPERANDS * PART + 2 * SLOT + LINE]
    char blocks[BLOCKS_BYTES + LINE]


cdef struct walk_t:
    # Where a program is: a row, whose elements steps find by the frame, and calls by views.
    const fused_state *state
    frame_t frame
    tile_view row[MOST_OPERANDS]
    char *blocks
    char *parts       # room for elements that do not fill vectors
    int flags
    ptrdiff_t block   # elements that all segments compute before the next ones


cdef void keep(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
               const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    """Store one vector."""
    vf_store(frame.data[step.operand], a)


cdef float as_float(const fused_state *state, int k, const char *element) noexcept nogil:
    """One element as a float."""
    cdef step_t steps[2]
    cdef frame_t frame
    cdef char element_copies[SLOT]
    cdef float[STEP_ELEMENTS] found
    cdef vecf any = vf_set(0)
    memset(element_copies, 0, SLOT)
    memcpy(element_copies, element, state.operands[k].size)
    steps[0] = step_t(state.operands[k].load, 0, 0, 0, 0, 0, NULL, NULL, NULL)
    steps[1] = step_t(keep, 1, 0, 0, 0, 0, NULL, NULL, NULL)
    frame.data[0], frame.data[1] = element_copies, <char *>found
    steps[0].run(any, any, any, any, any, any, any, any, steps, &frame, 0)
    return found[0]


cdef void repeat(const fused_state *state, int k, const char *element, char *slot) noexcept nogil:
    """Floats of one element in all vectors."""
    cdef vecf value = vf_set(as_float(state, k, element))
    cdef int j
    for j in range(8):
        put(slot, j, value)


cdef inline void run_at(const step_t *first, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef vecf any = vf_set(0)
    first.run(any, any, any, any, any, any, any, any, first, frame, i)


cdef inline void run_steps(const step_t *first, frame_t *frame, ptrdiff_t i, ptrdiff_t end,
                           ptrdiff_t head) noexcept nogil:
    """Steps on vectors; elements before the first whole line, and those that do not fill the last
    vectors, are computed together with some that are computed twice."""
    if head:
        run_at(first, frame, i)
        i += head
    while i + STEP_ELEMENTS <= end:
        run_at(first, frame, i)
        i += STEP_ELEMENTS
    if i < end:
        run_at(first, frame, end - STEP_ELEMENTS)


cdef void call_kernel(const segment_t *segment, walk_t *walk, ptrdiff_t begin, ptrdiff_t rows,
                      ptrdiff_t n) noexcept nogil:
    """A node's own kernel on a block.  Slots look like rows that repeat, which none prefetches."""
    cdef tile_view views[MOST_INPUTS + 1]
    cdef const block_slot *slot
    cdef int k, place
    for k in range(segment.n_views):
        place = segment.places[k]
        if place < MOST_OPERANDS:
            views[k] = walk.row[place]
            views[k].data += begin * views[k].col_stride
            if rows == 1:  # a stride of 0 would say that the row repeats: then none prefetches it
                views[k].row_stride = n * views[k].col_stride
        else:
            slot = &walk.state.blocks[place - FIRST_BLOCK]
            views[k] = tile_view(walk.blocks + slot.offset, n * slot.size, slot.size)
            if rows == 1 and k < segment.n_views - 1:
                views[k].row_stride = 0
    segment.run(views, rows, n, segment.state, walk.frame.params + segment.params, NULL,
                walk.flags & segment.flags)


cdef inline void place_blocks(walk_t *walk, ptrdiff_t begin) noexcept nogil:
    """Have steps find slots of blocks, whose first element is that of the row that `begin` says."""
    cdef const block_slot *slot
    cdef int k
    for k in range(walk.state.n_blocks):
        slot = &walk.state.blocks[k]
        walk.frame.data[FIRST_BLOCK + k] = walk.blocks + slot.offset - begin * slot.size


cdef void place_row(const tile_view *views, walk_t *walk, ptrdiff_t row,
                    bint first) noexcept nogil:
    """Go to a row."""
    cdef const fused_state *state = walk.state
    cdef int k
    for k in range(state.n_operands):
        walk.row[k] = views[k]
        walk.row[k].data += row * views[k].row_stride
        if state.operands[k].load == NULL:
            walk.frame.data[k] = walk.row[k].data
        elif first or views[k].row_stride:
            repeat(state, k, walk.row[k].data, walk.frame.data[k])


cdef inline ptrdiff_t head_of(const walk_t *walk, ptrdiff_t cols) noexcept nogil:
    """Elements of the row before the first line that is streamed."""
    return min(to_line(&walk.row[walk.state.program.inputs], 0), cols) if walk.frame.streams else 0


cdef void run_rows(const tile_view *views, walk_t *walk, ptrdiff_t row, ptrdiff_t rows,
                   ptrdiff_t cols) noexcept nogil:
    """Several rows at a time, as many as slots of blocks hold: calls take as long to begin as some
    hundred elements."""
    cdef const segment_t *segment
    cdef ptrdiff_t j
    cdef int k
    for k in range(walk.state.n_segments):
        segment = &walk.state.segments[k]
        if segment.first == NULL:
            place_row(views, walk, row, False)
            call_kernel(segment, walk, 0, rows, cols)
            continue
        for j in range(rows):
            place_row(views, walk, row + j, row == 0)
            place_blocks(walk, -j * cols)
            run_steps(segment.first, &walk.frame, 0, cols, head_of(walk, cols))


cdef void run_block(walk_t *walk, ptrdiff_t begin, ptrdiff_t n, ptrdiff_t head) noexcept nogil:
    """All that a program does, on elements of the row, as many as vectors hold or more."""
    cdef const fused_state *state = walk.state
    cdef const segment_t *segment
    cdef int k
    place_blocks(walk, begin)
    for k in range(state.n_segments):
        segment = &state.segments[k]
        if segment.first != NULL:
            run_steps(segment.first, &walk.frame, begin, begin + n, head)
        else:
            call_kernel(segment, walk, begin, 1, n)


cdef void copy_part(const tile_view *view, char *part, int size, ptrdiff_t row, ptrdiff_t rows,
                    ptrdiff_t col, ptrdiff_t cols, bint back) noexcept nogil:
    """Elements of some rows to memory of their own, or back."""
    cdef char *place = view.data + row * view.row_stride + col * view.col_stride
    cdef ptrdiff_t _j
    for _j in range(rows):
        if back:
            copy_elements(part, size, place, view.col_stride, cols, size)
        else:
            copy_elements(place, view.col_stride, part, size, cols, size)
        place += view.row_stride
        part += cols * size


cdef void widen(const fused_state *state, int k, char *part, char *slot,
                ptrdiff_t n) noexcept nogil:
    """Floats of elements of a part that repeat along short rows."""
    cdef float[STEP_ELEMENTS] found
    cdef ptrdiff_t j, size = state.operands[k].size
    for j in range(n):
        if j and memcmp(part + j * size, part + (j - 1) * size, size) == 0:
            found[j] = found[j - 1]
        else:
            found[j] = as_float(state, k, part + j * size)
    for j in range(n, STEP_ELEMENTS):
        found[j] = 0.5
    if not state.pairs:
        memcpy(slot, found, SLOT)
        return
    for j in range(STEP_ELEMENTS):
        (<float *>slot)[j // (2 * LANES) * 2 * LANES + j % 2 * LANES + j // 2 % LANES] = found[j]


cdef void run_part(const tile_view *views, const walk_t *args, ptrdiff_t row, ptrdiff_t rows,
                   ptrdiff_t col, ptrdiff_t cols, bint short) noexcept nogil:
    """Elements that do not fill all vectors, by way of copies; of short rows, several rows."""
    cdef walk_t walk = args[0]
    cdef const fused_state *state = walk.state
    cdef ptrdiff_t size
    cdef char *part
    cdef int k
    walk.flags &= ~TILE_STREAM
    walk.frame.streams = False
    for k in range(state.n_operands):
        size = state.operands[k].size
        part = walk.parts + k * PART
        if state.operands[k].load != NULL and not short:
            continue  # the row has it
        if not state.operands[k].output:
            memset(part, FILLER, STEP_ELEMENTS * size)
            copy_part(&views[k], part, size, row, rows, col, cols, False)
        if state.operands[k].load != NULL:
            widen(state, k, part, walk.frame.data[k], rows * cols)
        else:
            walk.frame.data[k] = part
        walk.row[k] = tile_view(part, STEP_ELEMENTS * size if state.operands[k].output else 0, size)
    run_block(&walk, 0, STEP_ELEMENTS, 0)
    for k in range(state.n_operands):
        if state.operands[k].output:
            copy_part(&views[k], walk.parts + k * PART, state.operands[k].size, row, rows, col,
                      cols, True)


cdef inline bint in_place(const tile_view *views, const fused_state *state) noexcept nogil:
    """Whether an output may lie where an input is: then nothing is computed twice."""
    cdef int j, k
    for j in range(state.program.inputs, state.n_operands):
        for k in range(state.program.inputs):
            if views[k].data == views[j].data:
                return True
    return False


cdef void run_row(const tile_view *views, walk_t *walk, ptrdiff_t row, ptrdiff_t cols,
                  bint overlap) noexcept nogil:
    cdef ptrdiff_t n, head, begin = 0
    place_row(views, walk, row, row == 0)
    head = head_of(walk, cols)
    if not overlap or cols < STEP_ELEMENTS + head:
        run_apart(views, walk, row, cols, head)
        return
    while begin < cols:
        n = min(walk.block, cols - begin)
        # What is left must fill vectors.
        if begin + n < cols < begin + n + STEP_ELEMENTS:
            n -= STEP_ELEMENTS
        run_block(walk, begin, n, head)
        begin += n
        head = 0


cdef void run_apart(const tile_view *views, walk_t *walk, ptrdiff_t row, ptrdiff_t cols,
                    ptrdiff_t head) noexcept nogil:
    """A row of which nothing may be computed twice."""
    cdef ptrdiff_t n, begin = head
    cdef ptrdiff_t whole = begin + (cols - begin) // STEP_ELEMENTS * STEP_ELEMENTS
    if head:
        run_part(views, walk, row, 1, 0, head, False)
    while begin < whole:
        n = min(walk.block, whole - begin)
        run_block(walk, begin, n, 0)
        begin += n
    if whole < cols:
        run_part(views, walk, row, 1, whole, cols - whole, False)


cdef bint is_worth_streaming(const tile_view *out, ptrdiff_t rows, ptrdiff_t cols) noexcept nogil:
    """Whether few lines are stored both past the cache and by way of it, which takes longest."""
    return (rows == 1 or (<uintptr_t>out.data | <size_t>out.row_stride) % LINE == 0
            or cols * out.col_stride >= STREAM_ROW)


cdef void fused_tile(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols, const void *args,
                     const void *params, void *scratch, int flags) noexcept nogil:
    cdef buffers_t buffers
    cdef char *slots = line_in(buffers.slots)
    cdef walk_t walk
    cdef const fused_state *state = <const fused_state *>args
    cdef bint overlap = not in_place(views, state)
    cdef ptrdiff_t row = 0, high
    cdef int k
    walk.state, walk.flags = state, flags
    walk.blocks = line_in(buffers.blocks)
    walk.parts = line_in(buffers.rows)
    walk.frame.params = <const char *>params
    walk.frame.given = walk.parts + MOST_OPERANDS * PART
    walk.frame.made = walk.frame.given + SLOT
    for k in range(state.n_slots):
        walk.frame.data[MOST_OPERANDS + k] = slots + k * SLOT
    for k in range(state.n_operands):
        if state.operands[k].load != NULL:
            walk.frame.data[k] = slots + (MOST_SLOTS + k) * SLOT
    if rows > 1 and one_row(views, state.n_operands, cols):
        cols, rows = cols * rows, 1
    walk.frame.streams = state.streams and is_worth_streaming(&views[state.program.inputs], rows,
                                                              cols)
    if not walk.frame.streams:
        walk.flags &= ~TILE_STREAM
    walk.block = state.block
    if cols < STEP_ELEMENTS:
        high = STEP_ELEMENTS // cols
        while row < rows:
            run_part(views, &walk, row, min(high, rows - row), 0, cols, True)
            row += high
        return
    high = walk.block // cols if overlap and state.n_blocks and cols >= 2 * STEP_ELEMENTS else 1
    while row < rows:
        if high > 1:
            run_rows(views, &walk, row, min(high, rows - row), cols)
        else:
            run_row(views, &walk, row, cols, overlap)
        row += max(<ptrdiff_t>1, high)


cdef void prepare_fused(void *params, const void *args, const kernel_number *numbers,
                        int n_numbers) noexcept nogil:
    """The numbers of all nodes, or what their kernels make of them."""
    cdef const fused_state *state = <const fused_state *>args
    cdef const number_t *own
    cdef char *block
    cdef int k
    for k in range(state.n_numbers):
        own = &state.numbers[k]
        block = <char *>params + own.offset
        if own.prepare != NULL:
            own.prepare(block, own.state, numbers, own.count)
        else:
            memcpy(block, numbers, own.count * sizeof(kernel_number))
        numbers += own.count


cdef inline void prepare_leaky(void *params, const kernel_number *numbers,
                               elem_type dtype) noexcept nogil:
    """The slope, and what a step makes of it."""
    cdef params_t own
    own.p[0] = numbers[0].real
    prepare_leaky_relu(&own, dtype)
    memcpy(params, numbers, sizeof(kernel_number))
    memcpy(<char *>params + sizeof(kernel_number), own.own, sizeof(leaky_relu_t))


cdef void prepare_f16(void *params, const void *state, const kernel_number *numbers,
                      int n_numbers) noexcept nogil:
    prepare_leaky(params, numbers, F16)


cdef void prepare_bf16(void *params, const void *state, const kernel_number *numbers,
                       int n_numbers) noexcept nogil:
    prepare_leaky(params, numbers, BF16)


cdef str described(tuple step):
    if step[0] == "call":
        return f"call {step[1].name} {' '.join(map(str, step[3]))}"
    if step[0] == "path":
        return f"path {step[1].name} {step[2]} {step[3]} {step[4]}"
    if step[0] == "pair":
        return f"pair {step[1]} {step[3]} {step[4]}"
    return " ".join(map(str, step))


_HELD = {name: size for name, size in ITEM_SIZES.items() if not name.startswith("complex")}


cdef int item_size(str dtype) except -1:
    if dtype not in _HELD:
        raise ValueError(f"no program holds {dtype!r}, dtypes are {', '.join(_HELD)}")
    return _HELD[dtype]


cdef int set_blocks(fused_state *state, int per_element) except -1:
    """So many elements at a time that the nearest cache holds all slots, in whole vectors."""
    cdef ptrdiff_t offset = 0
    cdef int k
    state.block = PTRDIFF_MAX
    if per_element:
        state.block = min(<ptrdiff_t>MOST_BLOCK, BLOCKS_BYTES // per_element)
        state.block = max(<ptrdiff_t>STEP_ELEMENTS, state.block // STEP_ELEMENTS * STEP_ELEMENTS)
    for k in range(state.n_blocks):
        state.blocks[k].offset = offset
        offset += state.block * state.blocks[k].size
    return 0


cdef int set_step(step_t *c, tuple step, dict sizes, bint pairs, bint streams) except? -2:
    """A step on registers; the last place that it uses of slots, or -1."""
    cdef str action = step[0], dtype
    cdef bint own
    if action == "formula":
        _, formula, dtype, raw, c.params, place, other = step
        c.run = _functions[set_in_use()][<bint>raw][<int>_numbers[formula, dtype]]
        c.operand, c.size = max(place, 0), sizes.get(place, 0)
        c.other, c.other_size = max(other, 0), sizes.get(other, 0)
        places = [place, other]
    elif action == "path":
        _, ref, c.params, place, other, dtype = step
        c.run = path_f32 if dtype == "float32" else path_f16 if dtype == "float16" else path_bf16
        c.kernel, c.path = <const void *><size_t>ref.state, <simd_loop><size_t>ref.form.path
        c.operand, c.size = place, sizes.get(place, 0)
        c.other, c.other_size = other, sizes.get(other, 0)
        places = [place, other]
    elif action == "pair":
        _, formula, _, c.params, place = step
        c.run = _pair_functions[set_in_use()][<int>PAIRS[formula]]
        c.instead = by_own_kernel
        c.operand, c.size = place, sizes.get(place, 0)
        places = [place]
    else:
        _, dtype, place, quiet = step
        c.operand, c.size = place, sizes.get(place, 0)
        own = not FIRST_SLOT <= place < FIRST_BLOCK
        places = [place]
        if action == "load":
            c.run = load_f32 if c.size == 0 else loads(dtype, pairs and own, quiet)
        elif action == "prefetch":
            c.run = prefetch_step
        else:
            c.run = stores(dtype, streams and place < MOST_OPERANDS, pairs and own)
    slots = [-1]
    for place in places:
        if FIRST_SLOT <= place < FIRST_BLOCK:
            slots.append(place)
    return max(slots)


cdef int set_call(segment_t *segment, tuple step, str name) except -1:
    _, own, segment.params, places = step
    if len(places) > MOST_INPUTS + 1:
        raise ValueError(f"{name}: {own.name} has more than {MOST_INPUTS} inputs")
    segment.run = <tile_kernel><size_t>own.fn
    segment.state = <const void *><size_t>own.state
    segment.n_views = len(places)
    for k, place in enumerate(places):
        segment.places[<int>k] = place
        if place < MOST_OPERANDS:
            segment.flags |= TILE_STREAM if k == len(places) - 1 else (
                TILE_PREFETCH_NEAR | TILE_PREFETCH_FAR)
    return 0


cdef size_t set_numbers(fused_state *state, tuple numbers) except? 0:
    """Set how numbers are prepared; the bytes of the parameters."""
    cdef size_t most = 0
    cdef number_t *c
    state.n_numbers = len(numbers)
    for k, (offset, count, prepared, own) in enumerate(numbers):
        c = &state.numbers[<int>k]
        c.offset, c.count = offset, count
        size = count * sizeof(kernel_number)
        if prepared:
            c.prepare = prepare_f16 if prepared == "float16" else prepare_bf16
            size += PREPARED
        elif own.prepare:
            c.prepare = <prepare_kernel><size_t>own.prepare
            c.state = <const void *><size_t>own.state
            size = own.params_size
        most = max(most, <size_t>(offset + size))
    return most


# Where steps say what they read besides the registers.
READS_FROM = {"formula": slice(5, 7), "pair": slice(4, 5), "path": slice(3, 5)}


def limits():
    """Limits of a program, and the numbers of its first slots."""
    return {
        "operands": MOST_OPERANDS, "slots": MOST_SLOTS, "blocks": MOST_BLOCKS,
        "steps": MOST_STEPS - 1, "numbers": MOST_NUMBERS,
        "first_slot": MOST_OPERANDS, "first_block": FIRST_BLOCK,
    }


def assemble(str name not None, tuple operands not None, tuple blocks not None,
             tuple steps not None, bint streams, tuple numbers not None=()):
    """The kernel of a program.

    Parameters
    ----------
    name : str
    operands : tuple of (str, bool, bool)
        Of the tile, inputs first: dtype, whether rows repeat one element, whether it is written.
    blocks : tuple of str
        Dtypes of the slots of blocks.
    steps : tuple of tuple
        ``("load", dtype, place, quiet)``, ``("store", dtype, place, False)``,
        ``("prefetch", dtype, place, False)``, ``("formula", name, dtype, raw, params, place,
        other)``, ``("pair", name, kernel, params, place)`` of a formula in pairs of vectors,
        ``("path", kernel, params, place, other, dtype)`` of a kernel's fast path, or
        ``("call", kernel, params, places)`` of a kernel on a block.  Places are those
        of operands, of slots, or of slots of blocks (`limits` says where they begin); params:
        bytes to the node's numbers; raw: whether nothing tells NaNs of the result apart; quiet:
        whether something does, so that signaling NaNs become quiet.
    streams : bool
        Whether outputs bypass the cache.
    numbers : tuple of (int, int, str, object)
        Of each node that has some, in order: where they lie in the parameters, in bytes; how many;
        if what a step takes is prepared from them, the dtype of the result, else ''; the kernel.

    Returns
    -------
    Kernel
        Its `form` is what it does, in order.
    """
    cdef State kept = State(sizeof(fused_state))
    cdef fused_state *state = <fused_state *>kept.data
    cdef segment_t *segment = NULL
    cdef int k, used = 0, per_element = 0
    enter_steps()
    if len(operands) > MOST_OPERANDS or len(steps) >= MOST_STEPS or len(blocks) > MOST_BLOCKS:
        raise ValueError(f"{name}: a program has at most {MOST_OPERANDS} operands, {MOST_BLOCKS} "
                         f"slots of blocks and {MOST_STEPS - 1} steps")
    if len(numbers) > MOST_NUMBERS:
        raise ValueError(f"{name}: a program takes at most {MOST_NUMBERS} groups of numbers")
    sizes = {}
    for k, (dtype, repeated, output) in enumerate(operands):
        state.operands[k].size = item_size(dtype)
        state.operands[k].output = output
        state.program.outputs += output
        if repeated:
            state.operands[k].load = loads(dtype, False, True)
        sizes[k] = 0 if repeated else item_size(dtype)
    for k, dtype in enumerate(blocks):
        sizes[FIRST_BLOCK + k] = state.blocks[k].size = item_size(dtype)
        per_element += state.blocks[k].size
    state.n_operands, state.n_blocks, state.streams = len(operands), len(blocks), streams
    state.program.run, state.program.inputs = fused_tile, len(operands) - state.program.outputs
    set_blocks(state, per_element)
    # Where all that is in memory is bfloat16.
    cdef bint pairs = True
    for step in steps:
        if step[0] in ("load", "store") and not FIRST_SLOT <= step[2] < FIRST_BLOCK:
            pairs &= step[1] == "bfloat16"
        elif step[0] in READS_FROM:
            for place in step[READS_FROM[step[0]]]:
                pairs &= sizes.get(place, 0) == 0
    state.pairs = pairs
    for step in steps:
        if step[0] == "call":
            segment = &state.segments[state.n_segments]
            state.n_segments += 1
            set_call(segment, step, name)
            if used and state.steps[used - 1].run != finish_block:
                state.steps[used].run = finish_block
                used += 1
            segment = NULL
            continue
        if segment == NULL:
            segment = &state.segments[state.n_segments]
            state.n_segments += 1
            segment.first = &state.steps[used]
        place = set_step(&state.steps[used], step, sizes, pairs, streams)
        if step[0] == "pair":
            state.own[used].run = <tile_kernel><size_t>step[2].fn
            state.own[used].state = <const void *><size_t>step[2].state
            state.steps[used].kernel = &state.own[used]
        state.n_slots = max(state.n_slots, place - FIRST_SLOT + 1)
        used += 1
    state.steps[used].run = finish_block
    if state.n_slots > MOST_SLOTS:
        raise ValueError(f"{name}: a program has at most {MOST_SLOTS} slots")
    return Kernel(
        fn=<size_t><tile_kernel>fused_tile,
        state=<size_t>kept.data,
        name=name,
        owner=(kept, steps, numbers),  # with the kernels that they call
        prepare=<size_t><prepare_kernel>prepare_fused if numbers else 0,
        params_size=set_numbers(state, numbers),
        form=tuple(map(described, steps)),
    )
