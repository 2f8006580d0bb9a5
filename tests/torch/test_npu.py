"""The emulated npu device: tests that run in processes of their own, since a device stays for its process."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "support" / "npu"

pytestmark = [
    pytest.mark.skipif(
        tuple(map(int, torch.__version__.split("+")[0].split(".")[:2])) < (2, 10),
        reason="needs PyTorch 2.10",
    ),
    pytest.mark.skipif(
        not (shutil.which("g++") or shutil.which("clang++")), reason="needs a C++ compiler"
    ),
]


@pytest.fixture(autouse=True, scope="session")
def compiled_once(measurements_apart, tmp_path_factory):
    """The device's C++ part takes half a minute: processes of the suite have one, not each its own."""
    from aclnn import measurements
    from aclnn.torch.npu import building

    compiler = building._compiler()
    name = f"npu-{building._fingerprint(compiler)}.so"
    own, shared = measurements.folder(), tmp_path_factory.getbasetemp().parent / "compiled"
    for folder in (own, shared):
        folder.mkdir(parents=True, exist_ok=True)
    with open(shared / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / name).is_file():
            building._compile(compiler, shared / name)
    if not (own / name).exists():
        (own / name).symlink_to(shared / name)


def run(*words, **variables):
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("ACLNN_NPU", "PYTEST_"))
    }
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, cwd=ROOT, env=environment | variables, check=False
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("npu_*.py")))
def test_cases(name):
    done = run(
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        str(CASES / f"{name}.py"),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_registered_unasked():
    done = run(
        "-c",
        "import torch, aclnn, aclnn.torch, importlib.util\n"
        "import aclnn.torch.npu as npu\n"
        "assert not npu.is_enabled() and npu.counts() == {}\n"
        "assert not hasattr(torch, 'npu') and importlib.util.find_spec('torch_npu') is None\n"
        "assert torch._C._get_privateuse1_backend_name() == 'privateuseone'",
    )
    assert done.returncode == 0, done.stderr


def test_another_backend_is_left_alone():
    done = run(
        "-c",
        "import torch; torch.utils.rename_privateuse1_backend('other')\n"
        "import aclnn.torch.npu as npu; npu.enable()",
    )
    assert "another PrivateUse1 backend, 'other', is registered" in done.stderr


def test_pytorch_enables_it_by_the_variable(tmp_path):
    folder = tmp_path / "one.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: one\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[torch.backends]\naclnn = aclnn_npu_autoload:load\n")
    shutil.copy(ROOT / "aclnn_npu_autoload.py", tmp_path)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code = "import torch; print(hasattr(torch, 'npu') and torch.npu.mem_get_info()[1])"
    assert run("-c", code, PYTHONPATH=path).stdout.strip() == "False"
    done = run("-c", code, PYTHONPATH=path, ACLNN_NPU="1", ACLNN_NPU_MEMORY="3GiB")
    assert done.stdout.strip() == str(3 << 30), done.stderr
    done = run("-c", code, PYTHONPATH=path, ACLNN_NPU="1", ACLNN_NPU_SOC="nothing")
    assert done.stdout.strip() == "False"
    assert "ACLNN_NPU_SOC is 'nothing', must be one of" in done.stderr


PROGRAMS = (
    "import torch, torch_npu",
    "import torch_npu, torch",
    "import torch_npu; import torch.nn as nn, torch",
)


@pytest.mark.parametrize(
    ("way", "imports"), [*(("command", one) for one in PROGRAMS), ("function", PROGRAMS[1])]
)
def test_orders_of_import(way, imports, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        f"{imports}\nx = torch.ones(2).npu()\nprint(torch_npu.npu_silu(x).device, torch.npu is torch_npu.npu)"
    )
    if way == "command":
        done = run("-m", "aclnn", "npu", str(program))
    else:
        done = run("-c", f"import aclnn.torch.npu as npu; npu.enable()\n{program.read_text()}")
    assert done.stdout.strip() == "npu:0 True", done.stderr


def test_a_real_package_is_left_alone(tmp_path):
    (tmp_path / "torch_npu").mkdir()
    (tmp_path / "torch_npu" / "__init__.py").write_text("")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run("-c", "import aclnn.torch.npu as npu; npu.enable()", PYTHONPATH=path)
    assert "RuntimeError: a real torch_npu is installed" in done.stderr


def test_variables_of_the_vendor():
    code = "import aclnn.torch.npu as npu; npu.enable(); import torch; torch.npu.is_initialized() or torch.ones(1).npu().erfc()"
    done = run("-c", code, TORCH_NPU_FALLBACK_CPU_DISABLE="1")
    assert re.search(r"'aten::erfc\S*' is not currently supported .*\n\[ERROR\] [\d:-]+ \(PID:\d+, Device:0, "
                     r"RankID:-1\) ERR01007 OPS feature not supported", done.stderr), done.stderr  # fmt: skip
    for name, value, values in (
        ("ASCEND_LAUNCH_BLOCKING", "yes", "0, 1"),
        ("TASK_QUEUE_ENABLE", "3", "0, 1, 2"),
    ):
        done = run("-c", code, **{name: value})
        assert f"{name} is '{value}', must be one of {values}" in done.stderr
    warned = run("-c", "import aclnn.torch.npu as npu; npu.enable(fallback='warn'); import torch\n"
                 "x = torch.ones(1).npu(); x.erfc(); x.erfc()").stderr  # fmt: skip
    assert (
        warned.count(
            "is not currently supported on the NPU backend and will fall back to run on the CPU"
        )
        == 1
    )


def test_the_command_runs_unmodified_programs(tmp_path):
    program, report = tmp_path / "program.py", tmp_path / "report.json"
    program.write_text(
        "import sys, torch, torch_npu\n"
        "x = torch.ones(3, device='npu')\n"
        "print(sys.argv[1:], (x + x).sum().item(), torch_npu.is_emulated, torch.npu.device_count())\n"
        "sys.exit(3)\n"
    )
    done = run(
        "-m",
        "aclnn",
        "npu",
        "--devices",
        "2",
        "--report",
        str(report),
        str(program),
        "--help",
        "-1",
    )
    assert done.returncode == 3
    assert done.stdout.strip() == "['--help', '-1'] 6.0 True 2"
    assert '"aten::add.Tensor"' in report.read_text()
    program.write_text("import torch; torch.linalg.svd(torch.ones(2, 2, device='npu'))")
    done = run("-m", "aclnn", "npu", "--forbid-fallback", str(program))
    assert done.returncode == 1
    assert (
        "The operator 'aten::_linalg_svd.U' is not currently supported on the NPU backend"
        in done.stderr
    )
    assert run("-m", "aclnn", "npu", "-m", "this").stdout.startswith("The Zen of Python")


@pytest.mark.parametrize("words", [("--calls", "1500"), ("--calls", "1500", "--computed")])
def test_operators_at_random(words):
    done = run(str(CASES / "fuzz_operators.py"), "--seed", "1", *words, TORCH_CPP_LOG_LEVEL="ERROR")
    assert "died of" not in done.stdout, done.stdout
    assert " calls, " in done.stdout, done.stdout + done.stderr
    if "--computed" in words:  # others are PyTorch's own kernels
        assert done.returncode == 0, done.stdout
