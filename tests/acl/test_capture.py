"""Stream capture: statuses, what is refused, and models against the same calls made one by one."""

import ctypes
import functools
import gc
import json
import re
import threading
import weakref

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from setups import examples

import aclnn
from aclnn.compiler._compiled_call import add_observer, remove_observer
from aclnn.compiler.compilation import compile_recording
from aclnn.execution import replay

GLOBAL = aclnn.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
LOCAL = aclnn.ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL
RELAXED = aclnn.ACL_MODEL_RI_CAPTURE_MODE_RELAXED
NONE, ACTIVE, INVALIDATED = 0, 1, 2
OK, WRONG_ARGUMENT, BAD_HANDLE = 0, 107000, 107017
D2D = aclnn.ACL_MEMCPY_DEVICE_TO_DEVICE
DTYPES = {np.dtype(np.float32): aclnn.ACL_FLOAT, np.dtype(np.float16): aclnn.ACL_FLOAT16,
          np.dtype(np.int32): aclnn.ACL_INT32, np.dtype(np.uint8): aclnn.ACL_UINT8}  # fmt: skip


def new_stream():
    return aclnn.aclrtCreateStream()[0]


def new_event():
    return aclnn.aclrtCreateEvent()[0]


def tensor(array, address=None):
    """An aclTensor of an array's layout, on its memory or on that at an address."""
    strides = [step // array.itemsize for step in array.strides]
    return aclnn.aclCreateTensor(
        array.shape, DTYPES[array.dtype], strides, 0, aclnn.ACL_FORMAT_ND, array.shape,
        array if address is None else address,
    )  # fmt: skip


def planned(name, *arguments):
    """Workspace size, a workspace, and the executor of phase one."""
    size, executor, status = getattr(aclnn, f"{name}GetWorkspaceSize")(*arguments)
    assert status == OK, aclnn.aclGetRecentErrMsg()
    return np.empty(size, np.uint8) if size else None, size, executor


def call(name, *arguments, stream=None):
    """Both phases; the status of the second."""
    workspace, size, executor = planned(name, *arguments)
    return getattr(aclnn, name)(workspace, size, executor, stream)


def succeeds(status):
    assert status == OK, aclnn.aclGetRecentErrMsg()


@pytest.fixture(autouse=True)
def every_status_is_documented(monkeypatch):
    """Whatever these tests call: its docstring has the status that it gave."""
    missing = set()

    def checked(name, function):
        documented = set(re.findall(r"\((\d+)\)", function.__doc__))

        @functools.wraps(function)
        def call(*arguments):
            found = function(*arguments)
            status = found[-1] if isinstance(found, tuple) else found
            if isinstance(status, int) and status and str(status) not in documented:
                missing.add((name, status))
            return found

        return call

    for name in dir(aclnn):
        if name.startswith(("aclrt", "aclmdl", "aclnn", "aclFinalize")):
            function = getattr(aclnn, name)
            if callable(function) and not isinstance(function, type):
                monkeypatch.setattr(aclnn, name, checked(name, function))
    yield
    assert not missing


@pytest.fixture
def stream():
    made = new_stream()
    yield made
    aclnn.aclmdlRICaptureThreadExchangeMode(GLOBAL)
    if aclnn.aclmdlRICaptureGetInfo(made)[0] != NONE:
        aclnn.aclmdlRICaptureEnd(made)
    aclnn.aclrtDestroyStream(made)


@pytest.fixture
def captured(stream):
    succeeds(aclnn.aclmdlRICaptureBegin(stream, GLOBAL))
    return stream


@pytest.fixture
def malloc():
    """Allocates device memory that is freed at the end."""
    made = []

    def allocate(nbytes):
        address, status = aclnn.aclrtMalloc(nbytes, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
        succeeds(status)
        made.append(address)
        return address

    yield allocate
    for address in made:
        aclnn.aclrtFree(address)


def ended(stream):
    """The model of a capture that ends well."""
    model, status = aclnn.aclmdlRICaptureEnd(stream)
    succeeds(status)
    return model


def message_has(*parts):
    text = aclnn.aclGetRecentErrMsg()
    assert [part for part in parts if part not in text] == [], text


# --- The life of a capture --------------------------------------------------------------------------


def test_calls_are_recorded_and_run_with_the_model(stream):
    x, y, z = np.float32([-1, 2]), np.zeros(2, np.float32), np.zeros(2, np.float32)
    succeeds(call("aclnnRelu", tensor(x), tensor(y), stream=stream))
    assert aclnn.aclmdlRICaptureGetInfo(stream) == (NONE, None, OK)
    succeeds(aclnn.aclmdlRICaptureBegin(stream, GLOBAL))
    status, model, ret = aclnn.aclmdlRICaptureGetInfo(stream)
    assert (status, ret) == (ACTIVE, OK)
    succeeds(call("aclnnRelu", tensor(x), tensor(z), stream=stream))
    succeeds(call("aclnnInplaceRelu", tensor(x), stream=stream))
    assert aclnn.aclmdlRIExecuteAsync(model, stream) == 107026
    assert aclnn.aclmdlRIExecute(model, -1) == 107026
    assert aclnn.aclmdlRIDestroy(model) == 107026
    assert ended(stream) is model
    succeeds(aclnn.aclrtSynchronizeStream(stream))
    assert y.tolist() == [0, 2], "what the stream was given before runs"
    assert (x.tolist(), z.tolist()) == ([-1, 2], [0, 0]), "what was recorded does not"
    succeeds(aclnn.aclmdlRIExecuteAsync(model, stream))
    x2 = np.float32([-3, 4])
    succeeds(aclnn.aclrtSynchronizeStream(stream))
    assert (x.tolist(), z.tolist()) == ([0, 2], [0, 2])
    x[:] = x2  # replays read memory as it is then
    succeeds(aclnn.aclmdlRIExecute(model, 1000))
    assert (x.tolist(), z.tolist()) == ([0, 4], [0, 4])
    succeeds(aclnn.aclmdlRIDestroy(model))
    for use in (aclnn.aclmdlRIDestroy, lambda m: aclnn.aclmdlRIExecute(m, -1),
                lambda m: aclnn.aclmdlRIExecuteAsync(m, stream)):  # fmt: skip
        assert use(model) == BAD_HANDLE
        assert use(None) == BAD_HANDLE
        assert use("model") == BAD_HANDLE


def test_begin_and_end_refuse_what_does_not_fit(captured):
    other = new_stream()
    assert aclnn.aclmdlRICaptureBegin(captured, GLOBAL) == 107027
    message_has("aclmdlRICaptureBegin", f"stream {captured.number}", "test_capture.py:", "GLOBAL")
    assert aclnn.aclmdlRICaptureBegin(None, GLOBAL) == 107031
    assert aclnn.aclmdlRICaptureBegin(other, 3) == WRONG_ARGUMENT
    assert aclnn.aclmdlRICaptureBegin("stream", GLOBAL) == BAD_HANDLE
    assert aclnn.aclmdlRICaptureEnd(other) == (None, 107029)
    assert aclnn.aclmdlRICaptureEnd(None) == (None, 107029)
    assert aclnn.aclmdlRICaptureEnd("stream") == (None, BAD_HANDLE)
    assert aclnn.aclmdlRICaptureGetInfo(None) == (NONE, None, OK)
    assert aclnn.aclmdlRICaptureGetInfo(captured)[0] == ACTIVE
    ended(captured)
    assert aclnn.aclmdlRICaptureEnd(captured) == (None, 107029)


def test_captured_streams_and_events_are_not_waited_for(captured):
    event, other = new_event(), new_event()
    x = np.ones(4, np.float32)
    succeeds(call("aclnnInplaceRelu", tensor(x), stream=captured))
    succeeds(aclnn.aclrtRecordEvent(event, captured))
    assert aclnn.aclrtSynchronizeStream(captured) == 107027
    message_has("aclrtSynchronizeStream", "under way", "aclnnInplaceRelu", f"{x.ctypes.data:#x}",
                "FLOAT[4]", "Frozen")  # fmt: skip
    assert aclnn.aclrtDestroyStream(captured) == 107027
    assert aclnn.aclrtSynchronizeDevice() == 107027
    assert aclnn.aclrtResetDevice(0) == 107027
    assert aclnn.aclrtSynchronizeEvent(event) == 107028
    assert aclnn.aclrtEventElapsedTime(event, event)[1] == 107028
    assert aclnn.aclrtRecordEvent(event, None) == 107031
    assert aclnn.aclrtStreamWaitEvent(None, event) == 107031
    succeeds(aclnn.aclrtRecordEvent(other, None))
    succeeds(aclnn.aclrtSynchronizeEvent(other))
    succeeds(aclnn.aclrtSynchronizeStream(None))
    assert aclnn.aclmdlRICaptureGetInfo(captured)[0] == ACTIVE, "refusals do not end it"
    ended(captured)
    succeeds(aclnn.aclrtSynchronizeEvent(event))
    succeeds(aclnn.aclrtSynchronizeDevice())


def unsafe_statuses():
    """What aclrtMemset, aclrtMemcpy, a queued copy of pageable memory, and a launch on the default
    stream answer on the calling thread."""
    address, _ = aclnn.aclrtMalloc(64, 0)
    other = new_stream()
    found = [
        aclnn.aclrtMemset(address, 64, 0, 64),
        aclnn.aclrtMemcpy(address, 64, bytes(64), 64, aclnn.ACL_MEMCPY_HOST_TO_DEVICE),
        aclnn.aclrtMemcpyAsync(address, 64, bytes(64), 64, aclnn.ACL_MEMCPY_HOST_TO_DEVICE, other),
        call("aclnnInplaceRelu", tensor(np.ones(2, np.float32))),
    ]
    aclnn.aclrtDestroyStream(other)
    aclnn.aclrtFree(address)
    return found


def on_thread(function, *arguments):
    """What a function gives on a thread of its own."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function(*arguments)))
    thread.start()
    thread.join()
    return found[0]


def exchanged(mode):
    aclnn.aclmdlRICaptureThreadExchangeMode(mode)
    return unsafe_statuses()


REFUSED, ALLOWED = [107030, 107030, 107041, 107031], [OK] * 4


@pytest.mark.parametrize(
    ("mode", "own", "foreign"),
    [
        # by the thread's exchange mode: GLOBAL, THREAD_LOCAL, RELAXED
        (GLOBAL, [REFUSED, REFUSED, ALLOWED], [REFUSED, ALLOWED, ALLOWED]),
        (LOCAL, [REFUSED, REFUSED, ALLOWED], [ALLOWED, ALLOWED, ALLOWED]),
        (RELAXED, [ALLOWED, ALLOWED, ALLOWED], [ALLOWED, ALLOWED, ALLOWED]),
    ],
)
def test_modes_bind_threads(stream, mode, own, foreign):
    assert unsafe_statuses() == ALLOWED
    succeeds(aclnn.aclmdlRICaptureBegin(stream, mode))
    assert [exchanged(m) for m in (GLOBAL, LOCAL, RELAXED)] == own
    assert [on_thread(exchanged, m) for m in (GLOBAL, LOCAL, RELAXED)] == foreign
    aclnn.aclmdlRICaptureThreadExchangeMode(GLOBAL)
    ended(stream)
    assert unsafe_statuses() == ALLOWED


def test_exchanging_modes(stream):
    exchange = aclnn.aclmdlRICaptureThreadExchangeMode
    assert exchange(RELAXED) == (GLOBAL, OK)
    assert exchange(LOCAL) == (RELAXED, OK)
    assert exchange(7) == (LOCAL, WRONG_ARGUMENT)
    assert on_thread(exchange, GLOBAL) == (GLOBAL, OK), "each thread has its own"
    assert exchange(GLOBAL) == (LOCAL, OK)


def test_a_refused_call_names_the_capture_and_what_is_frozen(captured):
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    slope = aclnn.aclCreateScalar(0.25, aclnn.ACL_FLOAT)
    for _ in range(5):
        succeeds(call("aclnnLeakyRelu", tensor(x), slope, tensor(out), stream=captured))
    assert aclnn.aclrtMemcpy(bytearray(4), 4, bytes(4), 4, 0) == 107030
    message_has("aclrtMemcpy: ", f"stream {captured.number}", "mode GLOBAL", "MainThread", "RELAXED",
                "5 calls", "2 more", f"out={out.ctypes.data:#x}", "0.25", "begun")  # fmt: skip


def test_only_the_mode_relaxed_lets_another_thread_end(stream):
    for mode, status in ((GLOBAL, 107038), (LOCAL, 107038), (RELAXED, OK)):
        succeeds(aclnn.aclmdlRICaptureBegin(stream, mode))
        model, ret = on_thread(aclnn.aclmdlRICaptureEnd, stream)
        assert ret == status
        assert (model is None) == (status != OK)
        assert aclnn.aclmdlRICaptureGetInfo(stream)[0] == NONE, "dropped"


# --- Several streams --------------------------------------------------------------------------------


def test_streams_join_through_events_and_lead_back(captured):
    second, third = new_stream(), new_stream()
    a, b, c = np.float32([-1, 2]), np.zeros(2, np.float32), np.zeros(2, np.float32)
    fork, on, back = new_event(), new_event(), new_event()
    succeeds(call("aclnnInplaceRelu", tensor(a), stream=captured))
    succeeds(aclnn.aclrtRecordEvent(fork, captured))
    succeeds(aclnn.aclrtStreamWaitEvent(second, fork))
    assert aclnn.aclmdlRICaptureGetInfo(second)[0] == ACTIVE
    succeeds(call("aclnnExp", tensor(a), tensor(b), stream=second))
    succeeds(aclnn.aclrtRecordEvent(on, second))
    succeeds(aclnn.aclrtStreamWaitEvent(third, on))
    succeeds(call("aclnnNeg", tensor(b), tensor(c), stream=third))
    succeeds(aclnn.aclrtRecordEvent(back, third))
    assert aclnn.aclmdlRICaptureEnd(second) == (None, 107036)
    assert aclnn.aclrtSynchronizeStream(third) == 107027
    succeeds(aclnn.aclrtStreamWaitEvent(captured, back))
    # `second` leads back through `third`; its last task is the record that `third` waits for.
    model = ended(captured)
    for each in (captured, second, third):
        assert aclnn.aclmdlRICaptureGetInfo(each)[0] == NONE
    assert b.tolist() == [0, 0]
    succeeds(aclnn.aclmdlRIExecute(model, -1))
    np.testing.assert_allclose(b, np.exp([0, 2]), rtol=1e-6)
    np.testing.assert_array_equal(c, -b)


def test_streams_that_do_not_lead_back(stream):
    x = np.ones(2, np.float32)

    def after(*steps):
        second, fork, back = new_stream(), new_event(), new_event()
        succeeds(aclnn.aclmdlRICaptureBegin(stream, GLOBAL))
        succeeds(aclnn.aclrtRecordEvent(fork, stream))
        succeeds(aclnn.aclrtStreamWaitEvent(second, fork))
        for step in steps:
            succeeds(step(second, back))
        assert aclnn.aclmdlRICaptureEnd(stream) == (None, 107025)
        assert aclnn.aclmdlRICaptureGetInfo(second)[0] == NONE
        message_has(f"stream {second.number}")

    launch = lambda second, back: call("aclnnInplaceRelu", tensor(x), stream=second)  # noqa: E731
    record = lambda second, back: aclnn.aclrtRecordEvent(back, second)  # noqa: E731
    wait = lambda second, back: aclnn.aclrtStreamWaitEvent(stream, back)  # noqa: E731
    own = lambda second, back: aclnn.aclrtStreamWaitEvent(second, back)  # noqa: E731
    after()
    after(launch)
    after(record)
    after(launch, record)
    after(record, wait, launch)
    after(record, wait, record)
    after(record, own, record)


def test_waits_need_a_record_of_the_capture(captured):
    event = new_event()
    succeeds(aclnn.aclrtRecordEvent(event, None))
    succeeds(aclnn.aclrtStreamWaitEvent(captured, event))
    assert aclnn.aclmdlRICaptureEnd(captured) == (None, 107024)
    message_has(f"event {event.number}", f"stream {captured.number}")


def test_one_event_does_not_tie_two_captures(captured):
    other, event = new_stream(), new_event()
    succeeds(aclnn.aclrtRecordEvent(event, captured))
    succeeds(aclnn.aclmdlRICaptureBegin(other, GLOBAL))
    assert aclnn.aclrtStreamWaitEvent(other, event) == 107032
    assert aclnn.aclrtRecordEvent(event, other) == 107032
    message_has(f"stream {captured.number}", f"stream {other.number}", f"event {event.number}")
    ended(other)
    ended(captured)


# --- What invalidates a capture ---------------------------------------------------------------------


def test_a_run_that_cannot_be_recorded_invalidates(captured, malloc):
    x = np.ones(4, np.float32)
    address = malloc(16)
    _, size, executor = planned("aclnnInplaceRelu", tensor(x, address))
    aclnn.aclrtFree(address)
    assert aclnn.aclnnInplaceRelu(None, size, executor, captured) == 161002
    assert aclnn.aclmdlRICaptureGetInfo(captured)[0] == INVALIDATED
    assert call("aclnnInplaceRelu", tensor(x), stream=captured) == 507903
    assert aclnn.aclmdlRICaptureEnd(captured) == (None, 507903)
    message_has("aclnnInplaceRelu", "freed", f"on stream {captured.number}, test_capture.py:")
    assert aclnn.aclmdlRICaptureGetInfo(captured)[0] == NONE
    succeeds(call("aclnnInplaceRelu", tensor(x), stream=captured))
    succeeds(aclnn.aclrtSynchronizeStream(captured))


# --- Memory -----------------------------------------------------------------------------------------


def bytes_at(address, nbytes):
    return bytes((ctypes.c_uint8 * nbytes).from_address(address))


def test_replay_is_refused_once_memory_was_freed(captured, malloc):
    x = np.float32([-1, 2, -3, 4])
    source, target = malloc(16), malloc(16)
    succeeds(call("aclnnRelu", tensor(x, source), tensor(x, target), stream=captured))
    model = ended(captured)
    succeeds(aclnn.aclmdlRIExecuteAsync(model, captured))
    succeeds(aclnn.aclrtSynchronizeStream(captured))
    aclnn.aclrtFree(source)
    for run in (lambda: aclnn.aclmdlRIExecuteAsync(model, captured),
                lambda: aclnn.aclmdlRIExecute(model, -1)):  # fmt: skip
        assert run() == WRONG_ARGUMENT
        message_has("self of task 0", "aclnnRelu", f"{source:#x}", "freed")


def test_what_was_made_and_freed_inside_vanishes(captured, malloc):
    x = np.float32([-1, 2, -3, 4])
    source, target = malloc(16), malloc(16)
    relaxed = aclnn.aclmdlRICaptureThreadExchangeMode(RELAXED)[0]
    succeeds(aclnn.aclrtMemcpy(source, 16, x, 16, aclnn.ACL_MEMCPY_HOST_TO_DEVICE))
    aclnn.aclmdlRICaptureThreadExchangeMode(relaxed)
    between, _ = aclnn.aclrtMalloc(16, 0)
    succeeds(call("aclnnRelu", tensor(x, source), tensor(x, between), stream=captured))
    succeeds(call("aclnnNeg", tensor(x, between), tensor(x, target), stream=captured))
    aclnn.aclrtFree(between)
    model = ended(captured)
    assert len(model.executor.graph.outputs) == 1
    assert model.executor.workspace_size == 0 or len(model.executor.schedule.steps) == 1
    succeeds(aclnn.aclmdlRIExecute(model, -1))
    assert bytes_at(target, 16) == np.float32([-0.0, -2, -0.0, -4]).tobytes()


def test_an_intermediate_is_stored_unless_it_is_overwritten(captured):
    x, h, y = (np.float32([-1, 2]) for _ in range(3))
    z = np.zeros(2, np.float32)
    succeeds(call("aclnnRelu", tensor(x), tensor(h), stream=captured))
    succeeds(call("aclnnExp", tensor(h), tensor(y), stream=captured))
    succeeds(call("aclnnNeg", tensor(h), tensor(z), stream=captured))
    succeeds(call("aclnnNeg", tensor(z), tensor(y), stream=captured))  # over the exponentials
    model = ended(captured)
    assert len(model.executor.graph.outputs) == 3
    assert "exp" not in [node.name for node in model.executor.graph.nodes]
    succeeds(aclnn.aclmdlRIExecute(model, -1))
    assert (h.tolist(), y.tolist(), z.tolist()) == ([0, 2], [0, 2], [0, -2])


def test_pieces_of_memory_are_stored_once(captured):
    x, y = np.arange(-4, 4, dtype=np.float32), np.zeros(4, np.float32)
    succeeds(call("aclnnInplaceRelu", tensor(x[:4]), stream=captured))
    succeeds(call("aclnnInplaceNeg", tensor(x[4:]), stream=captured))
    succeeds(call("aclnnExp", tensor(x[2:6]), tensor(y), stream=captured))  # of both
    succeeds(call("aclnnInplaceNeg", tensor(x[:4]), stream=captured))
    model = ended(captured)
    assert len(model.executor.graph.outputs) == 3
    succeeds(aclnn.aclmdlRIExecute(model, -1))
    assert x.tolist() == [0, 0, 0, 0, 0, -1, -2, -3]
    np.testing.assert_allclose(y, np.exp([0, 0, 0, -1]), rtol=1e-6)


def test_copies_on_captured_streams(captured, malloc):
    x = np.float32([-1, 2, -3, 4])
    host, device, target = aclnn.aclrtMallocHost(16)[0], malloc(16), malloc(16)
    ctypes.memmove(host, x.ctypes.data, 16)
    h2d, d2h = aclnn.ACL_MEMCPY_HOST_TO_DEVICE, aclnn.ACL_MEMCPY_DEVICE_TO_HOST
    assert aclnn.aclrtMemcpyAsync(device, 16, x, 16, h2d, captured) == 107041
    message_has("aclrtMemcpyAsync", "src", "aclrtMallocHost")
    succeeds(aclnn.aclrtMemcpyAsync(device, 16, host, 16, h2d, captured))
    succeeds(call("aclnnRelu", tensor(x, device), tensor(x, target), stream=captured))
    succeeds(aclnn.aclrtMemcpyAsync(host, 16, target, 16, d2h, captured))
    model = ended(captured)
    assert [node.name for node in model.executor.graph.nodes if node.domain == "opaque"] == []
    assert bytes_at(host, 16) == x.tobytes()
    succeeds(aclnn.aclmdlRIExecute(model, -1))
    assert bytes_at(host, 16) == np.maximum(x, 0).tobytes()
    assert bytes_at(device, 16) == x.tobytes()
    succeeds(aclnn.aclrtFreeHost(host))
    assert aclnn.aclmdlRIExecute(model, -1) == WRONG_ARGUMENT


def test_arrays_live_as_long_as_the_model(captured):
    x = np.float32([-1, 2])
    out = np.zeros(2, np.float32)
    h = np.empty(2, np.float32)
    succeeds(call("aclnnRelu", tensor(x), tensor(h), stream=captured))
    succeeds(call("aclnnNeg", tensor(h), tensor(out), stream=captured))
    del x, h
    gc.collect()
    model = ended(captured)
    executor = model.executor
    succeeds(aclnn.aclmdlRIExecute(model, -1))
    assert out.tolist() == [0, -2]
    out[:] = 7
    succeeds(aclnn.aclmdlRIDestroy(model))
    executor.run()
    assert out.tolist() == [0, -2]


def test_events_do_not_keep_what_a_destroyed_model_held(captured):
    x, event = np.ones(4, np.float32), new_event()
    succeeds(call("aclnnInplaceRelu", tensor(x), stream=captured))
    succeeds(aclnn.aclrtRecordEvent(event, captured))
    gone = weakref.ref(x)
    succeeds(aclnn.aclmdlRIDestroy(ended(captured)))
    del x
    gc.collect()
    assert gone() is None


# --- Runs -------------------------------------------------------------------------------------------


def test_destroying_waits_for_no_run(stream):
    x = np.ones(2, np.float32)
    succeeds(aclnn.aclmdlRICaptureBegin(stream, GLOBAL))
    succeeds(call("aclnnInplaceRelu", tensor(x), stream=stream))
    model = ended(stream)
    gate, other = threading.Event(), new_stream()
    aclnn.acl.stream.submit(other, lambda: int(not gate.wait()))
    succeeds(aclnn.aclmdlRIExecuteAsync(model, other))
    assert aclnn.aclmdlRIDestroy(model) == 107037
    gate.set()
    succeeds(aclnn.aclrtSynchronizeStream(other))
    succeeds(aclnn.aclmdlRIDestroy(model))


def test_runs_with_a_time_limit(stream):
    x = np.ones(2, np.float32)
    succeeds(aclnn.aclmdlRICaptureBegin(stream, GLOBAL))
    succeeds(call("aclnnInplaceRelu", tensor(x), stream=stream))
    gate = threading.Event()
    aclnn.acl.stream.submit(stream, lambda: int(not gate.wait()))
    model = ended(stream)
    for timeout in (0, -2, "1", None):
        assert aclnn.aclmdlRIExecute(model, timeout) == WRONG_ARGUMENT
    assert aclnn.aclmdlRIExecute(model, 5) == 507046
    gate.set()
    succeeds(aclnn.aclmdlRIExecute(model, 1000))


def test_runs_on_several_threads_take_turns(stream):
    x, step = np.zeros(100_000, np.float32), np.ones(100_000, np.float32)
    one = aclnn.aclCreateScalar(1.0, aclnn.ACL_FLOAT)
    succeeds(aclnn.aclmdlRICaptureBegin(stream, GLOBAL))
    succeeds(call("aclnnInplaceAdd", tensor(x), tensor(step), one, stream=stream))
    model = ended(stream)

    def run():
        for _ in range(20):
            succeeds(aclnn.aclmdlRIExecute(model, -1))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.min() == x.max() == 80


def test_a_model_does_not_run_inside_a_capture(stream):
    succeeds(aclnn.aclmdlRICaptureBegin(stream, GLOBAL))
    model = ended(stream)
    assert model.executor.graph.nodes == ()
    succeeds(aclnn.aclmdlRIExecute(model, -1))
    succeeds(aclnn.aclmdlRICaptureBegin(stream, GLOBAL))
    assert aclnn.aclmdlRIExecuteAsync(model, stream) == 107027
    assert aclnn.aclmdlRIExecuteAsync(model, None) == 107031
    ended(stream)


# --- Task groups ------------------------------------------------------------------------------------


def test_task_groups_take_new_arguments(captured):
    x, y, z = np.float32([-1, 2]), np.zeros(2, np.float32), np.zeros(2, np.float32)
    slope = aclnn.aclCreateScalar(0.5, aclnn.ACL_FLOAT)
    succeeds(aclnn.aclmdlRICaptureTaskGrpBegin(captured))
    succeeds(call("aclnnLeakyRelu", tensor(x), slope, tensor(y), stream=captured))
    group, status = aclnn.aclmdlRICaptureTaskGrpEnd(captured)
    succeeds(status)
    succeeds(call("aclnnNeg", tensor(y), tensor(z), stream=captured))
    update = new_stream()
    assert aclnn.aclmdlRICaptureTaskUpdateBegin(captured, group) == 107027
    assert aclnn.aclmdlRICaptureTaskUpdateBegin(update, group) == 107026
    assert aclnn.aclmdlRICaptureTaskUpdateEnd(captured) == 107027
    model = ended(captured)
    succeeds(aclnn.aclmdlRIExecute(model, -1))
    assert z.tolist() == [0.5, -2]

    other, slope = np.float32([-4, 8]), aclnn.aclCreateScalar(0.25, aclnn.ACL_FLOAT)
    succeeds(aclnn.aclmdlRICaptureTaskUpdateBegin(update, group))
    assert aclnn.aclmdlRICaptureTaskUpdateBegin(update, group) == 107033
    assert aclnn.aclmdlRICaptureTaskUpdateBegin(captured, group) == 107033
    assert aclnn.aclmdlRICaptureBegin(update, GLOBAL) == 107033
    assert call("aclnnNeg", tensor(x), tensor(y), stream=update) == 207019
    message_has("aclnnLeakyRelu", "aclnnNeg")
    succeeds(call("aclnnLeakyRelu", tensor(other), slope, tensor(y), stream=update))
    assert call("aclnnLeakyRelu", tensor(other), slope, tensor(y), stream=update) == 107033
    succeeds(aclnn.aclmdlRICaptureTaskUpdateEnd(update))
    succeeds(aclnn.aclmdlRIExecuteAsync(model, update))
    succeeds(aclnn.aclrtSynchronizeStream(update))
    assert (y.tolist(), z.tolist()) == ([-1, 8], [1, -8])

    succeeds(aclnn.aclmdlRICaptureTaskUpdateBegin(update, group))
    assert aclnn.aclmdlRICaptureTaskUpdateEnd(update) == 107033, "too few"
    assert aclnn.aclmdlRICaptureTaskUpdateEnd(update) == 107033, "none is open"
    succeeds(aclnn.aclmdlRIExecute(model, -1))
    assert z.tolist() == [1, -8]


def test_updates_go_on_with_a_known_plan(captured):
    room = np.zeros((6, 4), np.float32)
    x, y, z = room[0], room[1], room[2]
    succeeds(aclnn.aclmdlRICaptureTaskGrpBegin(captured))
    slope = aclnn.aclCreateScalar(0.5, aclnn.ACL_FLOAT)
    succeeds(call("aclnnLeakyRelu", tensor(x), slope, tensor(y), stream=captured))
    group, _ = aclnn.aclmdlRICaptureTaskGrpEnd(captured)
    succeeds(call("aclnnNeg", tensor(y), tensor(z), stream=captured))
    model = ended(captured)
    plans = [model.executor.schedule]

    def update(source, target, number):
        room[3:] = [[-8, 1, 2, 3], [-4, 5, 6, 7], [9, 9, 9, 9]]
        slope = aclnn.aclCreateScalar(number, aclnn.ACL_FLOAT)
        succeeds(aclnn.aclmdlRICaptureTaskUpdateBegin(captured, group))
        succeeds(call("aclnnLeakyRelu", tensor(source), slope, tensor(target), stream=captured))
        succeeds(aclnn.aclmdlRICaptureTaskUpdateEnd(captured))
        succeeds(aclnn.aclmdlRIExecuteAsync(model, captured))
        succeeds(aclnn.aclrtSynchronizeStream(captured))
        plans.append(model.executor.schedule)

    update(x, y, 0.25)
    assert plans[1] is plans[0], "other numbers"
    update(room[3], y, 0.25)
    assert (y.tolist(), z.tolist()) == ([-2, 1, 2, 3], [2, -1, -2, -3])
    assert plans[2] is not plans[0], "behind what is written, not before it"
    update(room[4], y, 0.5)
    assert (y.tolist(), z.tolist()) == ([-2, 5, 6, 7], [2, -5, -6, -7])
    assert plans[3] is plans[2], "elsewhere, but as far as it matters as before"
    y[:] = 1
    update(room[4], room[5], 0.5)
    assert plans[4] is not plans[2], "what is negated is not the group's result any more"
    assert (room[5].tolist(), z.tolist()) == ([-2, 5, 6, 7], [-1] * 4)


def test_task_groups_refuse_what_they_cannot_take(captured, malloc):
    second, fork = new_stream(), new_event()
    x, address = np.ones(2, np.float32), malloc(16)
    assert aclnn.aclmdlRICaptureTaskGrpBegin(second) == 107029
    assert aclnn.aclmdlRICaptureTaskGrpEnd(second) == (None, 107029)
    assert aclnn.aclmdlRICaptureTaskGrpEnd(captured) == (None, 107033)
    succeeds(aclnn.aclrtRecordEvent(fork, captured))
    succeeds(aclnn.aclrtStreamWaitEvent(second, fork))
    succeeds(aclnn.aclmdlRICaptureTaskGrpBegin(captured))
    assert aclnn.aclmdlRICaptureTaskGrpBegin(captured) == 107033
    assert call("aclnnInplaceRelu", tensor(x), stream=second) == 107034
    message_has(f"stream {second.number}", f"stream {captured.number}")
    assert aclnn.aclrtMemcpyAsync(address, 8, address + 8, 8, D2D, captured) == 207000
    assert aclnn.aclmdlRICaptureEnd(captured) == (None, 107033)
    update = new_stream()
    assert aclnn.aclmdlRICaptureTaskUpdateBegin(update, None) == BAD_HANDLE
    assert aclnn.aclmdlRICaptureTaskUpdateBegin(None, None) == 107031


def test_updates_and_runs_meet_at_an_external_event(captured):
    x, y, z = np.float32([-1, 2]), np.zeros(2, np.float32), np.zeros(2, np.float32)
    gate, status = aclnn.aclrtCreateEventExWithFlag(aclnn.ACL_EVENT_EXTERNAL)
    succeeds(status)
    succeeds(call("aclnnNeg", tensor(x), tensor(z), stream=captured))
    succeeds(aclnn.aclrtStreamWaitEvent(captured, gate))
    succeeds(aclnn.aclrtResetEvent(gate, captured))
    succeeds(aclnn.aclmdlRICaptureTaskGrpBegin(captured))
    succeeds(call("aclnnRelu", tensor(x), tensor(y), stream=captured))
    group, _ = aclnn.aclmdlRICaptureTaskGrpEnd(captured)
    model = ended(captured)
    update = new_stream()
    for value in (-3, 5):
        other = np.float32([value, value])
        y[:] = z[:] = 7
        succeeds(aclnn.aclmdlRIExecuteAsync(model, captured))
        assert aclnn.aclrtSynchronizeStreamWithTimeout(captured, 50) == 507046
        assert aclnn.aclrtStreamQuery(captured) == (1, OK)
        assert (y.tolist(), z.tolist()) == ([7, 7], [1, -2]), "the group waits"
        succeeds(aclnn.aclmdlRICaptureTaskUpdateBegin(update, group))
        succeeds(call("aclnnRelu", tensor(other), tensor(y), stream=update))
        succeeds(aclnn.aclmdlRICaptureTaskUpdateEnd(update))
        succeeds(aclnn.aclrtRecordEvent(gate, update))
        succeeds(aclnn.aclrtSynchronizeStreamWithTimeout(captured, 10_000))
        assert y.tolist() == [max(value, 0)] * 2
        assert aclnn.aclrtQueryEventStatus(gate) == (0, OK), "the model has reset it"
        while aclnn.aclrtStreamQuery(captured) != (0, OK):  # the machine may be busy
            pass


def test_flags_of_records_and_waits(captured):
    event = new_event()
    x = np.float32([-1, 2])
    assert aclnn.aclrtRecordEventWithFlag(event, new_stream(), 1) == 107029
    assert aclnn.aclrtStreamWaitEventWithFlag(new_stream(), event, 0, 1) == 107029
    assert aclnn.aclrtRecordEventWithFlag(event, captured, 2) == WRONG_ARGUMENT
    assert aclnn.aclrtStreamWaitEventWithFlag(captured, event, 1, 1) == WRONG_ARGUMENT
    succeeds(call("aclnnInplaceRelu", tensor(x), stream=captured))
    succeeds(aclnn.aclrtRecordEventWithFlag(event, captured, 1))
    succeeds(aclnn.aclrtSynchronizeEvent(event))  # it is not the capture's
    model = ended(captured)
    assert aclnn.aclrtEventGetTimestamp(event) == (0, 107006)
    succeeds(aclnn.aclmdlRIExecute(model, -1))
    assert aclnn.aclrtEventGetTimestamp(event)[0] > 0
    assert x.tolist() == [0, 2]


def test_event_flags():
    make = aclnn.aclrtCreateEventWithFlag
    for flag in (0, 4, 0x80, -1, "1", aclnn.ACL_EVENT_EXTERNAL | aclnn.ACL_EVENT_SYNC):
        assert make(flag) == (None, WRONG_ARGUMENT)
    assert make(aclnn.ACL_EVENT_IPC) == (None, 207000)
    event, status = make(aclnn.ACL_EVENT_TIME_LINE | aclnn.ACL_EVENT_SYNC)
    succeeds(status)
    assert aclnn.aclrtResetEvent(event, None) == WRONG_ARGUMENT


def test_queries_of_what_is_captured(captured):
    event, gate = new_event(), threading.Event()
    succeeds(aclnn.aclrtRecordEvent(event, captured))
    assert aclnn.aclrtQueryEventStatus(event) == (0, 107028)
    assert aclnn.aclrtEventGetTimestamp(event) == (0, 107028)
    assert aclnn.aclrtSynchronizeEventWithTimeout(event, 1) == 107028
    assert aclnn.aclrtStreamQuery(captured) == (1, 107027)
    assert aclnn.aclrtSynchronizeStreamWithTimeout(captured, 1) == 107027
    ended(captured)
    aclnn.acl.stream.submit(captured, lambda: int(not gate.wait()))
    succeeds(aclnn.aclrtRecordEvent(event, captured))
    assert aclnn.aclrtQueryEventStatus(event) == (0, OK)
    assert aclnn.aclrtSynchronizeEventWithTimeout(event, 5) == 507047
    second = new_stream()
    succeeds(aclnn.aclrtStreamWaitEventWithTimeout(second, event, 5))
    assert aclnn.aclrtSynchronizeStream(second) == 361001
    gate.set()
    succeeds(aclnn.aclrtSynchronizeEventWithTimeout(event, 10_000))
    assert aclnn.aclrtQueryEventStatus(event) == (1, OK)


# --- Seeing it --------------------------------------------------------------------------------------


def test_names_and_traces(captured, tmp_path):
    x, event = np.float32([-1, 2]), new_event()
    second, back = new_stream(), new_event()
    succeeds(call("aclnnInplaceRelu", tensor(x), stream=captured))
    succeeds(aclnn.aclrtRecordEvent(event, captured))
    succeeds(aclnn.aclrtStreamWaitEvent(second, event))
    succeeds(call("aclnnInplaceNeg", tensor(x), stream=second))
    succeeds(aclnn.aclrtRecordEvent(back, second))
    succeeds(aclnn.aclrtStreamWaitEvent(captured, back))
    path = tmp_path / "model.json"
    during = aclnn.aclmdlRICaptureGetInfo(captured)[1]
    assert aclnn.aclmdlRIDebugJsonPrint(during, str(path), 0) == 107026
    model = ended(captured)
    succeeds(aclnn.aclmdlRISetName(model, "step"))
    assert aclnn.aclmdlRIGetName(model) == ("step", OK)
    assert aclnn.aclmdlRISetName(model, 3) == WRONG_ARGUMENT
    assert "step" in repr(model)
    for flags in (0, 1):
        succeeds(aclnn.aclmdlRIDebugJsonPrint(model, str(path), flags))
        trace = json.loads(path.read_text())
        assert [event["args"]["Task Type"] for event in trace] == [
            "KERNEL", "EVENT_RECORD", "EVENT_WAIT", "KERNEL", "EVENT_RECORD", "EVENT_WAIT",
        ]  # fmt: skip
        assert {event["ph"] for event in trace} == {"X"}
        assert [event["tid"] for event in trace[:3]] == [
            f"stream{captured.number}", f"stream{captured.number}", f"stream{second.number}",
        ]  # fmt: skip
        assert trace[1]["name"] == f"EVENT_RECORD_{event.number}"
        assert trace[2]["ts"] >= trace[1]["ts"] + trace[1]["dur"], "waits begin behind records"
        assert ("Kernel Args" in trace[0]["args"]) == bool(flags)
        assert trace[0]["args"]["Model Id"] == model.number
        assert trace[0]["args"]["ExtendInfo"].startswith("step test_capture.py:")
    assert f"{x.ctypes.data:#x}" in trace[0]["args"]["Kernel Args"]
    assert aclnn.aclmdlRIDebugJsonPrint(model, str(path), 2) == WRONG_ARGUMENT
    assert aclnn.aclmdlRIDebugJsonPrint(model, str(tmp_path / "no" / "file"), 0) == WRONG_ARGUMENT
    assert aclnn.aclmdlRIDebugJsonPrint(model, None, 0) == WRONG_ARGUMENT


def test_the_text_tells_what_becomes_of_memory(captured, malloc):
    x, kept = np.float32([-1, 2]), malloc(8)
    inside, _ = aclnn.aclrtMalloc(8, 0)
    event = new_event()
    succeeds(call("aclnnRelu", tensor(x), tensor(x, inside), stream=captured))
    succeeds(aclnn.aclrtRecordEvent(event, captured))
    succeeds(call("aclnnNeg", tensor(x, inside), tensor(x, kept), stream=captured))
    succeeds(call("aclnnExp", tensor(x, inside), tensor(x, kept), stream=captured))
    aclnn.aclrtFree(inside)
    model = aclnn.aclmdlRICaptureGetInfo(captured)[1]
    with pytest.raises(aclnn.AclnnError, match="still captured"):
        model.to_text()
    ended(captured)
    lines = model.to_text().splitlines()
    assert len(lines) == 5
    assert lines[1].endswith(f"{inside:#x} FLOAT[2]  made and freed inside, not stored")
    assert f"EVENT_RECORD of event {event.number}" in lines[2]
    assert lines[3].endswith(f"{kept:#x} FLOAT[2]  overwritten by task 3, not stored")
    assert lines[4].endswith(f"{kept:#x} FLOAT[2]  stored")
    assert "test_capture.py:" in lines[4]
    assert f"{inside:#x}" in lines[4]


def test_the_executor_has_every_view(captured):
    x, h, y = (
        np.ones((4, 8), np.float32),
        np.empty((4, 8), np.float32),
        np.empty((4, 8), np.float32),
    )
    succeeds(call("aclnnRelu", tensor(x), tensor(h), stream=captured))
    succeeds(call("aclnnSoftmax", tensor(h), -1, tensor(y), stream=captured))
    executor = ended(captured).executor
    assert isinstance(executor, aclnn.aclOpExecutor)
    assert "softmax" in executor.graph.to_text()
    assert "test_capture.py:" in executor.graph.to_text()
    table = executor.profile(repeat=3).lines().splitlines()[1:]
    shares = [int(row.rpartition(" ")[2].rstrip("%")) for row in table if not row.startswith("  ")]
    assert 98 <= sum(shares) <= 102
    assert "test_capture.py:" in table[0]
    assert "relu" in executor.graph_as_built.to_text()
    assert executor.schedule.to_text()
    assert executor.plan.to_text() is not None
    assert executor.profile(repeat=2).to_text()
    np.testing.assert_allclose(y, 1 / 8)


# --- Against the same calls, one by one -------------------------------------------------------------

ROOM = 256  # bytes that all operands of a program lie in
UNARY = ("aclnnRelu", "aclnnSilu", "aclnnNeg")
KINDS = ("unary", "unary", "in place", "add", "copy", "softmax", "cast", "norm", "mm", "sync")
IN_PLACE = ("aclnnInplaceRelu", "aclnnInplaceNeg")


@st.composite
def views(draw, itemsize, shape=None):
    """Offset in bytes, shape, and strides in elements, inside the room; no two elements meet."""
    if shape is None:
        shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=2)))
    inner = draw(st.sampled_from((1, 1, 1, 2)))
    strides = [inner * (shape[-1] if len(shape) == 2 else 1)] if len(shape) == 2 else []
    if strides:
        strides[0] += draw(st.sampled_from((0, 0, 1, 3)))
    strides = (*strides, inner)
    if draw(st.booleans()) and len(shape) == 2 and shape[0] == shape[1]:
        strides = strides[::-1]
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
    places = (ROOM - reach * itemsize) // 8
    # Few places, so that operands meet.
    offset = min(draw(st.sampled_from((0, 1, 2, 4, 8, 8, 12, 16))), places) * 8
    return offset, shape, strides


@st.composite
def programs(draw):
    steps = []
    for _ in range(draw(st.integers(1, 8))):
        dtype = draw(st.sampled_from((np.float32, np.float32, np.float32, np.float16)))
        kind = draw(st.sampled_from(KINDS))
        size = np.dtype(dtype).itemsize
        out = draw(views(size))
        other = draw(st.one_of(st.just(out), views(size, out[1]), views(size, out[1])))
        third = draw(st.one_of(st.just(out), views(size, out[1])))
        name = draw(st.sampled_from(IN_PLACE if kind == "in place" else UNARY))
        count = 4 * draw(st.integers(1, 12))
        steps.append((kind, name, dtype, out, other, third, count, draw(st.integers(0, 2))))
    return steps


def tensor_in(room, view, dtype):
    offset, shape, strides = view
    storage = ((ROOM - offset) // np.dtype(dtype).itemsize,)
    return aclnn.aclCreateTensor(
        shape, DTYPES[np.dtype(dtype)], strides, 0, aclnn.ACL_FORMAT_ND, storage, room + offset
    )


def run_step(step, room, stream):
    kind, name, dtype, out, other, third, count, _ = step
    at = lambda view: tensor_in(room, view, dtype)  # noqa: E731
    if kind == "in place":
        return call(name, at(out), stream=stream)
    if kind == "unary":
        return call(name, at(other), at(out), stream=stream)
    if kind == "softmax":
        return call("aclnnSoftmax", at(other), -1, at(out), stream=stream)
    if kind == "cast":
        narrow = tensor_in(room, other, np.float16)
        return call("aclnnCast", narrow, DTYPES[np.dtype(dtype)], at(out), stream=stream)
    if kind == "norm":
        rows, one = out[1], (*out[1][:-1], 1)
        mean = tensor_in(room, (3 * ROOM // 4, one, (1,) * len(one)), np.float32)
        sizes = aclnn.aclCreateIntArray(rows[-1:])
        return call("aclnnLayerNorm", at(other), sizes, None, None, 1e-5, at(out), mean, None,
                    stream=stream)  # fmt: skip
    if kind == "mm":
        return call("aclnnMm", at(other), at(third), at(out), 0, stream=stream)
    if kind == "copy":
        return aclnn.aclrtMemcpyAsync(room + out[0], count, room + other[0], count, D2D, stream)
    alpha = aclnn.aclCreateScalar(float(count), aclnn.ACL_FLOAT)
    return call("aclnnAdd", at(other), at(third), alpha, at(out), stream=stream)


def allowed(step):
    """Copies that leave the room are none; the other steps that are no calls only change streams."""
    kind, _, _, out, other, _, count, _ = step
    if kind == "norm" and max(out[0], other[0]) >= ROOM // 2:  # it would meet the means
        return False
    if kind == "mm" and (len(out[1]) != 2 or out[1][0] != out[1][1]):
        return False
    return kind != "sync" and not (kind == "copy" and max(out[0], other[0]) + count > ROOM)


def words_at(room):
    """The room's bytes as words, with one NaN for all."""
    words = np.frombuffer(bytes_at(room, ROOM), np.uint32).copy()
    words[np.isnan(words.view(np.float32))] = 0x7FC00000
    return words


def check_program(steps, seed):
    if any(step[0] == "cast" or step[2] is np.float16 for step in steps):  # bytes become NaNs
        steps = [step for step in steps if step[0] != "mm"]
    eager, frozen = aclnn.aclrtMalloc(ROOM, 0)[0], aclnn.aclrtMalloc(ROOM, 0)[0]
    numbers = np.random.default_rng(seed).normal(size=ROOM // 4).astype(np.float32).tobytes()
    for room in (eager, frozen):
        ctypes.memmove(room, numbers, ROOM)
    streams, event = [new_stream() for _ in range(3)], new_event()
    succeeds(aclnn.aclmdlRICaptureBegin(streams[0], RELAXED))
    at = 0
    for step in steps:
        if step[-1] != at:  # go on on another stream
            succeeds(aclnn.aclrtRecordEvent(event, streams[at]))
            at = step[-1]
            succeeds(aclnn.aclrtStreamWaitEvent(streams[at], event))
        if allowed(step):
            succeeds(run_step(step, frozen, streams[at]))
    for other in streams[1:]:
        if aclnn.aclmdlRICaptureGetInfo(other)[0]:
            succeeds(aclnn.aclrtRecordEvent(event, other))
            succeeds(aclnn.aclrtStreamWaitEvent(streams[0], event))
    model = ended(streams[0])
    assert bytes_at(frozen, ROOM) == numbers
    for _ in range(2):
        for step in filter(allowed, steps):
            succeeds(run_step(step, eager, None))
        succeeds(aclnn.aclmdlRIExecute(model, -1))
        shown = (
            model.executor
        )  # first after a run, which is of a single call as phase one planned it
        assert shown.latest in (None, shown.planned), "no run is planned anew"
        np.testing.assert_array_equal(words_at(frozen), words_at(eager))
    succeeds(aclnn.aclmdlRIDestroy(model))
    for room in (eager, frozen):
        succeeds(aclnn.aclrtFree(room))


@settings(deadline=None, max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(programs(), st.integers(0, 3))
def test_models_leave_memory_as_the_calls_do(steps, seed):
    check_program(steps, seed)


@pytest.mark.parametrize("number", [2**31, 2**63, 2**64, 2**70, 10**4000])
def test_limits_of_any_size_are_limits(stream, captured, number):
    model = ended(captured)
    event = new_event()
    succeeds(aclnn.aclmdlRIExecute(model, number))
    succeeds(aclnn.aclrtStreamWaitEventWithFlag(stream, event, number, 0))
    succeeds(aclnn.aclrtStreamWaitEventWithTimeout(stream, event, number))
    succeeds(aclnn.aclrtSynchronizeStreamWithTimeout(stream, number))
    succeeds(aclnn.aclrtSynchronizeEventWithTimeout(event, number))
    assert aclnn.aclmdlRIExecute(model, -number) == WRONG_ARGUMENT
    assert aclnn.aclrtStreamWaitEventWithFlag(stream, event, -number, 0) == WRONG_ARGUMENT
    succeeds(aclnn.aclmdlRIDestroy(model))


def product_and_its_transpose(a, b, c, d, stream=None):
    half = aclnn.aclCreateScalar(0.5, aclnn.ACL_FLOAT)
    succeeds(call("aclnnMatmul", tensor(b), tensor(d), tensor(a), 0, stream=stream))
    succeeds(call("aclnnAdd", tensor(a), tensor(a.T), half, tensor(c), stream=stream))
    succeeds(call("aclnnInplaceCopy", tensor(a), tensor(d), stream=stream))


def test_what_is_overwritten_at_the_end_may_be_read_in_two_layouts(captured):
    memory = np.random.default_rng(0).standard_normal((4, 6, 6)).astype(np.float32)
    direct = memory.copy()
    product_and_its_transpose(*memory, stream=captured)
    model = ended(captured)
    for _ in range(2):
        succeeds(aclnn.aclmdlRIExecute(model, -1))
        product_and_its_transpose(*direct)
        np.testing.assert_array_equal(memory, direct)


@pytest.mark.parametrize("count", [1, 2, 3, 40, 300])
def test_lists_of_any_length_are_captured(captured, count):
    """A single call runs by its own plan, with the names of all tensors; two are compiled."""
    parts = [np.full((3,), place, np.float32) for place in range(count)]
    out, turned = np.empty((2, 3 * count), np.float32)
    listed = aclnn.aclCreateTensorList([tensor(part) for part in parts])
    succeeds(call("aclnnCat", listed, 0, tensor(out), stream=captured))
    alone = ended(captured)
    succeeds(aclnn.aclmdlRICaptureBegin(captured, GLOBAL))
    succeeds(call("aclnnCat", listed, 0, tensor(out), stream=captured))
    succeeds(call("aclnnNeg", tensor(out), tensor(turned), stream=captured))
    both = ended(captured)
    for model in (alone, both):
        out.fill(7)
        succeeds(aclnn.aclmdlRIExecute(model, -1))
        np.testing.assert_array_equal(out, np.repeat(np.arange(count, dtype=np.float32), 3))
    np.testing.assert_array_equal(turned, -out)
    names = [name for name in alone.executor.operand_names if "tensors" in name]
    assert names == [f"tensors[{place}]" for place in range(count)]


# --- The workspace of a program -------------------------------------------------------------------


def block_of_calls(memory, stream=None):
    """Workspace sizes of the calls of a block, whose intermediates are in the caller's memory."""
    x, up, down, hidden, active, out, sums = memory
    one = aclnn.aclCreateScalar(1.0, aclnn.ACL_FLOAT)
    calls = (
        ("aclnnMatmul", tensor(x), tensor(up), tensor(hidden), 0),
        ("aclnnGelu", tensor(hidden), tensor(active)),
        ("aclnnMatmul", tensor(active), tensor(down), tensor(out), 0),
        ("aclnnAdd", tensor(out), tensor(x), one, tensor(sums)),
        ("aclnnSoftmax", tensor(sums), -1, tensor(out)),
    )
    sizes = []
    for name, *arguments in calls:
        workspace, size, executor = planned(name, *arguments)
        succeeds(getattr(aclnn, name)(workspace, size, executor, stream))
        sizes.append(size)
    return sizes


def test_a_program_needs_no_more_than_its_calls(stream):
    """Results that are stored and read have one place, whatever the order of addresses."""
    shapes = [(64, 32), (32, 128), (128, 32), (64, 128), (64, 128), (64, 32), (64, 32)]
    rng, names = np.random.default_rng(0), []
    for order in (range(7), reversed(range(7))):
        room = np.empty((7, 128 * 128), np.float32)
        memory = [
            room[place, : shape[0] * shape[1]].reshape(shape)
            for place, shape in zip(order, shapes, strict=True)
        ]
        for one in memory:
            one[:] = rng.standard_normal(one.shape)
        alike = [one.copy() for one in memory]
        sizes = block_of_calls(alike)
        succeeds(aclnn.aclmdlRICaptureBegin(stream, GLOBAL))
        block_of_calls(memory, stream)
        model = ended(stream)
        assert model.executor.workspace_size <= max(sizes)
        succeeds(aclnn.aclmdlRIExecute(model, -1))
        for one, other in zip(memory, alike, strict=True):
            np.testing.assert_array_equal(one.view(np.uint32), other.view(np.uint32))
        names.append([(value.name, value.shape) for value in model.executor.graph.values])
        succeeds(aclnn.aclmdlRIDestroy(model))
    assert names[0] == names[1]


def test_a_call_that_is_captured_alone_is_compiled_when_somebody_looks(stream, monkeypatch):
    compiled, counts = [], []

    def counted(*given, **named):
        compiled.append(named["summary"])
        return compile_recording(*given, **named)

    monkeypatch.setattr(replay, "compile_recording", counted)
    x, out = np.float32([[-1.5, 0.0, 2.0]]), np.empty((1, 3), np.float32)
    succeeds(aclnn.aclmdlRICaptureBegin(stream, GLOBAL))
    call("aclnnSoftmax", aclnn.tensor(x), -1, aclnn.tensor(out), stream=stream)
    model = ended(stream)
    for looks in (False, True, False):
        x += 1
        out.fill(0)
        if looks:
            assert "test_capture.py:" in model.executor.graph.to_text()
        succeeds(aclnn.aclmdlRIExecute(model, -1))
        np.testing.assert_array_equal(out, aclnn.softmax(x, -1))
        counts.append(len(compiled))
    assert counts == [0, 1, 1]
    assert model.executor.profile(repeat=2).steps
    assert compiled == ["Captured from streams."]


def test_observers_see_what_was_captured(stream):
    x, out, seen = np.float32([-1, 2]), np.empty(2, np.float32), []
    succeeds(aclnn.aclmdlRICaptureBegin(stream, GLOBAL))
    call("aclnnRelu", aclnn.tensor(x), aclnn.tensor(out), stream=stream)
    model = ended(stream)

    def observe(plan, *_):
        seen.append(plan)

    add_observer(observe)
    try:
        succeeds(aclnn.aclmdlRIExecute(model, -1))
    finally:
        remove_observer(observe)
    assert seen == [model.executor.planned]
    assert seen[0].operator.name == "capture"
