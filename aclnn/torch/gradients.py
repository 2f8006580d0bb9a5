"""Gradients of operators, from the formulas of their declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch

from aclnn.torch.schemas import Schema


@dataclass(frozen=True)
class Formula:
    """Gives the gradients of some inputs."""

    roles: tuple[str, ...]
    code: CodeType


class Derivative:
    """The gradients of one operator, whose arguments come in the order of its schema."""

    def __init__(self, schema: Schema):
        operator = schema.operator
        self.schema = schema
        self.formulas = [
            Formula(
                tuple(roles.split(", ")), compile(text, f"<gradient of {operator.name}>", "eval")
            )
            for roles, text in operator.gradient.items()
        ]
        used = {name for formula in self.formulas for name in formula.code.co_names}
        order = (*schema.parameters, *operator.outputs)
        tensors = [r for r in (*operator.inputs, *operator.outputs) if r not in operator.lists]
        self._kept = tuple([(role, order.index(role)) for role in tensors if role in used])
        # Lists of tensors without gradients, which are indices, are kept as they are.
        self._described = tuple([role for role in operator.lists if role in operator.gradient])
        self._options = tuple(
            [
                (role, index)
                for index, role in enumerate(schema.parameters)
                if role in used and role not in self._described
            ]
        )
        self._inputs = tuple([(role, order.index(role)) for role in operator.inputs])
        later = tuple([(index, f"grad_{role}") for index, role in enumerate(operator.outputs)][1:])
        self._later = tuple([(index, name) for index, name in later if name in used])
        tracked = {0, *[index for index, _ in self._later]}
        self._untracked = tuple([k for k in range(len(operator.outputs)) if k not in tracked])

    def save(self, ctx: Any, args: Sequence[Any], results: Sequence[Any]) -> None:
        """Keep what formulas need of a call, and say which results have gradients."""
        if self._untracked:
            untracked = [x for k in self._untracked if (x := results[k]) is not None]
            ctx.mark_non_differentiable(*untracked)
        every = (*args, *results)
        ctx.save_for_backward(
            *[x if isinstance(x := every[k], torch.Tensor) else None for _, k in self._kept]
        )
        ctx.options = [
            (r, v) for r, k in self._options if not isinstance(v := args[k], torch.Tensor)
        ]
        ctx.like = {role: _described(args[index]) for role, index in self._inputs}

    def gradients(
        self, ctx: Any, grads: Sequence[Any], needed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Gradients by role of those inputs for which `needed` has something true.

        It lacks those that kept their defaults: `torch.library` drops them.
        """
        if not self.formulas:
            raise NotImplementedError(
                f"aclnn.{self.schema.name} has no derivative: detach() what it is given"
            )
        known = dict(ctx.options)
        for (role, _), value in zip(self._kept, ctx.saved_tensors, strict=True):
            known.setdefault(role, None)
            if value is not None:
                known[role] = value
        known["grad"] = grads[0]
        for index, name in self._later:
            known[name] = grads[index]
        for role in self._described:
            known[role] = ctx.like[role]
        found: dict[str, Any] = {}
        for formula in self.formulas:
            self._add(found, formula, known, needed, ctx.like)
        return found

    def _add(
        self,
        found: dict[str, Any],
        formula: Formula,
        known: dict[str, Any],
        needed: Mapping[str, Any],
        like: Mapping[str, Any],
    ) -> None:
        if len(formula.roles) == 1:
            (role,) = formula.roles
            if _any(needed.get(role, False)):
                found[role] = _fitted(evaluated(formula.code, known), like[role])
            return
        requested = known["needed"] = [_any(needed.get(role, False)) for role in formula.roles]
        if not any(requested):
            return
        made = evaluated(formula.code, known)
        for role, one, want in zip(formula.roles, made, requested, strict=True):
            if one is not None and want:
                found[role] = _fitted(one, like[role])


_DERIVATIVES: dict[str, Derivative] = {}


def derivative_of(schema: Schema) -> Derivative:
    """The gradients of an operator, which are read when they are wanted first."""
    found = _DERIVATIVES.get(schema.name)
    if found is None:
        found = _DERIVATIVES[schema.name] = Derivative(schema)
    return found


def evaluated(formula: str | CodeType, values: Mapping[str, Any]) -> Any:
    """Result of a formula of a declaration for values by role."""
    from aclnn.torch.formulas import NAMESPACE  # makes every functional form

    return eval(formula, NAMESPACE, values)


def _any(needed: Any) -> bool:
    return any(needed) if isinstance(needed, list | tuple) else bool(needed)


def _described(arguments: Any) -> Any:
    if isinstance(arguments, torch.Tensor):
        return arguments.shape, arguments.dtype
    return [_described(one) for one in arguments] if isinstance(arguments, list | tuple) else None


def _fitted(gradient: Any, like: Any) -> Any:
    """A gradient of the input's shape and dtype: what was broadcast is summed up."""
    if isinstance(like, list):
        return [_fitted(one, other) for one, other in zip(gradient, like, strict=True)]
    shape, dtype = like
    if gradient.shape != shape:
        same = gradient.numel() == shape.numel()
        gradient = gradient.reshape(shape) if same else gradient.sum_to_size(shape)
    if gradient.dtype == dtype:
        return gradient
    if gradient.dtype.is_complex and not dtype.is_complex:
        gradient = gradient.real
    return gradient.to(dtype)
