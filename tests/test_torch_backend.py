"""The backend of torch.compile: what its parts do, and what becomes of the nodes between them."""

import pytest

import aclnn

torch = pytest.importorskip("torch")
from torch._subclasses import FakeTensorMode  # noqa: E402

import aclnn.torch  # noqa: E402
from aclnn.torch.expansion import expanded  # noqa: E402
from aclnn.torch.parts import Part  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def tensor(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 0.8 + 0.1


def part_of(function, *inputs):
    like = [*map(FakeTensorMode().from_tensor, inputs)]
    return Part(expanded(function, like), "part", like, {}, lambda graph: graph.forward)


def two_layouts(x, y):
    return x + y, (x * y).transpose(0, 2), (x - y).permute(1, 2, 0)


needs_exchange = pytest.mark.skipif(
    not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="PyTorch before 2.10"
)


@needs_exchange
def test_parts_are_prepared_by_their_first_call():
    x, y = tensor(2, 3, 4), tensor(2, 3, 4, seed=1)
    part = part_of(two_layouts, x, y)
    part(x, y)
    found = part._prepared.run((y, x))
    for made, wanted in zip(found, two_layouts(y, x), strict=True):
        assert torch.equal(made, wanted)
        assert made.stride() == wanted.stride()


@needs_exchange
def test_prepared_calls_leave_what_they_are_not_for():
    x, y = tensor(2, 3, 4), tensor(2, 3, 4, seed=1)
    part = part_of(two_layouts, x, y)
    part(x, y)
    prepared = part._prepared
    others = [
        (x[:1], y[:1]),
        (x.transpose(0, 1).contiguous().transpose(0, 1), y),
        (x.double(), y.double()),
        (x, tensor(2, 3, 4).requires_grad_()),
        (x.numpy(), y),
        (x,),
    ]
    assert all(prepared.run(given) is NotImplemented for given in others)
    with torch.no_grad():
        assert prepared.run(others[3]) is not NotImplemented
    with aclnn.num_threads(3 if aclnn.get_num_threads() != 3 else 2):
        assert prepared.run((x, y)) is NotImplemented
        assert torch.equal(part(x, y)[0], x + y)


def test_parts_take_inputs_of_other_layouts_in_turn():
    x, y = tensor(2, 3, 4), tensor(2, 3, 4, seed=1)
    part = part_of(two_layouts, x, y)
    strided = y.transpose(0, 1).contiguous().transpose(0, 1)
    for other in (y, strided, y, strided):
        for made, wanted in zip(part(x, other), two_layouts(x, y), strict=True):
            assert torch.equal(made, wanted)


def test_parts_are_differentiated_after_calls_without_gradients():
    x, y = tensor(2, 3, 4), tensor(2, 3, 4, seed=1)
    part = part_of(two_layouts, x, y)
    part(x, y)
    tracked = x.clone().requires_grad_()
    made = part(tracked, y)
    (gradient,) = torch.autograd.grad([one.sum() for one in made], [tracked])
    torch.testing.assert_close(gradient, 2 + y)
