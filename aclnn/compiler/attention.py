"""The kernel of attention as a node of a graph."""

from __future__ import annotations

from typing import Any

from aclnn import graph, isa

_OPTIONS = (
    *("mask", "shift_first", "window", "anchored", "tree", "prefix", "lengths", "key_lengths"),
    *("cumulative", "key_cumulative", "ahead", "slope_root"),
)


def kernel_of(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Any:
    """The kernel of a node, for the shapes and dtypes of its operands."""
    roles = node.attr("operands")
    shapes = [owner.value(id).shape for id in node.operands]
    given = {name: node.attr(name) for name in _OPTIONS if node.attr(name) is not None}
    return isa.attention_kernels().attention_kernel(
        dict(zip(roles, (*inputs, *outputs), strict=True)),
        dict(zip(roles, shapes, strict=True)),
        **given,
    )
