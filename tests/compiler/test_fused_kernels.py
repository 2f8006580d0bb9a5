"""Kernels of several nodes: their results are those of the nodes' own kernels, bit for bit."""

from __future__ import annotations

import ctypes
import dataclasses

import numpy as np
import pytest
from aclnn.graph.runtime import abi
from cases import each
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16

import aclnn
from aclnn import isa
from aclnn.compiler import fused_kernels

pytestmark = pytest.mark.skipif(
    isa.fused_kernels() is None, reason="this instruction set has no kernels of several nodes"
)

F32, F16, BF16 = np.dtype(np.float32), np.dtype(np.float16), np.dtype(bfloat16)

# Forms of one operand, with numbers that round and numbers that do not.
UNARY = {
    "leaky_relu": lambda x: aclnn.leaky_relu(x, 0.1),
    "leaky_relu_short": lambda x: aclnn.leaky_relu(x, 0.25),
    "leaky_relu_tiny": lambda x: aclnn.leaky_relu(x, 1e-30),
    "leaky_relu_negative": lambda x: aclnn.leaky_relu(x, -3.3),
    "leaky_relu_inf": lambda x: aclnn.leaky_relu(x, np.inf),
    "leaky_relu_nan": lambda x: aclnn.leaky_relu(x, np.nan),
    "hardshrink": lambda x: aclnn.hardshrink(x, 0.3),
    "hardshrink_zero": lambda x: aclnn.hardshrink(x, 0.0),
    "hardshrink_negative": lambda x: aclnn.hardshrink(x, -1.0),
    "hardshrink_inf": lambda x: aclnn.hardshrink(x, np.inf),
    "softshrink": lambda x: aclnn.softshrink(x, 0.3),
    "shrink": lambda x: aclnn.shrink(x, 0.3, 0.7),
    "relu": aclnn.relu,
    "squared_relu": aclnn.squared_relu,
    "neg": aclnn.neg,
    "abs": aclnn.abs,
    "floor": aclnn.floor,
    "ceil": aclnn.ceil,
    "trunc": aclnn.trunc,
    "round": aclnn.round,
    "sign": aclnn.sign,
    "square": aclnn.square,
    "sqrt": aclnn.sqrt,
    "reciprocal": aclnn.reciprocal,
    "clamp": lambda x: aclnn.clamp(x, -0.3, 0.7),
    "hardtanh": lambda x: aclnn.hardtanh(x, -0.3, 0.7),
    "threshold": lambda x: aclnn.threshold(x, 0.1, 20.3),
    "adds": lambda x: aclnn.add(x, 0.3),
    "adds_alpha": lambda x: aclnn.add(x, 0.3, alpha=1.7),
    "subs": lambda x: aclnn.sub(x, 1000.1),
    "muls": lambda x: aclnn.mul(x, 0.1),
    "muls_tiny": lambda x: aclnn.mul(x, 3e-39),
    "divs": lambda x: aclnn.div(x, 0.3),
    "logical_not": lambda x: aclnn.where(aclnn.logical_not(x), x, aclnn.relu(x)),
}
# Of many operations: computed in memory, or in pairs of vectors.
LONG = {
    **{
        name: getattr(aclnn, name)
        for name in [
            "gelu",
            "elu",
            "selu",
            "silu",
            "sigmoid",
            "tanh",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log1p",
            "log2",
            "erf",
            "sin",
            "cos",
            "rsqrt",
            "softplus",
            "mish",
            "hardswish",
            "hardsigmoid",
            "log_sigmoid",
            "fast_gelu",
        ]
    },
    "gelu_tanh": lambda x: aclnn.gelu(x, approximate="tanh"),
    "swish": lambda x: aclnn.swish(x, 1.3),
    "celu": lambda x: aclnn.celu(x, 0.7),
    "elu_numbers": lambda x: aclnn.elu(x, alpha=0.3),
    "logit": lambda x: aclnn.logit(x, 0.01),
}
LONG_BINARY = {
    "gelu_backward": aclnn.gelu_backward,
    "silu_backward": aclnn.silu_backward,
    "sigmoid_backward": aclnn.sigmoid_backward,
    "tanh_backward": aclnn.tanh_backward,
    "logit_backward": lambda x, y: aclnn.logit_backward(x, y, 0.1),
    "elu_backward": lambda x, y: aclnn.elu_backward(x, y, alpha=0.7),
    "hardswish_backward": aclnn.hardswish_backward,
    "mish_backward": aclnn.mish_backward,
}
BINARY = {
    "add": aclnn.add,
    "add_alpha": lambda x, y: aclnn.add(x, y, alpha=0.3),
    "sub": aclnn.sub,
    "rsub": aclnn.rsub,
    "mul": aclnn.mul,
    "div": aclnn.div,
    "add_relu": aclnn.add_relu,
    "maximum": aclnn.maximum,
    "minimum": aclnn.minimum,
    "leaky_relu_backward": lambda x, y: aclnn.leaky_relu_backward(x, y, 0.1),
    "hardshrink_backward": lambda x, y: aclnn.hardshrink_backward(x, y, 0.3),
    "softshrink_backward": lambda x, y: aclnn.softshrink_backward(x, y, 0.3),
    "threshold_backward": lambda x, y: aclnn.threshold_backward(x, y, 0.3),
    "hardsigmoid_backward": aclnn.hardsigmoid_backward,
    "hardtanh_backward": lambda x, y: aclnn.hardtanh_backward(x, y, -0.3, 0.7),
    "heaviside": aclnn.heaviside,
    "where_gt": lambda x, y: aclnn.where(aclnn.gt(x, y), x, y),
    "where_eq": lambda x, y: aclnn.where(aclnn.eq(x, y), x, aclnn.neg(y)),
    "where_ne": lambda x, y: aclnn.where(aclnn.ne(x, y), x, y),
    "where_le": lambda x, y: aclnn.where(aclnn.le(x, y), aclnn.abs(x), y),
    "logical": lambda x, y: aclnn.where(
        aclnn.logical_xor(aclnn.lt(x, y), aclnn.logical_and(aclnn.ge(x, y), aclnn.gt(y, x))), x, y
    ),
}


def all_numbers(dtype: np.dtype) -> np.ndarray:
    """All halves, or floats of all exponents with those beside them, infinities and NaNs."""
    if dtype != F32:
        return np.arange(1 << 16, dtype=np.uint16).view(dtype)
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 1 << 32, 1 << 15, dtype=np.uint32)
    near = rng.standard_normal(1 << 14).astype(np.float32).view(np.uint32)
    special = np.uint32(
        [0, 1 << 31, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000, 0x7FC12345]
    )
    return np.concatenate([special, bits, near, np.tile(special, 7)]).view(np.float32)


# Where formulas, and vectors of them, change their ways: zeros, subnormal numbers, those whose products
# vanish, 1 and its neighbours, where exponentials leave the floats, the largest, infinities, NaNs.
EDGES = np.uint32(
    [
        *[0, 1, 2, 0x00400000, 0x007FFFFF, 0x00800000, 0x0D7FFFFF, 0x0D800000, 0x33800000],
        *[0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x42AE0000, 0x42B17218, 0x42CFF1B5, 0x4B000000],
        *[0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FC12345],
    ]
)


def edges(dtype: np.dtype) -> np.ndarray:
    """Such numbers with either sign; of half precision, those at the same places of its range too."""
    both = np.concatenate([EDGES, EDGES | np.uint32(1 << 31)])
    if dtype == F32:
        return both.view(dtype)
    bits = [0, 1, 2, 0x40, 0x7F, 0x80, 0x1FF, 0x3FF, 0x400, 0x3BFF, 0x3C00, 0x3F7F, 0x3F80, 0x3F81]
    bits += [0x42AE, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7F00, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0]
    halves = np.uint16([*bits, *(one | 1 << 15 for one in bits)])
    with np.errstate(all="ignore"):
        return np.concatenate([halves.view(dtype), both.view(np.float32).astype(dtype)])


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and np.array_equal(a.view(np.uint8), b.view(np.uint8))


def calls(ex) -> int:
    """Calls of kernels for a tile."""
    return sum(len(step["ops"]) for step in ex.schedule.pack().describe())


def is_refused(form, *operands) -> bool:
    """Whether an operator lacks a dtype."""
    try:
        form(*operands)
    except aclnn.AclnnError as error:
        return "dtype" in str(error)
    return False


@each("dtype", [F32, F16, BF16])
@each("name", [*UNARY, *LONG])
def test_chains_of_unary_forms_have_the_bits_of_single_calls(name, dtype):
    form, x = {**UNARY, **LONG}[name], all_numbers(dtype)

    def chain(x):
        return form(form(aclnn.neg(x)))

    if not is_refused(form, x):
        assert same_bits(aclnn.compile(chain)(x), chain(x)), (name, dtype)


@each("dtype", [F32, F16, BF16])
@each("name", [*BINARY, *LONG_BINARY])
def test_chains_of_binary_forms_have_the_bits_of_single_calls(name, dtype):
    form, x = {**BINARY, **LONG_BINARY}[name], all_numbers(dtype)
    if is_refused(form, x, x):
        return
    y = np.random.default_rng(3).permutation(x)
    z = np.resize(x[::-1][:999], x.shape)

    def chain(x, y, z):
        return form(form(x, y), z), form(z, form(y, x))

    for one, other in zip(aclnn.compile(chain)(x, y, z), chain(x, y, z), strict=True):
        assert same_bits(one, other), (name, dtype)


# What has steps, and no form above.
FURTHER = {
    "frac": aclnn.frac,
    "rsubs": lambda x: aclnn.rsub(x, 1.5),
    "prelu": lambda x: aclnn.prelu(x, np.array([0.3], x.dtype)),
    "where": lambda x: aclnn.where(aclnn.ge(x, aclnn.neg(x)), x, aclnn.abs(x)),
    "logical_or": lambda x: aclnn.where(aclnn.logical_or(x, aclnn.relu(x)), x, aclnn.neg(x)),
}
FURTHER_BINARY = {
    "glu": lambda x, y: aclnn.glu(aclnn.cat([x, y], 0), 0),
    "ge": lambda x, y: aclnn.where(aclnn.ge(x, y), x, y),
    "lt": lambda x, y: aclnn.where(aclnn.lt(x, y), x, y),
    "selu_backward": aclnn.selu_backward,
}


@each("dtype", [F32, F16, BF16])
@each("name", [*UNARY, *LONG, *FURTHER])
def test_steps_have_the_bits_of_single_calls_in_blocks_of_one_number(name, dtype):
    """Nothing else in a block is exceptional, which would have the node's own kernel compute it."""
    form, x = {**UNARY, **LONG, **FURTHER}[name], np.repeat(edges(dtype), 256)
    if is_refused(form, x[:1]):
        return
    one = np.ones(1, dtype)

    def chain(x, one):
        return form(aclnn.mul(x, one))

    assert same_bits(aclnn.compile(chain)(x, one), chain(x, one)), (name, dtype)


@each("dtype", [F32, F16, BF16])
@each("name", [*BINARY, *LONG_BINARY, *FURTHER_BINARY])
def test_steps_of_two_have_the_bits_of_single_calls_in_blocks_of_one_pair(name, dtype):
    form, numbers = {**BINARY, **LONG_BINARY, **FURTHER_BINARY}[name], edges(dtype)
    if is_refused(form, numbers[:2], numbers[:2]):
        return
    x = np.repeat(numbers, 256)
    one = np.ones(1, dtype)
    chained = aclnn.compile(lambda x, y: form(aclnn.mul(x, one), y))
    for second in numbers[:: 1 if dtype == F32 else 3]:
        y = np.full(x.shape, second)
        expected = form(aclnn.mul(x, one), y)
        assert same_bits(chained(x, y), expected), (name, dtype, second)


def test_a_chain_is_one_call():
    x = np.ones(100, np.float32)

    @aclnn.compile
    def chain(x, y):
        x = aclnn.hardshrink(aclnn.leaky_relu(x + y, 0.1), 0.5)
        return aclnn.silu(x) * y, aclnn.where(x > y, x, y)

    assert calls(chain.executor(x, x.copy())) == 1


def test_many_values_that_wait_take_several_calls():
    """More than there are slots for."""

    def tangle(x):
        kept = [x * float(k + 2) for k in range(30)]
        total = x
        for one in kept:
            total = total * one
        for one in reversed(kept):
            total = total + one
        return total

    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    assert same_bits(aclnn.compile(tangle)(x), tangle(x))


SHAPES = [
    (1,),
    (127,),
    (128,),
    (129,),
    (3, 5),
    (7, 128),
    (5, 200),
    (2, 3, 64),
    (4, 1, 33),
    (300, 3),
]


@each("dtype", [F32, F16, BF16])
@each("shape", SHAPES)
def test_layouts(shape, dtype):
    rng = np.random.default_rng(len(shape))

    def chain(x, y):
        z = aclnn.leaky_relu(x + y, 0.3) * x
        return aclnn.maximum(z, y) - x

    x = rng.standard_normal((*shape[:-1], 2 * shape[-1])).astype(dtype)
    wide = rng.standard_normal(shape).astype(dtype)
    others = {
        "dense": wide,
        "row": wide.reshape(-1, shape[-1])[:1].reshape(shape[-1:]),
        "column": wide[..., :1],
        "scalar": wide.ravel()[:1].reshape(()),
        "backwards": wide[..., ::-1],
        "transposed": np.ascontiguousarray(wide.T).T,
        "float32": wide.astype(np.float32),
    }
    for one in (np.ascontiguousarray(x[..., : shape[-1]]), x[..., : shape[-1]], x[..., ::2]):
        for name, other in others.items():
            compiled = aclnn.compile(chain)
            assert same_bits(compiled(one, other), chain(one, other)), (shape, dtype, name)


@each("dtype", [F32, F16, BF16])
@each("size", [5, 128, 1000, 3 << 20])
def test_in_place_and_streamed(size, dtype):
    def chain(x, y):
        return aclnn.relu(x + y) - y

    x = np.resize(np.linspace(-3, 3, 1001).astype(dtype), size + 1)
    y = np.resize(np.linspace(2, -1, 997).astype(dtype), size + 1)
    expected = chain(x[1:], y[1:])
    for out in (np.empty(size, dtype), np.empty(size + 1, dtype)[1:]):
        aclnn.compile(chain)(x[1:], y[1:], out=out)
        assert same_bits(np.ascontiguousarray(out), expected), (size, dtype)
    aclnn.compile(chain)(x[1:], y[1:], out=x[1:])
    assert same_bits(np.ascontiguousarray(x[1:]), expected), (size, dtype)


def test_numbers_of_a_run():
    """An executor's numbers may change with each run."""
    x = np.linspace(-2, 2, 300, dtype=np.float16)
    for slope in (0.1, 0.25, 1e-30):
        ex = aclnn.compile(lambda x, s=slope: aclnn.relu(aclnn.leaky_relu(x, s) + x)).executor(x)
        assert same_bits(ex.run(), aclnn.relu(aclnn.leaky_relu(x, slope) + x))


class View(ctypes.Structure):
    """An operand of a tile."""

    _fields_ = (("data", ctypes.c_void_p), ("row", ctypes.c_ssize_t), ("col", ctypes.c_ssize_t))


TileKernel = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(View), *[ctypes.c_ssize_t] * 2, *[ctypes.c_void_p] * 3, ctypes.c_int
)


def run_program(made, views, rows, cols, numbers=(), flags=0):
    """Run a program as kernels of other kinds do: by its tile kernel, on (array, row stride, column stride)."""
    given = (View * len(views))(*[(a.ctypes.data, row, col) for a, row, col in views])
    params = np.zeros(made.kernel.params_size + 64, np.uint8)
    params = params[-params.ctypes.data % 64 :]
    if made.kernel.prepare:
        prepare = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int
        )(made.kernel.prepare)
        values = np.array(numbers, np.float64)
        prepare(params.ctypes.data, made.kernel.state, values.ctypes.data, len(numbers))
    kernel = TileKernel(made.kernel.fn)
    kernel(given, rows, cols, made.kernel.state, params.ctypes.data, None, flags)


@each("dtype", [F16, BF16])
@each("shape", [(3, 7), (5, 200), (2, 1024)])
def test_programs_of_kernels_of_other_kinds(shape, dtype):
    """As of products: a tile of floats, a bias of rows and one of columns, GELU, a residual, rounding."""
    library, name, rng = isa.kernels(), dtype.name, np.random.default_rng(1)
    f32 = "float32"
    parts = [
        fused_kernels.Part(library.compute_kernel("add", (f32, f32), f32), (0, 1), 10, (1,)),
        fused_kernels.Part(library.compute_kernel("add", (f32, f32), f32), (10, 2), 11, (1,)),
        fused_kernels.Part(library.compute_kernel("gelu", (f32,), f32), (11,), 12),
        fused_kernels.Part(library.compute_kernel("adds", (f32,), f32), (12,), 13, (0.3, 1)),
        fused_kernels.Part(library.cast_kernel(f32, name), (13,), 14),
        fused_kernels.Part(library.compute_kernel("add", (name, name), name), (14, 3), 15, (1,)),
    ]
    places = {k: fused_kernels.Place(f32) for k in (0, 1, 10, 11, 12, 13)}
    places |= {k: fused_kernels.Place(name) for k in (3, 14, 15)}
    places[2] = fused_kernels.Place(f32, "repeated")
    rows, cols = shape
    tile = rng.standard_normal((rows, cols + 3), np.float32)
    row, column = rng.standard_normal(cols, np.float32), rng.standard_normal((rows, 1), np.float32)
    rest, out = rng.standard_normal(shape).astype(dtype), np.empty(shape, dtype)
    made = fused_kernels.fuse(parts, places, [15])
    assert made.reads == (0, 1, 2, 3)
    assert made.writes == (15,)
    views = [(tile, 4 * cols + 12, 4), (row, 0, 4), (column, 4, 0), (rest, 2 * cols, 2)]
    run_program(made, [*views, (out, 2 * cols, 2)], rows, cols, made.params)
    halves = (aclnn.gelu(tile[:, :cols] + row + column) + np.float32(0.3)).astype(dtype)
    assert same_bits(out, aclnn.add(halves, rest))
    places[14] = fused_kernels.Place(f32)  # rounded, and kept as floats
    made = fused_kernels.fuse(parts[:5], places, [14])
    floats = np.empty(shape, np.float32)
    run_program(made, [*views[:3], (floats, 4 * cols, 4)], rows, cols, made.params)
    assert same_bits(floats, halves.astype(np.float32))


@each("cols", [128, 4096])
def test_long_formulas_are_calls_where_rows_are_long(cols):
    """A fast path begins anew for every eight vectors where it is a step: that pays in short rows only."""
    x, y = np.random.default_rng(0).standard_normal((2, 4, cols), np.float32)
    row = y[:1]
    ex = aclnn.compile(lambda x, row: aclnn.mul(aclnn.gelu(aclnn.add(x, row)), row)).executor(
        x, row
    )
    assert same_bits(ex.run(), aclnn.mul(aclnn.gelu(aclnn.add(x, row)), row))
    floats = fused_kernels.Place("float32")
    gelu = isa.kernels().compute_kernel("gelu", ("float32",), "float32")
    mul = isa.kernels().compute_kernel("mul", ("float32", "float32"), "float32")
    parts = [fused_kernels.Part(gelu, (0,), 10), fused_kernels.Part(mul, (10, 1), 11)]
    places = dict.fromkeys((0, 1, 10, 11), floats)
    for far in (False, True):
        made = fused_kernels.fuse(parts, places, [11], far=far, long=cols >= fused_kernels.LONG_ROW)
        called = any(step.startswith("call gelu") for step in made.kernel.form)
        assert called == (cols == 4096 and not far)


def test_calls_on_blocks_of_one_row_prefetch():
    """Of a tile of one row, whose row stride says nothing: it must not look like a row that repeats."""
    library, half = isa.kernels(), fused_kernels.Place("float16")
    silu = library.compute_kernel("silu", ("float16",), "float16")
    mul = library.compute_kernel("mul", ("float16", "float16"), "float16")
    own, seen = TileKernel(silu.fn), []

    @TileKernel
    def watched(views, rows, cols, state, params, scratch, flags):
        seen.append((rows, views[0].row, cols * views[0].col, flags))
        own(views, rows, cols, state, params, scratch, flags)

    silu = dataclasses.replace(silu, fn=ctypes.cast(watched, ctypes.c_void_p).value)
    parts = [fused_kernels.Part(silu, (0,), 10), fused_kernels.Part(mul, (10, 1), 11)]
    made = fused_kernels.fuse(parts, {0: half, 1: half, 10: half, 11: half}, [11], far=True)
    x, y = np.random.default_rng(0).standard_normal((2, 50_000)).astype(F16)
    out = np.empty_like(x)
    prefetch = abi.TILE_PREFETCH_NEAR | abi.TILE_PREFETCH_FAR
    run_program(made, [(x, 0, 2), (y, 0, 2), (out, 0, 2)], 1, x.size, flags=prefetch)
    assert same_bits(out, aclnn.mul(aclnn.silu(x), y))
    assert seen
    assert all(
        rows == 1 and stride == nbytes > 0 and flags & prefetch == prefetch
        for rows, stride, nbytes, flags in seen
    )


# --- All dtypes, and random programs --------------------------------------------------------------

WHOLE = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
REAL = ["float64", "float32", "float16", "bfloat16"]
# Of numbers of one dtype; what an operator refuses is left out.
OPERATIONS = [
    (1, aclnn.neg),
    (1, aclnn.abs),
    (1, aclnn.relu),
    (1, aclnn.square),
    (1, lambda x: aclnn.clamp(x, 1, 5)),
    (1, lambda x: aclnn.add(x, 3)),
    (1, lambda x: aclnn.mul(x, 2)),
    (1, lambda x: aclnn.leaky_relu(x, 0.3)),
    (1, lambda x: aclnn.hardshrink(x, 0.5)),
    (1, aclnn.silu),
    (1, aclnn.gelu),
    (1, aclnn.tanh),
    (1, aclnn.elu),
    (1, aclnn.exp),
    (1, aclnn.logical_not),
    (2, aclnn.add),
    (2, lambda x, y: aclnn.sub(x, y, alpha=2)),
    (2, aclnn.mul),
    (2, aclnn.div),
    (2, aclnn.maximum),
    (2, aclnn.minimum),
    (2, aclnn.gt),
    (2, aclnn.eq),
    (2, aclnn.silu_backward),
    (3, lambda x, y, z: aclnn.where(aclnn.le(x, y), z, x)),
    (3, aclnn.addcmul),
    (3, aclnn.lerp),
]


def random_numbers(rng, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    if dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    x = rng.standard_normal(shape) * np.exp2(rng.integers(-8, 8, shape))
    x[rng.random(shape) < 0.02] = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan])
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def laid_out(rng, dtype: np.dtype, rows: int, cols: int) -> np.ndarray:
    """An operand that broadcasts to so many rows and columns, in some layout."""
    kind = rng.integers(0, 8)
    whole = random_numbers(rng, dtype, (rows, 2 * cols + 3))
    views = {
        1: whole[:, 3 : cols + 3],
        2: whole[:, : 2 * cols : 2],
        3: whole[:, cols - 1 :: -1] if cols else whole,
        4: whole[:1, :cols],
        5: whole[:, :1],
        6: whole[0, 0],
        7: np.asfortranarray(whole[:, :cols]),
    }
    return np.asarray(views.get(kind, np.ascontiguousarray(whole[:, :cols])))


def random_program(rng, dtypes: list[str], length: int):
    """A function of four operands, and how it is computed call by call."""
    steps = []
    for number in range(length):
        arity, form = OPERATIONS[rng.integers(len(OPERATIONS))]
        steps.append(
            (form, rng.integers(0, 4 + number, arity), rng.random() < 0.2, rng.choice(dtypes))
        )
    extra = int(rng.integers(0, length))

    def program(*operands):
        values = list(operands)
        for form, places, casts, dtype in steps:
            try:
                one = form(*[values[place] for place in places])
            except aclnn.AclnnError:
                one = aclnn.add(values[places[0]], values[-1])
            values.append(aclnn.cast(one, str(dtype)) if casts else one)
        return values[-1], values[4 + extra]

    return program


@settings(max_examples=120, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1 << 30))
def test_random_programs_have_the_bits_of_single_calls(seed):
    rng = np.random.default_rng(seed)
    dtypes = [REAL, REAL[1:3], ["float32", "bfloat16"], [*WHOLE, "bool", "float32"]][
        rng.integers(0, 4)
    ]
    rows, cols = [(1, 5), (3, 7), (2, 128), (3, 200), (17, 33), (2, 1500), (1, 9000)][
        rng.integers(0, 7)
    ]
    operands = [laid_out(rng, np.dtype(rng.choice(dtypes)), rows, cols) for _ in range(3)]
    operands.append(random_numbers(rng, np.dtype(rng.choice(dtypes)), (rows, cols)))
    program = random_program(rng, dtypes, int(rng.integers(2, 12)))
    try:
        expected = program(*operands)
    except aclnn.AclnnError:
        assume(False)
    for one, other in zip(aclnn.compile(program)(*operands), expected, strict=True):
        assert same_bits(np.ascontiguousarray(one), np.ascontiguousarray(other)), seed
