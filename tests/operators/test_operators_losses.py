"""Losses of classes, against extended precision and PyTorch."""

import mpmath
import numpy as np
import pytest
from calls import BF16, NULLPTR, empty, refused, run, tensor

import aclnn
from aclnn import aclDataType as T

INVALID = 161002
named = pytest.mark.parametrize
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
