"""The operators, a declaration each.

`REGISTRY` maps functional names, `ENTRIES` maps names of C-shaped functions.
"""

from collections.abc import Mapping
from types import MappingProxyType

from aclnn.operators import elu, gelu, hardshrink, leaky_relu, logit
from aclnn.operators.declaration import Attribute, Entry, Operator, Parameter, entry

_FAMILIES = (elu, leaky_relu, hardshrink, gelu, logit)

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
