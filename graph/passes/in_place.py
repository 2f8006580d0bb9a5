"""Outputs that are inputs: whether they can be written in place, and copies where they cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..attrs import freeze_attrs
from ..ir import Graph, Node, Value
from ..rewriter import Rewriter
from ..strides import contiguous_strides, same_layout
from .notes import Note, Notes


def in_place(graph: Graph) -> tuple[Graph, Notes]:
    """Check every output that is also an input, and copy the input first where it must be."""
    outs = [out for out in map(graph.value, graph.outputs) if out.alias_of is not None]
    if not outs:
        return graph, ()
    order, notes = _Order(graph), []
    number = {id: at for at, id in enumerate(graph.inputs)}
    draft, copies = Rewriter(graph), dict[int, Value]()
    for out in outs:
        alias: int = out.alias_of  # type: ignore[assignment]
        writers = graph.writers()[out.id]
        # Nobody reads an input that was copied for another output.
        reason = "" if alias in copies else order.hazard(out, writers)
        if not reason:
            why = "same address and layout"
            if alias in copies or not order.reads_in_step(writers[0], alias):
                why = "the input is read before the output is written"
            action = f"writes {out.name} in place of input {number[alias]}"
            notes.append(Note(writers[0].name, action, f"safe: {why}"))
        else:
            copies[alias] = _copy(draft, graph.value(alias))
            why = f"{reason}, so input {number[alias]} is copied before {out.name} is written"
            notes.append(Note(copies[alias].name, "added", why))
    return _copied_first(graph, draft, copies), tuple(notes)


def inputs_in_place(graph: Graph) -> tuple[int, ...]:
    """The places of the inputs that the only output may overwrite while the graph runs as it is.

    An input counts with the layout of the output, and whose elements have all been read, or are read
    by the same step, when the output's in their place are written.
    """
    (out,) = map(graph.value, graph.outputs)
    writers = graph.writers().get(out.id, ())
    matching = [at for at, id in enumerate(graph.inputs) if same_layout(graph.value(id), out)]
    if not writers or not matching:
        return ()
    order = _Order(graph)
    taken = ((at, replace(out, alias_of=graph.inputs[at])) for at in matching)
    return tuple([at for at, one in taken if not order.hazard(one, writers)])


class _Order:
    """Order of nodes, and their reads."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.place = {node.name: at for at, node in enumerate(graph.nodes)}
        self.step = {node.name: step for step in graph.steps() for node in step}
        self.readers = graph.readers()

    def reads_in_step(self, node: Node, root: int) -> bool:
        """Whether the step of a node reads the bytes of a value."""
        graph = self.graph
        return any(graph.root(id).id == root for one in self.step[node.name] for id in one.inputs)

    def hazard(self, out: Value, writers: tuple[Node, ...]) -> str:
        """Why writing `out` would destroy input elements that are still to be read."""
        first, graph = writers[0], self.graph
        step = self.step[first.name]
        written = next(graph.value(id) for id in first.outputs if graph.root(id).id == out.id)
        for node in self.readers.get(out.alias_of, ()):  # type: ignore[arg-type]
            if self.place[node.name] > self.place[first.name]:
                return f"{node.name} reads it after {first.name} wrote"
            if self.step[node.name] is not step:
                continue
            reads = [id for id in node.inputs if graph.root(id).id == out.alias_of]
            matching = all(_have_same_layout(graph.value(id), written) for id in reads)
            if not matching or not _may_write_over(node, reads) or len(writers) > 1:
                return f"{node.name} reads it in another layout"
        return ""


def _have_same_layout(read: Value, written: Value) -> bool:
    """Whether elements [i] of two values, whose roots begin at one address, are the same bytes."""
    return read.offset == written.offset and same_layout(read, written)


def _may_write_over(node: Node, reads: list[int]) -> bool:
    """Whether a node reads each element before it writes the one in its place."""
    if node.domain != "opaque":
        return True
    return all(id in node.overwritable for id in reads)


def _copy(draft: Rewriter, source: Value) -> Value:
    """A value for the row-major copy of an input."""
    return draft.add(
        replace(
            source,
            name=f"{source.name}_copy",
            strides=contiguous_strides(source.shape),
            storage="workspace",
            alias_of=None,
            note="",
        )
    )


def _copied_first(graph: Graph, draft: Rewriter, copies: Mapping[int, Value]) -> Graph:
    """Insert forced copies of inputs before all nodes, and make every reader read the copy."""
    if not copies:
        return graph
    forced = freeze_attrs({"reason": "overlap"})
    nodes = [
        Node(copy.name, "Contiguous", (id,), (copy.id,), forced)
        for id, copy in reversed([*copies.items()])
    ]
    nodes += [_reading(graph, draft, node, copies) for node in graph.nodes]
    return draft.rebuilt(nodes)


def _reading(graph: Graph, draft: Rewriter, node: Node, copies: Mapping[int, Value]) -> Node:
    inputs = []
    for id in node.inputs:
        root = graph.root(id)
        if root.id in copies and not draft.can_load(copies[root.id], id):
            raise AssertionError(f"{root.name}: a view of it has no strides in a dense copy")
        inputs.append(draft.load_of(copies[root.id], id) if root.id in copies else id)
    return node if tuple(inputs) == node.inputs else replace(node, inputs=tuple(inputs))
