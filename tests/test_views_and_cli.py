"""Profiles, the command line, and the dependency direction."""

import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree

import jsonschema
import numpy as np
import pytest
from aclnn.graph import PassResult, WorkspacePlan, graph_lifetimes
from aclnn.graph.views.json import PLAN_SCHEMA, SCHEDULE_SCHEMA
from referencing import Registry, Resource

import aclnn
from aclnn import cli, describe
from aclnn.operators import ENTRIES, REGISTRY
from aclnn.profiling import PROFILE_SCHEMA


def run(capsys, *arguments):
    status = cli.main(arguments)
    return status, capsys.readouterr().out


def fresh(code, **environment):
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
    twice = "import aclnn, numpy; x = numpy.zeros(3, 'f4'); aclnn.gelu(x); aclnn.gelu(x);"
    for limit, hits in ((0, 0), (7, 1)):
        found = fresh(f"{twice} print(aclnn.cache_info())", ACLNN_PLAN_CACHE=str(limit)).stdout
        counts = {"hits": hits, "misses": 2 - hits, "size": min(limit, 1), "limit": limit}
        assert found == f"{counts}\n"
    kept = "import aclnn, numpy as np; print(aclnn.executor('gelu', np.zeros((8, 8), 'f4').T[::2]).workspace_size)"
    assert int(fresh(kept, ACLNN_MATERIALIZE="1").stdout) > 0
    assert int(fresh(kept).stdout) == 0


FIRST_CALLS = {
    "functional": "aclnn.leaky_relu(x, out=out); ex = aclnn.executor('leaky_relu', x, out=out)",
    "executor": "ex = aclnn.executor('leaky_relu', x, out=out)",
    "c_shaped": "t = [aclnn.aclCreateTensor((n,), dtype, None, 0, 2, (n,), m) for m in (x, out)];"
    "ex = aclnn.aclnnLeakyReluGetWorkspaceSize(t[0], aclnn.aclCreateScalar(0.5, 0), t[1])[1]",
}


@pytest.mark.parametrize("form", FIRST_CALLS)
def test_the_first_plan_of_a_process_follows_the_environment(form):
    code = (
        "import aclnn, numpy as np; n, dtype = 1 << 20, 0; x = np.ones(n, 'f4'); out = x.copy();"
        f"{FIRST_CALLS[form]}; print(ex.schedule.max_threads, len(ex.schedule.steps))"
    )
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    assert fresh(code).stdout.split() == [str(min(cpus, 64)), "1"]
    assert fresh(code, ACLNN_NUM_THREADS="3").stdout.split()[0] == "3"
    if form != "c_shaped":
        column = code.replace("np.ones(n, 'f4')", "np.ones((n, 2), 'f4')[:, 0]")
        assert fresh(column).stdout.split()[1] == "1"
        assert fresh(column, ACLNN_MATERIALIZE="1").stdout.split()[1] == "2"


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


PROFILE_KNOWN = Registry().with_resources(
    (schema["$id"], Resource.from_contents(schema))
    for schema in (PROFILE_SCHEMA, SCHEDULE_SCHEMA, PLAN_SCHEMA)
)


def recorded():
    """A profile with everything in it: two threads, several steps, two callers, an empty call."""
    aclnn.set_num_threads(2)
    g = np.ones((256, 1, 512), np.float16)
    ex = aclnn.executor("gelu_backward", g, np.ones((512, 4), np.float32).T, materialize=True)
    with aclnn.profile() as seen:
        ex.run()
        other = threading.Thread(target=lambda: [ex.run(), aclnn.gelu(np.ones(7, np.float16))])
        other.start()
        other.join()
        aclnn.gelu(np.ones(0, np.float32))
    return ex, seen


@pytest.fixture
def two_threads():
    before = aclnn.get_num_threads()
    yield
    aclnn.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_profiles_fit_their_schema_and_read_back():
    _, seen = recorded()
    document = json.loads(seen.to_json())
    jsonschema.Draft202012Validator.check_schema(PROFILE_SCHEMA)
    jsonschema.Draft202012Validator(PROFILE_SCHEMA, registry=PROFILE_KNOWN).validate(document)
    again = aclnn.Profile.from_json(seen.to_json())
    assert again == seen
    assert again.to_text() == seen.to_text()
    assert again.to_chrome_trace() == seen.to_chrome_trace()
    assert again.timeline() == seen.timeline()
    again.runs.pop()
    assert again != seen
    assert sum(step["share"] for step in document["steps"]) == pytest.approx(1)
    for step, data in zip(seen.steps, document["steps"], strict=True):
        moved = step.bytes_read + step.bytes_written
        assert data["median_ns"] == statistics.median(step.times)
        assert data["gigabytes_per_second"] == pytest.approx(moved / step.median)


@pytest.mark.usefixtures("two_threads")
def test_traces_are_what_perfetto_reads():
    ex, seen = recorded()
    events = json.loads(seen.to_chrome_trace())["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C"}
    assert {event["pid"] for event in events} == {os.getpid()}
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == sum(len(run.events) for run in seen.runs)
    named = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {event["tid"] for event in slices} == set(named)
    assert len(set(named.values())) == len(named)
    for event in slices:
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        assert {"bytes read", "bytes written", "kernels", "shape"} <= set(event["args"])
    for track in named:  # one after the other on each thread: nothing overlaps
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in slices if e["tid"] == track)
        assert all(end <= later + 1e-9 for (_, end), (later, _) in itertools.pairwise(own))
    # A quick thread may do all of a step, so that the other has no part in it.
    begins = {}
    for event in (e for e in slices if e["tid"] < 1000 and e["cat"] == "gelu_backward"):
        begins[event["name"]] = min(event["ts"], begins.get(event["name"], event["ts"]))
    assert sorted(begins, key=begins.get) == [step.name for step in ex.schedule.steps]


@pytest.mark.usefixtures("two_threads")
def test_counters_in_traces_are_the_plans_live_bytes():
    ex, _ = recorded()
    seen = ex.profile(repeat=1)
    events = json.loads(seen.to_chrome_trace())["traceEvents"]
    counters = [event for event in events if event["ph"] == "C"]
    lives = graph_lifetimes(ex.graph, threads=ex.plan.threads, tiling=ex.plan.tiling)
    padded = {buffer.name: buffer.padded for buffer in ex.plan.buffers}
    expected = [
        sum(padded[life.name] for life in lives if life.first <= step <= life.last)
        for step in range(len(ex.schedule.steps))
    ]
    assert [event["args"]["bytes"] for event in counters] == [*expected, 0]
    assert [e["ts"] for e in counters] == sorted(e["ts"] for e in counters)
    begins = {}
    for event in (event for event in events if event["ph"] == "X"):
        begins[event["args"]["step"]] = min(event["ts"], begins.get(event["args"]["step"], 1e9))
    assert [event["ts"] for event in counters[:-1]] == [begins[step] for step in sorted(begins)]


def test_counters_add_up_over_runs_at_the_same_time():
    ex = small_executor(materialize=True)
    seen = aclnn.Profile()
    steps = len(ex.schedule.steps)
    for shift in (0, 5):
        events = [(step, 0, 10 * step + shift, 10 * step + shift + 9) for step in range(steps)]
        seen.record(ex.planned, shift, 10 * steps + shift, events)
    counters = [e for e in json.loads(seen.to_chrome_trace())["traceEvents"] if e["ph"] == "C"]
    live = [sum(b.padded for b in ex.plan.live_at(step)) for step in range(steps)]
    assert counters[0]["args"]["bytes"] == live[0]
    assert counters[1]["args"]["bytes"] == 2 * live[0]
    assert counters[2]["args"]["bytes"] == live[1] + live[0]
    assert counters[-1]["args"]["bytes"] == 0


def test_timelines_draw_steps_where_they_ran():
    ex = small_executor(materialize=True)
    seen = aclnn.Profile()
    seen.record(ex.planned, 100, 200, [(0, 0, 100, 150), (1, 0, 160, 200), (0, 1, 120, 150)])
    assert seen.timeline(width=10).splitlines() == [
        "thread 0  00000.1111",
        "thread 1  ..000.....",
        "gelu_backward, 0.10 µs; digits are steps",
    ]


def test_a_profile_of_nothing_says_so_in_every_view():
    nothing = aclnn.Profile()
    assert nothing.timeline() == nothing.timeline(run=3) == nothing.to_text() == "nothing ran"
    assert json.loads(nothing.to_json())["runs"] == 0
    assert [e["ph"] for e in json.loads(nothing.to_chrome_trace())["traceEvents"]] == ["M"]


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
    assert all(0 <= outcome["max_ulp"] <= 1 for outcome in outcomes)


@pytest.mark.parametrize("seed", [2, 5])
def test_the_demos_reference_rounds_no_result_twice(capsys, seed):
    """Data that have results next to the middle between two bfloat16 numbers."""
    assert run(capsys, "demo", "--json", "--seed", str(seed))[0] == 0


def test_the_demo_notices_a_wrong_result(capsys, monkeypatch):
    from aclnn.cli import demo

    monkeypatch.setattr(demo, "max_ulp", lambda actual, exact, dtype: 2.0)
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
    assert "fused into" in out or "becomes tile loop" in out
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
    [["inspect", "nonsense", "--self", "float32[3]"], ["inspect"], ["plan"], ["inspect", "gelu"],
     ["inspect", "gelu", "--self", "float33[3]"], ["inspect", "gelu", "--self", "3"],
     ["inspect", "gelu", "--self", "float32[3]", "--alpha", "1"],
     ["inspect", "gelu", "--self", "float32[3]", "--grad-output", "float32[3]"],
     ["ops", "nonsense"], ["bench", "--isa", "v99"], ["bench", "--threads", "5000"],
     ["plan", *GELU, "--budget", "-1"], ["nonsense"], [],
     ["bench", "--operators", "logit_backward", "--regimes", "mixed"]],
)  # fmt: skip
def test_bad_usage_exits_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    words = capsys.readouterr().err.splitlines()
    assert words[0].startswith("usage: aclnn")
    assert "error: " in words[-1]


@pytest.mark.parametrize(
    "arguments",
    [["plan", "--lifetimes", "/nowhere"], ["inspect", "--calls", "/nowhere"],
     ["inspect", "gelu", "--self", "float32[3]", "--approximate", "erf"],
     ["inspect", "gelu_backward", "--self", "float32[3]", "--grad-output", "float32[4]"]],
)  # fmt: skip
def test_failed_runs_exit_with_1(capsys, arguments):
    assert cli.main(arguments) == 1
    assert capsys.readouterr().err.startswith(f"aclnn {arguments[0]}: ")


SHORT = "id,lower,upper,size\na,0,2,100\nb,1\n"
FILES = {
    "short.csv": SHORT,
    "early.csv": SHORT.replace("b,1", "b,-1,2,1"),
    "nameless.csv": "lower,upper,size,id\n0,1,2\n",
    "long.csv": SHORT.replace("b,1", "b" * 200_000 + ",1,2,1"),
    "deep.json": "[" * 100_000,
}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["inspect", "gelu", "--self", "float32[3]", option, "missing/x"], "missing/x: No such file")
     for option in ("--output", "--html", "--onnx")]
    + [(["inspect", "gelu", "--self", "float32[3]", "--json", "--output", "missing/x"], "missing/x: No such"),
       (["inspect", "gelu", "--self", "float32[3]", "--output", "."], ".: Is a directory"),
       (["plan", "gelu", "--self", "float32[3]", "--svg", "missing/x"], "missing/x: No such file"),
       (["plan", "gelu", "--self", "float32[3]", "--diff", "missing"], "missing: No such file"),
       (["plan", "--lifetimes", "missing"], "missing: No such file"),
       (["plan", "--lifetimes", "short.csv"], "short.csv: row 2 has no id, or fewer columns"),
       (["plan", "--lifetimes", "early.csv"], "early.csv: b: an empty lifetime, one from before"),
       (["plan", "--lifetimes", "nameless.csv"], "nameless.csv: row 1 has no id"),
       (["plan", "--lifetimes", "long.csv"], "long.csv: field larger"),
       (["inspect", "--calls", "missing"], "missing: No such file"),
       (["inspect", "--calls", "deep.json"], "deep.json: maximum recursion depth"),
       (["inspect", "--calls", "calls.json", "--html", "/"], "/ is no name of a file"),
       (["bench", "--quick", "--operators", "gelu", "--peers", "--sizes", "16", "--json", "."], ".: Is a directory"),
       (["bench", "--operators", "gelu", "--peers", "--sizes", "9" * 17], "Unable to allocate")],
    ids=lambda words: " ".join(words)[:60] if isinstance(words, list) else "",
)  # fmt: skip
def test_failures_are_one_line(capsys, tmp_path, monkeypatch, arguments, words):
    if "--html" in arguments:
        pytest.importorskip("jinja2")
    if "--onnx" in arguments:
        pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    two_calls(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert cli.main(arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"aclnn {arguments[0]}: {words}")


def test_a_report_and_a_model_are_both_written(capsys, tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    onnx = pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    files = ["--html", "x.html", "--onnx", "x.onnx", "--output", "x.txt"]
    assert run(capsys, "inspect", *GELU, *files) == (0, "x.html\nx.onnx\n")
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    onnx.checker.check_model(onnx.load(tmp_path / "x.onnx"))
    assert "gelu_backward" in (tmp_path / "x.txt").read_text()


@pytest.mark.parametrize(
    "options", list(itertools.combinations(("--html", "--onnx", "--output"), 2))
)
@pytest.mark.parametrize("name", ["x", "./x", "y/../x"])
def test_two_things_in_one_file_are_refused(capsys, tmp_path, monkeypatch, options, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        cli.main(["inspect", *GELU, options[0], "x", options[1], name])
    assert caught.value.code == 2
    assert f"{options[0]} and {options[1]} name the same file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["demo", "--seed", "x"], ["demo", "--seed", "-1"], ["inspect", "--view", "x"],
     ["bench", "--threads", "0"], ["bench", "--sizes", "x"], ["bench", "--sizes", "9" * 30]],
)  # fmt: skip
def test_bad_words_exit_with_2(capsys, arguments):
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
        assert "http://" not in page.replace("http://www.w3.org/", "")
        for name in [n.name for n in ex.graph_as_built.nodes] + [b.name for b in ex.plan.buffers]:
            assert name in page


def test_budgets():
    ex = small_executor(materialize=True)
    assert ex.plan.check(ex.workspace_size).size == ex.workspace_size
    with pytest.raises(aclnn.AclnnError, match=str(ex.workspace_size - 1)):
        ex.plan.check(ex.workspace_size - 1)


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


ACL_STUB = """
#pragma once
#include <cstddef>
#include <cstdint>
enum aclDataType { %s };
enum aclFormat { %s };
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST };
typedef int aclnnStatus;
typedef void *aclrtStream;
struct aclTensor; struct aclScalar; struct aclOpExecutor;
int aclInit(const char *); int aclrtSetDevice(int32_t); int aclrtCreateStream(aclrtStream *);
int aclrtMalloc(void **, size_t, aclrtMemMallocPolicy); int aclrtSynchronizeStream(aclrtStream);
aclTensor *aclCreateTensor(const int64_t *, uint64_t, aclDataType, const int64_t *, int64_t,
                           aclFormat, const int64_t *, uint64_t, void *);
aclScalar *aclCreateScalar(void *, aclDataType);
"""
C_KINDS = {
    "input": "const aclTensor *", "output": "aclTensor *", "inout": "aclTensor *",
    "scalar": "const aclScalar *", "float": "double", "bool": "bool", "int": "int64_t",
    "str": "const char *",
}  # fmt: skip


def stub_headers(folder, name):
    """As much of CANN's headers as a call of one function needs."""
    kinds = ", ".join(C_KINDS[p.kind] for p in ENTRIES[name][1].parameters)
    members = [
        ", ".join(f"{member.name} = {int(member)}" for member in kind)
        for kind in (aclnn.aclDataType, aclnn.aclFormat)
    ]
    for place in ("acl", "aclnnop"):
        (folder / place).mkdir(exist_ok=True)
    (folder / "acl" / "acl.h").write_text(ACL_STUB % tuple(members))
    words = re.findall("[A-Z][a-z0-9]*", name.replace("Inplace", ""))
    header = folder / "aclnnop" / ("_".join(["aclnn", *words]).lower() + ".h")
    header.write_text(
        "#pragma once\n"
        f"aclnnStatus {name}GetWorkspaceSize({kinds}, uint64_t *, aclOpExecutor **);\n"
        f"aclnnStatus {name}(void *, uint64_t, aclOpExecutor *, aclrtStream);\n"
    )


def refused_call(name):
    """Arguments of which phase one refuses the shapes."""
    x = np.zeros(16, np.float32)
    values = {
        "input": lambda: aclnn.aclCreateTensor((2, 3), 0, (1, 2), 1, 2, (16,), x),
        "output": lambda: aclnn.aclCreateTensor((3, 5), 0, None, 0, 2, (3, 5), x),
        "inout": lambda: aclnn.aclCreateTensor((1,) * 9, 0, None, 0, 2, (1,) * 9, x),
        "scalar": lambda: aclnn.aclCreateScalar(float("-inf"), 1), "float": lambda: 1e-300,
        "bool": lambda: True, "int": lambda: 1, "str": lambda: "tanh",
    }  # fmt: skip
    return [values[parameter.kind]() for parameter in ENTRIES[name][1].parameters]


@pytest.mark.parametrize("name", ENTRIES)
def test_failures_reproduce_in_python_and_in_cpp(name, tmp_path):
    status = getattr(aclnn, f"{name}GetWorkspaceSize")(*refused_call(name))[2]
    assert status == 161002
    text = aclnn.aclGetRecentErrMsg()
    python, _, cpp = text.partition("in Python:")[2].partition("in C++:")
    assert eval(python.strip())[2] == status
    assert aclnn.aclGetRecentErrMsg().splitlines()[0] == text.splitlines()[0]
    for call in (f"{name}GetWorkspaceSize(", f"{name}(workspace, size, executor, stream)"):
        assert call in cpp
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler to read the program with")
    stub_headers(tmp_path, name)
    (tmp_path / "call.cpp").write_text(cpp)
    command = [compiler, "-std=c++11", "-Wall", "-Werror", "-fsyntax-only", "-I", str(tmp_path)]
    done = subprocess.run(
        [*command, str(tmp_path / "call.cpp")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_odd_arguments_are_shown_and_never_executed():
    x = np.zeros(3, np.float32)
    tensor = aclnn.aclCreateTensor((3,), 0, None, 0, 2, (3,), x)
    for odd in (x, {"a": 1}, b"bytes", 1j):
        assert aclnn.aclnnGeluGetWorkspaceSize(odd, tensor)[2] == 161002
        text = aclnn.aclGetRecentErrMsg()
        python = text.partition("in Python:")[2].partition("in C++:")[0]
        assert eval(python.strip())[2] == 161002
        assert repr(odd) in text


def test_the_latest_failure_is_explained_without_a_status():
    seen = []
    fresh_thread = threading.Thread(target=lambda: seen.append(aclnn.explain()))
    fresh_thread.start()
    fresh_thread.join()
    assert seen == ["nothing failed on this thread"]
    assert aclnn.aclnnGeluGetWorkspaceSize(None, None)[2] == 161001
    message = aclnn.aclGetRecentErrMsg()
    text = aclnn.explain()
    assert text.startswith(aclnn.explain(161001))
    assert text.endswith(message)


# --- Rich tables, comparisons, and everything as JSON ---------------------------------------------


def test_executors_graphs_plans_and_passes_draw_themselves():
    for ex in (small_executor(), small_executor(materialize=True)):
        for thing in (ex, ex.graph, ex.graph_as_built, ex.plan, ex.passes, ex.passes[0].graph):
            picture = thing._repr_svg_()
            assert picture.startswith("<svg")
            assert "<script" not in picture
            ElementTree.fromstring(picture)
        assert ex._repr_svg_() == ex.graph.to_svg(ex.plan)


def test_passes_of_executors_are_a_tuple():
    ex = small_executor()
    assert isinstance(ex.passes, tuple)
    assert ex.passes[0].name == "elide"
    assert ex.passes.as_built is ex.graph_as_built
    assert ex.passes[-1].graph == ex.passes.graph == ex.graph
    assert PassResult.from_json(ex.passes.to_json()) == ex.passes


def test_plans_of_executors_read_back_as_equals():
    plan = small_executor(materialize=True).plan
    again = WorkspacePlan.from_json(plan.to_json())
    assert again == plan
    assert plan == again
    assert hash(again) == hash(plan)
    assert again != small_executor().plan
    assert plan != plan.to_json()


def test_onnx_nodes_carry_what_they_move():
    onnx = pytest.importorskip("onnx")
    ex = small_executor(materialize=True)
    model = onnx.load_from_string(ex.graph.to_onnx(ex.plan))
    for made, node in zip(model.graph.node, ex.graph.nodes, strict=True):
        facts = {a.name: onnx.helper.get_attribute_value(a) for a in made.attribute}
        assert facts["bytes_read"] == ex.graph.bytes_read(node)
        assert facts["bytes_written"] == ex.graph.bytes_written(node)
        assert len(facts["read_strides"]) == len(made.input)
        if "plan_offset" in facts:
            buffer = ex.plan.buffer(made.output[0])
            assert facts["plan_bytes"] == buffer.padded
            assert facts["plan_first_step"] == buffer.first
            assert facts["plan_last_step"] == buffer.last
    known = {prop.key: prop.value for prop in model.metadata_props}
    assert known["workspace_peak_bytes"] == str(ex.plan.peak_bytes)


@pytest.mark.parametrize("view", ["rich", "passes", "graph", "plan", "schedule", "profile", "dot"])
def test_rich_views(capsys, view):
    pytest.importorskip("rich")
    status, out = run(capsys, "inspect", *GELU, "--rich", "--view", view)
    assert status == 0
    assert ("─" in out) == (view not in ("dot", "plan"))
    assert "─" not in run(capsys, "inspect", *GELU, "--view", "graph", "--plain")[1]


def test_terminals_get_rich_tables(capsys, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "─" in run(capsys, "inspect", *GELU, "--view", "graph")[1]
    assert "─" not in run(capsys, "inspect", *GELU, "--view", "graph", "--plain")[1]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "─" not in run(capsys, "inspect", *GELU, "--view", "graph")[1]


def test_rich_and_plain_exclude_each_other(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["inspect", *GELU, "--rich", "--plain"])
    assert caught.value.code == 2


def test_every_view_has_json(capsys):
    from aclnn.cli.inspect import VIEWS

    for view in VIEWS:
        status, out = run(capsys, "inspect", *GELU, "--view", view, "--json")
        assert status == 0
        assert len(json.loads(out)) == 1
    (data,) = json.loads(run(capsys, "inspect", *GELU, "--view", "passes", "--json")[1])
    assert data["schema"] == "aclnn.passes/1"


@pytest.mark.parametrize(
    "arguments",
    [["ops"], ["ops", "elu"], ["inspect", *GELU], ["plan", *GELU], ["config"], ["demo"],
     ["plan", *GELU, "--diff-strategy", "naive"]],
    ids=" ".join,
)  # fmt: skip
def test_every_command_has_json(capsys, arguments):
    status, out = run(capsys, *arguments, "--json")
    assert status == 0
    assert json.loads(out)


def test_views_of_several_calls_go_to_several_files(capsys, tmp_path):
    calls = two_calls(tmp_path)
    target = tmp_path / "graph.svg"
    status, _ = run(capsys, "inspect", "--calls", calls, "--view", "svg", "--output", str(target))
    assert status == 0
    for place in (1, 2):
        ElementTree.fromstring((tmp_path / f"graph-{place}.svg").read_text())


def two_calls(tmp_path):
    path = tmp_path / "calls.json"
    path.write_text(json.dumps([
        {"operator": "leaky_relu", "self": "float32[64,64:strides=1,64]", "materialize": True},
        {"operator": "gelu_backward", "grad-output": "float16[8,1]", "self": "float32[8,128]",
         "materialize": True},
    ]))  # fmt: skip
    return str(path)


def test_budgets_of_many_calls_name_all_that_break_them(capsys, tmp_path):
    calls = two_calls(tmp_path)
    sizes = [
        plan["size"] for plan in json.loads(run(capsys, "plan", "--calls", calls, "--json")[1])
    ]
    assert len(sizes) == 2
    assert cli.main(["plan", "--calls", calls, "--budget", str(max(sizes))]) == 0
    capsys.readouterr()
    assert cli.main(["plan", "--calls", calls, "--budget", str(min(sizes))]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{max(sizes) - min(sizes)} over the budget of {min(sizes)}" in line
    assert "at the peak, step" in line
    assert cli.main(["plan", "--calls", calls, "--budget", "1"]) == 1
    failed = capsys.readouterr().err
    assert "leaky_relu needs" in failed
    assert "gelu_backward needs" in failed


def test_plans_are_compared(capsys, tmp_path):
    saved = tmp_path / "plan.json"
    whole = ["plan", *GELU, "--materialize"]
    saved.write_text(run(capsys, *whole, "--json")[1])
    status, out = run(capsys, *whole, "--diff-strategy", "bucket")
    assert status == 0
    assert ["strategy", "default", "bucket", "differs"] in [row.split() for row in out.splitlines()]
    same = json.loads(run(capsys, *whole, "--diff", str(saved), "--json")[1])
    assert same["buffers"] == []
    fused = json.loads(run(capsys, "plan", *GELU, "--diff", str(saved), "--json")[1])
    assert fused["size_change"] == -same["after"]["size"] < 0
    assert {name for one in fused["buffers"] for name in one["changes"]} == {"removed"}
    text = run(capsys, "plan", *GELU, "--diff", str(saved))[1]
    assert f"{fused['size_change']:+d}" in text
    assert "removed" in text


@pytest.mark.parametrize("text", ["", "[]", "[1]", '{"schema": "aclnn.plan/1"}'])
def test_plans_that_cannot_be_compared(capsys, tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    assert cli.main(["plan", *GELU, "--diff", str(tmp_path / "plan.json")]) == 1
    assert "plan.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "call",
    [{"operator": "gelu", "self": "float32[3]", "slef": 1}, {"operator": ["gelu"]}, {},
     {"operator": "gelu", "self": 3}, {"operator": "gelu", "self": "float32[3:offset=-9]"},
     {"operator": "gelu", "self": "float32[99999999999999]"}],
    ids=str,
)  # fmt: skip
def test_calls_that_make_no_sense(capsys, tmp_path, call):
    path = tmp_path / "calls.json"
    path.write_text(json.dumps([call]))
    assert cli.main(["inspect", "--calls", str(path)]) == 1
    assert capsys.readouterr().err.startswith("aclnn inspect: ")


@pytest.mark.parametrize("name", REGISTRY)
def test_ops_lists_signature_dtypes_and_formula(capsys, name):
    (facts,) = json.loads(run(capsys, "ops", name, "--json")[1])
    text = run(capsys, "ops", name)[1]
    for words in (facts["functional"], facts["formula"], *facts["entries"], *facts["rules"]):
        assert words
        assert words in text
    for soc, names in facts["dtypes"].items():
        assert soc in text
        assert ", ".join(names) in text
