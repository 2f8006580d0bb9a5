"""Overloads of ATen's operators whose parameters are not those of the functional form that does the same.

Each gets the arguments that PyTorch's operator has. A call that the form does not do exactly as PyTorch raises
`NotImplementedError` with the reason, and stays with PyTorch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from aclnn.acl.constants import aclDataType
from aclnn.api import functional
from aclnn.torch.schemas import acl_dtype

Form = Callable[..., Any]
aten = torch.ops.aten


def form(name: str) -> Form:
    """The functional form of this name, looked up when it is called."""
    return getattr(functional, name)


def plain_dtype(dtype: Any) -> aclDataType | None:
    return acl_dtype(dtype) if isinstance(dtype, torch.dtype) else dtype


# --- Elements ------------------------------------------------------------------------------------


# What PyTorch, too, computes otherwise than as a power.
_POWERS: dict[float, Form] = {
    2: lambda x: form("square")(x),
    3: lambda x: x * x * x,
    0.5: lambda x: form("sqrt")(x),
    -0.5: lambda x: form("rsqrt")(x),
    -1: lambda x: form("reciprocal")(x),
}


def _power(x: Any, exponent: Any) -> Any:
    return _POWERS[exponent](x) if exponent in _POWERS else form("pow")(x, exponent)


def _clamped(x: Any, least: Any = None, most: Any = None) -> Any:
    if least is not None:
        x = form("maximum")(x, least)
    return x if most is None else form("minimum")(x, most)


def _filled(x: Any, mask: Any, value: Any) -> Any:
    return form("where")(mask, value.astype(x.dtype), x)


def _divided(x: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "trunc" and x.dtype.kind == "f" and x.dtype.itemsize == 2:
        raise NotImplementedError("PyTorch rounds the quotient to half precision first")
    return form("div_mod")(x, other, rounding_mode or "true")


def _rounded(x: Any, *, decimals: int) -> Any:
    if decimals:
        raise NotImplementedError("PyTorch rounds a product of the number and a power of ten")
    return form("round")(x)


def _filled_with(
    x: Any, size: Sequence[int], value: Any, *, dtype: Any = None, **layout: Any
) -> Any:  # fmt: skip
    """A tensor of one number, of the dtype of another one."""
    if not x.size or 0 in size:
        raise NotImplementedError("there is nothing in it")
    first = x[(0,) * x.ndim]
    first = first if dtype is None else form("cast")(first, acl_dtype(dtype))
    return form("fill")(_spread(first, tuple(size)), value)


def _like(value: Any) -> Form:
    return lambda x, **named: _filled_with(x, x.shape, value, **named)


def _unwritten(x: Any, size: Sequence[int], strides: Sequence[int], **named: Any) -> Any:
    """Memory that is written before it is read, if ever: zeros."""
    if not _is_dense(size, strides):
        raise NotImplementedError("its elements do not lie side by side")
    return _filled_with(x, size, 0, **named)


def _is_dense(size: Sequence[int], strides: Sequence[int]) -> bool:
    step = 1
    for stride, count in sorted(zip(strides, size, strict=True)):
        if count > 1 and stride != step:
            return False
        step *= count
    return True


# --- Reductions ----------------------------------------------------------------------------------


def _mean(x: Any, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return form("mean")(x, dim, keepdim, dtype=plain_dtype(dtype))


def _summed_up(x: Any, dim: int, *, dtype: Any = None) -> Any:
    """Sums of the numbers that PyTorch casts to the dtype first."""
    if dtype is not None and x.dtype.kind == "f" and not dtype.is_floating_point:
        x = form("cast")(x, acl_dtype(dtype))
    return form("cumsum")(x, dim, dtype=plain_dtype(dtype))


FEW = 4  # rows of which a sum by calls of add is faster, and rounds as often as one in any order


def _sum(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    axes = [dim] if isinstance(dim, int) else list(dim or ())
    if len(axes) == 1 and dtype is None and x.ndim and _is_sum_of_few(x, axes[0] % x.ndim):
        axis = axes[0] % x.ndim
        rows = [x[(slice(None),) * axis + (n,)] for n in range(x.shape[axis])]
        made = functools.reduce(form("add"), rows)
        return made.reshape((*x.shape[:axis], 1, *x.shape[axis + 1 :])) if keepdim else made
    if dtype is None and _is_sum_by_channel(x, axes):
        return _summed_by_channel(x, axes, keepdim)
    return form("sum")(x, dim, keepdim, dtype=plain_dtype(dtype))


def _is_sum_by_channel(x: Any, axes: Sequence[int]) -> bool:
    """Whether batches and elements are summed, and channels between them are not, in float32 or float64."""
    exact = x.dtype.kind == "f" and x.dtype.itemsize >= 4
    chosen = {axis % x.ndim for axis in axes} if x.ndim else set()
    return exact and len(chosen) > 1 and 0 in chosen and 1 not in chosen


def _summed_by_channel(x: Any, axes: Sequence[int], keepdim: bool = False) -> Any:
    """Sums of elements first, which are adjacent, then of batches: a third of the time of all at once."""
    inner = [axis for axis in axes if axis % x.ndim]
    if inner:  # no axes stand for all
        x = form("sum")(x, inner, keepdim)
    return form("sum")(x, [0], keepdim)


def _is_sum_of_few(x: Any, axis: int) -> bool:
    """Whether a few rows are added element by element, in float32 or float64."""
    exact = x.dtype.kind == "f" and x.dtype.itemsize >= 4
    return exact and axis < x.ndim - 1 and 2 <= x.shape[axis] <= FEW


def _product(x: Any, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return form("prod")(x, dim, keepdim, dtype=plain_dtype(dtype))


def _variance(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    freedom = 1 if correction is None else correction
    if freedom != int(freedom):
        raise NotImplementedError("the correction is not a whole number")
    return form("var")(x, dim, keepdim=keepdim, correction=int(freedom))


def _variance_and_mean(
    x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    variance = _variance(x, dim, correction=correction, keepdim=keepdim)
    return variance, form("mean")(x, dim, keepdim)


def _deviation(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    return form("sqrt")(_variance(x, dim, correction=correction, keepdim=keepdim))


def _deviation_and_mean(
    x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    deviation = _deviation(x, dim, correction=correction, keepdim=keepdim)
    return deviation, form("mean")(x, dim, keepdim)


def _softmax_of_some(x: Any, dim: int, dtype: Any = None) -> Any:
    """Softmax whose rows are 0 where all of them is masked out."""
    if dtype is not None:
        x = form("cast")(x, acl_dtype(dtype))
    is_masked = form("eq")(form("amax")(x, [dim], True), -math.inf)
    return form("masked_fill")(form("softmax")(x, dim), is_masked, 0.0)


def _norm(x: Any, p: Any, dim: Any, keepdim: bool = False) -> Any:
    return form("norm")(x, 2.0 if p is None else p, dim, keepdim)


def _named(name: str) -> Form:
    """A form that takes the same arguments by position."""
    return lambda *args, **named: form(name)(*args, **named)


def _histogram(x: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    """Counts of elements in equal ranges, rounded as PyTorch does where one begins."""
    if x.dtype.itemsize < 4 or not x.size or not min < max:
        raise NotImplementedError(
            "the range is that of the elements, which are of half precision or none"
        )
    flat = x.reshape((-1,))
    places = form("cast")((flat - min) * bins / (max - min), acl_dtype(torch.int64))
    is_inside = form("logical_and")(form("ge")(flat, min), form("le")(flat, max))
    places = form("where")(is_inside, form("minimum")(places, np.int64(bins - 1)), np.int64(bins))
    none = form("fill")(_spread(flat[:1], (bins + 1,)), 0.0)
    return form("index_add")(none, 0, places, form("fill")(flat, 1.0))[:bins]


# --- Indices -------------------------------------------------------------------------------------


def _sorted(x: Any, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Any:
    return form("sort")(x, dim, descending, stable=bool(stable))


def _largest(
    x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:  # fmt: skip
    if x.dtype.kind != "f" or x.dtype.itemsize < 4:
        raise NotImplementedError(
            "elements are often equal: which of them is chosen is PyTorch's own"
        )
    return form("topk")(x, k, dim, largest, sorted)


def _scattered(x: Any, dim: int, index: Any, src: Any, *, reduce: str = "replace") -> Any:
    return form("scatter")(x, dim, index, src, reduce=reduce)


def _indexed(x: Any, indices: Sequence[Any]) -> Any:
    """Slices by tensors of indices: of one dimension, or of the first ones."""
    arguments = [(axis, one) for axis, one in enumerate(indices) if one is not None]
    if any(one.dtype.kind != "i" for _, one in arguments):
        raise NotImplementedError("it indexes other than by integers")
    if len(arguments) == 1:
        return _slices(x, *arguments[0])
    axes = [axis for axis, _ in arguments]
    shape = np.broadcast_shapes(*[one.shape for _, one in arguments])
    others = [axis for axis in range(x.ndim) if axis not in axes]
    places = form("stack")([_spread(one, shape) for _, one in arguments], -1)
    made = form("gather_nd")(x.transpose(*axes, *others), places, True)
    if axes != list(range(axes[0], axes[0] + len(axes))):
        return made
    inner = list(range(len(shape)))  # the dimensions of indices, which stand where they chose
    outer = [len(shape) + index for index in range(len(others))]
    return made.transpose(*outer[: axes[0]], *inner, *outer[axes[0] :])


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    """A view of an array in a larger shape; arrays of NumPy have no such method."""
    return np.broadcast_to(x, shape) if isinstance(x, np.ndarray) else x.broadcast_to(shape)


def _slices(x: Any, axis: int, index: Any) -> Any:
    if axis == 0:
        return form("gather_nd")(x, index.reshape((*index.shape, 1)), True)
    places = _from_front(index.reshape((-1,)), x.shape[axis])
    made = form("index_select")(x, axis, places)
    return made.reshape((*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]))


def _from_front(index: Any, size: int) -> Any:
    """Indices of which negative ones counted from the end."""
    return form("where")(form("lt")(index, 0), index + size, index)


def _put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    """Slices of one dimension, written or added, or elements of several adjacent ones."""
    arguments = [(axis, one) for axis, one in enumerate(indices) if one is not None]
    axes = [axis for axis, _ in arguments]
    if not arguments or any(one.dtype.kind != "i" for _, one in arguments):
        raise NotImplementedError("it indexes other than by integers")
    if axes != list(range(axes[0], axes[0] + len(axes))):
        raise NotImplementedError("the dimensions that it indexes are not adjacent")
    chosen = x.shape[axes[0] : axes[-1] + 1]
    before, behind = x.shape[: axes[0]], x.shape[axes[-1] + 1 :]
    shape = np.broadcast_shapes(*[one.shape for _, one in arguments])
    places = _places([_spread(one, shape) for _, one in arguments], chosen)
    values = _spread(values, (*before, *shape, *behind))
    put = form("index_add" if accumulate else "index_copy")
    rows = x.reshape((*before, math.prod(chosen), *behind))
    flat = values.reshape((*before, math.prod(shape), *behind))
    return put(rows, axes[0], places.reshape((-1,)), flat).reshape(x.shape)


def _places(indices: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Indices of several dimensions as those of one."""
    made = _from_front(indices[0], sizes[0])
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        made = made * size + _from_front(index, size)
    return made


def _sliced_backward(
    grad: Any, sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> Any:
    """The gradient of a slice: zeros on both sides."""
    index = dim % len(sizes)
    whole = sizes[index]
    first = min(max(start + whole if start < 0 else start, 0), whole)
    behind = [0, 0] * (len(sizes) - 1 - index)
    if step != 1:  # each element, and zeros up to the next
        before, after = grad.shape[: index + 1], grad.shape[index + 1 :]
        apart = form("constant_pad_nd")(
            grad.reshape((*before, 1, *after)), [*behind, 0, step - 1], 0
        )
        grad = apart.reshape((*before[:-1], before[-1] * step, *after))
        grad = grad[(slice(None),) * index + (slice(0, whole - first),)]
    return form("constant_pad_nd")(grad, [*behind, first, whole - first - grad.shape[index]], 0)


def _selected_backward(grad: Any, sizes: Sequence[int], dim: int, index: int) -> Any:
    position = dim % len(sizes)
    whole = grad.reshape((*grad.shape[:position], 1, *grad.shape[position:]))
    first = index % sizes[position]
    return _sliced_backward(whole, sizes, position, first, first + 1, 1)


def _embedding_backward(
    grad: Any, indices: Any, count: int, padding: int, by_frequency: bool
) -> Any:
    """The sum of the gradients of each row."""
    if by_frequency:
        raise NotImplementedError("gradients are scaled by how often an index is there")
    rows, places = grad.reshape((-1, grad.shape[-1])), indices.reshape((-1,))
    if not rows.shape[0]:
        raise NotImplementedError("there are no indices")
    if padding >= 0:
        rows = form("masked_fill")(rows, form("eq")(places, padding).reshape((-1, 1)), 0.0)
    none = form("fill")(_spread(rows[:1], (count, rows.shape[1])), 0.0)
    return form("index_add")(none, 0, places, rows)


# --- Losses --------------------------------------------------------------------------------------

_REDUCTIONS = ("none", "mean", "sum")  # as ATen counts them


def _negative_likelihood(x: Any, target: Any, weight: Any, reduction: int, ignored: int) -> Any:
    if weight is None:
        weight = form("fill")(x.reshape((-1, x.shape[-1]))[0], 1.0)
    made, total = form("nll_loss_forward")(x, target, weight, _REDUCTIONS[reduction], ignored)
    if total is None:  # nobody reads it
        total = form("fill")(weight[:1].reshape(()), 0.0)
    return made, total


def _negative_likelihood_backward(
    grad: Any, x: Any, target: Any, weight: Any, reduction: int, ignored: int, total: Any
) -> Any:
    """The gradient of the class that is right, zeros elsewhere."""
    if x.dtype.itemsize < 4:
        raise NotImplementedError("PyTorch rounds what is between to half precision")
    counts = form("ne")(target, ignored)
    factor = -grad / total if _REDUCTIONS[reduction] == "mean" else -grad
    if weight is not None:
        classes = form("where")(counts, target, 0)
        factor = factor * form("index_select")(weight, 0, classes.reshape((-1,))).reshape(
            target.shape
        )
    factor = form("where")(counts, factor, np.zeros((), np.float32)).astype(x.dtype)
    is_right = form("eq")(target.reshape((*target.shape, 1)), np.arange(x.shape[-1]))
    return form("where")(is_right, factor.reshape((*target.shape, 1)), np.zeros((), np.float32))


# --- Images --------------------------------------------------------------------------------------


def _size_of(x: Any, size: Sequence[int] | None, scales: Sequence[float] | None) -> tuple[int, ...]:
    """Size of a result; scales have to be those of the sizes, which forms go by."""
    own = x.shape[2:]
    if size is None:
        assert scales is not None
        size = [int(n * scale) for n, scale in zip(own, scales, strict=True)]
    for n, whole, scale in zip(own, size, scales or (), strict=False):
        if scale is not None and n * scale != whole:
            raise NotImplementedError("the scale is not the quotient of the sizes")
    return tuple(size)


def _nearest(x: Any, size: Any, scale_h: float | None = None, scale_w: float | None = None) -> Any:
    return form("upsample_nearest2d")(x, _size_of(x, size, (scale_h, scale_w)))  # type: ignore[arg-type]


def _bilinear(
    x: Any, size: Any, align: bool, scale_h: float | None = None, scale_w: float | None = None
) -> Any:
    return form("upsample_bilinear2d")(x, _size_of(x, size, (scale_h, scale_w)), align)  # type: ignore[arg-type]


def _mean_of_windows(
    x: Any, kernel: Any, stride: Any = (), padding: Any = (0, 0), ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    return form("avg_pool2d")(
        x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override or 0
    )


def _largest_of_windows_backward(
    grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, places: Any,
) -> Any:  # fmt: skip
    """Sums of the gradients of windows whose maximum an element is."""
    planes = x.reshape((*x.shape[:-2], -1))
    rows = [one.reshape((*one.shape[:-2], -1)) for one in (places, grad)]
    none = form("fill")(planes, 0.0)
    return form("scatter_add")(none, planes.ndim - 1, *rows).reshape(x.shape)


WIDEST = 64  # rows or columns of an image, up to which matrices of windows cost less than a call


def _mean_of_windows_backward(
    grad: Any, x: Any, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    ceil: bool, counts_padding: bool, divisor: int | None,
) -> Any:  # fmt: skip
    size, step, margin = (
        list(one) * (2 // len(one)) for one in (kernel, stride or kernel, padding)
    )
    if size == step and not any(margin) and not divisor and _are_whole(grad, x, size):
        return _spread_over_windows(grad, x, size)
    if x.dtype.itemsize < 4 or 0 in (*grad.shape, *x.shape) or max(x.shape[-2:]) > WIDEST:
        raise NotImplementedError(
            "PyTorch rounds what is between to half precision, or the image is large, or there is nothing"
        )
    sides = zip(x.shape[-2:], grad.shape[-2:], size, step, margin, strict=True)
    rows, columns = (_shares_of_strides(*side, counts_padding, bool(divisor)) for side in sides)
    made = form("matmul")(
        form("matmul")(rows.astype(grad.dtype).T, grad), columns.astype(grad.dtype)
    )
    return made / float(divisor) if divisor else made


def _are_whole(grad: Any, x: Any, size: Sequence[int]) -> bool:
    """Whether windows side by side are all of an image."""
    pairs = zip(grad.shape[-2:], size, x.shape[-2:], strict=True)
    return all(n * width == whole for n, width, whole in pairs)


def _shares_of_strides(
    whole: int, made: int, width: int, step: int, margin: int, counts_margin: bool, are_sums: bool
) -> np.ndarray:
    """A row for each window of a mean, of what share each element has in it; or 1 for all that it has."""
    shares = np.zeros((made, whole))
    for index in range(made):
        first = index * step - margin
        end = min(first + width, whole + margin)
        inside = slice(max(first, 0), min(end, whole))
        count = end - first if counts_margin else inside.stop - inside.start
        shares[index, inside] = 1.0 if are_sums else 1.0 / count
    return shares


def _adaptive_mean_backward(grad: Any, x: Any) -> Any:
    """The gradient of means of windows: side by side, or of several sizes, of which rows and columns have shares."""
    sizes = list(zip(x.shape[-2:], grad.shape[-2:], strict=True))
    if all(made and whole % made == 0 for whole, made in sizes):
        return _spread_over_windows(grad, x, [whole // made for whole, made in sizes])
    if x.dtype.itemsize < 4 or 0 in (*grad.shape, *x.shape):
        raise NotImplementedError(
            "PyTorch rounds what is between to half precision, or there is nothing"
        )
    rows, columns = (_shares_of_windows(*pair, grad.dtype) for pair in sizes)
    return form("matmul")(form("matmul")(rows.T, grad), columns)


def _shares_of_windows(whole: int, made: int, dtype: Any) -> np.ndarray:
    """A row for each window of an adaptive mean, of what share each element has in it."""
    shares = np.zeros((made, whole), dtype)
    for index in range(made):
        first, end = index * whole // made, -(-(index + 1) * whole // made)
        shares[index, first:end] = 1 / (end - first)
    return shares


def _spread_over_windows(grad: Any, x: Any, size: Sequence[int]) -> Any:
    """The gradient of means of windows side by side, which elements have equal shares of."""
    made = grad.shape[-2:]
    if [n * width for n, width in zip(made, size, strict=True)] != list(x.shape[-2:]):
        raise NotImplementedError("windows have several sizes, or leave elements out")
    (rows, columns), (height, width) = made, size
    apart = (grad / float(height * width)).reshape((*grad.shape[:-2], rows, 1, columns, 1))
    spread = _spread(apart, (*grad.shape[:-2], rows, height, columns, width))
    return spread.reshape(x.shape)


def _columns_to_image(
    x: Any, size: Sequence[int], kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int],
    stride: Sequence[int],
) -> Any:  # fmt: skip
    """Sums of what windows have of each element: places of a window one after the other, as PyTorch adds them."""
    wide = [n + 2 * margin for n, margin in zip(size, padding, strict=True)]
    counts = [
        (n - apart * (width - 1) - 1) // step + 1
        for n, apart, width, step in zip(wide, dilation, kernel, stride, strict=True)
    ]
    outer = (*x.shape[:-2], x.shape[-2] // math.prod(kernel))
    columns = x.reshape((*outer, *kernel, *counts))
    made = form("fill")(
        _spread(x[..., :1, :1].reshape((*x.shape[:-2], 1, 1, 1)), (*outer, *wide)), 0.0
    )
    for index in np.ndindex(*kernel):
        firsts = [n * apart for n, apart in zip(index, dilation, strict=True)]
        window = tuple([
            slice(first, first + step * (count - 1) + 1, step)
            for first, step, count in zip(firsts, stride, counts, strict=True)
        ])  # fmt: skip
        made[(..., *window)] = (
            made[(..., *window)] + columns[(..., *index, slice(None), slice(None))]
        )
    inner = [slice(margin, margin + n) for n, margin in zip(size, padding, strict=True)]
    return made[(..., *inner)]


def _normalized_by_group_backward(
    grad: Any, x: Any, mean: Any, rstd: Any, weight: Any, n: int, channels: int, size: int, groups: int,
    requested: Sequence[bool],
) -> Any:  # fmt: skip
    """Gradients of a norm of groups of channels: those of rows, and sums by channel."""
    if x.dtype.itemsize < 4:
        raise NotImplementedError("PyTorch rounds what is between to half precision")
    shape = (n, groups, channels // groups, size)
    rows, scale = x.reshape(shape), rstd.reshape((n, groups, 1, 1))
    normed = (rows - mean.reshape((n, groups, 1, 1))) * scale
    of_rows = grad.reshape(shape)
    products = of_rows * normed
    made: list[Any] = [None, None, None]
    if requested[0]:
        factor = 1 if weight is None else weight.reshape((1, groups, channels // groups, 1))
        whole, scaled = (
            form("mean")(one if weight is None else one * factor, [2, 3], True)
            for one in (of_rows, products)
        )
        inner = of_rows if weight is None else of_rows * factor
        made[0] = ((inner - whole - normed * scaled) * scale).reshape(x.shape)
    if requested[1]:
        made[1] = _summed_by_channel(products, [0, 3]).reshape((channels,))
    if requested[2]:
        made[2] = _summed_by_channel(of_rows, [0, 3]).reshape((channels,))
    return tuple(made)


def _normalized_by_batch_backward(
    grad: Any, x: Any, weight: Any, mean: Any, var: Any, saved_mean: Any, rstd: Any, training: bool, eps: float,
    requested: Sequence[bool],
) -> Any:  # fmt: skip
    """Gradients of a norm of channels, of a batch in float32 by steps in float32, as PyTorch takes them.

    The form has more digits, for several times as much memory that is read and written.
    """
    arguments = [one for one in (grad, x, weight, saved_mean, rstd) if one is not None]
    if not training or not x.size or any(one.dtype != np.float32 for one in arguments):
        whole = form("native_batch_norm_backward")
        return whole(grad, x, weight, mean, var, saved_mean, rstd, training, eps, list(requested))
    one = (1, x.shape[1], *(1,) * (x.ndim - 2))
    axes, count = [0, *range(2, x.ndim)], x.size // x.shape[1]
    apart = x - saved_mean.reshape(one)
    total, along = (_summed_by_channel(one, axes) for one in (grad, grad * apart))
    made: list[Any] = [
        None,
        along * rstd if requested[1] else None,
        total if requested[2] else None,
    ]
    if requested[0]:
        slope = along * rstd * rstd / float(count)
        factor = rstd if weight is None else rstd * weight
        inner = grad - (total / float(count)).reshape(one) - apart * slope.reshape(one)
        made[0] = inner * factor.reshape(one)
    return tuple(made)


# --- Rows ----------------------------------------------------------------------------------------


def _solved(a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    if not left or a.ndim != b.ndim:
        raise NotImplementedError("the matrix stands on the right")
    return form("triangular_solve")(b, a, upper, False, unitriangular)[0]


def _rms_norm(x: Any, shape: Sequence[int], weight: Any, eps: float | None) -> Any:
    if weight is None or eps is None:
        raise NotImplementedError("there is no weight, or no epsilon")
    return form("native_rms_norm")(x, weight, eps)


def _bits(name: str) -> Form:
    return lambda number, x: form(name)(x, number)


# By ATen's own operator: the name under which its gradient and its speed are known, and the call.
OVERLOADS: dict[Any, tuple[str, Form]] = {
    aten.all.dim: ("all", _named("all")),
    aten.all.dims: ("all", _named("all")),
    aten.any.dim: ("any", _named("any")),
    aten.any.dims: ("any", _named("any")),
    aten.argmax.default: ("arg_max", _named("arg_max")),
    aten.avg_pool2d.default: ("avg_pool2d", _mean_of_windows),
    aten._adaptive_avg_pool2d.default: ("adaptive_avg_pool2d", _named("adaptive_avg_pool2d")),
    aten._adaptive_avg_pool2d_backward.default: ("avg_pool2d_backward", _adaptive_mean_backward),
    aten.avg_pool2d_backward.default: ("avg_pool2d_backward", _mean_of_windows_backward),
    aten.bitwise_and.Scalar_Tensor: ("bitwise_and", _bits("bitwise_and")),
    aten.bitwise_or.Scalar_Tensor: ("bitwise_or", _bits("bitwise_or")),
    aten.bitwise_xor.Scalar_Tensor: ("bitwise_xor", _bits("bitwise_xor")),
    aten.col2im.default: ("col2im", _columns_to_image),
    aten.clamp.Tensor: ("maximum", _clamped),
    aten.clamp_max.Tensor: ("minimum", lambda x, most: form("minimum")(x, most)),
    aten.clamp_min.Tensor: ("maximum", lambda x, least: form("maximum")(x, least)),
    aten.cumsum.default: ("cumsum", _summed_up),
    aten.div.Scalar_mode: ("div_mod", _divided),
    aten.div.Tensor_mode: ("div_mod", _divided),
    aten.dot.default: ("matmul", lambda a, b: form("matmul")(a, b)),
    aten.empty_like.default: ("fill", _like(0)),
    aten.full_like.default: ("fill", lambda x, value, **named: _like(value)(x, **named)),
    aten.new_empty.default: ("fill", lambda x, size, **named: _filled_with(x, size, 0, **named)),
    aten.new_empty_strided.default: ("fill", _unwritten),
    aten.new_full.default: ("fill", _filled_with),
    aten.new_ones.default: ("fill", lambda x, size, **named: _filled_with(x, size, 1, **named)),
    aten.new_zeros.default: ("fill", lambda x, size, **named: _filled_with(x, size, 0, **named)),
    aten.ones_like.default: ("fill", _like(1)),
    aten.zero.default: ("fill", _like(0)),
    aten.zeros_like.default: ("fill", _like(0)),
    aten.histc.default: ("histc", _histogram),
    aten.index.Tensor: ("index", _indexed),
    aten._unsafe_index.Tensor: ("index", _indexed),
    aten.index_fill.int_Scalar: ("index_fill", _named("index_fill")),
    aten.index_put.default: ("index_put", _put),
    aten._unsafe_index_put.default: ("index_put", _put),
    aten.isnan.default: ("ne", lambda x: form("ne")(x, x)),
    aten.lerp.Scalar: ("lerp", _named("lerp")),
    aten.linalg_solve_triangular.default: ("triangular_solve", _solved),
    aten.masked_fill.Tensor: ("where", _filled),
    aten.max.dim: ("max_dim", _named("max_dim")),
    aten.max_pool2d_with_indices_backward.default: (
        "max_pool2d_backward",
        _largest_of_windows_backward,
    ),
    aten.max.other: ("maximum", _named("maximum")),
    aten.embedding_dense_backward.default: ("embedding_dense_backward", _embedding_backward),
    aten.nll_loss_forward.default: ("nll_loss_forward", _negative_likelihood),
    aten.nll_loss_backward.default: ("nll_loss_backward", _negative_likelihood_backward),
    aten._safe_softmax.default: ("softmax", _softmax_of_some),
    aten.std.correction: ("std", _deviation),
    aten.std_mean.correction: ("std_mean", _deviation_and_mean),
    aten.mean.dim: ("mean", _mean),
    aten.min.dim: ("min_dim", _named("min_dim")),
    aten.min.other: ("minimum", _named("minimum")),
    aten.native_batch_norm_backward.default: (
        "native_batch_norm_backward",
        _normalized_by_batch_backward,
    ),
    aten.native_group_norm_backward.default: (
        "native_group_norm_backward",
        _normalized_by_group_backward,
    ),
    aten.norm.ScalarOpt_dim: ("norm", _norm),
    aten.pow.Scalar: ("pow", _named("pow")),
    aten.pow.Tensor_Scalar: ("square", _power),
    aten.pow.Tensor_Tensor: ("pow", _named("pow")),
    aten.prod.dim_int: ("prod", _product),
    aten.remainder.Scalar_Tensor: ("remainder", _named("remainder")),
    aten.round.decimals: ("round", _rounded),
    aten.scatter.reduce: ("scatter", _scattered),
    aten.scatter.src: ("scatter", _scattered),
    aten.scatter.value: ("scatter", _scattered),
    aten.scatter.value_reduce: ("scatter", _scattered),
    aten.select_backward.default: ("select_backward", _selected_backward),
    aten.sgn.default: ("sign", _named("sign")),
    aten.slice_backward.default: ("slice_backward", _sliced_backward),
    aten.sort.stable: ("sort", _sorted),
    aten.sum.default: ("sum", _sum),
    aten.sum.dim_IntList: ("sum", _sum),
    aten.topk.default: ("topk", _largest),
    aten.upsample_bilinear2d.default: ("upsample_bilinear2d", _bilinear),
    aten.upsample_bilinear2d.vec: (
        "upsample_bilinear2d",
        lambda x, size, align, scales: form("upsample_bilinear2d")(
            x, _size_of(x, size, scales), align
        ),
    ),
    aten.upsample_nearest2d.default: ("upsample_nearest2d", _nearest),
    aten.upsample_nearest2d.vec: (
        "upsample_nearest2d",
        lambda x, size, scales: form("upsample_nearest2d")(x, _size_of(x, size, scales)),
    ),
    aten.var.correction: ("var", _variance),
    aten.var_mean.correction: ("var_mean", _variance_and_mean),
}
if hasattr(aten, "_fused_rms_norm"):  # since PyTorch 2.8
    OVERLOADS[aten._fused_rms_norm.default] = ("native_rms_norm", _rms_norm)
