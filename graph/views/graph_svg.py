"""Pictures of graphs: boxes by their distance from the inputs, arrows from who makes to who reads.

What is long or wide is drawn as one box that lists what is in it: tile loops, chains, neighbours
that read and are read alike, and stretches of graphs that are larger than anybody reads. Sequences
that come again, such as the layers of a network, are drawn once, in a frame that says how often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from .boxes import Box, boxes_of
from .collapse import collapsed
from .heat import LEGEND_HEIGHT, LEGEND_WIDTH, Heat, Scale
from .placing import place, ranked, rows_of
from .repeats import folded
from .svg import CHAR, LINE, MARGIN, document, hover, mark, rect, words_at
from .text import places

if TYPE_CHECKING:
    from ..ir import Graph
    from ..planner.plan import WorkspacePlan


ROOM = 16  # between the line around a repeated sequence and those around its loops


def graph_to_svg(
    graph: Graph,
    plan: WorkspacePlan | None = None,
    heats: Sequence[Heat] = (),
    whole: bool = False,
) -> str:
    small = folded(graph, whole)
    boxes = boxes_of(small, places(plan))
    if not whole:
        boxes = collapsed(boxes)
    coloured = [box for box in boxes if box.nodes] if heats else []
    scale = Scale(heats, [box.nodes for box in coloured])
    for box in coloured:
        box.told = scale.told(box.nodes)
    rows = rows_of(ranked(boxes))
    repeats = _grouped(boxes, lambda box: box.repeat)
    left = MARGIN + (ROOM if repeats else 0)
    width = place(rows, left, MARGIN + (LEGEND_HEIGHT + 8 if heats else 0)) + left
    height = max((box.y + box.height for row in rows for box in row), default=0) + MARGIN
    frames = [_repeat(inside, small.words(number)) for number, inside in repeats]
    width = max([width, *(right + left for right, _ in frames)])
    body = [frame for _, frame in frames]
    loops = _grouped(boxes, lambda box: box.loop)
    body += [_frame(inside, f"tile loop {loop}") for loop, inside in loops]
    body += [_arrow(box, at) for box in boxes for at in range(len(box.sources))]
    body += [_draw(box, scale) for box in boxes]
    if heats:
        body.append(scale.legend(MARGIN, MARGIN))
        width = max(width, LEGEND_WIDTH + 2 * MARGIN)
    return document(width, height, "executor graph", body, scale.root, scale.rules)


# --- Drawing ----------------------------------------------------------------------------------


def _arrow(box: Box, place: int) -> str:
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


def _draw(box: Box, scale: Scale) -> str:
    parts = [rect(box.x, box.y, box.width, box.height, box.style, 4 if box.is_node else 14)]
    for number, line in enumerate(box.lines):
        style = "t b" if number == 0 else "s"
        parts.append(words_at(box.middle, box.y + 18 + number * LINE, line, style, "middle"))
    foot = box.y + 18 + len(box.lines) * LINE
    for line in box.told:
        only = f"s only-{line.partition(' ')[0]}"
        parts.append(words_at(box.middle, foot, line, only, "middle"))
    heat = scale.style(box.nodes) if box.told else ""
    return hover("\n".join([box.title, *box.told]), "".join(parts), *box.names, style=heat)


def _grouped(boxes: list[Box], key: Callable[[Box], int | None]) -> list[tuple[int, list[Box]]]:
    """Boxes by a number that some of them have."""
    found: dict[int, list[Box]] = {}
    for box in boxes:
        if (number := key(box)) is not None:
            found.setdefault(number, []).append(box)
    return sorted(found.items())


def _frame(inside: list[Box], words: str) -> str:
    """The dashed line around the nodes of a tile loop."""
    left, top, right, bottom = _around(inside, 0)
    named = words_at(left + 8, bottom - 7, words, "s lt")
    return rect(left, top, right - left, bottom - top, "loop", 8) + named


def _repeat(inside: list[Box], words: str) -> tuple[float, str]:
    """The line around the nodes of a repeated sequence, which says at its top how often; its right
    end, then what is drawn."""
    left, top, right, bottom = _around(inside, ROOM)
    right = max(right, left + len(words) * CHAR + 16)
    named = words_at(left + 8, top + 14, words, "t b againt")
    return right, rect(left, top, right - left, bottom - top, "again", 8) + named


def _around(inside: list[Box], room: float) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a line around boxes."""
    left = min(box.x for box in inside) - 12 - room
    top = min(box.y for box in inside) - 14 - room
    right = max(box.x + box.width for box in inside) + 12 + room
    return left, top, right, max(box.y + box.height for box in inside) + 22 + room
