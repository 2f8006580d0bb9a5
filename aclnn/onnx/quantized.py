"""Products and convolutions of quantised integers, exact, and what becomes of their sums.

Sums of products are of 32 bits, by the integer product of this package, or in single precision where that
holds every sum. A sum becomes a result by one multiplication in double precision and one rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from aclnn import isa
from aclnn.acl.errors import invalid
from aclnn.api import functional
from aclnn.tracing.array import TracedArray
from aclnn.tracing.opaque import call

ours: Any = functional  # whose names are made from declarations
BYTES = ("int8", "uint8")
NIBBLES = ("int4", "uint4", "int2", "uint2")
MIDDLE = 128  # what is taken from uint8, so that it fits into int8
MOST_EXACT = 2**24  # below which single precision holds every integer
LEAST_TAPS = 16  # of a convolution that is a product of bytes: its weights stay bytes
ONE = np.ones(1, np.float32)


class Integers(NamedTuple):
    """A quantised array as int8, and what stands for zero in it."""

    array: Any
    zero: Any  # a number, or an array that broadcasts


def integers(array: Any, zero: Any) -> Integers:
    """A quantised array as int8: its zero is a number where it is known and one."""
    dtype = np.dtype(array.dtype)
    shift = MIDDLE if dtype == np.uint8 else 0
    if shift or dtype.name in NIBBLES:
        wide = array.astype(np.int32)
        array = (ours.sub(wide, shift) if isinstance(wide, TracedArray) else wide - shift).astype(
            np.int8
        )
    return Integers(array, _shifted(zero, shift))


def _shifted(zero: Any, shift: int) -> Any:
    if zero is None:
        return -shift
    if isinstance(zero, TracedArray):
        return ours.sub(zero.astype(np.int32), shift)
    wide = np.asarray(zero).astype(np.int32) - shift
    same = wide.size and (wide == wide.reshape(-1)[0]).all()
    return int(wide.reshape(-1)[0]) if same else wide


def _sum(array: Any, axis: int) -> Any:
    """Sums of int8 along an axis, which stays, as int32."""
    if not isinstance(array, TracedArray):
        return np.asarray(array).sum(axis, dtype=np.int32, keepdims=True)
    return ours.sum(array.astype(np.int32), [axis], True).astype(np.int32)


def _times(one: Any, other: Any) -> Any:
    """A product of int32 of numbers, constants and traced arrays."""
    return one * other if isinstance(one, TracedArray) else other * one


def product(a: Integers, b: Integers) -> Any:
    """The product of matrices from their zeros on, in int32.

    The zero of `a` may be that of rows, in a column; that of `b` one of columns, in a row.
    """
    length = a.array.shape[-1]
    columns: Any = 0
    if not _is_none(a.zero):
        own = _sum(b.array, -2) - _times(b.zero, length)
        columns = _times(own, a.zero)
    fits = isinstance(columns, np.ndarray) and columns.size == b.array.shape[-1]
    bias = -columns.reshape(-1).astype(np.int32) if fits else None
    made = ours.quant_matmul(a.array, b.array, ONE, output_dtype=np.int32, bias=bias)
    if bias is None and not _is_none(columns):
        made = ours.sub(made, columns)
    if not _is_none(b.zero):
        made = ours.sub(made, _times(_sum(a.array, -1), b.zero))
    return made


def _is_none(zero: Any) -> bool:
    return isinstance(zero, int) and zero == 0


class Geometry(NamedTuple):
    """Steps and margins of a convolution, and its groups."""

    strides: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    dilations: Sequence[int]
    groups: int


class Sums(NamedTuple):
    """Sums of int32 of a convolution, and what is to be taken from those of each channel; None for nothing."""

    array: Any
    less: Any

    def whole(self) -> Any:
        """The sums without what is to be taken from them."""
        if self.less is None:
            return self.array
        return ours.sub(self.array, self.less.reshape(-1, *(1,) * (self.array.ndim - 2)))


def convolution(x: Integers, weight: Integers, geometry: Geometry) -> Sums:
    """A convolution of integers from their zeros on; margins are zeros.

    The zero of `weight` may be one for each of its channels.
    """
    taps = math.prod(weight.array.shape[1:])
    plain = geometry.groups == 1 and x.array.ndim == 4 and isinstance(x.zero, int)
    if plain and _is_none(weight.zero) and taps >= LEAST_TAPS:
        return _by_columns(x, weight, geometry)
    if taps * _reach(x.zero) * _reach(weight.zero) < MOST_EXACT:
        return Sums(_by_floats(x, weight, geometry), None)
    return Sums(_by_parts(x, weight, geometry), None)


def _reach(zero: Any) -> int:
    """The largest distance of an int8 from a zero."""
    return 128 + abs(zero) if isinstance(zero, int) else 255


def _floats(quantised: Integers) -> Any:
    """Integers from their zero on, in single precision."""
    wide, zero = quantised.array.astype(np.float32), quantised.zero
    if _is_none(zero):
        return wide
    if not isinstance(zero, int):
        is_one = math.prod(zero.shape) == 1
        zero = zero.astype(np.float32).reshape(() if is_one else (-1, *(1,) * (wide.ndim - 1)))
    return wide - zero


def _by_floats(x: Integers, weight: Integers, geometry: Geometry) -> Any:
    left, before = _floats(x), geometry.before
    if list(before) != list(geometry.after):
        left, before = padded(left, geometry, 0.0), (0,) * len(before)
    options = (tuple(geometry.strides), tuple(before), tuple(geometry.dilations))
    made = ours.convolution(left, _floats(weight), None, *options, groups=geometry.groups)
    return made.astype(np.int32)


def padded(x: Any, geometry: Geometry, value: Any) -> Any:
    """An array with the margins of a convolution."""
    ends = [*zip(geometry.before, geometry.after, strict=True)]
    if not any(before or after for before, after in ends):
        return x
    return ours.constant_pad_nd(x, [n for pair in reversed(ends) for n in pair], value)


def _by_columns(x: Integers, weight: Integers, geometry: Geometry) -> Sums:
    """One product of matrices: what each result is made of stands in a column."""
    left = padded(x.array, geometry, x.zero)
    kernel, sizes = weight.array.shape[2:], left.shape[2:]
    rows = weight.array.reshape(weight.array.shape[0], math.prod(weight.array.shape[1:]))
    made = [
        (size - (k - 1) * d - 1) // s + 1
        for size, k, d, s in zip(sizes, kernel, geometry.dilations, geometry.strides, strict=True)
    ]
    if math.prod(kernel) == 1:
        steps = tuple([slice(None, None, s) for s in geometry.strides])
        columns = left[(slice(None), slice(None), *steps)]
        columns = columns.reshape(left.shape[0], left.shape[1], math.prod(made))
    else:
        columns = ours.im2col(left, kernel, geometry.dilations, (0, 0), geometry.strides)
    sums = ours.quant_matmul(rows, columns, ONE, output_dtype=np.int32)
    less = None if _is_none(x.zero) else _times(_sum(rows, -1), x.zero)
    return Sums(sums.reshape(left.shape[0], rows.shape[0], *made), less)


def _by_parts(x: Integers, weight: Integers, geometry: Geometry) -> Any:
    """Sums over so few channels at a time that single precision holds them."""
    taps = math.prod(weight.array.shape[2:])
    own, channels = weight.array.shape[1], weight.array.shape[0] // geometry.groups
    each = (MOST_EXACT - 1) // (taps * _reach(x.zero) * _reach(weight.zero))
    if not each:
        raise invalid(f"windows of {taps} elements are not supported")
    alone, groups = geometry._replace(groups=1), []
    for group in range(geometry.groups):
        rows = slice(group * channels, (group + 1) * channels)
        zero = weight.zero
        of_rows = isinstance(zero, np.ndarray | TracedArray) and zero.ndim == 1
        zero = zero[rows] if of_rows and zero.shape[0] > 1 else zero
        made: Any = None
        for begin in range(0, own, each):
            end = min(begin + each, own)
            part = Integers(x.array[:, group * own + begin : group * own + end], x.zero)
            found = _by_floats(part, Integers(weight.array[rows, begin:end], zero), alone)
            made = found if made is None else ours.add(made, found)
        groups.append(made)
    return groups[0] if len(groups) == 1 else ours.cat(groups, 1)


class _OfChannels:
    """A step that makes bytes of the sums of images' channels, which it passes over once."""

    __name__ = "requantize"

    def __init__(self, less: Any, scale: Any, shift: Any, limits: tuple[float, float], zero: int):
        self._less = np.ascontiguousarray(less, np.int32)
        self._scale, self._shift = (np.ascontiguousarray(one, np.float64) for one in (scale, shift))
        self._numbers = (limits[0] - zero, limits[1] - zero, float(zero))

    def __call__(self, sums: np.ndarray, out: np.ndarray) -> None:
        sums, made = np.ascontiguousarray(sums), np.ascontiguousarray(out)
        rows, channels = sums.shape[:2]
        isa.quantized_kernels().requantize(
            sums.ctypes.data, self._less.ctypes.data, self._scale.ctypes.data,
            self._shift.ctypes.data, rows, channels, math.prod(sums.shape[2:]), *self._numbers,
            made.ctypes.data,
        )  # fmt: skip
        if made is not out:
            out[...] = made


def _spread(numbers: Any, channels: int) -> np.ndarray | None:
    """Constant numbers for each channel of images; None for others."""
    if isinstance(numbers, TracedArray):
        return None
    wide = np.asarray(0 if numbers is None else numbers)
    if wide.size not in (1, channels) or not np.isfinite(wide).all():
        return None
    return np.broadcast_to(wide.reshape(-1), channels)


def requantized(
    sums: Any, scale: Any, shift: Any, zero: Any, kind: Any,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Any:  # fmt: skip
    """Sums as quantised integers: ``round(sums * scale + shift) + zero``, within limits of real results.

    Parameters
    ----------
    sums : array or Sums
        Of int32.
    scale, shift : float or array of float64
        Arrays broadcast; a shift may be None.
    zero : int or array
        Limits suit an int alone.
    kind : dtype
        Of the result.
    limits : pair of float
        Of results before they are quantised, in units of their scale.
    """
    info = np.iinfo(kind)
    if isinstance(sums, Sums):
        found = _in_one_step(sums, scale, shift, zero, kind, limits)
        if found is not None:
            return found
        sums = sums.whole()
    made = sums.astype(np.float64) * scale
    if shift is not None:
        made = made + shift
    made = ours.round(made)
    if isinstance(zero, int):
        low, high = _bounds(info, limits, zero)
        made = made + float(zero) if zero else made
    else:
        low, high = float(info.min), float(info.max)
        made = made + zero.astype(np.float64)
    return ours.clamp(made, low, max(low, high)).astype(np.int32).astype(kind)


def _in_one_step(
    sums: Sums, scale: Any, shift: Any, zero: Any, kind: Any, limits: tuple[float, float]
) -> Any:
    """The same of images whose numbers are constants; None of others."""
    array, channels = sums.array, sums.array.shape[1]
    less, scales, shifts = (_spread(one, channels) for one in (sums.less, scale, shift))
    if not isinstance(array, TracedArray) or less is None or scales is None or shifts is None:
        return None
    if not isinstance(zero, int):
        if isinstance(zero, TracedArray) or np.size(zero) != 1:
            return None
        zero = int(np.reshape(zero, -1)[0])
    low, high = _bounds(np.iinfo(kind), limits, zero)
    step = _OfChannels(less, scales, shifts, (low, max(low, high)), zero)
    return call(step, array, shape=array.shape, dtype=kind)


def _bounds(info: Any, limits: tuple[float, float], zero: int) -> tuple[float, float]:
    """The least and greatest results."""
    low = max(float(info.min), _rounded(limits[0]) + zero)
    return low, min(float(info.max), _rounded(limits[1]) + zero)


def _rounded(limit: float) -> float:
    return limit if math.isinf(limit) else float(np.rint(limit))
