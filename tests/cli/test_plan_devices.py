"""`aclnn plan` for devices: memories, capacities, gaps; wrong input is refused with what is at fault."""

import csv
import io
import json
import xml.etree.ElementTree as ElementTree

import pytest

from aclnn import cli

LIVES = """id,lower,upper,size,alignment,gaps,uses
a,0,9,4096,512,2-7,
b,1,4,4096,,,1 2 3
c,2,6,4096,,,
d,3,5,1000,,,
"""


@pytest.fixture
def lives(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lives.csv").write_text(LIVES)
    return tmp_path


def run(capsys, *arguments):
    status = cli.main(["plan", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_gaps_of_a_file_are_used_and_written(capsys, lives):
    status, out, _ = run(capsys, "--lifetimes", "lives.csv", "--json", "--csv", "placed.csv")
    plan = json.loads(out)
    assert status == 0
    assert plan["size"] == plan["lower_bound"] == 9216
    assert plan["buffers"][0]["gaps"] == [{"lower": 2, "upper": 7, "window": None}]
    rows = list(csv.DictReader(io.StringIO((lives / "placed.csv").read_text())))
    assert [row["gaps"] for row in rows] == ["2-7", "", "", ""]
    again = json.loads(run(capsys, "--lifetimes", "placed.csv", "--json")[1])
    assert again["size"] == 9216
    assert [one["offset"] for one in again["buffers"]] == [one["offset"] for one in plan["buffers"]]


@pytest.mark.usefixtures("lives")
def test_memories_of_a_device(capsys):
    memories = ["--memory", "ub=8KiB:2TB/s:32", "--memory", "hbm=1GiB:100GB/s:512"]
    status, out, _ = run(capsys, "--lifetimes", "lives.csv", *memories, "--svg", "picture.svg")
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    assert out.splitlines()[1].split()[:2] == ["ub", "8192"]
    ElementTree.parse("picture.svg")
    found = json.loads(run(capsys, "--lifetimes", "lives.csv", *memories, "--json")[1])
    home = {one["name"]: one for one in found["memories"]}["hbm"]
    assert home["alignment"] == 512
    assert all(one["offset"] % 512 == 0 for one in home["plan"]["buffers"])
    assert found["seconds"] < found["slow_seconds"]


def test_memories_of_an_operator(capsys):
    call = ["gelu", "--self", "float16[64,64:strides=1,64]", "--materialize"]
    memories = ["--memory", "ub=1MiB:2TB/s", "--memory", "hbm=1GiB:100GB/s"]
    status, out, _ = run(capsys, *call, *memories, "--json")
    found = json.loads(out)
    assert status == 0
    assert found["memories"][0]["plan"]["size"] > 0
    assert found["memories"][1]["plan"]["size"] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--capacity", "8000"], "lives.csv: the capacity is 8000 bytes, but at step 1 are needed at least 8192: a (4096 bytes), b (4096 bytes)"),
        (["--memory", "hbm=4KiB:1GB/s"], "hbm's size is 4096 bytes, but at step 1"),
        (["--memory", "ub=9KiB:1TB/s", "--memory", "ub=9KiB:1GB/s"], "memories: 2 are called 'ub'"),
        (["--memory", "ub=0:1TB/s"], "ub: size is 0, must be at least 1"),
        (["--memory", "ub=9KiB"], "must be NAME=SIZE:BANDWIDTH"),
        (["--memory", "ub=9KiB:1TB"], "must be NAME=SIZE:BANDWIDTH"),
        (["--memory", "ub=9KiB:0GB/s"], "ub: bandwidth is 0.0, must be a number of bytes a second above 0"),
        (["--memory", "ub=9KiB:1GB/s", "--csv", "x.csv"], "--csv is for one memory"),
        (["--memory", "ub=9KiB:1GB/s", "--capacity", "9KiB"], "--capacity is for one memory"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("lives")
def test_what_cannot_be_is_refused(capsys, arguments, words):
    try:
        status = cli.main(["plan", "--lifetimes", "lives.csv", *arguments])
    except SystemExit as stopped:
        status = stopped.code
    assert status != 0
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("b,1,4,64,,,,0\na,0,2,64,,,,32", "rows 1 and 2: b at 0 and a at 32 overlap, and both are needed at step 1"),
        ("a,-1,2,64,,,,", "row 1: a: [-1, 2) is not a range of steps"),
        ("a,0,2,64,,0-1 0-2,,", "row 1: a: two of its gaps have step 0"),
        ("a,0,2,64,,0:1,,", "row 1: gaps has '0:1', must be LOWER-UPPER"),
        ("a,0,2,64,,,5,", "row 1: a: uses are steps 5 to 5, must be in [0, 2)"),
        ("a,0,2,64,,,x,", "row 1: uses is 'x', must be an integer"),
    ],
)  # fmt: skip
def test_rows_at_fault_are_named(capsys, lives, row, words):
    (lives / "bad.csv").write_text(f"id,lower,upper,size,alignment,gaps,uses,offset\n{row}\n")
    status, _, err = run(capsys, "--lifetimes", "bad.csv")
    assert status == 1
    assert words in err


def test_a_capacity_that_the_default_misses_is_searched_for(capsys, lives):
    """Seven buffers whose smallest plan the counted search has, or an exact one."""
    rows = "".join(f"b{i},{i},{i + 2},64\n" for i in range(6))
    (lives / "chain.csv").write_text("id,lower,upper,size\n" + rows)
    assert run(capsys, "--lifetimes", "chain.csv", "--capacity", "128")[0] == 0
    status, _, err = run(capsys, "--lifetimes", "chain.csv", "--capacity", "127")
    assert status == 1
    assert "chain.csv: the capacity is 127 bytes" in err
