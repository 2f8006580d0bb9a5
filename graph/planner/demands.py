"""Plans of lifetimes that demand something of their places: alignments, fixed offsets, hints, gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import lcm

from ..loops.tiling import ALIGNMENT, pad
from .lifetimes import Lifetime, Piece, fixed_overlap
from .strategies import Assignment, Planner, live_bytes

Range = tuple[int, int]  # of bytes or offsets, without the second
Order = Callable[[Lifetime], tuple[int, ...]]
MOST_FITTED = 2000  # lifetimes that are placed in every order, which takes time by their square
TRIES_WORK = 400_000  # pairs of pieces that are compared while orders are changed
MOST_TRIES = 200  # orders that are tried


def has_demands(life: Lifetime) -> bool:
    """Whether not every place will do.

    >>> has_demands(Lifetime("a", 0, 1, 64)), has_demands(Lifetime("a", 0, 1, 64, alignment=512))
    (False, True)
    """
    demands = life.offset is not None or life.hint is not None or life.alignment > 1
    return demands or bool(life.gaps)


def planned_with_demands(lives: Sequence[Lifetime], planner: Planner) -> Assignment:
    """Places that are as lifetimes demand, by whichever way needs least.

    Lifetimes without fixed offsets are given to `planner` in units of the largest alignment; all are
    placed in several orders, each as low as it may be, and where its hint is, if that is free.  The best
    order is then changed: what ends highest comes earlier, until the bound is met or the work is done.

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
    bound = max([live_at_most(lives), *map(_fixed_end, lives), *[one.bound for one in ways]])
    if len(lives) <= MOST_FITTED:
        fit = FirstFit(lives)
        orders = [fit.order(key) for key in _ORDERS]
        fitted = [fit.placed(order, hinted) for hinted in (True, False) for order in orders]
        ways += fitted
        if min(one.size for one in ways) > bound:
            best = min(range(len(orders)), key=lambda index: fitted[len(orders) + index].size)
            ways.append(fit.improved(orders[best], bound))
    elif offsets or any(life.gaps for life in lives):
        fit = FirstFit(lives)
        ways.append(fit.placed(fit.order(_ORDERS[0]), True))
    found = min(ways, key=lambda one: (one.size, -_hints_met(lives, one)))
    proved = any(one.searched and one.size == found.size for one in ways)
    return replace(found, bound=bound, searched=proved)


def live_at_most(lives: Sequence[Lifetime]) -> int:
    """The most bytes that are in use at one step: padded ones, and of gaps the windows.

    >>> from .lifetimes import Gap
    >>> live_at_most([Lifetime("a", 0, 3, 64, gaps=(Gap(1, 2),)), Lifetime("b", 1, 2, 100)])
    128
    """
    spans = [
        (lower, upper, end - begin)
        for life in lives
        for lower, upper, begin, end in life.pieces(_padded(life))
    ]
    return max(live_bytes(spans).values(), default=0)


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
    if len({_alignment(life) for life in lives}) > 1 or any(life.gaps for life in lives):
        return made
    # Of one alignment for all: as many units, less what the last one of a lifetime may lack.
    live = live_bytes([(one.lower, one.upper, pad(one.nbytes)) for one in scaled])
    lacking = max(
        pad(one.nbytes) * unit - pad(own.nbytes) for one, own in zip(scaled, lives, strict=True)
    )
    bound = max([found.bound, *live.values()]) * unit - lacking
    return replace(made, bound=bound, searched=found.searched and not lacking)


class FirstFit:
    """Lifetimes, and which of their pieces are in use at one step."""

    def __init__(self, lives: Sequence[Lifetime]):
        self.lives = lives
        self.alignments = [_alignment(life) for life in lives]
        self.pieces = [life.pieces(_padded(life)) if life.nbytes else [] for life in lives]
        self.met = self._meetings()

    def _meetings(self) -> list[list[tuple[int, list[Range]]]]:
        """For each lifetime the others that it must keep clear of: bytes of theirs, and of its own, that
        are in use at one step, as the least and the greatest forbidden distance."""
        found: list[dict[int, list[Range]]] = [{} for _ in self.lives]
        live: list[tuple[int, Piece]] = []
        ordered = sorted((piece, i) for i, pieces in enumerate(self.pieces) for piece in pieces)
        for piece, i in ordered:
            lower, _, begin, end = piece
            live = [one for one in live if one[1][1] > lower]
            for j, (_, _, other, last) in live:
                if j == i:
                    continue
                # Overlap where place[i] + begin < place[j] + last, and place[j] + other < place[i] + end.
                found[i].setdefault(j, []).append((other - end, last - begin))
                found[j].setdefault(i, []).append((begin - last, end - other))
            live.append((i, piece))
        return [[(j, sorted(set(met))) for j, met in sorted(one.items())] for one in found]

    def order(self, key: Order) -> list[int]:
        """Numbers of the lifetimes, those of fixed offsets first."""
        return sorted(
            range(len(self.lives)),
            key=lambda i: (self.lives[i].offset is None, *key(self.lives[i]), i),
        )

    def placed(self, order: Sequence[int], hinted: bool) -> Assignment:
        """Each lifetime in turn at the lowest place that is free."""
        places: dict[int, int] = {}
        for i in order:
            places[i] = self._lowest(i, places, hinted)
        return _assignment(self.lives, [places[i] for i in range(len(self.lives))])

    def _lowest(self, i: int, places: dict[int, int], hinted: bool) -> int:
        life, alignment = self.lives[i], self.alignments[i]
        if life.offset is not None:
            return life.offset
        # Places strictly between these two overlap.
        taken = [
            (places[j] + low, places[j] + high)
            for j, distances in self.met[i]
            if j in places
            for low, high in distances
        ]
        hint = life.hint if hinted else None
        if hint is None or hint % alignment or any(low < hint < high for low, high in taken):
            return lowest_free(taken, alignment)
        return hint

    def improved(self, order: Sequence[int], bound: int) -> Assignment:
        """The best of many orders, each made of the last: what ends highest is moved to the front."""
        best = self.placed(order, False)
        fixed = sum([life.offset is not None for life in self.lives])
        work = 1 + sum([len(distances) for met in self.met for _, distances in met])
        current = list(order)
        for turn in range(min(TRIES_WORK // work, MOST_TRIES)):
            found = self.placed(current, False)
            if found.size < best.size:
                best = found
            if best.size <= bound:
                break
            ends = [found.offsets[i] + found.padded[i] for i in range(len(self.lives))]
            movable = current[fixed:]
            # Of what reaches the top, one after the other; every few turns the next one below it.
            highest = sorted(movable, key=lambda i: (-ends[i], i))[turn % 3 : turn % 3 + 1]
            for i in highest:
                index = current.index(i)
                target = fixed + (index - fixed) // (2 + turn % 2)
                current.insert(min(target, max(index - 1, fixed)), current.pop(index))
        return best


def lowest_free(taken: Iterable[Range], alignment: int) -> int:
    """The lowest multiple of `alignment` that is strictly within none of some ranges.

    >>> lowest_free([(-64, 128), (128, 200)], 64), lowest_free([(-64, 128), (100, 200)], 64)
    (128, 256)
    """
    at = 0
    for low, high in sorted(taken):
        if low < at < high:
            at = pad(high, alignment)
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


_ORDERS: tuple[Order, ...] = (
    lambda life: (-life.alignment, -life.nbytes),
    lambda life: (-life.alignment, -life.nbytes * (life.upper - life.lower)),
    lambda life: (-life.nbytes,),
    lambda life: (-life.nbytes * (life.upper - life.lower),),
    lambda life: (life.lower - life.upper, -life.nbytes),
    lambda life: (life.lower, -life.nbytes),
)
