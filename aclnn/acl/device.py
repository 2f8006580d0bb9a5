"""Devices, which all are this machine's CPU: choosing them, waiting for them, facts, peers.

There is one, unless ``ACLNN_NPU_DEVICES`` says that there are more: these have the same memory, and
streams of their own.
"""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

from aclnn.acl._runtime import call

__all__ = [
    "aclGetDeviceCapability",
    "aclrtDeviceCanAccessPeer",
    "aclrtDeviceDisablePeerAccess",
    "aclrtDeviceEnablePeerAccess",
    "aclrtGetDevice",
    "aclrtGetDeviceCount",
    "aclrtGetDeviceInfo",
    "aclrtResetDevice",
    "aclrtResetDeviceForce",
    "aclrtSetDevice",
    "aclrtSynchronizeDevice",
    "aclrtSynchronizeDeviceWithTimeout",
]


def aclrtSetDevice(deviceId: int) -> int:
    """Choose a device for this thread; counts, as `aclrtResetDevice` takes one choice back.

    Parameters
    ----------
    deviceId : int
        A device, from 0 to `aclrtGetDeviceCount` - 1.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for a device that does not exist.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtSetDevice(0), aclnn.aclrtSetDevice(1)
    (0, 107001)
    """
    return call("aclrtSetDevice", deviceId)


def aclrtResetDevice(deviceId: int) -> int:
    """Take one `aclrtSetDevice` back: wait until the work of every stream of the device is done.

    The last one ends the streams; later uses of them answer ACL_ERROR_RT_INVALID_HANDLE (107017).

    Parameters
    ----------
    deviceId : int
        A device, from 0 to `aclrtGetDeviceCount` - 1.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for a device that does not exist;
        ACLNN_ERR_RUNTIME_ERROR (361001) and ACL_ERROR_RT_STREAM_CAPTURED (107027) as
        `aclrtSynchronizeDevice` has them.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtResetDevice(0), aclnn.aclrtResetDevice(1)
    (0, 107001)
    """
    return call("aclrtResetDevice", deviceId)


def aclrtResetDeviceForce(deviceId: int) -> int:
    """Take every `aclrtSetDevice` of a device back, wait for the work of its streams and end them.

    Parameters
    ----------
    deviceId : int
        A device, from 0 to `aclrtGetDeviceCount` - 1.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for a device that does not exist;
        ACLNN_ERR_RUNTIME_ERROR (361001) and ACL_ERROR_RT_STREAM_CAPTURED (107027) as
        `aclrtSynchronizeDevice` has them.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtResetDeviceForce(1)
    107001
    """
    return call("aclrtResetDeviceForce", deviceId)


def aclrtGetDevice() -> tuple[int, int]:
    """Tell which device this thread has chosen.

    Returns
    -------
    deviceId : int
        0 where `aclrtSetDevice` was not called.
    status : int
        ACL_SUCCESS (0).

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtGetDevice()
    (0, 0)
    """
    return call("aclrtGetDevice")


def aclrtGetDeviceCount() -> tuple[int, int]:
    """Get the number of devices.

    Returns
    -------
    count : int
        1, this machine's CPU, or as many as ``ACLNN_NPU_DEVICES`` says; 0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) if that makes no sense.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtGetDeviceCount()
    (1, 0)
    """
    return call("aclrtGetDeviceCount")


def aclrtSynchronizeDevice() -> int:
    """Wait until the work of every stream of this thread's device is done.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACLNN_ERR_RUNTIME_ERROR (361001) if work failed on any stream since it was
        synchronised last, with the message of one failure; the others are dropped;
        ACL_ERROR_RT_STREAM_CAPTURED (107027) while a stream is captured.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtSynchronizeDevice()
    0
    """
    return call("aclrtSynchronizeDevice")


def aclrtSynchronizeDeviceWithTimeout(timeout: int) -> int:
    """Wait until the work of every stream of this thread's device is done, but not for ever.

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
    return call("aclrtSynchronizeDeviceWithTimeout", timeout)


def aclrtGetDeviceInfo(deviceId: int, attr: int) -> tuple[int, int]:
    """Tell a fact about the device.

    Parameters
    ----------
    deviceId : int
        A device, from 0 to `aclrtGetDeviceCount` - 1.
    attr : aclrtDevAttr
        Cores count the processors that the process may use, for each kind of core.

    Returns
    -------
    value : int
        A count, or bytes; 0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for a device that does not exist;
        ACL_ERROR_RT_PARAM_INVALID (107000) if `attr` is no aclrtDevAttr.

    Examples
    --------
    >>> import aclnn
    >>> cores, status = aclnn.aclrtGetDeviceInfo(0, aclnn.ACL_DEV_ATTR_VECTOR_CORE_NUM)
    >>> cores > 0, status, aclnn.aclrtGetDeviceInfo(0, 0)
    (True, 0, (0, 107000))
    """
    return call("aclrtGetDeviceInfo", deviceId, attr)


def aclGetDeviceCapability(deviceId: int, deviceInfo: int) -> tuple[int, int]:
    """Tell a fact about the device.

    Parameters
    ----------
    deviceId : int
        A device, from 0 to `aclrtGetDeviceCount` - 1.
    deviceInfo : aclDeviceInfo
        Cores count the processors that the process may use.

    Returns
    -------
    value : int
        A count, or bytes; 0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for a device that does not exist;
        ACL_ERROR_INVALID_PARAM (100000) if `deviceInfo` is no aclDeviceInfo, or undefined.

    Examples
    --------
    >>> import aclnn
    >>> cores, status = aclnn.aclGetDeviceCapability(0, aclnn.ACL_DEVICE_INFO_AI_CORE_NUM)
    >>> cores > 0, status, aclnn.aclGetDeviceCapability(0, aclnn.ACL_DEVICE_INFO_UNDEFINED)
    (True, 0, (0, 100000))
    """
    return call("aclGetDeviceCapability", deviceId, deviceInfo)


def aclrtDeviceCanAccessPeer(deviceId: int, peerDeviceId: int) -> tuple[int, int]:
    """Tell whether a device reaches the memory of another one.

    Parameters
    ----------
    deviceId, peerDeviceId : int
        A device, from 0 to `aclrtGetDeviceCount` - 1.

    Returns
    -------
    canAccessPeer : int
        1 for two devices, which have the same memory; 0 for one.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for a device that does not exist.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtDeviceCanAccessPeer(0, 0), aclnn.aclrtDeviceCanAccessPeer(0, 1)
    ((0, 0), (0, 107001))
    """
    return call("aclrtDeviceCanAccessPeer", deviceId, peerDeviceId)


def aclrtDeviceEnablePeerAccess(peerDeviceId: int, flags: int) -> int:
    """Let this thread's device reach the memory of another one, which it does anyway.

    Parameters
    ----------
    peerDeviceId : int
    flags : int
        0.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000) for the thread's own device;
        ACL_ERROR_RT_INVALID_DEVICEID (107001) for a device that does not exist;
        ACL_ERROR_RT_PARAM_INVALID (107000) for other flags.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtDeviceEnablePeerAccess(0, 0), aclnn.aclrtDeviceEnablePeerAccess(1, 0)
    (207000, 107001)
    """
    return call("aclrtDeviceEnablePeerAccess", peerDeviceId, flags)


def aclrtDeviceDisablePeerAccess(peerDeviceId: int) -> int:
    """Undo `aclrtDeviceEnablePeerAccess`.

    Parameters
    ----------
    peerDeviceId : int

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000) for the thread's own device;
        ACL_ERROR_RT_INVALID_DEVICEID (107001) for a device that does not exist.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtDeviceDisablePeerAccess(0)
    207000
    """
    return call("aclrtDeviceDisablePeerAccess", peerDeviceId)
