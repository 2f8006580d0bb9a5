"""Kernels of quantisation: products of int8 and of quantised weights, and quantised elements.

============== ====================================================== ===========================
kernel         inputs, in order                                       outputs, in order
============== ====================================================== ===========================
product        a, b, [scale], [per_token], [offset], [bias],          y
               [antiquant_scale], [antiquant_offset], [groups]
quantize       x, scale, [offset]                                     y
dynamic_quant  x, [smooth], [groups]                                  y, scale, [offset]
swiglu_quant   x, [weight_scale], [activation_scale], [bias],         y, scale
               [quant_scale], [quant_offset], [groups]
scale_bits     scale, [offset]                                        y
scale_of_bits  bits                                                   y
pack4, unpack4 x                                                      y
============== ====================================================== ===========================

Operands in brackets may be absent. Sums of products of int8 are exact, those of floats are in
float32, over K in its order. Elements of uint8 and int32 matrices hold two and eight integers of
four bits, the first in the lowest. What is quantised is computed in float32, rounded to the
nearest, saturated; a NaN gives 0.

Functions that Python calls are compiled once, loops once per instruction set
(`kernels/instruction_sets.h`).
"""

from libc.math cimport ceilf, floorf, truncf
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from aclnn.kernels.element cimport (
    copy_bits,
    unaligned_float,
    unaligned_int32,
    unaligned_int64,
    unaligned_uint32,
    unaligned_uint64,
)
from aclnn.kernels.instruction_sets cimport SETS_BUILT, take_set
from aclnn.kernels.lines cimport line_of, lines_in
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context, kernel_number

BUILT = SETS_BUILT  # a bit for each instruction set whose loops are here


def use(int number):
    """Use the loops of an instruction set, by its number, in this thread."""
    take_set(number)


cdef extern from "double_math.h" nogil:
    double full_exp(double) noexcept

cdef extern from "quantized/tiles.h" nogil:
    enum:
        TILE_COLS_MOST
        TILE_ROWS_MOST
        TILE_COLS
        TILE_ROWS
        TILE_GROUP
        COLUMNS_AT_ONCE
    int tile_of_quads(const char *, ptrdiff_t, const char *, ptrdiff_t, int32_t *,
                      ptrdiff_t, int) noexcept
    int tile_of_pairs(const char *, ptrdiff_t, const char *, ptrdiff_t, int32_t *,
                      ptrdiff_t, int) noexcept
    int tile_of_floats(const char *, ptrdiff_t, const char *, ptrdiff_t, int32_t *,
                       ptrdiff_t, int) noexcept
    int tile_integers() noexcept
    float dot_of_bytes(const int8_t *, const float *, ptrdiff_t) noexcept
    float dot_of_floats(const float *, const float *, ptrdiff_t) noexcept
    void take_by_table(const char *, ptrdiff_t, const float *, float *, ptrdiff_t) noexcept
    void rows_of_columns(const char *, ptrdiff_t, int, ptrdiff_t, int, const float *,
                         const float *, float *) noexcept
    float dot_of_nibbles(const char *, const float *, const char *, ptrdiff_t, ptrdiff_t,
                         ptrdiff_t) noexcept
    float dot_of_offsets(const char *, ptrdiff_t, const char *, ptrdiff_t, const float *,
                         ptrdiff_t) noexcept
    void take_nibbles(const char *, ptrdiff_t, int, ptrdiff_t, int8_t *) noexcept
    void pack_quads_of_row(const int8_t *, ptrdiff_t, ptrdiff_t, char *) noexcept
    void pack_pairs_of_row(const int8_t *, ptrdiff_t, ptrdiff_t, char *) noexcept
    void pack_quads(const int8_t *, ptrdiff_t, ptrdiff_t, ptrdiff_t, int, char *,
                    int32_t *) noexcept
    void pack_pairs(const int8_t *, ptrdiff_t, ptrdiff_t, ptrdiff_t, int, char *) noexcept
    float largest_magnitude(const float *, ptrdiff_t) noexcept
    void find_range(const float *, ptrdiff_t, float *, float *) noexcept
    int32_t nearest_within(float, float, float) noexcept
    int32_t nearest_of_all(float) noexcept
    void requantize_row(const int32_t *sums, int32_t less, double scale, double shift, double low,
                        double high, double zero, uint8_t *out, ptrdiff_t n) noexcept

cdef enum:
    BLOCK = 256             # elements that are converted at a time
    A_BLOCK = 4 << 20       # bytes of A that are packed at a time
    GROUPS_AT_ONCE = 256    # of a panel, which then stay in the nearest cache
    FEW_ROWS = 12           # of A, for which no panel of floats is made of a weight
    FEWER_ROWS = 3          # the same where panels are made of columns at once
    BAD_GROUPS = 111        # codes of failures
    BAD_WEIGHT = 112
    RAW = 0                 # what becomes of sums
    FLOATING = 1
    BYTES = 2
    CUMULATIVE = 0          # how groups are listed; else pairs
    SIZES = 1
    BATCHES = 0             # what groups are of
    ALONG_ROWS = 1
    ALONG_K = 2
    NONE = 0                # activations
    RELU = 1
    GELU_TANH = 2
    FAST_GELU = 4
    SILU = 5

NIBBLE_UNITS = {"uint8": 1, "int32": 4}  # bytes of elements that hold integers of four bits
FLOATS_OF_BYTES = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
RESULTS = {"int32": RAW, "int8": BYTES}  # what becomes of sums, by the dtype; else FLOATING


# --- Loads and stores -----------------------------------------------------------------------------

cdef inline void load_floats(const char *x, ptrdiff_t stride, float *to,
                             ptrdiff_t n) noexcept nogil:
    copy_bits(<const unaligned_uint32 *>x, stride, <unaligned_uint32 *>to, sizeof(float), n)


cdef inline float float_of_bits(uint32_t bits) noexcept nogil:
    cdef float found
    memcpy(&found, &bits, 4)
    return found


cdef inline uint32_t bits_of_float(float x) noexcept nogil:
    cdef uint32_t found
    memcpy(&found, &x, 4)
    return found


# --- Products -------------------------------------------------------------------------------------

# States of the kernels, and what they keep in scratch: made of the records.
include "quantized_states.pxi"

cdef struct piece_t:
    # One product: rows and k of it, and what it takes of operands that have one for each.
    ptrdiff_t number        # of the weight
    ptrdiff_t first_row, rows, first_k, k
    ptrdiff_t a_batch, out_batch

cdef struct panel_t:
    int32_t[TILE_COLS_MOST] sums        # to take off, where A is not negative
    int32_t[TILE_COLS_MOST] whole_bias
    float[TILE_COLS_MOST] bias
    float[TILE_COLS_MOST] scale
    float[TILE_COLS_MOST] offset


cdef inline int64_t whole_at(const array_view *view, ptrdiff_t i, ptrdiff_t j) noexcept nogil:
    cdef const char *place = view.data + i * view.strides[0]
    if view.ndim > 1:
        place += j * view.strides[1]
    return (<const unaligned_int64 *>place)[0]


cdef struct groups_t:
    # A walk over a list of groups.
    ptrdiff_t number
    int64_t end
    bint over


cdef int next_group(const array_view *list_, const product_state *state, ptrdiff_t weights,
                    int64_t length, groups_t *walk, piece_t *piece, int64_t *detail) noexcept nogil:
    """The next group: its weight, and the rows, or k, that are its own."""
    cdef int64_t begin = walk.end, end = begin
    piece.number = walk.number
    if not walk.over:
        if state.list_kind == CUMULATIVE:
            end = whole_at(list_, walk.number, 0)
        elif state.list_kind == SIZES:
            end = begin + whole_at(list_, walk.number, 0)
        elif whole_at(list_, walk.number, 1) == 0:
            walk.over = True
        else:
            end = begin + whole_at(list_, walk.number, 1)
            piece.number = whole_at(list_, walk.number, 0)
            if piece.number < 0 or piece.number >= weights:
                detail[0] = piece.number
                return BAD_WEIGHT
    if end < begin or end > length:
        detail[0] = end
        return BAD_GROUPS
    if state.along == ALONG_ROWS:
        piece.first_row, piece.rows = begin, end - begin
    else:
        piece.first_k, piece.k = begin, end - begin
        piece.out_batch = walk.number
    walk.end = end
    walk.number += 1
    return 0


cdef void pack_a(const array_view *a, const piece_t *piece, const product_state *state,
                 ptrdiff_t first, ptrdiff_t rows, ptrdiff_t step, char *to,
                 int8_t *apart) noexcept nogil:
    cdef int last = a.ndim - 1
    cdef ptrdiff_t by = a.strides[last], r
    cdef const char *at = a.data + piece.first_k * by
    cdef const char *row
    if a.ndim > 2:
        at += piece.a_batch * a.strides[0]
    for r in range(rows):
        row = at + (first + r) * a.strides[last - 1]
        if state.a_unit:
            take_nibbles(row, by, state.a_unit, piece.k, apart)
            row, by = <const char *>apart, 1
        if state.integers == 4:
            pack_quads_of_row(<const int8_t *>row, by, piece.k, to + r * step)
        elif state.integers == 2:
            pack_pairs_of_row(<const int8_t *>row, by, piece.k, to + r * step)
        else:
            state.load_a(row, by, to + r * step, piece.k)
        by = a.strides[last]


cdef void take_panel(const char *at, ptrdiff_t by, ptrdiff_t next_, const product_state *state,
                     ptrdiff_t k, ptrdiff_t first, int cols, int8_t *to) noexcept nogil:
    """Take a panel of integers of four bits apart: rows of it, or columns, are dense."""
    cdef ptrdiff_t i
    if state.along_k:
        for i in range(cols):
            take_nibbles(at + (first + i) * next_, by, state.b_unit, k, to + i * state.line)
    else:
        at += first // (2 * state.b_unit) * next_
        for i in range(k):
            take_nibbles(at + i * by, next_, state.b_unit, cols, to + i * TILE_COLS)


cdef inline void load_weights(const product_state *state, const char *at, ptrdiff_t by, float *to,
                              ptrdiff_t n) noexcept nogil:
    if state.table != NULL:
        take_by_table(at, by, state.table, to, n)
    else:
        state.load_b(at, by, to, n)


cdef void pack_floats(const array_view *views, const product_state *state, const char *at,
                      ptrdiff_t by, ptrdiff_t next_, const piece_t *piece, ptrdiff_t first,
                      int cols, float *to) noexcept nogil:
    """A panel of floats, made of quantised ones where there is a scale for them."""
    cdef ptrdiff_t k, i, n, group = -1, of_group = 1
    cdef float[BLOCK] run
    cdef float[TILE_COLS_MOST] scale, offset
    cdef const array_view *scales
    cdef int c
    if cols < TILE_COLS:
        memset(to, 0, piece.k * TILE_COLS * sizeof(float))
    if by < next_ and next_ > 0 and by > 0:  # elements of a column are adjacent
        for c in range(cols):
            k = 0
            while k < piece.k:
                n = min(<ptrdiff_t>BLOCK, piece.k - k)
                load_weights(state, at + c * next_ + k * by, by, run, n)
                for i in range(n):
                    to[(k + i) * TILE_COLS + c] = run[i]
                k += n
    else:
        for k in range(piece.k):
            load_weights(state, at + k * by, next_, to + k * TILE_COLS, cols)
    if state.antiquant_scale < 0:
        return
    scales = &views[state.antiquant_scale]
    of_group = max(<ptrdiff_t>1, (piece.k + scales.shape[1] - 1) // scales.shape[1])
    if state.group_size:
        of_group = state.group_size
    for k in range(piece.k):
        if k // of_group != group:
            group = k // of_group
            load_of_group(scales, piece, group, first, cols, scale)
            memset(offset, 0, sizeof(offset))
            if state.antiquant_offset >= 0:
                load_of_group(&views[state.antiquant_offset], piece, group, first, cols, offset)
        for c in range(cols):
            to[k * TILE_COLS + c] = (to[k * TILE_COLS + c] + offset[c]) * scale[c]


cdef bint pack_columns(const array_view *views, const product_state *state, const char *at,
                       ptrdiff_t by, ptrdiff_t next_, const piece_t *piece, ptrdiff_t first,
                       int cols, float *to) noexcept nogil:
    """The same panel, of columns whose bytes are adjacent; false where that is not how they are."""
    cdef const array_view *scales = &views[state.antiquant_scale]
    cdef ptrdiff_t k = 0, n, group = 0
    cdef ptrdiff_t of_group = max(<ptrdiff_t>1, (piece.k + scales.shape[1] - 1) // scales.shape[1])
    cdef float[TILE_COLS_MOST] scale, offset
    if state.group_size:
        of_group = state.group_size
    if COLUMNS_AT_ONCE == 0 or by != 1 or cols % COLUMNS_AT_ONCE or (of_group < piece.k
                                                                     and of_group % 2):
        return False
    if cols < TILE_COLS:
        memset(to, 0, piece.k * TILE_COLS * sizeof(float))
    memset(offset, 0, sizeof(offset))
    while k < piece.k:
        n = min(of_group, piece.k - k)
        load_of_group(scales, piece, group, first, cols, scale)
        if state.antiquant_offset >= 0:
            load_of_group(&views[state.antiquant_offset], piece, group, first, cols, offset)
        rows_of_columns(at + k * state.column_bits // 8, next_, state.column_bits, n, cols, scale,
                        offset, to + k * TILE_COLS)
        k += n
        group += 1
    return True


cdef void load_of_group(const array_view *view, const piece_t *piece, ptrdiff_t group,
                        ptrdiff_t first, int cols, float *to) noexcept nogil:
    """Load from a tensor [weight, group of k, column]."""
    load_floats(view.data + piece.number * view.strides[0] + group * view.strides[1]
                + first * view.strides[2], view.strides[2], to, cols)


cdef void prepare_panel(const array_view *views, const product_state *state, const piece_t *piece,
                        ptrdiff_t first, int cols, panel_t *panel) noexcept nogil:
    """Prepare what belongs to columns: scales, offsets and bias of tensors [weight, column]."""
    cdef const array_view *view
    cdef const char *at
    cdef int64_t bits
    cdef int c
    if state.scale >= 0:
        view = &views[state.scale]
        at = view.data + piece.number * view.strides[0] + first * view.strides[1]
        if state.scale_is_bits:
            for c in range(cols):
                bits = (<const unaligned_int64 *>(at + c * view.strides[1]))[0]
                panel.scale[c] = float_of_bits(<uint32_t>bits & 0xFFFFE000u)
                # Nine bits, of which the first is a sign.
                panel.offset[c] = <float>(<int>(((bits >> 37) & 0x1FF) ^ 0x100) - 0x100)
        else:
            load_floats(at, view.strides[1], panel.scale, cols)
            if state.shortens:
                for c in range(cols):
                    panel.scale[c] = float_of_bits(bits_of_float(panel.scale[c]) & 0xFFFFE000u)
    if state.offset >= 0:
        view = &views[state.offset]
        load_floats(view.data + piece.number * view.strides[0] + first * view.strides[1],
                    view.strides[1], panel.offset, cols)
    if state.bias >= 0:
        view = &views[state.bias]
        at = view.data + piece.number * view.strides[0] + first * view.strides[1]
        if state.bias_is_whole:
            for c in range(cols):
                panel.whole_bias[c] = (<const unaligned_int32 *>(at + c * view.strides[1]))[0]
        else:
            load_floats(at, view.strides[1], panel.bias, cols)


cdef inline float over_one_and_decay(double x, double t) noexcept nogil:
    """x / (1 + e^-t)."""
    return <float>(x / (1 + full_exp(-t)))


cdef float activated(float x, int activation) noexcept nogil:
    if activation == RELU:
        return x if x > 0 or x != x else <float>0
    if activation == GELU_TANH:
        # 0.5 x (1 + tanh(w)), w = sqrt(2/pi) (x + 0.044715 x^3)
        return over_one_and_decay(x, 1.5957691216057308 * (x + 0.044715 * x * x * x))
    if activation == FAST_GELU:
        return over_one_and_decay(x, 1.702 * x)
    if activation == SILU:
        return over_one_and_decay(x, x)
    return x


cdef void finish_row(const array_view *views, const product_state *state, const piece_t *piece,
                     const panel_t *panel, ptrdiff_t row, ptrdiff_t first, int cols,
                     int32_t *sums) noexcept nogil:
    """Scale, shift and round a row of sums, and write it."""
    cdef const array_view *out = &views[state.out]
    cdef int last = out.ndim - 1, c
    cdef char *at = out.data + row * out.strides[last - 1] + first * out.strides[last]
    cdef ptrdiff_t to = out.strides[last]
    cdef float[TILE_COLS_MOST] made
    cdef float factor
    if out.ndim > 2:
        at += piece.out_batch * out.strides[0]
    if state.integers == 1:
        memcpy(made, sums, cols * sizeof(float))
    else:
        if state.integers == 4:
            for c in range(cols):
                sums[c] -= panel.sums[c]
        if state.bias >= 0 and state.bias_is_whole:
            for c in range(cols):
                sums[c] += panel.whole_bias[c]
        if state.result == RAW:
            if cols == TILE_COLS and to == sizeof(int32_t):
                memcpy(at, sums, TILE_COLS * sizeof(int32_t))
                return
            for c in range(cols):
                (<unaligned_int32 *>(at + c * to))[0] = sums[c]
            return
        for c in range(cols):
            made[c] = <float>sums[c] * panel.scale[c]
    if state.per_token >= 0:
        factor = (<const unaligned_float *>(views[state.per_token].data
                                            + row * views[state.per_token].strides[0]))[0]
        for c in range(cols):
            made[c] *= factor
    if state.bias >= 0 and not state.bias_is_whole:
        for c in range(cols):
            made[c] += panel.bias[c]
    if state.activation != NONE:
        for c in range(cols):
            made[c] = activated(made[c], state.activation)
    if state.result == FLOATING:
        state.store(made, at, to, cols)
        return
    for c in range(cols):
        (<int8_t *>(at + c * to))[0] = <int8_t>nearest_within(made[c] + panel.offset[c], -128, 127)


cdef inline ptrdiff_t row_step(const product_state *state, ptrdiff_t k) noexcept nogil:
    """Bytes from a packed row to the next."""
    return packed_step(state.integers, k)


cdef inline ptrdiff_t packed_step(int integers, ptrdiff_t k) noexcept nogil:
    return (k + integers - 1) // integers * TILE_GROUP


cdef int integers_of_tiles() noexcept nogil:
    """Integers that tiles of the instruction set in use multiply at a time, on this CPU."""
    return tile_integers()


cdef Py_ssize_t tile_rows() noexcept nogil:
    return TILE_ROWS


cdef Py_ssize_t tile_cols() noexcept nogil:
    return TILE_COLS


cdef float[4][256] TABLES


cdef const float *table_of_floats(str name) except NULL:
    """Find the floats that bytes of a dtype are."""
    import ml_dtypes
    import numpy as np

    place = FLOATS_OF_BYTES.index(name)
    bits = np.arange(256, dtype=np.uint8)
    values = bits.view(getattr(ml_dtypes, name)).astype(np.float32).tolist()
    for n in range(256):
        TABLES[place][n] = values[n]
    return TABLES[place]


cdef void sum_groups(const float *x, ptrdiff_t k, ptrdiff_t of_group, float *to) noexcept nogil:
    """The sum of each group of a row, by which the offsets of a weight count."""
    cdef ptrdiff_t begin = 0, i, end
    cdef float[4] lane
    while begin < k:
        end = min(begin + of_group, k)
        memset(lane, 0, sizeof(lane))
        for i in range(begin, end):
            lane[i & 3] += x[i]
        to[0] = (lane[0] + lane[2]) + (lane[1] + lane[3])
        to += 1
        begin = end


cdef void multiply_columns(const array_view *views, const product_state *state,
                           const piece_t *piece, const char *at, ptrdiff_t next_,
                           ptrdiff_t first, ptrdiff_t last, ptrdiff_t from_, int rows,
                           const quantized_product_parts *parts) noexcept nogil:
    """Few rows times panels of columns whose bytes are adjacent: each column is read once."""
    cdef const array_view *scales = &views[state.antiquant_scale]
    cdef const array_view *offsets = &views[state.antiquant_offset] \
        if state.antiquant_offset >= 0 else NULL
    cdef ptrdiff_t step = row_step(state, piece.k), number, column, group, size
    cdef ptrdiff_t of_group = state.group_size if state.group_size else piece.k
    cdef ptrdiff_t groups = (piece.k + of_group - 1) // of_group
    cdef float *sums_of_a = <float *>parts.b
    cdef float[TILE_ROWS_MOST * TILE_COLS_MOST] sums
    cdef const int8_t *weight
    cdef float *taken = <float *>parts.apart
    cdef const float *x
    cdef float scale, offset, found
    cdef panel_t panel
    cdef int cols, c, r
    memset(&panel, 0, sizeof(panel))
    cdef bint at_once = (state.b_unit == 1 and rows == 1 and piece.k % 8 == 0
                         and (of_group % 8 == 0 or groups == 1))
    for r in range(rows if offsets != NULL else 0):
        sum_groups(<const float *>(parts.a + r * step), piece.k, of_group, sums_of_a + r * groups)
    for number in range(first, last):
        cols = <int>min(<ptrdiff_t>TILE_COLS, state.n - number * TILE_COLS)
        memset(sums, 0, sizeof(sums))
        for c in range(cols):
            column = number * TILE_COLS + c
            weight = <const int8_t *>(at + column * next_)
            if at_once:
                sums[c] = dot_of_nibbles(<const char *>weight, <const float *>parts.a,
                                         place_of(scales, piece.number, 0, column),
                                         scales.strides[1], piece.k, of_group)
                if offsets != NULL:
                    sums[c] += dot_of_offsets(place_of(scales, piece.number, 0, column),
                                              scales.strides[1],
                                              place_of(offsets, piece.number, 0, column),
                                              offsets.strides[1], sums_of_a, groups)
                continue
            if state.b_unit:
                take_nibbles(at + column * next_, 1, state.b_unit, piece.k, parts.apart)
                weight = parts.apart
            elif state.table != NULL:
                take_by_table(at + column * next_, 1, state.table, taken, piece.k)
            for group in range(groups):
                size = min(of_group, piece.k - group * of_group)
                scale = load_float(scales, piece.number, group, column)
                offset = load_float(offsets, piece.number, group, column) if offsets != NULL else 0
                for r in range(rows):
                    x = <const float *>(parts.a + r * step) + group * of_group
                    if state.table != NULL:
                        found = dot_of_floats(taken + group * of_group, x, size)
                    else:
                        found = dot_of_bytes(weight + group * of_group, x, size)
                    if offsets != NULL:
                        found += offset * sums_of_a[r * groups + group]
                    sums[r * TILE_COLS + c] += scale * found
        prepare_panel(views, state, piece, number * TILE_COLS, cols, &panel)
        for r in range(rows):
            finish_row(views, state, piece, &panel, from_ + r, number * TILE_COLS, cols,
                       <int32_t *>sums + r * TILE_COLS)


cdef inline const char *place_of(const array_view *view, ptrdiff_t number, ptrdiff_t group,
                                 ptrdiff_t column) noexcept nogil:
    """The place of a number of a tensor [weight, group of k, column]."""
    return (view.data + number * view.strides[0] + group * view.strides[1]
            + column * view.strides[2])


cdef inline float load_float(const array_view *view, ptrdiff_t number, ptrdiff_t group,
                             ptrdiff_t column) noexcept nogil:
    return (<const unaligned_float *>place_of(view, number, group, column))[0]


cdef void pack_panel(const array_view *views, const product_state *state, const piece_t *piece,
                     ptrdiff_t first, int cols, const quantized_product_parts *parts,
                     panel_t *panel) noexcept nogil:
    """Pack columns of B, as integers or as the floats that they stand for."""
    cdef const array_view *b = &views[1 + (piece.number if state.several else 0)]
    cdef int last = b.ndim - 1
    cdef ptrdiff_t by = b.strides[last - 1], next_ = b.strides[last]
    cdef const char *at = b.data + (piece.number * b.strides[0] if b.ndim > 2 else 0)
    if state.column_bits and pack_columns(views, state, at + first * next_, by, next_, piece, first,
                                          cols, <float *>parts.b):
        return
    if state.b_unit:
        take_panel(at, by, next_, state, piece.k, first, cols, parts.apart)
        at = <const char *>parts.apart
        by, next_ = TILE_COLS, 1
        if state.along_k:
            by, next_ = 1, state.line
    else:
        at += piece.first_k * by + first * next_
    if state.integers == 4:
        pack_quads(<const int8_t *>at, by, next_, piece.k, cols, parts.b, panel.sums)
    elif state.integers == 2:
        pack_pairs(<const int8_t *>at, by, next_, piece.k, cols, parts.b)
    else:
        pack_floats(views, state, at, by, next_, piece, first, cols, <float *>parts.b)


cdef void multiply_panel(const product_state *state, const char *a, ptrdiff_t step, ptrdiff_t rows,
                         ptrdiff_t groups, const quantized_product_parts *parts) noexcept nogil:
    """Multiply rows by a panel, part by part in the order of k, which add to the same sums."""
    cdef ptrdiff_t begin = 0, n, done
    cdef const char *part
    cdef int32_t *sums
    cdef int more
    while begin < groups or begin == 0:
        n, done, more = min(groups - begin, <ptrdiff_t>GROUPS_AT_ONCE), 0, begin > 0
        part = parts.b + begin * TILE_GROUP * TILE_COLS
        while done < rows:
            sums = parts.sums + done * TILE_COLS
            if state.integers == 4:
                done += tile_of_quads(a + done * step, step, part, n, sums, rows - done, more)
            elif state.integers == 2:
                done += tile_of_pairs(a + done * step, step, part, n, sums, rows - done, more)
            else:
                done += tile_of_floats(a + done * step, step, part, n, sums, rows - done, more)
        a += n * TILE_GROUP
        begin += max(n, <ptrdiff_t>1)


cdef void multiply(const array_view *views, const product_state *state, const piece_t *piece,
                   ptrdiff_t from_, ptrdiff_t to, ptrdiff_t first_panel, ptrdiff_t last_panel,
                   const quantized_product_parts *parts) noexcept nogil:
    """Some rows times some panels."""
    cdef const array_view *a = &views[0]
    cdef const array_view *b = &views[1 + (piece.number if state.several else 0)]
    cdef int last = b.ndim - 1
    cdef ptrdiff_t groups = (piece.k + state.integers - 1) // state.integers
    cdef ptrdiff_t step = row_step(state, piece.k), row = from_, rows, number, i, first
    cdef char *packed_a = parts.a
    cdef int8_t *apart = parts.apart
    cdef const char *at
    cdef panel_t panel
    cdef int cols
    memset(&panel, 0, sizeof(panel))
    cdef ptrdiff_t few = FEWER_ROWS if COLUMNS_AT_ONCE and state.column_bits else FEW_ROWS
    if (state.by_columns and to - from_ <= min(few, state.block)
            and b.strides[last - 1] == 1):
        at = b.data + (piece.number * b.strides[0] if b.ndim > 2 else 0)
        pack_a(a, piece, state, from_, to - from_, step, packed_a, apart)
        multiply_columns(views, state, piece, at, b.strides[last], first_panel, last_panel,
                         from_, <int>(to - from_), parts)
        return
    while row < to:
        rows = min(state.block, to - row)
        pack_a(a, piece, state, row, rows, step, packed_a, apart)
        for number in range(first_panel, last_panel):
            first = number * TILE_COLS
            cols = <int>min(<ptrdiff_t>TILE_COLS, state.n - first)
            pack_panel(views, state, piece, first, cols, parts, &panel)
            prepare_panel(views, state, piece, first, cols, &panel)
            multiply_panel(state, packed_a, step, rows, groups, parts)
            for i in range(rows):
                finish_row(views, state, piece, &panel, row + i, first, cols,
                           parts.sums + i * TILE_COLS)
        row += rows


cdef void clear_rows(const array_view *out, ptrdiff_t first, int size) noexcept nogil:
    """Rows of zeros, from the `first` on, of a matrix whose zero has no bits."""
    cdef ptrdiff_t i, j
    for i in range(first, out.shape[0]):
        for j in range(out.shape[1]):
            memset(out.data + i * out.strides[0] + j * out.strides[1], 0, size)


cdef int check_groups(const array_view *views, const void *given, const void *params, void *scratch,
                      ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """All groups: each begins where the one before it ends."""
    cdef const product_state *state = <const product_state *>given
    cdef const array_view *a = &views[0]
    cdef const array_view *b = &views[1]
    cdef ptrdiff_t weights = b.shape[0] if b.ndim > 2 else max(1, state.several), _number
    cdef int64_t length = a.shape[a.ndim - 2]
    cdef piece_t piece
    cdef groups_t walk
    cdef int failed
    if state.along != ALONG_ROWS:
        length = a.shape[a.ndim - 1] * max(1, 2 * state.a_unit)
    walk.number, walk.end, walk.over = 0, 0, False
    for _number in range(views[state.groups].shape[0]):
        failed = next_group(&views[state.groups], state, weights, length, &walk, &piece,
                            &context.detail)
        if failed:
            return failed
    return 0


cdef int quantized_product(const array_view *views, const void *given, const void *params,
                           void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                           call_context *context) noexcept nogil:
    cdef const product_state *state = <const product_state *>given
    cdef const array_view *a = &views[0]
    cdef const array_view *b = &views[1]
    cdef const array_view *out = &views[state.out]
    cdef ptrdiff_t m = a.shape[a.ndim - 2], k = a.shape[a.ndim - 1] * max(1, 2 * state.a_unit)
    cdef ptrdiff_t weights = b.shape[0] if b.ndim > 2 else max(1, state.several)
    cdef ptrdiff_t panels = (state.n + TILE_COLS - 1) // TILE_COLS
    cdef ptrdiff_t pieces = weights if state.along == BATCHES else views[state.groups].shape[0]
    cdef ptrdiff_t parts = state.row_parts, units = pieces * parts * panels
    cdef ptrdiff_t begin = units * chunk // chunks, end = units * (chunk + 1) // chunks
    cdef ptrdiff_t number, low, high, from_, to, part
    cdef piece_t piece
    cdef groups_t walk
    cdef quantized_product_parts packed
    cdef int failed
    divide_quantized_product(state, row_step(state, k), scratch, &packed)
    piece.first_row, piece.rows, piece.first_k, piece.k = 0, m, 0, k
    walk.number, walk.end, walk.over = 0, 0, False
    for number in range(pieces):
        piece.number = piece.a_batch = piece.out_batch = number
        if state.along != BATCHES:
            failed = next_group(&views[state.groups], state, weights,
                                m if state.along == ALONG_ROWS else k, &walk, &piece,
                                &context.detail)
            if failed:
                return failed
            if state.along == ALONG_K:
                piece.number = 0
            piece.a_batch = 0
        for part in range(parts):
            low = max(begin - (number * parts + part) * panels, <ptrdiff_t>0)
            high = min(end - (number * parts + part) * panels, panels)
            if low >= high:
                continue
            from_ = piece.first_row + piece.rows * part // parts
            to = piece.first_row + piece.rows * (part + 1) // parts
            multiply(views, state, &piece, from_, to, low, high, &packed)
    if state.along == ALONG_ROWS and state.clears and chunk == 0:
        clear_rows(out, walk.end, state.out_size)
    return 0


# --- Elements -------------------------------------------------------------------------------------

cdef inline float rounded(float x, int rounding) noexcept nogil:
    if rounding == 1:
        return floorf(x)
    if rounding == 2:
        return ceilf(x)
    if rounding == 3:
        return truncf(x)
    return x


cdef inline void put_bytes(const float *x, char *to, ptrdiff_t step, ptrdiff_t n, float low,
                           float high) noexcept nogil:
    cdef ptrdiff_t i
    if step == 1:
        for i in range(n):
            (<int8_t *>to)[i] = <int8_t>nearest_within(x[i], low, high)
    else:
        for i in range(n):
            (<int8_t *>(to + i * step))[0] = <int8_t>nearest_within(x[i], low, high)


cdef int quantize(const array_view *views, const void *given, const void *params, void *scratch,
                  ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    cdef const quantize_state *state = <const quantize_state *>given
    cdef const array_view *out = &views[3 if state.has_offset else 2]
    cdef int last = out.ndim - 1
    cdef ptrdiff_t n = out.shape[last], lines = lines_in(out.shape, last, -1), line, i, k, count
    cdef float[BLOCK] x, scale, offset
    cdef const char *place
    cdef const char *scales
    cdef const char *offsets = NULL
    cdef char *to
    for line in range(lines * chunk // chunks, lines * (chunk + 1) // chunks):
        place = line_of(&views[0], out.shape, last, -1, line)
        scales = line_of(&views[1], out.shape, last, -1, line)
        if state.has_offset:
            offsets = line_of(&views[2], out.shape, last, -1, line)
        to = line_of(out, out.shape, last, -1, line)
        k = 0
        while k < n:
            count = min(<ptrdiff_t>BLOCK, n - k)
            state.load(place + k * views[0].strides[last], views[0].strides[last], x, count)
            load_floats(scales + k * views[1].strides[last], views[1].strides[last], scale, count)
            if state.divides:
                for i in range(count):
                    x[i] = x[i] / scale[i]
            else:
                for i in range(count):
                    x[i] = x[i] * scale[i]
                if state.twice:
                    for i in range(count):
                        x[i] = x[i] * scale[i]
            if state.has_offset:
                load_floats(offsets + k * views[2].strides[last], views[2].strides[last], offset,
                            count)
                for i in range(count):
                    x[i] = x[i] + offset[i]
            if state.rounding:
                for i in range(count):
                    x[i] = rounded(x[i], state.rounding)
            if state.wide:
                for i in range(count):
                    (<unaligned_int32 *>(to + (k + i) * out.strides[last]))[0] = (
                        nearest_of_all(x[i]))
            else:
                put_bytes(x, to + k * out.strides[last], out.strides[last], count, state.low,
                          state.high)
            k += count
    return 0


cdef int64_t index_of(const char *place, int size) noexcept nogil:
    if size == 4:
        return (<const unaligned_int32 *>place)[0]
    return (<const unaligned_int64 *>place)[0]


cdef void scale_row(float *x, ptrdiff_t n, float low, float high, bint shifted, float *scale,
                    float *offset) noexcept nogil:
    """Scale, and offset, of a row, which becomes what is to be rounded."""
    cdef float least, most, factor, shift
    cdef ptrdiff_t i
    if not shifted:
        factor = largest_magnitude(x, n) / high
        scale[0] = factor
        if factor == 0:
            memset(x, 0, n * sizeof(float))
            return
        for i in range(n):
            x[i] = x[i] / factor
        return
    find_range(x, n, &least, &most)
    factor = (most - least) / (high - low)
    if factor < <float>1e-12:
        factor = <float>1e-12
    shift = high - most / factor
    scale[0], offset[0] = factor, shift
    for i in range(n):
        x[i] = x[i] / factor + shift


cdef int check_ends(const array_view *views, const void *given, const void *params, void *scratch,
                    ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """Whether each row has a group, which is the first that ends behind it."""
    cdef const dynamic_state *state = <const dynamic_state *>given
    cdef const array_view *ends = &views[2]
    cdef ptrdiff_t group
    cdef int64_t most = 0
    for group in range(ends.shape[0]):
        most = max(most, index_of(ends.data + group * ends.strides[0], state.index_size))
    context.detail = most
    return 0 if most >= views[0].shape[0] else BAD_GROUPS


cdef int dynamic_quant(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    """Rows of a matrix; with groups, each row has the smooth scale of its group."""
    cdef const dynamic_state *state = <const dynamic_state *>given
    cdef int at = 1 + state.has_smooth + (state.groups >= 0)
    cdef const array_view *x = &views[0]
    cdef const array_view *smooth = &views[1]
    cdef const array_view *ends = &views[2]
    cdef const array_view *out = &views[at]
    cdef ptrdiff_t n = x.shape[1], rows = x.shape[0], row, i, k, count, group = 0
    cdef dynamic_quant_parts parts
    cdef float *values
    cdef float[BLOCK] factors
    cdef float scale, offset = 0
    divide_dynamic_quant(state, n, scratch, &parts)
    values = parts.values
    for row in range(rows * chunk // chunks, rows * (chunk + 1) // chunks):
        state.load(x.data + row * x.strides[0], x.strides[1], values, n)
        if state.groups >= 0:
            while group < ends.shape[0] and row >= index_of(ends.data + group * ends.strides[0],
                                                            state.index_size):
                group += 1
            if group == ends.shape[0]:
                context.detail = row
                return BAD_GROUPS
        if state.has_smooth:
            k = 0
            while k < n:
                count = min(<ptrdiff_t>BLOCK, n - k)
                load_floats(smooth.data + group * smooth.strides[0] + k * smooth.strides[1],
                            smooth.strides[1], factors, count)
                for i in range(count):
                    values[k + i] = values[k + i] * factors[i]
                k += count
        scale_row(values, n, state.low, state.high, state.has_offset, &scale, &offset)
        put_bytes(values, out.data + row * out.strides[0], out.strides[1], n, state.low, state.high)
        (<unaligned_float *>(views[at + 1].data + row * views[at + 1].strides[0]))[0] = scale
        if state.has_offset:
            (<unaligned_float *>(views[at + 2].data + row * views[at + 2].strides[0]))[0] = offset
    return 0


# --- SwiGLU of what is dequantised ----------------------------------------------------------------

cdef inline void load_row(const array_view *view, ptrdiff_t group, float *to,
                          ptrdiff_t n) noexcept nogil:
    """Load from a tensor [group, column]."""
    load_floats(view.data + group * view.strides[0], view.strides[1], to, n)


cdef inline float gated(float gate, float linear, int mode, float limit, float alpha,
                        float bias) noexcept nogil:
    if mode == 0:
        return over_one_and_decay(gate, gate) * linear
    if mode != 3:
        gate = limit if gate > limit else gate
    linear = limit if linear > limit else linear
    linear = -limit if linear < -limit else linear
    if mode == 3:
        gate = over_one_and_decay(gate, gate)
        return (limit if gate > limit else gate) * linear
    return over_one_and_decay(gate, alpha * gate) * (linear + bias)


cdef void dequantize_row(const array_view *views, const swiglu_state *state, ptrdiff_t row,
                         ptrdiff_t group, float *values, float *own, ptrdiff_t n) noexcept nogil:
    """A row of x in float32: (x + whole bias)·scales + bias."""
    cdef const array_view *x = &views[0]
    cdef const array_view *bias
    cdef const char *place = x.data + row * x.strides[0]
    cdef float factor
    cdef ptrdiff_t i
    if state.is_whole:
        for i in range(n):
            values[i] = <float>(<unaligned_int32 *>(place + i * x.strides[1]))[0]
        if state.bias >= 0 and state.bias_is_whole:
            bias = &views[state.bias]
            for i in range(n):
                values[i] = <float>(<int32_t>(
                    <uint32_t>(<const unaligned_int32 *>(place + i * x.strides[1]))[0]
                    + <uint32_t>(<const unaligned_int32 *>(
                        bias.data + group * bias.strides[0] + i * bias.strides[1]))[0]))
    else:
        state.load(place, x.strides[1], values, n)
    if state.weight_scale >= 0:
        load_row(&views[state.weight_scale], group, own, n)
        for i in range(n):
            values[i] = values[i] * own[i]
    if state.activation_scale >= 0:
        factor = (<const unaligned_float *>(views[state.activation_scale].data
                                            + row * views[state.activation_scale].strides[0]))[0]
        for i in range(n):
            values[i] = values[i] * factor
    if state.bias >= 0 and not state.bias_is_whole:
        load_row(&views[state.bias], group, own, n)
        for i in range(n):
            values[i] = values[i] + own[i]


cdef inline void put_scale(const array_view *views, const swiglu_state *state, ptrdiff_t row,
                           float scale) noexcept nogil:
    cdef const array_view *out = &views[state.out + 1]
    if state.dynamic:
        (<unaligned_float *>(out.data + row * out.strides[0]))[0] = scale


cdef int check_sizes(const array_view *views, const void *given, const void *params, void *scratch,
                     ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """Groups until all rows have one: whether none is larger than the rows that are left."""
    cdef const swiglu_state *state = <const swiglu_state *>given
    cdef const array_view *sizes = &views[state.groups]
    cdef int64_t end = 0, rows = views[0].shape[0]
    cdef ptrdiff_t group
    for group in range(sizes.shape[0]):
        if end >= rows:
            return 0
        end += max(whole_at(sizes, group, 0), <int64_t>0)
        if end > rows:
            context.detail = end
            return BAD_GROUPS
    return 0


cdef int swiglu_quant(const array_view *views, const void *given, const void *params,
                      void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                      call_context *context) noexcept nogil:
    cdef const swiglu_state *state = <const swiglu_state *>given
    cdef const kernel_number *numbers = <const kernel_number *>params
    cdef float limit = <float>numbers[0].real, alpha = <float>numbers[1].real
    cdef float shift = <float>numbers[2].real, scale, offset
    cdef const array_view *x = &views[0]
    cdef const array_view *out = &views[state.out]
    cdef ptrdiff_t n = x.shape[1], half = n // 2, rows = x.shape[0], row, i, group = 0
    cdef int64_t end = rows, size
    cdef swiglu_quant_parts parts
    cdef float *values
    cdef float *own
    cdef ptrdiff_t gate = 0, linear = half, step = 1
    divide_swiglu_quant(state, n, scratch, &parts)
    values, own = parts.values, parts.own
    if state.mode == 1:
        gate, linear, step = 0, 1, 2
    elif not state.left:
        gate, linear = half, 0
    if state.groups >= 0:
        group, end = -1, 0
    for row in range(rows * (chunk + 1) // chunks):
        while state.groups >= 0 and row >= end:
            group += 1
            if group == views[state.groups].shape[0]:
                end = rows + 1
                break
            size = whole_at(&views[state.groups], group, 0)
            end += max(size, <int64_t>0)
            if end > rows:
                context.detail = end
                return BAD_GROUPS
        if row < rows * chunk // chunks:
            continue
        if end > rows:
            if state.clears:
                memset(own, 0, half * sizeof(float))
                put_bytes(own, out.data + row * out.strides[0], out.strides[1], half, -128, 127)
                put_scale(views, state, row, 0)
            continue
        dequantize_row(views, state, row, max(group, <ptrdiff_t>0), values, own, n)
        for i in range(half):
            own[i] = gated(values[gate + i * step], values[linear + i * step], state.mode, limit,
                           alpha, shift)
        if state.quant_scale >= 0:
            load_row(&views[state.quant_scale], max(group, <ptrdiff_t>0), values, half)
        if state.dynamic:
            if state.quant_scale >= 0:
                for i in range(half):
                    own[i] = own[i] * values[i]
            scale_row(own, half, -128, 127, False, &scale, &offset)
            put_scale(views, state, row, scale)
        elif state.quant_scale >= 0:
            if state.single:
                for i in range(half):
                    own[i] = own[i] * (1 / values[i])
            else:
                for i in range(half):
                    own[i] = own[i] / values[i]
            if state.quant_offset >= 0:
                load_row(&views[state.quant_offset], max(group, <ptrdiff_t>0), values, half)
                for i in range(half):
                    own[i] = own[i] + values[i]
        put_bytes(own, out.data + row * out.strides[0], out.strides[1], half, -128, 127)
    return 0


# --- Bits -----------------------------------------------------------------------------------------

cdef int scale_bits(const array_view *views, const void *given, const void *params, void *scratch,
                    ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """Scales of float32 as the patterns that products take: see `prepare_panel`."""
    cdef bint shifted = (<const bits_state *>given).shifted
    cdef const array_view *out = &views[2 if shifted else 1]
    cdef ptrdiff_t i
    cdef uint64_t bits
    cdef float offset
    for i in range(out.shape[0]):
        bits = bits_of_float((<const unaligned_float *>(views[0].data
                                                        + i * views[0].strides[0]))[0])
        bits = (bits & 0xFFFFE000u) | (1ull << 46)
        if shifted:
            offset = (<const unaligned_float *>(views[1].data + i * views[1].strides[0]))[0]
            bits |= (<uint64_t>(nearest_within(offset, -256, 255) & 0x1FF)) << 37
        (<unaligned_uint64 *>(out.data + i * out.strides[0]))[0] = bits
    return 0


cdef int scale_of_bits(const array_view *views, const void *given, const void *params,
                       void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                       call_context *context) noexcept nogil:
    """The scales of such patterns."""
    cdef const array_view *out = &views[1]
    cdef ptrdiff_t i
    cdef uint64_t bits
    for i in range(out.shape[0]):
        bits = (<const unaligned_uint64 *>(views[0].data + i * views[0].strides[0]))[0]
        (<unaligned_float *>(out.data + i * out.strides[0]))[0] = (
            float_of_bits(<uint32_t>bits & 0xFFFFE000u))
    return 0


cdef int pack4(const array_view *views, const void *given, const void *params, void *scratch,
               ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """Integers of four bits in elements of some bytes, the first in their lowest bits."""
    cdef int unit = (<const nibbles_state *>given).unit, t
    cdef const array_view *x = &views[0]
    cdef const array_view *out = &views[1]
    cdef ptrdiff_t row, i, rows = out.shape[0], step = x.strides[1]
    cdef const char *place
    cdef char *to
    for row in range(rows * chunk // chunks, rows * (chunk + 1) // chunks):
        for i in range(out.shape[1]):
            place = x.data + row * x.strides[0] + 2 * unit * i * step
            to = out.data + row * out.strides[0] + i * out.strides[1]
            for t in range(unit):
                to[t] = <char>((place[0] & 15) | (place[step] & 15) << 4)
                place += 2 * step
    return 0


cdef int unpack4(const array_view *views, const void *given, const void *params, void *scratch,
                 ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    """Such elements as integers of eight bits."""
    cdef int unit = (<const nibbles_state *>given).unit
    cdef const array_view *x = &views[0]
    cdef const array_view *out = &views[1]
    cdef ptrdiff_t row, i, k, n, rows = x.shape[0]
    cdef int8_t[BLOCK] run
    cdef char *to
    for row in range(rows * chunk // chunks, rows * (chunk + 1) // chunks):
        to = out.data + row * out.strides[0]
        k = 0
        while k < out.shape[1]:
            n = min(<ptrdiff_t>BLOCK, out.shape[1] - k)
            take_nibbles(x.data + row * x.strides[0] + k // (2 * unit) * x.strides[1],
                         x.strides[1], unit, n, run)
            for i in range(n):
                (<int8_t *>to)[0] = run[i]
                to += out.strides[1]
            k += n
    return 0


# --- For other modules ----------------------------------------------------------------------------

def requantize(size_t sums, size_t less, size_t scale, size_t shift, Py_ssize_t rows,
               Py_ssize_t channels, Py_ssize_t n, double low, double high, double zero,
               size_t out):
    """Requantize rows of `n` sums of int32, several for each channel, into bytes.

    Parameters
    ----------
    sums, less, scale, shift, out : int
        Addresses: of all sums, of an int32 and two float64 for each channel, of a byte of each.
    rows, channels, n : int
        Sizes of the sums; all elements are contiguous.
    low, high, zero : float
        Whole numbers: results are rounded between the first two, then the third is added.
    """
    with nogil:
        requantize_channels(<const int32_t *>sums, <const int32_t *>less, <const double *>scale,
                            <const double *>shift, rows, channels, n, low, high, zero,
                            <uint8_t *>out)


cdef void requantize_channels(const int32_t *sums, const int32_t *less, const double *scale,
                              const double *shift, Py_ssize_t rows, Py_ssize_t channels,
                              Py_ssize_t n, double low, double high, double zero,
                              uint8_t *out) noexcept nogil:
    cdef Py_ssize_t _row, channel
    for _row in range(rows):
        for channel in range(channels):
            requantize_row(sums, less[channel], scale[channel], shift[channel], low, high, zero,
                           out, n)
            sums += n
            out += n


# --- Kernels of nodes -----------------------------------------------------------------------------

# Made of the records: functions that pack the states.
include "quantized_nodes.pxi"
