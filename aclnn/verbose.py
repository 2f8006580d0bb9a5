"""``ACLNN_VERBOSE``: one line per call, for reading, searching and comparing.

``ACLNN_VERBOSE=1`` prints a line for every phase one of the C-shaped layer and for every run;
``ACLNN_VERBOSE=2`` adds the workspace plan of every phase one. Fields are separated by commas that
no field contains outside brackets: marker, what, operator, operands, workspace, microseconds.
"""

from __future__ import annotations

import os
from typing import Any

from aclnn import _plan, dtypes
from aclnn.constants import ACLNN_ERR_PARAM_INVALID
from aclnn.describe import Description
from aclnn.errors import AclnnError

MARKER = "aclnn_verbose"


def start() -> None:
    """Do what the environment says; called when the first plan's module is loaded."""
    level = os.environ.get("ACLNN_VERBOSE", "") or "0"
    if level not in ("0", "1", "2"):
        raise AclnnError(ACLNN_ERR_PARAM_INVALID, f"ACLNN_VERBOSE is {level!r}, must be 0, 1 or 2")
    if level == "0":
        return
    from aclnn import _executor

    _plan.add_observer(_ran)
    _executor.set_verbose(lambda what, executor: _planned(executor, plans=level == "2"))


def _planned(executor: Any, *, plans: bool) -> None:
    plan = executor.planned
    print(f"{MARKER},plan,{executor.origin},{operands(plan)},workspace:{plan.workspace_size},-")
    if plans:
        print(plan.workspace.to_text())


def _ran(plan: Any, begin: int, end: int, events: Any) -> None:
    took = (end - begin) / 1000
    print(
        f"{MARKER},run,{plan.operator.name},{operands(plan)},workspace:{plan.workspace_size},{took:.2f}",
        flush=True,
    )


def operands(plan: Any) -> str:
    """The operands in words, such as ``self:float32[4] out:float32[4]``."""
    tensors = plan.call.tensors
    words = [
        f"{role}:{Description(dtypes.name(spec.dtype), spec.shape, spec.strides)}"
        for role, spec in tensors.items()
    ]
    if "out" not in tensors:
        words.append(f"out:{plan.graph.value(plan.graph.outputs[0])}")
    return " ".join(words)
