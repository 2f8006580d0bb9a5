"""Basic indices: what they take along each dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.acl.arguments import as_int, shown
from aclnn.acl.errors import invalid
from aclnn.compiler.recording import Pieces


def pieces_of(index: Any, shape: tuple[int, ...]) -> tuple[Pieces, tuple[int, ...]]:
    """Pieces that an index takes of each dimension, and the shape that is left then.

    >>> pieces_of((slice(None), None, -1), (4, 3))
    (((0, 1, 4), (2, 1, 1)), (4, 1))
    """
    parts = _filled(index if isinstance(index, tuple) else (index,), len(shape))
    pieces: list[tuple[int, int, int]] = []
    left: list[int] = []
    for part in parts:
        if part is None:
            left.append(1)
            continue
        axis, size = len(pieces), shape[len(pieces)]
        if isinstance(part, slice):
            begin, end, step = part.indices(size)
            count = len(range(begin, end, step))
            pieces.append((begin if count else 0, step, count))
            left.append(count)
            continue
        at = as_int(part)
        if at is None or isinstance(part, bool):
            raise invalid(
                f"a traced array cannot be indexed by {shown(part)}: only by integers, an array of them, "
                "slices, None and ...; aclnn.call embeds anything else"
            )
        if not -size <= at < size:
            raise IndexError(f"index {at} is out of bounds for axis {axis} with size {size}")
        pieces.append((at % size, 1, 1))
    return tuple(pieces), tuple(left)


def positions_in(index: Any, rank: int) -> tuple[Any, int, Any] | None:
    """An index with one array of positions: what is basic of it, and the dimension that positions are of.

    Parameters
    ----------
    index : object
    rank : int
        How many dimensions are indexed.

    Returns
    -------
    tuple or None
        The index with a whole slice in the place of the array, the dimension of what that gives, and the
        array; None for a basic index.

    Raises
    ------
    AclnnError
        If there is more than one array, or integers besides, which NumPy counts as arrays.

    >>> positions_in((slice(2), None, np.array([1, 0])), 2)
    ((slice(None, 2, None), None, slice(None, None, None)), 2, array([1, 0]))
    """
    parts = index if isinstance(index, tuple) else (index,)
    if not any(map(_has_positions, parts)):
        return None
    parts = tuple(_filled(parts, rank))
    places = [n for n, part in enumerate(parts) if _has_positions(part)]
    position = places[0]
    positions = parts[position]
    numbers = [n for n, part in enumerate(parts) if n not in places and _is_number(part)]
    if len(places) > 1 or (numbers and np.ndim(positions)):
        raise invalid(
            f"an index of a traced array has {len(places)} arrays and {len(numbers)} numbers: it takes one "
            "array of integers among slices, None and ..., or one position among numbers; index one "
            "dimension after the other"
        )
    basic = (*parts[:position], slice(None), *parts[position + 1 :])
    return basic, position - sum(n < position for n in numbers), positions


def _is_number(part: Any) -> bool:
    return part is not None and part is not Ellipsis and not isinstance(part, slice)


def _has_positions(part: Any) -> bool:
    """Whether a part of an index is an array of integers."""
    if isinstance(part, list):
        part = np.asarray(part)
    dtype = getattr(part, "dtype", None)
    return (
        hasattr(part, "ndim")
        and not isinstance(part, np.generic)
        and getattr(dtype, "kind", "") in ("i", "u")
    )


def _filled(parts: tuple[Any, ...], rank: int) -> list[Any]:
    """The index with a part for every dimension."""
    dots = [index for index, part in enumerate(parts) if part is Ellipsis]
    used = len(parts) - len(dots) - sum(part is None for part in parts)
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > rank:
        raise IndexError(f"too many indices: array has {rank} dimensions, but {used} were indexed")
    at = dots[0] if dots else len(parts)
    whole = [slice(None)] * (rank - used)
    return [*parts[:at], *whole, *parts[at + len(dots) :]]
