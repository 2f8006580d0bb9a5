"""Profiles: recorded runs, their statistics and views."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from aclnn.acl._frames import boundary
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.errors import invalid
from aclnn.compiler import _compiled_call
from aclnn.graph.view_methods import Tabled, register_view
from aclnn.reports.times import ExecutorTime, Run, StepTime, by_plan, executor_times, times

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class Profile(Tabled):
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
        """Number of runs of each operator: `print` shows the table."""
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
        return executor_times(list(self.runs))  # others may end meanwhile

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
            elements, runs, the least time, bytes read and written, and separate GB/s and GFLOP/s. Lines
            that begin with ≈ are estimates for the operators of one step. After an executor's steps
            come the time between steps, the whole run and, for runs on a stream, the wait in its
            queue.
        """
        return self._view("text", wide)

    @boundary
    def timeline(self, run: int = -1, width: int = 64) -> str:
        """Activity of each thread in one run, as a line of step numbers.

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
            return "nothing ran"
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

    def as_it_is(self) -> Profile:
        """The runs that have ended so far, as a profile that does not fill.

        Returns
        -------
        Profile

        Examples
        --------
        >>> import aclnn
        >>> with aclnn.profile() as profile:
        ...     pass
        >>> profile.as_it_is().runs
        []
        """
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
            JSON of the schema `aclnn.reports.profile_document.PROFILE_SCHEMA`, with times in nanoseconds.
        """
        return self._view("json", indent)

    @classmethod
    def from_json(cls, text: str) -> Self:
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
        return super().from_json(text)

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
        plan, one = self.graphed(executor)
        return plan.graph.to_svg(plan.workspace, times(one))

    @boundary
    def to_model_explorer(self, executor: int = 0) -> str:
        """The graph of an executor for Model Explorer, with the time and bytes of each node.

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
        plan, one = self.graphed(executor)
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
        plan, one = self.graphed(executor)
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
        return self._view("lines", executor)

    def graphed(self, executor: object) -> tuple[Any, ExecutorTime]:
        """The plan of one of the executors, with its graph, and its times.

        Parameters
        ----------
        executor : int
            Its place in `executors`.

        Returns
        -------
        (object, ExecutorTime)
        """
        groups = by_plan(list(self.runs))
        index = as_int(executor)
        if index is None or not 0 <= index < len(groups):
            raise invalid(f"executor is {shown(executor)}, but {len(groups)} executors ran")
        plan = groups[index][0].plan
        if not hasattr(plan, "graph"):
            raise invalid("the profile was read from a document, which has no graph")
        return plan, self.executors[index]

    def to_chrome_trace(self) -> str:
        """Write trace events, which Perfetto and Chrome's tracing page open.

        Returns
        -------
        str
            JSON: a slice for each run, with one for each of its steps on each thread inside, which
            has the source lines of its nodes; arrows from the caller to the threads that took part
            in a step; a slice on a separate track for each wait in a stream's queue; and a
            counter of live workspace bytes over all concurrent runs. Times are in microseconds
            from the first submission or the beginning of the first run.
        """
        return self._view("chrome_trace")

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
        return self._view("ascend", folder)

    def __len__(self) -> int:
        return len(self.runs)


_VIEWS = {
    "text": ("profile_table", "profile_to_text"),
    "rich": ("profile_table", "profile_to_rich"),
    "html": ("notebook", "profile_to_html"),
    "json": ("profile_document", "profile_to_json"),
    "from_json": ("profile_document", "profile_from_json"),
    "lines": ("lines", "profile_to_lines"),
    "chrome_trace": ("trace", "profile_to_trace"),
    "ascend": ("ascend", "profile_to_ascend"),
}

for _name, (_module, _function) in _VIEWS.items():
    register_view(Profile, _name, f"aclnn.reports.{_module}", _function)


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
    for name, value, least in (("repeat", repeat, 1), ("warmup", warmup, 0)):
        number = as_int(value)
        if number is None or number < least:
            raise invalid(f"{name} is {shown(value)}, must be an int from {least} on")


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
