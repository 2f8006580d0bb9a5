"""Attributes of nodes: pairs of name and value, in order, which can be hashed and compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Attrs = tuple[tuple[str, Any], ...]
ARGUMENT_KINDS = ("real", "whole")


@dataclass(frozen=True, slots=True)
class Argument:
    """A run-time number: the `place`-th numeric argument of a run.

    `kind` is the form that a kernel gets: 'real' or 'whole'.

    >>> Argument(0)
    Argument(place=0, kind='real')
    """

    place: int
    kind: str = "real"


def _freeze(value: Any) -> Any:
    """Make an attribute hashable, and NaN the one NaN, so that equal graphs compare equal."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and math.isnan(value):
        return math.nan
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
