"""Views of products' results, moved behind the pointwise calls that read them.

A linear layer multiplies matrices: PyTorch views the rows of a batch as those of one matrix, and the result as a batch
again. Pointwise calls on that become steps of the product where they have its shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, Node

from aclnn.torch.counterparts import is_pointwise
from aclnn.torch.graphs import value_of

aten = torch.ops.aten
_VIEWS = (aten.view.default, aten._unsafe_view.default)
_PRODUCTS = (aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default)
MOST_STEPS = 8  # that a product takes in


def sink_views(graph: Graph) -> None:
    """Move the views of a graph of ATen's operators."""
    steps: dict[Node, int] = {}  # values of a product's shape, and how many steps made them
    for node in list(graph.nodes):
        if node.target in _PRODUCTS:
            steps[node] = 0
            continue
        source = _product_read_by(node, steps)
        if source is None:
            continue
        moved = _moved(graph, node, source)
        if moved is not None:
            steps[moved] = steps[source] + 1
    graph.eliminate_dead_code()


def _product_read_by(node: Node, steps: dict[Node, int]) -> Node | None:
    """The value of a product's shape that a pointwise call alone reads, through a view."""
    if node.op != "call_function" or not is_pointwise(node.target):
        return None
    for view in node.all_input_nodes:
        source = view.args[0] if view.target in _VIEWS else None
        if not isinstance(source, Node) or steps.get(source, MOST_STEPS) == MOST_STEPS:
            continue
        if len(view.users) == len(source.users) == 1 and _is_same_size(source, node):
            return source
    return None


def _is_same_size(source: Node, node: Node) -> bool:
    made, requested = value_of(source), value_of(node)
    if (
        not isinstance(requested, torch.Tensor)
        or made.numel() != requested.numel()
        or not made.numel()
    ):
        return False
    return made.is_contiguous() and requested.is_contiguous()


def _moved(graph: Graph, node: Node, source: Node) -> Node | None:
    """The call on operands of a product's shape, of which the node becomes a view."""
    shape = value_of(source).shape
    operands: dict[Node, Callable[[], Node]] = {}
    for one in node.all_input_nodes:
        found = _operand(graph, one, value_of(node).shape, shape)
        if found is None:
            return None
        operands[one] = found
    with graph.inserting_before(node):
        made = {one: make() for one, make in operands.items()}
        moved = graph.node_copy(node, made.__getitem__)
        requested = value_of(node)
        moved.meta["val"] = requested.view(shape)
        node.target, node.args, node.kwargs = aten.view.default, (moved, list(requested.shape)), {}
    return moved


def _operand(graph: Graph, node: Node, whole: Any, shape: Any) -> Callable[[], Node] | None:
    """Makes an operand as it is read in another shape of the same size; None if it cannot be viewed."""
    value = value_of(node)
    if not isinstance(value, torch.Tensor):
        return None
    if value.ndim == 0 or (value.ndim < len(shape) and _ends_alike(value.shape, whole, shape)):
        return lambda: node
    if value.shape != whole or not value.is_contiguous():
        return None
    if node.target in _VIEWS and value_of(node.args[0]).shape == shape:
        return lambda: node.args[0]

    def viewed() -> Node:
        made = graph.call_function(aten.view.default, (node, list(shape)))
        made.meta["val"] = value.view(shape)
        return made

    return viewed


def _ends_alike(own: Any, whole: Any, shape: Any) -> bool:
    """Whether an operand of fewer dimensions is read along the same last dimensions of both shapes."""
    count = len(own)
    return whole[-count:] == shape[-count:]
