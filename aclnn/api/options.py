"""Validation of options that shape a plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl.arguments import as_int, as_truth, did_you_mean, shown
from aclnn.acl.constants import aclDataType
from aclnn.acl.errors import wrong_kind


def as_option(where: str, attribute: Any, value: Any) -> Any:
    """An option as plain Python data: an int, a tuple, a dtype, or None where that is its default.

    `where` names function and argument for messages.
    """
    if value is None and attribute.default is None:
        return None
    return _READERS[attribute.kind](where, value)


def as_whole(where: str, value: Any) -> int:
    number = as_int(value)
    if number is None or not -(2**63) <= number < 2**63:
        raise wrong_kind(f"{where} is {shown(value)}, must be an int of 64 bits")
    return number


def as_ints(where: str, value: Any) -> tuple[int, ...]:
    """Integers in any sequence; a single one stands for itself."""
    if as_int(value) is not None:
        return (as_whole(where, value),)
    return tuple(
        [as_whole(f"{where}[{index}]", one) for index, one in enumerate(_items(where, value))]
    )


def as_bools(where: str, value: Any) -> tuple[bool, ...]:
    items = enumerate(_items(where, value))
    return tuple([as_truth(f"{where}[{index}]", one) for index, one in items])


def _items(where: str, value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes):
        raise wrong_kind(f"{where} is {shown(value)}, must be a sequence")
    try:
        return list(value)
    except Exception:  # whatever its __iter__ raises
        raise wrong_kind(f"{where} is {shown(value)}, must be a sequence") from None


def as_dtype(where: str, value: Any) -> aclDataType:
    """A dtype of NumPy's or PyTorch's, its name, or CANN's number."""
    number = as_int(value)
    if number is not None and number in aclDataType._value2member_map_:
        return aclDataType(number)
    name = str(value).removeprefix("torch.") if type(value).__module__ == "torch" else value
    if isinstance(name, str) and name in dtypes.NAMES:
        return dtypes.of_name(name)
    try:
        return dtypes.of_name(np.dtype(value).name)
    except (TypeError, KeyError):
        raise wrong_kind(
            f"{where} is {shown(value)}, must be a dtype: one of {', '.join(dtypes.NAMES)}"
            f"{did_you_mean(value, dtypes.NAMES)}"
        ) from None


_READERS = {"int": as_whole, "ints": as_ints, "bools": as_bools, "dtype": as_dtype}
