"""Building a graph node by node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .attrs import Attrs, freeze_attrs
from .errors import GraphError
from .ir import DType, Graph, Node, Value
from .names import Names
from .strides import broadcast_strides, contiguous_strides
from .summaries import counted
from .verify.graph import check, check_views


class GraphBuilder:
    """Builds a graph node by node; methods return the id of the value that they add.

    Duplicate names get a number. `build` verifies the graph.

    Examples
    --------
    >>> f32, f16 = DType("float32", 4), DType("float16", 2)
    >>> b = GraphBuilder()
    >>> x = b.input("x", (2, 1), f16)
    >>> out = b.output("out", (2, 3), f32)
    >>> wide = b.broadcast_to(b.cast(b.contiguous(x), f32), (2, 3))
    >>> b.view_copy(b.compute("relu", [wide], (2, 3), f32), out)
    >>> [node.name for node in b.build().nodes]
    ['x_contiguous', 'x_cast', 'x_broadcast', 'relu', 'out_view_copy']
    """

    def __init__(self) -> None:
        self.leaves_idle_out = False  # whether nodes that would change nothing are not made
        self.origin: tuple[str, ...] = ()  # of nodes that are made
        self.call = ""  # that they are part of
        self._values: list[Value] = []
        self._nodes: list[Node] = []
        self._inputs: list[int] = []
        self._outputs: list[int] = []
        self._stems: dict[int, str] = {}  # what the names of nodes that convert a value begin with
        self._names = Names()

    def __repr__(self) -> str:
        return f"<GraphBuilder: {counted(len(self._nodes), 'node')} so far>"

    def input(
        self,
        name: str,
        shape: Iterable[int],
        dtype: DType,
        *,
        strides: Iterable[int] | None = None,
        note: str = "",
    ) -> int:
        """Declare an input.

        Parameters
        ----------
        name : str
        shape : iterable of int
        dtype : DType
        strides : iterable of int, optional
            In elements; None for row-major.
        note : str
            Anything worth showing.

        Returns
        -------
        int
            Its id.

        Examples
        --------
        >>> b = GraphBuilder()
        >>> x = b.input("x", (2, 3), DType("float32", 4), strides=(1, 2))
        >>> str(b.build().value(x))
        'float32[2,3:strides=1,2]'
        """
        value = self._value(self._names.fresh(name), shape, dtype, "input", strides, note=note)
        self._inputs.append(value)
        return value

    def constant(self, name: str, shape: Iterable[int], dtype: DType) -> int:
        """Declare a value that exists before the first step and is not an argument.

        Parameters
        ----------
        name : str
        shape : iterable of int
        dtype : DType

        Returns
        -------
        int
            Its id.

        Examples
        --------
        >>> b = GraphBuilder()
        >>> weights = b.constant("weights", (512, 2048), DType("float16", 2))
        >>> b.build().value(weights).storage
        'constant'
        """
        return self._value(self._names.fresh(name), shape, dtype, "constant")

    def output(
        self,
        name: str,
        shape: Iterable[int],
        dtype: DType,
        *,
        strides: Iterable[int] | None = None,
        alias_of: int | None = None,
        note: str = "",
    ) -> int:
        """Declare an output, to be written by `view_copy`.

        Parameters
        ----------
        name : str
        shape : iterable of int
        dtype : DType
        strides : iterable of int, optional
            In elements; None for row-major.
        alias_of : int, optional
            The input that starts at the same address.  Inputs that overlap the output in any other
            way need ``contiguous(x, reason='overlap')``.
        note : str
            Anything worth showing.

        Returns
        -------
        int
            Its id.

        Raises
        ------
        GraphError
            When there is no value with the id `alias_of`.

        Examples
        --------
        >>> b, f32 = GraphBuilder(), DType("float32", 4)
        >>> x = b.input("x", (4,), f32)
        >>> out = b.output("out", (4,), f32, alias_of=x)
        >>> b.view_copy(b.compute("relu", [x], (4,), f32), out)
        >>> b.build().value(out).alias_of == x
        True
        """
        if alias_of is not None:
            self._made(alias_of)
        name = self._names.fresh(name)
        value = self._value(name, shape, dtype, "output", strides, alias_of, note)
        self._outputs.append(value)
        return value

    def contiguous(self, value: int, *, reason: str | None = None, **attrs: Any) -> int:
        """The row-major form of a value; `reason="overlap"` makes it a copy that no pass removes.

        Parameters
        ----------
        value : int
        reason : {None, 'overlap'}
            'overlap': the input shares memory with an output in another way than element by element.
        **attrs
            Attributes of the node.

        Returns
        -------
        int
            The id of the result.

        Raises
        ------
        GraphError
            When there is no value with this id.

        Examples
        --------
        >>> b = GraphBuilder()
        >>> x = b.input("x", (2, 3), DType("float32", 4), strides=(1, 2))
        >>> copy = b.contiguous(x, reason="overlap")
        >>> b.build().value(copy).strides
        (3, 1)
        """
        if reason is not None:
            attrs["reason"] = reason
        source = self._made(value)
        if self.leaves_idle_out and reason is None and source.is_contiguous:
            return value
        return self._node("contiguous", "Contiguous", value, source.shape, source.dtype, attrs)

    def broadcast_to(self, value: int, shape: Iterable[int], **attrs: Any) -> int:
        """The value repeated to `shape`, by NumPy's rule.

        Parameters
        ----------
        value : int
        shape : iterable of int
        **attrs
            Attributes of the node.

        Returns
        -------
        int
            The id of the result.

        Raises
        ------
        GraphError
            When there is no value with this id.

        Examples
        --------
        >>> b = GraphBuilder()
        >>> wide = b.broadcast_to(b.input("x", (2, 1), DType("float32", 4)), (2, 3))
        >>> b.build().value(wide).shape
        (2, 3)
        """
        source, shape = self._made(value), tuple(shape)
        if self.leaves_idle_out and source.shape == shape and source.is_contiguous:
            return value
        return self._node("broadcast", "BroadcastTo", value, shape, source.dtype, attrs)

    def cast(self, value: int, dtype: DType, **attrs: Any) -> int:
        """The value converted to `dtype`.

        Parameters
        ----------
        value : int
        dtype : DType
        **attrs
            Attributes of the node.

        Returns
        -------
        int
            The id of the result.

        Raises
        ------
        GraphError
            When there is no value with this id.

        Examples
        --------
        >>> b = GraphBuilder()
        >>> half = b.cast(b.input("x", (4,), DType("float32", 4)), DType("float16", 2))
        >>> str(b.build().value(half))
        'float16[4]'
        """
        source = self._made(value)
        if self.leaves_idle_out and source.dtype == dtype and source.is_contiguous:
            return value
        return self._node("cast", "Cast", value, source.shape, dtype, attrs)

    def compute(
        self,
        kernel: str,
        inputs: Iterable[int],
        shape: Iterable[int],
        dtype: DType,
        *,
        name: str | None = None,
        **attrs: Any,
    ) -> int:
        """The result of a kernel; it is pointwise unless `domain` says otherwise, see `Node`.

        Parameters
        ----------
        kernel : str
            What computes it.
        inputs : iterable of int
        shape : iterable of int
        dtype : DType
            Of the result, as its shape.
        name : str, optional
            Of node and result; None for that of the kernel.
        **attrs
            Attributes of the node, see `Node`.

        Returns
        -------
        int
            The id of the result.

        Raises
        ------
        GraphError
            When there is no value with one of these ids.

        Examples
        --------
        >>> b, f32 = GraphBuilder(), DType("float32", 4)
        >>> total = b.compute("sum", [b.input("x", (4,), f32)], (1,), f32, domain="row", axis=-1)
        >>> b.build().nodes[0].domain
        'row'
        """
        return self.compute_all(kernel, inputs, [(shape, dtype)], name=name, **attrs)[0]

    def compute_all(
        self,
        kernel: str,
        inputs: Iterable[int],
        outputs: Iterable[tuple[Iterable[int], DType]],
        *,
        name: str | None = None,
        **attrs: Any,
    ) -> tuple[int, ...]:
        """The results of a kernel that has several.

        Parameters
        ----------
        kernel : str
            What computes them.
        inputs : iterable of int
        outputs : iterable of (shape, dtype)
            Of each result.
        name : str, optional
            Of node and results, which are numbered; None for that of the kernel.
        **attrs
            Attributes of the node, see `Node`.

        Returns
        -------
        tuple of int
            The ids of the results.

        Raises
        ------
        GraphError
            When there is no value with one of these ids.

        Examples
        --------
        >>> b, f32 = GraphBuilder(), DType("float32", 4)
        >>> x = b.input("x", (4, 8), f32)
        >>> y, mean = b.compute_all("norm", [x], [((4, 8), f32), ((4, 1), f32)], domain="row", axis=-1)
        >>> [str(b.build().value(id)) for id in (y, mean)]
        ['float32[4,8]', 'float32[4,1]']
        """
        operands = tuple([self._made(id).id for id in inputs])
        label = self._names.fresh(name or kernel)
        made = []
        for number, (shape, dtype) in enumerate(outputs):
            own = self._names.fresh(f"{label}_{number}") if number else label
            made.append(self._value(own, shape, dtype, "workspace"))
        attrs["kernel"] = kernel
        self._nodes.append(Node(label, "Compute", operands, tuple(made), self._attrs(attrs)))
        return tuple(made)

    def view(
        self,
        value: int,
        shape: Iterable[int],
        strides: Iterable[int],
        offset: int = 0,
        *,
        name: str | None = None,
    ) -> int:
        """Other shape and strides for the bytes of a value: a slice, a transpose, a reshape.

        Parameters
        ----------
        value : int
        shape, strides : iterable of int
            Of the view, in elements.
        offset : int
            From the first element of `value` to that of the view, in elements.
        name : str, optional

        Returns
        -------
        int
            The id of the view.  A view of an output, or of a `buffer`, is a part that `view_copy`
            writes.

        Raises
        ------
        GraphError
            When there is no value with this id.

        Examples
        --------
        >>> b = GraphBuilder()
        >>> x = b.input("x", (2, 6), DType("float32", 4))
        >>> right = b.view(x, (2, 3), (6, 1), 3)
        >>> str(b.build().value(right))
        'float32[2,3:strides=6,1:offset=3]'
        """
        source = self._made(value)
        storage = "part" if source.storage == "output" else source.storage
        root = source.alias_of if source.is_view else source.id
        label = self._names.fresh(name or f"{self._stems[value]}_view")
        made = self._value(
            label, shape, source.dtype, storage, strides, root, offset=source.offset + offset
        )
        self._stems[made] = self._stems[value]
        return made

    def buffer(self, name: str, shape: Iterable[int], dtype: DType) -> int:
        """Row-major memory of the workspace whose parts are written by themselves.

        Parameters
        ----------
        name : str
        shape : iterable of int
        dtype : DType

        Returns
        -------
        int
            Its id; `view` makes the parts, `view_copy` writes them.

        Examples
        --------
        >>> b, f32 = GraphBuilder(), DType("float32", 4)
        >>> x, both = b.input("x", (2,), f32), b.buffer("both", (2, 2), f32)
        >>> for row in (0, 1):
        ...     b.view_copy(x, b.view(both, (2,), (1,), 2 * row))
        >>> len(b.build().nodes)
        2
        """
        return self._value(self._names.fresh(name), shape, dtype, "workspace")

    def transpose(self, value: int, axes: Iterable[int]) -> int:
        """A view with the dimensions in another order.

        Parameters
        ----------
        value : int
        axes : iterable of int
            The dimensions of `value`, in their new order.

        Returns
        -------
        int
            The id of the view.

        Examples
        --------
        >>> b = GraphBuilder()
        >>> x = b.input("x", (2, 3), DType("float32", 4))
        >>> str(b.value(b.transpose(x, (1, 0))))
        'float32[3,2:strides=1,3]'
        """
        source, axes = self._made(value), tuple(axes)
        shape = [source.shape[axis] for axis in axes]
        return self.view(value, shape, [source.strides[axis] for axis in axes])

    def expand(self, value: int, shape: Iterable[int]) -> int:
        """A view repeated to `shape`, by NumPy's rule, with strides of 0.

        Parameters
        ----------
        value : int
        shape : iterable of int

        Returns
        -------
        int
            The id of the view, or `value` where it has this shape.

        Examples
        --------
        >>> b = GraphBuilder()
        >>> x = b.input("x", (3,), DType("float32", 4))
        >>> str(b.value(b.expand(x, (2, 3))))
        'float32[2,3:strides=0,1]'
        """
        source, shape = self._made(value), tuple(shape)
        if source.shape == shape:
            return value
        return self.view(value, shape, broadcast_strides(source.shape, source.strides, shape))

    def shape(self, value: int) -> tuple[int, ...]:
        """The shape of a value.

        Parameters
        ----------
        value : int

        Returns
        -------
        tuple of int
        """
        return self._made(value).shape

    def value(self, value: int) -> Value:
        """A value by its id.

        Parameters
        ----------
        value : int

        Returns
        -------
        Value

        Raises
        ------
        GraphError
            When there is no value with this id.
        """
        return self._made(value)

    def view_copy(self, value: int, out: int, **attrs: Any) -> None:
        """Write `value` into an output, or a part of one or of a `buffer`, whatever its strides.

        Parameters
        ----------
        value, out : int
        **attrs
            Attributes of the node.

        Raises
        ------
        GraphError
            When there is no value with one of these ids.

        Examples
        --------
        >>> b, f32 = GraphBuilder(), DType("float32", 4)
        >>> x, out = b.input("x", (4,), f32), b.output("out", (4,), f32, strides=(2,))
        >>> b.view_copy(x, out)
        >>> b.build().nodes[0].name
        'out_view_copy'
        """
        self._made(value)
        name = self._names.fresh(f"{self._made(out).name}_view_copy")
        self._nodes.append(Node(name, "ViewCopy", (value,), (out,), self._attrs(attrs)))

    def mark(self, first: int, mark: str) -> None:
        """Give the attribute `of` to all nodes from the `first`-th on, if one of them is opaque.

        Parameters
        ----------
        first : int
        mark : str
            That no other nodes have.
        """
        made = self._nodes[first:]
        if any(node.domain == "opaque" for node in made):
            self._nodes[first:] = [node.with_attrs(of=mark) for node in made]

    @property
    def n_nodes(self) -> int:
        """Number of nodes so far."""
        return len(self._nodes)

    def build(self, *, verify: bool = True) -> Graph:
        """The graph so far, checked.

        Parameters
        ----------
        verify : bool
            Whether to verify it; turn this off for large numbers of graphs that are known to be
            valid.

        Returns
        -------
        Graph

        Raises
        ------
        GraphError
            Naming the node or value, and the rule that it breaks.

        Examples
        --------
        >>> b = GraphBuilder()
        >>> out = b.output("out", (4,), DType("float32", 4))
        >>> b.build()
        Traceback (most recent call last):
        ...
        aclnn.graph.errors.GraphError: out: an output is made by a node
        """
        graph = Graph(
            tuple(self._nodes), tuple(self._values), tuple(self._inputs), tuple(self._outputs)
        )
        return check(graph) if verify else check_views(graph)

    def _made(self, value: int) -> Value:
        """The value with this id, which a caller gave."""
        count = len(self._values)
        if not 0 <= value < count:
            raise GraphError(f"value {value}", f"there are {count} values so far")
        return self._values[value]

    def _node(
        self, suffix: str, kind: str, source: int, shape: tuple[int, ...], dtype: DType, attrs: dict
    ) -> int:
        """Add a node that converts a value, and what it makes."""
        label = self._names.fresh(f"{self._stems[source]}_{suffix}")
        out = self._value(label, shape, dtype, "workspace")
        self._stems[out] = self._stems[source]
        self._nodes.append(Node(label, kind, (source,), (out,), self._attrs(attrs)))
        return out

    def _attrs(self, attrs: dict[str, Any]) -> Attrs:
        if self.origin:
            attrs["origin"] = self.origin
        if self.call:
            attrs["call"] = self.call
        return freeze_attrs(attrs) if attrs else ()

    def _value(
        self,
        label: str,
        shape: Iterable[int],
        dtype: DType,
        storage: str,
        strides: Iterable[int] | None = None,
        alias_of: int | None = None,
        note: str = "",
        offset: int = 0,
    ) -> int:
        shape = tuple(shape)
        steps = contiguous_strides(shape) if strides is None else tuple(strides)
        id = len(self._values)
        self._values.append(Value(id, label, shape, steps, dtype, storage, alias_of, note, offset))
        self._stems[id] = label
        return id
