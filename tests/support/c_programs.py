"""Programs in C and C++, built with the machine's compiler and run."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from aclnn.acl.errors import AclnnError
from aclnn.capi import installation

PROGRAMS = Path(__file__).parents[1] / "capi" / "programs"
# Another build of the package, and flags for it: `make sanitize-capi`.
HOME = os.environ.get("CAPI_HOME")
FLAGS = shlex.split(os.environ.get("CAPI_FLAGS", ""))


def require() -> None:
    """Skip where programs cannot be built or cannot start an interpreter."""
    if shutil.which("g++") is None or shutil.which("gcc") is None:
        pytest.skip("there is no C and C++ compiler (gcc, g++)")
    try:
        installation.library()
    except AclnnError as error:
        pytest.skip(str(error))
    if installation.interpreter() is None:
        pytest.skip("this Python has no shared libpython that programs could start")


def build(source: Path | str, folder: Path, *flags: str, links: bool = True) -> Path:
    """Build a program, whose name in `PROGRAMS` or whose text is given.

    Without `links` it is not linked with the library.
    """
    path = PROGRAMS / source if isinstance(source, str) and "\n" not in source else source
    if isinstance(path, str):
        path = folder / "program.cpp"
        path.write_text(str(source), encoding="utf-8")
    program = folder / Path(path).stem
    is_cpp = Path(path).suffix == ".cpp"
    compiler = ["g++", "-std=c++17"] if is_cpp else ["gcc", "-std=gnu11"]
    command = [*compiler, "-Wall", "-Wextra", "-Werror", "-g", *FLAGS, *flags, str(path)]
    own = f"{installation.cflags()} {installation.libs() if links else ''}"
    command += shlex.split(own.replace(str(installation.HOME), HOME) if HOME else own)
    command += ["-o", str(program), "-pthread", "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def guard(folder: Path) -> Path:
    """A library that puts the device memory of programs between pages that nobody may touch."""
    library = folder / "guarded.so"
    if library.exists():
        return library
    command = [
        "gcc",
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "-shared",
        "-fPIC",
        *FLAGS,
    ]
    command += [str(PROGRAMS / "guarded.c"), "-o", str(library), "-ldl", "-pthread"]
    subprocess.run(command, check=True)
    return library


def guarded(library: Path, side: str) -> dict[str, str]:
    """Settings of a program that is run with it: the page that counts comes `before` or `behind`.

    None where a sanitizer looks: its library has to be the first.
    """
    if FLAGS:
        return {}
    return {"LD_PRELOAD": str(library), "ACLNN_TEST_GUARD": side}


def environment(**changes: str) -> dict[str, str]:
    """What programs are run with: no settings of the tests' own."""
    found = {name: value for name, value in os.environ.items() if not name.startswith("ACLNN_")}
    found["ASAN_OPTIONS"] = "detect_leaks=0"
    if HOME:
        found["ACLNN_PYTHON"] = sys.executable
    return found | {"ACLNN_NUM_THREADS": "1"} | changes


def run(program: Path, *arguments: object, status: int = 0, **changes: str) -> str:
    """What a program prints; its exit status is asserted, and that it says nothing else."""
    done = subprocess.run(
        [str(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment(**changes),
    )
    assert done.returncode == status, (
        f"{done.returncode}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    )
    assert done.stderr == ""
    return done.stdout
