"""SwiGLU and its gradient: halves of one tensor, and halves of one result."""

import ml_dtypes
import mpmath
import numpy as np
import pytest

import aclnn
from aclnn import aclDataType as T
from aclnn.acl.rounding import nearest_bfloat16, nearest_float16, nearest_float32

BF16 = np.dtype(ml_dtypes.bfloat16)
NEAREST = {"float32": nearest_float32, "float16": nearest_float16, "bfloat16": nearest_bfloat16}
DTYPES = [np.dtype(np.float32), np.dtype(np.float16), BF16]
OK, NULLPTR, INVALID, TILING = 0, 161001, 161002, 561002


def sigma(x):
    return 1 / (1 + mpmath.exp(-x))


def forward(a, b):
    return a * sigma(a) * b


def gradients(g, a, b):
    s = sigma(a)
    return g * b * (s + s * (1 - s) * a), g * a * s


def numbers(shape, dtype, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)


def close(actual, wanted):
    """Halves are correctly rounded, single numbers within 1 ULP; `wanted` has many digits."""
    name = actual.dtype.name
    rounded = np.vectorize(lambda v: NEAREST[name](v), otypes=[float])(wanted)
    if name == "float32":
        np.testing.assert_array_max_ulp(actual, rounded.astype(np.float32), 1)
    else:
        np.testing.assert_array_equal(actual.astype(float), rounded)


def digits(array):
    return np.vectorize(lambda v: mpmath.mpf(float(v)), otypes=[object])(array)


def split(array, dim):
    return np.split(array, 2, axis=dim)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_swiglu(dim, dtype):
    x = numbers((6, 4, 8), dtype)
    mpmath.mp.dps = 50
    wanted = np.vectorize(forward, otypes=[object])(*map(digits, split(x, dim)))
    actual = aclnn.swiglu(x, dim)
    assert actual.dtype == dtype
    close(actual, wanted)
    turned = np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0)
    np.testing.assert_array_equal(aclnn.swiglu(turned, dim=dim), actual)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_the_gradient_of_swiglu(dim, dtype):
    x = numbers((6, 4, 8), dtype, 1)
    a, b = split(x, dim)
    g = numbers(a.shape, dtype, 2)
    mpmath.mp.dps = 50
    found = np.vectorize(gradients, otypes=[object, object])(*map(digits, (g, a, b)))
    actual = aclnn.swiglu_backward(g, x, dim)
    assert actual.dtype == dtype
    for part, wanted in zip(split(actual, dim), found, strict=True):
        close(part, wanted)
    gaps = np.zeros((6, 4, 16), dtype)[:, :, ::2]
    strided = np.zeros((8, 4, 6), dtype).T
    strided[:] = x
    assert aclnn.swiglu_backward(g, strided, dim, out=gaps) is gaps
    np.testing.assert_array_equal(gaps, actual)


def test_the_gradient_is_that_of_pytorch():
    torch = pytest.importorskip("torch")
    x = torch.tensor(numbers((5, 12), np.float64), requires_grad=True)
    g = torch.tensor(numbers((5, 6), np.float64, 1))
    a, b = x.chunk(2, -1)
    (wanted,) = torch.autograd.grad(torch.nn.functional.silu(a) * b, x, g)
    actual = aclnn.swiglu_backward(g.float().numpy(), x.detach().float().numpy())
    np.testing.assert_allclose(actual, wanted.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("shift", [0, 2, 8])
def test_the_result_may_overlap(shift):
    """In place both halves of the input are needed for each half of the result."""
    store = numbers(40, np.float32)
    x, out = store[:24].reshape(4, 6), store[shift : 24 + shift].reshape(4, 6)
    g = numbers((4, 3), np.float32, 1)
    wanted = aclnn.swiglu_backward(g, x.copy())
    assert aclnn.swiglu_backward(g, x, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    x = store[:24].reshape(4, 6)
    wanted = aclnn.swiglu(x.copy())
    half = store[shift : 12 + shift].reshape(4, 3)
    np.testing.assert_array_equal(aclnn.swiglu(x, out=half), wanted)


def test_ends():
    a, b = np.float32([np.inf, -np.inf, np.nan, 0, 100, -200]), np.float32([2, 2, 2, np.inf, 1, 1])
    with np.errstate(all="ignore"):
        wanted = a / (1 + np.exp(-a.astype(np.float64))) * b
    actual = aclnn.swiglu(np.concatenate([a, b]))
    np.testing.assert_allclose(actual, wanted.astype(np.float32), rtol=1e-6, atol=1e-38)


def test_empties():
    assert aclnn.swiglu(np.zeros((0, 4), np.float32)).shape == (0, 2)
    assert aclnn.swiglu(np.zeros((3, 0), np.float32)).shape == (3, 0)
    x = np.zeros((0, 4), np.float16)
    assert aclnn.swiglu_backward(x[:, :2], x).shape == (0, 4)


def empty(shape, dtype=T.ACL_FLOAT):
    return aclnn.aclCreateTensor(shape, dtype, None, 0, aclnn.ACL_FORMAT_ND, shape, None)


@pytest.mark.parametrize(
    ("x", "dim", "out", "status", "words"),
    [
        (None, 5, empty((1,)), NULLPTR, "x is null"),
        (empty((3,), T.ACL_DOUBLE), 5, empty((1,)), INVALID, "x has dtype DOUBLE"),
        (empty((3,)), 5, empty((1,), T.ACL_FLOAT16), INVALID, "out has dtype FLOAT16"),
        (empty(()), 5, empty((1,)), TILING, "no dimensions"),
        (empty((3,)), 1, empty((1,)), TILING, "dim is 1, must be from -1 to 0"),
        (empty((3, 4)), 0, empty((1,)), TILING, "odd size 3"),
        (empty((3, 4)), -1, empty((3, 4)), TILING, "must have (3, 2)"),
    ],
)
def test_what_swiglu_refuses(x, dim, out, status, words):
    size, executor, found = aclnn.aclnnSwiGluGetWorkspaceSize(x, dim, out)
    assert (size, executor, found) == (0, None, status)
    assert words in aclnn.aclGetRecentErrMsg()


def test_what_the_gradient_refuses():
    phase_one, x = aclnn.aclnnSwiGluGradGetWorkspaceSize, empty((2, 4))
    assert phase_one(empty((2, 2)), x, -1, x)[2] == OK
    assert phase_one(empty((2, 2), T.ACL_FLOAT16), x, 7, x)[2] == INVALID
    assert phase_one(empty((2, 4)), x, -1, x)[2] == TILING
    assert "yGrad has shape" in aclnn.aclGetRecentErrMsg()
    assert phase_one(empty((2, 2)), x, -1, empty((2, 2)))[2] == TILING
