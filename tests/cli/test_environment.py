"""Variables of the environment: what they accept, what they refuse, and how they say so."""

import argparse
import os
import pathlib

import pytest
from setups import fresh

import aclnn
from aclnn import cli, environment, isa
from aclnn.api import handles, tensor_text
from aclnn.cli import values
from aclnn.compiler import settings

BAD = [
    ("ACLNN_ISA", "avx512"), ("ACLNN_ISA", "v"),
    ("ACLNN_NUM_THREADS", "²"), ("ACLNN_NUM_THREADS", "٣"), ("ACLNN_NUM_THREADS", "0"),
    ("ACLNN_NUM_THREADS", "1025"), ("ACLNN_NUM_THREADS", "-1"), ("ACLNN_NUM_THREADS", "1_0"),
    ("ACLNN_NUM_THREADS", "9" * 5000), ("ACLNN_SOC_VERSION", "Ascend911"),
    ("ACLNN_PLANNER", "best"), ("ACLNN_MATERIALIZE", "2"), ("ACLNN_MATERIALIZE", "maybe"),
    ("ACLNN_PLAN_CACHE", "abc"), ("ACLNN_PLAN_CACHE", "99999999999"), ("ACLNN_PLAN_CACHE", "-1"),
    ("ACLNN_PLAN_CACHE", "1.0"), ("ACLNN_VERBOSE", "3"), ("ACLNN_VERBOSE", "loud"),
    ("ACLNN_VERBOSE_TO", "stdout"), ("ACLNN_CACHE_DIR", "kept/here"),
    ("ACLNN_RECORD", "/nowhere/calls.py"), ("ACLNN_REPORT", "/nowhere/page.html"), ("ACLNN_PYTHON", "/nowhere/python"),
    ("ACLNN_NPU", "perhaps"), ("ACLNN_NPU_SOC", "Ascend911"), ("ACLNN_NPU_MEMORY", "much"), ("ACLNN_NPU_FALLBACK", "ask"),
    ("ACLNN_NPU_DEVICES", "0"), ("ACLNN_DEBUG", "maybe"),
]  # fmt: skip
GOOD = [
    ("ACLNN_ISA", "generic", "generic"), ("ACLNN_ISA", " Generic ", "generic"), ("ACLNN_ISA", "", None),
    ("ACLNN_NUM_THREADS", "3", 3), ("ACLNN_NUM_THREADS", "0" * 5000 + "7", 7),
    ("ACLNN_NUM_THREADS", "1024", 1024), ("ACLNN_NUM_THREADS", " ", None),
    ("ACLNN_SOC_VERSION", "ascend310p3", "Ascend310P"), ("ACLNN_SOC_VERSION", "", "Ascend910B"),
    ("ACLNN_PLANNER", "bucket", "bucket"), ("ACLNN_PLANNER", "Naive", "naive"),
    ("ACLNN_PLANNER", "", "default"),
    *(("ACLNN_MATERIALIZE", word, True) for word in ("1", "true", "True", "YES", "on")),
    *(("ACLNN_MATERIALIZE", word, False) for word in ("0", "false", "False", "NO", "off", "", " ")),
    ("ACLNN_PLAN_CACHE", "0", 0), ("ACLNN_PLAN_CACHE", "2147483647", 2**31 - 1),
    ("ACLNN_PLAN_CACHE", "", 1024), ("ACLNN_VERBOSE", "2", 2), ("ACLNN_VERBOSE", "", 0),
    ("ACLNN_VERBOSE_TO", "Logger", "logger"), ("ACLNN_VERBOSE_TO", "", "stderr"),
    ("ACLNN_CACHE_DIR", "/kept/here", pathlib.Path("/kept/here")), ("ACLNN_CACHE_DIR", "", None),
    ("ACLNN_RECORD", "calls.py", pathlib.Path("calls.py")), ("ACLNN_RECORD", "", None),
    ("ACLNN_REPORT", "/tmp/page.html", pathlib.Path("/tmp/page.html")), ("ACLNN_REPORT", "", None),
    ("ACLNN_PYTHON", "/bin/sh", "/bin/sh"), ("ACLNN_PYTHON", "", None),
    ("ACLNN_NPU", "1", True), ("ACLNN_NPU", "", False), ("ACLNN_NPU_SOC", "", "Ascend910B3"),
    ("ACLNN_NPU_MEMORY", "32GiB", 32 << 30), ("ACLNN_NPU_FALLBACK", "warn", "warn"), ("ACLNN_NPU_DEVICES", "2", 2),
    ("ACLNN_DEBUG", "1", True), ("ACLNN_DEBUG", "", False),
]  # fmt: skip
ONE_EACH = dict(reversed(BAD))  # the first of each
NOT_OF_CALLS = (
    "ACLNN_CACHE_DIR", "ACLNN_RECORD", "ACLNN_REPORT", "ACLNN_PYTHON", "ACLNN_NPU", "ACLNN_NPU_SOC", "ACLNN_NPU_MEMORY",
    "ACLNN_NPU_FALLBACK", "ACLNN_NPU_DEVICES", "ACLNN_DEBUG",
)  # fmt: skip
OF_CALLS = [pair for pair in ONE_EACH.items() if pair[0] not in NOT_OF_CALLS]
# This process reads its own settings now, not while a test has changed the environment.
assert handles.HANDLES["gelu"]
assert isa.name()
VARIABLES = {variable.name: variable for variable in environment.VARIABLES}


@pytest.mark.parametrize(("name", "text", "value"), GOOD)
def test_values(monkeypatch, name, text, value):
    monkeypatch.setenv(name, text)
    assert VARIABLES[name].read() == value
    monkeypatch.delenv(name)
    assert VARIABLES[name].read() == VARIABLES[name].default


@pytest.mark.parametrize(("name", "text"), BAD, ids=lambda text: text[:20])
def test_what_makes_no_sense_is_an_error_that_names_variable_value_and_rule(
    monkeypatch, name, text
):
    monkeypatch.setenv(name, text)
    with pytest.raises(aclnn.AclnnError) as caught:
        VARIABLES[name].read()
    assert caught.value.status == aclnn.ACLNN_ERR_PARAM_INVALID
    assert str(caught.value).startswith(f"{name} is '{text[:100]}")
    assert ", must be " in str(caught.value)
    assert len(str(caught.value)) < 400


READERS = {
    "variable": environment.NUM_THREADS.parse,
    "natural": values.natural,
    "positive": values.positive,
    "threads": values.threads,
    "size": lambda text: tensor_text.parse(f"float32[{text}]").shape[0],
    "stride": lambda text: tensor_text.parse(f"float32[2:strides={text}]").strides[0],
    "offset": lambda text: tensor_text.parse(f"float32[2:offset={text}]").offset,
}


@pytest.mark.parametrize("reader", READERS)
def test_whole_numbers_are_read_alike_wherever_they_stand(reader):
    for text in ("7", "+7", "007", "0" * 5000 + "7"):
        assert READERS[reader](text) == 7
    for text in ("x", "1_0", "²", "٣", "7.0", "0x7", "--7", "9" * 5000):
        with pytest.raises((ValueError, argparse.ArgumentTypeError), match="must be an integer"):
            READERS[reader](text)


def test_bounds_of_whole_numbers_belong_to_them():
    for low, high in ((0, 7), (-7, 7), (-9, -1), (3, 3)):
        for number in range(-12, 13):
            if low <= number <= high:
                assert environment.whole(str(number), low, high) == number
                continue
            with pytest.raises(ValueError, match=f"must be an integer from {low} to {high}"):
                environment.whole(str(number), low, high)


def test_every_variable_has_a_good_and_a_bad_value_here():
    assert {name for name, _ in BAD} == {name for name, _, _ in GOOD} == set(VARIABLES)


FIRST_USES = (
    "aclnn.gelu(numpy.zeros(3, 'f4'))",
    "aclnn.executor('gelu', numpy.zeros(3, 'f4'))",
    "t = aclnn.aclCreateTensor((3,), 0, None, 0, 2, (3,), numpy.zeros(3, 'f4'));"
    "status = aclnn.aclnnGeluGetWorkspaceSize(t, t)[2];"
    "status and print(aclnn.aclGetRecentErrMsg())",
)


@pytest.mark.parametrize(("name", "text"), OF_CALLS)
def test_the_first_use_says_so(name, text):
    """Whichever it is, and those after it: nothing is kept of a use that fails."""
    first = list(ONE_EACH).index(name) % len(FIRST_USES)
    code = f"""
import aclnn, numpy
for use in {FIRST_USES[first:] + FIRST_USES[:first]}:
    try:
        exec(use)
    except aclnn.AclnnError as error:
        print(error)
"""
    done = fresh(code, **{name: text})
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"{name} is '{text}', must be ") == len(FIRST_USES)


@pytest.mark.parametrize(("name", "text"), OF_CALLS)
def test_commands_say_so_in_one_line(name, text):
    commands = (["config"], ["inspect", "gelu", "--self", "float32[3]"])
    done = fresh(f"from aclnn.cli import main; exit(sum(map(main, {commands})))", **{name: text})
    assert done.returncode == len(commands)
    for command, line in zip(commands, done.stderr.splitlines(), strict=True):
        assert line.startswith(f"aclnn {command[0]}: ")
        assert f"{name} is '{text}', must be " in line


def test_a_folder_that_makes_no_sense_is_refused_where_it_is_used():
    done = fresh("from aclnn.cli import main; exit(main(['config']))", ACLNN_CACHE_DIR="kept/here")
    assert done.returncode == 1
    assert done.stderr == "aclnn config: ACLNN_CACHE_DIR is 'kept/here', must be an absolute path\n"


def test_help_needs_no_sense_in_the_environment():
    commands = (["--help"], ["--version"], ["config", "--help"], ["bench", "--help"])
    run = f"""
from aclnn.cli import main
for command in {commands}:
    try:
        main(command)
    except SystemExit as left:
        assert not left.code
    print("\\0")
"""
    done = fresh(run, **ONE_EACH)
    assert done.returncode == 0, done.stderr
    *shown, _ = done.stdout.split("\0")
    assert len(shown) == len(commands)
    assert all(map(str.strip, shown))


SHOWN = {
    "ACLNN_ISA": ("generic", "isa         name generic,"),
    "ACLNN_NUM_THREADS": ("3", "threads     set 3,"),
    "ACLNN_SOC_VERSION": ("Ascend310P3", "soc         Ascend310P\n"),
    "ACLNN_PLAN_CACHE": ("7", ", limit 7\n"),
    "ACLNN_MATERIALIZE": ("no", ""),
    "ACLNN_PLANNER": ("naive", ""),
    "ACLNN_VERBOSE": ("1", ""),
    "ACLNN_VERBOSE_TO": ("logger", ""),
    "ACLNN_CACHE_DIR": ("/kept/here", "measured    folder /kept/here, kept 0, build "),
    "ACLNN_RECORD": ("calls.py", ""),
    "ACLNN_REPORT": ("page.html", ""),
    "ACLNN_DEBUG": ("1", ""),
    "ACLNN_PYTHON": ("/bin/sh", ""),
    "ACLNN_NPU": ("1", ""),
    "ACLNN_NPU_SOC": ("Ascend910B1", ""),
    "ACLNN_NPU_MEMORY": ("32GiB", ""),
    "ACLNN_NPU_FALLBACK": ("warn", ""),
    "ACLNN_NPU_DEVICES": ("2", ""),
}


def test_the_configuration_shows_what_is_set_and_follows_it():
    assert {*SHOWN} == {*VARIABLES}
    shown = fresh(
        "import aclnn; aclnn.show_config()", **{n: text for n, (text, _) in SHOWN.items()}
    )
    named = shown.stdout.splitlines()[-1].removeprefix("environment ").split(", ")
    for name, (text, words) in SHOWN.items():
        assert words in shown.stdout
        assert f"{name} {text}" in named


def test_the_configuration_shows_that_nothing_is_set():
    shown = fresh("import aclnn; aclnn.show_config()").stdout
    assert shown.endswith("environment nothing is set\n")


def test_the_cache_is_asked_about_in_a_fresh_process():
    code = "import aclnn; print(aclnn.cache_info()['limit'])"
    assert fresh(code, ACLNN_PLAN_CACHE="7").stdout == "7\n"
    assert fresh(code).stdout == f"{environment.PLAN_CACHE.default}\n"


@pytest.mark.parametrize(("limit", "hits"), [(0, 0), (7, 1)])
def test_as_many_plans_are_kept_as_is_said(limit, hits):
    code = "import aclnn, numpy; x = numpy.zeros(3, 'f4'); aclnn.gelu(x); aclnn.gelu(x);"
    found = fresh(f"{code} print(aclnn.cache_info())", ACLNN_PLAN_CACHE=str(limit)).stdout
    counts = {"hits": hits, "misses": 2 - hits, "size": min(limit, 1), "limit": limit}
    assert found == f"{counts}\n"


@pytest.mark.parametrize("word", ["true", "false", "off", None])
def test_words_for_yes_and_no_do_what_they_say(word):
    code = (
        "import aclnn, numpy as np;"
        "print(aclnn.executor('gelu', np.zeros((8, 8), 'f4').T[::2]).workspace_size > 0)"
    )
    variables = {"ACLNN_MATERIALIZE": word} if word else {}
    assert fresh(code, **variables).stdout == f"{word == 'true'}\n"


@pytest.mark.parametrize("name", VARIABLES)
def test_help_lists_every_variable(capsys, name):
    with pytest.raises(SystemExit):
        cli.main(["config", "--help"])
    assert f"  {name} " in capsys.readouterr().out


FIRST_CALLS = {
    "functional": "aclnn.leaky_relu(x, out=out); ex = aclnn.executor('leaky_relu', x, out=out)",
    "executor": "ex = aclnn.executor('leaky_relu', x, out=out)",
    "c_shaped": "t = [aclnn.aclCreateTensor((n,), dtype, None, 0, 2, (n,), m) for m in (x, out)];"
    "ex = aclnn.aclnnLeakyReluGetWorkspaceSize(t[0], aclnn.aclCreateScalar(0.5, 0), t[1])[1]",
}


@pytest.mark.parametrize("form", FIRST_CALLS)
def test_the_first_plan_of_a_process_follows_the_environment(form):
    code = (
        "import aclnn, numpy as np; n, dtype = 1 << 20, 0; x = np.ones(n, 'f4'); out = x.copy();"
        f"{FIRST_CALLS[form]}; print(ex.schedule.max_threads, len(ex.schedule.steps))"
    )
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert fresh(code).stdout.split() == [str(min(cpus, 64)), "1"]
    assert fresh(code, ACLNN_NUM_THREADS="3").stdout.split()[0] == "3"
    if form != "c_shaped":
        column = code.replace("np.ones(n, 'f4')", "np.ones((n, 2), 'f4')[:, 0]")
        assert fresh(column).stdout.split()[1] == "1"
        assert fresh(column, ACLNN_MATERIALIZE="1").stdout.split()[1] == "2"


def test_all_cpus_are_usable_where_the_system_does_not_tell(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert settings.usable_cpus() == 7
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert settings.usable_cpus() == 1


def test_an_error_of_the_environment_is_not_forgotten():
    found = fresh(
        """
import os, aclnn
for text in ("bad", "bad", "Ascend310P"):
    os.environ["ACLNN_SOC_VERSION"] = text
    try:
        print(aclnn.aclrtGetSocName())
    except aclnn.AclnnError as error:
        print("ACLNN_SOC_VERSION" in str(error))
print(aclnn.get_soc_version())
""",
        ACLNN_SOC_VERSION="bad",
    )
    assert found.stdout.split() == ["True", "True", "Ascend310P", "Ascend310P"], found.stderr
