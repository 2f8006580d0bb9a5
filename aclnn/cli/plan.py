"""Plan a workspace: of an operator's call, or of lifetimes of your own in a file.

The file is CSV with the columns id, lower, upper and size, as MiniMalloc's, and perhaps alignment, offset
(a fixed place) and hint (where it should be if that costs nothing). (--csv writes the first four and the
offsets; what is computed in place shares a row, and what is in outputs has none), or a memory snapshot of PyTorch's, as a pickle or as JSON, of which --device chooses a
device. With --budget the exit status is 1 when a plan needs more, so that a CI job can hold it.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import lcm
from pathlib import Path
from typing import Any

from aclnn.acl import files
from aclnn.acl.errors import AclnnError, invalid
from aclnn.cli import calls, show
from aclnn.cli.show import View, table_of
from aclnn.cli.values import natural, seconds, size
from aclnn.compiler.workspace import for_executor
from aclnn.graph import (
    Lifetime,
    WorkspacePlan,
    lifetimes_from_csv,
    lifetimes_to_csv,
    plan_lifetimes,
    read_lifetimes,
)
from aclnn.graph.loops.tiling import pad
from aclnn.graph.planner import strategies
from aclnn.graph.planner.lifetimes import merged
from aclnn.graph.planner.plan import BY_SIZE
from aclnn.graph.planner.strategies import Assignment
from aclnn.graph.views import json as documents

Named = list[tuple[str, WorkspacePlan]]
_TABLE = table_of(lambda plan: plan)
_DIFF = View(lambda shown: shown.to_text(), lambda shown: shown.to_rich())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lifetimes", metavar="FILE", help="plan these instead of a call: CSV or memory snapshot"
    )
    parser.add_argument(
        "--device", type=natural, metavar="N", help="whose allocations, of those in a snapshot"
    )
    parser.add_argument(
        "--alignment",
        type=size,
        metavar="BYTES",
        help="what every place of --lifetimes is a multiple of, such as 512",
    )
    parser.add_argument(
        "--timeout", type=seconds, metavar="S",
        help="seconds that --strategy exact may search for lifetimes (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--budget",
        type=size,
        metavar="BYTES",
        help="fail when a plan needs more; such as 4096 or 3KiB",
    )
    parser.add_argument("--svg", metavar="FILE", help="write the plan's picture")
    parser.add_argument("--csv", metavar="FILE", help="write the lifetimes and their offsets")
    compared = parser.add_mutually_exclusive_group()
    compared.add_argument(
        "--diff",
        metavar="FILE",
        help="what changed since the plan that --json printed, or --csv wrote, there",
    )
    compared.add_argument(
        "--diff-strategy", choices=calls.STRATEGIES, help="what another strategy would change"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    show.add_arguments(parser)
    calls.add_arguments(parser)


def add_arguments_of(parser: argparse.ArgumentParser, operator: str) -> None:
    """The flags of one operator, for its help."""
    calls.add_arguments_of(parser, operator)


def run(options: argparse.Namespace) -> int:
    with calls.threads_of(options), show.progress("planning"):
        named = _plans(options, options.strategy)
    _write_files(named, options)  # before anything is printed: who reads that may stop early
    with show.until_pipe_closes():
        _print(named, options)
    if options.budget is not None:
        _check(named, options.budget)
    return 0


def _print(named: Named, options: argparse.Namespace) -> None:
    if options.diff or options.diff_strategy:
        _print_diffs(named, options)
    elif options.json:
        _print_json([documents.plan_data(plan) for _, plan in named])
    else:
        show.show(options, [(_TABLE, plan) for _, plan in named])


def _write_files(named: Named, options: argparse.Namespace) -> None:
    for place, (_, plan) in enumerate(named, 1):
        if options.svg:
            path = show.numbered(options.svg, place, len(named))
            with show.progress("drawing"):
                files.write(path, plan.to_svg())
        if options.csv:
            path = show.numbered(options.csv, place, len(named))
            files.write(path, _places_as_csv(plan))


def _places_as_csv(plan: WorkspacePlan) -> str:
    """Contents of the workspace in the columns of --lifetimes, with offsets.

    What shares bytes by being computed in place is one row, under the first name: the format has no
    column for that, and two rows would overlap.
    """
    inside = [buffer for buffer in plan.buffers if not buffer.output]
    known = {buffer.name for buffer in inside}
    lives = [
        Lifetime(
            one.name, one.first, one.last + 1, one.nbytes,
            same_as=one.same_as if one.same_as in known else "",
        )
        for one in inside
    ]  # fmt: skip
    rows, places = merged(lives)
    offsets = dict(zip(places, (one.offset for one in inside), strict=True))
    return lifetimes_to_csv(rows, [offsets[place] for place in range(len(rows))])


def _check(named: Named, budget: int) -> None:
    """Fail with all plans that need more than the budget, not only with the first."""
    broken = []
    for name, plan in named:
        try:
            plan.check(budget)
        except AclnnError as error:
            broken.append(f"{name} {error}")
    if broken:
        raise invalid("\n".join(broken))


def _print_diffs(named: Named, options: argparse.Namespace) -> None:
    if options.diff_strategy:
        pairs = zip(named, _plans(options, options.diff_strategy), strict=True)
        diffs = [plan.diff(other) for (_, plan), (_, other) in pairs]
    else:
        diffs = [
            before.diff(plan)
            for before, (_, plan) in zip(_saved(options.diff, len(named)), named, strict=True)
        ]
    if options.json:
        _print_json([documents.plan_diff_data(diff) for diff in diffs])
    else:
        show.show(options, [(_DIFF, diff) for diff in diffs])


def _print_json(listed: list[dict[str, Any]]) -> None:
    """One document, or a list of them."""
    print(json.dumps(listed[0] if len(listed) == 1 else listed, indent=2))


def _saved(name: str, count: int) -> list[WorkspacePlan]:
    """The plans in a file that this command printed with --json, or wrote with --csv."""
    try:
        text = Path(name).read_text(encoding="utf-8")
        if not text.lstrip().startswith(("{", "[")):
            return [_plan_in_csv(text)] * count
        found = json.loads(text)
        plans = [
            documents.read(WorkspacePlan, one)
            for one in (found if isinstance(found, list) else [found])
        ]
    except (ValueError, RecursionError, argparse.ArgumentTypeError) as error:
        raise invalid(f"{name}: {error}") from None
    if len(plans) != count:
        raise invalid(f"{name} has {len(plans)} plans, these calls have {count}")
    return plans


def _plan_in_csv(text: str) -> WorkspacePlan:
    """The plan that lifetimes with offsets are, as --csv and MiniMalloc write it."""
    # The file says where they are: nothing is left to demand.
    lives = [
        replace(life, alignment=1, offset=None, hint=None) for life in lifetimes_from_csv(text)
    ]
    rows = csv.DictReader(io.StringIO(text))
    if "offset" not in (rows.fieldnames or ()):
        raise ValueError("no plan: a plan is JSON (--json), or CSV with the column offset (--csv)")
    offsets = tuple(natural(row["offset"] or "") for row in rows)

    def in_file(_: Sequence[Lifetime]) -> Assignment:
        padded = tuple(pad(life.nbytes) for life in lives)
        ends = (offset + nbytes for offset, nbytes in zip(offsets, padded, strict=True))
        return Assignment(offsets, padded, max(ends, default=0))

    return plan_lifetimes(lives, in_file)


def _plans(options: argparse.Namespace, strategy: str | None) -> Named:
    if options.timeout is not None:
        _refuse_timeout(options)
    if options.lifetimes is None:
        if options.device is not None:
            options.refuse("--device is for --lifetimes")
        if options.alignment is not None:
            options.refuse("--alignment is for --lifetimes")
        executors = calls.executors(options, strategy)
        return [(executor.operator.name, executor.plan) for executor in executors]
    if unheard := calls.given(options):
        options.refuse(f"--lifetimes is planned instead of a call, and takes no {unheard[0]}")
    return [(options.lifetimes, _plan_of_file(options, strategy or "default"))]


def _refuse_timeout(options: argparse.Namespace) -> None:
    """Only the search for lifetimes has a limit to set."""
    if options.lifetimes is None:
        options.refuse("--timeout is for --lifetimes")
    if "exact" not in (options.strategy, options.diff_strategy):
        options.refuse("--timeout is for --strategy exact")


def _searched(lifetimes: Sequence[Lifetime], timeout: float | None) -> WorkspacePlan:
    """The plan of an exact search; Ctrl-C ends the search, and the best plan it found is kept."""

    def interrupted() -> None:
        print("\ninterrupted: the best plan so far", file=sys.stderr)

    def exact(lives: Sequence[Lifetime]) -> Assignment:
        limit = {} if timeout is None else {"timeout": timeout}
        return strategies.exact(lives, **limit, on_interrupt=interrupted)

    return plan_lifetimes(lifetimes, exact)


def _aligned(life: Lifetime, alignment: int) -> Lifetime:
    if alignment < 1:
        raise ValueError("--alignment is 0, must be at least 1")
    return replace(life, alignment=lcm(life.alignment, alignment))


def _plan_of_file(options: argparse.Namespace, strategy: str) -> WorkspacePlan:
    """The plan of the lifetimes in a file, or an error that names it."""
    name, timeout = options.lifetimes, options.timeout if strategy == "exact" else None
    try:
        lifetimes = read_lifetimes(name, options.device)
        if options.alignment is not None:
            lifetimes = tuple([_aligned(life, options.alignment) for life in lifetimes])
        if strategy in BY_SIZE and any(life.offset is not None for life in lifetimes):
            print(f"{strategy} places by sizes alone: fixed offsets do not count", file=sys.stderr)
            lifetimes = tuple([replace(life, offset=None) for life in lifetimes])
        if strategy == "exact":
            return for_executor(_searched(lifetimes, timeout))
        return for_executor(plan_lifetimes(lifetimes, strategy))
    except (ValueError, RecursionError, csv.Error) as error:
        raise invalid(f"{name}: {error}") from None
