"""`aclnn plan --total`, and ranges of sizes: whole models, by sizes of their dimensions."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl import files
from aclnn.acl.errors import AclnnError, invalid
from aclnn.cli import calls, models, show
from aclnn.cli.show import View, table_of
from aclnn.graph import Curve, Footprint, search_range
from aclnn.graph.planner.ranges import spread
from aclnn.reports.footprint import KERNEL_WORKSPACE, footprint

OUTER = 5  # sizes of a second dimension
_TABLE = table_of(lambda made: made)
_TITLE = View(str)
Sizes = Mapping[str, int]


def run(options: argparse.Namespace) -> int:
    """Print the sum of each model; 1 where one exceeds --capacity or --budget."""
    sizes = calls.dimensions(options)
    with calls.threads_of(options), show.progress("planning"):
        made = _footprints(options, sizes)
    with show.until_pipe_closes():
        if options.json:
            listed = [json.loads(one.to_json()) for one in made]
            print(json.dumps(listed[0] if len(listed) == 1 else listed, indent=2))
        else:
            show.show(options, [(_TABLE, one) for one in made])
    limits = [one for one in (options.capacity, options.budget) if one is not None]
    broken = []
    for one in made:
        try:
            one.check(min(limits, default=one.total))
        except ValueError as error:
            broken.append(str(error))
    if broken:
        raise invalid("\n".join(broken))
    return 0


def _footprints(options: argparse.Namespace, sizes: Mapping[str, Any]) -> list[Footprint]:
    if options.model is None:
        return [_summed(options, one, one.operator.name) for one in calls.executors(options)]
    return [_sizer(options, _summed_model)(sizes)]


def _summed(options: argparse.Namespace, model: Any, name: str, *inputs: Any) -> Footprint:
    assumed = {"kernel_workspace": KERNEL_WORKSPACE, "runtime": 0, **dict(options.assume)}
    return footprint(
        model, *inputs, name=name, weights=options.weights, caches=options.caches,
        kernel_workspace=assumed["kernel_workspace"], runtime=assumed["runtime"],
    )  # fmt: skip


def _summed_model(options: argparse.Namespace, made: Any) -> Footprint:
    name = options.model
    if isinstance(made, tuple) and made:
        return _summed(options, made[0], name, *made[1:])
    return _summed(options, made, name)


def _sizer(options: argparse.Namespace, measured: Callable[..., Any]) -> Callable[[Sizes], Any]:
    """A function from sizes of dimensions to a measure of the model; a model in ONNX is read once."""
    planning = calls.planning_of(options)
    if not options.model.endswith(".onnx"):
        return lambda sizes: measured(
            options, models.given_by(options.model, {**planning, **sizes})
        )
    from aclnn.onnx.reading import from_onnx  # which other commands do without

    model = from_onnx(options.model, **planning)

    def of(sizes: Sizes) -> Any:
        try:
            with warnings.catch_warnings():  # each size is planned anew, as was asked
                warnings.filterwarnings(
                    "ignore", ".* was planned .* times in a row", RuntimeWarning
                )
                made = model.executor(dims=sizes)
        except AclnnError as error:
            raise invalid(f"{error}; on the command line --model-dim NAME=SIZE") from error
        return measured(options, _Read(model, made))

    return of


class _Read:
    """A model in ONNX with the executor for some sizes."""

    def __init__(self, model: Any, executor: Any):
        self.inputs, self.optional_inputs = model.inputs, model.optional_inputs
        self.name, self._executor = model.name, executor

    def executor(self) -> Any:
        return self._executor


# --- Ranges -----------------------------------------------------------------------------------


def has_ranges(options: argparse.Namespace) -> bool:
    return any(isinstance(size, range) for _, size in options.model_dim)


def run_ranges(options: argparse.Namespace) -> int:
    """Print a curve for a range of sizes; of two ranges one for each of some sizes of the second."""
    if options.model is None:
        options.refuse("--model-dim with a range is for --model")
    for flag in ("csv", "diff", "diff_strategy", "budget", "header", "snapshot", "timeout"):
        if getattr(options, flag) is not None:
            options.refuse(f"--{flag.replace('_', '-')} is for one size, not for a range")
    known = calls.dimensions(options)
    ranges = {name: size for name, size in known.items() if isinstance(size, range)}
    fixed = {name: size for name, size in known.items() if isinstance(size, int)}
    if len(ranges) > 2:
        options.refuse(f"--model-dim: at most two ranges, these are {', '.join(ranges)}")
    (name, sizes), *outer = ranges.items()
    measure = _sizer(options, _bytes_of_total if options.total else _bytes_of_plan)
    found: list[tuple[dict[str, int], Curve]] = []
    with calls.threads_of(options), show.progress("planning"):
        for others in _outer_sizes(outer):
            here = {**fixed, **others}
            curve = search_range(
                name, lambda size, here=here: _at(measure, {**here, name: size}),
                sizes[0], sizes[-1], options.capacity,
            )  # fmt: skip
            found.append((others, curve))
    _write_curves(options, found)
    return 0 if options.capacity is None or any(c.largest is not None for _, c in found) else 1


def _outer_sizes(outer: list[tuple[str, range]]) -> list[dict[str, int]]:
    if not outer:
        return [{}]
    ((name, sizes),) = outer
    return [{name: size} for size in spread(sizes[0], sizes[-1], OUTER)]


def _at(measure: Callable[[Sizes], int], sizes: Sizes) -> int:
    try:
        return measure(sizes)
    except AclnnError as error:
        raise invalid(f"at {_sizes_words(sizes)}: {error}") from error


def _sizes_words(sizes: Sizes) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def _bytes_of_plan(options: argparse.Namespace, made: Any) -> int:
    made = made.executor() if isinstance(made, _Read) else made
    if not hasattr(made, "workspace_size"):
        raise invalid(
            f"{options.model} gives no executor; sums of PyTorch's modules are for --total"
        )
    return made.workspace_size


def _bytes_of_total(options: argparse.Namespace, made: Any) -> int:
    return _summed_model(options, made).total


def _write_curves(options: argparse.Namespace, found: list[tuple[dict[str, int], Curve]]) -> None:
    for index, (_, curve) in enumerate(found, 1):
        if options.svg:
            files.write(show.numbered(options.svg, index, len(found)), curve.to_svg())
    with show.until_pipe_closes():
        if options.json:
            listed = [{"at": others, **json.loads(curve.to_json())} for others, curve in found]
            print(json.dumps(listed[0] if len(listed) == 1 else listed, indent=2))
            return
        parts: list[tuple[View, Any]] = []
        for others, curve in found:
            parts += [(_TITLE, f"{_sizes_words(others)}:")] if others else []
            parts.append((_TABLE, curve))
        show.show(options, parts)
