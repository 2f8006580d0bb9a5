"""Functions of one number: negation, roots, exponentials, logarithms, trigonometry."""

from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    COMPLEX,
    FLOATING,
    FLOATING_AND_DOUBLE,
    INTEGERS,
    REAL,
    Call,
    Rule,
    at_most_8_dims,
    dtype_among,
    exists_on,
    in_place,
    no_private_format,
    of_cann,
    promoted,
    result_castable,
    same_dtype,
    same_format,
    same_shape,
)
from aclnn.operators.declaration import Operator, entry
from aclnn.operators.lowering import Lowering, reads_of

_NOT_FLOATING = (*INTEGERS, aclDataType.ACL_BOOL)


def floating(call: Call) -> aclDataType | None:
    """The dtype of the input, but float32 for integers and truth values."""
    dtype = promoted(call, ("input",))
    return aclDataType.ACL_FLOAT if dtype in _NOT_FLOATING else dtype


def infer_floating(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    return {"out": (floating(call), call.shape("input"))}


def own(call: Call) -> aclDataType | None:
    return promoted(call, ("input",))


def _size_dtype(call: Call) -> aclDataType:
    """The dtype of an absolute value."""
    dtype = call.dtype("input")
    return aclDataType.ACL_FLOAT if dtype == aclDataType.ACL_COMPLEX64 else dtype


def _has_dtype_of(result: Callable[[Call], aclDataType]) -> Rule:
    def test(call: Call) -> str | None:
        if "out" not in call.tensors or call.dtype("out") == result(call):
            return None
        return (
            f"{call.names['out']} has dtype {call.word(call.dtype('out'))}, must be "
            f"{call.word(result(call))}"
        )

    return Rule("`out` has the dtype of the result", test, ("out", "input"))


def _lower_abs(lowering: Lowering) -> Mapping[str, int]:
    """Complex numbers are computed as such, and the result, which is real, is rounded once."""
    dtype, shape = lowering.results["out"]
    own = lowering.call.dtype("input")
    operands = [lowering.dense("input", own, shape)]
    made = lowering.point("abs", operands, dtype, shape, reads=reads_of(own), expression="|input|")
    return {"out": made}


def _function(
    name: str,
    summary: str,
    expression: str,
    example: tuple[str, str],
    *dtypes: Rule,
    result: Callable[[Call], aclDataType | None] = own,
    formats: tuple[Rule, ...] = (),
    **more: Any,
) -> Operator:
    """A function with CANN's checks: dtypes, castability, formats, dimensions, shape."""
    cann = "".join(word.capitalize() for word in name.split("_"))
    return Operator(
        name=name,
        in_place=f"{name}_",
        summary=summary,
        expression=expression,
        formula=None if "lower" in more else name,
        infer=lambda call: {"out": (result(call), call.shape("input"))},
        inputs=("input",),
        entries=(
            entry(f"aclnn{cann}", "self=input out:out"),
            entry(f"aclnnInplace{cann}", "selfRef=input:inout"),
        ),
        rules=(
            *dtypes,
            result_castable(result),
            *formats,
            at_most_8_dims("input", "out"),
            same_shape("out", "input"),
        ),
        example=(f"{name}(np.float32({example[0]}))", f"array({example[1]}, dtype=float32)"),
        **more,
    )


def _of_floats(
    name: str,
    summary: str,
    expression: str,
    example: tuple[str, str],
    notes: str = "",
    more_dtypes: tuple[aclDataType, ...] = (),
    own_rules: tuple[Rule, ...] = (),
    **more: Any,
) -> Operator:
    """A function whose results are floating, whatever it is of."""
    return _function(
        name,
        summary,
        expression,
        example,
        in_place(dtype_among("input", (*FLOATING_AND_DOUBLE, *more_dtypes))),
        dtype_among("input", (*REAL, *more_dtypes)),
        *own_rules,
        dtype_among("out", (*FLOATING_AND_DOUBLE, *COMPLEX)),
        result=floating,
        notes=f"{notes} {_OF_INTEGERS} {'' if more_dtypes else _REAL_ONLY}".strip(),
        **more,
    )


_OF_INTEGERS = "Integers and BOOL are computed as float32."
_REAL_ONLY = "Complex inputs, which CANN takes, are refused."
_LARGE_UNSIGNED = (aclDataType.ACL_UINT16, aclDataType.ACL_UINT32, aclDataType.ACL_UINT64)
_ERF = (*FLOATING_AND_DOUBLE, aclDataType.ACL_BOOL, aclDataType.ACL_INT64)
_WHOLE = (aclDataType.ACL_INT8, aclDataType.ACL_INT32, aclDataType.ACL_INT64)
_UP = (0.0, 4.0)

_PLAIN_ALIKE = (no_private_format("input", "out"), same_format("input", "out"))

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
    dtype_among("input", (*REAL, aclDataType.ACL_COMPLEX64)),
    of_cann(_has_dtype_of(_size_dtype)),
    result=_size_dtype,
    lower=_lower_abs,
    elementwise=True,
    formats=_PLAIN_ALIKE,
    notes="The smallest integer stays unchanged. Of complex64 the result is float32.",
    gradient={"input": "grad * aten.sgn(input)"},
)
floor = _function(
    "floor",
    "The largest integer that is not greater than the element.",
    "⌊input⌋",
    ("[1.5, -1.5]", "[ 1., -2.]"),
    dtype_among("input", (*FLOATING_AND_DOUBLE, *INTEGERS, *_LARGE_UNSIGNED)),
    of_cann(same_dtype("out", "input")),
    formats=(no_private_format("input", "out"),),
    gradient={"input": "aten.zeros_like(grad)"},
)
square = _function(
    "square",
    "Square.",
    "input²",
    ("[1.5, -2]", "[2.25, 4.  ]"),
    of_cann(exists_on(("Ascend950",))),
    dtype_among("input", (*FLOATING_AND_DOUBLE, *INTEGERS, *COMPLEX)),
    of_cann(dtype_among("input", (*FLOATING, aclDataType.ACL_INT32, aclDataType.ACL_INT64))),
    of_cann(same_dtype("out", "input")),
    formats=_PLAIN_ALIKE,
    product="Ascend950",
    notes="Integers wrap around. aclnnSquare exists on Ascend950 only, with fewer dtypes.",
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
    more_dtypes=COMPLEX,
    formats=(same_format("input", "out"),),
    domain=(0.5, 4.0),
    gradient={"input": "-grad * conj(out * out)"},
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
    own_rules=(of_cann(dtype_among("input", _ERF)),),
    gradient={"input": "grad * (exp(-input * input) * 1.1283791670955126)"},
)
