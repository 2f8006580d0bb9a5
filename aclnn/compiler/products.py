"""Kernels of matrix products as nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from aclnn import graph, isa
from aclnn.compiler.fused_kernels import Part, Place, fuse
from aclnn.graph.result_steps import ResultStep, steps_of

RESULT = -1  # the place of the product's results; extra operands have those from 0 on


def kernel_of(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Any:
    """The kernel of a product of the shapes and strides that a node's operands have."""
    operands = [owner.value(id) for id in node.operands]
    *batch, m, n = operands[-1].shape
    steps = steps_of(node)
    own = node.attr("reads_itself", len(inputs))
    return isa.product_kernels().product_kernel(
        inputs,
        outputs[0],
        batch_shape=tuple(batch),
        m=m,
        n=n,
        k=operands[0].shape[-1],
        strides=[byte_strides(value) for value in operands],
        scaled=len(node.attr("params", ())) > sum(step.numbers for step in steps),
        round_inputs_to_half=node.attr("round_inputs_to_half", False),
        extras=len(inputs) - own,
        steps=partial(step_kernels, steps, node.attr("sums"), own, operands) if steps else None,
    )


def byte_strides(value: graph.Value) -> tuple[int, ...]:
    """Strides of an operand in bytes."""
    return tuple([stride * value.dtype.itemsize for stride in value.strides])


def step_kernels(
    steps: Sequence[ResultStep],
    sums: tuple[str, int],
    own: int,
    operands: Sequence[graph.Value],
    turned: bool = False,
) -> tuple[tuple[Any, ...], ...]:
    """Kernels of steps on float32 results, as `product_kernel` takes them.

    `turned`: whether the product is computed as its transpose.
    """
    *inputs, out = operands
    extras = inputs[own:]
    dtypes = {RESULT: "float32"} | {place: value.dtype.name for place, value in enumerate(extras)}
    results, parts = [RESULT], []
    if sums[0] != "float32":
        results = [len(extras)]
        dtypes[len(extras)] = sums[0]
        cast = isa.kernels().cast_kernel("float32", sums[0])
        parts.append((cast, (RESULT,), len(extras), 0, sums[1]))
    for step in steps:
        reads = tuple([place - own if place >= 0 else results[-1 - place] for place in step.inputs])
        made = len(extras) + len(parts)
        dtypes[made] = step.dtype
        kernel = _kernel_of(step, tuple([dtypes[place] for place in reads]))
        parts.append((kernel, reads, made, step.numbers, step.itemsize))
        results.append(made)
    layout = partial(_layout, axis=-2 if turned else -1)
    return _program(parts, dtypes, extras, out, layout) or tuple(
        [(kernel, reads, numbers, size) for kernel, reads, _, numbers, size in parts]
    )


def _kernel_of(step: ResultStep, inputs: tuple[str, ...]) -> Any:
    library = isa.kernels()
    if step.kind == "Cast":
        return library.cast_kernel(inputs[0], step.dtype)
    result = step.result_dtype or step.dtype
    return library.compute_kernel(step.kernel, inputs, step.dtype, result, step.reads or None)


def _layout(value: graph.Value, axis: int) -> str:
    """Layout of a row's elements, along which results are finished."""
    stride = value.strides[axis]
    if stride == 1 or value.shape[axis] == 1:
        return "dense"
    return "strided" if stride else "repeated"


def _program(
    parts: Sequence[tuple[Any, ...]],
    dtypes: dict[int, str],
    extras: Sequence[graph.Value],
    out: graph.Value,
    layout: Callable[[graph.Value], str],
) -> tuple[tuple[Any, ...], ...] | None:
    """All steps as one program; None where there are none, or it would be too large."""
    last = parts[-1][2]
    places = {place: Place(dtype) for place, dtype in dtypes.items()}
    places |= {n: Place(value.dtype.name, layout(value)) for n, value in enumerate(extras)}
    places[last] = Place(out.dtype.name, layout(out))
    counts = [numbers for *_, numbers, _ in parts]
    fused = fuse(
        [
            Part(kernel, reads, made, (0.0,) * n)
            for (kernel, reads, made, _, _), n in zip(parts, counts, strict=True)
        ],
        places,
        [last],
    )
    return None if fused is None else ((fused.kernel, fused.reads, sum(counts)),)
