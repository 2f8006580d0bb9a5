"""Real architectures through the backend of torch.compile: results and gradients beside eager ones."""

import copy
import importlib.util

import pytest

torch = pytest.importorskip("torch")
import architectures  # noqa: E402
import convolutional  # noqa: E402

import aclnn.torch as at  # noqa: E402

EACH = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            importlib.util.find_spec(module) is None,
            reason=f"{module} is not installed: pip install 'aclnn-cpu[test-models]'",
        ),
    )
    for name, module in architectures.NEEDS.items()
]


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def run(model, given, direction):
    """The result, and the gradients of parameters by name."""
    result = architectures.result_of(model(**given))
    (result * direction.to(result.dtype)).sum().backward()
    pairs = model.named_parameters()
    gradients = {n.removeprefix("_orig_mod."): p.grad for n, p in pairs if p.grad is not None}
    return result.detach(), gradients


def distance(one, other):
    """The largest difference beside the largest number."""
    return float((one.double() - other).abs().max() / other.abs().max().clamp(min=1e-30))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", EACH)
def test_results_and_gradients_are_as_accurate_as_eager_ones(name):
    """Beside those in float64: at most twice as far as eager ones, and a few roundings."""
    model, given = architectures.made(name)
    double = copy.deepcopy(model).double()
    exact = {k: v.double() if v.is_floating_point() else v for k, v in given.items()}
    compiled = torch.compile(copy.deepcopy(model), backend="aclnn")
    with torch.no_grad():
        inferred = architectures.result_of(compiled(**given))
        direction = torch.randn_like(inferred)
    wanted, wanted_gradients = run(double, exact, direction)
    eager, eager_gradients = run(model, given, direction)
    ours, gradients = run(compiled, given, direction)
    few = 2e-6
    bound = 2 * distance(eager, wanted) + few
    assert distance(ours, wanted) <= bound
    assert distance(inferred, wanted) <= bound
    assert gradients.keys() >= eager_gradients.keys() == wanted_gradients.keys()
    for role, gradient in gradients.items():
        if role not in eager_gradients:  # AOTAutograd gives zeros where a loss does not depend
            assert not gradient.any(), role
            continue
        far = distance(eager_gradients[role], wanted_gradients[role])
        assert distance(gradient, wanted_gradients[role]) <= 4 * far + 2e-5, role


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:Dynamo detected a call:UserWarning")
@pytest.mark.parametrize("name", architectures.CACHED)
def test_models_with_a_cache_give_what_eager_ones_give(name):
    """Every tensor of the output, in inference and in training, and gradients."""
    pytest.importorskip("transformers")
    model, given = architectures.cached(name)
    compiled = torch.compile(copy.deepcopy(model), backend="aclnn")
    with torch.no_grad():
        ours, wanted = (architectures.tensors_of(one(**given)) for one in (compiled, model))
    compare(ours, wanted)
    ours, wanted = compiled(**given), model(**given)
    compare(*map(architectures.tensors_of, (ours, wanted)))
    for one in (ours, wanted):
        architectures.result_of(one).sin().sum().backward()
    pairs = zip(compiled.named_parameters(), model.parameters(), strict=True)
    # That of a key's bias is zero but for roundings.
    pairs = [(a.grad, b.grad) for (role, a), b in pairs if not role.endswith("k_proj.bias")]
    assert all(a is not None for a, b in pairs if b is not None)
    assert not any(a.any() for a, b in pairs if a is not None and b is None)
    compare(*zip(*[pair for pair in pairs if pair[1] is not None], strict=True))


def compare(ours, wanted):
    assert len(ours) == len(wanted) > 0
    for one, other in zip(ours, wanted, strict=True):
        assert (one.shape, one.dtype, one.stride()) == (other.shape, other.dtype, other.stride())
        assert distance(one.detach(), other.detach().double()) < 1e-5


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", EACH)
def test_models_are_explained(name):
    model, given = architectures.made(name)
    with torch.no_grad():
        found = at.explain(model, **given)
    assert found.taken > 0
    assert len(found.parts) == len(found.workspaces)
    assert f"{found.taken} nodes in" in str(found)


# --- Convolutions ---------------------------------------------------------------------------------


def stepped(model, image, double=False):
    """Result, gradients of all parameters and of the image, and buffers after a step of training."""
    model, image = (one.double() if double else one for one in (model, image))
    image = image.clone().requires_grad_()
    torch.manual_seed(3)
    made = model(image)
    (made * torch.linspace(0.5, 1.5, made.numel()).reshape(made.shape)).sum().backward()
    gradients = [one.grad for one in model.parameters()]
    return [made.detach(), image.grad, *gradients, *model.buffers()]


@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("name", sorted(convolutional.MODELS))
def test_convolutional_models_are_trained_as_eager_ones(name, form):
    torch.manual_seed(0)
    model = convolutional.MODELS[name]().to(memory_format=form)
    image = torch.rand(2, 3, 16, 16).to(memory_format=form)
    ours, exact = copy.deepcopy(model), copy.deepcopy(model)
    compiled = torch.compile(ours, backend="aclnn")
    for _ in range(2):  # buffers of the first step are inputs of the second
        wanted = stepped(exact, image, double=True)
        pairs = zip(stepped(compiled, image), stepped(model, image), wanted, strict=True)
        for found, eager, true in pairs:
            assert distance(found, true.double()) <= 4 * distance(eager, true.double()) + 2e-5
        for one in (ours, exact, model):
            one.zero_grad()


LEFT = {"empty_strided", "bernoulli", "detach", "unsqueeze"}


@pytest.mark.parametrize("name", sorted(convolutional.MODELS))
def test_convolutional_models_are_few_executors(name):
    model, image = convolutional.MODELS[name](), torch.rand(2, 3, 16, 16)
    found = at.explain(model, image, options={"take": "all"})
    assert len(found.parts) == 2  # forward and backward
    assert {one for one, reason in found.left} <= LEFT
    torch._dynamo.reset()
    with torch.no_grad():
        evaluated = at.explain(model.eval(), image, options={"take": "all"})
    assert (len(evaluated.parts), evaluated.left) == (1, [])
