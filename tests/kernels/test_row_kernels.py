"""Row-wise kernels: accuracy against exact references, and one result for all layouts.

References compute with mpmath's numbers of many digits, or with exact fractions, from the definitions.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import ml_dtypes
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import unit
from references import EPS, ROW_REFERENCES

from aclnn import isa, kernels

BUILT = isa.available()
KERNELS = isa.row_kernels()
RECORDS = kernels.records()
DTYPES = {
    "float32": np.dtype(np.float32),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float64": np.dtype(np.float64),
}
HALVES = ("float16", "bfloat16")
GRADIENTS = [name for name in KERNELS.KERNELS if "backward" in name]
mp = mpmath.mp


# --- Running a kernel ---------------------------------------------------------------------------


class Tile(NamedTuple):
    """Operands of a kernel: arrays of rows x cols, (cols,) or (rows,), and where results go."""

    ref: object
    inputs: list[np.ndarray]
    outputs: list[np.ndarray]


def roles(name, present=None):
    kernel = KERNELS.KERNELS[name]
    return [
        [
            o
            for o in side
            if present is None
            or (
                (not o.optional or o.name in present)
                and (o.needed_by or "dbias") in (*present, "dbias")
            )
        ]
        for side in (kernel.inputs, kernel.outputs)
    ]


def triple(array, role):
    """Address and strides of an operand, for a tile."""
    address = array.__array_interface__["data"][0]
    if role in ("input", "out"):
        return address, array.strides[0], array.strides[1]
    if role == "column":
        return address, 0, array.strides[0]
    return address, array.strides[0], 0


def run(name, inputs, outputs, *, present=None, result_dtype=None, kernels=KERNELS, rows=None):
    """Run a kernel on arrays; `rows` at a time, if that is said."""
    given_roles, made_roles = roles(name, present)
    dtypes = [tuple(a.dtype.name for a in side) for side in (inputs, outputs)]
    ref = kernels.row_kernel(name, *dtypes, result_dtype=result_dtype, present=present)
    whole = inputs[0].shape
    for first in range(0, whole[0], rows or whole[0]):
        part = slice(first, first + (rows or whole[0]))
        views = [
            [
                triple(a if o.role == "column" else a[part], o.role)
                for a, o in zip(side, found, strict=True)
            ]
            for side, found in ((inputs, given_roles), (outputs, made_roles))
        ]
        count = min(rows or whole[0], whole[0] - first)
        numbers = (EPS,) if name in ("layer_norm", "rms_norm", "moments") else ()
        kernels.run(ref, *views, count, whole[1], numbers)
    return outputs


def empty_outputs(name, shape, dtype, present=None, statistics=None):
    made = []
    for o in roles(name, present)[1]:
        kind = statistics or dtype if o.name in ("mean", "rstd") else dtype
        made.append(np.zeros(shape if o.role == "out" else shape[0], kind))
    return made


def operands(name, x, rng, dtype, present=None):
    """Inputs of a kernel of which `x` is the first."""
    rows, cols = x.shape
    found = []
    for o in roles(name, present)[0]:
        if o.role == "input":
            values = x if o is roles(name, present)[0][0] else rng.standard_normal(x.shape)
            if o.name == "output":
                values = values - 3 if name == "log_softmax_backward" else abs(values) / cols
        elif o.role == "column":
            values = rng.standard_normal(cols)
        else:
            values = rng.standard_normal(rows)
        values = abs(values) + 0.25 if o.name == "rstd" else values
        found.append(np.asarray(values).astype(dtype))
    return found


# --- References of rows ---------------------------------------------------------------------------


def exact_operand(operand, array, row):
    if operand.role == "given":
        return mpmath.mpf(float(array[row]))
    return [mpmath.mpf(float(v)) for v in (array if operand.role == "column" else array[row])]


def expected(name, inputs, present=None):
    """References by output, for every row."""
    given_roles, made_roles = roles(name, present)
    exact_row = ROW_REFERENCES[RECORDS[name].reference]
    rows = []
    for i in range(len(inputs[0])):
        pairs = zip(given_roles, inputs, strict=True)
        rows.append(exact_row({o.name: exact_operand(o, array, i) for o, array in pairs}))
    return [[row[o.name] for row in rows] for o in made_roles]


def ulp(value, dtype):
    """A unit of the last place at an exact value."""
    if dtype.name != "bfloat16":
        return unit(value, dtype)
    exponent = mpmath.frexp(value)[1] - 1 if value else -126
    return mpmath.mpf(2) ** (max(exponent, -126) - 7)


def worst_ulp(actual, exact):
    """The largest error of an output, in units of the last place at the exact value.

    In float64, at the largest of the terms that it is the sum of: nothing computes with more digits.
    """
    found = actual.reshape(len(actual), -1).astype(np.float64)
    worst = 0.0
    for row, values in zip(found, exact, strict=True):
        for a, e in zip(row, values, strict=True):
            place = e.size if actual.dtype == np.float64 else e.value
            worst = max(
                worst, float(abs(mpmath.mpf(float(a)) - e.value) / ulp(place, actual.dtype))
            )
    return worst


def limit(name, dtype):
    if dtype in HALVES:
        return 0.501
    if dtype == "float32":
        return 2.0 if name in GRADIENTS else 1.0
    return 4.0


# --- Accuracy -----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(60):
        yield


@cache
def judged(name, dtype):
    """Operands of several shapes, and what is expected of them, whatever their layout."""
    rng = np.random.default_rng(3)
    found = []
    for shape, scale in (((5, 61), 3), ((2, 700), 1), ((10, 1), 2), ((17, 5), 20)):
        inputs = operands(name, rng.standard_normal(shape) * scale, rng, DTYPES[dtype])
        found.append((shape, inputs, expected(name, inputs)))
    return found


@pytest.mark.parametrize("layout", ["last", "first"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KERNELS.KERNELS)
def test_results_are_the_exact_values_rounded(name, dtype, layout):
    for shape, inputs, wanted in judged(name, dtype):
        laid = inputs
        if layout == "first":
            laid = [np.asfortranarray(a) if a.ndim == 2 else a for a in inputs]
        outputs = run(name, laid, empty_outputs(name, shape, DTYPES[dtype]))
        for actual, exact in zip(outputs, wanted, strict=True):
            assert worst_ulp(actual, exact) <= limit(name, dtype), shape


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_of_numbers_that_hardly_differ(dtype):
    rng = np.random.default_rng(4)
    x = (1e4 + rng.standard_normal((4, 600)) * 0.01).astype(DTYPES[dtype])
    # All but one are a 600th of that one's distance from the mean.
    x[2] = np.asarray(1e4, DTYPES[dtype])
    x[2, 0] = np.nextafter(x[2, 0], np.asarray(np.inf, DTYPES[dtype]))
    x[3] = np.asarray(7.25, DTYPES[dtype])
    x[3, 5] = np.asarray(7.5, DTYPES[dtype])
    present = ("mean", "rstd")
    outputs = run(
        "layer_norm", [x], empty_outputs("layer_norm", x.shape, x.dtype, present), present=present
    )
    for actual, exact in zip(outputs, expected("layer_norm", [x], present), strict=True):
        assert worst_ulp(actual, exact) <= limit("layer_norm", dtype)


@pytest.mark.parametrize("name", BUILT)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("times", [1, 4, 5])
def test_halves_are_rounded_once(times, dtype, name):
    """Beside a tie, by less than a float32 shows: in registers by themselves, and by twos."""
    step = 2.0**-10 if dtype == "float16" else 2.0**-7
    x = np.array([[-1, 1, -1, 1, -1, 1, -1, 1, -1, 1] * times], DTYPES[dtype])
    weight = np.full(10 * times, 2.0**-40, np.float32)
    bias = (
        np.repeat([1, -1, 1 + step, -1 - step, 1], 2) + np.repeat([1, -1, 1, -1, 1], 2) * step / 2
    )
    inputs = [x, weight, np.tile(bias, times).astype(np.float32)]
    (actual,) = run(
        "layer_norm",
        inputs,
        [np.zeros_like(x)],
        present=("weight", "bias"),
        kernels=isa.row_kernels(name),
    )
    exact = expected("layer_norm", inputs, ("weight", "bias"))[0]
    assert worst_ulp(actual, exact) <= 0.5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_softmax_near_0(dtype):
    """The largest element's result is all that the others leave of it: it must not become 0."""
    x = np.array([[0, -50, -60, -87], [30, 30 - 1e-6, -7, 2], [5, -80, 5, -80], [1, -20, -90, -95]])
    x = x.astype(DTYPES[dtype])
    (actual,) = run("log_softmax", [x], [np.zeros_like(x)])
    assert worst_ulp(actual, expected("log_softmax", [x])[0]) <= limit("log_softmax", dtype)
    assert actual[0, 0] < 0


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_log_softmax_backward_where_exponentials_are_small(dtype):
    """Among gradients of 0, results are products that other elements' sums do not hide."""
    far = [-np.inf, -1e4, -231, -229.5, -120, -90, -88, -86.5, -60, -17, -3, -0.25]
    y = np.resize(far, (3, 64)).astype(dtype)
    g = np.zeros(y.shape, np.float32)
    g[0, -1], g[1, 5:9], g[2, ::7] = 3e4, 1, 2e3
    g = (g if dtype == "float16" else g * np.float32(1e30)).astype(dtype)
    made = run(
        "log_softmax_backward", [g, y], empty_outputs("log_softmax_backward", y.shape, dtype)
    )
    exact = expected("log_softmax_backward", [g, y])
    for actual, values in zip(made, exact, strict=True):
        assert worst_ulp(actual, values) <= limit("log_softmax_backward", dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_terms_that_cancel(name, dtype):
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((12, 333)) * 2.0 ** rng.integers(-12, 12, (12, 333))).astype(
        DTYPES[dtype]
    )
    x[:, 200:] = -x[:, :133]
    x[:, 133:200] = 0
    x[:, 150] = np.arange(12) / 1024
    x[:6, 160] = 2.0**-20
    if dtype == "float32":
        x[3, 10], x[3, 20], x[3, 30] = 1e20, 1.0, -1e20
    (actual,) = run(name, [x], [np.zeros(12, x.dtype)])
    for row, found in zip(x, actual, strict=True):
        exact = sum(Fraction(float(v)) for v in row) / (len(row) if name == "mean" else 1)
        error = abs(Fraction(float(found)) - exact)
        assert error <= Fraction(limit(name, dtype)) * Fraction(
            str(ulp(mpmath.mpf(float(exact)), x.dtype))
        )


@pytest.mark.parametrize("name", BUILT)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("order", "CF")
def test_large_elements_are_seen_wherever_they_lie(order, dtype, name):
    """Two that cancel in one partial sum take the 1 between them along, in double precision."""
    for k in range(32):
        x = np.ones((32, 96), DTYPES[dtype])
        x[k, k], x[k, k + 64] = 2.0**60, -(2.0**60)
        outputs = [np.zeros(32, DTYPES[dtype])]
        (actual,) = run("sum", [in_order(x, order)], outputs, kernels=isa.row_kernels(name))
        exact = np.full(32, 96)
        exact[k] = 94
        np.testing.assert_array_equal(actual.astype(np.float32), exact)


def test_softmax_backward_of_gradients_that_are_all_but_equal():
    rng = np.random.default_rng(6)
    y = np.abs(rng.standard_normal((2, 900))).astype(np.float32)
    y /= y.sum(1, keepdims=True)
    g = np.float32(3) + (rng.integers(-2, 3, y.shape) * 2.0**-21).astype(np.float32)
    (actual,) = run("softmax_backward", [g, y], [np.zeros_like(g)])
    assert worst_ulp(actual, expected("softmax_backward", [g, y])[0]) <= 2


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_long_rows(dtype):
    rng = np.random.default_rng(7)
    x = (rng.standard_normal((2, 65_536)) * 4).astype(DTYPES[dtype])
    wide = x.astype(np.longdouble)
    powers = np.exp(wide - wide.max(1, keepdims=True))
    for layout in "CF":
        (actual,) = run("softmax", [np.array(x, order=layout)], [np.zeros_like(x, order=layout)])
        exact = powers / powers.sum(1, keepdims=True)
        # Subnormal halves have larger units.
        size = np.maximum(
            np.spacing(exact.astype(x.dtype)).astype(np.longdouble),
            np.finfo(x.dtype).smallest_subnormal,
        )
        assert np.max(np.abs(actual - exact) / size) <= (limit("softmax", dtype))
        (total,) = run("sum", [np.array(x, order=layout)], [np.zeros(2, x.dtype)])
        for row, found in zip(x, total, strict=True):
            exact_sum = mpmath.fsum(mpmath.mpf(float(v)) for v in row)
            assert abs(mpmath.mpf(float(found)) - exact_sum) <= limit("sum", dtype) * ulp(
                exact_sum, x.dtype
            )


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["sum", "mean", "amax", "softmax", "log_softmax", *GRADIENTS])
def test_dense_rows_have_the_bits_of_walks(name, dtype):
    """Strided rows are walked over block by block; dense ones, along or beside each other, are not."""
    for shape in ((70, 40), (9, 1056), (131, 513), (37, 200), (2, 5000)):
        x = rng_of(name).standard_normal(shape)
        if name not in GRADIENTS:
            x[0], x[1, ::3] = 0, -x[1, 0]
            x[:, 7] *= np.where(np.arange(shape[0]) % 5, 1, np.nan)
        laid = operands(name, x, rng_of(dtype), DTYPES[dtype])
        found = []
        for order in ("strided", "C", "F"):
            given = [in_order(a, order) for a in laid]
            made = [in_order(a, order) for a in empty_outputs(name, shape, DTYPES[dtype])]
            found.append([np.ascontiguousarray(a).tobytes() for a in run(name, given, made)])
        assert found[0] == found[1] == found[2], shape


def rng_of(text):
    return np.random.default_rng(list(text.encode()))


def in_order(array, order):
    """A copy, of which elements lie in this order, or nowhere beside each other."""
    if array.ndim < 2:
        return array
    if order != "strided":
        return np.array(array, order=order)
    wide = np.zeros([2 * n for n in array.shape], array.dtype)[::2, ::2]
    wide[...] = array
    return wide


# --- Integers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", "CFS")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "bool"])
def test_sums_of_integers_are_exact_and_wrap(dtype, layout):
    rng = np.random.default_rng(8)
    kind = np.dtype(dtype)
    info = np.iinfo(kind) if dtype != "bool" else None
    low, high = (0, 2) if info is None else (info.min, info.max)
    for shape in ((1, 1), (3, 700), (300, 40)):
        x = rng.integers(low, high, shape, dtype=np.int64).astype(kind)
        x = x[:, ::-1] if layout == "S" else np.array(x, order=layout)
        for out in ("int64", "int32", "uint8"):
            (actual,) = run("sum", [x], [np.zeros(shape[0], out)])
            exact = [sum(map(int, row)) % 2 ** (8 * actual.itemsize) for row in x]
            assert [int(v) % 2 ** (8 * actual.itemsize) for v in actual] == exact


def test_any_byte_but_0_is_true():
    x = np.array([[0, 1, 2, 255]], np.uint8).view(bool)
    assert run("sum", [x], [np.zeros(1, np.int64)])[0] == 3


# --- Special rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_special_rows(name, dtype, order):
    """As PyTorch has it: all -inf, any +inf and any NaN make a row of NaNs; -inf is probability 0."""
    inf, nan = np.inf, np.nan
    rows = [[-inf] * 11, [0, inf, *[1] * 9], [nan, *[2] * 10], [inf, -inf, nan, *[0] * 8],
            [0, -inf, *[0] * 9], [*[3] * 10, nan], [-inf, *[-inf] * 9, 4]]  # fmt: skip
    x = np.array(rows, order=order).astype(DTYPES[dtype], order=order)
    (actual,) = run(name, [x], [np.zeros_like(x)])
    actual = actual.astype(np.float64)
    assert np.isnan(actual[[0, 1, 2, 3, 5]]).all()
    assert actual[4, 1] == actual[6, 0] == (0 if name == "softmax" else -inf)
    assert actual[6, 10] == (1 if name == "softmax" else 0)
    assert np.isfinite(actual[4, 2:]).all()


@pytest.mark.parametrize("order", "CF")
def test_special_sums(order):
    inf, nan = np.inf, np.nan
    x = np.array(
        [[inf, 1, 2], [inf, -inf, 0], [nan, 1, 2], [-inf, 0, -inf], [1, nan, inf]],
        np.float32,
        order=order,
    )
    for name, exact in (("sum", [inf, nan, nan, -inf, nan]), ("mean", [inf, nan, nan, -inf, nan]),
                        ("amax", [inf, inf, nan, 0, nan])):  # fmt: skip
        (actual,) = run(name, [x], [np.zeros(5, np.float32)])
        np.testing.assert_array_equal(actual, np.float32(exact))


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norms_of_what_is_not_finite(name):
    x = np.ones((4, 20), np.float32)
    x[1, 3], x[2, 3], x[3, 3] = np.nan, np.inf, -np.inf
    y = run(name, [x], empty_outputs(name, x.shape, x.dtype, ()), present=())[0]
    assert np.isnan(y[1]).all()
    assert np.isnan(y[2:, 3]).all()
    assert np.isfinite(y[0]).all()


def test_extreme_exponentials_in_float64():
    x = np.array([[0.0, -708.3, -720.0, -745.1, -746.0, -5000.0]])
    (actual,) = run("softmax", [x], [np.zeros_like(x)])
    assert worst_ulp(actual, expected("softmax", [x])[0]) <= 4
    g, y = np.array([[0.5, 0.25]]), np.array([[710.5, -np.inf]])
    (actual,) = run("log_softmax_backward", [g, y], [np.zeros_like(g)])
    assert actual.tolist() == [[-np.inf, 0.25]]


# --- Mixed dtypes, and absent operands ----------------------------------------------------------


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_bits_do_not_depend_on_how_operands_are_read(name, backward):
    """Float32 rows of halves, as they are and converted before, and halves that become float32."""
    rng = np.random.default_rng(12)
    halves = [(3 * rng.standard_normal((40, 1000))).astype(np.float16) for _ in range(1 + backward)]
    name += "_backward" if backward else ""
    singles = [array.astype(np.float32) for array in halves]
    want, found = np.empty_like(singles[0]), np.empty_like(singles[0])
    run(name, singles, [want])
    run(name, halves, [found], result_dtype="float32")
    np.testing.assert_array_equal(bits(found), bits(want))
    half = np.empty_like(halves[0])
    run(name, halves, [half])
    run(name, halves, [found], result_dtype="float16")
    np.testing.assert_array_equal(bits(found), bits(half.astype(np.float32)))


@pytest.mark.parametrize("statistics", ["float32", "float16"])
@pytest.mark.parametrize("dtype", HALVES)
def test_norms_of_halves_with_parameters_in_float32(dtype, statistics):
    rng = np.random.default_rng(9)
    for name in ("layer_norm", "rms_norm", "layer_norm_backward_input", "rms_norm_backward_input"):
        inputs = operands(name, rng.standard_normal((11, 90)), rng, DTYPES[dtype])
        for k, o in enumerate(roles(name)[0]):
            if o.role == "column":
                inputs[k] = rng.standard_normal(90).astype(np.float32)
        outputs = empty_outputs(name, (11, 90), DTYPES[dtype], statistics=statistics)
        run(name, inputs, outputs)
        for actual, exact in zip(outputs, expected(name, inputs), strict=True):
            assert worst_ulp(actual, exact) <= limit(name, actual.dtype.name)


@pytest.mark.parametrize("pair", list(itertools.permutations(DTYPES, 2)), ids="-".join)
@pytest.mark.parametrize("name", ["softmax", "softmax_backward", "sum"])
def test_results_are_rounded_to_their_dtype_and_then_converted(name, pair):
    source, target = (DTYPES[p] for p in pair)
    rng = np.random.default_rng(10)
    x = rng.standard_normal((13, 37)) * 3
    inputs = operands(name, x, rng, source)
    plain = run(name, inputs, empty_outputs(name, x.shape, source))[0]
    mixed = run(name, inputs, empty_outputs(name, x.shape, target), result_dtype=source.name)[0]
    np.testing.assert_array_equal(mixed, plain.astype(target))


@pytest.mark.parametrize(
    "name",
    [n for n in KERNELS.KERNELS if any(o.optional for s in KERNELS.KERNELS[n][:2] for o in s)],
)
def test_optional_operands_may_be_absent(name):
    rng = np.random.default_rng(11)
    optional = [o.name for side in KERNELS.KERNELS[name][:2] for o in side if o.optional]
    x = rng.standard_normal((9, 33))
    for count in range(len(optional) + 1):
        for present in itertools.combinations(optional, count):
            if not roles(name, present)[1]:
                continue
            inputs = operands(name, x, rng, np.float32, present)
            outputs = run(
                name, inputs, empty_outputs(name, x.shape, np.float32, present), present=present
            )
            for actual, exact in zip(outputs, expected(name, inputs, present), strict=True):
                assert worst_ulp(actual, exact) <= limit(name, "float32"), present


# --- One result for all layouts -----------------------------------------------------------------


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


@st.composite
def strided(draw, array):
    """The same elements with other strides: gaps, either order of axes, backwards."""
    steps = [draw(st.sampled_from([1, 1, 2, 3])) for _ in array.shape]
    order = draw(st.permutations(range(array.ndim)))
    storage = np.full([array.shape[axis] * steps[axis] + 1 for axis in order], 7, array.dtype)
    view = storage.transpose(np.argsort(order))
    view = view[tuple(slice(0, n * s, s) for n, s in zip(array.shape, steps, strict=True))]
    view = view[tuple(slice(None, None, draw(st.sampled_from([1, -1]))) for _ in steps)]
    view[...] = array
    return view


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_bits_do_not_depend_on_layout_tile_or_instruction_set(data):
    name = data.draw(st.sampled_from(sorted(KERNELS.KERNELS)))
    dtype = DTYPES[data.draw(st.sampled_from(sorted(DTYPES)))]
    shape = data.draw(
        st.tuples(st.integers(1, 70), st.sampled_from([1, 3, 8, 31, 64, 65, 520, 1030]))
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = rng.standard_normal(shape) * 2
    if data.draw(st.booleans()):
        x[rng.random(shape) < 0.01] = rng.choice([np.inf, -np.inf, np.nan])
    inputs = operands(name, x, rng, dtype)
    plain = run(name, inputs, empty_outputs(name, shape, dtype))
    outputs = [data.draw(strided(a)) for a in empty_outputs(name, shape, dtype)]
    # Products that are added are rounded by themselves where no instruction does both.
    fused = [i for i in BUILT if i in ("neon", "v3", "v4")]
    if isa.name() not in fused:
        fused = [isa.name()]
    run(
        name,
        [data.draw(strided(a)) for a in inputs],
        outputs,
        kernels=isa.row_kernels(data.draw(st.sampled_from(fused))),
        rows=data.draw(st.sampled_from([None, 1, 2, 9, 40])),
    )
    for actual, exact in zip(outputs, plain, strict=True):
        np.testing.assert_array_equal(bits(actual), bits(exact))


@pytest.mark.parametrize("rows", [256, 512, 600, 1024, 1056])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["softmax", "softmax_backward", "layer_norm", "amax"])
def test_bits_do_not_depend_on_how_far_columns_lie_apart(name, dtype, rows):
    """Some distances make columns displace each other in the cache: blocks of these are copied."""
    rng = np.random.default_rng(15)
    shape = (rows, 70)
    inputs = operands(name, rng.standard_normal(shape), rng, DTYPES[dtype])
    plain = run(name, inputs, empty_outputs(name, shape, DTYPES[dtype]))
    beside = [np.asfortranarray(a) if a.ndim == 2 else a for a in inputs]
    outputs = [np.asfortranarray(a) for a in empty_outputs(name, shape, DTYPES[dtype])]
    run(name, beside, outputs)
    for found, want in zip(outputs, plain, strict=True):
        np.testing.assert_array_equal(bits(found), bits(want))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_nothing_beside_the_output_is_written(data):
    name = data.draw(st.sampled_from(["softmax", "layer_norm", "sum"]))
    dtype = DTYPES[data.draw(st.sampled_from(sorted(DTYPES)))]
    shape = data.draw(st.tuples(st.integers(1, 20), st.integers(1, 70)))
    rng = np.random.default_rng(1)
    inputs = operands(name, rng.standard_normal(shape), rng, dtype)
    outputs = [data.draw(strided(np.full_like(a, 5))) for a in empty_outputs(name, shape, dtype)]
    run(name, inputs, outputs)
    for out in outputs:
        owner = out
        while owner.base is not None:
            owner = owner.base
        out[...] = 7
        assert (owner == 7).all()


@pytest.mark.parametrize("axis", ["cols", "rows"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_that_repeat_have_the_bits_of_copies(dtype, axis):
    rng = np.random.default_rng(12)
    thin = rng.standard_normal((30, 1) if axis == "cols" else (1, 70)).astype(DTYPES[dtype])
    x = np.broadcast_to(thin, (30, 70))
    for name in ("softmax", "sum"):
        repeated = run(name, [x], empty_outputs(name, x.shape, x.dtype))[0]
        copied = run(name, [x.copy()], empty_outputs(name, x.shape, x.dtype))[0]
        np.testing.assert_array_equal(bits(repeated), bits(copied))


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name", [n for n in KERNELS.KERNELS if KERNELS.KERNELS[n].outputs[0].role == "out"]
)
def test_an_output_may_lie_over_an_input(name, dtype, order):
    rng = np.random.default_rng(13)
    for shape in ((20, 70), (5, 4500)):
        inputs = [
            np.array(a, order=order)
            for a in operands(name, rng.standard_normal(shape), rng, DTYPES[dtype])
        ]
        outputs = empty_outputs(name, shape, DTYPES[dtype])
        apart = run(name, inputs, outputs)[0].copy()
        for k, o in enumerate(roles(name)[0]):
            if o.role != "input":
                continue
            own = [a.copy(order="K") for a in inputs]
            run(name, own, [own[k], *outputs[1:]])
            np.testing.assert_array_equal(bits(own[k]), bits(apart))


def test_older_instruction_sets_round_halves_alike():
    """Without FMA sums may differ in a double's last places, which a half does not show."""
    rng = np.random.default_rng(14)
    for name, dtype in itertools.product(KERNELS.KERNELS, HALVES):
        inputs = operands(name, rng.standard_normal((9, 77)), rng, DTYPES[dtype])
        found = [
            run(
                name,
                inputs,
                empty_outputs(name, (9, 77), DTYPES[dtype]),
                kernels=isa.row_kernels(i),
            )
            for i in BUILT
        ]
        for other in found[1:]:
            for a, b in zip(found[0], other, strict=True):
                np.testing.assert_array_equal(bits(a), bits(b))


# --- References to kernels ----------------------------------------------------------------------


def test_kernel_references_have_what_schedules_need():
    ref = KERNELS.row_kernel("softmax", ("float16",), ("float16",))
    assert ref.name == "softmax[float16->float16]"
    assert ref.itemsizes == (2, 2)
    assert ref.fn
    assert ref.state
    assert (ref.prepare, ref.params_size) == (0, 0)
    assert ref.cost > 0
    # Blocks of a panel at most, and half a mebibyte of exponentials.
    assert ref.scratch_bytes(64, 65_536) - 512 * 1024 <= 64 * 1024
    assert ref.scratch_bytes(64, 65_537) < 64 * 1024
    whole = KERNELS.row_kernel("sum", ("int8",), ("int64",))
    assert whole.scratch_bytes(5, 5) == 0


@pytest.mark.parametrize("name", KERNELS.KERNELS)
def test_scratch_is_what_rows_and_columns_need(name):
    found = roles(name)
    ref = KERNELS.row_kernel(name, *[("float32",) * len(side) for side in found])
    assert ref.scratch_bytes(1, 4) <= 4096
    sizes = (1, 7, 8, 9, 31, 32, 40, 100)
    needed = np.array(
        [[ref.scratch_bytes(rows, cols) for rows in sizes] for cols in (1, 5, 64, 700, 70_000)]
    )
    # Tiles at the edges have fewer rows, and the scratch of the others.
    assert (np.diff(needed, axis=1) >= 0).all()
    rng = np.random.default_rng(9)
    for order in "CF":
        for rows, cols in itertools.product(sizes, (1, 5, 64, 700)):
            x = np.array(rng.standard_normal((rows, cols)), np.float32, order=order)
            inputs = operands(name, x, rng, np.dtype(np.float32))
            # Memory behind the scratch is checked where the kernel returns.
            run(name, inputs, empty_outputs(name, x.shape, x.dtype))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("norm", (), ()), {}, "no row kernel is called 'norm'"),
        (("softmax", ("float32", "float32"), ("float32",)), {}, "softmax has the inputs x; 2"),
        (("softmax", ("int8",), ("float32",)), {}, "dtypes are"),
        (("softmax", ("float32",), ("float32",)), {"present": ("bias",)}, "no optional operand bias"),
        (("sum", ("int8",), ("float32",)), {}, "sums of integers are integers"),
        (("layer_norm_backward_params", (), ()), {"present": ()}, "needs an output"),
    ],
)  # fmt: skip
def test_kernels_that_there_are_not(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        KERNELS.row_kernel(*arguments, **options)
