"""Rematerialization: broadcasts that are repeated where they are read, instead of being kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..attrs import Attrs, freeze_attrs
from ..ir import Graph, Node
from ..rewriter import Rewriter
from .notes import Note, Notes


def rematerialize(graph: Graph) -> tuple[Graph, Notes]:
    """Repeat broadcasts of arguments for readers after nodes of other calls.

    The small array that such a broadcast reads is there all the time; the large one that it writes is
    not kept while other calls run.
    """
    repeated = {}
    overwritten = {graph.value(id).alias_of for id in graph.outputs}
    readers, call_at = graph.readers(), [node.attr("call") for node in graph.nodes]
    place_of = {node.name: index for index, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        reading = readers.get(node.outputs[0], ())
        if len(reading) < 2 or not _is_cheap(graph, node, overwritten):
            continue
        groups = _groups([place_of[one.name] for one in reading], call_at)
        if len(groups) > 1:
            repeated[node.name] = groups[1:]
    if not repeated:
        return graph, ()
    return _with_copies(graph, repeated)


def _is_cheap(graph: Graph, node: Node, overwritten: set[int | None]) -> bool:
    """Whether a node repeats what is there all the time, in memory of its own."""
    if node.kind != "BroadcastTo" or graph.value(node.output).storage != "workspace":
        return False
    source = graph.root(node.inputs[0])
    return source.storage in ("input", "constant") and source.id not in overwritten


def _groups(places: Sequence[int], call_at: Sequence[object]) -> list[list[int]]:
    """Readers, by their places, that no node of another call separates."""
    groups = [[places[0]]]
    for index in places[1:]:
        own = {None, call_at[groups[-1][-1]], call_at[index]}
        between = call_at[groups[-1][-1] + 1 : index]
        if own.issuperset(between):
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _as_of(reader: Node, node: Node) -> Attrs:
    """A node's attributes, with the call and the lines of the one that it is repeated for."""
    own = {key: value for key, value in reader.attrs if key in ("call", "origin")}
    return freeze_attrs(dict(node.attrs) | own)


def _with_copies(graph: Graph, repeated: dict[str, list[list[int]]]) -> tuple[Graph, Notes]:
    """The graph with a node more in front of each group of readers."""
    draft, notes = Rewriter(graph), []
    before: dict[int, list[Node]] = {}
    reads: dict[int, dict[int, int]] = {}
    for node in graph.nodes:
        for group in repeated.get(node.name, ()):
            made = draft.add(graph.value(node.output))
            changed = {node.output: made.id}
            for view in draft.views_of(node.output):
                changed[view.id] = draft.add(replace(view, alias_of=made.id)).id
            attrs = _as_of(graph.nodes[group[0]], node)
            again = replace(node, name=made.name, outputs=(made.id,), attrs=attrs)
            before.setdefault(group[0], []).append(again)
            for index in group:
                reads.setdefault(index, {}).update(changed)
            why = f"{graph.nodes[group[0]].name} reads it again after other calls"
            notes.append(Note(made.name, "added", why))
    nodes = []
    for index, node in enumerate(graph.nodes):
        nodes += before.get(index, [])
        new = reads.get(index)
        if new:
            node = replace(node, inputs=tuple([new.get(id, id) for id in node.inputs]))
        nodes.append(node)
    return draft.rebuilt(nodes), tuple(notes)
