"""Correct rounding of real numbers (fractions and decimals too) to narrower types."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np


def as_double(value: Any) -> float:
    """The nearest float, which is infinite for numbers beyond the largest.

    >>> as_double(3), as_double(-(10**400))
    (3.0, -inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def as_float_once(value: Any) -> float:
    """A number as a float that a narrower type can be rounded from.

    Rounding to a float and that to float32 rounds twice. Rounding the first step to odd keeps what the
    second needs to know.

    >>> as_float_once(2**60 + 1) == float(2**60 + 2**8), as_float_once(-(10**400))
    (True, -inf)
    """
    near = as_double(value)
    if isinstance(value, float) or not math.isfinite(near) or near == value:
        return near
    odd = int(np.float64(near).view(np.int64)) % 2
    return near if odd else math.nextafter(near, math.inf if value > near else -math.inf)


def nearest_float32(value: Any) -> float:
    """The nearest float32, ties to even, as a float.

    >>> nearest_float32(2**24 + 1), nearest_float32(2**53 + 2**29 + 1) == float(2**53 + 2**30)
    (16777216.0, True)
    """
    with np.errstate(all="ignore"):
        return float(np.float32(as_float_once(value)))


def nearest_float16(value: Any) -> float:
    """The nearest float16, ties to even, as a float.

    >>> nearest_float16(0.01), nearest_float16(1e9)
    (0.01000213623046875, inf)
    """
    with np.errstate(all="ignore"):
        return float(np.float16(as_float_once(value)))


def nearest_bfloat16(value: Any) -> float:
    """The nearest bfloat16, ties to even, as a float.

    NumPy's conversion goes by way of float32; that step, too, is rounded to odd.

    >>> nearest_bfloat16(1 + 2**-8 + 2**-40)
    1.0078125
    """
    wide = as_float_once(value)
    with np.errstate(all="ignore"):
        near = np.float32(wide)
    if not np.isfinite(near) or float(near) == wide:
        return float(near.astype(ml_dtypes.bfloat16))
    bits = int(near.view(np.uint32))
    if bits % 2 == 0:
        bits += 1 if abs(float(near)) < abs(wide) else -1
    return float(np.uint32(bits).view(np.float32).astype(ml_dtypes.bfloat16))
