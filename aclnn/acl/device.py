"""Life of the runtime, and the device: init and finalize, device, contexts, facts, errors of a thread."""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

import sys
from typing import Any

from aclnn.acl import _runtime, prototypes
from aclnn.acl import capture as captures
from aclnn.acl import stream as streams
from aclnn.acl.arguments import as_int, as_member, as_real, shown
from aclnn.acl.constants import (
    ACL_ERROR_INVALID_PARAM,
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
    ACL_ERROR_RT_INVALID_DEVICEID,
    ACL_ERROR_RT_INVALID_HANDLE,
    ACL_ERROR_RT_MEMORY_ALLOCATION,
    ACL_ERROR_RT_PARAM_INVALID,
    ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
    ACL_SUCCESS,
    aclDataType,
    aclDeviceInfo,
    aclLogLevel,
    aclrtDevAttr,
    aclrtLastErrLevel,
    aclrtRunMode,
)
from aclnn.acl.errors import fail
from aclnn.acl.events import milliseconds

OK = int(ACL_SUCCESS)

__all__ = [
    "aclAppLog",
    "aclDataTypeSize",
    "aclFinalize",
    "aclFinalizeReference",
    "aclFloat16ToFloat",
    "aclFloatToFloat16",
    "aclGetDeviceCapability",
    "aclInit",
    "aclnnFinalize",
    "aclnnInit",
    "aclrtCreateContext",
    "aclrtDestroyContext",
    "aclrtDeviceCanAccessPeer",
    "aclrtDeviceDisablePeerAccess",
    "aclrtDeviceEnablePeerAccess",
    "aclrtGetCurrentContext",
    "aclrtGetDevice",
    "aclrtGetDeviceCount",
    "aclrtGetDeviceInfo",
    "aclrtGetLastError",
    "aclrtGetRunMode",
    "aclrtGetVersion",
    "aclrtPeekAtLastError",
    "aclrtResetDevice",
    "aclrtResetDeviceForce",
    "aclrtSetCurrentContext",
    "aclrtSetDevice",
    "aclrtSynchronizeDeviceWithTimeout",
]


def aclInit(configPath: Any = None) -> int:
    """Start the runtime. Programs work without it.

    Parameters
    ----------
    configPath : str or None, optional
        CANN's configuration file; not read here.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_REPEAT_INITIALIZE (100002) if the runtime is started already.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclInit(), aclnn.aclInit(), aclnn.aclFinalize()
    (0, 100002, 0)
    """
    return int(_runtime.begin())


def aclFinalize() -> int:
    """End the runtime, then wait until the work of every stream is done.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_UNINITIALIZE (100001) if `aclInit` was not called;
        ACL_ERROR_REPEAT_FINALIZE (100037) if the runtime has ended already;
        ACLNN_ERR_RUNTIME_ERROR (361001) and ACL_ERROR_RT_STREAM_CAPTURED (107027) as
        `aclrtSynchronizeDevice` has them.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclInit(), aclnn.aclFinalize(), aclnn.aclFinalize()
    (0, 0, 100037)
    """
    return _ended("aclFinalize", everything=True)[1]


def aclFinalizeReference() -> tuple[int, int]:
    """Take one call of `aclInit` back; the last one ends the runtime, as `aclFinalize` does.

    Returns
    -------
    refCount : int
        How many calls are left.
    status : int
        ACL_SUCCESS (0) or as `aclFinalize`: ACL_ERROR_UNINITIALIZE (100001),
        ACL_ERROR_REPEAT_FINALIZE (100037), ACLNN_ERR_RUNTIME_ERROR (361001),
        ACL_ERROR_RT_STREAM_CAPTURED (107027).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclInit(), aclnn.aclInit()  # the second one counts, too
    (0, 100002)
    >>> aclnn.aclFinalizeReference(), aclnn.aclFinalizeReference()
    ((1, 0), (0, 0))
    """
    return _ended("aclFinalizeReference", everything=False)


def _ended(function: str, *, everything: bool) -> tuple[int, int]:
    if status := captures.refuse_device(function):
        return 0, status
    left, status = _runtime.finish(function, everything)
    return left, status or (OK if left else streams.synchronized())


def aclnnInit(configPath: Any = None) -> int:
    """Start the operator library; does nothing here, so that it may be called any number of times.

    Parameters
    ----------
    configPath : str or None, optional
        CANN's configuration file; not read here.

    Returns
    -------
    int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclnnInit(None)
    0
    """
    return OK


def aclnnFinalize() -> int:
    """End the operator library; does nothing here, so that it may be called any number of times.

    Returns
    -------
    int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclnnFinalize()
    0
    """
    return OK


def aclrtSetDevice(deviceId: int) -> int:
    """Choose the device; counts, as `aclrtResetDevice` takes one choice back.

    Parameters
    ----------
    deviceId : int
        0, this machine's CPU, the only device.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for anything but 0.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtSetDevice(0), aclnn.aclrtSetDevice(1)
    (0, 107001)
    """
    if status := bad_device("aclrtSetDevice", deviceId):
        return status
    _runtime.use_device()
    return OK


def aclrtResetDevice(deviceId: int) -> int:
    """Take one `aclrtSetDevice` back: wait until the work of every stream is done.

    The last one ends the streams; later uses of them answer ACL_ERROR_RT_INVALID_HANDLE (107017).

    Parameters
    ----------
    deviceId : int
        0, this machine's CPU, the only device.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for anything but 0;
        ACLNN_ERR_RUNTIME_ERROR (361001) and ACL_ERROR_RT_STREAM_CAPTURED (107027) as
        `aclrtSynchronizeDevice` has them.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtResetDevice(0), aclnn.aclrtResetDevice(1)
    (0, 107001)
    """
    return reset("aclrtResetDevice", deviceId, everything=False)


def reset(function: str, device: Any, *, everything: bool) -> int:
    """Take one use of the device back, or all; the last one ends the streams."""
    if status := bad_device(function, device) or captures.refuse_device(function):
        return status
    last = _runtime.leave_device(everything)
    status = streams.synchronized()
    if last or everything:
        _runtime.end_streams()
    return status


def bad_device(function: str, device: Any) -> int:
    if as_int(device) == 0:
        return OK
    return fail(
        ACL_ERROR_RT_INVALID_DEVICEID,
        f"{function}: deviceId is {shown(device)}, this machine has one device, 0",
    )


def aclrtGetDevice() -> tuple[int, int]:
    """Tell which device is in use.

    Returns
    -------
    deviceId : int
        0, this machine's CPU, whether or not `aclrtSetDevice` was called.
    status : int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtGetDevice()
    (0, 0)
    """
    return 0, OK


def aclrtGetDeviceCount() -> tuple[int, int]:
    """Get the number of devices.

    Returns
    -------
    count : int
        1: this machine's CPU.
    status : int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtGetDeviceCount()
    (1, 0)
    """
    return 1, OK


def aclrtResetDeviceForce(deviceId: int) -> int:
    """Take every `aclrtSetDevice` back, wait for the work of every stream and end the streams.

    Parameters
    ----------
    deviceId : int
        0, this machine's CPU, the only device.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for anything but 0;
        ACLNN_ERR_RUNTIME_ERROR (361001) and ACL_ERROR_RT_STREAM_CAPTURED (107027) as
        `aclrtSynchronizeDevice` has them.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtResetDeviceForce(1)
    107001
    """
    return reset("aclrtResetDeviceForce", deviceId, everything=True)


def aclrtSynchronizeDeviceWithTimeout(timeout: int) -> int:
    """Wait until the work of every stream is done, but not for ever.

    Parameters
    ----------
    timeout : int
        Milliseconds from 1 on, or -1 for ever.

    Returns
    -------
    int
        ACL_SUCCESS (0) or as `aclrtSynchronizeDevice`: ACLNN_ERR_RUNTIME_ERROR (361001),
        ACL_ERROR_RT_STREAM_CAPTURED (107027); ACL_ERROR_RT_STREAM_SYNC_TIMEOUT (507046) if it is not
        done by then; ACL_ERROR_RT_PARAM_INVALID (107000) for another timeout.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtSynchronizeDeviceWithTimeout(1000), aclnn.aclrtSynchronizeDeviceWithTimeout(0)
    (0, 107000)
    """
    function = "aclrtSynchronizeDeviceWithTimeout"
    limit, status = milliseconds(function, timeout)
    if status := status or captures.refuse_device(function):
        return status
    done, failure = _runtime.synchronize_all(limit)
    if not done:
        return fail(
            ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
            f"{function}: the device is not done after {timeout} ms",
        )
    return streams.outcome(failure)


def aclrtGetRunMode() -> tuple[int, int]:
    """Tell where the program runs.

    Returns
    -------
    runMode : int
        ACL_HOST (1).
    status : int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtGetRunMode()
    (1, 0)
    """
    return int(aclrtRunMode.ACL_HOST), OK


def aclrtGetVersion() -> tuple[int, int, int, int]:
    """Tell the version of the runtime's interface.

    Returns
    -------
    majorVersion, minorVersion, patchVersion : int
    status : int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtGetVersion()
    (1, 0, 0, 0)
    """
    return *prototypes.VERSION, OK


def aclrtGetDeviceInfo(deviceId: int, attr: int) -> tuple[int, int]:
    """Tell a fact about the device.

    Parameters
    ----------
    deviceId : int
        0, this machine's CPU, the only device.
    attr : aclrtDevAttr
        Cores are those of this machine that the process may use, for each kind of core.

    Returns
    -------
    value : int
        A count, or bytes; 0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for another device;
        ACL_ERROR_RT_PARAM_INVALID (107000) if `attr` is no aclrtDevAttr.

    Examples
    --------
    >>> import aclnn
    >>> cores, status = aclnn.aclrtGetDeviceInfo(0, aclnn.ACL_DEV_ATTR_VECTOR_CORE_NUM)
    >>> cores > 0, status, aclnn.aclrtGetDeviceInfo(0, 0)
    (True, 0, (0, 107000))
    """
    function = "aclrtGetDeviceInfo"
    if status := bad_device(function, deviceId):
        return 0, status
    try:
        number = as_member("attr", attr, aclrtDevAttr)
    except ValueError as error:
        return 0, fail(ACL_ERROR_RT_PARAM_INVALID, f"{function}: {error}")
    return _runtime.device_info(function, number)


def aclGetDeviceCapability(deviceId: int, deviceInfo: int) -> tuple[int, int]:
    """Tell a fact about the device.

    Parameters
    ----------
    deviceId : int
        0, this machine's CPU, the only device.
    deviceInfo : aclDeviceInfo
        Cores are those of this machine that the process may use.

    Returns
    -------
    value : int
        A count, or bytes; 0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for another device;
        ACL_ERROR_INVALID_PARAM (100000) if `deviceInfo` is no aclDeviceInfo, or undefined.

    Examples
    --------
    >>> import aclnn
    >>> cores, status = aclnn.aclGetDeviceCapability(0, aclnn.ACL_DEVICE_INFO_AI_CORE_NUM)
    >>> cores > 0, status, aclnn.aclGetDeviceCapability(0, aclnn.ACL_DEVICE_INFO_UNDEFINED)
    (True, 0, (0, 100000))
    """
    function = "aclGetDeviceCapability"
    if status := bad_device(function, deviceId):
        return 0, status
    try:
        number = as_member("deviceInfo", deviceInfo, aclDeviceInfo)
    except ValueError as error:
        return 0, fail(ACL_ERROR_INVALID_PARAM, f"{function}: {error}")
    return _runtime.capability(function, number)


def aclrtDeviceCanAccessPeer(deviceId: int, peerDeviceId: int) -> tuple[int, int]:
    """Tell whether a device reaches the memory of another one.

    Parameters
    ----------
    deviceId, peerDeviceId : int
        0, this machine's CPU, the only device.

    Returns
    -------
    canAccessPeer : int
        0: it has no peer.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for anything but 0.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtDeviceCanAccessPeer(0, 0), aclnn.aclrtDeviceCanAccessPeer(0, 1)
    ((0, 0), (0, 107001))
    """
    function = "aclrtDeviceCanAccessPeer"
    return 0, bad_device(function, deviceId) or bad_device(function, peerDeviceId)


def aclrtDeviceEnablePeerAccess(peerDeviceId: int, flags: int) -> int:
    """Let the device reach the memory of another one; there is none.

    Parameters
    ----------
    peerDeviceId : int
    flags : int
        0.

    Returns
    -------
    int
        Never ACL_SUCCESS (0): ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000), or
        ACL_ERROR_RT_INVALID_DEVICEID (107001) for a device that there is not; ACL_ERROR_RT_PARAM_INVALID (107000) for other flags.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtDeviceEnablePeerAccess(0, 0), aclnn.aclrtDeviceEnablePeerAccess(1, 0)
    (207000, 107001)
    """
    function = "aclrtDeviceEnablePeerAccess"
    if as_int(flags) != 0:
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"{function}: flags is {shown(flags)}, must be 0")
    return bad_device(function, peerDeviceId) or _no_peer(function)


def aclrtDeviceDisablePeerAccess(peerDeviceId: int) -> int:
    """Undo `aclrtDeviceEnablePeerAccess`.

    Parameters
    ----------
    peerDeviceId : int

    Returns
    -------
    int
        Never ACL_SUCCESS (0): ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000), or
        ACL_ERROR_RT_INVALID_DEVICEID (107001) for a device that there is not.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtDeviceDisablePeerAccess(0)
    207000
    """
    function = "aclrtDeviceDisablePeerAccess"
    return bad_device(function, peerDeviceId) or _no_peer(function)


def _no_peer(function: str) -> int:
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, f"{function}: the only device has no peer")


def aclrtCreateContext(deviceId: int) -> tuple[int, int]:
    """Create a context, which becomes the calling thread's.

    Parameters
    ----------
    deviceId : int
        0, this machine's CPU, the only device.

    Returns
    -------
    context : int
        0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for anything but 0.

    Notes
    -----
    With one device, nothing depends on contexts.

    Examples
    --------
    >>> import aclnn
    >>> context, status = aclnn.aclrtCreateContext(0)
    >>> status, aclnn.aclrtGetCurrentContext() == (context, 0), aclnn.aclrtDestroyContext(context)
    (0, True, 0)
    """
    function = "aclrtCreateContext"
    if status := bad_device(function, deviceId):
        return 0, status
    handle = _runtime.new_context(function)
    return handle, OK if handle else int(ACL_ERROR_RT_MEMORY_ALLOCATION)


def aclrtDestroyContext(context: int) -> int:
    """Destroy a context.

    Parameters
    ----------
    context : int
        From `aclrtCreateContext`.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_HANDLE (107017) for anything else, and for one that is
        destroyed.

    Examples
    --------
    >>> import aclnn
    >>> context, _ = aclnn.aclrtCreateContext(0)
    >>> aclnn.aclrtDestroyContext(context), aclnn.aclrtDestroyContext(context)
    (0, 107017)
    """
    function = "aclrtDestroyContext"
    return _bad_context(function, context) or int(_runtime.end_context(function, int(context)))


def aclrtSetCurrentContext(context: int) -> int:
    """Make a context the calling thread's.

    Parameters
    ----------
    context : int
        From `aclrtCreateContext`, or `aclrtGetCurrentContext`.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_HANDLE (107017) for anything else, and for one that is
        destroyed.

    Examples
    --------
    >>> import aclnn
    >>> context, _ = aclnn.aclrtCreateContext(0)
    >>> aclnn.aclrtSetCurrentContext(context), aclnn.aclrtSetCurrentContext(0)
    (0, 107017)
    >>> aclnn.aclrtDestroyContext(context)
    0
    """
    function = "aclrtSetCurrentContext"
    return _bad_context(function, context) or int(_runtime.choose_context(function, int(context)))


def aclrtGetCurrentContext() -> tuple[int, int]:
    """Get the calling thread's context.

    Returns
    -------
    context : int
        0 on failure. `aclrtSetDevice` makes it the device's default context.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_CONTEXT_NULL (107002) for a thread that has none.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtSetDevice(0)
    0
    >>> context, status = aclnn.aclrtGetCurrentContext()
    >>> context != 0, status
    (True, 0)
    """
    return _runtime.current_context("aclrtGetCurrentContext")


def _bad_context(function: str, context: Any) -> int:
    number = as_int(context)
    if number is not None and 0 < number < 2**64:
        return OK
    what = "null" if context is None or number == 0 else shown(context)
    return fail(ACL_ERROR_RT_INVALID_HANDLE, f"{function}: context is {what}")


def aclrtPeekAtLastError(level: int) -> int:
    """Get the calling thread's latest status of a runtime function that was not ACL_SUCCESS.

    Parameters
    ----------
    level : aclrtLastErrLevel
        ACL_RT_THREAD_LEVEL (0).

    Returns
    -------
    int
        The status, or ACL_SUCCESS (0) where nothing failed since it was asked last by
        `aclrtGetLastError`; ACL_ERROR_RT_PARAM_INVALID (107000) for another level.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtSetDevice(7), aclnn.aclrtPeekAtLastError(0), aclnn.aclrtPeekAtLastError(0)
    (107001, 107001, 107001)
    >>> aclnn.aclrtGetLastError(0)
    107001
    """
    return _last_error("aclrtPeekAtLastError", level, clear=False)


def aclrtGetLastError(level: int) -> int:
    """Get the calling thread's latest status that was not ACL_SUCCESS, and clear it.

    Parameters
    ----------
    level : aclrtLastErrLevel
        ACL_RT_THREAD_LEVEL (0).

    Returns
    -------
    int
        The status, or ACL_SUCCESS (0) where nothing failed since it was asked last;
        ACL_ERROR_RT_PARAM_INVALID (107000) for another level.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtSetDevice(7), aclnn.aclrtGetLastError(0), aclnn.aclrtGetLastError(0)
    (107001, 107001, 0)
    """
    return _last_error("aclrtGetLastError", level, clear=True)


def _last_error(function: str, level: Any, *, clear: bool) -> int:
    if as_int(level) != aclrtLastErrLevel.ACL_RT_THREAD_LEVEL:
        return fail(
            ACL_ERROR_RT_PARAM_INVALID,
            f"{function}: level is {shown(level)}, must be ACL_RT_THREAD_LEVEL (0)",
        )
    return int(_runtime.last_error(clear))


def aclDataTypeSize(dataType: int) -> int:
    """Get the bytes of an element.

    Parameters
    ----------
    dataType : aclDataType

    Returns
    -------
    int
        0 for what is no data type, and for types whose elements are no whole bytes.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclDataTypeSize(aclnn.ACL_BF16), aclnn.aclDataTypeSize(aclnn.ACL_INT4)
    (2, 0)
    """
    number = as_int(dataType)
    if number is None or number not in aclDataType._value2member_map_:
        return 0
    return int(_runtime.type_size(number))


def aclFloat16ToFloat(value: int) -> float:
    """Convert the bits of a half, where infinities and NaN are numbers beyond 65504.

    Parameters
    ----------
    value : int
        16 bits.

    Returns
    -------
    float
        0.0, with a message, for anything but an int from 0 to 65535.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclFloat16ToFloat(0x3C00), aclnn.aclFloat16ToFloat(0x7C00)
    (1.0, 65536.0)
    """
    number = as_int(value)
    if number is None or not 0 <= number <= 0xFFFF:
        what = f"aclFloat16ToFloat: value is {shown(value)}, must be an int of 16 bits"
        fail(ACL_ERROR_INVALID_PARAM, what)
        return 0.0
    return float(_runtime.half_to_float(number))


def aclFloatToFloat16(value: float) -> int:
    """Convert a number to the bits of the nearest half; beyond the largest one, that.

    Parameters
    ----------
    value : float

    Returns
    -------
    int
        16 bits, ties to even; 0x7BFF for NaN. 0, with a message, for what is no number.

    Examples
    --------
    >>> import aclnn
    >>> hex(aclnn.aclFloatToFloat16(1.0)), hex(aclnn.aclFloatToFloat16(-1e9))
    ('0x3c00', '0xfbff')
    """
    try:
        number = as_real(value)
    except (TypeError, ValueError):
        what = f"aclFloatToFloat16: value is {shown(value)}, must be a number"
        fail(ACL_ERROR_INVALID_PARAM, what)
        return 0
    return int(_runtime.float_to_half(number))


def aclAppLog(logLevel: int, message: str) -> None:
    """Write a line of an application to standard error, if ACLNN_VERBOSE asks for lines.

    Parameters
    ----------
    logLevel : aclLogLevel
        Anything else counts as ACL_INFO.
    message : str

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclAppLog(aclnn.ACL_INFO, "the model is loaded")
    """
    level = as_int(logLevel)
    code = sys._getframe(1)
    _runtime.app_log(
        level if level is not None and 0 <= level <= max(aclLogLevel) else aclLogLevel.ACL_INFO,
        code.f_code.co_name.encode(),
        code.f_code.co_filename.encode(errors="replace"),
        code.f_lineno,
        (message if isinstance(message, str) else shown(message)).encode(errors="replace"),
    )
