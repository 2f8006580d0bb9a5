"""Selection of kernels for nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from aclnn import graph, isa
from aclnn.compiler.fused_kernels import join
from aclnn.compiler.result_steps import result_steps
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
        return isa.kernels().cast_kernel(inputs[0], outputs[0], _join())
    return _LIBRARIES[node.domain](owner, node, inputs, outputs)


def _pointwise(
    owner: graph.Graph, node: graph.Node, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> graph.Kernel:
    result = node.attr("result_dtype", outputs[0])
    return isa.kernels().compute_kernel(
        node.attr("kernel"), inputs, outputs[0], result, node.attr("reads"), _join()
    )


def _join() -> Callable[..., Any] | None:
    """The function that makes one kernel of a node's and its neighbours' in a loop, if there is one."""
    return None if isa.fused_kernels() is None else join


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
    """A kernel as its record says, which the build made a function of (`tools/make_kernels.py`)."""
    views = tuple([owner.value(id) for id in node.operands])
    make = _maker_of(node.attr("kernel"))
    return make(node.attr, inputs, outputs, views, result_steps(node, views))


@cache
def _maker_of(kernel: str) -> Callable[..., graph.Kernel]:
    """The function that makes a kernel."""
    from aclnn.kernels._opaque_kernels import MAKERS

    stem, _, name = MAKERS[kernel].partition(":")
    module = import_module(f"aclnn.kernels.{stem}")
    if not hasattr(module, "BUILT"):
        return getattr(module, name)
    family = isa.Family(f"kernels.{stem}")  # its loops are those of the instruction set in use
    return lambda *node: getattr(family(), name)(*node)


_LIBRARIES: Mapping[str, Callable[..., graph.Kernel]] = {
    "point": _pointwise,
    "row": _rows,
    "opaque": _opaque,
}


class KernelTable:
    """Kernels of a graph's nodes, as planner and schedule ask for them.

    Parameters
    ----------
    owner : Graph
    own : mapping of str to Kernel
        Those that are not of this package.

    Attributes
    ----------
    kernels : dict of str to Kernel
        By the names of the nodes.
    scratch_of : callable or None
        Gives the bytes that a node's kernel has for itself, as `graph.plan_workspace` takes it; None where
        none has any.
    """

    __slots__ = ("kernels", "scratch_of")

    def __init__(self, owner: graph.Graph, own: Mapping[str, graph.Kernel]):
        self.kernels = {node.name: kernel_of(owner, node, own) for node in owner.nodes}
        has_some = any(one.scratch > 0 or one.tile_scratch for one in self.kernels.values())
        self.scratch_of = self._scratch if has_some else None

    def _scratch(self, node: graph.Node, rows: int, cols: int) -> int:
        """An opaque kernel that is called for several chunks needs no more for one of them than for all."""
        kernel = self.kernels[node.name]
        return kernel.tile_scratch(rows, cols) if kernel.tile_scratch else max(0, kernel.scratch)

    def threads_used(
        self, threads: int, step: Sequence[graph.Node], elements: int, tiles: int
    ) -> int:
        """Number of threads, of `threads`, that a run uses for a step."""
        found = [self.kernels[node.name] for node in step]
        return threads_used(found, elements, tiles, threads)
