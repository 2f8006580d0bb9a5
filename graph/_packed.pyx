# cython: wraparound=False
"""Packs schedules into the C arrays that are run, and reads them back."""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free

from graph.abi cimport (
    SCHEDULE_NUMBERS,
    SCHEDULE_PARAMS,
    SCHEDULE_PARAMS_ALIGNMENT,
    TILE_STREAM,
    kernel_number,
    prepare_kernel,
    schedule_event,
    schedule_op,
    schedule_run_fn,
    schedule_step,
    schedule_t,
    tile_kernel,
)

from ._scheduler import run_address
from .bounds import check_schedule

cdef schedule_run_fn schedule_run = <schedule_run_fn><uintptr_t>run_address()


cdef class PackedSchedule:
    """The C arrays of a schedule, and the schedule itself, whose kernels they point to.

    A schedule may have been read from a file and edited: what cannot be run as it says, or reaches
    out of the workspace, is refused with a ValueError.

    Attributes
    ----------
    address : int
        Of the `schedule_t`; valid as long as this object lives.
    schedule : Schedule
    n_events : int
        Rows that a traced run writes: one per step and thread.
    """

    cdef schedule_t c
    cdef readonly object schedule
    cdef size_t params_size

    def __cinit__(self, schedule):
        self.schedule = schedule
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
        except OverflowError as error:
            raise ValueError(f"{name}: {error}") from None

    def __dealloc__(self):
        cdef int s
        if self.c.steps != NULL:
            for s in range(self.c.n_steps):
                free(self.c.steps[s].ops)
        free(self.c.steps)

    cdef int _pack_head(self, object schedule) except -1:
        self.c.scratch_offset = schedule.scratch_offset
        self.c.scratch_per_thread = schedule.scratch_per_thread
        self.c.max_threads = schedule.max_threads
        self.c.steps = <schedule_step *>calloc(max(1, len(schedule.steps)), sizeof(schedule_step))
        if self.c.steps == NULL:
            raise MemoryError
        return 0

    cdef int _pack_step(self, schedule_step *c, object step, object kernels) except -1:
        cdef int k, d
        c.ndim = len(step.shape)
        for d in range(c.ndim):
            c.shape[d] = step.shape[d]
        c.tile_rows = step.tile_rows
        c.tile_cols = step.tile_cols
        c.n_tiles = step.n_tiles
        c.parallel_from = step.parallel_from
        c.ops = <schedule_op *>calloc(len(step.ops), sizeof(schedule_op))
        if c.ops == NULL:
            raise MemoryError
        c.n_ops = len(step.ops)
        c.n_operands = len(step.operands)
        for k in range(c.n_operands):
            c.operands[k].base = step.operands[k].base
            c.operands[k].offset = step.operands[k].offset
            for d in range(c.ndim):
                c.operands[k].strides[d] = step.operands[k].strides[d]
        for k in range(c.n_ops):
            self._pack_op(&c.ops[k], step.ops[k], next(kernels), step.name)
            c.streams |= c.ops[k].flags & TILE_STREAM
        return 0

    cdef int _pack_op(self, schedule_op *c, object op, object kernel, object name) except -1:
        cdef int k
        c.kernel = <tile_kernel><uintptr_t>kernel.fn
        c.state = <const void *><uintptr_t>kernel.state
        if c.kernel == NULL:
            raise ValueError(f"{name}, {op.node}: its kernel has no address")
        c.prepare = <prepare_kernel><uintptr_t>getattr(kernel, "prepare", 0)
        if c.prepare != NULL:
            c.params_offset = self.params_size
            lines = -(-kernel.params_size // SCHEDULE_PARAMS_ALIGNMENT)
            self.params_size += lines * SCHEDULE_PARAMS_ALIGNMENT
        if self.params_size > SCHEDULE_PARAMS:
            raise ValueError(f"{name}, {op.node}: kernels prepare {self.params_size} bytes of "
                             f"parameters, a run has room for {SCHEDULE_PARAMS}")
        c.flags = op.flags
        c.n_operands = len(op.operands)
        for k in range(c.n_operands):
            c.operands[k] = op.operands[k]
        return 0

    @property
    def address(self):
        return <uintptr_t>&self.c

    @property
    def n_events(self):
        return <ptrdiff_t>self.c.n_steps * self.c.max_threads

    def describe(self):
        """Read the C arrays back: one dict per step, kernels named by what they point to."""
        cdef schedule_step *c
        cdef schedule_op *op
        cdef int s, i, k, d
        names = self._names()
        steps = []
        for s in range(self.c.n_steps):
            c = &self.c.steps[s]
            ops = []
            for i in range(c.n_ops):
                op = &c.ops[i]
                ops.append({
                    "node": names[s, i, <uintptr_t>op.kernel, <uintptr_t>op.state],
                    "operands": [op.operands[k] for k in range(op.n_operands)],
                    "flags": op.flags,
                })
            steps.append({
                "shape": [c.shape[d] for d in range(c.ndim)],
                "tile": [c.tile_rows, c.tile_cols],
                "n_tiles": c.n_tiles,
                "operands": [
                    {
                        "base": c.operands[k].base,
                        "offset": c.operands[k].offset,
                        "strides": [c.operands[k].strides[d] for d in range(c.ndim)],
                    }
                    for k in range(c.n_operands)
                ],
                "ops": ops,
            })
        return steps

    def _names(self):
        """Node names by place in the arrays and the addresses that must stand there."""
        kernels = iter(self.schedule.kernels)
        found = {}
        for s, step in enumerate(self.schedule.steps):
            for i, op in enumerate(step.ops):
                kernel = next(kernels)
                found[s, i, kernel.fn, kernel.state] = op.node
        return found

    def run(self, addresses, workspace=0, scalars=(), threads=1, trace=False):
        """Run once.

        Parameters
        ----------
        addresses : sequence of int
            Of the first elements of the arguments.
        workspace : int
            Address of at least `schedule.workspace_size` bytes.
        scalars : sequence of float
            What the kernels take, at most four; 0 stands for those that lack.
        threads : int
        trace : bool
            Return the events, a list of (step, thread, begin, end), times in nanoseconds.
        """
        cdef int n = len(addresses), m = len(scalars), count = threads
        cdef ptrdiff_t i
        cdef char *base = <char *><uintptr_t>workspace
        cdef char **pointers = NULL
        cdef kernel_number values[SCHEDULE_NUMBERS]
        cdef schedule_event *events = NULL
        if m > SCHEDULE_NUMBERS:
            raise ValueError(f"takes at most {SCHEDULE_NUMBERS} scalars, {m} given")
        if n != len(self.schedule.arguments):
            raise ValueError(f"takes {len(self.schedule.arguments)} addresses, {n} given")
        if self.schedule.workspace_size and not workspace:
            raise ValueError(f"needs a workspace of {self.schedule.workspace_size} bytes")
        try:
            pointers = <char **>calloc(n + 1, sizeof(char *))
            if pointers == NULL:
                raise MemoryError
            if trace:
                events = <schedule_event *>calloc(self.n_events + 1, sizeof(schedule_event))
                if events == NULL:
                    raise MemoryError
            for i in range(n):
                pointers[i] = <char *><uintptr_t>addresses[i]
            for i in range(SCHEDULE_NUMBERS):
                values[i].real = scalars[i] if i < m else 0.0
            with nogil:
                schedule_run(&self.c, <char *const *>pointers, base, values, count, events)
            if not trace:
                return None
            return [
                (events[i].step, events[i].thread, events[i].begin, events[i].end)
                for i in range(self.n_events)
                if events[i].end
            ]
        finally:
            free(pointers)
            free(events)
