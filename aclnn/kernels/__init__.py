"""Kernels: bodies in Cython and C, and a record of each.

`records` gives the records by their names; families of them are modules of this folder and those in it, beside the
sources of what is compiled. They are read when they are first asked for: calls need none, as the build puts what the
engine has to know into its tables.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .record import Record


@cache
def records() -> Mapping[str, Record]:
    """All records, by the names of the kernels, in the order of modules and of the records there.

    >>> records()["softshrink"].parameters
    ('lambd',)
    """
    found: dict[str, Record] = {}
    every = [one.name for one in pkgutil.walk_packages(__path__, f"{__name__}.")]
    for module in sorted(one for one in every if "._" not in one):  # not what is compiled
        for record in getattr(importlib.import_module(module), "RECORDS", ()):
            if found.setdefault(record.name, record) is not record:
                raise ValueError(f"there are two records of {record.name}")
    return MappingProxyType(found)
