"""Results that a fast path leaves open, hard to round or exceptional: recomputed in double."""

from libc.stdint cimport uint16_t, uint64_t
from libc.string cimport memcpy, memset

from aclnn.kernels.cast cimport cast_row
from aclnn.kernels.computation cimport compute_state
from aclnn.kernels.element cimport (
    bfloat16_t,
    bfloat16_to_f32,
    copy_element,
    half_t,
    halves_to_floats,
    unaligned_float,
)
from aclnn.kernels.simd.loop_args cimport (
    EXCEPTIONAL,
    F16,
    F32,
    HARD_TO_ROUND,
    LANES,
    MASKS_TOGETHER,
    elem_type,
    hard_element,
    list_hard,
    loop_args,
)
from aclnn.kernels.tile cimport BLOCK, prefetch

cdef extern from * nogil:
    int __builtin_ctzll(uint64_t) noexcept

cdef enum:
    HALVES_IN_PLACE = 16384              # elements of a block of half precision
    MASKS_MOST = HALVES_IN_PLACE // 8    # vectors of such a block, of eight elements or more
    MASKS_ROOM = MASKS_MOST + MASKS_TOGETHER
    BATCH = 64                           # elements that are recomputed at a time
    MOST_OPERANDS = 3                    # of a fast path
    WHOLE = 8                            # in multiples of this, so that loops have no remainder
    MASKS_LISTED = MASKS_MOST // 4 + 8   # four masks are read together, and eight fours


cdef struct pending_t:
    # The queue of elements of a tile that are recomputed in double, a batch at a time: their
    # operands, and where the results belong.
    const compute_state *state
    const void *params       # of which the node's numbers come first
    char *target             # of the block's first element
    ptrdiff_t size           # of an element there
    bint recast              # it has the output's dtype, not the result's
    ptrdiff_t count
    char inputs[MOST_OPERANDS][BATCH * 4]
    char *places[BATCH]


cdef inline void enqueue_found(const loop_args *args, int found, pending_t *pending) noexcept nogil:
    """Enqueue what a loop reported."""
    if found & HARD_TO_ROUND:
        enqueue_hard(args, found, pending)
    if found & EXCEPTIONAL:
        enqueue_exceptional(args, pending)


cdef inline void enqueue(const loop_args *args, ptrdiff_t where,
                         pending_t *pending) noexcept nogil:
    cdef const compute_state *state = pending.state
    cdef ptrdiff_t size = state.read_size
    if pending.count == BATCH:
        recompute_pending(pending)
    copy_element(pending.inputs[0] + pending.count * size, args.a + where * size, size)
    copy_element(pending.inputs[1] + pending.count * size, args.b + where * size, size)
    if state.n_inputs == MOST_OPERANDS:
        copy_element(pending.inputs[2] + pending.count * size, args.c + where * size, size)
    pending.places[pending.count] = pending.target + where * pending.size
    # A line that bypassed the cache would hold up later ones.
    prefetch(pending.places[pending.count])
    pending.count += 1


cdef inline bint none_of_four(const uint16_t *marks) noexcept nogil:
    cdef uint64_t four
    memcpy(&four, marks, sizeof(four))
    return four == 0


cdef inline void enqueue_hard(const loop_args *args, int found, pending_t *pending) noexcept nogil:
    """Masks that are not zero are listed first, without branches that no processor can predict."""
    cdef ptrdiff_t groups = (args.n + LANES - 1) // LANES
    cdef int listed[MASKS_LISTED]
    cdef int i, bit, count
    cdef ptrdiff_t where
    cdef uint64_t four
    memset(&args.hard[groups], 0, MASKS_TOGETHER * sizeof(uint16_t))
    count = list_hard(args.hard, <int>((groups + 3) // 4), listed)
    for i in range(count):
        memcpy(&four, &args.hard[4 * listed[i]], sizeof(four))
        while four:
            bit = __builtin_ctzll(four)
            four &= four - 1
            where = hard_element(args, found, listed[i], bit)
            if where < args.n:
                enqueue(args, where, pending)


cdef inline int list_marked(const uint16_t *marks, ptrdiff_t n, int *listed) noexcept nogil:
    """List the places of marks, and count them; without branches that no processor can predict."""
    cdef ptrdiff_t i
    cdef int k, count = 0
    for i in range(0, n, 4):
        if none_of_four(marks + i):
            continue
        for k in range(4):
            listed[count] = <int>i + k
            count += marks[i + k] != 0
    return count


cdef inline void enqueue_exceptional(const loop_args *args, pending_t *pending) noexcept nogil:
    """Exceptional results; some may be enqueued already: recomputing one twice does no harm."""
    cdef const compute_state *state = pending.state
    cdef unaligned_float values[3][BLOCK]
    cdef const unaligned_float *a
    cdef const unaligned_float *b
    cdef const unaligned_float *r
    cdef uint16_t exceptional[BLOCK + 3]
    cdef int listed[BLOCK + 3]
    cdef ptrdiff_t n, begin = 0
    cdef int i
    while begin < args.n:
        n = min(<ptrdiff_t>BLOCK, args.n - begin)
        a = floats_at(args.a, begin, n, state.read_type, values[0])
        b = floats_at(args.b, begin, n, state.read_type, values[1])
        r = floats_at(args.out, begin, n, state.rounded, values[2])
        memset(exceptional, 0, sizeof(exceptional))
        state.classify(a, b, r, exceptional, n, <const double *>pending.params)
        for i in range(list_marked(exceptional, n, listed)):
            enqueue(args, begin + listed[i], pending)
        begin += BLOCK


cdef inline const unaligned_float *floats_at(const char *source, ptrdiff_t begin, ptrdiff_t n,
                                             elem_type type,
                                             unaligned_float *values) noexcept nogil:
    """Elements as float32: in place, or converted into `values`."""
    cdef ptrdiff_t i
    if type == F32:
        return <const unaligned_float *>source + begin
    if type == F16:
        halves_to_floats(<const half_t *>source + begin, values, n)
    else:
        for i in range(n):
            values[i] = bfloat16_to_f32((<const bfloat16_t *>source)[begin + i])
    return values


cdef inline void recompute_pending(pending_t *pending) noexcept nogil:
    cdef const compute_state *state = pending.state
    cdef unaligned_float values[BATCH]
    cdef const unaligned_float *narrow
    cdef double wide[MOST_OPERANDS][BATCH]
    cdef const void *inputs[MOST_OPERANDS]
    cdef double results[BATCH]
    cdef char rounded[BATCH * 4]
    cdef char recast[BATCH * 16]
    cdef const char *source = rounded
    cdef ptrdiff_t i, j, size = state.read_size
    cdef ptrdiff_t n = (pending.count + WHOLE - 1) & ~<ptrdiff_t>(WHOLE - 1)
    if n == 0:
        return
    # Whole vectors: a remainder of the loops would take longer than all the rest.
    for i in range(max(2, state.n_inputs)):
        memset(pending.inputs[i] + pending.count * size, 0x38, (n - pending.count) * size)
        narrow = floats_at(pending.inputs[i], 0, n, state.read_type, values)
        for j in range(n):
            wide[i][j] = narrow[j]
        inputs[i] = wide[i]
    state.exact(inputs, results, n, pending.params)
    state.store_exact(<const char *>results, rounded, state.result_size, n)
    if pending.recast:
        cast_row(rounded, state.result_size, recast, pending.size, n, &state.cast, False)
        source = recast
    for i in range(pending.count):
        copy_element(pending.places[i], source + i * pending.size, pending.size)
    pending.count = 0
