"""NumPy's promotion: in which dtypes an operation on traced arrays computes, and its numbers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from aclnn.acl.constants import aclnnStatus
from aclnn.acl.errors import AclnnError, wrong_kind
from aclnn.tracing.run_numbers import RunNumber

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
BOOL = np.dtype(np.bool_)


class OutOfBoundsError(AclnnError, OverflowError):
    """A number that a dtype of integers cannot hold: NumPy's exception, with the function's line."""


def kind_of(operand: Any) -> Any:
    """The dtype of an operand, or Python's type of a number that takes the dtype with it.

    >>> kind_of(2.5), kind_of(np.float64(2.5)), kind_of(True)
    (<class 'float'>, dtype('float64'), dtype('bool'))
    """
    if hasattr(operand, "dtype"):  # NumPy's float64 is a float of Python's, too
        return np.dtype(operand.dtype)
    if isinstance(operand, bool):
        return BOOL
    return next(kind for kind in (int, float, complex) if isinstance(operand, kind))


def loop_of(
    function: np.ufunc, operands: Sequence[Any], out: np.dtype | None = None
) -> tuple[np.dtype, ...]:
    """The dtypes that NumPy computes in: of each operand, then of the result.

    Parameters
    ----------
    function : numpy.ufunc
    operands : sequence of array or number
    out : numpy.dtype, optional
        Of what the result is written into, to which it has to be castable.

    Raises
    ------
    AclnnTypeError
        With NumPy's words.

    Examples
    --------
    >>> [str(kind) for kind in loop_of(np.add, [np.int8(1), 2.5])]
    ['float64', 'float64', 'float64']
    """
    kinds = _kinds(operands)
    try:
        found = function.resolve_dtypes((*kinds, None))
        if out is not None and not np.can_cast(found[-1], out, "same_kind"):
            raise TypeError(
                f"Cannot cast ufunc {function.__name__!r} output from {found[-1]!r} to {out!r} with "
                "casting rule 'same_kind'"
            )
    except TypeError as error:
        raise wrong_kind(f"np.{function.__name__}: {error}") from None
    if all(kind == BFLOAT16 for kind in kinds):
        return (*kinds, BOOL if found[-1] == BOOL else BFLOAT16)
    return tuple(found)


def common_dtype(operands: Sequence[Any]) -> np.dtype:
    """The dtype of arrays and numbers together.

    >>> common_dtype([np.float16(1), 2.5, True])
    dtype('float16')
    """
    kinds = _kinds(operands)
    try:
        return np.result_type(*[kind(0) if isinstance(kind, type) else kind for kind in kinds])
    except TypeError as error:
        raise wrong_kind(str(error)) from None


def _kinds(operands: Sequence[Any]) -> list[Any]:
    """Kinds of operands for promotion; NumPy knows no numbers with bfloat16: they take it."""
    kinds = [kind_of(one) for one in operands]
    if not any(isinstance(kind, np.dtype) and kind == BFLOAT16 for kind in kinds):
        return kinds
    return [BFLOAT16 if kind is int or kind is float else kind for kind in kinds]


def number_in(value: Any, dtype: np.dtype) -> Any:
    """A number as one of a dtype, rounded as NumPy does, in Python's type.

    Raises
    ------
    OverflowError
        If a dtype of integers cannot hold it.

    Examples
    --------
    >>> number_in(0.1, np.dtype(np.float16))
    0.0999755859375
    """
    if type(value) is RunNumber:
        if dtype.kind == "f" or dtype == BFLOAT16:
            return value.derived(lambda number: number_in(number, dtype))
        value = float(value)
    try:
        with np.errstate(all="ignore"):
            if dtype == BFLOAT16:  # which takes no large integers of Python's
                return float(dtype.type(float(value)))
            found = value.astype(dtype) if hasattr(value, "dtype") else np.asarray(value, dtype)
            return found.item()
    except OverflowError as error:
        raise OutOfBoundsError(aclnnStatus.ACLNN_ERR_PARAM_INVALID, str(error)) from None


def holds(value: Any, dtype: np.dtype) -> bool:
    """Whether a dtype of integers holds a number; others hold each, rounded.

    >>> holds(300, np.dtype(np.int8)), holds(300, np.dtype(np.float16))
    (False, True)
    """
    if dtype.kind not in "iu":
        return True
    limits = np.iinfo(dtype)
    return int(limits.min) <= value <= int(limits.max)


def forms_in(value: Any, dtype: np.dtype) -> tuple[float, float, int]:
    """The forms of a number, as recordings take them, after it was rounded to a dtype.

    The imaginary part of a complex one stands where others have their integer.

    >>> forms_in(2, np.dtype(np.int8)), forms_in(0.1, np.dtype(np.float16))[0]
    ((2.0, 2.0, 2), 0.0999755859375)
    """
    number = number_in(value, dtype)
    if isinstance(number, complex):
        (bits,) = struct.unpack("q", struct.pack("d", number.imag))
        return number.real, number.real, bits
    if isinstance(number, float):
        return number, number, 0
    return float(number), float(number), int(np.uint64(number % 2**64).astype(np.int64))
