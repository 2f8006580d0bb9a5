"""Validation of arguments of any type, and their text in messages."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from aclnn.acl.errors import invalid, wrong_kind
from aclnn.acl.rounding import as_double

LONGEST_SHOWN = 200


class NumberOfRun:
    """A number whose value belongs to a run: only what cannot do without it asks for it."""

    __slots__ = ()


def shown(value: object) -> str:
    """The text by which messages show any value: its ``repr`` may raise, or be very long.

    >>> shown("x"), shown(10**5000)
    ("'x'", 'an int of 16610 bits')
    """
    try:
        text = repr(value)
    except Exception:
        if isinstance(value, int):  # Python converts no more than some thousand digits
            return f"an int of {value.bit_length()} bits"
        return f"an object of type {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


# What NumPy, PyTorch and others call what has another name here.
_ELSEWHERE = {
    "absolute": "abs", "argmax": "arg_max", "astype": "cast", "axes": "dims", "axis": "dim",
    "broadcast_to": "expand", "clip": "clamp", "concat": "cat", "concatenate": "cat",
    "divide": "div", "equal": "eq", "greater": "gt", "greater_equal": "ge", "less": "lt",
    "less_equal": "le", "multiply": "mul", "negative": "neg", "not_equal": "ne",
    "pad": "constant_pad_nd", "power": "pow", "subtract": "sub", "take": "index_select",
    "tile": "repeat", "transpose": "permute", "slope": "negative_slope",
}  # fmt: skip


# Parameters that PyTorch, NumPy and CANN call differently: by a name that is given, those that it may mean.
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "input": ("self", "x"),
    "self": ("input", "x"),
    "eps": ("epsilon",),
    "epsilon": ("eps",),
    "axis": ("dim",),
    "dim": ("axis",),
    "tensor": ("input",),
}


def parameter_meant(name: str, parameters: Collection[str]) -> str | None:
    """The parameter that another library calls `name`; None if there is none.

    >>> parameter_meant("axis", ("input", "dim")), parameter_meant("axis", ("self",))
    ('dim', None)
    """
    return next((one for one in OTHER_NAMES.get(name, ()) if one in parameters), None)


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Hint for a name that is nearly a known one, or means one elsewhere; else empty.

    >>> did_you_mean("gellu", ["elu", "gelu", "relu"]), did_you_mean("gelu", ["bucket"])
    ("; did you mean 'gelu'?", '')
    >>> did_you_mean("axis", ["input", "dim"])
    "; did you mean 'dim'?"
    """
    if not isinstance(word, str) or len(word) > LONGEST_SHOWN:
        return ""
    by_lower = {name.lower(): name for name in known}  # in any case
    if (elsewhere := _ELSEWHERE.get(word.lower())) in by_lower:
        return f"; did you mean {elsewhere!r}?"
    close = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


def as_int(value: object) -> int | None:
    """A Python or NumPy integer as an int, `None` for anything else; True is no integer.

    Conversions that subclasses define are not called: they may do anything.

    >>> as_int(np.int64(3)), as_int(True), as_int(2.0), as_int(np.timedelta64(3, "s"))
    (3, None, None, None)
    """
    if isinstance(value, bool | np.timedelta64):
        return None
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, np.integer):
        return int(operator.index(value))
    if (read := getattr(type(value), "__aclnn_read__", None)) is not None:
        read(value)  # what stands for an integer hears that its value is wanted
    return None


def as_count(name: str, value: object) -> int:
    """An int that is not negative.

    >>> as_count("size", np.int8(3))
    3
    """
    number = as_int(value)
    if number is None or number < 0:
        raise invalid(f"{name} is {shown(value)}, must be an int that is not negative")
    return number


def as_truth(name: str, value: Any) -> bool:
    """The bool of an argument; text is refused, as even "false" would be true.

    >>> as_truth("x", np.True_), as_truth("x", 0)
    (True, False)
    """
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        return bool(value)
    except Exception:  # an array of several elements, or whatever its __bool__ raises
        raise wrong_kind(f"{name} is {shown(value)}, must be true or false") from None


def as_real(value: Any) -> float:
    """A number as a float, infinite beyond the largest.

    Raises
    ------
    TypeError
        For text, and for complex numbers, NumPy's included, which `float` only warns of.

    Examples
    --------
    >>> as_real(np.float16(0.5)), as_real(3), as_real(-(10**400))
    (0.5, 3.0, -inf)
    """
    if isinstance(value, str | bytes | bytearray):
        raise TypeError("text is no number")
    if not isinstance(value, float | int | np.floating) and _is_complex(value):
        raise TypeError("a complex number has no order")
    return as_double(value)


def _is_complex(value: Any) -> bool:
    try:
        return bool(np.iscomplexobj(value))
    except Exception:  # of arrays whose dtype NumPy has no counterpart for
        return False


def as_kind(kind: str, value: Any) -> Any:
    """An argument as one of C's plain kinds: 'bool', 'int', 'float' or 'str'.

    Raises
    ------
    TypeError
        If it is of another kind. What the conversion of a number raises is passed on.

    Examples
    --------
    >>> as_kind("bool", 1), as_kind("int", np.int8(3)), as_kind("float", 2), as_kind("str", b"tanh")
    (True, 3, 2.0, 'tanh')
    """
    if kind == "float":
        return as_real(value)
    if kind == "str" and isinstance(value, str | bytes):
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str.__str__(value)
    number = as_int(value)
    if kind == "bool" and (number is not None or isinstance(value, bool | np.bool_)):
        return bool(value if number is None else number)
    if kind == "int" and number is not None:
        return number
    raise TypeError(f"{kind} was wanted")


def as_member(name: str, value: object, kind: type[IntEnum]) -> int:
    """The number of a member of an enumeration, which may be given as a number.

    >>> from aclnn.acl.constants import aclDataType
    >>> as_member("dataType", 27, aclDataType), as_member("dataType", aclDataType.ACL_FLOAT, aclDataType)
    (27, 0)
    """
    number = as_int(value)
    if number is None or number not in kind._value2member_map_:
        raise invalid(f"{name} is {shown(value)}, which is no member of {kind.__name__}")
    return number
