"""Losses of distances, against exact numbers, and PyTorch's gradients."""

from fractions import Fraction

import numpy as np
import pytest
from calls import BF16, FLOATS, NULLPTR, refused, rounded, run, tensor
from cases import each as named

import aclnn

INVALID = 161002
pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.each_instruction_set,
]
BETA = 0.75


def squared(d):
    return d * d


def smooth(d):
    d, beta = abs(d), Fraction(BETA)
    return d * d / (2 * beta) if d < beta else d - beta / 2


EXACT = {"mse_loss": squared, "l1_loss": abs, "smooth_l1_loss": smooth}
NAMES = {
    "mse_loss": "aclnnMseLoss",
    "l1_loss": "aclnnL1Loss",
    "smooth_l1_loss": "aclnnSmoothL1Loss",
}


def options(name):
    return {"beta": BETA} if name == "smooth_l1_loss" else {}


def pairs(dtype, shape=(7, 31), seed=0):
    rng = np.random.default_rng(seed)
    return [
        (rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape)).astype(dtype) for _ in "ab"
    ]


def losses(name, x, y):
    apart = [Fraction(float(a)) - Fraction(float(b)) for a, b in zip(x.flat, y.flat, strict=True)]
    return [EXACT[name](one) for one in apart]


def near(found, wanted):
    """Rounded once from float64, which itself is off by little."""
    expected = rounded(wanted, found.dtype)
    if found.dtype == np.float64:
        np.testing.assert_allclose(found.ravel(), expected, rtol=1e-14)
    else:
        wide = np.float64 if found.dtype == BF16 else found.dtype
        np.testing.assert_array_equal(found.ravel().astype(wide), expected.astype(wide))


@named("name", EXACT)
@named("dtype", FLOATS, ids=str)
def test_losses_are_exact_numbers_rounded_once(name, dtype):
    x, y = pairs(dtype)
    wanted = losses(name, x, y)
    function = getattr(aclnn, name)
    near(function(x, y, "none", **options(name)), wanted)
    near(function(x, y, "sum", **options(name)), [sum(wanted)])
    near(function(x, y, **options(name)), [sum(wanted) / len(wanted)])
    assert function(x, y).shape == ()


@named("name", EXACT)
def test_operands_broadcast_and_promote(name):
    x, y = pairs(np.float16)[0], pairs(np.float32, (31,), 1)[0]
    found = getattr(aclnn, name)(x, y, "none", **options(name))
    assert (found.dtype, found.shape) == (np.float32, (7, 31))
    near(found, losses(name, x, np.broadcast_to(y, x.shape)))


@named("name", EXACT)
def test_no_losses_and_unusual_numbers(name):
    nothing, function = np.empty((0, 3), np.float32), getattr(aclnn, name)
    assert function(nothing, nothing, "none").shape == (0, 3)
    assert function(nothing, nothing, "sum") == 0
    assert np.isnan(function(nothing, nothing))
    inf, nan = np.float32([np.inf, -np.inf]), np.float32([np.nan, 1])
    assert function(inf, inf[::-1].copy(), "none").tolist() == [np.inf, np.inf]
    assert np.isnan(function(nan, np.float32([1, 1]), "none")).tolist() == [True, False]


def test_a_threshold_of_zero_gives_distances():
    x, y = pairs(np.float32)
    y[0] = x[0]
    for reduction in ("none", "mean", "sum"):
        found = aclnn.smooth_l1_loss(x, y, reduction, 0.0)
        assert found.tobytes() == aclnn.l1_loss(x, y, reduction).tobytes()


@named("name", EXACT)
def test_functions_of_cann(name):
    x, y = pairs(np.float32)
    more = [BETA] if name == "smooth_l1_loss" else []
    for number, reduction in enumerate(("none", "mean", "sum")):
        wanted = getattr(aclnn, name)(x, y, reduction, *more)
        out = np.zeros_like(wanted)
        run(NAMES[name], tensor(x), tensor(y), number, *more, tensor(out))
        assert out.tobytes() == wanted.tobytes()
    half = np.zeros((), np.float16)
    run(NAMES[name], tensor(x), tensor(y), 1, *more, tensor(half))
    assert half == getattr(aclnn, name)(x, y, "mean", *more).astype(np.float16)


X, S = np.ones((2, 3), np.float32), np.zeros((), np.float32)


@named(
    ("name", "arguments", "status"),
    [
        ("aclnnMseLoss", (None, X, 1, S), NULLPTR),
        ("aclnnMseLoss", (X, X, 1, None), NULLPTR),
        ("aclnnMseLoss", (X.astype(np.float64), X, 1, S), INVALID),
        ("aclnnMseLoss", (X, X.astype(np.int32), 1, S), INVALID),
        ("aclnnMseLoss", (X, X, 3, S), INVALID),
        ("aclnnMseLoss", (X, X, 1, S.reshape(1)), INVALID),
        ("aclnnMseLoss", (X, X, 0, S), INVALID),
        ("aclnnMseLoss", (X, X[:, :2], 0, X), INVALID),
        ("aclnnL1Loss", (X, X, -1, S), INVALID),
        ("aclnnL1Loss", (X, X, 1, S.astype(np.int64)), INVALID),
        ("aclnnSmoothL1Loss", (X, X, 1, -1.0, S), INVALID),
        ("aclnnSmoothL1Loss", (X, X, 0, 1.0, X[:1]), INVALID),
    ],
)
def test_what_is_refused(name, arguments, status):
    given = [tensor(one) if isinstance(one, np.ndarray) else one for one in arguments]
    assert refused(name, *given)[0] == status


def test_one_number_of_any_shape_is_written():
    out = np.zeros(1, np.float32)
    run("aclnnSmoothL1Loss", tensor(X), tensor(X * 3), 2, 1.0, tensor(out))
    assert out[0] == 9


@named("name", EXACT)
@named("reduction", ["none", "mean", "sum"])
def test_gradients_are_pytorchs(name, reduction):
    torch = pytest.importorskip("torch")
    peer = getattr(torch.nn.functional, name)
    x, y = (torch.from_numpy(one).requires_grad_() for one in pairs(np.float64))
    ours = getattr(aclnn, name)(x, y, reduction, **options(name))
    theirs = peer(x, y, reduction=reduction, **options(name))
    weights = torch.ones_like(theirs).normal_()
    for found, wanted in zip(
        torch.autograd.grad(ours, (x, y), weights),
        torch.autograd.grad(theirs, (x, y), weights),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)


@named("log_target", [False, True])
@named("dtype", FLOATS, ids=str)
def test_divergences(dtype, log_target):
    x, target = pairs(dtype, (5, 9))
    target = target if log_target else np.abs(target)
    if not log_target:
        target[2, 3] = 0
    wide = [one.astype(np.longdouble) for one in (x, target)]
    if log_target:
        terms = np.exp(wide[1]) * (wide[1] - wide[0])
    else:
        own = np.where(wide[1] == 0, 0, wide[1] * np.log(np.where(wide[1] == 0, 1, wide[1])))
        terms = own - wide[1] * wide[0]
    total = terms.sum()
    for reduction, wanted in (
        ("none", terms),
        ("sum", total),
        ("mean", total / x.size),
        ("batchmean", total / 5),
    ):
        found = aclnn.kl_div(x, target, reduction, log_target=log_target)
        if dtype == np.float64:
            np.testing.assert_allclose(found, wanted.astype(np.float64), rtol=1e-13, atol=1e-14)
        else:
            wanted = np.asarray(wanted, np.float64).astype(dtype)
            np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))
    out = np.zeros(1, dtype)
    if dtype != np.float64:
        run("aclnnKlDiv", tensor(x), tensor(target), 3, log_target, tensor(out))
        assert out[0] == aclnn.kl_div(x, target, "batchmean", log_target=log_target)


def test_divergences_of_unusual_numbers():
    x, target = np.float32([0, 0, 1]), np.float32([0, -1, 1])
    assert repr(aclnn.kl_div(x, target, "none").tolist()) == "[0.0, nan, -1.0]"
    nothing = np.empty((2, 0), np.float32)
    assert np.isnan(aclnn.kl_div(nothing, nothing))
    assert aclnn.kl_div(nothing, nothing, "batchmean") == 0
    assert np.isnan(aclnn.kl_div(nothing.T, nothing.T, "batchmean"))
    assert refused("aclnnKlDiv", tensor(X), tensor(X), 4, False, tensor(S))[0] == INVALID
    assert refused("aclnnKlDiv", tensor(X), tensor(X), 3, False, tensor(X))[0] == INVALID


@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
@named("log_target", [False, True])
@named("reduction", ["none", "mean", "sum", "batchmean"])
def test_gradients_of_divergences_are_pytorchs(reduction, log_target):
    torch = pytest.importorskip("torch")
    x, target = (torch.from_numpy(np.abs(one)) for one in pairs(np.float64))
    x.requires_grad_()
    target.requires_grad_()
    ours = aclnn.kl_div(x, target, reduction, log_target=log_target)
    theirs = torch.nn.functional.kl_div(x, target, reduction=reduction, log_target=log_target)
    torch.testing.assert_close(ours, theirs)
    weights = torch.ones_like(theirs).normal_()
    for found, wanted in zip(
        torch.autograd.grad(ours, (x, target), weights),
        torch.autograd.grad(theirs, (x, target), weights),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)
