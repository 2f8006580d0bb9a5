"""Data for pages that draw a graph whose groups open and close: boxes, groups, edges, amounts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .boxes import Box, Group, boxes_of
from .groups import CALL, FUNCTION, LOOP, REPEAT, framed, give_groups
from .heat import Heat
from .layered import Layout
from .repeats import Folded, repeats
from .svg import CHAR, LINE
from .text import places, step_numbers

if TYPE_CHECKING:
    from ..ir import Graph
    from ..planner.plan import WorkspacePlan

MOST_CHARS = 60  # of the title of a group


def explorer_data(
    graph: Graph, plan: WorkspacePlan | None = None, heats: Sequence[Heat] = ()
) -> dict[str, Any]:
    """The whole graph as plain data; groups come before what is in them, edges by places of boxes.

    Fields are short, as there are many: a box has lines, style, title, operator, names, group, number of the
    step, and amounts; a group has words, kind, group around it, and amounts; an edge has source,
    target, names, and 1 if it leads back up.
    """
    boxes = boxes_of(Folded(graph), places(plan))
    layers = _layers(graph)
    for box in boxes:
        box.repeat = layers.get(box.nodes[0]) if box.nodes else None
    words = _layer_words(graph)
    give_groups(boxes, words.__getitem__)
    framed(boxes, (REPEAT, FUNCTION, CALL, LOOP))
    layout = Layout(boxes)
    places_of = {box: index for index, box in enumerate(boxes)}
    numbers = {group: index for index, group in enumerate(layout.groups)}
    parents = {group: around for box in boxes for around, group in _pairs(box.path)}
    inside = {group: [box for box in boxes if group in box.path] for group in layout.groups}
    steps = step_numbers(graph)
    return {
        "char": CHAR,
        "line": LINE,
        "heats": [heat.name for heat in heats],
        "boxes": [_box(box, numbers, steps, heats) for box in boxes],
        "groups": [
            _group(group, inside[group], numbers.get(parents.get(group)), heats)  # type: ignore[arg-type]
            for group in layout.groups
        ],
        "edges": [
            [places_of[source], places_of[box], list(names), int(layout.leads_back(box, at))]
            for box in boxes
            for at, (source, names) in enumerate(box.sources)
        ],
    }


def _box(
    box: Box, numbers: dict[Group, int], steps: dict[str, int], heats: Sequence[Heat]
) -> dict[str, Any]:
    return {
        "l": box.lines,
        "s": f"{box.style} {box.category}" if box.style == "box" else box.style,
        "t": box.title,
        "o": box.call.partition("#")[0] or box.lines[0],
        "n": list(box.names),
        "g": numbers[box.path[-1]] if box.path else -1,
        "k": steps.get(box.nodes[0], -1) if box.nodes else -1,
        "h": [[heat.of(box.nodes), heat.label(box.nodes)] for heat in heats] if box.nodes else [],
    }


def _group(
    group: Group, inside: Sequence[Box], around: int | None, heats: Sequence[Heat]
) -> dict[str, Any]:
    nodes = [name for box in inside for name in box.nodes]
    categories = {box.category for box in inside}
    return {
        "w": group.words if len(group.words) <= MOST_CHARS else group.words[: MOST_CHARS - 1] + "…",
        "k": group.kind,
        "p": -1 if around is None else around,
        "c": next((one for one in ("opaque", "row", "point") if one in categories), "move"),
        "h": [[heat.of(nodes), heat.label(nodes)] for heat in heats],
    }


def _pairs(path: Sequence[Group]) -> list[tuple[Group, Group]]:
    return list(pairwise(path))


def _layers(graph: Graph) -> dict[str, int]:
    """The number of the repetition that a node is in, counted over all repeats."""
    found: dict[str, int] = {}
    number = 0
    for one in repeats(graph):
        for first in range(one.start, one.end, one.period):
            found |= {node.name: number for node in graph.nodes[first : first + one.period]}
            number += 1
    return found


def _layer_words(graph: Graph) -> list[str]:
    """Names of the repetitions."""
    return [
        f"repeat {number + 1} of {one.count}, {one.period} nodes"
        for one in repeats(graph)
        for number in range(one.count)
    ]
