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
from aclnn.operators.declaration import Attribute, Operator, entry

_LAMBD = Attribute(
    "lambd", 0.5, keyword_only=False, doc="Half the width of the interval that shrinks to zero."
)

hardshrink = Operator(
    name="hardshrink",
    summary="Hard shrinkage: zero near zero, the identity elsewhere.",
    expression="x > lambd or x < -lambd: x; else 0",
    formula="hardshrink",
    inputs=("self",),
    attributes=(_LAMBD,),
    entries=(entry("aclnnHardshrink", "self lambd:scalar out:out"),),
    rules=(
        dtype_among("self"),
        convertible_scalars("lambd"),
        castable(("self",)),
        at_most_8_dims("self", "out"),
        same_shape("out", "self"),
    ),
    example=(
        "hardshrink(np.float32([-2, 0.25]))",
        "array([-2.,  0.], dtype=float32)",
    ),
    seealso=("hardshrink_backward",),
    gradient={"self": "hardshrink_backward(grad, self, lambd)"},
)

hardshrink_backward = Operator(
    name="hardshrink_backward",
    summary="Gradient of hard shrinkage.",
    expression="x > lambd or x < -lambd: g; else 0",
    notes=(
        "A gradient that passes is unchanged: NaN, -0 and infinities survive. NaN in `self` "
        "gives 0, as the documented formula says (PyTorch passes the gradient). A negative "
        "lambd counts as 0; a NaN lambd gives 0 everywhere."
    ),
    formula="hardshrink_backward",
    inputs=("grad_output", "self"),
    attributes=(_LAMBD,),
    entries=(entry("aclnnHardshrinkBackward", "gradOutput self lambd:scalar gradInput:out"),),
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
    example=(
        "hardshrink_backward(np.float32([1, 1]), np.float32([-2, 0.25]))",
        "array([1., 0.], dtype=float32)",
    ),
    seealso=("hardshrink",),
    gradient={
        "grad_output": "hardshrink_backward(grad, self, lambd)",
        "self": "aten.zeros_like(grad)",
    },
)
