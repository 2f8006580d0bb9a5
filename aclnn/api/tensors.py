"""Tensors of the C-shaped layer, made of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl._frames import boundary
from aclnn.acl._tensor import aclCreateTensor, aclTensor
from aclnn.acl.constants import ACL_FORMAT_ND, ACLNN_ERR_PARAM_INVALID
from aclnn.acl.errors import AclnnError, aclGetRecentErrMsg, invalid, wrong_kind
from aclnn.execution import arrays


@boundary
def tensor(array: Any, format: int = ACL_FORMAT_ND) -> aclTensor:
    """Make an aclTensor of an array, whose memory it shares.

    Parameters
    ----------
    array : array
        Whose strides are not negative; a NumPy array, a PyTorch tensor or whatever functional forms take. A list
        becomes a new array: ``float32`` for floats, ``int64`` for integers.
    format : aclFormat
        The format: the meaning of the tensor's dimensions.

    Returns
    -------
    aclTensor
        As `aclCreateTensor` makes it; it keeps the array alive.

    Raises
    ------
    AclnnError
        If there is no such array, or no tensor can have its dtype or strides.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> x, out = np.float32([-1, 2]), np.empty(2, np.float32)
    >>> size, executor, status = aclnn.aclnnReluGetWorkspaceSize(aclnn.tensor(x), aclnn.tensor(out))
    >>> aclnn.aclnnRelu(None, size, executor, None)
    0
    >>> out
    array([0., 2.], dtype=float32)
    """
    seen = arrays.alone(array, "array")
    if not dtypes.is_known(seen.dtype) or not seen.dtype.isnative:
        raise wrong_kind(f"tensor: array has dtype {seen.dtype}, which no tensor has")
    size = seen.dtype.itemsize
    if any(step % size for step in seen.strides):
        raise wrong_kind(f"tensor: array has strides {seen.strides}, no multiples of {size} bytes")
    if any(step < 0 for step in seen.strides):
        copied = "np.ascontiguousarray(array)"
        raise invalid(f"tensor: array has strides {seen.strides}, not to be negative; use {copied}")
    reach = sum((n - 1) * step for n, step in zip(seen.shape, seen.strides, strict=True))
    storage = np.lib.stride_tricks.as_strided(
        seen, (reach // size + 1 if seen.size else 0,), (size,)
    )
    made = aclCreateTensor(
        seen.shape,
        dtypes.of_numpy(seen.dtype),
        [step // size for step in seen.strides],
        0,
        format,
        storage.shape,
        storage,
    )
    if made is None:
        raise AclnnError(ACLNN_ERR_PARAM_INVALID, aclGetRecentErrMsg() or "there is no such tensor")
    return made
