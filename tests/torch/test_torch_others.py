"""Programs as other people write them, through the backend of torch.compile: each as it runs by itself."""

import copy
import math
import multiprocessing
import threading

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
TAKE = {"take": "all"}


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def tensor(*shape, seed=0, dtype=torch.float32):
    drawn = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 0.8 + 0.1
    return drawn.to(dtype)


def compiled(function, **named):
    return torch.compile(function, backend="aclnn", options=TAKE, **named)


def same(found, wanted, near=2e-5):
    torch.testing.assert_close(found, wanted, rtol=near, atol=near, equal_nan=True)


def alike(function, *inputs, near=2e-5, times=2):
    """A function, and the same compiled, on copies of its inputs: results and inputs afterwards."""
    run = compiled(function)
    for _ in range(times):
        ours, eager = (copy.deepcopy(inputs) for _ in range(2))
        torch.manual_seed(5)
        found = run(*ours)
        torch.manual_seed(5)
        same((found, ours), (function(*eager), eager), near)


def model(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


# --- Training -------------------------------------------------------------------------------------

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
}


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_compiled_optimizers(name):
    ours, eager = model(), model()
    steps = [OPTIMIZERS[name](one.parameters()) for one in (ours, eager)]
    step = compiled(steps[0].step)
    for turn in range(3):
        for one in (ours, eager):
            one.zero_grad()
            one(tensor(4, 8, seed=turn)).square().sum().backward()
        with torch.no_grad():
            step()
        steps[1].step()
        same(list(ours.parameters()), list(eager.parameters()))
    same(steps[0].state_dict()["state"], steps[1].state_dict()["state"])


def trained(run, leaves, inputs):
    loss = run(*inputs).sin().sum()
    return [loss.detach(), *torch.autograd.grad(loss, leaves, allow_unused=True)]


def trains_alike(net, *inputs, near=2e-5):
    leaves = [*net.parameters(), *[one for one in inputs if one.requires_grad]]
    run = compiled(net)
    for _ in range(2):
        found = []
        for function in (run, net):
            torch.manual_seed(5)
            found.append(trained(function, leaves, inputs))
        same(*found, near)


def test_checkpointed_layers_with_dropout():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Sequential(model(), nn.Dropout(0.3)), nn.Linear(4, 4)

        def forward(self, x):
            return self.second(checkpoint(self.first, x, use_reentrant=False))

    trains_alike(Net(), tensor(3, 8).requires_grad_())


def test_tied_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
            self.out.weight = self.table.weight

        def forward(self, x):
            return self.out(self.table(x).tanh())

    trains_alike(Tied(), torch.tensor([[1, 2, 10], [0, 2, 2]]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast(dtype):
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = model()

        def forward(self, x):
            with torch.autocast("cpu", dtype=dtype):
                made = self.net(x)
            return made.float() * 2

    trains_alike(Mixed(), tensor(3, 8).requires_grad_(), near=2e-2)


def test_scaled_losses_in_mixed_precision():
    ours, eager = model(), model()
    for net, run in ((ours, compiled(ours)), (eager, eager)):
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu")
        for turn in range(2):
            with torch.autocast("cpu", torch.bfloat16):
                loss = run(tensor(3, 8, seed=turn)).float().square().mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    same(dict(ours.named_parameters()), dict(eager.named_parameters()), 2e-2)


def test_hooks_of_modules_and_tensors():
    seen = []

    class Hooked(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = model()
            self.net[0].register_forward_hook(lambda module, given, made: made * 2)
            self.net[1].register_forward_pre_hook(lambda module, given: (given[0] + 1,))

        def forward(self, x):
            return self.net(x)

    net, x = Hooked(), tensor(3, 8).requires_grad_()
    x.register_hook(lambda grad: seen.append(grad.clone()))
    net.net[3].weight.register_hook(lambda grad: grad * 3)
    trains_alike(net, x)
    assert len(seen) == 4
    same(seen[0], seen[1])


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bound):
        ctx.save_for_backward(x)
        ctx.bound = bound
        return x.clamp(-bound, bound)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= ctx.bound) * 5, None


def test_functions_with_a_backward_of_their_own():
    x = (tensor(4, 5) - 0.5).requires_grad_()
    run = compiled(lambda x: Clipped.apply(x * 2, 0.4) + x)
    found = [
        trained(function, [x], [x])
        for function in (run, lambda x: Clipped.apply(x * 2, 0.4) + x)
    ]  # fmt: skip
    same(*found)


def test_gradients_added_up_over_calls():
    ours, eager = model(), model()
    run = compiled(ours)
    for turn in range(3):
        run(tensor(2, 8, seed=turn)).square().mean().backward()
        eager(tensor(2, 8, seed=turn)).square().mean().backward()
    same([one.grad for one in ours.parameters()], [one.grad for one in eager.parameters()])


def test_gradients_kept_for_a_second_pass_and_of_two_results():
    def function(x):
        return x.exp().sum(0), (x * x).softmax(-1)

    x = tensor(3, 4).requires_grad_()
    for run in (compiled(function), function):
        first, second = run(x)
        a = torch.autograd.grad(first.sum(), x, retain_graph=True)
        b = torch.autograd.grad((second * x.detach()).sum(), x, retain_graph=True)
        c = torch.autograd.grad(first.sum() + (second * x.detach()).sum(), x)
        same(a[0] + b[0], c[0])
        expected = torch.autograd.grad(function(x)[0].sum(), x)
        same(a, expected)


def test_penalties_on_gradients_inside():
    def function(x, w):
        loss = (x @ w).tanh().sum()
        (gradient,) = torch.autograd.grad(loss, w, create_graph=True)
        return gradient.square().sum()

    x, w = tensor(3, 4), tensor(4, 2, seed=1).requires_grad_()
    assert function(x, w).requires_grad
    run = compiled(function)
    same(run(x, w).detach(), function(x, w).detach())


def test_data_parallel_of_one_process(tmp_path):
    if not torch.distributed.is_available():
        pytest.skip("PyTorch was built without it")
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1
    )
    try:
        eager, inner = model(), model()
        run = compiled(nn.parallel.DistributedDataParallel(inner))
        for one in (run, eager):
            one(tensor(3, 8)).square().sum().backward()
        same([one.grad for one in inner.parameters()], [one.grad for one in eager.parameters()])
    finally:
        torch.distributed.destroy_process_group()


# --- torch.func -----------------------------------------------------------------------------------


def loss_of(w, x):
    return (x @ w).softmax(-1).log().square().sum()


TRANSFORMS = {
    "grad": lambda w, x: torch.func.grad(loss_of)(w, x),
    "grad and value": lambda w, x: torch.func.grad_and_value(loss_of)(w, x),
    "vmap": lambda w, x: torch.func.vmap(loss_of, (None, 0))(w, x[:, None]),
    "gradients of each sample": lambda w, x: torch.func.vmap(torch.func.grad(loss_of), (None, 0))(
        w, x[:, None]
    ),
    "jacrev": lambda w, x: torch.func.jacrev(lambda w: (x @ w).tanh())(w),
    "jvp": lambda w, x: torch.func.jvp(lambda w: (x @ w).tanh(), (w,), (w * 2,)),
    "hessian": lambda w, x: torch.func.hessian(loss_of)(w, x),
}


@pytest.mark.parametrize("name", sorted(TRANSFORMS))
def test_function_transforms(name):
    alike(TRANSFORMS[name], tensor(4, 3), tensor(5, 4, seed=1), near=1e-4)


def test_functional_calls_with_other_parameters():
    net = model()
    others = {name: one.detach() * 0.5 for name, one in net.named_parameters()}
    alike(lambda x: torch.func.functional_call(net, others, (x,)), tensor(3, 8))


# --- State ----------------------------------------------------------------------------------------


class Counted(nn.Module):
    """Batch norm, a running range as observers keep it, and a cache that is written row by row."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.register_buffer("low", torch.tensor(float("inf")))
        self.register_buffer("high", torch.tensor(float("-inf")))
        self.register_buffer("cache", torch.zeros(4, 8))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x):
        self.low.copy_(torch.minimum(self.low, x.min()))
        self.high.copy_(torch.maximum(self.high, x.max()))
        made = self.norm(x)
        self.cache[self.calls % 4] = made.detach()[0]
        self.calls += 1
        scale = (self.high - self.low) / 255
        return (made / scale).round() * scale + self.cache.sum(0)


@pytest.mark.parametrize("training", [True, False])
def test_modules_that_write_buffers(training):
    ours, eager = Counted().train(training), Counted().train(training)
    run = compiled(ours)
    for turn in range(5):
        x = tensor(6, 8, seed=turn)
        same(run(x), eager(x), 1e-4)
        same(dict(ours.named_buffers()), dict(eager.named_buffers()))


@pytest.mark.filterwarnings("ignore:.*torch.ao.quantization.*")
def test_quantizers_that_watch_ranges():
    quantization = pytest.importorskip("torch.ao.quantization")

    def quantized():
        by_channel = quantization.FakeQuantize(
            observer=quantization.MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127,
            dtype=torch.qint8, qscheme=torch.per_channel_symmetric, ch_axis=1,
        )  # fmt: skip
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(8, 16), quantization.FakeQuantize(), nn.ReLU(), quantization.MinMaxObserver(),
            quantization.FusedMovingAvgObsFakeQuantize(), nn.Linear(16, 4), by_channel,
        )  # fmt: skip

    ours, eager = quantized(), quantized()
    run = compiled(ours)
    for turn in range(4):
        x = tensor(6, 8, seed=turn)
        made, wanted = run(x), eager(x)
        same(made, wanted, 1e-4)
        made.sum().backward()
        wanted.sum().backward()
        same(dict(ours.named_buffers()), dict(eager.named_buffers()), 1e-4)
    same([one.grad for one in ours.parameters()], [one.grad for one in eager.parameters()], 1e-4)


NORMS = {
    "weight": nn.utils.parametrizations.weight_norm,
    "spectral": nn.utils.parametrizations.spectral_norm,
    "orthogonal": nn.utils.parametrizations.orthogonal,
}


@pytest.mark.parametrize("name", sorted(NORMS))
def test_weights_that_are_computed(name):
    torch.manual_seed(0)
    eager = nn.Sequential(NORMS[name](nn.Linear(8, 8)), nn.Tanh())
    ours = copy.deepcopy(eager)
    run = compiled(ours)
    for turn in range(3):
        made, wanted = (one(tensor(3, 8, seed=turn)) for one in (run, eager))
        same(made, wanted, 1e-4)
        made.sum().backward()
        wanted.sum().backward()
        same(dict(ours.named_buffers()), dict(eager.named_buffers()), 1e-4)
    same([one.grad for one in ours.parameters()], [one.grad for one in eager.parameters()], 1e-3)


def test_tables_whose_rows_are_scaled_when_they_are_read():
    ours = nn.Embedding(10, 4, padding_idx=0, max_norm=1.0)
    eager = copy.deepcopy(ours)
    at = torch.tensor([1, 2, 4, 0])
    same(compiled(lambda at: ours(at) * 2)(at), eager(at) * 2)
    same(ours.weight, eager.weight)


@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM, nn.GRU])
def test_recurrent_layers(kind):
    torch.manual_seed(0)
    net, x = kind(4, 6, 2, batch_first=True, bidirectional=True), tensor(2, 5, 4)
    packed = nn.utils.rnn.pack_padded_sequence(x, [5, 3], batch_first=True)

    def function(x, rows):
        of_rows, last = net(nn.utils.rnn.PackedSequence(rows, packed.batch_sizes))
        return net(x), of_rows.data, last

    alike(function, x, packed.data)


def test_weights_changed_between_calls():
    ours, eager = model(), model()
    run, x = compiled(ours), tensor(3, 8)
    with torch.no_grad():
        for _ in range(2):
            same(run(x), eager(x))
            for one in (ours, eager):
                one[0].weight.mul_(0.5)
                one[3].bias = nn.Parameter(one[3].bias + 1)
        same(run(x), eager(x))
        ours.load_state_dict(model(3).state_dict())
        same(run(x), model(3)(x))


def test_a_cache_of_keys_that_grows():
    def attend(q, keys, values, place):
        keys[:, place] = q
        values[:, place] = q * 2
        seen = slice(0, place + 1)
        return functional.scaled_dot_product_attention(q[:, None], keys[:, seen], values[:, seen])

    run = compiled(attend)
    ours, eager = ([torch.zeros(2, 6, 8) for _ in range(2)] for _ in range(2))
    for place in range(4):
        q = tensor(2, 8, seed=place)
        same((run(q, *ours, place), ours), (attend(q, *eager, place), eager))


# --- Kinds of tensors -----------------------------------------------------------------------------


def test_complex_graphs():
    def function(x):
        z = torch.complex(x, x * 2)
        w = torch.fft.fft(z) * z.conj()
        return w.real, w.imag.sum(-1), w.abs(), torch.view_as_real(w)

    alike(function, tensor(3, 8), near=1e-4)


def test_integer_graphs():
    def function(x):
        y = (x * 7 + 3) // 4
        return (
            y % 5,
            y << 1,
            (y & 6) | 1,
            y.bitwise_not(),
            y.sum(),
            y.argmax(-1),
            y > 3,
            y.cumsum(0),
            -y // 3,
        )

    alike(function, torch.arange(-12, 12).reshape(4, 6))
    alike(function, torch.arange(24, dtype=torch.int32).reshape(4, 6))


def test_empty_tensors_and_such_without_dimensions():
    def function(x, number):
        return (
            x.exp().sum(0), torch.cat([x, x]), x.softmax(-1), x @ x.mT, number * 2 + x.sum(), number.exp().sqrt(),
            number.unsqueeze(0).cumsum(0), x.reshape(-1)[:0].mean(),
        )  # fmt: skip

    alike(function, torch.zeros(0, 4), torch.tensor(1.5))
    alike(function, torch.zeros(3, 0), torch.tensor(1.5))
    alike(function, tensor(2, 2), torch.tensor(0.5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("p", [0.0, 0.3, 0.9])
def test_dropout_bit_for_bit(p, dtype):
    def function(x):
        across = functional.dropout(x.t() * 2, p)  # whose numbers are drawn in another order
        return functional.dropout(x * 3, p), functional.dropout(x, p), across

    run, x = compiled(function), tensor(64, 32).to(dtype)
    x[0, 0] = math.inf
    for seed in (1, 2):
        torch.manual_seed(seed)
        found, after = run(x), torch.rand(3)
        torch.manual_seed(seed)
        for one, wanted in zip(found, function(x), strict=True):
            torch.testing.assert_close(one, wanted, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(after, torch.rand(3))  # as many numbers were drawn


def test_random_numbers_in_their_order():
    def function(x):
        a, b = torch.rand_like(x), torch.randn(x.shape)
        c = torch.randint(0, 9, x.shape)
        return x.exp() * a, x + b, c, torch.bernoulli(a), torch.normal(a, 1.0)

    run, x = compiled(function), tensor(16, 8)
    torch.manual_seed(3)
    found = run(x)
    torch.manual_seed(3)
    for one, other in zip(found, function(x), strict=True):
        same(one, other, 1e-6)


def test_numbers_of_a_generator_of_ones_own():
    made = [torch.Generator().manual_seed(4) for _ in range(2)]

    def function(x, generator):
        return x.exp() * torch.rand(x.shape, generator=generator)

    run, x = compiled(function), tensor(5)
    for _ in range(2):
        same(run(x, made[0]), function(x, made[1]))


def test_channels_last_and_strided_results():
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.AvgPool2d(2)
    )
    net = net.to(memory_format=torch.channels_last).eval()
    x = tensor(2, 3, 8, 8).to(memory_format=torch.channels_last)

    def function(x):
        made = net(x)
        return (
            made,
            made.permute(1, 0, 3, 2),
            made[:, ::2] * 2,
            made.transpose(1, 3).exp(),
            made.flatten(2).mT,
        )

    with torch.no_grad():
        for one, other in zip(compiled(function)(x), function(x), strict=True):
            assert one.stride() == other.stride()
            same(one, other)


def test_inputs_of_any_strides():
    def function(x, y):
        return x @ y, (x.exp() + y.mT).sum(0), y.mul_(2).sum()

    base = tensor(12, 12)
    run = compiled(function)
    for x, y in (
        (base[::2, ::3], base.T[:4, :6]),
        (base[0].expand(6, 12)[:, 4:8], base[::3, ::2]),
        (base.as_strided((6, 4), (1, 3)), base[1:5, 2:8]),
    ):
        ours, eager = (
            [one.clone(memory_format=torch.preserve_format) for one in (x, y)] for _ in range(2)
        )
        same((run(*ours), ours), (function(*eager), eager))
        if y.stride(0) and not torch._debug_has_internal_overlap(y):
            kept = y.clone()
            wanted = function(x.clone(), y.clone())
            same(run(x.clone(), y), wanted)
            same(y, kept * 2)
            y.copy_(kept)


def test_one_tensor_as_several_arguments():
    def function(x, y):
        x.add_(1)
        return x * y, y.exp()

    run = compiled(function)
    a, b = tensor(4), tensor(4)
    same((run(a, a), a), (function(b, b), b))
    whole, other = tensor(8), tensor(8)
    same((run(whole[:5], whole[3:8]), whole), (function(other[:5], other[3:8]), other))


# --- Where it runs --------------------------------------------------------------------------------


def test_inference_mode():
    net = model().eval()
    run, x = compiled(net), tensor(3, 8)
    with torch.inference_mode():
        same(run(x), net(x))
        assert run(x).is_inference()
    trains = x.clone().requires_grad_()
    same(
        torch.autograd.grad(run(trains).sum(), trains),
        torch.autograd.grad(net(trains).sum(), trains),
    )
    with torch.no_grad():
        same(run(x), net(x))


def test_compiled_twice_and_inside_of_another():
    net = model()
    once, x = compiled(net), tensor(3, 8)
    twice = compiled(once)
    outer = compiled(lambda x: once(x) * 2 + twice(x))
    same(outer(x), net(x) * 3)
    same(twice(x), net(x))


def test_threads_that_train_and_infer():
    net, failed = model(), []
    run = compiled(net)
    run(tensor(3, 8)).sum().backward()
    wanted = {n: net(tensor(n, 8, seed=n)).detach() for n in (2, 3, 5)}

    def work(rows):
        try:
            for turn in range(4):
                x = tensor(rows, 8, seed=rows).requires_grad_()
                with torch.set_grad_enabled(turn % 2 == 0):
                    made = run(x)
                same(made.detach(), wanted[rows])
                if turn % 2 == 0:
                    torch.autograd.grad(made.sum(), x)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(rows,)) for rows in wanted]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed


def run_after_a_fork(run, x, pipe):
    torch.set_num_threads(1)  # those of the parent are gone
    try:
        (grad,) = torch.autograd.grad(run(x.requires_grad_()).sum(), x)
        pipe.send([one.detach().tolist() for one in (run(x), run(x[:2]), grad)])
    except BaseException as error:
        pipe.send(repr(error))


def test_compiled_models_run_and_compile_after_a_fork():
    net, x = model(), tensor(5, 8)
    run = compiled(net)
    run(x).sum().backward()
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=run_after_a_fork, args=(run, x.clone(), there))
    child.start()
    assert here.poll(120)
    found = here.recv()
    child.join()
    assert isinstance(found, list), found
    (grad,) = torch.autograd.grad(net(x.requires_grad_()).sum(), x)
    same(list(map(torch.tensor, found)), [net(x).detach(), net(x[:2]).detach(), grad])


def test_exported_programs_of_sizes_that_vary():
    net = model().eval()
    sizes = {0: torch.export.Dim("rows", min=2, max=64)}
    program = torch.export.export(net, (tensor(3, 8),), dynamic_shapes=(sizes,))
    run = compiled(program.module())
    for rows in (2, 5, 9):
        same(run(tensor(rows, 8)), net(tensor(rows, 8)))


def test_exported_programs():
    net = model().eval()
    program = torch.export.export(net, (tensor(3, 8),))
    same(compiled(program.module())(tensor(3, 8)), net(tensor(3, 8)))


@pytest.mark.parametrize("dynamic", [True, None])
def test_sizes_that_vary(dynamic):
    net = model()
    run = compiled(
        lambda x: net(x).cumsum(0)[: x.shape[0] // 2 + 1].sum(-1) * x.shape[0], dynamic=dynamic
    )
    for rows in (2, 3, 7, 5):
        x = tensor(rows, 8, seed=rows)
        wanted = net(x).cumsum(0)[: rows // 2 + 1].sum(-1) * rows
        same(run(x).detach(), wanted.detach())


def test_graphs_that_break():
    def function(x):
        made = x.exp() * 2
        if float(made.sum()) > 3:
            made = made - 1
        items = [one.item() for one in made[0, :2]]
        return made.softmax(-1) * sum(items)

    alike(function, tensor(3, 4))


def test_results_in_dicts_and_of_ones_own_classes():
    import collections

    Pair = collections.namedtuple("Pair", "left right")

    def function(x):
        return {"pair": Pair(x.exp(), x.sum()), "list": [x * 2, None, "text", 3], "same": x}

    found, wanted = compiled(function)(tensor(3)), function(tensor(3))
    assert type(found["pair"]) is Pair
    assert found["list"][1:] == [None, "text", 3]
    same(list(found["pair"]), list(wanted["pair"]))
    same(found["list"][0], wanted["list"][0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x @ x,
        lambda x: x.reshape(5),
        lambda x: torch.cat([x, x[:, :1]]),
        lambda x: x + torch.ones(7),
        lambda x: x.softmax(4),
    ],
)
def test_what_eager_calls_refuse_is_refused(function):
    with pytest.raises((RuntimeError, IndexError)):
        function(tensor(2, 3))
    with pytest.raises((RuntimeError, IndexError, torch._dynamo.exc.TorchRuntimeError)):
        compiled(function)(tensor(2, 3))
