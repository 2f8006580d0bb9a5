"""Plans are the same on every machine, and runs borrow the scratch of threads that plans have none for."""

import numpy as np
import pytest

import aclnn

RNG = np.random.default_rng(7)


@pytest.fixture(params=[1, 2, 64])
def threads(request):
    """Threads of a process on machines of several sizes."""
    before = aclnn.get_num_threads()
    aclnn.set_num_threads(request.param)
    yield request.param
    aclnn.set_num_threads(before)


def feed_forward(x, weight, scale):
    y = aclnn.softmax(aclnn.rms_norm(x, x.shape[-1], scale), -1)
    return aclnn.silu(aclnn.matmul(y, weight) + 1) * aclnn.gelu(y) + aclnn.tanh(x)


def arguments(rows=512, width=256, dtype=np.float32):
    arrays = (rows, width), (width, width), (width,)
    return [RNG.standard_normal(shape).astype(dtype) for shape in arrays]


PLANS = {}


@pytest.mark.parametrize(
    "call",
    [
        lambda x, *_: aclnn.executor("softmax", x, 0),
        lambda x, *_: aclnn.executor("softmax", x, 1),
        lambda x, weight, *_: aclnn.executor("matmul", x, weight),
        lambda *given: aclnn.compile(feed_forward).executor(*given),
        lambda *given: aclnn.compile(feed_forward, materialize=True).executor(*given),
    ],
    ids=["columns", "rows", "product", "function", "materialized"],
)
def test_plans_do_not_depend_on_the_machine(threads, call, request):
    key = request.node.callspec.id.replace(f"{threads}-", "").replace(f"-{threads}", "")
    ex = call(*arguments())
    known = PLANS.setdefault(key, ex.plan)
    assert ex.plan == known
    assert ex.plan.threads == 1
    assert ex.schedule.max_threads == threads
    assert ex.schedule.planned_threads == 1
    assert ex.workspace_size == known.size


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_borrowed_scratch_gives_the_same_bits(threads, dtype):
    given = arguments(rows=2048, dtype=dtype)
    ex = aclnn.compile(feed_forward).executor(*given)
    room = np.full(ex.workspace_size + 64, 0xA5, np.uint8)
    found = np.array(ex.run(*given, workspace=room[: ex.workspace_size]))
    assert (room[ex.workspace_size :] == 0xA5).all()
    with aclnn.num_threads(1):
        expected = ex.run(*given)
    assert found.tobytes() == expected.tobytes()


def test_a_limit_of_threads_asks_for_their_scratch():
    given = arguments(rows=2048)
    with aclnn.num_threads(3):
        ex = aclnn.compile(feed_forward).executor(*given)
    assert (ex.plan.threads, ex.schedule.planned_threads) == (3, 3)
    assert ex.plan.size > aclnn.compile(feed_forward).executor(*given).plan.size


def test_a_function_may_ask_for_scratch_of_several_threads():
    given = arguments(rows=4096)
    plans = [aclnn.compile(feed_forward, threads=n).executor(*given).plan for n in (1, 2, 4)]
    assert [plan.threads for plan in plans] == [1, 2, 4]
    sizes = [plan.size for plan in plans]
    assert sizes == sorted(set(sizes))
    assert [plan.model_bytes for plan in plans] == [plans[0].model_bytes] * 3
    assert type(plans[2]).from_json(plans[2].to_json()) == plans[2]
    ex = aclnn.compile(feed_forward, threads=4).executor(*given)
    assert (ex.schedule.planned_threads, ex.schedule.max_threads) == (4, 4)
    whole = aclnn.compile(feed_forward).executor(*given).run(*given)
    assert ex.run(*given).tobytes() == whole.tobytes()
