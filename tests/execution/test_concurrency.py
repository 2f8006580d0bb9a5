"""Threads and executors: what may happen between the phases and while something runs."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from aclnn.graph.runtime import _scheduler
from setups import fresh, planned, tensor

import aclnn
from aclnn import aclDataType as T
from aclnn.acl import errors

OK, INVALID, INNER = 0, 161002, 561000
LARGE = 1 << 22  # elements: so many run for a millisecond and more, without the interpreter's lock


def while_it_runs(run, disturb):
    """Run on a thread of its own and disturb from this one, at least once, until it is done."""
    raised = []

    def guarded():
        try:
            run()
        except aclnn.AclnnError as error:
            raised.append(error)

    worker = threading.Thread(target=guarded)
    worker.start()
    disturb()
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


def test_failing_runs_of_one_plan_tell_their_own_index():
    table = np.arange(8, dtype=np.float32)[:, None]
    wrong, start = [], threading.Barrier(2)

    def gather_from(bad):
        index = np.zeros((1 << 15, 1), np.int64)
        index[-1] = bad  # the other run begins before this is met
        start.wait(10)
        for _ in range(200):
            try:
                aclnn.gather(table, 0, index)
            except aclnn.AclnnError as error:
                if error.message != f"gather: an index is {bad}, must be from -8 to 7":
                    wrong.append((bad, error.message))

    with aclnn.num_threads(1):
        threads = [threading.Thread(target=gather_from, args=(bad,)) for bad in (8, -9)]
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


def test_messages_are_per_thread():
    errors.set_message("mine")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(aclnn.aclGetRecentErrMsg()))
    thread.start()
    thread.join()
    assert seen == [None]
    assert aclnn.aclGetRecentErrMsg() == "mine"


def most_threads(run, tries=20):
    """How many threads took part in a run, at most: on a busy machine one may start when all is done."""
    with aclnn.profile() as seen:
        for _ in range(tries):
            run()
    return max(len(one.events) for one in seen.runs)


@pytest.mark.usefixtures("threads_as_before")
def test_threadpoolctl_limits_hold():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    if not _scheduler.openmp_enabled():
        pytest.skip("built without OpenMP, whose limits these are")
    aclnn.set_num_threads(2)
    x = np.ones(1 << 20, np.float32)
    assert most_threads(lambda: aclnn.gelu(x)) == 2
    with threadpoolctl.threadpool_limits(1):
        assert most_threads(lambda: aclnn.gelu(x)) == 1


@pytest.mark.usefixtures("threads_as_before")
def test_threadpoolctl_limits_hold_for_what_is_queued_meanwhile():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    if not _scheduler.openmp_enabled():
        pytest.skip("built without OpenMP, whose limits these are")
    aclnn.set_num_threads(2)
    x, out = np.ones((2, 1 << 20), np.float32)
    stream, _ = aclnn.aclrtCreateStream()
    threads = []

    def queue():
        executor = planned(tensor(x), tensor(out))
        assert aclnn.aclnnGelu(None, 0, executor, stream) == OK
        aclnn.aclrtSynchronizeStream(stream)

    for limit in (2, 1, 2):
        with threadpoolctl.threadpool_limits(limit):
            threads.append(most_threads(queue))
    aclnn.aclrtDestroyStream(stream)
    assert threads == [2, 1, 2]


def test_the_thread_limit_of_openmp_holds():
    if not _scheduler.openmp_enabled():
        pytest.skip("built without OpenMP, whose limit this is")
    code = (
        "import numpy as np, aclnn; aclnn.set_num_threads(2)\n"
        "with aclnn.profile() as seen:\n"
        "    for _ in range(20):\n        aclnn.gelu(np.ones(1 << 20, np.float32))\n"
        "print(max(len(run.events) for run in seen.runs))"
    )
    assert fresh(code).stdout.split() == ["2"]
    assert fresh(code, OMP_THREAD_LIMIT="1").stdout.split() == ["1"]


def test_little_stack_is_enough():
    """Runs want 224 KiB of it; threads have as much unless they are asked to have less."""
    code = """
import itertools, threading, ml_dtypes, numpy as np, aclnn
numbers = np.random.default_rng(0).standard_normal((80, 80))
arrays = [numbers.astype(kind) for kind in (np.float32, np.float16, ml_dtypes.bfloat16)]
def calls():
    for g, x in itertools.product(arrays, arrays):
        for call in (aclnn.gelu_backward, aclnn.hardshrink_backward):
            call(g.T, x), call(g, x[::-1]), call(g[:, :1], x)
        for call in (aclnn.elu, aclnn.leaky_relu):
            call(x, out=g.copy().T), call(numbers.T, out=numbers.copy())
calls()
threading.stack_size(256 << 10)
thread = threading.Thread(target=calls); thread.start(); thread.join()
"""
    done = fresh(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("size", [64, 96, 128, 192])
def test_a_thread_with_too_little_stack_is_refused(size):
    """By each way to call, planned already or not; its process goes on, and so does what it calls."""
    code = f"""
import threading, numpy as np, aclnn
x = np.random.default_rng(0).standard_normal((300, 300), np.float32)
executor = aclnn.executor("gelu", x.T)
tensor = lambda a: aclnn.aclCreateTensor(
    a.shape, aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, a.shape, a)
out = np.empty_like(x)
one_shot = aclnn.aclnnGeluGetWorkspaceSize(tensor(x), tensor(out))[1]
messages = []
def calls():
    for call in (lambda: aclnn.gelu(x.T), lambda: aclnn.elu(x.T), executor.run):
        try:
            call()
        except aclnn.AclnnError as error:
            assert error.status == aclnn.ACLNN_ERR_INNER == 561000
            messages.append(str(error))
    assert aclnn.aclnnGelu(None, 0, one_shot, None) == 561000
    messages.append(aclnn.aclGetRecentErrMsg())
threading.stack_size({size} << 10)
thread = threading.Thread(target=calls, name="the little one"); thread.start(); thread.join()
assert len(messages) == 4, messages
for message in messages:
    assert "thread 'the little one' has " in message and "KiB are needed" in message, message
assert executor.run().shape == (300, 300)
"""
    done = fresh(code)
    assert done.returncode == 0, done.stderr


def test_streams_have_stack_whatever_other_threads_are_to_have():
    code = """
import threading, numpy as np, aclnn
x = np.random.default_rng(0).standard_normal((300, 300), np.float32)
out = np.empty_like(x)
tensor = lambda a: aclnn.aclCreateTensor(
    a.shape, aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, a.shape, a)
executor = aclnn.aclnnGeluGetWorkspaceSize(tensor(x), tensor(out))[1]
stream, _ = aclnn.aclrtCreateStream()
threading.stack_size(64 << 10)
assert aclnn.aclnnGelu(None, 0, executor, stream) == 0
assert aclnn.aclrtSynchronizeStream(stream) == 0, aclnn.aclGetRecentErrMsg()
assert threading.stack_size() == 64 << 10
assert aclnn.aclrtDestroyStream(stream) == 0
"""
    done = fresh(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_while_a_function_is_planned_plans_it_itself():
    code = """
import os, signal, threading, time, numpy as np, aclnn
parent, entered, forked = os.getpid(), threading.Event(), threading.Event()
@aclnn.compile
def twice(x):
    if os.getpid() == parent:
        entered.set()
        forked.wait()
    return aclnn.relu(x) * 2
x = np.ones((4, 4), np.float32)
aclnn.relu(x)
planner = threading.Thread(target=twice, args=(x,))
planner.start()
entered.wait()
child = os.fork()
if not child:
    signal.alarm(5)
    os._exit(7 if (twice(x) == 2).all() and (twice(x) == 2).all() else 1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
forked.set()
planner.join()
assert code == 7, code
assert (twice(x) == 2).all()
"""
    done = fresh(code)
    assert done.returncode == 0, done.stderr
