"""Tables as data, so that a view is written once and shown as plain text or with rich.

A view makes a `Sheet`: tables and lines of words in the order in which they are read.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..extras import need
from ..summaries import printable


@dataclass(frozen=True, slots=True)
class Table:
    """Headers and rows; the columns named in `right` are flush right, those in `accent` bold, those in
    `wide` only in the wide form, and cells that end in `alarm` red.  Those in `right` and `kept` are
    never cut, those in `wrapped` are broken into lines instead."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str] = frozenset()
    accent: frozenset[str] = frozenset()
    title: str = ""
    alarm: str = ""
    wide: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()
    wrapped: frozenset[str] = frozenset()


Part = Table | str
Sheet = tuple[Part, ...]


def make(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: str = "",
    accent: str = "",
    title: str = "",
    alarm: str = "",
    wide: str = "",
    kept: str = "",
    wrapped: str = "",
) -> Table:
    """A table of whatever has a `str`, which columns are named in, between commas."""
    cells = tuple(tuple(printable(str(cell)) for cell in row) for row in rows)
    names = frozenset(right.split(",")), frozenset(accent.split(","))
    others = (frozenset(filter(None, one.split(","))) for one in (wide, kept, wrapped))
    return Table(tuple(headers), cells, *names, title, alarm, *others)


def narrow(sheet: Sheet) -> Sheet:
    """The sheet without the columns of the wide form.

    >>> narrow((make(["name", "runs"], [["a", 3]], wide="runs"),))[0].rows
    (('a',),)
    """
    return tuple(part if isinstance(part, str) else _without_wide(part) for part in sheet)


def _without_wide(made: Table) -> Table:
    kept = [k for k, header in enumerate(made.headers) if header.strip() not in made.wide]
    if len(kept) == len(made.headers):
        return made
    rows = tuple(tuple(row[k] for k in kept) for row in made.rows)
    return replace(made, headers=tuple(made.headers[k] for k in kept), rows=rows)


# --- Widths -----------------------------------------------------------------------------------

WIDTH = 100  # characters of a line on a terminal
GAP = 2  # characters between columns
LEAST = 6  # characters that a cut column keeps
FEW = 11  # characters that it keeps where others can be cut
NAME = 20  # characters that a column of names keeps


def cut(words: str, width: int) -> str:
    """Words of at most `width` characters, without their middle where that is needed.

    >>> cut("matmul_12_contiguous", 11), cut("matmul", 11)
    ('matmu…guous', 'matmul')
    """
    if len(words) <= width:
        return words
    end = (width - 1) // 2
    return words[: width - 1 - end] + "…" + words[len(words) - end :]


def cut_apart(names: Iterable[str], width: int) -> dict[str, str]:
    """For names that are longer than `width` what is left of them: what they differ in.

    Those that no line can distinguish are broken into several.

    >>> made = cut_apart(["layers.0.attention.weight", "layers.10.attention.weight"], 14)
    >>> list(made.values())
    ['….0.attention…', '….10.attentio…']
    """
    known = dict.fromkeys(names)
    made = {name: name for name in known if len(name) <= width}
    groups: dict[str, list[str]] = {}
    for name in known:
        if name not in made:
            groups.setdefault(cut(name, width), []).append(name)
    for usual, group in groups.items():
        start = _shared(group) if len(group) > 1 else 0
        for name in group:
            short = _window(name, start, width) if start else usual
            if short in made.values():
                short = "\n".join(textwrap.wrap(name, width, drop_whitespace=False))
            made[name] = short
    return made


def _shared(names: Sequence[str]) -> int:
    """Number of characters that all names begin with."""
    first, last = min(names), max(names)
    return next(
        (k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first)
    )


def _window(name: str, start: int, width: int) -> str:
    """The part of a name from a place on, from the beginning of the word there, after its indentation."""
    lead = len(name) - len(name.lstrip(" <>"))
    room = width - lead - 1
    word = re.search(r"[._/:]?[^._/:]{0,6}$", name[lead:start])
    begin = start if word is None else lead + word.start()
    begin = max(lead, min(begin, len(name) - room))
    shown = name[begin : begin + room]
    if begin + room < len(name):
        shown = shown[:-1] + "…"
    return f"{name[:lead]}…{shown}"


def fitted_widths(made: Table, width: int, whole_words: bool = False) -> list[int]:
    """Characters of each column so that a line has at most `width`, if that is possible.

    Numbers keep what they need, headers whole words where that is asked for.

    >>> fitted_widths(make(["name", "bytes"], [["a" * 80, 10**9]], "bytes"), 30)
    [18, 10]
    """
    rows = (made.headers, *made.rows)
    widths = [max(len(line) for cell in column for line in cell.split("\n"))
              for column in zip(*rows, strict=True)]  # fmt: skip
    least = [
        max([NAME if header in made.accent else FEW,
             *(len(word) for word in header.split() if whole_words)])
        for header in made.headers
    ]  # fmt: skip
    uncut = made.right | made.kept
    text = [k for k, header in enumerate(made.headers) if header.strip() not in uncut]
    spare = sum(widths) + GAP * (len(widths) - 1) - width
    # What breaks into lines gives way first.
    breaking = [k in made.wrapped for k in made.headers]
    first = [FEW if breaks else room for breaks, room in zip(breaking, widths, strict=True)]
    for smallest in (first, least, [FEW] * len(widths), [LEAST] * len(widths)):
        while spare > 0 and (wide := [k for k in text if widths[k] > smallest[k]]):
            widths[max(wide, key=lambda k: widths[k])] -= 1
            spare -= 1
    return widths


def to_text(sheet: Sheet, wrap: bool = False, wide: bool = False) -> str:
    """Aligned plain text of lines of at most `WIDTH` characters; of any length in the wide form.

    Cells that have no room lose their middle, or are broken into lines with `wrap`.

    >>> print(to_text((make(["name", "bytes"], [["a", 1], ["bb", 10]], "bytes"), "done")))
    name  bytes
    a         1
    bb       10
    done
    """
    if wide:
        return "\n".join(
            printable(part) if isinstance(part, str) else _aligned(part) for part in sheet
        )
    parts = narrow(sheet)
    return "\n".join(
        _wrapped(part) if isinstance(part, str) else _aligned(part, WIDTH, wrap) for part in parts
    )


def _wrapped(words: str) -> str:
    """Lines of words, the ones that are too long with the rest indented below them."""
    return "\n".join(line for long in printable(words).split("\n") for line in _broken(long))


def _broken(line: str) -> list[str]:
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
        drop_whitespace=True, replace_whitespace=False,
    )  # fmt: skip


def _aligned(made: Table, width: int | None = None, wrap: bool = False) -> str:
    widths = fitted_widths(made, sys.maxsize if width is None else width, wrap)
    flush = [header.strip() in made.right for header in made.headers]
    columns = _cutters(made, widths, wrap)
    lines = [printable(made.title)] if made.title else []
    for row in (made.headers, *made.rows):
        cells = [lines(cell) for lines, cell in zip(columns, row, strict=True)]
        for index in range(max(map(len, cells))):
            words = (cell[index] if index < len(cell) else "" for cell in cells)
            padded = (
                word.rjust(room) if right else word.ljust(room)
                for word, room, right in zip(words, widths, flush, strict=True)
            )
            lines.append((" " * GAP).join(padded).rstrip())
    return "\n".join(lines)


def _cutters(made: Table, widths: Sequence[int], wrap: bool) -> list[Callable[[str], list[str]]]:
    """For each column the function that gives the lines of a cell."""
    found: list[Callable[[str], list[str]]] = []
    for k, (header, width) in enumerate(zip(made.headers, widths, strict=True)):
        name, cells = header.strip(), [row[k] for row in made.rows]
        if name in made.accent and not wrap and any(len(cell) > width for cell in cells):
            broken = cut_apart([line for cell in cells for line in cell.split("\n")], width)
            found.append(partial(_broken_lines, broken))
        else:
            found.append(partial(_lines, width=width, wrap=wrap or name in made.wrapped))
    return found


def _broken_lines(broken: Mapping[str, str], cell: str) -> list[str]:
    return [part for line in cell.split("\n") for part in broken.get(line, line).split("\n")]


def _lines(cell: str, width: int, wrap: bool) -> list[str]:
    lines = cell.split("\n")
    if not wrap:
        return [cut(line, width) for line in lines]
    return [line for row in lines for line in textwrap.wrap(row, width) or [""]]


def to_markdown(sheet: Sheet) -> str:
    """The sheet for Markdown, tables under headings.

    >>> print(to_markdown((make(["name", "bytes"], [["a", 1]], title="Sizes"),)))
    ## Sizes
    <BLANKLINE>
    | name | bytes |
    | --- | --- |
    | a | 1 |
    """
    parts = narrow(sheet)
    return "\n\n".join(part if isinstance(part, str) else _markdown(part) for part in parts)


def _markdown(made: Table) -> str:
    rows = (made.headers, ("---",) * len(made.headers), *made.rows)
    heading = [f"## {made.title}", ""] if made.title else []
    return "\n".join([*heading, *(f"| {' | '.join(row)} |" for row in rows)])


# --- Rich -------------------------------------------------------------------------------------


def to_rich(sheet: Sheet, wrap: bool = False, wide: bool = False) -> Any:
    """The sheet as something that `rich.print` shows; needs the package rich."""
    console = need("rich.console", "rich tables")
    text = need("rich.text", "rich tables").Text
    need("rich.table", "rich tables")
    parts = sheet if wide else narrow(sheet)
    return console.Group(
        *(
            text(printable(part)) if isinstance(part, str) else _RichTable(part, wrap, wide)
            for part in parts
        )
    )


@dataclass(frozen=True, slots=True)
class _RichTable:
    """A table that is made when rich says how wide the terminal is."""

    made: Table
    wrap: bool
    wide: bool

    def __rich_console__(self, _console: Any, options: Any) -> Iterator[Any]:
        text = need("rich.text", "rich tables").Text
        table = need("rich.table", "rich tables").Table
        made = self.made
        # The box has a blank more between columns, and one on each side.
        room = sys.maxsize if self.wide else options.max_width - len(made.headers) - 1
        widths = fitted_widths(made, room, self.wrap)
        columns = _cutters(made, widths, self.wrap)
        shown = table(
            title=printable(made.title) or None, title_justify="left", box=_simple(), pad_edge=False
        )
        for header, width in zip(made.headers, widths, strict=True):
            right = header.strip() in made.right
            shown.add_column(
                text(cut(header.strip(), width)),
                justify="right" if right else "left",
                style="bold" if header.strip() in made.accent else "",
                no_wrap=True,  # half a number is no number, and names are cut already
                min_width=width,
            )
        for row in made.rows:
            # Names and strides are no markup.
            alarming = (made.alarm and cell.endswith(made.alarm) for cell in row)
            cells = ("\n".join(lines(c)) for lines, c in zip(columns, row, strict=True))
            shown.add_row(
                *(text(c, "red" if a else "") for c, a in zip(cells, alarming, strict=True))
            )
        yield shown


def _simple() -> Any:
    return need("rich.box", "rich tables").SIMPLE_HEAD
