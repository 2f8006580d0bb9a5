"""The backend of torch.compile: what its parts do, and what becomes of the nodes between them."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from cases import each

import aclnn

torch = pytest.importorskip("torch")
from aclnn.graph.result_steps import steps_of  # noqa: E402
from torch._subclasses import FakeTensorMode  # noqa: E402
from torch.utils._pytree import tree_flatten  # noqa: E402

import aclnn.torch  # noqa: E402
from aclnn import measurements  # noqa: E402
from aclnn.torch import counterparts, dynamo, shapes, speed, support  # noqa: E402
from aclnn.torch.graphs import graph_of  # noqa: E402
from aclnn.torch.partitions import Part, modules_of  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()


def tensor(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 0.8 + 0.1


def part_of(function, *inputs):
    like = [*map(FakeTensorMode().from_tensor, inputs)]
    return Part(graph_of(function, like), "part", {})


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


# --- Folding --------------------------------------------------------------------------------------


def explained(function, *inputs, **options):
    with torch.no_grad():
        return aclnn.torch.explain(function, *inputs, options=options or {"take": "all"})


def test_nodes_without_effect_are_folded():
    def function(x):
        same = x.contiguous().to(torch.float32).clone()
        return torch.atan(same.view(same.shape).expand(2, 3))

    found = explained(function, tensor(2, 3))
    assert found.folded == 3
    assert found.left == [("atan", "no operator of ours does it")]
    assert str(found).startswith("0 nodes in 0 executors, 1 left to PyTorch, 3 folded")


def causal(q, bias):
    places = torch.arange(q.shape[-2])
    mask = places[:, None] >= places
    return torch.nn.functional.scaled_dot_product_attention(q, q + bias, q, attn_mask=mask)


@pytest.mark.parametrize("take", ["all", "default"])
def test_views_by_strides(take):
    """Those of all that there is in its order are views of a shape; others are not."""

    def function(x):
        y = x * 2
        whole, turned = y.as_strided((2, 12), (12, 1)), y.as_strided((6, 4), (1, 6))
        inner = y[1:].as_strided((3, 1, 3), (3, 7, 1), 0)
        part = y[1:].as_strided((3, 6), (6, 1))
        written = y.as_strided_scatter(x.T + 1, (6, 4), (4, 1))
        other = y.as_strided_scatter(x[:, :3], (4, 3), (6, 1), 2)
        return (
            whole.exp(),
            turned + 1,
            inner.sin(),
            part + 3,
            written.cos(),
            other * 2,
            y.as_strided((4, 6, 1), (6, 1, 9)),
        )

    x = tensor(4, 6)
    made, wanted = torch.compile(function, backend="aclnn", options={"take": take})(x), function(x)
    for one, other in zip(made, wanted, strict=True):
        torch.testing.assert_close(one, other)
        assert one.stride() == other.stride()
    left = explained(lambda x: (x * 2).as_strided((2, 12), (12, 1)).exp(), x).left
    assert left == []


def test_constants_are_folded():
    q = tensor(1, 2, 6, 8)
    found = explained(causal, q, tensor(8))
    assert not {"arange", "getitem", "ge", "where"} & {name for name, _ in found.left[:-1]}
    compiled = torch.compile(causal, backend="aclnn")
    with torch.no_grad():
        for seed in (1, 2):
            given = tensor(1, 2, 6, 8, seed=seed), tensor(8, seed=seed)
            torch.testing.assert_close(compiled(*given), causal(*given))


def test_constants_do_not_change_gradients():
    q, bias = tensor(1, 2, 6, 8).requires_grad_(), tensor(8).requires_grad_()
    direction = tensor(1, 2, 6, 8, seed=3)
    made = torch.compile(causal, backend="aclnn")(q, bias)
    ours = torch.autograd.grad((made * direction).sum(), [q, bias])
    wanted = torch.autograd.grad((causal(q, bias) * direction).sum(), [q, bias])
    torch.testing.assert_close(ours, wanted)


def test_what_callers_may_write_into_is_no_constant():
    def function(x):
        places = torch.arange(4.0) * 2
        return x + places, places, places.view(2, 2).t()

    compiled = torch.compile(function, backend="aclnn")
    x = tensor(4)
    for one in compiled(x)[1:]:
        one.fill_(7.0)
    for made, wanted in zip(compiled(x), function(x), strict=True):
        torch.testing.assert_close(made, wanted)


def test_a_view_that_is_returned_stays_one():
    def function(x):
        return x.view(x.shape)

    x = tensor(4)
    made = torch.compile(function, backend="aclnn")(x)
    assert made is not x
    made[0] = 7.0
    assert x[0] == 7.0


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.rand(64),
        lambda: torch.nn.functional.dropout(torch.ones(64), 0.5),
        lambda: torch.empty(64).uniform_(),
        lambda: torch.bernoulli(torch.full((64,), 0.5)),
    ],
    ids=["rand", "dropout", "uniform_", "bernoulli"],
)
def test_random_numbers_are_drawn_by_each_call(draw):
    compiled = torch.compile(lambda x: x * draw(), backend="aclnn")
    x = tensor(64)
    assert not torch.equal(compiled(x), compiled(x))


def test_views_of_what_is_detached_require_no_gradient():
    def function(x):
        made = x.tanh()
        return made.detach().chunk(2)[1], made.detach().view(-1), made

    compiled = torch.compile(function, backend="aclnn")
    x = tensor(4, 3).requires_grad_()
    for run in (compiled, function):
        shown, flat, made = run(x)
        assert (shown.requires_grad, flat.requires_grad, made.requires_grad) == (False, False, True)
        shown.fill_(7.0)
        assert (made[2:] == 7.0).all()
        assert (flat[6:] == 7.0).all()


def test_large_constants_are_computed_by_each_call():
    def function(x):
        return x + torch.arange(1 << 19, dtype=torch.float32)

    assert explained(function, tensor(1)).folded == 0


def test_constants_of_inference_mode_serve_training():
    def function(x):
        return x * torch.arange(4.0).exp()

    compiled = torch.compile(function, backend="aclnn")
    x = tensor(4)
    with torch.inference_mode():
        compiled(x)
    x.requires_grad_()
    (made,) = torch.autograd.grad(compiled(x).sum(), [x])
    torch.testing.assert_close(made, torch.arange(4.0).exp())


def test_what_is_filled_like_a_tensor_is_a_constant():
    def function(x):
        return torch.atan(x) * torch.full_like(x, 2.0) + x.new_ones(3) + torch.zeros_like(x)

    x = tensor(2, 3)
    assert explained(function, x).folded == 3
    torch.testing.assert_close(torch.compile(function, backend="aclnn")(x), function(x))


# --- Modes that a graph switches ------------------------------------------------------------------


def test_what_runs_without_gradients_has_none():
    def function(x):
        with torch.no_grad():
            still = (x.exp() * 2).tanh()
        return (torch.nn.functional.gelu(x) * 2 + still).exp()

    x = tensor(8).requires_grad_()
    (ours,) = torch.autograd.grad(torch.compile(function, backend="aclnn")(x).sum(), [x])
    (wanted,) = torch.autograd.grad(function(x).sum(), [x])
    torch.testing.assert_close(ours, wanted)


def test_transforms_inside_of_a_compiled_function():
    def function(x):
        return torch.vmap(torch.func.grad(lambda row: (row * torch.arange(3)).sin().sum()))(x)

    x = tensor(4, 3)
    compiled = torch.compile(function, backend="aclnn", fullgraph=True)
    torch.testing.assert_close(compiled(x), function(x))


def test_mixed_precision_inside_of_a_compiled_function():
    def function(x, weight):
        with torch.autocast("cpu", torch.bfloat16):
            return torch.nn.functional.gelu(x @ weight) * 2

    x, weight = tensor(4, 8).requires_grad_(), tensor(8, 8)
    made, wanted = torch.compile(function, backend="aclnn")(x, weight), function(x, weight)
    assert made.dtype == wanted.dtype == torch.bfloat16
    torch.testing.assert_close(made, wanted)
    pair = [torch.autograd.grad(one.sum(), [x])[0] for one in (made, wanted)]
    torch.testing.assert_close(*pair, atol=0.05, rtol=0.02)


# --- What is taken --------------------------------------------------------------------------------


@pytest.fixture
def times(monkeypatch):
    """Times, in µs, that calls are found to take, by the operator's name; others take as long as PyTorch's."""
    given = {}

    def measured(node):
        return given.get(node.target._opname, (5.0, 5.0))

    monkeypatch.setattr(speed, "measured", measured)
    monkeypatch.setattr(speed, "_smallest_call", lambda: (2.0, 1.0))
    monkeypatch.setenv("ACLNN_CACHE_DIR", os.devnull)  # nothing is kept
    return given


def test_gathers_are_known():
    def function(x, index):
        return torch.gather(x, 1, index).relu() * 2

    x, index = tensor(3, 4), torch.tensor([[0, 3], [1, 1]])
    found = explained(function, x, index)
    assert "gather" in found.parts[0]
    assert not found.left
    with torch.no_grad():
        made = torch.compile(function, backend="aclnn")(x, index)
    torch.testing.assert_close(made, function(x, index), rtol=0, atol=0)


def scattered(x, y, index):
    made = x * 2
    made[1:3] = y[:2]
    made[..., 0] = 5.0
    return made.exp()


def indexed(x, y, index):
    return x[index] * 2, torch.stack([x, y], 1).flip(0, 2).exp()


def normalized_by_batch(x, y, index):
    norm = torch.nn.functional.batch_norm
    return norm(x, y[0], y[1] + 1, y[2], y[3], False, 0.1, 1e-5).relu()


def filled(x, y, index):
    """What is larger than constants are is filled by each call."""
    grown = x.new_full((600, 512), 2.5) * x[0, 0]
    made = (
        torch.zeros_like(grown) + 1,
        torch.ones_like(grown) * 2,
        grown.new_zeros((512, 600)).T + grown,
    )
    written = torch.empty_like(x).copy_(y), x.new_empty_strided((4, 2), (1, 4)).zero_() + x[0, 0]
    return (*made, *written, torch.full_like(grown, 3, dtype=torch.int64))


def folded_windows(x, y, index):
    fold = torch.nn.functional.fold
    columns = torch.stack([x.flatten()[:12], y.flatten()[:12]], -1).reshape(12, 2)
    return fold(columns, (4, 3), (3, 2), 1, 1, (3, 4)) * 2, fold(
        columns.T.reshape(4, 6), (3, 4), 2
    ) + 1


def counted(x, y, index):
    """Counts of elements in ranges, and where ranges of them end."""
    bounds = torch.tensor([0.0, 3.0, 4.0, -1.0, float("nan")])
    found = torch.cat([index.flatten().float(), x.flatten() * 3, bounds])
    return torch.histc(found, 4, 0, 3).cumsum(0, dtype=torch.int32), torch.histc(
        found, 7, 0.1, 2.5
    ) * 2


@pytest.mark.parametrize(
    "function", [scattered, indexed, normalized_by_batch, filled, folded_windows, counted]
)
def test_what_forms_stand_for(function):
    given = tensor(4, 5), tensor(4, 5, seed=1), torch.tensor([[0, 3], [1, 1]])
    found = explained(function, *given)
    assert all("view" in reason for _, reason in found.left), found
    with torch.no_grad():
        ours = torch.compile(function, backend="aclnn", options={"take": "all"})(*given)
    torch.testing.assert_close(ours, function(*given))


def normalized(x):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)


def test_measurements_decide_what_is_taken(times):
    """Where PyTorch is faster by more than a tenth, and than a part's call."""
    x = tensor(64, 128)
    for ours, is_taken in ((3.0, True), (42.4, True), (44.0, True), (46.1, False), (400.0, False)):
        torch._dynamo.reset()
        times["mean"] = ours, 40.0
        found = explained(normalized, x, tune=True)
        left = [reason for name, reason in found.left if name == "mean"]
        assert (
            not left
            if is_taken
            else left == [f"PyTorch's kernel is faster: 40 µs, ours {ours - 2.0:.3g}"]
        )
        assert "mean" in explained(normalized, x).parts[0]


def test_small_calls_are_not_measured(times):
    times["mean"] = 400.0, 40.0
    assert "mean" in explained(normalized, tensor(2, 16, 64), tune=True).parts[0]


def test_a_part_has_to_gain_more_than_its_call(times):
    found = explained(lambda x: torch.mul(x, 2.0), tensor(16), tune=True)
    assert found.left == [("mul", "alone it takes as long as in PyTorch")]
    assert len(explained(lambda x: (x * 2 + 1).exp(), tensor(16), tune=True).parts) == 1


def test_what_is_taken_by_default_follows_from_the_graph_alone(monkeypatch):
    def measured(node):
        raise AssertionError("a call is measured")

    monkeypatch.setattr(speed, "measured", measured)
    monkeypatch.setattr(speed, "_smallest_call", lambda: measured(None))
    found = explained(normalized, tensor(64, 128), take="default")
    assert "mean" in found.parts[0]
    assert explained(lambda x: torch.mul(x, 2.0), tensor(16), take="default").left == [
        ("mul", "alone it takes as long as in PyTorch")
    ]
    assert not explained(lambda x: torch.mul(x, 2.0), tensor(64, 128), take="default").left


def test_a_large_table_of_gradients_stays_with_pytorch():
    table, at = tensor(4096, 64).requires_grad_(), torch.tensor([3, 1, 3])
    found = aclnn.torch.explain(torch.nn.functional.embedding, at, table)
    assert ("embedding_dense_backward", "PyTorch's kernel is known to be faster") in found.left
    torch._dynamo.reset()
    found = aclnn.torch.explain(torch.nn.functional.embedding, at, table, options={"take": "all"})
    assert not found.left


@pytest.mark.parametrize("options", [{"tune": 1}, {"freeze": None}, {"check": "yes"}])
def test_switches_are_bools(options):
    with pytest.raises(aclnn.AclnnError, match=r"(tune|freeze|check) is .* must be a bool"):
        dynamo.Options.of(options)


def test_similar_shapes_share_a_measurement(times, monkeypatch, tmp_path):
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path))
    measured, known = [], speed.measured

    def counted(node):
        measured.append(speed.description_of(node))
        return known(node)

    monkeypatch.setattr(speed, "measured", counted)
    for rows in (100, 120, 128):
        explained(torch.softmax, tensor(rows, 64), -1, tune=True)
    assert measured == ["aten._softmax.default(float32[128,64], -1, False)"]
    explained(torch.softmax, tensor(130, 64), -1, tune=True)  # neither is clearly faster
    explained(torch.softmax, tensor(64, 128).t(), -1, tune=True)
    assert measured[1:] == [
        "aten._softmax.default(float32[192,64], -1, False)",
        "aten._softmax.default(float32[128,64] strides 10, -1, False)",
    ]
    kept = measurements.read(measurements.files()[0])
    assert set(measured) <= kept.keys()


def test_what_is_clearly_faster_is_not_measured_for_other_sizes(times, monkeypatch, tmp_path):
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(tmp_path))
    measured, known = [], speed.measured

    def counted(node):
        measured.append(speed.value_of(node).shape[0])
        return known(node)

    monkeypatch.setattr(speed, "measured", counted)
    times["_softmax"] = 20.0, 40.0
    for rows in (128, 256, 512, 2048):
        explained(torch.softmax, tensor(rows, 64), -1, tune=True)
    assert measured == [128, 2048]  # 512 is near 128, which 2048 is not
    found = explained(torch.softmax, tensor(1024, 128), -1, tune=True)
    assert measured == [128, 2048]
    assert found.taken == 1


def test_measured_times_are_those_of_a_call():
    x = tensor(64, 256)
    with FakeTensorMode() as mode:
        (node,) = graph_of(torch.exp, [mode.from_tensor(x)]).graph.find_nodes(
            op="call_function", target=torch.ops.aten.exp.default
        )
    assert all(0.1 < one < 1e5 for one in speed.measured(node))


@pytest.mark.parametrize("options", [{"take": "al"}, {"take": None}])
def test_what_is_taken_is_one_of_two(options):
    with pytest.raises(aclnn.AclnnError, match=r"take is .* must be one of 'default', 'all'"):
        aclnn.torch.explain(torch.exp, tensor(4), options=options)


def test_views_of_inputs_and_of_whole_results_join_a_part():
    def function(x):
        return torch.atan((torch.nn.functional.gelu(x.view(4, 6)) * 2).t().reshape(2, 12))

    found = explained(function, tensor(24))
    assert found.parts == [("view", "gelu", "mul", "t", "clone", "_unsafe_view")]


def test_views_that_others_read_stay_outside():
    def function(x):
        made = torch.nn.functional.gelu(x) * 2
        first, second = made.split(2, -1)
        return torch.atan(first), torch.atan(second), x.view(-1), x.view(-1).exp() * 2

    x = tensor(3, 4)
    found = explained(function, x)
    assert found.parts == [("gelu", "mul", "view", "exp", "mul")]
    assert {"split", "view"} <= {name for name, _ in found.left}
    compiled = torch.compile(function, backend="aclnn")(x)
    torch.testing.assert_close(compiled, function(x))
    assert compiled[2].data_ptr() == x.data_ptr()


def test_splits_inside_of_a_part():
    def function(x):
        gate, value, rest = x.split([1, 2, 1], 1)
        return (gate * value + rest).exp() * torch.cat(x.chunk(2, 1), 0).sum()

    x = tensor(3, 4)
    found = explained(function, x)
    assert "split" in found.parts[0]
    torch.testing.assert_close(torch.compile(function, backend="aclnn")(x), function(x))


# --- Several results ------------------------------------------------------------------------------


def parts_read_inside_and_outside(x):
    first, second, third = (gelu(x) + 1).split(2, -1)
    return silu(first) * 2 + second, second, third


def parts_read_by_others(x):
    first, second, third = (gelu(x) + 1).split([1, 2, 3], -1)
    return silu(second).sin(), torch.atan(first), gelu(silu(third) + 1)


def parts_of_parts(x):
    first, second = gelu(x).chunk(2, -1)
    return first * silu(second), first.chunk(3, -1)


def parts_of_an_input(x):
    first, second = x.split(3, -1)
    return gelu(first) * 2 + 1, second


def parts_between(x):
    return [gelu(torch.atan(one)) for one in (gelu(x) + 1).split(2, -1)]


def some_of_the_rows(x):
    return [silu(one * 2) for one in (gelu(x) * 2).unbind(0)][1], gelu(x).chunk(2, -1)[:1]


def transposed_inside_and_outside(x):
    made = gelu(x).t()
    return silu(made[1:]) * 2, made[:2], made


def named_results(x):
    return torch.topk(gelu(x), 2), torch.max(gelu(x), -1), torch.var_mean(gelu(x), -1)


def nested_results(x):
    return {"a": (gelu(x) * 2, [x, None, 3]), "b": x, "c": gelu(x)[:, :2], "d": ()}


def views_of_an_input(x):
    return x.t(), gelu(x).t(), x[1:], x


def numbers(x):
    return x.shape[0], silu(x) * 2, x.ndim, 2.5, None, True


def the_same_twice(x):
    made = gelu(x) * 2
    return made, made, made.t(), made[0]


def nothing(x):
    return None


def written_in_place(x):
    made = x.clone()
    return made.add_(1), gelu(made).chunk(2, -1)


gelu, silu = torch.nn.functional.gelu, torch.nn.functional.silu
OF_SEVERAL = [
    parts_read_inside_and_outside,
    parts_read_by_others,
    parts_of_parts,
    parts_of_an_input,
    parts_between,
    some_of_the_rows,
    transposed_inside_and_outside,
    named_results,
    nested_results,
    views_of_an_input,
    numbers,
    the_same_twice,
    nothing,
    written_in_place,
]


def is_tracked(one):
    return isinstance(one, torch.Tensor) and one.grad_fn is not None


@pytest.mark.parametrize("tracked", [False, True])
@each("function", OF_SEVERAL)
def test_results_have_the_structure_and_the_layout_of_eager_ones(tracked, function):
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="aclnn")
    for rows in (4, 5):
        x, y = (tensor(rows, 6).requires_grad_(tracked) for _ in range(2))
        (ours, structure), (eager, wanted_structure) = map(tree_flatten, (compiled(x), function(y)))
        assert structure == wanted_structure
        for one, wanted in zip(ours, eager, strict=True):
            assert type(one) is type(wanted)
            assert (one is x) == (wanted is y)
            assert is_tracked(one) == is_tracked(wanted)
            if isinstance(wanted, torch.Tensor):
                torch.testing.assert_close(one, wanted, check_stride=True)
            else:
                assert one == wanted
        if any(map(is_tracked, eager)):
            gradient, wanted = (
                torch.autograd.grad([one.sin().sum() for one in filter(is_tracked, given)], [at])
                for given, at in ((ours, x), (eager, y))
            )
            torch.testing.assert_close(gradient, wanted)


def test_views_of_a_part_share_its_memory():
    first, whole = torch.compile(lambda x: (lambda y: (y[0], y))(gelu(x) * 2 + 1), backend="aclnn")(
        tensor(3, 4)
    )
    assert first.data_ptr() == whole.data_ptr()


def test_explanations_of_long_parts_have_short_lines():
    def function(x):
        for _ in range(30):
            x = (x * 2.0 + 1.0).sigmoid()
        return torch.atan(x.t())

    lines = str(explained(function, tensor(4, 4))).splitlines()
    assert max(map(len, lines)) <= 100
    assert "    " in lines[2][:6]
    assert sum(line.count("sigmoid") for line in lines) == 30


# --- Shapes that vary ------------------------------------------------------------------------------


def graphs_compiled():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


@pytest.mark.parametrize("dynamic", [None, False, True])
def test_each_shape_has_executors(dynamic):
    def scaled(x):
        return torch.nn.functional.gelu(x) * 2 + 1

    compiled = torch.compile(scaled, backend="aclnn", dynamic=dynamic)
    for rows in (4, 8, 5, 4):
        x = torch.rand(rows, 16)
        torch.testing.assert_close(compiled(x), scaled(x))
        with aclnn.profile() as profile:
            compiled(x)
        assert "aclnn_part" in repr(profile)


def sizes_in_the_graph(x, y):
    rows, columns = x.shape
    made = torch.nn.functional.gelu(x.view(columns, rows) * rows) + torch.arange(rows) * 0.5
    return made[: rows // 2].t() @ y[: rows // 2], rows * 2, made.reshape(-1), x


def a_pair(x, y):
    return gelu(x @ y).t() * 2, x.sum(0)


def written_sizes(x, y):
    made = x.clone()
    made[: x.shape[0] // 2] += 1
    return gelu(made) * 2, y.add_(1)


@pytest.mark.parametrize("tracked", [False, True])
@each("function", [sizes_in_the_graph, written_sizes, a_pair])
def test_further_shapes_compile_nothing_anew(tracked, function):
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="aclnn")
    for count, rows in enumerate((4, 6, 8, 10, 7, 6)):
        x, y = tensor(rows, 12).requires_grad_(tracked), tensor(12, 12)
        before = graphs_compiled()
        ours, wanted = compiled(x, y.clone()), function(x, y.clone())
        assert (
            graphs_compiled() == before or count < 2 + tracked
        )  # gradients have guards of their own
        for one, other in zip(ours, wanted, strict=True):
            assert type(one) is type(other)
            torch.testing.assert_close(one, other, check_stride=isinstance(one, torch.Tensor))
        if tracked:
            gradients = [torch.autograd.grad(one[0].sin().sum(), [x])[0] for one in (ours, wanted)]
            torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-4)


def test_graphs_of_many_shapes_are_bounded(monkeypatch):
    monkeypatch.setattr(shapes, "MOST_SHAPES", 3)
    made = []

    class Counting(shapes.Specialized):
        def __init__(self, *given):
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(dynamo, "Specialized", Counting)
    compiled = torch.compile(lambda x: gelu(x) * 2, backend="aclnn", dynamic=True)
    for rows in (2, 3, 4, 5, 6, 5, 4, 7, 2):
        x = tensor(rows, 3)
        torch.testing.assert_close(compiled(x), gelu(x) * 2)
        assert len(made) == 1
        assert len(made[0]._made) <= 3


def test_shapes_from_several_threads():
    compiled = torch.compile(lambda x: (gelu(x) * 2).sum(-1), backend="aclnn", dynamic=True)
    given = [tensor(rows, 5, seed=rows) for rows in range(2, 10)] * 4
    compiled(given[0])
    with ThreadPoolExecutor(4) as pool:
        for x, made in zip(given, pool.map(compiled, given), strict=True):
            torch.testing.assert_close(made, (gelu(x) * 2).sum(-1))


def test_numbers_and_shapes_that_vary():
    def function(x, number):
        return gelu(x) * number, x.shape[0] * 2

    compiled = torch.compile(function, backend="aclnn")
    with torch.no_grad():
        for rows, number in ((1, 2), (1000, 3), (1000, 2.5), (2, 0.5), (7, 1.5), (1000, 4)):
            (ours, count), (wanted, _) = (
                compiled(tensor(rows, 8), number),
                function(tensor(rows, 8), number),
            )
            torch.testing.assert_close(ours, wanted)
            assert count == rows * 2


def test_numbers_that_vary():
    compiled = torch.compile(lambda x, n: gelu(x) * n + x.shape[0], backend="aclnn")
    for n in (2, 3, 5, 0.5, 0.25, 7.0):
        x = tensor(4, 3)
        torch.testing.assert_close(compiled(x, n), gelu(x) * n + 4)


# --- Writes into inputs ---------------------------------------------------------------------------


def put(cache, rows, at):
    cache.index_copy_(1, at, rows * 2)
    return cache.sum(-1)


def put_twice(cache, rows, at):
    cache.index_copy_(1, at, rows)
    made = cache.exp()
    cache.mul_(2)
    return made, cache[:, 1:] + 1


def put_slice(cache, rows, at):
    before = cache.relu()
    cache[:, 2:4] = rows
    return before


def put_and_hand_out(cache, rows, at):
    made = cache.index_copy(1, at, rows)
    cache.copy_(made)
    return made, made.mT


def put_nothing_else(cache, rows, at):
    cache.index_copy_(1, at, rows)


@pytest.mark.parametrize("take", ["all", "default"])
@pytest.mark.parametrize(
    "function", [put, put_twice, put_slice, put_and_hand_out, put_nothing_else],
    ids=lambda one: one.__name__,
)  # fmt: skip
def test_inputs_are_written_in_place(function, take):
    compiled = torch.compile(function, backend="aclnn", options={"take": take})
    rows, at = torch.randn(3, 2, 8), torch.tensor([4, 1])
    with torch.no_grad():
        for _ in range(3):  # the first plans, later ones are prepared
            start = torch.randn(3, 6, 8)
            ours, wanted = start.clone(), start.clone()
            version = ours._version
            made, other = compiled(ours, rows, at), function(wanted, rows, at)
            torch.testing.assert_close(ours, wanted)
            torch.testing.assert_close(made, other)
            assert ours._version > version
            for one in made if isinstance(made, tuple) else (made,):
                if one is not None:  # what is given is no view of what was written
                    one += 1
            torch.testing.assert_close(ours, wanted)


@pytest.mark.parametrize("take", ["all", "default"])
def test_inputs_that_are_written_and_returned_are_themselves(take):
    def function(x, y):
        y.copy_(x.exp())
        x.mul_(2)
        return y, x, y.view(-1), y + 0

    compiled = torch.compile(function, backend="aclnn", options={"take": take})
    given, wanted = ([tensor(4, 3), tensor(4, 3, seed=1)] for _ in range(2))
    for _ in range(2):  # the second call is prepared
        made, eager = compiled(*given), function(*wanted)
        assert made[0] is given[1]
        assert made[1] is given[0]
        assert made[2].data_ptr() == given[1].data_ptr() != made[3].data_ptr()
        torch.testing.assert_close((*made, *given), (*eager, *wanted))


@pytest.mark.parametrize("take", ["all", "default"])
def test_statistics_that_gradients_need_are_written_by_executors(take):
    """Batch norm keeps the new ones for its gradient, and in a buffer."""

    def function(x, mean, var):
        made = torch.nn.functional.batch_norm(x.exp(), mean, var, training=True)
        return torch.nn.functional.dropout(made, 0.0) * 2

    compiled = torch.compile(function, backend="aclnn", options={"take": take})
    pairs = [[tensor(8, 3), torch.zeros(3), torch.ones(3)] for _ in range(2)]
    for _ in range(2):
        made = []
        for run, (x, mean, var) in zip((compiled, function), pairs, strict=True):
            result = run(x.requires_grad_(), mean, var)
            (gradient,) = torch.autograd.grad(result.sin().sum(), [x])
            made.append([result.detach(), gradient, mean, var])
        torch.testing.assert_close(*made, rtol=2e-5, atol=2e-5)
    assert pairs[0][1]._version > 0
    torch._dynamo.reset()
    found = aclnn.torch.explain(function, *pairs[0], options={"take": take})
    assert "copy_" not in {name for name, _ in found.left}


@pytest.mark.parametrize("stable", [True, False])
def test_equal_elements_are_ordered_as_by_pytorch(stable):
    """Which is in no order that is documented, unless a stable one is asked for."""
    x = torch.arange(8000).remainder(3).to(torch.bfloat16)

    def function(x):
        return torch.sort(x * 2, stable=stable)

    found = explained(function, x)
    reason = "the order of equal elements is PyTorch's own"
    assert [one for one in found.left if one[1] == reason] == ([] if stable else [("sort", reason)])
    assert explained(lambda x: torch.sort(x * 2).values, x).left == []
    compiled = torch.compile(function, backend="aclnn", options={"take": "all"})
    for made, wanted in zip(compiled(x), function(x), strict=True):
        assert torch.equal(made, wanted)


def test_a_cache_is_not_copied():
    cache, rows, at = torch.zeros(4, 512, 16), torch.ones(4, 1, 16), torch.tensor([7])
    with torch.no_grad():
        found = aclnn.torch.explain(put, cache, rows, at, options={"take": "all"})
    assert [name for name, _ in found.left] == []
    assert max(found.workspaces) < cache.nbytes // 2
    assert float(cache.sum()) == 2 * 4 * 16


def test_an_input_that_shows_another_one_is_read_as_it_is_after_writes():
    def function(cache, part, rows, at):
        cache.index_copy_(1, at, rows)
        return part * 2

    compiled = torch.compile(function, backend="aclnn", options={"take": "all"})
    rows, at = torch.ones(3, 1, 8), torch.tensor([2])
    with torch.no_grad():
        for _ in range(2):
            cache = torch.randn(3, 6, 8)
            made = compiled(cache, cache[:, 2], rows, at)
            torch.testing.assert_close(made, torch.full((3, 8), 2.0))


def test_several_views_that_one_node_gives_are_taken():
    def function(x):
        q, k, v = x.unbind(0)
        return (q * k + v).unsqueeze(1).squeeze(1).squeeze()

    x = torch.randn(3, 4, 1, 5)
    with torch.no_grad():
        found = aclnn.torch.explain(function, x, options={"take": "all"})
        assert found.left == []
        compiled = torch.compile(function, backend="aclnn")
        torch.testing.assert_close(compiled(x), function(x))


def grown(x, y):
    made = x * 3
    made += y
    made.mul_(2)
    return torch.nn.functional.relu(made, inplace=True) + made


def shown_before(x, y):
    made = x * 3
    row = made[0]
    made.add_(y)
    return row * made


def shown_after(x, y):
    made = (x * 3).add_(y)
    row = made[0]
    row.sqrt_()
    return made * 2, row


def widened(x, y):
    made = x.neg()
    made += y
    return made, x


def input_written(x, y):
    return x.add_(y).relu_() * y


@pytest.mark.parametrize(
    "function", [grown, shown_before, shown_after, widened, input_written],
    ids=lambda one: one.__name__,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("tracked", [False, True])
def test_values_that_a_graph_writes_itself(function, tracked):
    compiled = torch.compile(function, backend="aclnn", options={"take": "all"})
    each = []
    for one in (compiled, function):
        x, y = tensor(4, 3).requires_grad_(tracked), tensor(4, 3, seed=1).double()
        own = x * 1  # leaves that are tracked may not be written
        made = one(own, y if function is widened else y.float())
        several = made if isinstance(made, tuple) else (made,)
        if tracked:
            torch.autograd.backward([each.sum() for each in several])
        each.append((several, own, x.grad))
    torch.testing.assert_close(*each)


@pytest.mark.parametrize("take", ["all", "default"])
def test_gradients_of_results_lie_as_they_will(take):
    def function(x, w):
        return torch.nn.functional.gelu(torch.nn.functional.linear(x, w)) * 2

    compiled = torch.compile(function, backend="aclnn", options={"take": take})
    grad = torch.randn(5, 3, 2).permute(2, 1, 0)
    each = []
    for one in (compiled, function):
        x, w = tensor(2, 3, 4).requires_grad_(), tensor(5, 4).requires_grad_()
        one(x, w).backward(grad)
        each.append((x.grad, w.grad))
    torch.testing.assert_close(*each)


def test_first_powers_of_derivatives_cost_nothing():
    """The derivative of a square is 2 * grad * x**1."""

    def normed(x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    x = tensor(4, 8).requires_grad_()
    found = aclnn.torch.explain(normed, x, options={"take": "all"})
    powers = [name for part in found.parts for name in part if name == "pow"]
    assert (
        len(powers) == 2
    )  # the square, and in the backward pass the third power of rsqrt's derivative
    compiled = torch.compile(normed, backend="aclnn", options={"take": "all"})
    each = [torch.autograd.grad(one(x).square().sum(), x)[0] for one in (compiled, normed)]
    torch.testing.assert_close(*each)


def test_calls_of_layers_that_repeat_are_tried_once(monkeypatch):
    tried, known = [], support._reason_of_trial

    def counted(node):
        tried.append(node.target._opname)
        return known(node)

    def layers(x, w):
        for _ in range(4):
            x = torch.tanh(x @ w)
        return x

    monkeypatch.setattr(support, "_reason_of_trial", counted)
    x, w = tensor(8, 8).requires_grad_(), tensor(8, 8).requires_grad_()
    found = aclnn.torch.explain(layers, x, w, options={"take": "all"})
    assert {name for name, _ in found.left} <= {"detach", "t"}
    assert tried.count("tanh") == tried.count("tanh_backward") == 1
    assert tried.count("mm") <= 6  # of the forward pass, and by both operands, in two layouts


def test_products_with_one_that_are_results_are_tensors_of_their_own():
    def same(x, w):
        return x * 1, w.pow(1)

    x, w = tensor(4, 8).requires_grad_(), tensor(4, 8).requires_grad_()
    compiled = torch.compile(same, backend="aclnn", options={"take": "all"})
    made = compiled(x, w)
    assert made[0].data_ptr() != x.data_ptr()
    assert made[1].data_ptr() != w.data_ptr()
    found = torch.autograd.grad([made[0].sum(), made[1].sum()], (x, w))
    torch.testing.assert_close(found, (torch.ones(4, 8), torch.ones(4, 8)))


@pytest.mark.parametrize("is_constant", [True, False])
def test_attention_with_a_mask_of_bools_is_trained_in_one_part(is_constant):
    """PyTorch makes numbers of the mask on the way."""

    def attend(q, k, v, mask):
        places = torch.arange(q.shape[-2])
        seen = places[:, None] >= places if is_constant else mask
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen) * 2

    given = [tensor(1, 2, 6, 8, seed=seed).requires_grad_() for seed in range(3)]
    mask = (tensor(6, 6, seed=4) > 0.3) | torch.eye(6, dtype=torch.bool)
    options = {"take": "all"}
    found = aclnn.torch.explain(attend, *given, mask, options=options)
    assert not [(name, why) for name, why in found.left if not why.startswith("a view")]
    torch._dynamo.reset()
    made = torch.compile(attend, backend="aclnn", options=options)
    direction = tensor(1, 2, 6, 8, seed=3)
    ours, wanted = (
        torch.autograd.grad((one(*given, mask) * direction).sum(), given) for one in (made, attend)
    )
    torch.testing.assert_close(ours, wanted)


class Clipped(torch.autograd.Function):
    """Rounds, and hands the gradient through where numbers are small: not what its calls have."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return torch.floor(x * scale) / scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.where(x.abs() < 0.5, grad * ctx.scale, 0), None


def test_results_that_have_no_gradient_are_none_of_autograds():
    """Those of detached values and of indices: the others' gradients are computed once."""

    def model(x):
        return gelu(x) * 2, (x.detach() * 3).exp(), x.argmax(0), (x * 2).detach() + 1

    x = tensor(16, 64).requires_grad_()
    made = torch.compile(model, backend="aclnn", options={"take": "all"})
    for _ in range(2):
        results = made(x), model(x)
        for one, wanted in zip(*results, strict=True):
            assert one.requires_grad == wanted.requires_grad
            torch.testing.assert_close(one, wanted)
        torch.testing.assert_close(
            *[torch.autograd.grad(one[0].sin().sum(), x)[0] for one in results]
        )


OF_DYNAMO = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")


@OF_DYNAMO
@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("take", ["all", "default"])
def test_functions_with_gradients_of_their_own_are_inside_of_parts(tracked, take):
    def model(x, y):
        return torch.tanh(Clipped.apply(x * y + 0.1, 4.0) * x + torch.exp(-y))

    given = [tensor(16, 64, seed=seed).requires_grad_(tracked) for seed in range(2)]
    options = {"take": take}
    found = aclnn.torch.explain(model, *given, options=options)
    assert {name for name, _ in found.left} <= {"detach"}
    assert len(found.parts) == 1 + tracked
    torch._dynamo.reset()
    made = torch.compile(model, backend="aclnn", options=options, fullgraph=True)
    for _ in range(2):
        ours, wanted = (one(*given) for one in (made, model))
        torch.testing.assert_close(ours, wanted)
        if tracked:
            direction = tensor(16, 64, seed=2)
            gradients = [
                torch.autograd.grad((one * direction).sum(), given) for one in (ours, wanted)
            ]
            torch.testing.assert_close(*gradients)


@OF_DYNAMO
def test_functions_that_pytorch_does_keep_their_gradients():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.special.i0(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    def model(x):
        return torch.exp(Twice.apply(torch.sin(x) * 2)) + x

    x = tensor(8, 8).requires_grad_()
    made = torch.compile(model, backend="aclnn", options={"take": "all"})
    ours, wanted = (torch.autograd.grad(one(x).sum(), x) for one in (made, model))
    torch.testing.assert_close(ours, wanted)


def test_nodes_know_the_modules_that_called_for_them():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)

        def forward(self, x):
            return x + torch.sin(self.up(self.norm(x)))

    model = torch.compile(torch.nn.Sequential(Block(), Block()).eval(), backend="aclnn")
    with torch.no_grad(), aclnn.profile() as seen:
        model(torch.ones(4, 8))
    nodes = [node for run in seen.runs for node in run.plan.graph.nodes]
    found = {node.attr("kernel"): node.origin for node in nodes if node.origin[:1] == ("1: Block",)}
    assert found["layer_norm"] == ("1: Block", "1.norm: LayerNorm")
    assert found["matmul"] == ("1: Block", "1.up: Linear")
    assert {node.origin[0] for node in nodes} == {"0: Block", "1: Block"}


# --- Products --------------------------------------------------------------------------------------


class Feeding(torch.nn.Module):
    """Two linear layers with what transformers have between and behind them."""

    def __init__(self):
        super().__init__()
        self.norm, self.up = torch.nn.LayerNorm(8), torch.nn.Linear(8, 16)
        self.down = torch.nn.Linear(16, 8, bias=False)
        self.scale = torch.nn.Parameter(torch.linspace(0.5, 2, 16))

    def forward(self, x):
        inner = torch.nn.functional.gelu(self.up(self.norm(x))) * self.scale
        x = x + self.down(inner)
        return x, torch.relu(self.up(x)), inner.sum((0, 1))


@pytest.mark.parametrize("tracked", [False, True])
def test_pointwise_calls_become_steps_of_products_of_batches(tracked):
    torch.manual_seed(0)
    model, x = Feeding(), tensor(2, 3, 8)
    compiled = torch.compile(model, backend="aclnn", options={"take": "all"})
    with torch.set_grad_enabled(tracked), aclnn.profile() as seen:
        ours, wanted = compiled(x), model(x)
    for one, other in zip(ours, wanted, strict=True):
        torch.testing.assert_close(one, other, check_stride=True)
    if tracked:
        found = [
            torch.autograd.grad(one[0].sum() + one[1].sum(), model.up.weight)[0]
            for one in (ours, wanted)
        ]
        torch.testing.assert_close(*found)
        return
    (run,) = seen.runs
    steps = [[step.kernel for step in steps_of(node)] for node in run.plan.graph.nodes]
    assert [one for one in steps if one] == [["gelu", "mul"], ["add"], ["relu"]]


def test_frozen_weights_follow_what_changes_them():
    torch.manual_seed(0)
    model, x = Feeding(), tensor(2, 3, 8)
    compiled = torch.compile(model, backend="aclnn", options={"take": "all", "freeze": True})

    def same():
        return all(
            torch.allclose(*pair, atol=1e-6) for pair in zip(compiled(x), model(x), strict=True)
        )

    with torch.no_grad():
        assert same()
        model.up.weight.mul_(2)
        assert same()
        model.load_state_dict(Feeding().state_dict())
        assert same()
        model.up.weight.data = torch.rand(16, 8)
        assert same()
        model.down.weight = torch.nn.Parameter(torch.rand(8, 16))
        assert same()
        x = tensor(3, 5, 8)  # another description
        assert same()
    found = torch.autograd.grad(
        compiled(x)[0].sum(), model.up.weight
    )  # weights are not frozen here
    torch.testing.assert_close(found, torch.autograd.grad(model(x)[0].sum(), model.up.weight))


def test_frozen_weights_are_explained():
    model, options = Feeding(), {"take": "all", "freeze": True}
    with torch.no_grad():
        found = aclnn.torch.explain(model, tensor(2, 3, 8), options=options)
    assert found.frozen == 2 * 4 * 8 * 16
    assert "frozen weights: 1,024 bytes" in str(found)
    with pytest.raises(aclnn.AclnnError, match="freeze is 1, must be a bool"):
        dynamo.Options.of({"freeze": 1})


def test_measured_indices_choose_among_all_that_there_is():
    aten = torch.ops.aten
    at, rows = torch.zeros(40, dtype=torch.int64), tensor(10, 8)
    calls = [
        lambda x, i: aten.embedding(x, i),
        lambda x, i: aten.index_select(x, 0, i),
        lambda x, i: aten.index(x, [i]),
        lambda x, i: aten.embedding_dense_backward(aten.embedding(x, i), i, 10, -1, False),
    ]
    for call in calls:
        graph = graph_of(call, [*map(FakeTensorMode().from_tensor, (rows, at))])
        indices = list(graph.graph.find_nodes(op="placeholder"))[1]
        node = [one for one in graph.graph.nodes if one.op == "call_function"][-1]
        (found, *_) = speed.example(speed.value_of(indices), speed._bound_of(node, indices))
        assert set(found.tolist()) == set(range(10))
        for one in speed._both(node):
            one()


def test_weights_that_others_read_are_not_frozen():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.rand(8, 8))

        def forward(self, x):
            return torch.nn.functional.linear(x, self.weight) + self.weight.sum(0)

    with torch.no_grad():
        assert aclnn.torch.explain(Tied(), tensor(2, 8), options={"freeze": True}).frozen == 0


# --- Writes, copies and gradients that AOTAutograd takes care of -----------------------------------

OF_LEAVES = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")


def number_into_a_column(x):
    y = x * 1.5
    y[:, 1] = 2.0
    return y.sum(0)


def number_where_a_mask_says(x):
    y = x * 1.0
    y[x.detach() > 0.5] = float("-inf")
    return y.softmax(-1)


def number_into_a_copy(x):
    y = x.clone()
    y[x.detach() > 0.5] = 0.0
    return y * 3


def number_into_a_row(x):
    y = torch.sigmoid(x) * 1
    y[1] = 0.0
    return y.exp()


def number_after_a_read(x):
    v = x[:, 1:3]
    y = torch.relu(v) + 1
    x[:, 2] = -7
    return y, v * 1


def several_at_once(x):
    y = x * 3
    torch._foreach_mul_([y], 2.0)
    return y + 1


WRITTEN = [
    number_into_a_column, number_where_a_mask_says, number_into_a_copy, number_into_a_row,
    number_after_a_read, several_at_once,
]  # fmt: skip


def copy_of(make):
    """A function that copies its operand and writes into it afterwards."""

    def function(x):
        made = make(x)
        x.add_(1)
        return made

    return function


COPIED = {
    "clone": torch.clone,
    "clone of a view": lambda x: x[1:].clone(),
    "contiguous": lambda x: x.t().contiguous(),
    "flip": lambda x: x.flip(0),
    "copy_": lambda x: torch.zeros(x.shape).copy_(x),
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.5, False).clone(),
    "slices": lambda x: torch.zeros(x.shape).slice_scatter(x[1:], 0, 1),
    "conversion": lambda x: x.to(torch.float64).to(torch.float32, copy=True),
    "cat": lambda x: torch.cat([x]),
    "where": lambda x: torch.where(torch.tensor(True), x, 0),
}


def rows_into_another(dst, src):
    dst[0:, :] = src[0:, :]
    src.add_(1)
    return dst


def compared_with_eager(function, inputs, tracked, take):
    """Results, inputs afterwards, which of them have gradients, and these."""
    each = []
    for one in (torch.compile(function, backend="aclnn", options={"take": take}), function):
        leaves = [x.clone().requires_grad_(tracked and x.is_floating_point()) for x in inputs]
        own = [x * 1 if x.requires_grad else x for x in leaves]  # a leaf may not be written
        made = one(*own)
        results = tree_flatten(made)[0]
        losses = [y.sum() for y in results if y.requires_grad]
        if losses:
            torch.autograd.backward(losses)
        each.append((results, own, [y.requires_grad for y in results], [x.grad for x in leaves]))
    torch.testing.assert_close(*each, equal_nan=True)


@OF_LEAVES
@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("take", ["all", "default"])
@each("function", WRITTEN)
def test_numbers_are_written_in_their_place(take, tracked, function):
    torch._dynamo.reset()
    compared_with_eager(function, [tensor(3, 4)], tracked, take)


@OF_LEAVES
@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("take", ["all", "default"])
@each("name", COPIED)
def test_copies_have_what_was_there(take, tracked, name):
    torch._dynamo.reset()
    compared_with_eager(copy_of(COPIED[name]), [tensor(3, 3)], tracked, take)


@pytest.mark.parametrize("take", ["all", "default"])
def test_rows_are_copied_before_they_change(take):
    compared_with_eager(rows_into_another, [tensor(2, 3), tensor(2, 3, seed=1)], False, take)


@OF_LEAVES
@each(
    "function",
    [
        lambda x: x > 0.5, torch.argmax, lambda x: torch.masked_select(x, x > 0.5),
        lambda x: (x > 0.5).sum(), lambda x: (x.round().to(torch.int64), x.detach() * 2),
        lambda x: (made := x.sum(), made.unsqueeze(0).detach()),
        lambda x: (made := x.exp(), made.t().detach(), made.t().detach()),
    ],
)  # fmt: skip
def test_results_without_gradients_of_what_requires_them(function):
    torch._dynamo.reset()
    compared_with_eager(function, [tensor(3, 4)], True, "default")


@OF_LEAVES
@each(
    "function",
    [
        lambda z: (z * z.conj()).real, lambda z: z.conj().imag * 2 + 1,
        lambda z: torch.view_as_real(z.conj().resolve_conj()).exp(),
        lambda z: (z.conj().imag, z.conj().imag.neg() + z.real),
        lambda z: z.mH.imag.exp() @ z.real,
    ],
)  # fmt: skip
@pytest.mark.parametrize("tracked", [False, True])
def test_conjugated_and_negated_views(tracked, function):
    torch._dynamo.reset()
    z = torch.complex(tensor(3, 3), tensor(3, 3, seed=1))
    each = []
    for one in (torch.compile(function, backend="aclnn", options={"take": "all"}), function):
        own = z.clone().requires_grad_(tracked)
        results = tree_flatten(one(own))[0]
        if tracked:
            torch.autograd.backward([y.sum() for y in results])
        each.append((results, own.grad))
    torch.testing.assert_close(*each)


def test_negated_arguments():
    def function(x):
        return torch.exp(x) * 2 + 1

    z = torch.complex(tensor(3, 3), tensor(3, 3, seed=1))
    compiled = torch.compile(function, backend="aclnn", options={"take": "all"})
    for one in (z.imag, z.conj().imag, torch._neg_view(tensor(3, 3))):
        torch.testing.assert_close(compiled(one), function(one))


@OF_LEAVES
@pytest.mark.parametrize("tracked", [False, True])
def test_numbers_become_tensors(tracked):
    def function(x):
        return torch.scalar_tensor(2.5) * x, torch.scalar_tensor(3), torch.tensor([x.shape[0], 2.0])

    compared_with_eager(function, [tensor(3, 4)], tracked, "all")


def test_gradients_that_show_others_conjugated_are_read_as_such():
    """Those of results that do: what compiled them had no such in mind."""
    x = tensor(4, 6)
    made = torch.compile(torch.fft.ihfft, backend="aclnn", options={"take": "all"})
    for _ in range(2):
        found = []
        for one in (made, torch.fft.ihfft):
            leaf = x.clone().requires_grad_()
            result = one(leaf)
            seed = torch.complex(torch.ones_like(result.real), result.real.detach()).conj()
            found.append(torch.autograd.grad(result, leaf, seed)[0])
        torch.testing.assert_close(*found)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float32])
def test_parts_resolve_views_that_negate(dtype):
    z = torch.complex(tensor(3, 4), tensor(3, 4, seed=1))
    shown = z.conj() if dtype.is_complex else z.conj().imag
    part = part_of(lambda x: x * 2 + 1, torch.ones(3, 4, dtype=dtype))
    for x in (torch.ones(3, 4, dtype=dtype), shown, shown):
        torch.testing.assert_close(part(x), x * 2 + 1)


def test_dropout_leaves_its_random_numbers_alone():
    def function(x):
        return torch.nn.functional.dropout(x.exp(), 0.3).sin()

    x = tensor(4, 8).requires_grad_()
    found = aclnn.torch.explain(function, x, options={"take": "all"})
    assert {name for name, _ in found.left} == {"empty_strided", "bernoulli"}
    assert len(found.parts) == 2  # forward and backward


def test_what_draws_random_numbers_divides_no_graph():
    def function(x):
        made = torch.nn.functional.dropout(x.exp(), 0.3).sin()
        made = made + torch.randn_like(made) * torch.rand_like(made)
        made = torch.nn.functional.dropout2d(made * 2, 0.5).cos()
        return torch.nn.functional.alpha_dropout(made, 0.2, True) + made.clone().exponential_()

    x = tensor(2, 3, 4, 8)
    found = aclnn.torch.explain(function, x, options={"take": "all"})
    drawn = {"bernoulli", "randn_like", "rand_like", "exponential"}
    assert {name for name, _ in found.left} == drawn | {"empty_strided"}
    assert len(found.parts) == 1
    compiled = torch.compile(function, backend="aclnn", options={"take": "all"})
    torch.manual_seed(5)
    made = compiled(x), torch.rand(3)
    torch.manual_seed(5)
    torch.testing.assert_close(made, (function(x), torch.rand(3)))


@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last], ids=str)
def test_gradients_of_norms_of_batches_have_costs(form):
    """All of three, and fewer, beside those in float64."""
    x = tensor(4, 6, 5, 3).contiguous(memory_format=form)
    grad, weight = tensor(4, 6, 5, 3, seed=1).contiguous(memory_format=form), tensor(6, seed=2)
    mean, rstd = x.mean((0, 2, 3)), x.var((0, 2, 3), correction=0).add(1e-5).rsqrt()
    backward = torch.ops.aten.native_batch_norm_backward

    def run(wanted, *given):
        made = backward(*given[:3], None, None, *given[3:], True, 1e-5, wanted)
        return tuple([one for one, asked in zip(made, wanted, strict=True) if asked])

    for wanted in ([True, True, True], [False, True, False], [True, False, True]):
        given = (grad, x, weight, mean, rstd)
        part = part_of(lambda *given, wanted=wanted: run(wanted, *given), *given)
        for made, exact in zip(
            part(*given), run(wanted, *[one.double() for one in given]), strict=True
        ):
            torch.testing.assert_close(made.double(), exact, rtol=2e-5, atol=2e-5)
    leaf = x.clone().requires_grad_()
    found = aclnn.torch.explain(torch.nn.BatchNorm2d(6), leaf, options={"take": "all"})
    assert {"native_batch_norm_backward"} <= {one.name for one in found.costs}
    layer = torch.nn.Conv2d(6, 2, 2)
    found = aclnn.torch.explain(layer, x, options={"take": "all"})
    assert {"convolution_backward"} <= {one.name for one in found.costs}


@pytest.mark.parametrize("dtype", [torch.int64, torch.bfloat16])
def test_equal_elements_are_chosen_among_by_pytorch(dtype):
    x = torch.tensor([[3, 1, 3, 3, 2, 1, 3, 2]], dtype=dtype)
    run = torch.compile(lambda x: x.topk(3), backend="aclnn", options={"take": "all"})
    torch.testing.assert_close(run(x)[1], x.topk(3)[1])


def test_parts_read_tensors():
    def function():
        return torch.scalar_tensor(2.5), torch.scalar_tensor(4)

    found = explained(function)
    assert found.parts == []
    assert found.left == [("scalar_tensor", "it reads no tensor")] * 2
    compared_with_eager(function, [], False, "all")


def test_constants_that_are_returned_have_constants_that_depend_on_them():
    """What is returned is computed by each call; what else depends on it is still known."""

    def function(x):
        places = torch.arange(4)
        return x + places * 2, places

    compiled = torch.compile(function, backend="aclnn")
    for _ in range(2):
        made, places = compiled(torch.zeros(3, 4))
        assert made.tolist() == [[0, 2, 4, 6]] * 3
        assert places.tolist() == [0, 1, 2, 3]
        places.zero_()


# --- Checks and costs -----------------------------------------------------------------------------


def with_a_cache(x, cache):
    made = torch.softmax(x.exp(), -1)
    cache.mul_(2)
    return made + 1, (made * x).sum(-1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_checked_executors_that_are_right_say_nothing(dtype, recwarn):
    compiled = torch.compile(with_a_cache, backend="aclnn", options={"check": True})
    x, caches = tensor(4, 8).to(dtype), [tensor(3), tensor(3)]
    for made, wanted in zip(compiled(x, caches[0]), with_a_cache(x, caches[1]), strict=True):
        torch.testing.assert_close(made, wanted)
    assert torch.equal(*caches)  # written once
    assert not [one for one in recwarn if "ULP" in str(one.message)]


def test_the_first_node_that_differs_is_named(monkeypatch):
    def wrong(x, dim, half):
        return aclnn.softmax(x, dim) * 1.001

    target = torch.ops.aten._softmax.default
    monkeypatch.setitem(counterparts.WRITTEN_OUT, target, ("softmax", wrong))
    compiled = torch.compile(with_a_cache, backend="aclnn", options={"check": True})
    with pytest.warns(
        RuntimeWarning, match=r"the first that differs is _softmax \(aten._softmax\): [\d.e+]+ ULP"
    ):
        compiled(tensor(4, 8), tensor(3))
    with pytest.warns(RuntimeWarning, match="_softmax"):
        found = explained(with_a_cache, tensor(4, 8), tensor(3), check=True)
    assert max(found.differences) > 1000
    assert "differences from PyTorch: at most" in str(found)


def test_explanations_do_not_depend_on_what_was_compiled_before():
    """Dynamo gives up on a module's code once it was compiled for as many shapes as it allows."""
    made = torch.nn.Sequential(torch.nn.GELU(), torch.nn.Softmax(-1))
    run = torch.compile(made, backend="aclnn", dynamic=False)
    for size in range(2, 12):
        run(tensor(size, 3))
    for size in range(2, 12):
        found = explained(made, tensor(size, 3))
        assert (found.taken, len(found.parts)) == (2, 1)


def test_nodes_have_costs():
    found = explained(lambda x: torch.atan(x.exp() * 2) + x.T.exp().T, tensor(64, 64))
    assert "µs" not in str(found)
    costs = {one.name: one for one in found.costs}
    assert set(costs) == {"exp", "mul", "atan", "add"}
    assert [one.name for one in found.costs].count("exp") == 2
    assert (costs["exp"].executor, costs["atan"].executor) == (0, None)
    assert min(costs["exp"].ours, costs["exp"].theirs, costs["atan"].theirs) > 0
    assert "\n  exp: " in str(found)
    assert "µs, PyTorch's kernel" in str(found)


# --- Graphs that PyTorch keeps for other processes --------------------------------------------------

needs_cache = pytest.mark.skipif(
    dynamo.GraphPickler is None
    or dynamo.SerializableCompiler is None
    or not hasattr(dynamo.functorch_config, "bundled_autograd_cache"),
    reason="PyTorch before its cache took graphs of other compilers",
)
PROGRAM = """
import hashlib, torch
import torch._functorch.config as config
from torch._dynamo.utils import counters
config.force_autograd_cache = True  # small graphs as well
torch.manual_seed(0)
layers = [torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.GELU(), torch.nn.Dropout(0.3)]
model = torch.nn.Sequential(*layers)

def writes(x):
    old = x.clone()
    x[:, 1] = 2.0
    return old, x.t()

def bytes_of(*tensors):
    return b"".join(one.detach().contiguous().numpy().tobytes() for one in tensors)

found = hashlib.sha256()
run = torch.compile(model, backend="aclnn", dynamic=True)
for rows in (4, 5):
    made = run(torch.rand(rows, 6))
    made.square().sum().backward()
    found.update(bytes_of(made))
found.update(bytes_of(*[one.grad for one in model.parameters()], *model.buffers()))
x = torch.rand(3, 4)
found.update(bytes_of(*torch.compile(writes, backend="aclnn", options={"take": "all"})(x), x))
counts = counters["aot_autograd"]
print(counts["ok"], counts["autograd_cache_saved"], counts["autograd_cache_hit"], found.hexdigest())
"""


@needs_cache
def test_another_process_finds_graphs(tmp_path):
    settings = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "TORCHINDUCTOR_AUTOGRAD_CACHE": "1"}
    rows = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        rows.append(done.stdout.split())
    (made, saved, hits, bits), (again, none_saved, found, same) = rows
    assert made == again == saved == found
    assert hits == none_saved == "0"
    assert bits == same


def kept_graph(function, *inputs):
    from aclnn.torch.caching import Kept

    compiler = dynamo.Compiler(dynamo.Options.of({"threads": 1}))
    return Kept(compiler, graph_of(function, [*map(FakeTensorMode().from_tensor, inputs)]))


@needs_cache
def test_kept_graphs_are_the_same_once_they_are_read():
    x, y = tensor(2, 3, 4), tensor(2, 3, 4, seed=1)
    kept = kept_graph(two_layouts, x, y)
    for node in kept.graph_module.graph.nodes:
        node.meta["nn_module_stack"] = {"key": ("L['self'].layer", torch.nn.Linear)}
    kept.prepare_for_serialization()
    assert kept.graph_module is None
    kept = pickle.loads(pickle.dumps(kept))
    kept.post_compile()
    calls = [one for one in kept.graph_module.graph.nodes if one.op == "call_function"]
    assert [modules_of(one) for one in calls] == [["layer: Linear"]] * len(calls)
    for made, wanted in zip(kept([x, y]), two_layouts(x, y), strict=True):
        assert torch.equal(made, wanted)
        assert made.stride() == wanted.stride()


@needs_cache
def test_graphs_that_cannot_be_kept_are_compiled_all_the_same():
    x, y = tensor(2, 3, 4), tensor(2, 3, 4, seed=1)
    kept = kept_graph(two_layouts, x, y)
    kept.graph_module.unknown = lambda: None
    with pytest.raises(dynamo.BypassCache, match="pickle"):
        kept.prepare_for_serialization()
    assert torch.equal(kept([x, y])[0], x + y)


def test_graphs_are_kept_where_pytorch_is_asked_to_and_they_are_worth_it(monkeypatch):
    def long(x):
        for _ in range(dynamo.WORTH_KEEPING):
            x = x + 1
        return x

    def is_kept(graph, **switches):
        config = SimpleNamespace(enable_autograd_cache=True, force_autograd_cache=False)
        monkeypatch.setattr(dynamo, "functorch_config", config)
        assert not dynamo.keeps(graph)  # PyTorch without the cache
        vars(config).update(bundled_autograd_cache=False, **switches)
        with torch.no_grad():
            return dynamo.keeps(graph)

    short, large = torch.fx.symbolic_trace(lambda x: x + 1), torch.fx.symbolic_trace(long)
    has_cache = None not in (dynamo.SerializableCompiler, dynamo.GraphPickler)
    assert is_kept(large) == is_kept(short, force_autograd_cache=True) == has_cache
    assert not is_kept(short)
    assert not is_kept(large, enable_autograd_cache=False, force_autograd_cache=True)
    with torch.compiler.config.patch(force_disable_caches=True):  # `monkeypatch` leaves none behind
        assert not is_kept(large)
