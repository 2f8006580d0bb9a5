"""Streams, events and the device: queues of work with threads of their own.

A stream is a queue with a thread that is started when the first work arrives; both are C
(`aclnn.acl._runtime`). The default stream, `None`, runs work at once on the calling thread. Handles are
checked at every use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aclnn.acl import _runtime, registry
from aclnn.acl import capture as captures
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.constants import (
    ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
    ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
    ACL_ERROR_RT_INVALID_HANDLE,
    ACL_ERROR_RT_PARAM_INVALID,
    ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
    ACL_SUCCESS,
    ACLNN_ERR_RUNTIME_ERROR,
    aclrtStreamFlag,
)
from aclnn.acl.errors import AclnnError, fail

OK = int(ACL_SUCCESS)

__all__ = [
    "aclrtCreateEvent",
    "aclrtCreateStream",
    "aclrtCreateStreamWithConfig",
    "aclrtDestroyEvent",
    "aclrtDestroyStream",
    "aclrtDestroyStreamForce",
    "aclrtEventElapsedTime",
    "aclrtLaunchHostFunc",
    "aclrtRecordEvent",
    "aclrtStreamGetId",
    "aclrtStreamWaitEvent",
    "aclrtSynchronizeDevice",
    "aclrtSynchronizeEvent",
    "aclrtSynchronizeStream",
]

Job = Callable[[], Any]


class aclrtStream(_runtime.Stream):
    """A queue of work and the thread that does it; made by `aclrtCreateStream`.

    A stream that is dropped without being destroyed ends, with its thread, after its last job.

    Attributes
    ----------
    handle : int
        The `aclrtStream` of programs in C.
    number : int
        What messages and traces name it by.
    """

    @property
    def handle(self) -> int:
        return registry.handle_of(self)

    def __repr__(self) -> str:
        if self.destroyed:
            return f"<aclrtStream {self.number}, destroyed>"
        doing = ", capturing" if self.redirect is not None else ""
        return f"<aclrtStream {self.number}{doing}>"


class aclrtEvent(_runtime.Event):
    """A mark in a stream's work; made by `aclrtCreateEvent`.

    Attributes
    ----------
    handle : int
        The `aclrtEvent` of programs in C.
    number : int
        What messages and traces name it by.
    """

    @property
    def handle(self) -> int:
        return registry.handle_of(self)

    def __repr__(self) -> str:
        state = "destroyed" if self.destroyed else "live"
        return f"<aclrtEvent {self.number}, {state}>"


class ExternalTask:
    """Task on an event that is not the capture's own, each time that the capture runs."""

    def __init__(self, kind: str, event: aclrtEvent, seconds: float | None = None):
        self.kind, self.name, self.event_number = kind, kind, event.number
        self._event, self._seconds = event, seconds

    def __call__(self) -> int | tuple[int, str]:
        if self.kind == captures.RESET:
            self._event.forget()
        elif self.kind == captures.RECORD:
            self._event.record(self.name, None)
        elif not self._event.wait(self._seconds):
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


def bad_handle(function: str, name: str, handle: Any, kind: Any) -> int:
    """ACL_SUCCESS for a live handle, else 107017 and a message."""
    if handle is None:
        return fail(ACL_ERROR_RT_INVALID_HANDLE, f"{function}: {name} is null")
    if not isinstance(handle, kind):
        if isinstance(handle, int) and not isinstance(handle, bool):
            return fail(
                ACL_ERROR_RT_INVALID_HANDLE,
                f"{function}: {name} is {hex(handle)}, which is no live {kind.__name__}",
            )
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
    return stream.queue(job, function)


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
    return aclrtStream(), OK


def aclrtCreateStreamWithConfig(priority: int, flag: int) -> tuple[aclrtStream | None, int]:
    """Create a stream with hints, which have no effect here.

    Parameters
    ----------
    priority : int
        From 0 on.
    flag : aclrtStreamFlag
        Hints, which can be combined; 0 for none.

    Returns
    -------
    stream : aclrtStream or None
        None on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for a negative priority and for unknown
        hints.

    Examples
    --------
    >>> import aclnn
    >>> flag = aclnn.ACL_STREAM_FAST_LAUNCH | aclnn.ACL_STREAM_FAST_SYNC
    >>> stream, status = aclnn.aclrtCreateStreamWithConfig(0, flag)
    >>> status, aclnn.aclrtDestroyStream(stream), aclnn.aclrtCreateStreamWithConfig(0, 64)
    (0, 0, (None, 107000))
    """
    function = "aclrtCreateStreamWithConfig"
    number, flags = as_int(priority), as_int(flag)
    if number is None or number < 0:
        return None, fail(
            ACL_ERROR_RT_PARAM_INVALID,
            f"{function}: priority is {shown(priority)}, must be from 0 on",
        )
    if flags is None or flags < 0 or flags & ~sum(aclrtStreamFlag):
        return None, fail(
            ACL_ERROR_RT_PARAM_INVALID, f"{function}: flag is {shown(flag)}, of unknown hints"
        )
    return aclrtStream(0, flags), OK


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
    registry.drop(stream)
    stream.join()
    return outcome(stream.take_failure())


LAST_SECONDS = 1  # that a forced end waits for the job that runs


def aclrtDestroyStreamForce(stream: Any) -> int:
    """Destroy a stream without its work: what has not begun never runs.

    Parameters
    ----------
    stream : aclrtStream or None
        None, a null handle, succeeds and does nothing.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream;
        ACL_ERROR_RT_STREAM_CAPTURED (107027) for one that is captured;
        ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) for one that updates a task group.

    Notes
    -----
    The job that runs is waited for, for a second at most.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> aclnn.aclrtDestroyStreamForce(stream), aclnn.aclrtDestroyStreamForce(stream)
    (0, 107017)
    """
    if stream is None:
        return OK
    if status := bad_handle("aclrtDestroyStreamForce", "stream", stream, aclrtStream):
        return status
    if stream.redirect is not None:
        return stream.redirect.refuse("aclrtDestroyStreamForce", stream)
    if not stream.close(True):
        return _destroyed("aclrtDestroyStreamForce", "stream")
    registry.drop(stream)
    stream.join(LAST_SECONDS)
    return OK


def aclrtStreamGetId(stream: Any) -> tuple[int, int]:
    """The number by which messages and traces name a stream.

    Parameters
    ----------
    stream : aclrtStream or None

    Returns
    -------
    streamId : int
        0 for the default stream, and on failure.
    ret : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> number, ret = aclnn.aclrtStreamGetId(stream)
    >>> number > 0, ret, aclnn.aclrtStreamGetId(None), aclnn.aclrtDestroyStream(stream)
    (True, 0, (0, 0), 0)
    """
    if status := bad_stream("aclrtStreamGetId", stream):
        return 0, status
    return (0 if stream is None else stream.number), OK


class HostCall:
    """A function that a stream calls, each time that it runs."""

    kind, name = "HOST_FUNC", "aclrtLaunchHostFunc"

    def __init__(self, function: Callable[[Any], Any], argument: Any):
        self._function, self._argument = function, argument

    def __call__(self) -> int:
        self._function(self._argument)
        return OK

    replay = __call__

    def frozen(self) -> str:
        """The call as a line."""
        return f"aclrtLaunchHostFunc of {shown(self._function)}"


def aclrtLaunchHostFunc(stream: Any, fn: Callable[[Any], Any], args: Any = None) -> int:
    """Have a stream call a function, after the work that it was given so far.

    Parameters
    ----------
    stream : aclrtStream or None
        None, the default stream, calls it now.
    fn : callable
        What it returns is not looked at; what it raises surfaces at the stream's next synchronise.
        On a captured stream, each run of the model calls it.
    args : object, optional
        What it is given.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for what cannot be called;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream;
        ACLNN_ERR_RUNTIME_ERROR (361001) when no thread can be had for the stream. What a capture
        records: ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903), ACL_ERROR_STREAM_TASK_GROUP_INTR
        (107034), ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000), ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP
        (207019) and ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) as `aclrtRecordEvent` has them.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> seen = []
    >>> aclnn.aclrtLaunchHostFunc(stream, seen.append, "called")
    0
    >>> aclnn.aclrtDestroyStream(stream), seen
    (0, ['called'])
    """
    function = "aclrtLaunchHostFunc"
    if not callable(fn):
        return fail(
            ACL_ERROR_RT_PARAM_INVALID,
            f"{function}: fn is {'null' if fn is None else shown(fn)}, must be a function",
        )
    if status := bad_stream(function, stream):
        return status
    try:
        return submit(stream, HostCall(fn, args), function)
    except Exception as error:  # of the default stream, which calls it now
        return fail(ACLNN_ERR_RUNTIME_ERROR, f"{function}: {type(error).__name__}: {error}")


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
    return OK if stream is None else outcome(stream.synchronize())


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
    return captures.refuse_device("aclrtSynchronizeDevice") or synchronized()


def synchronized() -> int:
    """Wait for every stream; the status of the first failure."""
    return outcome(_runtime.synchronize_all()[1])


def outcome(failure: str | None) -> int:
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


def new_event(flags: int = 0) -> aclrtEvent:
    """An event that programs in C can be given, too."""
    return aclrtEvent(0, flags)


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
    if not event.close():
        return _destroyed("aclrtDestroyEvent", "event")
    registry.drop(event)
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
    if event.external:
        return _external(stream, captures.RECORD, event, "aclrtRecordEvent")
    capture = captures.capture_of(stream)
    if capture is not None:
        recorded = capture.record(event, stream)
        if recorded is not None:
            return recorded
    if (other := captures.capture_of_event(event)) is not None:
        if stream is None:
            return _implicit("aclrtRecordEvent", event, other)
        return other.refuse_event("aclrtRecordEvent", "event", event)
    if stream is not None and stream.redirect is not None:  # an update of a task group
        return submit(stream, ExternalTask(captures.RECORD, event), "aclrtRecordEvent")
    return event.record("aclrtRecordEvent", stream)


def _external(stream: Any, kind: str, event: aclrtEvent, function: str) -> int:
    """Do something with an external event on a stream, which records it where it is captured."""
    if stream is None or stream.redirect is not None:
        return submit(stream, ExternalTask(kind, event), function)
    if kind == captures.RECORD:
        return event.record(function, stream)
    if kind == captures.WAIT:
        return event.hold_up(function, stream)
    return event.reset(function, stream)


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
    if event.external:
        return _external(stream, captures.WAIT, event, "aclrtStreamWaitEvent")
    if (recorded := _captured_wait(stream, event)) is not None:
        return recorded
    if stream is None or stream.redirect is not None:
        return submit(stream, ExternalTask(captures.WAIT, event), "aclrtStreamWaitEvent")
    return event.hold_up("aclrtStreamWaitEvent", stream)


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
    event.wait()
    return OK


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
        if not (nanoseconds := event.time_of("aclrtEventElapsedTime", name)):
            return 0.0, int(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID)
        times.append(nanoseconds)
    return (times[1] - times[0]) / 1e6, OK
