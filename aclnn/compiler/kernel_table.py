"""Selection of kernels for nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aclnn import graph, isa
from aclnn.compiler.fused_kernels import join
from aclnn.graph.lower.schedule import threads_used


def kernel_of(
    owner: graph.Graph, node: graph.Node, own: Mapping[str, graph.Kernel]
) -> graph.Kernel:
    """The kernel of a node, from those of the instruction set in use, or one of the caller's `own`."""
    if own and (key := node.attr("own")) is not None:
        return own[key]
    inputs = tuple([owner.value(id).dtype.name for id in node.inputs])
    outputs = tuple([owner.value(id).dtype.name for id in node.outputs])
    if node.kind != "Compute":
        return _joinable(isa.kernels().cast_kernel(inputs[0], outputs[0]))
    return _LIBRARIES[node.domain](owner, node, inputs, outputs)


def _pointwise(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> graph.Kernel:
    result = node.attr("result_dtype", outputs[0])
    return _joinable(
        isa.kernels().compute_kernel(
            node.attr("kernel"), inputs, outputs[0], result, node.attr("reads")
        )
    )


def _joinable(kernel: graph.Kernel) -> graph.Kernel:
    """The kernel, which may become one with its neighbours in a loop."""
    if isa.fused_kernels() is not None:
        kernel.join = join
    return kernel


def _rows(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> graph.Kernel:
    return isa.row_kernels().row_kernel(
        node.attr("kernel"),
        inputs,
        outputs,
        result_dtype=node.attr("result_dtype"),
        present=node.attr("present"),
    )


def _opaque(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> graph.Kernel:
    from aclnn.compiler.opaque import maker_of

    return maker_of(node.attr("kernel"))(owner, node, inputs, outputs)


_LIBRARIES: Mapping[str, Callable[..., graph.Kernel]] = {
    "point": _pointwise,
    "row": _rows,
    "opaque": _opaque,
}


def kernels_of(owner: graph.Graph, own: Mapping[str, graph.Kernel]) -> dict[str, graph.Kernel]:
    """The kernels of all nodes by name; `own` has those that are not of this package."""
    return {node.name: kernel_of(owner, node, own) for node in owner.nodes}


def scratch_of(kernels: Mapping[str, graph.Kernel]) -> Callable[..., int] | None:
    """Function that gives the bytes that a node's kernel has for itself; None where none has any.

    An opaque kernel that is called for several chunks needs no more for one of them than for all.
    """
    own = {name: one for name, one in kernels.items() if one.scratch > 0 or one.tile_scratch}
    if not own:
        return None

    def scratch(node: graph.Node, rows: int, cols: int) -> int:
        kernel = own.get(node.name)
        if kernel is None:
            return 0
        return kernel.tile_scratch(rows, cols) if kernel.tile_scratch else kernel.scratch

    return scratch


def threads_of(kernels: Mapping[str, graph.Kernel], threads: int) -> Callable[..., int]:
    """Function that gives the threads of a run's step, as `graph.plan_workspace` takes it."""

    def used(step: Sequence[graph.Node], elements: int, tiles: int) -> int:
        found = [kernels[node.name] for node in step]
        return threads_used(found, elements, tiles, threads)

    return used
