"""Profiles: how long each step of an executor takes, and how near the memory's speed it runs."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from aclnn.acl.arguments import as_int, shown
from aclnn.acl.errors import invalid
from aclnn.graph.abi import MAX_THREADS
from aclnn.graph.planner.plan import WorkspacePlan
from aclnn.graph.schedule import Schedule, Step
from aclnn.graph.views import json as documents
from aclnn.graph.views.tables import Sheet, make, to_rich, to_text
from aclnn.graph.views.text import base_words, dims
from aclnn.planning import _plan

PROFILE = "aclnn.profile/1"
NOTHING = "nothing ran"
PROFILE_SCHEMA = documents.load_schema(Path(__file__).parent / "schemas", "profile")


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step over all its runs; times in nanoseconds, bytes per run.

    `share` is its part of the time of all steps of the profile.
    """

    name: str
    elements: int
    bytes_read: int
    bytes_written: int
    times: tuple[int, ...]
    threads: int
    operator: str = ""
    share: float = 0.0

    @property
    def median(self) -> float:
        return float(median(self.times))

    @property
    def bandwidth(self) -> float:
        """Bytes moved in a nanosecond, which is gigabytes in a second."""
        return (self.bytes_read + self.bytes_written) / max(self.median, 1.0)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its plan, its begin and end, and an event for each step and thread."""

    plan: Any = field(repr=False)
    begin: int
    end: int
    events: tuple[tuple[int, int, int, int], ...]
    caller: int

    @property
    def name(self) -> str:
        return self.plan.operator.name

    @property
    def step_spans(self) -> dict[int, tuple[int, int, int]]:
        """When each step began and ended, over all its threads, and how many these were."""
        rows: dict[int, list[tuple[int, int]]] = {}
        for step, _, begin, end in self.events:
            rows.setdefault(step, []).append((begin, end))
        return {
            step: (min(b for b, _ in spans), max(e for _, e in spans), len(spans))
            for step, spans in sorted(rows.items())
        }

    def facts(self) -> tuple[Any, ...]:
        """Everything that makes two runs the same."""
        plan = self.plan
        return (
            self.name, plan.schedule, plan.workspace, self.begin, self.end, self.events,
            self.caller,
        )  # fmt: skip


class Profile:
    """Recorded runs, and what they add up to; profiles compare by content.

    Attributes
    ----------
    runs : list of Run
        In the order in which they ended.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> seen = aclnn.executor("gelu", np.zeros(4, np.float32)).profile(repeat=5)
    >>> len(seen), [step.name for step in seen.steps]
    (5, ['gelu'])
    >>> print(aclnn.Profile().to_text())
    nothing ran
    """

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def record(self, plan: Any, begin: int, end: int, events: Any) -> None:
        """Add a run that the calling thread has just ended.

        Parameters
        ----------
        plan : Plan
            What ran.
        begin, end : int
            Nanoseconds of the clock of `time.perf_counter_ns`.
        events : iterable of tuple of int
            For each step and thread: number of the step, number of the thread, begin and end.
        """
        self.runs.append(Run(plan, begin, end, tuple(events), threading.get_ident()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Profile):
            return NotImplemented
        return [run.facts() for run in self.runs] == [run.facts() for run in other.runs]

    __hash__ = None  # type: ignore[assignment]  # it fills

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as what its document says: plans hold kernels, which are of a process."""
        return Profile.from_json, (self.to_json(),)

    @property
    def total_ns(self) -> int:
        """Nanoseconds of all runs together."""
        return sum(run.end - run.begin for run in self.runs)

    @property
    def steps(self) -> tuple[StepTime, ...]:
        """Every step of every plan that ran, in order."""
        runs = list(self.runs)  # others may end meanwhile
        times: dict[tuple[int, int], list[int]] = {}
        threads: dict[tuple[int, int], int] = {}
        plans = {id(run.plan): run.plan for run in runs}
        for run in runs:
            for index, (begin, end, count) in run.step_spans.items():
                key = id(run.plan), index
                times.setdefault(key, []).append(end - begin)
                threads[key] = max(threads.get(key, 0), count)
        whole = max(sum(map(sum, times.values())), 1)
        return tuple(
            StepTime(
                name=step.name,
                elements=step.elements,
                bytes_read=step.bytes_read,
                bytes_written=step.bytes_written,
                times=tuple(took),
                threads=threads[plan, index],
                operator=plans[plan].operator.name,
                share=sum(took) / whole,
            )
            for (plan, index), took in times.items()
            for step in [plans[plan].schedule.steps[index]]
        )

    def to_text(self) -> str:
        """A table with a line for each step.

        Returns
        -------
        str
            Elements, runs, threads, median and least time in microseconds, bytes read and written
            in a run, bandwidth in gigabytes per second, and share of the time of all steps.
        """
        return to_text(self._sheet())

    def to_rich(self) -> Any:
        """The table of `to_text` for `rich.print`.

        Returns
        -------
        rich.console.Group

        Raises
        ------
        ModuleNotFoundError
            If rich is not installed; the message says how to.
        """
        return to_rich(self._sheet())

    def _sheet(self) -> Sheet:
        if not self.runs:
            return (NOTHING,)
        rows = [
            (
                step.name,
                f"{step.elements:,}",
                len(step.times),
                step.threads,
                f"{step.median / 1000:.2f}",
                f"{min(step.times) / 1000:.2f}",
                f"{step.bytes_read:,}",
                f"{step.bytes_written:,}",
                f"{step.bandwidth:.1f}",
                f"{step.share:.0%}",
            )
            for step in self.steps
        ]
        headers = (
            "step", "elements", "runs", "threads", "median µs", "least µs", "bytes read",
            "bytes written", "GB/s", "share",
        )  # fmt: skip
        return (make(headers, rows, right=",".join(headers[1:]), accent="step"),)

    def timeline(self, run: int = -1, width: int = 64) -> str:
        """What each thread did in one run, as a line of step numbers.

        Parameters
        ----------
        run : int
            Which run, counted as a list does.
        width : int
            Characters for the whole run; a dot is a stretch without work.

        Returns
        -------
        str
            A line for each thread, and one with the operator's name and the time of the run in
            microseconds; ``nothing ran`` for a profile without runs.

        Raises
        ------
        IndexError
            If there is no such run.
        """
        if not self.runs:
            return NOTHING
        one = self.runs[run]
        took = max(one.end - one.begin, 1)
        lanes: dict[int, list[str]] = {}
        for step, thread, begin, end in one.events:
            lane = lanes.setdefault(thread, ["."] * width)
            first = (begin - one.begin) * width // took
            last = max(first, -(-(end - one.begin) * width // took) - 1)
            for column in range(max(first, 0), min(last, width - 1) + 1):
                lane[column] = _DIGITS[step % len(_DIGITS)]
        rows = [f"thread {thread}  {''.join(lanes[thread])}" for thread in sorted(lanes)]
        return "\n".join([*rows, f"{one.name}, {took / 1000:.2f} µs; digits are steps"])

    def _as_it_is(self) -> Profile:
        """The runs that have ended so far, as a profile that does not fill."""
        still = Profile()
        still.runs = list(self.runs)
        return still

    def to_json(self, indent: int | None = None) -> str:
        """Write the runs that have ended so far as a document, which `from_json` reads.

        Parameters
        ----------
        indent : int, optional
            Spaces for each level; all in one line if not given.

        Returns
        -------
        str
            JSON of the schema `aclnn.reports.profiling.PROFILE_SCHEMA`, with times in nanoseconds.
        """
        return self._as_it_is()._to_json(indent)

    def _to_json(self, indent: int | None) -> str:
        plans = list({id(run.plan): run.plan for run in self.runs}.values())
        places = {id(plan): place for place, plan in enumerate(plans)}
        document = {
            "schema": PROFILE,
            "runs": len(self.runs),
            "total_ns": self.total_ns,
            "steps": [_step_data(step) for step in self.steps],
            "executors": [_plan_data(plan) for plan in plans],
            "recorded": [
                {
                    "executor": places[id(run.plan)],
                    "begin": run.begin,
                    "end": run.end,
                    "caller": run.caller,
                    "events": run.events,
                }
                for run in self.runs
            ],
        }
        return json.dumps(document, indent=indent)

    @staticmethod
    def from_json(text: str) -> Profile:
        """Read a profile that `to_json` wrote.

        Parameters
        ----------
        text : str
            The document.

        Returns
        -------
        Profile
            Equal to the one that was written.

        Raises
        ------
        ValueError
            If the document is of another schema or no JSON; the message names the field that does
            not fit.

        Examples
        --------
        >>> import numpy as np
        >>> import aclnn
        >>> seen = aclnn.executor("gelu", np.zeros(4, np.float32)).profile(repeat=2)
        >>> aclnn.Profile.from_json(seen.to_json()) == seen
        True
        """
        found = documents.read_document(text, _Document, PROFILE_SCHEMA)
        plans = [
            SimpleNamespace(
                operator=SimpleNamespace(name=one.operator),
                schedule=one.schedule,
                workspace=one.plan,
            )
            for one in found.executors
        ]
        made = Profile()
        for place, one in enumerate(found.recorded):
            _check_numbers(one, found.executors, f"recorded[{place}]")
            made.runs.append(Run(plans[one.executor], one.begin, one.end, one.events, one.caller))
        return made

    def to_chrome_trace(self) -> str:
        """Write trace events, which Perfetto and Chrome's tracing page open.

        Returns
        -------
        str
            JSON: a slice for each step and thread, and as a counter the bytes of workspace that
            are alive, over all runs that go on at the same time. Times are in microseconds from
            the beginning of the first run.
        """
        process, runs = os.getpid(), list(self.runs)
        callers = {run.caller for run in runs}
        numbers = {caller: place for place, caller in enumerate(sorted(callers))}
        origin = min((run.begin for run in runs), default=0)
        tracks = {(numbers[run.caller], thread) for run in runs for _, thread, _, _ in run.events}
        named = [_name(process, 0, "process_name", "aclnn")]
        named += [
            _name(process, _track(*track), "thread_name", "caller {}, thread {}".format(*track))
            for track in sorted(tracks)
        ]
        slices = [
            _slice(
                run, step, process, _track(numbers[run.caller], thread), begin - origin, end - begin
            )
            for run in runs
            for step, thread, begin, end in run.events
        ]
        counters = _counters(runs, process, origin)
        return json.dumps({"traceEvents": [*named, *slices, *counters], "displayTimeUnit": "ns"})

    def __str__(self) -> str:
        return self.to_text()

    def __len__(self) -> int:
        return len(self.runs)


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


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
    events: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Document:
    """What a profile is read back from; the rest follows from it."""

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
        "elements": step.elements,
        "bytes_read": step.bytes_read,
        "bytes_written": step.bytes_written,
        "median_ns": step.median,
        "times_ns": step.times,
        "threads": step.threads,
        "gigabytes_per_second": step.bandwidth,
        "share": step.share,
    }


def _plan_data(plan: Any) -> dict[str, Any]:
    return {
        "operator": plan.operator.name,
        "schedule": documents.schedule_data(plan.schedule),
        "plan": documents.plan_data(plan.workspace),
    }


# --- Trace events -----------------------------------------------------------------------------


def _track(caller: int, thread: int) -> int:
    """A track for each thread of each caller: runs of two callers may overlap."""
    return MAX_THREADS * caller + thread + 1


def _name(process: int, track: int, what: str, words: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": track, "name": what, "args": {"name": words}}


def _slice(run: Run, step: int, process: int, track: int, begin: int, took: int) -> dict[str, Any]:
    planned = run.plan.schedule.steps[step]
    return {
        "ph": "X",
        "pid": process,
        "tid": track,
        "name": planned.name,
        "cat": run.name,
        "ts": begin / 1000,
        "dur": took / 1000,
        "args": {
            "operator": run.name,
            "step": step,
            "shape": dims(planned.shape),
            "elements": planned.elements,
            "bytes read": planned.bytes_read,
            "bytes written": planned.bytes_written,
            "kernels": ", ".join(f"{op.node}: {op.kernel}" for op in planned.ops),
        }
        | _operand_words(run, planned),
    }


def _operand_words(run: Run, step: Step) -> dict[str, str]:
    """A line for each operand: dtype, place, strides, bytes."""
    return {
        f"operand {place} {operand.name}": (
            f"{operand.dtype}, {base_words(run.plan.schedule, operand.base)}+{operand.offset}, "
            f"byte strides {dims(operand.strides)}, {operand.nbytes} bytes"
        )
        for place, operand in enumerate(step.operands)
    }


def _counters(runs: list[Run], process: int, origin: int) -> list[dict[str, Any]]:
    """How many bytes of workspace are alive, whenever that changes."""
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


@contextmanager
def profile() -> Iterator[Profile]:
    """Record every run of every executor, on any thread, for the length of a block.

    Yields
    ------
    Profile
        Fills as runs end.

    Notes
    -----
    Outside such blocks, what this costs a run is one comparison of integers.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> with aclnn.profile() as seen:
    ...     _ = aclnn.gelu(np.zeros(4, np.float32))
    >>> [run.name for run in seen.runs]
    ['gelu']
    """
    seen = Profile()
    _plan.add_observer(seen.record)
    try:
        yield seen
    finally:
        _plan.remove_observer(seen.record)


def check_runs(repeat: object, warmup: object) -> None:
    """Raise an AclnnError for numbers of runs that make no sense.

    >>> check_runs(1, 0)
    """
    for name, given, least in (("repeat", repeat, 1), ("warmup", warmup, 0)):
        number = as_int(given)
        if number is None or number < least:
            raise invalid(f"{name} is {shown(given)}, must be an int from {least} on")


def profile_executor(executor: Any, repeat: int = 100, warmup: int = 3) -> Profile:
    """Run an executor `repeat` times after `warmup` runs that do not count.

    Plans are shared: runs of the same one by other threads do not count either.
    """
    for _ in range(warmup):
        executor.run()
    seen = Profile()
    planned, caller = executor.planned, threading.get_ident()

    def record(plan: Any, begin: int, end: int, events: Any) -> None:
        if plan is planned and threading.get_ident() == caller:
            seen.record(plan, begin, end, events)

    _plan.add_observer(record)
    try:
        for _ in range(repeat):
            executor.run()
    finally:
        _plan.remove_observer(record)
    return seen
