"""What type checkers make of calls, and of the examples, in the package as it is installed."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cases import each

import aclnn
from aclnn.operators import REGISTRY

ROOT = Path(__file__).parents[2]
# Without those of PyTorch, whose types depend on what is installed.
EXAMPLES = sorted(
    str(path)
    for path in (ROOT / "examples").glob("*.py")
    if "import torch" not in path.read_text(encoding="utf-8")
)


@pytest.fixture
def installed(tmp_path):
    """A folder with the package as wheels have it: with the graphs inside."""
    package = tmp_path / "installed" / "aclnn"
    package.mkdir(parents=True)
    for one in (ROOT / "aclnn").iterdir():
        (package / one.name).symlink_to(one)
    (package / "graph").symlink_to(ROOT / "graph")
    return package.parent


def strictly(installed, *files):
    """What mypy says of files in its strictest mode."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--follow-imports=silent",
    ]
    command += ["--cache-dir", str(installed.parent / "cache"), *files]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=installed,
        env={"MYPYPATH": str(installed)},
    )  # fmt: skip


def test_type_checkers_know_what_calls_give(installed, tmp_path):
    pytest.importorskip("mypy")
    calls = Path(__file__).parents[1] / "support" / "typed_calls.py"
    done = strictly(installed, str(calls), *EXAMPLES)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import aclnn\naclnn.executor('gelu', [1.0]).plan.to_text() + 1\n")
    done = strictly(installed, str(wrong))
    assert "Unsupported operand types" in done.stdout
    starred = tmp_path / "starred.py"
    starred.write_text("from aclnn import *\nlargest: int = max(1, 2)\ngelu([1.0]).tolist()\n")
    done = strictly(installed, str(starred))
    assert done.returncode == 0, done.stdout


def found_checker(name):
    """The command of a checker: that of this environment before others."""
    beside = str(Path(sys.executable).parent)
    return shutil.which(name, path=os.pathsep.join([beside, os.environ.get("PATH", "")]))


@pytest.mark.parametrize("checker", ["pyright", "basedpyright"])
def test_pyright_agrees_in_its_strict_mode(installed, checker):
    if (command := found_checker(checker)) is None:
        pytest.skip(f"{checker} is not installed")
    settings = installed / "pyrightconfig.json"
    settings.write_text(
        f'{{"extraPaths": ["{installed}"], "typeCheckingMode": "strict", "include": ["*.py"]}}'
    )
    for name in (Path(__file__).parents[1] / "support" / "typed_calls.py", *map(Path, EXAMPLES)):
        shutil.copy(name, installed)
    (installed / "wrong.py").write_text("import aclnn\nx: int = aclnn.get_soc_version()\n")
    done = subprocess.run(
        [command, "--outputjson", "--level", "error", "--pythonpath", sys.executable,
         "--project", str(settings)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["summary"]["filesAnalyzed"] == len(EXAMPLES) + 2
    (wrong,) = told["generalDiagnostics"]
    assert Path(wrong["file"]).name == "wrong.py"
    assert wrong["rule"] == "reportAssignmentType"


MADE = runpy.run_path(str(ROOT / "tools" / "make_stub.py"))


@cache
def known_operators():
    """What the stub knows of results, by the names of those of which it knows something."""
    every = {one.name: one for one in REGISTRY.values() if one.functional}
    return {
        name: (one, known) for name, one in every.items() if (known := list(MADE["_known"](one)))
    }


def taken_as(value, kind, dtype):
    """What an example gives, as what the stub says: arrays of a dtype, a list of them, a number."""
    if kind == "float":
        return 2.0
    if isinstance(value, list | tuple):
        return [taken_as(each, kind, dtype) for each in value]
    return np.asarray(value).astype(dtype) if "[_" in kind and value is not None else value


def claimed(kind, dtype):
    return {"NDArray[np.bool]": "bool"}.get(kind, dtype if "[_" in kind else kind[11:-1])


@each("name", lambda: known_operators())
def test_results_have_the_dtypes_that_the_stub_claims(name):
    """The examples, in every dtype that operands may have: results are as type checkers see them."""
    one, every = known_operators()[name]
    needed = dict.fromkeys([role for role in one.positional if one.is_required(role)])
    given, checked = needed | MADE["_given"](one), 0
    for known in every:
        dtypes = ["float16", "float32", "float64"]
        dtypes += (
            [] if "NDArray[_F]" in known.operands.values() else ["bool", "int8", "int32", "int64"]
        )
        for dtype in dtypes:
            operands = {
                role: taken_as(value, known.operands.get(role, ""), dtype)
                for role, value in given.items()
            }
            try:
                made = getattr(aclnn, one.functional_names[0])(**operands)
            except aclnn.AclnnError:
                continue  # a dtype that this operator lacks
            made = made if isinstance(made, tuple) else (made,)
            kinds = known.results * (len(made) if one.makes else 1)
            for result, kind in zip(made, kinds, strict=True):
                assert kind == "NDArray[Any]" or result.dtype.name == claimed(kind, dtype), known
            checked += 1
    assert checked


def test_most_functions_have_results_of_known_dtypes():
    unknown = {one.name for one in REGISTRY.values() if one.functional} - set(known_operators())
    # A dtype that is an option, or that comes of no operand.
    assert unknown == {
        "any", "all", "arange", "cast", "linspace", "quant_matmul", "quantize",
    }  # fmt: skip
