"""A short run of `fuzz_calls.py`, and whether it would notice."""

import faulthandler
import pathlib

import fuzz_calls
import numpy as np
import pytest

from aclnn.operators import ENTRIES


def test_calls_at_random():
    assert fuzz_calls.watched(seed=11, count=2000) == 0


@pytest.fixture
def fuzzer():
    yield fuzz_calls.Fuzzer(0, 100)
    faulthandler.cancel_dump_traceback_later()


def test_every_operator_is_planned_and_run(fuzzer, monkeypatch):
    """On operands that belong together, and not only refused."""
    for name in ENTRIES:
        runs = []
        for _ in range(60):
            monkeypatch.setattr(fuzzer, "planned", [])
            fuzzer.plan(f"{name}GetWorkspaceSize")
            for planned in fuzzer.planned:
                size = planned.workspace
                memory = np.empty(size, np.uint8) if size else None
                runs.append(fuzzer.call(name, memory, size, planned.executor, None))
            if 0 in runs:
                break
        assert 0 in runs, name


def test_every_function_says_which_statuses_it_may_give(fuzzer):
    objects = {"aclCreateScalar", "aclCreateTensor", "aclGetRecentErrMsg", "aclrtGetSocName"}
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
    broken = tmp_path / "fuzz_calls.py"
    text = pathlib.Path(fuzz_calls.__file__).read_text(encoding="utf-8")
    text = text.replace(
        "            self.judge(",
        "            self.made == 40 and ctypes.string_at(0)\n            self.judge(",
    )
    broken.write_text(text)
    monkeypatch.setattr(fuzz_calls, "__file__", str(broken))
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parent), prepend=":")
    assert fuzz_calls.watched(seed=1, count=100) == 1
    assert "seed 1, call 40: the process ended with" in capfd.readouterr().out
