"""Softmax, norms and sums: against references in more digits, in any layout; what is refused, and when."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from cases import each
from row_calls import assert_near, bits, bools, call, ints, layouts, random, status
from wide import (
    DIGITS,
    LEAST,
    WIDE,
    layer_norm,
    layer_norm_backward,
    log_softmax,
    log_softmax_backward,
    rms_norm_backward,
    softmax,
    softmax_backward,
)

import aclnn
from aclnn.acl import dtypes

BF16 = ml_dtypes.bfloat16
FLOATS = (np.float32, np.float16, BF16)
SUCCESS, NULLPTR, INVALID, TILING = 0, 161001, 161002, 561002


@pytest.fixture
def rng():
    return np.random.default_rng(7)


FORWARD = {"softmax": softmax, "log_softmax": log_softmax}
BACKWARD = {"softmax": softmax_backward, "log_softmax": log_softmax_backward}


# --- Softmax --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORWARD)
@pytest.mark.parametrize("dtype", [*FLOATS, np.float64])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_is_the_exact_one_rounded(name, dtype, axis, rng):
    x = random(rng, (5, 37, 70), dtype)
    found = getattr(aclnn, name)(x, axis)
    assert found.dtype == dtype
    assert_near(found, FORWARD[name](x, axis))
    for other in layouts(x):
        out = np.empty(x.shape[::-1], dtype).T
        assert bits(getattr(aclnn, name)(other, axis, out=out)) == bits(found)
        assert aclnn.executor(name, other, axis, out=out).workspace_size < 1 << 18  # no copy of x


@pytest.mark.parametrize("name", BACKWARD)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gradients_of_softmax(name, dtype, axis, rng):
    g = random(rng, (5, 37, 70), dtype)
    y = FORWARD[name](random(rng, g.shape), axis).astype(dtype)
    backward = getattr(aclnn, f"{name}_backward")
    found, want = backward(g, y, axis), BACKWARD[name](g, y, axis)
    # What cancels does so in float64, of which 2^-40 is left of the largest addend.
    far = np.abs(found.astype(WIDE) - want) > 2.0**-40 * np.abs(g.astype(WIDE)).max()
    assert_near(
        np.where(far, found, want.astype(dtype)), np.where(far, want, want.astype(dtype)), 2
    )
    for one, other in zip(layouts(g), layouts(y), strict=True):
        assert bits(backward(one, other, axis)) == bits(found)


@pytest.mark.parametrize("name", BACKWARD)
def test_gradients_of_short_rows_that_cancel(name, rng):
    """Some g agree with e^y times the sum in 13 bits or more."""
    g = random(rng, (30000, 8))
    y = FORWARD[name](random(rng, g.shape), -1).astype(np.float32)
    found, want = getattr(aclnn, f"{name}_backward")(g, y, -1), BACKWARD[name](g, y, -1)
    far = np.abs(want) > 2.0**-25
    assert np.any(np.abs(want[far]) < 2.0**-13)
    assert_near(found[far], want[far], 2)


@each("name", FORWARD)
def test_special_rows(name):
    inf, nan = np.inf, np.nan
    x = np.float32([[-inf, -inf], [inf, 0], [nan, 0], [-inf, 0], [inf, inf]])
    found = getattr(aclnn, name)(x, 1)
    assert np.isnan(found[[0, 1, 2, 4]]).all()
    assert found[3].tolist() == {"softmax": [0, 1], "log_softmax": [-inf, 0]}[name]


@each("name", FORWARD)
def test_no_dimensions_count_as_one(name):
    for axis in (-1, 0):
        found = getattr(aclnn, name)(np.full((), 3, np.float32), axis)
        assert (found.shape, float(found)) == ((), {"softmax": 1, "log_softmax": 0}[name])
    with pytest.raises(aclnn.AclnnError, match="dim is 1, must be from -1 to 0"):
        getattr(aclnn, name)(np.full((), 3, np.float32), 1)


def test_other_dtypes_of_the_output(rng):
    """Softmax is computed in the input's dtype and then cast, its logarithm in the output's."""
    x = random(rng, (8, 65))
    half = np.empty(x.shape, np.float16)
    aclnn.softmax(x, 1, out=half)
    assert bits(half) == bits(aclnn.softmax(x, 1).astype(np.float16))
    aclnn.log_softmax(x, 1, out=half)
    assert bits(half) == bits(aclnn.log_softmax(x.astype(np.float16), 1))
    single = np.empty(x.shape, np.float32)
    aclnn.softmax(half, 1, out=single)
    assert bits(single) == bits(aclnn.softmax(half, 1).astype(np.float32))
    whole = np.empty(x.shape, np.complex64)
    call("aclnnSoftmaxBackward", x, x, 1, whole)
    assert bits(whole) == bits(aclnn.softmax_backward(x, x, 1).astype(np.complex64))


def test_rows_in_place_and_crossing(rng):
    x = random(rng, (6, 40, 12))
    want = aclnn.softmax(x, 1)
    for build in (lambda m: (m[:6], m[:6]), lambda m: (m[:6], m[1:7]), lambda m: (m[1:7], m[:6])):
        given, out = build(np.zeros((7, 40, 12), np.float32))
        given[...] = x
        aclnn.softmax(given, 1, out=out)
        assert bits(out) == bits(want)


@pytest.mark.parametrize("strategy", ["default", "naive"])
@pytest.mark.parametrize("materialize", [False, True])
def test_threads_and_pipelines_give_the_same_bits(strategy, materialize, rng):
    x = random(rng, (300, 700), np.float16)
    before, want = aclnn.get_num_threads(), aclnn.softmax(x.T, 0)
    for threads in (1, 2, 5):
        aclnn.set_num_threads(threads)
        made = aclnn.executor("softmax", x.T, 0, strategy=strategy, materialize=materialize)
        assert bits(made.run()) == bits(want)
    aclnn.set_num_threads(before)


def test_softmax_checks_in_order():
    x, empty = np.zeros((2, 3), np.float32), np.zeros((0, 3), np.int32)
    assert status("aclnnSoftmax", None, 9, x) == NULLPTR
    assert status("aclnnSoftmax", empty, 9, x) == SUCCESS  # before all else
    assert status("aclnnSoftmax", x.astype(np.int32), 9, x) == INVALID
    assert "dtype INT32" in aclnn.aclGetRecentErrMsg()
    assert status("aclnnSoftmax", x, 2, x[:1]) == INVALID
    assert "dim is 2, must be from -2 to 1" in aclnn.aclGetRecentErrMsg()
    assert status("aclnnSoftmax", x, 1, x[:1]) == INVALID
    assert "out has shape (1, 3)" in aclnn.aclGetRecentErrMsg()
    assert (
        status("aclnnSoftmax", *(np.zeros([1] * 9, np.float32), 0, np.zeros([1] * 9, np.float32)))
        == INVALID
    )
    # Of the logarithm the dimension comes first, empties last.
    assert status("aclnnLogSoftmax", empty, 9, x) == INVALID
    assert "dim is 9" in aclnn.aclGetRecentErrMsg()
    assert status("aclnnLogSoftmax", empty, 0, x) == INVALID
    assert (
        status("aclnnLogSoftmax", empty.astype(np.float32), 0, empty.astype(np.float32)) == SUCCESS
    )


def test_checks_of_gradients_in_order():
    x, empty = np.zeros((2, 3), np.float32), np.zeros((0, 3), np.int32)
    assert status("aclnnSoftmaxBackward", empty, x, 9, x) == SUCCESS
    assert status("aclnnSoftmaxBackward", x, x.astype(np.float16), 9, x) == INVALID
    assert "output has dtype FLOAT16" in aclnn.aclGetRecentErrMsg()
    assert status("aclnnSoftmaxBackward", x, x[:1], 9, x) == INVALID
    assert "dim is 9" in aclnn.aclGetRecentErrMsg()
    assert status("aclnnLogSoftmaxBackward", x, x[:1], 9, x) == INVALID
    assert "output has shape (1, 3)" in aclnn.aclGetRecentErrMsg()
    assert status("aclnnSoftmaxBackward", x, x, 0, x.astype(np.int32)) == INVALID
    before = aclnn.get_soc_version()
    aclnn.set_soc_version("Ascend950")
    assert status("aclnnSoftmaxBackward", empty, x, 9, x) == INVALID
    aclnn.set_soc_version(before)


# --- Norms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("normalized", [(70,), (6, 70), (5, 6, 70)])
@pytest.mark.parametrize("given", [(), ("weight",), ("bias",), ("weight", "bias")])
def test_layer_norm(dtype, normalized, given, rng):
    x = random(rng, (3, 5, 6, 70), dtype)
    options = {role: random(rng, normalized, np.float32) for role in given}
    found, mean, rstd = aclnn.native_layer_norm(x, normalized, **options)
    want = layer_norm(x, len(normalized), **options)
    # A bias cancels in float64.
    assert (
        np.abs(found.astype(WIDE) - want[0]).max() <= 2.0 ** -DIGITS[dtype] * np.abs(want[0]).max()
    )
    if "bias" not in given:
        assert_near(found, want[0])
    assert mean.dtype == rstd.dtype == np.float32
    assert mean.shape == want[1].shape
    assert_near(rstd, want[2])
    assert np.abs(mean - want[1]).max() < 1e-6
    assert bits(aclnn.layer_norm(x, normalized, **options)) == bits(found)
    for other in layouts(x):
        swapped = {role: next(layouts(value)) for role, value in options.items()}
        assert bits(aclnn.layer_norm(other, normalized, **swapped)) == bits(found)


def test_strided_rows_of_a_norm_are_not_copied(rng):
    x = random(rng, (4096, 3, 64))[:, 1]
    assert aclnn.executor("layer_norm", x, 64).workspace_size < 1 << 18
    assert aclnn.executor("layer_norm", x.T, 4096).workspace_size < 1 << 18


def test_layer_norm_through_both_phases(rng):
    x, weight = random(rng, (4, 6, 10), np.float16), random(rng, (6, 10))
    out, mean, rstd = np.empty_like(x), np.zeros((4, 1, 1), BF16), np.zeros((4, 1, 1), np.float16)
    want = layer_norm(x, 2, weight)
    call("aclnnLayerNorm", x, ints(6, 10), weight, None, 1e-5, out, mean, rstd)
    assert_near(out, want[0])
    assert_near(rstd, want[2])
    # Null outputs are not written, whichever they are.
    for kept in ((mean, None), (None, rstd), (None, None)):
        before = bits(mean), bits(rstd)
        out[...] = 0
        call("aclnnLayerNorm", x, ints(6, 10), weight, None, 1e-5, out, *kept)
        assert (bits(mean), bits(rstd)) == before
        assert_near(out, want[0])


def test_layer_norm_in_place_over_several_dimensions(rng):
    x = random(rng, (4, 6, 10))
    want = bits(aclnn.layer_norm(x, (6, 10)))
    for memory in (x.copy(), np.asfortranarray(x)):
        aclnn.layer_norm(memory, (6, 10), out=memory)
        assert bits(memory) == want


def test_layer_norm_without_elements():
    out, mean, rstd = aclnn.native_layer_norm(np.zeros((2, 0), np.float32), (0,))
    assert (out.shape, mean.tolist()) == ((2, 0), [[0], [0]])
    assert np.isnan(rstd).all()
    assert rstd.shape == (2, 1)
    out, mean, rstd = aclnn.native_layer_norm(np.zeros((0, 3), np.float32), (3,))
    assert (out.shape, mean.shape, rstd.shape) == ((0, 3), (0, 1), (0, 1))


def test_layer_norm_checks_in_order(rng):
    x, w = np.zeros((2, 3, 4), np.float32), np.zeros((3, 4), np.float32)
    half, out, stats = np.float16, np.zeros((2, 3, 4), np.float32), np.zeros((2, 1, 1), np.float32)

    def found(x=x, shape=(3, 4), w=w, b=w, out=out, mean=stats, rstd=stats):
        sizes = None if shape is None else ints(*shape)
        found = status("aclnnLayerNorm", x, sizes, w, b, 1e-5, out, mean, rstd)
        return found, (aclnn.aclGetRecentErrMsg() or "").partition("\n")[0]

    assert found()[0] == found(w=None)[0] == found(b=None, mean=None)[0] == SUCCESS
    assert found(x=None, shape=())[0] == found(shape=None)[0] == found(out=None)[0] == NULLPTR
    for wrong, words in (
        ({"x": x.astype(np.int32), "shape": ()}, "input has dtype INT32"),
        ({"w": w.astype(half), "shape": ()}, "weightOptional has dtype FLOAT16"),
        ({"x": x.astype(half), "b": w.astype(half), "shape": ()}, "biasOptional has dtype FLOAT16"),
        ({"mean": stats.astype(np.float64), "shape": ()}, "meanOutOptional has dtype DOUBLE"),
        ({"shape": (), "w": w[0]}, "normalizedShape has 0 sizes"),
        ({"shape": (1, 2, 3, 4), "w": w[0]}, "does not end in normalizedShape"),
        ({"shape": (3, 5), "w": w[0]}, "does not end in normalizedShape"),
        ({"w": w[0], "b": w[0]}, "weightOptional has shape (4,)"),
        ({"b": w[:2]}, "biasOptional has shape (2, 4)"),
        ({"out": out[:1], "mean": stats[:1]}, "out has shape (1, 3, 4)"),
        ({"mean": stats[:1]}, "meanOutOptional has shape (1, 1, 1)"),
    ):
        code, message = found(**wrong)
        assert code == INVALID
        assert words in message
    assert found(mean=np.zeros(2, np.float32))[0] == SUCCESS  # as many elements


MASKS = list(itertools.product((True, False), repeat=3))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mask", MASKS)
def test_gradients_of_layer_norm(dtype, mask, rng):
    x, g = random(rng, (3, 20, 6, 7), dtype), random(rng, (3, 20, 6, 7), dtype)
    weight = random(rng, (6, 7))
    _, mean, rstd = aclnn.native_layer_norm(x, (6, 7))
    found = aclnn.native_layer_norm_backward(g, x, (6, 7), mean, rstd, weight, None, mask)
    want = layer_norm_backward(g, x, mean, rstd, 2, weight)
    for one, other, wanted in zip(found, want, mask, strict=True):
        assert (one is not None) == wanted
        if wanted:
            error = np.abs(one.astype(WIDE) - other)
            unit = 2.0 ** -DIGITS[one.dtype.type]
            assert (error <= 2.01 * unit * np.abs(other) + 2.0**-40).all()
    for one, other in zip(layouts(x), layouts(g), strict=True):
        again = aclnn.native_layer_norm_backward(other, one, (6, 7), mean, rstd, weight, None, mask)
        assert all(a is None or bits(a) == bits(b) for a, b in zip(again, found, strict=True))


def test_gradients_of_layer_norm_without_rows():
    empty, one = np.zeros((0, 4), np.float32), np.zeros((0, 1), np.float32)
    found = aclnn.native_layer_norm_backward(empty, empty, 4, one, one)
    assert [f.shape for f in found] == [(0, 4), (4,), (4,)]
    assert [f.sum() for f in found] == [0, 0, 0]


def test_gradients_over_what_they_are_made_of(rng):
    x, row = random(rng, (50, 4)), np.ones((50, 1), np.float32)
    want = aclnn.native_layer_norm_backward(x, x, 4, row, row)
    memory, others = x.copy(), (np.empty(4, np.float32), np.empty(4, np.float32))
    found = aclnn.native_layer_norm_backward(memory, memory, 4, row, row, out=(memory, *others))
    assert [bits(one) for one in found] == [bits(one) for one in want]


def test_null_gradients(rng):
    x, row = random(rng, (5, 4)), np.ones((5, 1), np.float32)
    grads = np.zeros_like(x), np.zeros(4, np.float32), np.full(4, 9, np.float32)

    def arguments(mask, outputs):
        return x, x, ints(4), row, row, None, None, bools(*mask), *outputs

    name = "aclnnLayerNormBackward"
    call(name, *arguments((True, True, False), (*grads[:2], None)))
    want = layer_norm_backward(x, x, row, row, 1)
    assert np.allclose(grads[0], want[0].astype(float), atol=1e-5)
    call(name, *arguments((False, True, False), (None, *grads[1:])))
    assert np.allclose(grads[1], want[1].astype(float), atol=1e-5)
    assert (grads[2] == 9).all()
    call(name, *arguments((False, False, False), (None, None, None)))
    assert status(name, *arguments((True, True, True), (*grads[:2], None))) == NULLPTR
    assert "gradBiasOut is null, but outputMask[2] is true" in aclnn.aclGetRecentErrMsg()
    assert status(name, *arguments((True, True), (None, None, None))) == INVALID
    assert "outputMask has 2 elements" in aclnn.aclGetRecentErrMsg()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [1, 2])
def test_rms_norm(dtype, count, rng):
    x = random(rng, (5, 6, 70), dtype)
    gamma = random(rng, x.shape[-count:], dtype)
    wide, axes = x.astype(WIDE), tuple(range(-count, 0))
    rstd = 1 / np.sqrt((wide**2).mean(axes, keepdims=True) + WIDE(1e-6))
    found = aclnn.native_rms_norm(x, gamma)
    assert_near(found[0], wide * rstd * gamma.astype(WIDE))
    assert_near(found[1], rstd)
    assert found[1].dtype == np.float32
    assert bits(aclnn.rms_norm(x, gamma.shape, gamma, 1e-6)) == bits(found[0])
    tiny = 1 / np.sqrt((wide**2).mean(axes, keepdims=True) + WIDE(2.0**-23))
    assert_near(aclnn.rms_norm(x, gamma.shape), wide * tiny)


def test_rms_norm_checks_in_order():
    x, gamma = np.zeros((2, 3), np.float32), np.zeros(3, np.float32)
    rstd = np.zeros((2, 1), np.float32)
    assert status("aclnnRmsNorm", x, None, 1e-6, x, rstd) == NULLPTR
    assert status("aclnnRmsNorm", x, gamma[:2], 1e-6, x, rstd.astype(np.float16)) == INVALID
    assert status("aclnnRmsNorm", x, gamma[:2], 1e-6, x, rstd) == TILING
    assert status("aclnnRmsNorm", x, gamma, 1e-6, x, rstd[:1]) == TILING
    assert status("aclnnRmsNorm", x[:, :0], gamma[:0], 1e-6, x[:, :0], rstd) == TILING
    assert status("aclnnRmsNorm", x[:0], gamma, 1e-6, x[:0], rstd[:0]) == SUCCESS


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("parameter", ["float32", "own"])
def test_gradients_of_rms_norm(dtype, count, parameter, rng):
    x, g = random(rng, (9, 8, 70), dtype), random(rng, (9, 8, 70), dtype)
    gamma = random(rng, x.shape[-count:], np.float32 if parameter == "float32" else dtype)
    _, rstd = aclnn.native_rms_norm(x, gamma)
    dx, dgamma = aclnn.rms_norm_backward(g, x, gamma, rstd)
    assert (dx.dtype, dgamma.dtype) == (dtype, np.float32)
    wanted = rms_norm_backward(g, x, rstd, count, gamma)
    for one, other in zip((dx, dgamma), wanted, strict=True):
        error, kind = np.abs(one.astype(WIDE) - other), one.dtype.type
        least = 2.0**-40 + 2.0 ** (LEAST[kind] - 1)  # what cancels, and subnormal halves
        assert (error <= 2.01 * 2.0 ** -DIGITS[kind] * np.abs(other) + least).all()
    for one, other in zip(layouts(x), layouts(g), strict=True):
        again = aclnn.rms_norm_backward(other, one, gamma, rstd.ravel())
        assert [bits(a) for a in again] == [bits(dx), bits(dgamma)]


def test_the_gradient_of_rms_norm_is_pytorchs(rng):
    torch = pytest.importorskip("torch")
    x, g, gamma = (torch.from_numpy(random(rng, s)).double() for s in ((6, 50), (6, 50), (50,)))
    x.requires_grad_(), gamma.requires_grad_()
    torch.nn.functional.rms_norm(x, (50,), gamma, 1e-6).backward(g)
    single = [one.detach().numpy().astype(np.float32) for one in (g, x, gamma)]
    _, rstd = aclnn.native_rms_norm(single[1], single[2])
    found = aclnn.rms_norm_backward(*single, rstd)
    for one, other in zip(found, (x.grad, gamma.grad), strict=True):
        np.testing.assert_allclose(one, other.numpy(), 2e-5, 2e-5)


def test_gradients_of_rms_norm_are_checked_in_order():
    x, gamma, dgamma = np.zeros((2, 3), np.float32), *np.zeros((2, 3), np.float32)
    rstd, half = np.zeros((2, 1), np.float32), np.float16
    good = {"dy": x, "x": x, "rstd": rstd, "gamma": gamma, "dx": x.copy(), "dgamma": dgamma}
    assert status("aclnnRmsNormGrad", *good.values()) == SUCCESS
    wrong = {
        "dgamma": (dgamma[:2], TILING, "dgammaOut has shape (2,)"),
        "dx": (x[:1].copy(), TILING, "dxOut has shape (1, 3)"),
        "rstd": (rstd[:1], TILING, "rstd has shape (1, 1), must have 2 elements"),
        "dy": (x[:1], TILING, "dy has shape (1, 3)"),
        "gamma": (gamma[:2], TILING, "gamma has shape (2,)"),
        "x": (x[0], TILING, "x has 1 dimensions, must have from 2 to 8"),
        "dgamma ": (dgamma.astype(half), INVALID, "dgammaOut has dtype FLOAT16"),
        "rstd ": (rstd.astype(half), INVALID, "rstd has dtype FLOAT16"),
        "dy ": (x.astype(half), INVALID, "x has dtype FLOAT"),
    }
    found = good
    for role, (
        array,
        code,
        words,
    ) in wrong.items():  # each comes before those that were wrong before
        found = found | {role.strip(): array}
        assert status("aclnnRmsNormGrad", *found.values()) == code
        assert words in aclnn.aclGetRecentErrMsg()
    assert status("aclnnRmsNormGrad", *(found | {"dgamma": None}).values()) == NULLPTR


def test_gradients_of_rms_norm_without_rows():
    empty = np.zeros((0, 4), np.float32)
    found = aclnn.rms_norm_backward(empty, empty, np.ones(4, np.float32), empty[:, :1])
    assert [f.shape for f in found] == [(0, 4), (4,)]
    assert found[1].sum() == 0


# --- Sums -----------------------------------------------------------------------------------------

DIMS = [None, (), 0, 1, -1, (0, 1), (1, 2), (0, 2), (0, -1, 1)]


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_sums(dim, keepdim, dtype, rng):
    x = random(rng, (7, 20, 33), dtype)
    axes = (0, 1, 2) if dim in (None, ()) else dim
    found, want = aclnn.sum(x, dim, keepdim), x.astype(WIDE).sum(axes, keepdims=keepdim)
    assert_near(np.asarray(found), np.asarray(want))
    for other in layouts(x):
        assert bits(aclnn.sum(other, dim, keepdim)) == bits(found)


def test_sums_that_cancel_are_exact(rng):
    big = random(rng, (3, 500)) * np.float32(2.0**60)
    x = np.concatenate([big, np.ones((3, 1), np.float32), -big], axis=1)
    assert aclnn.sum(x, 1).tolist() == aclnn.sum(x.T, 0).tolist() == [1, 1, 1]


def test_sums_of_integers(rng):
    x = rng.integers(-100, 100, (4, 5, 6)).astype(np.int8)
    assert aclnn.sum(x, (0, 2)).dtype == np.int64
    assert aclnn.sum(x, (0, 2)).tolist() == x.sum((0, 2), np.int64).tolist()
    assert aclnn.sum(x, dtype=np.int8) == x.sum(dtype=np.int8)  # wraps around
    assert aclnn.sum(x, dtype=np.float32) == np.float32(x.sum(dtype=np.int64))
    assert aclnn.sum(x > 0, 1).tolist() == (x > 0).sum(1).tolist()
    out = np.empty(5, np.float32)
    wrapped = x.sum((0, 2), np.int8)
    assert aclnn.sum(x, (0, 2), dtype="int8", out=out).tolist() == wrapped.tolist()


def test_sums_without_elements():
    assert aclnn.sum(np.zeros((3, 0), np.float32), 1).tolist() == [0, 0, 0]
    assert aclnn.sum(np.zeros((3, 0), np.float32), 0).shape == (0,)
    assert aclnn.sum(np.zeros((0,), np.int32)) == 0
    assert aclnn.sum(np.full((), 3, np.float32)) == 3


def test_reduce_sum_through_both_phases(rng):
    x, out = random(rng, (4, 5)), np.empty((1, 5), np.float32)
    single = dtypes.of_name("float32")
    call("aclnnReduceSum", x, ints(0), True, single, out)
    assert bits(out) == bits(aclnn.sum(x, 0, True))
    assert status("aclnnReduceSum", x, None, True, single, out) == NULLPTR
    assert status("aclnnReduceSum", x, ints(9), True, dtypes.of_name("int32"), out) == INVALID
    assert "must be INT32" in aclnn.aclGetRecentErrMsg()
    assert status("aclnnReduceSum", x, ints(0, -2), True, single, out) == INVALID
    assert "twice" in aclnn.aclGetRecentErrMsg()
    assert status("aclnnReduceSum", x, ints(1), True, single, out) == INVALID
    assert "out has shape (1, 5), must have (4, 1)" in aclnn.aclGetRecentErrMsg()


@each("dtype", [np.float16, np.float32])
def test_softmax_of_numbers_far_apart_is_never_negative(dtype):
    x = np.array([[9.2e18, -200, 1], [3e38, 1e30, -3e38], [-3e38, -9e18, 5]], np.float32)
    y = aclnn.softmax(x, -1, out=np.empty(x.shape, dtype))
    assert not np.signbit(y).any()
    np.testing.assert_array_equal(y, np.array([[1, 0, 0], [1, 0, 0], [0, 0, 1]], dtype))


def test_scratch_of_few_rows_is_for_one_thread():
    """Proportional to rows and columns, and to the threads that a run uses."""
    sizes = {}
    for shape in ((4,), (16, 64), (256, 1024)):
        for threads in (1, 2, 64):
            with aclnn.num_threads(threads):
                sizes[shape, threads] = aclnn.executor(
                    "softmax", np.zeros(shape, np.float32), -1
                ).workspace_size
    assert sizes[(4,), 1] == sizes[(4,), 64] <= 4096
    assert sizes[(4,), 1] < sizes[(16, 64), 1] == sizes[(16, 64), 64] < sizes[(256, 1024), 1]
    assert sizes[(256, 1024), 1] < sizes[(256, 1024), 2] < sizes[(256, 1024), 64]
