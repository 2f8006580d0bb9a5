"""Threads that share a run: every part is done once, whoever has a CPU, sleeps, forks or calls."""

import os
import threading
import time

import numpy as np
import pytest
from setups import fresh

import aclnn

ELEMENTS = 1 << 17


pytestmark = pytest.mark.usefixtures("threads_as_before")


def halve(x, times):
    """What a part that is done twice, or never, would show in: runs in place."""
    for _ in range(times):
        aclnn.leaky_relu_(x, 0.5)


@pytest.mark.parametrize("threads", [2, 3, 8, 64])
def test_every_part_is_done_once(threads):
    aclnn.set_num_threads(threads)
    x = np.full(ELEMENTS, -1.0, np.float32)
    for run in range(1, 101):
        halve(x, 1)
        assert (x == -(0.5**run)).all()


@pytest.mark.parametrize("threads", [2, 5])
def test_callers_at_once_have_teams_of_their_own(threads):
    aclnn.set_num_threads(threads)
    arrays = [np.full(ELEMENTS, -1.0, np.float32) for _ in range(6)]
    callers = [threading.Thread(target=halve, args=(x, 100)) for x in arrays]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    for x in arrays:
        assert (x == -(0.5**100)).all()


@pytest.mark.parametrize("pause", [0.0, 1e-4, 1e-3, 1.1e-3, 3e-3, 2e-2])
def test_threads_that_went_to_sleep_are_woken(pause):
    """They look for work for a millisecond: some pauses end as they go to sleep."""
    aclnn.set_num_threads(2)
    x = np.full(ELEMENTS, -1.0, np.float32)
    for _ in range(60):
        halve(x, 1)
        time.sleep(pause)
    assert (x == -(0.5**60)).all()


@pytest.mark.parametrize("size", [1 << 17, 1 << 22])
def test_results_are_those_of_one_thread(size):
    g, x = np.random.default_rng(3).standard_normal((2, size), np.float32)
    aclnn.set_num_threads(1)
    alone = aclnn.gelu_backward(g, x)
    for threads in (2, 7):
        aclnn.set_num_threads(threads)
        assert aclnn.gelu_backward(g, x).tobytes() == alone.tobytes()


def afresh(code):
    """Run in a process of its own, in which no other library has threads."""
    head = (
        "import os\n"
        "def tasks():\n    return {int(t) for t in os.listdir('/proc/self/task')}\n"
        "others = tasks()  # emulators and sanitizers have threads\n"
        "import numpy as np, aclnn\n"
        f"aclnn.set_num_threads(2); x = np.full({ELEMENTS}, -1, np.float32)\n"
        "def run():\n    aclnn.leaky_relu_(x, 0.5)\n"
        "def workers():\n    return tasks() - others\n"
        "def soon(happens):  # machines may have much else to do\n"
        "    import time\n"
        "    return any(happens() or time.sleep(1e-2) for _ in range(1000))\n"
    )
    done = fresh(head + code, OPENBLAS_NUM_THREADS="1", PYTHONWARNINGS="ignore")
    assert done.returncode == 0, done.stderr


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="looks into /proc")


@needs_proc
def test_a_forked_child_makes_threads_of_its_own():
    afresh(
        "run(); assert len(workers()) == 1\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    assert len(tasks()) == len(others); others = tasks()\n"
        "    run(); run(); assert len(workers()) == 1\n"
        "    os._exit(7 if (x == -0.125).all() else 8)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "run(); assert (x == -0.25).all()"
    )


@needs_proc
def test_signals_are_not_for_them():
    afresh(
        "run(); (worker,) = workers()\n"
        "status = open(f'/proc/self/task/{worker}/status').read()\n"
        "blocked = int(status.partition('SigBlk:')[2].split()[0], 16)\n"
        "for signal in (1, 2, 15): assert blocked >> signal - 1 & 1"
    )


@needs_proc
def test_work_wakes_them():
    afresh(
        "import time\n"
        "def naps():\n"
        "    (worker,) = workers()\n"
        "    status = open(f'/proc/self/task/{worker}/status').read()\n"
        "    return int(status.partition('\\nvoluntary_ctxt_switches:')[2].split()[0])\n"
        "run(); time.sleep(0.1); before = naps()\n"
        "time.sleep(0.1); assert naps() == before\n"
        "run(); time.sleep(0.1); assert naps() > before"
    )


@needs_proc
def test_they_may_run_where_they_could_before():
    afresh(
        "import time\n"
        "usable = os.sched_getaffinity(0)\n"
        "for _ in range(20):\n"
        "    run(); time.sleep(3e-3)\n"
        "(worker,) = workers()\n"
        "assert soon(lambda: os.sched_getaffinity(worker) == usable)"
    )


@needs_proc
def test_a_caller_who_is_bound_to_a_cpu_does_not_bind_them():
    afresh(
        "import threading, time\n"
        "usable = os.sched_getaffinity(0)\n"
        "def bound():\n"
        "    os.sched_setaffinity(0, {min(usable)}); run()\n"
        "caller = threading.Thread(target=bound); caller.start(); caller.join()\n"
        "assert soon(lambda: caller.native_id not in tasks())  # lists may lack others until it is gone\n"
        "(worker,) = workers()\n"
        "assert os.sched_getaffinity(worker) == {min(usable)}\n"
        "assert soon(lambda: run() or os.sched_getaffinity(worker) == usable)"
    )


@needs_proc
def test_one_cpu_is_enough():
    afresh(
        "import time\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "for _ in range(100):\n"
        "    run(); time.sleep(3e-3)\n"
        "assert (x == -(np.float32(0.5)**100)).all()\n"
        "(worker,) = workers()\n"
        "fields = open(f'/proc/self/task/{worker}/stat').read().rpartition(')')[2].split()\n"
        "ticks = int(fields[11]) + int(fields[12])\n"
        "assert ticks < 0.04 * os.sysconf('SC_CLK_TCK')  # it never looks for work: that were 0.1 s"
    )


@needs_proc
def test_few_elements_make_no_threads():
    afresh("x = x[:60_000]; run(); assert not workers()")


@needs_proc
def test_a_limit_of_one_thread_wakes_no_other():
    afresh(
        "with aclnn.num_threads(1):\n    run()\n    assert aclnn.get_num_threads() == 1\n"
        "assert not workers() and aclnn.get_num_threads() == 2\n"
        "run(); assert len(workers()) == 1"
    )


@needs_proc
def test_a_limit_holds_for_plans_of_more_threads():
    """For executors made outside of it, for compiled functions that ask for more, and in streams."""
    afresh(
        "ex = aclnn.executor('leaky_relu', x, out=x)\n"
        "fn = aclnn.compile(lambda x: aclnn.relu(x) + x, threads=2)\n"
        "with aclnn.num_threads(1):\n    ex.run(); fn(x)\n"
        "assert not workers()\n"
        "fn(x); assert len(workers()) == 1"
    )
    afresh(
        "size, ex, status = aclnn.aclnnTanhGetWorkspaceSize(*[aclnn.aclCreateTensor("
        "x.shape, 0, None, 0, 2, x.shape, a) for a in (x, x.copy())])\n"
        "aclnn.aclSetAclOpExecutorRepeatable(ex)\n"
        "stream, status = aclnn.aclrtCreateStream()\n"
        "def queue():\n"
        "    assert aclnn.aclnnTanh(None, size, ex, stream) == 0\n"
        "    assert aclnn.aclrtSynchronizeStream(stream) == 0\n"
        "with aclnn.num_threads(1):\n    queue()\n"
        "assert len(workers()) == 1, 'that of the stream'\n"
        "queue(); assert len(workers()) == 2"
    )


def test_limits_are_those_of_a_thread_and_nest():
    aclnn.set_num_threads(2)
    seen = []

    @aclnn.num_threads(5)
    def decorated():
        return aclnn.get_num_threads()

    with aclnn.num_threads(1):
        other = threading.Thread(target=lambda: seen.append(aclnn.get_num_threads()))
        other.start()
        other.join()
        with aclnn.num_threads(3):
            seen.append(aclnn.get_num_threads())
        aclnn.set_num_threads(4)
        seen.append(aclnn.get_num_threads())
    assert [*seen, aclnn.get_num_threads(), decorated()] == [2, 3, 1, 4, 5]


@pytest.mark.parametrize("number", [0, 1025, -1, 1.5, None, "2"])
def test_a_limit_is_a_number_of_threads(number):
    with pytest.raises(aclnn.AclnnError, match="number of threads is"):
        aclnn.num_threads(number)
