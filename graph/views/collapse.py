"""Fewer boxes: many that are of a kind, or belong together, become one that says how many."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import groupby

from .boxes import Box, both, clipped
from .text import some

MOST_TOGETHER = 8  # boxes of a loop, a chain or alike neighbours that are drawn one by one
MOST_READ = 60  # boxes of nodes; beyond, those of one line of the program are one
MOST_BOXES = 400  # beyond, a box stands for several nodes, whatever they are
MOST_LISTED = 5  # names in the lines of a box that stands for several


def collapsed(boxes: list[Box]) -> list[Box]:
    """The boxes, several of them in one where there are many of a kind."""
    for groups in (_loops, _chains, _alike):
        boxes = _merged(boxes, [group for group in groups(boxes) if len(group) > MOST_TOGETHER])
    if sum(box.is_node for box in boxes) > MOST_READ:
        boxes = _merged(boxes, _lines(boxes))
    if sum(box.is_node for box in boxes) <= MOST_BOXES:
        return boxes
    boxes = _merged(boxes, _stretches(boxes))
    return _merged(boxes, [group for group in _alike(boxes) if len(group) > 1])


def _loops(boxes: list[Box]) -> Iterator[list[Box]]:
    """The nodes of each tile loop."""
    return _grouped(boxes, lambda box: box.loop)


def _chains(boxes: list[Box]) -> Iterator[list[Box]]:
    """Nodes of which each reads one other node, and is the only one that reads that."""
    targets = targets_of(boxes)
    follows = {}
    for box in boxes:
        read = {source for source, _ in box.sources if source.is_node}
        if len(read) == 1 and box.is_node and box.loop is None:
            (source,) = read
            if source.loop is None and len(targets[source]) == 1 and source.repeat == box.repeat:
                follows[source] = box
    heads = follows.keys() - set(follows.values())
    for head in (box for box in boxes if box in heads):
        chain = [head]
        while chain[-1] in follows:
            chain.append(follows[chain[-1]])
        yield chain


def _alike(boxes: list[Box]) -> Iterator[list[Box]]:
    """Neighbours of a kind that read the same and are read by the same."""
    targets = targets_of(boxes)
    return _grouped(
        [box for box in boxes if box.loop is None],
        lambda box: (
            (
                box.like,
                box.repeat,
                frozenset(source for source, _ in box.sources),
                frozenset(targets[box]),
            )
            if box.like is not None
            else None
        ),
    )


def _lines(boxes: list[Box]) -> list[list[Box]]:
    """Nodes that run after each other and come from one line: of the innermost function of which
    so few lines are left, else of the outermost."""
    nodes = [box for box in boxes if box.is_node and box.origin]
    deepest = max((len(box.origin) for box in nodes), default=0)
    groups: list[list[Box]] = []
    for depth in range(deepest, 0, -1):
        groups = [
            list(group)
            for _, group in groupby(
                nodes,
                lambda box: (box.origin[:depth], box.repeat),  # noqa: B023  # used at once
            )
        ]
        if len(groups) <= MOST_READ:
            break
    return [group for group in groups if len(group) > 1]


def _stretches(boxes: list[Box]) -> Iterator[list[Box]]:
    """Nodes that run after each other, so many at a time that not too many boxes remain."""
    nodes = [box for box in boxes if box.is_node]
    each = -(-len(nodes) // MOST_BOXES)
    return (nodes[start : start + each] for start in range(0, len(nodes), each))


def _grouped(boxes: Iterable[Box], key: Callable[[Box], Hashable | None]) -> Iterator[list[Box]]:
    """Boxes with the same key, those with None left out."""
    groups: dict[Hashable, list[Box]] = {}
    for box in boxes:
        if (found := key(box)) is not None:
            groups.setdefault(found, []).append(box)
    return iter(groups.values())


def targets_of(boxes: list[Box]) -> dict[Box, set[Box]]:
    found: dict[Box, set[Box]] = {box: set() for box in boxes}
    for box in boxes:
        for source, _ in box.sources:
            found[source].add(box)
    return found


def _merged(boxes: list[Box], groups: Iterable[list[Box]]) -> list[Box]:
    """The boxes with each group as one, in place of its first; arrows lead where they led."""
    now: dict[Box, Box] = {}
    for group in groups:
        together = _together(group)
        now |= dict.fromkeys(group, together)
    result = list(dict.fromkeys(now.get(box, box) for box in boxes))
    if not now:
        return boxes
    arrows: dict[Box, dict[Box, dict[str, None]]] = {box: {} for box in result}
    for box in boxes:
        target = now.get(box, box)
        for source, names in box.sources:
            begin = now.get(source, source)
            if begin is not target:
                arrows[target].setdefault(begin, {}).update(dict.fromkeys(names))
    for target, sources in arrows.items():
        target.sources = [(source, tuple(names)) for source, names in sources.items()]
    return result


def _together(group: list[Box]) -> Box:
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
    origin = tuple(_common([box.origin for box in group]))
    lines = [head, *origin[-1:], *names[:MOST_LISTED]]
    lines += [f"+{len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
    title = "\n".join([f"{head}: {some([box.names[0] for box in group], 40)}", *origin])
    return Box(
        [*map(clipped, lines)],
        style,
        title,
        loop,
        first.repeat,
        both(*(name for box in group for name in box.names)),
        both(*(name for box in group for name in box.nodes)),
        origin,
        like=("several", first.like, style),
        count=count,
    )


def _common(origins: list[tuple[str, ...]]) -> Iterator[str]:
    """The lines that all have, from the outermost on."""
    for lines in zip(*origins, strict=False):
        if len(set(lines)) > 1:
            return
        yield lines[0]
