"""Junk wherever something is given: a status or an error, and never a crash."""

import inspect
import math
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from cases import each
from setups import Hostile, fresh, planned, tensor

import aclnn

OK, INVALID = 0, 161002


JUNK = [None, -1, -(10**5000), 10**5000, 0.5, "x", b"x", (), [], [1], object(), Hostile(), 1j,
        float("nan"), np.array("a"), np.array([1, 2]), __import__("decimal").Decimal("sNaN")]  # fmt: skip


class Text(str):
    """A string with odd ideas of itself."""

    def __eq__(self, other):
        raise RuntimeError("no")

    def __hash__(self):
        raise RuntimeError("no")

    __str__ = __repr__ = __hash__


def test_strings_of_other_classes_are_their_letters():
    x = np.float32([0.25, 0.5])
    tanh = aclnn.gelu_backward(x, x, approximate="tanh")
    same = tensor(x)
    plan = aclnn.aclnnGeluBackwardV2GetWorkspaceSize
    for kind in (Text, np.str_):
        np.testing.assert_array_equal(aclnn.gelu_backward(x, x, approximate=kind("tanh")), tanh)
        assert plan(same, same, kind("tanh"), same)[2] == OK
        assert plan(same, same, kind("erf"), same)[2] == INVALID
        assert aclnn.aclGetRecentErrMsg()


class Number(int):
    """An integer with odd ideas of itself."""

    def __int__(self):
        raise RuntimeError("no")

    __index__ = __repr__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __int__


def test_integers_of_other_classes_are_their_digits():
    address, status = aclnn.aclrtMalloc(Number(64), Number(0))
    assert status == OK
    x = np.zeros(4, np.float32)
    assert aclnn.aclCreateTensor((Number(4),), 0, None, 0, 2, (4,), Number(address)) is not None
    executor = planned(tensor(x), tensor(x))
    assert aclnn.aclnnGelu(None, Number(0), executor, None) == OK
    assert aclnn.aclrtFree(Number(address)) == OK
    assert aclnn.aclrtFree(Number(address)) != OK


def test_a_scalar_of_a_number_that_raises():
    class Raising(float):
        def __float__(self):
            raise RuntimeError("no")

    assert aclnn.aclCreateScalar(Raising(2), aclnn.ACL_FLOAT) is None
    assert "value is" in aclnn.aclGetRecentErrMsg()


def test_an_address_is_asked_for_once():
    class Changing(int):
        def __int__(self):
            return 8

    address, _ = aclnn.aclrtMalloc(64, 0)
    made = aclnn.aclCreateTensor((4,), 0, None, 0, 2, (4,), Changing(address))
    assert aclnn.aclGetRawTensorAddr(made)[0] == address
    assert aclnn.aclrtFree(address) == OK


def test_durations_are_no_integers():
    assert aclnn.aclrtMalloc(np.timedelta64(64, "s"), 0) == (0, 107000)
    with pytest.raises(aclnn.AclnnError, match="number of threads is"):
        aclnn.set_num_threads(np.timedelta64(2, "s"))


def test_a_word_is_no_number_even_if_it_is_the_default_of_another_function():
    same = tensor(np.zeros(2, np.float32))
    assert aclnn.aclnnGeluV2GetWorkspaceSize(same, "none", same)[2] == INVALID
    assert "must be an int" in aclnn.aclGetRecentErrMsg()


def test_workspaces_that_raise_when_looked_at():
    class Raising:
        @property
        def dtype(self):
            raise RuntimeError("odd")

    storage = np.ones(17, np.float32)
    x, out = tensor(storage[:-1]), tensor(storage[1:])
    size, executor, _ = aclnn.aclnnGeluGetWorkspaceSize(x, out)
    assert size > 0
    assert aclnn.aclnnGelu(Raising(), size, executor, None) == INVALID
    assert "odd" in aclnn.aclGetRecentErrMsg()


def status_of(result):
    """The status, which comes last."""
    return result[-1] if isinstance(result, tuple) else result


@pytest.mark.parametrize("name", ["aclnnLogitGrad", "aclnnGeluV2", "aclnnGeluBackwardV2"])
def test_junk_in_each_place_of_phase_one(name):
    plan = getattr(aclnn, f"{name}GetWorkspaceSize")
    x = tensor(np.full(2, 0.5, np.float32))
    good = {
        "aclnnLogitGrad": [x, x, 0.25, x], "aclnnGeluV2": [x, 1, x],
        "aclnnGeluBackwardV2": [x, x, "tanh", x],
    }[name]  # fmt: skip
    assert status_of(plan(*good)) == OK
    for position in range(len(good)):
        for junk in JUNK:
            status = status_of(plan(*good[:position], junk, *good[position + 1 :]))
            refused = status in (161001, INVALID)
            assert refused or status == OK
            assert bool(aclnn.aclGetRecentErrMsg()) == refused


@pytest.mark.parametrize("position", range(4))
def test_junk_in_each_place_of_phase_two(position):
    for junk in JUNK:
        executor = planned(tensor(np.ones(2, np.float32)), tensor(np.ones(2, np.float32)))
        good = [None, 0, executor, None]
        status = aclnn.aclnnGelu(*good[:position], junk, *good[position + 1 :])
        assert isinstance(status, int)
        assert bool(aclnn.aclGetRecentErrMsg()) == (status != OK)


@pytest.mark.parametrize("junk", JUNK[1:], ids=range(1, len(JUNK)))
def test_junk_for_options_of_functional_forms(junk):
    x = np.float32([0.25, 0.5])
    for call in (
        lambda: aclnn.leaky_relu(x, junk),
        lambda: aclnn.logit_backward(x, x, junk),
        lambda: aclnn.gelu(x, approximate=junk),
        lambda: aclnn.gelu_backward(x, x, approximate=junk),
        lambda: aclnn.executor("gelu", x, approximate=junk),
        lambda: aclnn.executor("leaky_relu", x, negative_slope=junk),
    ):
        try:
            call()
        except aclnn.AclnnError as error:
            assert error.status == INVALID


def test_refused_options_leave_nothing_behind():
    x = np.float32([0.25, 0.5])

    def refused(word):
        try:
            aclnn.gelu_backward(x, x, approximate=word)
        except aclnn.AclnnError as error:
            return "approximate" in str(error)
        return False

    assert all(refused(f"bad{number}") for number in range(0x8000))
    # As many as a key has numbers for: none of them may have become that of a plan.
    np.testing.assert_array_equal(
        aclnn.gelu_backward(x, x, approximate="none"), aclnn.gelu_backward(x, x)
    )


@pytest.mark.parametrize(
    "dtype", [np.longdouble, np.clongdouble, "float8_e5m2", "int4", "V0", "M8[s]", "U3", "O"]
)
def test_dtypes_that_nobody_knows(dtype):
    unknown = np.zeros(3, getattr(ml_dtypes, str(dtype), dtype))
    x = np.zeros(3, np.float32)
    for call in (
        lambda: aclnn.gelu(unknown),
        lambda: aclnn.gelu(x, out=unknown),
        lambda: aclnn.gelu_backward(x, unknown),
        lambda: aclnn.executor("gelu", unknown),
        lambda: aclnn.executor("gelu", x, out=unknown),
    ):
        with pytest.raises(aclnn.AclnnError, match="dtype"):
            call()


ARGUMENTS = [None, 0, -1, 2**80, 3.5, math.nan, "x", b"", (), [1], {}, object(), np.zeros(2), True]


STATELESS = [
    n for n in dir(aclnn)
    if n.lower().startswith("acl") and callable(getattr(aclnn, n)) and not isinstance(getattr(aclnn, n), type)
    and n not in ("aclInit", "aclFinalize", "aclGetRecentErrMsg")
]  # fmt: skip
# They give an object instead of a status, or None.
MAKERS = {
    "aclCreateTensor": aclnn.aclTensor,
    "aclCreateScalar": aclnn.aclScalar,
    "aclCreateIntArray": aclnn.aclIntArray,
    "aclCreateFloatArray": aclnn.aclFloatArray,
    "aclCreateBoolArray": aclnn.aclBoolArray,
    "aclCreateTensorList": aclnn.aclTensorList,
    "aclCreateScalarList": aclnn.aclScalarList,
    "aclrtGetSocName": str,
}
# They give a value, which tells nothing of a failure.
VALUES = {
    "aclAppLog": type(None),
    "aclDataTypeSize": int,
    "aclFloat16ToFloat": float,
    "aclFloatToFloat16": int,
    "aclrtGetLastError": int,
    "aclrtPeekAtLastError": int,
}


@each("name", STATELESS)
def test_junk_gives_statuses_and_never_crashes(name):
    rng = np.random.default_rng(8)
    function = getattr(aclnn, name)
    needed = [p.default is p.empty for p in inspect.signature(function).parameters.values()]
    aclnn.aclGetRecentErrMsg()
    least, most = sum(needed), len(needed)
    for count in (*range(least), *range(most + 1, 9)):
        with pytest.raises(TypeError, match="argument"):
            function(*ARGUMENTS[:count])
    for count in list(range(least, most + 1)) * 60:
        result = function(*(ARGUMENTS[i] for i in rng.integers(0, len(ARGUMENTS), count)))
        if name in VALUES:
            assert isinstance(result, VALUES[name])
            aclnn.aclGetRecentErrMsg()
            continue
        if name in MAKERS:
            refused = result is None
            assert refused or isinstance(result, MAKERS[name])
        else:
            refused = status_of(result) != OK
            assert type(status_of(result)) is int
        assert bool(aclnn.aclGetRecentErrMsg()) == refused


# What is written in Cython trusts the types that its parameters name, but for None.
SOURCES = [path for folder in ("aclnn", "graph")
           for path in (Path(__file__).parents[2] / folder).rglob("*.pyx")]  # fmt: skip
C_TYPES = {"int", "bint", "double", "float", "size_t", "Py_ssize_t", "ptrdiff_t", "uintptr_t",
           "int64_t", "uint64_t"}  # fmt: skip


def typed_parameters(source):
    """Function, type, and what else is said, of each parameter with a type that Python can reach."""
    for name, given in re.findall(r"^ *def (\w+)\(([^)]*)\)", source, re.MULTILINE):
        for parameter in given.split(","):
            words = parameter.partition("=")[0].split()
            # Else it is of any type, or a pointer, which only C can give.
            typed = len(words) > 1 and words[1] != "not" and not words[1].startswith("*")
            if typed and words[0] not in C_TYPES and "=" not in parameter:
                yield name, words


@pytest.mark.skipif(not SOURCES, reason="run from an installation without sources")
def test_no_typed_parameter_takes_none():
    found = [(path.name, name, words) for path in SOURCES
             for name, words in typed_parameters(path.read_text(encoding="utf-8"))]  # fmt: skip
    assert ("_kernels.pyx", "cast_kernel", ["str", "src", "not", "None"]) in found
    assert [one for one in found if one[2][2:] != ["not", "None"]] == []


NONES = """
from aclnn import isa
from aclnn.acl import _buffer
from aclnn.api import two_phase, functional
from aclnn.compiler._compiled_call import CompiledCall
from aclnn.compiler._plan_cache import OperatorHandle
kernels = isa.kernels()
entry, form = two_phase.entry("aclnnGelu"), functional.form("gelu")
calls = [
    lambda: type(entry)(None, entry.entry, None),
    lambda: type(entry)(entry.handle, None, None),
    lambda: type(entry).__new__(type(entry)).functions("m", "a", "b"),
    lambda: entry.functions(None, None, None),
    lambda: type(form)(None, "gelu", ("self",), 1, None),
    lambda: type(form)(form.handle, None, ("self",), 1, None),
    lambda: type(form)(form.handle, "gelu", None, 1, None),
    lambda: type(form).__new__(type(form)).bind([], None, [], None, []),
    lambda: form.function(None, None),
    lambda: OperatorHandle(None, 0),
    lambda: OperatorHandle.__new__(OperatorHandle),
    lambda: CompiledCall.__new__(CompiledCall),
    lambda: kernels.run(None, [], (0, 0, 0), 1, 1),
    lambda: kernels.compute_kernel(None, (), "float32"),
    lambda: kernels.compute_kernel("gelu", None, "float32"),
    lambda: kernels.compute_kernel("gelu", ("float32",), None),
    lambda: kernels.cast_kernel(None, "float32"),
    lambda: _buffer.mentions_objects(None),
]
for place, call in enumerate(calls):
    try:
        call()
    except (TypeError, AttributeError):
        print(place, end=" ")
    except Exception as error:
        print(place, repr(error))
"""


def test_nothing_written_in_cython_crashes_with_none():
    done = fresh(NONES)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == list(map(str, range(NONES.count("lambda:"))))
