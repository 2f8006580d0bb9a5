"""The time axis of a plan's picture: shorter where nothing changes, and where all comes again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from .repeats import FOLD_FROM, Repeat, Search

if TYPE_CHECKING:
    from ..planner.plan import Buffer, WorkspacePlan

SHORT = 3  # columns of a stretch that is shorter than its steps
LONG = 1000  # steps of a stretch that is never drawn in full


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps of the axis, and how many columns they take."""

    first: int
    steps: int
    columns: int
    left_out: bool = False  # because they are those before it again

    @property
    def end(self) -> int:
        return self.first + self.steps


@dataclass(frozen=True, slots=True)
class Again:
    """Steps that come `count` times, of which the first are shown."""

    first: int
    steps: int
    count: int

    @property
    def end(self) -> int:
        return self.first + self.steps * self.count


class TimeAxis:
    """Columns of the steps of a plan."""

    def __init__(self, plan: WorkspacePlan, whole: bool = False):
        self.first = min(buffer.first for buffer in plan.buffers)
        self.last = max([*(buffer.last for buffer in plan.buffers), len(plan.steps) - 1])
        moments = _moments(plan.buffers, self.last + 1)
        found = [] if whole or len(moments) < FOLD_FROM else _repeats(plan.buffers, moments)
        self.again = [
            Again(moments[r.start], moments[r.start + r.period] - moments[r.start], r.count)
            for r in found
        ]
        self.stretches = list(_stretches(moments, found, whole))
        self._firsts = [stretch.first for stretch in self.stretches]
        self._starts = [*accumulate((s.columns for s in self.stretches), initial=0)]

    @property
    def columns(self) -> int:
        """Number of columns."""
        return self._starts[-1]

    def at(self, step: float) -> float:
        """Begin of a step, in columns from the left."""
        index = bisect_right(self._firsts, step) - 1
        stretch = self.stretches[index]
        return self._starts[index] + (step - stretch.first) / stretch.steps * stretch.columns

    def has(self, buffer: Buffer) -> bool:
        """Whether a buffer is drawn: not if the same one is drawn in an earlier repetition."""
        return not any(
            one.first + one.steps <= buffer.first and buffer.last < one.end for one in self.again
        )

    def shown(self, step: int) -> int:
        """The step that stands for this one."""
        for one in self.again:
            if one.first <= step < one.end:
                return one.first + (step - one.first) % one.steps
        return step

    def is_shown(self, step: int) -> bool:
        """Whether a step is there itself."""
        return self.shown(step) == step


def _moments(buffers: Sequence[Buffer], end: int) -> list[int]:
    """The steps at which buffers begin, or are over; the last is the end of the axis."""
    found = {step for buffer in buffers for step in (buffer.first, buffer.last + 1)}
    return sorted({*found, end})


def _repeats(buffers: Sequence[Buffer], moments: Sequence[int]) -> list[Repeat]:
    """Moments at which the same buffers begin, time and again, at the same offsets."""
    begin: dict[int, list[Any]] = {}
    for b in buffers:
        begin.setdefault(b.first, []).append((b.output, b.offset, b.padded, b.last - b.first))
    known: dict[Any, int] = {}
    kinds = [
        known.setdefault((after - step, *sorted(begin.get(step, ()))), len(known))
        for step, after in pairwise(moments)
    ]
    return sorted(Search(kinds).within(0, len(kinds)), key=lambda one: one.start)


def _stretches(moments: Sequence[int], found: Sequence[Repeat], whole: bool) -> Iterator[Stretch]:
    """The axis from left to right."""
    skipped = {one.start + one.period: one for one in found}
    index = 0
    while index < len(moments) - 1:
        step = moments[index]
        again = skipped.get(index)
        index = index + 1 if again is None else again.end
        count = moments[index] - step
        short = not whole or count > LONG
        yield Stretch(step, count, min(count, SHORT) if short else count, again is not None)
