"""The registry of operators.

`REGISTRY` maps functional names, `ENTRIES` maps names of C-shaped functions, `FAMILIES` the names of
this folder's modules to the operators that they declare.  A module whose declarations are wrong is
left out, with a warning, and takes no other along: `BROKEN` says what is wrong with it.
"""

import importlib
from collections.abc import Mapping
from types import ModuleType

from aclnn.acl.arguments import did_you_mean, shown
from aclnn.operators.declaration import Attribute, Entry, Operator, Parameter, entry
from aclnn.operators.registry import Entries, Families, Family, Names, Operators, Registry

_registry = Registry(__name__, __path__)
FAMILIES: Mapping[str, Family] = Families(_registry)
BROKEN: Mapping[str, Exception] = _registry.broken
REGISTRY: Mapping[str, Operator] = Operators(_registry)
ENTRIES: Mapping[str, tuple[Operator, Entry]] = Entries(_registry)
NAMES = tuple([one for family in _registry.names.values() for one in family])


def __getattr__(name: str) -> ModuleType:
    """A module with declarations, imported when it is first asked for."""
    if name not in _registry.names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def names_by_module() -> Mapping[str, tuple[Names, ...]]:
    """The names of all operators by the modules that declare them, which need not be imported."""
    return _registry.names


__all__ = [
    "BROKEN",
    "ENTRIES",
    "FAMILIES",
    "NAMES",
    "REGISTRY",
    "Attribute",
    "Entry",
    "Operator",
    "Parameter",
    "entry",
]


def functional_owner(operator: Operator) -> Operator:
    """The operator whose functional form makes an operator's calls: its own, or that of which it is a variant.

    >>> functional_owner(REGISTRY["adds"]).name, functional_owner(REGISTRY["gelu"]).name
    ('add', 'gelu')
    """
    if operator.form_of:
        return REGISTRY[operator.form_of]
    owners = (o for o in REGISTRY.values() if o.number_form and o.number_form[1] == operator.name)
    return operator if operator.functional else next(owners)


def unknown_operator(name: object) -> str:
    """Message for a name that no operator has.

    >>> unknown_operator("aclnnGellu")
    "no operator is called 'aclnnGellu'; did you mean 'aclnnGelu'?"
    """
    known = [
        name
        for family in _registry.names.values()
        for one in family
        for name in (one.name, *one.functional, *one.entries)
    ]
    meant = did_you_mean(name, known) or "; `aclnn ops` lists them"
    return f"no operator is called {shown(name)}{meant}"
