"""What a graph is: immutable values and nodes, and the rules that make them well formed.

A value is a description of memory (shape, strides, dtype, and who owns the bytes); a node reads
values and writes one.  Nothing here computes anything and nothing can change: passes make new
graphs.  Strides count elements, not bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

KINDS = ("Contiguous", "BroadcastTo", "Cast", "Compute", "ViewCopy")
STORAGES = ("input", "output", "workspace", "tile", "constant")


class GraphError(ValueError):
    """A graph that breaks a rule.

    Attributes
    ----------
    node : str
        Name of the offending node or value.
    rule : str
        The rule it breaks, in words.

    Examples
    --------
    >>> GraphError("relu", "is made before use")
    GraphError('relu: is made before use')
    """

    def __init__(self, node: str, rule: str):
        super().__init__(f"{node}: {rule}")
        self.node = node
        self.rule = rule


@dataclass(frozen=True, slots=True)
class DType:
    """All that planning needs to know of a data type: what it is called, how big an item is.

    >>> DType("bfloat16", 2)
    DType(name='bfloat16', itemsize=2)
    """

    name: str
    itemsize: int

    def __str__(self) -> str:
        return self.name


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements.

    Parameters
    ----------
    shape : tuple of int

    Returns
    -------
    tuple of int
        One stride for each dimension, the last one 1.

    Examples
    --------
    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Tell whether elements lie in row-major order without gaps.

    Parameters
    ----------
    shape, strides : tuple of int
        In elements.  The strides of dimensions of size 1 are ignored.

    Returns
    -------
    bool
        True for no elements, and for a single one.

    Examples
    --------
    >>> is_contiguous((1, 3), (99, 1)), is_contiguous((2, 3), (1, 2))
    (True, False)
    """
    if math.prod(shape) <= 1:
        return True
    return all(
        size == 1 or stride == dense
        for size, stride, dense in zip(shape, strides, contiguous_strides(shape), strict=True)
    )


def broadcast_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]
) -> tuple[int, ...]:
    """Strides that read a view of `shape` as if it had the shape `target`, by NumPy's rule.

    Parameters
    ----------
    shape, strides : tuple of int
        Of the view, in elements.
    target : tuple of int
        The shape to read it with.

    Returns
    -------
    tuple of int
        One stride for each dimension of `target`, 0 along those that are repeated.

    Raises
    ------
    ValueError
        When `shape` does not broadcast to `target`.

    Examples
    --------
    >>> broadcast_strides((3, 1), (5, 1), (2, 3, 4))
    (0, 5, 0)
    """
    missing = len(target) - len(shape)
    if missing < 0 or any(a not in (b, 1) for a, b in zip(shape, target[missing:], strict=True)):
        raise ValueError(f"{shape} does not broadcast to {target}")
    kept = (
        stride if size == wanted else 0
        for size, stride, wanted in zip(shape, strides, target[missing:], strict=True)
    )
    return (0,) * missing + tuple(kept)


@dataclass(frozen=True, slots=True)
class Value:
    """A piece of memory as a node sees it.

    Attributes
    ----------
    id : int
        Unique in its graph.
    name : str
        For people; unique in its graph as well.
    shape, strides : tuple of int
        Strides are in elements and may be zero or negative.
    dtype : DType
    storage : {'input', 'output', 'workspace', 'tile', 'constant'}
        Who owns the bytes.  'tile': a cache-sized piece per thread, inside one tile loop.
    alias_of : int or None
        For an output: the input whose first element has the same address.  For any other value:
        the value whose bytes this is a view of; such a value is made by no node.
    note : str
        Anything worth showing.

    Examples
    --------
    >>> value = Value(0, "x", (2, 3), (1, 2), DType("float32", 4), "input")
    >>> str(value), value.nbytes, value.is_contiguous
    ('float32[2,3:strides=1,2]', 24, False)
    """

    id: int
    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    storage: str
    alias_of: int | None = None
    note: str = ""

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, without gaps: what a dense copy takes."""
        return self.size * self.dtype.itemsize

    @property
    def distinct_bytes(self) -> int:
        """Bytes of the elements without those that a stride of 0 repeats."""
        sizes = [n for n, s in zip(self.shape, self.strides, strict=True) if s != 0]
        return math.prod(sizes) * self.dtype.itemsize if self.size else 0

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return is_contiguous(self.shape, self.strides)

    @property
    def is_view(self) -> bool:
        """Whether this names bytes of another value instead of having its own."""
        return self.alias_of is not None and self.storage != "output"

    def __str__(self) -> str:
        dims = ",".join(map(str, self.shape))
        tail = "" if self.is_contiguous else ":strides=" + ",".join(map(str, self.strides))
        return f"{self.dtype.name}[{dims}{tail}]"


def _freeze(value: Any) -> Any:
    """Make an attribute hashable, and NaN the one NaN, so that equal graphs compare equal."""
    if isinstance(value, float) and math.isnan(value):
        return math.nan
    if isinstance(value, (list, tuple)):
        return tuple(map(_freeze, value))
    return value


def freeze_attrs(attrs: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> tuple:
    """Turn a mapping into the sorted tuple of pairs that nodes keep.

    >>> freeze_attrs({"slope": 0.5, "axes": [1, 2]})
    (('axes', (1, 2)), ('slope', 0.5))
    """
    items = attrs.items() if isinstance(attrs, Mapping) else attrs
    return tuple(sorted((key, _freeze(value)) for key, value in items))


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: reads `inputs`, writes `output`, both by value id.

    `attrs` is a sorted tuple of pairs.  Those that this package gives a meaning to:

    ========== ============================================================================
    kernel     (Compute) what computes it; opaque here
    elementwise (Compute) False: element [i] of the result may need more than elements [i]
    any_dtype  (Compute) False: inputs must have the dtype they were cast to, and so the result
    result_dtype (Compute) results are rounded to it before they become of the output's
    reason     (Contiguous) 'overlap': a forced copy, which no pass may remove or fuse
    loop       the tile loop that the node was fused into
    ========== ============================================================================

    >>> node = Node("relu", "Compute", inputs=(0,), output=1, attrs=(("kernel", "relu"),))
    >>> node.attr("kernel"), node.is_elementwise
    ('relu', True)
    """

    name: str
    kind: str
    inputs: tuple[int, ...]
    output: int
    attrs: tuple[tuple[str, Any], ...] = ()

    def attr(self, key: str, default: Any = None) -> Any:
        """The value of an attribute.

        Parameters
        ----------
        key : str
        default : object
            What is given where the node has no such attribute.

        Returns
        -------
        object

        Examples
        --------
        >>> Node("f", "Compute", (0,), 1).attr("kernel", "none")
        'none'
        """
        return next((value for name, value in self.attrs if name == key), default)

    def with_attrs(self, **attrs: Any) -> Node:
        """The same node with attributes added or replaced.

        Parameters
        ----------
        **attrs
            Lists become tuples.

        Returns
        -------
        Node

        Examples
        --------
        >>> Node("f", "Compute", (0,), 1).with_attrs(slope=0.5).attrs
        (('slope', 0.5),)
        """
        return replace(self, attrs=freeze_attrs(dict(self.attrs) | attrs))

    @property
    def is_forced_copy(self) -> bool:
        """A copy of an input that shares memory with an output."""
        return self.kind == "Contiguous" and self.attr("reason") == "overlap"

    @property
    def is_elementwise(self) -> bool:
        """Whether element [i] of the result needs only elements [i] of the operands."""
        return self.kind != "Compute" or bool(self.attr("elementwise", True))


def root_of(values: Mapping[int, Value], id: int) -> Value:
    """The one of `values` that owns the bytes of value `id`."""
    value = values[id]
    for _ in values:
        if not value.is_view:
            return value
        value = values[value.alias_of]  # type: ignore[index]
    raise GraphError(values[id].name, "views of one another are views of nothing")


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which they can run, and the values between them.

    Graphs compare and hash by content.  Make them with `GraphBuilder`.

    >>> from aclnn.graph import GraphBuilder
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (4,), f32), b.output("out", (4,), f32)
    >>> b.view_copy(b.compute("relu", [x], (4,), f32), out)
    >>> graph: Graph = b.build()
    >>> [node.name for node in graph.nodes], str(graph.value(x))
    (['relu', 'out_view_copy'], 'float32[4]')
    """

    nodes: tuple[Node, ...]
    values: tuple[Value, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    _by_id: dict[int, Value] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {value.id: value for value in self.values})

    def __reduce__(self):
        return Graph, (self.nodes, self.values, self.inputs, self.outputs)

    def value(self, id: int) -> Value:
        """The value with this id.

        Parameters
        ----------
        id : int

        Returns
        -------
        Value

        Raises
        ------
        KeyError
            When the graph has no such value.
        """
        return self._by_id[id]

    def named(self, name: str) -> Value:
        """The value with this name.

        Parameters
        ----------
        name : str

        Returns
        -------
        Value

        Raises
        ------
        KeyError
            When the graph has no such value.
        """
        for value in self.values:
            if value.name == name:
                return value
        raise KeyError(name)

    def root(self, id: int) -> Value:
        """The value that owns the bytes of a value: itself, unless it is a view.

        Parameters
        ----------
        id : int

        Returns
        -------
        Value

        Raises
        ------
        KeyError
            When the graph has no value `id`.
        GraphError
            When views lead in a circle, which no graph does that `check` accepts.
        """
        return root_of(self._by_id, id)

    def producer(self, id: int) -> Node | None:
        """The node that writes a value.

        Parameters
        ----------
        id : int

        Returns
        -------
        Node or None
            None for inputs, constants and views, which no node writes.
        """
        return next((node for node in self.nodes if node.output == id), None)

    def consumers(self, id: int) -> tuple[Node, ...]:
        """The nodes that read a value itself, not only a view of it.

        Parameters
        ----------
        id : int

        Returns
        -------
        tuple of Node
            In the order in which they run.
        """
        return tuple(node for node in self.nodes if id in node.inputs)

    def memory_bytes(self, id: int) -> int:
        """Bytes moved when a value is read or written once; none for what lives in tiles.

        Parameters
        ----------
        id : int

        Returns
        -------
        int
            Elements that a stride of 0 repeats count once.

        Raises
        ------
        KeyError
            When the graph has no value `id`.
        """
        value = self._by_id[id]
        return 0 if value.storage == "tile" else value.distinct_bytes

    def bytes_read(self, node: Node) -> int:
        """Bytes that a node reads from memory, every element of an operand counted once.

        Parameters
        ----------
        node : Node
            Of this graph.

        Returns
        -------
        int
        """
        return sum(map(self.memory_bytes, dict.fromkeys(node.inputs)))

    def bytes_written(self, node: Node) -> int:
        """Bytes that a node writes to memory.

        Parameters
        ----------
        node : Node
            Of this graph.

        Returns
        -------
        int
        """
        return self.memory_bytes(node.output)

    def steps(self) -> tuple[tuple[Node, ...], ...]:
        """Nodes grouped into steps: neighbours in the same tile loop run together.

        Returns
        -------
        tuple of tuple of Node
        """
        found: list[list[Node]] = []
        for node in self.nodes:
            loop = node.attr("loop")
            if found and loop is not None and found[-1][0].attr("loop") == loop:
                found[-1].append(node)
            else:
                found.append([node])
        return tuple(map(tuple, found))

    # Views: each is a function in `aclnn.graph.views`, loaded when first asked for.

    def to_text(self, plan: Any = None) -> str:
        """An aligned table of the nodes and their operands; with offsets where a plan is given.

        Parameters
        ----------
        plan : WorkspacePlan, optional
            Of this graph: the table then has the offsets in the workspace.

        Returns
        -------
        str
        """
        from .views.text import graph_to_text

        return graph_to_text(self, plan)

    def to_rich(self, plan: Any = None) -> Any:
        """The table of `to_text` for `rich.print`.

        Parameters
        ----------
        plan : WorkspacePlan, optional
            Of this graph: the table then has the offsets in the workspace.

        Returns
        -------
        rich.console.Group

        Raises
        ------
        ModuleNotFoundError
            When the package rich is not installed.
        """
        from .views import tables, text

        return tables.to_rich(text.graph_sheet(self, plan))

    def to_dot(self, plan: Any = None) -> str:
        """Graphviz source; with offsets where a plan is given.

        Parameters
        ----------
        plan : WorkspacePlan, optional
            Of this graph: nodes then have the offsets of their results in the workspace.

        Returns
        -------
        str
        """
        from .views.dot import graph_to_dot

        return graph_to_dot(self, plan)

    def to_svg(self, plan: Any = None) -> str:
        """A self-contained picture, without scripts; with offsets where a plan is given.

        Parameters
        ----------
        plan : WorkspacePlan, optional
            Of this graph: the picture then says where values lie in the workspace.

        Returns
        -------
        str
        """
        from .views.svg import graph_to_svg

        return graph_to_svg(self, plan)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def to_json(self, indent: int | None = None) -> str:
        """A document of the schema `aclnn.graph.views.json.GRAPH_SCHEMA`.

        Parameters
        ----------
        indent : int, optional
            Spaces for each level; None for a single line.

        Returns
        -------
        str
        """
        from .views.json import graph_to_json

        return graph_to_json(self, indent)

    def to_onnx(self, plan: Any = None) -> bytes:
        """An ONNX model of a domain of its own, with the facts of a plan where one is given.

        Parameters
        ----------
        plan : WorkspacePlan, optional
            Of this graph: its facts then are attributes of model and nodes.

        Returns
        -------
        bytes

        Raises
        ------
        ModuleNotFoundError
            When the package onnx is not installed.
        """
        from .views.onnx import graph_to_onnx

        return graph_to_onnx(self, plan)

    @staticmethod
    def from_json(text: str) -> Graph:
        """The graph that `to_json` wrote.

        Parameters
        ----------
        text : str

        Returns
        -------
        Graph
            Equal to the one that was written, and checked.

        Raises
        ------
        ValueError
            Naming the field that does not fit; a `GraphError` when the graph is not well formed.
        """
        from .views.json import graph_from_json

        return graph_from_json(text)

    def __str__(self) -> str:
        return self.to_text()


# --- Rules ------------------------------------------------------------------------------------


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
    >>> from aclnn.graph import GraphBuilder
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
    _require(len(graph._by_id) == len(graph.values), "graph", "every value has an id of its own")
    _require_own_names("value", graph.values)
    made = {node.output for node in graph.nodes}
    for value in graph.values:
        known = not value.is_view or value.alias_of in graph._by_id
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
        _require(id in graph._by_id, f"value {id}", "inputs are values of the graph")
        _require(graph.value(id).storage == "input", graph.value(id).name, "storage is 'input'")
    for id in graph.outputs:
        _require(id in graph._by_id, f"value {id}", "outputs are values of the graph")
        value = graph.value(id)
        _require(value.storage == "output", value.name, "storage is 'output'")
        _require(id in made, value.name, "an output is made by a node")
        _require(
            value.alias_of is None or value.alias_of in graph.inputs,
            value.name,
            "an output may be an alias of an input only",
        )


def extent(shape: Iterable[int], strides: Iterable[int]) -> tuple[int, int]:
    """Lowest and highest place that a view touches, from its first element, where none is empty.

    >>> extent((2, 3), (-3, 1))
    (-3, 2)
    """
    reach = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)


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
    ready = {v.id for v in graph.values if v.storage in ("input", "constant")}
    written_output = False
    _require_own_names("node", graph.nodes)
    for node in graph.nodes:
        _require(node.kind in KINDS, node.name, f"kind is one of {KINDS}")
        for id in (*node.inputs, node.output):
            _require(id in graph._by_id, node.name, f"value {id} exists")
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
