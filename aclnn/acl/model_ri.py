"""CANN's functions of stream capture: models that are recorded on streams and run any number of times."""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

import json
import os
import threading
from enum import IntEnum
from typing import Any

from aclnn.acl import _runtime, files, registry
from aclnn.acl import capture as captures
from aclnn.acl import stream as streams
from aclnn.acl._flag import Flag
from aclnn.acl.arguments import as_int, as_member, shown
from aclnn.acl.constants import (
    ACL_ERROR_RT_INVALID_HANDLE,
    ACL_ERROR_RT_MODEL_CAPTURED,
    ACL_ERROR_RT_MODEL_RUNNING,
    ACL_ERROR_RT_PARAM_INVALID,
    ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
    ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED,
    ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD,
    ACL_ERROR_RT_STREAM_NOT_CAPTURED,
    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
    ACL_ERROR_STREAM_TASK_GROUP_STATUS,
    ACL_SUCCESS,
    aclmdlRICaptureMode,
    aclmdlRICaptureStatus,
    aclmdlRIDebugJsonFlag,
)
from aclnn.acl.errors import AclnnError, fail
from aclnn.acl.events import LONGEST_MILLISECONDS
from aclnn.graph.brief import counted
from aclnn.graph.runtime import _scheduler

OK = int(ACL_SUCCESS)
NONE = aclmdlRICaptureStatus.ACL_MODEL_RI_CAPTURE_STATUS_NONE
ACTIVE = aclmdlRICaptureStatus.ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE
INVALIDATED = aclmdlRICaptureStatus.ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED
VERBOSE = aclmdlRIDebugJsonFlag.ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE

__all__ = [
    "aclmdlRI",
    "aclmdlRICaptureBegin",
    "aclmdlRICaptureEnd",
    "aclmdlRICaptureGetInfo",
    "aclmdlRICaptureTaskGrpBegin",
    "aclmdlRICaptureTaskGrpEnd",
    "aclmdlRICaptureTaskUpdateBegin",
    "aclmdlRICaptureTaskUpdateEnd",
    "aclmdlRICaptureThreadExchangeMode",
    "aclmdlRIDebugJsonPrint",
    "aclmdlRIDestroy",
    "aclmdlRIExecute",
    "aclmdlRIExecuteAsync",
    "aclmdlRIGetName",
    "aclmdlRISetName",
]


class aclmdlRI:
    """A model, recorded between `aclmdlRICaptureBegin` and `aclmdlRICaptureEnd`.

    Attributes
    ----------
    executor : aclOpExecutor
        The whole recording as one plan, with every view of it: graph, passes, plan, schedule,
        profile, report.

    Notes
    -----
    Addresses, shapes, numbers and workspaces are those of the recorded calls. A model keeps the
    recorded arrays alive, and refuses to run after device memory that it needs was freed.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> def tensor(array):
    ...     return aclnn.aclCreateTensor(array.shape, aclnn.ACL_FLOAT, None, 0,
    ...                                  aclnn.ACL_FORMAT_ND, array.shape, array)
    >>> x, out = np.float32([-1, 2]), np.zeros(2, np.float32)
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> aclnn.aclmdlRICaptureBegin(stream, aclnn.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
    0
    >>> size, executor, _ = aclnn.aclnnReluGetWorkspaceSize(tensor(x), tensor(out))
    >>> aclnn.aclnnRelu(None, size, executor, stream), out.tolist()  # recorded, not run
    (0, [0.0, 0.0])
    >>> model, status = aclnn.aclmdlRICaptureEnd(stream)
    >>> aclnn.aclmdlRIExecute(model, -1), out.tolist()
    (0, [0.0, 2.0])
    >>> aclnn.aclmdlRIDestroy(model), aclnn.aclrtDestroyStream(stream)
    (0, 0)
    """

    def __init__(self) -> None:
        self.number = _runtime.next_number()
        self.name = ""
        self.destroyed = False
        self.tasks: tuple[captures.Task, ...] = ()
        self.groups: list[captures.TaskGroup] = []
        self._replay: Any = None  # an aclnn.execution.replay.Replay, once the capture has ended
        self._count = threading.Lock()
        self._pending = 0  # runs that were given to streams and have not ended

    @property
    def executor(self) -> Any:
        return self._complete("executor").executor

    def to_text(self) -> str:
        """A table of the recording: streams, dependencies, and the fate of written values.

        Returns
        -------
        str
            A line for each task, and one more for each further operand.

        Raises
        ------
        AclnnError
            With status ACL_ERROR_RT_MODEL_CAPTURED (107026), before the capture has ended.
        """
        return self._complete("to_text").to_text()

    @property
    def complete(self) -> bool:
        """Whether its capture has ended well."""
        return self._replay is not None

    def _finish(self, capture: captures.Capture) -> None:
        """Become what a capture has recorded."""
        from aclnn.execution import replay

        self.tasks = tuple(capture.tasks)
        self._replay = replay.Replay(self.tasks, capture.began)

    def _complete(self, function: str) -> Any:
        if self._replay is None:
            raise AclnnError(
                ACL_ERROR_RT_MODEL_CAPTURED, f"{function}: model {self.number} is still captured"
            )
        return self._replay

    def _begin_run(self) -> None:
        with self._count:
            self._pending += 1

    def _end_run(self) -> None:
        with self._count:
            self._pending -= 1

    def _destroy(self) -> bool:
        """Let go of everything, unless it runs or is about to."""
        with self._count:
            if self._pending:
                return False
            self.destroyed = True
        self.tasks, self._replay = (), None
        registry.forget(self)
        for group in self.groups:
            registry.forget(group)
        return True

    def __repr__(self) -> str:
        state = (
            "destroyed"
            if self.destroyed
            else counted(len(self.tasks), "task")
            if self.complete
            else "captured"
        )
        label = f" {self.name!r}" if self.name else ""
        return f"<aclmdlRI {self.number}{label}: {state}>"

    def __reduce__(self) -> Any:
        raise TypeError("a model cannot be copied or pickled: its addresses are this process's")


class _Run:
    """One run of a model, given to a stream."""

    kind, name = "MODEL_EXECUTE", "aclmdlRIExecuteAsync"

    def __init__(self, model: aclmdlRI, function: str):
        self.model, self.function = model, function
        self.replay = model._complete(function)
        self.thread, self.omp_threads = threading.get_ident(), _scheduler.omp_threads()
        self.thread_limit = self.replay.limit_of_thread()
        model._begin_run()

    def __call__(self) -> int | tuple[int, str]:
        try:
            if threading.get_ident() != self.thread:  # a stream's: limits are the caller's
                _scheduler.limit_omp_threads(self.omp_threads)
                self.replay.limit_thread(self.thread_limit)
            return self.replay.run(self.function)
        finally:
            self.model._end_run()


def _bad_model(function: str, model: Any, *, complete: bool = True) -> int:
    """ACL_SUCCESS for a model that can be used, else a status and a message."""
    if not isinstance(model, aclmdlRI):
        what = "null" if model is None else f"{type(model).__name__}, must be an aclmdlRI"
        if isinstance(model, int):
            what = f"{hex(model)}, which is no live aclmdlRI"
        return fail(ACL_ERROR_RT_INVALID_HANDLE, f"{function}: modelRI is {what}")
    if model.destroyed:
        return fail(ACL_ERROR_RT_INVALID_HANDLE, f"{function}: modelRI is destroyed")
    if complete and not model.complete:
        return fail(
            ACL_ERROR_RT_MODEL_CAPTURED,
            f"{function}: model {model.number} is still captured, or its capture failed; "
            "aclmdlRICaptureEnd completes it",
        )
    return OK


def _bad_member(function: str, name: str, value: Any, kind: type[IntEnum]) -> int:
    try:
        as_member(name, value, kind)
    except ValueError as error:
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"{function}: {error}")
    return OK


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
    if status := _bad_member(function, "mode", mode, aclmdlRICaptureMode):
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
        captures.begin(stream, aclmdlRICaptureMode(mode), aclmdlRI())
    return OK


def aclmdlRICaptureGetInfo(stream: Any) -> tuple[int, aclmdlRI | None, int]:
    """Get the capture status of a stream.

    Parameters
    ----------
    stream : aclrtStream or None

    Returns
    -------
    status : int
        ACL_MODEL_RI_CAPTURE_STATUS_NONE (0), ..._ACTIVE (1), or ..._INVALIDATED (2) where some
        call could not be recorded.
    modelRI : aclmdlRI or None
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


def aclmdlRICaptureEnd(stream: Any) -> tuple[aclmdlRI | None, int]:
    """End a capture and turn the recording into a model.

    Parameters
    ----------
    stream : aclrtStream
        The stream on which the capture began.

    Returns
    -------
    modelRI : aclmdlRI or None
        None on failure.
    ret : int
        ACL_SUCCESS (0). ACL_ERROR_RT_STREAM_NOT_CAPTURED (107029) for a stream that is not
        captured, ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED (107036) for one that joined the capture of
        another, ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream;
        captures go on then. The others drop what was recorded:
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
            return None, _not_captured(function, stream)
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
            capture.model._finish(capture)
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


def _not_captured(function: str, stream: Any) -> int:
    return fail(
        ACL_ERROR_RT_STREAM_NOT_CAPTURED,
        f"{function}: {captures.named(stream)} is not captured: aclmdlRICaptureBegin was not "
        "called, or the capture has ended",
    )


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
    if status := _bad_member(function, "mode", mode, aclmdlRICaptureMode):
        return int(captures.thread_mode()), status
    return int(captures.exchange_mode(aclmdlRICaptureMode(mode))), OK


def aclmdlRIExecuteAsync(modelRI: Any, stream: Any) -> int:
    """Run a model on a stream, after the work that is already queued.

    Parameters
    ----------
    modelRI : aclmdlRI
    stream : aclrtStream or None
        None, the default stream, runs it now.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_MODEL_CAPTURED (107026) before the capture has ended;
        ACL_ERROR_RT_PARAM_INVALID (107000) if memory was freed that it needs;
        ACL_ERROR_RT_STREAM_CAPTURED (107027) on a stream that is captured;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed model or stream;
        ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) on one that updates a task group;
        ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT (107031) on the default stream while a stream is captured
        in a mode that binds the calling thread;
        ACLNN_ERR_RUNTIME_ERROR (361001) when no thread can be had for the stream.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclmdlRIExecuteAsync(None, None)
    107017
    """
    function = "aclmdlRIExecuteAsync"
    if status := _bad_model(function, modelRI) or streams.bad_stream(function, stream):
        return status
    if stream is not None and stream.redirect is not None:
        return stream.redirect.refuse(function, stream)
    if stream is None and (status := captures.refuse_default_stream(function)):
        return status
    if status := _refuse_freed(function, modelRI):
        return status
    return _given(_Run(modelRI, function), stream)


def _given(run: _Run, stream: Any) -> int:
    """Give a run to a stream; one that the stream does not take has ended."""
    status = OK
    try:
        status = streams.submit(stream, run, run.function)
    finally:
        if status and stream is not None:
            run.model._end_run()
    return status


def _refuse_freed(function: str, model: aclmdlRI) -> int:
    freed = model._complete(function).freed()
    if freed is None:
        return OK
    return fail(
        ACL_ERROR_RT_PARAM_INVALID,
        f"{function}: {freed}; addresses are frozen when a model is captured, capture it again",
    )


def aclmdlRIExecute(modelRI: Any, timeout: int) -> int:
    """Run a model and wait for it.

    Parameters
    ----------
    modelRI : aclmdlRI
    timeout : int
        Milliseconds, at least 1; -1 waits for ever.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_STREAM_SYNC_TIMEOUT (507046) if it took longer: it goes on;
        ACL_ERROR_RT_PARAM_INVALID (107000) for another timeout, and if memory was freed that the
        model needs; ACL_ERROR_RT_MODEL_CAPTURED (107026) before the capture has ended;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed model;
        ACLNN_ERR_RUNTIME_ERROR (361001) if some work failed, or no thread can be had.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclmdlRIExecute(None, -1)
    107017
    """
    function = "aclmdlRIExecute"
    if status := _bad_model(function, modelRI):
        return status
    limit = as_int(timeout)
    if limit is None or (limit < 1 and limit != -1):
        return fail(
            ACL_ERROR_RT_PARAM_INVALID,
            f"{function}: timeout is {shown(timeout)}, must be -1 or milliseconds from 1 on",
        )
    if status := _refuse_freed(function, modelRI):
        return status
    run = _Run(modelRI, function)
    if limit == -1:
        return _given(run, None)
    return _run_within(run, limit)


def _run_within(run: _Run, limit: int) -> int:
    """Run on a stream of its own, for at most so many milliseconds."""
    stream, _ = streams.aclrtCreateStream()
    ended = Flag()
    if status := _given(run, stream) or streams.submit(stream, ended.set, run.function):
        return status
    if not ended.wait(min(limit, LONGEST_MILLISECONDS) / 1000):
        return fail(
            ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
            f"{run.function}: model {run.model.number} has not ended after {limit} ms; it goes on",
        )
    return streams.aclrtDestroyStream(stream)


def aclmdlRIDestroy(modelRI: Any) -> int:
    """Destroy a model and release what it keeps alive.

    Parameters
    ----------
    modelRI : aclmdlRI

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_MODEL_RUNNING (107037) while it runs, or waits on a stream;
        ACL_ERROR_RT_MODEL_CAPTURED (107026) before the capture has ended;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed model.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> aclnn.aclmdlRICaptureBegin(stream, aclnn.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
    0
    >>> model, _ = aclnn.aclmdlRICaptureEnd(stream)
    >>> aclnn.aclmdlRIDestroy(model), aclnn.aclmdlRIDestroy(model)
    (0, 107017)
    >>> aclnn.aclrtDestroyStream(stream)
    0
    """
    function = "aclmdlRIDestroy"
    if status := _bad_model(function, modelRI):
        return status
    if modelRI._destroy():
        return OK
    return fail(
        ACL_ERROR_RT_MODEL_RUNNING,
        f"{function}: model {modelRI.number} runs, or waits on a stream; synchronise the stream "
        "first",
    )


def aclmdlRISetName(modelRI: Any, name: str) -> int:
    """Give a model a name, which messages, traces and profiles show.

    Parameters
    ----------
    modelRI : aclmdlRI
        Complete, or still captured.
    name : str

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for a name that is no text;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed model.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> aclnn.aclmdlRICaptureBegin(stream, aclnn.ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
    0
    >>> model, _ = aclnn.aclmdlRICaptureEnd(stream)
    >>> aclnn.aclmdlRISetName(model, "decoder"), aclnn.aclmdlRIGetName(model)
    (0, ('decoder', 0))
    >>> aclnn.aclmdlRIDestroy(model), aclnn.aclrtDestroyStream(stream)
    (0, 0)
    """
    function = "aclmdlRISetName"
    if status := _bad_model(function, modelRI, complete=False):
        return status
    if not isinstance(name, str):
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"{function}: name is {shown(name)}, must be text")
    modelRI.name = name
    return OK


def aclmdlRIGetName(modelRI: Any) -> tuple[str, int]:
    """Get the name of a model.

    Parameters
    ----------
    modelRI : aclmdlRI

    Returns
    -------
    name : str
        Empty if the model has no name, and on failure.
    ret : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed model.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclmdlRIGetName(None)
    ('', 107017)
    """
    if status := _bad_model("aclmdlRIGetName", modelRI, complete=False):
        return "", status
    return modelRI.name, OK


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
            return _not_captured(function, stream)
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
            return None, _not_captured(function, stream)
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
        if status := _bad_model(function, handle.model):
            return status
        if handle.updating:
            return fail(
                ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                f"{function}: another stream updates this task group of model "
                f"{handle.model.number}",
            )
        handle.updating = True
        stream.redirect = captures.Update(handle)
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
    group, given = update.group, len(update.jobs)
    if given != len(group.tasks):
        return fail(
            ACL_ERROR_STREAM_TASK_GROUP_STATUS,
            f"{function}: {given} operators were given for the {len(group.tasks)} of the task "
            "group, which stays as it was",
        )
    replay = group.model._complete(function)
    numbers = [task.number for task in group.tasks]
    return streams.submit(
        stream, lambda: replay.update(dict(zip(numbers, update.jobs, strict=True))), function
    )


def aclmdlRIDebugJsonPrint(modelRI: Any, path: str, flags: int) -> int:
    """Write a model's tasks as a trace that browsers' trace viewers open.

    Parameters
    ----------
    modelRI : aclmdlRI
    path : str
        The file; its folder must exist.
    flags : aclmdlRIDebugJsonFlag
        ACL_MDLRI_DEBUG_JSON_PRINT_SUMMARY (0), or ..._VERBOSE (1), which adds each call's
        addresses, shapes and numbers.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for other flags, and for a path that
        cannot be written; ACL_ERROR_RT_MODEL_CAPTURED (107026) before the capture has ended;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed model.

    Notes
    -----
    Times are made up, as CANN's are: the order is what counts.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclmdlRICaptureBegin(stream, aclnn.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
    0
    >>> aclnn.aclrtRecordEvent(event, stream)
    0
    >>> model, _ = aclnn.aclmdlRICaptureEnd(stream)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.json"
    ...     status = aclnn.aclmdlRIDebugJsonPrint(model, str(path), 0)
    ...     trace = json.loads(path.read_text())
    >>> status, trace[0]["ph"], trace[0]["args"]["Task Type"]
    (0, 'X', 'EVENT_RECORD')
    >>> aclnn.aclmdlRIDestroy(model), aclnn.aclrtDestroyStream(stream)
    (0, 0)
    """
    function = "aclmdlRIDebugJsonPrint"
    if status := _bad_model(function, modelRI) or _bad_member(
        function, "flags", flags, aclmdlRIDebugJsonFlag
    ):
        return status
    trace = _trace(modelRI, verbose=flags == VERBOSE)
    try:
        files.write(os.fsdecode(path), json.dumps(trace, indent=1))
    except (OSError, TypeError, ValueError) as error:
        return fail(
            ACL_ERROR_RT_PARAM_INVALID, f"{function}: path {shown(path)} cannot be written: {error}"
        )
    return OK


# Microseconds from the begin of a task to that of the next, of which it takes all but a half.
_STEPS = {captures.RECORD: 5.0, captures.WAIT: 15.0}
_OTHER_STEP = 10.0


def _trace(model: aclmdlRI, *, verbose: bool) -> list[dict[str, Any]]:
    """Chrome's trace events, one for each task; a wait begins behind the record that it waits for."""
    ends: dict[int, float] = {}
    begins: dict[int, float] = {}  # of the next task of each stream
    trace = []
    for task in model._complete("aclmdlRIDebugJsonPrint").tasks:
        step = _STEPS.get(task.kind, _OTHER_STEP)
        begin = max([begins.get(task.stream, 0.0), *[ends[number] + 0.5 for number in task.after]])
        begins[task.stream], ends[task.number] = begin + step, begin + step - 0.5
        trace.append(
            {
                "name": task.name if task.event is None else f"{task.kind}_{task.event}",
                "pid": f"{os.getpid()} aclGraph",
                "tid": f"stream{task.stream}",
                "ts": begin,
                "dur": step - 0.5,
                "ph": "X",
                "args": _trace_args(model, task, verbose=verbose),
            }
        )
    return trace


def _trace_args(model: aclmdlRI, task: captures.Task, *, verbose: bool) -> dict[str, Any]:
    args = {
        "Model Id": model.number,
        "Stream Id": task.stream,
        "Task Id": task.number,
        "Task Type": task.kind,
    }
    args["ExtendInfo"] = f"{model.name} {task.place}".lstrip()
    if verbose and task.job is not None:
        text = task.frozen()
        args |= {"Kernel Args": text, "Kernel Args Size": len(text)}
    return args
