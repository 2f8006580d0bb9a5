"""NumPy's ufuncs on traced arrays: which operators are their counterparts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aclnn.acl.errors import AclnnError, invalid, wrong_kind
from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.tracing.promotion import BOOL, holds, kind_of, loop_of, number_in
from aclnn.tracing.recording import Trace, is_number
from aclnn.tracing.run_numbers import RunNumber

# Ufuncs whose operator has another name; any other has its own.
NAMES = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "negative": "neg",
    "absolute": "abs",
    "fabs": "abs",
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}


def no_counterpart(name: str) -> AclnnError:
    return invalid(
        f"np.{name} has no counterpart among the operators: aclnn.call(np.{name}, ..., shape=..., "
        "dtype=...) embeds it as a step of the plan"
    )


# --- Ufuncs ---------------------------------------------------------------------------------------


def array_ufunc(
    trace: Trace, function: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]
) -> Any:
    """Handle a ufunc of NumPy that is called with a traced array."""
    name = function.__name__
    out = options.pop("out", None)
    if method != "__call__":
        raise no_counterpart(f"{name}.{method}")
    if options:
        raise invalid(f"np.{name}: {next(iter(options))} cannot be traced; out can")
    if function.nout != 1:
        raise no_counterpart(name)
    if isinstance(out, tuple):
        (out,) = out
    return ufunc(trace, function, inputs, out)


def ufunc(trace: Trace, function: Any, operands: Sequence[Any], out: Any = None) -> Any:
    """The result of a ufunc, recorded: NumPy's dtype, computed in NumPy's dtypes."""
    name = function.__name__
    if name not in _OWN and NAMES.get(name, name) not in HANDLES_BY_NAME:
        raise no_counterpart(name)
    operands = [one if is_number(one) else trace.taken(one) for one in operands]
    out = None if out is None else trace.taken(out)
    if name in _COMPARISONS and (decided := _decided(trace, name, operands)) is not None:
        return written(decided, out)
    *kinds, result = loop_of(function, operands, None if out is None else out.dtype)
    if name == "divide" and all(kind_of(one) in _WHOLE for one in operands):
        raise wrong_kind(
            "np.divide of integers has a float64 result: convert one of them first, with "
            ".astype(np.float64), or take //, for integers; aclnn.call embeds anything else"
        )
    if name in _COMPARISONS and kinds[0] != kinds[1]:
        raise wrong_kind(
            f"np.{name} of {kinds[0]} and {kinds[1]} has no counterpart among the operators, as no "
            "dtype holds both: convert one of them with .astype first; aclnn.call embeds anything else"
        )
    arguments = [_in_dtype(trace, one, kind) for one, kind in zip(operands, kinds, strict=True)]
    if any(kind.kind == "c" for kind in kinds):
        _refuse_roundings(name, kinds)
    if out is not None and name not in _OWN and _fits(function, arguments, result, out):
        return _recorded(trace, name, arguments, out)
    made = _OWN[name](trace, *arguments) if name in _OWN else _recorded(trace, name, arguments)
    if made.dtype != result:
        raise wrong_kind(
            f"np.{name} gives {result} of {' and '.join(map(str, kinds))}, but the operator "
            f"{made.dtype}: convert with .astype first; aclnn.call embeds anything else"
        )
    return written(made, out)


def _fits(function: Any, arguments: Sequence[Any], dtype: np.dtype, out: Any) -> bool:
    """Whether an operator can write its result into `out` as it is."""
    if out.dtype != dtype:
        return False
    return function.signature is not None or out.shape == np.broadcast_shapes(
        *map(np.shape, arguments)
    )


def _refuse_roundings(name: str, kinds: Sequence[np.dtype]) -> None:
    """Complex numbers are rounded once here, in NumPy several times."""
    form = {"multiply": "mul", "square": "mul", "divide": "div", "reciprocal": "div"}.get(name)
    if form is not None:
        raise wrong_kind(
            f"np.{name} of {kinds[0]} rounds otherwise than the operator: aclnn.{form} rounds once, "
            f"aclnn.call embeds np.{name} as a step of the plan"
        )


def _in_dtype(trace: Trace, operand: Any, dtype: np.dtype) -> Any:
    """An operand in the dtype of a loop: numbers rounded to it."""
    if not is_number(operand):
        return operand if operand.dtype == dtype else operand.astype(dtype)
    number = number_in(operand, dtype)
    return trace.number(number, dtype) if dtype.kind == "c" else number


def _recorded(trace: Trace, name: str, operands: Sequence[Any], out: Any = None) -> Any:
    """The call of the operator for a ufunc, on operands of one dtype."""
    operator = NAMES.get(name, name)
    if operator in _EXCHANGE and is_number(operands[0]):
        number, array = operands
        return _EXCHANGE[operator](trace, number, array, out)
    return trace.form(operator, *operands, out=out)


def written(result: Any, out: Any) -> Any:
    if out is None:
        return result
    out.assign(result)
    return out


_WHOLE = (*map(np.dtype, "?bhilqBHILQ"), int)


# --- Comparisons ----------------------------------------------------------------------------------

_COMPARISONS = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}


def _decided(trace: Trace, name: str, operands: Sequence[Any]) -> Any:
    """A comparison with an integer that the array's dtype cannot hold, whose result is known."""
    for index, one in enumerate(operands):
        other = operands[1 - index]
        beyond = kind_of(one) is int and isinstance(kind_of(other), np.dtype)
        if beyond and not holds(one, other.dtype):
            pair = (one, 0) if index == 0 else (0, one)
            truth = _COMPARISONS[name](*pair)
            return trace.number(truth, BOOL).broadcast_to(np.shape(other)).copy()
    return None


# --- Numbers as the first operand -----------------------------------------------------------------


def _commuted(name: str) -> Callable[..., Any]:
    return lambda trace, a, b, out: trace.form(name, b, a, out=out)


def _number_minus(trace: Trace, number: Any, array: Any, out: Any) -> Any:
    return trace.form("add", trace.form("neg", array), number, out=out)  # the same bits


# What becomes of a number as the first operand; others take it as an array.
_EXCHANGE = {
    "add": _commuted("add"),
    "mul": _commuted("mul"),
    "sub": _number_minus,
    "eq": _commuted("eq"),
    "ne": _commuted("ne"),
    "lt": _commuted("gt"),
    "le": _commuted("ge"),
    "gt": _commuted("lt"),
    "ge": _commuted("le"),
}


# --- Ufuncs that are not one operator -------------------------------------------------------------


def power(trace: Trace, base: Any, exponent: Any, out: Any = None) -> Any:
    """Power as `**` computes it: NumPy has shorter ways for some exponents that are Python's numbers."""
    if type(exponent) is RunNumber and exponent.observe(_POWERS.__contains__):
        exponent = float(exponent)
    short = type(exponent) in (int, float) and not is_number(base) and exponent in _POWERS
    if short and (base.dtype.kind not in "biu" or (type(exponent) is int and exponent == 2)):
        return ufunc(trace, _POWERS[exponent], (base,), out)
    return ufunc(trace, np.power, (base, exponent), out)


_POWERS = {-1: np.reciprocal, 0.5: np.sqrt, 1: np.positive, 2: np.square}


def _power(trace: Trace, base: Any, exponent: Any) -> Any:
    kind = base.dtype if is_number(exponent) else exponent.dtype
    if kind.kind == "i":
        if not is_number(exponent):
            raise wrong_kind(
                "np.power of integers refuses negative exponents, and a traced array's are not known: "
                "convert with .astype(np.float64) first; aclnn.call embeds anything else"
            )
        if exponent < 0:
            raise invalid("Integers to negative integer powers are not allowed.")
    return trace.form("pow", base, exponent)


def _reciprocal(trace: Trace, x: Any) -> Any:
    if x.dtype.kind in "iu":
        raise wrong_kind("np.reciprocal of integers has no counterpart: .astype(np.float64) first")
    return trace.form("div", 1, x)


def _floor_divide(trace: Trace, a: Any, b: Any) -> Any:
    _refuse_fractions("floor_divide", a, b)
    return trace.form("div_mod", a, b, mode="floor")


def _remainder(trace: Trace, a: Any, b: Any) -> Any:
    _refuse_fractions("remainder", a, b)
    return _remainder_of(trace, a, b, _floor_divide(trace, a, b))


def _fmod(trace: Trace, a: Any, b: Any) -> Any:
    if all(kind_of(one) is not float and np.dtype(kind_of(one)).kind in "biu" for one in (a, b)):
        return _remainder_of(trace, a, b, trace.form("div_mod", a, b, mode="trunc"))
    return trace.form("fmod", a, b)


def _remainder_of(trace: Trace, a: Any, b: Any, quotient: Any) -> Any:
    """Remainder of integers, which NumPy says is 0 where the divisor is."""
    whole = ufunc(trace, np.multiply, (quotient, b))
    left = ufunc(trace, np.subtract, (a, whole))
    if is_number(b):
        return left if b else ufunc(trace, np.multiply, (left, 0))
    zero = ufunc(trace, np.equal, (b, 0))
    return trace.form("where", zero, trace.number(0, left.dtype), left)


def _refuse_fractions(name: str, *operands: Any) -> None:
    if any(kind_of(one) is float or np.dtype(kind_of(one)).kind not in "biu" for one in operands):
        raise wrong_kind(
            f"np.{name} of floating-point numbers has no counterpart among the operators: "
            f"aclnn.call(np.{name}, ..., shape=..., dtype=...) embeds it as a step of the plan"
        )


def _heaviside(trace: Trace, x: Any, values: Any) -> Any:
    """The operator's, which takes NaN for a negative number."""
    if is_number(x):
        x = trace.number(x, values.dtype)
    return trace.form("where", trace.form("ne", x, x), x, trace.form("heaviside", x, values))


def _of_truth(name: str, logical: str) -> Callable[..., Any]:
    """A function of bits, which has an operator for bool only."""

    def record(trace: Trace, *operands: Any) -> Any:
        if not all(kind_of(one) == BOOL for one in operands):
            raise wrong_kind(
                f"np.{name} of integers has no counterpart among the operators, only that of truth "
                f"values: aclnn.call(np.{name}, ..., shape=..., dtype=...) embeds it"
            )
        return trace.form(logical, *operands)

    return record


_OWN: dict[str, Callable[..., Any]] = {
    "power": _power,
    "square": lambda trace, x: trace.form("mul", x, x),
    "positive": lambda _, x: x.copy(),
    "reciprocal": _reciprocal,
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "fmod": _fmod,
    "bitwise_and": _of_truth("bitwise_and", "logical_and"),
    "bitwise_or": _of_truth("bitwise_or", "logical_or"),
    "bitwise_xor": _of_truth("bitwise_xor", "logical_xor"),
    "invert": _of_truth("invert", "logical_not"),
    "heaviside": _heaviside,
    "isnan": lambda trace, x: trace.form("ne", x, x),
    "clip": lambda trace, x, low, high: trace.form("clamp", x, min=low, max=high),
}
