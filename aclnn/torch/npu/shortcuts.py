"""Which calls of ATen's operators reach a functional form by the short way, which the device's C++ part goes.

There operands become aliases of the device's memory and the form is called at once. It takes operands of one dtype on
one device, numbers, and options with their defaults; a call is made again the long way (`operators.py`) where it is
otherwise, and where the form refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.torch.counterparts import WRITTEN_OUT, is_pointwise
from aclnn.torch.overloads import form

aten = torch.ops.aten
OPERAND, VALUE, DEFAULT = range(3)


@dataclass(frozen=True)
class Short:
    """A callable, and what it gets of an operator's arguments: operands, values; others must be their defaults."""

    call: Callable[..., Any]
    passed: tuple[int, ...]
    names: tuple[str, ...] | None = None
    one_dtype: bool = False
    in_place: bool = False
    real: bool = False  # whether operands have to be floating-point numbers


# Operators whose arguments are others than those of the form: what takes operands and values by position.
_WRITTEN: dict[Any, tuple[Callable[..., Any], tuple[int, ...]]] = {
    aten._softmax.default: (lambda x, dim, half: form("softmax")(x, dim) if not half else _no(), (0, 1, 1)),
    aten._log_softmax.default: (
        lambda x, dim, half: form("log_softmax")(x, dim) if not half else _no(), (0, 1, 1),
    ),
    aten.sum.default: (lambda x: form("sum")(x), (0, 2)),
    aten.sum.dim_IntList: (lambda x, dim, keepdim: form("sum")(x, dim, keepdim), (0, 1, 1, 2)),
    aten.mean.dim: (lambda x, dim, keepdim: form("mean")(x, dim, keepdim), (0, 1, 1, 2)),
    aten.cat.default: (lambda tensors, dim: form("cat")(tensors, dim), (0, 1)),
    aten.embedding.default: (lambda weight, indices: form("embedding")(weight, indices), (0, 0, 2, 2, 2)),
    aten.where.self: (lambda condition, a, b: form("where")(condition, a, b), (0, 0, 0)),
    aten.gather.default: (lambda x, dim, index: form("gather")(x, dim, index), (0, 1, 0, 2)),
    aten.isnan.default: (lambda x: form("ne")(x, x), (0,)),
    aten.argmax.default: (lambda x, dim, keepdim: form("arg_max")(x, dim, keepdim), (0, 1, 1)),
    aten.pow.Tensor_Tensor: (lambda x, y: form("pow")(x, y), (0, 0)),
}  # fmt: skip


def _no() -> Any:
    raise NotImplementedError("the longer way")


def shorter(target: Any, name: str) -> Short | None:
    """The short way of an operator whose result is a new tensor; None where it has none."""
    if target in _WRITTEN:
        call, passed = _WRITTEN[target]
        one = target in (aten.pow.Tensor_Tensor, aten.cat.default)
        return Short(call, passed, one_dtype=one)
    if target in WRITTEN_OUT or target._opname != name:
        return None
    return _by_names(target, name, form(name), in_place=False)


def shorter_in_place(target: Any, name: str) -> Short | None:
    """The short way of its form in place."""
    own = HANDLES_BY_NAME[name].handle.operator.in_place
    if target in WRITTEN_OUT or target._opname != name or own not in HANDLES_BY_NAME:
        return None
    if not is_pointwise(target) or target._opname in ("pow", "where"):
        return None
    return _by_names(target, name, form(own), in_place=True)


def _by_names(target: Any, name: str, call: Any, in_place: bool) -> Short | None:
    """Operands by position, options that have no default by name."""
    operator, schema = HANDLES_BY_NAME[name].handle.operator, target._schema.arguments
    operands = [role for role in operator.positional if role in operator.inputs]
    tensors = [a for a in schema if "Tensor" in str(a.type) or a.name == "other"]
    if len(tensors) != len(operands) or list(schema[: len(tensors)]) != tensors:
        return None
    others = schema[len(tensors) :]
    passed = [OPERAND] * len(tensors)
    passed += [DEFAULT if a.has_default_value() else VALUE for a in others]
    names = tuple(a.name for a in others if not a.has_default_value())
    if any(index != sorted(passed)[k] for k, index in enumerate(passed)):
        return None
    return Short(call, tuple(passed), names or None, is_pointwise(target), in_place, name == "div")
