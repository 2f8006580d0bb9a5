"""Generation of `aclnn/__init__.pyi`, the types of names that are created when first used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import aclnn
from aclnn.acl import constants, dtypes, socs
from aclnn.acl.constants import aclDataType
from aclnn.compiler.phase_one import infer
from aclnn.operators import ENTRIES, REGISTRY, Attribute, Operator, Parameter
from aclnn.operators.checks import ScalarSpec, TensorSpec
from aclnn.operators.declaration import REQUIRED

FLOATING = (aclDataType.ACL_FLOAT16, aclDataType.ACL_FLOAT, aclDataType.ACL_DOUBLE)
NUMBERS = (aclDataType.ACL_INT64, aclDataType.ACL_FLOAT, aclDataType.ACL_DOUBLE)  # of Python

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
_D = TypeVar("_D", bound=np.generic)
_F = TypeVar("_F", np.float16, np.float32, np.float64)
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
        if (known := _known_dtypes(one)) is not None:
            yield f"@overload\n{_form(one, name, *known, 'None')}"
        for first, result, out in _kinds(one):
            results = _results(one, result)
            out = "Any" if result.startswith("tuple") else out
            out = out if results == result else "Any"
            yield f"@overload\n{_form(one, name, {_first(one): first}, results, out)}"


def _kinds(one: Operator) -> Iterable[tuple[str, str, str]]:
    """The type of the first operand, of each result, and of `out`, for each kind of arrays."""
    kinds = [("_Numpy", "NDArray[Any]", "_Writable | None"), ("_A", "_A", "_A | None")]
    if (one.number_form and one.number_form[0] == _first(one)) or _first(one) in one.numbers:
        kinds.append(("float", "Any", "Any"))  # the other operand tells
    for first, result, out in kinds:
        yield f"Sequence[{first}]" if _first(one) in one.lists else first, result, out


def _known_dtypes(one: Operator) -> tuple[dict[str, str], str] | None:
    """Types of the operands and of the result of an elementwise operator, where the dtype of its only
    result is that of its operands, for all dtypes or for floating ones, or always the same."""
    if not one.is_elementwise or len(one.outputs) > 1 or one.lists or one.makes is not None:
        return None
    if any(attribute.kind == "dtype" for attribute in one.attributes):
        return None
    found = {dtype: results for dtype in dtypes.NUMPY if (results := _inferred(one, dtype))}
    every = set().union(*found.values())
    if found and all(results == {dtype} for dtype, results in found.items()):
        return _alike(one, "NDArray[_D]")
    if len(every) == 1:
        return {_first(one): "_Numpy"}, f"NDArray[np.{dtypes.NUMPY[every.pop()].name}]"
    if all(found.get(dtype) == {dtype} for dtype in FLOATING):
        return _alike(one, "NDArray[_F]")
    return None


def _alike(one: Operator, kind: str) -> tuple[dict[str, str], str]:
    """Operands of one dtype, but for those that are of another, and the result."""
    other = {role for role, words in one.unlike.items() if "dtype" in words}
    return {role: "NDArray[Any]" if role in other else kind for role in one.inputs}, kind


def _inferred(one: Operator, dtype: aclDataType) -> set[aclDataType]:
    """Dtypes that the result has for operands of a dtype, on all products and with all numbers."""
    found = set()
    spec = TensorSpec(dtype, (2,), (1,))
    tensors = {role: spec.changed(**one.unlike.get(role, {})) for role in one.inputs}
    for soc in socs.FAMILIES:
        if one.accepts(tensors, soc):
            call = one.sample(tensors, soc)
            for number in NUMBERS:
                scalars = {role: ScalarSpec(dtype=number) for role in call.scalars}
                results = infer(one, replace(call, scalars=scalars))
                found.add(results[one.outputs[0]][0])
    return found


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
    options = {attribute.role: attribute for attribute in one.form_options}
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
    shows_none = one.is_required(role) or role in one.lists
    kind += " | None" if role in one.optional and shows_none and kind != "Any" else ""
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
