"""Layered layout of boxes in nested groups: no edge crosses a box, no frame holds a stranger.

Each group is laid out by itself, from the innermost out, as rows of what it holds.  A group is then
one item of the group around it, so frames contain exactly what belongs to them and cannot overlap.
An edge that passes a row of items has a channel of its own in that row; between rows it bends, where
there is nothing else.  It enters and leaves a group through a port on its frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .boxes import GAP_Y, Box, Group

GAP_X = 22  # between the items of a row
CHANNEL = 8  # room on both sides of an edge that passes a row
PAD, HEAD = 12, 22  # inside a frame: at its sides, above its first row
WIDEST = 1500  # pixels of a row: further items go into another one
BESIDE_EDGES = 1000  # of a row of several, which edges to the others pass
SWEEPS = 4  # down and up, to order rows
Point = tuple[float, float]


@dataclass(eq=False, slots=True)
class Port:
    """Place where edges pass the frame of a group: those of one source on one side."""

    on_top: bool
    x: float = 0


@dataclass(eq=False, slots=True)
class Bend:
    """The channel of a wire through one row."""

    x: float = 0


Item = Box | Group | Port
Entry = Item | Bend


@dataclass(eq=False, slots=True)
class Wire:
    """Connection from one item down to others of the same group; `ups` go from the lowest up."""

    net: Net
    upper: Item
    lower: list[Item] = field(default_factory=list)
    bends: list[Bend] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Net:
    """The edges of one source, or one edge that leads back up."""

    source: Box
    back_to: Box | None = None


@dataclass(slots=True)
class Level:
    """The inside of a group while it is laid out."""

    group: Group
    items: list[Item] = field(default_factory=list)
    wires: dict[tuple[Net, Item], Wire] = field(default_factory=dict)
    rows: list[list[Entry]] = field(default_factory=list)
    tops: list[float] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    row_of: dict[Item, int] = field(default_factory=dict)


class Layout:
    """Places of boxes, frames and edges.

    Parameters
    ----------
    boxes : sequence of Box
        With their sizes; each names the groups that it is in, the outermost first.

    Attributes
    ----------
    groups : list of Group
        Outer ones before those inside.
    edges : list of (Box, int)
        The box that each edge leads to, and the place among its sources.
    width, height : float
        Of everything that `place` placed.
    """

    def __init__(self, boxes: Sequence[Box]):
        self.boxes = boxes
        self.root = Group("all", "")
        self.levels: dict[Group, Level] = {self.root: Level(self.root)}
        for box in boxes:
            around = self.root
            for group in box.path:
                if group not in self.levels:
                    self.levels[group] = Level(group)
                    self.levels[around].items.append(group)
                around = group
            self.levels[around].items.append(box)
        self.groups = [group for group in self.levels if group is not self.root]
        self.ports: dict[tuple[Net, Group, bool], Port] = {}
        self.ends: dict[tuple[Item, bool], list[tuple[Wire, int]]] = {}
        self.attached: dict[tuple[Wire, Item, bool], float] = {}
        self.edges = [(box, at) for box in boxes for at in range(len(box.sources))]
        self.width = self.height = 0.0
        self._wire_up()

    def place(self, left: float, top: float) -> None:
        """Give everything its place in a picture that begins at a corner."""
        for group in reversed(list(self.levels)):
            self._lay_out(self.levels[group])
        self._move(self.root, left, top)
        self.width, self.height = self.root.width, self.root.height

    # --- What is connected ------------------------------------------------------------------------

    def _wire_up(self) -> None:
        """Wires of every level, with ports where edges pass frames."""
        within: dict[Group, dict[Item, dict[Item, None]]] = {group: {} for group in self.levels}
        for box, at in self.edges:
            level, begin, end = self._meet(box.sources[at][0], box)
            within[level].setdefault(begin, {})[end] = None
        places = {group: _ordered(self.levels[group].items, within[group]) for group in self.levels}
        self.order = places
        for box, at in self.edges:
            source = box.sources[at][0]
            level, begin, end = self._meet(source, box)
            back = places[level][begin] > places[level][end]
            net = Net(source, box if back else None)
            self._connect(level, net, begin, end, back)
            self._through(net, source, level, back, True)
            self._through(net, box, level, back, False)

    def _meet(self, source: Box, target: Box) -> tuple[Group, Item, Item]:
        """The innermost group that holds both, and what of it holds each."""
        first, second = [*source.path, source], [*target.path, target]
        depth = 0
        while first[depth] is second[depth]:
            depth += 1
        return (source.path[depth - 1] if depth else self.root), first[depth], second[depth]  # type: ignore[return-value]

    def _through(self, net: Net, box: Box, level: Group, back: bool, leaves: bool) -> None:
        """Lead an edge between a box and the frames around it, up to those of a level."""
        path = box.path if level is self.root else box.path[box.path.index(level) + 1 :]
        for depth, group in enumerate(path):
            inside = path[depth + 1] if depth + 1 < len(path) else box
            on_top = leaves is back
            port = self.ports.setdefault((net, group, on_top), Port(on_top))
            pair: tuple[Item, Item] = (inside, port) if leaves else (port, inside)
            self._connect(group, net, pair[0], pair[1], back)

    def _connect(self, level: Group, net: Net, begin: Item, end: Item, back: bool) -> None:
        upper, lower = (end, begin) if back else (begin, end)
        wires = self.levels[level].wires
        wire = wires.setdefault((net, upper), Wire(net, upper))
        if lower not in wire.lower:
            wire.lower.append(lower)

    # --- One level --------------------------------------------------------------------------------

    def _lay_out(self, level: Level) -> None:
        """Give every item of a group its place in it, and the group its size."""
        rows = self._rows(level)
        level.rows = rows
        level.row_of = {item: n for n, row in enumerate(rows) for item in row}  # type: ignore[misc]
        for wire in level.wires.values():
            last = max(level.row_of[item] for item in wire.lower)
            for number in range(level.row_of[wire.upper] + 1, last):
                bend = Bend()
                wire.bends.append(bend)
                rows[number].append(bend)
        above, below = self._neighbours(level)
        for row in rows:
            _spread(row, dict.fromkeys(row, 0.0), keep=True)
        for sweep in range(SWEEPS):
            for sources, ordered in ((above, rows), (below, rows[::-1])):
                for row in ordered:
                    requested = {entry: _mean(sources.get(entry, ()), _x(entry)) for entry in row}
                    _spread(row, requested, keep=sweep == SWEEPS - 1)
        self._attach(level)
        self._measure(level)

    def _rows(self, level: Level) -> list[list[Entry]]:
        """Items by their distance from what is read, in rows that are not too wide."""
        order = self.order[level.group]
        rank = dict.fromkeys(level.items, 0)
        reads: dict[Item, list[Item]] = {}
        for wire in level.wires.values():
            for item in wire.lower:
                reads.setdefault(item, []).append(wire.upper)
        for item in sorted(level.items, key=order.__getitem__):
            known = [rank[source] for source in reads.get(item, ()) if source in rank]
            rank[item] = max(known, default=-1) + 1
        readers: dict[Item, list[int]] = {}
        for wire in level.wires.values():
            readers.setdefault(wire.upper, []).extend([rank.get(item, 1) for item in wire.lower])
        for item in readers.keys() & rank.keys() - reads.keys():  # stands right above its readers
            rank[item] = max(0, min(readers[item]) - 1)
        ranks: list[list[Item]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
        for item in level.items:
            ranks[rank[item]].append(item)
        rows = list(_rows_of(ranks, reads, _readers(rank, level)))
        ports = list(dict.fromkeys(self._ports_of(level)))
        return [
            [port for port in ports if port.on_top],
            *rows,
            [port for port in ports if not port.on_top],
        ]

    def _ports_of(self, level: Level) -> Iterator[Port]:
        for wire in level.wires.values():
            for item in (wire.upper, *wire.lower):
                if isinstance(item, Port):
                    yield item

    def _neighbours(
        self, level: Level
    ) -> tuple[dict[Entry, list[Callable[[], float]]], dict[Entry, list[Callable[[], float]]]]:
        """For each entry of a row where its wires are in the row above, and in the row below."""
        above: dict[Entry, list[Callable[[], float]]] = {}
        below: dict[Entry, list[Callable[[], float]]] = {}
        for wire in level.wires.values():
            for one, other in self._stretches(level, wire):
                above.setdefault(other, []).append(self._pull(wire, one, other, True))
                below.setdefault(one, []).append(self._pull(wire, other, one, False))
        return above, below

    def _stretches(self, level: Level, wire: Wire) -> Iterator[tuple[Entry, Entry]]:
        """Pairs of entries of neighbouring rows that a wire connects."""
        first = level.row_of[wire.upper]
        chain: list[Entry] = [wire.upper, *wire.bends]
        yield from pairwise(chain)
        for item in wire.lower:
            yield chain[level.row_of[item] - first - 1], item

    def _pull(self, wire: Wire, end: Entry, other: Entry, is_above: bool) -> Callable[[], float]:
        """Middle of `other` for a straight stretch to `end`."""
        there = self._offset(wire, end, below=is_above)
        here = self._offset(wire, other, below=not is_above)
        return lambda: _x(end) + there - here

    def _offset(self, wire: Wire, item: Entry, below: bool) -> float:
        """From the middle of an item to where a wire is attached, as far as it is known."""
        if isinstance(item, Group):
            return self.ports[wire.net, item, not below].x - item.width / 2
        return 0

    def _attach(self, level: Level) -> None:
        """Attach the wires of each item: at ports, or spread over a box's side."""
        sides: dict[tuple[Item, bool], list[tuple[float, Wire]]] = {}
        for wire in level.wires.values():
            pairs = list(self._stretches(level, wire))
            for one, other in pairs:
                if one is wire.upper:
                    sides.setdefault((wire.upper, True), []).append((_x(other), wire))
                if other in wire.lower:
                    sides.setdefault((other, False), []).append((_x(one), wire))
        for (item, below), found in sides.items():
            means: dict[Wire, list[float]] = {}
            for x, wire in found:
                means.setdefault(wire, []).append(x)
            wires = sorted(means, key=lambda wire: sum(means[wire]) / len(means[wire]))
            for index, wire in enumerate(wires, 1):
                if isinstance(item, Box):
                    at = item.x - item.width / 2 + item.width * index / (len(wires) + 1)
                else:
                    at = _x(item) + self._offset(wire, item, below)
                self.attached[wire, item, below] = at

    def _measure(self, level: Level) -> None:
        """The size of a group and the places in it, from its upper left corner on."""
        group = level.group
        framed = group is not self.root
        entries = [entry for row in level.rows for entry in row]
        left = min([_x(e) - _width(e) / 2 for e in entries], default=0) - PAD * framed
        right = max([_x(e) + _width(e) / 2 for e in entries], default=0) + PAD * framed
        right = max(right, left + group.least_width)
        for entry in entries:
            entry.x -= left
        for wire in level.wires.values():
            for item, below in ((wire.upper, True), *((item, False) for item in wire.lower)):
                self.attached[wire, item, below] -= left
        y = 0.0
        level.tops, level.heights = [], []
        last = len(level.rows) - 1
        for number, row in enumerate(level.rows):
            height = max([_height(entry) for entry in row], default=0.0)
            if number == 0:
                height = HEAD if framed else 0.0
            level.tops.append(y)
            level.heights.append(height)
            y += height
            if number == 0:
                y += (GAP_Y / 2 if row else 0.0) if framed else 0.0
            elif number < last:
                is_last_row = number == last - 1
                y += (GAP_Y if level.rows[last] else PAD * framed) if is_last_row else GAP_Y
        group.width, group.height = right - left, y

    def _move(self, group: Group, x: float, y: float) -> None:
        """Put a group and what is in it where they are in the picture."""
        group.left, group.y = x, y
        level = self.levels[group]
        for row, top in zip(level.rows, level.tops, strict=True):
            for entry in row:
                if isinstance(entry, Group):
                    self._move(entry, x + entry.x - entry.width / 2, y + top)
                elif isinstance(entry, Box):
                    entry.left, entry.y = x + entry.x - entry.width / 2, y + top

    def leads_back(self, box: Box, at: int) -> bool:
        """Whether an edge leads up, as something is written after it was read."""
        level, begin, end = self._meet(box.sources[at][0], box)
        return self.order[level][begin] > self.order[level][end]

    # --- Edges ------------------------------------------------------------------------------------

    def route(self, box: Box, at: int) -> list[Point]:
        """The points of an edge to a box, from its source on.

        Between points with the same x an edge is straight; between others it bends, in a gap
        between rows.
        """
        source = box.sources[at][0]
        level, begin, end = self._meet(source, box)
        back = self.leads_back(box, at)
        net = Net(source, box if back else None)
        points: list[Point] = []
        path = (
            source.path[source.path.index(level) + 1 :] if level is not self.root else source.path
        )
        for depth in range(len(path) - 1, -1, -1):
            inside = path[depth + 1] if depth + 1 < len(path) else source
            points += self._within(
                path[depth], net, inside, self.ports[net, path[depth], back], back
            )
        points += self._within(level, net, begin, end, back)
        path = box.path[box.path.index(level) + 1 :] if level is not self.root else box.path
        for depth, group in enumerate(path):
            inside = path[depth + 1] if depth + 1 < len(path) else box
            points += self._within(group, net, self.ports[net, group, not back], inside, back)
        return list(dict.fromkeys(points))

    def _within(self, group: Group, net: Net, begin: Item, end: Item, back: bool) -> list[Point]:
        """The part of an edge inside a group."""
        level = self.levels[group]
        upper, lower = (end, begin) if back else (begin, end)
        wire = level.wires[net, upper]
        first, last = level.row_of[upper], level.row_of[lower]
        x = self.attached[wire, upper, True]
        foot = level.tops[first] + level.heights[first]
        points = [(x, level.tops[first] + _height(upper)), (x, foot)]
        if isinstance(upper, Port):
            points[0] = (x, level.tops[first])
        for bend, row in zip(wire.bends, range(first + 1, last), strict=False):
            points += [(bend.x, level.tops[row]), (bend.x, level.tops[row] + level.heights[row])]
        points.append((self.attached[wire, lower, False], level.tops[last]))
        points = [(group.left + x, group.y + y) for x, y in points]
        return points[::-1] if back else points


# --- Rows -----------------------------------------------------------------------------------------


def _x(entry: Entry) -> float:
    return entry.x


def _width(entry: Entry) -> float:
    return entry.width if isinstance(entry, (Box, Group)) else 0.0


def _height(entry: Entry) -> float:
    return entry.height if isinstance(entry, (Box, Group)) else 0.0


def _ordered(items: Sequence[Item], after: dict[Item, dict[Item, None]]) -> dict[Item, int]:
    """The place of each item in an order in which everything is after what it reads.

    What goes round, because something is written after it was read, begins with its first item.
    """
    missing = dict.fromkeys(items, 0)
    for targets in after.values():
        for target in targets:
            missing[target] += 1
    ready = deque(item for item in items if not missing[item])
    rest, found = iter(items), dict[Item, int]()
    for index in range(len(items)):
        while ready and ready[0] in found:
            ready.popleft()
        item = ready.popleft() if ready else next(item for item in rest if item not in found)
        found[item] = index
        for target in after.get(item, ()):
            missing[target] -= 1
            if not missing[target] and target not in found:
                ready.append(target)
    return found


def _readers(rank: dict[Item, int], level: Level) -> dict[Item, list[Item]]:
    """For each item of a level those that read it."""
    found: dict[Item, list[Item]] = {}
    for wire in level.wires.values():
        for item in wire.lower:
            if item in rank:
                found.setdefault(wire.upper, []).append(item)
    return found


def _rows_of(
    ranks: list[list[Item]], reads: dict[Item, list[Item]], readers: dict[Item, list[Item]]
) -> Iterator[list[Entry]]:
    """Ranks in rows that are not too wide: what begins or ends at one of several stands next to it.

    Everything stays after all that it reads, in whichever row of a rank that is.
    """
    index = {item: (n, at) for n, one in enumerate(ranks) for at, item in enumerate(one)}
    wide = {n for n, one in enumerate(ranks) if sum(_width(i) + GAP_X for i in one) > WIDEST}
    above: dict[Item, list[Item]] = {}
    below: dict[Item, list[Item]] = {}
    moved: set[Item] = set()
    for item in index:
        sources = [source for source in reads.get(item, ()) if source in index]
        last = max(sources, key=index.__getitem__, default=item)
        if item not in readers and index[last][0] in wide and last is not item:
            below.setdefault(last, []).append(item)
            moved.add(item)
    for item in index:
        first = min(readers.get(item, ()), key=index.__getitem__, default=item)
        if item in reads or first is item or index[first][0] not in wide:
            continue
        if moved.isdisjoint(readers[item]):
            above.setdefault(first, []).append(item)
    moved.update(item for items in above.values() for item in items)
    for one in ranks:
        kept = [item for item in one if item not in moved]
        for row in _cut(kept) if kept else ():
            yield from _cut([other for item in row for other in above.get(item, ())])  # type: ignore[arg-type]
            yield row
            yield from _cut([other for item in row for other in below.get(item, ())])  # type: ignore[arg-type]


def _cut(rank: Sequence[Item]) -> Iterator[list[Entry]]:
    """The items of a rank in rows that are not too wide: of several also with edges next to them."""
    row: list[Entry] = []
    width = 0.0
    most = WIDEST if sum(_width(item) + GAP_X for item in rank) <= WIDEST else BESIDE_EDGES
    for item in rank:
        if row and width + _width(item) > most:
            yield row
            row, width = [], 0.0
        row.append(item)
        width += _width(item) + GAP_X
    if row:
        yield row


def _mean(found: Sequence[Callable[[], float]], default: float) -> float:
    return sum([one() for one in found]) / len(found) if found else default


def _room(one: Entry, other: Entry) -> float:
    """The least distance between the middles of neighbours in a row."""
    plain = isinstance(one, (Box, Group)) and isinstance(other, (Box, Group))
    return (_width(one) + _width(other)) / 2 + (GAP_X if plain else CHANNEL)


def _spread(row: list[Entry], requested: dict[Entry, float], keep: bool) -> None:
    """Place the entries of a row as near to where they are wanted as they fit next to each other.

    Their order is that of the wanted places, unless it is kept.
    """
    if not keep:
        row.sort(key=requested.__getitem__)
    offsets, total = [], 0.0
    for index, entry in enumerate(row):
        total += _room(row[index - 1], entry) if index else 0.0
        offsets.append(total)
    # Isotonic regression: neighbours that want to be in each other's place share one.
    blocks: list[tuple[float, int]] = []
    for entry, offset in zip(row, offsets, strict=True):
        mean, count = requested[entry] - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, many = blocks.pop()
            mean, count = (mean * count + other * many) / (count + many), count + many
        blocks.append((mean, count))
    index = 0
    for mean, count in blocks:
        for _ in range(count):
            row[index].x = mean + offsets[index]
            index += 1
