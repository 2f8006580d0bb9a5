"""The graph as built, after each pass and as scheduled, side by side."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .svg import PICTURE
from .tables import Sheet, make, to_rich, to_text
from .text import dims, kind_words, xml_words

if TYPE_CHECKING:
    from ..ir import Graph, Node
    from ..passes.notes import Note
    from ..passes.pipeline import PassResult

MOST_NOTES = 60  # below a picture
UNTOUCHED, GONE = "=", ""


def passes_to_text(passes: PassResult) -> str:
    """Notes on the changes of each pass."""
    lines = []
    for step in passes:
        nodes = len(step.graph.nodes)
        lines.append(f"{step.name}  ({nodes} node{'s' * (nodes != 1)} after it)")
        lines += [f"  {note}" for note in step.notes] or ["  nothing to do"]
    return "\n".join(lines)


def passes_side_by_side(passes: PassResult) -> str:
    return to_text(passes_sheet(passes), wrap=True)


def passes_to_rich(passes: PassResult) -> Any:
    return to_rich(passes_sheet(passes), wrap=True)


def passes_sheet(passes: PassResult) -> Sheet:
    """A row for each node that ever was, a column for each stage; in the narrow form those that did
    something."""
    stages = [step.name for step in passes]
    headers = ["node", "as built", *stages, "as scheduled"]
    rows = list(node_rows(passes))
    counts = [len(passes.as_built.nodes), *(len(step.graph.nodes) for step in passes)]
    steps = len(passes.graph.steps())
    rows.append(["nodes", *(str(count) for count in counts), f"{steps} step{'s' * (steps != 1)}"])
    words = f"{UNTOUCHED} untouched; nothing: the node is not there"
    untouched = [
        header
        for k, header in enumerate(headers)
        if k > 1 and {row[k] for row in rows[:-1]} <= {UNTOUCHED, GONE}
    ]
    return (make(headers, rows, accent="node", wide=",".join(untouched)), words)


def node_names(passes: PassResult) -> tuple[str, ...]:
    """Names of all nodes of all stages, those that passes added where they run."""
    after: dict[str, str | None] = {}  # by name the next one; the first is that of ""
    _link(after, "", [node.name for node in passes.as_built.nodes])
    for step in passes:
        before = ""
        for node in step.graph.nodes:
            if node.name not in after:
                _link(after, before, [node.name])
            before = node.name
    names, name = [], after[""]
    while name is not None:
        names.append(name)
        name = after[name]
    return tuple(names)


def _link(after: dict[str, str | None], before: str, names: Iterable[str]) -> None:
    """Put names after `before` in a list of which each knows the next."""
    last = after.get(before)
    for name in names:
        after[before] = name
        before = name
    after[before] = last


def node_rows(passes: PassResult) -> Iterator[list[str]]:
    """History of each node, stage by stage."""
    stages = [_Stage(passes.as_built, ()), *(_Stage(step.graph, step.notes) for step in passes)]
    scheduled = scheduled_words(passes.graph)
    for name in node_names(passes):
        row = [name, stages[0].words.get(name, GONE)]
        row += [_change(old, new, name) for old, new in pairwise(stages)]
        yield [*row, scheduled.get(name, GONE)]


class _Stage:
    """A graph after a pass, in words by the names of its nodes, and what the pass did."""

    def __init__(self, graph: Graph, notes: Iterable[Note]):
        self.words = {node.name: node_words(graph, node) for node in graph.nodes}
        self.notes: dict[str, list[str]] = {}
        for note in notes:
            self.notes.setdefault(note.node, []).append(f"{note.action}: {note.why}")


def _change(before: _Stage, after: _Stage, name: str) -> str:
    """Change of a pass to a node, in its own words if it has any."""
    if name in after.notes:
        return "\n".join(after.notes[name])
    old, new = before.words.get(name), after.words.get(name)
    if new is None:
        return GONE if old is None else "dropped: nothing reads it"
    if old is None:
        return "added"
    return UNTOUCHED if old == new else "its operands change"


def node_words(graph: Graph, node: Node) -> str:
    """A node with its operands: ``Cast float16(4,1) -> float32(4,1)``."""
    reads = ", ".join(_value_words(graph, id) for id in node.inputs)
    writes = ", ".join(_value_words(graph, id) for id in node.outputs)
    return f"{kind_words(node)} {reads} -> {writes}"


def _value_words(graph: Graph, id: int) -> str:
    value = graph.value(id)
    words = f"{value.dtype.name}{dims(value.shape)}"
    words += "" if value.is_contiguous else f" strides {dims(value.strides)}"
    return words + (f" offset {value.offset}" if value.offset else "")


def scheduled_words(graph: Graph) -> dict[str, str]:
    """The step that each node runs in, by name."""
    found: dict[str, str] = {}
    for number, step in enumerate(graph.steps()):
        loop = step[0].attr("loop")
        words = f"step {number}" + ("" if loop is None else f", tile loop {loop}")
        found |= dict.fromkeys([node.name for node in step], words)
    return found


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
            f'viewBox="0 0 {x:.0f} {height:.0f}" class="{PICTURE}" role="img">',
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
    left = len(notes) - MOST_NOTES
    notes = [*notes[:MOST_NOTES], *([f"+{left} more"] if left > 0 else [])]
    notes = [line for note in notes for line in textwrap.wrap(note, room, subsequent_indent="  ")]
    words += [_words(x + 12, foot + i * _LINE, note, "s") for i, note in enumerate(notes)]
    width = max(width, *(12 + len(line) * _CHAR for line in (title, *notes)))
    return width, foot + len(notes) * _LINE + 8, "\n".join([placed, *words])


def _words(x: float, y: float, words: str, style: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{style}">{xml_words(words)}</text>'
