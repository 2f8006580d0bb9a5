"""What is built and installed."""

import ast
import importlib
import importlib.util
import os
import pathlib
import platform
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import aclnn

ROOT = pathlib.Path(__file__).parents[2]
if not (ROOT / "setup.py").exists():
    pytest.skip("run from an installation without sources", allow_module_level=True)

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

FOR_DEVELOPERS = ("all", "docs", "test", "test-models", "dev")


@pytest.fixture
def setup_in(tmp_path):
    """What setup.py defines, run from a folder of its own."""
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    shutil.copy(ROOT / "setup.py", tmp_path)
    (tmp_path / "graph").mkdir()
    return runpy.run_path(str(tmp_path / "setup.py"))


def test_without_kernels_nothing_is_built(setup_in):
    with pytest.raises(SystemExit) as caught:
        setup_in["kernel_extensions"]()
    assert "no aclnn/_kernels.pyx" in str(caught.value.code)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--quiet", "sdist", "--formats", "gztar"], []),
        (["egg_info"], []),
        (["dist_info", "--output-dir", "dist"], []),
        (["bdist_wheel"], ["kernels", "others"]),
        (["sdist", "build_ext", "--inplace"], ["kernels", "others"]),
        (["editable_wheel"], ["kernels", "others"]),
    ],
)
def test_sources_are_translated_only_to_be_compiled(setup_in, monkeypatch, arguments, found):
    function = setup_in["all_extensions"]
    for name, given in {
        "kernel_extensions": lambda: ["kernels"],
        "translated_extensions": lambda: ["others"],
        "longest_first": list,
    }.items():
        monkeypatch.setitem(function.__globals__, name, given)
    assert function(arguments) == found


@pytest.mark.skipif(platform.machine() != "x86_64", reason="programs are made on x86-64")
def test_without_jumps_there_are_no_programs(setup_in, monkeypatch, capsys):
    """A compiler that ends steps with calls is found by what it makes of one."""
    monkeypatch.setitem(setup_in["say"].__globals__, "say", print)
    for isa, flags in setup_in["X86_LEVELS"].items():
        assert setup_in["runs_programs"](isa, flags)
        assert capsys.readouterr().out == ""
        for option in ("-O0", "-fno-optimize-sibling-calls"):
            assert not setup_in["runs_programs"](isa, [*flags, option])
            assert "fused loops go over blocks in cache" in capsys.readouterr().out
    monkeypatch.setenv("CFLAGS", "-fno-optimize-sibling-calls")
    assert not setup_in["runs_programs"]("v3", setup_in["X86_LEVELS"]["v3"])
    monkeypatch.setenv("ACLNN_BUILD_SANITIZE", "1")
    assert setup_in["runs_programs"]("v3", setup_in["X86_LEVELS"]["v3"])


@pytest.fixture
def made_in(tmp_path):
    """What `tools/make_kernels.py` makes of records, given as text."""
    own = runpy.run_path(str(ROOT / "tools" / "make_kernels.py"))
    for name in ("__init__", "record"):
        shutil.copy(ROOT / "aclnn" / "kernels" / f"{name}.py", tmp_path)

    def made(*records):
        text = (
            "from .record import "
            "HalfForm, Record, State, StepForm, Steps, VectorForm, opaque, point\n"
        )
        (tmp_path / "some.py").write_text(f"{text}RECORDS = ({', '.join(records)},)\n")
        with pytest.MonkeyPatch.context() as patch:
            for name in [one for one in sys.modules if one.split(".")[0] == "kernels"]:
                patch.delitem(sys.modules, name)
            found = own["sources"](tmp_path)
            for name in [one for one in sys.modules if one.split(".")[0] == "kernels"]:
                del sys.modules[name]
        return found

    return made


def test_loops_are_made_from_records(made_in):
    made = made_in(
        'point("twice", "x", cost=1, computed_in="real")',
        'point("total", "a b", "c", cost=2, computed_in="double", forms="f64 half")',
    )
    loops = made["formula_loops.pxi"]
    assert loops.count("cdef void ") == 5
    assert 'add("twice", 1, False, twice_in_float, NULL, twice_in_double, twice_in_double' in loops
    assert (
        'add("total", 2, False, NULL, total_half_in_float, total_in_double, total_f64_in_double, '
        "NULL, NULL)"
    ) in loops
    # A half in float may be in doubt, which the formula in double decides.
    assert "f32_to_odd(formulas.total(<double>a[i], <double>b[i], p))" in loops
    assert "cdef double own[1]" in loops
    assert made["formula_facts.pxi"].count("FormulaFacts(") == 2
    assert "add(" not in made["simd_forms.pxi"]


def test_each_form_over_vectors_is_entered_once(made_in):
    made = made_in(
        'point("some", "g x", cost=1, computed_in="num", vectors=VectorForm(root="1.5"))',
        'point("other", "x", cost=1, computed_in="real", halves=HalfForm(), '
        'steps=Steps(StepForm("f"), StepForm("g", half="keep")))',
    )["simd_forms.pxi"]
    assert 'add("some", simd_path_t(some_form_f32, some_form_f16' in made
    assert 'add("other", simd_path_t(NULL, other_exact_f16, other_exact_bf16, NULL' in made
    assert "some_in_pair_t" in made
    assert "some_in_vecf" not in made  # beside a root it takes pairs
    assert "add_form" not in made


def test_a_state_is_packed_from_a_record(made_in):
    made = made_in(
        'opaque("some", "x bias?", body="family", onnx=(), work="2.0 * n", chunks="state.k", '
        'state=State("some_state", "load_fn load\\nint bias, k  # how many\\nbint wraps"), '
        "arguments=\"wraps; n, k = x[-1], attr('k', 1); load = reader(inputs[0], 'float32')\", "
        'parts="double row[n * k]  # of x", check=("look", "(0,)"), '
        'failures=(("BAD", "{detail} of {n}"), (7, "{detail}")))',
        'opaque("other", "x", body="sorting", onnx=(), factory="other_kernels:other_kernel", '
        "arguments=\"axis = attr('axis') % len(x); n = x[axis]\")",
        'opaque("third", "x", body="sorting", onnx=(), factory="other_kernels:other_kernel", '
        "arguments=\"axis = attr('axis') % len(x); n = x[axis]\")",
    )
    states, nodes, facts = (
        made[name] for name in ("family_states.pxi", "family_nodes.pxi", "opaque_facts.pxi")
    )
    assert "    int bias, k  # how many\n" in states
    assert "part_of(scratch, n * state.k * sizeof(double), &used)" in states
    for line in (
        "places = places_of(('x', 'bias?', 'result'), attr(\"present\", ()), len(inputs) + len(outputs))",
        'state.bias = places.get("bias", -1)',
        "state.wraps = attr('wraps')",
        "x = views[0].shape",
        "n = x[-1]",
        "state.k = attr('k', 1)",
        "state.load = reader(inputs[0], 'float32')",
        "BAD: f'{{detail}} of {n}',",
        "7: '{detail}',",
        "state.k, divide_some(&state, n, NULL, &parts), failures,",
        "return checked_by(made, look, (0,))",
    ):
        assert f"    {line}\n" in nodes
    # Kernels that are made in one way share the function.
    assert facts.count("isa.other_kernels().other_kernel(") == 1
    assert '"third": "_opaque_kernels:other_kernel"' in facts
    assert '"some": "_family_kernels:some_kernel"' in facts


def test_states_of_kernels_with_loops_for_each_instruction_set(made_in):
    made = made_in(
        'opaque("some", "a b* c?", body="family", onnx=(), work="1.0", function="both", per_set=True, '
        'state=State("some_state", "load_fn load\\nint c\\nbint wide"), '
        "arguments=\"n = b[0]; wide = inputs[0] == 'float64'; "
        "load = reader(inputs[0], 'float64' if state.wide else 'float32')\", "
        'parts="float row[n + 1]\\nchar other[max(8, n) * (8 if wide else 4)]")',
        'opaque("other", "a b* c?", body="family", onnx=(), work="1.0", function="both", per_set=True, '
        'state=State("some_state", "load_fn load\\nint c\\nbint wide"), arguments="n = 2", '
        'parts="float row[n + 1]\\nchar other[max(8, n) * (8 if wide else 4)]")',
    )
    states, nodes = made["family_states.pxi"], made["family_nodes.pxi"]
    # Kernels that share a function share the division of its scratch; a sum counts before its bytes.
    assert states.count("cdef struct some_state:") == states.count("divide_both(") == 1
    assert "part_of(scratch, (n + 1) * sizeof(float), &used)" in states
    assert "max(8, n) * (8 if state.wide else 4) * sizeof(char), &used)" in states
    assert nodes.count("cdef load_fn reader(") == 1
    assert "('float16', 'float64')" in nodes
    assert "('int8', 'float32')" in nodes
    assert "return load_of(set_in_use(), dtype, computed)" in nodes
    assert "writer" not in nodes
    assert "places_of(('a', 'b*', 'c?', 'result'), " in nodes
    assert '"other", inputs, outputs, both, &state, sizeof(state), 1.0,' in nodes


@pytest.mark.parametrize(
    ("record", "flaw"),
    [
        ('point("five", "a b c d e", cost=1, computed_in="real")', "at most 4 elements"),
        ('point("odd", "a", cost=1, computed_in="half")', "'half' is none of"),
        (
            'point("three", "a b c", cost=1, computed_in="num", vectors=VectorForm())',
            "one or two elements",
        ),
        (
            'opaque("some", "x", body="a", onnx=(), work="1.0", state=State("s", "int k"), '
            'arguments="k, kk")',
            "some: nothing reads kk",
        ),
        (
            'opaque("some", "x", body="a", onnx=(), work="1.0", state=State("s", "int k, n"), '
            'arguments="k")',
            "s: no kernel gives n a value",
        ),
    ],
)
def test_records_that_nothing_is_made_of_are_refused(made_in, record, flaw):
    with pytest.raises(SystemExit, match=flaw):
        made_in(record)


WRITTEN = """\
static int __Pyx_early(void);
#ifndef CYTHON_SMALL_CODE
    #define CYTHON_SMALL_CODE __attribute__((cold))
#endif
static CYTHON_INLINE int __Pyx_short(void);
static PyObject *__pyx_pw_make(PyObject *self); /*proto*/
static int const (*__pyx_table)[3];
static int __pyx_f_loop(int n) {
  return n;
}
static int __pyx_f_plan(int n) {
  __Pyx_RefNannyDeclarations
  return n;
}
static PyObject *__pyx_pf_run(PyObject *self, int n) {
  __Pyx_RefNannyDeclarations
  { PyThreadState *_save; Py_UNBLOCK_THREADS }
}
static PyObject *__pyx_pw_run(PyObject *self,
#if CYTHON_METH_FASTCALL
PyObject *const *args
#endif
) {
  __Pyx_RefNannyDeclarations
  return __pyx_pf_run(self, 0);
}
static void __Pyx_RaiseTooFew(int n) {
}
static int __Pyx_call(int n) {
}
"""


@pytest.mark.parametrize(
    ("is_kernel", "cold"),
    [(True, {"__pyx_f_plan", "__Pyx_RaiseTooFew", "__Pyx_call"}), (False, {"__Pyx_RaiseTooFew"})],
)
def test_what_neither_calls_nor_kernels_pass_is_for_size(tmp_path, is_kernel, cold):
    tool = runpy.run_path(str(ROOT / "tools" / "mark_cold.py"))
    path = tmp_path / "some.c"
    path.write_text(WRITTEN)
    tool["mark"](path, is_kernel)
    text = path.read_text()
    found = re.findall(r"^static CYTHON_SMALL_CODE .*?(__[Pp]yx_\w+)\(", text, re.MULTILINE)
    assert {*found} == cold
    assert text.replace("static CYTHON_SMALL_CODE ", "static ").startswith(WRITTEN)
    tool["mark"](path, is_kernel)
    assert path.read_text() == text


def test_kernel_modules_have_functions_for_size_and_loops_for_speed():
    folder = ROOT / "build" / "cython" / "aclnn" / "kernels"
    text = (folder / "_row_kernels.c").read_text(encoding="utf-8")
    assert re.search(
        r"^static CYTHON_SMALL_CODE .*_row_kernels_set_passes_for\(", text, re.MULTILINE
    )
    assert re.search(r"^static CYTHON_INLINE void __pyx_f_\w+_walk_rows\(", text, re.MULTILINE)


def test_kernels_that_are_built_at_a_time_keep_their_objects_apart(setup_in, monkeypatch):
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    command, both = setup_in["BuildKernels"](Distribution()), threading.Barrier(2)
    command.build_temp = "temp"
    seen = {}

    def build(own, ext):
        both.wait(30)
        seen[ext.name] = own.build_temp
        both.wait(30)

    monkeypatch.setattr(build_ext, "build_extension", build)
    with ThreadPoolExecutor(2) as pool:
        for name in ("v3", "v4"):
            pool.submit(command.build_extension, SimpleNamespace(name=name))
    assert seen == {name: os.path.join("temp", name) for name in ("v3", "v4")}


def test_a_module_is_built_again_after_what_the_compiler_included(setup_in, tmp_path, monkeypatch):
    """Names may have spaces; of several objects, all count."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.d").write_text("one.o: one.c \\\n x/simd.h \\\n with\\ space.h\n")
    (tmp_path / "two.d").write_text("two.o: two.c x/simd.h other.h\n")
    for name in ("one.c", "two.c", "x/simd.h", "other.h", "with space.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert setup_in["headers"](tmp_path) == [
        "one.c",
        "other.h",
        "two.c",
        "with space.h",
        "x/simd.h",
    ]
    (tmp_path / "other.h").unlink()
    assert "other.h" not in setup_in["headers"](tmp_path)


COMPILED = {
    path.stem: path.parents[3]
    for folder in ("cython/aclnn", "cython/aclnn/kernels", "loops/*")
    for path in (ROOT / "build").glob(f"temp.*/*/build/{folder}/_*kernels.d")
}


@pytest.mark.skipif("_simd_kernels" not in COMPILED, reason="what was compiled is not kept")
def test_a_change_of_a_header_builds_what_includes_it():
    headers = runpy.run_path(str(ROOT / "setup.py"))["headers"]
    of = {stem: {os.path.normpath(one) for one in headers(path)} for stem, path in COMPILED.items()}
    assert "aclnn/kernels/simd/exp.h" in of["_simd_kernels"]  # by way of another one
    assert "aclnn/kernels/half.h" in of["_row_kernels"]  # which lies in the folder above
    assert "aclnn/kernels/simd/exp.h" not in of["_kernels"] | of["_row_kernels"]
    assert "aclnn/kernels/simd/gelu.h" not in of["_formula_kernels"]


def test_a_step_is_repeated_where_a_file_or_a_setting_changed(tmp_path):
    tool = runpy.run_path(str(ROOT / "tools" / "incremental.py"))
    path, source, other = (tmp_path / name for name in ("notes.json", "source", "other"))
    source.write_text("1")
    notes = tool["Notes"](path)
    assert not notes.is_done("step", "-O2")
    notes.done("step", "-O2", [source, other])
    again = tool["Notes"](path)
    assert again.is_done("step", "-O2")
    assert not again.is_done("step", "-O3")
    assert not again.is_done("another", "-O2")
    source.write_text("1")  # the same, later
    assert again.is_done("step", "-O2")
    source.write_text("2")
    assert not again.is_done("step", "-O2")
    source.write_text("1")
    other.write_text("")  # which was missing
    assert not again.is_done("step", "-O2")
    path.write_text("{")
    assert not tool["Notes"](path).is_done("step", "-O2")


LOOPS = """\
#include "some.h"
/* #### Code section: module_declarations ### */
static CYTHON_INLINE double __pyx_f_7numbers_twice(double); /*proto*/
static void __pyx_f_5loops_exp_in_float(int); /*proto*/
static void __pyx_f_5loops_exp_half_in_float(int); /*proto*/
static void __pyx_f_5loops_log_in_float(int); /*proto*/
static PyObject *__pyx_f_5loops_add(int); /*proto*/
int __pyx_module_is_main_loops = 0;
static int __pyx_v_5loops_count;
/* #### Code section: module_code ### */
static CYTHON_INLINE double __pyx_f_7numbers_twice(double x) {
  return 2 * x;
}
static void __pyx_f_5loops_exp_in_float(int n) {
  __pyx_f_7numbers_twice(n);
}
static void __pyx_f_5loops_exp_half_in_float(int n) {
  exp(n);
}
static void __pyx_f_5loops_log_in_float(int n) {
  log(n);
}
static PyObject *__pyx_f_5loops_add(int n) {
  __Pyx_RefNannyDeclarations
  __pyx_v_5loops_count = n;
}
/* #### Code section: init_module ### */
int PyInit_loops(void) {
  run(__pyx_f_5loops_exp_in_float, __pyx_f_5loops_exp_half_in_float, __pyx_f_5loops_log_in_float);
}
/* #### Code section: utility_code_def ### */
static int __Pyx_help(int n) {
  return n;
}
"""


def test_a_formula_that_changes_changes_one_file(tmp_path):
    tool = runpy.run_path(str(ROOT / "tools" / "split_loops.py"))
    (tmp_path / "loops.c").write_text(LOOPS)
    python, *parts, sets = paths = tool["write"](tmp_path / "loops.c", tmp_path / "made", 5)
    glue, texts = python.read_text(), [path.read_text() for path in parts]
    assert "__pyx_v_5loops_count = n" in glue
    assert "int PyInit_loops" in glue
    assert "exp(n)" not in glue
    found = [re.search(rf"#define {name} \(aclnn_loops_(\d)_of\[set_in_use\(\)\]->{name}\)", glue)
             for name in ("__pyx_f_5loops_exp_in_float", "__pyx_f_5loops_log_in_float")]  # fmt: skip
    for name, one in zip(("exp", "log"), found, strict=True):
        assert f"  void (*__pyx_f_5loops_{name}_in_float)(int n);" in glue
        assert f".__pyx_f_5loops_{name}_in_float = __pyx_f" in texts[int(one[1])]
        assert f"static void __pyx_f_5loops_{name}_in_float" not in glue
    for number in range(5):
        assert f"  [SET_V3] = &aclnn_loops_{number}_v3,\n" in sets.read_text()
    assert all("ACLNN_HAS" not in text for text in (glue, *texts))
    for body in ("__pyx_f_7numbers_twice(n)", "exp(n)", "log(n)"):
        assert sum(body in text for text in texts) == 1
    (own,) = [text for text in texts if "exp(n)" in text]
    assert "__pyx_f_5loops_exp_half_in_float = " in own  # all loops of a formula
    assert "return 2 * x" in own  # and what they reach
    assert all("return 2 * x" not in text for text in texts if text != own)
    assert all("__Pyx_help" in text and "PyInit" not in text for text in texts)
    assert all("module_is_main" not in text for text in texts)
    for path in paths:
        os.utime(path, (1, 1))
    (tmp_path / "loops.c").write_text(LOOPS.replace("return 2 * x", "return x + x"))
    tool["write"](tmp_path / "loops.c", tmp_path / "made", 5)
    assert paths == sorted(paths)  # as a build notes them
    changed = [path for path in paths if path.stat().st_mtime > 1]
    assert [path.read_text() for path in changed] == [own.replace("return 2 * x", "return x + x")]


def test_what_several_files_of_loops_call_is_in_one_of_them(tmp_path):
    """Under a name of the instruction set's own; what is for being inlined is in each."""
    tool = runpy.run_path(str(ROOT / "tools" / "split_loops.py"))
    exp = "static void __pyx_f_5loops_exp_in_float(int n) {"
    driver = "static int __pyx_f_5loops_by_chunks(int n) {\n  chunk(n);\n}\n"
    text = LOOPS.replace(exp, driver + exp).replace("  exp(n);", "  __pyx_f_5loops_by_chunks(n);")
    text = text.replace("  log(n);", "  __pyx_f_5loops_by_chunks(n);\n  __pyx_f_7numbers_twice(n);")
    (tmp_path / "loops.c").write_text(text)
    _, *paths, _ = tool["write"](tmp_path / "loops.c", tmp_path / "made", 5)
    texts = [path.read_text() for path in paths]
    name, hidden = "__pyx_f_5loops_by_chunks", '__attribute__((visibility("hidden"))) int'
    assert sum("chunk(n)" in text for text in texts) == 1
    assert sum("return 2 * x" in text for text in texts) == 2
    assert all(
        f"#define {name} ACLNN_OF({name}_, ACLNN_SET)\n{hidden} {name}(int n);" in text
        for text in texts
    )
    (own,) = [text for text in texts if "chunk(n)" in text]
    assert f"{hidden} {name}(int n) {{" in own


def test_conversions_of_elements_are_compiled_in_one_module():
    """A hundred functions, and seconds of translation, for each module that includes them."""
    users = [
        path.relative_to(ROOT).as_posix()
        for kind in ("*.pyx", "*.pxd")
        for path in (ROOT / "aclnn").rglob(kind)
        if "aclnn.kernels.conversion cimport" in path.read_text()
    ]
    assert users == ["aclnn/_kernels.pyx"]


def test_loops_with_variables_that_python_sets_are_refused(tmp_path):
    tool = runpy.run_path(str(ROOT / "tools" / "split_loops.py"))
    (tmp_path / "loops.c").write_text(LOOPS.replace("log(n)", "log(__pyx_v_5loops_count)"))
    with pytest.raises(SystemExit, match=r"log_in_float has a variable .*__pyx_v_5loops_count"):
        tool["write"](tmp_path / "loops.c", tmp_path / "made", 5)


HEADERS = {path: path.read_text() for path in (ROOT / "aclnn" / "kernels").rglob("*.h")}
CALLABLE = {"set_in_use", "use_set", "stream_fence"}  # the same for all instruction sets


def constants_of_instruction_sets():
    """Names that headers define in several ways, and those that are made of them."""
    defined = {}
    for text in HEADERS.values():
        for name, value in re.findall(r"^#define ([A-Z]\w+) (.+)", text, re.MULTILINE):
            defined.setdefault(name, set()).add(value)
        for body in re.findall(r"\benum \{([^}]*)\}", text):
            for name, value in re.findall(r"\b([A-Z]\w+) = ([^,}]+)", body):
                defined.setdefault(name, set()).add(value)
    found = {name for name, values in defined.items() if len(values) > 1}
    while more := {
        name
        for name, values in defined.items()
        if name not in found and found.intersection(re.findall(r"\w+", " ".join(values)))
    }:
        found |= more
    return found


@pytest.mark.parametrize(
    "path", sorted((ROOT / "build" / "loops").glob("*/*_kernels.c")), ids=lambda path: path.stem
)
def test_what_is_compiled_once_depends_on_no_instruction_set(path):
    """What does is a function without the lock, which Python's find in the table of loops."""
    text = path.read_text(encoding="utf-8")
    code = text.partition("Code section: module_code")[2].partition(
        "section: utility_code_pragmas"
    )[0]
    assert f"PyInit_{path.stem}" in code  # with what runs when it is imported
    code = re.sub(r'"(?:[^"\\]|\\.)*"|^#define .*|/\*(?s:.*?)\*/', "", code, flags=re.MULTILINE)
    names = set(re.findall(r"\b[A-Za-z]\w+\b", code))
    constants = constants_of_instruction_sets()
    assert {"ROWS", "MOST_ROWS", "TILE_COLS", "LANES"} <= constants
    assert names & constants == set()
    inline = {
        name for one in HEADERS.values() for name in re.findall(r"^(?:static|INLINED)\b[^;={]*?\b(\w+)\(", one, re.M)
    }  # fmt: skip
    assert {"tile_integers", "pairs_usable", "lay_out"} <= inline
    assert set(re.findall(r"\b([a-z]\w+)\(", code)) & inline <= CALLABLE


def test_compiled_modules_are_known_by_their_sources(setup_in, tmp_path):
    """In a build's folder, where the graph is inside of the package, too."""
    of, here = setup_in["source_of"], setup_in["HERE"]
    library = tmp_path / "lib" / "aclnn"
    assert of(library / "isa.py", tmp_path / "lib") == library / "isa.py"
    found = of(library / "acl" / "_frames.cpython-311.so", tmp_path / "lib")
    assert found == here / "aclnn" / "acl" / "_frames.pyx"
    found = of(library / "graph" / "planner" / "_search.so", tmp_path / "lib")
    assert found == here / "graph" / "planner" / "_search.pyx"


def test_messages_of_compilers_are_shown_where_one_fails(setup_in, tmp_path, capfd):
    messages, log = setup_in["messages_in"], tmp_path / "build" / "compiler.log"
    say = "import sys; [print('line', k, file=sys.stderr) for k in range(50)]"
    with messages(log):
        subprocess.run([sys.executable, "-c", say], check=True)
    assert capfd.readouterr().err == ""
    assert log.read_text().count("line") == 50
    with pytest.raises(subprocess.CalledProcessError), messages(log):
        subprocess.run([sys.executable, "-c", f"{say}; sys.exit(1)"], check=True)
    shown = capfd.readouterr().err
    assert "line 49" in shown
    assert "line 9\n" not in shown
    assert str(log) in shown


def test_the_benchmark_is_for_clones(monkeypatch, capsys):
    from aclnn import cli

    for name in [one for one in sys.modules if one.startswith("aclnn.benchmark")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "aclnn.cli.bench", raising=False)
    monkeypatch.setitem(sys.modules, "aclnn.benchmark", None)
    assert cli.main(["bench", "--quick"]) == 1
    shown = capsys.readouterr().err
    assert "the benchmark is in the sources" in shown
    assert "make bench" in shown


@pytest.mark.parametrize("word", ["0", "false", "OFF", " no "])
def test_openmp_is_left_out_on_demand(setup_in, monkeypatch, word):
    monkeypatch.setenv("ACLNN_OPENMP", word)
    assert setup_in["openmp_flags"]() == []


def test_a_build_may_look_for_errors(setup_in, monkeypatch):
    """The last flag of a kind decides."""
    monkeypatch.delenv("ACLNN_BUILD_SANITIZE", raising=False)
    assert not any("sanitize" in flag for flag in setup_in["linker_flags"]())
    assert setup_in["compiler_flags"]() == setup_in["COMMON_FLAGS"]
    monkeypatch.setenv("ACLNN_BUILD_SANITIZE", "1")
    assert setup_in["linker_flags"]() == ["-fsanitize=address,undefined"]
    levels = [flag for flag in setup_in["compiler_flags"]() if flag.startswith(("-O", "-g"))]
    assert levels == ["-O3", "-g0", "-O1", "-g1"]


def test_a_build_may_be_for_some_instruction_sets_only(setup_in, monkeypatch):
    every = {name: [] for name in ("generic", "v3", "v4")}
    of = setup_in["kernel_variants"]
    monkeypatch.setattr("sysconfig.get_platform", lambda: "linux-aarch64")
    monkeypatch.delenv("ACLNN_BUILD_ISA", raising=False)
    assert list(of()) == ["generic", "neon"]
    choose = setup_in["chosen_variants"]
    monkeypatch.delenv("ACLNN_BUILD_ISA", raising=False)
    assert choose(every) == every
    monkeypatch.setenv("ACLNN_BUILD_ISA", "v3, generic")
    assert list(choose(every)) == ["generic", "v3"]
    monkeypatch.setenv("ACLNN_BUILD_ISA", "v9")
    with pytest.raises(SystemExit, match="ACLNN_BUILD_ISA: v9 is none of generic, v3, v4"):
        choose(every)


@pytest.mark.parametrize("level", ["generic", "v3", "v4"])
def test_a_build_may_be_for_this_cpu_only(setup_in, monkeypatch, level):
    """For what it will select when it runs."""
    choose, every = setup_in["chosen_variants"], {name: [] for name in ("generic", "v3", "v4")}
    has = {"generic": (), "v3": ("v3",), "v4": ("v3", "v4")}[level]

    def compiles(flags, source, run=False):
        return run and any(f'"x86-64-{name}"' in source for name in has)

    monkeypatch.setitem(choose.__globals__, "compiles", compiles)
    monkeypatch.setenv("ACLNN_BUILD_ISA", "native")
    assert list(choose(every)) == [level]
    monkeypatch.setenv("ACLNN_BUILD_ISA", "native generic")
    assert set(choose(every)) == {level, "generic"}
    assert list(choose({"generic": [], "neon": []})) == ["generic", "neon"]


def test_the_native_instruction_set_is_the_one_selected(setup_in, monkeypatch):
    from aclnn import isa

    monkeypatch.setenv("ACLNN_BUILD_ISA", "native")
    (name,) = setup_in["kernel_variants"]()
    assert name == isa.available()[-1]


def test_programs_of_the_build_may_fail(setup_in):
    compiles = setup_in["compiles"]
    failing = "int main(void) { return 3; }\n"
    assert compiles([], failing)
    assert not compiles([], failing, run=True)
    assert compiles([], run=True)


def test_what_is_compiled_in_another_way_is_built_again(setup_in, tmp_path, monkeypatch):
    """And what is compiled in the same way is not."""
    from setuptools import Extension

    monkeypatch.delenv("CFLAGS", raising=False)
    file = setup_in["settings_file"]
    path = pathlib.Path(file(Extension("one", []), str(tmp_path)))
    os.utime(path, (1, 1))
    assert file(Extension("one", []), str(tmp_path)) == str(path)
    assert path.stat().st_mtime == 1
    file(Extension("one", [], extra_compile_args=["-O1"]), str(tmp_path))
    assert path.stat().st_mtime > 1
    os.utime(path, (1, 1))
    monkeypatch.setenv("CFLAGS", "-fno-optimize-sibling-calls")
    file(Extension("one", [], extra_compile_args=["-O1"]), str(tmp_path))
    assert path.stat().st_mtime > 1


def test_modules_that_a_build_no_longer_makes_are_removed(setup_in, tmp_path):
    """Programs of another compiler, and those of one instruction set; sources stay."""
    folder = tmp_path / "lib" / "aclnn"
    (folder / "kernels").mkdir(parents=True)
    ending = sysconfig.get_config_var("EXT_SUFFIX")
    kept = [
        f"_kernels{ending}",
        "_kernels.pyx",
        f"kernels/_row_kernels{ending}",
        "kernels/_fused_kernels.pyx",
    ]
    earlier = [f"_fused_kernels{ending}", f"_kernels_v4{ending}"]
    for name in (*kept, *earlier, f"kernels/_fused_kernels{ending}"):
        (folder / name).touch()
    setup_in["remove_unbuilt"]({"aclnn._kernels", "aclnn.kernels._row_kernels"}, folder.parent)
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*.*")]
    assert sorted(found) == sorted(kept)


def test_instruction_sets_borrow_kernels_of_lower_ones(setup_in):
    """And get them when they ask, unless a build without the lower one made theirs."""
    from aclnn import isa

    levels = list(isa.LEVELS)
    for borrower, families in setup_in["BORROWED"].items():
        for stem, lender in families.items():
            assert stem in setup_in["KERNELS"]
            assert levels.index(lender) < levels.index(borrower)
            if borrower in isa.available() and lender in isa.available():
                module = setup_in["module_of"](stem)
                own = importlib.import_module(module).BUILT >> levels.index(borrower) & 1
                loops = getattr(isa, stem.removeprefix("_"))(borrower)
                assert loops.__name__ == f"{module}_{borrower if own else lender}"


def test_instruction_sets_have_one_order(setup_in):
    """By their places in it, Python and the modules' tables name them."""
    from aclnn import environment

    header = HEADERS[ROOT / "aclnn" / "kernels" / "instruction_sets.h"]
    names = re.search(r"enum \{ (SET_[^}]*), SETS \}", header)[1].lower().replace("set_", "")
    divided = runpy.run_path(str(ROOT / "tools" / "split_loops.py"))["SETS"]
    assert tuple(names.split(", ")) == setup_in["SETS"] == divided == environment.INSTRUCTION_SETS


def test_loops_that_were_not_built_are_refused(setup_in):
    """Also where the module is asked by itself."""
    from aclnn import isa

    for stem in setup_in["KERNELS"]:
        name = setup_in["module_of"](stem)
        if stem in setup_in["OVER_VECTORS"] and isa.simd_kernels() is None:
            continue  # another CPU's
        if importlib.util.find_spec(name) is None:
            continue  # another compiler's
        module = importlib.import_module(name)
        others = {number for number in range(len(isa.LEVELS)) if not module.BUILT >> number & 1}
        for number in (-1, len(isa.LEVELS), *others):
            with pytest.raises(ValueError, match=f"number: {number}, loops of no such"):
                module.use(number)


def test_a_build_uses_all_processors_and_keeps_what_it_compiled(setup_in):
    """Also where it is installed for editing, whose own folders are gone afterwards."""
    from setuptools import Distribution, Extension

    found = {}
    for editable in (False, True):
        command = setup_in["BuildKernels"](Distribution({"ext_modules": [Extension("one", [])]}))
        command.editable_mode = editable
        command.finalize_options()
        assert command.parallel == setup_in["processors"]() >= 1
        found[editable] = (command.build_lib, command.build_temp)
    assert found[True] == found[False]


def test_a_build_says_how_far_it_is(setup_in, monkeypatch):
    said = []
    progress = setup_in["Progress"](10)
    monkeypatch.setitem(type(progress).one_more.__globals__, "say", said.append)
    for _ in range(10):
        progress.one_more()
    counts = [int(re.match(r"compiled (\d+) of 10 files, 0 s", text)[1]) for text in said]
    assert counts == [3, 5, 8, 10]


def test_the_demo_needs_no_packages_for_development():
    """And builds for this CPU; the rest comes later."""
    if not shutil.which("make"):
        pytest.skip("needs make")
    shown = subprocess.run(
        ["make", "--dry-run", "VENV=nowhere", "demo"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "[dev]" not in shown
    assert "build_ext --inplace" in shown
    assert "nowhere/bin/aclnn demo" in shown


@pytest.mark.parametrize("extra", [name for name in EXTRAS if name not in FOR_DEVELOPERS])
def test_every_extra_is_for_something(extra):
    """A package that nothing imports would be installed for nothing."""
    sources = [path for folder in ("aclnn", "graph") for path in (ROOT / folder).rglob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    for requirement in EXTRAS[extra]:
        package = re.split(r"[<>=~!\[]", requirement)[0]
        assert re.search(rf'import {package}\b|(need|find_spec)\(\s*"{package}\b', text), package


@pytest.mark.parametrize("extra", [name for name in EXTRAS if name not in FOR_DEVELOPERS[1:]])
def test_the_readme_lists_every_extra(extra):
    assert f"| `aclnn-cpu[{extra}]`" in (ROOT / "README.md").read_text(encoding="utf-8").replace(
        ", `aclnn", "| `aclnn"
    )


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", text, re.MULTILINE) == [aclnn.__version__]


def test_wheels_are_for_the_versions_that_the_metadata_names():
    written = tomllib.loads((ROOT / "pyproject.toml").read_text())
    built = written["tool"]["cibuildwheel"]["build"]
    named = [
        version[1]
        for one in written["project"]["classifiers"]
        if (version := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one))
    ]
    assert built == [f"cp{version.replace('.', '')}-*" for version in named]
    assert written["project"]["requires-python"] == f">={named[0]}"
    for path in written["tool"]["cibuildwheel"]["test-sources"]:
        assert (ROOT / path).exists(), path


def test_type_stubs_are_installed():
    """With the marker that makes type checkers look at them."""
    given = {
        one.arg: ast.literal_eval(one.value)
        for one in ast.walk(ast.parse((ROOT / "setup.py").read_text(encoding="utf-8")))
        if isinstance(one, ast.keyword) and one.arg in ("package_dir", "package_data")
    }
    installed = {
        path
        for package, patterns in given["package_data"].items()
        for pattern in patterns
        for path in (ROOT / given["package_dir"].get(package, "nowhere")).glob(pattern)
    }
    stubs = {path for top in ("aclnn", "graph") for path in (ROOT / top).rglob("*.pyi")}
    assert ROOT / "aclnn" / "__init__.pyi" in stubs
    assert stubs | {ROOT / top / "py.typed" for top in ("aclnn", "graph")} <= installed


def test_the_version_is_read_without_importing_the_package(tmp_path):
    """A build begins where neither NumPy nor anything that was compiled is there yet."""
    pytest.importorskip("setuptools")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "aclnn").mkdir()
    (tmp_path / "aclnn" / "__init__.py").write_text("raise ImportError('not built yet')")
    shutil.copy(ROOT / "aclnn" / "_version.py", tmp_path / "aclnn")
    code = "import setuptools; setuptools.setup(packages=[])"
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split()[-1] == aclnn.__version__


def test_what_make_quick_leaves_out_is_there():
    """Names of tests that are gone would hide nothing, and mislead."""
    folder = pathlib.Path(__file__).parents[1]
    listed = (folder / "slow.txt").read_text(encoding="utf-8").splitlines()[1:]
    assert len(listed) == len(set(listed))
    for name in listed:
        file, *_, function = name.split("::")
        if function != "runTest":  # of a state machine
            text = (folder / file).read_text(encoding="utf-8")
            assert f"def {function}(" in text, name
