"""Compiled functions: the bits of calls one by one, one plan, and errors with lines."""

import gc
import pickle
import threading
import weakref
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from setups import examples, fresh

import aclnn

DTYPES = [np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64)]
RNG = np.random.default_rng(7)


def array(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def same(found, expected):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8)) if (
        found.flags.c_contiguous and expected.flags.c_contiguous and found.ndim
    ) else np.testing.assert_array_equal(found, expected)


@aclnn.compile
def mlp(x, w1, b1, w2):
    h = aclnn.gelu(x @ w1 + b1)
    return aclnn.softmax(h @ w2, dim=-1)


def mlp_one_by_one(x, w1, b1, w2):
    h = aclnn.gelu(aclnn.add(aclnn.matmul(x, w1), b1))
    return aclnn.softmax(aclnn.matmul(h, w2), -1)


@pytest.fixture
def weights():
    return array(32, 64), array(64, 128), array(128), array(128, 16)


@aclnn.compile
def double(x):
    return x * 2


# --- Values ---------------------------------------------------------------------------------------


def test_a_model_has_the_bits_of_its_calls(weights):
    same(mlp(*weights), mlp_one_by_one(*weights))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_take_the_dtype_of_the_array(dtype):
    x = array(5, 7, dtype=dtype)

    @aclnn.compile
    def shift(x):
        return x + 0.1, 2 - x, x / 3, 1.5 * x, 1 / x, -x, x**2, x - 0.25

    expected = [
        aclnn.add(x, float(dtype.type(0.1))),
        aclnn.add(aclnn.neg(x), 2),
        aclnn.div(x, 3),
        aclnn.mul(x, 1.5),
        aclnn.div(np.ones((), dtype), x),
        aclnn.neg(x),
        aclnn.mul(x, x),
        aclnn.sub(x, 0.25),
    ]
    for found, one in zip(shift(x), expected, strict=True):
        same(found, one)


def test_numpy_functions_become_operators():
    x, y = array(4, 6), array(6)

    @aclnn.compile
    def f(x, y):
        z = np.where(np.greater(x, y), np.exp(x), 0.0)
        z = np.maximum(z, np.add(y, 1)) - np.sqrt(np.square(y))
        return np.concatenate([z, np.matmul(x, x.T)], axis=1), np.sum(z, axis=0), y @ x.T

    z = aclnn.where(aclnn.gt(x, y), aclnn.exp(x), np.zeros((), np.float32))
    z = aclnn.sub(aclnn.maximum(z, aclnn.add(y, 1)), aclnn.sqrt(aclnn.mul(y, y)))
    a, b, c = f(x, y)
    same(a, aclnn.cat([z, aclnn.matmul(x, x.T)], 1))
    same(b, aclnn.sum(z, 0))
    same(c, aclnn.matmul(y, x.T))


VIEWS = {
    "slice": lambda x: x[1:, ::-2],
    "integer": lambda x: x[2],
    "newaxis": lambda x: x[..., None, 1:3],
    "transpose": lambda x: x.T[::2],
    "reshape": lambda x: x.reshape(3, -1)[:, 1:],
    "copying reshape": lambda x: x.T.reshape(-1)[3:],
    "broadcast": lambda x: np.broadcast_to(x[:, :1], (4, 6)),
    "squeeze": lambda x: np.squeeze(x[:, None]).swapaxes(0, 1),
    "moveaxis": lambda x: np.moveaxis(x.reshape(2, 2, 6), 0, -1),
    "flip": lambda x: np.flip(x, 1),
    "empty": lambda x: x[4:],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("turned", [False, True])
def test_views_are_those_of_numpy(view, turned):
    x = array(6, 4).T if turned else array(4, 6)
    seen = []

    @aclnn.compile
    def f(x):
        seen.append(view(x))
        return aclnn.relu(seen[0]), view(aclnn.silu(x)), seen[0]

    expected = view(x)
    first, second, third = f(x)
    assert (seen[0].shape, seen[0].ndim, seen[0].size) == (
        expected.shape, expected.ndim, expected.size,
    )  # fmt: skip
    sizes = zip(expected.shape, seen[0].strides, expected.strides, strict=True)
    assert not expected.size or all(a == b for n, a, b in sizes if n > 1)
    same(first, aclnn.relu(expected))
    same(second, np.ascontiguousarray(view(aclnn.silu(x))).reshape(expected.shape))
    same(third, expected.copy())


def test_casts_and_copies():
    x = array(4, 6)

    @aclnn.compile
    def f(x):
        return x.astype(np.float16).astype("float64"), x.T.copy(), aclnn.gelu(x).astype(np.float16)

    a, b, c = f(x)
    same(a, x.astype(np.float16).astype(np.float64))
    same(b, x.T.copy())
    same(c, aclnn.cast(aclnn.gelu(x), np.float16))


def test_a_product_is_rounded_before_it_is_cast():
    x, w = array(64, 256), array(256, 64)

    @aclnn.compile
    def f(x, w):
        return (x @ w).astype(np.float16), aclnn.matmul(x.astype(np.float16), w.astype(np.float16))

    a, b = f(x, w)
    same(a, aclnn.cast(aclnn.matmul(x, w), np.float16))
    same(b, aclnn.matmul(x.astype(np.float16), w.astype(np.float16)))


# --- Writing --------------------------------------------------------------------------------------


def test_arguments_are_written_in_place():
    def f(x, y):
        x += y
        x[1:3, ::2] = 7
        aclnn.relu_(x[0])
        x.T[1, :2] *= y[:2, 0]
        return x.T, {"twice": x * 2}

    x, y = array(4, 6), array(4, 6)
    now, z = x.copy(), x.copy()
    turned, more = aclnn.compile(f)(now, y)
    f(z, y)
    same(now, z)
    same(turned, z.T.copy())
    same(more["twice"], z * 2)


def test_what_is_assigned_may_have_more_dimensions_of_one_element():
    """As with NumPy, which drops them."""

    def f(x, y):
        x[...] = y[None, None]
        x[0] = y[0, None, None]
        return x

    x, y = array(4, 3), array(4, 3)
    now = x.copy()
    same(aclnn.compile(f)(now, y), f(x, y))
    same(now, x)
    with pytest.raises(ValueError, match="does not broadcast"):
        aclnn.compile(lambda x, y: x.__setitem__(0, y))(x, y)


def test_what_is_written_through_one_argument_is_seen_through_the_other():
    def f(x, y):
        x += 1
        return y * 2

    x = array(3)
    expected = f(x.copy(), x)
    same(aclnn.compile(f)(x.copy(), x), expected)
    both = x.copy()
    same(aclnn.compile(f)(both, both), (x + 1) * 2)
    memory = array(5)
    with pytest.raises(aclnn.AclnnError, match="x is written in place and shares memory with y"):
        aclnn.compile(f)(memory[1:], memory[:-1])


def test_intermediates_are_written_without_a_trace():
    @aclnn.compile
    def f(x):
        y = x * 1
        y += 1
        y[:, 0] = x[:, 1]
        aclnn.silu(x, out=y[1])
        return y

    x = array(4, 4)
    before, expected = x.copy(), x + 1
    expected[:, 0] = x[:, 1]

    with pytest.raises(aclnn.AclnnError, match=r"out has shape \(4,\)"):
        f(x)

    @aclnn.compile
    def g(x):
        y = x * 1
        y += 1
        y[:, 0] = x[:, 1]
        aclnn.silu(x[2], out=y[1])
        return y

    expected[1] = aclnn.silu(x[2])
    same(g(x), expected)
    same(x, before)


def test_read_only_arguments_are_not_written():
    x = array(3)
    x.flags.writeable = False

    @aclnn.compile
    def f(x):
        x += 1

    with pytest.raises(aclnn.AclnnError, match="out is read-only"):
        f(x)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 1), (1, 0)])
def test_outputs_that_overlap_inputs_are_as_if_these_were_read_first(first, second):
    @aclnn.compile
    def f(x):
        y = aclnn.silu(x)
        return y + x * 2

    memory = array(33)
    x, out = memory[first : first + 32], memory[second : second + 32]
    expected = f(x.copy())
    assert f(x, out=out) is out
    same(out, expected)


# --- Descriptions ---------------------------------------------------------------------------------


def test_every_description_has_a_plan_of_its_own(weights):
    @aclnn.compile
    def f(x, scale=1.0, *, flag=False):
        return x * scale if flag else x + scale

    x = array(4, 6)
    calls = [
        lambda: f(x), lambda: f(x, 2.0), lambda: f(x, scale=2.0), lambda: f(x, 2),
        lambda: f(x, True), lambda: f(x[::2]), lambda: f(x.astype(np.float16)),
        lambda: f(x.T), lambda: f(x, flag=True),
    ]  # fmt: skip
    for number, call in enumerate(calls, 1):
        call()
        call()
        info = f.cache_info()
        assert (info["misses"], info["size"], info["hits"]) == (number, number, number)
    threads = aclnn.get_num_threads()
    try:
        aclnn.set_num_threads(threads + 1)
        f(x)
    finally:
        aclnn.set_num_threads(threads)
    assert f.cache_info()["size"] == len(calls) + 1
    f.clear_cache()
    assert f.cache_info()["size"] == f.cache_info()["hits"] == 0
    same(f(x, 3.0), aclnn.add(x, 3.0))


def test_the_cache_is_bounded(monkeypatch):
    from aclnn.compiler import _plan_cache, _settings

    before = _settings.current_settings()["cache_limit"]
    f = aclnn.compile(lambda x: x + 1)
    try:
        _plan_cache.set_limit(3)
        for size in range(1, 9):
            f(np.ones(size, np.float32))
        assert f.cache_info()["size"] == 3
        f(np.ones(8, np.float32))
        assert f.cache_info()["hits"] == 1
        _plan_cache.set_limit(0)
        f.clear_cache()
        f(np.ones(8, np.float32))
        assert f.cache_info()["size"] == 0
    finally:
        _plan_cache.set_limit(before)


def test_nestings_go_in_and_out():
    @aclnn.compile
    def f(layers, options):
        x = layers[0]["w"] + layers[1]["w"]
        return {"sum": x, "parts": [x * options["by"], (layers[0]["w"], "text", None)]}

    a, b = array(3), array(3)
    found = f([{"w": a}, {"w": b}], {"by": 2})
    same(found["sum"], a + b)
    same(found["parts"][0], (a + b) * 2)
    assert found["parts"][1][1:] == ("text", None)
    out = {"sum": array(3), "parts": [array(3), (array(3), "text", None)]}
    assert f([{"w": a}, {"w": b}], {"by": 2}, out=out) is out
    same(out["parts"][1][0], a)
    with pytest.raises(aclnn.AclnnError, match="not nested"):
        f([{"w": a}, {"w": b}], {"by": 2}, out=[array(3)])
    with pytest.raises(aclnn.AclnnError, match="out_sum is float32"):
        f([{"w": a}, {"w": b}], {"by": 2}, out=out | {"sum": array(4)})


def test_what_is_closed_over_is_looked_up_at_each_call():
    w, scope = array(3), SimpleNamespace()
    scope.w = w

    @aclnn.compile
    def f(x):
        return x * scope.w

    x = array(3)
    same(f(x), x * w)
    w += 1
    same(f(x), x * w)
    scope.w = array(3)
    same(f(x), x * scope.w)
    assert f.cache_info()["misses"] == 1
    kept = weakref.ref(w)
    del w
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("call", [
    lambda x: np.mean(x), lambda x: x.mean(), lambda x: x.mean(axis=1), lambda x: x.mean((0, 2), keepdims=True),
    lambda x: np.mean(x, axis=-1, keepdims=True), lambda x: np.max(x), lambda x: np.amax(x, 0),
    lambda x: x.max(-1), lambda x: x.max(axis=(0, 1), keepdims=True), lambda x: np.var(x),
    lambda x: np.var(x, axis=0, ddof=1), lambda x: x.var(1), lambda x: x.var(ddof=1, keepdims=True),
    lambda x: np.clip(x, -0.5, 0.5), lambda x: x.clip(0), lambda x: x.clip(max=0.25),
    lambda x: np.clip(x, a_min=None, a_max=1), lambda x: np.clip(x, min=-1, max=1),
])  # fmt: skip
def test_reductions_and_limits_are_those_of_numpy(call):
    x = np.random.default_rng(5).normal(size=(3, 4, 5)).astype(np.float32)
    found, wanted = aclnn.compile(call)(x), call(x)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


def test_compiled_functions_become_part_of_others():
    @aclnn.compile
    def f(x):
        return double(aclnn.silu(x)) + double(x)

    x = array(4)
    plans = double.cache_info()["size"]
    same(f(x), aclnn.add(aclnn.mul(aclnn.silu(x), 2), aclnn.mul(x, 2)))
    assert double.cache_info()["size"] == plans


def test_methods_can_be_compiled():
    class Layer:
        def __init__(self, w):
            self.w = w

        @aclnn.compile(threads=1)
        def __call__(self, x):
            return aclnn.relu(x @ self.w)

    x, w = array(2, 3), array(3, 4)
    layer = Layer(w)
    same(layer(x), aclnn.relu(aclnn.matmul(x, w)))
    same(Layer(-w)(x), aclnn.relu(aclnn.matmul(x, -w)))


def test_tensors_come_back_as_tensors(weights):
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(one) for one in weights]
    found = mlp(*tensors)
    assert isinstance(found, torch.Tensor)
    same(found.numpy(), mlp(*weights))
    out = torch.zeros(32, 16)
    assert mlp(*tensors, out=out) is out
    assert out._version == 1
    same(out.numpy(), found.numpy())
    executor = mlp.executor(*tensors)
    assert isinstance(executor.run(), torch.Tensor)
    held = tensors[1]
    closed = aclnn.compile(lambda x: aclnn.relu(x @ held))
    assert torch.equal(closed(tensors[0]), aclnn.relu(aclnn.matmul(tensors[0], held)))


# --- Errors ---------------------------------------------------------------------------------------


def truth(x):
    return x if x > 0 else -x


def a_float(x):
    return float(x[0, 0])


def an_index(x):
    return [1, 2][x]


def the_memory(x):
    return np.asarray(x)


def no_counterpart(x):
    return np.linalg.norm(x)


def no_ufunc(x):
    return np.arctan2(x, x)


def no_method(x):
    return x.argsort()


def fancy(x):
    return x[x > 0]


def a_rule(x):
    y = x.astype(np.int32)
    return aclnn.gelu(y)


def in_a_helper(x):
    return a_rule(x)


BAD = {
    truth: "truth value", a_float: "a number", an_index: "a number", the_memory: "the memory",
    no_counterpart: "norm has no counterpart", no_ufunc: "arctan2 has no counterpart",
    no_method: "argsort", fancy: "cannot be indexed by",
}  # fmt: skip


@pytest.mark.parametrize("function", BAD, ids=lambda f: f.__name__)
def test_what_cannot_be_recorded_names_the_line_and_the_way_out(function):
    with pytest.raises(aclnn.AclnnError, match=BAD[function]) as caught:
        aclnn.compile(function)(array(2, 3))
    line = function.__code__.co_firstlineno + 1
    assert f"test_compile.py:{line}: return" in str(caught.value)
    assert "aclnn.call" in caught.value.message


@pytest.mark.parametrize("function", [a_rule, in_a_helper], ids=lambda f: f.__name__)
def test_broken_rules_are_those_of_the_single_call_with_the_line(function):
    with pytest.raises(aclnn.AclnnError) as caught:
        aclnn.gelu(np.zeros((2, 3), np.int32))
    with pytest.raises(aclnn.AclnnError) as traced:
        aclnn.compile(function)(array(2, 3))
    assert str(traced.value).startswith(str(caught.value))
    assert traced.value.status == caught.value.status
    assert "return aclnn.gelu(y)" in str(traced.value)


def test_traced_arrays_do_not_outlive_their_function():
    kept = []
    aclnn.compile(lambda x: kept.append(x) or x + 1)(array(3))
    with pytest.raises(aclnn.AclnnError, match="ended"):
        aclnn.compile(lambda x: x + kept[0])(array(3))


@pytest.mark.parametrize("bad", [{"threads": 0}, {"strategy": "best"}, {"function": 3}])
def test_bad_options_are_refused(bad):
    with pytest.raises(aclnn.AclnnError):
        aclnn.compile(**bad)


# --- Anything else as a step ----------------------------------------------------------------------


def sort_into(x, out):
    out[...] = np.sort(x)


def test_any_function_can_be_a_step():
    @aclnn.compile
    def f(x):
        y = aclnn.silu(x)
        return aclnn.call(sort_into, y, shape=y.shape, dtype=y.dtype) + y

    x = array(40, 30)
    y = aclnn.silu(x)
    same(f(x), aclnn.add(np.sort(y), y))
    assert [step.name for step in f.executor(x).schedule.steps][1] == "sort_into"
    assert "sort_into" in f.executor(x).to_html()
    same(aclnn.call(sort_into, x, shape=x.shape, dtype=x.dtype), np.sort(x))


@pytest.mark.parametrize("size", [8, 1 << 16])
def test_what_a_step_raises_reaches_the_caller(size):
    class Stop(BaseException):
        pass

    bad = []

    def check(x, out):
        if bad:
            raise Stop("no more")
        np.copyto(out, x)
        if x.flags.writeable:
            raise AssertionError("inputs must not be written")

    @aclnn.compile
    def f(x):
        return aclnn.call(check, aclnn.relu(x), shape=x.shape, dtype=x.dtype) * 2

    x = array(size)
    executor = f.executor(x)
    expected = executor.run()
    bad.append(1)
    for run in (executor.run, lambda: f(x), executor.profile):
        with pytest.raises(Stop, match="no more"):
            run()
    bad.clear()
    same(executor.run(), expected)
    same(expected, aclnn.mul(aclnn.relu(x), 2))


def test_steps_run_in_several_threads_at_once():
    @aclnn.compile
    def f(x):
        return aclnn.call(sort_into, x * 2, shape=x.shape, dtype=x.dtype) - 1

    wrong = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal(5000).astype(np.float32)
        expected = aclnn.sub(np.sort(aclnn.mul(x, 2)), 1)
        wrong.extend(seed for _ in range(50) if not np.array_equal(f(x), expected))

    run_threads(work)
    assert not wrong


def run_threads(work, count=4):
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- Executors ------------------------------------------------------------------------------------


def test_executors_are_those_of_single_calls(weights):
    executor = mlp.executor(*weights)
    assert type(executor) is type(aclnn.executor("gelu", weights[0]))
    expected = mlp_one_by_one(*weights)
    same(executor.run(), expected)
    assert executor.run() is not executor.run()
    assert [*executor.inputs] == ["x", "w1", "b1", "w2"]
    assert executor.inputs["w1"].strides == weights[1].strides
    assert executor.outputs["out"].shape == (32, 16)
    assert executor.outputs["out"].dtype == np.float32
    assert executor.options["strategy"] == "default"
    assert executor.workspace_size == executor.plan.size
    assert executor.passes[0].name == "tidy"
    assert len(executor.profile(repeat=2)) == 2
    assert "matmul" in executor.to_html()
    out = np.empty((32, 16), np.float32)
    assert mlp.executor(*weights, out=out).run() is out
    same(out, expected)


def test_graphs_tell_the_line_of_each_node(weights):
    first = mlp.__wrapped__.__code__.co_firstlineno
    executor = mlp.executor(*weights)
    graph, built = executor.graph, executor.graph_as_built
    line = f"test_compile.py:{first + 2}: h = aclnn.gelu(x @ w1 + b1)"
    origins = [(node.name, node.origin) for node in built.nodes if node.kind == "Compute"][:3]
    assert origins == [(name, (line,)) for name in ("matmul", "add", "gelu")]
    assert all(node.origin for node in graph.nodes)  # what stores the result among them
    assert f"test_compile.py:{first + 2}" in graph.to_text()


def test_lines_of_what_a_function_calls_are_below_its_own():
    def gate(x):
        return aclnn.silu(x) * x

    inner = aclnn.compile(lambda x: gate(x).astype(np.float16))  # fmt: skip
    first = gate.__code__.co_firstlineno

    @aclnn.compile(materialize=True)
    def outer(x):
        return inner(x)

    x = array(4, 8)
    called = f"test_compile.py:{outer.__wrapped__.__code__.co_firstlineno + 2}: return inner(x)"
    by = f"test_compile.py:{first + 3}: inner = aclnn.compile(lambda x: gate(x).astype(np.float16))  # fmt: skip"
    body = f"test_compile.py:{first + 1}: return aclnn.silu(x) * x"
    found = {node.name: node.origin for node in outer.executor(x).graph.nodes}
    assert found["silu"] == found["mul"] == (called, by, body)
    assert found["mul_cast"] == (called, by)


def test_equal_nodes_of_several_lines_are_one():
    @aclnn.compile
    def twice(x):
        y = aclnn.exp(x)
        return y + aclnn.exp(x)

    assert [node.name for node in twice.executor(array(4, 8)).graph.nodes] == ["exp", "add"]


def test_executors_take_arrays_in_order_or_by_name(weights):
    x, *rest = weights
    executor = mlp.executor(*weights)
    other, third = array(32, 64), array(32, 64)
    same(executor(other), mlp(other, *rest))
    same(executor(), mlp(other, *rest))
    same(executor(x=third, b1=rest[1] * 2), mlp(third, rest[0], rest[1] * 2, rest[2]))
    out = np.empty((32, 16), np.float32)
    assert executor.run(x, out=out) is out
    assert executor.run() is not out
    same(executor.run(), out)
    for bad in ((x, *rest, x), (x[:2],), (x.astype(np.float16),)):
        with pytest.raises(aclnn.AclnnError):
            executor.run(*bad)
    with pytest.raises(aclnn.AclnnError, match="given twice"):
        executor.run(x, x=x)
    same(executor.run(), out)


def test_numbers_are_given_anew_where_they_do_not_shape_the_plan():
    x = array(50)
    executor = aclnn.executor("leaky_relu", x, negative_slope=0.5)
    same(executor.run(negative_slope=0.2), aclnn.leaky_relu(x, 0.2))
    same(executor.run(), aclnn.leaky_relu(x, 0.2))
    assert executor.options["negative_slope"] == 0.2
    adds = aclnn.executor("add", x, x, alpha=2.0)
    with pytest.raises(aclnn.AclnnError, match="alpha is 3, which shapes the plan"):
        adds.run(alpha=3)
    same(adds.run(alpha=4.0), aclnn.add(x, x, alpha=4.0))


def test_one_executor_is_run_by_several_threads(weights):
    executor = mlp.executor(*weights)
    wrong = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal((32, 64)).astype(np.float32)
        expected = mlp_one_by_one(x, *weights[1:])
        out = np.empty_like(expected)
        for _ in range(100):
            if not np.array_equal(executor.run(x, out=out), expected):
                wrong.append(seed)
            if not np.array_equal(mlp(x, *weights[1:]), expected):
                wrong.append(seed)

    run_threads(work)
    assert not wrong


def test_workspaces_are_the_callers_or_lent(weights):
    executor, expected = mlp.executor(*weights), mlp_one_by_one(*weights)
    size = executor.workspace_size
    same(executor.run(workspace=np.empty(size, np.uint8)), expected)
    with pytest.raises(aclnn.AclnnError, match=f"at least {size} are needed"):
        executor.run(workspace=bytearray(size - 1))
    pool = aclnn.WorkspacePool(max_bytes=2 * size)
    wrong = []

    def work(_):
        for _ in range(30):
            if not np.array_equal(executor.run(workspace=pool), expected):
                wrong.append(1)
            if pool.allocated > pool.max_bytes:
                wrong.append(2)

    run_threads(work)
    assert not wrong
    assert (pool.lent, pool.allocated <= 2 * size) == (0, True)
    assert pool.allocated >= size
    pool.clear()
    assert pool.allocated == 0
    with pytest.raises(aclnn.AclnnError, match="at most"):
        executor.run(workspace=aclnn.WorkspacePool(size - 1))


def test_a_workspace_of_the_plans_size_is_enough_wherever_it_begins(weights):
    executor, expected = mlp.executor(*weights), mlp_one_by_one(*weights)
    assert any(buffer.parts for buffer in executor.plan.buffers)  # kernels have memory of their own
    size = executor.workspace_size
    assert executor.plan.check(size).size == size
    memory, guard = np.empty(size + 256, np.uint8), 0xA5
    for shift in (*range(0, 64, 13), 63):
        memory[...] = guard
        same(executor.run(workspace=memory[shift : shift + size]), expected)
        assert (memory[:shift] == guard).all()
        assert (memory[shift + size :] == guard).all()
    with pytest.raises(aclnn.AclnnError, match=f"at least {size} are needed"):
        executor.run(workspace=memory[: size - 1])


INTERRUPTED_POOL = """
import random, signal, threading, numpy as np, aclnn

class Interrupt(BaseException):
    pass

def interrupt(*_):
    raise Interrupt

signal.signal(signal.SIGALRM, interrupt)
x = np.zeros((64, 64), np.float32)
executor = aclnn.executor("gelu", x.T, materialize=True)
pool = aclnn.WorkspacePool(3 * executor.workspace_size // 2)  # of two threads one waits
stop = threading.Event()

def others():
    mine = aclnn.executor("gelu", x.T, materialize=True)
    while not stop.is_set():
        mine.run(workspace=pool)

thread = threading.Thread(target=others)
thread.start()
choose, came = random.Random(1), 0
for _ in range(3000):
    try:
        signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-6, 2e-4))
        while True:
            executor.run(workspace=pool)
            with pool.lend(100):
                pass
    except Interrupt:
        came += 1
stop.set()
thread.join(10)
print(came, thread.is_alive(), pool.lent)
"""


def test_a_pool_outlasts_interrupts():
    done = fresh(INTERRUPTED_POOL)
    assert done.stdout.split() == ["3000", "False", "0"], done.stdout + done.stderr


def test_pools_make_others_wait_and_use_what_was_given_back():
    pool = aclnn.WorkspacePool(100)
    began, order = threading.Event(), []

    def work():
        began.set()
        with pool.lend(60):
            order.append("second")

    with pool.lend(60) as first:
        thread = threading.Thread(target=work)
        thread.start()
        began.wait()
        thread.join(0.05)
        order.append("first")
        assert first.nbytes == pool.lent == 60
    thread.join()
    assert order == ["first", "second"]
    with pool.lend(50) as again:
        assert again is first


def test_pickles_are_descriptions(weights):
    assert pickle.loads(pickle.dumps(mlp)) is mlp
    executor = mlp.executor(*weights)
    data = pickle.dumps(executor)
    assert len(data) < 2000
    again = pickle.loads(data)
    with pytest.raises(aclnn.AclnnError, match="x has no array"):
        again.run()
    same(again.run(*weights), executor.run())
    same(again.run(), executor.run())
    single = pickle.loads(
        pickle.dumps(aclnn.executor("leaky_relu", weights[0].T, negative_slope=0.25))
    )
    same(single.run(weights[0].T), aclnn.leaky_relu(weights[0].T, 0.25))
    parts = pickle.loads(pickle.dumps(aclnn.executor("cat", [weights[0], weights[0]], 1)))
    assert parts.run(weights[0], weights[0]).shape == (32, 128)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        pickle.dumps(aclnn.compile(lambda x: x).executor(weights[0]))


def test_runs_allocate_nothing_but_their_result():
    import tracemalloc

    x, out = array(256, 1024), np.empty((256, 1024), np.float32)
    f = aclnn.compile(lambda x: aclnn.softmax(aclnn.silu(x[:, ::-1]) @ (x.T @ x), -1))
    executor = f.executor(x)
    executor.run(out=out)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        executor.run(out=out)
        assert tracemalloc.get_traced_memory()[1] - before < 20_000
        executor.run()
        assert tracemalloc.get_traced_memory()[1] - before < out.nbytes + 20_000
    finally:
        tracemalloc.stop()


# --- Random programs ------------------------------------------------------------------------------

UNARY = ("relu", "silu", "sigmoid", "tanh", "gelu", "exp", "neg", "softmax", "sum", "leaky_relu")
BINARY = ("add", "sub", "mul", "maximum", "matmul", "cat", "where")


def one_by_one(name, *operands):
    """A step, as calls on arrays and on traced arrays alike."""
    x = operands[0]
    if name == "softmax":
        return aclnn.softmax(x, -1)
    if name == "sum":
        return aclnn.sum(x, -1, True)
    if name == "cat":
        return aclnn.cat(list(operands), 1)
    if name == "where":
        return aclnn.where(aclnn.gt(x, operands[1]), x, operands[1])
    if name == "matmul":
        return aclnn.matmul(x, operands[1].T)
    return getattr(aclnn, name)(*operands)


def program(steps, written, *arrays):
    values = list(arrays)
    for name, picks, change in steps:
        operands = [values[p % len(values)] for p in picks[: 1 if name in UNARY else 2]]
        if name in BINARY:
            rows = min(v.shape[0] for v in operands)
            cols = min(v.shape[1] for v in operands)
            operands = [v[:rows, :cols] for v in operands]
        if change == "reverse":
            operands[0] = operands[0][::-1]
        if change == "stride" and operands[0].shape[1] > 1:
            operands = [v[:, ::2] for v in operands]
        made = one_by_one(name, *operands)
        if change == "half":
            is_array = isinstance(made, np.ndarray)
            made = aclnn.cast(made, "float16") if is_array else made.astype(np.float16)
        if change == "in place" and written and made.shape == values[0].shape:
            values[0][...] = made
            made = values[0]
        values.append(made)
    return values[-3:]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(UNARY + BINARY),
        st.tuples(st.integers(0, 20), st.integers(0, 20)),
        st.sampled_from(["", "", "reverse", "stride", "half", "in place"]),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    STEPS,
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from(DTYPES[:2]),
    st.booleans(),
    st.booleans(),
)
def test_random_programs_have_the_bits_of_their_calls(steps, rows, cols, dtype, turned, written):
    rng = np.random.default_rng(rows * 10 + cols)
    shape = (cols, rows) if turned else (rows, cols)
    x, y = (rng.standard_normal(shape).astype(dtype) for _ in range(2))
    if turned:
        x, y = x.T, y.T
    alone, whole = x.copy(order="K"), x.copy(order="K")
    expected = [np.array(v) for v in program(steps, written, alone, y)]
    compiled = aclnn.compile(lambda x, y: program(steps, written, x, y))
    found = compiled(whole, y)
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(whole, alone)


def test_executors_count_the_workspaces_that_they_make(weights):
    executor = mlp.executor(*weights, out=np.empty((32, 16), np.float32))
    assert executor.workspace_size > 0
    assert executor.own_workspaces == 0
    for _ in range(3):
        executor.run(workspace=np.empty(executor.workspace_size, np.uint8))
    assert executor.own_workspaces == 0
    for _ in range(3):
        executor.run()
    assert executor.own_workspaces == 1  # which is kept
    memory = np.empty(32 * 64 + 32 * 16, np.float32)
    x = memory[: 32 * 64].reshape(32, 64)
    crossing = memory[32 * 64 - 8 : -8].reshape(32, 16)
    executor.run(x, out=crossing)  # is planned anew
    assert executor.own_workspaces == 2


def test_functions_of_large_models_have_hundreds_of_arrays():
    """A transformer of 24 layers has 394 weights."""
    layers = [np.full(4, n, np.float32) for n in range(600)]

    @aclnn.compile
    def total(layers):
        found = layers[0]
        for one in layers[1:]:
            found = found + one
        return found

    assert total(layers).tolist() == [sum(range(600))] * 4
    executor = total.executor(layers)
    name = [*executor.inputs][7]
    assert executor.run(**{name: np.full(4, -1, np.float32)}).tolist() == [sum(range(600)) - 8] * 4
    several = [one + n for n in range(8) for one in layers]
    assert total(several[:3000]).tolist() == [sum(one[0] for one in several[:3000])] * 4
    with pytest.raises(aclnn.AclnnError, match="4201 tensors, at most 4096 are possible"):
        total.executor(several[:4200])


def test_products_are_written_over_arguments_that_other_calls_read():
    a, b, c = np.random.default_rng(3).standard_normal((3, 16, 16)).astype(np.float32)

    @aclnn.compile
    def run(a, b, c):
        before = aclnn.relu(c)
        aclnn.matmul(a, b, out=c)
        return before, aclnn.relu(c)

    product, given = aclnn.matmul(a, b), c.copy()
    before, after = run(a, b, given)
    np.testing.assert_array_equal(before, np.maximum(c, 0))
    np.testing.assert_array_equal(after, np.maximum(product, 0))
    np.testing.assert_array_equal(given, product)


def test_products_are_written_where_they_are_results_in_another_shape():
    """Others read them there, too: nothing is copied."""

    def both(x, w):
        made = aclnn.matmul(x, w).reshape(2, 32, 8)  # not NumPy's, whose sums are the BLAS's
        return made, aclnn.gelu(made), (made + 1).transpose(1, 0, 2), made.reshape(64, 8)[3:5] * 2

    compiled = aclnn.compile(both)
    x, w = array(64, 16), array(16, 8)
    nodes = [node.name for node in compiled.executor(x, w).graph.nodes]
    assert "out_0_view_copy" not in nodes
    for found, expected in zip(compiled(x, w), both(x, w), strict=True):
        same(np.ascontiguousarray(found), np.ascontiguousarray(expected))


def chain_with_workspace(x):
    return aclnn.softmax(aclnn.matmul(aclnn.matmul(x, x), x)[::-1], 0)


def test_calls_take_a_workspace():
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    compiled = aclnn.compile(chain_with_workspace, threads=1)
    wanted, size = compiled(x), compiled.executor(x).workspace_size
    (executor,) = compiled.executors()
    before = executor.own_workspaces
    for workspace in (np.empty(size, np.uint8), aclnn.WorkspacePool(1 << 24)):
        for named in ({}, {"out": np.empty_like(x)}):
            found = compiled(x, workspace=workspace, **named)
            np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(compiled(x=x, workspace=workspace), wanted)
    assert workspace.allocated >= size
    assert workspace.lent == 0
    with pytest.raises(aclnn.AclnnError, match=f"at least {size} are needed"):
        compiled(x, workspace=np.empty(size - 1, np.uint8))
    assert executor.own_workspaces == before <= 1


def test_a_parameter_called_workspace_is_the_functions_own():
    compiled = aclnn.compile(lambda x, workspace: aclnn.add(x, workspace))
    x = np.float32([1, 2])
    np.testing.assert_array_equal(compiled(x, workspace=x), x + x)
    np.testing.assert_array_equal(compiled(x, x), x + x)
