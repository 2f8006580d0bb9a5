"""Quotients rounded down, and what they leave."""

from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    FLOATING_AND_DOUBLE,
    NUMERIC,
    REAL,
    Call,
    Rule,
    broadcast_shape,
    broadcast_shapes,
    broadcasts,
    dtype_among,
    in_place,
    of_cann,
    promoted,
    promoted_with_number,
    promotes_with_number,
    result_castable,
    rule,
)
from aclnn.operators.declaration import REQUIRED, Operator, argument, entry
from aclnn.operators.lowering import Lowering, reads_of
from aclnn.operators.pointwise import BOTH, only_on, with_number
from aclnn.operators.words import require

_LEFT = (
    *FLOATING_AND_DOUBLE,
    aclDataType.ACL_INT32,
    aclDataType.ACL_INT64,
)
_DIVIDED = (
    *FLOATING_AND_DOUBLE,
    aclDataType.ACL_INT8,
    aclDataType.ACL_INT32,
    aclDataType.ACL_INT64,
    aclDataType.ACL_UINT8,
)
Result = Callable[[Call], aclDataType | None]


def _beside(call: Call) -> aclDataType | None:
    """Dtype of a tensor and a number: what both promote to, as C-shaped calls have it, or as PyTorch."""
    role, number = ("input", "other") if "other" in call.scalars else ("other", "input")
    if call.c_shaped and call.soc != "Ascend950":
        return dtypes.promote(call.dtype(role), call.scalars[number].dtype)
    return promoted_with_number(call, role, number)


def _quotient_dtype(call: Call) -> aclDataType | None:
    """Bools are divided as float32 by CANN's function."""
    both = promoted(call, BOTH) if not call.scalars else _beside(call)
    return aclDataType.ACL_FLOAT if both == aclDataType.ACL_BOOL else both


def _remainder_dtype(call: Call) -> aclDataType | None:
    if not call.scalars:
        return promoted(call, BOTH)
    if "other" in call.scalars:
        return promoted_with_number(call, "input", "other")
    if call.c_shaped and call.soc != "Ascend950" and "out" in call.tensors:
        return call.dtype("out")
    return promoted_with_number(call, "other", "input")


def _infer(result: Result) -> Callable[[Call], Mapping[str, tuple[Any, tuple[int, ...]]]]:
    def infer(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
        shape = broadcast_shapes(*[call.shape(role) for role in call.given(BOTH)])
        assert shape is not None, "a rule sees to it that the inputs broadcast"
        return {"out": (result(call), shape)}

    return infer


def _lower(formula: str) -> Callable[[Lowering], Mapping[str, int]]:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        numbers = aclDataType.ACL_FLOAT if reads_of(dtype) == "float32" else dtype
        operands = lowering.pair(BOTH, dtype, shape, numbers=numbers)
        return {"out": lowering.point(formula, operands, dtype, shape)}

    return lower


def _result_among(result: Result, allowed: tuple[aclDataType, ...]) -> Rule:
    def test(call: Call) -> str | None:
        found = result(call)
        if found in allowed:
            return None
        return f"the operands' dtypes make {call.word(found)}, must be {call.words(allowed)}"

    names = ", ".join(map(dtypes.cann_name, allowed))
    return Rule(f"operands are computed in one of {names}", test, BOTH)


@rule("the dtypes of `input` and `other` promote", *BOTH)
def _promotes(call: Call, result: Result) -> str | None:
    return None if result(call) is not None else "the operands' dtypes do not promote"


def _family(
    name: str,
    cann: tuple[str, str],
    result: Result,
    dtype_rules: tuple[Rule, ...],
    number_rules: tuple[Rule, ...],
    found: str,
    **more: Any,
) -> tuple[Operator, Operator]:
    """The operator of two tensors, and that of a tensor and a number; `found` is what it finds of
    7 and -7 with 2."""
    own: dict[str, Any] = {key: more.pop(key) for key in ("gradient", "seealso") if key in more}
    return with_number(
        name,
        cann,
        f"{name}_scalar",
        elementwise=True,
        infer=_infer(result),
        lower=_lower(name),
        examples=(
            ("(np.float32([7, -7]), np.float32([2, 2]))", f"array([{found}], dtype=float32)"),
            ("(np.float32([7, -7]), 2)", f"array([{found}], dtype=float32)"),
        ),
        of_tensors={
            "numbers": BOTH if name == "remainder" else ("other",),
            "rules": (
                in_place(broadcasts(*BOTH)),
                in_place(broadcast_shape("out", BOTH)),
                *dtype_rules,
                *require("input, other: at most 8 dims; input, other: broadcast"),
                *require("out: broadcast of input, other"),
            ),
            **own,
        },
        of_number={"rules": number_rules},
        **more,
    )


_WIDER = only_on("Ascend950", result_castable(_quotient_dtype))
_OUT = dtype_among("out", NUMERIC)

floor_divide, floor_divide_scalar = _family(
    "floor_divide",
    ("FloorDivide", "FloorDivides"),
    _quotient_dtype,
    (
        *require("input, other: REAL; input, other: promote to REAL"),
        _OUT,
        _WIDER,
    ),
    (
        *require("input: REAL; other: numbers"),
        promotes_with_number("input", "other"),
        _OUT,
        _WIDER,
        *require("input: at most 8 dims; out: shape of input"),
    ),
    " 3., -4.",
    differentiable=False,
    summary="Quotient, rounded down.",
    expression="⌊input/other⌋",
    notes=(
        "The quotient is exact before it is rounded. Beside an infinite divisor it is 0 or -1, of an "
        "infinite dividend NaN; floats divided by 0 are infinite or NaN, integers give 0. Bools are "
        "divided as float32. The result is converted to the dtype of `out`, whatever that is."
    ),
    seealso=("div_mod", "remainder"),
)

_REMAINDER = "An exact result of 0 has the sign of the dividend. Integers divided by 0 stay."

remainder, remainder_scalar = _family(
    "remainder",
    ("RemainderTensorTensor", "RemainderTensorScalar"),
    _remainder_dtype,
    (
        _promotes(_remainder_dtype),
        result_castable(_remainder_dtype),
        of_cann(_result_among(_remainder_dtype, _LEFT)),
        _result_among(_remainder_dtype, REAL),
    ),
    (
        *require("out: shape of input; other: numbers"),
        promotes_with_number("input", "other"),
        of_cann(_result_among(_remainder_dtype, _LEFT)),
        _result_among(_remainder_dtype, REAL),
        result_castable(_remainder_dtype),
        *require("input: at most 8 dims"),
    ),
    "1., 1.",
    summary="What a quotient that is rounded down leaves.",
    expression="input - ⌊input/other⌋·other",
    notes=f"The result has the sign of the divisor. {_REMAINDER}",
    seealso=("fmod", "floor_divide"),
    gradient={"input": "grad", "other": '-grad * div_mod(input, other, "floor")'},
)

remainder_scalar_tensor = Operator(
    name="remainder_scalar_tensor",
    functional=False,
    form_of="remainder",
    elementwise=True,
    summary="What the quotient of a number and a tensor leaves.",
    expression="input - ⌊input/other⌋·other",
    notes=(
        f"The result has the sign of the divisor. {_REMAINDER} On SoCs before Ascend950 both are converted "
        "to the dtype of `out` first."
    ),
    infer=_infer(_remainder_dtype),
    lower=_lower("remainder"),
    inputs=("other",),
    attributes=(argument("input", REQUIRED, "scalar", "A number.", facts=("dtype",)),),
    parameters=("input", "other"),
    entries=(entry("aclnnRemainderScalarTensor", "self=input:scalar other out:out"),),
    rules=(
        *require("out: shape of other; input: numbers"),
        promotes_with_number("other", "input"),
        result_castable(lambda call: call.dtype("other")),
        of_cann(_result_among(_remainder_dtype, _LEFT)),
        *require("other: at most 8 dims"),
    ),
    example=(
        "remainder_scalar_tensor(7, np.float32([2, -2]))",
        "array([ 1., -1.], dtype=float32)",
    ),
    seealso=("remainder",),
)

fmod, fmod_scalar = _family(
    "fmod",
    ("FmodTensor", "FmodScalar"),
    lambda call: promoted(call, BOTH) if not call.scalars else _beside(call),
    (
        *require("cann input, other, out: FLOATING_AND_DOUBLE INT8 INT32 INT64 UINT8"),
        *require("input, other: promote to REAL"),
        *require("cann input, other: promote to FLOATING_AND_DOUBLE INT8 INT32 INT64 UINT8"),
    ),
    (
        *require("cann input, out: FLOATING_AND_DOUBLE INT8 INT32 INT64 UINT8; input: REAL"),
        *require("other: numbers"),
        promotes_with_number("input", "other"),
        of_cann(_result_among(_beside, _DIVIDED)),
        *require("input: at most 8 dims; out: shape of input"),
    ),
    " 1., -1.",
    summary="What a quotient that is rounded towards zero leaves.",
    expression="input - trunc(input/other)·other",
    notes="The result is exact, and has the sign of the dividend. Integers divided by 0 stay.",
    seealso=("remainder",),
    gradient={"input": "grad", "other": '-grad * div_mod(input, other, "trunc")'},
)
