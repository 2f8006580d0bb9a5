"""Kernels of images as nodes of a graph."""

from __future__ import annotations

import math
from typing import Any

from aclnn import graph, isa

Dtypes = tuple[str, ...]


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
