"""Device memory: allocations whose lifetime is tracked, and copies that check every address.

The device is this machine's CPU, so its memory is the process's own. Addresses are plain ints and
may be calculated with; each use is looked up among the live allocations, so that a freed, foreign
or overrun address is a status and never a crash. Freeing ends an allocation at once for every new
use; its bytes stay until queued work that holds it is done.
"""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.acl import _runtime
from aclnn.acl import capture as captures
from aclnn.acl import stream as streams
from aclnn.acl._buffer import memory_of
from aclnn.acl._runtime import Allocation
from aclnn.acl.arguments import as_int, as_member, shown
from aclnn.acl.constants import (
    ACL_ERROR_RT_MEMORY_ALLOCATION,
    ACL_ERROR_RT_PARAM_INVALID,
    ACL_SUCCESS,
    aclrtMemAttr,
    aclrtMemcpyKind,
)
from aclnn.acl.errors import AclnnError, fail, invalid

OK = int(ACL_SUCCESS)

__all__ = [
    "aclrtFree",
    "aclrtFreeHost",
    "aclrtGetMemInfo",
    "aclrtMalloc",
    "aclrtMallocAlign32",
    "aclrtMallocCached",
    "aclrtMallocHost",
    "aclrtMemcpy",
    "aclrtMemcpy2d",
    "aclrtMemcpy2dAsync",
    "aclrtMemcpyAsync",
    "aclrtMemset",
    "aclrtMemsetAsync",
]

_LARGEST = 2**46  # no machine of today has more
_LAST = 2**64 - 1  # address


class Registry:
    """The live allocations, by address; programs in C have them too."""

    def allocate(self, nbytes: int, is_host: bool) -> Allocation:
        """A new allocation among the live ones; raises MemoryError where there is no room for it."""
        if nbytes > _LARGEST:
            raise MemoryError
        return _runtime.allocate(nbytes, is_host)

    def remove(self, address: int, is_host: bool = False) -> bool:
        """End the allocation that begins at `address`; False when there is none of that kind."""
        return 0 <= address <= _LAST and _runtime.end_allocation(address, is_host)

    def find(self, address: int) -> Allocation | None:
        """The live allocation that has the byte at `address` (or ends there)."""
        return _runtime.find(address) if 0 <= address <= _LAST else None


LIVE = Registry()


class AddressError(ValueError):
    """An address in no live allocation, or too near the end of one."""


def _checked(address: int, nbytes: int, what: str) -> Allocation:
    found = LIVE.find(address)
    if found is None:
        raise AddressError(
            f"{what} is address {address:#x}, which is in no live allocation of aclrtMalloc"
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
    return _allocate_device("aclrtMalloc", size, policy)


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
    return _allocate_device("aclrtMallocAlign32", size, policy)


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
    return _allocate_device("aclrtMallocCached", size, policy)


def _allocate_device(function: str, size: Any, policy: Any) -> tuple[int, int]:
    number = as_int(policy)
    if number is None or not 0 <= number < 2**31 or not _runtime.is_policy(number):
        return 0, fail(
            ACL_ERROR_RT_PARAM_INVALID,
            f"{function}: policy is {shown(policy)}, which is no member of aclrtMemMallocPolicy",
        )
    return _allocate(function, size)


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
        return LIVE.allocate(nbytes, is_host).address, OK
    except ValueError as error:
        return 0, fail(ACL_ERROR_RT_PARAM_INVALID, f"{function}: {error}")
    except MemoryError:
        return 0, fail(
            ACL_ERROR_RT_MEMORY_ALLOCATION,
            f"{function}: {shown(size)} bytes cannot be allocated",
        )


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
    return queue_copy(copy, stream)


def queue_copy(copy: Copy, stream: Any) -> int:
    """Give a copy to a stream, unless a capture forbids it."""
    for side, name in ((copy.src, "src"), (copy.dst, "dst")):
        is_pageable = not isinstance(side.keep, Allocation)
        if is_pageable and (status := captures.refuse_pageable(copy.function, name)):
            return status
    if stream is None and (status := captures.refuse_default_stream(copy.function)):
        return status
    return streams.submit(stream, copy, copy.function)


def aclrtMemcpy2d(
    dst: Any, dpitch: int, src: Any, spitch: int, width: int, height: int, kind: int
) -> int:
    """Copy rows of bytes.

    Parameters
    ----------
    dst : int or buffer
        Where to, as for `aclrtMemcpy`.
    dpitch : int
        Bytes from the begin of a row of `dst` to that of the next, at least `width`.
    src : int or buffer
        Where from.
    spitch : int
        Bytes from the begin of a row of `src` to that of the next, at least `width`.
    width : int
        Bytes of a row.
    height : int
        Rows.
    kind : aclrtMemcpyKind
        Which sides are the device's.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) when the rows exceed a pitch or either
        side, an address is not live, a side or a number is none of the above;
        ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT (107030) while a stream is captured in a mode that
        forbids it to the calling thread.

    Examples
    --------
    >>> import aclnn
    >>> room = bytearray(6)
    >>> aclnn.aclrtMemcpy2d(room, 3, b"abcd", 2, 2, 2, aclnn.ACL_MEMCPY_HOST_TO_HOST), room
    (0, bytearray(b'ab\\x00cd\\x00'))
    """
    if status := captures.refuse_unsafe("aclrtMemcpy2d"):
        return status
    try:
        copy = Copy.of_rows("aclrtMemcpy2d", dst, dpitch, src, spitch, width, height, kind)
    except ValueError as error:
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"aclrtMemcpy2d: {error}")
    outcome = copy()
    return fail(*outcome) if isinstance(outcome, tuple) else outcome


def aclrtMemcpy2dAsync(
    dst: Any, dpitch: int, src: Any, spitch: int, width: int, height: int, kind: int, stream: Any
) -> int:
    """Queue a copy of rows on a stream; see `aclrtMemcpy2d` and `aclrtMemcpyAsync`.

    Parameters
    ----------
    dst, dpitch, src, spitch, width, height, kind
        As for `aclrtMemcpy2d`; sizes in bytes.
    stream : aclrtStream or None
        None copies now.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for arguments that `aclrtMemcpy2d` would
        refuse; ACL_ERROR_RT_INVALID_HANDLE (107017), ACLNN_ERR_RUNTIME_ERROR (361001),
        ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC (107041), ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT (107031),
        ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903), ACL_ERROR_STREAM_TASK_GROUP_INTR (107034),
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000), ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP (207019)
        and ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) as `aclrtMemcpyAsync` has them.

    Examples
    --------
    >>> import aclnn
    >>> room = bytearray(6)
    >>> aclnn.aclrtMemcpy2dAsync(room, 3, b"abcd", 2, 2, 2, aclnn.ACL_MEMCPY_HOST_TO_HOST, None)
    0
    """
    try:
        copy = Copy.of_rows("aclrtMemcpy2dAsync", dst, dpitch, src, spitch, width, height, kind)
    except ValueError as error:
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"aclrtMemcpy2dAsync: {error}")
    return queue_copy(copy, stream)


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
        filling = Fill("aclrtMemset", address, maxCount, value, count)
    except ValueError as error:
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"aclrtMemset: {error}")
    filling.replay()
    return OK


def aclrtMemsetAsync(address: Any, maxCount: int, value: int, count: int, stream: Any) -> int:
    """Queue the setting of bytes on a stream; see `aclrtMemset`.

    Parameters
    ----------
    address, maxCount, value, count
        As for `aclrtMemset`.
    stream : aclrtStream or None
        None sets them now.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for arguments that `aclrtMemset` would
        refuse; ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed stream;
        ACLNN_ERR_RUNTIME_ERROR (361001) when no thread can be had for the stream;
        ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT (107031) on the default stream while a stream is captured
        in a mode that binds the calling thread. What a capture records:
        ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED (507903), ACL_ERROR_STREAM_TASK_GROUP_INTR (107034),
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT (207000), ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP (207019)
        and ACL_ERROR_STREAM_TASK_GROUP_STATUS (107033) as `aclrtRecordEvent` has them.

    Examples
    --------
    >>> import aclnn
    >>> address, _ = aclnn.aclrtMalloc(4, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    >>> aclnn.aclrtMemsetAsync(address, 4, 7, 4, None), aclnn.aclrtFree(address)
    (0, 0)
    """
    function = "aclrtMemsetAsync"
    try:
        filling = Fill(function, address, maxCount, value, count)
    except ValueError as error:
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"{function}: {error}")
    if stream is None and (status := captures.refuse_default_stream(function)):
        return status
    return streams.submit(stream, filling, function)


class Fill:
    """A checked setting of bytes, ready to run, any number of times where a capture records it."""

    kind = "MEMSET_ASYNC"

    def __init__(self, function: str, address: Any, room: Any, value: Any, count: Any):
        self.function = self.name = function
        most, self.nbytes = _count("maxCount", room), _count("count", count)
        if self.nbytes > most:
            raise ValueError(f"count is {shown(self.nbytes)}, but maxCount is {shown(most)}")
        byte = as_int(value)
        if byte is None or not -128 <= byte <= 255:
            raise ValueError(f"value is {shown(value)}, must be a byte")
        self.value = byte & 255
        self.dst = _Side(address, self.nbytes, "address", device=True, writable=True)

    def __call__(self) -> int | tuple[int, str]:
        if not is_alive(self.dst.keep):  # since it was checked
            freed = f"{self.function}: address is in memory that was freed"
            return ACL_ERROR_RT_PARAM_INVALID, freed
        self.replay()
        return OK

    def replay(self) -> None:
        """Set the bytes, without a look at whether the memory lives."""
        _runtime.fill(self.dst.address, self.value, self.nbytes)

    def owners(self) -> list[tuple[str, Any]]:
        """Owners that keep the memory, by name."""
        return [("address", self.dst.keep)]

    def frozen(self) -> str:
        """The setting as a line."""
        return f"{self.function}(address={self.dst.address:#x}, {self.nbytes} bytes)"


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
    return *_runtime.memory_sizes(), OK


class _Side:
    """One side of a copy: where it is, and what keeps it there."""

    def __init__(
        self,
        given: Any,
        nbytes: int,
        what: str,
        *,
        device: bool,
        writable: bool,
        foreign: bool = False,
    ):
        self.keep: Any
        address = as_int(given)
        if address is not None:
            self.address = address
            is_own = foreign and address and not _runtime.is_ours(address)
            self.keep = None if is_own else _checked(address, nbytes, what)
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
        if self.nbytes > room:
            raise ValueError(f"count is {shown(self.nbytes)}, but destMax is {shown(room)}")
        self._check(dst, self.nbytes, src, self.nbytes, kind)

    def _check(
        self, dst: Any, to: int, src: Any, start: int, kind: Any, *, foreign: bool = False
    ) -> None:
        """Look up both sides, so many bytes of each."""
        as_member("kind", kind, aclrtMemcpyKind)
        to_device, from_device = kind in _TO_DEVICE, kind in _FROM_DEVICE
        self.dst = _Side(dst, to, "dst", device=to_device, writable=True, foreign=foreign)
        self.src = _Side(src, start, "src", device=from_device, writable=False, foreign=foreign)

    @staticmethod
    def of_rows(
        function: str, dst: Any, dpitch: Any, src: Any, spitch: Any, width: Any, height: Any, kind: Any,
        *, foreign: bool = False,
    ) -> Copy:  # fmt: skip
        """A copy of rows."""
        copy = Rows.__new__(Rows)
        copy.function = copy.name = function
        copy.width, copy.height = _count("width", width), _count("height", height)
        copy.pitches = _count("dpitch", dpitch), _count("spitch", spitch)
        for name, pitch in zip(("dpitch", "spitch"), copy.pitches, strict=True):
            if copy.width > pitch:
                raise ValueError(f"width is {shown(copy.width)}, but {name} is {shown(pitch)}")
        rows = copy.height - 1
        to, start = (
            pitch * rows + copy.width if copy.width and copy.height else 0 for pitch in copy.pitches
        )
        copy.nbytes = copy.width * copy.height
        copy._check(dst, to, src, start, kind, foreign=foreign)
        return copy

    @staticmethod
    def of_program(
        function: str,
        dst: int,
        dpitch: int,
        src: int,
        spitch: int,
        width: int,
        height: int,
        kind: int,
    ) -> Copy:
        """A copy that a program in C asks for, whose addresses may be those of memory of its own."""
        if height == 1 and dpitch == spitch == width:
            copy = Copy.__new__(Copy)
            copy.function, copy.nbytes = function, width
            copy.name = function
            copy._check(dst, width, src, width, kind, foreign=True)
            return copy
        return Copy.of_rows(function, dst, dpitch, src, spitch, width, height, kind, foreign=True)

    def __call__(self) -> int | tuple[int, str]:
        for name, side in (("dst", self.dst), ("src", self.src)):
            if not is_alive(side.keep):  # since it was checked
                freed = f"{self.function}: {name} is in memory that was freed"
                return ACL_ERROR_RT_PARAM_INVALID, freed
        self.replay()
        return OK

    def replay(self) -> None:
        """Copy, without a look at whether the memory lives."""
        _runtime.move(self.dst.address, self.src.address, self.nbytes)

    def owners(self) -> list[tuple[str, Any]]:
        """Owners that keep either side alive, by name."""
        return [("dst", self.dst.keep), ("src", self.src.keep)]

    def frozen(self) -> str:
        """The copy as a line."""
        return (
            f"{self.function}(dst={self.dst.address:#x}, src={self.src.address:#x}, "
            f"{self.nbytes} bytes)"
        )


class Rows(Copy):
    """A copy of rows."""

    kind = "MEMCPY_2D_ASYNC"
    width: int
    height: int
    pitches: tuple[int, int]

    def replay(self) -> None:
        """Copy, without a look at whether the memory lives."""
        (to, start), width = self.pitches, self.width
        for row in range(self.height if width else 0):
            _runtime.move(self.dst.address + row * to, self.src.address + row * start, width)


def _shown(value: Any) -> str:
    return hex(value) if as_int(value) is not None else shown(value)


def _count(name: str, value: Any) -> int:
    number = as_int(value)
    if number is None or number < 0:
        raise ValueError(f"{name} is {shown(value)}, must be an int that is not negative")
    return number
