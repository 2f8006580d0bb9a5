"""Programs in C and C++ that are written by hand: what they assert, they say."""

import ctypes
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import c_programs
import numpy as np
import pytest

import aclnn
from aclnn.acl.errors import AclnnError
from aclnn.capi import generator, installation


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    c_programs.require()
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("name", ["views.c", "getters.cpp", "errors.c", "causes.c", "headers.cpp", "pool.cpp", "rebinding.c", "threads.cpp", "capture.cpp", "forks.c", "runtime.cpp", "growth.c", "backend.cpp", "found_shapes.cpp", "sampler.cpp", "sample.cpp", "nibbles.c"])  # fmt: skip
def test_programs_find_what_they_assert(folder, name):
    assert c_programs.run(c_programs.build(name, folder)) == ""


@pytest.mark.parametrize(
    "name", ["threads.cpp", "capture.cpp", "backend.cpp", "found_shapes.cpp", "sampler.cpp"]
)
def test_programs_and_calls_stay_within_memory(folder, name):
    """They find what they assert where a page that nobody may touch is next to their memory."""
    program, library = folder / name.partition(".")[0], c_programs.guard(folder)
    if not program.exists():
        c_programs.build(name, folder)
    for side in ("before", "behind"):
        assert c_programs.run(program, **c_programs.guarded(library, side)) == ""


@pytest.mark.skipif(bool(c_programs.FLAGS), reason="a sanitizer's library has to be the first")
def test_pages_next_to_memory_end_programs(folder):
    text = """#include "acl/acl.h"
    int main(int count, char **) {
      void *memory;
      if (aclInit(nullptr) || aclrtMalloc(&memory, 100, ACL_MEM_MALLOC_HUGE_FIRST)) return 2;
      static_cast<volatile char *>(memory)[count > 1 ? 128 : -1] = 1;
      return 3;
    }
    """
    program, library = c_programs.build(text, folder), c_programs.guard(folder)
    for side, arguments in (("before", ()), ("behind", ("too far",))):
        status = -signal.SIGSEGV
        c_programs.run(program, *arguments, status=status, **c_programs.guarded(library, side))


def test_a_program_in_rust_has_bindings_of_its_own(folder):
    if shutil.which("rustc") is None:
        pytest.skip("there is no compiler of Rust (rustc)")
    program = folder / "bindings"
    source = c_programs.PROGRAMS / "bindings.rs"
    flags = [f"-Clink-arg={flag}" for flag in shlex.split(installation.libs())]
    command = ["rustc", "--edition=2021", "-O", "-Dwarnings", *flags, source, "-o", program]
    subprocess.run(command, check=True)
    assert c_programs.run(program) == ""


def test_programs_run_without_a_cache_of_plans(folder):
    program = folder / "rebinding"
    if not program.exists():
        c_programs.build("rebinding.c", folder)
    assert c_programs.run(program, ACLNN_PLAN_CACHE="0") == ""


@pytest.mark.parametrize(
    ("how", "status"),
    [
        *(("return", 0), ("exit", 3), ("_exit", 4), ("thread", 5), ("finalize", 0)),
        ("interrupt", -signal.SIGINT),
    ],
)
def test_programs_may_end_at_any_time(folder, how, status):
    program = folder / "exits"
    if not program.exists():
        c_programs.build("exits.cpp", folder)
    assert c_programs.run(program, how, status=status) == ""


def test_all_names_open_one_library(folder):
    program = c_programs.build("names.c", folder, links=False)
    assert c_programs.run(program, f"{installation.cann_home()}/lib64") == ""


@pytest.mark.parametrize(
    "flags",
    [
        "-lascendcl -lnnopbase -lopapi",
        "-lacl_rt -lopapi_math -lopapi_nn",
        "-laclnn_cpu",
        "{lib64}/libopapi.so {lib64}/libascendcl.so",
    ],
)
def test_programs_link_each_name(folder, flags):
    lib64 = f"{installation.cann_home()}/lib64"
    flags = shlex.split(f"-L{lib64} -Wl,-rpath,{lib64} {flags.format(lib64=lib64)}")
    object_file = folder / "views.o"
    if not object_file.exists():
        source = c_programs.PROGRAMS / "views.c"
        command = ["gcc", "-c", source, "-o", object_file, *shlex.split(installation.cflags())]
        subprocess.run(command, check=True)
    program = folder / "linked"
    subprocess.run(["gcc", object_file, *flags, "-o", program], check=True)
    assert c_programs.run(program) == ""


def test_an_interpreter_that_cannot_start_is_a_status(folder):
    text = """
#include "acl/acl.h"
#include <cstdio>
int main() {
  int status = aclInit(nullptr);
  void *memory;
  std::printf("%d %d %s\\n", status, aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST), aclGetRecentErrMsg());
}
"""
    program = c_programs.build(text, folder)
    said = c_programs.run(program, ACLNN_PYTHON="/nowhere/python")
    assert said.startswith("100001 561000 ")
    assert "/nowhere/python" in said


def test_exported_symbols_are_those_of_the_interface():
    c_programs.require()
    if shutil.which("nm") is None:
        pytest.skip("there is no nm")
    first, second = generator.symbols(), generator.further_symbols()
    assert not set(first) & set(second)
    exported = dict.fromkeys((generator.LIBRARY, *generator.RUNTIME_NAMES), first)
    exported |= {name: [*first, *second] for name in generator.OPERATOR_NAMES}
    exported[generator.FURTHER_LIBRARY] = second
    for name, wanted in exported.items():
        listed = subprocess.run(
            ["nm", "-D", "--defined-only", f"{installation.cann_home()}/lib64/{name}"],
            capture_output=True,
            text=True,
            check=True,
        )
        found = [line.split()[-1] for line in listed.stdout.splitlines()]
        assert sorted(found) == sorted(wanted)


# --- In a process that Python runs in ---------------------------------------------------------------


@pytest.fixture(scope="module")
def library():
    c_programs.require()
    found = ctypes.CDLL(str(installation.library()))
    found.aclCreateTensor.restype = ctypes.c_void_p
    found.aclGetRecentErrMsg.restype = ctypes.c_char_p
    return found


def described(library, array):
    """A tensor of C on an array."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    made = library.aclCreateTensor(
        shape,
        ctypes.c_uint64(array.ndim),
        0,
        None,
        ctypes.c_int64(0),
        2,
        shape,
        ctypes.c_uint64(array.ndim),
        ctypes.c_void_p(array.ctypes.data),
    )
    assert made
    return ctypes.c_void_p(made)


def test_python_and_the_library_share_plans_and_memory(library):
    x = np.linspace(-2, 2, 64, dtype=np.float32).reshape(8, 8)
    out = np.zeros_like(x)
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    a, b = described(library, x), described(library, out)
    aclnn.clear_cache()
    aclnn.aclnnGeluGetWorkspaceSize(aclnn.tensor(x), aclnn.tensor(out))
    before = aclnn.cache_info()
    status = library.aclnnGeluGetWorkspaceSize(a, b, ctypes.byref(size), ctypes.byref(executor))
    assert status == 0
    after = aclnn.cache_info()
    assert (after["misses"], after["size"]) == (before["misses"], before["size"])
    assert library.aclnnGelu(None, size, executor, None) == 0
    assert out.tobytes() == aclnn.gelu(x).tobytes()
    address = ctypes.c_void_p()
    assert library.aclrtMalloc(ctypes.byref(address), ctypes.c_size_t(256), 0) == 0
    assert (
        aclnn.aclrtMemcpy(address.value, 256, x, 256, aclnn.ACL_MEMCPY_HOST_TO_DEVICE)
        == aclnn.aclrtFree(address.value)
        == 0
    )
    assert library.aclrtFree(address) == 107000
    for one in (a, b):
        assert library.aclDestroyTensor(one) == 0


def test_settings_of_python_hold_for_the_library(library):
    x, out = np.ones((2, 2), np.float32), np.empty((2, 2), np.float32)
    a, b = described(library, x), described(library, out)
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    arguments = a, b, ctypes.byref(size), ctypes.byref(executor)
    assert library.aclnnSquareGetWorkspaceSize(*arguments) == 161002  # which this product lacks
    assert b"Ascend910B" in library.aclGetRecentErrMsg()
    before = aclnn.get_soc_version()
    aclnn.set_soc_version("Ascend950")
    try:
        assert library.aclnnSquareGetWorkspaceSize(*arguments) == 0
        assert library.aclDestroyAclOpExecutor(executor) == 0
    finally:
        aclnn.set_soc_version(before)
    assert library.aclnnSquareGetWorkspaceSize(*arguments) == 161002


def test_children_that_python_forks_go_on():
    c_programs.require()
    program = f"""
import ctypes, os, sys
library = ctypes.CDLL({str(installation.library())!r})
assert library.aclInit(None) == 0
child = os.fork()
if child == 0:
    os._exit(0 if library.aclInit(None) == 100002 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


# --- Headers and what build tools are told -------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "compiler"),
    list(enumerate(["gcc -std=c11 -x c", "g++ -std=c++11 -x c++", "g++ -std=c++20 -x c++"])),
)
def test_every_header_compiles_alone_without_a_warning(folder, first, compiler):
    include = installation.HOME / "include"
    headers = [str(path) for path in sorted(include.rglob("*.h"))]
    assert len(headers) > 1500
    # All of them together, and alone some: as main files of one command, others for each compiler.
    alone = headers[first * 7 :: 21]
    flags = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
    command = [*compiler.split(), *flags, *shlex.split(installation.cflags()), *alone]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    both = folder / "all.c"
    both.write_text("".join(f'#include "{path}"\n' for path in headers), encoding="utf-8")
    subprocess.run([*command[: -len(alone)], str(both)], check=True)


def test_headers_of_a_package_without_them_are_written_once(folder, monkeypatch):
    """To the cache folder, where programs find libraries, too."""
    bare = folder / "bare"
    (bare / "lib64").mkdir(parents=True)
    (bare / "share").symlink_to(installation.HOME / "share")
    for path in (installation.HOME / "lib64").iterdir():
        if path.name not in generator.LINKS:
            (bare / "lib64" / path.name).symlink_to(path)
    cache = folder / "cache"
    monkeypatch.setattr(installation, "HOME", bare)
    monkeypatch.setenv("ACLNN_CACHE_DIR", str(cache))
    installation.home.cache_clear()
    try:
        home = Path(installation.cann_home())
        assert home.parent == cache
        written = {
            path.relative_to(home / "include").as_posix() for path in home.rglob("include/**/*.h")
        }
        assert written == set(generator.headers())
        assert c_programs.run(c_programs.build("views.c", folder)) == ""
        assert {path.name for path in (home / "lib64").iterdir()} >= set(generator.OTHER_NAMES)
        names = c_programs.build("names.c", folder, links=False)
        assert c_programs.run(names, f"{home}/lib64") == ""
        test_programs_link_each_name(folder, "-lascendcl -lnnopbase -lopapi_nn")
        time = (home / "include").stat().st_mtime_ns
        installation.home.cache_clear()
        assert installation.cann_home() == str(home)
        assert (home / "include").stat().st_mtime_ns == time
        assert [path.name for path in cache.iterdir()] == [home.name]
        (folder / "file").touch()
        monkeypatch.setenv("ACLNN_CACHE_DIR", str(folder / "file"))
        installation.home.cache_clear()
        with pytest.raises(
            AclnnError, match=r"headers of the C interface cannot be written.*ACLNN_CACHE_DIR"
        ):
            installation.cflags()
    finally:
        installation.home.cache_clear()


def test_functions_fit_the_types_that_programs_have(folder):
    text = """
#include <memory>
#include <type_traits>
#include "acl/acl.h"
#include "aclnnop/level2/aclnn_add.h"
#include "aclnn_relu.h"
#include "aclnn/opdev/op_errno.h"
std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor *)> tensor(nullptr, aclDestroyTensor);
std::unique_ptr<void, aclError (*)(void *)> memory(nullptr, aclrtFree);
decltype(&aclnnAdd) run = &aclnnRelu;
static_assert(std::is_same<aclError, int>::value && std::is_same<aclnnStatus, int32_t>::value, "");
static_assert(std::is_same<aclrtStream, void *>::value && std::is_same<uint64_t, size_t>::value, "");
static_assert(OK == ACLNN_SUCCESS && ACL_FLOAT == aclDataType::ACL_FLOAT && ACL_BF16 == 27, "");
static_assert(sizeof(aclrtPhysicalMemProp) == 32 && ACL_MAJOR_VERSION == 1, "");
int main() {
  const aclTensor *constant = nullptr;
  size_t size;
  aclOpExecutor *executor;
  int status = aclnnReluGetWorkspaceSize(constant, constant, &size, &executor);
  return status == ACLNN_ERR_PARAM_NULLPTR && ACL_ERROR_RT_FEATURE_NOT_SUPPORT == 207000 ? 0 : 1;
}
"""
    c_programs.run(c_programs.build(text, folder, "-std=c++11"))


def test_pkg_config_says_the_same(folder):
    if shutil.which("pkg-config") is None:
        pytest.skip("there is no pkg-config")
    found = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "aclnn-cpu"],
        env={"PKG_CONFIG_PATH": f"{installation.cann_home()}/lib64/pkgconfig", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    source = c_programs.PROGRAMS / "views.c"
    program = folder / "packaged"
    command = ["gcc", source, *shlex.split(found.stdout), "-o", program]
    subprocess.run(command, check=True)
    assert c_programs.run(program) == ""


def test_cmake_finds_the_package(folder):
    if shutil.which("cmake") is None:
        pytest.skip("there is no cmake")
    (folder / "cmake").mkdir()
    (folder / "cmake" / "CMakeLists.txt").write_text(
        f"""cmake_minimum_required(VERSION 3.16)
project(program C)
find_package(aclnn-cpu 0.1 REQUIRED)
add_executable(program {c_programs.PROGRAMS / "views.c"})
target_link_libraries(program aclnn::aclnn)
""",
        encoding="utf-8",
    )
    build = folder / "cmake" / "build"
    prefix = f"-DCMAKE_PREFIX_PATH={installation.cann_home()}"
    for command in (
        ["cmake", "-S", build.parent, "-B", build, prefix],
        ["cmake", "--build", build],
    ):
        subprocess.run(command, check=True, capture_output=True)
    assert c_programs.run(build / "program") == ""


def test_the_command_line_says_how_to_build(capsys):
    c_programs.require()
    from aclnn.cli import main

    assert main(["config", "--libs", "--cflags"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line == f"{installation.cflags()} {installation.libs()}"
    assert main(["config", "--cann-home"]) == 0
    assert capsys.readouterr().out.strip() == installation.cann_home()
    assert main(["config", "--capi"]) == 0
    assert "libpython" in capsys.readouterr().out


# --- What programs ran -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["views.c", "errors.c", "rebinding.c", "capture.cpp", "found_shapes.cpp"]
)
def test_recorded_calls_reproduce_themselves(folder, name, tmp_path):
    program = folder / name.partition(".")[0]
    if not program.exists():
        c_programs.build(name, folder)
    file = tmp_path / "calls.py"
    assert c_programs.run(program, ACLNN_RECORD=str(file)) == ""
    text = file.read_text(encoding="utf-8")
    assert text.count("GetWorkspaceSize(") >= 2
    # Each line asserts what the program got.
    done = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_record_whose_result_is_another_one_fails(folder, tmp_path):
    """The copies' contents are compared."""
    file = tmp_path / "calls.py"
    program = folder / "views"
    if not program.exists():
        c_programs.build("views.c", folder)
    c_programs.run(program, ACLNN_RECORD=str(file))
    lines = file.read_text(encoding="utf-8").splitlines()
    (place, *_) = [k for k, line in enumerate(lines) if "assert host ==" in line]
    lines[place] = lines[place].replace('bytearray.fromhex("', 'bytearray.fromhex("00')
    file.write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run([sys.executable, file], capture_output=True, check=False, timeout=60)
    assert b"AssertionError" in done.stderr


def test_a_report_has_what_ran(folder, tmp_path):
    page = tmp_path / "report.html"
    source = c_programs.PROGRAMS.parents[2] / "examples" / "cpp" / "inference.cpp"
    if not source.exists():
        pytest.skip("run from an installation without sources")
    said = c_programs.run(c_programs.build(source, folder), ACLNN_REPORT=str(page))
    assert said.count("sum of the row 1.0000") == 8
    text = page.read_text(encoding="utf-8")
    assert "48 runs of 6 plans" in text
    for name in ("RmsNorm", "Matmul", "Gelu", "Add", "Softmax"):
        assert f"<h3>aclnn{name}: " in text
    assert text.count("<svg") > 10


def test_a_report_has_captured_models(folder, tmp_path):
    page = tmp_path / "report.html"
    program = folder / "sampler"
    if not program.exists():
        c_programs.build("sampler.cpp", folder)
    assert c_programs.run(program, ACLNN_REPORT=str(page)) == ""
    text = page.read_text(encoding="utf-8")
    assert text.count("6 runs, ") == 1  # of the model, three for each of two captures
    assert "<h3>aclnnOneHot: 2 runs" in text


def test_the_program_of_the_documentation_runs(folder):
    page = c_programs.PROGRAMS.parents[2] / "docs" / "c-programs.md"
    if not page.exists():
        pytest.skip("run from an installation without sources")
    (text,) = page.read_text(encoding="utf-8").split("```cpp\n")[1:]
    program = c_programs.build(text.partition("```")[0], folder)
    assert c_programs.run(program) == "-0.158655 0 0.841345\n"


@pytest.mark.parametrize("name", ["ACLNN_RECORD", "ACLNN_REPORT"])
def test_a_file_that_cannot_be_is_refused_at_the_start(folder, name):
    text = """
#include "acl/acl.h"
#include <cstdio>
int main() {
  int status = aclInit(nullptr);
  std::printf("%d %s\\n", status, aclGetRecentErrMsg());
}
"""
    said = c_programs.run(c_programs.build(text, folder), **{name: "/nowhere/file"})
    assert said.startswith("100001 ")
    assert f"{name} is '/nowhere/file', must be" in said


def test_a_started_interpreter_leaves_the_process_alone(folder):
    """Signals, the locale, and variables that Python reads."""
    text = """
#include <csignal>
#include <clocale>
#include <string>
#include "checks.h"
int main() {
  struct sigaction before, after;
  sigaction(SIGINT, nullptr, &before);
  std::string locale = std::setlocale(LC_ALL, nullptr);
  OK_(aclInit(nullptr));
  sigaction(SIGINT, nullptr, &after);
  CHECK(before.sa_handler == after.sa_handler);
  sigaction(SIGPIPE, nullptr, &after);
  CHECK(after.sa_handler == SIG_DFL);
  CHECK(locale == std::setlocale(LC_ALL, nullptr));
}
"""
    program = c_programs.build(text, folder, f"-I{c_programs.PROGRAMS}")
    changes = {"PYTHONHOME": "/nowhere", "PYTHONPATH": "/nowhere", "LC_ALL": "de_DE.UTF-8"}
    assert c_programs.run(program, **changes) == ""
