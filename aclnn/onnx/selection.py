"""Operators that give as many elements as values say: they run on arrays, between two plans."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from aclnn.onnx._boxes import kept
from aclnn.onnx.steps import Step, from_start

Chooser = Callable[[Step], tuple[np.ndarray, ...]]


def _nonzero(step: Step) -> tuple[np.ndarray, ...]:
    x = np.asarray(step.inputs[0])
    if not x.ndim:
        return (np.empty((0, int(bool(x))), np.int64),)
    return (np.stack(np.nonzero(x)).astype(np.int64),)


def _compress(step: Step) -> tuple[np.ndarray, ...]:
    x, condition = (np.asarray(one) for one in step.inputs)
    axis = step.attribute("axis")
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = from_start(axis, x.ndim)
    if condition.ndim != 1 or len(condition) > x.shape[axis]:
        raise step.refused(f"a condition {list(condition.shape)} does not fit {list(x.shape)}")
    return (np.compress(condition.astype(bool), x, axis),)


def _unique(step: Step) -> tuple[np.ndarray, ...]:
    x, axis = np.asarray(step.inputs[0]), step.attribute("axis")
    axis = None if axis is None else from_start(axis, x.ndim)
    found, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not step.attribute("sorted", 1):
        order = np.argsort(first, kind="stable")
        found = np.take(found, order, 0 if axis is None else axis)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        first, inverse, counts = first[order], places[inverse], counts[order]
    return (found, *[one.astype(np.int64) for one in (first, inverse, counts)])


# --- Boxes ------------------------------------------------------------------------------------------


def _corners(boxes: np.ndarray, is_centred: bool) -> np.ndarray:
    """The least and greatest coordinates of boxes along both axes, and their areas."""
    if is_centred:
        half = boxes[..., 2:] / 2
        low, high = boxes[..., :2] - half, boxes[..., :2] + half
    else:
        low, high = (
            np.minimum(boxes[..., :2], boxes[..., 2:]),
            np.maximum(boxes[..., :2], boxes[..., 2:]),
        )
    return np.concatenate([low, high, (high - low).prod(-1, keepdims=True)], -1)


def _non_max_suppression(step: Step) -> tuple[np.ndarray, ...]:
    boxes, scores = (np.asarray(one) for one in step.inputs[:2])
    if boxes.ndim != 3 or boxes.shape[2] != 4 or scores.ndim != 3 or (
        scores.shape[::2] != boxes.shape[:2]
    ):  # fmt: skip
        raise step.refused(f"boxes {list(boxes.shape)} do not fit scores {list(scores.shape)}")
    most, limit = int(step.scalar(2, default=0)), float(step.scalar(3, default=0.0))
    least = float(step.scalar(4, default=-math.inf))
    if not 0 <= limit <= 1:
        raise step.refused(f"iou_threshold is {limit}, must be from 0 to 1")
    corners = _corners(boxes.astype(np.float32), bool(step.attribute("center_point_box", 0)))
    taken = np.ones(scores.shape, bool)
    if step.given(4) is not None:
        taken = scores > np.asarray(least, scores.dtype)
    batches, classes, places = np.nonzero(taken)
    order = np.lexsort((-scores[taken], classes, batches))
    batches, classes, places = batches[order], classes[order], places[order]
    begins = np.flatnonzero(np.diff(batches * scores.shape[1] + classes, prepend=-1)).tolist()
    stays = np.zeros(len(order), bool)
    for begin, end in pairwise([*begins, len(order)]):
        stays[begin : begin + kept(places[begin:end], corners[batches[begin]], limit, most)] = True
    return (np.stack([batches, classes, places], -1)[stays].astype(np.int64),)


CHOOSING: dict[str, Chooser] = {
    "NonZero": _nonzero,
    "Compress": _compress,
    "Unique": _unique,
    "NonMaxSuppression": _non_max_suppression,
}
