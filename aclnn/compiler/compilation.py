"""Compilation of a recording: graph, passes, workspace, schedule and program.

Everything that is called makes a `Recording`, a single call one of one step, and comes through
`compile_recording`. What it gives knows no addresses; `aclnn.compiler._plan_cache` keeps that of single
calls, compiled functions and captures keep their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from aclnn import graph
from aclnn.compiler import cpu_caches
from aclnn.compiler._compiled_call import CompiledCall
from aclnn.compiler._settings import current_settings
from aclnn.compiler.kernel_table import KernelTable
from aclnn.compiler.recording import Overlaps, Recording
from aclnn.compiler.workspace import for_executor
from aclnn.graph.planner import strategies

MOST_OPERANDS = 256  # of a run, packed forms included


def compile_recording(
    recording: Recording,
    overlaps: Overlaps | None = None,
    settings: Mapping[str, Any] | None = None,
    summary: str = "",
    outputs_apart: bool = False,
    fixed: Collection[str] = (),
) -> CompiledCall:
    """Simplify, plan, schedule and compile what was recorded.

    Parameters
    ----------
    recording : Recording
    overlaps : sequence of sequence of int, optional
        Overlap of each input with each output, in a row for each output; by default as outputs replace
        inputs.
    settings : mapping of str to object, optional
        In place of those of the process.
    summary : str
        What reports say of the plan.
    outputs_apart : bool
        Promises that outputs of runs do not overlap each other.
    fixed : collection of str
        Names of inputs that do not change between runs: kernels may take packed forms of them.

    Returns
    -------
    CompiledCall
    """
    settings = settings or current_settings()
    built = recording.build(overlaps, summary)
    passes = graph.run_passes(built.graph, "materialized" if settings["materialize"] else "fused")
    workspace, schedule = scheduled(
        passes.graph,
        tuple(strategies.STRATEGIES)[settings["strategy"]],
        settings["threads"],
        built.does_nothing,
        # Intermediates of materialized plans are for looking at: they stay in the workspace.
        () if settings["materialize"] else built.apart,
        built.kernels,
        outputs_apart,
        fixed,
        MOST_OPERANDS - len(built.tensors),
        settings["planned_threads"],
    )
    return CompiledCall(
        operator=built.operator,
        call=built.call,
        graph_as_built=built.graph,
        passes=passes,
        workspace=workspace,
        schedule=schedule,
        packed=None if built.does_nothing else schedule.pack(),
        tensors=built.tensors,
        arguments=built.arguments,
        n_inputs=built.n_inputs,
        overlaps=built.overlaps,
        settings=settings,
    )


def scheduled(
    passed: graph.Graph,
    strategy: str,
    threads: int,
    nothing: bool,
    spare: Sequence[str] = (),
    own: Mapping[str, Any] | None = None,
    outputs_apart: bool = False,
    fixed: Collection[str] = (),
    most_packed: int = 0,
    planned: int = 1,
) -> tuple[graph.WorkspacePlan, graph.Schedule]:
    """Workspace and schedule of a graph after its passes; both are empty where there is `nothing` to do.

    `own` has the kernels of nodes that are not of this package, by their attribute `own`.
    `outputs_apart` says that no output overlaps another. Inputs that are `fixed` are packed where kernels
    take them so, at most so many. The workspace has scratch for `planned` threads, so that it is of one
    size on every machine; runs use up to `threads`.
    """
    if nothing:
        names = tuple([passed.value(id).name for id in (*passed.inputs, *passed.outputs)])
        empty = graph.plan_lifetimes((), strategy, threads=planned)
        return for_executor(empty), graph.Schedule((), names, 0, 0, 0, threads)
    table = KernelTable(passed, own or {})
    plan = for_executor(
        graph.plan_workspace(
            passed,
            strategy,
            threads=planned,
            scratch_of=table.scratch_of,
            threads_of=partial(table.threads_used, planned),
            spare_outputs=spare,
            outputs_apart=outputs_apart,
        )
    )
    stream_from = cpu_caches.stream_from(threads)
    schedule = graph.compile(
        passed,
        plan,
        lambda node: table.kernels[node.name],
        threads=max(threads, planned),
        stream_from=stream_from,
        fixed=fixed,
        most_packed=most_packed,
    )
    if schedule.packs:
        packed = tuple([pack.memory for pack in schedule.packs])
        plan = for_executor(replace(plan, packed=packed))
    return plan, schedule


def own_kernels(passed: graph.Graph, schedule: graph.Schedule) -> dict[str, Any]:
    """The kernels of a schedule that are not of this package, as `scheduled` takes them."""
    kernels = dict(zip(schedule.node_names(), schedule.kernels, strict=True))
    owned = [node for node in passed.nodes if node.attr("own") is not None]
    return {node.attr("own"): kernels[node.name] for node in owned}
