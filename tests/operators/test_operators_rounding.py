"""Rounding, signs, bounds, remainders and bits of numbers, against exact ones and NumPy's."""

import math
from fractions import Fraction

import numpy as np
import pytest
from calls import BF16, BOOL, FLOATS, WHOLE, empty, numbers, refused, rounded, run, scalar, tensor
from cases import each as named

import aclnn
from aclnn import aclDataType as T

OK, NULLPTR, INVALID, TILING = 0, 161001, 161002, 561002
HALVES = [np.dtype(np.float16), BF16]
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.each_instruction_set,
]

EDGES = [
    *(0, 1, 0.5, 1.5, 2.5, 3.5, 7, 0.1, 2.0**22 + 0.5, 2.0**23, 2.0**23 + 1, 2.0**52, 6e4, 1e38),
    *(2.0**-149, 2.0**-24, math.inf, math.nan),
]


def edges(dtype):
    found = np.array(EDGES).astype(dtype)
    return np.concatenate([found, -found])


def same_numbers(found, wanted):
    """With the signs of zeros, and NaNs for NaNs."""
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(found, wanted)
    zeros = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


# --- Of one number --------------------------------------------------------------------------------

UNARY = {
    "ceil": np.ceil,
    "trunc": np.trunc,
    "frac": lambda x: x - np.trunc(x),
    "round": np.rint,
    "sign": lambda x: np.where(x != x, 0, np.sign(x) + 0.0),
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isposinf": np.isposinf,
    "isneginf": np.isneginf,
}


@named("name", UNARY)
def test_functions_of_all_dtypes_and_in_both_layers(name):
    truth = name.startswith("is")
    for dtype in [*FLOATS, *WHOLE]:
        x = numbers(dtype) if dtype in WHOLE else np.concatenate([edges(dtype), numbers(dtype)])
        found = getattr(aclnn, name)(x)
        assert found.dtype == (np.bool_ if truth else dtype)
        same_numbers(found, np.asarray(UNARY[name](x.astype(np.float64))))
    x = edges(FLOATS[0])
    out = np.empty(x.shape, np.bool_ if truth else np.float32)
    cann = {
        "isposinf": "IsPosInf",
        "isneginf": "IsNegInf",
        "isinf": "IsInf",
        "isfinite": "IsFinite",
    }
    run(f"aclnn{cann.get(name, name.capitalize())}", tensor(x), tensor(out))
    same_numbers(out, getattr(aclnn, name)(x))
    assert getattr(aclnn, name)(x[:0]).shape == (0,)
    np.testing.assert_array_equal(getattr(aclnn, name)(x[::-3]), getattr(aclnn, name)(x)[::-3])


@named("name", ["ceil", "trunc", "frac", "round"])
def test_functions_in_place(name):
    x = edges(FLOATS[0])
    wanted = getattr(aclnn, name)(x)
    given = x.copy()
    assert getattr(aclnn, f"{name}_")(given) is given
    same_numbers(given, wanted)
    given = x.copy()
    run(f"aclnnInplace{name.capitalize()}", tensor(given))
    same_numbers(given, wanted)


@named("dtype", HALVES, ids=str)
@named("name", [name for name in UNARY if not name.startswith("is")])
def test_every_half(name, dtype):
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    wanted = np.asarray(UNARY[name](x.astype(np.float64))).astype(dtype)
    same_numbers(getattr(aclnn, name)(x), wanted)


def test_signs_of_complex_numbers_and_of_truth_values():
    z = np.complex64([3 + 4j, 0, -2, 1e30j])
    np.testing.assert_allclose(aclnn.sign(z), [0.6 + 0.8j, 0, -1, 1j], rtol=1e-7)
    np.testing.assert_array_equal(aclnn.sign(np.array([True, False])), [True, False])
    deep = np.full((1,) * 9 + (2,), -3, np.float32)
    out = np.empty_like(deep)
    run("aclnnSign", tensor(deep), tensor(out))
    assert (out == -1).all()


@named("decimals", [1, 3, -1, -3, 38, 39, -40])
def test_decimals(decimals):
    power = np.float32(math.inf) if abs(decimals) > 38 else np.float32(10.0 ** abs(decimals))
    x = np.concatenate([edges(FLOATS[0]), np.linspace(-9.5, 9.5, 77, dtype=np.float32)])
    first, second = (np.multiply, np.divide) if decimals > 0 else (np.divide, np.multiply)
    wanted = second(np.rint(first(x, power)), power)
    found = aclnn.round(x, decimals=decimals)
    same_numbers(found, wanted)
    out = np.empty_like(x)
    run("aclnnRoundDecimals", tensor(x), decimals, tensor(out))
    same_numbers(out, wanted)
    whole = np.int32([15, -25])
    np.testing.assert_array_equal(aclnn.round(whole, decimals=decimals), whole)
    half = x.astype(np.float16)
    with np.errstate(all="ignore"):
        wide = half.astype(np.float32)
        wanted = second(np.rint(first(wide, power)), power).astype(np.float16)
    same_numbers(aclnn.round(half, decimals=decimals), wanted)


def test_the_checks_of_functions():
    x, whole = empty(), empty(dtype=T.ACL_INT32)
    double = empty(dtype=T.ACL_DOUBLE)
    assert refused("aclnnCeil", None, x)[0] == NULLPTR
    assert refused("aclnnCeil", whole, whole)[0] == INVALID
    assert "must have that of self" in refused("aclnnCeil", double, x)[1]
    assert "self has dtype" in refused("aclnnTrunc", double, double)[1]
    assert "self has dtype" in refused("aclnnTrunc", whole, whole)[1]
    assert "out has shape" in refused("aclnnFrac", x, empty((4,)))[1]
    assert refused("aclnnRound", empty(dtype=T.ACL_INT8), empty(dtype=T.ACL_INT8))[0] == INVALID
    assert "9 dim" in refused("aclnnRound", empty((1,) * 9), empty((1,) * 9))[1]
    assert refused("aclnnSign", empty(dtype=T.ACL_INT8), empty(dtype=T.ACL_INT8))[0] == INVALID
    assert "out has dtype" in refused("aclnnIsFinite", x, x)[1]
    assert refused("aclnnIsPosInf", double, empty(dtype=T.ACL_BOOL))[0] == INVALID
    assert refused("aclnnIsInf", empty((1,) * 9), empty((1,) * 9, T.ACL_BOOL))[0] == TILING


# --- One bound ------------------------------------------------------------------------------------


@named("dtype", [*FLOATS, *WHOLE], ids=str)
def test_bounds(dtype):
    x = numbers(dtype) if dtype in WHOLE else np.concatenate([edges(dtype), numbers(dtype)])
    for name, function, item in (
        ("clamp_min", np.maximum, "aclnnClampMin"),
        ("clamp_max", np.minimum, "aclnnClampMax"),
    ):
        found = getattr(aclnn, name)(x, 2)
        same_numbers(found, function(x, dtype.type(2)))
        out = np.empty_like(x)
        run(item, tensor(x), scalar(2.5, T.ACL_FLOAT), tensor(out))
        bound = dtype.type(
            2 if dtype in WHOLE else 2.5
        )  # truncated, as everything is in out's dtype
        same_numbers(out, function(x, bound))
    given = x.copy()
    run("aclnnInplaceClampMax", tensor(given), scalar(1, T.ACL_INT64))
    same_numbers(given, np.minimum(x, dtype.type(1)))


def test_the_dtype_that_bounds_are_taken_in():
    x, out = np.int32([1, 4]), np.empty(2, np.float32)
    run("aclnnClampMin", tensor(x), scalar(2.5, T.ACL_FLOAT), tensor(out))
    np.testing.assert_array_equal(out, [2.5, 4])
    np.testing.assert_array_equal(aclnn.clamp_min(x, 2.5), [2.5, 4])
    assert (
        "cannot be cast"
        in refused("aclnnClampMin", empty(), scalar(1.0, T.ACL_FLOAT), empty(dtype=T.ACL_INT32))[1]
    )
    assert refused("aclnnClampMax", empty(), None, empty())[0] == NULLPTR


# --- Quotients and remainders ---------------------------------------------------------------------


def exact_floor(x, y):
    return math.floor(Fraction(x) / Fraction(y))


def exact_remainder(x, y):
    return Fraction(x) - exact_floor(x, y) * Fraction(y)


def exact_fmod(x, y):
    return Fraction(x) - math.trunc(Fraction(x) / Fraction(y)) * Fraction(y)


DIVIDED = {"floor_divide": exact_floor, "remainder": exact_remainder, "fmod": exact_fmod}


@named("dtype", [*FLOATS, *WHOLE], ids=str)
@named("name", DIVIDED)
def test_what_division_leaves_is_exact(name, dtype):
    a, b = numbers(dtype, seed=1), numbers(dtype, seed=2)
    b[b == 0] = 1
    with np.errstate(all="ignore"):
        a[:100] = b[:100] * dtype.type(3)  # nearly, or just, three times as much
    if dtype.kind != "i" and dtype != np.uint8:
        a[100:150] = a[100:150] * dtype.type(64)
        a[~np.isfinite(a.astype(float))] = 1
    kind = int if dtype in WHOLE else float
    wanted = [DIVIDED[name](kind(x), kind(y)) for x, y in zip(a, b, strict=True)]
    found = getattr(aclnn, name)(a, b)
    assert found.dtype == dtype
    if name == "floor_divide" and dtype == np.float64:
        few = np.array([abs(one) < 2**53 for one in wanted])
        found, wanted = found[few], [one for one in wanted if abs(one) < 2**53]
    np.testing.assert_array_equal(found, rounded(wanted, dtype))
    value = dtype.type(3)
    with_number = getattr(aclnn, name)(a, 3)
    np.testing.assert_array_equal(with_number, getattr(aclnn, name)(a, np.full_like(a, value)))


def pairs_of_any_quotient(dtype, count=20_000):
    """Numbers of any exponents, and such whose quotient is near an integer that they can hold."""
    rng = np.random.default_rng(3)
    size, most = (4, 60) if dtype == np.float32 else (8, 52)
    bits = rng.integers(0, 2 ** (8 * size), (2, count), f"u{size}", endpoint=False)
    a, b = bits.view(dtype)
    near = np.ldexp(rng.standard_normal(count), rng.integers(-30, 30, count)).astype(dtype)
    whole = np.rint(np.ldexp(rng.uniform(-1, 1, count), rng.integers(1, most, count)))
    with np.errstate(over="ignore"):
        a, b = np.append(a, (whole * near).astype(dtype)), np.append(b, near)
    kept = np.isfinite(a) & np.isfinite(b) & (b != 0)
    return a[kept], b[kept]


@named("dtype", [np.dtype(np.float32), np.dtype(np.float64)], ids=str)
def test_remainders_of_any_quotient_are_exact(dtype):
    a, b = pairs_of_any_quotient(dtype)
    if dtype == np.float32:
        found = aclnn.fmod(np.float32([8.5174236e20]), np.float32([-5.652453e08]))
        np.testing.assert_array_equal(found, np.float32([5.2648115e08]))
    left = [math.fmod(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_array_equal(aclnn.fmod(a, b), np.array(left).astype(dtype))
    signed = [r + Fraction(y) if r and (r < 0) != (y < 0) else r for r, y in zip(
        map(Fraction, left), b.tolist(), strict=True)]  # fmt: skip
    np.testing.assert_array_equal(aclnn.remainder(a, b), rounded(signed, dtype))
    with np.errstate(all="ignore"):
        few = np.abs(a.astype(np.float64) / b) < 2.0**52
    a, b = a[few][-8000:], b[few][-8000:]
    parts = [Fraction(x) / Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    np.testing.assert_array_equal(
        aclnn.floor_divide(a, b), rounded(list(map(math.floor, parts)), dtype)
    )
    if dtype == np.float32:
        for mode, whole in (("trunc", math.trunc), ("floor", math.floor)):
            wanted = rounded(list(map(whole, parts)), dtype)
            np.testing.assert_array_equal(aclnn.div_mod(a, b, mode), wanted)


@named("dtype", FLOATS, ids=str)
def test_quotients_and_remainders_at_the_edges(dtype):
    """What C and PyTorch say of infinities, zeros and NaNs."""
    a, b = (m.ravel() for m in np.meshgrid(edges(dtype), edges(dtype)))
    x, y = a.astype(np.float64), b.astype(np.float64)
    same_numbers(aclnn.fmod(a, b), np.fmod(x, y).astype(dtype))
    left = np.fmod(x, y)
    left = np.where((left != 0) & ((left < 0) != (y < 0)), left + y, left)
    same_numbers(aclnn.remainder(a, b), left.astype(dtype))
    found = aclnn.floor_divide(a, b).astype(np.float64)
    whole = np.where(y == 0, x / y, np.floor_divide(x, y))
    odd = ~np.isfinite(x) | ~np.isfinite(y) | (y == 0)
    same_numbers(found[odd], np.where(np.isinf(x) & (y != 0), np.nan, whole)[odd])
    zeros = (found == 0) & ~odd
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit((x / y)[zeros]))


def test_integers_divided_by_zero():
    x = np.int32([5, -5, 0])
    np.testing.assert_array_equal(aclnn.remainder(x, 0), x)
    np.testing.assert_array_equal(aclnn.fmod(x, np.int32([0, 0, 0])), x)
    np.testing.assert_array_equal(aclnn.floor_divide(x, 0), [0, 0, 0])
    least = np.int64([-(2**63)])
    np.testing.assert_array_equal(aclnn.remainder(least, -1), [0])
    np.testing.assert_array_equal(aclnn.fmod(least, -1), [0])


def test_dtypes_and_checks_of_quotients():
    truth = np.array([True, True])
    assert aclnn.floor_divide(truth, truth).dtype == np.float32
    x = empty()
    whole, small = empty(dtype=T.ACL_INT32), empty(dtype=T.ACL_INT8)
    two = scalar(2, T.ACL_INT64)
    assert "computed in" in refused("aclnnRemainderTensorTensor", small, small, small)[1]
    assert refused("aclnnRemainderTensorTensor", x, x, whole)[0] == INVALID
    assert "out has shape" in refused("aclnnRemainderTensorScalar", x, two, empty((4,)))[1]
    assert refused("aclnnRemainderScalarTensor", None, x, x)[0] == NULLPTR
    assert refused("aclnnFmodTensor", empty(dtype=T.ACL_INT16), x, x)[0] == INVALID
    assert refused("aclnnFloorDivide", empty(dtype=T.ACL_COMPLEX64), x, x)[0] == INVALID
    # The result is cast as it comes, and a number promotes.
    a, out = np.float16([7, -7]), np.empty(2, np.int32)
    run("aclnnFloorDivides", tensor(a), scalar(2.0, T.ACL_FLOAT), tensor(out))
    np.testing.assert_array_equal(out, [3, -4])
    given = np.float32([7, -7])
    run("aclnnInplaceRemainderTensorScalar", tensor(given), scalar(2.0, T.ACL_FLOAT))
    np.testing.assert_array_equal(given, [1, 1])
    out = np.empty(2, np.float32)
    run(
        "aclnnRemainderScalarTensor",
        scalar(7, T.ACL_INT64),
        tensor(np.float32([2, -2])),
        tensor(out),
    )
    np.testing.assert_array_equal(out, [1, -1])
    np.testing.assert_array_equal(aclnn.remainder(7, np.float32([2, -2])), [1, -1])


# --- Bits -----------------------------------------------------------------------------------------


@named("dtype", [*WHOLE, BOOL], ids=str)
@named("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(name, dtype):
    a, b = numbers(dtype, seed=1), numbers(dtype, seed=2)
    wanted = getattr(np, name)(a, b)
    cann = "".join(part.capitalize() for part in name.split("_"))
    np.testing.assert_array_equal(getattr(aclnn, name)(a, b), wanted)
    for item in ("TensorOut", "Tensor") if name == "bitwise_and" else ("Tensor",):
        out = np.empty_like(a)
        run(f"aclnn{cann}{item}", tensor(a), tensor(b), tensor(out))
        np.testing.assert_array_equal(out, wanted)
        given = a.copy()
        run(f"aclnnInplace{cann}{item}", tensor(given), tensor(b))
        np.testing.assert_array_equal(given, wanted)
    assert getattr(aclnn, f"{name}_")(a, b) is a
    np.testing.assert_array_equal(a, wanted)
    if dtype != BOOL:
        found = getattr(aclnn, name)(b, 5)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, getattr(np, name)(b, dtype.type(5)))
        given = b.copy()
        run(f"aclnnInplace{cann}Scalar", tensor(given), scalar(5, T.ACL_INT8))
        np.testing.assert_array_equal(given, getattr(np, name)(b, dtype.type(5)))


def test_bits_that_are_not_set_and_checks():
    for dtype in [*WHOLE, BOOL]:
        x = numbers(dtype)
        np.testing.assert_array_equal(aclnn.bitwise_not(x), np.bitwise_not(x))
    mixed = aclnn.bitwise_or(np.uint8([200]), np.int8([-1]))
    assert (mixed.dtype, mixed[0]) == (np.int16, -1)
    whole = empty(dtype=T.ACL_INT32)
    assert refused("aclnnBitwiseAndTensor", empty(), whole, whole)[0] == INVALID
    assert refused("aclnnBitwiseNot", None, whole)[0] == NULLPTR
    assert refused("aclnnBitwiseNot", whole, empty(dtype=T.ACL_INT64))[0] == INVALID
    assert refused("aclnnBitwiseXorScalar", whole, scalar(1.5, T.ACL_FLOAT), whole)[0] == INVALID
