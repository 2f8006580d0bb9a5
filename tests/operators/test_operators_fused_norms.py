"""Norms of sums and norms by channel: against extended precision and PyTorch; what is refused."""

import ml_dtypes
import numpy as np
import pytest
from calls import refused, tensor
from cases import each
from row_calls import assert_near, bits, call, layouts, plan, random, status
from wide import DIGITS, WIDE, group_norm, layer_norm, rms_norm, ulps

import aclnn

pytestmark = pytest.mark.each_instruction_set

BF16 = ml_dtypes.bfloat16
FLOATS, HALVES = (np.float32, np.float16, BF16), (np.float16, BF16)
SUCCESS, NULLPTR, INVALID, TILING = 0, 161001, 161002, 561002


@pytest.fixture
def rng():
    return np.random.default_rng(23)


def assert_close(found, want):
    """Rounded once, but for what cancels, which does so in float64."""
    scale = np.abs(want).max(initial=1e-300)
    far = np.abs(found.astype(WIDE) - want) > 2.0**-40 * scale
    kept = want.astype(found.dtype)
    assert_near(np.where(far, found, kept), np.where(far, want, kept.astype(WIDE)))


def whole(*arrays):
    return sum(array.astype(WIDE) for array in arrays)


# --- RMS norm of a sum ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("sizes", [(70,), (6, 70), (5, 6, 70)])
def test_add_rms_norm(dtype, sizes, rng):
    x1, x2 = random(rng, (5, 6, 70), dtype), random(rng, (5, 6, 70), dtype)
    gamma = random(rng, sizes, dtype)
    found, rstd, x = aclnn.add_rms_norm(x1, x2, gamma)
    want, root = rms_norm(whole(x1, x2), len(sizes), gamma)
    assert_near(found, want)  # of the sum before it is rounded
    assert ulps(x, whole(x1, x2)) <= 0.5
    assert (rstd.dtype, rstd.shape) == (
        np.float32,
        (5, 6, 70)[: 3 - len(sizes)] + (1,) * len(sizes),
    )
    assert_near(rstd, root)
    for one, other in zip(layouts(x1), layouts(x2), strict=True):
        again = aclnn.add_rms_norm(one, other, gamma)
        assert [bits(a) for a in again] == [bits(a) for a in (found, rstd, x)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_add_rms_norm_in_place(dtype, rng):
    x1, x2, gamma = random(rng, (4, 66), dtype), random(rng, (4, 66), dtype), random(rng, 66, dtype)
    want = aclnn.add_rms_norm(x1, x2, gamma, 1e-3)
    for layout in (np.copy, np.asfortranarray):
        given = layout(x1), layout(x2)
        y, rstd, x = aclnn.add_rms_norm_(*given, gamma, 1e-3)
        assert y is given[0]
        assert x is given[1]
        assert [bits(one) for one in (y, rstd, x)] == [bits(one) for one in want]
    given, rstd = (x1.copy(), x2.copy()), np.empty((4, 1), np.float32)
    call("aclnnInplaceAddRmsNorm", *given, gamma, 1e-3, rstd)
    assert [bits(one) for one in (given[0], rstd, given[1])] == [bits(one) for one in want]


@pytest.mark.parametrize("dtype", HALVES)
def test_modes_without_rstd(dtype, rng):
    """gamma has two dimensions then."""
    x1, x2, gamma = (
        random(rng, (4, 3, 66), dtype),
        random(rng, (4, 3, 66), dtype),
        random(rng, (1, 66), dtype),
    )
    want, _, total = aclnn.add_rms_norm(x1, x2, gamma[0], 1e-3)
    y, x = np.empty_like(x1), np.empty_like(x1)
    call("aclnnAddRmsNorm", x1, x2, gamma, 1e-3, y, None, x)
    assert (bits(y), bits(x)) == (bits(want), bits(total))
    y[...] = 0
    call("aclnnAddRmsNorm", x1, x2, gamma, 1e-3, y, None, None)
    assert bits(y) == bits(want)


@pytest.mark.parametrize("dtype", HALVES)
def test_add_rms_norm_cast(dtype, rng):
    x1, x2, gamma = random(rng, (4, 66), dtype), random(rng, (4, 66), dtype), random(rng, 66, dtype)
    y1, y2, rstd, x = aclnn.add_rms_norm_cast(x1, x2, gamma)
    want, root, total = aclnn.add_rms_norm(x1, x2, gamma)
    assert y1.dtype == np.float32
    assert_near(y1, rms_norm(whole(x1, x2), 1, gamma)[0])
    assert bits(y2) == bits(y1.astype(dtype))
    assert (bits(rstd), bits(x)) == (bits(root), bits(total))
    assert np.abs(y2.astype(float) - want.astype(float)).max() <= 2.0 ** (1 - DIGITS[dtype]) * 16


@pytest.mark.parametrize("dtype", FLOATS)
def test_gemma_rms_norm(dtype, rng):
    x, gamma = random(rng, (4, 3, 66), dtype), random(rng, (3, 66), dtype)
    found, rstd = aclnn.gemma_rms_norm(x, gamma)
    want, root = rms_norm(x, 2, gamma.astype(WIDE) + 1)
    assert_near(found, want)
    assert rstd.shape == (4,)
    assert_near(rstd, root[:, 0, 0])
    ones = np.empty((4, 1, 1), np.float32)
    call("aclnnGemmaRmsNorm", x, gamma, 1e-6, found, ones)
    assert bits(ones) == bits(rstd)


# --- Layer norm of a sum --------------------------------------------------------------------------


@pytest.mark.parametrize("dtypes", [(t, t, t) for t in FLOATS]
    + [(t, t, np.float32) for t in HALVES]
    + [(np.float16, np.float32, np.float32), (np.float32, BF16, np.float32)])  # fmt: skip
@pytest.mark.parametrize("bias", [None, (66,), (4, 3, 66)])
def test_add_layer_norm(dtypes, bias, rng):
    x1, x2 = (random(rng, (4, 3, 66), dtype) for dtype in dtypes[:2])
    gamma, beta = random(rng, 66, dtypes[2]), random(rng, 66, dtypes[2])
    added = [x1, x2] if bias is None else [x1, x2, random(rng, bias, dtypes[2])]
    total, own = whole(*added), dtypes[0] if dtypes[0] == dtypes[1] else np.float32
    found, mean, rstd, x = aclnn.add_layer_norm(x1, x2, gamma, beta, 1e-5, True, *added[2:])
    want, middle, root = layer_norm(total, 1, gamma, beta)
    assert found.dtype == x.dtype == own
    assert_close(found, want)
    assert ulps(x, total) <= 0.5001
    assert mean.dtype == rstd.dtype == np.float32
    assert_close(mean, middle)
    assert_near(rstd, root)
    without = aclnn.add_layer_norm(x1, x2, gamma, beta, 1e-5, False, *added[2:])
    assert without[3] is None
    assert bits(without[0]) == bits(found)


# --- Group norm -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 6), (2, 6, 35), (2, 6, 5, 7), (2, 12, 3, 4, 5)])
@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("given", [(), ("weight",), ("weight", "bias")])
def test_group_norm(dtype, shape, groups, given, rng):
    x = random(rng, shape, dtype) + dtype(3)
    options = {role: random(rng, shape[1], dtype) for role in given}
    want, mean, rstd = group_norm(x, groups, **options)
    found = aclnn.group_norm(x, groups, **options)
    assert found.dtype == dtype
    assert_close(found, want)
    counts = (*shape[:2], int(np.prod(shape[2:])))
    weight, bias = (options.get(role) for role in ("weight", "bias"))
    all_of_it = aclnn.native_group_norm(x, weight, bias, *counts, groups)
    assert bits(all_of_it[0]) == bits(found)
    for one, exact in zip(all_of_it[1:], (mean, rstd), strict=True):
        assert (one.dtype, one.shape) == (dtype, (shape[0], groups))
        assert_close(one, exact)
    for other in layouts(x):
        assert bits(aclnn.group_norm(other, groups, **options)) == bits(found)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("single", [False, True])
def test_group_norm_silu(dtype, single, rng):
    x, kind = random(rng, (2, 6, 5, 7), dtype), np.float32 if single else dtype
    weight, bias = random(rng, 6, kind), random(rng, 6, kind)
    normal, mean, rstd = group_norm(x, 3, weight, bias)
    found = aclnn.group_norm_silu(x, weight, bias, 3)
    assert_close(found[0], normal / (1 + np.exp(-normal)))
    assert found[1].dtype == found[2].dtype == dtype
    assert_close(found[1], mean)
    assert_close(found[2], rstd)
    plain = aclnn.group_norm_silu(x, weight, bias, 3, activate_silu=False)
    assert_close(plain[0], normal)
    out = [np.empty_like(one) for one in found]
    call("aclnnGroupNormSilu", x, weight, bias, 3, 1e-5, *out)
    assert [bits(one) for one in out] == [bits(one) for one in found]
    call("aclnnGroupNormSiluV2", x, weight, bias, 3, 1e-5, False, *out)
    assert [bits(one) for one in out] == [bits(one) for one in plain]


def test_group_norm_is_that_of_pytorch(rng):
    torch = pytest.importorskip("torch")
    x, weight, bias = (random(rng, shape) for shape in ((2, 6, 5, 7), (6,), (6,)))
    given = [torch.tensor(one).double() for one in (x, weight, bias)]
    found = aclnn.native_group_norm(x, weight, bias, 2, 6, 35, 3, 1e-3)
    want = torch.native_group_norm(*given, 2, 6, 35, 3, 1e-3)
    for one, other in zip(found, want, strict=True):
        np.testing.assert_allclose(one, other.numpy(), 1e-5, 1e-6)
    empty = torch.native_group_norm(torch.zeros(2, 4, 0), None, None, 2, 4, 0, 2, 1e-5)
    found = aclnn.native_group_norm(np.zeros((2, 4, 0), np.float32), None, None, 2, 4, 0, 2)
    for one, other in zip(found, empty, strict=True):
        np.testing.assert_array_equal(one, other.numpy())


@pytest.mark.parametrize("shape", [(2, 4, 5000)])
def test_numbers_that_hardly_differ_from_a_large_mean(shape, rng):
    x = (np.float32(1000) + random(rng, shape) * np.float32(1e-3)).astype(np.float32)
    found, want = aclnn.group_norm(x, 2), group_norm(x, 2)[0]
    assert np.abs(found - want).max() <= 2.0**-23 * np.abs(want).max()


# --- Batch norm -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("shape", [(4, 6), (3, 6, 35), (2, 6, 5, 7)])
def test_batch_norm(dtype, single, shape, rng):
    kind = np.float32 if single else dtype
    x = random(rng, shape, dtype)
    mean, weight, bias = (random(rng, 6, kind) for _ in range(3))
    variance = np.abs(random(rng, 6, kind))
    spread = (1, 6, *[1] * (len(shape) - 2))
    m, v, w, b = (one.astype(WIDE).reshape(spread) for one in (mean, variance, weight, bias))
    want = (x.astype(WIDE) - m) / np.sqrt(v + WIDE(1e-5))
    assert_close(aclnn.batch_norm(x, mean, variance), want)
    found = aclnn.batch_norm(x, mean, variance, weight, bias)
    assert found.dtype == dtype
    assert_close(found, want * w + b)
    for other in layouts(x):
        assert bits(aclnn.batch_norm(other, mean, variance, weight, bias)) == bits(found)
    native = aclnn.native_batch_norm(x, weight, bias, mean, variance)
    assert bits(native[0]) == bits(found)
    assert [one.shape for one in native[1:]] == [(0,), (0,)]
    saved = np.full(6, 7, np.float32)
    call("aclnnBatchNorm", x, None, None, mean, variance, False, 0.1, 1e-5, found, saved, None)
    assert (saved == 7).all()
    assert_close(found, want)


def test_batch_norm_is_that_of_pytorch(rng):
    torch = pytest.importorskip("torch")
    x, mean, weight, bias = (random(rng, shape) for shape in ((2, 6, 5, 7), (6,), (6,), (6,)))
    variance = np.abs(random(rng, 6))
    given = [torch.tensor(one).double() for one in (x, mean, variance, weight, bias)]
    want = torch.nn.functional.batch_norm(*given, eps=1e-3)
    found = aclnn.batch_norm(x, mean, variance, weight, bias, eps=1e-3)
    np.testing.assert_allclose(found, want.numpy(), 1e-5, 1e-6)


TRAINED = [(6, 5), (4, 5, 7), (3, 5, 4, 6), (1, 5, 9)]


@each("shape", TRAINED)
@each("dtype", FLOATS)
@each("single", [False, True])
@each("product", ["Ascend910B1", "Ascend950"])
def test_batch_norm_in_training(shape, dtype, single, product, rng):
    """Both of CANN's functions and the functional forms, against PyTorch in float64."""
    torch = pytest.importorskip("torch")
    own = np.float32 if single else dtype
    x, grad = (2 * random(rng, shape) + 1).astype(dtype), random(rng, shape).astype(dtype)
    weight, bias, mean, var = (random(rng, 5).astype(own) for _ in range(4))
    var = np.abs(var)
    wide = [torch.tensor(one.astype(np.float64)) for one in (x, weight, bias, mean, var)]
    want = torch.native_batch_norm(*wide, True, 0.1, 1e-3)
    slopes = torch.ops.aten.native_batch_norm_backward(
        torch.tensor(grad.astype(np.float64)),
        *wide[:2],
        *wide[3:],
        *want[1:],
        True,
        1e-3,
        [True] * 3,
    )

    def near(found, wanted, times=1):
        step = (
            times * {2: 2.0**-7 if found.dtype != np.float16 else 2.0**-10, 4: 4e-6}[found.itemsize]
        )
        np.testing.assert_allclose(found.astype(np.float64), wanted.numpy(), step, step / 4)

    made = aclnn.native_batch_norm_functional(x, weight, bias, mean, var, True, 0.1, 1e-3)
    for one, wanted in zip(made, (*want, *wide[3:]), strict=True):
        near(one, wanted)
    found = aclnn.native_batch_norm_backward(grad, x, weight, None, None, *made[1:3], True, 1e-3)
    for one, wanted in zip(found, slopes, strict=True):
        near(one, wanted, 8)  # of statistics that were rounded
    before = aclnn.get_soc_version()
    aclnn.set_soc_version(product)
    try:
        outs = [np.zeros_like(x), np.zeros(5, own), np.zeros(5, own)]
        call("aclnnBatchNorm", x, weight, bias, mean, var, True, 0.1, 1e-3, *outs)
        gradients = [np.zeros_like(one) for one in found]
        given = grad, x, weight, None, None, *outs[1:], True, 1e-3
        flags = aclnn.aclCreateBoolArray([True] * 3)
        call("aclnnBatchNormBackward", *given, flags, *gradients)
    finally:
        aclnn.set_soc_version(before)
    for one, other in zip((*outs[:2], mean, var), (*made[:2], *made[3:]), strict=True):
        np.testing.assert_array_equal(one, other)
    spread = torch.var(wide[0].transpose(0, 1).flatten(1), 1, correction=0)
    near(outs[2], spread if product != "Ascend950" else want[2])
    for one, wanted in zip(gradients, slopes, strict=True):
        near(one, wanted, 8)


def test_batch_norm_of_nothing_in_training():
    x, saved = np.zeros((0, 3), np.float32), [np.full(3, 7, np.float32) for _ in range(2)]
    row = np.ones(3, np.float32)
    call("aclnnBatchNorm", x, None, None, row, row, True, 0.1, 1e-3, x.copy(), *saved)
    assert (saved[0] == 0).all()
    assert np.isnan(saved[1]).all()
    assert (row == 1).all()


@pytest.mark.parametrize("train", [False, True])
def test_gradients_of_batch_norm_by_running_statistics(train, rng):
    torch = pytest.importorskip("torch")
    x, grad, row = random(rng, (3, 4, 5)), random(rng, (3, 4, 5)), np.abs(random(rng, 4))
    mask = (True, False, True)
    found = aclnn.native_batch_norm_backward(grad, x, None, row, row, row, row, train, 1e-3, mask)
    tensors = [torch.tensor(one) for one in (grad, x, row)]
    want = torch.ops.aten.native_batch_norm_backward(
        *tensors[:2], None, *[tensors[2]] * 4, train, 1e-3, list(mask)
    )
    assert found[1] is None
    for place in (0, 2):
        np.testing.assert_allclose(found[place], want[place].numpy(), 1e-5, 1e-5)


def test_what_batch_norm_in_training_refuses(rng):
    x, row = random(rng, (2, 6, 5)), np.ones(6, np.float32)
    form = aclnn.native_batch_norm_functional
    with pytest.raises(aclnn.AclnnError, match="running_var is null"):
        form(x, None, None, row, None)
    with pytest.raises(aclnn.AclnnError, match="running_mean is null"):
        form(x, None, None, None, None, False)
    with pytest.raises(aclnn.AclnnError, match="running_mean has shape"):
        form(x, None, None, row[1:], row)
    with pytest.raises(aclnn.AclnnError, match="save_invstd is null") as caught:
        aclnn.native_batch_norm_backward(x, x, None, None, None, row, None)
    assert caught.value.status == 161001
    tensors = [None if one is None else tensor(one) for one in (x, None, None, row, row)]
    status, words = refused("aclnnBatchNorm", *tensors, True, 0.1, 1e-3, tensor(x), None, None)
    assert (status, "saveMean is null" in words) == (161001, True)


def test_training_is_refused(rng):
    x, row = random(rng, (2, 6, 5)), np.ones(6, np.float32)
    with pytest.raises(aclnn.AclnnError, match="training is true"):
        aclnn.batch_norm(x, row, row, training=True)


# --- What is refused, and when --------------------------------------------------------------------


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


X, G, R = zeros(2, 3), zeros(3), zeros(2, 1)
H, HG = X.astype(np.float16), zeros(1, 3, dtype=np.float16)
D = X.astype(np.float64)
REFUSED = [
    ("aclnnAddRmsNorm", (D, X, None, -1.0, X, R, None), NULLPTR, "gamma is null"),
    ("aclnnAddRmsNorm", (D, X, G, -1.0, X, R, None), NULLPTR, "xOut is null, but rstdOut is not"),
    ("aclnnAddRmsNorm", (D, X, G, -1.0, X, R, X), INVALID, "x1 has dtype DOUBLE"),
    ("aclnnAddRmsNorm", (X, H, G, -1.0, X, R, X), INVALID, "x2 has dtype FLOAT16"),
    ("aclnnAddRmsNorm", (X, X, G, -1.0, X, R.astype(np.float16), X), INVALID, "rstdOut has dtype"),
    ("aclnnAddRmsNorm", (X, X, HG.astype(np.float32), -1.0, X, None, X), INVALID, "must be FLOAT16 or BF16"),
    ("aclnnAddRmsNorm", (X, X[:1], G, -1.0, X, R, X), INVALID, "epsilon is -1.0"),
    ("aclnnAddRmsNorm", (X, X[:1], G[:1], 0.0, X, R, X), TILING, "x2 has shape (1, 3)"),
    ("aclnnAddRmsNorm", (X, X, G[:1], 0.0, X, R, X), TILING, "gamma has shape (1,)"),
    ("aclnnAddRmsNorm", (H, H, HG[0], 0.0, H, None, H), TILING, "gamma has shape (3,), must have (1, 3)"),
    ("aclnnAddRmsNorm", (X, X, G, 0.0, X[:1], R, X), TILING, "yOut has shape (1, 3)"),
    ("aclnnAddRmsNorm", (X, X, G, 0.0, X, R[0], X), TILING, "rstdOut has shape (1,)"),
    ("aclnnAddRmsNorm", (X, X, G, 0.0, X, R, X[:1]), TILING, "xOut has shape (1, 3)"),
    ("aclnnInplaceAddRmsNorm", (X, X[:1], G, 0.0, R), TILING, "x2Ref has shape (1, 3)"),
    ("aclnnAddRmsNormCast", (X, X, G, 0.0, X, X, R, X), INVALID, "x1 has dtype FLOAT, must be"),
    ("aclnnAddRmsNormCast", (H, H, HG[0], 0.0, H, H, R, H), INVALID, "y1Out has dtype FLOAT16"),
    ("aclnnGemmaRmsNorm", (H, G, 0.0, H, R), INVALID, "gamma has dtype FLOAT"),
    ("aclnnGemmaRmsNorm", (X, G, 0.0, X, G), TILING, "rstdOut has shape (3,), must have 2 elements"),
    ("aclnnAddLayerNorm", (X, X, G, G, None, 0.0, True, X, R, R, None), NULLPTR, "xOut is null"),
    ("aclnnAddLayerNorm", (H, X.astype(BF16), G, G, None, 0.0, False, X, R, R, None), INVALID, "none is FLOAT"),
    ("aclnnAddLayerNorm", (H, X, HG[0], G, None, 0.0, False, X, R, R, None), INVALID, "gamma has dtype FLOAT16"),
    ("aclnnAddLayerNorm", (H, X, G, G, None, 0.0, False, H, R, R, None), INVALID, "yOut has not the dtype"),
    ("aclnnAddLayerNorm", (X, X, G, G, R, 0.0, False, X, R, R, None), TILING, "biasOptional has shape (2, 1)"),
    ("aclnnAddLayerNorm", (X, X, G, G[:1], None, 0.0, False, X, R, R, None), TILING, "beta has shape (1,)"),
    ("aclnnAddLayerNorm", (X, X, G, G, None, 0.0, False, X, G, R, None), TILING, "meanOut has shape (3,)"),
    ("aclnnGroupNorm", (X, None, None, 2, 3, 1, 1, 1e-5, X, None, R), NULLPTR, "meanOut is null"),
    ("aclnnGroupNorm", (X, None, None, 9, 9, 9, 0, 0.0, X, H, H), INVALID, "meanOut has dtype FLOAT16"),
    ("aclnnGroupNorm", (X, HG, None, 9, 9, 9, 0, 0.0, X, R, R), INVALID, "gamma has dtype FLOAT16"),
    ("aclnnGroupNorm", (X, None, None, 9, 9, 9, 0, 0.0, X, R, R), INVALID, "group is 0, must be more than 0"),
    ("aclnnGroupNorm", (X, None, None, 9, 9, 9, 2, 0.0, X, R, R), INVALID, "group is 2, which does not divide 9"),
    ("aclnnGroupNorm", (G, None, None, 9, 9, 9, 3, 0.0, X, R, R), INVALID, "eps is 0.0, must be more than 0"),
    ("aclnnGroupNorm", (G, None, None, 9, 9, 9, 3, 1e-5, X, R, R), INVALID, "self has 1 dimensions"),
    ("aclnnGroupNorm", (X, None, None, 9, 9, 9, 3, 1e-5, G, R, R), INVALID, "out has shape (3,)"),
    ("aclnnGroupNorm", (X, None, None, 9, 9, 9, 3, 1e-5, X, R, R), INVALID, "N is 9, but self has 2 batches"),
    ("aclnnGroupNorm", (X, None, None, 2, 9, 9, 3, 1e-5, X, R, R), INVALID, "C is 9, but self has 3 channels"),
    ("aclnnGroupNorm", (X, None, None, 2, 3, 9, 3, 1e-5, X, R, R), INVALID, "HxW is 9, but self has 1"),
    ("aclnnGroupNorm", (X, None, None, 2, 3, 1, 3, 1e-5, X, R, R), INVALID, "meanOut has shape (2, 1)"),
    ("aclnnGroupNorm", (X, G[:1], None, 2, 3, 1, 1, 1e-5, X, R, R), INVALID, "gamma has shape (1,)"),
    ("aclnnGroupNormSilu", (H, G, HG[0], 1, 1e-5, H, H, H), INVALID, "beta has dtype FLOAT16"),
    ("aclnnGroupNormSiluV2", (X, G, G, 2, 1e-5, True, X, R, R), INVALID, "group is 2"),
    ("aclnnBatchNorm", (X, G, G, None, G, False, 0.1, 1e-5, X, None, None), NULLPTR, "runningMean is null"),
    ("aclnnBatchNorm", (X, HG, G, G, G, True, 0.1, 1e-5, X, G, G), INVALID, "weight has dtype FLOAT16"),
    ("aclnnBatchNorm", (X, G, G, G, R, True, 0.1, 1e-5, X, G, G), INVALID, "runningVar has shape (2, 1)"),
    ("aclnnBatchNorm", (X, G, G, G, G, True, 0.1, 1e-5, X, None, G), NULLPTR, "saveMean is null"),
    ("aclnnBatchNorm", (X, G, G, G, G, True, 0.1, 1e-5, X, G, G[:1]), INVALID, "saveInvstd has shape (1,)"),
]  # fmt: skip


@each(("name", "arguments", "wanted", "words"), REFUSED)
def test_what_is_refused_and_when(name, arguments, wanted, words):
    assert status(name, *arguments) == wanted
    assert words in aclnn.aclGetRecentErrMsg()


def test_empty_norms():
    x, gamma = zeros(0, 3), zeros(3)
    assert [one.shape for one in aclnn.add_rms_norm(x, x, gamma)] == [(0, 3), (0, 1), (0, 3)]
    assert aclnn.add_layer_norm(x, x, gamma, gamma)[0].shape == (0, 3)
    assert aclnn.gemma_rms_norm(x, gamma)[0].shape == (0, 3)
    assert aclnn.batch_norm(x, gamma, gamma).shape == (0, 3)
    assert plan("aclnnInplaceAddRmsNorm", x, x, gamma, 0.0, zeros(0, 1))[2] == SUCCESS
