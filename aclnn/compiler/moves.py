"""Kernels of gathers, triangles, running sums and maxima as nodes of a graph."""

from __future__ import annotations

import math

from aclnn import graph, isa
from aclnn._opaque_kernels import OpaqueKernelRef


def kernel_of(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> OpaqueKernelRef:
    """The kernel of a node, for the sizes and dtypes of its operands."""
    source, made = owner.value(node.inputs[0]).shape, owner.value(node.output).shape
    axis = node.attr("axis", -1) % len(made)
    gathers = node.attr("kernel") == "gather"
    return OpaqueKernelRef(
        node.attr("kernel"),
        inputs,
        outputs[0],
        elements=math.prod(made if gathers else source),
        lines=_lines(node.attr("kernel"), made, axis),
        axis=axis,
        length=source[axis],
        diagonal=node.attr("diagonal", 0),
        wraps=node.attr("wraps", False),
        loops=_loops(node.attr("kernel"), inputs[0], outputs[0]),
    )


def _loops(kernel: str, source: str, made: str) -> tuple[int, int]:
    """Those of the instruction set in use, where there are any."""
    if kernel != "cumsum" or source != made:
        return 0, 0
    return isa.row_kernels().running_sums(made)


def _lines(kernel: str, shape: tuple[int, ...], axis: int) -> int:
    """Into how many parts the work may be cut: where one index stands for many, along it."""
    if kernel == "gather":
        return math.prod(shape[: axis + 1])
    if kernel in ("tril", "triu"):
        return math.prod(shape[:-1])
    return math.prod(shape) // max(1, shape[axis])
