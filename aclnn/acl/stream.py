"""Streams: queues of work with threads of their own.

A stream is a queue with a thread that is started when the first work arrives; both are C
(`aclnn.acl._runtime`). The default stream, `None`, runs work at once on the calling thread. Handles are
checked at every use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aclnn.acl import _runtime, registry
from aclnn.acl._runtime import call
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.checks import bad_handle, refuse_destroyed
from aclnn.acl.constants import (
    ACL_ERROR_RT_PARAM_INVALID,
    ACL_SUCCESS,
    ACLNN_ERR_RUNTIME_ERROR,
    aclrtStreamFlag,
)
from aclnn.acl.errors import fail
from aclnn.acl.watch import watching

OK = int(ACL_SUCCESS)

__all__ = [
    "aclrtCreateStream",
    "aclrtCreateStreamWithConfig",
    "aclrtDestroyStream",
    "aclrtDestroyStreamForce",
    "aclrtLaunchHostFunc",
    "aclrtStreamGetId",
    "aclrtStreamQuery",
    "aclrtSynchronizeStream",
    "aclrtSynchronizeStreamWithTimeout",
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

    def is_idle(self) -> bool:
        """Whether all work has been done that it was given."""
        return self.noted(super().is_idle())

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for all work queued so far, for so many seconds at most; whether it was done."""
        return self.noted(super().wait(seconds))

    def join(self, seconds: float | None = None) -> bool:
        """Wait until the thread of a closed stream has ended; whether it did in time."""
        return self.noted(super().join(seconds))

    def noted(self, done: bool) -> bool:
        """Whether the work is done, which orders calls where somebody looks at that."""
        if done:
            finished(self)
        return done

    def __repr__(self) -> str:
        if self.destroyed:
            return f"<aclrtStream {self.number}, destroyed>"
        doing = ", capturing" if self.redirect is not None else ""
        return f"<aclrtStream {self.number}{doing}>"


def bad_stream(function: str, stream: Any) -> int:
    """As `bad_handle`, where the default stream, None, is fine."""
    return OK if stream is None else bad_handle(function, "stream", stream, aclrtStream)


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
    watch = watching()
    if watch is not None and (status := watch.launch(stream, job, function)):
        return status
    return stream.queue(job, function)


def _watched(stream: aclrtStream) -> aclrtStream:
    """A new stream, which is looked at from now on where that is asked for."""
    if (watch := watching()) is not None:
        watch.add(stream)
    return stream


def finished(stream: Any = None) -> None:
    """Note that a stream's work is done, or that of all."""
    if (watch := watching()) is not None:
        watch.finished(stream)


def aclrtCreateStream() -> tuple[aclrtStream, int]:
    """Create a stream. Its thread starts with the first work.

    Returns
    -------
    stream : aclrtStream
        Runs its work in order, concurrently with other
    status : int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> stream, status = aclnn.aclrtCreateStream()
    >>> status, aclnn.aclrtSynchronizeStream(stream), aclnn.aclrtDestroyStream(stream)
    (0, 0, 0)
    """
    return _watched(aclrtStream()), OK


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
    return _watched(aclrtStream(0, flags)), OK


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
        return refuse_destroyed("aclrtDestroyStream", "stream")
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
        return refuse_destroyed("aclrtDestroyStreamForce", "stream")
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
    return call("aclrtStreamGetId", stream)


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
        Its result is ignored; an exception is reported by the stream's next synchronise.
        On a captured stream, each run of the model calls it.
    args : object, optional
        Its argument.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for what cannot be called;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream;
        ACLNN_ERR_RUNTIME_ERROR (361001) when the system has no thread for the stream. What a capture
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
    return call("aclrtSynchronizeStream", stream)


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
    return call("aclrtSynchronizeStreamWithTimeout", stream, timeout)


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
    return call("aclrtStreamQuery", stream)


def outcome(failure: str | None) -> int:
    return OK if failure is None else fail(ACLNN_ERR_RUNTIME_ERROR, failure)
