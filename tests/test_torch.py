"""PyTorch: registered operators, gradients, tracing, and what tensors cost."""

import copy

import pytest

from aclnn.operators import REGISTRY

torch = pytest.importorskip("torch")
from aclnn.torch.registration import SCHEMAS  # noqa: E402

FUNCTIONAL = [s.name for s in SCHEMAS.values() if not s.in_place]
IN_PLACE = [s.name for s in SCHEMAS.values() if s.in_place]


def tensor(*shape, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * 0.8 + 0.1).to(dtype)


def special_arguments():
    """For operators whose tensors are not all alike, and whose options have no default."""
    x = tensor(3, 4)
    rows = torch.native_layer_norm(x, (4,), None, None, 1e-5)
    mean, rstd = rows[1], rows[2]
    weight = tensor(4, seed=1)
    return {
        "where": (x > 0.5, x, tensor(3, 4, seed=2)),
        "matmul": (x, tensor(2, 4, 5, seed=1)),
        "mm": (x, tensor(4, 5, seed=1)),
        "bmm": (tensor(2, 3, 4), tensor(2, 4, 5, seed=1)),
        "addmm": (tensor(5), x, tensor(4, 5, seed=1)),
        "addmm_": (tensor(3, 5), x, tensor(4, 5, seed=1)),
        "cast": (x, torch.float16),
        "permute": (tensor(2, 3, 4), (2, 0, -2)),
        "cat": ([x, tensor(2, 4, seed=1)],),
        "sum": (x, [0]),
        "softmax": (x, -1),
        "log_softmax": (x, 0),
        "softmax_backward": (tensor(3, 4, seed=1), torch.softmax(x, 1), 1),
        "log_softmax_backward": (tensor(3, 4, seed=1), torch.log_softmax(x, 1), 1),
        "native_layer_norm": (x, (4,), weight, tensor(4, seed=2)),
        "layer_norm": (x, (4,), weight, tensor(4, seed=2)),
        "native_layer_norm_backward": (tensor(3, 4, seed=3), x, (4,), mean, rstd, weight, weight),
        "native_rms_norm": (x, weight),
        "rms_norm": (x, (4,), weight),
        "rms_norm_backward": (tensor(3, 4, seed=3), x, weight, rstd),
        "swiglu_backward": (tensor(3, 2), x),
        "elu_backward": (tensor(3, 4, seed=1), x),
    }


SPECIAL = special_arguments()


def arguments_for(name):
    if name in SPECIAL:
        return copy.deepcopy(SPECIAL[name])
    operator = SCHEMAS[name].operator
    return tuple([tensor(3, 4, seed=n) for n, _ in enumerate(operator.inputs)])


def tracked(name):
    """Arguments of which those that are floating require grad."""
    return [
        [one.requires_grad_() for one in given] if isinstance(given, list) and isinstance(given[0], torch.Tensor)
        else given.requires_grad_() if isinstance(given, torch.Tensor) and given.is_floating_point()
        else given
        for given in arguments_for(name)
    ]  # fmt: skip


def op(name):
    return getattr(torch.ops.aclnn, name)


def results_of(made):
    return [one for one in (made if isinstance(made, tuple) else (made,)) if one is not None]


# --- Registration -------------------------------------------------------------------------------


def test_every_functional_form_is_registered():
    assert [*SCHEMAS] == [name for o in REGISTRY.values() for name in o.functional_names]
    assert all(op(name).overloads() == ["default"] for name in SCHEMAS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_opcheck(name):
    torch.library.opcheck(op(name).default, tuple(arguments_for(name)))


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_opcheck_of_tensors_that_require_grad(name):
    tests = ("test_schema", "test_autograd_registration", "test_faketensor")
    if has_gradient(name):
        tests += ("test_aot_dispatch_dynamic",)
    torch.library.opcheck(op(name).default, tuple(tracked(name)), test_utils=tests)


def has_gradient(name):
    operator = SCHEMAS[name].operator
    return bool(operator.gradient or operator.differentiated_as)
