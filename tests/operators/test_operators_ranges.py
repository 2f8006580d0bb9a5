"""Numbers that are a step apart: exact fractions, NumPy and PyTorch judge them."""

from fractions import Fraction

import numpy as np
import pytest
import samples
from calls import OK

import aclnn
from aclnn import aclDataType as T
from aclnn.acl import dtypes

INVALID = aclnn.ACLNN_ERR_PARAM_INVALID
RANGES = (T.ACL_FLOAT, T.ACL_FLOAT16, T.ACL_BF16, T.ACL_DOUBLE, T.ACL_INT32, T.ACL_INT64)


def written(name, out, *arguments):
    """The status of both phases, which write into `out`."""
    given = [aclnn.aclCreateScalar(*one) if isinstance(one, tuple) else one for one in arguments]
    names = dict(enumerate([*given, samples.tensor(out)]))
    return samples.both_phases(name, names)


def float_scalar(value):
    return value, T.ACL_FLOAT


@pytest.mark.parametrize("dtype", RANGES, ids=lambda dtype: dtype.name)
def test_each_number_is_rounded_once(dtype):
    kind = dtypes.NUMPY[dtype]
    out = np.zeros(301, kind)[::3]  # longer than a run, and strided
    start, step = (3, 7) if np.issubdtype(kind, np.integer) else (0.1, 0.3)
    given = [(value, T.ACL_DOUBLE) for value in (start, 1e6, step)]
    assert written("aclnnArange", out, *given) == (OK, OK)
    exact = [Fraction(start) + i * Fraction(step) for i in range(out.size)]
    wanted = [int(one) if isinstance(start, int) else float(one) for one in exact]
    np.testing.assert_array_equal(out, np.array(wanted).astype(kind))


def test_forms_take_what_numpy_takes():
    for given in ((5,), (2, 5), (0, 1, 0.3), (5, 0, -2), (3, 3), (0, -1, -0.25), (True, 4)):
        wanted = np.arange(*given)
        found = aclnn.arange(*given)
        kind = np.int64 if np.issubdtype(wanted.dtype, np.integer) else np.float32
        assert found.dtype == kind
        np.testing.assert_array_equal(found, wanted.astype(kind))
    far = 2**62
    np.testing.assert_array_equal(aclnn.arange(far, far + 3), [far, far + 1, far + 2])
    assert aclnn.arange(0, 2.5, dtype="int32").tolist() == [0, 1]


def test_calls_that_differ_in_a_number_have_plans_of_their_own():
    assert [aclnn.arange(n).size for n in (3, 5, 3, 4)] == [3, 5, 3, 4]
    assert aclnn.arange(1, 3).tolist() == [1, 2]
    assert aclnn.arange(1.0, 3).dtype == np.float32


@pytest.mark.parametrize("given", [(0, 1, 0), (1, 0, 1), (0, 1, -1), (0, 1, float("nan"))], ids=str)
def test_steps_that_lead_away_are_refused(given):
    assert written("aclnnArange", np.zeros(2, np.float32), *map(float_scalar, given))[0] == INVALID
    with pytest.raises(aclnn.AclnnError, match=r"arange: (step|start) is"):
        aclnn.arange(*given)


def test_a_step_that_is_none_in_the_kind_of_the_result_is_refused():
    given = [float_scalar(value) for value in (0, 2, 0.5)]
    assert written("aclnnArange", np.zeros(4, np.int32), *given)[0] == INVALID
    assert written("aclnnArange", np.zeros(4, np.float32), *given) == (OK, OK)


def test_any_count_is_written():
    out = np.zeros((2, 3), np.float32)
    assert written("aclnnArange", out, *map(float_scalar, (1, 2, 1))) == (OK, OK)
    np.testing.assert_array_equal(out, np.arange(1, 7).reshape(2, 3))


SPACES = ((0, 1, 7), (-3.5, 9.25, 100), (10, -10, 6), (2, 2, 3), (4, 9, 1), (1, 2, 0))


@pytest.mark.parametrize("name", ["float32", "float64", "int8", "int16", "int32", "int64", "uint8"])
def test_linspace_is_that_of_pytorch(name):
    torch = pytest.importorskip("torch")
    for start, end, steps in SPACES:
        if name == "uint8" and min(start, end) < 0:
            continue
        wanted = torch.linspace(start, end, steps, dtype=getattr(torch, name)).numpy()
        found = aclnn.linspace(start, end, steps, dtype=name)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        ulp = {"float32": 2e-7, "float64": 4e-16}.get(name, 0)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=ulp * max(abs(start), abs(end)))


def test_the_last_number_is_the_end():
    for steps in (2, 3, 10, 1000):
        for end in (0.1, 1 / 3, 7.7):
            assert aclnn.linspace(0, end, steps)[-1] == np.float32(end)
            assert aclnn.linspace(0, end, steps, dtype="float64")[-1] == end


def test_linspace_takes_as_many_as_there_are():
    given = [float_scalar(0), float_scalar(1)]
    assert written("aclnnLinspace", np.zeros((2, 3), np.float32), *given, 6) == (OK, OK)
    assert written("aclnnLinspace", np.zeros(5, np.float32), *given, 6)[0] == INVALID
    assert written("aclnnLinspace", np.zeros(0, np.float32), *given, -1)[0] == INVALID
    assert written("aclnnLinspace", np.zeros(2, np.bool_), *given, 2)[0] == INVALID
