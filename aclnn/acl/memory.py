"""Device memory: allocations whose lifetime is tracked, and copies that check every address.

The device is this machine's CPU, so its memory is the process's own. Addresses are plain ints and
may be calculated with; each use is looked up among the live allocations, so that a freed, foreign
or overrun address is a status and never a crash. Freeing ends an allocation at once for every new
use; its bytes stay until queued work that holds it is done.
"""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

import bisect
import ctypes
import operator
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from aclnn.acl import capture as captures
from aclnn.acl import stream as streams
from aclnn.acl._buffer import memory_of
from aclnn.acl.arguments import as_int, as_member, shown
from aclnn.acl.constants import (
    ACL_ERROR_RT_MEMORY_ALLOCATION,
    ACL_ERROR_RT_PARAM_INVALID,
    ACL_SUCCESS,
    aclrtMemAttr,
    aclrtMemcpyKind,
    aclrtMemMallocPolicy,
)
from aclnn.acl.errors import AclnnError, fail, invalid

OK = int(ACL_SUCCESS)

__all__ = [
    "aclrtFree",
    "aclrtFreeHost",
    "aclrtGetMemInfo",
    "aclrtMalloc",
    "aclrtMallocHost",
    "aclrtMemcpy",
    "aclrtMemcpyAsync",
    "aclrtMemset",
]

_T = TypeVar("_T")
ALIGNMENT = 512
_LARGEST = min(2**47, sys.maxsize // 2)  # no machine of today addresses more


class Allocation:
    """A stretch of device memory, or of the host's that devices reach, alive until it is freed."""

    __slots__ = ("__weakref__", "_bytes", "address", "alive", "is_host", "made_at", "nbytes")

    def __init__(self, nbytes: int, is_host: bool = False):
        self.is_host = is_host
        self.made_at = time.monotonic_ns()  # captures tell by it what was made inside them
        self._bytes = np.empty(nbytes + ALIGNMENT, np.uint8)
        self.address = -(-self._bytes.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.nbytes = nbytes
        self.alive = True

    @property
    def end(self) -> int:
        return self.address + self.nbytes


_ADDRESS = operator.attrgetter("address")


class Registry:
    """The live allocations, by address.

    Lists are replaced, never changed: a destructor that allocates or frees may run in the middle of a
    look-up.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # such a destructor may run while it is held
        self._live: list[Allocation] = []

    def add(self, allocation: Allocation) -> None:
        self._replace(lambda live: bisect.insort(live, allocation, key=_ADDRESS))

    def remove(self, address: int, is_host: bool = False) -> bool:
        """End the allocation that begins at `address`; False when there is none of that kind."""

        def take(live: list[Allocation]) -> Allocation | None:
            index = bisect.bisect_left(live, address, key=_ADDRESS)
            if index == len(live) or live[index].address != address:
                return None
            if live[index].is_host != is_host:
                return None
            return live.pop(index)

        found = self._replace(take)
        if found is not None:
            found.alive = False
        return found is not None

    def find(self, address: int) -> Allocation | None:
        """The live allocation that has the byte at `address` (or ends there)."""
        live = self._live
        index = bisect.bisect(live, address, key=_ADDRESS) - 1
        found = live[index] if index >= 0 else None
        return found if found is not None and address <= found.end else None

    def _replace(self, change: Callable[[list[Allocation]], _T]) -> _T:
        """Change a copy and put it in the list's place; again, if that was replaced meanwhile."""
        with self._lock:
            while True:
                before = self._live
                live = before.copy()
                result = change(live)
                if self._live is before:
                    self._live = live
                    return result

    def after_fork(self) -> None:
        """Make a new lock in a forked child: the thread that would release the old one is gone."""
        self._lock = threading.RLock()


LIVE = Registry()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=LIVE.after_fork)


class AddressError(ValueError):
    """An address in no live allocation, or too near the end of one."""


def _checked(address: int, nbytes: int, what: str) -> Allocation:
    found = LIVE.find(address)
    if found is None:
        raise AddressError(
            f"{what} is address {address:#x}, which lies in no live allocation of aclrtMalloc"
        )
    if address + nbytes > found.end:
        raise AddressError(
            f"{what} is address {address:#x}, {found.end - address} bytes before the end of its "
            f"allocation, but {shown(nbytes)} bytes are used"
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
        return _checked(address, nbytes, what)
    except AddressError as error:
        raise invalid(str(error)) from None


def owner_of(address: int) -> Allocation | None:
    """The live allocation that has the byte at an address; None where it is memory of another kind."""
    found = LIVE.find(address)
    return found if found is not None and address < found.end else None


def is_alive(owner: Any) -> bool:
    """Whether a tensor's memory was not freed; only device memory ever is."""
    return not isinstance(owner, Allocation) or owner.alive


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
    try:
        as_member("policy", policy, aclrtMemMallocPolicy)
    except ValueError as error:
        return 0, fail(ACL_ERROR_RT_PARAM_INVALID, f"aclrtMalloc: {error}")
    return _allocate("aclrtMalloc", size)


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
    return _allocate("aclrtMallocHost", size, is_host=True)


def _allocate(function: str, size: Any, is_host: bool = False) -> tuple[int, int]:
    try:
        nbytes = _count("size", size)
        if nbytes == 0:
            raise ValueError("size is 0, must be at least 1")
        return _allocated(nbytes, is_host).address, OK
    except ValueError as error:
        return 0, fail(ACL_ERROR_RT_PARAM_INVALID, f"{function}: {error}")
    except MemoryError:
        return 0, fail(
            ACL_ERROR_RT_MEMORY_ALLOCATION,
            f"{function}: {shown(size)} bytes cannot be allocated",
        )


def _allocated(nbytes: int, is_host: bool = False) -> Allocation:
    """A new allocation among the live ones; raises MemoryError where there is no room for it."""
    if nbytes > _LARGEST:
        raise MemoryError
    allocation = Allocation(nbytes, is_host)
    LIVE.add(allocation)
    return allocation


def aclrtFree(address: int) -> int:
    """Free device memory.

    Parameters
    ----------
    address : int
        An address that `aclrtMalloc` returned, not one inside the block.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for any other address, freed ones
        included.

    Examples
    --------
    >>> import aclnn
    >>> address, _ = aclnn.aclrtMalloc(64, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    >>> aclnn.aclrtFree(address), aclnn.aclrtFree(address)
    (0, 107000)
    """
    return _free("aclrtFree", address)


def aclrtFreeHost(address: int) -> int:
    """Free host memory.

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
    return _free("aclrtFreeHost", address, is_host=True)


def _free(function: str, address: Any, is_host: bool = False) -> int:
    start = as_int(address)
    if start is None or not LIVE.remove(start, is_host):
        return fail(
            ACL_ERROR_RT_PARAM_INVALID,
            f"{function}: address is {_shown(address)}, where no live allocation begins",
        )
    return OK


def aclrtMemcpy(dst: Any, destMax: int, src: Any, count: int, kind: int) -> int:
    """Copy `count` bytes.

    Parameters
    ----------
    dst : int or buffer
        Where to. A device side is an address from `aclrtMalloc`, or some way into such memory; a
        host side is that too, or any buffer, or anything with ``__array_interface__`` or
        ``__dlpack__``. A buffer with gaps between its elements is refused, a read-only one too.
    destMax : int
        Bytes that `dst` has room for.
    src : int or buffer
        Where from, given as `dst` is; it may be read-only.
    count : int
        Bytes to copy.
    kind : aclrtMemcpyKind
        Which sides are the device's: neither, one or both.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) when `count` exceeds `destMax` or
        either side, an address is not live, a side or a number is none of the above;
        ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT (107030) while a stream is captured in a mode that
        forbids it to the calling thread.

    Examples
    --------
    >>> import numpy as np, aclnn
    >>> x, y = np.arange(4.0), np.zeros(4)
    >>> address, _ = aclnn.aclrtMalloc(32, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    >>> aclnn.aclrtMemcpy(address, 32, x, 32, aclnn.ACL_MEMCPY_HOST_TO_DEVICE)
    0
    >>> aclnn.aclrtMemcpy(y, 32, address, 32, aclnn.ACL_MEMCPY_DEVICE_TO_HOST)
    0
    >>> y
    array([0., 1., 2., 3.])
    >>> aclnn.aclrtFree(address)
    0
    """
    if status := captures.refuse_unsafe("aclrtMemcpy"):
        return status
    try:
        copy = Copy("aclrtMemcpy", dst, destMax, src, count, kind)
    except ValueError as error:
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"aclrtMemcpy: {error}")
    outcome = copy()
    return fail(*outcome) if isinstance(outcome, tuple) else outcome


def aclrtMemcpyAsync(dst: Any, destMax: int, src: Any, count: int, kind: int, stream: Any) -> int:
    """Queue a copy on a stream; see `aclrtMemcpy`.

    Arguments are checked now; both sides are held until the copy is done. Device memory that is
    freed before its turn comes is not copied: the stream's next synchronise answers 361001.

    Parameters
    ----------
    dst, destMax, src, count, kind
        As for `aclrtMemcpy`; sizes in bytes.
    stream : aclrtStream or None
        None copies now.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for arguments that `aclrtMemcpy` would
        refuse; ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream;
        ACLNN_ERR_RUNTIME_ERROR (361001) when no thread can be had for the stream. While a stream
        is captured in a mode that binds the calling thread:
        ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC (107041) for a buffer, as host memory must come from
        `aclrtMallocHost`, and ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT (107031) on the default stream.
        What a capture records: ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903),
        ACL_ERROR_STREAM_TASK_GROUP_INTR (107034), ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000),
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP (207019) and ACL_ERROR_STREAM_TASK_GROUP_STATUS
        (107033) as `aclrtRecordEvent` has them.

    Examples
    --------
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> room = bytearray(4)
    >>> aclnn.aclrtMemcpyAsync(room, 4, b"abcd", 4, aclnn.ACL_MEMCPY_HOST_TO_HOST, stream)
    0
    >>> aclnn.aclrtDestroyStream(stream), room
    (0, bytearray(b'abcd'))
    """
    try:
        copy = Copy("aclrtMemcpyAsync", dst, destMax, src, count, kind)
    except ValueError as error:
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"aclrtMemcpyAsync: {error}")
    if status := _refuse_async(copy, stream):
        return status
    return streams.submit(stream, copy, "aclrtMemcpyAsync")


def _refuse_async(copy: Copy, stream: Any) -> int:
    """ACL_SUCCESS, or the status of a queued copy that a capture forbids."""
    for side, name in ((copy.src, "src"), (copy.dst, "dst")):
        is_pageable = not isinstance(side.keep, Allocation)
        if is_pageable and (status := captures.refuse_pageable("aclrtMemcpyAsync", name)):
            return status
    return OK if stream is not None else captures.refuse_default_stream("aclrtMemcpyAsync")


def aclrtMemset(address: Any, maxCount: int, value: int, count: int) -> int:
    """Set `count` bytes of device memory to `value`.

    Parameters
    ----------
    address : int
        From `aclrtMalloc`, or some way into such memory.
    maxCount : int
        Bytes available at the destination.
    value : int
        A byte, from -128 to 255.
    count : int
        Bytes.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) when `count` exceeds `maxCount` or the
        allocation, the address is not live, or `value` is no byte;
        ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT (107030) while a stream is captured in a mode that
        forbids it to the calling thread.

    Examples
    --------
    >>> import aclnn
    >>> address, _ = aclnn.aclrtMalloc(4, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    >>> aclnn.aclrtMemset(address, 4, 7, 4)
    0
    >>> room = bytearray(4)
    >>> aclnn.aclrtMemcpy(room, 4, address, 4, aclnn.ACL_MEMCPY_DEVICE_TO_HOST), room
    (0, bytearray(b'\\x07\\x07\\x07\\x07'))
    >>> aclnn.aclrtFree(address)
    0
    """
    if status := captures.refuse_unsafe("aclrtMemset"):
        return status
    try:
        room, nbytes = _count("maxCount", maxCount), _count("count", count)
        if nbytes > room:
            raise ValueError(f"count is {shown(nbytes)}, but maxCount is {shown(room)}")
        byte = as_int(value)
        if byte is None or not -128 <= byte <= 255:
            raise ValueError(f"value is {shown(value)}, must be a byte")
        side = _Side(address, nbytes, "address", device=True, writable=True)
    except ValueError as error:
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"aclrtMemset: {error}")
    ctypes.memset(side.address, byte & 255, nbytes)
    return OK


def aclrtGetMemInfo(attr: int) -> tuple[int, int, int]:
    """Tell how much memory this machine has.

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
    try:
        as_member("attr", attr, aclrtMemAttr)
    except ValueError as error:
        return 0, 0, fail(ACL_ERROR_RT_PARAM_INVALID, f"aclrtGetMemInfo: {error}")
    page, total = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
    # macOS does not say how much is free.
    free = os.sysconf("SC_AVPHYS_PAGES") if "SC_AVPHYS_PAGES" in os.sysconf_names else total
    return free * page, total * page, OK


class _Side:
    """One side of a copy: where it is, and what keeps it there."""

    def __init__(self, given: Any, nbytes: int, what: str, *, device: bool, writable: bool):
        self.keep: Any
        address = as_int(given)
        if address is not None:
            self.address, self.keep = address, _checked(address, nbytes, what)
            return
        if device:
            kind = "null" if given is None else type(given).__name__
            raise ValueError(f"{what} is {kind}, must be an address of aclrtMalloc")
        self.keep, self.address, length, can_write = _host_memory(given, what)
        if length < nbytes:
            raise ValueError(f"{what} has {length} bytes, but count is {shown(nbytes)}")
        if writable and not can_write:
            raise ValueError(f"{what} is read-only")


def _host_memory(given: Any, what: str) -> tuple[Any, int, int, bool]:
    if given is None:
        raise ValueError(f"{what} is null")
    try:
        keep, address, length, writable = memory_of(given, what)
    except AclnnError as error:
        raise ValueError(str(error)) from None
    if isinstance(keep, np.ndarray) and np.asarray(keep).nbytes != length:
        raise ValueError(
            f"{what} has gaps: shape {keep.shape}, strides {keep.strides} bytes; copies are of "
            "consecutive bytes"
        )
    return keep, address, length, writable


_TO_DEVICE = (
    aclrtMemcpyKind.ACL_MEMCPY_HOST_TO_DEVICE,
    aclrtMemcpyKind.ACL_MEMCPY_DEVICE_TO_DEVICE,
)
_FROM_DEVICE = (
    aclrtMemcpyKind.ACL_MEMCPY_DEVICE_TO_HOST,
    aclrtMemcpyKind.ACL_MEMCPY_DEVICE_TO_DEVICE,
)


class Copy:
    """A checked copy, ready to run, any number of times where a capture records it."""

    kind = "MEMCPY_ASYNC"

    def __init__(self, function: str, dst: Any, destMax: Any, src: Any, count: Any, kind: Any):
        self.function = self.name = function
        room, self.nbytes = _count("destMax", destMax), _count("count", count)
        as_member("kind", kind, aclrtMemcpyKind)
        if self.nbytes > room:
            raise ValueError(f"count is {shown(self.nbytes)}, but destMax is {shown(room)}")
        self.dst = _Side(dst, self.nbytes, "dst", device=kind in _TO_DEVICE, writable=True)
        self.src = _Side(src, self.nbytes, "src", device=kind in _FROM_DEVICE, writable=False)

    def __call__(self) -> int | tuple[int, str]:
        for name, side in (("dst", self.dst), ("src", self.src)):
            if not is_alive(side.keep):  # since it was checked
                freed = f"{self.function}: {name} lies in memory that was freed"
                return ACL_ERROR_RT_PARAM_INVALID, freed
        self.replay()
        return OK

    def replay(self) -> None:
        """Copy, without a look at whether the memory lives."""
        ctypes.memmove(self.dst.address, self.src.address, self.nbytes)

    def owners(self) -> list[tuple[str, Any]]:
        """What keeps either side, by name."""
        return [("dst", self.dst.keep), ("src", self.src.keep)]

    def frozen(self) -> str:
        """The copy as a line."""
        return (
            f"{self.function}(dst={self.dst.address:#x}, src={self.src.address:#x}, "
            f"{self.nbytes} bytes)"
        )


def _shown(value: Any) -> str:
    return hex(value) if as_int(value) is not None else shown(value)


def _count(name: str, value: Any) -> int:
    number = as_int(value)
    if number is None or number < 0:
        raise ValueError(f"{name} is {shown(value)}, must be an int that is not negative")
    return number
