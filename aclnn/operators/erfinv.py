"""Inverse of the error function."""

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    FLOATING,
    INTEGERS,
    at_most_8_dims,
    dtype_among,
    result_castable,
    same_shape,
)
from aclnn.operators.elementwise import floating, infer_floating
from aclnn.operators.pointwise import activation

erfinv = activation(
    "erfinv",
    in_place=True,
    summary="Inverse of the error function.",
    expression="y with erf(y) = input",
    notes=(
        "1 and -1 give infinities; inputs outside [-1, 1] give NaN. Integers and BOOL are "
        "computed as float32."
    ),
    infer=infer_floating,
    rules=(
        dtype_among("input", (*FLOATING, *INTEGERS, aclDataType.ACL_BOOL)),
        result_castable(floating),
        same_shape("out", "input"),
        at_most_8_dims("input", "out"),
    ),
    domain=(-1.0, 1.0),
    example=("np.float32([0, 0.5, 1])", "0.        , 0.47693628,        inf"),
    gradient={"input": "grad * (exp(out * out) * 0.886226925452758)"},
    seealso=(),
)
