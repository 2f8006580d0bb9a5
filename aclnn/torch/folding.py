"""Passes over a functional graph: nodes without effect, constant folding, dead nodes.

Shapes are known when a graph is compiled, so masks and positions that models make from them are
constants. Each of these nodes costs a call of PyTorch's, of 1 to 10 µs.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import torch
from torch.fx import GraphModule, Node

from aclnn.torch.counterparts import view_of
from aclnn.torch.effects import has_effect, may_be_view, seen_by_callers, shown_by
from aclnn.torch.graphs import is_one_of_several, layout_of, value_of, values_of
from aclnn.torch.private import DisableAutocast, OpOverload, disable_current_modes

aten = torch.ops.aten
_FILLING = (
    aten.fill.Scalar,
    aten.full_like.default,
    aten.zeros_like.default,
    aten.ones_like.default,
    aten.new_full.default,
    aten.new_zeros.default,
    aten.new_ones.default,
)
_BY_NUMBER = (aten.pow.Tensor_Scalar, aten.mul.Scalar, aten.mul.Tensor)
_MADE = (aten.clone.default, *_BY_NUMBER)  # which is memory of its own
LARGEST_CONSTANT = 1 << 20  # bytes: larger ones are computed by each call


def fold(graph_module: GraphModule) -> int:
    """Apply the passes in place, and tell how many nodes are gone."""
    before = _n_calls(graph_module)
    _name_views_by_shape(graph_module)
    _remove_nodes_without_effect(graph_module)
    _replace_constants(graph_module, _constants_of(graph_module))
    graph_module.graph.eliminate_dead_code()
    return before - _n_calls(graph_module)


def _n_calls(graph_module: GraphModule) -> int:
    return sum(node.op == "call_function" for node in graph_module.graph.nodes)


def _name_views_by_shape(graph_module: GraphModule) -> None:
    """Let views by strides that show all of a tensor in its order be views of a shape, and what is written into such a
    view be the tensor."""
    results = set(graph_module.graph.output_node().all_input_nodes)
    seen = seen_by_callers(graph_module)
    for node in list(graph_module.graph.nodes):
        if not _shows_all(node):
            continue
        is_view = node.target is aten.as_strided.default
        source = node.args[0] if is_view else node.args[1]
        # A result has strides for sizes of 1 as well, and what is written is memory of its own.
        if node not in (results if is_view else seen) and value_of(source).is_contiguous():
            node.target, node.kwargs = aten.view.default, {}
            node.args = (source, list(value_of(node).shape))


def _shows_all(node: Node) -> bool:
    """Whether a view by strides shows all elements of a contiguous tensor, in their order."""
    if node.target is aten.as_strided.default:
        size, strides, *offset = node.args[1:]
    elif node.target is aten.as_strided_scatter.default:
        size, strides, *offset = node.args[2:]
    else:
        return False
    base = value_of(node.args[0])
    start = offset[0] if offset and offset[0] is not None else base.storage_offset()
    if (
        start != base.storage_offset()
        or not base.is_contiguous()
        or math.prod(size) != base.numel()
    ):
        return False
    step = 1
    for count, stride in zip(reversed(size), reversed(strides), strict=True):
        if count != 1 and stride != step:
            return False
        step *= count
    return True


def _remove_nodes_without_effect(graph_module: GraphModule) -> None:
    """Let what reads a view of all of a value, as it is, read the value, and so for copies and products with 1."""
    results = set(graph_module.graph.output_node().all_input_nodes)
    shown = Counter([one for result in results for one in _all_shown_by(result)])
    seen = seen_by_callers(graph_module)
    for node in list(graph_module.graph.nodes):
        while node.target is aten.detach.default and node.args[0].target is aten.detach.default:
            node.args = node.args[0].args
        is_needed = node in seen and (node.target in _MADE or _hides_gradient(node, results))
        source = None if is_needed else _given_by(node)
        if source is None or (node in results and not _is_kept_alone(node, source, shown)):
            continue
        node.replace_all_uses_with(source)
        graph_module.graph.erase_node(node)


def _hides_gradient(node: Node, results: set[Node]) -> bool:
    """Whether views of a node are results, which have a gradient where what they show has one."""
    return node.target is aten.detach.default and node not in results


def _given_by(node: Node) -> Node | None:
    """The operand whose elements a node gives in the same layout."""
    if node.op != "call_function" or len(node.all_input_nodes) != 1:
        return None
    if node.target in _BY_NUMBER:
        if type(node.args[1]) not in (int, float) or node.args[1] != 1:
            return None
    elif node.target is not aten.clone.default and view_of(node.target) is None:
        return None
    (source,) = node.all_input_nodes
    seen, own = value_of(source), value_of(node)
    is_same = isinstance(own, torch.Tensor) and layout_of(seen) == layout_of(own)
    return source if is_same else None


def _is_kept_alone(node: Node, source: Node, shown: Counter[Node]) -> bool:
    """Whether a result may be the operand: autograd keeps that, and no other result is or shows it, or what it shows.

    A caller may change the shape of one tensor, or write into it, and not of another one; and what shows a result has
    the gradient of that. `shown` counts how many results are a node, or views of it.
    """
    if node.target is not aten.detach.default or source.op != "call_function":
        return False
    return all(shown[one] == 1 for one in _all_shown_by(source))


def _all_shown_by(node: Node) -> set[Node]:
    """A node, and all that it may be a view of."""
    found: set[Node] = set()
    left = [node]
    while left:
        found.add(one := left.pop())
        if not is_one_of_several(one) or may_be_view(one.args[0]):  # others are apart in memory
            left += shown_by(one)
    return found


# --- Constants ------------------------------------------------------------------------------------


def _constants_of(graph_module: GraphModule) -> set[Node]:
    """Nodes that give the same at each call: they depend on no argument, and on no random number."""
    found: set[Node] = set()
    for node in graph_module.graph.nodes:
        if (node.op == "get_attr" and isinstance(value_of(node), torch.Tensor)) or (
            node.op == "call_function" and _is_pure(node) and _reads_none(node, found)
        ):
            found.add(node)
    return found


def _reads_none(node: Node, constants: set[Node]) -> bool:
    """Whether a node depends on constants alone, or on the shape of what it is filled like."""
    return constants.issuperset(node.all_input_nodes) or node.target in _FILLING


def _is_pure(node: Node) -> bool:
    """Whether a node computes a tensor, or several, from its operands alone."""
    if not all(map(_is_small, values_of(node))):
        return False
    if is_one_of_several(node):
        return True
    if not isinstance(node.target, OpOverload) or has_effect(node):
        return False
    return node.target.namespace == "aten" and "empty" not in node.target._opname


def _is_small(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
        return False
    if value.layout is not torch.strided or type(value.numel()) is not int:
        return False
    return value.numel() * value.element_size() <= LARGEST_CONSTANT


def _replace_constants(graph_module: GraphModule, constants: set[Node]) -> None:
    """Compute constants once, and replace those that other nodes read.

    What a model returns is replaced by none, nor what that may show: a caller may write into it.
    """
    replaced = constants - seen_by_callers(graph_module)
    computed: dict[Node, Any] = {}
    # Not as tensors of inference mode: a graph of another mode may share them.
    with torch.no_grad(), torch.inference_mode(False), disable_current_modes():
        for node in graph_module.graph.nodes:
            if node in constants:
                computed[node] = _result_of(graph_module, node, computed)
    for node, value in computed.items():
        is_read = node in replaced and any(user not in replaced for user in node.users)
        if node.op != "get_attr" and isinstance(value, torch.Tensor) and is_read:
            _put(graph_module, node, value)


def _result_of(graph_module: GraphModule, node: Node, computed: dict[Node, Any]) -> Any:
    if node.op == "get_attr":
        return attribute(graph_module, str(node.target))

    def operand(source: Node) -> Any:  # of what is filled only the shape counts
        return computed[source] if source in computed else _like(value_of(source))

    args, named = torch.fx.map_arg((node.args, node.kwargs), operand)
    with DisableAutocast():
        return node.target(*args, **named)


def attribute(owner: Any, path: str) -> Any:
    """The object that a dotted path names."""
    for name in path.split("."):
        owner = getattr(owner, name)
    return owner


def _like(value: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)


def _put(graph_module: GraphModule, node: Node, value: torch.Tensor) -> None:
    name = f"_constant_{node.name}"
    graph_module.register_buffer(name, value, persistent=False)
    with graph_module.graph.inserting_before(node):
        constant = graph_module.graph.get_attr(name)
    constant.meta = dict(node.meta)
    node.replace_all_uses_with(constant)
