"""Numbers of a run: Python floats that a traced function computes with, without knowing them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aclnn.acl.arguments import NumberOfRun

Values = Sequence[float]


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that a plan depends on: what a function of the numbers gave.

    Attributes
    ----------
    asks : callable
        Takes the values of the numbers.
    found : object
    places : frozenset of int
        Those of the numbers that it reads.
    """

    asks: Callable[[Values], Any]
    found: Any
    places: frozenset[int]

    def holds(self, values: Values) -> bool:
        return bool(self.asks(values) == self.found)


class Numbers:
    """The floats among the arguments of one trace, and what it found out about them.

    Attributes
    ----------
    read : set of int
        The places of those whose values the function asked for: these are part of the description.
    conditions : list of Condition
        What else plans depend on.
    """

    def __init__(self, values: Values):
        self.values = tuple(values)
        self.read: set[int] = set()
        self.conditions: list[Condition] = []

    def stand_ins(self) -> list[RunNumber]:
        """Stand-ins that the function gets in place of the floats."""
        return [
            RunNumber(self, operator.itemgetter(index), frozenset([index]))
            for index in range(len(self.values))
        ]


class RunNumber(NumberOfRun):
    """A float that a run is given: arithmetic with numbers gives another one.

    Whatever asks for its value gets the one of the call that is traced, and makes the value part of
    the description.

    >>> numbers = Numbers([0.5])
    >>> (half,) = numbers.stand_ins()
    >>> isinstance(half, float), (1 / half + 1).of([0.25]), numbers.read
    (True, 5.0, set())
    >>> half < 1, numbers.read  # a condition of the plan
    (True, set())
    >>> int(half), numbers.read
    (0, {0})
    """

    __slots__ = ("_numbers", "_places", "of")
    __aclnn_number__ = True
    __array_priority__ = 1.0

    def __init__(self, numbers: Numbers, of: Callable[[Values], float], places: frozenset[int]):
        self._numbers = numbers
        self._places = places
        self.of = of  # gives its value, of those of the arguments

    @property
    def now(self) -> float:
        """Its value while the function is traced, which this does not make part of the description."""
        return self.of(self._numbers.values)

    def derived(self, compute: Callable[[float], float]) -> RunNumber:
        """The number that a function makes of it."""
        own = self.of
        return RunNumber(self._numbers, lambda values: compute(own(values)), self._places)

    def observe(self, asks: Callable[[float], Any]) -> Any:
        """Answer of a function about it now; plans hold as long as the answer is the same."""
        own = self.of
        return self._found(lambda values: asks(own(values)), self._places)

    def _found(self, asks: Callable[[Values], Any], places: frozenset[int]) -> Any:
        found = asks(self._numbers.values)
        self._numbers.conditions.append(Condition(asks, found, places))
        return found

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return float

    def __float__(self) -> float:
        self._numbers.read |= self._places
        return self.now

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(float(self), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any(hasattr(type(one), "__aclnn_function__") for one in inputs):
            return NotImplemented
        read = [float(one) if type(one) is RunNumber else one for one in inputs]
        return getattr(ufunc, method)(*read, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(float, name):
            raise AttributeError(f"'float' object has no attribute {name!r}")
        return getattr(float(self), name)

    def __reduce__(self) -> Any:
        return float, (float(self),)


def _both(number: RunNumber, other: Any) -> tuple[Callable[[Values], Any], frozenset[int]] | None:
    """The value of another number, and the places of both; None where it is no number."""
    kind = type(other)
    if kind is RunNumber:
        return other.of, number._places | other._places
    if kind is float or kind is int or kind is bool:
        return _constant(other), number._places
    return None


def _arithmetic(compute: Callable[..., Any], swapped: bool) -> Callable[..., Any]:
    def method(self: RunNumber, other: Any) -> Any:
        both = _both(self, other)
        if both is None:
            return NotImplemented
        own, (theirs, places) = self.of, both
        first, second = (theirs, own) if swapped else (own, theirs)
        made = RunNumber(
            self._numbers, lambda values: compute(first(values), second(values)), places
        )
        if type(made.of(self._numbers.values)) is not float:  # a complex power
            self._numbers.read |= places
            return made.of(self._numbers.values)
        return made

    return method


def _comparison(name: str) -> Callable[..., Any]:
    compute, read = getattr(operator, name), _read(f"__{name}__")

    def method(self: RunNumber, other: Any) -> Any:
        both = _both(self, other)
        if both is None:
            return read(self, other)
        own, (theirs, places) = self.of, both
        return self._found(lambda values: compute(own(values), theirs(values)), places)

    return method


def _constant(value: Any) -> Callable[[Values], Any]:
    return lambda _: value


def _unary(compute: Callable[[float], float]) -> Callable[[RunNumber], Any]:
    return lambda self: self.derived(compute)


def _read(name: str) -> Callable[..., Any]:
    def method(self: RunNumber, *args: Any) -> Any:
        if any(hasattr(type(one), "__aclnn_function__") for one in args):
            return NotImplemented
        arguments = [float(one) if type(one) is RunNumber else one for one in args]
        return getattr(float(self), name)(*arguments)

    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _compute = getattr(operator, _name)
    setattr(RunNumber, f"__{_name}__", _arithmetic(_compute, False))
    setattr(RunNumber, f"__r{_name}__", _arithmetic(_compute, True))
for _name in ("neg", "pos", "abs"):
    setattr(RunNumber, f"__{_name}__", _unary(getattr(operator, _name)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(RunNumber, f"__{_name}__", _comparison(_name))
for _name in (
    "int", "trunc", "floor", "ceil", "round", "divmod", "rdivmod", "hash", "repr", "str", "format",
):  # fmt: skip
    setattr(RunNumber, f"__{_name}__", _read(f"__{_name}__"))
setattr(RunNumber, "__bool__", lambda self: self.observe(bool))  # noqa: B010
