"""Streams, events and the device: work in order, off the calling thread, side by side.

A stream is a queue with a thread that is started when the first work arrives. The default stream,
`None`, runs work at once on the calling thread. Handles are checked at every use.
"""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from aclnn.constants import (
    ACL_ERROR_REPEAT_FINALIZE,
    ACL_ERROR_REPEAT_INITIALIZE,
    ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
    ACL_ERROR_RT_INVALID_DEVICEID,
    ACL_ERROR_RT_INVALID_HANDLE,
    ACL_ERROR_UNINITIALIZE,
    ACL_SUCCESS,
    ACLNN_ERR_RUNTIME_ERROR,
)
from aclnn.errors import fail

OK = int(ACL_SUCCESS)

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
    "aclrtGetSocName",
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
    """A queue of work and the thread that does it; made by `aclrtCreateStream`."""

    def __init__(self) -> None:
        self.destroyed = False
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._worker: threading.Thread | None = None
        self._failures: list[str] = []

    def submit(self, job: Job) -> None:
        with self._lock:
            if self._worker is None:
                self._worker = threading.Thread(
                    target=_work,
                    args=(self._queue, self._failures),
                    name="aclrtStream",
                    daemon=True,
                )
                self._worker.start()
            self._queue.put(job)

    def synchronize(self) -> str | None:
        """Wait for all work queued so far; the first failure since the last time, if any."""
        if self._worker is not None:
            done = threading.Event()
            self._queue.put(done.set)
            done.wait()
        with self._lock:
            first = self._failures[0] if self._failures else None
            self._failures.clear()
        return first

    def close(self) -> None:
        """Let the worker end after its last work."""
        self.destroyed = True
        if self._worker is not None:
            self._queue.put(None)

    def forget_worker(self) -> None:
        """In a forked child the thread is gone, and what was queued is the parent's."""
        self._queue = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._worker = None


def _work(jobs: queue.SimpleQueue[Job | None], failures: list[str]) -> None:
    while (job := jobs.get()) is not None:
        try:
            outcome = job()
            if isinstance(outcome, tuple):
                failures.append(str(outcome[1]))
        except Exception as error:  # a failed job must not end the stream's thread
            failures.append(f"{type(error).__name__}: {error}")
        del job


class aclrtEvent:
    """A mark in a stream's work; made by `aclrtCreateEvent`."""

    def __init__(self) -> None:
        self.destroyed = False
        self.latest: _Record | None = None


class _Record:
    """One recording of an event: when it happened, if it has."""

    __slots__ = ("happened", "nanoseconds")

    def __init__(self) -> None:
        self.happened = threading.Event()
        self.nanoseconds = 0

    def mark(self) -> int:
        self.nanoseconds = time.perf_counter_ns()
        self.happened.set()
        return OK


_streams: weakref.WeakSet[aclrtStream] = weakref.WeakSet()


def _forget_workers() -> None:
    for stream in list(_streams):
        stream.forget_worker()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def _bad_handle(function: str, name: str, handle: Any, kind: Any) -> int:
    """ACL_SUCCESS for a live handle, else 107017 and a message."""
    if handle is None:
        return fail(ACL_ERROR_RT_INVALID_HANDLE, f"{function}: {name} is null")
    if not isinstance(handle, kind):
        return fail(
            ACL_ERROR_RT_INVALID_HANDLE,
            f"{function}: {name} is {type(handle).__name__}, must be an {kind.__name__}",
        )
    if handle.destroyed:
        return fail(ACL_ERROR_RT_INVALID_HANDLE, f"{function}: {name} is destroyed")
    return OK


def submit(stream: Any, job: Job) -> int:
    """Queue `job` on a stream, or run it now on the default one.

    A job gives ACL_SUCCESS or ``(status, message)``. What fails on a stream surfaces when the
    stream is synchronised next.
    """
    if stream is None:
        outcome = job()
        return fail(*outcome) if isinstance(outcome, tuple) else outcome
    if status := _bad_handle("stream", "stream", stream, aclrtStream):
        return status
    stream.submit(job)
    return OK


def aclrtCreateStream() -> tuple[aclrtStream, int]:
    """Make a stream: ``(stream, status)``.

    Examples
    --------
    >>> import aclnn
    >>> stream, status = aclnn.aclrtCreateStream()
    >>> status, aclnn.aclrtSynchronizeStream(stream), aclnn.aclrtDestroyStream(stream)
    (0, 0, 0)
    """
    stream = aclrtStream()
    _streams.add(stream)
    return stream, OK


def aclrtDestroyStream(stream: Any) -> int:
    """Finish a stream's work, then destroy it; 107017 for no live stream."""
    if status := _bad_handle("aclrtDestroyStream", "stream", stream, aclrtStream):
        return status
    failure = stream.synchronize()
    stream.close()
    return _outcome(failure)


def aclrtSynchronizeStream(stream: Any) -> int:
    """Wait until a stream's work is done.

    Returns
    -------
    int
        ACL_SUCCESS; 361001 and the message of the first failure since the last synchronise;
        107017 for no live stream. The default stream, None, has nothing to wait for.
    """
    if stream is None:
        return OK
    if status := _bad_handle("aclrtSynchronizeStream", "stream", stream, aclrtStream):
        return status
    return _outcome(stream.synchronize())


def aclrtSynchronizeDevice() -> int:
    """Wait until the work of every stream is done; failures as in `aclrtSynchronizeStream`."""
    failures = [s.synchronize() for s in list(_streams) if not s.destroyed]
    return _outcome(next((failure for failure in failures if failure), None))


def _outcome(failure: str | None) -> int:
    return OK if failure is None else fail(ACLNN_ERR_RUNTIME_ERROR, failure)


def aclrtCreateEvent() -> tuple[aclrtEvent, int]:
    """Make an event: ``(event, status)``."""
    return aclrtEvent(), OK


def aclrtDestroyEvent(event: Any) -> int:
    """Destroy an event; streams that wait for it still get what they wait for."""
    if status := _bad_handle("aclrtDestroyEvent", "event", event, aclrtEvent):
        return status
    event.destroyed = True
    return OK


def aclrtRecordEvent(event: Any, stream: Any) -> int:
    """Mark the end of the work that a stream has been given so far."""
    if status := _bad_handle("aclrtRecordEvent", "event", event, aclrtEvent):
        return status
    if stream is not None and (
        status := _bad_handle("aclrtRecordEvent", "stream", stream, aclrtStream)
    ):
        return status
    record = _Record()
    event.latest = record
    return submit(stream, record.mark)


def aclrtStreamWaitEvent(stream: Any, event: Any) -> int:
    """Let a stream's later work wait for an event's latest recording; none: nothing to wait for."""
    if status := _bad_handle("aclrtStreamWaitEvent", "event", event, aclrtEvent):
        return status
    if stream is not None and (
        status := _bad_handle("aclrtStreamWaitEvent", "stream", stream, aclrtStream)
    ):
        return status
    record = event.latest
    if record is None:
        return OK
    return submit(stream, lambda: record.happened.wait() and OK)


def aclrtSynchronizeEvent(event: Any) -> int:
    """Wait until an event's latest recording has happened."""
    if status := _bad_handle("aclrtSynchronizeEvent", "event", event, aclrtEvent):
        return status
    if event.latest is not None:
        event.latest.happened.wait()
    return OK


def aclrtEventElapsedTime(start: Any, end: Any) -> tuple[float, int]:
    """Milliseconds between two events: ``(ms, status)``; 107006 for one that has not happened."""
    for name, event in (("start", start), ("end", end)):
        if status := _bad_handle("aclrtEventElapsedTime", name, event, aclrtEvent):
            return 0.0, status
        if event.latest is None or not event.latest.happened.is_set():
            return 0.0, fail(
                ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
                f"aclrtEventElapsedTime: {name} was not recorded or has not happened yet",
            )
    return (end.latest.nanoseconds - start.latest.nanoseconds) / 1e6, OK


class _Life:
    """Whether aclInit and aclFinalize were called: they only keep each other company here."""

    def __init__(self, begin: str, end: str):
        self._names = begin, end
        self._state = "new"
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
_library = _Life("aclnnInit", "aclnnFinalize")


def aclInit(configPath: Any = None) -> int:
    """Start the runtime; 100002 when it is started already. Programs work without it."""
    return _runtime.begin()


def aclFinalize() -> int:
    """Wait for all streams and end the runtime; 100001 without `aclInit`, 100037 twice."""
    aclrtSynchronizeDevice()
    return _runtime.finish()


def aclnnInit(configPath: Any = None) -> int:
    """Start the operator library; may be called again and does nothing then."""
    _library.begin()
    return OK


def aclnnFinalize() -> int:
    """End the operator library; may be called again and does nothing then."""
    return OK


def aclrtSetDevice(deviceId: int) -> int:
    """Choose the device: 0, this machine's CPU; 107001 for any other."""
    return _check_device("aclrtSetDevice", deviceId)


def aclrtResetDevice(deviceId: int) -> int:
    """Wait for the device's work; 107001 for a device other than 0."""
    if status := _check_device("aclrtResetDevice", deviceId):
        return status
    return aclrtSynchronizeDevice()


def _check_device(function: str, device: Any) -> int:
    if isinstance(device, int) and not isinstance(device, bool) and device == 0:
        return OK
    return fail(
        ACL_ERROR_RT_INVALID_DEVICEID,
        f"{function}: deviceId is {device!r}, this machine has one device, 0",
    )


def aclrtGetDevice() -> tuple[int, int]:
    """The device in use: ``(0, status)``."""
    return 0, OK


def aclrtGetDeviceCount() -> tuple[int, int]:
    """How many devices there are: ``(1, status)``."""
    return 1, OK


def aclrtGetSocName() -> str:
    """The product whose dtype rules hold; see `aclnn.set_soc_version`."""
    from aclnn import product

    return product.get_soc_version()
