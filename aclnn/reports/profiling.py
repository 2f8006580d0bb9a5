"""Profiles: the time of each step of an executor, compared with the memory bandwidth."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from aclnn.acl import dtypes
from aclnn.acl._frames import boundary
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.errors import AclnnError, invalid
from aclnn.compiler import _compiled_call
from aclnn.graph.brief import counted
from aclnn.graph.lower.schedule import Schedule, Step
from aclnn.graph.planner.plan import WorkspacePlan
from aclnn.graph.runtime.abi import MAX_THREADS
from aclnn.graph.views import json as documents
from aclnn.graph.views.heat import Heat
from aclnn.graph.views.notebook import folded, sheet_html, view
from aclnn.graph.views.tables import Sheet, make, to_rich, to_text
from aclnn.graph.views.text import base_words, dims
from aclnn.reports import ascend
from aclnn.reports.lines import lines_of, lines_sheet

ITEM_SIZES = {dtype.name: dtype.itemsize for dtype in dtypes.NUMPY.values()}
PROFILE = "aclnn.profile/2"
NOTHING = "nothing ran"
PROFILE_SCHEMA = documents.load_schema(Path(__file__).parent / "schemas", "profile")


def _median_of(times: Sequence[int]) -> str:
    """Times of runs in short."""
    return f"{median(times) / 1000:.3g} µs, median of {counted(len(times), 'run')}"


@dataclass(frozen=True, slots=True)
class OpTime:
    """One of several operators that a step's loop runs, tile by tile.

    A run does not tell them apart: the time is estimated, as the part of the step's median that the
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

    `times` are of whole runs, `between` what of them lies before, between and after the steps,
    `queued` how long runs that were given to a stream waited until they began. `share` is that of
    the steps and of what lies between them.
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
        """What makes plans the same: threads that plan one call at the same moment make two."""
        return self.name, self.plan.schedule, self.plan.workspace

    def facts(self) -> tuple[Any, ...]:
        """Everything that makes two runs the same."""
        return (
            *self.description, self.begin, self.end, self.events, self.caller, self.submitted,
        )  # fmt: skip


class Profile:
    """Recorded runs and their statistics; profiles compare by content.

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

    def record(
        self, plan: Any, begin: int, end: int, events: Any, submitted: int | None = None
    ) -> None:
        """Add a run that the calling thread has just ended.

        Parameters
        ----------
        plan : CompiledCall
            What ran.
        begin, end : int
            Nanoseconds of the clock of `time.perf_counter_ns`.
        events : iterable of tuple of int
            For each step and thread: number of the step, number of the thread, begin and end.
        submitted : int, optional
            When it was given to a stream, on the same clock.
        """
        self.runs.append(Run(plan, begin, end, tuple(events), threading.get_ident(), submitted))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Profile):
            return NotImplemented
        return [run.facts() for run in self.runs] == [run.facts() for run in other.runs]

    __hash__ = None  # type: ignore[assignment]  # it fills

    def __repr__(self) -> str:
        """How many runs there are of what: `print` shows the table."""
        names = dict.fromkeys([run.name for run in list(self.runs)])
        count = len(self.runs)
        return (
            f"<Profile: {count} run{'' if count == 1 else 's'} of {', '.join(names) or 'nothing'}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as what its document says: plans hold kernels, which are of a process."""
        return Profile.from_json, (self.to_json(),)

    @property
    def total_ns(self) -> int:
        """Nanoseconds of all runs together."""
        return sum(run.end - run.begin for run in self.runs)

    @property
    def executors(self) -> tuple[ExecutorTime, ...]:
        """Every plan that ran, in the order of the first runs."""
        groups = _by_plan(list(self.runs))  # others may end meanwhile
        whole = sum(
            len(runs) * time for runs in groups for time in (*_medians(runs).values(), _idle(runs))
        )
        return tuple(_executor_time(runs, whole or 1.0) for runs in groups)

    @property
    def steps(self) -> tuple[StepTime, ...]:
        """Every step of every plan that ran, in order."""
        return tuple(step for executor in self.executors for step in executor.steps)

    def to_text(self, wide: bool = False) -> str:
        """A table with a line for each step and each whole run.

        Parameters
        ----------
        wide : bool
            Whether to show every column, in lines of any length.  Otherwise, lines have at most 100
            characters, and names lose their middle where they have no room.

        Returns
        -------
        str
            Shape of the loops, of matrix products m × k × n; dtypes; threads; median time in
            microseconds; work, which is bytes moved or, of matrix products, multiplications and
            additions; work in a second; and share of the medians. The wide form has besides
            elements, runs, the least time, bytes read and written, and GB/s and GFLOP/s apart. Lines that begin with ≈ are estimates for the operators of one
            step. After an executor's steps come the time between steps, the whole run and, for runs
            on a stream, the wait in its queue.
        """
        return to_text(self._sheet(), wide=wide)

    def to_rich(self, wide: bool = False) -> Any:
        """The table of `to_text` for `rich.print`.

        Parameters
        ----------
        wide : bool
            Whether to show every column.

        Returns
        -------
        rich.console.Group

        Raises
        ------
        ModuleNotFoundError
            If rich is not installed; the message says how to.
        """
        return to_rich(self._sheet(), wide=wide)

    def _repr_html_(self) -> str:
        pictures = [
            folded(f"{one.operator}, coloured by time", picture) for one, picture in self._drawn()
        ]
        return view(sheet_html(self._sheet()), *pictures)

    def _drawn(self) -> Iterator[tuple[ExecutorTime, str]]:
        """The pictures of executors whose graphs are known."""
        for place, one in enumerate(self.executors):
            with suppress(AclnnError):
                yield one, self.to_svg(place)

    def _sheet(self) -> Sheet:
        if not self.runs:
            return (NOTHING,)
        rows = [row for executor in self.executors for row in _rows(executor)]
        headers = (
            "step", "shape", "dtypes", "elements", "runs", "threads", "median µs", "least µs",
            "bytes read", "bytes written", "GB/s", "GFLOP/s", "work", "per second", "share",
        )  # fmt: skip
        wide = "elements,runs,least µs,bytes read,bytes written,GB/s,GFLOP/s"
        return (
            make(headers, rows, right=",".join(("shape", *headers[3:])), accent="step", wide=wide),
        )

    @boundary
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
        groups, executors = _by_plan(self.runs), self.executors
        places = {run.description: place for place, (run, *_) in enumerate(groups)}
        document = {
            "schema": PROFILE,
            "runs": len(self.runs),
            "total_ns": self.total_ns,
            "steps": [_step_data(step) for step in self.steps],
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
            plan = plans[one.executor]
            made.runs.append(Run(plan, one.begin, one.end, one.events, one.caller, one.submitted))
        return made

    @boundary
    def to_svg(self, executor: int = 0) -> str:
        """The graph of an executor, coloured by the time that its nodes took.

        Nodes that share a loop have estimates, as in the table.

        Parameters
        ----------
        executor : int
            Which of `executors`.

        Returns
        -------
        str
            A self-contained SVG picture.

        Raises
        ------
        AclnnError
            If there is no such executor, or its graph is not known: profiles that were read from a
            document have none.

        Examples
        --------
        >>> import numpy as np
        >>> import aclnn
        >>> picture = aclnn.executor("gelu", np.zeros(4, np.float32)).profile(repeat=5).to_svg()
        >>> "100%" in picture
        True
        """
        plan, one = self._graphed(executor)
        return plan.graph.to_svg(plan.workspace, times(one))

    @boundary
    def to_model_explorer(self, executor: int = 0) -> str:
        """The graph of an executor for Model Explorer, whose nodes say what they took.

        Parameters
        ----------
        executor : int
            Which of `executors`.

        Returns
        -------
        str
            JSON that Model Explorer opens; `to_model_explorer_data` has the colours for it.

        Raises
        ------
        AclnnError
            As `to_svg`.

        Examples
        --------
        >>> import numpy as np
        >>> import aclnn
        >>> seen = aclnn.executor("gelu", np.zeros(4, np.float32)).profile(repeat=5)
        >>> '"label": "gelu"' in seen.to_model_explorer()
        True
        """
        plan, one = self._graphed(executor)
        return plan.graph.to_model_explorer(plan.workspace, times(one))

    @boundary
    def to_model_explorer_data(self, executor: int = 0) -> dict[str, str]:
        """Node data for the graph of `to_model_explorer`, which colour it.

        Parameters
        ----------
        executor : int
            Which of `executors`.

        Returns
        -------
        dict of str to str
            JSON documents: ``bytes``, ``time`` in nanoseconds, and ``offset`` in the workspace.

        Raises
        ------
        AclnnError
            As `to_svg`.

        Examples
        --------
        >>> import numpy as np
        >>> import aclnn
        >>> seen = aclnn.executor("gelu", np.zeros(4, np.float32)).profile(repeat=5)
        >>> list(seen.to_model_explorer_data())
        ['bytes', 'time', 'offset']
        """
        plan, one = self._graphed(executor)
        return plan.graph.to_model_explorer_data(plan.workspace, times(one))

    @boundary
    def lines(self, executor: int = 0) -> str:
        """A table of the time that the source lines of a compiled function took.

        A line includes the lines that it calls, which are below it. Nodes that share a loop have
        estimates.

        Parameters
        ----------
        executor : int
            Which of `executors`.

        Returns
        -------
        str

        Raises
        ------
        AclnnError
            As `to_svg`.

        Examples
        --------
        >>> import numpy as np
        >>> import aclnn
        >>> @aclnn.compile
        ... def gate(x, y):
        ...     return aclnn.silu(x) * y
        >>> x = np.zeros(4, np.float32)
        >>> print(gate.executor(x, x).profile(repeat=5).lines())  # doctest: +ELLIPSIS
        line ... computes   nodes  bytes ... share
        ... return aclnn.silu(x) * y  silu, mul      2 ... 100%
        """
        plan, one = self._graphed(executor)
        found = lines_of(plan.graph, times(one))
        return to_text(lines_sheet(found)) if found else "no node knows a line"

    def _graphed(self, executor: object) -> tuple[Any, ExecutorTime]:
        """The plan of one of the executors, with its graph, and its times."""
        groups = _by_plan(list(self.runs))
        place = as_int(executor)
        if place is None or not 0 <= place < len(groups):
            raise invalid(f"executor is {shown(executor)}, but {len(groups)} executors ran")
        plan = groups[place][0].plan
        if not hasattr(plan, "graph"):
            raise invalid("the profile was read from a document, which has no graph")
        return plan, self.executors[place]

    def to_chrome_trace(self) -> str:
        """Write trace events, which Perfetto and Chrome's tracing page open.

        Returns
        -------
        str
            JSON: a slice for each run, with one for each of its steps on each thread inside, which
            has the source lines of its nodes; arrows from the caller to the threads that took part
            in a step; a slice on a track of its own for each wait in a stream's queue; and a
            counter of live workspace bytes over all concurrent runs. Times are in microseconds
            from the first submission or the beginning of the first run.
        """
        process, runs = os.getpid(), list(self.runs)
        callers = {run.caller for run in runs}
        numbers = {caller: place for place, caller in enumerate(sorted(callers))}
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

    def __str__(self) -> str:
        return self.to_text()

    def to_ascend(self, folder: str | os.PathLike[str]) -> Path:
        """Write the runs as Ascend's profiler does, for viewers such as MindStudio Insight.

        Parameters
        ----------
        folder : path
            An existing folder to write to.

        Returns
        -------
        Path
            A new folder ``PROF_…``, in which ``mindstudio_profiler_output`` has the tables
            (op_summary, task_time, op_statistic, api_statistic) and the timeline (msprof).

        Raises
        ------
        OSError
            If it cannot be written.

        Notes
        -----
        Tasks are steps: a loop that several operators were fused into is one, of type AI_CPU.
        Streams are threads that ran executors. Values that a CPU does not have are N/A.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import aclnn
        >>> seen = aclnn.executor("gelu", np.zeros(4, np.float32)).profile(repeat=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = seen.to_ascend(folder)
        ...     len(list(made.glob("mindstudio_profiler_output/*.csv")))
        4
        """
        return ascend.write(self._as_it_is(), folder)

    def __len__(self) -> int:
        return len(self.runs)


# --- Adding up --------------------------------------------------------------------------------


def _by_plan(runs: Sequence[Run]) -> list[list[Run]]:
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
    """What of each run no step takes."""
    return tuple(
        max(run.end - run.begin - sum(end - begin for begin, end, _ in run.step_spans.values()), 0)
        for run in runs
    )


def _medians(runs: Sequence[Run]) -> dict[int, float]:
    return {index: float(median(took)) for index, took in _step_times(runs).items()}


def _idle(runs: Sequence[Run]) -> float:
    return float(median(_between(runs)))


def _executor_time(runs: Sequence[Run], whole: float) -> ExecutorTime:
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
    """Of what a step reads from memory, in order, and of what its last node writes."""
    made = {place for op in step.ops for place in op.operands[-op.outputs :]}
    read = dict.fromkeys(place for op in step.ops for place in op.operands[: -op.outputs])
    last = step.ops[-1]
    places = [*(place for place in read if place not in made), *last.operands[-last.outputs :]]
    return tuple(step.operands[place].dtype for place in places)


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


def _microseconds(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:.2f}"


def _rows(one: ExecutorTime) -> Iterator[tuple[Any, ...]]:
    """Of the table: an executor's steps, then its whole runs."""
    for step in one.steps:
        yield (
            step.name,
            _extent_words(step),
            _dtype_words(step.dtypes, step.written),
            f"{step.elements:,}",
            len(step.times),
            step.threads,
            _microseconds(step.median),
            _microseconds(min(step.times)),
            f"{step.bytes_read:,}",
            f"{step.bytes_written:,}",
            f"{step.bandwidth:.1f}",
            f"{step.gflops:.1f}" if step.flops else "",
            *_work_words(step.bytes_read + step.bytes_written, step.flops, step.median),
            f"{step.share:.0%}",
        )
        for op in step.ops:
            estimate = _microseconds(op.estimated_ns)
            yield (f"≈ {op.node}", "", "", "", "", "", estimate, *[""] * 8)
    yield _time_row("between the steps", one.between, share=f"{one.between_share:.0%}")
    moved = one.bytes_read + one.bytes_written
    yield _time_row(
        f"whole run of {one.operator}", one.times, f"{one.bytes_read:,}", f"{one.bytes_written:,}",
        f"{moved / max(one.median, 1.0):.1f}", _work_words(moved, 0, one.median), f"{one.share:.0%}",
    )  # fmt: skip
    if one.queued:
        yield _time_row("in the stream's queue", one.queued)


def _time_row(
    name: str,
    times: Sequence[int],
    read: str = "",
    written: str = "",
    speed: str = "",
    work: tuple[str, str] = ("", ""),
    share: str = "",
) -> tuple[Any, ...]:
    took = _microseconds(float(median(times))), _microseconds(min(times))
    return (name, "", "", "", len(times), "", *took, read, written, speed, "", *work, share)


def _extent_words(step: StepTime) -> str:
    """The loops' shape, of a matrix product its sizes: ``16 x 64 x 64`` is m x k x n."""
    if not step.extent:
        return dims(step.shape)
    *batch, m, k, n = step.extent
    return (f"{batch[0]} of " if batch else "") + f"{m} × {k} × {n}"


def _dtype_words(names: Sequence[str], written: int) -> str:
    """Dtypes that are read and those that are written, each said once.

    >>> _dtype_words(("float16", "float16", "float32"), 1), _dtype_words(("int8", "int8"), 1)
    ('float16 -> float32', 'int8')
    """
    first = len(names) - written
    reads, writes = (tuple(dict.fromkeys(part)) for part in (names[:first], names[first:]))
    words = ", ".join(writes)
    return words if reads in ((), writes) else f"{', '.join(reads)} -> {words}"


def _work_words(moved: int, flops: int, took: float) -> tuple[str, str]:
    """Bytes or operations, and as many in a second: of one width, so that tables do not jump."""
    if flops:
        return f"{flops / 1e6:,.2f} MFLOP", f"{flops / max(took, 1.0):6.1f} GFLOP/s"
    return f"{moved:,} B", f"{moved / max(took, 1.0):6.1f} GB/s"


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
    submitted: int | None
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


# --- Trace events -----------------------------------------------------------------------------


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
        f"operand {place} {operand.name}": (
            f"{operand.dtype}, {base_words(run.plan.schedule, operand.base)}+{operand.offset}, "
            f"byte strides {dims(operand.strides)}, {operand.nbytes} bytes"
        )
        for place, operand in enumerate(step.operands)
    }


def _waits(runs: list[Run], process: int, origin: int) -> list[dict[str, Any]]:
    """A pair of events for each run that waited in a queue: several may wait at the same time."""
    return [
        {
            "ph": phase,
            "pid": process,
            "tid": 0,
            "id": place,
            "name": f"{run.name} in the stream's queue",
            "cat": "queue",
            "ts": (at - origin) / 1000,
        }
        for place, run in enumerate(runs)
        if run.submitted is not None
        for phase, at in (("b", run.submitted), ("e", run.begin))
    ]


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
    """Record every run of every executor, on any thread, inside a ``with`` block.

    Yields
    ------
    Profile
        Fills as runs end.

    Notes
    -----
    Outside such blocks, a run pays one comparison of integers.

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
    _compiled_call.add_observer(seen.record)
    try:
        yield seen
    finally:
        _compiled_call.remove_observer(seen.record)


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
    caller = threading.get_ident()

    def record(plan: Any, begin: int, end: int, events: Any, submitted: int | None) -> None:
        if plan is executor.latest and threading.get_ident() == caller:
            seen.record(plan, begin, end, events, submitted)

    _compiled_call.add_observer(record)
    try:
        for _ in range(repeat):
            executor.run()
    finally:
        _compiled_call.remove_observer(record)
    return seen
