"""Kernels of convolutions as nodes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aclnn import graph, isa
from aclnn.compiler.products import byte_strides, step_kernels
from aclnn.graph.result_steps import ResultStep, steps_of


def kernel_of(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Any:
    """The kernel of a convolution of the shapes that a node's operands have."""
    operands = [owner.value(id) for id in node.operands]
    own, steps = node.attr("reads_itself", len(inputs)), steps_of(node)
    end = _end_of(steps, own, operands)
    made = None
    if steps and end is None:
        made = step_kernels(steps, node.attr("sums"), own, operands)
    return isa.convolution_kernels().convolution_kernel(
        isa.product_kernels().multiply_floats_at(),
        inputs[:own],
        outputs[0],
        (operands[0].shape, node.attr("taps"), operands[-1].shape),
        [byte_strides(value) for value in operands],
        node.attr("stride"),
        node.attr("padding"),
        node.attr("dilation"),
        node.attr("groups"),
        node.attr("transposed"),
        node.attr("within", False),
        steps=made,
        end=end,
    )


def _end_of(
    steps: Sequence[ResultStep], own: int, operands: Sequence[graph.Value]
) -> tuple[str, bool, bool] | None:
    """Steps that results take in registers: an operand is added, and an activation follows.

    None for other ones.
    """
    rest, adds, scales_sums = [*steps], False, False
    if not rest or any(value.strides[-1] != 1 for value in operands[own:] if value.shape[-1] > 1):
        return None
    first = rest[0]
    if first.kernel == "add" and -1 in first.inputs and max(first.inputs) >= own:
        adds, scales_sums = True, first.inputs[1] == -1
        del rest[0]
    if not rest:
        return ("", adds, scales_sums) if adds else None
    last = rest.pop(0)
    if rest or not isa.convolution_kernels().ends(last.kernel) or last.inputs[0] != -1 - adds:
        return None
    return last.kernel, adds, scales_sums


def slopes_of(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Any:
    """The kernel of the gradient of a convolution's weights."""
    grad, image, *_ = [owner.value(id) for id in node.operands]
    return isa.convolution_kernels().slopes_kernel(
        isa.product_kernels().multiply_floats_at(),
        inputs,
        outputs[0],
        (node.attr("positions"), node.attr("taps"), image.shape),
        grad.shape[1],
        node.attr("stride"),
        node.attr("padding"),
        node.attr("dilation"),
        node.attr("groups"),
    )
