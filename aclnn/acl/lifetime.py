"""Life of the runtime: init and finalize, version, where programs run, lines that they log."""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

import sys
from typing import Any

from aclnn.acl import _runtime
from aclnn.acl._runtime import call
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.constants import ACL_SUCCESS, aclLogLevel

OK = int(ACL_SUCCESS)

__all__ = [
    "aclAppLog",
    "aclFinalize",
    "aclFinalizeReference",
    "aclInit",
    "aclnnFinalize",
    "aclnnInit",
    "aclrtGetRunMode",
    "aclrtGetVersion",
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
    return call("aclInit")


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
    return call("aclFinalize")


def aclFinalizeReference() -> tuple[int, int]:
    """Take one call of `aclInit` back; the last one ends the runtime, as `aclFinalize` does.

    Returns
    -------
    refCount : int
        The number of remaining calls.
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
    return call("aclFinalizeReference")


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
    return call("aclrtGetRunMode")


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
    return call("aclrtGetVersion")


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
