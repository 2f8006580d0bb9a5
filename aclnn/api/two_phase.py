"""The C-shaped functions, made from the declarations.

Each entry of an operator is a pair: ``aclnnXxxGetWorkspaceSize`` and ``aclnnXxx``.  They have CANN's
parameter names, so a wrong number of arguments is a `TypeError` and `help()` shows the signature.  A
pair is created when one of the two is first looked up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping

from aclnn.api import verbose
from aclnn.api._two_phase import EntryHandle, set_call_hook
from aclnn.api.docstrings import phase_one_doc, phase_two_doc
from aclnn.api.handles import HANDLES
from aclnn.operators import ENTRIES


def entry(name: str) -> EntryHandle:
    """The handle of a pair of functions, once these have been made.

    >>> entry("aclnnGelu").name
    'aclnnGelu'
    """
    __getattr__(name)
    return HANDLES_BY_ENTRY[name]


class EntryHandles(Mapping[str, EntryHandle]):
    """Handles of pairs by CANN's names, each made when it is first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, EntryHandle] = {}

    def __getitem__(self, name: str) -> EntryHandle:
        found = self._made.get(name)
        if found is None:
            operator, item = ENTRIES[name]
            made = EntryHandle(HANDLES[operator.name], item, entry)
            found = self._made.setdefault(name, made)
        return found

    def __contains__(self, name: object) -> bool:
        return name in ENTRIES

    def __iter__(self) -> Iterator[str]:
        return iter(ENTRIES)

    def __len__(self) -> int:
        return len(ENTRIES)


HANDLES_BY_ENTRY = EntryHandles()


def _make(name: str) -> dict[str, Callable[..., object]]:
    operator, item = ENTRIES[name]
    parameters = ", ".join(parameter.name for parameter in item.parameters)
    plan_doc = f"{name}GetWorkspaceSize({parameters})\n--\n\n{phase_one_doc(operator, item)}"
    run_doc = (
        f"{name}(workspace, workspaceSize, executor, stream)\n--\n\n{phase_two_doc(operator, item)}"
    )
    plan, run = HANDLES_BY_ENTRY[name].functions(__name__, plan_doc, run_doc)
    return {f"{name}GetWorkspaceSize": plan, name: run}


__all__ = [function for name in ENTRIES for function in (f"{name}GetWorkspaceSize", name)]
_PUBLIC = frozenset(__all__)
_FUNCTIONS: dict[str, Callable[..., object]] = {}
_MAKING = threading.Lock()  # a handle has one pair, which keeps its texts


def __getattr__(name: str) -> Callable[..., object]:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _MAKING:
        if name not in _FUNCTIONS:
            _FUNCTIONS.update(_make(name.removesuffix("GetWorkspaceSize")))
    return _FUNCTIONS[name]


verbose.follow(set_call_hook)
