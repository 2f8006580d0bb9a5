"""Attention: against sums in float64, for any batching, layout and instruction set; what is refused."""

import ml_dtypes
import numpy as np
import pytest
from cases import each as named
from references import attention, attention_gradients
from row_calls import bits, layouts
from wide import DIGITS

import aclnn

BF16 = ml_dtypes.bfloat16
FLOATS = (np.float32, np.float16, BF16)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def random(rng, shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


# --- The reference --------------------------------------------------------------------------------


def assert_near(found, want, bound):
    kind = found.dtype.type
    half = np.abs(want) * 2.0 ** -DIGITS[kind] + 2.0**-24
    assert found.shape == want.shape
    error = np.abs(found.astype(np.float64) - want)
    assert (error <= bound + half).all(), np.max(error)


SHAPES = [
    (1, 1, 1, 1, 1, 1, 1),
    (2, 4, 2, 3, 5, 8, 8),
    (1, 2, 2, 17, 129, 64, 64),
    (1, 6, 3, 31, 40, 20, 12),
    (1, 1, 1, 150, 300, 33, 65),
    (1, 4, 1, 1, 1100, 128, 128),
    (2, 2, 2, 2, 4100, 16, 16),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_attention_is_that_of_the_reference(shape, dtype, rng):
    b, n, m, s, keys, d, e = shape
    q, k, v = (random(rng, x, dtype) for x in ((b, n, s, d), (b, m, keys, d), (b, m, keys, e)))
    mask = rng.random((b, 1, s, keys)) < 0.7
    shift = random(rng, (n, s, keys))
    causal = np.arange(keys) <= np.arange(s)[:, None]
    for given, options in (
        ({}, {}),
        ({"scale": 0.25}, {"scale": 0.25}),
        ({"is_causal": True}, {"visible": causal}),
        ({"attn_mask": mask}, {"visible": mask}),
        ({"attn_mask": shift}, {"shift": shift}),
    ):
        grouped = n != m
        out, lse = aclnn.scaled_dot_product_attention_forward(q, k, v, enable_gqa=grouped, **given)
        want, wanted_lse, bound = attention(q, k, v, **options)
        assert_near(out, want, bound)
        assert lse.dtype == np.float32
        np.testing.assert_allclose(lse, wanted_lse, 1e-6, 2 * bound + 1e-5)
        alone = aclnn.scaled_dot_product_attention(q, k, v, enable_gqa=grouped, **given)
        assert bits(alone) == bits(out)


# --- Bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("causal", [False, True])
def test_bits_depend_on_no_other_query(dtype, causal, rng, threads_as_before):
    q, k, v = (random(rng, (2, 3, n, 40), dtype) for n in (301, 1400, 1400))
    mask = rng.random((2, 3, 301, 1400)) < 0.9
    if causal:
        mask &= np.arange(1400) <= 4 * np.arange(301)[:, None]
    call = aclnn.scaled_dot_product_attention
    aclnn.set_num_threads(1)
    whole = call(q, k, v, mask)
    aclnn.set_num_threads(2)
    assert bits(call(q, k, v, mask)) == bits(whole)
    for begin, end in ((0, 1), (5, 6), (7, 21), (100, 300), (300, 301)):
        part = call(q[1:, 2:, begin:end], k[1:, 2:], v[1:, 2:], mask[1:, 2:, begin:end])
        assert bits(part) == bits(whole[1:, 2:, begin:end]), (begin, end)
    for one, other, third in zip(layouts(q), layouts(k), layouts(v), strict=True):
        assert bits(call(one, other, third, mask)) == bits(whole)
    # Keys behind the last one that is seen change nothing.
    seen = aclnn.scaled_dot_product_attention(q, k[:, :, :900], v[:, :, :900])
    few = np.broadcast_to(np.arange(1400) < 900, (301, 1400))
    assert bits(call(q, k, v, few)) == bits(seen)


# Batch and heads, heads of keys, queries, keys: less units of rows than threads, several segments.
FEW = [(1, 1, 1, 1, 4096), (1, 1, 1, 5, 2500), (1, 6, 2, 3, 1025), (2, 1, 1, 40, 3000)]


@pytest.mark.parametrize("shape", FEW, ids=str)
@pytest.mark.parametrize("form", ["plain", "causal", "masked"])
def test_bits_depend_on_no_division_of_keys(shape, form, rng, threads_as_before):
    batch, heads, own, queries, keys = shape
    q, k, v = (
        random(rng, (batch, n, rows, size))
        for n, rows, size in ((heads, queries, 24), (own, keys, 24), (own, keys, 20))
    )
    mask = rng.random((batch, 1, queries, keys)) < 0.5 if form == "masked" else None
    if mask is not None:
        mask[0, 0, 0, : keys - 500] = False  # the first segments, but for the shortest
    options = {"is_causal": form == "causal", "enable_gqa": True}
    found = []
    for threads in (1, 2, 3, 8):
        aclnn.set_num_threads(threads)
        found.append(aclnn.scaled_dot_product_attention(q, k, v, mask, **options))
    wide = [np.repeat(x.astype(float), heads // own, 1) for x in (k, v)]
    scores = q.astype(float) @ wide[0].swapaxes(-1, -2) / np.sqrt(24)
    seen = np.tril(np.ones((queries, keys), bool)) if form == "causal" else mask
    scores = scores if seen is None else np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ wide[1]
    np.testing.assert_allclose(found[0], want, 1e-5, 1e-6)
    for one in found[1:]:
        assert bits(one) == bits(found[0])


def test_broadcast_batches_and_heads(rng):
    q, k, v = random(rng, (2, 1, 5, 8)), random(rng, (3, 7, 8)), random(rng, (2, 3, 7, 4))
    whole = [np.broadcast_to(x, (2, 3, *x.shape[-2:])).copy() for x in (q, k, v)]
    found = aclnn.scaled_dot_product_attention(q, k, v)
    assert bits(found) == bits(aclnn.scaled_dot_product_attention(*whole))
    matrices = aclnn.scaled_dot_product_attention(q[0, 0], k[0], v[0, 0])
    assert bits(matrices) == bits(found[0, 0])
    many = aclnn.scaled_dot_product_attention(*[x[None, None] for x in whole])
    assert bits(many) == bits(found)


# --- Hidden keys ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
def test_queries_that_see_nothing_are_zero(dtype, rng):
    q, k, v = (random(rng, (1, 1, n, 8), dtype) for n in (20, 9, 9))
    shown = rng.random((20, 9)) < 0.5
    shown[[0, 7, 19]] = False
    added = np.where(shown, np.float32(0), np.float32(-np.inf))
    for mask in (shown, added):
        out, lse = aclnn.scaled_dot_product_attention_forward(q, k, v, mask)
        assert (out[0, 0, [0, 7, 19]] == 0).all()
        assert (lse[0, 0, [0, 7, 19]] == np.inf).all()
        assert np.isfinite(np.delete(lse, [0, 7, 19], 2)).all()
    nothing = aclnn.scaled_dot_product_attention(q, k[:, :, :0], v[:, :, :0])
    assert nothing.shape == q.shape
    assert not nothing.any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_hidden_values_do_not_count_whatever_they_are(bad, rng):
    q, k, v = (random(rng, (1, 2, n, 24)) for n in (40, 300, 300))
    mask = rng.random((40, 300)) < 0.5
    mask[:, 200:] = False
    mask[0] = True
    wanted = aclnn.scaled_dot_product_attention(q, k, v, mask)
    hidden = rng.integers(0, 300, 5)
    k[:, :, hidden], v[:, :, hidden] = bad, bad
    mask[1:, hidden] = False
    v2 = v.copy()
    v2[:, :, hidden] = 0
    k2 = k.copy()
    k2[:, :, hidden] = 0
    found = aclnn.scaled_dot_product_attention(q, k, v, mask)
    clean = aclnn.scaled_dot_product_attention(q, k2, v2, mask)
    assert bits(found[:, :, 1:]) == bits(clean[:, :, 1:])
    assert np.isnan(found[:, :, 0]).all()
    assert np.isfinite(wanted).all()


@pytest.mark.each_instruction_set
@pytest.mark.parametrize("dtype", FLOATS)
def test_results_of_a_query_that_is_no_number_are_none(dtype, rng):
    for keys in (*range(1, 40), 127, 129, 515, 1090):
        for rows, bad in ((1, 0), (5, 2)):
            q, k, v = (random(rng, (1, 2, n, 8), dtype) for n in (rows, keys, keys))
            q[0, :, bad, 3] = np.nan
            mask = np.ones((rows, keys), bool)
            mask[:, 1:] = rng.random((rows, keys - 1)) < 0.7
            for shown in (None, mask):
                out, lse = aclnn.scaled_dot_product_attention_forward(q, k, v, shown)
                assert_only_nan(out, bad)
                assert_only_nan(lse[..., None], bad)
            for found in inferred(q, k, v) if dtype is not np.float32 else ():
                assert_only_nan(found, bad)
            trained, *statistics = aclnn.fusion_attention(q, k, v, 2, "BNSD")
            assert_only_nan(trained, bad)
            for one in statistics[:2]:
                assert_only_nan(one, bad)
            alone = aclnn.scaled_dot_product_attention(q, k, v)
            assert_only_nan(alone, bad)
            grads = aclnn.scaled_dot_product_attention_backward(
                v[:, :, :1],
                q[:, :, bad : bad + 1],
                k,
                v,
                out[:, :, bad : bad + 1],
                lse[:, :, bad : bad + 1],
            )
            assert np.isnan(grads[0]).all()


def inferred(q, k, v):
    """What functions of inference make of heads that have keys of their own."""
    yield aclnn.fused_infer_attention_score(
        q, k, v, num_heads=2, num_key_value_heads=2, input_layout="BNSD"
    )[0]
    yield aclnn.prompt_flash_attention(
        q, k, v, num_heads=2, num_key_value_heads=2, input_layout="BNSD", next_tokens=2**31 - 1
    )


def assert_only_nan(found, row):
    found = found.astype(np.float64)
    assert np.isnan(found[:, :, row]).all()
    assert np.isfinite(np.delete(found, row, 2)).all()


# --- Memory, instruction sets ------------------------------------------------------------------------


def test_no_matrix_of_scores():
    q = np.zeros((1, 8, 1024, 64), np.float32)
    executor = aclnn.executor("scaled_dot_product_attention", q, q, q, is_causal=True)
    assert [step.name for step in executor.schedule.steps] == ["attention"]
    assert executor.workspace_size < 2 * 250_000
    longer = np.zeros((1, 8, 8192, 64), np.float32)
    other = aclnn.executor("scaled_dot_product_attention", longer, longer, longer)
    assert other.workspace_size < 1.5 * executor.workspace_size


@pytest.mark.each_instruction_set
@pytest.mark.parametrize("dtype", FLOATS)
def test_every_instruction_set_agrees(dtype, rng):
    q, k, v = (random(rng, (1, 2, n, 36), dtype) for n in (19, 1090, 1090))
    mask = rng.random((19, 1090)) < 0.8
    mask[3] = False
    out, lse = aclnn.scaled_dot_product_attention_forward(q, k, v, mask)
    want, _, bound = attention(q, k, v, visible=mask)
    assert_near(out, want, bound)
    one = aclnn.scaled_dot_product_attention(q[:, :, 7:8], k, v, mask[7:8])
    assert bits(one) == bits(out[:, :, 7:8])
    grad = random(rng, out.shape, dtype)
    found = aclnn.scaled_dot_product_attention_backward(grad, q, k, v, out, lse, mask)
    for one, right in zip(found, attention_gradients(grad, q, k, v, visible=mask), strict=True):
        tolerance = 2e-5 if dtype is np.float32 else 0.03
        np.testing.assert_allclose(one.astype(float), right, tolerance, tolerance)


# --- Gradients --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_those_of_the_reference(shape, rng, threads_as_before):
    b, n, m, s, keys, d, e = shape
    q, k, v = (random(rng, x) for x in ((b, n, s, d), (b, m, keys, d), (b, m, keys, e)))
    grad = random(rng, (b, n, s, e))
    mask, shift = rng.random((b, 1, s, keys)) < 0.7, random(rng, (n, s, keys))
    for given, options in (
        ({}, {}),
        ({"scale": 0.25, "attn_mask": mask}, {"scale": 0.25, "visible": mask}),
        ({"is_causal": True}, {"visible": np.arange(keys) <= np.arange(s)[:, None]}),
        ({"attn_mask": shift}, {"shift": shift}),
    ):
        given = {"enable_gqa": n != m, **given}
        out, lse = aclnn.scaled_dot_product_attention_forward(q, k, v, **given)
        call = aclnn.scaled_dot_product_attention_backward
        found = call(grad, q, k, v, out, lse, **given)
        for one, right in zip(found, attention_gradients(grad, q, k, v, **options), strict=True):
            np.testing.assert_allclose(one, right, 1e-5, 2e-5 * max(1, np.abs(right).max()))
        aclnn.set_num_threads(2)
        assert [bits(x) for x in call(grad, q, k, v, out, lse, **given)] == [bits(x) for x in found]
        aclnn.set_num_threads(1)


# --- PyTorch ----------------------------------------------------------------------------------------


def test_calls_of_pytorch():
    torch = pytest.importorskip("torch")
    theirs = torch.nn.functional.scaled_dot_product_attention
    generator = torch.Generator().manual_seed(0)

    def tensor(*shape):
        return torch.randn(shape, generator=generator)

    mask, shift = torch.rand(2, 1, 5, 9) < 0.7, tensor(5, 9)
    mask[..., 0] = True
    for heads, options in (
        (3, {}),
        (3, {"attn_mask": mask}),
        (3, {"attn_mask": shift}),
        (3, {"is_causal": True, "scale": 0.5}),
        (1, {"enable_gqa": True}),
    ):
        ours, wanted = [], []
        given = [tensor(2, 3, 5, 8), tensor(2, heads, 9, 8), tensor(2, heads, 9, 8)]
        for call, found in ((aclnn.scaled_dot_product_attention, ours), (theirs, wanted)):
            tensors = [one.clone().requires_grad_() for one in given]
            more = dict(options)
            if options.get("attn_mask") is shift:
                more["attn_mask"] = shift.clone().requires_grad_()
                tensors.append(more["attn_mask"])
            out = call(*tensors[:3], **more)
            out.backward(torch.ones_like(out).cumsum(-1))
            found.extend([out, *[one.grad for one in tensors]])
        torch.testing.assert_close(ours, wanted)


def test_the_backend_takes_it():
    torch = pytest.importorskip("torch")
    q = torch.randn(1, 2, 64, 32, generator=torch.Generator().manual_seed(1))

    def layer(q):
        return torch.nn.functional.scaled_dot_product_attention(q.sin(), q, q, is_causal=True)

    with torch.no_grad():
        assert aclnn.torch.explain(layer, q).left == []
        torch.testing.assert_close(torch.compile(layer, backend="aclnn")(q), layer(q))


# --- Refused ----------------------------------------------------------------------------------------


@named(
    ("change", "words"),
    [
        ({"key": np.zeros((2, 5, 4), np.float32)}, "last size"),
        ({"value": np.zeros((2, 6, 3), np.float32)}, "number of keys"),
        ({"key": np.zeros((2, 5, 3), np.float16)}, "dtype"),
        ({"query": np.zeros(3, np.float32)}, "dimensions"),
        ({"key": np.zeros((3, 5, 3), np.float32)}, "broadcast"),
        ({"attn_mask": np.zeros((4, 4), np.float32)}, "attn_mask"),
        ({"attn_mask": np.zeros(5, np.float32)}, "attn_mask"),
        ({"attn_mask": np.zeros((4, 5), np.int8)}, "attn_mask"),
        ({"attn_mask": np.zeros((4, 5), bool), "is_causal": True}, "is_causal"),
        ({"dropout_p": 0.5}, "dropout"),
        ({"query": np.zeros((3, 4, 3), np.float32), "enable_gqa": True}, "heads"),
    ],
)
def test_calls_that_are_refused(change, words):
    given = {"query": (2, 4, 3), "key": (2, 5, 3), "value": (2, 5, 3)}
    given = {role: np.zeros(shape, np.float32) for role, shape in given.items()} | change
    with pytest.raises(aclnn.AclnnError, match=words) as caught:
        aclnn.scaled_dot_product_attention(**given)
    assert caught.value.status == 161002
