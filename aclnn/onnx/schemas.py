"""Facts of operators from the standard's schemas: what dtypes their results have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

STANDARD = ("", "ai.onnx")


@cache
def schema_of(domain: str, kind: str, opset: int) -> Any:
    """The schema of an operator in a version of its domain; None where there is none.

    >>> schema_of("", "Gelu", 20).since_version, schema_of("", "Gelu", 7)
    (20, None)
    """
    import onnx

    try:
        return onnx.defs.get_schema(kind, opset, "" if domain == "ai.onnx" else domain)
    except onnx.defs.SchemaError:
        return None


@cache
def _of_types(domain: str, kind: str, opset: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The types of an operator's inputs and outputs as its schema writes them; the last may repeat."""
    schema = schema_of(domain, kind, opset)
    if schema is None:
        return (), ()
    return _spread(schema.inputs), _spread(schema.outputs)


def _spread(parameters: Sequence[Any]) -> tuple[str, ...]:
    found = [one.type_str for one in parameters]
    if parameters and parameters[-1].option.name == "Variadic" and parameters[-1].is_homogeneous:
        found.append("*")
    return tuple(found)


def _at(types: tuple[str, ...], index: int) -> str:
    if types[-1:] == ("*",):
        return types[min(index, len(types) - 2)]
    return types[index] if index < len(types) else ""


def lacks_inputs(domain: str, kind: str, opset: int, names: Sequence[str]) -> bool:
    """Whether a node leaves out inputs that its operator needs.

    >>> lacks_inputs("", "Max", 13, ["x", ""]), lacks_inputs("", "Clip", 13, ["x", "", "high"])
    (True, False)
    """
    schema = schema_of(domain, kind, opset)
    if schema is None or not schema.inputs:
        return False
    last = len(schema.inputs) - 1
    return any(
        not name and schema.inputs[min(index, last)].option.name != "Optional"
        for index, name in enumerate(names)
    )


def result_dtypes(
    domain: str, kind: str, opset: int, inputs: Sequence[np.dtype | None], n_outputs: int
) -> list[np.dtype | None]:
    """The dtype that the standard gives each result of a node; None where its schema leaves that open.

    Examples
    --------
    >>> int32, float32 = np.dtype(np.int32), np.dtype(np.float32)
    >>> result_dtypes("", "Pow", 21, [int32, float32], 1), result_dtypes("", "Less", 21, [int32] * 2, 1)
    ([dtype('int32')], [dtype('bool')])
    """
    taken, value = _of_types(domain, kind, opset)
    if not value:
        return [None] * n_outputs
    known = {
        _at(taken, index): dtype
        for index, dtype in reversed([*enumerate(inputs)])
        if dtype is not None
    }
    found: list[np.dtype | None] = []
    for index in range(n_outputs):
        name = _at(value, index)
        found.append(known.get(name) or _FIXED.get(name) or _only_type(domain, kind, opset, name))
    return found


@cache
def _only_type(domain: str, kind: str, opset: int, name: str) -> np.dtype | None:
    """The dtype of a type with one possibility, such as that of comparisons' results."""
    schema = schema_of(domain, kind, opset)
    constraints = () if schema is None else schema.type_constraints
    for one in constraints:
        if one.type_param_str == name and len(one.allowed_type_strs) == 1:
            return _FIXED.get(one.allowed_type_strs[0])
    return None


_FIXED = {
    f"tensor({name})": np.dtype(dtype)
    for name, dtype in (
        ("bool", np.bool_), ("float", np.float32), ("double", np.float64), ("float16", np.float16),
        ("int8", np.int8), ("uint8", np.uint8), ("int32", np.int32), ("int64", np.int64),
    )
}  # fmt: skip
