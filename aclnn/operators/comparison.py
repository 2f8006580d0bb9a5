"""Comparisons with a tensor or a scalar, maximum, minimum and where."""

from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    NUMERIC,
    REAL,
    Call,
    at_most_8_dims,
    broadcast_shape,
    broadcast_shapes,
    broadcasts,
    convertible_scalars,
    dtype_among,
    promoted,
    promoted_with_number,
    promotes,
    promotes_with_number,
    result_castable,
    same_shape,
)
from aclnn.operators.declaration import REQUIRED, Attribute, Operator, entry
from aclnn.operators.lowering import (
    Lowering,
    graph_dtype,
    operands_as,
    reads_of,
)

_BOTH = ("input", "other")
_OTHER = Attribute("other", REQUIRED, keyword_only=False, doc="A number.", facts=("dtype",))


def _truth(_: Call) -> aclDataType:
    return aclDataType.ACL_BOOL


def _infer(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    shape = broadcast_shapes(*(call.shape(role) for role in _BOTH if role in call.tensors))
    assert shape is not None, "a rule of every operator sees to it that the inputs broadcast"
    return {"out": (aclDataType.ACL_BOOL, shape)}


def _lower(formula: str, expression: str) -> Callable[[Lowering], Mapping[str, int]]:
    """The nodes of a comparison: operands are promoted, and compared in what holds that dtype."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        call, (result, shape) = lowering.call, lowering.results["out"]
        if "other" in call.tensors:
            dtype = promoted(call, _BOTH)
            assert dtype is not None
            operands = operands_as(lowering, _BOTH, dtype, shape)
        else:
            dtype = promoted_with_number(call, "input", "other")
            assert dtype is not None
            operands = [
                *operands_as(lowering, ("input",), dtype, shape),
                _filled(lowering, dtype, shape),
            ]
        made = lowering.point(
            formula, operands, result, shape, reads=reads_of(dtype), expression=expression
        )
        return {"out": made}

    return lower


def _filled(lowering: Lowering, dtype: aclDataType, shape: tuple[int, ...]) -> int:
    """The number `other`, rounded to the dtype of what it is compared with."""
    return lowering.point("fill", (), dtype, shape, params=lowering.params(("other",), dtype))


def _comparison(
    name: str, sign: str, words: str, found: str, dtypes: tuple[aclDataType, ...] = REAL
) -> tuple[Operator, Operator]:
    """A comparison of two tensors, and that of a tensor and a number.

    `found` is what it finds of 1, 2 and 3 beside 2.
    """
    expression = f"input {sign} other"
    cann = name.capitalize()
    of_tensors = Operator(
        name=name,
        elementwise=True,
        summary=f"Whether elements {words}.",
        expression=expression,
        infer=_infer,
        lower=_lower(name, expression),
        inputs=_BOTH,
        number_form=("other", f"{name}_scalar"),
        numbers=("other",),
        entries=(entry(f"aclnn{cann}Tensor", "self=input other out:out"),),
        rules=(
            dtype_among("input", dtypes),
            dtype_among("other", dtypes),
            promotes(_BOTH, dtypes),
            result_castable(_truth),
            at_most_8_dims(*_BOTH),
            broadcasts(*_BOTH),
            broadcast_shape("out", _BOTH),
        ),
        example=(f"{name}(np.float32([1, 2, 3]), np.float32([2, 2, 2]))", f"array([{found}])"),
    )
    of_number = Operator(
        name=f"{name}_scalar",
        elementwise=True,
        functional=False,
        summary=f"Whether elements {words}, which is a number.",
        expression=expression,
        notes="The number is first rounded to the dtype in which it is compared.",
        infer=_infer,
        lower=_lower(name, expression),
        inputs=("input",),
        attributes=(_OTHER,),
        entries=(entry(f"aclnn{cann}Scalar", "self=input other:scalar out:out"),),
        rules=(
            dtype_among("input", dtypes),
            *(() if aclDataType.ACL_COMPLEX64 in dtypes else (convertible_scalars("other"),)),
            promotes_with_number("input", "other"),
            result_castable(_truth),
            at_most_8_dims("input"),
            same_shape("out", "input"),
        ),
        example=(f"{name}_scalar(np.float32([1, 2, 3]), 2)", f"array([{found}])"),
        seealso=(name,),
    )
    return of_tensors, of_number


eq, eq_scalar = _comparison(
    "eq", "=", "equal those of another tensor", "False,  True, False", NUMERIC
)
ne, ne_scalar = _comparison(
    "ne", "≠", "differ from those of another tensor", " True, False,  True", NUMERIC
)
lt, lt_scalar = _comparison(
    "lt", "<", "are less than those of another tensor", " True, False, False"
)
le, le_scalar = _comparison("le", "≤", "are at most those of another tensor", " True,  True, False")
gt, gt_scalar = _comparison(
    "gt", ">", "are greater than those of another tensor", "False, False,  True"
)
ge, ge_scalar = _comparison(
    "ge", "≥", "are at least those of another tensor", "False,  True,  True"
)

_EXTREMUM_RULES = (
    dtype_among("input", REAL),
    dtype_among("other", REAL),
    promotes(_BOTH, REAL),
    result_castable(lambda call: promoted(call, _BOTH)),
    at_most_8_dims(*_BOTH),
    broadcasts(*_BOTH),
    broadcast_shape("out", _BOTH),
)

maximum = Operator(
    name="maximum",
    summary="The larger of two elements.",
    expression="max(input, other)",
    notes="A NaN in either gives NaN.",
    formula="maximum",
    inputs=_BOTH,
    entries=(entry("aclnnMaximum", "self=input other out:out"),),
    rules=_EXTREMUM_RULES,
    example=(
        "maximum(np.float32([1, 4]), np.float32([3, 2]))",
        "array([3., 4.], dtype=float32)",
    ),
    seealso=("minimum",),
    gradient={
        "input": "where(eq(input, other), grad / 2, where(lt(input, other), 0, grad))",
        "other": "where(eq(input, other), grad / 2, where(gt(input, other), 0, grad))",
    },
)

minimum = Operator(
    name="minimum",
    summary="The smaller of two elements.",
    expression="min(input, other)",
    notes="A NaN in either gives NaN.",
    formula="minimum",
    inputs=_BOTH,
    entries=(entry("aclnnMinimum", "self=input other out:out"),),
    rules=_EXTREMUM_RULES,
    example=(
        "minimum(np.float32([1, 4]), np.float32([3, 2]))",
        "array([1., 2.], dtype=float32)",
    ),
    seealso=("maximum",),
    gradient={
        "input": "where(eq(input, other), grad / 2, where(gt(input, other), 0, grad))",
        "other": "where(eq(input, other), grad / 2, where(lt(input, other), 0, grad))",
    },
)

_THREE = ("condition", *_BOTH)


def _infer_where(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    shape = broadcast_shapes(*(call.shape(role) for role in _THREE))
    assert shape is not None, "a rule sees to it that the inputs broadcast"
    return {"out": (promoted(call, _BOTH), shape)}


def _lower_where(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    operands = [lowering.dense("condition", None, shape)]
    operands += [lowering.dense(role, dtype, shape) for role in _BOTH]
    made = lowering.point(
        "where",
        operands,
        dtype,
        shape,
        reads=graph_dtype(dtype).name,
        expression="condition: input; else other",
    )
    return {"out": made}


where = Operator(
    name="where",
    elementwise=True,
    summary="Elements of one tensor where a condition holds, of another where it does not.",
    expression="condition: input; else other",
    notes=(
        "Elements keep their bits; of a UINT8 condition everything but 0 holds. A number does not "
        "promote a tensor of its kind: whole, floating or complex."
    ),
    infer=_infer_where,
    lower=_lower_where,
    inputs=_THREE,
    numbers=_BOTH,
    unlike={"condition": {"dtype": aclDataType.ACL_BOOL}},
    entries=(entry("aclnnSWhere", "condition self=input other out:out"),),
    rules=(
        dtype_among("condition", (aclDataType.ACL_BOOL, aclDataType.ACL_UINT8)),
        dtype_among("input", NUMERIC),
        dtype_among("other", NUMERIC),
        promotes(_BOTH, NUMERIC),
        result_castable(lambda call: promoted(call, _BOTH)),
        at_most_8_dims(*_THREE),
        broadcasts(*_THREE),
        broadcast_shape("out", _THREE),
    ),
    example=(
        "where(np.bool_([True, False]), np.float32([1, 2]), np.float32([3, 4]))",
        "array([1., 4.], dtype=float32)",
    ),
    gradient={"input": "where(condition, grad, 0)", "other": "where(condition, 0, grad)"},
)
