"""Activations and their gradients beyond what judges of single formulas tell: roots, operators of several
tensors, integers, rules.
"""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import oracle
import pytest
from cases import each as named

import aclnn
from aclnn import aclDataType as T

pytestmark = pytest.mark.each_instruction_set

BF16 = np.dtype(ml_dtypes.bfloat16)
HALVES = [np.dtype(np.float16), BF16]
FLOATS = [np.dtype(np.float32), *HALVES]
OK, NULLPTR, INVALID, TILING = 0, 161001, 161002, 561002
SCALE, ALPHA = float(oracle.SCALE), float(oracle.ALPHA)


def numbers(shape, dtype=np.float32, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)


def empty(shape=(2, 3), dtype=T.ACL_FLOAT, format=None):
    """A description without memory."""
    format = aclnn.ACL_FORMAT_ND if format is None else format
    return aclnn.aclCreateTensor(shape, dtype, None, 0, format, shape, None)


def scalar(value, dtype=T.ACL_FLOAT):
    return aclnn.aclCreateScalar(value, dtype)


def status_of(name, *arguments):
    _, executor, status = getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments)
    assert (executor is None) == (status != OK)
    return status, aclnn.aclGetRecentErrMsg() if status else ""


def same_numbers(found, wanted):
    """NaNs of bfloat16 count as such."""
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.astype(float), wanted.astype(float))


@pytest.fixture
def product():
    """Sets the product for a test."""
    before = aclnn.get_soc_version()
    yield aclnn.set_soc_version
    aclnn.set_soc_version(before)


# --- Roots ----------------------------------------------------------------------------------------


ROOTS = {
    ("silu_backward", ()): -1.2784645427610738,
    ("swish_backward", (("beta", 0.75),)): -1.2784645427610738 / 0.75,
    ("fast_gelu_backward", ()): -1.2784645427610738 / 1.702,
    ("mish_backward", ()): -1.1924312145200903,
    ("selu_backward", ()): -1.7580993408473769,
    ("hardswish_backward", ()): -1.5,
    ("hardswish", ()): -3.0,
    ("hardsigmoid", ()): -3.0,
}


@named(("name", "options"), ROOTS)
def test_the_neighbours_of_roots(name, options):
    """And those that are further off, to where results have their usual size."""
    judge, place = oracle.JUDGES[name], np.float32(ROOTS[name, options]).view(np.int32)
    steps = np.unique(
        np.concatenate([np.arange(-40, 41), *(s * 2 ** np.arange(24) for s in (-1, 1))])
    )
    x = (place + steps).astype(np.int32).view(np.float32)
    operands = [np.full_like(x, 1.5), x] if judge.takes_gradient else [x]
    found = getattr(aclnn, name)(*operands, **dict(options))
    for value, *point in zip(found, *operands, strict=True):
        exact = judge.digits(*map(float, point), **dict(options))
        assert oracle.exact_distance(value, exact) <= 1, point


# --- What PyTorch makes of what is no number ------------------------------------------------------

ENDS = np.float32(
    [np.inf, -np.inf, np.nan, 0, -0.0, 3, -3, 1, -1, 0.5, -0.5, 20, -100, 3e38, -3e38]
)
# Of functions that have no other meaning there than PyTorch's.
LIKE_PYTORCH = {
    "relu": ("relu", {}),
    "threshold": ("nn.functional.threshold", {"threshold": 0.5, "value": 7.0}),
    "hardsigmoid": ("nn.functional.hardsigmoid", {}),
    "hardtanh": ("nn.functional.hardtanh", {}),
    "softshrink": ("nn.functional.softshrink", {}),
    "softplus": ("nn.functional.softplus", {}),
    "log_sigmoid": ("nn.functional.logsigmoid", {}),
    "mish": ("nn.functional.mish", {}),
    "selu": ("selu", {}),
    "celu": ("celu", {"alpha": -0.75}),
    "erfinv": ("erfinv", {}),
    "silu": ("nn.functional.silu", {}),
    "threshold_backward": ("ops.aten.threshold_backward", {"threshold": 0.5}),
    "hardtanh_backward": ("ops.aten.hardtanh_backward", {"min_val": -1.0, "max_val": 1.0}),
    "softshrink_backward": ("ops.aten.softshrink_backward", {"lambd": 0.5}),
    "hardsigmoid_backward": ("ops.aten.hardsigmoid_backward", {}),
    "softplus_backward": ("ops.aten.softplus_backward", {"beta": 1.0, "threshold": 20.0}),
    "hardswish_backward_v2": ("ops.aten.hardswish_backward", {}),
}


@named("name", LIKE_PYTORCH)
def test_ends_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch")
    path, options = LIKE_PYTORCH[name]
    function = torch
    for part in path.split("."):
        function = getattr(function, part)
    operands = [np.full_like(ENDS, 1.5), ENDS] if "_backward" in name else [ENDS]
    wanted = function(*map(torch.from_numpy, operands), *options.values()).numpy()
    with np.errstate(all="ignore"):
        found = getattr(aclnn, name)(*operands, **options)
    np.testing.assert_allclose(found, wanted, rtol=3e-6, atol=1e-40)


# --- Inverse of the error function ----------------------------------------------------------------


def erf_beyond(y):
    """1 - erf(y), which keeps its digits in the tail."""
    return np.vectorize(math.erfc, otypes=[np.float64])(y)


def assert_between(x, low, high):
    """erf(low) <= x <= erf(high), for x > 0: of what is left of 1, whose digits are exact."""
    left = 1 - x
    assert (erf_beyond(low) >= left * (1 - 1e-13)).all()
    assert (erf_beyond(high) <= left * (1 + 1e-13)).all()


@named("dtype", HALVES, ids=str)
def test_every_half_of_erfinv_is_correctly_rounded(dtype):
    """The error function of both ends of what is rounded to a result lies around the input."""
    x = oracle.every(dtype)
    with np.errstate(all="ignore"):
        inside = (x > 0.01) & (x < 1)
        found = aclnn.erfinv(x[inside])
        bits = found.view(np.uint16)
        ends = [
            (
                (bits.astype(int) + step).astype(np.uint16).view(dtype).astype(float)
                + found.astype(float)
            )
            / 2
            for step in (-1, 1)
        ]
        assert_between(x[inside].astype(float), *ends)
        np.testing.assert_array_equal(aclnn.erfinv(-x[inside]).astype(float), -found.astype(float))
        tiny = (abs(x) <= 0.01).astype(bool)
        wide = x[tiny].astype(float)
        series = wide * (1 + math.pi / 12 * wide**2 * (1 + 7 * math.pi / 40 * wide**2))
        wanted = oracle.round_to_odd(series * math.sqrt(math.pi) / 2).astype(dtype)
        np.testing.assert_array_equal(aclnn.erfinv(x[tiny]).astype(float), wanted.astype(float))
        outside = ~inside & (abs(x) >= 1)
        ends = np.where(abs(x) == 1, x.astype(float) * np.inf, np.nan)[outside]
        np.testing.assert_array_equal(aclnn.erfinv(x[outside]).astype(float), ends)


def test_float32_of_erfinv_is_within_one_ulp():
    x = oracle.float32_points("unit")
    x = x[(x > 0) & (x < 1)]
    found = aclnn.erfinv(x)
    ends = [np.nextafter(found, np.float32(end)).astype(float) for end in (-np.inf, np.inf)]
    small = x < 1e-3  # of which 1 less x has too few digits
    series = np.float64(x[small])
    series = series * (1 + math.pi / 12 * series**2) * math.sqrt(math.pi) / 2
    assert oracle.ulp_distance(found[small], series).max() <= 1
    assert_between(x[~small].astype(float), *[end[~small] for end in ends])
    np.testing.assert_array_equal(aclnn.erfinv(-x), -found)


def test_erfinv_of_integers():
    np.testing.assert_array_equal(
        aclnn.erfinv(np.int32([-1, 0, 1, 2])), [-np.inf, 0, np.inf, np.nan]
    )
    assert aclnn.erfinv(np.array([True, False])).dtype == np.float32
    assert status_of("aclnnInplaceErfinv", empty(dtype=T.ACL_INT32))[0] == INVALID


# --- PReLU ----------------------------------------------------------------------------------------


def channelled(weight, shape):
    return weight.reshape(1, -1, *(1 for _ in shape[2:])) if weight.size > 1 else weight.reshape(())


@named("dtype", FLOATS, ids=str)
@named("shape", [(2, 3), (4, 5, 7), (3, 40, 6, 5), (6,), ()])
@named("shared", [False, True])
def test_prelu_and_its_gradients(shape, shared, dtype):
    """Products of halves are exact as float64, so that results are theirs, rounded once."""
    count = 1 if shared or len(shape) < 2 else shape[1]
    x, g = numbers(shape, dtype), numbers(shape, dtype, 1)
    weight = numbers(count, dtype, 2)
    w, wide, factor = (v.astype(float) for v in (channelled(weight, shape), x, g))
    found = aclnn.prelu(x, weight)
    assert (found.dtype, found.shape) == (dtype, shape)
    np.testing.assert_array_equal(found, np.where(wide > 0, wide, wide * w).astype(dtype))
    grad_input, grad_weight = aclnn.prelu_backward(g, x, weight)
    wanted = np.where(wide > 0, factor, factor * w).astype(dtype)
    np.testing.assert_array_equal(grad_input, wanted)
    terms = np.where(wide > 0, 0, factor * wide)
    axes = tuple(axis for axis in range(len(shape)) if axis != 1 or count == 1)
    sums = np.asarray(terms.sum(axes)).reshape(count)
    assert (grad_weight.dtype, grad_weight.shape) == (dtype, (count,))
    rounding = {4: 2.0**-23, 2: 2.0**-8 if dtype == BF16 else 2.0**-11}[dtype.itemsize]
    np.testing.assert_allclose(grad_weight.astype(float), sums, rounding, 1e-12)


@named("dtype", HALVES, ids=str)
@named("slope", [0.25, 0.3, -1.5])
def test_every_half_of_prelu_is_correctly_rounded(slope, dtype):
    """And that of randomised ReLU, whose slope lies between two numbers."""
    x = oracle.every(dtype)
    weight = np.array([slope], dtype)
    with np.errstate(all="ignore"):
        wide = x.astype(float)
        wanted = oracle.round_to_odd(np.where(wide > 0, wide, wide * float(weight[0])))
        same_numbers(aclnn.prelu(x, weight), wanted.astype(dtype))
        low, high = np.float32(slope), np.float32(0.7)
        middle = (Fraction(float(low)) + Fraction(float(high))) / 2
        assert Fraction(float(middle)) == middle
        wanted = oracle.round_to_odd(np.where(wide > 0, wide, wide * float(middle)))
        found = aclnn.rrelu_with_noise(x, np.zeros_like(x), float(low), float(high))
        same_numbers(found, wanted.astype(dtype))


def test_prelu_takes_any_strides_and_promotes():
    x, weight = numbers((5, 4, 6)).transpose(2, 0, 1), numbers(10, np.float16)[::2]
    wanted = aclnn.prelu(np.ascontiguousarray(x), np.ascontiguousarray(weight).astype(np.float32))
    np.testing.assert_array_equal(aclnn.prelu(x, weight), wanted)
    g = numbers((5, 1))
    dense = np.broadcast_to(g, x.shape).copy()
    weight = weight.astype(np.float32)
    for one, other in zip(
        aclnn.prelu_backward(g, x, weight),
        aclnn.prelu_backward(dense, np.ascontiguousarray(x), weight.copy()),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_the_gradients_of_prelu_are_those_of_pytorch():
    torch = pytest.importorskip("torch")
    x = torch.tensor(numbers((3, 4, 5)), requires_grad=True)
    weight = torch.tensor(numbers(4, seed=1), requires_grad=True)
    g = torch.tensor(numbers((3, 4, 5), seed=2))
    wanted = torch.autograd.grad(torch.nn.functional.prelu(x, weight), (x, weight), g)
    found = aclnn.prelu_backward(g.numpy(), x.detach().numpy(), weight.detach().numpy())
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other.numpy(), 1e-5)


def test_empty_weights_leave_nothing_to_do():
    out = np.full((2, 3), 7, np.float32)
    aclnn.prelu(numbers((2, 3)), np.float32([]), out=out)
    np.testing.assert_array_equal(out, 7)
    _, gradient = aclnn.prelu_backward(*[np.empty((0, 3), np.float32)] * 2, np.ones(3, np.float32))
    np.testing.assert_array_equal(gradient, [0, 0, 0])


# --- Sums, steps, logarithms ----------------------------------------------------------------------


@named("dtype", [*FLOATS, *map(np.dtype, ("i1", "i2", "i4", "i8", "u1"))], ids=str)
@named("alpha", [1, 3])
def test_add_relu_is_relu_of_add(alpha, dtype):
    a, b = (numbers(500, seed=seed) * 20 for seed in (1, 2))
    a, b = a.astype(np.int64).astype(dtype), b.astype(np.int64).astype(dtype)
    wanted = np.maximum(aclnn.add(a, b, alpha=alpha), np.zeros((), dtype))
    np.testing.assert_array_equal(aclnn.add_relu(a, b, alpha=alpha), wanted)
    assert aclnn.add_relu_(a, b, alpha=alpha) is a
    np.testing.assert_array_equal(a, wanted)


@named("dtype", FLOATS, ids=str)
def test_heaviside(dtype):
    x = np.array([[-2, -0.0, 0], [3, np.inf, np.nan]], dtype)
    values = np.array([[5], [7]], np.float16)
    wanted = [[0, 5, 5], [1, 1, 0]]
    found = aclnn.heaviside(x, values)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)


@named("dtype", FLOATS, ids=str)
def test_the_gradient_of_log_sigmoid_is_that_of_softplus_turned_round(dtype):
    """Which is judged; what the buffer is makes no difference."""
    x = oracle.every(BF16).astype(dtype)
    g = oracle.half_gradients(BF16)["random"].astype(dtype)
    with np.errstate(all="ignore"):
        wanted = aclnn.softplus_backward(g, -x, threshold=math.inf)
        for buffer in (np.float32([]), np.zeros((2, 3), np.int8)):
            same_numbers(aclnn.log_sigmoid_backward(g, x, buffer), wanted)
        wanted = aclnn.log_sigmoid(x)
        same_numbers(aclnn.log_sigmoid_forward(x), wanted)
        same_numbers(aclnn.log_sigmoid_forward(x, np.zeros(3)), wanted)


# --- Integers -------------------------------------------------------------------------------------


def test_integers():
    x = np.arange(-5, 6, dtype=np.int32)
    g = np.full_like(x, 3)
    wide = x.astype(float)
    of_selu = SCALE * np.where(wide > 0, wide, ALPHA * np.expm1(wide))
    slopes = 3 * np.where(wide > 0, SCALE, wide + SCALE * ALPHA)
    for found, wanted in (
        (aclnn.relu(x), np.maximum(x, 0)),
        (aclnn.threshold(x, 2, -9), np.where(x > 2, x, -9)),
        (aclnn.threshold_backward(g, x, 2), np.where(x > 2, 3, 0)),
        (aclnn.hardtanh(x, -2, 3), np.clip(x, -2, 3)),
        (aclnn.hardsigmoid(x), (x >= 3).astype(np.int32)),
        (aclnn.selu(x), np.trunc(of_selu)),
        (aclnn.selu_backward(g, x), np.trunc(slopes)),
    ):
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, wanted)
    large = np.int64([2**60 + 1, -(2**60) - 1])
    np.testing.assert_array_equal(aclnn.relu(large), [2**60 + 1, 0])
    np.testing.assert_array_equal(aclnn.hardtanh(large, -(2**60), 2**60), [2**60, -(2**60)])


def test_softplus_of_other_dtypes_is_computed_as_float32():
    x, g = np.arange(-3, 4), np.linspace(1, 2, 7)
    found = aclnn.softplus_backward(g, x)
    assert found.dtype == np.float64
    wanted = aclnn.softplus_backward(g.astype(np.float32), x.astype(np.float32))
    np.testing.assert_array_equal(found, wanted)


# --- Rules ----------------------------------------------------------------------------------------

F32, F16, F64, BF = T.ACL_FLOAT, T.ACL_FLOAT16, T.ACL_DOUBLE, T.ACL_BF16
I32, I64, BOOLEAN = T.ACL_INT32, T.ACL_INT64, T.ACL_BOOL
X, Y = empty(), empty()
NINE = (1,) * 9
WRONG = empty((3, 2))
REFUSED = [
    ("aclnnRelu", (empty(dtype=F64), Y), INVALID, "self has dtype DOUBLE"),
    ("aclnnRelu", (empty(dtype=F16), Y), INVALID, "out has dtype FLOAT"),
    ("aclnnRelu", (X, WRONG), INVALID, "out has shape (3, 2)"),
    ("aclnnRelu", (None, Y), NULLPTR, "self is null"),
    ("aclnnThreshold", (X, None, scalar(1), Y), NULLPTR, "threshold is null"),
    ("aclnnThreshold", (X, scalar(1), scalar(1), empty(dtype=I32)), INVALID, "cannot be cast"),
    ("aclnnThresholdBackward", (X, X, None, Y), NULLPTR, "threshold is null"),
    ("aclnnThresholdBackward", (X, empty(dtype=F16), scalar(0), Y), INVALID, "self has dtype FLOAT16"),
    ("aclnnThresholdBackward", (X, empty((5,)), scalar(0), Y), INVALID, "do not broadcast"),
    ("aclnnThresholdBackward", (*[empty(dtype=I64)] * 2, scalar(0), empty(dtype=I64)), INVALID, "Ascend950"),
    ("aclnnSigmoidBackward", (empty(dtype=I32), X, Y), INVALID, "gradOutput has dtype INT32"),
    ("aclnnSigmoidBackward", (X, empty(dtype=T.ACL_COMPLEX64), Y), INVALID, "cannot be cast"),
    ("aclnnTanhBackward", (X, empty(dtype=F16), Y), INVALID, "output has dtype FLOAT16"),
    ("aclnnSiluBackward", (X, empty(dtype=F16), Y), INVALID, "self has dtype FLOAT16"),
    ("aclnnSiluBackward", (X, empty((3,)), Y), INVALID, "self has shape (3,)"),
    ("aclnnSwish", (X, scalar(1j, T.ACL_COMPLEX64), Y), INVALID, "cannot be converted to FLOAT"),
    ("aclnnSwish", (X, scalar(1), empty(dtype=F16)), INVALID, "out has dtype FLOAT16"),
    ("aclnnMishBackward", (X, empty(dtype=F64), Y), INVALID, "self has dtype DOUBLE"),
    ("aclnnMishBackward", (X, X, empty(dtype=I32)), INVALID, "cannot be cast"),
    ("aclnnHardswish", (X, empty(dtype=F64)), INVALID, "out has dtype DOUBLE"),
    ("aclnnHardswishBackward", (X, empty((1, 3)), Y), INVALID, "self has shape (1, 3)"),
    ("aclnnHardsigmoid", (X, empty(format=aclnn.ACL_FORMAT_NCHW)), INVALID, "out has format"),
    ("aclnnHardsigmoidBackward", (X, empty((1, 3)), Y), INVALID, "self has shape (1, 3)"),
    ("aclnnHardtanh", (X, scalar(2), scalar(1), WRONG), INVALID, "out has shape"),
    ("aclnnHardtanh", (X, scalar(2), scalar(1), Y), INVALID, "must not be more than clipValueMax"),
    ("aclnnHardtanh", (X, scalar(True, BOOLEAN), scalar(2), Y), INVALID, "of dtype BOOL"),
    ("aclnnHardtanhBackward", (X, X, scalar(0), scalar(1), empty(dtype=F16)), INVALID, "out has"),
    ("aclnnSoftplus", (X, scalar(1), scalar(1j, T.ACL_COMPLEX64), Y), INVALID, "threshold is"),
    ("aclnnSoftplusBackward", (X, X, None, scalar(1), Y), NULLPTR, "beta is null"),
    ("aclnnSoftplusBackward", (X, X, scalar(1), None, Y), NULLPTR, "threshold is null"),
    ("aclnnSoftplusBackward", (X, empty((1, 3)), scalar(1), scalar(1), Y), INVALID, "has shape"),
    ("aclnnSoftshrink", (X, scalar(-1), WRONG), INVALID, "out has shape"),
    ("aclnnSoftshrink", (X, scalar(-1), Y), INVALID, "must not be negative"),
    ("aclnnSoftshrinkBackward", (X, X, scalar(-1), Y), INVALID, "must not be negative"),
    ("aclnnSelu", (empty(dtype=F64), Y), INVALID, "self has dtype DOUBLE"),
    ("aclnnSeluBackward", (X, empty(dtype=F16), Y), INVALID, "result has dtype"),
    ("aclnnCelu", (X, scalar(0), Y), INVALID, "must be a number other than 0"),
    ("aclnnCelu", (X, scalar(math.nan), Y), INVALID, "must be a number other than 0"),
    ("aclnnLogSigmoidBackward", (X, X, None, Y), NULLPTR, "buffer is null"),
    ("aclnnFastGelu", (X, empty(dtype=F16)), INVALID, "out has dtype FLOAT16"),
    ("aclnnPrelu", (X, empty((2,)), Y), INVALID, "weight has 2 elements"),
    ("aclnnPrelu", (empty((3,)), empty((3,)), empty((3,))), INVALID, "weight has 3 elements"),
    ("aclnnPreluBackward", (X, X, empty((3,)), Y, empty((1, 3))), INVALID, "gradWeight has shape"),
    ("aclnnPreluBackward", (empty((2, 2, 3)), X, empty((3,)), Y, empty((3,))), INVALID, "gradOutput"),
    ("aclnnShrink", (empty(dtype=BF), scalar(1), scalar(1), Y), INVALID, "self has dtype BF16"),
    ("aclnnShrink", (X, scalar(-1), scalar(1), Y), INVALID, "must not be negative"),
    ("aclnnShrink", (X, scalar(1), None, Y), NULLPTR, "bias is null"),
    ("aclnnErfinv", (empty(dtype=F64), Y), INVALID, "self has dtype DOUBLE"),
    ("aclnnHeaviside", (X, empty((5,)), Y), INVALID, "do not broadcast"),
    ("aclnnAddRelu", (empty(dtype=I32), empty(dtype=I32), scalar(0.5), empty(dtype=I32)), INVALID, "alpha"),
    ("aclnnAddRelu", (empty(dtype=F64), X, scalar(1), Y), INVALID, "self has dtype DOUBLE"),
    ("aclnnInplaceAddRelu", (empty((3,)), X, scalar(1)), INVALID, "selfRef has shape (3,)"),
    ("aclnnSquaredRelu", (empty(()), empty(())), TILING, "no dimensions"),
    ("aclnnSquaredRelu", (X, WRONG), TILING, "out has shape"),
    ("aclnnRReluWithNoise", (X, X, scalar(0), scalar(1), True, 0, 0, Y), INVALID, "training is true"),
]  # fmt: skip


@named(("name", "arguments", "status", "words"), REFUSED)
def test_what_is_refused(name, arguments, status, words):
    found, message = status_of(name, *arguments)
    assert (found, words in message) == (status, True), message


def test_what_is_taken():
    none = empty((0, 3))
    for name, *arguments in (
        ("aclnnSwish", X, None, Y),
        ("aclnnSwishBackward", X, X, None, Y),
        ("aclnnHardswish", X, empty(dtype=F16)),
        ("aclnnLogSigmoidForward", X, Y, None),
        ("aclnnLogSigmoidForward", X, Y, empty((7,), BOOLEAN)),
        ("aclnnLogSigmoidBackward", X, X, empty((0,), I32), Y),
        ("aclnnSelu", empty(dtype=I32), Y),
        ("aclnnMishBackward", none, none, none),
        ("aclnnPrelu", X, empty((0,)), Y),
        ("aclnnPrelu", X, empty((1, 3, 1)), Y),
        ("aclnnSigmoidBackward", X, empty((1, 3), F64), empty(dtype=F16)),
    ):
        assert status_of(name, *arguments) == (OK, ""), name


def test_what_depends_on_the_product(product):
    mixed = (X, empty((3,), F16), Y)
    whole = empty(dtype=I64)
    for soc, name, arguments, status in (
        ("Ascend950", "aclnnSiluBackward", mixed, OK),
        ("Ascend950", "aclnnThreshold", (X, scalar(1), scalar(1), empty(dtype=I32)), OK),
        ("Ascend950", "aclnnThresholdBackward", (whole, whole, scalar(0), whole), OK),
        ("Ascend950", "aclnnThresholdBackward", (whole, whole, scalar(1), whole), INVALID),
        ("Ascend950", "aclnnHeaviside", (X, X, Y), INVALID),
        ("Ascend910_93", "aclnnHeaviside", (X, X, Y), OK),
        ("Ascend310P", "aclnnFastGelu", (X, Y), INVALID),
        ("Ascend310P", "aclnnSquaredRelu", (X, Y), INVALID),
        ("Ascend310P", "aclnnMish", (empty(dtype=BF), empty(dtype=BF)), INVALID),
        ("Ascend310P", "aclnnSilu", (X, Y), OK),
    ):
        product(soc)
        assert status_of(name, *arguments)[0] == status, (soc, name)


def test_bounds_of_hard_tanh_are_compared_at_every_call():
    """Plans are shared by calls whose bounds are in order."""
    x = np.float32([-5, 0.5, 5])
    np.testing.assert_array_equal(aclnn.hardtanh(x, -2, 2), [-2, 0.5, 2])
    with pytest.raises(aclnn.AclnnError, match="min_val is 2"):
        aclnn.hardtanh(x, 2, -2)
    np.testing.assert_array_equal(aclnn.hardtanh(x, 0, 1), [0, 0.5, 1])
    np.testing.assert_array_equal(aclnn.hardtanh(x, 1, 1), [1, 1, 1])
    executor = aclnn.executor("hardtanh", x)
    np.testing.assert_array_equal(executor.run(min_val=-3.0, max_val=3.0), [-3, 0.5, 3])
    for bounds in ({"min_val": 4.0}, {"max_val": -4.0}, {"min_val": 2.0, "max_val": 1.0}):
        with pytest.raises(aclnn.AclnnError, match="shapes the plan"):
            executor.run(**bounds)
    large = np.int64([2**62])
    with pytest.raises(aclnn.AclnnError, match="must not be more"):
        aclnn.hardtanh(large, 2**62 + 1, 2**62)
