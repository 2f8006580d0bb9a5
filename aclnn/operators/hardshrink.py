"""Hard shrinkage and its gradient."""

from aclnn.operators.declaration import argument
from aclnn.operators.pointwise import activation, backward
from aclnn.operators.words import require

_LAMBD = argument("lambd", 0.5, "scalar", "Half the width of the interval that shrinks to zero.")

hardshrink = activation(
    "hardshrink",
    summary="Hard shrinkage: zero near zero, the identity elsewhere.",
    expression="x > lambd or x < -lambd: x; else 0",
    inputs=("self",),
    attributes=(_LAMBD,),
    rules=(
        *require("self: FLOATING; lambd: numbers; out: cast of self; self, out: at most 8 dims"),
        *require("out: shape of self"),
    ),
    example=("np.float32([-2, 0.25])", "-2.,  0."),
)

hardshrink_backward = backward(
    "hardshrink",
    summary="Gradient of hard shrinkage.",
    expression="x > lambd or x < -lambd: g; else 0",
    notes=(
        "A gradient that passes is unchanged: NaN, -0 and infinities survive. NaN in `self` "
        "gives 0, as the documented formula says (PyTorch passes the gradient). A negative "
        "lambd counts as 0; a NaN lambd gives 0 everywhere."
    ),
    attributes=(_LAMBD,),
    rules=(
        *require("grad_output, self, out: FLOATING; lambd: numbers"),
        *require("grad_output, self, out: at most 8 dims; grad_output, self: if empty done"),
        *require("grad_output, self: broadcast; out: broadcast of grad_output, self"),
    ),
    example=("np.float32([1, 1]), np.float32([-2, 0.25])", "1., 0."),
    slope="aten.zeros_like(grad)",
)
