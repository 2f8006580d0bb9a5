"""Functional forms whose results have the size that data decide, over those with room for all elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.acl._frames import boundary
from aclnn.api import functional


def _call(name: str, *operands: Any) -> tuple[Any, Any]:
    """A functional form's result, and its shape without room."""
    run: Any = functional.__getattr__(name)
    found, size = run(*operands)
    return found, size


def _part(array: Any, count: int) -> Any:
    """The first rows, in memory of their own where there are fewer than there is room for."""
    if count == array.shape[0]:
        return array
    found = array[:count]
    if isinstance(found, np.ndarray):
        return found.copy()
    return found.clone() if hasattr(found, "clone") else found


@boundary
def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """Indices of the elements that are not zero.

    Parameters
    ----------
    input : array
        Of any real dtype; a NaN is not zero, -0 is.
    as_tuple : bool
        Whether there is an array for each dimension, with which NumPy and PyTorch index.

    Returns
    -------
    array or tuple of array
        A row for each element that is not zero, in row-major order, with its index along each dimension.

    Raises
    ------
    AclnnError
        If no call is possible with this array.

    See Also
    --------
    nonzero_padded, masked_select

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> aclnn.nonzero(np.float32([[0, 5], [7, 0]]))
    array([[0, 1],
           [1, 0]])
    >>> aclnn.nonzero(np.float32([0, 5, 7]), as_tuple=True)
    (array([1, 2]),)
    """
    if not as_tuple:
        found, size = _call("nonzero_padded", input)
        return _part(found, int(size[0]))
    # A number is what has one dimension with one element here, as in PyTorch.
    value = input.reshape(1) if getattr(input, "ndim", 1) == 0 else input
    found, size = _call("nonzero_by_dims", value)
    rank, count = int(size[0]), int(size[1])
    rows = _part(found.reshape(-1), rank * count).reshape(rank, count)  # without gaps between them
    return tuple([rows[axis] for axis in range(rank)])


@boundary
def masked_select(input: Any, mask: Any) -> Any:
    """Elements where a mask is true.

    Parameters
    ----------
    input : array
    mask : array
        Of bool or uint8; both broadcast.

    Returns
    -------
    array
        Of one dimension, the elements in row-major order.

    Raises
    ------
    AclnnError
        If no call is possible with these arrays.

    See Also
    --------
    masked_select_padded, nonzero

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> aclnn.masked_select(np.float32([5, 6, 7]), np.bool_([True, False, True]))
    array([5., 7.], dtype=float32)
    """
    found, size = _call("masked_select_padded", input, mask)
    return _part(found, int(size[0]))
