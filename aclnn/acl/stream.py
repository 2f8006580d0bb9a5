"""Streams, events and the device: queues of work with threads of their own.

A stream is a queue with a thread that is started when the first work arrives. The default stream,
`None`, runs work at once on the calling thread. Handles are checked at every use.
"""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

import _thread
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from aclnn.acl import capture as captures
from aclnn.acl._flag import Flag
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.constants import (
    ACL_ERROR_REPEAT_FINALIZE,
    ACL_ERROR_REPEAT_INITIALIZE,
    ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
    ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
    ACL_ERROR_RT_INVALID_DEVICEID,
    ACL_ERROR_RT_INVALID_HANDLE,
    ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
    ACL_ERROR_UNINITIALIZE,
    ACL_SUCCESS,
    ACLNN_ERR_RUNTIME_ERROR,
)
from aclnn.acl.errors import AclnnError, fail
from aclnn.graph.runtime import _scheduler

OK = int(ACL_SUCCESS)
ASKING_SECONDS = 0.001  # for which a query of a stream waits for its thread

__all__ = [
    "aclFinalize",
    "aclInit",
    "aclnnFinalize",
    "aclnnInit",
    "aclrtCreateEvent",
    "aclrtCreateStream",
    "aclrtDestroyEvent",
    "aclrtDestroyStream",
    "aclrtEventElapsedTime",
    "aclrtGetDevice",
    "aclrtGetDeviceCount",
    "aclrtRecordEvent",
    "aclrtResetDevice",
    "aclrtSetDevice",
    "aclrtStreamWaitEvent",
    "aclrtSynchronizeDevice",
    "aclrtSynchronizeEvent",
    "aclrtSynchronizeStream",
]

Job = Callable[[], Any]


class aclrtStream:
    """A queue of work and the thread that does it; made by `aclrtCreateStream`.

    Queued jobs keep the stream alive, the thread keeps only the queue: a stream that is dropped
    without being destroyed ends, with its thread, after its last job.
    """

    def __init__(self) -> None:
        self.destroyed = False
        self.number = next(captures.numbers)
        self.redirect: captures.Capture | captures.Update | None = None  # takes the work instead
        self.forget_worker()

    def __repr__(self) -> str:
        if self.destroyed:
            return f"<aclrtStream {self.number}, destroyed>"
        doing = ", capturing" if self.redirect is not None else ""
        return f"<aclrtStream {self.number}{doing}>"

    def forget_worker(self) -> None:
        """Begin anew in a forked child: it has no thread, and queued work is the parent's."""
        self._queue: queue.SimpleQueue[tuple[aclrtStream, Job] | None] = queue.SimpleQueue()
        self._lock = threading.RLock()  # a destructor may come back here
        self._worker: _Worker | None = None
        self._started = False  # whether the worker is known to work: start() came back
        self._failures: list[str] = []

    def is_idle(self) -> bool:
        """Whether all work has been done that it was given.

        The thread is asked: counting would make every launch slower.
        """
        if not self._started:
            return True
        done = Flag()
        return not self.submit(done.set) or done.wait(ASKING_SECONDS)

    def submit(self, job: Job) -> bool:
        """Queue `job`; False when the stream is destroyed, so that nothing follows its end.

        RuntimeError where no thread can be had for it.
        """
        with self._lock:
            if self.destroyed:
                return False
            self._have_worker()
            self._queue.put((self, job))
            return True

    def _have_worker(self) -> None:
        """Start the thread, unless it works already.

        A signal handler may raise anywhere in here, and nobody can tell then whether there is a
        thread: the next work finds out, and never are there two that take from the queue.
        """
        if self._started:
            return
        if self._worker is None or self._worker.retire():
            self._worker = _Worker(self._queue)  # known before it starts
            _scheduler.start_with_stack(self._worker)
        self._started = True

    def synchronize(self) -> str | None:
        """Wait for all work queued so far; the message of the first failure since the last time."""
        done = Flag()
        if self._other_thread() is not None:
            if self.submit(done.set):
                done.wait()
            else:
                self.join()
        return self.take_failure()

    def join(self) -> None:
        """Wait for a closed stream's thread."""
        worker = self._other_thread()
        if worker is not None and (self._started or not worker.retire()):
            worker.join()

    def take_failure(self) -> str | None:
        with self._lock:
            failures, self._failures = self._failures, []
        return failures[0] if failures else None

    def _other_thread(self) -> _Worker | None:
        """The thread, unless it is the calling one: a wait for itself would never end."""
        worker = self._worker
        return None if worker is not None and worker.is_this_thread() else worker

    def close(self) -> bool:
        """Take no more work and let the worker end after the last; False when closed before."""
        with self._lock:
            if self.destroyed:
                return False
            self.destroyed = True
            self._queue.put(None)
            return True

    def run(self, job: Job) -> None:
        failure = _failure(job)
        if failure is not None:
            with self._lock:
                self._failures.append(failure)

    def __reduce__(self) -> Any:
        raise TypeError("a stream cannot be copied or pickled: its thread is one")

    def __del__(self) -> None:
        self.close()  # who finds it in the weak set meanwhile must not wait for what never runs


class _Worker:
    """A stream's thread, which knows only the queue: works, unless it was retired before it could.

    No `threading.Thread`: a signal handler that raises in its `start` may leave a lock locked that
    the new thread waits for, and a thread among those that there are which never began.
    """

    def __init__(self, jobs: queue.SimpleQueue[tuple[aclrtStream, Job] | None]) -> None:
        self._jobs = jobs
        self._fate: dict[str, str] = {}  # what is set first stays, whichever thread sets it
        self._ended = Flag()
        self._thread: int | None = None

    def start(self) -> None:
        """Begin to work. Where a handler raises in here there may be a thread, or none."""
        _thread.start_new_thread(self.run, ())

    def is_this_thread(self) -> bool:
        """Whether it is the one that asks."""
        return self._thread == threading.get_ident()

    def join(self) -> None:
        """Wait until it has ended."""
        self._ended.wait()

    def retire(self) -> bool:
        """Keep it from ever working; False where it works, or has worked, already."""
        return self._fate.setdefault("is", "retired") == "retired"

    def run(self) -> None:
        if self._fate.setdefault("is", "working") == "retired":
            return
        self._thread = threading.get_ident()
        while (item := self._jobs.get()) is not None:
            stream, job = item
            stream.run(job)
            del item, stream, job  # the next wait must hold nothing
        self._thread = None
        self._ended.set()


def _failure(job: Job) -> str | None:
    """Run a job; what went wrong, if anything."""
    try:
        outcome = job()
    except BaseException as error:  # nothing may end the thread: who synchronises would hang
        return f"{type(error).__name__}: {error}"
    return str(outcome[1]) if isinstance(outcome, tuple) else None


class aclrtEvent:
    """A mark in a stream's work; made by `aclrtCreateEvent`."""

    def __init__(self) -> None:
        self.destroyed = False
        self.number = next(captures.numbers)
        self.latest: _Record | None = None
        self.captured_by: captures.Capture | None = None  # the latest capture that recorded it
        self.captured_at = 0  # the task that did
        self.flags = 0
        # Of an external event: whether it is recorded, as runs of models and other streams see it.
        self.signal: Flag | None = None

    def __repr__(self) -> str:
        recorded = self.latest is not None or self.captured_by is not None
        state = "destroyed" if self.destroyed else "recorded" if recorded else "not recorded"
        return f"<aclrtEvent {self.number}, {state}>"

    def after_fork(self) -> None:
        """Forget, in a forked child, a recording that only the parent's thread would reach."""
        if self.latest is not None and not self.latest.happened.is_set():
            self.latest = None


class ExternalTask:
    """What a stream does with an event that is not the capture's own, each time that it runs."""

    def __init__(self, kind: str, event: aclrtEvent, seconds: float | None = None):
        self.kind, self.name, self.event_number = kind, kind, event.number
        self._event, self._seconds = event, seconds

    def __call__(self) -> int | tuple[int, str]:
        signal = self._event.signal
        if signal is None:  # a plain event, recorded or waited for with the flag EXTERNAL
            return self._plain()
        if self.kind == captures.WAIT:
            return OK if signal.wait(self._seconds) else self._timed_out()
        if self.kind == captures.RECORD:
            signal.set()
        else:
            signal.clear()
        return OK

    def _plain(self) -> int | tuple[int, str]:
        event = self._event
        if self.kind == captures.RESET:
            event.latest = None
        elif self.kind == captures.RECORD:
            event.latest = _Record()
            event.latest.mark()
        elif event.latest is not None and not event.latest.happened.wait(self._seconds):
            return self._timed_out()
        return OK

    def replay(self) -> None:
        """As a task of a model: what goes wrong is raised."""
        outcome = self()
        if isinstance(outcome, tuple):
            raise AclnnError(*outcome)

    def _timed_out(self) -> tuple[int, str]:
        message = f"event {self.event_number} was not recorded within {self._seconds} s"
        return int(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT), message

    def frozen(self) -> str:
        """The task as a line."""
        return f"{self.kind} of event {self.event_number}"


class _Record:
    """One recording of an event: when it happened, if it has."""

    __slots__ = ("happened", "nanoseconds")

    def __init__(self) -> None:
        self.happened = Flag()
        self.nanoseconds = 0

    def mark(self) -> int:
        self.nanoseconds = time.perf_counter_ns()
        self.happened.set()
        return OK

    def wait(self) -> int:
        self.happened.wait()
        return OK


class _Handles:
    """The streams and events there are; a weak set that threads may share."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._streams: weakref.WeakSet[aclrtStream] = weakref.WeakSet()
        self._events: weakref.WeakSet[aclrtEvent] = weakref.WeakSet()

    def add_stream(self, stream: aclrtStream) -> aclrtStream:
        with self._lock:
            self._streams.add(stream)
        return stream

    def add_event(self, event: aclrtEvent) -> aclrtEvent:
        with self._lock:
            self._events.add(event)
        return event

    def streams(self) -> list[aclrtStream]:
        with self._lock:
            return [stream for stream in self._streams if not stream.destroyed]

    def after_fork(self) -> None:
        self._lock = threading.RLock()
        for stream in list(self._streams):
            stream.forget_worker()
        for event in list(self._events):
            event.after_fork()


_handles = _Handles()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_handles.after_fork)


def bad_handle(function: str, name: str, handle: Any, kind: Any) -> int:
    """ACL_SUCCESS for a live handle, else 107017 and a message."""
    if handle is None:
        return fail(ACL_ERROR_RT_INVALID_HANDLE, f"{function}: {name} is null")
    if not isinstance(handle, kind):
        return fail(
            ACL_ERROR_RT_INVALID_HANDLE,
            f"{function}: {name} is {type(handle).__name__}, must be an {kind.__name__}",
        )
    return _destroyed(function, name) if handle.destroyed else OK


def bad_stream(function: str, stream: Any) -> int:
    """As `bad_handle`, where the default stream, None, is fine."""
    return OK if stream is None else bad_handle(function, "stream", stream, aclrtStream)


def _destroyed(function: str, name: str) -> int:
    return fail(ACL_ERROR_RT_INVALID_HANDLE, f"{function}: {name} is destroyed")


def submit(stream: Any, job: Job, function: str = "stream") -> int:
    """Queue `job`, for a function, on a stream, or run it now on the default one.

    A job gives ACL_SUCCESS or ``(status, message)``. What fails on a stream surfaces when the
    stream is synchronised next.
    """
    if stream is None:
        outcome = job()
        return fail(*outcome) if isinstance(outcome, tuple) else outcome
    if status := bad_handle(function, "stream", stream, aclrtStream):
        return status
    redirect = stream.redirect
    if redirect is not None and (status := redirect.launch(stream, job, function)) is not None:
        return status
    try:
        return OK if stream.submit(job) else _destroyed(function, "stream")
    except RuntimeError as error:  # out of threads, or of memory for one
        return fail(ACLNN_ERR_RUNTIME_ERROR, f"{function}: the stream has no thread: {error}")


def aclrtCreateStream() -> tuple[aclrtStream, int]:
    """Create a stream. Its thread starts with the first work.

    Returns
    -------
    stream : aclrtStream
        Runs its work in order, concurrently with other streams.
    status : int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> stream, status = aclnn.aclrtCreateStream()
    >>> status, aclnn.aclrtSynchronizeStream(stream), aclnn.aclrtDestroyStream(stream)
    (0, 0, 0)
    """
    return _handles.add_stream(aclrtStream()), OK


def aclrtDestroyStream(stream: Any) -> int:
    """Wait until a stream's work is done, then destroy it.

    Parameters
    ----------
    stream : aclrtStream or None
        None, a null handle, succeeds and does nothing.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACLNN_ERR_RUNTIME_ERROR (361001), with the first message, if work failed
        since the last synchronise: the stream is destroyed all the same;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream;
        ACL_ERROR_RT_STREAM_CAPTURED (107027) for one that is captured;
        ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) for one that updates a task group.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> aclnn.aclrtDestroyStream(stream), aclnn.aclrtDestroyStream(stream)
    (0, 107017)
    """
    if stream is None:
        return OK
    if status := bad_handle("aclrtDestroyStream", "stream", stream, aclrtStream):
        return status
    if stream.redirect is not None:
        return stream.redirect.refuse("aclrtDestroyStream", stream)
    if not stream.close():
        return _destroyed("aclrtDestroyStream", "stream")
    stream.join()
    return _outcome(stream.take_failure())


def aclrtSynchronizeStream(stream: Any) -> int:
    """Wait until the work that a stream was given so far is done.

    Parameters
    ----------
    stream : aclrtStream or None
        None, the default stream, has nothing to wait for.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACLNN_ERR_RUNTIME_ERROR (361001), with the message of the first failure,
        if work failed since the last synchronise; ACL_ERROR_RT_INVALID_HANDLE (107017) for an
        invalid or destroyed stream; ACL_ERROR_RT_STREAM_CAPTURED (107027) for one that is captured.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> x = np.zeros(4, np.uint8)
    >>> aclnn.aclrtMemcpyAsync(x, 4, b"abcd", 4, aclnn.ACL_MEMCPY_HOST_TO_HOST, stream)
    0
    >>> aclnn.aclrtSynchronizeStream(stream), x.tobytes()
    (0, b'abcd')
    >>> aclnn.aclrtDestroyStream(stream)
    0
    """
    if status := bad_stream("aclrtSynchronizeStream", stream):
        return status
    if (capture := captures.capture_of(stream)) is not None:
        return capture.refuse("aclrtSynchronizeStream", stream)
    return OK if stream is None else _outcome(stream.synchronize())


def aclrtSynchronizeDevice() -> int:
    """Wait until the work of every stream is done.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACLNN_ERR_RUNTIME_ERROR (361001) if work failed on any stream since it was
        synchronised last, with the message of one failure; the others are dropped;
        ACL_ERROR_RT_STREAM_CAPTURED (107027) while a stream is captured.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtSynchronizeDevice()
    0
    """
    return captures.refuse_device("aclrtSynchronizeDevice") or _synchronized()


def _synchronized() -> int:
    """Wait for every stream; the status of the first failure."""
    failures = [stream.synchronize() for stream in _handles.streams()]
    return _outcome(next((failure for failure in failures if failure), None))


def _outcome(failure: str | None) -> int:
    return OK if failure is None else fail(ACLNN_ERR_RUNTIME_ERROR, failure)


def aclrtCreateEvent() -> tuple[aclrtEvent, int]:
    """Create an event, a marker in the work of streams.

    Returns
    -------
    event : aclrtEvent
        Not recorded yet.
    status : int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> event, status = aclnn.aclrtCreateEvent()
    >>> status, aclnn.aclrtRecordEvent(event, None), aclnn.aclrtDestroyEvent(event)
    (0, 0, 0)
    """
    return new_event(), OK


def new_event() -> aclrtEvent:
    """An event that forked children know of, too."""
    return _handles.add_event(aclrtEvent())


def aclrtDestroyEvent(event: Any) -> int:
    """Destroy an event; streams that wait for it continue when it happens.

    Parameters
    ----------
    event : aclrtEvent or None
        None, a null handle, succeeds and does nothing.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_HANDLE (107017) for a destroyed event and for
        anything but an event.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtDestroyEvent(event), aclnn.aclrtDestroyEvent(event)
    (0, 107017)
    """
    if event is None:
        return OK
    if status := bad_handle("aclrtDestroyEvent", "event", event, aclrtEvent):
        return status
    event.destroyed = True
    return OK


def aclrtRecordEvent(event: Any, stream: Any) -> int:
    """Record an event behind the work that a stream was given so far.

    The event happens when that work is done. A later recording takes the place of an earlier one.

    Parameters
    ----------
    event : aclrtEvent
    stream : aclrtStream or None
        None, the default stream: the event happens at once.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_HANDLE (107017) for a null event, and for an event or
        stream that is destroyed or of another type; ACLNN_ERR_RUNTIME_ERROR (361001) when no
        thread can be had for the stream.
        With an event that a capture has recorded: ACL_ERROR_RT_EVENT_CAPTURED (107028) on a stream
        that is not captured, ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT (107031) on the default stream,
        ACL_ERROR_STREAM_CAPTURE_CONFLICT (107032) on a stream of another capture.
        What a capture records: ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903) after work that it
        could not record; ACL_ERROR_STREAM_TASK_GROUP_INTR (107034) while a task group of another
        stream is open; ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000) in an open task group, which takes
        operators only; ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP (207019) or
        ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) on a stream that updates a task group.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtRecordEvent(event, None), aclnn.aclrtRecordEvent(None, None)
    (0, 107017)
    """
    if status := bad_handle("aclrtRecordEvent", "event", event, aclrtEvent):
        return status
    if status := bad_stream("aclrtRecordEvent", stream):
        return status
    if event.signal is not None:
        return submit(stream, ExternalTask(captures.RECORD, event), "aclrtRecordEvent")
    capture = captures.capture_of(stream)
    if capture is not None:
        recorded = capture.record(event, stream)
        if recorded is not None:
            return recorded
    if (other := captures.capture_of_event(event)) is not None:
        if stream is None:
            return _implicit("aclrtRecordEvent", event, other)
        return other.refuse_event("aclrtRecordEvent", "event", event)
    record = _Record()
    status = submit(stream, record.mark, "aclrtRecordEvent")
    if status == OK:  # a recording that no stream reaches must not be waited for
        event.latest = record
    return status


def aclrtStreamWaitEvent(stream: Any, event: Any) -> int:
    """Let what a stream is given from now on wait for an event.

    Parameters
    ----------
    stream : aclrtStream or None
        None, the default stream: the calling thread waits, now.
    event : aclrtEvent
        Its latest recording counts, later ones do not; if it was never recorded, nothing waits.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_HANDLE (107017) for a null event, and for an event or
        stream that is destroyed or of another type; ACLNN_ERR_RUNTIME_ERROR (361001) when no
        thread can be had for the stream.
        With an event that a capture has recorded: ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT (107031) for
        the default stream, ACL_ERROR_STREAM_CAPTURE_CONFLICT (107032) for a stream of another
        capture.
        What a capture records: ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903) after work that it
        could not record; ACL_ERROR_STREAM_TASK_GROUP_INTR (107034) while a task group of another
        stream is open; ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000) in an open task group, which takes
        operators only; ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP (207019) or
        ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) on a stream that updates a task group.

    Examples
    --------
    >>> import aclnn
    >>> first, second = aclnn.aclrtCreateStream()[0], aclnn.aclrtCreateStream()[0]
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtRecordEvent(event, first), aclnn.aclrtStreamWaitEvent(second, event)
    (0, 0)
    >>> aclnn.aclrtDestroyStream(first), aclnn.aclrtDestroyStream(second)
    (0, 0)
    """
    if status := bad_handle("aclrtStreamWaitEvent", "event", event, aclrtEvent):
        return status
    if status := bad_stream("aclrtStreamWaitEvent", stream):
        return status
    if event.signal is not None:
        return submit(stream, ExternalTask(captures.WAIT, event), "aclrtStreamWaitEvent")
    if (recorded := _captured_wait(stream, event)) is not None:
        return recorded
    record = event.latest
    return OK if record is None else submit(stream, record.wait, "aclrtStreamWaitEvent")


def _captured_wait(stream: Any, event: Any) -> int | None:
    """Have a capture record the wait, where stream or event belong to one."""
    capture, other = captures.capture_of(stream), captures.capture_of_event(event)
    if other is None:
        return None if capture is None else capture.wait(stream, event)
    if stream is None:
        return _implicit("aclrtStreamWaitEvent", event, other)
    if capture not in (None, other):
        return capture.conflict("aclrtStreamWaitEvent", event, stream)
    return other.wait(stream, event)


def _implicit(function: str, event: aclrtEvent, capture: captures.Capture) -> int:
    return fail(
        ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
        f"{function}: event {event.number} belongs to {capture.of()}, which the default stream "
        f"cannot join. {capture.summary()}",
    )


def aclrtSynchronizeEvent(event: Any) -> int:
    """Wait until an event's latest recording has happened.

    Parameters
    ----------
    event : aclrtEvent
        If it was never recorded, there is nothing to wait for.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_HANDLE (107017) for an event that is null or
        destroyed and for anything but an event; ACL_ERROR_RT_EVENT_CAPTURED (107028) for one that a
        capture has recorded.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtRecordEvent(event, None), aclnn.aclrtSynchronizeEvent(event)
    (0, 0)
    """
    if status := bad_handle("aclrtSynchronizeEvent", "event", event, aclrtEvent):
        return status
    if (capture := captures.capture_of_event(event)) is not None:
        return capture.refuse_event("aclrtSynchronizeEvent", "event", event)
    if event.signal is not None:
        event.signal.wait()
        return OK
    record = event.latest
    return OK if record is None else record.wait()


def aclrtEventElapsedTime(start: Any, end: Any) -> tuple[float, int]:
    """Measure the time between two events.

    Parameters
    ----------
    start, end : aclrtEvent
        Both have happened: see `aclrtSynchronizeEvent`.

    Returns
    -------
    ms : float
        Milliseconds from `start` to `end`, negative if `end` was first; 0.0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID (107006) for an event that was not
        recorded or has not happened yet; ACL_ERROR_RT_INVALID_HANDLE (107017) for one that is null
        or destroyed and for anything but an event; ACL_ERROR_RT_EVENT_CAPTURED (107028) for one
        that a capture has recorded.

    Examples
    --------
    >>> import aclnn
    >>> start, end = aclnn.aclrtCreateEvent()[0], aclnn.aclrtCreateEvent()[0]
    >>> aclnn.aclrtRecordEvent(start, None), aclnn.aclrtRecordEvent(end, None)
    (0, 0)
    >>> milliseconds, status = aclnn.aclrtEventElapsedTime(start, end)
    >>> milliseconds >= 0, status
    (True, 0)
    """
    times = []
    for name, event in (("start", start), ("end", end)):
        if status := bad_handle("aclrtEventElapsedTime", name, event, aclrtEvent):
            return 0.0, status
        if (capture := captures.capture_of_event(event)) is not None:
            return 0.0, capture.refuse_event("aclrtEventElapsedTime", name, event)
        record = event.latest
        if record is None or not record.happened.is_set():
            return 0.0, fail(
                ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
                f"aclrtEventElapsedTime: {name} was not recorded or has not happened yet",
            )
        times.append(record.nanoseconds)
    return (times[1] - times[0]) / 1e6, OK


class _Life:
    """Whether aclInit and aclFinalize were called; nothing else here depends on it."""

    def __init__(self, begin: str, end: str):
        self._names = begin, end
        self._state = "new"
        self.after_fork()

    def after_fork(self) -> None:
        """Make a new lock in a forked child: the thread that would release the old one is gone."""
        self._lock = threading.Lock()

    def begin(self) -> int:
        with self._lock:
            if self._state == "begun":
                name = self._names[0]
                return fail(ACL_ERROR_REPEAT_INITIALIZE, f"{name}: was called already")
            self._state = "begun"
            return OK

    def finish(self) -> int:
        with self._lock:
            begin, end = self._names
            if self._state == "new":
                return fail(ACL_ERROR_UNINITIALIZE, f"{end}: {begin} was not called")
            if self._state == "ended":
                return fail(ACL_ERROR_REPEAT_FINALIZE, f"{end}: was called already")
            self._state = "ended"
            return OK


_runtime = _Life("aclInit", "aclFinalize")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_runtime.after_fork)


def aclInit(configPath: Any = None) -> int:
    """Start the runtime. Programs work without it.

    Parameters
    ----------
    configPath : str or None, optional
        CANN's configuration file; not read here.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_REPEAT_INITIALIZE (100002) if the runtime is started already.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclInit(), aclnn.aclInit(), aclnn.aclFinalize()
    (0, 100002, 0)
    """
    return _runtime.begin()


def aclFinalize() -> int:
    """End the runtime, then wait until the work of every stream is done.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_UNINITIALIZE (100001) if `aclInit` was not called;
        ACL_ERROR_REPEAT_FINALIZE (100037) if the runtime has ended already;
        ACLNN_ERR_RUNTIME_ERROR (361001) and ACL_ERROR_RT_STREAM_CAPTURED (107027) as
        `aclrtSynchronizeDevice` has them.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclInit(), aclnn.aclFinalize(), aclnn.aclFinalize()
    (0, 0, 100037)
    """
    return captures.refuse_device("aclFinalize") or _runtime.finish() or _synchronized()


def aclnnInit(configPath: Any = None) -> int:
    """Start the operator library; does nothing here, so that it may be called any number of times.

    Parameters
    ----------
    configPath : str or None, optional
        CANN's configuration file; not read here.

    Returns
    -------
    int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclnnInit(None)
    0
    """
    return OK


def aclnnFinalize() -> int:
    """End the operator library; does nothing here, so that it may be called any number of times.

    Returns
    -------
    int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclnnFinalize()
    0
    """
    return OK


def aclrtSetDevice(deviceId: int) -> int:
    """Choose the device.

    Parameters
    ----------
    deviceId : int
        0, this machine's CPU, the only device.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for anything but 0.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtSetDevice(0), aclnn.aclrtSetDevice(1)
    (0, 107001)
    """
    return _check_device("aclrtSetDevice", deviceId)


def aclrtResetDevice(deviceId: int) -> int:
    """Wait until the work of every stream of the device is done.

    Parameters
    ----------
    deviceId : int
        0, this machine's CPU, the only device.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for anything but 0;
        ACLNN_ERR_RUNTIME_ERROR (361001) and ACL_ERROR_RT_STREAM_CAPTURED (107027) as
        `aclrtSynchronizeDevice` has them.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtResetDevice(0), aclnn.aclrtResetDevice(1)
    (0, 107001)
    """
    if status := _check_device("aclrtResetDevice", deviceId):
        return status
    return captures.refuse_device("aclrtResetDevice") or _synchronized()


def _check_device(function: str, device: Any) -> int:
    if as_int(device) == 0:
        return OK
    return fail(
        ACL_ERROR_RT_INVALID_DEVICEID,
        f"{function}: deviceId is {shown(device)}, this machine has one device, 0",
    )


def aclrtGetDevice() -> tuple[int, int]:
    """Tell which device is in use.

    Returns
    -------
    deviceId : int
        0, this machine's CPU, whether or not `aclrtSetDevice` was called.
    status : int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtGetDevice()
    (0, 0)
    """
    return 0, OK


def aclrtGetDeviceCount() -> tuple[int, int]:
    """Get the number of devices.

    Returns
    -------
    count : int
        1: this machine's CPU.
    status : int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtGetDeviceCount()
    (1, 0)
    """
    return 1, OK
