"""How exact results are: every half, and float32 where it is hardest.

Halves are compared with the exact value rounded once; where float64's own error leaves open which
neighbour that is, mpmath decides with many digits.
"""

import pathlib
import re
import subprocess
import sys

import cases
import ml_dtypes
import mpmath
import numpy as np
import oracle
import pytest
import samples

import aclnn
from aclnn import isa
from aclnn.acl import socs
from aclnn.cli.ops import dtypes_on
from aclnn.operators import REGISTRY

NAMES = {"float16": "FLOAT16", "bfloat16": "BF16"}
HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}

CASES = [(name, options) for name, judge in oracle.JUDGES.items() for options in judge.cases]
GRADIENTS = [1.0, 1e30, 1e-30, "hard"]


def each(kinds):
    """The cases, those that take a gradient with each kind of it, the others with `None`."""
    return [
        pytest.param(name, options, kind, id=f"{name}-{oracle.words(options)}-{kind}")
        for name, options in CASES
        for kind in (kinds if oracle.JUDGES[name].takes_gradient else (None,))
    ]


def test_every_operator_is_judged():
    """By a formula of `oracle.py`, or by a test of its own that calls it."""
    assert {*oracle.JUDGES} <= {*REGISTRY}
    tests = pathlib.Path(__file__).parents[1]
    files = [*tests.glob("operators/test_operators_*.py"), *tests.glob("operators/test_sorting.py")]
    files += [tests / "operators" / "test_gradients.py", tests / "acl" / "test_weights.py"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    # As code says it, not in prose: `aclnn.add`, "add", f"conv{n}d", aclnnAdd.
    found = re.findall(r"""aclnn\.(\w+)|["'](\w+)["'{]|\b(aclnn\w+)""", text)
    said = {word.lower().replace("_", "") for words in found for word in words if word}
    alone = {
        name for name in REGISTRY if name not in oracle.JUDGES and not names_in_tests(name) & said
    }
    assert not alone, f"neither a formula of oracle.py nor a test of {', '.join(sorted(alone))}"


def names_in_tests(name):
    """How tests may call an operator: by a name of its own, or of the form that takes its calls over."""
    takers = [
        o for o in REGISTRY.values() if o.number_form is not None and o.number_form[1] == name
    ]
    names = {each for o in (REGISTRY[name], *takers) for each in (o.name, *o.names)}
    names |= {f"{each}getworkspacesize" for each in names} | {f"aclnn{each}" for each in names}
    names |= {re.sub(r"_v\d$|[123]d$", "", each) for each in names}
    return {each.lower().replace("_", "") for each in names}


@pytest.mark.parametrize(
    "name", [name for name in oracle.JUDGES if len(REGISTRY[name].inputs) == 2]
)
def test_inputs_broadcast_where_the_judge_says_so(name):
    column, row = np.full((2, 1), 0.5, np.float32), np.full((1, 3), 0.5, np.float32)
    options = samples.options(name)
    if oracle.JUDGES[name].broadcasts:
        assert getattr(aclnn, name)(column, row, **options).shape == (2, 3)
        return
    with pytest.raises(aclnn.AclnnError) as caught:
        getattr(aclnn, name)(column, row, **options)
    assert caught.value.status == aclnn.ACLNN_ERR_PARAM_INVALID


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(("name", "options", "gradients"), each(["ones", "random", "tiny"]))
def test_every_half_is_correctly_rounded(name, options, gradients, dtype):
    """What is in doubt in float64 are thousands of ties: `make accuracy` judges all."""
    kind = HALVES[dtype]
    if NAMES[dtype] not in dtypes_on(REGISTRY[name], "Ascend910B"):
        assert (name, dtype) == ("shrink", "bfloat16")
        return
    x = oracle.every(kind)
    operands = [oracle.half_gradients(kind)[gradients], x] if gradients else [x]
    actual = getattr(aclnn, name)(*operands, **options)
    most = None if cases.EVERY else 1000
    wrong = oracle.misrounded(name, options, actual, *operands, most=most)
    assert not len(wrong), [(*(v[i] for v in operands), actual[i]) for i in wrong[:5]]


@pytest.mark.parametrize(("name", "options", "gradient"), each(GRADIENTS))
def test_float32_is_within_one_ulp(name, options, gradient, monkeypatch):
    """On every instruction set: what judges the points, and those beside the worst of any, is computed
    once."""

    def errors(points):
        for level in isa.available():
            monkeypatch.setattr(isa, "name", lambda level=level: level)
            aclnn.clear_cache()
            worst, distances = oracle.error_and_distances(name, options, points)
            assert worst.ulp <= 1, (level, worst)
            yield oracle.worst_of(points, distances, 20)

    x = oracle.float32_points(oracle.JUDGES[name].domain, 150_000)  # `make exhaustive` has all
    points = oracle.judged_points(name, options, x, gradient or 1.0)
    worst = np.unique(np.concatenate(list(errors(points))))
    list(errors(oracle.judged_beside(name, options, worst, gradient or 1.0)))
    monkeypatch.undo()
    aclnn.clear_cache()


def test_the_table_of_accuracy_is_what_its_script_prints():
    """Of operators whose results are the same on every instruction set, and soon judged."""
    root = pathlib.Path(__file__).parents[2]
    script = root / "tools" / "accuracy.py"
    if not script.exists():
        pytest.skip("run from an installation without sources")
    names = ["leaky_relu", "hardshrink"]
    done = subprocess.run(
        [sys.executable, str(script), *names], capture_output=True, text=True, check=True
    )
    header, line, *rows = done.stdout.splitlines()
    assert len(rows) == sum(name in names for name, _ in CASES)
    table = (root / "docs" / "numbers.md").read_text(encoding="utf-8").splitlines()
    assert {header, line, *rows} <= set(table), "run `python tools/accuracy.py NAME --write`"


def test_the_root_of_gelus_derivative_and_its_neighbours():
    root = np.float32(-0.7517915).view(np.int32)
    x = (root + np.arange(-50, 51)).astype(np.int32).view(np.float32)
    actual = aclnn.gelu_backward(np.ones_like(x), x)
    for point, value in zip(x, actual, strict=True):
        exact = oracle.JUDGES["gelu_backward"].digits(1.0, float(point))
        assert abs(mpmath.mpf(float(value)) - exact) <= oracle.unit(exact)


def test_the_left_tail_of_gelus_derivative_with_large_gradients():
    x = np.linspace(-19, -12, 200, dtype=np.float32)
    for gradient in (1.0, 1e10, 1e30, 3e38):
        g = np.full_like(x, gradient)
        actual = aclnn.gelu_backward(g, x)
        for point, value in zip(x, actual, strict=True):
            exact = oracle.JUDGES["gelu_backward"].digits(float(g[0]), float(point))
            assert abs(mpmath.mpf(float(value)) - exact) <= oracle.unit(exact)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize(
    ("g", "x"),
    [
        (1.9960269927978516, 0.00032325039501301944),
        (1.9927254915237427, 0.00038833811413496733),
        (-8.259876251220703, -1.6334067583084106),
        (-8.609904289245605, -1.6906969547271729),
    ],
)
def test_products_with_the_slope_of_gelu_where_it_is_furthest_off(g, x):
    """Just below a power of two, with gradients whose rounding adds to the slope's error."""
    exact = oracle.JUDGES["gelu_backward"].digits(g, x)
    operands = [np.full(16, v, np.float32) for v in (g, x)]
    out = aclnn.gelu_backward(*operands)
    assert abs(mpmath.mpf(float(out[0])) - exact) <= oracle.unit(exact)


OF_DOUBLES = [
    name
    for name, operator in REGISTRY.items()
    if name in oracle.JUDGES
    and name != "softplus_backward"  # which computes float64 as float32
    and any("DOUBLE" in dtypes_on(operator, family) for family in socs.FAMILIES)
]


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("name", OF_DOUBLES)
def test_float64_is_within_two_ulp(name):
    """Scalars have more digits than float32: they count where the declaration says so."""
    judge = oracle.JUDGES[name]
    x = oracle.float64_points(judge.domain)
    g = np.random.default_rng(3).standard_normal(x.size)
    for options in judge.cases:
        longer = {
            key: value * (1 + 2.0**-30) if isinstance(value, float) else value
            for key, value in options.items()
        }
        seen = longer if REGISTRY[name].scalars_as_double else options
        operands = [g, x] if judge.takes_gradient else [x]
        worst = oracle.float64_error(name, longer, operands, seen)
        assert worst.ulp <= 2, (options, worst)
        ends = [np.ones(3), np.array([np.inf, -np.inf, np.nan])][-len(operands) :]
        wanted = judge.arrays(*ends, **seen)
        np.testing.assert_allclose(getattr(aclnn, name)(*ends, **longer), wanted, rtol=1e-15)


OF_LANES = [np.float32, np.float16, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", OF_LANES, ids=lambda d: np.dtype(d).name)
def test_a_lambda_of_minus_zero_is_zero(dtype):
    x = np.array([0.0, -0.0, 1.0, -1.0] * 40, dtype)
    g = np.full_like(x, 2)
    for out in (aclnn.hardshrink_backward(g, x, -0.0), aclnn.hardshrink_backward(g, x, 0.0)):
        np.testing.assert_array_equal(out, [0, 0, 2, 2] * 40)
    np.testing.assert_array_equal(aclnn.hardshrink(x, -0.0), x)


@pytest.mark.parametrize("dtype", OF_LANES, ids=lambda d: np.dtype(d).name)
def test_with_a_lambda_below_zero_every_number_passes(dtype):
    x = np.array([0.0, -0.0, 1e-6, -np.inf, np.nan] * 40, dtype)
    out = aclnn.hardshrink(x, -1.0)
    np.testing.assert_array_equal(out, np.where(np.isnan(x), dtype(0), x))
    np.testing.assert_array_equal(np.signbit(out), np.signbit(np.where(np.isnan(x), dtype(0), x)))
    zeros = aclnn.hardshrink_backward(-np.ones_like(x), x, -1.0)[:2]
    assert not zeros.any()
    assert not np.signbit(zeros).any()


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


@pytest.mark.parametrize(
    ("x", "alpha", "scale", "input_scale"),
    [
        (-7.883704408446341e-37, 3e38, 1e-38, -3e38),  # what rounding takes from 236 shows
        (-2.2250738585072014e-308, 1e30, 1e30, 1e-30),  # an exponent that is less than doubles are
        (-5e-324, -2.0, 3.0, 0.5),
        (-1.5e-323, -2.0, 3.0, 0.5),
        (-5e-324, 1.0, 1.0, 1e-8),
        (-1e-17, 1.0, 1.0, 1.0),
        (-0.41476470373320495, 1.0, 1.0, 1.0),
        (-1e300, 0.0, 1.0, -1e30),  # 0 times what no double holds
        (-1e300, 1.0, 0.0, -1e30),
        (-1e300, 1.0, -0.0, 1e30),
        (-4.8e-301, 1.0, -0.0, 1e-30),
    ],
)
def test_elu_of_float64_near_the_ends_of_its_range(x, alpha, scale, input_scale):
    factors = [float(np.float32(factor)) for factor in (alpha, scale, input_scale)]
    exact = oracle.JUDGES["elu"].digits(
        x, **dict(zip(("alpha", "scale", "input_scale"), factors, strict=True))
    )
    found = aclnn.elu(np.array([x]), alpha=alpha, scale=scale, input_scale=input_scale)[0]
    assert np.signbit(found) == (exact < 0)
    assert abs(mpmath.mpf(float(found)) - exact) <= 2 * np.spacing(abs(float(exact)))


# --- Computed NaNs --------------------------------------------------------------------------------

QUIET = {"float32": 0x7FC00000, "float64": 0x7FF8 << 48, "float16": 0x7E00, "bfloat16": 0x7FC0}


def with_nans(dtype, shape, negative):
    """Rows and columns of which some hold infinities of both signs, or a NaN."""
    x = np.random.default_rng(0).standard_normal(shape)
    x[0, :2] = np.inf, -np.inf
    x[:2, 0] = -np.inf, np.inf
    x[2, -1] = np.nan
    x = x.astype(dtype)
    bits = x.view(f"u{x.itemsize}")
    if negative:
        bits[2, -1] = QUIET[x.dtype.name] | 1 << 8 * x.itemsize - 1 | 1
    return x


def nans_of(y):
    y = np.ascontiguousarray(y)
    return y.view(f"u{y.itemsize}")[np.isnan(y)]


REDUCTIONS = [
    (name, {"dim": dim}) for name in ("sum", "mean", "amax") for dim in (0, 1)
] + [("cumsum", {"dim": 1}), ("var", {"dim": 1})]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), REDUCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("negative", [False, True])
def test_nans_of_reductions_are_all_the_same_one(name, options, dtype, negative):
    for shape in ((4, 7), (3, 200), (40, 130)):
        x = with_nans(np.dtype(dtype), shape, negative)
        for materialize in (False, True):
            y = aclnn.executor(name, x, **options, materialize=materialize).run()
            found = nans_of(y)
            assert found.size
            assert (found == QUIET[dtype]).all(), (shape, materialize)


@pytest.mark.parametrize("name", ["matmul", "bmm", "mv", "addmm"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("negative", [False, True])
def test_nans_of_products_are_all_the_same_one(name, dtype, negative):
    for shape in ((4, 7), (3, 200), (40, 130)):
        a = with_nans(np.dtype(dtype), shape, negative)
        b = np.ones((shape[1], 5), a.dtype)
        operands = {
            "matmul": (a, b),
            "bmm": (np.stack([a, a]), np.stack([b, b])),
            "mv": (a, b[:, 0].copy()),
            "addmm": (np.zeros((shape[0], 5), a.dtype), a, b),
        }[name]
        for materialize in (False, True):
            y = aclnn.executor(name, *operands, materialize=materialize).run()
            found = nans_of(y)
            assert found.size
            assert (found == QUIET[dtype]).all(), (shape, materialize)
