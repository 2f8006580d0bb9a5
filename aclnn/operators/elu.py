"""ELU and its gradient."""

from aclnn.operators.checks import (
    FLOATING_AND_DOUBLE,
    at_most_8_dims,
    castable,
    convertible_scalars,
    dtype_among,
    not_negative_when,
    same_dtype,
    same_shape,
)
from aclnn.operators.declaration import Attribute, Operator, entry

_SCALARS = (
    Attribute("alpha", 1.0, doc="Where negative inputs saturate."),
    Attribute("scale", 1.0, doc="Factor of the result."),
    Attribute("input_scale", 1.0, doc="Factor of negative inputs inside the exponential."),
)

elu = Operator(
    name="elu",
    in_place="elu_",
    summary="Exponential linear unit.",
    expression="x > 0: scale·x; else scale·alpha·(exp(input_scale·x) - 1)",
    formula="elu",
    inputs=("self",),
    attributes=_SCALARS,
    entries=(
        entry("aclnnElu", "self alpha:scalar scale:scalar inputScale:scalar out:out"),
        entry("aclnnInplaceElu", "selfRef=self:inout alpha:scalar scale:scalar inputScale:scalar"),
    ),
    rules=(
        dtype_among("self", FLOATING_AND_DOUBLE),
        convertible_scalars("alpha", "scale", "input_scale"),
        castable(("self",)),
        same_shape("out", "self"),
        at_most_8_dims("self", "out"),
    ),
    example=(
        "elu(np.float32([-1, 2]))",
        "array([-0.63212055,  2.        ], dtype=float32)",
    ),
    seealso=("elu_backward",),
    gradient={
        "self": "elu_backward(grad, self, alpha=alpha, scale=scale, input_scale=input_scale)"
    },
)

elu_backward = Operator(
    name="elu_backward",
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
        same_dtype("self_or_result", "grad_output"),
        dtype_among("grad_output"),
        convertible_scalars("alpha", "scale", "input_scale"),
        castable(("grad_output",)),
        same_shape("self_or_result", "grad_output"),
        same_shape("out", "grad_output"),
        at_most_8_dims("grad_output", "self_or_result", "out"),
        not_negative_when("alpha", "is_result"),
    ),
    example=(
        "elu_backward(np.float32([1, 1]), np.float32([-1, 2]))",
        "array([0.36787945, 1.        ], dtype=float32)",
    ),
    seealso=("elu",),
)
