"""CANN's data types: names, sizes, promotion and casts."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np

from aclnn.acl import _runtime
from aclnn.acl.constants import aclDataType

T = aclDataType
# What arrays and tensors may hold, and NumPy's dtype of each.
NUMPY = {
    T.ACL_FLOAT: np.dtype(np.float32),
    T.ACL_FLOAT16: np.dtype(np.float16),
    T.ACL_BF16: np.dtype(ml_dtypes.bfloat16),
    T.ACL_DOUBLE: np.dtype(np.float64),
    T.ACL_INT8: np.dtype(np.int8),
    T.ACL_INT16: np.dtype(np.int16),
    T.ACL_INT32: np.dtype(np.int32),
    T.ACL_INT64: np.dtype(np.int64),
    T.ACL_UINT8: np.dtype(np.uint8),
    T.ACL_UINT16: np.dtype(np.uint16),
    T.ACL_UINT32: np.dtype(np.uint32),
    T.ACL_UINT64: np.dtype(np.uint64),
    T.ACL_BOOL: np.dtype(np.bool_),
    T.ACL_COMPLEX64: np.dtype(np.complex64),
    T.ACL_COMPLEX128: np.dtype(np.complex128),
}
_BY_NAME = {kind.name: dtype for dtype, kind in NUMPY.items()}
NAMES = tuple(_BY_NAME)
# Bytes of an element, as `aclDataTypeSize` has them for programs in C; of the types that it knows no size of, 1.
_SIZES = {dtype: _runtime.type_size(dtype) or 1 for dtype in T} | {T.ACL_DT_UNDEFINED: 0}
ITEM_SIZES = {kind.name: _SIZES[dtype] for dtype, kind in NUMPY.items()}
# Elements that share bytes, the first in the lowest bits.
_BITS = {T.ACL_INT4: 4, T.ACL_FLOAT4_E2M1: 4, T.ACL_FLOAT4_E1M2: 4, T.ACL_UINT1: 1}

_CAPITALS = re.compile(r"\b[A-Z][A-Z0-9]+\b")
_NUMPYS_WORDS = {dtype.name.removeprefix("ACL_"): kind.name for dtype, kind in NUMPY.items()}
_NUMPYS_WORDS["INT4"] = "int4"

BOOL = (T.ACL_BOOL,)
_SIGNED = (T.ACL_INT8, T.ACL_INT16, T.ACL_INT32, T.ACL_INT64)
_INTEGERS = (*_SIGNED, T.ACL_UINT8)
FLOATS = (T.ACL_FLOAT16, T.ACL_BF16, T.ACL_FLOAT, T.ACL_DOUBLE)
COMPLEX = (T.ACL_COMPLEX64, T.ACL_COMPLEX128)
LARGE_UNSIGNED = (T.ACL_UINT16, T.ACL_UINT32, T.ACL_UINT64)
INTEGERS = (*_INTEGERS, *LARGE_UNSIGNED)
_REAL = (*_INTEGERS, *LARGE_UNSIGNED, *FLOATS, T.ACL_BOOL)


def name(dtype: aclDataType) -> str:
    """The name NumPy and PyTorch users know.

    >>> name(aclDataType.ACL_BF16)
    'bfloat16'
    """
    if dtype in NUMPY:
        return NUMPY[dtype].name
    return aclDataType(dtype).name.removeprefix("ACL_").lower()


def cann_name(dtype: aclDataType) -> str:
    """The name in CANN's documentation.

    >>> cann_name(aclDataType.ACL_BF16)
    'BF16'
    """
    return dtype.name.removeprefix("ACL_")


def in_numpys_words(text: str) -> str:
    """A sentence of CANN's, with the names of dtypes that NumPy and PyTorch users know.

    >>> in_numpys_words("`self` is FLOAT, FLOAT16 or BF16")
    '`self` is float32, float16 or bfloat16'
    """
    return _CAPITALS.sub(lambda found: _NUMPYS_WORDS.get(found[0], found[0]), text)


def of_name(text: str) -> aclDataType:
    """The data type of a name; KeyError when there is none.

    >>> of_name("float16")
    <aclDataType.ACL_FLOAT16: 1>
    """
    return _BY_NAME[text]


def of_numpy(dtype: np.dtype) -> aclDataType:
    """The data type of a NumPy dtype, ml_dtypes.bfloat16 included; KeyError when there is none."""
    return _BY_NAME[np.dtype(dtype).name]


def is_known(dtype: np.dtype) -> bool:
    """Whether CANN has a data type for a NumPy dtype, in whatever order its bytes are.

    >>> is_known(np.dtype(">f4")), is_known(np.dtype("O"))
    (True, False)
    """
    return np.dtype(dtype).name in _BY_NAME


def item_size(dtype: aclDataType) -> int:
    """Bytes of an element; 1 for types of fewer bits than a byte has.

    >>> item_size(aclDataType.ACL_FLOAT16), item_size(aclDataType.ACL_INT4)
    (2, 1)
    """
    return _SIZES[dtype]


def item_bits(dtype: aclDataType) -> int:
    """Bits of an element.

    >>> item_bits(aclDataType.ACL_FLOAT16), item_bits(aclDataType.ACL_INT4)
    (16, 4)
    """
    return _BITS.get(dtype, 8 * item_size(dtype))


def storage_size(dtype: aclDataType, elements: int) -> int:
    """Bytes of so many elements, one after the other.

    >>> storage_size(aclDataType.ACL_FLOAT16, 3), storage_size(aclDataType.ACL_INT4, 3)
    (6, 2)
    """
    return -(-elements * item_bits(dtype) // 8)


def promote(a: aclDataType, b: aclDataType) -> aclDataType | None:
    """The dtype that two dtypes promote to, or None.

    >>> promote(aclDataType.ACL_FLOAT16, aclDataType.ACL_BF16)
    <aclDataType.ACL_FLOAT: 0>
    >>> promote(aclDataType.ACL_UINT8, aclDataType.ACL_INT8)
    <aclDataType.ACL_INT16: 6>
    """
    if a == b:
        return a
    pair = (a, b)
    if any(x in LARGE_UNSIGNED or x not in (*_REAL, *COMPLEX) for x in pair):
        return None
    if any(x in COMPLEX for x in pair):
        wide = T.ACL_COMPLEX128 in pair or T.ACL_DOUBLE in pair
        return T.ACL_COMPLEX128 if wide else T.ACL_COMPLEX64
    floats = [x for x in pair if x in FLOATS]
    if len(floats) == 2:
        return T.ACL_DOUBLE if T.ACL_DOUBLE in pair else T.ACL_FLOAT
    if floats:
        return floats[0]
    integers = [x for x in pair if x in _INTEGERS]
    if len(integers) == 1:
        return integers[0]
    if T.ACL_UINT8 in pair:
        other = b if a == T.ACL_UINT8 else a
        return T.ACL_INT16 if other == T.ACL_INT8 else other
    return max(integers, key=_SIGNED.index)


def can_cast(source: aclDataType | None, target: aclDataType) -> bool:
    """Whether a cast is allowed: not complex to real, float to integer, or anything to BOOL.

    >>> can_cast(aclDataType.ACL_FLOAT, aclDataType.ACL_COMPLEX64)
    True
    >>> can_cast(aclDataType.ACL_FLOAT, aclDataType.ACL_INT32)
    False
    """
    if source not in (*_REAL, *COMPLEX) or target not in (*_REAL, *COMPLEX):
        return False
    if target == T.ACL_BOOL:
        return source == T.ACL_BOOL
    if source in COMPLEX:
        return target in COMPLEX
    return not (source in FLOATS and target in (*_INTEGERS, *LARGE_UNSIGNED))
