"""Pools: by the operators of images where those have what a node says, else axis by axis.

Largest elements and sums are taken along one axis after the other, so that windows of any rank, dilation
and margin need as many steps as their sides are long together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from aclnn.acl.errors import AclnnError
from aclnn.api import functional
from aclnn.onnx.numpy_forms import as_step
from aclnn.onnx.steps import Form, Step, margins

ours: Any = functional  # whose names are made from declarations


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of a pooling operator: their sizes, steps and margins."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    ceil: bool

    @classmethod
    def of(cls, step: Step) -> Windows:
        x, sizes = step.inputs[0], tuple(step.required("kernel_shape"))
        axes = x.ndim - 2
        if axes < 1 or len(sizes) != axes:
            raise step.refused(f"windows {list(sizes)} do not fit {x.ndim} dimensions")
        ones = (1,) * axes
        strides, dilations = step.attribute("strides", ones), step.attribute("dilations", ones)
        for name, numbers in (
            ("kernel_shape", sizes),
            ("strides", strides),
            ("dilations", dilations),
        ):
            if len(numbers) != axes or min(numbers) < 1:
                raise step.refused(f"{name} is {list(numbers)}, must be {axes} numbers from 1 on")
        reach = [(k - 1) * d + 1 for k, d in zip(sizes, dilations, strict=True)]
        before, after = margins(step, x.shape[2:], reach)
        if len(before) != axes or len(after) != axes or min((*before, *after)) < 0:
            raise step.refused(f"pads {[*before, *after]} do not fit {axes} axes")
        return cls(
            sizes, tuple(strides), tuple(dilations), tuple(before), tuple(after),
            bool(step.attribute("ceil_mode", 0)),
        )  # fmt: skip

    def results(self, axis: int, size: int) -> int:
        """The number of windows of an axis; with `ceil`, of those that begin inside."""
        stride, begin = self.strides[axis], self.before[axis]
        left = size + begin + self.after[axis] - (self.sizes[axis] - 1) * self.dilations[axis] - 1
        if left < 0:
            return 0
        if not self.ceil:
            return left // stride + 1
        count = -(-left // stride) + 1
        return count - 1 if (count - 1) * stride >= size + begin else count

    def places(self, axis: int, size: int) -> np.ndarray:
        """The elements of each window along an axis, those of margins included: [window, tap]."""
        begins = np.arange(self.results(axis, size)) * self.strides[axis] - self.before[axis]
        return begins[:, None] + np.arange(self.sizes[axis]) * self.dilations[axis]


def _folded(x: Any, windows: Windows, fold: Callable[[Any, Any], Any], fill: Any) -> Any:
    """Elements of windows put together, one axis after the other; `fill` stands in margins."""
    for axis, size in enumerate(x.shape[2:]):
        count, stride = windows.results(axis, size), windows.strides[axis]
        before, dilation, taps = windows.before[axis], windows.dilations[axis], windows.sizes[axis]
        last = (count - 1) * stride + (taps - 1) * dilation + 1 if count else 0
        ends = [0] * (2 * x.ndim)
        position = 2 * (x.ndim - 3 - axis)
        ends[position : position + 2] = before, max(0, last - size - before)
        wide = ours.constant_pad_nd(x, ends, fill) if any(ends) else x
        index = [slice(None)] * (axis + 2)
        length = (count - 1) * stride + 1 if count else 0
        parts = [
            wide[(*index, slice(tap * dilation, tap * dilation + length, stride))]
            for tap in range(taps)
        ]
        x = reduce(fold, parts)
    return x


def _lowest(dtype: Any) -> Any:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return False
    return int(np.iinfo(kind).min) if kind.kind in "iu" else -math.inf


def _max_pool(step: Step) -> Any:
    windows, x = Windows.of(step), step.inputs[0]
    made = _of_images(step, windows, _max_of_images)
    if made is None:
        made = _folded(x, windows, ours.maximum, _lowest(x.dtype))
    return made if step.n_outputs == 1 else (made, _places_of_largest(step, windows, made.shape))


def _places_of_largest(step: Step, windows: Windows, shape: Sequence[int]) -> Any:
    """The place of the first largest element of each window in the whole array."""
    x, by_columns = step.inputs[0], step.attribute("storage_order", 0)
    sizes = x.shape[2:]
    every = [windows.places(axis, size) for axis, size in enumerate(sizes)]
    steps = [
        math.prod(sizes[:axis]) if by_columns else math.prod(sizes[axis + 1 :])
        for axis in range(len(sizes))
    ]

    def open_grid(rows: Sequence[np.ndarray]) -> list[Any]:
        axes = len(rows)
        return [row.reshape(-1, *(1,) * (axes - 1 - n)) for n, row in enumerate(rows)]

    def places(x: np.ndarray) -> np.ndarray:
        best = np.empty(shape, x.dtype)
        found = np.full(shape, -1, np.int64)
        for taps in itertools.product(*[range(one.shape[1]) for one in every]):
            at = open_grid([one[:, tap] for one, tap in zip(every, taps, strict=True)])
            near = [p.clip(0, size - 1) for p, size in zip(at, sizes, strict=True)]
            inside = [(p >= 0) & (p < size) for p, size in zip(at, sizes, strict=True)]
            values = x[(slice(None), slice(None), *near)]
            is_better = ((found < 0) | (values > best)) & reduce(np.logical_and, inside)
            own = sum(grid * by for grid, by in zip(near, steps, strict=True))
            np.copyto(best, values, where=is_better)
            np.copyto(found, own, where=is_better)
        planes = np.arange(shape[0] * shape[1]) * math.prod(sizes)
        return found + planes.reshape(*shape[:2], *(1,) * len(sizes))

    return as_step(step, places, [x], shape, np.int64)


def _average_pool(step: Step) -> Any:
    windows, (x,) = Windows.of(step), step.inputs
    made = _of_images(step, windows, _average_of_images)
    if made is not None:
        return made
    if np.dtype(x.dtype).itemsize == 2:  # sums of halves are taken in single precision
        return _averages(step, windows, x.astype(np.float32)).astype(x.dtype)
    return _averages(step, windows, x)


def _averages(step: Step, windows: Windows, x: Any) -> Any:
    sums = _folded(x, windows, ours.add, 0)
    is_counted = bool(step.attribute("count_include_pad", 0))
    counts: Any = np.ones((), x.dtype)
    for axis, size in enumerate(x.shape[2:]):
        places = windows.places(axis, size)
        low = -windows.before[axis] if is_counted else 0
        high = size + windows.after[axis] if is_counted else size
        own = ((places >= low) & (places < high)).sum(1)
        counts = counts[..., None] * own.astype(x.dtype)
    return sums / counts


def _lp_pool(step: Step) -> Any:
    windows, (x,), p = Windows.of(step), step.inputs, step.attribute("p", 2)
    wide = x.astype(np.float32) if np.dtype(x.dtype).itemsize == 2 else x
    if p == 1:
        return _folded(ours.abs(wide), windows, ours.add, 0)
    if p == 2:
        return ours.sqrt(_folded(ours.square(wide), windows, ours.add, 0))
    sums = _folded(ours.pow(ours.abs(wide), float(p)), windows, ours.add, 0)
    return ours.pow(sums, 1.0 / p)


def _global_lp_pool(step: Step) -> Any:
    (x,), p = step.inputs, step.attribute("p", 2)
    wide = x.astype(np.float32) if np.dtype(x.dtype).itemsize == 2 else x
    axes = list(range(2, x.ndim))
    if p == 1:
        return ours.sum(ours.abs(wide), axes, True)
    if p == 2:
        return ours.sqrt(ours.sum(ours.square(wide), axes, True))
    return ours.pow(ours.sum(ours.pow(ours.abs(wide), float(p)), axes, True), 1.0 / p)


# --- By operators of images -------------------------------------------------------------------------


def _of_images(step: Step, windows: Windows, pool: Callable[[Step, Any, Windows], Any]) -> Any:
    """A pool of images, or of lines as images of one row; None where no operator has it."""
    x = step.inputs[0]
    if x.ndim > 4 or any(one != 1 for one in windows.dilations):
        return None
    try:
        if x.ndim == 4:
            return pool(step, x, windows)
        row = Windows(
            (1, *windows.sizes), (1, *windows.strides), (1, *windows.dilations),
            (0, *windows.before), (0, *windows.after), windows.ceil,
        )  # fmt: skip
        made = pool(step, x.reshape(x.shape[0], x.shape[1], 1, x.shape[2]), row)
    except AclnnError:
        return None
    return made.reshape(made.shape[0], made.shape[1], made.shape[3])


def _max_of_images(step: Step, x: Any, windows: Windows) -> Any:
    ends = (*windows.before, *windows.after)
    return ours.max_pool2d(x, windows.sizes, windows.strides, ends, ceil_mode=int(windows.ceil))


def _average_of_images(step: Step, x: Any, windows: Windows) -> Any:
    if windows.before != windows.after:
        raise step.refused("margins that differ before and after are none of images' pools")
    counted = bool(step.attribute("count_include_pad", 0))
    options = (windows.strides, windows.before, windows.ceil, counted)
    return ours.avg_pool2d(x, windows.sizes, *options)


def _of_channels(reduction: str) -> Form:
    """A reduction of all that a channel has."""
    return lambda step: getattr(ours, reduction)(
        step.inputs[0], list(range(2, step.inputs[0].ndim)), True
    )


POOLS: dict[str, Form] = {
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "LpPool": _lp_pool,
    "GlobalMaxPool": _of_channels("amax"),
    "GlobalAveragePool": _of_channels("mean"),
    "GlobalLpPool": _global_lp_pool,
}
