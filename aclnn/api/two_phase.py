"""The C-shaped functions, made from the declarations.

For each entry of each operator there are two: ``aclnnXxxGetWorkspaceSize`` and ``aclnnXxx``.
They have CANN's parameter names, so that a wrong number of arguments is a `TypeError` and `help()`
shows the signature.
"""

from __future__ import annotations

from collections.abc import Callable

from aclnn.api import verbose
from aclnn.api._two_phase import EntryHandle, set_call_hook
from aclnn.api.docstrings import phase_one_doc, phase_two_doc
from aclnn.api.handles import HANDLES
from aclnn.operators import ENTRIES


def entry(name: str) -> EntryHandle:
    """The handle of a pair of functions.

    >>> entry("aclnnGelu").name
    'aclnnGelu'
    """
    return HANDLES_BY_ENTRY[name]


HANDLES_BY_ENTRY = {
    name: EntryHandle(HANDLES[operator.name], item, entry)
    for name, (operator, item) in ENTRIES.items()
}


def _make(name: str) -> dict[str, Callable[..., object]]:
    operator, item = ENTRIES[name]
    parameters = ", ".join(parameter.name for parameter in item.parameters)
    plan_doc = f"{name}GetWorkspaceSize({parameters})\n--\n\n{phase_one_doc(operator, item)}"
    run_doc = (
        f"{name}(workspace, workspaceSize, executor, stream)\n--\n\n{phase_two_doc(operator, item)}"
    )
    plan, run = HANDLES_BY_ENTRY[name].functions(__name__, plan_doc, run_doc)
    return {f"{name}GetWorkspaceSize": plan, name: run}


FUNCTIONS = {
    name: function for entry_name in ENTRIES for name, function in _make(entry_name).items()
}
globals().update(FUNCTIONS)
__all__ = list(FUNCTIONS)

set_call_hook(verbose.phase_hook())
