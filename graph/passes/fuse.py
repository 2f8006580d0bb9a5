"""Fusing: nodes that run tile by tile share a loop, so that what passes between them stays in a
tile of the cache.

A list scheduler: it opens a loop with the first node that is ready and goes on with nodes that read
what the loop reads or makes, as long as they fit; what stands between them in the graph does not
matter.  So no loop ever waits for what waits for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..ir import Graph, Node, Value
from ..lower.tiling import Tiling
from ..rewriter import Rewriter
from ..strides import same_layout
from .notes import Note, Notes

MOST_OPERANDS = 64  # of a loop, in memory: beyond, tiles evict each other from the nearest cache
NEIGHBOURS = 64  # readers of one input that are looked at for a loop that reads it too


def fuse(graph: Graph) -> tuple[Graph, Notes]:
    """Group pointwise and row-wise nodes into tile loops with tile-sized intermediates."""
    groups = _Fusion(graph).groups()
    readers = graph.readers()
    nodes: list[Node] = []
    notes: list[Note] = []
    draft = Rewriter(graph)
    number = 0
    for group in groups:
        if not is_loopable(group[0]):
            nodes += group
            if group[0].is_forced_copy:
                why = "it must finish before any output is written"
                notes.append(Note(group[0].name, "kept", why))
            continue
        number += 1
        nodes += [node.with_attrs(loop=number) for node in group]
        inner = _only_inside(graph, group, readers)
        for value in inner:
            draft.put(replace(value, storage="tile"))
        notes += [_note(graph, node, group, number, inner) for node in group]
    return draft.rebuilt(nodes), tuple(notes)


def _note(
    graph: Graph, node: Node, group: Sequence[Node], number: int, inner: Sequence[Value]
) -> Note:
    if len(group) == 1:
        return Note(node.name, f"becomes tile loop {number}", "nothing to fuse it with")
    out = graph.value(node.output)
    why = f"{out.name} stays in a tile" if out in inner else f"it writes {out.name}"
    return Note(node.name, f"fused into tile loop {number}", why)


def is_loopable(node: Node) -> bool:
    """Whether a node runs tile by tile."""
    return node.domain != "opaque" and not node.is_forced_copy


def _only_inside(
    graph: Graph, group: Sequence[Node], readers: dict[int, tuple[Node, ...]]
) -> list[Value]:
    """Workspace values that are made and read in the group, and read nowhere else."""
    if len(group) == 1:
        return []
    members = {node.name for node in group}
    read = {id for node in group for id in node.inputs}
    return [
        value
        for node in group
        for value in map(graph.value, node.outputs)
        if value.storage == "workspace"
        and not value.is_view
        and value.id in read
        and all(reader.name in members for reader in readers[value.id])
    ]


@dataclass
class _Loop:
    """A loop that takes more nodes."""

    shape: tuple[int, ...]
    axis: int | None
    members: list[int] = field(default_factory=list)
    made: set[int] = field(default_factory=set)  # values, by id
    written: set[int] = field(default_factory=set)  # what owns their bytes
    read: set[int] = field(default_factory=set)  # what owns the bytes of operands in memory
    waiting: dict[int, int] = field(default_factory=dict)  # made: readers that have not joined
    live: int = 0  # bytes of an element of all tiles that are in use
    peak: int = 0
    outputs: int = 0  # values that are arguments

    def row_bytes(self, peak: int, axis: int | None) -> int:
        """Bytes of the tiles of one row, which is never cut."""
        return peak * (self.shape[axis] if axis is not None else 1)


class _Fusion:
    """The list scheduler and what it looks up."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.nodes = graph.nodes
        count = len(graph.nodes)
        self.roots = {value.id: graph.root(value.id).id for value in graph.values}
        self.after: list[list[int]] = [[] for _ in range(count)]
        self.missing = [0] * count
        self.readers: dict[int, list[int]] = {}
        self.budget = Tiling().scratch_bytes
        self._edges()
        self.done = [False] * count
        self.ready = [i for i in range(count) if not self.missing[i]]  # a heap: ascending

    def _edges(self) -> None:
        """What each node waits for: who writes its operands, and who has to be before it."""
        writers: dict[int, list[int]] = {}
        forced = [i for i, node in enumerate(self.nodes) if node.is_forced_copy]
        for at, node in enumerate(self.nodes):
            before = set()
            for id in node.inputs:
                root = self.roots[id]
                before.update(writers.get(root, ()))
                self.readers.setdefault(root, []).append(at)
            for id in node.outputs:
                root = self.roots[id]
                writers.setdefault(root, []).append(at)
                if self.graph.value(root).storage == "output":
                    before.update(i for i in forced if i < at)
            self._wait(at, before)
        self._after_readers(writers)

    def _wait(self, at: int, before: Iterable[int]) -> None:
        for i in before:
            self.after[i].append(at)
            self.missing[at] += 1

    def _after_readers(self, writers: dict[int, list[int]]) -> None:
        """Who writes an output in place of an input comes after those that read that input, unless
        they wait for it: then the pass `in_place` copies the input."""
        for id in self.graph.outputs:
            alias = self.graph.value(id).alias_of
            for writer in writers.get(id, ()) if alias is not None else ():
                late = self._reached(writer)
                for reader in self.readers.get(alias, ()):
                    if reader != writer and reader not in late and writer not in self.after[reader]:
                        self._wait(writer, [reader])

    def _reached(self, start: int) -> set[int]:
        """The nodes that wait for one, directly or not."""
        found, todo = set(), [start]
        while todo:
            for at in self.after[todo.pop()]:
                if at not in found:
                    found.add(at)
                    todo.append(at)
        return found

    def groups(self) -> list[list[Node]]:
        """The nodes of every step, in an order in which steps can run."""
        found = []
        while self.ready:
            first = heapq.heappop(self.ready)
            if self.done[first]:
                continue
            members = self._grow(first) if is_loopable(self.nodes[first]) else self._alone(first)
            found.append([self.nodes[i] for i in members])
        return found

    def _alone(self, at: int) -> list[int]:
        self._release(at)
        return [at]

    def _release(self, at: int) -> list[int]:
        """Count a node as done; those that are ready then."""
        self.done[at] = True
        freed = []
        for other in self.after[at]:
            self.missing[other] -= 1
            if not self.missing[other]:
                heapq.heappush(self.ready, other)
                freed.append(other)
        return freed

    def _grow(self, first: int) -> list[int]:
        """Open a loop with a node and add others while any fits."""
        shape, axis = self.graph.iteration(self.nodes[first])
        loop = _Loop(shape, axis)
        looked: set[int] = set()
        candidates = self._join(loop, first, looked)
        heapq.heapify(candidates)
        while candidates:
            at = heapq.heappop(candidates)
            if self.done[at] or self.missing[at] or not self._fits(loop, self.nodes[at]):
                continue
            for other in self._join(loop, at, looked):
                heapq.heappush(candidates, other)
        return loop.members

    def _join(self, loop: _Loop, at: int, looked: set[int]) -> list[int]:
        """Add a node; the nodes that may come next."""
        node = self.nodes[at]
        loop.members.append(at)
        if node.domain == "row":
            loop.axis = self.graph.iteration(node)[1]
        loop.live, loop.peak = self._tiles(loop, node, count=True)
        for id in node.inputs:
            if id not in loop.made:
                loop.read.add(self.roots[id])
        for id in node.outputs:
            loop.made.add(id)
            loop.written.add(self.roots[id])
            loop.outputs += self.graph.value(self.roots[id]).storage == "output"
        near = self._release(at)
        for root in {self.roots[id] for id in node.inputs} - looked:
            looked.add(root)
            near += self.readers[root][:NEIGHBOURS]
        return [i for i in near if not self.done[i] and not self.missing[i]]

    def _tiles(self, loop: _Loop, node: Node, *, count: bool = False) -> tuple[int, int]:
        """Bytes of an element in the loop's tiles after a node, and at the most."""
        live, freed = loop.live, 0
        waiting = loop.waiting if count else dict(loop.waiting)
        for id in node.outputs:
            value = self.graph.value(id)
            readers = len(self.readers.get(id, ()))
            if value.storage == "workspace" and not value.is_view and readers:
                waiting[id] = readers
                live += value.dtype.itemsize
        peak = max(loop.peak, live)
        for id in dict.fromkeys(node.inputs):
            if id in waiting:
                waiting[id] -= 1
                if not waiting[id]:
                    freed += self.graph.value(id).dtype.itemsize
        return live - freed, peak

    def _fits(self, loop: _Loop, node: Node) -> bool:
        """Whether a node that is ready can run tile by tile after those of the loop."""
        if not is_loopable(node):
            return False
        shape, axis = self.graph.iteration(node)
        if shape != loop.shape:
            return False
        if axis is not None and loop.axis is not None and axis != loop.axis:
            return False
        if not self._reads_whole_tiles(loop, node) or not self._in_place_is_safe(loop, node):
            return False
        operands = loop.read | {self.roots[id] for id in node.inputs if id not in loop.made}
        if len(operands) + loop.outputs + len(node.outputs) > MOST_OPERANDS:
            return False
        _, peak = self._tiles(loop, node)
        whole = axis if axis is not None else loop.axis
        return loop.row_bytes(peak, whole) <= self.budget

    def _reads_whole_tiles(self, loop: _Loop, node: Node) -> bool:
        """A view of something made in the loop would read elements of other tiles."""
        for id in node.inputs:
            if self.roots[id] in loop.written and id not in loop.made:
                return False
            if id in loop.made and self.graph.value(id).shape != loop.shape:
                return False
        return True

    def _in_place_is_safe(self, loop: _Loop, node: Node) -> bool:
        """Whether an output in place of an input lies as all that is read of it in the loop."""
        for id in node.outputs:
            alias = self.graph.value(id).alias_of if id in self.graph.outputs else None
            if alias is not None and not self._all_alike(alias, id, [*loop.members], node):
                return False
        for out in loop.made:
            value = self.graph.value(out)
            written = value.alias_of if value.storage == "output" else None
            if written is not None and any(self.roots[id] == written for id in node.inputs):
                return False  # it would read what is written already
        return True

    def _all_alike(self, alias: int, out: int, members: Sequence[int], node: Node) -> bool:
        written = self.graph.value(out)
        reads = [id for i in members for id in self.nodes[i].inputs] + list(node.inputs)
        return all(
            same_layout(self.graph.value(id), written) for id in reads if self.roots[id] == alias
        )
