"""``torch.ops.aclnn``: definition of the operators, and what the dispatcher calls for each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.torch.calls import Differentiable, composed
from aclnn.torch.gradients import derivative_of
from aclnn.torch.kernels import cpu_kernel, fake_kernel
from aclnn.torch.schemas import Schema, schema_of
from aclnn.torch.tracing import let_dynamo_trace, when_dynamo_comes

_LIBRARY = torch.library.Library("aclnn", "DEF")  # registrations end with it
SCHEMAS: dict[str, Schema] = {}


def register() -> None:
    """Register every operator with a functional form."""
    for name, handle in HANDLES_BY_NAME.items():
        schema = schema_of(handle.handle.operator, name)
        SCHEMAS[name] = schema
        _register(schema)
        op = getattr(torch.ops.aclnn, name)
        handle.differentiable = Differentiable(schema, op)
        if handle.number_form is not None:
            handle.number_form.differentiable = handle.differentiable
    when_dynamo_comes(let_dynamo_trace_forms)


def let_dynamo_trace_forms() -> None:
    for name, schema in SCHEMAS.items():
        let_dynamo_trace(schema, getattr(torch.ops.aclnn, name))


def _register(schema: Schema) -> None:
    name = f"aclnn::{schema.name}"
    _LIBRARY.define(schema.text, tags=(torch.Tag.pt2_compliant_tag,))
    _LIBRARY.impl(schema.name, cpu_kernel(schema), "CPU")
    torch.library.register_fake(name, fake_kernel(schema), lib=_LIBRARY)
    if schema.in_place or schema.operator.differentiated_as:
        kernel = _autograd_kernel(schema, functools.partial(composed, schema))
        _LIBRARY.impl(schema.name, kernel, "Autograd", with_keyset=True)
        return
    if schema.operator.lists:
        kernel = _autograd_kernel(schema, _differentiated_list(schema))
        _LIBRARY.impl(schema.name, kernel, "Autograd", with_keyset=True)
        return
    backward, setup = _autograd(schema)
    torch.library.register_autograd(name, backward, setup_context=setup, lib=_LIBRARY)


def _autograd_kernel(schema: Schema, differentiable: Callable[..., Any]) -> Callable[..., Any]:
    """Calls `differentiable` with the arguments by role where a gradient is wanted."""
    after = torch._C._after_autograd_keyset

    def kernel(keys: Any, *args: Any, **named: Any) -> Any:
        values = schema.bound(args, named)
        given = [values[role] for role in schema.operator.inputs]
        tensors = [x for one in given for x in (one if isinstance(one, list | tuple) else (one,))]
        if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors):
            result = differentiable(values)
            return schema.made(result)
        op = getattr(torch.ops.aclnn, schema.name).default
        return op.redispatch(keys & after, *args, **named)

    return kernel


def _differentiated_list(schema: Schema) -> Callable[..., Any]:
    """A call whose one input is a list, whose tensors are inputs of one autograd function.

    What `torch.library` makes of gradients of lists fails where options keep their defaults.
    """
    (role,) = schema.operator.inputs

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, values: dict[str, Any], *tensors: Any) -> Any:
            args, named = schema.arguments(values | {role: list(tensors)})
            with torch._C._AutoDispatchBelowAutograd():
                result = getattr(torch.ops.aclnn, schema.name)(*args, **named)
            several = result if isinstance(result, tuple) else (result,)
            derivative_of(schema).save(ctx, [values[one] for one in schema.parameters], several)
            return result

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            needed = {role: ctx.needs_input_grad[1:]}
            return None, *derivative_of(schema).gradients(ctx, grads, needed)[role]

    return lambda values: Function.apply(values, *values[role])


def _autograd(schema: Schema) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What torch.library wants: the backward pass, and what is kept for it."""

    def setup(ctx: Any, inputs: Sequence[Any], keyword_only_inputs: Any, output: Any) -> None:
        args = (*inputs, *[keyword_only_inputs[role] for role in schema.keyword])
        derivative_of(schema).save(ctx, args, output if isinstance(output, tuple) else (output,))

    def backward(ctx: Any, *grads: Any) -> Any:
        needed = dict(zip(schema.positional, ctx.needs_input_grad, strict=False))
        found = derivative_of(schema).gradients(ctx, grads, needed)
        return tuple([found.get(role) for role in schema.positional])

    def setup_without_names(ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        setup(ctx, inputs, {}, output)

    return backward, setup if schema.keyword else setup_without_names
