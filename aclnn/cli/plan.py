"""Plan a workspace: of an operator's call, of a model, or of lifetimes of your own in a file.

The file is CSV with the columns id, lower, upper and size, as MiniMalloc's, and perhaps alignment, gaps, offset
(a fixed place), hint and uses; a plan that --json printed; or a memory snapshot of PyTorch's, of which --device
chooses a device. (--csv writes what is in the workspace: what is computed in place shares a row.) With --budget,
--capacity or --fail-above, the exit status is 1 when a plan needs more, so that a CI job can hold it.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import pickle
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import lcm
from pathlib import Path
from typing import Any

from aclnn.acl import files
from aclnn.acl.errors import AclnnError, invalid
from aclnn.cli import calls, checks, show, totals
from aclnn.cli.show import View, table_of
from aclnn.cli.values import assumption, memory, natural, seconds, share, size
from aclnn.compiler.workspace import for_executor
from aclnn.graph import (
    Lifetime,
    WorkspacePlan,
    check_capacity,
    fit_lifetimes,
    lifetimes_from_csv,
    lifetimes_to_csv,
    plan_lifetimes,
    plan_memories,
    propose_reductions,
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
    parser.usage = f"{parser.prog} [options] [OPERATOR]"
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
        help="alignment of every offset of --lifetimes, such as 512",
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
    parser.add_argument(
        "--capacity", type=size, metavar="BYTES",
        help="refuse what does not fit, with the step and its largest buffers",
    )  # fmt: skip
    parser.add_argument(
        "--memory", type=memory, action="append", default=[], metavar="NAME=SIZE:SPEED[:ALIGNMENT]",
        help="plan for several memories, one of these each, such as ub=192KiB:2TB/s:32",
    )  # fmt: skip
    parser.add_argument(
        "--total", action="store_true", help="the sum: weights, inputs, outputs, caches, workspace"
    )
    parser.add_argument(
        "--weights",
        action="append",
        default=[],
        metavar="NAME",
        help="inputs that --total counts as weights",
    )
    parser.add_argument(
        "--caches", action="append", default=[], metavar="NAME", help="or as caches; such as 'kv_*'"
    )
    parser.add_argument(
        "--assume", action="append", default=[], type=assumption, metavar="NAME=BYTES",
        help="bytes of an NPU for --total: kernels=16MiB, runtime=0",
    )  # fmt: skip
    parser.add_argument(
        "--reduce", action="store_true", help="the three changes that save most, tried"
    )
    parser.add_argument(
        "--fail-above",
        type=share,
        metavar="PERCENT",
        help="fail when a plan is so much larger than --diff's",
    )
    parser.add_argument("--svg", metavar="FILE", help="write the plan's picture")
    parser.add_argument("--csv", metavar="FILE", help="write the lifetimes and their offsets")
    parser.add_argument(
        "--header",
        metavar="FILE",
        help="write a header for programs in C, with offsets and lifetimes",
    )
    parser.add_argument(
        "--snapshot", metavar="FILE", help="write a pickle for PyTorch's memory viewer"
    )
    parser.add_argument(
        "--check", metavar="FILE",
        help="check a trace of memory or a plan instead of planning",
    )  # fmt: skip
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
    if options.check is not None:
        return _run_check(options)
    _refuse_combinations(options)
    if totals.has_ranges(options):
        return totals.run_ranges(options)
    if options.total:
        return totals.run(options)
    with calls.threads_of(options), show.progress("planning"):
        named = _plans(options, options.strategy)
    if options.memory:
        return _run_memories(named, options)
    if options.reduce:
        return _run_reductions(named, options)
    _write_files(named, options)  # before anything is printed: who reads that may stop early
    with show.until_pipe_closes():
        _print(named, options)
    if options.budget is not None:
        _check(named, options.budget)
    if options.fail_above is not None:
        _check_growth(named, options)
    _propose_exact(named, options)
    return 0


def _refuse_combinations(options: argparse.Namespace) -> None:
    """Refuse flags that another one leaves without meaning."""
    if options.fail_above is not None and options.diff is None:
        options.refuse("--fail-above is for --diff FILE")
    ways = [flag for flag in ("total", "reduce", "memory") if getattr(options, flag)]
    if len(ways) > 1:
        options.refuse(f"--{ways[1]} is not for --{ways[0]}")
    for flag in ("weights", "caches", "assume"):
        if getattr(options, flag) and not options.total:
            options.refuse(f"--{flag} is for --total")
    if options.total and options.lifetimes is not None:
        options.refuse("--total is for models and calls, lifetimes are intermediates alone")
    if not options.total and not options.reduce:
        return
    for flag in ("svg", "csv", "header", "snapshot", "diff", "diff_strategy"):
        if getattr(options, flag) is not None and not (
            flag == "svg" and totals.has_ranges(options)
        ):
            options.refuse(f"--{flag.replace('_', '-')} is not for --{ways[0]}")


def _run_reductions(named: Named, options: argparse.Namespace) -> int:
    with show.progress("trying changes"):
        made = [propose_reductions(plan, options.strategy or "default") for _, plan in named]
    with show.until_pipe_closes():
        if options.json:
            _print_json([json.loads(one.to_json()) for one in made])
        else:
            show.show(options, [(_TABLE, one) for one in made])
    if options.budget is not None:
        _check(named, options.budget)
    return 0


def _check_growth(named: Named, options: argparse.Namespace) -> None:
    """Fail with all plans that grew by more than --fail-above."""
    broken = []
    for before, (name, plan) in zip(_saved(options.diff, len(named)), named, strict=True):
        grown = plan.size - before.size
        if grown > options.fail_above * before.size:
            share = f"{grown / before.size:.2%}" if before.size else "from nothing"
            broken.append(
                f"{name} grew by {grown} bytes ({share}), from {before.size} to {plan.size}: more than "
                f"{options.fail_above:.2%}"
            )
    if broken:
        raise invalid("\n".join(broken))


def _propose_exact(named: Named, options: argparse.Namespace) -> None:
    """Say that a search may find less, of plans of the default above their bounds."""
    if options.strategy not in (None, "default") or options.json or options.diff_strategy:
        return
    for name, plan in named:
        if plan.gap and plan.proof == "feasible":
            print(
                f"{name}: {plan.gap} bytes above the bound; --strategy exact may find a smaller plan",
                file=sys.stderr,
            )


def _run_check(options: argparse.Namespace) -> int:
    if unheard := calls.given(options):
        options.refuse(f"--check FILE is checked instead of a call, and takes no {unheard[0]}")
    plan = None
    if options.lifetimes is not None:
        plan = _plan_of_file(options, options.strategy or "default")
    return checks.run(options, plan)


def _run_memories(named: Named, options: argparse.Namespace) -> int:
    for flag in ("csv", "diff", "diff_strategy", "budget", "capacity"):
        if getattr(options, flag) is not None:
            options.refuse(f"--{flag.replace('_', '-')} is for one memory, --memory plans several")
    if options.timeout is not None:
        options.refuse("--timeout is for one memory, --memory plans several")
    strategy = options.strategy or "default"
    devices = []
    for name, plan in named:
        try:
            lives = _read(options) if options.lifetimes else plan.lifetimes
            devices.append(plan_memories(lives, options.memory, strategy, steps=plan.steps))
        except ValueError as error:
            raise invalid(f"{name}: {error}") from None
    for index, device in enumerate(devices, 1):
        if options.svg:
            files.write(show.numbered(options.svg, index, len(devices)), device.to_svg())
    with show.until_pipe_closes():
        if options.json:
            _print_json([json.loads(device.to_json()) for device in devices])
        else:
            show.show(options, [(_TABLE, device) for device in devices])
    return 0


def _fitted(
    name: str, plan: WorkspacePlan, capacity: int, options: argparse.Namespace
) -> WorkspacePlan:
    """The plan, or one of the same lifetimes that fits; refused where none does."""
    if plan.size <= capacity:
        return plan
    try:
        strategy = options.strategy or "default"
        made = fit_lifetimes(
            plan.lifetimes, capacity, strategy, steps=plan.steps, timeout=options.timeout
        )
    except ValueError as error:
        raise invalid(f"{name}: {error}") from None
    print(f"{name}: strategy exact, default needs {plan.size} bytes", file=sys.stderr)
    return for_executor(made)


def _print(named: Named, options: argparse.Namespace) -> None:
    if options.diff or options.diff_strategy:
        _print_diffs(named, options)
    elif options.json:
        _print_json([documents.plan_data(plan) for _, plan in named])
    else:
        show.show(options, [(_TABLE, plan) for _, plan in named])


def _write_files(named: Named, options: argparse.Namespace) -> None:
    for index, (_, plan) in enumerate(named, 1):
        if options.svg:
            path = show.numbered(options.svg, index, len(named))
            with show.progress("drawing"):
                files.write(path, plan.to_svg())
        if options.csv:
            path = show.numbered(options.csv, index, len(named))
            files.write(path, _places_as_csv(plan))
        if options.header:
            files.write(show.numbered(options.header, index, len(named)), plan.to_header())
        if options.snapshot:
            content = pickle.dumps(plan.to_memory_snapshot())
            show.numbered(options.snapshot, index, len(named)).write_bytes(content)


def _places_as_csv(plan: WorkspacePlan) -> str:
    """Contents of the workspace in the columns of --lifetimes, with offsets.

    What shares bytes by being computed in place is one row, under the first name: the format has no
    column for that, and two rows would overlap.
    """
    lives = plan.lifetimes
    inside = [buffer for buffer in plan.buffers if not buffer.output]
    rows, places = merged([replace(life, uses=()) for life in lives])
    rows = tuple([replace(life, uses=()) for life in rows])
    offsets = dict(zip(places, (one.offset for one in inside), strict=True))
    return lifetimes_to_csv(rows, [offsets[index] for index in range(len(rows))])


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
        return [
            (one.operator.name, _within(one.operator.name, one.plan, options)) for one in executors
        ]
    if unheard := calls.given(options):
        options.refuse(f"--lifetimes is planned instead of a call, and takes no {unheard[0]}")
    return [(options.lifetimes, _plan_of_file(options, strategy or "default"))]


def _within(name: str, plan: WorkspacePlan, options: argparse.Namespace) -> WorkspacePlan:
    return plan if options.capacity is None else _fitted(name, plan, options.capacity, options)


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


def _read(options: argparse.Namespace) -> tuple[Lifetime, ...]:
    """The lifetimes in the file, with the alignment that all have."""
    lifetimes = read_lifetimes(options.lifetimes, options.device)
    if options.alignment is None:
        return lifetimes
    return tuple([_aligned(life, options.alignment) for life in lifetimes])


def _plan_of_file(options: argparse.Namespace, strategy: str) -> WorkspacePlan:
    """The plan of the lifetimes in a file, or an error that names it."""
    name, timeout = options.lifetimes, options.timeout if strategy == "exact" else None
    try:
        lifetimes = _read(options)
        if strategy in BY_SIZE and any(life.offset is not None for life in lifetimes):
            print(f"{strategy} places by sizes alone: fixed offsets do not count", file=sys.stderr)
            lifetimes = tuple([replace(life, offset=None) for life in lifetimes])
        if options.capacity is not None:
            check_capacity(merged(lifetimes)[0], options.capacity)
        if strategy == "exact":
            found = for_executor(_searched(lifetimes, timeout))
        else:
            found = for_executor(plan_lifetimes(lifetimes, strategy))
    except (ValueError, RecursionError, csv.Error) as error:
        raise invalid(f"{name}: {error}") from None
    return found if options.capacity is None else _fitted_file(lifetimes, found, options)


def _fitted_file(
    lifetimes: Sequence[Lifetime], found: WorkspacePlan, options: argparse.Namespace
) -> WorkspacePlan:
    """As `_fitted`, of lifetimes whose demands the plan does not keep."""
    if found.size <= options.capacity:
        return found
    try:
        limit = options.timeout
        made = fit_lifetimes(
            lifetimes, options.capacity, options.strategy or "default", timeout=limit
        )
    except ValueError as error:
        raise invalid(f"{options.lifetimes}: {error}") from None
    print(f"{options.lifetimes}: strategy exact, default needs {found.size} bytes", file=sys.stderr)
    return for_executor(made)
