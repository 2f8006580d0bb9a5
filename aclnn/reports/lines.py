"""Costs of the lines of a compiled function: nodes, bytes and time, by where nodes come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aclnn.graph import Graph, Node
from aclnn.graph.result_steps import steps_of
from aclnn.graph.views.heat import Heat, traffic
from aclnn.graph.views.tables import Sheet, make, to_text
from aclnn.reports.times import times

if TYPE_CHECKING:
    from aclnn.reports.profiling import Profile

MOST_KERNELS = 6  # that a line names
NO_LINE = "no line"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the function, or (`depth` above 0) of what it called, over all nodes of it.

    `nanoseconds` is None where nothing ran; `share` is that of all nodes, of time or else of bytes.
    """

    words: str
    depth: int
    nodes: tuple[str, ...]
    kernels: str
    nbytes: int
    nanoseconds: float | None
    share: float


def profile_to_lines(profile: Profile, executor: object) -> str:
    """The table of the lines of one of a profile's executors."""
    plan, one = profile.graphed(executor)
    found = lines_of(plan.graph, times(one))
    return to_text(lines_sheet(found)) if found else "no node knows a line"


def lines_of(graph: Graph, time: Heat | None) -> list[Line]:
    """The lines that recorded the nodes of a graph, in the order in which they run first.

    Below each line are those of what it called.
    """
    moved = traffic(graph)
    return list(_lines(graph.nodes, 0, moved, time)) if any(n.origin for n in graph.nodes) else []


def _lines(nodes: Sequence[Node], depth: int, moved: Heat, time: Heat | None) -> Iterator[Line]:
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        if len(node.origin) > depth:
            groups.setdefault(node.origin[depth], []).append(node)
        elif depth == 0:  # such as what stores a result
            groups.setdefault(NO_LINE, []).append(node)
    for words, inside in groups.items():
        names = tuple(node.name for node in inside)
        spent, whole = (moved, moved.total) if time is None else (time, time.total)
        yield Line(
            _within(words, inside[0].origin[depth - 1] if depth else ""),
            depth,
            names,
            _kernels(inside),
            int(moved.of(names)),
            None if time is None else time.of(names),
            spent.of(names) / (whole or 1),
        )
        if words != NO_LINE:
            yield from _lines(inside, depth + 1, moved, time)


def _within(words: str, around: str) -> str:
    """A line below another one, of a path of modules what the one around it does not say.

    >>> _within("m/encoder/layer.0", "m/encoder"), _within("/m/act/Relu: Relu", "m/act")
    ('layer.0', 'Relu: Relu')
    >>> _within("encoder.layer: Stack", "encoder: Encoder"), _within("m.py:3: f()", "m.py:2: g()")
    ('layer: Stack', 'm.py:3: f()')
    """
    path = around.partition(": ")[0]
    begins = tuple(f"{root}{path}{sign}" for root in ("", "/") for sign in "/." if path)
    found = next((begin for begin in begins if words.startswith(begin)), "")
    return words[len(found) :]


def lines_sheet(lines: Sequence[Line]) -> Sheet:
    """The lines as a table, those of what others called further in."""
    rows = [
        [
            "  " * line.depth + line.words,
            line.kernels,
            len(line.nodes),
            f"{line.nbytes:,}",
            "" if line.nanoseconds is None else f"{line.nanoseconds / 1000:9.2f}",
            f"{line.share:.0%}",
        ]
        for line in lines
    ]
    headers = ["line", "computes", "nodes", "bytes", "≈ µs", "share"]
    return (make(headers, rows, "nodes,bytes,≈ µs,share", "line"),)


def _kernels_of(node: Node) -> list[str]:
    steps = [step.kernel or step.kind for step in steps_of(node)]
    return [node.attr("kernel") or node.kind, *steps]


def _kernels(nodes: Sequence[Node]) -> str:
    """Kernels of nodes, the most frequent first: ``matmul x3, softmax``."""
    counted = Counter([kernel for node in nodes for kernel in _kernels_of(node)]).most_common()
    words = [name if count == 1 else f"{name} x{count}" for name, count in counted[:MOST_KERNELS]]
    left = len(counted) - MOST_KERNELS
    return ", ".join([*words, *([f"+{left} more"] if left > 0 else [])])
