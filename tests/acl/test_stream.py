"""Streams and events: order, failures, destruction, races and forks. Gates, never sleeps."""

import copy
import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest
from setups import message

import aclnn
from aclnn.acl.stream import submit

OK, HANDLE, DEVICE, TIMESTAMP, RUNTIME = 0, 107017, 107001, 107006, 361001
PATIENCE = 30  # seconds until a test that hangs fails


@pytest.fixture
def stream():
    made, _ = aclnn.aclrtCreateStream()
    yield made
    if not made.destroyed:
        aclnn.aclrtDestroyStream(made)
    aclnn.aclGetRecentErrMsg()


class Gate:
    """Work that waits to be let through."""

    def __init__(self):
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self):
        self.reached.set()
        assert self.open.wait(PATIENCE)
        return OK


def in_thread(function):
    """Start `function` in a thread; the returned call gives its result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
    thread.start()

    def result():
        thread.join(PATIENCE)
        assert not thread.is_alive(), "hangs"
        return results[0]

    return result


def test_no_thread_before_the_first_work():
    before = threading.active_count()
    streams = [aclnn.aclrtCreateStream()[0] for _ in range(5)]
    assert threading.active_count() == before
    for made in streams:
        assert aclnn.aclrtDestroyStream(made) == OK


def test_destroying_finishes_queued_work_and_ends_the_thread(stream):
    gate, done = Gate(), []
    submit(stream, gate)
    submit(stream, lambda: done.append(1))
    destroyed = in_thread(lambda: aclnn.aclrtDestroyStream(stream))
    gate.open.set()
    assert destroyed() == OK
    assert done == [1]
    assert stream.join(PATIENCE)


def test_destroying_reports_what_failed(stream):
    submit(stream, lambda: (561000, "it broke"))
    assert aclnn.aclrtDestroyStream(stream) == RUNTIME
    assert aclnn.aclGetRecentErrMsg() == "it broke"
    assert aclnn.aclrtDestroyStream(stream) == HANDLE


def test_a_stream_being_destroyed_takes_no_more_work_and_hangs_nobody(stream):
    gate = Gate()
    submit(stream, gate)
    assert gate.reached.wait(PATIENCE)
    waiting = in_thread(lambda: aclnn.aclrtSynchronizeStream(stream))
    destroyed = in_thread(lambda: aclnn.aclrtDestroyStream(stream))
    while not stream.destroyed:
        os.sched_yield()
    assert submit(stream, lambda: OK) == HANDLE
    assert stream.submit(lambda: OK) is False
    late = in_thread(stream.synchronize)  # as if it had passed the check of the handle before
    gate.open.set()
    assert destroyed() == OK
    assert waiting() in (OK, HANDLE)
    assert late() is None


def test_one_of_many_destroys_a_stream(stream):
    gate = Gate()
    submit(stream, gate)
    results = [in_thread(lambda: aclnn.aclrtDestroyStream(stream)) for _ in range(4)]
    gate.open.set()
    assert sorted(result() for result in results) == [OK, HANDLE, HANDLE, HANDLE]


def test_a_dropped_stream_does_its_work_and_ends():
    made, _ = aclnn.aclrtCreateStream()
    gate, workers = Gate(), []
    submit(made, gate)
    submit(made, lambda: workers.append(1))
    gone = weakref.ref(made)
    assert gate.reached.wait(PATIENCE)
    del made
    gc.collect()
    synchronized = in_thread(aclnn.aclrtSynchronizeDevice)
    gate.open.set()
    assert synchronized() == OK
    assert len(workers) == 1
    assert gone() is None


@pytest.mark.parametrize("error", [ValueError, MemoryError, SystemExit, KeyboardInterrupt])
def test_whatever_a_job_raises_surfaces_and_the_stream_lives_on(stream, error):
    def job():
        raise error("the reason")

    done = []
    submit(stream, job)
    submit(stream, lambda: done.append(1))
    assert aclnn.aclrtSynchronizeStream(stream) == RUNTIME
    assert "the reason" in aclnn.aclGetRecentErrMsg()
    assert done == [1]
    assert aclnn.aclrtSynchronizeStream(stream) == OK


def test_failures_belong_to_their_stream(stream):
    other, _ = aclnn.aclrtCreateStream()
    submit(stream, lambda: (561000, "mine"))
    assert aclnn.aclrtSynchronizeStream(other) == OK
    assert aclnn.aclrtSynchronizeDevice() == RUNTIME
    assert aclnn.aclGetRecentErrMsg() == "mine"
    assert aclnn.aclrtSynchronizeStream(stream) == OK
    aclnn.aclrtDestroyStream(other)


def test_a_stream_may_be_synchronized_and_destroyed_from_its_own_work(stream):
    seen = []
    submit(stream, lambda: seen.append(aclnn.aclrtSynchronizeStream(stream)))
    submit(stream, lambda: seen.append(aclnn.aclrtSynchronizeDevice()))
    submit(stream, lambda: seen.append(aclnn.aclrtDestroyStream(stream)))
    in_thread(stream.synchronize)()
    stream.join()
    assert seen == [OK, OK, OK]


def test_the_default_stream_runs_at_once_on_the_calling_thread():
    seen = []
    assert submit(None, lambda: seen.append(threading.get_ident()) or OK) == OK
    assert seen == [threading.get_ident()]
    assert submit(None, lambda: (561000, "at once")) == 561000
    assert aclnn.aclGetRecentErrMsg() == "at once"


def test_streams_made_while_the_device_is_synchronized():
    stop = threading.Event()

    def make():
        while not stop.is_set():
            aclnn.aclrtDestroyStream(aclnn.aclrtCreateStream()[0])
        return OK

    makers = [in_thread(make) for _ in range(3)]
    for _ in range(300):
        assert aclnn.aclrtSynchronizeDevice() == OK
    stop.set()
    assert [maker() for maker in makers] == [OK] * 3


def test_streams_are_side_by_side_and_in_order():
    first, second = aclnn.aclrtCreateStream()[0], aclnn.aclrtCreateStream()[0]
    gate, order, threads = threading.Event(), [], set()

    def job(name, wait=False):
        def work():
            if wait:
                assert gate.wait(10)
            order.append(name)
            threads.add(threading.get_ident())
            return 0

        return work

    for item in (job("a1", wait=True), job("a2")):
        assert submit(first, item) == OK
    assert submit(second, job("b")) == OK
    assert aclnn.aclrtSynchronizeStream(second) == OK
    assert order == ["b"]
    gate.set()
    assert aclnn.aclrtSynchronizeDevice() == OK
    assert order == ["b", "a1", "a2"]
    assert len(threads) == 2
    assert threading.get_ident() not in threads


def test_failures_surface_once_at_the_next_synchronize():
    stream, _ = aclnn.aclrtCreateStream()
    submit(stream, lambda: (561000, "this went wrong"))
    submit(stream, lambda: 1 / 0)
    assert aclnn.aclrtSynchronizeStream(stream) == 361001
    assert message() == "this went wrong"
    assert aclnn.aclrtSynchronizeStream(stream) == OK
    assert aclnn.aclrtDestroyStream(stream) == OK


# --- Events ---------------------------------------------------------------------------------------


def test_a_stream_found_while_it_is_dropped_is_not_waited_for():
    stream, _ = aclnn.aclrtCreateStream()
    submit(stream, lambda: 0)
    assert aclnn.aclrtSynchronizeStream(stream) == 0
    stream.close()  # as its destructor does
    waiting = threading.Thread(target=aclnn.aclrtSynchronizeDevice, daemon=True)
    waiting.start()
    waiting.join(10)
    assert not waiting.is_alive()


@pytest.mark.skipif(sys.platform != "linux", reason="limits address space as Linux does")
def test_a_stream_without_a_thread_says_so_and_tries_again():
    printed = run_python("""
        import resource, aclnn
        from aclnn.acl.stream import submit
        stream, _ = aclnn.aclrtCreateStream()
        event, _ = aclnn.aclrtCreateEvent()
        aclnn.aclGetRecentErrMsg()
        done = []
        pages = int(open("/proc/self/statm").read().split()[0])
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 20), before[1]))
        for _ in range(2):
            print(submit(stream, lambda: done.append(1), "work"), aclnn.aclrtRecordEvent(event, stream))
            print("no thread: can't start new thread" in aclnn.aclGetRecentErrMsg())
        resource.setrlimit(resource.RLIMIT_AS, before)
        print(aclnn.aclrtQueryEventStatus(event)[0])  # a recording that no stream reaches
        print(submit(stream, lambda: done.append(2), "work"), aclnn.aclrtSynchronizeStream(stream), *done)
    """)
    assert printed == ["361001", "361001", "True"] * 2 + ["1", "0", "0", "2"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads as Linux does")
def test_streams_outlast_interrupts():
    """A handler may raise wherever a stream starts, takes work or is waited for."""
    printed = run_python("""
        import os, random, signal, threading, time, aclnn
        from aclnn.acl.stream import submit

        class Interrupt(BaseException):
            pass

        came = threading.local()

        def interrupt(*_):
            came.now = True
            raise Interrupt

        signal.signal(signal.SIGALRM, interrupt)
        choose = random.Random(1)
        two, before = 0, len(os.listdir("/proc/self/task"))
        for number in range(2000):
            stream, _ = aclnn.aclrtCreateStream()
            seen, came.now = [], False
            job = lambda: seen.append(threading.get_native_id()) or 0
            try:
                signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-6, 2e-4))
                while not came.now:
                    submit(stream, job)
                    aclnn.aclrtSynchronizeStream(stream)
            except Interrupt:
                pass
            for _ in range(2):
                submit(stream, job)
            signal.alarm(20)
            assert aclnn.aclrtSynchronizeStream(stream) == 0
            two += len(set(seen)) > 1
            assert aclnn.aclrtDestroyStream(stream) == 0
            signal.alarm(0)
        ends = time.monotonic() + 5
        while len(os.listdir("/proc/self/task")) > before and time.monotonic() < ends:
            time.sleep(0.01)
        print(two, len(os.listdir("/proc/self/task")) - before, threading.active_count())
    """)
    assert printed == ["0", "0", "1"]


def test_streams_cannot_be_copied(stream):
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(stream)
    assert aclnn.aclrtSynchronizeStream(stream) == 0


def test_a_wait_is_for_the_recording_there_was(stream):
    """A later recording of the same event is not waited for."""
    other, _ = aclnn.aclrtCreateStream()
    event, _ = aclnn.aclrtCreateEvent()
    gate, order = Gate(), []
    assert aclnn.aclrtRecordEvent(event, None) == OK
    assert aclnn.aclrtStreamWaitEvent(other, event) == OK
    submit(stream, gate)
    assert aclnn.aclrtRecordEvent(event, stream) == OK  # happens once the gate opens
    submit(other, lambda: order.append("other"))
    assert in_thread(lambda: aclnn.aclrtSynchronizeStream(other))() == OK
    assert aclnn.aclrtStreamWaitEvent(other, event) == OK
    submit(other, lambda: order.append("after"))
    submit(stream, lambda: order.append("stream"))
    assert order == ["other"]
    gate.open.set()
    assert aclnn.aclrtSynchronizeDevice() == OK
    assert sorted(order[1:]) == ["after", "stream"]
    aclnn.aclrtDestroyStream(other)


def test_an_event_that_was_never_recorded_is_not_waited_for(stream):
    event, _ = aclnn.aclrtCreateEvent()
    assert aclnn.aclrtStreamWaitEvent(stream, event) == OK
    assert aclnn.aclrtStreamWaitEvent(None, event) == OK
    assert aclnn.aclrtSynchronizeEvent(event) == OK
    assert in_thread(lambda: aclnn.aclrtSynchronizeStream(stream))() == OK


def test_destroyed_events_still_let_streams_go(stream):
    other, _ = aclnn.aclrtCreateStream()
    event, _ = aclnn.aclrtCreateEvent()
    gate, order = Gate(), []
    submit(stream, gate)
    aclnn.aclrtRecordEvent(event, stream)
    aclnn.aclrtStreamWaitEvent(other, event)
    submit(other, lambda: order.append("after"))
    assert aclnn.aclrtDestroyEvent(event) == OK
    assert order == []
    gate.open.set()
    assert in_thread(lambda: aclnn.aclrtSynchronizeStream(other))() == OK
    assert order == ["after"]
    aclnn.aclrtDestroyStream(other)


def test_a_refused_recording_leaves_the_event_as_it_was(stream):
    event, _ = aclnn.aclrtCreateEvent()
    aclnn.aclrtRecordEvent(event, None)
    first = aclnn.aclrtEventGetTimestamp(event)
    aclnn.aclrtDestroyStream(stream)
    assert aclnn.aclrtRecordEvent(event, stream) == HANDLE
    assert aclnn.aclrtEventGetTimestamp(event) == first
    assert in_thread(lambda: aclnn.aclrtSynchronizeEvent(event))() == OK


def test_elapsed_time_goes_both_ways():
    start, end = aclnn.aclrtCreateEvent()[0], aclnn.aclrtCreateEvent()[0]
    aclnn.aclrtRecordEvent(start, None)
    aclnn.aclrtRecordEvent(end, None)
    there, status = aclnn.aclrtEventElapsedTime(start, end)
    assert status == OK
    assert there >= 0
    assert aclnn.aclrtEventElapsedTime(end, start) == (-there, OK)


def test_events():
    one, two = aclnn.aclrtCreateStream()[0], aclnn.aclrtCreateStream()[0]
    start, end = aclnn.aclrtCreateEvent()[0], aclnn.aclrtCreateEvent()[0]
    assert aclnn.aclrtEventElapsedTime(start, end)[1] == TIMESTAMP
    gate, order = threading.Event(), []
    submit(one, lambda: gate.wait(10) and 0)
    assert aclnn.aclrtRecordEvent(start, one) == OK
    assert aclnn.aclrtStreamWaitEvent(two, start) == OK
    submit(two, lambda: order.append("after") or 0)
    assert order == []
    assert aclnn.aclrtEventElapsedTime(start, start)[1] == TIMESTAMP
    gate.set()
    assert aclnn.aclrtRecordEvent(end, two) == OK
    assert aclnn.aclrtSynchronizeEvent(end) == OK
    assert order == ["after"]
    elapsed, status = aclnn.aclrtEventElapsedTime(start, end)
    assert status == OK
    assert elapsed >= 0
    assert aclnn.aclrtDestroyEvent(start) == OK
    assert aclnn.aclrtDestroyEvent(start) == HANDLE
    assert aclnn.aclrtRecordEvent(end, None) == OK
    assert aclnn.aclrtSynchronizeEvent(end) == OK


def test_handles_are_checked():
    stream, event = aclnn.aclrtCreateStream()[0], aclnn.aclrtCreateEvent()[0]
    aclnn.aclrtDestroyStream(stream)
    for call in (
        lambda: aclnn.aclrtDestroyStream(stream), lambda: aclnn.aclrtDestroyStream("x"),
        lambda: aclnn.aclrtSynchronizeStream(stream), lambda: aclnn.aclrtSynchronizeStream("x"),
        lambda: aclnn.aclrtRecordEvent(None, None), lambda: aclnn.aclrtRecordEvent(event, stream),
        lambda: aclnn.aclrtStreamWaitEvent(stream, event), lambda: aclnn.aclrtSynchronizeEvent(3),
        lambda: aclnn.aclrtEventElapsedTime(None, event)[1], lambda: aclnn.aclrtDestroyEvent(3),
        lambda: aclnn.aclrtMemcpyAsync(bytearray(1), 1, b"a", 1, 0, stream),
    ):  # fmt: skip
        assert call() == HANDLE
        found = message()
        assert found.startswith("aclrt"), found  # it names the function


def test_destroying_null_succeeds():
    for destroy in (aclnn.aclrtDestroyStream, aclnn.aclrtDestroyEvent):
        assert destroy(None) == OK


# --- The runtime's life ---------------------------------------------------------------------------


def test_the_device_and_the_life_of_the_runtime():
    assert aclnn.aclrtGetDeviceCount() == (1, OK)
    assert aclnn.aclrtSetDevice(0) == OK
    assert aclnn.aclrtSetDevice(1) == DEVICE
    assert aclnn.aclrtSetDevice("0") == DEVICE
    assert aclnn.aclrtGetDevice() == (0, OK)
    assert aclnn.aclrtResetDevice(0) == OK
    assert aclnn.aclFinalize() == 100001
    assert aclnn.aclInit() == OK
    assert aclnn.aclInit() == 100002
    assert aclnn.aclFinalize() == OK
    assert aclnn.aclFinalize() == 100037
    assert aclnn.aclnnInit(None) == OK
    assert aclnn.aclnnFinalize() == OK


def test_devices_may_be_numpy_ints():
    assert aclnn.aclrtSetDevice(np.int64(0)) == OK
    for device in (True, False, 0.0, np.int64(1), 10**5000):
        assert aclnn.aclrtSetDevice(device) == 107001
        assert "deviceId" in aclnn.aclGetRecentErrMsg()


def test_values_that_c_cannot_hold_are_shown_by_its_messages():
    stream, event = aclnn.aclrtCreateStream()[0], aclnn.aclrtCreateEvent()[0]
    destroyed = aclnn.aclrtCreateStream()[0]
    assert aclnn.aclrtDestroyStream(destroyed) == OK
    for function, values, status, text in [
        ("aclrtMalloc", ("x", 0), 107000, "size is 'x', must be at least 1"),
        ("aclrtMalloc", (-3, 0), 107000, "size is -3, must be at least 1"),
        ("aclrtMalloc", (1, 2**40), 107000, "policy is 1099511627776, which is no member of"),
        ("aclrtFree", (2**70,), 107000, "address is 1180591620717411303424, where no live"),
        ("aclrtSetDevice", (True,), 107001, "deviceId is True, this machine has one device, 0"),
        ("aclrtDeviceEnablePeerAccess", (0, -1), 107000, "flags is -1, must be 0"),
        ("aclrtGetDeviceInfo", (0, 1.5), 107000, "attr is 1.5, which is no member of"),
        ("aclGetDeviceCapability", (0, None), 100000, "deviceInfo is None, which the device"),
        ("aclrtGetMemInfo", ([],), 107000, "attr is [], which is no member of aclrtMemAttr"),
        ("aclrtSetCurrentContext", (None,), 107017, "context is null, which is no live"),
        ("aclrtSetCurrentContext", (-1,), 107017, "context is -1, which is no live aclrtContext"),
        ("aclrtGetLastError", ("0",), 107000, "level is '0', must be ACL_RT_THREAD_LEVEL (0)"),
        ("aclrtReserveMemAddress", (1, -1), 107000, "alignment is -1, must be 0 or a power of two"),
        ("aclrtFreePhysical", (None,), 107000, "handle is None, which is no live physical memory"),
        ("aclrtUnmapMem", (-1,), 107000, "virPtr is -1, where no memory was mapped"),
        ("aclrtStreamQuery", (event,), 107017, "stream is aclrtEvent, must be an aclrtStream"),
        ("aclrtStreamQuery", (destroyed,), 107017, "stream is destroyed"),
        ("aclrtStreamGetId", (7,), 107017, "stream is 0x7, which is no live aclrtStream"),
        ("aclrtQueryEventStatus", (None,), 107017, "event is null"),
        ("aclrtSynchronizeEvent", (stream,), 107017, "event is aclrtStream, must be an aclrtEvent"),
        ("aclrtSynchronizeStreamWithTimeout", (stream, 0), 107000, "timeout is 0, must be -1 or"),
        ("aclrtSynchronizeStreamWithTimeout", (stream, "1"), 107000, "timeout is '1', must be -1"),
        ("aclrtSynchronizeStreamWithTimeout", ("x", 0), 107000, "timeout is 0, must be -1 or"),
    ]:
        found = getattr(aclnn, function)(*values)
        assert (found if isinstance(found, int) else found[-1]) == status, (function, values)
        assert aclnn.aclGetRecentErrMsg().startswith(f"{function}: {text}"), (function, values)
    assert aclnn.aclrtSynchronizeStreamWithTimeout(stream, 10**30) == OK, "for as long as C counts"
    assert aclnn.aclrtDestroyStream(stream) == OK


def test_the_last_reset_takes_the_context_of_the_thread():
    printed = run_python("""
        import aclnn
        aclnn.aclrtSetDevice(0)
        print(aclnn.aclrtGetCurrentContext()[1], aclnn.aclrtResetDevice(0))
        print(*aclnn.aclrtGetCurrentContext())
    """)
    assert printed == ["0", "0", "0", "107002"]


def test_a_signal_ends_every_wait():
    printed = run_python("""
        import signal, threading, aclnn
        from aclnn.acl.stream import submit
        stream, event = aclnn.aclrtCreateStream()[0], aclnn.aclrtCreateEvent()[0]
        gate = threading.Event()
        submit(stream, lambda: gate.wait(50) and 0)
        aclnn.aclrtRecordEvent(event, stream)
        def interrupt(*_):
            raise KeyboardInterrupt
        signal.signal(signal.SIGALRM, interrupt)
        for wait in (
            lambda: aclnn.aclrtSynchronizeStream(stream),
            lambda: aclnn.aclrtSynchronizeStreamWithTimeout(stream, 40000),
            lambda: aclnn.aclrtSynchronizeEvent(event),
            lambda: aclnn.aclrtSynchronizeEventWithTimeout(event, 40000),
            aclnn.aclrtSynchronizeDevice,
            lambda: aclnn.aclrtSynchronizeDeviceWithTimeout(40000),
            lambda: aclnn.aclrtResetDevice(0),
        ):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            try:
                print(wait())
            except KeyboardInterrupt:
                print("interrupted")
        gate.set()
    """)
    assert printed == ["interrupted"] * 7


def test_initialising_the_library_again_leaves_no_message():
    aclnn.aclGetRecentErrMsg()
    for _ in range(3):
        assert aclnn.aclnnInit(None) == OK
        assert aclnn.aclnnFinalize() == OK
    assert aclnn.aclGetRecentErrMsg() is None


def run_python(code):
    """A program of its own; what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


def test_finalizing_waits_and_reports():
    printed = run_python("""
        import aclnn
        from aclnn.acl.stream import submit
        stream, _ = aclnn.aclrtCreateStream()
        submit(stream, lambda: (561000, "broken"))
        aclnn.aclInit()
        print(aclnn.aclFinalize(), aclnn.aclGetRecentErrMsg())
        print(aclnn.aclInit(), aclnn.aclFinalize(), aclnn.aclFinalize())
    """)
    assert printed == ["361001", "broken", "0", "0", "100037"]


def test_programs_end_with_work_still_queued():
    printed = run_python("""
        import threading, aclnn
        from aclnn.acl.stream import submit
        streams = [aclnn.aclrtCreateStream()[0] for _ in range(3)]
        submit(streams[0], lambda: threading.Event().wait() and 0)
        for _ in range(1000):
            submit(streams[1], lambda: 0)
        print("end")
    """)
    assert printed == ["end"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_afresh():
    """Threads, queued work and pending events stay with the parent; streams work again."""
    printed = run_python("""
        import os, threading, aclnn
        from aclnn.acl.stream import submit
        stream, _ = aclnn.aclrtCreateStream()
        event, _ = aclnn.aclrtCreateEvent()
        gate, reached, done = threading.Event(), threading.Event(), []
        submit(stream, lambda: reached.set() or gate.wait() and 0)
        submit(stream, lambda: done.append(os.getpid()))
        aclnn.aclrtRecordEvent(event, stream)
        reached.wait()
        child = os.fork()
        if not child:
            assert aclnn.aclrtSynchronizeStream(stream) == 0 and done == []
            assert aclnn.aclrtSynchronizeEvent(event) == 0
            submit(stream, lambda: done.append(os.getpid()))
            assert aclnn.aclrtSynchronizeDevice() == 0 and done == [os.getpid()]
            address, status = aclnn.aclrtMalloc(8, 0)
            assert status == 0 and aclnn.aclrtFree(address) == 0
            assert aclnn.aclrtDestroyStream(stream) == 0
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        gate.set()
        print(aclnn.aclrtSynchronizeStream(stream), done == [os.getpid()])
    """)
    assert printed == ["7", "0", "True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_find_all_locks_free():
    """Threads of the parent are in the middle of everything while it forks."""
    printed = run_python("""
        import os, signal, threading, aclnn
        from aclnn.acl.stream import submit
        stop = threading.Event()

        def use():
            address, status = aclnn.aclrtMalloc(1000, 0)
            stream, event = aclnn.aclrtCreateStream()[0], aclnn.aclrtCreateEvent()[0]
            submit(stream, lambda: 0)
            aclnn.aclrtRecordEvent(event, stream)
            aclnn.aclInit()
            return status or aclnn.aclrtDestroyStream(stream) or aclnn.aclrtFree(address)

        use()  # whatever it imports
        aclnn.aclrtSynchronizeDevice()

        def keep_on():
            while not stop.is_set():
                use()

        threads = [threading.Thread(target=keep_on) for _ in range(3)]
        for thread in threads:
            thread.start()
        codes = set()
        for _ in range(30):
            child = os.fork()
            if not child:
                signal.alarm(20)
                os._exit(7 if use() == 0 and aclnn.aclrtSynchronizeDevice() == 0 else 1)
            codes.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop.set()
        print(*codes)
    """)
    assert printed == ["7"]


@pytest.mark.parametrize("freed", ["gradOutput", "gradInput", "workspace", "dst"])
def test_queued_work_goes_on_with_memory_that_is_freed(stream, freed):
    """Nobody else has what it reads and writes until it is done."""
    nbytes, n = 1 << 16, 1000
    memory = {
        name: aclnn.aclrtMalloc(nbytes, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)[0]
        for name in ("gradOutput", "gradInput", "workspace", "dst")
    }
    for address in memory.values():
        assert aclnn.aclrtMemset(address, nbytes, 63, nbytes) == OK
    # The output begins inside an input, which is therefore copied to the workspace first.
    g, x, out = (
        aclnn.aclCreateTensor((n,), 0, None, offset, aclnn.ACL_FORMAT_ND, (2 * n,), memory[name])
        for name, offset in (("gradOutput", 0), ("gradInput", 1), ("gradInput", 0))
    )
    size, executor, status = aclnn.aclnnGeluBackwardGetWorkspaceSize(g, x, out)
    assert status == OK
    assert size > 0
    gate = Gate()
    assert submit(stream, gate) == OK
    if freed == "dst":
        copy_kind = aclnn.ACL_MEMCPY_DEVICE_TO_DEVICE
        status = aclnn.aclrtMemcpyAsync(
            memory["dst"], nbytes, memory["workspace"], nbytes, copy_kind, stream
        )
    else:
        status = aclnn.aclnnGeluBackward(memory["workspace"], size, executor, stream)
    assert status == OK
    assert aclnn.aclrtFree(memory[freed]) == OK
    gate.open.set()
    assert aclnn.aclrtSynchronizeStream(stream) == OK
    if freed not in ("gradInput", "dst"):
        after = bytearray(nbytes)
        aclnn.aclrtMemcpy(
            after, nbytes, memory["gradInput"], nbytes, aclnn.ACL_MEMCPY_DEVICE_TO_HOST
        )
        assert after[: 4 * n] != bytes([63] * 4 * n), "it did not run"
        assert set(after[4 * n :]) == {63}
    for name, address in memory.items():
        if name != freed:
            aclnn.aclrtFree(address)
