"""Independent references: each operator's formula once more, sharing no code with the kernels.

Every formula is written once and evaluated twice: on float64 arrays, good to about 1e-15, and on
single numbers of mpmath with many digits, for what must be known to the last bit. `m` is what it is
evaluated with, `Arrays` or `Digits`. `JUDGES` has them by name, with the cases to judge.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import mpmath
import numpy as np

import aclnn

DIGITS = 120  # tells 1 + the smallest bfloat16, squared, from 1
FAR = 1e100  # beyond all float32 numbers, with a cube in float64


class Arrays:
    """float64, element by element."""

    number = float
    pi = math.pi
    exp, expm1, log, log1p, tanh = np.exp, np.expm1, np.log, np.log1p, np.tanh
    where = np.where
    least, most = np.minimum, np.maximum
    erfc = np.vectorize(math.erfc, otypes=[np.float64])
    sqrt = math.sqrt
    ratio = np.divide


class Digits:
    """One number of mpmath."""

    number = mpmath.mpf
    pi = mpmath.pi
    exp, expm1, log, sqrt, erfc = mpmath.exp, mpmath.expm1, mpmath.log, mpmath.sqrt, mpmath.erfc
    log1p, tanh = mpmath.log1p, mpmath.tanh
    least, most = min, max

    @staticmethod
    def where(condition, yes, no):
        return yes if condition else no

    @staticmethod
    def ratio(a, b):
        return a / b if b else a * mpmath.inf


@dataclass(frozen=True)
class Judge:
    """A formula, and what it judges."""

    formula: Callable[..., Any]
    takes_gradient: bool
    cases: tuple[dict[str, Any], ...]  # options of calls
    domain: str  # of points in float32: 'line', or 'unit' for the numbers between 0 and 1
    loses: Callable[..., Any] | None  # from the operands, what float64 may be off by at roots
    beyond: Callable[..., Any] | None = None  # from the operands, results where x is not finite
    broadcasts: bool = False  # whether CANN's documentation says that its inputs do

    def arrays(self, *operands, **options):
        """The formula's value on arrays of float64."""
        with np.errstate(all="ignore"):
            found = np.array(self.formula(Arrays, *operands, **options))
            odd = ~np.isfinite(operands[-1])
            if odd.any():
                found[odd] = self.where_not_finite(*(v[odd] for v in operands), **options)
        return found

    def where_not_finite(self, *operands, **options):
        """The formula's value, or its limit where that is none, unless the judge says otherwise."""
        if self.beyond:
            return self.beyond(*operands)
        *gradient, x = operands
        value = self.formula(Arrays, *operands, **options)
        limit = self.formula(Arrays, *gradient, np.clip(x, -FAR, FAR), **options)
        return np.where(np.isnan(value), limit, value)

    def digits(self, *operands, **options):
        """Its value for single numbers, as mpmath's."""
        with mpmath.workdps(DIGITS):
            return self.formula(Digits, *map(mpmath.mpf, operands), **options)


JUDGES: dict[str, Judge] = {}


def judge(*cases, domain="line", loses=None, beyond=None, broadcasts=False):
    """Register a formula by its operator's name, with what else `Judge` has."""

    def register(formula):
        takes_gradient = "g" in inspect.signature(formula).parameters
        JUDGES[formula.__name__] = Judge(
            formula, takes_gradient, cases, domain, loses, beyond, broadcasts
        )
        return formula

    return register


def words(options):
    """Options as people read them."""
    return ", ".join(f"{key}={value}" for key, value in options.items())


@judge({}, {"alpha": 1.5, "scale": 0.75, "input_scale": 2.0})
def elu(m, x, alpha=1.0, scale=1.0, input_scale=1.0):
    a, s, k = map(m.number, (alpha, scale, input_scale))
    return m.where(x > 0, s * x, s * a * m.expm1(k * m.least(x, 0)))


@judge(
    {},
    {"alpha": 1.625, "scale": 1.0625, "input_scale": 0.5},
    {"is_result": True, "alpha": 1.25},
    {"input_scale": -0.5},
)
def elu_backward(m, g, x, alpha=1.0, scale=1.0, input_scale=1.0, is_result=False):
    a, s, k = map(m.number, (alpha, scale, input_scale))
    slope = k * (x + a * s) if is_result else k * a * s * m.exp(k * m.least(x, 0))
    return m.where(x <= 0, g * slope, g * s)


@judge({"negative_slope": float(np.float32(0.01))}, {"negative_slope": 1.0 + 2.0**-11})
def leaky_relu(m, x, negative_slope=0.01):
    return m.where(x > 0, x, x * m.number(negative_slope))


@judge({"negative_slope": float(np.float32(0.01))}, broadcasts=True)
def leaky_relu_backward(m, g, x, negative_slope=0.01):
    return m.where(x > 0, g, g * m.number(negative_slope))


@judge({}, {"lambd": -1.0})
def hardshrink(m, x, lambd=0.5):
    return m.where((x > lambd) | (x < -lambd), x, 0.0)


@judge({"lambd": 0.25}, broadcasts=True)
def hardshrink_backward(m, g, x, lambd=0.5):
    bound = max(lambd, 0.0)
    return m.where((x > bound) | (x < -bound), g, 0.0)


def half_of_tanh_form(m, x):
    """(1 + tanh(w))/2 without cancellation."""
    return 1 / (1 + m.exp(-2 * m.sqrt(2 / m.pi) * (x + m.number("0.044715") * x**3)))


def cdf(m, x):
    return m.erfc(-x / m.sqrt(2)) / 2


# Of -infinity times 0 PyTorch makes a NaN, too.
@judge({}, {"approximate": "tanh"}, beyond=lambda x: x * (x > 0))
def gelu(m, x, approximate="none"):
    return x * (half_of_tanh_form(m, x) if approximate == "tanh" else cdf(m, x))


# The derivative's two parts cancel at its root.
@judge(
    {},
    {"approximate": "tanh"},
    loses=lambda g, x: 1e-15 * np.abs(g) * (x > -1.5),
    broadcasts=True,
)
def gelu_backward(m, g, x, approximate="none"):
    if approximate == "tanh":
        rate = 2 * m.sqrt(2 / m.pi) * (1 + 3 * m.number("0.044715") * x * x)
        return g * half_of_tanh_form(m, x) * (1 + x * half_of_tanh_form(m, -x) * rate)
    return g * (cdf(m, x) + x * m.exp(-x * x / 2) / m.sqrt(2 * m.pi))


@judge({}, {"eps": 0.0625}, domain="unit")
def logit(m, x, eps=None):
    z = x if eps is None else m.most(m.least(x, 1 - m.number(eps)), m.number(eps))
    return m.log(m.ratio(z, 1 - z))


@judge({}, {"eps": 0.125}, domain="unit", beyond=lambda g, x: math.nan)
def logit_backward(m, g, x, eps=None):
    low, high = (0, 1) if eps is None else (eps, 1 - m.number(eps))
    outside = math.nan if eps is None else 0.0
    return m.where((x >= low) & (x <= high), m.ratio(g, x * (1 - x)), outside)


# --- Rectifiers, lines and shrinkage --------------------------------------------------------------


@judge({})
def squared_relu(m, x):
    return m.where(x > 0, x * x, 0 * x)


@judge({"threshold": 0.5, "value": -7.0}, beyond=lambda x: np.where(x < 0, -7.0, x))
def threshold(m, x, threshold, value):
    return m.where(x > threshold, x, value)


@judge({"threshold": 0.5}, broadcasts=True, beyond=lambda g, x: np.where(x < 0, 0.0, g))
def threshold_backward(m, g, x, threshold):
    return m.where(x > threshold, g, 0.0)


@judge({}, beyond=lambda x: np.where(x < 0, 0.0, x))
def hardswish(m, x):
    return m.where(x > 3, x, m.where(x < -3, 0.0, x * (x + 3) / 6))


def _line(m, g, x, outside):
    return m.where(outside, m.where(x > 0, g, 0.0), g * (2 * x + 3) / 6)


def _ends(g, x):
    return np.where(x < 0, 0.0, g)


@judge({}, beyond=_ends)
def hardswish_backward(m, g, x):
    return _line(m, g, x, (x < -3) | (x > 3))


@judge({}, beyond=_ends)
def hardswish_backward_v2(m, g, x):
    return _line(m, g, x, (x <= -3) | (x >= 3))


@judge({})
def hardsigmoid(m, x):
    return m.most(m.least((x + 3) / 6, 1.0), 0.0)


@judge({}, beyond=lambda g, x: 0.0)
def hardsigmoid_backward(m, g, x):
    return m.where((x > -3) & (x < 3), g / 6, 0.0)


@judge({}, {"min_val": -0.25, "max_val": 3.5})
def hardtanh(m, x, min_val=-1.0, max_val=1.0):
    return m.least(m.most(x, min_val), max_val)


@judge({"min_val": -0.25}, beyond=lambda g, x: np.where(x == x, 0.0, g))
def hardtanh_backward(m, g, x, min_val=-1.0, max_val=1.0):
    return m.where((x > min_val) & (x < max_val), g, 0.0)


@judge({}, {"lambd": 1 + 2.0**-20})
def softshrink(m, x, lambd=0.5):
    by = m.number(lambd)
    return m.where(x > lambd, x - by, m.where(x < -lambd, x + by, 0 * x))


@judge({}, broadcasts=True, beyond=lambda g, x: g)
def softshrink_backward(m, g, x, lambd=0.5):
    return m.where((x > lambd) | (x < -lambd), g, 0.0)


@judge({"bias": 0.25}, {"lambd": 0.0, "bias": -(2.0**-30)}, beyond=lambda x: np.where(x == x, x, 0))
def shrink(m, x, lambd=0.5, bias=0.0):
    by = m.number(bias)
    return m.where(x > lambd, x - by, m.where(x < -lambd, x + by, 0.0))


# --- Sigmoid's relatives --------------------------------------------------------------------------


def sigma(m, x):
    """In the form whose exponential does not grow."""
    e = m.exp(-abs(x))
    return m.where(x < 0, e, 1.0) / (1 + e)


def slope_of_swish(m, t):
    return sigma(m, t) * (1 + t * sigma(m, -t))


def near_root(rate):
    """The parts of a swish's slope cancel at its root."""
    return lambda g, x: 4e-16 * np.abs(g) * (abs(rate * x + 1.28) < 0.5)


def not_far(x):
    """Of -infinity times 0 the formula makes a NaN."""
    return np.where(x > 0, x, math.nan)


@judge({}, domain="unit", broadcasts=True)
def sigmoid_backward(m, g, y):
    return g * y * (1 - y)


@judge({}, domain="unit", broadcasts=True)
def tanh_backward(m, g, y):
    return g * (1 - y) * (1 + y)


@judge({})
def sigmoid(m, x):
    return sigma(m, x)


@judge({})
def tanh(m, x):
    return m.tanh(x)


@judge({}, beyond=not_far)
def silu(m, x):
    return x * sigma(m, x)


@judge({}, loses=near_root(1.0))
def silu_backward(m, g, x):
    return g * slope_of_swish(m, x)


@judge({"beta": 0.75}, beyond=not_far)
def swish(m, x, beta=1.0):
    return x * sigma(m, x * m.number(beta))


@judge({"beta": 0.75}, loses=near_root(0.75))
def swish_backward(m, g, x, beta=1.0):
    return g * slope_of_swish(m, x * m.number(beta))


@judge({}, beyond=not_far)
def fast_gelu(m, x):
    return x * sigma(m, x * m.number("1.702"))


@judge({}, loses=near_root(1.702))
def fast_gelu_backward(m, g, x):
    return g * slope_of_swish(m, x * m.number("1.702"))


# --- Softplus and what is made of it --------------------------------------------------------------


def growth(m, x):
    """log(1 + exp(x)), of which no part overflows."""
    return m.most(x, 0) + m.log1p(m.exp(-abs(x)))


@judge({}, {"beta": 0.6875, "threshold": 1.5})
def softplus(m, x, beta=1.0, threshold=20.0):
    t = x * m.number(beta)
    return m.where(t > threshold, x, growth(m, t) / m.number(beta))


@judge({}, {"beta": 0.6875, "threshold": 1.5})
def softplus_backward(m, g, x, beta=1.0, threshold=20.0):
    t = x * m.number(beta)
    return m.where(t > threshold, g, g * sigma(m, t))


@judge({})
def log_sigmoid(m, x):
    return -growth(m, -x)


@judge({}, beyond=not_far)
def mish(m, x):
    e = m.exp(-abs(x))
    square = e * e
    n = 2 * e + m.where(x < 0, square, 1.0)
    return x * n / (n + m.where(x < 0, 2.0, 2 * square))


# The derivative's two parts cancel at its root.
@judge(
    {},
    loses=lambda g, x: 4e-16 * np.abs(g) * (abs(x + 1.2) < 0.5),
    broadcasts=True,
    beyond=lambda g, x: np.where(x > 0, g, math.nan),
)
def mish_backward(m, g, x):
    e = m.exp(-abs(x))
    square = e * e
    n = 2 * e + m.where(x < 0, square, 1.0)
    d = n + m.where(x < 0, 2.0, 2 * square)
    return g * (n / d + 4 * x * (1 + e) * m.where(x < 0, e, square) / (d * d))


# --- Exponential units ----------------------------------------------------------------------------

SCALE = "1.0507009873554804934193349852946"
ALPHA = "1.6732632423543772848170429916717"


@judge({})
def selu(m, x):
    return m.number(SCALE) * m.where(x > 0, x, m.number(ALPHA) * m.expm1(m.least(x, 0)))


# Beside the root, near the least result, the double that stands for the sum's second part shows.
@judge({}, loses=lambda g, y: 4e-16 * np.abs(g) * (y < 0))
def selu_backward(m, g, y):
    scale, alpha = m.number(SCALE), m.number(ALPHA)
    return m.where(y > 0, g * scale, g * (y + scale * alpha))


@judge({}, {"alpha": 0.375}, {"alpha": -2.0})
def celu(m, x, alpha=1.0):
    a = m.number(alpha)
    return m.most(x, 0) + m.least(a * m.expm1(m.least(x, 0) / a), 0)


# --- 16 bits: the exact value rounded once ------------------------------------------------------


def every(dtype):
    return np.arange(65536, dtype=np.uint16).view(dtype)


def half_gradients(dtype):
    """Gradients for every half, in three ways: ones, random ones, and some of the smallest there
    are, of either sign, whose few bits make ties of most products."""
    rng = np.random.default_rng(11)
    random = rng.standard_normal(65536) * 2.0 ** rng.integers(-6, 7, 65536)
    tiny = rng.integers(1, 256, 65536) | rng.choice([0, 0x8000], 65536)
    return {
        "ones": np.ones(65536, dtype),
        "random": random.astype(dtype),
        "tiny": tiny.astype(np.uint16).view(dtype),
    }


def round_to_odd(values):
    """float64 to float32, inexact results to the odd neighbour: a later rounding is then right."""
    near = values.astype(np.float32)
    bits = near.view(np.int32).copy()
    back = near.astype(np.float64)
    inexact = (back != values) & ~np.isnan(values) & (bits & 1 == 0)
    outward = np.abs(back) < np.abs(values)
    bits = np.where(inexact, np.where(outward, bits + 1, bits - 1), bits)
    # Zero's inexact neighbours are the smallest subnormals of the value's sign.
    tiny = (near == 0) & (values != 0)
    bits = np.where(tiny, np.where(values > 0, 1, np.int32(-(2**31) + 1)), bits)
    return bits.astype(np.int32).view(np.float32)


# By dtype: digits, the exponent of the least normal number and that of the largest.
FORMATS = {
    np.dtype(np.float16): (11, -14, 15),
    np.dtype(ml_dtypes.bfloat16): (8, -126, 127),
    np.dtype(np.float32): (24, -126, 127),
    np.dtype(np.float64): (53, -1022, 1023),
}


def rounded_exactly(exact, dtype):
    """A Fraction or a finite number of mpmath, rounded once to the nearest of a dtype, ties to even."""
    digits, least, most = FORMATS[dtype]
    if exact == 0:
        return 0.0
    is_ratio = isinstance(exact, Fraction)
    n, d = exact.as_integer_ratio() if is_ratio else mpmath.libmp.to_rational(exact._mpf_)
    size = abs(n)
    exponent = size.bit_length() - d.bit_length()
    exponent -= size << max(-exponent, 0) < d << max(exponent, 0)
    last = max(exponent, least) - digits + 1  # the exponent of what neighbours differ by
    step = d << max(last, 0)
    steps, rest = divmod(size << max(-last, 0), step)
    steps += 2 * rest > step or (2 * rest == step and steps & 1)
    beyond = steps.bit_length() + last > most + 1
    return math.copysign(math.inf if beyond else math.ldexp(steps, last), n)


class Rounded(NamedTuple):
    """What float64 rounds to, the results between which the exact one is, and where these are apart."""

    result: np.ndarray
    low: np.ndarray
    high: np.ndarray
    doubt: np.ndarray


def rounded_in_doubt(name, options, operands):
    """Results in float64, rounded once."""
    judge, dtype = JUDGES[name], operands[-1].dtype
    with np.errstate(all="ignore"):
        wide = [v.astype(np.float64) for v in operands]
        exact = judge.arrays(*wide, **options)
        margin = np.abs(exact) * 2.0**-42
        if judge.loses:
            margin = np.maximum(margin, judge.loses(*wide))
        low = round_to_odd(exact - margin).astype(dtype)
        high = round_to_odd(exact + margin).astype(dtype)
        result = round_to_odd(exact).astype(dtype)
        # As numbers: zeros of both signs are one, and nobody asks for that of what rounds to zero.
        apart = low.astype(np.float32) != high.astype(np.float32)
    doubt = np.flatnonzero(apart & np.isfinite(exact) & np.isfinite(wide[-1]))
    assert len(doubt) < 40000, "the reference is too coarse"
    return Rounded(result, low, high, doubt)


def misrounded(name, options, actual, *operands, most=None):
    """Indices of results that are not the exact value rounded once.

    Where float64 leaves that in doubt, mpmath decides: of all results, or of `most` of them, while the others only
    have to be within the doubt.
    """
    judge, found = JUDGES[name], rounded_in_doubt(name, options, operands)
    asked = found.doubt
    if most is not None and len(asked) > most:
        asked = np.random.default_rng(12).choice(asked, most, replace=False)
    with mpmath.workdps(DIGITS):
        for index in asked:
            value = judge.digits(*(float(v[index]) for v in operands), **options)
            finite = mpmath.isfinite(value)
            rounded = rounded_exactly(value, operands[-1].dtype) if finite else float(value)
            found.result[index] = rounded
    with np.errstate(all="ignore"):
        a, e, low, high = (
            v.astype(np.float32) for v in (actual, found.result, found.low, found.high)
        )
    wrong = (a != e) & ~(np.isnan(a) & np.isnan(e))
    left = np.setdiff1d(found.doubt, asked)
    wrong[left] = ((a < low) | (a > high) | np.isnan(a))[left]
    return np.flatnonzero(wrong)


# --- float32 and float64: units in the last place -----------------------------------------------


def unit(value, dtype=np.float32):
    """A unit of a dtype's last place at an exact value, also beyond the dtype's range."""
    info = np.finfo(dtype)
    exponent = mpmath.frexp(value)[1] - 1 if value else info.minexp
    return mpmath.mpf(2) ** (max(exponent, info.minexp) - info.nmant)


@cache
def float32_points(domain, count=1_000_000):
    """Points of the whole line or of (0, 1), dense where functions turn, and what is no number."""
    rng = np.random.default_rng(1)
    not_finite = np.array([np.inf, -np.inf, np.nan], np.float32)
    if domain == "unit":
        near_half = 0.5 + rng.standard_normal(50_000) * 2.0 ** -rng.integers(2, 24, 50_000)
        tiny = 2.0 ** -rng.uniform(1, 126, 50_000)
        points = [
            rng.uniform(0, 1, 200_000),
            near_half,
            tiny,
            1 - 2.0 ** -rng.uniform(1, 24, 50_000),
        ]
        x = np.concatenate(points).astype(np.float32)
        return np.concatenate([x[(x > 0) & (x < 1)], not_finite])
    root = np.float32(-0.7517915)
    beside_root = (root.view(np.int32) + np.arange(-3000, 3000)).astype(np.int32).view(np.float32)
    return np.concatenate([
        rng.uniform(-18, 18, count), rng.standard_normal(100_000),
        rng.choice([-1, 1], 50_000) * 2.0 ** rng.uniform(-140, 120, 50_000), beside_root,
        np.linspace(-15, -5, 50_001), np.linspace(-110, -80, 20_001), not_finite,
    ]).astype(np.float32)  # fmt: skip


def float64_points(domain):
    """Fewer of them, as many digits judge each."""
    rng = np.random.default_rng(2)
    if domain == "unit":
        return np.concatenate([rng.uniform(0, 1, 500), 2.0 ** -rng.uniform(1, 500, 500)])
    wide = rng.choice([-1, 1], 500) * 2.0 ** rng.uniform(-500, 300, 500)
    return np.concatenate([rng.standard_normal(500) * 3, wide])


class Error(NamedTuple):
    """An error in units of the last place at the exact value, and the operands."""

    ulp: float
    operands: tuple[float, ...]


def largest_error(name, options, x, gradient=1.0):
    """The largest error at points, and at those beside the points where it is large."""
    return largest_error_of(name, options, judged_points(name, options, x, gradient), gradient)


class Judged(NamedTuple):
    """Operands, and what float64 makes of the formula there: the same for whatever computes it."""

    operands: list[np.ndarray]
    exact: np.ndarray


def judged_points(name, options, x, gradient):
    judge = JUDGES[name]
    operands = [gradients(judge, options, x, gradient), x] if judge.takes_gradient else [x]
    return Judged(operands, judge.arrays(*(v.astype(np.float64) for v in operands), **options))


def largest_error_of(name, options, points, gradient=1.0):
    """The same, of points that are judged already."""
    at_points, found = error_and_distances(name, options, points)
    others = judged_beside(name, options, worst_of(points, found, 60), gradient)
    return max(at_points, error_and_distances(name, options, others)[0])


def worst_of(points, found, count):
    """So many of the points, those with the largest distances."""
    return points.operands[-1][np.argpartition(found, -count)[-count:]]


def judged_beside(name, options, x, gradient):
    """The thousands of floats on both sides of some points."""
    beside = (x.view(np.int32)[:, None] + np.arange(-4000, 4000, dtype=np.int32)).ravel()
    beside = beside.view(np.float32)
    beside = beside[np.isfinite(beside) & (beside != 0)]
    return judged_points(name, options, beside, gradient)


def gradients(judge, options, x, kind):
    """Gradients of about a size, or hard ones: results just below a power of two, where units are the
    smallest beside the result, so that its error is largest."""
    if kind != "hard":
        return np.full_like(x, kind) * (1 + np.arange(len(x)) % 7 / 8).astype(np.float32)
    wide = x.astype(np.float64)
    below_one = 1 - np.random.default_rng(2).uniform(2**-14, 2**-9, len(x))
    with np.errstate(all="ignore"):
        g = below_one / judge.arrays(np.ones_like(wide), wide, **options)
    return np.where((abs(g) > 1e-30) & (abs(g) < 1e30), g, 1.0).astype(np.float32)


def error_and_distances(name, options, points):
    """The largest error, and how far every result is from what float64 makes of the formula.

    Many digits judge the largest ones: float64 itself may be that far off, at roots and in tails.
    """
    judge = JUDGES[name]
    actual = getattr(aclnn, name)(*points.operands, **options)
    found = ulp_distance(actual, points.exact)
    largest = Error(0.0, ())
    for index in largest_first(found):
        if not found[index] > largest.ulp + 1e-6:  # which is what float64 may be off by
            break
        numbers = tuple(float(v[index]) for v in points.operands)
        error = found[index]
        if math.isfinite(numbers[-1]):
            error = exact_distance(actual[index], judge.digits(*numbers, **options))
        largest = max(largest, Error(error, numbers))
    return largest, found


def largest_first(found):
    """The places of numbers in order, the largest first; mostly the first few are all that is asked."""
    count = min(64, len(found))
    first = np.argpartition(found, -count)[-count:]
    first = first[np.argsort(found[first])[::-1]]
    yield from first
    if len(found) > count:
        yield from np.argsort(found)[::-1][count:]


def exact_distance(actual, value):
    """Distance in units of the result's last place; infinity is right beyond its range."""
    with mpmath.workdps(DIGITS):
        if not np.isfinite(actual):
            most = float(np.finfo(actual.dtype).max)
            return 0.0 if float(np.sign(actual)) * value > most else np.inf
        return float(abs(mpmath.mpf(float(actual)) - value) / unit(value, actual.dtype))


def float64_error(name, options, operands, seen):
    """The largest error in float64, of a call with options whose scalars are seen as others."""
    judge = JUDGES[name]
    actual = getattr(aclnn, name)(*operands, **options)
    assert actual.dtype == np.float64
    return max(
        Error(exact_distance(found, judge.digits(*numbers, **seen)), numbers)
        for found, *numbers in zip(actual, *operands, strict=True)
    )


def ulp_distance(actual, exact):
    """Distance in units of float32's last place at the exact value; NaN against NaN is 0."""
    exact = np.asarray(exact, np.float64)
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float32)
        spacing = np.maximum(np.abs(np.spacing(nearest)).astype(np.float64), 2.0**-149)
        distance = np.abs(actual.astype(np.float64) - exact) / spacing
    same = (np.isnan(actual) & np.isnan(exact)) | (np.isinf(nearest) & (actual == nearest))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))
