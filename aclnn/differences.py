"""Differences of arrays that two programs computed, in units in the last place."""

from __future__ import annotations

import ml_dtypes
import numpy as np

LIMIT = 64.0  # what still is equal by default


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference, in units in the last place of the largest element.

    >>> distance(np.float32([1, 2]), np.float32([1, 2 + 2**-22])), distance(np.int8([1]), np.int8([3]))
    (1.0, 2.0)
    """
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return float("inf")
    if not ours.size:
        return 0.0
    if ours.dtype.kind in "iub":
        wide = ours.astype(np.float64), theirs.astype(np.float64)
        return float(np.abs(wide[0] - wide[1]).max())
    try:
        info = ml_dtypes.finfo(ours.dtype)
    except ValueError:
        return 0.0 if np.array_equal(ours, theirs) else float("inf")
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    largest = np.abs(b[finite]).max()
    index = np.ldexp(1.0, int(max(np.frexp(largest)[1] - 1, info.minexp)) - info.nmant)
    return float(np.abs(a[finite] - b[finite]).max() / index)
