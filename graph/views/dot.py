"""Graphviz source: nodes as boxes, arguments as ellipses, tile loops as clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .text import attr_words, dims, human_bytes, places, storage_words

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value
    from ..planner.plan import WorkspacePlan


def graph_to_dot(graph: Graph, plan: WorkspacePlan | None = None) -> str:
    where = places(plan)
    boxes = {node.output: f"n{place}" for place, node in enumerate(graph.nodes)}
    lines = [
        "digraph executor {",
        '  node [shape=box, style="rounded", fontname="monospace", fontsize=10];',
        '  edge [fontname="monospace", fontsize=9];',
    ]
    arguments = [v for v in graph.values if v.storage in ("input", "constant") and not v.is_view]
    for value in [*arguments, *(graph.value(id) for id in graph.outputs)]:
        label = _quoted(value.name, str(value), _layout(value), storage_words(graph, value))
        lines.append(f"  v{value.id} [shape=ellipse, label={label}];")
    for step in graph.steps():
        loop = step[0].attr("loop")
        if loop is not None:
            lines.append(f"  subgraph cluster_loop_{loop} {{")
            lines.append(f'    label="tile loop {loop}"; style=dashed; fontname="monospace";')
        indent = "  " if loop is None else "    "
        lines += [f"{indent}{boxes[node.output]} {_label(graph, node, where)};" for node in step]
        if loop is not None:
            lines.append("  }")
    for node in graph.nodes:
        box = boxes[node.output]
        for id in node.inputs:
            root = graph.root(id)
            argument = root.id not in boxes or root.storage == "output"
            source = f"v{root.id}" if argument else boxes[root.id]
            lines.append(f"  {source} -> {box} {_operand(graph, id)};")
        if node.output in graph.outputs:
            lines.append(f"  {box} -> v{node.output};")
    return "\n".join([*lines, "}"]) + "\n"


def _label(graph: Graph, node: Node, where: dict[str, str]) -> str:
    value = graph.value(node.output)
    words = [node.name, node.kind, str(value), storage_words(graph, value), _layout(value)]
    if value.name in where:
        words.append(f"workspace offset {where[value.name]}")
    read, written = graph.bytes_read(node), graph.bytes_written(node)
    words.append(f"reads {human_bytes(read)}, writes {human_bytes(written)}")
    if attr_words(node):
        words.append(attr_words(node))
    return f"[label={_quoted(*words)}]"


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
