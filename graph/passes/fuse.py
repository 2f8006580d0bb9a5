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
from ..loops.tiling import Tiling
from ..rewriter import Rewriter
from ..strides import same_layout
from .notes import Note, Notes
from .order import ordered_for_peak
from .results import fold_results
from .stores import read_outputs

MOST_OPERANDS = 64  # of a loop, in memory: beyond, tiles evict each other from the nearest cache
NEIGHBOURS = 64  # readers of one input that are looked at for a loop that reads it too


def fuse(graph: Graph) -> tuple[Graph, Notes]:
    """Group pointwise and row-wise nodes into tile loops with tile-sized intermediates.

    What alone reads the result of an opaque node that takes steps on its results becomes part of that.
    """
    graph, folded = fold_results(graph)
    fusion = _Fusion(graph)
    found = fusion.groups()
    order, before, peak = ordered_for_peak(graph, found, fusion.after)
    groups = [[graph.nodes[at] for at in group] for group in order]
    nodes: list[Node] = []
    notes: list[Note] = [*folded]
    draft = Rewriter(graph)
    groups = read_outputs(graph, draft, groups)
    readers = draft.graph().readers([node for group in groups for node in group])
    if peak < before:
        moved = next(after for at, after in zip(found, order, strict=True) if at != after)
        why = f"intermediates take {peak} bytes at once, {before} in the order of the graph"
        notes.append(Note(graph.nodes[moved[0]].name, "runs earlier", why))
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
        tiles = {value.id for value in inner}
        notes += [_note(graph, node, group, number, tiles) for node in group]
    return draft.rebuilt(nodes), tuple(notes)


def _note(graph: Graph, node: Node, group: Sequence[Node], number: int, tiles: set[int]) -> Note:
    if len(group) == 1:
        return Note(node.name, f"becomes tile loop {number}", "nothing to fuse it with")
    out = graph.value(node.output)
    why = f"{out.name} stays in a tile" if out.id in tiles else f"it writes {out.name}"
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
    overwritten: set[int] = field(default_factory=set)  # inputs, by outputs in their place

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
        self.passed: dict[
            int, int
        ] = {}  # of the readers of a value: how many at the front are done
        self.budget = Tiling().scratch_bytes
        self._edges()
        self.done = [False] * len(self.after)
        self.ready = [i for i in range(count) if not self.missing[i]]  # a heap: ascending

    def _edges(self) -> None:
        """Edges of each node: the writers of its operands, and those that have to be before it."""
        writers: dict[int, list[int]] = {}
        barriers: dict[int, list[int]] = {}
        forced: list[int] = []
        acting: list[int] = []  # the last node that does more than write its outputs
        for at, node in enumerate(self.nodes):
            before: set[int] = set()
            if node.attr("effects"):
                before.update(acting)
                acting = [at]
            for root in dict.fromkeys([self.roots[id] for id in node.inputs]):
                before.update(self._barrier(barriers.get(root, [])))
                self.readers.setdefault(root, []).append(at)
            for root in dict.fromkeys([self.roots[id] for id in node.outputs]):
                writers.setdefault(root, []).append(at)
                barriers.setdefault(root, []).append(at)
                if self.graph.value(root).storage == "output":
                    before.update(self._barrier(forced))
            if node.is_forced_copy:
                forced.append(at)
            self._wait(at, before)
        self._after_readers(writers)

    def _barrier(self, nodes: list[int]) -> list[int]:
        """Barrier to wait for instead of several nodes: an entry that waits for them, and that the
        list holds from now on.  Else what many nodes write and many read has their product of
        edges."""
        if len(nodes) > 1:
            self.after.append([])
            self.missing.append(0)
            self._wait(len(self.after) - 1, nodes)
            nodes[:] = [len(self.after) - 1]
        return nodes

    def _wait(self, at: int, before: Iterable[int]) -> None:
        for i in before:
            self.after[i].append(at)
            self.missing[at] += 1

    def _after_readers(self, writers: dict[int, list[int]]) -> None:
        """Let writers of an output in place of an input wait for those that read that input, unless
        they wait for it: then the pass `in_place` copies the input."""
        for id in self.graph.outputs:
            alias = self.graph.value(id).alias_of
            if alias is None:
                continue
            for writer in writers.get(id, ()):
                reading = [i for i in self.readers.get(alias, ()) if i != writer]
                late = self._reached(writer) if reading else set()
                for reader in reading:
                    if reader not in late and writer not in self.after[reader]:
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

    def groups(self) -> list[list[int]]:
        """The nodes of every step, by number, in an order in which steps can run."""
        found = []
        while self.ready:
            first = heapq.heappop(self.ready)
            if self.done[first]:
                continue
            members = self._grow(first) if is_loopable(self.nodes[first]) else self._alone(first)
            found.append(members)
        return found

    def _alone(self, at: int) -> list[int]:
        self._release(at)
        return [at]

    def _release(self, at: int) -> list[int]:
        """Count a node as done; those that are ready then."""
        freed: list[int] = []
        todo = [at]
        while todo:
            over = todo.pop()
            self.done[over] = True
            for other in self.after[over]:
                self.missing[other] -= 1
                if self.missing[other]:
                    continue
                (freed if other < len(self.nodes) else todo).append(other)
        for other in freed:
            heapq.heappush(self.ready, other)
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
        loop.live, loop.peak = self._tiles(loop, node)
        for id in dict.fromkeys(node.inputs):
            if id in loop.waiting:
                loop.waiting[id] -= 1
        for id in self._made_tiles(node):
            loop.waiting[id] = len(self.readers[id])
        for id in node.inputs:
            if id not in loop.made:
                loop.read.add(self.roots[id])
        for id in node.outputs:
            loop.made.add(id)
            loop.written.add(self.roots[id])
            loop.outputs += self.graph.value(self.roots[id]).storage == "output"
            alias = self._in_place_of(id)
            if alias is not None:
                loop.overwritten.add(alias)
        near = self._release(at)
        for root in {self.roots[id] for id in node.inputs} - looked:
            looked.add(root)
            near += self._neighbours(root)
        return [i for i in near if not self.done[i] and not self.missing[i]]

    def _neighbours(self, root: int) -> list[int]:
        """The next readers of a value, without those at the front that are done."""
        readers, start = self.readers[root], self.passed.get(root, 0)
        while start < len(readers) and self.done[readers[start]]:
            start += 1
        self.passed[root] = start
        return readers[start : start + NEIGHBOURS]

    def _tiles(self, loop: _Loop, node: Node) -> tuple[int, int]:
        """Bytes of an element in the loop's tiles after a node, and at the most."""
        made = self._made_tiles(node)
        live = loop.live + sum([self._itemsize(id) for id in made])
        peak = max(loop.peak, live)
        for id in dict.fromkeys(node.inputs):
            if loop.waiting.get(id) == 1:
                live -= self._itemsize(id)
        return live, peak

    def _made_tiles(self, node: Node) -> list[int]:
        """The results of a node that are tiles as long as all their readers join."""
        values = map(self.graph.value, node.outputs)
        return [
            value.id
            for value in values
            if value.storage == "workspace" and not value.is_view and self.readers.get(value.id)
        ]

    def _itemsize(self, id: int) -> int:
        return self.graph.value(id).dtype.itemsize

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
        """Whether an output in place of an input has the layout of all that is read of it in the loop."""
        for id in node.outputs:
            alias = self._in_place_of(id)
            if alias is not None and not self._all_same(alias, id, loop.members, node):
                return False
        return not any(self.roots[id] in loop.overwritten for id in node.inputs)

    def _in_place_of(self, id: int) -> int | None:
        """The input that an output takes the place of."""
        value = self.graph.value(id)
        return value.alias_of if value.storage == "output" else None

    def _all_same(self, alias: int, out: int, members: Sequence[int], node: Node) -> bool:
        written = self.graph.value(out)
        reads = [id for i in members for id in self.nodes[i].inputs] + list(node.inputs)
        return all(
            same_layout(self.graph.value(id), written) for id in reads if self.roots[id] == alias
        )
