"""The context of a thread, and its latest status that was no success."""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

from aclnn.acl._runtime import call

__all__ = [
    "aclrtCreateContext",
    "aclrtDestroyContext",
    "aclrtGetCurrentContext",
    "aclrtGetLastError",
    "aclrtPeekAtLastError",
    "aclrtSetCurrentContext",
]


def aclrtCreateContext(deviceId: int) -> tuple[int, int]:
    """Create a context, which becomes the calling thread's.

    Parameters
    ----------
    deviceId : int
        A device, from 0 to `aclrtGetDeviceCount` - 1; the thread selects it, too.

    Returns
    -------
    context : int
        0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_INVALID_DEVICEID (107001) for a device that does not exist.

    Notes
    -----
    A context says which device is meant, and nothing else.

    Examples
    --------
    >>> import aclnn
    >>> context, status = aclnn.aclrtCreateContext(0)
    >>> status, aclnn.aclrtGetCurrentContext() == (context, 0), aclnn.aclrtDestroyContext(context)
    (0, True, 0)
    """
    return call("aclrtCreateContext", deviceId)


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
    return call("aclrtDestroyContext", context)


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
    return call("aclrtSetCurrentContext", context)


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
    return call("aclrtGetCurrentContext")


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
    return call("aclrtPeekAtLastError", level)


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
    return call("aclrtGetLastError", level)
