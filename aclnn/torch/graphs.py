"""Graphs of ATen's operators, as AOTAutograd makes them: values of nodes, and what describes a call."""

from __future__ import annotations

import operator as python
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from aclnn.torch.private import make_fx

MODULES = "nn_module_stack"  # in a node's meta, as PyTorch has it


def value_of(node: Node) -> Any:
    """Value that PyTorch expects a node to give: fake tensors."""
    return node.meta.get("val", node.meta.get("example_value"))


def values_of(node: Node) -> list[Any]:
    """Values that a node gives: one, or several."""
    value = value_of(node)
    return list(value) if isinstance(value, tuple | list) else [value]


def is_one_of_several(node: Node) -> bool:
    """Whether a node only names one of the results of another one."""
    return node.target is python.getitem and isinstance(value_of(node.args[0]), tuple | list)


def graph_of(function: Callable[..., Any], inputs: Sequence[torch.Tensor]) -> GraphModule:
    """The ATen operators that a function of tensors calls."""
    with torch.no_grad():
        return make_fx(function)(*inputs)


def alone(node: Node) -> GraphModule:
    """A graph of one node, whose inputs are the node's."""
    graph = Graph()
    known: dict[Node, Node] = {}
    for index, source in enumerate(node.all_input_nodes):
        known[source] = graph.placeholder(f"arg{index}_1")
        known[source].meta["val"] = value_of(source)
    made = graph.node_copy(node, known.__getitem__)
    results: Any = made
    if isinstance(value_of(node), tuple | list):
        results = []
        for index, value in enumerate(value_of(node)):
            if value is None:  # a gradient that is not wanted
                continue
            results.append(graph.call_function(python.getitem, (made, index)))
            results[-1].meta["val"] = value
        results = tuple(results)
    graph.output(results)
    return GraphModule(torch.nn.Module(), graph)


def key_of(node: Node) -> Any:
    """All that the result of a call depends on but for elements; None if that cannot be compared."""
    places = {source: index for index, source in enumerate(node.all_input_nodes)}

    def described(argument: Any) -> Any:
        if isinstance(argument, Node):
            return Node, places[argument], tuple(map(layout_of, values_of(argument)))
        if isinstance(argument, dict):
            return dict, tuple([(name, described(one)) for name, one in argument.items()])
        if isinstance(argument, list | tuple):
            return type(argument), tuple(map(described, argument))
        return type(argument), argument

    key = node.target, described(node.args), described(node.kwargs)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def layout_of(value: Any) -> Any:
    """All that is known of a value but its elements."""
    if not isinstance(value, torch.Tensor):
        return type(value)
    strides = tuple(value.stride()) if value.layout is torch.strided else ()
    index = tuple(value.shape), strides, value.storage_offset()
    return value.dtype, value.device, value.layout, value.is_neg(), value.is_conj(), index
