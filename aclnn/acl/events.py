"""Events with flags, resets, queries and waits that end."""

from __future__ import annotations

from typing import Any

from aclnn.acl import capture as captures
from aclnn.acl import stream as streams
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.constants import (
    ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
    ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
    ACL_ERROR_RT_PARAM_INVALID,
    ACL_ERROR_RT_STREAM_NOT_CAPTURED,
    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
    ACL_SUCCESS,
    aclrtEventFlag,
    aclrtEventRecordedStatus,
    aclrtEventStatus,
    aclrtEventWaitStatus,
    aclrtStreamStatus,
)
from aclnn.acl.errors import fail

OK = int(ACL_SUCCESS)
EXTERNAL, IPC = aclrtEventFlag.ACL_EVENT_EXTERNAL, aclrtEventFlag.ACL_EVENT_IPC
EVERY_FLAG = sum(aclrtEventFlag)
WITH_EXTERNAL = 1  # the flag of records and waits

__all__ = [
    "aclrtCreateEventExWithFlag",
    "aclrtCreateEventWithFlag",
    "aclrtEventGetTimestamp",
    "aclrtGetEventId",
    "aclrtQueryEvent",
    "aclrtQueryEventStatus",
    "aclrtQueryEventWaitStatus",
    "aclrtRecordEventWithFlag",
    "aclrtResetEvent",
    "aclrtStreamQuery",
    "aclrtStreamWaitEventWithFlag",
    "aclrtStreamWaitEventWithTimeout",
    "aclrtSynchronizeEventWithTimeout",
    "aclrtSynchronizeStreamWithTimeout",
]


def aclrtCreateEventWithFlag(flag: int) -> tuple[streams.aclrtEvent | None, int]:
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


def aclrtCreateEventExWithFlag(flag: int) -> tuple[streams.aclrtEvent | None, int]:
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


def _created(function: str, flag: Any) -> tuple[streams.aclrtEvent | None, int]:
    flags = as_int(flag)
    if flags is None or flags <= 0 or flags & ~EVERY_FLAG:
        return None, fail(
            ACL_ERROR_RT_PARAM_INVALID, f"{function}: flag is {shown(flag)}, no aclrtEventFlag"
        )
    for alone in (EXTERNAL, IPC):
        if flags & alone and flags != alone:
            return None, fail(
                ACL_ERROR_RT_PARAM_INVALID,
                f"{function}: flag is {flags:#x}, but {alone.name} stands alone",
            )
    if flags == IPC:
        return None, fail(
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT, f"{function}: no event is shared by processes"
        )
    return streams.new_event(flags), OK


def _bad_event(function: str, event: Any) -> int:
    """ACL_SUCCESS for an event that can be waited for or asked now."""
    if status := streams.bad_handle(function, "event", event, streams.aclrtEvent):
        return status
    capture = captures.capture_of_event(event)
    return OK if capture is None else capture.refuse_event(function, "event", event)


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
        destroyed or of another type; ACLNN_ERR_RUNTIME_ERROR (361001) when no thread can be had for
        the stream.
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
    if status := streams.bad_handle(function, "event", event, streams.aclrtEvent):
        return status
    if status := streams.bad_stream(function, stream):
        return status
    if not event.external:
        return fail(
            ACL_ERROR_RT_PARAM_INVALID,
            f"{function}: event {event.number} was not made with ACL_EVENT_EXTERNAL; others are "
            "recorded again instead",
        )
    if stream is None or stream.redirect is not None:
        return streams.submit(stream, streams.ExternalTask(captures.RESET, event), function)
    return event.reset(function, stream)


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
        return streams.aclrtRecordEvent(event, stream)
    return _external(function, captures.RECORD, event, stream, flag)


def aclrtStreamWaitEventWithFlag(stream: Any, event: Any, timeout: int, flag: int) -> int:
    """Let a stream wait for an event; see `aclrtStreamWaitEvent`.

    Parameters
    ----------
    stream : aclrtStream or None
    event : aclrtEvent
    timeout : int
        Seconds; 0 waits for ever, as it has to be with flag 1.
    flag : int
        0, or 1 on a stream that is captured: the model waits for what was recorded outside, each
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
    return _external(function, captures.WAIT, event, stream, flag)


def _external(function: str, kind: str, event: Any, stream: Any, flag: Any) -> int:
    if as_int(flag) != WITH_EXTERNAL:
        return fail(
            ACL_ERROR_RT_PARAM_INVALID, f"{function}: flag is {shown(flag)}, must be 0 or 1"
        )
    if status := _bad_event(function, event) or streams.bad_stream(function, stream):
        return status
    if captures.capture_of(stream) is None:
        return fail(
            ACL_ERROR_RT_STREAM_NOT_CAPTURED,
            f"{function}: {captures.named(stream)} is not captured, but the flag is 1",
        )
    return streams.submit(stream, streams.ExternalTask(kind, event), function)


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
    limit, status = milliseconds(function, timeout)
    return status or _waited(function, stream, event, limit)


def _waited(function: str, stream: Any, event: Any, seconds: float | None) -> int:
    """A wait that ends after some seconds; captures record it as one that does not."""
    if status := streams.bad_stream(function, stream):
        return status
    if seconds is None or captures.capture_of(stream) is not None:
        return streams.aclrtStreamWaitEvent(stream, event)
    if status := streams.bad_handle(function, "event", event, streams.aclrtEvent):
        return status
    if captures.capture_of_event(event) is not None:  # the stream joins the capture
        return streams.aclrtStreamWaitEvent(stream, event)
    if stream is None or stream.redirect is not None:
        task = streams.ExternalTask(captures.WAIT, event, seconds)
        return streams.submit(stream, task, function)
    return event.hold_up(function, stream, seconds)


LONGEST_MILLISECONDS = 10**10  # some months; clocks of some platforms end soon after


def milliseconds(function: str, timeout: Any) -> tuple[float | None, int]:
    """A limit in seconds, None for none; and the status of a timeout that is no limit."""
    number = as_int(timeout)
    if number is None or (number < 1 and number != -1):
        return None, fail(
            ACL_ERROR_RT_PARAM_INVALID,
            f"{function}: timeout is {shown(timeout)}, must be -1 or milliseconds from 1 on",
        )
    if number == -1:
        return None, OK
    return min(number, LONGEST_MILLISECONDS) / 1000, OK


def aclrtSynchronizeEventWithTimeout(event: Any, timeout: int) -> int:
    """Wait until an event's latest recording has happened, but not for ever.

    Parameters
    ----------
    event : aclrtEvent
    timeout : int
        Milliseconds from 1 on, or -1 for ever.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_EVENT_SYNC_TIMEOUT (507047) if it has not happened by then;
        ACL_ERROR_RT_PARAM_INVALID (107000) for another timeout; ACL_ERROR_RT_EVENT_CAPTURED (107028)
        for an event that a capture has recorded; ACL_ERROR_RT_INVALID_HANDLE (107017) for an event
        that is null or destroyed and for anything but an event.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtSynchronizeEventWithTimeout(event, 10)
    0
    """
    function = "aclrtSynchronizeEventWithTimeout"
    if status := _bad_event(function, event):
        return status
    limit, status = milliseconds(function, timeout)
    if status:
        return status
    if event.wait(limit):
        return OK
    return fail(
        ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
        f"{function}: event {event.number} has not happened after {timeout} ms",
    )


def aclrtSynchronizeStreamWithTimeout(stream: Any, timeout: int) -> int:
    """Wait until the work that a stream was given so far is done, but not for ever.

    Parameters
    ----------
    stream : aclrtStream or None
    timeout : int
        Milliseconds from 1 on, or -1 for ever.

    Returns
    -------
    int
        ACL_SUCCESS (0) or as `aclrtSynchronizeStream`: ACL_ERROR_RT_INVALID_HANDLE (107017),
        ACLNN_ERR_RUNTIME_ERROR (361001);
        ACL_ERROR_RT_STREAM_SYNC_TIMEOUT (507046)
        if it is not done by then; ACL_ERROR_RT_PARAM_INVALID (107000) for another timeout;
        ACL_ERROR_RT_STREAM_CAPTURED (107027) for a stream that is captured.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtSynchronizeStreamWithTimeout(None, 10)
    0
    """
    function = "aclrtSynchronizeStreamWithTimeout"
    limit, status = milliseconds(function, timeout)
    if status or limit is None or not isinstance(stream, streams.aclrtStream):
        return status or streams.aclrtSynchronizeStream(stream)
    if status := _bad_query(function, stream):
        return status
    if stream.wait(limit):
        return streams.aclrtSynchronizeStream(stream)
    return fail(
        ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
        f"{function}: {captures.named(stream)} is not done after {timeout} ms",
    )


def _bad_query(function: str, stream: Any) -> int:
    if status := streams.bad_stream(function, stream):
        return status
    capture = captures.capture_of(stream)
    return OK if capture is None else capture.refuse(function, stream)


def aclrtStreamQuery(stream: Any) -> tuple[int, int]:
    """Tell whether a stream has work left.

    Parameters
    ----------
    stream : aclrtStream or None
        None, the default stream, never has.

    Returns
    -------
    status : int
        ACL_STREAM_STATUS_COMPLETE (0), or ACL_STREAM_STATUS_NOT_READY (1), as on failure.
    ret : int
        ACL_SUCCESS (0); ACL_ERROR_RT_STREAM_CAPTURED (107027) for a stream that is captured;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtStreamQuery(None)
    (0, 0)
    """
    if status := _bad_query("aclrtStreamQuery", stream):
        return int(aclrtStreamStatus.ACL_STREAM_STATUS_NOT_READY), status
    if stream is None or stream.is_idle():
        return int(aclrtStreamStatus.ACL_STREAM_STATUS_COMPLETE), OK
    return int(aclrtStreamStatus.ACL_STREAM_STATUS_NOT_READY), OK


def aclrtQueryEventStatus(event: Any) -> tuple[int, int]:
    """Tell whether an event's latest recording has happened.

    Parameters
    ----------
    event : aclrtEvent
        One that was never recorded is complete, unless it is external.

    Returns
    -------
    status : int
        ACL_EVENT_RECORDED_STATUS_NOT_READY (0), as on failure, or ..._COMPLETE (1).
    ret : int
        ACL_SUCCESS (0); ACL_ERROR_RT_EVENT_CAPTURED (107028) for an event that a capture has
        recorded; ACL_ERROR_RT_INVALID_HANDLE (107017) for an event that is null or destroyed and
        for anything but an event.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtQueryEventStatus(event)
    (1, 0)
    """
    status = _bad_event("aclrtQueryEventStatus", event)
    if status or not event.has_happened():
        return int(aclrtEventRecordedStatus.ACL_EVENT_RECORDED_STATUS_NOT_READY), status
    return int(aclrtEventRecordedStatus.ACL_EVENT_RECORDED_STATUS_COMPLETE), OK


def aclrtQueryEvent(event: Any) -> tuple[int, int]:
    """As `aclrtQueryEventStatus`, with other values; CANN advises against it.

    Parameters
    ----------
    event : aclrtEvent

    Returns
    -------
    status : int
        ACL_EVENT_STATUS_COMPLETE (0), or ACL_EVENT_STATUS_NOT_READY (1), as on failure.
    ret : int
        ACL_SUCCESS (0); ACL_ERROR_RT_EVENT_CAPTURED (107028) for an event that a capture has
        recorded; ACL_ERROR_RT_INVALID_HANDLE (107017) for an event that is null or destroyed and
        for anything but an event.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtRecordEvent(event, None), aclnn.aclrtQueryEvent(event)
    (0, (0, 0))
    """
    status = _bad_event("aclrtQueryEvent", event)
    if status or not event.has_happened():
        return int(aclrtEventStatus.ACL_EVENT_STATUS_NOT_READY), status
    return int(aclrtEventStatus.ACL_EVENT_STATUS_COMPLETE), OK


def aclrtQueryEventWaitStatus(event: Any) -> tuple[int, int]:
    """Tell whether streams have passed all waits for an event that they were given.

    Parameters
    ----------
    event : aclrtEvent

    Returns
    -------
    status : int
        ACL_EVENT_WAIT_STATUS_COMPLETE (0), or ACL_EVENT_WAIT_STATUS_NOT_READY (1), as on failure.
    ret : int
        ACL_SUCCESS (0); ACL_ERROR_RT_EVENT_CAPTURED (107028) for an event that a capture has
        recorded; ACL_ERROR_RT_INVALID_HANDLE (107017) for an event that is null or destroyed and
        for anything but an event.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtQueryEventWaitStatus(event)
    (0, 0)
    """
    status = _bad_event("aclrtQueryEventWaitStatus", event)
    if status or not event.waits_ended:
        return int(aclrtEventWaitStatus.ACL_EVENT_WAIT_STATUS_NOT_READY), status
    return int(aclrtEventWaitStatus.ACL_EVENT_WAIT_STATUS_COMPLETE), OK


def aclrtEventGetTimestamp(event: Any) -> tuple[int, int]:
    """Get the time of an event's latest recording.

    Parameters
    ----------
    event : aclrtEvent

    Returns
    -------
    timestamp : int
        Microseconds of a clock that only goes forward; 0 on failure.
    ret : int
        ACL_SUCCESS (0); ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID (107006) for an event that was not
        recorded or has not happened yet; ACL_ERROR_RT_EVENT_CAPTURED (107028) for one that a capture
        has recorded; ACL_ERROR_RT_INVALID_HANDLE (107017) for one that is null or destroyed and for
        anything but an event.

    Examples
    --------
    >>> import aclnn
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclrtEventGetTimestamp(event), aclnn.aclrtRecordEvent(event, None)
    ((0, 107006), 0)
    >>> timestamp, ret = aclnn.aclrtEventGetTimestamp(event)
    >>> timestamp > 0, ret
    (True, 0)
    """
    function = "aclrtEventGetTimestamp"
    if status := _bad_event(function, event):
        return 0, status
    if not (nanoseconds := event.time_of(function, "event")):
        return 0, int(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID)
    return nanoseconds // 1000, OK


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
    if status := streams.bad_handle("aclrtGetEventId", "event", event, streams.aclrtEvent):
        return 0, status
    return event.number, OK
