"""Arrays in every layout and C-shaped calls as tests of rows and products make them."""

import numpy as np
from wide import ulps

import aclnn
from aclnn.api.c_shaped import tensor

SUCCESS = 0


def random(rng, shape, dtype=np.float32):
    return (3 * rng.standard_normal(shape)).astype(dtype)


def assert_near(found, want, single=1.0):
    kind = found.dtype.type
    assert found.shape == want.shape
    # Nothing is promised of float64, in which logarithms near 0 cancel.
    bound = {np.float32: single, np.float64: 64.0}.get(kind, 0.501)
    assert ulps(found, want) <= bound


def bits(array):
    return np.ascontiguousarray(array).view(np.uint8).tobytes()


def layouts(array):
    """The same elements in other layouts."""
    axes = tuple(reversed(range(array.ndim)))
    yield np.ascontiguousarray(array.transpose(axes)).transpose(axes)
    wide = np.zeros([2 * size for size in array.shape], array.dtype)
    wide[tuple([slice(None, None, 2)] * array.ndim)] = array
    yield wide[tuple([slice(None, None, 2)] * array.ndim)]
    yield array[..., ::-1].copy()[..., ::-1]


def plan(name, *arguments):
    """Phase one with arrays for tensors: the executor's status, and what is needed to run."""
    made = [tensor(a) if isinstance(a, np.ndarray) else a for a in arguments]
    return getattr(aclnn, f"{name}GetWorkspaceSize")(*made)


def status(name, *arguments):
    return plan(name, *arguments)[2]


def call(name, *arguments):
    size, executor, found = plan(name, *arguments)
    assert found == SUCCESS, aclnn.aclGetRecentErrMsg()
    # A workspace of any alignment will do.
    workspace = np.empty(size + 1, np.uint8)[1:] if size else None
    assert getattr(aclnn, name)(workspace, size, executor, None) == SUCCESS


def ints(*values):
    return aclnn.aclCreateIntArray(values)


def bools(*values):
    return aclnn.aclCreateBoolArray(values)
