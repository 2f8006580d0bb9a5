"""Users' autograd functions in Dynamo's graphs, as calls of tensors alone.

Dynamo has a ``torch.autograd.Function`` as one node, whose forward and backward graphs are operands. As
what the node calls they need no place in the graph: a part can contain the node, whose gradient stays the function's
own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node


class Applied:
    """An autograd function of a graph: calls it with the tensors among its arguments.

    Parameters
    ----------
    function : callable
        PyTorch's, which applies graphs.
    args : tuple
        Its arguments; tensors are places among those of a call.
    options : dict
    """

    def __init__(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]):
        self.__name__ = "autograd_function_apply"
        self._function = function
        self._args = args
        self._options = options

    def __call__(self, *tensors: Any) -> Any:
        args = [tensors[one.number] if isinstance(one, _Place) else one for one in self._args]
        return self._function(*args, **self._options)


class _Place:
    """Stands for a tensor among arguments."""

    def __init__(self, number: int):
        self.number = number


def bind_graphs(graph_module: GraphModule) -> None:
    """Let nodes that apply autograd functions have tensors alone as operands."""
    for node in list(graph_module.graph.nodes):
        if (
            node.op == "call_function"
            and node.target is torch.ops.higher_order.autograd_function_apply
        ):
            _bind(graph_module, node)


def _bind(owner: GraphModule, node: Node) -> None:
    tensors: list[Node] = []

    def bound(argument: Any) -> Any:
        if not isinstance(argument, Node):
            return argument
        if argument.op == "get_attr":
            module = getattr(owner, str(argument.target), None)
            if isinstance(module, GraphModule):
                return module
        tensors.append(argument)
        return _Place(len(tensors) - 1)

    args = tuple([bound(one) for one in node.args])
    node.target = Applied(node.target, args, dict(node.kwargs))
    node.args, node.kwargs = tuple(tensors), {}


def holds_applied(graph_module: GraphModule) -> bool:
    """Whether a graph applies an autograd function."""
    return any(isinstance(node.target, Applied) for node in graph_module.graph.nodes)
