"""Descriptions of operands, for people and for pickles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aclnn.graph.strides import extent


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """Description of an operand in an executor's plan.

    Attributes
    ----------
    shape, strides : tuple of int
        As NumPy's: strides count bytes.
    dtype : numpy.dtype
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype

    def placeholder(self) -> np.ndarray:
        """An array of this description, whose elements nobody reads.

        >>> ArraySpec((2, 3), (24, -8), np.dtype(float)).placeholder().strides
        (24, -8)
        """
        low, high = extent(self.shape, self.strides) if 0 not in self.shape else (0, 0)
        memory = np.empty(high - low + self.dtype.itemsize, np.uint8)
        return np.ndarray(self.shape, self.dtype, memory, -low, self.strides)
