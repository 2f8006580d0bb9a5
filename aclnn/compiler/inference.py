"""Kernels of sorts, quantisation, caches and mixtures of experts as nodes of a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from aclnn import _cache_kernels, _routing_kernels, graph, isa

Dtypes = tuple[str, ...]


def kernel_of(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    """The kernel of a node, for the sizes and dtypes of its operands."""
    return KERNELS[node.attr("kernel")](owner, node, inputs, outputs)


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


def _sort(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
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


def _sample(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    lines = _lines(owner, node.inputs[0])
    return isa.sorting_kernels().sample_kernel(inputs, outputs, present=_present(node), **lines)


# --- Quantisation ---------------------------------------------------------------------------------


def _product(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    a, b = (_shape(owner, id) for id in node.inputs[:2])
    options = _given(node, "along", "list_kind", "activation", "clears", "shortens", "group_size")
    several = len(node.inputs) - len(_present(node)) - 1
    return isa.quantized_kernels().product_kernel(
        inputs,
        outputs,
        present=_present(node),
        batch=b[0] if len(b) > 2 else several,
        m=a[-2],
        k=a[-1],
        n=b[-1],
        several=several if several > 1 else 0,
        **options,
    )


def _quantize(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    options = _given(node, "bits", "divides", "twice", "rounding")
    lines = _lines(owner, node.output)
    return isa.quantized_kernels().quantize_kernel(inputs, outputs, **lines, **options)


def _dynamic_quant(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    lines = _lines(owner, node.inputs[0])
    return isa.quantized_kernels().dynamic_quant_kernel(
        inputs, outputs, **lines, **_given(node, "bits")
    )


def _swiglu_quant(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    lines = _lines(owner, node.inputs[0])
    options = _given(node, "left", "dynamic", "mode", "single", "clears")
    return isa.quantized_kernels().swiglu_quant_kernel(
        inputs, outputs, present=_present(node), **lines, **options
    )


def _scale_bits(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    size = _shape(owner, node.output)[0]
    return isa.quantized_kernels().scale_bits_kernel(inputs, outputs, n=size)


def _nibbles(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    lines = _lines(owner, node.output)
    return isa.quantized_kernels().nibbles_kernel(node.attr("kernel"), inputs, outputs, **lines)


# --- Caches ---------------------------------------------------------------------------------------


def _scatter(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    return _cache_kernels.scatter_kernel(
        inputs,
        outputs,
        blocks=1
        if node.attr("counts") == _cache_kernels.WITHOUT_BLOCKS
        else _shape(owner, node.output)[0],
        elements=math.prod(_shape(owner, node.inputs[1])),
        **_given(node, "slot_axis", "counts", "sequence", "strict"),
    )


def _gather(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    shape = _shape(owner, node.output)
    return _cache_kernels.gather_kernel(
        inputs,
        outputs,
        rows=shape[0],
        elements=math.prod(shape),
        **_given(node, "slot_axis", "adds_up"),
    )


# --- Mixtures of experts --------------------------------------------------------------------------


def _gate(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    return _routing_kernels.gate_kernel(
        inputs,
        outputs,
        present=_present(node),
        k=_shape(owner, node.output)[1],
        **_lines(owner, node.inputs[0]),
        **_given(node, "norm", "groups", "kept", "by_two", "divides"),
    )


def _route(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    return _routing_kernels.route_kernel(
        inputs,
        outputs,
        n=_shape(owner, node.inputs[0])[0],
        **_given(node, "each", "experts", "capacity", "counting"),
    )


def _take_rows(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    return _routing_kernels.take_rows_kernel(inputs, outputs, **_lines(owner, node.output))


def _combine(owner: graph.Graph, node: graph.Node, inputs: Dtypes, outputs: Dtypes) -> Any:
    return _routing_kernels.combine_kernel(
        inputs,
        outputs,
        present=_present(node),
        **_lines(owner, node.output),
        **_given(node, "each", "by_columns", "drops"),
    )


KERNELS: Mapping[str, Callable[..., Any]] = {
    "sort": _sort,
    "topk": _sort,
    "top_k_top_p": _sample,
    "quantized_product": _product,
    "quantize": _quantize,
    "dynamic_quant": _dynamic_quant,
    "swiglu_quant": _swiglu_quant,
    "scale_bits": _scale_bits,
    "pack4": _nibbles,
    "unpack4": _nibbles,
    "scatter_rows": _scatter,
    "gather_pages": _gather,
    "gate": _gate,
    "route": _route,
    "take_rows": _take_rows,
    "combine": _combine,
}
