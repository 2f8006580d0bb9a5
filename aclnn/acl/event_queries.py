"""Queries of events: whether and when they happened; waits of the program for that."""

from __future__ import annotations

from typing import Any

from aclnn.acl import capture as captures
from aclnn.acl._runtime import call
from aclnn.acl.checks import bad_handle
from aclnn.acl.constants import ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, ACL_SUCCESS
from aclnn.acl.events import aclrtEvent

OK = int(ACL_SUCCESS)

__all__ = [
    "aclrtEventElapsedTime",
    "aclrtEventGetTimestamp",
    "aclrtQueryEvent",
    "aclrtQueryEventStatus",
    "aclrtQueryEventWaitStatus",
    "aclrtSynchronizeEvent",
    "aclrtSynchronizeEventWithTimeout",
]


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
    return call("aclrtSynchronizeEvent", event)


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
    return call("aclrtSynchronizeEventWithTimeout", event, timeout)


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
    return call("aclrtQueryEventStatus", event)


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
    return call("aclrtQueryEvent", event)


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
    return call("aclrtQueryEventWaitStatus", event)


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
    return call("aclrtEventGetTimestamp", event)
