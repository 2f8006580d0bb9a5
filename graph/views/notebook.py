"""Pictures and tables as parts of pages of others: notebooks, and what is made of them.

Nothing here styles the page. Text has the page's colours; pictures have its colour scheme, which
notebooks say by attributes and classes, as far as they are known here, or by CSS.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .passes import passes_sheet
from .svg import scoped
from .tables import Sheet, Table, narrow
from .text import schedule_sheet, xml_words

if TYPE_CHECKING:
    from ..ir import Graph
    from ..lower.schedule import Schedule
    from ..passes.pipeline import PassResult
    from ..planner.plan import WorkspacePlan
    from .diff import PlanDiff

VIEW = "aclnn-view"  # the class of what becomes part of a page


def _schemes(*pages: tuple[str, str]) -> str:
    return "".join(
        f"{','.join(f'{page} .{VIEW}' for page in names.split())}{{color-scheme:{scheme}}}"
        for names, scheme in pages
    )


# JupyterLab, Visual Studio Code, Colab, and themes of Sphinx: what they say besides CSS.
SCHEMES = _schemes(
    ('[data-jp-theme-light="true"] .vscode-light [theme="light"] [data-theme="light"]', "light"),
    ('[data-jp-theme-light="false"] .vscode-dark [theme="dark"] [data-theme="dark"]', "dark"),
)
PART = "aclnn-part"  # that of what has no rules of its own
_TABLES = """
table{border-collapse:collapse;margin:.4em 0;color:inherit;background:none}
:is(th,td){padding:.15em .7em;text-align:left;vertical-align:top;white-space:pre;border:0;\
border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent);color:inherit;background:none}
:is(th,td,p,summary){font:12px/1.5 ui-monospace,monospace}:is(p,summary){margin:.3em 0;white-space:pre-wrap}
.long{white-space:pre-wrap}.n{text-align:right}:is(th,.accent){font-weight:700}.alarm{color:#d1242f}
summary{cursor:pointer}
"""
# Twice as specific as what notebooks say of tables.
_SHEET = scoped(_TABLES, f"{PART}.{VIEW}")
LONG = 40  # characters of a cell from which on it has several lines


def view(*parts: str) -> str:
    """Parts of a page in a frame of their own, which scrolls where they are too large."""
    style = f"<style>{SCHEMES}{_SHEET}</style>"
    size = "overflow:auto;max-height:85vh"
    return f'<div class="{VIEW} {PART}" style="{size}">{style}{"".join(parts)}</div>'


def folded(title: str, content: str) -> str:
    """Content that is shown when its title is clicked."""
    return f"<details><summary>{xml_words(title)}</summary>{content}</details>"


def sheet_html(sheet: Sheet) -> str:
    """Tables and lines.

    >>> from .tables import make
    >>> print(sheet_html((make(["name", "bytes"], [["a<b", 1]], "bytes"), "done")))
    <table><thead><tr><th>name</th><th class="n">bytes</th></tr></thead><tbody>
    <tr><td>a&lt;b</td><td class="n">1</td></tr></tbody></table><p>done</p>
    """
    return "".join(
        f"<p>{xml_words(part)}</p>" if isinstance(part, str) else _table(part)
        for part in narrow(sheet)
    )


def _table(made: Table) -> str:
    title = f"<p>{xml_words(made.title)}</p>" if made.title else ""
    head = "".join(_cells(made, made.headers, "th"))
    rows = "".join(f"\n<tr>{''.join(_cells(made, row, 'td'))}</tr>" for row in made.rows)
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cells(made: Table, row: Iterable[str], tag: str) -> Iterable[str]:
    for header, cell in zip(map(str.strip, made.headers), row, strict=True):
        kinds = [
            *(["n"] if header in made.right else []),
            *(["accent"] if tag == "td" and header in made.accent else []),
            *(["long"] if len(cell) > LONG else []),
            *(["alarm"] if made.alarm and cell.endswith(made.alarm) else []),
        ]
        of = f' class="{" ".join(kinds)}"' if kinds else ""
        yield f"<{tag}{of}>{xml_words(cell.strip() if tag == 'th' else cell)}</{tag}>"


# --- What notebooks show of objects -----------------------------------------------------------


def picture_to_html(one: Graph | WorkspacePlan) -> str:
    return view(one.to_svg())


def passes_to_html(passes: PassResult) -> str:
    return view(passes.to_svg(), folded("side by side", sheet_html(passes_sheet(passes))))


def schedule_to_html(schedule: Schedule) -> str:
    return view(sheet_html(schedule_sheet(schedule)))


def diff_to_html(diff: PlanDiff) -> str:
    return view(sheet_html(diff.sheet()))
