"""Row-wise kernels with programs before and after them, on tiles: the bits of single calls."""

from __future__ import annotations

import numpy as np
import pytest
from cases import each
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16

import aclnn
from aclnn import isa

pytestmark = pytest.mark.skipif(
    isa.fused_kernels() is None, reason="this instruction set has no kernels of several nodes"
)

F32, F16, BF16 = np.dtype(np.float32), np.dtype(np.float16), np.dtype(bfloat16)
EPS = 1e-5

POINT = {
    "add": aclnn.add,
    "mul": aclnn.mul,
    "maximum": aclnn.maximum,
    "gelu": lambda x, y: aclnn.gelu(x),
    "leaky": lambda x, y: aclnn.leaky_relu(x, 0.1),
    "silu": lambda x, y: aclnn.silu(x) * y,
}
ROWS = {
    "softmax": lambda x, w: aclnn.softmax(x, -1),
    "log_softmax": lambda x, w: aclnn.log_softmax(x, -1),
    "rms_norm": lambda x, w: aclnn.rms_norm(x, w.shape, w, EPS),
    "layer_norm": lambda x, w: aclnn.layer_norm(x, w.shape, w, w, EPS),
    "softmax_backward": lambda x, w: aclnn.softmax_backward(x, aclnn.abs(x), -1),
}


def operands(shape: tuple[int, ...], dtype: np.dtype, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    made = [rng.standard_normal(size) for size in (shape, shape, shape[-1:])]
    return [one.astype(np.float32).astype(dtype) for one in made]


def same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    return x.tobytes() == y.tobytes()


def calls(executor: aclnn.Executor) -> int:
    """Of kernels, for every tile."""
    return sum(len(step["ops"]) for step in executor.schedule.pack().describe())


def block(x, y, w):
    normal = aclnn.rms_norm(x * y + y, w.shape, w, EPS)
    return aclnn.silu(normal) + x, aclnn.softmax(normal * x, -1)


def test_what_is_between_kernels_stays_in_tiles():
    """One step of programs and row-wise kernels, and no more memory than for tiles."""
    for rows in (40, 4000):
        x, y, w = operands((rows, 96), F32)
        executor = aclnn.compile(block).executor(x, y, w)
        (step,) = executor.schedule.steps
        assert len(step.ops) > calls(executor) > 2
    assert executor.schedule.workspace_size < x.nbytes
    for found, expected in zip(executor.run(), block(x, y, w), strict=True):
        assert same_bits(found, expected)


@each("shape", [(1, 1), (3, 7), (33, 100), (130, 64), (9, 1024), (2, 9000), (3, 5, 40)])
@each("dtype", [F32, F16, BF16])
def test_shapes(shape, dtype):
    x, y, w = operands(shape, dtype)
    for found, expected in zip(aclnn.compile(block)(x, y, w), block(x, y, w), strict=True):
        assert same_bits(found, expected), (shape, dtype)


@each("dtype", [F32, BF16])
def test_layouts_and_results_in_place(dtype):
    x, y, w = operands((50, 70), dtype)
    expected = [np.ascontiguousarray(one) for one in block(x, y, w)]
    wide = np.zeros((50, 140), dtype)[:, ::2]
    wide[...] = x
    for laid in (np.asfortranarray(x), wide):
        for found, one in zip(aclnn.compile(block)(laid, y, w), expected, strict=True):
            assert same_bits(np.ascontiguousarray(found), one)

    def write(x, y, w):
        x[...] = aclnn.softmax(x * y, -1) + y
        return x

    expected_once = aclnn.add(aclnn.softmax(aclnn.mul(x, y), -1), y)
    assert same_bits(aclnn.compile(write)(x, y, w), expected_once)
    assert same_bits(x, expected_once)


def test_numbers_of_a_run():
    """Of programs and of passes, each for itself."""
    x, _, w = operands((20, 60), F32)

    def scaled(x, w, slope, eps):
        return aclnn.leaky_relu(aclnn.rms_norm(aclnn.mul(x, slope), w.shape, w, eps), slope)

    compiled = aclnn.compile(scaled)
    for slope, eps in ((0.5, 1e-5), (0.1, 0.3), (3.0, 1e-12)):
        assert same_bits(compiled(x, w, slope, eps), scaled(x, w, slope, eps))


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_random_chains_have_the_bits_of_single_calls(data):
    shape = data.draw(st.sampled_from([(5, 24), (70, 33), (17, 600)]))
    dtype = data.draw(st.sampled_from([F32, F16, BF16]))
    names = data.draw(st.lists(st.sampled_from([*POINT, *ROWS]), min_size=2, max_size=7))
    kept = data.draw(st.sets(st.integers(0, len(names) - 1), max_size=2))

    def chain(x, y, w):
        found = []
        for n, name in enumerate(names):
            x = POINT[name](x, y) if name in POINT else ROWS[name](x, w)
            found += [x] if n in kept else []
        return [*found, x]

    given_arrays = operands(shape, dtype, seed=len(names))
    for threads in (1, 2):
        with aclnn.num_threads(threads):
            made = aclnn.compile(chain)(*given_arrays)
        for found, expected in zip(made, chain(*given_arrays), strict=True):
            assert same_bits(found, expected), names
