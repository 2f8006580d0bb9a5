"""Gradients of operators, from the formulas of their declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch

from aclnn.api import functional
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
        self._options = tuple(
            [
                (role, place)
                for place, role in enumerate(schema.parameters)
                if role in used and role not in operator.lists
            ]
        )
        self._inputs = tuple([(role, order.index(role)) for role in operator.inputs])

    def save(self, ctx: Any, args: Sequence[Any], results: Sequence[Any]) -> None:
        """Keep what formulas need of a call."""
        every = (*args, *results)
        ctx.save_for_backward(
            *[x if isinstance(x := every[k], torch.Tensor) else None for _, k in self._kept]
        )
        ctx.options = [
            (r, v) for r, k in self._options if not isinstance(v := args[k], torch.Tensor)
        ]
        ctx.like = {role: _described(args[place]) for role, place in self._inputs}

    def gradients(self, ctx: Any, grad: Any, needed: Mapping[str, Any]) -> dict[str, Any]:
        """Gradients by role of those inputs for which `needed` has something true."""
        if not self.formulas:
            raise NotImplementedError(
                f"aclnn.{self.schema.name} has no derivative: detach() what it is given"
            )
        known = dict(ctx.options)
        for (role, _), value in zip(self._kept, ctx.saved_tensors, strict=True):
            if value is not None:
                known[role] = value
        known["grad"] = grad
        for role in self.schema.operator.lists:
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
            if _any(needed[role]):
                found[role] = _fitted(eval(formula.code, NAMESPACE, known), like[role])
            return
        wanted = known["needed"] = [_any(needed[role]) for role in formula.roles]
        if not any(wanted):
            return
        made = eval(formula.code, NAMESPACE, known)
        for role, one, want in zip(formula.roles, made, wanted, strict=True):
            if one is not None and want:
                found[role] = _fitted(one, like[role])


def _any(needed: Any) -> bool:
    return any(needed) if isinstance(needed, list | tuple) else bool(needed)


Like = tuple[torch.Size, torch.dtype]  # what a gradient has to be like


def _described(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return given.shape, given.dtype
    return [_described(one) for one in given] if isinstance(given, list | tuple) else None


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


# --- What formulas may call besides functional forms ---------------------------------------------


def _conj(value: Any) -> Any:
    return value.conj() if isinstance(value, torch.Tensor) else value.conjugate()


def _gradients_of_product(grad: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Those of matmul, whose operands may be vectors."""
    if a.ndim == 1 and b.ndim == 1:
        return grad * _conj(b), grad * _conj(a)
    rows = a[None] if a.ndim == 1 else a
    columns = b[:, None] if b.ndim == 1 else b
    whole = grad.unsqueeze(-2) if a.ndim == 1 else grad.unsqueeze(-1) if b.ndim == 1 else grad
    of_a = NAMESPACE["matmul"](whole, columns.mH)
    of_b = NAMESPACE["matmul"](rows.mH, whole)
    of_a = of_a.sum_to_size(rows.shape).reshape(a.shape)
    return of_a, of_b.sum_to_size(columns.shape).reshape(b.shape)


def _permuted_back(grad: Any, dims: Sequence[int]) -> Any:
    places = [dim % len(dims) for dim in dims]
    return grad.permute([places.index(place) for place in range(len(dims))])


def _parts_of_cat(grad: Any, tensors: Sequence[Like], dim: int) -> list[Any]:
    parts, start = [], 0
    for shape, _ in tensors:
        empty = shape.numel() == 0
        size = 0 if empty else shape[dim]
        parts.append(grad.new_zeros(shape) if empty else grad.narrow(dim, start, size))
        start += size
    return parts


def _repeated_along(grad: Any, like: Any, dim: Sequence[int] | int | None, keepdim: bool) -> Any:
    """The gradient of a sum: the same for all elements that it is of."""
    rank = like.ndim
    axes = (dim,) if isinstance(dim, int) else tuple(dim or range(rank))
    if not keepdim:
        for axis in sorted([axis % rank for axis in axes] if rank else []):
            grad = grad.unsqueeze(axis)
    return grad.expand(like.shape)


NAMESPACE: dict[str, Any] = {
    "aten": torch.ops.aten,
    "conj": _conj,
    "gradients_of_product": _gradients_of_product,
    "permuted_back": _permuted_back,
    "parts_of_cat": _parts_of_cat,
    "repeated_along": _repeated_along,
} | {name: getattr(functional, name) for name in functional.__all__}
