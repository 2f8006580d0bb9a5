"""Gated linear units and their gradients."""

from collections.abc import Mapping

from aclnn.acl.constants import ACLNN_ERR_INNER_TILING_ERROR
from aclnn.operators.checks import (
    FLOATING,
    Call,
    answering,
    at_most_8_dims,
    axis_of,
    dim_in_range,
    dtype_among,
    even_along,
    has_dims,
    has_shape,
    same_dtype,
    same_shape,
)
from aclnn.operators.declaration import Attribute, Operator, entry
from aclnn.operators.lowering import Lowering, graph_dtype

_DIM = Attribute("dim", -1, "int", keyword_only=False, doc="Along which `input` is split in two.")
_SILU = "silu(a)·b, a and b the halves of `input` along `dim`, silu(a) = a/(1 + exp(-a))"


def half_shape(call: Call) -> tuple[int, ...]:
    """The shape of `input` with half the size along `dim`."""
    shape, axis = call.shape("input"), axis_of(call, "input")
    return (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])


def halves(lowering: Lowering) -> tuple[int, int]:
    """Views of the halves of `input`."""
    builder, value = lowering.builder, lowering.value("input")
    shape, axis = half_shape(lowering.call), axis_of(lowering.call, "input")
    strides = builder.value(value).strides
    first = builder.view(value, shape, strides, name="input_a")
    second = builder.view(value, shape, strides, shape[axis] * strides[axis], name="input_b")
    return first, second


def _lower(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    operands = [lowering.dense(half) for half in halves(lowering)]
    return {"out": lowering.point("swiglu", operands, dtype, shape, expression=_SILU)}


def _lower_backward(lowering: Lowering) -> Mapping[str, int]:
    """Each half of the input has its gradient, which is a half of the result."""
    builder, (dtype, shape) = lowering.builder, lowering.results["out"]
    half = half_shape(lowering.call)
    a, b = [lowering.dense(one) for one in halves(lowering)]
    g = lowering.dense("grad_output")
    both = builder.buffer("gradients", shape, graph_dtype(dtype))
    strides = builder.value(both).strides
    axis = axis_of(lowering.call, "input")
    gradients = (
        lowering.point("swiglu_backward_a", (g, a, b), dtype, half),
        lowering.point("swiglu_backward_b", (g, a), dtype, half),
    )
    for place, gradient in enumerate(gradients):
        part = builder.view(both, half, strides, place * half[axis] * strides[axis])
        builder.view_copy(gradient, part)
    return {"out": both}


_SPLIT_RULES = answering(
    ACLNN_ERR_INNER_TILING_ERROR,
    at_most_8_dims("input"),
    has_dims("input"),
    dim_in_range("input"),
    even_along("input"),
)

swiglu = Operator(
    name="swiglu",
    summary="Gated linear unit whose gate is SiLU.",
    expression=_SILU,
    notes="The first half is the gate.",
    infer=lambda call: {"out": (call.dtype("input"), half_shape(call))},
    lower=_lower,
    inputs=("input",),
    attributes=(_DIM,),
    entries=(entry("aclnnSwiGlu", "x=input dim:int out:out"),),
    rules=(
        dtype_among("input", FLOATING),
        same_dtype("out", "input"),
        *_SPLIT_RULES,
        *answering(
            ACLNN_ERR_INNER_TILING_ERROR,
            has_shape("out", half_shape, "the shape of `input` with half the size along `dim`"),
        ),
    ),
    example=("swiglu(np.float32([0, 1, 5, 2]))", "array([0.       , 1.4621172], dtype=float32)"),
    seealso=("swiglu_backward",),
    gradient={"input": "swiglu_backward(grad, input, dim)"},
)

swiglu_backward = Operator(
    name="swiglu_backward",
    summary="Gradient of the gated linear unit whose gate is SiLU.",
    expression="g·b·silu'(a), then g·silu(a), along `dim`",
    infer=lambda call: {"out": (call.dtype("input"), call.shape("input"))},
    lower=_lower_backward,
    inputs=("grad_output", "input"),
    unlike={"grad_output": {"shape": (1,)}},
    attributes=(_DIM,),
    entries=(entry("aclnnSwiGluGrad", "yGrad=grad_output x=input dim:int out:out"),),
    rules=(
        dtype_among("grad_output", FLOATING),
        same_dtype("input", "grad_output"),
        same_dtype("out", "grad_output"),
        *_SPLIT_RULES,
        *answering(
            ACLNN_ERR_INNER_TILING_ERROR,
            has_shape(
                "grad_output", half_shape, "the shape of `input` with half the size along `dim`"
            ),
            same_shape("out", "input"),
        ),
    ),
    example=(
        "swiglu_backward(np.float32([1]), np.float32([0, 2]))",
        "array([1., 0.], dtype=float32)",
    ),
    seealso=("swiglu",),
)
