"""Objects that a function reaches outside its arguments: names of its code, followed from roots.

Roots are the function itself and objects among its arguments. From a function lead its globals and
what it closes over; from an object those of its attributes whose names stand in the code of the
function, of functions that it reaches, or of methods; from lists, tuples and dicts all elements.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from aclnn.acl.errors import invalid
from aclnn.execution._operand import reads
from aclnn.execution.arrays import as_ndarray
from aclnn.tracing import _guards
from aclnn.tracing._guards import (
    ABSENT,
    ALIAS,
    ARRAY,
    ATTRIBUTE,
    CELL,
    EQUAL,
    FIXED,
    GLOBAL,
    IDENTICAL,
    ITEM,
    KIND,
    MAPPING,
    MEMBER,
    OWNER,
    SEQUENCE,
    VALUE,
    Guards,
)
from aclnn.tracing.nesting import is_array

MOST_NODES = 100_000
SMALL = 4096  # bytes of arrays whose elements are compared at each call, unless they are inputs
# Modules whose contents are taken as they are: nobody binds their names to other things.
FOREIGN = frozenset({"aclnn", "numpy", "ml_dtypes", "torch", "scipy", *sys.stdlib_module_names})
INSTALLED = frozenset({"site-packages", "dist-packages"})
# Objects of these are what they are; nothing in them is followed.
CLOSED = frozenset({"aclnn", "numpy", "ml_dtypes"})
# By these, code gets at attributes whose names it does not have.
REFLECTING = frozenset({"getattr", "vars", "__dict__", "attrgetter", "locals", "globals"})
# Methods that calls on traced arrays do not run.
ASIDE = frozenset({
    "__init__", "__new__", "__del__", "__repr__", "__str__", "__eq__", "__ne__", "__hash__",
    "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__init_subclass__",
    "__post_init__", "__format__", "__sizeof__", "__dir__", "__copy__", "__deepcopy__",
})  # fmt: skip
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, slice, np.dtype)


# Classes by which code tells integers from arrays.
_INTEGERS = frozenset(
    ["int", "integer", "signedinteger", "int32", "int64", "Integral", "Number", "generic"]
)


class CapturedVariables:
    """The nodes of what a function reaches, as they are before it is traced.

    Attributes
    ----------
    nodes : list of tuple
        As `_guards.Guards` takes them.
    texts : list of str
        What each node is called in code, such as ``self.layers[0].w``.
    arrays : dict of int to (int, object)
        The node of each array, and the array, by its identity.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        owners: Sequence[Any] = (),
        owner_names: Sequence[str] = (),
        everything: bool = False,
    ):
        self._roots = function, owners, owner_names
        self._names: set[str] = set()
        self.asks_for_types = False  # of what it is given, perhaps
        self.asks_for_integers = False  # whether something is one, perhaps
        self._spelled: set[str] = set()  # strings in code that may be names of attributes
        self._everything = everything
        self._home = {_root_of(getattr(function, "__module__", ""))}
        self._home |= {_root_of(type(one).__module__) for one in owners}
        self._wider: CapturedVariables | None = None
        known = -1
        while known != len(self._names) + len(self._spelled):
            known = len(self._names) + len(self._spelled)
            self._walk(*self._roots)

    def _walk(self, function: Any, owners: Sequence[Any], owner_names: Sequence[str]) -> None:
        self.nodes: list[_guards.Node] = []
        self.texts: list[str] = []
        self.arrays: dict[int, tuple[int, Any]] = {}
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # what `_seen` knows by its address
        self._codes: set[int] = set()
        self._wide = self._everything or not self._names.isdisjoint(REFLECTING)
        self._todo: list[tuple[int, Any, str]] = []
        self._code_of(function)
        self._visit(-1, FIXED, function, function, "", fixed=True)
        for index, (one, name) in enumerate(zip(owners, owner_names, strict=True)):
            self._visit(-1, OWNER, index, one, name)
        while self._todo:
            self._descend(*self._todo.pop())

    # --- Arrays -------------------------------------------------------------------------------------

    def place_of(self, value: Any, array: np.ndarray) -> tuple[int, int]:
        """The node of an array, and where in that node's memory it begins; -1 for one of no node."""
        found = self._place_in(self, value, array)
        if found is None and not self._everything:
            if self._wider is None:  # the function may have bound it meanwhile, or not by a name
                self._wider = CapturedVariables(*self._roots, everything=True)
            found = self._place_in(self._wider, value, array)
            if found is not None:
                return self._grafted(self._wider, found[0]), found[1]
        return (-1, 0) if found is None else found

    def _place_in(
        self, captured: CapturedVariables, value: Any, array: np.ndarray
    ) -> tuple[int, int] | None:
        if id(value) in captured.arrays:
            return captured.arrays[id(value)][0], 0
        low, high = _bounds(array)
        if low == high:
            return None
        for node, one in captured.arrays.values():
            memory = as_ndarray(one, "array")
            first, last = _bounds(memory)
            if first <= low and high <= last:
                return node, array.ctypes.data - memory.ctypes.data
        return None

    def _grafted(self, other: CapturedVariables, node: int) -> int:
        """The node of another walk among the own ones."""
        if node < 0:
            return -1
        parent, access, key, role, expected = other.nodes[node]
        if role == ALIAS:
            return self._grafted(other, expected)
        own = self._grafted(other, parent)
        for index, (known, way, name, *_) in enumerate(self.nodes):
            if known == own and way == access and name is key:
                return index
        self._add(own, access, key, role, expected, other.texts[node])
        return len(self.nodes) - 1

    def changed(self, owners: Sequence[Any]) -> set[int]:
        """The nodes that are not as they were before the function was traced."""
        return Guards(self.nodes).failing(owners)

    def keeps(self, one: Any) -> bool:
        """Whether an object is among the arguments, so that plans must not keep it alive."""
        return any(one is owner for owner in self._roots[1])

    def guards(self, held: Sequence[Any], owners: Sequence[Any]) -> tuple[Guards | None, list[str]]:
        """Objects to look up at each call, with the name of each node.

        What the function has changed itself while it was traced is not.
        """
        failing = self.changed(owners)
        for one in held:
            if one.node in failing:
                raise invalid(
                    f"{self.texts[one.node]} cannot be followed: it is bound to another object while "
                    f"the function is traced, or found by code of its own\n  {one.line}"
                )
        needed: set[int] = {one.node for one in held if one.node >= 0}
        for index, (_, _, _, role, _) in enumerate(self.nodes):
            if role != KIND and index not in failing:
                needed.add(index)
        for index in sorted(needed, reverse=True):
            self._need(index, needed)
        order = sorted(needed)
        places = {old: new for new, old in enumerate(order)}
        nodes = [self._moved(self.nodes[old], places) for old in order]
        texts = [self.texts[old] for old in order]
        inputs = []
        for one in held:
            if one.node < 0:
                nodes.append((-1, FIXED, one.array, ARRAY, one.array))
                texts.append("")
            inputs.append((places[one.node] if one.node >= 0 else len(nodes) - 1, one.offset))
        if not nodes:
            return None, []
        made = Guards(nodes)
        made.bind(inputs)
        self._watch(made, {one.node for one in held}, places)
        return made, texts

    def _need(self, index: int, needed: set[int]) -> None:
        parent, _, _, role, expected = self.nodes[index]
        for other in (parent, expected if role == ALIAS else -1):
            if other >= 0 and other not in needed:
                needed.add(other)
                self._need(other, needed)

    @staticmethod
    def _moved(node: _guards.Node, places: Mapping[int, int]) -> _guards.Node:
        parent, access, key, role, expected = node
        if role == ALIAS:
            expected = places[expected]
        return places.get(parent, -1), access, key, role, expected

    def _watch(self, made: Guards, inputs: set[int], places: Mapping[int, int]) -> None:
        """Let the elements of arrays count that are no inputs: the function may have read them."""
        computes = -1 in inputs  # from them, perhaps, arrays that it made
        for node, one in self.arrays.values():
            if node in inputs or node not in places:
                continue
            size, named = as_ndarray(one, "array").nbytes, self.nodes[node][1] not in (ITEM, VALUE)
            if size <= SMALL or (computes and (named or size <= 16 * SMALL)):
                made.watch(places[node], one)

    # --- Nodes --------------------------------------------------------------------------------------

    def _visit(
        self, parent: int, access: int, key: Any, one: Any, text: str, *, fixed: bool = False
    ) -> None:
        """Have a node for an object, and later for what it leads to."""
        if hasattr(type(one), "__aclnn_function__") or hasattr(type(one), "__aclnn_number__"):
            return None  # of another trace
        if len(self.nodes) > MOST_NODES:
            if self._everything:
                return None
            raise invalid(f"a compiled function reaches more than {MOST_NODES} objects: {text}")
        kind = type(one)
        if not isinstance(one, type) and self._is_plain(one):
            return self._add(parent, access, key, EQUAL, one, text)
        if isinstance(one, types.ModuleType) and _root_of(one.__name__) in FOREIGN:
            return None
        index = self._seen.get(id(one))
        if index is not None:
            return None if fixed else self._add(parent, access, key, ALIAS, index, text)
        self._seen[id(one)] = len(self.nodes)
        self._kept.append(one)
        if is_array(one) and not isinstance(one, type):
            return self._add_array(parent, access, key, one, text)
        if isinstance(one, tuple | list) and _has_own(kind, tuple, list):
            self._add(parent, access, key, SEQUENCE, (kind, len(one)), text)
        elif isinstance(one, dict) and _has_own(kind, dict):
            self._add(parent, access, key, MAPPING, (kind, tuple(one)), text)
        elif isinstance(one, set | frozenset) and all(map(self._is_plain, one)):
            return self._add(parent, access, key, EQUAL, kind(one), text)
        elif fixed or access == OWNER or _is_open(one):
            self._add(parent, access, key, KIND, kind, text)
        else:
            self._add(parent, access, key, IDENTICAL, _weakly(one), text)
        self._todo.append((len(self.nodes) - 1, one, text))
        return None

    def _add(self, parent: int, access: int, key: Any, role: int, expected: Any, text: str) -> None:
        self.nodes.append((parent, access, key, role, expected))
        self.texts.append(text)

    def _add_array(self, parent: int, access: int, key: Any, one: Any, text: str) -> None:
        if isinstance(one, np.ndarray) and not reads(one):
            return self._add(parent, access, key, IDENTICAL, _weakly(one), text)
        self.arrays[id(one)] = len(self.nodes), one
        return self._add(parent, access, key, ARRAY, one, text)

    def _is_plain(self, one: Any) -> bool:
        if type(one) is tuple:
            return all(map(self._is_plain, one))
        return type(one) in _PLAIN or isinstance(one, np.generic)

    # --- Ways ---------------------------------------------------------------------------------------

    def _descend(self, position: int, one: Any, text: str) -> None:
        """Visit what an object leads to."""
        kind = type(one)
        if isinstance(one, types.FunctionType):
            return self._descend_function(position, one, text)
        if isinstance(one, tuple | list):
            for index, item in enumerate(one):
                self._visit(position, ITEM, index, item, f"{text}[{index}]")
        elif isinstance(one, dict):
            for key, item in dict.items(one):
                self._visit(position, VALUE, key, item, f"{text}[{key!r}]")
        if isinstance(one, types.ModuleType):
            names = self._names & set(vars(one)) if self._is_followed(one) else set()
            return self._descend_members(position, one, sorted(names), text)
        if isinstance(one, type):
            return self._descend_class(position, one, text)
        if isinstance(one, enum.Enum):
            return None
        if kind in _INNER:
            for name in _INNER[kind]:
                self._visit(position, ATTRIBUTE, name, getattr(one, name), text)
            return None
        if hasattr(kind, "__aclnn_compiled__"):
            self._visit(position, ATTRIBUTE, "_function", one._function, text)
        elif _root_of(kind.__module__) not in CLOSED or position == 0:
            self._descend_object(position, one, text)
        return None

    def _descend_function(self, position: int, function: Any, text: str) -> None:
        self._code_of(function)
        code, space = function.__code__, function.__globals__
        own = f"{text}." if text else ""
        for index, (name, cell) in enumerate(
            zip(code.co_freevars, function.__closure__ or (), strict=True)
        ):
            try:
                found = cell.cell_contents
            except ValueError:  # not bound yet
                continue
            self._visit(position, CELL, index, found, f"{own}{name}")
        for name in _globals_of(code):
            if not self._is_followed(function):
                break
            if (
                name in space
                and name.isidentifier()
                and space[name] is not getattr(builtins, name, space)
            ):
                self._visit(position, GLOBAL, (space, name), space[name], f"{own}{name}")
        for name in ("__defaults__", "__kwdefaults__"):
            arguments = getattr(function, name) or ()
            if not all(
                map(
                    self._is_plain, arguments.values() if isinstance(arguments, dict) else arguments
                )
            ):
                self._visit(position, ATTRIBUTE, name, getattr(function, name), f"{own}{name}")

    def _descend_members(self, index: int, one: Any, names: Sequence[str], text: str) -> None:
        for name in names:
            found = vars(one)[name]
            if isinstance(found, staticmethod | classmethod | property | functools.cached_property):
                self._code_of(found)
                continue
            self._visit(index, MEMBER, name, found, f"{text}.{name}")

    def _descend_class(self, index: int, kind: type, text: str) -> None:
        if _root_of(kind.__module__) in FOREIGN:
            return
        for name, found in _members(kind):
            if isinstance(found, types.FunctionType) or name not in self._names:
                self._method(name, found)
            elif not isinstance(found, types.MemberDescriptorType) and not hasattr(
                found, "__get__"
            ):
                self._visit(index, MEMBER, name, found, f"{text}.{name}")
            else:
                self._code_of(found)

    def _descend_object(self, index: int, one: Any, text: str) -> None:
        kind = type(one)
        own = getattr(one, "__dict__", None)
        held = own if isinstance(own, dict) else {}
        wide = self._wide or _finds_attributes_itself(kind)
        for name in list(held):
            if wide or name in self._names or name in self._spelled:
                self._visit(index, ATTRIBUTE, name, held[name], f"{text}.{name}")
        for name in self._spelled - held.keys():
            if held is own and not hasattr(kind, name):
                self._add(index, ATTRIBUTE, name, ABSENT, None, f"{text}.{name}")
        if _root_of(kind.__module__) in FOREIGN - {"torch"} or kind.__module__ == "builtins":
            return
        for name, found in _members(kind):
            if name in held:
                continue
            if isinstance(found, types.MemberDescriptorType):
                if (wide or name in self._names or name in self._spelled) and hasattr(one, name):
                    self._visit(index, ATTRIBUTE, name, getattr(one, name), f"{text}.{name}")
            elif isinstance(found, types.FunctionType) or hasattr(type(found), "__get__"):
                self._method(name, found)
            elif name in self._names or name in self._spelled:
                self._visit(index, ATTRIBUTE, name, found, f"{text}.{name}")

    def _is_followed(self, one: Any) -> bool:
        """Whether what a function or a module names may be bound to something else: not so in
        packages that are installed, but for the one that the compiled function is of."""
        name = getattr(one, "__module__", None) or getattr(one, "__name__", "")
        file = getattr(one, "__file__", None)
        if isinstance(one, types.FunctionType):
            file = one.__code__.co_filename
        if file is None or not any(part in INSTALLED for part in PurePath(file).parts):
            return _root_of(name) not in FOREIGN or _root_of(name) in self._home
        return _root_of(name) in self._home

    def _method(self, name: str, found: Any) -> None:
        """Follow a function that instances have, where it may run."""
        special = name.startswith("__") and name.endswith("__") and name not in ASIDE
        if special or name in self._names or self._wide:
            self._code_of(found)
            inner = _function_in(found)
            if inner is not None and id(inner) not in self._seen:
                self._visit(-1, FIXED, inner, inner, inner.__name__, fixed=True)

    def _code_of(self, function: Any) -> None:
        """Take the names of a function's code."""
        inner = _function_in(function)
        if inner is None or id(inner.__code__) in self._codes:
            return
        self._codes.add(id(inner.__code__))
        for code in _codes_in(inner.__code__):
            self._names.update(code.co_names)
            own = _root_of(getattr(inner, "__module__", None)) not in FOREIGN
            asks = "type" in code.co_names and "type" in _globals_of(code)
            self.asks_for_types |= own and asks
            asks = "isinstance" in code.co_names and not _INTEGERS.isdisjoint(code.co_names)
            self.asks_for_integers |= own and asks
            self._spelled.update(
                [one for one in code.co_consts if isinstance(one, str) and one.isidentifier()]
                if not REFLECTORS.isdisjoint(code.co_names)
                else ()
            )


REFLECTORS = frozenset({"getattr", "hasattr"})
_INNER: Mapping[type, tuple[str, ...]] = {
    types.MethodType: ("__self__", "__func__"),
    functools.partial: ("func", "args", "keywords"),
}


def _function_in(value: Any) -> Any:
    """The function of Python in a method, a property or a wrapper; None where there is none."""
    for _ in range(10):
        if isinstance(value, types.FunctionType):
            return value
        for name in ("__func__", "fget", "func", "_function", "__wrapped__"):
            inner = getattr(value, name, None) if not isinstance(value, type) else None
            if inner is not None:
                break
        else:
            return None
        value = inner
    return None


def _bounds(array: np.ndarray) -> tuple[int, int]:
    """The first byte of an array, and the one after its last."""
    low = high = array.ctypes.data
    if not array.size:
        return low, low
    for size, stride in zip(array.shape, array.strides, strict=True):
        low, high = low + min(0, (size - 1) * stride), high + max(0, (size - 1) * stride)
    return low, high + array.itemsize


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _codes_in(one)


@functools.lru_cache(maxsize=1024)
def _globals_of(code: types.CodeType) -> tuple[str, ...]:
    """The global names that a function reads, and functions inside of it."""
    found: dict[str, None] = {}
    for one in _codes_in(code):
        for step in dis.get_instructions(one):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                found[step.argval] = None
    return tuple(found)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Members of a class and its bases, the nearest of each name."""
    found: set[str] = set()
    for base in kind.__mro__:
        if base is object or base.__module__ == "builtins":
            continue
        for name, one in list(vars(base).items()):
            if name not in found:
                found.add(name)
                yield name, one


def _finds_attributes_itself(kind: type) -> bool:
    return hasattr(kind, "__getattr__") or kind.__getattribute__ is not object.__getattribute__


def _has_own(kind: Any, *bases: Any) -> bool:
    """Whether elements are found as those of lists, tuples or dicts are."""
    return any(kind.__getitem__ is base.__getitem__ for base in bases)


def _is_open(one: Any) -> bool:
    """Whether an object is no more than what is in it: another one of its type will do."""
    if isinstance(one, types.MethodType | functools.partial):
        return True
    if isinstance(one, type | types.ModuleType | types.FunctionType | enum.Enum):
        return False
    return isinstance(getattr(one, "__dict__", None), dict) and type(one).__flags__ & (1 << 9) != 0


def _root_of(module: Any) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""


def _weakly(one: Any) -> Callable[[], Any]:
    """Gives an object as long as it is there; one that cannot be held weakly is kept."""
    try:
        return weakref.ref(one)
    except TypeError:
        return lambda: one
