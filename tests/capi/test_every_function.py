"""Every operator's functions, called by a program in C++: statuses and bits are those of Python.

Behind all memory of the program is a page that nobody may touch.
"""

import runpy
from pathlib import Path

import c_programs
import numpy as np
import pytest
import samples
from calls import OK
from cases import each
from guarded_memory import watched

import aclnn
from aclnn.acl import dtypes
from aclnn.capi import function_pairs
from aclnn.operators import ENTRIES

pytestmark = pytest.mark.filterwarnings("ignore")
THERE = [one for one in function_pairs.EVERY if f"aclnn{one.name}" in ENTRIES]
TOOL = Path(__file__).resolve().parents[2] / "tools" / "make_prototypes.py"
MISSING = [one for one in function_pairs.EVERY if f"aclnn{one.name}" not in ENTRIES]


def source():
    """The program: a line for each function, which is called with the arguments of its case."""
    headers = dict.fromkeys(one.header for one in function_pairs.EVERY)
    lines = ['#include "cases.h"\n', *(f'#include "aclnnop/aclnn_{name}.h"\n' for name in headers)]
    lines.append("int call(const std::string &name, Case &c) {\n")
    for one in function_pairs.EVERY:
        call = f'drive("{one.name}", aclnn{one.name}GetWorkspaceSize, aclnn{one.name}, c)'
        lines.append(f'  if (name == "{one.name}") return {call};\n')
    lines.append("  return -1;\n}\n")
    lines.append(
        """int main(int, char **argv) {
  std::ifstream file(argv[1]);
  std::string name;
  while (file >> name) {
    Case c(file);
    if (call(name, c)) { std::printf("%s failed\\n", name.c_str()); return 1; }
  }
  return 0;
}
"""
    )
    return "".join(lines)


def described(tensor, array):
    """A tensor as the program reads it: its description, and the bytes of its storage."""
    if tensor is None:
        return "null"
    numbers = [tensor.dtype, tensor.ndim, *tensor.dims(), *tensor.steps()]
    data = np.ascontiguousarray(array).tobytes()
    return f"T {' '.join(map(str, numbers))} {max(1, array.size)} {data.hex() or '-'}"


def number(value, dtype):
    kind = np.dtype(dtypes.name(dtype))
    return f"S {int(dtype)} {np.array(value, kind).tobytes().hex()}"


def given(pair, arguments, arrays):
    """The case of a function: its arguments as text, and the arrays whose memory it has, in order."""
    _, entry = ENTRIES[f"aclnn{pair.name}"]
    lines, memory = [pair.name], []
    for parameter, value, tag in zip(entry.parameters, arguments, pair.tags, strict=True):
        if tag == "T":
            memory += [] if value is None else [arrays[parameter.role]]
            lines.append(described(value, arrays.get(parameter.role)))
        elif tag in "LSIBs" and value is None:
            lines.append("null")
        elif tag == "L":
            listed = arrays[parameter.role]
            listed = listed if isinstance(listed, list | tuple) else [listed]
            memory += listed
            items = [described(t, a) for t, a in zip(value.items, listed, strict=True)]
            lines.append(f"L {len(items)} {' '.join(items)}")
        elif tag == "S":
            lines.append(number(value.value, value.dtype))
        elif tag in "IB":
            (values,) = value.__reduce__()[1]
            lines.append(f"{tag} {len(values)} {' '.join(str(int(one)) for one in values)}")
        elif tag == "s":
            lines.append(f"s {value}")
        else:
            lines.append(repr(float(value)) if tag == "f" else str(int(value or 0)))
    return "\n".join(lines) + "\n", memory


def as_passed(pair, arguments):
    """Numbers that C takes as float, rounded as a caller in C rounds them."""
    kinds = [kind for kind, _ in pair.parameters]
    return [
        float(np.float32(one)) if kind == "f32" else one
        for kind, one in zip(kinds, arguments, strict=True)
    ]


def plan(pair, arguments):
    """Phase one in Python."""
    return getattr(aclnn, f"aclnn{pair.name}GetWorkspaceSize")(*arguments)


def statuses_without_each(pair, arguments):
    """What phase one in Python says where one argument is null."""
    found = []
    for place, (tag, value) in enumerate(zip(pair.tags, arguments, strict=True)):
        if tag in "TLSIBs" and value is not None:
            changed = list(arguments)
            changed[place] = None
            found.append(f"{place}:{plan(pair, changed)[2]}")
    return found


def expected_of(pair):
    """The case of a function, and what Python says: statuses of nulls, and memory after both phases."""
    name = f"aclnn{pair.name}"
    arrays = samples.memory(name)
    arguments = as_passed(pair, samples.arguments(name, arrays).values())
    text, memory = given(pair, arguments, arrays)
    nulls = statuses_without_each(pair, arguments)
    size, executor, status = plan(pair, arguments)
    assert status == OK, aclnn.aclGetRecentErrMsg()
    with watched(size) as workspace:
        assert getattr(aclnn, name)(workspace if size else None, size, executor, None) == OK
    return text, (nulls, [np.ascontiguousarray(array).tobytes().hex() for array in memory])


def answered(program, file, cases, **changes):
    """What the program prints for these cases, by function."""
    file.write_text("".join(cases), encoding="utf-8")
    found, latest = {}, None
    for line in c_programs.run(program, file, **changes).splitlines():
        if line.endswith("-"):
            found[latest].append(line[:-1])
        else:
            latest = line.split()[0]
            found[latest] = [line]
    return found


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The program's lines and those that are expected, by function."""
    c_programs.require()
    folder = tmp_path_factory.mktemp("every")
    program = c_programs.build(source(), folder, f"-I{c_programs.PROGRAMS}", "-O0")
    guard = c_programs.guarded(c_programs.guard(folder), "behind")
    found, expected, before = {}, {}, aclnn.get_soc_version()
    for soc in dict.fromkeys([before, *samples.PRODUCTS.values()]):
        there = [p for p in THERE if samples.PRODUCTS.get(f"aclnn{p.name}", before) == soc]
        aclnn.set_soc_version(soc)
        try:
            made = {pair.name: expected_of(pair) for pair in there}
        finally:
            aclnn.set_soc_version(before)
        expected |= {name: wanted for name, (_, wanted) in made.items()}
        cases = [text for text, _ in made.values()]
        found |= answered(program, folder / "cases.txt", cases, **guard, ACLNN_SOC_VERSION=soc)
    nothing = dict.fromkeys("TLSIBs", "null")
    cases = [
        "\n".join([pair.name, *(nothing.get(tag, "0") for tag in pair.tags)]) + "\n"
        for pair in MISSING
    ]
    return found | answered(program, folder / "cases.txt", cases), expected


@each("name", [one.name for one in THERE])
def test_statuses_and_bits_are_those_of_python(answers, name):
    found, expected = answers
    nulls, memory = expected[name]
    line, *after = found[name]
    assert line.split()[1:] == [*nulls, "size:161001", "executor:161001", "plan:0", "run:0"]
    assert after == memory


@pytest.mark.parametrize("name", [one.name for one in MISSING])
def test_functions_that_are_not_there_say_so(answers, name):
    found, _ = answers
    assert found[name][0].split()[1:] == [
        "size:561003",
        "executor:561003",
        "plan:561003",
        "message:there",
    ]


def test_every_function_of_python_has_a_prototype():
    """``make reference`` adds those that are missing."""
    assert {f"aclnn{one.name}" for one in function_pairs.EVERY} >= set(ENTRIES)
    if not TOOL.exists():
        pytest.skip("run from an installation without sources")
    text = (function_pairs.INTERFACE / "further_operators.txt").read_text(encoding="utf-8")
    prototypes = runpy.run_path(str(TOOL))["prototypes"]
    assert prototypes(text).splitlines() == sorted(text.splitlines())
    lines = text.splitlines()
    added = prototypes("\n".join(line for line in lines if "IndexAdd(" not in line))
    assert set(added.splitlines()) == set(lines)


def test_functions_of_the_first_library_become_no_more():
    """They are those that CANN's programs link: new ones belong to ``further_operators.txt``."""
    assert (len(function_pairs.PAIRS), len(function_pairs.FURTHER)) == (244, 21)


@each("pair", THERE)
def test_prototypes_are_those_of_the_declarations(pair):
    """Names, and types as CANN has them."""
    _, entry = ENTRIES[f"aclnn{pair.name}"]
    assert [name for _, name in pair.parameters] == [p.name for p in entry.parameters]
    tags = {
        **dict.fromkeys(("input", "output", "inout"), "T"),
        **dict.fromkeys(("inputs", "outputs", "single"), "L"),
        "scalar": "S",
        "ints": "I",
        "bools": "B",
        "float": "f",
        "bool": "b",
        "str": "s",
        "dtype": "di",
        "int": "iu",
        "zero": "i",
    }
    for parameter, tag in zip(entry.parameters, pair.tags, strict=True):
        assert tag in tags.get(parameter.kind, tag), parameter.name
