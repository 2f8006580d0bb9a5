"""Graphs whose shapes vary: one graph of fixed shapes for each set of sizes.

Dynamo makes a size a symbol when it changes for the first time, and gives graphs an input for each symbol.
Plans are for one shape, so that a graph is specialised when it is called with sizes that it has not seen: the
symbols become numbers, and what is computed of them is folded. Dynamo compiles nothing anew.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from aclnn.torch.graphs import value_of
from aclnn.torch.private import FakeTensor, FakeTensorMode, compile_lock, free_unbacked_symbols

MOST_SHAPES = (
    64  # of a graph, whose plans are kept; the one that was used least recently goes first
)

Call = Callable[..., Any]
_SYMBOLS = (torch.SymInt, torch.SymBool)


def has_symbols(graph_module: GraphModule) -> bool:
    """Whether a size of some input of a graph, or an input itself, is a symbol."""
    return any(_is_symbolic(value_of(node)) for node in _placeholders(graph_module))


def _placeholders(graph_module: GraphModule) -> list[Node]:
    return [node for node in graph_module.graph.nodes if node.op == "placeholder"]


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return not all(isinstance(n, int) for n in (*value.shape, value.storage_offset()))
    return isinstance(value, _SYMBOLS)


class Specialized:
    """A graph with symbols that is compiled for each set of sizes.

    Parameters
    ----------
    graph_module : GraphModule
    compile_graph : callable
        Compiles a graph without symbols.
    """

    def __init__(self, graph_module: GraphModule, compile_graph: Callable[[GraphModule], Call]):
        self._graph_module = graph_module
        self._compile = compile_graph
        values = [value_of(node) for node in _placeholders(graph_module)]
        self._numbers = [n for n, value in enumerate(values) if isinstance(value, _SYMBOLS)]
        own = {str(values[n].node.expr) for n in self._numbers}
        # Sizes of which no input is the symbol.
        self._tensors = [n for n, value in enumerate(values) if not _symbols_of(value) <= own]
        self._made: OrderedDict[tuple[Any, ...], Call] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, inputs: list[Any]) -> Any:
        key: tuple[Any, ...] = tuple([inputs[n] for n in self._numbers])
        if self._tensors:
            key += tuple([(inputs[n].shape, inputs[n].storage_offset()) for n in self._tensors])
        made = self._made.get(key)
        if made is None:
            made = self._make(key, inputs)
        elif len(self._made) > MOST_SHAPES // 2:
            self._refresh(key)
        return made(inputs)

    def _refresh(self, key: tuple[Any, ...]) -> None:
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)

    def _make(self, key: tuple[Any, ...], inputs: Sequence[Any]) -> Call:
        # Dynamo's lock first, as threads that compile have it when they come here.
        with compile_lock, self._lock:
            if key not in self._made:
                self._made[key] = self._compile(specialized(self._graph_module, inputs))
                while len(self._made) > MOST_SHAPES:
                    self._made.popitem(last=False)
            return self._made[key]


def _symbols_of(value: Any) -> set[str]:
    """The symbols in the shape of an input."""
    if not isinstance(value, torch.Tensor):
        return set()
    sizes = [n for n in (*value.shape, value.storage_offset()) if isinstance(n, torch.SymInt)]
    return {str(symbol) for n in sizes for symbol in n.node.expr.free_symbols}


def specialized(graph_module: GraphModule, inputs: Sequence[Any]) -> GraphModule:
    """A graph for the sizes of these inputs, with the same inputs in the same order.

    Parameters
    ----------
    graph_module : GraphModule
        Of AOTAutograd.
    inputs : sequence
        Tensors and numbers that it is called with.

    Returns
    -------
    GraphModule
        Nodes have fake tensors without symbols as their values; what gave a number is gone.
    """
    # Detached, since results of others have no gradient to be looked at.
    plain = [one.detach() if isinstance(one, torch.Tensor) else one for one in inputs]
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with torch.no_grad(), mode:
        like = [
            mode.from_tensor(one, static_shapes=True) if isinstance(one, torch.Tensor) else one
            for one in plain
        ]
        graph = Graph()
        writer = _Writer(graph_module, graph, like)
        for node in graph_module.graph.nodes:
            writer.add(node)
    return GraphModule(graph_module, graph)


class _Writer:
    """Copies a graph node by node, computing what each gives.

    The sizes of most values are known as expressions of symbols, so that calls need not be made again.
    """

    def __init__(self, owner: GraphModule, graph: Graph, inputs: Sequence[Any]):
        self._graph = graph
        self._inputs = iter(inputs)
        self._numbers = _Numbers(zip(map(value_of, _placeholders(owner)), inputs, strict=True))
        self._values: dict[Node, Any] = {}
        self._copies: dict[Node, Any] = {}  # nodes, or numbers

    def add(self, node: Node) -> None:
        """Copy a node, unless it computes a size, which becomes a number."""
        if node.op == "output":
            self._graph.node_copy(node, self._copies.__getitem__)
            return
        value = self._values[node] = self._value(node)
        if node.op == "call_function" and isinstance(value, bool | int):
            self._copies[node] = value
            return
        copy = self._copies[node] = self._graph.node_copy(node, self._copies.__getitem__)
        copy.meta["val"] = value
        if node.op == "placeholder" and isinstance(value, int):
            self._copies[node] = value

    def _value(self, node: Node) -> Any:
        if node.op == "placeholder":
            return next(self._inputs)
        if node.op == "get_attr":
            return value_of(node)
        symbolic = value_of(node)
        if isinstance(symbolic, torch.SymFloat) or _depends_on_data(symbolic):
            return symbolic  # each run has its own
        known = self._numbers.put_into(symbolic)
        if known is not None:
            return known
        args, named = torch.fx.map_arg((node.args, node.kwargs), self._values.__getitem__)
        return node.target(*args, **named)


def _depends_on_data(value: Any) -> bool:
    """Whether a size of a value is known when a call has computed others alone."""
    if isinstance(value, tuple | list):
        return any(map(_depends_on_data, value))
    sizes = (*value.shape, *value.stride()) if isinstance(value, torch.Tensor) else (value,)
    return any(isinstance(n, _SYMBOLS) and free_unbacked_symbols(n) for n in sizes)


class _Numbers:
    """The numbers that symbols stand for.

    Parameters
    ----------
    pairs : iterable
        Values with symbols, and those for which a graph is specialised.
    """

    def __init__(self, pairs: Iterable[tuple[Any, Any]]):
        self._of: dict[Any, int] = {}  # symbols and what was computed of them
        for symbolic, value in pairs:
            if isinstance(symbolic, torch.SymInt):
                self._know(symbolic, value)
            elif isinstance(symbolic, torch.Tensor) and isinstance(value, torch.Tensor):
                own = (*symbolic.shape, *symbolic.stride(), symbolic.storage_offset())
                sizes = (*value.shape, *value.stride(), value.storage_offset())
                for one, number in zip(own, sizes, strict=True):
                    self._know(one, number)

    def _know(self, symbolic: Any, number: int) -> None:
        if isinstance(symbolic, torch.SymInt) and symbolic.node.expr.is_symbol:
            self._of[symbolic.node.expr] = number

    def put_into(self, value: Any) -> Any:
        """The value with numbers in the place of symbols, in the fake mode that is on; None if one is not known,
        or the value is more than a tensor with strides."""
        if isinstance(value, torch.SymInt):
            return self._number(value)
        if isinstance(value, tuple | list) and value:
            made = [self.put_into(one) for one in value]
            return None if any(one is None for one in made) else type(value)(made)
        if type(value) is not FakeTensor or value.layout is not torch.strided:
            return None
        if value.dtype.is_complex or value.device.type != "cpu":
            return None
        sizes = [self._number(n) for n in value.shape]
        strides = [self._number(n) for n in value.stride()]
        offset = self._number(value.storage_offset())
        if None in (*sizes, *strides, offset):
            return None
        return _fake(value, sizes, strides, offset)

    def _number(self, value: Any) -> int | None:
        if isinstance(value, int):
            return value
        expression = value.node.expr
        if expression not in self._of:
            if not self._of.keys() >= expression.free_symbols:
                return None
            number = expression.xreplace({one: self._of[one] for one in expression.free_symbols})
            if not number.is_Integer:
                return None
            self._of[expression] = int(number)
        return self._of[expression]


def _fake(like: Any, sizes: Any, strides: Any, offset: Any) -> torch.Tensor:
    options = {"dtype": like.dtype}
    if offset and 0 not in sizes:
        reach = sum([(n - 1) * stride for n, stride in zip(sizes, strides, strict=True)])
        whole = torch.empty(offset + reach + 1, **options)
        return whole.as_strided(sizes, strides, offset)
    return torch.empty_strided(sizes, strides, **options)
