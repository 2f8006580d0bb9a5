"""Constraints on fields of dataclasses: what documents may hold beyond a type.

They stand in annotations, for the JSON Schemas that are derived from the classes and for the readers of
documents; nothing tests them when an object is made.
"""

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class Range:
    """Least and largest number."""

    minimum: int
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Length:
    """Least and largest number of items."""

    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class OneOf:
    """The words that there are."""

    words: tuple[str, ...]


Count = Annotated[int, Range(0)]
Positive = Annotated[int, Range(1)]
Amount = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1)]
