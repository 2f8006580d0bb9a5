"""Pointwise kernels by themselves: accuracy of every formula, conversions, layouts of many operands."""

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache

import ml_dtypes
import mpmath
import numpy as np
import pytest
from cases import each
from oracle import FORMATS, rounded_exactly

from aclnn import isa
from aclnn.acl import dtypes

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT16, FLOAT32, FLOAT64 = (np.dtype(name) for name in ("float16", "float32", "float64"))
HALVES = [FLOAT16, BFLOAT16]
ALL = list(dtypes.NUMPY.values())
INTEGERS = [d for d in ALL if d.kind in "iu"]
STREAM = 1 + 2 + 4  # TILE_STREAM and both ways to prefetch

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture(params=isa.available())
def kernels(request):
    return isa.kernels(request.param)


# Where a reference takes longer than the kernels: one test of all, which computes it once.
with_each_set = each("kernels", lambda: map(isa.kernels, isa.available()))


def place(array):
    """Address and strides of a tile of one or two dimensions."""
    rows = array.strides[0] if array.ndim == 2 else 0
    return array.ctypes.data, rows, array.strides[-1] if array.ndim else 0


def apply(kernels, formula, operands, dtype, numbers=(), out=None, flags=0, **options):
    operands = np.broadcast_arrays(*operands) if operands else []
    out = np.empty(operands[0].shape if operands else 100, dtype) if out is None else out
    names = tuple(operand.dtype.name for operand in operands)
    ref = kernels.compute_kernel(formula, names, out.dtype.name, **options)
    rows, cols = out.shape if out.ndim == 2 else (1, out.size)
    kernels.run(ref, [place(a) for a in operands], place(out), rows, cols, numbers, flags)
    return out


def cast(kernels, source, dtype, out=None):
    out = np.empty(source.shape, dtype) if out is None else out
    ref = kernels.cast_kernel(source.dtype.name, out.dtype.name)
    rows, cols = out.shape if out.ndim == 2 else (1, out.size)
    kernels.run(ref, [place(source)], place(out), rows, cols)
    return out


def test_threads_get_the_loops_that_they_ask_for():
    """Each of its instruction set, whichever others ask for meanwhile."""

    def asked(level):
        return isa.kernels(level).compute_kernel("exp", ("float32",), "float32").fn

    levels = isa.available()
    wanted = {level: asked(level) for level in levels}
    assert len({*wanted.values()}) == len(levels)
    with ThreadPoolExecutor(2 * len(levels)) as pool:
        for _ in range(50):
            order = [*levels, *levels[::-1]]
            assert [*pool.map(asked, order)] == [wanted[level] for level in order]


# --- Independent rounding -------------------------------------------------------------------------


def quantum(x, dtype):
    """What neighbours of x differ by, as float64."""
    digits, least, _ = FORMATS[dtype]
    _, exponent = np.frexp(x)
    return np.ldexp(1.0, np.maximum(exponent - 1, least) - digits + 1)


def rounded(x, dtype):
    """Float64 numbers rounded once to a narrower dtype, as float64."""
    most = FORMATS[dtype][2]
    step = quantum(np.where(np.isfinite(x), x, 1), dtype)
    r = np.where(np.isfinite(x), np.copysign(np.rint(x / step) * step, x), x)
    return np.where(np.abs(r) >= 2.0 ** (most + 1), np.copysign(np.inf, x), r)


def every_half(dtype):
    return np.arange(2**16, dtype=np.uint16).view(dtype)


def some_floats(n, seed=0):
    """Of the whole line, and edges of it."""
    rng = np.random.default_rng(seed)
    edges = [
        0,
        1,
        0.5,
        2,
        3,
        4,
        0.25,
        1.5,
        2.0**-149,
        2.0**-126,
        2.0**-24,
        1e-30,
        88.7,
        89,
        103.9,
        104,
        8.9,
    ]
    edges = np.array(
        [*edges, 9.1, 127, 128, 3.4e38, math.inf, math.nan, -149, -150, 1.2784645], np.float32
    )
    parts = [
        rng.integers(0, 2**32, n, np.uint32).view(np.float32),
        (rng.standard_normal(n) * 3).astype(np.float32),
        (rng.standard_normal(n) * 40).astype(np.float32),
        np.float32(1) + (rng.standard_normal(n // 4) * 1e-3).astype(np.float32),
        edges,
        -edges,
        np.nextafter(edges, np.float32(0)),
    ]
    return np.concatenate(parts)


def some_doubles(n, seed=1):
    rng = np.random.default_rng(seed)
    return np.concatenate([
        rng.standard_normal(n), rng.standard_normal(n) * 30, rng.uniform(-745, 709, n // 2),
        np.ldexp(rng.uniform(-1, 1, n), rng.integers(-60, 2, n)), 1 + rng.standard_normal(n // 2) * 1e-5,
    ])  # fmt: skip


# --- Functions of one number ----------------------------------------------------------------------


def sigma(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def mp_sigma(x):
    return 1 / (1 + mpmath.exp(-x))


def mp_silu(x):
    return x * mp_sigma(x)


# By formula: in float64, and with many digits.
UNARY = {
    "exp": (np.exp, mpmath.exp),
    "exp2": (np.exp2, lambda x: mpmath.mpf(2) ** x),
    "expm1": (np.expm1, mpmath.expm1),
    "log": (np.log, mpmath.log),
    "log1p": (np.log1p, mpmath.log1p),
    "log2": (np.log2, lambda x: mpmath.log(x, 2)),
    "log10": (np.log10, mpmath.log10),
    "sqrt": (np.sqrt, mpmath.sqrt),
    "rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: 1 / mpmath.sqrt(x)),
    "reciprocal": (lambda x: 1 / x, lambda x: 1 / x),
    "square": (lambda x: x * x, lambda x: x * x),
    "sin": (np.sin, mpmath.sin),
    "cos": (np.cos, mpmath.cos),
    "tanh": (np.tanh, mpmath.tanh),
    "sigmoid": (sigma, mp_sigma),
    "silu": (lambda x: x * sigma(x), mp_silu),
    "erf": (np.vectorize(math.erf, otypes=[float]), mpmath.erf),
    "neg": (np.negative, lambda x: -x),
    "abs": (np.abs, abs),
    "floor": (np.floor, mpmath.floor),
    "ceil": (np.ceil, mpmath.ceil),
    "trunc": (np.trunc, lambda x: mpmath.sign(x) * mpmath.floor(abs(x))),
    "round": (np.rint, mpmath.nint),
    "frac": (lambda x: x - np.trunc(x), lambda x: x - mpmath.sign(x) * mpmath.floor(abs(x))),
    "sign": (lambda x: np.where(x != x, 0, np.sign(x)), mpmath.sign),
    "relu": (lambda x: np.where(x <= 0, 0, x), lambda x: max(x, 0)),
}
WITH_NANS = {"neg", "abs", "floor", "ceil", "trunc", "round", "sign", "relu"}
ROUNDED_ONCE = {"sqrt", "reciprocal", "square", "frac", *WITH_NANS}
# Of what has no more digits than a float, float64 has these without an error, but for squares below
# its range.
EXACT_IN_DOUBLE = {"square", "frac", *WITH_NANS}
# Beside zero these are their first term, and a little: how many times x, and whether it is less than
# the function (1) or more (-1) on the right of zero, and on its left.
FIRST_TERMS = {
    "expm1": (1, 1, 1), "log1p": (1, -1, -1), "sin": (1, -1, 1), "tanh": (1, -1, 1), "silu": (0.5, 1, 1),
}  # fmt: skip


def same_numbers(found, wanted):
    """The same, NaNs for NaNs, and zeros with the same sign."""
    np.testing.assert_array_equal(found.astype(np.float64), wanted)
    zeros = wanted == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))


def around(near, dtype):
    """What is a little less and a little more than numbers, rounded: the same, if no tie is there."""
    less, more = near * (1 - 2.0**-50), near * (1 + 2.0**-50)
    return rounded(np.minimum(less, more), dtype), rounded(np.maximum(less, more), dtype)


def beside_first_terms(formula, x, dtype):
    """The results so near to zero that only the sign of what follows the first term matters."""
    factor, right, left = FIRST_TERMS[formula]
    less, more = around(factor * x, dtype)
    return np.where(np.where(x > 0, right, left) > 0, more, less)


def correctly_rounded(formula, x, dtype):
    """In float64, where its last digits cannot matter; else with many digits."""
    in_double, exactly = UNARY[formula]
    wide = x.astype(np.float64)
    near = in_double(wide)
    if formula in EXACT_IN_DOUBLE:
        return rounded(near, dtype)
    wanted, other = around(near, dtype)
    doubt = (wanted != other) & np.isfinite(near)
    if formula in FIRST_TERMS:
        close = doubt & (np.abs(wide) < 2.0**-20)
        wanted[close] = beside_first_terms(formula, wide[close], dtype)
        doubt &= ~close
    with mpmath.workdps(200):
        for k in np.flatnonzero(doubt):
            wanted[k] = rounded_exactly(exactly(mpmath.mpf(float(x[k]))), dtype)
    return np.where(near == 0, near, wanted)


@cache
def judged_halves(formula, dtype):
    """Every half, and the results: once for all instruction sets."""
    x = every_half(dtype)
    return x, correctly_rounded(formula, x, dtype)


@cache
def judged_ties(formula, dtype):
    """Ties of halves that are floats: what tells the result from them may be less than a double shows."""
    ties = every_half(dtype).astype(np.float64)
    ties = (ties[:-1] + ties[1:]) / 2
    # Of more a judge would need more digits than he has: e^-300 is all that breaks a tie there.
    ties = ties[np.abs(ties) < (300 if formula == "silu" else 1e39)]
    x = np.concatenate([ties.astype(np.float32), some_floats(4000)])
    return x, correctly_rounded(formula, x, dtype)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("formula", UNARY)
@with_each_set
def test_every_half_is_rounded_once(kernels, formula, dtype):
    x, wanted = judged_halves(formula, dtype)
    same_numbers(apply(kernels, formula, [x], dtype), wanted)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("formula", UNARY)
@with_each_set
def test_floats_are_rounded_once_to_halves(kernels, formula, dtype):
    x, wanted = judged_ties(formula, dtype)
    same_numbers(apply(kernels, formula, [x], dtype), wanted)


@pytest.mark.parametrize("formula", UNARY)
@with_each_set
def test_floats_are_within_a_unit(kernels, formula):
    x = some_floats(60_000)
    found = apply(kernels, formula, [x], FLOAT32).astype(np.float64)
    wanted = UNARY[formula][0](x.astype(np.float64))
    if formula in ROUNDED_ONCE:
        same_numbers(found, rounded(wanted, FLOAT32))
        return
    once = rounded(wanted, FLOAT32)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    finite = np.isfinite(once) & np.isfinite(found)
    np.testing.assert_array_equal(found[np.isinf(once)], once[np.isinf(once)])
    error = np.abs(found - wanted)[finite] / quantum(wanted[finite], FLOAT32)
    assert error.max() <= 1, x[finite][error.argmax()]


def in_two(exact, near):
    """The double near to what many digits say, and what is missing; NaN for what is no real number."""
    if isinstance(exact, mpmath.mpc):
        return math.nan, 0.0
    return near, float(exact - near) if math.isfinite(near) else 0.0


@cache
def judged_doubles(formula):
    x = some_doubles(500)
    with mpmath.workdps(60):
        exact = [UNARY[formula][1](mpmath.mpf(float(one))) for one in x]
        pairs = [
            in_two(one, math.nan if isinstance(one, mpmath.mpc) else float(one)) for one in exact
        ]
    return x, *np.array(pairs).T


@pytest.mark.parametrize("formula", UNARY)
@with_each_set
def test_doubles_are_within_two_units(kernels, formula):
    x, wanted, rest = judged_doubles(formula)
    found = apply(kernels, formula, [x], FLOAT64)
    none = np.isnan(wanted)
    assert np.isnan(found[none]).all(), x[none]
    usual = np.abs(wanted) < 2.0**1023
    found, wanted, rest = found[usual], wanted[usual], rest[usual]
    errors = np.abs(found - wanted - rest) / quantum(wanted, FLOAT64)
    assert errors.max() <= (0.5 if formula in ROUNDED_ONCE else 2), x[usual][errors.argmax()]


def test_functions_of_no_number_are_one_nan(kernels):
    """Whatever NaN comes in, and wherever in a register; what is only passed on keeps its own."""
    nans = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF] * 9, np.uint32).view(
        np.float32
    )
    for formula in UNARY.keys() - WITH_NANS:
        assert {*apply(kernels, formula, [nans], FLOAT32).view(np.uint32)} == {0x7FC00000}, formula


# --- Sums, products, quotients --------------------------------------------------------------------


def halves_of(dtype, n, seed):
    """Random pairs, and all pairs of some that are hard."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2**16, (2, n)).astype(np.uint16).view(dtype)
    hard = every_half(dtype)[
        [0, 1, 2, 3, 0x3FF, 0x400, 0x401, 0x7F, 0x80, 0x81, 0x3C00, 0x3C01, 0x3F80]
    ]
    hard = np.concatenate(
        [hard, every_half(dtype)[[0x3F81, 0x4049, 0x7BFF, 0x7C00, 0x7F7F, 0x7E00]]]
    )
    first, second = (m.ravel() for m in np.meshgrid(hard, np.concatenate([hard, -hard])))
    near = b.copy()
    near.view(np.uint16)[:] = a.view(np.uint16) ^ rng.integers(0, 4, n).astype(np.uint16)
    return np.concatenate([a, a, first]), np.concatenate([b, near, second])


EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "rsub": lambda a, b: b - a,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


def rounded_once(formula, operands, dtype):
    """In float64, where its last rounding, which is its only one, cannot matter; else as fractions."""
    wanted = in_double = formula(*(v.astype(np.float64) for v in operands))
    doubt = np.isfinite(in_double)
    if dtype != FLOAT64:
        low, high = around(in_double, dtype)
        wanted = np.where(in_double == 0, in_double, low)
        doubt &= (low != high) & (in_double != 0)
    for k in np.flatnonzero(doubt):
        wanted[k] = rounded_exactly(formula(*(Fraction(float(v[k])) for v in operands)), dtype)
    return wanted


@pytest.mark.parametrize("dtype", [*HALVES, FLOAT32], ids=str)
@pytest.mark.parametrize("formula", EXACT)
@with_each_set
def test_sums_products_and_quotients_are_rounded_once(kernels, formula, dtype):
    a, b = (
        halves_of(dtype, 30_000, 5)
        if dtype in HALVES
        else (some_floats(9000, 3), some_floats(9000, 4))
    )
    found = apply(kernels, formula, [a, b], dtype, (1.0,)).astype(np.float64)
    same_numbers(found, rounded_once(EXACT[formula], [a, b], dtype))


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 3.0, float(np.float32(0.1)), -(2.0**-20)])
@pytest.mark.parametrize("dtype", [*HALVES, FLOAT32, FLOAT64], ids=str)
def test_sums_with_a_factor_are_rounded_once(dtype, alpha):
    rng = np.random.default_rng(8)
    if dtype in HALVES:
        a, b = halves_of(dtype, 700, 6)
    else:
        b = some_floats(300, 7).astype(dtype)
        a = (-alpha * b.astype(np.float64)).astype(dtype) * rng.choice(
            [0, 1, 1, 1 + 2.0**-20], b.size
        )
        a = a.astype(dtype)
    usable = np.isfinite(a.astype(float)) & np.isfinite(b.astype(float))
    a, b = a[usable], b[usable]
    cases = {
        "add": lambda a, b, alpha: a + alpha * b,
        "sub": lambda a, b, alpha: a - alpha * b,
        "rsub": lambda a, b, alpha: b - alpha * a,
    }
    for formula, exact in cases.items():
        wanted = rounded_once(exact, [a, b, np.full(a.size, alpha)], dtype)
        for level in isa.available():
            found = apply(isa.kernels(level), formula, [a, b], dtype, (alpha,)).astype(np.float64)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{formula} of {level}")


@pytest.mark.parametrize("dtype", [*HALVES, FLOAT32, FLOAT64], ids=str)
def test_a_number_in_the_place_of_an_operand(dtype):
    x = halves_of(dtype, 800, 9)[0] if dtype in HALVES else some_floats(300, 9).astype(dtype)
    x = x[np.isfinite(x.astype(float))]
    number, alpha = float(np.float32(0.7)), 1.5
    cases = {
        "adds": lambda x, number, alpha: x + alpha * number,
        "subs": lambda x, number, alpha: x - alpha * number,
        "rsubs": lambda x, number, alpha: number - alpha * x,
        "muls": lambda x, number, alpha: x * number,
        "divs": lambda x, number, alpha: x / number,
    }
    for formula, exact in cases.items():
        wanted = rounded_once(exact, [x, *(np.full(x.size, v) for v in (number, alpha))], dtype)
        for level in isa.available():
            found = apply(isa.kernels(level), formula, [x], dtype, (number, alpha)).astype(float)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{formula} of {level}")


# --- Gradients and products with a function -------------------------------------------------------

SILU_SLOPE = lambda a: mp_sigma(a) * (1 + a * (1 - mp_sigma(a)))  # noqa: E731
SEVERAL = {
    "sigmoid_backward": lambda g, y: g * y * (1 - y),
    "tanh_backward": lambda g, y: g * (1 - y * y),
    "silu_backward": lambda g, a: g * SILU_SLOPE(a),
    "swiglu_backward_a": lambda g, a, b: g * b * SILU_SLOPE(a),
    "times_silu": lambda a, x: a * mp_silu(x),
    "pow": lambda a, b: mpmath.power(a, b),
}


def operands_of(formula, dtype):
    """Random ones, tiny ones and ties, that are numbers, and from whose functions numbers come."""
    count = 3 if formula == "swiglu_backward_a" else 2
    rng = np.random.default_rng(11)
    n = 1500
    found = [rng.standard_normal(n) * rng.choice([1e-6, 0.1, 1, 5], n) for _ in range(count)]
    found[-1][:200] = np.ldexp(1.0, rng.integers(-14, 3, 200)) * rng.choice([1, 3, 5], 200)
    for k in range(count):
        found[k][200:400] = (
            np.ldexp(rng.integers(1, 2048, 200), -24)
            if dtype == FLOAT16
            else (np.ldexp(rng.integers(1, 256, 200).astype(float), rng.integers(-133, -20, 200)))
        )
    if formula == "pow":
        found[0] = np.maximum(np.abs(found[0]), 2.0**-20)
    return [one.astype(dtype) for one in found]


@cache
def judged_several(formula, dtype):
    """Operands, the results rounded once, and what these lack."""
    operands = operands_of(formula, dtype)
    with mpmath.workdps(120):
        exact = [
            SEVERAL[formula](*(mpmath.mpf(float(v)) for v in case))
            for case in zip(*operands, strict=True)
        ]
        pairs = [in_two(one, rounded_exactly(one, dtype)) for one in exact]
    return operands, *np.array(pairs).T


@pytest.mark.parametrize("dtype", [*HALVES, FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("formula", SEVERAL)
@with_each_set
def test_functions_of_several_numbers(kernels, formula, dtype):
    operands, wanted, rest = judged_several(formula, dtype)
    found = apply(kernels, formula, operands, dtype).astype(np.float64)
    finite = np.isfinite(wanted) & (dtype not in HALVES)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    errors = np.abs(found - wanted - rest)[finite] / quantum(wanted[finite], dtype)
    if dtype == FLOAT64:
        errors[np.abs(operands[1][finite] + 1.2785) < 0.05] = 0  # near a root
    if errors.size:
        worst = errors.argmax()
        assert errors[worst] <= (1 if dtype == FLOAT32 else 2), [
            one[finite][worst] for one in operands
        ]


def test_limits_of_functions_with_a_sigmoid(kernels):
    x = np.array([-np.inf, np.inf, np.nan, -1000, 1000, 0, -0.0], np.float32)
    one = np.ones_like(x)
    for dtype in (FLOAT16, FLOAT32, FLOAT64):
        np.testing.assert_array_equal(
            apply(kernels, "silu", [x], dtype), [np.nan, np.inf, np.nan, 0, 1000, 0, 0]
        )
        np.testing.assert_array_equal(
            apply(kernels, "silu_backward", [one, x], dtype), [0, 1, np.nan, 0, 1, 0.5, 0.5]
        )
        np.testing.assert_array_equal(
            apply(kernels, "sigmoid", [x], dtype), [0, 1, np.nan, 0, 1, 0.5, 0.5]
        )


# --- Choices and comparisons ----------------------------------------------------------------------

COMPARED = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}  # fmt: skip
CHOSEN = {"maximum": np.maximum, "minimum": np.minimum}


def same(found, wanted, what=""):
    """NumPy takes no bfloat16's NaN for another."""
    both = [one.astype(float) if one.dtype == BFLOAT16 else one for one in (found, wanted)]
    np.testing.assert_array_equal(*both, err_msg=what)


def edges_of(dtype):
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = {0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.max // 2}
        values |= {
            v for v in (-1, -2, -7, 2**24 + 1, 2**53, 2**53 + 1) if info.min <= v <= info.max
        }
        return np.array(sorted(values), dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    values = [0.0, -0.0, 1.0, -1.0, 1.5, 2.0, -3.25, np.inf, -np.inf, np.nan, 2.0**-14, 1e-7]
    if dtype.kind == "c":
        return np.array([complex(a, b) for a in values for b in (0.0, 1.5, np.nan)], dtype)
    return np.array(values).astype(dtype)


def pairs_of(dtype):
    edges = edges_of(dtype)
    return [np.ascontiguousarray(m.ravel()) for m in np.meshgrid(edges, edges)]


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_comparisons_are_exact_in_the_dtype(kernels, dtype):
    if dtype == np.uint64:
        pytest.skip("integers are int64")
    a, b = pairs_of(dtype)
    reads = "float32" if dtype in HALVES else dtype.name
    for formula in COMPARED:
        if dtype.kind == "c" and formula not in ("eq", "ne"):
            continue
        found = apply(kernels, formula, [a, b], np.bool_, reads=reads)
        np.testing.assert_array_equal(found, COMPARED[formula](a, b), err_msg=formula)


@pytest.mark.parametrize("dtype", [d for d in ALL if d.kind != "c" and d != np.uint64], ids=str)
def test_choices_keep_what_they_choose(kernels, dtype):
    a, b = pairs_of(dtype)
    integer = dtype.kind in "iub"
    reads = "int64" if integer else None
    for formula, judged in CHOSEN.items():
        found = apply(kernels, formula, [a, b], dtype, reads=reads)
        same(found, judged(a, b), formula)
    low, high = (0, 3) if integer else (-1.0, 1.5)
    wanted = np.minimum(np.maximum(a, np.array(low).astype(dtype)), np.array(high).astype(dtype))
    same(apply(kernels, "clamp", [a], dtype, (low, high), reads=reads), wanted)
    found = apply(kernels, "threshold_backward", [a, b], dtype, (1,), reads=reads)
    same(found, np.where(b <= np.array(1).astype(dtype), np.array(0, dtype), a))
    found = apply(kernels, "relu_backward", [a, b], dtype, reads=reads)
    same(found, np.where(b <= np.array(0).astype(dtype), np.array(0, dtype), a))
    found = apply(kernels, "threshold", [a], dtype, (1, 7 if dtype.kind != "b" else 1), reads=reads)
    seven = np.array(7 if dtype.kind != "b" else 1).astype(dtype)
    same(found, np.where(a <= np.array(1).astype(dtype), seven, a))


def test_clamps_by_no_number_are_none(kernels):
    x = np.float32([1, 2, np.nan])
    assert np.isnan(apply(kernels, "clamp", [x], FLOAT32, (np.nan, 1.0))).all()
    assert np.isnan(apply(kernels, "clamp", [x], FLOAT32, (0.0, np.nan))).all()


@pytest.mark.parametrize("dtype", ALL, ids=str)
@each("condition", [np.bool_, np.uint8])
def test_where_keeps_every_bit(kernels, dtype, condition):
    rng = np.random.default_rng(3)
    a, b = (
        rng.integers(0, 2 if dtype.kind == "b" else 256, 5000 * dtype.itemsize, np.uint8).view(
            dtype
        )
        for _ in range(2)
    )
    if dtype == FLOAT32:
        a.view(np.uint32)[:99] = 0x7F800001  # signals
    if dtype in HALVES:
        a.view(np.uint16)[:99] = 0x7F81
    c = rng.integers(0, 2, 5000).astype(condition)
    if condition is np.uint8:
        c *= 128
    found = apply(kernels, "where", [c, a, b], dtype)
    raw = np.dtype((np.void, dtype.itemsize))
    assert (found.view(raw) == np.where(c != 0, a.view(raw), b.view(raw))).all()


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_fill(kernels, dtype):
    if dtype.kind in "iub":
        value = 1 if dtype.kind == "b" else np.iinfo(dtype).max - 1
        value = min(int(value), 2**63 - 1)
        assert (apply(kernels, "fill", [], dtype, (value,)) == value).all()
    elif dtype.kind == "c":
        assert (apply(kernels, "fill", [], dtype, (0.5, -2.0)) == 0.5 - 2j).all()
    else:
        found = apply(kernels, "fill", [], dtype, (0.1,)).astype(float)
        assert (found == rounded_exactly(Fraction(0.1), dtype)).all()


# --- Whole and complex numbers --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_whole_numbers_wrap(kernels, dtype):
    a, b = pairs_of(dtype)
    bits = 8 * dtype.itemsize

    def wrapped(values):
        low = [v % 2**bits for v in values]
        return np.array(low, np.uint64).astype(f"u{dtype.itemsize}").view(dtype)

    exact = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    cases = {
        "add": ((3,), [x + 3 * y for x, y in exact]),
        "sub": ((3,), [x - 3 * y for x, y in exact]),
        "rsub": ((3,), [y - 3 * x for x, y in exact]),
        "mul": ((), [x * y for x, y in exact]),
    }
    for formula, (numbers, wanted) in cases.items():
        found = apply(kernels, formula, [a, b], dtype, numbers, reads="int64")
        np.testing.assert_array_equal(found, wrapped(wanted), err_msg=formula)
    single = {
        "adds": ((5, 2), [x + 10 for x, _ in exact]),
        "subs": ((5, 2), [x - 10 for x, _ in exact]),
        "rsubs": ((5, 2), [5 - 2 * x for x, _ in exact]),
        "muls": ((-3,), [-3 * x for x, _ in exact]),
        "neg": ((), [-x for x, _ in exact]),
        "square": ((), [x * x for x, _ in exact]),
    }
    for formula, (numbers, wanted) in single.items():
        found = apply(kernels, formula, [a], dtype, numbers, reads="int64")
        np.testing.assert_array_equal(found, wrapped(wanted), err_msg=formula)


@pytest.mark.parametrize("dtype", [d for d in INTEGERS if d != np.uint64], ids=str)
def test_whole_quotients_and_powers(kernels, dtype):
    a, b = pairs_of(dtype)
    found = apply(kernels, "div", [a, b], dtype, reads="int64")
    by_number = apply(kernels, "divs", [a], dtype, (3,), reads="int64")
    powers = apply(kernels, "pow", [a, b], dtype, reads="int64")
    cubes = apply(kernels, "pows", [a], dtype, (3,), reads="int64")
    size = 2 ** (8 * dtype.itemsize)

    def power(x, y):
        if y < 0:
            return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)
        return pow(x, y, size)

    for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        quotient = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        assert (int(found[k]) - quotient) % size == 0, (x, y)
        assert int(by_number[k]) == abs(x) // 3 * (-1 if x < 0 else 1)
        assert (int(powers[k]) - power(x, y)) % size == 0, (x, y)
        assert (int(cubes[k]) - x**3) % size == 0


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers(kernels, dtype):
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((2, 500, 2)) @ [1, 1j]).astype(dtype)
    wide_a, wide_b = a.astype(complex), b.astype(complex)
    unit, alpha, other = np.finfo(dtype).eps, 0.5 - 0.25j, 2 + 1j
    two = {
        "add": wide_a + alpha * wide_b, "sub": wide_a - alpha * wide_b,
        "rsub": wide_b - alpha * wide_a, "mul": wide_a * wide_b, "div": wide_a / wide_b,
        "sigmoid_backward": wide_a * np.conj(wide_b * (1 - wide_b)),
    }  # fmt: skip
    one = {
        "adds": wide_a + alpha * other, "subs": wide_a - alpha * other, "rsubs": other - alpha * wide_a,
        "muls": wide_a * other, "divs": wide_a / other, "neg": -wide_a, "square": wide_a**2,
        "reciprocal": 1 / wide_a, "exp": np.exp(wide_a),
    }  # fmt: skip
    for formula, wanted in {**two, **one}.items():
        operands = [a, b] if formula in two else [a]
        numbers = (other, alpha) if formula.endswith("s") and formula in one else (alpha,)
        numbers = [part for z in numbers for part in (complex(z).real, complex(z).imag)]
        found = apply(kernels, formula, operands, dtype, numbers)
        assert (np.abs(found - wanted) <= 4 * unit * (np.abs(wanted) + 1)).all(), formula
        if formula in ("mul", "neg", "square") and dtype == np.complex64:
            np.testing.assert_array_equal(found, wanted.astype(dtype))


# --- What operands are converted to first; results of another dtype -------------------------------


def test_operands_are_converted_to_what_they_are_read_as(kernels):
    long = np.array([2**24 + 1, 2**53 + 1, 2**62 + 2**9 + 1, -7], np.int64)
    zeros = np.zeros_like(long)
    for reads, out in (("float32", FLOAT64), ("float64", FLOAT64), ("float16", FLOAT32)):
        found = apply(kernels, "add", [long, zeros], out, (1.0,), reads=reads)
        wanted = [rounded_exactly(Fraction(v), np.dtype(reads)) for v in long.tolist()]
        np.testing.assert_array_equal(found.astype(float), wanted)
    wide = np.array([1 + 2.0**-30, 1 + 2.0**-24 + 2.0**-50, 2.75, -1e300, np.nan])
    nothing = np.zeros_like(wide)
    found = apply(kernels, "add", [wide, nothing], FLOAT64, (1.0,), reads="float32")
    np.testing.assert_array_equal(found, wide.astype(np.float32))
    found = apply(kernels, "add", [wide, nothing], FLOAT64, (0,), reads="int8")
    np.testing.assert_array_equal(found, [1, 1, 2, -128, 0])
    found = apply(kernels, "add", [long, zeros], np.int64, (1,), reads="int32")
    np.testing.assert_array_equal(found, long.astype(np.int32))


def test_results_are_rounded_before_they_become_of_another_dtype(kernels):
    a, b = np.float32([1, 3, 250.75]), np.float32([2.0**-20, 2.0**-24, 0.2])
    found = apply(kernels, "add", [a, b], FLOAT64, (1.0,), result_dtype="float16")
    np.testing.assert_array_equal(found, [1, 3, 251])
    found = apply(kernels, "add", [a, b], np.uint8, (1.0,), result_dtype="float32")
    np.testing.assert_array_equal(found, [1, 3, 250])
    found = apply(kernels, "add", [a, b], np.complex64, (1.0,), result_dtype="float32")
    np.testing.assert_array_equal(found, (a + b).astype(np.complex64))
    truth = apply(kernels, "lt", [a, b], np.float16, result_dtype="bool", reads="float32")
    np.testing.assert_array_equal(truth, [0, 0, 0])


def test_formulas_that_a_type_lacks(kernels):
    with pytest.raises(ValueError, match="tanh is not computed in int64"):
        kernels.compute_kernel("tanh", ("int32",), "int32")
    with pytest.raises(ValueError, match="lt is not computed in complex128"):
        kernels.compute_kernel("lt", ("complex64", "complex64"), "bool")
    with pytest.raises(ValueError, match="where takes 3 inputs, 2 dtypes given"):
        kernels.compute_kernel("where", ("bool", "float32"), "float32")


# --- Casts ----------------------------------------------------------------------------------------


def converted(value, dtype):
    """A NumPy scalar in another dtype, by rules for integers, fractions, infinities and NaN."""
    parts = (value.real, value.imag) if value.dtype.kind == "c" else (value,)
    if dtype.kind == "b":
        return any(bool(part) for part in parts)
    if dtype.kind == "c":
        both = [converted(part, np.dtype(f"f{dtype.itemsize // 2}")) for part in parts]
        return complex(*both)
    (real, *_), floating = parts, value.dtype.kind not in "iub"
    special = floating and not np.isfinite(real)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if not floating:
            return (int(real) - int(info.min)) % 2**info.bits + int(info.min)
        if special:
            return 0 if np.isnan(real) else int(info.max if real > 0 else info.min)
        return min(max(int(float(real)), int(info.min)), int(info.max))
    if special:
        return float(real)
    exact = Fraction(float(real)) if floating else Fraction(int(real))
    return rounded_exactly(exact, dtype)


def cast_edges(dtype):
    found = [edges_of(dtype)]
    if dtype.kind in "fVc":
        values = [
            0.9,
            -0.9,
            127.9,
            128,
            -128.9,
            255.5,
            256,
            65504,
            65519.99,
            65520,
            2.0**31,
            -(2.0**31) - 1,
        ]
        values += [
            2.0**32,
            2.0**62,
            2.0**63,
            -(2.0**63),
            2.0**64,
            3e38,
            1 + 2.0**-11,
            2.0**-25,
            2.0**-133,
        ]
        found.append(np.array(values).astype(dtype))
    elif dtype.kind in "iu" and dtype.itemsize >= 4:
        values = [2049, 2**24 + 1, 2**25 + 3, 65519, 65520, 257 * 2**8 + 1, 2**31 - 65]
        values += [2**54 + 2**30 + 1, 2**62 + 2**38 + 1, 2**62 + 2**51 + 1] * (dtype.itemsize == 8)
        found.append(np.array(values, dtype))
    return np.concatenate(found)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@each("to", ALL)
def test_casts_round_once(kernels, dtype, to):
    source = cast_edges(dtype)
    source = np.tile(source, 3)  # whole registers, and what is left of them
    wanted = np.array([converted(one, to) for one in source[: source.size // 3]], object)
    found = cast(kernels, source, to)
    if to == dtype:
        assert found.tobytes() == source.tobytes()
        return
    compared = found.astype(complex if to.kind == "c" else object if to.kind in "iu" else float)
    np.testing.assert_array_equal(compared, np.tile(wanted, 3).astype(compared.dtype))


@each("size", range(1, 17))
def test_copies_of_every_size(kernels, size):
    rng = np.random.default_rng(size)
    storage = rng.integers(0, 256, (70, 90, size), np.uint8)
    target = np.zeros_like(storage)
    ref = kernels.copy_kernel(size)
    assert ref.itemsizes == (size, size)
    views = [(slice(None), slice(None)), (slice(None), slice(None, None, -2)), (slice(1, None, 3),)]
    for view in views:
        for turned in (False, True):
            source, out = storage[view], target[view]
            source = source.transpose(1, 0, 2) if turned else source
            out = np.zeros(source.shape, np.uint8)
            rows, cols, _ = source.shape
            kernels.run(ref, [(source.ctypes.data, *source.strides[:2])],
                        (out.ctypes.data, *out.strides[:2]), rows, cols)  # fmt: skip
            np.testing.assert_array_equal(out, source)


# --- Layouts, tiles, parameters -------------------------------------------------------------------


def layouts(array):
    """The same matrix, lying in memory in other ways, and not where elements are aligned."""
    rows, cols = array.shape
    gaps = np.zeros((rows, 2 * cols), array.dtype)
    gaps[:, ::2] = array
    odd = np.zeros(array.nbytes + 1, np.uint8)[1:].view(np.uint8)
    shifted = np.frombuffer(odd.data, array.dtype, array.size).reshape(rows, cols)
    shifted[:] = array
    return [
        array,
        np.asfortranarray(array),
        gaps[:, ::2],
        shifted,
        array[::-1, ::-1].copy()[::-1, ::-1],
    ]


@pytest.mark.parametrize("formula", ["where", "swiglu_backward_a", "times_silu", "add"])
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT16, FLOAT64, np.dtype(np.complex128)], ids=str)
def test_layouts_of_many_operands(kernels, formula, dtype):
    if dtype.kind == "c" and formula not in ("where", "add"):
        pytest.skip("a formula of real numbers")
    rng = np.random.default_rng(4)
    count = 3 if formula in ("where", "swiglu_backward_a") else 2
    for shape in ((1, 9000), (70, 130), (300, 7)):
        dense = [rng.standard_normal(shape).astype(dtype) for _ in range(count)]
        if formula == "where":
            dense[0] = rng.integers(0, 2, shape).astype(np.bool_)
        wanted = apply(kernels, formula, dense, dtype, (1.0,))
        ways = [layouts(one) for one in dense]
        for turn in range(10):
            operands = [way[rng.integers(len(way))] for way in ways]
            out = layouts(np.zeros(shape, dtype))[turn % 5]
            apply(kernels, formula, operands, dtype, (1.0,), out=out, flags=STREAM * (turn % 2))
            np.testing.assert_array_equal(out, wanted)
        repeated = np.broadcast_to(dense[-1][:1], shape)
        wanted = apply(kernels, formula, [*dense[:-1], repeated.copy()], dtype, (1.0,))
        np.testing.assert_array_equal(
            apply(kernels, formula, [*dense[:-1], repeated], dtype, (1.0,)), wanted
        )


@pytest.mark.parametrize("formula", ["add", "mul", "maximum", "tanh", "where", "square"])
@pytest.mark.parametrize("dtype", [FLOAT32, BFLOAT16, np.dtype(np.int32)], ids=str)
def test_results_over_any_operand(kernels, formula, dtype):
    if dtype.kind == "i" and formula == "tanh":
        pytest.skip("a formula of real numbers")
    rng = np.random.default_rng(6)
    count = {"tanh": 1, "square": 1, "where": 3}.get(formula, 2)
    operands = [(rng.standard_normal(5000) * 9).astype(dtype) for _ in range(count)]
    numbers = (1,) if dtype.kind == "i" else (1.0,)
    wanted = apply(kernels, formula, operands, dtype, numbers)
    for k in range(count):
        own = [one.copy() for one in operands]
        apply(kernels, formula, own, dtype, numbers, out=own[k])
        np.testing.assert_array_equal(own[k], wanted)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_bits_do_not_depend_on_the_size_of_a_tile(kernels, dtype):
    x = every_half(dtype)
    ref = kernels.compute_kernel("leaky_relu", (dtype.name,), dtype.name)
    for slope in (0.01, 0.1, -0.3, 1 / 3):
        slope = float(np.float32(slope))
        whole = apply(kernels, "leaky_relu", [x], dtype, (slope,))
        for n in (16, 1000):
            parts = np.empty_like(x)
            for begin in range(0, x.size, n):
                source, out = x[begin : begin + n], parts[begin : begin + n]
                kernels.run(ref, [place(source)], place(out), 1, out.size, (slope,), 0)
            assert parts.tobytes() == whole.tobytes()


def test_what_kernels_say_of_themselves(kernels):
    assert kernels.FACTS.keys() == {*kernels.formula_names()}
    assert all(0.05 <= facts.cost <= 100 for facts in kernels.FACTS.values())
    ref = kernels.compute_kernel("swiglu_backward_a", ("float16",) * 3, "float32")
    assert ref.itemsizes == (2, 2, 2, 4)
    assert (ref.prepare, ref.params_size, ref.form.numbers) == (0, 0, "real")
    assert ref.cost == kernels.FACTS["swiglu_backward_a"].cost
    assert ref.scratch_bytes(10, 1000) == 0
    whole = kernels.compute_kernel("add", ("int8", "int8"), "int8")
    assert whole.form.numbers == "whole"
    assert kernels.cast_kernel("int8", "int8").cost < kernels.cast_kernel("int8", "float32").cost
