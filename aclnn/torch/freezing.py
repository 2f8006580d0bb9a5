"""Weights that are laid out once for products, as frozen models have them.

A linear layer multiplies with its weight transposed. PyTorch has the elements of its rows in order, which are
transposed while they are packed, by each call: with few rows of results that takes as long as the product. A frozen
weight has a copy whose columns have their elements in order. Whoever asks for it promises to change weights by
PyTorch's functions alone, which count changes: the copy is made again then.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node

from aclnn.torch.graphs import value_of

aten = torch.ops.aten
_LINEAR = (torch.nn.functional.linear, aten.linear.default)


class _Copy(NamedTuple):
    """A copy of a weight, and when it was made of what."""

    source: weakref.ref[torch.Tensor]
    version: int
    address: int
    tensor: torch.Tensor

    def is_of(self, weight: torch.Tensor) -> bool:
        """Whether it is a copy of a weight as that is now."""
        source = self.source()
        if source is None or source is not weight:
            return False
        return self.version == weight._version and self.address == weight.data_ptr()


class Frozen:
    """A compiled graph that gets copies of weights in the place of these.

    Parameters
    ----------
    places : sequence of int
        Which of the arguments they are.

    Attributes
    ----------
    size : int
        Bytes of the copies.
    """

    def __init__(self, compiled: Callable[..., Any], places: Sequence[int]):
        self._compiled = compiled
        self._copies: dict[int, _Copy | None] = dict.fromkeys(places)

    @property
    def size(self) -> int:
        """Bytes of the copies that there are."""
        copies = [one.tensor for one in self._copies.values() if one is not None]
        return sum(one.numel() * one.element_size() for one in copies)

    def __call__(self, *inputs: Any) -> Any:
        arguments = list(inputs)
        for index, copy in self._copies.items():
            weight = inputs[index]
            if copy is None or not copy.is_of(weight):
                copy = self._copied(index, weight)
            arguments[index] = copy.tensor
        return self._compiled(*arguments)

    def _copied(self, index: int, weight: torch.Tensor) -> _Copy:
        # Its version first: a change meanwhile makes another copy.
        made = _Copy(weakref.ref(weight), weight._version, weight.data_ptr(), turned(weight))
        self._copies[index] = made
        return made


def turned(weight: torch.Tensor) -> torch.Tensor:
    """A copy of a matrix whose columns have their elements in order."""
    with torch.no_grad(), torch.inference_mode(False):
        return weight.detach().t().contiguous().t()


def freeze(graph_module: GraphModule, inputs: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """Let a graph take frozen weights: which of its arguments they are, and the arguments with copies."""
    places = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    frozen = [
        index
        for index, (node, value) in enumerate(zip(places, inputs, strict=True))
        if _is_weight(node, value)
    ]
    arguments = list(inputs)
    for index in frozen:
        key = "val" if "val" in places[index].meta else "example_value"
        places[index].meta[key] = arguments[index] = turned(value_of(places[index]))
    return frozen, arguments


def _is_weight(node: Node, argument: Any) -> bool:
    """Whether an argument is a parameter that linear layers alone read."""
    value = value_of(node)
    if not isinstance(argument, torch.nn.Parameter) or argument.is_inference():
        return False
    if not isinstance(value, torch.Tensor) or value.ndim != 2 or not value.is_contiguous():
        return False
    return bool(node.users) and all(
        user.target in _LINEAR
        and user.args[1] is node
        and node not in (user.args[0], *user.args[2:])
        for user in node.users
    )
