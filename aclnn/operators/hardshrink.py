"""Hard shrinkage and its gradient."""

from aclnn.operators.checks import (
    at_most_8_dims,
    broadcast_shape,
    broadcasts,
    castable,
    convertible_scalars,
    done_if_empty,
    dtype_among,
    same_shape,
)
from aclnn.operators.declaration import Attribute
from aclnn.operators.pointwise import activation, backward

_LAMBD = Attribute(
    "lambd", 0.5, keyword_only=False, doc="Half the width of the interval that shrinks to zero."
)

hardshrink = activation(
    "hardshrink",
    summary="Hard shrinkage: zero near zero, the identity elsewhere.",
    expression="x > lambd or x < -lambd: x; else 0",
    inputs=("self",),
    attributes=(_LAMBD,),
    rules=(
        dtype_among("self"),
        convertible_scalars("lambd"),
        castable(("self",)),
        at_most_8_dims("self", "out"),
        same_shape("out", "self"),
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
        dtype_among("grad_output"),
        dtype_among("self"),
        dtype_among("out"),
        convertible_scalars("lambd"),
        at_most_8_dims("grad_output", "self", "out"),
        done_if_empty("grad_output", "self"),
        broadcasts("grad_output", "self"),
        broadcast_shape("out", ("grad_output", "self")),
    ),
    example=("np.float32([1, 1]), np.float32([-2, 0.25])", "1., 0."),
    slope="aten.zeros_like(grad)",
)
