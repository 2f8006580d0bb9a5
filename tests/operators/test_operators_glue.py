"""Sums, products, comparisons, choices and moves of elements, against exact numbers and PyTorch."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from calls import (
    BF16,
    BOOL,
    COMPLEX,
    FLOATS,
    INVALID,
    NEAREST,
    NULLPTR,
    OK,
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
from cases import each
from cases import each as named

import aclnn
from aclnn import aclDataType as T
from aclnn.acl import dtypes
from aclnn.acl.rounding import nearest_float32


@pytest.fixture
def on_950():
    before = aclnn.get_soc_version()
    aclnn.set_soc_version("Ascend950")
    yield
    aclnn.set_soc_version(before)


# --- Arithmetic -----------------------------------------------------------------------------------

EXACT = {
    "add": lambda a, b, alpha: a + alpha * b,
    "sub": lambda a, b, alpha: a - alpha * b,
    "mul": lambda a, b, _: a * b,
    "div": lambda a, b, _: a / b if isinstance(a, Fraction) else quotient(a, b),
}


def quotient(a, b):
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@named("dtype", [*FLOATS, *WHOLE], ids=str)
@named("alpha", [1, 3, -0.7])
@named("name", EXACT)
def test_arithmetic_is_rounded_once(name, alpha, dtype):
    if dtype.kind in "iu" and not isinstance(alpha, int):
        alpha = 2**40 + 1
    a, b = numbers(dtype, seed=1), numbers(dtype, seed=2)
    options = {"alpha": alpha} if name in ("add", "sub") else {}
    factor = alpha
    if isinstance(alpha, float) and dtype != np.float64:
        factor = nearest_float32(alpha)
    factor = Fraction(factor) if isinstance(alpha, float) else alpha
    actual = getattr(aclnn, name)(a, b, **options)
    assert actual.dtype == dtype
    wanted = [EXACT[name](exact(x), exact(y), factor) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(actual, rounded(wanted, dtype))


@named("dtype", [*FLOATS, *WHOLE], ids=str)
@named("name", EXACT)
def test_arithmetic_with_a_number_is_rounded_once(name, dtype):
    number = 7 if dtype.kind in "iu" else 0.7
    a = numbers(dtype, seed=3)
    options = {"alpha": 3} if name in ("add", "sub") else {}
    actual = getattr(aclnn, name)(a, number, **options)
    assert actual.dtype == dtype
    other = number if dtype.kind in "iu" else exact(np.float64(number))
    if dtype.kind not in "iu" and dtype != np.float64:
        other = Fraction(nearest_float32(number))
    wanted = [EXACT[name](exact(x), other, 3) for x in a]
    np.testing.assert_array_equal(actual, rounded(wanted, dtype))


def test_executors_with_a_number():
    x = np.float32([1, 2])
    executor = aclnn.executor("add", x, 2.5, alpha=2)
    np.testing.assert_array_equal(executor.run(), [6, 7])
    np.testing.assert_array_equal(aclnn.executor("eq", x, 2).run(), [False, True])


@named("name", ["add", "sub", "mul", "div"])
def test_infinities_and_nans(name):
    ends = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0], np.float32)
    a, b = ends[:, None], ends[None, :]
    with np.errstate(all="ignore"):
        wanted = {"add": a + b, "sub": a - b, "mul": a * b, "div": a / b}[name]
    actual = getattr(aclnn, name)(a, b)
    np.testing.assert_array_equal(actual, wanted)
    np.testing.assert_array_equal(np.signbit(actual)[wanted == 0], np.signbit(wanted)[wanted == 0])


@named("name", ["add", "sub", "mul", "div"])
@named("dtype", COMPLEX, ids=str)
def test_complex_arithmetic(name, dtype):
    a, b = numbers(dtype, seed=1), numbers(dtype, seed=2)
    wanted = {"add": a + 2 * b, "sub": a - 2 * b, "mul": a * b, "div": a / b}[name]
    options = {"alpha": 2} if name in ("add", "sub") else {}
    tolerance = 1e-6 if dtype == np.complex64 else 1e-14
    np.testing.assert_allclose(getattr(aclnn, name)(a, b, **options), wanted, rtol=tolerance)
    wanted = {"add": a + 6, "sub": a - 6, "mul": a * 3, "div": a / 3}[name]
    np.testing.assert_allclose(getattr(aclnn, name)(a, 3, **options), wanted, rtol=tolerance)


@named("name", ["add", "sub", "mul", "div"])
@named("dtype", [*COMPLEX, *FLOATS, np.dtype(np.int32), BOOL], ids=str)
def test_complex_numbers(name, dtype):
    """With any tensor: the result is complex, of as many digits as both need."""
    x, number, factor = numbers(dtype, seed=1), 0.75 - 2j, 1 + 0.5j
    wide = x.astype(np.complex128)
    wanted = {
        "add": wide + factor * number, "sub": wide - factor * number,
        "mul": wide * number, "div": wide / number,
    }[name]  # fmt: skip
    result = np.complex128 if dtype in (np.float64, np.complex128) else np.complex64
    tolerance = 1e-5 if result == np.complex64 else 1e-13
    alpha = (scalar(factor, T.ACL_COMPLEX64),) if name in ("add", "sub") else ()
    out = np.zeros(x.shape, result)
    function = f"aclnn{name.capitalize()}s"
    given = scalar(number, T.ACL_COMPLEX64)
    run(function, tensor(x), given, *alpha, tensor(out))
    np.testing.assert_allclose(out, wanted, rtol=tolerance)
    if dtype == result:
        again = x.copy()
        run(f"aclnnInplace{name.capitalize()}s", tensor(again), given, *alpha)
        np.testing.assert_array_equal(again, out)
    else:
        status, message = refused(f"aclnnInplace{name.capitalize()}s", tensor(x), given, *alpha)
        assert status == INVALID
        assert "cannot be cast" in message
    found = getattr(aclnn, name)(x, number)
    plain = {"add": wide + number, "sub": wide - number}.get(name, wanted)
    assert found.dtype == result
    np.testing.assert_allclose(found, plain, rtol=tolerance)
    np.testing.assert_array_equal(aclnn.executor(name, x, number).run(), found)


def test_where_complex_numbers_do_not_fit():
    x, half = tensor(np.ones(2, np.float32)), scalar(1 + 2j, T.ACL_COMPLEX64)
    status, message = refused("aclnnAdds", x, scalar(1.0), half, x)
    assert status == INVALID
    assert "alpha has dtype COMPLEX64, which cannot be cast" in message
    for name in ("Lt", "Ge"):
        status, message = refused(f"aclnn{name}Scalar", x, half, x)
        assert status == INVALID
        assert "cannot be converted to FLOAT" in message
    with pytest.raises(aclnn.AclnnError, match="must be a real number"):
        aclnn.leaky_relu(np.ones(2, np.float32), 1j)


def test_complex_numbers_are_compared():
    x, out = np.complex64([1 + 2j, 1, 2j, 1 + 2j]), np.zeros(4, bool)
    for name, wanted in (("Eq", x == 1 + 2j), ("Ne", x != 1 + 2j)):
        run(f"aclnn{name}Scalar", tensor(x), scalar(1 + 2j, T.ACL_COMPLEX64), tensor(out))
        np.testing.assert_array_equal(out, wanted)
        np.testing.assert_array_equal(getattr(aclnn, name.lower())(x, 1 + 2j), wanted)


def test_complex_and_real_numbers_have_plans_of_their_own():
    x = np.complex64([1, 2])
    for number in (1.0, 1j, 2.0, 2 + 1j, -1j):
        out = np.zeros(2, np.complex64)
        kind = T.ACL_COMPLEX64 if isinstance(number, complex) else T.ACL_FLOAT
        run("aclnnMuls", tensor(x), scalar(number, kind), tensor(out))
        np.testing.assert_array_equal(out, x * number)


def test_truth_values():
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    for alpha in (1, -1, 2):
        np.testing.assert_array_equal(aclnn.add(a, b, alpha=alpha), a | b)
        np.testing.assert_array_equal(aclnn.sub(a, b, alpha=alpha), a ^ b)
    np.testing.assert_array_equal(aclnn.add(a, b, alpha=0), a)
    np.testing.assert_array_equal(aclnn.mul(a, b), a & b)
    np.testing.assert_array_equal(aclnn.add(a, True), np.ones(4, bool))
    assert aclnn.add(a, 2).dtype == np.int64
    with pytest.raises(aclnn.AclnnError, match="alpha has dtype float32"):
        aclnn.add(a, b, alpha=0.5)


@named(("a", "b"), [*itertools.combinations_with_replacement([*REAL, *COMPLEX], 2)])
def test_tensors_promote_as_pytorchs_do(a, b):
    torch = pytest.importorskip("torch")
    wanted = torch.result_type(
        *(torch.empty(2, dtype=getattr(torch, kind.name)) for kind in (a, b))
    )
    for name in ("add", "mul", "where"):
        operands = [np.ones(2, a), np.ones(2, b)]
        if name == "where":
            operands.insert(0, np.ones(2, bool))
        assert getattr(aclnn, name)(*operands).dtype.name == str(wanted).removeprefix("torch.")


@named(
    ("tensor_dtype", "number", "result"),
    [
        (np.float16, scalar(1.0, T.ACL_DOUBLE), np.float16),
        (BF16, scalar(1.0, T.ACL_FLOAT), BF16),
        (np.float32, scalar(1, T.ACL_INT64), np.float32),
        (np.int8, scalar(1, T.ACL_INT64), np.int8),
        (np.uint8, scalar(1, T.ACL_INT8), np.uint8),
        (np.int32, scalar(1, T.ACL_BOOL), np.int32),
        (np.int32, scalar(1.0, T.ACL_FLOAT16), np.float16),
        (np.int32, scalar(1.0, T.ACL_FLOAT), np.float32),
        (np.int64, scalar(1.0, T.ACL_DOUBLE), np.float64),
        (bool, scalar(1, T.ACL_INT8), np.int8),
        (bool, scalar(1.0, T.ACL_FLOAT), np.float32),
        (np.complex64, scalar(1.0, T.ACL_DOUBLE), np.complex128),
    ],
)
def test_a_tensor_and_a_number_promote(tensor_dtype, number, result):
    """An output that the result's dtype casts to is taken, the next narrower one is not."""
    narrower = {"float64": T.ACL_INT64, "float32": T.ACL_INT64, "float16": T.ACL_INT64}
    narrower |= {"complex128": T.ACL_DOUBLE, "bfloat16": T.ACL_INT64}
    x = np.ones(2, tensor_dtype)
    out = np.zeros(2, result)
    run("aclnnMuls", tensor(x), number, tensor(out))
    np.testing.assert_array_equal(out, np.ones(2, result))
    if np.dtype(result).name in narrower:
        bad = empty((2,), narrower[np.dtype(result).name])
        status, message = refused("aclnnMuls", tensor(x), number, bad)
        assert status == INVALID
        assert "cannot be cast" in message


def test_a_double_beside_integers_is_single_where_the_output_is():
    x, out = np.array([16777217], np.int64), np.zeros(1, np.float32)
    run("aclnnAdds", tensor(x), scalar(1.0, T.ACL_DOUBLE), scalar(1, T.ACL_INT64), tensor(out))
    assert out[0] == 16777216 + 1  # of float32 operands; float64 would give 16777218
    wide = np.zeros(1, np.float64)
    run("aclnnAdds", tensor(x), scalar(1.0, T.ACL_DOUBLE), scalar(1, T.ACL_INT64), tensor(wide))
    assert wide[0] == 16777218


def test_integers_are_divided_by_product(on_950):
    x, y = np.int32([7, -7, 7]), np.int32([2, 2, 0])
    np.testing.assert_array_equal(aclnn.div(x, y), np.float32([3.5, -3.5, np.inf]))
    np.testing.assert_array_equal(aclnn.div(x, 2), np.float32([3.5, -3.5, 3.5]))
    aclnn.set_soc_version("Ascend910B")
    np.testing.assert_array_equal(aclnn.div(x, y), np.int32([3, -3, 0]))
    np.testing.assert_array_equal(aclnn.div(x, 2), np.int32([3, -3, 3]))
    with pytest.raises(aclnn.AclnnError):
        aclnn.div(x, 2.0, out=np.zeros(3, np.int32))


@named("name", ["add", "sub", "mul", "div"])
def test_arithmetic_in_place(name):
    x, y = numbers(FLOATS[0], 6).reshape(2, 3), numbers(FLOATS[1], 3)
    wanted = getattr(aclnn, name)(x, y)
    given = x.copy()
    assert getattr(aclnn, f"{name}_")(given, y) is given
    np.testing.assert_array_equal(given, wanted)
    given = x.copy()
    cann = name.capitalize()
    factor = [scalar(1)] if name in ("add", "sub") else []
    run(f"aclnnInplace{cann}", tensor(given), tensor(y), *factor)
    np.testing.assert_array_equal(given, wanted)
    assert getattr(aclnn, f"{name}_")(given, 3) is given
    np.testing.assert_array_equal(given, getattr(aclnn, name)(wanted, 3))
    given = wanted.copy()
    run(f"aclnnInplace{cann}s", tensor(given), scalar(3.0), *factor)
    np.testing.assert_array_equal(given, getattr(aclnn, name)(wanted, 3))


@named("name", ["add", "sub", "mul", "div", "maximum", "minimum", "where"])
def test_overlap_strides_and_broadcasting(name):
    """The result is that of copies, wherever the output lies."""
    store = numbers(FLOATS[0], 64)
    x, y = store[0:40:4].reshape(2, 5), store[3:8]
    first = [np.array([[True], [False]])] if name == "where" else []
    function = getattr(aclnn, name)
    wanted = function(*first, x.copy(), y.copy())
    for out in (store[1:11].reshape(2, 5), store[30:20:-1].reshape(2, 5)):
        before = store.copy()
        assert function(*first, x, y, out=out) is out
        np.testing.assert_array_equal(out, wanted)
        store[:] = before
    wide = np.zeros((5, 2), np.float64).T
    function(*first, x, y, out=wide)
    np.testing.assert_array_equal(wide, wanted.astype(np.float64))
    assert function(*[one[:0] for one in first], x[:0], y).shape == (0, 5)


@named(
    ("arguments", "status", "words"),
    [
        ((None, empty(), scalar(1), empty()), NULLPTR, "self is null"),
        ((empty(), empty(), None, empty()), NULLPTR, "alpha is null"),
        (
            (empty(dtype=T.ACL_UINT16), empty(dtype=T.ACL_UINT32), scalar(1), empty()),
            INVALID,
            "self",
        ),
        (
            (empty(), empty(dtype=T.ACL_UINT32), scalar(1j, T.ACL_COMPLEX64), empty()),
            INVALID,
            "other",
        ),
        (
            (empty(), empty(), scalar(1j, T.ACL_COMPLEX64), empty(dtype=T.ACL_INT8)),
            INVALID,
            "alpha",
        ),
        (
            (
                empty(dtype=T.ACL_INT8),
                empty(dtype=T.ACL_INT8),
                scalar(1.0),
                empty(dtype=T.ACL_BOOL),
            ),
            INVALID,
            "alpha has dtype FLOAT",
        ),
        ((empty((4,)), empty((3,)), scalar(1), empty(dtype=T.ACL_INT8)), INVALID, "out has dtype"),
        ((empty((1,) * 9), empty((3,)), scalar(1), empty((4,))), INVALID, "9 dimensions"),
        ((empty((2,)), empty((3,)), scalar(1), empty((4,))), INVALID, "do not broadcast"),
        ((empty((1,)), empty((3,)), scalar(1), empty((4,))), INVALID, "out has shape"),
    ],
)
def test_the_checks_of_add_in_order(arguments, status, words):
    """Each of these calls breaks what is checked later, too."""
    found, message = refused("aclnnAdd", *arguments)
    assert found == status
    assert words in message


def test_what_is_checked_in_another_order():
    ints = empty((4,), T.ACL_UINT16)
    assert "broadcast" in refused("aclnnInplaceAdd", ints, empty((3,)), scalar(1))[1]
    assert (
        "must have the broadcast shape" in refused("aclnnInplaceMul", empty((1,)), empty((3,)))[1]
    )
    assert "do not broadcast" in refused("aclnnDiv", ints, empty((3,)), empty((3,)))[1]
    assert "out has dtype UINT16" in refused("aclnnMul", empty((4,)), empty((3,)), ints)[1]
    assert "out has shape" in refused("aclnnDivs", ints, scalar(2.0), empty((3,)))[1]
    assert "self has dtype" in refused("aclnnMuls", ints, scalar(2.0), empty((3,)))[1]


# --- Functions of one number ------------------------------------------------------------------------

mpmath.mp.dps = 60
UNARY = {
    "neg": lambda x: -x,
    "exp": mpmath.exp,
    "sqrt": lambda x: mpmath.sqrt(x) if x >= 0 else mpmath.nan,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "tanh": mpmath.tanh,
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "relu": lambda x: max(x, 0),
}


def nearest(value, dtype):
    """An mpmath number, rounded once."""
    if mpmath.isnan(value):
        return math.nan
    if value == 0:
        return 0.0
    sign, mantissa, exponent, _ = value._mpf_
    number = Fraction(int(mantissa)) * Fraction(2) ** exponent * (-1 if sign else 1)
    return NEAREST[dtype.name](number)


@named("dtype", FLOATS[:3], ids=str)
@named("name", UNARY)
def test_functions_of_one_number(name, dtype):
    """Halves, and what IEEE asks of single ones, are correctly rounded; others within 1 ULP."""
    x = numbers(dtype, 200, seed=5)
    actual = getattr(aclnn, name)(x)
    assert actual.dtype == dtype
    with np.errstate(over="ignore"):
        wanted = np.array([nearest(UNARY[name](mpmath.mpf(float(v))), dtype) for v in x]).astype(
            dtype
        )
    if dtype != np.float32 or name in ("neg", "sqrt", "relu"):
        np.testing.assert_array_equal(actual.astype(float), wanted.astype(float))
    else:
        np.testing.assert_array_max_ulp(actual, wanted, 1)


@named("name", ["exp", "sqrt", "sigmoid"])
def test_float64(name):
    x = np.abs(numbers(FLOATS[3], 200, seed=6))
    wanted = np.array([float(UNARY[name](mpmath.mpf(v))) for v in x])
    np.testing.assert_array_max_ulp(getattr(aclnn, name)(x), wanted, 2)


@named("name", UNARY)
def test_infinities_and_nans_of_functions(name):
    torch = pytest.importorskip("torch")
    x = np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0])
    function = getattr(torch, name) if hasattr(torch, name) else getattr(torch.nn.functional, name)
    np.testing.assert_array_equal(getattr(aclnn, name)(x), function(torch.tensor(x)).numpy())


@named(
    ("name", "dtype", "result"),
    [
        ("exp", np.int64, np.float32),
        ("exp", bool, np.float32),
        ("sqrt", np.uint8, np.float32),
        ("sqrt", np.int16, np.float32),
        ("sigmoid", np.int32, np.float32),
        ("tanh", bool, np.float32),
        ("tanh", np.int64, np.float32),
        ("neg", np.int8, np.int8),
        ("relu", np.int64, np.int64),
        ("relu", np.uint8, np.uint8),
        ("exp", np.complex64, np.complex64),
        ("neg", np.complex128, np.complex128),
    ],
)
def test_dtypes_of_functions(name, dtype, result):
    x = np.array([0, 1, 4]).astype(dtype)
    actual = getattr(aclnn, name)(x)
    assert actual.dtype == result
    wanted = {"neg": lambda v: 0 - v, "relu": lambda v: v}.get(name, getattr(np, name, None))
    wanted = wanted or (lambda v: 1 / (1 + np.exp(-v)))
    kind = x if np.dtype(dtype).kind == "c" else x.astype(np.float64)
    tolerance = 1e-6
    np.testing.assert_allclose(actual.astype(kind.dtype), wanted(kind), rtol=tolerance)


@named(
    ("name", "dtype"),
    [
        ("neg", np.bool_),
        ("neg", np.uint8),
        ("neg", np.int16),
        ("exp", np.int32),
        ("sqrt", np.complex64),
        ("sigmoid", np.complex64),
        ("tanh", np.float64),
        ("silu", np.float64),
        ("relu", np.int16),
        ("relu", np.float64),
        ("exp_", np.int64),
        ("sqrt_", np.int32),
        ("sigmoid_", np.int32),
        ("tanh_", np.int32),
    ],
)
def test_dtypes_that_functions_refuse(name, dtype):
    with pytest.raises(aclnn.AclnnError, match="input has dtype") as caught:
        getattr(aclnn, name)(np.ones(2, dtype))
    assert caught.value.status == INVALID


@named("name", ["neg", "exp", "sqrt", "sigmoid", "tanh", "relu"])
def test_functions_in_place(name):
    x = np.abs(numbers(FLOATS[0], 12)).reshape(3, 4)[:, ::2]
    wanted = getattr(aclnn, name)(x)
    given = x.copy()
    assert getattr(aclnn, f"{name}_")(given) is given
    np.testing.assert_array_equal(given, wanted)
    run(f"aclnnInplace{name.capitalize()}", tensor(x))
    np.testing.assert_array_equal(x, wanted)


def test_what_outputs_of_functions_may_be():
    x = np.float64([0.3, 700.0])
    out = np.zeros(2, np.float16)
    np.testing.assert_array_equal(aclnn.sigmoid(x, out=out), aclnn.sigmoid(x).astype(np.float16))
    whole = np.int32([3, -3])
    wide = aclnn.sigmoid(whole, out=np.zeros(2))
    np.testing.assert_array_max_ulp(wide, 1 / (1 + np.exp(-whole.astype(float))), 2)
    with pytest.raises(aclnn.AclnnError, match="out has dtype int32"):
        aclnn.sigmoid(x, out=whole)
    with pytest.raises(aclnn.AclnnError, match="cannot be cast"):
        aclnn.tanh(np.float32([1]), out=np.zeros(1, np.int8))
    with pytest.raises(aclnn.AclnnError, match="must have that of input"):
        aclnn.relu(np.float32([1]), out=np.zeros(1, np.float16))


def test_tanh_compares_formats():
    nhwc = empty((1, 1, 2, 3), format=aclnn.ACL_FORMAT_NHWC)
    nchw = empty((1, 1, 2, 3), format=aclnn.ACL_FORMAT_NCHW)
    private = empty((1, 1, 2, 3), format=aclnn.ACL_FORMAT_NC1HWC0)
    assert "format" in refused("aclnnTanh", nhwc, nchw)[1]
    assert "private" in refused("aclnnTanh", private, private)[1]
    assert aclnn.aclnnTanhGetWorkspaceSize(nhwc, nhwc)[2] == OK


# --- Comparisons, choices ---------------------------------------------------------------------------

COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@named("dtype", [*REAL, *COMPLEX], ids=str)
@named("name", COMPARE)
def test_comparisons(name, dtype):
    a, b = numbers(dtype, seed=1), numbers(dtype, seed=2)
    b[::3] = a[::3]
    if dtype.kind == "c" and name not in ("eq", "ne"):
        with pytest.raises(aclnn.AclnnError, match="input has dtype"):
            getattr(aclnn, name)(a, b)
        return
    if dtype.kind in "fc":
        a[5] = b[6] = a[7] = b[7] = np.nan
    actual = getattr(aclnn, name)(a, b)
    assert actual.dtype == bool
    np.testing.assert_array_equal(actual, COMPARE[name](a, b))
    number = a[0].item() if dtype.kind != "c" else 0.5
    if dtype == BF16:
        number = float(a[0])
    np.testing.assert_array_equal(
        getattr(aclnn, name)(a, number), COMPARE[name](a, dtype.type(number))
    )
    wide = getattr(aclnn, name)(a, b, out=np.zeros(a.shape, np.float16))
    np.testing.assert_array_equal(wide, COMPARE[name](a, b).astype(np.float16))


def test_numbers_are_compared_in_the_dtype_of_the_tensor():
    x = np.float16([0.1, 0.25])
    np.testing.assert_array_equal(aclnn.eq(x, 0.1), [True, False])
    np.testing.assert_array_equal(aclnn.gt(np.int8([1, 2, 3]), 2.5), [False, False, True])
    np.testing.assert_array_equal(aclnn.eq(np.int64([2**53 + 1, 2**53]), 2**53 + 1), [True, False])
    big = np.int64([2**62 + 1])
    np.testing.assert_array_equal(aclnn.lt(np.int64([2**62]), big), [True])


@named("name", COMPARE)
def test_comparisons_through_both_phases(name):
    x, out = np.float32([[1, 2, 3]]), np.zeros((2, 3), bool)
    run(f"aclnn{name.capitalize()}Tensor", tensor(x), tensor(np.float32([[2], [3]])), tensor(out))
    np.testing.assert_array_equal(out, COMPARE[name](x, np.float32([[2], [3]])))
    out = np.zeros((1, 3), np.int8)
    run(f"aclnn{name.capitalize()}Scalar", tensor(x), scalar(2.0), tensor(out))
    np.testing.assert_array_equal(out, COMPARE[name](x, 2))


@named("dtype", REAL, ids=str)
@named("name", ["maximum", "minimum"])
def test_extrema(name, dtype):
    a, b = numbers(dtype, seed=1), numbers(dtype, seed=2)
    if dtype.kind == "f":
        a[5] = b[6] = np.nan
    np.testing.assert_array_equal(getattr(aclnn, name)(a, b), getattr(np, name)(a, b))


@named("dtype", [*REAL, *COMPLEX], ids=str)
@named("condition", [bool, np.uint8])
def test_where_keeps_bits(condition, dtype):
    rng = np.random.default_rng(4)
    raw = rng.integers(0, 2 if dtype == BOOL else 256, (2, 40 * dtype.itemsize), np.uint8)
    a, b = raw.view(dtype)
    chosen = rng.integers(0, 3, a.shape).astype(condition)
    actual = aclnn.where(chosen, a, b)
    assert actual.tobytes() == np.where(chosen != 0, a, b).tobytes()


def test_where_promotes_and_refuses():
    c = np.array([[True], [False]])
    actual = aclnn.where(c, np.int64([2**53 + 1]), np.float64([0.5, 1.5]))
    np.testing.assert_array_equal(actual, [[2.0**53, 2.0**53], [0.5, 1.5]])
    with pytest.raises(aclnn.AclnnError, match="condition has dtype float32"):
        aclnn.where(np.float32([1]), c, c)
    with pytest.raises(aclnn.AclnnError, match="do not broadcast"):
        aclnn.where(np.ones(4, bool), np.ones((2, 3)), np.ones(3))


WHERE = [
    (1, 2), (1.5, 2), (True, 2), (True, False), (1j, 2), (1.5, 2j), ("float16", 3), ("int8", 3), ("int8", 3.5),
    (3.5, "int32"), ("float64", 1j), ("bool", 3), ("bfloat16", 0.1), (2, "complex64"),
]  # fmt: skip


@named(("first", "second"), WHERE)
def test_where_takes_numbers(first, second):
    """The dtype of the result is PyTorch's."""
    torch = pytest.importorskip("torch")
    condition = torch.tensor([True, False])
    given, wanted = (
        [make(one) if isinstance(one, str) else one for one in (first, second)]
        for make in (
            lambda name: np.array([1, 0]).astype(dtypes.NUMPY[dtypes.of_name(name)]),
            lambda name: torch.tensor([1, 0], dtype=getattr(torch, name)),
        )
    )
    expected = torch.where(condition, *wanted)
    found = aclnn.where(condition.numpy(), *given)
    assert found.dtype.name == str(expected.dtype).removeprefix("torch.")
    np.testing.assert_array_equal(found.astype(complex), expected.to(torch.complex128).numpy())
    again = aclnn.where(condition, *wanted)
    assert isinstance(again, torch.Tensor)
    assert torch.equal(again, expected)
    out = np.empty_like(found)
    assert aclnn.where(condition.numpy(), *given, out=out) is out
    assert out.tobytes() == found.tobytes()
    assert aclnn.executor("where", condition.numpy(), *given).run().tobytes() == found.tobytes()


def test_numbers_that_no_dtype_holds_and_junk():
    condition, whole = np.array([True, False]), np.int8([1, 2])
    with pytest.raises(aclnn.AclnnError, match=r"other is .*, which int8 does not hold"):
        aclnn.where(condition, whole, 2**80)
    assert aclnn.where(condition, whole, 300).tolist() == [1, 44]  # wraps around, as integers do
    for junk in ("x", None, object()):
        with pytest.raises(aclnn.AclnnError, match=r"other (is|cannot)"):
            aclnn.where(condition, 1, junk)
    with pytest.raises(aclnn.AclnnError, match=r"do not broadcast: .* other \(0,\)"):
        aclnn.where(condition, 1, [])
    with pytest.raises(aclnn.AclnnError, match="condition"):
        aclnn.where(True, 1, 2)


# --- Moves ------------------------------------------------------------------------------------------


@named("target", [*REAL, *COMPLEX], ids=str)
@each("source", [*REAL, *COMPLEX])
def test_cast(source, target):
    x = numbers(source, seed=7)
    actual = aclnn.cast(x, target)
    assert actual.dtype == target
    x = x.real if source.kind == "c" and target.kind in "iu" else x
    if source.kind not in "iub" and target.kind in "iu":  # NumPy leaves open what is out of range
        info = np.iinfo(target)
        wanted = [max(info.min, min(info.max, math.trunc(float(v)))) for v in x]
        np.testing.assert_array_equal(actual, np.array(wanted).astype(target))
        return
    if target.kind in "fV" and source.kind not in "c":
        wanted = rounded([exact(v) for v in x], target) if source != BOOL else x.astype(target)
        np.testing.assert_array_equal(actual, wanted)
        return
    if source.kind == "c" and target.kind in "iufV":
        x = x.real
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(actual, x.astype(target))


def test_cast_through_both_phases():
    out = np.zeros((2, 3), np.float64)
    x = np.float32([[1.7, -1.7, np.nan], [3, 4, 5]])
    run("aclnnCast", tensor(x), T.ACL_INT32, tensor(out))
    np.testing.assert_array_equal(out, [[1, -1, 0], [3, 4, 5]])
    status, message = refused("aclnnCast", empty(), T.ACL_STRING, empty())
    assert (status, "dtype is STRING" in message) == (INVALID, True)
    assert "cast" in message.lower()


@named("dtype", [np.float32, np.int8, np.complex128, BF16], ids=str)
def test_permute(dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for dims in itertools.permutations(range(3)):
        shifted = [d - 3 if d % 2 else d for d in dims]
        np.testing.assert_array_equal(aclnn.permute(x, dims), x.transpose(dims))
        np.testing.assert_array_equal(
            aclnn.permute(x[::-1, 1:], shifted), x[::-1, 1:].transpose(dims)
        )
        out = np.zeros_like(x.transpose(dims))
        axes = aclnn.aclCreateIntArray(shifted)
        run("aclnnPermute", tensor(x), axes, tensor(out))
        np.testing.assert_array_equal(out, x.transpose(dims))
    square = x[0, :, :3].copy()
    wanted = square.T.copy()
    assert aclnn.permute(square, (1, 0), out=square) is square
    np.testing.assert_array_equal(square, wanted)


def test_what_permute_refuses():
    def axes(*dims):
        return aclnn.aclCreateIntArray(dims)

    x = empty((2, 3))
    assert refused("aclnnPermute", x, None, x) == (NULLPTR, refused("aclnnPermute", x, None, x)[1])
    assert "must have that of" in refused("aclnnPermute", x, axes(0), empty((6,), T.ACL_INT8))[1]
    assert "1 dimensions, but" in refused("aclnnPermute", x, axes(0), empty((6,)))[1]
    assert "has 1 numbers" in refused("aclnnPermute", x, axes(0), x)[1]
    assert "twice" in refused("aclnnPermute", x, axes(0, -2), x)[1]
    assert "must be from -2 to 1" in refused("aclnnPermute", x, axes(0, 3), x)[1]
    assert "must have (3, 2)" in refused("aclnnPermute", x, axes(1, 0), x)[1]


@named("dtype", [np.float32, np.int16, bool, np.complex64, BF16], ids=str)
def test_copy_broadcasts_and_casts(dtype):
    x = np.zeros((4, 6), dtype)[:, ::2]
    src = np.float64([[0.0], [1.0], [2.0], [3.0]])
    assert aclnn.copy_(x, src) is x
    np.testing.assert_array_equal(x, np.broadcast_to(src, (4, 3)).astype(dtype))
    run("aclnnInplaceCopy", tensor(x), tensor(np.int32([1, 0, 1])))
    np.testing.assert_array_equal(x, np.broadcast_to([1, 0, 1], (4, 3)).astype(dtype))
    status, message = refused("aclnnInplaceCopy", tensor(x), empty((2,)))
    assert status == INVALID
    assert "does not broadcast to that of selfRef" in message


def test_copy_from_what_overlaps():
    store = np.arange(20.0, dtype=np.float32)
    wanted = store[:12].copy()
    aclnn.copy_(store[4:16], store[:12])
    np.testing.assert_array_equal(store[4:16], wanted)


@named("out", [None, np.float64, np.complex64])
def test_cat(out):
    a, b, c = np.float32([[1, 2], [3, 4]]), np.int8([[5], [6]]), np.zeros(0, np.float16)
    wanted = np.concatenate([a, b, a], 1)
    target = None if out is None else np.zeros((5, 2), out).T
    actual = aclnn.cat([a, b, c, a[:, ::-1][:, ::-1]], dim=-1, out=target)
    assert actual.dtype == (out or np.float32)
    np.testing.assert_array_equal(actual, wanted)
    np.testing.assert_array_equal(aclnn.cat([a.T, a]), np.concatenate([a.T, a]))
    assert aclnn.cat([c, c]).shape == (0,)


def test_cat_through_both_phases_and_in_overlap():
    store = np.arange(12.0, dtype=np.float32)
    parts, out = [store[0:4], store[2:6]], store[1:9]
    wanted = np.concatenate(parts)
    tensors = aclnn.aclCreateTensorList([tensor(part) for part in parts])
    run("aclnnCat", tensors, 0, tensor(out))
    np.testing.assert_array_equal(out, wanted)


@named(
    ("shapes", "kinds", "dim", "out", "words"),
    [
        ([], [], 0, (2,), "tensors is empty"),
        ([(2,), (2,)], [T.ACL_UINT16, T.ACL_FLOAT], 5, (2,), "do not promote"),
        ([(), (2,)], [T.ACL_FLOAT] * 2, 5, (2,), "tensors[0] has 0 dimensions"),
        ([(2,), (2, 2)], [T.ACL_FLOAT] * 2, 5, (2,), "dim is 5"),
        ([(2, 3), (2, 2)], [T.ACL_FLOAT] * 2, 0, (2,), "differ not only along dim 0"),
        ([(2, 3), (2, 3)], [T.ACL_FLOAT] * 2, 0, (2,), "must have (4, 3)"),
    ],
)
def test_what_cat_refuses(shapes, kinds, dim, out, words):
    parts = [empty(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
    tensors = aclnn.aclCreateTensorList(parts)
    status, message = refused("aclnnCat", tensors, dim, empty(out))
    assert status == INVALID
    assert words in message


# --- More than 8 dimensions -----------------------------------------------------------------------


@named("shape", [(2,) * 10, (1,) * 9 + (3,), (1, 2, 1, 3, 1, 2, 1, 2, 1, 2), (2,) * 9 + (0,)])
def test_operators_of_any_rank(shape):
    """CANN's functions look at no rank here, and neither do these."""
    x = numbers(FLOATS[0], int(np.prod(shape))).reshape(shape)
    for name, more in (("silu", ()), ("mul", (1.5,))):
        function = getattr(aclnn, name)
        wanted = function(x.reshape(-1), *more).reshape(shape)
        np.testing.assert_array_equal(function(x, *more), wanted)
        for out in (np.empty(shape, np.float32), np.empty(shape[::-1], np.float32).T):
            assert function(x, *more, out=out) is out
            np.testing.assert_array_equal(out, wanted)
        wide = np.zeros((*shape[:-1], 2 * shape[-1]), np.float32)[..., ::2]
        numbers_given = [scalar(one) for one in more]
        run(f"aclnn{'Silu' if name == 'silu' else 'Muls'}", tensor(x), *numbers_given, tensor(wide))
        np.testing.assert_array_equal(wide, wanted)
    given = x.copy()
    assert aclnn.mul_(given, 1.5) is given
    np.testing.assert_array_equal(given, wanted)


def test_ranks_that_do_not_become_8():
    x = np.zeros((3,) * 9, np.float32)[(slice(None, 2),) * 9]
    status, message = refused("aclnnSilu", tensor(x), tensor(x))
    assert (status, "do not become 8" in message) == (INVALID, True)
    np.testing.assert_array_equal(aclnn.silu(x), x)
    assert "out has shape" in refused("aclnnSilu", tensor(x), tensor(x[:1]))[1]
    with pytest.raises(aclnn.AclnnError, match="must have"):
        aclnn.silu(x, out=np.zeros(2**9, np.float32))
    with pytest.raises(aclnn.AclnnError, match="9 dimensions"):
        aclnn.sigmoid(x)
