"""The operators, a declaration each.

`REGISTRY` maps functional names, `ENTRIES` maps names of C-shaped functions.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from types import MappingProxyType

from aclnn.operators.declaration import Attribute, Entry, Operator, Parameter, entry

# Every module of this folder that declares operators, by name.
_FAMILIES = [
    importlib.import_module(f"{__name__}.{found.name}")
    for found in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name)
]

REGISTRY: Mapping[str, Operator] = MappingProxyType(
    {
        value.name: value
        for family in _FAMILIES
        for value in vars(family).values()
        if isinstance(value, Operator)
    }
)

ENTRIES: Mapping[str, tuple[Operator, Entry]] = MappingProxyType(
    {item.name: (operator, item) for operator in REGISTRY.values() for item in operator.entries}
)

__all__ = ["ENTRIES", "REGISTRY", "Attribute", "Entry", "Operator", "Parameter", "entry"]
