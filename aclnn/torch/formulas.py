"""Functions that gradients in declarations call besides functional forms, where those are no short formula.

They are made of functional forms and of PyTorch's functions of tensors, so that they are differentiable
themselves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch

from aclnn.api import functional

aten = torch.ops.aten
forms: Any = functional
# Where options are sizes of tensors, which may be symbols: functional forms take whole numbers only.
ops = torch.ops.aclnn
Like = tuple[torch.Size, torch.dtype]  # what a gradient has to be like
Dims = Sequence[int] | int | None


def conj(value: Any) -> Any:
    return value.conj() if isinstance(value, torch.Tensor) else value.conjugate()


def added(*gradients: Any) -> Any:
    """The sum of those that there are: of a result that nobody uses there is none."""
    first, *others = [one for one in gradients if one is not None]
    for other in others:
        first = first + other
    return first


# --- Attention -----------------------------------------------------------------------------------


def gradients_of_attention(
    grad: Any,
    grad_logsumexp: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    logsumexp: Any,
    mask: Any,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    needed: Sequence[bool],
) -> tuple[Any, ...]:
    """Gradients of query, key, value and an additive mask."""
    if needed[3] or grad_logsumexp is not None:
        return _gradients_by_scores(
            grad, grad_logsumexp, query, key, value, mask, is_causal, scale, enable_gqa
        )
    options = {"scale": scale, "enable_gqa": enable_gqa}
    found = ops.scaled_dot_product_attention_backward(
        grad, query, key, value, out, logsumexp, mask, is_causal, **options
    )
    return (*found, None)


def _gradients_by_scores(
    grad: Any,
    grad_logsumexp: Any,
    query: Any,
    key: Any,
    value: Any,
    mask: Any,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Any, ...]:
    """With a matrix of scores, in float32 or more: what asks for its gradient, which a mask is added to."""
    dtype = torch.promote_types(query.dtype, torch.float32)
    q, k, v, grad = (x.to(dtype) for x in (query, key, value, grad))
    if enable_gqa:
        count = q.size(-3) // k.size(-3)
        k, v = (x.repeat_interleave(count, -3) for x in (k, v))
    factor = 1 / math.sqrt(q.size(-1)) if scale is None else scale
    scores = q @ k.mT * factor
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    elif mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    weights = torch.softmax(scores, -1).masked_fill(scores == -math.inf, 0)
    grad_weights = grad @ v.mT
    slopes = weights * (grad_weights - (weights * grad_weights).sum(-1, keepdim=True))
    if grad_logsumexp is not None:
        slopes = slopes + weights * grad_logsumexp.to(dtype).unsqueeze(-1)
    found = [slopes @ k * factor, slopes.mT @ q * factor, weights.mT @ grad]
    if enable_gqa:
        shape = (*found[1].shape[:-3], key.size(-3), count)
        found[1:] = [x.reshape(*shape, *x.shape[-2:]).sum(-3) for x in found[1:]]
    return (*found, slopes)


# --- Elements ------------------------------------------------------------------------------------


def where_between(grad: Any, x: Any, least: Any, most: Any) -> Any:
    """The gradient of elements that clamp leaves as they are."""
    for beyond, bound in ((torch.lt, least), (torch.gt, most)):
        if bound is not None:
            grad = grad.masked_fill(beyond(x, bound), 0)
    return grad


def gradient_of_relu(grad: Any, out: Any) -> Any:
    backward = aten.threshold_backward if is_double(grad) else forms.threshold_backward
    return backward(grad, out, 0)


def is_double(grad: Any) -> bool:
    """Whether PyTorch has to compute a gradient: CANN's take float64 less often than their functions."""
    return grad.dtype == torch.float64


def gradient_of_elu(grad: Any, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    if is_double(grad):
        return aten.elu_backward(grad, alpha, scale, input_scale, False, x)
    return forms.elu_backward(grad, x, alpha=alpha, scale=scale, input_scale=input_scale)


def gradient_of_hardtanh(grad: Any, x: Any, least: float, most: float) -> Any:
    backward = aten.hardtanh_backward if is_double(grad) else forms.hardtanh_backward
    return backward(grad, x, least, most)


def gradient_of_base(grad: Any, base: Any, exponent: Any) -> Any:
    """Gradient of a power: 0 where the exponent is, whatever the base."""
    factor = exponent * forms.pow(base, exponent - 1)
    if isinstance(exponent, torch.Tensor):
        return grad * factor.masked_fill(exponent == 0, 0)
    return aten.zeros_like(grad) if exponent == 0 else grad * factor


def gradient_of_exponent(grad: Any, base: Any, exponent: Any, power: Any) -> Any:
    """Gradient of a power: 0 where the base is 0 and the exponent is not negative."""
    if isinstance(base, torch.Tensor):
        log, stays = forms.log(base), (base == 0) & (exponent >= 0)
        return grad * (power * log).masked_fill(stays, 0)
    if base == 0:
        return grad * (power * -math.inf).masked_fill(exponent >= 0, 0)
    return grad * (power * (math.log(base) if base > 0 else math.nan))


def curvature_of_gelu(x: Any, approximate: str) -> Any:
    """The second derivative."""
    if approximate == "none":
        return (2 - x * x) * forms.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    t = forms.tanh((x + x * x * x * cubic) * scale)
    slope = (x * x * (3 * cubic) + 1) * scale
    bend = x * (6 * cubic * scale)
    return (1 - t * t) * (slope + x * (bend / 2 - t * slope * slope))


def curvature_of_swish(x: Any, beta: float | None) -> Any:
    """The second derivative of x * sigmoid(beta * x); no beta stands for 1."""
    beta = 1.0 if beta is None else beta
    s = forms.sigmoid(x * beta)
    return s * (1 - s) * beta * (2 + x * beta * (1 - 2 * s))


def counted_from_front(index: Any, x: Any, dim: int) -> Any:
    """Indices along a dimension, of which negative ones counted from its end."""
    index = index.long()
    return torch.where(index < 0, index + (x.shape[dim] if x.ndim else 1), index)


def gradient_of_fatrelu_mul(grad: Any, x: Any, threshold: Any) -> Any:
    gate, other = x.chunk(2, -1)
    closed = gate < threshold
    parts = [(grad * other).masked_fill(closed, 0), grad * gate.masked_fill(closed, 0)]
    return forms.cat(parts, -1)


# --- Rows ----------------------------------------------------------------------------------------


def gradient_of_softmax(grad: Any, out: Any, dim: int) -> Any:
    if is_double(grad):
        return aten._softmax_backward_data(grad, out, dim, torch.float64)
    return forms.softmax_backward(grad, out, dim)


def gradient_of_masked_softmax(grad: Any, out: Any, mask: Any, scale: float) -> Any:
    return gradient_of_softmax(grad, out, -1).masked_fill(mask, 0) * scale


def spread_along(grad: Any, like: Any, dim: int, indices: Any) -> Any:
    """Gradients where the indices say that elements come from, zeros elsewhere."""
    if grad.ndim == 0:
        return grad
    return aten.zeros_like(like).scatter(dim, indices, grad)


def gradient_of_log_softmax(grad: Any, out: Any, dim: int) -> Any:
    if is_double(grad):
        return aten._log_softmax_backward_data(grad, out, dim, torch.float64)
    return forms.log_softmax_backward(grad, out, dim)


# --- Products ------------------------------------------------------------------------------------


def gradients_of_product(grad: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Gradients of matmul, whose operands may be vectors."""
    if a.ndim == 1 and b.ndim == 1:
        return grad * conj(b), grad * conj(a)
    rows = a[None] if a.ndim == 1 else a
    columns = b[:, None] if b.ndim == 1 else b
    whole = grad.unsqueeze(-2) if a.ndim == 1 else grad.unsqueeze(-1) if b.ndim == 1 else grad
    of_a = forms.matmul(whole, columns.mH)
    of_b = forms.matmul(rows.mH, whole)
    of_a = of_a.sum_to_size(rows.shape).reshape(a.shape)
    return of_a, of_b.sum_to_size(columns.shape).reshape(b.shape)


def _options_of_convolution(
    axes: int, lists: Sequence[Sequence[int]], extra: Sequence[int]
) -> list[list[int]]:
    """Stride, padding, dilation, and the result's extra rows, with a number for each axis."""
    stride, padding, dilation = lists
    arguments = (stride or (1,), padding or (0,), dilation or (1,), extra or (0,))
    return [[*one] * (axes // len(one)) if len(one) < axes else [*one] for one in arguments]


def gradients_of_convolution(
    grad: Any,
    image: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    needed: Sequence[bool],
) -> tuple[Any, ...]:
    """Gradients of image, weight and bias."""
    mask = [needed[0], needed[1], bias is not None and needed[2]]
    dtype = torch.promote_types(image.dtype, weight.dtype)
    arguments = [one.to(dtype) for one in (grad, image, weight)]
    stride, padding, dilation, extra = _options_of_convolution(
        image.ndim - 2, (stride, padding, dilation), output_padding
    )
    made = ops.convolution_backward(
        *arguments, [grad.shape[1]], stride, padding, dilation, transposed, extra, groups, mask
    )
    pairs = zip(made, (image, weight, bias), strict=True)
    return tuple([one if one is None else one.to(like.dtype) for one, like in pairs])


def second_gradients_of_convolution(
    of_image: Any,
    of_weight: Any,
    of_bias: Any,
    grad: Any,
    image: Any,
    weight: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    needed: Sequence[bool],
) -> tuple[Any, ...]:
    """Gradients of the gradients' operands: of margins that differ before and after, of a padded image."""
    axes = image.ndim - 2
    stride, padding, dilation, extra = _options_of_convolution(
        axes, (stride, padding, dilation), output_padding
    )
    padded, pairs = image, padding if len(padding) == 2 * axes else []
    if pairs:
        margins = [pairs[2 * axis + side] for axis in reversed(range(axes)) for side in (0, 1)]
        padded, padding = aten.constant_pad_nd(image, margins, 0), [0] * axes
        of_image = of_image if of_image is None else aten.constant_pad_nd(of_image, margins, 0)
    operands = grad, image, weight
    dtype = functools.reduce(torch.promote_types, [one.dtype for one in operands])
    tensors = (of_image, of_weight, of_bias, grad, weight, padded)
    of_grad, found, of_weights = aten._convolution_double_backward(
        *[one if one is None else one.to(dtype) for one in tensors], stride, padding, dilation,
        transposed, extra, groups, [needed[0], needed[1], needed[2]],
    )  # fmt: skip
    if pairs and found is not None:
        for axis in range(axes):
            found = found.narrow(axis + 2, pairs[2 * axis], image.shape[axis + 2])
    made = zip((of_grad, found, of_weights), operands, strict=True)
    return tuple([one if one is None else one.to(like.dtype) for one, like in made])


# --- Moves ---------------------------------------------------------------------------------------


def permuted_back(grad: Any, dims: Sequence[int]) -> Any:
    places = [dim % len(dims) for dim in dims]
    return grad.permute([places.index(index) for index in range(len(dims))])


def parts_of_cat(grad: Any, tensors: Sequence[Like], dim: int) -> list[Any]:
    parts, start = [], 0
    for shape, _ in tensors:
        empty = shape.numel() == 0
        size = 0 if empty else shape[dim]
        parts.append(grad.new_zeros(shape) if empty else grad.narrow(dim, start, size))
        start += size
    return parts


def pieces(x: Any, sizes: Sequence[int] | int, dim: int) -> tuple[Any, ...]:
    """The results of split, as slices."""
    total = x.shape[dim]
    if isinstance(sizes, int):
        count = max(1, -(-total // sizes)) if sizes else 1
        sizes = [min(sizes, total - n * sizes) for n in range(count)]
    made, start = [], 0
    for size in sizes:
        made.append(forms.slice(x, dim, start, start + size))
        start += size
    return tuple(made)


def sum_of_repetitions(grad: Any, shape: Sequence[int], repeats: Sequence[int] | int) -> Any:
    counts = (repeats,) if isinstance(repeats, int) else tuple(repeats)
    own = (1,) * (len(counts) - len(shape)) + tuple(shape)
    split = grad.reshape([n for pair in zip(counts, own, strict=True) for n in pair])
    return split.sum(list(range(0, 2 * len(counts), 2))).reshape(shape) if counts else grad


def without_padding(grad: Any, pad: Sequence[int] | int) -> Any:
    counts = (pad,) if isinstance(pad, int) else pad
    return aten.constant_pad_nd(grad, [-count for count in counts], 0)


def gradient_of_slices(grad: Any, shape: Sequence[int], dim: int, index: Any) -> Any:
    """Gradient of slices that were chosen by indices of any shape."""
    axis = dim % max(1, len(shape))
    own = tuple(shape) or (1,)
    chosen = grad.reshape((*own[:axis], index.numel(), *own[axis + 1 :]))
    return aten.index_select_backward(chosen, own, axis, index.reshape(-1)).reshape(shape)


# --- Reductions ----------------------------------------------------------------------------------


def _kept(reduced: Any, rank: int, dim: Dims, keepdim: bool) -> Any:
    """The reduced values, with dimensions of one element where they were reduced."""
    if keepdim:
        return reduced
    for axis in sorted([axis % rank for axis in _axes(dim, rank)] if rank else []):
        reduced = reduced.unsqueeze(axis)
    return reduced


def _axes(dim: Dims, rank: int) -> tuple[int, ...]:
    return (dim,) if isinstance(dim, int) else tuple(dim or range(rank))


def repeated_along(grad: Any, like: Any, dim: Dims, keepdim: bool) -> Any:
    """The gradient of a sum: the same for all elements that it is of."""
    return _kept(grad, like.ndim, dim, keepdim).expand(like.shape)


def gradient_of_variance(grad: Any, x: Any, dim: Dims, correction: int, keepdim: bool) -> Any:
    axes = _axes(dim, x.ndim)
    count = math.prod([x.shape[axis] for axis in axes]) if x.ndim else 1
    apart = x - forms.mean(x, list(axes) if x.ndim else None, True)
    freedom = max(0, count - correction)
    return _kept(grad, x.ndim, dim, keepdim) * apart * (2 / freedom if freedom else math.nan)


def shared_by_largest(grad: Any, x: Any, largest: Any, dim: Dims, keepdim: bool) -> Any:
    """The gradient of a maximum, divided among the elements that are it."""
    requested = _kept(largest, x.ndim, dim, keepdim)
    among = (x == requested) | (x != x) & (requested != requested)
    count = among.sum(_axes(dim, x.ndim), keepdim=True) if x.ndim else 1
    return _kept(grad, x.ndim, dim, keepdim) * among / count


def at_indices(grad: Any, like: Any, dim: int, indices: Any, keepdim: bool) -> Any:
    """The gradient of chosen elements, each of its line, zeros elsewhere."""
    if like.ndim == 0:
        return grad
    if not keepdim:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return aten.zeros_like(like).scatter(dim, indices, grad)


def gradient_of_product(grad: Any, x: Any, out: Any, dim: int | None, keepdim: bool) -> Any:
    """Each element's is the product of all others: of those before it and of those behind it."""
    if x.ndim == 0:
        return grad.reshape(x.shape)
    if dim is None:
        flat = gradient_of_product(grad.reshape(1), x.reshape(-1), out.reshape(1), 0, True)
        return flat.reshape(x.shape)
    ones = torch.ones_like(x.narrow(dim, 0, 1))
    before = torch.cat([ones, x.narrow(dim, 0, x.shape[dim] - 1)], dim).cumprod(dim)
    behind = torch.cat([x.narrow(dim, 1, x.shape[dim] - 1), ones], dim).flip(dim).cumprod(dim)
    return _kept(grad, x.ndim, dim, keepdim) * before * behind.flip(dim)


def gradient_of_norm(grad: Any, x: Any, out: Any, p: float, dim: Dims, keepdim: bool) -> Any:
    """Zeros where the norm is 0."""
    grad, norm = (_kept(one, x.ndim, dim, keepdim) for one in (grad, out))
    if p == 0:
        return aten.zeros_like(x)
    if p == 1:
        return grad * x.sign()
    if math.isinf(p):
        among = (x.abs() == norm) | (x != x) & (norm != norm)
        count = among.sum(_axes(dim, x.ndim), keepdim=True) if x.ndim else 1
        return grad * x.sign() * among / count
    if p == 2:
        return grad * (x / norm).masked_fill(norm == 0, 0)
    ratio = (x.abs() / norm).pow(p - 1) * x.sign()
    return grad * ratio.masked_fill((norm == 0) | (x == 0), 0)


# --- Indices ---------------------------------------------------------------------------------------


def gradient_of_scattered(grad: Any, dim: int, index: Any, reduce: str | None) -> Any:
    """Nothing where elements were replaced."""
    if reduce == "add":
        return grad
    if reduce == "multiply":
        raise NotImplementedError("the gradient of scattered products")
    return grad.scatter(dim, index, 0) if grad.ndim else grad * 0


def gradient_of_source(grad: Any, source: Any, dim: int, index: Any, reduce: str | None) -> Any:
    """Gradient of what an index names; what no index is for has none."""
    if reduce == "multiply":
        raise NotImplementedError("the gradient of scattered products")
    if grad.ndim == 0:
        return grad.reshape(source.shape)
    taken = grad.gather(dim, index)
    sizes = zip(reversed(source.shape), reversed(taken.shape), strict=True)
    return aten.constant_pad_nd(taken, [n for whole, size in sizes for n in (0, whole - size)])


def _of_no_index(indices: Any) -> list[Any]:
    """Indices as PyTorch takes them: an empty one of uint8 stands for none."""
    return [None if one.dtype == torch.uint8 and not one.numel() else one for one in indices]


def gradient_of_indexed(grad: Any, like: Any, indices: Any) -> Any:
    zeros = torch.zeros_like(like, dtype=grad.dtype)
    return aten.index_put(zeros, _of_no_index(indices), grad, True)


def gradient_of_overwritten(grad: Any, indices: Any, adds: bool) -> Any:
    return grad if adds else aten.index_put(grad, _of_no_index(indices), grad.new_zeros(()))


def gradient_of_values(grad: Any, like: Any, indices: Any) -> Any:
    return aten.index(grad, _of_no_index(indices)).sum_to_size(like.shape)


def _factors(grad: Any, weights: Any, reduction: str) -> Any:
    """The gradient of the loss of each target, by its weight."""
    return grad * weights / weights.sum() if reduction == "mean" else grad * weights


def _weights_of(target: Any, weight: Any, ignored: int, dtype: Any) -> tuple[Any, Any]:
    """The classes of targets, 0 for one that is ignored, and their weights, 0 for such."""
    counts = target != ignored
    classes = torch.where(counts, target, 0).long()
    weights = counts.to(dtype)
    return classes, weights if weight is None else weights * weight.to(dtype)[classes]


def gradient_of_nll(
    grad: Any, x: Any, target: Any, weight: Any, reduction: str, ignored: int
) -> Any:
    axis = min(1, x.dim() - 1)
    classes, weights = _weights_of(target, weight, ignored, grad.dtype)
    factors = _factors(grad, weights, reduction)
    zeros = torch.zeros_like(x, dtype=grad.dtype)
    return zeros.scatter(axis, classes.unsqueeze(axis), -factors.unsqueeze(axis))


def gradient_of_class_weights(
    grad: Any,
    logs: Any,
    target: Any,
    weight: Any,
    out: Any,
    reduction: str,
    ignored: int,
    share: float,
) -> Any:
    """Gradient of losses of classes by their weights; `share` is that of the mean over classes."""
    axis = min(1, logs.dim() - 1)
    classes, weights = _weights_of(target, weight, ignored, grad.dtype)
    factors = grad * (target != ignored)
    losses = -logs.gather(axis, classes.unsqueeze(axis)).squeeze(axis) * (1 - share)
    if reduction == "mean":
        factors, losses = factors / weights.sum(), losses - out
    found = torch.zeros_like(weight, dtype=grad.dtype)
    found = found.index_add(0, classes.reshape(-1), (factors * losses).reshape(-1).to(grad.dtype))
    if share:
        found = found - (logs * factors.unsqueeze(-1)).sum(0) * (share / logs.shape[1])
    return found


def gradient_of_cross_entropy(
    grad: Any, x: Any, target: Any, weight: Any, reduction: str, ignored: int, smoothing: float
) -> Any:
    classes, weights = _weights_of(target, weight, ignored, grad.dtype)
    factors = _factors(grad, weights, reduction)
    by_class = torch.zeros_like(x, dtype=grad.dtype)
    by_class = by_class.scatter(1, classes.unsqueeze(1), -factors.unsqueeze(1) * (1 - smoothing))
    if smoothing:
        share = _factors(grad, (target != ignored).to(grad.dtype), "sum")
        share = share / weights.sum() if reduction == "mean" else share
        alike = torch.ones_like(by_class) if weight is None else weight.to(grad.dtype)
        by_class = by_class - share.unsqueeze(-1) * alike * (smoothing / x.shape[1])
    return by_class - torch.softmax(x.to(grad.dtype), 1) * by_class.sum(1, True)


def gradient_of_repetitions(grad: Any, like: Any, repeats: int, dim: int | None) -> Any:
    """Sums of what an element was repeated as."""
    if dim is None:
        return grad.reshape(-1, repeats).sum(1).reshape(like.shape)
    return grad.unflatten(dim, (like.shape[dim], repeats)).sum(dim % like.ndim + 1)


def gradient_of_spread(grad: Any, like: Any, repeats: Any, dim: int | None) -> Any:
    """Sums of what each element was repeated as, whose number a tensor says."""
    base = like.reshape(-1) if dim is None else like
    axis = 0 if dim is None else dim
    counts = repeats.expand(base.shape[axis])
    index = aten.repeat_interleave(counts, output_size=grad.shape[axis])
    return aten.zeros_like(base).index_add(axis, index, grad).reshape(like.shape)


def gradient_of_solution(
    grad: Any, a: Any, x: Any, upper: bool, transpose: bool, unit: bool
) -> tuple[Any, Any]:
    """That of the right-hand side solves the transposed system; only the triangle has one."""
    wide = torch.promote_types(grad.dtype, torch.float32)  # there is no solver of halves
    grad, a, x = (one.to(wide) for one in (grad, a, x))
    turned = a if transpose else a.mT
    right = aten.linalg_solve_triangular(
        turned, grad, upper=upper == transpose, left=True, unitriangular=unit
    )
    matrix = -(x @ right.mT if transpose else right @ x.mT)
    off = int(unit)
    return right, matrix.triu(off) if upper else matrix.tril(-off)


def rolled_back(grad: Any, shifts: Any, dims: Any) -> Any:
    back = [-shift for shift in ([shifts] if isinstance(shifts, int) else shifts)]
    return aten.roll(grad, back, [dims] if isinstance(dims, int) else list(dims or ()))


# --- Images --------------------------------------------------------------------------------------


def gradient_of_mean_pool(
    grad: Any,
    x: Any,
    size: Any,
    step: Any,
    margin: Any,
    ceil: bool,
    counts: bool,
    divisor: int | None,
) -> Any:
    lists = [_pair(one) for one in (size, step or size, margin)]
    return aten.avg_pool2d_backward(grad, x, *lists, ceil, counts, divisor or None)


def gradient_of_max_pool(grad: Any, x: Any, size: Any, step: Any, margin: Any, ceil: int) -> Any:
    lists = [_pair(one) for one in (size, step or size, margin)]
    _, indices = aten.max_pool2d_with_indices(x, *lists, [1, 1], bool(ceil))
    return gradient_at_maxima(grad, x, indices)


def gradient_at_maxima(grad: Any, x: Any, indices: Any) -> Any:
    """Sums of the gradients of windows whose maximum an element is."""
    planes = aten.zeros_like(x).flatten(-2)
    return planes.scatter_add(-1, indices.flatten(-2), grad.flatten(-2)).reshape(x.shape)


def gradient_between(grad: Any, x: Any, corners: bool) -> Any:
    """Each element's share of the elements around it."""
    sizes = zip(grad.shape[2:], x.shape[2:], strict=True)
    rows, columns = (_shares(made, size, corners, grad) for made, size in sizes)
    return rows.mT @ grad @ columns


def _shares(made: int, size: int, corners: bool, like: Any) -> Any:
    """A row for each result, of how much of each element it is."""
    places = torch.arange(made, dtype=torch.float64, device=like.device)
    if corners:
        places = places * ((size - 1) / max(made - 1, 1))
    else:
        places = ((places + 0.5) * (size / made) - 0.5).clamp(min=0)
    columns = torch.arange(size, dtype=torch.float64, device=like.device)
    apart = (places.clamp(max=size - 1).unsqueeze(1) - columns).abs()
    return (1 - apart).clamp(min=0).to(like.dtype)


def _pair(sizes: Any) -> list[int]:
    found = [sizes] if isinstance(sizes, int) else list(sizes or (0,))
    return found * 2 if len(found) == 1 else found


# --- Norms ---------------------------------------------------------------------------------------


def gradients_of_rms_norm(grad: Any, x: Any, gamma: Any, rstd: Any) -> tuple[Any, Any]:
    rows = (-1, *gamma.shape)
    of_x, of_gamma = forms.rms_norm_backward(grad.reshape(rows), x.reshape(rows), gamma, rstd)
    return of_x.reshape(x.shape), of_gamma


def gradients_of_added_rms_norm(
    grad: Any, grad_sum: Any, total: Any, gamma: Any, rstd: Any
) -> tuple[Any, Any, Any]:
    """Gradients of the norm of a sum that is a result as well."""
    of_x, of_gamma = gradients_of_rms_norm(grad.to(total.dtype), total, gamma, rstd)
    of_sum = added(of_x, grad_sum)
    return of_sum, of_sum, of_gamma


def gradients_of_added_layer_norm(
    grad: Any, grad_sum: Any, total: Any, gamma: Any, beta: Any, mean: Any, rstd: Any
) -> tuple[Any, ...]:
    """Gradients of the norm of a sum of three that is a result as well."""
    of_x, of_gamma, of_beta = ops.native_layer_norm_backward(
        grad, total, gamma.shape, mean, rstd, gamma, beta
    )
    of_sum = added(of_x, grad_sum)
    return of_sum, of_sum, of_gamma, of_beta, of_sum


def gradients_of_group_norm_silu(
    grad: Any,
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    rstd: Any,
    group: int,
    eps: float,
    activated: bool,
    needed: Sequence[bool],
) -> Any:
    sizes = (*x.shape[:2], x.shape[2:].numel(), group)
    arguments = [one for one in (x, weight, bias) if one is not None]
    dtype = functools.reduce(torch.promote_types, [one.dtype for one in arguments])
    grad, x, mean, rstd = (one.to(dtype) for one in (grad, x, mean, rstd))
    weight, bias = (None if one is None else one.to(dtype) for one in (weight, bias))
    if activated:
        normed = ops.native_group_norm(x, weight, bias, *sizes, eps)[0]
        grad = forms.silu_backward(grad, normed)
    return aten.native_group_norm_backward(
        grad.contiguous(), x.contiguous(), mean, rstd, weight, *sizes, needed
    )


# --- Rotations -----------------------------------------------------------------------------------

_HALVES_OF_PAIRS = 3  # the mode that gathers halves from pairs, then rotates
_MODES = {"half": 0, "interleave": 1, "quarter": 2}


def turned(x: Any, mode: int | str) -> Any:
    """Rows turned by a right angle, without cosine."""
    number = _MODES[mode] if isinstance(mode, str) else mode
    none, whole = aten.zeros_like(x), aten.ones_like(x)
    return forms.rotary_position_embedding(x, none, whole, number)


def gathered(x: Any, mode: int) -> Any:
    """The elements that the cosine is a factor of."""
    return torch.cat([x[..., ::2], x[..., 1::2]], -1) if mode == _HALVES_OF_PAIRS else x


def turned_back(grad: Any, cos: Any, sin: Any, mode: int | str) -> Any:
    """The gradient of what was rotated: the rotation by the opposite angle."""
    if mode != _HALVES_OF_PAIRS:
        return grad * cos - turned(grad * sin, mode)
    halves = (grad * cos - turned(grad * sin, "half")).unflatten(-1, (2, -1))
    return halves.transpose(-1, -2).flatten(-2)


_ALL = [
    gradients_of_attention,
    added,
    at_indices,
    conj,
    counted_from_front,
    curvature_of_gelu,
    curvature_of_swish,
    gathered,
    gradient_at_maxima,
    gradient_between,
    gradient_of_base,
    gradient_of_elu,
    gradient_of_exponent,
    gradient_of_fatrelu_mul,
    gradient_of_hardtanh,
    gradient_of_log_softmax,
    gradient_of_masked_softmax,
    gradient_of_max_pool,
    gradient_of_mean_pool,
    gradient_of_norm,
    gradient_of_product,
    gradient_of_relu,
    gradient_of_repetitions,
    gradient_of_scattered,
    gradient_of_solution,
    gradient_of_source,
    gradient_of_spread,
    gradient_of_nll,
    gradient_of_cross_entropy,
    gradient_of_class_weights,
    gradient_of_indexed,
    gradient_of_overwritten,
    gradient_of_values,
    gradient_of_slices,
    gradient_of_softmax,
    gradient_of_variance,
    gradients_of_added_layer_norm,
    gradients_of_added_rms_norm,
    gradients_of_group_norm_silu,
    gradients_of_convolution,
    second_gradients_of_convolution,
    gradients_of_product,
    gradients_of_rms_norm,
    parts_of_cat,
    permuted_back,
    pieces,
    repeated_along,
    rolled_back,
    shared_by_largest,
    spread_along,
    sum_of_repetitions,
    turned,
    turned_back,
    where_between,
    without_padding,
]
NAMESPACE: dict[str, Any] = {
    "aten": aten,
    "ops": ops,
    **{function.__name__: function for function in _ALL},
    **{name: getattr(forms, name) for name in functional.__all__},
}
