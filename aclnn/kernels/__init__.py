"""Kernels: bodies in Cython and C, and a record of each.

`records` gives the records by their names; families of them are modules of this folder and those in it.  They are read when
they are first asked for: calls need none, as the build puts what the engine has to know into its tables.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from .record import Record


@cache
def records() -> Mapping[str, Record]:
    """All records, by the names of the kernels, in the order of modules and of the records there.

    >>> records()["softshrink"].parameters
    ('lambd',)
    """
    found: dict[str, Record] = {}
    for module in sorted(one.name for one in pkgutil.walk_packages(__path__, f"{__name__}.")):
        for record in getattr(importlib.import_module(module), "RECORDS", ()):
            if found.setdefault(record.name, record) is not record:
                raise ValueError(f"there are two records of {record.name}")
    return MappingProxyType(found)
