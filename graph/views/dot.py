"""Graphviz source: nodes as boxes, arguments as ellipses, tile loops as clusters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from .repeats import Folded, folded
from .text import (
    Places,
    arguments,
    attr_words,
    dims,
    human_bytes,
    kind_words,
    places,
    storage_words,
)

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value
    from ..planner.plan import WorkspacePlan


def graph_to_dot(graph: Graph, plan: WorkspacePlan | None = None, whole: bool = False) -> str:
    small = folded(graph, whole)
    graph, where = small.graph, places(plan)
    boxes = {node.name: f"n{index}" for index, node in enumerate(graph.nodes)}
    lines = [
        "digraph executor {",
        '  node [shape=box, style="rounded", fontname="monospace", fontsize=10];',
        '  edge [fontname="monospace", fontsize=9];',
    ]
    for value in [*arguments(graph), *gathered(graph)]:
        also = len(small.names(value.name)) - 1
        name = f"{value.name} (and {also} more)" if also else value.name
        label = _quoted(name, str(value), _layout(value), *_place(graph, value, where))
        lines.append(f"  v{value.id} [shape=ellipse, label={label}];")
    for number, steps in groupby(graph.steps(), lambda step: small.member.get(step[0].name)):
        inside = [line for step in steps for line in _step(graph, step, boxes, where)]
        lines += inside if number is None else _repeat(small, number, inside)
    lines += _edges(graph, boxes)
    return "\n".join([*lines, "}"]) + "\n"


def _step(graph: Graph, step: Sequence[Node], boxes: dict[str, str], where: Places) -> list[str]:
    """The nodes of a step, those of a tile loop in a cluster."""
    loop = step[0].attr("loop")
    lines = [f"  {boxes[node.name]} {_label(graph, node, where)};" for node in step]
    if loop is None:
        return lines
    head = f'label="tile loop {loop}"; style=dashed; fontname="monospace";'
    return [f"  subgraph cluster_loop_{loop} {{", f"    {head}", *_indented(lines), "  }"]


def _repeat(small: Folded, number: int, inside: list[str]) -> list[str]:
    """Cluster of a repeat, which says how often."""
    head = f'label={_quoted(small.words(number))}; color=blue; fontname="monospace";'
    return [f"  subgraph cluster_repeat_{number} {{", f"    {head}", *_indented(inside), "  }"]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def gathered(graph: Graph) -> list[Value]:
    """Values with boxes of their own besides those of the nodes that write them: outputs, and values that
    several nodes write."""
    writers = graph.writers()
    several = [
        value
        for value in graph.values
        if value.storage == "workspace" and not value.is_view and len(writers.get(value.id, ())) > 1
    ]
    return [*several, *map(graph.value, graph.outputs)]


def _edges(graph: Graph, boxes: dict[str, str]) -> list[str]:
    """From whoever makes a value to those who read it; by its own box, where it has one."""
    own = {value.id for value in [*arguments(graph), *gathered(graph)]}
    lines = []
    for node in graph.nodes:
        box = boxes[node.name]
        for id in node.inputs:
            root = graph.root(id).id
            if root not in own and root not in graph.writers():
                continue  # what has no elements may have no maker
            source = f"v{root}" if root in own else boxes[graph.writers()[root][0].name]
            lines.append(f"  {source} -> {box} {_operand(graph, id)};")
        for id in node.outputs:
            root = graph.root(id).id
            label = f" {_operand(graph, id)}" if id != root else ""
            lines += [f"  {box} -> v{root}{label};"] if root in own else []
    return lines


def _label(graph: Graph, node: Node, where: Places) -> str:
    words = [node.name, kind_words(node)]
    for value in map(graph.value, node.outputs):
        named = "" if value.name == node.name else f"{value.name}: "
        words += [f"{named}{value}", *_place(graph, value, where), _layout(value)]
    read, written = graph.bytes_read(node), graph.bytes_written(node)
    words.append(f"reads {human_bytes(read)}, writes {human_bytes(written)}")
    if attr_words(node):
        words.append(attr_words(node))
    return f"[label={_quoted(*words)}]"


def _place(graph: Graph, value: Value, where: Places) -> list[str]:
    """Owner of a value's bytes, and their place."""
    offset = where.of(graph, value)
    if not offset:
        return [storage_words(graph, value)]
    inside = graph.root(value.id).name in where.outputs
    return [storage_words(graph, value), f"{'in' if inside else 'workspace offset'} {offset}"]


def _operand(graph: Graph, id: int) -> str:
    """An edge's label: what is read, with the strides of a view."""
    value = graph.value(id)
    words = [value.name, f"{value.dtype.name}{dims(value.shape)}"]
    if value.is_view or not value.is_contiguous:
        words.append(f"strides {dims(value.strides)}")
    return f"[label={_quoted(*words)}]"


def _layout(value: Value) -> str:
    return f"strides {dims(value.strides)}, {human_bytes(value.nbytes)}"


def _quoted(*lines: str) -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
