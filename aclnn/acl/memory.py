"""Device memory: allocations whose lifetime is tracked.

The device is this machine's CPU, so its memory is the process's own. Addresses are plain ints and
may be calculated with; each use is looked up among the live allocations, so that a freed, foreign
or overrun address is a status and never a crash. Freeing ends an allocation at once for every new
use, and waits for queued work that uses it, which goes on with its bytes.
"""

from __future__ import annotations

from typing import Any

from aclnn.acl import _runtime
from aclnn.acl._runtime import Allocation, call
from aclnn.acl.arguments import shown
from aclnn.acl.errors import invalid

__all__ = [
    "aclrtFree",
    "aclrtFreeHost",
    "aclrtGetMemInfo",
    "aclrtMalloc",
    "aclrtMallocAlign32",
    "aclrtMallocCached",
    "aclrtMallocHost",
]


_LARGEST = 2**46  # no machine of today has more
_LAST = 2**64 - 1  # address


def find(address: int, nbytes: int = 0) -> Allocation | None:
    """The live allocation that has `nbytes` at `address`, or less than that (or ends there)."""
    return _runtime.find(address, min(nbytes, _LARGEST)) if 0 <= address <= _LAST else None


class AddressError(ValueError):
    """An address in no live allocation, or too near the end of one."""


def checked(address: int, nbytes: int, what: str) -> Allocation:
    """The live allocation behind so many bytes at an address; raises `AddressError` without one."""
    found = find(address, nbytes)
    if found is None:
        raise AddressError(
            f"{what} is address {address:#x}, which is in no live allocation of aclrtMalloc"
        )
    if address + nbytes > found.end:
        raise AddressError(
            f"{what} is address {address:#x}, {max(found.address + found.nbytes - address, 0)} bytes "
            f"before the end of its allocation, but {shown(nbytes)} bytes are used"
        )
    return found


def resolve(address: int, nbytes: int, what: str) -> Allocation:
    """The live allocation behind an address that operators are given.

    Raises
    ------
    AclnnError
        With status ACLNN_ERR_PARAM_INVALID, if there is none or it is too short.
    """
    try:
        return checked(address, nbytes, what)
    except AddressError as error:
        raise invalid(str(error)) from None


def owner_of(address: int) -> Allocation | None:
    """The live allocation that has the byte at an address; None where it is memory of another kind."""
    found = find(address)
    return found if found is not None and address < found.end else None


def is_alive(owner: Any) -> bool:
    """Whether a tensor's memory was not freed; only device memory ever is."""
    return not isinstance(owner, Allocation) or owner.alive


def serves(owner: Any) -> bool:
    """Whether queued work finds a tensor's memory when its turn comes, freed meanwhile or not."""
    return not isinstance(owner, Allocation) or owner.serves


def aclrtMalloc(size: int, policy: int) -> tuple[int, int]:
    """Allocate device memory.

    Parameters
    ----------
    size : int
        Bytes, at least 1.
    policy : aclrtMemMallocPolicy
        A hint; pages are the operating system's choice here.

    Returns
    -------
    address : int
        Aligned to 512 bytes; 0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for a size below 1 and for a policy
        that is no aclrtMemMallocPolicy; ACL_ERROR_RT_MEMORY_ALLOCATION (207001) when memory is
        short.

    Examples
    --------
    >>> import aclnn
    >>> address, status = aclnn.aclrtMalloc(1024, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    >>> status, address % 512, aclnn.aclrtFree(address)
    (0, 0, 0)
    """
    return call("aclrtMalloc", size, policy)


def aclrtMallocAlign32(size: int, policy: int) -> tuple[int, int]:
    """Allocate device memory, as `aclrtMalloc` does: its alignment is more than this one needs.

    Parameters
    ----------
    size : int
        Bytes, at least 1.
    policy : aclrtMemMallocPolicy
        A hint.

    Returns
    -------
    address : int
        0 on failure.
    status : int
        ACL_SUCCESS (0) or as `aclrtMalloc`: ACL_ERROR_RT_PARAM_INVALID (107000),
        ACL_ERROR_RT_MEMORY_ALLOCATION (207001).

    Examples
    --------
    >>> import aclnn
    >>> address, status = aclnn.aclrtMallocAlign32(100, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    >>> status, address % 32, aclnn.aclrtFree(address)
    (0, 0, 0)
    """
    return call("aclrtMallocAlign32", size, policy)


def aclrtMallocCached(size: int, policy: int) -> tuple[int, int]:
    """Allocate device memory, as `aclrtMalloc` does: all of it is cached.

    Parameters
    ----------
    size : int
        Bytes, at least 1.
    policy : aclrtMemMallocPolicy
        A hint.

    Returns
    -------
    address : int
        0 on failure.
    status : int
        ACL_SUCCESS (0) or as `aclrtMalloc`: ACL_ERROR_RT_PARAM_INVALID (107000),
        ACL_ERROR_RT_MEMORY_ALLOCATION (207001).

    Examples
    --------
    >>> import aclnn
    >>> address, status = aclnn.aclrtMallocCached(100, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    >>> status, aclnn.aclrtFree(address)
    (0, 0)
    """
    return call("aclrtMallocCached", size, policy)


def aclrtMallocHost(size: int) -> tuple[int, int]:
    """Allocate host memory that the device reaches, as queued copies need it during a capture.

    Parameters
    ----------
    size : int
        Bytes, at least 1.

    Returns
    -------
    address : int
        Aligned to 512 bytes; 0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for a size below 1;
        ACL_ERROR_RT_MEMORY_ALLOCATION (207001) when memory is short.

    Examples
    --------
    >>> import aclnn
    >>> address, status = aclnn.aclrtMallocHost(64)
    >>> status, aclnn.aclrtFree(address), aclnn.aclrtFreeHost(address)
    (0, 107000, 0)
    """
    return call("aclrtMallocHost", size)


def aclrtFree(address: int) -> int:
    """Free device memory: at once for new calls, and wait for queued work that uses it.

    Parameters
    ----------
    address : int
        An address that `aclrtMalloc` returned, not one inside the block.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for any other address, freed ones
        included.

    Notes
    -----
    Work that streams were given before goes on with the memory, which is released when the last of it
    is done. A function on a stream frees without waiting; so does a thread, after a second, while
    functions of the program's own, or external events, hold streams up, as those may need it.

    Examples
    --------
    >>> import aclnn
    >>> address, _ = aclnn.aclrtMalloc(64, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    >>> aclnn.aclrtFree(address), aclnn.aclrtFree(address)
    (0, 107000)
    """
    return call("aclrtFree", address)


def aclrtFreeHost(address: int) -> int:
    """Free host memory, as `aclrtFree` frees that of the device.

    Parameters
    ----------
    address : int
        An address that `aclrtMallocHost` returned, not one inside the block.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for any other address, freed ones
        and those of `aclrtMalloc` included.

    Examples
    --------
    >>> import aclnn
    >>> address, _ = aclnn.aclrtMallocHost(64)
    >>> aclnn.aclrtFreeHost(address), aclnn.aclrtFreeHost(address)
    (0, 107000)
    """
    return call("aclrtFreeHost", address)


def aclrtGetMemInfo(attr: int) -> tuple[int, int, int]:
    """Report the memory of this machine.

    Parameters
    ----------
    attr : aclrtMemAttr
        Which memory; the numbers are the same for each.

    Returns
    -------
    free : int
        Bytes of free memory, or of all of it where the system does not tell; 0 on failure.
    total : int
        Bytes of memory; 0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) if `attr` is no aclrtMemAttr.

    Examples
    --------
    >>> import aclnn
    >>> free, total, status = aclnn.aclrtGetMemInfo(aclnn.ACL_HBM_MEM)
    >>> 0 < free <= total, status
    (True, 0)
    """
    return call("aclrtGetMemInfo", attr)
