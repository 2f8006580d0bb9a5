"""The C-shaped functions, made from the declarations.

For each entry of each operator there are two: ``aclnnXxxGetWorkspaceSize`` and ``aclnnXxx``.
They are ordinary functions with CANN's parameter names, so that a wrong number of arguments is a
`TypeError` and `help()` shows the signature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aclnn._executor import EntryHandle
from aclnn.handles import HANDLES
from aclnn.operators import ENTRIES, Entry, Operator
from aclnn.reference import phase_one_doc, phase_two_doc

HANDLES_BY_ENTRY = {
    name: EntryHandle(HANDLES[operator.name], item) for name, (operator, item) in ENTRIES.items()
}


def _phase_one(operator: Operator, item: Entry) -> Callable[..., tuple[int, object, int]]:
    names = ", ".join(parameter.name for parameter in item.parameters)
    source = f"def {item.name}GetWorkspaceSize({names}):\n    return _plan(({names},))\n"
    namespace: dict[str, Any] = {"_plan": HANDLES_BY_ENTRY[item.name].plan, "__name__": __name__}
    exec(compile(source, f"<{item.name}GetWorkspaceSize>", "exec"), namespace)
    function = namespace[f"{item.name}GetWorkspaceSize"]
    function.__doc__ = phase_one_doc(operator, item)
    return function


def _phase_two(operator: Operator, item: Entry) -> Callable[..., int]:
    source = (
        f"def {item.name}(workspace, workspaceSize, executor, stream):\n"
        "    return _run(workspace, workspaceSize, executor, stream)\n"
    )
    namespace: dict[str, Any] = {"_run": HANDLES_BY_ENTRY[item.name].run, "__name__": __name__}
    exec(compile(source, f"<{item.name}>", "exec"), namespace)
    function = namespace[item.name]
    function.__doc__ = phase_two_doc(operator, item)
    return function


FUNCTIONS: dict[str, Callable[..., object]] = {}
for _name, (_operator, _item) in ENTRIES.items():
    FUNCTIONS[f"{_name}GetWorkspaceSize"] = _phase_one(_operator, _item)
    FUNCTIONS[_name] = _phase_two(_operator, _item)
globals().update(FUNCTIONS)
__all__ = list(FUNCTIONS)
