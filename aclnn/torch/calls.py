"""Calls of functional forms on tensors that are more than memory: tracked, or of another class.

A functional form that meets one of them hands the call over; plain calls do not pay for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from aclnn.acl.constants import aclDataType
from aclnn.acl.errors import invalid
from aclnn.api import functional
from aclnn.torch.gradients import derivative_of, evaluated
from aclnn.torch.private import TransformType, peek_interpreter_stack
from aclnn.torch.recording import is_recordable, recorded
from aclnn.torch.schemas import PLAIN, Schema, torch_dtype


def composed(schema: Schema, values: dict[str, Any]) -> Any:
    """A call as calls that are differentiable: the result, or the argument that was changed."""
    operator = schema.operator
    if operator.differentiated_as:
        return evaluated(operator.differentiated_as, values)
    written = schema.written
    # Formulas keep what was there: it is changed below.
    before = {role: values[role].clone() for role in written.values()}
    args, named = schema.arguments(values | before)
    results = getattr(functional, operator.name)(*args, **named)
    if len(operator.outputs) == 1:
        return values[operator.inputs[0]].copy_(results)
    pairs = zip(operator.outputs, results, strict=True)
    return tuple([values[written[r]].copy_(one) if r in written else one for r, one in pairs])


class Differentiable:
    """Takes over the calls of one functional form.

    Calls give `NotImplemented` for operands that are plain memory after all.
    """

    def __init__(self, schema: Schema, op: Any, handle: Any):
        self._handle = handle
        self._schema = schema
        self._op = op
        operator = schema.operator
        self._is_simple = not (schema.in_place or operator.differentiated_as or operator.lists)
        self._apply: Any = None
        self._transform: Any = None
        self._places: dict[str, tuple[int, ...]] = {}

    def __call__(
        self, operator: Any, arguments: Sequence[Any], out: Any, options: Sequence[Any]
    ) -> Any:
        """`arguments` and `options` are in the order of `operator`: that of the form, or of the one that
        takes a number for its operand."""
        tracked, special = _looked_at(arguments, out)
        if special:
            return self._dispatched(self._values(operator, arguments, options), out)
        if not tracked or not torch.is_grad_enabled():
            return NotImplemented
        if self._is_simple and out is None:
            self._take_next(operator)
            args = (*arguments, *options)
            if self._apply is None:
                self._apply = _function(self._schema)
            return self._apply(*[args[index] for index in self._order(operator)])
        values = self._values(operator, arguments, options)
        if self._schema.in_place:
            return composed(self._schema, values)
        if out is not None:
            raise invalid(
                "out= is not differentiable, but an argument requires grad; leave it out, or use "
                "torch.no_grad()"
            )
        if self._schema.operator.lists:
            return self._dispatched(values, None)
        return composed(self._schema, values)

    def _take_next(self, operator: Any) -> None:
        """Let the form take its next calls over itself, where all operands are tensors."""
        handles = (self._handle, self._handle.number_form)
        for handle in handles if is_recordable(self._schema) else ():
            if handle is not None and handle.handle.operator is operator:
                handle.recorded = recorded(self._schema, operator)

    def _order(self, operator: Any) -> tuple[int, ...]:
        """Places of the schema's parameters among the operands and options of `operator`."""
        found = self._places.get(operator.name)
        if found is None:
            roles = _roles(operator)
            found = tuple([roles.index(role) for role in self._schema.parameters])
            self._places[operator.name] = found
        return found

    def _values(
        self, operator: Any, arguments: Sequence[Any], options: Sequence[Any]
    ) -> dict[str, Any]:
        return dict(zip(_roles(operator), (*arguments, *options), strict=True))

    def _dispatched(self, values: dict[str, Any], out: Any) -> Any:
        """The call by PyTorch's dispatcher, or where a function is being transformed into its gradient."""
        inner = peek_interpreter_stack()
        if inner is not None and inner.key() == TransformType.Jvp:
            raise NotImplementedError(  # the dispatcher takes registered operators for constants
                f"aclnn.{self._schema.name} has no derivative in forward mode: use torch.func.vjp"
            )
        if inner is not None and inner.key() == TransformType.Grad:
            result = self._transformed(values)
            return result if out is None else _copied(out, result)
        for role, value in values.items():
            if isinstance(value, aclDataType):
                values[role] = torch_dtype(value)
        args, named = self._schema.arguments(self._schema.with_tensors_for_numbers(values))
        result = self._op(*args, **named)
        if self._schema.in_place:
            return _written(self._schema, values, result)
        return result if out is None else _copied(out, result)

    def _transformed(self, values: dict[str, Any]) -> Any:
        """The call in a function whose gradient ``torch.func`` takes: what `torch.library` makes of
        gradients cannot be transformed."""
        schema = self._schema
        if schema.in_place or schema.operator.differentiated_as:
            return composed(schema, values)
        if self._transform is None:
            self._transform = _transformable(schema)
        return self._transform(*_flat(schema, values))


def _written(schema: Schema, values: dict[str, Any], made: Any) -> Any:
    """Results of a form in place: the arguments that it wrote, and what it made."""
    written, outputs = schema.written, schema.operator.outputs
    if len(outputs) == 1:
        return values[written[outputs[0]]]
    left = iter(made if isinstance(made, tuple) else (made,))
    return tuple([values[written[role]] if role in written else next(left) for role in outputs])


def _roles(operator: Any) -> tuple[str, ...]:
    options = [a.role for a in (*operator.scalars, *operator.switches)]
    return (*operator.kernel_operands, *options)


def _copied(out: Any, result: Any) -> Any:
    if not isinstance(result, tuple):
        return out.copy_(result)
    return tuple([index.copy_(one) for index, one in zip(out, result, strict=True)])


def _looked_at(arguments: Sequence[Any], out: Any) -> tuple[bool, bool]:
    """Whether an operand requires grad, and whether PyTorch's dispatcher has to see the call: one is
    no plain tensor or has no memory, or functions are being transformed."""
    tracked = special = False
    for one in arguments if out is None else (*arguments, out):
        kind = type(one)
        if kind in PLAIN:
            tracked, special = tracked or one.requires_grad, special or one.is_meta
        elif kind in (list, tuple):
            inner = _looked_at(one, None)
            tracked, special = tracked or inner[0], special or inner[1]
        elif isinstance(one, torch.Tensor):
            special = True
    return tracked, special or peek_interpreter_stack() is not None


def _function(schema: Schema) -> Any:
    """A differentiable call of a functional form, whose parameters are in the schema's order."""
    derivative = derivative_of(schema)
    function, parameters = schema.function, schema.parameters
    n_positional, keyword = len(schema.positional), schema.keyword

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            if keyword:
                named = dict(zip(keyword, args[n_positional:], strict=True))
                result = function(*args[:n_positional], **named)
            else:
                result = function(*args)
            derivative.save(ctx, args, result if isinstance(result, tuple) else (result,))
            return result

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            needed = dict(zip(parameters, ctx.needs_input_grad, strict=True))
            found = derivative.gradients(ctx, grads, needed)
            return tuple([found.get(role) for role in parameters])

    Function.__name__ = Function.__qualname__ = f"Aclnn{schema.name.title().replace('_', '')}"
    # Without what `Function.apply` does for functions that are transformed, which are dispatched.
    return super(torch.autograd.Function, Function).apply


def _flat(schema: Schema, values: dict[str, Any]) -> list[Any]:
    """Arguments in the schema's order, then the tensors of those that are lists, which leave their
    number in their place."""
    flat, tensors = [], []
    for role in schema.parameters:
        if role in schema.operator.lists:
            tensors += values[role]
            flat.append(len(values[role]))
        else:
            flat.append(values[role])
    return flat + tensors


def _unflattened(schema: Schema, flat: Sequence[Any]) -> list[Any]:
    """The arguments that `_flat` took apart."""
    count = len(schema.parameters)
    rest = iter(flat[count:])
    return [
        [next(rest) for _ in range(one)] if role in schema.operator.lists else one
        for role, one in zip(schema.parameters, flat[:count], strict=True)
    ]


def _transformable(schema: Schema) -> Any:
    """A differentiable call that ``torch.func`` can transform, of arguments that `_flat` gives."""
    derivative, parameters = derivative_of(schema), schema.parameters

    class Function(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*flat: Any) -> Any:
            values = dict(zip(parameters, _unflattened(schema, flat), strict=True))
            args, named = schema.arguments(values)
            return schema.function(*args, **named)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            results = output if isinstance(output, tuple) else (output,)
            derivative.save(ctx, _unflattened(schema, inputs), results)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            n_tensors = len(ctx.needs_input_grad) - len(parameters)
            needed = dict(zip(parameters, ctx.needs_input_grad, strict=False))
            needed |= dict.fromkeys(schema.operator.lists, ctx.needs_input_grad[-n_tensors:])
            found = derivative.gradients(ctx, grads, needed)
            listed = [one for role in schema.operator.lists for one in found.pop(role)]
            return tuple([found.get(role) for role in parameters] + listed)

    return Function.apply
