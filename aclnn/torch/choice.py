"""Default choice of the backend: it follows from the graph alone, so that every process computes the same bits.

Nearly all that executors can do they do as fast as PyTorch, or faster. What was measured to be slower is named
here, by operator and size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import Node

from aclnn.torch.graphs import value_of, values_of

aten = torch.ops.aten
SMALL = 4096  # elements, up to which a call costs more than what it computes
LARGE = 1 << 18
CALL = 2.0  # what a part's call costs, in calls of PyTorch's
VIEW = 0.25  # and what PyTorch's call of a view costs, of which a part makes none


class Rules:
    """Takes what executors do as fast as PyTorch, as far as operators and sizes tell."""

    def reason_against(self, node: Node) -> str | None:
        """Why a call stays with PyTorch, be it in a chain."""
        is_slower = _SLOWER.get(node.target)
        if is_slower is None or _size_of(node) < SMALL or not is_slower(node):
            return None
        return "PyTorch's kernel is known to be faster"

    def pays(self, calls: Sequence[Node], n_views: int) -> bool:
        """Whether there is more to do than the call of a part costs."""
        if any(_size_of(one) >= SMALL for one in calls):
            return True
        return bool(calls) and len(calls) + VIEW * n_views >= CALL


def _size_of(node: Node) -> int:
    """The most elements that a call reads or gives in one tensor."""
    values = [value for one in (*node.all_input_nodes, node) for value in values_of(one)]
    return max([one.numel() for one in values if isinstance(one, torch.Tensor)], default=0)


def _chooses_elements(node: Node) -> bool:
    """Whether a call gathers single elements: indices choose in the last dimension."""
    indices: Any = node.args[1]
    return len(indices) == value_of(node.args[0]).ndim > 1


def _gives_a_large_table(node: Node) -> bool:
    return bool(value_of(node).numel() >= LARGE)


_SLOWER: dict[Any, Callable[[Node], bool]] = {
    aten.embedding_dense_backward.default: _gives_a_large_table,
    aten.index.Tensor: _chooses_elements,
    aten._unsafe_index.Tensor: _chooses_elements,
}
