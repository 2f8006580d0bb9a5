"""Profiles: how long each step of an executor takes, and how near the memory's speed it runs."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from aclnn import _plan
from aclnn.graph.views.text import table


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step over all its runs; times in nanoseconds, bytes per run."""

    name: str
    elements: int
    bytes_read: int
    bytes_written: int
    times: tuple[int, ...]
    threads: int

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


class Profile:
    """Recorded runs, and what they add up to.

    Attributes
    ----------
    runs : list of Run
        In the order in which they ended.
    """

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def record(self, plan: Any, begin: int, end: int, events: Any) -> None:
        self.runs.append(Run(plan, begin, end, tuple(events), threading.get_ident()))

    @property
    def total_ns(self) -> int:
        """Nanoseconds of all runs together."""
        return sum(run.end - run.begin for run in self.runs)

    @property
    def steps(self) -> tuple[StepTime, ...]:
        """Every step of every plan that ran, in order."""
        times: dict[tuple[int, int], list[int]] = {}
        threads: dict[tuple[int, int], int] = {}
        plans = {id(run.plan): run.plan for run in self.runs}
        for run in self.runs:
            for index in range(len(run.plan.schedule.steps)):
                rows = [event for event in run.events if event[0] == index]
                if rows:
                    key = id(run.plan), index
                    took = max(row[3] for row in rows) - min(row[2] for row in rows)
                    times.setdefault(key, []).append(took)
                    threads[key] = max(threads.get(key, 0), len(rows))
        return tuple(
            StepTime(
                step.name,
                step.elements,
                step.bytes_read,
                step.bytes_written,
                tuple(times[plan, index]),
                threads[plan, index],
            )
            for (plan, index) in times
            for step in [plans[plan].schedule.steps[index]]
        )

    def to_text(self) -> str:
        """A line for each step: median time, bytes, bandwidth, share of the total."""
        steps = self.steps
        if not steps:
            return "nothing ran"
        whole = sum(sum(step.times) for step in steps)
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
                f"{100 * sum(step.times) / max(whole, 1):.0f} %",
            )
            for step in steps
        ]
        headers = (
            "step", "elements", "runs", "threads", "median µs", "least µs", "bytes read",
            "bytes written", "GB/s", "share",
        )  # fmt: skip
        return table(headers, rows)

    def to_json(self, indent: int | None = None) -> str:
        """The steps as data; times in nanoseconds."""
        rows = [
            {
                "name": step.name,
                "elements": step.elements,
                "bytes_read": step.bytes_read,
                "bytes_written": step.bytes_written,
                "median_ns": step.median,
                "times_ns": list(step.times),
                "threads": step.threads,
                "gigabytes_per_second": step.bandwidth,
            }
            for step in self.steps
        ]
        return json.dumps(
            {"runs": len(self.runs), "total_ns": self.total_ns, "steps": rows}, indent=indent
        )

    def to_chrome_trace(self) -> str:
        """Trace events that Perfetto opens.

        A slice for each step and thread, and the workspace's live bytes as a counter.
        """
        process = os.getpid()
        callers = {run.caller for run in self.runs}
        numbers = {caller: 100 * place for place, caller in enumerate(sorted(callers))}
        origin = min((run.begin for run in self.runs), default=0)
        events: list[dict[str, Any]] = [
            {"ph": "M", "pid": process, "name": "process_name", "args": {"name": "aclnn"}}
        ]
        named = set()
        for run in self.runs:
            for step, thread, begin, end in run.events:
                track = numbers[run.caller] + thread
                if track not in named:
                    named.add(track)
                    label = f"caller {numbers[run.caller] // 100}, thread {thread}"
                    events.append(
                        {
                            "ph": "M",
                            "pid": process,
                            "tid": track,
                            "name": "thread_name",
                            "args": {"name": label},
                        }
                    )
                events.append(_slice(run, step, process, track, begin - origin, end - begin))
                if thread == 0:
                    live = sum(buffer.padded for buffer in run.plan.workspace.live_at(step))
                    events.append(_counter(process, begin - origin, live))
            events.append(_counter(process, run.end - origin, 0))
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"})

    def __str__(self) -> str:
        return self.to_text()

    def __len__(self) -> int:
        return len(self.runs)


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
            "elements": planned.elements,
            "bytes read": planned.bytes_read,
            "bytes written": planned.bytes_written,
        },
    }


def _counter(process: int, at: int, live: int) -> dict[str, Any]:
    return {
        "ph": "C", "pid": process, "name": "live workspace bytes", "ts": at / 1000,
        "args": {"bytes": live},
    }  # fmt: skip


@contextmanager
def profile() -> Iterator[Profile]:
    """Record every run of every executor, on any thread, for the length of a block.

    Yields
    ------
    Profile
        Fills as runs end.

    Notes
    -----
    Outside such blocks a run pays for one comparison of an int.

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


def profile_executor(executor: Any, repeat: int = 100, warmup: int = 3) -> Profile:
    """Run an executor `repeat` times after `warmup` runs that do not count."""
    for _ in range(warmup):
        executor.run()
    seen = Profile()
    planned = executor.planned

    def record(plan: Any, begin: int, end: int, events: Any) -> None:
        if plan is planned:
            seen.record(plan, begin, end, events)

    _plan.add_observer(record)
    try:
        for _ in range(repeat):
            executor.run()
    finally:
        _plan.remove_observer(record)
    return seen
