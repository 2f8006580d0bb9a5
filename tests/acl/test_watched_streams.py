"""`ACLNN_DEBUG=1`: calls on streams that may run at once and share memory are refused, others are not."""

import json

import pytest
from setups import fresh

PROGRAM = """
import itertools, json, sys
import numpy as np
import aclnn


def call(name, x, out, workspace=None):
    \"\"\"Phase one, whose plan needs a workspace where one is given.\"\"\"
    get, run = getattr(aclnn, name + "GetWorkspaceSize"), getattr(aclnn, name)
    more = (1,) if name == "aclnnSoftmax" else ()
    size, executor, status = get(aclnn.tensor(x), *more, aclnn.tensor(out))
    assert status == 0, aclnn.aclGetRecentErrMsg()
    return lambda stream: run(workspace if size else None, size, executor, stream)


def arrays(count=2, shape=(64, 64)):
    return [np.ones(shape, np.float32) for _ in range(count)]


first, second = (aclnn.aclrtCreateStream()[0] for _ in range(2))
event, _ = aclnn.aclrtCreateEvent()


def outcome(status):
    return "ok" if status == 0 else aclnn.aclGetRecentErrMsg()


def settle():
    assert aclnn.aclrtSynchronizeDevice() == 0

"""
CASES = """
found = {}
x, y = arrays()
z, w = arrays()
assert call("aclnnRelu", x, y)(first) == 0
found["disjoint"] = outcome(call("aclnnRelu", z, w)(second))
found["both read"] = outcome(call("aclnnRelu", x, np.ones_like(x))(second))
found["read while written"] = outcome(call("aclnnRelu", y, z)(second))
settle()
assert call("aclnnRelu", x, y)(first) == 0
aclnn.aclrtRecordEvent(event, first)
aclnn.aclrtStreamWaitEvent(second, event)
found["ordered by an event"] = outcome(call("aclnnRelu", y, z)(second))
found["written while it may be read"] = outcome(call("aclnnRelu", x, y)(first))
found["what was refused is not there"] = outcome(call("aclnnRelu", y, w)(second))
settle()
assert call("aclnnRelu", x, y)(first) == 0
aclnn.aclrtSynchronizeStream(first)
found["synchronised stream"] = outcome(call("aclnnRelu", y, z)(second))
settle()
assert call("aclnnRelu", x, y)(first) == 0
aclnn.aclrtRecordEvent(event, first)
aclnn.aclrtSynchronizeEvent(event)
found["synchronised event"] = outcome(call("aclnnRelu", y, z)(second))
settle()
assert call("aclnnRelu", x, y)(first) == 0
while aclnn.aclrtStreamQuery(first)[0] != 0:
    pass
found["asked until it was done"] = outcome(call("aclnnRelu", y, z)(second))
settle()
big = np.ones((8, 64), np.float32)
assert call("aclnnRelu", big[:, :32], y[:8, :32].copy())(first) == 0
assert call("aclnnRelu", x[:8, :32].copy(), big[:, :32])(first) == 0
found["columns side by side"] = outcome(call("aclnnRelu", x[:8, :32].copy(), big[:, 32:])(second))
found["columns that meet"] = outcome(call("aclnnRelu", x[:8, :32].copy(), big[:, 31:63])(second))
settle()
pool = np.zeros(1 << 20, np.uint8)
a, b = arrays(2, (64, 64)), arrays(2, (64, 64))
def transposed(pair, workspace):
    size, executor, status = aclnn.aclnnMatmulGetWorkspaceSize(
        aclnn.tensor(pair[0]), aclnn.tensor(pair[1]), aclnn.tensor(np.ones((64, 64), np.float32)), 0)
    assert status == 0 and size, (status, size)
    return lambda stream: aclnn.aclnnMatmul(workspace, size, executor, stream)
assert transposed(a, pool)(first) == 0
found["a workspace of two streams"] = outcome(transposed(b, pool)(second))
found["two workspaces"] = outcome(transposed(b, pool[1 << 19:])(second))
settle()
print(json.dumps(found))
"""

REFUSED = {
    "read while written": "may be at once: streams",
    "written while it may be read": "may be at once: streams",
    "columns that meet": "may be at once: streams",
    "a workspace of two streams": "share bytes",
}


@pytest.mark.parametrize("debug", ["1", "0"])
def test_only_what_may_run_at_once_is_refused(debug):
    done = fresh(PROGRAM + CASES, ACLNN_DEBUG=debug)
    assert done.returncode == 0, done.stderr
    for name, said in json.loads(done.stdout).items():
        if debug == "1" and name in REFUSED:
            assert REFUSED[name] in said, name
        else:
            assert said == "ok", name
    if debug == "1":
        assert "aclnnRelu out" in json.loads(done.stdout)["read while written"]
