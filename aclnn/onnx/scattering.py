"""Operators that put elements at places: scatters, one-hot vectors, columns to images, turned sequences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aclnn.acl.errors import AclnnError
from aclnn.api import functional
from aclnn.onnx.numpy_forms import as_step
from aclnn.onnx.steps import Form, Step, dtype_of, from_start
from aclnn.tracing.array import TracedArray

ours: Any = functional  # whose names are made from declarations
_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _reduction(step: Step) -> str:
    reduction = str(step.attribute("reduction", "none"))
    if reduction != "none" and reduction not in _REDUCTIONS:
        raise step.refused(f"reduction {reduction} is not supported")
    return reduction


def _put(x: np.ndarray, index: Any, updates: np.ndarray, reduction: str) -> np.ndarray:
    made = x.copy()
    if reduction == "none":
        made[index] = updates
    else:
        _REDUCTIONS[reduction].at(made, index, updates)
    return made


def _from_begin(index: Any, size: int) -> Any:
    """Indices that count from the begin; those that are too small remain negative."""
    if isinstance(index, np.ndarray):
        return np.where(index < 0, index + size, index).astype(np.int64)
    return ours.where(ours.lt(index, 0), index + size, index).astype(np.int64)


def _scatter_elements(step: Step) -> Any:
    x, index, updates = step.inputs
    axis, reduction = from_start(step.attribute("axis", 0), x.ndim), _reduction(step)
    if index.shape != updates.shape or index.ndim != x.ndim:
        raise step.refused(f"indices {list(index.shape)} do not fit updates {list(updates.shape)}")
    if reduction in ("none", "add"):
        form = ours.scatter if reduction == "none" else ours.scatter_add
        try:
            return form(x, axis, _from_begin(index, x.shape[axis]), updates)
        except AclnnError:  # dtypes that it does not have
            if np.dtype(x.dtype) != np.uint64:
                raise

    def put(x: np.ndarray, index: np.ndarray, updates: np.ndarray) -> np.ndarray:
        grid: list[Any] = [*np.ogrid[tuple(slice(size) for size in index.shape)]]
        grid[axis] = index
        return _put(x, tuple(grid), updates, reduction)

    return as_step(step, put, [x, index, updates], x.shape, x.dtype)


def _scatter_nd(step: Step) -> Any:
    x, index, updates = step.inputs
    reduction, depth = _reduction(step), index.shape[-1] if index.ndim else 0
    requested = (*index.shape[:-1], *x.shape[depth:])
    if not index.ndim or depth > x.ndim or updates.shape != requested:
        raise step.refused(
            f"indices {list(index.shape)} in {list(x.shape)} need updates {list(requested)}, given are "
            f"{list(updates.shape)}"
        )
    if reduction in ("none", "add") and depth:
        columns = [index[..., n] for n in range(depth)]
        try:
            return ours.index_put(x, columns, updates, reduction == "add")
        except AclnnError:  # dtypes that it does not have
            pass

    def put(x: np.ndarray, index: np.ndarray, updates: np.ndarray) -> np.ndarray:
        return _put(x, tuple(np.moveaxis(index, -1, 0)), updates, reduction)

    return as_step(step, put, [x, index, updates], x.shape, x.dtype)


def _tensor_scatter(step: Step) -> Any:
    """TensorScatter: rows that are put into a cache, each batch at its place."""
    cache, update, begins = step.inputs[0], step.inputs[1], step.given(2)
    axis = from_start(step.attribute("axis", -2), cache.ndim)
    if not axis or update.shape[axis] > cache.shape[axis]:
        raise step.refused(f"{list(update.shape)} does not fit {list(cache.shape)} along {axis}")
    places: Any = np.arange(update.shape[axis], dtype=np.int64)
    if begins is not None:
        places = begins.reshape(-1, 1).astype(np.int64) + places
    if step.attribute("mode", "linear") == "circular":
        places = places % cache.shape[axis] if isinstance(places, np.ndarray) else ours.remainder(
            places, cache.shape[axis]
        )  # fmt: skip
    shape = [1] * cache.ndim
    shape[axis] = update.shape[axis]
    shape[0] = 1 if begins is None else cache.shape[0]
    return ours.scatter(cache, axis, _spread(places.reshape(shape), update.shape), update)


def _spread(index: Any, shape: Sequence[int]) -> Any:
    if isinstance(index, TracedArray):
        return index.broadcast_to(tuple(shape)).copy()
    return np.ascontiguousarray(np.broadcast_to(index, shape))


# --- Vectors of one place ---------------------------------------------------------------------------


def _one_hot(step: Step) -> Any:
    index, values = step.inputs[0], step.inputs[2]
    depth = int(step.scalar(1))
    if depth < 1:
        raise step.refused(f"depth is {depth}, must be from 1 on")
    axis = from_start(step.attribute("axis", -1), index.ndim + 1)
    whole = _from_begin(index.astype(np.int64), depth)
    whole = whole.reshape(*index.shape[:axis], 1, *index.shape[axis:])
    places = np.arange(depth, dtype=np.int64).reshape(-1, *(1,) * (index.ndim - axis))
    is_there = ours.eq(whole, places) if isinstance(whole, TracedArray) else whole == places
    return _chosen(is_there, values)


def _chosen(is_there: Any, values: Any) -> Any:
    """The second of two values where something is true, else the first."""
    off, on = (values[n : n + 1].reshape((1,) * is_there.ndim) for n in range(2))
    try:
        return ours.where(is_there, on, off)
    except AclnnError:  # dtypes that it does not have
        return as_step("where", np.where, [is_there, on, off], is_there.shape, values.dtype)


def _hardmax(step: Step) -> Any:
    (x,) = step.inputs
    axis = from_start(step.attribute("axis", 1 if step.opset < 13 else -1), x.ndim)
    if step.opset < 13:  # it was defined on matrices
        rows = math.prod(x.shape[:axis])
        x, axis = x.reshape(rows, x.size // rows if rows else 1), 1
    places = np.arange(x.shape[axis], dtype=np.int64).reshape(-1, *(1,) * (x.ndim - 1 - axis))
    best = ours.arg_max(x, axis, True).astype(np.int64, copy=False)
    return ours.eq(best, places).astype(x.dtype).reshape(*step.inputs[0].shape)


def _eye_like(step: Step) -> Any:
    (x,), to = step.inputs, step.attribute("dtype")
    if x.ndim != 2:
        raise step.refused(f"{list(x.shape)} is no matrix")
    rows, columns = x.shape
    made = np.eye(rows, columns, k=step.attribute("k", 0))
    return made.astype(x.dtype if to is None else dtype_of(to))


# --- Sequences and images ---------------------------------------------------------------------------


def _reverse_sequence(step: Step) -> Any:
    x, lengths = step.inputs
    batch, time = step.attribute("batch_axis", 1), step.attribute("time_axis", 0)
    if {batch, time} != {0, 1} or lengths.shape != (x.shape[batch],):
        raise step.refused(
            f"lengths {list(lengths.shape)} do not fit axis {batch} of {list(x.shape)}"
        )
    steps = np.arange(x.shape[time], dtype=np.int64).reshape((-1, 1) if time == 0 else (1, -1))
    each = lengths.astype(np.int64).reshape((1, -1) if time == 0 else (-1, 1))
    if isinstance(each, TracedArray):
        places = ours.where(ours.lt(steps - each, 0), each - 1 - steps, steps + each * 0)
    else:
        places = np.where(steps < each, each - 1 - steps, steps)
    places = places.reshape(*places.shape, *(1,) * (x.ndim - 2))
    return ours.gather(x, time, _spread(places, x.shape))


def _center_crop_pad(step: Step) -> Any:
    x, shape = step.inputs[0], step.whole(1) or ()
    axes = step.attribute("axes") or range(x.ndim)
    if len(shape) != len(axes) or min(shape, default=0) < 0:
        raise step.refused(f"shape {list(shape)} does not fit {len(axes)} axes")
    ends = [0] * (2 * x.ndim)
    for axis, size in zip([from_start(one, x.ndim) for one in axes], shape, strict=True):
        less = x.shape[axis] - size
        if less > 0:
            x = x[(*[slice(None)] * axis, slice(less // 2, less // 2 + size))]
        else:
            index = 2 * (x.ndim - 1 - axis)
            ends[index : index + 2] = -less // 2, -less - -less // 2
    return ours.constant_pad_nd(x, ends, 0) if any(ends) else x


def _columns_to_image(step: Step) -> Any:
    x, image, block = step.inputs[0], step.whole(1) or (), step.whole(2) or ()
    axes = len(image)
    ones = (1,) * axes
    dilations, strides = step.attribute("dilations", ones), step.attribute("strides", ones)
    pads = step.attribute("pads", (0,) * (2 * axes))
    counts = [
        (size + begin + end - (k - 1) * d - 1) // s + 1
        for size, begin, end, k, d, s in zip(
            image, pads[:axes], pads[axes:], block, dilations, strides, strict=True
        )
    ]
    if x.ndim != 3 or x.shape[1] % math.prod(block) or x.shape[2] != math.prod(counts):
        raise step.refused(f"{list(x.shape)} has no blocks {list(block)} of an image {list(image)}")
    channels = x.shape[1] // math.prod(block)

    def added(x: np.ndarray) -> np.ndarray:
        parts = x.reshape(x.shape[0], channels, *block, *counts)
        wide = [n + a + b for n, a, b in zip(image, pads[:axes], pads[axes:], strict=True)]
        made = np.zeros((x.shape[0], channels, *wide), x.dtype)
        for taps in itertools.product(*map(range, block)):
            window: list[Any] = [
                slice(tap * d, tap * d + (count - 1) * s + 1, s)
                for tap, d, count, s in zip(taps, dilations, counts, strides, strict=True)
            ]
            own: tuple[Any, ...] = (slice(None), slice(None), *taps)
            made[(slice(None), slice(None), *window)] += parts[own]
        inner = [slice(a, a + n) for a, n in zip(pads[:axes], image, strict=True)]
        return made[(slice(None), slice(None), *inner)]

    return as_step(step, added, [x], (x.shape[0], channels, *image), x.dtype)


def _max_unpool(step: Step) -> Any:
    x, index = step.inputs[:2]
    sizes = step.required("kernel_shape")
    axes = len(sizes)
    strides, pads = (
        step.attribute("strides", (1,) * axes),
        step.attribute("pads", (0,) * (2 * axes)),
    )
    own = [
        (size - 1) * stride - begin - end + window
        for size, stride, begin, end, window in zip(
            x.shape[2:], strides, pads[:axes], pads[axes:], sizes, strict=True
        )
    ]
    shape, whole = step.whole(2), (*x.shape[:2], *own)
    made = _at_places(x, index, math.prod(whole)).reshape(whole)
    if shape is None or shape == whole:
        return made
    if len(shape) != len(whole) or any(a < b for a, b in zip(shape, whole, strict=True)):
        raise step.refused(f"output_shape {list(shape)} is less than {list(whole)}")
    ends = [n for a, b in reversed([*zip(shape, whole, strict=True)]) for n in (0, a - b)]
    return ours.constant_pad_nd(made, ends, 0)


def _at_places(x: Any, index: Any, count: int) -> Any:
    nothing = np.zeros(count, x.dtype)
    return ours.scatter(nothing, 0, index.reshape(x.size).astype(np.int64), x.reshape(x.size))


def _compress(step: Step) -> Any:
    """Compress by a known condition."""
    x, condition = step.inputs[0], np.asarray(step.constant(1)).astype(bool)
    axis = step.attribute("axis")
    if axis is None:
        x, axis = x.reshape(x.size), 0
    axis = from_start(axis, x.ndim)
    if condition.ndim != 1 or len(condition) > x.shape[axis]:
        raise step.refused(f"a condition {list(condition.shape)} does not fit {list(x.shape)}")
    return ours.gather_v2(x, axis, np.flatnonzero(condition))


SCATTERING: dict[str, Form] = {
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
    "OneHot": _one_hot,
    "Hardmax": _hardmax,
    "EyeLike": _eye_like,
    "ReverseSequence": _reverse_sequence,
    "CenterCropPad": _center_crop_pad,
    "Col2Im": _columns_to_image,
    "MaxUnpool": _max_unpool,
    "Compress": _compress,
}
