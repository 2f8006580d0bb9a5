"""The kernels: load, compute, store, each by blocks that stay in the first-level cache.

An operator's loop is written once, over its formula; conversions are written once, over the
dtypes.  A compute kernel puts them together at run time: every input is loaded into a block of
float or double (or read in place where it is such a block already), the formula's loop runs over
the block, and the result is rounded once as it is stored.  Loads, formulas and stores add up
instead of multiplying.

This file is compiled once per instruction set, each time into a module of its own.
"""

from libc.stdint cimport (
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint8_t,
    uint16_t,
    uint32_t,
    uint64_t,
    uintptr_t,
)
from libc.stdlib cimport calloc, free, llabs
from libc.string cimport memcpy, memset

cimport aclnn._formulas as formulas
from aclnn._formulas cimport real

cdef extern from "tile_abi.h":
    ctypedef struct tile_view:
        char *data
        ptrdiff_t row_stride
        ptrdiff_t col_stride
    int TILE_STREAM
    ctypedef void (*tile_kernel)(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                                 const void *state, const double *scalars, int flags) noexcept nogil

cdef extern from "half.h" nogil:
    ctypedef struct half_t:
        uint16_t bits
    ctypedef struct bfloat16_t:
        uint16_t bits
    float half_to_f32(half_t) noexcept
    float bfloat16_to_f32(bfloat16_t) noexcept
    half_t half_of_f32(float) noexcept
    bfloat16_t bfloat16_of_f32(float) noexcept
    half_t half_of_f64(double) noexcept
    bfloat16_t bfloat16_of_f64(double) noexcept
    void halves_to_floats(const half_t *, float *, ptrdiff_t) noexcept
    void floats_to_halves(const float *, half_t *, ptrdiff_t) noexcept
    int round_halves(const float *, ptrdiff_t, float, uint16_t *, uint16_t *) noexcept
    int round_bfloat16s(const float *, ptrdiff_t, float, uint16_t *, uint16_t *) noexcept

cdef extern from "stream_store.h" nogil:
    void stream_bytes(char *, const char *, ptrdiff_t) noexcept
    void stream_fence() noexcept
    void prefetch_bytes(const char *, ptrdiff_t) noexcept

cdef extern from *:
    """
    #if defined(__x86_64__) || defined(_M_X64)
    static int cpu_has(int level) {
        __builtin_cpu_init();
        if (level == 2) return __builtin_cpu_supports("x86-64-v2");
        if (level == 3) return __builtin_cpu_supports("x86-64-v3");
        if (level == 4) return __builtin_cpu_supports("x86-64-v4");
        return 1;
    }
    #else
    static int cpu_has(int level) { return level == 0; }
    #endif
    """
    int cpu_has(int) nogil

ctypedef fused source_t:
    float
    double
    half_t
    bfloat16_t
    int8_t
    uint8_t
    int16_t
    int32_t
    int64_t

ctypedef fused target_t:
    float
    double
    half_t
    bfloat16_t

ctypedef struct pair_t:
    uint64_t low
    uint64_t high

ctypedef fused part_t:
    float
    double

ctypedef fused bits_t:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    pair_t

cdef enum:
    BLOCK = 256      # elements of a block: three of them in double are 6 KiB
    LINE = 64        # bytes of a cache line
    AHEAD = 4        # blocks between reading and asking for
    PATCH = 16       # side of a square block, for operands that lie transposed

ctypedef void (*load_fn)(const char *, ptrdiff_t, void *, ptrdiff_t) noexcept nogil
ctypedef void (*store_fn)(const void *, char *, ptrdiff_t, ptrdiff_t) noexcept nogil
ctypedef int (*float_loop)(const float *, const float *, float *, ptrdiff_t, const double *) noexcept nogil
ctypedef int (*double_loop)(const double *, const double *, double *, ptrdiff_t, const double *) noexcept nogil
ctypedef void (*mark_fn)(const float *, const float *, uint16_t *, ptrdiff_t, const double *) noexcept nogil
ctypedef int (*round_fn)(const float *, ptrdiff_t, float, uint16_t *, uint16_t *) noexcept nogil


# --- Loads and stores ---------------------------------------------------------------------------

cdef inline real loaded(source_t x, real like) noexcept nogil:
    if source_t is half_t:
        return half_to_f32(x)
    elif source_t is bfloat16_t:
        return bfloat16_to_f32(x)
    else:
        return <real>x


cdef void load(const source_t *src, ptrdiff_t stride, real *dst, ptrdiff_t n) noexcept nogil:
    """Convert `n` elements, `stride` bytes apart, to a dense run of float or double."""
    cdef ptrdiff_t i
    cdef real value
    if stride == sizeof(source_t):
        if source_t is half_t:
            if real is float:
                halves_to_floats(src, dst, n)
                return
        for i in range(n):
            dst[i] = loaded(src[i], <real>0)
    elif stride == 0:
        value = loaded(src[0], <real>0)
        for i in range(n):
            dst[i] = value
    else:
        for i in range(n):
            dst[i] = loaded((<const source_t *>(<const char *>src + i * stride))[0], <real>0)


cdef inline target_t stored(real x, target_t like) noexcept nogil:
    if target_t is half_t:
        if real is float:
            return half_of_f32(x)
        else:
            return half_of_f64(x)
    elif target_t is bfloat16_t:
        if real is float:
            return bfloat16_of_f32(x)
        else:
            return bfloat16_of_f64(x)
    else:
        return <target_t>x


cdef void store(const real *src, target_t *dst, ptrdiff_t stride, ptrdiff_t n) noexcept nogil:
    """Round a dense run to elements `stride` bytes apart."""
    cdef ptrdiff_t i
    if stride == sizeof(target_t):
        if target_t is half_t:
            if real is float:
                floats_to_halves(src, dst, n)
                return
        for i in range(n):
            dst[i] = stored(src[i], dst[0])
    else:
        for i in range(n):
            (<target_t *>(<char *>dst + i * stride))[0] = stored(src[i], dst[0])


cdef void store_complex(const real *src, part_t *dst, ptrdiff_t stride, ptrdiff_t n) noexcept nogil:
    """Real parts from a dense run, imaginary parts zero."""
    cdef ptrdiff_t i
    cdef part_t *element
    for i in range(n):
        element = <part_t *>(<char *>dst + i * stride)
        element[0] = <part_t>src[i]
        element[1] = 0


cdef void copy_bits(const bits_t *src, ptrdiff_t src_stride, bits_t *dst, ptrdiff_t dst_stride,
                    ptrdiff_t n) noexcept nogil:
    """Elements as they are, payloads of NaNs included."""
    cdef ptrdiff_t i
    if src_stride == sizeof(bits_t) and dst_stride == sizeof(bits_t):
        memcpy(dst, src, n * sizeof(bits_t))
        return
    for i in range(n):
        (<bits_t *>(<char *>dst + i * dst_stride))[0] = (
            <const bits_t *>(<const char *>src + i * src_stride))[0]


# --- One loop per formula -----------------------------------------------------------------------

cdef int leaky_relu(const real *x, const real *unused, real *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.leaky_relu(x[i], p)
    return 0


cdef int leaky_relu_backward(const real *g, const real *x, real *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.leaky_relu_backward(g[i], x[i], p)
    return 0


cdef int hardshrink(const real *x, const real *unused, real *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.hardshrink(x[i], p)
    return 0


cdef int hardshrink_backward(const real *g, const real *x, real *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.hardshrink_backward(g[i], x[i], p)
    return 0


cdef int logit_backward(const double *x, const double *dy, double *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.logit_backward_precise(x[i], dy[i], p)
    return 0


cdef int logit_backward_single(const float *x, const float *dy, float *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    cdef int suspects = formulas.logit_backward_odd(p)
    for i in range(n):
        out[i] = formulas.logit_backward(x[i], dy[i], p, True)
        suspects |= formulas.logit_backward_suspect(x[i], dy[i], p)
    return suspects


cdef int logit_backward_half(const float *x, const float *dy, float *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    cdef int suspects = formulas.logit_backward_odd(p)
    for i in range(n):
        out[i] = formulas.logit_backward(x[i], dy[i], p, False)
        suspects |= formulas.logit_backward_suspect(x[i], dy[i], p)
    return suspects


cdef void logit_backward_mark(const float *x, const float *dy, uint16_t *doubt, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        doubt[i] |= formulas.logit_backward_odd(p) | formulas.logit_backward_suspect(x[i], dy[i], p)


cdef int elu(const double *x, const double *unused, double *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.elu(x[i], p)
    return 0


cdef int elu_backward(const double *g, const double *x, double *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.elu_backward(g[i], x[i], p)
    return 0


cdef int elu_backward_single(const float *g, const float *x, float *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    cdef int suspects = formulas.elu_backward_odd(p)
    for i in range(n):
        out[i] = formulas.elu_backward_single(g[i], x[i], p)
        suspects |= formulas.elu_backward_single_suspect(g[i], x[i], p)
    return suspects


cdef void elu_backward_mark_single(const float *g, const float *x, uint16_t *doubt, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        doubt[i] |= formulas.elu_backward_odd(p) | formulas.elu_backward_single_suspect(g[i], x[i], p)


cdef int elu_backward_half(const float *g, const float *x, float *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    cdef int suspects = formulas.elu_backward_odd(p)
    for i in range(n):
        out[i] = formulas.elu_backward(g[i], x[i], p)
        suspects |= formulas.elu_backward_suspect(g[i], x[i], p)
    return suspects


cdef void elu_backward_mark(const float *g, const float *x, uint16_t *doubt, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        doubt[i] |= formulas.elu_backward_odd(p) | formulas.elu_backward_suspect(g[i], x[i], p)


cdef int elu_backward_result(const double *g, const double *y, double *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.elu_backward_result(g[i], y[i], p)
    return 0


cdef int gelu(const double *x, const double *unused, double *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.gelu(x[i], p)
    return 0


cdef int gelu_tanh(const double *x, const double *unused, double *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.gelu_tanh(x[i], p)
    return 0


cdef int gelu_backward(const double *g, const double *x, double *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.gelu_backward(g[i], x[i], p)
    return 0


cdef int gelu_backward_single(const float *g, const float *x, float *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.gelu_backward_single(g[i], x[i], p)
    return 0


cdef int gelu_backward_half(const float *g, const float *x, float *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    cdef int suspects = 0
    for i in range(n):
        out[i] = formulas.gelu_backward(g[i], x[i], p)
        suspects |= formulas.gelu_backward_suspect(g[i], x[i], p)
    return suspects


cdef void gelu_backward_mark(const float *g, const float *x, uint16_t *doubt, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        doubt[i] |= formulas.gelu_backward_suspect(g[i], x[i], p)


cdef int gelu_backward_tanh(const double *g, const double *x, double *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.gelu_backward_tanh(g[i], x[i], p)
    return 0


cdef int logit(const double *x, const double *unused, double *out, ptrdiff_t n, const double *p) noexcept nogil:
    cdef ptrdiff_t i
    for i in range(n):
        out[i] = formulas.logit(x[i], p)
    return 0


# --- The compute kernel -------------------------------------------------------------------------

cdef struct compute_state:
    int n_inputs
    bint dense_input[2]      # in the compute type already: may be read in place
    bint dense_output
    int out_size
    load_fn loads[2]
    store_fn store
    store_fn store_precise   # from double
    void *loop               # a float_loop or a double_loop
    void *exact              # the double form, for elements that `mark` picks
    mark_fn mark             # of elements that the float form does not know; may be NULL
    float bound              # of the relative error; not 0: results are rounded by `round`
    round_fn round

cdef struct block_t:
    # A rectangle of at most BLOCK elements of a tile.
    ptrdiff_t row, col, rows, cols


cdef inline void compute(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                         const compute_state *state, const double *scalars, int flags,
                         real like) noexcept nogil:
    """Go through a tile by blocks."""
    cdef block_t block
    cdef ptrdiff_t high, wide
    cdef int n = state.n_inputs + 1
    if rows > 1 and one_row(views, n, cols):
        cols *= rows
        rows = 1
    block_shape(views, n, rows, cols, &high, &wide)
    if high == 1 and nothing_to_convert(views, state, sizeof(real), flags):
        wide = cols  # no buffer limits a block that is read and written where it lies
    block.row = 0
    while block.row < rows:
        block.rows = min(high, rows - block.row)
        block.col = 0
        # Streamed blocks begin at a line's boundary: a line must not be written in two ways.
        block.cols = 0
        if high == 1:
            block.cols = min(to_line(&views[state.n_inputs], block.row, flags), cols)
        if block.cols:
            compute_block(views, &block, state, scalars, flags, like)
            block.col = block.cols
        while block.col < cols:
            block.cols = min(wide, cols - block.col)
            compute_block(views, &block, state, scalars, flags, like)
            block.col += wide
        block.row += high
    if flags & TILE_STREAM:
        stream_fence()


cdef inline ptrdiff_t to_line(const tile_view *out, ptrdiff_t row, int flags) noexcept nogil:
    """Elements of a dense row before its first line boundary, 0 where it is not streamed."""
    cdef uintptr_t start = <uintptr_t>(out.data + row * out.row_stride)
    cdef ptrdiff_t size = out.col_stride
    if not flags & TILE_STREAM or size <= 0 or size > 8:
        return 0
    return (-<ptrdiff_t>start & (LINE - 1)) // size


cdef inline bint nothing_to_convert(const tile_view *views, const compute_state *state,
                                    ptrdiff_t size, int flags) noexcept nogil:
    cdef int k
    for k in range(state.n_inputs):
        if not state.dense_input[k] or views[k].col_stride != size:
            return False
    return writes_in_place(&views[state.n_inputs], state, size, flags)


cdef inline bint one_row(const tile_view *views, int n, ptrdiff_t cols) noexcept nogil:
    """Whether the rows of every operand follow one another without a break."""
    cdef int k
    for k in range(n):
        if views[k].row_stride != cols * views[k].col_stride:
            return False
    return True


cdef inline void block_shape(const tile_view *views, int n, ptrdiff_t rows, ptrdiff_t cols,
                             ptrdiff_t *high, ptrdiff_t *wide) noexcept nogil:
    """Long rows as they are, short rows together, square patches where an operand is transposed."""
    cdef int k
    high[0] = 1
    wide[0] = BLOCK
    if rows == 1:
        return
    for k in range(n):
        if views[k].row_stride != 0 and llabs(views[k].row_stride) < llabs(views[k].col_stride):
            high[0] = wide[0] = PATCH
            return
    if cols < BLOCK:
        wide[0] = cols
        high[0] = BLOCK // cols


cdef inline char *place(const tile_view *view, const block_t *block) noexcept nogil:
    return view.data + block.row * view.row_stride + block.col * view.col_stride


cdef inline void compute_block(const tile_view *views, const block_t *block,
                               const compute_state *state, const double *scalars, int flags,
                               real like) noexcept nogil:
    cdef char memory[3 * BLOCK * 8 + LINE]
    cdef real *buffers = <real *>(memory + (-<ptrdiff_t><uintptr_t>memory & (LINE - 1)))
    cdef const real *inputs[2]
    cdef const tile_view *out = &views[state.n_inputs]
    cdef ptrdiff_t count = block.rows * block.cols
    cdef real *result = buffers + 2 * BLOCK
    cdef bint direct, suspects
    cdef int k
    inputs[1] = buffers + BLOCK
    for k in range(state.n_inputs):
        if flags & TILE_STREAM and block.rows == 1:
            # Out of cache: ask for a later block while this one is computed.
            prefetch_bytes(place(&views[k], block) + AHEAD * BLOCK * views[k].col_stride,
                           BLOCK * views[k].col_stride)
        inputs[k] = <const real *>read_block(&views[k], block, state, k,
                                             <char *>(buffers + k * BLOCK), sizeof(real))
    if real is float:
        if state.bound != 0:
            suspects = (<float_loop>state.loop)(inputs[0], inputs[1], result, count, scalars)
            write_rounded(out, block, state, inputs, result, suspects, scalars, flags)
            return
    direct = block.rows == 1 and writes_in_place(out, state, sizeof(real), flags)
    if direct:
        result = <real *>place(out, block)
    if real is float:
        suspects = (<float_loop>state.loop)(inputs[0], inputs[1], result, count, scalars)
        if suspects:
            repair(inputs, result, count, state, scalars)
    else:
        (<double_loop>state.loop)(inputs[0], inputs[1], result, count, scalars)
    if not direct:
        write_block(out, block, state, <const char *>result, sizeof(real), flags)


cdef inline bint writes_in_place(const tile_view *out, const compute_state *state, ptrdiff_t size,
                                 int flags) noexcept nogil:
    """Whether a row of results can be written where it belongs at once.

    A repair reads the inputs again, which the result must not have replaced yet.
    """
    return (state.dense_output and out.col_stride == size and not flags & TILE_STREAM
            and state.mark == NULL)


cdef inline const void *read_block(const tile_view *view, const block_t *block,
                                   const compute_state *state, int k, char *buffer,
                                   ptrdiff_t size) noexcept nogil:
    """The block of an input in the compute type: its own memory, or converted into `buffer`."""
    cdef char *source = place(view, block)
    cdef ptrdiff_t i
    if state.dense_input[k] and block.rows == 1 and view.col_stride == size:
        return source
    for i in range(block.rows):
        state.loads[k](source + i * view.row_stride, view.col_stride,
                       buffer + i * block.cols * size, block.cols)
    return buffer


cdef inline void write_block(const tile_view *view, const block_t *block,
                             const compute_state *state, const char *buffer, ptrdiff_t size,
                             int flags) noexcept nogil:
    cdef char *target = place(view, block)
    cdef char rounded[BLOCK * 8]
    cdef ptrdiff_t i
    if flags & TILE_STREAM and block.rows == 1 and view.col_stride == state.out_size:
        if state.dense_output:
            stream_bytes(target, buffer, block.cols * size)
        else:
            state.store(buffer, rounded, state.out_size, block.cols)
            stream_bytes(target, rounded, block.cols * state.out_size)
        return
    for i in range(block.rows):
        state.store(buffer + i * block.cols * size, target + i * view.row_stride, view.col_stride,
                    block.cols)


cdef struct picked_t:
    # Elements of a block that are computed once more, in double.
    ptrdiff_t count
    ptrdiff_t where[BLOCK]
    double results[BLOCK]


cdef void pick(const uint16_t *doubt, ptrdiff_t n, picked_t *picked) noexcept nogil:
    """List the doubtful elements. They are rare: look at four at a time."""
    cdef ptrdiff_t i = 0, j
    cdef uint64_t four
    picked.count = 0
    while i < n:
        if i + 4 <= n:
            memcpy(&four, doubt + i, 8)
            if four == 0:
                i += 4
                continue
        for j in range(i, min(i + 4, n)):
            picked.where[picked.count] = j
            picked.count += doubt[j] != 0
        i += 4


cdef void compute_picked(const float **inputs, const compute_state *state, const double *scalars,
                         picked_t *picked) noexcept nogil:
    cdef double wide[2][BLOCK]
    cdef ptrdiff_t i
    for i in range(picked.count):
        wide[0][i] = inputs[0][picked.where[i]]
        wide[1][i] = inputs[1][picked.where[i]]
    (<double_loop>state.exact)(wide[0], wide[1], picked.results, picked.count, scalars)


cdef void repair(const float **inputs, float *out, ptrdiff_t n, const compute_state *state,
                 const double *scalars) noexcept nogil:
    """Compute the elements that the float form may get wrong once more, in double."""
    cdef picked_t picked
    cdef uint16_t doubt[BLOCK]
    cdef ptrdiff_t i
    memset(doubt, 0, sizeof(doubt))
    state.mark(inputs[0], inputs[1], doubt, n, scalars)
    pick(doubt, n, &picked)
    compute_picked(inputs, state, scalars, &picked)
    for i in range(picked.count):
        out[picked.where[i]] = <float>picked.results[i]


cdef inline void write_rounded(const tile_view *view, const block_t *block,
                               const compute_state *state, const float **inputs,
                               const float *result, bint suspects, const double *scalars,
                               int flags) noexcept nogil:
    """Round to halves; where the error's bound leaves two of them, let the precise form choose."""
    cdef uint16_t rounded[BLOCK]
    cdef uint16_t doubt[BLOCK]
    cdef char *target = place(view, block)
    cdef ptrdiff_t count = block.rows * block.cols
    cdef bint dense = block.rows == 1 and view.col_stride == 2
    cdef bint direct = dense and not flags & TILE_STREAM
    cdef uint16_t *halves = <uint16_t *>target if direct else rounded
    cdef ptrdiff_t i
    cdef bint doubtful = state.round(result, count, state.bound, halves, doubt)
    if suspects:
        state.mark(inputs[0], inputs[1], doubt, count, scalars)
    if doubtful | suspects:
        settle(inputs, halves, doubt, count, state, scalars)
    if direct:
        return
    if dense:
        stream_bytes(target, <const char *>rounded, 2 * count)
        return
    for i in range(block.rows):
        copy_bits(rounded + i * block.cols, 2, <uint16_t *>(target + i * view.row_stride),
                  view.col_stride, block.cols)


cdef void settle(const float **inputs, uint16_t *halves, const uint16_t *doubt, ptrdiff_t n,
                 const compute_state *state, const double *scalars) noexcept nogil:
    """Compute the doubtful elements in double and round them from there."""
    cdef picked_t picked
    cdef ptrdiff_t i
    pick(doubt, n, &picked)
    compute_picked(inputs, state, scalars, &picked)
    for i in range(picked.count):
        state.store_precise(<const char *>&picked.results[i],
                            <char *>(halves + picked.where[i]), 2, 1)


cdef void compute_in_float(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                           const void *state, const double *scalars, int flags) noexcept nogil:
    compute(views, rows, cols, <const compute_state *>state, scalars, flags, <float>0)


cdef void compute_in_double(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                            const void *state, const double *scalars, int flags) noexcept nogil:
    compute(views, rows, cols, <const compute_state *>state, scalars, flags, <double>0)


# --- The cast kernel: also every copy -----------------------------------------------------------

cdef struct cast_state:
    int in_size
    int out_size
    bint copy
    load_fn load
    store_fn store


cdef void cast_tile(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols, const void *opaque,
                    const double *scalars, int flags) noexcept nogil:
    cdef const cast_state *state = <const cast_state *>opaque
    cdef block_t block
    cdef ptrdiff_t high, wide
    if rows > 1 and one_row(views, 2, cols):
        cols *= rows
        rows = 1
    block_shape(views, 2, rows, cols, &high, &wide)
    block.row = 0
    while block.row < rows:
        block.rows = min(high, rows - block.row)
        block.col = 0
        while block.col < cols:
            block.cols = min(wide, cols - block.col)
            cast_block(views, &block, state)
            block.col += wide
        block.row += high


cdef inline void cast_block(const tile_view *views, const block_t *block,
                            const cast_state *state) noexcept nogil:
    cdef double buffer[BLOCK]
    cdef char *source
    cdef char *target
    cdef ptrdiff_t i
    for i in range(block.rows):
        source = place(&views[0], block) + i * views[0].row_stride
        target = place(&views[1], block) + i * views[1].row_stride
        if not state.copy:
            state.load(source, views[0].col_stride, buffer, block.cols)
            state.store(buffer, target, views[1].col_stride, block.cols)
        else:
            copy_elements(source, views[0].col_stride, target, views[1].col_stride, block.cols,
                          state.in_size)


cdef inline void copy_elements(const char *src, ptrdiff_t src_stride, char *dst,
                               ptrdiff_t dst_stride, ptrdiff_t n, int size) noexcept nogil:
    if size == 1:
        copy_bits(<const uint8_t *>src, src_stride, <uint8_t *>dst, dst_stride, n)
    elif size == 2:
        copy_bits(<const uint16_t *>src, src_stride, <uint16_t *>dst, dst_stride, n)
    elif size == 4:
        copy_bits(<const uint32_t *>src, src_stride, <uint32_t *>dst, dst_stride, n)
    elif size == 8:
        copy_bits(<const uint64_t *>src, src_stride, <uint64_t *>dst, dst_stride, n)
    else:
        copy_bits(<const pair_t *>src, src_stride, <pair_t *>dst, dst_stride, n)


# --- Tables: what there is, by name -------------------------------------------------------------

cdef struct formula_t:
    int n_inputs
    float_loop in_float      # NULL: the formula is evaluated in double for every dtype
    float_loop for_half      # the float form for halves; NULL: they too are evaluated in double
    double_loop in_double    # the precise form
    mark_fn mark             # which elements of a float form the precise one computes again
    float bound              # relative error of the form for halves; 0: it is exact
    mark_fn mark_single      # the same for float32 results

cdef dict _formula_numbers = {}
cdef formula_t[32] _formulas
FORMULAS = {}


cdef add(str name, tuple inputs, tuple scalars, float_loop in_float, float_loop for_half,
         double_loop in_double, mark_fn mark=NULL, float bound=0, mark_fn mark_single=NULL):
    number = len(_formula_numbers)
    _formula_numbers[name] = number
    _formulas[number] = formula_t(
        len(inputs), in_float, for_half, in_double, mark, bound, mark_single)
    FORMULAS[name] = (inputs, scalars)


add("leaky_relu", ("x",), ("slope",), leaky_relu[float], leaky_relu[float], leaky_relu[double],
    NULL, 1e-7)
add("leaky_relu_backward", ("g", "x"), ("slope",), leaky_relu_backward[float],
    leaky_relu_backward[float], leaky_relu_backward[double], NULL, 1e-7)
add("hardshrink", ("x",), ("lambd",), hardshrink[float], hardshrink[float], hardshrink[double])
add("hardshrink_backward", ("g", "x"), ("lambd",), hardshrink_backward[float],
    hardshrink_backward[float], hardshrink_backward[double])
add("logit_backward", ("x", "dy"), ("eps",), logit_backward_single, logit_backward_half,
    logit_backward, logit_backward_mark, 4e-7, logit_backward_mark)
add("elu", ("x",), ("alpha", "scale", "input_scale"), NULL, NULL, elu)
add("elu_backward", ("g", "x"), ("alpha", "scale", "input_scale"), elu_backward_single,
    elu_backward_half, elu_backward, elu_backward_mark, 5e-7, elu_backward_mark_single)
add("elu_backward_result", ("g", "y"), ("alpha", "scale", "input_scale"), NULL, NULL,
    elu_backward_result)
add("gelu", ("x",), (), NULL, NULL, gelu)
add("gelu_tanh", ("x",), (), NULL, NULL, gelu_tanh)
add("gelu_backward", ("g", "x"), (), gelu_backward_single, gelu_backward_half, gelu_backward,
    gelu_backward_mark, 8e-7)
add("gelu_backward_tanh", ("g", "x"), (), NULL, NULL, gelu_backward_tanh)
add("logit", ("x",), ("eps",), NULL, NULL, logit)

ITEM_SIZES = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int8": 1, "uint8": 1, "bool": 1,
    "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "complex64": 8,
    "complex128": 16,
}


cdef load_fn loader(str dtype, real like) except NULL:
    if dtype == "float32":
        return <load_fn>load[float, real]
    if dtype == "float64":
        return <load_fn>load[double, real]
    if dtype == "float16":
        return <load_fn>load[half_t, real]
    if dtype == "bfloat16":
        return <load_fn>load[bfloat16_t, real]
    if dtype == "int8":
        return <load_fn>load[int8_t, real]
    if dtype in ("uint8", "bool"):
        return <load_fn>load[uint8_t, real]
    if dtype == "int16":
        return <load_fn>load[int16_t, real]
    if dtype == "int32":
        return <load_fn>load[int32_t, real]
    if dtype == "int64":
        return <load_fn>load[int64_t, real]
    raise ValueError(f"no kernel reads {dtype}")


cdef store_fn storer(str dtype, real like) except NULL:
    if dtype == "float32":
        return <store_fn>store[real, float]
    if dtype == "float64":
        return <store_fn>store[real, double]
    if dtype == "float16":
        return <store_fn>store[real, half_t]
    if dtype == "bfloat16":
        return <store_fn>store[real, bfloat16_t]
    if dtype == "complex64":
        return <store_fn>store_complex[real, float]
    if dtype == "complex128":
        return <store_fn>store_complex[real, double]
    raise ValueError(f"no kernel writes {dtype}")


cdef class KernelRef:
    """A kernel made for certain dtypes; owns the state that its address stands for.

    Attributes
    ----------
    fn, state : int
        Addresses of a `tile_kernel` and of what it is called with.
    name : str
    """

    cdef readonly str name
    cdef readonly size_t fn
    cdef void *memory

    def __dealloc__(self):
        free(self.memory)

    @property
    def state(self):
        return <size_t>self.memory

    def __repr__(self):
        return f"<KernelRef {self.name}>"


cdef KernelRef new_ref(str name, tile_kernel fn, size_t size):
    cdef KernelRef ref = KernelRef.__new__(KernelRef)
    ref.name = name
    ref.fn = <size_t>fn
    ref.memory = calloc(1, size)
    if ref.memory == NULL:
        raise MemoryError
    return ref


def compute_kernel(str formula, tuple in_dtypes, str out_dtype):
    """The kernel of a formula for these dtypes.

    Parameters
    ----------
    formula : str
        A key of `FORMULAS`.
    in_dtypes : tuple of str
        Of the inputs, in the formula's order; each is read as if converted to the compute type.
    out_dtype : str
        'float32', 'float16', 'bfloat16' or 'float64'; the exact value is rounded to it once.

    Returns
    -------
    KernelRef
    """
    cdef const formula_t *row = &_formulas[<int>_formula_numbers[formula]]
    cdef bint half = out_dtype in ("float16", "bfloat16")
    cdef float_loop loop = row.for_half if half else row.in_float
    cdef bint wide = out_dtype == "float64" or loop == NULL
    cdef KernelRef ref
    cdef compute_state *state
    if len(in_dtypes) != row.n_inputs:
        raise ValueError(f"{formula} takes {row.n_inputs} inputs, {len(in_dtypes)} dtypes given")
    name = f"{formula}[{','.join(in_dtypes)}->{out_dtype}]"
    ref = new_ref(name, compute_in_double if wide else compute_in_float, sizeof(compute_state))
    state = <compute_state *>ref.memory
    state.n_inputs = row.n_inputs
    for k, dtype in enumerate(in_dtypes):
        state.loads[<int>k] = loader(dtype, <double>0) if wide else loader(dtype, <float>0)
        state.dense_input[<int>k] = dtype == ("float64" if wide else "float32")
    state.out_size = ITEM_SIZES[out_dtype]
    state.dense_output = out_dtype == ("float64" if wide else "float32")
    state.store = storer(out_dtype, <double>0) if wide else storer(out_dtype, <float>0)
    state.exact = <void *>row.in_double
    state.loop = <void *>row.in_double if wide else <void *>loop
    state.store_precise = storer(out_dtype, <double>0)
    if not wide:
        state.mark = row.mark if half else row.mark_single
    if half and not wide and row.bound:
        state.bound = row.bound
        state.round = round_halves if out_dtype == "float16" else round_bfloat16s
    return ref


def cast_kernel(str src, str dst):
    """The kernel that converts `src` to `dst`, rounding once; a copy where they are the same.

    Parameters
    ----------
    src, dst : str
        Names of dtypes.

    Returns
    -------
    KernelRef
    """
    cdef KernelRef ref = new_ref(f"cast[{src}->{dst}]", cast_tile, sizeof(cast_state))
    cdef cast_state *state = <cast_state *>ref.memory
    cdef bint wide = "float64" in (src, dst) or dst == "complex128"
    state.in_size, state.out_size = ITEM_SIZES[src], ITEM_SIZES[dst]
    state.copy = src == dst
    if not state.copy:
        state.load = loader(src, <double>0) if wide else loader(src, <float>0)
        state.store = storer(dst, <double>0) if wide else storer(dst, <float>0)
    return ref


def cpu_supports(int level):
    """Whether this CPU has x86-64-v2, v3 or v4 (`level` 2, 3, 4); level 0 is any CPU.

    >>> cpu_supports(0)
    True
    """
    return bool(cpu_has(level))


def run(KernelRef ref, inputs, output, Py_ssize_t rows, Py_ssize_t cols, scalars=(), int flags=0):
    """Run a kernel on one tile, for tests.

    Parameters
    ----------
    ref : KernelRef
    inputs, output
        Triples of address, row stride and column stride, in bytes.
    rows, cols : int
    scalars : sequence of float
    flags : int
    """
    cdef tile_view views[4]
    cdef double values[4]
    cdef int k
    operands = [*inputs, output]
    for k in range(len(operands)):
        address, row_stride, col_stride = operands[k]
        views[k].data = <char *><uintptr_t>address
        views[k].row_stride = row_stride
        views[k].col_stride = col_stride
    for k in range(4):
        values[k] = scalars[k] if k < len(scalars) else 0.0
    with nogil:
        (<tile_kernel>ref.fn)(views, rows, cols, ref.memory, values, flags)


def stream_copy(uintptr_t dst, uintptr_t src, Py_ssize_t nbytes):
    """Copy with stores that bypass the cache: the yardstick of benchmarks."""
    with nogil:
        stream_bytes(<char *>dst, <const char *>src, nbytes)
        stream_fence()
