"""Profiles as JSON documents, which read back as equal profiles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from aclnn.acl.dtypes import ITEM_SIZES
from aclnn.graph.constraints import Amount, Count, Share
from aclnn.graph.lower.schedule import Schedule
from aclnn.graph.planner.plan import WorkspacePlan
from aclnn.graph.views import json as documents
from aclnn.graph.views.schema import Document, schema_of
from aclnn.reports.profiling import Profile
from aclnn.reports.times import ExecutorTime, Run, StepTime, by_plan


@dataclass(frozen=True, slots=True)
class _Op:
    """One operator of a loop that runs several.

    Attributes
    ----------
    node : str
        Node of the graph.
    kernel : str
        Name of the kernel.
    estimated_ns : float
        Its part of the step's median, estimated: that which it has of the bytes that the
        operators read and write.
    """

    node: str
    kernel: str
    estimated_ns: Amount


@dataclass(frozen=True, slots=True)
class _Step:
    """One step over all its runs.

    Attributes
    ----------
    operator : str
        Operator of the step.
    name : str
        Name of the step.
    shape : tuple of int
        Shape of its loops.
    dtypes : tuple of str
        Of what it reads, in order, and of the results of its last node.
    elements : int
        Elements of the result.
    bytes_read : int
        Bytes read in a run.
    bytes_written : int
        Bytes written in a run.
    median_ns : float
        Median over the runs.
    times_ns : tuple of int
        Times, run by run.
    threads : int
        Number of threads that took part.
    gigabytes_per_second : float
        Bytes read and written over the median.
    share : float
        Share of the medians of all steps and of the time between them, each as often as it ran.
    extent : tuple of int
        Of a matrix product m, k and n, before them its batch; else empty.
    flops : int
        Multiplications and additions that its kernels count; 0: none counts them.
    ops : tuple of object
        The operators of a loop that runs several; else empty.
    """

    operator: str
    name: str
    shape: tuple[Count, ...]
    dtypes: tuple[str, ...]
    elements: Count
    bytes_read: Count
    bytes_written: Count
    median_ns: Amount
    times_ns: tuple[Count, ...]
    threads: Count
    gigabytes_per_second: Amount
    share: Share
    extent: tuple[Count, ...]
    flops: Count
    ops: tuple[_Op, ...]


@dataclass(frozen=True, slots=True)
class _Total:
    """Whole runs of an executor.

    Attributes
    ----------
    executor : int
        Its place in executors.
    operator : str
        Its name.
    median_ns : float
        Median of whole runs.
    times_ns : tuple of int
        Times, run by run.
    between_median_ns : float
        Median of the time before, between and after the steps.
    between_ns : tuple of int
        That time, run by run.
    between_share : float
        Its share, as that of a step.
    queued_median_ns : float or None
        From phase two to the begin of the run, on streams; null if all ran at once.
    queued_ns : tuple of int
        For the runs that were given to a stream.
    share : float
        Share of its steps and of the time between them.
    """

    executor: Count
    operator: str
    median_ns: Amount
    times_ns: tuple[Count, ...]
    between_median_ns: Amount
    between_ns: tuple[Count, ...]
    between_share: Share
    queued_median_ns: Amount | None
    queued_ns: tuple[Count, ...]
    share: Share


@dataclass(frozen=True, slots=True)
class _Executor:
    """An executor that ran.

    Attributes
    ----------
    operator : str
        Its name.
    schedule : Schedule
        A schedule document.
    plan : WorkspacePlan
        A plan document.
    """

    operator: str
    schedule: Schedule
    plan: WorkspacePlan


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One run.

    Attributes
    ----------
    executor : int
        Its place in executors.
    begin : int
        Begin on the machine's monotonic clock.
    end : int
        End on the same clock.
    caller : int
        The thread that called.
    submitted : int or None
        When phase two gave it to a stream; null for a run that was not.
    events : tuple of tuple
        A step's number, the thread's number, begin and end.
    """

    executor: Count
    begin: Count
    end: Count
    caller: int
    submitted: Count | None
    events: tuple[tuple[Count, Count, Count, Count], ...]


@dataclass(frozen=True, slots=True)
class _Profile:
    """Recorded runs, and what they add up to; times in nanoseconds.

    Attributes
    ----------
    executors : tuple of object
        Each once, by what it does: plans of one description are one.
    recorded : tuple of object
        Run by run, in the order in which they ended.
    """

    executors: tuple[_Executor, ...]
    recorded: tuple[_Recorded, ...]


@dataclass(frozen=True, slots=True)
class _Totals:
    """Part of a profile that follows from its runs.

    Attributes
    ----------
    runs : int
        Number of the runs.
    total_ns : int
        Time of all runs together.
    steps : tuple of object
        What follows from the recorded runs; not needed for reading back.
    totals : tuple of object
        Executor by executor; not needed for reading back either.
    """

    runs: Count
    total_ns: Count
    steps: tuple[_Step, ...]
    totals: tuple[_Total, ...]


PROFILE_DOCUMENT = Document("aclnn.profile/2", "Profile", _Profile, {_Profile: _Totals})
PROFILE_SCHEMA = schema_of(PROFILE_DOCUMENT, documents.EMBEDDED)


def profile_to_json(filling: Profile, indent: int | None) -> str:
    """The document of the runs that have ended so far."""
    profile = filling.as_it_is()
    groups, executors = by_plan(profile.runs), profile.executors
    places = {run.description: index for index, (run, *_) in enumerate(groups)}
    totals = _Totals(
        len(profile.runs),
        profile.total_ns,
        tuple(map(_step, profile.steps)),
        tuple(_total(index, one) for index, one in enumerate(executors)),
    )
    document = {
        "schema": PROFILE_DOCUMENT.name,
        **documents.plain(totals),
        "executors": [_plan_data(run.plan) for run, *_ in groups],
        "recorded": [
            documents.plain(_recorded(places[run.description], run)) for run in profile.runs
        ],
    }
    return json.dumps(document, indent=indent)


def profile_from_json(text: str) -> Profile:
    """The profile of a document; ValueError names the field that does not fit."""
    found = documents.read_document(text, _Profile, PROFILE_SCHEMA)
    for index, executor in enumerate(found.executors):
        _check_dtypes(executor.schedule, f"executors[{index}].schedule")
    plans = [
        SimpleNamespace(
            operator=SimpleNamespace(name=one.operator),
            schedule=one.schedule,
            workspace=one.plan,
        )
        for one in found.executors
    ]
    made = Profile()
    for index, one in enumerate(found.recorded):
        _check_numbers(one, found.executors, f"recorded[{index}]")
        plan = plans[one.executor]
        made.runs.append(Run(plan, one.begin, one.end, one.events, one.caller, one.submitted))
    return made


def _check_dtypes(schedule: Schedule, where: str) -> None:
    """Raise ValueError for a dtype whose size times could not be estimated from."""
    for step in schedule.steps:
        for operand in step.operands:
            if operand.dtype not in ITEM_SIZES:
                raise ValueError(
                    f"{where}: {operand.name} has dtype {operand.dtype!r}, there is none"
                )


def _check_numbers(one: _Recorded, executors: Sequence[_Executor], where: str) -> None:
    """Raise ValueError where a run is of an executor or has a step that there is not."""
    if not 0 <= one.executor < len(executors):
        raise ValueError(f"{where}.executor is {one.executor}, but there are {len(executors)}")
    steps = len(executors[one.executor].schedule.steps)
    for index, (step, *_) in enumerate(one.events):
        if not 0 <= step < steps:
            raise ValueError(f"{where}.events[{index}] is of step {step}, but there are {steps}")


def _step(step: StepTime) -> _Step:
    return _Step(
        operator=step.operator,
        name=step.name,
        shape=step.shape,
        dtypes=step.dtypes,
        elements=step.elements,
        bytes_read=step.bytes_read,
        bytes_written=step.bytes_written,
        median_ns=step.median,
        times_ns=step.times,
        threads=step.threads,
        gigabytes_per_second=step.bandwidth,
        share=step.share,
        extent=step.extent,
        flops=step.flops,
        ops=tuple(_Op(op.node, op.kernel, op.estimated_ns) for op in step.ops),
    )


def _total(index: int, one: ExecutorTime) -> _Total:
    return _Total(
        executor=index,
        operator=one.operator,
        median_ns=one.median,
        times_ns=one.times,
        between_median_ns=one.between_median,
        between_ns=one.between,
        between_share=one.between_share,
        queued_median_ns=one.queued_median,
        queued_ns=one.queued,
        share=one.share,
    )


def _recorded(index: int, run: Run) -> _Recorded:
    return _Recorded(index, run.begin, run.end, run.caller, run.submitted, run.events)


def _plan_data(plan: Any) -> dict[str, Any]:
    return {
        "operator": plan.operator.name,
        "schedule": documents.schedule_data(plan.schedule),
        "plan": documents.plan_data(plan.workspace),
    }
