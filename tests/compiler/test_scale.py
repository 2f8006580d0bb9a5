"""Programs of many calls: tracing, passes, planning, scheduling and packing take a time that grows with their number."""

import sys
from functools import partial

import numpy as np
import pytest
from calls import OK, run_on, scalar, tensor

import aclnn

COUNTS = (200, 400)
X = np.ones((8, 8), np.float32)
WIDER = np.ones((8, 16), np.float32)


def chain(x, n):
    for _ in range(n // 2):
        x = aclnn.relu(aclnn.neg(x))
    return x


def short_rows(x, n):
    """Calls on blocks, of which one program has few."""
    for _ in range(n // 2):
        x = aclnn.erfinv(aclnn.cast(aclnn.cast(x, aclnn.ACL_FLOAT16), aclnn.ACL_FLOAT))
    return x


def numbers(x, n):
    for k in range(n):
        x = x * (k + 0.5)
    return x


def far_back(x, n):
    """What is read long after it was made."""
    made = [x]
    for k in range(n):
        made.append(aclnn.add(made[-1], made[max(0, len(made) - 1 - k % 40)]))
    return made[-1]


def wide(x, n):
    return [x * (k + 0.5) for k in range(min(n, 240))]


def tree(x, n):
    level = [x * (k + 0.5) for k in range(n // 2)]
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [aclnn.add(one, other) for one, other in pairs] + level[len(level) // 2 * 2 :]
    return level[0]


def products(x, n):
    first = x
    for _ in range(n // 3):
        x = aclnn.add(aclnn.gelu(aclnn.matmul(x, first)), x)
    return x


def rows(x, n):
    for _ in range(n // 2):
        x = aclnn.softmax(aclnn.add(x, x), -1)
    return x


def residual(x, n):
    for _ in range(n // 5):
        hidden = aclnn.gelu(aclnn.matmul(aclnn.layer_norm(x, (8,)), WIDER))
        x = aclnn.add(aclnn.matmul(hidden, WIDER.T), x)
    return x


def views(x, n):
    for _ in range(n // 2):
        x = aclnn.add(x.T, x)
    return x


def writes(x, n):
    made = aclnn.neg(x)
    for k in range(n // 2):
        made[k % 8] = aclnn.relu(made[(k + 1) % 8])
    return made


def lists(x, n):
    for _ in range(n // 3):
        x = aclnn.cat([aclnn.neg(x[:4]), aclnn.relu(x[4:])], 0)
    return x


def many_outputs(x, n):
    found = []
    for k in range(n):
        x = aclnn.neg(x)
        if k % max(1, n // 200) == 0:
            found.append(x)
    return found


FUNCTIONS = (
    chain, short_rows, numbers, far_back, wide, tree, products, rows, residual, views, writes, lists,
    many_outputs,
)  # fmt: skip


def work(call):
    """How much a call does: lines of Python, turns of comprehensions among them."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("function", FUNCTIONS)
def test_twice_the_calls_are_twice_the_work(function):
    def compiled(n):
        aclnn.compile(partial(function, n=n)).executor(X)

    compiled(40)  # what the first one of a kind loads
    few, many = (work(partial(compiled, count)) for count in COUNTS)
    assert many < 2.3 * few


# --- Captures -------------------------------------------------------------------------------------


def back_and_forth(stream, n):
    x, y = np.ones((2, 4, 4), np.float32)
    for _ in range(n // 2):
        run_on(stream, "aclnnRelu", tensor(x), tensor(y))
        run_on(stream, "aclnnSoftmax", tensor(y), -1, tensor(x))


def in_place(stream, n):
    x = np.ones((4, 4), np.float32)
    for _ in range(n):
        run_on(stream, "aclnnInplaceRelu", tensor(x))


def pieces(stream, n):
    x = np.ones((8, 4), np.float32)
    for k in range(n):
        run_on(stream, "aclnnAdds", tensor(x[k % 8]), scalar(1.0), scalar(1.0), tensor(x[k % 7]))


def apart(stream, n):
    x, out = np.ones((4,), np.float32), np.ones((n, 4), np.float32)
    for k in range(n):
        run_on(stream, "aclnnNeg", tensor(x), tensor(out[k]))


def copies(stream, n, source):
    memory, _ = aclnn.aclrtMalloc(64 * (n + 1), 0)
    for k in range(n):
        to, of = memory + 64 * (k + 1), memory + 64 * source(k)
        assert aclnn.aclrtMemcpyAsync(to, 64, of, 64, DEVICE_TO_DEVICE, stream) == OK


def copies_of_one(stream, n):
    copies(stream, n, lambda k: 0)


def copies_in_turn(stream, n):
    copies(stream, n, lambda k: k)


DEVICE_TO_DEVICE = aclnn.ACL_MEMCPY_DEVICE_TO_DEVICE
CAPTURES = (back_and_forth, in_place, pieces, apart, copies_of_one, copies_in_turn)


@pytest.mark.parametrize("record", CAPTURES)
def test_twice_the_calls_are_twice_the_work_of_a_capture(record):
    stream, _ = aclnn.aclrtCreateStream()

    def captured(n):
        assert aclnn.aclmdlRICaptureBegin(stream, aclnn.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL) == OK
        record(stream, n)
        assert aclnn.aclmdlRICaptureEnd(stream)[1] == OK

    captured(40)
    few, many = (work(partial(captured, count)) for count in COUNTS)
    assert many < 2.3 * few
    aclnn.aclrtDestroyStream(stream)


# --- Models ---------------------------------------------------------------------------------------


def model_of(n):
    """A residual stack in ONNX, all of whose blocks have the same weights."""
    onnx = pytest.importorskip("onnx")
    blocks = "".join(
        f"""
        n{k} = LayerNormalization <axis = -1> (x{k}, scale, shift)
        h{k} = MatMul (n{k}, up)
        b{k} = Add (h{k}, bias)
        g{k} = Gelu (b{k})
        d{k} = MatMul (g{k}, down)
        x{k + 1} = Add (d{k}, x{k})
        """
        for k in range(n // 6)
    )
    weights = {"scale": (8,), "shift": (8,), "up": (8, 16), "bias": (16,), "down": (16, 8)}
    text = f"""<ir_version: 10, opset_import: ["" : 20]>
        stack (float[8, 8] x0) => (float[8, 8] x{n // 6}) {{ {blocks} }}"""
    model = onnx.parser.parse_model(text)
    for name, shape in weights.items():
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(np.ones(shape, np.float32), name)
        )
    return model


def test_twice_the_nodes_of_a_model_are_twice_the_work():
    def planned(n):
        aclnn.from_onnx(model_of(n)).executor(X)

    planned(12)
    few, many = (work(partial(planned, count)) for count in COUNTS)
    assert many < 2.3 * few
