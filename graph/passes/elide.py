"""Eliding: nodes that change nothing."""

from __future__ import annotations

from dataclasses import replace

from ..ir import Graph, Node, Value
from ..rewriter import Rewriter
from .notes import Note, Notes
from .stores import drop_view_copies


def elide(graph: Graph) -> tuple[Graph, Notes]:
    """Drop nodes that change nothing, and let producers write row-major outputs themselves."""
    notes: list[Note] = []
    same: dict[int, int] = {}
    nodes: list[Node] = []
    draft = Rewriter(graph)
    for node in graph.nodes:
        if same:
            inputs = tuple([same.get(id, id) for id in node.inputs])
            if inputs != node.inputs:
                node = replace(node, inputs=inputs)
        why = _idle(graph, node)
        if why and _views_follow(graph, draft, node):
            same[node.output] = node.inputs[0]
            notes.append(Note(node.name, "elided", why))
        else:
            nodes.append(node)
    graph, nodes, copies = drop_view_copies(draft.graph(), nodes, _may_write)
    for copy, writer in copies:
        out = graph.value(copy.output)
        what = "contiguous" if out.is_contiguous else "a part of an output"
        why = f"{out.name} is {what}, so {writer.name} writes it directly"
        notes.append(Note(copy.name, "elided", why))
    return Rewriter(graph).rebuilt(nodes), tuple(notes)


def _may_write(out: Value, writer: Node, copy: Node) -> bool:
    """Whether a producer may write what its result is copied to."""
    return out.is_contiguous or (out.storage == "part" and writer.takes_in(copy))


def _idle(graph: Graph, node: Node) -> str:
    """Why the node does nothing; empty when it does something."""
    if node.kind == "Compute" or node.is_forced_copy:
        return ""
    source, out = graph.value(node.inputs[0]), graph.value(node.output)
    if out.storage != "workspace" or out.is_view:
        return ""
    if node.kind == "Contiguous" and source.is_contiguous:
        return "already contiguous"
    if node.kind == "Cast" and source.dtype == out.dtype and source.is_contiguous:
        return f"already {out.dtype.name}"
    if node.kind == "BroadcastTo" and source.shape == out.shape and source.is_contiguous:
        return "already has the shape"
    return ""


def _views_follow(graph: Graph, draft: Rewriter, node: Node) -> bool:
    """Make the views of an idle node's result views of what it reads, if all can be."""
    return draft.move_views(graph.value(node.output), draft.value(node.inputs[0]))
