"""``torch.ops.aclnn``: definition of the operators, and what the dispatcher calls for each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.execution.unreadable import refuse_tangent
from aclnn.torch.calls import Differentiable, composed
from aclnn.torch.gradients import derivative_of
from aclnn.torch.kernels import cpu_kernel, fake_kernel, filling_kernel
from aclnn.torch.private import (
    AutoDispatchBelowAutograd,
    after_autograd_keyset,
    enable_single_level_autograd_function,
    peek_interpreter_stack,
)
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
        handle.differentiable = Differentiable(schema, op, handle)
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
    if not schema.operator.inputs:  # the dispatcher finds no tensor whose device says the kernel
        _LIBRARY.impl(schema.name, filling_kernel(schema), "BackendSelect")
        return
    if schema.in_place or schema.operator.differentiated_as:
        kernel = _autograd_kernel(schema, functools.partial(composed, schema))
        _LIBRARY.impl(schema.name, kernel, "Autograd", with_keyset=True)
        return
    # Of several inputs those in the list are indices, which have no gradient.
    lists = schema.operator.lists if len(schema.operator.inputs) == 1 else ()
    differentiable = _differentiated_list(schema) if lists else _differentiated(schema)
    kernel = _autograd_kernel(schema, differentiable)
    _LIBRARY.impl(schema.name, kernel, "Autograd", with_keyset=True)
    if lists and hasattr(torch.library, "register_vmap"):
        torch.library.register_vmap(name, _row_by_row(schema), lib=_LIBRARY)


def _autograd_kernel(schema: Schema, differentiable: Callable[..., Any]) -> Callable[..., Any]:
    """Calls `differentiable` with the arguments by role where a gradient is wanted."""
    after = after_autograd_keyset

    def kernel(keys: Any, *args: Any, **named: Any) -> Any:
        values = schema.bound(args, named)
        tensors = []
        for role in schema.operator.inputs:
            value = values[role]
            several = value if isinstance(value, list | tuple) else (value,)
            tensors += [(role, one) for one in several if one is not None]
        for role, one in tensors if forward_ad._current_level >= 0 else ():
            refuse_tangent(role, one, schema.name)
        if torch.is_grad_enabled() and any(one.requires_grad for _, one in tensors):
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
            with AutoDispatchBelowAutograd():
                result = getattr(torch.ops.aclnn, schema.name)(*args, **named)
            several = result if isinstance(result, tuple) else (result,)
            derivative_of(schema).save(ctx, [values[one] for one in schema.parameters], several)
            return result

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            needed = {role: ctx.needs_input_grad[1:]}
            return None, *derivative_of(schema).gradients(ctx, grads, needed)[role]

    apply = _apply_of(Function)
    return lambda values: apply(values, *values[role])


def _differentiated(schema: Schema) -> Callable[..., Any]:
    """A call that autograd records.

    What `torch.library` makes of gradients cannot be called in a function that ``torch.func`` transforms.
    """
    parameters = schema.parameters
    derivative = functools.cache(lambda: derivative_of(schema))

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *values: Any) -> Any:
            args, named = schema.arguments(dict(zip(parameters, values, strict=True)))
            with AutoDispatchBelowAutograd():
                result = getattr(torch.ops.aclnn, schema.name)(*args, **named)
            derivative().save(ctx, values, result if isinstance(result, tuple) else (result,))
            return result

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            needed = dict(zip(parameters, ctx.needs_input_grad, strict=True))
            found = derivative().gradients(ctx, grads, needed)
            return tuple([found.get(role) for role in parameters])

    apply = _apply_of(Function)
    return lambda values: apply(*[values[role] for role in parameters])


def _apply_of(function: Any) -> Any:
    """`Function.apply` without what it does for functions that are transformed: the dispatcher takes
    one transform off after the other, and calls a kernel of autograd for each."""
    plain = super(torch.autograd.Function, function).apply

    def apply(*args: Any) -> Any:
        if peek_interpreter_stack() is None:
            return plain(*args)
        with enable_single_level_autograd_function():
            return plain(*args)

    return apply


def _row_by_row(schema: Schema) -> Callable[..., Any]:
    """Rule by which ``torch.vmap`` calls an operator of a list, for which PyTorch has no fallback."""

    def call(info: Any, in_dims: Any, *args: Any, **named: Any) -> Any:
        op = getattr(torch.ops.aclnn, schema.name)
        made = [op(*_row_of(args, in_dims, row), **named) for row in range(info.batch_size)]
        return torch.stack(made), 0

    return call


def _row_of(args: Any, dims: Any, row: int) -> Any:
    """Arguments for one row of a batch: `dims` says along which dimension a tensor has rows."""
    if isinstance(args, list | tuple) and isinstance(dims, list | tuple):
        return [_row_of(one, dim, row) for one, dim in zip(args, dims, strict=True)]
    return args if dims is None else args.select(dims, row)
