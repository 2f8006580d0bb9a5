"""Random numbers that are drawn apart from what reads them.

What is drawn depends on a shape, not on elements. A call that takes its shape from a value that is computed would divide
what computes that from what reads the numbers: it takes the shape from memory that nobody writes instead. Dropout
becomes a mask that is drawn so, and products with it. The numbers are those of PyTorch's own kernels, in their order.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node

from aclnn.torch.effects import has_effect
from aclnn.torch.graphs import is_one_of_several, value_of

aten = torch.ops.aten
_FILLING = (  # whose first operand they fill with numbers, whatever it was, as names of operators
    "rand_like", "randn_like", "randint_like", "uniform", "normal_functional", "exponential", "cauchy",
    "geometric", "log_normal", "random",
)  # fmt: skip


def draw_apart(graph_module: GraphModule) -> None:
    """Let what draws random numbers in a graph of ATen's operators read no value that is computed."""
    for node in list(graph_module.graph.nodes):
        if not has_effect(node):
            continue
        if node.target is aten.native_dropout.default and _draws_as_bernoulli(node):
            _divide(node)
        elif _fills(node) and node.args[0].all_input_nodes:
            with node.graph.inserting_before(node):
                node.args = (_unwritten(node.args[0]), *node.args[1:])


def _fills(node: Node) -> bool:
    """Whether a call fills the shape of its first operand, whose elements it does not read."""
    return node.target is aten.bernoulli.p or getattr(node.target, "_opname", "") in _FILLING


def _draws_as_bernoulli(dropout: Node) -> bool:
    """Whether a call of dropout draws a mask, and that as `bernoulli` does: its elements lie in their order."""
    x, _, train = dropout.args
    value = value_of(x)
    if not train or not value.numel() or not value.is_contiguous():
        return False
    return all(map(is_one_of_several, dropout.users))


def _divide(dropout: Node) -> None:
    """Let dropout be a mask that is drawn, and products, which round as PyTorch's kernel does."""
    x, p, _ = dropout.args
    kept, dtype = 1.0 - p, value_of(x).dtype
    scale = 1.0 / kept if kept else 0.0
    with dropout.graph.inserting_before(dropout):
        mask = _call(aten.bernoulli.p, (_unwritten(x, torch.bool), kept), dropout, torch.bool)
        factor = _call(aten._to_copy.default, (mask,), dropout, dtype)
        factor = _call(aten.mul.Tensor, (factor, scale), dropout, dtype)
        results = _call(aten.mul.Tensor, (x, factor), dropout, dtype), mask
    for one in list(dropout.users):
        one.replace_all_uses_with(results[one.args[1]])
        one.graph.erase_node(one)
    dropout.graph.erase_node(dropout)


def _call(target: Any, args: tuple[Any, ...], dropout: Node, dtype: torch.dtype) -> Node:
    """A call that is part of dropout: its result has the layout of dropout's operand."""
    named = {"dtype": dtype} if target is aten._to_copy.default else {}
    made = dropout.graph.call_function(target, args, named)
    made.meta = {**dropout.meta, "val": value_of(dropout.args[0]).to(dtype)}
    return made


def _unwritten(like: Node, dtype: Any = None) -> Node:
    """Memory of the layout of a value, which reads nothing of it."""
    value = value_of(like)
    options = {"dtype": dtype or value.dtype, "device": value.device}
    made = like.graph.call_function(
        aten.empty_strided.default, (list(value.shape), list(value.stride())), options
    )
    made.meta["val"] = value.to(options["dtype"])
    return made
