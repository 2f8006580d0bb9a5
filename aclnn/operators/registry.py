"""The operators of a package's modules, which are imported when one of theirs is first looked up.

The build writes an index of the declarations that it has checked (`index.json`): names by module, with the size and
checksum of its source.  A process reads it instead of importing some sixty modules and checking what they declare.
Where a module is new, missing or of another size, everything is imported and checked, as without an index; a module
whose source changed otherwise is checked when it is imported.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import threading
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from aclnn.operators import consistency
from aclnn.operators.declaration import Entry, Operator

INDEX = "index.json"
Family = tuple[Operator, ...]
T = TypeVar("T")


class Names(NamedTuple):
    """The names of an operator: its own, those of its functional forms, of its C-shaped pairs, of ONNX's operators."""

    name: str
    functional: tuple[str, ...]
    entries: tuple[str, ...]
    onnx: tuple[str, ...]


class Registry:
    """The operators of a package, by name and by module.

    Parameters
    ----------
    package : str
    path : sequence of str
        Its folders.
    """

    def __init__(self, package: str, path: Sequence[str]):
        self._package = package
        self._families: dict[str, Family] = {}
        self._loading = threading.RLock()
        self._index = _read_index(path)
        self.broken: dict[str, Exception] = {}
        self.names: dict[str, tuple[Names, ...]] = {}
        if self._index is None:
            self._load(path)
        else:
            self.names = {m: one.operators for m, one in self._index.items() if one.operators}

    def family(self, module: str) -> Family:
        """The operators that a module declares."""
        found = self._families.get(module)
        if found is None:
            with self._loading:
                found = self._families.get(module) or self._imported(module)
                self._families[module] = found
        return found

    def _imported(self, module: str) -> Family:
        loaded = importlib.import_module(f"{self._package}.{module}")
        family = _declared_in(loaded)
        if self._index is None or self._index[module].crc != _checksum(loaded.__file__):
            for operator in family:
                consistency.check(operator)
        return family

    def _load(self, path: Sequence[str]) -> None:
        """Import every module, leave out those whose declarations do not fit together, and say why."""
        for module in sorted(found.name for found in pkgutil.iter_modules(path)):
            try:
                family = self._imported(module)
                _refuse_twice(family, self._families)
            except Exception as error:  # whatever a module raises
                self.broken[module] = error
                continue
            if family:
                self._families[module] = family
        while lacking := _without_partner(self._families):
            self.broken |= lacking
            for module in lacking:
                del self._families[module]
        for module, flaw in self.broken.items():
            warnings.warn(
                f"the operators of {self._package}.{module} are left out: {type(flaw).__name__}: {flaw}",
                RuntimeWarning,
                stacklevel=4,
            )
        self.names = {m: tuple(map(names_of, family)) for m, family in self._families.items()}


class Families(Mapping[str, Family]):
    """Operators by module."""

    def __init__(self, registry: Registry):
        self._registry = registry

    def __getitem__(self, module: str) -> Family:
        if module not in self._registry.names:
            raise KeyError(module)
        return self._registry.family(module)

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry.names)

    def __len__(self) -> int:
        return len(self._registry.names)


class _Members(Mapping[str, T]):
    """Something of operators by name, whose modules are imported when it is asked for."""

    def __init__(self, registry: Registry):
        self._registry = registry
        self._modules = dict(self._named())
        self._found: dict[str, T] = {}

    def _named(self) -> Iterator[tuple[str, str]]:
        raise NotImplementedError

    def _members(self, operator: Operator) -> Iterator[tuple[str, T]]:
        raise NotImplementedError

    def __getitem__(self, name: str) -> T:
        found = self._found.get(name)
        if found is None:
            for operator in self._registry.family(self._modules[name]):
                self._found.update(self._members(operator))
            found = self._found[name]
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


class Operators(_Members[Operator]):
    """Operators by their names."""

    def _named(self) -> Iterator[tuple[str, str]]:
        return ((one.name, m) for m, family in self._registry.names.items() for one in family)

    def _members(self, operator: Operator) -> Iterator[tuple[str, Operator]]:
        yield operator.name, operator


class Entries(_Members[tuple[Operator, Entry]]):
    """C-shaped pairs by CANN's names, each with its operator."""

    def _named(self) -> Iterator[tuple[str, str]]:
        for module, family in self._registry.names.items():
            for one in family:
                yield from ((entry, module) for entry in one.entries)

    def _members(self, operator: Operator) -> Iterator[tuple[str, tuple[Operator, Entry]]]:
        return ((item.name, (operator, item)) for item in operator.entries)


def names_of(operator: Operator) -> Names:
    entries = tuple([item.name for item in operator.entries])
    return Names(operator.name, operator.functional_names, entries, tuple(operator.onnx))


class Indexed(NamedTuple):
    """The index's record of a module."""

    size: int
    crc: int
    operators: tuple[Names, ...]


def index_of(folder: Path, names: Mapping[str, Sequence[Names]]) -> dict[str, Any]:
    """The index of a folder, as JSON has it.

    Parameters
    ----------
    folder : Path
    names : mapping of str to sequence of Names
        Those of the operators of its modules, which were imported and checked.
    """
    return {
        path.stem: Indexed(path.stat().st_size, _checksum(path), tuple(names.get(path.stem, ())))
        for path in sorted(folder.glob("*.py"))
        if path.stem != "__init__"
    }


def _read_index(path: Sequence[str]) -> dict[str, Indexed] | None:
    """The index, None where there is none or it is not that of the modules in these folders."""
    folders = list(path)
    if len(folders) != 1:
        return None
    try:
        with open(os.path.join(folders[0], INDEX), encoding="utf-8") as file:
            read = json.load(file)
        found = {
            module: Indexed(
                size, crc, tuple([Names(n, tuple(f), tuple(e), tuple(o)) for n, f, e, o in names])
            )
            for module, (size, crc, names) in read.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    sizes = {module: one.size for module, one in found.items()}
    return found if sizes == _sizes(folders[0]) else None


def _sizes(folder: str) -> dict[str, int]:
    with os.scandir(folder) as entries:
        return {
            one.name[:-3]: one.stat().st_size
            for one in entries
            if one.name.endswith(".py") and one.name != "__init__.py"
        }


def _checksum(path: str | Path | None) -> int:
    return zlib.crc32(Path(path).read_bytes()) if path is not None else 0


def _declared_in(module: Any) -> Family:
    return tuple(value for value in vars(module).values() if isinstance(value, Operator))


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
