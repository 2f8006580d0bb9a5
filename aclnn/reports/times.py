"""Times of steps and executors, added up over recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from aclnn.acl.dtypes import ITEM_SIZES
from aclnn.graph.lower.schedule import Step
from aclnn.graph.summaries import counted
from aclnn.graph.views.heat import Heat


def _median_of(times: Sequence[int]) -> str:
    """Times of runs in short."""
    return f"{median(times) / 1000:.3g} µs, median of {counted(len(times), 'run')}"


@dataclass(frozen=True, slots=True)
class OpTime:
    """One of several operators that a step's loop runs, tile by tile.

    A run does not distinguish them: the time is estimated, as the part of the step's median that the
    operator has of the bytes that all of them read and write, in memory or in a tile.
    """

    node: str
    kernel: str
    estimated_ns: float


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step over all its runs; times in nanoseconds, bytes per run.

    `dtypes` are of what it reads, in order, and of the results of its last node, which are `written`. `extent` is m, k and n of
    a matrix product, before them its batch, else empty; `flops` counts its multiplications and additions. `share` is its median's
    part of the medians of everything in the profile, each counted as often as it ran. `ops` is empty
    for a step that runs one operator.
    """

    name: str
    elements: int
    bytes_read: int
    bytes_written: int
    times: tuple[int, ...]
    threads: int
    operator: str = ""
    share: float = 0.0
    shape: tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ()
    ops: tuple[OpTime, ...] = ()
    extent: tuple[int, ...] = ()
    flops: int = 0
    written: int = 1

    def __repr__(self) -> str:
        return f"<StepTime {self.name}: {_median_of(self.times)}, {self.bandwidth:.3g} GB/s>"

    @property
    def median(self) -> float:
        return float(median(self.times))

    @property
    def bandwidth(self) -> float:
        """Bytes moved in a nanosecond, which is gigabytes in a second."""
        return (self.bytes_read + self.bytes_written) / max(self.median, 1.0)

    @property
    def gflops(self) -> float:
        """Multiplications and additions in a nanosecond, which is GFLOP/s; 0 where they are not counted."""
        return self.flops / max(self.median, 1.0)


@dataclass(frozen=True, slots=True)
class ExecutorTime:
    """An executor over all its runs; times in nanoseconds.

    `times` are of whole runs, `between` their time before, between and after the steps,
    `queued` how long runs that were given to a stream waited until they began. `share` is that of
    the steps and of the time between them.
    """

    operator: str
    steps: tuple[StepTime, ...]
    times: tuple[int, ...]
    between: tuple[int, ...]
    between_share: float
    queued: tuple[int, ...] = ()

    def __repr__(self) -> str:
        steps = counted(len(self.steps), "step")
        return f"<ExecutorTime {self.operator}: {_median_of(self.times)}, {steps}>"

    @property
    def median(self) -> float:
        return float(median(self.times))

    @property
    def between_median(self) -> float:
        return float(median(self.between))

    @property
    def queued_median(self) -> float | None:
        """None where no run was given to a stream."""
        return float(median(self.queued)) if self.queued else None

    @property
    def share(self) -> float:
        return min(1.0, self.between_share + sum(step.share for step in self.steps))

    @property
    def bytes_read(self) -> int:
        return sum(step.bytes_read for step in self.steps)

    @property
    def bytes_written(self) -> int:
        return sum(step.bytes_written for step in self.steps)


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its plan, its begin and end, and an event for each step and thread.

    `submitted` is when it was given to a stream, None where it ran at once.
    """

    plan: Any = field(repr=False)
    begin: int
    end: int
    events: tuple[tuple[int, int, int, int], ...]
    caller: int
    submitted: int | None = None

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

    @property
    def description(self) -> tuple[Any, ...]:
        """Key of equal plans: threads that plan one call at the same moment make two."""
        return self.name, self.plan.schedule, self.plan.workspace

    def facts(self) -> tuple[Any, ...]:
        """Everything that makes two runs the same."""
        return (
            *self.description, self.begin, self.end, self.events, self.caller, self.submitted,
        )  # fmt: skip


# --- Adding up --------------------------------------------------------------------------------


def executor_times(runs: Sequence[Run]) -> tuple[ExecutorTime, ...]:
    """Every plan that ran, in the order of the first runs."""
    groups = by_plan(runs)
    whole = sum(
        len(runs) * time for runs in groups for time in (*medians(runs).values(), idle(runs))
    )
    return tuple(executor_time(runs, whole or 1.0) for runs in groups)


def by_plan(runs: Sequence[Run]) -> list[list[Run]]:
    """Runs of each plan; those of one description are one plan's."""
    groups: dict[tuple[Any, ...], list[Run]] = {}
    known = {id(run.plan): run.description for run in runs}  # to be hashed once for each plan
    numbers = {plan: groups.setdefault(words, []) for plan, words in known.items()}
    for run in runs:
        numbers[id(run.plan)].append(run)
    return list(groups.values())


def _step_times(runs: Sequence[Run]) -> dict[int, tuple[int, ...]]:
    times: dict[int, list[int]] = {}
    for run in runs:
        for index, (begin, end, _) in run.step_spans.items():
            times.setdefault(index, []).append(end - begin)
    return {index: tuple(took) for index, took in sorted(times.items())}


def _between(runs: Sequence[Run]) -> tuple[int, ...]:
    """Time of each run that no step takes."""
    return tuple(
        max(run.end - run.begin - sum(end - begin for begin, end, _ in run.step_spans.values()), 0)
        for run in runs
    )


def medians(runs: Sequence[Run]) -> dict[int, float]:
    return {index: float(median(took)) for index, took in _step_times(runs).items()}


def idle(runs: Sequence[Run]) -> float:
    return float(median(_between(runs)))


def executor_time(runs: Sequence[Run], whole: float) -> ExecutorTime:
    plan, between = runs[0].plan, _between(runs)
    spans = [run.step_spans for run in runs]
    return ExecutorTime(
        operator=plan.operator.name,
        steps=tuple(
            _step_time(
                plan, index, took, max(s[index][2] for s in spans if index in s), len(runs) / whole
            )
            for index, took in _step_times(runs).items()
        ),
        times=tuple(run.end - run.begin for run in runs),
        between=between,
        between_share=float(median(between)) * len(runs) / whole,
        queued=tuple(run.begin - run.submitted for run in runs if run.submitted is not None),
    )


def _step_time(
    plan: Any, index: int, times: tuple[int, ...], threads: int, weight: float
) -> StepTime:
    step = plan.schedule.steps[index]
    return StepTime(
        name=step.name,
        elements=step.elements,
        bytes_read=step.bytes_read,
        bytes_written=step.bytes_written,
        times=times,
        threads=threads,
        operator=plan.operator.name,
        share=float(median(times)) * weight,
        shape=step.shape,
        dtypes=_dtypes_of(step),
        written=step.ops[-1].outputs,
        ops=_estimated(step, float(median(times))),
        extent=step.ops[0].extent,
        flops=step.flops,
    )


def _dtypes_of(step: Step) -> tuple[str, ...]:
    """Dtypes that a step reads from memory, in order, and those that its last node writes."""
    made = {index for op in step.ops for index in op.operands[-op.outputs :]}
    read = dict.fromkeys(index for op in step.ops for index in op.operands[: -op.outputs])
    last = step.ops[-1]
    places = [*(index for index in read if index not in made), *last.operands[-last.outputs :]]
    return tuple(step.operands[index].dtype for index in places)


def _estimated(step: Step, took: float) -> tuple[OpTime, ...]:
    if len(step.ops) < 2:
        return ()
    moved = [sum(ITEM_SIZES[step.operands[k].dtype] for k in op.operands) for op in step.ops]
    return tuple(
        OpTime(op.node, op.kernel, took * part / sum(moved))
        for op, part in zip(step.ops, moved, strict=True)
    )


def times(one: ExecutorTime) -> Heat:
    """The nanoseconds of each node, to colour pictures by; of those that share a loop estimates."""
    found: dict[str, float] = {}
    for step in one.steps:
        found |= {op.node: op.estimated_ns for op in step.ops} or {step.name: step.median}
    return Heat("time", found, human_time)


def human_time(nanoseconds: float) -> str:
    """A time with a unit that keeps the number short.

    >>> human_time(512), human_time(1_500_000), human_time(3e9)
    ('0.512 µs', '1.5 ms', '3 s')
    """
    amount = nanoseconds / 1000
    for unit in ("µs", "ms", "s"):
        if amount < 1000 or unit == "s":
            break
        amount /= 1000
    return f"{amount:.3g} {unit}"
