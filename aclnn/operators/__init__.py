"""The operators, a declaration each.

`REGISTRY` maps functional names, `ENTRIES` maps names of C-shaped functions, `FAMILIES` the names of
this folder's modules to the operators that they declare.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from aclnn.operators.declaration import Attribute, Entry, Operator, Parameter, entry


def _declared_in(module: str) -> tuple[Operator, ...]:
    found = vars(importlib.import_module(f"{__name__}.{module}")).values()
    return tuple(value for value in found if isinstance(value, Operator))


_MODULES = sorted(found.name for found in pkgutil.iter_modules(__path__))

FAMILIES: Mapping[str, tuple[Operator, ...]] = MappingProxyType(
    {module: family for module in _MODULES if (family := _declared_in(module))}
)

REGISTRY: Mapping[str, Operator] = MappingProxyType(
    {operator.name: operator for family in FAMILIES.values() for operator in family}
)

ENTRIES: Mapping[str, tuple[Operator, Entry]] = MappingProxyType(
    {item.name: (operator, item) for operator in REGISTRY.values() for item in operator.entries}
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
