"""Calls that are joined to one plan compute what they compute by themselves, bit by bit."""

from functools import partial

import numpy as np
import pytest

import aclnn
from aclnn.acl import dtypes
from aclnn.compiler.compilation import compile_recording
from aclnn.compiler.recording import Recording
from aclnn.execution._joined import join_executor
from aclnn.operators import REGISTRY
from aclnn.operators.checks import TensorSpec

APART, SAME, CROSSING = range(3)


def spec_of(array):
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return TensorSpec(dtypes.of_name(array.dtype.name), array.shape, strides)


def record(recording, name, *inputs, numbers=(), constants=(), switches=()):
    operator = REGISTRY[name]
    facts = [(0, 0, 0.5)] * len(operator.scalars)
    call, _ = recording.describe(operator, inputs, facts, switches)
    found = recording.call(operator, call, inputs, numbers or constants)
    return next(iter(found.values()))


def bound(recording, arrays, outs, overlaps=None):
    plan, replan = compile_recording(recording, overlaps), partial(compile_recording, recording)
    return join_executor(plan, replan, recording.name, [*arrays, *outs], recording.numbers)


@pytest.fixture
def x():
    return np.linspace(-3, 3, 64 * 48, dtype=np.float16).reshape(64, 48)


def test_calls_become_one_loop_with_the_bits_of_single_calls(x):
    recording = Recording("chain")
    value = recording.input("x", spec_of(x))
    hidden = record(recording, "gelu", value, switches=("none",))
    recording.output("out", record(recording, "silu", hidden))
    executor = bound(recording, [x], [np.empty_like(x)])
    assert len(executor.schedule.steps) == 1
    np.testing.assert_array_equal(executor.run(), aclnn.silu(aclnn.gelu(x)))


def test_numbers_are_constants_or_given_at_run_time(x):
    recording = Recording("slopes")
    value = recording.input("x", spec_of(x))
    place = recording.number((0.25, 0.25, 0))
    a = record(recording, "leaky_relu", value, numbers=(place,))
    b = record(recording, "leaky_relu", a, constants=((0.5, 0.5, 0),))
    recording.output("out", b)
    executor = bound(recording, [x], [np.empty_like(x)])
    expected = aclnn.leaky_relu(aclnn.leaky_relu(x, 0.25), 0.5)
    np.testing.assert_array_equal(executor.run(), expected)


def test_views_are_read_in_place_and_parts_are_replaced():
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    recording = Recording("views")
    value = recording.input("x", spec_of(x))
    right = recording.sliced(value, ((0, 1, 4), (5, -2, 3)))
    turned = recording.transposed(right, (1, 0))
    part = record(recording, "relu", recording.reshaped(turned, (4, 3)))
    recording.output("out", recording.replaced(value, ((0, 1, 4), (1, 2, 3)), part))
    expected = x.copy()
    expected[:, 1:6:2] = x[:, ::-2].T.reshape(4, 3)
    executor = bound(recording, [x], [np.empty_like(x)])
    np.testing.assert_array_equal(executor.run(), expected)


def test_an_output_takes_the_place_of_an_input(x):
    recording = Recording("in place")
    value = recording.input("x", spec_of(x))
    made = record(recording, "gelu", value, switches=("none",))
    recording.output("x_now", made, spec_of(x), replaces=value)
    recording.output("out", record(recording, "add", made, value, constants=((1.0, 1.0, 1),)))
    before, out = x.copy(), np.empty_like(x)
    bound(recording, [x], [x, out]).run()
    np.testing.assert_array_equal(x, aclnn.gelu(before))
    np.testing.assert_array_equal(out, aclnn.add(x, before))


def test_memory_that_crosses_is_planned_anew():
    memory = np.linspace(-1, 1, 65, dtype=np.float32)
    recording = Recording("chain")
    value = recording.input("x", spec_of(memory[1:]))
    recording.output("out", record(recording, "silu", record(recording, "relu", value)))
    executor = bound(recording, [memory[1:].copy()], [np.empty(64, np.float32)])
    expected = aclnn.silu(aclnn.relu(memory[1:]))
    executor.run(x=memory[1:], out=memory[:-1])
    np.testing.assert_array_equal(memory[:-1], expected)


def test_empty_results_are_left_out():
    x, empty = np.ones((2, 3), np.float32), np.ones((0, 3), np.float32)
    recording = Recording("empties")
    values = [recording.input("x", spec_of(x)), recording.input("empty", spec_of(empty))]
    nothing = record(recording, "relu", values[1])
    both = record(recording, "cat", values[0], nothing, switches=(0,))
    recording.output("none", nothing)
    recording.output("out", both)
    out = np.empty_like(x)
    bound(recording, [x, empty], [empty.copy(), out]).run()
    np.testing.assert_array_equal(out, x)


def test_nothing_at_all_runs():
    empty = np.ones((0, 3), np.float32)
    recording = Recording("empties")
    recording.output("out", record(recording, "relu", recording.input("x", spec_of(empty))))
    executor = bound(recording, [empty], [empty.copy()])
    assert executor.run().shape == (0, 3)
    assert executor.workspace_size == 0


def test_a_call_breaks_its_own_rules(x):
    recording = Recording("bad")
    value = recording.input("x", spec_of(x))
    whole = recording.cast(value, dtypes.of_name("int32"))
    with pytest.raises(aclnn.AclnnError, match="self has dtype INT32"):
        record(recording, "gelu", whole, switches=("none",))
