"""Generation of `aclnn/__init__.pyi`, the types of names that are created when first used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import aclnn
from aclnn.acl import constants
from aclnn.operators import ENTRIES, REGISTRY, Attribute, Operator, Parameter
from aclnn.operators.declaration import REQUIRED

MADE = "# Made by tools/make_stub.py; changes here are lost."
IMPORTS = """\
from array import array
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from aclnn import graph as graph
from aclnn import isa as isa
from aclnn import operators as operators"""
OTHERS = """\
__version__: str

def __dir__() -> list[str]: ..."""

# What functional forms take and give: NumPy's arrays and what NumPy reads, or another library's.
ARRAYS = """\
class _Exporter(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_A = TypeVar("_A", bound=_Exporter)
_Given = TypeVar("_Given")
_Writable = NDArray[Any] | memoryview | array[Any]
_Numpy = NDArray[Any] | np.generic | memoryview | array[Any] | Sequence[Any]"""

# How a parameter of phase one is given; `None` stands for a null pointer.
GIVEN = {
    "input": "aclTensor | None",
    "output": "aclTensor | None",
    "inout": "aclTensor | None",
    "inputs": "aclTensorList | None",
    "outputs": "aclTensorList | None",
    "single": "aclTensorList | None",
    "absent": "None",
    "later": "None",
    "ignored": "Any",
    "zero": "int",
    "scalar": "aclScalar | None",
    "ints": "aclIntArray | None",
    "bools": "aclBoolArray | None",
    "str": "str | None",
    "dtype": "int",
}
# How an option of a functional form is given. A dtype may be NumPy's, PyTorch's, its name or a number.
OPTIONS = {
    "scalar": "float",
    "ints": "int | Sequence[int]",
    "bools": "Sequence[bool]",
    "dtype": "Any",
}


def stub() -> str:
    """The whole file."""
    made = set(ENTRIES) | {f"{name}GetWorkspaceSize" for name in ENTRIES}
    made |= {name for one in REGISTRY.values() for name in one.functional_names}
    members = {name for kind in constants.ENUMERATIONS for name in kind.__members__}
    written = [name for name in dir(aclnn) if name not in made | members]
    parts = [
        MADE,
        "\n".join([IMPORTS, *_imports(written)]),
        OTHERS,
        _star(),
        ARRAYS,
        "\n".join(_constants()),
        "\n".join(line for one in REGISTRY.values() for line in _forms(one)),
        "\n".join(line for name in ENTRIES for line in _phases(name)),
    ]
    return "\n\n".join(parts) + "\n"


def _star() -> str:
    """What a star imports."""
    return "\n".join(["__all__ = [", *[f'    "{name}",' for name in aclnn.__all__], "]"])


def _imports(names: Iterable[str]) -> Iterable[str]:
    """Names that are written down in a module are taken from there."""
    homes = [
        (_home(name, getattr(aclnn, name)), name)
        for name in names
        if callable(getattr(aclnn, name))
    ]
    yield from (f"from {home} import {name} as {name}" for home, name in sorted(homes))


def _home(name: str, value: Any) -> str:
    """Exceptions say that they are of the package, where programs have them from."""
    return str(value.__module__) if value.__module__ != "aclnn" else f"aclnn.{aclnn._NAMES[name]}"


def _constants() -> Iterable[str]:
    for kind in constants.ENUMERATIONS:
        for name, member in kind.__members__.items():
            yield f"{name}: Literal[{kind.__name__}.{member.name}]"


def _forms(one: Operator) -> Iterable[str]:
    """The functional forms of an operator."""
    for name in one.functional_names:
        if name == one.in_place:
            yield _form(one, name, *_in_place(one))
            continue
        if not one.inputs:
            yield _form(one, name, {}, "NDArray[Any]", "_Writable | None")
            continue
        for first, result, out in _kinds(one):
            results = _results(one, result)
            out = out if results == result else "Any"
            yield f"@overload\n{_form(one, name, {_first(one): first}, results, out)}"


def _kinds(one: Operator) -> Iterable[tuple[str, str, str]]:
    """The type of the first operand, of each result, and of `out`, for each kind of arrays."""
    kinds = [("_Numpy", "NDArray[Any]", "_Writable | None"), ("_A", "_A", "_A | None")]
    if (one.number_form and one.number_form[0] == _first(one)) or _first(one) in one.numbers:
        kinds.append(("float", "Any", "Any"))  # the other operand tells
    for first, result, out in kinds:
        yield f"Sequence[{first}]" if _first(one) in one.lists else first, result, out


def _in_place(one: Operator) -> tuple[dict[str, str], str]:
    """Types of the operands that a form in place writes, which it gives back, and of its results."""
    if len(one.outputs) > 1:
        return {}, _results(one, "Any")
    role = one.overwritten.get(one.outputs[0], _first(one))
    return {role: "_Given"}, "_Given"


def _first(one: Operator) -> str:
    return one.inputs[0] if one.inputs else ""


def _form(
    one: Operator, name: str, types: Mapping[str, str], result: str, out: str | None = None
) -> str:
    """A functional form, of whose operands some have types; without `out` one in place."""
    options = {attribute.role: attribute for attribute in one.attributes}
    given = {
        role: _option(options[role]) if role in options else _tensor(one, role, types.get(role))
        for role in (*one.positional, *options, *one.inputs)
    }
    positional = list(given.values())[: len(one.positional)]
    named = list(given.values())[len(one.positional) :]
    last = named if out is None else [*named, f"out: {out} = None"]
    words = [*positional, *(["*", *last] if last else [])]
    return f"def {name}({', '.join(words)}) -> {result}: ..."


def _tensor(one: Operator, role: str, given: str | None) -> str:
    kind = given or ("Sequence[Any]" if role in one.lists else "Any")
    kind += " | None" if role in one.optional and one.is_required(role) and kind != "Any" else ""
    return f"{role}: {kind}{'' if one.is_required(role) else ' = None'}"


def _option(attribute: Attribute) -> str:
    kind = OPTIONS.get(attribute.kind, attribute.kind)
    if attribute.choices:
        kind = f"Literal[{', '.join(map(repr, attribute.choices))}]"
    if (attribute.default is None or attribute.nullable) and kind != "Any":
        kind += " | None"
    default = "" if attribute.default is REQUIRED else f" = {attribute.default!r}"
    return f"{attribute.role}: {kind}{default}"


def _results(one: Operator, each: str) -> str:
    """The type of what a functional form gives, of which `each` result is of a type."""
    count = len(one.outputs)
    if one.makes is not None:
        return f"tuple[{each}, ...]"
    return each if count == 1 else f"tuple[{', '.join([each] * count)}]"


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
