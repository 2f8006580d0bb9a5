"""Layouts, aliasing and chunking: the same bits whatever way operands lie in memory."""

import math
import sys
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from aclnn.graph.runtime import abi
from cases import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from setups import fresh

import aclnn
from aclnn import isa
from aclnn.acl import dtypes

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT32, FLOAT16 = np.dtype(np.float32), np.dtype(np.float16)
DTYPES = [FLOAT32, FLOAT16, BFLOAT16]
BINARY = ["elu_backward", "hardshrink_backward", "gelu_backward", "leaky_relu_backward"]
QUICK = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def bits(array):
    kind = {2: np.uint16, 4: np.uint32, 8: np.uint64}[array.itemsize]
    return np.ascontiguousarray(array).view(kind)


def same_bits(a, b):
    np.testing.assert_array_equal(bits(a), bits(b))


@st.composite
def views(draw, shape, dtype, *, writable=False):
    """A view of `shape` in a larger array: gaps, any order of axes, negative and zero strides."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.integers(1, 2)) for _ in shape]
    storage_shape = [shape[axis] * steps[axis] + draw(st.integers(0, 2)) for axis in order]
    seed = draw(st.integers(0, 2**16))
    values = np.random.default_rng(seed).standard_normal(storage_shape) * 3
    storage = np.asarray(values).astype(dtype)
    view = storage.transpose(np.argsort(order)) if shape else storage
    view = view[(*(slice(0, n * s, s) for n, s in zip(shape, steps, strict=True)), ...)]
    flips = tuple(slice(None, None, draw(st.sampled_from([1, -1]))) for _ in shape)
    view = view[(*flips, ...)]
    assert view.shape == tuple(shape)
    if not writable and shape and draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 1))
        thin = np.take(view, [0], axis=axis) if shape[axis] else view
        view = np.broadcast_to(thin, shape)
    return view


SHAPES = st.lists(st.integers(0, 7), max_size=4).map(tuple)


@QUICK
@given(st.data())
def test_any_strides_give_the_bits_of_contiguous_copies(data):
    name = data.draw(st.sampled_from(BINARY))
    shape = data.draw(SHAPES)
    dtype = data.draw(st.sampled_from(DTYPES))
    g, x = data.draw(views(shape, dtype)), data.draw(views(shape, dtype))
    out = data.draw(views(shape, dtype, writable=True))
    function = getattr(aclnn, name)
    expected = function(g.copy(order="C"), x.copy(order="C"))
    owner = out
    while owner.base is not None:
        owner = owner.base
    before = owner.copy()
    marks = np.zeros(owner.shape, bool)
    touched = np.lib.stride_tricks.as_strided(
        marks.reshape(-1)[(out.__array_interface__["data"][0] - owner.__array_interface__["data"][0])
                          // out.itemsize :],
        out.shape, tuple(s // out.itemsize for s in out.strides),
    ) if out.size else None  # fmt: skip
    assert function(g, x, out=out) is out
    same_bits(out, expected)
    if touched is not None:
        touched[...] = True
    same_bits(owner[~marks], before[~marks])


@QUICK
@given(st.data())
def test_broadcasting_and_mixed_dtypes(data):
    name = data.draw(
        st.sampled_from(["hardshrink_backward", "gelu_backward", "leaky_relu_backward"])
    )
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple))

    def thinned():
        dims = [data.draw(st.sampled_from([n, 1])) for n in shape]
        return tuple(dims[data.draw(st.integers(0, len(dims) - 1)) :])

    a, b = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(DTYPES))
    g = data.draw(views(thinned(), a))
    x = data.draw(views(thinned(), b))
    result = np.broadcast_shapes(g.shape, x.shape)
    wide = np.float32 if a != b else a
    function = getattr(aclnn, name)
    actual = function(g, x)
    assert actual.shape == result
    assert actual.dtype == wide
    whole = [np.ascontiguousarray(np.broadcast_to(v.astype(wide), result)) for v in (g, x)]
    same_bits(actual, function(*whole))


OUT_OF_ANY_DTYPE = ["elu_backward", "leaky_relu", "leaky_relu_backward", "hardshrink", "elu"]


def any_bits(rng, count, dtype):
    """Usual numbers, and every other one of random bits."""
    numbers = (rng.standard_normal(count) * 4).astype(dtype)
    kind = f"u{numbers.itemsize}"
    bits = rng.integers(0, 1 << (8 * numbers.itemsize), count, np.uint64).astype(kind)
    numbers.view(kind)[::2] = bits[::2]
    return numbers


@pytest.mark.parametrize(
    "out_dtype", [*DTYPES, np.float64, np.complex64], ids=lambda d: str(np.dtype(d))
)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", OUT_OF_ANY_DTYPE)
def test_outputs_of_another_dtype_are_rounded_results_converted(name, dtype, out_dtype):
    """Results have the inputs' dtype first: the output's must not show through."""
    rng = np.random.default_rng(8)
    function = getattr(aclnn, name)
    for count in (1, 7, 33, 513, 1500, 40_000, 600_000):
        inputs = [any_bits(rng, count, dtype) for _ in range(1 + ("backward" in name))]
        with np.errstate(all="ignore"):
            expected = function(*inputs).astype(out_dtype)
        for out in (np.empty(count, out_dtype), np.empty(2 * count, out_dtype)[::2]):
            function(*inputs, out=out)
            nans = np.isnan(expected)
            assert (np.isnan(out) == nans).all()
            same_bits(np.where(nans, 0, out), np.where(nans, 0, expected))


@pytest.mark.parametrize("second", DTYPES, ids=str)
@pytest.mark.parametrize("first", DTYPES, ids=str)
def test_operands_that_repeat_along_rows_longer_than_blocks(first, second):
    rng = np.random.default_rng(5)
    for columns in (300, 511, 512, 513, 1023, 1024, 1025, 2051, 5000):
        column, row = (rng.standard_normal(shape) for shape in ((5, 1), (1, columns)))
        matrix = rng.standard_normal((5, columns))
        for g, x in ((column, matrix), (matrix, column), (column, row), (row, column)):
            operands = [g.astype(first), x.astype(second)]
            whole = [np.ascontiguousarray(m) for m in np.broadcast_arrays(*operands)]
            same_bits(aclnn.hardshrink_backward(*operands), aclnn.hardshrink_backward(*whole))
            same_bits(aclnn.gelu_backward(*operands), aclnn.gelu_backward(*whole))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "name",
    [
        *BINARY, "logit_backward", "leaky_relu", "elu", "gelu", "logit",
        "gelu with tanh", "gelu_backward with tanh",
    ],
)  # fmt: skip
def test_any_length_offset_and_chunk(name, dtype):
    rng = np.random.default_rng(3)
    x = (rng.uniform(0, 1, 1500) if "logit" in name else rng.standard_normal(1500) * 4).astype(
        dtype
    )
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 1.0, 3e38], np.float32)
    with np.errstate(all="ignore"):
        x[rng.permutation(1500)[:90]] = np.resize(special, 90).astype(dtype)
    g = (rng.standard_normal(1500) * 2).astype(dtype)
    arguments = [g, x] if "backward" in name else [x]
    name, _, form = name.partition(" with ")
    function = getattr(aclnn, name)
    function = partial(function, approximate=form) if form else function
    whole = function(*arguments)
    for length in [*range(1, 71), 255, 256, 257, 513, 1024]:
        for start in (0, 1, 7, 33):
            part = slice(start, start + length)
            same_bits(function(*(a[part] for a in arguments)), whole[part])
    same_bits(function(*(a[::-1] for a in arguments)), whole[::-1])
    same_bits(function(*(a[::3] for a in arguments)), whole[::3])
    square = [a[:1444].reshape(38, 38).T for a in arguments]
    same_bits(function(*square), whole[:1444].reshape(38, 38).T)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_threads_tiles_and_materialized_graphs_give_the_same_bits(dtype):
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((512, 700)) * 3).astype(dtype).T
    g = rng.standard_normal((700, 512)).astype(dtype)
    before = aclnn.get_num_threads()
    try:
        aclnn.set_num_threads(1)
        one = aclnn.gelu_backward(g, x)
        aclnn.set_num_threads(2)
        same_bits(aclnn.gelu_backward(g, x), one)
        for strategy in ("default", "bucket", "naive"):
            ex = aclnn.executor("gelu_backward", g, x, materialize=True, strategy=strategy)
            assert ex.workspace_size > 0
            same_bits(ex.run(), one)
    finally:
        aclnn.set_num_threads(before)


@each("name", ["leaky_relu", "elu", "hardshrink_backward", "gelu_backward", "logit_backward"])
@each("dtype", DTYPES, ids=str)
@each("shift", [0, 1, -1, 7, 300])
@each("which", [0, 1])
def test_overlap_behaves_as_if_inputs_were_read_first(name, dtype, shift, which):
    rng = np.random.default_rng(5)
    n = 1000
    storage = rng.uniform(0, 1, n + 600).astype(dtype)
    source = storage[300 : 300 + n]
    target = storage[300 + shift : 300 + shift + n]
    other = rng.uniform(0, 1, n).astype(dtype)
    arguments = [source] if "backward" not in name else [source, other][:: 1 if which == 0 else -1]
    function = getattr(aclnn, name)
    expected = function(*(a.copy() for a in arguments))
    canaries = storage.copy()
    function(*arguments, out=target)
    same_bits(target, expected)
    outside = np.ones(len(storage), bool)
    outside[300 + shift : 300 + shift + n] = False
    same_bits(storage[outside], canaries[outside])


def test_transposed_and_interleaved_overlap():
    storage = np.random.default_rng(6).standard_normal((64, 64)).astype(np.float32)
    expected = aclnn.gelu(storage.T.copy())
    aclnn.gelu(storage.T, out=storage)
    same_bits(storage, expected)
    line = np.arange(-50, 50, dtype=np.float32)
    expected = aclnn.leaky_relu(line[::2].copy())
    aclnn.leaky_relu(line[::2], out=line[1::2])
    same_bits(line[1::2], expected)


@pytest.mark.parametrize("kinds", [(FLOAT16, FLOAT32), (FLOAT32, FLOAT16)], ids=str)
def test_inputs_and_outputs_of_two_sizes_at_the_same_address(kinds):
    storage = np.linspace(-2, 2, 20_000, dtype=np.float32)
    x, out = (storage.view(kind)[:10_000] for kind in kinds)
    wanted = aclnn.leaky_relu(x.copy(), 0.5).astype(out.dtype)
    assert aclnn.leaky_relu(x, 0.5, out=out) is out
    same_bits(out, wanted)


def computed(level, formula, operands, scalars, dtype=None, rounded_to=None):
    """One run of a kernel over operands, all at once, into their dtype or another."""
    rows = [operand[None] for operand in operands]
    return computed_alone(level, formula, rows, scalars, dtype, rounded_to)[0]


def computed_alone(level, formula, operands, scalars, dtype=None, rounded_to=None):
    """The same of each row by itself."""
    kernels = isa.kernels(level)
    dtype = operands[0].dtype if dtype is None else dtype
    names = tuple(operand.dtype.name for operand in operands)
    ref = kernels.compute_kernel(formula, names, dtype.name, rounded_to)
    out = np.empty(operands[0].shape, dtype)
    whole = [(a.ctypes.data, a.strides[0], a.itemsize) for a in (*operands, out)]
    for row in range(len(out)):
        places = [(begin + row * stride, 0, size) for begin, stride, size in whole]
        kernels.run(ref, places[:-1], places[-1], 1, out.shape[1], scalars)
    return out


EDGES = [
    0.0, 1.0, 0.5, 0.25, 0.75, 2.0**-149, 2.0**-126, 2.0**-120, 1e-30, 2.0**-25, 1e-3, 0.7517915, 0.7524614,
    np.nextafter(np.float32(0.7517915), np.float32(1)), 0.75, 0.7525, 8.9, 9.0, 9.1, 14.4, 15.1, 0.7518, 5.5, 11.9, 12.0, 12.1, 12.9, 13.1,
    37.6, 79.9, 80.1, 88.0, 104.0, 1e10, 1e30, 3.4e38, np.inf, np.nan,
]  # fmt: skip
_CASES = {
    "elu": [
        (1, 1, 1),
        (1.625, 1.0625, 0.5),
        (-1.3, 1, 2),
        (1, 1, -0.5),
        (0, 1, 1),
        (1e-9, 1, 3000),
        (0.3, np.inf, 1),
        (1, 1, 1000),
    ],
    "elu_backward": [(1, 1, 1), (1.625, 1.0625, 0.5), (1, 1, -0.5), (0, 1, 1), (1e-9, 1, 3000)],
    "gelu": [()],
    "gelu_tanh": [()],
    "gelu_backward": [()],
    "gelu_backward_tanh": [()],
    "logit": [(-1,), (0,), (1e-6,), (0.125,), (0.5,), (0.5000001,), (0.75,), (1,), (2,), (np.nan,)],
    "logit_backward": [(-1,), (0,), (0.125,), (0.5,), (0.75,), (1,), (2,), (np.inf,)],
    "leaky_relu": [(0.01,), (0.75,), (-1.5,), (0,), (1e-38,), (np.inf,)],
    "leaky_relu_backward": [(0.01,), (0.75,), (-1.5,), (0,), (1e-38,), (np.inf,)],
    "hardshrink": [(0.5,), (0,), (-1,), (-(2.0**-120),), (np.nan,)],
    "hardshrink_backward": [
        (0.5,),
        (0,),
        (-1,),
        (2.0**-25,),
        (7e4,),
        (3e38,),
        (np.inf,),
        (np.nan,),
    ],
}
# As plans give them to kernels.
SCALARS = {
    formula: [tuple(np.float32(scalars).tolist()) for scalars in cases]
    for formula, cases in _CASES.items()
}

_PLAIN = (
    *("sigmoid", "sigmoid_backward", "silu", "silu_backward", "fast_gelu", "glu"),
    *("fast_gelu_backward", "tanh", "tanh_backward", "log_sigmoid", "log_sigmoid_backward"),
    *("mish", "mish_backward", "selu", "selu_backward", "hardsigmoid", "hardswish"),
    *("hardswish_backward", "hardswish_backward_v2", "times_silu", "times_gelu_tanh"),
    *(
        "times_gelu",
        "exp",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "rsqrt",
        "mul",
        "square",
        "div",
    ),
    *("sin", "cos", "erf", "exp2", "floor", "ceil", "trunc", "frac", "round", "sign"),
    *("reciprocal", "sqrt", "neg", "abs", "maximum", "minimum", "relu", "relu_backward"),
    *("squared_relu", "prelu", "hardsigmoid_backward", "lerp"),
    *("eq", "ne", "lt", "le", "gt", "ge"),
    *("logical_and", "logical_or", "logical_xor", "logical_not"),
)
# Of formulas that are written once: numbers, as their records say of them.
_ONCE = {
    **{formula: [()] for formula in _PLAIN},
    "swish": [(1.0,), (-0.5,)],
    "swish_backward": [(1.0,), (-0.5,)],
    "softplus": [(1.0, 20.0), (0.5, 3.0)],
    "softplus_backward": [(1.0, 20.0), (0.5, 3.0)],
    "celu": [(1.0,), (-0.5,)],
    "clipped_swiglu": [(1.75, 7.0, 1.0)],
    "add": [(1.0,), (0.3125,)],
    "sub": [(1.0,), (-2.5,)],
    "rsub": [(1.0,), (0.3125,)],
    "adds": [(1.5, 1.0), (0.3, 1.0), (0.75, -2.0)],
    "subs": [(1.5, 1.0), (0.3, 1.0), (0.75, -2.0)],
    "rsubs": [(1.5, 1.0), (0.3, 1.0), (0.75, -2.0)],
    "muls": [(0.3125,), (0.3,)],
    "divs": [(0.75,), (0.3,)],
    "add_relu": [(1.0,), (0.3125,)],
    "clamp": [(-0.5, 3.0), (3.0, -0.5), (math.nan, 1.0), (-math.inf, math.nan)],
    "threshold": [(0.25, -2.0), (-1.0, math.nan)],
    "threshold_backward": [(0.25,), (-1.0,)],
    "hardtanh_backward": [(-0.5, 1.0), (1.0, -1.0)],
    "softshrink": [(0.5,), (0.1,), (-1.0,), (math.nan,)],
    "softshrink_backward": [(0.5,), (-1.0,)],
    "shrink": [(0.5, 0.25), (-1.0, 0.1), (0.75, -2.0)],
    "rrelu_with_noise": [(0.125, 0.333), (-0.5, 0.5)],
    "addcmul": [(1.0,), (0.3,), (-2.0,)],
    "lerps": [(0.25,), (0.7,), (-3.0,)],
}
FORMS = {
    formula: [tuple(np.float32(scalars).tolist()) for scalars in cases]
    for formula, cases in _ONCE.items()
}
OF_TWO = (
    *("add", "sub", "rsub", "mul", "div", "add_relu", "maximum", "minimum", "prelu"),
    *("glu", "times_silu", "times_gelu", "times_gelu_tanh", "clipped_swiglu"),
    *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "lerps"),
)
OF_THREE = "addcmul", "lerp"


def operands_of(formula, a, b):
    """So many of them as it takes; the third ones are b, in another order."""
    if formula in OF_THREE:
        return [a, b, np.random.default_rng(5).permutation(b)]
    return [a, b] if "_backward" in formula or formula in OF_TWO else [a]


def test_every_fast_path_is_compared_with_the_form_in_double():
    built = [found for level in isa.available() if (found := isa.simd_kernels(level))]
    if not built:
        pytest.skip("this CPU has no vectors that fast paths are made for")
    for kernels in built:
        paths = kernels.paths()
        compared = SCALARS.keys() | FORMS.keys()
        assert paths.keys() == compared, "a formula with a fast path gets scalars in SCALARS"


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, BFLOAT16], ids=lambda d: np.dtype(d).name
)
@each("formula", [*SCALARS, *FORMS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_instruction_sets_agree_at_the_edges(formula, dtype):
    """Every pair of odd values, against the plain forms in double: signs of zeros included."""
    edges = np.array([*EDGES, *(-np.array(EDGES))], np.float32).astype(dtype)
    a, b = (np.ascontiguousarray(m.ravel()) for m in np.meshgrid(edges, edges))
    operands = operands_of(formula, a, b)
    operands = operands if len(operands) > 1 else [edges]
    for scalars in (SCALARS | FORMS)[formula]:
        results = {level: computed(level, formula, operands, scalars) for level in isa.available()}
        plain = results.pop("generic")
        for level, out in results.items():
            what = f"{level} {scalars}"
            if dtype is not np.float32:
                np.testing.assert_array_equal(bits(out), bits(plain), what)
                continue
            np.testing.assert_array_equal(np.isnan(out), np.isnan(plain), what)
            np.testing.assert_array_equal(np.signbit(out), np.signbit(plain), what)
            apart = np.where(np.isnan(plain), 0, bits(out).astype(np.int64) - bits(plain))
            worst = np.abs(apart).argmax()
            assert np.abs(apart).max() <= 1, (what, [operand[worst] for operand in operands])


LONG = 608  # a run that is looked through for zeros, and more


@pytest.mark.parametrize(
    ("kind", "out"),
    [
        (FLOAT32, FLOAT32),
        (FLOAT16, FLOAT16),
        (BFLOAT16, BFLOAT16),
        (FLOAT32, FLOAT16),
        (BFLOAT16, FLOAT32),
    ],
    ids=str,
)
@each("formula", [*SCALARS, *FORMS])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_odd_element_among_ordinary_ones(formula, kind, out):
    """Loops that expect no zeros, and none that is too small or no number, notice a single one.

    Of two operands, it is in one of them, or in both: some pairs, as each takes a run of its own.
    """
    rng = np.random.default_rng(17)
    edges = np.array([*EDGES, *(-np.array(EDGES))], np.float32)
    ordinary = np.full_like(edges, 0.375)
    a, b = np.hstack([[edges, ordinary], [ordinary, edges], rng.choice(edges, (2, 500))])
    odd = operands_of(formula, a, b)
    odd = odd if len(odd) > 1 else [edges]
    length = LONG if kind == FLOAT32 else 96
    runs = [rng.uniform(0.1, 0.9, (x.size, length)) for x in odd]
    places = rng.integers(0, length, odd[0].size)
    for run, x in zip(runs, odd, strict=True):
        run[np.arange(x.size), places] = x
    runs = [run.astype(kind) for run in runs]
    for scalars in (SCALARS | FORMS)[formula][: 3 if kind == out == FLOAT32 else 1]:
        plain = computed("generic", formula, [run.ravel() for run in runs], scalars, out)
        for level in set(isa.available()) - {"generic"}:
            assert_near(computed_alone(level, formula, runs, scalars, out).ravel(), plain)


@pytest.mark.parametrize("formula", SCALARS)
def test_zeros_that_come_late_keep_their_signs(formula):
    """The other operand is any number: what is added to a product of 0 may have either sign."""
    rng = np.random.default_rng(18)
    ordinary = [rng.uniform(0.1, 0.9, 40_000).astype(np.float32) for _ in range(2)]
    ordinary = ordinary if "_backward" in formula else ordinary[:1]
    for k in range(len(ordinary)):
        operands = [operand.copy() for operand in ordinary]
        operands[k][30_000:34_000] = np.float32([0.0, -0.0]).repeat(2000)
        for scalars in SCALARS[formula]:
            plain = computed("generic", formula, operands, scalars)
            for level in isa.available():
                assert_near(computed(level, formula, operands, scalars), plain)


TRANSPOSED = {
    "gelu_backward": ("float16", "float16"), "elu_backward": ("float16", "float32"),
    "hardshrink_backward": ("bfloat16", "bfloat16"), "logit_backward": ("float64", "float64"),
    "elu": ("float32",), "leaky_relu": ("float16",), "gelu": ("int8",),
}  # fmt: skip


@each("shape", [(1, 9), (8, 8), (9, 7), (33, 65), (130, 517), (600, 40), (3, 999)])
@each("formula", TRANSPOSED)
def test_transposed_operands(formula, shape):
    """Every element goes where it belongs, from parts and remainders, beside others that lie along."""
    rng = np.random.default_rng(12)
    names = TRANSPOSED[formula]
    kinds = [dtypes.NUMPY[dtypes.of_name(name)] for name in names]
    dense = [(rng.random(shape) * 3).astype(kind) for kind in kinds]
    lying = [np.asfortranarray(dense[0]), *dense[1:]], [np.asfortranarray(m) for m in dense]
    out_name = "float32" if names == ("int8",) else names[0]
    out_kind = dtypes.NUMPY[dtypes.of_name(out_name)]
    for level in isa.available():
        kernels = isa.kernels(level)
        ref = kernels.compute_kernel(formula, names, out_name)

        def run(operands, out, flags, kernels=kernels, ref=ref):
            views = [(m.ctypes.data, *m.strides) for m in operands]
            out_view = (out.ctypes.data, *out.strides)
            kernels.run(ref, views, out_view, *shape, (0.5, 1.0, 1.0), flags)
            return out

        wanted = run(dense, np.empty(shape, out_kind), 0)
        for operands in lying:
            for flags in (
                0,
                abi.TILE_PREFETCH_NEAR,
                abi.TILE_PREFETCH_NEAR | abi.TILE_PREFETCH_FAR,
            ):
                same_bits(run(operands, np.empty(shape, out_kind), flags), wanted)
                same_bits(run(operands, np.empty(shape, out_kind, "F"), flags), wanted)


@pytest.mark.parametrize("name", ["bool", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(8, 8), (33, 65), (130, 517)])
def test_copies_of_transposed_operands(name, shape):
    kind = np.dtype(np.bool_) if name == "bool" else dtypes.NUMPY[dtypes.of_name(name)]
    whole = np.random.default_rng(13).integers(0, 2, shape).astype(kind)
    source = np.asfortranarray(whole)
    for level in isa.available():
        kernels, target = isa.kernels(level), np.empty(shape, kind)
        ref = kernels.cast_kernel(name, name)
        views = [(source.ctypes.data, *source.strides)]
        kernels.run(ref, views, (target.ctypes.data, *target.strides), *shape)
        np.testing.assert_array_equal(target, whole)


def test_a_misspelt_formula_is_named():
    with pytest.raises(ValueError, match="no formula is called 'glue', they are leaky_relu, "):
        isa.kernels("generic").compute_kernel("glue", ("float32",), "float32")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("formula", SCALARS)
def test_every_element_is_written_and_no_other(formula, dtype):
    """Rows of any length that begin anywhere in a line, on every instruction set."""
    rng = np.random.default_rng(3)
    operands = [rng.random(700).astype(dtype) for _ in range(1 + ("_backward" in formula))]
    size, scalars, name = dtype.itemsize, SCALARS[formula][0], dtype.name
    for level in isa.available():
        kernels = isa.kernels(level)
        ref = kernels.compute_kernel(formula, (name,) * len(operands), name)

        def run(n, start, out, ref=ref, kernels=kernels):
            inputs = [(m.ctypes.data + start * size, 0, size) for m in operands]
            address = out.ctypes.data + start * size
            kernels.run(ref, inputs, (address, 0, size), 1, n, scalars)

        whole = np.empty(700, dtype)
        for start in range(700):
            run(1, start, whole)
        for n in (*range(1, 70), 255, 256, 257, 511, 512, 513, 600):
            start = n * 7 % 61
            out = np.full(700, -7, dtype)
            run(n, start, out)
            same_bits(out[start : start + n], whole[start : start + n])
            assert (out[:start] == -7).all(), (level, n)
            assert (out[start + n :] == -7).all(), (level, n)


# Signaling NaNs of either sign, a quiet one; and the same, quiet.
NANS = {
    "float16": ([0x7C01, 0xFD55, 0x7E11], [0x7E01, 0xFF55, 0x7E11]),
    "bfloat16": ([0x7F81, 0xFF95, 0x7FC1], [0x7FC1, 0xFFD5, 0x7FC1]),
    "float32": ([0x7F800001, 0xFFA12345, 0x7FC00011], [0x7FC00001, 0xFFE12345, 0x7FC00011]),
}


@pytest.mark.parametrize("count", [3, 600, 20_000])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_gradients_that_are_nans(dtype, count):
    """hardshrink's keep their bits, leaky ReLU's the payload; halves, which are converted, get quiet."""
    given, quiet = (np.array(nans, f"u{dtype.itemsize}").view(dtype) for nans in NANS[dtype.name])
    g, x = np.resize(given, count), np.ones(count, dtype)
    kept = g if dtype == FLOAT32 else np.resize(quiet, count)
    for level in isa.available():
        same_bits(computed(level, "hardshrink_backward", [g, x], (0.5,)), g)
        zeros = computed(level, "hardshrink_backward", [g, np.zeros_like(x)], (0.5,))
        same_bits(zeros, np.zeros_like(x))
        for slope in (0.01, 0.5):
            same_bits(computed(level, "leaky_relu_backward", [g, x], (slope,)), kept)


def test_nans_of_bfloat16_become_float32_as_they_are():
    g, x = np.array(NANS["bfloat16"][0], np.uint16).view(BFLOAT16), np.ones(3, BFLOAT16)
    for level in isa.available():
        out = computed(level, "hardshrink_backward", [g, x], (0.5,), FLOAT32, "bfloat16")
        np.testing.assert_array_equal(bits(out), bits(g).astype(np.uint32) << 16)


def moved(array, by):
    """A copy that begins `by` bytes behind a multiple of 64."""
    room = np.empty(array.nbytes + 128, np.uint8)
    start = -room.ctypes.data % 64 + by
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("formula", SCALARS)
def test_elements_at_any_address(formula, dtype):
    """Where that is undefined, only a build with UBSan fails: `make sanitize`."""
    rng = np.random.default_rng(31)
    scalars = SCALARS[formula][0]
    shape = 40, 130
    n_inputs = 1 + ("_backward" in formula)
    for kinds in [(dtype,) * n_inputs, (np.dtype(np.int32),) + (dtype,) * (n_inputs - 1)]:
        operands = [(rng.random(shape) * 3).astype(kind) for kind in kinds]
        operands[0].flat[::97] = np.inf if kinds[0] == dtype else 2**31 - 1
        for level in isa.available():
            kernels = isa.kernels(level)
            for target in (dtype, np.dtype(np.float64), np.dtype(np.complex64)):
                names = tuple(kind.name for kind in kinds)
                ref = kernels.compute_kernel(formula, names, target.name, dtype.name)
                results = []
                for by in (0, 1, 2, 3):
                    out = moved(np.zeros(shape, target), by)
                    straight, turned = ([moved(m, by) for m in operands],
                                        [moved(m.T, by) for m in operands])  # fmt: skip
                    for places in (
                        [(m.ctypes.data, *m.strides) for m in straight],
                        [(m.ctypes.data, *m.strides[::-1]) for m in turned],
                    ):
                        kernels.run(ref, places, (out.ctypes.data, *out.strides), *shape, scalars)
                        results.append(out.tobytes())
                assert len(set(results)) == 1, (level, target)


@pytest.mark.parametrize("target", [*DTYPES, np.dtype(np.float64), np.dtype(np.int64)], ids=str)
def test_casts_and_copies_at_any_address(target):
    rng = np.random.default_rng(32)
    for kind in (*DTYPES, np.dtype(np.float64), np.dtype(np.int16), np.dtype(np.int64)):
        if target.kind == "i" and kind != target:
            continue
        x = (rng.random((30, 70)) * 9).astype(kind)
        for level in isa.available():
            kernels = isa.kernels(level)
            ref = kernels.cast_kernel(kind.name, target.name)
            results = []
            for by in (0, 1, 3):
                source, turned = moved(x, by), moved(x.T, by)
                out = moved(np.zeros(x.shape, target), by)
                for place in (
                    (source.ctypes.data, *source.strides),
                    (turned.ctypes.data, *turned.strides[::-1]),
                ):
                    for flags in (0, STREAMED):
                        kernels.run(
                            ref, [place], (out.ctypes.data, *out.strides), *x.shape, (), flags
                        )
                        results.append(out.tobytes())
            assert len(set(results)) == 1, (level, kind)


STREAMED = abi.TILE_PREFETCH_NEAR | abi.TILE_PREFETCH_FAR | abi.TILE_STREAM


@pytest.mark.parametrize(("rows", "cols"), [(1, 50_003), (3, 16_400), (2, 33_000), (5, 61)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@each("formula", SCALARS)
def test_what_goes_past_the_cache(formula, dtype, rows, cols):
    """Results wait there for their doubts, whatever follows: blocks that are shorter, rows that begin
    within a line, elements that need a second look or other loops."""
    rng = np.random.default_rng(19)
    scalars = SCALARS[formula][0]
    operands = [rng.random((rows, cols)) for _ in range(1 + ("_backward" in formula))]
    for operand in operands:
        strange = (0.0, -0.0, 1.0, 2.5, -1.5, np.nan, np.inf, -np.inf, 1e-7)
        operand.flat[rng.integers(rows * cols * 2 // 3, rows * cols, 9)] = strange
    operands = [operand.astype(dtype) for operand in operands]
    whole = np.empty((rows, cols + 40), dtype)
    start = -whole.ctypes.data % 64 // dtype.itemsize
    out = whole[:, start : start + cols]
    for level in isa.available():
        kernels = isa.kernels(level)
        ref = kernels.compute_kernel(formula, (dtype.name,) * len(operands), dtype.name)
        views = [(m.ctypes.data, *m.strides) for m in operands]
        wanted = np.empty((rows, cols), dtype)
        kernels.run(ref, views, (wanted.ctypes.data, *wanted.strides), rows, cols, scalars)
        whole[:] = -7
        kernels.run(ref, views, (out.ctypes.data, *out.strides), rows, cols, scalars, STREAMED)
        same_bits(out, wanted)
        assert (whole[:, :start] == -7).all(), level
        assert (whole[:, start + cols :] == -7).all(), level


ALONE = """
import ctypes, mmap, numpy as np, aclnn
PAGE, PAGES = mmap.PAGESIZE, 4
libc = ctypes.CDLL(None, use_errno=True)
def alone():
    memory = mmap.mmap(-1, (PAGES + 2) * PAGE)
    room = np.frombuffer(memory, np.uint8)
    for page in (0, PAGES + 1):
        assert libc.mprotect(ctypes.c_void_p(room.ctypes.data + page * PAGE), PAGE, 0) == 0
    return room[PAGE:-PAGE].view(np.float32)
g, x = alone(), alone()
g[:], x[:] = np.random.default_rng(0).uniform(0.1, 0.9, (2, g.size))
for name in ("logit_backward", "gelu_backward"):
    call = getattr(aclnn, name)
    for n in (2047, 2048, 2049, 2055, 2064, 2095, 3001):
        for first in (g[:n], g[-n:], g[3 : n + 3]):
            for second in (x[:n], x[-n:], x[8 : n + 8]):
                out = np.empty(n + 5, np.float32)[5:]
                np.testing.assert_array_equal(
                    call(first, second, out=out), call(*map(np.array, (first, second)))
                )
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks the system to forbid memory")
def test_nothing_is_read_beyond_the_lines_of_an_operand():
    """Where pages end that must not be touched."""
    done = fresh(ALONE)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@each("formula", SCALARS)
@pytest.mark.parametrize("shift", [1, 2, 3])
def test_memory_may_begin_at_any_byte(formula, dtype, shift):
    """Workspaces do, device memory may: at addresses that are no multiple of an element's size."""
    rng = np.random.default_rng(4)
    n, size, scalars = 3001, dtype.itemsize, SCALARS[formula][0]
    count = 1 + ("_backward" in formula)
    storage = np.zeros((count + 1, n * size + 256), np.uint8)
    begins = [-row.ctypes.data % 64 + shift for row in storage]
    operands = [rng.random(n).astype(dtype) for _ in range(count)]
    for row, begin, operand in zip(storage, begins, operands, strict=False):
        row[begin : begin + n * size] = operand.view(np.uint8)
    places = [
        (row.ctypes.data + begin, 0, size) for row, begin in zip(storage, begins, strict=True)
    ]
    for level in isa.available():
        kernels = isa.kernels(level)
        ref = kernels.compute_kernel(formula, (dtype.name,) * count, dtype.name)
        storage[-1] = 7
        kernels.run(ref, places[:-1], places[-1], 1, n, scalars)
        written = storage[-1][begins[-1] : begins[-1] + n * size].copy()
        same_bits(written.view(dtype), computed(level, formula, operands, scalars))
        storage[-1][begins[-1] : begins[-1] + n * size] = 7
        assert (storage[-1] == 7).all()


def assert_near(out, plain):
    """Halves to the bit; float32 within a unit in the last place, with the sign of a zero."""
    if out.itemsize == 2:
        same_bits(out, plain)
        return
    np.testing.assert_array_equal(np.signbit(out), np.signbit(plain))
    np.testing.assert_array_max_ulp(out, plain, 1)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "formula", ["gelu_backward", "elu_backward", "hardshrink_backward", "gelu", "elu"]
)
def test_instruction_sets_agree(formula, dtype):
    rng = np.random.default_rng(7)
    x = (rng.standard_normal(4099) * 4).astype(np.float32).astype(dtype)
    g = rng.standard_normal(4099).astype(np.float32).astype(dtype)
    operands = [g, x] if "backward" in formula else [x]
    scalars = (1.0, 1.0, 1.0)
    plain = computed("generic", formula, operands, scalars)
    results = {level: computed(level, formula, operands, scalars) for level in isa.available()}
    for out in results.values():
        assert_near(out, plain)
    if not {"v3", "v4"} <= set(results):
        return
    if formula == "hardshrink_backward":
        same_bits(results["v4"], results["v3"])
    else:  # tables are as wide as a register
        assert_near(results["v4"], results["v3"])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_instruction_sets_agree_on_the_bounds_of_logit(dtype):
    """Of eps and 1 - eps, as floats, one is often nearer to its end than the other; neighbours too."""
    rng = np.random.default_rng(5)
    for eps in (*rng.uniform(0, 0.5, 30), *np.exp(rng.uniform(-17, -1, 60)), 17.4 * 2.0**-24, 0.25):
        low = np.float32(eps)
        ends = np.array([low, np.float32(1) - low])
        near = [np.nextafter(ends, way) for way in (np.float32(-1), np.float32(2))]
        x = np.resize(np.concatenate([ends, *near]), 96).astype(dtype)
        operands = [x, np.ones(96, dtype)]
        plain = computed("generic", "logit_backward", operands, (float(low),))
        for level in isa.available():
            assert_near(computed(level, "logit_backward", operands, (float(low),)), plain)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_bounds_of_logit_have_more_digits_than_halves(dtype):
    rng = np.random.default_rng(6)
    x = np.resize(np.array([0.0, 0.25, 0.5, 0.75, 1.0], dtype), 37)
    for eps in 0.5 - np.exp(rng.uniform(-18, -1, 300)).astype(np.float32):
        plain = computed("generic", "logit", [x], (float(eps),))
        for level in isa.available():
            assert_near(computed(level, "logit", [x], (float(eps),)), plain)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("formula", ["leaky_relu_backward", "gelu_backward", "elu_backward"])
def test_integers_are_rounded_to_float32_before_anything_else(formula, kind, dtype):
    """Twice the rounding may be another number than once: the same one on every instruction set."""
    rng = np.random.default_rng(8)
    g = rng.integers(-(2**31), 2**31, 4000).astype(kind)
    g[:3] = 2**30 + 2**22 + 1, 2**30 + 2**19 + 1, -611778786
    x = (rng.standard_normal(4000) * 0.1).astype(dtype)
    scalars = (2.0**-20 if dtype == np.float16 else 1.0, 1.0, 1.0)
    for level in isa.available():
        out = computed(level, formula, [g, x], scalars, dtype)
        same_bits(out, computed(level, formula, [g.astype(np.float32), x], scalars, dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_one_element_outside_of_logits_bounds_is_seen(dtype):
    """Without eps all are expected to lie between 0 and 1: one that does not must not be lost."""
    tiny, one = np.finfo(np.float32).smallest_subnormal, np.float32(1)
    above = np.float32(1) + np.float32(ml_dtypes.finfo(dtype).eps)
    for odd in (-tiny, -0.0, 0.0, one, above, -0.25, 1.5, -np.inf, np.inf, np.nan):
        for place in (0, 17, 31, 95, 97):
            x = np.resize(np.array([0.25, 0.5, 0.625, 0.9], dtype), 98)
            x[place] = odd
            operands = [x, np.ones(98, dtype)]
            plain = computed("generic", "logit_backward", operands, (-1.0,))
            for level in isa.available():
                assert_near(computed(level, "logit_backward", operands, (-1.0,)), plain)
    # A NaN after it must not make it forgotten.
    x[:] = np.resize(np.array([-0.25, np.nan, 0.5], dtype), 98)
    plain = computed("generic", "logit_backward", operands, (-1.0,))
    for level in isa.available():
        assert_near(computed(level, "logit_backward", operands, (-1.0,)), plain)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("formula", SCALARS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_instruction_sets_agree_on_elements_of_one_magnitude(formula, dtype):
    """A fast path tracks the range of a whole loop: here nothing else in it gives exceptional cases away."""
    rng = np.random.default_rng(11)
    n = LONG if dtype == np.float32 else 96
    most = 14 if dtype == np.float16 else 126
    scalars = SCALARS[formula][0]
    powers = (*range(-24, 14), *range(14, most, 7))
    scales = (-most - 8, -60, -10, 0, 10, 60, most)
    is_gradient = "_backward" in formula

    def numbers(power, sign):
        return (np.ldexp(rng.uniform(1, 2, n), np.clip(power, -most - 8, most)) * sign).astype(
            dtype
        )

    for sign in (1, -1):
        if is_gradient:
            signs = rng.choice([1, -1], n)
            pairs = [(numbers(scale, signs), numbers(x, sign)) for x in powers for scale in scales]
            calls = [(x, g) if formula == "logit_backward" else (g, x) for g, x in pairs]
        else:
            calls = [(numbers(power, sign),) for power in (*powers, *scales)]
        for operands in calls:
            plain = computed("generic", formula, operands, scalars)
            for level in isa.available():
                assert_near(computed(level, formula, operands, scalars), plain)


@pytest.mark.parametrize("formula", ["elu", "gelu", "gelu_tanh"])
def test_instruction_sets_agree_where_nothing_is_left_of_an_element(formula):
    """A product that is 0 shows nothing of the sign, nor that there was an element."""
    for x in (np.full(96, sign * 2.0**-149, np.float32) for sign in (1, -1)):
        for scalars in ((1.0, 1.0, 0.5), (1.625, 1.0625, 0.5), (-1.0, 1.0, 0.25)):
            plain = computed("generic", formula, [x], scalars)
            for level in isa.available():
                assert_near(computed(level, formula, [x], scalars), plain)


SPECIALS = {
    "gelu_backward": [((2.0, math.nan), math.nan), ((2.0, math.inf), 2.0), ((2.0, -math.inf), 0.0),
                      ((math.inf, -math.inf), math.nan), ((math.nan, 1.0), math.nan),
                      ((-3.0, math.inf), -3.0)],
    "hardshrink_backward": [((2.0, math.nan), 0.0), ((math.nan, 3.0), math.nan),
                            ((-0.0, 3.0), -0.0), ((math.inf, -3.0), math.inf),
                            ((math.inf, 0.25), 0.0), ((math.nan, 0.0), 0.0)],
    "elu_backward": [((2.0, math.nan), 2.0), ((2.0, math.inf), 2.0), ((2.0, -math.inf), 0.0),
                     ((math.inf, 1.0), math.inf), ((math.nan, 1.0), math.nan),
                     ((math.inf, -math.inf), math.nan), ((1.0, 3e4), 1.0)],
    "logit_backward": [((1.0, math.nan), math.nan), ((1.0, math.inf), math.nan),
                       ((1.0, -math.inf), math.nan), ((1.0, 0.0), math.inf), ((-1.0, 0.0), -math.inf),
                       ((0.0, 0.0), math.nan), ((1.0, 1.0), math.inf), ((-1.0, 1.0), -math.inf),
                       ((1.0, 1.5), math.nan), ((1.0, -0.5), math.nan), ((0.0, 0.5), 0.0),
                       ((-0.0, 0.5), -0.0), ((1.0, -0.0), -math.inf)],
}  # fmt: skip


def check_special(actual, wanted):
    value = float(actual)
    if math.isnan(wanted):
        assert math.isnan(value)
        canonical = {4: 0x7FC00000, 2: 0x7E00 if actual.dtype == np.float16 else 0x7FC0}
        payload = int(np.array(actual).view(np.uint32 if actual.itemsize == 4 else np.uint16))
        assert payload == canonical[actual.itemsize]
    else:
        assert value == wanted
        assert math.copysign(1, value) == math.copysign(1, wanted)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SPECIALS)
def test_special_values_at_every_position(name, dtype):
    function = getattr(aclnn, name)
    for (g_value, x_value), wanted in SPECIALS[name]:
        for length in (1, 2, 17, 40):
            for position in range(length):
                g, x = np.full(length, 0.5, dtype), np.full(length, 0.5, dtype)
                g[position], x[position] = g_value, x_value
                check_special(function(g, x)[position], wanted)


@each("dtype", DTYPES, ids=str)
@each(
    ("eps", "dy", "x", "wanted"),
    [(math.nan, 1, 0.5, math.nan), (math.inf, 1, 0.5, 0.0), (math.inf, 1, math.nan, math.nan),
     (2.0, 1, 0.5, math.nan), (1.0, 2, 0.5, math.inf), (1.0, -2, 0.5, -math.inf),
     (1.0, 0, 0.5, math.nan), (1.0, math.nan, 0.5, math.nan), (0.25, 1, 0.125, 0.0),
     (0.25, 1, 0.25, 1 / 0.1875), (0.25, 1, 0.75, 1 / 0.1875), (0.25, 1, 0.875, 0.0),
     (0.25, 1, math.inf, math.nan), (0.0, 1, 2.0, 0.0), (0.0, 1, 0.0, math.inf),
     (-1.0, 1, 0.5, 4.0), (-0.5, 1, 2.0, math.nan), (math.nan, 1, math.inf, math.nan)],
)  # fmt: skip
def test_the_documented_order_of_logits_cases(eps, dy, x, wanted, dtype):
    result = aclnn.logit_backward(np.array([dy], dtype), np.array([x], dtype), eps)
    rounded = float(np.array([wanted]).astype(np.float32).astype(dtype)[0])
    check_special(result[0], rounded)


def test_nan_payloads_pass_hardshrink_and_copies():
    payload = np.array([0x7FC12345, 0xFFC00001], np.uint32).view(np.float32)
    same_bits(aclnn.hardshrink_backward(payload, np.full(2, 3, np.float32)), payload)


def test_elu_overflow_in_the_arm_not_taken_never_shows():
    x = np.array([200.0, 3e38], np.float32)
    np.testing.assert_array_equal(aclnn.elu_backward(np.ones(2, np.float32), x, input_scale=5.0), 1)
    np.testing.assert_array_equal(aclnn.elu(x), x)


def test_a_result_is_rounded_to_its_own_dtype_before_it_is_cast():
    g, x = np.full(3, 1.0, np.float16), np.array([-0.7, -1.3, -2.1], np.float16)
    narrow = aclnn.elu_backward(g, x)
    for kind in (np.float32, np.float64, np.complex64, np.complex128):
        out = np.full(3, 7 + 7j).astype(kind) if np.dtype(kind).kind == "c" else np.zeros(3, kind)
        aclnn.elu_backward(g, x, out=out)
        np.testing.assert_array_equal(out, narrow.astype(kind))


def test_double_to_bfloat16_rounds_once():
    x = np.array(
        [1 + 2**-8 + 2**-40, 1 + 3 * 2**-8 - 2**-40, -(1 + 2**-8 + 2**-45), 1e300, 2**-140]
    )
    out = np.zeros(5, BFLOAT16)
    aclnn.leaky_relu(x, 1.0, out=out)
    np.testing.assert_array_equal(
        out.astype(np.float64),
        [1 + 2**-7, 1 + 2**-7, -(1 + 2**-7), np.inf, 0.0],  # 2^-133 is the least bfloat16
    )


def test_integers_with_floats_are_seen_as_float32():
    x = np.array([-3, 0, 2, 2**24 + 1, 2**24 + 3], np.int32)
    g = np.ones(5, np.float32)
    same_bits(aclnn.gelu_backward(g, x), aclnn.gelu_backward(g, x.astype(np.float32)))
    same_bits(
        aclnn.leaky_relu_backward(x, -g),
        np.float32(x.astype(np.float32).astype(np.float64) * float(np.float32(0.01))),
    )
    halves = aclnn.gelu_backward(np.ones(3, np.float16), x[:3])
    same_bits(halves, aclnn.gelu_backward(np.ones(3, np.float16), x[:3].astype(np.float16)))
