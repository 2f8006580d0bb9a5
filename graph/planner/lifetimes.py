"""Lifetimes: when each intermediate is needed, and for how many bytes.

Steps are numbered from 0; lifetimes are half-open, ``[lower, upper)``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm
from typing import Any

from ..brief import fields_given
from ..constraints import Count
from ..numbers import whole_number

LATEST_STEP = MOST_BYTES = 2**62  # what is added to these stays within 64 bits


@dataclass(frozen=True, slots=True)
class TilePart:
    """A tile within the scratch that each thread has for a tile loop.

    Attributes
    ----------
    name : str
        Of the value.
    value : int
        Id of the value in the graph; -1: memory that a kernel has for itself.
    offset : int
        Bytes from the start of a thread's tiles.
    nbytes : int
        Bytes of one tile.
    """

    name: str
    value: int
    offset: Count
    nbytes: Count


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Something that needs `nbytes` from step `lower` until before step `upper`.

    `contents` says in words what it holds, such as ``float32[4,8]``.  `same_as` names the lifetime
    whose bytes it takes over, as a result in place takes those of its operand: both get one
    offset, and are planned as one lifetime from the first start to the last end.

    Its place is a multiple of `alignment`, and of 64, unless `offset` says where it is; `hint` is
    where it should be if that costs nothing.

    Raises
    ------
    ValueError
        Naming the field and its value: steps and bytes are whole numbers, and
        ``0 <= lower < upper``.

    Examples
    --------
    >>> Lifetime("a", 0, 2, 100).overlaps(Lifetime("b", 2, 3, 50))
    False
    """

    name: str
    lower: int
    upper: int
    nbytes: int
    producer: str = ""
    consumers: tuple[str, ...] = ()
    parts: tuple[TilePart, ...] = ()
    contents: str = ""
    same_as: str = ""
    alignment: int = 1
    offset: int | None = None
    hint: int | None = None

    __repr__ = fields_given

    def __post_init__(self) -> None:
        # Nearly all are plain numbers, and every call that is planned makes some.
        if not type(self.lower) is type(self.upper) is type(self.nbytes) is int:
            for field in ("lower", "upper", "nbytes"):
                number = whole_number(getattr(self, field), f"{self.name}: {field}")
                object.__setattr__(self, field, number)
        if not 0 <= self.lower < self.upper <= LATEST_STEP:
            raise ValueError(
                f"{self.name}: [{self.lower}, {self.upper}) is not a range of steps: "
                f"0 <= lower < upper <= {LATEST_STEP} must hold"
            )
        if not 0 <= self.nbytes <= MOST_BYTES:
            size = self.nbytes
            raise ValueError(f"{self.name}: a size of {size}, must be from 0 to {MOST_BYTES}")
        if self.alignment != 1 or self.offset is not None or self.hint is not None:
            self._check_demands()

    def _check_demands(self) -> None:
        for demand in ("alignment", "offset", "hint"):
            given, least = getattr(self, demand), int(demand == "alignment")
            if given is None and demand != "alignment":
                continue
            number = whole_number(given, f"{self.name}: {demand}")
            object.__setattr__(self, demand, number)
            if not least <= number <= MOST_BYTES:
                raise ValueError(
                    f"{self.name}: {demand} is {number}, must be from {least} to {MOST_BYTES}"
                )
        if self.offset is not None and self.offset % self.alignment:
            raise ValueError(
                f"{self.name}: offset is {self.offset}, which alignment {self.alignment} does not "
                "divide"
            )

    @property
    def first(self) -> int:
        """The step that produces it."""
        return self.lower

    @property
    def last(self) -> int:
        """The last step that reads it (or the one that produces it)."""
        return self.upper - 1

    def overlaps(self, other: Lifetime) -> bool:
        """Whether both are needed at some step.

        Parameters
        ----------
        other : Lifetime

        Returns
        -------
        bool
        """
        return self.lower < other.upper and other.lower < self.upper


@dataclass(frozen=True, slots=True)
class SpareMemory:
    """Memory of an output, which may hold intermediates until step `until` writes an output.

    Attributes
    ----------
    output : str
        Name of the output.
    nbytes : int
        Its bytes.
    until : int
        The first step that writes an output.
    heir : str
        The intermediate that this step reads last while it writes the output over it; else
        empty.
    only_heir : bool
        Whether nothing else may lie there: the memory is that of an input, which is read until the heir
        begins.

    Examples
    --------
    >>> SpareMemory("out", nbytes=4096, until=3)
    SpareMemory(output='out', nbytes=4096, until=3, heir='')
    """

    output: str
    nbytes: Count
    until: Count
    heir: str = ""
    only_heir: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PackedMemory:
    """Memory of its own for an input that kernels read in another form, made once for many runs.

    Attributes
    ----------
    name : str
        Its name among the arguments of the schedule.
    operand : str
        The input.
    nbytes : int
        Its bytes.
    readers : tuple of str
        The nodes that read it in place of the input.

    Examples
    --------
    >>> PackedMemory("w packed", operand="w", nbytes=4096, readers=("matmul",)).operand
    'w'
    """

    name: str
    operand: str
    nbytes: Count
    readers: tuple[str, ...] = ()


def merged(lifetimes: Sequence[Lifetime]) -> tuple[tuple[Lifetime, ...], list[int]]:
    """Lifetimes in which those that share their bytes are one, and the place of each one's there.

    >>> lives = Lifetime("a", 0, 2, 64), Lifetime("b", 0, 4, 8), Lifetime("c", 1, 3, 64, same_as="a")
    >>> one, places = merged(lives)
    >>> [(life.name, life.lower, life.upper) for life in one], places
    ([('a', 0, 3), ('b', 0, 4)], [0, 1, 0])
    """
    roots = _roots(lifetimes)
    groups: dict[int, list[Lifetime]] = {}
    for life, root in zip(lifetimes, roots, strict=True):
        groups.setdefault(root, []).append(life)
    place_of = {root: place for place, root in enumerate(groups)}
    return tuple(map(_hull, groups.values())), [place_of[root] for root in roots]


def fixed_overlap(lifetimes: Sequence[Lifetime]) -> tuple[int, int] | None:
    """The numbers of two lifetimes whose fixed offsets make them overlap at one step, if there are any.

    >>> fixed_overlap([Lifetime("a", 0, 2, 100, offset=0), Lifetime("b", 1, 3, 64, offset=64)])
    (0, 1)
    """
    fixed = [(life.lower, i) for i, life in enumerate(lifetimes) if life.offset is not None]
    live: list[int] = []
    for lower, i in sorted(fixed):
        begin, end = _fixed_bytes(lifetimes[i])
        live = [j for j in live if lifetimes[j].upper > lower]
        for j in live:
            other, last = _fixed_bytes(lifetimes[j])
            if begin < last and other < end:
                return min(i, j), max(i, j)
        live.append(i)
    return None


def _fixed_bytes(life: Lifetime) -> tuple[int, int]:
    begin = life.offset or 0
    return begin, begin + life.nbytes


def _hull(group: Sequence[Lifetime]) -> Lifetime:
    """A lifetime that covers all of a group."""
    return replace(
        group[0],
        lower=min(life.lower for life in group),
        upper=max(life.upper for life in group),
        nbytes=max(life.nbytes for life in group),
        same_as="",
        alignment=lcm(*[life.alignment for life in group]),
        offset=_one_offset(group),
    )


def _one_offset(group: Sequence[Lifetime]) -> int | None:
    """The fixed offset of lifetimes that have one place."""
    fixed = [life for life in group if life.offset is not None]
    for life in fixed[1:]:
        if life.offset != fixed[0].offset:
            raise ValueError(
                f"{fixed[0].name} at {fixed[0].offset} and {life.name} at {life.offset} have one "
                "place, but different offsets"
            )
    return fixed[0].offset if fixed else None


def _roots(lifetimes: Sequence[Lifetime]) -> list[int]:
    """For each lifetime the place of the one whose bytes it has in the end."""
    place_of = {life.name: place for place, life in enumerate(lifetimes)}
    roots = [-1] * len(lifetimes)
    for place in range(len(lifetimes)):
        path, at = [], place
        while roots[at] < 0:
            path.append(at)
            roots[at] = len(lifetimes)  # on the path
            target = lifetimes[at].same_as
            if not target:
                roots[at] = at
            elif target not in place_of:
                raise ValueError(
                    f"{lifetimes[at].name}: same_as is {target!r}, which is no lifetime"
                )
            else:
                at = place_of[target]
        if roots[at] == len(lifetimes):
            raise ValueError(f"{lifetimes[at].name}: same_as leads back to it")
        for step in path:
            roots[step] = roots[at]
    return roots


# --- MiniMalloc's CSV -------------------------------------------------------------------------


def lifetimes_to_csv(lifetimes: Iterable[Lifetime], offsets: Sequence[int] | None = None) -> str:
    r"""Lifetimes as MiniMalloc reads them.

    Parameters
    ----------
    lifetimes : iterable of Lifetime
    offsets : sequence of int, optional
        Where each of them is; a column more.

    Returns
    -------
    str
        A line of headers, and a line for each of them.

    Examples
    --------
    >>> lifetimes_to_csv([Lifetime("a", 0, 2, 100)])
    'id,lower,upper,size\na,0,2,100\n'
    >>> lifetimes_to_csv([Lifetime("a", 0, 2, 100)], [64])
    'id,lower,upper,size,offset\na,0,2,100,64\n'
    """
    rows: list[list[object]] = [[one.name, one.lower, one.upper, one.nbytes] for one in lifetimes]
    headers = ["id", "lower", "upper", "size"]
    if offsets is not None:
        headers.append("offset")
        rows = [[*row, offset] for row, offset in zip(rows, offsets, strict=True)]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([headers, *rows])
    return out.getvalue()


def lifetimes_from_csv(text: str) -> tuple[Lifetime, ...]:
    r"""The lifetimes in a MiniMalloc problem.

    Parameters
    ----------
    text : str
        With the columns id, lower, upper and size, and perhaps alignment, offset and hint, as in
        `Lifetime`; others are ignored, but gaps, which must be empty.

    Returns
    -------
    tuple of Lifetime

    Raises
    ------
    ValueError
        Names the missing columns, or the row and its fault.

    Examples
    --------
    >>> lifetimes_from_csv("id,lower,upper,size\na,0,2,100\n")[0].upper
    2
    """
    rows = csv.DictReader(io.StringIO(text))
    try:
        missing = {"id", "lower", "upper", "size"} - set(rows.fieldnames or ())
        if missing:
            raise ValueError(f"columns missing: {', '.join(sorted(missing))}")
        found = tuple(_lifetime(place, row) for place, row in enumerate(rows, 1))
        if pair := fixed_overlap(found):
            a, b = (found[i] for i in pair)
            raise ValueError(
                f"rows {pair[0] + 1} and {pair[1] + 1}: {a.name} at {a.offset} and {b.name} at "
                f"{b.offset} overlap, and both are needed at step {max(a.lower, b.lower)}"
            )
    except csv.Error as error:
        raise ValueError(f"no CSV, line {rows.line_num + 1}: {error}") from None
    return found


def _lifetime(place: int, row: Mapping[str, str | None]) -> Lifetime:
    if not row["id"] or None in (row["lower"], row["upper"], row["size"]):
        raise ValueError(f"row {place} has no id, or fewer columns than the header")
    lower, upper, size = (
        _number(place, column, row[column]) for column in ("lower", "upper", "size")
    )
    if (row.get("gaps") or "").strip():
        raise ValueError(
            f"row {place}: gaps is {row['gaps']!r}, must be empty: bytes of a lifetime are its own "
            "from lower to upper"
        )
    demands: dict[str, Any] = {
        column: _number(place, column, row[column])
        for column in ("alignment", "offset", "hint")
        if (row.get(column) or "").strip()
    }
    try:
        return Lifetime(row["id"], lower, upper, size, **demands)
    except ValueError as error:
        raise ValueError(f"row {place}: {error}") from None


def _number(place: int, column: str, word: str | None) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,19}\s*", word or "", re.ASCII):
        raise ValueError(f"row {place}: {column} is {word!r}, must be an integer")
    return int(word or "")
