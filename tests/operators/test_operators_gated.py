"""Gated units and their gradients: halves of one tensor, and halves of one result."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import mpmath
import numpy as np
import pytest
from cases import each

import aclnn
from aclnn import aclDataType as T
from aclnn.acl.rounding import nearest_bfloat16, nearest_float16, nearest_float32

pytestmark = pytest.mark.each_instruction_set

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


@each("dtype", DTYPES, ids=str)
@each("dim", [0, 1, -1])
def test_swiglu(dim, dtype):
    x = numbers((6, 4, 8), dtype)
    mpmath.mp.dps = 50
    wanted = np.vectorize(forward, otypes=[object])(*map(digits, split(x, dim)))
    actual = aclnn.swiglu(x, dim)
    assert actual.dtype == dtype
    close(actual, wanted)
    turned = np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0)
    np.testing.assert_array_equal(aclnn.swiglu(turned, dim=dim), actual)


@each("dtype", DTYPES, ids=str)
@each("dim", [0, 1, -1])
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


@each("shift", [0, 2, 8])
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


@each(
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


# --- Other units: the reference is a function of both halves, its gradient a difference of that ----


def phi(x):
    return (1 + mpmath.erf(x / mpmath.sqrt(2))) / 2


def gelu(x, tanh=False):
    inner = mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)
    return x * (1 + mpmath.tanh(inner)) / 2 if tanh else x * phi(x)


def clipped(a, b, alpha=1.702, limit=7.0, bias=1.0):
    a, b = min(a, limit), max(min(b, limit), -limit)
    return a * sigma(mpmath.mpf(alpha) * a) * (b + bias)


@dataclass(frozen=True)
class Unit:
    """A unit's functional form, options, reference, and those of its gradient after both arrays."""

    name: str
    options: dict
    reference: Callable

    def __str__(self):
        return "-".join([self.name, *map(str, self.options.values())])

    def halves(self, array, dim):
        if self.options.get("interleaved"):
            axis = dim % array.ndim
            places = [(slice(None),) * axis + (slice(k, None, 2),) for k in (0, 1)]
            return [array[place] for place in places]
        return split(array, dim)


CLIP = {"alpha": 1.5, "limit": 2.5, "bias": 0.75}
UNITS = [
    Unit("glu", {}, lambda a, b: a * sigma(b)),
    Unit("geglu", {"approximate": 0}, lambda a, b: a * gelu(b)),
    Unit("geglu", {"approximate": 1}, lambda a, b: a * gelu(b, tanh=True)),
    Unit("geglu", {"approximate": 0, "activate_left": True}, lambda a, b: b * gelu(a)),
    Unit("geglu", {"approximate": 1, "activate_left": True}, lambda a, b: b * gelu(a, tanh=True)),
    Unit("clipped_swiglu", {"interleaved": False} | CLIP, lambda a, b: clipped(a, b, **CLIP)),
    Unit("clipped_swiglu", {"interleaved": True} | CLIP, lambda a, b: clipped(a, b, **CLIP)),
]


def first(found):
    return found[0] if isinstance(found, tuple) else found


@pytest.fixture
def many_digits():
    before, mpmath.mp.dps = mpmath.mp.dps, 50
    yield
    mpmath.mp.dps = before


@pytest.mark.usefixtures("many_digits")
@each("unit", UNITS, ids=str)
@each("dtype", DTYPES, ids=str)
@each("dim", [0, -1])
def test_units(unit, dim, dtype):
    x = numbers((6, 4, 8), dtype, 3)
    x[:2, 0, :3] = [[1e-4, -1e-7, 0], [3e-6, 90, -90]]
    wanted = np.vectorize(unit.reference, otypes=[object])(*map(digits, unit.halves(x, dim)))
    form = getattr(aclnn, unit.name)
    found = form(x, dim=dim, **unit.options)
    assert first(found).dtype == dtype
    close(first(found), wanted)
    turned = np.ascontiguousarray(x.transpose(2, 0, 1)).transpose(1, 2, 0)
    gaps = np.zeros([2 * size for size in wanted.shape], dtype)[::2, ::2, ::2]
    out = (gaps, None) if unit.name == "geglu" else gaps
    assert first(form(turned, dim=dim, **unit.options, out=out)) is gaps
    np.testing.assert_array_equal(gaps, first(found))


@pytest.mark.usefixtures("many_digits")
@each("unit", UNITS, ids=str)
@each("dtype", DTYPES, ids=str)
@each("dim", [0, -1])
def test_gradients_of_units_are_differences(unit, dim, dtype):
    x = numbers((4, 2, 6), dtype, 4)
    x[0, 0, :3] = [1e-4, -1e-7, 3e-6]
    a, b = unit.halves(x, dim)
    g = numbers(a.shape, dtype, 5)
    gelu_of_x = (aclnn.geglu(x, dim=dim, **unit.options)[1],) if unit.name == "geglu" else ()
    found = getattr(aclnn, f"{unit.name}_backward")(g, x, *gelu_of_x, dim=dim, **unit.options)
    assert found.dtype == dtype
    slopes = [
        np.vectorize(lambda g, *at, order=order: g * mpmath.diff(unit.reference, at, order))
        for order in ((1, 0), (0, 1))
    ]
    for place, (part, slope) in enumerate(zip(unit.halves(found, dim), slopes, strict=True)):
        wanted = slope(*map(digits, (g, a, b)))
        if gelu_of_x and place == bool(unit.options.get("activate_left")):
            wanted = digits(g) * digits(gelu_of_x[0])  # rounded, as it was given
        close(part, wanted)


@pytest.mark.usefixtures("many_digits")
def test_glu_in_float64():
    """Within 2 ULP, also where e^b is less than any double."""
    a = np.concatenate([numbers(500, np.float64), np.full(500, 1e305)])
    b = np.concatenate([numbers(500, np.float64, 1) * 5, np.linspace(-1390, -600, 500)])
    g = numbers(a.shape, np.float64, 2)
    g[500:] = 3.0
    x = np.stack([a, b])
    exact = [mpmath.mpf(v) for v in b]
    outer = zip(a, exact, strict=True)
    wanted = [mpmath.mpf(p) * sigma(q) for p, q in outer]
    within(aclnn.glu(x, 0)[0], wanted, 2)
    slopes = [sigma(q) * (1 - sigma(q)) for q in exact]
    scaled = [mpmath.mpf(p) * mpmath.mpf(q) for p, q in zip(g, a, strict=True)]
    found = aclnn.glu_backward(g[None], x, 0)
    within(found[0], [mpmath.mpf(p) * sigma(q) for p, q in zip(g, exact, strict=True)], 2)
    within(found[1], [p * q for p, q in zip(scaled, slopes, strict=True)], 2)


def within(found, wanted, ulps):
    for one, exact in zip(found.tolist(), wanted, strict=True):
        assert abs(mpmath.mpf(one) - exact) <= ulps * mpmath.mpf(np.spacing(abs(float(exact))))


def test_glu_of_ends():
    """What PyTorch has: an infinite gate is 0 or 1, of an infinity 0 of it is none."""
    torch = pytest.importorskip("torch")
    ends = [np.inf, -np.inf, np.nan, 0, -0.0, 1]
    a, b = (np.float32(v).ravel() for v in np.meshgrid(ends, ends))
    wanted = torch.nn.functional.glu(torch.tensor(np.concatenate([a, b])))
    np.testing.assert_array_equal(aclnn.glu(np.concatenate([a, b])), wanted.numpy())


def test_geglu_where_an_error_weighs_most():
    """Of products just below a power of two; and where the gate is too small for a float, zero or endless."""
    rng = np.random.default_rng(7)
    x = np.float32(np.concatenate([rng.uniform(-12, 5, 4000), -np.exp(rng.uniform(-40, 2, 4000))]))
    gate = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x.astype(float)])
    power = 2.0 ** np.ceil(np.log2(np.abs(gate)))
    a = np.float32(power / np.abs(gate) * (1 - 1e-7 * rng.uniform(0.3, 200, x.size)))
    want = a.astype(float) * gate
    ulp = 2.0 ** (np.floor(np.log2(np.abs(want))) - 23)
    found = aclnn.geglu(np.concatenate([a, x]), -1, 0)[0]
    assert (np.abs(found - want) / ulp).max() <= 1
    a = np.float32([1e30, 1e30, 0, -0.0, 0, np.inf, np.inf, 2, np.nan, 1])
    x = np.float32([-13, 1e-40, -20, -20, np.inf, -2, 0, -np.inf, 1, np.nan])
    many = np.concatenate([np.tile(a, 50), np.tile(x, 50)])
    found = aclnn.geglu(many, -1, 0)[0].reshape(50, -1)
    want = np.float32([0.5 * -13e30 * math.erfc(13 / math.sqrt(2)), 0.5 * 1e30 * float(x[1])])
    np.testing.assert_array_max_ulp(found[:, :2], np.tile(want, (50, 1)), 1)
    np.testing.assert_array_equal(
        found[:, 2:], [[-0.0, 0.0, np.nan, -np.inf, np.nan, np.nan, np.nan, np.nan]] * 50
    )
    np.testing.assert_array_equal(np.signbit(found[:, 2:4]), [[True, False]] * 50)


def test_both_results_of_geglu():
    x = numbers((3, 8), np.float32)
    for left in (False, True):
        a, b = split(x, -1)[:: -1 if left else 1]
        out, gate = aclnn.geglu(x, -1, 0, left)
        np.testing.assert_array_equal(gate, aclnn.gelu(np.ascontiguousarray(b)))
        np.testing.assert_allclose(out, a * gate, 2e-7)


@pytest.mark.usefixtures("many_digits")
@each("dtype", DTYPES, ids=str)
def test_products_of_halves_of_rows(dtype):
    x = numbers((5, 3, 8), dtype, 6)
    a, b = map(digits, split(x, -1))
    for approximate in ("none", "tanh"):
        wanted = np.vectorize(lambda v, t=approximate: gelu(v, t == "tanh"), otypes=[object])(a) * b
        close(aclnn.gelu_mul(x, approximate=approximate), wanted)
    least = np.array([0.5], dtype)
    close(aclnn.fatrelu_mul(x[:, ::2], least), np.where(a < 0.5, 0, a)[:, ::2] * b[:, ::2])
    tiny = np.array([[1e-4, 3e-5, 6e-5, 0.7]], dtype)  # products that are hardly numbers of float16
    close(
        aclnn.fatrelu_mul(tiny, np.zeros((1, 1), dtype)), digits(tiny[:, :2]) * digits(tiny[:, 2:])
    )
    assert np.isnan(aclnn.fatrelu_mul(np.full((1, 2), np.nan, dtype), least)).all()


def test_group_indices_leave_leading_rows_as_they_are():
    x = numbers((6, 8), np.float32)
    wanted = aclnn.clipped_swiglu(x)
    found = aclnn.clipped_swiglu(x, np.int64([1, 3]))
    np.testing.assert_array_equal(found[:4], wanted[:4])


def test_defaults_are_those_of_torch_npu():
    x = numbers((4, 8), np.float32)
    options = {"dim": -1, "alpha": 1.702, "limit": 7.0, "bias": 1.0, "interleaved": True}
    np.testing.assert_array_equal(aclnn.clipped_swiglu(x), aclnn.clipped_swiglu(x, None, **options))
    np.testing.assert_array_equal(aclnn.geglu(x)[0], aclnn.geglu(x, -1, 1, False)[0])


def test_empty_units():
    x = np.zeros((0, 4), np.float32)
    half = x[:, :2]
    for name in ("glu", "clipped_swiglu", "gelu_mul"):
        assert getattr(aclnn, name)(x).shape == (0, 2)
    assert [one.shape for one in aclnn.geglu(x)] == [(0, 2), (0, 2)]
    assert aclnn.fatrelu_mul(x, np.float32([1])).shape == (0, 2)
    assert aclnn.geglu_backward(half, x, half).shape == (0, 4)
    assert aclnn.glu_backward(half, x).shape == (0, 4)
    assert aclnn.clipped_swiglu_backward(half, x).shape == (0, 4)


def refused(phase_one, *arguments):
    status = getattr(aclnn, f"{phase_one}GetWorkspaceSize")(*arguments)[2]
    return status, aclnn.aclGetRecentErrMsg() if status else ""


X, HALF, SHORT = empty((2, 4)), empty((2, 2)), empty((2, 4), T.ACL_FLOAT16)
NONE, WHOLE = empty((0, 4)), empty((2, 4), T.ACL_INT32)
REFUSED = [
    ("aclnnGlu", (None, 9, HALF), NULLPTR, "self is null"),
    ("aclnnGlu", (WHOLE, 9, HALF), INVALID, "self has dtype INT32"),
    ("aclnnGlu", (X, 9, WHOLE), INVALID, "out has dtype INT32"),
    ("aclnnGlu", (empty(()), 0, HALF), INVALID, "no dimensions"),
    ("aclnnGlu", (X, 2, X), INVALID, "dim is 2, must be from -2 to 1"),
    ("aclnnGlu", (empty((3, 4)), 0, X), INVALID, "odd size 3"),
    ("aclnnGlu", (X, -1, X), INVALID, "must have (2, 2)"),
    ("aclnnGlu", (X, -1, empty((2, 2), T.ACL_DOUBLE)), OK, ""),
    ("aclnnGluBackward", (HALF, SHORT, 9, X), INVALID, "self has dtype FLOAT16"),
    ("aclnnGluBackward", (X, X, -1, X), INVALID, "gradOut has shape"),
    ("aclnnGluBackward", (HALF, X, -1, HALF), INVALID, "out has shape"),
    ("aclnnGeGlu", (X, -1, 7, HALF, WHOLE), INVALID, "outGelu has dtype INT32"),
    ("aclnnGeGlu", (X, 9, 7, SHORT, HALF), INVALID, "out has dtype FLOAT16"),
    ("aclnnGeGlu", (NONE, -1, 1, empty((0, 2), T.ACL_FLOAT16), empty((0, 2))), OK, ""),
    ("aclnnGeGlu", (empty(()), 5, 7, SHORT, X), OK, ""),
    ("aclnnGeGlu", (X, 2, 7, HALF, HALF), INVALID, "dim is 2"),
    ("aclnnGeGlu", (X, -1, 7, X, HALF), INVALID, "out has shape (2, 4)"),
    ("aclnnGeGlu", (X, -1, 2, HALF, HALF), INVALID, "approximate is 2, must be 0 or 1"),
    ("aclnnGeGluV3", (X, -1, 1, True, HALF, X), INVALID, "outGelu has shape (2, 4)"),
    ("aclnnGeGluBackward", (HALF, X, X, 9, 7, X), INVALID, "gelu has shape"),
    ("aclnnGeGluBackward", (HALF, X, HALF, 9, 7, X), INVALID, "dim is 9"),
    ("aclnnGeGluV3Backward", (HALF, X, HALF, 1, 7, False, X), INVALID, "approximate is 7"),
    ("aclnnGeluMul", (X, None, HALF), OK, ""),
    ("aclnnGeluMul", (X, "erf", X), TILING, "out has shape (2, 4)"),
    ("aclnnGeluMul", (X, "erf", HALF), INVALID, "approximate"),
    ("aclnnGeluMul", (empty((4,)), None, HALF), TILING, "1 dimensions"),
    ("aclnnGeluMul", (empty((2, 3)), None, HALF), TILING, "odd last size 3"),
    ("aclnnFatreluMul", (X, empty((1,), T.ACL_FLOAT16), HALF), INVALID, "threshold has dtype"),
    ("aclnnFatreluMul", (X, HALF, HALF), TILING, "threshold has 4 elements"),
    ("aclnnClippedSwiglu", (X, HALF, 9, 1.0, 1.0, 1.0, True, X), INVALID, "groupIndexOptional"),
    ("aclnnClippedSwiglu", (X, None, 9, 1.0, 1.0, 1.0, True, X), TILING, "dim is 9"),
    ("aclnnClippedSwiglu", (X, None, 1, 1.0, 1.0, 1.0, True, X), TILING, "out has shape"),
    ("aclnnClippedSwigluGrad", (X, X, None, 1, 1.0, 1.0, 1.0, True, X), TILING, "yGrad has shape"),
]


@each(("name", "arguments", "status", "words"), REFUSED)
def test_what_units_refuse(name, arguments, status, words):
    found, message = refused(name, *arguments)
    assert found == status
    assert words in message
