"""Loops over vectors, whatever the formula: load, convert, compute, round and store.

Every function here is inlined into the loops of a formula, whose types, domain and code are then
known to the compiler: what a loop does not need costs nothing.  `tools/vectorized.py` tells whether
a compiler did so.  The order of statements is that of the instructions: to take bfloat16 operands
apart one after the other made logit 1.03 times as slow.
"""

from libc.stdint cimport uint16_t, uintptr_t

from aclnn.kernels.simd.convert cimport (
    all_normal_f16,
    round_bf16,
    round_half,
    round_two,
    size_of,
    store_f32,
    store_line,
    store_normal_f16,
    two_t,
)
from aclnn.kernels.simd.loop_args cimport (
    BF16,
    EXCEPTIONAL,
    F16,
    F32,
    HARD_TO_ROUND,
    HAS_ZEROS,
    INTERLEAVED,
    NO_ZEROS,
    OUT_OF_DOMAIN,
    SOME_ZEROS,
    STAGED,
    ZEROS_UNKNOWN,
    elem_type,
    hints_t,
    loop_args,
    params_t,
    zeros_t,
)
from aclnn.kernels.simd.operands cimport (
    FAR,
    HERE,
    distance_of,
    distance_t,
    is_shifted,
    load_operand,
    prefetch_operands,
    shifted_from,
    shifted_t,
)
from aclnn.kernels.simd.track cimport (
    domain_t,
    has_nan,
    has_negative,
    has_zero,
    is_range_exceptional,
    track_finite,
    track_half_max,
    track_init,
    track_merge,
    track_t,
)
from aclnn.kernels.simd.vector cimport (
    LANES,
    vecf,
    vech,
    veci,
    vf_set,
    vf_store,
    vh_store,
    vi16_any_le,
    vi_and,
    vi_as_floats,
    vi_interleave_upper,
    vi_join,
    vi_load,
    vi_load_first,
    vi_misses,
    vi_set,
    vi_shift_left,
    vi_store,
    vi_store_first,
    vi_stream,
)
from aclnn.kernels.unaligned cimport unaligned_float

cdef enum:
    VECTOR_BYTES = 64   # of the widest
    FILLER = 0x38       # bytes of numbers that suit every formula: 0.53 or 4e-5, whatever the type
    ALIGN_FROM = 16     # vectors of a loop that is worth aligning
    # Elements of a block that is worth looking for zeros, and of those that are looked at.
    FEW_F32 = 512
    FIRST_F32 = 64

# A formula: of two operands, which are the same where it takes one.
ctypedef vecf (*vector_formula)(const params_t *, vecf, vecf, track_t *) noexcept nogil
# The same of whole lines of memory, whatever they hold.
ctypedef veci (*line_formula)(const void *own, const char *a, const char *b,
                              track_t *track) noexcept nogil
ctypedef bint (*exceptional_test)(float a, float b, float r, const double *p) noexcept nogil


# --- One vector, two vectors ----------------------------------------------------------------------

cdef inline vecf compute(vector_formula formula, elem_type read, const loop_args *args,
                         ptrdiff_t i, track_t *track, shifted_t *shifted) noexcept nogil:
    """The results from element `i` on."""
    cdef vecf a = load_operand(args.a, read, i, shifted)
    cdef vecf b = a
    if args.a != args.b:
        b = load_operand(args.b, read, i, &shifted[1] if shifted != NULL else NULL)
    return formula(args.params, a, b, track)


cdef inline two_t compute_two(vector_formula formula, elem_type read, domain_t domain,
                              const loop_args *args, ptrdiff_t i, track_t *track,
                              shifted_t *shifted) noexcept nogil:
    """They track their ranges in turns, so that neither waits for the other."""
    cdef track_t *other = &track[0 if domain.share_tracking else 1]
    cdef two_t two
    cdef vecf last
    two.low = compute(formula, read, args, i, &track[0], shifted)
    last = track[0].last
    two.high = compute(formula, read, args, i + LANES, other, shifted)
    if domain.check_finite:
        track_finite(&track[0], last, other.last)
    return two


cdef inline veci compute_interleaved(vector_formula formula, domain_t domain,
                                     const loop_args *args, ptrdiff_t i,
                                     track_t *track) noexcept nogil:
    """A line of bfloat16: even elements in one vector, odd ones in the other, both rounded."""
    cdef track_t *other = &track[0 if domain.share_tracking else 1]
    cdef uint16_t *hard = args.hard + i // LANES
    cdef veci upper = vi_set(0xffff0000)
    cdef veci a = vi_load(args.a + 2 * i)
    cdef veci b = a if args.a == args.b else vi_load(args.b + 2 * i)
    cdef vecf even_a = vi_as_floats(vi_shift_left(a, 16))
    cdef vecf odd_a = vi_as_floats(vi_and(a, upper))
    cdef vecf even_b = vi_as_floats(vi_shift_left(b, 16))
    cdef vecf odd_b = vi_as_floats(vi_and(b, upper))
    cdef vecf even = formula(args.params, even_a, even_b, &track[0])
    cdef vecf last = track[0].last
    cdef vecf odd = formula(args.params, odd_a, odd_b, other)
    if domain.check_finite:
        track_finite(&track[0], last, other.last)
    return vi_interleave_upper(round_bf16(even, domain.rel_error, hard),
                               round_bf16(odd, domain.rel_error, hard + 1))


# --- Storing --------------------------------------------------------------------------------------

cdef inline bint is_staged(elem_type out, domain_t domain,
                           const loop_args *args) noexcept nogil:
    """Whether results that bypass the cache are staged until those hard to round are computed."""
    return out != F32 and domain.rel_error != 0 and args.staging != NULL


cdef inline void store_staged(const loop_args *args, ptrdiff_t offset,
                              veci line) noexcept nogil:
    """Take the place of a staged line, which is streamed."""
    if args.staged_target != NULL:
        vi_stream(args.staged_target + offset, vi_load(args.staging + offset))
    vi_store(args.staging + offset, line)


cdef inline void store_half_line(elem_type out, domain_t domain, const loop_args *args,
                                 ptrdiff_t i, veci line, bint stream,
                                 track_t *track) noexcept nogil:
    if domain.one_nan:
        track_half_max(track, line)
    if stream and is_staged(out, domain, args):
        store_staged(args, 2 * i, line)
    else:
        store_line(args.out + 2 * i, line, stream)


cdef inline void store_two(elem_type out, domain_t domain, const loop_args *args, ptrdiff_t i,
                           two_t two, bint stream, track_t *track) noexcept nogil:
    cdef char *target = args.out + i * size_of(out)
    cdef uint16_t *hard = args.hard + i // LANES
    if out == F32:
        store_f32(target, two.low, stream)
        store_f32(target + 4 * LANES, two.high, stream)
    elif out == F16 and domain.rel_error != 0 and not stream and all_normal_f16(two):
        # None of them is a NaN, which would be tracked.
        store_normal_f16(target, two.low, domain.rel_error, hard)
        store_normal_f16(target + 2 * LANES, two.high, domain.rel_error, hard + 1)
    else:
        store_half_line(out, domain, args, i,
                        round_two(out, two, domain.rel_error, hard), stream, track)


# --- Loops over elements --------------------------------------------------------------------------

cdef inline ptrdiff_t bytes_to_vector(const loop_args *args, ptrdiff_t size) noexcept nogil:
    """Bytes of results before the first multiple of a vector's size, in whole results.

    A vector that crosses a cache line takes twice as long to store.  So the first one is computed
    where the results begin and those after it from that multiple on: some results are computed
    twice.  Results that lie across multiples themselves begin a part of one before.  0 for short
    loops, where it does not pay.
    """
    cdef ptrdiff_t wide = LANES * 4
    cdef ptrdiff_t head = <ptrdiff_t>(-<uintptr_t>args.out & <uintptr_t>(wide - 1))
    return head - head % size if args.n * size >= ALIGN_FROM * wide else 0


cdef inline ptrdiff_t run_pairs(vector_formula formula, elem_type read, elem_type out,
                                domain_t domain, distance_t distance, bint shifts,
                                const loop_args *args, ptrdiff_t i,
                                track_t *all_track) noexcept nogil:
    """Two vectors at a time, so that half precision fills a line; `shifts`: operands are read by
    lines."""
    cdef bint stream = distance == FAR and args.stream
    cdef track_t track[2]  # in registers
    cdef shifted_t shifted[2]
    cdef veci line
    track[0], track[1] = all_track[0], all_track[1]
    if shifts:
        shifted[0] = shifted_from(args.a, i)
        shifted[1] = shifted_from(args.b, i)
    while i + 2 * LANES <= args.n:
        prefetch_operands(args, i * size_of(read), 2 * LANES * size_of(read), distance)
        if read == BF16:
            line = compute_interleaved(formula, domain, args, i, track)
            store_half_line(out, domain, args, i, line, stream, track)
        else:
            store_two(out, domain, args, i,
                      compute_two(formula, read, domain, args, i, track,
                                  &shifted[0] if shifts else NULL), stream, track)
        i += 2 * LANES
    all_track[0], all_track[1] = track[0], track[1]
    return i


cdef inline void run_one(vector_formula formula, elem_type read, elem_type out, domain_t domain,
                         loop_args args, ptrdiff_t n, track_t *track) noexcept nogil:
    """One vector; if it has fewer elements, by way of copies that are filled up."""
    cdef char a[VECTOR_BYTES]
    cdef char b[VECTOR_BYTES]
    cdef char result[VECTOR_BYTES]
    cdef char *target = args.out
    cdef bint one_operand = args.a == args.b
    cdef vecf x
    cdef vech h
    if n < LANES:
        vi_store(a, vi_load_first(args.a, n * size_of(read), FILLER))
        if not one_operand:
            vi_store(b, vi_load_first(args.b, n * size_of(read), FILLER))
        args.b = &a[0] if one_operand else &b[0]
        args.a, args.out = a, result
    x = compute(formula, read, &args, 0, track, NULL)
    if domain.check_finite:
        track_finite(track, track.last, vf_set(0))
    if out == F32:
        vf_store(args.out, x)
    else:
        h = round_half(out, x, domain.rel_error, args.hard)
        if domain.one_nan:
            track_half_max(track, vi_join(h, h))
        vh_store(args.out, h)
    if n < LANES:
        vi_store_first(target, n * size_of(out), vi_load(result))


cdef inline void run_rest(vector_formula formula, elem_type read, elem_type out,
                          domain_t domain, const loop_args *args, ptrdiff_t done,
                          track_t *track) noexcept nogil:
    """The last elements, fewer than two vectors hold.

    Float32 results are computed together with some before them.  Those of half precision are
    numbered from the beginning, for the rounding test; and a line that bypassed the cache must not
    be written again.
    """
    cdef loop_args last
    while done < args.n:
        if out == F32 and not args.stream and args.n >= LANES and args.n - done < LANES:
            done = args.n - LANES
        last = args[0]
        last.a += done * size_of(read)
        last.b += done * size_of(read)
        last.out += done * size_of(out)
        last.hard += done // LANES
        run_one(formula, read, out, domain, last, min(<ptrdiff_t>LANES, args.n - done), track)
        done += LANES


cdef inline int run_vectors(vector_formula formula, elem_type read, elem_type out,
                            domain_t domain, loop_args args) noexcept nogil:
    cdef track_t track[2]
    cdef track_t merged
    cdef distance_t distance = distance_of(&args)
    cdef ptrdiff_t done = 0
    track[0] = track[1] = track_init(domain.nonzero)
    if out == F32:  # half precision is numbered from the beginning
        done = bytes_to_vector(&args, 4) // 4
    if done:
        run_one(formula, read, out, domain, args, LANES, &track[0])
    if out == F32 and distance == HERE and is_shifted(&args, done):
        done = run_pairs(formula, read, out, domain, HERE, True, &args, done, track)
    else:  # the processor predicts which distance it is: copies of the loop are no faster
        done = run_pairs(formula, read, out, domain, distance, False, &args, done, track)
    if is_staged(out, domain, &args):
        args.out = args.staging
    run_rest(formula, read, out, domain, &args, done, &track[0])
    merged = track_merge(&track[0], &track[1])
    if domain.check_negative and has_negative(&merged):
        return OUT_OF_DOMAIN
    if domain.nonzero and has_zero(&merged):
        return HAS_ZEROS
    if out != F32 and domain.one_nan and has_nan(&merged, 0x7c00 if out == F16 else 0x7f80):
        return EXCEPTIONAL
    return EXCEPTIONAL if is_range_exceptional(&merged, domain) else 0


cdef inline bint any_hard(const uint16_t *hard, ptrdiff_t n) noexcept nogil:
    cdef unsigned int found = 0
    cdef ptrdiff_t i
    for i in range((n + LANES - 1) // LANES):
        found |= hard[i]
    return found != 0


# --- What a formula's loops are made of -----------------------------------------------------------

cdef inline int run(vector_formula formula, elem_type read, elem_type out, domain_t domain,
                    const loop_args *args) noexcept nogil:
    """A formula on operands of type `read`, rounded to `out`."""
    cdef int found = run_vectors(formula, read, out, domain, args[0])
    if out != F32 and domain.rel_error != 0 and any_hard(args.hard, args.n):
        found |= HARD_TO_ROUND
        if read == BF16 and out == BF16:
            found |= INTERLEAVED
    if is_staged(out, domain, args):
        found |= STAGED
    return found


cdef inline domain_t without_zeros(domain_t domain) noexcept nogil:
    domain.nonzero = True
    return domain


cdef inline zeros_t zeros_among(const char *elements, ptrdiff_t n) noexcept nogil:
    cdef unsigned int zeros = 0
    cdef ptrdiff_t i = 0
    while i < n:
        zeros |= vi_misses(vi_load(elements + 4 * i), vi_set(0x7fffffff))
        i += LANES
    return SOME_ZEROS if zeros else NO_ZEROS


cdef inline int run_f32(vector_formula formula, const char *operand, domain_t domain,
                        const loop_args *args) noexcept nogil:
    """Float32 results that are zeros where `operand` has them.

    Zeros keep their signs and are not too small, which takes a few operations.  They are left out
    until the operand turns out to have zeros: inputs are never where results go, so that a block
    can be computed once more.
    """
    cdef hints_t *hints = args.hints
    cdef int found
    if args.n >= FEW_F32:
        if hints.zeros == ZEROS_UNKNOWN:
            hints.zeros = zeros_among(operand, FIRST_F32)
        if hints.zeros == NO_ZEROS:
            found = run_vectors(formula, F32, F32, without_zeros(domain), args[0])
            if not found & HAS_ZEROS:
                return found
            hints.zeros = SOME_ZEROS
    return run(formula, F32, F32, domain, args)


cdef inline int exceptional_if(bint extreme) noexcept nogil:
    """Whether numbers of the node are so extreme that any result may be exceptional."""
    return EXCEPTIONAL if extreme else 0


cdef inline void classify(exceptional_test test, const unaligned_float *a,
                          const unaligned_float *b, const unaligned_float *r,
                          uint16_t *exceptional, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        exceptional[i] |= test(a[i], b[i], r[i], p)


# --- Loops over lines -----------------------------------------------------------------------------

cdef inline ptrdiff_t run_whole_lines(line_formula formula, const loop_args *args,
                                      const void *own, ptrdiff_t i, ptrdiff_t nbytes,
                                      distance_t distance, track_t *track) noexcept nogil:
    cdef bint stream = distance == FAR and args.stream
    cdef ptrdiff_t wide = LANES * 4
    cdef veci line, following
    while i + 2 * wide <= nbytes:
        prefetch_operands(args, i, 2 * wide, distance)
        line = formula(own, args.a + i, args.b + i, track)
        following = formula(own, args.a + i + wide, args.b + i + wide, track)
        store_line(args.out + i, line, stream)
        store_line(args.out + i + wide, following, stream)
        i += 2 * wide
    while i + wide <= nbytes:
        line = formula(own, args.a + i, args.b + i, track)
        store_line(args.out + i, line, stream)
        i += wide
    return i


cdef inline void run_last_line(line_formula formula, const loop_args *args, const void *own,
                               ptrdiff_t i, ptrdiff_t nbytes, track_t *track) noexcept nogil:
    """The last bytes, fewer than a line: together with some before them, or filled up."""
    cdef char a[VECTOR_BYTES]
    cdef char b[VECTOR_BYTES]
    cdef char result[VECTOR_BYTES]
    cdef ptrdiff_t wide = LANES * 4
    cdef ptrdiff_t rest = nbytes - i
    if nbytes >= wide and not args.stream:
        i = nbytes - wide
        store_line(args.out + i, formula(own, args.a + i, args.b + i, track), False)
        return
    vi_store(a, vi_load_first(args.a + i, rest, FILLER))
    vi_store(b, vi_load_first(args.b + i, rest, FILLER))
    store_line(result, formula(own, a, b, track), False)
    vi_store_first(args.out + i, rest, vi_load(result))


cdef inline int run_lines(line_formula formula, elem_type type, loop_args args,
                          const void *own) noexcept nogil:
    """Run lines of what needs no more than bits, or is rounded at once.

    `own`: the formula's parameters, in a copy: for all the compiler knows of pointers, results
    might lie over them and over the arguments, which would be read again for every line.
    """
    cdef track_t track = track_init(0)
    cdef ptrdiff_t nbytes = args.n * size_of(type)
    cdef distance_t distance = distance_of(&args)
    cdef ptrdiff_t i = bytes_to_vector(&args, size_of(type))
    if i:
        vi_store(args.out, formula(own, args.a, args.b, &track))
    i = run_whole_lines(formula, &args, own, i, nbytes, distance, &track)
    if i < nbytes:
        run_last_line(formula, &args, own, i, nbytes, &track)
    # There is one NaN, and a bfloat16 up to the least normal one may have been rounded twice.
    if has_nan(&track, 0x7c00 if type == F16 else 0x7f80) or vi16_any_le(track.min_bits, 0xff):
        return EXCEPTIONAL
    return 0
