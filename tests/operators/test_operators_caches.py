"""Key-value caches and rotary embedding with them, against loops over tokens."""

import ml_dtypes
import numpy as np
import pytest
from calls import refused, tensor
from cases import each as named

import aclnn

INVALID, NULLPTR, TILING = 161002, 161001, 561002
BF16 = np.dtype(ml_dtypes.bfloat16)
same = np.testing.assert_array_equal


def filled(shape, dtype=np.float16, seed=0):
    numbers = np.random.default_rng(seed).normal(0, 9, shape)
    return numbers.astype(dtype)


def scattered(cache, rows, slots, size, place):
    """Token by token, in a copy; `place` gives the cells of a slot."""
    wanted = cache.copy()
    for row, slot in zip(rows, slots, strict=True):
        if slot >= 0:
            place(wanted, slot // size, slot % size)[...] = row.reshape(
                place(wanted, slot // size, slot % size).shape
            )
    return wanted


SLOTS = [5, 0, 11, -1, 5]  # the last token of a slot stays
PLACES = {
    "Norm": ((4, 3, 2, 16), {}, lambda c, b, s: c[b, s]),
    "NHSD": ((4, 2, 3, 16), {"scatter_mode": "NHSD"}, lambda c, b, s: c[b, :, s]),
    "PA_NZ": ((4, 2, 3, 16), {"cache_mode": "PA_NZ"}, lambda c, b, s: c[b, :, s]),
    "PA_NZ, 5": ((4, 2, 1, 3, 16), {"cache_mode": "PA_NZ"}, lambda c, b, s: c[b, :, :, s]),
}


@named("mode", PLACES)
@named("kind", [np.int32, np.int64])
@named("threads", [1, 2])
def test_rows_into_slots(mode, kind, threads):
    shape, options, place = PLACES[mode]
    key, value = filled((5, 2, 16)), filled((5, 2, 16), seed=1)
    with aclnn.num_threads(threads):
        for layout in (np.copy, np.asfortranarray, lambda x: np.repeat(x, 2, 0)[::2]):
            caches = [layout(filled(shape, seed=n)) for n in (2, 3)]
            wanted = [
                scattered(one, rows, SLOTS, 3, place)
                for one, rows in zip(caches, (key, value), strict=True)
            ]
            made = aclnn.scatter_pa_kv_cache(key, value, *caches, kind(SLOTS), **options)
            assert made[0] is caches[0]
            for one, right in zip(caches, wanted, strict=True):
                same(one, right)


@named("dtype", [np.float16, BF16, np.int8, np.float32])
def test_keys_alone_and_other_sizes(dtype):
    key, cache = filled((2, 1, 5), dtype), filled((3, 2, 1, 5), dtype, 1)
    wanted = scattered(cache, key, [3, 1], 2, lambda c, b, s: c[b, s])
    made = aclnn.scatter_pa_kv_cache(key, None, cache, None, np.int64([3, 1]))
    assert made[1] is None
    same(cache, wanted)
    value, other = filled((2, 1, 7), dtype), filled((3, 2, 1, 7), dtype, 2)
    wanted = scattered(other, value, [3, 1], 2, lambda c, b, s: c[b, s])
    aclnn.scatter_pa_kv_cache(key, value, cache, other, np.int64([3, 1]))
    same(other, wanted)


@named("bad", [6, 2**31 - 1, 2**62])
def test_a_slot_beyond_the_cache_writes_nothing(bad):
    cache = filled((3, 2, 1, 4))
    kept = cache.copy()
    with pytest.raises(aclnn.AclnnError, match=f"an index is {bad}, beyond") as caught:
        aclnn.scatter_pa_kv_cache(filled((2, 1, 4)), None, cache, None, np.int64([0, bad]))
    assert caught.value.status == INVALID
    same(cache, kept)


def test_only_the_caches_memory_is_written():
    """In C-shaped calls, too, without a copy of the cache in the workspace."""
    key, memory = filled((2, 1, 4)), np.zeros((8, 2, 1, 8), np.float16)
    cache = memory[2:5, :, :, 1:5]
    size, executor, status = aclnn.aclnnScatterPaKvCacheGetWorkspaceSize(
        tensor(key), tensor(cache), tensor(np.int32([3, 0])), *[None] * 9
    )
    assert (status, size) == (0, 0)
    assert aclnn.aclnnScatterPaKvCache(None, 0, executor, None) == 0
    same(cache[1, 1], key[0])
    same(cache[0, 0], key[1])
    assert np.count_nonzero(memory) == 8


# --- Rows out of pages ----------------------------------------------------------------------------


def gathered(cache, table, lengths, first, size, rows):
    made, at = rows.copy(), 0
    for batch, length in enumerate(lengths):
        for j in range(length):
            block = table[batch][first[batch] // size + j // size]
            made[at] = cache[block, j % size]
            at += 1
    return made


@named("kind", [np.int32, np.int64])
@named("adds_up", [False, True])
@named("first", [None, [0, 4, 3]])
def test_rows_out_of_pages(kind, adds_up, first):
    keys, values = filled((6, 3, 2, 8)), filled((6, 3, 2, 4), seed=1)
    table, lengths = [[2, 5, -9], [0, 4, 1], [3, 3, 77]], [4, 3, 2]
    given = np.cumsum([0, *lengths]) if adds_up else lengths
    out = [filled((10, 2, size), seed=size) for size in (8, 4)]
    starts = first or [0, 0, 0]
    wanted = [
        gathered(cache, table, lengths, starts, 3, rows)
        for cache, rows in zip((keys, values), out, strict=True)
    ]
    for threads in (1, 2):
        rows = [one.copy() for one in out]
        with aclnn.num_threads(threads):
            made = aclnn.gather_pa_kv_cache(
                keys, values, kind(table), kind(given), *rows,
                seq_offset=None if first is None else kind(first), is_seq_lens_cumsum=adds_up,
            )  # fmt: skip
        assert made[1] is rows[1]
        for one, right in zip(rows, wanted, strict=True):
            same(one, right)


def test_pages_of_blocks():
    cache = filled((4, 2, 3, 16))
    rows = np.zeros((5, 32), np.float16)
    aclnn.gather_pa_kv_cache(
        cache, cache, np.int32([[3, 1]]), np.int32([5]), rows, rows.copy(), cache_mode="PA_NZ"
    )
    same(
        rows,
        [cache[block, :, slot].ravel() for block, slot in ((3, 0), (3, 1), (3, 2), (1, 0), (1, 1))],
    )


@named(
    ("table", "lengths", "words"),
    [
        ([[0, 4]], [3], "block 4"),
        ([[0, -1]], [3], "block -1"),
        ([[0, 1]], [5], "lengths add up to 5"),
        ([[0, 1]], [-1], "lengths add up to -1"),
        ([[0]], [3], "lengths add up to 3"),
        ([[0, 2**31 - 1]], [4], "block 2147483647"),
    ],
)
def test_pages_that_there_are_not(table, lengths, words):
    cache = filled((4, 2, 1, 4))
    with pytest.raises(aclnn.AclnnError, match=words) as caught:
        aclnn.gather_pa_kv_cache(
            cache, cache, np.int32(table), np.int32(lengths), *np.zeros((2, 4, 1, 4), np.float16)
        )
    assert caught.value.status == INVALID


# --- Rotary ---------------------------------------------------------------------------------------


def turned(x, cos, sin):
    x = x.astype(np.float64)
    even, odd = x[..., ::2], x[..., 1::2]
    return np.concatenate([even, odd], -1) * cos.astype(float) + np.concatenate(
        [-odd, even], -1
    ) * sin.astype(float)


@named("dtype", [np.float16, BF16])
@named("length", [1, 5])
def test_interleave_rope(dtype, length):
    x, cos = filled((2, 3, 5, 8), dtype), filled((2, 1, length, 8), dtype, 1)
    sin = filled((2, 1, length, 8), dtype, 2)
    wanted = turned(x, cos, sin)
    for one in (x, np.asfortranarray(x)):
        found = aclnn.interleave_rope(one, cos, sin).astype(float)
        np.testing.assert_allclose(found, wanted, 2.0**-8 if dtype == BF16 else 2.0**-11, 1e-7)


def caches_of(mode, dtype):
    """Caches of keys of 32 and of others of 16 columns, and an index; where a token is."""
    if mode == "Norm":
        return (
            (2, 1, 9),
            np.int64([[3, 0, -1, 8, 5], [1, 2, 3, 4, 0]]),
            lambda c, b, s, i: c[b, 0, i],
        )
    if mode.startswith("PA_BLK"):
        return (5, 2, 1), np.int64([8, 1, -1, 4, 6, 2]), None
    return (5, 2, 1), np.int64([3, 0, -1, 8, 5, 1, 2, 9, 4, 7]), None


@named("mode", ["Norm", "PA", "PA_BNSD", "PA_NZ", "PA_BLK_BNSD", "PA_BLK_NZ"])
@named("quantized", [False, True])
def test_norm_and_rotary_into_caches(mode, quantized):
    kv, gamma = filled((2, 1, 5, 96)), filled(64, seed=1)
    cos, sin = filled((2, 1, 5, 32), seed=2), filled((2, 1, 5, 32), seed=3)
    lead, index, _ = caches_of(mode, kv.dtype)
    kind = np.int8 if quantized else np.float16
    k_cache, c_cache = filled((*lead, 32), kind, 4), filled((*lead, 64), kind, 5)
    x = kv[..., :64].astype(float)
    plain_c = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gamma.astype(float)
    plain_k = turned(kv[..., 64:], cos, sin)
    scales = {}
    stored = [plain_k, plain_c]
    if quantized:
        scales = {
            "k_rope_scale": np.full(32, 0.25, np.float32), "c_kv_scale": np.float32([2]),
            "c_kv_offset": np.float32([1]),
        }  # fmt: skip
        stored = [np.clip(plain_k * 0.25, -128, 127), np.clip(plain_c * 2 + 1, -128, 127)]
    wanted = [k_cache.astype(float), c_cache.astype(float)]
    for one, rows in zip(wanted, stored, strict=True):
        for b in range(2):
            for s in range(5):
                put(one, rows[b, 0, s], mode, index, b, s, 32 // np.dtype(kind).itemsize)
    made = aclnn.kv_rmsnorm_rope_cache(
        kv, gamma, cos, sin, index, k_cache, c_cache, **scales, cache_mode=mode, is_output_kv=True
    )
    assert made[0] is k_cache
    bound = {"atol": 0.51} if quantized else {"atol": 1e-6, "rtol": 2.0**-10}
    np.testing.assert_allclose(k_cache.astype(float), wanted[0], **bound)
    np.testing.assert_allclose(c_cache.astype(float), wanted[1], **bound)
    np.testing.assert_allclose(made[2].astype(float), plain_k, 2.0**-10, 1e-6)
    np.testing.assert_allclose(made[3].astype(float), plain_c, 2.0**-10, 1e-6)
    assert aclnn.kv_rmsnorm_rope_cache(
        kv, gamma, cos, sin, index, k_cache, c_cache, **scales, cache_mode=mode
    )[2:] == (
        None,
        None,
    )


def put(cache, row, mode, index, b, s, wide):
    if mode == "Norm":
        if index[b, s] >= 0:
            cache[b, 0, index[b, s]] = row
        return
    slot = index[b * 3 + s // 2] if "BLK" in mode else index[b * 5 + s]
    if slot < 0:
        return
    block, place = slot // 2, s % 2 if "BLK" in mode else slot % 2
    if mode.endswith("NZ"):
        tiles = cache[block].reshape(-1, 2, wide)
        tiles[:, place] = row.reshape(-1, wide)
    else:
        cache[block, place, 0] = row


# --- What is refused ------------------------------------------------------------------------------


def test_what_caches_refuse():
    key, cache, slots = filled((2, 1, 4)), filled((3, 2, 1, 4)), np.int32([0, 1])
    for words, call in (
        ("slot_mapping has shape", lambda: (key, None, cache, None, slots[:1])),
        ("whose rows are", lambda: (key, None, filled((3, 2, 1, 5)), None, slots)),
        ("has room for 1|room for 1", lambda: (key, None, filled((1, 1, 1, 4)), None, slots)),
        ("cache_mode is 'PB'", lambda: (key, None, cache, None, slots, "PB")),
    ):
        given = call()
        options = {"cache_mode": given[5]} if len(given) > 5 else {}
        with pytest.raises(aclnn.AclnnError, match=words) as caught:
            aclnn.scatter_pa_kv_cache(*given[:5], **options)
        assert caught.value.status == TILING
    rest = [None] * 9
    wrong = tensor(filled((3, 2, 1, 4), np.float32))
    given = tensor(key), wrong, tensor(np.float32([0, 1]))
    assert "keyCacheRef has dtype" in refused("aclnnScatterPaKvCache", *given, *rest)[1]
    assert refused("aclnnScatterPaKvCache", None, *given[1:], *rest)[0] == NULLPTR
    given = tensor(key), tensor(cache), tensor(slots), tensor(key), None
    assert refused("aclnnScatterPaKvCache", *given, *rest[2:])[0] == NULLPTR
    turned = tensor(filled((3, 1, 2, 4)))
    given = tensor(key), turned, tensor(slots), None, None, None, None, None
    assert refused("aclnnScatterPaKvCache", *given, None, "NHSD", None, None)[0] == TILING
    x, small = tensor(filled((1, 1, 1, 3))), tensor(filled((1, 1, 1, 3)))
    assert refused("aclnnInterleaveRope", x, small, small, x)[0] == TILING
