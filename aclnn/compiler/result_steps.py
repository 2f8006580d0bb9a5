"""Steps that products and convolutions take on their results, as kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from aclnn import graph, isa
from aclnn.compiler.fused_kernels import Part, Place, fuse
from aclnn.graph.result_steps import ResultStep, steps_of

RESULT = -1  # the place of the node's own results; extra operands have those from 0 on


class ResultSteps:
    """Steps on the float32 results of a node.

    Parameters
    ----------
    node : Node
    steps : sequence of ResultStep
    views : sequence of Value
        The node's operands, results last.

    Attributes
    ----------
    numbers : int
        How many of the node's parameters the steps take.
    """

    def __init__(
        self, node: graph.Node, steps: Sequence[ResultStep], views: Sequence[graph.Value]
    ) -> None:
        self.numbers = sum(step.numbers for step in steps)
        self._steps, self._sums = steps, node.attr("sums")
        self._own, self._extras = node.attr("reads_itself"), views[node.attr("reads_itself") : -1]
        self._out = views[-1]

    def kernels(self, turned: bool = False) -> tuple[tuple[Any, ...], ...]:
        """Kernels of the steps, as `product_kernel` takes them.

        `turned`: whether the results are made as their transpose.
        """
        extras, own = self._extras, self._own
        dtypes = {RESULT: "float32"} | {n: value.dtype.name for n, value in enumerate(extras)}
        results, parts = [RESULT], []
        if self._sums[0] != "float32":
            results = [len(extras)]
            dtypes[len(extras)] = self._sums[0]
            cast = isa.kernels().cast_kernel("float32", self._sums[0])
            parts.append((cast, (RESULT,), len(extras), 0, self._sums[1]))
        for step in self._steps:
            places = [n - own if n >= 0 else results[-1 - n] for n in step.inputs]
            made = len(extras) + len(parts)
            dtypes[made] = step.dtype
            kernel = _kernel_of(step, tuple([dtypes[index] for index in places]))
            parts.append((kernel, tuple(places), made, step.numbers, step.itemsize))
            results.append(made)
        layout = partial(_layout, axis=-2 if turned else -1)
        return _program(parts, dtypes, extras, self._out, layout) or tuple(
            [(kernel, reads, numbers, size) for kernel, reads, _, numbers, size in parts]
        )

    def end(self, knows: Callable[[str], bool]) -> tuple[str, bool, bool] | None:
        """Steps that results take in registers, as `convolution_kernel` takes them; None for other ones.

        An operand is added, and an activation follows that the kernel `knows`.
        """
        rest, adds, scales_sums = [*self._steps], False, False
        if any(
            value.strides[-1] != 1 for value in (*self._extras, self._out) if value.shape[-1] > 1
        ):
            return None
        first = rest[0]
        if first.kernel == "add" and -1 in first.inputs and max(first.inputs) >= self._own:
            adds, scales_sums = True, first.inputs[1] == -1
            del rest[0]
        if not rest:
            return ("", adds, scales_sums) if adds else None
        last = rest.pop(0)
        if rest or not knows(last.kernel) or last.inputs[0] != -1 - adds:
            return None
        return last.kernel, adds, scales_sums


def result_steps(node: graph.Node, views: Sequence[graph.Value]) -> ResultSteps | None:
    """The steps on a node's results; None where there are none."""
    steps = steps_of(node)
    return ResultSteps(node, steps, views) if steps else None


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
    places = {index: Place(dtype) for index, dtype in dtypes.items()}
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
