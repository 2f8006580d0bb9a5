"""Whatever is called goes one way: a recording, which one function compiles."""

import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

import aclnn
from aclnn.compiler.compilation import compile_recording
from aclnn.onnx.reading import OnnxModel
from aclnn.tracing.compiled import Compiled

# Data that all stages share, and arithmetic on it.
SHARED = (
    "aclnn.acl.",
    "aclnn.graph.attrs",
    "aclnn.graph.builder",
    "aclnn.graph.callables",
    "aclnn.graph.ir",
    "aclnn.graph.names",
    "aclnn.graph.numbers",
    "aclnn.graph.rewriter",
    "aclnn.graph.strides",
    "aclnn.graph.loops.",
    "aclnn.isa",
    "aclnn.operators.",
)
X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(3, 8)


def entered(call):
    """Functions of the package that a call enters: module, name, and whether none of the module's is
    under way."""
    found = []
    active = Counter()

    def note(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if not module.startswith("aclnn."):
            return
        if event == "call":
            found.append((module, frame.f_code.co_name, not active[module]))
            active[module] += 1
        elif event == "return":
            active[module] -= 1

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def visits(functions):
    """How often a request comes to each module that it has left, with others in between."""
    stages = [module for module, _, is_new in functions if is_new and not module.startswith(SHARED)]
    return Counter(
        [one for one, before in zip(stages, [None, *stages], strict=False) if one != before]
    )


def pair(x):
    given = aclnn.tensor(x), aclnn.tensor(np.empty_like(x))
    size, executor, _ = aclnn.aclnnGeluGetWorkspaceSize(*given)
    assert aclnn.aclnnGelu(None, size, executor, None) == aclnn.ACLNN_SUCCESS


def captured(x, count=1):
    """Captures relu of an array, and of each result."""
    given = [aclnn.tensor(one) for one in (x, *[np.empty_like(x) for _ in range(count)])]
    stream, _ = aclnn.aclrtCreateStream()
    aclnn.aclmdlRICaptureBegin(stream, aclnn.ACL_MODEL_RI_CAPTURE_MODE_RELAXED)
    for operands in pairwise(given):
        size, executor, _ = aclnn.aclnnReluGetWorkspaceSize(*operands)
        aclnn.aclnnRelu(None, size, executor, stream)
    _, status = aclnn.aclmdlRICaptureEnd(stream)
    assert status == aclnn.ACL_SUCCESS


def captured_twice(x):
    captured(x, 2)


@aclnn.compile
def function(x):
    return aclnn.silu(x) * x


def from_onnx():
    """A model of one node as a compiled function."""
    text = '<ir_version: 8, opset_import: ["" : 20]> f (float[n, 8] x) => (float[n, 8] y) {y = Tanh (x)}'
    return aclnn.from_onnx(pytest.importorskip("onnx").parser.parse_model(text))


DOORS = {  # with how many recordings are compiled: phase one of what is captured in rows compiles one
    "functional form": (aclnn.gelu, 1),
    "row-wise form": (lambda x: aclnn.layer_norm(x, 8), 1),
    "list": (lambda x: aclnn.cat([x, x], 0), 1),
    "product": (lambda x: aclnn.matmul(x, x.T), 1),
    "C-shaped pair": (pair, 1),
    "executor": (lambda x: aclnn.executor("gelu", x), 1),
    "compiled function": (function, 1),
    "model": (from_onnx, 1),
    "capture": (captured, 1),
    "capture of two": (captured_twice, 2),
}


@pytest.fixture(params=DOORS)
def door(request):
    call, count = DOORS[request.param]
    if call is from_onnx:  # each model has plans of its own
        from_onnx()(X)
        return from_onnx(), count
    call(X)  # what is loaded at the first use is
    aclnn.clear_cache()
    function.clear_cache()
    return call, count


def test_every_door_leads_to_one_function(door):
    call, count = door
    names = Counter([name for _, name, _ in entered(lambda: call(X))])
    assert names[compile_recording.__name__] == count
    assert names["plan_workspace"] == names["run_passes"] == count


def test_a_request_comes_back_to_no_module_more_than_twice(door):
    call, count = door
    functions = entered(lambda: call(X))
    names = [name for _, name, _ in functions]
    # What traces or captures has parts that call each other.
    is_traced = isinstance(call, (Compiled, OnnxModel)) or call in (captured, captured_twice)
    first = names.index(compile_recording.__name__) if is_traced else 0
    found = visits(functions[first:])
    assert found["aclnn.compiler.compilation"] == count
    assert {module: n for module, n in found.items() if n > 3 * count} == {}


def test_a_known_call_compiles_nothing(door):
    call, _ = door
    call(X)
    names = {name for _, name, _ in entered(lambda: call(X))}
    assert compile_recording.__name__ not in names or call in (captured, captured_twice)
