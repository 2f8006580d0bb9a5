"""How exact results are: every half, and float32 where it is hardest.

Halves are compared with the exact value rounded once; where float64's own error leaves open which
neighbour that is, mpmath decides with many digits.
"""

import pathlib
import subprocess
import sys

import ml_dtypes
import mpmath
import numpy as np
import oracle
import pytest

import aclnn
from aclnn.operators import REGISTRY

DIGITS = 120  # tells 1 + the smallest bfloat16, squared, from 1
HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
SLOPE = float(np.float32(0.01))

# name, options, whether it has a gradient
CASES = [
    ("elu", {}, False),
    ("elu", {"alpha": 1.5, "scale": 0.75, "input_scale": 2.0}, False),
    ("elu_backward", {}, True),
    ("elu_backward", {"alpha": 1.625, "scale": 1.0625, "input_scale": 0.5}, True),
    ("elu_backward", {"is_result": True, "alpha": 1.25}, True),
    ("elu_backward", {"input_scale": -0.5}, True),
    ("leaky_relu", {"negative_slope": SLOPE}, False),
    ("leaky_relu", {"negative_slope": 1.0 + 2.0**-11}, False),
    ("leaky_relu_backward", {"negative_slope": SLOPE}, True),
    ("hardshrink", {}, False),
    ("hardshrink_backward", {"lambd": 0.25}, True),
    ("gelu", {}, False),
    ("gelu", {"approximate": "tanh"}, False),
    ("gelu_backward", {}, True),
    ("gelu_backward", {"approximate": "tanh"}, True),
    ("logit", {}, False),
    ("logit", {"eps": 0.0625}, False),
    ("logit_backward", {}, True),
    ("logit_backward", {"eps": 0.125}, True),
]
IDS = [f"{name}-{','.join(f'{k}={v}' for k, v in options.items())}" for name, options, _ in CASES]


def test_every_operator_is_judged():
    """By a reference of its own, here and where results need not be known to the last bit."""
    judged = {name for name, _, _ in CASES}
    assert judged == set(oracle.REFERENCES) == set(REGISTRY)


def every(dtype):
    return np.arange(65536, dtype=np.uint16).view(dtype)


def exact_in_mpmath(name, options, g, x):
    """One value with many digits."""
    with mpmath.workdps(DIGITS):
        m = mpmath.mpf
        g, x = m(g), m(x)
        if name in ("gelu", "gelu_backward"):
            if options.get("approximate") == "tanh":
                c = mpmath.sqrt(2 / mpmath.pi)
                t = mpmath.tanh(c * (x + m("0.044715") * x**3))
                slope = (1 + t) / 2 + x * (1 - t * t) / 2 * c * (1 + 3 * m("0.044715") * x * x)
                return x * (1 + t) / 2 if name == "gelu" else g * slope
            cdf = mpmath.erfc(-x / mpmath.sqrt(2)) / 2
            return x * cdf if name == "gelu" else g * (cdf + x * mpmath.npdf(x))
        a, s, k = (m(options.get(key, 1.0)) for key in ("alpha", "scale", "input_scale"))
        if name == "elu":
            return s * x if x > 0 else s * a * mpmath.expm1(k * x)
        if name == "elu_backward":
            if x > 0:
                return g * s
            return (
                g * k * (x + a * s)
                if options.get("is_result")
                else g * k * a * s * mpmath.exp(k * x)
            )
        if name == "logit":
            eps = m(options.get("eps", -1.0))
            z = x if eps < 0 else min(max(x, eps), 1 - eps)
            return mpmath.log(z / (1 - z)) if 0 < z < 1 else m("-inf" if z == 0 else "inf")
        if name == "logit_backward":
            eps = m(options.get("eps", -1.0))
            return g / (x * (1 - x)) if eps < 0 or eps <= x <= 1 - eps else m(0)
        if name.startswith("leaky"):
            return (
                (g if x > 0 else g * m(options["negative_slope"]))
                if "backward" in name
                else (x if x > 0 else x * m(options["negative_slope"]))
            )
        raise AssertionError(f"{name} needs a formula here")


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


def correctly_rounded(name, options, g, x, dtype):
    """The exact results rounded once: float64's, and mpmath's where that is in doubt."""
    with np.errstate(all="ignore"):
        wide = [v.astype(np.float64) for v in ((g, x) if g is not None else (x,))]
        exact = oracle.REFERENCES[name](*wide, **options)
        # x - x is NaN for infinities, whose limits are the special cases of another test.
        margin = np.abs(exact) * 2.0**-42
        if name == "gelu_backward":
            # The derivative's two parts cancel at its root.
            margin = np.maximum(margin, 1e-15 * np.abs(wide[0]) * (wide[1] > -1.5))
        low = round_to_odd(exact - margin).astype(dtype)
        high = round_to_odd(exact + margin).astype(dtype)
        result = round_to_odd(exact).astype(dtype)
    doubt = np.flatnonzero(
        (low.view(np.uint16) != high.view(np.uint16)) & np.isfinite(exact) & np.isfinite(wide[-1])
    )
    assert len(doubt) < 40000, "the reference is too coarse"
    with mpmath.workdps(DIGITS):
        for index in doubt:
            gradient = 1.0 if g is None else float(g[index])
            value = exact_in_mpmath(name, options, gradient, float(x[index]))
            result[index] = nearest_half(value, dtype)
    return result


def nearest_half(value, dtype):
    """The half nearest to an mpmath number, ties to even, by comparing with both neighbours."""
    if not mpmath.isfinite(value):
        return dtype.type(float(value))
    with np.errstate(all="ignore"):
        guess = np.array(float(value)).astype(np.float32).astype(dtype)
    bits = int(guess.view(np.uint16))
    candidates = [np.uint16(b & 0xFFFF).view(dtype) for b in (bits - 1, bits, bits + 1)]
    info = ml_dtypes.finfo(dtype)
    top = mpmath.mpf(2) ** int(np.frexp(float(info.max))[1])  # where infinity stands in line

    def key(candidate):
        as_float = float(candidate)
        if np.isnan(as_float):
            return mpmath.inf, 1
        place = mpmath.mpf(as_float) if np.isfinite(as_float) else mpmath.sign(as_float) * top
        return abs(place - value), int(candidate.view(np.uint16)) & 1

    return min(candidates, key=key)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("gradients", ["ones", "random"])
@pytest.mark.parametrize(("name", "options", "has_gradient"), CASES, ids=IDS)
def test_every_half_is_correctly_rounded(name, options, has_gradient, gradients, dtype):
    kind = HALVES[dtype]
    if not has_gradient and gradients == "random":
        pytest.skip("takes no gradient")
    x = every(kind)
    g = None
    if has_gradient:
        rng = np.random.default_rng(len(name))
        g = (
            np.ones(65536, kind)
            if gradients == "ones"
            else (rng.standard_normal(65536) * 2.0 ** rng.integers(-6, 7, 65536)).astype(kind)
        )
    with np.errstate(all="ignore"):
        finite = np.isfinite(x.astype(np.float32))
    actual = getattr(aclnn, name)(*([g, x] if has_gradient else [x]), **options)
    expected = correctly_rounded(name, options, g, x, kind)
    with np.errstate(all="ignore"):
        a, e = actual.astype(np.float32), expected.astype(np.float32)
        wrong = np.flatnonzero((a != e) & ~(np.isnan(a) & np.isnan(e)) & finite)
    assert not len(wrong), [
        (x[i], None if g is None else g[i], actual[i], expected[i]) for i in wrong[:5]
    ] + [len(wrong)]


def unit(value):
    """A unit of float32's last place at an exact value, also beyond float32's range."""
    exponent = mpmath.frexp(value)[1] - 1 if value else -149
    return mpmath.mpf(2) ** max(exponent - 23, -149)


def float32_points(domain):
    """Points of the whole line or of (0, 1), dense where functions turn."""
    rng = np.random.default_rng(1)
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
        return x[(x > 0) & (x < 1)]
    root = np.float32(-0.7517915)
    beside_root = (root.view(np.int32) + np.arange(-3000, 3000)).astype(np.int32).view(np.float32)
    return np.concatenate([
        rng.uniform(-18, 18, 400_000), rng.standard_normal(100_000),
        rng.choice([-1, 1], 50_000) * 2.0 ** rng.uniform(-140, 120, 50_000), beside_root,
        np.linspace(-15, -5, 50_001), np.linspace(-110, -80, 20_001),
    ]).astype(np.float32)  # fmt: skip


@pytest.mark.parametrize(("name", "options", "has_gradient"), CASES, ids=IDS)
@pytest.mark.parametrize("gradient", [1.0, 1e30, 1e-30, 0.3])
def test_float32_is_within_one_ulp(name, options, has_gradient, gradient):
    if not has_gradient and gradient != 1.0:
        pytest.skip("takes no gradient")
    x = float32_points("unit" if "logit" in name else "line")
    g = np.full_like(x, gradient) * (1 + np.arange(len(x)) % 7 / 8).astype(np.float32)
    actual = getattr(aclnn, name)(*([g, x] if has_gradient else [x]), **options)
    wide = [v.astype(np.float64) for v in ((g, x) if has_gradient else (x,))]
    with np.errstate(all="ignore"):
        exact = oracle.REFERENCES[name](*wide, **options)
    distance = oracle.ulp_distance(actual, exact)
    doubt = np.flatnonzero(distance > 0.9)  # float64 itself may be that far off: at roots, in tails
    for index in doubt:
        value = exact_in_mpmath(
            name, options, float(g[index]) if has_gradient else 1.0, float(x[index])
        )
        if abs(value) > 3.4028236e38:
            assert np.isinf(actual[index])
            continue
        place = unit(value)
        error = abs(mpmath.mpf(float(actual[index])) - value) / place
        assert error <= 1, (x[index], g[index], actual[index], float(value), float(error))


def test_the_table_of_accuracy_is_what_its_script_prints():
    """Of operators whose results are the same on every instruction set, and soon judged."""
    root = pathlib.Path(__file__).parent.parent
    script = root / "benchmarks" / "accuracy.py"
    if not script.exists():
        pytest.skip("run from an installation without sources")
    names = ["leaky_relu", "hardshrink"]
    done = subprocess.run(
        [sys.executable, str(script), *names], capture_output=True, text=True, check=True
    )
    header, line, *rows = done.stdout.splitlines()
    assert len(rows) == sum(name in names for name, _, _ in CASES)
    table = (root / "docs" / "numbers.md").read_text(encoding="utf-8").splitlines()
    assert {header, line, *rows} <= set(table)


def test_the_root_of_gelus_derivative_and_its_neighbours():
    root = np.float32(-0.7517915).view(np.int32)
    x = (root + np.arange(-50, 51)).astype(np.int32).view(np.float32)
    actual = aclnn.gelu_backward(np.ones_like(x), x)
    for point, value in zip(x, actual, strict=True):
        exact = exact_in_mpmath("gelu_backward", {}, 1.0, float(point))
        assert abs(mpmath.mpf(float(value)) - exact) <= unit(exact)


def test_the_left_tail_of_gelus_derivative_with_large_gradients():
    x = np.linspace(-19, -12, 200, dtype=np.float32)
    for gradient in (1.0, 1e10, 1e30, 3e38):
        g = np.full_like(x, gradient)
        actual = aclnn.gelu_backward(g, x)
        for point, value in zip(x, actual, strict=True):
            exact = exact_in_mpmath("gelu_backward", {}, float(g[0]), float(point))
            assert abs(mpmath.mpf(float(value)) - exact) <= unit(exact)


def test_float64_forms():
    rng = np.random.default_rng(2)
    x = rng.standard_normal(10_000) * 3
    for name in ("leaky_relu", "elu"):
        exact = oracle.REFERENCES[name](x)
        np.testing.assert_allclose(getattr(aclnn, name)(x), exact, rtol=1e-15)
    # float64 tensors see the slope as float64
    assert aclnn.leaky_relu(np.array([-1.0]), 0.1)[0] == -0.1


OF_LANES = [np.float32, np.float16, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", OF_LANES, ids=lambda d: np.dtype(d).name)
def test_a_lambda_of_minus_zero_is_zero(dtype):
    x = np.array([0.0, -0.0, 1.0, -1.0] * 40, dtype)
    g = np.full_like(x, 2)
    for out in (aclnn.hardshrink_backward(g, x, -0.0), aclnn.hardshrink_backward(g, x, 0.0)):
        np.testing.assert_array_equal(out, [0, 0, 2, 2] * 40)
    np.testing.assert_array_equal(aclnn.hardshrink(x, -0.0), x)


@pytest.mark.parametrize("dtype", OF_LANES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(
    ("rate", "x"), [(np.nan, -3), (np.inf, 0), (-np.inf, 0), (0, -np.inf), (np.nan, -0.0)]
)
def test_elu_is_no_number_where_its_exponent_is_none(rate, x, dtype):
    many = np.array([x, 1] * 40, dtype)
    for result in (
        aclnn.elu(many, input_scale=rate),
        aclnn.elu_backward(np.ones_like(many), many, input_scale=rate),
    ):
        assert np.isnan(result[::2].astype(np.float32)).all()
        assert (result[1::2] == 1).all()


@pytest.mark.parametrize("dtype", OF_LANES, ids=lambda d: np.dtype(d).name)
def test_no_gradient_times_any_slope_is_none(dtype):
    """The slope, e^952 times -17, is a number, however large."""
    zeros = np.zeros(40, dtype)
    for x, rate in ((-952, -1), (-56, -17), (-119, -8)):
        many = np.full(40, x, dtype)
        assert (aclnn.elu_backward(zeros, many, input_scale=rate) == 0).all()
        huge = aclnn.elu_backward(zeros + dtype(1), many, input_scale=rate)
        assert (huge.astype(np.float32) == -np.inf).all()


def test_infinite_gradients_times_any_slope_are_infinite():
    g, x = np.full(40, np.inf, np.float32), np.full(40, -3e38, np.float32)
    result = aclnn.elu_backward(g, x, alpha=1e-30, scale=1e-30, input_scale=1e-36)
    assert (result == np.inf).all()


def test_scalars_are_floats_but_for_leaky_relu_of_doubles():
    x = np.array([1.0, -1.0])
    tenth = float(np.float32(0.1))
    assert aclnn.elu(x, scale=0.1)[0] == tenth
    assert aclnn.leaky_relu(x, 0.1)[1] == -0.1
    assert aclnn.leaky_relu(x.astype(np.float32), 0.1)[1] == np.float32(-tenth)


@pytest.mark.parametrize("name", HALVES)
def test_what_no_double_shows_breaks_ties(name):
    """Exact values beside the middle of two halves, nearer to it than doubles are to one another."""
    eps = float(ml_dtypes.finfo(HALVES[name]).eps)

    def halves(*values):
        return np.array(values, HALVES[name])

    # (1 + eps) 3/2 lies in the middle, and e^-(2^-54) takes a little from it.
    scalars = {"alpha": 1.5 * 2.0**40, "input_scale": 2.0**-40}
    found = aclnn.elu_backward(halves(1 + eps), halves(-(2.0**-14)), **scalars)
    assert found == halves(1.5 + eps)
    # (1 + 3/2 eps) (e^-50 - 1).
    assert aclnn.elu(halves(-50), alpha=1 + 1.5 * eps) == halves(-1 - eps)
    # An integer in the middle, times a little more than 1.
    middle = round(2 / eps) + 1
    for x in (13, 20):
        for approximate in ("none", "tanh"):
            found = aclnn.gelu_backward(np.int32([middle]), halves(x), approximate=approximate)
            assert found == halves(middle + 1)
    assert aclnn.gelu_backward(np.int32([middle]), halves(np.inf)) == halves(middle - 1)


def test_elu_of_float64_reaches_as_far_as_its_results():
    x = np.array([-709.5, -720.0, -1e-25, -1.13e-25, -1e-300])
    np.testing.assert_allclose(aclnn.elu(x, input_scale=-1.0)[:2], [1.35498632e308, np.inf])
    np.testing.assert_allclose(
        aclnn.elu(x, alpha=1e-30, input_scale=-1.0)[1], 4.92070095e282, rtol=1e-6
    )
    np.testing.assert_array_equal(aclnn.elu(x)[2:], np.expm1(x[2:]))
