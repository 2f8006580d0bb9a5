"""The rules that make a graph well formed.

They ask a graph and make nothing, so that they need none of the classes of `ir`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import GraphError
from ..strides import broadcast_strides, extent

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value

NODE_KINDS = ("Contiguous", "BroadcastTo", "Cast", "Compute", "ViewCopy")
STORAGES = ("input", "output", "workspace", "tile", "constant")


def check(graph: Graph) -> Graph:
    """Return a graph that is well formed, raise `GraphError` for any other.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    Graph
        The same one.

    Raises
    ------
    GraphError
        Naming the node or value, and the rule that it breaks.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from aclnn.graph import DType, GraphBuilder
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (4,), f32), b.output("out", (4,), f32)
    >>> b.view_copy(b.compute("relu", [x], (4,), f32), out)
    >>> graph = check(b.build())
    >>> try:
    ...     check(replace(graph, nodes=graph.nodes[::-1]))
    ... except GraphError as error:
    ...     print(error.node, "-", error.rule)
    out_view_copy - relu is made before use
    """
    _check_values(graph)
    _check_order(graph)
    for node in graph.nodes:
        _check_kind(graph, node)
    _check_loops(graph)
    return graph


def _require(holds: bool, name: str, rule: str) -> None:
    if not holds:
        raise GraphError(name, rule)


def _require_own_names(what: str, things: Iterable[Value | Node]) -> None:
    seen = set()
    for thing in things:
        _require(thing.name not in seen, thing.name, f"every {what} has a name of its own")
        seen.add(thing.name)


def _check_values(graph: Graph) -> None:
    """Values by themselves: names, shapes, storage, and that arguments are arguments."""
    ids = {value.id for value in graph.values}
    _require(len(ids) == len(graph.values), "graph", "every value has an id of its own")
    _require_own_names("value", graph.values)
    made = {node.output for node in graph.nodes}
    for value in graph.values:
        known = not value.is_view or value.alias_of in ids
        _require(known, value.name, "a view is of a value of the graph")
    for value in graph.values:
        _require(value.storage in STORAGES, value.name, f"storage is one of {STORAGES}")
        _require(
            len(value.strides) == len(value.shape), value.name, "as many strides as dimensions"
        )
        _require(all(size >= 0 for size in value.shape), value.name, "no negative dimension")
        if value.is_view:
            _check_view(graph, value, made)
        elif value.storage in ("workspace", "tile"):
            _require(value.is_contiguous, value.name, "intermediates are row-major")
    for id in graph.inputs:
        _require(id in ids, f"value {id}", "inputs are values of the graph")
        _require(graph.value(id).storage == "input", graph.value(id).name, "storage is 'input'")
    for id in graph.outputs:
        _require(id in ids, f"value {id}", "outputs are values of the graph")
        value = graph.value(id)
        _require(value.storage == "output", value.name, "storage is 'output'")
        _require(id in made, value.name, "an output is made by a node")
        _require(
            value.alias_of is None or value.alias_of in graph.inputs,
            value.name,
            "an output may be an alias of an input only",
        )


def _check_view(graph: Graph, value: Value, made: set[int]) -> None:
    """A view has the dtype and storage of what owns its bytes, and stays inside it."""
    _require(value.id not in made, value.name, "a view is made by no node")
    root = graph.root(value.id)
    _require(value.dtype == root.dtype, value.name, "a view keeps the dtype")
    _require(value.storage == root.storage, value.name, "a view keeps the storage class")
    if value.size:
        low, high = extent(value.shape, value.strides)
        root_low, root_high = extent(root.shape, root.strides)
        inside = root_low <= low and high <= root_high
        _require(inside, value.name, f"a view stays inside {root.name}")


def _check_order(graph: Graph) -> None:
    """Nodes read what is there already, and every value is made once."""
    ids = {value.id for value in graph.values}
    ready = {v.id for v in graph.values if v.storage in ("input", "constant")}
    written_output = False
    _require_own_names("node", graph.nodes)
    for node in graph.nodes:
        _require(node.kind in NODE_KINDS, node.name, f"kind is one of {NODE_KINDS}")
        for id in (*node.inputs, node.output):
            _require(id in ids, node.name, f"value {id} exists")
        for id in node.inputs:
            value = graph.value(id)
            _require(graph.root(id).id in ready, node.name, f"{value.name} is made before use")
        out = graph.value(node.output)
        _require(out.id not in ready, node.name, f"{out.name} is made once")
        _require(not out.is_view, node.name, f"{out.name} is not a view")
        if node.is_forced_copy:
            _require(not written_output, node.name, "forced copies precede all output")
        ready.add(out.id)
        written_output |= out.storage == "output"


def _check_kind(graph: Graph, node: Node) -> None:
    """Operands fit the kind of a node."""
    inputs = [graph.value(id) for id in node.inputs]
    out = graph.value(node.output)
    if node.kind == "Compute":
        if node.is_elementwise:
            same = all(value.shape == out.shape for value in inputs)
            _require(same, node.name, "elementwise operands have the shape of the result")
        return
    _require(len(inputs) == 1, node.name, f"{node.kind} reads one value")
    (source,) = inputs
    if node.kind == "BroadcastTo":
        try:
            broadcast_strides(source.shape, source.strides, out.shape)
        except ValueError as error:
            raise GraphError(node.name, str(error)) from None
    else:
        _require(source.shape == out.shape, node.name, f"{node.kind} keeps the shape")
    if node.kind != "Cast":
        _require(source.dtype == out.dtype, node.name, f"{node.kind} keeps the dtype")
    if node.kind == "Contiguous":
        _require(out.is_contiguous, node.name, "the result of Contiguous is row-major")
    if node.kind == "ViewCopy":
        _require(out.storage == "output", node.name, "ViewCopy writes an output")


def _check_loops(graph: Graph) -> None:
    """Tile loops are steps of their own, and keep their tiles to themselves."""
    seen = set()
    for step in graph.steps():
        loop = step[0].attr("loop")
        if loop is not None:
            _require(loop not in seen, step[0].name, f"the nodes of tile loop {loop} are together")
            seen.add(loop)
        shapes = {graph.value(node.output).shape for node in step}
        _require(len(shapes) == 1, step[0].name, "the nodes of a tile loop have one shape")
        inside = {node.output for node in step}
        kept = any(graph.value(id).storage != "tile" for id in inside)
        _require(kept, step[0].name, "a tile loop makes more than tiles")
        for node in step:
            _require(
                loop is None or (node.is_elementwise and not node.is_forced_copy),
                node.name,
                "only elementwise nodes are fused",
            )
            for id in node.inputs:
                value = graph.value(id)
                _require(
                    value.storage != "tile" or id in inside,
                    node.name,
                    f"{value.name} is a tile and is read in the loop that makes it",
                )
