"""The verifier of graphs: what makes one well formed.

It asks a graph and makes nothing, so that it needs none of the classes of `ir`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import GraphError
from ..strides import broadcast_strides, extent

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value

NODE_KINDS = ("Contiguous", "BroadcastTo", "Cast", "Compute", "ViewCopy")
STORAGES = ("input", "output", "workspace", "tile", "constant", "part")
DOMAINS = ("point", "row", "opaque")


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


def _refuse(name: str, rule: str) -> None:
    raise GraphError(name, rule)


def _require(holds: bool, name: str, rule: str) -> None:
    if not holds:
        raise GraphError(name, rule)


def _require_own_names(what: str, things: Iterable[Value | Node]) -> None:
    seen = set()
    for thing in things:
        if thing.name in seen:
            _refuse(thing.name, f"every {what} has a unique name")
        seen.add(thing.name)


def _check_values(graph: Graph) -> None:
    """Values by themselves: names, shapes, storage, and that arguments are arguments."""
    ids = {value.id for value in graph.values}
    _require(len(ids) == len(graph.values), "graph", "every value has a unique id")
    _require_own_names("value", graph.values)
    for value in graph.values:
        if value.is_view and value.alias_of not in ids:
            _refuse(value.name, "a view is of a value of the graph")
    for value in graph.values:
        _check_value(graph, value)
    for id in graph.inputs:
        _require(id in ids, f"value {id}", "inputs are values of the graph")
        _require(graph.value(id).storage == "input", graph.value(id).name, "storage is 'input'")
    inputs = frozenset(graph.inputs)
    for value in graph.values:
        if value.storage == "input" and not value.is_view:
            _require(value.id in inputs, value.name, "values of storage 'input' are inputs")
    made = {graph.root(id).id for node in graph.nodes for id in node.outputs if id in ids}
    for id in graph.outputs:
        _require(id in ids, f"value {id}", "outputs are values of the graph")
        value = graph.value(id)
        _require(value.storage == "output", value.name, "storage is 'output'")
        _require(id in made, value.name, "an output is made by a node")
        _require(
            value.alias_of is None or value.alias_of in inputs,
            value.name,
            "an output may be an alias of an input only",
        )


def _check_value(graph: Graph, value: Value) -> None:
    if value.storage not in STORAGES:
        _refuse(value.name, f"storage is one of {STORAGES}")
    if len(value.strides) != len(value.shape):
        _refuse(value.name, "as many strides as dimensions")
    if min(value.shape, default=0) < 0:
        _refuse(value.name, "no negative dimension")
    if value.is_view:
        _check_view(graph, value)
    elif value.storage in ("workspace", "tile"):
        _require(value.is_contiguous, value.name, "intermediates are row-major")
    elif value.storage == "part":
        _refuse(value.name, "a part is a view of an output")
    elif value.offset:
        _refuse(value.name, "only views have an offset")


def _check_view(graph: Graph, value: Value) -> None:
    """A view has the dtype and storage of what owns its bytes, and stays inside it."""
    root = graph.root(value.id)
    _require(value.dtype == root.dtype, value.name, "a view keeps the dtype")
    storage = "part" if root.storage == "output" else root.storage
    _require(value.storage == storage, value.name, "a view keeps the storage class")
    _require(_is_inside(value, root), value.name, f"a view stays inside {root.name}")


def check_views(graph: Graph) -> Graph:
    """Return a graph whose views stay inside what they are of, raise `GraphError` for any other.

    It is the part of `check` on which memory depends, and cheap: graphs are built with it always.

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
        Naming the view.
    """
    for value in graph.values:
        if not value.is_view:
            continue
        _require(min(value.shape, default=0) >= 0, value.name, "no negative dimension")
        root = graph.root(value.id)
        _require(_is_inside(value, root), value.name, f"a view stays inside {root.name}")
    return graph


def _is_inside(view: Value, root: Value) -> bool:
    if not view.size or (view.shape, view.strides, view.offset) == (root.shape, root.strides, 0):
        return True
    if not root.size:
        return False
    low, high = extent(view.shape, view.strides)
    root_low, root_high = extent(root.shape, root.strides)
    return root_low <= low + view.offset and high + view.offset <= root_high


def _check_order(graph: Graph) -> None:
    """Nodes read what is there already, and every value is made once, or in parts."""
    ids = {value.id for value in graph.values}
    arguments = ("input", "constant")
    ready = {v.id for v in graph.values if v.storage in arguments or not (v.size or v.is_view)}
    parts: set[int] = set()
    written_output = False
    _require_own_names("node", graph.nodes)
    for node in graph.nodes:
        if node.kind not in NODE_KINDS:
            _refuse(node.name, f"kind is one of {NODE_KINDS}")
        _require(bool(node.outputs), node.name, "a node has an output")
        for id in node.operands:
            if id not in ids:
                _refuse(node.name, f"value {id} exists")
        for id in node.inputs:
            if graph.root(id).id not in ready:
                _refuse(node.name, f"{graph.value(id).name} is made before use")
        for id in node.outputs:
            written_output |= _check_written(graph, node, id, ready, parts)
        if node.is_forced_copy:
            _require(not written_output, node.name, "forced copies precede all output")


def _check_written(graph: Graph, node: Node, id: int, ready: set[int], parts: set[int]) -> bool:
    """Check that a node's result is not there yet, unless it is another part; whether it is of an output."""
    out, root = graph.value(id), graph.root(id)
    there = root.id in ready and root.size > 0
    again = id in parts or (there and not (out.is_view and root.id in parts))
    _require(not again, node.name, f"{out.name} is made once")
    if out.is_view:
        parts.update((id, root.id))
    ready.add(root.id)
    return root.storage == "output"


def _check_kind(graph: Graph, node: Node) -> None:
    """Operands fit the kind of a node."""
    inputs = [graph.value(id) for id in node.inputs]
    out = graph.value(node.output)
    lines = node.attr("origin", ())
    is_valid = isinstance(lines, tuple) and all(isinstance(one, str) for one in lines)
    _require(is_valid, node.name, "the origin is a list of strings")
    for key in ("call", "kernel", "reason"):
        _require(isinstance(node.attr(key, ""), str), node.name, f"the {key} is a string")
    loop = node.attr("loop", 0)
    _require(type(loop) is int, node.name, "the loop is an integer")
    if node.kind == "Compute":
        _check_domain(graph, node)
        return
    _require(len(inputs) == 1, node.name, f"{node.kind} reads one value")
    _require(len(node.outputs) == 1, node.name, f"{node.kind} writes one value")
    (source,) = inputs
    if node.kind == "BroadcastTo":
        try:
            broadcast_strides(source.shape, source.strides, out.shape)
        except ValueError as error:
            raise GraphError(node.name, str(error)) from None
    elif source.shape != out.shape:
        _refuse(node.name, f"{node.kind} keeps the shape")
    if node.kind != "Cast" and source.dtype != out.dtype:
        _refuse(node.name, f"{node.kind} keeps the dtype")
    if node.kind == "Contiguous" and not out.is_contiguous:
        _refuse(node.name, "the result of Contiguous is row-major")
    if node.kind == "ViewCopy" and out.storage == "workspace" and not out.is_view:
        _refuse(node.name, "ViewCopy writes an output, or a part of something")


def _check_domain(graph: Graph, node: Node) -> None:
    if node.domain not in DOMAINS:
        _refuse(node.name, f"domain is one of {DOMAINS}")
    shapes = [graph.value(id).shape for id in node.operands]
    if node.domain == "point":
        same = all(shape == shapes[-1] for shape in shapes)
        _require(same, node.name, "operands of a pointwise node have the shape of the result")
    if node.domain == "row":
        _require(
            len({*map(len, shapes)}) == 1, node.name, "operands of a row-wise node have one rank"
        )
        axis, rank = node.attr("axis", -1), len(shapes[0])
        within = isinstance(axis, int) and -rank <= axis < 0
        _require(within, node.name, f"axis is from {-rank} to -1")
        for sizes in zip(*shapes, strict=True):
            if not {*sizes} <= {1, max(sizes)}:
                _refuse(
                    node.name, "operands of a row-wise node have in each dimension one size, or 1"
                )


def _check_loops(graph: Graph) -> None:
    """Tile loops are steps of their own, and keep their tiles to themselves."""
    seen = set()
    for step in graph.steps():
        loop = step[0].attr("loop")
        if loop is not None:
            _require(loop not in seen, step[0].name, f"the nodes of tile loop {loop} are together")
            seen.add(loop)
        inside = {id for node in step for id in node.outputs}
        if all(graph.value(id).storage == "tile" for id in inside):
            _refuse(step[0].name, "a tile loop makes more than tiles")
        if loop is not None:
            _check_loop(graph, step)
        for node in step:
            for id in node.inputs:
                if graph.value(id).storage == "tile" and id not in inside:
                    name = graph.value(id).name
                    _refuse(node.name, f"{name} is a tile and is read in the loop that makes it")


def _check_loop(graph: Graph, step: tuple[Node, ...]) -> None:
    found = [graph.iteration(node) for node in step]
    shapes, axes = {shape for shape, _ in found}, {axis for _, axis in found} - {None}
    _require(len(shapes) == 1, step[0].name, "the nodes of a tile loop have one shape")
    _require(len(axes) <= 1, step[0].name, "the row-wise nodes of a tile loop have one axis")
    for node in step:
        if node.domain == "opaque" or node.is_forced_copy:
            _refuse(node.name, "opaque nodes and forced copies have no tile loop")
