"""Basic indices: what they take along each dimension."""

from __future__ import annotations

from typing import Any

from aclnn.acl.arguments import as_int, shown
from aclnn.acl.errors import invalid
from aclnn.compiler.joining import Pieces


def pieces_of(index: Any, shape: tuple[int, ...]) -> tuple[Pieces, tuple[int, ...]]:
    """What an index takes of each dimension, and the shape that is left then.

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
                f"a traced array cannot be indexed by {shown(part)}: only by integers, slices, "
                "None and ...; aclnn.call embeds anything else"
            )
        if not -size <= at < size:
            raise IndexError(f"index {at} is out of bounds for axis {axis} with size {size}")
        pieces.append((at % size, 1, 1))
    return tuple(pieces), tuple(left)


def _filled(parts: tuple[Any, ...], rank: int) -> list[Any]:
    """The index with a part for every dimension."""
    dots = [place for place, part in enumerate(parts) if part is Ellipsis]
    used = len(parts) - len(dots) - sum(part is None for part in parts)
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > rank:
        raise IndexError(f"too many indices: array has {rank} dimensions, but {used} were indexed")
    at = dots[0] if dots else len(parts)
    whole = [slice(None)] * (rank - used)
    return [*parts[:at], *whole, *parts[at + len(dots) :]]
