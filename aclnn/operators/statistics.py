"""Standard deviations, variances with means, both extremes, and logarithms of sums of exponentials."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import FLOATING_AND_DOUBLE, Call, Rule, rule, same_dtype
from aclnn.operators.declaration import REQUIRED, ROW_ACCURACY, Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.reduce import (
    DIM,
    KEEPDIM,
    KNOWN_DIMS,
    chained,
    freedom,
    in_runs,
    largest,
    reduced_axes,
    shape_left,
    smallest,
    variance,
)
from aclnn.operators.words import require

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]

_SINGLE, _DOUBLE, _TRUTH = aclDataType.ACL_FLOAT, aclDataType.ACL_DOUBLE, aclDataType.ACL_BOOL


def _free_shape(call: Call, role: str) -> Shape:
    """The shape that is left; over all dimensions, which nobody names, that of any single element will do."""
    if call.c_shaped and not call.switches["dim"] and role in call.tensors:
        return call.shape(role) if call.tensors[role].size == 1 else shape_left(call)
    return shape_left(call)


@rule("`{role}` has the shape that is left{words}", "{role}", "input")
def _fits(call: Call, role: str, shape: Callable[[Call, str], Shape], words: str) -> str | None:
    if role not in call.tensors or call.shape(role) == shape(call, role):
        return None
    return f"{call.shaped(role)}, must have {shape(call, role)}"


def _fits_freely(role: str) -> Rule:
    words = "; in C-shaped calls without `dim` any single element will do"
    return _fits(role, _free_shape, words)


def _fits_exactly(role: str) -> Rule:
    return _fits(role, lambda call, _: shape_left(call), "")


# --- Deviations -----------------------------------------------------------------------------------


def _quotient(lowering: Lowering, dividend: float, role: str) -> int:
    """A number divided by 0, as a graph has no word for what that is."""
    dtype, shape = lowering.results[role]
    whole = lowering.filled(dividend, dtype, shape)
    return lowering.point("divs", [whole], dtype, shape, params=(0.0,))


def _spread(lowering: Lowering, *, root: bool) -> int:
    """The variance, or its root, in the dtype and the shape of the result."""
    call, (dtype, shape) = lowering.call, lowering.results["out"]
    own = call.shape("input")
    count = math.prod([own[axis] for axis in reduced_axes(call)])
    if 0 in own:
        return _quotient(lowering, 0, "out")
    if call.c_shaped and count > 1 and not freedom(call):  # whatever the elements are
        return _quotient(lowering, 1, "out")
    found = variance(lowering, call.dtype("input"))
    if root:
        sizes = lowering.builder.value(found).shape
        found = lowering.point("sqrt", [found], _DOUBLE, sizes)
    value = lowering.builder.cast(found, graph_dtype(dtype))
    return lowering.builder.view(value, shape, contiguous_strides(shape))


def _middle(lowering: Lowering) -> int:
    dtype, shape = lowering.results["mean"]
    own = lowering.call.dtype("input")
    if 0 in lowering.call.shape("input"):
        return _quotient(lowering, 0, "mean")
    value = chained(lowering, "mean", in_runs(lowering, own), own, _DOUBLE)
    value = lowering.builder.cast(value, graph_dtype(dtype))
    return lowering.builder.view(value, shape, contiguous_strides(shape))


def _lower_spread(*, root: bool) -> Callable[[Lowering], Mapping[str, int]]:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        made = {"out": _spread(lowering, root=root)} if lowering.wants("out") else {}
        if "mean" in lowering.results and lowering.wants("mean"):
            made["mean"] = _middle(lowering)
        return made

    return lower


_CORRECTION = Attribute(
    "correction", 1, "int", doc="Number that is subtracted from the number of elements."
)
_SPREAD: dict[str, Any] = {
    "inputs": ("input",),
    "attributes": (DIM, _CORRECTION, Attribute("keepdim", False, "bool", doc=KEEPDIM.doc)),
    "accuracy": ROW_ACCURACY,
}
_SPREAD_NOTES = (
    "Computed in float64 from the exact mean, and rounded once. With fewer elements than the correction it is NaN or "
    "infinite, as in PyTorch; in C-shaped calls infinite of more than one."
)

std = Operator(
    name="std",
    summary="Standard deviation over dimensions.",
    expression="√(Σ (x - mean)² / (n - correction)) over the n elements along dim",
    notes=_SPREAD_NOTES,
    entries=(entry("aclnnStd", "self=input dim:ints? correction:int keepdim:bool out:out"),),
    rules=(
        *require("input: FLOATING_AND_DOUBLE; cann input, out: FLOATING; out: cast of input"),
        KNOWN_DIMS,
        *require("input, out: at most 8 dims"),
        _fits_freely("out"),
    ),
    infer=lambda call: {"out": (call.dtype("input"), _free_shape(call, "out"))},
    lower=_lower_spread(root=True),
    example=("std(np.float32([1, 2, 3, 4]))", "array(1.2909944, dtype=float32)"),
    seealso=("var", "std_mean"),
    gradient={
        "input": "gradient_of_variance((grad / (2 * out)).masked_fill(out == 0, 0), input, dim, correction, keepdim)"
    },
    **_SPREAD,
)


def _with_mean(
    name: str,
    cann: str,
    summary: str,
    expression: str,
    found: str,
    *,
    root: bool,
    shape: Callable[[Call, str], Shape],
    rules: tuple[Rule, ...],
) -> Operator:
    first = name.partition("_")[0]
    return Operator(
        name=name,
        differentiable=False,
        summary=summary,
        expression=f"out = {expression}, mean = Σ x / n over the n elements along dim",
        notes=_SPREAD_NOTES,
        outputs=("out", "mean"),
        entries=(
            entry(
                f"aclnn{cann}",
                f"self=input dim:ints? correction:int keepdim:bool {first}Out=out:out meanOut=mean:out",
            ),
        ),
        rules=rules,
        infer=lambda call: {
            role: (call.dtype("input"), shape(call, role)) for role in ("out", "mean")
        },
        lower=_lower_spread(root=root),
        example=(
            f"{name}(np.float32([1, 2, 3, 4]))",
            f"(array({found}, dtype=float32), array(2.5, dtype=float32))",
        ),
        seealso=(first, "mean"),
        **_SPREAD,
    )


std_mean = _with_mean(
    "std_mean",
    "StdMeanCorrection",
    "Standard deviation and mean over dimensions.",
    "√(Σ (x - mean)² / (n - correction))",
    "1.2909944",
    root=True,
    shape=_free_shape,
    rules=(
        *require("input: FLOATING_AND_DOUBLE; cann input: FLOATING; out, mean: dtype of input"),
        KNOWN_DIMS,
        *require("input, out, mean: at most 8 dims"),
        _fits_freely("out"),
        _fits_freely("mean"),
    ),
)
var_mean = _with_mean(
    "var_mean",
    "VarMean",
    "Variance and mean over dimensions.",
    "Σ (x - mean)² / (n - correction)",
    "1.6666666",
    root=False,
    shape=lambda call, _: shape_left(call),
    rules=(
        *require("input: FLOATING_AND_DOUBLE; cann input, mean, out: FLOATING; out: cast of input"),
        *require("mean: cast of input"),
        KNOWN_DIMS,
        *require("input: at most 8 dims"),
        _fits_exactly("mean"),
        _fits_exactly("out"),
    ),
)


# --- Logarithms of sums ---------------------------------------------------------------------------


def _floating(call: Call) -> aclDataType:
    own = call.dtype("input")
    return own if own in FLOATING_AND_DOUBLE else _SINGLE


def _lower_logsumexp(lowering: Lowering) -> Mapping[str, int]:
    """In float64, with the largest element taken out of the sum where it is finite."""
    (dtype, shape), builder = lowering.results["out"], lowering.builder
    if 0 in lowering.call.shape("input"):
        return {"out": lowering.filled(-math.inf, dtype, shape)}
    own = _floating(lowering.call)
    value = in_runs(lowering, own)
    sizes = builder.value(value).shape
    most = builder.cast(chained(lowering, "amax", value, own, own), graph_dtype(_DOUBLE))
    kept = builder.value(most).shape
    nothing = lowering.filled(0, _DOUBLE, kept)
    rest = lowering.point("sub", [most, most], _DOUBLE, kept, params=(1.0,))
    finite = lowering.point("eq", [rest, nothing], _TRUTH, kept, reads="float64")
    most = lowering.point("where", [finite, most, nothing], _DOUBLE, kept, reads="float64")
    operands = [lowering.dense(one, _DOUBLE, sizes) for one in (value, most)]
    shifted = lowering.point("sub", operands, _DOUBLE, sizes, params=(1.0,))
    grown = lowering.point("exp", [shifted], _DOUBLE, sizes)
    total = chained(lowering, "sum", grown, _DOUBLE, _DOUBLE)
    made = lowering.point("log", [total], _DOUBLE, kept)
    made = lowering.point("add", [made, most], _DOUBLE, kept, params=(1.0,))
    made = builder.cast(made, graph_dtype(dtype))
    return {"out": builder.view(made, shape, contiguous_strides(shape))}


@rule("the result's dtype can be cast to that of `out`", "out", "input")
def _is_castable(call: Call) -> str | None:
    result = _floating(call)
    if "out" not in call.tensors or dtypes.can_cast(result, call.dtype("out")):
        return None
    return f"{call.typed('out')}, to which {call.word(result)} cannot be cast"


logsumexp = Operator(
    name="logsumexp",
    summary="Logarithm of the sum of exponentials over dimensions.",
    expression="ln Σ e^x over the elements along dim",
    notes=(
        "Computed in float64, of integers and BOOL with a float32 result. Of infinities alone it is that infinity, "
        "of no elements -Inf."
    ),
    inputs=("input",),
    attributes=(
        argument("dim", REQUIRED, "ints", DIM.doc),
        KEEPDIM,
    ),
    entries=(entry("aclnnLogSumExp", "self=input dim:ints keepDim=keepdim:bool out:out"),),
    rules=(
        *require("input: REAL; cann input: FLOATING INTEGERS BOOL; cann out: FLOATING"),
        _is_castable(),
        KNOWN_DIMS,
        *require("input, out: at most 8 dims"),
        _fits_exactly("out"),
    ),
    infer=lambda call: {"out": (_floating(call), shape_left(call))},
    lower=_lower_logsumexp,
    example=(
        "logsumexp(np.float32([[0, 0], [3, 3]]), 1)",
        "array([0.6931472, 3.6931472], dtype=float32)",
    ),
    accuracy="Computed in float64 and rounded once.",
    seealso=("softmax", "log_softmax"),
    gradient={
        "input": "repeated_along(grad, input, dim, keepdim) * aten.exp(input - repeated_along(out, input, dim, keepdim))"
    },
)


# --- Both extremes --------------------------------------------------------------------------------


def _one_or_left(call: Call, role: str) -> Shape:
    """In C-shaped calls any two shapes of one element are equal."""
    shape = shape_left(call)
    if call.c_shaped and role in call.tensors and math.prod(shape) == 1 == call.tensors[role].size:
        return call.shape(role)
    return shape


@rule("`input` has elements along `dim`", "input")
def _has_extremes(call: Call) -> str | None:
    own = call.shape("input")
    if all(own[axis] for axis in reduced_axes(call)):
        return None
    return f"{call.names['input']} has shape {own}, without an element to be an extreme"


_EXTREMES = ("out", "largest")


def _aminmax(name: str, item: tuple[str, str], kind: str, **more: Any) -> Operator:
    """Over dimensions as an option of this kind has them; without one, over all."""
    outputs = "minOut=out:out maxOut=largest:out"
    return Operator(
        name=name,
        differentiable=False,
        expression="out = min x, largest = max x over the elements along dim",
        notes="If any element is NaN, both are NaN.",
        inputs=("input",),
        outputs=_EXTREMES,
        attributes=(
            Attribute("dim", None, kind, doc="Dimensions; None means all."),
            Attribute("keepdim", False, "bool", doc=KEEPDIM.doc),
        )
        if kind
        else (),
        entries=(entry(item[0], f"self=input {item[1]}{outputs}"),),
        rules=(
            *require("input: REAL"),
            *[same_dtype(role, "input") for role in _EXTREMES],
            *require("input, out, largest: at most 8 dims"),
            *((KNOWN_DIMS, _has_extremes()) if kind else ()),
            *require("input: if empty ends"),
            _has_extremes(),
            *[
                _fits(role, _one_or_left, "; in C-shaped calls, any single element will do for one")
                for role in _EXTREMES
            ],
        ),
        infer=lambda call: {
            role: (call.dtype("input"), _one_or_left(call, role)) for role in _EXTREMES
        },
        lower=lambda lowering: {
            role: work(lowering, *lowering.results[role])
            for role, work in zip(_EXTREMES, (smallest, largest), strict=True)
            if lowering.wants(role)
        },
        accuracy="Results are exact.",
        seealso=("amin", "amax"),
        **more,
    )


aminmax = _aminmax(
    "aminmax",
    ("aclnnAminmax", "dim:ints keepDim=keepdim:bool "),
    "ints",
    summary="The smallest and the largest elements along dimensions.",
    example=(
        "aminmax(np.float32([[1, 2], [4, 3]]), dim=1)",
        "(array([1., 3.], dtype=float32), array([2., 4.], dtype=float32))",
    ),
)
aminmax_dim = _aminmax(
    "aminmax_dim",
    ("aclnnAminmaxDim", "dim:int keepDim=keepdim:bool "),
    "int",
    functional=False,
    form_of="aminmax",
    summary="The smallest and the largest elements along a dimension.",
    example=(
        "aminmax_dim(np.float32([[1, 2], [4, 3]]), dim=1)",
        "(array([1., 3.], dtype=float32), array([2., 4.], dtype=float32))",
    ),
)
aminmax_all = _aminmax(
    "aminmax_all",
    ("aclnnAminmaxAll", ""),
    "",
    functional=False,
    form_of="aminmax",
    summary="The smallest and the largest element.",
    example=(
        "aminmax_all(np.float32([2, 3]))",
        "(array(2., dtype=float32), array(3., dtype=float32))",
    ),
)
