"""The operators' functions in C, read from ``interface/``.

The build imports this module by its path, when nothing is compiled yet: it needs the standard library
only. Each line is ``header: Name(type parameter, ...)`` with the types of `TYPES`; the functions of
`further.txt` may be missing in the package, those of `further_operators.txt` are what a library of their own has:
all that the package has besides. ``tools/make_prototypes.py`` adds what declarations have and no file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

INTERFACE = Path(__file__).parent / "interface"


class Kind(NamedTuple):
    """Declaration of a parameter, its tag, and the member of `aclnn_argument` that holds it."""

    declared: str
    tag: str
    member: str


TYPES = {
    "T": Kind("const aclTensor *", "T", "tensor"),
    "T&": Kind("aclTensor *", "T", "tensor"),
    "S": Kind("const aclScalar *", "S", "scalar"),
    "S&": Kind("aclScalar *", "S", "scalar"),
    "I[]": Kind("const aclIntArray *", "I", "ints"),
    "I[]&": Kind("aclIntArray *", "I", "ints"),
    "B[]": Kind("const aclBoolArray *", "B", "bools"),
    "T[]": Kind("const aclTensorList *", "L", "tensors"),
    "T[]&": Kind("aclTensorList *", "L", "tensors"),
    "i64": Kind("int64_t ", "i", "whole"),
    "u64": Kind("uint64_t ", "u", "whole"),
    "i8": Kind("int8_t ", "i", "whole"),
    "int": Kind("int ", "i", "whole"),
    "bool": Kind("bool ", "b", "whole"),
    "dtype": Kind("aclDataType ", "d", "whole"),
    "f64": Kind("double ", "f", "real"),
    "f32": Kind("float ", "f", "real"),
    "char*": Kind("char *", "s", "text"),
    "text": Kind("const char *", "s", "text"),
}


class Pair(NamedTuple):
    """A pair of functions: the header it stands in, its name without ``aclnn``, its parameters."""

    header: str
    name: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def tags(self) -> str:
        """A letter for each parameter.

        >>> [one.tags for one in PAIRS if one.name == "Add"]
        ['TTST']
        """
        return "".join(TYPES[kind].tag for kind, _ in self.parameters)

    @property
    def plan(self) -> str:
        """The declaration of phase one.

        >>> PAIRS[0].plan
        'aclnnStatus aclnnAbsGetWorkspaceSize(const aclTensor *self, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)'
        """
        own = "".join(f"{TYPES[kind].declared}{name}, " for kind, name in self.parameters)
        results = "uint64_t *workspaceSize, aclOpExecutor **executor"
        return f"aclnnStatus aclnn{self.name}GetWorkspaceSize({own}{results})"

    @property
    def run(self) -> str:
        """The declaration of phase two."""
        parameters = "void *workspace, uint64_t workspaceSize, aclOpExecutor *executor"
        return f"aclnnStatus aclnn{self.name}({parameters}, aclrtStream stream)"


def _pair(line: str) -> Pair:
    match = re.fullmatch(r"(\w+): (\w+)\((.*)\)", line)
    if match is None:
        raise ValueError(f"{line!r} is no pair of functions")
    words = [one.rpartition(" ") for one in match[3].split(", ")]
    return Pair(match[1], match[2], tuple([(kind, name) for kind, _, name in words]))


def _read(name: str) -> tuple[Pair, ...]:
    text = (INTERFACE / name).read_text(encoding="utf-8")
    return tuple([_pair(line) for line in text.splitlines()])


def _headers() -> dict[str, tuple[str, ...]]:
    text = (INTERFACE / "headers.txt").read_text(encoding="utf-8")
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, colon, others = line.partition(":")
        found |= {name: tuple(others.split())} if colon else dict.fromkeys(line.split(), ())
    return found


HEADERS = _headers()  # names that programs include, and the headers that one includes
PAIRS = _read("operators.txt")
FURTHER = _read("further.txt")  # which may be missing
FIRST = PAIRS + FURTHER  # of the library that CANN's programs link
FURTHER_OPERATORS = _read("further_operators.txt")  # of the other one
EVERY = FIRST + FURTHER_OPERATORS
