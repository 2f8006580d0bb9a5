"""Nestings of arrays: tuples, lists and dicts taken apart, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from aclnn.acl.arguments import shown
from aclnn.acl.errors import invalid
from aclnn.execution.arrays import is_dask

ARRAY = "array"  # in the place of one, in a form


def is_array(given: Any) -> bool:
    """Whether an argument is an array, NumPy's or another library's, or a traced one."""
    if isinstance(given, np.ndarray):
        return True
    kind = type(given)
    if issubclass(kind, np.generic):
        return False
    return (
        hasattr(kind, "__dlpack__")
        or hasattr(given, "__array_interface__")
        or hasattr(kind, "__aclnn_function__")
        or is_dask(given)
    )


def taken_apart(given: Any, leaves: list[Any]) -> Any:
    """Append the arrays of a nesting; gives its form, which can be hashed: all but the arrays.

    >>> leaves = []
    >>> taken_apart([np.zeros(2), {"a": 3}], leaves), len(leaves)
    ((<class 'list'>, ('array', (<class 'dict'>, ('a',), ((<class 'int'>, 3),)))), 1)
    """
    if is_array(given):
        leaves.append(given)
        return ARRAY
    kind = type(given)
    if isinstance(given, tuple | list):
        return kind, tuple([taken_apart(one, leaves) for one in given])
    if isinstance(given, dict):
        return kind, tuple(given), tuple([taken_apart(one, leaves) for one in given.values()])
    if kind is float:
        return kind, given.hex()
    if kind is complex:
        return kind, (given.real.hex(), given.imag.hex())
    if isinstance(given, np.generic) and given.dtype.kind in "fcV":  # equal are those of equal bits
        return kind, given.dtype, given.tobytes()
    try:
        hash(given)
    except TypeError:
        raise invalid(
            f"{shown(given)} cannot be part of a call's description: it is no array and cannot be "
            "hashed"
        ) from None
    return kind, given


def put_together(form: Any, leaves: Iterator[Any]) -> Any:
    """The nesting of a form with other leaves."""
    if form is ARRAY:
        return next(leaves)
    kind, *rest = form
    if issubclass(kind, tuple | list):
        items = [put_together(one, leaves) for one in rest[0]]
        return kind(*items) if hasattr(kind, "_fields") else kind(items)
    if issubclass(kind, dict):
        values = [put_together(one, leaves) for one in rest[1]]
        return kind(zip(rest[0], values, strict=True))
    if kind is float:
        return float.fromhex(rest[0])
    if kind is complex:
        return complex(*map(float.fromhex, rest[0]))
    if issubclass(kind, np.generic) and len(rest) == 2:
        return np.frombuffer(rest[1], rest[0])[0]
    return rest[0]


def names_of(form: Any, name: str) -> list[str]:
    """A name for each array of a nesting.

    >>> names_of((list, ("array", (dict, ("a",), ("array",)))), "w")
    ['w_0', 'w_1_a']
    """
    if form is ARRAY:
        return [name]
    kind, *rest = form
    parts: Iterable[tuple[Any, Any]]
    if issubclass(kind, tuple | list):
        parts = enumerate(rest[0])
    elif issubclass(kind, dict):
        parts = zip(rest[0], rest[1], strict=True)
    else:
        return []
    return [found for key, one in parts for found in names_of(one, f"{name}_{key}")]


def mapped(form: Any, given: Any, visit: Callable[[Any], None]) -> bool:
    """Visit what a nesting has in the places of the arrays of a form; False where it has another."""
    if form is ARRAY:
        visit(given)
        return True
    kind, *rest = form
    if issubclass(kind, tuple | list):
        if not isinstance(given, tuple | list) or len(given) != len(rest[0]):
            return False
        return all(mapped(one, part, visit) for one, part in zip(rest[0], given, strict=True))
    if issubclass(kind, dict):
        if not isinstance(given, dict) or set(given) != set(rest[0]):
            return False
        return all(mapped(f, given[key], visit) for key, f in zip(rest[0], rest[1], strict=True))
    return True
