"""Operators that NumPy computes, as steps of plans, and dtypes that no form of ours takes.

Exported models have them rarely, or in places that hardly count: a plan calls NumPy on views of its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from aclnn.acl.errors import AclnnError, invalid
from aclnn.api import functional
from aclnn.onnx.evaluation import said
from aclnn.onnx.steps import Form, Step, dtype_of, from_start
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
    title = owner if isinstance(owner, str) else f"{owner.kind} ({owner.name})"
    places = [n for n, one in enumerate(operands) if isinstance(one, TracedArray)]
    given = [None if n in places else one for n, one in enumerate(operands)]

    def step(*views: Any, out: Any) -> None:
        every = list(given)
        for place, view in zip(places, views, strict=True):
            every[place] = view
        try:
            with np.errstate(all="ignore"):
                out[...] = function(*every)
        except (AclnnError, MemoryError):
            raise
        except Exception as error:  # of NumPy, by values that fit no rule
            raise invalid(f"{title}: {said(error)}") from None

    step.__name__ = owner if isinstance(owner, str) else owner.kind.lower()
    traced = [operands[n] for n in places]
    return call(step, *traced, shape=tuple(map(int, shape)), dtype=np.dtype(dtype))


# --- Pointwise --------------------------------------------------------------------------------------


def _pointwise(function: Callable[[Any], Any]) -> Form:
    def form(step: Step) -> Any:
        (x,) = step.inputs
        return as_step(step, lambda x: function(_wide(x)), [x], x.shape, x.dtype)

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
    if step.kind == "TopK":
        return _top_k(step)
    return None


def _top_k(step: Step) -> Any:
    x, count = step.inputs[0], int(step.scalar(1, "k"))
    axis = from_start(step.attribute("axis", -1), x.ndim)
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


def _cumulated_product(step: Step) -> Any:
    x, axis = step.inputs[0], from_start(step.scalar(1), step.inputs[0].ndim)
    is_reverse, is_exclusive = step.attribute("reverse", 0), step.attribute("exclusive", 0)

    def products(x: np.ndarray) -> np.ndarray:
        x = np.flip(x, axis) if is_reverse else x
        made = np.cumprod(x, axis, dtype=x.dtype)
        if is_exclusive and x.shape[axis]:
            made = np.roll(made, 1, axis)
            first: tuple[Any, ...] = (*[slice(None)] * axis, 0)
            made[first] = 1
        return np.flip(made, axis) if is_reverse else made

    return as_step(step, products, [x], x.shape, x.dtype)


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
