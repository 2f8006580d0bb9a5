"""Make `aclnn/__init__.pyi` anew: what type checkers and editors know of names that are found when
they are first used.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import aclnn
from aclnn.acl import constants
from aclnn.operators import ENTRIES, REGISTRY, Attribute, Operator, Parameter

STUB = Path(__file__).parent.parent / "aclnn" / "__init__.pyi"
MADE = "# Made by tools/make_stub.py (`make reference`); changes here are lost."
IMPORTS = """\
from typing import Any, Literal

from aclnn import graph as graph
from aclnn import isa as isa
from aclnn import operators as operators"""
OTHERS = """\
__version__: str
__all__: list[str]

def __dir__() -> list[str]: ..."""

# How a parameter of phase one is given; `None` stands for a null pointer.
GIVEN = {
    "input": "aclTensor | None",
    "output": "aclTensor | None",
    "inout": "aclTensor | None",
    "scalar": "aclScalar | None",
    "str": "str | None",
}


def stub() -> str:
    """The whole file."""
    made = set(ENTRIES) | {f"{name}GetWorkspaceSize" for name in ENTRIES}
    made |= {name for one in REGISTRY.values() for name in (one.name, one.in_place) if name}
    members = {member.name for kind in constants.ENUMERATIONS for member in kind}
    written = [name for name in dir(aclnn) if name not in made | members]
    parts = [
        MADE,
        "\n".join([IMPORTS, *_imports(written)]),
        OTHERS,
        "\n".join(_constants()),
        "\n".join(line for one in REGISTRY.values() for line in _forms(one)),
        "\n".join(line for name in ENTRIES for line in _phases(name)),
    ]
    return "\n\n".join(parts) + "\n"


def _imports(names: Iterable[str]) -> Iterable[str]:
    """Names that are written down in a module are taken from there."""
    values = {name: getattr(aclnn, name) for name in names}
    homes = [(value.__module__, name) for name, value in values.items() if callable(value)]
    yield from (f"from {home} import {name} as {name}" for home, name in sorted(homes))


def _constants() -> Iterable[str]:
    for kind in constants.ENUMERATIONS:
        yield from (f"{member.name}: Literal[{kind.__name__}.{member.name}]" for member in kind)


def _forms(one: Operator) -> Iterable[str]:
    """The functional forms of an operator."""
    operands = [f"{role}: Any" for role in one.inputs]
    positional = [_option(a) for a in one.attributes if not a.keyword_only]
    named = [_option(a) for a in one.attributes if a.keyword_only]
    for name in filter(None, (one.name, one.in_place)):
        last = [*named] if name == one.in_place else [*named, "out: Any = None"]
        words = [*operands, *positional, *(["*", *last] if last else [])]
        yield f"def {name}({', '.join(words)}) -> Any: ..."


def _option(attribute: Attribute) -> str:
    kind = {"bool": "bool", "str": "str"}.get(attribute.kind, "float")
    if attribute.choices:
        kind = f"Literal[{', '.join(map(repr, attribute.choices))}]"
    if attribute.default is None:
        kind += " | None"
    return f"{attribute.role}: {kind} = {attribute.default!r}"


def _phases(name: str) -> Iterable[str]:
    """Both phases of a C-shaped function."""
    _, entry = ENTRIES[name]
    given = ", ".join(_parameter(parameter) for parameter in entry.parameters)
    yield f"def {name}GetWorkspaceSize({given}) -> tuple[int, aclOpExecutor | None, int]: ..."
    yield (
        f"def {name}(workspace: Any, workspaceSize: int, executor: aclOpExecutor | None, "
        "stream: Any) -> int: ..."
    )


def _parameter(parameter: Parameter) -> str:
    return f"{parameter.name}: {GIVEN.get(parameter.kind, parameter.kind)}"


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
