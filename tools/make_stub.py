"""Generation of `aclnn/__init__.pyi`, the types of names that are created when first used."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import aclnn
from aclnn.acl import constants, dtypes, socs
from aclnn.acl.constants import aclDataType
from aclnn.compiler.phase_one import infer
from aclnn.operators import ENTRIES, REGISTRY, Attribute, Operator, Parameter, examples
from aclnn.operators.checks import NOTHING_TO_DO, Call, ScalarSpec, TensorSpec
from aclnn.operators.declaration import REQUIRED

FLOATING = (aclDataType.ACL_FLOAT16, aclDataType.ACL_FLOAT, aclDataType.ACL_DOUBLE)
NUMBERS = (aclDataType.ACL_INT64, aclDataType.ACL_FLOAT, aclDataType.ACL_DOUBLE)  # of Python
VARIED_ON = ("Ascend910B", "Ascend950")  # SoCs for calls with other options than usual
SMALL = range(-1, 36)  # integers that options are tried with, among them all dtypes

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
_E = TypeVar(
    "_E", np.bool, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128,
)
_F = TypeVar("_F", np.float16, np.float32, np.float64)
_Given = TypeVar("_Given")
_Out = TypeVar("_Out", bound=NDArray[Any])
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
    # PyTorch calls a first operand `input`; both names are taken, the one in the signature comes last.
    names: list[dict[str, str]] = [{"self": "input"}, {}] if _first(one) == "self" else [{}]
    for name in one.functional_names:
        if name == one.in_place:
            made = [_form(one, name, *_in_place(one), None, other) for other in names]
        elif not one.inputs:
            made = [_form(one, name, {}, "NDArray[Any]", "_Writable | None", {})]
        else:
            made = [_form(one, name, *each, other) for other in names for each in _overloads(one)]
        yield from made if len(made) == 1 else [f"@overload\n{each}" for each in made]


def _overloads(one: Operator) -> Iterable[tuple[Mapping[str, str], str, str]]:
    """Types of operands, of what is given back, and of `out`, from what is known best."""
    for known in _known(one):
        yield known.operands, _tuple_of(one, known.results), "None"
    if len(one.outputs) == 1 and one.makes is None:
        yield {_first(one): _listed(one, _first(one), "_Numpy")}, "_Out", "_Out"
    for first, result, out in _kinds(one):
        results = _tuple_of(one, [result] * len(one.outputs))
        yield {_first(one): first}, results, out if results == result else "Any"


def _kinds(one: Operator) -> Iterable[tuple[str, str, str]]:
    """The type of the first operand, of each result, and of `out`, for each kind of arrays."""
    kinds = [("_Numpy", "NDArray[Any]", "_Writable | None"), ("_A", "_A", "_A | None")]
    if (one.number_form and one.number_form[0] == _first(one)) or _first(one) in one.numbers:
        kinds.append(("float", "Any", "Any"))  # the other operand tells
    for first, result, out in kinds:
        yield _listed(one, _first(one), first), result, out


def _known(one: Operator) -> Iterable[Known]:
    """What is known of a functional form's results: for tensors, and for a tensor and a number."""
    known = _known_dtypes(one)
    if known is not None:
        yield known
    if one.number_form is None:
        return
    role, other = one.number_form
    with_number = _known_dtypes(REGISTRY[other])
    if with_number is not None and with_number.operands[_first(one)] != "_Numpy":
        yield replace(with_number, operands={**with_number.operands, role: "float"})


@dataclass(frozen=True)
class Known:
    """Types that follow from a declaration: of operands by role, and of each result."""

    operands: Mapping[str, str]
    results: tuple[str, ...]


def _known_dtypes(one: Operator) -> Known | None:
    """Types of operands and results where dtypes of results follow from those of operands.

    Operands that have one dtype in the declaration's example have any other here. A result has the
    dtype of such operands, for all of them or for floating ones, or always the same.
    """
    if one.example is None or any(
        a.kind == "dtype" and a.default is not None for a in one.attributes
    ):
        return None
    given = _given(one)
    groups: dict[tuple[frozenset[str], bool], list[str]] = {}
    for role in one.inputs:
        if found := _dtypes_of(given.get(role)):
            groups.setdefault((found, role in _of_other_dtypes(one)), []).append(role)
    for main in groups.values():
        others = [roles for roles in groups.values() if roles is not main]
        if (known := _known_of(one, given, main, others)) is not None:
            return known
    return None


def _known_of(
    one: Operator, given: Mapping[str, Any], main: list[str], others: list[list[str]]
) -> Known | None:
    """The same, for some of the operands, whatever dtypes others have."""
    made = {dtype: _inferred(one, given, main, others, dtype) for dtype in dtypes.NUMPY}
    found = {dtype: results for dtype, results in made.items() if results}
    places = range(len(one.outputs))
    results = tuple([_result(found, place) for place in places]) if found else ()
    if set(results) <= {"NDArray[Any]"}:
        return None
    kind = "NDArray[_F]" if "NDArray[_F]" in results else "NDArray[_D]"
    if kind not in results:
        return Known({_first(one): _listed(one, _first(one), "_Numpy")}, results)
    types = {_first(one): _listed(one, _first(one), "_Numpy")}
    types |= {role: _listed(one, role, kind) for role in main}
    for role in one.inputs:
        if role not in given:
            types |= _optional(one, given, role, kind)
    if kind == "NDArray[_D]" and sum(kind in each for each in types.values()) > 1:
        alike = {role: each.replace("_D", "_E") for role, each in types.items()}
        return Known(alike, tuple([each.replace("_D", "_E") for each in results]))
    return Known(types, tuple([kind if "[_D]" in each else each for each in results]))


def _optional(one: Operator, given: Mapping[str, Any], role: str, kind: str) -> dict[str, str]:
    """The type of an operand that the example lacks, which is absent where results depend on it."""
    usual, *_ = _switches(one, given)
    first = given[_first(one)]
    alone = {**given, role: [first] if role in one.lists else first}
    try:
        made = [
            _call_results(one, _call(one, each, {}, usual, NUMBERS[0], VARIED_ON[0]))
            for each in (given, alone)
        ]
    except Exception:  # rules have not been asked
        return {role: "None"}
    if made[0] != made[1]:
        return {role: "None"}
    return {} if role in _of_other_dtypes(one) else {role: _listed(one, role, kind)}


def _of_other_dtypes(one: Operator) -> set[str]:
    """Operands that cannot have the dtype of the others."""
    return {role for role in one.inputs if "dtype" in one.sample_specs.get(role, {})}


def _given(one: Operator) -> dict[str, Any]:
    """What the example of a declaration gives, by role: arrays, lists of these, options."""
    assert one.example is not None
    written = examples.arguments(one.example[0], one.positional)
    values = {role: eval(text, {"np": np}) for role, text in written.items()}
    return {role: value for role, value in values.items() if value is not None}


def _dtypes_of(value: Any) -> frozenset[str]:
    """Names of dtypes of an array, or of a list of arrays; nothing of an option."""
    arrays = value if isinstance(value, list | tuple) else [value]
    return frozenset(str(each.dtype) for each in arrays if isinstance(each, np.ndarray))


def _result(found: Mapping[aclDataType, set[tuple[Any, ...]]], place: int) -> str:
    """The type of a result, by its dtypes for each dtype of operands."""
    made = {dtype: {results[place] for results in every} for dtype, every in found.items()}
    every = set().union(*made.values())
    floating = {dtype: results for dtype, results in made.items() if dtype in FLOATING}
    if None in every:
        return "NDArray[Any]"
    if all(results == {dtype} for dtype, results in made.items()):
        return "NDArray[_D]"
    if len(every) == 1 and hasattr(np, dtypes.NUMPY[min(every)].name):
        return f"NDArray[np.{dtypes.NUMPY[every.pop()].name}]"
    if floating and all(results == {dtype} for dtype, results in floating.items()):
        return "NDArray[_F]"
    return "NDArray[Any]"


def _inferred(
    one: Operator,
    given: Mapping[str, Any],
    main: list[str],
    others: list[list[str]],
    dtype: aclDataType,
) -> set[tuple[Any, ...]]:
    """Dtypes of results where `main` operands have a dtype, on all SoCs and with all options."""
    alike = dict.fromkeys(main, dtype)
    usual, *variants = _switches(one, given)
    found = set()
    for soc in socs.FAMILIES:
        for number in NUMBERS if one.scalars else NUMBERS[:1]:
            found |= _made(one, given, alike, usual, number, soc)
    for soc in VARIED_ON if found else ():
        for switches in variants:
            found |= _made(one, given, alike, switches, NUMBERS[0], soc)
        for roles, other in itertools.product(others, dtypes.NUMPY):
            found |= _made(one, given, alike | dict.fromkeys(roles, other), usual, NUMBERS[0], soc)
    return found


def _made(one: Operator, *words: Any) -> set[tuple[Any, ...]]:
    """Dtypes of the results of one call, if the rules accept it."""
    call = _call(one, *words)
    accepted = all(rule.test(call) in (None, NOTHING_TO_DO) for rule in one.rules)
    return _call_results(one, call) if accepted else set()


def _call_results(one: Operator, call: Call) -> set[tuple[Any, ...]]:
    made = infer(one, call)
    if one.makes is not None:  # tensors that are all alike
        return {(each,) for each, _ in made.values()}
    return {tuple([made.get(role, (None,))[0] for role in one.outputs])}


def _call(
    one: Operator,
    given: Mapping[str, Any],
    known: Mapping[str, aclDataType],
    switches: Mapping[str, Any],
    number: aclDataType,
    soc: str,
) -> Call:
    """A call of what is given, but for operands whose dtype is known."""
    tensors = {
        role: _spec(given[role], known.get(role))
        for role in one.inputs
        if role in given and role not in one.lists
    }
    lists = {
        role: tuple([_spec(each, known.get(role)) for each in given.get(role, ())])
        for role in one.lists
    }
    scalars = {
        a.role: ScalarSpec(dtype=number, absent=a.default is None and a.role not in given)
        for a in one.scalars
    }
    roles = (*one.inputs, *one.outputs, *[a.role for a in one.attributes])
    return Call(tensors, scalars, switches, dict(zip(roles, roles, strict=True)), soc, lists)


def _switches(one: Operator, given: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Options that shape plans, as the example gives them, and each one with its other values."""
    usual = {a.role: given.get(a.role, a.default) for a in one.switches}
    usual |= {role: (value,) for role, value in usual.items() if _is_one_of_ints(one, role, value)}
    yield usual
    for attribute in one.switches:
        values = {"bool": (False, True), "int": SMALL}.get(attribute.kind, attribute.choices)
        yield from [usual | {attribute.role: value} for value in values]


def _is_one_of_ints(one: Operator, role: str, value: Any) -> bool:
    return isinstance(value, int) and any(
        a.role == role and a.kind == "ints" for a in one.attributes
    )


def _spec(array: Any, dtype: aclDataType | None) -> TensorSpec:
    array = np.asarray(array)
    strides = tuple([by // array.itemsize for by in array.strides])
    kind = dtypes.of_numpy(array.dtype) if dtype is None else dtype
    return TensorSpec(kind, array.shape, strides)


def _listed(one: Operator, role: str, kind: str) -> str:
    return f"Sequence[{kind}]" if role in one.lists else kind


def _in_place(one: Operator) -> tuple[dict[str, str], str]:
    """Types of the operands that a form in place writes, which it gives back, and of its results."""
    if len(one.outputs) > 1:
        return {}, _tuple_of(one, ["Any"] * len(one.outputs))
    role = one.overwritten.get(one.outputs[0], _first(one))
    return {role: "_Given"}, "_Given"


def _first(one: Operator) -> str:
    return one.inputs[0] if one.inputs else ""


def _form(
    one: Operator,
    name: str,
    types: Mapping[str, str],
    result: str,
    out: str | None,
    names: Mapping[str, str],
) -> str:
    """A functional form, of whose operands some have types, and other names; without `out` one in place."""
    options = {attribute.role: attribute for attribute in one.form_options}
    known = out == "None"
    given = {
        role: _option(options[role], known)
        if role in options
        else _tensor(one, role, names.get(role, role), types.get(role))
        for role in (*one.positional, *options, *one.inputs)
    }
    positional = list(given.values())[: len(one.positional)]
    named = list(given.values())[len(one.positional) :]
    default = "" if out == "_Out" else " = None"
    last = named if out is None else [*named, f"out: {out}{default}"]
    words = [*positional, *(["*", *last] if last else [])]
    return f"def {name}({', '.join(words)}) -> {result}: ..."


def _tensor(one: Operator, role: str, name: str, given: str | None) -> str:
    kind = given or ("Sequence[Any]" if role in one.lists else "Any")
    shows_none = one.is_required(role) or role in one.lists
    shows_none |= given is not None
    kind += " | None" if role in one.optional and shows_none and kind not in ("Any", "None") else ""
    return f"{name}: {kind}{'' if one.is_required(role) else ' = None'}"


def _option(attribute: Attribute, known: bool = False) -> str:
    """An option; a dtype is not given where that of results is `known`."""
    kind = OPTIONS.get(attribute.kind, attribute.kind)
    if known and attribute.kind == "dtype":
        kind = "None"
    if attribute.choices:
        kind = f"Literal[{', '.join(map(repr, attribute.choices))}]"
    if (attribute.default is None or attribute.nullable) and kind not in ("Any", "None"):
        kind += " | None"
    default = "" if attribute.default is REQUIRED else f" = {attribute.default!r}"
    return f"{attribute.role}: {kind}{default}"


def _tuple_of(one: Operator, results: Sequence[str]) -> str:
    """The type of what a functional form gives, by those of its results."""
    if one.makes is not None:
        return f"tuple[{results[0]}, ...]"
    return results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]"


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
