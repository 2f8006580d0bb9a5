"""Layer norm, its gradient, and RMS norm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from aclnn.acl.constants import (
    ACLNN_ERR_INNER_TILING_ERROR,
    ACLNN_ERR_PARAM_NULLPTR,
    aclDataType,
)
from aclnn.operators.checks import (
    MAX_DIMS,
    Call,
    Rule,
    at_most_8_dims,
    dtype_among,
    exists_on,
    rule,
    same_shape,
)
from aclnn.operators.declaration import (
    GRADIENT_ACCURACY,
    REQUIRED,
    ROW_ACCURACY,
    Operator,
    argument,
    entry,
)
from aclnn.operators.lowering import Lowering
from aclnn.operators.sizes import like_input
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]

LAYER_NORM_PRODUCTS = ("Ascend950", "Ascend910_93", "Ascend910B", "Ascend910")
RMS_NORM_PRODUCTS = ("Ascend950", "Ascend910_93", "Ascend910B", "Ascend310P")
# What PyTorch takes for no epsilon: that of float32, in which it computes halves too.
_FLOAT_EPSILON = 2.0**-23

_SHAPE = argument(
    "normalized_shape",
    REQUIRED,
    "ints",
    "Sizes of the trailing dimensions that are normalized together.",
)
_EPS = argument("eps", 1e-5, "float", "Added to the variance.")
# A shape, and statistics, for tensors of two elements.
_PAIRS = {"normalized_shape": (2,), "mean": {"shape": (1,)}, "rstd": {"shape": (1,)}}
_MASK = argument(
    "output_mask",
    (True, True, True),
    "bools",
    "Which of the three gradients to compute; the others are None.",
)


# --- Shapes -------------------------------------------------------------------------------------


def normalized(call: Call) -> Shape:
    """The trailing dimensions that belong together: those of `gamma`, or as the option says."""
    if "gamma" in call.tensors:
        return call.shape("gamma")
    return call.switches["normalized_shape"]  # type: ignore[return-value]


def leading(call: Call, role: str) -> Shape:
    shape = call.shape(role)
    return shape[: len(shape) - len(normalized(call))]


def statistic(call: Call, role: str, like: str) -> Shape:
    """The shape of a mean or rstd: as given, or the leading dimensions, then ones."""
    if role in call.tensors:
        return call.shape(role)
    return (*leading(call, like), *[1] * len(normalized(call)))


# --- Rules --------------------------------------------------------------------------------------


def _test_length(call: Call) -> str | None:
    count = len(normalized(call))
    if 1 <= count <= MAX_DIMS:
        return None
    return f"{call.names['normalized_shape']} has {count} sizes, must have from 1 to {MAX_DIMS}"


@rule("the shape of `{role}` ends in `normalized_shape`")
def _trails(call: Call, role: str) -> str | None:
    requested, shape = normalized(call), call.shape(role)
    if shape[len(shape) - len(requested) :] == requested and len(shape) >= len(requested):
        return None
    name = call.names["normalized_shape"]
    return f"{call.names[role]} has shape {shape}, which does not end in {name}, {requested}"


@rule("`{role}` has the shape `normalized_shape`")
def _has_normalized_shape(call: Call, role: str) -> str | None:
    requested = normalized(call)
    if role not in call.tensors or call.shape(role) == requested:
        return None
    return f"{call.shaped(role)}, must have {requested}"


def one_for_each_row(role: str, like: str, exact_on: tuple[str, ...] = ()) -> Rule:
    def test(call: Call) -> str | None:
        if role not in call.tensors:
            return None
        lead = leading(call, like)
        shape, requested = call.shape(role), (*lead, *[1] * len(normalized(call)))
        if shape == requested:
            return None
        if call.soc in exact_on:
            return f"{call.names[role]} has shape {shape}, must have {requested}"
        if math.prod(shape) == math.prod(lead):
            return None
        return f"{call.names[role]} has shape {shape}, must have {math.prod(lead)} elements"

    unless = f", and the shape [leading, 1...] on {', '.join(exact_on)}" if exact_on else ""
    text = f"`{role}` has an element for each row that is normalized{unless}"
    return Rule(text, test, (role, like))


def _test_mask(call: Call) -> str | None:
    count = len(call.switches["output_mask"])  # type: ignore[arg-type]
    return None if count == 3 else f"{call.names['output_mask']} has {count} elements, must have 3"


@rule("`{role}` is not null where `output_mask` asks for it", status=ACLNN_ERR_PARAM_NULLPTR)
def _given_where_wanted(call: Call, role: str, index: int) -> str | None:
    requested = call.switches["output_mask"][index]  # type: ignore[index]
    if not requested or role in call.tensors or call.makes_absent:
        return None
    return f"{call.names[role]} is null, but outputMask[{index}] is true"


_LENGTH = Rule(
    f"`normalized_shape` has from 1 to {MAX_DIMS} sizes", _test_length, ("normalized_shape",)
)
_NORM_RULES = require(
    "input: FLOATING; weight, bias: FLOAT or dtype of input; bias: dtype of weight"
)
_NORM_SHAPES = (
    _LENGTH,
    _trails("input"),
    _has_normalized_shape("weight"),
    _has_normalized_shape("bias"),
    *require("out: shape of input"),
)


# --- Layer norm ---------------------------------------------------------------------------------


def _infer_all_of_layer_norm(call: Call) -> Inferred:
    # Statistics are rounded once, to the dtype that they are wanted in.
    single = aclDataType.ACL_FLOAT
    return {
        **like_input(call),
        **{
            role: (
                call.dtype(role) if role in call.tensors else single,
                statistic(call, role, "input"),
            )
            for role in ("mean", "rstd")
        },
    }


def _lower_layer_norm(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    lead, cols = leading(call, "input"), math.prod(normalized(call))
    statistics = [role for role in ("mean", "rstd") if lowering.wants(role)]
    if cols == 0:
        empty = {"mean": 0.0, "rstd": math.nan}
        return {r: lowering.filled(empty[r], *lowering.results[r]) for r in statistics}
    parameters = [role for role in ("weight", "bias") if lowering.has(role)]
    made = lowering.rows(
        "layer_norm",
        [
            lowering.dense(lowering.reshaped("input", (*lead, cols))),
            *[as_columns(lowering, role, len(lead), cols) for role in parameters],
        ],
        [
            (call.dtype("input"), (*lead, cols)),
            *[(lowering.results[role][0], (*lead, 1)) for role in statistics],
        ],
        -1,
        params=(lowering.number("eps", "exact"),),
        present=(*parameters, *statistics),
    )
    return as_results(lowering, ("out", *statistics), made)


def as_columns(lowering: Lowering, role: str, lead: int, cols: int) -> int:
    """A parameter as one row for all."""
    return lowering.dense(lowering.reshaped(role, (*[1] * lead, cols)))


def as_results(
    lowering: Lowering, roles: tuple[str, ...], made: tuple[int, ...]
) -> Mapping[str, int]:
    """Results of row-wise kernels, in the shapes that the results have."""
    return {
        role: lowering.reshaped(value, lowering.results[role][1])
        for role, value in zip(roles, made, strict=True)
        if lowering.wants(role)
    }


LAYER_NORM = "(x - mean)·rstd·weight + bias, rstd = 1/√(var + eps), var = Σ(x - mean)²/N"
_LAYER_NORM_ORDER = ("input", "normalized_shape", "weight", "bias", "eps")

native_layer_norm = Operator(
    name="native_layer_norm",
    summary="Layer norm with the mean and the inverse deviation of each row.",
    expression=LAYER_NORM,
    notes=(
        "The weight defaults to 1, the bias to 0. Mean and rstd are float32 unless arrays of "
        "float16 or bfloat16 are given for them; they are computed in float64 and rounded once. "
        "A row without elements has mean 0 and rstd NaN."
    ),
    inputs=("input", "weight", "bias"),
    outputs=("out", "mean", "rstd"),
    optional=("weight", "bias", "mean", "rstd"),
    sample_specs=_PAIRS,
    attributes=(_SHAPE, _EPS),
    parameters=_LAYER_NORM_ORDER,
    entries=(
        entry(
            "aclnnLayerNorm",
            "input normalizedShape:ints weightOptional=weight:in? biasOptional=bias:in? eps:float "
            "out:out meanOutOptional=mean:out? rstdOutOptional=rstd:out?",
        ),
    ),
    rules=(
        exists_on(LAYER_NORM_PRODUCTS),
        *_NORM_RULES,
        *require("out, mean, rstd: FLOATING; input, weight, bias, out, mean, rstd: at most 8 dims"),
        *_NORM_SHAPES,
        one_for_each_row("mean", "input", exact_on=("Ascend950",)),
        one_for_each_row("rstd", "input", exact_on=("Ascend950",)),
    ),
    infer=_infer_all_of_layer_norm,
    lower=_lower_layer_norm,
    example=(
        "native_layer_norm(np.float32([-1, 1]), (2,), eps=0.0)",
        "(array([-1.,  1.], dtype=float32), array([0.], dtype=float32), "
        "array([1.], dtype=float32))",
    ),
    seealso=("layer_norm", "native_layer_norm_backward"),
    accuracy=ROW_ACCURACY,
    gradient={
        "input, weight, bias": "native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, bias, needed)"
    },
    chunking="last_axes",
)

layer_norm = Operator(
    name="layer_norm",
    summary="Layer norm: trailing dimensions with mean 0 and variance 1.",
    expression=LAYER_NORM,
    notes="The weight defaults to 1, the bias to 0.",
    inputs=("input", "weight", "bias"),
    optional=("weight", "bias"),
    sample_specs=_PAIRS,
    attributes=(_SHAPE, _EPS),
    parameters=_LAYER_NORM_ORDER,
    entries=(),
    rules=(
        exists_on(LAYER_NORM_PRODUCTS),
        *_NORM_RULES,
        *require("out: FLOATING; input, weight, bias, out: at most 8 dims"),
        *_NORM_SHAPES,
    ),
    infer=like_input,
    lower=_lower_layer_norm,
    example=(
        "layer_norm(np.float32([-1, 1]), (2,), eps=0.0)",
        "array([-1.,  1.], dtype=float32)",
    ),
    seealso=("native_layer_norm",),
    accuracy=ROW_ACCURACY,
    differentiated_as="native_layer_norm(input, normalized_shape, weight, bias, eps)[0]",
    chunking="last_axes",
)


# --- Its gradient -------------------------------------------------------------------------------

_GRADIENTS = ("grad_input", "grad_weight", "grad_bias")


def _infer_gradients(call: Call) -> Inferred:
    own = call.dtype("input")
    parameter = next((call.dtype(r) for r in ("weight", "bias") if r in call.tensors), own)
    sizes = normalized(call)
    found = (
        (own, call.shape("input")),
        (parameter, sizes),
        (parameter, sizes),
    )
    mask = call.switches["output_mask"]
    assert isinstance(mask, tuple)
    return {
        role: made
        for role, made, requested in zip(_GRADIENTS, found, mask, strict=True)
        if requested
    }


def _lower_gradients(lowering: Lowering) -> Mapping[str, int]:
    made = _gradient_of_input(lowering) if lowering.wants("grad_input") else {}
    return {**made, **_gradients_of_parameters(lowering)}


def _gradient_of_input(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    lead, cols = leading(call, "input"), math.prod(normalized(call))
    weight = ("weight",) if lowering.has("weight") else ()
    made = lowering.rows(
        "layer_norm_backward_input",
        [
            *[lowering.dense(lowering.reshaped(r, (*lead, cols))) for r in ("grad_out", "input")],
            *[lowering.dense(lowering.reshaped(r, (*lead, 1))) for r in ("mean", "rstd")],
            *[as_columns(lowering, role, len(lead), cols) for role in weight],
        ],
        [(lowering.results["grad_input"][0], (*lead, cols))],
        -1,
        present=weight,
    )
    return as_results(lowering, ("grad_input",), made)


def _gradients_of_parameters(lowering: Lowering) -> Mapping[str, int]:
    """Sums over all rows: their reduction runs along the leading dimensions, as one."""
    roles = [role for role in _GRADIENTS[1:] if lowering.wants(role)]
    call = lowering.call
    lead, cols = math.prod(leading(call, "input")), math.prod(normalized(call))
    if lead == 0 or not roles:
        return {role: lowering.filled(0.0, *lowering.results[role]) for role in roles}
    shapes = {"grad_out": (lead, cols), "input": (lead, cols), "mean": (lead, 1), "rstd": (lead, 1)}
    taken = tuple(shapes) if "grad_weight" in roles else ("grad_out",)
    made = lowering.rows(
        "layer_norm_backward_params",
        [lowering.dense(lowering.reshaped(role, shapes[role])) for role in taken],
        [(lowering.results[role][0], (1, cols)) for role in roles],
        -2,
        present=tuple([role.replace("grad_", "d") for role in roles]),
    )
    return as_results(lowering, tuple(roles), made)


native_layer_norm_backward = Operator(
    name="native_layer_norm_backward",
    summary="Gradients of layer norm for its input, weight and bias.",
    expression=(
        "with h = (x - mean)·rstd and q = g·weight: grad_input = rstd·(q - mean(q) - h·mean(q·h)), "
        "grad_weight = Σ g·h and grad_bias = Σ g over the rows"
    ),
    notes=(
        "Gradients of parameters have the parameters' dtype, or that of `input` if there are none."
    ),
    inputs=("grad_out", "input", "mean", "rstd", "weight", "bias"),
    outputs=_GRADIENTS,
    optional=("weight", "bias", *_GRADIENTS),
    sample_specs=_PAIRS,
    attributes=(_SHAPE, _MASK),
    parameters=(
        "grad_out",
        "input",
        "normalized_shape",
        "mean",
        "rstd",
        "weight",
        "bias",
        "output_mask",
    ),
    entries=(
        entry(
            "aclnnLayerNormBackward",
            "gradOut input normalizedShape:ints mean rstd weightOptional=weight:in? "
            "biasOptional=bias:in? outputMask:bools gradInputOut=grad_input:out? "
            "gradWeightOut=grad_weight:out? gradBiasOut=grad_bias:out?",
        ),
    ),
    rules=(
        Rule("`output_mask` has 3 elements", _test_mask, ("output_mask",)),
        *[_given_where_wanted(role, place) for place, role in enumerate(_GRADIENTS)],
        exists_on(LAYER_NORM_PRODUCTS),
        *require("grad_out: FLOATING; input: dtype of grad_out; mean, rstd: FLOATING"),
        *_NORM_RULES[1:],
        *[dtype_among(role) for role in _GRADIENTS],
        *require("grad_out, input, mean, rstd, weight, bias: at most 8 dims"),
        _LENGTH,
        _trails("input"),
        *require("grad_out: shape of input"),
        one_for_each_row("mean", "input"),
        one_for_each_row("rstd", "input"),
        _has_normalized_shape("weight"),
        _has_normalized_shape("bias"),
        *require("grad_input: shape of input"),
        _has_normalized_shape("grad_weight"),
        _has_normalized_shape("grad_bias"),
    ),
    infer=_infer_gradients,
    lower=_lower_gradients,
    accuracy=GRADIENT_ACCURACY,
    example=(
        "native_layer_norm_backward(np.float32([4, 0, 0, 0]), np.float32([-1, 1, -1, 1]), (4,), "
        "np.float32([0]), np.float32([1]))",
        "(array([ 2.,  0., -2.,  0.], dtype=float32), array([-4.,  0.,  0.,  0.], dtype=float32), "
        "array([4., 0., 0., 0.], dtype=float32))",
    ),
    seealso=("native_layer_norm",),
    chunking="summed_weights",
)


# --- RMS norm -----------------------------------------------------------------------------------


def wrong_shape(rule: Rule) -> Rule:
    """Shapes that do not fit are found where the work is divided."""
    return replace(rule, status=ACLNN_ERR_INNER_TILING_ERROR)


def gamma_trails(like: str) -> Rule:
    def test(call: Call) -> str | None:
        x, gamma = call.shape(like), call.shape("gamma")
        if 1 <= len(gamma) <= len(x) and x[len(x) - len(gamma) :] == gamma and 0 not in gamma:
            return None
        return (
            f"{call.names['gamma']} has shape {gamma}, must have that of the last dimensions of "
            f"{call.names[like]}, {x}, and not be empty"
        )

    text = f"`gamma` has the shape of the last dimensions of `{like}`"
    return wrong_shape(Rule(text, test, ("gamma", like)))


def has_leading_shape(role: str, like: str, *, ones: bool = True) -> Rule:
    """`ones`: whether it has all those that follow."""

    def test(call: Call) -> str | None:
        if role not in call.tensors:
            return None
        requested, arguments = (
            (*leading(call, like), *[1] * len(call.shape("gamma"))),
            call.shape(role),
        )
        if arguments == requested:
            return None
        if (
            not ones
            and arguments == requested[: len(arguments)]
            and set(requested[len(arguments) :]) <= {1}
        ):
            return None
        return f"{call.shaped(role)}, must have {requested}"

    text = f"`{role}` has the leading dimensions of `{like}`, then ones"
    text += "" if ones else ", of which the last may be missing"
    return wrong_shape(Rule(text, test, (role, like)))


def _infer_rms_norm(call: Call) -> Inferred:
    role = "x" if "x" in call.tensors else "input"
    return {"out": (call.dtype(role), call.shape(role))}


def _infer_both_of_rms_norm(call: Call) -> Inferred:
    single = aclDataType.ACL_FLOAT
    return {**_infer_rms_norm(call), "rstd": (single, statistic(call, "rstd", "x"))}


def _lower_rms_norm(lowering: Lowering, x: str, gamma: str, epsilon: str) -> Mapping[str, int]:
    call = lowering.call
    lead, cols = leading(call, x), math.prod(normalized(call))
    columns = [as_columns(lowering, gamma, len(lead), cols)] if lowering.has(gamma) else []
    statistics = ["rstd"] if lowering.wants("rstd") else []
    # None is handed on as a negative number.
    number = _FLOAT_EPSILON if call.scalars[epsilon].negative else lowering.number(epsilon, "exact")
    made = lowering.rows(
        "rms_norm",
        [lowering.dense(lowering.reshaped(x, (*lead, cols))), *columns],
        [
            (call.dtype(x), (*lead, cols)),
            *[(lowering.results[role][0], (*lead, 1)) for role in statistics],
        ],
        -1,
        params=(number,),
        present=(*(["gamma"] if columns else []), *statistics),
    )
    return as_results(lowering, ("out", *statistics), made)


def _lower_gradients_of_rms_norm(lowering: Lowering) -> Mapping[str, int]:
    made = _rms_gradient_of_input(lowering) if lowering.wants("grad_input") else {}
    return {**made, **_gradient_of_gamma(lowering)}


def _rms_gradient_of_input(lowering: Lowering) -> Mapping[str, int]:
    lead, cols = leading(lowering.call, "x"), math.prod(normalized(lowering.call))
    made = lowering.rows(
        "rms_norm_backward_input",
        [
            *[lowering.dense(lowering.reshaped(r, (*lead, cols))) for r in ("grad_output", "x")],
            lowering.dense(lowering.reshaped("rstd", (*lead, 1))),
            as_columns(lowering, "gamma", len(lead), cols),
        ],
        [(lowering.results["grad_input"][0], (*lead, cols))],
        -1,
        present=("gamma",),
    )
    return as_results(lowering, ("grad_input",), made)


def _gradient_of_gamma(lowering: Lowering) -> Mapping[str, int]:
    """A sum over all rows: its reduction runs along the leading dimensions, as one."""
    rows, cols = (
        math.prod(sizes) for sizes in (leading(lowering.call, "x"), normalized(lowering.call))
    )
    if rows == 0:
        return {"grad_gamma": lowering.filled(0.0, *lowering.results["grad_gamma"])}
    shapes = {"grad_output": (rows, cols), "x": (rows, cols), "rstd": (rows, 1)}
    made = lowering.rows(
        "rms_norm_backward_gamma",
        [lowering.dense(lowering.reshaped(role, shape)) for role, shape in shapes.items()],
        [(lowering.results["grad_gamma"][0], (1, cols))],
        -2,
    )
    return as_results(lowering, ("grad_gamma",), made)


def _test_rank(call: Call) -> str | None:
    rank = len(call.shape("x"))
    if 2 <= rank <= MAX_DIMS:
        return None
    return f"{call.names['x']} has {rank} dimensions, must have from 2 to {MAX_DIMS}"


RMS_NORM = "x·rstd·gamma, rstd = 1/√(Σx²/N + eps)"

native_rms_norm = Operator(
    name="native_rms_norm",
    summary="RMS norm with the inverse root of each row's mean square.",
    expression=RMS_NORM,
    notes="It normalizes over the trailing dimensions that `gamma` has. rstd is float32.",
    inputs=("x", "gamma"),
    outputs=("out", "rstd"),
    attributes=(argument("epsilon", 1e-6, "float", "Added to the mean square."),),
    entries=(entry("aclnnRmsNorm", "x gamma epsilon:float yOut=out:out rstdOut=rstd:out"),),
    rules=(
        exists_on(RMS_NORM_PRODUCTS),
        *require("x: FLOATING; gamma: FLOAT or dtype of x; out: dtype of x; rstd: FLOAT"),
        wrong_shape(at_most_8_dims("x", "gamma", "out", "rstd")),
        gamma_trails("x"),
        wrong_shape(same_shape("out", "x")),
        has_leading_shape("rstd", "x", ones=False),
    ),
    infer=_infer_both_of_rms_norm,
    lower=lambda lowering: _lower_rms_norm(lowering, "x", "gamma", "epsilon"),
    example=(
        "native_rms_norm(np.float32([2, 2]), np.float32([1, 3]), 0.0)",
        "(array([1., 3.], dtype=float32), array([0.5], dtype=float32))",
    ),
    seealso=("rms_norm", "rms_norm_backward"),
    accuracy=ROW_ACCURACY,
    gradient={
        "x, gamma": "rms_norm_backward(grad.reshape(-1, *gamma.shape), x.reshape(-1, *gamma.shape), gamma, rstd)"
    },
    chunking="weight_1",
)

rms_norm_backward = Operator(
    name="rms_norm_backward",
    summary="Gradients of RMS norm for its input and gamma.",
    expression=(
        "with h = x·rstd and q = g·gamma: grad_input = rstd·(q - h·mean(q·h)), and "
        "grad_gamma = Σ g·h over the rows"
    ),
    notes=(
        "rstd is the result of `native_rms_norm`, of any shape with as many elements; it is "
        "float32, as "
        "the gradient of gamma is. Rows have the trailing dimensions that `gamma` has."
    ),
    inputs=("grad_output", "x", "gamma", "rstd"),
    outputs=("grad_input", "grad_gamma"),
    sample_specs=specs("x, grad_output: [1,2]; rstd: FLOAT[1]"),
    entries=(
        entry(
            "aclnnRmsNormGrad",
            "dy=grad_output x rstd gamma dxOut=grad_input:out dgammaOut=grad_gamma:out",
        ),
    ),
    rules=(
        exists_on(RMS_NORM_PRODUCTS),
        *require("grad_output: FLOATING; x: dtype of grad_output; rstd: FLOAT"),
        *require("gamma: FLOAT or dtype of x; grad_input: dtype of x; grad_gamma: FLOAT"),
        wrong_shape(Rule(f"`x` has from 2 to {MAX_DIMS} dimensions", _test_rank, ("x",))),
        gamma_trails("x"),
        wrong_shape(same_shape("grad_output", "x")),
        wrong_shape(one_for_each_row("rstd", "x")),
        wrong_shape(same_shape("grad_input", "x")),
        wrong_shape(same_shape("grad_gamma", "gamma")),
    ),
    lower=_lower_gradients_of_rms_norm,
    example=(
        "rms_norm_backward(np.float32([[1, -1]]), np.float32([[2, 2]]), np.float32([1, 1]), "
        "np.float32([0.5]))",
        "(array([[ 0.5, -0.5]], dtype=float32), array([ 1., -1.], dtype=float32))",
    ),
    accuracy=GRADIENT_ACCURACY,
    seealso=("native_rms_norm",),
    chunking="summed_weights",
)

rms_norm = Operator(
    name="rms_norm",
    summary="RMS norm: trailing dimensions with mean square 1.",
    expression=RMS_NORM,
    notes="Without an `eps`, or with a negative one, it is that of float32, 2⁻²³, as in PyTorch.",
    inputs=("input", "weight"),
    optional=("weight",),
    sample_specs=_PAIRS,
    attributes=(
        _SHAPE,
        argument("eps", None, "float", "Added to the mean square."),
    ),
    parameters=("input", "normalized_shape", "weight", "eps"),
    entries=(),
    rules=(
        exists_on(RMS_NORM_PRODUCTS),
        *require("input: FLOATING; weight: FLOAT or dtype of input; out: FLOATING"),
        *require("input, weight, out: at most 8 dims"),
        _LENGTH,
        _trails("input"),
        _has_normalized_shape("weight"),
        *require("out: shape of input"),
    ),
    infer=_infer_rms_norm,
    lower=lambda lowering: _lower_rms_norm(lowering, "input", "weight", "eps"),
    example=("rms_norm(np.float32([3, -3]), (2,), eps=0.0)", "array([ 1., -1.], dtype=float32)"),
    seealso=("native_rms_norm",),
    accuracy=ROW_ACCURACY,
    differentiated_as=(
        "native_rms_norm(input, input.new_ones(normalized_shape) if weight is None else "
        "weight, 2**-23 if eps is None or eps < 0 else eps)[0]"
    ),
    keeps_channels_last=True,
    chunking="last_axes",
)
