# cython: wraparound=False
"""Runs schedules that are packed: no Python objects, no GIL, tiles over threads."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uintptr_t

from graph.abi cimport (
    SCHEDULE_MAX_DIMS,
    SCHEDULE_MAX_OPERANDS,
    SCHEDULE_MAX_THREADS,
    SCHEDULE_NUMBERS,
    SCHEDULE_PARAMS,
    SCHEDULE_PARAMS_ALIGNMENT,
    SCHEDULE_SCRATCH,
    SCHEDULE_WORKSPACE,
    TILE_PREFETCH_FAR,
    TILE_PREFETCH_NEAR,
    TILE_SAWTOOTH,
    TILE_STREAM,
    kernel_number,
    schedule_event,
    schedule_operand,
    schedule_op,
    schedule_step,
    schedule_t,
    tile_view,
)

cdef extern from "team.h" nogil:
    ctypedef void (*team_part)(void *context, int member) noexcept nogil
    void team_run(int members, team_part part, void *context) noexcept
    void team_watch_forks() noexcept
    int64_t team_clock() noexcept

cdef extern from *:
    """
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif
    #ifdef _OPENMP
    #include <omp.h>
    static int have_openmp(void) { return 1; }
    #else
    static int omp_get_max_threads(void) { return SCHEDULE_MAX_THREADS; }
    static int omp_get_thread_limit(void) { return SCHEDULE_MAX_THREADS; }
    static void omp_set_num_threads(int n) {}
    static int have_openmp(void) { return 0; }
    #endif

    /* Stores that bypass the cache become visible to other threads in any order without this. */
    static void store_fence(void) {
    #if defined(__SSE2__)
        _mm_sfence();
    #endif
    }

    /* Whether the last walk that this thread began went forwards. */
    static __thread int walked_forwards;
    """
    int omp_get_max_threads() noexcept nogil
    int omp_get_thread_limit() noexcept nogil
    void omp_set_num_threads(int) noexcept nogil
    int have_openmp() noexcept nogil
    void store_fence() noexcept nogil
    int walked_forwards
    int __atomic_fetch_add(int *, int, int) noexcept nogil
    int __ATOMIC_RELAXED
    void prefetch "__builtin_prefetch"(const void *) noexcept nogil

team_watch_forks()


def omp_threads():
    """Threads that OpenMP would use for this caller, as `threadpoolctl` limits; without it, all."""
    return min(omp_get_max_threads(), omp_get_thread_limit())


def limit_omp_threads(int n):
    """Let OpenMP use at most `n` threads for the calling thread, for which alone a limit is set."""
    omp_set_num_threads(n)


def openmp_enabled():
    """Whether this module was built with OpenMP, and so knows its limits."""
    return bool(have_openmp())


# --- Running ----------------------------------------------------------------------------------

cdef enum:
    SAWTOOTH_TILES = 4  # tiles that a walk back does at once, forwards
    SHARES = 4  # that each thread has of large tensors, if none is held up


cdef struct run_t:
    # What a run is given, and all of its steps share.
    const schedule_t *schedule
    char *const *addresses
    char *workspace
    const kernel_number *numbers
    const char *params      # what kernels have prepared of them
    schedule_event *events  # NULL where nobody looks


cdef inline char *place(const run_t *run, const schedule_operand *operand,
                        int thread) noexcept nogil:
    """Address of an operand's first element, for a thread."""
    cdef char *workspace = run.workspace
    if operand.base >= 0:
        return run.addresses[operand.base] + operand.offset
    if operand.base == SCHEDULE_SCRATCH:
        workspace += run.schedule.scratch_offset + thread * run.schedule.scratch_per_thread
    return workspace + operand.offset


cdef inline void call_ops(const run_t *run, const schedule_step *step, char *const *data,
                          ptrdiff_t rows, ptrdiff_t cols) noexcept nogil:
    """Run the kernels of a step on one tile."""
    cdef tile_view views[SCHEDULE_MAX_OPERANDS]
    cdef const schedule_op *op
    cdef const schedule_operand *operand
    cdef const void *params
    cdef int i, k, row = step.ndim - 2
    for i in range(step.n_ops):
        op = &step.ops[i]
        for k in range(op.n_operands):
            operand = &step.operands[op.operands[k]]
            views[k].data = data[op.operands[k]]
            views[k].row_stride = operand.strides[row]
            views[k].col_stride = operand.strides[row + 1]
        params = run.numbers
        if op.prepare != NULL:
            params = run.params + op.params_offset
        op.kernel(views, rows, cols, op.state, params, NULL, op.flags)


cdef inline void wait_for_stores(const schedule_step *step) noexcept nogil:
    """What one thread has streamed, another may read after this."""
    if step.streams:
        store_fence()


cdef inline bint takes_long_rows(const schedule_step *step) noexcept nogil:
    """Whether a step has one kernel, so that nothing waits in a cache, and tiles of one row."""
    return step.n_ops == 1 and step.tile_rows == 1


cdef struct walk_t:
    # A way through the tiles of a step, in row-major order.
    ptrdiff_t counts[SCHEDULE_MAX_DIMS]  # of tiles, along each dimension
    ptrdiff_t index[SCHEDULE_MAX_DIMS]   # of the tile that it is at
    ptrdiff_t jumps[SCHEDULE_MAX_DIMS][SCHEDULE_MAX_OPERANDS]  # bytes from a tile to the next
    char *data[SCHEDULE_MAX_OPERANDS]    # where each operand of the tile begins


cdef inline void walk_from(walk_t *walk, ptrdiff_t begin, const run_t *run,
                           const schedule_step *step, int thread) noexcept nogil:
    """Set out at the tile number `begin`."""
    cdef int ndim = step.ndim, n = step.n_operands, d, k
    for d in range(ndim):
        walk.counts[d] = step.shape[d]
    walk.counts[ndim - 2] = (step.shape[ndim - 2] + step.tile_rows - 1) // step.tile_rows
    walk.counts[ndim - 1] = (step.shape[ndim - 1] + step.tile_cols - 1) // step.tile_cols
    for k in range(n):
        walk.data[k] = place(run, &step.operands[k], thread)
    for d in range(ndim - 1, -1, -1):
        walk.index[d] = begin % walk.counts[d]
        begin = begin // walk.counts[d]
        for k in range(n):
            # A scratch tile stays where it is, whatever part of the tensors it stands for.
            walk.jumps[d][k] = 0
            if step.operands[k].base != SCHEDULE_SCRATCH:
                walk.jumps[d][k] = step.operands[k].strides[d]
                if d == ndim - 2:
                    walk.jumps[d][k] *= step.tile_rows
                elif d == ndim - 1:
                    walk.jumps[d][k] *= step.tile_cols
            walk.data[k] += walk.index[d] * walk.jumps[d][k]


cdef inline void walk_on(walk_t *walk, const schedule_step *step, ptrdiff_t tiles) noexcept nogil:
    """Go on by so many tiles, which end in the same row of them."""
    cdef int n = step.n_operands, d = step.ndim - 1, k
    while d >= 0:
        walk.index[d] += tiles
        for k in range(n):
            walk.data[k] += tiles * walk.jumps[d][k]
        if walk.index[d] < walk.counts[d]:
            return
        # The first of the next row.
        tiles = 1
        for k in range(n):
            walk.data[k] -= walk.counts[d] * walk.jumps[d][k]
        walk.index[d] = 0
        d -= 1


cdef void run_tiles(const run_t *run, const schedule_step *step, ptrdiff_t begin, ptrdiff_t end,
                    int thread) noexcept nogil:
    """Run the tiles [begin, end) of a step."""
    cdef int row = step.ndim - 2, col = step.ndim - 1
    cdef ptrdiff_t merged, rows, cols
    cdef walk_t walk
    walk_from(&walk, begin, run, step, thread)
    while begin < end:
        # A kernel gets tiles of a row as one: what it prepares, and what it waits for at its end,
        # is then there only once.
        merged = 1
        if takes_long_rows(step):
            merged = min(end - begin, walk.counts[col] - walk.index[col])
        rows = min(step.tile_rows, step.shape[row] - walk.index[row] * step.tile_rows)
        cols = min(merged * step.tile_cols, step.shape[col] - walk.index[col] * step.tile_cols)
        call_ops(run, step, walk.data, rows, cols)
        walk_on(&walk, step, merged)
        begin += merged


cdef inline bint walks_back(const schedule_step *step) noexcept nogil:
    """Whether to walk from the last tile to the first.

    The caches hold the end of what was walked over last, and the same tensors often come next.
    Walks that take turns meet it at once; those that always begin at the other end drive it out
    before they get there.
    """
    global walked_forwards
    if not step.ops[0].flags & TILE_SAWTOOTH:
        return False
    walked_forwards = not walked_forwards
    return not walked_forwards


cdef void run_back(const run_t *run, const schedule_step *step, ptrdiff_t begin, ptrdiff_t end,
                   int thread) noexcept nogil:
    """Run the tiles [begin, end) of a step, the last ones first."""
    cdef ptrdiff_t first
    while end > begin:
        first = max(begin, end - SAWTOOTH_TILES)
        run_tiles(run, step, first, end, thread)
        end = first


cdef inline int threads_for(const schedule_t *schedule, const schedule_step *step,
                            int threads) noexcept nogil:
    """How many threads a step is worth."""
    cdef ptrdiff_t elements = 1
    cdef int d
    if threads > schedule.max_threads:
        threads = schedule.max_threads
    if threads <= 1 or step.n_tiles == 1:
        return 1
    for d in range(step.ndim):
        elements *= step.shape[d]
    if elements < step.parallel_from:
        return 1
    return <int>min(<ptrdiff_t>threads, step.n_tiles)


cdef void run_part(const run_t *run, int s, int part, int parts, int thread,
                   bint back) noexcept nogil:
    """Run one of the contiguous parts of the tiles of step `s`; a thread may run several."""
    cdef const schedule_step *step = &run.schedule.steps[s]
    cdef ptrdiff_t begin = step.n_tiles * part // parts
    cdef ptrdiff_t end = step.n_tiles * (part + 1) // parts
    cdef schedule_event *event = NULL
    if run.events != NULL:
        event = &run.events[<ptrdiff_t>s * run.schedule.max_threads + thread]
        if event.begin == 0:
            event.begin = team_clock()
    if back:
        run_back(run, step, begin, end, thread)
    else:
        run_tiles(run, step, begin, end, thread)
    wait_for_stores(step)
    if event != NULL:
        event.end = team_clock()


cdef struct team_step:
    # A step as the members of a team share it.
    run_t run  # not a pointer: it would have to come from another CPU before what it points to
    int s, parts
    int next   # part that nobody has taken; parts are taken in turn where there are shares
    bint back, shares


cdef void run_member(void *context, int member) noexcept nogil:
    """A member's part, or as many as it gets to."""
    cdef team_step *shared = <team_step *>context
    cdef int part = member
    # These come from another CPU, while the tiles are found.
    prefetch(shared.run.numbers)
    prefetch(shared.run.params)
    if shared.shares:
        part = __atomic_fetch_add(&shared.next, 1, __ATOMIC_RELAXED)
    while part < shared.parts:
        run_part(&shared.run, shared.s, part, shared.parts, member, shared.back)
        if not shared.shares:
            return
        part = __atomic_fetch_add(&shared.next, 1, __ATOMIC_RELAXED)


cdef void run_parallel(const run_t *run, int s, int threads, bint back) noexcept nogil:
    cdef const schedule_step *step = &run.schedule.steps[s]
    cdef team_step shared
    shared.run, shared.s = run[0], s
    shared.back, shared.next = back, 0
    # What no cache holds may run anywhere: a thread whose CPU is busy otherwise takes less.
    shared.shares = step.ops[0].flags & TILE_PREFETCH_FAR and step.n_tiles >= threads * SHARES
    shared.parts = threads * SHARES if shared.shares else threads
    team_run(threads, run_member, &shared)


cdef void clear_events(const schedule_t *schedule, schedule_event *events) noexcept nogil:
    """Number the rows; rows of threads that do not run keep begin == end == 0."""
    cdef int s, t
    cdef schedule_event *event = events
    for s in range(schedule.n_steps):
        for t in range(schedule.max_threads):
            event.step = s
            event.thread = t
            event.begin = 0
            event.end = 0
            event += 1


cdef inline const char *prepare_params(const schedule_t *schedule, const kernel_number *numbers,
                                       char *memory) noexcept nogil:
    """Prepare what kernels make of the numbers, from the first multiple of the alignment on."""
    cdef char *params = memory + (-<ptrdiff_t><uintptr_t>memory & (SCHEDULE_PARAMS_ALIGNMENT - 1))
    cdef const schedule_op *op
    cdef int s, i
    for s in range(schedule.n_steps):
        for i in range(schedule.steps[s].n_ops):
            op = &schedule.steps[s].ops[i]
            if op.prepare != NULL:
                op.prepare(params + op.params_offset, op.state, numbers, SCHEDULE_NUMBERS)
    return params


cdef void schedule_run(const schedule_t *schedule, char *const *addresses, char *workspace,
                       const kernel_number *numbers, int threads,
                       schedule_event *events) noexcept nogil:
    """Run all steps in order.  `events`, when given, has n_steps * max_threads rows."""
    cdef run_t run
    cdef const schedule_step *step
    cdef char *data[SCHEDULE_MAX_OPERANDS]
    cdef char params[SCHEDULE_PARAMS + SCHEDULE_PARAMS_ALIGNMENT]
    cdef int s, k, count
    run.schedule, run.addresses, run.workspace = schedule, addresses, workspace
    run.numbers, run.events = numbers, events
    run.params = prepare_params(schedule, numbers, params)
    if events != NULL:
        clear_events(schedule, events)
    for s in range(schedule.n_steps):
        step = &schedule.steps[s]
        if step.n_tiles == 1 and events == NULL:
            for k in range(step.n_operands):
                data[k] = place(&run, &step.operands[k], 0)
            call_ops(&run, step, data, step.shape[step.ndim - 2], step.shape[step.ndim - 1])
            wait_for_stores(step)
            continue
        count = threads_for(schedule, step, threads)
        if count == 1:
            run_part(&run, s, 0, 1, 0, walks_back(step))
        else:
            run_parallel(&run, s, count, walks_back(step))


def header_constants():
    """The constants of `schedule.h` and `kernel_abi.h`, by their names in `aclnn.graph.abi`."""
    return {
        "MAX_DIMS": SCHEDULE_MAX_DIMS,
        "MAX_OPERANDS": SCHEDULE_MAX_OPERANDS,
        "MAX_THREADS": SCHEDULE_MAX_THREADS,
        "WORKSPACE": SCHEDULE_WORKSPACE,
        "SCRATCH": SCHEDULE_SCRATCH,
        "TILE_STREAM": TILE_STREAM,
        "TILE_PREFETCH_NEAR": TILE_PREFETCH_NEAR,
        "TILE_PREFETCH_FAR": TILE_PREFETCH_FAR,
        "TILE_SAWTOOTH": TILE_SAWTOOTH,
        "SCALARS": SCHEDULE_NUMBERS,
    }


def run_address():
    """Address of `schedule_run`, a `schedule_run_fn`."""
    return <uintptr_t>&schedule_run
