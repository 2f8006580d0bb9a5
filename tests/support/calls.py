"""Tensors, numbers and C-shaped calls as tests of operators make them."""

from fractions import Fraction

import ml_dtypes
import numpy as np
from guarded_memory import watched

import aclnn
from aclnn import aclDataType as T
from aclnn.acl import dtypes
from aclnn.acl.rounding import nearest_bfloat16, nearest_float16, nearest_float32

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(kind) for kind in (np.float32, np.float16, BF16, np.float64)]
WHOLE = [np.dtype(kind) for kind in ("i1", "i2", "i4", "i8", "u1")]
BOOL = np.dtype(bool)
REAL = [*FLOATS, *WHOLE, BOOL]
COMPLEX = [np.dtype(np.complex64), np.dtype(np.complex128)]
NEAREST = {
    "float32": nearest_float32,
    "float16": nearest_float16,
    "bfloat16": nearest_bfloat16,
    "float64": float,
}
OK, NULLPTR, INVALID = 0, 161001, 161002


def numbers(dtype, count=300, seed=0):
    """Of any size that the dtype has, some of them special."""
    rng = np.random.default_rng(seed)
    if dtype == BOOL:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, count, dtype, endpoint=True)
    if dtype.kind == "c":
        parts = rng.standard_normal((2, count))
        return (parts[0] + 1j * parts[1]).astype(dtype)
    found = rng.standard_normal(count) * 2.0 ** rng.integers(-12, 12, count)
    return found.astype(dtype)


def exact(value):
    return (
        Fraction(float(value))
        if isinstance(value, np.floating | ml_dtypes.bfloat16)
        else int(value)
    )


def rounded(values, dtype):
    """Exact numbers as an array: rounded once, or of integers as many bits as there are."""
    if dtype.kind in "iu":
        bits = dtype.itemsize * 8
        wrapped = np.array([int(v) % 2**bits for v in values], np.uint64)
        return wrapped.astype(f"u{dtype.itemsize}").view(dtype)
    with np.errstate(over="ignore"):
        return np.array([NEAREST[dtype.name](v) for v in values]).astype(dtype)


def tensor(array):
    array = np.asarray(array)
    steps = tuple(step // array.itemsize for step in array.strides)
    reach = 1 + sum((size - 1) * step for size, step in zip(array.shape, steps, strict=True))
    made = aclnn.aclCreateTensor(
        array.shape,
        dtypes.of_numpy(array.dtype),
        steps,
        0,
        aclnn.ACL_FORMAT_ND,
        (reach,),
        np.lib.stride_tricks.as_strided(array, (reach,), (array.itemsize,)),
    )
    assert made is not None, aclnn.aclGetRecentErrMsg()
    return made


def empty(shape=(2, 3), dtype=T.ACL_FLOAT, format=None):
    """A description without memory."""
    return aclnn.aclCreateTensor(
        shape, dtype, None, 0, aclnn.ACL_FORMAT_ND if format is None else format, shape, None
    )


def scalar(value, dtype=T.ACL_FLOAT):
    return aclnn.aclCreateScalar(value, dtype)


def run(name, *arguments):
    run_on(None, name, *arguments)


def run_on(stream, name, *arguments):
    """Both phases, the second on a stream."""
    size, executor, status = getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments)
    assert status == OK, aclnn.aclGetRecentErrMsg()
    if stream is not None:  # it runs when the caller waits for it
        space = np.empty(size, np.uint8) if size else None
        status = getattr(aclnn, name)(space, size, executor, stream)
    else:
        with watched(size) as watched_space:
            status = getattr(aclnn, name)(watched_space if size else None, size, executor, None)
    assert status == OK, aclnn.aclGetRecentErrMsg()


def refused(name, *arguments):
    size, executor, status = getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments)
    assert (size, executor) == (0, None)
    return status, aclnn.aclGetRecentErrMsg()
