"""Parts of graphs as compiled functions of tensors, with gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from aclnn.execution._prepared_call import PreparedCall, prepares
from aclnn.torch.counterparts import form_of
from aclnn.torch.expansion import expanded
from aclnn.tracing.compiled import compile as compiled

Compile = Callable[[GraphModule], Callable[..., Any]]


class Part:
    """A graph of ATen's operators that runs as an executor, one for each description of its inputs.

    Attributes
    ----------
    compiled : Compiled
        The function of arrays.
    """

    def __init__(
        self,
        module: GraphModule,
        name: str,
        inputs: Sequence[Any],
        options: dict[str, Any],
        compile_backward: Compile,
    ):
        self.__name__ = name
        self._module = module
        self._like = inputs
        self._compile_backward = compile_backward
        nodes = list(module.graph.nodes)
        self._inputs = [node for node in nodes if node.op == "placeholder"]
        self._steps = [node for node in nodes if node.op == "call_function"]
        (output,) = [node.args[0] for node in nodes if node.op == "output"]
        self._is_one = isinstance(output, Node)
        self._outputs: list[Node] = [output] if self._is_one else list(output)
        self._orders = [_order_of(node) for node in self._outputs]
        self._in_order = not any(self._orders)
        self.compiled = compiled(self._function(name), **options)
        self._prepared: PreparedCall | None = None
        self._backwards: dict[Any, Callable[..., Any]] = {}

    @property
    def workspace_size(self) -> int:
        """Bytes for intermediates: the most that one of its plans needs."""
        return max(self.compiled.workspace_sizes(), default=0)

    def __call__(self, *tensors: torch.Tensor) -> Any:
        if self._prepared is not None:
            made = self._prepared.run(tensors)  # of tensors whose gradients nobody wants
            if made is not NotImplemented:
                return made
        if torch.is_grad_enabled() and any(one.requires_grad for one in tensors):
            return _Differentiable.apply(self, *tensors)
        return self._run(tensors)

    def run(self, *tensors: torch.Tensor) -> Any:
        """The results; nothing is recorded for gradients."""
        if self._prepared is not None:
            made = self._prepared.run(tensors)
            if made is not NotImplemented:
                return made
        return self._run(tensors)

    def _run(self, tensors: Sequence[torch.Tensor]) -> Any:
        made = self.compiled(*tensors)
        if prepares(torch):
            executor = self.compiled.executor_of(*tensors)
            self._prepared = PreparedCall(executor, len(tensors), self._orders, self._is_one)
        if self._in_order:
            return made
        if self._is_one:
            return _laid_out(made, self._orders[0])
        return tuple([_laid_out(*pair) for pair in zip(made, self._orders, strict=True)])

    def _function(self, name: str) -> Callable[..., Any]:
        def run(*arrays: Any) -> Any:
            made = [
                one if order is None else one.transpose(*order)
                for one, order in zip(self._interpreted(arrays), self._orders, strict=True)
            ]
            return made[0] if self._is_one else tuple(made)

        run.__name__ = run.__qualname__ = name
        run.__aclnn_constant__ = True  # type: ignore[attr-defined]  # reaches no array but its own
        return run

    def _interpreted(self, arrays: Sequence[Any]) -> list[Any]:
        """What the part does, on traced arrays, which record it."""
        values: dict[Node, Any] = dict(zip(self._inputs, arrays, strict=True))
        for node in self._steps:
            args, named = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = form_of(node.target)(*args, **named)
        return [values[node] for node in self._outputs]

    def backward(self, needed: tuple[bool, ...], given: tuple[bool, ...]) -> Callable[..., Any]:
        """Gives gradients of inputs, those that are needed, from the inputs and the gradients of those
        outputs that have one; None for an input that these do not depend on."""
        key = needed, given
        if key not in self._backwards:
            self._backwards[key] = self._compile_backward(self._backward_graph(needed, given))
        return self._backwards[key]

    def _backward_graph(self, needed: tuple[bool, ...], given: tuple[bool, ...]) -> GraphModule:
        """Autograd's calls for this part, as a graph: what they need of its inside is computed anew."""
        count = len(needed)

        def gradients(*tensors: Any) -> Any:
            inputs = [one.detach() for one in tensors[:count]]
            wanted = [one.requires_grad_() for one, n in zip(inputs, needed, strict=True) if n]
            with torch.enable_grad():
                results = self._module(*inputs)
            several = itertools.compress([results] if self._is_one else results, given)
            pairs = [p for p in zip(several, tensors[count:], strict=True) if p[0].requires_grad]
            return torch.autograd.grad(
                [y for y, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True
            )

        values = itertools.compress([node.meta["val"] for node in self._outputs], given)
        like = [*self._like, *[torch.empty_like(one) for one in values]]
        graph = expanded(gradients, [one.detach() for one in like])
        for node in list(graph.graph.nodes):
            if node.target is torch.ops.aten.detach.default:
                node.replace_all_uses_with(node.args[0])
        graph.graph.eliminate_dead_code()
        return graph


class _Differentiable(torch.autograd.Function):
    """One run of a part of which gradients are wanted."""

    @staticmethod
    def forward(ctx: Any, part: Part, *tensors: torch.Tensor) -> Any:
        ctx.part = part
        ctx.set_materialize_grads(False)  # an output that nobody reads gives no gradient, not zeros
        ctx.save_for_backward(*tensors)
        return part.run(*tensors)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        needed = tuple(ctx.needs_input_grad[1:])
        given = tuple([one is not None for one in grads])
        if not any(given):
            return None, *[None] * len(needed)
        own = itertools.compress(grads, given)
        made = iter(ctx.part.backward(needed, given)(*ctx.saved_tensors, *own))
        return None, *[next(made) if one else None for one in needed]


def _order_of(node: Node) -> tuple[int, ...] | None:
    """The dimensions of a result as they lie in memory, the farthest first; None if in order."""
    value = node.meta["val"]
    if value.is_contiguous():
        return None
    return tuple(sorted(range(value.ndim), key=lambda axis: (-int(value.stride(axis)), axis)))


def _laid_out(tensor: Any, order: tuple[int, ...] | None) -> Any:
    if order is None:
        return tensor
    return tensor.permute([order.index(axis) for axis in range(len(order))])
