"""What other threads, and the caller, may do between the phases and while something runs."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import aclnn
from aclnn import aclDataType as T

OK, INVALID, INNER = 0, 161002, 561000
LARGE = 1 << 22  # elements: so many run for a millisecond and more, without the interpreter's lock


def tensor(array):
    made = aclnn.aclCreateTensor(
        array.shape, T.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, array.shape, array
    )
    assert made is not None, aclnn.aclGetRecentErrMsg()
    return made


def planned(x, out):
    size, executor, status = aclnn.aclnnGeluGetWorkspaceSize(x, out)
    assert (size, status) == (0, OK), aclnn.aclGetRecentErrMsg()
    return executor


def while_it_runs(run, disturb):
    """Run on a thread of its own and disturb from this one until it is done."""
    raised = []

    def guarded():
        try:
            run()
        except aclnn.AclnnError as error:
            raised.append(error)

    worker = threading.Thread(target=guarded)
    worker.start()
    while worker.is_alive():
        disturb()
    worker.join()
    return raised


@pytest.mark.parametrize("place", ["self", "out"])
def test_a_tensor_described_anew_is_not_what_was_planned(place):
    x, out = np.ones(1 << 20, np.float32), np.zeros(1 << 20, np.float32)
    tensors = {"self": tensor(x), "out": tensor(out)}
    executor = planned(tensors["self"], tensors["out"])
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    small = np.zeros(1, np.float32)
    assert (
        aclnn.aclInitTensor(
            tensors[place], (1,), T.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (1,), small
        )
        == OK
    )
    for index in range(2):
        assert aclnn.aclnnGelu(None, 0, executor, None) == INVALID
        assert f"{place} was described anew" in aclnn.aclGetRecentErrMsg()
        # Other memory for the tensor as it is now does not make it the one that was planned.
        aclnn.aclSetTensorAddr(executor, index, tensors["self"], small)
    assert (out == 0).all()


def test_a_tensor_described_anew_can_be_planned_anew():
    x, out = tensor(np.ones(4, np.float32)), tensor(np.zeros(4, np.float32))
    planned(x, out)
    result = np.zeros(2, np.float64)
    for one, data in ((x, np.ones(2)), (out, result)):
        description = ((2,), T.ACL_DOUBLE, None, 0, aclnn.ACL_FORMAT_ND, (2,), data)
        assert aclnn.aclInitTensor(one, *description) == OK
    slope = aclnn.aclCreateScalar(0.5, T.ACL_FLOAT)
    _, executor, status = aclnn.aclnnLeakyReluGetWorkspaceSize(x, slope, out)
    assert status == OK
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK
    assert (result == 1).all()


def test_an_executor_destroyed_while_it_runs():
    for _ in range(5):
        executor = aclnn.executor("gelu", np.ones(LARGE, np.float32))
        while_it_runs(executor.run, executor.destroy)
        with pytest.raises(aclnn.AclnnError, match="destroyed"):
            executor.run()
        with pytest.raises(aclnn.AclnnError, match="destroyed"):
            executor.rebind({"self": np.ones(LARGE, np.float32)})


def test_memory_taken_away_while_phase_two_runs():
    for _ in range(5):
        x, out = tensor(np.ones(LARGE, np.float32)), tensor(np.zeros(LARGE, np.float32))
        executor = planned(x, out)

        def let_go(out=out):
            aclnn.aclSetRawTensorAddr(out, None)

        while_it_runs(lambda ex=executor: aclnn.aclnnGelu(None, 0, ex, None), let_go)
        assert aclnn.aclGetRawTensorAddr(out) == (0, OK)


def test_arrays_bound_anew_while_it_runs():
    x = np.ones(LARGE, np.float32)
    executor = aclnn.executor("gelu", x, out=np.zeros(LARGE, np.float32))
    fresh = np.zeros(LARGE, np.float32)

    def bind_others():
        executor.rebind({"out": fresh})

    for _ in range(5):
        while_it_runs(executor.run, bind_others)
    np.testing.assert_array_equal(executor.run(out=fresh), aclnn.gelu(x))


def test_threads_that_share_an_executor_get_their_own_results():
    count, rounds = 1 << 15, 300
    executor = aclnn.executor("leaky_relu", np.zeros(count, np.float32), negative_slope=0.5)
    wrong = []

    def work(value):
        x, out = np.full(count, -value, np.float32), np.zeros(count, np.float32)
        for _ in range(rounds):
            out[:] = 0
            if executor.run(self=x, out=out) is not out or not (out == -value / 2).all():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(value,)) for value in (2.0, 8.0, 32.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_destroyed_executor_holds_nothing():
    out = np.zeros(4, np.float32)
    x, target = tensor(np.ones(4, np.float32)), tensor(out)
    executor = planned(x, target)
    before = sys.getrefcount(target)
    assert aclnn.aclDestroyAclOpExecutor(executor) == OK
    assert sys.getrefcount(target) == before - 1
    assert aclnn.aclnnGelu(None, 0, executor, None) == INNER


@pytest.mark.parametrize("kind", [aclnn.aclOpExecutor, aclnn.aclTensor, aclnn.aclScalar])
def test_handles_are_made_by_their_functions_only(kind):
    for make in (kind, lambda: kind.__new__(kind), lambda: object.__new__(kind)):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(TypeError):
        type("Own", (kind,), {"__init__": lambda self: None})


def test_handles_may_be_made_while_handles_are_made():
    """What the garbage collector calls may make some of its own."""
    code = """
import gc, aclnn
make, number = aclnn.aclCreateScalar, aclnn.ACL_FLOAT
make(1, number)
kept = []
gc.callbacks.append(lambda phase, info: kept.append(make(2, number)))
for later in [*range(-3, 6)] * 20:
    # The collector runs at the next allocation, which is the scalar's, or at one soon after.
    gc.set_threshold(max(1, gc.get_count()[0] + later), 1000, 1000)
    kept.append(make(1, number))
gc.callbacks.clear()
assert None not in kept
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_address_can_be_given_to_rebind():
    executor = aclnn.executor("gelu", np.zeros(2, np.float32))
    with pytest.raises(TypeError):
        executor.rebind({"self": np.ones(2, np.float32)}, 8)


class Hostile:
    """Raises whatever is asked of it."""

    def __repr__(self):
        raise RuntimeError("no")

    __index__ = __float__ = __bool__ = __eq__ = __hash__ = __repr__


JUNK = [None, -1, -(10**5000), 10**5000, 0.5, "x", b"x", (), [], [1], object(), Hostile(), 1j,
        float("nan"), np.array("a"), np.array([1, 2]), __import__("decimal").Decimal("sNaN")]  # fmt: skip


class Text(str):
    """A string with odd ideas of itself."""

    def __eq__(self, other):
        raise RuntimeError("no")

    def __hash__(self):
        raise RuntimeError("no")

    __str__ = __repr__ = __hash__


def test_strings_of_other_classes_are_their_letters():
    x = np.float32([0.25, 0.5])
    tanh = aclnn.gelu_backward(x, x, approximate="tanh")
    same = tensor(x)
    plan = aclnn.aclnnGeluBackwardV2GetWorkspaceSize
    for kind in (Text, np.str_):
        np.testing.assert_array_equal(aclnn.gelu_backward(x, x, approximate=kind("tanh")), tanh)
        assert plan(same, same, kind("tanh"), same)[2] == OK
        assert plan(same, same, kind("erf"), same)[2] == INVALID
        assert aclnn.aclGetRecentErrMsg()


def statuses(result):
    return result[-1] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", ["aclnnLogitGrad", "aclnnGeluV2", "aclnnGeluBackwardV2"])
def test_junk_in_each_place_of_phase_one(name):
    plan = getattr(aclnn, f"{name}GetWorkspaceSize")
    x = tensor(np.full(2, 0.5, np.float32))
    good = {
        "aclnnLogitGrad": [x, x, 0.25, x], "aclnnGeluV2": [x, 1, x],
        "aclnnGeluBackwardV2": [x, x, "tanh", x],
    }[name]  # fmt: skip
    assert statuses(plan(*good)) == OK
    for position in range(len(good)):
        for junk in JUNK:
            status = statuses(plan(*good[:position], junk, *good[position + 1 :]))
            refused = status in (161001, INVALID)
            assert refused or status == OK
            assert bool(aclnn.aclGetRecentErrMsg()) == refused


@pytest.mark.parametrize("position", range(4))
def test_junk_in_each_place_of_phase_two(position):
    for junk in JUNK:
        executor = planned(tensor(np.ones(2, np.float32)), tensor(np.ones(2, np.float32)))
        good = [None, 0, executor, None]
        status = aclnn.aclnnGelu(*good[:position], junk, *good[position + 1 :])
        assert isinstance(status, int)
        assert bool(aclnn.aclGetRecentErrMsg()) == (status != OK)


@pytest.mark.parametrize("junk", JUNK[1:], ids=range(1, len(JUNK)))
def test_junk_for_options_of_functional_forms(junk):
    x = np.float32([0.25, 0.5])
    for call in (
        lambda: aclnn.leaky_relu(x, junk),
        lambda: aclnn.logit_backward(x, x, junk),
        lambda: aclnn.gelu(x, approximate=junk),
        lambda: aclnn.gelu_backward(x, x, approximate=junk),
        lambda: aclnn.executor("gelu", x, approximate=junk),
        lambda: aclnn.executor("leaky_relu", x, negative_slope=junk),
    ):
        try:
            call()
        except aclnn.AclnnError as error:
            assert error.status == INVALID


def test_refused_options_leave_nothing_behind():
    x = np.float32([0.25, 0.5])
    for number in range(0x8000):
        with pytest.raises(aclnn.AclnnError, match="approximate"):
            aclnn.gelu_backward(x, x, approximate=f"bad{number}")
    # As many as a key has numbers for: none of them may have become that of a plan.
    np.testing.assert_array_equal(
        aclnn.gelu_backward(x, x, approximate="none"), aclnn.gelu_backward(x, x)
    )


@pytest.mark.parametrize(
    "dtype", [np.longdouble, np.clongdouble, "float8_e5m2", "int4", "V0", "M8[s]", "U3", "O"]
)
def test_dtypes_that_nobody_knows(dtype):
    import ml_dtypes

    unknown = np.zeros(3, getattr(ml_dtypes, str(dtype), dtype))
    x = np.zeros(3, np.float32)
    for call in (
        lambda: aclnn.gelu(unknown),
        lambda: aclnn.gelu(x, out=unknown),
        lambda: aclnn.gelu_backward(x, unknown),
        lambda: aclnn.executor("gelu", unknown),
        lambda: aclnn.executor("gelu", x, out=unknown),
    ):
        with pytest.raises(aclnn.AclnnError, match="dtype"):
            call()


@pytest.mark.parametrize(
    ("shape", "strides", "meet"),
    [
        ((4, 4), (1, 1), True),
        ((4, 4), (4, 1), False),
        ((2, 2), (3, 2), False),
        ((3, 2), (2, 3), False),  # 0 2 4 3 5 7: dimensions that reach into each other
        ((4, 2), (2, 4), True),
        ((1, 4), (0, 1), False),
        ((3, 1, 2), (2, 0, 1), False),
        ((2048, 2048), (1, 1), True),
    ],
)
def test_outputs_whose_elements_meet_are_refused(shape, strides, meet):
    count = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    storage = np.zeros(count, np.float32)
    out = aclnn.aclCreateTensor(
        shape, T.ACL_FLOAT, strides, 0, aclnn.ACL_FORMAT_ND, (count,), storage
    )
    _, _, status = aclnn.aclnnGeluGetWorkspaceSize(tensor(np.ones(shape, np.float32)), out)
    assert status == (INVALID if meet else OK)
    if meet:
        assert "share memory" in aclnn.aclGetRecentErrMsg()


def test_the_cache_keeps_what_was_used_last():
    code = """
import numpy as np, aclnn
from aclnn import _plan
arrays = [np.zeros(size, np.float32) for size in range(1, 9)]
_plan.configure(cache_limit=4)
for array in arrays[:5]:
    aclnn.gelu(array)
before = aclnn.cache_info()
for _ in range(3):  # two that take turns do not fall back on the one that was used last
    for array in arrays[3:5]:
        aclnn.gelu(array)
after = aclnn.cache_info()
assert after["misses"] == before["misses"], (before, after)
aclnn.gelu(arrays[0])  # the oldest is the one that went
assert aclnn.cache_info()["misses"] == after["misses"] + 1
for limit in range(1, 8):
    _plan.configure(cache_limit=limit)
    for array in arrays:
        aclnn.gelu(array), aclnn.gelu(arrays[0])
    assert aclnn.cache_info()["size"] <= limit
    assert aclnn.cache_info()["misses"] == 8 if limit > 1 else True, (limit, aclnn.cache_info())
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_plan_is_made_by_the_product_that_it_is_kept_for(monkeypatch):
    from aclnn import planning, product

    x = np.zeros(3, np.float32).astype("bfloat16")
    aclnn.clear_cache()
    soc = aclnn.get_soc_version()
    check_call = planning.check_call

    def switches_in_between(*arguments):
        product.set_soc_version("Ascend910B")
        return check_call(*arguments)

    try:
        aclnn.set_soc_version("Ascend910")  # has no bfloat16
        monkeypatch.setattr(planning, "check_call", switches_in_between)
        with pytest.raises(aclnn.AclnnError, match="BF16"):
            aclnn.gelu_backward(x, x)
    finally:
        aclnn.set_soc_version(soc)


@pytest.fixture
def somebody_else():
    """Another thread that runs a plan that callers may share."""
    x, ended = np.ones(50000, np.float32), threading.Event()

    def run():
        while not ended.is_set():
            aclnn.gelu(x)

    thread = threading.Thread(target=run)
    thread.start()
    yield x
    ended.set()
    thread.join()


def test_profiles_can_be_read_while_they_fill(somebody_else):
    with aclnn.profile() as seen:
        while len(seen) < 300:
            aclnn.leaky_relu(somebody_else[: 1 + len(seen)])
            assert sum(len(step.times) for step in seen.steps) <= len(seen)
            read = aclnn.Profile.from_json(seen.to_json())
            assert sum(len(step.times) for step in read.steps) == len(read)


def test_an_executors_profile_counts_its_own_runs(somebody_else):
    executor = aclnn.executor("gelu", somebody_else)
    assert [len(executor.profile(repeat=10, warmup=0)) for _ in range(20)] == [10] * 20
