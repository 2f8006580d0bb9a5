"""Operators on traced arrays: NumPy's dtypes and bits, or refused with the line."""

import operator
import warnings

import ml_dtypes
import numpy as np
import pytest
from cases import each, some

import aclnn

BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [*map(np.dtype, "?bBhHiIqQefdFD"), BF16]
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
WHOLE = [operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor]
BINARY = [*ARITHMETIC, *COMPARISONS, *WHOLE, operator.pow, divmod, operator.lshift, operator.matmul]
NUMBERS = [
    True, False, 0, 1, 2, 3, -1, -2, 7, 100, 300, -129, 2**31, 2**40, -(2**63), 2**70,
    0.0, -0.0, 0.1, 0.5, 2.5, -1.0, 1e-8, 65519.0, 65520.0, 1e39, 1e300,
    float("inf"), float("-inf"), float("nan"), 1j, 2 - 0.1j,
    np.bool_(True), np.int8(-3), np.uint8(200), np.int32(70000), np.int64(2**40), np.uint64(2**63),
    np.float16(0.1), np.float32(0.1), np.float64(0.1), np.complex64(1 + 2j), BF16.type(0.1),
]  # fmt: skip


def values(dtype):
    """Elements with the extremes of a dtype among them."""
    if dtype.kind == "b":
        return np.array([False, True, True, False] * 3)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        some = [0, 1, 2, 3, 5, 7, 100, limits.max, limits.min, limits.max - 1, limits.max // 2, 11]
        return np.array(some, dtype)
    most = float(ml_dtypes.finfo(dtype).max) if dtype.kind != "c" else 1e38
    some = [0.0, -0.0, 1.0, -1.0, 0.1, 3.7, -2.5, 1e-7, most, np.inf, -np.inf, np.nan]
    if dtype.kind == "c":
        imaginary = [*some[2:9], 2, 7, -1, 0.5, 9]
        return (np.array([*some[:9], 3, 4, 5]) + 1j * np.array(imaginary)).astype(dtype)
    with np.errstate(all="ignore"):
        return np.array(some).astype(dtype)


def bits(array):
    """The bits of an array; those of NaNs are one."""
    array = np.array(array)
    parts = array.view(f"f{array.itemsize // 2}") if array.dtype.kind == "c" else array
    if parts.dtype.kind in "fV":
        parts[parts != parts] = np.nan
    return np.ascontiguousarray(parts).view(np.uint8)


def outcome(function, *operands):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*operands), None
        except (TypeError, ValueError, OverflowError) as error:
            return None, error


def check(function, *operands):
    """A compiled function does what it does plainly, or says why not; gives whether it did."""
    arrays = [x for x in operands if isinstance(x, np.ndarray)]
    plain = [np.copy(x) if isinstance(x, np.ndarray) else x for x in operands]
    stays = BF16 in [x.dtype for x in arrays]
    if stays:  # beside numbers, as halves do
        short = function is operator.pow and str(operands[1]) in (
            "-1",
            "0.5",
            "1",
            "2",
            "2.0",
            "True",
        )
        plain = [BF16.type(float(x)) if type(x) in (int, float) and not short else x for x in plain]
    expected, raised = outcome(function, *plain)

    def traced(*arrays):
        left = iter(arrays)
        return function(*[next(left) if isinstance(x, np.ndarray) else x for x in operands])

    found, refused = outcome(aclnn.compile(traced), *arrays)
    if refused is not None:
        assert isinstance(refused, aclnn.AclnnError), repr(refused)
        assert "test_promotion.py" in str(refused), str(refused)
        if isinstance(raised, OverflowError) and "counterpart" not in str(refused):
            assert isinstance(refused, OverflowError)
        return False
    assert raised is None, f"NumPy raises {raised!r}"
    several = isinstance(expected, tuple)
    pairs = zip(found, expected, strict=True) if several else [(found, expected)]
    for one, wanted in pairs:
        wanted = np.asarray(wanted)
        if stays and one.dtype == BF16 and wanted.dtype != BF16:
            np.testing.assert_allclose(one.astype(float), wanted.astype(float), rtol=1e-2)
            continue
        assert (one.dtype, one.shape) == (wanted.dtype, wanted.shape)
        if function in (operator.pow, operator.matmul):  # the operator's own bits
            rtol = 1e-2 if wanted.dtype.itemsize < 4 else 1e-6
            np.testing.assert_allclose(one.astype(complex), wanted.astype(complex), rtol=rtol)
            continue
        if function in (np.maximum, np.minimum):  # which of two zeros is taken is not said
            one, wanted = one + one.dtype.type(0), wanted + wanted.dtype.type(0)
        np.testing.assert_array_equal(bits(one), bits(wanted), err_msg=f"{one} for {wanted}")
    return True


def names(one):
    return one.__name__


def pairs_of(function):
    """Each dtype beside itself, and beside some others."""
    return [
        (a, b)
        for a in DTYPES
        for b in {a: None} | dict.fromkeys(some(DTYPES, 5, f"{function.__name__}{a}"))
    ]


@pytest.mark.parametrize("function", BINARY, ids=names)
@each("first, second", pairs_of)
def test_operators_on_two_arrays_are_numpys(function, first, second):
    x, y = values(first), np.roll(values(second), 3)
    if function is operator.matmul:
        x, y = np.nan_to_num(x[:8], posinf=2).reshape(2, 4), y[3:11].reshape(4, 2)
    check(function, x, y)


def beside_numbers(function):
    cases = [(dtype, n, back) for dtype in DTYPES for n in NUMBERS for back in (False, True)]
    return some(cases, len(cases) // 12, function.__name__)


UFUNCS = [
    np.add, np.true_divide, np.maximum, np.minimum, np.logical_and, np.logical_or, np.logical_xor,
    np.heaviside, np.greater, np.bitwise_xor, np.fmod, np.remainder,
]  # fmt: skip


def some_pairs(function):
    others = [*DTYPES, 2, 0.1, np.float64(0.1), True]
    pairs = [(a, b) for a in DTYPES for b in others]
    return some(pairs, len(pairs) // 3, function.__name__)


@pytest.mark.parametrize("function", UFUNCS, ids=names)
@each("first, second", some_pairs)
def test_ufuncs_are_numpys(function, first, second):
    other = np.roll(values(second), 3) if isinstance(second, np.dtype) else second
    check(function, values(first), other)
    check(function, other, values(first)) if not isinstance(second, np.dtype) else None


@each("first, second, out", [(a, b, c) for a in "ehfd" for b in "ehfd" for c in "ehfdi"])
def test_results_are_written_where_numpy_casts_them(first, second, out):
    def run(x, y, z):
        np.multiply(x, y, out=z[1:])
        return z * 1

    x, y = values(np.dtype(first))[:5], values(np.dtype(second))[:5]
    check(run, x, y, np.ones(6, out))


@pytest.mark.parametrize("function", BINARY[:-1], ids=names)
@each("dtype, number, back", beside_numbers)
def test_operators_beside_numbers_are_numpys(function, dtype, number, back):
    pair = (values(dtype), number)
    check(function, *(pair[::-1] if back else pair))


UNARY = [
    operator.neg, operator.pos, operator.abs, operator.invert, np.absolute, np.fabs, np.floor, np.square,
    np.sqrt, np.reciprocal, np.isnan, np.logical_not, np.positive, np.negative, np.ceil,
]  # fmt: skip


@pytest.mark.parametrize("function", UNARY, ids=names)
@each("dtype", DTYPES)
def test_operators_on_one_array_are_numpys(function, dtype):
    check(function, values(dtype))


def in_place(function):
    return getattr(operator, f"i{function.__name__.strip('_')}")


def pairs_in_place(function):
    others = [*DTYPES, 2, 300, 0.1, -1]
    return [(a, b) for a in DTYPES for b in some(others, 6, f"{function.__name__}{a}")]


@pytest.mark.parametrize("function", [*ARITHMETIC, *WHOLE], ids=names)
@each("first, second", pairs_in_place)
def test_operators_in_place_are_numpys(function, first, second):
    other = np.roll(values(second), 3) if isinstance(second, np.dtype) else second

    def run(x, y):
        x = x.copy()
        return in_place(function)(x, y)

    check(run, values(first), other)


def test_what_is_computed_is_not_refused():
    """Where operators exist, results do: of halves, floats, integers and truth values."""
    common = [*map(np.dtype, "?bBhiqefd"), BF16]
    for dtype in common:
        x = values(dtype)
        assert check(operator.add, x, x)
        assert check(operator.add, x, 1)
        assert check(operator.mul, 2.5, x)
        assert check(operator.lt, x, 0.5)
        if dtype.kind in "iu":
            assert check(operator.floordiv, x, 3)
            assert check(divmod, x, np.roll(x, 1))
        elif dtype.kind == "b":
            assert check(operator.and_, x, np.roll(x, 1))
            assert check(operator.invert, x)
        else:
            assert check(operator.truediv, x, 3)
            assert check(operator.sub, 3, x)
    for first, second in [("e", "i"), ("f", "q"), ("e", "f"), ("f", "d"), ("b", "B"), ("f", "F")]:
        assert check(operator.add, values(np.dtype(first)), values(np.dtype(second)))


BEYOND = {
    "int8": (lambda x: x + 300, OverflowError, "300 out of bounds for int8"),
    "uint8": (lambda x: -1 * x, OverflowError, "-1 out of bounds for uint8"),
    "int32": (lambda x: x / 2, TypeError, r"\.astype\(np.float64\)"),
    "int64": (lambda x: x / x, TypeError, r"\.astype\(np.float64\)"),
    "bool": (lambda x: x - x, TypeError, "boolean subtract"),
    "int16": (lambda x: x**-1, ValueError, "negative integer powers"),
    "float16": (lambda x: x * "2", TypeError, "np.asarray"),
    "float32": (lambda x: x & x, TypeError, "bitwise_and"),
    "float64": (lambda x: x % 2, TypeError, r"aclnn.call\(np.remainder"),
    "complex64": (lambda x: x * 1j, TypeError, "aclnn.mul"),
}


@each("dtype", list(BEYOND))
def test_what_numpy_refuses_or_no_operator_does_names_the_line(dtype):
    function, kind, words = BEYOND[dtype]
    with pytest.raises(kind, match=words) as caught:
        aclnn.compile(function)(np.ones(3, dtype))
    assert isinstance(caught.value, aclnn.AclnnError)
    assert f"test_promotion.py:{function.__code__.co_firstlineno}" in str(caught.value)


@each("dtype", ["int8", "uint8", "int32", "bool"])
def test_comparisons_with_numbers_beyond_a_dtype_are_known(dtype):
    for function in COMPARISONS:
        for number in (2**70, -(2**70), 300, -300):
            if dtype != "bool":
                assert check(function, values(np.dtype(dtype)), number)
                assert check(function, number, values(np.dtype(dtype)))
