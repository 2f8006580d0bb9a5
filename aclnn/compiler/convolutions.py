"""Kernels of convolutions as nodes of a graph."""

from __future__ import annotations

from typing import Any

from aclnn import graph, isa

# In ONNX: an operator, the shapes that it takes operands in (None: their own), and attributes.
OnnxNode = tuple[str, tuple[tuple[int, ...] | None, ...], dict[str, Any]]


def kernel_of(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Any:
    """The kernel of a convolution of the shapes that a node's operands have."""
    operands = [owner.value(id) for id in node.operands]
    return isa.convolution_kernels().convolution_kernel(
        isa.product_kernels().multiply_floats_at(),
        inputs,
        outputs[0],
        (operands[0].shape, node.attr("taps"), operands[-1].shape),
        node.attr("stride"),
        node.attr("padding"),
        node.attr("dilation"),
        node.attr("groups"),
        node.attr("transposed"),
        node.attr("within", False),
    )


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


def onnx_of(owner: graph.Graph, node: graph.Node) -> OnnxNode | None:
    """A convolution in ONNX: the operator, the shapes that it takes operands in, and attributes.

    The standard has none that makes the gradient of weights.
    """
    if node.attr("positions") is not None:
        return None
    image, weight = map(owner.value, node.inputs[:2])
    sizes, made = image.shape[2:], owner.value(node.output).shape[2:]
    taps, steps, before = (node.attr(one) for one in ("taps", "stride", "padding"))
    gaps, groups = node.attr("dilation"), node.attr("groups")
    reach = [gap * (tap - 1) + 1 for gap, tap in zip(gaps, taps, strict=True)]
    attributes = {
        "kernel_shape": taps, "strides": steps, "dilations": gaps, "group": groups,
    }  # fmt: skip
    rows = zip(sizes, made, steps, before, reach, strict=True)
    if node.attr("transposed"):
        over = [(size - 1) * step + far - first - out for size, out, step, first, far in rows]
        attributes["output_padding"] = [max(0, -one) for one in over]
        attributes["pads"] = [*before, *[max(0, one) for one in over]]
        return "ConvTranspose", (None, (*weight.shape[:2], *taps), None), attributes
    after = [(out - 1) * step + far - size - first for size, out, step, first, far in rows]
    attributes["pads"] = [*before, *[max(0, one) for one in after]]
    channels = image.shape[1] // groups
    return "Conv", (None, (weight.shape[0], channels, *taps), None), attributes
