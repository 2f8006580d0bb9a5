"""What tests of several files begin with: a process of its own, examples, a call with something to plan,
a tensor, the message of a failure, an object that fails whoever looks at it.
"""

import os
import subprocess
import sys

import numpy as np

import aclnn
from aclnn import environment


def fresh(code, **variables):
    """What a process of its own prints, in which only these of our variables are set."""
    ours = {variable.name for variable in environment.VARIABLES}
    others = {name: text for name, text in os.environ.items() if name not in ours}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env=others | {"PYTHONIOENCODING": "utf-8"} | variables,
    )  # fmt: skip


def examples(count):
    """How many examples a test tries that wants `count`: fewer in the quick part of the suite."""
    from hypothesis import settings  # which calls at random do without

    return max(1, count * settings().max_examples // settings.get_profile("untimed").max_examples)


def small_executor(**options):
    g = np.ones((8, 1, 16), np.float16)
    return aclnn.executor("gelu_backward", g, np.ones((16, 4), np.float32).T, **options)


def tensor(array):
    """An aclTensor on a float32 array."""
    made = aclnn.aclCreateTensor(
        array.shape, aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, array.shape, array
    )
    assert made is not None, aclnn.aclGetRecentErrMsg()
    return made


def planned(x, out):
    """The executor of a GELU that needs no workspace."""
    size, executor, status = aclnn.aclnnGeluGetWorkspaceSize(x, out)
    assert (size, status) == (0, aclnn.ACLNN_SUCCESS), aclnn.aclGetRecentErrMsg()
    return executor


def message():
    """What is said of a failure, once."""
    found = aclnn.aclGetRecentErrMsg()
    assert found
    assert aclnn.aclGetRecentErrMsg() is None
    return found


class Hostile:
    """Raises whatever is asked of it."""

    def __repr__(self):
        raise RuntimeError("no")

    __index__ = __float__ = __bool__ = __len__ = __iter__ = __eq__ = __hash__ = __repr__

    @property
    def __array_interface__(self):
        raise RuntimeError("no")

    def __dlpack__(self, **_):
        raise RuntimeError("no")
