"""Convolutions and pools as operators of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aclnn.graph import Graph, Node

# In ONNX: an operator, the shapes that it takes operands in (None: their own), and attributes.
OnnxNode = tuple[str, tuple[tuple[int, ...] | None, ...], dict[str, Any]]


def _convolution(owner: Graph, node: Node) -> OnnxNode:
    """The operator, the shapes that it takes operands in, and attributes."""
    image, weight = map(owner.value, node.inputs[:2])
    sizes, made = image.shape[2:], owner.value(node.output).shape[2:]
    taps, steps, before, gaps = (
        node.attr(one)[-len(sizes) :] for one in ("taps", "stride", "padding", "dilation")
    )
    groups = node.attr("groups")
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


def _pool(owner: Graph, node: Node) -> OnnxNode | None:
    """The operator, shapes of operands, and attributes.

    None where windows reach beyond the margins, which are then counted otherwise, or others divide.
    """
    if len(node.outputs) > 1 or node.attr("divisor"):
        return None
    own, made = owner.value(node.inputs[0]).shape[-2:], owner.value(node.output).shape[-2:]
    sizes, steps = node.attr("size"), node.attr("step")
    before, after = node.attr("before"), node.attr("after")
    margins = zip(own, before, after, sizes, steps, made, strict=True)
    for length, first, last, size, step, count in margins:
        if (length + first + last - size) // step + 1 != count or max(first, last) >= size:
            return None
    attributes = {"kernel_shape": sizes, "strides": steps, "pads": [*before, *after]}
    counted = node.attr("counts_margin")
    if counted is None:
        return "MaxPool", (None,), attributes
    return (
        "AveragePool",
        (None,),
        attributes | {"count_include_pad": int(bool(counted))},
    )


# By kernel.
IMAGE_OPERATORS: Mapping[str, Callable[[Graph, Node], OnnxNode | None]] = {
    "convolution": _convolution,
    "window_maxima": _pool,
    "window_means": _pool,
}
