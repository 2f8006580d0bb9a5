"""Pictures of plans, and what all pictures have: SVG without scripts, light or dark as wanted.

Boxes carry `<title>` elements, which browsers show on hovering.
"""

from __future__ import annotations

import textwrap
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .heat import HEAT_STYLE, HEAT_STYLE_DARK
from .text import human_bytes, plan_summary, some, xml_words

if TYPE_CHECKING:
    from ..planner.plan import Buffer, WorkspacePlan

STYLE = (
    """
.bg{fill:#fff}.t{fill:#1f2328;font:12px ui-monospace,monospace}.b{font-weight:700}
.s{fill:#59636e;font:11px ui-monospace,monospace}.box{fill:#f6f8fa;stroke:#59636e}
.arg{fill:#ddf4ff;stroke:#0969da}.out{fill:#dafbe1;stroke:#1a7f37}
.copy{fill:#fff1e5;stroke:#bc4c00}.edge{fill:none;stroke:#59636e}.head{fill:#59636e}
.loop{fill:none;stroke:#8250df;stroke-dasharray:6 4}.lt{fill:#8250df}
.grid{stroke:#d1d9e0}.peak{fill:#ffebe9}.bound{stroke:#1a7f37;stroke-dasharray:6 4}
.pt{fill:#cf222e}.bt{fill:#1a7f37}.c0{fill:#b6d7ff}.c1{fill:#c8eecf}.c2{fill:#ffe0b3}
.c3{fill:#e3d1ff}.c4{fill:#ffd0dd}.c5{fill:#c2ecec}.buf{stroke:#59636e}
.hit{fill:transparent}.again{fill:none;stroke:#0969da;stroke-width:2}.againt{fill:#0969da}
"""
    + HEAT_STYLE
    + """
@media (prefers-color-scheme:dark){
.bg{fill:#0d1117}.t{fill:#f0f6fc}.s{fill:#9198a1}.box{fill:#151b23;stroke:#9198a1}
.arg{fill:#121d2f;stroke:#4493f8}.out{fill:#12261e;stroke:#3fb950}
.copy{fill:#2e1b0e;stroke:#db6d28}.edge{stroke:#9198a1}.head{fill:#9198a1}
.loop{stroke:#ab7df8}.lt{fill:#ab7df8}.grid{stroke:#3d444d}.peak{fill:#3a1417}
.bound{stroke:#3fb950}.pt{fill:#ff7b72}.bt{fill:#3fb950}.c0{fill:#1f4f8f}.c1{fill:#1d5a2c}
.c2{fill:#6b4a12}.c3{fill:#4c3486}.c4{fill:#73304a}.c5{fill:#1c5656}.buf{stroke:#9198a1}
.again{stroke:#4493f8}.againt{fill:#4493f8}"""
    + HEAT_STYLE_DARK
    + "}\n"
)
CHAR = 7.3  # width of a monospaced character at 12 px
LINE = 16
MARGIN = 24


def words_at(x: float, y: float, words: str, style: str = "t", anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} class="{style}">{xml_words(words)}</text>'


def rect(x: float, y: float, w: float, h: float, style: str, radius: float = 4) -> str:
    box = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
    return f'<rect {box} rx="{radius:.3g}" class="{style}"/>'


def hover(title: str, content: str, *names: str, style: str = "") -> str:
    """Details on hovering."""
    of = f' class="{style}"' if style else ""
    return f"<g{mark(names)}{of}><title>{xml_words(title)}</title>{content}</g>"


def mark(names: Sequence[str]) -> str:
    """The nodes and values that something shows, for scripts to find."""
    return f' data-names="{xml_words(" ".join(dict.fromkeys(names)))}"' if names else ""


def document(width: float, height: float, title: str, body: Sequence[str], style: str = "") -> str:
    """A picture; `style` is its class."""
    of = f' class="{style}"' if style else ""
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}{of} role="img">',
            f"<title>{xml_words(title)}</title>",
            f"<style>{STYLE}</style>",
            rect(0, 0, width, height, "bg", 0),
            *body,
            "</svg>",
        ]
    )


# --- Plan -------------------------------------------------------------------------------------

PLOT_HEIGHT = 320
LEFT, RIGHT = 92, 120  # of the chart: room for bytes, and for what limits are called
WIDEST = 1600  # of the picture: where there are many steps, their columns are narrow
LISTED = 8  # steps that stand one below the other
MOST_STEPS_NAMED = 240  # below the chart; hovering tells the others
THIN = 14  # a box of less height has its name above it, and a margin that the pointer finds
NARROW = 4 * CHAR  # a box of less width has no name
LOOKED_AT = 50  # buffers that may be above another one


def plan_to_svg(plan: WorkspacePlan) -> str:
    if not any(buffer.nbytes for buffer in plan.buffers):
        words = words_at(MARGIN, MARGIN + 12, "workspace 0 bytes: nothing needs space", "t b")
        return document(420, 64, "workspace plan", [words])
    first = min(buffer.first for buffer in plan.buffers)
    last = max([*(buffer.last for buffer in plan.buffers), len(plan.steps) - 1])
    count = last - first + 1
    column = min(max(56.0, min(160.0, 880 / count)), (WIDEST - LEFT - RIGHT) / count)
    right = LEFT + column * count
    chart = _Chart(plan, first, column, right)
    room = max(int((right - LEFT) / CHAR), 80)
    summary = [
        line
        for words in plan_summary(plan).split("\n")
        for line in textwrap.wrap(words, room, subsequent_indent="  ")
    ]
    below = [(line, "t") for line in summary] + [(line, "s") for line in _legend(plan, room)]
    foot = MARGIN + PLOT_HEIGHT + 44
    width = max(right + RIGHT, *(LEFT + len(line) * CHAR + MARGIN for line, _ in below))
    body = [
        *chart.frame(last),
        *(chart.box(place, buffer) for place, buffer in enumerate(plan.buffers)),
        *chart.limits(),
        *(words_at(LEFT, foot + 18 * i, line, style) for i, (line, style) in enumerate(below)),
    ]
    return document(width, foot + 18 * len(below) + 8, "workspace plan", body)


def _legend(plan: WorkspacePlan, room: int) -> list[str]:
    """The steps' names; many of them in columns, counted downwards."""
    named = plan.steps[:MOST_STEPS_NAMED]
    names = [_clipped(f"{step}: {name}", room - 3) for step, name in enumerate(named)]
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


@dataclass
class _Chart:
    """The coordinates of the plan's picture: time across, offset upwards.

    Above the workspace are the outputs that hold intermediates.
    """

    plan: WorkspacePlan
    first: int
    column: float
    right: float

    def __post_init__(self) -> None:
        used = {buffer.output for buffer in self.plan.buffers}
        self.floors, self.total = {"": 0}, self.plan.size
        for memory in self.plan.spare:
            if memory.output in used:
                self.floors[memory.output] = self.total
                self.total += memory.nbytes
        self.ascending = sorted(self.plan.buffers, key=self.low)
        self.lows = [self.low(buffer) for buffer in self.ascending]

    def x(self, step: float) -> float:
        return LEFT + (step - self.first) * self.column

    def y(self, offset: float) -> float:
        return MARGIN + PLOT_HEIGHT * (1 - offset / self.total)

    def low(self, buffer: Buffer) -> int:
        """Where the chart has the first byte of a buffer."""
        return self.floors[buffer.output] + buffer.offset

    def high(self, buffer: Buffer) -> int:
        return self.low(buffer) + buffer.padded

    def frame(self, last: int) -> list[str]:
        peak = self.plan.peak_step
        parts = [rect(self.x(peak), 0, self.column, PLOT_HEIGHT + 2 * MARGIN, "peak", 0)]
        middle = self.x(peak) + self.column / 2
        parts.append(words_at(middle, MARGIN - 8, "peak", "s pt", "middle"))
        every = _every((len(str(last)) + 1) * CHAR / self.column)
        for step in range(self.first, last + 2, every):
            x = f"{self.x(step):.1f}"
            ends = f'y1="{MARGIN}" y2="{MARGIN + PLOT_HEIGHT}"'
            parts.append(f'<line class="grid" x1="{x}" x2="{x}" {ends}/>')
            if step <= last:
                middle = self.x(step + 0.5)
                parts.append(words_at(middle, MARGIN + PLOT_HEIGHT + 16, str(step), "s", "middle"))
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

    def spot(self, buffer: Buffer) -> tuple[float, float, float, float]:
        """Left, top, width and height of a buffer's box."""
        top = self.y(self.high(buffer))
        width = self.column * (buffer.last - buffer.first + 1)
        return self.x(buffer.first), top, width, self.y(self.low(buffer)) - top

    def has_room_above(self, buffer: Buffer) -> bool:
        """Whether a line of text fits between a box and what lies above it."""
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

    def box(self, place: int, buffer: Buffer) -> str:
        x, top, width, height = self.spot(buffer)
        gap = min(1, width / 8)
        drawn = rect(x + gap, top, width - 2 * gap, height, f"buf c{place % 6}", min(3, height / 2))
        parts = [drawn, *self.name(buffer)]
        if height < THIN:
            parts.append(rect(x, top + (height - THIN) / 2, width, THIN, "hit", 0))
        title = (
            f"{buffer.name}: {buffer.contents or 'tiles'}\n"
            f"{buffer.nbytes:,} bytes, {buffer.padded - buffer.nbytes} of padding\n"
            f"[{buffer.offset}, {buffer.end}) of {buffer.output or 'the workspace'} "
            f"in steps {buffer.first} to {buffer.last}\n"
            f"made by {buffer.producer or '-'}, read by {some(buffer.consumers)}\n"
            f"shares space with {buffer.sharing or 'nothing'}"
        )
        return hover(title, "".join(parts), buffer.name, *(part.name for part in buffer.parts))

    def name(self, buffer: Buffer) -> list[str]:
        """The name in a box, or above it, where it fits."""
        x, top, width, height = self.spot(buffer)
        if width < NARROW:
            return []
        name = _clipped(buffer.name, int((width - 8) / CHAR))
        if height >= THIN:
            return [words_at(x + width / 2, top + height / 2 + 4, name, "t", "middle")]
        if self.has_room_above(buffer):
            return [words_at(x + width / 2, top - 4, name, "s", "middle")]
        return []
