"""The log of calls that ``ACLNN_VERBOSE`` and `set_verbose` enable: one line per call.

``ACLNN_VERBOSE=1`` writes a line for every phase one and every phase two of the C-shaped layer, and
for the runs of the other layers; ``ACLNN_VERBOSE=2`` adds the workspace plan of every phase one.
Lines go to standard error, or to the logger ``aclnn`` (``ACLNN_VERBOSE_TO=logger``), never to standard
output, which is the program's own: calls that failed are warnings there, plans are for debugging, all
other lines are information. The fields are separated by commas, which are nowhere else but in brackets:

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

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aclnn import environment
from aclnn.acl import dtypes
from aclnn.acl._frames import boundary
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.errors import invalid, wrong_kind
from aclnn.api.tensor_text import Description
from aclnn.compiler import _compiled_call

MARKER = "aclnn_verbose"
LOGGER = "aclnn"

Hook = Callable[[str, str, Any, int, int], None]

_level: int | None = None  # not chosen yet
_logger: logging.Logger | None = None
_followers: list[Callable[[Hook | None], None]] = []


def start() -> None:
    """Do as the environment says, unless the program said otherwise before; called when the operators'
    handles are made, which all layers share."""
    if _level is not None:
        return
    to_logger = environment.VERBOSE_TO.read() == "logger"
    _switch(environment.VERBOSE.read(), logging.getLogger(LOGGER) if to_logger else None)


@boundary
def set_verbose(level: int, *, logger: logging.Logger | str | None = None) -> None:
    """Choose which calls write a line to the log from now on, and where.

    Parameters
    ----------
    level : {0, 1, 2}
        0 for no lines, 1 for a line for every call, 2 for the plan of every phase one too.
    logger : logging.Logger or str, optional
        Where lines go, such as ``logging.getLogger("aclnn")``; standard error by default. Calls
        that failed are logged as warnings, plans for debugging, all else as information.

    Raises
    ------
    AclnnError
        If there is no such level, or `logger` is no logger.

    Examples
    --------
    >>> import logging
    >>> import aclnn
    >>> aclnn.set_verbose(1, logger=logging.getLogger("aclnn"))
    >>> aclnn.set_verbose(0)
    """
    number = as_int(level)
    if number not in (0, 1, 2):
        raise invalid(f"level is {shown(level)}, must be 0, 1 or 2")
    if isinstance(logger, str):
        logger = logging.getLogger(logger)
    if logger is not None and not isinstance(logger, logging.Logger | logging.LoggerAdapter):
        raise wrong_kind(f"logger is {shown(logger)}, must be a logging.Logger or its name")
    _switch(number, logger)


def _switch(level: int, logger: logging.Logger | None) -> None:
    global _level, _logger
    _compiled_call.remove_observer(_ran)
    _level, _logger = level, logger
    if level:
        _compiled_call.add_observer(_ran)
    for set_hook in _followers:
        set_hook(_called if level else None)


def follow(set_hook: Callable[[Hook | None], None]) -> None:
    """Have `set_hook` be given what is to be called after both phases, now and whenever that changes:
    None where no lines are wanted."""
    _followers.append(set_hook)
    set_hook(_called if _level else None)


def _called(what: str, name: str, executor: Any, took: int, status: int) -> None:
    if what == "plan":
        _planned(name, executor, took, status, plans=_level == 2)
    elif status or not executor.schedule.steps:  # runs that happen are seen when they end
        _line(f"run:{status}" if status else "run", name, "-", "-", "-", 0)


def _line(*fields: Any) -> None:
    *words, took = fields
    failed = ":" in words[0]
    line = ",".join([MARKER, *words, f"{took / 1000:.2f}"])
    _write(line, logging.WARNING if failed else logging.INFO)


def _write(text: str, severity: int) -> None:
    """Write lines; that they cannot be written must not make a call fail."""
    with suppress(Exception):  # of standard error, and whatever handlers of logs raise
        if _logger is not None:
            _logger.log(severity, "%s", text)
        elif sys.stderr is not None:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


def _planned(name: str, executor: Any, took: int, status: int, *, plans: bool) -> None:
    if executor is None:
        _line(f"plan:{status}", name, "-", "-", "-", took)
        return
    plan = executor.planned
    _line("plan", name, operands(plan), f"workspace:{plan.workspace_size}", "-", took)
    if plans:
        _write(plan.workspace.to_text(), logging.DEBUG)


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
