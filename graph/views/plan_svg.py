"""Pictures of plans: boxes over time, offsets upwards.

The time axis is shorter where nothing begins or ends, and where the same steps come again.
"""

from __future__ import annotations

import textwrap
import zlib
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..summaries import counted
from .heat import LEGEND_HEIGHT, LEGEND_WIDTH, Scale, heats_of, sizes
from .svg import CHAR, LINE, MARGIN, document, hatching, hover, rect, words_at
from .text import human_bytes, packed_words, plan_summary, some
from .time_axis import Again, TimeAxis

if TYPE_CHECKING:
    from ..planner.plan import Buffer, WorkspacePlan

PLOT_HEIGHT = 320
LEFT, RIGHT = 92, 120  # of the chart: room for bytes, and for what limits are called
WIDEST = 1600  # of the picture: where there are many steps, their columns are narrow
LISTED = 8  # steps that stand one below the other
MOST_STEPS_NAMED = 240  # below the chart; hovering tells the others
THIN = 14  # a box of less height has its name above it, and a margin that the pointer finds
NARROW = 4 * CHAR  # a box of less width has no name
LOOKED_AT = 50  # buffers that may be above another one


MOST_SHARING = 6  # buffers in the bytes of one, and readers of one, that are named
MOST_COPIES = 3  # buffers that one stands for that are named


def plan_to_svg(plan: WorkspacePlan, heat: object = None, whole: bool = False) -> str:
    heats = heats_of(heat, lambda: sizes(plan))
    if not any(buffer.nbytes for buffer in plan.buffers):
        lines = ["workspace 0 bytes: nothing needs space", *packed_words(plan)]
        width = max(420, *(MARGIN + len(line) * CHAR + MARGIN for line in lines))
        body = [
            words_at(MARGIN, MARGIN + 12 + 18 * index, line, "t b" if index == 0 else "t")
            for index, line in enumerate(lines)
        ]
        return document(width, 46 + 18 * len(lines), "workspace plan", body)
    axis = TimeAxis(plan, whole)
    count = axis.columns
    column = min(max(56.0, min(160.0, 880 / count)), (WIDEST - LEFT - RIGHT) / count)
    right = LEFT + column * count
    chart = _Chart(plan, axis, column, right, Scale(heats, [[b.name] for b in plan.buffers]))
    room = max(int((right - LEFT) / CHAR), 120)
    summary = [
        line
        for words in plan_summary(plan).split("\n")
        for line in textwrap.wrap(words, room, subsequent_indent="  ")
    ]
    if any(buffer.parts for buffer in plan.buffers):
        summary.append(f"hatched: scratch, for {counted(plan.threads, 'thread')}")
    below = [(line, "t") for line in summary] + [(line, "s") for line in _legend(plan, axis, room)]
    foot = MARGIN + PLOT_HEIGHT + 44 + 20 * bool(axis.again)
    width = max(right + RIGHT, *(LEFT + len(line) * CHAR + MARGIN for line, _ in below))
    drawn = [buffer for buffer in plan.buffers if axis.has(buffer)]
    hatched = any(buffer.parts for buffer in drawn)
    body = [
        *([hatching(chart.hatch)] if hatched else []),
        *chart.frame(),
        *(chart.box(index, buffer) for index, buffer in enumerate(drawn)),
        *chart.limits(),
        *map(chart.again, axis.again),
        *(words_at(LEFT, foot + 18 * i, line, style) for i, (line, style) in enumerate(below)),
    ]
    height = foot + 18 * len(below) + 8
    if heats:
        body.append(chart.scale.legend(LEFT, height + 4))
        width, height = max(width, LEFT + LEGEND_WIDTH + MARGIN), height + LEGEND_HEIGHT
    return document(width, height, "workspace plan", body, chart.scale.root, chart.scale.rules)


def _legend(plan: WorkspacePlan, axis: TimeAxis, room: int) -> list[str]:
    """The names of the steps that are there; many of them in columns, counted downwards."""
    shown = [index for index in range(len(plan.steps)) if axis.is_shown(index)]
    named = shown[:MOST_STEPS_NAMED]
    names = [_clipped(f"{step}: {plan.steps[step]}", room - 3) for step in named]
    wide = max(map(len, names), default=0) + 3
    columns = max(room // wide, 1) if len(names) > LISTED else 1
    rows = -(-len(names) // columns)
    # Spaces would shrink to one.
    lines = ["".join(n.ljust(wide, "\u00a0") for n in names[row::rows]) for row in range(rows)]
    left = len(plan.steps) - len(named)
    return [*(line.rstrip() for line in lines), *([f"+{left} more steps"] if left else [])]


def _clipped(words: str, room: int) -> str:
    return words if len(words) <= room else words[: room - 1] + "…"


def _every(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... that is at least `least`.

    >>> _every(0.3), _every(1.5), _every(21)
    (1, 2, 50)
    """
    power = 1
    while True:
        for digit in (1, 2, 5):
            if digit * power >= least:
                return digit * power
        power *= 10


def _line(style: str, x: float) -> str:
    """A line across the chart, upwards."""
    return f'<line class="{style}" x1="{x:.1f}" x2="{x:.1f}" y1="{MARGIN}" y2="{MARGIN + PLOT_HEIGHT}"/>'


@dataclass
class _Chart:
    """The coordinates of the plan's picture: time across, offset upwards.

    Above the workspace are the outputs that hold intermediates.
    """

    plan: WorkspacePlan
    axis: TimeAxis
    column: float
    right: float
    scale: Scale

    def __post_init__(self) -> None:
        used = {buffer.output for buffer in self.plan.buffers}
        self.floors, self.total = {"": 0}, self.plan.size
        for memory in self.plan.spare:
            if memory.output in used:
                self.floors[memory.output] = self.total
                self.total += memory.nbytes
        # Unlike those of other pictures of a page, of which a hidden one lends no pattern.
        self.hatch = f"hatch-{zlib.crc32(ascii(self.plan._facts()).encode()):08x}"
        self.ascending = sorted(self.plan.buffers, key=self.low)
        self.lows = [self.low(buffer) for buffer in self.ascending]
        self.over = {b.same_as: b.first for b in self.plan.buffers if b.same_as}
        self.copies: dict[Any, list[Buffer]] = {}
        for buffer in self.plan.buffers:
            if not self.axis.has(buffer):
                self.copies.setdefault(self.identity(buffer), []).append(buffer)

    def x(self, step: float) -> float:
        return LEFT + self.axis.at(step) * self.column

    def y(self, offset: float) -> float:
        return MARGIN + PLOT_HEIGHT * (1 - offset / self.total)

    def low(self, buffer: Buffer) -> int:
        """Coordinate of the first byte of a buffer."""
        return self.floors[buffer.output] + buffer.offset

    def high(self, buffer: Buffer) -> int:
        return self.low(buffer) + buffer.padded

    def identity(self, buffer: Buffer) -> Any:
        """Key that a buffer shares with those of the repetitions that are left out."""
        return self.axis.shown(buffer.first), buffer.last - buffer.first, self.low(buffer)

    def frame(self) -> list[str]:
        peak = self.axis.shown(self.plan.peak_step)
        begin, width = self.x(peak), self.x(peak + 1) - self.x(peak)
        parts = [rect(begin, 0, width, PLOT_HEIGHT + 2 * MARGIN, "peak", 0)]
        parts.append(words_at(begin + width / 2, MARGIN - 8, "peak", "s pt", "middle"))
        every = _every((len(str(self.axis.last)) + 1) * CHAR / self.column)
        free = 0.0  # where the next number may begin
        for stretch in self.axis.stretches:
            begin, end = self.x(stretch.first), self.x(stretch.end)
            if stretch.steps == stretch.columns:
                named = [step for step in range(stretch.first, stretch.end) if step % every == 0]
                marks = [(self.x(step + 0.5), str(step)) for step in named]
                parts += [_line("grid", self.x(step)) for step in named]
            else:
                parts.append(rect(begin, MARGIN, end - begin, PLOT_HEIGHT, "gap", 0))
                marks = [((begin + end) / 2, f"{stretch.first}…{stretch.end - 1}")]
            for middle, words in marks:
                half = len(words) * CHAR / 2
                if middle - half >= free:
                    free = middle + half + CHAR
                    height = MARGIN + PLOT_HEIGHT + 16
                    parts.append(words_at(middle, height, words, "s", "middle"))
        parts.append(_line("grid", self.right))
        for quarter in range(5):
            offset = self.total * quarter // 4
            words = human_bytes(offset)
            parts.append(words_at(LEFT - 8, self.y(offset) + 4, words, "s", "end"))
        return parts

    def limits(self) -> list[str]:
        y = self.y(self.plan.lower_bound)
        ends = f'x1="{LEFT}" x2="{self.right:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
        line = f'<line class="bound" stroke-width="2" {ends}/>'
        parts = [line, words_at(self.right + 8, y + 4, "lower bound", "s bt")]
        for output, floor in self.floors.items():
            if output:
                y = self.y(floor)
                ends = f'x1="{LEFT}" x2="{self.right:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
                parts.append(f'<line class="edge" {ends}/>')
                name = _clipped(f"in {output}", int((RIGHT - 8) / CHAR))
                parts.append(words_at(self.right + 8, y - 6, name, "s"))
        return parts

    def again(self, one: Again) -> str:
        """A line below steps that come again."""
        y, begin, end = MARGIN + PLOT_HEIGHT + 26, self.x(one.first), self.x(one.end)
        words = f"{one.count} times the same {one.steps} steps"
        middle = max((begin + end) / 2, LEFT + len(words) * CHAR / 2)
        line = f'<path class="again" d="M{begin:.1f},{y - 6}v6H{end:.1f}v-6"/>'
        return line + words_at(middle, y + 16, words, "s againt", "middle")

    def spot(self, buffer: Buffer) -> tuple[float, float, float, float]:
        """Left, top, width and height of a buffer's box."""
        top = self.y(self.high(buffer))
        begin = self.x(buffer.first)
        return begin, top, self.x(buffer.last + 1) - begin, self.y(self.low(buffer)) - top

    def has_room_above(self, buffer: Buffer) -> bool:
        """Whether a line of text fits between a box and what is above it."""
        top = self.y(self.high(buffer))
        if top - LINE < MARGIN:
            return False
        start = bisect_left(self.lows, self.high(buffer))
        for other in self.ascending[start : start + LOOKED_AT]:
            if self.y(self.low(other)) <= top - LINE:
                return True
            if other.first <= buffer.last and buffer.first <= other.last:
                return False
        return len(self.ascending) <= start + LOOKED_AT

    def box(self, index: int, buffer: Buffer) -> str:
        x, top, width, height = self.spot(buffer)
        gap = min(1, width / 8)
        style = "buf" if buffer.parts else f"buf c{index % 6}"
        drawn = rect(x + gap, top, width - 2 * gap, height, style, min(3, height / 2))
        if buffer.parts:
            drawn = drawn.replace("/>", f' fill="url(#{self.hatch})"/>')
        parts = [drawn, *self.name(buffer)]
        if height < THIN:
            parts.append(rect(x, top + (height - THIN) / 2, width, THIN, "hit", 0))
        title = (
            f"{buffer.name}: {buffer.contents or 'tiles'}\n"
            f"{buffer.nbytes:,} bytes, {buffer.padded - buffer.nbytes} of padding\n"
            f"[{buffer.offset}, {buffer.end}) of {buffer.output or 'the workspace'} "
            f"in steps {buffer.first} to {buffer.last}\n"
            f"made by {buffer.producer or '-'}, read by {some(buffer.consumers, MOST_SHARING)}\n"
            f"shares space with {some(buffer.shared_with, MOST_SHARING)}"
        )
        copies = self.copies.get(self.identity(buffer), [])
        lines = [
            title,
            *([f"again as {some([one.name for one in copies], MOST_COPIES)}"] if copies else []),
        ]
        lines += self.scale.labels([buffer.name])
        names = [
            name for one in (buffer, *copies) for name in (one.name, *(p.name for p in one.parts))
        ]
        style = "" if buffer.parts else self.scale.style([buffer.name])  # scratch stays hatched
        return hover("\n".join(lines), "".join(parts), *names, style=style)

    def name(self, buffer: Buffer) -> list[str]:
        """The name in a box, or above it, where it fits."""
        x, top, width, height = self.spot(buffer)
        if buffer.name in self.over:  # what takes its bytes hides the rest
            width = min(width, self.x(self.over[buffer.name]) - x)
        if width < NARROW:
            return []
        name = _clipped(buffer.name, int((width - 8) / CHAR))
        if height >= THIN:
            style = "t over" if buffer.parts else "t"
            return [words_at(x + width / 2, top + height / 2 + 4, name, style, "middle")]
        if self.has_room_above(buffer):
            return [words_at(x + width / 2, top - 4, name, "s", "middle")]
        return []
