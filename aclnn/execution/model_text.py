"""Models as text: what was recorded, and what became of the memory that calls write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aclnn.acl._tensor_spec import TensorSpec
from aclnn.acl.capture import Task
from aclnn.graph.views.tables import make, to_text

STORED, PRIVATE = "stored", "made and freed inside, not stored"
TASKS = ("task", "stream", "after", "what", "at", "reads", "writes", "what becomes of that")


def model_text(
    tasks: Sequence[Task],
    operands: Callable[[Any], tuple[list[TensorSpec], list[TensorSpec]]],
    is_seen: Callable[[TensorSpec], bool],
) -> str:
    """A table with a line for each task, and one more for each further operand.

    Parameters
    ----------
    tasks : sequence of Task
    operands : callable
        Gives for a task's job what it reads and what it writes.
    is_seen : callable
        Tells of a layout whether it outlives the capture.
    """
    found = [([], []) if task.job is None else operands(task.job) for task in tasks]
    rows = []
    for index, (task, (read, written)) in enumerate(zip(tasks, found, strict=True)):
        later = [
            (after.number, layout)
            for after, (_, layouts) in zip(tasks[index + 1 :], found[index + 1 :], strict=True)
            for layout in layouts
        ]
        fates = [_fate(layout, later, is_seen) for layout in written]
        rows += [*_rows(task, [*map(_words, read)], [*map(_words, written)], fates)]
    return to_text((make(TASKS, rows, right="task,stream"),), wide=True)


def _rows(
    task: Task, read: Sequence[str], written: Sequence[str], fates: Sequence[str]
) -> Iterator[tuple[object, ...]]:
    what = task.name if task.event is None else f"{task.kind} of event {task.event}"
    after = ", ".join(map(str, task.after))
    head: tuple[object, ...] = (task.number, task.stream, after, what, task.place)
    for index in range(max(len(read), len(written), 1)):
        cells = [column[index] if index < len(column) else "" for column in (read, written, fates)]
        yield (*head, *cells)
        head = ("",) * 5


def _words(layout: TensorSpec) -> str:
    shape = ",".join(map(str, layout.shape))
    return f"{layout.address:#x} {layout.dtype.name.removeprefix('ACL_')}[{shape}]"


def _fate(
    layout: TensorSpec,
    later: Sequence[tuple[int, TensorSpec]],
    is_seen: Callable[[TensorSpec], bool],
) -> str:
    if not is_seen(layout):
        return PRIVATE
    for number, other in later:
        if other.has(layout):
            return f"overwritten by task {number}, not stored"
    return STORED
