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
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from aclnn._kernel_reference cimport checked_by, refer_to
from aclnn.kernels.element cimport (
    bfloat16_t,
    copy_elements,
    half_t,
    load,
    load_fn,
    store,
    store_fn,
    unaligned_float,
    unaligned_int32,
    unaligned_int64,
)
from aclnn.kernels.scratch cimport part_of
from aclnn.kernels.sorts cimport COUNTS_BYTES, sorted_keys
from graph.runtime.kernel_abi cimport array_view, call_context, kernel_number

from aclnn.acl.dtypes import ITEM_SIZES

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
FAILURES = {
    BAD_EXPERT: "an index of an expert is {detail}, which there is none of",
    BAD_ROW: "an index of a row is {detail}, must not be negative",
}


cdef load_fn float_loader(str dtype) except NULL:
    if dtype == "float32":
        return <load_fn>load[unaligned_float, unaligned_float]
    if dtype == "float16":
        return <load_fn>load[half_t, unaligned_float]
    if dtype == "bfloat16":
        return <load_fn>load[bfloat16_t, unaligned_float]
    raise ValueError(f"no kernel of experts reads {dtype}")


cdef store_fn float_storer(str dtype) except NULL:
    if dtype == "float32":
        return <store_fn>store[unaligned_float, unaligned_float]
    if dtype == "float16":
        return <store_fn>store[unaligned_float, half_t]
    if dtype == "bfloat16":
        return <store_fn>store[unaligned_float, bfloat16_t]
    raise ValueError(f"no kernel of experts writes {dtype}")


# --- Gates ----------------------------------------------------------------------------------------

cdef struct gate_state:
    load_fn load
    load_fn load_bias
    store_fn store
    int bias, finished, y, experts, rows, normalized   # places of operands, or -1
    int norm                # SOFTMAX, SIGMOID, CHOSEN
    int groups, kept        # groups of experts, and how many of them stay
    bint by_two             # a group counts by the sum of its two largest
    bint divides            # by the sum of what is chosen
    ptrdiff_t k


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


cdef struct gate_parts:
    # What a token needs in scratch.
    float *values           # of all experts
    float *ranked           # what they are chosen by
    float *groups           # best values of groups
    float *made             # of those that are chosen
    int32_t *chosen
    uint8_t *taken


cdef size_t divide_gate(const gate_state *state, ptrdiff_t n, void *scratch,
                        gate_parts *parts) noexcept nogil:
    """Divide scratch for tokens with `n` experts; the bytes that it takes."""
    cdef size_t used = 0
    parts.values = <float *>part_of(scratch, n * sizeof(float), &used)
    parts.ranked = <float *>part_of(scratch, n * sizeof(float), &used)
    parts.groups = <float *>part_of(scratch, state.groups * sizeof(float), &used)
    parts.made = <float *>part_of(scratch, state.k * sizeof(float), &used)
    parts.chosen = <int32_t *>part_of(scratch, state.k * sizeof(int32_t), &used)
    parts.taken = <uint8_t *>part_of(scratch, n, &used)
    return used


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
        view = &views[state.y]
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

cdef struct route_state:
    int index_size
    ptrdiff_t each          # how many places a token has in the list
    int64_t experts         # indices are less; 0: any
    ptrdiff_t capacity      # of an expert; 0: tokens of all lie one after the other
    int counting            # UNCOUNTED, CUMULATIVE, COUNTED, BEFORE capacity


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


cdef struct route_parts:
    uint32_t *counts
    uint64_t *keys          # and room for as many more


cdef size_t divide_route(ptrdiff_t n, void *scratch, route_parts *parts) noexcept nogil:
    """Divide scratch for a list of `n` experts; the bytes that it takes."""
    cdef size_t used = 0
    parts.counts = <uint32_t *>part_of(scratch, COUNTS_BYTES, &used)
    parts.keys = <uint64_t *>part_of(scratch, 2 * n * sizeof(uint64_t), &used)
    return used


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
    divide_route(n, scratch, &parts)
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


cdef struct rows_state:
    int size


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

cdef struct combine_state:
    int scales, x1, x2, bias, experts, out   # places of operands, or -1
    load_fn load
    load_fn load_scales
    store_fn store
    ptrdiff_t each          # how many rows are added up
    bint by_columns         # the index has all first rows, then all second ones
    bint drops              # -1 stands for a row that was dropped


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
    cdef ptrdiff_t count = views[state.out].shape[0], row, j
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
    cdef const array_view *out = &views[state.out]
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


# --- Kernel references ----------------------------------------------------------------------------

def gate_kernel(tuple inputs not None, tuple outputs not None, *, tuple present not None,
                Py_ssize_t lines, Py_ssize_t n,
                Py_ssize_t k, norm, groups=1, kept=1, by_two=False, divides=False):
    """The kernel that chooses the experts of each token.

    Parameters
    ----------
    inputs, outputs : tuple of str
        Dtypes of operands.
    present : tuple of str
        Which of 'bias', 'finished', 'rows', 'normalized' there are.
    lines, n, k : int
        Tokens, experts, and how many each token gets.
    norm : {0, 1, 2}
        Softmax, sigmoid, or the softmax of what is chosen.
    groups, kept : int
        Into how many groups experts fall, and how many of them stay.
    by_two, divides : bool
        Whether a group counts by its two largest; whether what is chosen is divided by its sum.
    """
    cdef gate_state state
    cdef gate_parts parts
    places = {}
    for name in ("bias", "finished", "y", "experts", "rows", "normalized"):
        if name in ("y", "experts") or name in present:
            places[name] = 1 + len(places)
    state.bias, state.finished = places.get("bias", -1), places.get("finished", -1)
    state.y, state.experts = places["y"], places["experts"]
    state.rows, state.normalized = places.get("rows", -1), places.get("normalized", -1)
    state.load, state.store = float_loader(inputs[0]), float_storer(outputs[0])
    state.load_bias = float_loader(inputs[1]) if "bias" in present else NULL
    state.norm, state.groups, state.kept, state.k = norm, groups, kept, k
    state.by_two, state.divides = by_two, divides
    return refer_to("gate", inputs, outputs, gate, &state, sizeof(state),
                    lines * n * (10.0 + k), lines, divide_gate(&state, n, NULL, &parts), FAILURES)


def route_kernel(tuple inputs not None, tuple outputs not None, *, Py_ssize_t n, Py_ssize_t each,
                 Py_ssize_t experts,
                 Py_ssize_t capacity, counting):
    """The kernel that sorts tokens by their experts.

    Parameters
    ----------
    inputs, outputs : tuple of str
        Dtypes of operands.
    n, each : int
        Length of the list of experts, and how many of them a token has.
    experts : int
        How many there are; 0: any.
    capacity : int
        Rows of each expert; 0: as many as it needs.
    counting : {0, 1, 2, 3}
        No counts, running sums, counts, or counts before some were dropped.
    """
    cdef route_state state
    cdef route_parts parts
    state.index_size, state.each = ITEM_SIZES[inputs[0]], max(1, each)
    state.experts, state.capacity, state.counting = experts, capacity, counting
    return refer_to("route", inputs, outputs, route, &state, sizeof(state), 10.0 * n, 1,
                    divide_route(n, NULL, &parts), FAILURES)


def take_rows_kernel(tuple inputs not None, tuple outputs not None, *, Py_ssize_t lines,
                     Py_ssize_t n):
    """The kernel that copies rows by their numbers.

    Parameters
    ----------
    inputs, outputs : tuple of str
        Dtypes of operands.
    lines, n : int
        How many rows there are, and how long they are.
    """
    cdef rows_state state
    state.size = ITEM_SIZES[inputs[0]]
    return refer_to("take_rows", inputs, outputs, take_rows, &state, sizeof(state),
                    0.1 * lines * n, lines, 0, {})


def combine_kernel(tuple inputs not None, tuple outputs not None, *, tuple present not None,
                   Py_ssize_t lines, Py_ssize_t n,
                   Py_ssize_t each, by_columns, drops):
    """The kernel that adds up the rows of each token.

    Parameters
    ----------
    inputs, outputs : tuple of str
        Dtypes of operands.
    present : tuple of str
        Which of 'scales', 'x1', 'x2', 'bias', 'experts' there are, in their order.
    lines, n, each : int
        Tokens, their elements, and how many rows each has.
    by_columns, drops : bool
        Whether the index has all first rows before the second ones, and whether -1 stands for no
        row.
    """
    cdef combine_state state
    places = {name: 2 + place for place, name in enumerate(present)}
    state.scales, state.x1, state.x2 = (
        places.get("scales", -1), places.get("x1", -1), places.get("x2", -1))
    state.bias, state.experts = places.get("bias", -1), places.get("experts", -1)
    state.out = len(inputs)
    state.load, state.store = float_loader(inputs[0]), float_storer(outputs[0])
    state.load_scales = float_loader(inputs[state.scales]) if state.scales >= 0 else NULL
    state.each, state.by_columns, state.drops = each, by_columns, drops
    made = refer_to("combine", inputs, outputs, combine, &state, sizeof(state),
                    0.3 * lines * n * each, lines, 0, FAILURES)
    looked_at = (1,)
    if state.bias >= 0:
        looked_at += (state.experts,)
    return checked_by(made, check_combine, looked_at)
