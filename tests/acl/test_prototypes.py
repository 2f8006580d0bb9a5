"""The table of the C interface: what it says fits together, and fits the functions in Python."""

import re

import pytest

from aclnn.acl import constants, prototypes

ALL = {**prototypes.RUNTIME, **prototypes.OBJECTS}
PLAIN = {"void", "char", "bool", "float", "size_t", "int"}
PLAIN |= {f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def test_both_tables_have_every_function_once():
    assert len(prototypes.RUNTIME) == 90
    assert len(prototypes.OBJECTS) == 44
    assert not set(prototypes.RUNTIME) & set(prototypes.OBJECTS)


def test_every_type_is_known():
    enumerations = {kind.__name__ for kind in constants.ENUMERATIONS}
    known = PLAIN | enumerations | set(prototypes.TYPES) | set(prototypes.STRUCTS)
    types = [one.returns for one in ALL.values()]
    types += [parameter.type for one in ALL.values() for parameter in one.parameters]
    types += [kind for members in prototypes.STRUCTS.values() for kind, _ in members]
    for kind in types:
        assert {word for word in re.findall(r"\w+", kind) if word != "const"} <= known, kind


def test_every_status_is_a_constant():
    for one in ALL.values():
        for status in one.statuses:
            assert int(getattr(constants, status)) > 0, (one.name, status)


def test_declarations_can_be_read_again():
    for one in ALL.values():
        assert prototypes.parse(one.declaration, one.header, one.statuses) == one


@pytest.mark.parametrize("text", ["aclrtFree", "aclrtFree(", "(void)"])
def test_what_is_no_prototype_is_refused(text):
    with pytest.raises(ValueError, match="is no prototype"):
        prototypes.parse(text, "acl/acl.h")


def test_results_are_told_from_arguments():
    one = prototypes.RUNTIME["aclrtGetMemInfo"]
    assert [parameter.name for parameter in one.parameters if parameter.is_result] == [
        "free",
        "total",
    ]
    copy = prototypes.RUNTIME["aclrtMemcpy"]
    assert not any(parameter.is_result for parameter in copy.parameters)
