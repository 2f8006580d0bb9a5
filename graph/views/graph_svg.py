"""Pictures of graphs: boxes by their distance from the inputs, arrows from who makes to who reads.

What is long or wide is drawn as one box that lists what is in it: tile loops, chains, neighbours
that read and are read alike, and stretches of graphs that are larger than anybody reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from .dot import gathered
from .svg import CHAR, LINE, MARGIN, document, hover, mark, rect, words_at
from .text import (
    Places,
    arguments,
    attr_words,
    dims,
    human_bytes,
    kind_words,
    places,
    some,
    storage_words,
    view_words,
    written_words,
)

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value
    from ..planner.plan import WorkspacePlan

GAP_X, GAP_Y = 28, 44
WIDEST = 1500  # pixels of a row of boxes: what does not fit goes into another one
MOST_TOGETHER = 8  # boxes of a loop, a chain or alike neighbours that are drawn one by one
MOST_BOXES = 400  # beyond, a box stands for several nodes, whatever they are
MOST_LISTED = 5  # names in the lines of a box that stands for several
MOST_DETAILS = 3  # results, and views that are read, in the lines of a node
MOST_CHARS = 44  # of a line in a box
MOST_BENDS = 4  # ranks that an arrow goes around; longer ones go straight, behind the boxes


@dataclass(eq=False)
class _Box:
    """Something to place: nodes, arguments, or (without lines) the bend of an arrow."""

    lines: list[str] = field(default_factory=list)
    style: str = "box"
    title: str = ""
    loop: int | None = None
    names: tuple[str, ...] = ()
    like: Hashable = None  # neighbours that are alike have it in common
    count: int = 1
    sources: list[tuple[_Box, tuple[str, ...]]] = field(default_factory=list)  # and what they bring
    rank: int = -1
    x: float = 0
    y: float = 0
    bend: float = 0  # height of the row that a bend passes

    @property
    def width(self) -> float:
        return max(map(len, self.lines), default=0) * CHAR + 20 * bool(self.lines)

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 12 * bool(self.lines)

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def is_node(self) -> bool:
        return self.style in ("box", "copy")


def graph_to_svg(graph: Graph, plan: WorkspacePlan | None = None) -> str:
    boxes = _collapsed(_boxes(graph, places(plan)))
    rows = _rows(_ranked(boxes))
    width = _place(rows)
    height = max((box.y + box.height for row in rows for box in row), default=0) + MARGIN
    loops: dict[int, list[_Box]] = {}
    for box in boxes:
        if box.loop is not None:
            loops.setdefault(box.loop, []).append(box)
    body = [_frame(inside, loop) for loop, inside in sorted(loops.items())]
    body += [_arrow(box, place) for box in boxes for place in range(len(box.sources))]
    body += map(_draw, boxes)
    return document(width, height, "executor graph", body)


# --- Boxes ------------------------------------------------------------------------------------


def _boxes(graph: Graph, where: Places) -> list[_Box]:
    """A box per argument and node, and one for each value that several nodes write.

    In an order in which everything is behind what it reads; only what is written further after
    it was read is behind none of its later writers.
    """
    made = {value.id: _argument(graph, value, "arg") for value in arguments(graph)}
    boxes = list(made.values())
    writers = graph.writers()
    hubs = {value.id: _argument(graph, value, "out") for value in gathered(graph)}
    waiting = dict(hubs)
    for node in graph.nodes:
        box = _node_box(graph, node, where)
        for id in node.inputs:
            root = graph.root(id)
            if root.id in waiting and len(writers[root.id]) > 1:
                boxes.append(waiting.pop(root.id))
                made[root.id] = boxes[-1]
            box.sources.append((made[root.id], _both(root.name, graph.value(id).name)))
        boxes.append(box)
        for id in node.outputs:
            root = graph.root(id)
            if root.id in hubs:
                hubs[root.id].sources.append((box, _both(root.name, graph.value(id).name)))
            made.setdefault(root.id, box)
    return [*boxes, *waiting.values()]


def _both(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _argument(graph: Graph, value: Value, style: str) -> _Box:
    lines = [value.name, f"{value.dtype.name}{dims(value.shape)}", f"strides {dims(value.strides)}"]
    title = f"{value.name}\n{storage_words(graph, value)}, {human_bytes(value.nbytes)}"
    if value.alias_of is not None:
        lines.append(f"at {graph.value(value.alias_of).name}")
    like = (style, value.storage)
    return _Box([*map(_clipped, lines)], style, title, names=(value.name,), like=like)


def _node_box(graph: Graph, node: Node, where: Places) -> _Box:
    outs = [graph.value(id) for id in node.outputs]
    lines = [written_words(graph, node), kind_words(node)]
    for out in outs[:MOST_DETAILS]:
        lines += _result_lines(graph, out, where)
    lines += _more(outs, "results")
    views = [value for value in map(graph.value, node.inputs) if value.is_view]
    lines += [
        f"reads {graph.root(v.id).name} by {dims(v.strides)}{f' at {v.offset}' * bool(v.offset)}"
        for v in views[:MOST_DETAILS]
    ]
    lines += _more(views, "views")
    style = "copy" if node.is_forced_copy else "box"
    names = (node.name, *(out.name for out in outs))
    like = (node.kind, node.attr("kernel"), node.domain, tuple((v.shape, v.dtype) for v in outs))
    lines = [*map(_clipped, lines)]
    return _Box(lines, style, _node_title(graph, node), node.attr("loop"), names, like)


def _result_lines(graph: Graph, out: Value, where: Places) -> list[str]:
    """What a result is, and where it lies."""
    place = "tile" if out.storage == "tile" else f"{out.storage} {human_bytes(out.nbytes)}"
    if out.is_view:
        place = view_words(graph, out)
    offset = where.of(graph, out)
    strides = [] if out.is_contiguous else [f"strides {dims(out.strides)}"]
    place += f" at {offset}" if offset and not out.is_view else f", byte {offset}" * bool(offset)
    return [f"{out.dtype.name}{dims(out.shape)}", *strides, place]


def _more(things: Sequence[object], what: str) -> list[str]:
    left = len(things) - MOST_DETAILS
    return [f"+{left} more {what}"] if left > 0 else []


def _node_title(graph: Graph, node: Node) -> str:
    """What hovering over a node shows."""
    outs = [graph.value(id) for id in node.outputs]
    lines = [f"{kind_words(node)} {node.name}"]
    lines += [f"{out.name}: {out}, {storage_words(graph, out)}" for out in outs]
    lines.append(f"reads {graph.bytes_read(node):,} bytes, writes {graph.bytes_written(node):,}")
    return "\n".join([*lines, *filter(None, [attr_words(node)]), *node.origin])


def _clipped(line: str) -> str:
    return line if len(line) <= MOST_CHARS else line[: MOST_CHARS - 1] + "…"


# --- Several in one ---------------------------------------------------------------------------


def _collapsed(boxes: list[_Box]) -> list[_Box]:
    """The boxes, several of them in one where there are many of a kind."""
    for groups in (_loops, _chains, _alike):
        boxes = _merged(boxes, [group for group in groups(boxes) if len(group) > MOST_TOGETHER])
    if sum(box.is_node for box in boxes) <= MOST_BOXES:
        return boxes
    boxes = _merged(boxes, _stretches(boxes))
    return _merged(boxes, [group for group in _alike(boxes) if len(group) > 1])


def _loops(boxes: list[_Box]) -> Iterator[list[_Box]]:
    """The nodes of each tile loop."""
    return _grouped(boxes, lambda box: box.loop)


def _chains(boxes: list[_Box]) -> Iterator[list[_Box]]:
    """Nodes of which each reads one other node, and is the only one that reads that."""
    targets = _targets(boxes)
    follows = {}
    for box in boxes:
        read = {source for source, _ in box.sources if source.is_node}
        if len(read) == 1 and box.is_node and box.loop is None:
            (source,) = read
            if source.loop is None and len(targets[source]) == 1:
                follows[source] = box
    heads = follows.keys() - set(follows.values())
    for head in (box for box in boxes if box in heads):
        chain = [head]
        while chain[-1] in follows:
            chain.append(follows[chain[-1]])
        yield chain


def _alike(boxes: list[_Box]) -> Iterator[list[_Box]]:
    """Neighbours of a kind that read the same and are read by the same."""
    targets = _targets(boxes)
    return _grouped(
        [box for box in boxes if box.loop is None],
        lambda box: (
            (box.like, frozenset(source for source, _ in box.sources), frozenset(targets[box]))
            if box.like is not None
            else None
        ),
    )


def _stretches(boxes: list[_Box]) -> Iterator[list[_Box]]:
    """Nodes that run after each other, so many at a time that not too many boxes remain."""
    nodes = [box for box in boxes if box.is_node]
    each = -(-len(nodes) // MOST_BOXES)
    return (nodes[start : start + each] for start in range(0, len(nodes), each))


def _grouped(boxes: Iterable[_Box], key: Callable[[_Box], Hashable | None]) -> Iterator[list[_Box]]:
    """Boxes with the same key, those with None left out."""
    groups: dict[Hashable, list[_Box]] = {}
    for box in boxes:
        if (found := key(box)) is not None:
            groups.setdefault(found, []).append(box)
    return iter(groups.values())


def _targets(boxes: list[_Box]) -> dict[_Box, set[_Box]]:
    found: dict[_Box, set[_Box]] = {box: set() for box in boxes}
    for box in boxes:
        for source, _ in box.sources:
            found[source].add(box)
    return found


def _merged(boxes: list[_Box], groups: Iterable[list[_Box]]) -> list[_Box]:
    """The boxes with each group as one, in place of its first; arrows lead where they led."""
    now: dict[_Box, _Box] = {}
    for group in groups:
        together = _together(group)
        now |= dict.fromkeys(group, together)
    result = list(dict.fromkeys(now.get(box, box) for box in boxes))
    if not now:
        return boxes
    arrows: dict[_Box, dict[_Box, dict[str, None]]] = {box: {} for box in result}
    for box in boxes:
        target = now.get(box, box)
        for source, names in box.sources:
            begin = now.get(source, source)
            if begin is not target:
                arrows[target].setdefault(begin, {}).update(dict.fromkeys(names))
    for target, sources in arrows.items():
        target.sources = [(source, tuple(names)) for source, names in sources.items()]
    return result


def _together(group: list[_Box]) -> _Box:
    """One box for several, which lists the first and says how many there are."""
    if len(group) == 1:
        return group[0]
    first, count = group[0], sum(box.count for box in group)
    style = first.style if first.is_node is group[-1].is_node else "box"
    loops = {box.loop for box in group}
    loop = first.loop if len(loops) == 1 else None
    what = "nodes" if first.is_node else "constants" if "constant" in str(first.like) else "values"
    head = f"{count} {what}" if loop is None else f"{count} nodes of tile loop {loop}"
    names = [box.lines[0] if box.count == 1 else f"{box.names[0]}, …" for box in group]
    lines = [head, *names[:MOST_LISTED]]
    lines += [f"+{len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
    title = f"{head}: {some([box.names[0] for box in group], 40)}"
    known = tuple(dict.fromkeys(name for box in group for name in box.names))
    lines = [*map(_clipped, lines)]
    return _Box(lines, style, title, loop, known, ("several", first.like, style), count)


# --- Places -----------------------------------------------------------------------------------


def _ranked(boxes: list[_Box]) -> list[list[_Box]]:
    """Boxes by their distance from the inputs, with bends where an arrow crosses a rank."""
    _rank(boxes)
    ranks: list[list[_Box]] = [[] for _ in range(max((b.rank for b in boxes), default=0) + 1)]
    for box in boxes:
        ranks[box.rank].append(box)
    for box in boxes:
        for place, (source, names) in enumerate(box.sources):
            if 1 < box.rank - source.rank <= MOST_BENDS + 1:
                for rank in range(source.rank + 1, box.rank):
                    source = _Box(rank=rank, sources=[(source, names)])
                    ranks[rank].append(source)
                box.sources[place] = (source, names)
    return ranks


def _rank(boxes: list[_Box]) -> None:
    """Give every box its rank, behind all that it reads; arguments stand above who reads them.

    What goes round, because something is written after it was read, begins with its first box.
    """
    targets = _targets(boxes)
    missing = {box: len({source for source, _ in box.sources}) for box in boxes}
    ready = deque(box for box in boxes if not missing[box])
    rest = iter(boxes)
    for _ in boxes:
        box = ready.popleft() if ready else next(box for box in rest if box.rank < 0)
        box.rank = max((source.rank + 1 for source, _ in box.sources), default=0)
        for target in targets[box]:
            missing[target] -= 1
            if not missing[target] and target.rank < 0:
                ready.append(target)
    for box in boxes:
        if not box.sources and targets[box]:
            box.rank = max(0, min(target.rank for target in targets[box]) - 1)


def _rows(ranks: list[list[_Box]]) -> list[list[_Box]]:
    """Ranks cut into rows that are not too wide."""
    rows = []
    for rank in ranks:
        row: list[_Box] = []
        width = 0.0
        for box in rank:
            if row and width + box.width > WIDEST:
                rows.append(row)
                row, width = [], 0.0
            row.append(box)
            width += box.width + GAP_X
        rows.append(row)
    return rows


def _place(rows: list[list[_Box]]) -> float:
    """Give every box its place, each row centred and ordered after what it reads."""
    widths = [sum(b.width + GAP_X for b in row) - GAP_X for row in rows]
    total = max([*widths, 160])
    y: float = MARGIN
    for row, width in zip(rows, widths, strict=True):
        row.sort(key=_pull)
        x = MARGIN + (total - width) / 2
        height = max((box.height for box in row), default=0)
        for box in row:
            box.x, box.y, box.bend = x, y, height
            x += box.width + GAP_X
        y += height + GAP_Y
    return total + 2 * MARGIN


def _pull(box: _Box) -> float:
    if not box.sources:
        return 0
    return sum(source.middle for source, _ in box.sources) / len(box.sources)


# --- Drawing ----------------------------------------------------------------------------------


def _arrow(box: _Box, place: int) -> str:
    """A curve from a source of `box`, straight through the bends, to a place on its top."""
    source, names = box.sources[place]
    end = (box.x + box.width * (place + 1) / (len(box.sources) + 1), box.y)
    stretches = [end]
    while not source.lines:
        stretches += [(source.middle, source.y + source.bend), (source.middle, source.y)]
        ((source, _),) = source.sources
    stretches.append((source.middle, source.y + source.height))
    stretches.reverse()
    path = f"M{stretches[0][0]:.1f},{stretches[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(stretches):
        half = (y0 + y1) / 2
        path += f" C{x0:.1f},{half:.1f} {x1:.1f},{half:.1f} {x1:.1f},{y1:.1f}"
    head = f'<path class="head" d="M{end[0] - 4:.1f},{end[1] - 7:.1f}h8l-4,7z"/>'
    return f'<g{mark(names)}><path class="edge" d="{path}"/>{head}</g>'


def _draw(box: _Box) -> str:
    parts = [rect(box.x, box.y, box.width, box.height, box.style, 4 if box.is_node else 14)]
    for place, line in enumerate(box.lines):
        style = "t b" if place == 0 else "s"
        parts.append(words_at(box.middle, box.y + 18 + place * LINE, line, style, "middle"))
    return hover(box.title, "".join(parts), *box.names)


def _frame(inside: list[_Box], loop: int) -> str:
    """The dashed line around the nodes of a tile loop."""
    left = min(box.x for box in inside) - 12
    top = min(box.y for box in inside) - 14
    right = max(box.x + box.width for box in inside) + 12
    bottom = max(box.y + box.height for box in inside) + 22
    words = words_at(left + 8, bottom - 7, f"tile loop {loop}", "s lt")
    return rect(left, top, right - left, bottom - top, "loop", 8) + words
