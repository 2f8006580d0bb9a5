"""Negation, exponential and square root."""

from collections.abc import Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    COMPLEX,
    FLOATING_AND_DOUBLE,
    INTEGERS,
    REAL,
    Call,
    at_most_8_dims,
    dtype_among,
    in_place,
    promoted,
    result_castable,
    same_shape,
)
from aclnn.operators.declaration import Operator, entry

_NOT_FLOATING = (*INTEGERS, aclDataType.ACL_BOOL)


def floating(call: Call) -> aclDataType | None:
    """The dtype of the input, but float32 for integers and truth values."""
    dtype = promoted(call, ("input",))
    return aclDataType.ACL_FLOAT if dtype in _NOT_FLOATING else dtype


def infer_floating(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    return {"out": (floating(call), call.shape("input"))}


neg = Operator(
    name="neg",
    in_place="neg_",
    summary="Negation.",
    expression="-input",
    notes="The least integer stays what it is.",
    formula="neg",
    inputs=("input",),
    entries=(
        entry("aclnnNeg", "self=input out:out"),
        entry("aclnnInplaceNeg", "selfRef=input:inout"),
    ),
    rules=(
        dtype_among(
            "input",
            (
                aclDataType.ACL_INT8,
                aclDataType.ACL_INT32,
                aclDataType.ACL_INT64,
                *FLOATING_AND_DOUBLE,
                *COMPLEX,
            ),
        ),
        result_castable(lambda call: promoted(call, ("input",))),
        at_most_8_dims("input", "out"),
        same_shape("out", "input"),
    ),
    example=("neg(np.float32([1, -2]))", "array([-1.,  2.], dtype=float32)"),
    gradient={"input": "-grad"},
)

_EXP = (*FLOATING_AND_DOUBLE, *COMPLEX, aclDataType.ACL_BOOL, aclDataType.ACL_INT64)

exp = Operator(
    name="exp",
    in_place="exp_",
    summary="Exponential.",
    expression="exp(input)",
    notes="INT64 and BOOL are computed as float32.",
    formula="exp",
    infer=infer_floating,
    inputs=("input",),
    entries=(
        entry("aclnnExp", "self=input out:out"),
        entry("aclnnInplaceExp", "selfRef=input:inout"),
    ),
    rules=(
        in_place(dtype_among("input", (*FLOATING_AND_DOUBLE, *COMPLEX))),
        dtype_among("input", _EXP),
        result_castable(floating),
        at_most_8_dims("input", "out"),
        same_shape("out", "input"),
    ),
    example=("exp(np.float32([0, 1]))", "array([1.       , 2.7182817], dtype=float32)"),
    gradient={"input": "grad * conj(out)"},
)

sqrt = Operator(
    name="sqrt",
    in_place="sqrt_",
    summary="Square root.",
    expression="√input",
    notes=(
        "NaN below zero. Integers and BOOL are computed as float32. Complex inputs, which CANN takes, "
        "are refused."
    ),
    formula="sqrt",
    infer=infer_floating,
    inputs=("input",),
    entries=(
        entry("aclnnSqrt", "self=input out:out"),
        entry("aclnnInplaceSqrt", "selfRef=input:inout"),
    ),
    rules=(
        in_place(dtype_among("input", FLOATING_AND_DOUBLE)),
        dtype_among("input", REAL),
        dtype_among("out", (*FLOATING_AND_DOUBLE, *COMPLEX)),
        result_castable(floating),
        at_most_8_dims("input", "out"),
        same_shape("out", "input"),
    ),
    domain=(0.0, 4.0),
    example=("sqrt(np.float32([4, 9]))", "array([2., 3.], dtype=float32)"),
    gradient={"input": "grad / (2 * conj(out))"},
)
