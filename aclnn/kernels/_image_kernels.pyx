"""Kernels of images: maxima and means of windows, other sizes.

==============  ======  =================  ======================================================
kernel          inputs  output             what it needs to know
==============  ======  =================  ======================================================
window_maxima   planes  planes, [indices]  the windows
window_means    planes  planes             the windows, what counts as an element
resize_nearest  planes  planes             the step from one element to the next
resize_linear   planes  planes             the step, whether corners stay
==============  ======  =================  ======================================================

Operands have four dimensions and any strides. Each row of the result is made by itself, whichever
chunk makes it: rows of the operand are converted as a whole, combined column by column, and windows
then go along the result. Maxima are of floats where these hold all elements, means of doubles.
"""

from libc.math cimport floor, floorf
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from aclnn.kernels.element cimport (
    copy_elements,
    unaligned_int32,
    unaligned_int64,
)
from aclnn.kernels.instruction_sets cimport SETS_BUILT, take_set
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context

BUILT = SETS_BUILT  # a bit for each instruction set whose loops are here


def use(int number):
    """Use the loops of an instruction set, by its number, in this thread."""
    take_set(number)


ctypedef fused real:
    float
    double


cdef inline char *row_of(const array_view *view, ptrdiff_t plane, ptrdiff_t row) noexcept nogil:
    cdef ptrdiff_t channels = view.shape[1]
    return (view.data + plane // channels * view.strides[0] + plane % channels * view.strides[1]
            + row * view.strides[2])


# --- Windows --------------------------------------------------------------------------------------

# States of the kernels, and what they keep in scratch: made of the records.
include "image_states.pxi"


cdef struct window_t:
    ptrdiff_t first, last    # elements that there are, to what is behind them
    ptrdiff_t count          # with those of the margin


cdef inline window_t window_of(const windows_state *state, int axis, ptrdiff_t i, ptrdiff_t length,
                               ptrdiff_t results) noexcept nogil:
    cdef window_t window
    cdef ptrdiff_t first, last
    if state.size[axis] == 0:
        window.first = i * length // results
        window.last = ((i + 1) * length + results - 1) // results
        window.count = window.last - window.first
        return window
    first = i * state.step[axis] - state.before[axis]
    last = min(first + state.size[axis], length + state.after[axis])
    window.count = last - first
    window.first, window.last = max(first, <ptrdiff_t>0), min(last, length)
    return window


cdef inline void take_larger(real *most, const real *x, ptrdiff_t n) noexcept nogil:
    """A NaN wins."""
    cdef ptrdiff_t j
    for j in range(n):
        most[j] = x[j] if (x[j] > most[j]) | (x[j] != x[j]) else most[j]


cdef inline void take_larger_from(real *most, real *rows, const real *x, real row,
                                  ptrdiff_t n) noexcept nogil:
    """And note the row it is from, as a number of the same type."""
    cdef ptrdiff_t j
    cdef bint larger
    for j in range(n):
        larger = (x[j] > most[j]) | (x[j] != x[j])
        rows[j] = row if larger else rows[j]
        most[j] = x[j] if larger else most[j]


cdef inline void add_row(double *sum, const double *x, ptrdiff_t n) noexcept nogil:
    cdef ptrdiff_t j
    for j in range(n):
        sum[j] += x[j]


cdef inline ptrdiff_t regular(const windows_state *state, ptrdiff_t length, ptrdiff_t results,
                              ptrdiff_t *end) noexcept nogil:
    """The results whose windows have all their columns: from the one that is returned to `end`."""
    cdef ptrdiff_t size = state.size[1], step = state.step[1], before = state.before[1]
    cdef ptrdiff_t first = min(results, (before + step - 1) // step)
    end[0] = first
    if size == 0 or length < size:
        return first
    end[0] = max(first, min(results, (length - size + before) // step + 1))
    return first


cdef inline void largest_of(const real *x, ptrdiff_t step, ptrdiff_t size, real *out,
                            ptrdiff_t n) noexcept nogil:
    """Largest elements of `n` windows that are `step` apart, whose first begins at x."""
    cdef ptrdiff_t i, k
    cdef real one
    for k in range(size):
        for i in range(n):
            one = x[i * step + k]
            out[i] = one if (k == 0) | (one > out[i]) | (one != one) else out[i]


cdef inline void sums_of(const double *x, ptrdiff_t step, ptrdiff_t size, double *out,
                         ptrdiff_t n) noexcept nogil:
    cdef ptrdiff_t i, k
    for k in range(size):
        for i in range(n):
            out[i] = (0 if k == 0 else out[i]) + x[i * step + k]


cdef inline void find_windows(const windows_state *state, const real *most, ptrdiff_t length,
                              ptrdiff_t results, real *out) noexcept nogil:
    cdef ptrdiff_t i, j, end, first = regular(state, length, results, &end)
    cdef window_t window
    cdef real found, lowest = <real>-1 / <real>0
    end = max(end, first)
    for i in range(results):
        if first <= i < end:
            continue
        window = window_of(state, 1, i, length, results)
        found = lowest
        for j in range(window.first, window.last):
            found = most[j] if (most[j] > found) | (most[j] != most[j]) else found
        out[i] = found
    if first >= end:
        return
    most += first * state.step[1] - state.before[1]
    if state.step[1] == 1:
        largest_of(most, 1, state.size[1], out + first, end - first)
    elif state.step[1] == 2:
        largest_of(most, 2, state.size[1], out + first, end - first)
    else:
        largest_of(most, state.step[1], state.size[1], out + first, end - first)


cdef inline void add_windows(const windows_state *state, const double *sum, ptrdiff_t length,
                             ptrdiff_t results, const window_t *rows, double *out) noexcept nogil:
    """Means of the sums of columns."""
    cdef ptrdiff_t i, j, end, first = regular(state, length, results, &end)
    cdef double total, divisor
    cdef window_t window
    end = max(end, first)
    for i in range(results):
        if first <= i < end:
            continue
        window = window_of(state, 1, i, length, results)
        total = 0
        for j in range(window.first, window.last):
            total += sum[j]
        divisor = state.divisor
        if divisor == 0:
            divisor = (window.count * rows.count if state.counts_margin
                       else (window.last - window.first) * (rows.last - rows.first))
        out[i] = total / divisor if window.last > window.first else 0
    if first >= end:
        return
    sum += first * state.step[1] - state.before[1]
    if state.step[1] == 1:
        sums_of(sum, 1, state.size[1], out + first, end - first)
    elif state.step[1] == 2:
        sums_of(sum, 2, state.size[1], out + first, end - first)
    else:
        sums_of(sum, state.step[1], state.size[1], out + first, end - first)
    divisor = state.divisor
    if divisor == 0:
        divisor = state.size[1] * (rows.count if state.counts_margin else rows.last - rows.first)
    for i in range(first, end):
        out[i] = out[i] / divisor


cdef inline void put_index(char *place, int size, int64_t index) noexcept nogil:
    if size == 4:
        (<unaligned_int32 *>place)[0] = <int32_t>index
    else:
        (<unaligned_int64 *>place)[0] = index


cdef inline void find_places(const windows_state *state, const real *most, const real *rows,
                             ptrdiff_t length, ptrdiff_t results, ptrdiff_t first_row, real *out,
                             char *places, ptrdiff_t step) noexcept nogil:
    """Find places: of equal elements the first one of the window, of NaNs the last one."""
    cdef ptrdiff_t i, j
    cdef int64_t place, at
    cdef real found, one
    cdef window_t window
    for i in range(results):
        window = window_of(state, 1, i, length, results)
        found, place = <real>-1 / <real>0, first_row * length + window.first
        if window.first < window.last:
            found = most[window.first]
            place = <int64_t>rows[window.first] * length + window.first
        for j in range(window.first + 1, window.last):
            one, at = most[j], <int64_t>rows[j] * length + j
            if one > found or (one == found and at < place) or (
                    one != one and (found == found or at > place)):
                found, place = one, at
        out[i] = found
        put_index(places + i * step, state.index_size, place)


cdef inline void largest_rows(const array_view *views, const windows_state *state,
                              const window_maxima_parts *parts, ptrdiff_t begin, ptrdiff_t end,
                              real like) noexcept nogil:
    cdef const array_view *x = &views[0]
    cdef const array_view *out = &views[1]
    cdef ptrdiff_t width = x.shape[3], results = out.shape[3], line, row, j
    cdef real *most = <real *>parts.row
    cdef real *other = <real *>parts.other
    cdef real *rows = <real *>parts.rows
    cdef real *made = <real *>parts.made
    cdef window_t window
    cdef char *places
    for line in range(begin, end):
        window = window_of(state, 0, line % out.shape[2], x.shape[2], out.shape[2])
        for j in range(width if window.first >= window.last else 0):
            most[j] = <real>-1 / <real>0
        for row in range(window.first, window.last):
            state.load(row_of(x, line // out.shape[2], row), x.strides[3],
                       most if row == window.first else other, width)
            if row == window.first:
                for j in range(width if state.index_size else 0):
                    rows[j] = <real>row
            elif state.index_size:
                take_larger_from(most, rows, other, <real>row, width)
            else:
                take_larger(most, other, width)
        if state.index_size:
            places = row_of(&views[2], line // out.shape[2], line % out.shape[2])
            find_places(state, most, rows, width, results, window.first, made, places,
                        views[2].strides[3])
        else:
            find_windows(state, most, width, results, made)
        state.store(made, row_of(out, line // out.shape[2], line % out.shape[2]), out.strides[3],
                    results)


cdef void mean_rows(const array_view *views, const windows_state *state,
                    const window_means_parts *parts, ptrdiff_t begin, ptrdiff_t end) noexcept nogil:
    cdef const array_view *x = &views[0]
    cdef const array_view *out = &views[1]
    cdef ptrdiff_t width = x.shape[3], results = out.shape[3], line, row
    cdef double *sum = parts.row
    cdef double *other = parts.other
    cdef double *made = parts.made
    cdef window_t window
    for line in range(begin, end):
        window = window_of(state, 0, line % out.shape[2], x.shape[2], out.shape[2])
        if window.first >= window.last:
            memset(made, 0, results * sizeof(double))
        else:
            for row in range(window.first, window.last):
                state.load(row_of(x, line // out.shape[2], row), x.strides[3],
                           sum if row == window.first else other, width)
                if row > window.first:
                    add_row(sum, other, width)
            add_windows(state, sum, width, results, &window, made)
        state.store(made, row_of(out, line // out.shape[2], line % out.shape[2]), out.strides[3],
                    results)


cdef int window_maxima(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    cdef const windows_state *state = <const windows_state *>given
    cdef ptrdiff_t rows = views[1].shape[0] * views[1].shape[1] * views[1].shape[2]
    cdef window_maxima_parts parts
    divide_window_maxima(state, views[0].shape[3], views[1].shape[3], scratch, &parts)
    if state.wide:
        largest_rows(views, state, &parts, rows * chunk // chunks, rows * (chunk + 1) // chunks,
                     <double>0)
    else:
        largest_rows(views, state, &parts, rows * chunk // chunks, rows * (chunk + 1) // chunks,
                     <float>0)
    return 0


cdef int window_means(const array_view *views, const void *given, const void *params,
                      void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                      call_context *context) noexcept nogil:
    cdef ptrdiff_t rows = views[1].shape[0] * views[1].shape[1] * views[1].shape[2]
    cdef const windows_state *state = <const windows_state *>given
    cdef window_means_parts parts
    divide_window_means(state, views[0].shape[3], views[1].shape[3], scratch, &parts)
    mean_rows(views, state, &parts, rows * chunk // chunks, rows * (chunk + 1) // chunks)
    return 0


# --- Other sizes ----------------------------------------------------------------------------------

cdef inline ptrdiff_t nearest_of(const nearest_state *state, int axis, ptrdiff_t i,
                                 ptrdiff_t length) noexcept nogil:
    """In float32, as everywhere."""
    cdef float scale = <float>state.scale[axis], place = <float>i
    if state.exact:
        place = place + <float>0.5
    return min(<ptrdiff_t>floorf(place * scale), length - 1)


cdef inline ptrdiff_t place_of(const linear_state *state, int axis, ptrdiff_t i, ptrdiff_t length,
                               double *rest) noexcept nogil:
    """The element before a result, and how far behind it that is."""
    cdef double x = i * state.scale[axis]
    cdef ptrdiff_t first
    if not state.corners:
        x = max((i + 0.5) * state.scale[axis] - 0.5, 0.0)
    first = min(<ptrdiff_t>floor(x), length - 1)
    rest[0] = min(x - first, 1.0) if first + 1 < length else 0
    return first


cdef int resize_nearest(const array_view *views, const void *given, const void *params,
                        void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                        call_context *context) noexcept nogil:
    cdef const nearest_state *state = <const nearest_state *>given
    cdef const array_view *x = &views[0]
    cdef const array_view *out = &views[1]
    cdef ptrdiff_t rows = out.shape[0] * out.shape[1] * out.shape[2], width = out.shape[3]
    cdef ptrdiff_t line, i, plane, row, source, before = -1, plane_before = -1
    cdef resize_nearest_parts parts
    cdef const char *from_
    cdef char *to
    divide_resize_nearest(state, width, scratch, &parts)
    for i in range(width):
        parts.places[i] = nearest_of(state, 1, i, x.shape[3]) * x.strides[3]
    for line in range(rows * chunk // chunks, rows * (chunk + 1) // chunks):
        plane, row = line // out.shape[2], line % out.shape[2]
        source = nearest_of(state, 0, row, x.shape[2])
        to = row_of(out, plane, row)
        if plane == plane_before and source == before:
            copy_elements(row_of(out, plane, row - 1), out.strides[3], to, out.strides[3], width,
                          state.size)
            continue
        before, plane_before, from_ = source, plane, row_of(x, plane, source)
        pick(from_, parts.places, to, out.strides[3], width, state.size)
    return 0


cdef inline void pick(const char *from_, const ptrdiff_t *places, char *to, ptrdiff_t step,
                      ptrdiff_t n, int size) noexcept nogil:
    cdef ptrdiff_t i
    if size == 4 and step == 4:
        for i in range(n):
            (<unaligned_int32 *>to)[i] = (<const unaligned_int32 *>(from_ + places[i]))[0]
        return
    for i in range(n):
        copy_elements(from_ + places[i], 0, to + i * step, 0, 1, size)


cdef int resize_linear(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    """Rows are blended first, then columns."""
    cdef const linear_state *state = <const linear_state *>given
    cdef const array_view *x = &views[0]
    cdef const array_view *out = &views[1]
    cdef ptrdiff_t rows = out.shape[0] * out.shape[1] * out.shape[2], width = out.shape[3]
    cdef ptrdiff_t own = x.shape[3], line, i, j, plane, row, source, kept = -1
    cdef resize_linear_parts parts
    cdef int32_t *columns
    cdef double *rests
    cdef double *made
    cdef double *upper
    cdef double *lower
    cdef double *both
    cdef double *other
    cdef double rest
    divide_resize_linear(state, width, own, scratch, &parts)
    columns, rests, made = parts.columns, parts.rests, parts.made
    upper, lower, both = parts.upper, parts.lower, parts.both
    for i in range(width):
        columns[i] = <int32_t>place_of(state, 1, i, own, &rests[i])
    for line in range(rows * chunk // chunks, rows * (chunk + 1) // chunks):
        plane, row = line // out.shape[2], line % out.shape[2]
        source = place_of(state, 0, row, x.shape[2], &rest)
        j = plane * x.shape[2] + source
        if kept != j:
            if kept + 1 == j and source > 0:  # what was below is above now
                other = upper
                upper, lower = lower, other
            else:
                state.load(row_of(x, plane, source), x.strides[3], upper, own)
            state.load(row_of(x, plane, min(source + 1, x.shape[2] - 1)), x.strides[3], lower, own)
            kept = j
        for i in range(own):
            both[i] = upper[i] + rest * (lower[i] - upper[i]) if rest != 0 else upper[i]
        both[own] = both[own - 1]
        for i in range(width):
            made[i] = both[columns[i]]
            made[i] = (made[i] + rests[i] * (both[columns[i] + 1] - made[i]) if rests[i] != 0
                       else made[i])
        state.store(made, row_of(out, plane, row), out.strides[3], width)
    return 0


# --- Kernels of nodes -----------------------------------------------------------------------------

# Made of the records: functions that pack the states.
include "image_nodes.pxi"
