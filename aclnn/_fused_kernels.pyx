"""Kernels of several pointwise nodes: programs on registers.

A program is a sequence of steps (`kernels/simd/steps.pxd`): loads, formulas, roundings, spills of
values that are read again, and stores.  Every step is compiled once; a value between two steps
stays in eight vector registers.  `join` turns nodes of a loop that follow each other into one
program, whose results are bitwise those of the nodes' own kernels.

This file is compiled once for each instruction set whose calling convention passes vectors in
registers, each time into a module of its own.
"""

from libc.stdint cimport uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from typing import NamedTuple

cimport aclnn.kernels.activations as activations  # no-cython-lint: what is included needs it
cimport aclnn.kernels.arithmetic as arithmetic  # no-cython-lint: what is included needs it
from aclnn.kernels.computation cimport compute_state
from aclnn.kernels.numbers cimport pair_t  # no-cython-lint: as above
from aclnn.kernels.recompute cimport enqueue_found, pending_t, recompute_pending
from aclnn.kernels.simd.exact cimport FLOAT_DOMAIN, tracked  # no-cython-lint: as above
from aclnn.kernels.simd.forms cimport form_loop, pair_exactly, pair_rounded  # no-cython-lint
from aclnn.kernels.simd.loop_args cimport (
    BF16,
    EXCEPTIONAL,
    F16,
    HARD_TO_ROUND,
    MASKS_TOGETHER,
    ZEROS_UNKNOWN,
    elem_type,
    hints_t,
    loop_args,
    params_t,
)
from aclnn.kernels.simd.track cimport *  # no-cython-lint: as above
from aclnn.kernels.simd.steps cimport *  # no-cython-lint: as above
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
from aclnn.kernels.tile cimport (
    LINE,
    copy_bytes,
    kernel_number,
    line_in,
    one_row,
    prefetch,
    prepare_kernel,
    tile_kernel,
    tile_view,
    to_line,
)

cdef enum:
    SLOT = STEP_ELEMENTS * 4  # bytes of what eight vectors hold
    MOST_OPERANDS = 16  # of a program, outside of registers
    MOST_SLOTS = 16     # of values that are read again
    MOST_STEPS = 96
    FAR_AHEAD = 4096    # bytes from what is read to what is prefetched
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
    if <uintptr_t>out % LINE:
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
    if <uintptr_t>operand_of(step, frame, i) % LINE:
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
    if <uintptr_t>operand_of(step, frame, i) % LINE:
        store_f16(a, b, c, d, e, f, g, h, step, frame, i)
        return
    put_f16(a, b, c, d, e, f, g, h, step, frame, i, True)


cdef void stream_bf16(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                      const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    if <uintptr_t>operand_of(step, frame, i) % LINE:
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


# --- Steps that compute in memory -----------------------------------------------------------------
#
# Formulas of many operations take registers of their own: their vectors are stored into a block in
# the nearest cache, and a loop over that computes them.

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


cdef inline void go_on(const char *v, const step_t *step, frame_t *frame,
                       ptrdiff_t i) noexcept nogil:
    """With results that lie in a block."""
    cdef const step_t *next = step + 1
    next.run(at(v, 0), at(v, 1), at(v, 2), at(v, 3), at(v, 4), at(v, 5), at(v, 6), at(v, 7), next,
             frame, i)


cdef inline loop_args args_of(const step_t *step, const frame_t *frame, ptrdiff_t i, hints_t *hints,
                              uint16_t *hard) noexcept nogil:
    """What loops over blocks are called with."""
    cdef loop_args args
    args.a = args.b = frame.given
    if step.operand >= 0:
        args.b = operand_of(step, frame, i)
    hints.zeros, hints.outside = ZEROS_UNKNOWN, 0
    args.out, args.n, args.hints, args.hard = frame.made, STEP_ELEMENTS, hints, hard
    args.params = <const params_t *>numbers_of(step, frame)
    args.stream = args.prefetch = 0
    args.staging = args.staged_target = NULL
    return args


cdef void decide(const step_t *step, frame_t *frame, ptrdiff_t i, int found,
                 uint16_t *hard) noexcept nogil:
    """Compute what a loop leaves open in double, as the node's own kernel does."""
    cdef hints_t hints
    cdef loop_args args = args_of(step, frame, i, &hints, hard)
    cdef pending_t pending
    pending.state, pending.params = <const compute_state *>step.state, args.params
    pending.target, pending.size = frame.made, sizeof(float)
    pending.recast, pending.count = False, 0
    enqueue_found(&args, found, &pending)
    recompute_pending(&pending)


cdef void left_open(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                    const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    """Go on with results of which some are exceptional."""
    spread(a, b, c, d, e, f, g, h, frame.made)
    decide(step, frame, i, EXCEPTIONAL, NULL)
    go_on(frame.made, step, frame, i)


cdef void by_form(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
                  const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    cdef uint16_t[8 + MASKS_TOGETHER] hard
    cdef const char *other = frame.given
    cdef uint64_t low, high
    spread(a, b, c, d, e, f, g, h, frame.given)
    if step.operand >= 0:
        other = operand_of(step, frame, i)
    (<form_loop>step.block)(frame.given, other, frame.made, 8, numbers_of(step, frame), hard, False,
                            0)
    memcpy(&low, hard, 8)
    memcpy(&high, hard + 4, 8)
    if low | high:
        decide(step, frame, i, HARD_TO_ROUND, hard)
    go_on(frame.made, step, frame, i)


# --- Steps: formulas ------------------------------------------------------------------------------

class StepFacts(NamedTuple):
    """Of a formula's step for a dtype of results.

    `unit`: numbers of the node that must be 1 or -1; `blind`: it does not tell NaNs of operands
    apart; `prepared`: it takes parameters that are made of the node's first number once a run;
    `rounds`: results are rounded to half precision.
    """

    unit: tuple
    blind: bool
    prepared: bool
    rounds: bool


cdef step_fn[MOST_NAMES] _functions[2]  # and those of results whose NaNs nothing tells apart
cdef dict _numbers = {}  # of formula and dtype of the result
STEPS = {}  # the same: facts


cdef add_step(str formula, str dtype, tuple unit, bint blind, bint prepared, bint rounds,
              step_fn run, step_fn raw):
    number = len(_numbers)
    if number == MOST_NAMES:
        raise ValueError(f"{formula}: there are places for {MOST_NAMES} steps")
    _functions[0][<int>number], _functions[1][<int>number] = run, raw
    _numbers[formula, dtype] = number
    STEPS[formula, dtype] = StepFacts(unit, bool(blind), bool(prepared), bool(rounds))


cdef step_fn[MOST_NAMES] _pair_functions
cdef dict _pairs = {}


cdef add_pair_step(str formula, step_fn run):
    _pair_functions[<int>len(_pairs)] = run
    _pairs[formula] = len(_pairs)


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
    step_fn load      # to floats, of what repeats one element; NULL: rows are dense
    int slot          # where these are, or 0

cdef struct number_t:
    int offset        # bytes from where the parameters begin
    bint prepared     # what follows is made of it, for results of a dtype
    elem_type dtype

cdef struct fused_state:
    int n_numbers
    number_t numbers[MOST_NUMBERS]
    int n_operands    # of the tile, inputs first
    int n_slots
    bint streams
    operand_t operands[MOST_OPERANDS]
    step_t steps[MOST_STEPS]


cdef struct buffers_t:
    # Aligned memory of one call.
    char slots[(MOST_SLOTS + MOST_OPERANDS) * SLOT + LINE]
    char rows[(MOST_OPERANDS + 2) * SLOT + LINE]


cdef void keep(vecf a, vecf b, vecf c, vecf d, vecf e, vecf f, vecf g, vecf h,
               const step_t *step, frame_t *frame, ptrdiff_t i) noexcept nogil:
    """Store one vector."""
    vf_store(frame.data[step.operand], a)


cdef inline float as_float(const fused_state *state, int k, const char *element) noexcept nogil:
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


cdef void repeat(const fused_state *state, int k, const char *element, char *slot,
                 ptrdiff_t n) noexcept nogil:
    """Floats of one element, n times."""
    cdef float value = as_float(state, k, element)
    cdef ptrdiff_t j
    for j in range(n):
        (<float *>slot)[j] = value


cdef void run_from(const fused_state *state, frame_t *frame, ptrdiff_t i,
                   ptrdiff_t end) noexcept nogil:
    cdef vecf any = vf_set(0)
    cdef const step_t *first = &state.steps[0]
    while i < end:
        first.run(any, any, any, any, any, any, any, any, first, frame, i)
        i += STEP_ELEMENTS


cdef void run_part(const tile_view *views, const fused_state *state, const frame_t *told,
                   char *rows_of, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t col,
                   ptrdiff_t cols, bint short) noexcept nogil:
    """Elements that do not fill all vectors, by way of copies; of short rows, several rows."""
    cdef frame_t frame = told[0]
    cdef const operand_t *operand
    cdef char *source
    cdef char *target
    cdef ptrdiff_t j, _j, nbytes
    cdef int k
    for k in range(state.n_operands):
        operand = &state.operands[k]
        source = views[k].data + row * views[k].row_stride
        if operand.load != NULL:
            target = frame.data[k]
            if short:
                for j in range(rows):
                    repeat(state, k, source + j * views[k].row_stride, target + 4 * j * cols, cols)
            continue
        frame.data[k] = target = rows_of + k * SLOT
        if operand.output:
            continue
        nbytes = cols * operand.size
        source += col * operand.size
        for _j in range(rows):
            copy_bytes(target, source, nbytes)
            source += views[k].row_stride
            target += nbytes
    run_from(state, &frame, 0, STEP_ELEMENTS)
    for k in range(state.n_operands):
        operand = &state.operands[k]
        if not operand.output:
            continue
        nbytes = cols * operand.size
        source = rows_of + k * SLOT
        target = views[k].data + row * views[k].row_stride + col * operand.size
        for _j in range(rows):
            copy_bytes(target, source, nbytes)
            source += nbytes
            target += views[k].row_stride


cdef inline bint in_place(const tile_view *views, const fused_state *state) noexcept nogil:
    """Whether an output may lie where an input is: then nothing is computed twice."""
    cdef int j, k
    for j in range(state.n_operands):
        if state.operands[j].output:
            for k in range(state.n_operands):
                if not state.operands[k].output and views[k].data == views[j].data:
                    return True
    return False


cdef inline ptrdiff_t head_of(const tile_view *views, const fused_state *state, ptrdiff_t row,
                              ptrdiff_t cols) noexcept nogil:
    """Elements before the first line of what is streamed."""
    cdef int k
    for k in range(state.n_operands):
        if state.operands[k].output:
            return min(to_line(&views[k], row), cols)
    return 0


cdef void run_row(const tile_view *views, const fused_state *state, frame_t *frame, char *rows_of,
                  ptrdiff_t row, ptrdiff_t cols, bint overlap, bint past) noexcept nogil:
    cdef ptrdiff_t begin = 0, whole
    cdef int k
    for k in range(state.n_operands):
        if state.operands[k].load == NULL:
            frame.data[k] = views[k].data + row * views[k].row_stride
        elif row == 0 or views[k].row_stride:
            repeat(state, k, views[k].data + row * views[k].row_stride, frame.data[k],
                   STEP_ELEMENTS)
    if past and cols >= 2 * STEP_ELEMENTS:
        begin = head_of(views, state, row, cols)
        if begin:
            run_part(views, state, frame, rows_of, row, 1, 0, begin, False)
    whole = (cols - begin) // STEP_ELEMENTS * STEP_ELEMENTS
    if whole:
        run_from(state, frame, begin, begin + whole)
    begin += whole
    if begin == cols:
        return
    if overlap and cols >= STEP_ELEMENTS:
        run_from(state, frame, cols - STEP_ELEMENTS, cols)
    else:
        run_part(views, state, frame, rows_of, row, 1, begin, cols - begin, False)


cdef void fused_tile(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols, const void *told,
                     const void *params, void *scratch, int flags) noexcept nogil:
    cdef const fused_state *state = <const fused_state *>told
    cdef buffers_t buffers
    cdef char *slots = line_in(buffers.slots)
    cdef char *rows_of = line_in(buffers.rows)
    cdef bint overlap = not in_place(views, state), past = state.streams
    cdef frame_t frame
    cdef ptrdiff_t row = 0, high
    cdef int k
    frame.params = <const char *>params
    frame.given = rows_of + MOST_OPERANDS * SLOT
    frame.made = frame.given + SLOT
    for k in range(state.n_slots):
        frame.data[MOST_OPERANDS + k] = slots + k * SLOT
    for k in range(state.n_operands):
        if state.operands[k].load != NULL:
            frame.data[k] = slots + (MOST_SLOTS + k) * SLOT
    if rows > 1 and one_row(views, state.n_operands, cols):
        cols, rows = cols * rows, 1
    memset(rows_of, 0x38, state.n_operands * SLOT)  # numbers that suit every formula
    if cols < STEP_ELEMENTS:
        high = STEP_ELEMENTS // cols
        for k in range(state.n_operands):
            if state.operands[k].load != NULL:
                memset(frame.data[k], 0x38, SLOT)
        while row < rows:
            run_part(views, state, &frame, rows_of, row, min(high, rows - row), 0, cols, True)
            row += high
        return
    while row < rows:
        run_row(views, state, &frame, rows_of, row, cols, overlap and not past, past)
        row += 1


cdef void prepare_fused(void *params, const void *told, const kernel_number *numbers,
                        int n_numbers) noexcept nogil:
    """The numbers of all nodes, and what some make of theirs."""
    cdef const fused_state *state = <const fused_state *>told
    cdef char *block = <char *>params
    cdef params_t own
    cdef int k
    for k in range(state.n_numbers):
        (<kernel_number *>(block + state.numbers[k].offset))[0] = numbers[k]
        if state.numbers[k].prepared:
            own.p[0] = numbers[k].real
            prepare_leaky_relu(&own, state.numbers[k].dtype)
            memcpy(block + state.numbers[k].offset + 8, own.own, sizeof(leaky_relu_t))


cdef class FusedKernel:
    """A kernel of several nodes; owns the program that its address stands for.

    Attributes
    ----------
    fn, state : int
        Addresses of a `tile_kernel` and of what it is called with.
    name : str
        Those of the nodes' kernels.
    steps : tuple of str
        What it does, in order.
    """

    cdef readonly str name
    cdef readonly size_t fn, prepare, params_size
    cdef readonly tuple steps, kept
    cdef fused_state *memory

    def __cinit__(self):
        self.memory = <fused_state *>calloc(1, sizeof(fused_state))
        if self.memory == NULL:
            raise MemoryError
        self.fn = <size_t><tile_kernel>fused_tile

    def __dealloc__(self):
        free(self.memory)

    @property
    def state(self):
        return <size_t>self.memory

    def __repr__(self):
        return f"<FusedKernel {self.name}: {len(self.steps)} steps>"


cdef tuple described(tuple steps):
    found = []
    for step in steps:
        words = []
        for part in step[:2] if step[0] == "form" else step:
            words.append(str(part))
        found.append(" ".join(words))
    return tuple(found)


_SIZES = {"float32": 4, "float16": 2, "bfloat16": 2, "bool": 1}


def limits():
    """How many operands, slots, steps and numbers a program may have."""
    return MOST_OPERANDS, MOST_SLOTS, MOST_STEPS, MOST_NUMBERS


def assemble(str name not None, tuple operands not None, tuple steps not None, bint streams,
             tuple numbers not None=()):
    """The kernel of a program.

    Parameters
    ----------
    name : str
    operands : tuple of (str, bool, bool)
        Of the tile, inputs first: dtype, whether rows repeat one element, whether it is written.
    steps : tuple of tuple
        ``("load", dtype, place, quiet)``, ``("store", dtype, place, False)``,
        ``("prefetch", dtype, place, False)`` or
        ``("formula", name, dtype, raw, params, place, other)``, or ``("form", name, address,
        kernel, params, place)``, whose loop over vectors is at the address.  Places are those
        of operands, or of slots, which begin at `limits()[0]`; params: bytes to the node's numbers;
        raw: whether nothing tells NaNs of the result apart; quiet: whether something does,
        so that signaling NaNs become quiet.
    streams : bool
        Whether outputs bypass the cache.
    numbers : tuple of (int, str)
        Of each number of the nodes, in order: where it lies in the parameters, in bytes; and if
        what follows there is prepared from it, the dtype of the result, else ''.

    Returns
    -------
    FusedKernel
    """
    cdef FusedKernel kernel = FusedKernel()
    cdef fused_state *state = kernel.memory
    cdef step_t *c
    cdef int k, n = len(steps), slots = 0
    cdef list kept = []
    if len(operands) > MOST_OPERANDS or n + 1 > MOST_STEPS:
        raise ValueError(f"{name}: a program has at most {MOST_OPERANDS} operands and "
                         f"{MOST_STEPS - 1} steps")
    state.n_operands, state.streams = len(operands), streams
    sizes, read = {}, set()
    for dtype, repeated, _ in operands:
        read.add((dtype, repeated))
    # What is repeated in short rows would have to be taken apart.
    cdef bint pairs = read == {("bfloat16", False)}
    for k, (dtype, repeated, output) in enumerate(operands):
        state.operands[k].size = _SIZES[dtype]
        state.operands[k].output = output
        if repeated:
            state.operands[k].load = loads(dtype, False, True)
        sizes[k] = 0 if repeated else _SIZES[dtype]
    for k, step in enumerate(steps):
        c = &state.steps[k]
        if step[0] == "form":
            _, formula, address, own, c.params, place = step
            c.run = _pair_functions[<int>_pairs[formula]] if formula in _pairs else by_form
            c.open = left_open
            c.block, c.state = <const void *><size_t>address, <const void *><size_t>own.state
            c.operand, c.size = place, sizes.get(place, 0)
            slots = max(slots, place - MOST_OPERANDS + 1)
            kept.append(own)
            continue
        if step[0] == "formula":
            _, formula, dtype, raw, c.params, place, other = step
            c.run = _functions[<bint>raw][<int>_numbers[formula, dtype]]
            c.operand, c.size = place, sizes.get(place, 0)
            c.other, c.other_size = other, sizes.get(other, 0)
            slots = max(slots, place - MOST_OPERANDS + 1, other - MOST_OPERANDS + 1)
            continue
        action, dtype, place, quiet = step
        c.operand, c.size = place, sizes.get(place, 0)
        slots = max(slots, place - MOST_OPERANDS + 1)
        if action == "load":
            c.run = load_f32 if c.size == 0 else loads(dtype, pairs, quiet)
        elif action == "prefetch":
            c.run = prefetch_step
        else:
            own = place < MOST_OPERANDS
            c.run = stores(dtype, streams and own, pairs and own)
    state.steps[n].run = finish_block
    if slots > MOST_SLOTS:
        raise ValueError(f"{name}: a program has at most {MOST_SLOTS} slots")
    state.n_slots = slots
    if len(numbers) > MOST_NUMBERS:
        raise ValueError(f"{name}: a program takes at most {MOST_NUMBERS} numbers")
    state.n_numbers = len(numbers)
    for k, (offset, dtype) in enumerate(numbers):
        state.numbers[k].offset = offset
        state.numbers[k].prepared = len(dtype) > 0
        state.numbers[k].dtype = F16 if dtype == "float16" else BF16
        kernel.params_size = max(kernel.params_size, <size_t>offset + 8 + PREPARED)
    if numbers:
        kernel.prepare = <size_t><prepare_kernel>prepare_fused
    kernel.name, kernel.kept = name, tuple(kept)
    kernel.steps = described(steps)
    return kernel
