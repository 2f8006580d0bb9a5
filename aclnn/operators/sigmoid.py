"""Sigmoid, hyperbolic tangent and what is made of them: SiLU, Swish, fast GELU, and gradients."""

from collections.abc import Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    COMPLEX,
    FLOATING,
    FLOATING_AND_DOUBLE,
    INTEGERS,
    REAL,
    Call,
    at_most_8_dims,
    broadcast_shape,
    broadcasts,
    castable,
    convertible_scalars,
    dtype_among,
    dtype_is_promoted,
    exists_on,
    in_place,
    plain_format,
    promotes,
    result_castable,
    same_dtype,
    same_shape,
)
from aclnn.operators.declaration import Attribute, Operator, entry
from aclnn.operators.elementwise import floating, infer_floating
from aclnn.operators.pointwise import GRADIENT, both_entries, only_on, unless_on


def _infer_sigmoid(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    """Integers are computed in the dtype of the output."""
    whole = call.dtype("input") in (*INTEGERS, aclDataType.ACL_BOOL)
    if whole and "out" in call.tensors:
        return {"out": (call.dtype("out"), call.shape("input"))}
    return infer_floating(call)


sigmoid = Operator(
    name="sigmoid",
    in_place="sigmoid_",
    summary="Logistic function.",
    expression="1/(1 + exp(-input))",
    notes=(
        "Integers and BOOL are computed in the output's dtype, float32 where it is made. Complex "
        "inputs, which CANN takes, are refused."
    ),
    formula="sigmoid",
    infer=_infer_sigmoid,
    inputs=("input",),
    entries=both_entries("Sigmoid"),
    rules=(
        in_place(dtype_among("input", FLOATING_AND_DOUBLE)),
        dtype_among("input", REAL),
        dtype_among("out", FLOATING_AND_DOUBLE),
        same_shape("out", "input"),
        at_most_8_dims("input"),
    ),
    example=("sigmoid(np.float32([0, 1]))", "array([0.5      , 0.7310586], dtype=float32)"),
    gradient={"input": "sigmoid_backward(grad, out)"},
    seealso=("sigmoid_backward",),
)

_FROM_RESULT = ("grad_output", "output")
_SIGMOIDS = (*FLOATING_AND_DOUBLE, *COMPLEX)

sigmoid_backward = Operator(
    name="sigmoid_backward",
    summary="Gradient of the logistic function, from its result.",
    expression="g·y·(1 - y)",
    notes="Of complex numbers y and 1 - y are conjugated.",
    formula="sigmoid_backward",
    inputs=_FROM_RESULT,
    entries=(entry("aclnnSigmoidBackward", "gradOutput output gradInput:out"),),
    rules=(
        dtype_among("grad_output", _SIGMOIDS),
        dtype_among("output", _SIGMOIDS),
        dtype_among("out", _SIGMOIDS),
        at_most_8_dims(*_FROM_RESULT, "out"),
        promotes(_FROM_RESULT, _SIGMOIDS),
        castable(_FROM_RESULT),
        broadcasts(*_FROM_RESULT),
        broadcast_shape("out", _FROM_RESULT),
    ),
    domain=(0.0, 1.0),
    example=(
        "sigmoid_backward(np.float32([1, 1]), np.float32([0.5, 0.75]))",
        "array([0.25  , 0.1875], dtype=float32)",
    ),
    seealso=("sigmoid",),
    gradient={
        "grad_output": "sigmoid_backward(grad, output)",
        "output": "grad * conj(grad_output * (1 - 2 * output))",
    },
)

_TANH = (*FLOATING, *INTEGERS, aclDataType.ACL_BOOL)

tanh = Operator(
    name="tanh",
    in_place="tanh_",
    summary="Hyperbolic tangent.",
    expression="tanh(input)",
    notes="Integers and BOOL are computed as float32.",
    formula="tanh",
    infer=infer_floating,
    inputs=("input",),
    entries=both_entries("Tanh"),
    rules=(
        in_place(dtype_among("input")),
        dtype_among("input", _TANH),
        dtype_among("out", _TANH),
        result_castable(floating),
        plain_format("out", "input"),
        at_most_8_dims("input", "out"),
        same_shape("out", "input"),
    ),
    example=("tanh(np.float32([0, 1]))", "array([0.       , 0.7615942], dtype=float32)"),
    gradient={"input": "tanh_backward(grad, out)"},
    seealso=("tanh_backward",),
)

tanh_backward = Operator(
    name="tanh_backward",
    summary="Gradient of the hyperbolic tangent, from its result.",
    expression="g·(1 - y²)",
    formula="tanh_backward",
    inputs=_FROM_RESULT,
    entries=(entry("aclnnTanhBackward", "gradOutput output gradInput:out"),),
    rules=(
        dtype_among("grad_output", FLOATING_AND_DOUBLE),
        same_dtype("output", "grad_output"),
        same_dtype("out", "grad_output"),
        at_most_8_dims(*_FROM_RESULT, "out"),
        broadcasts(*_FROM_RESULT),
        broadcast_shape("out", _FROM_RESULT),
    ),
    domain=(-1.0, 1.0),
    example=(
        "tanh_backward(np.float32([1, 2]), np.float32([0, 0.5]))",
        "array([1. , 1.5], dtype=float32)",
    ),
    seealso=("tanh",),
    gradient={
        "grad_output": "tanh_backward(grad, output)",
        "output": "grad * grad_output * (-2 * output)",
    },
)

silu = Operator(
    name="silu",
    summary="Sigmoid linear unit.",
    expression="input/(1 + exp(-input))",
    notes="-Inf gives NaN, as the formula does.",
    formula="silu",
    any_rank=True,
    inputs=("input",),
    entries=(entry("aclnnSilu", "self=input out:out"),),
    rules=(
        dtype_among("input"),
        same_dtype("out", "input"),
        same_shape("out", "input"),
    ),
    example=("silu(np.float32([0, 1]))", "array([0.       , 0.7310586], dtype=float32)"),
    gradient={"input": "silu_backward(grad, input)"},
    seealso=("silu_backward", "swish"),
)

silu_backward = Operator(
    name="silu_backward",
    summary="Gradient of SiLU.",
    expression="g·s·(1 + x·(1 - s)), s = 1/(1 + exp(-x))",
    notes="Inputs of two dtypes or shapes are for an Ascend950 only.",
    formula="silu_backward",
    inputs=GRADIENT,
    entries=(entry("aclnnSiluBackward", "gradOutput self gradInput:out"),),
    rules=(
        dtype_among("grad_output"),
        dtype_among("self"),
        unless_on("Ascend950", same_dtype("self", "grad_output")),
        dtype_is_promoted("out", GRADIENT),
        at_most_8_dims(*GRADIENT),
        unless_on("Ascend950", same_shape("self", "grad_output")),
        only_on("Ascend950", broadcasts(*GRADIENT)),
        broadcast_shape("out", GRADIENT),
    ),
    example=(
        "silu_backward(np.float32([1, 1]), np.float32([0, 3]))",
        "array([0.5      , 1.0881041], dtype=float32)",
    ),
    seealso=("silu",),
    gradient={
        "grad_output": "silu_backward(grad, self)",
        "self": "grad * grad_output * curvature_of_swish(self, 1.0)",
    },
)

_BETA = Attribute(
    "beta",
    1.0,
    keyword_only=False,
    doc="Factor of the input inside the sigmoid; None means 1.",
    nullable=True,
)

swish = Operator(
    name="swish",
    summary="Swish: the input times the sigmoid of a multiple of it.",
    expression="x/(1 + exp(-beta·x))",
    notes="A null betaOptional stands for 1.",
    formula="swish",
    inputs=("self",),
    attributes=(_BETA,),
    entries=(entry("aclnnSwish", "self betaOptional=beta:scalar? out:out"),),
    rules=(
        dtype_among("self"),
        same_dtype("out", "self"),
        convertible_scalars("beta"),
        at_most_8_dims("self", "out"),
        same_shape("out", "self"),
    ),
    example=("swish(np.float32([0, 1]), 2)", "array([0.       , 0.8807971], dtype=float32)"),
    seealso=("swish_backward", "silu"),
    gradient={"self": "swish_backward(grad, self, beta)"},
    onnx={"Swish": {"beta": ("alpha", 1.0)}},
)

swish_backward = Operator(
    name="swish_backward",
    summary="Gradient of Swish.",
    expression="g·s·(1 + beta·x·(1 - s)), s = 1/(1 + exp(-beta·x))",
    notes="A null betaOptional stands for 1.",
    formula="swish_backward",
    inputs=GRADIENT,
    attributes=(_BETA,),
    entries=(
        entry("aclnnSwishBackward", "gradOutput self betaOptional=beta:scalar? gradInput:out"),
    ),
    rules=(
        dtype_among("grad_output"),
        same_dtype("self", "grad_output"),
        same_dtype("out", "grad_output"),
        convertible_scalars("beta"),
        at_most_8_dims(*GRADIENT, "out"),
        same_shape("self", "grad_output"),
        same_shape("out", "grad_output"),
    ),
    example=(
        "swish_backward(np.float32([1, 1]), np.float32([0, 2]), 2)",
        "array([0.5      , 1.0526646], dtype=float32)",
    ),
    seealso=("swish",),
    gradient={
        "grad_output": "swish_backward(grad, self, beta)",
        "self": "grad * grad_output * curvature_of_swish(self, beta)",
    },
)

_FAST_GELU_ON = exists_on(("Ascend910B", "Ascend910_93", "Ascend950"))

fast_gelu = Operator(
    name="fast_gelu",
    summary="GELU's approximation by a sigmoid.",
    expression="x/(1 + exp(-1.702·x))",
    formula="fast_gelu",
    inputs=("self",),
    entries=(entry("aclnnFastGelu", "self out:out"),),
    rules=(
        _FAST_GELU_ON,
        same_dtype("out", "self"),
        dtype_among("self"),
        same_shape("out", "self"),
        at_most_8_dims("self"),
        plain_format("out", "self"),
    ),
    example=("fast_gelu(np.float32([0, 1]))", "array([0.        , 0.84579575], dtype=float32)"),
    seealso=("fast_gelu_backward", "gelu"),
    gradient={"self": "fast_gelu_backward(grad, self)"},
)

fast_gelu_backward = Operator(
    name="fast_gelu_backward",
    summary="Gradient of GELU's approximation by a sigmoid.",
    expression="g·s·(1 + 1.702·x·(1 - s)), s = 1/(1 + exp(-1.702·x))",
    formula="fast_gelu_backward",
    inputs=GRADIENT,
    entries=(entry("aclnnFastGeluBackward", "gradOutput self gradInput:out"),),
    rules=(
        _FAST_GELU_ON,
        same_dtype("self", "grad_output"),
        same_dtype("out", "grad_output"),
        dtype_among("grad_output"),
        same_shape("self", "grad_output"),
        same_shape("out", "grad_output"),
        at_most_8_dims("self"),
        plain_format("out", "self"),
    ),
    example=(
        "fast_gelu_backward(np.float32([1, 1]), np.float32([0, 2]))",
        "array([0.5      , 1.0738153], dtype=float32)",
    ),
    seealso=("fast_gelu",),
    gradient={
        "grad_output": "fast_gelu_backward(grad, self)",
        "self": "grad * grad_output * curvature_of_swish(self, 1.702)",
    },
)
