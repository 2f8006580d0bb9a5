"""Statuses, their messages, and what they mean."""

from __future__ import annotations

import operator
import threading
from typing import Any

import numpy as np

from aclnn.acl.constants import aclError, aclnnStatus
from aclnn.acl.rounding import as_double


class AclnnError(ValueError):
    """What the functional and executor layers raise where the C-shaped layer gives a status.

    Attributes
    ----------
    status : int
        A member of `aclnnStatus` or `aclError`.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> try:
    ...     aclnn.gelu(np.zeros(3, np.int8))
    ... except aclnn.AclnnError as error:
    ...     print(error.status, error)
    161002 self has dtype INT8, must be FLOAT, FLOAT16 or BF16
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = int(status)

    def __reduce__(self) -> tuple[Any, ...]:
        return AclnnError, (self.status, str(self))


def invalid(message: str) -> AclnnError:
    """The error of an argument that breaks a rule.

    >>> invalid("alpha is a list").status
    161002
    """
    return AclnnError(aclnnStatus.ACLNN_ERR_PARAM_INVALID, message)


_recent = threading.local()
LONGEST_SHOWN = 200
LONGEST_MESSAGE = 4800  # shapes of a million axes exist


def set_message(text: str) -> None:
    """Keep `text` for this thread's next `aclGetRecentErrMsg`."""
    _recent.text = text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}..."


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
    text = getattr(_recent, "text", None)
    _recent.text = None
    return text


def fail(status: int, message: str) -> int:
    """Set the message and give the status, so that a function can end with ``return fail(...)``."""
    set_message(message)
    _recent.failure = int(status), _recent.text
    return int(status)


def shown(value: object) -> str:
    """A value as a message shows it, whatever the value: ``repr`` may raise, or never end.

    >>> shown("x"), shown(10**5000)
    ("'x'", 'an int of 16610 bits')
    """
    try:
        text = repr(value)
    except Exception:
        if isinstance(value, int):  # Python converts no more than some thousand digits
            return f"an int of {value.bit_length()} bits"
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def as_int(value: object) -> int | None:
    """A Python or NumPy integer as an int, `None` for anything else; True is no integer.

    What subclasses make of being converted does not count: it may be anything.

    >>> as_int(np.int64(3)), as_int(True), as_int(2.0), as_int(np.timedelta64(3, "s"))
    (3, None, None, None)
    """
    if isinstance(value, bool | np.timedelta64):
        return None
    if isinstance(value, int):
        return int.__int__(value)
    return int(operator.index(value)) if isinstance(value, np.integer) else None


def as_truth(name: str, value: Any) -> bool:
    """Whether an argument counts as true; text, of which "false" would, is refused.

    >>> as_truth("x", np.True_), as_truth("x", 0)
    (True, False)
    """
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return bool(value)
    except Exception:  # an array of several elements, or whatever its __bool__ raises
        raise invalid(f"{name} is {shown(value)}, must be true or false") from None


def as_real(value: Any) -> float:
    """A number as a float, infinite beyond the largest.

    Raises
    ------
    TypeError
        For text, and for complex numbers, NumPy's included, which `float` only warns of.

    Examples
    --------
    >>> as_real(np.float16(0.5)), as_real(3), as_real(-(10**400))
    (0.5, 3.0, -inf)
    """
    if isinstance(value, str | bytes | bytearray):
        raise TypeError("text is no number")
    if not isinstance(value, float | int | np.floating) and _is_complex(value):
        raise TypeError("a complex number has no order")
    return as_double(value)


def _is_complex(value: Any) -> bool:
    try:
        return bool(np.iscomplexobj(value))
    except Exception:  # of arrays whose dtype NumPy has no counterpart for
        return False


_CREATE = "The operator library could not set up an executor; on the CPU this does not happen."
_LIBRARY_FILE = (
    "The NPU's operator library found a broken or missing file of its own. The CPU library has no "
    "such files and never returns this."
)
# Status -> what it means, and what to do about it.
_MEANINGS: dict[int, tuple[str, str]] = {
    aclnnStatus.ACLNN_SUCCESS: ("The call succeeded.", "Nothing."),
    aclnnStatus.ACLNN_ERR_PARAM_NULLPTR: (
        "A tensor, scalar, executor, workspace or data pointer that must be there is null or was "
        "destroyed.",
        "The message names the argument. Create it, or give the tensor memory "
        "(aclSetRawTensorAddr, aclSetTensorAddr) before phase two.",
    ),
    aclnnStatus.ACLNN_ERR_PARAM_INVALID: (
        "An argument breaks a rule of the operator: dtype, shape, rank, value, or a workspace that "
        "is too small.",
        "The message (aclGetRecentErrMsg, or aclnn.explain() without a status) names the argument, "
        "its value and the rule, lists the checks in their order, of which the first that is "
        "broken decides, and gives the call in Python and in C++. Dtype rules depend on the "
        "product: see aclnn.get_soc_version().",
    ),
    aclnnStatus.ACLNN_ERR_RUNTIME_ERROR: (
        "Work that was queued on a stream failed when it ran.",
        "The message is that of the failed run; it surfaces at the stream's next synchronise.",
    ),
    aclnnStatus.ACLNN_ERR_INNER: (
        "The executor cannot run: it was used already, destroyed, or made by another operator's "
        "phase one; or memory ran out.",
        "Call phase one again, or make the executor repeatable before its first run.",
    ),
    aclnnStatus.ACLNN_ERR_INNER_INFERSHAPE_ERROR: (
        "The shape of a result could not be inferred.",
        "The CPU library reports shapes as 161002; check the operator's shape rules.",
    ),
    aclnnStatus.ACLNN_ERR_INNER_TILING_ERROR: (
        "The NPU library could not cut the work into tiles.",
        "Does not happen on the CPU.",
    ),
    aclnnStatus.ACLNN_ERR_INNER_FIND_KERNEL_ERROR: (
        "The NPU library found no kernel binary for the dtypes or the product.",
        "Does not happen on the CPU; on an NPU install the kernel package of the product.",
    ),
    aclnnStatus.ACLNN_ERR_INNER_CREATE_EXECUTOR: (_CREATE, "Report it."),
    aclnnStatus.ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR: (
        "The NPU library's executor was not handed over to the caller.",
        "Does not happen on the CPU.",
    ),
    aclnnStatus.ACLNN_ERR_INNER_NULLPTR: (
        "An executor function was given a null or destroyed executor or tensor.",
        "Keep executors until their last use; do not destroy one twice.",
    ),
    aclnnStatus.ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE: (_LIBRARY_FILE, "Does not happen here."),
    aclnnStatus.ACLNN_ERR_INNER_KEY_CONFLICT: (_LIBRARY_FILE, "Does not happen here."),
    aclnnStatus.ACLNN_ERR_INNER_INVALID_IMPL_MODE: (
        "The implementation mode asked for is unknown.",
        "Does not happen on the CPU.",
    ),
    aclnnStatus.ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND: (
        "The NPU library could not find its operator packages (ASCEND_OPP_PATH).",
        "Does not happen on the CPU.",
    ),
    aclError.ACL_ERROR_INVALID_PARAM: (
        "A runtime function was given an argument of the wrong kind or value.",
        "The message names it.",
    ),
    aclError.ACL_ERROR_UNINITIALIZE: (
        "aclFinalize without aclInit.",
        "Call aclInit first, or leave both away: programs work without them.",
    ),
    aclError.ACL_ERROR_REPEAT_INITIALIZE: ("aclInit was called twice.", "Call it once."),
    aclError.ACL_ERROR_REPEAT_FINALIZE: ("aclFinalize was called twice.", "Call it once."),
    aclError.ACL_ERROR_RT_PARAM_INVALID: (
        "An address, size or kind does not hold: the address is foreign, freed, or the range "
        "leaves its allocation.",
        "The message gives the numbers. Every use of an address is checked against the live "
        "allocations.",
    ),
    aclError.ACL_ERROR_RT_INVALID_DEVICEID: (
        "There is no device of this number.",
        "This machine has one device, 0: its CPU.",
    ),
    aclError.ACL_ERROR_RT_CONTEXT_NULL: (
        "No device is set on this thread.",
        "Call aclrtSetDevice(0).",
    ),
    aclError.ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID: (
        "An event was not recorded, or has not happened yet.",
        "Record both events and synchronise before asking for the time between them.",
    ),
    aclError.ACL_ERROR_RT_ADDR_UNALIGNED: ("An address is not aligned as needed.", "Align it."),
    aclError.ACL_ERROR_RT_INVALID_HANDLE: (
        "A stream or event is null, destroyed, or no such thing.",
        "Keep handles until their last use; do not destroy one twice.",
    ),
    aclError.ACL_ERROR_BAD_ALLOC: ("Memory could not be allocated.", "Ask for less."),
    aclError.ACL_ERROR_RT_MEMORY_ALLOCATION: (
        "Device memory could not be allocated.",
        "Ask for less, or free what is no longer used: aclrtGetMemInfo tells what is left.",
    ),
    aclError.ACL_ERROR_RT_INTERNAL_ERROR: ("The runtime failed inside.", "Report it."),
}


_LATEST: Any = type("Latest", (), {"__repr__": lambda self: "<that of the latest failure>"})()


def explain(status: int = _LATEST) -> str:
    """Say what a status means, what causes it, and what to do.

    Parameters
    ----------
    status : int, optional
        Any status of the C-shaped layer. Default: that of this thread's most recent failure,
        with its message, which for a phase one says which check failed, in which order checks
        run, the values seen, and how to call it again in Python and in C++.

    Returns
    -------
    str
        Three lines: name and number, meaning, remedy; and the message of the failure, if no
        status was given.

    Examples
    --------
    >>> import aclnn
    >>> print(aclnn.explain(161001).splitlines()[0])
    ACLNN_ERR_PARAM_NULLPTR (161001)
    >>> _ = aclnn.aclnnGeluGetWorkspaceSize(None, None)
    >>> print("\\n".join(aclnn.explain().splitlines()[3:6]))
    what happened: aclnnGeluGetWorkspaceSize: self is null
    checks, in order:
      0. no tensor or scalar is null   <-- broken
    """
    if status is _LATEST:
        return _explain_latest()
    members = [member for kind in (aclnnStatus, aclError) for member in kind]
    number = as_int(status)
    names = [member.name for member in members if member == number]
    if number is None or not names:
        return f"{shown(status)}: no status of this library"
    meaning, remedy = _MEANINGS.get(number, (_LIBRARY_FILE, "Does not happen here."))
    return f"{' = '.join(names)} ({number})\nmeaning: {meaning}\nwhat to do: {remedy}"


def _explain_latest() -> str:
    failure = getattr(_recent, "failure", None)
    if failure is None:
        return "nothing failed on this thread"
    status, message = failure
    return f"{explain(status)}\nwhat happened: {message}"
