"""Boxes of pictures of graphs: what is written in them, and which lead to which."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .dot import gathered
from .repeats import Folded
from .svg import CHAR, LINE
from .text import (
    Places,
    arguments,
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
MOST_CHARS = 44  # of a line in a box


@dataclass(eq=False)
class Box:
    """Something to place: nodes, arguments, or (without lines) the bend of an arrow."""

    lines: list[str] = field(default_factory=list)
    style: str = "box"
    title: str = ""
    loop: int | None = None
    repeat: int | None = None
    names: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()  # of the names those of nodes
    origin: tuple[str, ...] = ()
    told: list[str] = field(default_factory=list)  # on what colours it: one line is seen at a time
    like: Hashable = None  # neighbours that are alike have it in common
    count: int = 1
    sources: list[tuple[Box, tuple[str, ...]]] = field(default_factory=list)  # and what they bring
    rank: int = -1
    x: float = 0
    y: float = 0
    bend: float = 0  # height of the row that a bend passes

    @property
    def width(self) -> float:
        return max(map(len, [*self.lines, *self.told]), default=0) * CHAR + 20 * bool(self.lines)

    @property
    def height(self) -> float:
        return (len(self.lines) + bool(self.told)) * LINE + 12 * bool(self.lines)

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def is_node(self) -> bool:
        return self.style in ("box", "copy")


def boxes_of(small: Folded, where: Places) -> list[Box]:
    """A box per argument and node, and one for each value that several nodes write.

    In an order in which everything is behind what it reads; only what is written further after
    it was read is behind none of its later writers.
    """
    graph = small.graph
    made = {value.id: _argument(small, value, "arg") for value in arguments(graph)}
    boxes = list(made.values())
    writers = graph.writers()
    hubs = {value.id: _argument(small, value, "out") for value in gathered(graph)}
    waiting = dict(hubs)
    for node in graph.nodes:
        box = _node_box(small, node, where)
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
    title += f"\nand {some(names[1:])}" if len(names) > 1 else ""
    return Box([*map(clipped, lines)], style, title, names=names, like=like)


def _node_box(small: Folded, node: Node, where: Places) -> Box:
    graph, nodes = small.graph, small.names(node.name)
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
    title = _node_title(graph, node)
    title += f"\nand {some(nodes[1:])}" if len(nodes) > 1 else ""
    return Box(
        [*map(clipped, lines)],
        style,
        title,
        node.attr("loop"),
        small.member.get(node.name),
        both(*nodes, *(name for out in outs for name in small.names(out.name))),
        nodes,
        node.origin,
        like=(node.kind, node.attr("kernel"), node.domain, tuple((v.shape, v.dtype) for v in outs)),
    )


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


def clipped(line: str) -> str:
    return line if len(line) <= MOST_CHARS else line[: MOST_CHARS - 1] + "…"
