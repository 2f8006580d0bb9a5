"""Comparisons with a tensor or a scalar, logical functions, maximum, minimum, clamp and where."""

from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl import dtypes
from aclnn.acl.constants import (
    ACLNN_ERR_INNER_TILING_ERROR,
    ACLNN_ERR_PARAM_NULLPTR,
    aclDataType,
)
from aclnn.operators.checks import (
    FLOATING,
    FLOATING_AND_DOUBLE,
    INTEGERS,
    NUMERIC,
    REAL,
    Call,
    Rule,
    answering,
    at_most_8_dims_unless_contiguous,
    broadcast_shape,
    broadcast_shapes,
    broadcasts,
    convertible_scalars,
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
from aclnn.operators.lowering import (
    Lowering,
    graph_dtype,
    reads_of,
)
from aclnn.operators.pointwise import BOTH, only_on, unless_on, with_number
from aclnn.operators.words import require, specs


def _truth(_: Call) -> aclDataType:
    return aclDataType.ACL_BOOL


def _infer(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    shape = broadcast_shapes(*(call.shape(role) for role in BOTH if role in call.tensors))
    assert shape is not None, "a rule of every operator sees to it that the inputs broadcast"
    return {"out": (aclDataType.ACL_BOOL, shape)}


_KINDS = (dtypes.BOOL, dtypes.INTEGERS, dtypes.FLOATS, dtypes.COMPLEX)


def _kind(dtype: aclDataType) -> int:
    return next(index for index, kind in enumerate(_KINDS) if dtype in kind)


def _has_number(call: Call) -> bool:
    """Whether one of two tensors counts as a number."""
    ranks = [len(call.shape(role)) for role in BOTH]
    return call.soc == "Ascend950" and bool(ranks[0]) != bool(ranks[1])


def _compared_in(call: Call) -> aclDataType | None:
    """Dtype that two tensors promote to.

    On an Ascend950 one without dimensions counts as a number with one that has some: it changes the
    dtype only if its kind is higher.
    """
    if not _has_number(call):
        return promoted(call, BOTH)
    wide, single = sorted(BOTH, key=lambda role: len(call.shape(role)), reverse=True)
    own, other = call.dtype(wide), call.dtype(single)
    if _kind(other) <= _kind(own):
        return own
    if own in dtypes.FLOATS:  # as many digits, and complex
        double = own == aclDataType.ACL_DOUBLE
        return aclDataType.ACL_COMPLEX128 if double else aclDataType.ACL_COMPLEX64
    return other if own in dtypes.LARGE_UNSIGNED else dtypes.promote(own, other)


@rule("the dtypes of `input` and `other` promote", *BOTH)
def _compares(call: Call) -> str | None:
    if _compared_in(call) is not None:
        return None
    pair = ", ".join(f"{call.names[r]} {call.word(call.dtype(r))}" for r in BOTH)
    return f"dtypes do not promote: {pair}"


def _signed(lowering: Lowering, value: int, shape: tuple[int, ...]) -> int:
    """Unsigned numbers of 64 bits as signed ones in the same order."""
    params = (-(2**63), 1)
    return lowering.point("adds", [value], aclDataType.ACL_INT64, shape, params=params)


def _lower(formula: str, expression: str) -> Callable[[Lowering], Mapping[str, int]]:
    """The nodes of a comparison: operands are promoted, and compared in what holds that dtype."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        call, (result, shape) = lowering.call, lowering.results["out"]
        numbers = "other" in call.scalars
        dtype = promoted_with_number(call, "input", "other") if numbers else _compared_in(call)
        assert dtype is not None
        if not numbers and _has_number(call):  # which is rounded, as numbers are
            operands = [lowering.dense(role, dtype, shape) for role in BOTH]
        else:
            operands = lowering.pair(BOTH, dtype, shape)
        if dtype == aclDataType.ACL_UINT64:
            operands = [_signed(lowering, one, shape) for one in operands]
        made = lowering.point(
            formula, operands, result, shape, reads=reads_of(dtype), expression=expression
        )
        return {"out": made}

    return lower


def _dtypes_among(
    roles: tuple[str, ...], allowed: tuple[aclDataType, ...], name: str
) -> tuple[Rule, ...]:
    """Some comparisons have one more dtype on an Ascend950."""
    if name not in ("eq", "ne", "le"):
        return tuple([dtype_among(role, allowed) for role in roles])
    unsigned = (*allowed, aclDataType.ACL_UINT64)
    found = []
    for role in roles:
        found += [
            unless_on("Ascend950", dtype_among(role, allowed)),
            only_on("Ascend950", dtype_among(role, unsigned)),
        ]
    return tuple(found)


def _comparison(
    name: str, sign: str, words: str, found: str, allowed: tuple[aclDataType, ...] = REAL
) -> tuple[Operator, Operator]:
    """A comparison of two tensors, and that of a tensor and a number.

    `found` is what it finds of 1, 2 and 3 with 2.
    """
    expression, cann = f"input {sign} other", name.capitalize()
    return with_number(
        name,
        (f"{cann}Tensor", f"{cann}Scalar"),
        f"{name}_scalar",
        elementwise=True,
        expression=expression,
        lower=_lower(name, expression),
        examples=(
            ("(np.float32([1, 2, 3]), np.float32([2, 2, 2]))", f"array([{found}])"),
            ("(np.float32([1, 2, 3]), 2)", f"array([{found}])"),
        ),
        of_tensors={
            "summary": f"Whether elements {words} those of another tensor.",
            "rules": (
                *(require("input, other: if empty ends") if name in ("le", "ne") else ()),
                in_place(broadcasts(*BOTH)),
                in_place(broadcast_shape("out", BOTH)),
                *_dtypes_among(BOTH, allowed, name),
                _compares(),
                result_castable(_truth),
                *require("input, other: at most 8 dims; input, other: broadcast"),
                *require("out: broadcast of input, other"),
            ),
        },
        of_number={
            "summary": f"Whether elements {words} a number.",
            "notes": "The number is first rounded to the dtype in which it is compared.",
            "rules": (
                *_dtypes_among(("input",), allowed, name),
                *(() if aclDataType.ACL_COMPLEX64 in allowed else require("other: numbers")),
                promotes_with_number("input", "other"),
                result_castable(_truth),
                *require("input: at most 8 dims; out: shape of input"),
            ),
        },
    )


eq, eq_scalar = _comparison("eq", "=", "equal", "False,  True, False", NUMERIC)
ne, ne_scalar = _comparison("ne", "≠", "differ from", " True, False,  True", NUMERIC)
lt, lt_scalar = _comparison("lt", "<", "are less than", " True, False, False")
le, le_scalar = _comparison("le", "≤", "are at most", " True,  True, False")
gt, gt_scalar = _comparison("gt", ">", "are greater than", "False, False,  True")
ge, ge_scalar = _comparison("ge", "≥", "are at least", "False,  True,  True")

_EXTREMUM_RULES = (
    *require("input, other: REAL; input, other: promote to REAL"),
    result_castable(lambda call: promoted(call, BOTH)),
    *require("input, other: at most 8 dims; input, other: broadcast"),
    *require("out: broadcast of input, other"),
)

maximum = Operator(
    name="maximum",
    summary="The larger of two elements.",
    expression="max(input, other)",
    notes="A NaN in either gives NaN.",
    formula="maximum",
    inputs=BOTH,
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
    inputs=BOTH,
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


# --- Logical functions ------------------------------------------------------------------------------

_LOGICAL = "Nonzero elements count as true, NaN too."


def _lower_logical(formula: str, expression: str) -> Callable[[Lowering], Mapping[str, int]]:
    """Operands are read as they are: what is not 0 may be in what they promote to."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        result, shape = lowering.results["out"]
        roles = lowering.call.given(BOTH)
        found = {reads_of(lowering.call.dtype(role)) for role in roles}
        whole = "int64" if found == {"int64"} else "float64"
        reads = "complex128" if "complex128" in found else whole
        made = lowering.point(
            formula,
            [lowering.dense(role, None, shape) for role in roles],
            result,
            shape,
            reads=reads,
            expression=expression,
        )
        return {"out": made}

    return lower


def _logical(name: str, summary: str, expression: str, found: str, *items: str) -> Operator:
    """`found` is what it gives for false and true in all combinations."""
    return Operator(
        name=name,
        in_place=f"{name}_",
        summary=summary,
        expression=expression,
        notes=_LOGICAL,
        elementwise=True,
        lower=_lower_logical(name, expression),
        inputs=BOTH,
        entries=tuple(
            [
                entry(item, "selfRef=input:inout other" if "Inplace" in item else _PAIR)
                for item in items
            ]
        ),
        rules=(
            in_place(broadcasts(*BOTH)),
            in_place(broadcast_shape("out", BOTH)),
            *require("input, other: NUMERIC"),
            result_castable(_truth),
            *require("input, other: at most 8 dims; input, other: broadcast"),
            *require("out: broadcast of input, other"),
        ),
        example=(
            f"{name}(np.float32([0, 0, 1, 1]), np.float32([0, 2, 0, 3]))",
            f"array([{found}])",
        ),
    )


_PAIR = "self=input other out:out"

logical_and = _logical(
    "logical_and",
    "Whether both elements are true.",
    "input ≠ 0 and other ≠ 0",
    "False, False, False,  True",
    "aclnnLogicalAnd",
    "aclnnInplaceLogicalAnd",
)
logical_or = _logical(
    "logical_or",
    "Whether one of the elements is true.",
    "input ≠ 0 or other ≠ 0",
    "False,  True,  True,  True",
    "aclnnLogicalOr",
    "aclnnInplaceLogicalOr",
)
logical_xor = _logical(
    "logical_xor",
    "Whether exactly one of the elements is true.",
    "(input ≠ 0) ≠ (other ≠ 0)",
    "False,  True,  True, False",
    "aclnnLogicalXor",
)
logical_not = Operator(
    name="logical_not",
    in_place="logical_not_",
    summary="Whether elements are not true.",
    expression="input = 0",
    notes=_LOGICAL,
    lower=_lower_logical("logical_not", "input = 0"),
    any_rank=True,
    inputs=("input",),
    entries=(
        entry("aclnnLogicalNot", "self=input out:out"),
        entry("aclnnInplaceLogicalNot", "selfRef=input:inout"),
    ),
    rules=(
        *require("input: REAL"),
        result_castable(_truth),
        at_most_8_dims_unless_contiguous(("input", "out"), ("input", "out")),
        *require("out: shape of input"),
    ),
    example=("logical_not(np.float32([0, 2]))", "array([ True, False])"),
    elementwise=True,
)


# --- Clamp ------------------------------------------------------------------------------------------

_BOUNDS = ("min", "max")


def _given_bounds(call: Call) -> list[str]:
    return [role for role in _BOUNDS if not call.scalars[role].absent]


def _clamped(call: Call) -> aclDataType | None:
    """Dtype that the tensor and the given bounds promote to."""
    result: aclDataType | None = call.dtype("input")
    for role in _given_bounds(call):
        own = promoted_with_number(call, "input", role)
        if result is None or own is None:
            return None
        result = dtypes.promote(result, own)
    return result


@rule("`min` or `max` is given", *_BOUNDS)
def _some_bound(call: Call) -> str | None:
    if _given_bounds(call):
        return None
    return f"{call.names['min']} and {call.names['max']} are both null"


def _lower_clamp(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    roles = _given_bounds(lowering.call)
    if len(roles) == 1:
        operands = lowering.pair(("input", *roles), dtype, shape)
        formula = "maximum" if roles == ["min"] else "minimum"
        return {"out": lowering.point(formula, operands, dtype, shape)}
    operands = lowering.pair(("input",), dtype, shape)
    return {
        "out": lowering.point("clamp", operands, dtype, shape, params=lowering.params(roles, dtype))
    }


clamp = Operator(
    name="clamp",
    in_place="clamp_",
    summary="Elements clamped to a range.",
    expression="min(max(input, min), max)",
    notes=(
        "None means no bound; at least one bound is required. NaN stays NaN; a bound that is NaN "
        "makes every result NaN. If `min` exceeds `max`, every result is `max`."
    ),
    lower=_lower_clamp,
    inputs=("input",),
    attributes=(
        argument("min", None, "scalar", "Lower bound.", facts=("dtype",)),
        argument("max", None, "scalar", "Upper bound.", facts=("dtype",)),
    ),
    entries=(
        entry("aclnnClamp", "self=input clipValueMin=min:scalar? clipValueMax=max:scalar? out:out"),
    ),
    rules=(
        *answering(ACLNN_ERR_PARAM_NULLPTR, _some_bound()),
        *require("input: FLOATING_AND_DOUBLE INTEGERS; min, max: numbers"),
        result_castable(_clamped),
        *require("input, out: at most 8 dims; out: shape of input"),
    ),
    example=("clamp(np.float32([-2, 0, 2]), -1, 1)", "array([-1.,  0.,  1.], dtype=float32)"),
    seealso=("maximum", "minimum"),
    gradient={"input": "where_between(grad, input, min, max)"},
    elementwise=True,
)


# --- Where ------------------------------------------------------------------------------------------

_THREE = ("condition", *BOTH)


def _lower_where(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    operands = [lowering.dense("condition", None, shape)]
    operands += [lowering.dense(role, dtype, shape) for role in BOTH]
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
    lower=_lower_where,
    inputs=_THREE,
    numbers=BOTH,
    sample_specs=specs("condition: BOOL"),
    entries=(entry("aclnnSWhere", "condition self=input other out:out"),),
    rules=(
        *require("condition: BOOL UINT8; input, other: NUMERIC; input, other: promote to NUMERIC"),
        result_castable(lambda call: promoted(call, BOTH)),
        *require("condition, input, other: at most 8 dims; condition, input, other: broadcast"),
        *require("out: broadcast of condition, input, other"),
    ),
    example=(
        "where(np.bool_([True, False]), np.float32([1, 2]), np.float32([3, 4]))",
        "array([1., 4.], dtype=float32)",
    ),
    gradient={"input": "where(condition, grad, 0)", "other": "where(condition, 0, grad)"},
)


# --- One bound --------------------------------------------------------------------------------------

_CLAMPED = (*FLOATING_AND_DOUBLE, *INTEGERS)


def _bounded_dtype(bound: str) -> Callable[[Call], aclDataType | None]:
    """CANN's function computes in the dtype of the output before Ascend950."""

    def result(call: Call) -> aclDataType | None:
        if call.c_shaped and call.soc != "Ascend950" and "out" in call.tensors:
            return call.dtype("out")
        return promoted_with_number(call, "input", bound)

    return result


def _bounded(bound: str, formula: str, words: str, example: str, *items: str) -> Operator:
    name, cann = f"clamp_{bound}", f"clipValue{bound.capitalize()}={bound}:scalar"
    result = _bounded_dtype(bound)

    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        operands = lowering.pair(("input", bound), dtype, shape)
        return {"out": lowering.point(formula, operands, dtype, shape)}

    return Operator(
        name=name,
        in_place=f"{name}_" if len(items) > 1 else None,
        summary=f"Elements that are {words}.",
        expression=f"{'max' if bound == 'min' else 'min'}(input, {bound})",
        notes="NaN stays NaN; a bound that is NaN makes every result NaN.",
        infer=lambda call: {"out": (result(call), call.shape("input"))},
        lower=lower,
        inputs=("input",),
        attributes=(argument(bound, REQUIRED, "scalar", "The bound, a number.", facts=("dtype",)),),
        entries=tuple(
            [
                entry(
                    item,
                    f"selfRef=input:inout {cann}"
                    if "Inplace" in item
                    else f"self=input {cann} out:out",
                )
                for item in items
            ]
        ),
        rules=(
            *require("input, out: FLOATING_AND_DOUBLE INTEGERS"),
            convertible_scalars(bound),
            promotes_with_number("input", bound),
            result_castable(lambda call: call.dtype("input")),
            result_castable(result),
            *require("out: shape of input; input, out: at most 8 dims"),
        ),
        example=(f"{name}(np.float32([1, 4]), 2)", f"array([{example}], dtype=float32)"),
        seealso=("clamp",),
        gradient={"input": f"where({'ge' if bound == 'min' else 'le'}(input, {bound}), grad, 0)"},
        elementwise=True,
    )


clamp_min = _bounded("min", "maximum", "at least a number", "2., 4.", "aclnnClampMin")
clamp_max = _bounded(
    "max", "minimum", "at most a number", "1., 2.", "aclnnClampMax", "aclnnInplaceClampMax"
)


# --- Numbers that are finite, infinite or none ------------------------------------------------------


def _classified(
    name: str,
    words: str,
    expression: str,
    found: str,
    parts: tuple[str, ...],
    cann: str,
    **more: Any,
) -> Operator:
    """`parts`: formulas of what is compared with infinity, the last one comparing."""
    *first, last, bound = parts

    def lower(lowering: Lowering) -> Mapping[str, int]:
        result, shape = lowering.results["out"]
        own = lowering.call.dtype("input")
        if own not in FLOATING_AND_DOUBLE:
            return {"out": lowering.filled(float(name == "isfinite"), result, shape)}
        value = lowering.dense("input", None, shape)
        for formula in first:
            value = lowering.point(formula, [value], own, shape)
        limit = lowering.filled(float(bound), own, shape)
        made = lowering.point(last, [value, limit], result, shape, reads=reads_of(own))
        return {"out": made}

    return Operator(
        name=name,
        summary=f"Whether elements are {words}.",
        expression=expression,
        lower=lower,
        inputs=("input",),
        example=(f"{name}(np.float32([1, -np.inf, np.nan]))", f"array([{found}])"),
        entries=(entry(f"aclnn{cann}", f"{'x' if cann == 'IsInf' else 'self'}=input out:out"),),
        elementwise=True,
        sample_specs=specs("out: BOOL"),
        **more,
    )


_TRUTH_OUT = of_cann(dtype_among("out", (aclDataType.ACL_BOOL,)))
_SIDE = (*FLOATING, *INTEGERS, aclDataType.ACL_BOOL)
_TESTED = (*require("input: REAL"), _TRUTH_OUT, result_castable(_truth))
_SHAPES = require("out: shape of input; input, out: at most 8 dims")
_ONE_SIDE = (
    *_SHAPES,
    *require("input: REAL; cann input: FLOATING INTEGERS BOOL"),
    _TRUTH_OUT,
    result_castable(_truth),
)

isfinite = _classified(
    "isfinite", "finite", "|input| < Inf", " True, False, False", ("abs", "lt", "inf"), "IsFinite",
    rules=(*_TESTED, *_SHAPES),
)  # fmt: skip
isinf = _classified(
    "isinf", "infinite", "|input| = Inf", "False,  True, False", ("abs", "eq", "inf"), "IsInf",
    rules=(*answering(ACLNN_ERR_INNER_TILING_ERROR, *require("input, out: at most 8 dims")), *_TESTED, *require("out: shape of input")),
)  # fmt: skip
isposinf = _classified(
    "isposinf", "infinite and positive", "input = Inf", "False, False, False", ("eq", "inf"), "IsPosInf",
    rules=_ONE_SIDE,
)  # fmt: skip
isneginf = _classified(
    "isneginf", "infinite and negative", "input = -Inf", "False,  True, False", ("eq", "-inf"), "IsNegInf",
    rules=_ONE_SIDE,
)  # fmt: skip
