"""HTML reports: one self-contained file per executor.

A script that comes with the page adds what paper cannot do: stages to step through, details beside
the pointer, one value followed through all views. Without it everything is still there to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from aclnn.acl.errors import AclnnError
from aclnn.compiler.phase_one import own_kernels, scheduled
from aclnn.graph import Graph, Schedule, WorkspacePlan, run_passes
from aclnn.graph.passes import pipeline as known_passes
from aclnn.graph.passes.notes import Note
from aclnn.graph.passes.pipeline import PassStep
from aclnn.graph.views.extras import need
from aclnn.graph.views.text import base_words, human_bytes

TEMPLATES = Path(__file__).parent / "templates"
REPEAT = 20  # runs of the profile


class Stage(NamedTuple):
    """The graph at one point of the way from the call to the schedule."""

    name: str
    words: str
    notes: tuple[Note, ...]
    graph: Graph


@dataclass(frozen=True)
class Way:
    """One of the two ways to plan a call, fused or materialized, and its results."""

    name: str
    stages: tuple[Stage, ...]
    graph: Graph
    plan: WorkspacePlan
    schedule: Schedule

    @property
    def traffic(self) -> int:
        """Bytes that go through memory in one run."""
        return sum(step.bytes_read + step.bytes_written for step in self.schedule.steps)

    def names(self, value: str) -> str:
        """What to look for when `value` is followed: it, and what it is a view of."""
        root = self.graph.root(self.graph.named(value).id).name
        return value if root == value else f"{value} {root}"

    def base(self, operand: Any) -> str:
        """Where an operand of the schedule lies."""
        return base_words(self.schedule, operand.base)


def to_html(executor: Any) -> str:
    """Graph, passes, plan, schedule and profile of an executor.

    Parameters
    ----------
    executor : aclOpExecutor
        The profile runs it, which writes its output. Where a run would do more than that (spend a
        one-shot executor, change an input), the report has no profile and says why.

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
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"grouped": "{:,}".format, "human": human_bytes, "s": plural}
    profile, unprofiled = profiled(executor)
    return environment.get_template("report.html.j2").render(
        executor=executor,
        operator=executor.operator,
        ways=both_ways(executor),
        profile=profile,
        unprofiled=unprofiled,
    )


def plural(count: int, word: str) -> str:
    """A number of things.

    >>> plural(1, "step"), plural(2, "step")
    ('1 step', '2 steps')
    """
    return f"{count:,} {word}{'s' * (count != 1)}"


def profiled(executor: Any) -> tuple[Any, str]:
    """A profile, or None and the reason: runs would do more than write the output."""
    if not executor.schedule.steps:
        return None, "There is nothing to run."
    if not executor.repeatable:
        return None, "The executor is for one run, which the report leaves to its owner."
    if _shares_memory(executor.graph):
        return None, "An input shares memory with the output: repeated runs would change it."
    try:
        return executor.profile(repeat=REPEAT), ""
    except AclnnError as error:
        return None, f"It cannot run: {error}"


def _shares_memory(graph: Graph) -> bool:
    in_place = any(graph.value(id).alias_of is not None for id in graph.outputs)
    return in_place or any(node.is_forced_copy for node in graph.nodes)


def both_ways(executor: Any) -> tuple[Way, Way]:
    """The executor's way of planning its call, then the other one.

    Planning needs descriptions only, so the other mode takes no memory and runs nothing.
    """
    mine, other = ("fused", "materialized")
    if not any(step.name == "fuse" for step in executor.passes):
        mine, other = other, mine
    built, plan = executor.graph_as_built, executor.plan
    own = _way(mine, built, executor.passes, executor.graph, plan, executor.schedule)
    passed = run_passes(built, other)
    nothing = not executor.schedule.steps
    kernels = own_kernels(executor.graph, executor.schedule)
    planned, schedule = scheduled(passed.graph, plan.strategy, plan.threads, nothing, own=kernels)
    return own, _way(other, built, passed, passed.graph, planned, schedule)


def _way(
    name: str,
    built: Graph,
    passes: Sequence[PassStep],
    graph: Graph,
    plan: WorkspacePlan,
    schedule: Schedule,
) -> Way:
    steps = plural(len(graph.steps()), "step")
    stages = (
        Stage("as built", "Every node that the call could need.", (), built),
        *(Stage(p.name, _purpose(p.name), tuple(p.notes), p.graph) for p in passes),
        Stage("as scheduled", f"{steps}, {human_bytes(plan.size)} of workspace.", (), graph),
    )
    return Way(name, stages, graph, plan, schedule)


def _purpose(name: str) -> str:
    """What a pass is for: the first paragraph of its documentation."""
    words = getattr(known_passes, name).__doc__ or ""
    return " ".join(words.partition("\n\n")[0].split())
