"""Functions made of straight lines: hard swish, sigmoid and tanh with their gradients, a step."""

from aclnn.operators.checks import (
    FLOATING_AND_DOUBLE,
    INTEGERS,
    Call,
    Rule,
    exists_on,
    scalar_dtype_among,
)
from aclnn.operators.declaration import Operator, entry
from aclnn.operators.pointwise import (
    GRADIENT,
    GRADIENT_ALIKE,
    activation,
    backward,
    both_entries,
    in_float32,
    infer_broadcast,
    number,
)
from aclnn.operators.words import require

hardswish = activation(
    "hardswish",
    in_place=True,
    summary="Hard Swish.",
    expression="x >= 3: x; x <= -3: 0; else x·(x + 3)/6",
    any_rank=True,
    entries=(
        entry("aclnnHardswish", "self=input out:out"),
        entry("aclnnInplaceHardswish", "self=input:inout"),
    ),
    rules=require("input, out: FLOATING; out: cast of input; out: shape of input"),
    example=("np.float32([-3, 1, 4])", "0.       , 0.6666667, 4.       "),
    seealso=("hardswish_backward", "hardswish_backward_v2"),
)


def _hardswish_gradient(name: str, pair: str, ends: str, printed: str, torch: str = "") -> Operator:
    return Operator(
        name=name,
        summary=f"Gradient of hard Swish, at -3 and 3 that of {ends}.",
        expression="x < -3: 0; x > 3: g; between them g·(x/3 + 1/2)",
        notes="Where `self` is NaN the gradient passes.",
        formula=name,
        inputs=GRADIENT,
        entries=(entry(pair, "gradOutput self out:out"),),
        rules=GRADIENT_ALIKE,
        example=(f"{name}(np.float32([1, 1, 1]), np.float32([-3, 0, 3]))", printed),
        seealso=("hardswish",),
        gradient={
            "grad_output": f"{name}(grad, self)",
            "self": "where(lt(abs(self), 3), grad * grad_output / 3, 0)",
        },
        torch=torch,
    )


hardswish_backward = _hardswish_gradient(
    "hardswish_backward",
    "aclnnHardswishBackward",
    "the middle",
    "array([-0.5,  0.5,  1.5], dtype=float32)",
)
hardswish_backward_v2 = _hardswish_gradient(
    "hardswish_backward_v2",
    "aclnnHardswishBackwardV2",
    "the ends",
    "array([0. , 0.5, 1. ], dtype=float32)",
    torch="hardswish_backward.out(grad_output, self, out=out)",
)

hardsigmoid = activation(
    "hardsigmoid",
    in_place=True,
    summary="Hard sigmoid.",
    expression="min(max(x/6 + 1/2, 0), 1)",
    notes="INT32 is computed as float32; results lose their fractions.",
    lower=in_float32("hardsigmoid", "input"),
    entries=(
        entry("aclnnHardsigmoid", "self=input out:out"),
        entry("aclnnInplaceHardsigmoid", "self=input:inout"),
    ),
    rules=(
        *require("input: FLOATING INT32; input, out: at most 8 dims; out: shape of input"),
        *require("out: dtype of input; out: format of input"),
    ),
    example=("np.float32([-4, 0, 1.5])", "0.  , 0.5 , 0.75"),
    elementwise=True,
)

hardsigmoid_backward = backward(
    "hardsigmoid",
    summary="Gradient of hard sigmoid.",
    expression="-3 < x < 3: g/6; else 0",
    entries=(entry("aclnnHardsigmoidBackward", "gradOutput self out:out"),),
    rules=(
        *require("grad_output, self: FLOATING; grad_output, self: promote to FLOATING"),
        *require("out: cast of grad_output, self; grad_output, self, out: at most 8 dims"),
        *require("self, out: shape of grad_output"),
    ),
    example=("np.float32([3, 3]), np.float32([0, 3])", "0.5, 0. "),
    slope="aten.zeros_like(grad)",
)

# --- Hard tanh ------------------------------------------------------------------------------------

_CLAMPED = (*FLOATING_AND_DOUBLE, *INTEGERS)
_BOUNDS = ("min_val", "max_val")


def _test_order(call: Call) -> str | None:
    low, high = (call.scalars[role] for role in _BOUNDS)
    if not high.below:
        return None
    return (
        f"{call.names['min_val']} is {low.text}, must not be more than {call.names['max_val']}, "
        f"{high.text}"
    )


hardtanh = activation(
    "hardtanh",
    in_place=True,
    summary="Hard tanh: inputs between two bounds.",
    expression="min(max(x, min_val), max_val)",
    notes="NaN stays NaN. Of integers the bounds lose their fractions.",
    formula="clamp",
    scalars_as_double=True,
    attributes=(
        number("min_val", -1.0, "The least result.", "dtype"),
        number("max_val", 1.0, "The largest result.", "dtype", "below"),
    ),
    entries=both_entries("Hardtanh", "clipValueMin=min_val:scalar clipValueMax=max_val:scalar"),
    rules=(
        *require("input: FLOATING_AND_DOUBLE INTEGERS"),
        *(scalar_dtype_among(role, _CLAMPED) for role in _BOUNDS),
        *require("out: dtype of input; input, out: at most 8 dims; out: shape of input"),
        Rule("`min_val` is not more than `max_val`", _test_order, _BOUNDS),
    ),
    example=("np.float32([-2, 0.5, 2])", "-1. ,  0.5,  1. "),
    gradient={"input": "gradient_of_hardtanh(grad, input, min_val, max_val)"},
)

hardtanh_backward = backward(
    "hardtanh",
    summary="Gradient of hard tanh.",
    expression="min_val < x < max_val: g; else 0",
    notes="Where `self` is NaN the gradient passes.",
    attributes=(
        number("min_val", -1.0, "Where the gradient begins to pass."),
        number("max_val", 1.0, "The upper end of the interval of slopes."),
    ),
    entries=(
        entry(
            "aclnnHardtanhBackward",
            "gradOutput self min=min_val:scalar max=max_val:scalar out:out",
        ),
    ),
    rules=(
        *require("grad_output: FLOATING; self, out: dtype of grad_output"),
        *require("min_val, max_val: numbers; grad_output, self, out: at most 8 dims"),
        *require("self, out: shape of grad_output"),
    ),
    example=("np.float32([5, 6]), np.float32([0, 1])", "5., 0."),
    slope="aten.zeros_like(grad)",
)

# --- Step -----------------------------------------------------------------------------------------

_STEP = ("input", "values")

heaviside = Operator(
    name="heaviside",
    differentiable=False,
    summary="Step from 0 to 1, with a separate value at 0.",
    expression="x < 0: 0; x = 0: values; x > 0: 1",
    notes="NaN gives 0. `values` are cast to the dtype of `input`.",
    formula="heaviside",
    infer=infer_broadcast(*_STEP),
    inputs=_STEP,
    entries=(entry("aclnnHeaviside", "input values out:out"),),
    rules=(
        exists_on(("Ascend910B", "Ascend910_93")),
        *require("input, values: FLOATING; out: dtype of input"),
        *require("input, values, out: at most 8 dims; input, values: broadcast"),
        *require("out: broadcast of input, values"),
    ),
    example=(
        "heaviside(np.float32([-2, 0, 3]), np.float32([0.5]))",
        "array([0. , 0.5, 1. ], dtype=float32)",
    ),
)
