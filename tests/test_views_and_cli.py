"""Profiles, the command line, and the dependency direction."""

import json
import subprocess
import sys
import threading

import numpy as np
import pytest

import aclnn
from aclnn import cli, describe
from aclnn.operators import REGISTRY


def run(capsys, *arguments):
    status = cli.main(arguments)
    return status, capsys.readouterr().out


def fresh(code, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_the_graph_package_loads_no_kernel_and_no_numpy():
    code = (
        "import sys, aclnn.graph\n"
        "assert not [m for m in sys.modules if m.startswith('aclnn.') and not m.startswith(('aclnn.graph', 'aclnn._version'))]\n"
        "assert 'numpy' not in sys.modules"
    )
    result = fresh(code)
    assert result.returncode == 0, result.stderr


def test_environment_variables():
    assert (
        fresh("import aclnn; print(aclnn.get_num_threads())", ACLNN_NUM_THREADS="3").stdout == "3\n"
    )
    assert fresh("import aclnn; print(aclnn.get_soc_version())",
                 ACLNN_SOC_VERSION="Ascend310P").stdout == "Ascend310P\n"  # fmt: skip
    generic = "import aclnn, numpy; aclnn.gelu(numpy.zeros(3, 'f4')); aclnn.show_config()"
    assert "name generic" in fresh(generic, ACLNN_ISA="generic").stdout
    for name in ("ACLNN_ISA", "ACLNN_SOC_VERSION", "ACLNN_NUM_THREADS", "ACLNN_PLANNER"):
        result = fresh(generic, **{name: "nonsense"})
        assert result.returncode != 0
        assert "nonsense" in result.stderr
    kept = "import aclnn, numpy as np; print(aclnn.executor('gelu', np.zeros((8, 8), 'f4').T[::2]).workspace_size)"
    assert int(fresh(kept, ACLNN_MATERIALIZE="1").stdout) > 0
    assert int(fresh(kept).stdout) == 0


def test_threadpoolctl_limits_hold():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    x = np.ones(1 << 20, np.float32)
    aclnn.gelu(x)
    with threadpoolctl.threadpool_limits(1), aclnn.profile() as seen:
        aclnn.gelu(x)
    assert {thread for _, thread, _, _ in seen.runs[0].events} == {0}


def test_small_tensors_never_wake_threads():
    with aclnn.profile() as seen:
        aclnn.gelu(np.ones(4096, np.float32))
    assert len(seen.runs[0].events) == 1


def test_a_child_after_fork_runs():
    code = (
        "import os, numpy as np, aclnn\n"
        "aclnn.set_num_threads(2); x = np.ones(1 << 20, np.float32); aclnn.gelu(x)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n    aclnn.gelu(x); os._exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7"
    )
    result = fresh(code)
    assert result.returncode == 0, result.stderr


def test_profiles_record_every_thread_in_a_block():
    x = np.ones(1000, np.float32)
    with aclnn.profile() as seen:
        aclnn.gelu(x)
        other = threading.Thread(target=lambda: aclnn.leaky_relu(x))
        other.start()
        other.join()
    aclnn.elu(x)
    assert [run.name for run in seen.runs] == ["gelu", "leaky_relu"]
    assert len({run.caller for run in seen.runs}) == 2
    (first, second) = seen.steps
    assert (first.bytes_read, first.bytes_written) == (4000, 4000)
    assert second.elements == 1000
    assert "leaky_relu" in seen.to_text()
    assert json.loads(seen.to_json())["runs"] == 2
    trace = json.loads(seen.to_chrome_trace())["traceEvents"]
    slices = [event for event in trace if event["ph"] == "X"]
    assert [event["cat"] for event in slices] == ["gelu", "leaky_relu"]
    assert len({event["tid"] for event in slices}) == 2
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in slices)


def test_a_profile_of_one_executor():
    g = np.ones((64, 64), np.float16).T
    ex = aclnn.executor("gelu_backward", g, np.ones((64, 64), np.float32), materialize=True)
    profile = ex.profile(repeat=5)
    assert len(profile) == 5
    assert [len(step.times) for step in profile.steps] == [5] * len(ex.schedule.steps)
    counters = [e for e in json.loads(profile.to_chrome_trace())["traceEvents"] if e["ph"] == "C"]
    assert max(e["args"]["bytes"] for e in counters) == ex.plan.peak_bytes


def test_the_demo_agrees_with_its_reference(capsys):
    status, out = run(capsys, "demo", "--json")
    assert status == 0
    outcomes = json.loads(out)
    assert len(outcomes) == 6
    assert all(outcome["max_ulp"] <= 1 for outcome in outcomes)


def test_the_demo_notices_a_wrong_result(capsys, monkeypatch):
    from aclnn.cli import demo

    monkeypatch.setattr(demo, "max_ulp", lambda actual, exact: 2.0)
    assert run(capsys, "demo", "--json")[0] == 1


@pytest.mark.parametrize("name", REGISTRY)
def test_ops(capsys, name):
    status, out = run(capsys, "ops", name, "--json")
    assert status == 0
    (facts,) = json.loads(out)
    assert facts["name"] == name
    assert "BF16" in facts["dtypes"]["Ascend910B"]
    assert facts["dtypes"]["Ascend310B"] == []
    assert run(capsys, "ops", name)[1].startswith(name)


GELU = [
    "gelu_backward",
    "--grad-output",
    "float16[4,1,8]",
    "--self",
    "float32[1,6,8:strides=48,1,6]",
]


def test_inspect(capsys):
    from aclnn.cli.inspect import VIEWS

    status, out = run(capsys, "inspect", *GELU)
    assert status == 0
    assert "folded, stride 0" in out
    for view in VIEWS:
        status, out = run(capsys, "inspect", *GELU, "--materialize", "--view", view)
        assert status == 0
        assert out.strip()
    (data,) = json.loads(run(capsys, "inspect", *GELU, "--json")[1])
    assert data["operator"] == "gelu_backward"


def test_calls_from_a_file(capsys, tmp_path):
    calls = tmp_path / "calls.json"
    calls.write_text(json.dumps([
        {"operator": "leaky_relu", "self": "bfloat16[3,4]", "negative_slope": 0.5},
        {"operator": "elu", "self": "float64[5]", "out": "float32[5]"},
    ]))  # fmt: skip
    status, out = run(capsys, "inspect", "--calls", str(calls), "--json")
    assert status == 0
    assert [one["operator"] for one in json.loads(out)] == ["leaky_relu", "elu"]


def test_plan(capsys, tmp_path):
    status, out = run(capsys, "plan", *GELU, "--materialize", "--svg", str(tmp_path / "plan.svg"))
    assert status == 0
    assert "lower bound" in out
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    assert run(capsys, "plan", *GELU, "--materialize", "--budget", "10")[0] == 1
    assert run(capsys, "plan", *GELU, "--materialize", "--budget", "1000000")[0] == 0
    csv = tmp_path / "lives.csv"
    csv.write_text("id,lower,upper,size\na,0,2,100\nb,1,3,50\nc,2,4,100\n")
    status, out = run(capsys, "plan", "--lifetimes", str(csv), "--json")
    assert status == 0
    assert len(json.loads(out)["buffers"]) == 3


@pytest.mark.parametrize(
    "arguments",
    [["inspect", "nonsense", "--self", "float32[3]"], ["inspect"], ["inspect", "gelu"],
     ["inspect", "gelu", "--self", "float33[3]"], ["plan", "--lifetimes", "/nowhere"],
     ["inspect", "gelu_backward", "--self", "float32[3]", "--grad-output", "float32[4]"],
     ["inspect", "--calls", "/nowhere"], ["ops", "nonsense"]],
)  # fmt: skip
def test_failed_runs_exit_with_1(capsys, arguments):
    assert cli.main(arguments) == 1
    assert capsys.readouterr().err.startswith(f"aclnn {arguments[0]}: ")


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["demo", "--seed", "x"], ["inspect", "--view", "x"]]
)
def test_bad_usage_exits_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_everywhere(capsys, command):
    with pytest.raises(SystemExit) as caught:
        cli.main([command, "--help"])
    assert caught.value.code == 0
    assert "usage: aclnn" in capsys.readouterr().out


def test_bench_runs(capsys, tmp_path):
    status, out = run(capsys, "bench", "--sizes", "64", "--rounds", "1", "--dtypes", "float16",
                      "--json", str(tmp_path / "rows.json"))  # fmt: skip
    assert status == 0
    assert "gelu_backward" in out
    assert len(json.loads((tmp_path / "rows.json").read_text())["rows"]) == 5


@pytest.mark.parametrize(
    "text", ["float32[2,3]", "bfloat16[4,5:strides=1,4]", "float16[]", "int32[0]"]
)
def test_descriptions_read_back(text):
    described = describe.parse(text)
    assert str(described) == text
    array = described.array(-1, 1)
    assert array.shape == described.shape
    assert array.strides == tuple(s * array.itemsize for s in described.strides)


@pytest.mark.parametrize(
    "text", ["float32", "float32[", "float32[a]", "float32[-1]", "float32[2:strides=1,2]",
             "float32[2:gap=1]", "what[2]", "", "float32[2:strides=x]"]
)  # fmt: skip
def test_descriptions_that_make_no_sense(text):
    with pytest.raises(aclnn.AclnnError, match="operand"):
        describe.parse(text)


def small_executor(**options):
    g = np.ones((8, 1, 16), np.float16)
    return aclnn.executor("gelu_backward", g, np.ones((16, 4), np.float32).T, **options)


def test_onnx_models_are_valid():
    onnx = pytest.importorskip("onnx")
    for ex in (small_executor(), small_executor(materialize=True)):
        for graph in (ex.graph, ex.graph_as_built):
            model = onnx.load_from_string(graph.to_onnx(ex.plan))
            onnx.checker.check_model(model)
            assert [n.op_type for n in model.graph.node] == [n.kind for n in graph.nodes]
    facts = {a.name for node in model.graph.node for a in node.attribute}
    assert {"kernel", "reads", "writes", "strides", "nbytes"} <= facts


def test_plans_know_their_offsets_in_onnx():
    onnx = pytest.importorskip("onnx")
    ex = small_executor(materialize=True)
    model = onnx.load_from_string(ex.graph.to_onnx(ex.plan))
    offsets = {
        node.output[0]: attribute.i
        for node in model.graph.node for attribute in node.attribute
        if attribute.name == "plan_offset"
    }  # fmt: skip
    assert offsets == {b.name: b.offset for b in ex.plan.buffers}


def test_reports_are_one_file():
    pytest.importorskip("jinja2")
    for ex in (small_executor(), small_executor(materialize=True)):
        page = ex.to_html()
        assert page.startswith("<!doctype html>")
        assert "<script" not in page
        assert "src=" not in page
        assert "http://" not in page.replace("http://www.w3.org/", "")
        for name in [n.name for n in ex.graph_as_built.nodes] + [b.name for b in ex.plan.buffers]:
            assert name in page


def test_budgets():
    ex = small_executor(materialize=True)
    assert ex.plan.check(ex.workspace_size).size == ex.workspace_size
    with pytest.raises(aclnn.AclnnError, match=str(ex.workspace_size - 1)):
        ex.plan.check(ex.workspace_size - 1)


def test_verbose_lines():
    code = (
        "import numpy as np, aclnn\n"
        "x = np.zeros((2, 3), np.float32)\n"
        "t = aclnn.aclCreateTensor((2, 3), 0, None, 0, 2, (2, 3), x)\n"
        "size, ex, _ = aclnn.aclnnGeluGetWorkspaceSize(t, t)\n"
        "aclnn.aclnnGelu(None, size, ex, None)\n"
        "aclnn.elu(x)\n"
    )
    assert fresh(code).stdout == ""
    lines = fresh(code, ACLNN_VERBOSE="1").stdout.splitlines()
    heads = [line.split(",")[:3] for line in lines]
    assert heads == [["aclnn_verbose", "plan", "aclnnGelu"], ["aclnn_verbose", "run", "gelu"],
                     ["aclnn_verbose", "run", "elu"]]  # fmt: skip
    assert "self:float32[2,3] out:float32[2,3]" in lines[0]
    assert "workspace 0 bytes" in fresh(code, ACLNN_VERBOSE="2").stdout
    assert "ACLNN_VERBOSE" in fresh(code, ACLNN_VERBOSE="loud").stderr


def test_messages_of_a_failed_phase_one_explain_it():
    x = np.zeros((2, 3), np.float32)
    tensor = aclnn.aclCreateTensor((2, 3), 0, None, 0, 2, (2, 3), x)
    other = aclnn.aclCreateTensor((3, 2), 0, None, 0, 2, (3, 2), x)
    assert aclnn.aclnnGeluBackwardGetWorkspaceSize(tensor, tensor, other)[2] == 161002
    text = aclnn.aclGetRecentErrMsg()
    assert text.splitlines()[0] == (
        "aclnnGeluBackwardGetWorkspaceSize: gradInput has shape (3, 2), but must have the broadcast shape (2, 3)"
    )
    assert "5. `out` has the broadcast shape of the inputs   <-- broken" in text
    assert text.count("<-- broken") == 1
    call = text[text.index("in Python:") + 10 : text.index("in C++:")].strip()
    assert eval(call)[2] == 161002
    assert (
        "aclnnGeluBackwardGetWorkspaceSize(gradOutput, self, gradInput, &size, &executor)" in text
    )
