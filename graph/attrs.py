"""Attributes of nodes: pairs of name and value, in order, which can be hashed and compared."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from .constraints import Count, OneOf

Attrs = tuple[tuple[str, Any], ...]
ARGUMENT_KINDS = ("real", "whole")


@dataclass(frozen=True, slots=True)
class Argument:
    """A run-time number: the `place`-th numeric argument of a run.

    Attributes
    ----------
    place : int
        Place among the arguments of a run that are numbers.
    kind : {'real', 'whole'}
        Form that a kernel gets.

    Examples
    --------
    >>> Argument(0)
    Argument(place=0, kind='real')
    """

    place: Count
    kind: Annotated[str, OneOf(ARGUMENT_KINDS)] = "real"


class ByBits(float):
    """A number that equals those of the same bits only: -0.0, or one of the NaNs.

    >>> ByBits(-0.0) == 0.0, ByBits(math.nan) == ByBits(math.nan)
    (False, True)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and _bits(self) == _bits(other)

    def __hash__(self) -> int:
        return hash(_bits(self))


def _bits(number: float) -> bytes:
    return struct.pack("d", number)


def _freeze(value: Any) -> Any:
    """Make an attribute hashable, and numbers differ where their bits do."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and (
        value != value or (value == 0 and math.copysign(1, value) < 0)
    ):
        return ByBits(value)
    if isinstance(value, (list, tuple)):
        return tuple(map(_freeze, value))
    return value


def freeze_attrs(attrs: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> Attrs:
    """Turn a mapping into the sorted tuple of pairs that nodes keep.

    >>> freeze_attrs({"slope": 0.5, "axes": [1, 2]})
    (('axes', (1, 2)), ('slope', 0.5))
    """
    items = attrs.items() if isinstance(attrs, Mapping) else attrs
    return tuple(sorted([(key, _freeze(value)) for key, value in items]))
