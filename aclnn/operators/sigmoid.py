"""Sigmoid, hyperbolic tangent and SiLU."""

from collections.abc import Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    FLOATING,
    FLOATING_AND_DOUBLE,
    INTEGERS,
    REAL,
    Call,
    at_most_8_dims,
    dtype_among,
    in_place,
    plain_format,
    result_castable,
    same_dtype,
    same_shape,
)
from aclnn.operators.declaration import Operator, entry
from aclnn.operators.elementwise import floating, infer_floating


def _infer_sigmoid(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    """Integers are computed in the dtype of the output."""
    whole = call.dtype("input") in (*INTEGERS, aclDataType.ACL_BOOL)
    if whole and "out" in call.tensors:
        return {"out": (call.dtype("out"), call.shape("input"))}
    return infer_floating(call)


sigmoid = Operator(
    name="sigmoid",
    in_place="sigmoid_",
    summary="Logistic function.",
    expression="1/(1 + exp(-input))",
    notes=(
        "Integers and BOOL are computed in the output's dtype, float32 where it is made. Complex "
        "inputs, which CANN takes, are refused."
    ),
    formula="sigmoid",
    infer=_infer_sigmoid,
    inputs=("input",),
    entries=(
        entry("aclnnSigmoid", "self=input out:out"),
        entry("aclnnInplaceSigmoid", "selfRef=input:inout"),
    ),
    rules=(
        in_place(dtype_among("input", FLOATING_AND_DOUBLE)),
        dtype_among("input", REAL),
        dtype_among("out", FLOATING_AND_DOUBLE),
        same_shape("out", "input"),
        at_most_8_dims("input"),
    ),
    example=("sigmoid(np.float32([0, 1]))", "array([0.5      , 0.7310586], dtype=float32)"),
)

_TANH = (*FLOATING, *INTEGERS, aclDataType.ACL_BOOL)

tanh = Operator(
    name="tanh",
    in_place="tanh_",
    summary="Hyperbolic tangent.",
    expression="tanh(input)",
    notes="Integers and BOOL are computed as float32.",
    formula="tanh",
    infer=infer_floating,
    inputs=("input",),
    entries=(
        entry("aclnnTanh", "self=input out:out"),
        entry("aclnnInplaceTanh", "selfRef=input:inout"),
    ),
    rules=(
        in_place(dtype_among("input")),
        dtype_among("input", _TANH),
        dtype_among("out", _TANH),
        result_castable(floating),
        plain_format("out", "input"),
        at_most_8_dims("input", "out"),
        same_shape("out", "input"),
    ),
    example=("tanh(np.float32([0, 1]))", "array([0.       , 0.7615942], dtype=float32)"),
)

silu = Operator(
    name="silu",
    summary="Sigmoid linear unit.",
    expression="input/(1 + exp(-input))",
    notes="-Inf gives NaN, as the formula does.",
    formula="silu",
    any_rank=True,
    inputs=("input",),
    entries=(entry("aclnnSilu", "self=input out:out"),),
    rules=(
        dtype_among("input"),
        same_dtype("out", "input"),
        same_shape("out", "input"),
    ),
    example=("silu(np.float32([0, 1]))", "array([0.       , 0.7310586], dtype=float32)"),
)
