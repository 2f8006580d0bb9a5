"""Products by weights of few bits, which stay so in memory, and of rows of several weights each.

A plan has a weight's integers of four or eight bits, or its floats of eight, its scales and its offsets; numbers are
made of them while they are multiplied. Integers of two bits take four.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aclnn.api import functional
from aclnn.tracing.opaque import of_kernel

ours: Any = functional  # whose names are made from declarations
EVERY_BITS = (2, 4, 8)
FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_SIZES = 1  # how a list of groups is given: by their numbers of rows
_ROWS = 1  # what groups are of
# What was made of arrays, as long as these are there: plans of a model share it.
_KEPT: dict[tuple[Any, ...], tuple[weakref.ref[np.ndarray], Any]] = {}


def kept(source: np.ndarray, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """The result of a function of an array, made once for as long as the array is there."""
    whole = (id(source), *key)
    found = _KEPT.get(whole)
    if found is not None and found[0]() is source:
        return found[1]
    made = make()
    _KEPT[whole] = weakref.ref(source, lambda _: _KEPT.pop(whole, None)), made
    return made


@dataclass(frozen=True, slots=True)
class FewBits:
    """A weight, or several of one size.

    Attributes
    ----------
    integers : array
        ``[..., n, k]`` of int8, or ``[..., n, k / 2]`` of uint8, each with two signed integers of four bits.
        Bytes of floats are int8, too.
    scales : array
        ``[..., n, groups]`` of float32.
    offsets : array or None
        What is added to integers before they are scaled, as scales.
    block : int
        Elements of k that share a scale.
    k : int
    floats : str or None
        The dtype of the floats whose bytes the integers are.
    """

    integers: np.ndarray
    scales: np.ndarray
    offsets: np.ndarray | None
    block: int
    k: int
    floats: str | None = None

    @property
    def n(self) -> int:
        return int(self.integers.shape[-2])

    @property
    def halves(self) -> bool:
        return self.integers.dtype == np.uint8

    @property
    def factors(self) -> list[np.ndarray]:
        """Scales and offsets as the kernel has them: ``[weight, group, column]``."""
        every = [one for one in (self.scales, self.offsets) if one is not None]
        return [np.swapaxes(one.reshape(-1, *one.shape[-2:]), 1, 2) for one in every]

    @property
    def names(self) -> tuple[str, ...]:
        return ("antiquant_scale", "antiquant_offset")[: len(self.factors)]


def unpacked(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """Integers of few bits along the last axis, the first in the lowest bits of a byte.

    >>> unpacked(np.uint8([0x21, 0x43]), 4, 3)
    array([1, 2, 3], dtype=uint8)
    """
    if bits == 8:
        return packed[..., :count]
    each = 8 // bits
    shifts = np.arange(each, dtype=np.uint8) * bits
    found = (packed[..., None] >> shifts) & np.uint8(2**bits - 1)
    return found.reshape(*packed.shape[:-1], -1)[..., :count]


def paired(integers: np.ndarray) -> np.ndarray:
    """Signed integers of four bits, two in each byte along the last axis.

    >>> paired(np.int8([1, -1])).tolist()
    [241]
    """
    low, high = (integers[..., n::2].astype(np.uint8) & np.uint8(15) for n in range(2))
    return low | (high << np.uint8(4))


def few_bits(
    packed: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None, bits: int, block: int, k: int
) -> FewBits:  # fmt: skip
    """A weight of unsigned integers as ONNX Runtime's operators have it.

    Parameters
    ----------
    packed : array
        ``[..., n, bytes]`` of uint8: integers of `bits`, the first in the lowest bits.
    scales : array
        ``[..., n, groups]``.
    zeros : array or None
        As scales; or of uint8, packed as the weight is. None: the middle.
    """
    lead, groups = packed.shape[:-1], -(-k // block)
    middle = 2 ** (bits - 1)
    integers: np.ndarray
    if bits == 8:
        integers = (packed[..., :k] ^ np.uint8(128)).view(np.int8)
    elif bits == 4:
        integers = packed[..., : k // 2] ^ np.uint8(0x88)
    else:
        integers = paired(unpacked(packed, bits, k).astype(np.int8) - 8)
    centre = max(middle, 8)  # of the signed integers that the weight has now
    offsets = None
    if zeros is not None:
        if zeros.dtype == np.uint8:
            zeros = unpacked(zeros.reshape(*lead, -1), bits, groups)
        offsets = np.float32(centre) - zeros.reshape(*lead, groups).astype(np.float32)
    elif centre != middle:
        offsets = np.full((*lead, groups), centre - middle, np.float32)
    wide = np.ascontiguousarray(scales.reshape(*lead, groups).astype(np.float32, copy=False))
    return FewBits(integers, wide, offsets, block, k)


def of_scales(
    integers: np.ndarray, scales: np.ndarray, zeros: np.ndarray | None, axis: int, block: int
) -> FewBits | None:  # fmt: skip
    """A weight ``[k, n]`` as DequantizeLinear has it; None for what the kernel does not have.

    Parameters
    ----------
    integers : array
        Of int8, uint8, float8, or of four bits.
    scales, zeros : array
        Of a tensor; of its columns, along `axis` 1; or of blocks of k, along `axis` 0.
    """
    name, (k, n) = integers.dtype.name, integers.shape
    is_float = name in FLOATS
    if not is_float and (k % 2 or name not in ("int8", "uint8", "int4", "uint4")):
        return None
    if scales.ndim == 2:
        if axis != 0 or block < 2 or scales.shape != (-(-k // block), n):
            return None
    elif scales.size != 1 and (axis != 1 or scales.shape != (n,)):
        return None
    else:
        block, scales = k, np.broadcast_to(scales.reshape(1, -1), (1, n))
        zeros = None if zeros is None else np.broadcast_to(zeros.reshape(1, -1), (1, n))
    wide = np.ascontiguousarray(scales.T.astype(np.float32))
    if is_float:  # whose zero is 0
        return FewBits(np.ascontiguousarray(integers.view(np.int8).T), wide, None, block, k, name)
    centre = {"uint8": 128, "uint4": 8}.get(name, 0)
    rows = integers.T.astype(np.int16) - centre
    own = rows.astype(np.int8) if name in ("int8", "uint8") else paired(rows.astype(np.int8))
    offsets = None
    if zeros is not None or centre:
        middle = np.zeros((), np.float32) if zeros is None else zeros.T.astype(np.float32)
        offsets = np.ascontiguousarray(np.broadcast_to(centre - middle, scales.T.shape))
        offsets = offsets.astype(np.float32)
    return FewBits(np.ascontiguousarray(own), wide, offsets, block, k)


def product(x: Any, weight: FewBits) -> Any:
    """The product of rows and a weight, ``[..., n]``."""
    rows = x.reshape(math.prod(x.shape[:-1]), weight.k)
    made = of_kernel(
        "quantized_product", rows, weight.integers.T, *weight.factors,
        shape=(rows.shape[0], weight.n), dtype=x.dtype, present=weight.names,
        group_size=weight.block if weight.block < weight.k else 0,
        nibbles="k" if weight.halves else None, floats8=weight.floats,
    )  # fmt: skip
    return made.reshape(*x.shape[:-1], weight.n)


def product_of_groups(rows: Any, weight: FewBits | Any, counts: Any) -> Any:
    """Rows, sorted by weights of which each has so many, times the weight of each.

    Parameters
    ----------
    rows : array
        ``[row, k]``.
    weight : FewBits or array
        Of floats ``[weight, n, k]``.
    counts : array
        Of int64 ``[weight]``.
    """
    if not isinstance(weight, FewBits):
        columns = weight.transpose(0, 2, 1)
        return of_kernel(
            "quantized_product", rows, columns, counts, shape=(rows.shape[0], weight.shape[1]),
            dtype=rows.dtype, present=("groups",), along=_ROWS, list_kind=_SIZES,
        )  # fmt: skip
    return of_kernel(
        "quantized_product", rows, np.swapaxes(weight.integers, 1, 2), *weight.factors, counts,
        shape=(rows.shape[0], weight.n), dtype=rows.dtype, present=(*weight.names, "groups"),
        along=_ROWS, list_kind=_SIZES, group_size=weight.block if weight.block < weight.k else 0,
        nibbles="k" if weight.halves else None,
    )  # fmt: skip
