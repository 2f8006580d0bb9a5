"""Elementwise calls as functions of autograd, written out: what each keeps and gives is known once.

They are for plain tensors of the CPU, of which one requires grad: what operators share of such a call
(`aclnn.torch.gradients`) takes longer than the call itself. Gradients of operands that were broadcast, or
converted, autograd fits to them itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from aclnn.torch.schemas import Schema


def recorded(schema: Schema, operator: Any) -> Callable[..., Any]:
    """A differentiable call of a functional form.

    Parameters
    ----------
    schema : Schema
    operator : Operator
        That of the form, or the one that takes a number for its operand: all operands are tensors,
        given in the order that kernels have, and options follow, all of them.
    """
    from aclnn.torch.formulas import NAMESPACE  # makes every functional form

    names = NAMESPACE | {"_form": schema.function}
    exec(compile(_text(schema, operator), f"<calls of {schema.name}>", "exec"), names)
    title = f"Aclnn{schema.name.title().replace('_', '')}"
    members = {one: staticmethod(names[one]) for one in ("forward", "backward")}
    made: Any = type(title, (torch.autograd.Function,), members)
    # Without what looks the backward pass up anew for each call, and without what `Function.apply` does
    # for functions that are transformed, which are dispatched.
    made._backward_cls.apply = names["backward"]
    return super(torch.autograd.Function, made).apply


def is_recordable(schema: Schema) -> bool:
    """Whether `recorded` can make a form's calls."""
    operator = schema.operator
    return bool(
        operator.is_elementwise
        and len(operator.outputs) == 1
        and operator.gradient
        and not (schema.in_place or operator.differentiated_as or operator.lists)
        and not operator.optional
    )


def _text(schema: Schema, operator: Any) -> str:
    """Both passes as Python's functions. Names that are no roles have an underscore.

    >>> from aclnn.operators import REGISTRY
    >>> from aclnn.torch.schemas import schema_of
    >>> lerp = schema_of(REGISTRY["lerp"], "lerp")
    >>> print(_text(lerp, REGISTRY["lerps"]))
    def forward(_ctx, input, end, weight):
        out = _form(input, end, weight)
        _ctx.save_for_backward(input, end)
        _ctx.options = weight,
        return out
    def backward(_ctx, grad):
        input, end, = _ctx.saved_tensors
        weight, = _ctx.options
        _needed = _ctx.needs_input_grad
        return (grad * (1 - weight)) if _needed[0] else None, (grad * weight) if _needed[1] else None, None,
    """
    gradient, (out,) = schema.operator.gradient, schema.operator.outputs
    tensors = operator.kernel_operands
    options = [a.role for a in (*operator.scalars, *operator.switches)]
    used = {name for text in gradient.values() for name in compile(text, "", "eval").co_names}
    kept = [role for role in (*tensors, out) if role in used]
    used_options = [role for role in options if role in used]
    value = [*schema.positional, *[f"{role}={role}" for role in schema.keyword]]
    requested = [f" if _needed[{index}] else None" for index in range(len(tensors))]
    if len(tensors) == 1:  # without a gradient of it there is no backward pass
        requested = [""]
    gradients = [
        f"({gradient.get(role)}){last}" for role, last in zip(tensors, requested, strict=True)
    ]
    lines = [
        f"def forward(_ctx, {', '.join((*tensors, *options))}):",
        f"    {out} = _form({', '.join(value)})",
        f"    _ctx.save_for_backward({', '.join(kept)})" * bool(kept),
        f"    _ctx.options = {', '.join(used_options)}," * bool(used_options),
        f"    return {out}",
        "def backward(_ctx, grad):",
        f"    {', '.join(kept)}, = _ctx.saved_tensors" * bool(kept),
        f"    {', '.join(used_options)}, = _ctx.options" * bool(used_options),
        "    _needed = _ctx.needs_input_grad" * (len(tensors) > 1),
        f"    return {', '.join([*gradients, *['None'] * len(options)])},",
    ]
    return "\n".join(filter(None, lines))
