"""Trace events of recorded runs, for Perfetto and Chrome's tracing page."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from aclnn.graph.lower.schedule import Step
from aclnn.graph.runtime.abi import MAX_THREADS
from aclnn.graph.views.text import base_words, dims
from aclnn.reports.times import Run

if TYPE_CHECKING:
    from aclnn.reports.profiling import Profile


def profile_to_trace(profile: Profile) -> str:
    """The trace of runs, as `Profile.to_chrome_trace` describes it."""
    runs = list(profile.runs)
    process = os.getpid()
    callers = {run.caller for run in runs}
    numbers = {caller: index for index, caller in enumerate(sorted(callers))}
    origin = min((run.submitted or run.begin for run in runs), default=0)
    tracks = {(numbers[run.caller], thread) for run in runs for _, thread, _, _ in run.events}
    tracks |= {(numbers[run.caller], 0) for run in runs}
    trace = Trace(process, origin)
    for track in sorted(tracks):
        trace.name(_track(*track), "thread_name", "caller {}, thread {}".format(*track))
    lines = {id(run.plan): _lines_of_steps(run.plan) for run in runs}
    for run in runs:
        trace.add_run(run, numbers[run.caller], lines[id(run.plan)])
    waits = _waits(runs, process, origin)
    counters = _counters(runs, process, origin)
    events = [*trace.events, *waits, *counters]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})


def _track(caller: int, thread: int) -> int:
    """A track for each thread of each caller: runs of two callers may overlap."""
    return MAX_THREADS * caller + thread + 1


class Trace:
    """Events of runs as they are collected; `origin` is the time that counts as zero."""

    def __init__(self, process: int, origin: int):
        self.process, self.origin = process, origin
        self.events: list[dict[str, Any]] = []
        self.arrows = 0
        self.name(0, "process_name", "aclnn")

    def name(self, track: int, what: str, words: str) -> None:
        self._event("M", track, name=what, args={"name": words})

    def add_run(self, run: Run, caller: int, lines: Sequence[str]) -> None:
        """A slice for a run on the track of its caller, slices of its steps, and arrows to them."""
        main = _track(caller, 0)
        facts = {"workspace bytes": run.plan.workspace.size, "steps": len(run.plan.schedule.steps)}
        self._slice(main, run.name, "run", run.begin, run.end, facts)
        begins = {step: begin for step, (begin, _, _) in run.step_spans.items()}
        for step, thread, begin, end in run.events:
            track, planned = _track(caller, thread), run.plan.schedule.steps[step]
            facts = _step_facts(run, step) | ({"source": lines[step]} if lines[step] else {})
            self._slice(track, planned.name, run.name, begin, end, facts)
            if track != main:
                self._arrow(planned.name, main, begins[step], track, begin)

    def _slice(
        self, track: int, name: str, category: str, begin: int, end: int, facts: dict[str, Any]
    ) -> None:
        at = self._time(begin)
        self._event(
            "X", track, name=name, cat=category, ts=at, dur=self._time(end) - at, args=facts
        )

    def _arrow(self, name: str, source: int, begin: int, target: int, end: int) -> None:
        """An arrow from the slice that is open on one track to the one that begins on another."""
        self.arrows += 1
        common: dict[str, Any] = {"id": self.arrows, "name": name, "cat": "step"}
        self._event("s", source, ts=self._time(min(begin, end)), **common)
        self._event("f", target, ts=self._time(end), bp="e", **common)

    def _time(self, at: int) -> float:
        return (at - self.origin) / 1000

    def _event(self, phase: str, track: int, **fields: Any) -> None:
        self.events.append({"ph": phase, "pid": self.process, "tid": track, **fields})


def _lines_of_steps(plan: Any) -> list[str]:
    """The source lines of the nodes of each step, where they are known."""
    graph = getattr(plan, "graph", None)
    origins = {} if graph is None else {node.name: node.origin for node in graph.nodes}
    return [
        "\n".join(dict.fromkeys(" > ".join(origins.get(op.node, ())) for op in step.ops)).strip()
        for step in plan.schedule.steps
    ]


def _step_facts(run: Run, step: int) -> dict[str, Any]:
    planned = run.plan.schedule.steps[step]
    return {
        "operator": run.name,
        "step": step,
        "shape": dims(planned.shape),
        "elements": planned.elements,
        "bytes read": planned.bytes_read,
        "bytes written": planned.bytes_written,
        "kernels": ", ".join(f"{op.node}: {op.kernel}" for op in planned.ops),
    } | _operand_words(run, planned)


def _operand_words(run: Run, step: Step) -> dict[str, str]:
    """A line for each operand: dtype, place, strides, bytes."""
    return {
        f"operand {index} {operand.name}": (
            f"{operand.dtype}, {base_words(run.plan.schedule, operand.base)}+{operand.offset}, "
            f"byte strides {dims(operand.strides)}, {operand.nbytes} bytes"
        )
        for index, operand in enumerate(step.operands)
    }


def _waits(runs: list[Run], process: int, origin: int) -> list[dict[str, Any]]:
    """A pair of events for each run that waited in a queue: several may wait at the same time."""
    return [
        {
            "ph": phase,
            "pid": process,
            "tid": 0,
            "id": index,
            "name": f"{run.name} in the stream's queue",
            "cat": "queue",
            "ts": (at - origin) / 1000,
        }
        for index, run in enumerate(runs)
        if run.submitted is not None
        for phase, at in (("b", run.submitted), ("e", run.begin))
    ]


def _counters(runs: list[Run], process: int, origin: int) -> list[dict[str, Any]]:
    """Bytes of workspace that are alive, whenever that changes."""
    changes: list[tuple[int, int]] = []
    for run in runs:
        live = 0
        for step, (begin, _, _) in run.step_spans.items():
            now = sum(buffer.padded for buffer in run.plan.workspace.live_at(step))
            changes.append((begin, now - live))
            live = now
        changes.append((run.end, -live))
    changes.sort(key=lambda change: change[0])
    totals = accumulate(change for _, change in changes)
    return [
        {
            "ph": "C",
            "pid": process,
            "tid": 0,
            "name": "live workspace bytes",
            "ts": (at - origin) / 1000,
            "args": {"bytes": total},
        }
        for (at, _), total in zip(changes, totals, strict=True)
    ]
