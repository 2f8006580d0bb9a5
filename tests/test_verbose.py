"""Lines about every call, for who asks for them."""

import os
import re

import pytest
from setups import fresh

VERBOSE_CALLS = """
import numpy as np, aclnn
x = np.zeros((2, 3), np.float32)
t = aclnn.aclCreateTensor((2, 3), 0, None, 0, 2, (2, 3), x)
empty = aclnn.aclCreateTensor((0, 3), 0, None, 0, 2, (0, 3), x)
size, ex, _ = aclnn.aclnnGeluGetWorkspaceSize(t, t)
aclnn.aclnnGelu(None, size, ex, None)
aclnn.aclnnGelu(None, size, ex, None)
aclnn.aclnnGeluGetWorkspaceSize(t, None)
size, ex, _ = aclnn.aclnnGeluGetWorkspaceSize(empty, empty)
aclnn.aclnnGelu(None, size, ex, None)
aclnn.elu(x)
"""


def verbose_fields(line):
    """The fields of a line: what lies between commas outside brackets."""
    return re.split(r",(?![^\[]*\])", line)


def test_verbose_lines():
    assert fresh(VERBOSE_CALLS).stdout == ""
    lines = fresh(VERBOSE_CALLS, ACLNN_VERBOSE="1").stdout.splitlines()
    fields = [verbose_fields(line) for line in lines]
    both = "self:float32[2,3] out:float32[2,3]"
    assert [row[:6] for row in fields] == [
        ["aclnn_verbose", "plan", "aclnnGelu", both, "workspace:0", "-"],
        ["aclnn_verbose", "run", "gelu", both, "workspace:0", "steps:1 threads:1"],
        ["aclnn_verbose", "run:561000", "aclnnGelu", "-", "-", "-"],
        ["aclnn_verbose", "plan:161001", "aclnnGelu", "-", "-", "-"],
        ["aclnn_verbose", "plan", "aclnnGelu", both.replace("2", "0").replace("float30", "float32"),
         "workspace:0", "-"],
        ["aclnn_verbose", "run", "aclnnGelu", "-", "-", "-"],
        ["aclnn_verbose", "run", "elu", both, "workspace:0", "steps:1 threads:1"],
    ]  # fmt: skip
    assert all(len(row) == 7 and float(row[6]) >= 0 for row in fields)
    assert all(float(fields[place][6]) > 0 for place in (0, 1, 3, 6))


PHASES = "plan, run = home.aclnnGeluGetWorkspaceSize, home.aclnnGelu"
FIRST_USES = {
    "function": "import aclnn; aclnn.gelu(x)",
    "executor": "import aclnn; aclnn.executor('gelu', x).run()",
    "phases": f"import aclnn as home; {PHASES}",
    "phases by their module": f"from aclnn.api import two_phase as home; {PHASES}",
}


@pytest.mark.parametrize("layer", FIRST_USES)
def test_whichever_layer_is_used_first_prints_its_lines(layer):
    code = f"""
import numpy as np
x = np.zeros(3, np.float32)
{FIRST_USES[layer]}
if "plan" in globals():
    from aclnn.acl import _tensor
    t = _tensor.aclCreateTensor((3,), 0, None, 0, 2, (3,), x)
    run(None, *plan(t, t)[:2], None)
"""
    lines = fresh(code, ACLNN_VERBOSE="1").stdout.splitlines()
    phases = ["plan", "run"] if "phases" in layer else ["run"]
    assert [line.split(",")[1] for line in lines] == phases


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_lines_that_nobody_can_read_do_no_harm():
    code = (
        VERBOSE_CALLS
        + """
import sys
stream, _ = aclnn.aclrtCreateStream()
size, ex, status = aclnn.aclnnGeluGetWorkspaceSize(t, t)
print(status, aclnn.aclnnGelu(None, size, ex, stream), aclnn.aclrtSynchronizeStream(stream),
      aclnn.aclnnGeluGetWorkspaceSize(t, None)[2], file=sys.stderr)
"""
    )
    quiet = "import os, sys; os.dup2(os.open('/dev/full', os.O_WRONLY), 1)\n"
    done = fresh(quiet + code, ACLNN_VERBOSE="2")
    assert done.stderr.splitlines()[0] == "0 0 0 161001"


def test_verbose_two_adds_the_plan_of_every_phase_one():
    code = VERBOSE_CALLS.replace("x = np.zeros((2, 3), np.float32)", "x = np.zeros(6, np.float32)")
    code = code.replace("None, 0, 2, (2, 3), x)", "(1, 2), 0, 2, (6,), x)")
    one = fresh(code, ACLNN_VERBOSE="1", ACLNN_MATERIALIZE="1").stdout.splitlines()
    two = fresh(code, ACLNN_VERBOSE="2", ACLNN_MATERIALIZE="1").stdout.splitlines()
    marked = [line for line in two if line.startswith("aclnn_verbose,")]
    assert [line.split(",")[1:3] for line in marked] == [line.split(",")[1:3] for line in one]
    assert two[0].startswith("aclnn_verbose,plan,")
    assert two[1].startswith("buffer ")
    assert any(line.startswith("lower bound ") for line in two[2:8])
    assert "ACLNN_VERBOSE" in fresh(code, ACLNN_VERBOSE="loud").stderr
