"""Sizes of plans over a range of a dimension: the worst case, and the largest that fits.

Sizes are those of plans that are made, not of lines between two of them: a curve's points are planned, and
so are both sides of the answer, the largest number that fits and the one after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..numbers import positive_number
from ..view_methods import Tabled

POINTS = 12  # planned for a curve, before anything is searched for


@dataclass(frozen=True, slots=True)
class Curve(Tabled):
    """Bytes by the size of a dimension.

    Attributes
    ----------
    name : str
        Of the dimension.
    points : tuple of (int, int)
        Sizes and bytes, ascending; all of them were planned.
    capacity : int or None
        Bytes that a plan may take.
    largest : int or None
        The largest size that fits, where it was looked for and one does; the next one was planned, and does
        not fit, unless it is outside the range.

    Examples
    --------
    >>> curve: Curve = search_range("n", lambda n: 64 * n, 1, 100, capacity=1000)
    >>> curve.largest, curve.worst
    (15, (100, 6400))
    """

    name: str
    points: tuple[tuple[int, int], ...]
    capacity: int | None = None
    largest: int | None = None

    @property
    def worst(self) -> tuple[int, int]:
        """The size that needs most, and its bytes; of several the smallest."""
        return max(self.points, key=lambda point: (point[1], -point[0]))

    def to_svg(self) -> str:
        """The curve as a picture, with the capacity and the largest size that fits.

        Returns
        -------
        str
        """
        return self._view("svg")


def search_range(
    name: str,
    bytes_of: Callable[[int], int],
    lower: int,
    upper: int,
    capacity: int | None = None,
    points: int = POINTS,
) -> Curve:
    """Plan sizes of a range, and look for the largest that fits.

    Parameters
    ----------
    name : str
        Of the dimension.
    bytes_of : callable
        Bytes of the plan for a size.
    lower, upper : int
        The smallest and the largest size.
    capacity : int, optional
        Bytes that a plan may take.
    points : int
        Sizes of the curve, in even ratios.

    Returns
    -------
    Curve

    Raises
    ------
    ValueError
        If the range is none.

    Examples
    --------
    >>> search_range("n", lambda n: 64 * -(-n // 8), 1, 64, capacity=128).largest
    16
    """
    if (
        not 1
        <= positive_number(lower, f"{name}: lower")
        <= positive_number(upper, f"{name}: upper")
    ):
        raise ValueError(f"{name}: {lower} to {upper} is no range of sizes")
    known: dict[int, int] = {}

    def planned(size: int) -> int:
        if size not in known:
            known[size] = bytes_of(size)
        return known[size]

    for size in spread(lower, upper, points):
        planned(size)
    _look_around_worst(planned, known, lower, upper)
    largest = None if capacity is None else _largest(planned, known, capacity)
    return Curve(name, tuple(sorted(known.items())), capacity, largest)


def spread(lower: int, upper: int, points: int) -> list[int]:
    """Sizes from `lower` to `upper` in even ratios, both included.

    >>> spread(1, 64, 4), spread(3, 5, 12)
    ([1, 4, 16, 64], [3, 4, 5])
    """
    if upper - lower < points:
        return list(range(lower, upper + 1))
    ratio = (upper / lower) ** (1 / (points - 1))
    inner = [round(lower * ratio**k) for k in range(1, points - 1)]
    return sorted({lower, *inner, upper})


def _look_around_worst(
    planned: Callable[[int], int], known: dict[int, int], lower: int, upper: int
) -> None:
    """Plan what is next to the worst size, and halfway to its neighbours, while that finds more."""
    while True:
        worst = max(known, key=lambda size: (known[size], -size))
        around = sorted(known)
        index = around.index(worst)
        near = {max(lower, worst - 1), min(upper, worst + 1)}
        near |= {(worst + other) // 2 for other in around[max(index - 1, 0) : index + 2]}
        fresh = near - known.keys()
        if not fresh or max(map(planned, fresh)) <= known[worst]:
            return


def _largest(planned: Callable[[int], int], known: dict[int, int], capacity: int) -> int | None:
    """The largest size that fits, between the largest known one that does and the next that does not."""
    fitting = [size for size in known if known[size] <= capacity]
    if not fitting:
        return None
    low = max(fitting)
    above = [size for size in known if size > low]
    if not above:
        return low
    high = min(above)
    while high - low > 1:
        middle = (low + high) // 2
        if planned(middle) <= capacity:
            low = middle
        else:
            high = middle
    return low
