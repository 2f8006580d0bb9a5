"""The kernels: load, compute, store, each by blocks that stay in the first-level cache.

An operator's loop is written once, over its formula; conversions are written once, over the
dtypes.  A compute kernel puts them together at run time: every input is loaded into a block of
float or double (or read in place where it is such a block already), the formula's loop runs over
the block, and the result is rounded once as it is stored.  Loads, formulas and stores add up
instead of multiplying.

Where the instruction set has lanes (`lane_formulas.h`), what people run most is loaded, computed,
rounded and stored register by register instead; the few elements that lanes leave open go through
the plain loop in double.

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

from aclnn import dtypes

cdef extern from "tile_abi.h":
    ctypedef struct tile_view:
        char *data
        ptrdiff_t row_stride
        ptrdiff_t col_stride
    int TILE_STREAM
    int TILE_PREFETCH_NEAR
    int TILE_PREFETCH_FAR
    enum:
        TILE_SCALARS
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

cdef extern from * nogil:
    int __builtin_ctzll(uint64_t) noexcept

cdef extern from "stream_store.h" nogil:
    void stream_bytes(char *, const char *, ptrdiff_t) noexcept
    void stream_fence() noexcept
    void copy_bytes(char *, const char *, ptrdiff_t) noexcept
    void prefetch "__builtin_prefetch"(const char *) noexcept

cdef extern from "transpose.h" nogil:
    void transpose_block(const char *, ptrdiff_t, char *, ptrdiff_t, ptrdiff_t, ptrdiff_t,
                         ptrdiff_t) noexcept

cdef extern from *:
    """
    #ifdef ACLNN_X86_LEVELS
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

ctypedef fused long_t:
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
    LINE = 64                # bytes of a cache line
    AHEAD = 4096             # bytes from what is read to what is prefetched
    ALIGN_FROM = 8192        # elements of a row that is worth cutting at a line boundary
    # Elements of a block:
    BLOCK = 1024             # at most, where it has buffers: three of them in double are 24 KiB
    STREAMED = 512           # whose results bypass the cache: reads and writes take turns
    RECAST = 512             # whose results are converted once more
    CONVERTED = 1024         # that lanes read from conversions
    IN_PLACE = 8192          # that lanes read and write where it lies
    HALVES_IN_PLACE = 16384  # the same of halves, whose doubts are settled together
    COPIED_BYTES = 1024      # that lanes read from copies, in bytes
    FILLED = 256             # of a row that is copied while the next ones are prefetched
    PATCH = 32               # side of a square block, for what lies transposed otherwise
    TRANSPOSED = 32768       # bytes of the copy of a part that lies across
    TRANSPOSED_ROW = 512     # bytes of its rows
    AS_ONE = 2048            # elements of rows that follow one another, to compute in one go
    TOGETHER = 256           # the same of rows that do not
    # Doubtful and suspect elements:
    BATCH = 64               # so many are computed again at a time
    WHOLE = 8                # rounded up to a multiple of this, so that loops have no remainder
    DOUBTS_MOST = HALVES_IN_PLACE // 8     # registers in a block, of eight elements or more
    DOUBTS_LISTED = DOUBTS_MOST // 4 + 8   # four of them are looked at together, and eight fours
    NO_ROW = -1
    MOST_FORMULAS = 32

ctypedef void (*load_fn)(const char *, ptrdiff_t, void *, ptrdiff_t) noexcept nogil
ctypedef void (*store_fn)(const void *, char *, ptrdiff_t, ptrdiff_t) noexcept nogil
ctypedef void (*float_loop)(const float *, const float *, float *, ptrdiff_t,
                            const double *) noexcept nogil
ctypedef void (*double_loop)(const double *, const double *, double *, ptrdiff_t,
                             const double *) noexcept nogil


cdef extern from "lane_facts.h" nogil:
    ctypedef enum zeros_t:
        UNKNOWN
    ctypedef struct facts_t:
        double p[TILE_SCALARS]
        zeros_t zeros

cdef extern from "lane_abi.h" nogil:
    int LANES
    int SUSPECTS
    int DOUBTS
    int PREFETCH_A
    int PREFETCH_B
    int PREFETCH_OUT
    int PREFETCH_FAR
    ctypedef enum kind_t:
        SINGLE
        HALF
        BFLOAT
    ctypedef struct span_t:
        const char *a
        const char *b
        char *out
        ptrdiff_t n
        const void *facts
        uint16_t *doubts
        int stream
        int prefetch
        kind_t stored

    int DOUBTS_TOGETHER
    int list_doubts(const uint16_t *, int, int *) noexcept
    ptrdiff_t doubted(const span_t *, int, int, int) noexcept

ctypedef int (*lane_loop)(const span_t *) noexcept nogil

cdef extern from "lane_formulas.h" nogil:
    ctypedef void (*facts_fn)(facts_t *, ptrdiff_t, kind_t) noexcept
    ctypedef void (*mark_fn)(const float *, const float *, const float *, uint16_t *, ptrdiff_t,
                             const double *) noexcept
    ctypedef struct lane_form_t:
        const lane_loop *loops   # NULL where the formula has no such form, or the build no lanes
        facts_fn prepare         # what the loops want to know of the scalars; may be NULL
        mark_fn mark             # tells which elements are suspect; NULL: none ever is
    lane_form_t lane_form_of(const char *) noexcept


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


cdef void load_by_float(const long_t *src, ptrdiff_t stride, double *dst,
                        ptrdiff_t n) noexcept nogil:
    """What a float cannot hold is rounded to one, as where the formula is computed in float."""
    cdef ptrdiff_t i
    for i in range(n):
        dst[i] = <float>(<const long_t *>(<const char *>src + i * stride))[0]


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
    cdef bits_t value
    if src_stride == sizeof(bits_t) and dst_stride == sizeof(bits_t):
        memcpy(dst, src, n * sizeof(bits_t))
        return
    if dst_stride == sizeof(bits_t) and src_stride == 0:
        value = src[0]
        for i in range(n):
            dst[i] = value
        return
    if dst_stride == sizeof(bits_t) and src_stride == 2 * sizeof(bits_t):
        # A stride that is known lets the compiler load whole registers.
        for i in range(n):
            dst[i] = src[2 * i]
        return
    for i in range(n):
        (<bits_t *>(<char *>dst + i * dst_stride))[0] = (
            <const bits_t *>(<const char *>src + i * src_stride))[0]


# --- The compute kernel -------------------------------------------------------------------------

cdef struct cast_state:
    int in_size
    int out_size
    int size                 # of the type that is computed in: float or double
    bint copy
    bint from_it             # the input has this type
    bint to_it               # the output has it
    load_fn load
    store_fn store

cdef struct compute_state:
    int n_inputs
    bint dense_input[2]      # in the compute type already: may be read in place
    ptrdiff_t sizes[3]       # of elements; the output's is the last
    bint dense_result
    int result_size
    load_fn loads[2]         # to the compute type
    store_fn store           # from it
    cast_state cast          # of rounded results to the output's dtype, often the same
    void *loop               # a float_loop or a double_loop
    # The rest is for lanes; `alike` is NULL where there are none.
    lane_loop alike          # where all inputs have the result's dtype
    lane_loop from_float     # where inputs were converted
    bint all_alike
    ptrdiff_t read_size      # of an element as they read it: the result's, or a float's
    bint stores              # its loop can store the output's dtype
    kind_t kind              # of the inputs, as they are read
    kind_t rounded           # of results
    kind_t stored            # of the output, if its loop can store it
    facts_fn prepare         # what a loop wants to know of the scalars beforehand; may be NULL
    mark_fn mark             # tells which elements are suspect; NULL: none ever is
    void *exact              # the double form, for suspect and doubtful elements
    store_fn store_exact     # from double

cdef struct picked_t:
    # Elements of a tile that are computed once more, in double, a batch at a time: what they are
    # made of, and where the result belongs.
    const compute_state *state
    const double *scalars
    char *target             # of the block's first element
    ptrdiff_t size           # of an element there
    bint recast              # it has the output's dtype, not the result's
    ptrdiff_t count
    char inputs[2][BATCH * 4]
    char *places[BATCH]


cdef struct copies_t:
    # A block of each operand that lanes cannot read where it lies. What is repeated along a row
    # stays for the whole row, whose number is kept.
    char buffers[2][BLOCK * 4]
    ptrdiff_t repeated[2]


cdef struct transposed_t:
    # A part of a tile with copies of what lies across, and from a certain row on.
    tile_view views[3]
    tile_view now[3]
    char memory[2][TRANSPOSED + LINE]


cdef struct block_t:
    # A rectangle of a tile.
    ptrdiff_t row, col, rows, cols
    int flags                # of the tile
    bint dense               # its rows are: results need not be spread


cdef inline void compute(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                         const compute_state *state, const double *scalars, int flags,
                         tile_kernel itself, real like) noexcept nogil:
    """Go through a tile by blocks; where an input lies across, by parts, each transposed first."""
    cdef block_t block
    cdef ptrdiff_t high, wide
    cdef int n = state.n_inputs + 1
    cdef facts_t facts
    cdef picked_t picked
    cdef copies_t copies
    if rows > 1 and any_across(views, state):
        compute_transposed(views, rows, cols, state, scalars, flags, itself)
        return
    if state.prepare != NULL:
        scalars = prepared(&facts, scalars, state, rows * cols)
    picked.state, picked.scalars, picked.count = state, scalars, 0
    copies.repeated[0] = copies.repeated[1] = NO_ROW
    if rows > 1 and one_row(views, n, cols):
        cols *= rows
        rows = 1
    block_shape(views, n, rows, cols, &high, &wide)
    if high == 1:
        wide = row_width(views, cols, state, sizeof(real), flags)
    block.flags = flags
    block.dense = high == 1 and views[state.n_inputs].col_stride == state.cast.out_size
    picked.recast = block.dense and not state.cast.copy
    picked.size = state.cast.out_size if picked.recast else state.result_size
    block.row = 0
    while block.row < rows:
        block.rows = min(high, rows - block.row)
        block.col = 0
        # Long rows begin with what is left of a line: registers that cross lines take twice as
        # long, and a line that is streamed must not be written in two ways.
        block.cols = 0
        if high == 1 and (cols >= ALIGN_FROM or flags & TILE_STREAM):
            block.cols = min(to_line(&views[state.n_inputs], block.row), cols)
        if block.cols:
            compute_block(views, &block, state, scalars, &picked, &copies, like)
            block.col = block.cols
        while block.col < cols:
            block.cols = min(wide, cols - block.col)
            compute_block(views, &block, state, scalars, &picked, &copies, like)
            block.col += wide
        block.row += high
    compute_picked(&picked)


cdef inline const double *prepared(facts_t *facts, const double *scalars,
                                   const compute_state *state, ptrdiff_t n) noexcept nogil:
    """Scalars with the facts that a loop for so many elements wants to know beside them."""
    memcpy(facts.p, scalars, sizeof(facts.p))
    facts.zeros = UNKNOWN
    state.prepare(facts, n, state.kind)
    return facts.p


cdef inline char *line_in(char *memory) noexcept nogil:
    """Where the first line of the cache begins."""
    return memory + (-<ptrdiff_t><uintptr_t>memory & (LINE - 1))


cdef inline ptrdiff_t to_line(const tile_view *out, ptrdiff_t row) noexcept nogil:
    """Elements of a dense row before its first line boundary."""
    cdef char *start = out.data + row * out.row_stride
    cdef ptrdiff_t size = out.col_stride
    if size <= 0 or size > 8:
        return 0
    return (line_in(start) - start) // size


cdef inline ptrdiff_t row_width(const tile_view *views, ptrdiff_t cols, const compute_state *state,
                                ptrdiff_t size, int flags) noexcept nogil:
    """Elements of a row that are computed in one go; `size` is of what is computed in."""
    if state.alike == NULL and nothing_to_convert(views, state, size, flags):
        return cols  # no buffer limits what is read and written where it lies
    if not state.stores:
        return RECAST
    if state.alike == NULL:
        return STREAMED if flags & TILE_STREAM else BLOCK
    if not all_in_place(views, state):
        return filled_width(views, state)
    # Halves have doubts to settle, which is quicker for many at a time.
    return IN_PLACE if state.result_size == 4 else HALVES_IN_PLACE


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
        if is_transposed(&views[k]):
            high[0] = wide[0] = PATCH
            return
    if cols < BLOCK:
        wide[0] = cols
        high[0] = BLOCK // cols


cdef inline char *place(const tile_view *view, const block_t *block) noexcept nogil:
    return view.data + block.row * view.row_stride + block.col * view.col_stride


cdef inline void compute_block(const tile_view *views, const block_t *block,
                               const compute_state *state, const double *scalars,
                               picked_t *picked, copies_t *copies, real like) noexcept nogil:
    if real is float:
        if state.alike != NULL:
            compute_by_lanes(views, block, state, scalars, picked, copies)
            return
    cdef int flags = block.flags
    cdef char memory[3 * BLOCK * 8 + LINE]
    cdef real *buffers = <real *>line_in(memory)
    cdef const real *inputs[2]
    cdef const tile_view *out = &views[state.n_inputs]
    cdef ptrdiff_t count = block.rows * block.cols
    cdef real *result = buffers + 2 * BLOCK
    cdef bint direct = block.rows == 1 and writes_in_place(out, state, sizeof(real), flags)
    cdef int k
    inputs[0] = inputs[1] = buffers + BLOCK
    for k in range(state.n_inputs):
        if flags & TILE_PREFETCH_FAR and block.rows == 1:
            prefetch_row(place(&views[k], block), block.cols * views[k].col_stride)
        inputs[k] = <const real *>read_block(&views[k], block, state, k,
                                             <char *>(buffers + k * BLOCK), sizeof(real))
    if direct:
        result = <real *>place(out, block)
    if real is float:
        (<float_loop>state.loop)(inputs[0], inputs[1], result, count, scalars)
    else:
        (<double_loop>state.loop)(inputs[0], inputs[1], result, count, scalars)
    if not direct:
        write_block(out, block, state, <const char *>result, sizeof(real), flags)


cdef inline bint writes_in_place(const tile_view *out, const compute_state *state, ptrdiff_t size,
                                 int flags) noexcept nogil:
    """Whether a row of results has the compute type and is stored like any other memory."""
    return (state.dense_result and state.cast.copy and out.col_stride == size
            and not flags & TILE_STREAM)


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
    if not state.cast.copy:
        if not state.dense_result:
            state.store(buffer, rounded, state.result_size, block.rows * block.cols)
            buffer = rounded
        write_cast(view, block, state, buffer, flags)
        return
    if flags & TILE_STREAM and block.rows == 1 and view.col_stride == state.result_size:
        if state.dense_result:
            stream_bytes(target, buffer, block.cols * size)
        else:
            state.store(buffer, rounded, state.result_size, block.cols)
            stream_bytes(target, rounded, block.cols * state.result_size)
        return
    for i in range(block.rows):
        state.store(buffer + i * block.cols * size, target + i * view.row_stride, view.col_stride,
                    block.cols)


cdef inline void write_cast(const tile_view *view, const block_t *block,
                            const compute_state *state, const char *results,
                            int flags) noexcept nogil:
    """Rounded results in the output's dtype."""
    cdef char *target = place(view, block)
    cdef bint stream = (flags & TILE_STREAM and block.rows == 1
                        and view.col_stride == state.cast.out_size)
    cdef ptrdiff_t i
    for i in range(block.rows):
        cast_row(results, state.result_size, target, view.col_stride, block.cols, &state.cast,
                 stream)
        results += block.cols * state.result_size
        target += view.row_stride


# --- Blocks by lanes ------------------------------------------------------------------------------

cdef inline void compute_by_lanes(const tile_view *views, const block_t *block,
                                  const compute_state *state, const double *scalars,
                                  picked_t *picked, copies_t *copies) noexcept nogil:
    """A block in one go, from operands where they lie if they are dense, else from buffers."""
    cdef int flags = block.flags
    cdef char memory[BLOCK * 4 + LINE]
    cdef char *results = line_in(memory)
    cdef uint16_t doubts[DOUBTS_MOST + 32]  # which DOUBTS_TOGETHER is
    cdef const tile_view *out = &views[state.n_inputs]
    cdef bint direct = block.dense and state.stores
    cdef const char *inputs[2]
    cdef span_t span
    cdef int k, found
    span.prefetch = PREFETCH_A | PREFETCH_B if flags & TILE_PREFETCH_NEAR else 0
    if state.n_inputs == 1:
        span.prefetch &= PREFETCH_A
    for k in range(state.n_inputs):
        inputs[k] = place(&views[k], block)
        if not (block.dense and in_place(&views[k], out, state, k)):
            fill(&views[k], block, state, k, copies)
            inputs[k] = copies.buffers[k]
            span.prefetch &= ~(PREFETCH_B if k else PREFETCH_A)
        elif views[k].row_stride == 0 and out.row_stride != 0:  # a row that is repeated is near
            span.prefetch &= ~(PREFETCH_B if k else PREFETCH_A)
    span.a = inputs[0]
    span.b = inputs[state.n_inputs - 1]
    span.n = block.rows * block.cols
    span.out = place(out, block) if direct else results
    span.facts = scalars
    span.doubts = doubts
    span.stored = state.stored if direct else state.rounded
    span.stream = direct and flags & TILE_STREAM and <uintptr_t>span.out % LINE == 0
    if flags & TILE_PREFETCH_FAR:
        span.prefetch |= PREFETCH_FAR
    elif flags & TILE_PREFETCH_NEAR and direct and state.all_alike and state.cast.copy:
        span.prefetch |= PREFETCH_OUT
    found = state.alike(&span) if state.all_alike else state.from_float(&span)
    picked.target = place(out, block) if block.dense else results
    if block.dense and not direct:
        write_cast(out, block, state, results, flags)
    if found:
        settle(&span, found, picked)
    if not block.dense:
        compute_picked(picked)
        scatter(results, out, block, state)


cdef inline bint in_place(const tile_view *view, const tile_view *out,
                          const compute_state *state, int k) noexcept nogil:
    """Whether an input's row can be read where it lies, and does not lie where results go.

    What is settled afterwards is read again, so results must not have replaced it.
    """
    cdef ptrdiff_t size = state.read_size
    if not (state.all_alike or state.dense_input[k]):
        return False
    return view.col_stride == size and view.data != out.data


cdef inline bint all_in_place(const tile_view *views, const compute_state *state) noexcept nogil:
    cdef const tile_view *out = &views[state.n_inputs]
    cdef int k
    for k in range(state.n_inputs):
        if not in_place(&views[k], out, state, k):
            return False
    return out.col_stride == state.cast.out_size


cdef inline ptrdiff_t filled_width(const tile_view *views,
                                   const compute_state *state) noexcept nogil:
    """Elements of a block when some operand is copied: few, so that fetching, computing and storing
    take turns; twice as many where nothing has to be fetched."""
    cdef int k
    if not state.all_alike:
        return CONVERTED
    for k in range(state.n_inputs):
        if views[k].col_stride != 0 and not in_place(&views[k], &views[state.n_inputs], state, k):
            return COPIED_BYTES // state.result_size
    return repeated_width(state)


cdef inline ptrdiff_t repeated_width(const compute_state *state) noexcept nogil:
    return 2 * COPIED_BYTES // state.result_size if state.all_alike else CONVERTED


cdef inline void fill(const tile_view *view, const block_t *block, const compute_state *state,
                      int k, copies_t *copies) noexcept nogil:
    """A dense copy of a block: as it is where all operands are alike, else in float."""
    cdef const char *source = place(view, block)
    cdef char *buffer = copies.buffers[k]
    cdef ptrdiff_t size = state.read_size
    cdef ptrdiff_t i
    if view.col_stride == 0 and block.rows == 1 and block.cols <= repeated_width(state):
        if copies.repeated[k] != block.row:
            repeat(source, buffer, state, k)
        copies.repeated[k] = block.row
        return
    copies.repeated[k] = NO_ROW
    for i in range(block.rows):
        fill_row(source, view.col_stride, buffer, block, state, k)
        source += view.row_stride
        buffer += block.cols * size


cdef inline void repeat(const char *source, char *buffer, const compute_state *state,
                        int k) noexcept nogil:
    """Fill a buffer with one element."""
    if state.all_alike:
        copy_elements(source, 0, buffer, state.result_size, repeated_width(state),
                      state.result_size)
    else:
        state.loads[k](source, 0, buffer, repeated_width(state))


cdef inline void fill_row(const char *source, ptrdiff_t stride, char *buffer, const block_t *block,
                          const compute_state *state, int k) noexcept nogil:
    """By parts, so that what is asked for and what is read take turns."""
    cdef ptrdiff_t size = state.read_size
    cdef ptrdiff_t part = FILLED if block.flags & TILE_PREFETCH_FAR else block.cols
    cdef ptrdiff_t n, begin = 0
    while begin < block.cols:
        n = min(part, block.cols - begin)
        if block.flags & TILE_PREFETCH_FAR:
            prefetch_row(source, n * stride)
        if state.all_alike:
            copy_elements(source, stride, buffer, size, n, size)
        else:
            state.loads[k](source, stride, buffer, n)
        source += n * stride
        buffer += n * size
        begin += n


cdef inline void prefetch_row(const char *source, ptrdiff_t nbytes) noexcept nogil:
    """Prefetch what a later block will read; nothing, where the stride is not positive."""
    cdef ptrdiff_t i = 0
    while i < nbytes:
        prefetch(<const char *>(<uintptr_t>source + AHEAD + i))
        i += LINE


cdef inline void prefetch_share(const tile_view *view, const block_t *part, ptrdiff_t size,
                                ptrdiff_t row, ptrdiff_t group) noexcept nogil:
    """Ask for a share of the part beside this one: as much of it as these rows are of this one."""
    cdef uintptr_t source = <uintptr_t>place(view, part) + part.cols * view.col_stride
    cdef bint across = is_transposed(view)
    cdef ptrdiff_t lines = part.cols if across else part.rows
    cdef ptrdiff_t step = view.col_stride if across else view.row_stride
    cdef ptrdiff_t nbytes = (part.rows if across else part.cols) * size
    cdef ptrdiff_t i, k
    for i in range(lines * row // part.rows, lines * (row + group) // part.rows):
        k = 0
        while k < nbytes:
            prefetch(<const char *>(source + i * step + k))
            k += LINE


cdef inline bint is_transposed(const tile_view *view) noexcept nogil:
    return view.row_stride != 0 and llabs(view.row_stride) < llabs(view.col_stride)


cdef inline bint lies_across(const tile_view *view, ptrdiff_t size) noexcept nogil:
    """Whether elements of this size follow one another along a column."""
    return view.row_stride == size and is_transposed(view)


cdef inline void scatter(const char *results, const tile_view *out, const block_t *block,
                         const compute_state *state) noexcept nogil:
    """Rows of results to where they belong."""
    cdef char recast[BLOCK * 16]
    cdef char *target = place(out, block)
    cdef ptrdiff_t i, size = state.cast.out_size
    if not state.cast.copy:
        cast_row(results, state.result_size, recast, size, block.rows * block.cols, &state.cast,
                 False)
        results = recast
    if lies_across(out, size):
        transpose_block(results, block.cols * size, target, out.col_stride, block.cols, block.rows,
                        size)
        return
    for i in range(block.rows):
        if out.col_stride == size:
            copy_bytes(target, results, block.cols * size)
        else:
            copy_elements(results, size, target, out.col_stride, block.cols, size)
        target += out.row_stride
        results += block.cols * size


cdef void settle(const span_t *span, int found, picked_t *picked) noexcept nogil:
    """Pick suspect and doubtful elements, to be rounded from double."""
    if found & DOUBTS:
        pick_doubts(span, found, picked)
    if found & SUSPECTS:
        pick_suspects(span, picked)


cdef inline void pick(const span_t *span, ptrdiff_t where, picked_t *picked) noexcept nogil:
    cdef const compute_state *state = picked.state
    cdef ptrdiff_t size = state.read_size
    if picked.count == BATCH:
        compute_picked(picked)
    copy_element(picked.inputs[0] + picked.count * size, span.a + where * size, size)
    copy_element(picked.inputs[1] + picked.count * size, span.b + where * size, size)
    picked.places[picked.count] = picked.target + where * picked.size
    prefetch(picked.places[picked.count])  # a line that was streamed would hold up later ones
    picked.count += 1


cdef inline void copy_element(char *target, const char *source, ptrdiff_t size) noexcept nogil:
    if size == 2:
        memcpy(target, source, 2)
    elif size == 4:
        memcpy(target, source, 4)
    else:
        memcpy(target, source, size)


cdef inline bint none_of_four(const uint16_t *marks) noexcept nogil:
    cdef uint64_t four
    memcpy(&four, marks, sizeof(four))
    return four == 0


cdef void pick_doubts(const span_t *span, int found, picked_t *picked) noexcept nogil:
    """First what has doubts is listed, without branches, which no processor could predict."""
    cdef ptrdiff_t groups = (span.n + LANES - 1) // LANES
    cdef int listed[DOUBTS_LISTED]
    cdef int i, bit, count
    cdef ptrdiff_t where
    cdef uint64_t four
    memset(&span.doubts[groups], 0, DOUBTS_TOGETHER * sizeof(uint16_t))
    count = list_doubts(span.doubts, <int>((groups + 3) // 4), listed)
    for i in range(count):
        memcpy(&four, &span.doubts[4 * listed[i]], sizeof(four))
        while four:
            bit = __builtin_ctzll(four)
            four &= four - 1
            where = doubted(span, found, listed[i], bit)
            if where < span.n:
                pick(span, where, picked)


cdef void pick_suspects(const span_t *span, picked_t *picked) noexcept nogil:
    """Suspect elements, which may have been doubtful too: computing one twice does no harm."""
    cdef const compute_state *state = picked.state
    cdef float values[3][BLOCK]
    cdef const float *a
    cdef const float *b
    cdef const float *r
    cdef uint16_t suspect[BLOCK + 3]
    cdef ptrdiff_t i, n, begin = 0
    while begin < span.n:
        n = min(<ptrdiff_t>BLOCK, span.n - begin)
        a = floats_at(span.a, begin, n, state.kind, values[0])
        b = floats_at(span.b, begin, n, state.kind, values[1])
        r = floats_at(span.out, begin, n, span.stored, values[2])
        memset(suspect, 0, sizeof(suspect))
        state.mark(a, b, r, suspect, n, picked.scalars)
        i = 0
        while i < n:
            if none_of_four(&suspect[i]):
                i += 4
                continue
            if suspect[i]:
                pick(span, begin + i, picked)
            i += 1
        begin += BLOCK


cdef inline const float *floats_at(const char *source, ptrdiff_t begin, ptrdiff_t n, kind_t kind,
                                   float *values) noexcept nogil:
    """Elements of a span in float: where they lie, or converted into `values`."""
    if kind == SINGLE:
        return <const float *>source + begin
    if kind == HALF:
        load(<const half_t *>source + begin, sizeof(half_t), values, n)
    else:
        load(<const bfloat16_t *>source + begin, sizeof(bfloat16_t), values, n)
    return values


cdef void compute_picked(picked_t *picked) noexcept nogil:
    cdef const compute_state *state = picked.state
    cdef float values[BATCH]
    cdef const float *narrow
    cdef double wide[2][BATCH]
    cdef double results[BATCH]
    cdef char rounded[BATCH * 4]
    cdef char recast[BATCH * 16]
    cdef const char *source = rounded
    cdef ptrdiff_t i, j, size = state.read_size
    cdef ptrdiff_t n = (picked.count + WHOLE - 1) & ~<ptrdiff_t>(WHOLE - 1)
    if n == 0:
        return
    # Whole registers: the loops' remainders would take longer than all the rest.
    for i in range(2):
        memset(picked.inputs[i] + picked.count * size, 0x38, (n - picked.count) * size)
        narrow = floats_at(picked.inputs[i], 0, n, state.kind, values)
        for j in range(n):
            wide[i][j] = narrow[j]
    (<double_loop>state.exact)(wide[0], wide[1], results, n, picked.scalars)
    state.store_exact(<const char *>results, rounded, state.result_size, n)
    if picked.recast:
        cast_row(rounded, state.result_size, recast, picked.size, n, &state.cast, False)
        source = recast
    for i in range(picked.count):
        copy_element(picked.places[i], source + i * picked.size, picked.size)
    picked.count = 0


# --- What lies across ---------------------------------------------------------------------------

cdef void compute_transposed(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                             const compute_state *whole, const double *scalars, int flags,
                             tile_kernel compute_rows) noexcept nogil:
    """A tile by parts, each transposed first and then computed a few rows at a time."""
    cdef compute_state state = whole[0]
    cdef facts_t facts
    cdef transposed_t transposed
    cdef block_t part
    cdef ptrdiff_t row, group, high = rows, wide = cols
    if state.prepare != NULL:  # once for all parts
        scalars = prepared(&facts, scalars, &state, rows * cols)
        state.prepare = NULL
    part_shape(&state, &high, &wide)
    part.row = 0
    while part.row < rows:
        part.rows = min(high, rows - part.row)
        part.col = 0
        while part.col < cols:
            part.cols = min(wide, cols - part.col)
            group = transpose_part(views, &part, &state, &transposed)
            row = 0
            while row < part.rows:
                group = min(group, part.rows - row)
                go_to_row(views, &part, &state, row, group, flags, &transposed)
                compute_rows(transposed.now, group, part.cols, &state, scalars, 0)
                row += group
            part.col += wide
        part.row += high


cdef inline bint any_across(const tile_view *views, const compute_state *state) noexcept nogil:
    cdef int k
    for k in range(state.n_inputs):
        if lies_across(&views[k], state.sizes[k]):
            return True
    return False


cdef inline void part_shape(const compute_state *state, ptrdiff_t *high,
                            ptrdiff_t *wide) noexcept nogil:
    """So that a copy fits into the nearest cache beside what is computed from it."""
    cdef ptrdiff_t size = max(state.sizes[0], state.sizes[state.n_inputs - 1])
    wide[0] = min(wide[0], TRANSPOSED_ROW // size)
    high[0] = min(high[0], TRANSPOSED // (wide[0] * size))


cdef ptrdiff_t transpose_part(const tile_view *views, const block_t *part,
                              const compute_state *state, transposed_t *transposed) noexcept nogil:
    """Put dense copies in the place of what lies across; how many rows to compute in one go."""
    cdef tile_view *view
    cdef char *dense
    cdef ptrdiff_t size
    cdef int k, n = state.n_inputs + 1
    for k in range(n):
        view, size = &transposed.views[k], state.sizes[k]
        view[0] = views[k]
        view.data = place(&views[k], part)
        if k == state.n_inputs or not lies_across(view, size):
            continue
        dense = line_in(transposed.memory[k])
        transpose_block(view.data, view.col_stride, dense, part.cols * size, part.rows, part.cols,
                        size)
        view.data, view.row_stride, view.col_stride = dense, part.cols * size, size
    return max(1, (AS_ONE if one_row(transposed.views, n, part.cols) else TOGETHER) // part.cols)


cdef void go_to_row(const tile_view *views, const block_t *part, const compute_state *state,
                    ptrdiff_t row, ptrdiff_t group, int flags,
                    transposed_t *transposed) noexcept nogil:
    """Go to a row of a part that was transposed, and prefetch a share of the next part: as much of
    it as the rows are of this one. A burst for all of it would stall."""
    cdef int k
    for k in range(state.n_inputs + 1):
        transposed.now[k] = transposed.views[k]
        transposed.now[k].data += row * transposed.views[k].row_stride
        if flags & TILE_PREFETCH_NEAR:
            prefetch_share(&views[k], part, state.sizes[k], row, group)


cdef void compute_in_float(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                           const void *state, const double *scalars, int flags) noexcept nogil:
    compute(views, rows, cols, <const compute_state *>state, scalars, flags, compute_in_float,
            <float>0)


cdef void compute_in_double(const tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                            const void *state, const double *scalars, int flags) noexcept nogil:
    compute(views, rows, cols, <const compute_state *>state, scalars, flags, compute_in_double,
            <double>0)


# --- The cast kernel: also every copy -----------------------------------------------------------

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
            cast_block(views, &block, state, flags)
            block.col += wide
        block.row += high


cdef inline void cast_block(const tile_view *views, const block_t *block, const cast_state *state,
                            int flags) noexcept nogil:
    cdef ptrdiff_t in_stride = views[0].col_stride, out_stride = views[1].col_stride
    cdef bint stream = flags & TILE_STREAM and out_stride == state.out_size
    cdef char *source
    cdef char *target
    cdef ptrdiff_t i
    if state.copy and lies_across(&views[0], state.in_size) and out_stride == state.in_size:
        transpose_block(place(&views[0], block), in_stride, place(&views[1], block),
                        views[1].row_stride, block.rows, block.cols, state.in_size)
        return
    for i in range(block.rows):
        source = place(&views[0], block) + i * views[0].row_stride
        target = place(&views[1], block) + i * views[1].row_stride
        if not state.copy:
            cast_row(source, in_stride, target, out_stride, block.cols, state, stream)
        elif stream and in_stride == out_stride:
            stream_bytes(target, source, block.cols * state.in_size)
        else:
            copy_elements(source, in_stride, target, out_stride, block.cols, state.in_size)


cdef inline void cast_row(const char *source, ptrdiff_t in_stride, char *target,
                          ptrdiff_t out_stride, ptrdiff_t n, const cast_state *state,
                          bint stream) noexcept nogil:
    """By way of the type that is computed in, which operands may have already."""
    cdef double buffer[BLOCK]
    cdef double rounded[2 * BLOCK]
    if state.to_it and out_stride == state.size and not stream:
        state.load(source, in_stride, target, n)
        return
    if not (state.from_it and in_stride == state.size):
        state.load(source, in_stride, buffer, n)
        source = <const char *>buffer
    if not stream:
        state.store(source, target, out_stride, n)
    elif state.to_it:
        stream_bytes(target, source, n * state.size)
    else:
        state.store(source, <char *>rounded, state.out_size, n)
        stream_bytes(target, <const char *>rounded, n * state.out_size)


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
    float_loop in_float      # for float32 results; NULL: the double form serves every dtype
    double_loop in_double    # the precise form, for what is rounded once more
    double_loop in_float64   # for float64 results, where these are rounded otherwise
    lane_form_t lanes        # for float32 and halves, where the instruction set has them

cdef dict _formula_numbers = {}
cdef formula_t[MOST_FORMULAS] _formulas


cdef add(str name, int n_inputs, float_loop in_float, double_loop in_double,
         double_loop in_float64=NULL):
    number = len(_formula_numbers)
    if number == MOST_FORMULAS or not 1 <= n_inputs <= 2:
        raise ValueError(f"{name}: kernels have places for {MOST_FORMULAS} formulas of two inputs")
    _formula_numbers[name] = number
    _formulas[number] = formula_t(n_inputs, in_float, in_double, in_float64 or in_double,
                                  lane_form_of(name.encode()))


# The loops over the formulas and a call of `add` for each: made from their signatures by the build.
include "formula_loops.pxi"

# Places in the list of a formula's lane loops.
KINDS = {"float32": 0, "float16": 1, "bfloat16": 2}
FROM_FLOAT = (0, 3, 4)

ITEM_SIZES = {kind.name: kind.itemsize for kind in dtypes.NUMPY.values()}


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


cdef load_fn input_loader(str dtype, bint wide, str result) except NULL:
    """Into what a formula computes in: inputs are read as float32, unless results are float64."""
    if not wide:
        return loader(dtype, <float>0)
    if result != "float64" and dtype == "int32":
        return <load_fn>load_by_float[int32_t]
    if result != "float64" and dtype == "int64":
        return <load_fn>load_by_float[int64_t]
    return loader(dtype, <double>0)


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
    itemsizes : tuple of int
        Bytes of an element of every operand, inputs first, the output last.
    """

    cdef readonly str name
    cdef readonly tuple itemsizes
    cdef readonly size_t fn
    cdef void *memory

    def __dealloc__(self):
        free(self.memory)

    @property
    def state(self):
        return <size_t>self.memory

    def __repr__(self):
        return f"<KernelRef {self.name}>"


cdef KernelRef new_ref(str name, tuple dtypes, tile_kernel fn, size_t size):
    cdef KernelRef ref = KernelRef.__new__(KernelRef)
    ref.name = name
    ref.itemsizes = tuple([ITEM_SIZES[dtype] for dtype in dtypes])
    ref.fn = <size_t>fn
    ref.memory = calloc(1, size)
    if ref.memory == NULL:
        raise MemoryError
    return ref


cdef int number_of(str formula) except -1:
    if formula not in _formula_numbers:
        raise ValueError(
            f"no formula is called {formula!r}, they are {', '.join(_formula_numbers)}")
    return _formula_numbers[formula]


def compute_kernel(str formula, tuple in_dtypes, str out_dtype, str result_dtype=None):
    """The kernel of a formula for these dtypes.

    Parameters
    ----------
    formula : str
        A name that `add` was given.
    in_dtypes : tuple of str
        Of the inputs, in the formula's order; each is read as if converted to float32, for float64
        results to float64.
    out_dtype : str
    result_dtype : str, optional
        'float32', 'float16', 'bfloat16' or 'float64': what the exact value is rounded to, once;
        the output's by default. Results then become of the output's dtype, which may be any.

    Returns
    -------
    KernelRef
    """
    cdef const formula_t *row = &_formulas[number_of(formula)]
    cdef str result = result_dtype or out_dtype
    cdef int kind = KINDS.get(result, -1)
    cdef bint lanes = row.lanes.loops != NULL and kind >= 0
    cdef bint wide = not lanes and (row.in_float == NULL or result != "float32")
    cdef KernelRef ref
    cdef compute_state *state
    if len(in_dtypes) != row.n_inputs:
        raise ValueError(f"{formula} takes {row.n_inputs} inputs, {len(in_dtypes)} dtypes given")
    stages = [",".join(in_dtypes), *dict.fromkeys((result, out_dtype))]
    name = f"{formula}[{'->'.join(stages)}]"
    ref = new_ref(name, (*in_dtypes, out_dtype), compute_in_double if wide else compute_in_float,
                  sizeof(compute_state))
    state = <compute_state *>ref.memory
    state.n_inputs = row.n_inputs
    for k, dtype in enumerate(in_dtypes):
        state.loads[<int>k] = input_loader(dtype, wide, result)
        state.sizes[<int>k] = ITEM_SIZES[dtype]
        state.dense_input[<int>k] = dtype == ("float64" if wide else "float32")
    state.sizes[state.n_inputs] = ITEM_SIZES[out_dtype]
    state.result_size = ITEM_SIZES[result]
    state.dense_result = result == ("float64" if wide else "float32")
    state.store = storer(result, <double>0) if wide else storer(result, <float>0)
    set_cast(&state.cast, result, out_dtype)
    state.loop = (<void *>row.in_float if not wide else <void *>row.in_float64
                  if result == "float64" else <void *>row.in_double)
    # A loop for halves could store the other kind too, but that hardly occurs.
    state.stores = state.cast.copy or (
        lanes and out_dtype in KINDS and "float32" in (result, out_dtype))
    if lanes:
        state.alike = row.lanes.loops[kind]
        state.from_float = row.lanes.loops[FROM_FLOAT[kind]]
        state.all_alike = set(in_dtypes) == {result}
        state.read_size = state.result_size if state.all_alike else sizeof(float)
        state.kind = <kind_t>kind if state.all_alike else SINGLE
        state.rounded = <kind_t>kind
        state.stored = <kind_t><int>KINDS.get(out_dtype, kind)
        state.prepare = row.lanes.prepare
        state.mark = row.lanes.mark
        state.exact = <void *>row.in_double
        state.store_exact = storer(result, <double>0)
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
    cdef KernelRef ref = new_ref(f"cast[{src}->{dst}]", (src, dst), cast_tile, sizeof(cast_state))
    set_cast(<cast_state *>ref.memory, src, dst)
    return ref


cdef int set_cast(cast_state *state, str src, str dst) except -1:
    cdef bint wide = "float64" in (src, dst) or dst == "complex128"
    state.in_size, state.out_size = ITEM_SIZES[src], ITEM_SIZES[dst]
    state.copy = src == dst
    state.size = 8 if wide else 4
    state.from_it = src == ("float64" if wide else "float32")
    state.to_it = dst == ("float64" if wide else "float32")
    if not state.copy:
        state.load = loader(src, <double>0) if wide else loader(src, <float>0)
        state.store = storer(dst, <double>0) if wide else storer(dst, <float>0)
    return 0


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
    cdef double values[TILE_SCALARS]
    cdef int k
    operands = [*inputs, output]
    if ref.fn == 0 or len(operands) > 4:
        raise ValueError("takes a kernel that was made, and up to four operands")
    if len(scalars) > TILE_SCALARS:
        raise ValueError(f"takes at most {TILE_SCALARS} scalars, {len(scalars)} given")
    for k in range(len(operands)):
        address, row_stride, col_stride = operands[k]
        views[k].data = <char *><uintptr_t>address
        views[k].row_stride = row_stride
        views[k].col_stride = col_stride
    for k in range(TILE_SCALARS):
        values[k] = scalars[k] if k < len(scalars) else 0.0
    with nogil:
        (<tile_kernel>ref.fn)(views, rows, cols, ref.memory, values, flags)
        stream_fence()


def stream_copy(uintptr_t dst, uintptr_t src, Py_ssize_t nbytes):
    """Copy with stores that bypass the cache: the yardstick of benchmarks."""
    with nogil:
        stream_bytes(<char *>dst, <const char *>src, nbytes)
        stream_fence()
