"""Kernels that sort lines, find their largest elements, and what sampling keeps of them.

=============== ================= ============================= ===================================
kernel          inputs, in order  outputs, in order             what it needs to know
=============== ================= ============================= ===================================
sort            x                 [values], [indices]           axis, descending
topk            x                 values, indices               axis, descending, k
top_k_top_p     x, [p], [k]       y
=============== ================= ============================= ===================================

A line becomes keys, whole numbers in the order of its elements: of NaN the largest, of -0 that of
0. Below a key of at most 32 bits stands the index, so that no two are alike and equal elements
keep their order. Short lines are merged, longer ones sorted by digits of their keys; of the
largest elements those are sorted that the digits of the k-th let through. What is written are the
elements themselves.

Functions that Python calls are compiled once, loops once per instruction set
(`kernels/instruction_sets.h`).
"""

from libc.stdint cimport (
    int8_t,
    int32_t,
    int64_t,
    uint8_t,
    uint32_t,
    uint64_t,
)
from libc.string cimport memcpy

from aclnn.kernels.element cimport (
    bfloat16_t,
    copy_elements,
    half_t,
    unaligned_double,
    unaligned_float,
    unaligned_int16,
    unaligned_int32,
    unaligned_int64,
    unaligned_uint16,
    unaligned_uint32,
    unaligned_uint64,
)
from aclnn.kernels.instruction_sets cimport SETS_BUILT, take_set
from aclnn.kernels.lines cimport line_of, lines_in
from aclnn.kernels.sorts cimport entry_t, let_through, sorted_keys, wide_sort
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context

BUILT = SETS_BUILT  # a bit for each instruction set whose loops are here


def use(int number):
    """Use the loops of an instruction set, by its number, in this thread."""
    take_set(number)


cdef extern from "double_math.h" nogil:
    double full_exp(double) noexcept

cdef enum:
    PIECE = 64              # keys that are looked at together
    FEW = 8                 # elements that are inserted one by one, as are such that are one of
    SPARSE = 256            # a line's

# --- Keys -----------------------------------------------------------------------------------------

ctypedef void (*keys_fn)(const char *, ptrdiff_t, ptrdiff_t, uint64_t, uint64_t,
                         uint64_t *) noexcept nogil
ctypedef void (*wide_keys_fn)(const char *, ptrdiff_t, ptrdiff_t, uint64_t,
                              entry_t *) noexcept nogil

ctypedef fused narrow_t:
    unaligned_float
    half_t
    bfloat16_t
    int8_t
    uint8_t
    unaligned_int16
    unaligned_int32

ctypedef fused wide_t:
    unaligned_double
    unaligned_int64


cdef inline uint32_t key_of(const narrow_t *x) noexcept nogil:
    """A number of at most 32 bits in the order of elements."""
    cdef uint32_t bits, magnitude, largest
    if narrow_t is unaligned_float:
        bits = (<const unaligned_uint32 *>x)[0]
        magnitude = bits & 0x7FFFFFFFu
        if magnitude > 0x7F800000u:
            return 0xFFFFFFFFu
        bits = magnitude if magnitude == 0 else bits
        return bits ^ (<uint32_t>(<int32_t>bits >> 31) | 0x80000000u)
    elif narrow_t is half_t or narrow_t is bfloat16_t:
        bits = (<const unaligned_uint16 *>x)[0]
        magnitude = bits & 0x7FFFu
        if narrow_t is half_t:
            largest = 0x7C00u
        else:
            largest = 0x7F80u
        if magnitude > largest:
            return 0xFFFFu
        bits = magnitude if magnitude == 0 else bits
        return (bits ^ (0xFFFFu if bits >> 15 else 0x8000u)) & 0xFFFFu
    elif narrow_t is uint8_t:
        return x[0]
    elif narrow_t is int8_t:
        return <uint32_t>(x[0] + 128)
    elif narrow_t is unaligned_int16:
        return <uint32_t>(x[0] + 32768)
    else:
        return <uint32_t>x[0] ^ 0x80000000u


cdef void make_keys(const narrow_t *x, ptrdiff_t step, ptrdiff_t n, uint64_t first, uint64_t turned,
                    uint64_t *to) noexcept nogil:
    """Keys above indices, which count from the `first`; `turned` are the bits of keys that are the
    other way round."""
    cdef ptrdiff_t i
    if step == sizeof(narrow_t):
        for i in range(n):
            to[i] = (<uint64_t>(key_of(x + i) ^ <uint32_t>turned) << 32) | (first + <uint64_t>i)
    else:
        for i in range(n):
            to[i] = (<uint64_t>(key_of(<const narrow_t *>(<const char *>x + i * step))
                                ^ <uint32_t>turned) << 32) | (first + <uint64_t>i)


cdef void make_wide_keys(const wide_t *x, ptrdiff_t step, ptrdiff_t n, uint64_t turned,
                         entry_t *to) noexcept nogil:
    cdef uint64_t bits, magnitude
    cdef ptrdiff_t i
    for i in range(n):
        bits = (<const unaligned_uint64 *>(<const char *>x + i * step))[0]
        if wide_t is unaligned_double:
            magnitude = bits & 0x7FFFFFFFFFFFFFFFull
            bits = magnitude if magnitude == 0 else bits
            bits ^= <uint64_t>(<int64_t>bits >> 63) | 0x8000000000000000ull
            if magnitude > 0x7FF0000000000000ull:
                bits = 0xFFFFFFFFFFFFFFFFull
        else:
            bits ^= 0x8000000000000000ull
        to[i].key, to[i].index = bits ^ turned, i


cdef keys_fn keys_of(str dtype) noexcept:
    if dtype == "float32":
        return <keys_fn>make_keys[unaligned_float]
    if dtype == "float16":
        return <keys_fn>make_keys[half_t]
    if dtype == "bfloat16":
        return <keys_fn>make_keys[bfloat16_t]
    if dtype == "int8":
        return <keys_fn>make_keys[int8_t]
    if dtype in ("uint8", "bool"):
        return <keys_fn>make_keys[uint8_t]
    if dtype == "int16":
        return <keys_fn>make_keys[unaligned_int16]
    if dtype == "int32":
        return <keys_fn>make_keys[unaligned_int32]
    return NULL


cdef wide_keys_fn wide_keys_of(str dtype) except? NULL:
    """NULL for elements that have keys of at most 32 bits."""
    if dtype == "float64":
        return <wide_keys_fn>make_wide_keys[unaligned_double]
    if dtype == "int64":
        return <wide_keys_fn>make_wide_keys[unaligned_int64]
    if keys_of(dtype) == NULL:
        raise ValueError(f"no kernel sorts {dtype}")
    return NULL


# --- Kernels --------------------------------------------------------------------------------------

# States of the kernels, and what they keep in scratch: made of the records.
include "sorting_states.pxi"


cdef inline void put_one(const char *x, ptrdiff_t from_, char *values, char *indices, int64_t index,
                         int size) noexcept nogil:
    if values != NULL:
        copy_elements(x + index * from_, from_, values, size, 1, size)
    if indices != NULL:
        (<unaligned_int64 *>indices)[0] = index


ctypedef fused bits_like_t:
    uint8_t
    unaligned_uint16
    unaligned_uint32


cdef inline void put_values(const bits_like_t *x, ptrdiff_t from_, char *to, ptrdiff_t step,
                            const uint64_t *keys, ptrdiff_t n) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        (<bits_like_t *>(to + i * step))[0] = (
            <const bits_like_t *>(<const char *>x + <int64_t>(keys[i] & 0xFFFFFFFFu) * from_))[0]


cdef void put_narrow(const char *x, ptrdiff_t from_, const sort_state *state, char *values,
                     ptrdiff_t values_step, char *indices, ptrdiff_t indices_step,
                     const uint64_t *keys, ptrdiff_t n) noexcept nogil:
    cdef ptrdiff_t i
    if state.has_values:
        if state.size == 4:
            put_values(<const unaligned_uint32 *>x, from_, values, values_step, keys, n)
        elif state.size == 2:
            put_values(<const unaligned_uint16 *>x, from_, values, values_step, keys, n)
        else:
            put_values(<const uint8_t *>x, from_, values, values_step, keys, n)
    if state.has_indices:
        for i in range(n):
            (<unaligned_int64 *>(indices + i * indices_step))[0] = <int64_t>(keys[i] & 0xFFFFFFFFu)


cdef inline bint has_less(const uint64_t *x, uint64_t bound) noexcept nogil:
    """Whether one of `PIECE` keys is less."""
    cdef uint64_t found = 0
    cdef int i
    for i in range(PIECE):
        found |= <uint64_t>(x[i] < bound)
    return found != 0


cdef void find_least(const char *x, ptrdiff_t step, ptrdiff_t n, const sort_state *state,
                     uint64_t *least) noexcept nogil:
    """The `k` least keys of a line in order, which are few: each that is less than the last so far
    is inserted."""
    cdef ptrdiff_t count = 0, i = 0, j, at, found
    cdef uint64_t[PIECE] piece
    cdef uint64_t bound = 0xFFFFFFFFFFFFFFFFull, key
    while i < n:
        found = min(<ptrdiff_t>PIECE, n - i)
        state.keys(x + i * step, step, found, <uint64_t>i, state.turned, piece)
        for j in range(found, PIECE):
            piece[j] = 0xFFFFFFFFFFFFFFFFull
        if has_less(piece, bound):
            for j in range(found):
                key = piece[j]
                if key >= bound:
                    continue
                if count < state.k:
                    count += 1
                at = count - 1
                while at > 0 and least[at - 1] > key:
                    least[at] = least[at - 1]
                    at -= 1
                least[at] = key
                if count == state.k:
                    bound = least[count - 1]
        i += PIECE


cdef int sort_lines(const array_view *views, const void *given, const void *params, void *scratch,
                    ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """All of a line, or its `k` first."""
    cdef const sort_state *state = <const sort_state *>given
    cdef const array_view *x = &views[0]
    cdef const array_view *values = &views[1]
    cdef const array_view *indices = &views[1 + state.has_values]
    cdef int axis = state.axis, rank = x.ndim
    cdef ptrdiff_t n = x.shape[axis], lines = lines_in(x.shape, rank, axis), line, i, count
    cdef ptrdiff_t step = x.strides[axis]
    cdef ptrdiff_t values_step = values.strides[axis] if state.has_values else 0
    cdef ptrdiff_t indices_step = indices.strides[axis] if state.has_indices else 0
    cdef sort_lines_parts parts
    cdef uint64_t *keys
    cdef entry_t *entries
    cdef char *at
    cdef char *to = NULL
    cdef char *places = NULL
    divide_sort_lines(state, n, scratch, &parts)
    for line in range(lines * chunk // chunks, lines * (chunk + 1) // chunks):
        at = line_of(x, x.shape, rank, axis, line)
        if state.has_values:
            to = line_of(values, x.shape, rank, axis, line)
        if state.has_indices:
            places = line_of(indices, x.shape, rank, axis, line)
        if state.keys != NULL:
            keys, count = parts.keys, n
            if 0 < state.k < n // 4 and (state.k <= FEW or state.k < n // SPARSE):
                find_least(at, step, n, state, keys)
            else:
                state.keys(at, step, n, 0, state.turned, keys)
                if n > 32 and state.k < n // 2:
                    count = let_through(keys, n, state.k, state.bits, parts.counts)
                keys = sorted_keys(keys, parts.keys + n, count, state.bits, parts.counts)
            put_narrow(at, step, state, to, values_step, places, indices_step, keys, state.k)
        else:
            entries = parts.entries
            state.wide_keys(at, step, n, state.turned, entries)
            entries = wide_sort(entries, parts.entries + n, n, parts.counts)
            for i in range(state.k):
                put_one(at, step, NULL if to == NULL else to + i * values_step,
                        NULL if places == NULL else places + i * indices_step, entries[i].index,
                        state.size)
    return 0


cdef inline void hide(char *to, int size, const char *lowest) noexcept nogil:
    if size == 4:
        memcpy(to, lowest, 4)
    else:
        memcpy(to, lowest, 2)


cdef ptrdiff_t left_by_p(const float *x, const uint64_t *keys, ptrdiff_t first, ptrdiff_t n,
                         double bound) noexcept nogil:
    """The first place that stays, of keys in ascending order from the `first`: the sum of
    probabilities exceeds the bound there."""
    cdef double most = x[keys[n - 1] & 0xFFFFFFFFu], total = 0, sum = 0
    cdef ptrdiff_t i
    for i in range(first, n):
        total += full_exp(x[keys[i] & 0xFFFFFFFFu] - most)
    for i in range(first, n - 1):
        sum += <float>(full_exp(x[keys[i] & 0xFFFFFFFFu] - most) / total)
        if not sum <= bound:
            return i
    return n - 1


cdef int top_k_top_p(const array_view *views, const void *given, const void *params, void *scratch,
                     ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    cdef const sample_state *state = <const sample_state *>given
    cdef const array_view *x = &views[0]
    cdef const array_view *out = &views[1 + (state.p >= 0) + (state.k >= 0)]
    cdef ptrdiff_t n = x.shape[1], rows = x.shape[0], row, i, first
    cdef top_k_top_p_parts parts
    cdef uint64_t *keys
    cdef uint32_t lowest = 0xFF800000u if state.size == 4 else (
        0xFC00u if state.bits == 15 else 0xFF80u)
    cdef int64_t k
    cdef uint32_t least
    cdef const char *at
    cdef char *to
    cdef float p
    divide_top_k_top_p(state, n, scratch, &parts)
    for row in range(rows * chunk // chunks, rows * (chunk + 1) // chunks):
        at, to = x.data + row * x.strides[0], out.data + row * out.strides[0]
        copy_elements(at, x.strides[1], to, out.strides[1], n, state.size)
        if n <= 1:
            continue
        state.keys(at, x.strides[1], n, 0, 0, parts.keys)
        keys = sorted_keys(parts.keys, parts.keys + n, n, 32 if state.size == 4 else 16,
                           parts.counts)
        first = 0
        if state.k >= 0:
            k = (<const unaligned_int32 *>(views[state.k].data
                                           + row * views[state.k].strides[0]))[0]
            if 0 < k < n:
                first, least = n - k, <uint32_t>(keys[n - k] >> 32)
                while first > 0 and <uint32_t>(keys[first - 1] >> 32) == least:
                    first -= 1
        if state.p >= 0:
            state.load(at, x.strides[1], parts.values, n)
            state.load(views[state.p].data + row * views[state.p].strides[0], 0, &p, 1)
            first = left_by_p(parts.values, keys, first, n, <float>1 - p)
        for i in range(first):
            hide(to + <int64_t>(keys[i] & 0xFFFFFFFFu) * out.strides[1], state.size,
                 <const char *>&lowest)
    return 0


# --- Kernels of nodes -----------------------------------------------------------------------------

# Made of the records: functions that pack the states.
include "sorting_nodes.pxi"
