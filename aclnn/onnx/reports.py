"""Reports on models: which nodes are kernels, function bodies, and other means."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aclnn.onnx.evaluation import called
from aclnn.onnx.patterns import nodes_of
from aclnn.onnx.program import Graph

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
        What a fallback took in all calls.
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
        Shares of the time of calls: of what this package computes, and of what other runtimes do; nothing
        before a call of a model that is planned and has both.
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
            lines.append(f"  time of calls: {listed}")
        kinds = Counter([one.name for one in self.patterns])
        if kinds:
            count = sum([len(one.nodes) for one in self.patterns])
            listed = ", ".join(
                [f"{name} {n}" if n > 1 else name for name, n in kinds.most_common()]
            )
            lines.append(f"  {'as one':<12}{count:>6}  {listed}")
        return "\n".join(lines)


def report_of(graph: Graph, plans: Sequence[Any], elsewhere: float | None = None) -> ModelReport:
    """The report of a graph, as it was last planned, with the share of the time that others took."""
    nodes = []
    for place, node in enumerate(graph.nodes):
        evaluations = graph.evaluations.get(place, [])
        nodes.append(
            ReportedNode(
                called(node),
                node.op_type,
                graph.ways.get(place, "not planned"),
                evaluations[-1].by if evaluations else "",
                sum([one.seconds for one in evaluations]),
            )
        )
    patterns = [
        ReportedPattern(one.pattern.name, nodes_of(one, graph.nodes))
        for _, one in sorted(graph.joined.items())
    ]
    shares = {} if elsewhere is None else {"kernel": 1 - elsewhere, "fallback": elsewhere}
    return ModelReport(graph.name, tuple(nodes), len(plans), tuple(patterns), shares)
