"""Strides: where the elements of a shape lie, whatever they are elements of."""

from __future__ import annotations

import math
from collections.abc import Iterable


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
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


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
    if math.prod(shape) <= 1:
        return True
    return all(
        size == 1 or stride == dense
        for size, stride, dense in zip(shape, strides, contiguous_strides(shape), strict=True)
    )


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
        One stride for each dimension of `target`, 0 along those that are repeated.

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
        stride if size == wanted else 0
        for size, stride, wanted in zip(shape, strides, target[missing:], strict=True)
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
    """Whether no element lies beside another one.

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
