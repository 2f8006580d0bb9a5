"""Shrinkage: inputs moved towards zero, and the gradient."""

from aclnn.operators.checks import Call, Rule
from aclnn.operators.pointwise import (
    GRADIENT,
    activation,
    backward,
    in_float32,
    infer_broadcast,
    number,
)
from aclnn.operators.words import require

_LAMBDA = number("lambd", 0.5, "Inputs whose magnitude is at most this bound become zero.")


def _test_lambda(call: Call) -> str | None:
    bound = call.scalars["lambd"]
    return (
        f"{call.names['lambd']} is {bound.text}, must not be negative" if bound.negative else None
    )


_NOT_NEGATIVE = Rule("`lambd` is not negative", _test_lambda, ("lambd",))

softshrink = activation(
    "softshrink",
    summary="Soft shrinkage: moves inputs towards zero.",
    expression="x > lambd: x - lambd; x < -lambd: x + lambd; else 0",
    notes="NaN stays NaN.",
    attributes=(_LAMBDA,),
    rules=(
        *require("input, out: FLOATING; lambd: numbers; out: shape of input"),
        *require("input, out: at most 8 dims"),
        _NOT_NEGATIVE,
    ),
    example=("np.float32([-2, 0.25])", "-1.5,  0. "),
    seealso=("softshrink_backward", "hardshrink", "shrink"),
)

softshrink_backward = backward(
    "softshrink",
    summary="Gradient of soft shrinkage.",
    expression="x > lambd or x < -lambd: g; else 0",
    notes="Where `self` is NaN the gradient passes. Inputs of two dtypes are read as float32.",
    infer=infer_broadcast(*GRADIENT),
    lower=in_float32("softshrink_backward", *GRADIENT, numbers=("lambd",)),
    attributes=(_LAMBDA,),
    rules=(
        *require("grad_output, self, out: FLOATING; lambd: numbers"),
        *require("grad_output, self, out: at most 8 dims; grad_output, self: broadcast"),
        *require("out: broadcast of grad_output, self"),
        _NOT_NEGATIVE,
    ),
    example=("np.float32([5, 6]), np.float32([0.5, -2])", "0., 6."),
    slope="aten.zeros_like(grad)",
    elementwise=True,
)


shrink = activation(
    "shrink",
    summary="Shrinkage with a bound and a separate step.",
    expression="x > lambd: x - bias; x < -lambd: x + bias; else 0",
    notes="NaN gives 0, because it exceeds no bound.",
    any_rank=True,
    attributes=(_LAMBDA, number("bias", 0.0, "How far inputs move.")),
    rules=(
        *require("input, out: FLOAT FLOAT16; lambd, bias: numbers; out: format of input"),
        *require("out: shape of input"),
        _NOT_NEGATIVE,
    ),
    example=("np.float32([-2, 0.25, 3]), 0.5, 1", "-1.,  0.,  2."),
    seealso=("softshrink", "hardshrink"),
    gradient={"input": "hardshrink_backward(grad, input, lambd)"},
    onnx={"Shrink": {"lambd": ("lambd", 0.5), "bias": ("bias", 0.0)}},
)
