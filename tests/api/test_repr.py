"""What objects are at a prompt: a line or a few, which `print` and views tell more of."""

import re

import numpy as np
import pytest

import aclnn
from aclnn import graph


def objects():
    """One of every kind of object that the public interface gives."""
    x, weight = np.ones((128, 64), np.float32), np.ones(64, np.float32)

    @aclnn.compile
    def block(x, weight):
        return aclnn.softmax(aclnn.silu(aclnn.rms_norm(x, 64, weight)) + x, dim=-1)

    ex = block.executor(x, weight)
    profile = ex.profile(repeat=2, warmup=0)
    naive = graph.plan_lifetimes([graph.Lifetime("a", 0, 2, 64)], "naive")
    tensor = aclnn.tensor(x)
    stream, _ = aclnn.aclrtCreateStream()
    event, _ = aclnn.aclrtCreateEvent()
    found = {
        "executor": ex,
        "compiled function": block,
        "plan": ex.plan,
        "buffer": ex.plan.buffers[0],
        "naive plan": naive,
        "lifetime": graph.Lifetime("a", 0, 2, 64),
        "comparison": naive.diff(ex.plan),
        "graph": ex.graph,
        "node": ex.graph.nodes[0],
        "value": ex.graph.values[0],
        "builder": graph.GraphBuilder(),
        "passes": ex.passes,
        "pass": ex.passes[0],
        "schedule": ex.schedule,
        "step": ex.schedule.steps[0],
        "operand": ex.schedule.steps[0].operands[0],
        "op": ex.schedule.steps[0].ops[0],
        "profile": profile,
        "times of a step": profile.steps[0],
        "times of an executor": profile.executors[0],
        "specs": ex.inputs,
        "operator": aclnn.executor("gelu", x).operator,
        "tensor": tensor,
        "scalar": aclnn.aclCreateScalar(1.5, aclnn.ACL_FLOAT),
        "list": aclnn.aclCreateTensorList([tensor]),
        "numbers": aclnn.aclCreateIntArray([1, 2]),
        "stream": stream,
        "event": event,
        "pool": aclnn.WorkspacePool(64),
        "limit": aclnn.num_threads(1),
    }
    aclnn.aclrtDestroyStream(stream)
    aclnn.aclrtDestroyEvent(event)
    return found


OBJECTS = objects()


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_are_a_few_lines_at_a_prompt(name):
    text = repr(OBJECTS[name])
    assert len(text) <= 240
    assert text.count("\n") <= 3
    assert not re.search(r"0x[0-9a-f]{6}", text), "an address tells nothing"


@pytest.mark.parametrize("name", [
    "plan", "comparison", "graph", "passes", "schedule", "profile",
])  # fmt: skip
def test_prints_tell_all(name):
    one = OBJECTS[name]
    assert str(one) == one.to_text() != repr(one)
    assert str(one).count("\n") > repr(one).count("\n")


def test_counts_are_those_of_the_object():
    ex = OBJECTS["executor"]
    assert repr(ex.graph) == "<Graph: 4 nodes, 2 inputs, 1 output>"
    assert repr(ex.plan) == (
        f"<WorkspacePlan: {ex.plan.size} bytes, 1 buffer, strategy default, {ex.plan.proof}>"
    )
    tiles = sum(step.n_tiles for step in ex.schedule.steps)
    words = f"{tiles} tile{'' if tiles == 1 else 's'}"
    assert repr(ex.schedule).startswith(f"<Schedule: 1 step, {words}, ")
    assert repr(ex.passes[0]).startswith(f"<PassStep {ex.passes[0].name}: ")
    assert repr(ex.graph.values[0]) == "<Value 0 x: float32[128,64], input>"
    assert ", 1 node, workspace 0 bytes, ready>" in repr(
        aclnn.executor("gelu", np.ones(3, np.float32))
    ).replace(":", ",")
    assert repr(graph.Lifetime("a", 0, 2, 64)) == (
        "Lifetime(name='a', lower=0, upper=2, nbytes=64)"
    )


def test_what_looks_like_a_call_makes_the_same():
    one = OBJECTS["lifetime"]
    assert eval(repr(one), vars(graph)) == one


def test_destroyed_streams_and_events_say_so():
    assert re.fullmatch(r"<aclrtStream \d+, destroyed>", repr(OBJECTS["stream"]))
    assert re.fullmatch(r"<aclrtEvent \d+, destroyed>", repr(OBJECTS["event"]))
