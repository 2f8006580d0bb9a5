"""Kernels that get their operands as a whole: gathers, triangles, running sums, places of maxima.

========== ==================== ======= =========================================================
kernel     inputs, in order     output  what it needs to know
========== ==================== ======= =========================================================
gather     table, index         y       axis; the index has y's shape, with strides of 0 where it
                                        is the same along a dimension
tril, triu x                    y       the diagonal
cumsum     x                    y       axis
most       x                    y       axis; y is reduced: of size 1 there
place      x                    y       as `most`
========== ==================== ======= =========================================================

Operands may have any strides; all have one rank. What has several lines along an axis, or several
rows, is cut into chunks of them. An index is looked at before anything is read by it.
"""

from libc.math cimport INFINITY, NAN
from libc.stddef cimport size_t
from libc.stdint cimport (
    INT64_MIN,
    int8_t,
    int64_t,
    uint8_t,
    uint64_t,
)
from libc.stdlib cimport llabs
from libc.string cimport memset

from aclnn.kernels.element cimport (
    bfloat16_t,
    bits_t,
    bool_t,
    copy_elements,
    half_t,
    load,
    load_fn,
    store,
    store_fn,
    unaligned_double,
    unaligned_float,
    unaligned_int16,
    unaligned_int32,
    unaligned_int64,
    unaligned_pair,
    unaligned_uint16,
    unaligned_uint32,
    unaligned_uint64,
)

from aclnn.kernels.rows.running cimport lines_fn

from aclnn.acl import dtypes

cdef extern from "kernel_abi.h":
    ctypedef struct array_view:
        char *data
        int ndim
        const ptrdiff_t *shape
        const ptrdiff_t *strides
    ctypedef struct call_context:
        int threads
        int64_t detail
    ctypedef int (*call_kernel)(const array_view *, const void *, const void *, void *, ptrdiff_t,
                                ptrdiff_t, call_context *) noexcept nogil

ITEM_SIZES = {dtype.name: dtype.itemsize for dtype in dtypes.NUMPY.values()}
KERNELS = ("gather", "tril", "triu", "cumsum", "most", "place")

cdef enum:
    MOST_DIMS = 8
    BLOCK = 256         # elements that are converted at a time
    OUT_OF_RANGE = 101  # an index that no element has

cdef struct opaque_state:
    int axis
    int size            # bytes of an element that is copied
    int index_size
    bint below          # tril, not triu
    bint is_whole       # computed in int64, not in double
    int64_t diagonal
    load_fn load
    store_fn store
    lines_fn behind, beside  # of cumsum, where elements of a line, or lines, are dense; or NULL
    int64_t length       # of the table: indices are less
    bint wraps           # whether negative indices count from its end


# --- Walks ----------------------------------------------------------------------------------------

cdef struct walk_t:
    # Over the elements of some dimensions: of up to three operands, where the current one lies.
    int ndim
    int operands
    ptrdiff_t shape[MOST_DIMS]
    ptrdiff_t strides[3][MOST_DIMS]
    ptrdiff_t index[MOST_DIMS]
    char *data[3]


cdef void walk_over(walk_t *walk, const array_view *views, int operands, int first, int last,
                    int but) noexcept nogil:
    """The dimensions [first, last), without one; shapes are the last operand's."""
    cdef int axis, k
    walk.ndim, walk.operands = 0, operands
    for k in range(operands):
        walk.data[k] = views[k].data
    for axis in range(first, last):
        if axis == but:
            continue
        walk.shape[walk.ndim] = views[operands - 1].shape[axis]
        for k in range(operands):
            walk.strides[k][walk.ndim] = views[k].strides[axis]
        walk.ndim += 1


cdef ptrdiff_t elements_of(const walk_t *walk) noexcept nogil:
    cdef ptrdiff_t count = 1
    cdef int axis
    for axis in range(walk.ndim):
        count *= walk.shape[axis]
    return count


cdef void walk_to(walk_t *walk, ptrdiff_t place) noexcept nogil:
    """Go from the first element to the `place`-th."""
    cdef int axis, k
    for axis in range(walk.ndim - 1, -1, -1):
        walk.index[axis] = place % walk.shape[axis]
        place //= walk.shape[axis]
        for k in range(walk.operands):
            walk.data[k] += walk.index[axis] * walk.strides[k][axis]


cdef void walk_on(walk_t *walk) noexcept nogil:
    cdef int axis = walk.ndim - 1, k
    while axis >= 0:
        walk.index[axis] += 1
        for k in range(walk.operands):
            walk.data[k] += walk.strides[k][axis]
        if walk.index[axis] < walk.shape[axis]:
            return
        for k in range(walk.operands):
            walk.data[k] -= walk.shape[axis] * walk.strides[k][axis]
        walk.index[axis] = 0
        axis -= 1


cdef void walk_by(walk_t *walk, ptrdiff_t n) noexcept nogil:
    """Go on by `n` elements of the last dimension, at most to its end."""
    cdef int last = walk.ndim - 1, k
    walk.index[last] += n - 1
    for k in range(walk.operands):
        walk.data[k] += (n - 1) * walk.strides[k][last]
    walk_on(walk)


# --- Gathers --------------------------------------------------------------------------------------

cdef inline int64_t index_at(const char *place, int size) noexcept nogil:
    if size == 4:
        return (<const unaligned_int32 *>place)[0]
    return (<const unaligned_int64 *>place)[0]


cdef inline int64_t from_the_front(int64_t index, const opaque_state *state) noexcept nogil:
    """Negative indices count from the end where that is asked for; else they stay as they are."""
    return index + state.length if index < 0 and state.wraps else index


cdef inline bint gather_elements(const char *table, ptrdiff_t table_step, const char *index,
                                 ptrdiff_t index_step, bits_t *out, ptrdiff_t out_step,
                                 ptrdiff_t n, ptrdiff_t stride, const opaque_state *state,
                                 int64_t *bad) noexcept nogil:
    """Elements one by one, each by its own index; whether there were all of them."""
    cdef ptrdiff_t k
    cdef int64_t j, length = state.length
    cdef int index_size = state.index_size
    for k in range(n):
        j = from_the_front(index_at(index + k * index_step, index_size), state)
        if <uint64_t>j >= <uint64_t>length:
            bad[0] = index_at(index + k * index_step, index_size)
            return False
        (<bits_t *>(<char *>out + k * out_step))[0] = (
            <const bits_t *>(table + k * table_step + j * stride))[0]
    return True


cdef bint gather_line(const walk_t *walk, const array_view *views, int axis, ptrdiff_t stride,
                      const opaque_state *state, int64_t *bad) noexcept nogil:
    cdef ptrdiff_t step = 0 if axis == state.axis else views[0].strides[axis]
    cdef ptrdiff_t by = views[1].strides[axis], to = views[2].strides[axis]
    cdef ptrdiff_t n = views[2].shape[axis]
    if state.size == 1:
        return gather_elements(walk.data[0], step, walk.data[1], by, <uint8_t *>walk.data[2], to, n,
                               stride, state, bad)
    if state.size == 2:
        return gather_elements(walk.data[0], step, walk.data[1], by,
                               <unaligned_uint16 *>walk.data[2], to, n, stride, state, bad)
    if state.size == 4:
        return gather_elements(walk.data[0], step, walk.data[1], by,
                               <unaligned_uint32 *>walk.data[2], to, n, stride, state, bad)
    if state.size == 8:
        return gather_elements(walk.data[0], step, walk.data[1], by,
                               <unaligned_uint64 *>walk.data[2], to, n, stride, state, bad)
    return gather_elements(walk.data[0], step, walk.data[1], by, <unaligned_pair *>walk.data[2], to,
                           n, stride, state, bad)


cdef void merge_dims(walk_t *walk) noexcept nogil:
    """Make one dimension of neighbours that all operands walk through as one."""
    cdef int axis, k, to = 0
    cdef bint together
    for axis in range(1, walk.ndim):
        together = True
        for k in range(walk.operands):
            together &= walk.strides[k][to] == walk.shape[axis] * walk.strides[k][axis]
        if together:
            walk.shape[to] *= walk.shape[axis]
        else:
            to += 1
            walk.shape[to] = walk.shape[axis]
        for k in range(walk.operands):
            walk.strides[k][to] = walk.strides[k][axis]
    walk.ndim = min(walk.ndim, to + 1)


cdef void copy_piece(walk_t *piece, const char *source, char *target, int size) noexcept nogil:
    """What one index stands for: as many elements as the dimensions behind it have."""
    cdef int last = piece.ndim - 1
    cdef ptrdiff_t n = piece.shape[last]
    cdef ptrdiff_t lines, _k
    piece.data[0], piece.data[1] = <char *>source, target
    piece.ndim = last
    lines = elements_of(piece)
    walk_to(piece, 0)
    for _k in range(lines):
        copy_elements(piece.data[0], piece.strides[0][last], piece.data[1], piece.strides[1][last],
                      n, size)
        walk_on(piece)
    piece.ndim = last + 1


cdef int gather(const array_view *views, const void *given, const void *params, void *scratch,
                ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    cdef const opaque_state *state = <const opaque_state *>given
    cdef int behind = views[2].ndim, axis = state.axis
    cdef ptrdiff_t stride = views[0].strides[axis]
    cdef ptrdiff_t _k, end, lines
    cdef array_view[2] ends
    cdef walk_t walk, piece
    cdef int64_t j
    # One index for many elements: the dimensions behind the last one that it differs along.
    while behind - 1 > axis and (views[1].strides[behind - 1] == 0
                                 or views[2].shape[behind - 1] == 1):
        behind -= 1
    ends[0], ends[1] = views[0], views[2]
    walk_over(&piece, ends, 2, behind, views[2].ndim, -1)
    merge_dims(&piece)
    walk_over(&walk, views, 3, 0, behind if piece.ndim else behind - 1, -1)
    if axis < walk.ndim:
        walk.strides[0][axis] = 0
    lines = elements_of(&walk)
    end = lines * (chunk + 1) // chunks
    walk_to(&walk, lines * chunk // chunks)
    for _k in range(lines * chunk // chunks, end):
        if piece.ndim == 0:
            if not gather_line(&walk, views, behind - 1, stride, state, &context.detail):
                return OUT_OF_RANGE
        else:
            j = from_the_front(index_at(walk.data[1], state.index_size), state)
            if <uint64_t>j >= <uint64_t>state.length:
                context.detail = index_at(walk.data[1], state.index_size)
                return OUT_OF_RANGE
            copy_piece(&piece, walk.data[0] + j * stride, walk.data[2], state.size)
        walk_on(&walk)
    return 0


# --- Triangles ------------------------------------------------------------------------------------

cdef uint64_t[2] NOTHING  # no bit is set


cdef void copy_some(const array_view *views, const char *x, char *y, ptrdiff_t begin, ptrdiff_t end,
                    bint kept, int size) noexcept nogil:
    """Columns of a row, or zeros."""
    cdef ptrdiff_t from_step = views[0].strides[views[0].ndim - 1]
    cdef ptrdiff_t to_step = views[1].strides[views[1].ndim - 1]
    if begin >= end or (kept and x == y):
        return
    if kept:
        copy_elements(x + begin * from_step, from_step, y + begin * to_step, to_step, end - begin,
                      size)
    else:
        copy_elements(<const char *>NOTHING, 0, y + begin * to_step, to_step, end - begin, size)


cdef int triangle(const array_view *views, const void *given, const void *params, void *scratch,
                  ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    cdef const opaque_state *state = <const opaque_state *>given
    cdef int rank = views[1].ndim
    cdef ptrdiff_t cols = views[1].shape[rank - 1], rows = views[1].shape[rank - 2]
    cdef ptrdiff_t k, cut, lines, begin
    cdef walk_t walk
    walk_over(&walk, views, 2, 0, rank - 1, -1)
    lines = elements_of(&walk)
    begin = lines * chunk // chunks
    walk_to(&walk, begin)
    for k in range(begin, lines * (chunk + 1) // chunks):
        # Columns before it are on or below the diagonal; of triu, before the diagonal.
        cut = k % rows + state.diagonal + (1 if state.below else 0)
        cut = max(0, min(cut, cols))
        copy_some(views, walk.data[0], walk.data[1], 0, cut, state.below, state.size)
        copy_some(views, walk.data[0], walk.data[1], cut, cols, not state.below, state.size)
        walk_on(&walk)
    return 0


# --- Along an axis --------------------------------------------------------------------------------

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


cdef inline bint lies_across(const walk_t *walk, ptrdiff_t step) noexcept nogil:
    """Whether elements of neighbouring lines lie nearer to each other than those of a line."""
    cdef int last = walk.ndim - 1
    return (walk.ndim > 0 and walk.shape[last] > 1
            and llabs(walk.strides[0][last]) < llabs(step))


cdef int cumsum(const array_view *views, const void *given, const void *params, void *scratch,
                ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
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


cdef void cumsum_of_lines(walk_t *walk, const opaque_state *state, ptrdiff_t length,
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


cdef void cumsum_across(walk_t *walk, const opaque_state *state, ptrdiff_t length, ptrdiff_t step,
                        ptrdiff_t to, ptrdiff_t chunk, ptrdiff_t chunks) noexcept nogil:
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


cdef int search(const array_view *views, const opaque_state *state, ptrdiff_t chunk,
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


cdef int most(const array_view *views, const void *given, const void *params, void *scratch,
              ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    return search(views, <const opaque_state *>given, chunk, chunks, False)


cdef int place(const array_view *views, const void *given, const void *params, void *scratch,
               ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    return search(views, <const opaque_state *>given, chunk, chunks, True)


# --- Kernel references ----------------------------------------------------------------------------

cdef load_fn loader(str dtype) except NULL:
    """What converts elements to int64, or floating ones to double."""
    if dtype == "float32":
        return <load_fn>load[unaligned_float, unaligned_double]
    if dtype == "float64":
        return <load_fn>load[unaligned_double, unaligned_double]
    if dtype == "float16":
        return <load_fn>load[half_t, unaligned_double]
    if dtype == "bfloat16":
        return <load_fn>load[bfloat16_t, unaligned_double]
    if dtype == "int8":
        return <load_fn>load[int8_t, unaligned_int64]
    if dtype == "uint8":
        return <load_fn>load[uint8_t, unaligned_int64]
    if dtype == "int16":
        return <load_fn>load[unaligned_int16, unaligned_int64]
    if dtype == "int32":
        return <load_fn>load[unaligned_int32, unaligned_int64]
    if dtype == "int64":
        return <load_fn>load[unaligned_int64, unaligned_int64]
    if dtype == "bool":
        return <load_fn>load[bool_t, unaligned_int64]
    raise ValueError(f"no kernel along an axis computes in {dtype}")


cdef store_fn storer(str dtype) except NULL:
    if dtype == "float32":
        return <store_fn>store[unaligned_double, unaligned_float]
    if dtype == "float64":
        return <store_fn>store[unaligned_double, unaligned_double]
    if dtype == "float16":
        return <store_fn>store[unaligned_double, half_t]
    if dtype == "bfloat16":
        return <store_fn>store[unaligned_double, bfloat16_t]
    if dtype == "int8":
        return <store_fn>store[unaligned_int64, int8_t]
    if dtype == "uint8":
        return <store_fn>store[unaligned_int64, uint8_t]
    if dtype == "int16":
        return <store_fn>store[unaligned_int64, unaligned_int16]
    if dtype == "int32":
        return <store_fn>store[unaligned_int64, unaligned_int32]
    if dtype == "int64":
        return <store_fn>store[unaligned_int64, unaligned_int64]
    if dtype == "bool":
        return <store_fn>store[unaligned_int64, bool_t]
    raise ValueError(f"no kernel along an axis computes in {dtype}")


cdef size_t kernel_address(str name) except 0:
    if name == "gather":
        return <size_t><call_kernel>gather
    if name in ("tril", "triu"):
        return <size_t><call_kernel>triangle
    if name == "cumsum":
        return <size_t><call_kernel>cumsum
    return <size_t><call_kernel>(most if name == "most" else place)


cdef class OpaqueKernelRef:
    """A kernel made for certain dtypes; owns the state that its address stands for.

    Parameters
    ----------
    name : str
        One of `KERNELS`.
    in_dtypes : tuple of str
        Of the inputs.
    out_dtype : str
    elements : int
        How many are read or written, for its cost.
    lines : int
        Into how many chunks it may be cut.
    axis : int
        Along which it works.
    length : int
        Of the table along that axis: indices are less.
    diagonal : int
    wraps : bool
        Whether negative indices count from the end.
    loops : tuple of int
        Of cumsum: what `running_sums` gives for the dtype, if input and output have the same.
    """

    cdef readonly str name
    cdef readonly tuple itemsizes
    cdef readonly size_t fn
    cdef readonly double cost
    cdef Py_ssize_t lines
    cdef opaque_state kept

    prepare = 0
    params_size = 0

    def __cinit__(self, str name not None, tuple in_dtypes not None, str out_dtype not None, *,
                  Py_ssize_t elements, Py_ssize_t lines, int axis=0, int64_t length=0,
                  int64_t diagonal=0, bint wraps=False, tuple loops=(0, 0)):
        if name not in KERNELS:
            raise ValueError(f"no opaque kernel is called {name!r}, they are {', '.join(KERNELS)}")
        self.name = f"{name}[{','.join(in_dtypes)}->{out_dtype}]"
        self.itemsizes = tuple(ITEM_SIZES[dtype] for dtype in (*in_dtypes, out_dtype))
        self.fn, self.lines = kernel_address(name), lines
        self.kept.axis, self.kept.length, self.kept.diagonal = axis, length, diagonal
        self.kept.size = ITEM_SIZES[out_dtype]
        self.kept.wraps = wraps
        self.kept.below = name == "tril"
        self.kept.behind = <lines_fn><size_t>loops[0]
        self.kept.beside = <lines_fn><size_t>loops[1]
        self.cost = 0.3 * elements
        if name == "gather":
            self.kept.index_size = ITEM_SIZES[in_dtypes[1]]
        elif name in ("cumsum", "most", "place"):
            self.cost = 1.0 * elements
            self.kept.load, self.kept.store = loader(in_dtypes[0]), storer(out_dtype)
            self.kept.is_whole = in_dtypes[0] not in ("float32", "float64", "float16", "bfloat16")

    @property
    def state(self):
        return <size_t>&self.kept

    def chunks(self, threads):
        """Into how many calls the work is cut, for so many threads.

        Parameters
        ----------
        threads : int

        Returns
        -------
        int
        """
        return max(1, min(self.lines, threads))

    def failure(self, code, detail):
        """Why a run stopped in this kernel, or None where it does not know the code.

        Parameters
        ----------
        code, detail : int
            What the kernel gave.

        Returns
        -------
        str or None
        """
        if code != OUT_OF_RANGE:
            return None
        first = -self.kept.length if self.kept.wraps else 0
        return f"an index is {detail}, must be from {first} to {self.kept.length - 1}"

    def __repr__(self):
        return f"<OpaqueKernelRef {self.name}>"
