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

    def __init__(self, given: Any):
        self._id = id(given)
        self._get: Callable[[], Any]
        try:
            self._get = weakref.ref(given)
        except TypeError:
            self._get = functools.partial(_back, given)

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


def _back(given: Any) -> Any:
    return given


def is_array(given: Any) -> bool:
    """Whether an argument is an array, NumPy's or another library's, or a traced one."""
    if isinstance(given, np.ndarray):
        return True
    kind = type(given)
    if issubclass(kind, np.generic | type):  # np.float16 itself, say, has what its numbers have
        return False
    return (
        hasattr(kind, "__dlpack__")
        or hasattr(given, "__array_interface__")
        or hasattr(kind, "__aclnn_function__")
        or is_dask(given)
    )


_VALUES = (type(None), bool, int, str, bytes, type(Ellipsis), range, np.dtype)
_OF_BITS = (complex, np.generic)


def taken_apart(
    given: Any,
    leaves: list[Any],
    numbers: list[float] | None = None,
    owners: list[Any] | None = None,
    integers: Integers | None = None,
) -> Any:
    """Append the arrays of a nesting; gives its form, which can be hashed: all but the arrays.

    Parameters
    ----------
    given : object
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
    kind = type(given)
    if kind is np.ndarray:
        leaves.append(given)
        return ARRAY
    if kind is float:
        if numbers is None:
            return kind, given.hex()
        numbers.append(given)
        return NUMBER
    if kind in _VALUES:
        return kind, given
    if integers is not None and isinstance(given, np.integer) and integers.take(given, leaves):
        return ARRAY
    if is_array(given):
        leaves.append(given)
        return ARRAY
    if isinstance(given, tuple | list):
        return kind, tuple([taken_apart(one, leaves, numbers, owners, integers) for one in given])
    if isinstance(given, dict):
        found = dict(given)
        if isinstance(given, collections.defaultdict):
            found[FACTORY] = given.default_factory
        parts = tuple(
            [taken_apart(one, leaves, numbers, owners, integers) for one in found.values()]
        )
        return kind, tuple(found), parts
    if dataclasses.is_dataclass(kind):
        found = fields_of(given)
        parts = tuple(
            [taken_apart(one, leaves, numbers, owners, integers) for one in found.values()]
        )
        return kind, tuple(found), parts
    return kind, _static(kind, given, owners)


def _static(kind: type, given: Any, owners: list[Any] | None) -> Hashable:
    """Stand-in in a form for something that is neither array nor nesting."""
    if hasattr(kind, "__aclnn_number__"):
        return float(given).hex()
    if issubclass(kind, _OF_BITS):
        return np.asarray(given).tobytes(), np.asarray(given).dtype
    if kind is slice:
        return given.start, given.stop, given.step
    try:
        if kind in (set, frozenset):
            return frozenset(given)
        if owners is None:
            hash(given)
            return given
    except TypeError:
        raise _unfit(given) from None
    if kind.__hash__ is None and not kind.__flags__ & _HEAP:  # what it holds may change unseen
        raise _unfit(given)
    owners.append(given)
    return Itself(given)


_HEAP = 1 << 9  # of types that were made by a class statement


def _unfit(given: Any) -> Exception:
    return invalid(
        f"{shown(given)} cannot be part of a call's description: it is no array and cannot be "
        "hashed"
    )


def fields_of(given: Any) -> dict[str, Any]:
    """Contents of a dataclass: its fields, then other attributes of the instance.

    >>> @dataclasses.dataclass
    ... class Pair:
    ...     a: int
    ...     b: int = 2
    >>> fields_of(Pair(1))
    {'a': 1, 'b': 2}
    """
    names = [one.name for one in dataclasses.fields(given) if hasattr(given, one.name)]
    return {name: getattr(given, name) for name in names} | getattr(given, "__dict__", {})


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


def _plain(kind: Any, given: Any) -> Any:
    """Object that `_static` took apart."""
    if isinstance(given, Itself):
        return given()
    if kind is float or hasattr(kind, "__aclnn_number__"):
        return float.fromhex(given)
    if issubclass(kind, _OF_BITS):
        bits, dtype = given
        found = np.frombuffer(bits, dtype)[0]
        return complex(found) if kind is complex else found
    if kind is slice:
        return slice(*given)
    return kind(given) if kind is set else given


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


def mapped(form: Any, given: Any, visit: Callable[[Any], None]) -> bool:
    """Visit what a nesting has in the places of the arrays of a form; False where it has another."""
    if form is ARRAY:
        visit(given)
        return True
    if form is NUMBER:
        return True
    kind, *rest = form
    if len(rest) == 2:
        if not issubclass(kind, dict):
            given = fields_of(given) if isinstance(given, kind) else None
        own = {key: form for key, form in zip(*rest, strict=True) if key is not FACTORY}
        if not isinstance(given, dict) or given.keys() != own.keys():
            return False
        return all(mapped(one, given[key], visit) for key, one in own.items())
    if issubclass(kind, tuple | list):
        if not isinstance(given, tuple | list) or len(given) != len(rest[0]):
            return False
        return all(mapped(one, part, visit) for one, part in zip(rest[0], given, strict=True))
    return True
