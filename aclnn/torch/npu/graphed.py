"""``torch.npu.make_graphed_callables``: modules and functions whose calls, and those of their gradients, are replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from aclnn.torch.private import tree_flatten, tree_unflatten


@dataclass
class _Captured:
    """A callable's graph and the memory that replays read and write."""

    forward: Any
    inputs: list[Any]  # those of the program, then parameters
    given: int  # how many the program gives
    outputs: list[Any]
    spec: Any
    backward: Any = None
    grad_outputs: Sequence[Any] = ()
    grad_inputs: Sequence[Any] = ()


def maker(npu: Callable[[], ModuleType]) -> Callable[..., Any]:
    """The function, for a module ``torch.npu`` that there is when it is called."""

    def make_graphed_callables(
        callables: Any,
        sample_args: Any,
        num_warmup_iters: int = 3,
        allow_unused_input: bool = False,
        pool: Any = None,
    ) -> Any:
        """Give callables whose calls replay graphs, captured with samples of their arguments."""
        if torch.is_autocast_enabled("npu") and torch.is_autocast_cache_enabled():
            raise RuntimeError(
                "make_graphed_callables does not support the autocast caching. "
                "Please set `cache_enabled=False`."
            )
        several = isinstance(callables, tuple)
        functions = callables if several else (callables,)
        samples = sample_args if several else (sample_args,)
        if len(functions) != len(samples):
            raise ValueError(
                f"there are {len(functions)} callables and sample_args of {len(samples)}"
            )
        for one, args in zip(functions, samples, strict=True):
            _check(one, args)
        pairs = list(zip(functions, samples, strict=True))
        for one, args in pairs:
            for _ in range(num_warmup_iters):
                _run(one, args, allow_unused_input)
        captured = [_forward(npu(), one, args, pool) for one, args in pairs]
        for each in reversed(captured):  # as gradients are computed
            _backward(npu(), each, allow_unused_input, pool)
        made = [_replayed(one, each) for one, each in zip(functions, captured, strict=True)]
        return tuple(made) if several else made[0]

    return make_graphed_callables


def _check(one: Any, args: Any) -> None:
    if any(not isinstance(arg, torch.Tensor) for arg in tree_flatten(args)[0]):
        raise TypeError("make_graphed_callables takes sample_args of tensors")
    if isinstance(one, torch.nn.Module):
        if one._backward_hooks or one._forward_hooks or one._forward_pre_hooks:
            raise RuntimeError(
                "Modules must not have hooks at the time they are passed. However, registering hooks "
                "on modules after passing them through make_graphed_callables is allowed."
            )
        if any(buffer.requires_grad for buffer in one.buffers()):
            raise RuntimeError(
                "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, "
                "only parameters may be trainable. All buffers must have ``requires_grad=False``."
            )


def _inputs(one: Any, args: Any) -> tuple[list[Any], int]:
    arguments = tree_flatten(args)[0]
    parameters = list(one.parameters()) if isinstance(one, torch.nn.Module) else []
    return [*arguments, *parameters], len(arguments)


def _wanting(tensors: Sequence[Any]) -> list[Any]:
    return [one for one in tensors if isinstance(one, torch.Tensor) and one.requires_grad]


def _run(one: Any, args: Any, allow_unused: bool) -> None:
    outputs = _wanting(tree_flatten(one(*args))[0])
    inputs = _wanting(_inputs(one, args)[0])
    if outputs and inputs:
        torch.autograd.grad(
            outputs, inputs, [torch.empty_like(out) for out in outputs], allow_unused=allow_unused
        )


def _forward(npu: ModuleType, one: Any, args: Any, pool: Any) -> _Captured:
    inputs, value = _inputs(one, args)
    graph = npu.NPUGraph()
    with npu.graph(graph, pool=pool, stream=npu.current_stream()):
        made = one(*args)
    outputs, spec = tree_flatten(made)
    return _Captured(graph, inputs, value, outputs, spec)


def _backward(npu: ModuleType, each: _Captured, allow_unused: bool, pool: Any) -> None:
    outputs, inputs = _wanting(each.outputs), _wanting(each.inputs)
    if not outputs or not inputs:
        return
    each.grad_outputs = [
        torch.empty_like(one) if one.requires_grad else None for one in each.outputs
    ]
    each.backward = npu.NPUGraph()
    with npu.graph(each.backward, pool=pool, stream=npu.current_stream()):
        grads = torch.autograd.grad(
            outputs, inputs, [one for one in each.grad_outputs if one is not None],
            allow_unused=allow_unused,
        )  # fmt: skip
    found = iter(grads)
    each.grad_inputs = [next(found) if one.requires_grad else None for one in each.inputs]


def _replayed(one: Any, each: _Captured) -> Any:
    class Graphed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            for own, other in zip(each.inputs[: each.given], inputs, strict=False):
                if own.data_ptr() != other.data_ptr():
                    own.detach().copy_(other)
            each.forward.replay()
            made = [out.detach() for out in each.outputs]
            ctx.mark_non_differentiable(
                *[new for new, out in zip(made, each.outputs, strict=True) if not out.requires_grad]
            )
            return tuple(made)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            for own, other in zip(each.grad_outputs, grads, strict=True):
                if own is not None and own.data_ptr() != other.data_ptr():
                    own.copy_(other)
            each.backward.replay()
            return tuple([None if grad is None else grad.detach() for grad in each.grad_inputs])

    def called(*args: Any) -> Any:
        made = Graphed.apply(*tree_flatten(args)[0], *each.inputs[each.given :])
        return tree_unflatten(list(made), each.spec)

    if not isinstance(one, torch.nn.Module):
        return called
    plain, training = one.forward, one.training

    def forward(*args: Any, **named: Any) -> Any:
        """Replay in the mode of training in which the graph was captured."""
        return called(*args) if one.training == training else plain(*args, **named)

    one.forward = forward
    return one
