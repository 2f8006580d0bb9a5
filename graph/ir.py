"""The graph: immutable values, and nodes between them.

A value describes memory (shape, strides, dtype, and who owns the bytes); a node reads values and
writes others.  Nothing here computes anything and nothing can change: passes make new graphs.
Strides and offsets count elements, not bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Annotated, Any

from .attrs import Attrs, freeze_attrs
from .constraints import Count, Length, OneOf, Positive
from .errors import GraphError
from .names import listed
from .strides import is_contiguous
from .summaries import counted, printable
from .view_methods import Viewed

STORAGES = ("input", "output", "workspace", "tile", "constant", "part")


@dataclass(frozen=True, slots=True)
class DType:
    """A data type, as planning sees it: a name and the size of an item.

    Attributes
    ----------
    name : str
        Such as float32.
    itemsize : int
        Bytes of an element.

    Examples
    --------
    >>> DType("bfloat16", 2)
    DType(name='bfloat16', itemsize=2)
    """

    name: str
    itemsize: Positive

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Value:
    """A piece of memory as a node sees it.

    Attributes
    ----------
    id : int
        Unique in its graph.
    name : str
        For people; unique in its graph as well.
    shape : tuple of int
        Elements along each dimension.
    strides : tuple of int
        In elements; zero or negative ones are allowed.
    dtype : DType
        Data type of the elements.
    storage : {'input', 'output', 'workspace', 'tile', 'constant', 'part'}
        The owner of the bytes.  'tile': a cache-sized piece per thread, inside one tile loop.
        'part': a view of an output, which a node writes.
    alias_of : int or None
        For an output: the input whose first element has the same address.  For any other value:
        the value whose bytes this is a view of.
    note : str
        Anything worth showing.
    offset : int
        For a view: from the first element of the value that owns the bytes to its own.

    Examples
    --------
    >>> value = Value(0, "x", (2, 3), (1, 2), DType("float32", 4), "input")
    >>> str(value), value.nbytes, value.is_contiguous
    ('float32[2,3:strides=1,2]', 24, False)
    """

    id: int
    name: str
    shape: tuple[Count, ...]
    strides: tuple[int, ...]
    dtype: DType
    storage: Annotated[str, OneOf(STORAGES)]
    alias_of: int | None = None
    note: str = ""
    offset: int = 0

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, without gaps: the size of a dense copy."""
        return self.size * self.dtype.itemsize

    @property
    def distinct_bytes(self) -> int:
        """Bytes of the elements, counting elements that a stride of 0 repeats once."""
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

    def __repr__(self) -> str:
        return printable(f"<Value {self.id} {self.name}: {self}, {self.storage}>")

    def __str__(self) -> str:
        dims = ",".join(map(str, self.shape))
        tail = "" if self.is_contiguous else ":strides=" + ",".join(map(str, self.strides))
        tail += f":offset={self.offset}" if self.offset else ""
        return f"{self.dtype.name}[{dims}{tail}]"


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: reads `inputs`, writes `outputs`, both by value id.

    `attrs` is a sorted tuple of pairs.  Those that this package gives a meaning to:

    ============= =========================================================================
    kernel        (Compute) what computes it; opaque here
    domain        (Compute) what the node needs of the loop around it: 'point' (the default),
                  'row' or 'opaque', see below
    axis          (row) the dimension that the kernel gets as a whole, counted from the last: -1
    reads_strided (Compute) whether it reads operands by their strides; opaque nodes do not unless
                  they say so
    converts      (Compute) whether it reads and writes other dtypes than it was built with: casts
                  may become part of loads and stores; opaque nodes do not unless they say so
    loads, stores (Compute) names of the dtypes that it converts from, and to; all where absent
    in_place      (opaque) places of the inputs that its result may be written over
    reads         (Compute) the dtype that the kernel converts operands to before it computes
    result_dtype  (Compute) results are rounded to it before they become of the output's
    params        (Compute) numbers that the kernel takes: constants, or `Argument`
    of            a mark that the nodes of one call share: what an opaque node reads and writes is
                  changed only by folding nodes that have its mark
    finishes      (opaque) names of the dtypes that pointwise steps on its results may have, where its
                  kernel runs such while the caches hold results; see `passes/results.py`
    then          (opaque) the steps on its results that it took in; see `result_steps.py`
    reads_at_most (opaque) pairs of the place of an input, of which it reads a part, and how many
                  elements that part has at most: of tables as many as it takes
    effects       (opaque) whether it does more than write its outputs, and so is never merged
    reason        (Contiguous) 'overlap': a forced copy, which no pass may remove or fuse
    loop          the tile loop that the node was fused into
    origin        where the node comes from, such as lines of a program: the outermost first;
                  views show it, and nothing else depends on it
    call          the operator that a program called for the node, and a number of the call, such
                  as 'swiglu#12'; for views as well
    ============= =========================================================================

    A 'point' node needs elements [i] of its operands for element [i] of its result.  A 'row' node
    needs whole rows along one axis; its operands have one rank, and in each dimension the size of
    the largest one or 1.  An 'opaque' node is called once.

    Attributes
    ----------
    name : str
        Unique in its graph.
    kind : str
        Contiguous, BroadcastTo, Cast, Compute or ViewCopy.
    inputs : tuple of int
        Ids of the values that it reads, in order.
    outputs : tuple of int
        Ids of the values that it writes, in order.
    attrs : tuple of pairs
        Its attributes, in documents an object: kernel, domain, axis, params, loop, reason and
        others. Numbers that JSON lacks are {"float": "nan"} there, run-time numbers
        {"argument": 0, "kind": "real"}.

    Examples
    --------
    >>> node = Node("relu", "Compute", inputs=(0,), outputs=(1,), attrs=(("kernel", "relu"),))
    >>> node.attr("kernel"), node.domain, node.output
    ('relu', 'point', 1)
    """

    name: str
    kind: str
    inputs: tuple[int, ...]
    outputs: Annotated[tuple[int, ...], Length(1)]
    attrs: Attrs = ()

    @property
    def output(self) -> int:
        """The id of the first output, for most nodes the only one."""
        return self.outputs[0]

    @property
    def operands(self) -> tuple[int, ...]:
        """Ids of inputs, then outputs."""
        return self.inputs + self.outputs

    @property
    def domain(self) -> str:
        """Domain of the node in the loop around it: 'point', 'row' or 'opaque'."""
        return self.attr("domain", "point")

    def attr(self, key: str, default: Any = None) -> Any:
        """The value of an attribute.

        Parameters
        ----------
        key : str
        default : object
            The result if the node has no such attribute.

        Returns
        -------
        object

        Examples
        --------
        >>> Node("f", "Compute", (0,), (1,)).attr("kernel", "none")
        'none'
        """
        for name, value in self.attrs:
            if name == key:
                return value
        return default

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
        >>> Node("f", "Compute", (0,), (1,)).with_attrs(slope=0.5).attrs
        (('slope', 0.5),)
        """
        kept = [pair for pair in self.attrs if pair[0] not in attrs]
        merged = tuple(sorted([*kept, *freeze_attrs(attrs)], key=itemgetter(0)))
        return Node(self.name, self.kind, self.inputs, self.outputs, merged)

    @property
    def origin(self) -> tuple[str, ...]:
        """Origin of the node, such as source lines; the outermost comes first."""
        return self.attr("origin", ())

    @property
    def overwritable(self) -> tuple[int, ...]:
        """Ids of the inputs that the result of an opaque node may be written over.

        What is read at another place, too, is read after the result has begun.

        Examples
        --------
        >>> attrs = (("domain", "opaque"), ("in_place", (0,)))
        >>> Node("put", "Compute", (0, 1, 2), (3,), attrs).overwritable
        (0,)
        >>> Node("put", "Compute", (0, 1, 0), (3,), attrs).overwritable
        ()
        """
        places = self.attr("in_place", ())
        others = {id for index, id in enumerate(self.inputs) if index not in places}
        return tuple([self.inputs[index] for index in places if self.inputs[index] not in others])

    def takes_in(self, other: Node) -> bool:
        """Whether a neighbour may be folded into what this node reads or writes.

        The digits of an opaque node's result may depend on the layout of its operands.

        Parameters
        ----------
        other : Node

        Returns
        -------
        bool
        """
        return self.domain != "opaque" or self.attr("of") == other.attr("of")

    def __repr__(self) -> str:
        kernel = self.attr("kernel")
        made = f"{self.kind} by {kernel}" if kernel else self.kind
        reads, writes = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return printable(f"<Node {self.name}: {made}, values {reads} to {writes}>")

    @property
    def is_forced_copy(self) -> bool:
        """A copy of an input that shares memory with an output."""
        return self.kind == "Contiguous" and self.attr("reason") == "overlap"

    @property
    def reads_strided(self) -> bool:
        """Whether the node reads operands by their strides, whatever they are."""
        return self.attr("reads_strided", self.domain != "opaque")

    @property
    def converts(self) -> bool:
        """Whether the node reads and writes other dtypes than it was built with."""
        return self.kind == "Compute" and self.attr("converts", self.domain != "opaque")

    def can_load(self, dtype: DType) -> bool:
        """Whether it reads a dtype instead of one that it was built with.

        Parameters
        ----------
        dtype : DType

        Returns
        -------
        bool
        """
        return self.converts and dtype.name in self.attr("loads", (dtype.name,))

    def can_store(self, dtype: DType) -> bool:
        """Whether it writes a dtype instead of one that it was built with.

        Parameters
        ----------
        dtype : DType

        Returns
        -------
        bool
        """
        return self.converts and dtype.name in self.attr("stores", (dtype.name,))


def root_of(values: Mapping[int, Value], id: int) -> Value:
    """The one of `values` that owns the bytes of value `id`."""
    value = values[id]
    for _ in values:
        if not value.is_view:
            return value
        value = values[value.alias_of]  # type: ignore[index]
    raise GraphError(values[id].name, f"views form a cycle: {_cycle_from(values, id)}")


def _cycle_from(values: Mapping[int, Value], id: int) -> str:
    """The ids from that of a view on, until one comes again."""
    ids: list[int] = []
    while id not in ids:
        ids.append(id)
        id = values[id].alias_of  # type: ignore[assignment]
    return " -> ".join(map(str, (*ids, id)))


class _ById(dict[int, Value]):
    """Values by id; the error for another id names those that there are."""

    def __missing__(self, id: int) -> Value:
        known = f"ids are {_spans(sorted(self))}" if self else "there are no values"
        raise KeyError(f"no value has id {id!r}, {known}")


def _spans(ids: Iterable[int]) -> str:
    """Ascending ids in words, neighbours together.

    >>> _spans([0, 1, 2, 4, 7, 8])
    '0 to 2, 4, 7 to 8'
    """
    spans: list[tuple[int, int]] = []
    for id in ids:
        if spans and spans[-1][1] == id - 1:
            spans[-1] = (spans[-1][0], id)
        else:
            spans.append((id, id))
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in spans)


@dataclass(frozen=True, slots=True)
class Graph(Viewed):
    """Nodes in an order in which they can run, and the values between them.

    Graphs compare and hash by content.  Make them with `GraphBuilder`.

    Attributes
    ----------
    nodes : tuple of Node
        Operations, in an order in which they can run.
    values : tuple of Value
        Everything that nodes read and write.
    inputs : tuple of int
        Ids of the values that a run reads, in order.
    outputs : tuple of int
        Ids of the values that a run writes, in order.

    Examples
    --------
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
    _index: dict[Hashable, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", _ById({value.id: value for value in self.values}))
        object.__setattr__(self, "_index", {})

    def __reduce__(self):
        return Graph, (self.nodes, self.values, self.inputs, self.outputs)

    def once(self, what: Hashable, find: Callable[[], Any]) -> Any:
        """Result of `find`, which is computed once for this graph, as it never changes.

        Parameters
        ----------
        what : hashable
            Its name.
        find : callable
            Takes nothing.

        Returns
        -------
        object

        Examples
        --------
        >>> empty = Graph((), (), (), ())
        >>> empty.once("steps of old", list) is empty.once("steps of old", list)
        True
        """
        if what not in self._index:
            self._index[what] = find()
        return self._index[what]

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
            When the graph has no such value; the message lists the ids.
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
            When the graph has no such value; the message lists the names.
        """
        for value in self.values:
            if value.name == name:
                return value
        known = listed(value.name for value in self.values)
        raise KeyError(f"no value is called {name!r}, there are {known}")

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
        roots = self._index.setdefault("roots", {})
        if id not in roots:
            roots[id] = root_of(self._by_id, id)
        return roots[id]

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
        writers = self.writers().get(id, ())
        return writers[0] if writers else None

    def writers(self) -> dict[int, tuple[Node, ...]]:
        """The nodes that write each value, themselves or through a view.

        Returns
        -------
        dict of int to tuple of Node
            By id of the written value or view, and of the value that owns its bytes.

        Examples
        --------
        >>> from aclnn.graph import GraphBuilder
        >>> b, f32 = GraphBuilder(), DType("float32", 4)
        >>> x, out = b.input("x", (4,), f32), b.output("out", (4,), f32)
        >>> b.view_copy(x, out)
        >>> {id: [node.name for node in nodes] for id, nodes in b.build().writers().items()}
        {1: ['out_view_copy']}
        """
        if "writers" not in self._index:
            found: dict[int, list[Node]] = {}
            for node in self.nodes:
                for id in node.outputs:
                    for index in {id, self.root(id).id}:
                        found.setdefault(index, []).append(node)
            self._index["writers"] = {id: tuple(nodes) for id, nodes in found.items()}
        return self._index["writers"]

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
        if "consumers" not in self._index:
            found: dict[int, list[Node]] = {}
            for node in self.nodes:
                for one in dict.fromkeys(node.inputs):
                    found.setdefault(one, []).append(node)
            self._index["consumers"] = {one: tuple(nodes) for one, nodes in found.items()}
        return self._index["consumers"].get(id, ())

    def readers(self, nodes: Iterable[Node] | None = None) -> dict[int, tuple[Node, ...]]:
        """For each value that owns bytes the nodes that read them, themselves or through a view.

        Parameters
        ----------
        nodes : iterable of Node, optional
            That read values of this graph; None for its own.

        Returns
        -------
        dict of int to tuple of Node
            By id of the value, without values that no node reads; nodes keep the order of the graph.

        Examples
        --------
        >>> from aclnn.graph import GraphBuilder
        >>> b, f32 = GraphBuilder(), DType("float32", 4)
        >>> x, out = b.input("x", (4,), f32), b.output("out", (4,), f32)
        >>> b.view_copy(b.compute("relu", [x], (4,), f32), out)
        >>> {id: [node.name for node in nodes] for id, nodes in b.build().readers().items()}
        {0: ['relu'], 2: ['out_view_copy']}
        """
        found: dict[int, list[Node]] = {}
        for node in self.nodes if nodes is None else nodes:
            for root in {self.root(id).id for id in node.inputs}:
                found.setdefault(root, []).append(node)
        return {root: tuple(reading) for root, reading in found.items()}

    def memory_bytes(self, id: int) -> int:
        """Bytes moved when a value is read or written once; none for values in tiles.

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

    def bytes_read_of(self, node: Node, id: int) -> int:
        """Bytes that a node reads of one of its inputs from memory.

        Parameters
        ----------
        node : Node
            Of this graph.
        id : int
            Of an input of the node.

        Returns
        -------
        int
            Every element is counted once; of an input that the node reads in part, only that part
            at most, wherever it is.

        Examples
        --------
        >>> from aclnn.graph import GraphBuilder
        >>> b, f32, i64 = GraphBuilder(), DType("float32", 4), DType("int64", 8)
        >>> table, places = b.input("table", (50000, 256), f32), b.input("places", (1, 256), i64)
        >>> row = b.compute("gather", [table, places], (1, 256), f32, domain="opaque",
        ...                 reads_at_most=((0, 256),))
        >>> b.view_copy(row, b.output("out", (1, 256), f32))
        >>> graph = b.build()
        >>> graph.bytes_read_of(graph.nodes[0], table), graph.memory_bytes(table)
        (1024, 51200000)
        """
        whole = self.memory_bytes(id)
        limits = dict(node.attr("reads_at_most", ()))
        parts = [limits.get(index) for index, other in enumerate(node.inputs) if other == id]
        known = [part for part in parts if part is not None]
        if not known or len(known) < len(parts):
            return whole
        return min(whole, max(known) * self._by_id[id].dtype.itemsize)

    def bytes_read(self, node: Node) -> int:
        """Bytes that a node reads from memory, every element of an operand counted once.

        Parameters
        ----------
        node : Node
            Of this graph.

        Returns
        -------
        int
            The sum of `bytes_read_of` its inputs.
        """
        return sum([self.bytes_read_of(node, id) for id in dict.fromkeys(node.inputs)])

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
        return sum(map(self.memory_bytes, node.outputs))

    def iteration(self, node: Node) -> tuple[tuple[int, ...], int | None]:
        """The shape that a node loops over, and the axis that its kernel gets as a whole.

        Parameters
        ----------
        node : Node
            Of this graph.

        Returns
        -------
        shape : tuple of int
        axis : int or None
            Negative, counted from the last dimension; None for nodes that are not row-wise.
        """
        if node.domain != "row":
            return self._by_id[node.outputs[0]].shape, None
        shapes = [self._by_id[id].shape for id in node.operands]
        return tuple(map(max, zip(*shapes, strict=True))), node.attr("axis", -1)

    def steps(self) -> tuple[tuple[Node, ...], ...]:
        """Nodes grouped into steps: neighbours in the same tile loop run together.

        Returns
        -------
        tuple of tuple of Node
        """
        if "steps" not in self._index:
            found: list[list[Node]] = []
            last = None
            for node in self.nodes:
                loop = node.attr("loop")
                if loop is not None and loop == last:
                    found[-1].append(node)
                else:
                    found.append([node])
                last = loop
            self._index["steps"] = tuple(map(tuple, found))
        return self._index["steps"]

    def to_text(self, plan: Any = None, whole: bool = False, wide: bool = False) -> str:
        """An aligned table of the nodes and their operands; with offsets where a plan is given.

        Parameters
        ----------
        plan : WorkspacePlan, optional
            Of this graph: the table then has the offsets in the workspace.
        whole : bool
            Whether to show every node.  Otherwise, repeated parts appear once.
        wide : bool
            Whether to show every column, in lines of any length.  Otherwise, lines have at most 100
            characters, and names lose their middle where they have no room.

        Returns
        -------
        str
        """
        return self._view("text", plan, whole, wide)

    def to_rich(self, plan: Any = None, whole: bool = False, wide: bool = False) -> Any:
        """The table of `to_text` for `rich.print`.

        Parameters
        ----------
        plan : WorkspacePlan, optional
            Of this graph: the table then has the offsets in the workspace.
        whole : bool
            Whether to show every node.  Otherwise, repeated parts appear once.
        wide : bool
            Whether to show every column.

        Returns
        -------
        rich.console.Group

        Raises
        ------
        ModuleNotFoundError
            When the package rich is not installed.
        """
        return self._view("rich", plan, whole, wide)

    def to_dot(self, plan: Any = None, whole: bool = False) -> str:
        """Graphviz source; with offsets where a plan is given.

        Parameters
        ----------
        plan : WorkspacePlan, optional
            Of this graph: nodes then have the offsets of their results in the workspace.
        whole : bool
            Whether to show every node.  Otherwise, repeated parts appear once.

        Returns
        -------
        str
        """
        return self._view("dot", plan, whole)

    def to_svg(self, plan: Any = None, heat: Any = None, whole: bool = False) -> str:
        """A self-contained picture, without scripts; with offsets where a plan is given.

        Parameters
        ----------
        plan : WorkspacePlan, optional
            Of this graph: the picture then has the offsets of values in the workspace.
        heat : {None, 'bytes'} or Heat, optional
            What colours the boxes: the bytes that nodes move, or a quantity of your own.
        whole : bool
            Whether to draw every node by itself.  Otherwise, repeated parts are drawn once, and
            long loops and chains are one box.

        Returns
        -------
        str
        """
        return self._view("svg", plan, heat, whole)

    def to_onnx(self, plan: Any = None) -> bytes:
        """An ONNX model in a separate domain, with properties of a plan if there is one.

        No kernel is known here, so that viewers show it, and nothing runs it.

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
        return self._view("onnx", plan)

    def to_model_explorer(self, plan: Any = None, heat: Any = None) -> str:
        """A document that Model Explorer opens.

        Parameters
        ----------
        plan : WorkspacePlan, optional
            Of this graph: nodes then say where their results lie.
        heat : {None, 'bytes'} or Heat, optional
            As `to_svg` takes it: nodes then say their amounts.

        Returns
        -------
        str
            JSON of the schema `aclnn.graph.views.model_explorer.MODEL_EXPLORER_SCHEMA`.  Repeated
            sequences, functions, operators and tile loops are namespaces.

        Examples
        --------
        >>> import json
        >>> from aclnn.graph import GraphBuilder
        >>> b, f32 = GraphBuilder(), DType("float32", 4)
        >>> x, out = b.input("x", (4,), f32), b.output("out", (4,), f32)
        >>> b.view_copy(x, out)
        >>> (graph,) = json.loads(b.build().to_model_explorer())["graphs"]
        >>> [node["id"] for node in graph["nodes"]]
        ['x (input)', 'out (output)', 'out_view_copy']
        """
        return self._view("model_explorer", plan, heat)

    def to_model_explorer_data(self, plan: Any = None, heat: Any = None) -> dict[str, str]:
        """Numbers of the nodes as documents of node data, which Model Explorer lays over the graph.

        Parameters
        ----------
        plan : WorkspacePlan, optional
            Of this graph: one of the documents then has offsets in the workspace.
        heat : Heat or sequence of Heat, optional
            Further quantities, such as the times of a profile.

        Returns
        -------
        dict of str to str
            JSON by the quantity: ``bytes`` that nodes move, ``offset``, and the names of `heat`.

        Examples
        --------
        >>> from aclnn.graph import GraphBuilder
        >>> b, f32 = GraphBuilder(), DType("float32", 4)
        >>> b.view_copy(b.input("x", (4,), f32), b.output("out", (4,), f32))
        >>> list(b.build().to_model_explorer_data())
        ['bytes']
        """
        return self._view("model_explorer_data", plan, heat)

    def __repr__(self) -> str:
        sizes = (
            counted(len(self.nodes), "node"),
            counted(len(self.inputs), "input"),
            counted(len(self.outputs), "output"),
        )
        return f"<Graph: {', '.join(sizes)}>"

    def __str__(self) -> str:
        return self.to_text()
