"""Attention with keys that batches share, with rows at the end of tensors, with slopes; statuses."""

import numpy as np
import pytest
from attention_calls import B, D, K, M, N, S, call, near, operands, random
from cases import each as named
from references import attention
from row_calls import bits

import aclnn
from aclnn.api.c_shaped import tensor

P = 37
OK, TILING = 0, 561002
COMPRESSED = np.ones((2048, 2048), bool)
F, H = np.float32, np.float16
V4, V5 = (f"aclnnFusedInferAttentionScoreV{n}" for n in (4, 5))
ROW, J = np.arange(S)[:, None], np.arange(P + K)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.fixture
def given(rng):
    return operands(rng)


@pytest.fixture
def shared(rng):
    return random(rng, 1, M, P, D), random(rng, 1, M, P, D)


def whole(shared, own, count=P):
    """Keys or values of each batch behind those that all share."""
    return np.concatenate([np.repeat(shared[:, :, :count], len(own), 0), own], 2)


def merged(x):
    return x.swapaxes(1, 2).reshape(len(x), x.shape[2], -1)


TO = {"BSH": merged, "BSND": lambda x: x.swapaxes(1, 2), "BNSD": lambda x: x}


# --- Keys that all batches share --------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["BSH", "BSND", "BNSD", "BNSD_BSND"])
@pytest.mark.parametrize("count", [None, 0, 1, P])
def test_shared_keys(layout, count, given, shared):
    first, _, second = layout.partition("_")
    q, *caches = given
    keys, values = (
        whole(a, b, P if count is None else count) for a, b in zip(shared, caches, strict=True)
    )
    want, lse, _ = attention(q, keys, values, scale=0.5)
    key, value = (np.ascontiguousarray(TO[first](x)) for x in shared)
    more = {} if count is None else {"actual_shared_prefix_len": np.int64([count])}
    found, logarithm = call(
        *(TO[first](x) for x in given), layout=layout, scale=0.5, softmax_lse_flag=True,
        key_shared_prefix=key, value_shared_prefix=value, **more,
    )  # fmt: skip
    near(found, TO[second or first](want))
    near(logarithm[..., 0], lse, 1e-5)


@pytest.mark.parametrize("dtype", [F, H])
def test_shared_keys_have_the_bits_of_keys_in_one_piece(dtype, rng):
    q = random(rng, B, N, 9, D, dtype=dtype)
    own, shared = (
        [random(rng, n, M, k, D, dtype=dtype) for _ in "kv"] for n, k in ((B, 1500), (1, 700))
    )
    given = {"key_shared_prefix": shared[0], "value_shared_prefix": shared[1]}
    found = call(q, *own, sparse_mode=3, atten_mask=COMPRESSED, **given)[0]
    joined = [whole(a, b, 700) for a, b in zip(shared, own, strict=True)]
    assert bits(found) == bits(call(q, *joined, sparse_mode=3, atten_mask=COMPRESSED)[0])


@pytest.mark.parametrize("lengths", [[150, 3], [0, 77]])
def test_shared_keys_with_lengths_masks_and_shifts(lengths, given, shared, rng):
    q, *caches = given
    keys, values = (whole(a, b) for a, b in zip(shared, caches, strict=True))
    cols = P + np.array(lengths)[:, None, None, None]
    hidden = rng.random((B, 1, S, P + K)) < 0.3
    shift = random(rng, B, N, S, P + K)
    options = {
        "actual_seq_lengths_kv": lengths, "key_shared_prefix": shared[0],
        "value_shared_prefix": shared[1],
    }  # fmt: skip
    found = call(*given, **options, atten_mask=hidden, pse_shift=shift)[0]
    near(found, attention(q, keys, values, scale=1.0, shift=shift, visible=(cols > J) & ~hidden)[0])
    found = call(*given, **options, atten_mask=COMPRESSED, sparse_mode=3)[0]
    visible = (cols > J) & (ROW + cols - S >= J)
    near(found, attention(q, keys, values, scale=1.0, visible=visible)[0])


def test_shared_keys_of_int8(rng):
    q = random(rng, B, N, S, D)
    own = [rng.integers(-9, 9, (B, M, K, D)).astype(np.int8) for _ in "kv"]
    shared = [rng.integers(-9, 9, (1, M, P, D)).astype(np.int8) for _ in "kv"]
    scales = [random(rng, M * D).astype(H) / 8 for _ in "kv"]
    found = call(
        q, *own, key_antiquant_scale=scales[0], value_antiquant_scale=scales[1],
        key_shared_prefix=shared[0], value_shared_prefix=shared[1],
    )[0]  # fmt: skip
    factors = [x.astype(float).reshape(1, M, 1, D) for x in scales]
    numbers = [whole(a, b) * f for a, b, f in zip(shared, own, factors, strict=True)]
    near(found, attention(q, *numbers, scale=1.0)[0])


@pytest.mark.parametrize("count", [-1, P + 1])
def test_counts_of_shared_keys_out_of_range_end_the_run(count, given, shared):
    more = {"key_shared_prefix": shared[0], "value_shared_prefix": shared[1]}
    with pytest.raises(aclnn.AclnnError, match=f"shared keys is {count}"):
        call(*given, actual_shared_prefix_len=np.int64([count]), **more)


def test_shared_keys_of_c_shaped_calls(given, shared):
    q, k, v = given
    out = np.zeros_like(q)
    arguments = {
        "query": q, "key": k, "value": v, "attentionOut": out, "inputLayout": "BNSD", "numHeads": N,
        "numKeyValueHeads": M, "keySharedPrefixOptional": shared[0],
        "valueSharedPrefixOptional": shared[1],
    }  # fmt: skip
    assert status(V4, **arguments, actualSharedPrefixLenOptional=[P]) == OK
    assert status(V4, **arguments, actualSharedPrefixLenOptional=[P + 1]) == TILING
    assert status(V4, **arguments, actualSharedPrefixLenOptional=[-1]) == TILING


# --- Rows at the end --------------------------------------------------------------------------------


def at_the_end(x, lengths, padding):
    """Rows of each batch so far before the end, the others NaN."""
    moved = np.full_like(x, np.nan)
    size = x.shape[2]
    for b, length in enumerate(lengths):
        moved[b, :, size - padding - length : size - padding] = x[b, :, :length]
    return moved


@pytest.mark.parametrize("paddings", [(0, 0), (2, 30), (-4, 1)])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_padding(paddings, dtype, given):
    queries, keys = [3, 1], [60, 120]
    q, k, v = given
    behind = [max(0, one) for one in paddings]
    rows, cols = (np.array(x)[:, None, None, None] for x in (queries, keys))
    seen = (np.arange(K) < cols) & (rows > ROW) & (np.arange(K) <= ROW + cols - rows)
    want, wanted_lse, _ = attention(*given, scale=1.0, visible=seen)
    found, lse = call(
        at_the_end(q, queries, behind[0]), at_the_end(k, keys, behind[1]), at_the_end(v, keys, behind[1]),
        actual_seq_lengths=queries, actual_seq_lengths_kv=keys, sparse_mode=3,
        atten_mask=COMPRESSED, softmax_lse_flag=True,
        query_padding_size=dtype([paddings[0]]), kv_padding_size=dtype([paddings[1]]),
    )  # fmt: skip
    for b, length in enumerate(queries):
        end = S - behind[0]
        near(found[b, :, end - length : end], want[b, :, :length])
        near(lse[b, :, end - length : end, 0], wanted_lse[b, :, :length], 1e-5)
        others = np.delete(np.arange(S), np.arange(end - length, end))
        assert not found[b, :, others].any()
        assert np.isposinf(lse[b, :, others]).all()


def test_masks_and_shifts_are_for_rows_of_padded_tensors(given, rng):
    q, k, v = given
    hidden, shift = rng.random((B, 1, S, K)) < 0.3, random(rng, B, N, S, K)
    seen = np.zeros((1, 1, S, K), bool)
    seen[..., 1:4, 70:148] = True
    want = attention(q, k, v, scale=1.0, shift=shift, visible=seen & ~hidden)[0]
    found = call(
        q, k, v, atten_mask=hidden, pse_shift=shift, actual_seq_lengths=[3], actual_seq_lengths_kv=[78],
        query_padding_size=np.int64([1]), kv_padding_size=np.int64([2]),
    )[0]  # fmt: skip
    near(found, want)


def test_padded_keys_of_one_query(given, rng):
    q, lengths = random(rng, B, N, 1, D), [60, 0]
    seen = np.arange(K) < np.array(lengths)[:, None, None, None]
    want = attention(q, *given[1:], scale=1.0, visible=seen)[0]
    found = aclnn.incre_flash_attention(
        q, *(at_the_end(x, lengths, 5) for x in given[1:]), num_heads=N, num_key_value_heads=M,
        input_layout="BNSD", actual_seq_lengths=lengths, kv_padding_size=np.int64([5]),
    )  # fmt: skip
    near(found, want)


def test_padding_without_lengths_has_no_effect(given):
    padding = {f"{what}_padding_size": np.int64([2]) for what in ("query", "kv")}
    for one, other in zip(call(*given, **padding), call(*given), strict=True):
        np.testing.assert_array_equal(one, other)


def test_padding_without_room_ends_the_run(given):
    options = {"actual_seq_lengths": [3], "actual_seq_lengths_kv": [60]}
    for what, size in (("query", S - 2), ("kv", K - 59)):
        padding = {f"{what}_padding_size": np.int64([size])}
        with pytest.raises(aclnn.AclnnError, match="no room"):
            call(*given, **options, **padding)


# --- Slopes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [2, 3])
@pytest.mark.parametrize("starts", [(None, None), ([100], [40])])
def test_slopes(kind, starts, given, rng):
    slopes = np.abs(random(rng, N, dtype=F))
    distance = np.abs(ROW + (starts[0] or [0])[0] - (np.arange(K) + (starts[1] or [0])[0]))
    shift = -slopes[:, None, None] * (np.sqrt(distance) if kind == 3 else distance)
    want, lse, _ = attention(*given, scale=0.5, shift=shift[None])
    found, logarithm = aclnn.fused_infer_attention_score_v2(
        *given, num_query_heads=N, num_key_value_heads=M, input_layout="BNSD", softmax_scale=0.5,
        pse_shift=slopes, pse_type=kind, q_start_idx=starts[0], kv_start_idx=starts[1],
        return_softmax_lse=True,
    )  # fmt: skip
    near(found, want)
    np.testing.assert_allclose(logarithm[..., 0], lse, 1e-5, 1e-4)


@pytest.mark.parametrize("kind", [0, 1])
def test_shifts_before_and_after_the_scale(kind, given, rng):
    shift = random(rng, B, N, S, K)
    want = attention(*given, scale=0.25, shift=shift, shift_first=kind == 1)[0]
    found = aclnn.fused_infer_attention_score_v2(
        *given, num_query_heads=N, num_key_value_heads=M, input_layout="BNSD", softmax_scale=0.25,
        pse_shift=shift, pse_type=kind,
    )[0]  # fmt: skip
    near(found, want)


# --- Statuses ---------------------------------------------------------------------------------------

FIA = {
    **{name: np.zeros((2, rows, 8), H) for name, rows in (("query", 1), ("key", 3), ("value", 3))},
    **dict.fromkeys(("numKeyValueHeads", "innerPrecise", "blockSize"), 0),
    **dict.fromkeys(("preTokens", "nextTokens"), 9),
    "numHeads": 2,
    "scaleValue": 1.0,
    "inputLayout": "BSH",
    "softmaxLseFlag": False,
    "attentionOut": np.zeros((2, 1, 8), H),
}


def status(name, **changes):
    """Of phase one, with parameters by CANN's names."""
    made, given = [], FIA | changes
    for parameter in aclnn.operators.ENTRIES[name][1].parameters:
        value = given.get(parameter.name)
        if isinstance(value, np.ndarray):
            value = tensor(value)
            value = aclnn.aclCreateTensorList([value]) if parameter.kind == "single" else value
        elif isinstance(value, list):
            value = aclnn.aclCreateIntArray(value)
        elif value is None and parameter.kind == "int":
            value = 0
        made.append(0 if value is None and "Mode" in parameter.name else value)
    return getattr(aclnn, f"{name}GetWorkspaceSize")(*made)[2]


HALF = {
    role: np.zeros((1, 3, 8), H)
    for role in ("keySharedPrefixOptional", "valueSharedPrefixOptional")
}
LENGTHS = {"actualSeqLengthsKvOptional": [3]}
PADDED = {"kvPaddingSizeOptional": np.zeros(1, np.int64)}
PAGES = {"blockTableOptional": np.zeros((2, 1), np.int32), "blockSize": 3} | LENGTHS


@named(
    ("changes", "wanted", "text"),
    [
        (HALF, OK, ""),
        ({"keySharedPrefixOptional": np.zeros((1, 3, 8), H)}, TILING, "is null"),
        (HALF | {"keySharedPrefixOptional": np.zeros((1, 3, 8), F)}, 161002, "dtype"),
        (HALF | {"keySharedPrefixOptional": np.zeros((1, 2, 8), H)}, TILING, "rows"),
        (HALF | {"keySharedPrefixOptional": np.zeros((2, 3, 8), H)}, TILING, "one batch"),
        (HALF | {"keySharedPrefixOptional": np.zeros((1, 3, 6), H)}, TILING, "one batch"),
        (HALF | PAGES, TILING, "besides"),
        (HALF | PADDED | LENGTHS, TILING, "besides"),
        ({"actualSharedPrefixLenOptional": [1]}, TILING, "is null"),
        (PADDED | LENGTHS, OK, ""),
        (PADDED, OK, ""),
        (PADDED | PAGES, TILING, "besides"),
        ({"kvPaddingSizeOptional": np.zeros(2, np.int64)} | LENGTHS, TILING, "shape"),
        ({"kvPaddingSizeOptional": np.zeros(1, F)} | LENGTHS, 161002, "dtype"),
        ({"queryPaddingSizeOptional": np.zeros(1, np.int64)}, OK, ""),
    ],
)
def test_statuses(changes, wanted, text):
    assert status(V4, **changes) == wanted
    assert wanted == OK or text in aclnn.aclGetRecentErrMsg()


@named(
    ("changes", "wanted"),
    [
        ({"pseType": 2, "pseShiftOptional": np.zeros(2, F)}, OK),
        ({"pseType": 3, "pseShiftOptional": np.zeros(2, F), "qStartIdxOptional": [1]}, OK),
        ({"pseType": 1, "pseShiftOptional": np.zeros((2, 2, 1, 3), H)}, OK),
        ({"pseType": 2}, TILING),
        ({"pseType": 4}, TILING),
        ({"pseType": 2, "pseShiftOptional": np.zeros(3, F)}, TILING),
        ({"pseType": 2, "pseShiftOptional": np.zeros(2, H)}, 161002),
        ({"pseType": 0, "kvStartIdxOptional": [1, 2]}, TILING),
    ],
)
def test_statuses_of_slopes(changes, wanted):
    before = aclnn.get_soc_version()
    aclnn.set_soc_version("Ascend950")
    try:
        assert status(V5, **FIA | changes) == wanted
    finally:
        aclnn.set_soc_version(before)
