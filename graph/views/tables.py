"""Tables as data, so that a view is written once and shown as plain text or with rich.

A view makes a `Sheet`: tables and lines of words in the order in which they are read.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .extras import need


@dataclass(frozen=True, slots=True)
class Table:
    """Headers and rows; the columns named in `right` are flush right, those in `accent` bold, and
    cells that end in `alarm` red."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str] = frozenset()
    accent: frozenset[str] = frozenset()
    title: str = ""
    alarm: str = ""


Part = Table | str
Sheet = tuple[Part, ...]


def make(
    headers: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: str = "",
    accent: str = "",
    title: str = "",
    alarm: str = "",
) -> Table:
    """A table of whatever has a `str`; `right` and `accent` name headers, between commas."""
    cells = tuple(tuple(map(str, row)) for row in rows)
    names = frozenset(right.split(",")), frozenset(accent.split(","))
    return Table(tuple(headers), cells, *names, title, alarm)


# --- Plain text -------------------------------------------------------------------------------


def to_text(sheet: Sheet, wrap: int | None = None) -> str:
    """Aligned plain text; cells longer than `wrap` are broken into lines.

    >>> print(to_text((make(["name", "bytes"], [["a", 1], ["bb", 10]], "bytes"), "done")))
    name  bytes
    a         1
    bb       10
    done
    """
    return "\n".join(part if isinstance(part, str) else _aligned(part, wrap) for part in sheet)


def _aligned(made: Table, wrap: int | None) -> str:
    rows = [[_lines(cell, wrap) for cell in row] for row in (made.headers, *made.rows)]
    widths = [
        max(len(line) for cell in column for line in cell) for column in zip(*rows, strict=True)
    ]
    flush = [header.strip() in made.right for header in made.headers]
    lines = [made.title] if made.title else []
    for row in rows:
        for place in range(max(map(len, row))):
            words = (cell[place] if place < len(cell) else "" for cell in row)
            padded = (
                word.rjust(width) if right else word.ljust(width)
                for word, width, right in zip(words, widths, flush, strict=True)
            )
            lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _lines(cell: str, wrap: int | None) -> list[str]:
    if wrap is None or len(cell) <= wrap:
        return cell.split("\n")
    return [line for row in cell.split("\n") for line in textwrap.wrap(row, wrap) or [""]]


def to_markdown(sheet: Sheet) -> str:
    """The sheet for Markdown, tables under headings.

    >>> print(to_markdown((make(["name", "bytes"], [["a", 1]], title="Sizes"),)))
    ## Sizes
    <BLANKLINE>
    | name | bytes |
    | --- | --- |
    | a | 1 |
    """
    return "\n\n".join(part if isinstance(part, str) else _markdown(part) for part in sheet)


def _markdown(made: Table) -> str:
    rows = (made.headers, ("---",) * len(made.headers), *made.rows)
    heading = [f"## {made.title}", ""] if made.title else []
    return "\n".join([*heading, *(f"| {' | '.join(row)} |" for row in rows)])


# --- Rich -------------------------------------------------------------------------------------


def to_rich(sheet: Sheet) -> Any:
    """The sheet as something that `rich.print` shows; needs the package rich."""
    console = need("rich.console", "rich tables")
    text = need("rich.text", "rich tables").Text
    table = need("rich.table", "rich tables").Table
    simple = need("rich.box", "rich tables").SIMPLE_HEAD
    return console.Group(
        *(
            text(part) if isinstance(part, str) else _rich_table(part, table, text, simple)
            for part in sheet
        )
    )


def _rich_table(made: Table, table: Any, text: Any, box: Any) -> Any:
    shown = table(title=made.title or None, title_justify="left", box=box, pad_edge=False)
    for header in map(str.strip, made.headers):
        shown.add_column(
            text(header),
            justify="right" if header in made.right else "left",
            style="bold" if header in made.accent else "",
            overflow="fold",
            no_wrap=header in made.right,  # half a number is no number
        )
    for row in made.rows:
        # Names and strides are no markup.
        alarming = (made.alarm and cell.endswith(made.alarm) for cell in row)
        shown.add_row(*(text(c, "red" if a else "") for c, a in zip(row, alarming, strict=True)))
    return shown
