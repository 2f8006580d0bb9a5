"""Intermediates in the memory of outputs, before anything is written there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..loops.tiling import pad
from ._search import fit_below
from .lifetimes import Lifetime, SpareMemory
from .strategies import live_bytes


@dataclass(frozen=True, slots=True)
class Held:
    """A place in the memory of an output."""

    output: str
    offset: int
    padded: int


def in_outputs(
    lives: Sequence[Lifetime], spare: Sequence[SpareMemory], heirs: Mapping[str, int]
) -> dict[int, Held]:
    """Lifetimes that lie in outputs, by their number; `heirs` has the numbers of those that an output
    is written over.

    Several orders are tried; the one counts that leaves least to the workspace's peak.

    >>> lives = [Lifetime("a", 0, 2, 100), Lifetime("b", 1, 3, 50), Lifetime("c", 2, 4, 100)]
    >>> in_outputs(lives, [SpareMemory("out", 192, 3)], {})
    {0: Held(output='out', offset=0, padded=128), 1: Held(output='out', offset=128, padded=64)}
    """
    spans = [(life.lower, life.upper, pad(life.nbytes)) for life in lives]
    live = live_bytes(spans)
    peak = max(live, key=live.__getitem__, default=0)
    at_peak = [lower <= peak < upper for lower, upper, _ in spans]
    best: dict[int, Held] = {}
    least = live.get(peak, 0)
    for key in _ORDERS:
        order = sorted(range(len(lives)), key=lambda i: (key(lives[i], at_peak[i]), i))
        found = _filled(lives, spare, heirs, order)
        rest = [span for i, span in enumerate(spans) if i not in found]
        left = max(live_bytes(rest).values(), default=0)
        if left < least or not best:
            best, least = found, left
    return dict(sorted(best.items()))


# Of equal ones the latest come first: what lives when the output is written stays outside, so that
# chains which swing between both have to end there.
_ORDERS: tuple[Callable[[Lifetime, bool], tuple[int, ...]], ...] = (
    lambda life, at_peak: (not at_peak, -life.nbytes, -life.upper),
    lambda life, _: (-life.nbytes, -life.upper),
    lambda life, _: (-life.upper, -life.nbytes),
    lambda life, _: (-life.nbytes * (life.upper - life.lower), -life.upper),
    lambda life, at_peak: (not at_peak, life.nbytes, -life.upper),
)


def _filled(
    lives: Sequence[Lifetime],
    spare: Sequence[SpareMemory],
    heirs: Mapping[str, int],
    order: Sequence[int],
) -> dict[int, Held]:
    """Contents of outputs when lifetimes are given to them in this order, the largest output first."""
    found: dict[int, Held] = {}
    for memory in sorted(spare, key=lambda one: -one.nbytes):
        heir = heirs.get(memory.heir)
        asking = [i for i in order if i not in found and may_lie_in(lives[i], memory, i == heir)]
        if heir in asking:  # it is where the output is: first, at 0
            asking.sort(key=lambda i: i != heir)
        spans = [(lives[i].lower, lives[i].upper, lives[i].nbytes) for i in asking]
        for i, offset in zip(asking, fit_below(spans, memory.nbytes), strict=True):
            if offset >= 0:
                padded = min(pad(lives[i].nbytes), memory.nbytes - offset)
                found[i] = Held(memory.output, offset, padded)
    return found


def may_lie_in(life: Lifetime, memory: SpareMemory, is_heir: bool = False) -> bool:
    """Whether a lifetime is over when the output is written; tiles stay in the workspace."""
    if memory.only_heir and not is_heir:
        return False
    until = memory.until + is_heir
    return life.upper <= until and 0 < life.nbytes <= memory.nbytes and not life.parts


def bound_beside(
    lives: Sequence[Lifetime], spare: Sequence[SpareMemory], heirs: Mapping[str, int]
) -> int:
    """Bytes of workspace that no plan is below, whichever lifetimes lie in outputs."""
    movable = [
        any(may_lie_in(life, memory, heirs.get(memory.heir) == i) for memory in spare)
        for i, life in enumerate(lives)
    ]
    room = sum([pad(memory.nbytes) for memory in spare])
    spans = [(life.lower, life.upper, pad(life.nbytes)) for life in lives]
    live = live_bytes(spans)
    # Where nothing movable is live at a step, none of the room counts.
    moving = live_bytes([(a, b, n if movable[i] else 0) for i, (a, b, n) in enumerate(spans)])
    return max([total - min(room, moving[step]) for step, total in live.items()], default=0)
