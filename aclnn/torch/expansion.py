"""Nodes and modules as graphs of ATen's operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

KEY = "aclnn_expansion"  # in a node's meta
OPERAND = "aclnn_operand"
_SWITCHES = (
    torch._C._set_grad_enabled,
    torch.amp.autocast_mode._enter_autocast,
    torch.amp.autocast_mode._exit_autocast,
)
CALLED = ("call_function", "call_method")


def value_of(node: Node) -> Any:
    """What PyTorch expects a node to give: fake tensors."""
    return node.meta.get("val", node.meta.get("example_value"))


def expanded(function: Callable[..., Any], inputs: Sequence[Any]) -> GraphModule:
    """The ATen operators that a function of tensors calls."""
    # Numbers, and gradients that are zero, become tensors on the way: fake ones only where the mode is on.
    modes = [one.fake_mode for one in inputs if isinstance(one, FakeTensor)]
    with torch.no_grad(), modes[0] if modes else nullcontext():
        return make_fx(function)(*inputs)


def expansion_of(node: Node) -> list[Node] | None:
    """The calls of ATen's operators that a node stands for: itself where it is one; None if unknown.

    Each has the value that it gives in ``meta["val"]``.
    """
    if isinstance(node.target, torch._ops.OpOverload):
        return [node]
    if KEY not in node.meta:
        node.meta[KEY] = _expansion_of(node)
    return node.meta[KEY]


def _expansion_of(node: Node) -> list[Node] | None:
    sources = node.all_input_nodes
    inputs = [value_of(source) for source in sources]
    if not all(isinstance(one, torch.Tensor) for one in inputs):
        return None

    def call(*tensors: Any) -> Any:
        known = dict(zip(sources, tensors, strict=True))
        args, named = torch.fx.map_arg((node.args, node.kwargs), known.__getitem__)
        if node.op == "call_method":
            return getattr(args[0], str(node.target))(*args[1:], **named)
        return node.target(*args, **named)

    try:
        graph = expanded(call, inputs).graph
    except Exception:  # whatever a function raises that is not meant for fake tensors
        return None
    found = [one for one in graph.nodes if one.op == "call_function"]
    places = graph.find_nodes(op="placeholder")
    given = graph.output_node().args[0]
    if given in places:
        node.meta[OPERAND] = sources[places.index(given)]
    return found if found or given in places else None


def forget_expansion(node: Node) -> None:
    """Look at a node anew when it is asked for: its operands are about to change."""
    node.meta.pop(KEY, None)
    node.meta.pop(OPERAND, None)


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
    """Whether nodes may be reordered: none writes into a tensor, as far as that can be told, and none
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
