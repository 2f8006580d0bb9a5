"""Registry of other libraries' arrays, and of the modules that take calls over for them.

The package declares a kind with its module; that module enters its functions when it is imported, which is
when the first of its arrays comes. Until then neither it nor its library is loaded.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ArrayKind:
    """Arrays of a library.

    Attributes
    ----------
    home : str
        The library's module that has their class.
    name : str
        Name of the class.
    module : str
        The module that takes calls over.
    functions : dict of str to callable
        Its functions, as soon as it is imported.
    """

    home: str
    name: str
    module: str
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)

    @property
    def type(self) -> Any:
        """The class, None where the library is not loaded."""
        return getattr(sys.modules.get(self.home), self.name, None)


_KINDS: dict[str, ArrayKind] = {}


def declare(library: str, home: str, name: str, module: str) -> None:
    """Register a library's arrays and the module that takes calls over for them."""
    _KINDS[library] = ArrayKind(home, name, module)


def enter(library: str, **functions: Callable[..., Any]) -> None:
    """Register the functions of the module that takes calls over."""
    _KINDS[library].functions.update(functions)


def load(library: str) -> None:
    """Import the module that takes calls over."""
    importlib.import_module(_KINDS[library].module)


def function(library: str, name: str) -> Callable[..., Any]:
    """A function of the module that takes calls over, which is imported if necessary."""
    if name not in _KINDS[library].functions:
        load(library)
    return _KINDS[library].functions[name]


def is_of(library: str, given: Any) -> bool:
    """Whether an object is an array of a library, which is not loaded for that."""
    kind = _KINDS[library].type
    return kind is not None and isinstance(given, kind)
