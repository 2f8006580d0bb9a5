"""Compiled calls, and the loop that runs them.

A compiled call holds all that can be known without addresses. It is immutable and shared: by
threads, by executors, and by all layers alike.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

from aclnn.acl._tensor_spec cimport (
    ABSENT,
    DISJOINT,
    PARTIAL,
    EITHER,
    MAX_DIMS,
    IDENTICAL,
    UNDESCRIBED,
    TensorSpec,
    extent,
    operand_t,
    same_layout,
)
from aclnn.compiler._request cimport MANY
from aclnn.compiler._settings cimport limit_here, openmp_threads, threads_set

from math import prod
from threading import get_ident

from aclnn.acl.constants import ACLNN_ERR_INNER, ACLNN_ERR_PARAM_INVALID
from aclnn.acl.errors import AclnnError
from aclnn.compiler.packing import packed_operands
from aclnn.graph.passes.in_place import inputs_in_place
from aclnn.graph.runtime import _scheduler

cdef extern from "stack.h" nogil:
    size_t stack_left() noexcept
    size_t stack_size() noexcept
    bint stack_is_short(size_t needed) noexcept

cdef extern from *:
    """
    /* When the run that this thread is at was given to its stream; 0 for one that was not. */
    static __thread int64_t submitted_at;
    """
    int64_t submitted_at

cdef program_run_fn run_program = <program_run_fn><size_t>_scheduler.run_address()

cdef enum:
    # Below this many elements a run is shorter than handing the interpreter to another thread.
    KEEP_GIL_BELOW = 16384
    WORKSPACE_ALIGNMENT = 64
    # Bytes of a thread's stack. Kernels take up to 208 KiB, most of it where an input is transposed
    # and the output of another dtype: `gcc -fstack-usage` adds up to that for each instruction set.
    RUN_STACK = 224 << 10

_observers = ()
cdef int observed = 0  # how many want to see every run


cdef bint runs_are_observed() noexcept nogil:
    """Whether somebody wants to see every run."""
    return observed != 0


def runs_observed():
    """Whether somebody wants to see every run, for Python."""
    return runs_are_observed()


def add_observer(observer):
    """Have ``observer(plan, begin, end, events, submitted)`` called after every run, on its thread.

    ``submitted`` is when phase two gave the run to a stream, `None` for one that ran at once.
    """
    global _observers, observed
    _observers = (*_observers, observer)
    observed = len(_observers)


def remove_observer(observer):
    global _observers, observed
    _observers = tuple(known for known in _observers if known != observer)
    observed = len(_observers)


@cython.final
cdef class CompiledCall:
    """All that phase one found out about a call.

    Attributes
    ----------
    operator, call
        The declaration, and the call as the rules saw it.
    graph_as_built, passes, graph
        The op-graph before, between and after the passes.
    workspace, schedule
        Where the intermediates lie, and the steps that phase two runs.
    workspace_size : int
        Bytes that phase two needs.
    settings : dict
        With which it was planned.
    packs : tuple of PackedOperand
        What gives the packed forms that runs take behind their operands.
    """

    def __cinit__(self, operator not None, call not None, graph_as_built, passes not None,
                  workspace not None, schedule, packed, tensors not None, arguments not None,
                  int n_inputs, overlaps not None, settings):
        self.settings = settings
        self.operator = operator
        self.call = call
        self.graph_as_built = graph_as_built
        self.passes = passes
        self.graph = passes.graph
        self.workspace = workspace
        self.schedule = schedule
        self.packed = packed
        self.has_long_calls = schedule is not None and calls_for_threads(schedule)
        self.workspace_size = workspace.size
        self.steps = <const program_t *><size_t>packed.address if packed is not None else NULL
        self.n_inputs = n_inputs
        self.n_outputs = len(tensors) - n_inputs
        self._describe(tensors, overlaps)
        self._mark_in_place(arguments)
        self.packs = packed_operands(() if schedule is None else schedule.packs, arguments)
        if len(arguments) < len(tensors) or self.packs:
            self._leave_out(list(arguments)
                            + list(range(len(tensors), len(tensors) + len(self.packs))))

    @property
    def materialized(self):
        """Whether every intermediate is written as a whole."""
        for step in self.passes:
            if step.name == "fuse":
                return False
        return True

    def serves(self, overlaps):
        """Whether the plan is right for these overlaps of inputs with outputs, a row for each."""
        cdef int index, out, planned, given
        for out in range(self.n_outputs):
            for index in range(self.n_inputs):
                planned, given = self.overlaps[out * self.n_inputs + index], overlaps[out][index]
                if given == DISJOINT or planned == PARTIAL or planned == given:
                    continue
                if planned != EITHER or given != IDENTICAL:
                    return False
        return True

    def __dealloc__(self):
        free(self.operands)
        free(self.slots)
        free(self.low)
        free(self.high)
        free(self.overlaps)
        free(self.pairs)

    cdef int _describe(self, tensors, overlaps) except -1:
        """Keep what runs compare: extents, layouts, and how inputs lie to outputs."""
        cdef int index, out, count = len(tensors)
        self.operands = <operand_t *>zeroed(count, sizeof(operand_t))
        self.low = <int64_t *>zeroed(count, sizeof(int64_t))
        self.high = <int64_t *>zeroed(count, sizeof(int64_t))
        self.overlaps = <unsigned char *>zeroed(self.n_inputs * self.n_outputs, 1)
        for index, spec in enumerate(tensors):
            self.operands[index].ndim = ABSENT
            if spec is not None:
                self._take(index, spec)
        for out in range(self.n_outputs):
            for index in range(self.n_inputs):
                self.overlaps[out * self.n_inputs + index] = overlaps[out][index]
        self.pairs = <pair_t *>zeroed(self.n_inputs * self.n_outputs, sizeof(pair_t))
        for out in range(self.n_outputs):
            for index in range(self.n_inputs):
                self._pair(index, self.n_inputs + out, overlaps[out][index])
        shapes, sizes = [], [0]
        for spec in tensors[self.n_inputs:]:
            shapes.append(None if spec is None else spec.shape)
        self.out_shapes = tuple(shapes)
        for spec in tensors:
            if spec is not None:
                sizes.append(spec.size)
        for step in self.schedule.steps:
            sizes.append(prod(step.shape))
        self.elements = max(sizes) if self.steps != NULL else 0
        return 0

    cdef int _take(self, int index, TensorSpec spec) except -1:
        """Keep the description of an operand, and the extent of its memory."""
        if spec.operand.ndim == UNDESCRIBED:
            raise ValueError(f"{len(spec.shape)} dimensions, at most {MAX_DIMS} are possible")
        self.operands[index] = spec.operand
        self.operands[index].data = NULL
        extent(&self.operands[index], &self.low[index], &self.high[index])
        return 0

    cdef int _pair(self, int index, int at, int planned) except -1:
        """Keep at which distances an input and an output have bytes in common."""
        cdef pair_t *pair = &self.pairs[self.n_pairs]
        if self.low[index] == self.high[index] or self.low[at] == self.high[at]:
            return 0  # one of them is absent or empty
        pair.input, pair.output = index, at
        pair.below = self.low[at] - self.high[index] + 1
        pair.reach = <uint64_t>(self.high[at] - self.low[index] - pair.below)
        self.n_pairs += 1
        return 0

    cdef int _mark_in_place(self, arguments) except -1:
        """Note which inputs the output may take the place of, although it was planned apart."""
        cdef int index
        if self.n_outputs != 1 or self.steps == NULL or has_buffer_in_output(self.workspace):
            return 0
        for place in inputs_in_place(self.graph):
            index = arguments[place]
            if self.overlaps[index] == DISJOINT:
                self.overlaps[index] = EITHER
        return 0

    cdef int _leave_out(self, arguments) except -1:
        """Keep which operands the steps take: no absent ones, and no outputs without elements."""
        cdef int index
        self.n_arguments = len(arguments)
        self.slots = <int *>zeroed(len(arguments), sizeof(int))
        for index, slot in enumerate(arguments):
            self.slots[index] = slot
        return 0


cdef bint calls_for_threads(schedule):
    """Whether an opaque kernel takes so long that several threads are worth it."""
    for step in schedule.steps:
        if step.is_call and step.parallel_from <= step.n_tiles:
            return True
    return False


cdef bint has_buffer_in_output(workspace):
    """Whether an intermediate is in the memory of an output, before anything is written there."""
    for buffer in workspace.buffers:
        if buffer.output:
            return True
    return False


cdef char *aligned(char *memory) noexcept nogil:
    return memory + (-<Py_ssize_t><size_t>memory & (WORKSPACE_ALIGNMENT - 1))


cdef void *zeroed(size_t count, size_t size) except NULL:
    cdef void *memory = calloc(max(1, count), size)
    if memory == NULL:
        raise MemoryError
    return memory


cdef bint all_apart(CompiledCall plan, char **addresses) noexcept nogil:
    """Whether no input has a byte in common with an output: right for every plan."""
    cdef const pair_t *pair = plan.pairs
    cdef const pair_t *end = pair + plan.n_pairs
    while pair != end:
        if <uint64_t>(addresses[pair.input] - addresses[pair.output] - pair.below) < pair.reach:
            return False
        pair += 1
    return True


cdef bint overlaps_as_planned(CompiledCall plan, char **addresses) noexcept nogil:
    """Whether inputs overlap outputs as the plan assumed."""
    cdef const pair_t *pair = plan.pairs
    cdef const pair_t *end = pair + plan.n_pairs
    cdef int planned
    while pair != end:
        if <uint64_t>(addresses[pair.input] - addresses[pair.output] - pair.below) < pair.reach:
            planned = plan.overlaps[(pair.output - plan.n_inputs) * plan.n_inputs + pair.input]
            if not overlaps_alike(plan, addresses, pair.input, pair.output, planned):
                return False
        pair += 1
    return True


cdef bint overlaps_alike(CompiledCall plan, char **addresses, int index, int at,
                         int planned) noexcept nogil:
    """Whether the plan is right for an input and an output whose bytes meet."""
    if planned == PARTIAL:
        return True  # a copy is made first: right wherever the input is
    if addresses[index] != addresses[at]:
        return False
    if not same_layout(&plan.operands[index], &plan.operands[at]):
        return False
    return planned == IDENTICAL or planned == EITHER


cdef int run_plan(CompiledCall plan, char **addresses, char *workspace,
                  const kernel_number *numbers) except -1:
    """Run the schedule on these addresses; checks are the caller's."""
    if plan.steps == NULL:
        return 0
    if plan.slots != NULL:
        return run_some(plan, addresses, workspace, numbers)
    return run_steps(plan, addresses, workspace, numbers)


cdef int run_some(CompiledCall plan, char **addresses, char *workspace,
                  const kernel_number *numbers) except -1:
    """Run steps that take some of the operands only."""
    cdef char *taken[MANY]
    cdef int index
    for index in range(plan.n_arguments):
        taken[index] = addresses[plan.slots[index]]
    return run_steps(plan, taken, workspace, numbers)


cdef inline int run_steps(CompiledCall plan, char **addresses, char *workspace,
                          const kernel_number *numbers) except -1:
    cdef program_failure failure
    cdef int threads, failed
    if stack_is_short(RUN_STACK):
        refuse_stack(RUN_STACK)
    if observed:
        return run_observed(plan, addresses, workspace, numbers)
    if plan.elements < KEEP_GIL_BELOW:
        threads = usable_threads(plan) if plan.has_long_calls else 1
        failed = run_program(plan.steps, addresses, workspace, numbers, threads, NULL, &failure)
    else:
        threads = usable_threads(plan)
        with nogil:
            failed = run_program(plan.steps, addresses, workspace, numbers, threads, NULL,
                                 &failure)
    return 0 if failed == 0 else refuse_failed(plan, failed, &failure)


cdef int run_unlocked(CompiledCall plan, char **addresses, char *workspace,
                      const kernel_number *numbers, program_failure *failure) noexcept nogil:
    """As `run_plan` without the interpreter's lock: what the program gave, 0 where all is well, or
    `NEEDS_LOCK` where nothing ran, as somebody observes runs or the stack is short."""
    cdef char *taken[MANY]
    cdef int index, threads = 1
    if plan.steps == NULL:
        return 0
    if observed or stack_is_short(RUN_STACK):
        return NEEDS_LOCK
    if plan.slots != NULL:
        for index in range(plan.n_arguments):
            taken[index] = addresses[plan.slots[index]]
        addresses = taken
    if plan.has_long_calls or plan.elements >= KEEP_GIL_BELOW:
        threads = usable_threads(plan)
    return run_program(plan.steps, addresses, workspace, numbers, threads, NULL, failure)


# What functions raised that are kernels, by thread, until the run that they end has stopped.
cdef dict _raised = {}


def note_failure(error):
    """Keep what ends this thread's run, for its caller."""
    _raised[get_ident()] = error


cdef int refuse_failed(CompiledCall plan, int failed, const program_failure *failure) except -1:
    """Raise what made a run stop."""
    error = _raised.pop(get_ident(), None)
    if error is not None:
        raise error
    if failed == PROGRAM_NO_MEMORY:
        raise MemoryError("no memory for the parameters of the kernels")
    kernel = plan.schedule.kernel_of(failure.step)
    reason = kernel.failure(failed, failure.detail)
    if reason is None:
        raise RuntimeError(f"{plan.operator.name}: an opaque kernel failed and gave {failed}")
    place = place_of(plan, failure.step, kernel)
    raise AclnnError(ACLNN_ERR_PARAM_INVALID, f"{plan.operator.name}: {place}{reason}")


cdef object place_of(CompiledCall plan, int at, kernel):
    """The call and its operand that a step refuses, for messages; nothing of a single call."""
    step = plan.schedule.steps[at]
    op = step.ops[0]
    node = next(filter(lambda one: one.name == op.node, plan.graph.nodes))
    call = node.attr("call")
    if call is None:
        return ""
    words = [f"{call} ({node.origin[-1]})" if node.origin else call]
    for place in kernel.checked:
        operand = step.operands[op.operands[place]]
        source = plan.schedule.arguments[operand.base] if operand.base >= 0 else operand.name
        words.append(f"{'operand' if operand.base >= 0 else 'computed'} {source!r}")
    return ", ".join(words) + ": "


cdef int refuse_stack(size_t needed) except -1:
    """Kernels and the interpreter that go past the end of a stack end the process."""
    import threading

    name = threading.current_thread().name
    raise AclnnError(
        ACLNN_ERR_INNER,
        f"thread {name!r} has {stack_left() >> 10} KiB left of its stack of "
        f"{stack_size() >> 10} KiB, but {needed >> 10} KiB are needed: threading.stack_size sets "
        "how much threads get that start afterwards")


cdef void run_was_submitted(int64_t nanoseconds) noexcept:
    """Note when this thread's next runs were given to its stream; 0 for those that were not."""
    global submitted_at
    submitted_at = nanoseconds


cdef int usable_threads(CompiledCall plan) noexcept nogil:
    """The set number of threads, or fewer where OpenMP's own limit (threadpoolctl) is lower.

    What a function asks for comes before what the process is set to, not before the thread's limit.
    """
    cdef int threads = threads_set()
    if plan.own_threads and (plan.own_threads < threads or not limit_here()):
        threads = plan.own_threads
    return min(threads, openmp_threads())


cdef int run_observed(CompiledCall plan, char **addresses, char *workspace,
                      const kernel_number *numbers) except -1:
    """As `run_plan`, with a clock around every step and every thread."""
    import time

    cdef int threads = usable_threads(plan)
    cdef Py_ssize_t rows = plan.packed.n_events
    cdef int failed
    cdef program_failure failure
    cdef program_event *events = <program_event *>calloc(max(1, rows), sizeof(program_event))
    if events == NULL:
        raise MemoryError
    try:
        begin = time.monotonic_ns()
        with nogil:
            failed = run_program(plan.steps, addresses, workspace, numbers, threads, events,
                                 &failure)
        end = time.monotonic_ns()
        seen = []
        for row in range(rows):
            if events[row].end:
                seen.append(
                    (events[row].step, events[row].thread, events[row].begin, events[row].end))
    finally:
        free(events)
    if failed:
        refuse_failed(plan, failed, &failure)
    for observer in _observers:
        observer(plan, begin, end, seen, submitted_at or None)
    return 0


cdef int run_with_own_workspace(CompiledCall plan, char **addresses,
                                const kernel_number *numbers) except -1:
    """Run with a workspace of the call's own, for callers that never see one."""
    cdef char *memory
    cdef char *workspace
    if plan.workspace_size == 0:
        return run_plan(plan, addresses, NULL, numbers)
    memory = <char *>malloc(plan.workspace_size + WORKSPACE_ALIGNMENT)
    if memory == NULL:
        raise MemoryError(f"no memory for a workspace of {plan.workspace_size} bytes")
    workspace = aligned(memory)
    try:
        run_plan(plan, addresses, workspace, numbers)
    finally:
        free(memory)
    return 0
