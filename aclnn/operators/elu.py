"""ELU, its gradient and its relatives: SELU and CELU."""

from aclnn.operators.checks import Call, Rule, not_negative_when
from aclnn.operators.declaration import Attribute, entry
from aclnn.operators.pointwise import (
    activation,
    backward,
    in_float32,
    infer_first,
    number,
)
from aclnn.operators.words import require

_SCALARS = (
    Attribute("alpha", 1.0, doc="Negative inputs saturate at minus this value."),
    Attribute("scale", 1.0, doc="Factor of the result."),
    Attribute("input_scale", 1.0, doc="Factor of negative inputs inside the exponential."),
)

elu = activation(
    "elu",
    in_place=True,
    summary="Exponential linear unit.",
    expression="x > 0: scale·x; else scale·alpha·(exp(input_scale·x) - 1)",
    inputs=("self",),
    attributes=_SCALARS,
    rules=(
        *require("self: FLOATING_AND_DOUBLE; alpha, scale, input_scale: numbers"),
        *require("out: cast of self; out: shape of self; self, out: at most 8 dims"),
    ),
    example=("np.float32([-1, 2])", "-0.63212055,  2.        "),
    gradient={"self": "gradient_of_elu(grad, self, alpha, scale, input_scale)"},
    onnx={
        "Elu": {"alpha": ("alpha", 1.0)},
        "Selu": {
            "alpha": ("alpha", 1.67326319217681884765625),
            "scale": ("gamma", 1.05070102214813232421875),
        },
    },
)

elu_backward = backward(
    "elu",
    summary="Gradient of ELU from its input, or from its result.",
    expression=(
        "x <= 0: g·input_scale·alpha·scale·exp(input_scale·x); else g·scale; "
        "with is_result x <= 0: g·input_scale·(x + alpha·scale); else g·scale"
    ),
    notes="NaN in the input or result is not below zero, so the gradient there is `g·scale`.",
    formula=lambda switches: "elu_backward_result" if switches["is_result"] else "elu_backward",
    inputs=("grad_output", "self_or_result"),
    attributes=(
        *_SCALARS,
        Attribute("is_result", False, "bool", doc="Whether the second input is ELU's result."),
    ),
    entries=(
        entry(
            "aclnnEluBackward",
            "gradOutput alpha:scalar scale:scalar inputScale:scalar isResult:bool "
            "selfOrResult gradInput:out",
        ),
    ),
    rules=(
        *require("self_or_result: dtype of grad_output; grad_output: FLOATING"),
        *require("alpha, scale, input_scale: numbers; out: cast of grad_output"),
        *require("self_or_result, out: shape of grad_output"),
        *require("grad_output, self_or_result, out: at most 8 dims"),
        not_negative_when("alpha", "is_result"),
    ),
    example=("np.float32([1, 1]), np.float32([-1, 2])", "0.36787945, 1.        "),
    slope="where(gt(self_or_result, 0), 0, input_scale * (grad * grad_output if is_result else elu_backward(grad * grad_output, self_or_result, alpha=alpha, scale=scale, input_scale=input_scale)))",
)

# --- Scaled and continuous ones -------------------------------------------------------------------

_INTEGERS = "Integers are computed as float32; results lose their fractions."

selu = activation(
    "selu",
    in_place=True,
    summary="Scaled exponential linear unit.",
    expression="1.0507…·(max(x, 0) + min(1.6733…·(exp(x) - 1), 0))",
    notes=f"The constants are PyTorch's, to all digits of a double. {_INTEGERS}",
    infer=infer_first("input"),
    lower=in_float32("selu", "input"),
    any_rank=True,
    rules=require("input, out: FLOATING INT32 INT8; out: shape of input"),
    example=("np.float32([-1, 2])", "-1.1113307,  2.101402 "),
    seealso=("selu_backward", "elu"),
    gradient={"input": "selu_backward(grad, out)"},
    elementwise=True,
    torch="elu.out(input, 1.6732632423543773, 1.0507009873554805, 1.0, out=out)",
)

_FROM_RESULT = ("grad_output", "result")

selu_backward = backward(
    "selu",
    summary="Gradient of the scaled exponential linear unit, from its result.",
    expression="y > 0: g·1.0507…; else g·(y + 1.7580…)",
    notes=f"1.7580… is the product of both constants. {_INTEGERS}",
    infer=infer_first("grad_output"),
    lower=in_float32("selu_backward", *_FROM_RESULT),
    any_rank=True,
    inputs=_FROM_RESULT,
    rules=(
        *require("grad_output: FLOATING INT32 INT8; result, out: dtype of grad_output"),
        *require("result, out: shape of grad_output"),
    ),
    domain=(-1.7, 4.0),
    example=("np.float32([1, 1]), np.float32([-1, 2])", "0.7580993, 1.050701 "),
    slope="where(gt(result, 0), 0, grad * grad_output)",
    elementwise=True,
    torch="elu_backward.grad_input(grad_output, 1.6732632423543773, 1.0507009873554805, 1.0, True, result, grad_input=out)",
)


def _test_alpha(call: Call) -> str | None:
    alpha = call.scalars["alpha"]
    if not (alpha.zero or alpha.nan):
        return None
    return f"{call.names['alpha']} is {alpha.text}, must be a number other than 0"


celu = activation(
    "celu",
    in_place=True,
    summary="Continuously differentiable exponential linear unit.",
    expression="max(x, 0) + min(alpha·(exp(x/alpha) - 1), 0)",
    attributes=(
        number("alpha", 1.0, "Negative inputs saturate at minus this value.", "zero", "nan"),
    ),
    rules=(
        *require("input: FLOATING; alpha: numbers; out: cast of input; input, out: at most 8 dims"),
        *require("out: shape of input"),
        Rule("`alpha` is neither 0 nor NaN", _test_alpha, ("alpha",)),
    ),
    example=("np.float32([-1, 2]), 2", "-0.78693867,  2.        "),
    seealso=("elu",),
    gradient={"input": "elu_backward(grad, input, alpha=alpha, input_scale=1.0 / alpha)"},
    torch="celu.out(input, out=out)",
    onnx={"Celu": {"alpha": ("alpha", 1.0)}},
)
