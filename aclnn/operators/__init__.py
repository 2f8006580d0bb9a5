"""The registry of operators.

`REGISTRY` maps functional names, `ENTRIES` maps names of C-shaped functions, `FAMILIES` the names of
this folder's modules to the operators that they declare.  A module whose declarations are wrong is
left out, with a warning, and takes no other along: `BROKEN` says what is wrong with it.
"""

import importlib
import pkgutil
import warnings
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from aclnn.acl.arguments import did_you_mean, shown
from aclnn.operators.declaration import Attribute, Entry, Operator, Parameter, entry

Family = tuple[Operator, ...]


def _declared_in(module: str) -> Family:
    found = vars(importlib.import_module(f"{__name__}.{module}")).values()
    return tuple(value for value in found if isinstance(value, Operator))


def _load() -> tuple[dict[str, Family], dict[str, Exception]]:
    """The families that fit together, and why others do not, by module."""
    families: dict[str, Family] = {}
    broken: dict[str, Exception] = {}
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__)):
        try:
            family = _declared_in(module)
            _refuse_twice(family, families)
        except Exception as error:  # whatever a module raises
            broken[module] = error
            continue
        if family:
            families[module] = family
    while lacking := _without_partner(families):
        broken |= lacking
        families = {module: family for module, family in families.items() if module not in lacking}
    for module, flaw in broken.items():
        warnings.warn(
            f"the operators of {__name__}.{module} are left out: {type(flaw).__name__}: {flaw}",
            RuntimeWarning,
            stacklevel=2,
        )
    return families, broken


def _refuse_twice(family: Family, families: Mapping[str, Family]) -> None:
    """Refuse names that operators declared before have, or others of the same family."""
    owners = {name: one for other in families.values() for one in other for name in _names(one)}
    for operator in family:
        for name in _names(operator):
            if owners.setdefault(name, operator) is not operator:
                raise ValueError(f"{name} is declared twice")


def _names(operator: Operator) -> tuple[str, ...]:
    return tuple(dict.fromkeys((operator.name, *operator.names)))


def _without_partner(families: Mapping[str, Family]) -> dict[str, Exception]:
    """The modules with an operator whose form for a number there is not, and what it is."""
    known = {operator.name for family in families.values() for operator in family}
    return {
        module: ValueError(f"{one.name}: there is no operator {one.number_form[1]}")
        for module, family in families.items()
        for one in family
        if one.number_form is not None and one.number_form[1] not in known
    }


def _each() -> Iterator[Operator]:
    return (operator for family in FAMILIES.values() for operator in family)


_families, _broken = _load()
FAMILIES: Mapping[str, Family] = MappingProxyType(_families)
BROKEN: Mapping[str, Exception] = MappingProxyType(_broken)
REGISTRY: Mapping[str, Operator] = MappingProxyType({one.name: one for one in _each()})
ENTRIES: Mapping[str, tuple[Operator, Entry]] = MappingProxyType(
    {item.name: (operator, item) for operator in _each() for item in operator.entries}
)

__all__ = [
    "BROKEN",
    "ENTRIES",
    "FAMILIES",
    "REGISTRY",
    "Attribute",
    "Entry",
    "Operator",
    "Parameter",
    "entry",
]


def unknown_operator(name: object) -> str:
    """Message for a name that no operator has.

    >>> unknown_operator("aclnnGellu")
    "no operator is called 'aclnnGellu'; did you mean 'aclnnGelu'?"
    """
    known = [name for one in REGISTRY.values() for name in (one.name, *one.names)]
    meant = did_you_mean(name, known) or "; `aclnn ops` lists them"
    return f"no operator is called {shown(name)}{meant}"
