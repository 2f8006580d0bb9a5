"""Planners: functions from lifetimes to places in one workspace.

All of them answer the same question, with more or less care; none knows what a graph is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..tiling import pad
from .lifetimes import Lifetime

NPU_BLOCK = 512  # bytes that the NPU library's buffers are multiples of
NPU_EXTRA = 32  # bytes that it adds before it rounds up
SEARCH_BUFFERS = 10  # that all packings are tried for
SEARCH_NODES = 20_000  # partial packings that are visited before the search gives up


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a planner decides: for every lifetime an offset and a padded size.

    `size` is that of the workspace.  `searched` says that no smaller assignment exists, because all
    were tried.

    >>> lives = [Lifetime("a", 0, 2, 100), Lifetime("b", 3, 4, 50)]
    >>> bucket(lives) == Assignment(offsets=(0, 0), padded=(512, 512), size=512)
    True
    """

    offsets: tuple[int, ...]
    padded: tuple[int, ...]
    size: int
    searched: bool = False


Planner = Callable[[Sequence[Lifetime]], Assignment]


def npu_padded(nbytes: int) -> int:
    """The smallest multiple of 512 that is at least `nbytes` + 32.

    >>> npu_padded(480), npu_padded(481)
    (512, 1024)
    """
    return pad(nbytes + NPU_EXTRA, NPU_BLOCK)


def naive(lifetimes: Sequence[Lifetime]) -> Assignment:
    """Every intermediate in a place of its own.

    >>> naive([Lifetime("a", 0, 1, 100), Lifetime("b", 1, 2, 100)]).offsets
    (0, 512)
    """
    padded = [npu_padded(life.nbytes) for life in lifetimes]
    offsets, top = [], 0
    for size in padded:
        offsets.append(top)
        top += size
    return Assignment(tuple(offsets), tuple(padded), top)


def bucket(lifetimes: Sequence[Lifetime]) -> Assignment:
    """What the NPU library does.

    Intermediates are visited in the order of the steps that make them.  Each goes to the
    highest-numbered bucket whose newest member's last step lies before the new one's first (a
    shared step counts as touching), else to a new bucket.  A bucket is as large as its largest
    member; buckets follow each other.

    >>> lives = [Lifetime(n, i, i + 2, 100) for i, n in enumerate("abc")]
    >>> bucket(lives).offsets
    (0, 512, 0)
    """
    return _in_buckets(lifetimes, npu_padded)


def _in_buckets(lifetimes: Sequence[Lifetime], padding: Callable[[int], int]) -> Assignment:
    """The policy of `bucket`, with sizes padded in any way."""
    padded = [padding(life.nbytes) for life in lifetimes]
    members: list[list[int]] = []
    for i in sorted(range(len(lifetimes)), key=lambda i: lifetimes[i].first):
        for group in reversed(members):
            if lifetimes[group[-1]].last < lifetimes[i].first:
                group.append(i)
                break
        else:
            members.append([i])
    offsets, top = [0] * len(lifetimes), 0
    for group in members:
        for i in group:
            offsets[i] = top
        top += max(padded[i] for i in group)
    return Assignment(tuple(offsets), tuple(padded), top)


def default(lifetimes: Sequence[Lifetime]) -> Assignment:
    """The smallest of several packings; never larger than `bucket`.

    Tried in turn, the first of the smallest wins: lowest place first by size, by length, by
    area, by step, by the busiest step; the tightest gap first by size; buckets without the
    NPU's padding.  When none reaches the lower bound and there are few buffers, all packings
    are searched.

    >>> lives = [Lifetime("a", 0, 2, 64), Lifetime("b", 1, 3, 128), Lifetime("c", 2, 4, 64)]
    >>> default(lives).size
    192
    """
    padded = tuple(pad(life.nbytes) for life in lifetimes)
    bound = lower_bound(lifetimes, padded)
    best = _in_buckets(lifetimes, pad)
    if best.size == bound:
        return best
    clashes = _clashes(lifetimes)
    for order, tightest in _orders(lifetimes, padded):
        offsets = _first_fit(clashes, padded, order, tightest)
        size = max(offset + nbytes for offset, nbytes in zip(offsets, padded, strict=True))
        if size < best.size:
            best = Assignment(offsets, padded, size)
        if best.size == bound:
            return best
    return _search(lifetimes, padded, bound, best) if len(padded) <= SEARCH_BUFFERS else best


STRATEGIES: dict[str, Planner] = {"default": default, "bucket": bucket, "naive": naive}


def planner_of(strategy: str | Planner) -> Planner:
    """The planner that a strategy names, or a planner itself.

    >>> planner_of("bucket") is bucket
    True
    """
    if callable(strategy):
        return strategy
    if isinstance(strategy, str) and strategy in STRATEGIES:
        return STRATEGIES[strategy]
    known = ", ".join(STRATEGIES)
    raise ValueError(f"strategy is {strategy!r}, must be one of {known}, or a planner of your own")


def lower_bound(lifetimes: Sequence[Lifetime], sizes: Sequence[int]) -> int:
    """Largest sum of sizes that are live at one step: no plan can be smaller."""
    return max(_live(lifetimes, sizes).values(), default=0)


def _live(lifetimes: Sequence[Lifetime], sizes: Sequence[int]) -> dict[int, int]:
    pairs = zip(lifetimes, sizes, strict=True)
    return live_bytes((life.lower, life.upper, size) for life, size in pairs)


def live_bytes(spans: Iterable[tuple[int, int, int]]) -> dict[int, int]:
    """Live bytes at every step at which something starts; the peak is at one of them.

    Spans are (lower, upper, bytes), with `upper` the first step at which they are free again.

    >>> live_bytes([(0, 2, 64), (1, 3, 128), (2, 3, 64)])
    {0: 64, 1: 192, 2: 192}
    """
    starts: set[int] = set()
    change: dict[int, int] = defaultdict(int)
    for lower, upper, nbytes in spans:
        starts.add(lower)
        change[lower] += nbytes
        change[upper] -= nbytes
    steps = sorted(change)
    totals = accumulate(change[step] for step in steps)
    return {step: total for step, total in zip(steps, totals, strict=True) if step in starts}


def _orders(
    lifetimes: Sequence[Lifetime], padded: Sequence[int]
) -> Iterator[tuple[list[int], bool]]:
    """Orders in which to place buffers, each with whether to prefer the tightest gap."""
    indices = range(len(lifetimes))
    span = [life.upper - life.lower for life in lifetimes]
    live = _live(lifetimes, padded)
    starts, totals = list(live), list(live.values())
    breadth = [
        max(totals[bisect_left(starts, life.lower) : bisect_left(starts, life.upper)])
        for life in lifetimes
    ]
    keys: list[Callable[[int], tuple]] = [
        lambda i: (-padded[i], lifetimes[i].lower, i),
        lambda i: (-span[i], -padded[i], i),
        lambda i: (-span[i] * padded[i], i),
        lambda i: (lifetimes[i].lower, -padded[i], i),
        lambda i: (-breadth[i], -padded[i], i),
    ]
    for tightest in (False, True):
        for key in keys:
            yield sorted(indices, key=key), tightest


def _clashes(lifetimes: Sequence[Lifetime]) -> list[list[int]]:
    """For each lifetime the places of those that are needed together with it."""
    found: list[list[int]] = [[] for _ in lifetimes]
    live: list[int] = []
    for i in sorted(range(len(lifetimes)), key=lambda i: lifetimes[i].lower):
        live = [j for j in live if lifetimes[j].upper > lifetimes[i].lower]
        found[i] += live
        for j in live:
            found[j].append(i)
        live.append(i)
    return found


def _first_fit(
    clashes: Sequence[Sequence[int]], padded: Sequence[int], order: Sequence[int], tightest: bool
) -> tuple[int, ...]:
    """Place buffers in `order`, each in the lowest gap (or the tightest one) that holds it."""
    offsets = [-1] * len(padded)
    for i in order:
        busy = sorted((offsets[j], offsets[j] + padded[j]) for j in clashes[i] if offsets[j] >= 0)
        offsets[i] = _gap(busy, padded[i], tightest)
    return tuple(offsets)


def _gap(busy: Sequence[tuple[int, int]], size: int, tightest: bool) -> int:
    """Where `size` bytes fit between the `busy` stretches, which are in order, or behind them."""
    place, slack, top = -1, 0, 0
    for begin, end in busy:
        room = begin - top
        if room >= size and (place < 0 or room - size < slack):
            place, slack = top, room - size
            if not tightest:
                return place
        top = max(top, end)
    return top if place < 0 else place


# --- Searching all packings -------------------------------------------------------------------


def _search(
    lifetimes: Sequence[Lifetime], padded: tuple[int, ...], bound: int, best: Assignment
) -> Assignment:
    """The smallest packing of few buffers, or the best one met before giving up."""
    search = _Search(lifetimes, padded, bound, best)
    search.place(0, len(padded))
    found = search.best
    return Assignment(found.offsets, padded, found.size, searched=search.visited < SEARCH_NODES)


class _Search:
    """Branch and bound over the orders in which buffers can be stacked by ascending offset.

    Some smallest plan has every buffer on the floor or on top of one that is live with it.
    Placing buffers by ascending offset, each on top of those below it, visits all such plans.
    """

    def __init__(
        self,
        lifetimes: Sequence[Lifetime],
        padded: tuple[int, ...],
        bound: int,
        best: Assignment,
    ):
        self.padded = padded
        self.bound = bound
        self.best = best
        self.visited = 0
        self.offsets = [-1] * len(padded)  # -1: not placed yet
        self.clashes = _clashes(lifetimes)
        self.live = [
            [i for i, life in enumerate(lifetimes) if life.lower <= t < life.upper]
            for t in sorted({life.lower for life in lifetimes})
        ]

    def place(self, floor: int, left: int) -> None:
        """Try every buffer that can come next, at or above `floor`."""
        self.visited += 1
        if left == 0:
            size = self._top(range(len(self.padded)))
            if size < self.best.size:
                self.best = Assignment(tuple(self.offsets), self.padded, size)
            return
        if self._hopeless(floor):
            return
        waiting = (i for i, offset in enumerate(self.offsets) if offset < 0)
        options = sorted((self._top(self.clashes[i]), -self.padded[i], i) for i in waiting)
        for offset, _, i in options:
            if self.visited >= SEARCH_NODES or self.best.size == self.bound:
                return
            if offset >= floor:
                self.offsets[i] = offset
                self.place(offset, left - 1)
                self.offsets[i] = -1

    def _top(self, members: Sequence[int]) -> int:
        """The highest byte taken by those of `members` that are placed."""
        placed = (i for i in members if self.offsets[i] >= 0)
        return max((self.offsets[i] + self.padded[i] for i in placed), default=0)

    def _hopeless(self, floor: int) -> bool:
        """Whether some step needs too much, however its waiting buffers are stacked."""
        for members in self.live:
            waiting = sum(self.padded[i] for i in members if self.offsets[i] < 0)
            if waiting and max(floor, self._top(members)) + waiting >= self.best.size:
                return True
        return False
