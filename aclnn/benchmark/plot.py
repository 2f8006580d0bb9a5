"""Plots of benchmark reports, with matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from aclnn.acl import files
from aclnn.acl.errors import invalid
from aclnn.benchmark.cells import DTYPES
from aclnn.benchmark.peers import TITLES
from aclnn.benchmark.targets import Row, bar_for
from aclnn.graph.extras import need

COLORS = dict(zip(DTYPES, ("#1f6fb4", "#d9661f", "#2f8f4e"), strict=True))
MIXED_COLOR = "#7d4fa3"
PEER_MARKS = {"jax": "x", "numexpr": "+", "numba": "1"}
GREY = "#777777"
FILLED = 1  # the number of threads whose points are; those of any other are hollow


def library() -> Any:
    """matplotlib, without a display; ModuleNotFoundError says how to get it."""
    return need("matplotlib.figure", "pictures", "bench")


def check(path: str | Path) -> None:
    """Refuse a picture that could not be written, before anything is measured for it."""
    known = library().Figure().canvas.get_supported_filetypes()
    kind = Path(path).suffix.removeprefix(".")
    if kind and kind.lower() not in known:
        raise invalid(f"{path}: must end in one of {', '.join(sorted(known))}")


def draw(report: dict[str, Any], path: str | Path) -> None:
    """Write a report's picture: every ratio above, shares of the machine's own speed below.

    Parameters
    ----------
    report : dict
        As `aclnn.benchmark.matrix.measured` gives it; of several instruction sets, the first.
    path : str or Path
        ``.svg``, ``.png`` or whatever else matplotlib writes.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed; the message says how to get it.
    """
    figures = library()
    rows = [row for row in report["rows"] if row["isa"] == report["rows"][0]["isa"]]
    near_limit = [row for row in rows if row["of_copy"] is not None]
    panels = 2 if near_limit else 1
    width = max(7.0, 1.5 + 0.13 * len(_places(rows)))
    figure = figures.Figure(figsize=(width, 4.2 * panels + 1.2), layout="constrained")
    axes = figure.subplots(panels, squeeze=False)[:, 0]
    _ratios(axes[0], rows, report["machine"]["best_isa"])
    if near_limit:
        _shares(axes[1], near_limit)
    _explain(figure, rows)
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    figure.suptitle(
        f"{report['machine']['cpu']}, {rows[0]['isa']}\n{versions}", fontsize=8, color=GREY
    )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    picture = io.BytesIO()
    figure.savefig(picture, format=Path(path).suffix.removeprefix("."), dpi=150)
    files.write(path, picture.getvalue())


def _places(rows: Sequence[Row]) -> dict[tuple[str, str, str], float]:
    """Place of each cell on the x axis: with gaps between operators and between regimes."""
    places: dict[tuple[str, str, str], float] = {}
    at, before = 0.0, ("", "")
    for row in rows:
        group = row["regime"], row["operator"]
        cell = (*group, row["dtype"])
        if cell in places:
            continue
        if places:
            new_regime = group[0] != before[0]
            at += 1.0 + 0.8 * (group != before) + 1.0 * new_regime
        places[cell], before = at, group
    return places


def _ratios(axes: Any, rows: Sequence[Row], best_isa: str) -> None:
    places = _places(rows)
    axes.set_yscale("log", base=2)
    axes.axhline(1, color="black", linewidth=1)
    axes.set_ylabel("PyTorch's time over ours (grey: others')")
    for row in rows:
        x = places[row["regime"], row["operator"], row["dtype"]]
        for key, ratio in row["ratios"].items():
            if key == "torch":
                _point(axes, x, ratio, row)
            else:
                axes.plot(x, ratio, PEER_MARKS[key], color=GREY, markersize=4, alpha=0.6)
        bar = bar_for("torch", row, best_isa)
        if bar is not None:
            axes.hlines(bar.bound, x - 0.6, x + 0.6, color="#c22222", linewidth=1.5)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _label(axes, places)


def _shares(axes: Any, rows: Sequence[Row]) -> None:
    places = _places(rows)
    axes.axhline(100, color="black", linewidth=1)
    axes.set_ylabel("our speed, % of a copy of as many bytes")
    for row in rows:
        x = places[row["regime"], row["operator"], row["dtype"]]
        _point(axes, x, 100 * row["of_copy"], row)
    axes.set_ylim(bottom=0)
    _label(axes, places)


def _point(axes: Any, x: float, y: float, row: Row) -> None:
    color = COLORS.get(row["dtype"], MIXED_COLOR)
    face = color if row["threads"] == FILLED else "none"
    axes.plot(x, y, "o", color=color, markerfacecolor=face, markersize=5)


def _label(axes: Any, places: dict[tuple[str, str, str], float]) -> None:
    """Operators below the axis, regimes above, and a band behind every second regime."""

    def spans(key: Callable[[tuple[str, str, str]], Any]) -> list[tuple[Any, float, float]]:
        groups = ((name, list(members)) for name, members in groupby(places, key))
        return [(name, places[m[0]], places[m[-1]]) for name, m in groups]

    operators = spans(lambda index: index[:2])
    axes.set_xticks(
        [(first + last) / 2 for _, first, last in operators],
        [name[1].removesuffix("_backward") for name, _, _ in operators],
        rotation=90,
        fontsize=8,
    )
    for number, (name, first, last) in enumerate(spans(lambda index: index[0])):
        if number % 2:
            axes.axvspan(first - 1.4, last + 1.4, color="#f0f0f4", zorder=0)
        axes.text(
            (first + last) / 2, 1.01, name.replace("-", "\n"), transform=axes.get_xaxis_transform(),
            ha="center", va="bottom", fontsize=8,
        )  # fmt: skip
    axes.set_xlim(-1.4, max(places.values()) + 1.4)
    axes.grid(axis="y", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


def _explain(figure: Any, rows: Sequence[Row]) -> None:
    """The legend, of what there is."""
    lines = need("matplotlib.lines", "pictures", "bench")

    def sample(label: str, color: str, marker: str, face: str | None = None) -> Any:
        return lines.Line2D(
            [], [], color=color, marker=marker, markerfacecolor=face or color, linestyle="none",
            label=label,
        )  # fmt: skip

    dtypes = dict.fromkeys(row["dtype"] for row in rows)
    handles = [sample(d, COLORS[d], "o") for d in dtypes if d in COLORS]
    if any(d not in COLORS for d in dtypes):
        handles.append(sample("mixed dtypes", MIXED_COLOR, "o"))
    threads = {row["threads"] for row in rows}
    hollow = " or ".join(map(str, sorted(threads - {FILLED})))
    if FILLED in threads and hollow:
        handles.append(sample(f"hollow: {hollow} threads", GREY, "o", "none"))
    others = dict.fromkeys(key for row in rows for key in row["ratios"] if key in PEER_MARKS)
    handles += [sample(TITLES[key], GREY, PEER_MARKS[key]) for key in others]
    handles.append(lines.Line2D([], [], color="#c22222", label="wanted against PyTorch"))
    figure.legend(handles=handles, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
