"""A short run of `fuzz_calls.py`, and whether it would notice."""

import faulthandler
import pathlib
import random
import re
from types import SimpleNamespace

import fuzz_calls
import fuzz_programs
import numpy as np
import pytest

import aclnn
from aclnn.operators import ENTRIES


def test_calls_at_random():
    assert fuzz_calls.watched(seed=11, count=2000) == 0


@pytest.fixture
def fuzzer():
    yield fuzz_calls.Fuzzer(0, 100)
    faulthandler.cancel_dump_traceback_later()


def test_every_operator_is_planned_and_run(fuzzer, monkeypatch):
    """On operands that belong together, and not only refused."""
    before = aclnn.get_soc_version()
    for name, (operator, _) in ENTRIES.items():
        aclnn.set_soc_version(operator.product or before)
        runs = []
        for _ in range(
            4000
        ):  # some have many operands, each of which may be junk, or whose data decide
            monkeypatch.setattr(fuzzer, "planned", [])
            fuzzer.plan(f"{name}GetWorkspaceSize")
            for planned in fuzzer.planned:
                size = planned.workspace
                memory = np.empty(size, np.uint8) if size else None
                runs.append(fuzzer.call(name, memory, size, planned.executor, None))
            if 0 in runs:
                break
        aclnn.set_soc_version(before)
        assert 0 in runs, name


def test_every_function_says_which_statuses_it_may_give(fuzzer):
    objects = {"aclCreateScalar", "aclCreateTensor", "aclGetRecentErrMsg", "aclrtGetSocName"}
    objects |= {"aclAppLog", "aclDataTypeSize", "aclFloat16ToFloat", "aclFloatToFloat16"}
    makers = {name for name in fuzzer.functions if name.startswith("aclCreate")}
    silent = {name for name, function in fuzzer.functions.items() if not function.statuses}
    assert silent == objects | makers


def test_a_status_that_is_not_documented_is_found(fuzzer):
    fuzzer.functions["aclrtGetDevice"].statuses = frozenset({7})
    with pytest.raises(
        fuzz_calls.FoundError, match=r"call 1: aclrtGetDevice\(\): status 0 is none"
    ):
        fuzzer.call("aclrtGetDevice")


def test_a_byte_that_changes_beside_an_output_is_found(fuzzer):
    function = fuzzer.functions["aclrtGetDevice"]
    honest = function.call

    def careless():
        fuzzer.host[17] ^= 1
        return honest()

    function.call = careless
    with pytest.raises(fuzz_calls.FoundError, match=r"bytes \[17\] of \d+ changed"):
        fuzzer.call("aclrtGetDevice")


def test_exceptions_are_found(fuzzer):
    def raising():
        raise KeyError("no")

    fuzzer.functions["aclrtGetDevice"].call = raising
    with pytest.raises(fuzz_calls.FoundError, match="KeyError"):
        fuzzer.call("aclrtGetDevice")
    assert fuzzer.call("aclrtSetDevice") is None  # an argument too few


def test_a_process_that_dies_is_a_finding(monkeypatch, tmp_path, capfd):
    """The call that it died in is named."""
    broken, folder = tmp_path / "fuzz_calls.py", pathlib.Path(fuzz_calls.__file__).parent
    text = pathlib.Path(fuzz_calls.__file__).read_text(encoding="utf-8")
    text = text.replace(
        "            self.judge(",
        "            self.made == 40 and ctypes.string_at(0)\n            self.judge(",
    )
    broken.write_text(text)
    monkeypatch.setattr(fuzz_calls, "__file__", str(broken))
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
    assert fuzz_calls.watched(seed=1, count=100) == 1
    assert "seed 1, call 40: the process ended with" in capfd.readouterr().out


# --- Programs -------------------------------------------------------------------------------------


def first_finding(check, count=40):
    return next((wrong for seed in range(count) if (wrong := check(random.Random(seed)))), "")


def compiled(chance):
    return fuzz_programs.check_compiled(chance)[1]


@pytest.fixture
def captured(fuzzer):
    def check(chance):
        return fuzz_programs.check_capture(chance, fuzzer.call, fuzzer.rooms)

    return check


def test_programs_at_random(captured):
    assert first_finding(compiled, 80) == ""
    assert first_finding(captured, 60) == ""


def test_programs_have_views_writes_empties_and_more_than_8_dimensions():
    """And every operator that they may have: few steps are refused."""
    texts, shapes, strides, taken = [], [], [], 0
    for seed in range(400):
        program = fuzz_programs.Program(random.Random(seed))
        program.grow(6)
        taken += len(program.steps)
        texts += [text for text, _, _ in program.steps]
        shapes += [one.shape for one in program.arguments]
        strides += [step for one in program.arguments for step in one.strides]
    assert taken > 400 * 3
    assert {len(shape) for shape in shapes} >= {1, 2, 3, 9}
    assert any(0 in shape for shape in shapes)
    assert {np.sign(step) for step in strides} == {-1, 0, 1}
    names = {text.partition("(")[0] for text in texts}
    wanted = {
        *fuzz_programs.UNARY,
        *fuzz_programs.BINARY,
        *fuzz_programs.IN_PLACE,
        *fuzz_programs.ROWS,
    }
    assert wanted | {"assign", "cat", "matmul", "addmm", "embedding", "constant_pad_nd"} <= names
    assert any("[::-1]" in text for text in texts)


def test_a_seed_makes_the_same_program():
    def text(seed):
        program = fuzz_programs.Program(random.Random(seed))
        program.grow(6)
        return str(program)

    assert [text(seed) for seed in range(20)] == [text(seed) for seed in range(20)]


def test_a_compiled_function_with_other_bits_is_found(monkeypatch):
    """In its results, in its arguments, and where it raises; the finding has the program."""

    def found(careless):
        monkeypatch.setattr(fuzz_programs.aclnn, "compile", careless)
        monkeypatch.setattr(fuzz_programs, "check_written_over", lambda *_: "")
        return first_finding(compiled)

    def negated(function, threads):
        return lambda *given: [-np.asarray(one, float) for one in function(*given)]

    def unwritten(function, threads):
        return lambda *given: function(*(one.copy() for one in given))

    def raising(function, threads):
        raise KeyError("no")

    assert "single calls give" in found(negated)
    assert "single calls leave" in found(unwritten)
    text = found(raising)
    assert text.startswith("KeyError: 'no'\nv0 = ")


def test_captures_that_run_otherwise_are_found(captured, fuzzer):
    assert first_finding(captured, 5) == ""
    function = fuzzer.functions["aclmdlRIExecute"]
    function.call = lambda model, timeout: 0
    assert first_finding(captured).startswith("the model leaves")


class Hasty:
    """A compiled function that clears an output before it reads arguments."""

    def __init__(self, function, threads):
        self.function = function

    def __call__(self, *given, out=None):
        if out is None:
            return self.function(*given)
        out[...] = 0
        out[...] = self.function(*given)
        return out

    def executor(self, *given, out=None):
        return SimpleNamespace(
            run=lambda *other, **named: self(*(other or given), **({"out": out} | named))
        )


def test_an_argument_that_is_overwritten_before_it_is_read_is_found(monkeypatch):
    monkeypatch.setattr(fuzz_programs.aclnn, "compile", Hasty)
    assert re.match(r"the result by \w+ into v\d from element", first_finding(compiled))
