"""Plan a workspace: of an operator's call, or of lifetimes of your own in a CSV file.

The CSV file has the columns id, lower, upper and size, as MiniMalloc's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from aclnn.cli import calls
from aclnn.constants import ACLNN_ERR_PARAM_INVALID
from aclnn.errors import AclnnError
from aclnn.graph import WorkspacePlan, lifetimes_from_csv, plan_lifetimes
from aclnn.workspace import for_executor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    calls.add_arguments(parser)
    parser.add_argument("--lifetimes", metavar="FILE", help="plan these instead of a call")
    parser.add_argument("--budget", type=int, metavar="BYTES", help="fail when the plan needs more")
    parser.add_argument("--svg", metavar="FILE", help="write the plan's picture")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    plans = _plans(options)
    for place, plan in enumerate(plans):
        print(plan.to_json(indent=2) if options.json else plan.to_text())
        if options.svg:
            path = Path(options.svg)
            numbered = path if len(plans) == 1 else path.with_stem(f"{path.stem}-{place + 1}")
            numbered.write_text(plan.to_svg())
        if options.budget is not None:
            plan.check(options.budget)
    return 0


def _plans(options: argparse.Namespace) -> list[WorkspacePlan]:
    if options.lifetimes is None:
        return [executor.plan for executor in calls.executors(options)]
    try:
        lifetimes = lifetimes_from_csv(Path(options.lifetimes).read_text())
    except (OSError, ValueError) as error:
        raise AclnnError(ACLNN_ERR_PARAM_INVALID, f"{options.lifetimes}: {error}") from None
    return [for_executor(plan_lifetimes(lifetimes, options.strategy or "default"))]
