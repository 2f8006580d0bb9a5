"""Boxes of pictures of graphs: what is written in them, and which lead to which."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..result_steps import steps_of
from .dot import gathered
from .repeats import Folded, arguments, is_large, roots_read, side_inputs
from .svg import CHAR, LINE
from .text import (
    Places,
    attr_words,
    dims,
    human_bytes,
    kind_words,
    some,
    storage_words,
    view_words,
    written_words,
)

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value

MOST_DETAILS = 3  # results, and views that are read, in the lines of a node
MOST_COPIES = 3  # that what repeats once names on hovering
GAP_Y = 28  # pixels between rows of boxes
MOST_CHARS = 44  # of a line in a box
WEIGHT = "▪"  # before arguments that are lines in boxes


@dataclass(eq=False)
class Group:
    """Boxes that belong together: a repeated sequence, a function's call, a tile loop, an operator.

    `x` is the middle in the group around it, the other places are those in the picture.
    """

    kind: str
    words: str
    key: Hashable = None
    x: float = 0
    left: float = 0
    y: float = 0
    width: float = 0
    height: float = 0

    @property
    def least_width(self) -> float:
        return len(self.words) * CHAR + 24 if self.words else 0


@dataclass(eq=False)
class Box:
    """Something to place: nodes, or arguments.

    `x` is its middle in the group around it, `left` and `y` are its corner in the picture.
    """

    lines: list[str] = field(default_factory=list)
    style: str = "box"
    title: str = ""
    loop: int | None = None
    repeat: int | None = None
    names: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()  # of the names those of nodes
    origin: tuple[str, ...] = ()
    labels: list[str] = field(
        default_factory=list
    )  # on what colours it: one line is seen at a time
    like: Hashable = None  # equal neighbours have it in common
    count: int = 1
    sources: list[tuple[Box, tuple[str, ...]]] = field(default_factory=list)  # and what they bring
    path: tuple[Group, ...] = ()  # the groups that it is in, the outermost first
    category: str = ""  # what its colour says
    call: str = ""  # of which operator it is a part, and of which call of it
    x: float = 0
    left: float = 0
    y: float = 0

    @property
    def width(self) -> float:
        return max(map(len, [*self.lines, *self.labels]), default=0) * CHAR + 20 * bool(self.lines)

    @property
    def height(self) -> float:
        return (len(self.lines) + bool(self.labels)) * LINE + 12 * bool(self.lines)

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    @property
    def is_node(self) -> bool:
        return self.style in ("box", "copy")


def boxes_of(small: Folded, where: Places) -> list[Box]:
    """A box per argument and node, and one for each value that several nodes write.

    Weights and constants are lines in the boxes of the nodes that read them.  In an order in which
    everything is after what it reads; only what is written further after it was read is after
    none of its later writers.
    """
    graph = small.graph
    side = side_inputs(small)
    made = {v.id: _argument(small, v, "arg") for v in arguments(graph) if v.id not in side}
    boxes = list(made.values())
    writers = graph.writers()
    hubs = {value.id: _argument(small, value, "out") for value in gathered(graph)}
    waiting = dict(hubs)
    for node in graph.nodes:
        weights = [root for root in roots_read(graph, node) if root in side]
        box = _node_box(small, node, where, weights)
        for id in node.inputs:
            root = graph.root(id)
            if root.id in waiting and len(writers[root.id]) > 1:
                boxes.append(waiting.pop(root.id))
                made[root.id] = boxes[-1]
            if root.id in made:  # what has no elements may have no maker
                box.sources.append((made[root.id], both(root.name, graph.value(id).name)))
        boxes.append(box)
        for id in node.outputs:
            root = graph.root(id)
            if root.id in hubs:
                hubs[root.id].sources.append((box, both(root.name, graph.value(id).name)))
            made.setdefault(root.id, box)
    return [*boxes, *waiting.values()]


def both(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _argument(small: Folded, value: Value, style: str) -> Box:
    graph, names = small.graph, small.names(value.name)
    first = value.name + (f", … ({len(names)})" if len(names) > 1 else "")
    lines = [first, f"{value.dtype.name}{dims(value.shape)}", f"strides {dims(value.strides)}"]
    title = f"{value.name}\n{storage_words(graph, value)}, {human_bytes(value.nbytes)}"
    if value.alias_of is not None:
        lines.append(f"at {graph.value(value.alias_of).name}")
    like = (style, value.storage)
    title += f"\nand {some(names[1:], MOST_COPIES)}" if len(names) > 1 else ""
    return Box([*map(clipped, lines)], style, title, names=names, like=like)


def _node_box(small: Folded, node: Node, where: Places, weights: Sequence[int]) -> Box:
    graph, nodes = small.graph, small.names(node.name)
    outs = [graph.value(id) for id in node.outputs]
    call = node.attr("call", "")
    operator, named = call.partition("#")[0], written_words(graph, node)
    head = [named] if operator in ("", named) else [operator, named]
    read_values = [graph.value(id) for id in weights]
    taken_in = steps_of(node)
    then = [f"then {', '.join(step.kernel or step.kind for step in taken_in)}"] if taken_in else []
    if call and (small.repeats or is_large(graph)):
        lines = [*head, *then, *_short_lines(graph, outs, where)]
    else:
        lines = [*head, kind_words(node)]
        for out in outs[:MOST_DETAILS]:
            lines += _result_lines(graph, out, where)
        lines += _more(outs, "results")
    lines += [_weight_line(small, value) for value in read_values[:MOST_DETAILS]]
    lines += _more(read_values, "weights")
    views = [value for value in map(graph.value, node.inputs) if value.is_view]
    reads = [
        f"reads {graph.root(v.id).name} by {dims(v.strides)}{f' at {v.offset}' * bool(v.offset)}"
        for v in views
    ]
    lines += [*reads[:MOST_DETAILS], *_more(views, "views")] if not call else []
    style = "copy" if node.is_forced_copy else "box"
    title = "\n".join([_node_title(graph, node), *(reads if call else [])])
    title += "".join(f"\n{v.name}: {v}, {storage_words(graph, v)}" for v in read_values)
    title += f"\nand {some(nodes[1:], MOST_COPIES)}" if len(nodes) > 1 else ""
    read = [name for value in read_values for name in small.names(value.name)]
    return Box(
        [*map(clipped, lines)],
        style,
        title,
        node.attr("loop"),
        small.member.get(node.name),
        both(
            *nodes,
            *(name for out in outs for name in small.names(out.name)),
            *(step.name for step in taken_in),
            *read,
        ),
        nodes,
        node.origin,
        like=(
            node.kind,
            node.attr("kernel"),
            node.domain,
            tuple((v.shape, v.dtype) for v in outs),
            *then,
        ),
        call=call,
        category=_category(node),
    )


def _short_lines(graph: Graph, outs: Sequence[Value], where: Places) -> list[str]:
    """Lines about results and their places, one for each."""
    lines = []
    for out in outs[:MOST_DETAILS]:
        offset = where.of(graph, out)
        index = f" at {offset}" if offset and out.storage != "tile" else ""
        lines.append(f"{out.dtype.name}{dims(out.shape)}{index}")
    return lines + _more(outs, "results")


def _category(node: Node) -> str:
    """Category of a node, as boxes are coloured: move elements, or compute them one by one, row by
    row, or all at once."""
    return "move" if node.kind != "Compute" else node.domain


def _weight_line(small: Folded, value: Value) -> str:
    """An argument that is a line in the box of the node which reads it."""
    names = small.names(value.name)
    several = f", … ({len(names)})" if len(names) > 1 else ""
    return f"{WEIGHT} {value.name}{several} {value.dtype.name}{dims(value.shape)}"


def _result_lines(graph: Graph, out: Value, where: Places) -> list[str]:
    """Lines about a result and its place."""
    index = "tile" if out.storage == "tile" else f"{out.storage} {human_bytes(out.nbytes)}"
    if out.is_view:
        index = view_words(graph, out)
    offset = where.of(graph, out)
    strides = [] if out.is_contiguous else [f"strides {dims(out.strides)}"]
    index += f" at {offset}" if offset and not out.is_view else f", byte {offset}" * bool(offset)
    return [f"{out.dtype.name}{dims(out.shape)}", *strides, index]


def _more(things: Sequence[object], what: str) -> list[str]:
    left = len(things) - MOST_DETAILS
    return [f"+{left} more {what}"] if left > 0 else []


def _node_title(graph: Graph, node: Node) -> str:
    """Text that hovering over a node shows."""
    outs = [graph.value(id) for id in node.outputs]
    lines = [f"{kind_words(node)} {node.name}"]
    lines += [f"{out.name}: {out}, {storage_words(graph, out)}" for out in outs]
    lines.append(f"reads {graph.bytes_read(node):,} bytes, writes {graph.bytes_written(node):,}")
    return "\n".join([*lines, *filter(None, [attr_words(node)]), *node.origin])


def clipped(line: str) -> str:
    return line if len(line) <= MOST_CHARS else line[: MOST_CHARS - 1] + "…"
