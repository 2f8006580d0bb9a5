"""Softplus, the logarithm of sigmoid, Mish, and their gradients."""

from collections.abc import Mapping
from typing import Any

from aclnn.operators.checks import FLOATING, Call, Rule
from aclnn.operators.declaration import Operator, entry
from aclnn.operators.pointwise import (
    GRADIENT,
    activation,
    backward,
    in_float32,
    infer_first,
    number,
)
from aclnn.operators.words import require

_SCALARS = (
    number("beta", 1.0, "Factor of the input inside the exponential."),
    number("threshold", 20.0, "Where `beta` times the input is more, the function is the input."),
)
_ROLES = ("beta", "threshold")

softplus = activation(
    "softplus",
    summary="Softplus, a smooth rectifier.",
    expression="beta·x > threshold: x; else log(1 + exp(beta·x))/beta",
    attributes=_SCALARS,
    rules=(
        *require("input: FLOATING; beta, threshold: numbers; out: cast of input"),
        *require("input: at most 8 dims; out: shape of input"),
    ),
    example=("np.float32([0, 30])", " 0.6931472, 30.       "),
)


def _infer_softplus_backward(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    """Result of the gradient: in the dtype of both inputs, else in the output's, if there is one."""
    dtype = call.dtype("grad_output")
    if "out" in call.tensors and (dtype not in FLOATING or call.dtype("self") != dtype):
        dtype = call.dtype("out")
    return {"out": (dtype, call.shape("self"))}


softplus_backward = backward(
    "softplus",
    summary="Gradient of softplus.",
    expression="beta·x > threshold: g; else g/(1 + exp(-beta·x))",
    notes="What is not of one floating dtype, and float64, is computed as float32.",
    infer=_infer_softplus_backward,
    lower=in_float32("softplus_backward", *GRADIENT, numbers=_ROLES),
    attributes=_SCALARS,
    rules=(
        *require("grad_output: FLOATING_AND_DOUBLE; self: REAL; out: FLOATING_AND_DOUBLE"),
        *require("beta, threshold: numbers; grad_output, self, out: at most 8 dims"),
        *require("self, out: shape of grad_output"),
    ),
    example=("np.float32([1, 2]), np.float32([0, 30])", "0.5, 2. "),
    slope="where(gt(self * beta, threshold), 0, sigmoid_backward(grad * grad_output * beta, sigmoid(self * beta)))",
    elementwise=True,
)

# --- Logarithm of sigmoid -------------------------------------------------------------------------

_BUFFER = "`buffer` is neither read nor written."
_OF_ANY_KIND = Rule("`buffer` has any dtype and shape", lambda call: None, ("buffer",))


def _log_sigmoid(name: str, signature: str, pair: str, *buffer: str) -> Operator:
    return Operator(
        name=name,
        summary="Logarithm of the logistic function.",
        expression="min(x, 0) - log(1 + exp(-|x|))",
        notes=_BUFFER if buffer else "",
        infer=infer_first("input"),
        lower=in_float32("log_sigmoid", "input"),
        any_rank=True,
        unread=buffer,
        inputs=("input", *buffer),
        optional=buffer,
        entries=(entry(pair, signature),),
        rules=(
            *require("input: FLOATING; out: dtype of input; out: shape of input"),
            *[_OF_ANY_KIND for _ in buffer],
        ),
        example=(
            f"{name}(np.float32([0, 100]))",
            "array([-6.931472e-01, -3.783506e-44], dtype=float32)",
        ),
        seealso=("log_sigmoid_backward",),
        gradient={"input": "log_sigmoid_backward(grad, input, input)"},
        elementwise=not buffer,
        layout=(),  # dense, whatever the input
    )


log_sigmoid = _log_sigmoid("log_sigmoid", "self=input out:out", "aclnnLogSigmoid")
log_sigmoid_forward = _log_sigmoid(
    "log_sigmoid_forward", "self=input out:out buffer:in?", "aclnnLogSigmoidForward", "buffer"
)

log_sigmoid_backward = Operator(
    name="log_sigmoid_backward",
    summary="Gradient of the logarithm of the logistic function.",
    expression="g/(1 + exp(x))",
    notes=f"{_BUFFER} It must be there.",
    lower=in_float32("log_sigmoid_backward", *GRADIENT),
    any_rank=True,
    unread=("buffer",),
    inputs=(*GRADIENT, "buffer"),
    entries=(entry("aclnnLogSigmoidBackward", "gradOutput self buffer gradInput:out"),),
    rules=(
        *require("grad_output: FLOATING; self, out: dtype of grad_output"),
        *require("self, out: shape of grad_output"),
        _OF_ANY_KIND,
    ),
    example=(
        "log_sigmoid_backward(np.float32([1, 1]), np.float32([0, 1]), np.float32([]))",
        "array([0.5       , 0.26894143], dtype=float32)",
    ),
    seealso=("log_sigmoid",),
    gradient={
        "grad_output": "log_sigmoid_backward(grad, self, buffer)",
        "self": "-sigmoid_backward(grad * grad_output, sigmoid(self))",
    },
    layout=("grad_output",),
    torch="log_sigmoid_backward.grad_input(grad_output, self, log_sigmoid_forward(self)[1], grad_input=out)",
)

# --- Mish -----------------------------------------------------------------------------------------

mish = activation(
    "mish",
    in_place=True,
    summary="Mish, a smooth rectifier.",
    expression="x·tanh(log(1 + exp(x)))",
    notes="-Inf gives NaN, as the formula does.",
    rules=(
        *require("input: FLOATING; out: dtype of input; input, out: at most 8 dims"),
        *require("out: shape of input"),
    ),
    example=("np.float32([0, 3])", "0.      , 2.986535"),
)


mish_backward = backward(
    "mish",
    summary="Gradient of Mish.",
    expression="g·(t + x·s·(1 - t²)), t = tanh(log(1 + exp(x))), s = 1/(1 + exp(-x))",
    rules=(
        *require("out: cast of self; grad_output, self, out: FLOATING"),
        *require("grad_output, self, out: at most 8 dims; grad_output, self: broadcast"),
        *require("out: broadcast of grad_output, self"),
    ),
    example=("np.float32([1, 1]), np.float32([0, 1])", "0.6      , 1.0490363"),
)
