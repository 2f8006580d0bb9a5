"""Nestings of arrays: tuples, lists, dicts and dataclasses taken apart, and put together again."""

from __future__ import annotations

import collections
import dataclasses
import functools
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from aclnn.acl.arguments import shown
from aclnn.acl.errors import invalid
from aclnn.execution.arrays import is_dask
from aclnn.tracing.integers import Integers


class Leaf:
    """Stand-in in a form for something that is no part of it; each is the only one of its name."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return self.name


ARRAY = Leaf("ARRAY")
NUMBER = Leaf("NUMBER")  # a Python float
FACTORY = Leaf("FACTORY")  # among the keys of a defaultdict: what makes its missing values


class Itself:
    """An object that is part of a form as itself, whatever it compares equal to.

    It is held weakly where that is possible.

    >>> class Model:
    ...     __hash__ = lambda self: 1
    ...     __eq__ = lambda self, other: True
    >>> one, other = Model(), Model()
    >>> Itself(one) == Itself(one), Itself(one) == Itself(other)
    (True, False)
    """

    __slots__ = ("_get", "_id")

    def __init__(self, value: Any):
        self._id = id(value)
        self._get: Callable[[], Any]
        try:
            self._get = weakref.ref(value)
        except TypeError:
            self._get = functools.partial(_back, value)

    def __call__(self) -> Any:
        return self._get()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Itself) or self._id != other._id:
            return False
        own = self._get()
        return own is not None and own is other._get()

    def __repr__(self) -> str:
        return f"<{type(self._get()).__name__}>"

    def __reduce__(self) -> Any:
        return Itself, (self._get(),)


def _back(value: Any) -> Any:
    return value


def is_array(value: Any) -> bool:
    """Whether an argument is an array, NumPy's or another library's, or a traced one."""
    if isinstance(value, np.ndarray):
        return True
    kind = type(value)
    if issubclass(kind, np.generic | type):  # np.float16 itself, say, has what its numbers have
        return False
    return (
        hasattr(kind, "__dlpack__")
        or hasattr(value, "__array_interface__")
        or hasattr(kind, "__aclnn_function__")
        or is_dask(value)
    )


_VALUES = (type(None), bool, int, str, bytes, type(Ellipsis), range, np.dtype)
_OF_BITS = (complex, np.generic)


def taken_apart(
    arguments: Any,
    leaves: list[Any],
    numbers: list[float] | None = None,
    owners: list[Any] | None = None,
    integers: Integers | None = None,
) -> Any:
    """Append the arrays of a nesting; gives its form, which can be hashed: all but the arrays.

    Parameters
    ----------
    arguments : object
    leaves : list
        Gets the arrays.
    numbers : list, optional
        Gets Python floats, which are no part of the form then.
    owners : list, optional
        Gets objects that are neither plain values nor nestings: each is part of the form as
        itself, held weakly. Without the list it is so by its hash.
    integers : Integers, optional
        Says which of NumPy's integers are arrays without dimensions, and no part of the form.

    Examples
    --------
    >>> leaves = []
    >>> taken_apart([np.zeros(2), {"a": 3}], leaves), len(leaves)
    ((<class 'list'>, (ARRAY, (<class 'dict'>, ('a',), ((<class 'int'>, 3),)))), 1)
    """
    kind = type(arguments)
    if kind is np.ndarray:
        leaves.append(arguments)
        return ARRAY
    if kind is float:
        if numbers is None:
            return kind, arguments.hex()
        numbers.append(arguments)
        return NUMBER
    if kind in _VALUES:
        return kind, arguments
    if (
        integers is not None
        and isinstance(arguments, np.integer)
        and integers.take(arguments, leaves)
    ):
        return ARRAY
    if is_array(arguments):
        leaves.append(arguments)
        return ARRAY
    if isinstance(arguments, tuple | list):
        return kind, tuple(
            [taken_apart(one, leaves, numbers, owners, integers) for one in arguments]
        )
    if isinstance(arguments, dict):
        found = dict(arguments)
        if isinstance(arguments, collections.defaultdict):
            found[FACTORY] = arguments.default_factory
        parts = tuple(
            [taken_apart(one, leaves, numbers, owners, integers) for one in found.values()]
        )
        return kind, tuple(found), parts
    if dataclasses.is_dataclass(kind):
        found = fields_of(arguments)
        parts = tuple(
            [taken_apart(one, leaves, numbers, owners, integers) for one in found.values()]
        )
        return kind, tuple(found), parts
    return kind, _static(kind, arguments, owners)


def _static(kind: type, value: Any, owners: list[Any] | None) -> Hashable:
    """Stand-in in a form for something that is neither array nor nesting."""
    if hasattr(kind, "__aclnn_number__"):
        return float(value).hex()
    if issubclass(kind, _OF_BITS):
        return np.asarray(value).tobytes(), np.asarray(value).dtype
    if kind is slice:
        return value.start, value.stop, value.step
    try:
        if kind in (set, frozenset):
            return frozenset(value)
        if owners is None:
            hash(value)
            return value
    except TypeError:
        raise _unfit(value) from None
    if kind.__hash__ is None and not kind.__flags__ & _HEAP:  # what it holds may change unseen
        raise _unfit(value)
    owners.append(value)
    return Itself(value)


_HEAP = 1 << 9  # of types that were made by a class statement


def _unfit(value: Any) -> Exception:
    return invalid(
        f"{shown(value)} cannot be part of a call's description: it is no array and cannot be "
        "hashed"
    )


def fields_of(value: Any) -> dict[str, Any]:
    """Contents of a dataclass: its fields, then other attributes of the instance.

    >>> @dataclasses.dataclass
    ... class Pair:
    ...     a: int
    ...     b: int = 2
    >>> fields_of(Pair(1))
    {'a': 1, 'b': 2}
    """
    names = [one.name for one in dataclasses.fields(value) if hasattr(value, one.name)]
    return {name: getattr(value, name) for name in names} | getattr(value, "__dict__", {})


def rebuilt(kind: type, values: Iterable[tuple[str, Any]]) -> Any:
    """A dataclass with other values; nothing of its own runs."""
    made: Any = object.__new__(kind)
    for name, value in values:
        object.__setattr__(made, name, value)
    return made


_NONE: Iterator[Any] = iter(())


def put_together(form: Any, leaves: Iterator[Any], numbers: Iterator[Any] = _NONE) -> Any:
    """The nesting of a form with other leaves, and other numbers."""
    if form is ARRAY:
        return next(leaves)
    if form is NUMBER:
        return next(numbers)
    kind, *rest = form
    if len(rest) == 2:
        parts = [put_together(one, leaves, numbers) for one in rest[1]]
        pairs = zip(rest[0], parts, strict=True)
        return _dict_of(kind, dict(pairs)) if issubclass(kind, dict) else rebuilt(kind, pairs)
    if issubclass(kind, tuple | list):
        items = [put_together(one, leaves, numbers) for one in rest[0]]
        return _sequence_of(kind, items)
    return _plain(kind, rest[0])


def _dict_of(kind: Any, items: dict[Any, Any]) -> Any:
    """A dict of any class, whatever its constructor takes."""
    factory = items.pop(FACTORY, None)
    if kind is dict:
        return items
    if kind is collections.defaultdict:
        return kind(factory, items)
    made = _constructed(kind, items)
    if made is None:
        made = kind.__new__(kind)
        base = collections.OrderedDict if isinstance(made, collections.OrderedDict) else dict
        for key, one in items.items():
            base.__setitem__(made, key, one)
    if factory is not None:
        made.default_factory = factory
    return made


def _sequence_of(kind: Any, items: list[Any]) -> Any:
    """A tuple or a list of any class, whatever its constructor takes."""
    if hasattr(kind, "_fields"):  # a named tuple
        return kind._make(items)
    made = _constructed(kind, items)
    if made is None:
        made = tuple.__new__(kind, items) if issubclass(kind, tuple) else kind.__new__(kind)
        if issubclass(kind, list):
            list.extend(made, items)
    return made


def _constructed(kind: Any, items: Sequence[Any] | Mapping[Any, Any]) -> Any:
    """Object that the class makes of the items; None where it makes something else of them."""
    try:
        made = kind(items)
    except TypeError:  # it takes other arguments
        return None
    if len(made) != len(items):
        return None
    held = made.values() if isinstance(made, dict) else made
    own = items.values() if isinstance(items, Mapping) else items
    return made if all(a is b for a, b in zip(held, own, strict=True)) else None


def _plain(kind: Any, arguments: Any) -> Any:
    """Object that `_static` took apart."""
    if isinstance(arguments, Itself):
        return arguments()
    if kind is float or hasattr(kind, "__aclnn_number__"):
        return float.fromhex(arguments)
    if issubclass(kind, _OF_BITS):
        bits, dtype = arguments
        found = np.frombuffer(bits, dtype)[0]
        return complex(found) if kind is complex else found
    if kind is slice:
        return slice(*arguments)
    return kind(arguments) if kind is set else arguments


def names_of(form: Any, name: str) -> list[str]:
    """A name for each array of a nesting.

    >>> names_of((list, (ARRAY, (dict, ("a",), (ARRAY,)))), "w")
    ['w_0', 'w_1_a']
    """
    if form is ARRAY:
        return [name]
    return [leaf for key, one in _parts(form) for leaf in names_of(one, f"{name}_{key}")]


def numbers_of(form: Any, name: str) -> list[str]:
    """A name for each number of a nesting.

    >>> numbers_of((list, (ARRAY, NUMBER)), "w"), numbers_of(NUMBER, "t")
    (['w_1'], ['t'])
    """
    if form is NUMBER:
        return [name]
    return [leaf for key, one in _parts(form) for leaf in numbers_of(one, f"{name}_{key}")]


def owners_in(form: Any) -> Iterator[Any]:
    """The objects that are part of a form as themselves, in order."""
    if isinstance(form, Leaf) or form is None:
        return
    if isinstance(form[-1], Itself):
        yield form[-1]()
    for _, one in _parts(form):
        yield from owners_in(one)


def _parts(form: Any) -> Iterable[tuple[Any, Any]]:
    """Parts of a form, by index or key."""
    if isinstance(form, Leaf):
        return ()
    kind, *rest = form
    if len(rest) == 2:
        return zip(*rest, strict=True)
    return enumerate(rest[0]) if issubclass(kind, tuple | list) else ()


def mapped(form: Any, arguments: Any, visit: Callable[[Any], None]) -> bool:
    """Visit what a nesting has in the places of the arrays of a form; False where it has another."""
    if form is ARRAY:
        visit(arguments)
        return True
    if form is NUMBER:
        return True
    kind, *rest = form
    if len(rest) == 2:
        if not issubclass(kind, dict):
            arguments = fields_of(arguments) if isinstance(arguments, kind) else None
        own = {key: form for key, form in zip(*rest, strict=True) if key is not FACTORY}
        if not isinstance(arguments, dict) or arguments.keys() != own.keys():
            return False
        return all(mapped(one, arguments[key], visit) for key, one in own.items())
    if issubclass(kind, tuple | list):
        if not isinstance(arguments, tuple | list) or len(arguments) != len(rest[0]):
            return False
        return all(mapped(one, part, visit) for one, part in zip(rest[0], arguments, strict=True))
    return True
