"""Rules and values that operators do not share with their families: lists, ranks, formats, empties."""

import ml_dtypes
import numpy as np
import pytest
from cases import each
from test_operators_rows import call, plan

import aclnn
from aclnn import aclDataType as T
from aclnn import aclFormat as F
from aclnn.acl import dtypes
from aclnn.api.c_shaped import tensor

BF16 = ml_dtypes.bfloat16
OK, NULLPTR, INVALID = 0, 161001, 161002
INF, NAN = np.inf, np.nan
A2 = "Ascend910B"


@pytest.fixture
def on():
    """Sets the product until the test ends."""
    before = aclnn.get_soc_version()
    yield aclnn.set_soc_version
    aclnn.set_soc_version(before)


def of(dtype, shape=(2, 3), format=F.ACL_FORMAT_ND):
    """A description without memory; `dtype` is CANN's or NumPy's."""
    if not isinstance(dtype, T):
        dtype = dtypes.of_numpy(np.dtype(dtype))
    made = aclnn.aclCreateTensor(shape, dtype, None, 0, format, shape, None)
    assert made is not None, aclnn.aclGetRecentErrMsg()
    return made


def sliced(shape, dtype=np.float32):
    """One of that shape whose elements have gaps between them."""
    memory = np.zeros((*shape, 2), dtype)
    return tensor(memory[..., 0])


def number(value, dtype=T.ACL_FLOAT):
    return aclnn.aclCreateScalar(value, dtype)


def status(name, *arguments):
    """Of phase one, with the message where it fails."""
    found = plan(name, *arguments)[2]
    message = aclnn.aclGetRecentErrMsg()
    return (found, "") if found == OK else (found, message.partition("\n")[0])


def assert_taken(name, *arguments):
    assert status(name, *arguments) == (OK, ""), (name, arguments)


def assert_refused(words, name, *arguments, wanted=INVALID):
    found, message = status(name, *arguments)
    assert found == wanted, (name, arguments)
    assert words in message


def assert_same(found, want):
    """Whatever the dtype, NaNs included."""
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found.astype(np.float64), want.astype(np.float64))


# --- Values -----------------------------------------------------------------------------------------


@each("dtype", [np.float32, np.float16, BF16])
def test_a_null_beta_is_1(dtype):
    x, g = np.array([-3, -0.5, 0, 1, 4], dtype), np.array([1, 2, 3, -4, 0.5], dtype)
    for name, given in (("aclnnSwish", (x,)), ("aclnnSwishBackward", (g, x))):
        found, want = np.empty_like(x), np.empty_like(x)
        call(name, *given, None, found)
        call(name, *given, number(1.0), want)
        np.testing.assert_array_equal(found, want)


def test_a_null_beta_in_functional_forms_and_executors():
    x, g = np.float32([-3, 0.5, 4]), np.float32([1, 2, 3])
    want, slope = aclnn.silu(x), aclnn.silu_backward(g, x)
    np.testing.assert_array_equal(aclnn.swish(x, None), want)
    np.testing.assert_array_equal(aclnn.swish_backward(g, x, beta=None), slope)
    np.testing.assert_array_equal(aclnn.executor("swish", x, None).run(), want)
    out = np.empty_like(x)
    np.testing.assert_array_equal(aclnn.executor("aclnnSwish", x, None, out).run(), want)


SUMS = [
    ([INF, 1, 2], [0.5, 0.25, 0.25], [NAN, -INF, -INF]),
    ([-INF, 1, 2], [0.5, 0.25, 0.25], [NAN, INF, INF]),
    ([3e38, 3e38, 3e38], [1, 1, 1], [-INF, -INF, -INF]),
    ([-3e38, -3e38, -3e38], [1, 1, 1], [INF, INF, INF]),
    ([3e38, 3e38, 3e38], [1, 1, 0], [-INF, -INF, NAN]),
    ([1, 2, 3], [INF, 1, -1], [-INF, -INF, INF]),
    ([1, 0, 3], [1, INF, 1], [NAN, NAN, NAN]),
    ([1, NAN, 3], [1, 1, 1], [NAN, NAN, NAN]),
]


@each("g, y, want", SUMS)
@each("dtype", [np.float32, BF16])
def test_infinite_sums_of_softmaxs_gradient(g, y, want, dtype):
    for count in (1, 7, 700):  # rows that fit a chunk, and those of many chunks
        wide = [np.array(v, dtype).repeat(count) for v in (g, y, want)]
        if count > 1 and max(map(abs, g)) == 3e38 and 0 in y:
            continue  # sums of more elements are others
        found = aclnn.softmax_backward(wide[0], wide[1], 0)
        assert_same(found, wide[2])
    beside = [np.stack([np.array(v, dtype)] * 20, axis=1) for v in (g, y, want)]
    assert_same(aclnn.softmax_backward(beside[0], beside[1], 0), beside[2])


@each("dtype", [np.float32, np.float16, BF16])
@each("count", [1, 9, 700])
def test_an_infinite_logarithm_of_softmax(dtype, count):
    """Its exponential is infinite, which a sum of 0 makes no number."""
    g = np.array([1, -1, 0] * count, dtype)
    y = np.array([INF, 0, -INF] * count, dtype)
    want = np.array([NAN, -1, 0] * count, dtype)
    assert_same(aclnn.log_softmax_backward(g, y, 0), want)
    g[0] = 2
    want = np.array([-INF, -2, 0] * count, dtype)
    want[0::3], want[1::3] = -INF, -2
    assert_same(aclnn.log_softmax_backward(g, y, 0), want)


def test_gradients_of_swish_with_a_null_beta():
    torch = pytest.importorskip("torch")
    import aclnn.torch  # noqa: F401  registers the operators

    x = torch.linspace(-4, 4, 9, requires_grad=True)
    (found,) = torch.autograd.grad(torch.ops.aclnn.swish(x, None).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(found.sum(), x)
    wanted = torch.nn.functional.silu(x)
    (want,) = torch.autograd.grad(wanted.sum(), x, create_graph=True)
    (twice,) = torch.autograd.grad(want.sum(), x)
    torch.testing.assert_close(found, want)
    torch.testing.assert_close(second, twice)
