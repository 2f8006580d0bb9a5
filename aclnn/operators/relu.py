"""Rectifiers: ReLU, its square and its sum, threshold, PReLU, randomised ReLU, and gradients."""

import math
from collections.abc import Mapping

from aclnn.acl.constants import ACLNN_ERR_INNER_TILING_ERROR, aclDataType
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import (
    FLOATING,
    INTEGERS,
    Call,
    Rule,
    answering,
    at_most_dims,
    broadcast_shape,
    broadcasts,
    castable,
    exists_on,
    has_shape,
    in_place,
    number_castable,
    promoted,
    rule,
    same_dtype,
)
from aclnn.operators.declaration import (
    GRADIENT_ACCURACY,
    REQUIRED,
    Attribute,
    Operator,
    argument,
    entry,
)
from aclnn.operators.lowering import Lowering, operands_as
from aclnn.operators.pointwise import (
    GRADIENT,
    activation,
    backward,
    both_entries,
    in_float32,
    number,
    unless_on,
)
from aclnn.operators.words import require, specs

relu = activation(
    "relu",
    in_place=True,
    summary="Rectified linear unit.",
    expression="max(input, 0)",
    notes="NaN stays NaN; inputs that are not positive give +0.",
    rules=(
        *require("input: FLOATING INT8 INT32 INT64 UINT8; out: dtype of input"),
        *require("input, out: at most 8 dims; out: shape of input"),
    ),
    example=("np.float32([-1, 2])", "0., 2."),
    gradient={"input": "gradient_of_relu(grad, out)"},
    seealso=("threshold", "threshold_backward"),
    torch="clamp_min.out(input, 0.0, out=out)",
)

squared_relu = activation(
    "squared_relu",
    summary="Square of the rectified linear unit.",
    expression="max(input, 0)²",
    notes="NaN stays NaN; inputs that are not positive give +0.",
    entries=(entry("aclnnSquaredRelu", "input out:out"),),
    rules=(
        exists_on(("Ascend910B", "Ascend910_93", "Ascend950")),
        *require("input: FLOATING; out: dtype of input"),
        *answering(
            ACLNN_ERR_INNER_TILING_ERROR,
            *require("input: dims; input: at most 8 dims; out: shape of input"),
        ),
    ),
    example=("np.float32([-1, 3])", "0., 9."),
    seealso=("relu",),
    gradient={"input": "grad * (2 * relu(input))"},
)

# --- ReLU of a sum --------------------------------------------------------------------------------

_BOTH = ("input", "other")
_SUMS = (*FLOATING, *INTEGERS)


def _of_both(call: Call) -> aclDataType | None:
    return promoted(call, _BOTH)


def _lower_add_relu(lowering: Lowering) -> Mapping[str, int]:
    """Integers wrap around before they are compared."""
    dtype, shape = lowering.results["out"]
    operands = operands_as(lowering, _BOTH, dtype, shape)
    params = lowering.params(("alpha",), dtype)
    if dtype in FLOATING:
        return {"out": lowering.point("add_relu", operands, dtype, shape, params=params)}
    total = lowering.point("add", operands, dtype, shape, params=params)
    return {"out": lowering.point("relu", (total,), dtype, shape)}


add_relu = Operator(
    name="add_relu",
    in_place="add_relu_",
    summary="Rectified linear unit of a sum.",
    expression="max(input + alpha·other, 0)",
    notes="Numbers take part as they do in `add`; sums of integers wrap around.",
    lower=_lower_add_relu,
    inputs=_BOTH,
    attributes=(Attribute("alpha", 1, doc="Factor of `other`.", facts=("dtype",)),),
    entries=both_entries("AddRelu", "other alpha:scalar"),
    rules=(
        in_place(broadcasts(*_BOTH)),
        in_place(broadcast_shape("out", _BOTH)),
        *require("input, other: FLOATING INTEGERS; input, other: promote to FLOATING INTEGERS"),
        number_castable("alpha", _of_both),
        *require("out: cast of input, other; input, other: at most 8 dims"),
        *require("input, other: broadcast; out: broadcast of input, other"),
    ),
    example=(
        "add_relu(np.float32([1, 2]), np.float32([3, -4]), alpha=10)",
        "array([31.,  0.], dtype=float32)",
    ),
    seealso=("add", "relu"),
    gradient={
        "input": "threshold_backward(grad, out, 0)",
        "other": "threshold_backward(grad, out, 0) * alpha",
    },
    elementwise=True,
)

# --- Threshold ------------------------------------------------------------------------------------

_NARROW = (
    *FLOATING,
    aclDataType.ACL_INT8,
    aclDataType.ACL_UINT8,
    aclDataType.ACL_INT32,
)

threshold = activation(
    "threshold",
    in_place=True,
    summary="Replaces elements that are not above a threshold.",
    expression="x > threshold: x; else value",
    notes="NaN stays NaN. For integers, both numbers lose their fractions.",
    attributes=(
        number("threshold", REQUIRED, "The threshold that inputs have to exceed."),
        number("value", REQUIRED, "The value that replaces the others."),
    ),
    rules=(
        *require("input: FLOATING INTEGERS; threshold, value: numbers"),
        unless_on("Ascend950", castable(("input",))),
        *require("out: shape of input; input: at most 8 dims"),
    ),
    example=("np.float32([-1, 2]), 1, 7", "7., 2."),
    seealso=("threshold_backward", "relu"),
    gradient={"input": "threshold_backward(grad, input, threshold)"},
    onnx={"ThresholdedRelu": {"threshold": ("alpha", 1.0), "value": 0.0}},
)


def _test_int64(call: Call) -> str | None:
    for role in call.given((*GRADIENT, "out")):
        if call.dtype(role) != aclDataType.ACL_INT64:
            continue
        if call.soc != "Ascend950" or not call.scalars["threshold"].zero:
            return (
                f"{call.names[role]} has dtype INT64, which only an Ascend950 supports, with a "
                f"{call.names['threshold']} of 0"
            )
    return None


threshold_backward = backward(
    "threshold",
    summary="Gradient of a threshold; with a threshold of 0 that of ReLU.",
    expression="x > threshold: g; else 0",
    notes="Where `self` is NaN the gradient passes.",
    attributes=(
        number("threshold", REQUIRED, "The threshold that inputs have to exceed.", "zero"),
    ),
    entries=(entry("aclnnThresholdBackward", "gradOutput self threshold:scalar out:out"),),
    rules=(
        *require("grad_output: FLOATING INT8 UINT8 INT32 INT64"),
        Rule("INT64 is for an Ascend950 and a threshold of 0", _test_int64, (*GRADIENT, "out")),
        *require("self, out: dtype of grad_output; threshold: numbers"),
        *require("grad_output, self: at most 8 dims; grad_output, self: broadcast"),
        *require("out: broadcast of grad_output, self"),
    ),
    example=("np.float32([5, 6]), np.float32([-1, 2]), 0", "0., 6."),
    slope="aten.zeros_like(grad)",
    seealso=("threshold", "relu"),
    layout=("self", "grad_output"),
)

# --- PReLU ----------------------------------------------------------------------------------------


def _channels(shape: tuple[int, ...]) -> int:
    """Along the second dimension; what has none has a single one."""
    return shape[1] if len(shape) > 1 else 1


@rule("`weight` has one element, or one for each channel, along the second dimension of `{role}`")
def _weights_for(call: Call, role: str) -> str | None:
    """The rule about the number of weights, for the channels of an operand."""
    count, channels = call.tensors["weight"].size, _channels(call.shape(role))
    if count in (1, channels):
        return None
    return (
        f"{call.names['weight']} has {count} elements, must have 1 or as many as "
        f"{call.names[role]} has along its second dimension, {channels}"
    )


_PRELU = ("input", "weight")


def _weights(lowering: Lowering, dtype: aclDataType, shape: tuple[int, ...]) -> int:
    """The weight of each element of an input of that shape."""
    count = lowering.call.tensors["weight"].size
    axes = (1, count, *(1 for _ in shape[2:])) if count > 1 else tuple(1 for _ in shape)
    return lowering.dense(lowering.reshaped("weight", axes), dtype, shape)


def _lower_prelu(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    operands = (lowering.dense("input", dtype), _weights(lowering, dtype, shape))
    return {"out": lowering.point("prelu", operands, dtype, shape)}


prelu = Operator(
    name="prelu",
    summary="Rectified linear unit whose slope below zero is learnt, one for all or by channel.",
    expression="x > 0: x; else weight·x",
    notes="If the weight is empty, nothing is written.",
    lower=_lower_prelu,
    inputs=_PRELU,
    entries=(entry("aclnnPrelu", "self=input weight out:out"),),
    rules=(
        *require("input, weight: FLOATING; out: cast of input, weight"),
        *require("input, weight, out: at most 8 dims; out: shape of input; weight: if empty done"),
        _weights_for("input"),
    ),
    sample_specs=specs("weight: [1]"),
    example=(
        "prelu(np.float32([[-1, -2], [3, 4]]), np.float32([0.5, 0.25]))",
        "array([[-0.5, -0.5],\n       [ 3. ,  4. ]], dtype=float32)",
    ),
    seealso=("prelu_backward", "leaky_relu"),
    gradient={"input, weight": "prelu_backward(grad, input.to(grad.dtype), weight.to(grad.dtype))"},
    layout=("input",),
    chunking="weight_of_channels",
)


def _weight_shape(call: Call) -> tuple[int, ...]:
    weight = call.tensors["weight"]
    return weight.shape if weight.size == 1 else (weight.size,)


def _lower_prelu_backward(lowering: Lowering) -> Mapping[str, int]:
    shape, dtype = lowering.call.shape("self"), lowering.call.dtype("self")
    if 0 in shape:
        return {"grad_weight": lowering.filled(0, *lowering.results["grad_weight"])}
    g, x = lowering.dense("grad_output", dtype, shape), lowering.dense("self", dtype)
    operands = (g, x, _weights(lowering, dtype, shape))
    return {
        "grad_input": lowering.point("prelu_backward", operands, dtype, shape),
        "grad_weight": _gradient_of_weights(lowering, g, x),
    }


def _gradient_of_weights(lowering: Lowering, g: int, x: int) -> int:
    """Sums around each channel. Their terms are exact: float32 of halves, float64 of float32."""
    (dtype, kept), shape = lowering.results["grad_weight"], lowering.call.shape("self")
    wide = aclDataType.ACL_DOUBLE if dtype == aclDataType.ACL_FLOAT else aclDataType.ACL_FLOAT
    operands = (lowering.dense(g, wide), lowering.dense(x, wide))
    terms = lowering.point("prelu_weight_term", operands, wide, shape)
    count = math.prod(kept)
    outer = shape[0] if count > 1 else 1
    inner = math.prod(shape) // (outer * count)
    terms = lowering.reshaped(terms, (outer, count, inner))
    sums = [(aclDataType.ACL_DOUBLE, (outer, count, 1))]
    (by_place,) = lowering.rows("sum", [terms], sums, -1)
    (made,) = lowering.rows("sum", [by_place], [(dtype, (1, count, 1))], -3)
    return lowering.builder.view(made, kept, contiguous_strides(kept))


prelu_backward = Operator(
    name="prelu_backward",
    summary="Gradients of PReLU.",
    expression="x > 0: g, else weight·g; of a weight Σ g·x over its elements with x not above 0",
    lower=_lower_prelu_backward,
    inputs=(*GRADIENT, "weight"),
    outputs=("grad_input", "grad_weight"),
    entries=(
        entry(
            "aclnnPreluBackward",
            "gradOutput self weight gradInput=grad_input:out gradWeight=grad_weight:out",
        ),
    ),
    rules=(
        *require("grad_output: FLOATING"),
        *(same_dtype(r, "grad_output") for r in ("self", "weight", "grad_input", "grad_weight")),
        *require("grad_output, self, weight, grad_input, grad_weight: at most 8 dims"),
        *require("grad_output: broadcasts to self"),
        _weights_for("self"),
        *require("grad_input: shape of self"),
        has_shape("grad_weight", _weight_shape, "an element for each one of `weight`"),
    ),
    sample_specs=specs("weight: [1]"),
    example=(
        "prelu_backward(np.float32([1, 2]), np.float32([-3, 4]), np.float32([0.5]))",
        "(array([0.5, 2. ], dtype=float32), array([-3.], dtype=float32))",
    ),
    seealso=("prelu",),
    accuracy=GRADIENT_ACCURACY,
    layout=("self", "grad_output"),
    chunking="summed_weights",
)

# --- Randomised ReLU, without training ------------------------------------------------------------


def _test_training(call: Call) -> str | None:
    if not call.switches["training"]:
        return None
    return f"{call.names['training']} is true, but slopes are drawn at random on NPUs only"


rrelu_with_noise = Operator(
    name="rrelu_with_noise",
    in_place="rrelu_with_noise_",
    summary="Leaky ReLU whose slope is the middle of an interval.",
    expression="x > 0: x; else x·(lower + upper)/2",
    notes="Inference only; `noise` is neither read nor written, and may have any shape.",
    lower=in_float32("rrelu_with_noise", "input", numbers=("lower", "upper")),
    any_rank=True,
    unread=("noise",),
    inputs=("input", "noise"),
    attributes=(
        number("lower", 0.125, "The lower end of the interval of slopes."),
        number("upper", 1 / 3, "The upper end of the interval of slopes."),
        argument("training", False, "bool", "Must be false."),
        Attribute("seed", 0, "int", doc="Of the random numbers that training draws."),
        Attribute("offset", 0, "int", doc="Of the random numbers that training draws."),
    ),
    entries=both_entries(
        "RReluWithNoise",
        "noise lower:scalar upper:scalar training:bool seed:int offset:int",
    ),
    rules=(
        *require("input: FLOATING; noise, out: dtype of input; lower, upper: numbers"),
        at_most_dims(32, "input", "noise"),
        *require("out: shape of input"),
        Rule("`training` is false", _test_training, ("training",)),
    ),
    example=(
        "rrelu_with_noise(np.float32([-1, 2]), np.float32([0, 0]), 0.25, 0.75)",
        "array([-0.5,  2. ], dtype=float32)",
    ),
    seealso=("leaky_relu",),
    gradient={"input": "leaky_relu_backward(grad, input, (lower + upper) / 2)"},
    elementwise=True,
)
