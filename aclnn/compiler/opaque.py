"""Kernels that get their operands as a whole, of nodes of a graph."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib import import_module

from aclnn import graph, isa
from aclnn._opaque_kernels import FACTS, opaque_kernel


@cache
def maker_of(kernel: str) -> Callable[..., graph.Kernel]:
    """Function that makes a kernel for a node: one like `kernel_of`."""
    module, _, function = FACTS[kernel].maker.partition(":")
    maker: Callable[..., graph.Kernel] = getattr(import_module(module), function)
    return maker


def kernel_of(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> graph.Kernel:
    """The kernel of a node, for the sizes and dtypes of its operands."""
    source, made = owner.value(node.inputs[0]).shape, owner.value(node.output).shape
    axis = node.attr("axis", -1) % len(made)
    kernel = node.attr("kernel")
    facts = FACTS[kernel]
    has_loops = facts.loops and inputs[0] == outputs[0]
    return opaque_kernel(
        kernel,
        inputs,
        outputs[0],
        elements=math.prod(made if facts.indices >= 0 else source),
        lines=_CHUNKS[facts.chunks](made, axis),
        axis=axis,
        length=source[axis],
        diagonal=node.attr("diagonal", 0),
        wraps=node.attr("wraps", False),
        loops=getattr(isa.row_kernels(), facts.loops)(outputs[0]) if has_loops else (0, 0),
    )


# Into how many parts the work may be cut, by the shape of the result and the axis.
_CHUNKS: dict[str, Callable[[tuple[int, ...], int], int]] = {
    "": lambda shape, axis: 1,
    "lines": lambda shape, axis: math.prod(shape) // max(1, shape[axis]),
    "rows": lambda shape, axis: math.prod(shape[:-1]),
    # Where one index stands for many elements, along it.
    "outer": lambda shape, axis: math.prod(shape[: axis + 1]),
}
