"""Quantization and products of quantized matrices, against sums of Python's integers and float32."""

import re

import ml_dtypes
import numpy as np
import pytest
from calls import refused, run, tensor
from cases import each as named
from guarded_memory import watched

import aclnn
from aclnn import aclDataType as T
from aclnn.acl import dtypes

INVALID, NULLPTR, TILING = 161002, 161001, 561002
BF16 = np.dtype(ml_dtypes.bfloat16)
same = np.testing.assert_array_equal


def rng_of(*seed):
    return np.random.default_rng([len(seed), *seed])


def integers(shape, seed=0, most=127):
    return rng_of(seed).integers(-most - 1, most + 1, shape).astype(np.int8)


def rounded(values, low=-128, high=127):
    values = np.where(np.isnan(values), 0, values)
    return np.clip(np.rint(values), low, high).astype(np.int8)


def packed(x):
    """Eight integers of four bits in one of 32."""
    parts = (x.astype(np.int64) & 15).reshape(*x.shape[:-1], -1, 8)
    return (parts << (4 * np.arange(8))).sum(-1).astype(np.uint32).view(np.int32)


def layouts(x):
    yield x
    yield np.asfortranarray(x)
    yield np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3]
    yield np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1]


# --- Products -------------------------------------------------------------------------------------

SIZES = [(1, 1, 1), (1, 3, 2), (4, 64, 32), (5, 17, 33), (13, 130, 70), (30, 257, 40)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sums_are_exact(sizes):
    m, k, n = sizes
    a, b = integers((m, k)), integers((k, n), 1)
    wanted = a.astype(np.int64) @ b.astype(np.int64)
    scale = np.float32([1])
    for one in layouts(a):
        same(aclnn.quant_matmul(one, b, scale, output_dtype="int32"), wanted)
    for one in layouts(b):
        same(aclnn.quant_matmul(a, one, scale, output_dtype="int32"), wanted)
    found = aclnn.quant_matmul(
        a.T, b.T, scale, output_dtype="int32", transpose_x1=True, transpose_x2=True
    )
    same(found, wanted)


def test_the_largest_sums():
    a, b = np.full((3, 4096), -128, np.int8), np.full((4096, 5), -128, np.int8)
    same(aclnn.quant_matmul(a, b, np.float32([1]), output_dtype="int32"), np.full((3, 5), 2**26))


@pytest.mark.each_instruction_set
def test_all_instruction_sets():
    for m, k, n in SIZES:
        test_sums_are_exact((m, k, n))
        test_weights(np.dtype(np.float16), m, k, n)
    test_rows_have_scales_of_their_own(np.dtype(np.float16))
    test_weights_of_four_bits("aclnnWeightQuantBatchMatmulV2", BF16, 3, 130, 34)
    test_products_of_four_bits(20, 130, 70)


def test_scales_bias_and_rounding():
    a, b = integers((6, 50)), integers((50, 37), 1)
    whole = (a.astype(np.int64) @ b).astype(np.int32)
    rng = rng_of(3)
    scale = rng.uniform(1e-4, 1e-3, 37).astype(np.float32)
    token = rng.uniform(0.5, 2, 6).astype(np.float32)
    bias, shift = (
        rng.normal(0, 1, 37).astype(np.float32),
        rng.integers(-99, 99, 37).astype(np.int32),
    )
    found = aclnn.quant_matmul(
        a, b, scale, pertoken_scale=token, bias=bias, output_dtype="bfloat16"
    )
    same(found, (whole.astype(np.float32) * scale * token[:, None] + bias).astype(BF16))
    found = aclnn.quant_matmul(
        a, b, scale, pertoken_scale=token, bias=shift, output_dtype="float16"
    )
    shifted = (whole + shift).astype(np.float32)
    same(found, (shifted * scale * token[:, None]).astype(np.float16))
    short = (scale.view(np.uint32) & 0xFFFFE000).view(np.float32)
    for given in (scale, aclnn.trans_quant_param(scale)):
        found = aclnn.quant_matmul(a, b, given, bias=shift, output_dtype="float16")
        same(found, (shifted * short).astype(np.float16))
    bytes_ = rounded(whole.astype(np.float32) * short + np.float32(3))
    same(aclnn.quant_matmul(a, b, scale, offset=np.float32([3])), bytes_)
    same(aclnn.quant_matmul(a, b, aclnn.trans_quant_param(scale, np.float32([3]))), bytes_)


def test_batches_broadcast():
    a, b = integers((2, 1, 4, 9)), integers((3, 9, 5), 1)
    scale = np.float32([1])
    wanted = a.astype(int) @ b.astype(int)
    same(aclnn.quant_matmul(a, b, scale, output_dtype="int32"), wanted)
    same(aclnn.quant_matmul(a, b[0], scale, output_dtype="int32"), a.astype(int) @ b[0].astype(int))
    token, bias = np.float32([1, 2, 3, 4]), rng_of(1).normal(size=(3, 1, 5)).astype(np.float32)
    found = aclnn.quant_matmul(
        a[0], b, scale, pertoken_scale=token, bias=bias, output_dtype="bfloat16"
    )
    same(found, ((wanted[0] * token[:, None]).astype(np.float32) + bias).astype(BF16))
    found = aclnn.quant_matmul(a, b[0], scale, pertoken_scale=token, output_dtype="bfloat16")
    same(found, (a.astype(int) @ b[0].astype(int) * token[:, None]).astype(BF16))


def test_integers_of_four_bits():
    a, b = integers((7, 64), most=7), integers((64, 24), 1, most=7)
    scale, token = np.float32([0.5]), rng_of(2).uniform(1, 2, 7).astype(np.float32)
    wanted = ((a.astype(int) @ b).astype(np.float32) * scale * token[:, None]).astype(BF16)
    across = packed(np.ascontiguousarray(b.T))
    for given, options in (
        (packed(b), {}), (across.T, {}), (across, {"transpose_x2": True}),
    ):  # fmt: skip
        found = aclnn.quant_matmul(
            packed(a), given, scale, pertoken_scale=token, output_dtype="bfloat16", **options
        )
        same(found, wanted)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16], ids=str)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 40, 20), (9, 300, 45)])
def test_weights(dtype, m, k, n):
    rng = rng_of(m, k, n)
    x, weight = rng.normal(size=(m, k)).astype(dtype), integers((k, n))
    scale, offset = rng.uniform(0.01, 0.02, n).astype(dtype), rng.integers(-9, 9, n).astype(dtype)
    bias = rng.normal(size=n).astype(np.float32 if dtype == BF16 else dtype)
    whole = (weight.astype(float) + offset.astype(float)) * scale.astype(float)
    wanted = x.astype(float) @ whole + bias.astype(float)
    bound = np.abs(x.astype(float)) @ np.abs(whole)
    for one in layouts(weight):
        found = aclnn.weight_quant_batchmatmul(x, one, scale, offset, bias=bias)
        error = np.abs(found.astype(float) - wanted)
        unit = 2.0**-8 if dtype == BF16 else 2.0**-11
        assert (error <= unit * np.abs(wanted) * 1.01 + k * 2.0**-23 * bound + 1e-7).all()


def test_groups_of_a_weight():
    x, weight = rng_of(0).normal(size=(3, 100)).astype(np.float16), integers((100, 24), most=7)
    scale = rng_of(1).uniform(0.1, 0.2, (4, 24)).astype(np.float16)
    whole = weight * np.repeat(scale.astype(float), 32, 0)[:100]
    for given in (weight, packed(weight)):
        found = aclnn.weight_quant_batchmatmul(x, given, scale, antiquant_group_size=32)
        np.testing.assert_allclose(found, x.astype(float) @ whole, 2e-3, 2e-2)


def test_threads_do_not_change_bits(threads_as_before):
    a, b = integers((200, 70)), integers((70, 90), 1)
    x, scale = rng_of(0).normal(size=(200, 70)).astype(np.float16), np.full(90, 0.5, np.float16)
    aclnn.set_num_threads(1)
    wanted = aclnn.quant_matmul(a, b, np.float32([1]), output_dtype="int32")
    weighted = aclnn.weight_quant_batchmatmul(x, b, scale)
    aclnn.set_num_threads(2)
    same(aclnn.quant_matmul(a, b, np.float32([1]), output_dtype="int32"), wanted)
    same(aclnn.weight_quant_batchmatmul(x, b, scale), weighted)
    same(aclnn.weight_quant_batchmatmul(x[3:5], b, scale), weighted[3:5])


@pytest.fixture
def threads_as_before():
    before = aclnn.get_num_threads()
    yield
    aclnn.set_num_threads(before)


# --- Groups ---------------------------------------------------------------------------------------


def listed(ends, kind):
    """Ends of groups as they are, as sizes, or as pairs in another order of weights."""
    sizes = np.diff([0, *ends])
    return np.int64({0: ends, 1: sizes}[kind])


def grouped(x, weight, *, group_type=0, group_list, **options):
    """One product of the groups of single tensors."""
    tensors = {"bias", "scale", "antiquant_scale", "antiquant_offset", "per_token_scale"}
    lists = {role: [one] if role in tensors else one for role, one in options.items()}
    (found,) = aclnn.grouped_matmul(
        [x], [weight], group_list=group_list, group_type=group_type, split_item=3, **lists
    )
    return found


@named("dtype", [np.dtype(np.float32), np.dtype(np.float16), BF16], ids=str)
@named("kind", [0, 1])
def test_groups_of_rows(dtype, kind):
    rng = rng_of(0)
    x, weight = rng.normal(size=(11, 30)).astype(dtype), rng.normal(size=(4, 30, 37)).astype(dtype)
    bias = rng.normal(size=(4, 37)).astype(np.float32 if dtype == BF16 else dtype)
    ends, wanted = [3, 3, 8, 9], np.zeros((11, 37))
    for g, (s, e) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        wanted[s:e] = x[s:e].astype(float) @ weight[g].astype(float) + bias[g].astype(float)
    for one in (weight, np.ascontiguousarray(weight.swapaxes(1, 2)).swapaxes(1, 2)):
        for threads in (1, 2):
            with aclnn.num_threads(threads):
                found = grouped(
                    x, one, bias=bias, group_list=listed(ends, kind), group_list_type=kind
                )
            unit = {4: 1e-5, 2: 2.0**-7 if dtype == BF16 else 2.0**-10}[dtype.itemsize]
            np.testing.assert_allclose(found.astype(float), wanted, unit, unit * 10)
            assert (found[9:] == 0).all()


def test_pairs_of_groups():
    x, weight = (
        rng_of(0).normal(size=(2, 6, 5)).astype(np.float32)[0],
        rng_of(1).normal(size=(3, 5, 4)),
    )
    pairs = np.int64([[2, 4], [0, 1], [1, 0]])
    found = grouped(x, weight.astype(np.float32), group_list=pairs, group_list_type=2)
    np.testing.assert_allclose(found[:4], x[:4] @ weight[2], 1e-5, 1e-5)
    np.testing.assert_allclose(found[4], x[4] @ weight[0], 1e-5, 1e-5)
    assert (found[5] == 0).all()


def test_groups_of_columns():
    x, weight = rng_of(0).normal(size=(7, 9)), rng_of(1).normal(size=(9, 5))
    given = np.ascontiguousarray(x.T.astype(np.float32)).T, weight.astype(np.float32)
    found = grouped(*given, group_list=np.int64([2, 2, 8]), group_type=2)
    wanted = [x[:, s:e] @ weight[s:e] for s, e in ((0, 2), (2, 2), (2, 8))]
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@named("dtype", [np.dtype(np.float16), BF16], ids=str)
@named("rows", [False, True])
@named("given", [("y_scale",), ("y_offset",), ("y_scale", "y_offset")])
def test_scales_and_offsets_of_results(dtype, rows, given):
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((2, 5, 64), (64, 7)))
    scale, bias = rng.random(7).astype(np.float32), rng.integers(-99, 99, 7).astype(np.int32)
    token = rng.random(5).astype(np.float32) if rows else None
    more = {
        "y_scale": rng.random((1, 7)).astype(np.float32),
        "y_offset": rng.random(7).astype(np.float32) * 1e3,
    }
    more = {name: one if name in given else None for name, one in more.items()}
    as_bits = dtype == np.float16 and not rows
    used = aclnn.trans_quant_param(scale) if as_bits else scale
    if as_bits:
        scale = (scale.view(np.uint32) & 0xFFFFE000).view(np.float32)
    out = np.zeros((2, 5, 7), dtype)
    call = [
        None if one is None else tensor(one)
        for one in (a, b, token, used, more["y_scale"], None, None, more["y_offset"], bias)
    ]
    run("aclnnQuantMatmulV5", *call, False, False, 0, tensor(out))
    wanted = (a.astype(np.float64) @ b + bias) * scale
    wanted = wanted if more["y_offset"] is None else wanted + more["y_offset"]
    wanted = wanted if token is None else wanted * token[:, None]
    wanted = (wanted if more["y_scale"] is None else wanted * more["y_scale"]).astype(np.float32)
    with np.errstate(over="ignore"):
        near = wanted.astype(dtype).astype(np.float64)
    step = 2.0 ** (-10 if dtype == np.float16 else -7)
    np.testing.assert_allclose(out.astype(np.float64), near, step, 1e-3)
    whole = tensor(out.astype(np.int8))
    call[3] = tensor(aclnn.trans_quant_param(scale))
    status, words = refused(
        "aclnnQuantMatmulV5", *call[:2], None, *call[3:], False, False, 0, whole
    )
    assert (status, "must be null for a result" in words) == (INVALID, True)


def test_a_bias_of_bfloat16_beside_groups():
    rng = np.random.default_rng(6)
    x, weight, bias = (rng.normal(size=shape).astype(BF16) for shape in ((6, 8), (2, 8, 4), (2, 4)))
    out, ends = np.zeros((6, 4), BF16), tensor(np.int64([2, 6]))
    lists = [aclnn.aclCreateTensorList([tensor(one)]) for one in (x, weight, bias)]
    result = aclnn.aclCreateTensorList([tensor(out)])
    run(
        "aclnnGroupedMatmulV5",
        *lists,
        *[None] * 5,
        ends,
        *[None] * 3,
        2,
        0,
        0,
        0,
        None,
        result,
        None,
        None,
    )
    wide = [one.astype(np.float64) for one in (x, weight, bias)]
    groups = [slice(0, 2), slice(2, 6)]
    wanted = np.concatenate(
        [wide[0][own] @ wide[1][g] + wide[2][g] for g, own in enumerate(groups)]
    )
    np.testing.assert_allclose(out.astype(np.float64), wanted, 2.0**-8, 1e-3)
    # The same as one of float32 with these numbers.
    same = aclnn.grouped_matmul(
        [x],
        [weight],
        bias=[bias.astype(np.float32)],
        group_list=np.int64([2, 6]),
        split_item=2,
        group_type=0,
    )
    np.testing.assert_array_equal(out, same[0])


def test_groups_of_int8():
    x, weight = integers((9, 40)), integers((3, 40, 21), 1)
    ends, scale = [4, 5, 9], rng_of(2).uniform(1e-4, 1e-3, (3, 21)).astype(np.float32)
    token = rng_of(3).uniform(1, 2, 9).astype(np.float32)
    group = np.repeat([0, 1, 2], [4, 1, 4])
    sums = np.einsum("mk,mkn->mn", x.astype(int), weight.astype(int)[group])
    lists = {"group_list": np.int64(ends)}
    same(grouped(x, weight, **lists, output_dtype="int32"), sums)
    wanted = sums.astype(np.float32) * scale[group] * token[:, None]
    found = grouped(x, weight, scale=scale, per_token_scale=token, **lists)
    same(found, wanted.astype(np.float16))
    found = grouped(x, weight, scale=scale, per_token_scale=token, act_type=1, **lists)
    same(found, np.maximum(wanted, 0).astype(np.float16))
    found = grouped(x, weight, scale=scale, per_token_scale=token, act_type=5, **lists)
    np.testing.assert_allclose(found.astype(float), silu(wanted.astype(float)), 2.0**-10, 1e-6)


def test_groups_with_quantized_weights():
    x, weight = rng_of(0).normal(size=(5, 20)).astype(np.float16), integers((2, 20, 7))
    scale, offset = rng_of(1).uniform(0.1, 0.2, (2, 2, 7)).astype(np.float16)
    whole = (weight + offset[:, None].astype(float)) * scale[:, None].astype(float)
    found = grouped(
        x, weight, antiquant_scale=scale, antiquant_offset=offset, group_list=np.int64([2, 5])
    )
    wanted = np.concatenate([x[:2].astype(float) @ whole[0], x[2:].astype(float) @ whole[1]])
    np.testing.assert_allclose(found.astype(float), wanted, 2.0**-10, 1e-2)


@named(
    ("groups", "kind", "words"),
    [
        ([3, 2], 0, "ends at 2"),
        ([3, 6], 0, "ends at 6"),
        ([-1, 2], 0, "ends at -1"),
        ([2**62, 2**62], 1, "ends at"),
        ([[5, 1], [0, 1]], 2, "number 5"),
        ([[0, -1], [0, 1]], 2, "ends at -1"),
    ],
)
def test_groups_that_there_are_not(groups, kind, words):
    x, weight = np.ones((5, 3), np.float32), np.ones((2, 3, 4), np.float32)
    with pytest.raises(aclnn.AclnnError, match=words) as caught:
        grouped(x, weight, group_list=np.int64(groups), group_list_type=kind)
    assert caught.value.status == INVALID


def matrices(shapes, dtype=np.float32, seed=0):
    return [rng_of(seed, n).normal(size=shape).astype(dtype) for n, shape in enumerate(shapes)]


def exactly(a, b, added=0):
    return a.astype(float) @ b.astype(float) + added


def near(found, wanted, unit=2.0**-10):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.astype(float), other, unit, 10 * unit)


@named("dtype", [np.dtype(np.float32), np.dtype(np.float16), BF16], ids=str)
def test_lists_of_products(dtype):
    x = matrices([(3, 20), (2, 4, 33), (0, 5), (1, 7)], dtype)
    weight = matrices([(20, 17), (33, 4), (5, 2), (7, 40)], dtype, 1)
    bias = matrices([(17,), (4,), (2,), (40,)], np.float32 if dtype == BF16 else dtype, 2)
    turned = [np.ascontiguousarray(one.T).T for one in weight]
    for second in (weight, turned):
        near(
            aclnn.grouped_matmul(x, second, bias=bias),
            [exactly(*one[:2], one[2].astype(float)) for one in zip(x, weight, bias, strict=True)],
            2.0**-6,
        )
        found = aclnn.grouped_matmul(x, second)
        near(found, [exactly(*one) for one in zip(x, weight, strict=True)], 2.0**-6)
        assert [one.shape for one in found] == [(3, 17), (2, 4, 4), (0, 2), (1, 40)]


@named("kind", [0, 1, 2])
def test_a_weight_for_each_group_of_rows(kind):
    x, weight, bias = (
        *matrices([(11, 30)]),
        matrices([(30, 37)] * 4, seed=1),
        matrices([(37,)] * 4, seed=2),
    )
    ends = [3, 3, 8, 9]
    groups = listed(ends, kind) if kind < 2 else np.int64([[0, 3], [2, 5], [3, 1], [1, 0]])
    options = {"group_list": groups, "group_list_type": kind, "group_type": 0, "split_item": 2}
    wanted = np.zeros((11, 37))
    for g, (s, e) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        wanted[s:e] = exactly(x[s:e], weight[g], bias[g].astype(float))
    for threads in (1, 2):
        with aclnn.num_threads(threads):
            near(aclnn.grouped_matmul([x], weight, bias=bias, **options), [wanted])
    (stacked,) = aclnn.grouped_matmul([x], [np.stack(weight)], bias=[np.stack(bias)], **options)
    (found,) = aclnn.grouped_matmul([x], weight, bias=bias, **options)
    same(found, stacked)


def test_rows_of_several_tensors_make_one():
    x, weight = matrices([(3, 20), (0, 20), (4, 20)]), matrices([(20, 17)] * 3, seed=1)
    wanted = np.concatenate([exactly(*one) for one in zip(x, weight, strict=True)])
    options = {"group_type": 0, "split_item": 3}
    near(aclnn.grouped_matmul(x, weight, **options), [wanted])
    near(aclnn.grouped_matmul(x, weight, group_list=np.int64([3, 3, 7]), **options), [wanted])


def test_columns_of_one_tensor_for_each_weight():
    x, weight = matrices([(6, 9)])[0], matrices([(2, 5), (3, 5), (4, 5)], seed=1)
    wanted = [exactly(x[:, s:e], w) for s, e, w in zip((0, 2, 5), (2, 5, 9), weight, strict=True)]
    for one in (x, np.asfortranarray(x)):
        near(aclnn.grouped_matmul([one], weight, group_type=2), wanted)


def test_lists_of_quantized_weights():
    x = matrices([(3, 16), (2, 24)], np.float16)
    weight = [integers((16, 8), 1, 7), integers((24, 16), 2, 7)]
    scale = [rng_of(3, n).uniform(0.1, 0.2, s).astype(np.float16) for n, s in enumerate([8, 16])]
    offset = [rng_of(4, n).uniform(0.1, 0.2, s).astype(np.float16) for n, s in enumerate([8, 16])]
    wanted = [
        exactly(a, (b + o.astype(float)) * s.astype(float))
        for a, b, s, o in zip(x, weight, scale, offset, strict=True)
    ]
    lists = {"antiquant_scale": scale, "antiquant_offset": offset}
    near(aclnn.grouped_matmul(x, weight, **lists), wanted, 2.0**-8)
    near(aclnn.grouped_matmul(x, [packed(one) for one in weight], **lists), wanted, 2.0**-8)
    scales = np.stack([scale[0], scale[0] * 2])
    spread = np.repeat(scales, 8, 0).astype(float)
    found = aclnn.grouped_matmul(
        x[:1],
        [packed(weight[0])],
        antiquant_scale=[scales],
        antiquant_offset=[np.zeros_like(scales)],
    )
    near(found, [exactly(x[0], weight[0] * spread)], 2.0**-8)


def c_list(*arrays):
    return aclnn.aclCreateTensorList([tensor(one) for one in arrays])


def c_arguments(x, weight, out, groups=None, *, item=3, along=0, version=4, **given):
    """Arguments of a C-shaped function on lists of arrays, after its name."""
    operands = [c_list(*given[r]) if r in given else None for r in ("bias", "scale", "offset")]
    tuning = (None,) if version == 5 else ()
    numbers = (item, along, given.get("kind", 0), given.get("act", 0), *tuning)
    listed = None if groups is None else tensor(groups)
    lists = (c_list(*x), c_list(*weight), *operands, None, None, None)
    rest = (listed, None, None, None, *numbers, c_list(*out), None, given.get("dynamic"))
    return f"aclnnGroupedMatmulV{version}", *lists, *rest


@named("version", [4, 5])
def test_lists_in_both_phases(version):
    x, weight = matrices([(5, 6)])[0], matrices([(6, 7)] * 3, seed=1)
    out = np.full((5, 7), 9, np.float32)
    run(*c_arguments([x], weight, [out], np.int64([1, 3, 4]), version=version))
    rows = [exactly(x[s:e], w) for s, e, w in zip((0, 1, 3), (1, 3, 4), weight, strict=True)]
    np.testing.assert_allclose(out[:4], np.concatenate(rows), 1e-5, 1e-5)
    same(out[4], np.full(7, 9))  # left alone
    outs = [np.zeros((5, 7), np.float32) for _ in weight]
    run(*c_arguments([x] * 3, weight, outs, item=0, along=-1, version=version))
    near(outs, [exactly(x, one) for one in weight])


def test_void_lists_count_as_null():
    x, weight = matrices([(2, 3)]), matrices([(3, 4)], seed=1)
    out, void = np.zeros((2, 4), np.float32), np.zeros(0, np.float32)
    for lists in ({"bias": [void], "scale": []}, {"offset": [void]}, {"dynamic": c_list(void)}):
        run(*c_arguments(x, weight, [out], item=0, along=-1, **lists))
        near([out], [exactly(x[0], weight[0])])


def test_rules_of_lists():
    x, weight = matrices([(2, 3), (2, 3)]), matrices([(3, 4), (3, 4)], seed=1)
    room = [np.zeros((2, 4), np.float32) for _ in range(2)]
    each = {"item": 0, "along": -1}
    groups = np.int64([1, 2])
    for call, words in (
        ((x, weight, room[:1], None, each), "1 tensors for results, but 2 products"),
        ((x[:1], weight, room, None, each), "x has 1 tensors, weight 2"),
        ((x, weight, room, groups, each), "must be null"),
        ((x, weight, room, None, {"item": 3, "along": -1}), "must be 0 or 1"),
        ((x, weight, room, None, {"item": 0, "along": 0}), "must be 2 or 3"),
        ((x, weight, room, None, {"along": 1}), "must be -1, 0 or 2"),
        ((x[:1], weight, room[:1], None, {}), "is null, must be given"),
        ((x[:1], weight, room[:1], np.int64([2]), {}), "has 1 groups"),
        (([], [], room, None, each), "x is empty"),
        ((x, weight, room, None, {**each, "bias": [np.zeros(4, np.float32)]}), "has 1 tensors"),
        ((x, weight, room, None, {**each, "offset": room}), "must be null"),
        ((x, weight, room, None, {**each, "act": 3}), "act_type|actType"),
        ((x, weight, room, groups, {**each, "kind": 2}), "dimensions"),
        ((x, [weight[0], weight[1].T], room, None, each), "must have 2 dimensions, and 3 rows"),
        ((x, [weight[0], np.float16(weight[1])], room, None, each), "has dtype FLOAT16"),
    ):
        *lists, numbers = call
        status, message = refused(*c_arguments(*lists, **numbers))
        assert status == INVALID
        assert re.search(words, message), message


# --- Elements and rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16], ids=str)
def test_rows_have_scales_of_their_own(dtype):
    x = rng_of(0).normal(size=(4, 3, 72)).astype(dtype)
    x[1, 2] = 0
    smooth = rng_of(1).uniform(0.5, 2, 72).astype(dtype)
    for factor in (None, smooth):
        v = (
            x.astype(np.float32)
            if factor is None
            else x.astype(np.float32) * factor.astype(np.float32)
        )
        scale = np.abs(v).max(-1) / np.float32(127)
        with np.errstate(invalid="ignore"):
            wanted = rounded(v / scale[..., None])
        for one in (x, np.asfortranarray(x)):
            y, found = aclnn.dynamic_quant(one, smooth_scales=factor)
            same(found, scale)
            same(y, wanted)
        four = np.abs(v).max(-1) / np.float32(7)
        with np.errstate(invalid="ignore"):
            wanted = packed(rounded(v / four[..., None], -8, 7))
        y, found = aclnn.dynamic_quant(x, smooth_scales=factor, dst_type="int32")
        same(found, four)
        same(y, wanted)


def test_rows_with_offsets_and_groups():
    x = rng_of(0).normal(size=(5, 9)).astype(np.float16)
    smooth = rng_of(1).uniform(0.5, 2, (3, 9)).astype(np.float16)
    v = x.astype(np.float32) * smooth[[0, 0, 1, 2, 2]].astype(np.float32)
    scale = np.maximum((v.max(-1) - v.min(-1)) / np.float32(255), np.float32(1e-12))
    offset = np.float32(127) - v.max(-1) / scale
    ends = np.int64([2, 3, 5])
    y, found, shift = aclnn.dynamic_quant_asymmetric(x, smooth_scales=smooth, group_index=ends)
    same(found, scale)
    same(shift, offset)
    same(y, rounded(v / scale[:, None] + offset[:, None]))
    with pytest.raises(aclnn.AclnnError, match="row 4 belongs to no group"):
        aclnn.dynamic_quant(x, smooth_scales=smooth, group_index=np.int32([2, 3, 4]))


def test_elements_by_scales():
    x = np.float32([[0.5, 1.5, -2.5, np.nan, 1e30, -1e30, np.inf, 0.3]])
    one, three = np.float32([1]), np.float32([3])
    same(aclnn.ascend_quant(x, one), rounded(x))
    same(aclnn.ascend_quant(x, one, three), rounded(x + 3))
    same(aclnn.ascend_quant(x, np.float32([2]), sqrt_mode=True), rounded(x * 4))
    for mode, function in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc)):
        same(aclnn.ascend_quant(x, one, round_mode=mode), rounded(function(x)))
    same(aclnn.ascend_quant(x, one, dst_type="int32"), packed(rounded(x, -8, 7)))
    columns, rows = np.arange(1, 9, dtype=np.float32), np.float32([2, 4])
    two = np.concatenate([x, x])
    same(aclnn.ascend_quant(two, columns), rounded(two * columns))
    same(aclnn.ascend_quant(two, rows, axis=-2), rounded(two * rows[:, None]))
    same(aclnn.quantize(two, columns, None, "int8"), rounded(two / columns))
    same(aclnn.quantize(two, rows, rows, "int8", 0), rounded(two / rows[:, None] + rows[:, None]))
    same(aclnn.quantize(two, columns, columns, "int8", 1, False), rounded(two * columns + columns))


def test_scales_as_bits():
    scale, offset = np.float32([1.5, -0.1]), np.float32([-3, 300])
    found = aclnn.trans_quant_param(scale, offset)
    bits = [int(one) & 0xFFFFE000 for one in scale.view(np.uint32)]
    same(found, [bits[0] | (-3 & 511) << 37 | 1 << 46, bits[1] | 255 << 37 | 1 << 46])


# --- Norms and gates ------------------------------------------------------------------------------


def norm(x1, x2, gamma, beta=0):
    x = x1.astype(float) + x2.astype(float)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma.astype(float) + beta


@named("dtype", [np.dtype(np.float16), BF16], ids=str)
def test_norms_are_quantized(dtype):
    """But where float32 lies next to a tie."""
    x1, x2 = rng_of(0).normal(size=(2, 5, 40)).astype(dtype)
    gamma, beta = rng_of(1).uniform(0.5, 2, (2, 40)).astype(dtype)
    scales, zeros = np.full(40, 0.03125, np.float32), np.arange(40, dtype=np.int32)
    y = norm(x1, x2, gamma, beta.astype(float))
    y1, y2, x = aclnn.add_rms_norm_quant(x1, x2, gamma, scales, zeros, beta, scales * 2, zeros * 0)
    same(x, (x1.astype(np.float32) + x2.astype(np.float32)).astype(dtype))
    for found, wanted in ((y1, y / 0.03125 + zeros), (y2, y / 0.0625)):
        assert np.abs(found - np.clip(wanted, -128, 127)).max() <= 0.5 + 1e-4
    y1, y2, _, scale1, scale2 = aclnn.add_rms_norm_dynamic_quant(
        x1, x2, gamma, smooth_scale2=gamma, output_mask=(True, True)
    )
    plain = norm(x1, x2, gamma)
    for found, scale, wanted in ((y1, scale1, plain), (y2, scale2, plain * gamma.astype(float))):
        np.testing.assert_allclose(scale, np.abs(wanted).max(-1) / 127, 1e-6)
        assert np.abs(found * scale[:, None] - wanted).max() <= scale.max() * 0.5001


@named("rows", [(2, 3), (6,)])
@named("places", [(2, 3), (6,)])
def test_rows_in_one_dimension(rows, places):
    """What the first version makes may have all rows in one dimension."""
    x = np.random.default_rng(7).normal(size=(2, 3, 8)).astype(np.float16)
    gamma, smooth = x[0, 0], x[1, 1]
    made = (
        [np.zeros((*rows, 8), np.int8) for _ in range(2)],
        [np.zeros(places, np.float32) for _ in range(2)],
    )
    given = [tensor(one) for one in (x, x, gamma, smooth, gamma)]
    run(
        "aclnnAddRmsNormDynamicQuant",
        *given,
        1e-6,
        *map(tensor, made[0]),
        tensor(x.copy()),
        *map(tensor, made[1]),
    )
    wanted = aclnn.add_rms_norm_dynamic_quant(
        x, x, gamma, smooth_scale1=smooth, smooth_scale2=gamma, epsilon=1e-6
    )
    for one, other in zip((*made[0], *made[1]), (*wanted[:2], *wanted[3:]), strict=True):
        same(one.reshape(other.shape), other)


def test_pairs_that_nobody_asks_for_are_left_alone():
    x = np.ones((2, 8), np.float16)
    gamma = np.ones(8, np.float16)
    outs = [np.full((2, 8), 9, np.int8) for _ in range(2)]
    scales = [np.full(2, 9, np.float32) for _ in range(2)]
    given = [tensor(one) for one in (x, x, gamma)]
    made = [tensor(one) for one in (*outs, x.copy(), *scales)]
    size, executor, status = aclnn.aclnnAddRmsNormDynamicQuantGetWorkspaceSize(
        *given, None, None, 1e-6, *made
    )
    assert status == 0
    assert aclnn.aclnnAddRmsNormDynamicQuant(np.empty(size, np.uint8), size, executor, None) == 0
    assert (outs[0] == 127).all()
    assert (outs[1] == 9).all()
    assert (scales[1] == 9).all()


def silu(x):
    return x / (1 + np.exp(-x))


def test_gates_are_dequantized_and_quantized():
    rng = rng_of(0)
    x = rng.integers(-9999, 9999, (6, 16)).astype(np.int32)
    weight, token = rng.uniform(1e-4, 2e-4, (2, 16)).astype(np.float32), rng.uniform(1, 2, 6)
    token, bias = token.astype(np.float32), rng.integers(-999, 999, (2, 16)).astype(np.int32)
    groups = np.array([0, 0, 0, 0, 1])
    v = (x[:5] + bias[groups]) * weight[groups].astype(float) * token[:5, None].astype(float)
    u = silu(v[:, :8]) * v[:, 8:]
    y, scale = aclnn.dequant_swiglu_quant(
        x, weight_scale=weight, activation_scale=token, bias=bias, group_index=np.int64([4, 1]),
        activate_left=True, quant_mode="dynamic",
    )  # fmt: skip
    np.testing.assert_allclose(scale[:5], np.abs(u).max(-1) / 127, 1e-5)
    assert np.abs(y[:5] * scale[:5, None] - u).max() <= scale.max() * 0.501
    assert (y[5] == 0).all()
    half = rng.normal(size=(3, 16)).astype(np.float16)
    v = half.astype(float)
    static = np.float32([0.01])
    y, none = aclnn.dequant_swiglu_quant(half, quant_scale=static, quant_offset=np.float32([2]))
    assert none is None
    wanted = np.clip(v[:, :8] * silu(v[:, 8:]) / 0.01 + 2, -128, 127)
    assert np.abs(y - wanted).max() <= 0.501
    y, scale = aclnn.dequant_swiglu_quant(
        half, activate_left=True, swiglu_mode=1, clamp_limit=1.0, quant_mode="dynamic"
    )
    gate, linear = np.minimum(v[:, ::2], 1), np.clip(v[:, 1::2], -1, 1)
    u = gate / (1 + np.exp(-1.702 * gate)) * (linear + 1)
    assert np.abs(y * scale[:, None] - u).max() <= scale.max() * 0.501


def test_gates_of_the_second_version():
    """As the first, with a null mode of rounding; the static mode is the one of null."""
    x = np.random.default_rng(0).integers(-999, 999, (5, 16)).astype(np.int32)
    scales = {"weight_scale": np.full((1, 16), 0.01, np.float32), "groups": np.int64([5])}
    quant = np.full((1, 8), 0.125, np.float32)
    for mode in ("dynamic", "static", None):
        y, scale = np.zeros((5, 8), np.int8), np.zeros(5, np.float32)
        offset = None if mode == "dynamic" else np.full((1, 8), 3, np.float32)
        given = [x, scales["weight_scale"], None, None, quant, offset, scales["groups"]]
        tensors = [None if one is None else tensor(one) for one in given]
        gate = [True, mode, 2, None, -1, 3, 2.5, 1.5, 0.5]
        run("aclnnDequantSwigluQuantV2", *tensors, *gate, tensor(y), tensor(scale))
        wanted, of_rows = aclnn.dequant_swiglu_quant(
            x, weight_scale=scales["weight_scale"], quant_scale=quant, quant_offset=offset,
            group_index=scales["groups"], activate_left=True, quant_mode=mode or "static",
            swiglu_mode=3, clamp_limit=2.5, glu_alpha=1.5, glu_bias=0.5,
        )  # fmt: skip
        np.testing.assert_array_equal(y, wanted)
        if mode == "dynamic":
            np.testing.assert_array_equal(scale, of_rows)
        for place, value in ((1, "often"), (2, 3), (3, "floor"), (4, 0), (5, 4)):
            changed = [value if k == place else one for k, one in enumerate(gate)]
            arguments = (*tensors, *changed, tensor(y), tensor(scale))
            assert refused("aclnnDequantSwigluQuantV2", *arguments)[0] == INVALID


def test_quantize_in_both_phases():
    x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32) * 50
    scales, points = np.float32([0.5, 0.25, 1, 2, 0.75, 1.5]), np.int32([3, 0, -3, 1, 2, 5])
    out = np.zeros((4, 6), np.int8)
    run("aclnnQuantize", *map(tensor, (x, scales, points)), T.ACL_INT8, 1, tensor(out))
    np.testing.assert_array_equal(out, np.clip(np.rint(x / scales + points), -128, 127))
    wrong = [*map(tensor, (x, scales, points)), T.ACL_INT32, 1, tensor(out)]
    assert refused("aclnnQuantize", *wrong)[0] == INVALID


@named(
    ("kind", "low", "high"), [(np.uint8, 0, 255), (np.int32, -(2**31), 2**31 - 1)], ids=["u1", "i4"]
)
def test_quantized_integers_without_signs_and_of_32_bits(kind, low, high):
    x = np.float32([[0.25, -3, 300, 127.5], [2.5e9, -3e9, np.nan, np.inf]])
    scales, points = np.float32([0.5, 1, 1, 1]), np.float32([0, 3, -1, 0])
    exact = np.nan_to_num(x.astype(float) / scales + points, nan=0.0, posinf=1e30)
    wanted = np.clip(np.rint(exact), low, high).astype(kind)
    out = np.zeros(x.shape, kind)
    run(
        "aclnnQuantize",
        *map(tensor, (x, scales, points)),
        dtypes.of_numpy(out.dtype),
        1,
        tensor(out),
    )
    same(out, wanted)
    for one in layouts(x):
        same(aclnn.quantize(one, scales, points, out.dtype.name), wanted)
    if kind == np.uint8:
        with pytest.raises(aclnn.AclnnError, match="dtype is uint8"):
            aclnn.quantize(x, scales, points, "uint8", 1, False)


# --- What is refused ------------------------------------------------------------------------------

A, B, ONE = np.ones((2, 8), np.int8), np.ones((8, 4), np.int8), np.ones(1, np.float32)
HALF = np.ones((2, 8), np.float16)


@named(
    ("call", "words"),
    [
        (lambda: aclnn.quant_matmul(A, B.T, ONE), "rows of 8 integers, x2 columns of 4"),
        (lambda: aclnn.quant_matmul(A, HALF.T, ONE), "x2 has dtype float16"),
        (lambda: aclnn.quant_matmul(A, B, np.ones(3, np.float32)), "scale has shape"),
        (lambda: aclnn.quant_matmul(A, B, ONE, pertoken_scale=ONE[:1], output_dtype="bfloat16"), "pertoken"),
        (lambda: aclnn.quant_matmul(A, B, ONE, offset=ONE, output_dtype="int32"), "offset is given"),
        (lambda: aclnn.quant_matmul(A, B, ONE, output_dtype="float64"), "output_dtype|out has dtype|scale"),
        (lambda: aclnn.weight_quant_batchmatmul(HALF, B, np.ones(4, np.float32)), "antiquant_scale has dtype"),
        (
            lambda: aclnn.weight_quant_batchmatmul(HALF, B, np.ones(4, np.float16), antiquant_group_size=3),
            "antiquant_group_size is 3",
        ),
        (lambda: aclnn.dynamic_quant(HALF[0]), "1 dimensions, must have 2 to 8"),
        (lambda: aclnn.dynamic_quant(HALF[:, :7], dst_type="int32"), "last size 7"),
        (lambda: aclnn.dynamic_quant(HALF, group_index=np.int32([2])), "smooth_scales is not"),
        (lambda: aclnn.ascend_quant(HALF, ONE), "scale has dtype float32"),
        (lambda: aclnn.ascend_quant(HALF, ONE.astype(np.float16), axis=2), "axis is 2"),
        (lambda: aclnn.ascend_quant(HALF, ONE.astype(np.float16), round_mode="up"), "round_mode is 'up'"),
        (lambda: aclnn.dequant_swiglu_quant(HALF[:, :7]), "odd last size"),
        (lambda: aclnn.dequant_swiglu_quant(HALF, weight_scale=ONE), "weight_scale is given"),
    ],
)  # fmt: skip
def test_what_is_refused(call, words):
    with pytest.raises(aclnn.AclnnError, match=words) as caught:
        call()
    assert caught.value.status == INVALID


def test_order_of_checks():
    """Ranks, dtypes, shapes; of fused norms, shapes are the plan's."""
    flat, wrong = tensor(A[0]), tensor(HALF)
    out = tensor(np.ones((2, 4), np.float16))
    last = (None, None, None, False, False, out)
    status, message = refused("aclnnQuantMatmulV4", flat, wrong, tensor(ONE), *last)
    assert (status, "dimensions" in message) == (INVALID, True)
    status, message = refused("aclnnQuantMatmulV4", tensor(A), wrong, tensor(ONE), *last)
    assert (status, "x2 has dtype" in message) == (INVALID, True)
    assert refused("aclnnQuantMatmulV4", None, wrong, tensor(ONE), *last)[0] == NULLPTR
    x, y = tensor(HALF), tensor(np.ones((2, 8), np.int8))
    scale = tensor(np.ones(2, np.float32))
    short = tensor(np.ones(7, np.float16))
    outs = (y, y, x, scale, scale)
    assert refused("aclnnAddRmsNormDynamicQuant", x, x, short, None, None, 1e-6, *outs)[0] == TILING
    status, _ = refused("aclnnAddRmsNormDynamicQuant", x, y, short, None, None, 1e-6, *outs)
    assert status == INVALID


# --- Integers of four bits ------------------------------------------------------------------------


def pairs(x):
    """Two integers of four bits in a byte, the first in its lower half."""
    low, high = (x[..., start::2].astype(int) & 15 for start in (0, 1))
    return (low | high << 4).astype(np.uint8)


def taken_apart(bytes_):
    both = np.stack([bytes_ & 15, bytes_ >> 4], -1).astype(np.int8)
    both = both.reshape(*bytes_.shape[:-1], -1)
    return np.where(both > 7, both - 16, both).astype(np.int8)


def four_at(memory, shape, strides=None, offset=0):
    made = aclnn.aclCreateTensor(
        shape, T.ACL_INT4, strides, offset, aclnn.ACL_FORMAT_ND, (2 * memory.size,), memory
    )
    assert made is not None, aclnn.aclGetRecentErrMsg()
    return made


def four(x, turned=False):
    """A tensor of integers of four bits, which are adjacent along the last dimension or the one before."""
    x = np.asarray(x)
    if not turned:
        return four_at(pairs(x), x.shape)
    lines = np.ascontiguousarray(x.swapaxes(-1, -2))
    strides = (np.array(x.strides) // x.itemsize).tolist()
    strides[-2:] = [1, x.shape[-2]]
    return four_at(pairs(lines), x.shape, tuple(strides))


def forms_of_four(x):
    """The same matrix as INT4 and as INT32, by rows and by columns, dense and with gaps."""
    yield four(x)
    yield four(x, turned=True)
    wide = np.zeros((x.shape[0], x.shape[1] // 2 + 3), np.uint8)
    wide[:, 1 : x.shape[1] // 2 + 1] = pairs(x)
    yield four_at(wide, x.shape, (2 * wide.shape[1], 1), 2)
    if x.shape[1] % 8 == 0:
        yield tensor(packed(x))
        yield tensor(np.repeat(packed(x), 2, 1)[:, ::2])
    if x.shape[0] % 8 == 0:
        yield tensor(packed(np.ascontiguousarray(x.T)).T)


@pytest.mark.parametrize(
    "function", ["aclnnWeightQuantBatchMatmulV2", "aclnnWeightQuantBatchMatmulV3"]
)
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16], ids=str)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 64, 16), (7, 96, 40), (3, 130, 34), (70, 256, 72)])
def test_weights_of_four_bits(function, dtype, m, k, n):
    rng = rng_of(m, k, n)
    x, weight = rng.normal(size=(m, k)).astype(dtype), rng.integers(-8, 8, (k, n))
    bias = rng.normal(size=n).astype(np.float32 if dtype == BF16 else dtype)
    last = (0,) if function.endswith("V3") else ()
    for size, shape in (
        (0, (1,)),
        (0, (n,)),
        (0, (1, n)),
        (32, (-(-k // 32), n)),
        (64, (-(-k // 64), n)),
    ):
        if size >= k:
            continue
        scale = rng.uniform(0.1, 0.2, shape).astype(dtype)
        offset = rng.integers(-5, 6, shape).astype(dtype)
        for shift in (None, offset):
            spread = [
                np.repeat(one.astype(float), size, 0)[:k] if size else one.astype(float)
                for one in (scale, np.zeros_like(scale) if shift is None else shift)
            ]
            whole = (weight + spread[1]) * spread[0]
            wanted = x.astype(float) @ whole + bias.astype(float)
            bound = np.abs(x.astype(float)) @ np.abs(whole) + 1
            for one in forms_of_four(weight):
                y = np.zeros((m, n), dtype)
                shifts = None if shift is None else tensor(shift)
                run(
                    function, tensor(x), one, tensor(scale), shifts, None, None, tensor(bias), size,
                    *last, tensor(y),
                )  # fmt: skip
                unit = 2.0**-8 if dtype == BF16 else 2.0**-11
                error = np.abs(y.astype(float) - wanted)
                assert (error <= unit * np.abs(wanted) * 1.01 + k * 2.0**-23 * bound).all()


@pytest.mark.parametrize(("m", "k", "n"), [(1, 2, 2), (3, 64, 16), (20, 130, 70), (65, 256, 96)])
def test_products_of_four_bits(m, k, n):
    rng = rng_of(m, k, n)
    a, b = rng.integers(-8, 8, (m, k)), rng.integers(-8, 8, (k, n))
    token, scale = (rng.uniform(1, 2, size).astype(np.float32) for size in (m, n))
    sums = (a @ b).astype(np.float32)
    wanted = (sums * scale * token[:, None]).astype(BF16)
    turned = four(np.ascontiguousarray(b.T))
    for version in (4, 5):
        for one, flag in ((four(b), False), (four(b, turned=True), False), (turned, True)):
            out = np.zeros((m, n), BF16)
            before = (None, tensor(scale), None, tensor(token), None)
            if version == 5:
                before = (tensor(token), tensor(scale), None, None, None, None, None)
            flags = (False, flag, 0) if version == 5 else (False, flag)
            run(
                f"aclnnQuantMatmulV{version}",
                four(a),
                one,
                *before[version == 4 :],
                *flags,
                tensor(out),
            )
            same(out, wanted)
    factor = rng.uniform(1, 2, (1, n)).astype(np.float32)
    for one, flag in ((four(b), False), (turned, True)):
        out = np.zeros((m, n), BF16)
        given = (tensor(token), tensor(scale), tensor(factor), None, None, None, None, False, flag)
        run("aclnnQuantMatmulV5", four(a), one, *given, 0, tensor(out))
        same(out, (sums * scale * token[:, None] * factor).astype(BF16))
    bits = aclnn.trans_quant_param(scale)
    half = np.zeros((m, n), np.float16)
    given = (tensor(bits), None, None, None, False, False, tensor(half))
    run("aclnnQuantMatmulV4", four(a), four(b), *given)
    short = (scale.view(np.uint32) & 0xFFFFE000).view(np.float32)
    same(half, (sums * short).astype(np.float16))


def test_batches_of_four_bits():
    rng = rng_of(5)
    a, b = rng.integers(-8, 8, (2, 3, 5, 18)), rng.integers(-8, 8, (18, 6))
    token, out = np.full(5, 0.5, np.float32), np.zeros((2, 3, 5, 6), BF16)
    scale = np.float32([1])
    rest = (tensor(scale), None, tensor(token), None, False, False, tensor(out))
    run("aclnnQuantMatmulV4", four(a), four(b, turned=True), *rest)
    same(out, ((a @ b) * 0.5).astype(BF16))


def four_list(*matrices):
    return aclnn.aclCreateTensorList(list(matrices))


def grouped_arguments(x, weights, scale, offset, groups, outs, *, item, along, version):
    tuning = (None,) if version == 5 else ()
    lists = (c_list(*x), weights, None, None, None, c_list(*scale), c_list(*offset), None)
    listed = None if groups is None else tensor(np.int64(groups))
    numbers = (item, along, 0, 0, *tuning, c_list(*outs), None, None)
    return f"aclnnGroupedMatmulV{version}", *lists, listed, None, None, None, *numbers


@named("version", [4, 5])
@named("groups_of_k", [None, 1, 4])
@named("dtype", [np.dtype(np.float16), BF16], ids=str)
def test_groups_with_weights_of_four_bits(version, groups_of_k, dtype):
    rng = rng_of(7)
    x, weight = rng.normal(size=(9, 48)).astype(dtype), rng.integers(-8, 8, (3, 48, 22))
    shape = (3, 22) if groups_of_k is None else (3, groups_of_k, 22)
    scale = rng.uniform(0.1, 0.2, shape).astype(dtype)
    offset = rng.integers(-4, 5, shape).astype(dtype)
    spread = [
        one.astype(float)[:, None]
        if groups_of_k is None
        else np.repeat(one.astype(float), 48 // groups_of_k, 1)
        for one in (scale, offset)
    ]
    whole = (weight + spread[1]) * spread[0]
    ends = [0, 4, 4, 7]
    wanted = np.concatenate(
        [x[s:e].astype(float) @ one for s, e, one in zip(ends, ends[1:], whole, strict=False)]
    )
    unit = 2.0**-7 if dtype == BF16 else 2.0**-10
    one_by_one = [four(one, turned=place == 1) for place, one in enumerate(weight)]
    for weights, scales, offsets in (
        (four_list(four(weight)), [scale], [offset]),
        (four_list(four(weight, turned=True)), [scale], [offset]),
        (four_list(*one_by_one), scale, offset),
    ):
        out = np.full((9, 22), 3, dtype)
        given = {"item": 3, "along": 0, "version": version}
        run(*grouped_arguments([x], weights, scales, offsets, ends[1:], [out], **given))
        np.testing.assert_allclose(out[:7].astype(float), wanted, unit, 50 * unit)
        same(out[7:], np.full((2, 22), 3))
    outs = [np.zeros((9, 22), dtype) for _ in weight]
    given = {"item": 0, "along": -1, "version": version}
    weights = four_list(*[four(one, turned=place == 1) for place, one in enumerate(weight)])
    run(*grouped_arguments([x] * 3, weights, scale, offset, None, outs, **given))
    for found, one in zip(outs, whole, strict=True):
        np.testing.assert_allclose(found.astype(float), x.astype(float) @ one, unit, 50 * unit)


def test_elements_become_four_bits():
    x = rng_of(1).normal(0, 4, (3, 5, 14)).astype(np.float32)
    scale, shift = rng_of(2).uniform(0.5, 2, (2, 14)).astype(np.float32)
    wanted = rounded(x * scale + shift, -8, 7)
    memory = np.full((3, 5, 7), 99, np.uint8)
    options = (False, b"round", T.ACL_INT4)
    run(
        "aclnnAscendQuantV3",
        tensor(x),
        tensor(scale),
        tensor(shift),
        *options,
        -1,
        four_at(memory, x.shape),
    )
    same(taken_apart(memory), wanted)
    memory[:] = 0
    run(
        "aclnnAscendQuant",
        tensor(x),
        tensor(scale),
        tensor(shift),
        *options,
        four_at(memory, x.shape),
    )
    same(taken_apart(memory), wanted)
    wide = np.full((3, 5, 9), 99, np.uint8)  # rows with gaps, behind two elements
    y = four_at(wide, x.shape, (90, 18, 1), 2)
    run("aclnnAscendQuantV3", tensor(x), tensor(scale), tensor(shift), *options, -1, y)
    same(taken_apart(wide[..., 1:8]), wanted)
    same(wide[..., [0, 8]], np.full((3, 5, 2), 99))


def test_rows_become_four_bits():
    x = rng_of(1).normal(0, 4, (3, 5, 14)).astype(np.float16)
    smooth = rng_of(2).uniform(0.5, 2, 14).astype(np.float16)
    v = x.astype(np.float32) * smooth.astype(np.float32)
    memory, found = np.zeros((3, 5, 7), np.uint8), np.zeros((3, 5), np.float32)
    y, scales = four_at(memory, x.shape), tensor(found)
    run("aclnnDynamicQuant", tensor(x), tensor(smooth), y, scales)
    scale = np.abs(v).max(-1) / np.float32(7)
    same(found, scale)
    same(taken_apart(memory), rounded(v / scale[..., None], -8, 7))
    shift = np.zeros((3, 5), np.float32)
    run(
        "aclnnDynamicQuantV2", tensor(x), tensor(smooth), None, T.ACL_INT4, y, scales, tensor(shift)
    )
    scale = (v.max(-1) - v.min(-1)) / np.float32(15)
    same(found, scale)
    same(shift, np.float32(7) - v.max(-1) / scale)
    same(taken_apart(memory), rounded(v / scale[..., None] + shift[..., None], -8, 7))


def test_norms_become_four_bits():
    rng = rng_of(3)
    x1, x2 = (rng.normal(size=(4, 10)).astype(np.float16) for _ in "12")
    gamma, memory = np.ones(10, np.float16), np.zeros((4, 5), np.uint8)
    total, scale = np.zeros_like(x1), np.zeros(4, np.float32)
    whole = (aclnn.aclCreateBoolArray([True, False]), four_at(memory, (4, 10)), None)
    run(
        "aclnnAddRmsNormDynamicQuantV2", tensor(x1), tensor(x2), tensor(gamma), None, None, None, 1e-6,
        *whole, tensor(total), tensor(scale), None,
    )  # fmt: skip
    v = x1.astype(float) + x2.astype(float)
    v /= np.sqrt((v * v).mean(-1, keepdims=True) + 1e-6)
    near = np.abs(v).max(-1) / 7
    np.testing.assert_allclose(scale, near, 1e-5)
    off = np.abs(taken_apart(memory) - v / near[:, None])
    assert (off <= 0.5 + 1e-4).all()


@named("shape", [(2, 8), (5, 24), (3, 4, 16)], ids=str)
def test_weights_are_packed(shape):
    weight = rng_of(4).integers(-8, 8, shape).astype(np.int32)
    for one in (weight, np.asfortranarray(weight)):
        same(aclnn.convert_weight_to_int4pack(one), packed(weight))
        out = np.zeros((*shape[:-1], shape[-1] // 8), np.int32)
        run("aclnnConvertWeightToINT4Pack", tensor(one), tensor(out))
        same(out, packed(weight))
        memory = np.zeros((*shape[:-1], shape[-1] // 2), np.uint8)
        run("aclnnConvertWeightToINT4Pack", tensor(one), four_at(memory, shape))
        same(memory, pairs(weight))


def test_what_four_bits_cannot_be():
    x, scale = np.ones((2, 6), np.float16), np.float16([1])
    memory, out = np.zeros(64, np.uint8), np.zeros((2, 4), np.float16)

    def status(shape, strides=None, offset=0, y=out):
        weight = four_at(memory, shape, strides, offset)
        given = (None, None, None, None, 0, tensor(y))
        return refused("aclnnWeightQuantBatchMatmulV2", tensor(x), weight, tensor(scale), *given)

    for weight, words in (
        (((6, 4), None, 1), "begins inside a byte"),
        (((6, 4), (5, 1)), "in pairs"),
        (((6, 4), (8, 2)), "in pairs"),
        (((6, 4), (4, 0)), "in pairs"),
    ):
        code, message = status(*weight)
        assert code == INVALID, message
        assert re.search(words, message), message
    code, message = status((6, 3), y=np.zeros((2, 3), np.float16))
    assert code == INVALID
    assert "in pairs" in message
    code, message = refused("aclnnDynamicQuant", tensor(np.ones((2, 7), np.float16)), None,
                            four_at(memory, (2, 7)), tensor(np.zeros(2, np.float32)))  # fmt: skip
    assert code == INVALID
    assert "2 does not divide" in message
    code, message = refused("aclnnDynamicQuant", tensor(np.ones((2, 6), np.float16)), None,
                            four_at(memory, (2, 6), (1, 2)), tensor(np.zeros(2, np.float32)))  # fmt: skip
    assert code == INVALID
    assert "adjacent along the last" in message
    with pytest.raises(aclnn.AclnnError, match="dst_type"):
        aclnn.dynamic_quant(x, dst_type=T.ACL_INT4)


def test_four_bits_in_captures():
    """A capture hands integers of four bits from call to call, through device memory."""
    x = rng_of(6).normal(size=(6, 16)).astype(np.float32)
    a, scale = rng_of(7).normal(size=(3, 6)).astype(np.float16), np.float16([1])
    address, status = aclnn.aclrtMalloc(48, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    assert status == 0
    weight = aclnn.aclCreateTensor(
        (6, 16), T.ACL_INT4, None, 0, aclnn.ACL_FORMAT_ND, (6, 16), address
    )
    y, one = np.zeros((3, 16), np.float16), np.float32([1])
    stream, _ = aclnn.aclrtCreateStream()
    mode = aclnn.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
    keep = [tensor(array) for array in (x, one, a, scale, y)]

    def phases(name, *arguments):
        size, executor, status = getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments)
        assert status == 0, aclnn.aclGetRecentErrMsg()
        return getattr(aclnn, name), (np.empty(size, np.uint8), size, executor, stream)

    quant = phases("aclnnAscendQuantV3", keep[0], keep[1], None, False, b"round", 29, -1, weight)
    given = (keep[3], None, None, None, None, 0, keep[4])
    product = phases("aclnnWeightQuantBatchMatmulV2", keep[2], weight, *given)
    assert aclnn.aclmdlRICaptureBegin(stream, mode) == 0
    for function, arguments in (quant, product):
        assert function(*arguments) == 0, aclnn.aclGetRecentErrMsg()
    model, status = aclnn.aclmdlRICaptureEnd(stream)
    assert status == 0, aclnn.aclGetRecentErrMsg()
    for factor in (1, 3):
        x *= factor
        assert aclnn.aclmdlRIExecute(model, -1) == 0
        wanted = a.astype(float) @ rounded(x, -8, 7)
        np.testing.assert_allclose(y.astype(float), wanted, 2.0**-10, 2.0**-8)
    host = np.zeros(48, np.uint8)
    assert aclnn.aclrtMemcpy(host, 48, address, 48, aclnn.ACL_MEMCPY_DEVICE_TO_HOST) == 0
    same(taken_apart(host).reshape(6, 16), rounded(x, -8, 7))
    assert aclnn.aclmdlRIDestroy(model) == 0
    assert aclnn.aclrtFree(address) == 0


def test_sums_of_bytes_are_exact_and_end_where_results_do():
    """Of all remainders of tiles, and of B by rows and by columns; one thread, so that the memory is its own."""
    rng = np.random.default_rng(97)
    one = np.ones(1, np.float32)
    for number in range(150):
        m, k, n = (int(rng.integers(1, most)) for most in (20, 70, 70))
        a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
        if number % 3 == 0:
            b = np.asfortranarray(b)
        wanted = a.astype(np.int32) @ b.astype(np.int32)
        with aclnn.num_threads(1), watched(wanted.size * 4) as memory:
            out = memory.view(np.int32).reshape(wanted.shape)
            aclnn.quant_matmul(a, b, one, output_dtype=np.int32, out=out)
            found = out.copy()
        np.testing.assert_array_equal(found, wanted)
