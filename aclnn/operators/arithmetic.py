"""Sums, products and quotients, of tensors and of a tensor and a scalar."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    COMPLEX,
    INTEGERS,
    Call,
    Rule,
    broadcast_shape,
    broadcast_shapes,
    broadcasts,
    in_place,
    number_castable,
    promoted,
    promoted_with_number,
    promotes_with_number,
    result_castable,
    rule,
    switch_among,
)
from aclnn.operators.declaration import Attribute, Operator, argument
from aclnn.operators.lowering import (
    Lowering,
    operands_as,
    reads_of,
)
from aclnn.operators.pointwise import BOTH, with_number
from aclnn.operators.words import require

_NUMBERS = (
    "Numbers take part as float32, with float64 and complex tensors as float64, and with tensors "
    "of "
    "integers as integers; results of integers wrap around. With a complex number the result is "
    "complex."
)
_TRUTH = "For bools the sum is 'or', the difference 'exclusive or'."
_ALPHA = Attribute("alpha", 1, doc="Factor of `other`.", facts=("dtype", "zero"))


def _of_tensors(call: Call) -> aclDataType | None:
    return promoted(call, BOTH)


def _with_number(call: Call) -> aclDataType | None:
    return promoted_with_number(call, "input", "other")


def _quotient_of(
    result: Callable[[Call], aclDataType | None],
) -> Callable[[Call], aclDataType | None]:
    """The dtype of a quotient: that of integers is float32 on an Ascend950 only."""

    def quotient(call: Call) -> aclDataType | None:
        dtype = result(call)
        whole = dtype in INTEGERS or dtype == aclDataType.ACL_BOOL
        return aclDataType.ACL_FLOAT if whole and call.soc == "Ascend950" else dtype

    return quotient


def _shape(call: Call) -> tuple[int, ...]:
    shape = broadcast_shapes(*(call.shape(role) for role in BOTH if role in call.tensors))
    assert shape is not None, "a rule of every operator sees to it that the inputs broadcast"
    return shape


def _infer(
    result: Callable[[Call], aclDataType | None],
) -> Callable[[Call], Mapping[str, tuple[Any, tuple[int, ...]]]]:
    return lambda call: {"out": (result(call), _shape(call))}


def _lower_sum(formula: str, expression: str) -> Callable[[Lowering], Mapping[str, int]]:
    """The nodes of a sum or difference, of which alpha is a factor."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        tensors = [role for role in BOTH if role in lowering.call.tensors]
        roles = [role for role in (*BOTH, "alpha") if role in lowering.call.scalars]
        params = lowering.params(roles, dtype)
        if dtype == aclDataType.ACL_BOOL:  # whatever alpha is, it counts as a bool
            params = (*params[:-1], int(not lowering.call.scalars["alpha"].zero))
        operands = operands_as(lowering, tensors, dtype, shape)
        made = lowering.point(formula, operands, dtype, shape, params=params, expression=expression)
        return {"out": made}

    return lower


def _tensor_rules(
    result: Callable[[Call], aclDataType | None], *numbers: Rule, shapes_first: bool = False
) -> tuple[Rule, ...]:
    dtypes = (
        *require("input, other: NUMERIC; input, other: promote to NUMERIC"),
        *numbers,
        result_castable(result),
    )
    shapes = (
        *require("input, other: at most 8 dims; input, other: broadcast"),
        *require("out: broadcast of input, other"),
    )
    first = (in_place(broadcasts(*BOTH)), in_place(broadcast_shape("out", BOTH)))
    if not shapes_first:
        return (*first, *dtypes, *shapes)
    return (*first, *shapes, *dtypes, *require("input, other, out: plain format"))


def _number_rules(
    result: Callable[[Call], aclDataType | None], *numbers: Rule, shapes_first: bool = False
) -> tuple[Rule, ...]:
    dtypes = (
        *require("input: NUMERIC"),
        promotes_with_number("input", "other"),
        *numbers,
        result_castable(result),
    )
    shapes = require("input, out: at most 8 dims; out: shape of input")
    if not shapes_first:
        return (*dtypes, *shapes)
    return (*shapes, *dtypes, *require("input, out: plain format"))


def _factor(result: Callable[[Call], aclDataType | None]) -> tuple[Rule, ...]:
    return (number_castable("alpha", result),)


def _sum(
    name: str,
    expression: str,
    found: tuple[str, str],
    *,
    of_tensors: dict[str, Any],
    of_number: dict[str, Any],
    in_place: bool = True,
    alpha: str = "Factor of `other`.",
) -> tuple[Operator, Operator]:
    """A sum or difference of two tensors, and that of a tensor and a number.

    `found` is what they give for 1 and 2 with 3 and 4, or with 3, and an alpha of 10.
    """
    factor, cann = replace(_ALPHA, doc=alpha), name.capitalize()
    return with_number(
        name,
        (cann, f"{cann}s"),
        f"{name}s",
        options="alpha:scalar",
        in_place=in_place,
        attributes=(factor,),
        elementwise=True,
        expression=expression,
        examples=(
            (
                "(np.float32([1, 2]), np.float32([3, 4]), alpha=10)",
                f"array([{found[0]}], dtype=float32)",
            ),
            ("(np.float32([1, 2]), 3, alpha=10)", f"array([{found[1]}], dtype=float32)"),
        ),
        of_tensors={
            "notes": f"{_NUMBERS} {_TRUTH}",
            "infer": _infer(_of_tensors),
            "lower": _lower_sum(name, expression),
            "rules": _tensor_rules(_of_tensors, *_factor(_of_tensors)),
            **of_tensors,
        },
        of_number={
            "notes": _NUMBERS,
            "infer": _infer(_with_number),
            "lower": _lower_sum(f"{name}s", expression),
            "rules": _number_rules(_with_number, *_factor(_with_number)),
            **of_number,
        },
    )


add, adds = _sum(
    "add",
    "input + alpha·other",
    ("31., 42.", "31., 32."),
    of_tensors={
        "summary": "Sum, with a factor for the second operand.",
        "seealso": ("sub",),
        "gradient": {"input": "grad", "other": "grad * alpha"},
    },
    of_number={"summary": "Sum of a tensor and a number, with a factor for the number."},
)
sub, subs = _sum(
    "sub",
    "input - alpha·other",
    ("-29., -38.", "-29., -28."),
    of_tensors={
        "summary": "Difference, with a factor for the second operand.",
        "seealso": ("add",),
        "gradient": {"input": "grad", "other": "grad * -alpha"},
    },
    of_number={"summary": "Difference of a tensor and a number, with a factor for the number."},
)
rsub, rsubs = _sum(
    "rsub",
    "other - alpha·input",
    (" -7., -16.", " -7., -17."),
    in_place=False,
    alpha="Factor of `input`.",
    of_tensors={
        "summary": "Difference the other way around, with a factor for the first operand.",
        "seealso": ("sub",),
        "gradient": {"input": "grad * -alpha", "other": "grad"},
        "layout": ("other", "input"),
    },
    of_number={"summary": "Difference of a number and a tensor, with a factor for the tensor."},
)

mul, muls = with_number(
    "mul",
    ("Mul", "Muls"),
    "muls",
    expression="input·other",
    notes=_NUMBERS,
    examples=(
        ("(np.float32([1, 2]), np.float32([3, 4]))", "array([3., 8.], dtype=float32)"),
        ("(np.float32([1, 2]), 3)", "array([3., 6.], dtype=float32)"),
    ),
    of_tensors={
        "summary": "Product.",
        "formula": "mul",
        "rules": (
            in_place(broadcasts(*BOTH)),
            in_place(broadcast_shape("out", BOTH)),
            *require("input, other, out: NUMERIC; input, other: promote to NUMERIC"),
            result_castable(_of_tensors),
            *require("input, other: at most 8 dims; input, other: broadcast"),
            *require("out: broadcast of input, other"),
        ),
        "seealso": ("div",),
        "gradient": {"input": "grad * conj(other)", "other": "grad * conj(input)"},
    },
    of_number={
        "summary": "Product of a tensor and a number.",
        "formula": "muls",
        "any_rank": True,
        "infer": _infer(_with_number),
        "scalars_as_double": True,
        "rules": (
            *require("input, out: NUMERIC"),
            promotes_with_number("input", "other"),
            result_castable(_with_number),
            *require("out: shape of input"),
        ),
    },
)

_ROUNDING = Attribute(
    "rounding_mode",
    None,
    "str",
    doc="How the quotient is rounded: 'trunc' towards zero, 'floor' down, None not at all.",
    choices=("trunc", "floor"),
)
_QUOTIENT = (
    "Integers have an integer quotient, rounded towards zero, and 0 where the divisor is 0; on an "
    "Ascend950 they are divided as float32."
)

div, divs = with_number(
    "div",
    ("Div", "Divs"),
    "divs",
    expression="input/other",
    examples=(
        ("(np.float32([1, 2]), np.float32([4, 8]))", "array([0.25, 0.25], dtype=float32)"),
        ("(np.float32([1, 2]), 4)", "array([0.25, 0.5 ], dtype=float32)"),
    ),
    of_tensors={
        "summary": "Quotient.",
        "notes": f"{_QUOTIENT} {_NUMBERS} With a rounding mode it is `div_mod`, by aclnnDivMod.",
        "formula": "div",
        "option_form": (_ROUNDING, "div_mod", "mode"),
        "infer": _infer(_quotient_of(_of_tensors)),
        "rules": _tensor_rules(_quotient_of(_of_tensors), shapes_first=True),
        "seealso": ("mul",),
        "gradient": {"input": "grad / conj(other)", "other": "-grad * conj(out / other)"},
    },
    of_number={
        "summary": "Quotient of a tensor and a number.",
        "notes": f"{_QUOTIENT} {_NUMBERS}",
        "formula": "divs",
        "infer": _infer(_quotient_of(_with_number)),
        "scalars_as_double": True,
        "rules": _number_rules(_quotient_of(_with_number), shapes_first=True),
    },
)


# --- Rounded quotients ------------------------------------------------------------------------------

_MODE = argument(
    "mode",
    "true",
    "str",
    "How the quotient is rounded: not at all, towards zero, or down.",
    choices=("true", "trunc", "floor"),
)
_ROUNDED = {"trunc": "div_trunc", "floor": "div_floor"}


def _rounded(
    result: Callable[[Call], aclDataType | None],
) -> Callable[[Call], aclDataType | None]:
    """The dtype of a quotient: rounded ones of integers are integers everywhere."""

    def dtype(call: Call) -> aclDataType | None:
        return (result if call.switches["mode"] in _ROUNDED else _quotient_of(result))(call)

    return dtype


@rule("of complex numbers `mode` is 'true'")
def _complex_only_true(call: Call, result: Callable[[Call], aclDataType | None]) -> str | None:
    if result(call) not in COMPLEX or call.switches["mode"] == "true":
        return None
    return f"{call.names['mode']} is {call.switches['mode']!r}, must be 'true' of complex numbers"


def _lower_div_mod(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    numbers = aclDataType.ACL_FLOAT if reads_of(dtype) == "float32" else dtype
    operands = lowering.pair(BOTH, dtype, shape, numbers=numbers)
    formula = _ROUNDED.get(str(lowering.call.switches["mode"]), "div")
    return {"out": lowering.point(formula, operands, dtype, shape, expression="input/other")}


div_mod, div_mods = with_number(
    "div_mod",
    ("DivMod", "DivMods"),
    "div_mods",
    options="mode:int",
    attributes=(_MODE,),
    expression="input/other, rounded",
    lower=_lower_div_mod,
    elementwise=True,
    examples=(
        (
            '(np.float32([7, -7]), np.float32([2, 2]), "floor")',
            "array([ 3., -4.], dtype=float32)",
        ),
        ('(np.float32([7, -7]), 2, "trunc")', "array([ 3., -3.], dtype=float32)"),
    ),
    of_tensors={
        "summary": "Quotient, rounded by a mode.",
        "notes": (
            "With 'true' it is `div`. Quotients are computed exactly, then rounded. Integers give "
            "integers, and 0 if the divisor is 0. PyTorch's torch.div does the same."
        ),
        "infer": _infer(_rounded(_of_tensors)),
        "rules": (
            *_tensor_rules(_rounded(_of_tensors), shapes_first=True),
            switch_among("mode", _MODE.choices),
            _complex_only_true(_of_tensors),
        ),
        "seealso": ("div",),
        "gradient": {
            "input": "grad / conj(other) if mode == 'true' else aten.zeros_like(grad)",
            "other": "-grad * conj(out / other) if mode == 'true' else aten.zeros_like(grad)",
        },
    },
    of_number={
        "summary": "Quotient of a tensor and a number, rounded by a mode.",
        "notes": "See `div_mod`.",
        "infer": _infer(_rounded(_with_number)),
        "rules": (
            *_number_rules(_rounded(_with_number), shapes_first=True),
            switch_among("mode", _MODE.choices),
            _complex_only_true(_with_number),
        ),
    },
)
