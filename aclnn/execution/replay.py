"""Replay of captured work: a recording becomes executors, which run as often as its model does."""

from __future__ import annotations

import bisect
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import itemgetter
from typing import Any

import numpy as np

from aclnn.acl import copies, dtypes, memory, socs
from aclnn.acl._tensor_spec import TensorSpec
from aclnn.acl.capture import KERNEL, Task
from aclnn.acl.constants import (
    ACL_SUCCESS,
    ACLNN_ERR_INNER,
    ACLNN_ERR_PARAM_INVALID,
    aclDataType,
)
from aclnn.acl.errors import AclnnError
from aclnn.compiler._compiled_call import runs_observed
from aclnn.compiler._settings import current_settings, limit_of_thread, limit_thread
from aclnn.compiler.capturing import Memory, flat
from aclnn.compiler.compilation import compile_recording
from aclnn.execution._joined import join_executor
from aclnn.execution.model_text import model_text

OK = int(ACL_SUCCESS)
BYTES = aclDataType.ACL_UINT8
MOST_OPERANDS = 256  # of an executor
MOST_PLANS = 16  # that a model keeps for its updates


class Replay:
    """A recording that runs: its tasks, and the executors that they became.

    Parameters
    ----------
    tasks : sequence of Task
        In the order in which they were recorded.
    began : int
        When the capture did, on the monotonic clock: what was allocated later and freed before it
        ended is nobody else's.
    """

    def __init__(self, tasks: Sequence[Task], began: int):
        self._turn = threading.Lock()  # runs share the frozen memory: one at a time
        self._change = threading.Lock()
        self._plans: dict[Any, Any] = {}  # by what shapes them: updates go on with known ones
        self._private = frozenset(
            owner
            for task in tasks
            for _, owner in _owners(task.job)
            if isinstance(owner, memory.Allocation) and owner.made_at > began and not owner.alive
        )
        self._take(tuple(tasks))

    def _take(self, tasks: tuple[Task, ...]) -> None:
        needed = [
            (task, name, owner)
            for task in tasks
            for name, owner in _owners(task.job)
            if isinstance(owner, memory.Allocation) and owner not in self._private
        ]
        parts = [*_parts(tasks)] or [[]]
        last = len(parts) - 1
        steps = [
            [_runner(part.job)]
            if isinstance(part, Task)
            else self._joined(part, is_last=index == last)
            for index, part in enumerate(parts)
        ]
        self.tasks, self._needed, self._steps = tasks, needed, steps

    @property
    def executors(self) -> tuple[Any, ...]:
        """One, where all tasks are operators and copies that an executor has room for."""
        parts = tuple(self._steps)
        return tuple([one.executor for part in parts for one in part if isinstance(one, _Joined)])

    @property
    def executor(self) -> Any:
        """The executor; of several, the one with the most nodes."""
        executors = self.executors
        if not executors:
            raise AclnnError(ACLNN_ERR_PARAM_INVALID, "the model has no operators")
        return max(executors, key=lambda executor: len(executor.graph_as_built.nodes))

    def to_text(self) -> str:
        """The tasks as a table, with what becomes of what they write."""
        return model_text(self.tasks, _read_and_written, self._is_seen)

    def owners(self) -> list[tuple[str, Any]]:
        """Owners of the memory that runs need, by the names of operands."""
        return [(name, owner) for _, name, owner in self._needed]

    def freed(self, *, is_queued: bool = False) -> str | None:
        """Freed memory that a run needs; one that was queued before goes on with it."""
        for task, name, owner in self._needed:
            if not (owner.serves if is_queued else owner.alive):
                return (
                    f"{name} of task {task.number} on stream {task.stream}, {task.frozen()}, is in "
                    f"memory that was freed: {owner.nbytes} bytes at {owner.address:#x}"
                )
        return None

    # What a stream's thread has to know of the thread that gave it a run.
    limit_of_thread = staticmethod(limit_of_thread)
    limit_thread = staticmethod(limit_thread)

    def run(self, function: str) -> int | tuple[int, str]:
        """Run everything in order, on the calling thread."""
        with self._turn:
            if (freed := self.freed(is_queued=True)) is not None:
                return ACLNN_ERR_PARAM_INVALID, f"{function}: {freed}"
            try:
                for index in range(len(self._steps)):
                    for step in self._steps[index]:  # as the latest update has left it
                        step()
            except (AclnnError, MemoryError) as error:
                return ACLNN_ERR_INNER, f"{function}: {error}"
        return OK

    def update(self, jobs: Mapping[int, Any]) -> int | tuple[int, str]:
        """Put other calls in the place of some tasks', by number.

        A run that waits for an external event may be under way: it goes on with the new ones.
        """
        try:
            with self._change:
                self._take(tuple([_with_job(task, jobs.get(task.number)) for task in self.tasks]))
        except (AclnnError, MemoryError) as error:
            return ACLNN_ERR_INNER, f"aclmdlRICaptureTaskUpdateEnd: {error}"
        return OK

    def _joined(self, tasks: Sequence[Task], *, is_last: bool) -> list[_Joined]:
        """Tasks as executors: one, or more where there are too many operands for one."""
        settings = current_settings()
        if len(tasks) == 1 and self._is_as_planned(tasks[0], settings):
            return [_Single(tasks[0], lambda: self._compiled(tasks, is_last, settings)[0])]
        return self._compiled(tasks, is_last, settings)

    def _is_as_planned(self, task: Task, settings: Mapping[str, Any]) -> bool:
        """Whether the plan of phase one does all that a capture of the call does, and no more."""
        if task.kind != KERNEL:
            return False
        plan, layouts = task.job.call()[-1], _layouts(task.job)
        found = [
            arguments[1]
            for arguments in layouts
            if arguments is not None and not arguments[1].is_empty
        ]
        inputs, outputs = found[: plan.n_inputs], found[plan.n_inputs :]
        return (
            len(found) == len(layouts) <= MOST_OPERANDS
            and plan.settings == settings
            and len(set(inputs)) == len(inputs)
            and all(map(self._is_seen, outputs))
            and Memory.are_apart(outputs)
            and plan.serves([[one.overlap(output) for one in inputs] for output in outputs])
        )

    def _compiled(
        self, tasks: Sequence[Task], is_last: bool, settings: Mapping[str, Any]
    ) -> list[_Joined]:
        """Executors of tasks that are compiled together."""
        found = []
        soc = socs.FAMILIES[settings["soc"]]
        held = Memory("capture", soc)
        operands = [_layouts(task.job) for task in tasks]
        dtypes_at = _dtypes_at(operands)
        shape = (is_last, self._shape_of(tasks, operands), tuple(settings.items()))
        for index, (task, layouts) in enumerate(zip(tasks, operands, strict=True)):
            if len(held) + len(layouts) > MOST_OPERANDS:
                found.append(self._planned(held, None, (shape, index), settings))
                held = Memory("capture", soc)
            held.recording.origin = partial(tuple, [task.place])  # graphs show it
            if task.kind == KERNEL:
                _record_call(held, task.job, layouts)
            else:
                _record_copy(held, task.job, dtypes_at.get(task.job.dst.address, ()), index)
        is_seen = self._is_seen if is_last else None
        found.append(self._planned(held, is_seen, (shape, -1), settings))
        return found

    def _planned(
        self,
        held: Memory,
        is_seen: Callable[[TensorSpec], bool] | None,
        shape: Any,
        settings: Mapping[str, Any],
    ) -> _Joined:
        """An executor of what was recorded, with the plan of an earlier one of the same shape."""
        outputs = held.finish(is_seen)
        plan = self._plans.get(shape)
        if plan is None:
            plan = compile_recording(
                held.recording,
                held.overlaps(outputs),
                settings,
                summary="Captured from streams.",
                outputs_apart=held.are_apart(outputs),
            )
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            self._plans[shape] = plan
        return _Together(held, outputs, plan)

    def _shape_of(
        self, tasks: Sequence[Task], operands: Sequence[Sequence[tuple[str, TensorSpec] | None]]
    ) -> tuple[Any, ...]:
        """All that a plan of tasks depends on: their calls, and how operands lie to each other."""
        places = _places([layout for row in operands for _, layout in filter(None, row)])
        found: list[Any] = []
        for task, layouts in zip(tasks, operands, strict=True):
            found.append(task.job.call()[-1] if task.kind == KERNEL else task.job.nbytes)
            for value in layouts:
                if value is None:
                    found.append(None)
                    continue
                name, layout = value
                found.append((name, layout.dtype, layout.shape, layout.strides))
                found.append((*places[layout], layout.address % 16, self._is_seen(layout)))
        return tuple(found)

    def _is_seen(self, layout: TensorSpec) -> bool:
        return not isinstance(layout.owner, memory.Allocation) or layout.owner not in self._private


class _Joined:
    """Tasks that became one executor."""

    executor: Any

    def __call__(self) -> None:
        self.executor.run()


class _Together(_Joined):
    """Tasks that were compiled together."""

    def __init__(self, held: Memory, outputs: Sequence[TensorSpec], plan: Any):
        recording = held.recording
        self.executor = _executor_of(
            plan,
            partial(compile_recording, recording),
            [*held.inputs, *outputs],
            recording.numbers,
        )


class _Single(_Joined):
    """A task that runs as phase one has planned its call, until somebody looks: then it is compiled.

    Graphs of captures say where calls were made, and have the operands' names.
    """

    def __init__(self, task: Task, compiled: Callable[[], _Joined]):
        plan = task.job.call()[-1]
        names, layouts = zip(*task.job.operands(), strict=True)
        numbers = task.job.numbers()[1]
        self._compiled = compiled
        self._alone = _executor_of(plan, self._replanned, layouts, numbers, names)

    @cached_property
    def executor(self) -> Any:
        """The executor that is shown, and runs from now on."""
        return self._compiled().executor

    def _replanned(self, _: Any) -> Any:
        return self.executor.planned

    def __call__(self) -> None:
        if runs_observed():  # by somebody who looks at plans
            _ = self.executor
        self.__dict__.get("executor", self._alone).run()


def _executor_of(
    plan: Any,
    replan: Any,
    layouts: Sequence[TensorSpec],
    numbers: Any,
    names: Sequence[str] | None = None,
) -> Any:
    """An executor of a plan, bound to the memory that a capture has seen."""
    arrays = [
        _array_at(layout, writable=index >= plan.n_inputs) for index, layout in enumerate(layouts)
    ]
    return join_executor(plan, replan, "capture", arrays, numbers, names=names)


class _Span:
    """Bytes at an address, for NumPy, and what keeps them there."""

    def __init__(self, low: int, high: int, owner: Any, writable: bool):
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (high - low,),
            "data": (low, not writable),
        }


def _array_at(layout: TensorSpec, *, writable: bool) -> np.ndarray:
    dtype = dtypes.NUMPY[layout.dtype]
    if layout.is_empty:
        return np.empty(layout.shape, dtype)
    return np.ndarray(
        layout.shape,
        dtype,
        np.asarray(_Span(layout.low, layout.high, layout.owner, writable)),
        layout.address - layout.low,
        [stride * layout.itemsize for stride in layout.strides],
    )


def _parts(tasks: Sequence[Task]) -> Iterator[Task | list[Task]]:
    """Parts that run, in order: tasks that can be joined together, others by themselves."""
    together: list[Task] = []
    for task in tasks:
        if task.job is None or _does_nothing(task):
            continue
        if _joins(task):
            together.append(task)
            continue
        if together:
            yield together
            together = []
        yield task
    if together:
        yield together


def _does_nothing(task: Task) -> bool:
    return task.kind == KERNEL and task.job.call()[-1].packed is None


def _joins(task: Task) -> bool:
    """Whether an executor can have a task in it: its arrays are aligned as NumPy wants it."""
    if task.kind == KERNEL:
        return all(
            layout.address % layout.itemsize == 0 for _, layout in filter(None, _layouts(task.job))
        )
    return isinstance(task.job, copies.Copy)


def _layouts(job: Any) -> list[tuple[str, TensorSpec] | None]:
    """The operands of a call or of a copy, with their names; None where one is null."""
    if isinstance(job, copies.Copy):
        return [("dst", _side(job.dst, job.nbytes)), ("src", _side(job.src, job.nbytes))]
    return [
        None if arguments is None else (arguments[0], _in_bytes(arguments[1]))
        for arguments in job.operands()
    ]


def _in_bytes(layout: TensorSpec) -> TensorSpec:
    """An operand as elements of full bytes, as far as phase one has seen to that."""
    return layout.in_bytes() or layout


def _read_and_written(job: Any) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """TensorSpecs that a job reads, and those that it writes."""
    if isinstance(job, copies.Copy):
        return [_side(job.src, job.nbytes)], [_side(job.dst, job.nbytes)]
    if not hasattr(job, "operands"):
        return [], []
    layouts, n_inputs = _layouts(job), job.call()[1]
    read, written = (
        [layout for _, layout in filter(None, some)]
        for some in (layouts[:n_inputs], layouts[n_inputs:])
    )
    return read, written


def _side(side: Any, nbytes: int, dtype: aclDataType = BYTES) -> TensorSpec:
    return flat(side.address, side.address + nbytes, dtype, side.keep)


def _places(layouts: Sequence[TensorSpec]) -> dict[TensorSpec, tuple[int, int]]:
    """For each operand the number of the stretch that it shares with others, and where it is there.

    Stretches are numbered by address: memory in different ones never overlaps.
    """
    found: dict[TensorSpec, tuple[int, int]] = {}
    number, begin, end = -1, 0, -1
    for layout in sorted(layouts, key=lambda layout: layout.low):
        if layout.low >= end:
            number, begin = number + 1, layout.low
        end = max(end, layout.high)
        found[layout] = number, layout.address - begin
    return found


def _dtypes_at(
    operands: Sequence[Sequence[tuple[str, TensorSpec] | None]],
) -> dict[int, list[tuple[int, aclDataType]]]:
    """As what operands are used at each address, with the places of the tasks, in order."""
    found: dict[int, list[tuple[int, aclDataType]]] = {}
    for index, layouts in enumerate(operands):
        for _, layout in filter(None, layouts):
            found.setdefault(layout.address, []).append((index, layout.dtype))
    return found


def _record_call(held: Memory, job: Any, layouts: Sequence[tuple[str, TensorSpec] | None]) -> None:
    operator, n_inputs, _, planned = job.call()
    roles = planned.operator.outputs  # one for each tensor of a list
    outputs = {
        role: layout
        for role, layout in zip(roles, layouts[n_inputs:], strict=True)
        if layout is not None
    }
    held.call(operator, planned.call, layouts[:n_inputs], outputs, job.numbers()[1])


def _record_copy(
    held: Memory, copy: Any, uses: Sequence[tuple[int, aclDataType]], index: int
) -> None:
    """A copy of bytes, as elements of what the source holds, or else of what is used later."""
    if copy.nbytes == 0:
        return
    now = held.dtype_at(copy.src.address, copy.src.address + copy.nbytes)
    first = bisect.bisect_right(uses, index, key=itemgetter(0))
    found = itertools.chain([now], (uses[at][1] for at in range(first, len(uses))))
    dtype = next((one for one in found if one is not None and _has_whole(copy, one)), BYTES)
    held.copy(_side(copy.dst, copy.nbytes, dtype), _side(copy.src, copy.nbytes, dtype))


def _has_whole(copy: Any, dtype: aclDataType) -> bool:
    """Whether both sides of a copy are whole, aligned elements."""
    size = dtypes.item_size(dtype)
    return not (copy.nbytes % size or copy.src.address % size or copy.dst.address % size)


def _runner(job: Any) -> Callable[[], Any]:
    return job.replay if hasattr(job, "replay") else job


def _owners(job: Any) -> list[tuple[str, Any]]:
    return job.owners() if hasattr(job, "owners") else []


def _with_job(task: Task, job: Any) -> Task:
    if job is None:
        return task
    changed = Task(task.number, task.kind, task.name, task.stream, task.after, job)
    changed.event, changed.place = task.event, task.place
    return changed
