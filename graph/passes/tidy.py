"""Tidying: nodes whose results nobody needs, and nodes that compute what others do."""

from __future__ import annotations

from dataclasses import replace

from ..ir import Graph, Node
from ..rewriter import Rewriter
from .notes import Note, Notes


def tidy(graph: Graph) -> tuple[Graph, Notes]:
    """Remove dead nodes and merge equal ones."""
    if len(graph.nodes) == 1:
        return graph, ()
    graph, dead = _without_dead(graph)
    graph, equal = _without_equal(graph)
    return graph, dead + equal


def _without_dead(graph: Graph) -> tuple[Graph, Notes]:
    """Drop nodes that make nothing that an output needs, unless they have effects."""
    needed = set(graph.outputs)
    kept, notes = [], []
    for node in reversed(graph.nodes):
        if node.attr("effects") or any(graph.root(id).id in needed for id in node.outputs):
            needed.update([graph.root(id).id for id in node.inputs])
            kept.append(node)
        else:
            notes.append(Note(node.name, "removed", "nothing needs its result"))
    if not notes:
        return graph, ()
    return Rewriter(graph).rebuilt(reversed(kept)), tuple(reversed(notes))


def _without_equal(graph: Graph) -> tuple[Graph, Notes]:
    """Let the first of several equal nodes make what all of them did."""
    draft = Rewriter(graph)
    first: dict[tuple, Node] = {}
    same: dict[int, int] = {}
    nodes, notes = [], []
    for node in graph.nodes:
        if same:
            node = replace(node, inputs=tuple([same.get(id, id) for id in node.inputs]))
        key = _identity(draft, graph, node)
        known = first.setdefault(key, node) if key else node
        if known is node:
            nodes.append(node)
            continue
        notes.append(Note(node.name, "merged", f"{known.name} computes the same"))
        for old, new in zip(node.outputs, known.outputs, strict=True):
            same[old] = new
            for view in draft.views_of(old):
                draft.put(replace(view, alias_of=new))
    if not notes:
        return graph, ()
    return draft.rebuilt(nodes), tuple(notes)


def _identity(draft: Rewriter, graph: Graph, node: Node) -> tuple | None:
    """Key that equal nodes share; None for a node that is never merged."""
    if node.is_forced_copy or node.attr("effects"):
        return None
    made = [graph.value(id) for id in node.outputs]
    if any(value.storage != "workspace" or value.is_view for value in made):
        return None
    read = [draft.value(id) for id in node.inputs]
    places = tuple(
        [(v.alias_of, v.shape, v.strides, v.offset) if v.is_view else (v.id,) for v in read]
    )
    results = tuple([(value.shape, value.dtype) for value in made])
    attrs = tuple([pair for pair in node.attrs if pair[0] not in ("origin", "call")])
    return node.kind, places, attrs, results
