"""The order of steps: one in which less is live at once, where there is one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from ..ir import Graph
from ..loops.tiling import pad

Group = Sequence[int]  # nodes of a step, by number


def ordered_for_peak(
    graph: Graph, groups: Sequence[Group], after: Sequence[Sequence[int]]
) -> tuple[list[Group], int, int]:
    """The steps in an order with a lower peak of intermediates, if one is found.

    Parameters
    ----------
    graph : Graph
    groups : sequence of sequence of int
        The nodes of each step, in an order in which steps can run.
    after : sequence of sequence of int
        What waits for each node, by number; numbers beyond those of nodes are barriers, which wait
        for nodes, and others for them.

    Returns
    -------
    groups : list
        In another order, or in the same one where none with a lower peak was found.
    before, peak : int
        Bytes that are live at once in the order given, and in this one; 0 where there is no choice.
    """
    memory = _Memory(graph, groups) if len(groups) > 2 else None
    if memory is None or len(memory.sizes) < 2:
        return [*groups], 0, 0
    before = memory.peak(range(len(groups)))
    order = _least_growth(memory, *_waiting(groups, after))
    peak = memory.peak(order)
    if peak >= before:
        return [*groups], before, before
    return [groups[number] for number in order], before, peak


class _Memory:
    """The intermediates between steps: which steps make, read and end each of them."""

    def __init__(self, graph: Graph, groups: Sequence[Group]):
        users: dict[int, list[int]] = {}
        makers: dict[int, int] = {}
        for number, group in enumerate(groups):
            for node in [graph.nodes[at] for at in group]:
                for id in node.operands:
                    steps = users.setdefault(graph.root(id).id, [])
                    if not steps or steps[-1] != number:
                        steps.append(number)
                for id in node.outputs:
                    makers.setdefault(graph.root(id).id, number)
        # What only one step has to do with is no matter of order.
        self.sizes = {
            id: pad(graph.value(id).nbytes)
            for id, steps in users.items()
            if len(steps) > 1 and graph.value(id).storage == "workspace" and id in makers
        }
        self.users = {id: users[id] for id in self.sizes}
        self.used: list[list[int]] = [[] for _ in groups]
        for id, steps in self.users.items():
            for number in steps:
                self.used[number].append(id)
        self.in_place = [graph.nodes[group[0]].domain != "opaque" for group in groups]

    def peak(self, order: Sequence[int]) -> int:
        """Bytes that are live at once; results take the place of operands that die, where they may."""
        left = {id: len(steps) for id, steps in self.users.items()}
        live = peak = 0
        for number in order:
            made, over = [], []
            for id in self.used[number]:
                if left[id] == len(self.users[id]):
                    made.append(self.sizes[id])
                left[id] -= 1
                if not left[id]:
                    over.append(self.sizes[id])
            live += sum(made)
            shared = _common(made, over) if self.in_place[number] else 0
            peak = max(peak, live - shared)
            live -= sum(over)
        return peak


def _common(made: list[int], over: list[int]) -> int:
    """Bytes of those that are in both lists."""
    rest, total = [*over], 0
    for size in made:
        if size in rest:
            rest.remove(size)
            total += size
    return total


def _waiting(
    groups: Sequence[Group], after: Sequence[Sequence[int]]
) -> tuple[list[list[int]], list[int]]:
    """Waiters of each step, and numbers of steps that each waits for; barriers come after steps."""
    unit: dict[int, int] = {at: number for number, group in enumerate(groups) for at in group}
    for at in range(len(after)):
        unit.setdefault(at, len(groups) + at)
    edges: list[list[int]] = [[] for _ in range(len(groups) + len(after))]
    missing = [0] * len(edges)
    for at, others in enumerate(after):
        for other in others:
            if unit[at] != unit[other]:
                edges[unit[at]].append(unit[other])
                missing[unit[other]] += 1
    return edges, missing


def _least_growth(memory: _Memory, edges: list[list[int]], missing: list[int]) -> list[int]:
    """Steps one by one, of those that are ready the one after which least is live."""
    steps = len(memory.used)
    left = {id: len(users) for id, users in memory.users.items()}

    def growth(number: int) -> int:
        total = 0
        for id in memory.used[number]:
            total += memory.sizes[id] * ((left[id] == len(memory.users[id])) - (left[id] == 1))
        return total

    order: list[int] = []
    done = [False] * len(missing)
    ready = [(growth(number), number) for number in range(steps) if not missing[number]]
    heapq.heapify(ready)
    while ready:
        grown, number = heapq.heappop(ready)
        if done[number] or grown != growth(number):
            continue  # what it ends or makes has changed: it was added again
        order.append(number)
        again = {*_released(number, edges, missing, done, steps)}
        for id in memory.used[number]:
            left[id] -= 1
            users = memory.users[id]
            if left[id] in (1, len(users) - 1):
                again.update([one for one in users if not done[one] and not missing[one]])
        for other in again:
            heapq.heappush(ready, (growth(other), other))
    return order


def _released(
    number: int, edges: list[list[int]], missing: list[int], done: list[bool], steps: int
) -> list[int]:
    """Count a step as done, with the barriers that waited for it alone; the steps that are ready then."""
    freed: list[int] = []
    todo = [number]
    while todo:
        over = todo.pop()
        done[over] = True
        for other in edges[over]:
            missing[other] -= 1
            if missing[other] == 0:
                (freed if other < steps else todo).append(other)
    return freed
