"""Plans for other programs: headers that C compiles, allocators, files that plan again to the same size."""

import ctypes
import json
import pathlib
import pickle
import runpy
import shutil
import subprocess

import pytest
from aclnn.graph import Gap, Lifetime, plan_lifetimes, read_lifetimes
from hypothesis import given, settings
from hypothesis import strategies as st

from aclnn import cli

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
COMPILER = shutil.which("cc") or shutil.which("gcc")
LIVES = [
    Lifetime("hidden/1", 0, 3, 4000),
    Lifetime("hidden.1", 1, 4, 1000),
    Lifetime('größe "x"?', 3, 6, 4000),
    Lifetime("residual", 0, 9, 512, gaps=(Gap(2, 7),)),
    Lifetime("int", 4, 5, 0),
    Lifetime("late", 2, 6, 512),
]

PROGRAM = """
#include "plan.h"
#include "plan_allocator.h"

const char *name_of(int id) { return plan_buffers[id].name; }
long long offset_of(int id, uint64_t step)
{
    static char block[PLAN_SIZE + PLAN_ALIGNMENT];
    struct plan_arena arena;
    char *base = block + (PLAN_ALIGNMENT - (uintptr_t)block % PLAN_ALIGNMENT) % PLAN_ALIGNMENT;
    if (!plan_begin(&arena, base, PLAN_ALIGNMENT, plan_buffers, PLAN_COUNT)) return -2;
    arena.step = step;
    char *found = (char *)plan_get(&arena, (size_t)id);
    return found == NULL ? -1 : found - base;
}
int refused(void)
{
    struct plan_arena arena;
    return !plan_begin(&arena, NULL, PLAN_ALIGNMENT, plan_buffers, PLAN_COUNT)
        && !plan_begin(&arena, (void *)(uintptr_t)1, PLAN_ALIGNMENT, plan_buffers, PLAN_COUNT);
}
int whole(void)
{
    return plan_check(plan_buffers, PLAN_COUNT, PLAN_SIZE) == 0
        && plan_check(plan_buffers, PLAN_COUNT, PLAN_SIZE - 1) != 0;
}
int late_id(void) { return PLAN_late; }
"""


@pytest.mark.skipif(COMPILER is None, reason="no compiler here")
@pytest.mark.skipif(not EXAMPLES.exists(), reason="run from an installation without sources")
@pytest.mark.parametrize("language", [["-std=c99"], ["-x", "c++"]], ids=["c", "c++"])
def test_the_header_serves_a_program(tmp_path, language):
    plan = plan_lifetimes(LIVES)
    (tmp_path / "plan.h").write_text(plan.to_header())
    shutil.copy(EXAMPLES / "plan_allocator.h", tmp_path)
    source = PROGRAM if "-std=c99" in language else f'extern "C" {{{PROGRAM}}}'
    (tmp_path / "program.c").write_text(source)
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-local-typedefs"]
    command = [COMPILER, *language, *warnings, "-shared", "-fPIC", "-o", "program.so", "program.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if language[0] == "-x" and "cc1plus" in done.stderr:
        pytest.skip("no compiler for C++ here")
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(tmp_path / "program.so"))
    library.name_of.restype, library.offset_of.restype = ctypes.c_char_p, ctypes.c_longlong
    library.offset_of.argtypes = [ctypes.c_int, ctypes.c_uint64]
    for place, (life, buffer) in enumerate(zip(LIVES, plan.buffers, strict=True)):
        assert library.name_of(place).decode() == life.name
        for step in range(10):
            live = life.lower <= step < life.upper
            live = live and not any(gap.lower <= step < gap.upper for gap in life.gaps)
            assert library.offset_of(place, step) == (buffer.offset if live else -1)
    assert library.offset_of(len(LIVES), 0) == -1
    assert library.refused()
    assert library.whole()
    assert library.late_id() == 5


@pytest.mark.skipif(COMPILER is None, reason="no compiler here")
def test_a_header_of_nothing_compiles(tmp_path):
    (tmp_path / "plan.h").write_text(plan_lifetimes([]).to_header())
    command = [COMPILER, "-std=c99", "-Werror", "-fsyntax-only", "-x", "c", "plan.h"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(COMPILER is None, reason="no compiler here")
def test_the_compiler_refuses_offsets_that_do_not_fit(tmp_path):
    text = plan_lifetimes(LIVES).to_header()
    size = plan_lifetimes(LIVES).size
    (tmp_path / "plan.h").write_text(text.replace(f"PLAN_SIZE UINT64_C({size})", "PLAN_SIZE 64"))
    command = [COMPILER, "-std=c99", "-fsyntax-only", "-x", "c", "plan.h"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "plan_fits_" in done.stderr


@pytest.mark.skipif(not EXAMPLES.exists(), reason="run from an installation without sources")
def test_allocators_are_short():
    for name in ("plan_allocator.h", "plan_allocator.py"):
        text = (EXAMPLES / name).read_text()
        code = [line for line in text.splitlines() if line.strip()]
        assert len(code) <= 56


@pytest.mark.skipif(not EXAMPLES.exists(), reason="run from an installation without sources")
def test_the_allocator_in_python_serves_a_plan(tmp_path, capsys):
    lives, placed = tmp_path / "lives.csv", tmp_path / "placed.csv"
    lives.write_text("id,lower,upper,size\na,0,2,100\nb,1,3,50\nc,2,4,100\n")
    assert cli.main(["plan", "--lifetimes", str(lives), "--csv", str(placed)]) == 0
    capsys.readouterr()
    allocator = runpy.run_path(str(EXAMPLES / "plan_allocator.py"))["PlanAllocator"]
    memory = allocator(placed.read_text())
    memory.get("a")[:] = bytes([7]) * 100
    with pytest.raises(ValueError, match="b at step 0: its steps are 1 to 2"):
        memory.get("b")
    memory.step = 2
    assert memory.get("c").tobytes() == bytes([7]) * 100  # in the place of a
    with pytest.raises(ValueError, match="a and b share bytes at step 1"):
        allocator("id,lower,upper,size,offset\na,0,2,100,0\nb,1,3,50,64\n")


@st.composite
def problems(draw):
    spans = st.tuples(st.integers(0, 6), st.integers(1, 5), st.integers(0, 5000))
    rows = draw(st.lists(spans, min_size=1, max_size=12))
    return [Lifetime(f"b{i}", a, a + n, size) for i, (a, n, size) in enumerate(rows)]


@settings(deadline=None, max_examples=40)
@given(problems(), st.sampled_from(["default", "exact"]))
def test_documents_plan_again_to_the_same_places(tmp_path_factory, lives, strategy):
    plan = plan_lifetimes(lives, strategy)
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    path.write_text(plan.to_json())
    again = plan_lifetimes(read_lifetimes(path))
    assert again.size == plan.size
    assert [one.offset for one in again.buffers] == [one.offset for one in plan.buffers]


# --- The command ------------------------------------------------------------------------------

TRACE = "stream,action,id,step\ns1,write,a,0\ns1,read,a,1\ns2,read,b,1\ns1,write,c,2\n"


def checked(capsys, *arguments):
    status = cli.main(["plan", "--check", *arguments])
    out, err = capsys.readouterr()
    return status, out + err


def test_files_are_written_and_checked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("lives.csv").write_text("id,lower,upper,size\na,0,2,100\nb,1,3,50\nc,2,4,100\n")
    made = [
        "plan",
        "--lifetimes",
        "lives.csv",
        "--csv",
        "p.csv",
        "--header",
        "p.h",
        "--snapshot",
        "p.pickle",
    ]
    assert cli.main([*made, "--json"]) == 0
    document = capsys.readouterr().out
    pathlib.Path("p.json").write_text(document)
    for name in ("p.csv", "p.json"):
        assert checked(capsys, name) == (0, "no faults: 3 buffers in 192 bytes\n")
    assert "enum plan_id" in pathlib.Path("p.h").read_text()
    assert [
        len(t) for t in pickle.loads(pathlib.Path("p.pickle").read_bytes())["device_traces"]
    ] == [10]
    pathlib.Path("trace.csv").write_text(TRACE)
    status, text = checked(capsys, "trace.csv", "--lifetimes", "p.csv")
    assert (status, text) == (0, "no faults: 4 events on 2 streams\n")


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        ("id,lower,upper,size,offset\na,0,2,100,0\nb,1,3,50,64\n", [], "rows 1 and 2: a at 0 and b at 64 overlap"),
        ("id,lower,upper,size,offset\na,0,2,100,0\nb,2,3,50,\n", [], "row 2: b has no offset"),
        ("id,lower,upper,size,offset,alignment\na,0,2,100,64,512\n", [], "offset is 64, which alignment 512 does not divide"),
        ("id,lower,upper,size,offset\na,0,2,100,64\n", ["--capacity", "128"], "the capacity is 128 bytes, but a ends at 164"),
        ("stream,action,id\ns,eat,a\n", [], "row 1: action is 'eat'"),
        ("stream,action,id\ns,read,a\n", [], "row 1: read of a, which was never allocated"),
        ("{}", [], "expected a document of schema"),
        ("\udce9", [], "given: 'utf-8' codec can't decode"),
        ("a,b\n1,2\n", [], "columns missing: id, lower, size, upper"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path, capsys, text, more, words):
    path = tmp_path / "given"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    status, said = checked(capsys, str(path), *more)
    assert status == 1
    assert words in said


def test_races_of_a_plans_buffers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("p.csv").write_text("id,lower,upper,size,offset\na,0,2,128,0\nb,2,4,128,0\n")
    pathlib.Path("t.csv").write_text(
        "stream,action,id,step\ns1,write,a,0\ns1,read,a,1\ns2,write,b,2\ns2,read,a,3\n"
    )
    status, text = checked(capsys, "t.csv", "--lifetimes", "p.csv", "--json")
    found = json.loads(text)
    assert status == 1
    assert (found["events"], found["streams"]) == (4, 2)
    assert [(one["kind"], one["rows"]) for one in found["faults"]] == [
        ("race", [1, 3]), ("race", [2, 3]), ("lifetime", [4]), ("race", [1, 4]),
    ]  # fmt: skip
    pathlib.Path("t.csv").write_text(
        "stream,action,id,step\ns1,write,a,0\ns1,read,a,1\ns1,record,e,\ns2,wait,e,\ns2,write,b,2\n"
    )
    assert checked(capsys, "t.csv", "--lifetimes", "p.csv") == (
        0,
        "no faults: 5 events on 2 streams\n",
    )


def test_pytorchs_viewer_reads_what_is_written():
    viewer = pytest.importorskip("torch.cuda._memory_viz")
    snapshot = pickle.loads(pickle.dumps(plan_lifetimes(LIVES).to_memory_snapshot()))
    trace = viewer.trace(snapshot)
    pieces = sum(len(life.pieces()) for life in LIVES if life.nbytes)
    assert trace.count("cudaMalloc") == 1
    assert len([line for line in trace.splitlines() if line.startswith("del ")]) == pieces
    assert "local_files" in viewer.trace_plot(snapshot)
    assert viewer.segsum(snapshot)
