"""Sizes of elements, and the bits of halves as numbers."""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

from aclnn.acl import _runtime
from aclnn.acl.arguments import as_int, as_real, shown
from aclnn.acl.constants import ACL_ERROR_INVALID_PARAM, aclDataType
from aclnn.acl.errors import fail

__all__ = [
    "aclDataTypeSize",
    "aclFloat16ToFloat",
    "aclFloatToFloat16",
]


def aclDataTypeSize(dataType: int) -> int:
    """Get the bytes of an element.

    Parameters
    ----------
    dataType : aclDataType

    Returns
    -------
    int
        0 for values that are no data type, and for types whose elements are smaller than a byte.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclDataTypeSize(aclnn.ACL_BF16), aclnn.aclDataTypeSize(aclnn.ACL_INT4)
    (2, 0)
    """
    number = as_int(dataType)
    if number is None or number not in aclDataType._value2member_map_:
        return 0
    return int(_runtime.type_size(number))


def aclFloat16ToFloat(value: int) -> float:
    """Convert the bits of a half, where infinities and NaN are numbers beyond 65504.

    Parameters
    ----------
    value : int
        16 bits.

    Returns
    -------
    float
        0.0, with a message, for anything but an int from 0 to 65535.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclFloat16ToFloat(0x3C00), aclnn.aclFloat16ToFloat(0x7C00)
    (1.0, 65536.0)
    """
    number = as_int(value)
    if number is None or not 0 <= number <= 0xFFFF:
        what = f"aclFloat16ToFloat: value is {shown(value)}, must be an int of 16 bits"
        fail(ACL_ERROR_INVALID_PARAM, what)
        return 0.0
    return float(_runtime.half_to_float(number))


def aclFloatToFloat16(value: float) -> int:
    """Convert a number to the bits of the nearest half; beyond the largest one, that.

    Parameters
    ----------
    value : float

    Returns
    -------
    int
        16 bits, ties to even; 0x7BFF for NaN. 0, with a message, if the argument is not a number.

    Examples
    --------
    >>> import aclnn
    >>> hex(aclnn.aclFloatToFloat16(1.0)), hex(aclnn.aclFloatToFloat16(-1e9))
    ('0x3c00', '0xfbff')
    """
    try:
        number = as_real(value)
    except (TypeError, ValueError):
        what = f"aclFloatToFloat16: value is {shown(value)}, must be a number"
        fail(ACL_ERROR_INVALID_PARAM, what)
        return 0
    return int(_runtime.float_to_half(number))
