"""Strides: where the elements of a shape lie, whatever they are elements of."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements.

    Parameters
    ----------
    shape : tuple of int

    Returns
    -------
    tuple of int
        One stride for each dimension, the last one 1.

    Examples
    --------
    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in shape[::-1]:
        strides.append(step)
        step *= size or 1
    return tuple(strides[::-1])


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Tell whether elements lie in row-major order without gaps.

    Parameters
    ----------
    shape, strides : tuple of int
        In elements.  The strides of dimensions of size 1 are ignored.

    Returns
    -------
    bool
        True for no elements, and for a single one.

    Examples
    --------
    >>> is_contiguous((1, 3), (99, 1)), is_contiguous((2, 3), (1, 2))
    (True, False)
    """
    dense = 1
    for size, stride in zip(shape[::-1], strides[::-1], strict=True):
        if size == 1:
            continue
        if stride != dense:
            return 0 in shape
        dense *= size or 1
    return True


def broadcast_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]
) -> tuple[int, ...]:
    """Strides that read a view of `shape` as if it had the shape `target`, by NumPy's rule.

    Parameters
    ----------
    shape, strides : tuple of int
        Of the view, in elements.
    target : tuple of int
        The shape to read it with.

    Returns
    -------
    tuple of int
        One stride for each dimension of `target`, 0 along repeated dimensions.

    Raises
    ------
    ValueError
        When `shape` does not broadcast to `target`.

    Examples
    --------
    >>> broadcast_strides((3, 1), (5, 1), (2, 3, 4))
    (0, 5, 0)
    """
    missing = len(target) - len(shape)
    if missing < 0 or any(a not in (b, 1) for a, b in zip(shape, target[missing:], strict=True)):
        raise ValueError(f"{shape} does not broadcast to {target}")
    kept = (
        stride if size == requested else 0
        for size, stride, requested in zip(shape, strides, target[missing:], strict=True)
    )
    return (0,) * missing + tuple(kept)


def extent(shape: Iterable[int], strides: Iterable[int]) -> tuple[int, int]:
    """Lowest and highest place that a view touches, from its first element, where none is empty.

    >>> extent((2, 3), (-3, 1))
    (-3, 2)
    """
    reach = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)


def is_spread(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether no element is adjacent to another one.

    >>> is_spread((2, 3), (6, 2))
    True
    >>> is_spread((2, 3), (0, 1))
    False
    """
    pairs = zip(shape, strides, strict=True)
    steps = [abs(stride) for size, stride in pairs if size > 1 and stride != 0]
    return min(steps, default=1) > 1


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether a view covers a stretch of memory without gaps, in any order of dimensions.

    >>> is_dense((2, 3), (1, 2))
    True
    """
    pairs = zip(shape, strides, strict=True)
    expected = 1
    for stride, size in sorted((abs(stride), size) for size, stride in pairs if size > 1):
        if stride != expected:
            return False
        expected *= size
    return True


def reshaped_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Strides that read a view of `shape` as the shape `target`, in row-major order of elements.

    Parameters
    ----------
    shape, strides : tuple of int
        Of the view, in elements.
    target : tuple of int
        A shape with as many elements.

    Returns
    -------
    tuple of int or None
        None where only a copy has that shape.

    Examples
    --------
    >>> reshaped_strides((2, 3), (6, 2), (2, 1, 3)), reshaped_strides((2, 3), (6, 2), (6,))
    ((6, 6, 2), (2,))
    >>> reshaped_strides((2, 3), (1, 2), (6,)) is None
    True
    """
    if math.prod(shape) <= 1 or shape == target:
        return strides if shape == target else contiguous_strides(target)
    dims = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    runs: list[tuple[int, int]] = []  # dimensions that merge, as one
    for size, stride in dims:
        if runs and runs[-1][1] == stride * size:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    found: list[int] = []
    left, step = runs.pop()
    for size in reversed(target):
        if size == 1:
            found.append(step)
            continue
        if left == 1:
            left, step = runs.pop()
        if left % size:
            return None
        found.append(step)
        left //= size
        step *= size
    return tuple(reversed(found))


def restrided(
    shape: tuple[int, ...],
    view_shape: tuple[int, ...],
    view_strides: tuple[int, ...],
    view_offset: int,
    strides: tuple[int, ...],
    before: tuple[int, ...] | None = None,
) -> tuple[tuple[int, ...], int] | None:
    """A view of memory of `shape`, where that memory gets other strides.

    Parameters
    ----------
    shape : tuple of int
        Of the memory that is viewed.
    view_shape, view_strides : tuple of int
    view_offset : int
        Of the view, in elements of that memory.
    strides : tuple of int
        That the memory gets.
    before : tuple of int, optional
        That the memory has so far; by default those of row-major memory.

    Returns
    -------
    (tuple of int, int) or None
        Strides and offset of the view then; None where it has none, because one of its
        dimensions walks over several of the memory's.

    Examples
    --------
    A slice of columns of a matrix that turns out to be transposed:

    >>> restrided((4, 6), (4, 3), (6, 1), 3, (1, 4))
    ((1, 4), 12)

    The same slice of a matrix that was transposed:

    >>> restrided((4, 6), (4, 3), (1, 4), 12, (6, 1), (1, 4))
    ((6, 1), 3)
    """
    before = contiguous_strides(shape) if before is None else before
    if strides == before:
        return view_strides, view_offset
    if math.prod(view_shape) == 0:
        return (0,) * len(view_shape), 0
    index = _index_of(shape, before, view_offset)
    if index is None:
        return None
    offset = sum(i * new for i, new in zip(index, strides, strict=True))
    found = []
    for size, stride in zip(view_shape, view_strides, strict=True):
        if size == 1 or stride == 0:
            found.append(0)
            continue
        for axis, old in enumerate(before):
            times = stride // old if old else 0
            last = index[axis] + times * (size - 1)
            if times * old == stride and 0 <= last < shape[axis]:
                index[axis] = last
                found.append(times * strides[axis])
                break
        else:
            return None
    return tuple(found), offset


def _index_of(shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> list[int] | None:
    """The index of the element at an offset from the first one; None where none is found."""
    index = [0] * len(shape)
    walked = [axis for axis, size in enumerate(shape) if size > 1 and strides[axis]]
    # From the lowest address on, which is where what runs backwards ends.
    rest = offset - sum(strides[axis] * (shape[axis] - 1) for axis in walked if strides[axis] < 0)
    for axis in sorted(walked, key=lambda axis: -abs(strides[axis])):
        index[axis], rest = divmod(rest, abs(strides[axis]))
        if not 0 <= index[axis] < shape[axis]:
            return None
        if strides[axis] < 0:
            index[axis] = shape[axis] - 1 - index[axis]
    return index if rest == 0 else None


def same_layout(a: Any, b: Any) -> bool:
    """Whether elements [i] of two values have the same bytes when the first ones have the same
    address."""
    if a.shape != b.shape or a.dtype.itemsize != b.dtype.itemsize:
        return False
    strides = zip(a.shape, a.strides, b.strides, strict=True)
    return all(size <= 1 or stride == other for size, stride, other in strides)


def expanded_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], requested: tuple[int, ...]
) -> tuple[int, ...]:
    """The strides of a view that is broadcast.

    Parameters
    ----------
    shape, strides : tuple of int
        Of the view.
    requested : tuple of int
        The shape that it is broadcast to.

    Returns
    -------
    tuple of int
        As many as `requested` has; 0 where the view repeats itself.

    Examples
    --------
    >>> expanded_strides((1, 3), (3, 1), (4, 5, 3))
    (0, 0, 1)
    """
    missing = len(requested) - len(shape)
    own = [
        0 if had == 1 and size != 1 else step
        for had, step, size in zip(shape, strides, requested[missing:], strict=True)
    ]
    return (*[0] * missing, *own)


def merged_dims(
    shape: tuple[int, ...], strides: Sequence[tuple[int, ...]]
) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The same elements in the same order with as few dimensions as can be.

    Parameters
    ----------
    shape : tuple of int
        Of all views.
    strides : sequence of tuple of int
        Of each view.

    Returns
    -------
    shape : tuple of int
    strides : list of tuple of int
        Neighbours are one dimension that every view walks through as one; those of size 1 are none.

    Examples
    --------
    >>> merged_dims((2, 1, 3, 4), [(12, 9, 4, 1), (24, 9, 8, 1)])
    ((6, 4), [(4, 1), (8, 1)])
    """
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and all(
            own[-1] == size * one[axis] for own, one in zip(steps, strides, strict=True)
        ):
            sizes[-1] *= size
        else:
            sizes.append(size)
            for own in steps:
                own.append(0)
        for own, one in zip(steps, strides, strict=True):
            own[-1] = one[axis]
    return tuple(sizes), [tuple(own) for own in steps]


def merged_around(
    shape: tuple[int, ...], strides: Sequence[tuple[int, ...]], axis: int
) -> tuple[tuple[int, ...], list[tuple[int, ...]], int]:
    """As `merged_dims`, but one dimension stays by itself: the last result is its place.

    >>> merged_around((2, 3, 1, 4, 5), [(60, 20, 20, 5, 1)], 2)
    ((6, 1, 20), [(20, 20, 1)], 1)
    """
    parts = (slice(axis), slice(axis, axis + 1), slice(axis + 1, None))
    before, alone, after = (
        (shape[part], [one[part] for one in strides])
        if part is parts[1]
        else merged_dims(shape[part], [one[part] for one in strides])
        for part in parts
    )
    sizes = (*before[0], *alone[0], *after[0])
    steps = zip(before[1], alone[1], after[1], strict=True)
    return sizes, [(*first, *own, *last) for first, own, last in steps], len(before[0])
