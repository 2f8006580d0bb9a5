"""Arguments of a compiled function's executor: nested, by position and by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aclnn.acl.arguments import shown
from aclnn.acl.errors import invalid
from aclnn.tracing.integers import FixedIntegers, Integers
from aclnn.tracing.nesting import ARRAY, NUMBER, Leaf, names_of, numbers_of, taken_apart


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that a plan was made for.

    Attributes
    ----------
    name : str
    form : object
        What it is besides its arrays and floats.
    arrays, numbers : tuple of str
        What executors call these.
    """

    name: str
    form: Any
    arrays: tuple[str, ...]
    numbers: tuple[str, ...]


def arguments_of(form: Any, parameters: Sequence[str], rest: str | None) -> list[Argument]:
    """The arguments of a call; `rest` is the name of those by position that have none."""
    args, named = form
    pairs = []
    for index, one in enumerate(args[1]):
        if index < len(parameters):
            pairs.append((parameters[index], one))
        else:
            pairs.append((f"{rest or 'arg'}_{index - len(parameters)}", one))
    if named:
        pairs += zip(named[1], named[2], strict=True)
    taken: dict[str, None] = {}
    return [
        Argument(
            name, one, _apart(names_of(one, name), taken), _apart(numbers_of(one, name), taken)
        )
        for name, one in pairs
    ]


def _apart(names: Iterable[str], taken: dict[str, None]) -> tuple[str, ...]:
    found = []
    for name in names:
        while name in taken:
            name += "_"
        taken[name] = None
        found.append(name)
    return tuple(found)


class Given:
    """Sorts what the runs of one executor are given; floats that are not given stay.

    Parameters
    ----------
    origin : str
        What messages call the executor.
    arguments : sequence of Argument
    values : sequence of float
    packed : callable
        Gives of values the numbers that kernels read, or None where they shape the plan.
    """

    def __init__(
        self,
        origin: str,
        arguments: Sequence[Argument],
        values: Sequence[float],
        packed: Callable[[Sequence[float]], bytes | None],
    ):
        self._origin = origin
        self._arguments = list(arguments)
        self._packed = packed
        self.values = tuple(values)

    @property
    def n_arrays(self) -> int:
        """Number of an executor's inputs that runs may be given: the first ones."""
        return sum(len(argument.arrays) for argument in self._arguments)

    def __call__(
        self, arguments: Sequence[Any], named: Mapping[str, Any], known: Sequence[str]
    ) -> tuple[dict[str, Any], bytes | None]:
        """The arrays by name, and the numbers where any is given."""
        arrays: dict[str, Any] = {}
        numbers: dict[str, float] = {}
        if not self._sort_nested(arguments, arrays, numbers):
            self._sort_flat(arguments, arrays)
        for name, one in named.items():
            self._sort_named(name, one, arrays, numbers)
        if not numbers:
            return arrays, None
        places = [name for argument in self._arguments for name in argument.numbers]
        values = tuple([numbers.get(n, v) for n, v in zip(places, self.values, strict=True)])
        packed = self._packed(values)
        if packed is None:
            words = ", ".join(f"{name} is {value!r}" for name, value in numbers.items())
            raise invalid(
                f"{self._origin}: {words}, which shapes the plan: make another executor for it"
            )
        self.values = values
        return arrays, packed

    def _sort_nested(
        self, arguments: Sequence[Any], arrays: dict[str, Any], numbers: dict[str, float]
    ) -> bool:
        """Take arguments that are all like those that were planned; False where one is not."""
        found: list[tuple[Argument, list[Any], list[float]]] = []
        if len(arguments) > len(self._arguments):
            return False
        for argument, one in zip(self._arguments, arguments, strict=False):
            parts = _like(argument, one)
            if parts is None:
                return False
            found.append((argument, *parts))
        for argument, leaves, floats in found:
            arrays.update(zip(argument.arrays, leaves, strict=True))
            numbers.update(zip(argument.numbers, floats, strict=True))
        return True

    def _sort_flat(self, arguments: Sequence[Any], arrays: dict[str, Any]) -> None:
        """Take arrays alone, in the order of the inputs."""
        leaves: list[Any] = []
        form = taken_apart(tuple(arguments), leaves, [], [], Integers(FixedIntegers()))
        names = [name for argument in self._arguments for name in argument.arrays]
        if not _has_arrays_alone(form):
            shapes = [n for n, one in enumerate(arguments) if not _has_arrays_alone(_form_of(one))]
            word = self._arguments[shapes[0]].name if shapes[0] < len(self._arguments) else "it"
            raise invalid(
                f"{self._origin}: {word} is {shown(arguments[shapes[0]])}, which shapes the plan: make "
                "another executor for it"
            )
        if len(leaves) > len(names):
            raise invalid(f"{self._origin}: takes {len(names)} arrays, {len(leaves)} were given")
        arrays.update(zip(names, leaves, strict=False))

    def _sort_named(
        self, name: str, value: Any, arrays: dict[str, Any], numbers: dict[str, float]
    ) -> None:
        argument = next((one for one in self._arguments if one.name == name), None)
        if argument is None or argument.form is ARRAY:
            names: Sequence[str] = [name] if argument is None else argument.arrays
            if names[0] in arrays:
                raise invalid(f"{self._origin}: {name} is given twice")
            arrays[names[0]] = np.asarray(value) if isinstance(value, np.integer) else value
            return
        parts = _like(argument, value)
        if parts is None:
            raise invalid(
                f"{self._origin}: {name} is {shown(value)}, which shapes the plan: make another "
                "executor for it"
            )
        leaves, floats = parts
        if any(one in arrays or one in numbers for one in (*argument.arrays, *argument.numbers)):
            raise invalid(f"{self._origin}: {name} is given twice")
        arrays.update(zip(argument.arrays, leaves, strict=True))
        numbers.update(zip(argument.numbers, floats, strict=True))


def _like(argument: Argument, value: Any) -> tuple[list[Any], list[float]] | None:
    """The arrays and floats of what is given, if all else is as it was planned."""
    leaves: list[Any] = []
    floats: list[float] = []
    if argument.form is NUMBER and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if taken_apart(value, leaves, floats, []) == argument.form:
        return leaves, floats
    for one in (leaves, floats):
        one.clear()
    integers = Integers(FixedIntegers())
    if taken_apart(value, leaves, floats, [], integers) == argument.form:
        return leaves, floats
    return None


def _form_of(value: Any) -> Any:
    return taken_apart(value, [], [], [], Integers(FixedIntegers()))


def _has_arrays_alone(form: Any) -> bool:
    """Whether there is nothing but arrays in a nesting."""
    if isinstance(form, Leaf):
        return form is ARRAY
    kind, *rest = form
    if len(rest) == 1 and not issubclass(kind, tuple | list):
        return False
    return all(map(_has_arrays_alone, rest[-1]))
