"""Inverse of the error function."""

from aclnn.operators.checks import result_castable
from aclnn.operators.elementwise import floating, infer_floating
from aclnn.operators.pointwise import activation
from aclnn.operators.words import require

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
        *require("input: FLOATING INTEGERS BOOL"),
        result_castable(floating),
        *require("out: shape of input; input, out: at most 8 dims"),
    ),
    domain=(-1.0, 1.0),
    example=("np.float32([0, 0.5, 1])", "0.        , 0.47693628,        inf"),
    gradient={"input": "grad * (exp(out * out) * 0.886226925452758)"},
    seealso=(),
)
