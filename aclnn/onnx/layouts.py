"""Views of memory as ONNX's operators, whose tensors have shapes but no strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aclnn.graph import Value


class Move(NamedTuple):
    """One operator: its numbers are inputs, or, of Transpose, the attribute."""

    operator: str
    numbers: tuple[tuple[int, ...], ...] = ()
    table: np.ndarray | None = None  # of a Gather


def moves_of(root: Value, view: Value) -> list[Move]:
    """Moves that make the elements of a view from those of the value that owns its memory.

    >>> from aclnn.graph import DType
    >>> f32 = DType("float32", 4)
    >>> root = Value(0, "x", (4, 6), (6, 1), f32, "input")
    >>> right = Value(1, "v", (2, 4), (1, 6), f32, "input", 0, offset=3)
    >>> for move in moves_of(root, right): print(move.operator, *move.numbers)
    Slice (3,) (5,) (1,)
    Transpose (1, 0)
    """
    if view.shape == root.shape and view.strides == root.strides and not view.offset:
        return []
    if view.size == 0:
        return [Move("Reshape", (view.shape,))] if root.size == 0 else _by_table(root, view)
    return _by_blocks(root, view) or _by_table(root, view)


class _Walk:
    """Moves of a tensor whose shape is known; those that change nothing are left out."""

    def __init__(self, shape: Sequence[int]):
        self.shape = tuple(shape)
        self.moves: list[Move] = []

    def reshape(self, shape: Sequence[int]) -> None:
        if tuple(shape) != self.shape:
            self.moves.append(Move("Reshape", (tuple(shape),)))
            self.shape = tuple(shape)

    def transpose(self, order: Sequence[int]) -> None:
        if list(order) != sorted(order):
            self.moves.append(Move("Transpose", (tuple(order),)))
            self.shape = tuple([self.shape[axis] for axis in order])

    def slice(self, starts: Sequence[int], sizes: Sequence[int]) -> None:
        cut = [axis for axis, size in enumerate(sizes) if size != self.shape[axis]]
        if cut:
            ends = tuple([starts[axis] + sizes[axis] for axis in cut])
            numbers = (tuple([starts[axis] for axis in cut]), ends, tuple(cut))
            self.moves.append(Move("Slice", numbers))
            self.shape = tuple(sizes)

    def expand(self, shape: Sequence[int]) -> None:
        if tuple(shape) != self.shape:
            self.moves.append(Move("Expand", (tuple(shape),)))
            self.shape = tuple(shape)


def _long(value: Value) -> list[int]:
    """The dimensions that are walked over, the slowest first."""
    found = [n for n, size in enumerate(value.shape) if size > 1 and value.strides[n] != 0]
    return sorted(found, key=lambda n: -value.strides[n])


def _by_blocks(root: Value, view: Value) -> list[Move] | None:
    """By slices of a tensor that is cut into blocks; None where the view has no such form."""
    slow, total = _long(root), 1
    for axis in reversed(slow):
        if root.strides[axis] != total:
            return None
        total *= root.shape[axis]
    walk = _Walk(root.shape)
    walk.slice(
        [0] * len(root.shape), [n if axis in slow else 1 for axis, n in enumerate(root.shape)]
    )
    walk.transpose([*(axis for axis in range(len(root.shape)) if axis not in slow), *slow])
    order, offset = _long(view), view.offset
    strides = [view.strides[axis] for axis in order]
    blocks, starts, sizes, before = [], [], [], total
    for axis, stride in zip(order, strides, strict=True):
        if stride < 0 or before % stride:
            return None
        blocks.append(before // stride)
        starts.append(offset // stride)
        sizes.append(view.shape[axis])
        offset, before = offset % stride, stride
    if before > 1:
        blocks, starts, sizes = [*blocks, before], [*starts, offset], [*sizes, 1]
    if any(start + size > block for start, size, block in zip(starts, sizes, blocks, strict=True)):
        return None
    if sizes != blocks:
        walk.reshape(blocks)
        walk.slice(starts, sizes)
    walk.reshape([view.shape[axis] for axis in order])
    walk.transpose([order.index(axis) for axis in sorted(order)])
    walk.reshape([size if axis in order else 1 for axis, size in enumerate(view.shape)])
    walk.expand(view.shape)
    return walk.moves


def _by_table(root: Value, view: Value) -> list[Move]:
    """By the place of each element, for what has no other form."""
    return [Move("Reshape", ((-1,),)), Move("Gather", (), places_in(root, view))]


def places_in(root: Value, view: Value) -> np.ndarray:
    """For each element of a view its place among those of the value that owns its memory."""
    addresses = _addresses(root).ravel()
    order = np.argsort(addresses, kind="stable")
    found = np.searchsorted(addresses, _addresses(view), sorter=order)
    return order[np.minimum(found, max(root.size - 1, 0))] if root.size else found


def _addresses(value: Value) -> np.ndarray:
    found = np.full(value.shape, value.offset if value.is_view else 0, np.int64)
    for axis, (size, stride) in enumerate(zip(value.shape, value.strides, strict=True)):
        found += (np.arange(size) * stride).reshape((-1,) + (1,) * (len(value.shape) - axis - 1))
    return found


def axis_of_parts(root: Value, parts: Sequence[Value]) -> int | None:
    """The axis along which parts, in their order, make up a value; None where they do otherwise."""
    for axis in range(len(root.shape)):
        others = root.shape[:axis], root.shape[axis + 1 :]
        if any(
            (part.shape[:axis], part.shape[axis + 1 :]) != others or part.strides != root.strides
            for part in parts
        ):
            continue
        ends = np.cumsum([0, *(part.shape[axis] for part in parts)]).tolist()
        if [part.offset for part in parts] == [end * root.strides[axis] for end in ends[:-1]]:
            return axis if ends[-1] == root.shape[axis] else None
    return None


def places_of_parts(root: Value, parts: Sequence[Value], has_before: bool) -> np.ndarray:
    """For each element of a value its place in its parts, one after the other; the last to write it
    counts, and what there was `before` comes first."""
    found = np.arange(root.size) if has_before else np.zeros(root.size, np.int64)
    begin = root.size if has_before else 0
    for part in parts:
        found[places_in(root, part).ravel()] = begin + np.arange(part.size)
        begin += part.size
    return found.reshape(root.shape)
