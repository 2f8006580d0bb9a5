"""HTML reports: one self-contained file per executor.

A script that comes with the page adds what paper cannot do: stages to step through, details next to
the pointer, one value followed through all views. Without it everything is still there to read.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from aclnn.acl.errors import AclnnError
from aclnn.compiler.compilation import own_kernels, scheduled
from aclnn.graph import Graph, Schedule, WorkspacePlan, run_passes
from aclnn.graph.extras import need
from aclnn.graph.lower.schedule import Step
from aclnn.graph.passes import pipeline as known_passes
from aclnn.graph.passes.notes import Note
from aclnn.graph.passes.pipeline import PassStep
from aclnn.graph.planner.plan import Buffer
from aclnn.graph.views import notebook, svg
from aclnn.graph.views.explorer import explorer_data
from aclnn.graph.views.heat import Heat, rules_of, sizes, traffic
from aclnn.graph.views.repeats import Folded, folded
from aclnn.graph.views.svg import marked
from aclnn.graph.views.text import base_words, human_bytes, some
from aclnn.reports.config import config
from aclnn.reports.lines import lines_of
from aclnn.reports.times import ExecutorTime, StepTime, times

TEMPLATES = Path(__file__).parent / "templates"
VENDORED = Path(__file__).parent / "vendored"
_NAME, _LOOP = re.compile(r"\w+"), re.compile(r"tile loop \d+")
REPEAT, LEAST_REPEAT = 20, 3  # runs of the profile
SECONDS = 2.0  # that they may take
MANY_STEPS = 12  # from which on their operands are folded
MOST_OPERANDS = 8  # of the call, at its top


class Stage(NamedTuple):
    """The graph at one point of the way from the call to the schedule, and the one before."""

    name: str
    words: str
    notes: tuple[Note, ...]
    graph: Graph
    before: Graph

    def folded_notes(self) -> list[tuple[Note, int]]:
        """Notes that say the same of what repeats once, with how many there are."""
        stands_for = _first_of_copies(self.before) | _first_of_copies(self.graph)
        found: dict[tuple[str, str, str], tuple[Note, int]] = {}
        for note in self.notes:
            words = _NAME.sub(lambda name: stands_for.get(name[0], name[0]), note.why)
            key = stands_for.get(note.node, note.node), note.action, _LOOP.sub("tile loop", words)
            first, count = found.get(key, (note, 0))
            found[key] = first, count + 1
        return list(found.values())


class StepTimes(NamedTuple):
    """Steps that are the same but for where they are, and what they took together."""

    steps: tuple[StepTime, ...]

    @property
    def first(self) -> StepTime:
        return self.steps[0]

    @property
    def median(self) -> float:
        return sum(step.median for step in self.steps)

    @property
    def nbytes(self) -> int:
        return sum(step.bytes_read + step.bytes_written for step in self.steps)

    @property
    def share(self) -> float:
        return sum(step.share for step in self.steps)

    def ops(self) -> list[tuple[str, float]]:
        """The nodes of the first one, and what all took together."""
        rows = zip(*[step.ops for step in self.steps], strict=True)
        return [(row[0].node, sum(op.estimated_ns for op in row)) for row in rows]


@dataclass(frozen=True)
class Way:
    """One of the two ways to plan a call, fused or materialized, and its results.

    `time` has the nanoseconds of its nodes, None where it was not run.
    """

    name: str
    stages: tuple[Stage, ...]
    graph: Graph
    plan: WorkspacePlan
    schedule: Schedule
    time: Heat | None = None

    @property
    def traffic(self) -> int:
        """Bytes that go through memory in one run."""
        return sum(step.bytes_read + step.bytes_written for step in self.schedule.steps)

    def picture(self, stage: Stage, is_last: bool) -> str:
        """The graph at a stage; the last one with where values lie, and how long nodes took."""
        heats = [heat for heat in (self.time, traffic(stage.graph)) if heat is not None]
        if is_last:
            return stage.graph.to_svg(self.plan, heats)
        return stage.graph.to_svg(heat=heats[-1])

    def plan_picture(self, whole: bool = False) -> str:
        """The plan, coloured by the time of the node that made a buffer, or its bytes."""
        heats = [sizes(self.plan)]
        if self.time is not None:
            made = {b.name: self.time.of([b.producer]) for b in self.plan.buffers}
            heats.insert(0, replace(self.time, amounts=made))
        return self.plan.to_svg(heats, whole)

    def explored(self) -> str:
        """Data that the page draws the graph from, group by group."""
        heats = [heat for heat in (self.time, traffic(self.graph)) if heat is not None]
        return packed(json.dumps(explorer_data(self.graph, self.plan, heats)))

    def folded_steps(self) -> list[tuple[int, Step, int]]:
        """Steps with their numbers; what repeats is there once, with how often."""
        small = folded(self.graph)
        kept = {node.name for node in small.graph.nodes}
        return [
            (number, step, _times(small, step.ops[0].node))
            for number, step in enumerate(self.schedule.steps)
            if any(op.node in kept for op in step.ops)
        ]

    def folded_buffers(self) -> list[tuple[Buffer, int]]:
        """Buffers; those of what repeats once, with how often."""
        small = folded(self.graph)
        known, kept = ({n.name for n in g.nodes} for g in (self.graph, small.graph))
        return [
            (buffer, _times(small, buffer.producer))
            for buffer in self.plan.buffers
            if buffer.producer in kept or buffer.producer not in known
        ]

    def whole_plan(self) -> str:
        """The picture with every step; empty where the other one has that."""
        whole = self.plan_picture(whole=True)
        return "" if whole == self.plan_picture() else whole

    def folded_times(self, one: ExecutorTime) -> list[StepTimes]:
        """The steps of a profile; those of what repeats are added up."""
        stands_for = _first_of_copies(self.graph)
        groups: dict[tuple[str, ...], list[StepTime]] = {}
        for step in one.steps:
            key = tuple([stands_for.get(name, name) for name in step.name.split("+")])
            groups.setdefault(key, []).append(step)
        return [StepTimes(tuple(steps)) for steps in groups.values()]

    def names(self, value: str) -> str:
        """Names to look for when `value` is followed: it, and what it is a view of."""
        root = self.graph.root(self.graph.named(value).id).name
        return marked(value, root)

    def base(self, operand: Any) -> str:
        """Base of an operand of the schedule."""
        return base_words(self.schedule, operand.base)


def _times(small: Folded, node: str) -> int:
    """Number of nodes that a node stands for."""
    return small.repeats[small.member[node]].count if node in small.member else 1


def _first_of_copies(graph: Graph) -> dict[str, str]:
    """For nodes and values that repeat what stands for them in pictures."""
    return {name: first for first, names in folded(graph).copies.items() for name in names}


def packed(text: str) -> str:
    """Text that the page's script unpacks: compressed, as letters."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


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
    environment.filters["marked"] = lambda names: marked(*names)
    environment.filters["bare"] = svg.without_rules
    environment.filters |= {
        "grouped": "{:,}".format,
        "human": human_bytes,
        "s": plural,
        "some": some,
    }
    profile, unprofiled = profiled(executor)
    time = times(profile.executors[0]) if profile and profile.steps else None
    ways = both_ways(executor, time)
    return environment.get_template("report.html.j2").render(
        executor=executor,
        operator=executor.operator,
        call=call_words(executor),
        engine=(VENDORED / "dagre.min.js").read_text(encoding="utf-8"),
        explored=ways[0].explored(),
        packed=packed,
        made_by=made_by(executor),
        ways=ways,
        lines=lines_of(executor.graph, time),
        many_steps=MANY_STEPS,
        schemes=notebook.SCHEMES,
        pictures=svg.STYLE + rules_of(["time", "bytes"]),
        profile=profile,
        unprofiled=unprofiled,
    )


def plural(count: int, word: str) -> str:
    """A number of things.

    >>> plural(1, "step"), plural(2, "step")
    ('1 step', '2 steps')
    """
    return f"{count:,} {word}{'s' * (count != 1)}"


def call_words(executor: Any) -> str:
    """The call or function, with what it was planned for."""
    specs = [
        f"{name} {spec.dtype.name}{list(spec.shape)}".replace(" [", "[")
        for name, spec in executor.inputs.items()
    ]
    left = len(specs) - MOST_OPERANDS
    specs = [*specs[:MOST_OPERANDS], *([f"+{left} more"] if left > 0 else [])]
    elsewhere = {"soc", "threads", "strategy", "materialize"}  # that the page has elsewhere
    options = [f"{key}={value}" for key, value in executor.options.items() if key not in elsewhere]
    return f"{executor.operator.name}({', '.join([*specs, *options])})"


def made_by(executor: Any) -> dict[str, str]:
    """Versions, instruction set, threads and SoC that planned and ran it."""
    found = config()
    threads = executor.options["threads"]
    return {
        **found["versions"],
        "instruction set": found["isa"]["name"],
        "threads": f"up to {threads}" if threads > 1 else "1",
        "SoC": executor.options["soc"],
    }


def profiled(executor: Any) -> tuple[Any, str]:
    """A profile, or None and the reason: runs would do more than write the output."""
    if not executor.schedule.steps:
        return None, "There is nothing to run."
    if not executor.repeatable:
        return None, "The executor is for one run, which the report leaves to its owner."
    if _shares_memory(executor.graph):
        return None, "An input shares memory with the output: repeated runs would change it."
    try:
        once = executor.profile(repeat=1, warmup=1).total_ns
        repeat = max(LEAST_REPEAT, min(REPEAT, int(SECONDS * 1e9 / max(once, 1))))
        return executor.profile(repeat=repeat, warmup=1), ""
    except AclnnError as error:
        return None, f"It cannot run: {error}"


def _shares_memory(graph: Graph) -> bool:
    in_place = any(graph.value(id).alias_of is not None for id in graph.outputs)
    return in_place or any(node.is_forced_copy for node in graph.nodes)


def both_ways(executor: Any, time: Heat | None = None) -> tuple[Way, Way]:
    """The executor's way of planning its call, then the other one.

    Planning needs descriptions only, so the other mode takes no memory and runs nothing.
    """
    mine, other = ("fused", "materialized")
    if not any(step.name == "fuse" for step in executor.passes):
        mine, other = other, mine
    built, plan = executor.graph_as_built, executor.plan
    own = _way(mine, built, executor.passes, executor.graph, plan, executor.schedule, time)
    passed = run_passes(built, other)
    nothing = not executor.schedule.steps
    kernels = own_kernels(executor.graph, executor.schedule)
    planned, schedule = scheduled(
        passed.graph,
        plan.strategy,
        executor.schedule.max_threads,
        nothing,
        own=kernels,
        planned=plan.threads,
    )
    return own, _way(other, built, passed, passed.graph, planned, schedule)


def _way(
    name: str,
    built: Graph,
    passes: Sequence[PassStep],
    graph: Graph,
    plan: WorkspacePlan,
    schedule: Schedule,
    time: Heat | None = None,
) -> Way:
    steps = plural(len(graph.steps()), "step")
    graphs = [built, built, *(step.graph for step in passes)]
    stages = (
        Stage("as built", "Every node that the call could need.", (), built, built),
        *(
            Stage(p.name, _purpose(p.name), tuple(p.notes), p.graph, before)
            for p, before in zip(passes, graphs[1:], strict=False)
        ),
        Stage("as scheduled", f"{steps}, {human_bytes(plan.size)} of workspace.", (), graph, graph),
    )
    return Way(name, stages, graph, plan, schedule, time)


def _purpose(name: str) -> str:
    """Purpose of a pass: the first paragraph of its documentation."""
    words = getattr(known_passes, name).__doc__ or ""
    return " ".join(words.partition("\n\n")[0].split())
