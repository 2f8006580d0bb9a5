"""Running sums, maxima and their places along an axis."""

from libc.math cimport INFINITY, NAN, fabs, sqrt
from libc.stdint cimport INT64_MIN, int64_t
from libc.string cimport memset

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
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context

cdef extern from "double_math.h" nogil:
    double full_pow(double, double) noexcept


cdef struct sum_t:
    double high
    double low
    int64_t whole


cdef inline double added(double x, sum_t *sum) noexcept nogil:
    """The sum with one more element; what the addition rounds away is kept with it."""
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
    """Whose elements are dense."""
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
    """Many adjacent lines at a time."""
    cdef int last = walk.ndim - 1
    cdef ptrdiff_t by = walk.strides[0][last], place = walk.strides[1][last], i, n
    cdef ptrdiff_t line, end = elements_of(walk) * (chunk + 1) // chunks
    cdef int64_t[BLOCK] block
    cdef sum_t[BLOCK] sums
    cdef bint dense = state.across != NULL and by == state.size and place == state.size
    line = elements_of(walk) * chunk // chunks
    walk_to(walk, line)
    while line < end:
        n = min(end - line, walk.shape[last] - walk.index[last])
        if dense:
            state.across(walk.data[0], step, walk.data[1], to, n, length)
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


cdef inline void turn_around(const opaque_state *state, int64_t *x, ptrdiff_t n) noexcept nogil:
    """Elements in the other order: the least become the largest."""
    cdef double *y = <double *>x
    cdef ptrdiff_t i
    if state.is_whole:
        for i in range(n):
            x[i] = ~x[i]
    else:
        for i in range(n):
            y[i] = -y[i]


cdef inline void give_found(const opaque_state *state, found_t *found, char *target,
                            bint wants_place, bint turned) noexcept nogil:
    if turned:
        found.whole, found.most = ~found.whole, -found.most
    if wants_place:
        (<unaligned_int64 *>target)[0] = found.place
    elif state.is_whole:
        state.store(&found.whole, target, 0, 1)
    else:
        state.store(&found.most, target, 0, 1)


cdef inline int search(const array_view *views, const opaque_state *state, ptrdiff_t chunk,
                       ptrdiff_t chunks, bint wants_place, bint turned) noexcept nogil:
    """A line after the other, or many adjacent ones; `turned`: for the least elements."""
    cdef int axis = state.axis, last
    cdef ptrdiff_t length = views[0].shape[axis], step = views[0].strides[axis]
    cdef ptrdiff_t line, end, i, k, n
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
                if turned:
                    turn_around(state, block, n)
                search_across(state, block, n, i, found)
                i += 1
            else:
                k = min(<ptrdiff_t>BLOCK, length - i)
                state.load(walk.data[0] + i * step, step, block, k)
                if turned:
                    turn_around(state, block, k)
                search_block(state, block, k, i, found)
                i += BLOCK
        for i in range(n):
            give_found(state, &found[i],
                       walk.data[1] + (i * walk.strides[1][last] if across else 0), wants_place,
                       turned)
        if across:
            walk_by(&walk, n)
        else:
            walk_on(&walk)
        line += n
    return 0


cdef inline int most(const array_view *views, const void *given, const void *params, void *scratch,
                     ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    return search(views, <const opaque_state *>given, chunk, chunks, False, False)


cdef inline int place(const array_view *views, const void *given, const void *params, void *scratch,
                      ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    return search(views, <const opaque_state *>given, chunk, chunks, True, False)


cdef inline int smallest(const array_view *views, const void *given, const void *params,
                         void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                         call_context *context) noexcept nogil:
    return search(views, <const opaque_state *>given, chunk, chunks, False, True)


cdef inline int smallest_place(const array_view *views, const void *given, const void *params,
                               void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                               call_context *context) noexcept nogil:
    return search(views, <const opaque_state *>given, chunk, chunks, True, True)


# --- Products and norms: each line by itself, in an order that its length alone decides -----------

cdef enum:
    PARTS = 8

cdef struct fold_t:
    double[PARTS] real
    int64_t[PARTS] whole


ctypedef double (*finish_fn)(double) noexcept nogil


cdef inline bint fold_lines(walk_t *walk, const opaque_state *state, ptrdiff_t step,
                            ptrdiff_t length, ptrdiff_t chunk, ptrdiff_t chunks,
                            finish_fn finish) noexcept nogil:
    """Whether loops over many lines do it: where these, or elements of each, are dense."""
    cdef int last = walk.ndim - 1
    cdef ptrdiff_t by = walk.strides[0][last] if last >= 0 else 0
    cdef ptrdiff_t place = walk.strides[1][last] if last >= 0 else 0
    cdef ptrdiff_t line = elements_of(walk) * chunk // chunks, n = 1, i
    cdef ptrdiff_t end = elements_of(walk) * (chunk + 1) // chunks
    cdef bint behind = state.behind != NULL and step == state.size
    cdef double[BLOCK] totals
    if not behind and (state.across == NULL or by != state.size):
        return False
    walk_to(walk, line)
    while line < end:
        if last >= 0:
            n = min(<ptrdiff_t>BLOCK, min(end - line, walk.shape[last] - walk.index[last]))
        if behind:
            state.behind(walk.data[0], by, <char *>totals, 0, n, length)
        else:
            state.across(walk.data[0], step, <char *>totals, 0, n, length)
        for i in range(n):
            totals[i] = finish(totals[i])
        state.store(totals, walk.data[1], place, n)
        if last >= 0:
            walk_by(walk, n)
        line += n
    return True


cdef inline double one_nan(double x) noexcept nogil:
    return x if x == x else NAN


cdef inline double root(double x) noexcept nogil:
    return one_nan(sqrt(x))


cdef inline void multiply(const opaque_state *state, const int64_t *x, ptrdiff_t n,
                          fold_t *fold) noexcept nogil:
    """Element i goes to the product i mod 8."""
    cdef const double *y = <const double *>x
    cdef ptrdiff_t i
    cdef int k
    for i in range(n // PARTS):
        for k in range(PARTS):
            if state.is_whole:
                fold.whole[k] *= x[i * PARTS + k]
            else:
                fold.real[k] *= y[i * PARTS + k]
    for i in range(n - n % PARTS, n):
        if state.is_whole:
            fold.whole[i % PARTS] *= x[i]
        else:
            fold.real[i % PARTS] *= y[i]


cdef inline int product_along(const array_view *views, const void *given, const void *params,
                              void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                              call_context *context) noexcept nogil:
    cdef const opaque_state *state = <const opaque_state *>given
    cdef int axis = state.axis, part
    cdef ptrdiff_t length = views[0].shape[axis], step = views[0].strides[axis], n, i, lines, _line
    cdef int64_t[BLOCK] block  # or doubles
    cdef fold_t fold
    cdef walk_t walk
    walk_over(&walk, views, 2, 0, views[1].ndim, axis)
    if fold_lines(&walk, state, step, length, chunk, chunks, one_nan):
        return 0
    lines = elements_of(&walk)
    walk_to(&walk, lines * chunk // chunks)
    for _line in range(lines * chunk // chunks, lines * (chunk + 1) // chunks):
        for part in range(PARTS):
            fold.real[part], fold.whole[part] = 1, 1
        i = 0
        while i < length:
            n = min(<ptrdiff_t>BLOCK, length - i)
            state.load(walk.data[0] + i * step, step, block, n)
            multiply(state, block, n, &fold)
            i += n
        for part in range(1, PARTS):
            fold.real[0] *= fold.real[part]
            fold.whole[0] *= fold.whole[part]
        if state.is_whole:
            state.store(&fold.whole[0], walk.data[1], 0, 1)
        else:
            fold.real[0] = one_nan(fold.real[0])
            state.store(&fold.real[0], walk.data[1], 0, 1)
        walk_on(&walk)
    return 0


cdef inline void add_terms(const double *x, ptrdiff_t n, double p, double *parts) noexcept nogil:
    """Sums of powers of magnitudes; for infinite p the largest magnitude, or the least."""
    cdef ptrdiff_t i
    cdef int k
    cdef double size
    if p == 2:
        for i in range(n // PARTS):
            for k in range(PARTS):
                parts[k] += x[i * PARTS + k] * x[i * PARTS + k]
        for i in range(n - n % PARTS, n):
            parts[i % PARTS] += x[i] * x[i]
        return
    if p == 1:
        for i in range(n // PARTS):
            for k in range(PARTS):
                parts[k] += fabs(x[i * PARTS + k])
        for i in range(n - n % PARTS, n):
            parts[i % PARTS] += fabs(x[i])
        return
    for i in range(n):
        size, k = fabs(x[i]), i % PARTS
        if p == 0:
            parts[k] += size != 0
        elif p == INFINITY:
            parts[k] = size if (size > parts[k]) | (size != size) else parts[k]
        elif p == -INFINITY:
            parts[k] = size if (size < parts[k]) | (size != size) else parts[k]
        else:
            parts[k] += full_pow(size, p)


cdef inline double norm_of(double *parts, double p) noexcept nogil:
    cdef double found = parts[0]
    cdef int k
    for k in range(1, PARTS):
        if p == INFINITY:
            found = parts[k] if (parts[k] > found) | (parts[k] != parts[k]) else found
        elif p == -INFINITY:
            found = parts[k] if (parts[k] < found) | (parts[k] != parts[k]) else found
        else:
            found += parts[k]
    if p == 2:
        found = sqrt(found)
    elif p != 1 and p != 0 and fabs(p) != INFINITY:
        found = full_pow(found, 1 / p)
    return found if found == found else NAN


cdef inline int norm_along(const array_view *views, const void *given, const void *params,
                           void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                           call_context *context) noexcept nogil:
    cdef const opaque_state *state = <const opaque_state *>given
    cdef double p = (<const double *>params)[0], found
    cdef int axis = state.axis, k
    cdef ptrdiff_t length = views[0].shape[axis], step = views[0].strides[axis], n, i, lines, _line
    cdef double[BLOCK] block
    cdef double[PARTS] parts
    cdef walk_t walk
    if fabs(p) >= 2147483647:
        p = INFINITY if p > 0 else -INFINITY
    walk_over(&walk, views, 2, 0, views[1].ndim, axis)
    if p == 2 and fold_lines(&walk, state, step, length, chunk, chunks, root):
        return 0
    lines = elements_of(&walk)
    walk_to(&walk, lines * chunk // chunks)
    for _line in range(lines * chunk // chunks, lines * (chunk + 1) // chunks):
        for k in range(PARTS):
            parts[k] = INFINITY if p == -INFINITY else 0
        i = 0
        while i < length:
            n = min(<ptrdiff_t>BLOCK, length - i)
            state.load(walk.data[0] + i * step, step, block, n)
            add_terms(block, n, p, parts)
            i += n
        found = norm_of(parts, p)
        state.store(&found, walk.data[1], 0, 1)
        walk_on(&walk)
    return 0
