"""CANN's functions of stream capture: its begin, its end, and what it forbids to threads."""

from __future__ import annotations

import threading
from typing import Any

from aclnn.acl import capture as captures
from aclnn.acl import model_ri as models
from aclnn.acl import stream as streams
from aclnn.acl.checks import bad_member
from aclnn.acl.constants import (
    ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
    ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED,
    ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD,
    ACL_SUCCESS,
    aclmdlRICaptureMode,
    aclmdlRICaptureStatus,
)
from aclnn.acl.errors import AclnnError, fail

OK = int(ACL_SUCCESS)
NONE = aclmdlRICaptureStatus.ACL_MODEL_RI_CAPTURE_STATUS_NONE
ACTIVE = aclmdlRICaptureStatus.ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE
INVALIDATED = aclmdlRICaptureStatus.ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED

__all__ = [
    "aclmdlRICaptureBegin",
    "aclmdlRICaptureEnd",
    "aclmdlRICaptureGetInfo",
    "aclmdlRICaptureThreadExchangeMode",
]


def aclmdlRICaptureBegin(stream: Any, mode: int) -> int:
    """Start recording the work of a stream instead of running it.

    Work that is already queued runs.

    Parameters
    ----------
    stream : aclrtStream
        Not the default stream.
    mode : aclmdlRICaptureMode
        Which threads may not call `aclrtMemcpy`, `aclrtMemset` and their like until the end: all
        (GLOBAL), the calling one (THREAD_LOCAL) or none (RELAXED).

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for another mode;
        ACL_ERROR_RT_STREAM_CAPTURED (107027) for a stream that is captured already;
        ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) for one that updates a task group;
        ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT (107031) for the default stream;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> aclnn.aclmdlRICaptureBegin(stream, aclnn.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
    0
    >>> aclnn.aclrtSynchronizeStream(stream)  # nothing runs that could be waited for
    107027
    >>> model, status = aclnn.aclmdlRICaptureEnd(stream)
    >>> status, aclnn.aclmdlRIDestroy(model), aclnn.aclrtDestroyStream(stream)
    (0, 0, 0)
    """
    function = "aclmdlRICaptureBegin"
    if status := bad_member(function, "mode", mode, aclmdlRICaptureMode):
        return status
    if stream is None:
        return fail(
            ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
            f"{function}: the default stream cannot be captured, make one with aclrtCreateStream",
        )
    if status := streams.bad_stream(function, stream):
        return status
    with captures.locked():
        if stream.redirect is not None:
            return stream.redirect.refuse(function, stream)
        captures.begin(stream, aclmdlRICaptureMode(mode), models.aclmdlRI())
    return OK


def aclmdlRICaptureGetInfo(stream: Any) -> tuple[int, models.aclmdlRI | None, int]:
    """Get the capture status of a stream.

    Parameters
    ----------
    stream : aclrtStream or None

    Returns
    -------
    status : int
        ACL_MODEL_RI_CAPTURE_STATUS_NONE (0), ..._ACTIVE (1), or ..._INVALIDATED (2) where some
        call could not be recorded.
    modelRI : models.aclmdlRI or None
        The model that the recording becomes; None without a capture.
    ret : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> aclnn.aclmdlRICaptureGetInfo(stream)
    (0, None, 0)
    >>> aclnn.aclrtDestroyStream(stream)
    0
    """
    if status := streams.bad_stream("aclmdlRICaptureGetInfo", stream):
        return int(NONE), None, status
    capture = captures.capture_of(stream)
    if capture is None:
        return int(NONE), None, OK
    return int(ACTIVE if capture.failure is None else INVALIDATED), capture.model, OK


def aclmdlRICaptureEnd(stream: Any) -> tuple[models.aclmdlRI | None, int]:
    """End a capture and turn the recording into a model.

    Parameters
    ----------
    stream : aclrtStream
        The stream on which the capture began.

    Returns
    -------
    modelRI : models.aclmdlRI or None
        None on failure.
    ret : int
        ACL_SUCCESS (0). ACL_ERROR_RT_STREAM_NOT_CAPTURED (107029) for a stream that is not
        captured, ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED (107036) for one that joined the capture of
        another, ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream;
        captures continue then. The others drop the recorded calls:
        ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD (107038) on a thread that did not begin the
        capture, unless its mode is RELAXED; ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903) after
        a call that could not be recorded; ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) with an open
        task group; ACL_ERROR_RT_CAPTURE_DEPENDENCY (107024) if a stream waits for an event that
        the capture did not record before; ACL_ERROR_RT_STREAM_UNJOINED (107025) if a stream that
        joined does not lead back to the origin.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> aclnn.aclmdlRICaptureEnd(stream)
    (None, 107029)
    >>> "is not captured" in aclnn.aclGetRecentErrMsg()
    True
    >>> aclnn.aclrtDestroyStream(stream)
    0
    """
    function = "aclmdlRICaptureEnd"
    if status := streams.bad_stream(function, stream):
        return None, status
    with captures.locked():
        capture = captures.capture_of(stream)
        if capture is None:
            return None, captures.refuse_uncaptured(function, stream)
        if stream is not capture.origin:
            return None, fail(
                ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED,
                f"{function}: {captures.named(stream)} has joined {capture.of()}, which ends on "
                f"{captures.named(capture.origin)}",
            )
        capture.close()
    try:
        status = _refuse_end(function, capture)
        if not status:
            models.finish(capture.model, capture)
    except AclnnError as error:
        status = fail(error.status, f"{function}: {capture.of()}: {error}")
    finally:
        capture.forget()
    return (None if status else capture.model), status


def _refuse_end(function: str, capture: captures.Capture) -> int:
    """ACL_SUCCESS, or why a capture that has ended is no model."""
    is_relaxed = capture.mode == captures.RELAXED
    if not is_relaxed and capture.thread != threading.get_ident():
        return fail(
            ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD,
            f"{function}: {capture.of()} was ended by thread "
            f"{threading.current_thread().name!r} and is dropped; only the mode RELAXED allows that",
        )
    problem = capture.incomplete()
    if problem is None:
        return OK
    status, why = problem
    return fail(status, f"{function}: {capture.of()} {why}, and is dropped. {capture.summary()}")


def aclmdlRICaptureThreadExchangeMode(mode: int) -> tuple[int, int]:
    """Set which captures forbid unsafe calls to the calling thread.

    Parameters
    ----------
    mode : aclmdlRICaptureMode
        GLOBAL, which a thread has at first: any capture of that mode does, and the thread's own of
        mode THREAD_LOCAL; THREAD_LOCAL: only its own; RELAXED: none.

    Returns
    -------
    previous : int
        The mode before; on failure the present one.
    ret : int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for another mode.

    Examples
    --------
    >>> import aclnn
    >>> before, _ = aclnn.aclmdlRICaptureThreadExchangeMode(aclnn.ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
    >>> aclnn.aclmdlRICaptureThreadExchangeMode(before)
    (2, 0)
    """
    function = "aclmdlRICaptureThreadExchangeMode"
    if status := bad_member(function, "mode", mode, aclmdlRICaptureMode):
        return int(captures.thread_mode()), status
    return int(captures.exchange_mode(aclmdlRICaptureMode(mode))), OK
