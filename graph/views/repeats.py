"""Repeated sequences of nodes, such as the layers of a network, and graphs that show them once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..ir import Graph, Node, Value

FOLD_FROM = 48  # nodes of a graph; fewer are read one by one
LEAST_SPARED = 8  # nodes that a repeat leaves out
LEAST_PART = 20  # and of all nodes this part: less makes nothing readable
MOST_CARRIED = 3  # names of what one reads of the one before
LAGS = 4  # occurrences of a kind of node between which a period may lie
MOST_PERIODS = 8  # that are tried
MOST_STARTS = 32  # where the first one may begin
MOST_DEPTH = 6  # of searches before and after what was found


Links = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`count` times `period` equal nodes, from node number `start` on."""

    start: int
    period: int
    count: int

    @property
    def spared(self) -> int:
        """Nodes that are not shown."""
        return (self.count - 1) * self.period

    @property
    def end(self) -> int:
        return self.start + self.period * self.count


@dataclass(frozen=True, slots=True)
class Folded:
    """A graph in which repeats are there once.

    Attributes
    ----------
    graph : Graph
        The first of each repeat, and all that is not repeated.  What followed the last one follows
        the first; what links one to the next is left out.
    repeats : tuple of Repeat
        By the numbers of nodes in the whole graph.
    member : dict of str to int
        For the nodes of repeats, by name, which one.
    copies : dict of str to tuple of str
        For nodes and values that stand for several, by name, what the others are called.
    carried : tuple of tuple of str
        For each repeat what it reads of the one before, called as in the first.
    """

    graph: Graph
    repeats: tuple[Repeat, ...] = ()
    member: Mapping[str, int] = field(default_factory=dict)
    copies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    carried: tuple[tuple[str, ...], ...] = ()

    def times(self, node: str) -> str:
        """Number of times that a node is there, in words: ``' x12'``, or nothing."""
        return f" x{self.repeats[self.member[node]].count}" if node in self.member else ""

    def words(self, number: int) -> str:
        """Words about a repeat."""
        one, carried = self.repeats[number], self.carried[number]
        words = f"{one.count} times the same {one.period} nodes"
        first = ", ".join(carried[:MOST_CARRIED]) + ", …" * (len(carried) > MOST_CARRIED)
        return words + (f", each reads {first} of the one before" if carried else "")

    def names(self, name: str) -> tuple[str, ...]:
        """A node or value, and those that it stands for."""
        return (name, *self.copies.get(name, ()))


def is_large(graph: Graph) -> bool:
    """Whether nobody wants to read all nodes one by one."""
    return len(graph.nodes) >= FOLD_FROM


def folded(graph: Graph, whole: bool = False) -> Folded:
    """A graph with its repeats once; with all nodes if it is small, or asked for as a whole."""
    found = tuple(repeats(graph)) if is_large(graph) and not whole else ()
    return _Folding(graph, found).done() if found else Folded(graph)


# --- Finding ----------------------------------------------------------------------------------


def repeats(graph: Graph) -> list[Repeat]:
    """Repeats: nodes that come again in the same order, linked in the same way.

    >>> from aclnn.graph import DType, GraphBuilder
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (4,), f32), b.output("out", (4,), f32)
    >>> for _ in range(6):
    ...     x = b.compute("add", [b.compute("f", [x], (4,), f32), x], (4,), f32)
    >>> b.view_copy(x, out)
    >>> repeats(b.build())
    [Repeat(start=0, period=2, count=6)]
    """
    return sorted(_GraphSearch(graph).within(0, len(graph.nodes)), key=lambda one: one.start)


class Search:
    """The search for repeats in a sequence of things, of which only the kinds count."""

    def __init__(self, kinds: Sequence[int]):
        self.kinds = kinds
        self.least = max(LEAST_SPARED, len(kinds) // LEAST_PART)

    def within(self, low: int, high: int, depth: int = MOST_DEPTH) -> Iterator[Repeat]:
        """The repeat that spares most between two places, then those before and after it."""
        best = self._best(low, high) if depth and high - low > self.least else None
        if best is not None:
            yield best
            yield from self.within(low, best.start, depth - 1)
            yield from self.within(best.end, high, depth - 1)

    def _best(self, low: int, high: int) -> Repeat | None:
        found = chain.from_iterable(
            self._equal_runs(low, high, period) for period in self._periods(low, high)
        )
        checked = [one for one in map(self._checked, found) if one and one.spared >= self.least]
        return max(checked, key=lambda one: (one.spared, -one.period), default=None)

    def _periods(self, low: int, high: int) -> list[int]:
        """Distances at which things of a kind come again, the most frequent ones."""
        seen: dict[int, list[int]] = {}
        distances: Counter[int] = Counter()
        for index in range(low, high):
            before = seen.setdefault(self.kinds[index], [])
            distances.update([index - other for other in before[-LAGS:]])
            before.append(index)
        del distances[1]  # chains of one kind are shown as such
        return [period for period, _ in distances.most_common(MOST_PERIODS)]

    def _equal_runs(self, low: int, high: int, period: int) -> Iterator[Repeat]:
        """Stretches in which each thing is of the kind of the one a period further on."""
        begin = low
        for index in range(low, high - period + 1):
            if index < high - period and self.kinds[index] == self.kinds[index + period]:
                continue
            length = index - begin + period
            if length >= 2 * period and len({*self.kinds[begin : begin + period]}) > 1:
                yield self._placed(begin, length, period)
            begin = index + 1

    def _placed(self, begin: int, length: int, period: int) -> Repeat:
        """Repeat that begins with the first of a stretch."""
        return Repeat(begin, period, length // period)

    def _checked(self, one: Repeat) -> Repeat | None:
        """The part of a repeat that is one, besides the kinds."""
        return one


class _GraphSearch(Search):
    """The search for nodes that are of the same kinds and linked in the same way."""

    def __init__(self, graph: Graph):
        known: dict[Any, int] = {}
        begins = list(_begins(graph))
        pairs = list(zip(graph.nodes, begins, strict=True))
        super().__init__([known.setdefault(_kind(graph, *pair), len(known)) for pair in pairs])
        self.graph = graph
        self.starts = [new or node.attr("loop") is None for node, new in pairs]
        self.writers: dict[int, tuple[int, ...]] = {}
        for index, node in enumerate(graph.nodes):
            for root in {graph.root(id).id for id in node.outputs}:
                self.writers[root] = (*self.writers.get(root, ())[:LAGS], index)

    def _placed(self, begin: int, length: int, period: int) -> Repeat:
        """Repeat that begins with that of a loop, and so that it reads the least of the one
        before."""
        starts = [start for start in range(begin, begin + period) if self.starts[start]]
        count = max(((begin + length - start) // period for start in starts), default=0)
        best = [start for start in starts if (begin + length - start) // period == count]
        least = min(
            best[:MOST_STARTS], key=lambda start: len(self._carried(start, period)), default=begin
        )
        return Repeat(least, period, count)

    def _carried(self, start: int, period: int) -> set[int]:
        """Values of the first that the second one reads."""
        middle = start + period
        read = {
            self.graph.root(id).id
            for node in self.graph.nodes[middle : middle + period]
            for id in node.inputs
        }
        return {id for id in read if any(start <= w < middle for w in self.writers.get(id, ()))}

    def _checked(self, one: Repeat) -> Repeat | None:
        """The longest part of a repeat whose repetitions have the same links."""
        parts = []
        while one.count > 1:
            count = self._count_linked(one)
            parts.append(replace(one, count=count))
            one = Repeat(one.start + count * one.period, one.period, one.count - count)
        return max(parts, key=lambda part: part.count, default=None)

    def _count_linked(self, one: Repeat) -> int:
        """Number of repetitions, from the first on, that are linked like the first two."""
        first, usual = self._links(one, 0), self._links(one, 1)
        if _without_earlier(usual) != first:
            return 1
        numbers = range(2, one.count)
        return next((n for n in numbers if self._links(one, n) != usual), one.count)

    def _links(self, one: Repeat, number: int) -> list[Links]:
        """For each operand its writers: how many repetitions before, and which of their nodes."""
        begin = one.start + number * one.period
        found = []
        for node in self.graph.nodes[begin : begin + one.period]:
            for id in node.inputs:
                places = [p - one.start for p in self.writers.get(self.graph.root(id).id, ())]
                inside = [p for p in places if 0 <= p < one.count * one.period]
                found.append(tuple([(number - p // one.period, p % one.period) for p in inside]))
        return found


def _kind(graph: Graph, node: Node, begins: bool) -> Any:
    """Key that nodes share that may stand for each other."""
    read, made = (map(graph.value, ids) for ids in (node.inputs, node.outputs))
    operands = tuple([(v.shape, v.strides, v.dtype) for v in read])
    results = tuple([(v.shape, v.strides, v.dtype, v.storage, v.is_view) for v in made])
    loop = node.attr("loop") is not None
    steps = tuple([step[1:] for step in node.attr("then", ())])
    return node.kind, node.attr("kernel"), node.domain, loop, begins, operands, results, steps


def _begins(graph: Graph) -> Iterator[bool]:
    """For each node whether it begins a loop."""
    before = None
    for node in graph.nodes:
        loop = node.attr("loop")
        yield loop is not None and loop != before
        before = loop


def _without_earlier(links: Sequence[Links]) -> list[Links]:
    """The links of the first one: what the others read of the one before comes from outside."""
    return [tuple([link for link in one if link[0] == 0]) for one in links]


# --- Folding ----------------------------------------------------------------------------------


class _Folding:
    """A graph that is made smaller: what stands for each value, and who stands for several."""

    def __init__(self, graph: Graph, found: tuple[Repeat, ...]):
        self.graph, self.found = graph, found
        self.readers = graph.readers()
        self.places = {node.name: index for index, node in enumerate(graph.nodes)}
        self.now: dict[int, int] = {}
        self.copies: dict[str, dict[str, None]] = {}
        self.member: dict[str, int] = {}

    def done(self) -> Folded:
        for number, one in enumerate(self.found):
            for index in range(one.start, one.start + one.period):
                self._fold(number, one, index)
        carried = [self._carried(one) for one in self.found]
        kept = self._kept()
        values = self._values(kept)
        known = {value.id for value in values}
        inputs = tuple(id for id in self.graph.inputs if id in known)
        outputs = tuple(dict.fromkeys(map(self._shown, self.graph.outputs)))
        outputs = tuple(id for id in outputs if id in known)
        small = replace(
            self.graph, nodes=tuple(kept), values=values, inputs=inputs, outputs=outputs
        )
        copies = {name: tuple(others) for name, others in self.copies.items()}
        return Folded(small, self.found, self.member, copies, tuple(carried))

    def _fold(self, number: int, one: Repeat, index: int) -> None:
        """Let a node of the first repetition stand for those of the others, with its operands."""
        first = self.graph.nodes[index]
        self.member[first.name] = number
        for again in range(1, one.count):
            other = self.graph.nodes[index + again * one.period]
            self._stand(first.name, other.name)
            for mine, its in zip(first.outputs, other.outputs, strict=True):
                self._stand_for(mine, its)
            for mine, its in zip(first.inputs, other.inputs, strict=True):
                if self._is_argument(mine) and self._is_of_others(its, one):
                    self._stand_for(mine, its)

    def _is_argument(self, id: int) -> bool:
        """Whether no node writes a value."""
        return not self.graph.writers().get(self.graph.root(id).id)

    def _is_of_others(self, id: int, one: Repeat) -> bool:
        """Whether a value is an argument that only repetitions after the first one read."""
        begin = one.start + one.period
        readers = self.readers[self.graph.root(id).id]
        return self._is_argument(id) and all(
            begin <= self.places[reader.name] < one.end for reader in readers
        )

    def _stand_for(self, mine: int, its: int) -> None:
        """Let a value stand for another, and for what that is a view of."""
        for old, new in ((its, mine), (self.graph.root(its).id, self.graph.root(mine).id)):
            new = self._shown(new)  # which an earlier repeat may have replaced
            if old != new and old not in self.now:
                self.now[old] = new
                self._stand(self.graph.value(new).name, self.graph.value(old).name)

    def _stand(self, name: str, other: str) -> None:
        self.copies.setdefault(name, {})[other] = None

    def _carried(self, one: Repeat) -> tuple[str, ...]:
        """Values of the first repetition that the second one reads."""
        middle = one.start + one.period
        made = {
            self.graph.root(id).id
            for node in self.graph.nodes[one.start : middle]
            for id in node.outputs
        }
        read = chain.from_iterable(n.inputs for n in self.graph.nodes[middle : middle + one.period])
        roots = [self.graph.root(id) for id in read]
        return tuple(dict.fromkeys(root.name for root in roots if root.id in made))

    def _kept(self) -> list[Node]:
        """The nodes that are shown, reading what stands for what they read."""
        gone = {index for one in self.found for index in range(one.start + one.period, one.end)}
        return [
            replace(node, inputs=tuple([self._shown(id) for id in node.inputs]))
            for index, node in enumerate(self.graph.nodes)
            if index not in gone
        ]

    def _shown(self, id: int) -> int:
        while id in self.now:
            id = self.now[id]
        return id

    def _values(self, kept: Sequence[Node]) -> tuple[Value, ...]:
        """The values that are shown: what nodes read and write, and what that is a view of."""
        needed = {id for node in kept for id in node.operands}
        needed |= {id for id in self.graph.inputs if id not in self.now and id not in self.readers}
        found: dict[int, Value] = {}
        for id in sorted(needed):
            while id is not None and id not in found:
                value = self.graph.value(id)
                if value.alias_of is not None:
                    value = replace(value, alias_of=self._shown(value.alias_of))
                found[id] = value
                id = value.alias_of  # type: ignore[assignment]
        return tuple(found[id] for id in sorted(found))


# --- Arguments --------------------------------------------------------------------------------


def arguments(graph: Graph) -> list[Value]:
    """Arguments before the first step: inputs in their order, then constants."""
    constants = [v for v in graph.values if v.storage == "constant" and not v.is_view]
    return [*map(graph.value, graph.inputs), *constants]


def roots_read(graph: Graph, node: Node) -> list[int]:
    """The values that own what a node reads."""
    return list(dict.fromkeys(graph.root(id).id for id in node.inputs))


def side_inputs(small: Folded) -> set[int]:
    """Arguments that nodes read besides what flows through the graph: weights, tables, constants.

    Those are constants, what each repetition has its own of, and inputs of which every reader reads
    something that is computed too; a graph of one call has all its inputs as boxes.  In a large
    graph also all but the first of what a node reads that reads inputs alone.
    """
    graph, writers = small.graph, small.graph.writers()
    large = is_large(graph) or bool(small.repeats)
    is_call = not large and not any(node.attr("call") for node in graph.nodes)
    constants = {value.id for value in graph.values if value.storage == "constant"}
    readers: dict[int, int] = {}
    flowing: set[int] = set()  # read by a node that reads nothing else
    for node in graph.nodes:
        roots = roots_read(graph, node)
        args = [root for root in roots if root not in writers and root not in constants]
        for root in roots:
            readers[root] = readers.get(root, 0) + 1
        if len(args) < len([root for root in roots if root not in constants]):
            continue
        own = [root for root in args if len(small.names(graph.value(root).name)) == 1]
        flowing |= set((own or args)[:1] if large else args)
    return {
        value.id
        for value in arguments(graph)
        if value.id in readers
        and (value.id in constants or not (is_call or value.id in flowing))
        and value.id not in writers
    }
