"""The log of calls that ``ACLNN_VERBOSE`` enables: one line per call.

``ACLNN_VERBOSE=1`` prints a line for every phase one and every phase two of the C-shaped layer, and
for the runs of the other layers; ``ACLNN_VERBOSE=2`` adds the workspace plan of every phase one.
The fields are separated by commas, which are nowhere else but in brackets:

1. the marker ``aclnn_verbose``;
2. ``plan`` (phase one) or ``run`` (phase two), with ``:STATUS`` where the call failed;
3. the function of phase one, the operator of a run;
4. the operands, such as ``self:float32[2,3] out:float32[2,3]``;
5. the workspace in bytes;
6. for a run the number of steps and threads;
7. microseconds.

The line of a run is printed when it is done, so on a stream later than the call of phase two.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from aclnn import environment
from aclnn.acl import dtypes
from aclnn.api.tensor_text import Description
from aclnn.compiler import _compiled_call

MARKER = "aclnn_verbose"


@cache  # the layers begin at different times, and are told the same
def level() -> int:
    """What the environment said when it was first asked: 0 for no lines, 2 for plans too."""
    return environment.VERBOSE.read()


def start() -> None:
    """Print a line for every run from now on, if lines are wanted; called when the operators' handles
    are made, which all layers share."""
    if level():
        _compiled_call.add_observer(_ran)


def phase_hook() -> Callable[[str, str, Any, int, int], None] | None:
    """What prints the lines of both phases, to be called after them; None if none are wanted."""
    return _called if level() else None


def _called(what: str, name: str, executor: Any, took: int, status: int) -> None:
    if what == "plan":
        _planned(name, executor, took, status, plans=level() == 2)
    elif status or not executor.schedule.steps:  # runs that happen are seen when they end
        _line(f"run:{status}" if status else "run", name, "-", "-", "-", 0)


def _line(*fields: Any) -> None:
    *words, took = fields
    _print(",".join([MARKER, *words, f"{took / 1000:.2f}"]))


def _print(text: str) -> None:
    """Print a line; that it cannot be written must not make a call fail."""
    with suppress(OSError, ValueError):
        print(text, flush=True)


def _planned(name: str, executor: Any, took: int, status: int, *, plans: bool) -> None:
    if executor is None:
        _line(f"plan:{status}", name, "-", "-", "-", took)
        return
    plan = executor.planned
    _line("plan", name, operands(plan), f"workspace:{plan.workspace_size}", "-", took)
    if plans:
        _print(plan.workspace.to_text())


def _ran(plan: Any, begin: int, end: int, events: Any, submitted: int | None) -> None:
    threads = len({thread for _, thread, _, _ in events})
    work = f"steps:{len(plan.schedule.steps)} threads:{threads}"
    memory = f"workspace:{plan.workspace_size}"
    _line("run", plan.operator.name, operands(plan), memory, work, end - begin)


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
