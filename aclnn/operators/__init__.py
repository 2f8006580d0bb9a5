"""The registry of operators.

`REGISTRY` maps functional names, `ENTRIES` maps names of C-shaped functions, `FAMILIES` the names of
this folder's modules to the operators that they declare.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from aclnn.operators.declaration import Attribute, Entry, Operator, Parameter, entry

Declared = TypeVar("Declared")


def _declared_in(module: str) -> tuple[Operator, ...]:
    found = vars(importlib.import_module(f"{__name__}.{module}")).values()
    return tuple(value for value in found if isinstance(value, Operator))


_MODULES = sorted(found.name for found in pkgutil.iter_modules(__path__))

FAMILIES: Mapping[str, tuple[Operator, ...]] = MappingProxyType(
    {module: family for module in _MODULES if (family := _declared_in(module))}
)


def _by_name(pairs: Iterable[tuple[str, Declared]]) -> Mapping[str, Declared]:
    found: dict[str, Declared] = {}
    for name, declared in pairs:
        if found.setdefault(name, declared) is not declared:
            raise ValueError(f"{name} is declared twice")
    return MappingProxyType(found)


REGISTRY: Mapping[str, Operator] = _by_name(
    (operator.name, operator) for family in FAMILIES.values() for operator in family
)

ENTRIES: Mapping[str, tuple[Operator, Entry]] = _by_name(
    (item.name, (operator, item)) for operator in REGISTRY.values() for item in operator.entries
)

__all__ = [
    "ENTRIES",
    "FAMILIES",
    "REGISTRY",
    "Attribute",
    "Entry",
    "Operator",
    "Parameter",
    "entry",
]
