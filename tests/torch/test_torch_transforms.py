"""Transforms of ``torch.func`` on functional forms and registered operators, and how models are used."""

import copy
import pickle

import pytest

import aclnn

torch = pytest.importorskip("torch")

import aclnn.torch  # noqa: E402

ops = torch.ops.aclnn


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def tensor(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 0.8 + 0.1


# A function of one row, and the same of PyTorch's.
PAIRS = {
    "gelu": (lambda x: aclnn.gelu(x), torch.nn.functional.gelu),
    "op gelu": (lambda x: ops.gelu(x), torch.nn.functional.gelu),
    "op softmax": (lambda x: ops.softmax(x, -1), lambda x: torch.softmax(x, -1)),
    "op mul": (lambda x: ops.mul(x, x), lambda x: x * x),
    "cat": (lambda x: aclnn.cat([x, x * 2]) ** 2, lambda x: torch.cat([x, x * 2]) ** 2),
    "op cat": (lambda x: ops.cat([x, x * 2], 0) ** 2, lambda x: torch.cat([x, x * 2]) ** 2),
    "stack": (lambda x: aclnn.stack([x, x * 2]) ** 2, lambda x: torch.stack([x, x * 2]) ** 2),
}
TRANSFORMS = {
    "grad": lambda f: torch.func.grad(lambda x: f(x[0]).sum()),
    "vmap": lambda f: torch.vmap(f),
    "vmap of columns": lambda f: torch.vmap(f, in_dims=1),
    "vmap of grad": lambda f: torch.vmap(torch.func.grad(lambda x: f(x).sum())),
    "grad of vmap": lambda f: torch.func.grad(lambda x: torch.vmap(f)(x).sum()),
    "jacrev": lambda f: torch.func.jacrev(lambda x: f(x[0])),
    "vjp": lambda f: lambda x: torch.func.vjp(lambda x: f(x).sum(), x[0])[1](torch.tensor(2.0))[0],
}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("pair", PAIRS)
def test_transforms(pair, transform):
    ours, theirs = map(TRANSFORMS[transform], PAIRS[pair])
    x = tensor(3, 4)
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("pair", PAIRS)
def test_forward_mode_is_refused(pair):
    """Registered operators gave tangents of zeros."""
    x = tensor(4)
    refusals = NotImplementedError, aclnn.AclnnError
    with pytest.raises(refusals, match=r"no derivatives? in forward mode"):
        torch.func.jvp(PAIRS[pair][0], (x,), (x,))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_operators_without_tangents_work_in_forward_mode():
    x, scale = tensor(4), tensor(4, seed=1)
    made, tangent = torch.func.jvp(lambda x: x * ops.gelu(scale), (x,), (x,))
    torch.testing.assert_close(made, x * aclnn.gelu(scale))
    torch.testing.assert_close(tangent, made)


# --- As models are used ---------------------------------------------------------------------------


def encoder():
    torch.manual_seed(0)
    return torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)


def convolutional():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, bias=False),  # batch norm takes off what it would add
        torch.nn.BatchNorm2d(8),
        torch.nn.Hardswish(inplace=True),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 4),
    )


@pytest.mark.parametrize(
    ("make", "shape"),
    [(encoder, (2, 6, 16)), (convolutional, (2, 3, 8, 8))],
    ids=["encoder", "conv"],
)
def test_training_has_the_losses_of_eager_mode(make, shape):
    x, losses, models = tensor(*shape), [], []
    for backend in (None, "aclnn"):
        model = make().train()
        called = torch.compile(model, backend=backend) if backend else model
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        found = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = (called(x) - 0.5).square().mean()
            loss.backward()
            optimizer.step()
            found.append(float(loss.detach()))
        losses.append(found)
        models.append(model)
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert losses[0][-1] < losses[0][0]
    for eager, ours in zip(*(model.buffers() for model in models), strict=True):
        torch.testing.assert_close(ours, eager, atol=1e-3, rtol=1e-3)


def test_modes_in_turn():
    """A plan of one mode does not serve another: none of them, autocast, inference, none again.

    Autocast with gradients: without them PyTorch's encoder is one operator, whose dtype its tracing gets wrong.
    """
    model, x = encoder().eval(), tensor(2, 6, 16)
    compiled = torch.compile(copy.deepcopy(model), backend="aclnn")
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x), atol=1e-5, rtol=1e-5)
        with torch.autocast("cpu", torch.bfloat16):
            made, wanted = compiled(x), model(x)
            assert made.dtype == wanted.dtype
            torch.testing.assert_close(made, wanted, atol=0.05, rtol=0.05)
        with torch.inference_mode():
            assert compiled(x).is_inference()
    compiled(x).sum().backward()
    assert all(one.grad is not None for one in compiled.parameters())


def test_batches_of_several_sizes():
    model = encoder().eval()
    compiled = torch.compile(copy.deepcopy(model), backend="aclnn")
    for batch in (2, 5, 3):
        x = tensor(batch, 6, 16, seed=batch)
        made, wanted = compiled(x), model(x)
        torch.testing.assert_close(made, wanted, atol=1e-5, rtol=1e-5)
        for a, b in zip(
            torch.autograd.grad(made.sum(), [*compiled.parameters()]),
            torch.autograd.grad(wanted.sum(), [*model.parameters()]),
            strict=True,
        ):
            torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


@aclnn.compile
def gate(x):
    return aclnn.silu(x) * 2


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.activation, self.gate = aclnn.gelu, gate

    def forward(self, x):
        return self.activation(self.linear(x)) + self.gate(x)


def test_modules_that_hold_functions_are_copied_and_pickled():
    model, x = Gated(), tensor(2, 4)
    with torch.no_grad():
        wanted = model(x)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert torch.equal(other(x), wanted)


def test_compiled_models_are_copied():
    compiled, x = torch.compile(encoder().eval(), backend="aclnn"), tensor(2, 6, 16)
    with torch.no_grad():
        assert torch.equal(copy.deepcopy(compiled)(x), compiled(x))


def test_checkpoints_compute_functional_forms_anew():
    from torch.utils.checkpoint import checkpoint

    x, weight = tensor(3, 4).requires_grad_(), tensor(4, 4)

    def function(x):
        return aclnn.gelu(x @ weight) * 2

    (made,) = torch.autograd.grad(checkpoint(function, x, use_reentrant=False).sum(), [x])
    (wanted,) = torch.autograd.grad(function(x).sum(), [x])
    assert torch.equal(made, wanted)


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        x = torch.full((300, 300), float(index + 1))
        return aclnn.softmax(aclnn.mm(x, x) / 9e4, 1) + aclnn.gelu(x)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_data_loaders(method):
    """Threads of ours are there before the fork."""
    with aclnn.num_threads(2):
        wanted = torch.stack([Items()[n] for n in range(4)])
        loader = torch.utils.data.DataLoader(
            Items(), batch_size=2, num_workers=1, multiprocessing_context=method, timeout=60
        )
        assert torch.equal(torch.cat(list(loader)), wanted)
