"""Sigmoid, hyperbolic tangent and what is made of them: SiLU, Swish, fast GELU, and gradients."""

from collections.abc import Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    FLOATING_AND_DOUBLE,
    INTEGERS,
    Call,
    broadcasts,
    dtype_among,
    dtype_is_promoted,
    exists_on,
    in_place,
    result_castable,
    same_dtype,
    same_shape,
)
from aclnn.operators.declaration import argument, entry
from aclnn.operators.elementwise import floating, infer_floating
from aclnn.operators.pointwise import (
    GRADIENT,
    activation,
    backward,
    only_on,
    unless_on,
)
from aclnn.operators.words import require


def _infer_sigmoid(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    """Integers are computed in the dtype of the output."""
    whole = call.dtype("input") in (*INTEGERS, aclDataType.ACL_BOOL)
    if whole and "out" in call.tensors:
        return {"out": (call.dtype("out"), call.shape("input"))}
    return infer_floating(call)


sigmoid = activation(
    "sigmoid",
    in_place=True,
    summary="Logistic function.",
    expression="1/(1 + exp(-input))",
    notes=(
        "Integers and BOOL are computed in the output's dtype, float32 where it is made. Complex "
        "inputs, which CANN takes, are refused."
    ),
    infer=_infer_sigmoid,
    rules=(
        in_place(dtype_among("input", FLOATING_AND_DOUBLE)),
        *require("input: REAL; out: FLOATING_AND_DOUBLE; out: shape of input"),
        *require("input: at most 8 dims"),
    ),
    example=("np.float32([0, 1])", "0.5      , 0.7310586"),
    gradient={"input": "sigmoid_backward(grad, out)"},
)

_FROM_RESULT = ("grad_output", "output")

sigmoid_backward = backward(
    "sigmoid",
    summary="Gradient of the logistic function, from its result.",
    expression="g·y·(1 - y)",
    notes="Of complex numbers y and 1 - y are conjugated.",
    inputs=_FROM_RESULT,
    rules=(
        *require("grad_output, output, out: FLOATING_AND_DOUBLE COMPLEX"),
        *require("grad_output, output, out: at most 8 dims"),
        *require("grad_output, output: promote to FLOATING_AND_DOUBLE COMPLEX"),
        *require("out: cast of grad_output, output; grad_output, output: broadcast"),
        *require("out: broadcast of grad_output, output"),
    ),
    domain=(0.0, 1.0),
    example=("np.float32([1, 1]), np.float32([0.5, 0.75])", "0.25  , 0.1875"),
    slope="grad * conj(grad_output * (1 - 2 * output))",
)


tanh = activation(
    "tanh",
    in_place=True,
    summary="Hyperbolic tangent.",
    expression="tanh(input)",
    notes="Integers and BOOL are computed as float32.",
    infer=infer_floating,
    rules=(
        in_place(dtype_among("input")),
        *require("input, out: FLOATING INTEGERS BOOL"),
        result_castable(floating),
        *require("out: format of input; input, out: at most 8 dims; out: shape of input"),
    ),
    example=("np.float32([0, 1])", "0.       , 0.7615942"),
    gradient={"input": "tanh_backward(grad, out)"},
)

tanh_backward = backward(
    "tanh",
    summary="Gradient of the hyperbolic tangent, from its result.",
    expression="g·(1 - y²)",
    inputs=_FROM_RESULT,
    rules=(
        *require("grad_output: FLOATING_AND_DOUBLE; output, out: dtype of grad_output"),
        *require("grad_output, output, out: at most 8 dims; grad_output, output: broadcast"),
        *require("out: broadcast of grad_output, output"),
    ),
    domain=(-1.0, 1.0),
    example=("np.float32([1, 2]), np.float32([0, 0.5])", "1. , 1.5"),
    slope="grad * grad_output * (-2 * output)",
)

silu = activation(
    "silu",
    summary="Sigmoid linear unit.",
    expression="input/(1 + exp(-input))",
    notes="-Inf gives NaN, as the formula does.",
    any_rank=True,
    rules=require("input: FLOATING; out: dtype of input; out: shape of input"),
    example=("np.float32([0, 1])", "0.       , 0.7310586"),
    seealso=("silu_backward", "swish"),
)

silu_backward = backward(
    "silu",
    summary="Gradient of SiLU.",
    expression="g·s·(1 + x·(1 - s)), s = 1/(1 + exp(-x))",
    notes="Inputs of two dtypes or shapes are for an Ascend950 only.",
    rules=(
        *require("grad_output, self: FLOATING"),
        unless_on("Ascend950", same_dtype("self", "grad_output")),
        dtype_is_promoted("out", GRADIENT),
        *require("grad_output, self: at most 8 dims"),
        unless_on("Ascend950", same_shape("self", "grad_output")),
        only_on("Ascend950", broadcasts(*GRADIENT)),
        *require("out: broadcast of grad_output, self"),
    ),
    example=("np.float32([1, 1]), np.float32([0, 3])", "0.5      , 1.0881041"),
    slope="grad * grad_output * curvature_of_swish(self, 1.0)",
)

_BETA = argument(
    "beta", 1.0, "scalar", "Factor of the input inside the sigmoid; None means 1.", nullable=True
)

swish = activation(
    "swish",
    summary="Swish: the input times the sigmoid of a multiple of it.",
    expression="x/(1 + exp(-beta·x))",
    notes="A null betaOptional stands for 1.",
    attributes=(_BETA,),
    entries=(entry("aclnnSwish", "self=input betaOptional=beta:scalar? out:out"),),
    rules=(
        *require("input: FLOATING; out: dtype of input; beta: numbers; input, out: at most 8 dims"),
        *require("out: shape of input"),
    ),
    example=("np.float32([0, 1]), 2", "0.       , 0.8807971"),
    seealso=("swish_backward", "silu"),
    onnx={"Swish": {"beta": ("alpha", 1.0)}},
)

swish_backward = backward(
    "swish",
    summary="Gradient of Swish.",
    expression="g·s·(1 + beta·x·(1 - s)), s = 1/(1 + exp(-beta·x))",
    notes="A null betaOptional stands for 1.",
    attributes=(_BETA,),
    entries=(
        entry("aclnnSwishBackward", "gradOutput self betaOptional=beta:scalar? gradInput:out"),
    ),
    rules=(
        *require("grad_output: FLOATING; self, out: dtype of grad_output; beta: numbers"),
        *require("grad_output, self, out: at most 8 dims; self, out: shape of grad_output"),
    ),
    example=("np.float32([1, 1]), np.float32([0, 2]), 2", "0.5      , 1.0526646"),
    slope="grad * grad_output * curvature_of_swish(self, beta)",
)

_FAST_GELU_ON = exists_on(("Ascend910B", "Ascend910_93", "Ascend950"))

fast_gelu = activation(
    "fast_gelu",
    summary="GELU's approximation by a sigmoid.",
    expression="x/(1 + exp(-1.702·x))",
    rules=(
        _FAST_GELU_ON,
        *require("out: dtype of input; input: FLOATING; out: shape of input"),
        *require("input: at most 8 dims; out: format of input"),
    ),
    example=("np.float32([0, 1])", "0.        , 0.84579575"),
    seealso=("fast_gelu_backward", "gelu"),
)

fast_gelu_backward = backward(
    "fast_gelu",
    summary="Gradient of GELU's approximation by a sigmoid.",
    expression="g·s·(1 + 1.702·x·(1 - s)), s = 1/(1 + exp(-1.702·x))",
    rules=(
        _FAST_GELU_ON,
        *require("self, out: dtype of grad_output; grad_output: FLOATING"),
        *require("self, out: shape of grad_output; self: at most 8 dims; out: format of self"),
    ),
    example=("np.float32([1, 1]), np.float32([0, 2])", "0.5      , 1.0738153"),
    slope="grad * grad_output * curvature_of_swish(self, 1.702)",
)
