"""Fewer boxes: many that are of a kind, or belong together, become one that says how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise, product, zip_longest

from .boxes import GAP_Y, Box, Group, both, clipped
from .groups import CALL, FUNCTION, LINE, LOOP, REPEAT, common_start
from .text import some

MOST_TOGETHER = 8  # boxes of a loop, a chain or equal neighbours that are drawn one by one
MOST_READ = 40  # boxes of nodes; beyond, those of a line or call of the program are one
TALL = 3000  # pixels: three screens, without margins
FRAME = 36 + GAP_Y  # pixels that the frame of a group adds, above and below
MOST_BOXES = 60  # beyond, a box stands for several nodes, whatever they are
ANY = (CALL, FUNCTION, LINE, LOOP)  # groups that may be one box
MOST_HOVERED = 12  # names on hovering over a box that stands for several
MOST_LISTED = 5  # names in the lines of a box that stands for several


def collapsed(boxes: list[Box]) -> list[Box]:
    """The boxes, several of them in one where there are many of a kind."""
    for groups in (_loops, _chains, _neighbours):
        boxes = _merged(boxes, [group for group in groups(boxes) if len(group) > MOST_TOGETHER])
    boxes = _merged(boxes, *_odd_ones(boxes))
    if not _readable(boxes):
        boxes = _by_groups(boxes)
    if sum(box.is_node for box in boxes) <= MOST_BOXES:
        return boxes
    for box in boxes:
        box.path = tuple(group for group in box.path if group.kind == REPEAT)
    boxes = _merged(boxes, _stretches(boxes))
    return _merged(boxes, [group for group in _neighbours(boxes) if len(group) > 1])


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
            if source.loop is None and len(targets[source]) == 1 and source.path == box.path:
                follows[source] = box
    heads = follows.keys() - set(follows.values())
    for head in (box for box in boxes if box in heads):
        chain = [head]
        while chain[-1] in follows:
            chain.append(follows[chain[-1]])
        yield chain


def _neighbours(boxes: list[Box]) -> Iterator[list[Box]]:
    """Neighbours of a kind that read the same and are read by the same."""
    targets = targets_of(boxes)
    return _grouped(
        [box for box in boxes if box.loop is None],
        lambda box: (
            (
                box.like,
                box.path,
                frozenset(source for source, _ in box.sources),
                frozenset(targets[box]),
            )
            if box.like is not None
            else None
        ),
    )


def _odd_ones(boxes: list[Box]) -> tuple[list[list[Box]], list[Group]]:
    """Long calls of functions outside of what repeats, such as a last layer that ends otherwise."""
    if all(box.repeat is None for box in boxes):
        return [], []
    outside = [box for box in boxes if box.path and box.path[0].kind == FUNCTION]
    found = _grouped(outside, lambda box: box.path[0])
    held = [inside for inside in found if len(inside) > MOST_TOGETHER]
    return held, [inside[0].path[0] for inside in held]


def _by_groups(boxes: list[Box]) -> list[Box]:
    """The boxes with groups as one each until the picture is readable: calls of operators, then
    lines, then everything from the innermost out."""
    deepest = max((len(box.path) for box in boxes), default=0)
    order = product(((CALL,), (LINE,), ANY), range(deepest, 0, -1))
    for kinds, depth in order:
        held = [
            inside
            for inside in _grouped(
                [box for box in boxes if len(box.path) >= depth],
                lambda box: box.path[depth - 1],  # noqa: B023  # used at once
            )
            if len(inside) > 1 and inside[0].path[depth - 1].kind in kinds
        ]
        boxes = _merged(boxes, held, [inside[0].path[depth - 1] for inside in held])
        if (kinds is ANY or depth == 1) and _readable(boxes):
            break
    return boxes


def _readable(boxes: Sequence[Box]) -> bool:
    """Whether a picture of the boxes is neither too full nor too tall."""
    if sum(box.is_node for box in boxes) > MOST_READ:
        return False
    drawn = _drawn(boxes)
    ends: dict[Box, float] = {}
    for box in boxes:
        around = drawn.intersection(box.path)
        above = [
            ends.get(source, 0.0) + FRAME / 2 * len(around ^ drawn.intersection(source.path))
            for source, _ in box.sources
        ]
        ends[box] = max(above, default=0.0) + box.height + GAP_Y
    return max(ends.values(), default=0) < TALL


def _drawn(boxes: Sequence[Box]) -> set[Group]:
    """The groups of which frames are drawn: repeats, and those that hold several boxes or groups."""
    members: dict[Group, set[object]] = {}
    for box in boxes:
        for group, inside in pairwise((*box.path, box)):
            if isinstance(group, Group) and group.kind != LINE:
                members.setdefault(group, set()).add(inside)
    return {group for group, inside in members.items() if len(inside) > 1 or group.kind == REPEAT}


def _stretches(boxes: list[Box]) -> Iterator[list[Box]]:
    """Nodes that run after each other, so many at a time that not too many boxes remain."""
    nodes = [box for box in boxes if box.is_node]
    each = -(-len(nodes) // MOST_BOXES)
    for _, same in groupby(nodes, lambda box: box.path):
        found = list(same)
        yield from (found[start : start + each] for start in range(0, len(found), each))


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


def _merged(
    boxes: list[Box], groups: Iterable[list[Box]], known: Iterable[Group] = ()
) -> list[Box]:
    """The boxes with each group as one, in place of its first; arrows lead where they led."""
    now: dict[Box, Box] = {}
    for group, called in zip_longest(groups, known):
        together = _together(group, called)
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


def _together(inside: list[Box], group: Group | None = None) -> Box:
    """One box for several, which lists the first and says how many there are."""
    if len(inside) == 1:
        return inside[0]
    everything, nodes = inside, [box for box in inside if box.is_node]
    inside = nodes or inside  # of a group that also holds what its nodes write
    first, count = inside[0], sum(box.count for box in inside)
    style = first.style if first.is_node is inside[-1].is_node else "box"
    loops = {box.loop for box in inside}
    loop = first.loop if len(loops) == 1 else None
    what = "nodes" if first.is_node else "constants" if "constant" in str(first.like) else "values"
    head = f"{count} {what}" if loop is None else f"{count} nodes of tile loop {loop}"
    names = [box.lines[0] if box.count == 1 else f"{box.names[0]}, …" for box in inside]
    origin = common_start([box.origin for box in inside])
    if group is None:
        lines = [head, *origin[-1:], *names[:MOST_LISTED]]
        lines += [f"+{len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else []
    else:
        last = inside[-1].lines[-1] if group.kind == CALL else _kinds(inside)
        words = origin[-1] if origin and group.kind in (FUNCTION, LINE) else group.words
        lines = [words, f"{count} nodes", last]
    title = "\n".join([f"{head}: {some([box.names[0] for box in inside], MOST_HOVERED)}", *origin])
    path = common_start([box.path for box in inside])
    if group in path:
        path = path[: path.index(group)]
    elif loop is not None and path and path[-1].kind == LOOP:
        path = path[:-1]
    categories = {box.category for box in inside}
    return Box(
        [*map(clipped, lines)],
        style,
        title,
        loop,
        first.repeat,
        both(*(name for box in everything for name in box.names)),
        both(*(name for box in inside for name in box.nodes)),
        origin,
        like=("several", first.like, style),
        count=count,
        path=path,
        category=next(
            (one for one in ("opaque", "row", "point") if one in categories), first.category
        ),
    )


def _kinds(inside: Sequence[Box]) -> str:
    """Kinds of boxes, the most frequent first: ``matmul x3, softmax``."""
    found = Counter({box.lines[0]: 0 for box in inside})
    for box in inside:
        found[box.call.partition("#")[0] or box.lines[0]] += box.count
    words = [f"{name} x{n}" if n > 1 else name for name, n in found.most_common() if n]
    return some(words, MOST_LISTED)
