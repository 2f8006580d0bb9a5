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

from ..constraints import Count
from ..numbers import whole_number
from ..summaries import fields_given

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
class Gap:
    """Steps of a lifetime, `lower` until before `upper`, in which others may use its bytes.

    Attributes
    ----------
    lower : int
        The first step.
    upper : int
        The first step at which the bytes are in use again.
    window : tuple of int, optional
        The bytes that stay in use all the same: from the first until before the second.

    Examples
    --------
    >>> Gap(2, 5), Gap(2, 5, window=(0, 64))
    (Gap(lower=2, upper=5), Gap(lower=2, upper=5, window=(0, 64)))
    """

    lower: Count
    upper: Count
    window: tuple[int, int] | None = None

    __repr__ = fields_given


Piece = tuple[int, int, int, int]  # steps from, until before; bytes from, until before


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Something that needs `nbytes` from step `lower` until before step `upper`.

    `contents` describes its contents, such as ``float32[4,8]``.  `same_as` names the lifetime
    whose bytes it takes over, as a result in place takes those of its operand: both get one
    offset, and are planned as one lifetime from the first start to the last end.

    Its place is a multiple of `alignment`, and of 64, unless `offset` says where it is; `hint` is
    where it should be if that costs nothing.  In `gaps` others may use its bytes; `uses` are the steps
    that write or read it, where these are more than the first and the last.

    Raises
    ------
    ValueError
        Naming the field and its value: steps and bytes are integers, and
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
    gaps: tuple[Gap, ...] = ()
    uses: tuple[int, ...] = ()

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
        if self.gaps:
            self._check_gaps()
        if self.uses and not (self.lower <= min(self.uses) and max(self.uses) < self.upper):
            raise ValueError(
                f"{self.name}: uses are steps {min(self.uses)} to {max(self.uses)}, must be in "
                f"[{self.lower}, {self.upper})"
            )

    def _check_gaps(self) -> None:
        gaps = tuple(sorted(self.gaps, key=lambda gap: gap.lower))
        object.__setattr__(self, "gaps", gaps)
        end = self.lower
        for gap in gaps:
            if not self.lower <= gap.lower < gap.upper <= self.upper:
                raise ValueError(
                    f"{self.name}: the gap [{gap.lower}, {gap.upper}) is no range of steps in "
                    f"[{self.lower}, {self.upper})"
                )
            if gap.lower < end:
                raise ValueError(f"{self.name}: two of its gaps have step {gap.lower}")
            end = gap.upper
            if gap.window and not 0 <= gap.window[0] < gap.window[1] <= self.nbytes:
                raise ValueError(
                    f"{self.name}: the window [{gap.window[0]}, {gap.window[1]}) of the gap from step "
                    f"{gap.lower} is no range of its {self.nbytes} bytes"
                )

    def _check_demands(self) -> None:
        for demand in ("alignment", "offset", "hint"):
            value, least = getattr(self, demand), int(demand == "alignment")
            if value is None and demand != "alignment":
                continue
            number = whole_number(value, f"{self.name}: {demand}")
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

    def pieces(self, nbytes: int | None = None) -> list[Piece]:
        """Ranges of steps and of bytes that are in use: all bytes outside gaps, windows in them.

        Parameters
        ----------
        nbytes : int, optional
            Its padded bytes; by default those of the lifetime.

        Returns
        -------
        list of tuple
            First step, step after the last, first byte, byte after the last.

        Examples
        --------
        >>> Lifetime("a", 0, 9, 100, gaps=(Gap(2, 4), Gap(6, 7, (0, 10)))).pieces(128)
        [(0, 2, 0, 128), (4, 6, 0, 128), (6, 7, 0, 10), (7, 9, 0, 128)]
        """
        size = self.nbytes if nbytes is None else nbytes
        found, at = [], self.lower
        for gap in self.gaps:
            found.append((at, gap.lower, 0, size))
            if gap.window:
                found.append((gap.lower, gap.upper, *gap.window))
            at = gap.upper
        found.append((at, self.upper, 0, size))
        return [piece for piece in found if piece[0] < piece[1]]

    @property
    def used(self) -> tuple[int, ...]:
        """The steps that write or read it: `uses`, else the first and the last."""
        return self.uses or tuple(dict.fromkeys((self.lower, self.upper - 1)))


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
    """Separate memory for an input that kernels read in a packed layout, made once for many runs.

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
    place_of = {root: index for index, root in enumerate(groups)}
    return tuple(map(_hull, groups.values())), [place_of[root] for root in roots]


def fixed_overlap(lifetimes: Sequence[Lifetime]) -> tuple[int, int] | None:
    """The numbers of two lifetimes whose fixed offsets make them overlap at one step, if there are any.

    >>> fixed_overlap([Lifetime("a", 0, 2, 100, offset=0), Lifetime("b", 1, 3, 64, offset=64)])
    (0, 1)
    """
    fixed = sorted(
        (lower, i, upper, life.offset + begin, life.offset + end)
        for i, life in enumerate(lifetimes)
        if life.offset is not None
        for lower, upper, begin, end in life.pieces()
    )
    live: list[tuple[int, int, int, int, int]] = []
    for piece in fixed:
        lower, i, _, begin, end = piece
        live = [one for one in live if one[2] > lower]
        for _, j, _, other, last in live:
            if begin < last and other < end:
                return min(i, j), max(i, j)
        live.append(piece)
    return None


def _hull(group: Sequence[Lifetime]) -> Lifetime:
    """A lifetime that covers all of a group."""
    if len(group) == 1:
        return replace(group[0], same_as="") if group[0].same_as else group[0]
    return replace(
        group[0],
        lower=min(life.lower for life in group),
        upper=max(life.upper for life in group),
        nbytes=max(life.nbytes for life in group),
        same_as="",
        alignment=lcm(*[life.alignment for life in group]),
        offset=_one_offset(group),
        gaps=(),  # others of the group are in use there, as a rule
        uses=tuple(sorted({step for life in group for step in life.used})),
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
    place_of = {life.name: index for index, life in enumerate(lifetimes)}
    roots = [-1] * len(lifetimes)
    for index in range(len(lifetimes)):
        path, at = [], index
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
        A line of headers, and a line for each of them. Columns for alignments, gaps, fixed offsets,
        hints and uses are there where a lifetime has some.

    Examples
    --------
    >>> lifetimes_to_csv([Lifetime("a", 0, 2, 100)])
    'id,lower,upper,size\na,0,2,100\n'
    >>> lifetimes_to_csv([Lifetime("a", 0, 2, 100)], [64])
    'id,lower,upper,size,offset\na,0,2,100,64\n'
    >>> lifetimes_to_csv([Lifetime("a", 0, 9, 100, gaps=(Gap(2, 4), Gap(6, 7, (0, 10))))])
    'id,lower,upper,size,gaps\na,0,9,100,2-4 6-7@0:10\n'
    """
    lives = tuple(lifetimes)
    columns: dict[str, list[object]] = {
        "id": [one.name for one in lives],
        "lower": [one.lower for one in lives],
        "upper": [one.upper for one in lives],
        "size": [one.nbytes for one in lives],
    }
    optional: dict[str, list[object]] = {
        "alignment": [one.alignment if one.alignment > 1 else "" for one in lives],
        "gaps": [" ".join(map(_gap_words, one.gaps)) for one in lives],
        "offset": ["" if one.offset is None else one.offset for one in lives],
        "hint": ["" if one.hint is None else one.hint for one in lives],
        "uses": [" ".join(map(str, one.uses)) for one in lives],
    }
    columns |= {name: words for name, words in optional.items() if any(one != "" for one in words)}
    if offsets is not None:
        columns["offset"] = list(offsets)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def _gap_words(gap: Gap) -> str:
    window = f"@{gap.window[0]}:{gap.window[1]}" if gap.window else ""
    return f"{gap.lower}-{gap.upper}{window}"


def lifetimes_from_csv(text: str) -> tuple[Lifetime, ...]:
    r"""The lifetimes in a MiniMalloc problem.

    Parameters
    ----------
    text : str
        With the columns id, lower, upper and size, and perhaps alignment, gaps, offset, hint and uses,
        as in `Lifetime`; others are ignored. Gaps have spaces between them: ``2-4`` are steps 2 and 3,
        and during ``6-7@0:10`` the first ten bytes stay in use.

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
        found = tuple(_lifetime(index, row) for index, row in enumerate(rows, 1))
        if pair := fixed_overlap(found):
            a, b = (found[i] for i in pair)
            raise ValueError(
                f"rows {pair[0] + 1} and {pair[1] + 1}: {a.name} at {a.offset} and {b.name} at "
                f"{b.offset} overlap, and both are needed at step {max(a.lower, b.lower)}"
            )
    except csv.Error as error:
        raise ValueError(f"no CSV, line {rows.line_num + 1}: {error}") from None
    return found


def _lifetime(index: int, row: Mapping[str, str | None]) -> Lifetime:
    if not row["id"] or None in (row["lower"], row["upper"], row["size"]):
        raise ValueError(f"row {index} has no id, or fewer columns than the header")
    lower, upper, size = (
        _number(index, column, row[column]) for column in ("lower", "upper", "size")
    )
    demands: dict[str, Any] = {
        column: _number(index, column, row[column])
        for column in ("alignment", "offset", "hint")
        if (row.get(column) or "").strip()
    }
    demands["gaps"] = tuple([_gap(index, one) for one in (row.get("gaps") or "").split()])
    demands["uses"] = tuple(
        [_number(index, "uses", one) for one in (row.get("uses") or "").split()]
    )
    try:
        return Lifetime(row["id"], lower, upper, size, **demands)
    except ValueError as error:
        raise ValueError(f"row {index}: {error}") from None


def _gap(index: int, words: str) -> Gap:
    found = re.fullmatch(
        r"([0-9]{1,19})-([0-9]{1,19})(?:@([0-9]{1,19}):([0-9]{1,19}))?", words, re.ASCII
    )
    if found is None:
        raise ValueError(
            f"row {index}: gaps has {words!r}, must be LOWER-UPPER or LOWER-UPPER@FIRST:LAST, such as "
            "2-4 or 2-4@0:64"
        )
    window = (int(found[3]), int(found[4])) if found[3] else None
    return Gap(int(found[1]), int(found[2]), window)


def _number(index: int, column: str, word: str | None) -> int:
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,19}\s*", word or "", re.ASCII):
        raise ValueError(f"row {index}: {column} is {word!r}, must be an integer")
    return int(word or "")
