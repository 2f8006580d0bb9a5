"""Overloads of ATen's operators that a functional form stands for on the device, beyond those of the compiler.

Each call gets what PyTorch's operator has, with tensors of the CPU over the device's memory, and may read them: other
than in a graph, data are there. What is none of a form's business raises `NotImplementedError`, and falls back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from aclnn.acl.constants import aclDataType
from aclnn.torch.npu.refusals import checked
from aclnn.torch.overloads import form
from aclnn.torch.schemas import acl_dtype

aten = torch.ops.aten
Stands = tuple[str, Callable[..., Any]]


def _on_tensors(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call, but in functions that are transformed, where operands are arrays."""

    def computed(x: Any, *args: Any, **named: Any) -> Any:
        if isinstance(x, np.ndarray | np.generic):
            raise NotImplementedError("it reads tensors")
        return call(x, *args, **named)

    return computed


# --- Elements --------------------------------------------------------------------------------------


def _prelu(x: Any, weight: Any) -> Any:
    return form("prelu")(x, weight.reshape(-1))


def _prelu_backward(grad: Any, x: Any, weight: Any) -> Any:
    dx, dweight = form("prelu_backward")(grad, x, weight.reshape(-1))
    return dx, dweight.reshape(weight.shape)


def _rrelu(x: Any, noise: Any, lower: float = 0.125, upper: float = 1 / 3, training: bool = False,
           generator: Any = None) -> Any:  # fmt: skip
    if training:
        raise NotImplementedError("slopes are drawn at random")
    return form("rrelu_with_noise")(x, noise, lower, upper, False)


def _added_relu(x: Any, other: Any, alpha: Any = 1) -> Any:
    return form("add_relu")(x, other, alpha=alpha)


def _one_hot(x: Any, num_classes: int = -1) -> Any:
    if not x.numel() or x.dtype != torch.int64 or int(x.min()) < 0:
        raise NotImplementedError("PyTorch says what is wrong")
    most = int(x.max()) + 1
    if num_classes != -1 and most > num_classes:
        raise NotImplementedError("PyTorch says what is wrong")
    on, off = torch.ones(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    return form("one_hot")(
        x, most if num_classes == -1 else num_classes, on_value=on, off_value=off
    )


# --- Reductions ------------------------------------------------------------------------------------


def _norm(x: Any, p: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any) -> Any:
    return form("norm")(form("cast")(x, acl_dtype(dtype)), 2.0 if p is None else p, dim, keepdim)


def _extremes(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return form("aminmax")(x, dim=dim, keepdim=keepdim)


def _normalized(name: str) -> Callable[..., Any]:
    """Softmax, which is cast first where the result is of float32 for halves."""

    def computed(x: Any, dim: int, half_to_float: bool) -> Any:
        return form(name)(form("cast")(x, aclDataType.ACL_FLOAT) if half_to_float else x, dim)

    return computed


def _normalized_backward(name: str) -> Callable[..., Any]:
    def computed(grad: Any, result: Any, dim: int, dtype: Any) -> Any:
        made = form(name)(grad, result, dim)
        return form("cast")(made, acl_dtype(dtype)) if dtype == torch.float16 else made

    return computed


# --- Indices ---------------------------------------------------------------------------------------


def _as_mask(one: Any) -> Any:
    return one.bool() if isinstance(one, torch.Tensor) and one.dtype == torch.uint8 else one


def _check_indices(x: Any, indices: Any) -> None:
    arguments = [one for one in indices if one is not None]
    used = sum(one.dim() if one.dtype in (torch.bool, torch.uint8) else 1 for one in arguments)
    if not arguments or used > x.dim() or any(one.is_floating_point() for one in arguments):
        raise NotImplementedError("PyTorch says what is wrong")


def _indexed(x: Any, indices: Any) -> Any:
    _check_indices(x, indices)
    return form("index")(x, [_as_mask(one) for one in indices])


def put(x: Any, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False) -> Any:
    """Write elements in place."""
    _check_indices(x, indices)
    if values.dtype != x.dtype or any(
        n > 1 and not step for n, step in zip(x.shape, x.stride(), strict=True)
    ):
        raise NotImplementedError("PyTorch says what is wrong")
    return form("index_put_")(x, [_as_mask(one) for one in indices], values, accumulate)


def _put_in_copy(x: Any, *args: Any) -> Any:
    return put(x.clone(), *args)


def _filled_at(x: Any, dim: int, index: Any, value: Any) -> Any:
    if value.dim():
        raise NotImplementedError("PyTorch says what is wrong")
    return form("index_fill")(x, dim, index, value.item())


def _nonzero(x: Any) -> Any:
    made, size = form("nonzero_padded")(x)
    return made[: int(size[0])].clone()


def _masked(x: Any, mask: Any) -> Any:
    if mask.dtype != torch.bool:
        raise NotImplementedError("PyTorch says what is wrong")
    x, mask = torch.broadcast_tensors(x, mask)
    made, size = form("masked_select_padded")(x, mask)
    return made[: int(size[0])].clone()


def _numbers_repeated(repeats: Any, output_size: int | None = None) -> Any:
    """Each number as often as its element says."""
    total = int(repeats.sum()) if repeats.numel() else 0
    if (
        repeats.dim() != 1
        or not total
        or int(repeats.min()) < 0
        or output_size not in (None, total)
    ):
        raise NotImplementedError("PyTorch says what is wrong")
    numbers = torch.arange(repeats.numel(), dtype=repeats.dtype)
    return form("repeat_interleave_tensor")(numbers, repeats, 0, output_size=total)


def _sorted(x: Any, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Any:
    if x.dtype in (torch.float64, np.float64):
        raise checked("Input data type should not be float64 ", "002")
    return form("sort")(x, dim, descending, stable=bool(stable))


def _order(x: Any, dim: int = -1, descending: bool = False) -> Any:
    return form("argsort")(x, dim, descending)


# --- Layers ----------------------------------------------------------------------------------------


def _convolved(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
               output_padding: Any, groups: int) -> Any:  # fmt: skip
    return form("convolution")(x, weight, bias, list(stride), list(padding), list(dilation), transposed,
                               list(output_padding), groups)  # fmt: skip


def _convolved_backward(grad: Any, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                        output_padding: Any, groups: int, output_mask: Any) -> Any:  # fmt: skip
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    return form("convolution_backward")(
        grad, x, weight, [channels], list(stride), list(padding), list(dilation), transposed, list(output_padding),
        groups, list(output_mask),
    )  # fmt: skip


def _batch_norm(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float,
                eps: float) -> Any:  # fmt: skip
    """Running statistics are written, which the schema does not say."""
    made, saved, scale, new_mean, new_variance = form("native_batch_norm_functional")(
        x, weight, bias, mean, variance, training, momentum, eps
    )
    for to, one in ((mean, new_mean), (variance, new_variance)):
        if training and to is not None and one is not None:
            to.copy_(one)
    return made, saved, scale


def _batch_norm_without(
    x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    return _batch_norm(x, weight, bias, None, None, training, momentum, eps)


# By ATen's own operator: the form that it counts as, and the call.
EQUIVALENTS: dict[Any, Stands] = {
    aten._prelu_kernel.default: ("prelu", _prelu),
    aten._prelu_kernel_backward.default: ("prelu_backward", _prelu_backward),
    aten.rrelu_with_noise.default: ("rrelu_with_noise", _rrelu),
    aten._add_relu.Tensor: ("add_relu", _added_relu),
    aten._add_relu.Scalar: ("add_relu", _added_relu),
    aten.silu_backward.default: ("silu_backward", lambda grad, x: form("silu_backward")(grad, x)),
    aten.mish_backward.default: ("mish_backward", lambda grad, x: form("mish_backward")(grad, x)),
    aten.log_sigmoid_forward.default: (
        "log_sigmoid_forward", _on_tensors(lambda x: (form("log_sigmoid_forward")(x), torch.empty(0, dtype=x.dtype))),
    ),
    aten.log_sigmoid_backward.default: (
        "log_sigmoid_backward", lambda grad, x, buffer: form("log_sigmoid_backward")(grad, x, buffer),
    ),
    aten.one_hot.default: ("one_hot", _on_tensors(_one_hot)),
    aten.isfinite.default: ("isfinite", lambda x: form("isfinite")(x)),
    aten.norm.ScalarOpt_dtype: ("norm", _norm),
    aten.norm.ScalarOpt_dim_dtype: ("norm", _norm),
    aten._softmax.default: ("softmax", _normalized("softmax")),
    aten._log_softmax.default: ("log_softmax", _normalized("log_softmax")),
    aten._softmax_backward_data.default: ("softmax_backward", _normalized_backward("softmax_backward")),
    aten._log_softmax_backward_data.default: (
        "log_softmax_backward", _normalized_backward("log_softmax_backward"),
    ),
    aten._aminmax.default: ("aminmax", _extremes),
    aten._aminmax.dim: ("aminmax", _extremes),
    aten.index.Tensor: ("index", _on_tensors(_indexed)),
    aten._unsafe_index.Tensor: ("index", _on_tensors(_indexed)),
    aten.index_put.default: ("index_put", _on_tensors(_put_in_copy)),
    aten._unsafe_index_put.default: ("index_put", _on_tensors(_put_in_copy)),
    aten._index_put_impl.default: ("index_put", _on_tensors(_put_in_copy)),
    aten.index_fill.int_Tensor: ("index_fill", _on_tensors(_filled_at)),
    aten.nonzero.default: ("nonzero_padded", _on_tensors(_nonzero)),
    aten.masked_select.default: ("masked_select_padded", _on_tensors(_masked)),
    aten.repeat.default: ("repeat", lambda x, repeats: form("repeat")(x, list(repeats))),
    aten.repeat_interleave.Tensor: ("repeat_interleave_tensor", _on_tensors(_numbers_repeated)),
    aten.sort.stable: ("sort", _sorted),
    aten.argsort.default: ("argsort", _order),
    aten.convolution_overrideable.default: ("convolution", _convolved),
    aten.convolution_backward_overrideable.default: ("convolution_backward", _convolved_backward),
    aten.native_batch_norm.default: ("native_batch_norm_functional", _on_tensors(_batch_norm)),
    aten._native_batch_norm_legit.default: ("native_batch_norm_functional", _on_tensors(_batch_norm)),
    aten._native_batch_norm_legit.no_stats: ("native_batch_norm_functional", _on_tensors(_batch_norm_without)),
}  # fmt: skip

# Operators that write operands: the form, and a call that writes into memory of the device.
WRITING: dict[Any, Stands] = {
    aten.index_put_.default: ("index_put", put),
    aten._index_put_impl_.default: ("index_put", put),
}


def _adamw(tensors: list[Any], grads: Any, first: Any, second: Any, most: Any, steps: Any, *, lr: Any, beta1: float,
           beta2: float, weight_decay: float, eps: float, amsgrad: bool, maximize: bool, grad_scale: Any = None,
           found_inf: Any = None) -> None:  # fmt: skip
    """A step of each parameter; steps are counted before it, and the form counts those before."""
    if found_inf is not None and float(found_inf):
        return
    for k, one in enumerate(tensors):
        if grad_scale is not None:
            grads[k].div_(grad_scale)
        form("adamw_")(
            one, first[k], second[k], most[k] if amsgrad else None, grads[k], (steps[k] - 1).reshape(1), lr=float(lr),
            beta1=beta1, beta2=beta2, weight_decay=weight_decay, eps=eps, amsgrad=amsgrad, maximize=maximize,
        )  # fmt: skip


WRITING[aten._fused_adamw_.default] = ("adamw_", _adamw)
WRITING[aten._fused_adamw_.tensor_lr] = ("adamw_", _adamw)

# In place, overloads of other names than those that give a new tensor.
IN_PLACE: dict[Any, Any] = {
    aten.floor_divide.default: aten.floor_divide_.Tensor,
    aten.pow.Tensor_Scalar: aten.pow_.Scalar,
    aten.pow.Tensor_Tensor: aten.pow_.Tensor,
}
