"""Calls of functional forms on tensors that are more than memory: tracked, or of another class.

A functional form that meets one of them hands the call over; plain calls do not pay for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from aclnn.acl.constants import aclDataType
from aclnn.acl.errors import invalid
from aclnn.torch.gradients import NAMESPACE, Derivative
from aclnn.torch.schemas import Schema, torch_dtype

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def composed(schema: Schema, values: dict[str, Any]) -> Any:
    """A call as calls that are differentiable: the result, or the argument that was changed."""
    operator = schema.operator
    if operator.differentiated_as:
        return eval(operator.differentiated_as, NAMESPACE, values)
    target = values[operator.inputs[0]]
    if operator.name == schema.name:  # a copy: there is no form of it but in place
        return target.copy_(values[operator.inputs[1]])
    args, named = schema.arguments(values)
    return target.copy_(NAMESPACE[operator.name](*args, **named))


class Differentiable:
    """Takes over the calls of one functional form.

    Calls give `NotImplemented` for operands that are plain memory after all.
    """

    def __init__(self, schema: Schema, op: Any):
        self._schema = schema
        self._op = op
        self._apply = None if schema.in_place else _function(schema)
        operator = schema.operator
        self._composed = bool(schema.in_place or operator.differentiated_as)
        self._options = tuple([a.role for a in (*operator.scalars, *operator.switches)])

    def __call__(
        self, operator: Any, given: Sequence[Any], out: Any, options: Sequence[Any]
    ) -> Any:
        """`given` and `options` are in the order of `operator`: that of the form, or of the one that
        takes a number for its operand."""
        tracked, special = _looked_at(operator, given, out)
        if not tracked and not special:
            return NotImplemented
        roles = (*operator.kernel_operands, *[a.role for a in operator.scalars])
        roles += tuple([a.role for a in operator.switches])
        values = dict(zip(roles, (*given, *options), strict=True))
        written = values[operator.inputs[0]] if self._schema.in_place else out
        if special:
            return self._dispatched(values, written)
        if (self._composed and written is out is None) or self._schema.in_place:
            return composed(self._schema, values)
        if out is not None:
            raise invalid(
                f"{self._schema.name}: out= is not differentiable, but an argument requires grad; "
                "leave it out, or use torch.no_grad()"
            )
        if operator.lists:
            return self._dispatched(values, None)
        return self._apply(*[values[role] for role in self._schema.parameters])

    def _dispatched(self, values: dict[str, Any], written: Any) -> Any:
        """The call by PyTorch's dispatcher."""
        for role, value in values.items():
            if isinstance(value, aclDataType):
                values[role] = torch_dtype(value)
        args, named = self._schema.arguments(self._schema.with_tensors_for_numbers(values))
        result = self._op(*args, **named)
        if self._schema.in_place:
            return written
        return result if written is None else _copied(written, result)


def _copied(out: Any, result: Any) -> Any:
    if not isinstance(result, tuple):
        return out.copy_(result)
    return tuple([place.copy_(one) for place, one in zip(out, result, strict=True)])


def _looked_at(operator: Any, given: Sequence[Any], out: Any) -> tuple[bool, bool]:
    """Whether gradients are wanted of an operand, and whether one is no plain tensor."""
    tracked = special = False
    for one in (*given, out):
        several = one if isinstance(one, list | tuple) else (one,)
        for tensor in several:
            if isinstance(tensor, torch.Tensor):
                special = special or type(tensor) not in _PLAIN
                tracked = tracked or tensor.requires_grad
    if not special and torch._C._functorch.peek_interpreter_stack() is not None:
        special = True
    return tracked and torch.is_grad_enabled(), special


def _function(schema: Schema) -> Any:
    """A differentiable call of a functional form, whose parameters are in the schema's order."""
    derivative = Derivative(schema)
    operator, function = schema.operator, schema.function
    parameters, n_positional = schema.parameters, len(schema.positional)
    keyword = schema.keyword

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            named = dict(zip(keyword, args[n_positional:], strict=True))
            result = function(*args[:n_positional], **named)
            several = result if isinstance(result, tuple) else (result,)
            derivative.save(ctx, dict(zip(parameters, args, strict=True)), several)
            return result

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            needed = dict(zip(parameters, ctx.needs_input_grad, strict=True))
            found = derivative.gradients(ctx, grads[0], needed)
            return tuple([found.get(role) for role in parameters])

    Function.__name__ = Function.__qualname__ = f"Aclnn{operator.name.title().replace('_', '')}"
    # Without what `Function.apply` does for functions that are transformed, which are dispatched.
    return super(torch.autograd.Function, Function).apply
