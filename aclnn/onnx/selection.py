"""Operators that give as many elements as values say: they run on arrays, between two plans."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from aclnn.onnx.steps import Step, from_start

BOXES_AT_A_TIME = 64  # that are compared with each other
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


class _Boxes(NamedTuple):
    """The least and greatest coordinates of boxes along both axes, and their areas."""

    low: np.ndarray
    high: np.ndarray
    area: np.ndarray

    def at(self, places: Any) -> _Boxes:
        return _Boxes(*[one[places] for one in self])


def _corners(boxes: np.ndarray, is_centred: bool) -> _Boxes:
    if is_centred:
        half = boxes[..., 2:] / 2
        low, high = boxes[..., :2] - half, boxes[..., :2] + half
    else:
        low, high = (
            np.minimum(boxes[..., :2], boxes[..., 2:]),
            np.maximum(boxes[..., :2], boxes[..., 2:]),
        )
    return _Boxes(low, high, (high - low).prod(-1))


def _overlaps(ones: _Boxes, others: _Boxes, limit: float) -> np.ndarray:
    """Whether boxes, in rows, share more than a limit with others, in columns."""
    low, high, area = ones.at((slice(None), None))
    long, wide = (
        np.minimum(high[..., axis], others.high[:, axis])
        - np.maximum(low[..., axis], others.low[:, axis])
        for axis in (0, 1)
    )
    shared = long * wide
    union = area + others.area - shared
    is_over = (long > 0) & (wide > 0) & (shared > 0) & (union > 0) & (area > 0) & (others.area > 0)
    share = np.divide(shared, union, out=np.zeros_like(union), where=is_over)
    return is_over & (share > np.asarray(limit, union.dtype))


def _kept(order: np.ndarray, boxes: _Boxes, limit: float, most: int) -> list[int]:
    """Boxes in the order of their scores, without those that overlap one that is kept.

    They are compared some at a time: with those that were kept before, then with each other.
    """
    found: list[int] = []
    for begin in range(0, len(order), BOXES_AT_A_TIME):
        if len(found) == most:
            break
        some = order[begin : begin + BOXES_AT_A_TIME]
        if found:
            some = some[~_overlaps(boxes.at(found), boxes.at(some), limit).any(0)]
        own = boxes.at(some)
        left, hides = np.ones(len(some), bool), ~_overlaps(own, own, limit)
        for place, box in enumerate(some.tolist()):
            if left[place] and len(found) < most:
                found.append(box)
                left &= hides[place]
    return found


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
    corners = _corners(boxes, bool(step.attribute("center_point_box", 0)))
    taken = np.ones(scores.shape, bool)
    if step.given(4) is not None:
        taken = scores > np.asarray(least, scores.dtype)
    batches, classes, places = np.nonzero(taken)
    order = np.lexsort((-scores[taken], classes, batches))
    batches, classes, places = batches[order], classes[order], places[order]
    begins = np.flatnonzero(np.diff(batches * scores.shape[1] + classes, prepend=-1)).tolist()
    rows: list[tuple[int, int, int]] = []
    for begin, end in pairwise([*begins, len(order)]):
        batch, number = int(batches[begin]), int(classes[begin])
        found = _kept(places[begin:end], corners.at(batch), limit, most)
        rows.extend([(batch, number, one) for one in found])
    return (np.array(rows, np.int64).reshape(-1, 3),)


CHOOSING: dict[str, Chooser] = {
    "NonZero": _nonzero,
    "Compress": _compress,
    "Unique": _unique,
    "NonMaxSuppression": _non_max_suppression,
}
