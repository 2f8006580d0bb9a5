"""Sums with products of two tensors: addcmul and lerp."""

from collections.abc import Mapping
from typing import Any

from aclnn.operators.checks import (
    FLOATING,
    FLOATING_AND_DOUBLE,
    INTEGERS,
    Rule,
    at_most_8_dims,
    at_most_8_dims_unless_contiguous,
    broadcast_shape,
    broadcast_shapes,
    broadcasts,
    castable,
    dtype_among,
    in_place,
    promoted,
    same_dtype,
)
from aclnn.operators.declaration import REQUIRED, Attribute, Operator, argument, entry
from aclnn.operators.words import require


def _on_tensors(
    name: str,
    formula: str,
    inputs: tuple[str, ...],
    signature: str,
    dtypes: tuple[Rule, ...],
    few_dims: Rule,
    formats: tuple[Rule, ...] = (),
    **more: Any,
) -> Operator:
    """An operator whose tensors broadcast, with its form in place."""

    def infer(call: Any) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
        shape = broadcast_shapes(*[call.shape(role) for role in inputs])
        assert shape is not None, "a rule sees to it that the inputs broadcast"
        return {"out": (promoted(call, inputs), shape)}

    shapes = (broadcasts(*inputs), broadcast_shape("out", inputs))
    cann = name.capitalize()
    return Operator(
        name=name,
        in_place=f"{name}_" if more.get("functional", True) else None,
        formula=formula,
        infer=infer,
        inputs=inputs,
        scalars_as_double=True,
        entries=(
            entry(f"aclnn{cann}", f"self=input {signature} out:out"),
            entry(f"aclnnInplace{cann}", f"selfRef=input:inout {signature}"),
        ),
        rules=(
            *[in_place(rule) for rule in shapes],
            *dtypes,
            castable(inputs),
            *formats,
            few_dims,
            *shapes,
        ),
        **more,
    )


_ADDED = (*FLOATING_AND_DOUBLE, *INTEGERS)
_PRODUCT = ("input", "tensor1", "tensor2")

addcmul = _on_tensors(
    "addcmul",
    "addcmul",
    _PRODUCT,
    "tensor1 tensor2 value:scalar",
    (
        *[dtype_among(role, _ADDED) for role in _PRODUCT],
        *require("input, tensor1, tensor2: promote to FLOATING_AND_DOUBLE INTEGERS"),
        *require("value: numbers"),
    ),
    at_most_8_dims(*_PRODUCT),
    require("input, tensor1, tensor2, out: plain format"),
    summary="Sum with a product of two tensors, with a factor for that.",
    expression="input + value·tensor1·tensor2",
    notes=(
        "Rounded once. The factor takes part as float32, with float64 tensors as float64, with "
        "tensors of integers as an integer; results of integers wrap around."
    ),
    attributes=(Attribute("value", 1, doc="Factor of the product."),),
    example=(
        "addcmul(np.float32([1, 2]), np.float32([2, 2]), np.float32([3, 4]), value=10)",
        "array([61., 82.], dtype=float32)",
    ),
    gradient={
        "input": "grad",
        "tensor1": "grad * (tensor2 * value)",
        "tensor2": "grad * (tensor1 * value)",
    },
)


def _of_floats(*inputs: str) -> tuple[Rule, ...]:
    first, *others = inputs
    return (
        dtype_among(first, FLOATING),
        *[same_dtype(role, first) for role in others],
    )


def _few_dims(*inputs: str) -> Rule:
    return at_most_8_dims_unless_contiguous(inputs, (*inputs, "out"))


_LERP = "The exact value, rounded once; the weight may be any."

lerp = _on_tensors(
    "lerp",
    "lerp",
    ("input", "end", "weight"),
    "end weight",
    (*_of_floats("input", "end", "weight"), *require("cann out: dtype of input")),
    _few_dims("input", "end", "weight"),
    any_rank=True,
    summary="Interpolation between two tensors.",
    expression="input + weight·(end - input)",
    notes=_LERP,
    number_form=("weight", "lerps"),
    example=(
        "lerp(np.float32([1, 2]), np.float32([3, 4]), np.float32([0.5, 2]))",
        "array([2., 6.], dtype=float32)",
    ),
    gradient={
        "input": "grad * (1 - weight)",
        "end": "grad * weight",
        "weight": "grad * (end - input)",
    },
)

lerps = _on_tensors(
    "lerps",
    "lerps",
    ("input", "end"),
    "end weight:scalar",
    (
        *_of_floats("input", "end"),
        *require("cann out: FLOATING_AND_DOUBLE; weight: numbers"),
    ),
    _few_dims("input", "end"),
    any_rank=True,
    functional=False,
    summary="Interpolation between two tensors, with a number as the weight.",
    expression="input + weight·(end - input)",
    notes=f"{_LERP} It takes part as float32.",
    attributes=(argument("weight", REQUIRED, "scalar", "A number."),),
    example=(
        "lerps(np.float32([1, 2]), np.float32([3, 4]), 0.5)",
        "array([2., 3.], dtype=float32)",
    ),
    seealso=("lerp",),
)
