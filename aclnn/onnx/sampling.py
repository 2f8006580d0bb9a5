"""Samples of arrays between their elements, and of regions: GridSample, DeformConv, RoiAlign and MaxRoiPool."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from aclnn.api import functional
from aclnn.onnx.numpy_forms import as_step
from aclnn.onnx.steps import Form, Step

ours: Any = functional  # whose names are made from declarations
MODES = {
    "bilinear": "linear",
    "bicubic": "cubic",
    "linear": "linear",
    "cubic": "cubic",
    "nearest": "nearest",
}
CUBIC = -0.75


class Beyond(NamedTuple):
    """The values beyond the ends of an axis.

    Attributes
    ----------
    mode : {'zeros', 'border', 'reflection'}
    low, high : float
        Where an axis is reflected.
    size : int
    """

    mode: str
    low: float
    high: float
    size: int

    def reflected(self, at: Any) -> Any:
        span = 2 * (self.high - self.low)
        if not span:
            return at * 0.0
        far = ours.abs(at - self.low)
        within = far - ours.floor(far / span) * span
        return ours.minimum(within, span - within) + self.low

    def moved(self, at: Any) -> Any:
        """Positions inside the axis, unless nothing is beyond it."""
        if self.mode == "border":
            return ours.clamp(at, 0.0, float(self.size - 1))
        return self.reflected(at) if self.mode == "reflection" else at

    def element(self, at: Any) -> tuple[Any, Any]:
        """The elements at whole positions, and where there are any, None for everywhere."""
        index = self.reflected(at) if self.mode == "reflection" else at
        near = ours.clamp(index, 0.0, float(self.size - 1))
        seen = ours.eq(near, index).astype(at.dtype) if self.mode == "zeros" else None
        return near.astype(np.int64), seen


def _cubic_weights(t: Any) -> list[Any]:
    a = CUBIC

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1.0

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]


def _taps(at: Any, mode: str, beyond: Beyond) -> list[tuple[Any, Any]]:
    """The elements of an axis that samples are made of, and their weights; None for one."""
    at = ours.where(ours.eq(at, at), at, -1.0)  # what is no number is before the first element
    if mode == "nearest":
        return [beyond.element(beyond.moved(ours.round(at)))]
    if mode == "linear":  # of cubic ones each element is moved, as PyTorch has it
        at = beyond.moved(at)
    first = ours.floor(at)
    part = at - first
    weights = [1.0 - part, part] if mode == "linear" else _cubic_weights(part)
    found = []
    for shift, weight in enumerate(weights, 0 if mode == "linear" else -1):
        index, seen = beyond.element(first + float(shift))
        found.append((index, weight if seen is None else weight * seen))
    return found


def sampled(x: Any, at: Sequence[Any], mode: str, beyond: Sequence[Beyond]) -> Any:
    """Samples of an array ``[batch, channel, *axes]`` at positions ``[batch, sample]`` of each axis.

    Returns
    -------
    array
        ``[batch, channel, sample]``.
    """
    batch, channels, *sizes = x.shape
    flat = x.reshape(batch, channels, math.prod(sizes))
    every = [_taps(one, mode, end) for one, end in zip(at, beyond, strict=True)]
    count, made = at[0].shape[1], None
    for taps in itertools.product(*every):
        index = reduce(
            lambda so_far, one: so_far * one[1] + one[0],
            zip([position for position, _ in taps[1:]], sizes[1:], strict=True),
            taps[0][0],
        )
        wide = index.reshape(batch, 1, count).broadcast_to((batch, channels, count))
        values = ours.gather(flat, 2, wide)
        weights = [weight for _, weight in taps if weight is not None]
        if weights:
            weight = reduce(lambda a, b: a * b, weights).reshape(batch, 1, count)
            values = values * weight
        made = values if made is None else made + values
    return made


def _grid_sample(step: Step) -> Any:
    x, grid = step.inputs
    mode = MODES.get(step.attribute("mode", "linear" if step.opset >= 20 else "bilinear"))
    padding, aligned = step.attribute("padding_mode", "zeros"), step.attribute("align_corners", 0)
    axes = x.ndim - 2
    if mode is None or padding not in ("zeros", "border", "reflection"):
        raise step.refused(f"mode {step.attribute('mode')} with {padding} is not supported")
    if axes < 1 or grid.ndim != x.ndim or grid.shape[-1] != axes or grid.shape[0] != x.shape[0]:
        raise step.refused(f"a grid {list(grid.shape)} does not fit {list(x.shape)}")
    if min(x.shape[2:]) < 1:
        raise step.refused(f"{list(x.shape)} has no elements to sample")
    kind = np.float64 if np.dtype(x.dtype) == np.float64 else np.float32
    count = math.prod(grid.shape[1:-1])
    places = grid.astype(kind).reshape(grid.shape[0], count, axes)
    at, beyond = [], []
    for axis, size in enumerate(x.shape[2:]):
        own = places[..., axes - 1 - axis]  # the last axis comes first
        if aligned:
            at.append((own + 1.0) * (0.5 * (size - 1)))
            beyond.append(Beyond(padding, 0.0, size - 1.0, size))
        else:
            at.append(((own + 1.0) * float(size) - 1.0) * 0.5)
            beyond.append(Beyond(padding, -0.5, size - 0.5, size))
    wide = x if mode == "nearest" and padding != "zeros" else x.astype(kind)
    made = sampled(wide, at, mode, beyond)
    return made.reshape(x.shape[0], x.shape[1], *grid.shape[1:-1]).astype(x.dtype)


def _deformed_convolution(step: Step) -> Any:
    x, weight, offset, bias, mask = (step.given(index) for index in range(5))
    if x.ndim != 4:
        raise step.refused(f"inputs of {x.ndim} dimensions are not supported, only images")
    groups, parts = step.attribute("group", 1), step.attribute("offset_group", 1)
    batch, channels, *sizes = x.shape
    kernel, results = weight.shape[2:], offset.shape[2:]
    taps = math.prod(kernel)
    if channels % parts or channels != weight.shape[1] * groups or weight.shape[0] % groups:
        raise step.refused(f"{groups} groups and {parts} of offsets do not fit {channels} channels")
    if offset.shape[1] != 2 * parts * taps:
        raise step.refused(f"offsets {list(offset.shape)} do not fit windows {list(kernel)}")
    strides, dilations = step.attribute("strides", (1, 1)), step.attribute("dilations", (1, 1))
    pads = step.attribute("pads", (0, 0, 0, 0))
    moves = offset.reshape(batch * parts, taps, 2, *results)
    at = []
    for axis in range(2):
        begins = np.arange(results[axis]) * strides[axis] - pads[axis]
        own = np.arange(kernel[axis]) * dilations[axis]
        tap = own.reshape(-1, 1) if axis == 0 else own.reshape(1, -1)
        tap = np.broadcast_to(tap, kernel).reshape(taps, 1, 1)
        grid = begins.reshape(-1, 1) if axis == 0 else begins.reshape(1, -1)
        whole = np.ascontiguousarray(np.broadcast_to(tap + grid, (taps, *results)))
        made = moves[:, :, axis] + whole.astype(x.dtype)
        at.append(made.reshape(batch * parts, taps * math.prod(results)))
    beyond = [Beyond("zeros", 0.0, size - 1.0, size) for size in sizes]
    image = x.reshape(batch * parts, channels // parts, *sizes)
    found = sampled(image, at, "linear", beyond)
    found = found.reshape(batch, parts, channels // parts, taps, math.prod(results))
    if mask is not None:
        found = found * mask.reshape(batch, parts, 1, taps, math.prod(results))
    each = channels // groups * taps
    columns = found.reshape(batch, groups, each, math.prod(results))
    rows = weight.reshape(1, groups, weight.shape[0] // groups, each)
    made = ours.matmul(rows, columns).reshape(batch, weight.shape[0], *results)
    return made if bias is None else made + bias.reshape(1, -1, 1, 1)


# --- Regions ----------------------------------------------------------------------------------------


def _weights_of_bins(
    begin: float, length: float, bins: int, ratio: int, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples of the bins of a region along an axis: two elements for each and the weight of the second.

    Samples that are beyond the axis have the element -1.
    """
    each = length / bins
    count = ratio if ratio > 0 else max(math.ceil(each), 0)
    at = begin + each * (np.arange(bins)[:, None] + (np.arange(count) + 0.5) / max(count, 1))
    is_beyond = (at < -1) | (at > size)
    at = at.clip(0, size - 1)
    low = np.floor(at).astype(np.int64)
    return np.where(is_beyond, -1, low), np.minimum(low + 1, size - 1), at - low


def _rows_of_bins(low: np.ndarray, high: np.ndarray, part: np.ndarray, size: int) -> np.ndarray:
    """The samples of bins as matrices: what each element of an axis weighs in the mean of a bin."""
    bins, count = low.shape
    made = np.zeros((bins, size))
    row = np.broadcast_to(np.arange(bins)[:, None], low.shape)
    seen = (low >= 0) / max(count, 1)
    np.add.at(made, (row, np.maximum(low, 0)), (1 - part) * seen)
    np.add.at(made, (row, high), part * seen)
    return made


def _largest_of_bins(image: np.ndarray, rows: Any, columns: Any) -> np.ndarray:
    """The largest weighted element of the samples of each bin."""
    (low_y, high_y, part_y), (low_x, high_x, part_x) = rows, columns
    made = None
    for y, weight_y in ((np.maximum(low_y, 0), 1 - part_y), (high_y, part_y)):
        for x, weight_x in ((np.maximum(low_x, 0), 1 - part_x), (high_x, part_x)):
            values = image[:, y[:, None, :, None], x[None, :, None, :]]
            seen = (low_y >= 0)[:, None, :, None] & (low_x >= 0)[None, :, None, :]
            weight = weight_y[:, None, :, None] * weight_x[None, :, None, :] * seen
            one = values * weight
            made = one if made is None else np.maximum(made, one)
    assert made is not None
    return made.max((-1, -2), initial=-np.inf) if made.size else np.zeros(made.shape[:3])


def _roi_align(step: Step) -> Any:
    x, regions, batches = step.inputs
    mode, ratio = step.attribute("mode", "avg").lower(), step.attribute("sampling_ratio", 0)
    rows, columns = step.attribute("output_height", 1), step.attribute("output_width", 1)
    factor = step.attribute("spatial_scale", 1.0)
    default = "half_pixel" if step.opset >= 16 else "output_half_pixel"
    is_half = step.attribute("coordinate_transformation_mode", default).lower() == "half_pixel"
    if mode not in ("avg", "max") or x.ndim != 4 or regions.ndim != 2 or regions.shape[1] != 4:
        raise step.refused(
            f"mode {mode} on {list(x.shape)} and {list(regions.shape)} is not supported"
        )

    def aligned(x: np.ndarray, regions: np.ndarray, batches: np.ndarray) -> np.ndarray:
        made = np.empty((len(regions), x.shape[1], rows, columns), np.float64)
        for index, (region, batch) in enumerate(
            zip(regions.astype(np.float64), batches, strict=True)
        ):
            left, top, right, bottom = region * factor - (0.5 if is_half else 0.0)
            width, height = right - left, bottom - top
            if not is_half:
                width, height = max(width, 1.0), max(height, 1.0)
            of_rows = _weights_of_bins(top, height, rows, ratio, x.shape[2])
            of_columns = _weights_of_bins(left, width, columns, ratio, x.shape[3])
            image = x[batch]
            if mode == "max":
                made[index] = _largest_of_bins(image, of_rows, of_columns)
                continue
            by_row = _rows_of_bins(*of_rows, x.shape[2]).astype(np.float32)
            by_column = _rows_of_bins(*of_columns, x.shape[3]).astype(np.float32)
            made[index] = by_row @ image.astype(np.float32) @ by_column.T
        return made

    shape = (regions.shape[0], x.shape[1], rows, columns)
    return as_step(step, aligned, [x, regions, batches], shape, x.dtype)


def _bounds_of_bins(begin: int, end: int, bins: int, size: int) -> list[slice]:
    """The elements of each bin of a region, both of whose ends are part of it."""
    each = np.float32(max(end - begin + 1, 1)) / np.float32(bins)
    at = np.arange(bins, dtype=np.float32)
    low, high = np.floor(at * each), np.ceil((at + 1) * each)
    ends = [np.clip(one.astype(np.int64) + begin, 0, size).tolist() for one in (low, high)]
    return [slice(*one) for one in zip(*ends, strict=True)]


def _max_roi_pool(step: Step) -> Any:
    x, regions = step.inputs
    sizes, factor = step.required("pooled_shape"), step.attribute("spatial_scale", 1.0)
    fits = x.ndim == 4 and regions.ndim == 2 and regions.shape[1] == 5 and len(sizes) == 2
    if not fits or min(sizes) < 1:
        raise step.refused(
            f"bins {list(sizes)} of {list(x.shape)} and {list(regions.shape)} are not supported"
        )

    def pooled(x: np.ndarray, regions: np.ndarray) -> np.ndarray:
        made = np.zeros((len(regions), x.shape[1], *sizes), x.dtype)
        for index, region in enumerate(regions):
            batch = int(region[0])
            if not 0 <= batch < len(x):
                raise step.refused(f"an image is {batch}, must be from 0 to {len(x) - 1}")
            # Half a unit is rounded away from zero.
            left, top, right, bottom = (
                int(math.copysign(math.floor(abs(one) * factor + 0.5), one))
                for one in region[1:].tolist()
            )
            rows = _bounds_of_bins(top, bottom, sizes[0], x.shape[2])
            columns = _bounds_of_bins(left, right, sizes[1], x.shape[3])
            for y, x_, of_row, of_column in [
                (y, x_, rows[y], columns[x_]) for y in range(sizes[0]) for x_ in range(sizes[1])
            ]:
                bin_ = x[batch, :, of_row, of_column]
                if bin_.size:
                    made[index, :, y, x_] = bin_.max((1, 2))
        return made

    return as_step(step, pooled, [x, regions], (regions.shape[0], x.shape[1], *sizes), x.dtype)


SAMPLING: dict[str, Form] = {
    "GridSample": _grid_sample,
    "DeformConv": _deformed_convolution,
    "RoiAlign": _roi_align,
    "MaxRoiPool": _max_roi_pool,
}
