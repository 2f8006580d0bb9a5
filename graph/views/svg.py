"""Pictures: self-contained SVG without scripts, light and dark by the reader's preference.

Boxes carry `<title>` elements, which browsers show on hovering.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from .text import attr_words, dims, human_bytes, places, plan_summary, storage_words, xml_words

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value
    from ..planner.plan import Buffer, WorkspacePlan

STYLE = """
.bg{fill:#fff}.t{fill:#1f2328;font:12px ui-monospace,monospace}.b{font-weight:700}
.s{fill:#59636e;font:11px ui-monospace,monospace}.box{fill:#f6f8fa;stroke:#59636e}
.arg{fill:#ddf4ff;stroke:#0969da}.out{fill:#dafbe1;stroke:#1a7f37}
.copy{fill:#fff1e5;stroke:#bc4c00}.edge{fill:none;stroke:#59636e}.head{fill:#59636e}
.loop{fill:none;stroke:#8250df;stroke-dasharray:6 4}.lt{fill:#8250df}
.grid{stroke:#d1d9e0}.peak{fill:#ffebe9}.bound{stroke:#1a7f37;stroke-dasharray:6 4}
.pt{fill:#cf222e}.bt{fill:#1a7f37}.c0{fill:#b6d7ff}.c1{fill:#c8eecf}.c2{fill:#ffe0b3}
.c3{fill:#e3d1ff}.c4{fill:#ffd0dd}.c5{fill:#c2ecec}.buf{stroke:#59636e}
.hit{fill:transparent}
@media (prefers-color-scheme:dark){
.bg{fill:#0d1117}.t{fill:#f0f6fc}.s{fill:#9198a1}.box{fill:#151b23;stroke:#9198a1}
.arg{fill:#121d2f;stroke:#4493f8}.out{fill:#12261e;stroke:#3fb950}
.copy{fill:#2e1b0e;stroke:#db6d28}.edge{stroke:#9198a1}.head{fill:#9198a1}
.loop{stroke:#ab7df8}.lt{fill:#ab7df8}.grid{stroke:#3d444d}.peak{fill:#3a1417}
.bound{stroke:#3fb950}.pt{fill:#ff7b72}.bt{fill:#3fb950}.c0{fill:#1f4f8f}.c1{fill:#1d5a2c}
.c2{fill:#6b4a12}.c3{fill:#4c3486}.c4{fill:#73304a}.c5{fill:#1c5656}.buf{stroke:#9198a1}}
"""
CHAR = 7.3  # width of a monospaced character at 12 px
LINE = 16
GAP_X, GAP_Y, MARGIN = 28, 44, 24


def _text(x: float, y: float, words: str, style: str = "t", anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} class="{style}">{xml_words(words)}</text>'


def _rect(x: float, y: float, w: float, h: float, style: str, radius: float = 4) -> str:
    box = f'x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}"'
    return f'<rect {box} rx="{radius:.3g}" class="{style}"/>'


def _hover(title: str, content: str, *names: str) -> str:
    """Details on hovering."""
    return f"<g{_mark(names)}><title>{xml_words(title)}</title>{content}</g>"


def _mark(names: Sequence[str]) -> str:
    """The nodes and values that something shows, for scripts to find."""
    return f' data-names="{xml_words(" ".join(dict.fromkeys(names)))}"' if names else ""


def _document(width: float, height: float, title: str, body: Sequence[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{xml_words(title)}</title>",
            f"<style>{STYLE}</style>",
            _rect(0, 0, width, height, "bg", 0),
            *body,
            "</svg>",
        ]
    )


# --- Graph ------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Box:
    """Something to place: a node, an argument, or (without lines) the bend of a long edge."""

    lines: list[str] = field(default_factory=list)
    style: str = "box"
    title: str = ""
    loop: int | None = None
    names: tuple[str, ...] = ()
    reads: list[tuple[str, ...]] = field(default_factory=list)  # names of what each edge carries
    rank: int = 0
    x: float = 0
    y: float = 0
    bend: float = 0  # height of the rank that a bend passes
    sources: list[_Box] = field(default_factory=list)

    @property
    def width(self) -> float:
        return max((len(line) for line in self.lines), default=0) * CHAR + 20 * bool(self.lines)

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 12 * bool(self.lines)

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def graph_to_svg(graph: Graph, plan: WorkspacePlan | None = None) -> str:
    boxes = _boxes(graph, places(plan))
    ranks = _ranked(boxes)
    width = _place(ranks)
    height = max((box.y + box.height for rank in ranks for box in rank), default=0) + MARGIN
    drawn = [box for box in boxes if box.lines]
    body = [_frame(drawn, loop) for loop in sorted({b.loop for b in drawn if b.loop is not None})]
    body += [_edge(box, place) for box in drawn for place in range(len(box.sources))]
    body += [_draw(box) for box in drawn]
    return _document(width, height, "executor graph", body)


def _boxes(graph: Graph, offsets: dict[str, str]) -> list[_Box]:
    """A box per argument and node, linked to the boxes that they read."""
    made: dict[int, _Box] = {}
    boxes = []
    for value in graph.values:
        if value.storage in ("input", "constant") and not value.is_view:
            made[value.id] = _argument(graph, value, "arg")
            boxes.append(made[value.id])
    for node in graph.nodes:
        box = _node_box(graph, node, offsets)
        box.sources = [made[graph.root(id).id] for id in node.inputs]
        box.reads = [(graph.root(id).name, graph.value(id).name) for id in node.inputs]
        boxes.append(box)
        made[node.output] = box
    for id in graph.outputs:
        out = _argument(graph, graph.value(id), "out")
        out.sources.append(made[id])
        out.reads.append((graph.value(id).name,))
        boxes.append(out)
    return boxes


def _argument(graph: Graph, value: Value, style: str) -> _Box:
    lines = [value.name, f"{value.dtype.name}{dims(value.shape)}", f"strides {dims(value.strides)}"]
    title = f"{storage_words(graph, value)}, {human_bytes(value.nbytes)}"
    if value.alias_of is not None:
        lines.append(f"at {graph.value(value.alias_of).name}")
    return _Box(lines, style, title, names=(value.name,))


def _node_box(graph: Graph, node: Node, offsets: dict[str, str]) -> _Box:
    out = graph.value(node.output)
    place = "tile" if out.storage == "tile" else f"{out.storage} {human_bytes(out.nbytes)}"
    if out.name in offsets:
        place += f" at {offsets[out.name]}"
    name = node.name if node.name == out.name else f"{node.name} > {out.name}"
    lines = [name, node.kind, f"{out.dtype.name}{dims(out.shape)}", place]
    if not out.is_contiguous:
        lines.insert(3, f"strides {dims(out.strides)}")
    views = [graph.value(id) for id in node.inputs if graph.value(id).is_view]
    lines += [f"reads {graph.root(v.id).name} by {dims(v.strides)}" for v in views]
    traffic = f"reads {graph.bytes_read(node):,} bytes, writes {graph.bytes_written(node):,}"
    title = "\n".join([f"{node.kind} {node.name}", str(out), storage_words(graph, out), traffic])
    if attr_words(node):
        title += f"\n{attr_words(node)}"
    style = "copy" if node.is_forced_copy else "box"
    return _Box(lines, style, title, loop=node.attr("loop"), names=(node.name, out.name))


def _ranked(boxes: list[_Box]) -> list[list[_Box]]:
    """Boxes by their distance from the inputs, with bends where an edge crosses a rank."""
    for box in boxes:
        box.rank = max((source.rank + 1 for source in box.sources), default=0)
    ranks: list[list[_Box]] = [[] for _ in range(max((b.rank for b in boxes), default=0) + 1)]
    for box in boxes:
        for place, source in enumerate(box.sources):
            while source.rank + 1 < box.rank:
                source = _Box(rank=source.rank + 1, sources=[source])
                ranks[source.rank].append(source)
            box.sources[place] = source
        ranks[box.rank].append(box)
    return ranks


def _place(ranks: list[list[_Box]]) -> float:
    """Give every box its place, each rank centred and ordered after what it reads."""
    widths = [sum(b.width + GAP_X for b in rank) - GAP_X for rank in ranks]
    total = max([*widths, 160])
    y: float = MARGIN
    for rank, width in zip(ranks, widths, strict=True):
        rank.sort(key=_pull)
        x = MARGIN + (total - width) / 2
        height = max((box.height for box in rank), default=0)
        for box in rank:
            box.x, box.y, box.bend = x, y, height
            x += box.width + GAP_X
        y += height + GAP_Y
    return total + 2 * MARGIN


def _pull(box: _Box) -> float:
    if not box.sources:
        return 0
    return sum(source.middle for source in box.sources) / len(box.sources)


def _edge(box: _Box, place: int) -> str:
    """A curve from a source of `box`, straight through the bends, to a place on its top."""
    source = box.sources[place]
    end = (box.x + box.width * (place + 1) / (len(box.sources) + 1), box.y)
    stretches = [end]
    while not source.lines:
        stretches += [(source.middle, source.y + source.bend), (source.middle, source.y)]
        (source,) = source.sources
    stretches.append((source.middle, source.y + source.height))
    stretches.reverse()
    path = f"M{stretches[0][0]:.1f},{stretches[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(stretches):
        half = (y0 + y1) / 2
        path += f" C{x0:.1f},{half:.1f} {x1:.1f},{half:.1f} {x1:.1f},{y1:.1f}"
    head = f'<path class="head" d="M{end[0] - 4:.1f},{end[1] - 7:.1f}h8l-4,7z"/>'
    return f'<g{_mark(box.reads[place])}><path class="edge" d="{path}"/>{head}</g>'


def _draw(box: _Box) -> str:
    parts = [_rect(box.x, box.y, box.width, box.height, box.style, 4 if box.style == "box" else 14)]
    for place, line in enumerate(box.lines):
        style = "t b" if place == 0 else "s"
        parts.append(_text(box.middle, box.y + 18 + place * LINE, line, style, "middle"))
    return _hover(box.title, "".join(parts), *box.names)


def _frame(boxes: list[_Box], loop: int) -> str:
    """The dashed line around the nodes of a tile loop."""
    inside = [box for box in boxes if box.loop == loop]
    left = min(box.x for box in inside) - 12
    top = min(box.y for box in inside) - 14
    right = max(box.x + box.width for box in inside) + 12
    bottom = max(box.y + box.height for box in inside) + 22
    words = _text(left + 8, bottom - 7, f"tile loop {loop}", "s lt")
    return _rect(left, top, right - left, bottom - top, "loop", 8) + words


# --- Plan -------------------------------------------------------------------------------------

PLOT_HEIGHT = 320
LEFT = 92
WIDEST = 56_000  # of a chart: beyond, steps are narrow and not all of them are numbered
NUMBERED = 1000
LISTED = 8  # steps that stand one below the other
THIN = 14  # a box of less height has its name above it, and a margin that the pointer finds


def plan_to_svg(plan: WorkspacePlan) -> str:
    if not plan.buffers or not plan.size:
        words = _text(MARGIN, MARGIN + 12, "workspace 0 bytes: nothing needs space", "t b")
        return _document(420, 64, "workspace plan", [words])
    first = min(buffer.first for buffer in plan.buffers)
    last = max([*(buffer.last for buffer in plan.buffers), len(plan.steps) - 1])
    count = last - first + 1
    column = min(max(56.0, min(160.0, 880 / count)), WIDEST / count)
    right = LEFT + column * (last - first + 1)
    chart = _Chart(plan, first, column, right)
    room = max(int((right - LEFT) / CHAR), 80)
    summary = [
        line
        for words in plan_summary(plan).split("\n")
        for line in textwrap.wrap(words, room, subsequent_indent="  ")
    ]
    below = [(line, "t") for line in summary] + [(line, "s") for line in _legend(plan, room)]
    foot = MARGIN + PLOT_HEIGHT + 44
    width = max(right + 120, *(LEFT + len(line) * CHAR + MARGIN for line, _ in below))
    body = [
        *chart.frame(last),
        *(chart.box(place, buffer) for place, buffer in enumerate(plan.buffers)),
        *chart.limits(),
        *(_text(LEFT, foot + 18 * i, line, style) for i, (line, style) in enumerate(below)),
    ]
    return _document(width, foot + 18 * len(below) + 8, "workspace plan", body)


def _legend(plan: WorkspacePlan, room: int) -> list[str]:
    """The steps' names; many of them in columns, counted downwards."""
    names = [f"{step}: {name}" for step, name in enumerate(plan.steps)]
    wide = max(map(len, names), default=0) + 3
    columns = max(room // wide, 1) if len(names) > LISTED else 1
    rows = -(-len(names) // columns)
    # Spaces would shrink to one.
    lines = ("".join(n.ljust(wide, "\u00a0") for n in names[row::rows]) for row in range(rows))
    return [line.rstrip() for line in lines]


@dataclass
class _Chart:
    """The coordinates of the plan's picture: time across, offset upwards."""

    plan: WorkspacePlan
    first: int
    column: float
    right: float

    def x(self, step: float) -> float:
        return LEFT + (step - self.first) * self.column

    def y(self, offset: float) -> float:
        return MARGIN + PLOT_HEIGHT * (1 - offset / self.plan.size)

    def frame(self, last: int) -> list[str]:
        peak = self.plan.peak_step
        parts = [_rect(self.x(peak), 0, self.column, PLOT_HEIGHT + 2 * MARGIN, "peak", 0)]
        middle = self.x(peak) + self.column / 2
        parts.append(_text(middle, MARGIN - 8, "peak", "s pt", "middle"))
        every = -(-(last + 1 - self.first) // NUMBERED)
        for step in range(self.first, last + 2, every):
            x = f"{self.x(step):.1f}"
            ends = f'y1="{MARGIN}" y2="{MARGIN + PLOT_HEIGHT}"'
            parts.append(f'<line class="grid" x1="{x}" x2="{x}" {ends}/>')
            if step <= last:
                middle = self.x(step + 0.5)
                parts.append(_text(middle, MARGIN + PLOT_HEIGHT + 16, str(step), "s", "middle"))
        for quarter in range(5):
            offset = self.plan.size * quarter // 4
            words = human_bytes(offset)
            parts.append(_text(LEFT - 8, self.y(offset) + 4, words, "s", "end"))
        return parts

    def limits(self) -> list[str]:
        y = self.y(self.plan.lower_bound)
        ends = f'x1="{LEFT}" x2="{self.right:.1f}" y1="{y:.1f}" y2="{y:.1f}"'
        line = f'<line class="bound" stroke-width="2" {ends}/>'
        return [line, _text(self.right + 8, y + 4, "lower bound", "s bt")]

    def spot(self, buffer: Buffer) -> tuple[float, float, float, float]:
        """Left, top, width and height of a buffer's box."""
        top = self.y(buffer.end)
        width = self.column * (buffer.last - buffer.first + 1)
        return self.x(buffer.first), top, width, self.y(buffer.offset) - top

    def has_room_above(self, buffer: Buffer) -> bool:
        """Whether a line of text fits between a box and what lies above it."""
        top = self.y(buffer.end)
        above = [
            self.y(other.offset)
            for other in self.plan.buffers
            if other is not buffer
            and other.first <= buffer.last
            and buffer.first <= other.last
            and self.y(other.end) < top
        ]
        return all(bottom <= top - LINE for bottom in [*above, MARGIN])

    def box(self, place: int, buffer: Buffer) -> str:
        x, top, width, height = self.spot(buffer)
        parts = [_rect(x + 1, top, width - 2, height, f"buf c{place % 6}", min(3, height / 2))]
        room = int((width - 10) / CHAR)
        name = buffer.name if len(buffer.name) <= room else buffer.name[: room - 1] + "…"
        if height >= THIN:
            parts.append(_text(x + width / 2, top + height / 2 + 4, name, "t", "middle"))
        elif self.has_room_above(buffer):
            parts.append(_text(x + width / 2, top - 4, name, "s", "middle"))
        if height < THIN:
            parts.append(_rect(x, top + (height - THIN) / 2, width, THIN, "hit", 0))
        shared = buffer.sharing or "nothing"
        title = (
            f"{buffer.name}: {buffer.contents or 'tiles'}\n"
            f"{buffer.nbytes:,} bytes, {buffer.padded - buffer.nbytes} of padding\n"
            f"[{buffer.offset}, {buffer.end}) in steps {buffer.first} to {buffer.last}\n"
            f"made by {buffer.producer or '-'}, read by {', '.join(buffer.consumers) or '-'}\n"
            f"shares space with {shared}"
        )
        return _hover(title, "".join(parts), buffer.name, *(part.name for part in buffer.parts))
