"""Losses of classes, against extended precision and PyTorch."""

import mpmath
import numpy as np
import pytest
from calls import BF16, NULLPTR, empty, refused, run, tensor
from cases import each as named

import aclnn
from aclnn import aclDataType as T

pytestmark = pytest.mark.each_instruction_set

INVALID = 161002
HALVES = [np.dtype(np.float16), BF16]


def rows(shape, dtype, seed=0):
    """Logits and probabilities, some of which are 0."""
    rng = np.random.default_rng(seed)
    target = rng.random(shape) * (rng.random(shape) > 0.3) + 1e-3
    target /= target.sum(1, keepdims=True)
    return (rng.standard_normal(shape) * 4).astype(dtype), target.astype(dtype)


def cross_entropy(x, target):
    """Loss and softmax of a row, with many digits."""
    with mpmath.workdps(40):
        x, target = ([mpmath.mpf(float(one)) for one in row] for row in (x, target))
        total = mpmath.fsum([mpmath.exp(one) for one in x])
        loss = mpmath.fsum(
            [p * (mpmath.log(total) - one) for one, p in zip(x, target, strict=True)]
        )
        return loss, [mpmath.exp(one) / total for one in x]


@named("dtype", [np.dtype(np.float32), *HALVES], ids=str)
def test_cross_entropy_of_probabilities(dtype):
    for shape in ((1, 1), (4, 7), (3, 129), (37, 5)):
        x, target = rows(shape, dtype, shape[1])
        loss, backprop = aclnn.softmax_cross_entropy_with_logits(x, target)
        assert loss.dtype == backprop.dtype == dtype
        assert loss.shape == shape[:1]
        # Half precision is rounded once more, which is half a unit of its own.
        unit = {"float32": 2.0**-23, "float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype.name]
        unit += 0 if dtype == np.float32 else 2.0**-21
        for one, gradients, given, chances in zip(loss, backprop, x, target, strict=True):
            wanted, softmax = cross_entropy(given, chances)
            assert abs(float(one) - wanted) <= 3 * unit * wanted
            for found, p, q in zip(gradients, softmax, chances, strict=True):
                slack = 2.0**-23 * p + unit * abs(p - float(q)) + 2.0**-25
                assert abs(float(found) - (p - float(q))) <= slack


def test_cross_entropy_whatever_the_strides():
    x, target = rows((6, 10), np.float32)
    dense = aclnn.softmax_cross_entropy_with_logits(x, target)
    wide = np.zeros((6, 20), np.float32)
    wide[:, ::2] = x
    for a, b in ((np.asfortranarray(x), target), (wide[:, ::2], np.asfortranarray(target))):
        found = aclnn.softmax_cross_entropy_with_logits(a, b)
        for one, wanted in zip(found, dense, strict=True):
            np.testing.assert_array_equal(one, wanted)


def test_a_class_without_probability_adds_nothing():
    x, target = np.float32([[0, -np.inf]]), np.float32([[1, 0]])
    loss, backprop = aclnn.softmax_cross_entropy_with_logits(x, target)
    assert (loss[0], np.signbit(loss[0])) == (0, False)
    np.testing.assert_array_equal(backprop, [[0, 0]])
    loss, _ = aclnn.softmax_cross_entropy_with_logits(x, target[:, ::-1])
    assert loss[0] == np.inf
    loss, _ = aclnn.softmax_cross_entropy_with_logits(np.float32([[0, np.nan]]), target)
    assert np.isnan(loss[0])


def test_cross_entropy_in_both_phases():
    x, target = rows((5, 9), np.float32)
    loss, backprop = np.empty(5, np.float32), np.empty((9, 5), np.float32).T
    name = "aclnnSoftmaxCrossEntropyWithLogits"
    run(name, tensor(x), tensor(target), tensor(loss), tensor(backprop))
    wanted = aclnn.softmax_cross_entropy_with_logits(x, target)
    np.testing.assert_array_equal(loss, wanted[0])
    np.testing.assert_array_equal(backprop, wanted[1])
    nothing = [empty((3, 0)), empty((3, 0)), empty((3,)), empty((3, 0))]
    assert getattr(aclnn, f"{name}GetWorkspaceSize")(*nothing)[2] == 0


@named(
    ("changed", "words"),
    [
        ({"features": empty((3, 4), T.ACL_DOUBLE)}, "features has dtype"),
        ({"labels": empty((3, 4), T.ACL_INT32)}, "labels has dtype"),
        ({"loss": empty((3,), T.ACL_FLOAT16)}, "that of features"),
        ({"backprop": empty((3, 4), T.ACL_FLOAT16)}, "that of features"),
        ({"features": empty((3, 4, 1))}, "dimensions"),
        ({"labels": empty((3,))}, "dimensions"),
        ({"labels": empty((3, 5))}, "shape"),
        ({"loss": empty((4,))}, "shape"),
        ({"backprop": empty((4, 3))}, "shape"),
    ],
)
def test_what_cross_entropy_refuses(changed, words):
    given = {"features": empty((3, 4)), "labels": empty((3, 4)), "loss": empty((3,))}
    given |= {"backprop": empty((3, 4))}
    status, message = refused("aclnnSoftmaxCrossEntropyWithLogits", *(given | changed).values())
    assert status == INVALID
    assert words in message
    for role in given:
        alone = (given | {role: None}).values()
        assert refused("aclnnSoftmaxCrossEntropyWithLogits", *alone)[0] == NULLPTR


def test_cross_entropy_and_its_gradients_are_pytorchs():
    torch = pytest.importorskip("torch")
    import aclnn.torch

    given = [torch.from_numpy(one) for one in rows((6, 9), np.float32)]
    ours, theirs = ([one.clone().requires_grad_() for one in given] for _ in range(2))
    loss = aclnn.softmax_cross_entropy_with_logits(*ours)[0]
    wanted = torch.nn.functional.cross_entropy(*theirs, reduction="none")
    torch.testing.assert_close(loss, wanted)
    for one in (loss, wanted):
        (one * torch.arange(6.0)).sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


# --- Losses of the class that is right ------------------------------------------------------------

TARGETS = np.int64([0, 4, -100, 2, 1, 4, 3])
WEIGHTS = np.float64([0.5, 0.25, 2, 1, 0.75])


def picked(logs, target, weight, reduction, smoothing=0.0):
    """Losses in float64, reduced, and the sum of weights."""
    counts = target != -100
    classes = np.where(counts, target, 0)
    rows = np.arange(len(target))
    weights = np.where(counts, weight[classes], 0)
    losses = np.where(counts, -weights * logs[rows, classes], 0) * (1 - smoothing)
    losses = losses - np.where(counts, (logs * weight).mean(1), 0) * smoothing
    total = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / weights.sum()}
    return total[reduction], weights.sum()


@named("dtype", [np.dtype(np.float32), *HALVES], ids=str)
@named("reduction", ["none", "mean", "sum"])
def test_losses_of_classes(dtype, reduction):
    x = rows((7, 5), dtype)[0]
    weight = WEIGHTS.astype(dtype)
    slack = {"float32": 2.0**-20, "float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype.name]
    close = {"rtol": slack, "atol": 2.0**-22}
    for target in (TARGETS, TARGETS.astype(np.int32)):
        wanted, total = picked(x.astype(float), target, WEIGHTS, reduction)
        loss, weights = aclnn.nll_loss_forward(x, target, weight, reduction)
        np.testing.assert_allclose(loss.astype(float), wanted, **close)
        assert weights is None if reduction == "none" else weights == total
        assert loss.dtype == dtype
        np.testing.assert_array_equal(aclnn.nll_loss(x, target, weight, reduction), loss)
        logs = x.astype(float) - np.logaddexp.reduce(x.astype(float), 1)[:, None]
        for smoothing in (0.0, 0.25):
            wanted, _ = picked(logs, target, WEIGHTS, reduction, smoothing)
            found = aclnn.cross_entropy_loss(
                x, target, WEIGHTS.astype(np.float32), reduction, label_smoothing=smoothing
            )
            np.testing.assert_allclose(found.astype(float), wanted, **close)


def test_losses_in_both_phases():
    x, weight = rows((7, 5), np.float32)[0], WEIGHTS.astype(np.float32)
    for number, reduction in enumerate(("none", "mean", "sum")):
        shape = (7,) if reduction == "none" else (1,)
        loss, total = np.zeros(shape, np.float32), np.full(1, 7, np.float32)
        run(
            "aclnnNLLLoss",
            *map(tensor, (x, TARGETS, weight)),
            number,
            -100,
            *map(tensor, (loss, total)),
        )
        wanted, weights = aclnn.nll_loss_forward(x, TARGETS, weight, reduction)
        np.testing.assert_array_equal(loss, np.broadcast_to(wanted, shape))
        assert total[0] == (7 if weights is None else weights)
        outs = [np.full(shape, 7, np.float32) for _ in range(2)]
        logs, lse = np.zeros_like(x), np.full(7, 7, np.float32)
        run(
            "aclnnCrossEntropyLoss", *map(tensor, (x, TARGETS, weight)), reduction, -100, 0.25, 0.0, False,
            *map(tensor, (outs[0], logs, outs[1], lse)),
        )  # fmt: skip
        wanted = aclnn.cross_entropy_loss(x, TARGETS, weight, reduction, label_smoothing=0.25)
        np.testing.assert_array_equal(outs[0], np.broadcast_to(wanted, shape))
        np.testing.assert_array_equal(logs, aclnn.log_softmax(x, 1))
        form = aclnn.cross_entropy_loss_forward
        both = form(x, TARGETS, weight, outs[1], lse, reduction=reduction, label_smoothing=0.25)
        np.testing.assert_array_equal(outs[0], np.broadcast_to(both[0], shape))
        assert (outs[1] == 7).all()
        assert (lse == 7).all()


def test_losses_of_pixels_and_of_one():
    """Of pixels by nll_loss2d_forward, which has no functional form of its own."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, target = rng.standard_normal((2, 5, 3, 4)).astype(np.float32), rng.integers(0, 5, (2, 3, 4))
    weight, loss, total = (
        WEIGHTS.astype(np.float32),
        np.zeros((), np.float32),
        np.zeros(1, np.float32),
    )
    run("aclnnNLLLoss2d", *map(tensor, (x, target, weight)), 1, -100, *map(tensor, (loss, total)))
    wanted = torch.nn.functional.nll_loss(*map(torch.from_numpy, (x, target, weight)))
    np.testing.assert_allclose(loss, wanted, 1e-6)
    assert aclnn.nll_loss(x, target, weight) == loss
    assert aclnn.nll_loss(np.float32([1, 2]), np.full((), 1, np.int64)) == -2


def test_losses_without_targets():
    x, target, weight = np.zeros((0, 3), np.float32), np.zeros(0, np.int64), np.ones(3, np.float32)
    for function in (aclnn.nll_loss, aclnn.cross_entropy_loss):
        assert np.isnan(function(x, target, weight))
        assert function(x, target, weight, "sum") == 0
        assert function(x, target, weight, "none").shape == (0,)
    assert aclnn.nll_loss_forward(x, target, weight)[1] == 0


@named("target", [5, -1])
def test_targets_that_are_no_classes(target):
    with pytest.raises(aclnn.AclnnError, match="an index is"):
        aclnn.nll_loss(np.zeros((1, 5), np.float32), np.int64([target]))
    assert (
        aclnn.nll_loss(np.zeros((1, 5), np.float32), np.int64([target]), None, "sum", target) == 0
    )


@named(
    ("place", "bad", "status"),
    [
        (0, empty((7, 5), T.ACL_DOUBLE), INVALID),
        (1, empty((7,), T.ACL_FLOAT), INVALID),
        (1, empty((6,), T.ACL_INT64), 561002),
        (2, empty((4,)), 561002),
        (2, empty((5,), T.ACL_FLOAT16), INVALID),
        (3, "median", 561002),
        (5, -0.5, 561002),
        (5, 1.5, 561002),
        (8, empty((2,)), 561002),
        (8, empty((1,), T.ACL_FLOAT16), INVALID),
        (10, empty((1,), T.ACL_INT32), INVALID),
        *[(place, None, NULLPTR) for place in (0, 1, 8, 9, 10, 11)],
    ],
)
def test_what_cross_entropy_of_classes_refuses(place, bad, status):
    given = [empty((7, 5)), empty((7,), T.ACL_INT64), empty((5,)), None, -100, 0.0, 0.0, False]
    given += [empty((1,)), empty((7, 5)), empty((1,)), empty((7,))]
    name = "aclnnCrossEntropyLoss"
    assert getattr(aclnn, f"{name}GetWorkspaceSize")(*given)[2] == 0
    given[place] = bad
    assert refused(name, *given)[0] == status


def test_what_losses_of_classes_refuse():
    good = [empty((7, 5)), empty((7,), T.ACL_INT64), empty((5,)), 1, -100, empty(()), empty((1,))]
    for place, bad in (
        (0, empty((7, 5), T.ACL_DOUBLE)),
        (0, empty((7, 5, 1))),
        (1, empty((7,), T.ACL_INT16)),
        (1, empty((6,), T.ACL_INT64)),
        (2, empty((5,), T.ACL_FLOAT16)),
        (2, empty((4,))),
        (3, 3),
        (5, empty((7,))),
        (6, empty((2,))),
    ):
        changed = [bad if k == place else one for k, one in enumerate(good)]
        assert refused("aclnnNLLLoss", *changed)[0] == INVALID
    for place in (0, 1, 2, 5, 6):
        alone = [None if k == place else one for k, one in enumerate(good)]
        assert refused("aclnnNLLLoss", *alone)[0] == NULLPTR


@named("reduction", ["none", "mean", "sum"])
def test_gradients_of_losses_are_pytorchs(reduction):
    torch = pytest.importorskip("torch")
    import aclnn.torch

    x, target = torch.from_numpy(rows((7, 5), np.float32)[0]), torch.from_numpy(TARGETS)
    weight = torch.from_numpy(WEIGHTS.astype(np.float32))
    for name, theirs, more in (
        ("nll_loss", torch.nn.functional.nll_loss, {}),
        ("cross_entropy_loss", torch.nn.functional.cross_entropy, {"label_smoothing": 0.25}),
    ):
        ours, given = (x.clone().requires_grad_() for _ in range(2))
        found = getattr(aclnn, name)(ours, target, weight, reduction, **more)
        wanted = theirs(given, target, weight, reduction=reduction, **more)
        torch.testing.assert_close(found, wanted)
        for one in (found, wanted):
            (one * torch.arange(1.0, 8.0)[: one.numel()].reshape(one.shape)).sum().backward()
        torch.testing.assert_close(ours.grad, given.grad)
