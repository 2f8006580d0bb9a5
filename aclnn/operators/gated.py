"""Gated linear units and their gradients."""

from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl.constants import ACLNN_ERR_INNER_TILING_ERROR, aclDataType
from aclnn.operators.checks import (
    NOTHING_TO_DO,
    Call,
    Rule,
    answering,
    axis_of,
    dtype_among,
    exists_on,
    has_shape,
    rule,
    same_dtype,
    switch_among,
    when,
)
from aclnn.operators.declaration import Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.sizes import rank_from
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]
Lower = Callable[[Lowering], Mapping[str, int]]

_DIM = argument("dim", -1, "int", "The dimension along which `input` is split in two.")
_SILU = "silu(a)·b, a and b the halves of `input` along `dim`, silu(a) = a/(1 + exp(-a))"
_HALF = "the shape of `input` with half the size along `dim`"


# --- Halves -------------------------------------------------------------------------------------


def _axis(call: Call) -> int:
    """Axis of the halves: the last dimension unless there is an option for it."""
    return axis_of(call, "input") if "dim" in call.switches else len(call.shape("input")) - 1


def half_shape(call: Call) -> Shape:
    """The shape of `input` with half the size along `dim`."""
    shape = call.shape("input")
    if not shape:  # operators that take no dimensions at all have nothing to split
        return shape
    axis = _axis(call)
    return (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])


def _half_views(lowering: Lowering, value: int) -> tuple[int, int]:
    """Views of the halves of a value with the shape of `input`; of its pairs, where it has these."""
    builder, call = lowering.builder, lowering.call
    half, axis = half_shape(call), _axis(call)
    strides = list(builder.value(value).strides)
    step = strides[axis] * (1 if call.switches.get("interleaved") else half[axis])
    if call.switches.get("interleaved"):
        strides[axis] *= 2
    return builder.view(value, half, strides), builder.view(value, half, strides, step)


def halves(lowering: Lowering) -> tuple[int, int]:
    """The halves of `input`."""
    first, second = _half_views(lowering, lowering.value("input"))
    return lowering.dense(first), lowering.dense(second)


def _joined(lowering: Lowering, first: int, second: int) -> Mapping[str, int]:
    """Each half of the input has its gradient, which is a half of the result."""
    builder, (dtype, _) = lowering.builder, lowering.results["out"]
    both = builder.buffer("gradients", lowering.call.shape("input"), graph_dtype(dtype))
    for gradient, part in zip((first, second), _half_views(lowering, both), strict=True):
        builder.view_copy(gradient, part)
    return {"out": both}


def _numbers(lowering: Lowering) -> tuple[Any, ...]:
    return tuple([lowering.number(role, "exact") for role in lowering.call.scalars])


def _of_halves(formula: str, expression: str, order: str = "ab") -> Lower:
    """Lowering of a unit that is one formula of both halves, in the order in which it takes them."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, half = lowering.call.dtype("input"), half_shape(lowering.call)
        taken = dict(zip("ab", halves(lowering), strict=True))
        operands, params = [taken[name] for name in order], _numbers(lowering)
        made = lowering.point(formula, operands, dtype, half, params=params, expression=expression)
        return {"out": made}

    return lower


def _gradients_of_halves(formula_a: str, of_a: str, formula_b: str, of_b: str) -> Lower:
    """Lowering of a gradient: for each half a formula, and which of g, a, b it takes."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        (dtype, _), half = lowering.results["out"], half_shape(lowering.call)
        taken = dict(zip("gab", (lowering.dense("grad_output"), *halves(lowering)), strict=True))
        first, second = (
            lowering.point(
                formula, [taken[name] for name in names], dtype, half, params=_numbers(lowering)
            )
            for formula, names in ((formula_a, of_a), (formula_b, of_b))
        )
        return _joined(lowering, first, second)

    return lower


# --- SwiGLU -------------------------------------------------------------------------------------

_SPLIT_RULES = answering(
    ACLNN_ERR_INNER_TILING_ERROR,
    *require("input: at most 8 dims; input: dims; dim: dim of input; input: even along dim"),
)

swiglu = Operator(
    name="swiglu",
    summary="Gated linear unit whose gate is SiLU.",
    expression=_SILU,
    notes="The first half is the gate.",
    lower=_of_halves("times_silu", _SILU, "ba"),
    inputs=("input",),
    attributes=(_DIM,),
    entries=(entry("aclnnSwiGlu", "x=input dim:int out:out"),),
    rules=(
        *require("input: FLOATING; out: dtype of input"),
        *_SPLIT_RULES,
        *answering(
            ACLNN_ERR_INNER_TILING_ERROR,
            has_shape("out", half_shape, _HALF),
        ),
    ),
    example=("swiglu(np.float32([0, 1, 5, 2]))", "array([0.       , 1.4621172], dtype=float32)"),
    seealso=("swiglu_backward",),
    gradient={"input": "swiglu_backward(grad, input, dim)"},
    chunking="halved",
)

swiglu_backward = Operator(
    name="swiglu_backward",
    summary="Gradient of the gated linear unit whose gate is SiLU.",
    expression="g·b·silu'(a), then g·silu(a), along `dim`",
    lower=_gradients_of_halves("swiglu_backward_a", "gab", "times_silu", "ga"),
    inputs=("grad_output", "input"),
    sample_specs=specs("grad_output: [1]"),
    attributes=(_DIM,),
    entries=(entry("aclnnSwiGluGrad", "yGrad=grad_output x=input dim:int out:out"),),
    rules=(
        *require("grad_output: FLOATING; input, out: dtype of grad_output"),
        *_SPLIT_RULES,
        *answering(
            ACLNN_ERR_INNER_TILING_ERROR,
            has_shape("grad_output", half_shape, _HALF),
            *require("out: shape of input"),
        ),
    ),
    example=(
        "swiglu_backward(np.float32([1]), np.float32([0, 2]))",
        "array([1., 0.], dtype=float32)",
    ),
    seealso=("swiglu",),
    chunking="halved",
)


# --- GLU ----------------------------------------------------------------------------------------

_GLU = "a·sigmoid(b), a and b the halves of `input` along `dim`, sigmoid(b) = 1/(1 + exp(-b))"

glu = Operator(
    name="glu",
    summary="Gated linear unit: the first half times the sigmoid of the second.",
    expression=_GLU,
    lower=_of_halves("glu", _GLU),
    inputs=("input",),
    attributes=(_DIM,),
    entries=(entry("aclnnGlu", "self=input dim:int out:out"),),
    rules=(
        *require("input, out: FLOATING_AND_DOUBLE; out: cast of input; input, out: at most 8 dims"),
        *require("input: dims; dim: dim of input; input: even along dim"),
        has_shape("out", half_shape, _HALF),
    ),
    example=("glu(np.float32([3, 8, 0, 0]))", "array([1.5, 4. ], dtype=float32)"),
    seealso=("glu_backward", "swiglu"),
    gradient={"input": "glu_backward(grad, input, dim)"},
    layout=("input",),
    chunking="halved",
)

glu_backward = Operator(
    name="glu_backward",
    summary="Gradient of the gated linear unit.",
    expression="g·sigmoid(b), then g·a·sigmoid(b)·(1 - sigmoid(b)), along `dim`",
    lower=_gradients_of_halves("glu", "gb", "glu_backward_b", "gab"),
    inputs=("grad_output", "input"),
    sample_specs=specs("grad_output: [1]"),
    attributes=(_DIM,),
    entries=(entry("aclnnGluBackward", "gradOut=grad_output self=input dim:int out:out"),),
    rules=(
        *require("grad_output: FLOATING_AND_DOUBLE; input, out: dtype of grad_output"),
        *require("grad_output, input, out: at most 8 dims; input: dims; dim: dim of input"),
        *require("input: even along dim"),
        has_shape("grad_output", half_shape, _HALF),
        *require("out: shape of input"),
    ),
    example=(
        "glu_backward(np.float32([1]), np.float32([2, 0]))",
        "array([0.5, 0.5], dtype=float32)",
    ),
    seealso=("glu",),
    chunking="halved",
)


# --- GeGLU --------------------------------------------------------------------------------------

_GEGLU = "a·gelu(b), gelu(b), a and b the halves of `input` along `dim`; from the left b·gelu(a)"
_APPROXIMATE = argument("approximate", 1, "int", "0: GELU with erf; 1: its form with tanh.")
_ACTIVATE_LEFT = argument("activate_left", False, "bool", "Whether GELU applies to the first half.")


@rule("if `{role}` has no dimensions there is nothing to do")
def _without_dims(call: Call, role: str) -> str | None:
    return None if call.shape(role) else NOTHING_TO_DO


def _same_dtype_unless_empty(role: str, like: str) -> Rule:
    return when(
        lambda call: call.shape(like) and call.tensors[like].size,
        same_dtype(role, like),
        "{} unless that is empty",
    )


@rule("`approximate` is 0 or 1")
def _approximate_is_known(call: Call) -> str | None:
    chosen = call.switches["approximate"]
    return None if chosen in (0, 1) else f"{call.names['approximate']} is {chosen}, must be 0 or 1"


def _gelu_formula(call: Call, formula: str) -> str:
    return f"{formula}_tanh" if call.switches["approximate"] in (1, "tanh") else formula


def _by_activation(lowering: Lowering) -> tuple[int, int]:
    """The half that is a factor, and the one that GELU is of."""
    first, second = halves(lowering)
    return (second, first) if lowering.call.switches.get("activate_left", True) else (first, second)


def _lower_geglu(lowering: Lowering) -> Mapping[str, int]:
    dtype, half = lowering.call.dtype("input"), half_shape(lowering.call)
    factor, activated = _by_activation(lowering)
    unit = _gelu_formula(lowering.call, "times_gelu")
    made = {"out": lowering.point(unit, (factor, activated), dtype, half, expression=_GEGLU)}
    if lowering.wants("out_gelu"):
        gelu = _gelu_formula(lowering.call, "gelu")
        made["out_gelu"] = lowering.point(gelu, (activated,), dtype, half)
    return made


def _lower_geglu_backward(lowering: Lowering) -> Mapping[str, int]:
    dtype, half = lowering.call.dtype("input"), half_shape(lowering.call)
    factor, activated = _by_activation(lowering)
    g, gelu = lowering.dense("grad_output"), lowering.dense("gelu")
    slope = _gelu_formula(lowering.call, "times_gelu_backward")
    of_factor = lowering.point("mul", (g, gelu), dtype, half)
    of_activated = lowering.point(slope, (g, factor, activated), dtype, half)
    if lowering.call.switches["activate_left"]:
        return _joined(lowering, of_activated, of_factor)
    return _joined(lowering, of_factor, of_activated)


geglu = Operator(
    name="geglu",
    summary="Gated linear unit whose gate is GELU, and that gate.",
    expression=_GEGLU,
    notes=(
        "The product uses the gate before rounding. A tensor without dimensions cannot be split: "
        "results stay unchanged."
    ),
    infer=lambda call: dict.fromkeys(("out", "out_gelu"), (call.dtype("input"), half_shape(call))),
    lower=_lower_geglu,
    inputs=("input",),
    outputs=("out", "out_gelu"),
    attributes=(_DIM, _APPROXIMATE, _ACTIVATE_LEFT),
    entries=(
        entry(
            "aclnnGeGlu",
            "self=input dim:int approximate:int out:out outGelu=out_gelu:out",
            activate_left=False,
        ),
        entry(
            "aclnnGeGluV3",
            "self=input dim:int approximate:int activateLeft:bool out:out outGelu=out_gelu:out",
        ),
    ),
    rules=(
        *[dtype_among(role) for role in ("input", "out", "out_gelu")],
        _same_dtype_unless_empty("out", "input"),
        _same_dtype_unless_empty("out_gelu", "input"),
        *require("input, out, out_gelu: at most 8 dims"),
        _without_dims("input"),
        *require("dim: dim of input; input: even along dim"),
        has_shape("out", half_shape, _HALF),
        has_shape("out_gelu", half_shape, _HALF),
        _approximate_is_known(),
    ),
    example=(
        "geglu(np.float32([2, 1]), approximate=0)",
        "(array([1.6826895], dtype=float32), array([0.8413448], dtype=float32))",
    ),
    seealso=("geglu_backward", "gelu", "gelu_mul"),
    gradient={"input": "geglu_backward(grad, input, out_gelu, dim, approximate, activate_left)"},
    chunking="halved",
)

geglu_backward = Operator(
    name="geglu_backward",
    summary="Gradient of the gated linear unit whose gate is GELU.",
    expression="g·gelu, then g·a·gelu'(b), along `dim`; from the left g·b·gelu'(a), then g·gelu",
    notes="`gelu` is the second result of `geglu`.",
    lower=_lower_geglu_backward,
    inputs=("grad_output", "input", "gelu"),
    sample_specs=specs("grad_output, gelu: [1]"),
    attributes=(_DIM, _APPROXIMATE, _ACTIVATE_LEFT),
    entries=(
        entry(
            "aclnnGeGluBackward",
            "gradOutput self=input gelu dim:int approximate:int gradInput:out",
            activate_left=False,
        ),
        entry(
            "aclnnGeGluV3Backward",
            "gradOutput self=input gelu dim:int approximate:int activateLeft:bool gradInput:out",
        ),
    ),
    rules=(
        *require("grad_output: FLOATING"),
        *[same_dtype(role, "grad_output") for role in ("input", "gelu", "out")],
        *require("grad_output, input, gelu, out: at most 8 dims; gelu: shape of grad_output"),
        *require("out: shape of input"),
        _without_dims("input"),
        *require("dim: dim of input; input: even along dim"),
        has_shape("grad_output", half_shape, _HALF),
        _approximate_is_known(),
    ),
    example=(
        "geglu_backward(np.float32([1]), np.float32([2, 0]), np.float32([0.5]))",
        "array([0.5, 1. ], dtype=float32)",
    ),
    seealso=("geglu",),
)


# --- Products of halves of the last dimension -----------------------------------------------------

_FORMS = ("none", "tanh")


@rule("`{role}` has an even last size")
def _even_at_last(call: Call, role: str) -> str | None:
    size = call.shape(role)[-1]
    return (
        f"{call.names[role]} has the odd last size {size}, must have an even one"
        if size % 2
        else None
    )


def _form_is_known() -> Rule:
    rule = switch_among("approximate", _FORMS)

    def test(call: Call) -> str | None:
        return None if call.switches["approximate"] is None else rule.test(call)

    return Rule(rule.text, test, rule.roles)


_LAST_HALVES = answering(
    ACLNN_ERR_INNER_TILING_ERROR,
    rank_from("input", 2),
    _even_at_last("input"),
    has_shape("out", half_shape, "the shape of `input` with half the last size"),
)

gelu_mul = Operator(
    name="gelu_mul",
    summary="Gated linear unit: GELU of the first half of each row times the second.",
    expression="gelu(a)·b, a and b the halves of `input` along its last dimension",
    notes="The devices' limits on sizes do not apply.",
    lower=lambda lowering: {"out": _lower_geglu(lowering)["out"]},
    inputs=("input",),
    sample_specs=specs("input: [2,2]"),
    attributes=(
        Attribute(
            "approximate",
            "none",
            "str",
            doc="``'none'`` for GELU with erf, ``'tanh'`` for its form with tanh.",
            choices=_FORMS,
        ),
    ),
    entries=(entry("aclnnGeluMul", "input approximateOptional=approximate:str? out:out"),),
    rules=(
        *require("input: FLOATING; out: dtype of input"),
        *_LAST_HALVES,
        _form_is_known(),
    ),
    example=("gelu_mul(np.float32([[1, 2]]))", "array([[1.6826895]], dtype=float32)"),
    seealso=("geglu", "gelu"),
    gradient={
        "input": "geglu_backward(grad, input, gelu(input.chunk(2, -1)[0], approximate=approximate), -1, int(approximate == 'tanh'), True)"
    },
    chunking="halved",
)


@rule("`{role}` has one element")
def _is_one_number(call: Call, role: str) -> str | None:
    if call.tensors[role].size == 1:
        return None
    return f"{call.names[role]} has {call.tensors[role].size} elements, must have 1"


def _lower_fatrelu(lowering: Lowering) -> Mapping[str, int]:
    dtype, half = lowering.call.dtype("input"), half_shape(lowering.call)
    least = lowering.reshaped("threshold", (1,) * len(half))
    operands = (*halves(lowering), lowering.dense(least, None, half))
    return {"out": lowering.point("fatrelu_mul", operands, dtype, half)}


fatrelu_mul = Operator(
    name="fatrelu_mul",
    summary="Gated linear unit whose gate passes values from a threshold on.",
    expression="(0 where a < threshold, else a)·b, a and b the halves of the last dimension",
    notes=(
        "A NaN is not less than the threshold, and passes. The devices' limits on sizes do not "
        "apply."
    ),
    lower=_lower_fatrelu,
    inputs=("input", "threshold"),
    sample_specs=specs("input: [2,2]; threshold: [1]"),
    entries=(entry("aclnnFatreluMul", "input threshold out:out"),),
    rules=(
        exists_on(("Ascend910_93", "Ascend910B")),
        *require("input: FLOATING; threshold, out: dtype of input"),
        *answering(
            ACLNN_ERR_INNER_TILING_ERROR,
            *require("threshold: at most 8 dims"),
            _is_one_number("threshold"),
        ),
        *_LAST_HALVES,
    ),
    example=(
        "fatrelu_mul(np.float32([[1, 3, 5, 7]]), np.float32([2]))",
        "array([[ 0., 21.]], dtype=float32)",
    ),
    seealso=("gelu_mul",),
    gradient={"input": "gradient_of_fatrelu_mul(grad, input, threshold)"},
)


# --- Clipped SwiGLU -------------------------------------------------------------------------------

_CLIPPED = (
    "a·sigmoid(alpha·a)·(b + bias), a the first half of `input` or what is even, at most limit; b "
    "the other, "
    "from -limit to limit"
)
_CLIPPED_OPTIONS = (
    _DIM,
    Attribute("alpha", 1.702, "float", doc="Factor of the sigmoid's argument."),
    Attribute("limit", 7.0, "float", doc="The bound at which both halves are clipped."),
    Attribute("bias", 1.0, "float", doc="Added to the second half."),
    Attribute("interleaved", True, "bool", doc="Whether halves alternate along `dim`."),
)
_GROUPS = (
    "`group_index` counts the rows of each group, whose sum is the number of leading rows in "
    "use; the contents of the others are unspecified."
)


@rule("`{role}` has one dimension")
def _has_one_dim(call: Call, role: str) -> str | None:
    if role not in call.tensors or len(call.shape(role)) == 1:
        return None
    return f"{call.ranked(role)}, must have 1"


_GROUP_RULES = (
    *require("group_index: INT64"),
    *answering(ACLNN_ERR_INNER_TILING_ERROR, _has_one_dim("group_index")),
)

clipped_swiglu = Operator(
    name="clipped_swiglu",
    summary="Gated linear unit whose gate is SiLU, of clipped halves.",
    expression=_CLIPPED,
    notes=_GROUPS,
    lower=_of_halves("clipped_swiglu", _CLIPPED, "ba"),
    inputs=("input", "group_index"),
    optional=("group_index",),
    attributes=_CLIPPED_OPTIONS,
    entries=(
        entry(
            "aclnnClippedSwiglu",
            "x=input groupIndexOptional=group_index:in? dim:int alpha:float limit:float bias:float "
            "interleaved:bool out:out",
        ),
    ),
    rules=(
        *require("input: FLOATING"),
        *_GROUP_RULES,
        *require("out: dtype of input"),
        *_SPLIT_RULES,
        *answering(ACLNN_ERR_INNER_TILING_ERROR, has_shape("out", half_shape, _HALF)),
    ),
    example=(
        "clipped_swiglu(np.float32([0, 5, 9, 9]), alpha=0.0)",
        "array([ 0., 28.], dtype=float32)",
    ),
    seealso=("clipped_swiglu_backward", "swiglu"),
    gradient={
        "input": "clipped_swiglu_backward(grad, input, group_index, dim, alpha=alpha, limit=limit, bias=bias, interleaved=interleaved)"
    },
)

clipped_swiglu_backward = Operator(
    name="clipped_swiglu_backward",
    summary="Gradient of the gated linear unit with SiLU of clipped halves.",
    expression=(
        "of a: g·(b + bias)·sigmoid(y)·(1 + y·(1 - sigmoid(y))), y = alpha·a, and 0 above limit; "
        "of b: "
        "g·a·sigmoid(y), and 0 beyond ±limit; a and b clipped"
    ),
    notes=_GROUPS,
    lower=_gradients_of_halves(
        "clipped_swiglu_backward_a", "gab", "clipped_swiglu_backward_b", "gab"
    ),
    inputs=("grad_output", "input", "group_index"),
    optional=("group_index",),
    sample_specs=specs("grad_output: [1]"),
    attributes=_CLIPPED_OPTIONS,
    entries=(
        entry(
            "aclnnClippedSwigluGrad",
            "yGrad=grad_output x=input groupIndexOptional=group_index:in? dim:int alpha:float "
            "limit:float bias:float interleaved:bool out:out",
        ),
    ),
    rules=(
        *require("grad_output: FLOATING; input: dtype of grad_output"),
        *_GROUP_RULES,
        *require("out: dtype of grad_output"),
        *_SPLIT_RULES,
        *answering(
            ACLNN_ERR_INNER_TILING_ERROR,
            has_shape("grad_output", half_shape, _HALF),
            *require("out: shape of input"),
        ),
    ),
    example=(
        "clipped_swiglu_backward(np.float32([2]), np.float32([4, 9]), alpha=0.0)",
        "array([8., 0.], dtype=float32)",
    ),
    seealso=("clipped_swiglu",),
)
