"""The kernel of attention: softmax(scale q k' + mask) v, by tiles, for batches and heads of any
strides.

Operands, in order; those in brackets where the node's attribute `present` names them:

============= ================ =====================================================================
operand       shape            what
============= ================ =====================================================================
query         [B, N, S, D]     with cumulative lengths [1, N, T, D]
key           [B, M, K, D]     M divides N; in pages [blocks, M, block size, D]
value         [B, M, K, E]     as the key
[query_rope]  [B, N, S, R]     elements that follow those of the query
[key_rope]    [B, M, K, R]
[mask]        [B, N, S, K]     bool or bytes, or float16
[shift]       [B, N, S, K]     added to scores
[sink]        [N]              a score for which there is no value
[lengths]     [B] or [1]       of queries
[key_lengths] [B] or [1]       of keys
[table]       [B, blocks]      of pages
[key_prefix]  [1, M, P, D]     keys before those of every batch
[value_prefix] [1, M, P, E]
[prefix_length] [1]            how many of them there are
[query_padding] [1]            rows behind the last query, which lengths count back from
[key_padding] [1]
[slopes]      [N]              float32: what a score falls by with the distance of key and query
out           [B, N, S, E]
[first]       [B, N, S, 1|8]   the logarithm of the sum of exponentials, or the maximum
[second]      [B, N, S, 8]     the sum
============= ================ =====================================================================

A node with the operands `grad` and `output`, like out, gives the gradients of query, key and value;
`first` and `second` are operands then.

How rows go through tiles is in `kernels/attention/attend.h`, how gradients do in `gradient.h`; this
module divides the work.
"""

from libc.stddef cimport size_t
from libc.stdint cimport INT64_MAX, int32_t, int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from aclnn.kernels.instruction_sets cimport SETS_BUILT, take_set
from aclnn.graph.runtime.kernel_abi cimport array_view, call_context, call_kernel, kernel_number

from aclnn.acl.dtypes import ITEM_SIZES
from aclnn.graph.runtime.kernel import Kernel

cdef extern from "attention/attend.h" nogil:
    int ROWS, MOST_ROWS, SEGMENT, BAD_BLOCK
    int NO_MASK, TRUE_HIDES, TRUE_SHOWS
    int NO_STATISTICS, LOGSUMEXP, MAX_AND_SUM
    int IS_F32, IS_F16, IS_BF16

    ctypedef struct operand_t:
        char *data
        ptrdiff_t row
        ptrdiff_t head
        ptrdiff_t step
    ctypedef struct cache_t:
        char *data
        ptrdiff_t row
        ptrdiff_t step
        ptrdiff_t block
        const char *shared
        ptrdiff_t shared_row
        ptrdiff_t shared_step
    ctypedef struct attention_t:
        int type
        int shift_type
        int mask_kind
        int mask_size
        int statistics
        int shift_first
        int window
        int slope_root
        int64_t ahead
        ptrdiff_t depth
        ptrdiff_t rope
        ptrdiff_t values
        ptrdiff_t group
        ptrdiff_t block_size
        int64_t blocks
        float scale
        operand_t query
        operand_t query_rope
        operand_t out
        operand_t mask
        operand_t shift
        operand_t first
        operand_t second
        cache_t key
        cache_t key_rope
        cache_t value
        const char *table
        ptrdiff_t table_step
        const char *sink
        const char *slopes
        ptrdiff_t sink_step
        ptrdiff_t slope_step
        int64_t queries
        int64_t keys
        int64_t n_shared
        int64_t turn
        int64_t turned
        int64_t low
        int64_t high
        int64_t prefix
        int64_t mask_from
    ctypedef struct scratch_t:
        pass

    ptrdiff_t lay_out(const attention_t *, ptrdiff_t rows, int segments, char *memory,
                      scratch_t *parts)
    int attend(const attention_t *, ptrdiff_t first, ptrdiff_t rows, int segments, char *memory,
               int64_t *bad)
    ptrdiff_t part_size(ptrdiff_t values, ptrdiff_t rows)
    int attend_segment(const attention_t *, ptrdiff_t first, ptrdiff_t rows, int64_t segment,
                       char *memory, float *part, int64_t *bad)
    void join_segments(const attention_t *, ptrdiff_t first, ptrdiff_t rows, char *memory,
                       float *parts, ptrdiff_t size)
    bint is_last(int32_t *done, int32_t all)
    bint all_blocks_exist(const attention_t *, ptrdiff_t rows, int64_t *bad)

cdef extern from "attention/gradient.h" nogil:
    int BLOCK_ROWS, KEYS

    ctypedef struct gradient_t:
        attention_t a
        operand_t grad
        operand_t result
        operand_t grad_query
        cache_t grad_key
        cache_t grad_value
    ctypedef struct gradient_scratch_t:
        pass

    ptrdiff_t lay_out_gradient(const attention_t *, char *memory, gradient_scratch_t *parts)
    void gradient_of_rows(const gradient_t *, ptrdiff_t first, ptrdiff_t rows, char *memory)
    void gradient_of_keys(const gradient_t *, int64_t key, ptrdiff_t n, ptrdiff_t rows,
                          char *memory)

BUILT = SETS_BUILT  # a bit for each instruction set whose loops are here


def use(int number):
    """Use the loops of an instruction set, by its number, in this thread."""
    take_set(number)


OPERANDS = ("query", "key", "value", "query_rope", "key_rope", "mask", "shift", "sink", "lengths",
            "key_lengths", "table", "key_prefix", "value_prefix", "prefix_length",
            "query_padding", "key_padding", "slopes", "out", "first", "second", "grad", "output",
            "grad_query", "grad_key", "grad_value")
CHECKED = ("lengths", "key_lengths", "table", "prefix_length", "query_padding", "key_padding")
TYPES = {"float32": IS_F32, "float16": IS_F16, "bfloat16": IS_BF16}

cdef enum:
    QUERY, KEY, VALUE, QUERY_ROPE, KEY_ROPE, MASK, SHIFT, SINK, LENGTHS, KEY_LENGTHS, TABLE
    KEY_PREFIX, VALUE_PREFIX, PREFIX_LENGTH, QUERY_PADDING, KEY_PADDING, SLOPES
    OUT, FIRST, SECOND, GRAD, RESULT, GRAD_QUERY, GRAD_KEY, GRAD_VALUE
    N_OPERANDS
    BAD_LENGTH = 103      # a length that is negative or larger than there is room for
    BAD_KEY_LENGTH = 104
    BAD_END = 106         # ends of the batches' queries that leave rows to no batch
    BAD_PREFIX = 105      # a number of shared keys that is negative or larger than there are
    BAD_MASK = 107        # a batch with more queries or keys than the mask that all batches share
    SHARES = 4            # of the work that each of several threads gets, if there is so much
    FEW_PANELS = 64       # whose keys are divided among threads that would have none
    MOST_PARTS = 4 << 20  # bytes of the results of segments

cdef struct state_t:
    attention_t like      # what is the same for all calls
    int place[N_OPERANDS]  # of operands among the views, -1 for those that there are not
    int length_size, key_length_size
    int prefix_size, query_padding_size, key_padding_size
    bint cumulative, key_cumulative
    bint anchored         # the window counts from the last query and key, not from the first
    bint is_tree          # the mask is for the last keys, as many as queries
    int64_t low, high
    int segments
    ptrdiff_t of_units    # bytes of counters of a run, of units of rows
    ptrdiff_t n_parts     # segments of each unit, or 0 where keys are not divided
    ptrdiff_t part        # floats of the results of one
    int64_t n_prefix
    int64_t *prefix       # of each batch
    int64_t n_lengths, n_key_lengths
    int64_t *lengths      # what holds where they are no operands
    int64_t *key_lengths

cdef struct batches_t:
    # Of one call: where lengths come from, and how large all is.
    const state_t *state
    const array_view *views
    ptrdiff_t batch, heads, spaces, room  # rows of queries and of keys that there is room for


# --- Lengths --------------------------------------------------------------------------------------

cdef inline int64_t number_at(const array_view *view, int size, ptrdiff_t index) noexcept nogil:
    cdef const char *place = view.data + index * view.strides[0]
    if size == 4:
        return (<const int32_t *>place)[0]
    return (<const int64_t *>place)[0]


cdef inline ptrdiff_t count_of(const batches_t *b, bint keys) noexcept nogil:
    """Number of lengths; 0 where everything counts."""
    cdef int place = b.state.place[KEY_LENGTHS if keys else LENGTHS]
    if place >= 0:
        return b.views[place].shape[0]
    return b.state.n_key_lengths if keys else b.state.n_lengths


cdef inline int64_t given_length(const batches_t *b, bint keys, ptrdiff_t index) noexcept nogil:
    cdef int place = b.state.place[KEY_LENGTHS if keys else LENGTHS]
    if place >= 0:
        return number_at(&b.views[place],
                         b.state.key_length_size if keys else b.state.length_size, index)
    return b.state.key_lengths[index] if keys else b.state.lengths[index]


cdef bint span_of(const batches_t *b, bint keys, ptrdiff_t batch, int64_t *begin,
                  int64_t *length, int64_t *bad) noexcept nogil:
    """Begin and count of a batch's rows; whether there is room for them."""
    cdef ptrdiff_t count = count_of(b, keys), room = b.room if keys else b.spaces
    cdef int64_t end
    cdef int place, size
    begin[0], length[0] = 0, room
    if count == 0:
        return True
    end = given_length(b, keys, 0 if count == 1 else batch)
    if b.state.key_cumulative if keys else b.state.cumulative:
        begin[0] = given_length(b, keys, batch - 1) if batch > 0 else 0
    length[0] = end - begin[0]
    bad[0] = end
    place = b.state.place[KEY_PADDING if keys else QUERY_PADDING]
    if place >= 0:
        size = b.state.key_padding_size if keys else b.state.query_padding_size
        begin[0] = room - max(<int64_t>0, number_at(&b.views[place], size, 0)) - end
    return begin[0] >= 0 and length[0] >= 0 and end <= room


# --- Work -----------------------------------------------------------------------------------------

cdef inline operand_t operand_at(const array_view *view, ptrdiff_t batch, ptrdiff_t head,
                                 ptrdiff_t row) noexcept nogil:
    cdef operand_t found
    found.data = (view.data + batch * view.strides[0] + head * view.strides[1]
                  + row * view.strides[2])
    found.head, found.row, found.step = view.strides[1], view.strides[2], view.strides[3]
    return found


cdef inline cache_t cache_at(const array_view *view, bint pages, ptrdiff_t batch, ptrdiff_t head,
                             ptrdiff_t row) noexcept nogil:
    cdef cache_t found
    found.data = view.data + head * view.strides[1]
    if not pages:
        found.data += batch * view.strides[0] + row * view.strides[2]
    found.block, found.row, found.step = view.strides[0], view.strides[2], view.strides[3]
    found.shared, found.shared_row, found.shared_step = NULL, 0, 0
    return found


cdef bint take_prefix(const batches_t *b, attention_t *a, int64_t *bad) noexcept nogil:
    """Count keys that all batches share; whether there are so many."""
    cdef const int *place = b.state.place
    cdef int64_t room = b.views[place[KEY_PREFIX]].shape[2]
    a.n_shared = room
    if place[PREFIX_LENGTH] >= 0:
        a.n_shared = number_at(&b.views[place[PREFIX_LENGTH]], b.state.prefix_size, 0)
    a.keys += a.n_shared
    bad[0] = a.n_shared
    return 0 <= a.n_shared <= room


cdef inline void share(cache_t *cache, const array_view *view, ptrdiff_t head) noexcept nogil:
    cache.shared = view.data + head * view.strides[1]
    cache.shared_row, cache.shared_step = view.strides[2], view.strides[3]


cdef bint is_masked(const batches_t *b, const attention_t *a, int64_t *bad) noexcept nogil:
    """Whether the mask has an element for each query and key of a batch."""
    cdef const array_view *mask = &b.views[b.state.place[MASK]]
    bad[0] = a.queries if a.queries > mask.shape[2] else a.keys
    return a.queries <= mask.shape[2] and a.keys <= mask.shape[3]


cdef int take_batch(const batches_t *b, ptrdiff_t batch, attention_t *a, int64_t *query,
                    int64_t *key, int64_t *bad) noexcept nogil:
    """Read a batch's own lengths, window and prefix."""
    cdef const state_t *state = b.state
    if not span_of(b, False, batch, query, &a.queries, bad):
        return BAD_LENGTH
    if not span_of(b, True, batch, key, &a.keys, bad):
        return BAD_KEY_LENGTH
    if state.place[KEY_PREFIX] >= 0 and not take_prefix(b, a, bad):
        return BAD_PREFIX
    if state.place[QUERY_PADDING] >= 0:
        a.turn, a.turned = b.spaces - query[0], b.spaces
    if state.cumulative and batch == b.batch - 1 and query[0] + a.queries != b.spaces:
        bad[0] = query[0] + a.queries
        return BAD_END
    if (state.cumulative and a.mask_kind != NO_MASK and not state.is_tree
            and not is_masked(b, a, bad)):
        return BAD_MASK
    a.low, a.high = state.low, state.high
    if state.anchored:
        a.low += a.keys - a.queries
        a.high += a.keys - a.queries
    if state.n_prefix:
        a.prefix = state.prefix[batch if state.n_prefix > 1 else 0]
    if state.is_tree:
        a.mask_from = a.keys - a.queries
        bad[0] = a.queries
        if a.mask_from < 0:
            return BAD_LENGTH
    return 0


cdef void take_head(const batches_t *b, ptrdiff_t batch, ptrdiff_t head, int64_t query,
                    int64_t key, attention_t *a) noexcept nogil:
    """Addresses of the operands of a batch and a head of keys."""
    cdef const state_t *state = b.state
    cdef const array_view *views = b.views
    cdef const int *place = state.place
    cdef bint pages = place[TABLE] >= 0
    cdef ptrdiff_t first = head * a.group
    cdef ptrdiff_t line = 0 if state.cumulative else batch
    cdef ptrdiff_t key_line = 0 if state.key_cumulative else batch
    a.query = operand_at(&views[place[QUERY]], line, first, query)
    if place[OUT] >= 0:
        a.out = operand_at(&views[place[OUT]], line, first, query)
    a.key = cache_at(&views[place[KEY]], pages, key_line, head, key)
    a.value = cache_at(&views[place[VALUE]], pages, key_line, head, key)
    if place[KEY_PREFIX] >= 0:
        share(&a.key, &views[place[KEY_PREFIX]], head)
        share(&a.value, &views[place[VALUE_PREFIX]], head)
    if a.rope:
        a.query_rope = operand_at(&views[place[QUERY_ROPE]], line, first, query)
        a.key_rope = cache_at(&views[place[KEY_ROPE]], pages, key_line, head, key)
    # Masks and shifts are for rows of the tensors, padding included.
    if place[MASK] >= 0:
        a.mask = operand_at(&views[place[MASK]], batch, first, 0 if state.cumulative else query)
        a.mask.data += 0 if state.key_cumulative else key * a.mask.step
    if place[SHIFT] >= 0:
        a.shift = operand_at(&views[place[SHIFT]], batch, first, 0 if state.cumulative else query)
        a.shift.data += 0 if state.key_cumulative else key * a.shift.step
    if place[SLOPES] >= 0:
        a.slope_step = views[place[SLOPES]].strides[0]
        a.slopes = views[place[SLOPES]].data + first * a.slope_step
    if place[SINK] >= 0:
        a.sink_step = views[place[SINK]].strides[0]
        a.sink = views[place[SINK]].data + first * a.sink_step
    if pages:
        a.table = views[place[TABLE]].data + batch * views[place[TABLE]].strides[0]
        a.table_step = views[place[TABLE]].strides[1]
    if place[FIRST] >= 0:
        a.first = operand_at(&views[place[FIRST]], line, first, query)
    if place[SECOND] >= 0:
        a.second = operand_at(&views[place[SECOND]], line, first, query)


cdef inline ptrdiff_t rows_in(const batches_t *b, const attention_t *a) noexcept nogil:
    """Rows of a batch and a head of keys: with cumulative lengths those that there are, else also
    those
    behind the last query, whose results are 0."""
    return (a.queries if b.state.cumulative else b.spaces) * a.group


cdef inline ptrdiff_t up_to(ptrdiff_t n, ptrdiff_t multiple) noexcept nogil:
    return (n + multiple - 1) // multiple * multiple


cdef inline ptrdiff_t rows_at_once(ptrdiff_t rows, ptrdiff_t most) noexcept nogil:
    """Into what rows are divided: as even parts of at most so many as possible."""
    cdef ptrdiff_t parts = max(1, (rows + most - 1) // most)
    return max(<ptrdiff_t>ROWS, up_to((rows + parts - 1) // parts, ROWS))


cdef void begin_run(void *block, const void *given, const kernel_number *numbers,
                    int n_numbers) noexcept nogil:
    """The scale, then for each unit of rows how many of its segments are done; room for their
    results follows."""
    memset(block, 0, 64 + (<const state_t *>given).of_units)
    (<kernel_number *>block)[0] = numbers[0]


cdef int attention_by_keys(const batches_t *b, attention_t *a, char *block, char *scratch,
                           ptrdiff_t chunk, ptrdiff_t chunks, int64_t *bad) noexcept nogil:
    """A share of the segments of all units of rows: who does the last of a unit writes its rows."""
    cdef const state_t *state = b.state
    cdef int32_t *done = <int32_t *>(block + 64)
    cdef float *parts = <float *>(block + 64 + state.of_units)
    cdef float *own
    cdef ptrdiff_t rows = b.spaces * a.group, step = rows_at_once(rows, MOST_ROWS)
    cdef ptrdiff_t blocks = (rows + step - 1) // step
    cdef ptrdiff_t all_ = b.batch * b.heads * blocks * state.n_parts
    cdef ptrdiff_t task, unit, segment, batch, row, count
    cdef int64_t query, key
    cdef int status
    for task in range(all_ * chunk // chunks, all_ * (chunk + 1) // chunks):
        unit, segment = task // state.n_parts, task % state.n_parts
        batch, row = unit // (b.heads * blocks), unit % blocks * step
        status = take_batch(b, batch, a, &query, &key, bad)
        if status != 0:
            return status
        take_head(b, batch, unit // blocks % b.heads, query, key, a)
        count = min(step, rows - row)
        own = parts + unit * state.n_parts * state.part
        status = attend_segment(a, row, count, segment, scratch, own + segment * state.part, bad)
        if status != 0:
            return status
        if is_last(&done[unit], <int32_t>state.n_parts):
            join_segments(a, row, count, scratch, own, state.part)
    return 0


cdef int check_attention(const array_view *views, const void *given, const void *params,
                         void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                         call_context *context) noexcept nogil:
    """Lengths of all batches, and a share of the tables of blocks."""
    cdef const state_t *state = <const state_t *>given
    cdef batches_t b
    cdef attention_t a = state.like
    cdef ptrdiff_t batch
    cdef int64_t query, key
    cdef int status
    describe(views, state, &b)
    for batch in range(b.batch):
        status = take_batch(&b, batch, &a, &query, &key, &context.detail)
        if status != 0:
            return status
        if a.block_size == 0 or batch < b.batch * chunk // chunks or (
                batch >= b.batch * (chunk + 1) // chunks):
            continue
        take_head(&b, batch, 0, query, key, &a)
        if b.heads and not all_blocks_exist(&a, rows_in(&b, &a), &context.detail):
            return BAD_BLOCK
    return 0


cdef int attention(const array_view *views, const void *given, const void *params, void *scratch,
                   ptrdiff_t chunk, ptrdiff_t chunks, call_context *context) noexcept nogil:
    cdef const state_t *state = <const state_t *>given
    cdef batches_t b
    cdef attention_t a = state.like
    cdef ptrdiff_t batch, head, row, rows, step, total = 0, units = 0, unit = 0, begin, end, most
    cdef int64_t query, key
    cdef int status
    describe(views, state, &b)
    a.scale = <float>(<const kernel_number *>params)[0].real
    for batch in range(b.batch):
        status = take_batch(&b, batch, &a, &query, &key, &context.detail)
        if status != 0:
            return status
        rows = rows_in(&b, &a)
        total += b.heads * rows
        units += b.heads * ((rows + MOST_ROWS - 1) // MOST_ROWS)
    if state.n_parts and units < chunks:
        return attention_by_keys(&b, &a, <char *>params, <char *>scratch, chunk, chunks,
                                 &context.detail)
    # Smaller parts where there would be fewer than chunks: results are the same.
    most = MOST_ROWS if units >= chunks else min(<ptrdiff_t>MOST_ROWS,
                                                 up_to((total + chunks - 1) // chunks, ROWS))
    units = 0
    for batch in range(b.batch):
        take_batch(&b, batch, &a, &query, &key, &context.detail)
        rows = rows_in(&b, &a)
        step = rows_at_once(rows, most)
        units += b.heads * ((rows + step - 1) // step)
    begin, end = units * chunk // chunks, units * (chunk + 1) // chunks
    for batch in range(b.batch):
        take_batch(&b, batch, &a, &query, &key, &context.detail)
        rows = rows_in(&b, &a)
        step = rows_at_once(rows, most)
        for head in range(b.heads):
            take_head(&b, batch, head, query, key, &a)
            row = 0
            while row < rows:
                if begin <= unit < end:
                    status = attend(&a, row, min(step, rows - row), state.segments, <char *>scratch,
                                    &context.detail)
                    if status != 0:
                        return status
                unit += 1
                row += step
    return 0


cdef int attention_gradient(const array_view *views, const void *given, const void *params,
                            void *scratch, ptrdiff_t chunk, ptrdiff_t chunks,
                            call_context *context) noexcept nogil:
    """A unit of work is a block of rows of queries, or a tile of keys."""
    cdef const state_t *state = <const state_t *>given
    cdef batches_t b
    cdef gradient_t g
    cdef ptrdiff_t batch, head, blocks, tiles, begin, end, per_head, rows, task, unit = 0, total = 0
    cdef int64_t query, key, room
    cdef int status
    describe(views, state, &b)
    memset(&g, 0, sizeof(g))
    g.a = state.like
    g.a.scale = <float>(<const kernel_number *>params)[0].real
    for batch in range(b.batch):
        status = take_batch(&b, batch, &g.a, &query, &key, &context.detail)
        if status != 0:
            return status
        total += b.heads * (blocks_in(&b, &g.a) + tiles_in(&b, &g.a))
    begin, end = total * chunk // chunks, total * (chunk + 1) // chunks
    for batch in range(b.batch):
        take_batch(&b, batch, &g.a, &query, &key, &context.detail)
        rows, room = rows_in(&b, &g.a), g.a.keys if state.key_cumulative else b.room
        blocks, tiles = blocks_in(&b, &g.a), tiles_in(&b, &g.a)
        per_head = blocks + tiles
        for head in range(b.heads):
            take_head(&b, batch, head, query, key, &g.a)
            take_gradients(&b, batch, head, query, key, &g)
            for task in range(max(<ptrdiff_t>0, begin - unit), min(per_head, end - unit)):
                if task < blocks:
                    gradient_of_rows(&g, task * BLOCK_ROWS,
                                     min(<ptrdiff_t>BLOCK_ROWS, rows - task * BLOCK_ROWS),
                                     <char *>scratch)
                else:
                    keys_of_tile(&g, (task - blocks) * KEYS, room, rows, <char *>scratch)
            unit += per_head
    return 0


cdef inline void keys_of_tile(const gradient_t *g, int64_t first, int64_t room, ptrdiff_t rows,
                              char *scratch) noexcept nogil:
    """Gradients of the keys of a tile."""
    gradient_of_keys(g, first, <ptrdiff_t>min(<int64_t>KEYS, room - first), rows, scratch)


cdef inline ptrdiff_t blocks_in(const batches_t *b, const attention_t *a) noexcept nogil:
    return (rows_in(b, a) + BLOCK_ROWS - 1) // BLOCK_ROWS


cdef inline ptrdiff_t tiles_in(const batches_t *b, const attention_t *a) noexcept nogil:
    return ((a.keys if b.state.key_cumulative else b.room) + KEYS - 1) // KEYS


cdef void take_gradients(const batches_t *b, ptrdiff_t batch, ptrdiff_t head, int64_t query,
                         int64_t key, gradient_t *g) noexcept nogil:
    cdef const int *place = b.state.place
    cdef ptrdiff_t first = head * g.a.group
    cdef ptrdiff_t line = 0 if b.state.cumulative else batch
    cdef ptrdiff_t key_line = 0 if b.state.key_cumulative else batch
    g.grad = operand_at(&b.views[place[GRAD]], line, first, query)
    g.result = operand_at(&b.views[place[RESULT]], line, first, query)
    g.grad_query = operand_at(&b.views[place[GRAD_QUERY]], line, first, query)
    g.grad_key = cache_at(&b.views[place[GRAD_KEY]], False, key_line, head, key)
    g.grad_value = cache_at(&b.views[place[GRAD_VALUE]], False, key_line, head, key)


cdef void describe(const array_view *views, const state_t *state, batches_t *b) noexcept nogil:
    cdef const array_view *query = &views[state.place[QUERY]]
    cdef const array_view *key = &views[state.place[KEY]]
    b.state, b.views = state, views
    b.heads, b.spaces = key.shape[1], query.shape[2]
    b.batch = count_of(b, False) if state.cumulative else query.shape[0]
    if state.place[TABLE] >= 0:
        b.room = views[state.place[TABLE]].shape[1] * key.shape[2]
    else:
        b.room = key.shape[2]


# --- The kernel's reference -----------------------------------------------------------------------

cdef int64_t *copied(tuple numbers) except? NULL:
    cdef int64_t *found = <int64_t *>calloc(max(1, len(numbers)), sizeof(int64_t))
    cdef Py_ssize_t k
    if found == NULL:
        raise MemoryError
    for k in range(len(numbers)):
        found[k] = numbers[k]
    return found


# --- Facts of an instruction set ------------------------------------------------------------------

cdef ptrdiff_t panel_rows() noexcept nogil:
    return ROWS


cdef ptrdiff_t unit_rows() noexcept nogil:
    return MOST_ROWS


cdef ptrdiff_t block_rows() noexcept nogil:
    return BLOCK_ROWS


cdef ptrdiff_t room_for(const attention_t *like, ptrdiff_t rows, int segments) noexcept nogil:
    """Bytes of scratch for so many rows."""
    cdef scratch_t parts
    return lay_out(like, min(<ptrdiff_t>MOST_ROWS, up_to(rows, ROWS)), segments, NULL, &parts)


cdef ptrdiff_t gradient_room_for(const attention_t *like) noexcept nogil:
    cdef gradient_scratch_t parts
    return lay_out_gradient(like, NULL, &parts)


cdef ptrdiff_t part_for(ptrdiff_t values, ptrdiff_t rows) noexcept nogil:
    """Floats of the results of one segment."""
    return part_size(values, rows_at_once(rows, MOST_ROWS))


cdef class AttentionState:
    """State of the kernel of attention, and the division of its work.

    Parameters
    ----------
    dtypes : dict of str to str
        Of each operand that there is, results included, by its name in `OPERANDS`, in that order.
    shapes : dict of str to tuple of int
        Of query, key and value, and of query_rope, table and key_prefix where there are such.
    mask : {'hides', 'shows'}
        What a true element of a mask does.
    shift_first : bool
        Whether the shift is added to the product, and the sum is scaled.
    window : (int, int), optional
        Query i sees keys from i + window[0] to i + window[1].
    anchored : bool
        Whether that is so for the last query and the last key, instead of the first ones.
    tree : bool
        Whether the mask is for the last keys of each batch, as many as it has queries.
    prefix : tuple of int
        So many keys of each batch are seen by all of its queries.
    ahead : int
        Of key j, query i is j + ahead - i away, where there are slopes.
    slope_root : bool
        Whether scores fall by the root of distances.
    lengths, key_lengths : tuple of int
        Where they are no operands.
    cumulative, key_cumulative : bool
        Whether lengths are ends, counted through all batches, which follow one another.
    """

    cdef double cost           # nanoseconds
    cdef ptrdiff_t scratch     # bytes that each thread lends the kernel
    cdef size_t params_size    # what `begin_run` fills; 0: it has nothing to do
    cdef Py_ssize_t panels, units
    cdef bint is_gradient
    cdef state_t kept

    def __cinit__(self, dict dtypes not None, dict shapes not None, *, str mask="hides",
                  bint shift_first=False, window=None, bint anchored=False, bint tree=False,
                  tuple prefix=(), int64_t ahead=0, bint slope_root=False, tuple lengths=(),
                  tuple key_lengths=(), bint cumulative=False, bint key_cumulative=False):
        cdef int place
        cdef state_t *kept = &self.kept
        cdef attention_t *like = &kept.like
        for place in range(N_OPERANDS):
            kept.place[place] = -1
        for place, role in enumerate(dtypes):
            kept.place[<int>OPERANDS.index(role)] = place
        self.is_gradient = "grad" in dtypes
        like.type = TYPES[dtypes["query"]]
        like.shift_type = TYPES[dtypes.get("shift", "float32")]
        like.shift_first = shift_first
        like.depth, like.values = shapes["query"][3], shapes["value"][3]
        like.rope = shapes["query_rope"][3] if "query_rope" in dtypes else 0
        like.group = shapes["query"][1] // max(1, shapes["key"][1])
        if "mask" in dtypes:
            like.mask_kind = TRUE_HIDES if mask == "hides" else TRUE_SHOWS
            like.mask_size = ITEM_SIZES[dtypes["mask"]]
        if "first" in dtypes:
            like.statistics = MAX_AND_SUM if "second" in dtypes else LOGSUMEXP
        if "table" in dtypes:
            like.block_size, like.blocks = shapes["key"][2], shapes["key"][0]
        like.turn, like.ahead, like.slope_root = INT64_MAX, ahead, slope_root
        like.window = window is not None
        if window is not None:
            kept.low, kept.high = window
        kept.anchored, kept.is_tree = anchored, tree
        kept.cumulative, kept.key_cumulative = cumulative, key_cumulative
        kept.length_size = ITEM_SIZES[dtypes.get("lengths", "int64")]
        kept.prefix_size = ITEM_SIZES[dtypes.get("prefix_length", "int64")]
        kept.query_padding_size = ITEM_SIZES[dtypes.get("query_padding", "int64")]
        kept.key_padding_size = ITEM_SIZES[dtypes.get("key_padding", "int64")]
        kept.key_length_size = ITEM_SIZES[dtypes.get("key_lengths", "int64")]
        kept.n_prefix, kept.prefix = len(prefix), copied(prefix)
        kept.n_lengths, kept.lengths = len(lengths), copied(lengths)
        kept.n_key_lengths, kept.key_lengths = len(key_lengths), copied(key_lengths)
        self.measure(shapes)

    def __dealloc__(self):
        free(self.kept.prefix)
        free(self.kept.lengths)
        free(self.kept.key_lengths)

    cdef int measure(self, dict shapes) except -1:
        """Measure the work, and the scratch that it takes."""
        cdef Py_ssize_t of_panel = panel_rows(), of_unit = unit_rows(), of_block = block_rows()
        batch, heads, queries, depth = shapes["query"]
        _, key_heads, keys, _ = shapes["key"]
        if "table" in shapes:
            keys = shapes["table"][1] * shapes["key"][2]
        if "key_prefix" in shapes:
            keys += shapes["key_prefix"][2]
        rows = queries * (heads // max(1, key_heads))
        self.kept.segments = 2 if keys > SEGMENT else 1
        self.scratch = room_for(&self.kept.like, rows, self.kept.segments)
        self.panels = batch * key_heads * up_to(rows, of_panel) // of_panel
        self.units = batch * key_heads * (up_to(rows, of_unit) // of_unit)
        depth += self.kept.like.rope + self.kept.like.values
        if not (self.is_gradient or self.kept.cumulative or self.kept.key_cumulative):
            self.divide_keys(rows, keys)
        if self.is_gradient:
            self.scratch = gradient_room_for(&self.kept.like)
            blocks = up_to(rows, of_block) // of_block + up_to(keys, KEYS) // KEYS
            self.panels = self.units = batch * key_heads * blocks
        self.cost = batch * heads * keys * depth * (2.0 * queries / 100 + 0.05)
        return 0

    cdef int divide_keys(self, Py_ssize_t rows, Py_ssize_t keys) except -1:
        """Find whether segments of keys are worth being computed side by side."""
        cdef Py_ssize_t count = up_to(keys, SEGMENT) // SEGMENT, room
        if count < 2 or not 0 < self.panels < FEW_PANELS:
            return 0
        self.kept.part = part_for(self.kept.like.values, rows)
        room = self.units * count * self.kept.part * <Py_ssize_t>sizeof(float)
        if room > MOST_PARTS:
            return 0
        self.kept.n_parts = count
        self.kept.of_units = up_to(self.units * <Py_ssize_t>sizeof(int32_t), 64)
        self.params_size = 64 + self.kept.of_units + room
        return 0

    def chunks(self, threads):
        """Into how many calls the work is cut, for so many threads.

        Parameters
        ----------
        threads : int

        Returns
        -------
        int
        """
        if threads < 2:
            return 1
        if self.kept.n_parts and self.panels < SHARES * threads:
            return min(self.units * self.kept.n_parts, SHARES * threads)
        wanted = SHARES * threads if self.units >= SHARES * threads else threads
        return max(1, min(self.panels, wanted))


def attention_kernel(tuple inputs not None, tuple outputs not None, *, tuple operands not None,
                     tuple views not None, **options):
    """The kernel of attention for certain dtypes and shapes.

    Parameters
    ----------
    inputs, outputs : tuple of str
        Dtypes of operands.
    operands : tuple of str
        What they are, of `OPERANDS`.
    views : tuple of Value
    **options
        As `AttentionState` takes them.

    Returns
    -------
    Kernel
    """
    cdef dict dtypes = dict(zip(operands, inputs + outputs, strict=True))
    cdef dict shapes = {}
    for role, view in zip(operands, views, strict=True):
        shapes[role] = view.shape
    cdef AttentionState kept = AttentionState(dtypes, shapes, **options)
    cdef str name = "attention_gradient" if kept.is_gradient else "attention"
    length = ("a length of {which} is {{detail}}, for which there is no room, or after a larger "
              "one")
    checked = ()
    for place, role in enumerate(dtypes):
        if role in CHECKED and not kept.is_gradient:
            checked += (place,)
    return Kernel(
        fn=<size_t>(<call_kernel>attention_gradient if kept.is_gradient
                    else <call_kernel>attention),
        state=<size_t>&kept.kept,
        name=f"{name}[{','.join(dtypes.values())}]",
        itemsizes=tuple(map(ITEM_SIZES.__getitem__, dtypes.values())),
        cost=kept.cost,
        owner=kept,
        prepare=<size_t>begin_run if kept.params_size else 0,
        params_size=kept.params_size,
        scratch=kept.scratch,
        chunks=kept.chunks,
        check=<size_t>(<call_kernel>check_attention) if checked else 0,
        checked=checked,
        failures={
            BAD_BLOCK: ("a block of the block table is {detail}, must be from 0 to "
                        f"{kept.kept.like.blocks - 1}"),
            BAD_END: "lengths of queries end with {detail}, must end with the last row",
            BAD_PREFIX: ("a number of shared keys is {detail}, must not be negative, nor more than "
                         "the rows of the prefix"),
            BAD_MASK: "a batch has {detail} queries or keys, more than the mask",
            BAD_LENGTH: length.format(which="queries"),
            BAD_KEY_LENGTH: length.format(which="keys"),
        },
    )
