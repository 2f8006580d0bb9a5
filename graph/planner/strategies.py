"""Strategies: functions from lifetimes to places in one workspace.

All of them answer the same question, with more or less care; none knows what a graph is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite
from typing import Any

from ..loops.tiling import pad
from ._search import Search
from .lifetimes import Lifetime

NPU_BLOCK = 512  # bytes that the NPU library's buffers are multiples of
NPU_EXTRA = 32  # bytes that it adds before it rounds up
TIMEOUT = 1.0  # seconds that `exact` searches for when nobody says how long


@dataclass(frozen=True, slots=True)
class Assignment:
    """A planner's result: an offset and a padded size for every lifetime.

    `size` is that of the workspace.  `searched` means that an exhaustive search found no smaller
    assignment; `bound` is a proven lower bound, if it exceeds the peak.

    >>> lives = [Lifetime("a", 0, 2, 100), Lifetime("b", 3, 4, 50)]
    >>> bucket(lives) == Assignment(offsets=(0, 0), padded=(512, 512), size=512)
    True
    """

    offsets: tuple[int, ...]
    padded: tuple[int, ...]
    size: int
    searched: bool = False
    bound: int = 0


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
    padded = tuple(npu_padded(life.nbytes) for life in lifetimes)
    *offsets, top = accumulate(padded, initial=0)
    return Assignment(tuple(offsets), padded, top)


def bucket(lifetimes: Sequence[Lifetime]) -> Assignment:
    """Plan by the NPU library's policy.

    Intermediates are visited in the order of the steps that make them.  Each goes to the
    highest-numbered bucket whose newest member's last step is before the new one's first (a
    shared step counts as touching), else to a new bucket.  A bucket is as large as its largest
    member; buckets follow each other.

    >>> lives = [Lifetime(n, i, i + 2, 100) for i, n in enumerate("abc")]
    >>> bucket(lives).offsets
    (0, 512, 0)
    """
    search = Search(lifetimes)
    return Assignment(search.bucket_offsets(), search.npu_padded(), search.bucket)


def default(lifetimes: Sequence[Lifetime]) -> Assignment:
    """The smallest of many packings, the same every time; never larger than `bucket`.

    Tried in turn until the lower bound is reached or the work used up, which is counted and not
    timed: buckets without the NPU's padding; the lowest gap, and the tightest one, by size,
    span, area, step and busiest step; for few buffers all packings; for up to 1,024 buffers boxes
    of buffers that fit each other, packed instead of buffers; packings from the ground
    upwards, heaviest first, by weights that vary from one to the next; for up to 1,024 buffers,
    packings below a capacity, by what each step forces and by weights that learn from dead ends.

    >>> lives = [Lifetime("a", 0, 2, 64), Lifetime("b", 1, 3, 128), Lifetime("c", 2, 4, 64)]
    >>> default(lives).size
    192
    """
    search = Search(lifetimes)
    search.place()
    size = search.size
    return Assignment(search.offsets(), search.padded(), size, search.lower == size)


def exact(
    lifetimes: Sequence[Lifetime],
    timeout: float = TIMEOUT,
    on_interrupt: Callable[[], None] | None = None,
) -> Assignment:
    """The smallest packing, or the best that `timeout` seconds of search give; never above `default`.

    What starts as `default` goes on with searches of the tree of packings for smaller and smaller
    ones, and with boxes and packings as low as the bound, with budgets that double, until nothing smaller is
    left. A KeyboardInterrupt ends the search; where `on_interrupt` is given, that is called then, and
    what was found until then is kept.

    >>> lives = [Lifetime("a", 0, 2, 64), Lifetime("b", 1, 3, 128), Lifetime("c", 2, 4, 64)]
    >>> exact(lives).size, exact(lives).searched
    (192, True)
    """
    search = Search(lifetimes)
    try:
        search.prove(timeout)
    except KeyboardInterrupt:
        if on_interrupt is None:
            raise
        on_interrupt()
    lower, size = search.lower, search.size
    return Assignment(search.offsets(), search.padded(), size, lower == size, lower)


STRATEGIES: dict[str, Planner] = {
    "default": default,
    "bucket": bucket,
    "naive": naive,
    "exact": exact,
}


def planner_of(strategy: str | Planner, timeout: float | None = None) -> Planner:
    """The planner that a strategy names, with its time limit, or a planner itself.

    >>> planner_of("bucket") is bucket
    True
    """
    if timeout is not None:
        if strategy != "exact":
            raise ValueError("timeout: only the strategy 'exact' has one")
        seconds = _seconds(timeout)
        return lambda lifetimes: exact(lifetimes, seconds)
    if callable(strategy):
        return strategy
    if isinstance(strategy, str) and strategy in STRATEGIES:
        return STRATEGIES[strategy]
    known = ", ".join(STRATEGIES)
    raise ValueError(f"strategy is {strategy!r}, must be one of {known}, or a planner of your own")


def _seconds(timeout: Any) -> float:
    try:
        seconds = float("nan") if isinstance(timeout, (bool, str)) else float(timeout)
    except (TypeError, ValueError, OverflowError):
        seconds = float("nan")
    if not isfinite(seconds) or seconds <= 0:
        raise ValueError(f"timeout is {timeout!r}, must be a number of seconds above 0")
    return seconds


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
