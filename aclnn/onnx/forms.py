"""ONNX's operators as functional forms.

`FORMS` says what does each operator on traced arrays. What ONNX calls otherwise, counts otherwise or
takes as a tensor where the form takes an option is written out; everything else is found by its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from aclnn.api import functional
from aclnn.onnx.einsum import einsum
from aclnn.onnx.numpy_forms import NUMPY_FORMS, dropout, matmul
from aclnn.onnx.pooling import POOLS
from aclnn.onnx.quantized_forms import QUANTIZED
from aclnn.onnx.recurrent import RECURRENT
from aclnn.onnx.resizing import RESIZING
from aclnn.onnx.sampling import SAMPLING
from aclnn.onnx.scattering import SCATTERING
from aclnn.onnx.steps import Form, NeededError, Step, dtype_of, from_start, margins, number_to_take
from aclnn.operators import NAMES, REGISTRY
from aclnn.tracing.array import TracedArray

ours: Any = functional  # whose names are made from declarations


_OF_PRODUCTS = ("float32", "float16", "bfloat16")


def operand(value: Any, rank: int) -> Any:
    """A constant of one element as a number, which needs no memory, with arrays of a rank."""
    if not isinstance(value, np.ndarray) or value.size != 1 or value.ndim > rank:
        return value
    return value.reshape(-1)[0].item()


def _operands(step: Step) -> list[Any]:
    """Operands of a pointwise operator: at least one remains an array."""
    rank = max([one.ndim for one in step.inputs if isinstance(one, TracedArray)], default=0)
    return [operand(one, rank) for one in step.inputs]


# --- Pointwise --------------------------------------------------------------------------------------


def _named(name: str, **options: str) -> Form:
    """A form of the inputs; `options` are the ONNX names of its options."""

    def form(step: Step) -> Any:
        arguments = {
            ours: step.attributes[theirs]
            for ours, theirs in options.items()
            if theirs in step.attributes
        }
        return getattr(ours, name)(*step.inputs, **arguments)

    return form


def _declared(name: str, kind: str) -> Form:
    """A form whose options are what the declaration says: attributes with their defaults, or constants."""

    def form(step: Step) -> Any:
        options = {
            role: step.attribute(*one) if isinstance(one, tuple) else one
            for role, one in REGISTRY[name].onnx[kind].items()
        }
        return getattr(ours, name)(step.inputs[0], **options)

    return form


def _binary(name: str) -> Form:
    def form(step: Step) -> Any:
        first, second = _operands(step)
        if isinstance(first, TracedArray) or not np.isscalar(first):
            return getattr(ours, name)(first, second)
        return getattr(ours, name)(np.asarray(first, second.dtype), second)

    return form


def _folded(name: str) -> Form:
    """An operator of any number of inputs by a form of two."""
    return lambda step: reduce(getattr(ours, name), step.inputs)


def _mean_of_inputs(step: Step) -> Any:
    return reduce(ours.add, step.inputs) / float(len(step.inputs))


def _div(step: Step) -> Any:
    first, second = step.inputs
    if np.dtype(first.dtype).kind in "iu":
        return ours.div_mod(first, second, mode="trunc")
    return _binary("div")(step)


def _pow(step: Step) -> Any:
    base, exponent = _operands(step)
    if isinstance(exponent, float | int) and exponent == 2:
        return ours.square(base)
    kinds = [np.dtype(one.dtype).kind for one in step.inputs]
    if kinds[0] in "iu" and kinds[1] not in "iu":  # of integers, by a float: rounded at the end
        base, exponent = (one.astype(np.float64) for one in step.inputs)
    if isinstance(exponent, float | int) and exponent == 0.5 and kinds[0] not in "iu":
        return ours.sqrt(base)
    return ours.pow(base, exponent)


def _clip(step: Step) -> Any:
    x, bounds = step.inputs[0], (step.given(1), step.given(2))
    if any(isinstance(one, TracedArray) for one in bounds):
        low, high = bounds
        x = x if low is None else ours.maximum(x, low)
        return x if high is None else ours.minimum(x, high)
    low, high = step.scalar(1, "min"), step.scalar(2, "max")
    return x if low is None and high is None else ours.clamp(x, low, high)


def _where(step: Step) -> Any:
    condition, first, second = step.inputs
    if isinstance(first, TracedArray):
        second = operand(second, first.ndim)
    elif isinstance(second, TracedArray):
        first = operand(first, second.ndim)
    return ours.where(condition, first, second)


def _hard_sigmoid(step: Step) -> Any:
    slope, shift = step.attribute("alpha", 0.2), step.attribute("beta", 0.5)
    if shift == 0.5 and np.float32(slope) == np.float32(1 / 6):
        return ours.hardsigmoid(step.inputs[0])
    return ours.clamp(step.inputs[0] * slope + shift, 0.0, 1.0)


def _softsign(step: Step) -> Any:
    (x,) = step.inputs
    return x / (ours.abs(x) + 1.0)


def _prelu(step: Step) -> Any:
    x, slope = step.inputs
    if step.opset < 7 and slope.ndim == 1 and x.ndim > 1:  # one for each channel
        slope = slope.reshape(-1, *(1,) * (x.ndim - 2))
    return ours.where(ours.lt(x, 0.0), x * slope, x)


def _is_nan(step: Step) -> Any:
    return ours.ne(step.inputs[0], step.inputs[0])


def _identity(step: Step) -> Any:
    return step.inputs[0]


def _is_inf(step: Step) -> Any:
    (x,) = step.inputs
    below, above = step.attribute("detect_negative", 1), step.attribute("detect_positive", 1)
    if below and above:
        return ours.isinf(x)
    if not below and not above:
        return ours.ne(x, x) & ours.eq(x, x)
    return ours.isposinf(x) if above else ours.isneginf(x)


def _mod(step: Step) -> Any:
    return (ours.fmod if step.attribute("fmod", 0) else ours.remainder)(*step.inputs)


def _along(step: Step, array: Any, axis: int, rank: int) -> Any:
    """Numbers of quantisation in a shape that broadcasts: of a tensor, of an axis, or of blocks of it."""
    if array is None or array.ndim == 0 or (array.ndim == 1 and array.shape[0] == 1):
        return array if array is None else array.reshape(())
    if array.ndim == 1:
        shape = [1] * rank
        shape[axis] = array.shape[0]
        return array.reshape(tuple(shape))
    block = step.attribute("block_size", 0)
    if not block:
        raise step.refused("it has neither an axis nor blocks for its scales")
    size = step.inputs[0].shape[axis]
    if isinstance(array, np.ndarray):
        whole = np.repeat(array, block, axis)
    else:
        before, after = array.shape[: axis + 1], array.shape[axis + 1 :]
        wide = array.reshape(*before, 1, *after).broadcast_to((*before, block, *after))
        whole = wide.reshape(*before[:-1], before[-1] * block, *after)
    return whole[(*[slice(None)] * axis, slice(0, size))]


def _dequantize(step: Step) -> Any:
    x, scale, zero = step.inputs[0], step.inputs[1], step.given(2)
    kind = np.dtype(scale.dtype)
    axis = from_start(step.attribute("axis", 1), x.ndim) if scale.ndim else 0
    scale, zero = (_along(step, one, axis, x.ndim) for one in (scale, zero))
    # Differences of integers of 16 bits are exact in single precision, too.
    of = np.int32 if np.dtype(x.dtype).itemsize > 2 else np.float32
    wide = x.astype(of)
    if zero is not None:
        wide = ours.sub(wide, zero.astype(of))
    made = wide.astype(np.float32) * scale.astype(np.float32)
    to = step.attribute("output_dtype", 0)
    return made.astype(dtype_of(to) if to else kind)


def _quantize(step: Step) -> Any:
    x, scale, zero = step.inputs[0], step.inputs[1], step.given(2)
    to = step.attribute("output_dtype", 0)
    kind = np.dtype(zero.dtype) if zero is not None else dtype_of(to) if to else np.dtype(np.uint8)
    if kind.name not in ("int8", "uint8", "int16", "uint16"):
        raise step.refused(f"results of {kind} are not supported")
    axis = from_start(step.attribute("axis", 1), x.ndim) if scale.ndim else 0
    scale, zero = (_along(step, one, axis, x.ndim) for one in (scale, zero))
    limits, precision = np.iinfo(kind), step.attribute("precision", 0)
    of = dtype_of(precision) if precision else np.dtype(scale.dtype)
    made = ours.round((x.astype(of) / scale.astype(of)).astype(np.float32))
    if zero is not None:
        made = made + zero.astype(np.float32)
    return ours.clamp(made, float(limits.min), float(limits.max)).astype(kind)


def _dropout(step: Step) -> Any:
    x = step.inputs[0]
    is_trained = step.attribute("is_test") == 0 or bool(step.scalar(2, default=False))
    ratio = float(step.scalar(1, "ratio", 0.5)) if is_trained else 0.0
    if not 0 <= ratio <= 1:
        raise step.refused(f"ratio is {ratio}, must be from 0 to 1")
    if ratio:
        made, kept = dropout(step, ratio)
    else:
        made, kept = x, np.ones(x.shape, np.bool_)
    return (made, kept) if step.n_outputs > 1 else made


def _cast(step: Step) -> Any:
    import onnx

    (x,) = step.inputs
    return x.astype(onnx.helper.tensor_dtype_to_np_dtype(step.required("to")))


def _cast_like(step: Step) -> Any:
    return step.inputs[0].astype(step.inputs[1].dtype)


# --- Products ---------------------------------------------------------------------------------------


def _matmul(step: Step) -> Any:
    return matmul(*step.inputs)


def _gemm(step: Step) -> Any:
    a, b, c = step.inputs[0], step.inputs[1], step.given(2)
    a = a.T if step.attribute("transA", 0) else a
    b = b.T if step.attribute("transB", 0) else b
    alpha, beta = step.attribute("alpha", 1.0), step.attribute("beta", 1.0)
    if c is not None and beta != 0 and c.ndim and np.dtype(a.dtype).name in _OF_PRODUCTS:
        return ours.addmm(c, a, b, beta=beta, alpha=alpha)
    product = matmul(a, b)
    product = product if alpha == 1 else product * alpha
    if c is None or beta == 0:
        return product
    return ours.add(product, c if beta == 1 else c * beta)


def _convolution(step: Step) -> Any:
    x, weight, bias = step.inputs[0], step.inputs[1], step.given(2)
    axes, groups = x.ndim - 2, step.attribute("group", 1)
    ones = (1,) * axes
    stride, dilation = step.attribute("strides", ones), step.attribute("dilations", ones)
    reach = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    before, after = margins(step, x.shape[2:], reach)
    if list(before) != list(after):
        ends = reversed([*zip(before, after, strict=True)])
        x = ours.constant_pad_nd(x, [n for pair in ends for n in pair], 0)
        before = (0,) * axes
    options = (tuple(stride), tuple(before), tuple(dilation))
    return ours.convolution(x, weight, bias, *options, groups=groups)


def _transposed_convolution(step: Step) -> Any:
    x, weight, bias = step.inputs[0], step.inputs[1], step.given(2)
    axes = x.ndim - 2
    ones, none = (1,) * axes, (0,) * axes
    strides, dilations = step.attribute("strides", ones), step.attribute("dilations", ones)
    rest, groups = step.attribute("output_padding", none), step.attribute("group", 1)
    reach = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilations, strict=True)]
    whole = [
        (size - 1) * stride + length + more
        for size, stride, length, more in zip(x.shape[2:], strides, reach, rest, strict=True)
    ]
    before, after = _margins_of_result(step, whole)
    options = (tuple(strides), tuple(dilations), True, tuple(rest), groups)
    if before == after and min(before) >= 0:
        return ours.convolution(x, weight, bias, options[0], before, *options[1:])
    made = ours.convolution(x, weight, None, options[0], none, *options[1:])
    ends = reversed([*zip(before, after, strict=True)])
    made = ours.constant_pad_nd(made, [-n for pair in ends for n in pair], 0)
    return made if bias is None else made + bias.reshape(1, -1, *ones)


def _margins_of_result(step: Step, whole: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The margins, before and after each axis, that a transposed convolution leaves out of its whole result."""
    axes, mode = len(whole), step.attribute("auto_pad", "NOTSET")
    requested = step.attribute("output_shape")
    if requested is None and mode in ("SAME_UPPER", "SAME_LOWER"):
        strides = step.attribute("strides", (1,) * axes)
        requested = [size * by for size, by in zip(step.inputs[0].shape[2:], strides, strict=True)]
    if requested is None:
        pads = (
            tuple(step.attribute("pads", (0,) * (2 * axes)))
            if mode == "NOTSET"
            else (0,) * (2 * axes)
        )
        return pads[:axes], pads[axes:]
    less = [size - want for size, want in zip(whole, requested[-axes:], strict=True)]
    halves, others = tuple([n // 2 for n in less]), tuple([n - n // 2 for n in less])
    return (halves, others) if mode == "SAME_UPPER" else (others, halves)


# --- Rows -------------------------------------------------------------------------------------------


def _along_rows(name: str) -> Form:
    def form(step: Step) -> Any:
        (x,) = step.inputs
        if step.opset >= 13:
            return getattr(ours, name)(x, step.attribute("axis", -1))
        # It was defined on matrices: all from the axis on counts as one dimension.
        axis = step.attribute("axis", 1) % max(x.ndim, 1)
        rows = math.prod(x.shape[:axis])
        flat = getattr(ours, name)(x.reshape(rows, x.size // rows if rows else 1), -1)
        return flat.reshape(*x.shape)

    return form


def _layer_norm(step: Step) -> Any:
    x, scale, bias = step.inputs[0], step.inputs[1], step.given(2)
    shape = x.shape[from_start(step.attribute("axis", -1), x.ndim) :]
    weight, shift = (None if one is None else _wide(one, shape) for one in (scale, bias))
    eps = step.attribute("epsilon", 1e-5)
    if step.n_outputs == 1:
        return ours.layer_norm(x, shape, weight, shift, eps)
    return ours.native_layer_norm(x, shape, weight, shift, eps)


def _rms_norm(step: Step) -> Any:
    x, scale = step.inputs
    axis, eps = from_start(step.attribute("axis", -1), x.ndim), step.attribute("epsilon", 1e-5)
    if np.float64 in (np.dtype(x.dtype), np.dtype(scale.dtype)):
        wide = x.astype(np.float64)
        spread = ours.mean(ours.square(wide), list(range(axis, x.ndim)), True) + eps
        return wide / ours.sqrt(spread) * scale.astype(np.float64)
    shape = x.shape[axis:]
    return ours.rms_norm(x, shape, _wide(scale, shape), eps)


def _wide(weight: Any, shape: tuple[int, ...]) -> Any:
    """A weight that broadcasts, in the shape that norms take."""
    if weight.shape == shape:
        return weight
    if isinstance(weight, np.ndarray):
        return np.ascontiguousarray(np.broadcast_to(weight, shape))
    return weight.broadcast_to(shape)


def _group_norm(step: Step) -> Any:
    x, scale, bias = step.inputs
    groups = step.required("num_groups")
    if step.opset < 21:  # weights are those of groups
        each = x.shape[1] // groups if groups else 1
        scale, bias = (ours.repeat_interleave(one, each, 0) for one in (scale, bias))
    return ours.group_norm(x, groups, scale, bias, step.attribute("epsilon", 1e-5))


def _instance_norm(step: Step) -> Any:
    x, scale, bias = step.inputs
    return ours.group_norm(x, x.shape[1], scale, bias, step.attribute("epsilon", 1e-5))


def _batch_norm(step: Step) -> Any:
    x, scale, bias, mean, variance = step.inputs
    eps = step.attribute("epsilon", 1e-5)
    if not step.attribute("training_mode", 0):
        if step.n_outputs > 1:
            raise step.refused("training of versions before 14 is not supported")
        if np.dtype(x.dtype) == np.float64:
            column = (-1, *(1,) * (x.ndim - 2))
            factor = (scale / _root(variance + eps)).astype(np.float64)
            centred = x - mean.astype(np.float64).reshape(column)
            return centred * factor.reshape(column) + bias.astype(np.float64).reshape(column)
        return ours.batch_norm(x, mean, variance, scale, bias, eps=eps)
    axes, part = [n for n in range(x.ndim) if n != 1], step.attribute("momentum", 0.9)
    wide = x.astype(np.float32) if np.dtype(x.dtype).itemsize == 2 else x
    own = ours.mean(wide, axes, False)
    spread = ours.mean(ours.square(wide - own.reshape(-1, *(1,) * (x.ndim - 2))), axes, False)
    made = ours.batch_norm(
        x, own.astype(mean.dtype), spread.astype(variance.dtype), scale, bias, eps=eps
    )
    kept = [
        before * part + now.astype(before.dtype) * (1.0 - part)
        for before, now in ((mean, own), (variance, spread))
    ]
    return made, *kept


def _local_norm(step: Step) -> Any:
    """LRN: each element by the squares of neighbouring channels."""
    (x,), size = step.inputs, step.required("size")
    ends = [0] * (2 * x.ndim)
    ends[2 * (x.ndim - 2) : 2 * (x.ndim - 1)] = (size - 1) // 2, size // 2
    squares = ours.constant_pad_nd(ours.square(x), ends, 0)
    sums = reduce(ours.add, [squares[:, n : n + x.shape[1]] for n in range(size)])
    base = sums * (step.attribute("alpha", 1e-4) / size) + step.attribute("bias", 1.0)
    return x / ours.pow(base, step.attribute("beta", 0.75))


def _lp_norm(step: Step) -> Any:
    (x,), p = step.inputs, step.attribute("p", 2)
    axis = from_start(step.attribute("axis", -1), x.ndim)
    if p == 1:
        length = ours.sum(ours.abs(x), [axis], True)
    elif p == 2:
        length = ours.sqrt(ours.sum(ours.square(x), [axis], True))
    else:
        raise step.refused(f"p is {p}, must be 1 or 2")
    return ours.where(ours.eq(length, 0.0), 0.0, x / length)


def _same(x: Any) -> Any:
    return x


def _by_name(name: str) -> Callable[..., Any]:
    """A functional form whose declaration is read when a node needs it."""
    return lambda *arguments: getattr(ours, name)(*arguments)


def _reduced(
    over: Callable[[Any, Any, bool], Any],
    before: Callable[[Any], Any] = _same,
    after: Callable[[Any], Any] = _same,
) -> Form:
    """A reduction, and what is done to each element before it and to each result after it."""

    def form(step: Step) -> Any:
        x, axes = before(step.inputs[0]), step.whole(1, "axes")
        if not axes and step.attribute("noop_with_empty_axes", 0):
            return after(x)
        every = tuple(range(x.ndim))
        return after(over(x, list(axes or every), bool(step.attribute("keepdims", 1))))

    return form


def _largest(name: str, lowest: bool) -> Callable[[Any, Any, bool], Any]:
    """The largest or least elements; of none, what every other is beyond."""

    def over(x: Any, axes: Any, keep: bool) -> Any:
        kept = [n for n in range(x.ndim) if n not in [axis % x.ndim for axis in axes]]
        if x.size or not all(x.shape[n] for n in kept):
            return getattr(ours, name)(x, axes, keep)
        shape = [size if n in kept else 1 for n, size in enumerate(x.shape) if keep or n in kept]
        return np.full(shape, _end_of(np.dtype(x.dtype), lowest), x.dtype)

    return over


def _end_of(dtype: np.dtype, lowest: bool) -> Any:
    if dtype.kind == "b":
        return not lowest
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if lowest else np.iinfo(dtype).max
    return -math.inf if lowest else math.inf


def _mean(x: Any, axes: Any, keep: bool) -> Any:
    if np.dtype(x.dtype).kind not in "iu":
        return ours.mean(x, axes, keep)
    count = math.prod([x.shape[axis] for axis in axes])
    return ours.div_mod(ours.sum(x, axes, keep), count, mode="trunc")


def _product(x: Any, axes: Any, keep: bool) -> Any:
    for axis in sorted([axis % x.ndim for axis in axes], reverse=True):
        x = ours.prod(x, axis, keep)
    return x


def _root(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return np.sqrt(x)
    return ours.sqrt(x.astype(np.float64) if np.dtype(x.dtype).kind in "iu" else x)


def _logarithm(x: Any) -> Any:
    return ours.log(x.astype(np.float64) if np.dtype(x.dtype).kind in "iu" else x)


def _log_sum_exp(x: Any, axes: Any, keep: bool) -> Any:
    return ours.logsumexp(x.astype(np.float64) if np.dtype(x.dtype).kind in "iu" else x, axes, keep)


def _backwards(x: Any, axis: int) -> Any:
    return x[(*[slice(None)] * axis, slice(None, None, -1))]


def _place_of(name: str) -> Form:
    """The place of the largest or least element, the first or the last of several."""

    def form(step: Step) -> Any:
        (x,), keep = step.inputs, bool(step.attribute("keepdims", 1))
        axis = from_start(step.attribute("axis", 0), x.ndim)
        is_last = bool(step.attribute("select_last_index", 0))
        found = getattr(ours, name)(_backwards(x, axis).copy() if is_last else x, axis, keep)
        found = found.astype(np.int64, copy=False)
        return (x.shape[axis] - 1) - found if is_last else found

    return form


def _cumsum(step: Step) -> Any:
    (x, _), axis = step.inputs, from_start(step.scalar(1), step.inputs[0].ndim)
    is_reverse = bool(step.attribute("reverse", 0))
    x = _backwards(x, axis).copy() if is_reverse else x
    made = ours.cumsum(x, axis)
    if step.attribute("exclusive", 0) and x.shape[axis]:  # each sum ends before its element
        before = (*[slice(None)] * axis, slice(0, -1))
        margins = [0] * (2 * x.ndim)
        margins[2 * (x.ndim - 1 - axis)] = 1
        made = ours.constant_pad_nd(made[before], margins, 0)
    return _backwards(made, axis).copy() if is_reverse else made


def _top_k(step: Step) -> Any:
    x, axis = step.inputs[0], from_start(step.attribute("axis", -1), step.inputs[0].ndim)
    count = number_to_take(step, x.shape[axis])
    is_largest = bool(step.attribute("largest", 1))
    # Of equal elements the first come first, which a stable sort says.
    values, places = ours.sort(x, axis, is_largest, stable=True)
    first = (*[slice(None)] * axis, slice(0, count))
    return values[first].copy(), places[first].copy()


# --- Shapes -----------------------------------------------------------------------------------------


def _reshape(step: Step) -> Any:
    x, requested = step.inputs[0], step.whole(1, "shape") or ()
    if step.attribute("allowzero", 0):
        return x.reshape(requested)
    return x.reshape(tuple([x.shape[n] if size == 0 else size for n, size in enumerate(requested)]))


def _flatten(step: Step) -> Any:
    (x,), axis = step.inputs, step.attribute("axis", 1)
    axis = axis if axis == x.ndim else from_start(axis, x.ndim)
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


def _squeeze(step: Step) -> Any:
    return step.inputs[0].squeeze(step.whole(1, "axes"))


def _unsqueeze(step: Step) -> Any:
    x, axes = step.inputs[0], step.whole(1, "axes") or ()
    rank = x.ndim + len(axes)
    places = {from_start(axis, rank) for axis in axes}
    left = iter(x.shape)
    return x.reshape(tuple([1 if n in places else next(left) for n in range(rank)]))


def _transpose(step: Step) -> Any:
    return step.inputs[0].transpose(*step.attribute("perm", ()))


def _expand(step: Step) -> Any:
    x, shape = step.inputs[0], step.whole(1) or ()
    return x.broadcast_to(np.broadcast_shapes(x.shape, shape))


def _concat(step: Step) -> Any:
    return ours.cat(list(step.inputs), step.required("axis"))


def _slice(step: Step) -> Any:
    x, starts, ends = step.inputs[0], step.whole(1, "starts"), step.whole(2, "ends")
    axes, steps = step.whole(3, "axes"), step.whole(4)
    assert starts is not None
    assert ends is not None
    index = [slice(None)] * x.ndim
    every = axes or tuple(range(len(starts)))
    for axis, start, end, by in zip(every, starts, ends, steps or (1,) * len(starts), strict=True):
        # Beyond the first element, backwards, is what None says.
        axis = from_start(axis, x.ndim)
        last = None if by < 0 and end < -x.shape[axis] else end
        index[axis] = slice(start, last, by)
    return x[tuple(index)]


def _split(step: Step) -> Any:
    x, sizes = step.inputs[0], step.whole(1, "split")
    axis = from_start(step.attribute("axis", 0), x.ndim)
    if sizes is None:
        count = step.attribute("num_outputs", step.n_outputs)
        each = -(-x.shape[axis] // count)
        sizes = tuple([min(each, x.shape[axis] - each * n) for n in range(count)])
    if min(sizes, default=0) < 0 or sum(sizes) != x.shape[axis]:
        raise step.broken(f"sizes {list(sizes)} do not add up to {x.shape[axis]}")
    ends = np.cumsum(sizes).tolist()
    before = (slice(None),) * axis
    return tuple(
        [x[(*before, slice(end - size, end))] for size, end in zip(sizes, ends, strict=True)]
    )


def _gather(step: Step) -> Any:
    table, index = step.inputs
    axis = from_start(step.attribute("axis", 0), table.ndim)
    if not isinstance(index, np.ndarray) or index.ndim:
        return ours.gather_v2(table, axis, index)
    size, position = table.shape[axis], int(index)
    if not -size <= position < size:
        raise step.refused(f"an index is {position}, must be from {-size} to {size - 1}")
    return table[(*(slice(None),) * axis, position)]


def _gather_elements(step: Step) -> Any:
    x, index = step.inputs
    return ours.gather(x, from_start(step.attribute("axis", 0), x.ndim), index)


def _gather_nd(step: Step) -> Any:
    x, index = step.inputs
    n_before = step.attribute("batch_dims", 0)
    if n_before:  # rows of a batch have indices of their own
        own = np.indices((*x.shape[:n_before], *index.shape[n_before:-1])).astype(np.int64)
        columns = np.moveaxis(own[:n_before], 0, -1)
        join = np.concatenate if isinstance(index, np.ndarray) else ours.cat
        index = join([columns, index.astype(np.int64)], -1)
    return ours.gather_nd(x, index, True)


def _pad(step: Step) -> Any:
    x, pads, axes = step.inputs[0], step.whole(1, "pads") or (), step.whole(3)
    mode = step.attribute("mode", "constant")
    if mode != "constant":
        return _pad_by_places(step, x, pads, axes or range(x.ndim), mode)
    margins = [0] * (2 * x.ndim)
    places = [from_start(axis, x.ndim) for axis in axes or range(x.ndim)]
    for index, before, after in zip(places, pads[: len(places)], pads[len(places) :], strict=True):
        last = 2 * (x.ndim - 1 - index)  # PyTorch's order: from the last dimension on
        margins[last : last + 2] = before, after
    return ours.constant_pad_nd(x, margins, step.scalar(2, "value", 0))


def _pad_by_places(step: Step, x: Any, pads: Sequence[int], axes: Sequence[int], mode: str) -> Any:
    """Margins of the tensor's own elements: NumPy says which, axis by axis."""
    for axis, before, after in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        index = from_start(axis, x.ndim)
        if not before and not after:
            continue
        # What is cut off is gone before margins are made of the rest.
        left = np.arange(x.shape[index])[max(-before, 0) : x.shape[index] + min(after, 0)]
        if not left.size:
            raise step.broken(f"pads {list(pads)} in mode {mode} leave nothing of {list(x.shape)}")
        places = np.pad(left, (max(before, 0), max(after, 0)), mode=mode)  # type: ignore[call-overload]
        x = ours.gather_v2(x, index, places)
    return x


def _depth_to_space(step: Step) -> Any:
    x, size = step.inputs[0], step.required("blocksize")
    if x.ndim != 4 or size < 1 or x.shape[1] % size**2:
        raise step.refused(f"blocks of {size} do not fit {list(x.shape)}")
    n, channels, rows, columns = x.shape
    own = channels // size**2
    if step.attribute("mode", "DCR") == "DCR":
        parts, order = (n, size, size, own, rows, columns), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (n, own, size, size, rows, columns), (0, 1, 4, 2, 5, 3)
    return x.reshape(*parts).transpose(*order).reshape(n, own, rows * size, columns * size)


def _space_to_depth(step: Step) -> Any:
    x, size = step.inputs[0], step.required("blocksize")
    if x.ndim != 4 or size < 1 or x.shape[2] % size or x.shape[3] % size:
        raise step.refused(f"blocks of {size} do not fit {list(x.shape)}")
    n, channels, rows, columns = x.shape
    parts = x.reshape(n, channels, rows // size, size, columns // size, size)
    is_by_depth = step.attribute("mode", "DCR") == "DCR"
    made = parts.transpose(*((0, 3, 5, 1, 2, 4) if is_by_depth else (0, 1, 3, 5, 2, 4)))
    return made.reshape(n, channels * size**2, rows // size, columns // size)


def _tile(step: Step) -> Any:
    return ours.repeat(step.inputs[0], list(step.whole(1) or ()))


def _of_numbers(step: Step) -> Any:
    """An operator whose inputs say how large its result is: once they are known, it is folded."""
    raise NeededError([n for n, one in enumerate(step.inputs) if isinstance(one, TracedArray)])


def _trilu(step: Step) -> Any:
    form = ours.triu if step.attribute("upper", 1) else ours.tril
    return form(step.inputs[0], step.scalar(1, default=0))


FORMS: dict[str, Form] = {
    **{
        kind: _declared(one.name, kind)  # whose declaration is read when a node needs it
        for one in NAMES
        for kind in one.onnx
    },
    **{
        kind: _named(kind.lower())
        for kind in (
            "Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Neg", "Abs", "Floor", "Reciprocal",
            "Erf", "Sin", "Cos", "Softplus", "Mish", "HardSwish", "Sign", "Ceil", "Round",
        )
    },
    **{
        kind: _binary(name)
        for kind, name in (
            ("Add", "add"), ("Sub", "sub"), ("Mul", "mul"), ("Equal", "eq"), ("Less", "lt"),
            ("LessOrEqual", "le"), ("Greater", "gt"), ("GreaterOrEqual", "ge"),
            ("BitwiseAnd", "bitwise_and"), ("BitwiseOr", "bitwise_or"), ("BitwiseXor", "bitwise_xor"),
            ("And", "logical_and"), ("Or", "logical_or"), ("Xor", "logical_xor"),
        )
    },
    "Not": _named("logical_not"), "BitwiseNot": _named("bitwise_not"),
    "IsInf": _is_inf, "Mod": _mod, "MatMul": _matmul,
    **QUANTIZED,
    **RECURRENT,
    **RESIZING,
    "Einsum": einsum,
    "QuantizeLinear": _quantize, "DequantizeLinear": _dequantize,
    "Max": _folded("maximum"), "Min": _folded("minimum"), "Sum": _folded("add"),
    "Mean": _mean_of_inputs, "Div": _div, "Pow": _pow, "Clip": _clip, "Where": _where,
    "HardSigmoid": _hard_sigmoid, "Softsign": _softsign,
    "PRelu": _prelu, "IsNaN": _is_nan, "Identity": _identity, "Dropout": _dropout,
    "Cast": _cast, "CastLike": _cast_like, "Gemm": _gemm,
    "Conv": _convolution, "ConvTranspose": _transposed_convolution,
    **POOLS,
    **SAMPLING,
    **SCATTERING,
    **NUMPY_FORMS,
    "OptionalGetElement": _identity, "LRN": _local_norm, "LpNormalization": _lp_norm,
    "Softmax": _along_rows("softmax"), "LogSoftmax": _along_rows("log_softmax"),
    "LayerNormalization": _layer_norm, "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm, "InstanceNormalization": _instance_norm,
    "BatchNormalization": _batch_norm,
    "ReduceSum": _reduced(_by_name("sum")),
    "ReduceMean": _reduced(_mean),
    "ReduceMax": _reduced(_largest("amax", True)),
    "ReduceMin": _reduced(_largest("amin", False)),
    "ReduceSumSquare": _reduced(_by_name("sum"), before=_by_name("square")),
    "ReduceL2": _reduced(_by_name("sum"), before=_by_name("square"), after=_root),
    "ReduceL1": _reduced(_by_name("sum"), before=_by_name("abs")),
    "ReduceLogSum": _reduced(_by_name("sum"), after=_logarithm),
    "ReduceLogSumExp": _reduced(_log_sum_exp),
    "ReduceProd": _reduced(_product),
    "ArgMax": _place_of("arg_max"), "ArgMin": _place_of("argmin"), "CumSum": _cumsum,
    "TopK": _top_k,
    "Reshape": _reshape, "Flatten": _flatten, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze,
    "Transpose": _transpose, "Expand": _expand, "Concat": _concat, "Slice": _slice,
    "Split": _split, "Gather": _gather, "GatherElements": _gather_elements,
    "GatherND": _gather_nd, "Pad": _pad,
    "DepthToSpace": _depth_to_space, "SpaceToDepth": _space_to_depth,
    "Tile": _tile, "Trilu": _trilu,
    "ConstantOfShape": _of_numbers, "MelWeightMatrix": _of_numbers,
}  # fmt: skip

# What is known of a traced array without its elements.
OF_SHAPES: dict[str, Callable[[Step], Sequence[int] | int]] = {
    "Shape": lambda step: step.inputs[0].shape[
        slice(step.attribute("start", 0), step.attribute("end"))
    ],
    "Size": lambda step: step.inputs[0].size,
}
