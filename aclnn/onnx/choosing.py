"""Operators that give as many elements as values say: they run on arrays, between two plans."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

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


def _corners(boxes: np.ndarray, is_centred: bool) -> tuple[np.ndarray, ...]:
    """The least and greatest coordinates of boxes along both axes, and their areas."""
    if is_centred:
        half = boxes[..., 2:] / 2
        low, high = boxes[..., :2] - half, boxes[..., :2] + half
    else:
        low, high = (
            np.minimum(boxes[..., :2], boxes[..., 2:]),
            np.maximum(boxes[..., :2], boxes[..., 2:]),
        )
    return low, high, (high - low).prod(-1)


def _kept(
    order: np.ndarray, low: np.ndarray, high: np.ndarray, area: np.ndarray, limit: float, most: int
) -> list[int]:
    """Boxes in the order of their scores, without those that overlap one that is kept."""
    found: list[int] = []
    low, high, area = low[order], high[order], area[order]
    while len(order) and len(found) < most:
        found.append(int(order[0]))
        sides = np.minimum(high[1:], high[0]) - np.maximum(low[1:], low[0])
        shared = sides[:, 0] * sides[:, 1]
        union = area[1:] + area[0] - shared
        is_over = (sides > 0).all(1) & (shared > 0) & (union > 0) & (area[1:] > 0) & (area[0] > 0)
        share = np.divide(shared, union, out=np.zeros_like(union), where=is_over)
        left = ~(is_over & (share > np.asarray(limit, union.dtype)))
        order, low, high, area = order[1:][left], low[1:][left], high[1:][left], area[1:][left]
    return found


def _non_max_suppression(step: Step) -> tuple[np.ndarray, ...]:
    boxes, scores = (np.asarray(one) for one in step.inputs[:2])
    if boxes.ndim != 3 or boxes.shape[2] != 4 or scores.ndim != 3 or (
        scores.shape[::2] != boxes.shape[:2]
    ):  # fmt: skip
        raise step.refused(f"boxes {list(boxes.shape)} do not fit scores {list(scores.shape)}")
    most, limit = int(step.scalar(2, default=0)), float(step.scalar(3, default=0.0))
    least = float(step.scalar(4, default=-math.inf))
    has_least = step.given(4) is not None
    if not 0 <= limit <= 1:
        raise step.refused(f"iou_threshold is {limit}, must be from 0 to 1")
    low, high, area = _corners(boxes, bool(step.attribute("center_point_box", 0)))
    rows: list[tuple[int, int, int]] = []
    for batch, classes in enumerate(scores):
        for number, own in enumerate(classes):
            taken = (
                np.flatnonzero(own > np.asarray(least, own.dtype))
                if has_least
                else np.arange(len(own))
            )
            order = taken[np.argsort(-own[taken], kind="stable")]
            found = _kept(order, low[batch], high[batch], area[batch], limit, most)
            rows.extend([(batch, number, one) for one in found])
    return (np.array(rows, np.int64).reshape(-1, 3),)


CHOOSING: dict[str, Chooser] = {
    "NonZero": _nonzero,
    "Compress": _compress,
    "Unique": _unique,
    "NonMaxSuppression": _non_max_suppression,
}
