"""The graph as built, after each pass and as scheduled, side by side."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any

from .tables import Sheet, make, to_rich, to_text
from .text import dims, xml_words

if TYPE_CHECKING:
    from ..ir import Graph, Node
    from ..passes.pipeline import PassResult

WRAP = 24  # characters: seven columns stay readable
UNTOUCHED, GONE = "=", ""


def passes_to_text(passes: PassResult) -> str:
    return to_text(passes_sheet(passes), wrap=WRAP)


def passes_to_rich(passes: PassResult) -> Any:
    return to_rich(passes_sheet(passes))


def passes_sheet(passes: PassResult) -> Sheet:
    """A row for each node that ever was, a column for each stage."""
    stages = [step.name for step in passes]
    headers = ["node", "as built", *stages, "as scheduled"]
    rows = [node_row(passes, name) for name in node_names(passes)]
    counts = [len(passes.as_built.nodes), *(len(step.graph.nodes) for step in passes)]
    steps = len(passes.graph.steps())
    rows.append(["nodes", *(str(count) for count in counts), f"{steps} step{'s' * (steps != 1)}"])
    words = f"{UNTOUCHED} untouched; nothing: the node is not there"
    return (make(headers, rows, accent="node"), words)


def node_names(passes: PassResult) -> tuple[str, ...]:
    """Names of all nodes of all stages, those that passes added where they run."""
    names = [node.name for node in passes.as_built.nodes]
    for step in passes:
        for place, node in enumerate(step.graph.nodes):
            if node.name not in names:
                names.insert(_behind(names, step.graph, place), node.name)
    return tuple(names)


def _behind(names: list[str], graph: Graph, place: int) -> int:
    """Where in `names` a new node at `place` of a graph belongs: behind the one before it."""
    return names.index(graph.nodes[place - 1].name) + 1 if place else 0


def node_row(passes: PassResult, name: str) -> list[str]:
    """What became of one node, stage by stage."""
    built = _find(passes.as_built, name)
    row = [name, node_words(passes.as_built, built) if built else GONE]
    before = passes.as_built
    for step in passes:
        notes = [f"{note.action}: {note.why}" for note in step.notes if note.node == name]
        row.append("\n".join(notes) or _silent(before, step.graph, name))
        before = step.graph
    return [*row, scheduled_words(passes.graph, name)]


def _silent(before: Graph, after: Graph, name: str) -> str:
    """What to show where a pass has nothing to say of a node."""
    old, new = _find(before, name), _find(after, name)
    if new is None:
        return "dropped: nothing reads it" if old is not None else GONE
    if old is None:
        return "added"
    return UNTOUCHED if node_words(before, old) == node_words(after, new) else "its operands change"


def node_words(graph: Graph, node: Node) -> str:
    """A node with its operands: ``Cast float16(4,1) -> float32(4,1)``."""
    reads = ", ".join(_value_words(graph, id) for id in node.inputs)
    return f"{node.kind} {reads} -> {_value_words(graph, node.output)}"


def _value_words(graph: Graph, id: int) -> str:
    value = graph.value(id)
    gap = "" if value.is_contiguous else f" strides {dims(value.strides)}"
    return f"{value.dtype.name}{dims(value.shape)}{gap}"


def scheduled_words(graph: Graph, name: str) -> str:
    """The step that a node runs in."""
    for number, step in enumerate(graph.steps()):
        for node in step:
            if node.name == name:
                loop = node.attr("loop")
                return f"step {number}" + ("" if loop is None else f", tile loop {loop}")
    return GONE


def _find(graph: Graph, name: str) -> Node | None:
    return next((node for node in graph.nodes if node.name == name), None)


# --- Picture ----------------------------------------------------------------------------------

_HEAD, _GAP, _CHAR, _LINE = 24, 24, 6.6, 15
_SIZE = re.compile(r'width="(\d+)" height="(\d+)"')


def passes_to_svg(passes: PassResult) -> str:
    """Graphs from left to right, each with what its pass did below; unchanged ones are left out."""
    stages: list[tuple[str, Graph, list[str]]] = [("as built", passes.as_built, [])]
    before = passes.as_built
    for step in passes:
        if step.graph != before or step.notes:
            stages.append((f"after {step.name}", step.graph, [str(note) for note in step.notes]))
        before = step.graph
    title, graph, notes = stages.pop()
    stages.append((f"{title}, as scheduled", graph, notes))
    x, height, parts = 0.0, 0.0, []
    for title, graph, notes in stages:
        width, tall, drawn = _column(x, title, graph, notes)
        parts.append(drawn)
        x, height = x + width + _GAP, max(height, tall)
    x -= _GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{x:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {x:.0f} {height:.0f}" role="img">',
            "<title>the graph as built and after each pass</title>",
            '<rect width="100%" height="100%" class="bg"/>',
            *parts,
            "</svg>",
        ]
    )


def _column(x: float, title: str, graph: Graph, notes: list[str]) -> tuple[float, float, str]:
    """One stage: its width, its height, and what is drawn."""
    picture = graph.to_svg()
    size = _SIZE.search(picture)
    assert size is not None, "pictures of graphs say their size"
    width, tall = (float(number) for number in size.groups())
    placed = picture.replace("<svg ", f'<svg x="{x:.0f}" y="{_HEAD}" ', 1)
    words = [_words(x + 12, 16, title, "t b")]
    foot = _HEAD + tall + _LINE
    room = max(int((width - 12) / _CHAR), 48)
    notes = [line for note in notes for line in textwrap.wrap(note, room, subsequent_indent="  ")]
    words += [_words(x + 12, foot + i * _LINE, note, "s") for i, note in enumerate(notes)]
    width = max(width, *(12 + len(line) * _CHAR for line in (title, *notes)))
    return width, foot + len(notes) * _LINE + 8, "\n".join([placed, *words])


def _words(x: float, y: float, words: str, style: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{style}">{xml_words(words)}</text>'
