"""A model's tasks as a trace that browsers' trace viewers open."""

# ruff: noqa: N803  (CANN's spelling)

from __future__ import annotations

import json
import os
from typing import Any

from aclnn.acl import capture as captures
from aclnn.acl import files
from aclnn.acl import model_ri as models
from aclnn.acl.arguments import shown
from aclnn.acl.checks import bad_member
from aclnn.acl.constants import ACL_ERROR_RT_PARAM_INVALID, ACL_SUCCESS, aclmdlRIDebugJsonFlag
from aclnn.acl.errors import fail

OK = int(ACL_SUCCESS)
VERBOSE = aclmdlRIDebugJsonFlag.ACL_MDLRI_DEBUG_JSON_PRINT_VERBOSE

__all__ = [
    "aclmdlRIDebugJsonPrint",
]


def aclmdlRIDebugJsonPrint(modelRI: Any, path: str, flags: int) -> int:
    """Write a model's tasks as a trace that browsers' trace viewers open.

    Parameters
    ----------
    modelRI : aclmdlRI
    path : str
        The file; its folder must exist.
    flags : aclmdlRIDebugJsonFlag
        ACL_MDLRI_DEBUG_JSON_PRINT_SUMMARY (0), or ..._VERBOSE (1), which adds each call's
        addresses, shapes and numbers.

    Returns
    -------
    int
        ACL_SUCCESS (0); ACL_ERROR_RT_PARAM_INVALID (107000) for other flags, and for a path that
        cannot be written; ACL_ERROR_RT_MODEL_CAPTURED (107026) before the capture has ended;
        ACL_ERROR_RT_INVALID_HANDLE (107017) for an invalid or destroyed model.

    Notes
    -----
    Times are made up, as CANN's are: the order is what counts.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import aclnn
    >>> stream, _ = aclnn.aclrtCreateStream()
    >>> event, _ = aclnn.aclrtCreateEvent()
    >>> aclnn.aclmdlRICaptureBegin(stream, aclnn.ACL_MODEL_RI_CAPTURE_MODE_GLOBAL)
    0
    >>> aclnn.aclrtRecordEvent(event, stream)
    0
    >>> model, _ = aclnn.aclmdlRICaptureEnd(stream)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.json"
    ...     status = aclnn.aclmdlRIDebugJsonPrint(model, str(path), 0)
    ...     trace = json.loads(path.read_text())
    >>> status, trace[0]["ph"], trace[0]["args"]["Task Type"]
    (0, 'X', 'EVENT_RECORD')
    >>> aclnn.aclmdlRIDestroy(model), aclnn.aclrtDestroyStream(stream)
    (0, 0)
    """
    function = "aclmdlRIDebugJsonPrint"
    if status := models.bad_model(function, modelRI) or bad_member(
        function, "flags", flags, aclmdlRIDebugJsonFlag
    ):
        return status
    trace = _trace(modelRI, verbose=flags == VERBOSE)
    try:
        files.write(os.fsdecode(path), json.dumps(trace, indent=1))
    except (OSError, TypeError, ValueError) as error:
        return fail(
            ACL_ERROR_RT_PARAM_INVALID, f"{function}: path {shown(path)} cannot be written: {error}"
        )
    return OK


# Microseconds from the begin of a task to that of the next, of which it takes all but a half.
_STEPS = {captures.RECORD: 5.0, captures.WAIT: 15.0}
_OTHER_STEP = 10.0


def _trace(model: models.aclmdlRI, *, verbose: bool) -> list[dict[str, Any]]:
    """Chrome's trace events, one for each task; a wait begins behind the record that it waits for."""
    ends: dict[int, float] = {}
    begins: dict[int, float] = {}  # of the next task of each stream
    trace = []
    for task in models.replay_of(model, "aclmdlRIDebugJsonPrint").tasks:
        step = _STEPS.get(task.kind, _OTHER_STEP)
        begin = max([begins.get(task.stream, 0.0), *[ends[number] + 0.5 for number in task.after]])
        begins[task.stream], ends[task.number] = begin + step, begin + step - 0.5
        trace.append(
            {
                "name": task.name if task.event is None else f"{task.kind}_{task.event}",
                "pid": f"{os.getpid()} aclGraph",
                "tid": f"stream{task.stream}",
                "ts": begin,
                "dur": step - 0.5,
                "ph": "X",
                "args": _trace_args(model, task, verbose=verbose),
            }
        )
    return trace


def _trace_args(model: models.aclmdlRI, task: captures.Task, *, verbose: bool) -> dict[str, Any]:
    args = {
        "Model Id": model.number,
        "Stream Id": task.stream,
        "Task Id": task.number,
        "Task Type": task.kind,
    }
    args["ExtendInfo"] = f"{model.name} {task.place}".lstrip()
    if verbose and task.job is not None:
        text = task.frozen()
        args |= {"Kernel Args": text, "Kernel Args Size": len(text)}
    return args
