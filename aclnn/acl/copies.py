"""Copies of bytes and settings of them, now or on a stream, which look up every address."""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.acl import _runtime
from aclnn.acl import capture as captures
from aclnn.acl import stream as streams
from aclnn.acl._buffer import Unreadable, memory_of
from aclnn.acl._runtime import Allocation
from aclnn.acl.arguments import as_count, as_int, as_member, shown
from aclnn.acl.constants import ACL_ERROR_RT_PARAM_INVALID, ACL_SUCCESS, aclrtMemcpyKind
from aclnn.acl.errors import AclnnError, NoMemoryError, fail
from aclnn.acl.memory import checked, serves

OK = int(ACL_SUCCESS)

__all__ = [
    "aclrtMemcpy",
    "aclrtMemcpy2d",
    "aclrtMemcpy2dAsync",
    "aclrtMemcpyAsync",
    "aclrtMemset",
    "aclrtMemsetAsync",
]


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
        ACLNN_ERR_RUNTIME_ERROR (361001) when the system has no thread for the stream. While a stream
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
        most, self.nbytes = as_count("maxCount", room), as_count("count", count)
        if self.nbytes > most:
            raise ValueError(f"count is {shown(self.nbytes)}, but maxCount is {shown(most)}")
        byte = as_int(value)
        if byte is None or not -128 <= byte <= 255:
            raise ValueError(f"value is {shown(value)}, must be a byte")
        self.value = byte & 255
        self.dst = _Side(address, self.nbytes, "address", device=True, writable=True)

    def __call__(self) -> int | tuple[int, str]:
        if not serves(self.dst.keep):  # since it was checked
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


class _Side:
    """One side of a copy: where it is, and what keeps it there."""

    def __init__(
        self,
        value: Any,
        nbytes: int,
        what: str,
        *,
        device: bool,
        writable: bool,
        foreign: bool = False,
    ):
        self.keep: Any
        address = as_int(value)
        if address is not None:
            self.address = address
            is_own = foreign and address and not _runtime.is_ours(address)
            self.keep = None if is_own else checked(address, nbytes, what)
            return
        if isinstance(value, Unreadable):
            raise NoMemoryError(value.no_memory())
        if device:
            kind = "null" if value is None else type(value).__name__
            raise ValueError(f"{what} is {kind}, must be an address of aclrtMalloc")
        self.keep, self.address, length, can_write = _host_memory(value, what)
        if length < nbytes:
            raise ValueError(f"{what} has {length} bytes, but count is {shown(nbytes)}")
        if writable and not can_write:
            raise ValueError(f"{what} is read-only")


def _host_memory(value: Any, what: str) -> tuple[Any, int, int, bool]:
    if value is None:
        raise ValueError(f"{what} is null")
    try:
        keep, address, length, writable = memory_of(value, what)
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
        room, self.nbytes = as_count("destMax", destMax), as_count("count", count)
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
        copy.width, copy.height = as_count("width", width), as_count("height", height)
        copy.pitches = as_count("dpitch", dpitch), as_count("spitch", spitch)
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
            if not serves(side.keep):  # since it was checked
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
