"""Running sums, maxima and their places along an axis."""

from libc.math cimport INFINITY, NAN
from libc.stdint cimport INT64_MIN, int64_t
from libc.string cimport memset

from aclnn._kernel_reference cimport array_view, call_context
from aclnn.kernels.element cimport unaligned_int64
from aclnn.kernels.opaque.walk cimport (
    BLOCK,
    elements_of,
    lies_across,
    opaque_state,
    walk_by,
    walk_on,
    walk_over,
    walk_t,
    walk_to,
)


cdef struct sum_t:
    double high
    double low
    int64_t whole


cdef inline double added(double x, sum_t *sum) noexcept nogil:
    """The sum with one more element; what the addition rounds away is kept beside it."""
    cdef double total = sum.high + x, taken = total - sum.high
    sum.low += (sum.high - (total - taken)) + (x - taken)
    sum.high = total
    if total - total == 0:
        return total + sum.low
    return total if total == total else NAN


cdef inline void add_block(const opaque_state *state, int64_t *x, ptrdiff_t n, sum_t *sums,
                           ptrdiff_t step) noexcept nogil:
    """Running sums in the place of elements: of one line, or of each its own where `step` is 1."""
    cdef ptrdiff_t i
    if state.is_whole:
        for i in range(n):
            sums[i * step].whole += x[i]
            x[i] = sums[i * step].whole
    else:
        for i in range(n):
            (<double *>x)[i] = added((<double *>x)[i], &sums[i * step])


cdef inline int cumsum(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    cdef const opaque_state *state = <const opaque_state *>given
    cdef int axis = state.axis
    cdef ptrdiff_t length = views[1].shape[axis]
    cdef ptrdiff_t step = views[0].strides[axis], to = views[1].strides[axis]
    cdef ptrdiff_t _line, lines, first, n
    cdef int64_t[BLOCK] block  # or doubles
    cdef sum_t sum
    cdef walk_t walk
    walk_over(&walk, views, 2, 0, views[1].ndim, axis)
    if state.behind != NULL and step == state.size and to == state.size:
        cumsum_of_lines(&walk, state, length, chunk, chunks)
        return 0
    if lies_across(&walk, step):
        cumsum_across(&walk, state, length, step, to, chunk, chunks)
        return 0
    lines = elements_of(&walk)
    walk_to(&walk, lines * chunk // chunks)
    for _line in range(lines * chunk // chunks, lines * (chunk + 1) // chunks):
        sum.high, sum.low, sum.whole = 0, 0, 0
        first = 0
        while first < length:
            n = min(<ptrdiff_t>BLOCK, length - first)
            state.load(walk.data[0] + first * step, step, block, n)
            add_block(state, block, n, &sum, 0)
            state.store(block, walk.data[1] + first * to, to, n)
            first += n
        walk_on(&walk)
    return 0


cdef inline void cumsum_of_lines(walk_t *walk, const opaque_state *state, ptrdiff_t length,
                                 ptrdiff_t chunk, ptrdiff_t chunks) noexcept nogil:
    """Whose elements lie beside each other."""
    cdef int last = walk.ndim - 1
    cdef ptrdiff_t n, line = elements_of(walk) * chunk // chunks
    cdef ptrdiff_t end = elements_of(walk) * (chunk + 1) // chunks
    walk_to(walk, line)
    while line < end:
        if last < 0:
            state.behind(walk.data[0], 0, walk.data[1], 0, 1, length)
            return
        n = min(end - line, walk.shape[last] - walk.index[last])
        state.behind(walk.data[0], walk.strides[0][last], walk.data[1], walk.strides[1][last], n,
                     length)
        walk_by(walk, n)
        line += n


cdef inline void cumsum_across(walk_t *walk, const opaque_state *state, ptrdiff_t length,
                               ptrdiff_t step, ptrdiff_t to, ptrdiff_t chunk,
                               ptrdiff_t chunks) noexcept nogil:
    """Many lines at a time, which lie beside each other."""
    cdef int last = walk.ndim - 1
    cdef ptrdiff_t by = walk.strides[0][last], place = walk.strides[1][last], i, n
    cdef ptrdiff_t line, end = elements_of(walk) * (chunk + 1) // chunks
    cdef int64_t[BLOCK] block
    cdef sum_t[BLOCK] sums
    cdef bint dense = state.beside != NULL and by == state.size and place == state.size
    line = elements_of(walk) * chunk // chunks
    walk_to(walk, line)
    while line < end:
        n = min(end - line, walk.shape[last] - walk.index[last])
        if dense:
            state.beside(walk.data[0], step, walk.data[1], to, n, length)
            walk_by(walk, n)
            line += n
            continue
        n = min(<ptrdiff_t>BLOCK, n)
        memset(sums, 0, sizeof(sums))
        for i in range(length):
            state.load(walk.data[0] + i * step, by, block, n)
            add_block(state, block, n, sums, 1)
            state.store(block, walk.data[1] + i * to, place, n)
        walk_by(walk, n)
        line += n


cdef struct found_t:
    double most
    int64_t whole
    int64_t place


cdef inline void search_block(const opaque_state *state, const int64_t *x, ptrdiff_t n,
                              ptrdiff_t first, found_t *found) noexcept nogil:
    """The first NaN of a line, else the first of the largest."""
    cdef const double *y = <const double *>x
    cdef ptrdiff_t i
    if state.is_whole:
        for i in range(n):
            if x[i] > found.whole:
                found.whole, found.place = x[i], first + i
    else:
        for i in range(n):
            if y[i] > found.most or (y[i] != y[i] and found.most == found.most):
                found.most, found.place = y[i], first + i


cdef inline void search_across(const opaque_state *state, const int64_t *x, ptrdiff_t n,
                               ptrdiff_t place, found_t *found) noexcept nogil:
    """One element of each of many lines."""
    cdef const double *y = <const double *>x
    cdef ptrdiff_t i
    if state.is_whole:
        for i in range(n):
            if x[i] > found[i].whole:
                found[i].whole, found[i].place = x[i], place
    else:
        for i in range(n):
            if y[i] > found[i].most or (y[i] != y[i] and found[i].most == found[i].most):
                found[i].most, found[i].place = y[i], place


cdef inline void begin_search(found_t *found, ptrdiff_t n) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        found[i].most, found[i].whole, found[i].place = -INFINITY, INT64_MIN, 0


cdef inline void give_found(const opaque_state *state, const found_t *found, char *target,
                            bint wants_place) noexcept nogil:
    if wants_place:
        (<unaligned_int64 *>target)[0] = found.place
    elif state.is_whole:
        state.store(&found.whole, target, 0, 1)
    else:
        state.store(&found.most, target, 0, 1)


cdef inline int search(const array_view *views, const opaque_state *state, ptrdiff_t chunk,
                       ptrdiff_t chunks, bint wants_place) noexcept nogil:
    """A line after the other, or many that lie beside each other."""
    cdef int axis = state.axis, last
    cdef ptrdiff_t length = views[0].shape[axis], step = views[0].strides[axis]
    cdef ptrdiff_t line, end, i, n
    cdef int64_t[BLOCK] block  # or doubles
    cdef found_t[BLOCK] found
    cdef bint across
    cdef walk_t walk
    walk_over(&walk, views, 2, 0, views[1].ndim, axis)
    last = walk.ndim - 1
    across = lies_across(&walk, step)
    line, end = elements_of(&walk) * chunk // chunks, elements_of(&walk) * (chunk + 1) // chunks
    walk_to(&walk, line)
    while line < end:
        n = 1
        if across:
            n = min(<ptrdiff_t>BLOCK, min(end - line, walk.shape[last] - walk.index[last]))
        begin_search(found, n)
        i = 0
        while i < length:
            if across:
                state.load(walk.data[0] + i * step, walk.strides[0][last], block, n)
                search_across(state, block, n, i, found)
                i += 1
            else:
                state.load(walk.data[0] + i * step, step, block, min(<ptrdiff_t>BLOCK, length - i))
                search_block(state, block, min(<ptrdiff_t>BLOCK, length - i), i, found)
                i += BLOCK
        for i in range(n):
            give_found(state, &found[i],
                       walk.data[1] + (i * walk.strides[1][last] if across else 0), wants_place)
        if across:
            walk_by(&walk, n)
        else:
            walk_on(&walk)
        line += n
    return 0


cdef inline int most(const array_view *views, const void *given, const void *params, void *scratch,
                     ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    return search(views, <const opaque_state *>given, chunk, chunks, False)


cdef inline int place(const array_view *views, const void *given, const void *params, void *scratch,
                      ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    return search(views, <const opaque_state *>given, chunk, chunks, True)
