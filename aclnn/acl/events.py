"""Events, marks in the work of streams: made, recorded, reset, and waited for by streams."""

from __future__ import annotations

from typing import Any

from aclnn.acl import _runtime, registry
from aclnn.acl import capture as captures
from aclnn.acl import stream as streams
from aclnn.acl._runtime import call
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.checks import LONGEST_MILLISECONDS, bad_handle, milliseconds, refuse_destroyed
from aclnn.acl.constants import (
    ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
    ACL_ERROR_RT_PARAM_INVALID,
    ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
    ACL_ERROR_RT_STREAM_NOT_CAPTURED,
    ACL_SUCCESS,
)
from aclnn.acl.errors import AclnnError, fail
from aclnn.acl.watch import watching

OK = int(ACL_SUCCESS)
WITH_EXTERNAL = 1  # the flag of records and waits
IN_PYTHON = (
    _runtime.IN_PYTHON
)  # the status of what captures may record, which C leaves to this layer

__all__ = [
    "aclrtCreateEvent",
    "aclrtCreateEventExWithFlag",
    "aclrtCreateEventWithFlag",
    "aclrtDestroyEvent",
    "aclrtGetEventId",
    "aclrtRecordEvent",
    "aclrtRecordEventWithFlag",
    "aclrtResetEvent",
    "aclrtStreamWaitEvent",
    "aclrtStreamWaitEventWithFlag",
    "aclrtStreamWaitEventWithTimeout",
]


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

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has happened, for so many seconds at most; whether it has."""
        happened = super().wait(seconds)
        return self.noted(happened)

    def has_happened(self) -> bool:
        """Whether its latest recording has happened."""
        return self.noted(super().has_happened())

    def noted(self, happened: bool) -> bool:
        """Whether it has happened, which orders calls where somebody looks at that."""
        if happened and (watch := watching()) is not None:
            watch.wait(self, None)
        return happened

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


def bad_event(function: str, event: Any) -> int:
    """ACL_SUCCESS for an event that can be waited for or asked now."""
    if status := bad_handle(function, "event", event, aclrtEvent):
        return status
    capture = captures.capture_of_event(event)
    return OK if capture is None else capture.refuse_event(function, "event", event)


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


def aclrtCreateEventWithFlag(flag: int) -> tuple[aclrtEvent | None, int]:
    """Create an event with flags.

    Parameters
    ----------
    flag : aclrtEventFlag
        ACL_EVENT_EXTERNAL, alone: the event belongs to no capture; models wait for it, record and
        reset it each time that they run. The others are hints.

    Returns
    -------
    event : aclrtEvent or None
        None on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for unknown or incompatible flags;
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000) for ACL_EVENT_IPC.

    Examples
    --------
    >>> import aclnn
    >>> event, status = aclnn.aclrtCreateEventWithFlag(aclnn.ACL_EVENT_EXTERNAL)
    >>> status, aclnn.aclrtQueryEventStatus(event)
    (0, (0, 0))
    >>> aclnn.aclrtRecordEvent(event, None), aclnn.aclrtQueryEventStatus(event)
    (0, (1, 0))
    >>> aclnn.aclrtResetEvent(event, None), aclnn.aclrtQueryEventStatus(event)
    (0, (0, 0))
    >>> aclnn.aclrtDestroyEvent(event)
    0
    """
    return _created("aclrtCreateEventWithFlag", flag)


def aclrtCreateEventExWithFlag(flag: int) -> tuple[aclrtEvent | None, int]:
    """Create an event that may be recorded again; here all events may.

    Parameters
    ----------
    flag : aclrtEventFlag
        As for `aclrtCreateEventWithFlag`.

    Returns
    -------
    event : aclrtEvent or None
        None on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for unknown or incompatible flags;
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000) for ACL_EVENT_IPC.

    Examples
    --------
    >>> import aclnn
    >>> event, status = aclnn.aclrtCreateEventExWithFlag(aclnn.ACL_EVENT_SYNC)
    >>> status, aclnn.aclrtDestroyEvent(event)
    (0, 0)
    """
    return _created("aclrtCreateEventExWithFlag", flag)


def _created(function: str, flag: Any) -> tuple[aclrtEvent | None, int]:
    flags = as_int(flag)
    if flags is None or abs(flags) >= 2**31:
        return None, fail(
            ACL_ERROR_RT_PARAM_INVALID, f"{function}: flag is {shown(flag)}, no aclrtEventFlag"
        )
    status = _runtime.bad_flags(function, flags)
    return (None, status) if status else (new_event(flags), OK)


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
        return refuse_destroyed("aclrtDestroyEvent", "event")
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
        stream that is destroyed or of another type; ACLNN_ERR_RUNTIME_ERROR (361001) when the system has no
        thread for the stream.
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
    status = call("aclrtRecordEvent", event, stream)
    return _recorded(event, stream) if status == IN_PYTHON else status


def _recorded(event: Any, stream: Any) -> int:
    """Record an event where streams may be captured, or are looked at."""
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
        return streams.submit(stream, ExternalTask(captures.RECORD, event), "aclrtRecordEvent")
    if (watch := watching()) is not None:
        watch.record(event, stream)
    return event.record("aclrtRecordEvent", stream)


def aclrtRecordEventWithFlag(event: Any, stream: Any, flag: int) -> int:
    """Record an event; see `aclrtRecordEvent`.

    Parameters
    ----------
    event : aclrtEvent
    stream : aclrtStream or None
    flag : int
        0, or 1 on a stream that is captured: the model records the event, each time that it runs,
        for streams outside.

    Returns
    -------
    int
        ACL_SUCCESS (0) or as `aclrtRecordEvent`: ACL_ERROR_RT_INVALID_HANDLE (107017),
        ACLNN_ERR_RUNTIME_ERROR (361001), and for captures ACL_ERROR_RT_EVENT_CAPTURED (107028),
        ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT (107031), ACL_ERROR_STREAM_CAPTURE_CONFLICT (107032),
        ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033), ACL_ERROR_STREAM_TASK_GROUP_INTR (107034),
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000), ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP
        (207019), ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903);
        ACL_ERROR_RT_PARAM_INVALID (107000) for another flag; ACL_ERROR_RT_STREAM_NOT_CAPTURED
        (107029) for flag 1 on a stream that is not captured.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtRecordEventWithFlag(event, None, 0), aclnn.aclrtRecordEventWithFlag(event, None, 1)
    (0, 107029)
    """
    function = "aclrtRecordEventWithFlag"
    if as_int(flag) == 0:
        return aclrtRecordEvent(event, stream)
    return _flagged(function, captures.RECORD, event, stream, flag)


def _external(stream: Any, kind: str, event: aclrtEvent, function: str) -> int:
    """Do something with an external event on a stream, which records it where it is captured."""
    if stream is None or stream.redirect is not None:
        return streams.submit(stream, ExternalTask(kind, event), function)
    if kind == captures.RECORD:
        return event.record(function, stream)
    if kind == captures.WAIT:
        return event.hold_up(function, stream)
    return event.reset(function, stream)


def _flagged(function: str, kind: str, event: Any, stream: Any, flag: Any) -> int:
    """Do something with an event on a stream that is captured, for streams outside."""
    if as_int(flag) != WITH_EXTERNAL:
        return fail(
            ACL_ERROR_RT_PARAM_INVALID, f"{function}: flag is {shown(flag)}, must be 0 or 1"
        )
    if status := bad_event(function, event) or streams.bad_stream(function, stream):
        return status
    if captures.capture_of(stream) is None:
        return fail(
            ACL_ERROR_RT_STREAM_NOT_CAPTURED,
            f"{function}: {captures.named(stream)} is not captured, but the flag is 1",
        )
    return streams.submit(stream, ExternalTask(kind, event), function)


def aclrtResetEvent(event: Any, stream: Any) -> int:
    """Let an external event count as not recorded from here on.

    Parameters
    ----------
    event : aclrtEvent
        Made with ACL_EVENT_EXTERNAL.
    stream : aclrtStream or None
        On one that is captured, the reset is recorded.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for another event;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for a null event, and for an event or stream that is
        destroyed or of another type; ACLNN_ERR_RUNTIME_ERROR (361001) when the system has no thread for the
        stream.
        What a capture records: ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903),
        ACL_ERROR_STREAM_TASK_GROUP_INTR (107034), ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000),
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP (207019) and ACL_ERROR_STREAM_TASK_GROUP_STATUS
        (107033) as `aclrtRecordEvent` has them.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtResetEvent(event, None)
    107000
    """
    function = "aclrtResetEvent"
    status = call(function, event, stream)
    if status != IN_PYTHON:
        return status
    if event.external:
        return _external(stream, captures.RESET, event, function)
    return event.reset(function, stream)


def aclrtStreamWaitEvent(stream: Any, event: Any) -> int:
    """Make further work of a stream wait for an event.

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
        stream that is destroyed or of another type; ACLNN_ERR_RUNTIME_ERROR (361001) when the system has no
        thread for the stream.
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
    status = call("aclrtStreamWaitEvent", stream, event)
    return _waited_for(stream, event) if status == IN_PYTHON else status


def _waited_for(stream: Any, event: Any) -> int:
    """Let a stream wait for an event where streams may be captured, or are looked at."""
    if event.external:
        return _external(stream, captures.WAIT, event, "aclrtStreamWaitEvent")
    if (recorded := _captured_wait(stream, event)) is not None:
        return recorded
    if stream is None or stream.redirect is not None:
        return streams.submit(stream, ExternalTask(captures.WAIT, event), "aclrtStreamWaitEvent")
    if (watch := watching()) is not None:
        watch.wait(event, stream)
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


def aclrtStreamWaitEventWithFlag(stream: Any, event: Any, timeout: int, flag: int) -> int:
    """Let a stream wait for an event; see `aclrtStreamWaitEvent`.

    Parameters
    ----------
    stream : aclrtStream or None
    event : aclrtEvent
    timeout : int
        Seconds; 0 waits for ever, as it has to be with flag 1.
    flag : int
        0, or 1 on a stream that is captured: the model waits for work that was recorded outside, each
        time that it runs.

    Returns
    -------
    int
        ACL_SUCCESS (0) or as `aclrtStreamWaitEvent`: ACL_ERROR_RT_INVALID_HANDLE (107017),
        ACLNN_ERR_RUNTIME_ERROR (361001), and for captures ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT
        (107031), ACL_ERROR_STREAM_CAPTURE_CONFLICT (107032), ACL_ERROR_STREAM_TASK_GROUP_STATUS
        (107033), ACL_ERROR_STREAM_TASK_GROUP_INTR (107034), ACL_ERROR_RT_FEATURE_NOT_SUPPORT
        (207000), ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP (207019),
        ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903);
        ACL_ERROR_RT_PARAM_INVALID (107000) for another flag or timeout;
        ACL_ERROR_RT_STREAM_NOT_CAPTURED (107029) for flag 1 on a stream that is not captured.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtStreamWaitEventWithFlag(None, event, 0, 0)
    0
    """
    function = "aclrtStreamWaitEventWithFlag"
    seconds = as_int(timeout)
    if seconds is None or seconds < 0 or (seconds and as_int(flag)):
        return fail(
            ACL_ERROR_RT_PARAM_INVALID,
            f"{function}: timeout is {shown(timeout)}, must be seconds from 0 on, and 0 with flag 1",
        )
    if as_int(flag) == 0:
        return _waited(function, stream, event, min(seconds, LONGEST_MILLISECONDS // 1000) or None)
    return _flagged(function, captures.WAIT, event, stream, flag)


def aclrtStreamWaitEventWithTimeout(stream: Any, event: Any, timeout: int) -> int:
    """Let a stream wait for an event, but not for ever; see `aclrtStreamWaitEvent`.

    Parameters
    ----------
    stream : aclrtStream or None
    event : aclrtEvent
    timeout : int
        Milliseconds from 1 on, or -1 for ever. What comes later goes on, and the stream's next
        synchronise answers 361001.

    Returns
    -------
    int
        ACL_SUCCESS (0) or as `aclrtStreamWaitEvent`: ACL_ERROR_RT_INVALID_HANDLE (107017),
        ACLNN_ERR_RUNTIME_ERROR (361001), and for captures ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT
        (107031), ACL_ERROR_STREAM_CAPTURE_CONFLICT (107032), ACL_ERROR_STREAM_TASK_GROUP_STATUS
        (107033), ACL_ERROR_STREAM_TASK_GROUP_INTR (107034), ACL_ERROR_RT_FEATURE_NOT_SUPPORT
        (207000), ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP (207019),
        ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903);
        ACL_ERROR_RT_PARAM_INVALID (107000) for another timeout.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtStreamWaitEventWithTimeout(None, event, 10)
    0
    """
    function = "aclrtStreamWaitEventWithTimeout"
    status = call(function, stream, event, timeout)
    if status != IN_PYTHON:
        return status
    return _waited(function, stream, event, milliseconds(function, timeout)[0])


def _waited(function: str, stream: Any, event: Any, seconds: float | None) -> int:
    """A wait that ends after some seconds; captures record it as one that does not."""
    if status := streams.bad_stream(function, stream):
        return status
    if seconds is None or captures.capture_of(stream) is not None:
        return aclrtStreamWaitEvent(stream, event)
    if status := bad_handle(function, "event", event, aclrtEvent):
        return status
    if captures.capture_of_event(event) is not None:  # the stream joins the capture
        return aclrtStreamWaitEvent(stream, event)
    if stream is None or stream.redirect is not None:
        task = ExternalTask(captures.WAIT, event, seconds)
        return streams.submit(stream, task, function)
    if (watch := watching()) is not None:
        watch.wait(event, stream)
    return event.hold_up(function, stream, seconds)


def aclrtGetEventId(event: Any) -> tuple[int, int]:
    """The number by which messages and traces name an event.

    Parameters
    ----------
    event : aclrtEvent

    Returns
    -------
    eventId : int
        0 on failure.
    ret : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_HANDLE (107017) for an event that is null or destroyed
        and for anything but an event.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> number, ret = aclnn.aclrtGetEventId(event)
    >>> number > 0, ret
    (True, 0)
    """
    return call("aclrtGetEventId", event)
