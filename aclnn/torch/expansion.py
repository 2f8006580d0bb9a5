"""Nodes and modules as graphs of ATen's operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

KEY = "aclnn_expansion"  # in a node's meta
_CALLED = ("call_function", "call_method")


def value_of(node: Node) -> Any:
    """What PyTorch expects a node to give: fake tensors."""
    return node.meta.get("val", node.meta.get("example_value"))


def expanded(function: Callable[..., Any], inputs: Sequence[Any]) -> GraphModule:
    """The ATen operators that a function of tensors calls."""
    with torch.no_grad():
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
    gives_operand = graph.output_node().args[0] in graph.find_nodes(op="placeholder")
    return found if found or gives_operand else None


def is_functional(graph_module: GraphModule) -> bool:
    """Whether no node writes into a tensor, as far as that can be told."""
    for node in graph_module.graph.nodes:
        if node.op == "call_module":
            return False
        if node.op in _CALLED and _writes(node):
            return False
    return True


def _writes(node: Node) -> bool:
    if node.op == "call_method" and str(node.target).endswith("_"):
        return True
    found = expansion_of(node)
    if found is None:
        return False
    targets = [one.target for one in found]
    return any(isinstance(t, torch._ops.OpOverload) and t._schema.is_mutable for t in targets)
