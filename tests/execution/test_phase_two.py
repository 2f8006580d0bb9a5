"""Phase two, executors' lives, rebinding, streams: what runs, what is refused, what is untouched."""

import gc
import itertools
import threading
import weakref

import numpy as np
import pytest
from cases import each

import aclnn
from aclnn import aclDataType as T
from aclnn.acl.stream import submit
from aclnn.compiler import _compiled_call
from aclnn.operators import ENTRIES

OK, NULLPTR, INVALID, INNER, INNER_NULLPTR = 0, 161001, 161002, 561000, 561103


def tensor(array=None, dtype=T.ACL_FLOAT, shape=None, strides=None, offset=0):
    shape = array.shape if shape is None else shape
    storage = shape if array is None else array.shape
    made = aclnn.aclCreateTensor(shape, dtype, strides, offset, aclnn.ACL_FORMAT_ND, storage, array)
    assert made is not None, aclnn.aclGetRecentErrMsg()
    return made


def leaky(x, out, slope=0.5):
    given = x if isinstance(x, aclnn.aclTensor) else tensor(x)
    target = out if isinstance(out, aclnn.aclTensor) else tensor(out)
    size, executor, status = aclnn.aclnnLeakyReluGetWorkspaceSize(
        given, aclnn.aclCreateScalar(slope, T.ACL_FLOAT), target
    )
    assert status == OK, aclnn.aclGetRecentErrMsg()
    return size, executor


def forced_workspace():
    """An executor that needs a workspace: its input overlaps its output by all but one element."""
    storage = np.arange(-50, 51, dtype=np.float32)
    size, executor = leaky(tensor(storage, shape=(100,)), tensor(storage, shape=(100,), offset=1))
    assert size >= 400
    return storage, size, executor


def message():
    found = aclnn.aclGetRecentErrMsg()
    assert found
    return found


@each("name", ENTRIES)
def test_null_executor(name):
    assert getattr(aclnn, name)(None, 0, None, None) == NULLPTR
    assert "executor" in message()


@pytest.mark.parametrize("junk", [3, "x", object()])
def test_junk_executor(junk):
    assert aclnn.aclnnLeakyRelu(None, 0, junk, None) == INVALID


def test_runs_and_is_spent():
    x, out = np.array([-2.0, 3.0], np.float32), np.zeros(2, np.float32)
    size, executor = leaky(x, out)
    assert aclnn.aclnnLeakyRelu(None, size, executor, None) == OK
    np.testing.assert_array_equal(out, [-1, 3])
    out[:] = 7
    assert aclnn.aclnnLeakyRelu(None, size, executor, None) == INNER
    assert "already" in message()
    np.testing.assert_array_equal(out, 7)


def test_repeatable_runs_again():
    x, out = np.array([-2.0, 3.0], np.float32), np.zeros(2, np.float32)
    _, executor = leaky(x, out)
    assert aclnn.aclSetAclOpExecutorRepeatable(executor) == OK
    for value in (-4.0, -8.0):
        x[0] = value
        assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK
        assert out[0] == value / 2
    assert aclnn.aclDestroyAclOpExecutor(executor) == OK
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == INNER
    assert aclnn.aclDestroyAclOpExecutor(executor) == INNER_NULLPTR
    assert aclnn.aclSetAclOpExecutorRepeatable(executor) == INNER_NULLPTR


def test_executor_of_another_operator():
    _, executor = leaky(np.zeros(2, np.float32), np.zeros(2, np.float32))
    assert aclnn.aclnnGeluBackward(None, 0, executor, None) == INNER
    assert "aclnnLeakyRelu" in message()
    assert aclnn.aclnnInplaceLeakyRelu(None, 0, executor, None) == INNER
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK


def test_failed_checks_write_nothing_and_spend_the_executor():
    storage, size, executor = forced_workspace()
    before = storage.copy()
    assert aclnn.aclnnLeakyRelu(None, size, executor, None) == NULLPTR
    assert "workspace" in message()
    # checks of the workspace come before that of the executor's life
    assert aclnn.aclnnLeakyRelu(np.empty(size, np.uint8), size - 1, executor, None) == INVALID
    assert aclnn.aclnnLeakyRelu(np.empty(size, np.uint8), size, executor, None) == INNER
    assert "already" in message()
    np.testing.assert_array_equal(storage, before)


def test_a_repeatable_executor_outlives_failed_checks():
    storage, size, executor = forced_workspace()
    assert aclnn.aclSetAclOpExecutorRepeatable(executor) == OK
    expected = np.where(storage[:-1] > 0, storage[:-1], storage[:-1] / 2)
    assert aclnn.aclnnLeakyRelu(None, size, executor, None) == NULLPTR
    assert aclnn.aclnnLeakyRelu(np.empty(size - 1, np.uint8), size, executor, None) == INVALID
    assert aclnn.aclnnLeakyRelu(np.empty(size, np.uint8), size, executor, None) == OK
    np.testing.assert_array_equal(storage[1:], expected)


@pytest.mark.parametrize("misalignment", [0, 1, 3])
@pytest.mark.parametrize("kind", [bytearray, lambda n: np.empty(n, np.uint8)])
def test_any_writable_buffer_of_any_alignment_is_a_workspace(kind, misalignment):
    storage, size, executor = forced_workspace()
    expected = np.where(storage[:-1] > 0, storage[:-1], storage[:-1] / 2)
    workspace = memoryview(kind(size + misalignment))[misalignment:]
    assert aclnn.aclnnLeakyRelu(workspace, size, executor, None) == OK
    np.testing.assert_array_equal(storage[1:], expected)


class Exported:
    """Memory that can be had by DLPack only."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_what_exports_its_memory_is_a_workspace(dtype):
    storage, size, executor = forced_workspace()
    expected = np.where(storage[:-1] > 0, storage[:-1], storage[:-1] / 2)
    memory = np.zeros(-(-size // np.dtype(dtype).itemsize), dtype)
    assert aclnn.aclnnLeakyRelu(Exported(memory), size, executor, None) == OK
    np.testing.assert_array_equal(storage[1:], expected)
    assert memory.any(), "intermediates were there"


@pytest.mark.parametrize(("begin", "shared"), [(0, "self"), (99, "self"), (100, "out"), (101, "")])
def test_a_workspace_lies_apart_from_the_operands(begin, shared):
    storage = np.arange(-50, 1000, dtype=np.float32)
    kept = storage.copy()
    given = tensor(storage, shape=(100,))
    size, executor = leaky(given, tensor(storage, shape=(100,), offset=1))
    workspace = storage[begin : begin + size // 4]
    status = aclnn.aclnnLeakyRelu(workspace, size, executor, None)
    if shared:
        assert status == INVALID
        assert f"workspace shares memory with {shared}, must lie apart" in message()
        np.testing.assert_array_equal(storage, kept)
        return
    assert status == OK
    np.testing.assert_array_equal(storage[1:101], np.where(kept > 0, kept, kept / 2)[:100])


@pytest.mark.parametrize("flaw", ["read-only", "with gaps"])
def test_exported_memory_that_is_no_workspace(flaw):
    _, size, executor = forced_workspace()
    memory = np.zeros(2 * size, np.uint8)
    memory = memory[::2] if flaw == "with gaps" else memory
    memory.flags.writeable = flaw != "read-only"
    assert aclnn.aclnnLeakyRelu(Exported(memory), size, executor, None) == INVALID
    assert "workspace is Exported, must be a writable contiguous buffer" in message()


@pytest.mark.parametrize("junk", [b"x" * 9999, "text", object(), 12345, 3.5])
def test_junk_workspace(junk):
    _, size, executor = forced_workspace()
    assert aclnn.aclnnLeakyRelu(junk, size, executor, None) == INVALID
    assert message()


def test_references_are_never_overwritten():
    _, size, executor = forced_workspace()
    workspace = np.array([object()] * (size // 8 + 1))
    kept = list(workspace)
    assert aclnn.aclnnLeakyRelu(workspace, size, executor, None) == INVALID
    assert "Python objects" in message()
    assert all(a is b for a, b in zip(workspace, kept, strict=True))


@pytest.mark.parametrize("size", [-1, "x", None, 2.5])
def test_junk_workspace_size(size):
    _, executor = leaky(np.zeros(2, np.float32), np.zeros(2, np.float32))
    assert aclnn.aclnnLeakyRelu(None, size, executor, None) == INVALID


def test_device_memory_as_workspace_and_data():
    x = np.arange(-8, 8, dtype=np.float32)
    source, status = aclnn.aclrtMalloc(x.nbytes, aclnn.ACL_MEM_MALLOC_HUGE_FIRST)
    assert status == OK
    assert aclnn.aclrtMemcpy(source, x.nbytes, x, x.nbytes, aclnn.ACL_MEMCPY_HOST_TO_DEVICE) == OK
    data = aclnn.aclCreateTensor((16,), T.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (16,), source)
    out = np.zeros(16, np.float32)
    _, executor = leaky(data, out)
    assert aclnn.aclSetAclOpExecutorRepeatable(executor) == OK
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK
    np.testing.assert_array_equal(out, np.where(x > 0, x, x / 2))
    assert aclnn.aclrtFree(source) == OK
    out[:] = 7
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) != OK
    np.testing.assert_array_equal(out, 7)


def test_missing_data_pointer():
    out = np.zeros(3, np.float32)
    _, executor = leaky(tensor(shape=(3,)), out)
    assert aclnn.aclSetAclOpExecutorRepeatable(executor) == OK
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == NULLPTR
    assert "self" in message()
    x = np.array([-2, 0, 2], np.float32)
    assert aclnn.aclSetInputTensorAddr(executor, 0, tensor(shape=(3,)), x) == OK
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK
    np.testing.assert_array_equal(out, [-1, 0, 2])


def test_rebinding_by_index():
    x, g, out = (np.full(4, value, np.float32) for value in (1, 2, 0))
    size, executor, status = aclnn.aclnnHardshrinkBackwardGetWorkspaceSize(
        tensor(g), tensor(x), aclnn.aclCreateScalar(0.5, T.ACL_FLOAT), tensor(out)
    )
    assert (size, status) == (0, OK)
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    other_g, other_out, like = np.full(4, 5, np.float32), np.zeros(4, np.float32), tensor(out)
    assert aclnn.aclSetInputTensorAddr(executor, 0, like, other_g) == OK
    assert aclnn.aclSetOutputTensorAddr(executor, 0, like, other_out) == OK
    assert aclnn.aclnnHardshrinkBackward(None, 0, executor, None) == OK
    np.testing.assert_array_equal(other_out, 5)
    np.testing.assert_array_equal(out, 0)
    assert aclnn.aclSetTensorAddr(executor, 2, like, out) == OK  # inputs first: 2 is the output
    assert aclnn.aclnnHardshrinkBackward(None, 0, executor, None) == OK
    np.testing.assert_array_equal(out, 5)


@pytest.mark.parametrize(
    ("function", "bad"),
    [("aclSetInputTensorAddr", 2), ("aclSetOutputTensorAddr", 1), ("aclSetTensorAddr", 3),
     ("aclSetTensorAddr", -1), ("aclSetTensorAddr", "0"), ("aclSetTensorAddr", 2**70)],
)  # fmt: skip
def test_rebinding_an_index_out_of_range(function, bad):
    arrays = [np.zeros(4, np.float32) for _ in range(3)]
    _, executor, _ = aclnn.aclnnGeluBackwardGetWorkspaceSize(*map(tensor, arrays))
    assert getattr(aclnn, function)(executor, bad, tensor(arrays[0]), arrays[0]) == INVALID
    assert "index" in message()


def joined(first, second, out):
    listed = aclnn.aclCreateTensorList([tensor(first), tensor(second)])
    size, executor, status = aclnn.aclnnCatGetWorkspaceSize(listed, 0, tensor(out))
    assert (size, status) == (0, OK), aclnn.aclGetRecentErrMsg()
    assert aclnn.aclSetAclOpExecutorRepeatable(executor) == OK
    return listed, executor


@pytest.mark.parametrize("function", ["aclSetDynamicInputTensorAddr", "aclSetDynamicTensorAddr"])
def test_rebinding_a_tensor_of_a_list(function):
    first, second, out = np.float32([1, 2]), np.float32([3]), np.zeros(3, np.float32)
    listed, executor = joined(first, second, out)
    bind = getattr(aclnn, function)
    assert bind(executor, 0, 1, listed, np.float32([7])) == OK
    assert aclnn.aclnnCat(None, 0, executor, None) == OK
    np.testing.assert_array_equal(out, [1, 2, 7])
    assert bind(executor, 0, 0, listed, np.float32([8, 9])) == OK
    assert aclnn.aclnnCat(None, 0, executor, None) == OK
    np.testing.assert_array_equal(out, [8, 9, 7])
    assert aclnn.aclSetInputTensorAddr(executor, 1, tensor(second), second) == OK
    assert aclnn.aclnnCat(None, 0, executor, None) == OK
    np.testing.assert_array_equal(out, [8, 9, 3])


@pytest.mark.parametrize(
    ("function", "places", "words"),
    [
        ("aclSetDynamicInputTensorAddr", (1, 0), "irIndex is 1, must be from 0 to 0"),
        ("aclSetDynamicInputTensorAddr", ("0", 0), "irIndex is '0', must be from 0 to 0"),
        ("aclSetDynamicInputTensorAddr", (0, 2), "relativeIndex is 2, must be from 0 to 1"),
        ("aclSetDynamicTensorAddr", (0, -1), "relativeIndex is -1, must be from 0 to 1"),
        ("aclSetDynamicTensorAddr", (1, 0), "irIndex is 1, which is out: no list"),
        ("aclSetDynamicOutputTensorAddr", (0, 0), "irIndex is 0, which is out: no list"),
    ],
)
def test_rebinding_what_is_in_no_list(function, places, words):
    listed, executor = joined(*(np.zeros(n, np.float32) for n in (2, 1, 3)))
    bind = getattr(aclnn, function)
    assert bind(executor, *places, listed, np.zeros(2, np.float32)) == INVALID
    assert words in message()
    assert bind(None, 0, 0, listed, None) == INNER_NULLPTR
    assert bind(executor, 0, 0, None, None) == INNER_NULLPTR
    assert bind(executor, 0, 0, tensor(np.zeros(2, np.float32)), None) == INNER_NULLPTR
    aclnn.aclDestroyTensorList(listed)
    assert bind(executor, 0, 0, listed, None) == INNER_NULLPTR
    assert "tensors is null, destroyed" in message()


def test_rebinding_a_list_refuses_memory_that_is_too_small_and_executors_of_arrays():
    listed, executor = joined(*(np.zeros(n, np.float32) for n in (2, 1, 3)))
    bind = aclnn.aclSetDynamicInputTensorAddr
    assert bind(executor, 0, 0, listed, np.zeros(1, np.float32)) == INVALID
    assert bind(executor, 0, 0, listed, None) == OK
    assert aclnn.aclnnCat(None, 0, executor, None) == NULLPTR
    arrays = aclnn.executor("cat", [np.zeros(2, np.float32)])
    assert bind(arrays, 0, 0, listed, np.zeros(2, np.float32)) == INVALID
    assert "executor was made by aclnn.executor()" in message()


def test_rebinding_refuses_null_and_memory_that_is_too_small():
    x = np.zeros(4, np.float32)
    _, executor = leaky(x, np.zeros(4, np.float32))
    assert aclnn.aclSetTensorAddr(None, 0, tensor(x), x) == INNER_NULLPTR
    assert aclnn.aclSetTensorAddr(executor, 0, None, x) == INNER_NULLPTR
    assert aclnn.aclSetTensorAddr(executor, 0, tensor(x), np.zeros(3, np.float32)) == INVALID


@pytest.mark.parametrize(
    ("function", "index"), [("aclSetOutputTensorAddr", 0), ("aclSetTensorAddr", 1)]
)
def test_rebinding_refuses_to_write_where_nobody_may(function, index):
    out = np.zeros(4, np.float32)
    size, executor = leaky(np.zeros(4, np.float32), out)
    assert getattr(aclnn, function)(executor, index, tensor(out), bytes(16)) == INVALID
    assert message() == f"{function}: addr is read-only, but out is the output"
    assert aclnn.aclSetInputTensorAddr(executor, 0, tensor(out), bytes(16)) == OK
    assert aclnn.aclnnLeakyRelu(None, size, executor, None) == OK


def test_rebinding_to_memory_that_overlaps_is_still_as_if_copied():
    storage = np.arange(-50, 51, dtype=np.float32)
    expected = np.where(storage[:-1] > 0, storage[:-1], storage[:-1] / 2)
    _, executor = leaky(np.zeros(100, np.float32), np.zeros(100, np.float32))
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    assert aclnn.aclSetInputTensorAddr(executor, 0, tensor(shape=(100,)), storage[:-1]) == OK
    assert aclnn.aclSetOutputTensorAddr(executor, 0, tensor(shape=(100,)), storage[1:]) == OK
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK
    np.testing.assert_array_equal(storage[1:], expected)


def shows(executor):
    """Everything in which an executor shows its plan."""
    seen = executor.graph, executor.plan, executor.schedule, executor.passes
    assert executor.workspace_size == executor.plan.size == executor.schedule.workspace_size
    nodes = len(executor.graph.nodes)
    count = "1 node" if nodes == 1 else f"{nodes} nodes"
    assert f": {count}, workspace {executor.workspace_size} bytes," in repr(executor)
    return seen


def crossing_arrays():
    memory = np.arange(-50, 51, dtype=np.float32)
    return {"self": memory[:-1], "out": memory[1:]}


def test_executors_show_the_plan_that_ran():
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    executor = aclnn.executor("elu", x, out=out)
    first = shows(executor)
    executor.run(**crossing_arrays())
    crossing = aclnn.executor("elu", **crossing_arrays())
    assert shows(executor) == shows(crossing) != first
    assert executor.workspace_size >= 400
    executor.run(self=x, out=out)
    assert shows(executor) == first


def test_executors_show_the_plan_of_what_is_bound():
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    executor = aclnn.executor("elu", x, out=out)
    first, crossing = shows(executor), shows(aclnn.executor("elu", **crossing_arrays()))
    executor.rebind(crossing_arrays())
    assert shows(executor) == crossing != first
    executor.run()
    assert shows(executor) == crossing
    executor.rebind({"self": x, "out": out})
    assert shows(executor) == first


def test_executors_of_tensors_show_the_plan_of_what_is_bound():
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    size, executor = leaky(x, out)
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    assert (size, executor.workspace_size, len(executor.schedule.steps)) == (0, 0, 1)
    for index, array in enumerate(crossing_arrays().values()):
        assert aclnn.aclSetTensorAddr(executor, index, tensor(shape=(100,)), array) == OK
    assert (executor.workspace_size >= 400, len(executor.schedule.steps)) == (True, 2)
    assert aclnn.aclnnLeakyRelu(None, size, executor, None) == OK
    assert (executor.workspace_size >= 400, len(executor.schedule.steps)) == (True, 2)


@pytest.mark.parametrize("warmup", [0, 1])
def test_profiles_are_of_the_plan_that_ran(warmup):
    executor = aclnn.executor("elu", np.ones(100, np.float32))
    executor.rebind(crossing_arrays())
    profile = executor.profile(repeat=3, warmup=warmup)
    assert len(profile) == 3
    assert [len(step.times) for step in profile.steps] == [3] * len(executor.schedule.steps)
    assert executor.workspace_size >= 400


def test_profiles_are_of_what_was_bound_when_they_began():
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    executor = aclnn.executor("elu", x, out=out)

    def bind_others(plan, begin, end, events, submitted):
        if not plan.workspace_size:  # else it is the run below
            executor.run(**crossing_arrays())

    _compiled_call.add_observer(bind_others)
    try:
        profile = executor.profile(repeat=3, warmup=0)
    finally:
        _compiled_call.remove_observer(bind_others)
    assert len(profile) == 3
    assert {run.plan.workspace_size for run in profile.runs} == {0}


@pytest.mark.parametrize("queued", [False, True])
def test_phase_two_asks_for_the_workspace_it_told_of(queued):
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    size, executor = leaky(x, out)
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    first, arrays = shows(executor), crossing_arrays()
    stream = aclnn.aclrtCreateStream()[0] if queued else None

    def run(source, target):
        for index, array in enumerate((source, target)):
            given = tensor(shape=(100,))
            assert aclnn.aclSetTensorAddr(executor, index, given, array) == OK
        assert aclnn.aclnnLeakyRelu(None, size, executor, stream) == OK
        assert aclnn.aclrtSynchronizeStream(stream) == OK

    run(arrays["self"], arrays["out"])
    assert executor.workspace_size >= 400
    run(x, out)
    assert shows(executor) == first
    assert (out == 1).all()
    if queued:
        assert aclnn.aclrtDestroyStream(stream) == OK


def test_in_place_pair_and_its_single_tensor():
    x = np.array([-2, 4], np.float32)
    _, executor, status = aclnn.aclnnInplaceLeakyReluGetWorkspaceSize(
        tensor(x), aclnn.aclCreateScalar(0.5, T.ACL_FLOAT)
    )
    assert status == OK
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    assert aclnn.aclnnInplaceLeakyRelu(None, 0, executor, None) == OK
    np.testing.assert_array_equal(x, [-1, 4])
    other = np.array([-8, 1], np.float32)
    assert aclnn.aclSetTensorAddr(executor, 0, tensor(x), other) == OK
    assert aclnn.aclnnInplaceLeakyRelu(None, 0, executor, None) == OK
    np.testing.assert_array_equal(other, [-4, 1])
    np.testing.assert_array_equal(x, [-1, 4])
    assert aclnn.aclSetTensorAddr(executor, 1, tensor(x), other) == INVALID


@pytest.mark.parametrize("strategy", ["default", "bucket", "naive"])
@pytest.mark.parametrize("materialize", [False, True])
@pytest.mark.parametrize("name", ["hardshrink_backward", "gelu_backward"])
def test_where_nothing_is_to_do_plan_and_schedule_say_so(name, materialize, strategy):
    shapes = (0, 1), (3,)
    ex = aclnn.executor(
        name, *(np.ones(shape, np.float32) for shape in shapes),
        materialize=materialize, strategy=strategy,
    )  # fmt: skip
    assert ex.workspace_size == ex.plan.size == ex.plan.naive_size == 0
    ex.plan.check(0)
    assert ex.schedule.steps == ()
    assert "nothing to do" in ex.schedule.to_text()
    assert aclnn.graph.Schedule.from_json(ex.schedule.to_json()) == ex.schedule
    assert ex.run().shape[0] == 0


def test_empty_tensors_succeed_and_do_nothing():
    empty = np.zeros((0, 3), np.float32)
    size, executor = leaky(empty, np.zeros((0, 3), np.float32))
    assert size == 0
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK


def test_strided_output_keeps_its_gaps_and_offset():
    x = np.array([[-2, 3], [4, -6]], np.float32)
    storage = np.full(20, 9, np.float32)
    _, executor = leaky(x, tensor(storage, shape=(2, 2), strides=(8, 3), offset=5))
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK
    expected = np.full(20, 9, np.float32)
    expected[[5, 8, 13, 16]] = [-1, 3, 4, -3]
    np.testing.assert_array_equal(storage, expected)


@pytest.fixture
def held_up():
    """A stream, and what lets its work go on."""
    stream, status = aclnn.aclrtCreateStream()
    assert status == OK
    gate = threading.Event()
    assert submit(stream, lambda: OK if gate.wait(30) else (INNER, "nobody let it go on")) == OK
    yield stream, gate
    gate.set()
    aclnn.aclrtDestroyStream(stream)


def test_streams_run_off_the_calling_thread_and_in_order(held_up):
    stream, gate = held_up
    arrays = [np.full(100_000, -(2.0**20), np.float32), *np.zeros((10, 100_000), np.float32)]
    for x, out in itertools.pairwise(arrays):
        _, executor = leaky(x, out)
        assert aclnn.aclnnLeakyRelu(None, 0, executor, stream) == OK
    assert not np.any(arrays[1:])
    gate.set()
    assert aclnn.aclrtSynchronizeStream(stream) == OK
    np.testing.assert_array_equal(arrays[-1], -(2.0**10))
    assert aclnn.aclrtDestroyStream(stream) == OK
    _, executor = leaky(x, out)
    assert aclnn.aclnnLeakyRelu(None, 0, executor, stream) == 107017


def test_tensors_may_be_destroyed_once_the_run_is_queued(held_up):
    stream, gate = held_up
    x, out = np.full(1000, -2, np.float32), np.zeros(1000, np.float32)
    tensors = tensor(x), tensor(out)
    _, executor = leaky(*tensors)
    assert aclnn.aclnnLeakyRelu(None, 0, executor, stream) == OK
    for one in tensors:
        assert aclnn.aclDestroyTensor(one) == OK
    gate.set()
    assert aclnn.aclrtSynchronizeStream(stream) == OK
    np.testing.assert_array_equal(out, -1)


def test_many_threads_plan_and_run_at_once():
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for size in rng.integers(1, 300, 50):
            x, out = rng.standard_normal(size).astype(np.float32), np.zeros(size, np.float32)
            needed, executor = leaky(x, out)
            if aclnn.aclnnLeakyRelu(None, needed, executor, None) != OK:
                failures.append(aclnn.aclGetRecentErrMsg())
            elif not np.array_equal(out, np.where(x > 0, x, x / 2)):
                failures.append((seed, size))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_checks_come_in_the_documented_order():
    """Workspace, then data, then whether the executor may run."""
    _, size, executor = forced_workspace()
    assert aclnn.aclnnLeakyRelu(np.zeros(size, np.uint8), size, executor, None) == OK  # now spent
    for workspace, given, status in (
        (None, size, NULLPTR),
        (np.zeros(size, np.uint8), size - 1, INVALID),
        (np.zeros(size - 1, np.uint8), size, INVALID),
        (np.zeros(size, np.uint8), size, INNER),
    ):
        assert aclnn.aclnnLeakyRelu(workspace, given, executor, None) == status
        assert message()
    x, out = tensor(np.ones(2, np.float32)), tensor(np.ones(2, np.float32))
    _, executor = leaky(x, out)
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK
    aclnn.aclSetRawTensorAddr(out, None)
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == NULLPTR  # spent as well
    _, executor = leaky(np.ones(2, np.float32), np.ones(2, np.float32))
    assert aclnn.aclnnLeakyRelu(None, 8, executor, None) == NULLPTR  # 8 bytes of nothing


def test_numpy_integers_are_integers():
    _, size, executor = forced_workspace()
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    address, status = aclnn.aclrtMalloc(size, 0)
    assert status == OK
    assert aclnn.aclnnLeakyRelu(np.int64(address), np.int64(size), executor, None) == OK
    assert aclnn.aclSetOutputTensorAddr(
        executor, np.int64(0), tensor(np.ones(100, np.float32)), np.ones(101, np.float32)
    ) == OK  # fmt: skip
    x = tensor(np.ones(2, np.float32))
    assert aclnn.aclnnGeluV2GetWorkspaceSize(x, np.int64(1), x)[2] == OK
    one = aclnn.aclCreateScalar(1, T.ACL_FLOAT)
    assert aclnn.aclnnEluBackwardGetWorkspaceSize(x, one, one, one, np.bool_(True), x, x)[2] == OK
    aclnn.aclrtFree(address)


def test_any_order_of_elements_is_a_workspace_but_references_are_none():
    _, size, executor = forced_workspace()
    aclnn.aclSetAclOpExecutorRepeatable(executor)
    fortran = np.zeros((size // 8 + 1, 8), np.uint8, order="F")
    assert aclnn.aclnnLeakyRelu(fortran, size, executor, None) == OK
    references = np.array([None] * size)
    assert aclnn.aclnnLeakyRelu(memoryview(references), size, executor, None) == INVALID
    assert "references" in message()
    assert all(one is None for one in references)


def test_executors_of_both_layers_are_of_one_class():
    x, out = np.array([-2.0, 3.0], np.float32), np.zeros(2, np.float32)
    executor = aclnn.executor("leaky_relu", x, negative_slope=0.5, out=out)
    for _ in range(2):  # repeatable, like all of them
        out[:] = 0
        assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK
        np.testing.assert_array_equal(out, [-1, 3])
    assert aclnn.aclnnGelu(None, 0, executor, None) == INNER
    assert "aclnn.executor('leaky_relu')" in message()
    assert aclnn.aclSetTensorAddr(executor, 0, tensor(x), x) == INVALID
    assert "by name" in message()
    out[:] = 0
    _, executor = leaky(x, out)
    assert len(executor.profile(repeat=3)) == 3
    np.testing.assert_array_equal(out, [-1, 3])
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == INNER  # it has run
    with pytest.raises(aclnn.AclnnError, match="spent"):
        executor.profile(repeat=3)


def test_bfloat16_outputs_only_where_the_product_has_them():
    x = tensor(np.ones(2, np.float32))
    out = tensor(np.ones(2, np.uint16), dtype=T.ACL_BF16)
    one = aclnn.aclCreateScalar(1, T.ACL_FLOAT)
    calls = (
        lambda: aclnn.aclnnEluBackwardGetWorkspaceSize(x, one, one, one, False, x, out),
        lambda: aclnn.aclnnLeakyReluGetWorkspaceSize(x, one, out),
        lambda: aclnn.aclnnEluGetWorkspaceSize(x, one, one, one, out),
        lambda: aclnn.aclnnHardshrinkGetWorkspaceSize(x, one, out),
    )
    before = aclnn.get_soc_version()
    try:
        for soc, status in (("Ascend910B", OK), ("Ascend910", INVALID), ("Ascend310P", INVALID)):
            aclnn.set_soc_version(soc)
            assert [call()[2] for call in calls] == [status] * len(calls)
            assert status == OK or "BF16" in message()
    finally:
        aclnn.set_soc_version(before)


def test_signs_are_those_of_scalars_as_float():
    """What is no float32 below zero is not negative."""
    x, one = tensor(np.ones(2, np.float32)), aclnn.aclCreateScalar(1, T.ACL_FLOAT)
    for value, status in ((-1e-300, OK), (-1e-40, INVALID), (-1.0, INVALID)):
        alpha = aclnn.aclCreateScalar(value, T.ACL_DOUBLE)
        plan = aclnn.aclnnEluBackwardGetWorkspaceSize(x, alpha, one, one, True, x, x)
        assert plan[2] == status
        if status != OK:
            with pytest.raises(aclnn.AclnnError, match=f"alpha is {value}"):
                aclnn.elu_backward(
                    np.ones(2, np.float32), np.ones(2, np.float32), alpha=value, is_result=True
                )


def test_executors_keep_only_what_is_bound_alive():
    class Watched(np.ndarray):
        pass

    first = np.arange(4, dtype=np.float32).view(Watched)
    seen = weakref.ref(first)
    ex = aclnn.executor("gelu", first)
    ex.run(self=np.zeros(4, np.float32))
    del first
    gc.collect()
    assert seen() is None


def test_a_misaligned_array_is_refused_for_that():
    ex = aclnn.executor("gelu", np.zeros(4, np.float32))
    with pytest.raises(aclnn.AclnnError, match="executors need a native, aligned array"):
        ex.run(self=np.zeros(17, np.uint8)[1:].view(np.float32))


def test_executors_rebind_by_name():
    rng = np.random.default_rng(9)
    g, x = rng.standard_normal((2, 50)).astype(np.float32)
    with aclnn.executor("gelu_backward", g, x) as ex:
        first = ex.run()
        np.testing.assert_array_equal(first, aclnn.gelu_backward(g, x))
        other, out = rng.standard_normal(50).astype(np.float32), np.zeros(50, np.float32)
        assert ex.run(self=other, out=out) is out
        np.testing.assert_array_equal(out, aclnn.gelu_backward(g, other))
        for bad in ({"x": x}, {"self": x[:3]}, {"self": x.astype(np.float16)}, {"self": x[::-1]}):
            with pytest.raises(aclnn.AclnnError):
                ex.run(**bad)
        np.testing.assert_array_equal(ex.run(), out)
        ex.run(self=out, out=out)
        np.testing.assert_array_equal(out, aclnn.gelu_backward(g, aclnn.gelu_backward(g, other)))
    with pytest.raises(aclnn.AclnnError):
        ex.run()


def test_tensors_of_lists_of_outputs_are_rebound():
    x, parts = np.arange(6, dtype=np.float32), np.zeros((2, 3), np.float32)
    outs = aclnn.aclCreateTensorList([tensor(part) for part in parts])
    size, executor, status = aclnn.aclnnSplitTensorGetWorkspaceSize(tensor(x), 3, 0, outs)
    assert status == 0
    assert aclnn.aclSetAclOpExecutorRepeatable(executor) == 0
    other = np.zeros(3, np.float32)
    assert aclnn.aclSetDynamicOutputTensorAddr(executor, 0, 1, outs, other) == 0
    assert aclnn.aclnnSplitTensor(None, size, executor, None) == 0
    assert (parts.tolist(), other.tolist()) == ([[0, 1, 2], [0, 0, 0]], [3, 4, 5])
    assert aclnn.aclSetDynamicTensorAddr(executor, 1, 0, outs, other) == 0
    assert aclnn.aclSetDynamicOutputTensorAddr(executor, 0, 2, outs, other) == 161002
    assert "relativeIndex is 2, must be from 0 to 1" in aclnn.aclGetRecentErrMsg()
    assert aclnn.aclSetDynamicOutputTensorAddr(executor, 1, 0, outs, other) == 161002
    aclnn.aclDestroyAclOpExecutor(executor)
