"""Passes over a functional graph of Dynamo's: nodes without effect, constant folding, dead nodes.

Shapes are known when a graph is compiled, so masks and positions that models make from them are
constants, and half of what converts, copies or drops out gives its operand. Each of these nodes costs
a call of PyTorch's, of 1 to 10 µs.
"""

from __future__ import annotations

import operator as python
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule, Node

from aclnn.torch.counterparts import view_of
from aclnn.torch.expansion import (
    CALLED,
    expansion_of,
    forget_expansion,
    inlined,
    operand_given_by,
    value_of,
)

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
LARGEST_CONSTANT = 1 << 20  # bytes: larger ones are computed by each call


def fold(graph_module: GraphModule) -> int:
    """Apply the passes in place, and tell how many nodes are gone."""
    before = _n_calls(graph_module)
    _fill_with_numbers(graph_module)
    _remove_nodes_without_effect(graph_module)
    constants = _constants_of(graph_module)
    if constants and not torch.is_grad_enabled():
        for node in list(graph_module.graph.nodes):
            if _expands_to_constants(node, constants):
                inlined(node)
        constants = _constants_of(graph_module)
    _replace_constants(graph_module, constants)
    _remove_dead_nodes(graph_module)
    return before - _n_calls(graph_module)


def _fill_with_numbers(graph_module: GraphModule) -> None:
    """Let what makes a tensor of a number be a call of ATen's, which the other is none of."""
    for node in graph_module.graph.nodes:
        value = value_of(node)
        if node.target is not torch.tensor or node.kwargs.get("requires_grad") or value is None:
            continue
        if len(node.args) == 1 and isinstance(node.args[0], bool | int | float):
            node.target, node.args = torch.full, ((), node.args[0])
            node.kwargs = {"dtype": value.dtype, "device": value.device}
            forget_expansion(node)


def _n_calls(graph_module: GraphModule) -> int:
    return sum(node.op in CALLED for node in graph_module.graph.nodes)


def _remove_nodes_without_effect(graph_module: GraphModule) -> None:
    for node in list(graph_module.graph.nodes):
        if node.op not in CALLED:
            continue
        source = operand_given_by(node) or _viewed_as_it_is(node)
        if source is not None:
            for user in list(node.users):
                forget_expansion(user)  # it may have one operand less
            node.replace_all_uses_with(source)
            graph_module.graph.erase_node(node)


def _viewed_as_it_is(node: Node) -> Node | None:
    """The operand of a view that shows all of it as it is; None for what a model returns, since a
    caller may change the shape of the one and not of the other."""
    found = expansion_of(node)
    if not found or any(user.op == "output" for user in node.users):
        return None
    if len(node.all_input_nodes) != 1 or any(view_of(one.target) is None for one in found):
        return None
    (source,) = node.all_input_nodes
    seen, own = value_of(source), value_of(node)
    if not isinstance(own, torch.Tensor) or seen.requires_grad != own.requires_grad:
        return None
    return source if _layout_of(seen) == _layout_of(own) else None


def _layout_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset()


# --- Constants ------------------------------------------------------------------------------------


def _constants_of(graph_module: GraphModule) -> set[Node]:
    """Nodes that give the same at each call: they depend on no argument, and on no random number.

    What a model returns is none, nor what that may show: a caller may write into it.
    """
    found: set[Node] = set()
    for node in graph_module.graph.nodes:
        if node.op not in CALLED or not _is_pure(node):
            continue
        if found.issuperset(node.all_input_nodes) or _reads_shapes_alone(node):
            found.add(node)
    return found - seen_by_callers(graph_module)


def _reads_shapes_alone(node: Node) -> bool:
    """Whether a node fills a tensor that is like another one."""
    first, *others = [one.target for one in expansion_of(node) or ()] or [None]
    return first in _FILLING and all(one is aten.detach.default for one in others)


def seen_by_callers(graph_module: GraphModule) -> set[Node]:
    """Results of a graph, and the nodes of which they may be views."""
    found: set[Node] = set()
    left = list(graph_module.graph.output_node().all_input_nodes)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.all_input_nodes if may_be_view(node) else []
    return found


def may_be_view(node: Node) -> bool:
    """Whether what a node gives may show one of its operands."""
    if node.op not in CALLED:
        return False
    if node.target is python.getitem and isinstance(value_of(node.args[0]), tuple | list):
        return True
    found = expansion_of(node)
    if found is None:
        return True
    calls = [one.target for one in found if isinstance(one.target, torch._ops.OpOverload)]
    return any(argument.alias_info for call in calls for argument in call._schema.arguments)


def _is_pure(node: Node) -> bool:
    """Whether a node computes a tensor, or several, from its operands alone."""
    value = value_of(node)
    several = value if isinstance(value, tuple | list) else [value]
    if not several or not all(_is_small(one) for one in several):
        return False
    if node.target is python.getitem and isinstance(value_of(node.args[0]), tuple | list):
        return True
    found = expansion_of(node)
    return found is not None and not any(map(_is_random_or_writes, found))


def _is_small(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
        return False
    if value.layout is not torch.strided or type(value.numel()) is not int:
        return False
    return value.numel() * value.element_size() <= LARGEST_CONSTANT


def _is_random_or_writes(call: Node) -> bool:
    target = call.target
    if not isinstance(target, torch._ops.OpOverload):
        return target is not python.getitem
    random = torch.Tag.nondeterministic_seeded in target.tags
    return random or target._schema.is_mutable or "empty" in target._opname


def _expands_to_constants(node: Node, constants: set[Node]) -> bool:
    """Whether some, but not all, of the calls that a node stands for depend on constants alone."""
    if (
        node.op not in CALLED
        or node in constants
        or not constants.intersection(node.all_input_nodes)
    ):
        return False
    found = expansion_of(node)
    if found is None or len(found) < 2 or not isinstance(value_of(node), torch.Tensor):
        return False
    if found[0].graph.find_nodes(op="get_attr"):
        return False
    inputs = found[0].graph.find_nodes(op="placeholder")
    known = {a for a, b in zip(inputs, node.all_input_nodes, strict=True) if b in constants}
    folded = 0
    for call in found:
        if not known.issuperset(call.all_input_nodes) or _is_random_or_writes(call):
            continue
        known.add(call)
        folded += bool(call.all_input_nodes) and view_of(call.target) is None
    return folded > 0


def _replace_constants(graph_module: GraphModule, constants: set[Node]) -> None:
    """Compute constants once, those that other nodes read."""
    computed: dict[Node, Any] = {}
    # Not as tensors of inference mode: a graph of another mode may share them.
    with torch.no_grad(), torch.inference_mode(False), unset_fake_temporarily():
        for node in graph_module.graph.nodes:
            if node in constants:
                computed[node] = _result_of(node, computed)
    for node, value in computed.items():
        if isinstance(value, torch.Tensor) and any(user not in constants for user in node.users):
            _put(graph_module, node, value)


def _result_of(node: Node, computed: dict[Node, Any]) -> Any:
    def operand(source: Node) -> Any:  # of what is filled only the shape counts
        return computed[source] if source in computed else _like(value_of(source))

    args, named = torch.fx.map_arg((node.args, node.kwargs), operand)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **named)
    return node.target(*args, **named)


def _like(value: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)


def _put(graph_module: GraphModule, node: Node, value: torch.Tensor) -> None:
    name = f"_constant_{node.name}"
    graph_module.register_buffer(name, value, persistent=False)
    with graph_module.graph.inserting_before(node):
        constant = graph_module.graph.get_attr(name)
    constant.meta = dict(node.meta)
    node.replace_all_uses_with(constant)


def _remove_dead_nodes(graph_module: GraphModule) -> None:
    for node in reversed(list(graph_module.graph.nodes)):
        if node.op in CALLED and not node.users and _is_pure(node):
            graph_module.graph.erase_node(node)
