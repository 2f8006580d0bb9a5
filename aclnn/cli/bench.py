"""Time the operators against the libraries that are installed, and against the machine itself.

Everything that is compared runs in one process, taking turns, into an output that is there already;
what counts are ratios of medians. Peers that are not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from aclnn import isa
from aclnn.acl import files
from aclnn.acl.arguments import did_you_mean
from aclnn.cli import show
from aclnn.cli.values import option, positive, threads
from aclnn.graph.views.tables import Table, to_markdown, to_rich, to_text
from aclnn.operators import REGISTRY

try:
    from aclnn.benchmark import attention, cells, matrix, plot, products, rows, table, targets
except ModuleNotFoundError as error:
    if error.name != "aclnn.benchmark":
        raise
    raise ModuleNotFoundError(
        "the benchmark is in the sources and not in installed packages; in a clone of the project, "
        "`make bench` builds and runs it",
        name=error.name,
    ) from None

QUICK_ROUNDS, QUICK_BUDGET = 3, 1e-3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    regimes = [*(regime.name for regime in cells.REGIMES), "layout"]
    add = parser.add_argument
    groups = cells.groups()
    add(
        "--operators", nargs="+", default=cells.OPERATORS, metavar="NAME", type=_operator,
        help="of those whose operands may be arrays of one shape (default the matrix's); "
        f"{', '.join(groups)} stand for all of these",
    )  # fmt: skip
    add("--dtypes", nargs="+", default=list(cells.DTYPES), choices=cells.DTYPES)
    add(
        "--regimes", nargs="+", choices=regimes, metavar="NAME",
        help=f"columns of the matrix (default all): {', '.join(regimes)}",
    )  # fmt: skip
    add("--sizes", nargs="+", type=positive, metavar="N", help="only cells of N elements")
    add(
        "--layout-size", type=positive, metavar="N", default=cells.LAYOUT_ELEMENTS,
        help="elements of the cells about layouts (default %(default)s)",
    )  # fmt: skip
    add(
        "--rows", nargs="*", choices=rows.FORMS, metavar="NAME",
        help="row-wise operators instead of the matrix (all of them, if none are named)",
    )  # fmt: skip
    add("--axes", nargs="+", default=rows.AXES, choices=rows.AXES, help="along which --rows go")
    add(
        "--lengths", nargs="+", type=positive, metavar="N",
        help=f"elements of --rows (default {' '.join(map(str, rows.LENGTHS))})",
    )  # fmt: skip
    add(
        "--attention", action="store_true",
        help="attention instead of the matrix: 1 to 1,024 queries over 128 to 4,096 keys",
    )  # fmt: skip
    add(
        "--products", action="store_true",
        help="matrix products instead of the matrix: 1 to 512 rows, B by rows and by columns",
    )  # fmt: skip
    add("--peers", nargs="*", default=matrix.ALL_PEERS, choices=matrix.ALL_PEERS)
    add("--threads", nargs="+", type=threads, default=[1], metavar="N", help="(default 1)")
    add(
        "--isa", nargs="+", default=[], choices=isa.available(), help="measure these builds of the kernels"
    )  # fmt: skip
    add("--rounds", type=positive, help=f"rounds that medians are of (default {matrix.ROUNDS})")
    add("--quick", action="store_true", help="no large operands, few rounds: half a minute")
    add(
        "--summary", action="store_true",
        help="only geometric means against PyTorch, and the cells below 1",
    )  # fmt: skip
    add("--targets", action="store_true", help="mark and list what misses its target")
    add("--json", metavar="FILE", help="write the report")
    add("--markdown", metavar="FILE", help="write the tables")
    add("--plot", metavar="FILE", help="draw them (.svg, .png), with matplotlib")
    show.add_arguments(parser)


# What another option measures, by words of names.
_ELSEWHERE = {
    "attention": "--attention measures attention",
    "mm": "--products measures products of matrices",
    "matmul": "--products measures products of matrices",
}


@option
def _operator(name: str) -> str:
    """The name of an operator that has cells, or of a group of them."""
    known = [*cells.groups(), *cells.measurable()]
    if name in known:
        return name
    if name in rows.FORMS:
        raise ValueError(f"is row-wise, measured by --rows {name}")
    if name not in REGISTRY:
        raise ValueError(f"is none that is known{did_you_mean(name, known)}")
    others = [words for part, words in _ELSEWHERE.items() if part in name]
    raise ValueError(
        "cannot be measured alone: its operands are of several shapes, or it has options that have to "
        f"be given{'; ' if others else ''}{''.join(others[:1])}"
    )


_NOTHING = show.View(lambda _: "measured, but no peer took part: there is nothing to compare with")


def run(options: argparse.Namespace) -> int:
    settings = _settings(options)
    if not settings.cells():
        options.refuse("these choices leave no cell to measure")
    if options.plot:
        plot.check(options.plot)
    _check_files(filter(None, (options.json, options.markdown, options.plot)))
    report = matrix.measured(settings, options.threads, options.isa)
    verdicts = targets.judged(report) if options.targets else []
    made = table.summary(report) if options.summary else table.tables(report, verdicts)
    view = show.View(lambda one: to_text((one,)), lambda one: to_rich((one,)))
    _write(
        options, report, verdicts, made
    )  # before anything is printed: who reads that may stop early
    for note in report["notes"]:
        print(note, file=sys.stderr)
    with show.until_pipe_closes():
        show.show(options, [(view, one) for one in made] if made else [(_NOTHING, None)])
        if options.targets:
            _list_misses(verdicts)
    return 1 if any("WRONG" in note for note in report["notes"]) else 0


def _check_files(names: Iterable[str]) -> None:
    """Refuse files that cannot be written before minutes are spent on measuring."""
    for path in map(Path, names):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_fifo():  # its reader would take the end of this look for that of the report
            continue
        existed = path.exists()
        path.open("ab").close()
        if not existed:
            path.unlink()


def _settings(options: argparse.Namespace) -> matrix.Settings:
    unlimited = options.regimes is None and options.sizes is None
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else matrix.ROUNDS)
    by_rows = options.rows is not None
    lengths = options.lengths or (rows.QUICK_LENGTHS if options.quick else rows.LENGTHS)
    keys = attention.QUICK_KEYS if options.quick else attention.KEYS
    shapes = products.QUICK_SHAPES if options.quick else products.SHAPES
    groups = cells.groups()
    named = [one for name in options.operators for one in groups.get(name, (name,))]
    return matrix.Settings(
        operators=(options.rows or tuple(rows.FORMS)) if by_rows else list(dict.fromkeys(named)),
        axes=options.axes if by_rows else None,
        lengths=lengths,
        keys=keys if options.attention else None,
        shapes=shapes if options.products else None,
        dtypes=options.dtypes,
        regimes=cells.QUICK if options.quick and unlimited else options.regimes,
        sizes=options.sizes,
        layout_elements=options.layout_size,
        peers=options.peers,
        rounds=rounds,
        budget=QUICK_BUDGET if options.quick else matrix.BUDGET,
    )


def _list_misses(verdicts: Sequence[targets.Verdict]) -> None:
    if not verdicts:
        print("\nno target applies to these cells and peers")
        return
    missed = [verdict for verdict in verdicts if not verdict.met]
    print(
        f"\n{len(verdicts) - len(missed)} of {len(verdicts)} targets are met{'; missed:' if missed else ''}"
    )
    for verdict in missed:
        print(f"  {verdict.to_text()}")


def _write(
    options: argparse.Namespace,
    report: dict[str, Any],
    verdicts: Sequence[targets.Verdict],
    made: Sequence[Table],
) -> None:
    texts = {
        options.json: lambda: json.dumps(
            report | {"targets": [verdict.to_json() for verdict in verdicts]}, indent=2
        ),
        options.markdown: lambda: to_markdown(tuple(made)) + "\n",
    }
    for name, text in texts.items():
        if name is not None:
            files.write(name, text())
    if options.plot:
        plot.draw(report, options.plot)
