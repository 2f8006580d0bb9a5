"""CANN's functions of models: what a capture recorded runs any number of times."""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

import threading
from typing import Any

from aclnn import deferred
from aclnn.acl import _runtime, registry
from aclnn.acl import capture as captures
from aclnn.acl import stream as streams
from aclnn.acl._flag import Flag
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.checks import LONGEST_MILLISECONDS
from aclnn.acl.constants import (
    ACL_ERROR_RT_INVALID_HANDLE,
    ACL_ERROR_RT_MODEL_CAPTURED,
    ACL_ERROR_RT_MODEL_RUNNING,
    ACL_ERROR_RT_PARAM_INVALID,
    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
    ACL_SUCCESS,
)
from aclnn.acl.errors import AclnnError, fail
from aclnn.graph.runtime import _scheduler
from aclnn.graph.summaries import counted

OK = int(ACL_SUCCESS)

__all__ = [
    "aclmdlRI",
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
        return replay_of(self, "executor").executor

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
        return replay_of(self, "to_text").to_text()

    @property
    def complete(self) -> bool:
        """Whether its capture has ended well."""
        return self._replay is not None

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


def finish(model: aclmdlRI, capture: captures.Capture) -> None:
    """Make of a model what a capture has recorded."""
    model.tasks = tuple(capture.tasks)
    model._replay = deferred.load("runs of models").Replay(model.tasks, capture.began)


def replay_of(model: aclmdlRI, function: str) -> Any:
    """The plan of a model's tasks, for a function that refuses one which is still captured."""
    if model._replay is None:
        raise AclnnError(
            ACL_ERROR_RT_MODEL_CAPTURED, f"{function}: model {model.number} is still captured"
        )
    return model._replay


class _Run:
    """One run of a model, given to a stream."""

    kind, name = "MODEL_EXECUTE", "aclmdlRIExecuteAsync"

    def __init__(self, model: aclmdlRI, function: str):
        self.model, self.function = model, function
        self.replay = replay_of(model, function)
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

    def owners(self) -> list[tuple[str, Any]]:
        """Owners of the memory that the run uses."""
        owners: list[tuple[str, Any]] = self.replay.owners()
        return owners


def bad_model(function: str, model: Any, *, complete: bool = True) -> int:
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
        ACLNN_ERR_RUNTIME_ERROR (361001) when the system has no thread for the stream.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclmdlRIExecuteAsync(None, None)
    107017
    """
    function = "aclmdlRIExecuteAsync"
    if status := bad_model(function, modelRI) or streams.bad_stream(function, stream):
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
    freed = replay_of(model, function).freed()
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
    if status := bad_model(function, modelRI):
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
    """Destroy a model and release the objects that it keeps alive.

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
    if status := bad_model(function, modelRI):
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
    if status := bad_model(function, modelRI, complete=False):
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
    if status := bad_model("aclmdlRIGetName", modelRI, complete=False):
        return "", status
    return modelRI.name, OK
