"""Functions of one number: negation, roots, exponentials, logarithms, trigonometry."""

from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    COMPLEX,
    FLOATING_AND_DOUBLE,
    INTEGERS,
    REAL,
    Call,
    Rule,
    at_most_8_dims,
    dtype_among,
    in_place,
    promoted,
    result_castable,
    same_shape,
)
from aclnn.operators.declaration import Operator, entry

_NOT_FLOATING = (*INTEGERS, aclDataType.ACL_BOOL)


def floating(call: Call) -> aclDataType | None:
    """The dtype of the input, but float32 for integers and truth values."""
    dtype = promoted(call, ("input",))
    return aclDataType.ACL_FLOAT if dtype in _NOT_FLOATING else dtype


def infer_floating(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    return {"out": (floating(call), call.shape("input"))}


def own(call: Call) -> aclDataType | None:
    return promoted(call, ("input",))


def _function(
    name: str,
    summary: str,
    expression: str,
    example: tuple[str, str],
    *dtypes: Rule,
    result: Callable[[Call], aclDataType | None] = own,
    **more: Any,
) -> Operator:
    """A function with CANN's checks: dtypes, castability, dimensions, shape."""
    cann = "".join(word.capitalize() for word in name.split("_"))
    return Operator(
        name=name,
        in_place=f"{name}_",
        summary=summary,
        expression=expression,
        formula=name,
        infer=lambda call: {"out": (result(call), call.shape("input"))},
        inputs=("input",),
        entries=(
            entry(f"aclnn{cann}", "self=input out:out"),
            entry(f"aclnnInplace{cann}", "selfRef=input:inout"),
        ),
        rules=(
            *dtypes,
            result_castable(result),
            at_most_8_dims("input", "out"),
            same_shape("out", "input"),
        ),
        example=(f"{name}(np.float32({example[0]}))", f"array({example[1]}, dtype=float32)"),
        **more,
    )


def _of_floats(
    name: str, summary: str, expression: str, example: tuple[str, str], notes: str = "", **more: Any
) -> Operator:
    """A function whose results are floating, whatever it is of."""
    return _function(
        name,
        summary,
        expression,
        example,
        in_place(dtype_among("input", FLOATING_AND_DOUBLE)),
        dtype_among("input", REAL),
        dtype_among("out", (*FLOATING_AND_DOUBLE, *COMPLEX)),
        result=floating,
        notes=f"{notes} {_REAL_ONLY}".strip(),
        **more,
    )


_REAL_ONLY = (
    "Integers and BOOL are computed as float32. Complex inputs, which CANN takes, are refused."
)
_WHOLE = (aclDataType.ACL_INT8, aclDataType.ACL_INT32, aclDataType.ACL_INT64)
_UP = (0.0, 4.0)

neg = _function(
    "neg",
    "Negation.",
    "-input",
    ("[1, -2]", "[-1.,  2.]"),
    dtype_among("input", (*_WHOLE, *FLOATING_AND_DOUBLE, *COMPLEX)),
    notes="The smallest integer stays unchanged.",
    gradient={"input": "-grad"},
)
abs = _function(
    "abs",
    "Absolute value.",
    "|input|",
    ("[1, -2]", "[1., 2.]"),
    dtype_among("input", REAL),
    notes="The smallest integer stays unchanged. Complex inputs, which CANN takes, are refused.",
    gradient={"input": "grad * aten.sign(input)"},
)
floor = _function(
    "floor",
    "The largest integer that is not greater than the element.",
    "⌊input⌋",
    ("[1.5, -1.5]", "[ 1., -2.]"),
    dtype_among("input", (*FLOATING_AND_DOUBLE, *INTEGERS)),
    gradient={"input": "aten.zeros_like(grad)"},
)
square = _function(
    "square",
    "Square.",
    "input²",
    ("[1.5, -2]", "[2.25, 4.  ]"),
    dtype_among("input", (*FLOATING_AND_DOUBLE, *INTEGERS, *COMPLEX)),
    notes="Integers wrap around.",
    gradient={"input": "grad * (2 * conj(input))"},
)

_EXP = (*FLOATING_AND_DOUBLE, *COMPLEX, aclDataType.ACL_BOOL, aclDataType.ACL_INT64)

exp = _function(
    "exp",
    "Exponential.",
    "exp(input)",
    ("[0, 1]", "[1.       , 2.7182817]"),
    in_place(dtype_among("input", (*FLOATING_AND_DOUBLE, *COMPLEX))),
    dtype_among("input", _EXP),
    result=floating,
    notes="INT64 and BOOL are computed as float32.",
    gradient={"input": "grad * conj(out)"},
)
sqrt = _of_floats(
    "sqrt",
    "Square root.",
    "√input",
    ("[4, 9]", "[2., 3.]"),
    "NaN below zero.",
    domain=_UP,
    gradient={"input": "grad / (2 * conj(out))"},
)
rsqrt = _of_floats(
    "rsqrt",
    "Reciprocal of the square root.",
    "1/√input",
    ("[4, 16]", "[0.5 , 0.25]"),
    "NaN below zero; infinity with the sign of a zero.",
    domain=_UP,
    gradient={"input": "grad * (-0.5 * out * out * out)"},
)
reciprocal = _of_floats(
    "reciprocal",
    "Reciprocal.",
    "1/input",
    ("[4, -2]", "[ 0.25, -0.5 ]"),
    domain=(0.5, 4.0),
    gradient={"input": "-grad * out * out"},
)
exp2 = _of_floats(
    "exp2",
    "Power of two.",
    "2^input",
    ("[3, -1]", "[8. , 0.5]"),
    gradient={"input": "grad * (out * 0.6931471805599453)"},
)
expm1 = _of_floats(
    "expm1",
    "Exponential minus one.",
    "exp(input) - 1",
    ("[0, 1]", "[0.       , 1.7182819]"),
    gradient={"input": "grad * (out + 1)"},
)
log = _of_floats(
    "log",
    "Natural logarithm.",
    "ln(input)",
    ("[1, 2]", "[0.       , 0.6931472]"),
    domain=_UP,
    gradient={"input": "grad / input"},
)
log2 = _of_floats(
    "log2",
    "Logarithm to the base 2.",
    "log₂(input)",
    ("[1, 8]", "[0., 3.]"),
    domain=_UP,
    gradient={"input": "grad / (input * 0.6931471805599453)"},
)
log10 = _of_floats(
    "log10",
    "Logarithm to the base 10.",
    "log₁₀(input)",
    ("[1, 100]", "[0., 2.]"),
    domain=_UP,
    gradient={"input": "grad / (input * 2.302585092994046)"},
)
log1p = _of_floats(
    "log1p",
    "Logarithm of one plus the element.",
    "ln(1 + input)",
    ("[0, 1]", "[0.       , 0.6931472]"),
    domain=_UP,
    gradient={"input": "grad / (input + 1)"},
)
sin = _of_floats(
    "sin",
    "Sine.",
    "sin(input)",
    ("[0, 1]", "[0.        , 0.84147096]"),
    gradient={"input": "grad * cos(input)"},
)
cos = _of_floats(
    "cos",
    "Cosine.",
    "cos(input)",
    ("[0, 1]", "[1.       , 0.5403023]"),
    gradient={"input": "-grad * sin(input)"},
)
erf = _of_floats(
    "erf",
    "Error function.",
    "2/√π ∫ exp(-t²) dt from 0 to input",
    ("[0, 1]", "[0.       , 0.8427008]"),
    gradient={"input": "grad * (exp(-input * input) * 1.1283791670955126)"},
)
