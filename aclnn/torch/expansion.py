"""Nodes and modules as graphs of ATen's operators."""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeVar

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph, GraphModule, Interpreter, Node
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MODULES = "nn_module_stack"  # in a node's meta, as PyTorch has it
KEY = "aclnn_expansion"  # in a node's meta
OPERAND = "aclnn_operand"
REASON = "aclnn_reason"  # why no executor can do a call
_SWITCHES = (
    torch._C._set_grad_enabled,
    torch.amp.autocast_mode._enter_autocast,
    torch.amp.autocast_mode._exit_autocast,
)
CALLED = ("call_function", "call_method")
T = TypeVar("T")


def value_of(node: Node) -> Any:
    """Value that PyTorch expects a node to give: fake tensors."""
    return node.meta.get("val", node.meta.get("example_value"))


def expanded(function: Callable[..., Any], inputs: Sequence[Any]) -> GraphModule:
    """The ATen operators that a function of tensors calls."""
    root = torch.nn.Module()
    return _LazyGraphModule(root, recorded(function, inputs, root))


def flattened(module: GraphModule, inputs: Sequence[Any]) -> GraphModule:
    """The ATen operators that a graph's nodes stand for.

    What is known of each node is put together; a graph that holds something else is run.
    """
    graph = Graph()
    known: dict[Node, Any] = {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            known[node] = graph.placeholder(f"arg{len(known)}_1")
            known[node].meta["val"] = value_of(node)
        elif node.op == "output":
            results = torch.fx.map_arg(node.args[0], known.__getitem__)
            graph.output(results)
        elif not _copied_flat(node, graph, known):
            return expanded(module, inputs)
    graph.eliminate_dead_code()
    return _LazyGraphModule(torch.nn.Module(), graph)


def _copied_flat(node: Node, graph: Graph, known: dict[Node, Any]) -> bool:
    """Copy the calls that a node stands for, and remember what gives its result; whether that can be."""
    if node.target is python.getitem and isinstance(known.get(node.args[0]), tuple):
        known[node] = known[node.args[0]][node.args[1]]
        return True
    found = expansion_of(node) if node.op in CALLED else None
    if not found or any(isinstance(known[one], tuple) for one in node.all_input_nodes):
        return False
    if found[0] is node:
        known[node] = _result_of(_copy(node, graph, known, node), graph)
        return True
    inner = found[0].graph
    places = inner.find_nodes(op="placeholder")
    own = dict(zip(places, [known[one] for one in node.all_input_nodes], strict=True))
    for call in inner.nodes:
        if call.op == "get_attr":
            return False
        if call.op == "call_function":
            own[call] = _copy(call, graph, own, node)
    results = torch.fx.map_arg(inner.output_node().args[0], own.__getitem__)
    known[node] = tuple(results) if isinstance(results, list | tuple) else results
    return True


def _copy(call: Node, graph: Graph, known: Mapping[Node, Any], caller: Node) -> Node:
    made = graph.node_copy(call, known.__getitem__)
    made.meta = {"val": value_of(call)}
    if MODULES in caller.meta:
        made.meta[MODULES] = caller.meta[MODULES]
    return made


def _result_of(node: Node, graph: Graph) -> Any:
    """A node, or one for each of its results."""
    values = node.meta["val"]
    if not isinstance(values, tuple | list):
        return node
    results = []
    for place, value in enumerate(values):
        results.append(graph.call_function(python.getitem, (node, place)))
        results[-1].meta["val"] = value
    return tuple(results)


def recorded(
    function: Callable[..., Any], inputs: Sequence[Any], root: torch.nn.Module | None = None
) -> Graph:
    """A graph of the ATen operators that a function of tensors calls.

    Calls are recorded as PyTorch dispatches them: symbolic tracing would take ten times as long, and no other
    thread could call compiled functions meanwhile.

    Parameters
    ----------
    function : callable
    inputs : sequence of tensor
        What it is called with: fake tensors, or real ones.
    root : torch.nn.Module, optional
        Gets real tensors that the function reaches otherwise as buffers; without it they are refused.

    Returns
    -------
    Graph
        With the value of each node in ``meta["val"]``.
    """
    # Numbers, and gradients that are zero, become tensors on the way: fake ones only where the mode is on.
    modes = [one.fake_mode for one in inputs if isinstance(one, FakeTensor)]
    recorder = _Recorder(inputs, root)
    run = _Followed(function, recorder).run if isinstance(function, GraphModule) else function
    with torch.no_grad(), modes[0] if modes else nullcontext(), recorder:
        results = run(*inputs)
    recorder.finish(results)
    return recorder.graph


class _Recorder(TorchDispatchMode):
    """Makes a node of each call of one of ATen's operators."""

    def __init__(self, inputs: Sequence[Any], root: torch.nn.Module | None):
        super().__init__()
        self.graph = Graph()
        self._root = root
        self.modules: Any = None  # that call now
        self._nodes: dict[int, Node] = {}
        self._alive: list[Any] = []  # so that no other tensor gets the number of one that is gone
        for place, one in enumerate(inputs):
            self._know(one, self.graph.placeholder(f"arg{place}_1"))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if not any(isinstance(one, torch.Tensor) for one in tree_leaves(made)):
            return made  # a size or a device
        node = self.graph.call_function(func, self._mapped(args), self._mapped(kwargs or {}))
        if self.modules:
            node.meta[MODULES] = self.modules
        self._know(made, node)
        return made

    def finish(self, results: Any) -> None:
        self.graph.output(self._mapped(results))
        self.graph.eliminate_dead_code()

    def _know(self, value: Any, node: Node) -> None:
        """Remember which node gives a tensor, or several."""
        node.meta["val"] = value
        if isinstance(value, torch.Tensor):
            self._nodes[id(value)] = node
            self._alive.append(value)
        elif isinstance(value, tuple | list):
            for place, one in enumerate(value):
                if isinstance(one, torch.Tensor):
                    self._know(one, self.graph.call_function(python.getitem, (node, place)))

    def _mapped(self, value: Any) -> Any:
        """An argument with nodes in the place of tensors."""
        if isinstance(value, torch.Tensor):
            return self._nodes.get(id(value)) or self._constant(value)
        if isinstance(value, Mapping):
            return {name: self._mapped(one) for name, one in value.items()}
        if isinstance(value, tuple | list):
            return type(value)([self._mapped(one) for one in value])
        return value

    def _constant(self, value: torch.Tensor) -> Node:
        if self._root is None or isinstance(value, FakeTensor):
            raise NotImplementedError("a tensor that is neither an input nor made of any")
        name = f"_tensor_constant{len(self._alive)}"
        self._root.register_buffer(name, value, persistent=False)
        node = self.graph.get_attr(name)
        self._know(value, node)
        return node


class _Followed(Interpreter):
    """A graph that runs node by node, so that it is known which modules call for each."""

    def __init__(self, module: GraphModule, recorder: _Recorder):
        super().__init__(module, garbage_collect_values=False)
        self._recorder = recorder

    def run_node(self, n: Node) -> Any:
        self._recorder.modules = n.meta.get(MODULES)
        return super().run_node(n)


def expansion_of(node: Node) -> list[Node] | None:
    """The calls of ATen's operators that a node stands for: itself where it is one; None if unknown.

    Each has the value that it gives in ``meta["val"]``.
    """
    if isinstance(node.target, torch._ops.OpOverload):
        return [node]
    if KEY not in node.meta:
        found = _expansion_of(node)
        node.meta[KEY] = found.calls
        if found.operand is not None:
            node.meta[OPERAND] = node.all_input_nodes[found.operand]
    return node.meta[KEY]


class Expansion(NamedTuple):
    """The calls that a node stands for, or None; which of its inputs it gives as it is, or None."""

    calls: list[Node] | None
    operand: int | None = None


def _expansion_of(node: Node) -> Expansion:
    inputs = [value_of(source) for source in node.all_input_nodes]
    if not all(isinstance(one, torch.Tensor) for one in inputs):
        return Expansion(None)
    return of_alike(node, "aclnn_expansions", lambda: _traced(node, inputs))


def of_alike(node: Node, what: str, make: Callable[[], T]) -> T:
    """The result of `make` for a node, or for one before it that is alike: layers repeat.

    It is kept with the mode of the node's fake tensors, with which it ends.
    """
    inputs = [value_of(source) for source in node.all_input_nodes]
    if not all(isinstance(one, torch.Tensor) for one in inputs):
        return make()
    modes = {one.fake_mode for one in inputs if isinstance(one, FakeTensor)}
    key = _description_of(node)
    if len(modes) != 1 or key is None:
        return make()
    known: dict[Any, T] = vars(modes.pop()).setdefault(what, {})
    if key not in known:
        known[key] = make()
    return known[key]


def _description_of(node: Node) -> Any:
    """All that the calls depend on which a node stands for; None if that cannot be compared."""
    places = {source: place for place, source in enumerate(node.all_input_nodes)}

    def described(argument: Any) -> Any:
        if isinstance(argument, Node):
            return Node, places[argument], _layout_of(value_of(argument))
        if isinstance(argument, dict):
            return dict, tuple([(name, described(one)) for name, one in argument.items()])
        if isinstance(argument, list | tuple):
            return type(argument), tuple([described(one) for one in argument])
        if isinstance(argument, slice):
            return slice, described((argument.start, argument.stop, argument.step))
        return type(argument), argument

    key = node.op, node.target, described(node.args), described(node.kwargs)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _layout_of(value: torch.Tensor) -> Any:
    strides = tuple(value.stride()) if value.layout is torch.strided else ()
    place = tuple(value.shape), strides, value.storage_offset()
    return value.dtype, value.device, value.layout, value.requires_grad, place


def _traced(node: Node, inputs: Sequence[Any]) -> Expansion:
    sources = node.all_input_nodes

    def call(*tensors: Any) -> Any:
        known = dict(zip(sources, tensors, strict=True))
        args, named = torch.fx.map_arg((node.args, node.kwargs), known.__getitem__)
        if node.op == "call_method":
            return getattr(args[0], str(node.target))(*args[1:], **named)
        if node.target is python.getitem and isinstance(args[0], torch.Tensor):
            return _subscript(*args)
        return node.target(*args, **named)

    try:
        graph = recorded(call, inputs)
    except Exception:  # whatever a function raises that is not meant for fake tensors
        return Expansion(None)
    found = [one for one in graph.nodes if one.op == "call_function"]
    places = graph.find_nodes(op="placeholder")
    given = graph.output_node().args[0]
    operand = places.index(given) if given in places else None
    return Expansion(found if found or operand is not None else None, operand)


def _subscript(tensor: Any, key: Any) -> Any:
    """A subscript in which a list of one number makes no tensor."""
    keys = list(key) if isinstance(key, tuple) else [key]
    lists = [place for place, one in enumerate(keys) if isinstance(one, list)]
    if len(lists) != 1 or any(not isinstance(one, slice | list) and one is not ... for one in keys):
        return tensor[key]
    (place,) = lists
    if len(keys[place]) != 1 or type(keys[place][0]) is not int:
        return tensor[key]
    (number,) = keys[place]
    keys[place] = slice(number, number + 1 or None)
    return tensor[tuple(keys)].clone()


def forget_expansion(node: Node) -> None:
    """Look at a node anew when it is asked for: its operands are about to change."""
    for key in (KEY, OPERAND, REASON):
        node.meta.pop(key, None)


def operand_given_by(node: Node) -> Node | None:
    """The operand that a node gives as it is, as dropout does where nothing is trained."""
    return None if expansion_of(node) != [] else node.meta.get(OPERAND)


def inlined(node: Node) -> None:
    """Replace a node by the calls that it stands for."""
    found = expansion_of(node)
    assert found, f"{node} stands for no calls"
    inner = found[0].graph
    with node.graph.inserting_before(node):
        places = inner.find_nodes(op="placeholder")
        known = dict(zip(places, node.all_input_nodes, strict=True))
        result = node.graph.graph_copy(inner, known)
    node.replace_all_uses_with(result)
    node.graph.erase_node(node)


def is_functional(graph_module: GraphModule) -> bool:
    """Whether nodes may be reordered: none writes into a tensor, as far as that is known, and none
    switches a mode in which others run."""
    for node in graph_module.graph.nodes:
        if node.op == "call_module" or _switches_mode(node.target):
            return False
        if node.op in CALLED and _writes(node):
            return False
    return True


def _switches_mode(target: Any) -> bool:
    """Whether what is called enters or leaves a mode: of gradients, of mixed precision, or of a transform
    of ``torch.func``."""
    if target in _SWITCHES:
        return True
    module = getattr(target, "__module__", None) or ""
    return module.startswith(("torch._functorch", "torch._C._functorch"))


def _writes(node: Node) -> bool:
    if node.op == "call_method" and str(node.target).endswith("_"):
        return True
    found = expansion_of(node)
    if found is None:
        return False
    targets = [one.target for one in found]
    return any(isinstance(t, torch._ops.OpOverload) and t._schema.is_mutable for t in targets)
