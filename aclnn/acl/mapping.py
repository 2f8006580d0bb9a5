"""Address space and memory apart: reserved addresses that memory is put behind.

In Python as in C, with addresses and handles as ints. Memory is a part of a file without a name, so that it
keeps its contents where it is mapped again.
"""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

from typing import Any

from aclnn.acl._runtime import call

__all__ = [
    "aclrtFreePhysical",
    "aclrtMallocPhysical",
    "aclrtMapMem",
    "aclrtMemGetAllocationGranularity",
    "aclrtReleaseMemAddress",
    "aclrtReserveMemAddress",
    "aclrtUnmapMem",
]


def aclrtMemGetAllocationGranularity(option: int, prop: Any = None) -> tuple[int, int]:
    """Tell of which size `aclrtMallocPhysical` allocates multiples.

    Parameters
    ----------
    option : aclrtMemGranularityOptions
        The minimum or the recommended granularity: they are the same here.
    prop : object, optional
        Of the memory; not looked at.

    Returns
    -------
    granularity : int
        Bytes; 0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for another option.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtMemGetAllocationGranularity(aclnn.ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM)
    (2097152, 0)
    """
    return call("aclrtMemGetAllocationGranularity", option)


def aclrtMallocPhysical(size: int, prop: Any = None, flags: int = 0) -> tuple[int, int]:
    """Allocate memory that has no address yet.

    Parameters
    ----------
    size : int
        Bytes, a multiple of what `aclrtMemGetAllocationGranularity` tells.
    prop : object, optional
        Of the memory; not looked at: all is of one kind.
    flags : int, optional
        0.

    Returns
    -------
    handle : int
        For `aclrtMapMem`; 0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for another size;
        ACL_ERROR_RT_MEMORY_ALLOCATION (207001) when memory is short.

    Examples
    --------
    >>> import aclnn
    >>> handle, status = aclnn.aclrtMallocPhysical(2 << 20)
    >>> status, aclnn.aclrtFreePhysical(handle), aclnn.aclrtFreePhysical(handle)
    (0, 0, 107000)
    """
    return call("aclrtMallocPhysical", size, 0)


def aclrtFreePhysical(handle: int) -> int:
    """Give up memory, when queued work is done with it; its bytes stay where it is mapped.

    Parameters
    ----------
    handle : int
        From `aclrtMallocPhysical`.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for anything else, and for memory that
        was given up.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtFreePhysical(0)
    107000
    """
    return call("aclrtFreePhysical", handle)


def aclrtReserveMemAddress(
    size: int, alignment: int = 0, expectPtr: int | None = None, flags: int = 0
) -> tuple[int, int]:
    """Reserve addresses, with no memory behind them.

    Memory that is mapped to neighbouring addresses of one range is one piece of memory.

    Parameters
    ----------
    size : int
        Bytes, at least 1; rounded up to what `aclrtMemGetAllocationGranularity` tells.
    alignment : int, optional
        A power of two; at least that granularity is kept.
    expectPtr : int, optional
        A hint, which is not followed.
    flags : int, optional
        Hints for pages.

    Returns
    -------
    virPtr : int
        The first address; 0 on failure.
    status : int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for a size below 1 and another alignment;
        ACL_ERROR_RT_MEMORY_ALLOCATION (207001) when addresses are short.

    Examples
    --------
    >>> import aclnn
    >>> address, status = aclnn.aclrtReserveMemAddress(4 << 20)
    >>> handle, _ = aclnn.aclrtMallocPhysical(2 << 20)
    >>> aclnn.aclrtMapMem(address, 2 << 20, 0, handle), aclnn.aclrtMemset(address, 4, 7, 4)
    (0, 0)
    >>> aclnn.aclrtUnmapMem(address), aclnn.aclrtFreePhysical(handle)
    (0, 0)
    >>> aclnn.aclrtReleaseMemAddress(address)
    0
    """
    return call("aclrtReserveMemAddress", size, alignment, 0, 0)


def aclrtReleaseMemAddress(virPtr: int) -> int:
    """Give reserved addresses back.

    Parameters
    ----------
    virPtr : int
        From `aclrtReserveMemAddress`, with no memory behind it any more.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for anything else.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtReleaseMemAddress(4096)
    107000
    """
    return call("aclrtReleaseMemAddress", virPtr)


def aclrtMapMem(virPtr: int, size: int, offset: int, handle: int, flags: int = 0) -> int:
    """Put memory behind reserved addresses.

    Parameters
    ----------
    virPtr : int
        From `aclrtReserveMemAddress`, or some way into such a range.
    size : int
        Bytes, a multiple of what `aclrtMemGetAllocationGranularity` tells.
    offset : int
        Bytes of the memory before the first that is mapped.
    handle : int
        From `aclrtMallocPhysical`.
    flags : int, optional
        0.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for addresses that are not reserved or
        have memory already, for more than the memory has, and for another handle;
        ACL_ERROR_RT_MEMORY_ALLOCATION (207001) when memory is short.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtMapMem(4096, 2 << 20, 0, 0)
    107000
    """
    return call("aclrtMapMem", virPtr, size, offset, handle, 0)


def aclrtUnmapMem(virPtr: int) -> int:
    """Take memory from behind addresses, when queued work is done with it; it keeps its contents.

    Parameters
    ----------
    virPtr : int
        As it was given to `aclrtMapMem`.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for anything else.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclrtUnmapMem(4096)
    107000
    """
    return call("aclrtUnmapMem", virPtr)
