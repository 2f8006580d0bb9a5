"""Elements that lanes leave open, doubtful or suspect: picked, and computed once more in double."""

from libc.stdint cimport uint16_t, uint64_t
from libc.string cimport memcpy, memset

from aclnn.kernels.cast cimport cast_row
from aclnn.kernels.computation cimport compute_state, double_loop
from aclnn.kernels.element cimport (
    bfloat16_t,
    copy_element,
    half_t,
    load,
    unaligned_double,
    unaligned_float,
)
from aclnn.kernels.lane cimport (
    DOUBTS,
    DOUBTS_TOGETHER,
    HALF,
    LANES,
    SINGLE,
    SUSPECTS,
    doubted,
    kind_t,
    list_doubts,
    span_t,
)
from aclnn.kernels.tile cimport BLOCK, prefetch

cdef extern from * nogil:
    int __builtin_ctzll(uint64_t) noexcept

cdef enum:
    HALVES_IN_PLACE = 16384               # elements of a block whose doubts are settled together
    DOUBTS_MOST = HALVES_IN_PLACE // 8    # registers of such a block, of eight elements or more
    DOUBTS_ROOM = DOUBTS_MOST + DOUBTS_TOGETHER
    BATCH = 64                            # so many elements are computed again at a time
    WHOLE = 8                             # up to a multiple of this, so that loops have no rest
    DOUBTS_LISTED = DOUBTS_MOST // 4 + 8  # four registers are looked at together, and eight fours


cdef struct picked_t:
    # Elements of a tile that are computed once more, in double, a batch at a time: what they are
    # made of, and where the result belongs.
    const compute_state *state
    const double *scalars
    char *target             # of the block's first element
    ptrdiff_t size           # of an element there
    bint recast              # it has the output's dtype, not the result's
    ptrdiff_t count
    char inputs[2][BATCH * 4]
    char *places[BATCH]


cdef inline void settle(const span_t *span, int found, picked_t *picked) noexcept nogil:
    """Pick suspect and doubtful elements, to be rounded from double."""
    if found & DOUBTS:
        pick_doubts(span, found, picked)
    if found & SUSPECTS:
        pick_suspects(span, picked)


cdef inline void pick(const span_t *span, ptrdiff_t where, picked_t *picked) noexcept nogil:
    cdef const compute_state *state = picked.state
    cdef ptrdiff_t size = state.read_size
    if picked.count == BATCH:
        compute_picked(picked)
    copy_element(picked.inputs[0] + picked.count * size, span.a + where * size, size)
    copy_element(picked.inputs[1] + picked.count * size, span.b + where * size, size)
    picked.places[picked.count] = picked.target + where * picked.size
    prefetch(picked.places[picked.count])  # a line that was streamed would hold up later ones
    picked.count += 1


cdef inline bint none_of_four(const uint16_t *marks) noexcept nogil:
    cdef uint64_t four
    memcpy(&four, marks, sizeof(four))
    return four == 0


cdef inline void pick_doubts(const span_t *span, int found, picked_t *picked) noexcept nogil:
    """First what has doubts is listed, without branches, which no processor could predict."""
    cdef ptrdiff_t groups = (span.n + LANES - 1) // LANES
    cdef int listed[DOUBTS_LISTED]
    cdef int i, bit, count
    cdef ptrdiff_t where
    cdef uint64_t four
    memset(&span.doubts[groups], 0, DOUBTS_TOGETHER * sizeof(uint16_t))
    count = list_doubts(span.doubts, <int>((groups + 3) // 4), listed)
    for i in range(count):
        memcpy(&four, &span.doubts[4 * listed[i]], sizeof(four))
        while four:
            bit = __builtin_ctzll(four)
            four &= four - 1
            where = doubted(span, found, listed[i], bit)
            if where < span.n:
                pick(span, where, picked)


cdef inline void pick_suspects(const span_t *span, picked_t *picked) noexcept nogil:
    """Suspect elements, which may have been doubtful too: computing one twice does no harm."""
    cdef const compute_state *state = picked.state
    cdef unaligned_float values[3][BLOCK]
    cdef const unaligned_float *a
    cdef const unaligned_float *b
    cdef const unaligned_float *r
    cdef uint16_t suspect[BLOCK + 3]
    cdef ptrdiff_t i, n, begin = 0
    while begin < span.n:
        n = min(<ptrdiff_t>BLOCK, span.n - begin)
        a = floats_at(span.a, begin, n, state.kind, values[0])
        b = floats_at(span.b, begin, n, state.kind, values[1])
        r = floats_at(span.out, begin, n, span.stored, values[2])
        memset(suspect, 0, sizeof(suspect))
        state.mark(a, b, r, suspect, n, picked.scalars)
        i = 0
        while i < n:
            if none_of_four(&suspect[i]):
                i += 4
                continue
            if suspect[i]:
                pick(span, begin + i, picked)
            i += 1
        begin += BLOCK


cdef inline const unaligned_float *floats_at(const char *source, ptrdiff_t begin, ptrdiff_t n,
                                             kind_t kind, unaligned_float *values) noexcept nogil:
    """Elements of a span in float: where they lie, or converted into `values`."""
    if kind == SINGLE:
        return <const unaligned_float *>source + begin
    if kind == HALF:
        load(<const half_t *>source + begin, sizeof(half_t), values, n)
    else:
        load(<const bfloat16_t *>source + begin, sizeof(bfloat16_t), values, n)
    return values


cdef inline void compute_picked(picked_t *picked) noexcept nogil:
    cdef const compute_state *state = picked.state
    cdef unaligned_float values[BATCH]
    cdef const unaligned_float *narrow
    cdef unaligned_double wide[2][BATCH]
    cdef unaligned_double results[BATCH]
    cdef char rounded[BATCH * 4]
    cdef char recast[BATCH * 16]
    cdef const char *source = rounded
    cdef ptrdiff_t i, j, size = state.read_size
    cdef ptrdiff_t n = (picked.count + WHOLE - 1) & ~<ptrdiff_t>(WHOLE - 1)
    if n == 0:
        return
    # Whole registers: the loops' remainders would take longer than all the rest.
    for i in range(2):
        memset(picked.inputs[i] + picked.count * size, 0x38, (n - picked.count) * size)
        narrow = floats_at(picked.inputs[i], 0, n, state.kind, values)
        for j in range(n):
            wide[i][j] = narrow[j]
    (<double_loop>state.exact)(wide[0], wide[1], results, n, picked.scalars)
    state.store_exact(<const char *>results, rounded, state.result_size, n)
    if picked.recast:
        cast_row(rounded, state.result_size, recast, picked.size, n, &state.cast, False)
        source = recast
    for i in range(picked.count):
        copy_element(picked.places[i], source + i * picked.size, picked.size)
    picked.count = 0
