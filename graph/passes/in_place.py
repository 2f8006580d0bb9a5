"""Outputs that are inputs: whether they can be written in place, and copies where they cannot."""

from __future__ import annotations

from dataclasses import replace

from ..attrs import freeze_attrs
from ..ir import Graph, Node, Value
from ..rewriter import Rewriter
from ..strides import contiguous_strides, same_layout
from .notes import Note, Notes


def in_place(graph: Graph) -> tuple[Graph, Notes]:
    """Check every output that is also an input, and copy the input first where it must be."""
    notes: list[Note] = []
    for id in graph.outputs:
        out = graph.value(id)
        if out.alias_of is None:
            continue
        number = graph.inputs.index(out.alias_of)
        writers = graph.writers()[id]
        reason = _hazard(graph, out, writers)
        if not reason:
            why = "same address and layout"
            if not any(_reads(graph, node, out.alias_of) for node in _step_of(graph, writers[0])):
                why = "the input is read before the output is written"
            action = f"writes {out.name} in place of input {number}"
            notes.append(Note(writers[0].name, action, f"safe: {why}"))
        else:
            graph, copy = _copied_first(graph, out.alias_of)
            why = f"{reason}, so input {number} is copied before {out.name} is written"
            notes.append(Note(copy, "added", why))
    return graph, tuple(notes)


def _step_of(graph: Graph, node: Node) -> tuple[Node, ...]:
    loop = node.attr("loop")
    return (node,) if loop is None else next(s for s in graph.steps() if s[0].attr("loop") == loop)


def _reads(graph: Graph, node: Node, root: int) -> bool:
    return any(graph.root(id).id == root for id in node.inputs)


def _hazard(graph: Graph, out: Value, writers: tuple[Node, ...]) -> str:
    """Why writing `out` would destroy input elements that are still to be read."""
    place = {node.name: at for at, node in enumerate(graph.nodes)}
    first = writers[0]
    step = {node.name for node in _step_of(graph, first)}
    for node in graph.readers().get(out.alias_of, ()):  # type: ignore[arg-type]
        if place[node.name] > place[first.name]:
            return f"{node.name} reads it after {first.name} wrote"
        if node.name not in step:
            continue
        reads = [id for id in node.inputs if graph.root(id).id == out.alias_of]
        alike = all(same_layout(graph.value(id), out) for id in reads)
        if not alike or node.domain == "opaque" or len(writers) > 1:
            return f"{node.name} reads it in another layout"
    return ""


def _copied_first(graph: Graph, id: int) -> tuple[Graph, str]:
    """Insert a forced copy of input `id` before all nodes and make every reader read the copy."""
    source = graph.value(id)
    draft = Rewriter(graph)
    copy = draft.add(
        replace(
            source,
            name=f"{source.name}_copy",
            strides=contiguous_strides(source.shape),
            storage="workspace",
            alias_of=None,
            note="",
        )
    )
    nodes = [Node(copy.name, "Contiguous", (id,), (copy.id,), freeze_attrs({"reason": "overlap"}))]
    if all(draft.can_load(copy, used) for node in graph.nodes for used in node.inputs
           if graph.root(used).id == id):  # fmt: skip
        nodes += [_reading(graph, draft, node, id, copy) for node in graph.nodes]
        return draft.rebuilt(nodes), copy.name
    raise AssertionError(f"{source.name}: a view of it has no strides in a dense copy")


def _reading(graph: Graph, draft: Rewriter, node: Node, id: int, copy: Value) -> Node:
    inputs = [
        draft.load_of(copy, used) if graph.root(used).id == id else used for used in node.inputs
    ]
    return replace(node, inputs=tuple(inputs))
