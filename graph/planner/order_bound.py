"""Lower bounds on the peak over all orders of steps."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from ..loops.tiling import pad
from .lifetimes import Lifetime, merged

MOST_STATES = 20_000  # sets of finished steps that are looked at


def order_bound(lifetimes: Sequence[Lifetime], states: int = MOST_STATES) -> tuple[int, bool]:
    """Bytes that are live at once at least, in whichever order steps run, and whether some order has them.

    A step waits for those that make what it uses.  Sets of finished steps are visited by the peak that
    leads to them, least first: when all steps are done, that is the least of all orders; when `states` are
    used up, none is below.

    Parameters
    ----------
    lifetimes : sequence of Lifetime
        With `uses`; the first makes the buffer.
    states : int
        Sets of finished steps that may be looked at.

    Returns
    -------
    tuple of (int, bool)

    Examples
    --------
    Two branches, of which each has a large step that leaves little:

    >>> lives = [Lifetime("a", 0, 3, 4096, uses=(0, 2)), Lifetime("b", 1, 4, 4096, uses=(1, 3)),
    ...          Lifetime("c", 2, 5, 64, uses=(2, 4)), Lifetime("d", 3, 5, 64, uses=(3, 4))]
    >>> order_bound(lives)
    (4224, True)
    """
    lives = [life for life in merged(lifetimes)[0] if life.nbytes]
    steps = sorted({step for life in lives for step in life.used})
    number = {step: index for index, step in enumerate(steps)}
    makers = [number[life.used[0]] for life in lives]
    users = [sum(1 << number[step] for step in set(life.used)) for life in lives]
    sizes = [pad(life.nbytes) for life in lives]
    touched: list[list[int]] = [[] for _ in steps]
    needs = [0] * len(steps)
    for at, life in enumerate(lives):
        for step in life.used:
            touched[number[step]].append(at)
            if number[step] != makers[at]:
                needs[number[step]] |= 1 << makers[at]
    everything = (1 << len(steps)) - 1
    waiting = [(0, 0, 0)]  # peak, finished steps, bytes that they leave
    seen: dict[int, int] = {}
    bound = 0
    while waiting:
        peak, done, live = heapq.heappop(waiting)
        if done in seen:
            continue
        seen[done], bound = peak, max(bound, peak)
        if done == everything:
            return peak, True
        if len(seen) >= states:
            return max(bound, _widest(touched, sizes)), False
        for step in range(len(steps)):
            if done >> step & 1 or needs[step] & ~done:
                continue
            after = done | 1 << step
            if after in seen:
                continue
            made = sum([sizes[at] for at in touched[step] if makers[at] == step])
            over = sum([sizes[at] for at in touched[step] if not users[at] & ~after])
            heapq.heappush(waiting, (max(peak, live + made), after, live + made - over))
    return bound, False


def _widest(touched: Sequence[Sequence[int]], sizes: Sequence[int]) -> int:
    """Bytes of the step that has most operands and results."""
    return max([sum([sizes[at] for at in one]) for one in touched], default=0)
