"""Attention of quantized operands and results: against the composition in NumPy, bits of the calls it is made of; statuses."""

import ml_dtypes
import numpy as np
import pytest
from attention_calls import B, D, K, M, N, S, call, operands, random
from cases import each as named
from references import attention

import aclnn
from aclnn.api.c_shaped import tensor

BF16 = ml_dtypes.bfloat16
OK, NULLPTR, INVALID, TILING = 0, 161001, 161002, 561002
H, F, I8 = np.float16, np.float32, np.int8


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def given(rng):
    return operands(rng)


def single(*tensors):
    return [x.astype(F) for x in tensors]


def rounded(x, scale, offset=0.0):
    """Integers of float32 numbers, as sections about quantization have them."""
    return np.clip(np.rint(F(x) * F(scale) + F(offset)), -128, 127).astype(I8)


# --- Statuses ---------------------------------------------------------------------------------------

GIVEN = {
    "query": np.zeros((2, 1, 8), H),
    "key": np.zeros((2, 3, 8), H),
    "value": np.zeros((2, 3, 8), H),
    "numHeads": 2,
    "scaleValue": 1.0,
    "preTokens": 9,
    "nextTokens": 9,
    "inputLayout": "BSH",
    "numKeyValueHeads": 0,
    "innerPrecise": 0,
    "blockSize": 0,
    "softmaxLseFlag": False,
    "attentionOut": np.zeros((2, 1, 8), H),
}
FUSED = "aclnnFusedInferAttentionScoreV4"
OLDER = ("aclnnPromptFlashAttentionV3", "aclnnIncreFlashAttentionV4")


def arguments(name, **changes):
    """Of phase one, with parameters by CANN's names."""
    for parameter in aclnn.operators.ENTRIES[name][1].parameters:
        value = (GIVEN | changes).get(parameter.name)
        if value is None and parameter.name.endswith("Mode"):
            value = 0
        if isinstance(value, np.ndarray):
            value = tensor(value)
            value = aclnn.aclCreateTensorList([value]) if parameter.kind == "single" else value
        elif isinstance(value, list):
            value = aclnn.aclCreateIntArray(value)
        yield value


def status(name, **changes):
    return getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments(name, **changes))[2]


# --- Results of int8 --------------------------------------------------------------------------------

BYTES = np.zeros((2, 1, 8), I8)


@pytest.mark.parametrize("dtype", [H, BF16, F])
def test_results_are_rounded_once(dtype, given):
    given = [x.astype(dtype) for x in given]
    found = call(*given, quant_scale2=F([100]), quant_offset2=F([-3]), scale=0.25)[0]
    assert found.dtype == I8
    exact = attention(*given, scale=0.25)[0] * 100 - 3
    assert np.abs(found - np.clip(exact, -128, 127)).max() < 0.5 + 1e-3
    whole = call(*single(*given), scale=0.25)[0]
    np.testing.assert_array_equal(found, rounded(whole, 100, -3))
    flat = aclnn.ascend_quant(whole.reshape(-1, D), F([100]), F([-3])).reshape(whole.shape)
    np.testing.assert_array_equal(found, flat)


def test_results_saturate(given):
    found = call(*given, quant_scale2=F([1e4]))[0]
    np.testing.assert_array_equal(found, rounded(call(*single(*given))[0], 1e4))
    assert (found.min(), found.max()) == (-128, 127)


@pytest.mark.parametrize(
    "shape", [(N * D,), (1, 1, N * D), (N, D), (1, 1, N, D), (N, 1, D), (1, N, 1, D)]
)
@pytest.mark.parametrize("layout", ["BNSD", "BSND", "BNSD_BSND", "BSH"])
def test_scales_of_channels(shape, layout, given, rng):
    scale, offset = (rng.uniform(5, 90, N * D).astype(BF16).reshape(shape) for _ in range(2))
    tensors = given if layout.startswith("BN") else [x.transpose(0, 2, 1, 3) for x in given]
    if layout == "BSH":
        tensors = [np.ascontiguousarray(x).reshape(*x.shape[:2], -1) for x in tensors]
    found = call(*tensors, layout=layout, quant_scale2=scale, quant_offset2=offset)[0]
    whole = call(*single(*given))[0]
    want = rounded(whole, *[F(x).reshape(N, 1, D) for x in (scale, offset)])
    want = want if layout == "BNSD" else want.transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(found, want.reshape(found.shape))


def test_quantized_results_with_other_operands(given, rng):
    shift, sink = random(rng, 1, N, S, K), random(rng, N)
    ropes = random(rng, B, N, S, 8), random(rng, B, M, K, 8)
    options = {"pse_shift": shift, "actual_seq_lengths_kv": [9, 150], "softmax_lse_flag": True}
    found, lse = call(
        *given, **options, query_rope=ropes[0], key_rope=ropes[1], learnable_sink=sink,
        quant_scale2=F([50]),
    )  # fmt: skip
    options["pse_shift"] = F(shift)
    whole, wanted = call(
        *single(*given), **options, query_rope=F(ropes[0]), key_rope=F(ropes[1]),
        learnable_sink=F(sink),
    )  # fmt: skip
    np.testing.assert_array_equal(found, rounded(whole, 50))
    np.testing.assert_array_equal(lse, wanted)


def test_quantized_results_of_pages_and_other_functions(given):
    q, k, v = given
    blocks = [x.reshape(B, M, 10, 15, D).transpose(0, 2, 1, 3, 4) for x in (k, v)]
    blocks = [np.ascontiguousarray(x).reshape(B * 10, M, 15, D) for x in blocks]
    table = np.arange(B * 10, dtype=np.int32).reshape(B, 10)
    scale = {"quant_scale2": F([70])}
    paged = {"block_table": table, "block_size": 15, "actual_seq_lengths_kv": [150, 150]}
    want = call(q, k, v, **scale)[0]
    np.testing.assert_array_equal(call(q, *blocks, **paged, **scale)[0], want)
    heads = {"num_key_value_heads": M, "input_layout": "BNSD"}
    second = aclnn.fused_infer_attention_score_v2(
        q, k, v, num_query_heads=N, quant_scale_out=F([70]), **heads
    )[0]
    np.testing.assert_array_equal(second, want)
    heads["num_heads"] = N
    np.testing.assert_array_equal(
        aclnn.prompt_flash_attention(q, k, v, next_tokens=2**31 - 1, **heads, **scale), want
    )
    one = np.ascontiguousarray(q[:, :, :1])
    found = aclnn.incre_flash_attention(one, k, v, **heads, **scale)
    np.testing.assert_array_equal(found, call(one, k, v, **scale)[0])


@named(
    ("changes", "wanted"),
    [
        ({"quantScale2": np.ones(1, F), "attentionOut": BYTES}, OK),
        ({"quantScale2": np.ones(1, BF16), "attentionOut": BYTES}, OK),
        ({"quantScale2": np.ones((2, 4), F), "attentionOut": BYTES}, OK),
        ({"quantScale2": np.ones(1, F), "quantOffset2": np.ones(1, F), "attentionOut": BYTES}, OK),
        ({"quantScale2": np.ones(1, F)}, INVALID),
        ({"attentionOut": BYTES}, INVALID),
        ({"quantScale2": np.ones(1, H), "attentionOut": BYTES}, INVALID),
        ({"quantScale2": np.ones(1, F), "quantOffset2": np.ones(1, BF16), "attentionOut": BYTES}, INVALID),
        ({"quantOffset2": np.ones(1, F)}, TILING),
        ({"quantScale2": np.ones(2, F), "attentionOut": BYTES}, TILING),
        ({"quantScale2": np.ones((4, 2), F), "attentionOut": BYTES}, TILING),
        ({"query": None, "quantScale2": np.ones(1, F)}, NULLPTR),
    ],
)  # fmt: skip
@named("name", [FUSED, *OLDER])
def test_statuses_of_quantized_results(name, changes, wanted):
    ending = "Optional" if name == FUSED else ""
    changes = {role + ending * role.startswith("quant"): value for role, value in changes.items()}
    assert status(name, **changes) == wanted


def test_c_shaped_calls_quantize(rng):
    q, k, v = (random(rng, 2, rows, 8) for rows in (1, 3, 3))
    out = np.zeros((2, 1, 8), I8)
    more = {"quantScale2Optional": F([60]), "attentionOut": out}
    size, executor, found = getattr(aclnn, f"{FUSED}GetWorkspaceSize")(
        *arguments(FUSED, query=q, key=k, value=v, **more)
    )
    assert found == OK
    workspace = np.empty(size, np.uint8)
    assert getattr(aclnn, FUSED)(workspace, size, executor, None) == OK
    want = aclnn.fused_infer_attention_score(q, k, v, num_heads=2, quant_scale2=F([60]))[0]
    np.testing.assert_array_equal(out, want)


# --- Keys and values of int8 ------------------------------------------------------------------------


@pytest.fixture
def cached(rng):
    keys, values = (rng.integers(-128, 128, (B, M, K, D)).astype(I8) for _ in range(2))
    return random(rng, B, N, S, D), keys, values


def of(rng, *shape, dtype=F):
    return rng.uniform(0.01, 0.03, shape).astype(dtype)


def expanded(x, scale, offset=0):
    """Numbers of integers, in float32."""
    return (F(x) + F(offset)) * F(scale)


def same_as_single(found, query, keys, values, **options):
    """The bits of the attention of float32, rounded, which is near that in float64."""
    whole = call(F(query), keys, values, **options)[0]
    np.testing.assert_array_equal(found, whole.astype(query.dtype))
    np.testing.assert_allclose(F(found), attention(query, keys, values, scale=1.0)[0], 8e-3, 4e-3)


# Modes, the shapes of scales, and that in which they broadcast to keys.
ALONE = [
    (0, (1,), (1, 1, 1, 1)),
    (0, (M * D,), (1, M, 1, D)),
    (0, (1, M * D), (1, M, 1, D)),
    (0, (M, D), (1, M, 1, D)),
    (0, (1, M, 1, D), (1, M, 1, D)),
    (1, (B, K), (B, 1, K, 1)),
    (1, (1, B, K), (B, 1, K, 1)),
    (2, (M,), (1, M, 1, 1)),
    (3, (B, M, K), (B, M, K, 1)),
]


@pytest.mark.parametrize(("mode", "shape", "along"), ALONE)
@pytest.mark.parametrize("dtype", [H, BF16, F])
@pytest.mark.parametrize("has_offset", [False, True])
def test_caches_with_scales_of_their_own(mode, shape, along, dtype, has_offset, cached, rng):
    q, k, v = cached[0].astype(dtype), *cached[1:]
    scales = [of(rng, *shape, dtype=dtype if mode == 0 else F) for _ in "kv"]
    options = dict(zip(("key_antiquant_scale", "value_antiquant_scale"), scales, strict=True))
    options |= {"key_antiquant_mode": mode, "value_antiquant_mode": mode}
    offsets = [0, 0]
    if has_offset:
        offsets = [100 * of(rng, *shape).astype(scales[0].dtype) for _ in "kv"]
        names = ("key_antiquant_offset", "value_antiquant_offset")
        options |= dict(zip(names, offsets, strict=True))
        offsets = [x.reshape(along) for x in offsets]
    found = call(q, k, v, **options)[0]
    pairs = zip((k, v), scales, offsets, strict=True)
    same_as_single(found, q, *[expanded(x, s.reshape(along), o) for x, s, o in pairs])
    names = {"antiquant_scale": "dequant_scale", "antiquant_offset": "dequant_offset"}
    second = {"key_quant_mode": mode, "value_quant_mode": mode}
    for role in ("key", "value"):
        for old, new in names.items():
            second[f"{new}_{role}"] = options.get(f"{role}_{old}")
    heads = {"num_query_heads": N, "num_key_value_heads": M, "input_layout": "BNSD"}
    other = aclnn.fused_infer_attention_score_v2(q, k, v, **heads, **second)[0]
    np.testing.assert_array_equal(other, found)


@pytest.mark.parametrize(("mode", "shape", "along"), [one for one in ALONE if one[0] < 2])
@pytest.mark.parametrize("has_offset", [False, True])
def test_caches_with_scales_of_both(mode, shape, along, has_offset, cached, rng):
    q, k, v = cached
    both = (2,) if shape == (1,) else (2, *shape)
    scale, offset = of(rng, *both), 200 * of(rng, *both)
    options = {"antiquant_scale": scale, "antiquant_mode": mode}
    options |= {"antiquant_offset": offset} if has_offset else {}
    found = call(q, k, v, **options)[0]
    offsets = offset.reshape(2, *along) if has_offset else (0, 0)
    pairs = zip((k, v), scale.reshape(2, *along), offsets, strict=True)
    same_as_single(found, q, *[expanded(*one) for one in pairs])
    if mode == 0:
        one = np.ascontiguousarray(q[:, :, :1])
        heads = {"num_heads": N, "num_key_value_heads": M, "input_layout": "BNSD"}
        options.pop("antiquant_mode")
        other = aclnn.incre_flash_attention(one, k, v, **heads, **options)
        np.testing.assert_array_equal(other, found[:, :, :1])


def test_caches_in_layouts_and_with_other_operands(cached, rng):
    q, k, v = cached
    scale = of(rng, 2, M, D)
    sink, shift = random(rng, N), random(rng, 1, N, S, K)
    options = {"actual_seq_lengths_kv": [9, 140], "softmax_lse_flag": True, "scale": 0.5}
    numbers = {"learnable_sink": sink, "pse_shift": shift}
    found, lse = call(q, k, v, antiquant_scale=scale, **options, **numbers)
    keys, values = (expanded(x, s[:, None]) for x, s in zip((k, v), scale, strict=True))
    whole, wanted = call(
        F(q), keys, values, **options, **{role: F(x) for role, x in numbers.items()}
    )
    np.testing.assert_array_equal(found, whole.astype(H))
    np.testing.assert_array_equal(lse, wanted)
    turned = [x.transpose(0, 2, 1, 3) for x in (q, k, v)]
    flat = [np.ascontiguousarray(x).reshape(*x.shape[:2], -1) for x in turned]
    numbers |= {"antiquant_scale": scale}
    for layout, tensors in (("BSND", turned), ("BSH", flat)):
        out = call(*tensors, layout=layout, **options, **numbers)[0]
        np.testing.assert_array_equal(out.reshape(B, S, N, D), found.transpose(0, 2, 1, 3))
    eight = call(q, k, v, quant_scale2=F([40]), **options, **numbers)[0]
    np.testing.assert_array_equal(eight, rounded(whole, 40))


@pytest.mark.parametrize(("mode", "shape"), [(0, (M, D)), (4, (20, 15)), (5, (20, M, 15))])
def test_pages_of_int8(mode, shape, cached, rng):
    q, k, v = cached
    table = rng.permutation(20).astype(np.int32).reshape(B, 10)
    blocks = [np.empty((20, M, 15, D), I8) for _ in "kv"]
    for pool, cache in zip(blocks, (k, v), strict=True):
        pool[table] = cache.reshape(B, M, 10, 15, D).swapaxes(1, 2)
    scales = [of(rng, *shape) for _ in "kv"]
    paged = {"block_table": table, "block_size": 15, "actual_seq_lengths_kv": [150, 33]}
    found = call(
        q, *blocks, key_antiquant_scale=scales[0], value_antiquant_scale=scales[1],
        key_antiquant_mode=mode, value_antiquant_mode=mode, **paged,
    )[0]  # fmt: skip
    along = {0: (1, M, 1, D), 4: (20, 1, 15, 1), 5: (20, M, 15, 1)}[mode]
    numbers = [expanded(x, s.reshape(along)) for x, s in zip(blocks, scales, strict=True)]
    np.testing.assert_array_equal(found, call(F(q), *numbers, **paged)[0].astype(H))


CACHE = {"key": np.zeros((2, 3, 8), I8), "value": np.zeros((2, 3, 8), I8)}
ONE, TWO = {"keyAntiquantScaleOptional": np.ones(1, H)}, {"antiquantScaleOptional": np.ones(2, H)}
OWN = ONE | {"valueAntiquantScaleOptional": np.ones(1, H)}


@named(
    ("changes", "wanted"),
    [
        (CACHE | TWO, OK),
        (CACHE | OWN, OK),
        (CACHE | TWO | {"antiquantOffsetOptional": np.ones(2, H)}, OK),
        (CACHE | {"antiquantScaleOptional": np.ones((2, 2, 4), F)}, OK),
        (CACHE | {"antiquantScaleOptional": np.ones((2, 2, 3), F), "antiquantMode": 1}, OK),
        (CACHE | {"antiquantScaleOptional": np.ones(2, BF16)}, INVALID),
        (CACHE | TWO | {"antiquantOffsetOptional": np.ones(2, F)}, INVALID),
        (CACHE | TWO | {"value": GIVEN["value"]}, INVALID),
        (CACHE | {"query": None}, NULLPTR),
        (CACHE, TILING),
        (TWO, TILING),
        (OWN, TILING),
        (CACHE | ONE, TILING),
        (CACHE | OWN | TWO, TILING),
        (CACHE | OWN | {"antiquantOffsetOptional": np.ones(2, H)}, TILING),
        (CACHE | {"antiquantOffsetOptional": np.ones(2, H)}, TILING),
        (CACHE | {"antiquantScaleOptional": np.ones((2, 4, 2), F)}, TILING),
        (CACHE | {"antiquantScaleOptional": np.ones(3, F)}, TILING),
        (CACHE | {"antiquantScaleOptional": np.ones((2, 2), F), "antiquantMode": 2}, TILING),
        (CACHE | OWN | {"keyAntiquantMode": 7}, TILING),
        (CACHE | OWN | {"valueAntiquantMode": 1}, TILING),
        (CACHE | OWN | {"keyAntiquantMode": 4}, TILING),
    ],
)
@named("version", [2, 3, 4])
def test_statuses_of_quantized_caches(version, changes, wanted):
    assert status(f"aclnnFusedInferAttentionScoreV{version}", **changes) == wanted


def test_statuses_of_quantized_caches_of_one_query():
    name, scale = OLDER[1], {"antiquantScale": np.ones(2, H)}
    assert status(name, **CACHE, **scale) == OK
    assert status(name, **CACHE) == TILING
    assert status(name, **scale) == TILING
    assert status(name, **CACHE, antiquantScale=np.ones((2, 3), H)) == TILING
    assert status(OLDER[0], **CACHE) == INVALID


# --- Query, keys and values of int8 -----------------------------------------------------------------

FACTORS = {"dequant_scale1": F([2e-4]), "quant_scale1": F([127]), "dequant_scale2": F([1e-4])}


def test_operands_of_int8(cached, rng):
    q, (k, v) = rng.integers(-128, 128, (B, N, S, D)).astype(I8), cached[1:]
    first, *rest = (x[0] for x in FACTORS.values())
    found, lse = call(q, k, v, **FACTORS, softmax_lse_flag=True)
    whole, wanted = call(F(q) * first, F(k), F(v), softmax_lse_flag=True)
    assert found.dtype == H
    np.testing.assert_array_equal(found, (whole * (rest[0] * rest[1])).astype(H))
    np.testing.assert_array_equal(lse, wanted)
    exact, logarithm, _ = attention(q, k, v, scale=float(first))
    np.testing.assert_allclose(found, exact * float(rest[0]) * float(rest[1]), 2e-3, 2e-3)
    np.testing.assert_allclose(lse[..., 0], logarithm, 1e-5, 1e-5)
    shift, sink = random(rng, 1, N, S, K), random(rng, N)
    options = {"actual_seq_lengths_kv": [9, 140], "scale": 0.5}
    found = call(
        q, k, v, **FACTORS, pse_shift=shift, learnable_sink=sink, quant_scale2=F([80]), **options
    )[0]
    whole = call(
        F(q) * first, F(k), F(v), pse_shift=F(shift), learnable_sink=F(sink), **options
    )[0]  # fmt: skip
    np.testing.assert_array_equal(found, rounded(whole * (rest[0] * rest[1]), 80))


def test_prompts_of_int8(cached, rng):
    q, (k, v) = rng.integers(-128, 128, (B, N, S, D)).astype(I8), cached[1:]
    heads = {"num_heads": N, "num_key_value_heads": M, "input_layout": "BNSD"}
    for more in ({}, {"quant_scale2": F([90]), "quant_offset2": F([4])}):
        found = aclnn.prompt_flash_attention(q, k, v, next_tokens=9, **heads, **FACTORS, **more)
        want = call(q, k, v, next_tokens=9, **FACTORS, **more)[0]
        np.testing.assert_array_equal(found, want)


EIGHT = {"query": np.zeros((2, 1, 8), I8)} | CACHE
OF_ALL = {name: np.ones(1, F) for name in ("deqScale1", "quantScale1", "deqScale2")}


@named(
    ("changes", "wanted"),
    [
        (EIGHT | OF_ALL, OK),
        (EIGHT | OF_ALL | {"quantScale2": np.ones(1, F), "attentionOut": BYTES}, OK),
        (EIGHT | OF_ALL | {"attentionOut": np.zeros((2, 1, 8), BF16)}, INVALID),
        (EIGHT | OF_ALL | {"attentionOut": BYTES}, INVALID),
        (EIGHT | OF_ALL | {"key": GIVEN["key"]}, INVALID),
        (EIGHT | OF_ALL | {"deqScale1": np.ones(1, H)}, INVALID),
        (EIGHT | OF_ALL | {"deqScale1": np.ones(1, np.uint64)}, OK),
        (EIGHT | OF_ALL | {"quantScale1": np.ones(1, np.uint64)}, INVALID),
        (EIGHT, TILING),
        (EIGHT | OF_ALL | {"deqScale2": None}, TILING),
        (EIGHT | OF_ALL | {"deqScale2": np.ones(2, F)}, TILING),
        (OF_ALL, TILING),
        (EIGHT | OF_ALL | {"query": None}, NULLPTR),
    ],
)
@named("name", [FUSED, *OLDER])
def test_statuses_of_operands_of_int8(name, changes, wanted):
    ending = "Optional" if name == FUSED else ""
    changes = {role + ending * ("cale" in role): value for role, value in changes.items()}
    if name == OLDER[1]:
        changes = {role.replace("deq", "dequant"): value for role, value in changes.items()}
    assert status(name, **changes) == wanted


@pytest.mark.parametrize("signed", [False, True])
def test_scales_of_products_as_bits(signed, cached, rng):
    q, (k, v) = rng.integers(-128, 128, (B, N, S, D)).astype(I8), cached[1:]
    numbers = [rng.random(1).astype(F) * 1e-3 for _ in range(2)]
    patterns = [aclnn.trans_quant_param(x, F([3])) for x in numbers]
    for bits, number in zip(patterns, numbers, strict=True):
        bits |= np.uint64(0x1ABC)  # what scales have not
        number.view(np.uint32)[:] &= np.uint32(0xFFFFE000)
    patterns = [x.view(np.int64) if signed else x for x in patterns]
    first, second, third = FACTORS
    as_bits = {first: patterns[0], second: F([127]), third: patterns[1]}
    as_floats = {first: numbers[0], second: F([127]), third: numbers[1]}
    np.testing.assert_array_equal(call(q, k, v, **as_bits)[0], call(q, k, v, **as_floats)[0])


def test_one_query_of_int8(cached, rng):
    q, (k, v) = rng.integers(-128, 128, (B, N, 1, D)).astype(I8), cached[1:]
    heads = {"num_heads": N, "num_key_value_heads": M, "input_layout": "BNSD"}
    for more in ({}, {"quant_scale2": F([90]), "quant_offset2": F([4])}):
        found = aclnn.incre_flash_attention(
            q, k, v, actual_seq_lengths=[9, 140], **heads, **FACTORS, **more
        )
        want = call(q, k, v, actual_seq_lengths_kv=[9, 140], **FACTORS, **more)[0]
        np.testing.assert_array_equal(found, want)


def test_operands_of_int8_have_no_other_scales():
    named = {f"{name}Optional": value for name, value in OF_ALL.items()}
    assert status(FUSED, **EIGHT, **named, **TWO) == INVALID
    single = {"antiquantScaleOptional": np.ones(2, F)}
    assert status(FUSED, **EIGHT, **named, **single) == TILING
    ropes = {"queryRopeOptional": GIVEN["query"], "keyRopeOptional": GIVEN["key"]}
    assert status(FUSED, **EIGHT, **named, **ropes) == TILING
