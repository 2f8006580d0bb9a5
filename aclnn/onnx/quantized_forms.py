"""The standard's operators on quantised integers, and patterns of others between quantisations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aclnn.api import functional
from aclnn.onnx.few_bits import FewBits, kept, of_scales
from aclnn.onnx.few_bits import product as few_bits_product
from aclnn.onnx.patterns import Found, UnsuitedError
from aclnn.onnx.quantized import (
    BYTES,
    NIBBLES,
    Geometry,
    Integers,
    Sums,
    convolution,
    integers,
    product,
    requantized,
)
from aclnn.onnx.steps import Form, Step, margins
from aclnn.tracing.array import TracedArray

ours: Any = functional  # whose names are made from declarations


# --- Operators --------------------------------------------------------------------------------------


def _of_rows(numbers: Any) -> Any:
    """Numbers of quantisation of each row, as a column that broadcasts."""
    return numbers if numbers is None or numbers.ndim != 1 else numbers.reshape(-1, 1)


def _wide(number: Any) -> Any:
    return number.astype(np.float64)


def matrix_product(a: Any, b: Any, zero_a: Any, zero_b: Any) -> Any:
    """A product as MatMul's of quantised arrays, in int32."""
    left = a.reshape(1, a.shape[0]) if a.ndim == 1 else a
    right = b.reshape(b.shape[0], 1) if b.ndim == 1 else b
    found = product(integers(left, _of_rows(zero_a)), integers(right, zero_b))
    if b.ndim == 1:
        found = found.reshape(*found.shape[:-1])
    if a.ndim == 1:
        at = found.ndim - (1 if b.ndim == 1 else 2)
        found = found.reshape(*found.shape[:at], *found.shape[at + 1 :])
    return found


def _integer_product(step: Step) -> Any:
    return matrix_product(step.inputs[0], step.inputs[1], step.given(2), step.given(3))


def _product(step: Step) -> Any:
    a, scale_a, zero_a, b, scale_b, zero_b, scale, zero = step.inputs
    sums = matrix_product(a, b, zero_a, zero_b)
    factor = _wide(_of_rows(scale_a)) * _wide(scale_b) / _wide(scale)
    return requantized(sums, factor, None, zero, np.dtype(zero.dtype))


def _sums(step: Step, x: Any, weight: Any, zeros: tuple[Any, Any]) -> Sums:
    axes = x.ndim - 2
    ones = (1,) * axes
    strides, dilations = step.attribute("strides", ones), step.attribute("dilations", ones)
    reach = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilations, strict=True)]
    before, after = margins(step, x.shape[2:], reach)
    geometry = Geometry(strides, before, after, dilations, step.attribute("group", 1))
    return convolution(integers(x, zeros[0]), integers(weight, zeros[1]), geometry)


def _integer_convolution(step: Step) -> Any:
    x, weight = step.inputs[:2]
    return _sums(step, x, weight, (step.given(2), step.given(3))).whole()


def _of_channels(numbers: Any, rank: int) -> Any:
    """Numbers of channels in a shape that broadcasts with images."""
    return numbers if numbers.ndim == 0 else numbers.reshape(-1, *(1,) * (rank - 2))


def _convolution(step: Step) -> Any:
    x, scale_x, zero_x, weight, scale_w, zero_w, scale, zero = step.inputs[:8]
    sums, bias = _sums(step, x, weight, (zero_x, zero_w)), step.given(8)
    if bias is not None:
        if isinstance(bias, TracedArray):
            sums = Sums(ours.add(sums.whole(), _of_channels(bias, x.ndim)), None)
        elif sums.less is None:
            sums = sums._replace(less=-np.asarray(bias).reshape(-1, 1))
        else:
            sums = sums._replace(less=sums.less - np.asarray(bias).reshape(-1, 1))
    factor = _wide(scale_x) * _of_channels(_wide(scale_w), x.ndim) / _wide(scale)
    return requantized(sums, factor, None, zero, np.dtype(zero.dtype))


QUANTIZED: dict[str, Form] = {
    "MatMulInteger": _integer_product,
    "ConvInteger": _integer_convolution,
    "QLinearMatMul": _product,
    "QLinearConv": _convolution,
}


# --- Patterns ---------------------------------------------------------------------------------------

_DATA = "DequantizeLinear(x, SX, zx_)"
_WEIGHT = "dw := DequantizeLinear(w, sw, zw_)"
_BIASES = ("db := DequantizeLinear(b, sb, zb_)", "b")
_CONVOLUTIONS = [
    f"c := Conv({_DATA}, {_WEIGHT})",
    *(f"c := Conv({_DATA}, {_WEIGHT}, {bias})" for bias in _BIASES),
]
_GEMMS = [
    f"g := Gemm({_DATA}, {_WEIGHT})",
    *(f"g := Gemm({_DATA}, {_WEIGHT}, {bias})" for bias in _BIASES),
]
_PRODUCTS = [
    *(f"Add(MatMul({_DATA}, {_WEIGHT}), {bias})" for bias in _BIASES),
    f"MatMul({_DATA}, {_WEIGHT})",
]


def quantized_texts(kind: str) -> list[str]:
    """The patterns of a product or convolution between quantisations, with an activation or without."""
    parts = {"conv": _CONVOLUTIONS, "gemm": _GEMMS, "matmul": _PRODUCTS}[kind]
    return [
        f"QuantizeLinear({one}, SY, zy_)"
        for part in parts
        for one in (f"Clip({part}, LO, HI)", f"r := Relu_({part})")
    ]


def _quantized(found: Found, name: str, zero: str) -> tuple[Any, int]:
    """A quantised array of one zero, and that."""
    array, at = found.values[name], found.values.get(zero)
    if np.dtype(array.dtype).name not in (*BYTES, *NIBBLES):
        raise UnsuitedError("no integers of a byte")
    if isinstance(at, TracedArray):
        raise UnsuitedError("a zero that is computed")
    whole = np.zeros(1, np.int64) if at is None else np.asarray(at).astype(np.int64).reshape(-1)
    if not whole.size or (whole != whole[0]).any():
        raise UnsuitedError("zeros of channels")
    return array, int(whole[0])


def _result(found: Found) -> tuple[float, int, np.dtype]:
    """The scale, the zero and the dtype of the result."""
    zero = found.values.get("zy_")
    if isinstance(zero, TracedArray) or (zero is not None and np.size(zero) != 1):
        raise UnsuitedError("zeros of channels")
    kind = np.dtype(np.uint8 if zero is None else zero.dtype)
    if kind.name not in BYTES:
        raise UnsuitedError("a result of other integers")
    return found.number("SY"), 0 if zero is None else int(np.reshape(zero, -1)[0]), kind


def _scales(found: Found, axis: int) -> np.ndarray:
    """The scales of a weight: one, or one for each of its channels along an axis."""
    scales, weight = found.values["sw"], found.values["w"]
    if isinstance(scales, TracedArray):
        raise UnsuitedError("scales that are computed")
    wide = np.asarray(scales).astype(np.float64)
    if wide.ndim > 1 or found.attributes("dw").get("block_size", 0):
        raise UnsuitedError("scales of blocks")
    along = found.attributes("dw").get("axis", 1) % weight.ndim
    if wide.size != 1 and (along != axis or wide.size != weight.shape[axis]):
        raise UnsuitedError("scales of another axis")
    return wide.reshape(()) if wide.size == 1 else wide


def _shift(found: Found, scale: float) -> Any:
    """The bias in units of the result's scale; None for nothing."""
    if "b" not in found.values:
        return None
    bias = found.values["b"]
    if isinstance(bias, TracedArray) or isinstance(found.values.get("sb"), TracedArray):
        raise UnsuitedError("a bias that is computed")
    wide = np.asarray(bias).astype(np.float64)
    if "sb" in found.values:
        zero = found.values.get("zb_")
        own = np.asarray(found.values["sb"]).astype(np.float64)
        if isinstance(zero, TracedArray) or (own.size != 1 and own.shape != wide.shape):
            raise UnsuitedError("a bias of another kind")
        wide = (wide - (0 if zero is None else np.asarray(zero).astype(np.float64))) * own
    return wide / scale


def _limits(found: Found, scale: float) -> tuple[float, float]:
    if "LO" in found.values:
        return found.number("LO") / scale, found.number("HI") / scale
    return (0.0 if "r" in found.nodes else -math.inf), math.inf


def _finished(found: Found, sums: Any, scales: np.ndarray, shift: Any) -> Any:
    scale, zero, kind = _result(found)
    if not scale or not math.isfinite(scale):
        raise UnsuitedError("a scale that is none")
    return requantized(
        sums, found.number("SX") * scales / scale, shift, zero, kind, _limits(found, scale)
    )


def quantized_convolution(found: Found) -> Any:
    (x, zero_x), (weight, zero_w) = (
        _quantized(found, a, b) for a, b in (("x", "zx_"), ("w", "zw_"))
    )
    value = found.attributes("c")
    step = Step("Conv", "", found.opset, (x, weight), value)
    scales, shift = _scales(found, 0), _shift(found, _result(found)[0])
    if shift is not None:
        if shift.shape != weight.shape[:1]:
            raise UnsuitedError("a bias of another shape")
        shift = _of_channels(shift, x.ndim)
    sums = _sums(step, x, weight, (np.asarray(zero_x), np.asarray(zero_w)))
    return _finished(found, sums, _of_channels(scales, x.ndim), shift)


def quantized_gemm(found: Found) -> Any:
    arguments = found.attributes("g")
    if (
        arguments.get("transA", 0)
        or arguments.get("alpha", 1.0) != 1
        or arguments.get("beta", 1.0) != 1
    ):
        raise UnsuitedError("a product with factors")
    return _multiplied(found, bool(arguments.get("transB", 0)))


def quantized_product(found: Found) -> Any:
    return _multiplied(found, False)


def _multiplied(found: Found, is_turned: bool) -> Any:
    (x, zero_x), (weight, zero_w) = (
        _quantized(found, a, b) for a, b in (("x", "zx_"), ("w", "zw_"))
    )
    if x.ndim < 2 or weight.ndim != 2:
        raise UnsuitedError("no matrices")
    scales = _scales(found, 0 if is_turned else 1)
    columns = weight.T if is_turned else weight
    shift = _shift(found, _result(found)[0])
    if (
        shift is not None
        and np.broadcast_shapes(shift.shape, columns.shape[1:]) != columns.shape[1:]
    ):
        raise UnsuitedError("a bias of another shape")
    sums = product(integers(x, np.asarray(zero_x)), _integers_of(columns, zero_w))
    return _finished(found, sums, scales, shift)


def _integers_of(weight: Any, zero: int) -> Integers:
    return integers(weight, np.asarray(zero))


def product_of_weight(found: Found) -> Any:
    """A product of floats by a weight that DequantizeLinear makes of few bits, which stay so."""
    return few_bits_product(found.values["x"], _few_bits(found, False))


def gemm_of_weight(found: Found) -> Any:
    """The same as Gemm has it, with a bias or without."""
    arguments = found.attributes("g")
    if (
        arguments.get("transA", 0)
        or arguments.get("alpha", 1.0) != 1
        or arguments.get("beta", 1.0) != 1
    ):
        raise UnsuitedError("a product with factors")
    made = few_bits_product(found.values["x"], _few_bits(found, bool(arguments.get("transB", 0))))
    bias = found.values.get("c_")
    return made if bias is None else ours.add(made, bias)


def _few_bits(found: Found, is_turned: bool) -> FewBits:
    """The weight of a product as it is in memory."""
    x, own, scales = (found.values[name] for name in ("x", "w", "sw"))
    zeros, arguments = found.values.get("zw_"), found.attributes("dw")
    if isinstance(scales, TracedArray) or isinstance(zeros, TracedArray):
        raise UnsuitedError("scales that are computed")
    kind = np.dtype(x.dtype)
    if x.ndim < 2 or own.ndim != 2 or kind.name not in ("float32", "float16", "bfloat16"):
        raise UnsuitedError("no matrices of floats")
    if (
        arguments.get("output_dtype", 0)
        or scales.dtype != kind
        or x.shape[-1] != own.shape[is_turned]
    ):
        raise UnsuitedError("a product of other numbers")
    axis, block = arguments.get("axis", 1) % 2, arguments.get("block_size", 0)
    numbers = [None if one is None else np.asarray(one) for one in (scales, zeros)]
    turned: list[Any] = [one.T if is_turned and one is not None else one for one in (own, *numbers)]
    weight = kept(
        own, ("scales", axis, block, is_turned, id(scales)),
        lambda: of_scales(turned[0], turned[1], turned[2], axis ^ is_turned, block),
    )  # fmt: skip
    if weight is None:
        raise UnsuitedError("a weight of another kind")
    return weight
