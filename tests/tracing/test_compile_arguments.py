"""What compiled functions and their executors are given: nested, floats, outputs of any layout."""

import copy
import json
import math
import pickle
import subprocess
import sys
import threading
import warnings
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from pathlib import Path

import compiled_models
import ml_dtypes
import numpy as np
import pytest
from cases import each

import aclnn
from aclnn.compiler import _plan_cache, _settings

RNG = np.random.default_rng(13)


def array(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def same(found, expected):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(
        np.ascontiguousarray(found).reshape(-1).view(np.uint8),
        np.ascontiguousarray(expected).reshape(-1).view(np.uint8),
    )


# --- Pickles --------------------------------------------------------------------------------------

RUNS = """
import json, pickle, sys
import numpy as np
import compiled_models
executor, given, named = pickle.load(sys.stdin.buffer)
made = executor.run(*given, **named)
leaves = []
from aclnn.tracing.nesting import taken_apart
taken_apart(made, leaves)
print(json.dumps([one.tolist() for one in leaves]))
"""


def weights():
    return compiled_models.Weights(array(4, 3), array(3))


@each("make", [
    lambda: (compiled_models.several, (array(3), array(3), array(3)), {}),
    lambda: (compiled_models.nested, ([{"w": array(3)}, (array(3),)], {"b": array(2)}), {}),
    lambda: (compiled_models.nested,
             ([{"w": array(3)}, (array(3),)], {"b": array(2)}, array(3), array(3)), {"by": 0.5}),
    lambda: (compiled_models.dense, (weights(), array(2, 4)), {}),
    lambda: (compiled_models.looked_up, (defaultdict(list, a=array(3)),), {}),
    lambda: (compiled_models.Model.run, (compiled_models.Model(array(3)), array(3)), {}),
])  # fmt: skip
def test_executors_arrive_in_other_processes(make):
    function, args, named = make()
    leaves = []
    aclnn.tracing.nesting.taken_apart(function(*args, **named), leaves)
    given = args[1:] if isinstance(args[0], compiled_models.Model) else args
    data = pickle.dumps((function.executor(*args, **named), given, named))
    ran = subprocess.run(
        [sys.executable, "-c", RUNS], input=data, capture_output=True, cwd=Path(__file__).parents[1] / "support",
    )  # fmt: skip
    assert not ran.returncode, ran.stderr.decode()
    assert json.loads(ran.stdout) == [one.tolist() for one in leaves]


# --- Nestings -------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "a b")


@dataclass(frozen=True)
class Frozen:
    w: np.ndarray
    inner: compiled_models.Weights
    steps: int = field(default=2, init=False)

    def __post_init__(self):
        assert not hasattr(type(self.w), "__aclnn_function__")


def test_dataclasses_are_arguments_and_results():
    @aclnn.compile
    def f(one, x):
        assert isinstance(one, Frozen)
        for _ in range(one.steps):
            x = x * one.w + one.inner.b
        return compiled_models.Weights(x, one.inner.w, one.inner.name)

    x, one = array(3), Frozen(array(3), weights())
    for _ in range(2):
        found = f(one, x)
        assert type(found) is compiled_models.Weights
        wanted = x
        for _ in range(2):
            wanted = aclnn.add(aclnn.mul(wanted, one.w), one.inner.b)
        same(found.w, wanted)
        same(found.b, one.inner.w)
        one = Frozen(array(3), weights())
    assert f.cache_info()["misses"] == 1
    object.__setattr__(one, "steps", 3)
    f(one, x)
    assert f.cache_info()["misses"] == 2
    out = compiled_models.Weights(array(3), array(4, 3), "layer")
    assert f(one, x, out=out) is out
    same(out.b, one.inner.w)


class Named(Pair):
    def __new__(cls, a):
        return super().__new__(cls, a, a)


class Ordered(OrderedDict):
    def __init__(self, label, **items):
        super().__init__(**items)


class Sizes(list):
    def __init__(self, first, *rest):
        super().__init__([first, *rest])


class Missing(defaultdict):
    def __init__(self, **items):
        super().__init__(list, items)


@each("make", [
    lambda x: defaultdict(list, a=x, b=x + 1),
    lambda x: Missing(a=x, b=x + 1),
    lambda x: Ordered("label", a=x, b=x + 1),
    lambda x: Named(x),
    lambda x: Sizes(x, x + 1),
])  # fmt: skip
def test_nestings_of_any_class_are_arguments_and_results(make):
    def double(given):
        if isinstance(given, defaultdict):
            assert given["none"] == given.default_factory() == []
            del given["none"]
        return given, [one + one for one in (given.values() if hasattr(given, "values") else given)]

    f = aclnn.compile(double)
    for _ in range(2):
        given = make(array(3))
        back, found = f(given)
        assert type(back) is type(given)
        assert len(back) == len(given)
        leaves, wanted = [], []
        aclnn.tracing.nesting.taken_apart([back, found], leaves)
        aclnn.tracing.nesting.taken_apart(list(double(given)), wanted)
        for one, other in zip(leaves, wanted, strict=True):
            same(one, other)
        assert getattr(back, "default_factory", 0) is getattr(given, "default_factory", 0)
        for one in leaves:
            one[...] = 0
        f(given, out=(back, found))
        for one, other in zip(leaves, wanted, strict=True):
            same(one, other)


@each("kind", [np.float16, np.dtype("float16"), "float16"])
def test_dtypes_are_arguments(kind):
    @aclnn.compile
    def f(x, dtype):
        return (x * 2).astype(dtype)

    x = array(3)
    for _ in range(2):
        same(f(x, kind), (x * 2).astype(np.float16))
        same(f(x, dtype=kind), (x * 2).astype(np.float16))
    same(f.executor(x, kind).run(x), (x * 2).astype(np.float16))
    assert f(x, np.float32).dtype == np.float32


def test_executors_take_what_the_function_takes():
    @aclnn.compile
    def f(layers, x, *, scale=1.0, flag=False):
        x = x * layers[0]["w"] + layers[1].b
        return x * scale if flag else x + scale

    def make():
        return [{"w": array(3)}, Pair(array(3), array(3))]

    layers, x = make(), array(3)
    ex = f.executor(layers, x, scale=0.5, flag=True)
    assert [*ex.inputs] == ["layers_0_w", "layers_1_0", "layers_1_1", "x"]
    same(ex.run(), f(layers, x, scale=0.5, flag=True))
    layers, x = make(), array(3)
    same(ex.run(layers, x), f(layers, x, scale=0.5, flag=True))
    layers, x = make(), array(3)
    same(ex.run(x=x, layers=layers), f(layers, x, scale=0.5, flag=True))
    same(ex.run(scale=0.25), f(layers, x, scale=0.25, flag=True))
    same(ex.run(), f(layers, x, scale=0.25, flag=True))
    same(ex(layers, x, flag=True, scale=2), f(layers, x, scale=2.0, flag=True))
    w = array(3)
    same(ex.run(layers_0_w=w), f([{"w": w}, layers[1]], x, scale=2.0, flag=True))
    same(ex.run(w, layers[1].a, layers[1].b, x), f([{"w": w}, layers[1]], x, scale=2.0, flag=True))
    with pytest.raises(aclnn.AclnnError, match="flag is False, which shapes the plan"):
        ex.run(flag=False)
    with pytest.raises(aclnn.AclnnError, match="given twice"):
        ex.run(layers, layers=layers)
    with pytest.raises(aclnn.AclnnError, match="layers is"):
        ex.run(layers=layers[:1])
    with pytest.raises(aclnn.AclnnError, match="no operand is called 'scal'"):
        ex.run(scal=1.0)


def test_dataclasses_have_methods_that_are_compiled():
    @dataclass
    class Model:
        w: np.ndarray
        scale: float = 2.0

        @aclnn.compile
        def run(self, x):
            return x @ self.w * self.scale

    x, one, other = array(2, 3), Model(array(3, 4)), Model(array(3, 4))
    for model in (one, other, one):
        same(model.run(x), aclnn.mul(aclnn.matmul(x, model.w), model.scale))
        model.w, model.scale = array(3, 4), 3.0
    assert Model.run.cache_info()["misses"] == 1


def test_arguments_by_name_keep_their_names():
    @aclnn.compile
    def f(x, w):
        return x - w

    x, w = array(3), array(3)
    ex = f.executor(w=w, x=x)
    assert [*ex.inputs] == ["x", "w"]
    same(ex.run(x=w), aclnn.sub(w, w))
    same(f(w=w, x=x), aclnn.sub(x, w))


# --- Outputs --------------------------------------------------------------------------------------

LAYOUTS = {
    "transposed": lambda a: np.zeros(a.shape[::-1], a.dtype).T,
    "sliced": lambda a: np.zeros((a.shape[0], 2 * a.shape[1]), a.dtype)[:, ::2],
    "reversed": lambda a: np.zeros(a.shape, a.dtype)[::-1, ::-1],
    "padded": lambda a: np.zeros((a.shape[0] + 1, a.shape[1] + 3), a.dtype)[1:, 2:-1],
}


@each("layout, dtype, materialize", [
    (layout, dtype, materialize)
    for layout in LAYOUTS.values()
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64)
    for materialize in (False, True)
])  # fmt: skip
def test_outputs_lie_as_the_caller_likes(layout, dtype, materialize):
    @aclnn.compile(materialize=materialize)
    def f(x):
        return aclnn.softmax(aclnn.leaky_relu(x), -1), [x + x]

    x = array(6, 8, dtype=dtype)
    first, (second,) = f(x)
    outs = layout(first), [layout(second)]
    rest = outs[0].base.copy() if outs[0].base is not None else None
    for _ in range(2):
        assert f(x, out=outs) is outs
        same(outs[0], first)
        same(outs[1][0], second)
    outs[0][...] = 0
    np.testing.assert_array_equal(outs[0].base, rest)  # nothing else was written
    executor = f.executor(x, out=outs)
    assert executor.run()[0] is outs[0]
    same(outs[0], first)
    outs[0][...] = 0
    assert f.executor(x).run(x, out=outs) is outs  # planned for dense results
    same(outs[0], first)
    outs[0][...] = 0
    np.testing.assert_array_equal(outs[0].base, rest)
    assert f.cache_info()["misses"] == 1


@each("planned, given", [
    (planned, given) for planned in LAYOUTS.values() for given in (np.empty_like, *LAYOUTS.values())
])  # fmt: skip
def test_an_executor_made_for_outputs_of_one_layout_runs_into_any(planned, given):
    @aclnn.compile
    def f(x):
        return aclnn.softmax(x, -1)

    x = array(40, 48)
    expected = f(x)
    own, out = planned(expected), given(expected)
    executor = f.executor(x, out=own)
    assert executor.run(out=out) is out
    same(out, expected)
    assert not own.any()  # it holds for that run
    assert executor.run() is own
    same(own, expected)


@each("make", [
    lambda m: (m[:6, :6], m[:6, :6].T), lambda m: (m[:6, :6], m[1:7, 1:7]),
    lambda m: (m[:6, :6], m[5::-1, :6]), lambda m: (m[:6, :6], m[:6, 1:7]),
    lambda m: (m[:6, :6].T, m[:6, :6]),
])  # fmt: skip
def test_outputs_of_any_layout_may_overlap_inputs(make):
    @aclnn.compile
    def f(x):
        return aclnn.silu(x) @ x.T + x

    x, out = make(array(8, 8))
    expected = f(x.copy())
    base = out.base.copy()
    f(x, out=out)
    same(out, expected)
    out.base[...] = base
    f.executor(x).run(out=out)
    same(out, expected)


def test_outputs_that_cannot_be_are_refused():
    @aclnn.compile
    def f(x):
        return x * 2

    x = array(3, 4)
    read_only = np.zeros((4, 3), np.float32).T
    read_only.flags.writeable = False
    for out in (
        array(3, 5), array(3, 4, dtype=np.float64), array(4, 3), read_only,
        np.broadcast_to(array(4), (3, 4)), np.lib.stride_tricks.as_strided(array(12), (3, 4), (0, 4)),
    ):  # fmt: skip
        for call in (f, f.executor, f.executor(x).run):
            with pytest.raises(aclnn.AclnnError):
                call(x, out=out)


@each("function", [
    lambda x: x.T, lambda x: x[::-1], lambda x: x @ x, lambda x: np.roll(x, 1, 0),
    lambda x: np.cumsum(x[::-1], 0), lambda x: aclnn.index_select(x, 0, np.array([3, 2, 1, 0])),
    lambda x: np.concatenate([x[2:], x[:2]]), lambda x: x - x[0], lambda x: x + x.T,
    lambda x: aclnn.softmax(x, 0), lambda x: aclnn.gelu(x) * 2 + x, lambda x: np.tril(x.T),
])  # fmt: skip
def test_outputs_may_be_inputs(function):
    f, x = aclnn.compile(function), array(4, 4)
    expected = f(x.copy())
    planned = f.executor(x.copy())
    for call in (f, lambda y, out: f.executor(y, out=out).run(), planned.run):
        made = x.copy()
        assert call(made, out=made) is made
        same(made, expected)


def test_outputs_are_no_arguments_that_the_function_writes():
    @aclnn.compile
    def f(x):
        x += 1
        return x * 2

    x = array(3)
    for call in (f, f.executor(x).run, lambda x, out: f.executor(x, out=out).run()):
        with pytest.raises(aclnn.AclnnError, match="out shares memory with x, which the function"):
            call(x, out=x)


# --- Floats ---------------------------------------------------------------------------------------


def test_floats_are_numbers_of_the_run():
    @aclnn.compile
    def f(x, temperature):
        return aclnn.softmax(x / temperature, -1)

    x = array(4, 8)
    for t in np.linspace(0.1, 5, 50).tolist():
        same(f(x, t), aclnn.softmax(aclnn.div(x, t), -1))
        same(f(x, temperature=t), aclnn.softmax(aclnn.div(x, t), -1))
    assert f.cache_info()["misses"] == 2
    executor = f.executor(x, temperature=1.5)
    same(executor.run(temperature=0.5), f(x, 0.5))
    same(executor.run(), f(x, 0.5))
    same(executor.run(x, 0.75), f(x, 0.75))
    again = pickle.loads(pickle.dumps(compiled_models.nested.executor(
        [{"w": x}, (x,)], {"b": x}, by=0.5)))  # fmt: skip
    same(again.run([{"w": x}, (x,)], {"b": x})["sum"], aclnn.mul(aclnn.add(x, x), 0.5))


NUMBERS = (0.5, -0.5, 0.0, -0.0, 1.0, -1.0, 2.0, 0.1, 1 / 3, 1e-8, 1e300, -1e300, math.inf,
           -math.inf, math.nan, 65519.99, 1e-45)  # fmt: skip

FORMULAS = {
    "times": lambda x, t: x * t,
    "swapped": lambda x, t: t * x,
    "plus": lambda x, t: x + t,
    "minus": lambda x, t: t - x,
    "over": lambda x, t: x / t,
    "under": lambda x, t: t / x,
    "derived": lambda x, t: x * (1 - t) + (2 * t + 1) - t * t,
    "power": lambda x, t: abs(x) ** 0.5 * t,
    "maximum": lambda x, t: np.maximum(x, t),
    "where": lambda x, t: np.where(x > 0, x, t),
    "slope": lambda x, t: aclnn.leaky_relu(x, t),
    "alpha": lambda x, t: aclnn.add(x, x, alpha=t),
    "elu": lambda x, t: aclnn.elu(x, t),
    "added": lambda x, t: aclnn.add(x, t),
    "full": lambda x, t: np.full_like(x, t) + x,
    "written": lambda x, t: written(x * 1, t),
    "branch": lambda x, t: x * t if t > 0 else x - t,
    "read": lambda x, t: x * (math.floor(t) if math.isfinite(t) else 3.0),
    "text": lambda x, t: x * len(f"{t:.3f}"),
    "numpy": lambda x, t: x * np.float32(t),
    "constant": lambda x, t: x * np.sqrt(np.full(3, abs(t), np.float32)).astype(x.dtype),
    "table": lambda x, t: x * {0.5: 2.0, 1.0: 3.0}.get(t, 4.0),
    "hyper": lambda x, t: x * math.tanh(t),
}


def written(x, t):
    x[1:] = t
    x += t
    return x


PLAIN = {
    "alpha": lambda x, t: aclnn.add(x, x, alpha=t),
}


@each("name, dtype", [
    (name, dtype) for name in FORMULAS for dtype in (np.float32, np.float16, np.float64)
])  # fmt: skip
@np.errstate(all="ignore")
def test_numbers_of_the_run_have_the_bits_of_constants(name, dtype):
    formula = FORMULAS[name]
    compiled = aclnn.compile(lambda x, t: formula(x, t))
    x = np.array([-2.5, 0.75, 3.0], dtype)

    def one(x, t):  # the number is a constant of the plan
        return aclnn.compile(lambda x: formula(x, t))(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for t in (*NUMBERS, *NUMBERS[::-1]):
            try:
                wanted = one(x, t)
            except (OverflowError, aclnn.AclnnError) as error:
                with pytest.raises(type(error)):
                    compiled(x, t)
                continue
            same(compiled(x, t), wanted)


def test_a_number_divided_by_zero_raises_as_it_does_in_python():
    @aclnn.compile
    def f(x, t):
        return x * (1 / t)

    x = array(3)
    same(f(x, 4.0), aclnn.mul(x, 0.25))
    with pytest.raises(ZeroDivisionError):
        f(x, 0.0)
    same(f(x, 2.0), aclnn.mul(x, 0.5))
    assert f.cache_info()["size"] == 1


def test_what_takes_nothing_but_floats_gets_them():
    @aclnn.compile
    def f(x, t):
        return x * json.loads(json.dumps(t)) + copy.copy(t)

    x = array(3)
    for t in (0.5, 0.25):
        same(f(x, t), aclnn.add(aclnn.mul(x, t), t))


def test_numbers_of_threads_are_their_own():
    @aclnn.compile
    def f(x, t):
        return x * t + t

    x = array(4000)
    executor, wrong = f.executor(x, 1.0), []

    def work(seed):
        for n in range(100):
            t = seed + n / 128
            expected = x * np.float32(t) + np.float32(t)
            if not (f(x, t) == expected).all():
                wrong.append(seed)
            if not (executor.run(t=t) == expected).all():
                wrong.append(-seed)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


@each("call, words", [
    (lambda f, n: f(np.zeros(n + 1, np.float32), 1), r"x was float32\[9\].*, is float32\[10\]"),
    (lambda f, n: f(np.zeros(3, np.float32), n), "n was 8, is 9"),
    (lambda f, n: f(np.zeros(3, np.float32), f"{n}"), "n was '8', is '9'"),
])  # fmt: skip
def test_plans_each_time_are_told_of_once(call, words):
    @aclnn.compile
    def f(x, n):
        return x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(9):
            call(f, n)
    with pytest.warns(RuntimeWarning, match=rf"^f was planned 10 times in a row.*{words}") as told:
        call(f, 9)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(20, 40):
            call(f, n)


def test_plans_of_objects_that_follow_each_other_are_not_told_of():
    class Model:
        def __init__(self):
            self.weight = array(3)

        @aclnn.compile
        def run(self, x):
            return x * self.weight

    x = array(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            Model().run(x)  # each has the id of the one before


def test_floats_that_are_left_to_their_defaults_may_be_given_to_runs():
    @aclnn.compile
    def f(x, scale=2.0, *, shift=0.5, count=1):
        return x * scale + shift * count

    x = array(3)
    executor = f.executor(x)
    same(executor.run(), f(x))
    same(executor.run(scale=3.0), f(x, 3.0))
    same(executor.run(x, shift=1.5), f(x, 3.0, shift=1.5))
    same(f.executor(x, 4.0).run(shift=1.0), f(x, 4.0, shift=1.0))


def _scaled(x, t):
    return x * t if type(t) is float else x


@each("function", [
    lambda x, t: x * t if type(t) is float else x,
    lambda x, t: x * {float: t}.get(type(t), 1),
    lambda x, t: _scaled(x, t),
])  # fmt: skip
def test_the_type_of_a_float_is_float(function):
    f = aclnn.compile(function)
    x = array(3)
    for t in (2.5, 3.5):
        same(f(x, t), function(x, t))


def test_executors_of_methods_take_the_object_first():
    class Model:
        @aclnn.compile
        def run(self, x, scale=2.0):
            return x * scale

    x = array(3)
    with pytest.raises(aclnn.AclnnTypeError, match=r"Model\.run\.executor\(object, \.\.\.\)"):
        Model().run.executor(x)
    same(Model.run.executor(Model(), x).run(), Model().run(x))


def test_a_float_that_is_read_is_told_of():
    @aclnn.compile
    def f(x, s, t):
        return x * s * int(t)

    x = array(3)
    for n in range(9):
        f(x, 0.5 + n, float(n))
    with pytest.warns(RuntimeWarning, match="t changed"):
        f(x, 0.5, 9.0)


@each("choose, plans", [
    (lambda x, t: x * t if t > 1 else x, 2),
    (lambda x, t: x * min(max(t, 0.5), 2), 3),
    (lambda x, t: x if not t else x * t, 2),
    (lambda x, t: x * t if t != 2 else x - t, 2),
    (lambda x, t: x * 2 if 0.2 <= t * t < 3 else x, 3),
    (lambda x, t: x * 2 if t == t + 1 else x, 2),
    (lambda x, t: x * 2 if t in (0.25, 3) else x, 3),
])  # fmt: skip
def test_comparisons_of_floats_make_a_plan_for_each_outcome(choose, plans):
    f = aclnn.compile(choose)
    x = array(3)
    for t in (*NUMBERS, 0.25, 3.0, 1.25, 1.5):
        same(f(x, t), aclnn.compile(choose)(x, t))
    assert f.cache_info()["misses"] <= plans + 2, f.cache_info()  # sums may tell infinities apart


def test_an_outcome_that_changes_is_told_of_with_its_float():
    @aclnn.compile
    def f(x, s, t):
        outcomes = [t > n for n in range(20)]
        return x * s + sum(outcomes)

    x = array(3)
    for n in range(9):
        f(x, 0.5 + n, n + 0.5)
    with pytest.warns(RuntimeWarning, match="t changed"):
        f(x, 0.5, 9.5)


def test_only_plans_for_other_descriptions_are_told_of():
    x = array(3)

    @aclnn.compile
    def fails(x):
        raise LookupError

    f = aclnn.compile(lambda x: x * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(20):
            with pytest.raises(LookupError):
                fails(x)
        for _ in range(20):
            f.clear_cache()
            f(x)
        before = _settings.current_settings()["cache_limit"]
        _plan_cache.set_limit(0)
        try:
            for _ in range(20):
                f(x)
        finally:
            _plan_cache.set_limit(before)


def test_outputs_that_overlap_each_other_are_refused():
    function = aclnn.compile(lambda x: (aclnn.relu(x), aclnn.gelu(x)))
    x, memory = np.ones(4, np.float32), np.empty(6, np.float32)
    with pytest.raises(aclnn.AclnnError, match="outputs 0 and 1 of out share memory"):
        function(x, out=(memory[:4], memory[2:]))
    with pytest.raises(aclnn.AclnnError, match="share memory"):
        function.executor(x)(x, out=(memory[:4], memory[:4]))
    function(x, out=(memory[:4:1], np.empty(4, np.float32)))


def test_tensors_that_overlap_each_other_are_refused_as_outputs():
    torch = pytest.importorskip("torch")
    function = aclnn.compile(lambda x: (aclnn.relu(x), aclnn.gelu(x)))
    x, memory = torch.ones(4), torch.empty(8)
    with pytest.raises(aclnn.AclnnError, match="outputs 0 and 1 of out share memory"):
        function(x, out=(memory[:4], memory[3:7]))
    function(x, out=(memory[::2], memory[1::2]))  # extents meet, elements do not
    np.testing.assert_array_equal(memory[::2].numpy(), 1)
