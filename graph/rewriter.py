"""The rewriter: a graph in the making, while a pass changes its values and nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .ir import Graph, Node, Value, root_of
from .names import Names
from .strides import broadcast_strides, restrided


class Rewriter:
    """The values of a graph while a pass adds and replaces some; `graph` makes a graph of them.

    Were a graph made for each change, passes would take a time that grows with its size squared.
    """

    def __init__(self, graph: Graph):
        self._graph = graph
        self._values = {value.id: value for value in graph.values}
        self._changed = False
        self._names: Names | None = None  # found when first something is added, as the id is
        self._next_id = 0
        self._views: dict[int, list[int]] | None = None  # by the value that owns the bytes

    def value(self, id: int) -> Value:
        return self._values[id]

    def root(self, id: int) -> Value:
        return root_of(self._values, id)

    def views_of(self, root: int) -> tuple[Value, ...]:
        """The views of the bytes that a value of the graph owns, as they were at first."""
        if self._views is None:
            self._views = {}
            for value in self._graph.values:
                if value.is_view:
                    self._views.setdefault(self._graph.root(value.id).id, []).append(value.id)
        return tuple([self._values[id] for id in self._views.get(root, ())])

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
        """The id to read where `id` was read and `source` has the elements of its root: itself, or
        a view."""
        view = self.value(id)
        if view.shape == source.shape and _is_whole(self.root(id), view):
            return source.id
        name = f"{self.root(source.id).name}_load"
        return self.add(replace(self._with_view(source, view), name=name)).id

    def can_load(self, source: Value, id: int) -> bool:
        """Whether `load_of` can make such a view."""
        view = self.value(id)
        return not view.is_view or self._same_view(source, view) is not None

    def move_views(self, old: Value, source: Value) -> bool:
        """Make the views of `old`, which is row-major and owns its bytes, views of `source`, which
        has the same elements; False, with nothing changed, where one of them cannot be."""
        moved = []
        for view in self.views_of(old.id):
            if self.root(view.id).id != old.id:
                continue
            found = restrided(old.shape, view.shape, view.strides, view.offset, source.strides)
            if found is None:
                return False
            moved.append((view, found))
        root = self.root(source.id)
        for view, (strides, offset) in moved:
            self.put(
                replace(
                    view,
                    strides=strides,
                    offset=source.offset + offset,
                    dtype=source.dtype,
                    storage=part_of(root),
                    alias_of=root.id,
                )
            )
        return True

    def graph(self) -> Graph:
        """The graph with these values and the nodes that it had; what is unused is still there."""
        if not self._changed:
            return self._graph
        graph = self._graph
        return Graph(graph.nodes, tuple(self._values.values()), graph.inputs, graph.outputs)

    def rebuilt(self, nodes: Iterable[Node]) -> Graph:
        """The graph with these nodes and only the values that they need."""
        return rebuilt(self.graph(), nodes)

    def _same_view(self, source: Value, view: Value) -> tuple[tuple[int, ...], int] | None:
        """Strides and offset of `view`, which is one of a root with the elements of `source`."""
        root = self.root(view.id)
        if root.shape == source.shape:
            offset = view.offset - root.offset
            found = restrided(
                root.shape, view.shape, view.strides, offset, source.strides, root.strides
            )
            if found is not None or root.is_contiguous:
                return found
        if view.offset == root.offset:
            try:
                return broadcast_strides(source.shape, source.strides, view.shape), 0
            except ValueError:
                return None
        return None

    def _with_view(self, source: Value, view: Value) -> Value:
        found = self._same_view(source, view) if view.is_view else None
        if found is None:
            return self._view(source, view)
        strides, offset = found
        root = self.root(source.id)
        return replace(
            view,
            strides=strides,
            dtype=source.dtype,
            storage=part_of(root),
            alias_of=root.id,
            offset=source.offset + offset,
        )

    def _view(self, source: Value, like: Value) -> Value:
        root = self.root(source.id)
        return replace(
            like,
            strides=broadcast_strides(source.shape, source.strides, like.shape),
            dtype=source.dtype,
            storage=part_of(root),
            alias_of=root.id,
            offset=source.offset,
        )


def _is_whole(root: Value, view: Value) -> bool:
    """Whether a view shows all elements of its root as they lie."""
    same = view.shape == root.shape and view.strides == root.strides
    return same and view.offset == root.offset


def part_of(root: Value) -> str:
    """The storage class of a view of `root`."""
    return "part" if root.storage == "output" else root.storage


def rebuilt(graph: Graph, nodes: Iterable[Node]) -> Graph:
    """The graph with these nodes and only the values that they need."""
    nodes = tuple(nodes)
    if nodes == graph.nodes:
        return graph
    used = {id for node in nodes for id in node.inputs + node.outputs}
    used.update(graph.inputs)
    used.update(graph.outputs)
    used |= {graph.root(id).id for id in used}
    values = []
    for value in graph.values:
        if value.id not in used:
            continue
        if value.is_view and (root := graph.root(value.id).id) != value.alias_of:
            # What a view was of may be gone; the owner of its bytes is not.
            value = replace(value, alias_of=root)
        values.append(value)
    return Graph(nodes, tuple(values), graph.inputs, graph.outputs)
