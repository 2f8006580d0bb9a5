"""What runs between two steps of ours: destructors, exporters and finalizers that call back."""

import weakref

import numpy as np
import pytest
from setups import fresh, tensor

import aclnn

OK, INVALID, INNER, INNER_NULLPTR = 0, 161002, 561000, 561103


class Exporter:
    """An array that does something when it is looked at."""

    def __init__(self, array, hook):
        self.array, self.hook = array, hook

    def __dlpack__(self, **options):
        self.hook()
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0


def leaky(x, out):
    slope = aclnn.aclCreateScalar(0.5, aclnn.ACL_FLOAT)
    size, executor, status = aclnn.aclnnLeakyReluGetWorkspaceSize(x, slope, out)
    assert (size, status) == (0, OK)
    assert aclnn.aclSetAclOpExecutorRepeatable(executor) == OK
    return executor


def test_an_executor_destroyed_while_it_is_bound_does_not_run():
    x = np.ones(1 << 16, np.float32)
    executor = aclnn.executor("leaky_relu", x)
    with pytest.raises(aclnn.AclnnError, match="destroyed"):
        executor.run(self=Exporter(x.copy(), executor.destroy))
    executor = aclnn.executor("leaky_relu", x)
    with pytest.raises(aclnn.AclnnError, match=r"self is float32\[9\]"):
        executor.run(self=Exporter(np.ones(9, np.float32), executor.destroy))


def test_a_tensor_that_is_described_anew_is_so_before_its_memory_dies():
    x, guard, statuses = np.ones(3000, np.float32), np.zeros(4096, np.float32), []
    old = np.zeros(3000, np.float32)
    out = tensor(old)
    executor = leaky(tensor(x), out)
    weakref.finalize(old, lambda: statuses.append(aclnn.aclnnLeakyRelu(None, 0, executor, None)))
    del old
    described = ((1,), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (1,), guard[:1])
    assert aclnn.aclInitTensor(out, *described) == OK
    assert statuses == [INVALID]
    assert not guard.any()


def test_a_tensor_that_is_attached_anew_is_so_before_its_memory_dies():
    x, target, seen = np.ones(64, np.float32), np.zeros(64, np.float32), []
    old = np.zeros(64, np.float32)
    out = tensor(old)
    weakref.finalize(old, lambda: seen.append(aclnn.aclGetRawTensorAddr(out)[0]))
    del old
    assert aclnn.aclSetRawTensorAddr(out, target) == OK
    assert seen == [target.ctypes.data]
    executor = leaky(tensor(x), out)
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK
    assert (target == 1).all()


def test_a_binding_made_while_another_is_looked_at_is_kept():
    x, out, other = (np.full(4, value, np.float32) for value in (-2, 0, 0))
    source, target = tensor(x), tensor(out)
    executor = leaky(source, target)

    def bind_output():
        assert aclnn.aclSetOutputTensorAddr(executor, 0, target, other) == OK

    again = Exporter(np.full(4, -8, np.float32), bind_output)
    assert aclnn.aclSetInputTensorAddr(executor, 0, source, again) == OK
    assert aclnn.aclnnLeakyRelu(None, 0, executor, None) == OK
    assert (other == -4).all()
    assert not out.any()


BINDERS = [
    (aclnn.aclSetInputTensorAddr, 0),
    (aclnn.aclSetOutputTensorAddr, 0),
    (aclnn.aclSetTensorAddr, 0),
]


@pytest.mark.parametrize(("bind", "index"), BINDERS)
def test_an_executor_destroyed_while_an_address_is_read(bind, index):
    x, destroyed = tensor(np.ones(4, np.float32)), []
    slope = aclnn.aclCreateScalar(0.5, aclnn.ACL_FLOAT)
    # In place, so that the address is read for two operands.
    _, executor, status = aclnn.aclnnInplaceLeakyReluGetWorkspaceSize(x, slope)
    assert status == OK

    def destroy():
        destroyed.append(aclnn.aclDestroyAclOpExecutor(executor))

    addr = Exporter(np.ones(4, np.float32), destroy)
    assert bind(executor, index, x, addr) == INNER_NULLPTR
    assert "executor is destroyed" in aclnn.aclGetRecentErrMsg()
    assert destroyed[0] == OK


def test_an_executor_destroyed_while_an_address_of_a_list_is_read():
    tensors = [tensor(np.ones(4, np.float32)), tensor(np.ones(4, np.float32))]
    listed, out = aclnn.aclCreateTensorList(tensors), tensor(np.ones(8, np.float32))
    _, executor, status = aclnn.aclnnCatGetWorkspaceSize(listed, 0, out)
    assert status == OK
    addr = Exporter(np.ones(4, np.float32), lambda: aclnn.aclDestroyAclOpExecutor(executor))
    assert aclnn.aclSetDynamicInputTensorAddr(executor, 0, 1, listed, addr) == INNER_NULLPTR
    assert "executor is destroyed" in aclnn.aclGetRecentErrMsg()


def test_operands_of_a_list_are_looked_at_before_any_is_used():
    """An exporter that changes its neighbour's memory: what it left is read."""
    first, second = np.ones(2, np.float32), np.ones(2, np.float32)

    def change():
        first[:] = 5

    found = aclnn.cat([first, Exporter(second, change)])
    np.testing.assert_array_equal(np.from_dlpack(found), [5, 5, 1, 1])


@pytest.mark.parametrize(("bind", "index"), BINDERS)
def test_an_executor_destroyed_while_an_index_is_shown(bind, index):
    x = tensor(np.ones(4, np.float32))
    executor = leaky(x, x)

    class Index:
        def __repr__(self):
            return str(aclnn.aclDestroyAclOpExecutor(executor))

    assert bind(executor, Index(), x, None) == INVALID


@pytest.mark.parametrize(("bind", "index"), BINDERS)
def test_memory_that_runs_out_while_an_address_is_bound(bind, index, monkeypatch):
    x = tensor(np.ones(4, np.float32))
    executor, address = leaky(x, x), aclnn.aclrtMalloc(64, 0)[0]
    monkeypatch.setattr(aclnn.acl.memory, "find", out_of_memory)
    assert bind(executor, index, x, address) == INNER
    assert aclnn.aclSetRawTensorAddr(x, address) == INNER
    monkeypatch.undo()
    assert aclnn.aclrtFree(address) == OK


def out_of_memory(*_):
    raise MemoryError


def test_memory_that_runs_out_while_it_is_allocated():
    assert aclnn.aclrtMalloc(2**62, 0) == (0, 207001)
    assert f"{2**62} bytes cannot be allocated" in aclnn.aclGetRecentErrMsg()


def test_forgetting_plans_waits_for_nobody():
    code = """
import gc
import numpy as np
import aclnn
from aclnn.compiler import _plan_cache
_plan_cache.set_limit(500)
made = [0]
class Caller:
    def __del__(self):
        made[0] += 1
        aclnn.gelu(np.zeros(9000 + made[0], np.float32))
gc.disable()
for more in range(40, 600, 20):
    size = 0
    while aclnn.cache_info()["size"] < 500:
        size += 1
        aclnn.gelu(np.zeros(size, np.float32))
    gc.collect()
    caller = Caller()
    caller.me = caller
    del caller
    x = np.zeros(20000 + more, np.float32)
    gc.set_threshold(gc.get_count()[0] + more, 1000, 1000)
    gc.enable()
    aclnn.gelu(x)
    gc.disable()
gc.collect()
print(made[0])
"""
    done = fresh(code)
    assert done.stderr == ""
    assert int(done.stdout) == 28


def test_options_are_numbers_before_arrays_are_looked_at():
    x = np.ones(16, np.float32)

    class Resizing:
        def __float__(self):
            x.resize(4, refcheck=False)
            return 0.5

    assert aclnn.leaky_relu(x, Resizing()).shape == (4,)
