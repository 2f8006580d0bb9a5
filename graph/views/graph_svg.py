"""Pictures of graphs: boxes in rows, edges from what makes values to what reads them.

What is long or wide is drawn as one box that lists what is in it: tile loops, chains, neighbours
with the same readers and operands, and stretches of graphs that are larger than anybody reads. Sequences
that come again, such as the layers of a network, are drawn once, in a frame that says how often.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from .boxes import Box, Group, boxes_of
from .collapse import collapsed
from .groups import CALL, FUNCTION, LOOP, REPEAT, framed, give_groups, place_the_rest
from .heat import LEGEND_HEIGHT, LEGEND_WIDTH, Scale, heats_of, traffic
from .layered import Layout
from .repeats import folded
from .svg import LINE, MARGIN, document, hover, mark, rect, words_at
from .text import places

if TYPE_CHECKING:
    from ..ir import Graph
    from ..planner.plan import WorkspacePlan


STRAIGHT = 0.05  # pixels that an edge leads to a side, and is a line
# The classes of the line around a group, and of its title.
FRAMES = {
    REPEAT: ("again", "t b againt"),
    FUNCTION: ("func", "s"),
    CALL: ("func", "t b"),
    LOOP: ("loop", "s lt"),
}


def graph_to_svg(
    graph: Graph,
    plan: WorkspacePlan | None = None,
    heat: object = None,
    whole: bool = False,
) -> str:
    heats = heats_of(heat, lambda: traffic(graph))
    small = folded(graph, whole)
    boxes = boxes_of(small, places(plan))
    give_groups(boxes, small.words)
    if not whole:
        boxes = collapsed(boxes)
        place_the_rest(boxes)
    framed(boxes, (REPEAT, FUNCTION, CALL, LOOP))
    coloured = [box for box in boxes if box.nodes] if heats else []
    scale = Scale(heats, [box.nodes for box in coloured])
    for box in coloured:
        box.labels = scale.labels(box.nodes)
    top = MARGIN + (LEGEND_HEIGHT + 8 if heats else 0)
    layout = Layout(boxes)
    layout.place(MARGIN, top)
    body = [_frame(group) for group in layout.groups]
    body += [_arrow(layout, box, at) for box, at in layout.edges]
    body += map(_title, layout.groups)
    body += [_draw(box, scale) for box in boxes]
    width, height = layout.width + 2 * MARGIN, layout.height + top + MARGIN
    if heats:
        body.append(scale.legend(MARGIN, MARGIN))
        width = max(width, LEGEND_WIDTH + 2 * MARGIN)
    return document(width, height, "executor graph", body, scale.root, scale.rules)


# --- Drawing ----------------------------------------------------------------------------------


def _arrow(layout: Layout, box: Box, index: int) -> str:
    """An edge to a box, which bends only between rows."""
    points = layout.route(box, index)
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        half = (y0 + y1) / 2
        if abs(x1 - x0) < STRAIGHT:
            path += f" L{x1:.1f},{y1:.1f}"
        else:
            path += f" C{x0:.1f},{half:.1f} {x1:.1f},{half:.1f} {x1:.1f},{y1:.1f}"
    (x, y), down = points[-1], 1 if points[-1][1] >= points[-2][1] else -1
    head = f'<path class="head" d="M{x - 4:.1f},{y - 7 * down:.1f}h8l-4,{7 * down}z"/>'
    return f'<g{mark(box.sources[index][1])}><path class="edge" d="{path}"/>{head}</g>'


def _draw(box: Box, scale: Scale) -> str:
    style = f"{box.style} {box.category}" if box.style == "box" else box.style
    parts = [rect(box.left, box.y, box.width, box.height, style, 4 if box.is_node else 14)]
    for number, line in enumerate(box.lines):
        style = "t b" if number == 0 else "s"
        parts.append(words_at(box.middle, box.y + 18 + number * LINE, line, style, "middle"))
    foot = box.y + 18 + len(box.lines) * LINE
    for line in box.labels:
        only = f"s only-{line.partition(' ')[0]}"
        parts.append(words_at(box.middle, foot, line, only, "middle"))
    heat = scale.style(box.nodes) if box.labels else ""
    return hover("\n".join([box.title, *box.labels]), "".join(parts), *box.names, style=heat)


def _frame(group: Group) -> str:
    """The line around a group."""
    style, _ = FRAMES[group.kind]
    return rect(group.left, group.y, group.width, group.height, style, 8)


def _title(group: Group) -> str:
    """Title of a group, at the top of its frame, over the edges that lead through it."""
    _, style = FRAMES[group.kind]
    return words_at(group.left + 8, group.y + 16, group.words, f"{style} over")
