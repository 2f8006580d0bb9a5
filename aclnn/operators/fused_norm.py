"""Norms of sums, and their variants: results in place, in another dtype, with another gamma."""

from __future__ import annotations

import math
from collections.abc import Mapping

from aclnn.acl.constants import ACLNN_ERR_PARAM_NULLPTR, aclDataType
from aclnn.operators.checks import (
    Call,
    Rule,
    at_most_8_dims,
    dtype_among,
    dtype_like_or,
    exists_on,
    promoted,
    rule,
    same_dtype,
    same_shape,
)
from aclnn.operators.declaration import ROW_ACCURACY, Operator, argument, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.norm import (
    LAYER_NORM,
    RMS_NORM,
    RMS_NORM_PRODUCTS,
    Inferred,
    Shape,
    as_columns,
    as_results,
    gamma_trails,
    has_leading_shape,
    leading,
    one_for_each_row,
    wrong_shape,
)
from aclnn.operators.words import require, specs

_SINGLE, _DOUBLE = aclDataType.ACL_FLOAT, aclDataType.ACL_DOUBLE
_HALVES = (aclDataType.ACL_FLOAT16, aclDataType.ACL_BF16)
_EPSILON = argument("epsilon", 1e-6, "float", "Added to the mean square.")
_SUM = "x is the rounded sum; the norm is computed from the sum before rounding."


# --- Sums -----------------------------------------------------------------------------------------


def _sum(lowering: Lowering, roles: tuple[str, ...], dtype: aclDataType, shape: Shape) -> int:
    """The sum of tensors: added up in float64, and rounded once to what is wanted."""
    first, *others = [
        lowering.dense(_as_rows(lowering, role, shape), _DOUBLE, shape) for role in roles
    ]
    for number, other in enumerate(others, 1):
        made = dtype if number == len(others) else _DOUBLE
        first = lowering.point("add", (first, other), made, shape, params=(1.0,), reads="float64")
    return first


def _as_rows(lowering: Lowering, role: str, shape: Shape) -> int:
    """A tensor in the shape of rows, or one row for all."""
    if lowering.call.shape(role) == lowering.call.shape("x1"):
        return lowering.reshaped(role, shape)
    return as_columns(lowering, role, len(shape) - 1, shape[-1])


def _rows(lowering: Lowering) -> tuple[Shape, int]:
    """The shape of what is normalized, as rows: leading dimensions, and the sizes of gamma as one."""
    sizes, shape = _normalized(lowering.call), lowering.call.shape("x1")
    return shape[: len(shape) - len(sizes)], math.prod(sizes)


def _normalized(call: Call) -> Shape:
    return call.shape("gamma")[-1:] if _lacks_results(call) else call.shape("gamma")


def _lacks_results(call: Call) -> bool:
    """Whether the sum, or the sum and its rstd, are not asked for: a mode of its own."""
    return not call.makes_absent and "rstd" not in call.tensors


# --- RMS norm of a sum ----------------------------------------------------------------------------


def _infer_add_rms_norm(call: Call) -> Inferred:
    own = (call.dtype("x1"), call.shape("x1"))
    if _lacks_results(call):
        return {"out": own, "x": own}
    rstd = (*leading(call, "x1"), *[1] * len(call.shape("gamma")))
    return {"out": own, "rstd": (_SINGLE, rstd), "x": own}


def _lower_add_rms_norm(lowering: Lowering) -> Mapping[str, int]:
    dtype = lowering.call.dtype("x1")
    return {**_norm_of_sum(lowering, "out", dtype), **_stored_sum(lowering, ("x1", "x2"))}


def _norm_of_sum(lowering: Lowering, role: str, dtype: aclDataType) -> Mapping[str, int]:
    lead, cols = _rows(lowering)
    statistics = ("rstd",) if lowering.wants("rstd") else ()
    made = lowering.rows(
        "rms_norm",
        [
            _sum(lowering, ("x1", "x2"), _DOUBLE, (*lead, cols)),
            as_columns(lowering, "gamma", len(lead), cols),
        ],
        [(dtype, (*lead, cols)), *[(_SINGLE, (*lead, 1)) for _ in statistics]],
        -1,
        params=(lowering.number("epsilon", "exact"),),
        present=("gamma", *statistics),
    )
    shape = lowering.call.shape("x1")
    return {role: lowering.reshaped(made[0], shape), **as_results(lowering, statistics, made[1:])}


def _stored_sum(lowering: Lowering, roles: tuple[str, ...]) -> Mapping[str, int]:
    if not lowering.wants("x"):
        return {}
    lead, cols = _rows(lowering)
    dtype, shape = lowering.results["x"]
    return {"x": lowering.reshaped(_sum(lowering, roles, dtype, (*lead, cols)), shape)}


@rule("`x` is not null where `rstd` is not", status=ACLNN_ERR_PARAM_NULLPTR)
def _sum_beside_rstd(call: Call) -> str | None:
    if call.makes_absent or "rstd" not in call.tensors or "x" in call.tensors:
        return None
    return f"{call.names['x']} is null, but {call.names['rstd']} is not"


@rule("without `rstd`, `x1` is FLOAT16 or BF16", "x1", "rstd")
def _half_without_rstd(call: Call) -> str | None:
    if not _lacks_results(call) or call.dtype("x1") in _HALVES:
        return None
    halves = call.words(_HALVES)
    return f"{call.typed('x1')}, must be {halves} without {call.names['rstd']}"


@rule("`{role}` is not negative")
def _not_negative(call: Call, role: str) -> str | None:
    if not call.scalars[role].negative:
        return None
    return f"{call.names[role]} is {call.scalars[role].text}, must not be negative"


def _gamma_of_sum() -> Rule:
    whole = gamma_trails("x1")

    def test(call: Call) -> str | None:
        if not _lacks_results(call):
            return whole.test(call)
        requested = (1, *call.shape("x1")[-1:])
        if call.shape("gamma") == requested and 0 not in requested:
            return None
        return f"{call.shaped('gamma')}, must have {requested}"

    text = f"{whole.text}; without `rstd` it is [1, last]"
    return wrong_shape(Rule(text, test, ("gamma", "x1", "rstd")))


_ADDED_SHAPES = (
    wrong_shape(at_most_8_dims("x1", "x2", "gamma")),
    wrong_shape(same_shape("x2", "x1")),
    _gamma_of_sum(),
)

add_rms_norm = Operator(
    name="add_rms_norm",
    in_place="add_rms_norm_",
    summary="RMS norm of a sum, with the sum and the inverse root of each row's mean square.",
    expression=f"{RMS_NORM}, x = x1 + x2",
    notes=(
        f"{_SUM} In place, x1 receives the norm and x2 the sum. Without rstd, or without rstd and "
        f"the sum, "
        "gamma is [1, last]. rstd is float32."
    ),
    inputs=("x1", "x2", "gamma"),
    outputs=("out", "rstd", "x"),
    optional=("rstd", "x"),
    sample_specs=specs("gamma: [2]"),
    attributes=(_EPSILON,),
    entries=(
        entry(
            "aclnnAddRmsNorm",
            "x1 x2 gamma epsilon:float yOut=out:out rstdOut=rstd:out? xOut=x:out?",
        ),
        entry(
            "aclnnInplaceAddRmsNorm",
            "x1Ref=x1:inout x2Ref=x2:inout gamma epsilon:float rstdOut=rstd:out",
        ),
    ),
    rules=(
        _sum_beside_rstd(),
        exists_on(RMS_NORM_PRODUCTS),
        *require("x1: FLOATING"),
        *[same_dtype(role, "x1") for role in ("x2", "gamma", "out", "x")],
        *require("rstd: FLOAT"),
        _half_without_rstd(),
        _not_negative("epsilon"),
        *_ADDED_SHAPES,
        wrong_shape(same_shape("out", "x1")),
        has_leading_shape("rstd", "x1"),
        wrong_shape(same_shape("x", "x1")),
    ),
    infer=_infer_add_rms_norm,
    lower=_lower_add_rms_norm,
    example=(
        "add_rms_norm(np.float32([1, 3]), np.float32([1, -1]), np.float32([1, 3]), 0.0)",
        "(array([1., 3.], dtype=float32), array([0.5], dtype=float32), "
        "array([2., 2.], dtype=float32))",
    ),
    seealso=("add_rms_norm_cast", "native_rms_norm"),
    accuracy=ROW_ACCURACY,
    gradient={"x1, x2, gamma": "gradients_of_added_rms_norm(grad, grad_x, x, gamma, rstd)"},
    chunking="weight_2",
)


def _infer_with_cast(call: Call) -> Inferred:
    rstd = (*leading(call, "x1"), *[1] * len(call.shape("gamma")))
    own = (call.dtype("x1"), call.shape("x1"))
    return {"y1": (_SINGLE, own[1]), "y2": own, "rstd": (_SINGLE, rstd), "x": own}


def _lower_with_cast(lowering: Lowering) -> Mapping[str, int]:
    made = _norm_of_sum(lowering, "y1", _SINGLE)
    narrow = lowering.dense(made["y1"], lowering.call.dtype("x1"))
    return {**made, "y2": narrow, **_stored_sum(lowering, ("x1", "x2"))}


add_rms_norm_cast = Operator(
    name="add_rms_norm_cast",
    summary="RMS norm of a sum in float32 and in the inputs' dtype, with the sum.",
    expression=f"y1 = {RMS_NORM}, x = x1 + x2; y2 = y1 as the dtype of x1",
    notes=f"{_SUM} rstd is float32.",
    inputs=("x1", "x2", "gamma"),
    outputs=("y1", "y2", "rstd", "x"),
    sample_specs=specs("gamma: [2]; y1, rstd: FLOAT"),
    attributes=(_EPSILON,),
    entries=(
        entry(
            "aclnnAddRmsNormCast",
            "x1 x2 gamma epsilon:float y1Out=y1:out y2Out=y2:out rstdOut=rstd:out xOut=x:out",
        ),
    ),
    rules=(
        exists_on(RMS_NORM_PRODUCTS),
        *require("x1: FLOAT16 BF16"),
        *[same_dtype(role, "x1") for role in ("x2", "gamma", "y2", "x")],
        *require("y1, rstd: FLOAT"),
        _not_negative("epsilon"),
        wrong_shape(at_most_8_dims("x1", "x2", "gamma")),
        wrong_shape(same_shape("x2", "x1")),
        gamma_trails("x1"),
        *[wrong_shape(same_shape(role, "x1")) for role in ("y1", "y2")],
        has_leading_shape("rstd", "x1"),
        wrong_shape(same_shape("x", "x1")),
    ),
    infer=_infer_with_cast,
    lower=_lower_with_cast,
    example=(
        "add_rms_norm_cast(np.float16([1, 3]), np.float16([1, -1]), np.float16([1, 3]), 0.0)",
        "(array([1., 3.], dtype=float32), array([1., 3.], dtype=float16), "
        "array([0.5], dtype=float32), array([2., 2.], dtype=float16))",
    ),
    seealso=("add_rms_norm",),
    accuracy=f"{ROW_ACCURACY} y2 is y1 rounded once more.",
    gradient={
        "x1, x2, gamma": "gradients_of_added_rms_norm(added(grad, grad_y2), grad_x, x, gamma, rstd)"
    },
    chunking="weight_2",
)


# --- RMS norm with 1 + gamma ----------------------------------------------------------------------


def _infer_gemma(call: Call) -> Inferred:
    rstd = call.shape("rstd") if "rstd" in call.tensors else leading(call, "x")
    return {"out": (call.dtype("x"), call.shape("x")), "rstd": (_SINGLE, rstd)}


def _lower_gemma(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    lead, cols = leading(call, "x"), math.prod(call.shape("gamma"))
    gamma = lowering.dense(as_columns(lowering, "gamma", len(lead), cols), _DOUBLE)
    shape = (*[1] * len(lead), cols)
    made = lowering.rows(
        "rms_norm",
        [
            lowering.dense(lowering.reshaped("x", (*lead, cols))),
            lowering.point("adds", (gamma,), _DOUBLE, shape, params=(1.0, 1.0)),
        ],
        [(call.dtype("x"), (*lead, cols)), (_SINGLE, (*lead, 1))],
        -1,
        params=(lowering.number("epsilon", "exact"),),
        present=("gamma", "rstd"),
    )
    return as_results(lowering, ("out", "rstd"), made)


gemma_rms_norm = Operator(
    name="gemma_rms_norm",
    summary="RMS norm whose factor is 1 + gamma.",
    expression="x·rstd·(1 + gamma), rstd = 1/√(Σx²/N + eps)",
    notes=(
        "It normalizes over the trailing dimensions that `gamma` has. rstd is float32 and has the "
        "leading "
        "dimensions; any shape with as many elements may be given for it."
    ),
    inputs=("x", "gamma"),
    outputs=("out", "rstd"),
    sample_specs=specs("gamma: [2]"),
    attributes=(_EPSILON,),
    entries=(entry("aclnnGemmaRmsNorm", "x gamma epsilon:float yOut=out:out rstdOut=rstd:out"),),
    rules=(
        exists_on(RMS_NORM_PRODUCTS),
        *require("x: FLOATING; gamma, out: dtype of x; rstd: FLOAT"),
        wrong_shape(at_most_8_dims("x", "gamma", "out", "rstd")),
        gamma_trails("x"),
        wrong_shape(same_shape("out", "x")),
        wrong_shape(one_for_each_row("rstd", "x")),
    ),
    infer=_infer_gemma,
    lower=_lower_gemma,
    example=(
        "gemma_rms_norm(np.float32([[2, 2]]), np.float32([0, 2]), 0.0)",
        "(array([[1., 3.]], dtype=float32), array([0.5], dtype=float32))",
    ),
    seealso=("native_rms_norm",),
    accuracy=ROW_ACCURACY,
    gradient={"x, gamma": "gradients_of_rms_norm(grad, x, gamma + 1, rstd)"},
    chunking="weight_1",
)


# --- Layer norm of a sum --------------------------------------------------------------------------


def _mixed(call: Call) -> bool:
    return call.dtype("x1") != call.dtype("x2")


def _infer_add_layer_norm(call: Call) -> Inferred:
    own = (promoted(call, ("x1", "x2")), call.shape("x1"))
    row = (_SINGLE, (*leading(call, "x1"), *[1] * len(call.shape("gamma"))))
    found = {"out": own, "mean": row, "rstd": row}
    return found | ({"x": own} if call.switches["additional_output"] else {})  # type: ignore[return-value]


def _lower_add_layer_norm(lowering: Lowering) -> Mapping[str, int]:
    lead, cols = _rows(lowering)
    added = ("x1", "x2", "bias") if lowering.has("bias") else ("x1", "x2")
    made = lowering.rows(
        "layer_norm",
        [
            _sum(lowering, added, _DOUBLE, (*lead, cols)),
            *[as_columns(lowering, role, len(lead), cols) for role in ("gamma", "beta")],
        ],
        [(lowering.results["out"][0], (*lead, cols)), *[(_SINGLE, (*lead, 1))] * 2],
        -1,
        params=(lowering.number("epsilon", "exact"),),
        present=("weight", "bias", "mean", "rstd"),
    )
    return {**as_results(lowering, ("out", "mean", "rstd"), made), **_stored_sum(lowering, added)}


@rule("`x1` and `x2` have one dtype, or one of them is FLOAT")
def _sums_fit(call: Call) -> str | None:
    if not _mixed(call) or _SINGLE in (call.dtype("x1"), call.dtype("x2")):
        return None
    pair = ", ".join(f"{call.names[r]} {call.word(call.dtype(r))}" for r in ("x1", "x2"))
    return f"dtypes differ, and none is {call.word(_SINGLE)}: {pair}"


def _parameter_fits(role: str) -> Rule:
    like = dtype_like_or(role, "x1")

    def test(call: Call) -> str | None:
        if role not in call.tensors or not _mixed(call):
            return like.test(call)
        return dtype_among(role, (_SINGLE,)).test(call)

    text = f"{like.text}; where `x2` has another it is FLOAT"
    return Rule(text, test, (role, "x1", "x2"))


@rule("`{role}` has the dtype that `x1` and `x2` promote to")
def _sum_dtype(call: Call, role: str) -> str | None:
    if role not in call.tensors or call.dtype(role) == promoted(call, ("x1", "x2")):
        return None
    return f"{call.names[role]} has not the dtype that {call.names['x1']} and {call.names['x2']} promote to"


def _bias_shape() -> Rule:
    def test(call: Call) -> str | None:
        if "bias" not in call.tensors or call.shape("bias") in (
            call.shape("gamma"),
            call.shape("x1"),
        ):
            return None
        return f"{call.shaped('bias')}, must have {call.shape('gamma')} or {call.shape('x1')}"

    return wrong_shape(
        Rule("`bias` has the shape of `gamma` or `x1`", test, ("bias", "gamma", "x1"))
    )


@rule("`x` is not null where `additional_output` is true", status=ACLNN_ERR_PARAM_NULLPTR)
def _sum_where_wanted(call: Call) -> str | None:
    if not call.switches["additional_output"] or "x" in call.tensors or call.makes_absent:
        return None
    return f"{call.names['x']} is null, but {call.names['additional_output']} is true"


add_layer_norm = Operator(
    name="add_layer_norm",
    summary="Layer norm of a sum, with the mean and the inverse deviation of each row.",
    expression=f"{LAYER_NORM.replace('weight', 'gamma').replace('bias', 'beta')}, x = x1 + x2 + bias",
    notes=f"{_SUM} x is a result only with `additional_output`. Mean and rstd are float32.",
    inputs=("x1", "x2", "gamma", "beta", "bias"),
    outputs=("out", "mean", "rstd", "x"),
    optional=("bias", "x"),
    sample_specs=specs("gamma, beta: [2]"),
    attributes=(
        argument("epsilon", 1e-5, "float", "Added to the variance."),
        argument("additional_output", False, "bool", "Whether x is a result."),
    ),
    parameters=("x1", "x2", "gamma", "beta", "epsilon", "additional_output", "bias"),
    entries=(
        entry(
            "aclnnAddLayerNorm",
            "x1 x2 gamma beta biasOptional=bias:in? epsilon:float additionalOutput:bool "
            "yOut=out:out "
            "meanOut=mean:out rstdOut=rstd:out xOut=x:out?",
        ),
    ),
    rules=(
        _sum_where_wanted(),
        exists_on(("Ascend950", "Ascend910_93", "Ascend910B", "Ascend310P")),
        *require("x1, x2: FLOATING"),
        _sums_fit(),
        _parameter_fits("gamma"),
        *require("beta: dtype of gamma"),
        _parameter_fits("bias"),
        _sum_dtype("out"),
        *[dtype_among(role, (_SINGLE,)) for role in ("mean", "rstd")],
        _sum_dtype("x"),
        wrong_shape(at_most_8_dims("x1", "x2", "gamma")),
        wrong_shape(same_shape("x2", "x1")),
        gamma_trails("x1"),
        wrong_shape(same_shape("beta", "gamma")),
        _bias_shape(),
        wrong_shape(same_shape("out", "x1")),
        *[has_leading_shape(role, "x1") for role in ("mean", "rstd")],
        wrong_shape(same_shape("x", "x1")),
    ),
    infer=_infer_add_layer_norm,
    lower=_lower_add_layer_norm,
    example=(
        "add_layer_norm(np.float32([1, 3]), np.float32([1, 1]), np.float32([1, 1]), "
        "np.float32([0, 1]), 0.0, True)",
        "(array([-1.,  2.], dtype=float32), array([3.], dtype=float32), "
        "array([1.], dtype=float32), array([2., 4.], dtype=float32))",
    ),
    seealso=("native_layer_norm", "add_rms_norm"),
    accuracy=ROW_ACCURACY,
    gradient={
        "x1, x2, gamma, beta, bias": "gradients_of_added_layer_norm(grad, grad_x, x1 + x2 if bias is None else x1 + x2 + bias, gamma, beta, mean, rstd)"
    },
    chunking="weight_2",
)
