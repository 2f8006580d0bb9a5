"""Lines about every call, for who asks for them."""

import logging
import os
import re

import numpy as np
import pytest
from setups import fresh, tensor

import aclnn

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
    assert fresh(VERBOSE_CALLS).stderr == ""
    done = fresh(VERBOSE_CALLS, ACLNN_VERBOSE="1")
    assert done.stdout == ""
    lines = done.stderr.splitlines()
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


@pytest.mark.parametrize("environment", ["0", "2"])
def test_a_choice_before_the_first_call_holds(environment):
    """The first call reads the environment."""
    code = "import numpy as np, aclnn; aclnn.set_verbose(1); aclnn.gelu(np.zeros(3, np.float32))"
    lines = fresh(code, ACLNN_VERBOSE=environment).stderr.splitlines()
    assert [line.split(",")[:3] for line in lines] == [["aclnn_verbose", "run", "gelu"]]
    none = fresh(code.replace("verbose(1)", "verbose(0)"), ACLNN_VERBOSE=environment)
    assert none.stderr == ""


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
    lines = fresh(code, ACLNN_VERBOSE="1").stderr.splitlines()
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
      aclnn.aclnnGeluGetWorkspaceSize(t, None)[2], flush=True)
"""
    )
    full = "import os, sys; os.dup2(os.open('/dev/full', os.O_WRONLY), 2)\n"
    done = fresh(full + code, ACLNN_VERBOSE="2")
    assert done.stdout.splitlines() == ["0 0 0 161001"]
    gone = "import sys; sys.stderr = None\n"
    assert fresh(gone + code, ACLNN_VERBOSE="2").stdout.splitlines() == ["0 0 0 161001"]


def test_verbose_two_adds_the_plan_of_every_phase_one():
    code = VERBOSE_CALLS.replace("x = np.zeros((2, 3), np.float32)", "x = np.zeros(6, np.float32)")
    code = code.replace("None, 0, 2, (2, 3), x)", "(1, 2), 0, 2, (6,), x)")
    one = fresh(code, ACLNN_VERBOSE="1", ACLNN_MATERIALIZE="1").stderr.splitlines()
    two = fresh(code, ACLNN_VERBOSE="2", ACLNN_MATERIALIZE="1").stderr.splitlines()
    marked = [line for line in two if line.startswith("aclnn_verbose,")]
    assert [line.split(",")[1:3] for line in marked] == [line.split(",")[1:3] for line in one]
    assert two[0].startswith("aclnn_verbose,plan,")
    assert two[1].startswith("buffer ")
    assert any(line.startswith("lower bound ") for line in two[2:8])
    assert "ACLNN_VERBOSE" in fresh(code, ACLNN_VERBOSE="loud").stderr


def test_lines_go_to_the_logger_where_the_environment_says_so():
    listening = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="%(name)s %(levelname)s %(message)s")
"""
    code = listening + VERBOSE_CALLS
    done = fresh(code, ACLNN_VERBOSE="2", ACLNN_VERBOSE_TO="logger")
    assert done.stderr == ""
    seen = [line for line in done.stdout.splitlines() if line.startswith("aclnn ")]
    kinds = [line.split(" ", 2)[1] for line in seen]
    assert kinds.count("DEBUG") == 2  # the plans of two phases one
    assert kinds.count("WARNING") == 2
    assert kinds.count("INFO") == 5
    failed = [line for line in seen if " WARNING " in line]
    assert all(re.match("aclnn WARNING aclnn_verbose,(run|plan):[0-9]+,", line) for line in failed)


class Kept(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


@pytest.fixture
def quiet_again():
    yield
    aclnn.set_verbose(0)


@pytest.mark.usefixtures("quiet_again")
def test_a_program_chooses_its_logger_and_its_level(capfd):
    x = np.zeros(3, np.float32)
    t = tensor(x)
    kept, logger = Kept(), logging.getLogger("test.aclnn")
    logger.addHandler(kept)
    logger.setLevel(logging.DEBUG)
    aclnn.set_verbose(2, logger="test.aclnn")
    aclnn.gelu(x)
    aclnn.aclnnGeluGetWorkspaceSize(t, t)
    marks = [line.split(",")[:2] for line in kept.lines]
    assert marks[:2] == [["aclnn_verbose", "run"], ["aclnn_verbose", "plan"]]
    assert kept.lines[2] == "workspace 0 bytes: nothing needs space"
    aclnn.set_verbose(1)
    aclnn.gelu(x)
    assert len(kept.lines) == 3
    aclnn.set_verbose(0, logger=logger)
    aclnn.gelu(x)
    assert len(kept.lines) == 3
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("aclnn_verbose,run,gelu") == 1


@pytest.mark.usefixtures("quiet_again")
def test_a_handler_that_fails_makes_no_call_fail():
    class Broken(logging.Logger):
        def log(self, *_args, **_named):
            raise RuntimeError("no room")

    aclnn.set_verbose(1, logger=Broken("broken"))
    assert aclnn.gelu(np.zeros(3, np.float32)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("level", [3, -1, "1", None, True])
def test_levels_that_do_not_exist_are_refused(level):
    with pytest.raises(aclnn.AclnnError, match=r"level is .*, must be 0, 1 or 2"):
        aclnn.set_verbose(level)
    with pytest.raises(TypeError, match=r"logger is 3, must be a logging.Logger or its name"):
        aclnn.set_verbose(1, logger=3)
