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

import re
from collections.abc import Callable, Iterable
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
    for pattern, rule in _OF_ALL:
        if match := re.fullmatch(pattern, stated):
            return (rule(roles, *match.groups()),)
    for pattern, made in _OF_EACH:
        if match := re.fullmatch(pattern, stated):
            return [made(role, *match.groups()) for role in roles]
    return [checks.dtype_among(role, _dtypes(stated)) for role in roles]


_OF_ALL: tuple[tuple[str, Callable[..., Rule]], ...] = (
    ("at most 8 dims", lambda roles: checks.at_most_8_dims(*roles)),
    ("numbers", lambda roles: checks.convertible_scalars(*roles)),
    ("broadcast", lambda roles: checks.broadcasts(*roles)),
    ("promote to (.*)", lambda roles, allowed: checks.promotes(roles, _dtypes(allowed))),
    ("if empty ends", lambda roles: checks.ends_if_empty(*roles)),
    ("if empty done", lambda roles: checks.done_if_empty(*roles)),
    ("plain format", lambda roles: checks.no_private_format(*roles)),
    ("one format", lambda roles: checks.same_format(*roles)),
)
_OF_EACH: tuple[tuple[str, Callable[..., Rule]], ...] = (
    (r"dtype of (\w+)", checks.same_dtype),
    (r"shape of (\w+)", checks.same_shape),
    (r"rank of (\w+)", checks.same_rank),
    (r"format of (\w+)", checks.plain_format),
    (r"FLOAT or dtype of (\w+)", checks.dtype_like_or),
    (r"cast of (.*)", lambda role, sources: checks.castable(_roles(sources), role)),
    (r"broadcast of (.*)", lambda role, roles: checks.broadcast_shape(role, _roles(roles))),
    (r"broadcasts to (\w+)", checks.broadcasts_to),
    (r"(\d+) dims?", lambda role, rank: sizes.has_rank(role, int(rank))),
    (r"(\d+) to (\d+) dims", lambda role, a, b: sizes.has_rank(role, int(a), int(b))),
    (r"dims", checks.has_dims),
    (r"elements", sizes.has_elements),
    (r"axis of (\w+)", checks.axis_within),
    (r"dim of (\w+)", lambda role, tensor: checks.dim_in_range(tensor, role)),
    (r"even along (\w+)", checks.even_along),
)
