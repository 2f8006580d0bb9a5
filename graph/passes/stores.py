"""Letting the nodes that make a result write it where it belongs, without a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ..ir import Graph, Node, Value
from ..rewriter import Rewriter, part_of
from ..strides import reshaped_strides, restrided, same_layout

Allowed = Callable[[Value, Node, Node], bool]  # what is written, by whom, and the copy


def drop_view_copies(
    graph: Graph, nodes: list[Node], allowed: Allowed
) -> tuple[Graph, list[Node], list[tuple[Node, Node]]]:
    """Make producers write what their results are copied to.

    Parameters
    ----------
    graph : Graph
        That has the values.
    nodes : list of Node
        In the order in which they run.
    allowed : callable
        Tells of the value that a copy writes, of a producer, and of the copy, whether the producer
        may write it.

    Returns
    -------
    graph : Graph
        With values for parts that are now written.
    nodes : list of Node
    dropped : list of (Node, Node)
        Copies, and the producer of each.
    """
    copies = [node for node in nodes if node.kind == "ViewCopy"]
    if not copies:
        return graph, nodes, []
    stores = _Stores(graph, nodes, allowed)
    for copy in copies:
        stores.drop(copy)
    return stores.draft.graph(), list(stores.kept.values()), stores.dropped


def last_forced_copy(nodes: Iterable[Node]) -> int:
    """The place of the last forced copy, -1 without one: no output is written before it."""
    return max((at for at, node in enumerate(nodes) if node.is_forced_copy), default=-1)


def read_outputs(graph: Graph, draft: Rewriter, groups: list[list[Node]]) -> list[list[Node]]:
    """Let steps read from an output what a loop before them leaves there, so that it needs no other place.

    Parameters
    ----------
    graph : Graph
        That has the values.
    draft : Rewriter
        Of it, which takes the views that are read instead.
    groups : list of list of Node
        The nodes of each step.

    Returns
    -------
    list of list of Node
        The same nodes, with other operands.
    """
    writers = graph.writers()
    place_of = {node.name: at for at, group in enumerate(groups) for node in group}
    moved: dict[int, tuple[int, Value]] = {}  # by what owns the bytes: the step that makes them
    for node in (node for group in groups for node in group if node.kind == "ViewCopy"):
        source, out = graph.value(node.inputs[0]), graph.value(node.output)
        made = [place_of[one.name] for one in writers.get(source.id, ())]
        if made == [place_of[node.name]] and _is_copy_of(graph, source, out, writers):
            moved.setdefault(source.id, (made[0], out))
    if not moved:
        return groups

    def elsewhere(id: int, at: int) -> int:
        step, out = moved.get(graph.root(id).id, (at, None))
        if step == at or out is None or not draft.can_load(out, id):
            return id
        return draft.load_of(out, id)

    return [
        [_with_inputs(node, tuple([elsewhere(id, at) for id in node.inputs])) for node in group]
        for at, group in enumerate(groups)
    ]


def _is_copy_of(
    graph: Graph, source: Value, out: Value, writers: Mapping[int, Sequence[Node]]
) -> bool:
    """Whether an output that overlaps no input has nothing but the elements of a value, as they lie."""
    if source.storage != "workspace" or source.is_view or source.dtype != out.dtype:
        return False
    if out.storage != "output" or out.is_view or out.alias_of is not None:
        return False
    return same_layout(source, out) and len(writers[out.id]) == 1


def _with_inputs(node: Node, inputs: tuple[int, ...]) -> Node:
    return node if inputs == node.inputs else replace(node, inputs=inputs)


def _are_rows(*values: Value) -> bool:
    """Whether values have the same elements in row-major order, in whatever shapes."""
    return all(one.is_contiguous and one.size == values[0].size for one in values)


class _Stores:
    """Copies on their way out, and what looking at each of them needs."""

    def __init__(self, graph: Graph, nodes: list[Node], allowed: Allowed):
        self.graph = graph
        self.draft = Rewriter(graph)
        self.allowed = allowed
        self.kept = dict(enumerate(nodes))
        self.place_of = {node.name: at for at, node in enumerate(nodes)}
        self.readers = graph.readers(nodes)
        self.forced = last_forced_copy(nodes)
        self.dropped: list[tuple[Node, Node]] = []
        self.writers: dict[int, list[int]] = {}
        for at, node in self.kept.items():
            for id in node.outputs:
                self.writers.setdefault(graph.root(id).id, []).append(at)

    def drop(self, copy: Node) -> None:
        """Drop a copy, if those that make what it copies can write its output."""
        copy = self.kept[self.place_of[copy.name]]  # another one's output may be what it reads now
        source, out = self.draft.value(copy.inputs[0]), self.graph.value(copy.output)
        root = self.draft.root(source.id)
        places = self.writers.get(root.id, [])
        if root.storage != "workspace" or not places or root.dtype != out.dtype:
            return
        writers = [self.kept[at] for at in places]
        others = [
            one
            for one in self.readers.get(root.id, ())
            if one.name != copy.name and self.place_of[one.name] in self.kept
        ]
        if others and not self.reads_follow(root, source, out, writers):
            return
        early = self.graph.root(out.id).storage == "output" and min(places) <= self.forced
        if early or not all(self.allowed(out, writer, copy) for writer in writers):
            return
        moved = self.targets(root, source, out, writers)
        if moved is None:
            return
        for at, writer in zip(places, writers, strict=True):
            outputs = tuple([moved.get(id, id) for id in writer.outputs])
            self.kept[at] = replace(writer, outputs=outputs)
        self.writers[self.graph.root(out.id).id].remove(self.place_of[copy.name])
        self.writers[self.graph.root(out.id).id] += places
        del self.kept[self.place_of[copy.name]]
        for reader in others:
            at = self.place_of[reader.name]
            self.kept[at] = self.reading(self.kept[at], root, out)
        self.dropped.append((copy, writers[0]))

    def reads_follow(self, root: Value, source: Value, out: Value, writers: Sequence[Node]) -> bool:
        """Whether nodes may read a result from where it is copied to: of a node that writes over the bytes
        there, which would be copied twice else, and of an opaque one, whose result is copied in a step of
        its own."""
        if out.is_view or len(writers) > 1 or source.offset:
            return False
        (writer,) = writers
        if out.alias_of is None:
            alone = len(self.writers[self.graph.root(out.id).id]) == 1
            same = same_layout(source, root) and same_layout(root, out)
            return writer.domain == "opaque" and alone and (same or _are_rows(source, root, out))
        if not same_layout(source, root):
            return False
        roots = {self.graph.root(id).id for id in writer.overwritable}
        return out.alias_of in roots and same_layout(root, out)

    def reading(self, node: Node, root: Value, out: Value) -> Node:
        """A node that reads an output instead of a value whose elements have the same layout, be it in another shape."""
        found = []
        for id in node.inputs:
            value = self.draft.value(id)
            if self.draft.root(id).id != root.id:
                found.append(id)
            elif same_layout(root, out):
                found.append(self.draft.load_of(out, id))
            else:
                name, storage = f"{out.name}_load", part_of(out)
                view = replace(value, name=name, storage=storage, alias_of=out.id)
                found.append(self.draft.add(view).id)
        return replace(node, inputs=tuple(found))

    def targets(
        self, root: Value, source: Value, out: Value, writers: Sequence[Node]
    ) -> dict[int, int] | None:
        """Values to write instead of `root` or parts of it, by id; None where there is no such."""
        if source.id == root.id:
            shape, strides = out.shape, out.strides
        else:
            whole = source.offset == 0 and source.size == root.size and source.is_contiguous
            found = reshaped_strides(out.shape, out.strides, root.shape) if whole else None
            if found is None:
                return None
            shape, strides = root.shape, found
        moved: dict[int, int] = {}
        for writer in writers:
            for id in writer.outputs:
                # Another result of the same node may be a part that was made for it just now.
                if self.draft.root(id).id != root.id:
                    continue
                value = self.draft.value(id)
                target = self.target(value, root, shape, strides, out)
                if target is None:
                    return None
                moved[id] = target
        return moved

    def target(
        self,
        value: Value,
        root: Value,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        out: Value,
    ) -> int | None:
        """The part of `out` that stands for `value`, which is `root` or a part of it."""
        if value.id == root.id and shape == out.shape:
            return out.id
        found: tuple[tuple[int, ...], int] | None = (strides, 0)
        if value.id != root.id:
            found = restrided(root.shape, value.shape, value.strides, value.offset, strides)
        if found is None:
            return None
        owner = self.graph.root(out.id)
        return self.draft.add(
            replace(
                value,
                name=f"{out.name}_part",
                strides=found[0],
                storage=part_of(owner),
                alias_of=owner.id,
                offset=out.offset + found[1],
            )
        ).id
