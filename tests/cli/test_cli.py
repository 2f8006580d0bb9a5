"""The command line: what commands print and write, and how they fail."""

import argparse
import io
import itertools
import json
import random
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from aclnn.graph import Lifetime
from aclnn.graph.planner import strategies
from cases import each
from setups import fresh

import aclnn
from aclnn import cli
from aclnn.acl import socs
from aclnn.cli import values
from aclnn.operators import REGISTRY, functional_owner

# Operators that take no bfloat16, or no tensors of the ranks that `aclnn ops` tries.
WITHOUT_BFLOAT16 = (
    *("shrink", "trans_quant_param", "max_pool2d", "one_hot", "conv1d", "conv2d", "conv3d"),
    *("conv_transpose1d", "conv_transpose2d", "triangular_solve"),
)


def run(capsys, *arguments):
    status = cli.main(arguments)
    return status, capsys.readouterr().out


def test_the_demo_agrees_with_its_reference(capsys):
    status, out = run(capsys, "demo", "--json")
    assert status == 0
    outcomes = json.loads(out)
    assert len(outcomes) == 6
    assert all(0 <= outcome["max_ulp"] <= 1 for outcome in outcomes)


@pytest.mark.parametrize("soc", socs.FAMILIES)
def test_the_demo_shows_what_the_product_has(capsys, monkeypatch, soc):
    before = aclnn.get_soc_version()
    aclnn.set_soc_version(soc)
    try:
        status, out = run(capsys, "demo", "--json")
    finally:
        aclnn.set_soc_version(before)
    if not socs.has_operators(soc):
        assert status == 1
        return
    assert status == 0
    functions = [outcome["function"] for outcome in json.loads(out)]
    assert ("aclnnLogitGrad" in functions) == socs.supports_bfloat16(soc)
    assert len(functions) >= 5


def test_the_demo_fits_a_terminal(capsys):
    status, out = run(capsys, "demo")
    assert status == 0
    assert max(map(len, out.splitlines())) <= 100
    assert len(out.splitlines()) <= 55  # with the build's lines, what a terminal shows at once


def test_operands_go_by_the_names_of_others(capsys):
    """Functional forms take `input` for `self` and `axis` for `dim`; so do flags."""
    assert run(capsys, "inspect", "gelu", "--input", "f32[4,8]")[0] == 0
    named = run(
        capsys, "inspect", "softmax", "--self", "f32[4,8]", "--axis", "-1", "--view", "plan"
    )
    assert named == run(capsys, "inspect", "softmax", "--input", "f32[4,8]", "--dim", "-1", "--view", "plan")  # fmt: skip


@pytest.mark.parametrize("seed", [2, 5])
def test_the_demos_reference_rounds_no_result_twice(capsys, seed):
    """Data that have results next to the middle between two bfloat16 numbers."""
    assert run(capsys, "demo", "--json", "--seed", str(seed))[0] == 0


def test_the_demo_notices_a_wrong_result(capsys, monkeypatch):
    from aclnn.cli import demo

    monkeypatch.setattr(demo, "max_ulp", lambda actual, exact, dtype: 2.0)
    assert run(capsys, "demo", "--json")[0] == 1


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


ANY_KIND = {
    "add": [("--input", "int32[2,3]"), ("--other", "2"), ("--alpha", "-3")],
    "add of tensors": [("--input", "int32[2,3]"), ("--other", "float16[3]")],
    "where": [("--condition", "bool[3]"), ("--input", "1.5"), ("--other", "float16[3]")],
    "adds": [("--input", "float32[3]"), ("--other", "-0.5")],
    "cast": [("--input", "float32[3]"), ("--dtype", "bfloat16")],
    "cat": [("--tensors", "float32[2]"), ("--tensors", "float16[3]"), ("--dim", "-1")],
    "cat at once": [("--tensors", "float32[2] float16[3]")],
    "permute": [("--input", "bool[2,3]"), ("--dims", "-1,0")],
    "sum": [("--input", "int8[2,3,4]"), ("--dim", "0,-1"), ("--keepdim", "true"), ("--dtype", "int32")],
    "softmax_backward": [("--grad-output", "float32[2,3]"), ("--operand", "output=float32[2,3]"), ("--dim", "1")],
    "native_layer_norm": [("--input", "float32[2,3]"), ("--normalized-shape", "3"), ("--mean", "float16[2,1]")],
    "native_layer_norm_backward": [
        ("--grad-out", "float32[2,3]"), ("--input", "float32[2,3]"), ("--mean", "float32[2,1]"),
        ("--rstd", "float32[2,1]"), ("--normalized-shape", "3"), ("--output-mask", "true,false,1"),
    ],
    "gelu": [("--operand", "self=float32[3]"), ("--operand", "approximate=tanh")],
    "copy_": [("--input", "float32[2,3]"), ("--src", "float16[3]")],
}  # fmt: skip


@pytest.mark.parametrize("what", ANY_KIND)
def test_operands_and_options_of_all_kinds(capsys, tmp_path, what):
    """On the command line, and in a file."""
    name, words = what.split()[0], ANY_KIND[what]
    flags = [word for pair in words for word in pair]
    status, out = run(capsys, "inspect", name, *flags, "--json")
    assert status == 0
    (found,) = json.loads(out)
    assert found["operator"] == name or (name, found["operator"]) == ("add", "adds")
    call = {"operator": name}
    for flag, text in words:
        role, value = text.split("=") if flag == "--operand" else (flag[2:], text)
        call[role] = [*call.get(role, []), value] if role == "tensors" else value
    (tmp_path / "calls.json").write_text(json.dumps([call]))
    assert run(capsys, "inspect", "--calls", str(tmp_path / "calls.json"), "--json") == (0, out)


def test_files_have_numbers_and_lists_as_such(capsys, tmp_path):
    calls = [
        {"operator": "add", "input": "int32[3]", "other": 2, "alpha": 3},
        {"operator": "permute", "input": "int32[2,3]", "dims": [1, 0]},
        {"operator": "cat", "tensors": ["float32[2]", "float32[3]"], "dim": 0},
        {"operator": "sum", "input": "int32[3]", "keepdim": True},
    ]
    (tmp_path / "calls.json").write_text(json.dumps(calls))
    status, out = run(capsys, "inspect", "--calls", str(tmp_path / "calls.json"), "--json")
    assert status == 0
    assert [one["operator"] for one in json.loads(out)] == ["adds", "permute", "cat", "sum"]


def test_a_commands_own_flag_wins(capsys, tmp_path):
    """--output is a file of `inspect`, and an operand of `plan`."""
    call = ["softmax_backward", "--grad-output", "float32[2,3]", "--dim", "1"]
    output, path = "float32[2,3]", str(tmp_path / "graph.txt")
    named = ["--operand", f"output={output}"]
    assert run(capsys, "inspect", *call, *named, "--output", path) == (0, "")
    assert (tmp_path / "graph.txt").exists()
    assert run(capsys, "plan", *call, "--output", output) == run(capsys, "plan", *call, *named)
    with pytest.raises(SystemExit):
        cli.main(["inspect", *call, "--output", str(tmp_path / "x")])
    assert "output is missing, such as --operand output=" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["cast", "--input", "float32[3]", "--dtype", "float33"], "--dtype: 'float33' must be one of"),
     (["permute", "--input", "float32[3]", "--dims", "0,x"], "--dims: '0,x' must be integers"),
     (["softmax", "--input", "float32[3]", "--dim", "0.5"], "--dim: '0.5' must be an integer"),
     (["leaky_relu", "--self", "float32[3]", "--negative-slope", "x"], "--negative-slope: 'x' must be a number"),
     (["gelu", "--self", "float32[3]", "--approximate", "erf"], "--approximate: 'erf' must be 'none' or 'tanh'"),
     (["gelu", "--self", "float32[3]", "--self", "float32[3]"], "--self is given twice"),
     (["gelu", "--operand", "float32[3]"], "--operand: 'float32[3]' must be NAME=VALUE"),
     (["gelu", "--operand", "slef=float32[3]"], "no operator has an operand or option 'slef'"),
     (["gelu", "--self", "2"], "operand '2': must look like"),
     (["native_layer_norm", "--input", "float32[3]"], "normalized_shape is missing"),
     (["gelu", "--self", "float32[3]", "--mean", "float32[3]"], "gelu takes no --mean")],
)  # fmt: skip
def test_calls_that_cannot_be_made_are_bad_usage(capsys, arguments, words):
    with pytest.raises(SystemExit) as ended:
        cli.main(["inspect", *arguments])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


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
     ["inspect", "gelu", "--self", "float32[3]", "--approximate", "erf"],
     ["inspect", "gelu", "--self", "float32[3]", "--grad-output", "float32[3]"],
     ["ops", "nonsense"], ["bench", "--isa", "v99"], ["bench", "--threads", "5000"],
     ["plan", *GELU, "--budget", "-1"], ["nonsense"], [],
     ["bench", "--operators", "logit_backward", "--regimes", "mixed"],
     ["bench", "--operators", "adds"], ["bench", "--operators", "cast"],
     ["bench", "--operators", "copy_"], ["bench", "--peers", "abacus"],
     ["demo", "--seed", "-1"], ["inspect", "--view", "x"], ["bench", "--threads", "0"],
     ["bench", "--sizes", "x"], ["bench", "--sizes", "9" * 30]],
)  # fmt: skip
def test_bad_usage_exits_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    words = capsys.readouterr().err.splitlines()
    assert words[0].startswith("usage: aclnn")
    assert "error: " in words[-1]


@pytest.mark.parametrize(
    "call",
    [["gelu"], ["--calls", "nosuch.json"], ["--self", "nonsense"], ["--out", "float32[3]"],
     ["--alpha", "0"], ["--is-result", "false"], ["--materialize"],
     ["--no-materialize"]],
)  # fmt: skip
def test_lifetimes_are_planned_instead_of_a_call(capsys, tmp_path, call):
    lives = tmp_path / "lives.csv"
    lives.write_text("id,lower,upper,size\na,0,2,100\n")
    assert run(capsys, "plan", "--lifetimes", str(lives), "--strategy", "naive")[0] == 0
    with pytest.raises(SystemExit) as ended:
        cli.main(["plan", *call, "--lifetimes", str(lives)])
    assert ended.value.code == 2
    said = call[0].replace("--no-", "--") if call[0].startswith("-") else "operator"
    assert f"takes no {said}\n" in capsys.readouterr().err


SHORT = "id,lower,upper,size\na,0,2,100\nb,1\n"


FILES = {
    "short.csv": SHORT,
    "early.csv": SHORT.replace("b,1", "b,-1,2,1"),
    "nameless.csv": "lower,upper,size,id\n0,1,2\n",
    "long.csv": SHORT.replace("b,1", "b" * 200_000 + ",1,2,1"),
    "deep.json": "[" * 100_000,
    "none.json": "[]",
    "twice.csv": SHORT.replace("b,1", "a,1,2,1"),
    "words.csv": SHORT.replace("b,1", "b,1,two,1"),
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
       (["plan", "--lifetimes", "early.csv"], "early.csv: row 2: b: [-1, 2) is not a range of steps"),
       (["plan", "--lifetimes", "nameless.csv"], "nameless.csv: row 1 has no id"),
       (["plan", "--lifetimes", "twice.csv"], "twice.csv: lifetimes: 2 are called 'a'"),
       (["plan", "--lifetimes", "words.csv"], "words.csv: row 2: upper is 'two', must be an int"),
       (["inspect", "--calls", "none.json"], "none.json: an empty list, nothing to look at"),
       (["plan", "--lifetimes", "long.csv"], "long.csv: no CSV, line 3: field larger"),
       (["inspect", "--calls", "missing"], "missing: No such file"),
       (["inspect", "gelu_backward", "--self", "float32[3]", "--grad-output", "float32[4]"], "gelu_backward: shapes do not broadcast: grad_output (4,), self (3,)"),
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


@pytest.mark.parametrize("options", [["--json"], ["--view", "plan-json"], ["--view", "schedule"]])
def test_a_view_is_printed_beside_a_report(capsys, tmp_path, monkeypatch, options):
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    expected = run(capsys, "inspect", *GELU, *options)
    assert run(capsys, "inspect", *GELU, *options, "--html", "x.html") == expected
    assert (tmp_path / "x.html").exists()


@pytest.mark.parametrize("number", ["-0.25", "-1e-3", "-1E+2", "-.5", "-inf", "-2."])
def test_numbers_below_zero(capsys, number):
    call = ["inspect", "leaky_relu", "--self", "float32[3]", "--json"]
    joined = run(capsys, *call, f"--negative-slope={number}")
    assert run(capsys, *call, "--negative-slope", number) == joined
    assert joined[0] == 0


@pytest.mark.parametrize("name", ["leaky_relu", "leaky_relu_", "aclnnInplaceLeakyRelu"])
def test_inspect_finds_an_operator_by_any_of_its_names(capsys, name):
    status, out = run(capsys, "inspect", name, "--self", "float32[3]", "--json")
    assert (status, json.loads(out)[0]["operator"]) == (0, "leaky_relu")


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
    ("arguments", "words"),
    [(["bench", "--threads", "5000"], "--threads: '5000' must be an integer from 1 to 1024"),
     (["bench", "--sizes", "0"], "--sizes: '0' must be an integer from 1 to "),
     (["demo", "--seed", "x"], "--seed: 'x' must be an integer from 0 to "),
     (["plan", "elu_backward", "--is-result", "maybe"], "--is-result: 'maybe' must be one of 1, true"),
     (["plan", "gelu", "--self", "float32[2,x]"], "every size must be an integer from 0 to"),
     (["plan", "gelu", "--self", "float32[2:offset=-1]"], "the offset must be an integer from 0")],
)  # fmt: skip
def test_numbers_that_are_none_are_named_with_the_rule(capsys, arguments, words):
    with pytest.raises(SystemExit):
        cli.main(arguments)
    assert words in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_everywhere(capsys, command):
    with pytest.raises(SystemExit) as caught:
        cli.main([command, "--help"])
    assert caught.value.code == 0
    assert "usage: aclnn" in capsys.readouterr().out


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
    assert data["schema"] == "aclnn.passes/2"


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


WHOLE = {"operator": "leaky_relu", "self": "float32[64,64:strides=1,64]"}  # a chain, not fused


@pytest.mark.parametrize(
    ("said", "flags", "whole"),
    [({}, [], True), ({"materialize": None}, [], True), ({"materialize": False}, [], False),
     ({}, ["--no-materialize"], False), ({"materialize": True}, ["--no-materialize"], True)],
)  # fmt: skip
def test_a_call_overrules_what_the_environment_says_of_materializing(tmp_path, said, flags, whole):
    path = tmp_path / "calls.json"
    path.write_text(json.dumps([WHOLE | said]))
    code = (
        f"from aclnn import cli; cli.main(['plan', '--calls', {str(path)!r}, '--json', *{flags}])"
    )
    plan = json.loads(fresh(code, ACLNN_MATERIALIZE="1").stdout)
    assert (plan["size"] > 0) == whole


@pytest.mark.parametrize("value", ["false", 1, 0.0, []])
def test_files_of_calls_say_materialize_with_truth_values(value, capsys, tmp_path):
    path = tmp_path / "calls.json"
    call = {"operator": "gelu", "self": "float32[8]", "materialize": value}
    path.write_text(json.dumps([call]))
    assert cli.main(["plan", "--calls", str(path)]) == 1
    assert f"materialize is {value!r}, must be true, false or null" in capsys.readouterr().err


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


@pytest.mark.parametrize("text", ["", "[]", "[1]", '{"schema": "aclnn.plan/2"}'])
def test_plans_that_cannot_be_compared(capsys, tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    assert cli.main(["plan", *GELU, "--diff", str(tmp_path / "plan.json")]) == 1
    assert "plan.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [("size", "x", "size is 'x', must be an integer"), ("steps", None, "steps is None, must be"),
     ("buffers", [3], "buffers[0] is 3, must be an object")],
)  # fmt: skip
def test_plans_with_a_field_that_does_not_fit_are_not_compared(
    capsys, tmp_path, field, value, words
):
    saved = tmp_path / "plan.json"
    plan = json.loads(run(capsys, "plan", *GELU, "--json")[1])
    saved.write_text(json.dumps(plan | {field: value}))
    assert cli.main(["plan", *GELU, "--diff", str(saved)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"aclnn plan: {saved}: {words}")


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


def printed(monkeypatch, encoding, errors, *arguments):
    """What a command prints where the output has this encoding."""
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors)
    monkeypatch.setattr(sys, "stdout", out)
    assert cli.main(arguments) == 0
    out.flush()
    return out.buffer.getvalue().decode(encoding)


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
@pytest.mark.parametrize(
    ("encoding", "arguments", "words"),
    [("ascii", ["inspect", *GELU], "?"),
     ("cp1252", ["ops", "gelu"], "x·?(x)"), ("utf-8", ["ops", "gelu"], "x·Φ(x)")],
)  # fmt: skip
def test_characters_that_the_output_lacks_are_replaced(
    monkeypatch, encoding, errors, arguments, words
):
    assert words in printed(monkeypatch, encoding, errors, *arguments)


def test_how_characters_are_replaced_may_be_chosen(monkeypatch):
    assert "first \\xb5s" in printed(monkeypatch, "ascii", "backslashreplace", "demo")


@pytest.mark.parametrize("command", ["ops", "inspect"])
def test_json_loses_no_character_to_the_encoding(monkeypatch, command):
    arguments = ["ops", "gelu"] if command == "ops" else ["inspect", *GELU, "--view", "profile"]
    text = printed(monkeypatch, "ascii", "strict", *arguments, "--json")
    assert "?" not in text
    assert json.loads(text)


def test_files_are_utf_8_whatever_the_locale(tmp_path):
    calls, table = tmp_path / "calls.json", tmp_path / "table.md"
    calls.write_text('[{"operator": "gelu", "größe": 1}]', encoding="utf-8")
    code = "import sys; from aclnn import cli; sys.exit(cli.main({}))"
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    refused = fresh(code.format(["inspect", "--calls", str(calls)]), **plain)
    assert "there is no 'größe'" in refused.stderr
    bench = ["bench", "--quick", "--operators", "gelu", "--sizes", "16", "--peers"]
    done = fresh(code.format([*bench, "--markdown", str(table)]), **plain)
    assert done.returncode == 0, done.stderr
    assert "µs of a call" in table.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["elu", "elu_", "aclnnInplaceElu"])
def test_ops_finds_an_operator_by_any_of_its_names(capsys, name):
    assert cli.main(["ops", name, "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == ["elu"]


@each("name", REGISTRY)
def test_ops_lists_signature_dtypes_and_formula(capsys, name):
    status, found = run(capsys, "ops", name, "--json")
    assert status == 0
    (facts,) = json.loads(found)
    assert facts["name"] == name
    soc = REGISTRY[name].product or "Ascend910B"
    assert ("BF16" in facts["dtypes"][soc]) == (name not in WITHOUT_BFLOAT16)
    assert facts["dtypes"]["Ascend310B"] == []
    printed = run(capsys, "ops", name)[1]
    assert printed.startswith(functional_owner(REGISTRY[name]).name)
    assert max(map(len, printed.splitlines())) <= 100
    text = " ".join(printed.split())
    for words in (facts["functional"], facts["formula"], *facts["entries"], *facts["rules"]):
        assert words
        assert " ".join(words.split()) in text
    for soc, names in facts["dtypes"].items():
        assert soc in text
        assert ", ".join(names) in text


MODEL = """
import numpy as np
import aclnn

def gate(x, y):
    return aclnn.softmax(x.T @ y, -1)

def planned(**options):
    x = np.ones((32, 48), np.float16)
    return aclnn.compile(gate, **options).executor(x, x)

done = planned()
number = 3

def broken():
    return 1 / 0
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)


@pytest.mark.usefixtures("model")
def test_models_are_planned_as_calls_are(capsys):
    status, text = run(capsys, "plan", "--model", "model.py:planned", "--json")
    assert status == 0
    whole = run(
        capsys, "plan", "--model", "model.py:planned", "--materialize", "--strategy", "naive"
    )
    assert "strategy naive" in whole[1]
    size = int(whole[1].partition("workspace ")[2].split()[0])
    assert size > json.loads(text)["size"]
    assert run(capsys, "plan", "--model", "model.py:done")[0] == 0
    diff = run(capsys, "plan", "--model", "model.py:planned", "--diff-strategy", "bucket")[1]
    assert "strategy default bucket differs" in " ".join(diff.split())
    assert (
        "matmul" in run(capsys, "inspect", "--model", "model.py:planned", "--view", "schedule")[1]
    )


def test_models_in_onnx_are_planned(capsys, tmp_path):
    onnx = pytest.importorskip("onnx")
    text = """<ir_version: 8, opset_import: ["" : 20]>
    f (float[rows, 8] x) => (float[rows, 8] y) { s = Softmax <axis = 0> (x) y = Gelu (s) }"""
    path = str(tmp_path / "model.onnx")
    onnx.save(onnx.parser.parse_model(text), path)
    command = ["plan", "--model", path, "--materialize", "--json"]
    sizes = []
    for rows in (4096, 8192):
        status, out = run(capsys, *command, "--model-dim", f"rows={rows}")
        sizes.append(json.loads(out)["naive_size"])
        assert status == 0
    assert sizes[1] > sizes[0] > 4096 * 8 * 4
    assert cli.main(command) == 1
    assert "sizes of rows" in capsys.readouterr().err
    for wrong in (["--model-dim", "rows"], ["--model-dim", "rows=x"]):
        with pytest.raises(SystemExit):
            cli.main([*command, *wrong])
    with pytest.raises(SystemExit):
        cli.main(["plan", "gelu", "--self", "float32[3]", "--model-dim", "rows=3"])
    assert "--model-dim is for --model FILE.onnx" in capsys.readouterr().err


@pytest.mark.usefixtures("model")
def test_models_hold_a_budget(capsys):
    command = ["plan", "--model", "model.py:planned", "--materialize"]
    assert cli.main([*command, "--budget", "1000000"]) == 0
    capsys.readouterr()
    assert cli.main([*command, "--budget", "10"]) == 1
    assert "over the budget of 10" in capsys.readouterr().err


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("named", "words"), [
    ("model.py", "must be FILE:NAME"),
    ("model.py:nothing", "model.py has no 'nothing'"),
    ("absent.py:planned", "absent.py: FileNotFoundError"),
    ("no_such_module:planned", "no_such_module: ModuleNotFoundError"),
    ("model.py:number", "model.py:number gives 3, must be an executor"),
    ("model.py:gate", "model.py:gate: TypeError: gate() missing 2 required"),
    ("model.py:broken", "model.py:broken: ZeroDivisionError"),
])  # fmt: skip
def test_models_that_cannot_be_planned_are_named(capsys, named, words):
    assert cli.main(["plan", "--model", named]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.usefixtures("model")
def test_a_model_is_planned_instead_of_a_call(capsys):
    for others in (["gelu"], ["--calls", "x.json"], ["--operand", "self=float32[3]"]):
        with pytest.raises(SystemExit):
            cli.main(["plan", "--model", "model.py:planned", *others])
        assert "--model is shown instead of a call" in capsys.readouterr().err
    assert cli.main(["plan", "--model", "model.py:done", "--materialize"]) == 1
    assert "takes no materialize" in capsys.readouterr().err


def test_what_is_wrong_with_a_model_in_onnx_is_told_in_a_line(capsys, tmp_path):
    onnx = pytest.importorskip("onnx")
    models = {
        "axis": "f (float[3] x) => (float[3] y) {y = Softmax <axis = 7> (x)}",
        "cycle": "f (float[3] x) => (float[3] y) {t = Add (x, y) y = Relu (t)}",
        "missing": "f (float[3] x) => (float[3] y) {y = Add (x, weight)}",
    }
    for name, text in models.items():
        model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 20]> {text}')
        onnx.save(model, tmp_path / f"{name}.onnx")
    (tmp_path / "damaged.onnx").write_bytes((tmp_path / "axis.onnx").read_bytes()[:40])
    for name, words in (
        ("axis", "Softmax (y): softmax: dim is 7"),
        ("cycle", "Add (t) reads 'y', which Relu (y) gives only later"),
        ("missing", "Add (y) reads 'weight'"),
        ("damaged", "is no ONNX model"),
        ("nowhere", "No such file"),
    ):
        for command in ("plan", "inspect"):
            assert cli.main([command, "--model", str(tmp_path / f"{name}.onnx")]) == 1
            told = capsys.readouterr().err
            assert words in told
            assert told.count("\n") == 1


# --- Help that is of use ----------------------------------------------------------------------


@each("name", REGISTRY)
def test_help_of_an_operator_has_a_call_that_works(name, capsys):
    with pytest.raises(SystemExit):
        cli.main(["plan", name, "--help"])
    text = capsys.readouterr().out
    call = text.splitlines()[-1].strip()
    words = shlex.split(call)
    assert words[:2] == ["aclnn", "plan"]
    assert cli.main([*words[1:], "--plain"]) == 0
    operands = {*REGISTRY[name].inputs} - {"output"}
    assert all(f"--{role.replace('_', '-')} " in text for role in operands)


def test_wrong_flags_are_answered_with_the_right_ones(capsys):
    for flag in ("--dim", "--nothing"):
        with pytest.raises(SystemExit):
            cli.main(["inspect", "leaky_relu", "--self", "f32[3]", flag, "1"])
        assert "it takes --self, --out, --negative-slope" in capsys.readouterr().err
    for flag, hint in (("--slf", "--dim\n"), ("--inptu", "did you mean '--input'?\n")):
        with pytest.raises(SystemExit):
            cli.main(["inspect", "swiglu", flag, "f32[4]"])
        assert capsys.readouterr().err.endswith(hint)


@pytest.mark.parametrize(
    ("text", "count"),
    [("4096", 4096), ("3KiB", 3072), ("1.5 MiB", 3 << 19), ("2kB", 2000), ("1g", 1 << 30)],
)
def test_budgets_have_units(text, count):
    assert values.size(text) == count


@pytest.mark.parametrize("text", ["", "KiB", "-1", "3 KiBs", "1e3", "999999999999TiB"])
def test_budgets_that_are_none_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="bytes"):
        values.size(text)


def test_models_see_the_modules_beside_them(capsys, tmp_path, monkeypatch):
    (tmp_path / "parts_of_it.py").write_text("WIDTH = 12")
    (tmp_path / "whole.py").write_text(
        "import numpy as np, aclnn, parts_of_it\n"
        "def made(): return aclnn.executor('gelu', np.zeros(parts_of_it.WIDTH, np.float32))\n"
    )
    monkeypatch.chdir("/")
    status, text = run(capsys, "inspect", "--model", f"{tmp_path}/whole.py:made", "--view", "graph")
    assert status == 0
    assert "(12)" in text


def test_missing_dimensions_name_the_flag(capsys, tmp_path):
    onnx = pytest.importorskip("onnx")
    text = """<ir_version: 8, opset_import: ["" : 20]>
    f (float[rows, 8] x) => (float[rows, 8] y) { y = Gelu (x) }"""
    onnx.save(onnx.parser.parse_model(text), str(tmp_path / "model.onnx"))
    assert cli.main(["plan", "--model", str(tmp_path / "model.onnx")]) == 1
    assert "--model-dim" in capsys.readouterr().err


def test_threads_bind_plans(capsys):
    call = ["plan", "matmul", "--input", "f32[512,512]", "--other", "f32[512,512]", "--json"]
    sizes = [json.loads(run(capsys, *call, "--threads", n)[1])["threads"] for n in ("1", "2")]
    assert sizes == [1, 2]


def test_tables_fit_a_terminal_and_have_a_wide_form(capsys):
    call = ["inspect", *GELU, "--materialize"]
    for view in ("graph", "plan", "schedule", "profile", "passes"):
        narrow = run(capsys, *call, "--view", view)[1]
        assert max(map(len, narrow.splitlines())) <= 100, view
    wide = run(capsys, *call, "--view", "plan", "--wide")[1]
    assert "shares space with" in wide
    assert "shares space with" not in run(capsys, *call, "--view", "plan")[1]


def test_interrupts_end_commands_without_a_traceback(capsys, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("aclnn.cli.plan._plans", stop)
    assert cli.main(["plan", *GELU]) == 130
    assert capsys.readouterr().err.strip() == "aclnn plan: interrupted"


def test_an_interrupted_search_keeps_the_best_plan(capsys, tmp_path, monkeypatch):
    class Interrupted(strategies.Search):
        def prove(self, timeout):
            self.place()
            raise KeyboardInterrupt

    monkeypatch.setattr(strategies, "Search", Interrupted)
    path = tmp_path / "lives.csv"
    path.write_text("id,lower,upper,size\na,0,2,64\nb,1,3,128\nc,2,4,64\n")
    assert cli.main(["plan", "--lifetimes", str(path), "--strategy", "exact"]) == 0
    found = capsys.readouterr()
    assert "workspace 192 bytes" in found.out
    assert "interrupted" in found.err
    with pytest.raises(KeyboardInterrupt):
        strategies.exact([Lifetime("a", 0, 1, 64)])


def test_ctrl_c_ends_every_part_of_a_long_search(tmp_path):
    """Three thousand buffers: beams and dives take most of the time, the tree next to none."""
    drawn = random.Random(9)
    rows = [
        (drawn.randrange(500), drawn.randrange(1, 200), drawn.randrange(4000)) for _ in range(3000)
    ]
    lines = [f"{n},{low},{low + long},{32 * size + 7}" for n, (low, long, size) in enumerate(rows)]
    path = tmp_path / "lives.csv"
    path.write_text("\n".join(["id,lower,upper,size", *lines]))
    code = (
        "import signal, threading, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background\n"
        "from aclnn import cli\n"
        "from aclnn.graph.planner import strategies\n"
        "begun, search = threading.Event(), strategies.Search\n"
        "strategies.Search = lambda *given: begun.set() or search(*given)\n"
        "def stop():\n"
        "    begun.wait()\n"
        "    time.sleep(0.5)\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "threading.Thread(target=stop, daemon=True).start()\n"
        f"raise SystemExit(cli.main(['plan', '--lifetimes', {str(path)!r}, '--strategy', 'exact', "
        "'--timeout', '100']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "interrupted: the best plan so far" in done.stderr
    assert "strategy exact, feasible" in done.stdout


@pytest.mark.parametrize("command", ["plan", "inspect"])
def test_first_help_fits_a_page(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 60
    assert not [line for line in lines if "--grad-output" in line]
    assert any("--threads" in line for line in lines)
    assert f"aclnn {command} OPERATOR --help" in " ".join(lines)


IN_PLACE = """
import numpy as np
import aclnn

def both(x):
    y = x @ x
    y += 1
    y *= 2
    return (y @ x).sum(), y.T @ y

def planned(**options):
    return aclnn.compile(both, **options).executor(np.ones((96, 96), np.float32))
"""


@pytest.mark.parametrize("materialize", [[], ["--materialize"]], ids=["fused", "whole"])
def test_lifetimes_of_a_model_are_planned_again_to_the_same_size(
    capsys, tmp_path, monkeypatch, materialize
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(IN_PLACE)
    model = ["plan", "--model", "model.py:planned", *materialize, "--threads", "3", "--json"]
    for strategy in ("default", "bucket", "naive", "exact"):
        made = json.loads(run(capsys, *model, "--strategy", strategy, "--csv", "p.csv")[1])
        again = ["plan", "--lifetimes", "p.csv", "--strategy", strategy, "--json"]
        planned = json.loads(run(capsys, *again)[1])
        assert planned["size"] == made["size"] > 0
        rows = [row.split(",") for row in (tmp_path / "p.csv").read_text().splitlines()[1:]]
        places = [tuple(map(int, row[1:])) for row in rows]
        for (lower, upper, size, offset), (low, up, nbytes, place) in itertools.combinations(
            places, 2
        ):
            at_once = lower < up and low < upper
            assert not (at_once and offset < place + nbytes and place < offset + size)


def test_plans_are_compared_with_those_in_csv(capsys, tmp_path):
    lives, placed = tmp_path / "lives.csv", tmp_path / "placed.csv"
    lives.write_text("id,lower,upper,size\na,0,2,100\nb,1,3,60\n")
    assert run(capsys, "plan", "--lifetimes", str(lives), "--csv", str(placed))[0] == 0
    same = ["plan", "--lifetimes", str(lives), "--diff", str(placed), "--json"]
    assert json.loads(run(capsys, *same)[1])["buffers"] == []
    other = json.loads(run(capsys, *same, "--strategy", "naive")[1])
    assert other["size_change"] > 0
    assert cli.main(["plan", "--lifetimes", str(lives), "--diff", str(lives)]) == 1
    assert "lives.csv: no plan: a plan is JSON" in capsys.readouterr().err


def test_files_are_written_although_the_pipe_closes(tmp_path):
    lives, picture, table = (tmp_path / name for name in ("lives.csv", "plan.svg", "plan.csv"))
    lives.write_text(
        "id,lower,upper,size\n" + "".join(f"b{k},{k},{k + 3},64\n" for k in range(9000))
    )
    command = [sys.executable, "-m", "aclnn", "plan", "--lifetimes", str(lives)]
    command += ["--svg", str(picture), "--csv", str(table), "--budget", "10"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as one:
        one.stdout.close()
        told = one.stderr.read()
    assert one.returncode == 1
    assert "over the budget of 10" in told
    assert "Broken pipe" not in told
    assert "Exception ignored" not in told
    ElementTree.fromstring(picture.read_text())
    assert len(table.read_text().splitlines()) == 9001


def test_names_in_files_do_not_command_the_terminal(capsys, tmp_path):
    lives = tmp_path / "lives.csv"
    lives.write_text("id,lower,upper,size\na\x1b[2J\x9b31m,0,2,100\n")
    for flags in ([], ["--wide"], ["--budget", "1"], ["--rich"], ["--diff-strategy", "naive"]):
        cli.main(["plan", "--lifetimes", str(lives), *flags])
        printed = "".join(capsys.readouterr())
        assert "\x1b[2J" not in printed
        assert "\x9b" not in printed
    with pytest.raises(SystemExit):
        cli.main(["inspect", "gelu", "--self", "\x1b[2J"])
    assert "\x1b" not in capsys.readouterr().err


# --- Models ------------------------------------------------------------------------------------------


@pytest.fixture
def model_file(tmp_path):
    onnx = pytest.importorskip("onnx")
    text = """<ir_version: 10, opset_import: ["" : 21]>
    f (float[n, 3] x, int64 k) => (float[n, 3] y, float[n] s) {
      y = Softmax (x)
      t = Constant <value_ints = [1]> ()
      h = Mul (y, x)
      s = ReduceSum <keepdims = 0> (h, t)
      u = Einsum <equation = "ij->ji"> (h)
    }"""
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_models_run_on_arrays_of_files(model_file, tmp_path, capsys):
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    words = ["run", str(model_file), "--input", f"x={tmp_path / 'x.npy'}"]
    assert (
        cli.main([*words, "--output", f"y={tmp_path / 'y.npy'}", "--repeat", "3", "--report"]) == 0
    )
    shown = capsys.readouterr().out
    assert "y: float32[4, 3]\ns: float32[4]\nread in " in shown
    assert "median of 2" in shown
    assert "kernel" in shown
    weights = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(
        np.load(tmp_path / "y.npy"), weights / weights.sum(1, keepdims=True), rtol=1e-6
    )
    assert cli.main(["run", str(model_file), "--model-dim", "n=5"]) == 0
    assert "s: float32[5]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--input", "z=x.npy"], "no input 'z'; those there are: x, k"),
        (["--output", "z=x.npy"], "no output 'z'; those there are: y, s"),
        (["--input", "x"], "--input is 'x', must be NAME=VALUE"),
        ([], "x is needed: give --input x=FILE.npy or --model-dim n=SIZE"),
        (["--model-dim", "n=many"], "--model-dim n is 'many', must be a size"),
        (["--input", "x=none.npy"], "none.npy: No such file"),
    ],
)
def test_what_a_model_lacks_is_said(model_file, words, reason, capsys):
    assert cli.main(["run", str(model_file), *words]) == 1
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("other", ["onnxruntime", "reference"])
def test_models_are_compared_node_by_node(model_file, other, capsys, monkeypatch):
    if other == "onnxruntime":
        pytest.importorskip("onnxruntime")
    words = ["compare", str(model_file), "--model-dim", "n=5", "--with", other]
    assert cli.main(words) == 0
    shown = capsys.readouterr().out
    assert [line.split()[1] for line in shown.splitlines()[1:6]] == [
        "Softmax", "Constant", "Mul", "ReduceSum", "Einsum",
    ]  # fmt: skip
    assert f"all 5 results are within 64 ULP of those of {other}" in shown
    from aclnn.onnx.forms import FORMS

    monkeypatch.setitem(FORMS, "Mul", FORMS["Add"])
    assert cli.main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["first"] == "h"
    assert found["values"][0]["ulp"] <= 2
