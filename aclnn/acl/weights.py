"""Sizes of weights of matrix products, which programs ask for before they allocate them."""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

import math
from typing import Any

from aclnn.acl import _runtime
from aclnn.acl._lists import aclGetIntArraySize
from aclnn.acl.arguments import as_member, shown
from aclnn.acl.constants import (
    ACL_FLOAT16,
    ACLNN_SUCCESS,
    aclDataType,
)
from aclnn.acl.errors import AclnnError, fail, invalid, latest_failure

__all__ = ["aclnnCalculateMatmulWeightSize", "aclnnCalculateMatmulWeightSizeV2"]

_LARGEST = 2**63 - 1


def aclnnCalculateMatmulWeightSize(tensorShape: Any) -> tuple[int, int]:
    """Get the bytes of a weight of halves as `aclnnTransMatmulWeight` leaves it.

    Parameters
    ----------
    tensorShape : aclIntArray
        The shape of the weight, 2 to 6 sizes.

    Returns
    -------
    size : int
        0 on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed array;
        ACLNN_ERR_PARAM_INVALID (161002) for another number of sizes, and for sizes below 1.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclnnCalculateMatmulWeightSize(aclnn.aclCreateIntArray([510, 510]))
    (520200, 0)
    """
    return _size("aclnnCalculateMatmulWeightSize", tensorShape, ACL_FLOAT16)


def aclnnCalculateMatmulWeightSizeV2(tensorShape: Any, dataType: int) -> tuple[int, int]:
    """Get the bytes of a weight as `aclnnTransMatmulWeight` leaves it: those of its plain layout.

    Parameters
    ----------
    tensorShape : aclIntArray
        The shape of the weight, 2 to 6 sizes.
    dataType : aclDataType
        Its dtype, whose elements have at least a byte.

    Returns
    -------
    size : int
        0 on failure.
    status : int
        ACLNN_SUCCESS (0); ACLNN_ERR_PARAM_NULLPTR (161001) for a null or destroyed array;
        ACLNN_ERR_PARAM_INVALID (161002) for another number of sizes, for sizes below 1, and for
        other dtypes.

    Examples
    --------
    >>> import aclnn
    >>> aclnn.aclnnCalculateMatmulWeightSizeV2(aclnn.aclCreateIntArray([510, 270]), aclnn.ACL_INT8)
    (137700, 0)
    """
    return _size("aclnnCalculateMatmulWeightSizeV2", tensorShape, dataType)


def _size(function: str, shape: Any, dtype: int) -> tuple[int, int]:
    _, status = aclGetIntArraySize(shape)
    if status:
        _, message = latest_failure() or (status, "")
        return 0, fail(
            status, message.replace("aclGetIntArraySize: array", f"{function}: tensorShape")
        )
    try:
        return _bytes(shape.numbers(), dtype), int(ACLNN_SUCCESS)
    except AclnnError as error:
        return 0, fail(error.status, f"{function}: {error}")


def _bytes(sizes: tuple[int, ...], dtype: int) -> int:
    if not 2 <= len(sizes) <= 6:
        raise invalid(f"tensorShape has {len(sizes)} sizes, must have 2 to 6")
    for index, size in enumerate(sizes):
        if size < 1:
            raise invalid(f"tensorShape[{index}] is {size}, must be at least 1")
    one = _runtime.type_size(as_member("dataType", dtype, aclDataType))
    if not one:
        raise invalid(f"dataType is {shown(dtype)}, whose elements are smaller than a byte")
    found = math.prod(sizes) * one
    if found > _LARGEST:
        raise invalid(f"tensorShape is {sizes}, a weight may have 2^63 - 1 bytes")
    return found
