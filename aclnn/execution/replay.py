"""Replay of captured work: a recording becomes executors, which run as often as its model does."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from aclnn.acl import memory
from aclnn.acl.capture import Task
from aclnn.acl.constants import ACL_SUCCESS, ACLNN_ERR_INNER, ACLNN_ERR_PARAM_INVALID
from aclnn.acl.errors import AclnnError

OK = int(ACL_SUCCESS)


class Replay:
    """A recording that runs: its tasks, and what of them became one plan.

    Parameters
    ----------
    tasks : sequence of Task
        In the order in which they were recorded.
    began : int
        When the capture did, on the monotonic clock: what was allocated later and freed before it
        ended is nobody else's.
    """

    def __init__(self, tasks: Sequence[Task], began: int):
        self._lock = threading.Lock()  # runs share the frozen memory: one at a time
        self._began = began
        self._private = frozenset(
            owner
            for task in tasks
            for _, owner in _owners(task.job)
            if isinstance(owner, memory.Allocation)
            and owner.made_at > began
            and not owner.alive
        )
        self._take(tuple(tasks))

    def _take(self, tasks: tuple[Task, ...]) -> None:
        self.tasks = tasks
        self._needed = [
            (task, name, owner)
            for task in tasks
            for name, owner in _owners(task.job)
            if isinstance(owner, memory.Allocation) and owner not in self._private
        ]
        self._steps = [task.job for task in tasks if task.job is not None]

    def freed(self) -> str | None:
        """What of the memory that a run needs was freed."""
        for task, name, owner in self._needed:
            if not owner.alive:
                return (
                    f"{name} of task {task.number}, {task.frozen()}, lies in memory that was freed: "
                    f"{owner.nbytes} bytes at {owner.address:#x}"
                )
        return None

    def run(self, function: str) -> int | tuple[int, str]:
        """Run everything in order, on the calling thread."""
        with self._lock:
            if (freed := self.freed()) is not None:
                return ACLNN_ERR_PARAM_INVALID, f"{function}: {freed}"
            try:
                for step in self._steps:
                    _replayed(step)
            except (AclnnError, MemoryError) as error:
                return ACLNN_ERR_INNER, f"{function}: {error}"
        return OK

    def update(self, jobs: Mapping[int, Any]) -> int | tuple[int, str]:
        """Put other calls in the place of some tasks', by number."""
        with self._lock:
            self._take(tuple([_with_job(task, jobs.get(task.number)) for task in self.tasks]))
        return OK


def _owners(job: Any) -> list[tuple[str, Any]]:
    return job.owners() if hasattr(job, "owners") else []


def _replayed(job: Any) -> None:
    if hasattr(job, "replay"):
        job.replay()
    else:
        job()


def _with_job(task: Task, job: Any) -> Task:
    if job is None:
        return task
    changed = Task(task.number, task.kind, task.name, task.stream, task.after, job)
    changed.event = task.event
    return changed
