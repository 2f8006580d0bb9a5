"""What compiled functions reach beside their arguments: looked up at each call, and let go of."""

import gc
import sys
import threading
import types
import weakref
from collections import defaultdict
from functools import cached_property, partial
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each

import aclnn
from aclnn.tracing.recordings import Traced

RNG = np.random.default_rng(11)
W = RNG.standard_normal(4).astype(np.float32)
SCALE = 2.0
LAYERS = [{"w": W + 1}, {"w": W + 2}]


def array(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def same(found, expected):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


class Model:
    """Compares equal to every other."""

    def __init__(self, w):
        self.w = w

    def __eq__(self, other):
        return isinstance(other, Model)

    def __hash__(self):
        return 1

    @aclnn.compile
    def __call__(self, x):
        return aclnn.relu(x @ self.w)


def plans(compiled):
    return compiled.cache_info()["misses"]


def test_weights_that_are_bound_anew_are_used_without_tracing_anew():
    model, x = Model(array(4, 3)), array(2, 4)
    before = plans(Model.__call__)
    same(model(x), aclnn.relu(aclnn.matmul(x, model.w)))
    model.w = array(4, 3)
    same(model(x), aclnn.relu(aclnn.matmul(x, model.w)))
    model.w *= 2
    same(model(x), aclnn.relu(aclnn.matmul(x, model.w)))
    assert plans(Model.__call__) == before + 1
    model.w = array(4, 5)
    same(model(x), aclnn.relu(aclnn.matmul(x, model.w)))
    model.w = np.asfortranarray(array(4, 5))
    same(model(x), aclnn.relu(aclnn.matmul(x, model.w)))
    assert plans(Model.__call__) == before + 3


def test_objects_that_compare_equal_share_no_plan():
    x = array(2, 4)
    before = plans(Model.__call__)
    for model in [Model(array(4, 3)) for _ in range(3)]:
        same(model(x), aclnn.relu(aclnn.matmul(x, model.w)))
    assert plans(Model.__call__) == before + 3


def test_a_cache_ends_with_its_owner():
    x, dead = array(2, 512), []
    Model.__call__.clear_cache()
    for _ in range(8):
        model = Model(array(512, 1024))
        model(x)
        dead += [weakref.ref(model), weakref.ref(model.w)]
    assert Model.__call__.cache_info()["size"] == 1
    del model
    gc.collect()
    assert Model.__call__.cache_info()["size"] == 0
    assert [one() for one in dead] == [None] * 16


class Slots:
    __slots__ = ("__weakref__", "w")


class Inner:
    def __init__(self):
        self.w = W.copy()

    def __call__(self, x):
        return x * self.w


class Outer:
    kept = W + 3

    def __init__(self):
        self.inner, self.many = Inner(), [Inner(), Inner()]
        self.table = {"a": {"w": W + 5}}
        self.slots = Slots()
        self.slots.w = W + 6

    @property
    def first(self):
        return self.many[0]

    @aclnn.compile
    def of_object(self, x):
        return self.inner(x)

    @aclnn.compile
    def of_list(self, x):
        for one in self.many:
            x = one(x)
        return x

    @aclnn.compile
    def of_table(self, x):
        return x + self.table["a"]["w"]

    @aclnn.compile
    def of_class(self, x):
        return x + self.kept

    @aclnn.compile
    def of_slots(self, x):
        return x + self.slots.w

    @aclnn.compile
    def of_property(self, x):
        return self.first(x)

    @aclnn.compile
    def by_getattr(self, x):
        return getattr(self, "inn" + "er").w + x

    @aclnn.compile
    def turned(self, x):
        return x + self.inner.w[::-1][None]

    @aclnn.compile
    def of_another(self, x):
        return other_object.inner.w + x


other_object = Outer()


def set_object(m):
    m.inner.w = W - 1


def set_inner(m):
    m.inner = Inner()
    m.inner.w = W - 2


def set_list(m):
    m.many[1].w = W - 3


def set_table(m):
    m.table["a"] = {"w": W - 4}


def set_slots(m):
    m.slots.w = W - 5


def set_class(m):
    m.kept = W - 6


def set_other(m):
    other_object.inner.w = W - 7


def set_first(m):
    m.many[0].w = W - 8


@each("name, change", [
    ("of_object", set_object), ("of_object", set_inner), ("of_list", set_list),
    ("of_table", set_table), ("of_slots", set_slots), ("of_class", set_class),
    ("of_property", set_first), ("by_getattr", set_inner), ("turned", set_object),
    ("of_another", set_other),
])  # fmt: skip
def test_arrays_are_followed_through_objects_and_containers(name, change):
    model, x = Outer(), array(4)
    method = getattr(model, name)
    plain = types.MethodType(getattr(Outer, name).__wrapped__, model)
    same(method(x), plain(x))
    before = plans(getattr(Outer, name))
    change(model)
    same(method(x), plain(x))
    assert plans(getattr(Outer, name)) == before
    for one in (model.inner, *model.many, model.slots):
        one.w += 1
    same(method(x), plain(x))


def helper(x):
    return x * W + LAYERS[1]["w"]


@aclnn.compile
def of_globals(x):
    return helper(x) * SCALE


def test_globals_are_followed_through_functions(monkeypatch):
    x = array(4)

    def check():
        same(of_globals(x), aclnn.mul(aclnn.add(aclnn.mul(x, W), LAYERS[1]["w"]), SCALE))

    check()
    before = plans(of_globals)
    monkeypatch.setattr(sys.modules[__name__], "W", W + 1)
    check()
    monkeypatch.setitem(LAYERS[1], "w", W - 1)
    check()
    monkeypatch.setattr(sys.modules[__name__], "LAYERS", [{"w": W}, {"w": W * 3}])
    check()
    assert plans(of_globals) == before
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    check()
    monkeypatch.setattr(sys.modules[__name__], "helper", lambda x: x)
    same(of_globals(x), aclnn.mul(x, 3.0))
    assert plans(of_globals) == before + 2


def test_closures_are_followed():
    w = array(4)

    @aclnn.compile
    def f(x):
        return x + w

    x = array(4)
    same(f(x), aclnn.add(x, w))
    w = array(4)
    same(f(x), aclnn.add(x, w))
    assert plans(f) == 1
    w = array(2, 4)
    same(f(x), aclnn.add(x, w))
    assert plans(f) == 2


@each("first, second", [
    (1.0, 2.0), (0.0, -0.0), (True, False), (1, True), ("a", "b"), (None, 1.0), ((1, 2), (1, 2.0)),
])  # fmt: skip
def test_plain_attributes_are_part_of_the_description(first, second):
    scope, seen = SimpleNamespace(value=first), []

    @aclnn.compile
    def f(x):
        seen.append(scope.value)
        return x * 2

    x = array(3)
    for value in (first, first, second, second):
        scope.value = value
        f(x)
    assert repr(seen) == repr([first, second])


def test_an_array_of_two_names_may_become_two():
    scope = SimpleNamespace(a=W, b=W)

    @aclnn.compile
    def f(x):
        return x + scope.a * scope.b

    f(W)
    scope.b = W + 1
    same(f(W), aclnn.add(W, aclnn.mul(W, scope.b)))


def test_what_a_function_makes_is_a_constant():
    @aclnn.compile
    def f(x):
        return x + np.arange(4, dtype=np.float32) + aclnn.relu(np.full(4, 2, np.float32))

    x = array(4)
    for _ in range(2):
        same(f(x), x + np.arange(4, dtype=np.float32) + np.float32(2))
    assert plans(f) == 1


def test_what_a_function_makes_may_be_written():
    @aclnn.compile
    def f(x):
        made = np.zeros(4, np.float32)
        aclnn.relu(x, out=made)
        return made

    first, second = array(4), array(4)
    kept = f(first)
    f(second)
    same(kept, aclnn.relu(first))


def test_what_is_computed_of_arrays_outside_is_computed_anew_when_they_change():
    scope = SimpleNamespace(w=array(4), n=array(1))

    @aclnn.compile
    def f(x):
        return x + scope.w * 2 if scope.n[0] > 0 else x - scope.w * 2

    x = array(4)
    for n in (1, -1, 1):
        scope.n[0] = n
        scope.w += 1
        same(f(x), x + scope.w * 2 if n > 0 else x - scope.w * 2)


def test_what_cannot_be_followed_is_refused_with_the_line():
    w = array(4)
    get = {"w": w}.get

    @aclnn.compile
    def f(x):
        return x + get("w")

    with pytest.raises(aclnn.AclnnError, match=r"return x \+ get\(.w.\)") as caught:
        f(array(4))
    assert "cannot be followed" in str(caught.value)
    assert "argument" in str(caught.value)

    @aclnn.compile
    def drawn(x):
        return x + RNG.standard_normal(4).astype(np.float32)

    with pytest.raises(aclnn.AclnnError, match=r"other elements each time[^$]*RNG.standard_normal"):
        drawn(array(4))


def test_states_that_a_function_changes_itself_cause_no_plans():
    calls, scope = [], SimpleNamespace(count=0, w=W)

    @aclnn.compile
    def f(x):
        calls.append(1)
        scope.count += 1
        return x + scope.w

    x = array(4)
    f(x), f(x), calls.clear(), f(x)
    assert (calls, scope.count, plans(f)) == ([], 1, 1)

    @aclnn.compile
    def g(x):
        scope.w = scope.w + x
        return scope.w

    with pytest.raises(
        aclnn.AclnnError, match=r"scope.w cannot be followed: it is bound to another object"
    ):
        g(x)


class Odd:
    """Ways to an array that are not plain attributes."""

    lazy = None
    computed_of = None

    def __init__(self):
        self.__dict__["hidden"] = {"gone": W + 1}
        self.table = defaultdict(list)
        self.table["a"].append(W + 2)
        self.state = W.copy()
        self.w = W + 3

    def __getattr__(self, name):
        if name not in self.__dict__.get("hidden", ()):
            raise AttributeError(name)
        return self.hidden[name]

    @cached_property
    def once(self):
        return self.w * 3

    @property
    def each_time(self):
        return self.w * 5

    def of_getattr(self, x):
        return x * self.gone

    def of_default(self, x):
        return x * self.table["a"][0]

    def of_lazy(self, x):
        if self.lazy is None:
            self.lazy = np.full(4, 2, np.float32)
        return x * self.lazy

    def of_once(self, x):
        return x + self.once

    def of_each_time(self, x):
        return x + self.each_time

    def writes(self, x):
        aclnn.add(x, 1, out=self.state)
        return self.state


def set_hidden(m):
    m.hidden["gone"] = W - 1


def set_default(m):
    m.table["a"][0] = W - 2


def set_lazy(m):
    m.lazy = W - 3


def set_once(m):
    m.once = W - 4


def set_source(m):
    m.w = W - 5


def set_source_in_place(m):
    m.w -= 6


def set_state(m):
    m.state = W.copy()


@each("name, change", [
    ("of_getattr", set_hidden), ("of_default", set_default), ("of_lazy", set_lazy),
    ("of_once", set_once), ("of_each_time", set_source), ("of_each_time", set_source_in_place),
    ("writes", set_state),
])  # fmt: skip
def test_odd_ways_to_arrays_are_followed_too(name, change):
    plain, compiled = Odd(), Odd()
    method = aclnn.compile(getattr(Odd, name))
    for step in range(4):
        x = array(4)
        same(method(compiled, x), getattr(plain, name)(x))
        same(compiled.state, plain.state)
        if step == 1:
            change(plain)
            change(compiled)


@each("make", [
    lambda w: aclnn.compile(partial(lambda s, x: x + s[0], w)),
    lambda w: aclnn.compile(SimpleNamespace(w=w, f=lambda x: x + w[0]).f),
    lambda w: aclnn.compile(lambda x, kept=w: x + kept[0]),
])  # fmt: skip
def test_functions_of_any_kind_are_followed(make):
    w, x = [array(4)], array(4)
    f = make(w)
    same(f(x), aclnn.add(x, w[0]))
    w[0] = array(4)
    same(f(x), aclnn.add(x, w[0]))
    assert plans(f) == 1


def test_what_is_computed_of_what_was_written_is_refused():
    scope = SimpleNamespace(state=W.copy())

    @aclnn.compile
    def f(x):
        aclnn.add(x, 1, out=scope.state)
        return x + scope.state * 2

    with pytest.raises(aclnn.AclnnError, match=r"computed of scope_state[^$]*scope.state \* 2"):
        f(array(4))


def test_plans_with_steps_and_functions_end_with_their_objects():
    class Step:
        def run(self, y, out):
            np.copyto(out, y)

        @aclnn.compile
        def f(self, x):
            return aclnn.call(self.run, x, shape=x.shape, dtype=x.dtype)

    @aclnn.compile
    def g(x, function):
        return function(x)

    x, one, factor = array(4), Step(), array(4)
    same(one.f(x), x)
    function = lambda x: x * factor  # noqa: E731
    same(g(x, function), aclnn.mul(x, factor))
    dead = weakref.ref(one), weakref.ref(function)
    del one, function
    gc.collect()
    assert [ref() for ref in dead] == [None, None]
    assert g.cache_info()["size"] == 0


def test_what_changes_after_a_trace_is_that_of_the_trace_for_its_first_run(monkeypatch):
    scope = SimpleNamespace(w=array(4))
    f, x = aclnn.compile(lambda x, t: x * scope.w[::-1] * t), array(4)
    monkeypatch.setattr(Traced, "fits", lambda *_: None)  # as if another thread bound it meanwhile
    for t in (0.5, 0.25):
        scope.w = array(4)
        same(f(x, t), aclnn.mul(aclnn.mul(x, scope.w[::-1]), t))


def test_executors_keep_what_was_there_when_they_were_made():
    model, x = Model(array(4, 3)), array(2, 4)
    executor, old = Model.__call__.executor(model, x), model.w
    assert [*executor.inputs] == ["x", "self_w"]
    model.w = array(4, 3)
    same(executor.run(), aclnn.relu(aclnn.matmul(x, old)))
    same(executor.run(self_w=model.w), aclnn.relu(aclnn.matmul(x, model.w)))


def test_tensors_are_followed():
    torch = pytest.importorskip("torch")

    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 4), requires_grad=False)

        @aclnn.compile
        def run(self, x):
            return aclnn.matmul(x, self.weight.T)

    model, x = Linear(), torch.randn(2, 4)
    for _ in range(2):
        assert torch.equal(model.run(x), aclnn.matmul(x, model.weight.T))
        model.weight.mul_(2)
    model.weight = torch.nn.Parameter(torch.randn(3, 4), requires_grad=False)
    assert torch.equal(model.run(x), aclnn.matmul(x, model.weight.T))
    assert plans(Linear.run) == 1


@each("fails", [False, True])
def test_a_description_is_planned_once_whoever_asks(fails):
    traced, began, start = [], threading.Event(), threading.Barrier(8)

    def body(x):
        traced.append(threading.get_ident())
        began.wait(0.2)  # lets the others come
        if fails and len(traced) == 1:
            raise ZeroDivisionError
        return x * 2

    f, x, found = aclnn.compile(body), array(8), []

    def work():
        start.wait()
        try:
            found.append(f(x).tobytes())
        except ZeroDivisionError:
            found.append(None)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(traced) == 1 + fails
    assert sorted(map(bool, found)) == [False] * fails + [True] * (8 - fails)
    assert not f._cache._planning
    assert f.cache_info()["size"] == 1
