"""Powers of tensors, and of a tensor and a scalar."""

from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    INTEGERS,
    REAL,
    Call,
    at_most_8_dims,
    broadcast_shape,
    broadcast_shapes,
    broadcasts,
    dtype_among,
    in_place,
    promoted,
    promoted_with_number,
    result_castable,
    rule,
)
from aclnn.operators.declaration import REQUIRED, Operator, argument, entry
from aclnn.operators.lowering import Lowering, operands_as
from aclnn.operators.words import require

_TO = ("input", "exponent")
_NOTES = (
    "Powers of integers wrap around; a negative exponent gives 0, except for 1 and -1. A number as "
    "the exponent takes part as float32, with float64 tensors as float64; so does one as the base "
    "in the C-shaped function, while `pow` makes an array of it that has the exponent's dtype. "
    "Complex operands, which CANN takes, are refused."
)


def _promoted(call: Call) -> aclDataType | None:
    """A number with a tensor counts as everywhere."""
    if "exponent" in call.scalars:
        return promoted_with_number(call, "input", "exponent")
    if "input" in call.scalars:
        return promoted_with_number(call, "exponent", "input")
    return promoted(call, _TO)


def _infer(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    shape = broadcast_shapes(*[call.shape(role) for role in call.given(_TO)])
    assert shape is not None, "a rule sees to it that the inputs broadcast"
    return {"out": (_promoted(call), shape)}


def _lower(formula: str) -> Callable[[Lowering], Mapping[str, int]]:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        call = lowering.call
        operands = operands_as(lowering, call.given(_TO), dtype, shape)
        params = lowering.params([role for role in _TO if role in call.scalars], dtype)
        return {"out": lowering.point(formula, operands, dtype, shape, params=params)}

    return lower


@rule("`input` and `exponent` are not both BOOL", *_TO)
def _not_both_truth(call: Call) -> str | None:
    if _promoted(call) != aclDataType.ACL_BOOL:
        return None
    return f"{call.names['input']} and {call.names['exponent']} are both BOOL"


@rule("for integers `exponent` is not negative", *_TO)
def _whole_results(call: Call) -> str | None:
    exponent = call.scalars["exponent"]
    if _promoted(call) not in INTEGERS or not exponent.negative:
        return None
    return f"{call.names['exponent']} is {exponent.text}, must not be negative for integers"


def _power(name: str, formula: str, *items: tuple[str, str], **more: Any) -> Operator:
    """A power, whose functions have these signatures, and whose other checks are `rules`."""
    inputs, rules = more.pop("inputs"), more.pop("rules", ())
    return Operator(
        name=name,
        expression="input^exponent",
        notes=_NOTES,
        lower=_lower(formula),
        inputs=inputs,
        entries=tuple([entry(*item) for item in items]),
        rules=(
            *[in_place(rule) for rule in (broadcasts(*inputs), broadcast_shape("out", inputs))],
            *[dtype_among(role, REAL) for role in inputs],
            *rules,
            _not_both_truth(),
            result_castable(_promoted),
            at_most_8_dims(*inputs),
            broadcasts(*inputs),
            broadcast_shape("out", inputs),
        ),
        domain=(0.0, 4.0),
        **more,
    )


pow = _power(
    "pow",
    "pow",
    ("aclnnPowTensorTensor", "self=input exponent out:out"),
    ("aclnnInplacePowTensorTensor", "selfRef=input:inout exponent"),
    inputs=_TO,
    in_place="pow_",
    summary="Power.",
    number_form=("exponent", "pow_tensor_scalar"),
    numbers=_TO,
    example=("pow(np.float32([2, 3]), np.float32([3, 2]))", "array([8., 9.], dtype=float32)"),
    gradient={
        "input": "gradient_of_base(grad, input, exponent)",
        "exponent": "gradient_of_exponent(grad, input, exponent, out)",
    },
    elementwise=True,
)

pow_tensor_scalar = _power(
    "pow_tensor_scalar",
    "pows",
    ("aclnnPowTensorScalar", "self=input exponent:scalar out:out"),
    ("aclnnInplacePowTensorScalar", "self=input:inout exponent:scalar"),
    inputs=("input",),
    functional=False,
    summary="Power of a tensor and a number.",
    attributes=(argument("exponent", REQUIRED, "scalar", "A number.", facts=("dtype",)),),
    rules=(*require("exponent: numbers"), _whole_results()),
    example=("pow_tensor_scalar(np.float32([2, 3]), 3)", "array([ 8., 27.], dtype=float32)"),
    seealso=("pow",),
    elementwise=True,
)

pow_scalar_tensor = _power(
    "pow_scalar_tensor",
    "rpows",
    ("aclnnPowScalarTensor", "self=input:scalar exponent out:out"),
    inputs=("exponent",),
    functional=False,
    form_of="pow",
    summary="Power of a number and a tensor.",
    attributes=(argument("input", REQUIRED, "scalar", "A number.", facts=("dtype",)),),
    parameters=("input", "exponent"),
    rules=require("input: numbers"),
    example=("pow_scalar_tensor(2, np.float32([2, 3]))", "array([4., 8.], dtype=float32)"),
    seealso=("pow",),
    elementwise=True,
)
