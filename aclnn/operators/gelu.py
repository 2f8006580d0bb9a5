"""GELU and its gradient, in the exact form and the tanh form."""

from aclnn.operators.checks import dtype_is_promoted, switch_among
from aclnn.operators.declaration import Attribute, entry
from aclnn.operators.pointwise import activation, backward
from aclnn.operators.words import require

_APPROXIMATE = Attribute(
    "approximate",
    "none",
    "str",
    doc="``'none'`` for the exact form, ``'tanh'`` for tanh's.",
    choices=("none", "tanh"),
)

gelu = activation(
    "gelu",
    summary="Gaussian error linear unit.",
    expression="x·Φ(x), Φ(x) = (1 + erf(x/√2))/2; tanh: 0.5x(1 + tanh(√(2/π)(x + 0.044715x³)))",
    notes="aclnnGelu is the exact form; aclnnGeluV2 numbers the forms 0 (exact) and 1 (tanh).",
    formula=lambda switches: {"none": "gelu", "tanh": "gelu_tanh"}[str(switches["approximate"])],
    inputs=("self",),
    attributes=(_APPROXIMATE,),
    entries=(
        entry("aclnnGelu", "self out:out", approximate="none"),
        entry("aclnnGeluV2", "x=self approximate:int y=out:out"),
    ),
    rules=(
        *require("self: FLOATING; out: dtype of self; out: shape of self"),
        *require("self, out: at most 8 dims"),
        switch_among("approximate", _APPROXIMATE.choices),
    ),
    example=("np.float32([-1, 0, 1])", "-0.15865526,  0.        ,  0.8413448 "),
    onnx={"Gelu": {"approximate": ("approximate", "none")}},
)

gelu_backward = backward(
    "gelu",
    summary="Gradient of GELU.",
    expression=(
        "g·(Φ(x) + x·φ(x)), φ(x) = exp(-x²/2)/√(2π); "
        "tanh: the derivative of 0.5x(1 + tanh(√(2/π)(x + 0.044715x³)))"
    ),
    notes="+Inf in `self` gives `g`, -Inf gives `g·0`. The derivative's root near -0.7518 counts.",
    formula=lambda switches: {"none": "gelu_backward", "tanh": "gelu_backward_tanh"}[
        str(switches["approximate"])
    ],
    attributes=(_APPROXIMATE,),
    entries=(
        entry("aclnnGeluBackward", "gradOutput self gradInput:out", approximate="none"),
        entry("aclnnGeluBackwardV2", "gradOutput self approximate:str gradInput:out"),
    ),
    rules=(
        *require("grad_output, self: promote to FLOATING; grad_output, self: at most 8 dims"),
        *require("grad_output, self: broadcast; out: broadcast of grad_output, self"),
        dtype_is_promoted("out", ("grad_output", "self")),
        switch_among("approximate", _APPROXIMATE.choices),
    ),
    example=("np.float32([1, 1]), np.float32([0, 1])", "0.5      , 1.0833155"),
    slope="grad * grad_output * curvature_of_gelu(self, approximate)",
)
