"""Tables of benchmark reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import geometric_mean, median
from typing import Any

from aclnn.benchmark.peers import TITLES
from aclnn.benchmark.targets import Row, Verdict
from aclnn.graph.views.tables import Table, make

MISSED = "!"
_NAMES = ("operator", "dtype")  # the columns before those of the regimes
Value = Callable[[Row], str | None]


def tables(report: dict[str, Any], verdicts: Iterable[Verdict] = ()) -> list[Table]:
    """Everything in a report, a table for each number of threads, instruction set and quantity.

    Parameters
    ----------
    report : dict
        As `aclnn.benchmark.matrix.measured` gives it.
    verdicts : iterable of Verdict
        Ratios among these that miss their bar are marked with an exclamation mark.

    Returns
    -------
    list of Table
    """
    missed = {_identity(v.quantity, v) for v in verdicts if not v.met}
    found = []
    groups = dict.fromkeys((row["isa"], row["threads"]) for row in report["rows"])
    for isa, threads in groups:
        rows = [r for r in report["rows"] if (r["isa"], r["threads"]) == (isa, threads)]
        where = f"{threads} thread{'s' if threads > 1 else ''}, {isa}"
        for laid_out in (False, True):
            part = [row for row in rows if bool(row["layout"]) == laid_out]
            found += _of_group(part, where + (", layouts" if laid_out else ""), missed)
    return found


def summary(report: dict[str, Any]) -> list[Table]:
    """Summary of a long report against PyTorch.

    Parameters
    ----------
    report : dict
        As `aclnn.benchmark.matrix.measured` gives it.

    Returns
    -------
    list of Table
        Geometric means of PyTorch's time over ours, with how many cells are below 1, and those cells,
        the slowest first, with their share of what memory allows.
    """
    rows = [row for row in report["rows"] if "torch" in row["ratios"] and not row["layout"]]
    return [table for table in (_means(rows), _below(rows)) if table.rows]


def _means(rows: Sequence[Row]) -> Table:
    regimes = tuple(dict.fromkeys(row["regime"] for row in rows))
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["isa"], str(row["threads"]), row["dtype"]), []).append(row)
    body = [(*names, *_mean_of_each(group, regimes)) for names, group in groups.items()]
    headers = ("ISA", "threads", "dtype", *regimes, "below 1")
    right = ",".join((*regimes, "below 1"))
    return make(headers, body, right=right, title="PyTorch's time over ours, geometric means")


def _mean_of_each(rows: Sequence[Row], regimes: Sequence[str]) -> Iterator[str]:
    for regime in regimes:
        known = [row["ratios"]["torch"] for row in rows if row["regime"] == regime]
        yield f"{geometric_mean(known):.2f}" if known else ""
    yield f"{sum(row['ratios']['torch'] < 1 for row in rows)} of {len(rows)}"


def _below(rows: Sequence[Row]) -> Table:
    slower = sorted(
        (row for row in rows if row["ratios"]["torch"] < 1), key=lambda row: row["ratios"]["torch"]
    )
    share = _percent("of_copy")
    body = [
        (
            *(str(row[name]) for name in (*_NAMES, "regime", "isa", "threads")),
            f"{row['ratios']['torch']:.2f}", share(row) or "",
        )
        for row in slower
    ]  # fmt: skip
    headers = (*_NAMES, "regime", "ISA", "threads", "ratio", "of a copy")
    return make(headers, body, right="ratio,of a copy", title="Cells below 1")


def _of_group(rows: Sequence[Row], where: str, missed: set[tuple[Any, ...]]) -> list[Table]:
    keys = dict.fromkeys(key for row in rows for key in row["ratios"])
    made = [_ratios(rows, key, where, missed) for key in keys]
    small = [row for row in rows if row["of_ufunc"] is not None]
    made += [
        _small(small, f"µs of a call, {where}"),
        _pivot(rows, f"Share of a copy's speed, {where}", _percent("of_copy")),
        _pivot(rows, f"Share of a triad's speed, {where}", _percent("of_triad")),
    ]
    needing = [row for row in rows if row["workspace_bytes"]]
    made.append(_pivot(needing, f"Bytes of workspace, {where}", _workspace))
    return [table for table in made if table.rows]


def _ratios(rows: Sequence[Row], key: str, where: str, missed: set[tuple[Any, ...]]) -> Table:
    def ratio(row: Row) -> str | None:
        if key not in row["ratios"]:
            return None
        value = row["ratios"][key]
        below = value < 1 if key != "torch" else _identity("torch", row) in missed
        return f"{value:.2f}{f' {MISSED}' if missed and below else ''}"

    table = _pivot(rows, f"{TITLES[key]}'s time over ours, {where}", ratio)
    means = []
    for regime in _regimes(table):
        known = [r["ratios"][key] for r in rows if r["regime"] == regime and key in r["ratios"]]
        means.append(f"{geometric_mean(known):.2f}")
    return replace(table, rows=(*table.rows, ("geometric mean", "", *means)))


def _small(rows: Sequence[Row], title: str) -> Table:
    """Times of small calls, and how many are below a call of NumPy's."""
    table = _pivot(rows, title, lambda row: f"{_microseconds(row, 'aclnn'):.2f}")
    ufunc = [
        f"{median(_microseconds(row, 'np.add') for row in rows if row['regime'] == regime):.2f}"
        for regime in _regimes(table)
    ]
    line = ("np.add(a, b, out=c)", "float32", *ufunc)
    return replace(table, rows=(*table.rows, line) if rows else ())


def _identity(quantity: str, thing: Row | Verdict) -> tuple[Any, ...]:
    fields = ("operator", "dtype", "regime", "threads", "isa")
    values = (thing[f] if isinstance(thing, dict) else getattr(thing, f) for f in fields)
    return (quantity, *values)


def _pivot(rows: Sequence[Row], title: str, value: Value) -> Table:
    """One line for each operator and dtype, one column for each regime, where there are values."""
    regimes: dict[str, None] = {}
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        text = value(row)
        if text is not None:
            regimes[row["regime"]] = None
            lines.setdefault((row["operator"], row["dtype"]), {})[row["regime"]] = text
    body = ((*names, *(line.get(r, "") for r in regimes)) for names, line in lines.items())
    headers = (*_NAMES, *regimes)
    return make(headers, body, right=",".join(regimes), title=title, alarm=MISSED)


def _regimes(table: Table) -> tuple[str, ...]:
    return table.headers[len(_NAMES) :]


def _microseconds(row: Row, name: str) -> float:
    return row["times"][name]["median_us"]


def _percent(name: str) -> Value:
    return lambda row: None if row[name] is None else f"{row[name]:.0%}"


def _workspace(row: Row) -> str:
    return f"{row['workspace_bytes']:,}"
