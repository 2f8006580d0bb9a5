"""Calls of a compiled function, taken apart: their form, and what is in the places of its leaves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aclnn.acl.errors import wrong_kind
from aclnn.execution import arrays
from aclnn.execution._operand import Headers, read_headers
from aclnn.tracing.given import Argument, arguments_of
from aclnn.tracing.integers import FixedIntegers, Integers
from aclnn.tracing.nesting import taken_apart
from aclnn.tracing.run_numbers import Values

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Request:
    """A call's arguments, taken apart: the form, and what is in the places of its leaves."""

    form: Any
    headers: Headers
    owners: Sequence[Any]
    values: Values
    integers: Integers | None = None

    @property
    def inputs(self) -> Sequence[np.ndarray]:
        """The arrays."""
        return self.headers.arrays


class Parameters:
    """The parameters of a function: takes calls apart, and knows the names of their arguments.

    Attributes
    ----------
    fixed_integers : FixedIntegers
        NumPy integers that are part of descriptions.
    """

    def __init__(self, function: Callable[..., Any], name: str):
        self._function = function
        self._name = name
        self.fixed_integers = FixedIntegers()

    def form(
        self,
        args: Any,
        named: Any,
        leaves: list[Any],
        numbers: list[float],
        owners: list[Any],
        integers: Integers,
    ) -> Any:
        """The form of a call's arguments; its arrays, floats and other objects go into the lists."""
        if named:
            named = {name: named[name] for name in self.signature[0] if name in named} | named
        whole = taken_apart(args, leaves, numbers, owners, integers)
        rest = taken_apart(named, leaves, numbers, owners, integers) if named else None
        if integers.places and not all(type(one) is np.ndarray for one in leaves):
            for one in (leaves, numbers, owners, integers.places):  # of other libraries' arrays
                one.clear()
            whole = taken_apart(args, leaves, numbers, owners)
            rest = taken_apart(named, leaves, numbers, owners) if named else None
        return whole, rest

    def request(self, args: Any, named: Any, leaves: list[Any]) -> Request:
        numbers: list[float] = []
        owners: list[Any] = []
        integers = Integers(self.fixed_integers)
        form = self.form(args, named, leaves, numbers, owners, integers)
        headers = read_headers([arrays.as_ndarray(one, "argument") for one in leaves])
        return Request(form, headers, owners, numbers, integers)

    @functools.cached_property
    def signature(self) -> tuple[list[str], int, str | None]:
        """The names of the function's parameters, how many go by position, and of the others."""
        try:
            found = inspect.signature(self._function).parameters.values()
        except (TypeError, ValueError):  # the call itself says what is wrong
            return [], 0, None
        plain = [one.name for one in found if one.kind in _BY_POSITION]
        rest = [one.name for one in found if one.kind is inspect.Parameter.VAR_POSITIONAL]
        return [one.name for one in found], len(plain), next(iter(rest), None)

    def refuse_missing_object(self, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Say how executors of methods are made: `model.run.executor` does not know the model."""
        path = getattr(self._function, "__qualname__", "")
        owner = path.rpartition(".")[0]
        if not owner or owner.endswith("<locals>"):
            return
        try:
            signature = inspect.signature(self._function)
        except (TypeError, ValueError):
            return
        if not _takes(signature, args, named) and _takes(signature, (None, *args), named):
            call = f"{'.'.join(path.split('.')[-2:])}.executor"
            raise wrong_kind(
                f"{self._name}: the executor of a method takes the object first: {call}(object, ...)"
            )

    @functools.cached_property
    def _default_floats(self) -> dict[str, float]:
        """Float defaults of parameters that can be given by name."""
        try:
            found = inspect.signature(self._function).parameters.values()
        except (TypeError, ValueError):
            return {}
        return {
            one.name: one.default
            for one in found
            if type(one.default) is float and one.kind is not inspect.Parameter.POSITIONAL_ONLY
        }

    def with_floats(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, with floats that are left to their defaults: runs may change them."""
        names, count, _ = self.signature
        by_position = names[: min(len(args), count)]
        rest = {n: x for n, x in self._default_floats.items() if n not in by_position}
        return {**rest, **named}

    def arguments(self, form: Any) -> list[Argument]:
        names, count, rest = self.signature
        return arguments_of(form, names[:count], rest)


def are_same(found: Sequence[Any], requested: Sequence[Any]) -> bool:
    """Whether both are the same objects in the same order."""
    return len(found) == len(requested) and all(
        a is b for a, b in zip(found, requested, strict=True)
    )


def is_in_order(
    parts: Any, leaves: Sequence[Any], numbers: Sequence[Any], owners: Sequence[Any]
) -> bool:
    """Whether a quick look at a call found what taking it apart does."""
    _, headers, floats, first = parts
    same = are_same([*headers.arrays, *floats], [*leaves, *numbers])
    return same and (not owners if first is None else len(owners) == 1 and owners[0] is first)


def _takes(signature: inspect.Signature, args: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether a function can be called like that."""
    try:
        signature.bind(*args, **named)
    except TypeError:
        return False
    return True
