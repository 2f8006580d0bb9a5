# cython: wraparound=False
"""Programs: schedules as the C arrays that run, which can be read back."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free

from aclnn.graph.runtime.abi cimport (
    PROGRAM_CHECKED_FIRST,
    PROGRAM_CHECKED_LATE,
    PROGRAM_CONSTANT,
    PROGRAM_NO_MEMORY,
    PROGRAM_SCRATCH,
    PROGRAM_SINGLE_BYTES,
    PROGRAM_SINGLE_OPERANDS,
    program_event,
    program_number,
    program_op,
    program_operand,
    program_run_fn,
    program_step,
    program_t,
)
from aclnn.graph.runtime.kernel_abi cimport (
    TILE_STREAM,
    call_kernel,
    kernel_number,
    prepare_kernel,
    tile_kernel,
)

from ..attrs import Argument
from ..loops.tiling import count_tiles
from ..verify.schedule import check_schedule
from ._scheduler import run_address
from .calls import calls_of, tile_of

cdef program_run_fn program_run = <program_run_fn><uintptr_t>run_address()

cdef enum:
    ALIGNMENT = 64  # of each op's parameters


cdef list extents(const ptrdiff_t *values, int n):
    cdef list found = []
    cdef int d
    for d in range(n):
        found.append(values[d])
    return found


cdef class Program:
    """The C arrays of a schedule, and the schedule itself, whose kernels they point to.

    A schedule may have been read from a file and edited: what cannot be run as it says, or reaches
    out of the workspace, is refused with a ValueError.

    Attributes
    ----------
    address : int
        Of the `program_t`; valid as long as this object lives.
    schedule : Schedule
    n_events : int
        Rows that a traced run writes: one per step and thread.
    n_numbers : int
        How many numbers a run is given.
    """

    cdef program_t c
    cdef readonly object schedule
    cdef readonly int n_numbers
    cdef list calls  # of each step; what they call is kept alive
    cdef set written  # bases of arguments that steps write

    def __cinit__(self, schedule):
        self.schedule = schedule
        self.calls = []
        self.written = set()
        n_ops = sum(len(step.ops) for step in schedule.steps)
        if len(schedule.kernels) != n_ops:
            raise ValueError(f"schedule: {len(schedule.kernels)} kernels for {n_ops} ops: every op "
                             "has one; a schedule that was read back has none and cannot run")
        check_schedule(schedule)
        name = "schedule"
        kernels = iter(schedule.kernels)
        try:
            self._pack_head(schedule)
            for step in schedule.steps:
                name = step.name
                # Count a step before its parts are made, so that they are freed if one fails.
                self.c.n_steps += 1
                self._pack_step(&self.c.steps[self.c.n_steps - 1], step, kernels)
            self.c.is_single = self._is_single()
        except OverflowError as error:
            raise ValueError(f"{name}: {error}") from None

    def __dealloc__(self):
        cdef int s, i
        if self.c.steps != NULL:
            for s in range(self.c.n_steps):
                for i in range(self.c.steps[s].n_ops):
                    free(self.c.steps[s].ops[i].operands)
                    free(self.c.steps[s].ops[i].numbers)
                free(self.c.steps[s].ops)
                free(self.c.steps[s].operands)
        free(self.c.steps)

    cdef int _pack_head(self, object schedule) except -1:
        self.c.scratch_offset = schedule.scratch_offset
        self.c.scratch_per_thread = schedule.scratch_per_thread
        self.c.max_threads = schedule.max_threads
        self.c.planned_threads = schedule.planned_threads
        self.c.steps = <program_step *>zeroed(len(schedule.steps), sizeof(program_step))
        return 0

    cdef bint _is_single(self) noexcept:
        """Whether a run is one kernel call, whose operands are all the run's own."""
        cdef const program_step *step = self.c.steps
        cdef size_t bytes = self.c.params_size + self.c.most_numbers * sizeof(kernel_number)
        cdef int k
        if self.c.n_steps != 1 or step.is_call or step.n_ops != 1 or step.n_tiles != 1:
            return False
        if step.n_operands > PROGRAM_SINGLE_OPERANDS or bytes > PROGRAM_SINGLE_BYTES:
            return False
        if step.ops[0].scratch >= 0 or step.ops[0].n_operands != step.n_operands:
            return False
        for k in range(step.n_operands):
            if step.operands[k].base < 0 or step.ops[0].operands[k] != k:
                return False
        return True

    cdef int _pack_step(self, program_step *c, object step, object kernels) except -1:
        cdef int k, d
        cdef list own = []
        for _op in step.ops:
            own.append(next(kernels))
        calls = calls_of(step, own)
        self.calls.append(calls)
        c.is_call = step.is_call
        c.ndim = len(step.shape)
        for d in range(c.ndim):
            c.shape[d] = step.shape[d]
        c.tile_rows, c.tile_cols = tile_of(step, calls)
        c.n_tiles = step.n_tiles
        if (c.tile_rows, c.tile_cols) != (step.tile_rows, step.tile_cols):
            c.n_tiles = count_tiles(step.shape, c.tile_rows, c.tile_cols)
        c.parallel_from = step.parallel_from
        c.operands = <program_operand *>zeroed(len(step.operands), sizeof(program_operand))
        c.n_operands = len(step.operands)
        for k in range(c.n_operands):
            pack_operand(&c.operands[k], step.operands[k])
        c.ops = <program_op *>zeroed(len(calls), sizeof(program_op))
        c.n_ops = len(calls)
        for k in range(c.n_ops):
            self._pack_op(&c.ops[k], calls[k], step)
            c.streams |= c.ops[k].flags & TILE_STREAM
            c.most_operands = max(c.most_operands, c.ops[k].n_operands)
            if c.ops[k].scratch >= 0:
                note_scratch(c, c.ops[k].scratch)
        for k in range(c.n_operands):
            if c.operands[k].base == PROGRAM_SCRATCH:
                note_scratch(c, c.operands[k].offset)
        self._note_writes(c, calls)
        return 0

    cdef int _note_writes(self, program_step *c, list calls) except -1:
        """Note what a step writes, and when what its kernel checks is there."""
        cdef int base
        for call in calls:
            if call.kernel.check:
                c.checked = PROGRAM_CHECKED_FIRST
                for index in call.kernel.checked:
                    base = c.operands[<int>call.operands[index]].base
                    if base < 0 or base in self.written:
                        c.checked = PROGRAM_CHECKED_LATE
        self.c.checks_first |= c.checked == PROGRAM_CHECKED_FIRST
        for call in calls:
            for index in call.operands[len(call.operands) - call.outputs:]:
                self.written.add(c.operands[<int>index].base)
        return 0

    cdef int _pack_op(self, program_op *c, object op, object step) except -1:
        cdef int k
        cdef size_t size
        kernel = op.kernel
        if step.is_call:
            c.kernel.call = <call_kernel><uintptr_t>kernel.fn
        else:
            c.kernel.tile = <tile_kernel><uintptr_t>kernel.fn
        c.state = <const void *><uintptr_t>kernel.state
        if kernel.fn == 0:
            raise ValueError(f"{step.name}, {op.nodes[0]}: its kernel has no address")
        c.prepare = <prepare_kernel><uintptr_t>kernel.prepare
        c.check = <call_kernel><uintptr_t>kernel.check
        c.flags = op.flags
        c.scratch = op.scratch
        self.c.aligns_scratch |= op.scratch >= 0
        c.operands = <int *>zeroed(len(op.operands), sizeof(int))
        c.n_operands = len(op.operands)
        for k in range(c.n_operands):
            c.operands[k] = op.operands[k]
        c.numbers = <program_number *>zeroed(len(op.params), sizeof(program_number))
        c.n_numbers = len(op.params)
        for k in range(c.n_numbers):
            self._pack_number(&c.numbers[k], op.params[k])
        size = c.n_numbers * sizeof(kernel_number)
        if c.prepare != NULL:
            size = kernel.params_size
            self.c.most_numbers = max(self.c.most_numbers, c.n_numbers)
        c.params = self.c.params_size
        self.c.params_size += (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        return 0

    cdef int _pack_number(self, program_number *c, object number) except -1:
        c.place = PROGRAM_CONSTANT
        if isinstance(number, Argument):
            c.place = number.place
            self.n_numbers = max(self.n_numbers, c.place + 1)
        elif isinstance(number, int):
            c.constant.whole = number
        else:
            c.constant.real = number
        return 0

    @property
    def address(self):
        return <uintptr_t>&self.c

    @property
    def n_events(self):
        return <ptrdiff_t>self.c.n_steps * self.c.max_threads

    def describe(self):
        """Read the C arrays back: one dict per step, kernels named by what they point to."""
        cdef program_step *c
        cdef program_op *op
        cdef int s, i, k
        names = self._names()
        steps = []
        for s in range(self.c.n_steps):
            c = &self.c.steps[s]
            ops, operands = [], []
            for i in range(c.n_ops):
                op = &c.ops[i]
                places = []
                for k in range(op.n_operands):
                    places.append(op.operands[k])
                ops.append({
                    "node": names[s, i, <uintptr_t>op.kernel.tile, <uintptr_t>op.state],
                    "operands": places,
                    "flags": op.flags,
                })
            for k in range(c.n_operands):
                operands.append({
                    "base": c.operands[k].base,
                    "offset": c.operands[k].offset,
                    "strides": extents(c.operands[k].strides, c.ndim),
                })
            steps.append({
                "shape": extents(c.shape, c.ndim),
                "tile": [c.tile_rows, c.tile_cols],
                "n_tiles": c.n_tiles,
                "operands": operands,
                "ops": ops,
            })
        return steps

    def _names(self):
        """Node names by place in the arrays and the addresses that must stand there."""
        found = {}
        for s, calls in enumerate(self.calls):
            for i, call in enumerate(calls):
                found[s, i, call.kernel.fn, call.kernel.state] = "+".join(call.nodes)
        return found

    def run(self, addresses, workspace=0, numbers=(), threads=1, trace=False):
        """Run once.

        Parameters
        ----------
        addresses : sequence of int
            Of the first elements of the arguments.
        workspace : int
            Address of at least `schedule.workspace_size` bytes.
        numbers : sequence of float or int
            That kernels take, by their place; an int is a whole number.
        threads : int
        trace : bool
            Return the events, a list of (step, thread, begin, end), times in nanoseconds.

        Raises
        ------
        ValueError
            When there are not as many addresses as arguments, too few numbers, or no workspace.
        RuntimeError
            When an opaque kernel fails.
        """
        cdef int n = len(addresses), m = len(numbers), count = threads, failed
        cdef ptrdiff_t i
        cdef char *base = <char *><uintptr_t>workspace
        cdef char **pointers = NULL
        cdef kernel_number *values = NULL
        cdef program_event *events = NULL
        if n != len(self.schedule.arguments):
            raise ValueError(f"takes {len(self.schedule.arguments)} addresses, {n} given")
        if m < self.n_numbers:
            raise ValueError(f"takes {self.n_numbers} numbers, {m} given")
        if self.schedule.workspace_size and not workspace:
            raise ValueError(f"needs a workspace of {self.schedule.workspace_size} bytes")
        try:
            pointers = <char **>zeroed(n, sizeof(char *))
            values = <kernel_number *>zeroed(m, sizeof(kernel_number))
            if trace:
                events = <program_event *>zeroed(self.n_events, sizeof(program_event))
            for i in range(n):
                pointers[i] = <char *><uintptr_t>addresses[i]
            for i in range(m):
                if isinstance(numbers[i], int):
                    values[i].whole = numbers[i]
                else:
                    values[i].real = numbers[i]
            with nogil:
                failed = program_run(&self.c, <char *const *>pointers, base, values, count, events,
                                     NULL)
            if failed == PROGRAM_NO_MEMORY:
                raise MemoryError
            if failed:
                raise RuntimeError(f"an opaque kernel failed: it gave {failed}")
            found = []
            if trace:
                for i in range(self.n_events):
                    if events[i].end:
                        found.append(
                            (events[i].step, events[i].thread, events[i].begin, events[i].end))
            return found if trace else None
        finally:
            free(pointers)
            free(values)
            free(events)


cdef void *zeroed(size_t count, size_t size) except NULL:
    cdef void *memory = calloc(max(1, count), size)
    if memory == NULL:
        raise MemoryError
    return memory


cdef void note_scratch(program_step *c, ptrdiff_t begin) noexcept:
    """Note where something of a step's scratch begins."""
    c.scratch_from = min(c.scratch_from, begin) if c.has_scratch else begin
    c.has_scratch = True


cdef int pack_operand(program_operand *c, object operand) except -1:
    cdef int d
    c.base = operand.base
    c.offset = operand.offset
    for d in range(len(operand.strides)):
        c.strides[d] = operand.strides[d]
    c.ndim = len(operand.shape)
    for d in range(c.ndim):
        c.shape[d] = operand.shape[d]
    return 0
