"""Arrays of numbers, lists of tensors and scalars: what they hold, refuse and destroy."""

import gc
import mmap
from decimal import Decimal
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from setups import Hostile, message, planned

import aclnn
from aclnn.acl import _lists

OK, NULLPTR, INVALID = 0, 161001, 161002
ARRAYS, LISTS = ("IntArray", "FloatArray", "BoolArray"), ("TensorList", "ScalarList")


def function(verb, kind, suffix=""):
    return getattr(aclnn, f"acl{verb}{kind}{suffix}")


def tensor(data=None):
    return aclnn.aclCreateTensor((2,), aclnn.ACL_FLOAT, None, 0, aclnn.ACL_FORMAT_ND, (2,), data)


def scalar():
    return aclnn.aclCreateScalar(2, aclnn.ACL_FLOAT)


ENTRIES = {
    "IntArray": lambda: 3, "FloatArray": lambda: 0.5, "BoolArray": lambda: True,
    "TensorList": tensor, "ScalarList": scalar,
}  # fmt: skip


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_ints_are_kept(values):
    made = aclnn.aclCreateIntArray(values)
    assert made.numbers() == tuple(values)
    assert aclnn.aclGetIntArraySize(made) == (len(values), OK)


@given(st.lists(st.floats(allow_nan=False)))
def test_floats_are_rounded_to_float32(values):
    with np.errstate(over="ignore"):
        want = np.array(values, np.float64).astype(np.float32)
    np.testing.assert_array_equal(np.float32(aclnn.aclCreateFloatArray(values).numbers()), want)


def test_numbers_of_other_kinds():
    made = aclnn.aclCreateFloatArray(
        [Fraction(1, 3), Decimal("0.1"), 3, np.float16(0.5), ml_dtypes.bfloat16(2), 10**400]
    )
    want = (float(np.float32(1 / 3)), float(np.float32(0.1)), 3, 0.5, 2, float("inf"))
    assert made.numbers() == want
    assert aclnn.aclCreateIntArray(np.arange(3, dtype=np.int8)).numbers() == (0, 1, 2)
    assert aclnn.aclCreateIntArray(x for x in (7, 8)).numbers() == (7, 8)
    assert aclnn.aclCreateBoolArray([np.True_, False, 2, np.int8(0)]).numbers() == (
        True, False, True, False,
    )  # fmt: skip


def test_floats_are_rounded_once():
    tie = 1 + Fraction(1, 2**24) + Fraction(1, 2**90)
    assert aclnn.aclCreateFloatArray([tie]).numbers() == (1 + 2**-23,)


@pytest.mark.parametrize(
    ("kind", "entry", "rule"),
    [("IntArray", 2**63, "INT64 holds"), ("IntArray", -(2**63) - 1, "INT64 holds"),
     ("IntArray", 10**300, "INT64 holds"), ("IntArray", 1.0, "must be an int"),
     ("IntArray", True, "must be an int"), ("IntArray", None, "must be an int"),
     ("IntArray", Hostile(), "must be an int"), ("IntArray", np.timedelta64(3, "s"), "must be an int"),
     ("FloatArray", "1", "must be a number"), ("FloatArray", 1j, "must be a number"),
     ("FloatArray", None, "must be a number"), ("FloatArray", Hostile(), "must be a number"),
     ("FloatArray", np.complex64(1), "must be a number"),
     ("BoolArray", "no", "must be a bool"), ("BoolArray", 1.0, "must be a bool"),
     ("BoolArray", None, "must be a bool"), ("BoolArray", Hostile(), "must be a bool"),
     ("TensorList", "x", "must be an aclTensor"), ("TensorList", None, "must be an aclTensor"),
     ("TensorList", scalar(), "must be an aclTensor"), ("ScalarList", 2.0, "must be an aclScalar"),
     ("ScalarList", None, "must be an aclScalar"), ("ScalarList", tensor(), "must be an aclScalar")],
)  # fmt: skip
def test_refused_entries_are_named(kind, entry, rule):
    assert function("Create", kind)([ENTRIES[kind](), entry]) is None
    text = message()
    assert text.startswith(f"aclCreate{kind}: value[1] is ")
    assert rule in text


@pytest.mark.parametrize("kind", ENTRIES)
@pytest.mark.parametrize("given", [None, 3, "12", b"12", bytearray(2), Hostile(), object()])
def test_what_is_no_sequence(kind, given):
    assert function("Create", kind)(given) is None
    assert message().startswith(f"aclCreate{kind}: value is ")
    assert f"({NULLPTR if given is None else INVALID})" in aclnn.explain()


@pytest.mark.parametrize("kind", ENTRIES)
def test_life_and_end(kind):
    create, destroy, size = (
        function("Create", kind), function("Destroy", kind), function("Get", kind, "Size"),
    )  # fmt: skip
    entries = [ENTRIES[kind]() for _ in range(3)]
    made = create(entries)
    assert isinstance(made, getattr(aclnn, f"acl{kind}"))
    assert repr(made).startswith(f"<acl{kind} [")
    assert size(made) == (3, OK)
    assert size(create([])) == (0, OK)
    assert destroy(made) == OK
    assert repr(made) == f"<acl{kind}, destroyed>"
    name = "array" if kind in ARRAYS else "list"
    assert size(made) == (0, NULLPTR)
    assert message() == f"aclGet{kind}Size: {name} is destroyed"
    assert destroy(made) == NULLPTR
    assert message() == f"aclDestroy{kind}: {name} is destroyed"
    assert destroy(None) == OK
    assert size(None) == (0, NULLPTR)
    assert message() == f"aclGet{kind}Size: {name} is null"
    for other in ("x", [], *(ENTRIES[k]() for k in LISTS)):
        assert destroy(other) == INVALID
        assert message().endswith(f"must be an acl{kind}")
        assert size(other) == (0, INVALID)


def test_ints_too_long_to_print():
    assert aclnn.aclCreateIntArray([10**5000]) is None
    assert "value[0] is an int of 16610 bits" in message()


@pytest.mark.parametrize("kind", ENTRIES)
def test_only_functions_make_them(kind):
    with pytest.raises(TypeError, match=f"aclCreate{kind}"):
        getattr(_lists, f"acl{kind}")()


@pytest.mark.parametrize("kind", LISTS)
def test_destroyed_entries_are_refused(kind):
    good, gone = ENTRIES[kind](), ENTRIES[kind]()
    assert function("Destroy", kind.removesuffix("List"))(gone) == OK
    assert function("Create", kind)([good, gone]) is None
    assert "value[1] is destroyed" in message()


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_destroys_what_it_holds(kind):
    entries = [ENTRIES[kind]() for _ in range(2)]
    destroy_one = function("Destroy", kind.removesuffix("List"))
    made = function("Create", kind)([*entries, entries[0]])
    assert destroy_one(entries[1]) == OK  # before the list is
    assert function("Destroy", kind)(made) == OK
    assert [one.destroyed for one in entries] == [True, True]
    assert destroy_one(entries[0]) == NULLPTR
    assert made.items == ()


def test_a_list_keeps_its_tensors_memory_until_it_is_destroyed():
    memory = mmap.mmap(-1, 4096)
    made = aclnn.aclCreateTensorList([tensor(memory)])
    gc.collect()
    with pytest.raises(BufferError):
        memory.close()
    assert aclnn.aclDestroyTensorList(made) == OK
    memory.close()


@pytest.mark.parametrize("name", ["SetInputTensorAddr", "SetOutputTensorAddr", "SetTensorAddr"])
def test_older_spellings(name):
    x, out, other = np.float32([-1, 2]), np.zeros(2, np.float32), np.float32([7, 9])
    executor = planned(tensor(x), tensor(out))
    want = aclnn.gelu(x if "Output" in name else other)
    assert getattr(aclnn, f"Acl{name}")(executor, 0, tensor(x), other) == OK
    assert aclnn.aclnnGelu(None, 0, executor, None) == OK
    np.testing.assert_array_equal(other if "Output" in name else out, want)
