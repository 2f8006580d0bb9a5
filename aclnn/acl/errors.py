"""Exceptions and status codes, and the message of a thread's most recent failure."""

from __future__ import annotations

from typing import Any

from aclnn.acl import _runtime
from aclnn.acl.constants import aclnnStatus


class AclnnError(ValueError):
    """The exception of the functional and executor layers, with the status of the C-shaped layer.

    Attributes
    ----------
    status : int
        A member of `aclnnStatus` or `aclError`.
    message : str
        The argument, its value and the rule.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> try:
    ...     aclnn.gelu(np.zeros(3, np.int8))
    ... except aclnn.AclnnError as error:
    ...     print(error.status, error)
    161002 gelu: self has dtype int8, must be float32, float16 or bfloat16; convert with self.astype(np.float32)
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = int(status)
        self.message = message
        self.function: str | None = None  # which says so, where the message names it

    def __reduce__(self) -> tuple[Any, ...]:
        public = AclnnTypeError if isinstance(self, TypeError) else AclnnError
        return public, (self.status, str(self))


class NoMemoryError(TypeError):
    """A function that gives a status was given what only stands for an array, and has no memory.

    It is no `AclnnError`, which would become a status that nobody need look at: nothing was written,
    and nothing would be in any later run.

    Attributes
    ----------
    error : AclnnError
        What is said instead, where the function is known that uses the object.
    """

    def __init__(self, error: AclnnError):
        super().__init__(str(error))
        self.error = error


class AclnnTypeError(AclnnError, TypeError):
    """An argument of the wrong kind: no array, of a dtype that is not taken, a keyword that is none.

    Attributes
    ----------
    status : int
        A member of `aclnnStatus` or `aclError`.
    message : str
        Function, argument, value and rule, and what to do.

    Examples
    --------
    >>> import aclnn
    >>> try:
    ...     aclnn.gelu(None)
    ... except TypeError as error:
    ...     print(error)
    gelu: self is None, must be an array
    """


def invalid(message: str) -> AclnnError:
    """The error of an argument that breaks a rule.

    >>> invalid("alpha is a list").status
    161002
    """
    return AclnnError(aclnnStatus.ACLNN_ERR_PARAM_INVALID, message)


def wrong_kind(message: str) -> AclnnTypeError:
    """The error of an argument that is not of the kind that it has to be.

    >>> isinstance(wrong_kind("alpha is a list"), TypeError)
    True
    """
    return AclnnTypeError(aclnnStatus.ACLNN_ERR_PARAM_INVALID, message)


for _kind in (AclnnError, AclnnTypeError):
    _kind.__module__ = "aclnn"  # where programs have it from, and tracebacks name it

LONGEST_MESSAGE = 16_000  # of 16 arguments, with a program; shapes of a million axes exist


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}..."


def set_message(text: str) -> None:
    """Keep `text` for this thread's next `aclGetRecentErrMsg`."""
    _runtime.set_message(_shortened(text))


def aclGetRecentErrMsg() -> str | None:
    """The message of this thread's most recent failure; reading clears it.

    Returns
    -------
    str or None
        None when nothing failed since the last reading.

    Examples
    --------
    >>> import aclnn
    >>> _ = aclnn.aclGetRecentErrMsg()
    >>> aclnn.aclnnGeluGetWorkspaceSize(None, None)
    (0, None, 161001)
    >>> "self is null" in aclnn.aclGetRecentErrMsg()
    True
    >>> aclnn.aclGetRecentErrMsg() is None
    True
    """
    return _runtime.take_message()


def fail(status: int, message: str) -> int:
    """Set the message and give the status, so that a function can end with ``return fail(...)``."""
    return _runtime.note_failure(status, _shortened(message))


def why_null(kind: str) -> str:
    """Why an object of CANN's is a null pointer, for the end of a message; empty where nothing failed.

    >>> _runtime.note_failure(161002, "aclCreateScalar: value is a list")
    161002
    >>> why_null("aclScalar"), why_null("aclScalar")
    (': aclCreateScalar failed: value is a list', '')
    """
    maker = f"aclCreate{kind.removeprefix('acl')}"
    first, latest = _runtime.take_causes(maker)
    if first is None:
        return ""
    if kind.endswith("List"):  # an element that is null has a cause of its own
        first += why_null(kind.removesuffix("List"))
    again = f"; the latest time: {latest}" if latest and not first.startswith(latest) else ""
    return f": {maker} failed: {first}{again}"


def latest_failure() -> tuple[int, str] | None:
    """Status and message of this thread's most recent failure, if there was one."""
    return _runtime.latest_failure()
