"""Names: free ones for what is made, and those there are for people who asked for another."""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """Names that are taken, and more like them.

    >>> names = Names(["x", "x_2"])
    >>> names.fresh("x"), names.fresh("x"), names.fresh("y")
    ('x_3', 'x_4', 'y')
    """

    def __init__(self, taken: Iterable[str] = ()):
        self._taken = set(taken)
        self._tried: dict[str, int] = {}  # the last number for a name: none below it is free

    def fresh(self, name: str) -> str:
        """`name`, with a number where it is taken; it is taken then."""
        label, count = name, self._tried.get(name, 1)
        while label in self._taken:
            count += 1
            label = f"{name}_{count}"
        self._tried[name] = count
        self._taken.add(label)
        return label


def listed(names: Iterable[str]) -> str:
    """Names in a line; of many the first ten.

    >>> listed("abc"), listed("abcdefghijkl"), listed("")
    ('a, b, c', 'a, b, c, d, e, f, g, h, i, j and 2 more', 'none')
    """
    known = list(names)
    more = f" and {len(known) - 10} more" if len(known) > 10 else ""
    return ", ".join(known[:10]) + more or "none"
