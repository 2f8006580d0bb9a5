"""Reports on models: which nodes are kernels, function bodies, and other means."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aclnn.onnx.evaluation import called
from aclnn.onnx.patterns import nodes_of
from aclnn.onnx.program import Graph, line_of

WAYS = ("kernel", "body", "control", "fallback", "folded", "not planned")
MOST_LISTED = 8


@dataclass(frozen=True, slots=True)
class ReportedNode:
    """A node of a model's file.

    Attributes
    ----------
    name, operator : str
    by : str
        ``kernel``; ``body``, the standard's function of other operators; ``control``, a branch or a
        loop; ``fallback``, another runtime; ``folded``, known while planning; ``not planned``, before
        a call.
    runtime : str
        Who computes it, of a fallback.
    seconds : float
        What it took in the call that was timed: of nodes that share a loop estimates, of those that are
        computed as one all with the last.
    """

    name: str
    operator: str
    by: str
    runtime: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ReportedPattern:
    """Nodes of a model's file that are computed as one.

    Attributes
    ----------
    name : str
    nodes : tuple of str
        The names of the file's nodes; the last gives the result.
    """

    name: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelReport:
    """Report on a model, from `OnnxModel.report`.

    Attributes
    ----------
    model : str
    nodes : tuple of ReportedNode
    counts : dict of str to int
        Nodes by what computes them.
    plans : int
        How many there are so far.
    patterns : tuple of ReportedPattern
        Nodes that are computed as one.
    shares : dict of str to float
        Shares of the time of nodes by what computes them; nothing before a call.
    """

    model: str
    nodes: tuple[ReportedNode, ...]
    plans: int
    patterns: tuple[ReportedPattern, ...] = ()
    shares: dict[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        found = Counter([one.by for one in self.nodes])
        return {way: found[way] for way in WAYS if found[way]}

    def to_json(self) -> str:
        """The report as JSON.

        Returns
        -------
        str
        """
        return json.dumps({
            "model": self.model,
            "plans": self.plans,
            "counts": self.counts,
            "nodes": [
                {"name": n.name, "operator": n.operator, "by": n.by, "runtime": n.runtime,
                 "seconds": n.seconds}
                for n in self.nodes
            ],
            "shares": self.shares,
            "patterns": [{"name": n.name, "nodes": [*n.nodes]} for n in self.patterns],
        })  # fmt: skip

    def __str__(self) -> str:
        lines = [
            f"{self.model}: {len(self.nodes)} nodes, {self.plans} plan{'s' * (self.plans != 1)}"
        ]
        for way, count in self.counts.items():
            kinds = Counter([one.operator for one in self.nodes if one.by == way])
            some = [f"{kind} {n}" if n > 1 else kind for kind, n in kinds.most_common(MOST_LISTED)]
            more = f" and {len(kinds) - MOST_LISTED} more" if len(kinds) > MOST_LISTED else ""
            seconds = sum([one.seconds for one in self.nodes if one.by == way])
            took = f", {seconds * 1e3:.3g} ms" if seconds else ""
            lines.append(f"  {way:<12}{count:>6}  {', '.join(some)}{more}{took}")
        if self.shares:
            listed = ", ".join([f"{way} {share:.0%}" for way, share in self.shares.items()])
            lines.append(f"  time of nodes: {listed}")
        kinds = Counter([one.name for one in self.patterns])
        if kinds:
            count = sum([len(one.nodes) for one in self.patterns])
            listed = ", ".join(
                [f"{name} {n}" if n > 1 else name for name, n in kinds.most_common()]
            )
            lines.append(f"  {'as one':<12}{count:>6}  {listed}")
        return "\n".join(lines)


def seconds_of(
    graph: Graph, runs: Sequence[Any], alone: Mapping[int, float]
) -> dict[int, float]:  # fmt: skip
    """The times of a graph's nodes, by their places.

    Parameters
    ----------
    graph : Graph
    runs : sequence of tuple
        Runs of plans, as a profile records them.
    alone : mapping of int to float
        The times of nodes that ran between plans.
    """
    from aclnn.reports.profiling import Profile
    from aclnn.reports.times import times

    seen = Profile()
    by_line: dict[str, float] = {}
    for run in runs:
        seen.record(*run)
    for number, one in enumerate(seen.executors):
        spent = times(one)
        for node in seen.graphed(number)[0].graph.nodes:
            if node.origin:
                nanoseconds = spent.amounts.get(node.name, 0.0) * len(one.times)
                by_line[node.origin[-1]] = by_line.get(node.origin[-1], 0.0) + nanoseconds * 1e-9
    found = dict(alone)
    for index, node in enumerate(graph.nodes):
        if line_of(node) in by_line:
            found[index] = found.get(index, 0.0) + by_line.pop(line_of(node))
    return found


def report_of(graph: Graph, plans: Sequence[Any], seconds: Mapping[int, float]) -> ModelReport:
    """The report of a graph, as it was last planned, with the times of its nodes by their places."""
    nodes = []
    for index, node in enumerate(graph.nodes):
        evaluations = graph.evaluations.get(index, [])
        nodes.append(
            ReportedNode(
                called(node),
                node.op_type,
                graph.ways.get(index, "not planned"),
                evaluations[-1].by if evaluations else "",
                seconds.get(index, 0.0),
            )
        )
    patterns = [
        ReportedPattern(one.pattern.name, nodes_of(one, graph.nodes))
        for _, one in sorted(graph.joined.items())
    ]
    by_way: dict[str, float] = {}
    for one in nodes:
        by_way[one.by] = by_way.get(one.by, 0.0) + one.seconds
    total = sum(by_way.values())
    shares = {way: by_way[way] / total for way in WAYS if total and by_way.get(way)}
    return ModelReport(graph.name, tuple(nodes), len(plans), tuple(patterns), shares)
