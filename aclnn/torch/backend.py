"""The backend of ``torch.compile``: parts of a graph as executors, the rest as PyTorch has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule, Node
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from aclnn.torch.support import Support, form_of, partitions_of
from aclnn.tracing.compiled import compile as compiled

PREFIX = "aclnn_part_"


def backend(graph_module: GraphModule, example_inputs: Sequence[Any], **options: Any) -> Any:
    """Compile a graph: ``torch.compile(model, backend="aclnn")``.

    Parameters
    ----------
    graph_module : GraphModule
        From Dynamo.
    example_inputs : sequence of tensor
    **options
        Those of `aclnn.compile`, from ``torch.compile(..., options={"threads": 1})``.

    Returns
    -------
    callable
    """
    chosen = dict(options.get("options") or {})

    def compile_graph(graph: GraphModule, inputs: Sequence[Any]) -> Any:
        return _boxed(with_executors(graph, chosen).forward)

    return aot_autograd(fw_compiler=compile_graph)(graph_module, example_inputs)


def _boxed(forward: Callable[..., Any]) -> Callable[..., Any]:
    from functorch.compile import make_boxed_func

    return make_boxed_func(forward)  # type: ignore[no-any-return]


def with_executors(graph: GraphModule, options: dict[str, Any]) -> GraphModule:
    """The graph with calls of executors in the place of the parts that they do."""
    parts = partitions_of(graph, Support(graph))
    if not parts:
        return graph
    fused = fuse_by_partitions(graph, [part.nodes for part in parts], prefix=PREFIX)
    for name, module in list(fused.named_children()):
        if name.startswith(PREFIX):
            _replace(fused, name, Part(module, name, options))
    fused.graph.lint()
    fused.recompile()
    return fused


def _replace(graph: GraphModule, name: str, part: Part) -> None:
    """Call `part` as a function: a module's call takes as long as a small kernel."""
    for node in list(graph.graph.nodes):
        if node.op == "call_module" and node.target == name:
            with graph.graph.inserting_before(node):
                call = graph.graph.call_function(part, node.args, node.kwargs)
            call.meta = dict(node.meta)
            node.replace_all_uses_with(call)
            graph.graph.erase_node(node)
    delattr(graph, name)


class Part:
    """A part of a graph as a compiled function.

    Attributes
    ----------
    compiled : Compiled
        The function of arrays, which has a plan for each description of them.
    """

    def __init__(self, module: GraphModule, name: str, options: dict[str, Any]):
        self.__name__ = name
        nodes = list(module.graph.nodes)
        self._inputs = [node for node in nodes if node.op == "placeholder"]
        self._steps = [node for node in nodes if node.op == "call_function"]
        (self._output,) = [node.args[0] for node in nodes if node.op == "output"]
        outputs = self._output if isinstance(self._output, tuple | list) else (self._output,)
        self._orders = [_order_of(node) for node in outputs]
        self.compiled = compiled(self._on_arrays(name), **options)
        self._plain = not any(self._orders)

    def __call__(self, *tensors: torch.Tensor) -> Any:
        made = self.compiled(*tensors)
        if self._plain:
            return made
        if not isinstance(made, tuple):
            return _laid_out(made, self._orders[0])
        return tuple([_laid_out(*pair) for pair in zip(made, self._orders, strict=True)])

    def _on_arrays(self, name: str) -> Callable[..., Any]:
        def run(*arrays: Any) -> Any:
            return self._traced(arrays)

        run.__name__ = run.__qualname__ = name
        return run

    def _traced(self, arrays: Sequence[Any]) -> Any:
        """What the part does, on arrays: recorded while these are traced ones."""
        values: dict[Node, Any] = dict(zip(self._inputs, arrays, strict=True))
        for node in self._steps:
            args, named = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = form_of(node.target)(*args, **named)
        several = isinstance(self._output, tuple | list)
        nodes = self._output if several else (self._output,)
        made = [
            values[node] if order is None else values[node].transpose(*order)
            for node, order in zip(nodes, self._orders, strict=True)
        ]
        return tuple(made) if several else made[0]


def _order_of(node: Node) -> tuple[int, ...] | None:
    """The dimensions of a result as they lie in memory, the farthest first; None if in order."""
    value = node.meta["val"]
    order = sorted(range(value.ndim), key=lambda axis: (-value.stride(axis), axis))
    return None if value.is_contiguous() else tuple(order)


def _laid_out(tensor: Any, order: tuple[int, ...] | None) -> Any:
    if order is None:
        return tensor
    return tensor.permute([order.index(axis) for axis in range(len(order))])
