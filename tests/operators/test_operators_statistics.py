"""Deviations, variances with means, both extremes and logarithms of sums, against NumPy in float64."""

import math

import mpmath
import numpy as np
import pytest
from calls import BF16, BOOL, FLOATS, WHOLE, numbers, refused, run, tensor
from cases import each as named

import aclnn

NULLPTR, INVALID = 161001, 161002
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.each_instruction_set,
]
DIMS = (None, (1,), (0, 2), (-1, -2), (0, 1, 2))


def cube(dtype, seed=0):
    return numbers(dtype, 4 * 5 * 6, seed).reshape(4, 5, 6)


def ints(*values):
    return aclnn.aclCreateIntArray(list(values))


def near(found, wanted):
    """Rounded once from float64, which itself is off by little."""
    kind = found.dtype
    if kind == np.float64:
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-300)
        return
    rounded = np.asarray(wanted, np.float64).astype(kind)
    np.testing.assert_array_equal(found.astype(np.float64), rounded.astype(np.float64))


@named("dim", DIMS)
@named("dtype", FLOATS, ids=str)
@named("correction", [0, 1, 2])
def test_deviations_are_numpys(dtype, dim, correction):
    x = cube(dtype)
    wide = x.astype(np.longdouble)
    wanted = wide.std(dim, ddof=correction), wide.var(dim, ddof=correction), wide.mean(dim)
    near(aclnn.std(x, dim, correction=correction), wanted[0])
    for name, own in (("std_mean", wanted[0]), ("var_mean", wanted[1])):
        found, middle = getattr(aclnn, name)(x, dim, correction=correction)
        near(found, own)
        near(middle, wanted[2])
        assert middle.tobytes() == aclnn.mean(x, dim).tobytes()
    kept = aclnn.std(x, dim, correction=correction, keepdim=True)
    assert kept.shape == wide.std(dim, keepdims=True).shape


def test_deviations_of_few_elements():
    row = np.float32([[1, 3], [2, 2]])
    assert np.isnan(aclnn.std(row[:, :1], (1,))).all()
    assert aclnn.std(row, (1,), correction=2)[0] == math.inf
    assert np.isnan(aclnn.std(row, (1,), correction=2)[1]), "as in PyTorch"
    out, middle = np.zeros(2, np.float32), np.zeros(2, np.float32)
    run("aclnnStd", tensor(row), ints(1), 3, False, tensor(out))
    assert out.tolist() == [math.inf, math.inf]
    run("aclnnVarMean", tensor(row), ints(1), 2, False, tensor(out), tensor(middle))
    assert (out.tolist(), middle.tolist()) == ([math.inf, math.inf], [2, 2])
    run("aclnnStd", tensor(row[:, :1]), ints(1), 1, False, tensor(out))
    assert np.isnan(out).all()
    for found in aclnn.std_mean(np.empty((0, 3), np.float32), (0,)):
        assert np.isnan(found).all()


def test_results_of_other_dtypes_and_shapes():
    x = cube(FLOATS[0])
    out, middle = np.zeros((1, 1), np.float16), np.zeros((), np.float32)
    run("aclnnStd", tensor(x), None, 1, False, tensor(out))
    near(out[0], [np.float32(x.astype(np.longdouble).std(ddof=1))])
    run("aclnnVarMean", tensor(x), None, 0, False, tensor(out.reshape(())), tensor(middle))
    near(middle, x.astype(np.longdouble).mean())
    run("aclnnAminmaxAll", tensor(x), tensor(one := np.zeros(1, np.float32)), tensor(middle))
    assert (one[0], middle) == (x.min(), x.max())


@named("dim", DIMS[1:])
@named("dtype", FLOATS, ids=str)
def test_logarithms_of_sums(dtype, dim):
    x = cube(dtype)
    moved = np.moveaxis(x, dim, tuple(range(-len(dim), 0))).reshape(
        -1, math.prod(x.shape[d] for d in dim)
    )
    with mpmath.workdps(40):
        wanted = [
            mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(float(v))) for v in row)) for row in moved
        ]
        wanted = np.float64([float(one) for one in wanted])
    near(aclnn.logsumexp(x, dim).reshape(-1), wanted)
    kept = aclnn.logsumexp(x, dim, keepdim=True)
    assert kept.shape == x.sum(dim, keepdims=True).shape
    large = (x.astype(np.float64) * 0 + 300).astype(dtype)
    near(aclnn.logsumexp(large, dim), np.float64(300 + math.log(moved.shape[1])))


def test_logarithms_of_sums_of_unusual_numbers():
    inf, nan = math.inf, math.nan
    x = np.float32([[-inf, -inf], [inf, 1], [nan, 1], [inf, -inf], [-inf, 2]])
    assert repr(aclnn.logsumexp(x, 1).tolist()) == "[-inf, inf, nan, inf, 2.0]"
    assert aclnn.logsumexp(np.empty((2, 0), np.float32), 1).tolist() == [-inf, -inf]
    for dtype in [*WHOLE, BOOL]:
        x = cube(dtype) if dtype == BOOL else cube(dtype) % dtype.type(50)
        found = aclnn.logsumexp(x, (1,))
        assert found.dtype == np.float32
        near(found, np.log(np.exp(x.astype(np.float64)).sum(1)))


@named("dtype", [*FLOATS, *WHOLE, BOOL], ids=str)
def test_both_extremes(dtype):
    x = cube(dtype)
    for dim in (None, 0, 1, -1):
        least, most = aclnn.aminmax(x, dim=dim)
        assert least.tobytes() == x.min(dim).tobytes()
        assert most.tobytes() == x.max(dim).tobytes()
        kept = aclnn.aminmax(x, dim=dim, keepdim=True)
        assert kept[0].shape == kept[1].shape == x.min(dim, keepdims=True).shape
    made = [np.zeros((4, 6), dtype) for _ in range(2)]
    run("aclnnAminmax", tensor(x), ints(1), False, *map(tensor, made))
    assert made[0].tobytes() == x.min(1).tobytes()
    assert made[1].tobytes() == x.max(1).tobytes()
    run("aclnnAminmaxDim", tensor(x), -2, False, *map(tensor, made))
    assert made[1].tobytes() == x.max(1).tobytes()


def test_a_nan_is_both_extremes():
    x = np.float32([[1, math.nan], [2, 3]])
    for found in aclnn.aminmax(x, dim=1):
        assert np.isnan(found[0])
        assert found[1] in (2, 3)


X, Y = np.ones((2, 3), np.float32), np.ones(2, np.float32)


@named(
    ("name", "arguments", "status"),
    [
        ("aclnnStd", (None, ints(1), 1, False, Y), NULLPTR),
        ("aclnnStd", (X, ints(1), 1, False, None), NULLPTR),
        ("aclnnStd", (X.astype(np.float64), ints(1), 1, False, Y), INVALID),
        ("aclnnStd", (X.astype(np.int32), ints(1), 1, False, Y), INVALID),
        ("aclnnStd", (X, ints(1), 1, False, Y.astype(np.int32)), INVALID),
        ("aclnnStd", (X, ints(2), 1, False, Y), INVALID),
        ("aclnnStd", (X, ints(1, -1), 1, False, Y), INVALID),
        ("aclnnStd", (X, ints(1), 1, True, Y), INVALID),
        ("aclnnStd", (X, ints(0, 1), 1, False, Y[:1]), INVALID),
        ("aclnnStdMeanCorrection", (X, ints(1), 1, False, Y, Y.astype(np.float16)), INVALID),
        ("aclnnStdMeanCorrection", (X, ints(1), 1, False, Y, Y[:1]), INVALID),
        ("aclnnVarMean", (X, None, 1, False, Y[:1], Y[:1].reshape(())), INVALID),
        ("aclnnLogSumExp", (X, None, False, Y), NULLPTR),
        ("aclnnLogSumExp", (X, ints(1), False, Y.astype(np.int64)), INVALID),
        ("aclnnLogSumExp", (X, ints(0), False, Y), INVALID),
        ("aclnnAminmaxDim", (X, 2, False, Y, Y), INVALID),
        ("aclnnAminmaxDim", (X, 1, False, Y, Y.astype(np.float16)), INVALID),
        ("aclnnAminmaxDim", (np.ones((2, 0), np.float32), 1, False, Y, Y), INVALID),
        ("aclnnAminmaxAll", (X, Y, Y), INVALID),
        ("aclnnAminmax", (X, ints(1), False, Y, None), NULLPTR),
    ],
)
def test_what_is_refused(name, arguments, status):
    given = [tensor(one) if isinstance(one, np.ndarray) else one for one in arguments]
    assert refused(name, *given)[0] == status


def test_products_without_bfloat16_refuse_it():
    before = aclnn.get_soc_version()
    aclnn.set_soc_version("Ascend910")
    try:
        given = tensor(X.astype(BF16)), ints(1), False, tensor(Y.astype(BF16))
        assert refused("aclnnLogSumExp", *given)[0] == INVALID
    finally:
        aclnn.set_soc_version(before)
