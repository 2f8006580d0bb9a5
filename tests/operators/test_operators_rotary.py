"""Rotary position embeddings: against exact sums of products, in any layout; what is refused."""

import ml_dtypes
import numpy as np
import pytest
from cases import each
from row_calls import bits, call, layouts, status
from wide import WIDE, ulps

import aclnn

pytestmark = pytest.mark.each_instruction_set

BF16 = ml_dtypes.bfloat16
FLOATS = (np.float32, np.float16, BF16)
SUCCESS, NULLPTR, INVALID, TILING = 0, 161001, 161002, 561002
HALF, INTERLEAVE, QUARTER, INTERLEAVE_HALF = range(4)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def random(rng, shape, dtype=np.float32):
    return (2 * rng.standard_normal(shape)).astype(dtype)


def rotated(x, mode):
    """Both addends' elements of x: what the cosine is a factor of, and the sine."""
    if mode == HALF:
        a, b = np.split(x, 2, -1)
        return x, np.concatenate([-b, a], -1)
    if mode == QUARTER:
        a, b, c, d = np.split(x, 4, -1)
        return x, np.concatenate([-b, a, -d, c], -1)
    even, odd = x[..., ::2], x[..., 1::2]
    if mode == INTERLEAVE:
        return x, np.stack([-odd, even], -1).reshape(x.shape)
    return np.concatenate([even, odd], -1), np.concatenate([-odd, even], -1)


def reference(x, cos, sin, mode):
    first, second = rotated(x.astype(WIDE), mode)
    return first * cos.astype(WIDE) + second * sin.astype(WIDE)


SHAPES = [
    ((2, 5, 3, 16), (2, 5, 1, 16)),
    ((5, 2, 3, 16), (5, 1, 1, 16)),
    ((2, 3, 5, 16), (1, 1, 5, 16)),
    ((7, 3, 8), (7, 1, 8)),
    ((3, 8), (3, 8)),
    ((70,), (70,)),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize(("shape", "table"), SHAPES)
def test_rotation_is_the_exact_one_rounded(mode, shape, table, dtype, rng):
    if mode == QUARTER and shape[-1] % 4:
        shape, table = (64,), (64,)
    x, cos, sin = random(rng, shape, dtype), random(rng, table, dtype), random(rng, table, dtype)
    found = aclnn.rotary_position_embedding(x, cos, sin, mode)
    assert (found.dtype, found.shape) == (dtype, shape)
    assert ulps(found, reference(x, cos, sin, mode)) <= 0.5
    for one, other in zip(layouts(x), layouts(cos), strict=True):
        wide = np.zeros([2 * n for n in shape], dtype)
        out = wide[tuple([slice(None, None, 2)] * len(shape))]
        aclnn.rotary_position_embedding(one, other, sin, mode, out=out)
        assert bits(out) == bits(found)


@pytest.mark.parametrize("mode", range(4))
def test_rotation_over_its_input(mode, rng):
    """In place, and from a place beside it."""
    memory = random(rng, (5, 4, 8))
    cos, sin = random(rng, (4, 1, 8)), random(rng, (4, 1, 8))
    x = memory[:4].copy()
    want = aclnn.rotary_position_embedding(x, cos, sin, mode)
    for first in (0, 1):
        memory[:4] = x
        out = memory[first : first + 4]
        aclnn.rotary_position_embedding(memory[:4], cos, sin, mode, out=out)
        assert bits(out) == bits(want)


def test_a_rotation_is_one_loop_without_copies(rng):
    x, cos = random(rng, (2, 64, 8, 64)), random(rng, (1, 64, 1, 64))
    executor = aclnn.executor("rotary_position_embedding", x, cos, cos)
    assert (len(executor.schedule.steps), executor.workspace_size) == (1, 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("layout", "query", "key", "table"),
    [
        (1, (2, 5, 4, 8), (2, 5, 2, 8), (2, 5, 1, 8)),
        (2, (5, 2, 4, 8), (5, 2, 1, 8), (5, 1, 1, 8)),
        (3, (2, 4, 5, 8), (2, 2, 5, 8), (1, 1, 5, 8)),
        (4, (5, 4, 8), (5, 2, 8), (5, 1, 8)),
    ],
)
@pytest.mark.parametrize("mode", ["half", "interleave", "quarter"])
def test_queries_and_keys(mode, layout, query, key, table, dtype, rng):
    q, k, cos, sin = (random(rng, shape, dtype) for shape in (query, key, table, table))
    number = ("half", "interleave", "quarter").index(mode)
    found = aclnn.apply_rotary_pos_emb(q, k, cos, sin, layout, mode)
    want = [aclnn.rotary_position_embedding(one, cos, sin, number) for one in (q, k)]
    assert [bits(one) for one in found] == [bits(one) for one in want]
    given = q.copy(), k.copy()
    taken = aclnn.apply_rotary_pos_emb_(*given, cos, sin, layout, mode)
    assert all(one is other for one, other in zip(taken, given, strict=True))
    assert [bits(one) for one in given] == [bits(one) for one in want]
    given = q.copy(), k.copy()
    call("aclnnApplyRotaryPosEmbV2", *given, cos, sin, layout, mode)
    assert [bits(one) for one in given] == [bits(one) for one in want]
    if mode == "half":
        given = q.copy(), k.copy()
        call("aclnnApplyRotaryPosEmb", *given, cos, sin, layout)
        assert [bits(one) for one in given] == [bits(one) for one in want]


def test_empties():
    x, table = np.zeros((0, 3, 8), np.float32), np.zeros((0, 1, 8), np.float32)
    assert aclnn.rotary_position_embedding(x, table, table).shape == (0, 3, 8)
    found = aclnn.apply_rotary_pos_emb(x, x[:, :1], table, table, 4)
    assert [one.shape for one in found] == [(0, 3, 8), (0, 1, 8)]


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


X, HALVES = zeros(2, 8), zeros(2, 8, dtype=np.float16)
ROTATION, BOTH, V2 = (
    "aclnnRotaryPositionEmbedding",
    "aclnnApplyRotaryPosEmb",
    "aclnnApplyRotaryPosEmbV2",
)
Q = zeros(2, 5, 3, 8)
REFUSED = [
    (ROTATION, (X, None, X, 9, X), NULLPTR, "cos is null"),
    (ROTATION, (zeros(2, 8, dtype=np.float64), X, X, 9, X), INVALID, "x has dtype DOUBLE"),
    (ROTATION, (X, X, HALVES, 9, X), INVALID, "sin has dtype FLOAT16"),
    (ROTATION, (X, X, X, 4, zeros(1)), INVALID, "mode is 4, must be from 0 to 3"),
    (ROTATION, (zeros(), X, X, 0, X), TILING, "x has 0 dimensions"),
    (ROTATION, (zeros(2, 7), X, X, 0, X), TILING, "last size 7, which 2 does not divide"),
    (ROTATION, (zeros(2, 6), X, X, 2, X), TILING, "last size 6, which 4 does not divide"),
    (ROTATION, (X, zeros(3, 8), X, 0, X), TILING, "cos has shape (3, 8)"),
    (ROTATION, (X, zeros(8), X, 0, X), TILING, "cos has shape (8,)"),
    (ROTATION, (X, zeros(2, 1), X, 0, X), TILING, "cos has shape (2, 1)"),
    (ROTATION, (X, X, X[:1], 0, X), TILING, "sin has shape (1, 8)"),
    (ROTATION, (X, X, X, 0, X[:1]), TILING, "out has shape (1, 8)"),
    (BOTH, (Q, None, Q, Q, 1), NULLPTR, "keyRef is null"),
    (BOTH, (Q, Q.astype(np.float16), Q, Q, 1), INVALID, "keyRef has dtype FLOAT16"),
    (BOTH, (Q, Q, Q, Q, 0), INVALID, "layout is 0, must be from 1 to 4"),
    (V2, (Q, Q, Q, Q, 1, "full"), INVALID, "rotaryMode is 'full'"),
    (V2, (Q, Q, Q, Q, 1, None), NULLPTR, "rotaryMode is null"),
    (BOTH, (X, Q, Q, Q, 1), TILING, "queryRef has 2 dimensions, must have 4"),
    (BOTH, (Q, Q, Q, Q, 4), TILING, "queryRef has 4 dimensions, must have 3"),
    (BOTH, (Q, zeros(2, 4, 3, 8), Q, Q, 1), TILING, "differ not only in the number of heads"),
    (BOTH, (Q, zeros(2, 5, 1, 8), Q, Q, 1), TILING, "cos has shape (2, 5, 3, 8)"),
]


@each(("name", "arguments", "wanted", "words"), REFUSED)
def test_what_is_refused_and_when(name, arguments, wanted, words):
    assert status(name, *arguments) == wanted
    assert words in aclnn.aclGetRecentErrMsg()
