"""NumPy integers among arguments: positions that a plan reads at each run, or facts that shape it.

An integer is an array without dimensions at first. If the function asks for its value, as a shape or the end of a
slice does, the trace is made again with it as part of the description, and so are all later ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Integers:
    """Which integers of a call are arrays.

    Attributes
    ----------
    places : list of int
        Among the call's arrays, of those that are.
    order : list of int
        Their numbers among all integers of the call.
    read, positions : set of int
        Places among the call's arrays whose values the function asked for; those of indices.
    """

    def __init__(self, fixed: FixedIntegers):
        self._fixed = fixed
        self._count = 0
        self.places: list[int] = []
        self.order: list[int] = []
        self.read: set[int] = set()
        self.positions: set[int] = set()

    def take(self, value: np.integer, leaves: list[Any]) -> bool:
        """Append an integer to the arrays, unless it is part of the description."""
        number = self._count
        self._count += 1
        if self._fixed.has(number):
            return False
        self.places.append(len(leaves))
        self.order.append(number)
        leaves.append(np.asarray(value))
        return True


class FixedIntegers:
    """The integers that a function asked for, by their numbers; they become more and never less."""

    def __init__(self) -> None:
        self._all = False
        self._numbers: frozenset[int] = frozenset()

    def has(self, number: int) -> bool:
        """Whether the integer of that number is part of the description."""
        return self._all or number in self._numbers

    def fix(self, integers: Integers) -> None:
        """Add those of a call that were read; where it is not known which, those that are no indices, or all."""
        known = dict(zip(integers.places, integers.order, strict=True))
        found = integers.read & known.keys() or known.keys() - integers.positions
        self._numbers |= {known[index] for index in found}
        self._all |= not found


class IntegersReadError(Exception):
    """A trace came to an end because the function asked for an integer's value."""
