"""Kernels that write and read by indices, and make them.

==============  =============================  =======  ===========================================
kernel          inputs, in order               output   what it needs to know
==============  =============================  =======  ===========================================
scatter_along   base, index, source            base     the axis, how elements are combined
put_at          base, values, index for each   base     how elements are combined
take_at         table, index for each          values
one_hot_lines   index, on, off                 lines    the axis
class_indices   targets                        indices  how many classes there are, what is ignored
spread_counts   counts                         indices
ramp                                           numbers  the first, the step, the last
true_places     elements                       indices  their order, whether their number is known
masked_elements elements, mask                 elements
solve_triangle  right-hand side, matrix        unknown  which triangle, whether the diagonal is 1
==============  =============================  =======  ===========================================

The output may be in the place of a base: elements that no index names keep their value. All indices
are looked at before anything is written by one.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from aclnn.kernels.element cimport (
    bits_t,
    bool_t,
    copy_elements,
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
from aclnn.kernels.indices cimport index_at, is_within
from aclnn.kernels.lines cimport line_of, lines_in
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context

from aclnn.acl.dtypes import ITEM_SIZES

cdef enum:
    MOST_DIMS = 8
    OUT_OF_RANGE = 131
    WRONG_COUNT = 132
    NO_ROOM = 133
    NO_CLASS = 134
    COLUMNS = 32            # of right-hand sides that are solved together
    # How elements are combined.
    REPLACE = 0
    ADD = 1
    MULTIPLY = 2
    LARGER = 3
    SMALLER = 4

cdef struct line_t:
    # n elements of a source, and the places along an axis of a target that they are combined with.
    char *out
    ptrdiff_t step          # from one place along the axis to the next
    ptrdiff_t by            # from one element to the next
    const char *index
    ptrdiff_t index_by
    int index_size
    const char *source
    ptrdiff_t source_by
    ptrdiff_t n
    int64_t length          # of the axis: negative indices count from its end
    int how
    int size                # bytes of an element

ctypedef void (*combine_fn)(const line_t *line) noexcept nogil

# States of the kernels, and what they keep in scratch: made of the records.
include "indexing_states.pxi"

ctypedef fused summed_t:
    unaligned_float
    unaligned_double
    int8_t
    uint8_t
    unaligned_int16
    unaligned_int32
    unaligned_int64
    bool_t


ctypedef fused moved_t:
    unaligned_int16
    unaligned_int32


cdef inline summed_t combined(summed_t a, summed_t b, int how) noexcept nogil:
    """Truth values are added by or, and multiplied by and."""
    if summed_t is bool_t:
        if how == 1 or how == 3:
            a.truth |= b.truth
        else:
            a.truth &= b.truth
        return a
    elif summed_t is unaligned_float or summed_t is unaligned_double:
        if how == 1:
            return a + b
        if how == 2:
            return a * b
        if how == 3:
            return b if b > a or b != b else a
        return b if b < a or b != b else a
    else:
        if how == 1:
            return <summed_t>(<uint64_t>a + <uint64_t>b)
        if how == 2:
            return <summed_t>(<uint64_t>a * <uint64_t>b)
        if how == 3:
            return b if b > a else a
        return b if b < a else a


cdef inline char *target_of(const line_t *line, ptrdiff_t k) noexcept nogil:
    """Address of the place that the k-th index names, for the first element."""
    cdef int64_t i = index_at(line.index + k * line.index_by, line.index_size)
    return line.out + (i + line.length if i < 0 else i) * line.step


cdef inline bint has_one_index(const line_t *line) noexcept nogil:
    return line.index_by == 0 and line.by != 0


cdef inline void combine(const line_t *line, const summed_t *like) noexcept nogil:
    # Copies: what is written could lie in the description, for all that a compiler knows.
    cdef line_t own = line[0]
    cdef ptrdiff_t k, n
    cdef char *out
    cdef summed_t *target
    cdef const summed_t *values
    if not has_one_index(&own):
        for k in range(own.n):
            target = <summed_t *>(target_of(&own, k) + k * own.by)
            target[0] = combined(
                target[0], (<const summed_t *>(own.source + k * own.source_by))[0], own.how)
        return
    out = target_of(&own, 0)
    if own.by == sizeof(summed_t) and own.source_by == sizeof(summed_t) and own.how == 1:
        target, values, n = <summed_t *>out, <const summed_t *>own.source, own.n
        for k in range(n):
            target[k] = combined(target[k], values[k], 1)
        return
    for k in range(own.n):
        target = <summed_t *>(out + k * own.by)
        target[0] = combined(
            target[0], (<const summed_t *>(own.source + k * own.source_by))[0], own.how)


cdef inline void replace_each(const line_t *line, const moved_t *like) noexcept nogil:
    cdef line_t own = line[0]
    cdef ptrdiff_t k
    for k in range(own.n):
        (<moved_t *>(target_of(&own, k) + k * own.by))[0] = (
            <const moved_t *>(own.source + k * own.source_by))[0]


cdef void replace(const line_t *line) noexcept nogil:
    cdef ptrdiff_t k
    if has_one_index(line):
        copy_elements(line.source, line.source_by, target_of(line, 0), line.by, line.n, line.size)
    elif line.size == 4:
        replace_each(line, <const unaligned_int32 *>NULL)
    elif line.size == 2:
        replace_each(line, <const unaligned_int16 *>NULL)
    else:
        for k in range(line.n):
            copy_elements(line.source + k * line.source_by, 0, target_of(line, k) + k * line.by, 0,
                          1, line.size)


cdef void combine_float(const line_t *line) noexcept nogil:
    combine(line, <const unaligned_float *>NULL)


cdef void combine_double(const line_t *line) noexcept nogil:
    combine(line, <const unaligned_double *>NULL)


cdef void combine_int8(const line_t *line) noexcept nogil:
    combine(line, <const int8_t *>NULL)


cdef void combine_uint8(const line_t *line) noexcept nogil:
    combine(line, <const uint8_t *>NULL)


cdef void combine_int16(const line_t *line) noexcept nogil:
    combine(line, <const unaligned_int16 *>NULL)


cdef void combine_int32(const line_t *line) noexcept nogil:
    combine(line, <const unaligned_int32 *>NULL)


cdef void combine_int64(const line_t *line) noexcept nogil:
    combine(line, <const unaligned_int64 *>NULL)


cdef void combine_bool(const line_t *line) noexcept nogil:
    combine(line, <const bool_t *>NULL)


cdef combine_fn combiner(str dtype, int how) except NULL:
    if how == REPLACE:
        return replace
    if dtype == "float32":
        return combine_float
    if dtype == "float64":
        return combine_double
    if dtype == "int8":
        return combine_int8
    if dtype == "uint8":
        return combine_uint8
    if dtype == "int16":
        return combine_int16
    if dtype == "int32":
        return combine_int32
    if dtype == "int64":
        return combine_int64
    if dtype == "bool":
        return combine_bool
    raise ValueError(f"no kernel combines elements of {dtype}")


# --- Along an axis --------------------------------------------------------------------------------

cdef inline ptrdiff_t row_of(const ptrdiff_t *shape, int ndim, int axis, ptrdiff_t line,
                             ptrdiff_t *index) noexcept nogil:
    """The place of a line along each dimension but the axis."""
    cdef int k
    for k in range(ndim - 1, -1, -1):
        if k == axis:
            index[k] = 0
            continue
        index[k] = line % shape[k]
        line //= shape[k]
    return line


cdef inline char *at_place(const array_view *view, const ptrdiff_t *index) noexcept nogil:
    cdef char *found = view.data
    cdef int k
    for k in range(view.ndim):
        found += index[k] * view.strides[k]
    return found


cdef int check_scatter(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    cdef const scatter_state *state = <const scatter_state *>given
    cdef int64_t length = views[3].shape[state.axis]
    return 0 if is_within(&views[1], state.index_size, -length if state.wraps else 0, length,
                          chunk, chunks, &context.detail) else OUT_OF_RANGE


cdef int scatter_along(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    """Each chunk has its own lines along the axis; neighbours are taken together."""
    cdef const scatter_state *state = <const scatter_state *>given
    cdef const array_view *base = &views[0]
    cdef const array_view *index = &views[1]
    cdef const array_view *source = &views[2]
    cdef const array_view *out = &views[3]
    cdef int axis = state.axis, last = out.ndim - 1, k
    cdef int64_t length = out.shape[axis]
    cdef ptrdiff_t lines = lines_in(out.shape, out.ndim, axis), line, end, n, i, m
    cdef ptrdiff_t step = out.strides[axis]
    cdef ptrdiff_t[MOST_DIMS] place
    cdef bint across = axis != last and out.shape[last] > 1, inside
    cdef char *to
    cdef line_t part
    if not is_within(index, state.index_size, -length if state.wraps else 0, length, 0, 1,
                     &context.detail):
        return OUT_OF_RANGE
    line, end = lines * chunk // chunks, lines * (chunk + 1) // chunks
    while line < end:
        row_of(out.shape, out.ndim, axis, line, place)
        to = at_place(out, place)
        n = min(end - line, out.shape[last] - place[last]) if across else 1
        if base.data != out.data:
            if across:
                for i in range(length):
                    copy_elements(at_place(base, place) + i * base.strides[axis],
                                  base.strides[last], to + i * step, out.strides[last], n,
                                  state.size)
            else:
                copy_elements(at_place(base, place), base.strides[axis], to, step, length,
                              state.size)
        inside = True
        for k in range(out.ndim):
            inside &= k == axis or place[k] < index.shape[k]
        if inside and across:
            m = min(n, index.shape[last] - place[last])
            for i in range(index.shape[axis]):
                part = line_t(
                    out=to, step=step, by=out.strides[last],
                    index=at_place(index, place) + i * index.strides[axis],
                    index_by=index.strides[last], index_size=state.index_size,
                    source=at_place(source, place) + i * source.strides[axis],
                    source_by=source.strides[last], n=m, length=length, how=state.how,
                    size=state.size)
                state.combine(&part)
        elif inside:
            part = line_t(
                out=to, step=step, by=0, index=at_place(index, place),
                index_by=index.strides[axis], index_size=state.index_size,
                source=at_place(source, place), source_by=source.strides[axis],
                n=index.shape[axis], length=length, how=state.how, size=state.size)
            state.combine(&part)
        line += n
    return 0


# --- By an index for each of the first dimensions -------------------------------------------------

cdef inline ptrdiff_t elements_in(const array_view *view, int first) noexcept nogil:
    cdef ptrdiff_t count = 1
    cdef int k
    for k in range(first, view.ndim):
        count *= view.shape[k]
    return count


cdef inline bint find_piece(const pieces_state *state, const array_view *table,
                            const array_view *indices, ptrdiff_t place, ptrdiff_t *offset,
                            int64_t *bad) noexcept nogil:
    """Find the begin of what the indices at a place name."""
    cdef int64_t found
    cdef int k
    offset[0] = 0
    for k in range(state.indexed):
        found = index_at(line_of(&indices[k], indices[k].shape, indices[k].ndim, -1, place),
                         state.index_size)
        bad[0] = found
        if found < 0 and state.wraps:
            found += table.shape[k]
        if found < 0 or found >= table.shape[k]:
            return False
        offset[0] += found * table.strides[k]
    return True


cdef inline char *in_piece(const array_view *view, int first, ptrdiff_t line) noexcept nogil:
    """Begin of a line over the dimensions from the first, but for the last one."""
    cdef char *found = view.data
    cdef int k
    for k in range(view.ndim - 2, first - 1, -1):
        found += line % view.shape[k] * view.strides[k]
        line //= view.shape[k]
    return found


cdef inline int check_pieces(const pieces_state *state, const array_view *table,
                             const array_view *indices, ptrdiff_t chunk, ptrdiff_t chunks,
                             int64_t *bad) noexcept nogil:
    """A share of the indices of each dimension."""
    cdef int k
    cdef int64_t length
    for k in range(state.indexed):
        length = table.shape[k]
        if not is_within(&indices[k], state.index_size, -length if state.wraps else 0, length,
                         chunk, chunks, bad):
            return OUT_OF_RANGE
    return 0


cdef int check_put(const array_view *views, const void *given, const void *params, void *scratch,
                   ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    cdef const pieces_state *state = <const pieces_state *>given
    return check_pieces(state, &views[2 + state.indexed], &views[2], chunk, chunks,
                        &context.detail)


cdef int check_take(const array_view *views, const void *given, const void *params, void *scratch,
                    ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    return check_pieces(<const pieces_state *>given, &views[0], &views[1], chunk, chunks,
                        &context.detail)


cdef int put_at(const array_view *views, const void *given, const void *params, void *scratch,
                ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """Each chunk has its share of what the indices name, the last dimension as a whole."""
    cdef const pieces_state *state = <const pieces_state *>given
    cdef const array_view *base = &views[0]
    cdef const array_view *values = &views[1]
    cdef const array_view *indices = &views[2]
    cdef const array_view *out = &views[2 + state.indexed]
    cdef int first = state.indexed, rank = indices.ndim, last = out.ndim - 1
    cdef ptrdiff_t places = elements_in(indices, 0), place, offset, line, rows, i
    cdef ptrdiff_t n = out.shape[last] if last >= first else 1
    cdef ptrdiff_t by = out.strides[last] if last >= first else 0
    cdef ptrdiff_t lines = elements_in(out, first) // n if n else 0
    cdef ptrdiff_t begin = lines * chunk // chunks, end = lines * (chunk + 1) // chunks
    cdef int64_t zero = 0
    cdef const char *from_
    cdef line_t part
    if check_pieces(state, out, indices, 0, 1, &context.detail) != 0:
        return OUT_OF_RANGE
    if base.data != out.data:
        rows = 1
        for i in range(first):
            rows *= out.shape[i]
        for line in range(rows):
            for i in range(begin, end):
                copy_elements(
                    line_of(base, out.shape, first, -1, line)
                    + (in_piece(base, first, i) - base.data),
                    base.strides[last] if last >= first else 0,
                    line_of(out, out.shape, first, -1, line) + (in_piece(out, first, i) - out.data),
                    by, n, state.size)
    for place in range(places):
        find_piece(state, out, indices, place, &offset, &context.detail)
        for line in range(begin, end):
            from_ = line_of(values, values.shape, rank, -1, place)
            from_ += in_piece(values, rank, line) - values.data
            part = line_t(
                out=in_piece(out, first, line) + offset, step=0, by=by if by else 1,
                index=<const char *>&zero, index_by=0, index_size=8, source=from_,
                source_by=values.strides[values.ndim - 1] if last >= first else 0, n=n, length=1,
                how=state.how, size=state.size)
            state.combine(&part)
    return 0


cdef int take_at(const array_view *views, const void *given, const void *params, void *scratch,
                 ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    cdef const pieces_state *state = <const pieces_state *>given
    cdef const array_view *table = &views[0]
    cdef const array_view *indices = &views[1]
    cdef const array_view *out = &views[1 + state.indexed]
    cdef int first = state.indexed, rank = indices.ndim, last = table.ndim - 1
    cdef ptrdiff_t places = elements_in(indices, 0), place, offset, line
    cdef ptrdiff_t n = table.shape[last] if last >= first else 1
    cdef ptrdiff_t lines = elements_in(table, first) // n if n else 0
    for place in range(places * chunk // chunks, places * (chunk + 1) // chunks):
        if not find_piece(state, table, indices, place, &offset, &context.detail):
            return OUT_OF_RANGE
        for line in range(lines):
            copy_elements(in_piece(table, first, line) + offset,
                          table.strides[last] if last >= first else 0,
                          line_of(out, out.shape, rank, -1, place)
                          + (in_piece(out, rank, line) - out.data),
                          out.strides[out.ndim - 1] if last >= first else 0, n, state.size)
    return 0


# --- Lines with one element that is different -----------------------------------------------------

cdef int one_hot_lines(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    """The index has the shape of the result, with one element along the axis."""
    cdef const line_state *state = <const line_state *>given
    cdef const array_view *out = &views[3]
    cdef int axis = state.axis
    cdef ptrdiff_t lines = lines_in(out.shape, out.ndim, axis), line, n = out.shape[axis]
    cdef int64_t index
    cdef char *to
    for line in range(lines * chunk // chunks, lines * (chunk + 1) // chunks):
        to = line_of(out, out.shape, out.ndim, axis, line)
        copy_elements(views[2].data, 0, to, out.strides[axis], n, state.size)
        index = index_at(line_of(&views[0], out.shape, out.ndim, axis, line), state.index_size)
        if 0 <= index < n:
            copy_elements(views[1].data, 0, to + index * out.strides[axis], 0, 1, state.size)
    return 0


# --- Targets of losses ----------------------------------------------------------------------------

cdef inline int64_t target_at(const char *place, int size) noexcept nogil:
    return (<const uint8_t *>place)[0] if size == 1 else index_at(place, size)


cdef inline int walk_targets(const array_view *views, const class_state *state, bint writes,
                             ptrdiff_t chunk, ptrdiff_t chunks, int64_t *bad) noexcept nogil:
    """Look at a share of the targets, line by line; their indices are written where asked for."""
    cdef const array_view *targets = &views[0]
    cdef const array_view *out = &views[1]
    cdef int last = targets.ndim - 1
    cdef ptrdiff_t n = targets.shape[last], by = targets.strides[last], i
    cdef ptrdiff_t lines = lines_in(targets.shape, last, -1), line = 0, first = 0, end = n
    cdef const char *at
    cdef char *to
    cdef int64_t found
    if lines == 1:  # which is cut itself
        first, end = n * chunk // chunks, n * (chunk + 1) // chunks
    else:
        line, lines = lines * chunk // chunks, lines * (chunk + 1) // chunks
    while line < lines:
        at = line_of(targets, targets.shape, last, -1, line)
        to = line_of(out, out.shape, last, -1, line)
        for i in range(first, end):
            found = target_at(at + i * by, state.size)
            if found == state.ignored:
                found = 0
            elif found < 0 or found >= state.classes:
                bad[0] = found
                return NO_CLASS
            if writes:
                (<unaligned_int64 *>(to + i * out.strides[last]))[0] = found
        line += 1
    return 0


cdef int check_classes(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    return walk_targets(views, <const class_state *>given, False, chunk, chunks, &context.detail)


cdef int class_indices(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    """Each target is the index of its class; one that is ignored is 0."""
    return walk_targets(views, <const class_state *>given, True, chunk, chunks, &context.detail)


# --- Repetitions and ramps ------------------------------------------------------------------------

cdef int spread_counts(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    """Each index as often as its count says: one count may hold for all."""
    cdef const line_state *state = <const line_state *>given
    cdef const array_view *counts = &views[0]
    cdef const array_view *out = &views[1]
    cdef ptrdiff_t i, _k, place = 0, size = out.shape[0]
    cdef int64_t count
    cdef int64_t total = 0
    for i in range(counts.shape[0]):
        count = index_at(counts.data + i * counts.strides[0], state.index_size)
        if count < 0:
            context.detail = count
            return WRONG_COUNT
        total += count
        context.detail = total
        if total > size:
            return WRONG_COUNT
    if total != size:
        return WRONG_COUNT
    for i in range(counts.shape[0]):
        count = index_at(counts.data + i * counts.strides[0], state.index_size)
        for _k in range(count):
            if state.size == 4:
                (<unaligned_int32 *>(out.data + place * out.strides[0]))[0] = <int32_t>i
            else:
                (<unaligned_int64 *>(out.data + place * out.strides[0]))[0] = i
            place += 1
    return 0


cdef extern from "fma.h" nogil:
    double fused_multiply_add(double a, double b, double c)

cdef enum:
    RUN = 64                # of a ramp's numbers that are made together


cdef int ramp(const array_view *views, const void *given, const void *params,
              void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
              call_context *context) noexcept nogil:
    """Numbers that are a step apart, each rounded once; whole ones wrap around. From both ends: the
    second half is counted back from the last."""
    cdef const ramp_state *state = <const ramp_state *>given
    cdef const array_view *out = &views[0]
    cdef ptrdiff_t size = out.shape[0], begin, end = size * (chunk + 1) // chunks, count, k, i
    cdef ptrdiff_t half = size // 2 if state.from_both_ends else size
    cdef double[RUN] numbers
    cdef int64_t *whole = <int64_t *>numbers
    begin = size * chunk // chunks
    while begin < end:
        count = min(<ptrdiff_t>RUN, end - begin)
        for k in range(count):
            i = begin + k
            if state.is_whole:
                whole[k] = <int64_t>(<uint64_t>state.first + <uint64_t>i * <uint64_t>state.each)
            elif i < half:
                numbers[k] = fused_multiply_add(<double>i, state.step, state.start)
            else:
                numbers[k] = fused_multiply_add(-<double>(size - 1 - i), state.step,
                                                state.last)
        state.store(numbers, out.data + begin * out.strides[0], out.strides[0], count)
        begin += count
    return 0


# --- Elements that are true -----------------------------------------------------------------------

cdef inline ptrdiff_t count_in(const bits_t *like, const char *at, ptrdiff_t step, ptrdiff_t n,
                               uint64_t bits) noexcept nogil:
    cdef ptrdiff_t i, count = 0
    if bits_t is unaligned_pair:
        return 0
    elif step == sizeof(bits_t):
        for i in range(n):
            count += ((<const bits_t *>at)[i] & <bits_t>bits) != 0
        return count
    else:
        for i in range(n):
            count += ((<const bits_t *>(at + i * step))[0] & <bits_t>bits) != 0
        return count


cdef inline ptrdiff_t find_in(const bits_t *like, const char *at, ptrdiff_t step, ptrdiff_t n,
                              uint64_t bits, char *to, ptrdiff_t by, ptrdiff_t room) noexcept nogil:
    """Write the places of true elements, no more than there is room for; gives how many."""
    cdef ptrdiff_t i, count = 0
    if bits_t is unaligned_pair:
        return 0
    else:
        for i in range(n):
            if count == room:
                break
            (<unaligned_int64 *>(to + count * by))[0] = i
            count += ((<const bits_t *>(at + i * step))[0] & <bits_t>bits) != 0
        return count


cdef inline ptrdiff_t count_line(const truth_state *state, const char *at, ptrdiff_t step,
                                 ptrdiff_t n) noexcept nogil:
    if state.size == 1:
        return count_in(<const uint8_t *>NULL, at, step, n, state.bits)
    if state.size == 2:
        return count_in(<const unaligned_uint16 *>NULL, at, step, n, state.bits)
    if state.size == 4:
        return count_in(<const unaligned_uint32 *>NULL, at, step, n, state.bits)
    return count_in(<const unaligned_uint64 *>NULL, at, step, n, state.bits)


cdef inline ptrdiff_t find_line(const truth_state *state, const char *at, ptrdiff_t step,
                                ptrdiff_t n, char *to, ptrdiff_t by, ptrdiff_t room) noexcept nogil:
    if state.size == 1:
        return find_in(<const uint8_t *>NULL, at, step, n, state.bits, to, by, room)
    if state.size == 2:
        return find_in(<const unaligned_uint16 *>NULL, at, step, n, state.bits, to, by, room)
    if state.size == 4:
        return find_in(<const unaligned_uint32 *>NULL, at, step, n, state.bits, to, by, room)
    return find_in(<const unaligned_uint64 *>NULL, at, step, n, state.bits, to, by, room)


cdef inline ptrdiff_t count_true(const truth_state *state, const array_view *x) noexcept nogil:
    cdef int last = max(0, x.ndim - 1)
    cdef ptrdiff_t lines = lines_in(x.shape, last, -1), line, count = 0
    for line in range(lines):
        count += count_line(state, line_of(x, x.shape, last, -1, line),
                            x.strides[last] if x.ndim else 0, x.shape[last] if x.ndim else 1)
    return count


cdef inline void clear_from(const array_view *out, ptrdiff_t count, int size) noexcept nogil:
    cdef ptrdiff_t k
    for k in range(count, out.shape[0]):
        memset(out.data + k * out.strides[0], 0, size)


cdef int true_places(const array_view *views, const void *given, const void *params,
                     void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                     call_context *context) noexcept nogil:
    """The indices of each true element, in row-major order, without gaps from the begin on."""
    cdef const truth_state *state = <const truth_state *>given
    cdef const array_view *x = &views[0]
    cdef const array_view *out = &views[1]
    cdef const array_view *shape = &views[2]
    cdef int rank = x.ndim, last = max(0, x.ndim - 1), axis
    cdef ptrdiff_t count = count_true(state, x), lines = lines_in(x.shape, last, -1), line
    cdef ptrdiff_t by = out.strides[0], row, column, k = 0, found, i, rest
    cdef char *to
    context.detail = count
    if count * rank > out.shape[0] or (state.exact and count * rank != out.shape[0]):
        return WRONG_COUNT if state.exact else NO_ROOM
    if not state.exact:
        (<unaligned_int64 *>shape.data)[0] = count if state.by_rows else rank
        (<unaligned_int64 *>(shape.data + shape.strides[0]))[0] = rank if state.by_rows else count
    row = by * rank if state.by_rows else by
    column = by if state.by_rows else by * count
    for line in range(lines if rank else 0):
        if k == count:
            break
        to = out.data + k * row
        found = find_line(state, line_of(x, x.shape, last, -1, line), x.strides[last],
                          x.shape[last], to + last * column, row, count - k)
        rest = line
        for axis in range(last - 1, -1, -1):
            for i in range(found):
                (<unaligned_int64 *>(to + i * row + axis * column))[0] = rest % x.shape[axis]
            rest //= x.shape[axis]
        k += found
    if state.clears:
        clear_from(out, count * rank, 8)
    return 0


cdef inline ptrdiff_t move_true(const bits_t *like, const char *mask, ptrdiff_t mask_by,
                                const char *at, ptrdiff_t step, ptrdiff_t n, char *to,
                                ptrdiff_t by, ptrdiff_t room) noexcept nogil:
    cdef ptrdiff_t i, count = 0
    for i in range(n):
        if count == room:
            break
        (<bits_t *>(to + count * by))[0] = (<const bits_t *>(at + i * step))[0]
        count += mask[i * mask_by] != 0
    return count


cdef inline ptrdiff_t move_line(int size, const char *mask, ptrdiff_t mask_by, const char *at,
                                ptrdiff_t step, ptrdiff_t n, char *to, ptrdiff_t by,
                                ptrdiff_t room) noexcept nogil:
    if size == 1:
        return move_true(<const uint8_t *>NULL, mask, mask_by, at, step, n, to, by, room)
    if size == 2:
        return move_true(<const unaligned_uint16 *>NULL, mask, mask_by, at, step, n, to, by, room)
    if size == 4:
        return move_true(<const unaligned_uint32 *>NULL, mask, mask_by, at, step, n, to, by, room)
    if size == 8:
        return move_true(<const unaligned_uint64 *>NULL, mask, mask_by, at, step, n, to, by, room)
    return move_true(<const unaligned_pair *>NULL, mask, mask_by, at, step, n, to, by, room)


cdef int masked_elements(const array_view *views, const void *given, const void *params,
                         void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                         call_context *context) noexcept nogil:
    """Elements where the mask, of the same shape, is true, in row-major order."""
    cdef const truth_state *state = <const truth_state *>given
    cdef const array_view *x = &views[0]
    cdef const array_view *mask = &views[1]
    cdef const array_view *out = &views[2]
    cdef int last = max(0, x.ndim - 1)
    cdef ptrdiff_t count = count_true(state, mask), line, k = 0
    cdef ptrdiff_t lines = lines_in(x.shape, last, -1)
    context.detail = count
    if count > out.shape[0]:
        return NO_ROOM
    (<unaligned_int64 *>views[3].data)[0] = count
    for line in range(lines):
        if k == count:
            break
        k += move_line(
            state.moved, line_of(mask, mask.shape, last, -1, line),
            mask.strides[last] if mask.ndim else 0, line_of(x, x.shape, last, -1, line),
            x.strides[last] if x.ndim else 0, x.shape[last] if x.ndim else 1,
            out.data + k * out.strides[0], out.strides[0], count - k)
    if state.clears:
        clear_from(out, count, state.moved)
    return 0


# --- Triangles ------------------------------------------------------------------------------------

cdef int solve_triangle(const array_view *views, const void *given, const void *params,
                        void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                        call_context *context) noexcept nogil:
    """By substitution, in double: each unknown from those that are known."""
    cdef const solve_state *state = <const solve_state *>given
    cdef const array_view *right = &views[0]
    cdef const array_view *matrix = &views[1]
    cdef const array_view *out = &views[2]
    cdef int rank = out.ndim
    cdef ptrdiff_t n = out.shape[rank - 2], wide = out.shape[rank - 1]
    cdef ptrdiff_t blocks = (wide + COLUMNS - 1) // COLUMNS
    cdef ptrdiff_t work = lines_in(out.shape, rank - 2, -1) * blocks, one, r, i, k, j, first, count
    cdef solve_triangle_parts parts
    cdef double *row
    cdef double *x
    cdef double *known
    cdef double *line
    cdef double factor
    cdef char *b
    cdef char *a
    cdef char *to
    divide_solve_triangle(state, n, scratch, &parts)
    row, x = parts.row, parts.x
    for one in range(work * chunk // chunks, work * (chunk + 1) // chunks):
        first = one % blocks * COLUMNS
        count = min(<ptrdiff_t>COLUMNS, wide - first)
        b = line_of(right, out.shape, rank - 2, -1, one // blocks) + first * right.strides[rank - 1]
        a = line_of(matrix, out.shape, rank - 2, -1, one // blocks)
        to = line_of(out, out.shape, rank - 2, -1, one // blocks) + first * out.strides[rank - 1]
        for r in range(n):
            i = n - 1 - r if state.upper else r
            line = x + i * COLUMNS
            state.load(b + i * right.strides[rank - 2], right.strides[rank - 1], line, count)
            state.load(a + i * matrix.strides[rank - 2], matrix.strides[rank - 1], row, n)
            for k in range(i + 1 if state.upper else 0, n if state.upper else i):
                factor, known = row[k], x + k * COLUMNS
                for j in range(count):
                    line[j] -= factor * known[j]
            if not state.unit:
                for j in range(count):
                    line[j] /= row[i]
        for i in range(n):
            state.store(x + i * COLUMNS, to + i * out.strides[rank - 2], out.strides[rank - 1],
                        count)
    return 0


# --- Kernels of nodes --------------------------------------------------------------------------

cdef uint64_t counted_bits(str dtype) noexcept:
    """The bits of an element that tell whether it is true."""
    if "float" in dtype:
        return (<uint64_t>1 << (8 * <int>ITEM_SIZES[dtype] - 1)) - 1
    return <uint64_t>-1


# Made of the records: functions that pack the states.
include "indexing_nodes.pxi"
