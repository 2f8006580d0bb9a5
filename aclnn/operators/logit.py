"""Logit and its gradient."""

from aclnn.acl.socs import BFLOAT16_FAMILIES
from aclnn.operators.checks import exists_on
from aclnn.operators.declaration import argument, entry
from aclnn.operators.pointwise import activation, backward
from aclnn.operators.words import require

_EPS = argument(
    "eps",
    None,
    "float",
    "Inputs are clamped to [eps, 1 - eps]; None or a negative number means no clamping.",
)

logit = activation(
    "logit",
    summary="Logarithm of the odds.",
    expression="ln(z/(1 - z)), z = x for eps < 0, else x clamped to [eps, 1 - eps]",
    inputs=("self",),
    attributes=(_EPS,),
    entries=(entry("aclnnLogit", "input=self eps:float out:out"),),
    rules=(
        exists_on(BFLOAT16_FAMILIES),
        *require("self: FLOATING; out: cast of self; out: shape of self"),
        *require("self, out: at most 8 dims"),
    ),
    domain=(0.0, 1.0),
    example=("np.float32([0.5, 0.75])", "0.       , 1.0986123"),
)

logit_backward = backward(
    "logit",
    summary="Gradient of the logarithm of the odds.",
    expression=(
        "dy/(x(1 - x)) for x in [0, 1] (eps < 0; else NaN) or x in [eps, 1 - eps] "
        "(0 <= eps < 1; else 0)"
    ),
    notes=(
        "In this order: eps NaN gives NaN; x NaN or infinite gives NaN; eps = +Inf gives 0; "
        "eps > 1 gives NaN; eps = 1 gives infinity with the sign of dy (NaN for dy zero or NaN)."
    ),
    operands=("self", "grad_output"),
    attributes=(_EPS,),
    entries=(entry("aclnnLogitGrad", "x=self dy=grad_output eps:float out:out"),),
    rules=(
        exists_on(BFLOAT16_FAMILIES),
        *require("self: FLOATING; grad_output, out: dtype of self"),
        *require("grad_output, out: shape of self; self, grad_output, out: at most 8 dims"),
    ),
    domain=(0.0, 1.0),
    example=("np.float32([1, 1]), np.float32([0.5, 0.75])", "4.       , 5.3333335"),
    layout=("grad_output", "self"),
)
