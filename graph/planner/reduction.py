"""Changes that make a plan smaller: what each saves, as planned anew, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..view_methods import Tabled
from .lifetimes import Lifetime, merged
from .order_bound import order_bound
from .plan import WorkspacePlan, plan_lifetimes
from .strategies import Planner

KINDS = ("offload", "recompute", "in place")
MOST_TRIED = 24  # buffers at the peak that changes are tried for
BEST = 3
LINK = 32e9  # bytes a second between the device and the host, as a bus of sixteen lanes has


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a program, with the bytes that it saves.

    Attributes
    ----------
    kind : {'offload', 'recompute', 'in place'}
    name : str
        The buffer.
    saves : int
        Bytes that the plan has less.
    costs : str
        What it takes instead.
    words : str
        What to do.

    Examples
    --------
    >>> Change("offload", "a", 4096, "1 µs of copies", "copy a to the host after step 2").saves
    4096
    """

    kind: str
    name: str
    saves: int
    costs: str
    words: str


@dataclass(frozen=True, slots=True)
class Reduction(Tabled):
    """Proposals to make a plan smaller.

    Attributes
    ----------
    plan : WorkspacePlan
    changes : tuple of Change
        Those that save most, first.
    order_peak : int
        Bytes live at once in the plan's order of steps.
    order_bound : int
        Bytes live at once at least, in whichever order of steps; what the lifetimes do not say of
        dependencies may make the least of all orders higher.

    Examples
    --------
    >>> lives = [Lifetime("kept", 0, 9, 4096), Lifetime("a", 3, 5, 4096), Lifetime("b", 4, 6, 4096)]
    >>> made: Reduction = propose_reductions(plan_lifetimes(lives))
    >>> [(one.kind, one.name, one.saves) for one in made.changes][:1]
    [('offload', 'kept', 4096)]
    """

    plan: WorkspacePlan
    changes: tuple[Change, ...]
    order_peak: int
    order_bound: int


def propose_reductions(
    plan: WorkspacePlan, strategy: str | Planner = "default", link: float = LINK, best: int = BEST
) -> Reduction:
    """The changes that lower a plan's size most, each tried by planning anew.

    Parameters
    ----------
    plan : WorkspacePlan
    strategy : str or callable
        As for `plan_lifetimes`.
    link : float
        Bytes a second between the device and where buffers are offloaded to.
    best : int
        Changes that are given.

    Returns
    -------
    Reduction

    Examples
    --------
    >>> propose_reductions(plan_lifetimes([Lifetime("a", 0, 1, 64)])).changes
    ()
    """
    lives = plan.lifetimes
    tried = _Trials(plan, lives, strategy, link)
    peak = [b.name for b in plan.must_shrink if not b.parts][:MOST_TRIED]
    by_name = {life.name: life for life in lives}
    found: list[Change] = []
    for name in peak:
        found += tried.of(by_name[name])
    found.sort(key=lambda one: (-one.saves, KINDS.index(one.kind), one.name))
    chosen: list[Change] = []
    for change in found:  # one change for each buffer
        if change.saves > 0 and change.name not in {one.name for one in chosen}:
            chosen.append(change)
    model = [life for life in lives if not life.parts]
    bound = order_bound(model)[0]
    distinct = merged(model)[0]
    live = plan_lifetimes(distinct).lower_bound if not any(life.gaps for life in distinct) else 0
    return Reduction(plan, tuple(chosen[:best]), live or plan.model_bytes, bound)


@dataclass(slots=True)
class _Trials:
    plan: WorkspacePlan
    lives: Sequence[Lifetime]
    strategy: str | Planner
    link: float

    def of(self, life: Lifetime) -> list[Change]:
        """Changes of one buffer that is live at the peak."""
        found = []
        hole = self._hole(life)
        if hole is not None and not self._is_shared(life):
            found.append(self._offload(life, hole))
            found += self._recompute(life, hole)
        return found + self._in_place(life)

    def _hole(self, life: Lifetime) -> tuple[int, int] | None:
        """The last use before the peak and the first one after it."""
        at = self.plan.peak_step
        before = [step for step in life.used if step < at]
        after = [step for step in life.used if step > at]
        if at in life.used or not before or not after:
            return None
        return before[-1], after[0]

    def _is_shared(self, life: Lifetime) -> bool:
        return bool(life.same_as) or any(one.same_as == life.name for one in self.lives)

    def _saved(self, changed: Sequence[Lifetime]) -> int:
        return self.plan.size - plan_lifetimes(changed, self.strategy).size

    def _with(self, *changed: Lifetime) -> list[Lifetime]:
        new = {life.name: life for life in changed}
        return [new.get(life.name, life) for life in self.lives]

    def _step(self, number: int) -> str:
        steps = self.plan.steps
        return f"step {number}, {steps[number]}" if number < len(steps) else f"step {number}"

    def _offload(self, life: Lifetime, hole: tuple[int, int]) -> Change:
        last, first = hole
        divided = self._divided(life, hole)
        seconds = 2 * life.nbytes / self.link
        return Change(
            "offload", life.name, self._saved(self._without(life, divided)),
            f"{seconds * 1e6:.4g} µs of copies at {self.link / 1e9:g} GB/s",
            f"copy it to the host after {self._step(last)}, and back before {self._step(first)}",
        )  # fmt: skip

    def _divided(self, life: Lifetime, hole: tuple[int, int]) -> list[Lifetime]:
        """The parts before and after the hole, which may have different offsets."""
        last, first = hole
        one = replace(life, upper=last + 1, uses=(), gaps=())
        two = replace(life, name=f"{life.name}#2", lower=first, uses=(), gaps=())
        return [one, two]

    def _without(self, life: Lifetime, parts: Sequence[Lifetime]) -> list[Lifetime]:
        return [one for one in self.lives if one.name != life.name] + list(parts)

    def _recompute(self, life: Lifetime, hole: tuple[int, int]) -> list[Change]:
        """Make it again before it is used: what its node reads must be there then."""
        last, first = hole
        if not life.producer:
            return []
        reads = [one for one in self.lives if life.producer in one.consumers and not one.parts]
        if any(self._is_shared(one) for one in reads):
            return []  # what it reads is overwritten
        kept = {one.name: replace(one, upper=max(one.upper, first + 1), gaps=()) for one in reads}
        changed = [
            kept.get(one.name, one) for one in self._without(life, self._divided(life, hole))
        ]
        nbytes = sum([one.nbytes for one in reads]) + life.nbytes
        return [
            Change(
                "recompute", life.name, self._saved(changed),
                f"{life.producer} once more, at least {nbytes} bytes of traffic",
                f"run {life.producer} again before {self._step(first)} instead of keeping it from "
                f"{self._step(last)}",
            )
        ]  # fmt: skip

    def _in_place(self, life: Lifetime) -> list[Change]:
        """Write it over an operand of its size that is read by its node for the last time."""
        if life.same_as:
            return []
        for other in self.lives:
            dies = other.upper == life.lower + 1 and other.lower < life.lower and not other.parts
            if dies and other.nbytes == life.nbytes and life.producer in other.consumers:
                changed = self._with(replace(life, same_as=other.name))
                words = f"let {life.producer or 'its step'} write its result over {other.name}"
                reason = "its kernel does not say that it may write over this operand"
                return [Change("in place", life.name, self._saved(changed), reason, words)]
        return []
