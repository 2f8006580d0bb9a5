"""Stream capture: what each capture has recorded so far, and what calls may do meanwhile.

A stream that is captured has a `redirect`, which takes the work that it is given: a `Capture`, or an
`Update` of a task group. Public functions are in `aclnn.acl.model_capture` and `task_groups`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from aclnn.acl import _captures, _runtime, registry
from aclnn.acl.constants import (
    ACL_ERROR_RT_CAPTURE_DEPENDENCY,
    ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC,
    ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
    ACL_ERROR_RT_EVENT_CAPTURED,
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP,
    ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
    ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
    ACL_ERROR_RT_STREAM_CAPTURED,
    ACL_ERROR_RT_STREAM_NOT_CAPTURED,
    ACL_ERROR_RT_STREAM_UNJOINED,
    ACL_ERROR_STREAM_CAPTURE_CONFLICT,
    ACL_ERROR_STREAM_TASK_GROUP_INTR,
    ACL_ERROR_STREAM_TASK_GROUP_STATUS,
    ACL_SUCCESS,
    aclmdlRICaptureMode,
)
from aclnn.acl.errors import fail

OK = int(ACL_SUCCESS)
GLOBAL = aclmdlRICaptureMode.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
THREAD_LOCAL = aclmdlRICaptureMode.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL
RELAXED = aclmdlRICaptureMode.ACL_MODEL_RI_CAPTURE_MODE_RELAXED

KERNEL, RECORD, WAIT, RESET = "KERNEL", "EVENT_RECORD", "EVENT_WAIT", "EVENT_RESET"
FROZEN_SHOWN = 3  # of the tasks whose addresses a message repeats, the latest


class Task:
    """One thing that a stream was given while it was captured.

    Attributes
    ----------
    number : int
        Counts the capture's tasks: each comes after those that it waits for.
    kind, name : str
        What it is ('KERNEL', 'EVENT_RECORD', ...), and the function that gave it to the stream.
    stream : int
        The number of the stream.
    after : tuple of int
        Numbers of the tasks that end before it begins.
    job : object or None
        What runs; None for events, which only order.
    event : int or None
        The event's number.
    place : str
        File and line of the call.
    """

    __slots__ = ("after", "event", "job", "kind", "name", "number", "place", "stream")

    def __init__(
        self, number: int, kind: str, name: str, stream: int, after: tuple[int, ...], job: Any
    ):
        self.number, self.kind, self.name = number, kind, name
        self.stream, self.after, self.job = stream, after, job
        self.event: int | None = None
        self.place = _caller()

    def frozen(self) -> str:
        """Facts of the call that the recording freezes: addresses, shapes, numbers, workspace."""
        text = self.job.frozen() if hasattr(self.job, "frozen") else self.name
        return f"{text} at {self.place}"


class TaskGroup:
    """Tasks of a model whose arguments may be replaced later: what an aclrtTaskGrp stands for."""

    def __init__(self, model: Any, stream: int):
        self.model, self.stream = model, stream
        self.tasks: list[Task] = []
        self.updating = False


class Capture:
    """A capture under way: begun on one stream, joined by others through events.

    Attributes
    ----------
    origin : aclrtStream
    mode : aclmdlRICaptureMode
    model : aclmdlRI
        What the recording becomes.
    failure : str or None
        What invalidated it.
    """

    def __init__(self, origin: Any, mode: aclmdlRICaptureMode, model: Any):
        self.origin, self.mode, self.model = origin, mode, model
        self.thread, self.thread_name = threading.get_ident(), threading.current_thread().name
        self.began, self.place = time.monotonic_ns(), _caller()
        self.active = True
        self.failure: str | None = None
        self.tasks: list[Task] = []
        self.groups: dict[Any, TaskGroup] = {}  # those that are open, by stream
        self._latest: dict[Any, Task | None] = {origin: None}  # of every stream of the capture
        self._unmet: list[Task] = []  # waits for events that the capture did not record

    # What streams and events do while they are captured.

    def launch(self, stream: Any, job: Any, function: str) -> int | None:
        """Record work; None where the stream is no longer captured."""
        with _lock.held:
            if stream.redirect is not self:
                return None
            kind = getattr(job, "kind", "DEFAULT")
            if status := self._refuse_task(stream, kind, function):
                return status
            task = self._add(stream, kind, getattr(job, "name", function), job)
            task.event = getattr(job, "event_number", None)
            if stream in self.groups:
                self.groups[stream].tasks.append(task)
            return OK

    def record(self, event: Any, stream: Any) -> int | None:
        """Record that an event is recorded."""
        with _lock.held:
            if stream.redirect is not self:
                return None
            function = "aclrtRecordEvent"
            if event.captured_by not in (None, self) and event.captured_by.active:
                return self.conflict(function, event, stream)
            if status := self._refuse_task(stream, RECORD, function):
                return status
            task = self._add(stream, RECORD, function, None)
            task.event = event.number
            registry.handle_of(event)  # by which C asks for it
            event.captured_by, event.captured_at = self, task.number
            return OK

    def wait(self, stream: Any, event: Any) -> int:
        """Record that a stream waits for an event; the stream joins the capture."""
        with _lock.held:
            function = "aclrtStreamWaitEvent"
            is_ours = event.captured_by is self
            if status := self._refuse_task(stream, WAIT, function):
                return status
            if isinstance(stream.redirect, Update):
                return stream.redirect.refuse(function, stream)
            if stream not in self._latest:
                self._latest[stream] = None
                redirect(stream, self)
            task = self._add(stream, WAIT, function, None)
            task.event = event.number
            if is_ours:
                task.after = (*task.after, event.captured_at)
            else:
                self._unmet.append(task)
            return OK

    def _refuse_task(self, stream: Any, kind: str, function: str) -> int:
        if self.failure is not None:
            return fail(
                ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
                f"{function}: {self.of(stream)} was invalidated: {self.failure}; end it with "
                "aclmdlRICaptureEnd",
            )
        for other, group in self.groups.items():
            if other is not stream:
                return fail(
                    ACL_ERROR_STREAM_TASK_GROUP_INTR,
                    f"{function}: {named(stream)} receives work while a task group of "
                    f"{named(other)} is open with {len(group.tasks)} tasks; end the group with "
                    f"aclmdlRICaptureTaskGrpEnd first. {self.summary()}",
                )
        if stream in self.groups and kind != KERNEL:
            return fail(
                ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                f"{function}: the open task group of {named(stream)} takes operators only, this "
                f"is {kind}. {self.summary()}",
            )
        return OK

    def _add(self, stream: Any, kind: str, name: str, job: Any) -> Task:
        before = self._latest[stream]
        after = () if before is None else (before.number,)
        task = Task(len(self.tasks), kind, name, stream.number, after, job)
        self.tasks.append(task)
        self._latest[stream] = task
        return task

    def invalidate(self, why: str) -> None:
        """Note that work could not be recorded: the model would lack it."""
        with _lock.held:
            if self.failure is None:
                self.failure = why

    # Refusals.

    def refuse(self, function: str, stream: Any) -> int:
        """The status of a call that a captured stream does not take."""
        return fail(
            ACL_ERROR_RT_STREAM_CAPTURED,
            f"{function}: {self.of(stream)} is under way: nothing runs before "
            f"aclmdlRICaptureEnd. {self.summary()}",
        )

    def refuse_event(self, function: str, name: str, event: Any) -> int:
        """The status of a call that an event does not take which the capture recorded."""
        return fail(
            ACL_ERROR_RT_EVENT_CAPTURED,
            f"{function}: {name} (event {event.number}) was recorded as task {event.captured_at} "
            f"of {self.of(self.origin)}, so it does not happen before the model runs. "
            f"{self.summary()}",
        )

    def conflict(self, function: str, event: Any, stream: Any) -> int:
        """The status of an event that would tie this capture to the one that recorded it."""
        return fail(
            ACL_ERROR_STREAM_CAPTURE_CONFLICT,
            f"{function}: event {event.number} belongs to {event.captured_by.of()}, and "
            f"{named(stream)} to {self.of()}: one event cannot tie two captures together",
        )

    def of(self, stream: Any = None) -> str:
        """The capture as messages name it."""
        seconds = (time.monotonic_ns() - self.began) / 1e9
        joined = "" if stream in (None, self.origin) else f", joined by {named(stream)}"
        return (
            f"the capture of {named(self.origin)}{joined} (begun {seconds:.3g} s ago at "
            f"{self.place} by thread {self.thread_name!r}, mode {_short(self.mode)})"
        )

    def summary(self) -> str:
        """Summary: number of recorded tasks, and what is frozen."""
        jobs = [task for task in self.tasks if task.job is not None]
        if not jobs:
            return "Nothing is recorded so far."
        shown = "; ".join(task.frozen() for task in jobs[-FROZEN_SHOWN:])
        more = f"{len(jobs) - FROZEN_SHOWN} more, " if len(jobs) > FROZEN_SHOWN else ""
        return (
            f"Frozen so far are addresses, shapes, scalars and workspaces of {len(jobs)} calls on "
            f"{len(self._latest)} streams: {more}{shown}"
        )

    # The end.

    def close(self) -> None:
        """Let go of all streams and events: nothing is recorded any more."""
        with _lock.held:
            for stream in self._latest:
                stream.redirect = None
            self.active = False
            _replace_active([other for other in _active if other is not self])

    def forget(self) -> None:
        """Let go of what was recorded, once it is a model or dropped: events remember the capture."""
        self.tasks, self.groups, self._latest, self._unmet = [], {}, {}, []

    def incomplete(self) -> tuple[int, str] | None:
        """Why the recording is no model: status and message."""
        if self.failure is not None:
            return ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, f"was invalidated: {self.failure}"
        for stream, group in self.groups.items():
            return ACL_ERROR_STREAM_TASK_GROUP_STATUS, (
                f"has an open task group on {named(stream)} with {len(group.tasks)} tasks"
            )
        for task in self._unmet:
            return ACL_ERROR_RT_CAPTURE_DEPENDENCY, (
                f"waits on stream {task.stream} (task {task.number}, {task.place}) for event "
                f"{task.event}, which it did not record before"
            )
        return self._unjoined()

    def _unjoined(self) -> tuple[int, str] | None:
        end = self._latest[self.origin]
        joined = set() if end is None else self._all_before(end)
        for stream, last in self._latest.items():
            if (
                last is None
                or stream is self.origin
                or (last.kind == RECORD and last.number in joined)
            ):
                continue
            if last.kind != RECORD:
                problem = f"its last task is {last.name} ({last.place}), not the record of an event"
            elif not any(last.number in task.after and task.kind == WAIT for task in self.tasks):
                problem = f"nothing waits for its last record, of event {last.event}"
            else:
                problem = f"its last record, of event {last.event}, never leads back to the origin"
            return ACL_ERROR_RT_STREAM_UNJOINED, (
                f"was not joined again by {named(stream)}: {problem}"
            )
        return None

    def _all_before(self, task: Task) -> set[int]:
        found: set[int] = set()
        waiting = list(task.after)
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += self.tasks[number].after
        return found


class Update:
    """New arguments for a task group, collected on a stream that is not captured."""

    def __init__(self, group: TaskGroup):
        self.group = group
        self.jobs: list[Any] = []

    def refuse(self, function: str, stream: Any) -> int:
        """The status of a call that a stream does not take while it updates a task group."""
        return fail(
            ACL_ERROR_STREAM_TASK_GROUP_STATUS,
            f"{function}: {named(stream)} updates a task group, {len(self.jobs)} of "
            f"{len(self.group.tasks)} tasks so far; call aclmdlRICaptureTaskUpdateEnd first",
        )

    def launch(self, stream: Any, job: Any, function: str) -> int | None:
        """Take an operator in the place of the group's next one."""
        with _lock.held:
            if stream.redirect is not self:
                return None
            index, tasks = len(self.jobs), self.group.tasks
            if index == len(tasks):
                return fail(
                    ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                    f"{function}: the task group that {named(stream)} updates has {index} tasks, "
                    "this is one more",
                )
            if getattr(job, "kind", "DEFAULT") != KERNEL or job.name != tasks[index].name:
                return fail(
                    ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP,
                    f"{function}: task {index} of the group that {named(stream)} updates is "
                    f"{tasks[index].name}, which only a call of the same function can replace",
                )
            self.jobs.append(job)
            return OK


class _Lock:
    """The lock of all captures; a forked child has a new one."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.held = threading.RLock()  # a destructor may come back while it is held


_lock = _Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_lock.renew)
_active: tuple[Capture, ...] = ()
_own = threading.local()


def locked() -> Any:
    """The lock of all captures, to be held by ``with``."""
    return _lock.held


def redirect(stream: Any, taker: Any) -> None:
    """Let a capture or an update take a stream's work: C asks for both by the stream's handle."""
    registry.handle_of(stream)
    stream.redirect = taker


def begin(stream: Any, mode: aclmdlRICaptureMode, model: Any) -> Capture:
    """Start a capture of a stream that has none."""
    capture = Capture(stream, mode, model)
    redirect(stream, capture)
    _replace_active([*_active, capture])
    return capture


def _replace_active(captures: list[Capture]) -> None:
    global _active
    _active = tuple(captures)
    _captures.set_active(len(_active))
    _runtime.set_captures(len(_active))


def capture_of(stream: Any) -> Capture | None:
    """The capture that a stream belongs to, if any."""
    found = None if stream is None else stream.redirect
    return found if isinstance(found, Capture) else None


def capture_of_event(event: Any) -> Capture | None:
    """The capture under way that has recorded an event, if any."""
    found = event.captured_by
    return found if found is not None and found.active else None


def thread_mode() -> aclmdlRICaptureMode:
    """The calling thread's mode."""
    return getattr(_own, "mode", GLOBAL)


def exchange_mode(mode: aclmdlRICaptureMode) -> aclmdlRICaptureMode:
    """Set the calling thread's mode; the one before."""
    before = thread_mode()
    _own.mode = mode
    return before


def _forbidding() -> Capture | None:
    """The capture whose mode forbids unsafe calls to the calling thread, if any."""
    mode = thread_mode()
    if mode == RELAXED:
        return None
    for capture in _active:
        is_own = capture.thread == threading.get_ident()
        if capture.mode == GLOBAL and (mode == GLOBAL or is_own):
            return capture
        if capture.mode == THREAD_LOCAL and is_own:
            return capture
    return None


def refuse_unsafe(function: str) -> int:
    """ACL_SUCCESS, or the status of a call that memory is ready for only after a capture."""
    return OK if not _active else _refuse_by_mode(function, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT)


def refuse_pageable(function: str, side: str) -> int:
    """As `refuse_unsafe`, for a queued copy of host memory that the device cannot reach."""
    if not _active:
        return OK
    return _refuse_by_mode(
        function,
        ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC,
        f"{side} is host memory that was not allocated by aclrtMallocHost, so the copy would wait; ",
    )


def refuse_default_stream(function: str) -> int:
    """As `refuse_unsafe`, for work on the default stream, which waits for all others."""
    return _refuse_by_mode(
        function,
        ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
        "the default stream would wait for the captured one; ",
    )


def _refuse_by_mode(function: str, status: int, why: str = "") -> int:
    capture = _forbidding()
    if capture is None:
        return OK
    return fail(
        status,
        f"{function}: {why}{capture.of()} forbids it to thread "
        f"{threading.current_thread().name!r}: call aclmdlRICaptureThreadExchangeMode with "
        f"RELAXED around it, or make it before or after. {capture.summary()}",
    )


def refuse_device(function: str) -> int:
    """ACL_SUCCESS, or the status of a call that waits for the whole device."""
    for capture in _active:
        return capture.refuse(function, capture.origin)
    return OK


def refuse_uncaptured(function: str, stream: Any) -> int:
    """The status of a call that only a captured stream takes."""
    return fail(
        ACL_ERROR_RT_STREAM_NOT_CAPTURED,
        f"{function}: {named(stream)} is not captured: aclmdlRICaptureBegin was not "
        "called, or the capture has ended",
    )


def operation_failed(stream: Any, message: str) -> None:
    """Note that work for a stream was refused: a capture of it lacks something."""
    capture = capture_of(stream)
    if capture is not None:
        capture.invalidate(f"{message} (on {named(stream)}, {_caller()})")


def named(stream: Any) -> str:
    return "the default stream" if stream is None else f"stream {stream.number}"


def _short(mode: aclmdlRICaptureMode) -> str:
    return mode.name.removeprefix("ACL_MODEL_RI_CAPTURE_MODE_")


def _caller() -> str:
    """File and line of the call into this package."""
    for frame in _frames():
        if not frame.f_globals.get("__name__", "").startswith("aclnn."):
            return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
    return "an unknown place"


def _frames() -> Iterator[Any]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
