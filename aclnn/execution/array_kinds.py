"""Registry of other libraries' arrays, and of the modules that take calls over for them.

Such a module enters its functions when it is imported, which is when the first of its arrays comes. Until then
neither it nor its library is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aclnn import deferred


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """Arrays of a library.

    Attributes
    ----------
    home : str
        The library's module that has their class.
    name : str
        Name of the class.
    functions : dict of str to callable
        What the module entered that takes calls over.
    """

    home: str
    name: str
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)


_KINDS = {"torch": ArrayKind("torch", "Tensor"), "dask": ArrayKind("dask.array", "Array")}


def enter(library: str, **functions: Callable[..., Any]) -> None:
    """Register the functions of the module that takes calls over."""
    _KINDS[library].functions.update(functions)


def load(library: str) -> None:
    """Import the module that takes calls over."""
    deferred.load(f"arrays of {library}")


def function(library: str, name: str) -> Callable[..., Any]:
    """A function of the module that takes calls over, which is imported if necessary."""
    if name not in _KINDS[library].functions:
        load(library)
    return _KINDS[library].functions[name]


def is_of(library: str, value: Any) -> bool:
    """Whether an object is an array of a library, which is not loaded for that.

    >>> is_of("dask", [1, 2])
    False
    """
    known = _KINDS[library]
    kind = getattr(sys.modules.get(known.home), known.name, None)
    return kind is not None and isinstance(value, kind)
