"""Kernels of convolutions as nodes of a graph."""

from __future__ import annotations

from typing import Any

from aclnn import graph, isa


def kernel_of(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Any:
    """The kernel of a convolution of the shapes that a node's operands have."""
    operands = [owner.value(id) for id in node.operands]
    return isa.convolution_kernels().ConvolutionKernelRef(
        inputs,
        outputs[0],
        (operands[0].shape, node.attr("taps"), operands[-1].shape),
        node.attr("stride"),
        node.attr("padding"),
        node.attr("dilation"),
        node.attr("groups"),
        node.attr("transposed"),
    )
