"""Kernels that write and read by indices as nodes of a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from aclnn import graph
from aclnn._indexing_kernels import (
    one_hot_kernel,
    pieces_kernel,
    ramp_kernel,
    scatter_kernel,
    solve_kernel,
    spread_kernel,
    truth_kernel,
)

Dtypes = tuple[str, ...]


def kernel_of(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    """The kernel of a node, for the sizes and dtypes of its operands."""
    return KERNELS[node.attr("kernel")](owner, node, inputs, outputs)


def _elements(owner: graph.Graph, *ids: int) -> int:
    return sum([math.prod(owner.value(id).shape) for id in ids])


def _scatter(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
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


def _put(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
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


def _take(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    return pieces_kernel(
        node.attr("kernel"),
        inputs,
        outputs,
        chunks=_elements(owner, node.inputs[1]),
        elements=_elements(owner, node.output),
        wraps=node.attr("wraps", False),
    )


def _one_hot(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    shape = owner.value(node.output).shape
    axis = node.attr("axis")
    return one_hot_kernel(
        inputs,
        outputs,
        axis=axis,
        lines=math.prod(shape) // max(1, shape[axis]),
        elements=math.prod(shape),
    )


def _spread(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    return spread_kernel(inputs, outputs, elements=_elements(owner, node.output))


def _ramp(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    return ramp_kernel(
        inputs,
        outputs,
        start=node.attr("start"),
        step=node.attr("step"),
        last=node.attr("last"),
        elements=_elements(owner, node.output),
    )


def _truth(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
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


def _solve(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
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


KERNELS: Mapping[str, Callable[..., Any]] = {
    "scatter_along": _scatter,
    "put_at": _put,
    "take_at": _take,
    "one_hot_lines": _one_hot,
    "spread_counts": _spread,
    "ramp": _ramp,
    "true_places": _truth,
    "masked_elements": _truth,
    "solve_triangle": _solve,
}
