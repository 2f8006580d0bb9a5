"""Words of declarations: what operands have to be, a clause for each rule.

A clause names roles and what holds of them, as in ``input, out: at most 8 dims``; semicolons part clauses.
One that begins with ``cann`` is a rule of C-shaped functions alone.

| words | rule |
| --- | --- |
| FLOATING INT32 … | sets of `checks` and dtypes, of which the dtype of each role is one |
| dtype of x; FLOAT or dtype of x | `same_dtype`, `dtype_like_or` |
| cast of x, y; promote to FLOATING … | `castable`, `promotes` |
| shape of x; rank of x; broadcast of x, y | `same_shape`, `same_rank`, `broadcast_shape` |
| broadcast; broadcasts to x | `broadcasts`, `broadcasts_to` |
| 2 dims; 2 to 8 dims; at most 8 dims; dims | `has_rank`, `at_most_8_dims`, `has_dims` |
| axis of x; dim of x; even along d | `axis_within`, `dim_in_range`, `even_along` |
| elements; if empty ends; if empty done | `has_elements`, `ends_if_empty`, `done_if_empty` |
| numbers | `convertible_scalars` |
| plain format; one format; format of x | `no_private_format`, `same_format`, `plain_format` |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.graph.strides import contiguous_strides
from aclnn.operators import checks, sizes
from aclnn.operators.checks import Rule

Roles = tuple[str, ...]


def require(text: str) -> tuple[Rule, ...]:
    """The rules that words state, in their order.

    >>> for one in require("input: FLOAT INT8; cann out: dtype of input; input, out: at most 8 dims"):
    ...     print(one.text)
    `input` is FLOAT or INT8
    in C-shaped calls, `out` has the dtype of `input`
    at most 8 dimensions
    """
    return tuple([found for clause in text.split(";") for found in _rules(clause.strip())])


def specs(text: str) -> dict[str, dict[str, Any]]:
    """Parts of tensors' descriptions, by role: dtypes, shapes, or both.

    >>> specs("index: INT64[2]; x, y: [1,3]")["y"]
    {'shape': (1, 3), 'strides': (3, 1)}
    """
    found: dict[str, dict[str, Any]] = {}
    for clause in text.split(";"):
        named, _, stated = clause.strip().partition(": ")
        dtype, _, sizes = stated.partition("[")
        parts: dict[str, Any] = {"dtype": aclDataType[f"ACL_{dtype}"]} if dtype else {}
        if sizes:
            shape = tuple([int(size) for size in sizes.strip("]").split(",") if size])
            parts |= {"shape": shape, "strides": contiguous_strides(shape)}
        found |= dict.fromkeys(_roles(named), parts)
    return found


def _rules(clause: str) -> Iterable[Rule]:
    named, _, stated = clause.removeprefix("cann ").partition(": ")
    found = _stated(_roles(named), stated)
    return map(checks.of_cann, found) if clause.startswith("cann ") else found


def _roles(text: str) -> Roles:
    return tuple(text.split(", "))


def _dtypes(text: str) -> tuple[aclDataType, ...]:
    """Dtypes by their names, and those of sets."""
    found: list[aclDataType] = []
    for word in text.split():
        if not hasattr(checks, word) and f"ACL_{word}" not in aclDataType.__members__:
            raise ValueError(f"{text!r} are neither words of declarations nor dtypes")
        found += getattr(checks, word, None) or [aclDataType[f"ACL_{word}"]]
    return tuple(found)


def _stated(roles: Roles, stated: str) -> Iterable[Rule]:
    if stated in _OF_ALL:
        return (_OF_ALL[stated](*roles),)
    if stated in _OF_EACH:
        return [_OF_EACH[stated](role) for role in roles]
    head, _, last = stated.rpartition(" ")
    if head in _OF_ANOTHER:
        return [_OF_ANOTHER[head](role, last) for role in roles]
    ranks = head.split(" to ")
    if last in ("dim", "dims") and all(map(str.isdigit, ranks)):
        return [sizes.has_rank(role, *map(int, ranks)) for role in roles]
    what, _, operands = stated.partition(" of ")
    if what == "cast":
        return [checks.castable(_roles(operands), role) for role in roles]
    if what == "broadcast":
        return [checks.broadcast_shape(role, _roles(operands)) for role in roles]
    if stated.startswith("promote to "):
        return (checks.promotes(roles, _dtypes(stated.removeprefix("promote to "))),)
    return [checks.dtype_among(role, _dtypes(stated)) for role in roles]


_OF_ALL: Mapping[str, Callable[..., Rule]] = {
    "at most 8 dims": checks.at_most_8_dims,
    "numbers": checks.convertible_scalars,
    "broadcast": checks.broadcasts,
    "if empty ends": checks.ends_if_empty,
    "if empty done": checks.done_if_empty,
    "plain format": checks.no_private_format,
    "one format": checks.same_format,
}
_OF_EACH: Mapping[str, Callable[[str], Rule]] = {
    "dims": checks.has_dims,
    "elements": sizes.has_elements,
}
_OF_ANOTHER: Mapping[str, Callable[[str, str], Rule]] = {
    "dtype of": checks.same_dtype,
    "FLOAT or dtype of": checks.dtype_like_or,
    "shape of": checks.same_shape,
    "rank of": checks.same_rank,
    "format of": checks.plain_format,
    "broadcasts to": checks.broadcasts_to,
    "axis of": checks.axis_within,
    "dim of": lambda option, role: checks.dim_in_range(role, option),
    "even along": checks.even_along,
}
