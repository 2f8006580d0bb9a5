"""Parsing of the examples in declarations: the arguments of a call, and its printed results."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any


def arguments(call: str, positional: Sequence[str]) -> dict[str, str]:
    """Arguments of a call of the functional form, by parameter, as they are written.

    >>> arguments("add(np.float32([1]), 2, alpha=10)", ("input", "other"))
    {'input': 'np.float32([1])', 'other': '2', 'alpha': '10'}
    """
    parsed = _call(call)
    if len(parsed.args) > len(positional):
        raise ValueError(f"{call} gives more by position than {', '.join(positional)}")
    value = dict(zip(positional, map(ast.unparse, parsed.args), strict=False))
    return value | {k.arg: ast.unparse(k.value) for k in parsed.keywords if k.arg is not None}


def with_first(call: str, name: str, first: str) -> str:
    """The same call of another function, with another first argument.

    >>> with_first("add(np.float32([1]), 2, alpha=10)", "add_", "x")
    'add_(x, 2, alpha=10)'
    """
    parsed = _call(call)
    parsed.func = ast.Name(name)
    parsed.args[0] = ast.Name(first)
    return ast.unparse(parsed)


def called(call: str) -> str:
    """The name of the function that is called."""
    return ast.unparse(_call(call).func)


def results(printed: str, count: int | None) -> list[str]:
    """The results one by one, as they are printed; None for a tuple of any length.

    >>> results("(array([0.], dtype=float32), array([1, 2]))", 2)
    ['array([0.], dtype=float32)', 'array([1, 2])']
    """
    if count == 1:
        return [printed]
    parsed = ast.parse(printed, mode="eval").body
    if not isinstance(parsed, ast.Tuple):
        raise ValueError(f"{printed} is no tuple")
    return [ast.get_source_segment(printed, one) or "" for one in parsed.elts]


def shape_and_dtype(printed: str) -> tuple[tuple[int, ...], str]:
    """The shape of an array and the name of its dtype, as they are printed.

    >>> shape_and_dtype("array([[1., 2., 3.]], dtype=float32)")
    ((1, 3), 'float32')
    >>> shape_and_dtype("array([ True, False])")
    ((2,), 'bool')
    """
    parsed = _call(printed)
    if parsed.keywords:
        dtype = ast.unparse(parsed.keywords[0].value)
    shape: list[int] = []
    items: Any = parsed.args[0]
    while isinstance(items, ast.List):
        shape.append(len(items.elts))
        items = items.elts[0] if items.elts else items.elts
    if not parsed.keywords:
        kind = type(ast.literal_eval(items))
        dtype = {bool: "bool", int: "int64", float: "float64"}[kind]
    return tuple(shape), dtype


def as_first(printed: str, made: str) -> str:
    """Bools as they are printed, replacing floats.

    >>> as_first("array([False,  True])", "np.float32([1, 2])")
    'array([0., 1.], dtype=float32)'
    """
    if not printed.startswith(("array([False", "array([ True")) or dtype_of(made) == "bool":
        return printed
    numbers = re.sub(r" ?True", "1.", re.sub(r"False", "0.", printed)).replace(",  ", ", ")
    return f"{numbers.removesuffix(')')}, dtype={dtype_of(made)})"


def dtype_of(made: str) -> str:
    """The name of an array's dtype as it is made.

    >>> dtype_of("np.bool_([True, False])")
    'bool'
    """
    return called(made).removeprefix("np.").rstrip("_")


def items(made: str) -> list[str]:
    """The items of a list, as they are written.

    >>> items("[np.float32([1]), 2]")
    ['np.float32([1])', '2']
    """
    parsed = ast.parse(made, mode="eval").body
    assert isinstance(parsed, ast.List | ast.Tuple)
    return [ast.unparse(one) for one in parsed.elts]


def _call(text: str) -> ast.Call:
    parsed = ast.parse(text, mode="eval").body
    if not isinstance(parsed, ast.Call):
        raise ValueError(f"{text} is no call")
    return parsed
