"""Kernels of matrix products as nodes of a graph."""

from __future__ import annotations

from typing import Any

from aclnn import graph, isa


def kernel_of(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Any:
    """The kernel of a product of the shapes and strides that a node's operands have."""
    operands = [owner.value(id) for id in node.operands]
    *batch, m, n = operands[-1].shape
    return isa.product_kernels().product_kernel(
        inputs,
        outputs[0],
        batch_shape=tuple(batch),
        m=m,
        n=n,
        k=operands[0].shape[-1],
        strides=[_byte_strides(value) for value in operands],
        scaled=bool(node.attr("params")),
        round_inputs_to_half=node.attr("round_inputs_to_half", False),
    )


def _byte_strides(value: graph.Value) -> tuple[int, ...]:
    return tuple([stride * value.dtype.itemsize for stride in value.strides])
