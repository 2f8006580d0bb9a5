"""Profiles as JSON documents, which read back as equal profiles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from aclnn.graph.lower.schedule import Schedule
from aclnn.graph.planner.plan import WorkspacePlan
from aclnn.graph.views import json as documents
from aclnn.reports.times import ExecutorTime, Run, StepTime, by_plan

if TYPE_CHECKING:
    from aclnn.reports.profiling import Profile

PROFILE = "aclnn.profile/2"
PROFILE_SCHEMA = documents.load_schema(Path(__file__).parent / "schemas", "profile")


def to_json(profile: Profile, indent: int | None) -> str:
    """The document of a profile that does not fill any more."""
    groups, executors = by_plan(profile.runs), profile.executors
    places = {run.description: place for place, (run, *_) in enumerate(groups)}
    document = {
        "schema": PROFILE,
        "runs": len(profile.runs),
        "total_ns": profile.total_ns,
        "steps": [_step_data(step) for step in profile.steps],
        "totals": [_total_data(place, one) for place, one in enumerate(executors)],
        "executors": [_plan_data(run.plan) for run, *_ in groups],
        "recorded": [
            {
                "executor": places[run.description],
                "begin": run.begin,
                "end": run.end,
                "caller": run.caller,
                "submitted": run.submitted,
                "events": run.events,
            }
            for run in profile.runs
        ],
    }
    return json.dumps(document, indent=indent)


def runs_of(text: str) -> list[Run]:
    """The runs in a document; ValueError names the field that does not fit."""
    found = documents.read_document(text, _Document, PROFILE_SCHEMA)
    plans = [
        SimpleNamespace(
            operator=SimpleNamespace(name=one.operator),
            schedule=one.schedule,
            workspace=one.plan,
        )
        for one in found.executors
    ]
    made: list[Run] = []
    for place, one in enumerate(found.recorded):
        _check_numbers(one, found.executors, f"recorded[{place}]")
        plan = plans[one.executor]
        made.append(Run(plan, one.begin, one.end, one.events, one.caller, one.submitted))
    return made


@dataclass(frozen=True, slots=True)
class _Executor:
    operator: str
    schedule: Schedule
    plan: WorkspacePlan


@dataclass(frozen=True, slots=True)
class _Recorded:
    executor: int
    begin: int
    end: int
    caller: int
    submitted: int | None
    events: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Document:
    """Fields that a profile is read back from; the rest follows from it."""

    executors: tuple[_Executor, ...]
    recorded: tuple[_Recorded, ...]


def _check_numbers(one: _Recorded, executors: Sequence[_Executor], where: str) -> None:
    """Raise ValueError where a run is of an executor or has a step that there is not."""
    if not 0 <= one.executor < len(executors):
        raise ValueError(f"{where}.executor is {one.executor}, but there are {len(executors)}")
    steps = len(executors[one.executor].schedule.steps)
    for place, (step, *_) in enumerate(one.events):
        if not 0 <= step < steps:
            raise ValueError(f"{where}.events[{place}] is of step {step}, but there are {steps}")


def _step_data(step: StepTime) -> dict[str, Any]:
    return {
        "operator": step.operator,
        "name": step.name,
        "shape": step.shape,
        "dtypes": step.dtypes,
        "elements": step.elements,
        "bytes_read": step.bytes_read,
        "bytes_written": step.bytes_written,
        "median_ns": step.median,
        "times_ns": step.times,
        "threads": step.threads,
        "gigabytes_per_second": step.bandwidth,
        "share": step.share,
        "extent": step.extent,
        "flops": step.flops,
        "ops": [
            {"node": op.node, "kernel": op.kernel, "estimated_ns": op.estimated_ns}
            for op in step.ops
        ],
    }


def _total_data(place: int, one: ExecutorTime) -> dict[str, Any]:
    return {
        "executor": place,
        "operator": one.operator,
        "median_ns": one.median,
        "times_ns": one.times,
        "between_median_ns": one.between_median,
        "between_ns": one.between,
        "between_share": one.between_share,
        "queued_median_ns": one.queued_median,
        "queued_ns": one.queued,
        "share": one.share,
    }


def _plan_data(plan: Any) -> dict[str, Any]:
    return {
        "operator": plan.operator.name,
        "schedule": documents.schedule_data(plan.schedule),
        "plan": documents.plan_data(plan.workspace),
    }
