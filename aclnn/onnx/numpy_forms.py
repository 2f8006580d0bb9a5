"""Operators that NumPy computes, as steps of plans, and dtypes that no form of ours takes.

Exported models have them rarely, or in places that hardly count: a plan calls NumPy on views of its memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from aclnn.acl.errors import AclnnError, invalid
from aclnn.api import functional
from aclnn.onnx.evaluation import said
from aclnn.onnx.rules import misfit
from aclnn.onnx.steps import Form, Step, dtype_of, from_start, margins, number_to_take
from aclnn.tracing.array import TracedArray
from aclnn.tracing.opaque import call

ours: Any = functional  # whose names are made from declarations


def as_step(
    owner: str | Step, function: Callable[..., Any], operands: Sequence[Any], shape: Sequence[int], dtype: Any
) -> Any:  # fmt: skip
    """The result of a function of arrays as a step of a plan: constants are part of it.

    Parameters
    ----------
    owner : Step or str
        The node, which names the step and its errors, or a name.
    function : callable
        Takes the operands as NumPy's arrays, those that are left out as None, and gives an array.
    operands : sequence of array or None
        At least one is traced.
    shape, dtype
        Of the result.
    """
    places = [n for n, one in enumerate(operands) if isinstance(one, TracedArray)]
    value = [None if n in places else one for n, one in enumerate(operands)]

    def step(*views: Any, out: Any) -> None:
        every = list(value)
        for index, view in zip(places, views, strict=True):
            every[index] = view
        try:
            with np.errstate(all="ignore"):
                out[...] = function(*every)
        except (AclnnError, MemoryError):
            raise
        except Exception as error:  # of NumPy, by values that fit no rule
            raise _misfit(owner, operands, every, error) from None

    step.__name__ = owner if isinstance(owner, str) else owner.kind.lower()
    traced = [operands[n] for n in places]
    return call(step, *traced, shape=tuple(map(int, shape)), dtype=np.dtype(dtype))


def _misfit(
    owner: str | Step, operands: Sequence[Any], arrays: Sequence[Any], error: Exception
) -> AclnnError:  # fmt: skip
    """The error of a step, of what its operands were when it ran."""
    if isinstance(owner, str):
        return invalid(f"{owner}: {said(error)}")
    ran = {id(one): array for one, array in zip(operands, arrays, strict=True)}
    return misfit(replace(owner, inputs=tuple([ran.get(id(x), x) for x in owner.inputs])), error)


# --- Pointwise --------------------------------------------------------------------------------------


def _pointwise(function: Callable[[Any], Any]) -> Form:
    def form(step: Step) -> Any:
        (x,) = step.inputs
        return as_step(step, lambda x: function(_wide(x)), [x], x.shape, x.dtype)

    return form


def _exactly(function: Callable[[Any], Any]) -> Form:
    """A form by a function of arrays in their own dtype."""

    def form(step: Step) -> Any:
        (x,) = step.inputs
        return as_step(step, function, [x], x.shape, x.dtype)

    return form


def _wide(x: np.ndarray) -> np.ndarray:
    """Numbers in a precision that functions of NumPy's have."""
    return x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)


def _cut_division(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a // b if a.dtype.kind == "u" else np.trunc(a / b)


def _many(step: Step, function: Callable[[Any, Any], Any], dtype: Any) -> Any:
    """A function of two that is applied one operand after the other."""
    shape = np.broadcast_shapes(*[one.shape for one in step.inputs])
    return as_step(step, lambda *x: reduce(function, x), step.inputs, shape, dtype)


_OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _cut_division, "Pow": np.power,
    "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor,
    "Max": np.maximum, "Min": np.minimum, "Sum": np.add, "Mod": np.remainder,
}  # fmt: skip
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
}  # fmt: skip


def by_numpy(step: Step) -> Any:
    """The result of a pointwise operator on dtypes that no form of ours takes; None for other operators."""
    if step.kind in _COMPARED:
        return _many(step, _COMPARED[step.kind], np.bool_)
    if step.kind == "Mod" and step.attribute("fmod", 0):
        return _many(step, np.fmod, step.inputs[0].dtype)
    if step.kind in _OF_TWO:
        return _many(step, _OF_TWO[step.kind], step.inputs[0].dtype)
    form = _OF_WHOLE.get(step.kind)
    return None if form is None else form(step)


def _top_k(step: Step) -> Any:
    x, axis = step.inputs[0], from_start(step.attribute("axis", -1), step.inputs[0].ndim)
    count = number_to_take(step, x.shape[axis])
    is_largest = bool(step.attribute("largest", 1))
    shape = [*x.shape[:axis], count, *x.shape[axis + 1 :]]

    def places(x: np.ndarray) -> np.ndarray:
        # Of equal elements the first come first: the order of the turned array, turned.
        if not is_largest:
            return np.argsort(x, axis, kind="stable").take(range(count), axis)
        turned = np.argsort(np.flip(x, axis), axis, kind="stable")
        return (x.shape[axis] - 1 - np.flip(turned, axis)).take(range(count), axis)

    at = as_step("topk", places, [x], shape, np.int64)
    values = as_step("take", lambda x, at: np.take_along_axis(x, at, axis), [x, at], shape, x.dtype)
    return values, at


def _reduced(function: Callable[..., Any]) -> Form:
    def form(step: Step) -> Any:
        x, axes = step.inputs[0], step.whole(1, "axes")
        if not axes and step.attribute("noop_with_empty_axes", 0):
            axes = ()
        else:
            axes = tuple([from_start(axis, x.ndim) for axis in axes or range(x.ndim)])
        keep, dtype = bool(step.attribute("keepdims", 1)), np.dtype(x.dtype)
        shape = [
            1 if n in axes else size for n, size in enumerate(x.shape) if keep or n not in axes
        ]
        return as_step(step, lambda x: function(x, axes, keep).astype(dtype), [x], shape, dtype)

    return form


def _mean(x: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    count = math.prod([x.shape[axis] for axis in axes])
    sums = x.sum(axes, keepdims=keep, dtype=x.dtype)
    return sums / count if x.dtype.kind == "f" else sums // max(count, 1)


_REDUCED: dict[str, Callable[..., Any]] = {
    "ReduceMax": lambda x, axes, keep: x.max(axes, keepdims=keep),
    "ReduceMin": lambda x, axes, keep: x.min(axes, keepdims=keep),
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keepdims=keep, dtype=x.dtype),
    "ReduceProd": lambda x, axes, keep: x.prod(axes, keepdims=keep, dtype=x.dtype),
    "ReduceSumSquare": lambda x, axes, keep: np.square(x).sum(axes, keepdims=keep, dtype=x.dtype),
    "ReduceMean": _mean,
}  # fmt: skip


def _place_of(function: Callable[..., Any]) -> Form:
    def form(step: Step) -> Any:
        (x,), keep = step.inputs, bool(step.attribute("keepdims", 1))
        axis, is_last = (
            from_start(step.attribute("axis", 0), x.ndim),
            step.attribute("select_last_index", 0),
        )
        shape = [1 if n == axis else size for n, size in enumerate(x.shape) if keep or n != axis]

        def places(x: np.ndarray) -> np.ndarray:
            found = function(np.flip(x, axis) if is_last else x, axis, keepdims=keep)
            return x.shape[axis] - 1 - found if is_last else found

        return as_step(step, places, [x], shape, np.int64)

    return form


def _clip(step: Step) -> Any:
    x, low, high = step.inputs[0], step.given(1), step.given(2)
    bounds = [
        step.attribute(name) if one is None else one for name, one in (("min", low), ("max", high))
    ]

    def within(x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        x = x if low is None else np.maximum(x, low)
        return x if high is None else np.minimum(x, high)

    return as_step(step, within, [x, *bounds], x.shape, x.dtype)


def _where(step: Step) -> Any:
    shape = np.broadcast_shapes(*[one.shape for one in step.inputs])
    return as_step(step, np.where, step.inputs, shape, step.inputs[1].dtype)


def _cumulated(step: Step) -> Any:
    return _scanned(step, np.cumsum, 0)


def _shrunk(step: Step) -> Any:
    (x,), limit, bias = step.inputs, step.attribute("lambd", 0.5), step.attribute("bias", 0.0)

    def shrunk(x: np.ndarray) -> np.ndarray:
        return np.where(x < -limit, x + bias, np.where(x > limit, x - bias, 0)).astype(x.dtype)

    return as_step(step, shrunk, [x], x.shape, x.dtype)


def _prelu(step: Step) -> Any:
    x, slope = step.inputs
    if np.broadcast_shapes(x.shape, slope.shape) != tuple(x.shape):
        raise step.refused(f"slopes {list(slope.shape)} do not fit {list(x.shape)}")
    return as_step(step, lambda x, s: np.where(x < 0, x * s, x), [x, slope], x.shape, x.dtype)


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _positive(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def _convolution(step: Step) -> Any:
    """A convolution of doubles: a product of what windows have by their weights."""
    x, weight, bias = step.inputs[0], step.inputs[1], step.given(2)
    if np.dtype(x.dtype) != np.float64:
        return None
    axes, groups = x.ndim - 2, step.attribute("group", 1)
    ones, kernel = (1,) * axes, weight.shape[2:]
    strides, dilations = step.attribute("strides", ones), step.attribute("dilations", ones)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    before, after = margins(step, x.shape[2:], reach)
    ends = [(0, 0), (0, 0), *zip(before, after, strict=True)]
    wide = [size + a + b for size, (a, b) in zip(x.shape[2:], ends[2:], strict=True)]
    counts = [(size - r) // s + 1 for size, r, s in zip(wide, reach, strides, strict=True)]
    if x.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups or min(counts) < 0:
        raise step.refused(f"{list(weight.shape)} in {groups} groups does not fit {list(x.shape)}")

    def convolved(x: np.ndarray, weight: np.ndarray, bias: Any) -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(
            np.pad(x, ends), reach, tuple(range(2, x.ndim))
        )
        every = [slice(None, None, s) for s in strides] + [slice(None, None, d) for d in dilations]
        windows = windows[(slice(None), slice(None), *every)]
        own, made = weight.shape[1], []
        for group, rows in enumerate(np.split(weight, groups)):
            part = windows[:, group * own : (group + 1) * own]
            places = [1, *range(2 + axes, 2 + 2 * axes)]
            made.append(np.moveaxis(np.tensordot(part, rows, (places, range(1, 2 + axes))), -1, 1))
        found = np.concatenate(made, 1)
        return found if bias is None else found + bias.reshape(-1, *ones)

    shape = (x.shape[0], weight.shape[0], *counts)
    return as_step(step, convolved, [x, weight, bias], shape, x.dtype)


def _shifted(x: np.ndarray, by: np.ndarray, is_left: bool) -> np.ndarray:
    """Bits shifted; by more than there are, nothing is left but a sign."""
    bits = x.dtype.itemsize * 8
    far = (by >= bits) | (by < 0)
    near = np.where(far, 0, by).astype(x.dtype)
    if is_left:
        return np.where(far, 0, np.left_shift(x, near))
    return np.where(far, np.where(x < 0, -1, 0).astype(x.dtype), np.right_shift(x, near))


def _bit_shift(step: Step) -> Any:
    x, by = step.inputs
    is_left = step.required("direction") == "LEFT"
    shape = np.broadcast_shapes(x.shape, by.shape)
    return as_step(step, lambda x, by: _shifted(x, by, is_left), [x, by], shape, x.dtype)


def _bit_cast(step: Step) -> Any:
    x, to = step.inputs[0], dtype_of(step.required("to"))
    if to.itemsize != np.dtype(x.dtype).itemsize:
        raise step.refused(f"elements of {np.dtype(x.dtype)} are not as large as those of {to}")
    return as_step(
        step, lambda x: np.ascontiguousarray(x).reshape(x.shape).view(to), [x], x.shape, to
    )


def _scanned(step: Step, function: Callable[..., Any], first: int) -> Any:
    """Sums or products of what comes before each element."""
    x, axis = step.inputs[0], from_start(step.scalar(1), step.inputs[0].ndim)
    is_reverse, is_exclusive = step.attribute("reverse", 0), step.attribute("exclusive", 0)

    def scanned(x: np.ndarray) -> np.ndarray:
        x = np.flip(x, axis) if is_reverse else x
        made = function(x, axis, dtype=x.dtype)
        if is_exclusive and x.shape[axis]:
            made = np.roll(made, 1, axis)
            begin: tuple[Any, ...] = (*[slice(None)] * axis, 0)
            made[begin] = first
        return np.flip(made, axis) if is_reverse else made

    return as_step(step, scanned, [x], x.shape, x.dtype)


def _cumulated_product(step: Step) -> Any:
    return _scanned(step, np.cumprod, 1)


_EXACT: dict[str, Callable[[Any], Any]] = {
    "Abs": np.abs, "Sign": np.sign, "BitwiseNot": np.invert, "Tanh": np.tanh, "Erf": _erf, "Relu": _positive,
}  # fmt: skip
# What no kernel has in some dtypes, such as uint64 and float64.
_OF_WHOLE: dict[str, Form] = {
    "TopK": _top_k, "Clip": _clip, "Where": _where, "CumSum": _cumulated, "Shrink": _shrunk,
    "PRelu": _prelu, "Conv": _convolution,
    "ArgMax": _place_of(np.argmax), "ArgMin": _place_of(np.argmin),
    **{kind: _reduced(function) for kind, function in _REDUCED.items()},
    **{kind: _exactly(function) for kind, function in _EXACT.items()},
}  # fmt: skip


# --- Products ---------------------------------------------------------------------------------------


def matmul(a: Any, b: Any) -> Any:
    """A product in whatever dtype: by NumPy where no kernel has it."""
    try:
        return ours.matmul(a, b)
    except AclnnError:
        dtype = np.dtype(a.dtype)
        if dtype != np.dtype(b.dtype) or (dtype.kind not in "iu" and dtype != np.float64):
            raise
        # The shape, and the rule that sizes break.
        shape = np.matmul(
            *(np.broadcast_to(np.zeros((), np.bool_), one.shape) for one in (a, b))
        ).shape
        if not any(isinstance(one, TracedArray) for one in (a, b)):
            return np.matmul(a, b)
        return as_step("matmul", np.matmul, [a, b], shape, dtype)


def _det(step: Step) -> Any:
    (x,) = step.inputs
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise step.refused(f"{list(x.shape)} is no batch of square matrices")
    return as_step(step, lambda x: np.linalg.det(_wide(x)), [x], x.shape[:-2], x.dtype)


# --- Signals ----------------------------------------------------------------------------------------


def _as_complex(x: np.ndarray) -> np.ndarray:
    """Numbers whose last axis has their parts."""
    wide = _wide(x)
    return wide[..., 0] if x.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]


def _parts(x: np.ndarray) -> np.ndarray:
    return np.stack([x.real, x.imag], -1)


def _dft(step: Step) -> Any:
    x, default = step.inputs[0], 1 if step.opset < 20 else -2
    axis = step.attribute("axis", default) if step.opset < 20 else step.scalar(2, default=default)
    axis = from_start(int(axis), x.ndim)
    is_inverse, is_onesided = step.attribute("inverse", 0), step.attribute("onesided", 0)
    if axis == x.ndim - 1:
        raise step.refused("the last axis has the parts of numbers, it has no transform")
    size = x.shape[axis]
    length = int(step.scalar(1, default=2 * (size - 1) if is_inverse and is_onesided else size))
    if length < 1:
        raise step.refused(f"a transform of length {length} is none")
    whole = list(x.shape)
    whole[axis] = length // 2 + 1 if is_onesided and not is_inverse else length
    whole[-1] = 1 if is_onesided and is_inverse else 2

    def transform(x: np.ndarray) -> np.ndarray:
        signal = _as_complex(x)
        if not is_inverse:
            made = np.fft.fft(signal, length, axis)
            return _parts(np.take(made, range(whole[axis]), axis))
        if is_onesided:
            return np.fft.irfft(signal, length, axis)[..., None]
        return _parts(np.fft.ifft(signal, length, axis))

    return as_step(step, transform, [x], whole, x.dtype)


def _stft(step: Step) -> Any:
    x, window, hop = step.inputs[0], step.given(2), int(step.scalar(1))
    length = step.scalar(3)
    if length is None:
        length = x.shape[1] if window is None else window.shape[0]
    length, width = int(length), None if window is None else window.shape[0]
    if hop < 1 or not 1 <= length <= x.shape[1] or width not in (None, length):
        raise step.refused(
            f"frames of {length} every {hop} do not fit a signal of {x.shape[1]} and a window of {width}"
        )
    is_onesided = bool(step.attribute("onesided", 1))
    if is_onesided and x.ndim == 3 and x.shape[-1] == 2:
        raise step.refused("transforms of complex signals have two sides")
    count, bins = 1 + (x.shape[1] - length) // hop, length // 2 + 1 if is_onesided else length

    def transforms(x: np.ndarray, window: Any) -> np.ndarray:
        signal = _as_complex(x) if x.ndim == 3 else _wide(x)
        frames = np.lib.stride_tricks.sliding_window_view(signal, length, 1)[:, ::hop]
        frames = frames if window is None else frames * window
        return _parts(np.fft.fft(frames, axis=-1)[..., :bins])

    return as_step(step, transforms, [x, window], (x.shape[0], count, bins, 2), x.dtype)


# --- Random numbers ---------------------------------------------------------------------------------


def _generator(step: Step) -> Callable[[], np.random.RandomState]:
    """A maker of streams of random numbers, one for each run: the same one where the node has a seed."""
    seed = step.attribute("seed")
    if seed is None:
        return np.random.RandomState
    whole = int(seed) % 2**32
    return lambda: np.random.RandomState(whole)


def _drawn(step: Step, kind: str) -> Callable[[Any], np.ndarray]:
    """A function that gives random numbers of a shape."""
    made = _generator(step)
    names = (("mean", 0.0), ("scale", 1.0)) if kind == "normal" else (("low", 0.0), ("high", 1.0))
    first, second = (step.attribute(*one) for one in names)
    return lambda shape: getattr(made(), kind)(first, second, shape)


def _random_like(kind: str) -> Form:
    def form(step: Step) -> Any:
        (x,), draw, to = step.inputs, _drawn(step, kind), step.attribute("dtype")
        return as_step(
            step, lambda x: draw(x.shape), [x], x.shape, x.dtype if to is None else dtype_of(to)
        )

    return form


def _random(kind: str) -> Form:
    """Random numbers of a shape: a step that is given some array, of which it reads nothing."""

    def form(step: Step) -> Any:
        draw, shape = _drawn(step, kind), tuple(step.required("shape"))
        dtype = dtype_of(step.attribute("dtype", 1))
        if step.anchor is None:
            return draw(shape).astype(dtype)
        return as_step(step, lambda _: draw(shape), [step.anchor], shape, dtype)

    return form


def _bernoulli(step: Step) -> Any:
    (x,), made, to = step.inputs, _generator(step), step.attribute("dtype")
    dtype = x.dtype if to is None else dtype_of(to)
    return as_step(step, lambda x: made().uniform(size=x.shape) < x, [x], x.shape, dtype)


def _multinomial(step: Step) -> Any:
    (x,), made, count = step.inputs, _generator(step), step.attribute("sample_size", 1)

    def samples(x: np.ndarray) -> np.ndarray:
        shares = np.exp(_wide(x) - _wide(x).max(-1, keepdims=True)).cumsum(-1)
        drawn = made().uniform(size=(x.shape[0], count, 1)) * shares[:, None, -1:]
        return (shares[:, None] <= drawn).sum(-1)

    return as_step(step, samples, [x], (x.shape[0], count), dtype_of(step.attribute("dtype", 6)))


def dropout(step: Step, ratio: float) -> Any:
    """An array without the elements that training drops, and the truth of each being kept."""
    x, made = step.inputs[0], _generator(step)
    kept = as_step("kept", lambda x: made().uniform(size=x.shape) >= ratio, [x], x.shape, np.bool_)
    scale = 1.0 / (1.0 - ratio) if ratio < 1 else 0.0
    return kept.astype(x.dtype) * x * scale, kept


NUMPY_FORMS: dict[str, Form] = {
    **{
        kind: _pointwise(function)
        for kind, function in {
            "Acos": np.arccos, "Acosh": np.arccosh, "Asin": np.arcsin, "Asinh": np.arcsinh,
            "Atan": np.arctan, "Atanh": np.arctanh, "Cosh": np.cosh, "Sinh": np.sinh, "Tan": np.tan,
        }.items()
    },
    "BitShift": _bit_shift, "BitCast": _bit_cast, "CumProd": _cumulated_product, "Det": _det,
    "DFT": _dft, "STFT": _stft, "Bernoulli": _bernoulli, "Multinomial": _multinomial,
    "RandomNormal": _random("normal"), "RandomUniform": _random("uniform"),
    "RandomNormalLike": _random_like("normal"), "RandomUniformLike": _random_like("uniform"),
}  # fmt: skip
