"""Plans of lifetimes that demand something of their places: alignments, fixed offsets, hints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import lcm

from ..loops.tiling import ALIGNMENT, pad
from .lifetimes import Lifetime, fixed_overlap
from .strategies import Assignment, Planner, live_bytes

Place = tuple[int, int]  # where bytes begin and end
MOST_FITTED = 2000  # lifetimes that are placed in every order, which takes time by their square


def has_demands(life: Lifetime) -> bool:
    """Whether not every place will do.

    >>> has_demands(Lifetime("a", 0, 1, 64)), has_demands(Lifetime("a", 0, 1, 64, alignment=512))
    (False, True)
    """
    return life.offset is not None or life.hint is not None or life.alignment > 1


def planned_with_demands(lives: Sequence[Lifetime], planner: Planner) -> Assignment:
    """Places that are as lifetimes demand, by whichever way needs least.

    Lifetimes without fixed offsets are given to `planner` in units of the largest alignment; all are
    placed in several orders, each as low as it may be, and where its hint is, if that is free.

    >>> from .strategies import default
    >>> lives = [Lifetime("a", 0, 2, 64), Lifetime("b", 1, 3, 64, alignment=512)]
    >>> planned_with_demands(lives, default).offsets
    (64, 0)
    """
    if pair := fixed_overlap(lives):
        a, b = (lives[i] for i in pair)
        raise ValueError(
            f"{a.name} at {a.offset} and {b.name} at {b.offset} have fixed offsets and overlap, but both "
            f"are needed at step {max(a.lower, b.lower)}"
        )
    offsets = [life.offset for life in lives if life.offset is not None]
    if len(offsets) == len(lives):
        made = _assignment(lives, offsets)
        return replace(made, bound=made.size)
    ways = [] if offsets else [_in_units(lives, planner)]
    if len(lives) <= MOST_FITTED:
        ways += [_first_fit(lives, order, hinted) for hinted in (True, False) for order in _ORDERS]
    elif offsets:
        ways.append(_first_fit(lives, _ORDERS[0], True))
    found = min(ways, key=lambda one: (one.size, -_hints_met(lives, one)))
    bound = max([one.bound for one in ways] + [_fixed_end(life) for life in lives])
    proved = any(one.searched and one.size == found.size for one in ways)
    return replace(found, bound=bound, searched=proved)


def _hints_met(lives: Sequence[Lifetime], found: Assignment) -> int:
    return sum([life.hint == at for life, at in zip(lives, found.offsets, strict=True)])


def _in_units(lives: Sequence[Lifetime], planner: Planner) -> Assignment:
    """Places that are all multiples of one alignment: a plan of as many units of 64 bytes."""
    unit = lcm(*[_alignment(life) for life in lives]) // ALIGNMENT
    scaled = [
        replace(life, nbytes=-(-life.nbytes // unit), alignment=1, hint=None) for life in lives
    ]
    found = planner(scaled)
    offsets = [offset * unit for offset in found.offsets]
    made = _assignment(lives, offsets)
    if len({_alignment(life) for life in lives}) > 1:
        return made
    # Of one alignment for all: as many units, less what the last one of a lifetime may lack.
    live = live_bytes([(one.lower, one.upper, pad(one.nbytes)) for one in scaled])
    lacking = max(
        pad(one.nbytes) * unit - pad(own.nbytes) for one, own in zip(scaled, lives, strict=True)
    )
    bound = max([found.bound, *live.values()]) * unit - lacking
    return replace(made, bound=bound, searched=found.searched and not lacking)


def _first_fit(
    lives: Sequence[Lifetime], order: Callable[[Lifetime], tuple[int, ...]], hinted: bool
) -> Assignment:
    """Fixed lifetimes at their offsets, then each of the others at the lowest place that is free."""
    places: dict[int, Place] = {}
    numbers = sorted(
        range(len(lives)), key=lambda i: (lives[i].offset is None, *order(lives[i]), i)
    )
    for i in numbers:
        life = lives[i]
        taken = sorted([place for j, place in places.items() if lives[j].overlaps(life)])
        places[i] = _bytes_at(life, _lowest(life, taken, hinted))
    return _assignment(lives, [places[i][0] for i in range(len(lives))])


def _lowest(life: Lifetime, taken: Sequence[Place], hinted: bool) -> int:
    if life.offset is not None:
        return life.offset
    if hinted and life.hint is not None and life.hint % _alignment(life) == 0:
        own = _bytes_at(life, life.hint)
        if not any(_meet(own, other) for other in taken):
            return life.hint
    at = 0
    for begin, end in taken:
        if _meet(_bytes_at(life, at), (begin, end)):
            at = pad(end, _alignment(life))
    return at


def _assignment(lives: Sequence[Lifetime], offsets: Sequence[int]) -> Assignment:
    padded = tuple(map(_padded, lives))
    ends = [offset + size for offset, size in zip(offsets, padded, strict=True)]
    return Assignment(tuple(offsets), padded, pad(max(ends, default=0)))


def _alignment(life: Lifetime) -> int:
    return lcm(life.alignment, ALIGNMENT)


def _padded(life: Lifetime) -> int:
    """Bytes that it takes: what is at a fixed offset has its own, and no more."""
    return pad(life.nbytes) if life.offset is None else life.nbytes


def _fixed_end(life: Lifetime) -> int:
    return 0 if life.offset is None else pad(life.offset + life.nbytes)


def _bytes_at(life: Lifetime, offset: int) -> Place:
    return offset, offset + _padded(life)


def _meet(a: Place, b: Place) -> bool:
    return a[0] < b[1] and b[0] < a[1]


_ORDERS: tuple[Callable[[Lifetime], tuple[int, ...]], ...] = (
    lambda life: (-life.alignment, -life.nbytes),
    lambda life: (-life.alignment, -life.nbytes * (life.upper - life.lower)),
    lambda life: (-life.nbytes,),
    lambda life: (-life.nbytes * (life.upper - life.lower),),
    lambda life: (life.lower - life.upper, -life.nbytes),
    lambda life: (life.lower, -life.nbytes),
)
