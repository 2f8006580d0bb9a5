"""A report of one executor that is one HTML file: no network, no other files, no scripts needed.

A script that comes with the page adds what paper cannot do: stages to step through, details beside
the pointer, one value followed through all views. Without it everything is still there to read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from aclnn.graph import WorkspacePlan, plan_workspace, run_passes
from aclnn.graph.views.extras import need

TEMPLATES = Path(__file__).parent / "templates"
REPEAT = 20  # runs of the profile


class Stage(NamedTuple):
    """The graph at one point of the way from the call to the schedule."""

    name: str
    notes: tuple[str, ...]
    graph: Any


def to_html(executor: Any) -> str:
    """Graph, passes, plan, schedule and profile of an executor.

    Parameters
    ----------
    executor : aclOpExecutor
        The profile runs it: its output is written.

    Returns
    -------
    str
        A whole page, light or dark as the reader prefers.

    Raises
    ------
    ModuleNotFoundError
        If jinja2 is not installed; the message says how to.

    Examples
    --------
    >>> import numpy as np, aclnn
    >>> page = aclnn.executor("elu", np.ones(4, np.float32)).to_html()
    >>> page.startswith("<!doctype html>"), "http" in page.replace("http://www.w3.org", "")
    (True, False)
    """
    jinja2 = need("jinja2", "reports", "report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["grouped"] = "{:,}".format
    profile = executor.profile(repeat=REPEAT)
    return environment.get_template("report.html.j2").render(
        executor=executor,
        operator=executor.operator,
        plan=executor.plan,
        stages=stages(executor),
        plans=both_plans(executor),
        schedule=executor.schedule,
        profile=profile,
    )


def stages(executor: Any) -> list[Stage]:
    """The graph as built, after each pass, and as scheduled."""
    built = Stage("as built", ("what the call says, step by step",), executor.graph_as_built)
    after = [Stage(f"{p.name}", tuple(map(str, p.notes)), p.graph) for p in executor.passes]
    steps = len(executor.graph.steps())
    last = f"{steps} step{'s' * (steps != 1)}, {executor.workspace_size:,} bytes of workspace"
    return [built, *after, Stage("as scheduled", (last,), executor.graph)]


def both_plans(executor: Any) -> dict[str, WorkspacePlan]:
    """This executor's plan, and that of the same call planned the other way."""
    fused = any(step.name == "fuse" for step in executor.passes)
    here, there = ("fused", "materialized") if fused else ("materialized", "fused")
    other = run_passes(executor.graph_as_built, there).graph
    return {here: executor.plan, there: plan_workspace(other, threads=executor.plan.threads)}
