"""ATen's operators as functional forms: which form stands for a node, and with what arguments.

Most are found by their names. What PyTorch calls or counts otherwise is written out. Which of them the
backend takes is a matter of speed (`aclnn/torch/speed.py`).
"""

from __future__ import annotations

import itertools
import operator as python
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.torch.overloads import OVERLOADS, Form, form, plain_dtype
from aclnn.torch.private import OpOverload
from aclnn.torch.schemas import acl_dtype

aten = torch.ops.aten


def _converted(x: Any, *, dtype: Any = None, **layout: Any) -> Any:
    return x if dtype is None else form("cast")(x, acl_dtype(dtype))


def _number(value: float, *, dtype: Any = None, **layout: Any) -> Any:
    """An array without dimensions: what the plan reads, not what it computes."""
    return form("cast")(np.array(value), acl_dtype(dtype or torch.get_default_dtype()))


def _cat(tensors: Any, dim: int = 0) -> Any:
    return form("cat")(list(tensors), dim)


def _embedding(weight: Any, indices: Any, *options: Any) -> Any:
    return form("embedding")(weight, indices)


def _attention(
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Any = None,
    scale: float | None = None,
) -> Any:
    if dropout_p:
        raise NotImplementedError("there is no dropout")
    attend = form("scaled_dot_product_attention_forward")
    return attend(query, key, value, attn_mask, is_causal, scale=scale)


def _attention_backward(
    grad: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    logsumexp: Any,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Any = None,
    scale: float | None = None,
) -> Any:
    if dropout_p:
        raise NotImplementedError("there is no dropout")
    differentiate = form("scaled_dot_product_attention_backward")
    return differentiate(grad, query, key, value, out, logsumexp, attn_mask, is_causal, scale=scale)


def _view(x: Any, shape: Sequence[int]) -> Any:
    return x.reshape(tuple(shape))


def _transpose(x: Any, first: int, second: int) -> Any:
    return x.swapaxes(first, second)


def _unsqueeze(x: Any, dim: int) -> Any:
    index = dim % (x.ndim + 1)
    return x.reshape((*x.shape[:index], 1, *x.shape[index:]))


def _expand(x: Any, shape: Sequence[int], implicit: bool = False) -> Any:
    own = (1,) * (len(shape) - x.ndim) + x.shape
    sizes = [mine if size == -1 else size for size, mine in zip(shape, own, strict=True)]
    return x.broadcast_to(tuple(sizes))


def _slice(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]


def _select(x: Any, dim: int, index: int) -> Any:
    return x[(slice(None),) * (dim % x.ndim) + (index,)]


def _split(x: Any, size: int | Sequence[int], dim: int = 0) -> tuple[Any, ...]:
    whole = x.shape[dim]
    sizes = [size] * -(-whole // size) if isinstance(size, int) else size
    ends = list(itertools.accumulate(sizes))
    pairs = zip((0, *ends), ends, strict=False)
    return tuple([_slice(x, dim, start, min(end, whole)) for start, end in pairs])


def _unbind(x: Any, dim: int = 0) -> tuple[Any, ...]:
    return tuple([_select(x, dim, index) for index in range(x.shape[dim])])


def _squeeze(x: Any, dims: int | Sequence[int]) -> Any:
    axes = {dim % max(x.ndim, 1) for dim in ([dims] if isinstance(dims, int) else dims)}
    return x.reshape(tuple([n for axis, n in enumerate(x.shape) if axis not in axes or n != 1]))


def _stack(tensors: Any, dim: int = 0) -> Any:
    return form("stack")(list(tensors), dim)


def _copied(target: Any, source: Any, non_blocking: bool = False) -> Any:
    made = source if source.dtype == target.dtype else source.astype(target.dtype)
    return made if made.shape == target.shape else made.broadcast_to(target.shape)


def _written(target: Any, source: Any, non_blocking: bool = False) -> Any:
    target[...] = _copied(target, source)
    return target


def _slice_scattered(
    x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    made = x.copy()
    _slice(made, dim, start, end, step)[...] = source
    return made


def _select_scattered(x: Any, source: Any, dim: int, index: int) -> Any:
    made = x.copy()
    _select(made, dim, index)[...] = source
    return made


def _flip(x: Any, dims: Sequence[int]) -> Any:
    back = {dim % x.ndim for dim in dims}
    return x[tuple([slice(None, None, -1 if axis in back else 1) for axis in range(x.ndim)])]


def _normalized_by_batch(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float
) -> Any:
    made = form("batch_norm")(x, mean, var, weight, bias, False, momentum, eps)
    return made, mean[:0], var[:0]


def _normalized_in_training(
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    if not training:
        return (*_normalized_by_batch(x, weight, bias, mean, var, momentum, eps), mean, var)
    return form("native_batch_norm_functional")(x, weight, bias, mean, var, True, momentum, eps)


def _normalized_by_itself(
    x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> Any:
    """Without statistics that are kept, as instances are normalized."""
    normalize = form("native_batch_norm_functional")
    return normalize(x, weight, bias, None, None, True, momentum, eps)[:3]


def _undropped(grad: Any, mask: Any, scale: float) -> Any:
    return grad * (mask.astype(grad.dtype) * scale)


# What is a view of an operand: taken where an adjacent node is.
VIEWS: dict[Any, Form] = {
    aten.view.default: _view,
    aten._unsafe_view.default: _view,
    aten.t.default: lambda x: x.T,
    aten.transpose.int: _transpose,
    aten.permute.default: lambda x, dims: x.transpose(*dims),
    aten.unsqueeze.default: _unsqueeze,
    aten.expand.default: _expand,
    aten.slice.Tensor: _slice,
    aten.select.int: _select,
    aten.split.Tensor: _split,
    aten.split_with_sizes.default: _split,
    aten.unbind.int: _unbind,
    aten.squeeze.default: lambda x: _squeeze(x, range(x.ndim)),
    aten.squeeze.dim: _squeeze,
    aten.squeeze.dims: _squeeze,
    aten.alias.default: lambda x: x,
    aten.detach.default: lambda x: x,
    aten.lift_fresh.default: lambda x: x,
    aten.unsafe_split.Tensor: _split,
    aten.unsafe_split_with_sizes.default: _split,
}

# By ATen's own operator: the name under which speed is looked up, and the call.
WRITTEN_OUT: dict[Any, tuple[str, Form]] = {
    **OVERLOADS,
    aten._softmax.default: ("softmax", lambda x, dim, half: form("softmax")(x, dim)),
    aten._log_softmax.default: ("log_softmax", lambda x, dim, half: form("log_softmax")(x, dim)),
    aten._softmax_backward_data.default: (
        "softmax_backward",
        lambda grad, result, dim, dtype: form("softmax_backward")(grad, result, dim),
    ),
    aten._log_softmax_backward_data.default: (
        "log_softmax_backward",
        lambda grad, result, dim, dtype: form("log_softmax_backward")(grad, result, dim),
    ),
    aten._scaled_dot_product_flash_attention_for_cpu.default: (
        "scaled_dot_product_attention_forward",
        _attention,
    ),
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: (
        "scaled_dot_product_attention_backward",
        _attention_backward,
    ),
    aten.where.self: ("where", lambda condition, a, b: form("where")(condition, a, b)),
    aten.rsub.Scalar: ("rsub", lambda x, number, alpha=1: form("rsub")(x, number, alpha=alpha)),
    aten._to_copy.default: ("cast", _converted),
    aten.scalar_tensor.default: ("cast", _number),
    aten.cat.default: ("cat", _cat),
    aten.embedding.default: ("embedding", _embedding),
    aten.gather.default: (
        "gather",
        lambda x, dim, index, *, sparse_grad=False: form("gather")(x, dim, index),
    ),
    aten.stack.default: ("stack", _stack),
    aten.copy.default: ("copy", _copied),
    aten.copy_.default: ("copy", _written),
    aten.fill.Tensor: ("copy", _copied),
    aten.slice_scatter.default: ("slice_scatter", _slice_scattered),
    aten.select_scatter.default: ("select_scatter", _select_scattered),
    aten.flip.default: ("flip", _flip),
    aten._native_batch_norm_legit_no_training.default: ("batch_norm", _normalized_by_batch),
    aten._native_batch_norm_legit_functional.default: (
        "native_batch_norm_functional",
        _normalized_in_training,
    ),
    aten._native_batch_norm_legit.no_stats: (
        "native_batch_norm_functional",
        _normalized_by_itself,
    ),
    aten.native_dropout_backward.default: ("native_dropout_backward", _undropped),
    aten.lift_fresh_copy.default: ("clone", lambda x: x),
    aten.clone.default: ("clone", lambda x, *, memory_format=None: x),
}

_PLAIN_OVERLOADS = ("default", "Tensor", "Scalar")


def view_of(target: Any) -> Form | None:
    return VIEWS.get(target)


def counterpart(target: Any) -> tuple[str, Form] | None:
    """The functional form that stands for an operator of PyTorch's, and how it is called."""
    if target in WRITTEN_OUT:
        return WRITTEN_OUT[target]
    if not isinstance(target, OpOverload):
        return None
    if target.namespace == "aclnn":
        return target._opname, _own(target)
    if target.namespace != "aten" or target._overloadname not in _PLAIN_OVERLOADS:
        return None
    name = target._opname
    if name not in HANDLES_BY_NAME or name == HANDLES_BY_NAME[name].handle.operator.in_place:
        return None
    return _by_names(name, target)


def is_pointwise(target: Any) -> bool:
    """Whether a form is elementwise, with one result."""
    found = counterpart(target)
    if found is None or found[0] not in HANDLES_BY_NAME:
        return False
    operator = HANDLES_BY_NAME[found[0]].handle.operator
    return operator.is_elementwise and len(operator.outputs) == 1


def form_of(target: Any) -> Any:
    """Function that computes a node on traced arrays."""
    if target is python.getitem:
        return python.getitem
    view = view_of(target)
    if view is not None:
        return view
    found = counterpart(target)
    assert found is not None, f"{target} was taken without a form"
    return found[1]


def chosen_among(target: Any, args: Sequence[Any], indices: Any) -> list[int]:
    """The numbers of elements that indices among a call's arguments choose among; none where that is not known."""
    if target is aten.embedding_dense_backward.default:
        return [int(args[2])]
    if target is aten.embedding.default:
        return [int(args[0].shape[0])]
    if target in (aten.gather.default, aten.index_select.default) and args[0].ndim:
        return [int(args[0].shape[args[1]])]
    if target not in (aten.index.Tensor, aten.index_put.default):
        return []
    if any(isinstance(one, torch.Tensor) and one.dtype == torch.bool for one in args[1]):
        return []
    sizes = zip(args[1], args[0].shape, strict=False)
    return [int(size) for one, size in sizes if one is indices]


def is_own(target: Any) -> bool:
    return isinstance(target, OpOverload) and target.namespace == "aclnn"


def _own(target: Any) -> Form:
    """A node that is one of ours: numbers among its operands became tensors before."""
    own = form(target._opname)
    kinds = {a.role: a.kind for a in HANDLES_BY_NAME[target._opname].handle.operator.attributes}

    def call(*args: Any, **named: Any) -> Any:
        arguments = (
            dict(zip([a.name for a in target._schema.arguments], args, strict=False)) | named
        )
        dtypes = {r: plain_dtype(v) for r, v in arguments.items() if kinds.get(r) == "dtype"}
        return own(**arguments | dtypes) if dtypes else own(*args, **named)

    return call


def _by_names(name: str, target: Any) -> tuple[str, Form] | None:
    """A form whose options have the names that PyTorch gives them; operands go by position."""
    operator, own = HANDLES_BY_NAME[name].handle.operator, form(name)
    if operator.lists:
        return None
    operands = [role for role in operator.positional if role in operator.inputs]
    options = {a.role for a in operator.attributes}
    schema = target._schema.arguments
    tensors = [a.name for a in schema if "Tensor" in str(a.type) or a.name == "other"]
    others = [a.name for a in schema if a.name not in tensors]
    if len(tensors) != len(operands) or not set(others) <= options:
        return None
    roles = dict(zip(tensors, operands, strict=True)) | {other: other for other in others}
    names = [roles[a.name] for a in schema]
    order = operator.positional

    def call(*args: Any, **named: Any) -> Any:
        arguments = dict(zip(names, args, strict=False)) | {roles[k]: v for k, v in named.items()}
        first = [arguments.pop(role) for role in order if role in arguments]
        return own(*first, **arguments)

    return name, call
