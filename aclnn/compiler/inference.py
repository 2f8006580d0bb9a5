"""Kernels of sorts, quantisation, caches and mixtures of experts as nodes of a graph."""

from __future__ import annotations

import math
from typing import Any

from aclnn import _cache_kernels, _routing_kernels, graph, isa

Dtypes = tuple[str, ...]


# Integers of four bits that an element of a matrix holds.
_PER_ELEMENT = {"uint8": 2, "int32": 8}


def _shape(owner: graph.Graph, id: int) -> tuple[int, ...]:
    return owner.value(id).shape


def _given(node: graph.Node, *names: str) -> dict[str, Any]:
    """Attributes of a node that it has, as options of a kernel."""
    return {name: node.attr(name) for name in names if node.attr(name) is not None}


def _present(node: graph.Node) -> tuple[str, ...]:
    return tuple(node.attr("present", ()))


def _lines(owner: graph.Graph, id: int) -> dict[str, Any]:
    """Number of lines along a value's last axis, and their length."""
    *lead, size = _shape(owner, id)
    return {"lines": math.prod(lead), "n": size}


# --- Sorts ----------------------------------------------------------------------------------------


def make_sort(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """A sort, or the largest elements, of lines along an axis."""
    shape = _shape(owner, node.inputs[0])
    axis = node.attr("axis") % len(shape)
    return isa.sorting_kernels().sort_kernel(
        inputs,
        outputs,
        axis=axis,
        lines=math.prod(shape) // max(1, shape[axis]),
        n=shape[axis],
        k=_shape(owner, node.output)[axis],
        descending=node.attr("descending"),
        present=_present(node),
    )


def make_sample(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Elements of each row that sampling may choose."""
    lines = _lines(owner, node.inputs[0])
    return isa.sorting_kernels().sample_kernel(inputs, outputs, present=_present(node), **lines)


# --- Quantisation ---------------------------------------------------------------------------------


def make_product(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """A product of quantised matrices."""
    a, b = (_shape(owner, id) for id in node.inputs[:2])
    options = _given(
        node, "along", "list_kind", "activation", "clears", "shortens", "group_size", "nibbles"
    )
    several = len(node.inputs) - len(_present(node)) - 1
    return isa.quantized_kernels().product_kernel(
        inputs,
        outputs,
        present=_present(node),
        batch=b[0] if len(b) > 2 else several,
        m=a[-2],
        k=a[-1] * _PER_ELEMENT.get(inputs[0], 1),
        n=_shape(owner, node.output)[-1],
        several=several if several > 1 else 0,
        **options,
    )


def make_quantize(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Elements quantised with scales that are given."""
    options = _given(node, "bits", "divides", "twice", "rounding")
    lines = _lines(owner, node.output)
    return isa.quantized_kernels().quantize_kernel(inputs, outputs, **lines, **options)


def make_dynamic_quant(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Rows quantised with scales that are found."""
    lines = _lines(owner, node.inputs[0])
    return isa.quantized_kernels().dynamic_quant_kernel(
        inputs, outputs, **lines, **_given(node, "bits")
    )


def make_swiglu_quant(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Rows dequantised, gated and quantised."""
    lines = _lines(owner, node.inputs[0])
    options = _given(node, "left", "dynamic", "mode", "single", "clears")
    return isa.quantized_kernels().swiglu_quant_kernel(
        inputs, outputs, present=_present(node), **lines, **options
    )


def make_scale_bits(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Scales and offsets as bits, or scales of such."""
    size = _shape(owner, node.output)[0]
    return isa.quantized_kernels().scale_bits_kernel(inputs, outputs, n=size)


def make_nibbles(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Integers of four bits, packed or taken apart."""
    lines = _lines(owner, node.output)
    return isa.quantized_kernels().nibbles_kernel(node.attr("kernel"), inputs, outputs, **lines)


# --- Caches ---------------------------------------------------------------------------------------


def make_scatter(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Rows of tokens that go into a cache."""
    return _cache_kernels.scatter_kernel(
        inputs,
        outputs,
        blocks=1
        if node.attr("counts") == _cache_kernels.WITHOUT_BLOCKS
        else _shape(owner, node.output)[0],
        elements=math.prod(_shape(owner, node.inputs[1])),
        **_given(node, "slot_axis", "counts", "sequence", "strict"),
    )


def make_gather(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Tokens out of the pages of a cache."""
    shape = _shape(owner, node.output)
    return _cache_kernels.gather_kernel(
        inputs,
        outputs,
        rows=shape[0],
        elements=math.prod(shape),
        **_given(node, "slot_axis", "adds_up"),
    )


# --- Mixtures of experts --------------------------------------------------------------------------


def make_gate(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """The experts of each token."""
    return _routing_kernels.gate_kernel(
        inputs,
        outputs,
        present=_present(node),
        k=_shape(owner, node.output)[1],
        **_lines(owner, node.inputs[0]),
        **_given(node, "norm", "groups", "kept", "by_two", "divides"),
    )


def make_route(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Tokens in the order of their experts."""
    return _routing_kernels.route_kernel(
        inputs,
        outputs,
        n=_shape(owner, node.inputs[0])[0],
        **_given(node, "each", "experts", "capacity", "counting"),
    )


def make_take_rows(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """Rows by their numbers."""
    return _routing_kernels.take_rows_kernel(inputs, outputs, **_lines(owner, node.output))


def make_combine(
    owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes
) -> graph.Kernel:
    """The sums of each token's rows."""
    return _routing_kernels.combine_kernel(
        inputs,
        outputs,
        present=_present(node),
        **_lines(owner, node.output),
        **_given(node, "each", "by_columns", "drops"),
    )
