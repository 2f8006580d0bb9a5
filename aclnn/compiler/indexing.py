"""Kernels that write and read by indices as nodes of a graph."""

from __future__ import annotations

import math

from aclnn import graph
from aclnn._indexing_kernels import (
    class_kernel,
    one_hot_kernel,
    pieces_kernel,
    ramp_kernel,
    scatter_kernel,
    solve_kernel,
    spread_kernel,
    truth_kernel,
)

Dtypes = tuple[str, ...]


def _elements(owner: graph.Graph, *ids: int) -> int:
    return sum([math.prod(owner.value(id).shape) for id in ids])


def make_scatter(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Elements written along an axis where indices say."""
    shape = owner.value(node.output).shape
    axis = node.attr("axis")
    return scatter_kernel(
        inputs,
        outputs,
        axis=axis,
        how=node.attr("how"),
        lines=math.prod(shape) // max(1, shape[axis]),
        elements=_elements(owner, node.inputs[0], node.inputs[1]),
        wraps=node.attr("wraps", False),
    )


def make_put(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> graph.Kernel:
    """Values put where indices of the first dimensions say."""
    shape = owner.value(node.output).shape
    return pieces_kernel(
        node.attr("kernel"),
        inputs,
        outputs,
        chunks=math.prod(shape[len(inputs) - 2 : -1]) if len(shape) > len(inputs) - 2 else 1,
        elements=_elements(owner, *node.inputs[:2]),
        how=node.attr("how"),
        wraps=node.attr("wraps", False),
    )


def make_take(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Values taken where indices of the first dimensions say."""
    return pieces_kernel(
        node.attr("kernel"),
        inputs,
        outputs,
        chunks=_elements(owner, node.inputs[1]),
        elements=_elements(owner, node.output),
        wraps=node.attr("wraps", False),
    )


def make_one_hot(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Lines of one number with another in the place of an index."""
    shape = owner.value(node.output).shape
    axis = node.attr("axis")
    return one_hot_kernel(
        inputs,
        outputs,
        axis=axis,
        lines=math.prod(shape) // max(1, shape[axis]),
        elements=math.prod(shape),
    )


def make_classes(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Indices of the targets of a loss."""
    return class_kernel(
        inputs,
        outputs,
        classes=node.attr("classes"),
        ignored=node.attr("ignored"),
        elements=_elements(owner, node.output),
    )


def make_spread(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Each index as often as its count says."""
    return spread_kernel(inputs, outputs, elements=_elements(owner, node.output))


def make_ramp(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Numbers at equal distances."""
    return ramp_kernel(
        inputs,
        outputs,
        start=node.attr("start"),
        step=node.attr("step"),
        last=node.attr("last"),
        elements=_elements(owner, node.output),
    )


def make_truth(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Places of true elements, or elements where a mask is true."""
    return truth_kernel(
        node.attr("kernel"),
        inputs,
        outputs,
        elements=_elements(owner, node.inputs[0]),
        room=_elements(owner, node.outputs[0]),
        by_rows=node.attr("by_rows", True),
        exact=node.attr("exact", False),
        clears=node.attr("clears", False),
    )


def make_solve(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Systems whose matrix is a triangle, solved."""
    *batch, n, wide = owner.value(node.output).shape
    return solve_kernel(
        inputs,
        outputs,
        upper=node.attr("upper"),
        unit=node.attr("unit"),
        n=n,
        wide=wide,
        batch=math.prod(batch),
    )
