"""Kernels of mixtures of experts: the experts of each token, the order of tokens, and their sums.

=========== ======================================== ==================================== =========
kernel      inputs, in order                         outputs, in order                    numbers
=========== ======================================== ==================================== =========
gate        x, [bias], [finished]                    y, experts, [rows], [normalized]     factor,
                                                                                          eps
route       ids                                      positions, sources, [counts]
take_rows   x, sources                               y
combine     rows, index, [scales], [x1], [x2],       y
            [bias], [experts]
=========== ======================================== ==================================== =========

Operands in brackets may be absent. Experts are ranked by what they get, of equal ones the first
goes first; a NaN counts as the largest. An index is looked at before anything is read by it.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from aclnn.kernels.element cimport (
    copy_elements,
    unaligned_float,
    unaligned_int32,
    unaligned_int64,
)
from aclnn.kernels.sorts cimport sorted_keys
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context, kernel_number

cdef extern from "double_math.h" nogil:
    double full_exp(double) noexcept

cdef enum:
    BLOCK = 256
    BAD_EXPERT = 131
    BAD_ROW = 132
    SOFTMAX = 0             # what is made of x
    SIGMOID = 1
    CHOSEN = 2
    UNCOUNTED = 0           # what counts are; else plain ones
    CUMULATIVE = 1

# States of the kernels, and what they keep in scratch: made of the records.
include "expert_states.pxi"


# --- Gates ----------------------------------------------------------------------------------------

cdef inline bint is_ahead(float a, float b) noexcept nogil:
    """Whether `a` is the larger, NaN being the largest."""
    return a > b or (a != a and b == b)


cdef void normalize(float *x, ptrdiff_t n, int norm) noexcept nogil:
    cdef double total = 0, most = -INFINITY
    cdef ptrdiff_t i
    if norm == SIGMOID:
        for i in range(n):
            x[i] = <float>(1 / (1 + full_exp(-<double>x[i])))
        return
    for i in range(n):
        if x[i] > most or x[i] != x[i]:
            most = x[i]
    for i in range(n):
        total += full_exp(x[i] - most)
    for i in range(n):
        x[i] = <float>(full_exp(x[i] - most) / total)


cdef void hide_groups(float *x, ptrdiff_t n, const gate_state *state, float *scores) noexcept nogil:
    """Leave the best groups of experts, the others get minus infinity."""
    cdef ptrdiff_t size = n // state.groups, g, i, rank, other
    cdef float first, second
    for g in range(state.groups):
        first = second = -INFINITY
        for i in range(g * size, (g + 1) * size):
            if is_ahead(x[i], first):
                first, second = x[i], first
            elif is_ahead(x[i], second):
                second = x[i]
        scores[g] = first + second if state.by_two else first
    for g in range(state.groups):
        rank = 0
        for other in range(state.groups):
            if is_ahead(scores[other], scores[g]) or (
                    other < g and not is_ahead(scores[g], scores[other])):
                rank += 1
        if rank >= state.kept:
            for i in range(g * size, (g + 1) * size):
                x[i] = -INFINITY


cdef void choose(float *x, ptrdiff_t n, ptrdiff_t k, uint8_t *taken,
                 int32_t *chosen) noexcept nogil:
    """The `k` largest in descending order."""
    cdef ptrdiff_t i, j, best
    memset(taken, 0, n)
    for j in range(k):
        best = -1
        for i in range(n):
            if not taken[i] and (best < 0 or is_ahead(x[i], x[best])):
                best = i
        taken[best] = 1
        chosen[j] = <int32_t>best


cdef int gate(const array_view *views, const void *given, const void *params, void *scratch,
              ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    cdef const gate_state *state = <const gate_state *>given
    cdef const kernel_number *numbers = <const kernel_number *>params
    cdef const array_view *x = &views[0]
    cdef const array_view *view
    cdef ptrdiff_t n = x.shape[1], rows = x.shape[0], row, i, j, k = state.k
    cdef gate_parts parts
    cdef float *values
    cdef float *ranked
    cdef float *made
    cdef int32_t *chosen
    cdef float[BLOCK] bias
    cdef bint finished = False
    cdef double total
    cdef char *at
    divide_gate(state, n, scratch, &parts)
    values, ranked, made, chosen = parts.values, parts.ranked, parts.made, parts.chosen
    for row in range(rows * chunk // chunks, rows * (chunk + 1) // chunks):
        state.load(x.data + row * x.strides[0], x.strides[1], values, n)
        if state.norm != CHOSEN:
            normalize(values, n, state.norm)
        for i in range(n):
            ranked[i] = values[i]
        if state.bias >= 0:
            view = &views[state.bias]
            i = 0
            while i < n:
                j = min(<ptrdiff_t>BLOCK, n - i)
                state.load_bias(view.data + i * view.strides[0], view.strides[0], bias, j)
                for j in range(j):
                    ranked[i + j] = values[i + j] + bias[j]
                i += BLOCK
        if state.groups > 1:
            hide_groups(ranked, n, state, parts.groups)
        choose(ranked, n, k, parts.taken, chosen)
        for j in range(k):
            made[j] = values[chosen[j]]
        if state.norm == CHOSEN:
            normalize(made, k, SOFTMAX)
        if state.divides:
            total = 0
            for j in range(k):
                total += made[j]
            for j in range(k):
                made[j] = <float>(made[j] / (total + numbers[1].real))
        for j in range(k):
            made[j] = <float>(made[j] * numbers[0].real)
        view = &views[state.result]
        state.store(made, view.data + row * view.strides[0], view.strides[1], k)
        if state.finished >= 0:
            finished = (<const uint8_t *>(views[state.finished].data
                                          + row * views[state.finished].strides[0]))[0] != 0
        view = &views[state.experts]
        for j in range(k):
            (<unaligned_int32 *>(view.data + row * view.strides[0] + j * view.strides[1]))[0] = (
                <int32_t>n if finished else chosen[j])
        if state.rows >= 0:
            view = &views[state.rows]
            for j in range(k):
                at = view.data + row * view.strides[0] + j * view.strides[1]
                (<unaligned_int32 *>at)[0] = <int32_t>(j * rows + row)
        if state.normalized >= 0:
            view = &views[state.normalized]
            for i in range(n):
                at = view.data + row * view.strides[0] + i * view.strides[1]
                (<unaligned_float *>at)[0] = values[i]
    return 0


# --- The order of tokens --------------------------------------------------------------------------

cdef inline int64_t id_at(const array_view *ids, ptrdiff_t i, int size) noexcept nogil:
    cdef const char *place = ids.data + i * ids.strides[0]
    if size == 4:
        return (<const unaligned_int32 *>place)[0]
    return (<const unaligned_int64 *>place)[0]


cdef void count_ids(const array_view *ids, const route_state *state, const array_view *out,
                    ptrdiff_t n) noexcept nogil:
    cdef ptrdiff_t i, e
    cdef int32_t total = 0
    cdef char *place
    for e in range(out.shape[0]):
        (<unaligned_int32 *>(out.data + e * out.strides[0]))[0] = 0
    for i in range(n):
        place = out.data + id_at(ids, i, state.index_size) * out.strides[0]
        (<unaligned_int32 *>place)[0] += 1
    if state.counting == CUMULATIVE:
        for e in range(out.shape[0]):
            place = out.data + e * out.strides[0]
            total += (<unaligned_int32 *>place)[0]
            (<unaligned_int32 *>place)[0] = total


cdef int route(const array_view *views, const void *given, const void *params, void *scratch,
               ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """A stable sort by expert: where each place goes, and which token each row is of."""
    cdef const route_state *state = <const route_state *>given
    cdef const array_view *ids = &views[0]
    cdef const array_view *positions = &views[1]
    cdef const array_view *sources = &views[2]
    cdef ptrdiff_t n = ids.shape[0], rows = sources.shape[0], i, place, at = 0
    cdef route_parts parts
    cdef uint64_t *room
    cdef uint64_t *keys
    cdef int64_t id_, most = state.experts if state.experts else 1ll << 31, before = -1
    divide_route(state, n, scratch, &parts)
    room = parts.keys
    for i in range(n):
        id_ = id_at(ids, i, state.index_size)
        if id_ < 0 or id_ >= most:
            context.detail = id_
            return BAD_EXPERT
        room[i] = (<uint64_t>id_ << 32) | <uint64_t>i
    keys = sorted_keys(room, room + n, n, 32, parts.counts) if n else room
    if state.capacity:
        for i in range(rows):
            (<unaligned_int32 *>(sources.data + i * sources.strides[0]))[0] = -1
    for i in range(n):
        place = i
        if state.capacity:
            id_ = keys[i] >> 32
            at = at + 1 if id_ == before else 0
            before = id_
            place = id_ * state.capacity + at if at < state.capacity else -1
        (<unaligned_int32 *>(positions.data
                             + <int64_t>(keys[i] & 0xFFFFFFFFu) * positions.strides[0]))[0] = (
            <int32_t>place)
        if 0 <= place < rows:
            (<unaligned_int32 *>(sources.data + place * sources.strides[0]))[0] = (
                <int32_t>(<int64_t>(keys[i] & 0xFFFFFFFFu) // state.each))
    if state.counting != UNCOUNTED:
        count_ids(ids, state, &views[3], n)
    return 0


cdef int take_rows(const array_view *views, const void *given, const void *params, void *scratch,
                   ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """Rows by their numbers; of a negative one zeros."""
    cdef const rows_state *state = <const rows_state *>given
    cdef const array_view *x = &views[0]
    cdef const array_view *out = &views[2]
    cdef ptrdiff_t rows = out.shape[0], row, source, i
    cdef char *to
    for row in range(rows * chunk // chunks, rows * (chunk + 1) // chunks):
        source = (<const unaligned_int32 *>(views[1].data + row * views[1].strides[0]))[0]
        to = out.data + row * out.strides[0]
        if 0 <= source < x.shape[0]:
            copy_elements(x.data + source * x.strides[0], x.strides[1], to, out.strides[1],
                          out.shape[1], state.size)
            continue
        for i in range(out.shape[1]):
            memset(to + i * out.strides[1], 0, state.size)
    return 0


# --- Sums -----------------------------------------------------------------------------------------

cdef inline void add_scaled(float *sums, const float *x, float factor, ptrdiff_t n) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        sums[i] = sums[i] + x[i] * factor


cdef void start_sum(const array_view *views, const combine_state *state, ptrdiff_t row,
                    ptrdiff_t first, float *sums, float *block, ptrdiff_t n) noexcept nogil:
    cdef const array_view *view
    memset(sums, 0, n * sizeof(float))
    if state.x1 >= 0:
        view = &views[state.x1]
        state.load(view.data + row * view.strides[0] + first * view.strides[1], view.strides[1],
                   sums, n)
    if state.x2 >= 0:
        view = &views[state.x2]
        state.load(view.data + row * view.strides[0] + first * view.strides[1], view.strides[1],
                   block, n)
        add_scaled(sums, block, 1, n)


cdef inline int64_t source_of(const array_view *index, const combine_state *state, ptrdiff_t count,
                              ptrdiff_t row, ptrdiff_t j) noexcept nogil:
    """The j-th row that is added to one."""
    cdef ptrdiff_t i = j * count + row if state.by_columns else row * state.each + j
    return (<const unaligned_int32 *>(index.data + i * index.strides[0]))[0]


cdef inline bint is_dropped(int64_t source, const array_view *rows,
                            const combine_state *state) noexcept nogil:
    return source >= rows.shape[0] or (source == -1 and state.drops)


cdef inline int64_t expert_of(const array_view *experts, ptrdiff_t row, ptrdiff_t j) noexcept nogil:
    return (<const unaligned_int32 *>(experts.data + row * experts.strides[0]
                                      + j * experts.strides[1]))[0]


cdef int check_combine(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    """Rows and experts of a share of the results."""
    cdef const combine_state *state = <const combine_state *>given
    cdef ptrdiff_t count = views[state.result].shape[0], row, j
    cdef int64_t source, expert
    for row in range(count * chunk // chunks, count * (chunk + 1) // chunks):
        for j in range(state.each):
            source = source_of(&views[1], state, count, row, j)
            if is_dropped(source, &views[0], state):
                continue
            if source < 0:
                context.detail = source
                return BAD_ROW
            if state.bias < 0:
                continue
            expert = expert_of(&views[state.experts], row, j)
            if expert < 0 or expert >= views[state.bias].shape[0]:
                context.detail = expert
                return BAD_EXPERT
    return 0


cdef int combine(const array_view *views, const void *given, const void *params, void *scratch,
                 ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    cdef const combine_state *state = <const combine_state *>given
    cdef const array_view *rows = &views[0]
    cdef const array_view *index = &views[1]
    cdef const array_view *out = &views[state.result]
    cdef const array_view *view
    cdef ptrdiff_t count = out.shape[0], row, j, first, n
    cdef int64_t source, expert = 0
    cdef float[BLOCK] sums, block, bias
    cdef float factor
    for row in range(count * chunk // chunks, count * (chunk + 1) // chunks):
        first = 0
        while first < out.shape[1]:
            n = min(<ptrdiff_t>BLOCK, out.shape[1] - first)
            start_sum(views, state, row, first, sums, block, n)
            for j in range(state.each):
                source = source_of(index, state, count, row, j)
                if is_dropped(source, rows, state):
                    continue
                if source < 0:
                    context.detail = source
                    return BAD_ROW
                state.load(rows.data + source * rows.strides[0] + first * rows.strides[1],
                           rows.strides[1], block, n)
                if state.bias >= 0:
                    expert = expert_of(&views[state.experts], row, j)
                    view = &views[state.bias]
                    if expert < 0 or expert >= view.shape[0]:
                        context.detail = expert
                        return BAD_EXPERT
                    state.load(view.data + expert * view.strides[0] + first * view.strides[1],
                               view.strides[1], bias, n)
                    add_scaled(block, bias, 1, n)
                factor = 1
                if state.scales >= 0:
                    view = &views[state.scales]
                    state.load_scales(view.data + row * view.strides[0] + j * view.strides[1], 0,
                                      &factor, 1)
                add_scaled(sums, block, factor, n)
            state.store(sums, out.data + row * out.strides[0] + first * out.strides[1],
                        out.strides[1], n)
            first += BLOCK
    return 0


# --- Kernels of nodes --------------------------------------------------------------------------

# Made of the records: functions that pack the states.
include "expert_nodes.pxi"
