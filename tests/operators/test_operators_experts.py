"""Mixtures of experts, against loops over tokens."""

import ml_dtypes
import numpy as np
import pytest
from calls import refused, run, tensor
from cases import each as named

import aclnn

INVALID, NULLPTR, TILING, FAILED_PLAN = 161002, 161001, 561002, 561103
BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [np.dtype(np.float32), np.dtype(np.float16), BF16]
EPS = {np.dtype(np.float32): 1e-6, np.dtype(np.float16): 2.0**-10, BF16: 2.0**-7}
same = np.testing.assert_array_equal


def filled(shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(0, 2, shape).astype(dtype)


def softmax(x):
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def best(x, k):
    return np.argsort(-x, -1, kind="stable")[..., :k]


@named("dtype", DTYPES, ids=str)
@named("shape", [(5, 9), (2, 3, 16)])
def test_the_largest_of_a_softmax(dtype, shape):
    x = np.round(filled(shape), 1).astype(dtype)  # some are equal
    finished = np.random.default_rng(1).random(shape[:-1]) < 0.5
    y, experts, rows = aclnn.moe_gating_top_k_softmax(x, finished, 3)
    n = softmax(x.astype(float))
    chosen = best(x.astype(float), 3)
    np.testing.assert_allclose(y.astype(float), np.take_along_axis(n, chosen, -1), EPS[dtype])
    same(experts, np.where(finished[..., None], shape[-1], chosen))
    count = int(np.prod(shape[:-1]))
    same(rows.reshape(count, 3), np.arange(3) * count + np.arange(count)[:, None])
    y, experts, whole = aclnn.moe_gating_top_k_softmax_v2(x, k=3, output_softmax=True)
    np.testing.assert_allclose(whole, n, 1e-6)
    same(experts, chosen)
    y, experts, none = aclnn.moe_gating_top_k_softmax_v2(x, k=3, renorm=1, output_softmax=True)
    assert none is None
    wanted = softmax(np.take_along_axis(x.astype(float), chosen, -1))
    np.testing.assert_allclose(y.astype(float), wanted, EPS[dtype])


@named("dtype", DTYPES, ids=str)
@named("norm", [0, 1])
@named("mode", [0, 1])
@named("renorm", [0, 1])
def test_experts_by_groups(dtype, norm, mode, renorm):
    x, bias = filled((7, 12), dtype), filled(12, dtype, 1)
    n = 1 / (1 + np.exp(-x.astype(float))) if norm else softmax(x.astype(float))
    c = n + bias.astype(float)
    groups = c.reshape(7, 4, 3)
    scores = np.sort(groups, -1)[..., -2:].sum(-1) if mode else groups.max(-1)
    kept = np.full_like(groups, -np.inf)
    for row, places in enumerate(best(scores, 2)):
        kept[row, places] = groups[row, places]
    chosen = best(kept.reshape(7, 12), 4)
    y, experts, whole = aclnn.moe_gating_top_k(
        x, 4, bias=bias, k_group=2, group_count=4, group_select_mode=mode, renorm=renorm,
        norm_type=norm, out_flag=True, routed_scaling_factor=2.5,
    )  # fmt: skip
    same(experts, chosen)
    wanted = np.take_along_axis(n, chosen, -1)
    if norm or renorm:
        wanted /= wanted.sum(-1, keepdims=True)
    np.testing.assert_allclose(y.astype(float), wanted * 2.5, EPS[dtype])
    np.testing.assert_allclose(whole, n, 1e-6)


# --- The order of tokens --------------------------------------------------------------------------

IDS = np.int32([[2, 0], [1, 2], [2, 3], [0, 2], [2, 1]])


@named("dtype", DTYPES, ids=str)
@named("active", [0, 4, 99])
def test_tokens_by_experts(dtype, active):
    x = filled((5, 6), dtype)
    order = np.argsort(IDS.ravel(), kind="stable")
    count = min(active, 10) if active else 10
    for one in (x, np.asfortranarray(x)):
        made, index, sums, none = aclnn.moe_init_routing(
            one,
            np.asfortranarray(IDS),
            active_num=active,
            expert_num=5,
            expert_tokens_count_or_cumsum_flag=1,
        )
        assert none is None
        same(made, x[order // 2][:count])
        same(index[order], np.arange(10))
        same(sums, np.cumsum(np.bincount(IDS.ravel(), minlength=5)))
    counts = aclnn.moe_init_routing(x, IDS, expert_num=4, expert_tokens_count_or_cumsum_flag=2)[2]
    same(counts, np.bincount(IDS.ravel()))


def test_tokens_that_are_dropped():
    x = filled((5, 6))
    made, index, none, counts = aclnn.moe_init_routing(
        x,
        IDS,
        expert_num=4,
        drop_pad_mode=1,
        expert_capacity=3,
        expert_tokens_before_capacity_flag=True,
    )
    assert none is None
    wanted, places = np.zeros((4, 3, 6), np.float32), np.full(10, -1)
    used = [0] * 4
    for f, expert in enumerate(IDS.ravel()):
        if used[expert] < 3:
            wanted[expert, used[expert]] = x[f // 2]
            places[f] = expert * 3 + used[expert]
        used[expert] += 1
    same(made, wanted)
    same(index, places)
    same(counts, used)


@named("dtype", DTYPES, ids=str)
@named("kind", [np.int32, np.int64])
@named("wanted", [None, 0, 3, 50, -4, -50])
def test_tokens_there_and_back(dtype, kind, wanted):
    x = filled((300, 3, 5), dtype)
    indices = np.random.default_rng(2).integers(0, 9000, (300, 2)).astype(kind)
    order = np.argsort(indices.ravel(), kind="stable")
    count = 600 if not wanted else min(wanted, 600) if wanted > 0 else max(600 + wanted, 0)
    made, places = aclnn.moe_token_permute(x, indices, wanted)
    same(made, x[order // 2][:count])
    same(places[order], np.arange(600))
    rows, probs = made.reshape(count, 15), filled((300, 2), np.float16, 3)
    if not count:
        return
    found = aclnn.moe_token_unpermute(rows, places, probs).astype(float)
    padded = np.concatenate([rows.astype(float), np.zeros((600 - count, 15))])
    terms = padded[places].reshape(300, 2, 15) * probs.astype(float)[..., None]
    bound = np.abs(terms).sum(1)
    assert (np.abs(found - terms.sum(1)) <= 2 * EPS[dtype] * bound + 1e-7).all()
    if count == 600:
        same(aclnn.moe_token_unpermute(rows, places), rows[places])


@named("mode", [0, 1, 2, 3])
@named("dtype", DTYPES, ids=str)
def test_what_experts_give_is_added_up(mode, dtype):
    rng = np.random.default_rng(mode)
    rows = filled((4, 3, 70) if mode % 2 else (12, 70), dtype)
    index = rng.integers(0, 12, 10).astype(np.int32)
    index[3] = -1 if mode % 2 else 12  # dropped, or cut off
    experts, bias = rng.integers(0, 4, (5, 2)).astype(np.int32), filled((4, 70), dtype, 1)
    x1, x2, scales = filled((5, 70), dtype, 2), filled((5, 70), dtype, 3), filled((5, 2), dtype, 4)
    found = aclnn.moe_finalize_routing(rows, x1, x2, bias, scales, index, experts, mode).astype(
        float
    )
    wanted, bound = (
        x1.astype(float) + x2.astype(float),
        np.abs(x1.astype(float)) + np.abs(x2.astype(float)),
    )
    for i in range(5):
        for j in range(2):
            r = index[j * 5 + i if mode < 2 else i * 2 + j]
            if 0 <= r < 12:
                row = rows.reshape(12, 70)[r].astype(float) + bias[experts[i, j]].astype(float)
                wanted[i] += float(scales[i, j]) * row
                bound[i] += np.abs(float(scales[i, j]) * row)
    assert (np.abs(found - wanted) <= 2 * EPS[dtype] * bound + 1e-6).all()
    alone = aclnn.moe_finalize_routing(rows, None, None, None, None, index, None, mode)
    kept = (index >= 0) & (index < 12)
    same(alone[kept], rows.reshape(12, 70)[index[kept]])
    assert (alone[~kept] == 0).all()


# --- What is refused, and what ends a run ---------------------------------------------------------

X = filled((5, 6))


@named(
    ("call", "words"),
    [
        (lambda: aclnn.moe_init_routing(X, IDS, expert_num=3, expert_tokens_count_or_cumsum_flag=2), "expert is 3"),
        (lambda: aclnn.moe_init_routing(X, IDS - 1), "expert is -1"),
        (lambda: aclnn.moe_token_permute(X, IDS - 1), "expert is -1"),
        (lambda: aclnn.moe_token_permute(X, np.full((5, 2), 2**40)), "expert is 1099511627776"),
        (lambda: aclnn.moe_token_unpermute(X, np.int32([0, 1, 2, 3, -2])), "row is -2"),
        (lambda: aclnn.moe_finalize_routing(X, None, None, None, None, np.int32([0, -1]), None), "row is -1"),
        (
            lambda: aclnn.moe_finalize_routing(X, None, None, X, None, np.int32([0]), np.int32([[5]])),
            "expert is 5",
        ),
    ],
)  # fmt: skip
def test_indices_that_nothing_has(call, words):
    with pytest.raises(aclnn.AclnnError, match=words) as caught:
        call()
    assert caught.value.status == INVALID


@named(
    ("call", "status", "words"),
    [
        (lambda: aclnn.moe_gating_top_k_softmax(X, k=7), TILING, "k is 7"),
        (lambda: aclnn.moe_gating_top_k_softmax(X, k=0), TILING, "k is 0"),
        (lambda: aclnn.moe_gating_top_k_softmax_v2(X, renorm=2), TILING, "renorm is 2"),
        (lambda: aclnn.moe_gating_top_k(X, 3, group_count=6, k_group=2), TILING, "k is 3"),
        (lambda: aclnn.moe_gating_top_k(X, 1, group_count=4), TILING, "divides"),
        (lambda: aclnn.moe_gating_top_k(X, 1, group_count=6, group_select_mode=1), TILING, "group"),
        (lambda: aclnn.moe_gating_top_k(X, 1, norm_type=2), TILING, "norm_type is 2"),
        (lambda: aclnn.moe_gating_top_k(X, 1, k_group=2), TILING, "k_group is 2"),
        (lambda: aclnn.moe_init_routing(X, IDS[:4]), FAILED_PLAN, "rows of x"),
        (lambda: aclnn.moe_init_routing(X, IDS, drop_pad_mode=1), FAILED_PLAN, "positive"),
        (
            lambda: aclnn.moe_init_routing(X, IDS, drop_pad_mode=2),
            FAILED_PLAN,
            "drop_pad_mode is 2",
        ),
        (lambda: aclnn.moe_init_routing(X, IDS, active_num=-1), FAILED_PLAN, "active_num is -1"),
        (lambda: aclnn.moe_token_permute(X, IDS, None, True), TILING, "padded_mode is true"),
        (lambda: aclnn.moe_token_permute(X, IDS[:3]), TILING, "rows of tokens"),
        (
            lambda: aclnn.moe_finalize_routing(X, None, X, None, None, np.int32([0]), None),
            FAILED_PLAN,
            "skip1 is not",
        ),
    ],
)
def test_what_is_refused(call, status, words):
    with pytest.raises(aclnn.AclnnError, match=words) as caught:
        call()
    assert caught.value.status == status


def test_order_of_checks():
    x, y = tensor(X), tensor(X[:, :2])
    index = tensor(np.zeros((5, 2), np.int32))
    out = tensor(X)
    last = (9, 9, 0, 0, 0, 5, False, 1.0, 1e-20)
    assert refused("aclnnMoeGatingTopK", x, None, *last, y, index, None)[0] == NULLPTR
    assert "expertIdxOut has dtype" in refused("aclnnMoeGatingTopK", x, None, *last, y, y, out)[1]
    assert "k is 9" in refused("aclnnMoeGatingTopK", x, None, *last, y, index, out)[1]
    last = (2, 9, 0, 0, 0, 5, False, 1.0, 1e-20)
    assert "kGroup is 9" in refused("aclnnMoeGatingTopK", x, None, *last, y, index, out)[1]


def test_counts_that_are_asked_for_but_not_given():
    """The plan fails, after what is wrong with numbers."""
    x, ids = tensor(np.ones((4, 3), np.float32)), tensor(np.zeros((4, 2), np.int32))
    out, places = tensor(np.zeros((8, 3), np.float32)), tensor(np.zeros(8, np.int32))
    dropped = tensor(np.zeros((3, 2, 3), np.float32))
    for numbers, made, words in (
        ((0, 0, 3, 0, 1, False), out, "expertTokensCountOrCumsumOut is null"),
        ((0, 0, 3, 0, 2, False), out, "expertTokensCountOrCumsumOut is null"),
        ((0, 0, 3, 0, 3, False), out, "expertTokensCountOrCumsumFlag is 3"),
        ((0, 2, 3, 1, 0, True), dropped, "expertTokensBeforeCapacityOut is null"),
    ):
        status, text = refused("aclnnMoeInitRoutingV2", x, ids, *numbers, made, places, None, None)
        assert (status, words in text) == (FAILED_PLAN, True)
    run("aclnnMoeInitRoutingV2", x, ids, 0, 0, 3, 0, 0, True, out, places, None, None)


@pytest.mark.parametrize("wanted", [-10, -11, -9, 1])
def test_tokens_of_which_no_row_is_left_are_still_sorted(wanted):
    """Negative numbers say how many rows go: of ten, all, or more than there are."""
    x, indices = np.ones((5, 3), np.float32), np.array([[0, 1], [1, 0], [0, 1], [1, 1], [0, 0]])
    rows = max(0, 10 + wanted) if wanted < 0 else wanted
    order = np.argsort(indices.ravel(), kind="stable")
    places = np.empty(10, np.int32)
    places[order] = np.arange(10)
    for function in (aclnn.moe_token_permute, aclnn.compile(aclnn.moe_token_permute)):
        made, found = function(x, indices.astype(np.int32), wanted)
        assert made.shape == (rows, 3)
        np.testing.assert_array_equal(found, places)
