"""Leaky ReLU and its gradient."""

from aclnn.operators.checks import not_negative_when
from aclnn.operators.declaration import Attribute, argument, entry
from aclnn.operators.pointwise import activation, backward
from aclnn.operators.words import require

_SLOPE = argument("negative_slope", 0.01, "scalar", "Factor of inputs that are not positive.")

leaky_relu = activation(
    "leaky_relu",
    in_place=True,
    summary="Leaky rectified linear unit.",
    expression="x > 0: x; else x·negative_slope",
    notes=(
        "The sign of zero follows the product, and NaN stays NaN. The slope takes part as "
        "float32, for float64 tensors as float64."
    ),
    scalars_as_double=True,
    inputs=("self",),
    attributes=(_SLOPE,),
    rules=(
        *require("self: FLOATING_AND_DOUBLE; negative_slope: numbers; out: cast of self"),
        *require("self, out: at most 8 dims; out: shape of self"),
    ),
    example=("np.float32([-2, 3]), 0.5", "-1.,  3."),
    onnx={"LeakyRelu": {"negative_slope": ("alpha", 0.01)}},
)

leaky_relu_backward = backward(
    "leaky_relu",
    summary="Gradient of leaky ReLU from its input, or from its result.",
    expression="x > 0: g; else g·negative_slope",
    scalars_as_double=True,
    attributes=(
        _SLOPE,
        Attribute("self_is_result", False, "bool", doc="Whether `self` is leaky ReLU's result."),
    ),
    entries=(
        entry(
            "aclnnLeakyReluBackward",
            "gradOutput self negativeSlope:scalar selfIsResult:bool out:out",
        ),
    ),
    rules=(
        *require("grad_output, self: promote to FLOATING_AND_DOUBLE; negative_slope: numbers"),
        *require("out: cast of grad_output, self; grad_output, self, out: at most 8 dims"),
        *require("grad_output, self: broadcast; out: broadcast of grad_output, self"),
        not_negative_when("negative_slope", "self_is_result"),
    ),
    example=("np.float32([1, 1]), np.float32([-2, 3]), 0.5", "0.5, 1. "),
    slope="aten.zeros_like(grad)",
    layout=("self", "grad_output"),
)
