"""Plan a workspace: of an operator's call, or of lifetimes of your own in a CSV file.

The CSV file has the columns id, lower, upper and size, as MiniMalloc's. With --budget the exit
status is 1 when a plan needs more, so that a CI job can hold it.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

from aclnn.acl.errors import AclnnError, invalid
from aclnn.cli import calls, show
from aclnn.cli.show import View
from aclnn.cli.values import natural
from aclnn.graph import WorkspacePlan, lifetimes_from_csv, plan_lifetimes
from aclnn.graph.views import json as documents
from aclnn.planning.workspace import for_executor

Named = list[tuple[str, WorkspacePlan]]
_TABLE = View(lambda shown: shown.to_text(), lambda shown: shown.to_rich())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    calls.add_arguments(parser)
    parser.add_argument("--lifetimes", metavar="FILE", help="plan these instead of a call")
    parser.add_argument(
        "--budget", type=natural, metavar="BYTES", help="fail when a plan needs more"
    )
    parser.add_argument("--svg", metavar="FILE", help="write the plan's picture")
    compared = parser.add_mutually_exclusive_group()
    compared.add_argument(
        "--diff", metavar="FILE", help="what changed since the plan that --json printed there"
    )
    compared.add_argument(
        "--diff-strategy", choices=calls.STRATEGIES, help="what another strategy would change"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    show.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    named = _plans(options, options.strategy)
    if options.diff or options.diff_strategy:
        _print_diffs(named, options)
    elif options.json:
        _print_json([documents.plan_data(plan) for _, plan in named])
    else:
        show.show(options, [(_TABLE, plan) for _, plan in named])
    for place, (_, plan) in enumerate(named, 1):
        if options.svg:
            path = show.numbered(options.svg, place, len(named))
            path.write_text(plan.to_svg(), encoding="utf-8")
    if options.budget is not None:
        _check(named, options.budget)
    return 0


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
        show.show(options, [(_TABLE, diff) for diff in diffs])


def _print_json(listed: list[dict[str, Any]]) -> None:
    """One document, or a list of them."""
    print(json.dumps(listed[0] if len(listed) == 1 else listed, indent=2))


def _saved(name: str, count: int) -> list[WorkspacePlan]:
    """The plans in a file that this command printed with --json."""
    try:
        found = json.loads(Path(name).read_text(encoding="utf-8"))
        plans = [
            documents.read(WorkspacePlan, one)
            for one in (found if isinstance(found, list) else [found])
        ]
    except (ValueError, RecursionError) as error:
        raise invalid(f"{name}: {error}") from None
    if len(plans) != count:
        raise invalid(f"{name} has {len(plans)} plans, these calls have {count}")
    return plans


def _plans(options: argparse.Namespace, strategy: str | None) -> Named:
    if options.lifetimes is None:
        executors = calls.executors(options, strategy)
        return [(executor.operator.name, executor.plan) for executor in executors]
    if unheard := calls.given(options):
        options.refuse(f"--lifetimes is planned instead of a call, and takes no {unheard[0]}")
    return [(options.lifetimes, _plan_of_file(options.lifetimes, strategy or "default"))]


def _plan_of_file(name: str, strategy: str) -> WorkspacePlan:
    """The plan of the lifetimes in a file, or an error that names it."""
    try:
        lifetimes = lifetimes_from_csv(Path(name).read_text(encoding="utf-8"))
        return for_executor(plan_lifetimes(lifetimes, strategy))
    except (ValueError, csv.Error) as error:
        raise invalid(f"{name}: {error}") from None
