"""The device's C++ part: compiled at first use for the PyTorch that runs, and kept in the cache folder."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from types import ModuleType

import torch

from aclnn import measurements

NAME = "aclnn_npu_device"
SOURCE = Path(__file__).with_name("device.cpp")
FLAGS = ("-O1", "-std=c++20", "-fPIC", "-shared", "-fvisibility=hidden")


def loaded() -> ModuleType:
    """The compiled module; compiled where the cache folder has none for this PyTorch and compiler."""
    compiler = _compiler()
    path = measurements.folder() / f"npu-{_fingerprint(compiler)}.so"
    if not path.is_file():
        _compile(compiler, path)
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(path))
    spec = importlib.util.spec_from_file_location(NAME, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _compiler() -> str:
    for name in filter(None, (os.environ.get("CXX"), "g++", "c++", "clang++")):
        if found := shutil.which(name.split()[0]):
            return found
    raise RuntimeError(
        "the npu device is compiled at first use, and there is no C++ compiler: install g++ or clang++, "
        "or name one in the environment variable CXX"
    )


def _fingerprint(compiler: str) -> str:
    """Digest of all that the binary depends on: PyTorch's ABI changes with each minor version."""
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    facts = [torch.__version__, sys.implementation.cache_tag, done.stdout, *FLAGS]
    digest = hashlib.sha256(repr(facts).encode() + SOURCE.read_bytes())
    return digest.hexdigest()[:16]


def _compile(compiler: str, path: Path) -> None:
    """Compile into a file of its own, and put it into its place as a whole: processes may race."""
    top = Path(torch.__file__).parent
    include = top / "include"
    if not (include / "ATen" / "EmptyTensor.h").is_file():
        raise RuntimeError(f"the npu device needs PyTorch's headers, and {include} has none")
    print(
        f"aclnn: compiling the npu device for PyTorch {torch.__version__}, once (about 30 s)",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    begin = time.monotonic()
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    os.close(number)
    headers = (
        include,
        include / "torch" / "csrc" / "api" / "include",
        sysconfig.get_path("include"),
    )
    command = [
        compiler, *FLAGS, *(f"-I{one}" for one in headers), str(SOURCE), "-o", name,
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        f"-L{top / 'lib'}", "-ltorch_cpu", "-lc10", "-ltorch_python", "-ltorch",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line][:5]
            raise RuntimeError("\n".join([f"{compiler} could not compile the npu device:", *lines]))
        os.chmod(name, 0o755)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    print(
        f"aclnn: compiled in {time.monotonic() - begin:.0f} s: {path}", file=sys.stderr, flush=True
    )
