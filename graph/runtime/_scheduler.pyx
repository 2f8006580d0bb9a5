# cython: wraparound=False
"""The scheduler: runs programs, no Python objects, no GIL, tiles over threads."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport free, malloc

from aclnn.graph.runtime.abi cimport (
    PROGRAM_ALIGNMENT,
    PROGRAM_CONSTANT,
    PROGRAM_MAX_DIMS,
    PROGRAM_MAX_THREADS,
    PROGRAM_CHECKED_FIRST,
    PROGRAM_CHECKED_LATE,
    PROGRAM_NO_MEMORY,
    PROGRAM_SCRATCH,
    PROGRAM_SINGLE_BYTES,
    PROGRAM_SINGLE_OPERANDS,
    PROGRAM_WORKSPACE,
    program_event,
    program_failure,
    program_op,
    program_operand,
    program_step,
    program_t,
)
from aclnn.graph.runtime.kernel_abi cimport (
    TILE_PREFETCH_FAR,
    TILE_PREFETCH_NEAR,
    TILE_SAWTOOTH,
    TILE_STREAM,
    array_view,
    call_context,
    call_kernel,
    kernel_number,
    tile_view,
)

cdef extern from "Python.h":
    size_t PyThread_get_stacksize()
    int PyThread_set_stacksize(size_t size)

cdef extern from "thread_pool.h" nogil:
    enum:
        TEAM_STACK
    ctypedef void (*team_part)(void *context, int member) noexcept nogil
    void team_run(int members, team_part part, void *context) noexcept
    void team_watch_forks() noexcept
    int64_t team_clock() noexcept

cdef extern from "fp_environment.h" nogil:
    ctypedef unsigned int fp_environment
    fp_environment fp_enter() noexcept
    void fp_leave(fp_environment) noexcept

cdef extern from *:
    """
    #if defined(__SSE2__)
    #include <emmintrin.h>
    #endif
    #ifdef _OPENMP
    #include <omp.h>
    static int have_openmp(void) { return 1; }
    #else
    static int omp_get_max_threads(void) { return PROGRAM_MAX_THREADS; }
    static int omp_get_thread_limit(void) { return PROGRAM_MAX_THREADS; }
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
    int __atomic_exchange_n(int *, int, int) noexcept nogil
    int __ATOMIC_RELAXED
    void prefetch "__builtin_prefetch"(const void *) noexcept nogil
    # On the stack of the function that asks, for as long as it runs.
    void *on_stack "__builtin_alloca"(size_t) noexcept nogil

team_watch_forks()


cdef int threads_of_openmp() noexcept nogil:
    return min(omp_get_max_threads(), omp_get_thread_limit())


cdef void limit_openmp(int n) noexcept nogil:
    omp_set_num_threads(n)


def omp_threads():
    """Threads that OpenMP would use for this caller, as `threadpoolctl` limits; without it, all."""
    return threads_of_openmp()


def limit_omp_threads(int n):
    """Let OpenMP use at most `n` threads for the calling thread, for which alone a limit is set."""
    omp_set_num_threads(n)


def start_with_stack(thread):
    """Call a thread's `start` so that it has as much stack as the scheduler's own threads.

    It is to run kernels, so what `threading.stack_size` asks for does not matter here. That counts
    for the whole process: what somebody sets meanwhile stays.
    """
    cdef size_t asked = PyThread_get_stacksize()
    cdef bint changed = asked < TEAM_STACK and PyThread_set_stacksize(TEAM_STACK) == 0
    try:
        thread.start()
    finally:
        if changed and PyThread_get_stacksize() == TEAM_STACK:
            PyThread_set_stacksize(asked)


def openmp_enabled():
    """Whether this module was built with OpenMP, and so knows its limits."""
    return bool(have_openmp())


# --- Running ----------------------------------------------------------------------------------

cdef enum:
    SAWTOOTH_TILES = 4  # tiles that a walk back does at once, forwards
    SHARES = 4  # that each thread has of large tensors, if none is held up
    MOST_PARTS = 65536  # of calls of an opaque kernel that are handed out


cdef struct run_t:
    # What a run is given, and all of its steps share.
    const program_t *program
    char *const *addresses
    char *workspace
    char *scratch           # of the first thread
    char *borrowed          # of the first thread that the workspace has none for
    const char *params      # prepared, of all ops
    int threads             # that the run may use
    program_event *events   # NULL where nobody looks
    bint checking           # kernels look at what they refuse
    int failed              # whether an opaque kernel failed, or several did
    program_failure failure  # of the first one


cdef inline char *scratch_of(const run_t *run, int thread) noexcept nogil:
    cdef int beyond = thread - run.program.planned_threads
    if beyond >= 0:
        return run.borrowed + <size_t>beyond * run.program.scratch_per_thread
    return run.scratch + <size_t>thread * run.program.scratch_per_thread


cdef inline char *place(const run_t *run, const program_operand *operand,
                        int thread) noexcept nogil:
    """Address of an operand's first element, for a thread."""
    if operand.base >= 0:
        return run.addresses[operand.base] + operand.offset
    if operand.base == PROGRAM_SCRATCH:
        return scratch_of(run, thread) + operand.offset
    return run.workspace + operand.offset


cdef inline void call_ops(const run_t *run, const program_step *step, char *const *data,
                          tile_view *views, ptrdiff_t rows, ptrdiff_t cols,
                          int thread) noexcept nogil:
    """Run the kernels of a step on one tile."""
    cdef const program_op *op
    cdef const program_operand *operand
    cdef char *scratch
    cdef int i, k, row = step.ndim - 2
    for i in range(step.n_ops):
        op = &step.ops[i]
        for k in range(op.n_operands):
            operand = &step.operands[op.operands[k]]
            views[k].data = data[op.operands[k]]
            views[k].row_stride = operand.strides[row]
            views[k].col_stride = operand.strides[row + 1]
        scratch = NULL if op.scratch < 0 else scratch_of(run, thread) + op.scratch
        op.kernel.tile(views, rows, cols, op.state, run.params + op.params, scratch, op.flags)


cdef int call_opaque(const run_t *run, const program_step *step, ptrdiff_t chunk,
                     int thread, call_context *context) noexcept nogil:
    """Call an opaque kernel for one of its shares, or its check."""
    cdef const program_op *op = step.ops
    cdef array_view *views = <array_view *>on_stack(op.n_operands * sizeof(array_view))
    cdef const program_operand *operand
    cdef char *scratch = NULL if op.scratch < 0 else scratch_of(run, thread) + op.scratch
    cdef int k
    for k in range(op.n_operands):
        operand = &step.operands[op.operands[k]]
        views[k].data = place(run, operand, thread)
        views[k].ndim, views[k].shape = operand.ndim, operand.shape
        views[k].strides = operand.strides
    cdef call_kernel fn = op.check if run.checking else op.kernel.call
    return fn(views, op.state, run.params + op.params, scratch, chunk, step.n_tiles, context)


cdef inline void wait_for_stores(const program_step *step) noexcept nogil:
    """Wait until what one thread has streamed can be read by another."""
    if step.streams:
        store_fence()


cdef inline bint takes_long_rows(const program_step *step) noexcept nogil:
    """Whether a step has one kernel, so that nothing waits in a cache, and tiles of one row."""
    return step.n_ops == 1 and step.tile_rows == 1 and step.ops[0].scratch < 0


cdef struct walk_t:
    # A way through the tiles of a step, in row-major order.
    ptrdiff_t counts[PROGRAM_MAX_DIMS]  # of tiles, along each dimension
    ptrdiff_t index[PROGRAM_MAX_DIMS]   # of the tile that it is at
    ptrdiff_t *jumps  # bytes from a tile to the next: for each dimension, of each operand
    char **data       # where each operand of the tile begins


cdef inline void walk_from(walk_t *walk, ptrdiff_t begin, const run_t *run,
                           const program_step *step, int thread) noexcept nogil:
    """Set out at the tile number `begin`."""
    cdef int ndim = step.ndim, n = step.n_operands, d, k
    cdef ptrdiff_t *jumps
    for d in range(ndim):
        walk.counts[d] = step.shape[d]
    walk.counts[ndim - 2] = (step.shape[ndim - 2] + step.tile_rows - 1) // step.tile_rows
    walk.counts[ndim - 1] = (step.shape[ndim - 1] + step.tile_cols - 1) // step.tile_cols
    for k in range(n):
        walk.data[k] = place(run, &step.operands[k], thread)
    for d in range(ndim - 1, -1, -1):
        jumps = walk.jumps + d * n
        walk.index[d] = begin % walk.counts[d]
        begin = begin // walk.counts[d]
        for k in range(n):
            # A scratch tile stays where it is, whatever part of the tensors it stands for.
            jumps[k] = 0
            if step.operands[k].base != PROGRAM_SCRATCH:
                jumps[k] = step.operands[k].strides[d]
                if d == ndim - 2:
                    jumps[k] *= step.tile_rows
                elif d == ndim - 1:
                    jumps[k] *= step.tile_cols
            walk.data[k] += walk.index[d] * jumps[k]


cdef inline void walk_on(walk_t *walk, const program_step *step, ptrdiff_t tiles) noexcept nogil:
    """Go on by so many tiles, which end in the same row of them."""
    cdef int n = step.n_operands, d = step.ndim - 1, k
    cdef const ptrdiff_t *jumps
    while d >= 0:
        jumps = walk.jumps + d * n
        walk.index[d] += tiles
        for k in range(n):
            walk.data[k] += tiles * jumps[k]
        if walk.index[d] < walk.counts[d]:
            return
        # The first of the next row.
        tiles = 1
        for k in range(n):
            walk.data[k] -= walk.counts[d] * jumps[k]
        walk.index[d] = 0
        d -= 1


cdef void run_tiles(run_t *run, const program_step *step, ptrdiff_t begin, ptrdiff_t end,
                    int thread) noexcept nogil:
    """Run the tiles [begin, end) of a step."""
    cdef int row = step.ndim - 2, col = step.ndim - 1, n = step.n_operands
    cdef ptrdiff_t merged, rows, cols
    cdef tile_view *views = <tile_view *>on_stack(step.most_operands * sizeof(tile_view))
    cdef walk_t walk
    walk.jumps = <ptrdiff_t *>on_stack(step.ndim * n * sizeof(ptrdiff_t))
    walk.data = <char **>on_stack(n * sizeof(char *))
    walk_from(&walk, begin, run, step, thread)
    while begin < end:
        # A kernel gets tiles of a row as one: what it prepares, and what it waits for at its end,
        # is then there only once.
        merged = 1
        if takes_long_rows(step):
            merged = min(end - begin, walk.counts[col] - walk.index[col])
        rows = min(step.tile_rows, step.shape[row] - walk.index[row] * step.tile_rows)
        cols = min(merged * step.tile_cols, step.shape[col] - walk.index[col] * step.tile_cols)
        call_ops(run, step, walk.data, views, rows, cols, thread)
        walk_on(&walk, step, merged)
        begin += merged


cdef void run_calls(run_t *run, const program_step *step, ptrdiff_t begin, ptrdiff_t end,
                    int thread) noexcept nogil:
    """Call an opaque kernel for the shares [begin, end), as long as none fails."""
    cdef int failed
    cdef call_context context
    context.threads = run.threads if step.n_tiles == 1 else 1
    context.detail = 0
    while begin < end and not run.failed:
        failed = call_opaque(run, step, begin, thread, &context)
        if failed and not __atomic_exchange_n(&run.failed, 1, __ATOMIC_RELAXED):
            run.failure.code, run.failure.detail = failed, context.detail
            run.failure.step = <int>(step - run.program.steps)
        begin += 1


cdef inline bint walks_back(const program_step *step) noexcept nogil:
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


cdef void run_back(run_t *run, const program_step *step, ptrdiff_t begin, ptrdiff_t end,
                   int thread) noexcept nogil:
    """Run the tiles [begin, end) of a step, the last ones first."""
    cdef ptrdiff_t first
    while end > begin:
        first = max(begin, end - SAWTOOTH_TILES)
        run_tiles(run, step, first, end, thread)
        end = first


cdef inline int threads_for(const program_t *program, const program_step *step,
                            int threads) noexcept nogil:
    """Number of threads that a step is worth."""
    cdef ptrdiff_t elements = 1
    cdef int d
    if threads > program.max_threads:
        threads = program.max_threads
    if threads <= 1 or step.n_tiles == 1:
        return 1
    for d in range(step.ndim):
        elements *= step.shape[d]
    if elements < step.parallel_from:
        return 1
    return <int>min(<ptrdiff_t>threads, step.n_tiles)


cdef void run_part(run_t *run, int s, int part, int parts, int thread,
                   bint back) noexcept nogil:
    """Run one of the contiguous parts of the tiles of step `s`; a thread may run several."""
    cdef const program_step *step = &run.program.steps[s]
    cdef ptrdiff_t begin = step.n_tiles * part // parts
    cdef ptrdiff_t end = step.n_tiles * (part + 1) // parts
    cdef program_event *event = NULL
    if run.events != NULL:
        event = &run.events[<ptrdiff_t>s * run.program.max_threads + thread]
        if event.begin == 0:
            event.begin = team_clock()
    if step.is_call:
        run_calls(run, step, begin, end, thread)
    elif back:
        run_back(run, step, begin, end, thread)
    else:
        run_tiles(run, step, begin, end, thread)
    wait_for_stores(step)
    if event != NULL:
        event.end = team_clock()


cdef struct team_step:
    # A step as the threads of a pool share it.
    run_t run  # not a pointer: it would have to come from another CPU before what it points to
    int s, parts
    int next   # part that nobody has taken; parts are taken in turn where there are shares
    bint back, shares


cdef void run_member(void *context, int member) noexcept nogil:
    """A member's part, or as many as it gets to."""
    cdef fp_environment found = fp_enter()
    run_member_parts(<team_step *>context, member)
    fp_leave(found)


cdef inline void run_member_parts(team_step *shared, int member) noexcept nogil:
    cdef int part = member
    prefetch(shared.run.params)  # comes from another CPU, while the tiles are found
    if shared.shares:
        part = __atomic_fetch_add(&shared.next, 1, __ATOMIC_RELAXED)
    while part < shared.parts:
        run_part(&shared.run, shared.s, part, shared.parts, member, shared.back)
        if not shared.shares:
            return
        part = __atomic_fetch_add(&shared.next, 1, __ATOMIC_RELAXED)


cdef char *borrow_scratch(run_t *run, const program_step *step, int threads) noexcept nogil:
    """Memory for the threads that the workspace has no scratch for; NULL where there is none."""
    cdef size_t others = threads - run.program.planned_threads
    cdef char *memory = <char *>malloc(others * run.program.scratch_per_thread + PROGRAM_ALIGNMENT)
    cdef char *begin = memory + (-<ptrdiff_t>memory & (PROGRAM_ALIGNMENT - 1))
    run.borrowed = begin - step.scratch_from  # what the step's offsets count from
    return memory


cdef void run_parallel(run_t *run, int s, int threads, bint back) noexcept nogil:
    cdef const program_step *step = &run.program.steps[s]
    cdef team_step shared
    cdef char *memory = NULL
    shared.run, shared.s = run[0], s
    if step.has_scratch and threads > run.program.planned_threads:
        memory = borrow_scratch(&shared.run, step, threads)
        if memory == NULL:
            threads = run.program.planned_threads
    shared.back, shared.next = back, 0
    # What no cache holds may run anywhere: a thread whose CPU is busy otherwise takes less. So may
    # the shares of an opaque kernel, which says how many there are.
    shared.shares = step.is_call or (
        step.ops[0].flags & TILE_PREFETCH_FAR and step.n_tiles >= threads * SHARES)
    shared.parts = threads * SHARES if shared.shares else threads
    if step.is_call:
        shared.parts = <int>min(step.n_tiles, <ptrdiff_t>MOST_PARTS)
    team_run(threads, run_member, &shared)
    free(memory)
    run.failed, run.failure = shared.run.failed, shared.run.failure


cdef void clear_events(const program_t *program, program_event *events) noexcept nogil:
    """Number the rows; rows of threads that do not run keep begin == end == 0."""
    cdef int s, t
    cdef program_event *event = events
    for s in range(program.n_steps):
        for t in range(program.max_threads):
            event.step = s
            event.thread = t
            event.begin = 0
            event.end = 0
            event += 1


cdef enum:
    MOST_ON_STACK = 4096  # bytes of prepared parameters
    BLOCK_ALIGNMENT = 64


cdef inline void prepare_op(const program_t *program, const program_op *op,
                            const kernel_number *given, char *block) noexcept nogil:
    """Make an op's parameters in the run's block."""
    cdef kernel_number *numbers
    cdef int k
    # Numbers stand where the prepared block begins, unless a kernel prepares another.
    numbers = <kernel_number *>(block + op.params)
    if op.prepare != NULL:
        numbers = <kernel_number *>(block + program.params_size)
    for k in range(op.n_numbers):
        if op.numbers[k].place == PROGRAM_CONSTANT:
            numbers[k] = op.numbers[k].constant
        else:
            numbers[k] = given[op.numbers[k].place]
    if op.prepare != NULL:
        op.prepare(block + op.params, op.state, numbers, op.n_numbers)


cdef void prepare_params(const program_t *program, const kernel_number *given,
                         char *block) noexcept nogil:
    """Make the parameters of every op from the run's numbers and its own."""
    cdef const program_step *step
    cdef int s, i
    for s in range(program.n_steps):
        step = &program.steps[s]
        for i in range(step.n_ops):
            prepare_op(program, &step.ops[i], given, block)


cdef int program_run(const program_t *program, char *const *addresses, char *workspace,
                     const kernel_number *numbers, int threads,
                     program_event *events, program_failure *failure) noexcept nogil:
    """Run all steps in order.  `events`, when given, has n_steps * max_threads rows."""
    cdef fp_environment found = fp_enter()
    cdef int code = run_program(program, addresses, workspace, numbers, threads, events, failure)
    fp_leave(found)
    return code


cdef int run_program(const program_t *program, char *const *addresses, char *workspace,
                     const kernel_number *numbers, int threads,
                     program_event *events, program_failure *failure) noexcept nogil:
    """The same, in the default floating-point environment."""
    cdef run_t run
    cdef size_t size = program.params_size + program.most_numbers * sizeof(kernel_number)
    cdef char *memory = NULL
    cdef char *block
    if program.is_single and events == NULL:
        run_single(program, addresses, numbers)
        return 0
    run.program, run.addresses, run.workspace = program, addresses, workspace
    run.events, run.failed, run.checking = events, 0, False
    run.failure.code = 0
    run.threads = min(threads, program.max_threads)
    run.scratch = workspace + program.scratch_offset
    if program.aligns_scratch:
        run.scratch += -<ptrdiff_t>run.scratch & (PROGRAM_ALIGNMENT - 1)
    if size <= MOST_ON_STACK:
        block = <char *>on_stack(size + BLOCK_ALIGNMENT)
    else:
        block = memory = <char *>malloc(size + BLOCK_ALIGNMENT)
        if memory == NULL:
            return PROGRAM_NO_MEMORY
    block += -<ptrdiff_t>block & (BLOCK_ALIGNMENT - 1)
    prepare_params(program, numbers, block)
    run.params = block
    if events != NULL:
        clear_events(program, events)
    run_steps(&run, threads)
    free(memory)
    if failure != NULL:
        failure[0] = run.failure
    return run.failure.code


cdef void run_single(const program_t *program, char *const *addresses,
                     const kernel_number *numbers) noexcept nogil:
    """Run a program that is one kernel call: what most single operators on small arrays are."""
    cdef const program_step *step = program.steps
    cdef const program_op *op = step.ops
    cdef const program_operand *operand = step.operands
    cdef int k, row = step.ndim - 2
    cdef tile_view[PROGRAM_SINGLE_OPERANDS] views
    cdef char[PROGRAM_SINGLE_BYTES + BLOCK_ALIGNMENT] memory
    cdef char *block = memory
    block += -<ptrdiff_t>block & (BLOCK_ALIGNMENT - 1)
    prepare_op(program, op, numbers, block)
    for k in range(step.n_operands):
        views[k].data = addresses[operand.base] + operand.offset
        views[k].row_stride = operand.strides[row]
        views[k].col_stride = operand.strides[row + 1]
        operand += 1
    op.kernel.tile(views, step.shape[row], step.shape[row + 1], op.state, block, NULL, op.flags)
    wait_for_stores(step)


cdef void run_steps(run_t *run, int threads) noexcept nogil:
    cdef const program_step *step
    cdef int s
    if run.program.checks_first:
        for s in range(run.program.n_steps):
            if run.program.steps[s].checked == PROGRAM_CHECKED_FIRST and not run.failed:
                check_step(run, s, threads)
    for s in range(run.program.n_steps):
        step = &run.program.steps[s]
        if step.checked == PROGRAM_CHECKED_LATE and not run.failed:
            check_step(run, s, threads)
        if run.failed:
            return
        if step.n_tiles == 1 and run.events == NULL and not step.is_call:
            run_one_tile(run, step)
        else:
            run_step(run, s, threads)


cdef void run_step(run_t *run, int s, int threads) noexcept nogil:
    cdef const program_step *step = &run.program.steps[s]
    cdef int count = threads_for(run.program, step, threads)
    if count == 1:
        run_part(run, s, 0, 1, 0, walks_back(step))
    else:
        run_parallel(run, s, count, walks_back(step))


cdef void check_step(run_t *run, int s, int threads) noexcept nogil:
    """Let a step's kernel look at its operands; nothing of it is measured."""
    cdef program_event *events = run.events
    run.events, run.checking = NULL, True
    run_step(run, s, threads)
    run.events, run.checking = events, False


cdef void run_one_tile(run_t *run, const program_step *step) noexcept nogil:
    cdef tile_view *views = <tile_view *>on_stack(step.most_operands * sizeof(tile_view))
    cdef char **data = <char **>on_stack(step.n_operands * sizeof(char *))
    cdef int k
    for k in range(step.n_operands):
        data[k] = place(run, &step.operands[k], 0)
    call_ops(run, step, data, views, step.shape[step.ndim - 2], step.shape[step.ndim - 1], 0)
    wait_for_stores(step)


def header_constants():
    """The constants of `program.h` and `kernel_abi.h`, by their names in `aclnn.graph.abi`."""
    return {
        "MAX_DIMS": PROGRAM_MAX_DIMS,
        "MAX_THREADS": PROGRAM_MAX_THREADS,
        "ALIGNMENT": PROGRAM_ALIGNMENT,
        "WORKSPACE": PROGRAM_WORKSPACE,
        "SCRATCH": PROGRAM_SCRATCH,
        "TILE_STREAM": TILE_STREAM,
        "TILE_PREFETCH_NEAR": TILE_PREFETCH_NEAR,
        "TILE_PREFETCH_FAR": TILE_PREFETCH_FAR,
        "TILE_SAWTOOTH": TILE_SAWTOOTH,
    }


def omp_addresses():
    """Addresses of `omp_threads` and `limit_omp_threads` for callers without the lock of Python.

    The first is an ``int (*)(void)``, the second a ``void (*)(int)``.
    """
    return <uintptr_t>&threads_of_openmp, <uintptr_t>&limit_openmp


def run_address():
    """Address of `program_run`, a `program_run_fn`."""
    return <uintptr_t>&program_run
