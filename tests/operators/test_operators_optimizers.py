"""Steps of optimizers, against their formulas in extended precision and PyTorch."""

import numpy as np
import pytest
from calls import BF16, NULLPTR, empty, refused, run, tensor
from cases import each as named

import aclnn
from aclnn import aclDataType as T

pytestmark = pytest.mark.each_instruction_set

INVALID = 161002
OPTIONS = {"lr": 0.125, "beta1": 0.75, "beta2": 0.9375, "weight_decay": 0.25, "eps": 2.0**-20}


def step_of(param, m, v, most, grad, step, amsgrad, maximize):
    """A step in float64."""
    lr, beta1, beta2, decay, eps = OPTIONS.values()
    grad = -grad if maximize else grad
    m = m + (1 - beta1) * (grad - m)
    v = beta2 * v + (1 - beta2) * grad**2
    most = np.maximum(most, v) if amsgrad else most
    t = step + 1
    root = np.sqrt(most if amsgrad else v) / np.sqrt(1 - beta2**t) + eps
    return param * (1 - lr * decay) - lr / (1 - beta1**t) * m / root, m, v, most


def state(dtypes, shape=(3, 5)):
    rng = np.random.default_rng(len(shape))
    param, m, grad = (rng.standard_normal(shape) for _ in range(3))
    v, most = rng.random((2, *shape))
    return [one.astype(d) for one, d in zip((param, m, v, most, grad), dtypes, strict=True)]


@named("dtypes", [("f4",) * 5, ("f2",) * 5, (BF16, "f4", "f4", "f4", BF16)], ids=str)
@named("amsgrad", [False, True])
@named("maximize", [False, True])
def test_a_step_of_adamw(dtypes, amsgrad, maximize):
    given = state(dtypes)
    for step in (0, 3):
        exact = step_of(*[one.astype(float) for one in given], step, amsgrad, maximize)
        tensors = [tensor(one) for one in given]
        count = np.array([step], np.int64 if step else np.float32)
        run(
            "aclnnApplyAdamWV2", *tensors, tensor(count), *OPTIONS.values(), amsgrad, maximize
        )  # in place
        for one, wanted in zip(given, exact, strict=False):
            # Elements are rounded once more where they are halves.
            unit = {"f": 2.0**-11, "V": 2.0**-8}[one.dtype.kind] if one.itemsize == 2 else 2.0**-22
            assert (np.abs(one.astype(float) - wanted) <= unit * np.abs(wanted) + 2.0**-21).all()


def test_steps_are_pytorchs():
    torch = pytest.importorskip("torch")
    param, m, v, _, _ = state(("f4",) * 5, (7,))
    m[:], v[:] = 0, 0
    theirs = torch.nn.Parameter(torch.from_numpy(param.copy()))
    optimizer = torch.optim.AdamW([theirs], lr=0.1, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.2)
    rng = np.random.default_rng(1)
    for step in range(3):
        grad = rng.standard_normal(7).astype(np.float32)
        theirs.grad = torch.from_numpy(grad.copy())
        optimizer.step()
        options = {"lr": 0.1, "beta1": 0.8, "beta2": 0.95, "weight_decay": 0.2, "eps": 1e-6}
        found = aclnn.adamw_(param, m, v, None, grad, np.int64([step]), **options)
        assert found[0] is param
    np.testing.assert_allclose(param, theirs.detach().numpy(), 1e-5, 1e-6)


def test_what_adamw_refuses():
    good = [empty((2, 3)) for _ in range(5)] + [empty((1,), T.ACL_INT64)]
    numbers = (*OPTIONS.values(), False, False)
    for place in (0, 1, 2, 4, 5):
        alone = [None if k == place else one for k, one in enumerate(good)]
        assert refused("aclnnApplyAdamWV2", *alone, *numbers)[0] == NULLPTR
    without = [*good[:3], None, *good[4:]]
    assert refused("aclnnApplyAdamWV2", *without, *OPTIONS.values(), True, False)[0] == NULLPTR
    for place in range(6):
        for bad in (empty((2, 3), T.ACL_DOUBLE), empty((2, 4))):
            changed = [bad if k == place else one for k, one in enumerate(good)]
            assert refused("aclnnApplyAdamWV2", *changed, *numbers)[0] == INVALID
    nothing = [empty((0,)) for _ in range(5)] + [empty((1,))]
    assert aclnn.aclnnApplyAdamWV2GetWorkspaceSize(*nothing, *numbers)[2] == 0
