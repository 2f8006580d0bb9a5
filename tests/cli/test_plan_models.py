"""`aclnn plan` of models: sums, ranges of sizes, proposals, and a gate for CI."""

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import aclnn
from aclnn import cli
from aclnn.reports.footprint import footprint

MODEL = """
import numpy as np
import aclnn


def mlp(x, up, down):
    return x + aclnn.gelu(aclnn.layer_norm(x, (64,)) @ up) @ down


def planned(tokens=16, width=64, **options):
    x = np.ones((tokens, 64), np.float32)
    up, down = np.ones((64, 4 * width), np.float32), np.ones((4 * width, 64), np.float32)
    return aclnn.compile(mlp, threads=1, **options).executor(x, up, down)


def module(tokens=16):
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
    return net, torch.ones(tokens, 64)


def nothing(**options):
    return 3
"""


@pytest.fixture(autouse=True)
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)


def run(capsys, *arguments):
    try:
        status = cli.main(["plan", *arguments])
    except SystemExit as stopped:
        status = stopped.code
    out, err = capsys.readouterr()
    return status, out, err


def test_the_sum_of_a_function(capsys):
    given = ["--model", "model.py:planned", "--total", "--weights", "up", "--weights", "d*"]
    status, out, _ = run(capsys, *given, "--assume", "kernels=1MiB", "--assume", "runtime=100")
    assert status == 0
    assert max(map(len, out.splitlines())) <= 100
    assert "--assume kernels=BYTES" in " ".join(out.split())
    found = json.loads(run(capsys, *given, "--assume", "kernels=0", "--json")[1])
    plan = json.loads(run(capsys, "--model", "model.py:planned", "--json")[1])
    assert found["kinds"]["weights"] == 2 * 64 * 256 * 4
    assert found["kinds"]["inputs"] == found["kinds"]["outputs"] == 16 * 64 * 4
    assert found["kinds"]["workspace"] + found["kinds"]["scratch"] == plan["size"]
    assert found["total"] == 2 * 64 * 256 * 4 + 2 * 16 * 64 * 4 + plan["size"]
    status, _, err = run(capsys, *given, "--capacity", "100KiB")
    assert status == 1
    assert "over the capacity of 102400: kernel workspace 16777216, weights 131072" in err


def test_the_sum_of_an_operator(capsys):
    call = ["softmax", "--input", "float32[4,8]", "--dim", "0", "--total", "--assume", "kernels=0"]
    found = json.loads(run(capsys, *call, "--json")[1])
    assert found["kinds"]["inputs"] == found["kinds"]["outputs"] == 128


def test_the_sum_of_a_capture():
    stream, _ = aclnn.aclrtCreateStream()
    x, y, z = (np.ones((64, 64), np.float32) for _ in range(3))
    mode = aclnn.aclmdlRICaptureMode.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL
    assert aclnn.aclmdlRICaptureBegin(stream, mode) == 0
    for source, target in ((x, y), (y, z)):
        size, executor, _ = aclnn.aclnnReluGetWorkspaceSize(
            aclnn.tensor(source), aclnn.tensor(target)
        )
        assert aclnn.aclnnRelu(None, size, executor, stream) == 0
    captured, status = aclnn.aclmdlRICaptureEnd(stream)
    assert status == 0
    made = footprint(captured, kernel_workspace=0, runtime=7)
    assert made.of_kind("inputs") == x.nbytes
    assert made.of_kind("outputs") == y.nbytes + z.nbytes  # the caller's, and stored
    assert made.total == 3 * x.nbytes + captured.executor.plan.size + 7
    assert aclnn.aclmdlRIDestroy(captured) == aclnn.aclrtDestroyStream(stream) == 0


def test_what_is_written_to_is_a_cache():
    def step(cache, x):
        cache[:4] = x
        return cache.sum()

    cache, x = np.zeros((64, 8), np.float32), np.ones((4, 8), np.float32)
    made = footprint(aclnn.compile(step), cache, x, kernel_workspace=0)
    assert made.of_kind("caches") == cache.nbytes
    assert made.of_kind("inputs") == x.nbytes


def test_the_sum_of_a_model_in_onnx(capsys, tmp_path):
    onnx = pytest.importorskip("onnx")
    weights = ",".join(["0.5"] * 64 * 32)
    text = (
        '<ir_version: 8, opset_import: ["" : 20]> f (float[n, 64] x) => (float[n, 32] y) '
        f"<float[64,32] w = {{{weights}}}> {{h = MatMul(x, w)\n y = Softmax(h)}}"
    )
    onnx.save(onnx.parser.parse_model(text), tmp_path / "f.onnx")
    given = ["--model", "f.onnx", "--total", "--json", "--assume", "kernels=0"]
    found = json.loads(run(capsys, *given, "--model-dim", "n=8")[1])
    assert found["kinds"]["weights"] == 64 * 32 * 4
    assert found["kinds"]["inputs"] == 8 * 64 * 4
    assert found["kinds"]["packed weights"] == sum(one["nbytes"] for one in found["plan"]["packed"])
    curve = json.loads(run(capsys, *given, "--model-dim", "n=1..64")[1])
    ((least, _), *_, (most, nbytes)) = [(one["size"], one["bytes"]) for one in curve["points"]]
    assert (least, most) == (1, 64)
    assert nbytes > found["total"]
    status, _, err = run(capsys, "--model", "f.onnx", "--total")
    assert status == 1
    assert "--model-dim NAME=SIZE" in err


def test_the_sum_of_a_module(capsys):
    pytest.importorskip("torch")
    given = ["--model", "model.py:module", "--total", "--assume", "kernels=0", "--json"]
    found = json.loads(run(capsys, *given)[1])
    assert found["kinds"]["weights"] == 4 * (64 * 256 + 256 + 256 * 64 + 64)
    assert found["kinds"]["inputs"] == found["kinds"]["outputs"] == 16 * 64 * 4
    assert found["kinds"]["workspace"] == 2 * 16 * 256 * 4  # before and behind the GELU
    curve = json.loads(run(capsys, *given, "--model-dim", "tokens=2..4")[1])
    sizes = [one["bytes"] for one in curve["points"]]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] == 4 * (2 * 64 + 2 * 256)


def test_ranges_find_the_largest_that_fits(capsys):
    given = ["--model", "model.py:planned", "--model-dim", "tokens=1..512", "--capacity", "300KiB"]
    status, out, _ = run(capsys, *given, "--svg", "curve.svg")
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    ElementTree.parse("curve.svg")
    found = json.loads(run(capsys, *given, "--json")[1])
    size_of = {one["size"]: one["bytes"] for one in found["points"]}
    largest = found["largest"]
    assert size_of[largest] <= 300 * 1024 < size_of[largest + 1]
    for tokens in (largest, largest + 1):
        one = ["--model", "model.py:planned", "--model-dim", f"tokens={tokens}", "--json"]
        assert json.loads(run(capsys, *one)[1])["size"] == size_of[tokens]
    assert run(capsys, *given[:-1], "64")[0] == 1


def test_two_ranges(capsys):
    given = ["--model-dim", "tokens=1..64", "--model-dim", "width=1..9", "--capacity", "100KiB"]
    status, out, _ = run(capsys, "--model", "model.py:planned", *given, "--json")
    found = json.loads(out)
    assert status == 0
    assert [one["at"]["width"] for one in found] == [1, 2, 3, 5, 9]
    largest = [one["largest"] for one in found]
    assert largest == sorted(largest, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gelu", "--self", "float32[3]", "--model-dim", "n=1..3"], "--model-dim with a range is for --model"),
        (["--model", "model.py:planned", "--model-dim", "n=3..1"], "must be NAME=LOWER..UPPER"),
        (["--model", "model.py:planned", "--model-dim", "n=0..1"], "must be NAME=LOWER..UPPER"),
        (["--model", "model.py:planned", "--model-dim", "n=1", "--model-dim", "n=2"], "--model-dim n is given twice"),
        (["--model", "model.py:planned", "--model-dim", "tokens=1..3", "--csv", "x"], "--csv is for one size"),
        (["--model", "model.py:nothing", "--model-dim", "tokens=1..3"], "gives no executor"),
        (["--model", "model.py:nothing", "--total"], "model is 3, must be an executor"),
        (["--model", "model.py:planned", "--model-dim", "sizes=1..3"], "at sizes=1: "),
        (["--model", "model.py:planned", "--total", "--reduce"], "--reduce is not for --total"),
        (["--model", "model.py:planned", "--total", "--csv", "x"], "--csv is not for --total"),
        (["--model", "model.py:planned", "--weights", "w"], "--weights is for --total"),
        (["--model", "model.py:planned", "--total", "--assume", "driver=1"], "must be kernels=BYTES or runtime=BYTES"),
        (["--model", "model.py:planned", "--fail-above", "1%"], "--fail-above is for --diff"),
        (["--model", "model.py:planned", "--diff", "x", "--fail-above", "1"], "must be a percentage"),
        (["--lifetimes", "x.csv", "--total"], "--total is for models"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(capsys, arguments, words):
    status, _, err = run(capsys, *arguments)
    assert status != 0
    assert words in err


def test_the_gate_fails_when_a_plan_grew(capsys, tmp_path):
    given = ["--model", "model.py:planned"]
    (tmp_path / "old.json").write_text(run(capsys, *given, "--json")[1])
    gate = ["--diff", "old.json", "--fail-above", "1%"]
    assert run(capsys, *given, *gate)[0] == 0
    status, out, err = run(capsys, *given, "--materialize", *gate, "--json")
    assert status == 1
    change = json.loads(out)["size_change"]
    assert f"mlp grew by {change} bytes (" in err
    assert run(capsys, *given, "--materialize", *gate[:-1], "900%")[0] == 0
    assert run(capsys, *given, *gate, "--budget", "64")[0] == 1


def test_changes_are_proposed(capsys, tmp_path):
    (tmp_path / "lives.csv").write_text(
        "id,lower,upper,size\nskip,0,9,4096\na,2,5,4096\nb,4,6,8192\n"
    )
    status, out, _ = run(capsys, "--lifetimes", "lives.csv", "--reduce")
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    found = json.loads(run(capsys, "--lifetimes", "lives.csv", "--reduce", "--json")[1])
    assert found["changes"][0]["name"] == "skip"
    status, out, _ = run(capsys, "--model", "model.py:planned", "--materialize", "--reduce")
    assert status == 0
    assert "order of steps:" in out


def test_a_gap_above_the_bound_is_told(capsys, tmp_path):
    """Seven buffers whose bound no plan reaches, which a search proves."""
    rows = [(0, 4, 64), (0, 2, 128), (2, 6, 128), (4, 8, 64), (6, 8, 128), (3, 5, 64), (1, 3, 64)]
    text = "".join(f"b{i},{a},{b},{n}\n" for i, (a, b, n) in enumerate(rows))
    (tmp_path / "lives.csv").write_text("id,lower,upper,size\n" + text)
    plan = json.loads(run(capsys, "--lifetimes", "lives.csv", "--json")[1])
    err = run(capsys, "--lifetimes", "lives.csv")[2]
    told = "above the bound; --strategy exact may find a smaller plan" in err
    assert told == (plan["proof"] == "feasible" and plan["size"] > plan["lower_bound"])
