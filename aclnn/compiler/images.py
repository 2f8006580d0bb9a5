"""Kernels of images as nodes of a graph."""

from __future__ import annotations

import math
from typing import Any

from aclnn import graph, isa

Dtypes = tuple[str, ...]

# In ONNX: an operator, the shapes that it takes operands in (None: their own), and attributes.
OnnxNode = tuple[str, tuple[tuple[int, ...] | None, ...], dict[str, Any]]


def kernel_of(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    """The kernel of a node, for the sizes and dtypes of its operands."""
    own, made = owner.value(node.inputs[0]).shape, owner.value(node.output).shape
    kernels, name = isa.image_kernels(), node.attr("kernel")
    options = {key: node.attr(key) for key in _OPTIONS if node.attr(key) is not None}
    make = kernels.windows_kernel if "size" in options else kernels.resize_kernel
    return make(
        name,
        inputs,
        outputs,
        rows=math.prod(made[:3]),
        width=own[3],
        results=made[3],
        **options,
    )


_OPTIONS = (
    *("size", "step", "before", "after", "counts_margin", "divisor"),
    *("scale", "corners", "exact"),
)


def onnx_of(owner: graph.Graph, node: graph.Node) -> OnnxNode | None:
    """A pool in ONNX: the operator, shapes of operands, and attributes.

    None where windows reach beyond the margins, which are then counted otherwise, or others divide.
    """
    if len(node.outputs) > 1 or node.attr("divisor") or node.attr("size") is None:
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
