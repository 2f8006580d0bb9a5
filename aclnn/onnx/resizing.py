"""Resize: along one axis after the other, by the places that each result is made of and their weights.

Places and weights follow from sizes alone and are constants of a plan. Beyond the ends is the element at
the end, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from aclnn.api import functional
from aclnn.onnx.steps import Form, Step, from_start

ours: Any = functional  # whose names are made from declarations
REACH = {"linear": 1, "cubic": 2}  # elements on each side that a result is made of
MOST_TAPS = 64  # that are added one after the other; more are a product of matrices
ROUNDED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


class Axis(NamedTuple):
    """The sizes of an axis before and after."""

    size: int
    result: int
    scale: float
    begin: float  # of the part that is taken, where the model says so
    end: float


def _places(step: Step, axis: Axis) -> np.ndarray:
    """The position of each result among the elements."""
    mode = step.attribute("coordinate_transformation_mode", "half_pixel")
    at, scale = np.arange(axis.result, dtype=np.float64), axis.scale
    if mode == "asymmetric":
        return at / scale
    if mode == "align_corners":
        span = scale * axis.size - 1
        return at * ((axis.size - 1) / span) if span else np.zeros_like(at)
    if mode == "pytorch_half_pixel":
        return (at + 0.5) / scale - 0.5 if axis.result > 1 else np.full_like(at, 0)
    if mode == "half_pixel_symmetric":
        shift = axis.size / 2 * (1 - axis.result / (scale * axis.size))
        return shift + (at + 0.5) / scale - 0.5
    if mode == "tf_half_pixel_for_nn":
        return (at + 0.5) / scale
    if mode == "tf_crop_and_resize":
        if axis.result == 1:
            return np.full_like(at, (axis.begin + axis.end) * (axis.size - 1) / 2)
        part = (axis.end - axis.begin) * (axis.size - 1) / (axis.result - 1)
        return axis.begin * (axis.size - 1) + at * part
    if mode == "half_pixel":
        return (at + 0.5) / scale - 0.5
    raise step.refused(f"coordinate_transformation_mode {mode} is not supported")


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x**2 + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _taps(step: Step, axis: Axis, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """The elements of each result, and their weights: [result, tap]."""
    at = _places(step, axis)
    if mode == "nearest":
        kind = step.attribute("nearest_mode", "round_prefer_floor")
        if kind not in ROUNDED:
            raise step.refused(f"nearest_mode {kind} is not supported")
        index = ROUNDED[kind](at)[:, None]
        return index.clip(0, axis.size - 1).astype(np.int64), np.ones_like(index)
    if mode not in REACH:
        raise step.refused(f"mode {mode} is not supported")
    reach = float(REACH[mode])
    stretch = max(1.0, 1 / axis.scale) if step.attribute("antialias", 0) else 1.0
    count = 2 * math.ceil(reach * stretch)
    first = np.floor(at) - (count // 2 - 1)
    index = first[:, None] + np.arange(count)
    distance = (at[:, None] - index) / stretch
    if mode == "cubic":
        weights = _cubic(distance, step.attribute("cubic_coeff_a", -0.75))
    else:
        weights = np.clip(1 - np.abs(distance), 0, None)
    inside = (index >= 0) & (index < axis.size)
    if stretch > 1 or step.attribute("exclude_outside", 0):
        is_outside_left = bool(step.attribute("exclude_outside", 0))
        weights = np.where(inside, weights, 0) if is_outside_left else weights
        weights = weights / weights.sum(1, keepdims=True)
    return index.clip(0, axis.size - 1).astype(np.int64), weights


def _along(x: Any, number: int, index: np.ndarray, weights: np.ndarray) -> Any:
    """An array whose axis is made of its elements at places, by weights."""
    if index.shape[1] == 1:
        return ours.gather_v2(x, number, index[:, 0])
    if index.shape[1] > MOST_TAPS:
        return _by_product(x, number, index, weights)
    made: Any = None
    shape = [1] * x.ndim
    shape[number] = index.shape[0]
    for tap in range(index.shape[1]):
        if not weights[:, tap].any():
            continue
        weight = np.ascontiguousarray(weights[:, tap]).astype(x.dtype).reshape(shape)
        part = ours.gather_v2(x, number, np.ascontiguousarray(index[:, tap])) * weight
        made = part if made is None else ours.add(made, part)
    return made


def _by_product(x: Any, number: int, index: np.ndarray, weights: np.ndarray) -> Any:
    matrix = np.zeros((x.shape[number], index.shape[0]))
    np.add.at(matrix, (index, np.arange(index.shape[0])[:, None]), weights)
    order = [n for n in range(x.ndim) if n != number] + [number]
    made = ours.matmul(x.transpose(*order), matrix.astype(x.dtype))
    return made.transpose(*np.argsort(order).tolist())


def _axes(step: Step, x: Any) -> list[Axis]:
    """The sizes of each axis before and after."""
    if step.opset < 11:
        scales, sizes, region = step.constant(1), None, None
    else:
        region, scales, sizes = (step.constant(index) for index in (1, 2, 3))
    scales = None if scales is None or not np.size(scales) else np.asarray(scales, np.float64)
    chosen = step.attribute("axes")
    numbers = [*range(x.ndim)] if chosen is None else [from_start(n, x.ndim) for n in chosen]
    found = [Axis(size, size, 1.0, 0.0, 1.0) for size in x.shape]
    requested = None if sizes is None or not np.size(sizes) else [int(n) for n in np.ravel(sizes)]
    if requested is None and scales is None:
        raise step.refused("it has neither scales nor sizes")
    for index, number in enumerate(numbers):
        size = x.shape[number]
        if requested is not None:
            result = requested[index]
            scale = result / size if size else 1.0
        else:
            assert scales is not None
            scale = float(scales[index])
            result = math.floor(size * scale)
        found[number] = Axis(size, result, scale, *_part(region, index, len(numbers)))
    policy = step.attribute("keep_aspect_ratio_policy", "stretch")
    if requested is not None and policy != "stretch":
        choose = min if policy == "not_larger" else max
        scale = choose([found[number].scale for number in numbers])
        for number in numbers:
            result = math.floor(x.shape[number] * scale + 0.5)
            found[number] = found[number]._replace(scale=scale, result=result)
    return found


def _part(region: Any, index: int, count: int) -> tuple[float, float]:
    if region is None or not np.size(region):
        return 0.0, 1.0
    flat = np.ravel(region)
    return float(flat[index]), float(flat[index + count])


def _resize(step: Step) -> Any:
    x, mode = step.inputs[0], step.attribute("mode", "nearest")
    if step.kind == "Upsample" or step.opset < 11:
        attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        step = Step(
            step.kind, step.name, 10, step.inputs, {**step.attributes, **attributes}, step.n_outputs
        )
    axes, wide = _axes(step, x), x
    is_float = np.dtype(x.dtype).kind == "f" or np.dtype(x.dtype).name == "bfloat16"
    if mode != "nearest" and not is_float:
        raise step.refused(f"elements of {x.dtype} are not supported")
    if min([one.result for one in axes], default=1) <= 0 or not x.size:
        raise step.refused(f"results of shape {[one.result for one in axes]} are not supported")
    is_cut = step.attribute("coordinate_transformation_mode", "") == "tf_crop_and_resize"
    for number, axis in enumerate(axes):
        if axis.result == axis.size and axis.scale == 1 and not is_cut:
            continue
        wide = _along(wide, number, *_taps(step, axis, mode))
    return _beyond(step, wide, axes) if is_cut else wide


def _beyond(step: Step, made: Any, axes: list[Axis]) -> Any:
    """Results that lie beyond the array, which have a value of their own."""
    outside: Any = np.zeros((1,) * len(axes), bool)
    for number, axis in enumerate(axes):
        at = _places(step, axis)
        shape = [1] * len(axes)
        shape[number] = axis.result
        outside = outside | ((at < 0) | (at > axis.size - 1)).reshape(shape)
    if not outside.any():
        return made
    return ours.masked_fill(made, outside, step.attribute("extrapolation_value", 0.0))


RESIZING: dict[str, Form] = {"Resize": _resize, "Upsample": _resize}
