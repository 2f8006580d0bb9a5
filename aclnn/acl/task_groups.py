"""CANN's functions of task groups: operators of a model whose arguments are replaced later."""

from __future__ import annotations

from typing import Any

from aclnn.acl import capture as captures
from aclnn.acl import model_ri as models
from aclnn.acl import stream as streams
from aclnn.acl.constants import (
    ACL_ERROR_RT_INVALID_HANDLE,
    ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
    ACL_ERROR_STREAM_TASK_GROUP_STATUS,
    ACL_SUCCESS,
)
from aclnn.acl.errors import fail

OK = int(ACL_SUCCESS)

__all__ = [
    "aclmdlRICaptureTaskGrpBegin",
    "aclmdlRICaptureTaskGrpEnd",
    "aclmdlRICaptureTaskUpdateBegin",
    "aclmdlRICaptureTaskUpdateEnd",
]


def aclmdlRICaptureTaskGrpBegin(stream: Any) -> int:
    """Begin a task group: the next operators on a captured stream can be updated later.

    Parameters
    ----------
    stream : aclrtStream
        One that is captured; no other stream of the capture may be given work before the end.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_STREAM_NOT_CAPTURED (107029) for a stream that is not
        captured; ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) where a group is open already;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclmdlRICaptureTaskGrpBegin(None)
    107029
    """
    function = "aclmdlRICaptureTaskGrpBegin"
    if status := streams.bad_stream(function, stream):
        return status
    with captures.locked():
        capture = captures.capture_of(stream)
        if capture is None:
            return captures.refuse_uncaptured(function, stream)
        if capture.groups:
            (other,) = capture.groups
            return fail(
                ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                f"{function}: a task group is open on {captures.named(other)}. {capture.summary()}",
            )
        capture.groups[stream] = captures.TaskGroup(capture.model, stream.number)
    return OK


def aclmdlRICaptureTaskGrpEnd(stream: Any) -> tuple[captures.TaskGroup | None, int]:
    """End a task group.

    Parameters
    ----------
    stream : aclrtStream
        The one that it was begun on.

    Returns
    -------
    handle : TaskGroup or None
        For `aclmdlRICaptureTaskUpdateBegin`, once the capture has ended.
    ret : int
        ACL_SUCCESS (0); ACL_ERROR_RT_STREAM_NOT_CAPTURED (107029) for a stream that is not
        captured; ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) where it has no open group;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclmdlRICaptureTaskGrpEnd(None)
    (None, 107029)
    """
    function = "aclmdlRICaptureTaskGrpEnd"
    if status := streams.bad_stream(function, stream):
        return None, status
    with captures.locked():
        capture = captures.capture_of(stream)
        if capture is None:
            return None, captures.refuse_uncaptured(function, stream)
        if stream not in capture.groups:
            return None, fail(
                ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                f"{function}: {captures.named(stream)} has no open task group. {capture.summary()}",
            )
        group = capture.groups.pop(stream)
        group.model.groups.append(group)
        return group, OK


def aclmdlRICaptureTaskUpdateBegin(stream: Any, handle: Any) -> int:
    """Begin to update a task group: the next operators on the stream replace its own.

    Parameters
    ----------
    stream : aclrtStream
        One that is not captured; not the default stream.
    handle : TaskGroup
        Of a model whose capture has ended.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_STREAM_CAPTURED (107027) for a stream that is captured;
        ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT (107031) for the default stream;
        ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) where the stream updates a group already, or
        another one updates this group; ACL_ERROR_RT_MODEL_CAPTURED (107026) before the capture has
        ended; ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream or group.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> aclnn.aclmdlRICaptureTaskUpdateBegin(stream, None), aclnn.aclrtDestroyStream(stream)
    (107017, 0)
    """
    function = "aclmdlRICaptureTaskUpdateBegin"
    if status := streams.bad_stream(function, stream):
        return status
    if stream is None:
        return fail(
            ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
            f"{function}: the default stream updates no task groups",
        )
    if not isinstance(handle, captures.TaskGroup):
        return fail(
            ACL_ERROR_RT_INVALID_HANDLE,
            f"{function}: handle is {hex(handle) if isinstance(handle, int) else type(handle).__name__}"
            ", must be what aclmdlRICaptureTaskGrpEnd gave",
        )
    with captures.locked():
        if stream.redirect is not None:
            return stream.redirect.refuse(function, stream)
        if status := models.bad_model(function, handle.model):
            return status
        if handle.updating:
            return fail(
                ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                f"{function}: another stream updates this task group of model "
                f"{handle.model.number}",
            )
        handle.updating = True
        captures.redirect(stream, captures.Update(handle))
    return OK


def aclmdlRICaptureTaskUpdateEnd(stream: Any) -> int:
    """End the update of a task group; the stream applies it after its other work.

    Runs of the model that begin later use the new arguments.

    Parameters
    ----------
    stream : aclrtStream

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_STREAM_CAPTURED (107027) for a stream that is captured;
        ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) where the stream updates nothing, or was given
        fewer operators than the group has, which ends the update without effect;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> aclnn.aclmdlRICaptureTaskUpdateEnd(stream), aclnn.aclrtDestroyStream(stream)
    (107033, 0)
    """
    function = "aclmdlRICaptureTaskUpdateEnd"
    if status := streams.bad_stream(function, stream):
        return status
    with captures.locked():
        if (capture := captures.capture_of(stream)) is not None:
            return capture.refuse(function, stream)
        update = None if stream is None else stream.redirect
        if update is None:
            return fail(
                ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                f"{function}: {captures.named(stream)} updates no task group",
            )
        stream.redirect, update.group.updating = None, False
    return _apply(function, stream, update)


def _apply(function: str, stream: Any, update: captures.Update) -> int:
    """Have the stream put new arguments in the place of a group's."""
    group, value = update.group, len(update.jobs)
    if value != len(group.tasks):
        return fail(
            ACL_ERROR_STREAM_TASK_GROUP_STATUS,
            f"{function}: {value} operators were given for the {len(group.tasks)} of the task "
            "group, which is unchanged",
        )
    replay = models.replay_of(group.model, function)
    numbers = [task.number for task in group.tasks]
    return streams.submit(
        stream, lambda: replay.update(dict(zip(numbers, update.jobs, strict=True))), function
    )
