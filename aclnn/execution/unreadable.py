"""Refusal of PyTorch's tensors that are more, or other, than the memory they have."""

from __future__ import annotations

import sys
from typing import Any

from aclnn.acl import dtypes
from aclnn.acl.errors import invalid, wrong_kind


def refuse_unreadable(tensor: Any, name: str) -> None:
    """Raise an `AclnnError` that says what to do, if a tensor's memory does not have its values.

    Parameters
    ----------
    tensor : torch.Tensor
    name : str
        What the caller calls it, for messages.
    """
    if tensor.device.type == "meta":
        raise invalid(f"{name} is on device meta and has no values, must be on the CPU")
    if tensor.device.type != "cpu":
        raise invalid(f"{name} is on device {tensor.device}, must be on the CPU; use {name}.cpu()")
    if tensor.is_quantized:
        raise wrong_kind(f"{name} is quantized; use {name}.dequantize()")
    if str(tensor.layout) != "torch.strided":
        raise wrong_kind(
            f"{name} has layout {tensor.layout}, must be torch.strided; use {name}.to_dense()"
        )
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in dtypes.NAMES:
        raise wrong_kind(f"{name} has dtype {dtype}, which no operator takes")
    if tensor.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise wrong_kind(
            f"{name} requires grad, but planned calls are not differentiated; use {name}.detach(), "
            "or torch.no_grad()"
        )
    if tensor.is_conj():
        raise wrong_kind(f"{name} is a conjugated view of memory; use {name}.resolve_conj()")
    if tensor.is_neg():
        raise wrong_kind(f"{name} is a negated view of memory; use {name}.resolve_neg()")
    refuse_tangent(name, tensor)


def refuse_tangent(name: str, tensor: Any, function: str = "") -> None:
    """Derivatives in forward mode would be zero without a word."""
    if has_tangent(tensor):
        call = f"{function}: " if function else ""
        raise invalid(
            f"{call}{name} carries a tangent, but there are no derivatives in forward mode; use "
            f"torch.func.vjp, or torch.autograd.forward_ad.unpack_dual({name}).primal"
        )


def has_tangent(tensor: Any) -> bool:
    """Whether a tensor is a dual number's of PyTorch's forward mode."""
    forward: Any = sys.modules.get("torch.autograd.forward_ad")
    if forward is None or forward._current_level < 0:
        return False
    return forward.unpack_dual(tensor).tangent is not None
