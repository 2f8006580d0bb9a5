"""``matmul``: one operator with a gradient of its own, where PyTorch composes it of others.

Where something below records or transforms calls (compilers, ``torch.func``, captures, distributed tensors), it is
the composite, whose parts these know.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

from aclnn.torch.npu import operators
from aclnn.torch.overloads import form
from aclnn.torch.private import (
    AutoDispatchBelowAutograd,
    DispatchKey,
    len_torch_dispatch_stack,
    peek_interpreter_stack,
)

aten = torch.ops.aten
_libraries: list[Any] = []
_COMPOSITE = DispatchKey.CompositeImplicitAutograd
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_transforms = peek_interpreter_stack
_modes = len_torch_dispatch_stack


def register() -> None:
    """Register the operator below and above autograd."""
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    op = aten.matmul.default
    operators.implement(op, "matmul", lambda x, other: form("matmul")(x, other))
    library.impl("matmul", _differentiated, "AutogradPrivateUse1")


def _differentiated(x: Any, other: Any) -> Any:
    if not (x.dim() and other.dim()):
        raise RuntimeError(
            "both arguments to matmul need to be at least 1D, but they are "
            f"{x.dim()}D and {other.dim()}D"
        )
    if (
        type(x) not in _PLAIN
        or type(other) not in _PLAIN
        or forward_ad._current_level >= 0
        or _modes()
        or _transforms() is not None
    ):
        return aten.matmul.default._op_dk(_COMPOSITE, x, other)
    if torch.is_grad_enabled() and (x.requires_grad or other.requires_grad):
        return _Product.apply(x, other)
    with AutoDispatchBelowAutograd():
        return aten.matmul(x, other)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, other: Any) -> Any:
        ctx.save_for_backward(x, other)
        with AutoDispatchBelowAutograd():
            return aten.matmul(x, other)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, other = ctx.saved_tensors
        (grad,) = grads
        rows = x if x.dim() > 1 else x.unsqueeze(0)
        columns = other if other.dim() > 1 else other.unsqueeze(1)
        if other.dim() == 1:
            grad = grad.unsqueeze(-1)
        if x.dim() == 1:
            grad = grad.unsqueeze(-2)
        of_x = of_other = None
        if ctx.needs_input_grad[0]:
            of_x = _summed(grad, columns.mT, rows.shape).reshape(x.shape)
        if ctx.needs_input_grad[1]:
            of_other = _summed_products(rows, grad, columns.shape).reshape(other.shape)
        return of_x, of_other


def _summed(grad: Any, columns: Any, shape: torch.Size) -> Any:
    return torch.matmul(grad, columns).sum_to_size(shape)


def _summed_products(rows: Any, grad: Any, shape: torch.Size) -> Any:
    """Products and their sum: one product of all rows where one matrix was the factor of all."""
    if len(shape) == 2 and rows.dim() > 2 and rows.shape[:-1] == grad.shape[:-1]:
        return torch.mm(rows.flatten(0, -2).mT, grad.flatten(0, -2))
    return torch.matmul(rows.mT, grad).sum_to_size(shape)
