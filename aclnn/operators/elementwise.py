"""Functions of one number: negation, roots, exponentials, logarithms, trigonometry."""

import builtins
import math
from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.acl.dtypes import LARGE_UNSIGNED
from aclnn.acl.rounding import nearest_float32 as as_float32
from aclnn.operators.checks import (
    COMPLEX,
    FLOATING,
    FLOATING_AND_DOUBLE,
    INTEGERS,
    REAL,
    Call,
    Rule,
    dtype_among,
    exists_on,
    in_place,
    of_cann,
    promoted,
    result_castable,
    rule,
    same_dtype,
)
from aclnn.operators.declaration import Attribute, Operator, entry
from aclnn.operators.lowering import Lowering, graph_dtype, reads_of
from aclnn.operators.pointwise import only_on, unless_on
from aclnn.operators.words import require

_NOT_FLOATING = (*INTEGERS, aclDataType.ACL_BOOL)


def floating(call: Call) -> aclDataType | None:
    """The dtype of the input, or float32 for integers and bools."""
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


@rule("`out` has the dtype of the result", "out", "input")
def _has_dtype_of(call: Call, result: Callable[[Call], aclDataType]) -> str | None:
    if "out" not in call.tensors or call.dtype("out") == result(call):
        return None
    return f"{call.typed('out')}, must be {call.word(result(call))}"


def _lower_abs(lowering: Lowering) -> Mapping[str, int]:
    """Complex numbers are computed as such, and the result, which is real, is rounded once."""
    dtype, shape = lowering.results["out"]
    own = lowering.call.dtype("input")
    operands = [lowering.dense("input", own, shape)]
    made = lowering.point("abs", operands, dtype, shape, reads=reads_of(own), expression="|input|")
    return {"out": made}


def _lower_round(lowering: Lowering) -> Mapping[str, int]:
    """Products and quotients of half precision are rounded as float32 ones."""
    dtype, shape = lowering.results["out"]
    decimals, value = lowering.call.switches["decimals"], lowering.value("input")
    assert isinstance(decimals, int)
    if not decimals or dtype in INTEGERS:
        return {"out": lowering.point("round", [lowering.dense(value, dtype)], dtype, shape)}
    double = dtype == aclDataType.ACL_DOUBLE
    within = dtype if double else aclDataType.ACL_FLOAT
    power = _power_of_ten(builtins.abs(decimals), double)
    forth, back = ("muls", "divs") if decimals > 0 else ("divs", "muls")
    value = lowering.dense(value, within)
    scaled = lowering.point(forth, [value], within, shape, params=(power,))
    whole = lowering.point("round", [scaled], within, shape)
    made = lowering.point(back, [whole], within, shape, params=(power,))
    return {"out": lowering.builder.cast(made, graph_dtype(dtype))}


def _power_of_ten(exponent: int, double: bool) -> float:
    """Rounded once, or infinite."""
    if exponent > (308 if double else 38):
        return math.inf
    return float(10**exponent) if double else as_float32(10**exponent)


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
            *require("input, out: at most 8 dims; out: shape of input"),
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
_WHOLE = (aclDataType.ACL_INT8, aclDataType.ACL_INT32, aclDataType.ACL_INT64)
_UP = (0.0, 4.0)
_TRUNCATED = (aclDataType.ACL_INT8, aclDataType.ACL_UINT8, aclDataType.ACL_INT32)
_ROUNDED = (*FLOATING_AND_DOUBLE, aclDataType.ACL_INT32, aclDataType.ACL_INT64)
_SIGNED = (*_ROUNDED, *COMPLEX, aclDataType.ACL_BOOL)

_PLAIN_ALIKE = require("input, out: plain format; input, out: one format")

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
    dtype_among("input", (*FLOATING_AND_DOUBLE, *INTEGERS, *LARGE_UNSIGNED)),
    of_cann(same_dtype("out", "input")),
    formats=require("input, out: plain format"),
    gradient={"input": "aten.zeros_like(grad)"},
)
ceil = _function(
    "ceil",
    "The smallest integer that is not less than the element.",
    "⌈input⌉",
    ("[1.5, -1.5]", "[ 2., -1.]"),
    of_cann(same_dtype("out", "input")),
    of_cann(dtype_among("input", FLOATING_AND_DOUBLE)),
    dtype_among("input", (*FLOATING_AND_DOUBLE, *INTEGERS)),
    gradient={"input": "aten.zeros_like(grad)"},
)
trunc = _function(
    "trunc",
    "The integer part of the element.",
    "⌊|input|⌋ with the sign of input",
    ("[1.5, -1.5]", "[ 1., -1.]"),
    unless_on("Ascend950", of_cann(dtype_among("input", FLOATING))),
    only_on("Ascend950", of_cann(dtype_among("input", (*FLOATING, *_TRUNCATED)))),
    dtype_among("input", (*FLOATING_AND_DOUBLE, *INTEGERS)),
    of_cann(same_dtype("out", "input")),
    notes="-0 stays.",
    gradient={"input": "aten.zeros_like(grad)"},
)
frac = _function(
    "frac",
    "The element without its integer part.",
    "input - trunc(input)",
    ("[1.5, -1.5]", "[ 0.5, -0.5]"),
    of_cann(same_dtype("out", "input")),
    dtype_among("input", (*FLOATING_AND_DOUBLE, *INTEGERS)),
    of_cann(dtype_among("input", (*FLOATING, *INTEGERS))),
    notes="NaN of an infinity. Integers give 0.",
    gradient={"input": "grad"},
)
round = Operator(
    name="round",
    in_place="round_",
    summary="The nearest integer, or number of so many decimals; ties go to even ones.",
    expression="round(input·10^decimals)/10^decimals",
    notes=(
        "-0 stays. 10^decimals is a float32, a float64 for float64: where it is infinite results are NaN. "
        "Each product and each quotient is rounded. Integers stay as they are, whatever `decimals` says."
    ),
    elementwise=True,
    infer=lambda call: {"out": (call.dtype("input"), call.shape("input"))},
    lower=_lower_round,
    inputs=("input",),
    attributes=(
        Attribute(
            "decimals", 0, "int", doc="How many decimals remain; before the point if negative."
        ),
    ),
    entries=(
        entry("aclnnRound", "self=input out:out"),
        entry("aclnnInplaceRound", "selfRef=input:inout"),
        entry("aclnnRoundDecimals", "self=input decimals:int out:out"),
        entry("aclnnInplaceRoundDecimals", "selfRef=input:inout decimals:int"),
    ),
    rules=(
        *require("input: FLOATING_AND_DOUBLE INTEGERS"),
        *require("cann input, out: FLOATING_AND_DOUBLE INT32 INT64; cann out: dtype of input"),
        result_castable(own),
        *require("out: shape of input; input, out: at most 8 dims; out, input: one format"),
    ),
    example=("round(np.float32([1.5, 2.5]))", "array([2., 2.], dtype=float32)"),
    seealso=("trunc", "floor"),
    gradient={"input": "aten.zeros_like(grad)"},
)
sign = Operator(
    name="sign",
    summary="The sign of the element: 1, -1 or 0.",
    expression="input > 0: 1; input < 0: -1; else 0",
    notes="0 for a NaN and for -0. Of complex numbers it is input/|input|.",
    formula="sign",
    inputs=("input",),
    any_rank=True,
    entries=(entry("aclnnSign", "self=input result=out:out"),),
    rules=(
        *require("input: NUMERIC; cann input: FLOATING_AND_DOUBLE INT32 INT64 COMPLEX BOOL"),
        *require("cann out: dtype of input"),
        result_castable(own),
        *require("out: shape of input"),
    ),
    example=("sign(np.float32([2, -3, 0]))", "array([ 1., -1.,  0.], dtype=float32)"),
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
    formats=require("input, out: one format"),
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
    own_rules=require("cann input: FLOATING_AND_DOUBLE BOOL INT64"),
    gradient={"input": "grad * (exp(-input * input) * 1.1283791670955126)"},
)
