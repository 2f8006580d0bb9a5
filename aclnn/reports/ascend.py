"""Profiles in the layout of Ascend's own profiler, for viewers that read it."""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, pvariance
from typing import TYPE_CHECKING, Any

from aclnn.graph.lower.schedule import SCRATCH, Operand, Step

if TYPE_CHECKING:
    from aclnn.reports.profiling import Profile
    from aclnn.reports.times import Run

ABSENT = "N/A"
TASK_TYPE, KERNEL_TYPE = "AI_CPU", "KERNEL_AICPU"
# ACL's names of the dtypes that have others there.
DTYPES = {"float32": "FLOAT", "bfloat16": "DT_BF16", "float64": "DOUBLE"}
SUMMARY = (
    "Device_id", "Model ID", "Task ID", "Stream ID", "Op Name", "OP Type", "OP State", "Task Type",
    "Task Start Time(us)", "Task Duration(us)", "Task Wait Time(us)", "Block Num", "HF32 Eligible",
    "Mix Block Num", "Input Shapes", "Input Data Types", "Input Formats", "Output Shapes",
    "Output Data Types", "Output Formats", "Context ID", "aiv_time(us)", "aicore_time(us)",
    "total_cycles",
)  # fmt: skip
TASK_TIME = (
    "Device_id", "kernel_name", "kernel_type", "stream_id", "task_id", "task_time(us)",
    "task_start(us)", "task_stop(us)",
)  # fmt: skip
STATISTIC = (
    "Device_id", "Model Name", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)",
    "Avg Time(us)", "Max Time(us)", "Ratio(%)",
)  # fmt: skip
API_STATISTIC = (
    "Device_id", "Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)",
    "Variance",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Task:
    """A step of a run, as the profiler's tables have it; times in nanoseconds."""

    run: Run
    model: int
    stream: int
    number: int
    step: Step
    begin: int
    end: int
    wait: int
    threads: int

    @property
    def type(self) -> str:
        return "+".join(dict.fromkeys([op.kernel for op in self.step.ops]))


def profile_to_ascend(profile: Profile, folder: str | os.PathLike[str]) -> Path:
    """Write a profile as the profiler does: a folder ``PROF_…`` with tables and a timeline.

    Parameters
    ----------
    profile : Profile
        Of which the runs that have ended are written.
    folder : path
        An existing folder to write to.

    Returns
    -------
    Path
        The folder that viewers are given.

    Raises
    ------
    OSError
        If it cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import aclnn
    >>> seen = aclnn.executor("gelu", np.zeros(4, np.float32)).profile(repeat=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = profile_to_ascend(seen, folder)
    ...     sorted(path.name for path in made.iterdir())
    ['device_0', 'host', 'mindstudio_profiler_output']
    """
    stamp = time.strftime("%Y%m%d%H%M%S")  # viewers take digits only, 14 at most
    runs = list(profile.runs)
    tasks = [*_tasks(runs)]
    made = _new_folder(Path(folder), stamp)
    target = made / "mindstudio_profiler_output"
    for each in (made / "host", made / "device_0", target):
        each.mkdir(parents=True)
    _table(target / f"op_summary_{stamp}.csv", SUMMARY, map(_summary, tasks))
    _table(target / f"task_time_{stamp}.csv", TASK_TIME, map(_task_time, tasks))
    _table(target / f"op_statistic_{stamp}.csv", STATISTIC, _statistic(tasks))
    _table(target / f"api_statistic_{stamp}.csv", API_STATISTIC, _api_statistic(runs))
    trace = [*_timeline(runs, tasks)]
    (target / f"msprof_{stamp}.json").write_text(json.dumps(trace), encoding="utf-8")
    return made


def _new_folder(folder: Path, stamp: str) -> Path:
    """A name for the results that is not taken."""
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is no folder")
    number = 1
    while (made := folder / f"PROF_{number:06}_{stamp}_ACLNNCPU").exists():
        number += 1
    return made


def _tasks(runs: Sequence[Run]) -> Iterator[_Task]:
    """Every step of every run, in the order of the runs."""
    models: dict[Any, int] = {}
    streams = _streams(runs)
    number = 0
    for run in runs:
        model = models.setdefault(run.description, len(models) + 1)
        before = run.begin if run.submitted is None else run.submitted
        for index, (begin, end, threads) in run.step_spans.items():
            step = run.plan.schedule.steps[index]
            wait = max(0, begin - before)
            stream = streams[run.caller]
            yield _Task(run, model, stream, number, step, begin, end, wait, threads)
            number, before = number + 1, end


def _streams(runs: Iterable[Run]) -> dict[int, int]:
    """A small number for each thread that ran: that of a stream."""
    return {caller: index for index, caller in enumerate(dict.fromkeys(r.caller for r in runs))}


def _table(path: Path, headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(headers)
        writer.writerows(rows)


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:.3f}"


def _summary(task: _Task) -> tuple[Any, ...]:
    inputs, outputs = _operands(task.step)
    return (
        0, task.model, task.number, task.stream, task.step.name, task.type, "dynamic", TASK_TYPE,
        _us(task.begin), _us(task.end - task.begin), _us(task.wait), task.threads, "NO", 0,
        *_described(task.step, inputs), *_described(task.step, outputs), ABSENT, ABSENT, ABSENT,
        ABSENT,
    )  # fmt: skip


def _operands(step: Step) -> tuple[list[Operand], list[Operand]]:
    """Operands that a step reads and writes outside of its tiles, each once."""
    read: dict[int, None] = {}
    written: dict[int, None] = {}
    for op in step.ops:
        first = len(op.operands) - op.outputs
        read |= dict.fromkeys(op.operands[:first])
        written |= dict.fromkeys(op.operands[first:])
    inputs, outputs = (
        [step.operands[i] for i in places if step.operands[i].base != SCRATCH]
        for places in (read, written)
    )
    return inputs, outputs


def _described(step: Step, operands: Sequence[Operand]) -> tuple[str, str, str]:
    """Shapes, dtypes and formats of operands, as cells of a table."""
    shapes = [",".join(map(str, _shape(step, operand))) for operand in operands]
    return (
        '"' + ";".join(shapes) + '"',
        ";".join([DTYPES.get(operand.dtype, operand.dtype.upper()) for operand in operands]),
        ";".join(["ND"] * len(operands)),
    )


def _shape(step: Step, operand: Operand) -> tuple[int, ...]:
    """The shape that a step walks an operand in, without what it repeats."""
    if step.is_call:
        return operand.shape
    pairs = zip(step.shape, operand.strides, strict=True)
    found = [1 if stride == 0 else size for size, stride in pairs]
    while len(found) > 1 and found[0] == 1:
        del found[0]
    return tuple(found)


def _task_time(task: _Task) -> tuple[Any, ...]:
    return (
        0, task.step.name, KERNEL_TYPE, task.stream, task.number, _us(task.end - task.begin),
        _us(task.begin), _us(task.end),
    )  # fmt: skip


def _statistic(tasks: Sequence[_Task]) -> Iterator[tuple[Any, ...]]:
    """Times by what ran, the longest first."""
    times: dict[str, list[int]] = {}
    for task in tasks:
        times.setdefault(task.type, []).append(task.end - task.begin)
    whole = sum(map(sum, times.values())) or 1
    for name, took in sorted(times.items(), key=lambda item: -sum(item[1])):
        yield (
            0, ABSENT, name, TASK_TYPE, len(took), _us(sum(took)), _us(min(took)), _us(mean(took)),
            _us(max(took)), f"{100 * sum(took) / whole:.3f}",
        )  # fmt: skip


def _api_statistic(runs: Sequence[Run]) -> Iterator[tuple[Any, ...]]:
    times: dict[str, list[int]] = {}
    for run in runs:
        times.setdefault(run.name, []).append(run.end - run.begin)
    for name, took in sorted(times.items(), key=lambda item: -sum(item[1])):
        spread = pvariance([nanoseconds / 1000 for nanoseconds in took])
        yield (
            0, "acl", name, _us(sum(took)), len(took), _us(mean(took)), _us(min(took)),
            _us(max(took)), f"{spread:.3f}",
        )  # fmt: skip


CANN, HARDWARE = 1, 2  # the layers of the timeline, as processes


def _timeline(runs: Sequence[Run], tasks: Sequence[_Task]) -> Iterator[dict[str, Any]]:
    """Trace events: runs as the layer CANN, tasks as the hardware's, and flows from one to the other."""
    streams = _streams(runs)
    for layer, name in ((CANN, "CANN"), (HARDWARE, "Ascend Hardware")):
        yield _meta("process_name", layer, 0, name=name)
        yield _meta("process_sort_index", layer, 0, sort_index=layer)
        for stream in streams.values():
            label = f"Thread {stream}" if layer == CANN else f"Stream {stream}"
            yield _meta("thread_name", layer, stream, name=label)
    for run in runs:
        yield _slice(run.name, CANN, streams[run.caller], run.begin, run.end, {"Level": "acl"})
    seen: set[int] = set()
    for task in tasks:
        args = {
            "Model Id": task.model,
            "Task Type": TASK_TYPE,
            "Stream Id": task.stream,
            "Task Id": task.number,
            "Subtask Id": ABSENT,
            "Aicore Time(ms)": ABSENT,
            "Total Cycle": ABSENT,
        }
        yield _slice(task.step.name, HARDWARE, task.stream, task.begin, task.end, args)
        if id(task.run) not in seen:
            seen.add(id(task.run))
            yield _flow("s", CANN, task, task.run.begin)
            yield _flow("f", HARDWARE, task, task.begin) | {"bp": "e"}


def _meta(what: str, process: int, thread: int, **args: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": args}


def _slice(
    name: str, process: int, thread: int, begin: int, end: int, args: dict[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": _us(begin),
        "dur": (end - begin) / 1000,
        "args": args,
    }


def _flow(phase: str, process: int, task: _Task, at: int) -> dict[str, Any]:
    return {
        "name": "HostToDevice",
        "cat": "HostToDevice",
        "ph": phase,
        "id": str(task.number),
        "pid": process,
        "tid": task.stream,
        "ts": _us(at),
    }
