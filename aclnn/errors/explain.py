"""Explanations of status codes, with advice."""

from __future__ import annotations

from typing import Any

from aclnn.acl.arguments import as_int, shown
from aclnn.acl.constants import aclError, aclnnStatus
from aclnn.acl.errors import latest_failure

_CREATE = "The operator library could not set up an executor; on the CPU this does not happen."
_LIBRARY_FILE = (
    "The NPU's operator library found one of its files broken or missing. The CPU library has no "
    "such files and never returns this."
)
_DEVICE = "The NPU's runtime or driver failed; the CPU library never returns this."
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
        "An executor function received a null or destroyed executor or tensor.",
        "Keep executors until their last use; do not destroy one twice.",
    ),
    aclnnStatus.ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE: (_LIBRARY_FILE, "Does not happen here."),
    aclnnStatus.ACLNN_ERR_INNER_KEY_CONFLICT: (_LIBRARY_FILE, "Does not happen here."),
    aclnnStatus.ACLNN_ERR_INNER_INVALID_IMPL_MODE: (
        "The requested implementation mode is unknown.",
        "Does not happen on the CPU.",
    ),
    aclnnStatus.ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND: (
        "The NPU library could not find its operator packages (ASCEND_OPP_PATH).",
        "Does not happen on the CPU.",
    ),
    aclError.ACL_ERROR_INVALID_PARAM: (
        "A runtime function received an argument of a wrong type or value.",
        "The message names it.",
    ),
    aclError.ACL_ERROR_UNINITIALIZE: (
        "aclFinalize without aclInit.",
        "Call aclInit first, or leave both away: programs work without them.",
    ),
    aclError.ACL_ERROR_REPEAT_INITIALIZE: ("aclInit was called twice.", "Call it once."),
    aclError.ACL_ERROR_REPEAT_FINALIZE: ("aclFinalize was called twice.", "Call it once."),
    aclError.ACL_ERROR_INVALID_FILE: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_UNSUPPORTED_DATA_TYPE: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_API_NOT_SUPPORT: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_INVALID_DEVICE: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_MEMORY_ADDRESS_UNALIGNED: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_INVALID_RESOURCE_HANDLE: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_FEATURE_UNSUPPORTED: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_STORAGE_OVER_LIMIT: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_INTERNAL_ERROR: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_FAILURE: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_GE_FAILURE: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_RT_FAILURE: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_DRV_FAILURE: (_DEVICE, "Does not happen here."),
    aclError.ACL_ERROR_PROFILING_FAILURE: (_DEVICE, "Does not happen here."),
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
    aclError.ACL_ERROR_RT_CAPTURE_DEPENDENCY: (
        "A captured stream waits for an event that the capture did not record before.",
        "Record the event on a stream of the capture first.",
    ),
    aclError.ACL_ERROR_RT_STREAM_UNJOINED: (
        "A stream joined a capture and does not lead back to the origin.",
        "Record an event on it after its last work, and let the origin wait for that.",
    ),
    aclError.ACL_ERROR_RT_MODEL_CAPTURED: (
        "A model is used before its capture has ended.",
        "Call aclmdlRICaptureEnd first.",
    ),
    aclError.ACL_ERROR_RT_STREAM_CAPTURED: (
        "A call on a captured stream that needs a running stream.",
        "The message names the capture. Synchronise and destroy streams after aclmdlRICaptureEnd.",
    ),
    aclError.ACL_ERROR_RT_EVENT_CAPTURED: (
        "An event that a capture has recorded does not happen before its model runs.",
        "Use other events for work that runs now.",
    ),
    aclError.ACL_ERROR_RT_STREAM_NOT_CAPTURED: (
        "The call makes sense on a captured stream only.",
        "Call aclmdlRICaptureBegin first; the message names the stream.",
    ),
    aclError.ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT: (
        "aclrtMemcpy or aclrtMemset while a stream is captured in a mode that forbids it.",
        "Make the call before or after the capture, or between two calls of "
        "aclmdlRICaptureThreadExchangeMode.",
    ),
    aclError.ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT: (
        "The default stream can be no part of a capture, nor wait for one.",
        "Use streams of aclrtCreateStream.",
    ),
    aclError.ACL_ERROR_STREAM_CAPTURE_CONFLICT: (
        "An event would tie two captures together.",
        "Use separate events for each capture.",
    ),
    aclError.ACL_ERROR_STREAM_TASK_GROUP_STATUS: (
        "A task group was begun, ended or updated out of turn, or with another number of tasks.",
        "The message names the open group. Begin and end come in pairs on one stream.",
    ),
    aclError.ACL_ERROR_STREAM_TASK_GROUP_INTR: (
        "Another stream of the capture received work while a task group was open.",
        "End the group first.",
    ),
    aclError.ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED: (
        "A capture was ended on a stream that has only joined it.",
        "End it on the stream that it was begun on.",
    ),
    aclError.ACL_ERROR_RT_MODEL_RUNNING: (
        "A model is destroyed while it runs, or waits on a stream.",
        "Synchronise the stream first.",
    ),
    aclError.ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD: (
        "A capture was ended by another thread than the one that began it, and is dropped.",
        "End it on its own thread, or begin it in the mode RELAXED.",
    ),
    aclError.ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC: (
        "A queued copy of ordinary host memory would wait, which the capture's mode forbids.",
        "Allocate the host side with aclrtMallocHost.",
    ),
    aclError.ACL_ERROR_RT_FEATURE_NOT_SUPPORT: (
        "A task group takes operators only.",
        "Copies and events belong outside of the group.",
    ),
    aclError.ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP: (
        "Only a call of the same function can replace a task of a group.",
        "Make the calls of an update in the order of the group's.",
    ),
    aclError.ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: (
        "A model or stream had not ended when the time was up; it goes on.",
        "Give it longer, or -1.",
    ),
    aclError.ACL_ERROR_RT_EVENT_SYNC_TIMEOUT: (
        "An event had not happened when the time was up.",
        "Give it longer, or look at why what records it does not get there.",
    ),
    aclError.ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED: (
        "A call of the capture could not be recorded, so there is no model.",
        "The message has that call's; capture again.",
    ),
    aclError.ACL_ERROR_BAD_ALLOC: ("Memory could not be allocated.", "Ask for less."),
    aclError.ACL_ERROR_RT_MEMORY_ALLOCATION: (
        "Device memory could not be allocated.",
        "Request less, or free unused memory: aclrtGetMemInfo reports the free memory.",
    ),
    aclError.ACL_ERROR_RT_INTERNAL_ERROR: ("The runtime failed inside.", "Report it."),
}


_LATEST: Any = type("Latest", (), {"__repr__": lambda self: "<that of the latest failure>"})()


def explain(status: int = _LATEST) -> str:
    """Explain a status: its meaning, its causes, and how to avoid it.

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
    failure = latest_failure()
    if failure is None:
        return "nothing failed on this thread"
    status, message = failure
    return f"{explain(status)}\nwhat happened: {message}"
