"""Kernels of key-value caches: rows of tokens written into blocks of a cache, and read out of them.

============= ===================================== ======= =======================================
kernel        inputs, in order                      output  what it needs to know
============= ===================================== ======= =======================================
scatter_rows  cache, rows, index                    cache   the slot axis, how the index counts
gather_pages  rows, cache, table, lengths, [first]  rows    the slot axis, whether lengths add up
============= ===================================== ======= =======================================

A cache has blocks along its first axis, and slots of a block along another; what is left are the
axes of a row; without blocks, slots may lie along any axis. The output is the first input, in whose
place it may be: elements that no index names keep their value. An index is looked at before
anything is read or written by it; negative ones are skipped.
"""

from libc.stdint cimport int64_t

from aclnn.kernels.element cimport copy_elements, unaligned_int32, unaligned_int64
from aclnn.kernels.lines cimport line_of, lines_in
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context

cdef enum:
    MOST_DIMS = 8
    BAD_SLOT = 121
    BAD_BLOCK = 122
    BAD_LENGTH = 123
    # What indices count: slots of all blocks, those of a batch's own, or, one for each block of
    # tokens, blocks; or the cache has none.
    SLOTS = 0
    POSITIONS = 1
    BLOCKS = 2
    WITHOUT_BLOCKS = 3

# The state of the kernels: made of the records.
include "cache_states.pxi"

cdef struct rows_t:
    # The axes of a row in two tensors: neighbours that lie together in both are one.
    int ndim
    ptrdiff_t[MOST_DIMS] shape
    ptrdiff_t[MOST_DIMS] cache
    ptrdiff_t[MOST_DIMS] rows


cdef void describe_rows(const array_view *cache, const array_view *rows, int slot_axis,
                        bint blocks, rows_t *row) noexcept nogil:
    cdef int axis, at = 1, last
    row.ndim = 0
    for axis in range(1 if blocks else 0, cache.ndim):
        if axis == slot_axis:
            continue
        last = row.ndim - 1
        if (last >= 0 and row.cache[last] == cache.shape[axis] * cache.strides[axis]
                and row.rows[last] == rows.shape[at] * rows.strides[at]):
            row.shape[last] *= cache.shape[axis]
            row.cache[last], row.rows[last] = cache.strides[axis], rows.strides[at]
        else:
            row.shape[row.ndim] = cache.shape[axis]
            row.cache[row.ndim], row.rows[row.ndim] = cache.strides[axis], rows.strides[at]
            row.ndim += 1
        at += 1


cdef void copy_row(const rows_t *row, char *cache, char *other, int size,
                   bint into) noexcept nogil:
    """A row into the cache, or out of it."""
    cdef ptrdiff_t count = 1, i, place
    cdef int last = row.ndim - 1, axis
    cdef char *a
    cdef char *b
    if row.ndim == 0:  # of one element
        copy_elements(other if into else cache, 0, cache if into else other, 0, 1, size)
        return
    for axis in range(last):
        count *= row.shape[axis]
    for i in range(count):
        a, b, place = cache, other, i
        for axis in range(last - 1, -1, -1):
            a += place % row.shape[axis] * row.cache[axis]
            b += place % row.shape[axis] * row.rows[axis]
            place //= row.shape[axis]
        if into:
            copy_elements(b, row.rows[last], a, row.cache[last], row.shape[last], size)
        else:
            copy_elements(a, row.cache[last], b, row.rows[last], row.shape[last], size)


cdef inline int64_t index_of(const char *place, int size) noexcept nogil:
    if size == 4:
        return (<const unaligned_int32 *>place)[0]
    return (<const unaligned_int64 *>place)[0]


cdef void copy_lines(const array_view *from_, const array_view *to, int size, ptrdiff_t chunk,
                     ptrdiff_t chunks) noexcept nogil:
    """A share of the first axis, unless both are one tensor."""
    cdef int last = to.ndim - 1
    cdef ptrdiff_t lines, line
    if from_.data == to.data:
        return
    lines = lines_in(to.shape + 1, last - 1, -1) if last > 0 else 1
    for line in range(to.shape[0] * chunk // chunks * lines,
                      to.shape[0] * (chunk + 1) // chunks * lines):
        copy_elements(line_of(from_, to.shape, last, -1, line), from_.strides[last],
                      line_of(to, to.shape, last, -1, line), to.strides[last], to.shape[last], size)


cdef bint find_slot(const cache_state *state, const array_view *cache, const array_view *index,
                    ptrdiff_t token, ptrdiff_t *block, ptrdiff_t *slot,
                    int64_t *found) noexcept nogil:
    """Slot of a token: whether it is within the cache, or negative and skipped."""
    cdef ptrdiff_t size = cache.shape[state.slot_axis], place = token
    if state.counts == 2:  # one for each block of tokens
        place = (token // state.sequence * ((state.sequence + size - 1) // size)
                 + token % state.sequence // size)
    found[0] = index_of(index.data + place * index.strides[0], state.index_size)
    if found[0] < 0:
        return not state.strict
    if state.counts == 3:
        block[0], slot[0] = 0, found[0]
        return found[0] < size
    block[0], slot[0] = found[0] // size, found[0] % size
    if state.counts == 1:
        block[0], slot[0] = token // state.sequence, found[0]
        return found[0] < size
    if state.counts == 2:
        slot[0] = token % state.sequence % size
    return block[0] < cache.shape[0]


cdef int check_slots(const array_view *views, const void *given, const void *params, void *scratch,
                     ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """A share of the tokens' slots."""
    cdef const cache_state *state = <const cache_state *>given
    cdef ptrdiff_t tokens = views[1].shape[0], token, block = 0, slot = 0
    cdef int64_t found
    for token in range(tokens * chunk // chunks, tokens * (chunk + 1) // chunks):
        if not find_slot(state, &views[3], &views[2], token, &block, &slot, &found):
            context.detail = found
            return BAD_SLOT
    return 0


cdef int scatter_rows(const array_view *views, const void *given, const void *params, void *scratch,
                      ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """Each chunk writes its own blocks, of which it has looked at all indices."""
    cdef const cache_state *state = <const cache_state *>given
    cdef const array_view *rows = &views[1]
    cdef const array_view *index = &views[2]
    cdef const array_view *out = &views[3]
    cdef ptrdiff_t first = out.shape[0] * chunk // chunks
    cdef ptrdiff_t last = out.shape[0] * (chunk + 1) // chunks
    cdef ptrdiff_t token, block = 0, slot = 0
    cdef int64_t found
    cdef rows_t row
    if check_slots(views, given, params, scratch, 0, 1, context) != 0:
        return BAD_SLOT
    copy_lines(&views[0], out, state.size, chunk, chunks)
    describe_rows(out, rows, state.slot_axis, state.counts != 3, &row)
    for token in range(rows.shape[0]):
        find_slot(state, out, index, token, &block, &slot, &found)
        if found >= 0 and first <= block < last:
            copy_row(&row, out.data + block * out.strides[0] + slot * out.strides[state.slot_axis],
                     rows.data + token * rows.strides[0], state.size, True)
    return 0


cdef int check_pages(const array_view *views, const void *given, const void *params, void *scratch,
                     ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    return take_pages(views, <const cache_state *>given, False, chunk, chunks, &context.detail)


cdef int gather_pages(const array_view *views, const void *given, const void *params, void *scratch,
                      ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """Each chunk reads its own rows."""
    return take_pages(views, <const cache_state *>given, True, chunk, chunks, &context.detail)


cdef int take_pages(const array_view *views, const cache_state *state, bint writes, ptrdiff_t chunk,
                    ptrdiff_t chunks, int64_t *detail) noexcept nogil:
    """Look at the lengths and a share of the pages; copy their rows, if `writes`."""
    cdef const array_view *cache = &views[1]
    cdef const array_view *table = &views[2]
    cdef const array_view *lengths = &views[3]
    cdef const array_view *first = &views[4]
    cdef const array_view *out = &views[5 if state.has_first else 4]
    cdef ptrdiff_t size = cache.shape[state.slot_axis], rows = out.shape[0]
    cdef ptrdiff_t begin = rows * chunk // chunks, end = rows * (chunk + 1) // chunks
    cdef ptrdiff_t batch, j, total = 0, page
    cdef int64_t length, before, block
    cdef rows_t row
    if writes:
        copy_lines(&views[0], out, state.size, chunk, chunks)
        describe_rows(cache, out, state.slot_axis, True, &row)
    for batch in range(table.shape[0]):
        if state.adds_up:
            before = index_of(lengths.data + batch * lengths.strides[0], state.index_size)
            length = index_of(lengths.data + (batch + 1) * lengths.strides[0], state.index_size)
            length -= before
        else:
            length = index_of(lengths.data + batch * lengths.strides[0], state.index_size)
        page = 0
        if state.has_first:
            page = index_of(first.data + batch * first.strides[0], state.index_size) // size
        if length < 0 or length > rows - total or page < 0 or (
                page + (length + size - 1) // size > table.shape[1]):
            detail[0] = total + length
            return BAD_LENGTH
        for j in range(max(begin - total, <ptrdiff_t>0), min(end - total, <ptrdiff_t>length)):
            block = index_of(table.data + batch * table.strides[0]
                             + (page + j // size) * table.strides[1], state.index_size)
            if block < 0 or block >= cache.shape[0]:
                detail[0] = block
                return BAD_BLOCK
            if not writes:
                continue
            copy_row(&row, cache.data + block * cache.strides[0]
                     + j % size * cache.strides[state.slot_axis],
                     out.data + (total + j) * out.strides[0], state.size, False)
        total += length
    return 0


# --- Kernels of nodes --------------------------------------------------------------------------

# Made of the records: functions that pack the states.
include "cache_nodes.pxi"
