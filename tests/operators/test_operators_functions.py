"""Functions of numbers, powers, rounded quotients, interpolation and logic, against exact numbers."""

import math
from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np
import oracle
import pytest
import wide
from calls import (
    BF16,
    COMPLEX,
    FLOATS,
    REAL,
    WHOLE,
    empty,
    exact,
    numbers,
    refused,
    rounded,
    run,
    scalar,
    tensor,
)
from cases import each as named

import aclnn
from aclnn import aclDataType as T
from aclnn.acl.rounding import nearest_float32

pytestmark = pytest.mark.each_instruction_set

OK, NULLPTR, INVALID = 0, 161001, 161002
HALVES = [np.dtype(np.float16), BF16]

# In float64, and with many digits.
UNARY = {
    name: (lambda x, f=f: f(np, x), lambda x, f=f: f(mpmath, x))
    for name, f in wide.FUNCTIONS.items()
}
FLOATING_ONLY = (
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "rsqrt",
    "reciprocal",
    "sin",
    "cos",
    "erf",
)
DEFINED = {"log": 0, "log2": 0, "log10": 0, "rsqrt": 0, "log1p": -1}


def points(name, dtype, count=400):
    found = numbers(dtype, count)
    return np.abs(found) + dtype.type(0.01) if name in DEFINED else found


@named("dtype", HALVES, ids=str)
@named("name", UNARY)
def test_every_half_is_rounded_once(name, dtype):
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    with np.errstate(all="ignore"):
        wanted = UNARY[name][0](x.astype(np.float64))
        low, high = ((wanted * f).astype(dtype) for f in (1 - 2.0**-45, 1 + 2.0**-45))
        found = getattr(aclnn, name)(x)
    assert found.dtype == dtype
    same = (found.view(np.uint16) == low.view(np.uint16)) | (
        found.view(np.uint16) == high.view(np.uint16)
    )
    assert (same | (np.isnan(found) & np.isnan(wanted)) | (found == wanted)).all()


@named("dtype", [np.dtype(np.float32), np.dtype(np.float64)], ids=str)
@named("name", UNARY)
def test_floats_are_near_exact_results(name, dtype):
    x = points(name, dtype)
    found = getattr(aclnn, name)(x)
    with mpmath.workdps(60):
        wanted = [UNARY[name][1](mpmath.mpf(float(one))) for one in x]
        for one, result, want in zip(x, found, wanted, strict=True):
            if not mpmath.mpf(2) ** -1000 < abs(want) < mpmath.mpf(2) ** 120:
                continue
            unit = np.spacing(np.abs(dtype.type(float(want))))
            assert (
                abs(mpmath.mpf(float(result)) - want) <= (1 if dtype == np.float32 else 2) * unit
            ), one


@named("dtype", [*WHOLE, np.dtype(bool)], ids=str)
@named("name", FLOATING_ONLY)
def test_integers_are_computed_as_float32(name, dtype):
    x = numbers(dtype, 50)
    found = getattr(aclnn, name)(x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, getattr(aclnn, name)(x.astype(np.float32)))
    half = np.empty(50, np.float16)
    getattr(aclnn, name)(x, out=half)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(half, found.astype(np.float16))


@pytest.fixture
def product_as_before():
    before = aclnn.get_soc_version()
    yield
    aclnn.set_soc_version(before)


@pytest.mark.parametrize("name", [*FLOATING_ONLY, "abs", "floor", "square"])
def test_the_checks_of_functions(name, product_as_before):
    cann = name.capitalize()
    plan = f"aclnn{cann}"
    if name == "square":
        aclnn.set_soc_version("Ascend950")
    status, message = refused(plan, None, empty())
    assert (status, "self is null" in message) == (NULLPTR, True)
    complex_one = empty(dtype=T.ACL_COMPLEX64)
    if name != "square":
        assert refused(plan, complex_one, empty((1,)))[0] == INVALID
    status, message = refused(plan, empty(), empty((4,), T.ACL_INT32))
    assert (status, "out has dtype" in message) == (INVALID, True)
    assert "9 dimensions" in refused(plan, empty((1,) * 9), empty((4,)))[1]
    assert "out has shape" in refused(plan, empty(), empty((4,)))[1]
    whole = empty(dtype=T.ACL_INT32)
    if name in FLOATING_ONLY:
        assert "selfRef has dtype INT32" in refused(f"aclnnInplace{cann}", whole)[1]


def test_functions_that_lose_nothing():
    for dtype in [*FLOATS, *WHOLE]:
        x = numbers(dtype)
        for name, function in (("abs", np.abs), ("floor", np.floor)):
            found = getattr(aclnn, name)(x)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found.astype(float), function(x).astype(float))
    np.testing.assert_array_equal(aclnn.abs(np.array([True, False])), [True, False])
    for dtype in COMPLEX:
        x = numbers(dtype)
        np.testing.assert_allclose(aclnn.square(x), x * x, rtol=1e-6)
    wrapped = np.int8([16, 100])
    np.testing.assert_array_equal(aclnn.square(wrapped), wrapped * wrapped)


@named("name", [*UNARY, "abs", "floor"])
def test_functions_in_place_and_of_views(name):
    store = np.abs(numbers(FLOATS[0], 60)) + np.float32(0.1)
    x = store[::-2].reshape(5, 6).T
    wanted = getattr(aclnn, name)(x.copy())
    np.testing.assert_array_equal(getattr(aclnn, name)(x), wanted)
    assert getattr(aclnn, f"{name}_")(x) is x
    np.testing.assert_array_equal(x, wanted)
    assert getattr(aclnn, name)(x[:0]).shape == (0, 5)


# --- Sums and quotients ---------------------------------------------------------------------------


@named("dtype", [*FLOATS, *WHOLE], ids=str)
@named("number", [False, True])
def test_differences_the_other_way_around_are_rounded_once(dtype, number):
    a, b = numbers(dtype, seed=1), numbers(dtype, seed=2)
    if number:
        value = 7 if dtype.kind in "iu" else 0.7
        b = value
        other = value if dtype.kind in "iu" or dtype == np.float64 else nearest_float32(value)
        others = [Fraction(other)] * len(a)
    else:
        others = [exact(one) for one in b]
    found = aclnn.rsub(a, b, alpha=3)
    wanted = [y - 3 * exact(x) for x, y in zip(a, others, strict=True)]
    np.testing.assert_array_equal(found, rounded(wanted, dtype))
    if not number:
        out = np.empty_like(a)
        run("aclnnRsub", tensor(a), tensor(b), scalar(3, T.ACL_INT64), tensor(out))
        np.testing.assert_array_equal(out, found)


@named("dtype", [*FLOATS, *WHOLE], ids=str)
@named("mode", ["true", "trunc", "floor"])
def test_quotients_are_rounded_from_exact_ones(mode, dtype):
    a, b = numbers(dtype, seed=1), numbers(dtype, seed=2)
    b[b == 0] = 1
    a[:100] = b[:100] * dtype.type(3)  # nearly, or just, three times as much
    found = aclnn.div_mod(a, b, mode)
    if mode == "true":
        np.testing.assert_array_equal(found, aclnn.div(a, b))
        return
    rounding = {"trunc": math.trunc, "floor": math.floor}[mode]
    wanted = [rounding(Fraction(exact(x)) / Fraction(exact(y))) for x, y in zip(a, b, strict=True)]
    if dtype.kind == "f" or dtype == BF16:
        large = np.array([abs(one) > 2**52 for one in wanted])  # the quotient itself, rounded
        np.testing.assert_array_equal(
            found[~large],
            rounded([w for w, big in zip(wanted, large, strict=True) if not big], dtype),
        )
        return
    np.testing.assert_array_equal(found, rounded(wanted, dtype))


@named("mode", ["trunc", "floor"])
def test_rounded_quotients_by_numbers_and_by_zero(mode):
    x = np.int32([7, -7, 0])
    wanted = {"trunc": [3, -3, 0], "floor": [3, -4, 0]}[mode]
    np.testing.assert_array_equal(aclnn.div_mod(x, 2, mode), wanted)
    np.testing.assert_array_equal(aclnn.div_mod(x, 0, mode), [0, 0, 0])
    np.testing.assert_array_equal(
        aclnn.div_mod(np.float32([1, -1, 0]), 0.0, mode), [np.inf, -np.inf, np.nan]
    )
    given = x.copy()
    run(
        "aclnnInplaceDivMods", tensor(given), scalar(2, T.ACL_INT64), {"trunc": 1, "floor": 2}[mode]
    )
    np.testing.assert_array_equal(given, wanted)
    given = x.copy()
    assert aclnn.div_mod_(given, 2, mode) is given
    np.testing.assert_array_equal(given, wanted)


def test_the_modes_of_quotients():
    x, z = empty(), empty(dtype=T.ACL_COMPLEX64)
    assert "mode is 3" in refused("aclnnDivMod", x, x, 3, x)[1]
    assert "complex" in refused("aclnnDivMod", z, z, 1, z)[1]
    assert "has shape" in refused("aclnnDivMod", empty(dtype=T.ACL_UINT16), x, 3, empty((4,)))[1]
    run("aclnnDivMod", *[tensor(np.ones(2, np.complex64))] * 2, 0, tensor(np.ones(2, np.complex64)))


# --- Powers ---------------------------------------------------------------------------------------


@named("dtype", FLOATS, ids=str)
def test_powers_of_floats(dtype):
    a, b = np.abs(numbers(dtype, 200, 1)), numbers(dtype, 200, 2) / dtype.type(64)
    with np.errstate(all="ignore"):
        found = {
            "pow": (aclnn.pow(a, b), a, b),
            "pow_tensor_scalar": (aclnn.pow(a, 0.75), a, [0.75] * 200),
            "pow_scalar_tensor": (aclnn.pow(1.5, b), [1.5] * 200, b),
        }
    with mpmath.workdps(60):
        for results, bases, exponents in found.values():
            assert results.dtype == dtype
            for result, x, y in zip(results, bases, exponents, strict=True):
                want = mpmath.power(mpmath.mpf(float(x)), mpmath.mpf(float(y)))
                if not mpmath.mpf(2) ** -120 < want < mpmath.mpf(2) ** 15:
                    continue
                if dtype in HALVES:
                    assert result == rounded([Fraction(float(want))], dtype)[0]
                    continue
                unit = np.spacing(dtype.type(float(want)))
                assert (
                    abs(mpmath.mpf(float(result)) - want)
                    <= (2 if dtype == np.float64 else 1) * unit
                )


@named("dtype", WHOLE, ids=str)
def test_powers_of_integers_wrap_around(dtype):
    a, b = numbers(dtype, 100, 1), (np.abs(numbers(dtype, 100, 2)) % 9).astype(dtype)
    wanted = rounded([int(x) ** int(y) for x, y in zip(a, b, strict=True)], dtype)
    np.testing.assert_array_equal(aclnn.pow(a, b), wanted)
    np.testing.assert_array_equal(aclnn.pow(a, 3), rounded([int(x) ** 3 for x in a], dtype))
    np.testing.assert_array_equal(aclnn.pow(3, b), rounded([3 ** int(y) for y in b], dtype))
    given = a.copy()
    run("aclnnInplacePowTensorScalar", tensor(given), scalar(2, T.ACL_INT64))
    np.testing.assert_array_equal(given, rounded([int(x) ** 2 for x in a], dtype))


ENDS = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -2, 3, -3, 1e-30, 2.0**100]


@named("dtype", FLOATS, ids=str)
def test_special_powers(dtype):
    with np.errstate(all="ignore"):
        ends = np.float64([ENDS]).astype(dtype)
        wanted = np.power(ends.T.astype(float), ends.astype(float)).astype(dtype)
        tables = [
            aclnn.pow(ends.T, ends),
            np.concatenate([aclnn.pow(ends.T, one) for one in ends[0].tolist()], axis=1),
            np.concatenate([aclnn.pow(one, ends) for one in ends[0].tolist()]),
        ]
    known = ~np.isnan(wanted)
    for found in tables:
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.isnan(found), ~known)
        np.testing.assert_allclose(
            found[known].astype(float),
            wanted[known].astype(float),
            rtol=3e-16 if dtype == np.float64 else 0,
        )
        np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


def near(found, wanted):
    """Whether each is what `wanted`, in float64, rounds to."""
    once = np.float64 if found.dtype == np.float32 else oracle.round_to_odd
    low, high = (once(wanted * f).astype(found.dtype) for f in (1 - 2.0**-45, 1 + 2.0**-45))
    return (found == low) | (found == high) | (np.isnan(found) & np.isnan(wanted))


def powers(base, exponent):
    """In float64; with an array of exponents NumPy takes no shortcut for single ones."""
    base, exponent = np.broadcast_arrays(np.float64(base), np.float64(exponent))
    return np.power(base, exponent.copy())


@named("dtype", HALVES, ids=str)
@named("number", [2, 3, -1, 0.5, 1.5, -0.5, 2.5, 0.1, 1 / 3, 11, -2, -1.5])
def test_powers_of_every_half(dtype, number):
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    own = dtype.type(number)
    with np.errstate(all="ignore"):
        assert near(aclnn.pow(x, number), powers(x, np.float32(number))).all()
        assert near(aclnn.pow(number, x), powers(own, x)).all()
        assert near(aclnn.pow(x, np.full_like(x, own)), powers(x, own)).all()


@named("number", [2.0, -3.0, 0.3])
def test_powers_of_float32_of_any_size(number):
    bits = np.random.default_rng(3).integers(0, 2**32, 20000, np.uint64)
    x, y = bits.astype(np.uint32).view(np.float32), numbers(np.dtype(np.float32), 20000)
    single = np.float32(number)
    with np.errstate(all="ignore"):
        assert near(aclnn.pow(x, number), powers(x, single)).all()
        assert near(aclnn.pow(number, y), powers(single, y)).all()
        assert near(aclnn.pow(x, y), powers(x, y)).all()


def test_the_checks_of_powers():
    whole, truth = empty(dtype=T.ACL_INT32), empty(dtype=T.ACL_BOOL)
    minus, half = scalar(-1, T.ACL_INT64), scalar(0.5)
    assert "must not be negative" in refused("aclnnPowTensorScalar", whole, minus, whole)[1]
    for name, pair in (
        ("aclnnPowTensorTensor", (truth, truth)),
        ("aclnnPowTensorScalar", (truth, scalar(1, T.ACL_BOOL))),
        ("aclnnPowScalarTensor", (scalar(1, T.ACL_BOOL), truth)),
    ):
        assert "both BOOL" in refused(name, *pair, truth)[1]
    assert refused("aclnnPowTensorScalar", empty(), None, empty())[0] == NULLPTR
    assert "cannot be cast" in refused("aclnnPowTensorScalar", whole, half, whole)[1]
    complex_one = scalar(1j, T.ACL_COMPLEX64)
    assert refused("aclnnPowTensorScalar", empty(), complex_one, empty())[0] == INVALID
    out = np.zeros(2, np.uint16)
    run("aclnnPowTensorScalar", tensor(np.uint8([2, 3])), scalar(2, T.ACL_INT64), tensor(out))
    np.testing.assert_array_equal(out, [4, 9])


# --- Interpolation --------------------------------------------------------------------------------


@named("dtype", [*FLOATS, *WHOLE], ids=str)
@named("value", [1, -3, 0.3])
def test_sums_with_products_are_rounded_once(dtype, value):
    if dtype.kind in "iu":
        value = int(value) + 2
    x, a, b = (numbers(dtype, 200, seed) for seed in (1, 2, 3))
    found = aclnn.addcmul(x, a, b, value=value)
    factor = (
        value
        if isinstance(value, int)
        else Fraction(value if dtype == np.float64 else nearest_float32(value))
    )
    wanted = [exact(p) + factor * exact(q) * exact(r) for p, q, r in zip(x, a, b, strict=True)]
    if dtype == np.float64:
        np.testing.assert_allclose(found, [float(one) for one in wanted], rtol=3e-16)
        return
    np.testing.assert_array_equal(found, rounded(wanted, dtype))
    run(
        "aclnnInplaceAddcmul",
        tensor(x),
        tensor(a),
        tensor(b),
        scalar(value, T.ACL_INT64 if dtype.kind in "iu" else T.ACL_FLOAT),
    )
    np.testing.assert_array_equal(x, found)


@named("dtype", FLOATS[:3], ids=str)
@named("weight", [0.0, 1.0, 0.3, -2.0, None])
def test_interpolation_is_rounded_once(dtype, weight):
    a, b = numbers(dtype, 200, 1), numbers(dtype, 200, 2)
    a[:50] = b[:50] * dtype.type(1.015625)  # what cancels
    given = numbers(dtype, 200, 3) if weight is None else weight
    found = aclnn.lerp(a, b, given)
    weights = given if weight is None else [np.float32(weight)] * 200
    wanted = [
        exact(x) + exact(w) * (exact(y) - exact(x)) for x, y, w in zip(a, b, weights, strict=True)
    ]
    np.testing.assert_array_equal(found, rounded(wanted, dtype))
    again = a.copy()
    if weight is None:
        run("aclnnInplaceLerp", tensor(again), tensor(b), tensor(given))
    else:
        run("aclnnInplaceLerps", tensor(again), tensor(b), scalar(weight))
    np.testing.assert_array_equal(again, found)


def ties(dtype, seed, count=1500):
    """Numbers of few digits, whose sums and products are often ties or cancel."""
    rng = np.random.default_rng(seed)
    least, most = (-8, 0) if dtype == np.float16 else (-60, 6)
    digits = rng.choice([2, 5, 7], count)
    scale = 2.0 ** rng.integers(least, most, count)
    return (rng.integers(-(2**digits), 2**digits) * scale).astype(dtype)


@named("dtype", FLOATS[:3], ids=str)
@named("number", [1.0, -0.5, 0.1])
def test_ties_and_what_cancels_in_sums_of_three_terms(dtype, number):
    x, a, b = (ties(dtype, seed) for seed in (1, 2, 3))
    with np.errstate(all="ignore"):
        x[::3] = (-(a * b) * dtype.type(1.0078125))[::3]
    value = exact(np.float32(number))
    scaled = [exact(p) + value * exact(q) * exact(r) for p, q, r in zip(x, a, b, strict=True)]
    between = [exact(p) + exact(r) * (exact(q) - exact(p)) for p, q, r in zip(x, a, b, strict=True)]
    along = [exact(p) + value * (exact(q) - exact(p)) for p, q in zip(x, a, strict=True)]
    np.testing.assert_array_equal(aclnn.addcmul(x, a, b, value=number), rounded(scaled, dtype))
    np.testing.assert_array_equal(aclnn.lerp(x, a, b), rounded(between, dtype))
    np.testing.assert_array_equal(aclnn.lerp(x, a, number), rounded(along, dtype))


def test_the_checks_of_interpolation():
    x, half = empty(), empty(dtype=T.ACL_FLOAT16)
    assert "weight has dtype" in refused("aclnnLerp", x, x, half, x)[1]
    assert "end has dtype" in refused("aclnnLerps", x, half, scalar(1.0), x)[1]
    assert "do not broadcast" in refused("aclnnLerps", x, empty((5,)), scalar(1.0), x)[1]
    assert "has shape" in refused("aclnnInplaceAddcmul", empty((1,)), x, x, scalar(1))[1]
    status, message = refused("aclnnAddcmul", x, x, x, None, x)
    assert (status, "value is null" in message) == (NULLPTR, True)


# --- Bounds ---------------------------------------------------------------------------------------


@named("dtype", [*FLOATS, *WHOLE], ids=str)
@named("bounds", [(-1, 2), (None, 2), (-1, None), (3, 1)])
def test_clamp(dtype, bounds):
    x = numbers(dtype)
    low, high = bounds
    if dtype.kind == "u" and low is not None:
        low = abs(low)
    wanted = (
        np.minimum(x if low is None else np.maximum(x, dtype.type(low)), dtype.type(high))
        if high is not None
        else np.maximum(x, dtype.type(low))
    )
    found = aclnn.clamp(x, low, high)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)
    out = np.empty_like(x)
    words = [None if one is None else scalar(one, T.ACL_INT64) for one in (low, high)]
    run("aclnnClamp", tensor(x), *words, tensor(out))
    np.testing.assert_array_equal(out, wanted)
    assert aclnn.clamp_(x, low, high) is x
    np.testing.assert_array_equal(x, wanted)


def test_clamps_of_integers_by_floats_are_floats():
    found = aclnn.clamp(np.int32([1, 5]), 1.5)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [1.5, 5])
    np.testing.assert_array_equal(aclnn.clamp(np.float32([np.nan, 1]), 0, 0.5), [np.nan, 0.5])
    large = np.int64([2**62 + 1])
    np.testing.assert_array_equal(aclnn.clamp(large, 0), large)


def test_clamps_with_and_without_bounds_have_plans_of_their_own():
    x = np.float32([-5, -0.5, 5])
    for low, high in ((-1, 1), (-1, None), (None, -1), (-1, 1), (None, 1)):
        wanted = np.clip(x, low, high)
        np.testing.assert_array_equal(aclnn.clamp(x, low, high), wanted)


def test_the_checks_of_clamp():
    x = empty()
    for given, words in (
        (x, "clipValueMin and clipValueMax are both null"),
        (None, "self is null"),
    ):
        status, message = refused("aclnnClamp", given, None, None, x)
        assert (status, words in message) == (NULLPTR, True)
    truth = empty(dtype=T.ACL_BOOL)
    assert "self has dtype BOOL" in refused("aclnnClamp", truth, scalar(1), None, x)[1]
    assert "FLOAT" in refused("aclnnClamp", x, scalar(1j, T.ACL_COMPLEX64), None, x)[1]
    with pytest.raises(aclnn.AclnnError, match="both null"):
        aclnn.clamp(np.ones(2, np.float32))


# --- Logic ----------------------------------------------------------------------------------------


@named("dtype", REAL, ids=str)
def test_logic(dtype):
    a, b = numbers(dtype, 200, 1), numbers(dtype, 200, 2)
    a[::2], b[::3] = 0, 0
    if dtype.kind == "f" or dtype == BF16:
        a[5], a[7] = np.nan, dtype.type(1e-7)
    for name in ("logical_and", "logical_or", "logical_xor"):
        wanted = getattr(np, name)(a != 0, b != 0)
        found = getattr(aclnn, name)(a, b)
        assert found.dtype == bool
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(
            getattr(aclnn, name)(a, b.astype(np.float32)[:1]),
            getattr(np, name)(a != 0, b[:1] != 0),
        )
    np.testing.assert_array_equal(aclnn.logical_not(a), a == 0)
    given = a.copy()
    run("aclnnInplaceLogicalAnd", tensor(given), tensor(b))
    np.testing.assert_array_equal(given, ((a != 0) & (b != 0)).astype(dtype))
    run("aclnnInplaceLogicalNot", tensor(given))
    np.testing.assert_array_equal(given, (~((a != 0) & (b != 0))).astype(dtype))


def test_large_integers_and_small_floats_are_true():
    """Beside each other neither is lost in what they promote to."""
    large, small = np.int64([2**53 + 1]), np.float16([6e-8])
    assert aclnn.logical_and(large, small).all()
    assert not aclnn.logical_xor(large, small).any()


@named("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_in_place(name):
    a, b = numbers(FLOATS[0], 60, 1).reshape(5, 12).T, numbers(FLOATS[1], 5, 2)
    wanted = getattr(aclnn, name)(a, b).astype(np.float32)
    given = a.copy()
    run(f"aclnnInplace{name.capitalize()}Tensor", tensor(given), tensor(b))
    np.testing.assert_array_equal(given, wanted)
    given = a.copy()
    assert getattr(aclnn, f"{name}_")(given, 0.5) is given
    np.testing.assert_array_equal(given, getattr(aclnn, name)(a, 0.5).astype(np.float32))
    short = tensor(np.ones(1, np.float32))
    assert "has shape" in refused(f"aclnnInplace{name.capitalize()}Tensor", short, tensor(b))[1]


def test_pytorch_agrees():
    """On promotion and on results, where it has the function."""
    torch = pytest.importorskip("torch")
    for a in (np.float32, np.float16, np.int32, np.int64, np.uint8):
        for b in (np.float32, np.float16, np.int32, np.uint8):
            x, y = (np.arange(1, 7).astype(kind) for kind in (a, b))
            pairs = {
                "pow": (aclnn.pow(x, y), torch.pow(torch.tensor(x), torch.tensor(y))),
                "rsub": (aclnn.rsub(x, y), torch.rsub(torch.tensor(x), torch.tensor(y))),
                "floor": (
                    aclnn.div_mod(x, y, "floor"),
                    torch.div(torch.tensor(x), torch.tensor(y), rounding_mode="floor"),
                ),
                "clamp": (aclnn.clamp(x, 2, 3), torch.clamp(torch.tensor(x), 2, 3)),
            }
            for name, (found, wanted) in pairs.items():
                assert found.dtype == wanted.numpy().dtype, (name, a, b)
                np.testing.assert_allclose(found.astype(float), wanted.numpy().astype(float), 1e-3)


def test_bfloat16_needs_a_product_that_has_it():
    before = aclnn.get_soc_version()
    aclnn.set_soc_version("Ascend310P")
    try:
        for name in ("abs", "log", "sin", "clamp"):
            with pytest.raises(aclnn.AclnnError, match="bfloat16"):
                getattr(aclnn, name)(
                    np.ones(2, ml_dtypes.bfloat16), *((0,) if name == "clamp" else ())
                )
    finally:
        aclnn.set_soc_version(before)


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
def test_quotients_are_rounded_by_a_mode(mode):
    """As NumPy's divisions in float64, which are exact here, rounded."""
    a, b = np.float32([7, -7, 7.5, -0.5]), np.float32([2, 2, -2, 0.25])
    rounded = {None: lambda x: x, "trunc": np.trunc, "floor": np.floor}[mode]
    for other in (b, 2.0):
        wanted = rounded(a.astype(float) / other)
        np.testing.assert_array_equal(aclnn.div(a, other, rounding_mode=mode), wanted)
        changed, out = a.copy(), np.empty_like(a)
        assert aclnn.div_(changed, other, rounding_mode=mode) is changed
        assert aclnn.div(a, other, rounding_mode=mode, out=out) is out
        np.testing.assert_array_equal([changed, out], [wanted, wanted])
        found = aclnn.compile(lambda x, y: aclnn.div(x, y, rounding_mode=mode))(a, other)
        np.testing.assert_array_equal(found, wanted)
    whole = np.int32([7, -7])
    if mode is not None:
        assert aclnn.div(whole, np.int32([2, 2]), rounding_mode=mode).tolist() == [
            3,
            -4 + (mode == "trunc"),
        ]


def test_other_rounding_modes_are_refused():
    with pytest.raises(aclnn.AclnnError, match="rounding_mode is 'ceil', must be None or one of"):
        aclnn.div(np.float32([1]), np.float32([2]), rounding_mode="ceil")
    with pytest.raises(TypeError, match="rounding_mode"):
        aclnn.mul(np.float32([1]), np.float32([2]), rounding_mode="floor")
