"""Drafts: graphs in the making, while a pass changes their values and nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .ir import Graph, Node, Value, root_of
from .names import Names
from .strides import broadcast_strides


class Draft:
    """The values of a graph while a pass adds and replaces some; `graph` makes a graph of them.

    Were a graph made for each change, passes would take a time that grows with its size squared.
    """

    def __init__(self, graph: Graph):
        self._graph = graph
        self._values = {value.id: value for value in graph.values}
        self._changed = False
        self._names: Names | None = None  # found when first something is added, as the id is
        self._next_id = 0

    def value(self, id: int) -> Value:
        return self._values[id]

    def root(self, id: int) -> Value:
        return root_of(self._values, id)

    def put(self, value: Value) -> Value:
        """Take `value` in place of the one that has its id."""
        self._values[value.id] = value
        self._changed = True
        return value

    def add(self, value: Value) -> Value:
        """Take `value` under an id of its own, and a name like its own."""
        if self._names is None:
            taken = [value.name for value in self._graph.values]
            self._names = Names([*taken, *(node.name for node in self._graph.nodes)])
            self._next_id = max(self._values) + 1
        new = replace(value, id=self._next_id, name=self._names.fresh(value.name))
        self._next_id += 1
        return self.put(new)

    def view(self, source: Value, like: Value) -> Value:
        """`source` read with the shape of `like`, under the id and name of `like`."""
        return self.put(self._view(source, like))

    def load_of(self, source: Value, id: int) -> int:
        """The id to read where `id` was read and `source` has its elements: itself, or a view."""
        view = self.value(id)
        if view.shape == source.shape:
            return source.id
        name = f"{self.root(source.id).name}_load"
        return self.add(replace(self._view(source, view), name=name)).id

    def graph(self) -> Graph:
        """The graph with these values and the nodes that it had; what is unused is still there."""
        if not self._changed:
            return self._graph
        return replace(self._graph, values=tuple(self._values.values()))

    def _view(self, source: Value, like: Value) -> Value:
        root = self.root(source.id)
        return replace(
            like,
            strides=broadcast_strides(source.shape, source.strides, like.shape),
            dtype=source.dtype,
            storage=root.storage,
            alias_of=root.id,
        )


def rebuilt(graph: Graph, nodes: Iterable[Node]) -> Graph:
    """The graph with these nodes and only the values that they need."""
    nodes = tuple(nodes)
    if nodes == graph.nodes:
        return graph
    used = {id for node in nodes for id in (*node.inputs, node.output)}
    used |= {*graph.inputs, *graph.outputs}
    used |= {graph.root(id).id for id in used}
    values = (value for value in graph.values if value.id in used)
    # What a view was of may be gone; the owner of its bytes is not.
    values = (replace(v, alias_of=graph.root(v.id).id) if v.is_view else v for v in values)
    return replace(graph, nodes=nodes, values=tuple(values))
