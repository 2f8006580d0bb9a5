"""Numbers of few bits, whose dtypes plans do not have: float8, float4, and integers of two and four bits.

Inside a plan their bytes are carried as uint8, and NumPy makes and reads them. Where something else reads
them, the node that makes them runs by itself, between two plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aclnn.acl import dtypes
from aclnn.onnx.numpy_forms import as_step
from aclnn.onnx.steps import Step, dtype_of, from_start
from aclnn.tracing.array import TracedArray

_SATURATED = frozenset(["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
# What moves elements and reads none, by its first input.
_MOVES = frozenset(
    [
        "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Slice", "Gather",
        "Tile", "DepthToSpace", "SpaceToDepth",
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Carried:
    """A traced array of a dtype that plans do not have.

    Attributes
    ----------
    raw : TracedArray
        Its bytes.
    dtype : numpy.dtype
    place : int
        Of the node that made it.
    """

    raw: TracedArray
    dtype: np.dtype
    place: int

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.raw.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)


def is_narrow(dtype: Any) -> bool:
    """Whether a dtype of numbers is one that plans do not have.

    >>> import ml_dtypes
    >>> is_narrow(ml_dtypes.int4), is_narrow(np.int8), is_narrow(np.object_)
    (True, False, False)
    """
    kind = np.dtype(dtype)
    return kind.itemsize == 1 and not dtypes.is_known(kind)


def wanted_dtype(step: Step) -> np.dtype | None:
    """The dtype that a node casts or quantises to; None for other operators."""
    if step.kind == "Cast":
        return dtype_of(step.required("to"))
    if step.kind == "CastLike":
        return np.dtype(step.inputs[1].dtype)
    if step.kind == "QuantizeLinear":
        zero, to = step.given(2), step.attribute("output_dtype", 0)
        return np.dtype(zero.dtype) if zero is not None else dtype_of(to) if to else None
    return None


def narrow_results(
    step: Step, index: int, moved: Callable[[Step], Any]
) -> tuple[Any, ...] | None:  # fmt: skip
    """The result of a node that makes or reads numbers of few bits; None where that is not done in a plan.

    Parameters
    ----------
    step : Step
    index : int
        Of the node in its graph.
    moved : callable
        The form of operators that only move elements.
    """
    first = step.inputs[0]
    if isinstance(first, Carried) and step.kind in _MOVES:
        made = moved(replace(step, inputs=(first.raw, *step.inputs[1:])))
        return (Carried(made, first.dtype, index),)
    function = ON_ARRAYS.get(step.kind)
    if function is None:
        return None
    to = wanted_dtype(step)
    if step.kind == "DequantizeLinear":
        to = (
            dtype_of(step.attribute("output_dtype", 0))
            if step.attribute("output_dtype", 0)
            else None
        )
        to = np.dtype(step.inputs[1].dtype) if to is None else to
    assert to is not None
    # Of CastLike's second input and of zeros, which are constants, only what they are counts.
    operands = [step.inputs[0]] if step.kind == "CastLike" else list(step.inputs)
    arguments = [one.raw if isinstance(one, Carried) else one for one in operands]
    kinds = [one.dtype if isinstance(one, Carried) else None for one in operands]
    is_narrow_result = is_narrow(to)

    def run(*arrays: Any) -> np.ndarray:
        read = [
            one if kind is None else one.view(kind) for one, kind in zip(arrays, kinds, strict=True)
        ]
        rest = step.inputs[len(read) :]
        found = function(replace(step, inputs=(*read, *rest)), to)
        return found.view(np.uint8) if is_narrow_result else found

    if not any(isinstance(one, TracedArray) for one in arguments):
        return None
    made = as_step(step, run, arguments, first.shape, np.uint8 if is_narrow_result else to)
    return (Carried(made, to, index) if is_narrow_result else made,)


# --- On arrays --------------------------------------------------------------------------------------


def _cast(step: Step, to: np.dtype) -> np.ndarray:
    return cast(
        step.inputs[0], to, bool(step.attribute("saturate", 1)), step.attribute("round_mode", "up")
    )


def cast(x: np.ndarray, to: np.dtype, saturate: bool = True, round_mode: str = "up") -> np.ndarray:
    """Numbers in another dtype, as the standard's Cast has them."""
    import onnx

    if to.name == "float8_e8m0fnu":
        return np.asarray(onnx.numpy_helper.to_float8e8m0(x, saturate, round_mode)).astype(to)
    if to.name in _SATURATED and saturate:
        return np.asarray(onnx.numpy_helper.saturate_cast(x, to))
    return x.astype(to)


def _spread(array: Any, shape: Sequence[int], axis: int, block: int) -> Any:
    """Numbers of quantisation for each element: of a tensor, of an axis, or of blocks of it."""
    if array is None or array.ndim == 0 or array.shape == (1,):
        return array if array is None else array.reshape(())
    if array.ndim == 1:
        return array.reshape([-1 if n == axis else 1 for n in range(len(shape))])
    return np.repeat(array, block, axis)[(*[slice(None)] * axis, slice(0, shape[axis]))]


def _numbers(step: Step) -> tuple[np.ndarray, Any, Any]:
    """An array, its scales and its zeros, where there are any."""
    x, scale, zero = step.inputs[0], step.inputs[1], step.given(2)
    axis = from_start(step.attribute("axis", 1), x.ndim) if scale.ndim and scale.size > 1 else 0
    block = step.attribute("block_size", 0)
    if scale.ndim > 1 and not block:
        raise step.refused("it has neither an axis nor blocks for its scales")
    scale, zero = (_spread(one, x.shape, axis, block) for one in (scale, zero))
    return x, scale, zero


def _quantized(step: Step, to: np.dtype) -> np.ndarray:
    import ml_dtypes

    x, scale, zero = _numbers(step)
    precision = step.attribute("precision", 0)
    kind = dtype_of(precision) if precision else scale.dtype
    made = x.astype(kind) / scale.astype(kind)
    if to.name.startswith("float"):
        if zero is not None and to.name not in _SATURATED:
            made = made + zero.astype(made.dtype)
        return cast(made, to, bool(step.attribute("saturate", 1)))
    limits = ml_dtypes.iinfo(to) if is_narrow(to) else np.iinfo(to)
    whole = np.rint(made.astype(np.float64))
    if zero is not None:
        whole = whole + zero.astype(np.float64)
    # NumPy casts to integers of few bits from whole numbers alone.
    return np.clip(whole, int(limits.min), int(limits.max)).astype(np.int32).astype(to)


def _dequantized(step: Step, to: np.dtype) -> np.ndarray:
    x, scale, zero = _numbers(step)
    wide = x.astype(np.float32)
    if zero is not None and x.dtype.name not in _SATURATED:
        wide = wide - zero.astype(np.float32)
    return (wide * scale.astype(np.float32)).astype(to)


ON_ARRAYS: dict[str, Callable[[Step, np.dtype], np.ndarray]] = {
    "Cast": _cast,
    "CastLike": _cast,
    "QuantizeLinear": _quantized,
    "DequantizeLinear": _dequantized,
}


def on_arrays(step: Step) -> tuple[np.ndarray, ...] | None:
    """The result of a node on arrays, one of which has few bits; None for operators that others do."""
    function, to = ON_ARRAYS.get(step.kind), wanted_dtype(step)
    if function is None or any(
        one is not None and not hasattr(one, "dtype") for one in step.inputs
    ):
        return None
    if step.kind == "DequantizeLinear":
        number = step.attribute("output_dtype", 0)
        to = dtype_of(number) if number else np.dtype(step.inputs[1].dtype)
    every = [to, *[one.dtype for one in step.inputs if one is not None]]
    if to is None or any(np.dtype(one).kind in "OSU" for one in every if one is not None):
        return None
    return (function(step, to),)
