"""CANN's functions of attention: layouts, modes, lengths and pages against sums in float64; statuses."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from attention_calls import B, D, K, M, N, S, call, near, operands, random
from cases import each as named
from references import attention, attention_gradients
from row_calls import bits

import aclnn
from aclnn.api.c_shaped import tensor

BF16 = ml_dtypes.bfloat16
OK, NULLPTR, INVALID, RUNTIME, TILING = 0, 161001, 161002, 361001, 561002
COMPRESSED = np.ones((2048, 2048), bool)
ROW, J = np.arange(S)[:, None], np.arange(K)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def given(rng):
    return operands(rng)


def merged(x, order=(0, 2, 1, 3)):
    """[B, N, S, D] as [B, S, N * D], or another order of the first two."""
    turned = x.transpose(order)
    return np.ascontiguousarray(turned).reshape(*turned.shape[:2], -1)


# --- Layouts ----------------------------------------------------------------------------------------

TO = {
    "BSH": merged,
    "BSND": lambda x: x.transpose(0, 2, 1, 3),
    "BNSD": lambda x: x,
    "NBSD": lambda x: x.transpose(1, 0, 2, 3),
}
PAIRS = (
    "BSH",
    "BSND",
    "BNSD",
    "BNSD_BSND",
    "BSH_BNSD",
    "BSND_BNSD",
    "BSH_NBSD",
    "BSND_NBSD",
    "BNSD_NBSD",
)


@pytest.mark.parametrize("layout", PAIRS)
def test_layouts(layout, given):
    want, lse, _ = attention(*given, scale=0.5)
    first, _, second = layout.partition("_")
    options = {"layout": layout, "scale": 0.5, "softmax_lse_flag": True}
    found, logarithm = call(*map(TO[first], given), **options)
    near(found, TO[second or first](want))
    near(logarithm[..., 0], lse, 1e-5)
    assert call(*map(TO[first], given), layout=layout)[1] is None


@pytest.mark.parametrize("layout", ["TND", "NTD", "TND_NTD", "NTD_TND"])
def test_batches_one_after_the_other(layout, rng):
    queries, keys = [3, 3, 10], [40, 90, 230]
    q, k, v = random(rng, 10, N, D), random(rng, 230, M, D), random(rng, 230, M, D)
    first, _, second = layout.partition("_")
    tensors = [x.swapaxes(0, 1) if first == "NTD" else x for x in (q, k, v)]
    lengths = {"actual_seq_lengths": queries, "actual_seq_lengths_kv": np.int64(keys)}
    found, lse = call(
        *tensors,
        layout=layout,
        sparse_mode=3,
        atten_mask=COMPRESSED,
        softmax_lse_flag=True,
        **lengths,
    )
    found = found.swapaxes(0, 1) if (second or first) == "NTD" else found
    assert lse.shape == (10, N, 1)
    pairs = itertools.pairwise([0, *queries]), itertools.pairwise([0, *keys])
    for (a, b), (c, d) in zip(*pairs, strict=True):
        one = [x.swapaxes(0, 1)[None] for x in (q[a:b], k[c:d], v[c:d])]
        if a == b:
            continue
        seen = np.arange(d - c) <= np.arange(b - a)[:, None] + (d - c) - (b - a)
        want, wanted_lse, _ = attention(*one, scale=1.0, visible=seen)
        near(found[a:b].swapaxes(0, 1)[None], want)
        near(lse[a:b, :, 0].T[None], wanted_lse, 1e-5)


# --- Which keys are seen ----------------------------------------------------------------------------

MODES = {
    2: J <= ROW,
    3: J <= ROW + K - S,
    4: (J >= ROW + K - S - 3) & (J <= ROW + K - S + 1),
}


@pytest.mark.parametrize("mode", MODES)
def test_modes_with_compressed_masks(mode, given):
    options = {"sparse_mode": mode, "pre_tokens": 3, "next_tokens": 1, "atten_mask": COMPRESSED}
    near(call(*given, **options)[0], attention(*given, scale=1.0, visible=MODES[mode])[0])


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8])
def test_full_masks(dtype, given, rng):
    hidden = rng.random((B, 1, S + 3, K + 9)) < 0.5
    own = hidden[:, :, :S, :K]
    found = call(*given, sparse_mode=1, atten_mask=hidden.astype(dtype))[0]
    near(found, attention(*given, scale=1.0, visible=~own)[0])
    window = {"pre_tokens": 60, "next_tokens": -2}
    found = call(*given, atten_mask=hidden.astype(dtype), **window)[0]
    seen = ~own & (J >= ROW - 60) & (J <= ROW - 2)
    near(found, attention(*given, scale=1.0, visible=seen)[0])
    for one in (hidden[:, 0], hidden[0, 0], hidden[:1]):
        found = call(*given, sparse_mode=1, atten_mask=one.astype(dtype))[0]
        every = np.broadcast_to(one[:, None] if one.ndim == 3 else one, hidden.shape)
        near(found, attention(*given, scale=1.0, visible=~every[:, :, :S, :K])[0])


def test_trees(given, rng):
    hidden = rng.random((B, S, S)) < 0.5
    seen = ~np.concatenate([np.zeros((B, S, K - S), bool), hidden], -1)[:, None]
    found = call(*given, sparse_mode=9, atten_mask=hidden)[0]
    near(found, attention(*given, scale=1.0, visible=seen)[0])


def test_shifts_sinks_and_ropes(given, rng):
    shift, sink = random(rng, 1, N, S + 1, K + 2), random(rng, N)
    near(
        call(*given, pse_shift=shift)[0], attention(*given, scale=1.0, shift=shift[:, :, :S, :K])[0]
    )
    found, lse = call(*given, learnable_sink=sink, softmax_lse_flag=True)
    want, wanted_lse, _ = attention(*given, scale=1.0, sink=sink)
    near(found, want)
    near(lse[..., 0], wanted_lse, 1e-5)
    ropes = random(rng, B, N, S, 8), random(rng, B, M, K, 8)
    found = call(*given, query_rope=ropes[0], key_rope=ropes[1], scale=0.25)[0]
    q, k = (np.concatenate(pair, -1) for pair in zip(given, ropes, strict=False))
    near(found, attention(q, k, given[2], scale=0.25)[0])


def test_of_one_query_modes_do_not_count(given, rng):
    q = random(rng, B, N, 1, D)
    hidden = rng.random((B, K)) < 0.5
    want = attention(q, *given[1:], scale=1.0, visible=~hidden[:, None, None])[0]
    near(call(q, *given[1:], sparse_mode=3, atten_mask=hidden, actual_seq_lengths=[0, 0])[0], want)
    found = aclnn.incre_flash_attention(
        q, *given[1:], num_heads=N, num_key_value_heads=M, input_layout="BNSD", atten_mask=hidden
    )
    near(found, want)


# --- Lengths, pages ---------------------------------------------------------------------------------


def shown(queries, keys):
    rows, cols = (np.array(x)[:, None, None, None] for x in (queries, keys))
    return (cols > J) & (rows > ROW)


@pytest.mark.parametrize("lengths", [([3, 5], [60, 0]), ([5], [149]), ([0, 5, 9], [1, 150, 7])])
def test_lengths(lengths, given):
    queries, keys = [(one * 2)[:2] for one in lengths]
    options = dict(zip(("actual_seq_lengths", "actual_seq_lengths_kv"), lengths, strict=True))
    found, lse = call(*given, softmax_lse_flag=True, **options)
    want, wanted_lse, _ = attention(*given, scale=1.0, visible=shown(queries, keys))
    near(found, want)
    np.testing.assert_allclose(lse[..., 0], wanted_lse, 1e-5, 1e-5)


def test_other_lengths_need_no_new_plan(given):
    call(*given, actual_seq_lengths_kv=np.array([3, 5]))
    before = aclnn.cache_info()["misses"]
    for length in range(9):
        call(*given, actual_seq_lengths_kv=np.array([length, 5]))
    assert aclnn.cache_info()["misses"] == before


def paged(rng, cache, lengths, size=16):
    """Blocks in any order, whose rows behind the last are NaN, and the table of them."""
    heads, depth = cache.shape[1], cache.shape[3]
    blocks = np.full((B * 12, heads, size, depth), np.nan, cache.dtype)
    table = np.full((B, 12), -7, np.int32)
    ids = iter(np.random.default_rng(0).permutation(len(blocks)))
    for b, length in enumerate(lengths):
        for n, first in enumerate(range(0, length, size)):
            table[b, n] = id = next(ids)
            count = min(size, length - first)
            blocks[id, :, :count] = cache[b, :, first : first + count]
    return blocks, table


@pytest.mark.parametrize("lengths", [[150, 33], [16, 1], [0, 129]])
def test_pages(lengths, given, rng):
    q, k, v = given
    (keys, table), (values, _) = paged(rng, k, lengths), paged(rng, v, lengths)
    want = attention(*given, scale=1.0, visible=shown([S, S], lengths))[0]
    options = {"block_table": table, "block_size": 16, "actual_seq_lengths_kv": lengths}
    whole = call(q, k, v, actual_seq_lengths_kv=lengths)[0]
    found = call(q, keys, values, **options)[0]
    near(found, want)
    assert bits(found) == bits(whole)
    rows = [merged(x) for x in (keys, values)]
    assert bits(call(merged(q), *rows, layout="BSH", **options)[0]) == bits(merged(found))
    causal = {"sparse_mode": 3, "atten_mask": COMPRESSED}
    found = call(q, keys, values, **options, **causal)[0]
    cols = np.array(lengths)[:, None, None, None]
    near(
        found,
        attention(*given, scale=1.0, visible=shown([S, S], lengths) & (ROW + cols - S >= J))[0],
    )


@pytest.mark.parametrize("bad", [24, -1, 2**31 - 1])
def test_blocks_that_do_not_exist_end_the_run(bad, given, rng):
    q, k, v = given
    (keys, table), (values, _) = paged(rng, k, [150, 33]), paged(rng, v, [150, 33])
    table[1, 1] = bad
    with pytest.raises(aclnn.AclnnError, match=f"block table is {bad}") as caught:
        call(q, keys, values, block_table=table, block_size=16, actual_seq_lengths_kv=[150, 33])
    assert caught.value.status == INVALID
    table[1, 1], table[1, 3:] = 0, bad  # which no key is in
    call(q, keys, values, block_table=table, block_size=16, actual_seq_lengths_kv=[150, 33])


@pytest.mark.parametrize("lengths", [[151, 3], [-1, 3], [3, 2**40]])
def test_lengths_out_of_range_end_the_run(lengths, given):
    with pytest.raises(aclnn.AclnnError, match="length of keys"):
        call(*given, actual_seq_lengths_kv=lengths)


# --- Training ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BSND", "BNSD"])
@pytest.mark.parametrize("mode", [0, 2, 5])
def test_training(layout, mode, rng):
    to = {**TO, "SBH": lambda x: merged(x, (2, 0, 1, 3))}[layout]
    shapes = (B, N, S, D), (B, M, K, D), (B, M, K, 8), (B, N, S, 8)
    q, k, v, grad = (random(rng, *shape, dtype=np.float32) for shape in shapes)
    shift = random(rng, 1, N, S, K, dtype=np.float32)
    prefix = np.array([3, 90])[:, None, None, None]
    seen = {0: None, 2: J <= ROW, 5: (prefix > J) | (J <= ROW + K - S)}[mode]
    options = {"scale": 0.3, "shift": shift, "shift_first": True, "visible": seen}
    want, lse, _ = attention(q, k, v, **options)
    mask = {2: COMPRESSED, 5: np.zeros((B, 1, S, K), bool)}.get(mode)
    more = {"pse": shift, "scale": 0.3, "sparse_mode": mode, "prefix": (3, 90), "atten_mask": mask}
    out, most, total = aclnn.fusion_attention(to(q), to(k), to(v), N, layout, **more)
    near(out, to(want), 1e-5)
    assert most.shape == total.shape == (B, N, S, 8)
    near(most[..., 3] + np.log(total[..., 7]), lse, 1e-5)
    found = aclnn.fusion_attention_grad(
        to(q), to(k), to(v), to(grad), N, layout, most, total, out, **more
    )
    for one, right in zip(found, attention_gradients(grad, q, k, v, **options), strict=True):
        near(one, to(right), 2e-5)


QUERIES, ENDS = [3, 3, 10], [40, 50, 150]


def varlen(q, k, v, mode, **more):
    """Both phases of a call with cumulative lengths: status, result, maxima and sums."""
    rows = q.shape[0]
    made = [np.zeros((rows, N, 8), np.float32) for _ in range(2)]
    out = np.zeros((rows, N, v.shape[2]), q.dtype)
    mask = more.get("mask", None if mode == 0 else COMPRESSED)
    mask = mask if mask is None else tensor(mask)
    lengths = [
        given if given is None else aclnn.aclCreateIntArray(given)
        for given in (more.get("queries", QUERIES), more.get("keys", ENDS))
    ]
    numbers = (0.3, 1.0, 2**31 - 1, 2**31 - 1, N, more.get("layout", "TND"), 0, mode)
    tensors = (*map(tensor, (q, k, v)), None, None, None, mask, None, *lengths)
    size, executor, status = aclnn.aclnnFlashAttentionVarLenScoreGetWorkspaceSize(
        *tensors, *numbers, *map(tensor, made), None, tensor(out)
    )
    if status == OK:
        workspace = np.empty(size, np.uint8)
        status = aclnn.aclnnFlashAttentionVarLenScore(workspace, size, executor, None)
    return status, out, *made


@pytest.mark.parametrize("mode", [0, 2, 3])
def test_training_with_cumulative_lengths(mode, rng):
    q, k, v = (random(rng, *s, dtype=np.float32) for s in ((10, N, D), (150, M, D), (150, M, 8)))
    status, out, most, total = varlen(q, k, v, mode)
    assert status == OK
    named = {"actual_seq_qlen": np.int64(QUERIES), "actual_seq_kvlen": np.int64(ENDS)}
    mask = {} if mode == 0 else {"atten_mask": COMPRESSED}
    found = aclnn.fusion_attention(q, k, v, N, "TND", scale=0.3, sparse_mode=mode, **mask, **named)
    for one, other in zip(found, (out, most, total), strict=True):
        np.testing.assert_array_equal(one, other)
    starts = zip([0, *QUERIES[:-1]], QUERIES, [0, *ENDS[:-1]], ENDS, strict=True)
    for first, last, begin, end in starts:
        parts = [x.swapaxes(0, 1)[None] for x in (q[first:last], k[begin:end], v[begin:end])]
        row, column = np.arange(last - first)[:, None], np.arange(end - begin)
        visible = {2: column <= row, 3: column <= row + (end - begin) - (last - first)}.get(mode)
        want, lse, _ = attention(*parts, scale=0.3, visible=visible)
        near(out[first:last], want[0].swapaxes(0, 1), 1e-5)
        own = (most + np.log(total))[first:last, :, 5]
        near(own, lse[0].T, 1e-5)


@pytest.mark.parametrize("lead", [(), (1, 1), (3, 1), (3, N), (1, N)])
@pytest.mark.parametrize("mode", [0, 1])
def test_masks_of_scores_with_cumulative_lengths(lead, mode, rng):
    """A row of the mask is for that row of each batch; it may have more rows and columns than these."""
    q, k, v = (random(rng, *s, dtype=np.float32) for s in ((10, N, D), (150, M, D), (150, M, 8)))
    hidden = rng.random((*lead, 8, 110)) < 0.5
    status, out, most, total = varlen(q, k, v, mode, mask=hidden)
    assert status == OK, aclnn.aclGetRecentErrMsg()
    grad = random(rng, 10, N, 8, dtype=np.float32)
    named = {"actual_seq_qlen": np.int64(QUERIES), "actual_seq_kvlen": np.int64(ENDS)}
    slopes = aclnn.fusion_attention_grad(
        q,
        k,
        v,
        grad,
        N,
        "TND",
        most,
        total,
        out,
        scale=0.3,
        sparse_mode=mode,
        atten_mask=hidden,
        **named,
    )
    every = np.broadcast_to(hidden, (3, N, 8, 110))
    starts = zip([0, *QUERIES[:-1]], QUERIES, [0, *ENDS[:-1]], ENDS, strict=True)
    for batch, (first, last, begin, end) in enumerate(starts):
        rows, keys = slice(first, last), slice(begin, end)
        parts = [x.swapaxes(0, 1)[None] for x in (q[rows], k[keys], v[keys])]
        visible = ~every[batch : batch + 1, :, : last - first, : end - begin]
        want, lse, _ = attention(*parts, scale=0.3, visible=visible)
        near(out[rows], want[0].swapaxes(0, 1), 1e-5)
        near((most + np.log(total))[rows, :, 5], lse[0].T, 1e-5)
        wanted = attention_gradients(
            grad[rows].swapaxes(0, 1)[None], *parts, scale=0.3, visible=visible
        )
        for one, place, right in zip(slopes, (rows, keys, keys), wanted, strict=True):
            near(one[place], right[0].swapaxes(0, 1), 2e-5)


def test_masks_that_batches_exceed(rng):
    q, k, v = (random(rng, *s, dtype=np.float32) for s in ((10, N, D), (150, M, D), (150, M, 8)))
    named = {"actual_seq_qlen": np.int64(QUERIES), "actual_seq_kvlen": np.int64(ENDS)}
    for shape, most in (((6, 100), 7), ((7, 99), 100)):
        assert varlen(q, k, v, 0, mask=np.zeros(shape, bool))[0] == TILING
        assert f"a batch of {most}" in aclnn.aclGetRecentErrMsg()
        with pytest.raises(aclnn.AclnnError, match=f"{most} queries or keys, more than the mask"):
            aclnn.fusion_attention(q, k, v, N, "TND", atten_mask=np.zeros(shape, bool), **named)
    assert varlen(q, k, v, 0, mask=np.zeros((2, 7, 100), bool))[0] == TILING


@pytest.mark.parametrize("mode", [0, 2, 3])
@pytest.mark.parametrize("c_shaped", [False, True])
def test_gradients_with_cumulative_lengths(mode, c_shaped, rng):
    shapes = (10, N, D), (150, M, D), (150, M, 8), (10, N, 8)
    q, k, v, grad = (random(rng, *shape, dtype=np.float32) for shape in shapes)
    _, out, most, total = varlen(q, k, v, mode)
    made = [np.full_like(x, np.nan) for x in (q, k, v)]
    mask = None if mode == 0 else COMPRESSED
    if c_shaped:
        lengths = [aclnn.aclCreateIntArray(one) for one in (QUERIES, ENDS)]
        tensors = [
            None if x is None else tensor(x) for x in (q, k, v, grad, None, None, None, mask)
        ]
        tensors += [tensor(most), tensor(total), None, tensor(out), None, *lengths]
        numbers = (0.3, 1.0, 2**31 - 1, 2**31 - 1, N, "TND", 0, mode)
        size, executor, status = aclnn.aclnnFlashAttentionUnpaddingScoreGradGetWorkspaceSize(
            *tensors, *numbers, *map(tensor, made), None
        )
        assert status == OK, aclnn.aclGetRecentErrMsg()
        workspace = np.empty(size, np.uint8)
        assert aclnn.aclnnFlashAttentionUnpaddingScoreGrad(workspace, size, executor, None) == OK
    else:
        lengths = {"actual_seq_qlen": np.int64(QUERIES), "actual_seq_kvlen": np.int32(ENDS)}
        made = aclnn.fusion_attention_grad(
            q, k, v, grad, N, "TND", most, total, out, scale=0.3, sparse_mode=mode, atten_mask=mask,
            **lengths,
        )  # fmt: skip
    starts = zip([0, *QUERIES[:-1]], QUERIES, [0, *ENDS[:-1]], ENDS, strict=True)
    for first, last, begin, end in starts:
        rows, keys = slice(first, last), slice(begin, end)
        parts = [x.swapaxes(0, 1)[None] for x in (grad[rows], q[rows], k[keys], v[keys])]
        row, column = np.arange(last - first)[:, None], np.arange(end - begin)
        visible = {2: column <= row, 3: column <= row + (end - begin) - (last - first)}.get(mode)
        want = attention_gradients(*parts, scale=0.3, visible=visible)
        for one, place, right in zip(made, (rows, keys, keys), want, strict=True):
            near(one[place], right[0].swapaxes(0, 1), 2e-5)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_gradients_with_cumulative_lengths_have_the_same_bits(threads, rng):
    ends, rows = np.int64([150, 151, 600]), np.int64([100, 101, 300])
    shapes = (300, N, D), (600, M, D), (600, M, D), (300, N, D)
    q, k, v, grad = (random(rng, *shape, dtype=np.float32) for shape in shapes)
    lengths = {"actual_seq_qlen": rows, "actual_seq_kvlen": ends}
    out, most, total = aclnn.fusion_attention(q, k, v, N, "TND", **lengths)
    with aclnn.num_threads(threads):
        found = aclnn.fusion_attention_grad(q, k, v, grad, N, "TND", most, total, out, **lengths)
    last = slice(101, 300), slice(151, 600)
    parts = [x[last[0]].swapaxes(0, 1)[None] for x in (q, grad, out, most, total)]
    keys = [x[last[1]].swapaxes(0, 1)[None] for x in (k, v)]
    alone = aclnn.fusion_attention_grad(
        parts[0], *keys, parts[1], N, "BNSD", parts[3], parts[4], parts[2]
    )
    for one, place, right in zip(found, (last[0], last[1], last[1]), alone, strict=True):
        np.testing.assert_array_equal(one[place], right[0].swapaxes(0, 1))


def test_lengths_that_leave_queries_to_no_batch_end_the_run(rng):
    q, k, v = (random(rng, *s, dtype=np.float32) for s in ((10, N, D), (150, M, D), (150, M, D)))
    with pytest.raises(aclnn.AclnnError, match="end with 9"):
        aclnn.fusion_attention(q, k, v, N, "TND", actual_seq_qlen=[9], actual_seq_kvlen=[150])


def test_rules_of_cumulative_lengths(rng):
    q, k, v = (random(rng, *s, dtype=np.float32) for s in ((10, N, D), (150, M, D), (150, M, 8)))
    for changes, wanted in (
        ({"queries": [3, 2, 10]}, TILING),
        ({"queries": [3, 10, 11]}, TILING),
        ({"keys": [40, 149, 149]}, TILING),
        ({"keys": [40, 150]}, TILING),
        ({"keys": None}, TILING),
        ({"layout": "BSND"}, INVALID),
    ):
        assert varlen(q, k, v, 0, **changes)[0] == wanted, changes
    four = [x[None] for x in (q, k, v)]
    with pytest.raises(aclnn.AclnnError, match="must be null in the layout BSND"):
        aclnn.fusion_attention(*four, N, "BSND", actual_seq_qlen=[10])
    torch = pytest.importorskip("torch")
    tracked = [torch.from_numpy(x).requires_grad_() for x in (q, k, v)]
    lengths = [torch.tensor(x) for x in (QUERIES, ENDS)]
    out = aclnn.fusion_attention(
        *tracked, N, "TND", actual_seq_qlen=lengths[0], actual_seq_kvlen=lengths[1]
    )[0]
    out.square().sum().backward()
    grad = 2 * out.detach().numpy()
    sums = aclnn.fusion_attention(q, k, v, N, "TND", actual_seq_qlen=QUERIES, actual_seq_kvlen=ENDS)
    want = aclnn.fusion_attention_grad(
        q, k, v, grad, N, "TND", *sums[1:], sums[0], actual_seq_qlen=QUERIES, actual_seq_kvlen=ENDS
    )
    for one, right in zip(tracked, want, strict=True):
        np.testing.assert_array_equal(one.grad.numpy(), right)


def test_gradients_of_pytorch():
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(2)
    given = [torch.randn(2, 4, 6, 8, generator=generator) for _ in range(3)]
    ours = [one.clone().requires_grad_() for one in given]
    theirs = [one.clone().requires_grad_() for one in given]
    out = aclnn.fusion_attention(*ours, 4, "BNSD", scale=0.25)[0]
    wanted = torch.nn.functional.scaled_dot_product_attention(*theirs, scale=0.25)
    for one in (out, wanted):
        one.backward(torch.ones_like(one).cumsum(-1))
    torch.testing.assert_close(out, wanted)
    torch.testing.assert_close([x.grad for x in ours], [x.grad for x in theirs])


# --- Statuses ---------------------------------------------------------------------------------------


def signature(name):
    return [p.name for p in aclnn.operators.ENTRIES[name][1].parameters]


FIA = {
    "query": np.zeros((2, 1, 8), np.float16),
    "key": np.zeros((2, 3, 8), np.float16),
    "value": np.zeros((2, 3, 8), np.float16),
    "numHeads": 2,
    "scaleValue": 1.0,
    "preTokens": 9,
    "nextTokens": 9,
    "inputLayout": "BSH",
    "numKeyValueHeads": 0,
    "sparseMode": 0,
    "innerPrecise": 0,
    "blockSize": 0,
    "softmaxLseFlag": False,
    "attentionOut": np.zeros((2, 1, 8), np.float16),
}


def status(name, lists=("key", "value"), **changes):
    """Of phase one, with parameters by CANN's names."""
    made = []
    for parameter in signature(name):
        value = (FIA | changes).get(parameter)
        if isinstance(value, np.ndarray):
            value = tensor(value)
            value = aclnn.aclCreateTensorList([value]) if parameter in lists else value
        elif isinstance(value, list):
            value = aclnn.aclCreateIntArray(value)
        made.append(value)
    made = [
        0 if one is None and "Mode" in n else one
        for one, n in zip(made, signature(name), strict=True)
    ]
    return getattr(aclnn, f"{name}GetWorkspaceSize")(*made)[2]


H, F = np.float16, np.float32
V4 = "aclnnFusedInferAttentionScoreV4"


@named(
    ("changes", "wanted"),
    [
        ({}, OK),
        ({"query": None}, NULLPTR),
        ({"key": None}, NULLPTR),
        ({"attentionOut": None}, NULLPTR),
        ({"inputLayout": None}, NULLPTR),
        ({"query": np.zeros((2, 1, 8), F)}, INVALID),
        ({"value": np.zeros((2, 3, 8), BF16)}, INVALID),
        ({"attentionOut": np.zeros((2, 1, 8), F)}, INVALID),
        ({"deqScale1Optional": np.zeros(1, F)}, TILING),
        ({"queryPaddingSizeOptional": np.zeros(1, np.int64)}, OK),
        ({"attenMaskOptional": np.zeros((1, 3), F)}, INVALID),
        ({"inputLayout": "BHS"}, TILING),
        ({"numHeads": 0}, TILING),
        ({"numHeads": 3}, TILING),
        ({"sparseMode": 7, "query": np.zeros((2, 2, 8), H)}, TILING),
        ({"innerPrecise": 4}, TILING),
        ({"softmaxLseFlag": True}, TILING),
        ({"actualSeqLengthsKvOptional": [3, 4]}, TILING),
        ({"actualSeqLengthsKvOptional": [-1]}, TILING),
        ({"actualSeqLengthsKvOptional": [3, 2, 9]}, OK),
        ({"blockTableOptional": np.zeros((2, 1), np.int32)}, TILING),
        ({"attentionOut": np.zeros((2, 8, 1), H)}, TILING),
        ({"attentionOut": np.zeros((0, 1, 8), H), "numHeads": -1}, OK),
        (
            {
                "attentionOut": np.zeros((0, 1, 8), H),
                "inputLayout": "BHS",
                "actualSeqLengthsKvOptional": [9],
            },
            OK,
        ),
        ({"query": None, "numHeads": -1}, NULLPTR),
        ({"query": np.zeros((2, 1, 8), F), "numHeads": -1}, INVALID),
    ],
)
def test_statuses(changes, wanted):
    assert status(V4, **changes) == wanted


def test_versions_and_products():
    versions = {n: f"aclnnFusedInferAttentionScoreV{n}" for n in (2, 3, 4, 5)}
    assert [len(signature(name)) for name in versions.values()] == [39, 42, 45, 48]
    nbsd = {"inputLayout": "BSH_NBSD", "attentionOut": np.zeros((2, 2, 1, 4), H)}
    bnsd = {"inputLayout": "BSH_BNSD", "attentionOut": np.zeros((2, 2, 1, 4), H)}
    assert [status(versions[n], **nbsd) for n in (2, 3, 4)] == [TILING, OK, OK]
    assert [status(versions[n], **bnsd) for n in (2, 3, 4)] == [TILING, TILING, OK]
    assert status(versions[5], pseType=0) == RUNTIME
    before = aclnn.get_soc_version()
    aclnn.set_soc_version("Ascend950")
    try:
        assert [status(versions[n]) for n in (2, 3, 4)] == [RUNTIME] * 3
        assert status("aclnnPromptFlashAttentionV3", ()) == RUNTIME
        assert status("aclnnIncreFlashAttentionV4") == RUNTIME
        assert status(versions[5], pseType=0) == OK
        assert status(versions[5], pseType=2) == TILING
        assert status(versions[5], pseType=0, qStartIdxOptional=[1, 2]) == TILING
    finally:
        aclnn.set_soc_version(before)


@named(
    ("name", "changes", "wanted"),
    [
        ("aclnnPromptFlashAttentionV3", {}, OK),
        ("aclnnPromptFlashAttentionV3", {"numHeads": 0}, INVALID),
        ("aclnnPromptFlashAttentionV3", {"inputLayout": "BHS"}, INVALID),
        *[
            ("aclnnPromptFlashAttentionV3", changes, INVALID)
            for changes in (
                {"query": np.zeros((2, 2, 2, 4), H)},
                {"key": np.zeros((2, 2, 2, 4), H)},
                {"inputLayout": "BNSD"},
                {"numHeads": 9},
                {
                    role: np.zeros((1, 2, 1040), H)
                    for role in ("query", "key", "value", "attentionOut")
                },
            )
        ],
        ("aclnnPromptFlashAttentionV3", {"sparseMode": 6, "query": np.zeros((2, 2, 8), H)}, TILING),
        ("aclnnPromptFlashAttentionV3", {"attentionOut": np.zeros((2, 8, 1), H)}, INVALID),
        ("aclnnPromptFlashAttentionV3", {"attentionOut": np.zeros((0, 1, 8), F)}, OK),
        ("aclnnIncreFlashAttentionV4", {}, OK),
        ("aclnnIncreFlashAttentionV4", {"innerPrecise": 2}, TILING),
        ("aclnnIncreFlashAttentionV4", {"query": np.zeros((2, 2, 8), H)}, TILING),
        ("aclnnIncreFlashAttentionV4", {"actualSeqLengths": [4]}, TILING),
    ],
)
def test_statuses_of_older_functions(name, changes, wanted):
    lists = () if "Prompt" in name else ("key", "value")
    assert status(name, lists, **changes) == wanted


TRAINING = {
    "keepProb": 1.0,
    "headNum": 2,
    "softmaxMaxOut": np.zeros((2, 2, 1, 8), F),
    "softmaxSumOut": np.zeros((2, 2, 1, 8), F),
    "attentionOutOut": np.zeros((2, 1, 8), H),
}


@named(
    ("changes", "wanted"),
    [
        ({}, OK),
        ({"softmaxMaxOut": None}, NULLPTR),
        ({"attentionOutOut": np.zeros((2, 1, 8), F)}, INVALID),
        ({"headNum": 0}, INVALID),
        ({"inputLayout": "TND"}, INVALID),
        ({"key": np.zeros((2, 3, 6), H)}, INVALID),
        ({"keepProb": 0.5}, OK),
        ({"keepProb": 0.0}, INVALID),
        ({"keepProb": 2.0}, INVALID),
        ({"keepProb": 0.5, "dropMaskOptional": np.zeros(8, np.uint8)}, TILING),
        ({"dropMaskOptional": np.zeros(8, np.uint8)}, OK),
        ({"sparseMode": 9}, TILING),
    ],
)
def test_statuses_of_training(changes, wanted):
    assert status("aclnnFlashAttentionScore", (), **TRAINING | changes) == wanted


def test_a_list_of_several_tensors_is_refused():
    half = tensor(np.zeros((2, 3, 8), np.float16))
    arguments = [FIA.get(name) for name in signature(V4)]
    arguments = [tensor(x) if isinstance(x, np.ndarray) else x for x in arguments]
    for place in (1, 2):
        arguments[place] = aclnn.aclCreateTensorList([half, half])
    for place, name in enumerate(signature(V4)):
        arguments[place] = 0 if "Mode" in name and arguments[place] is None else arguments[place]
    assert getattr(aclnn, f"{V4}GetWorkspaceSize")(*arguments)[2] == TILING
    assert "not implemented here" in aclnn.aclGetRecentErrMsg()
