"""Plans of several memories: what is where, when it is moved, and what that costs.

A device has memories of its own sizes, bandwidths and alignments, such as HBM, a second-level cache and a
unified buffer.  The slowest holds everything; what is used most for its bytes and steps is in a faster
one, for its whole lifetime or from one use to the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import lcm

from ..loops.tiling import ALIGNMENT, pad
from ..names import listed
from ..numbers import positive_number
from ..summaries import counted, fields_given
from ..view_methods import Tabled
from .demands import live_at_most, lowest_free
from .lifetimes import Lifetime, merged
from .plan import BudgetError, WorkspacePlan, plan_lifetimes
from .strategies import Planner

MOST_NAMED = 6  # buffers that a refusal lists
MOST_PLANNED = 100  # buffers of a memory that are planned anew to make room for one more


class CapacityError(BudgetError):
    """A memory cannot hold what is needed at a step; the message names the step and the buffers there.

    >>> issubclass(CapacityError, ValueError)
    True
    """


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory of a device.

    Attributes
    ----------
    name : str
    size : int
        Bytes.
    bandwidth : float
        Bytes a second that steps read or write there.
    alignment : int
        Bytes that every place is a multiple of.

    Examples
    --------
    >>> Memory("ub", 192 * 1024, bandwidth=1e12, alignment=32)
    Memory(name='ub', size=196608, bandwidth=1000000000000.0, alignment=32)
    """

    name: str
    size: int
    bandwidth: float
    alignment: int = 1

    __repr__ = fields_given

    def __post_init__(self) -> None:
        positive_number(self.size, f"{self.name}: size")
        positive_number(self.alignment, f"{self.name}: alignment")
        if not 0 < self.bandwidth < float("inf"):
            raise ValueError(
                f"{self.name}: bandwidth is {self.bandwidth!r}, must be a number of bytes a second "
                "above 0"
            )


@dataclass(frozen=True, slots=True)
class Move:
    """A copy of a buffer from one memory to another, before a step.

    Attributes
    ----------
    name : str
        The buffer.
    step : int
        The step before which it is made; of what leaves, the step after its last use.
    source : str
    target : str
        Names of memories.
    nbytes : int
    seconds : float
        As long as the slower of both takes.

    Examples
    --------
    >>> Move("a", 3, "ub", "hbm", 4096, 4.1e-8).target
    'hbm'
    """

    name: str
    step: int
    source: str
    target: str
    nbytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class DevicePlan(Tabled):
    """Plans of a device's memories, fastest first.

    Attributes
    ----------
    memories : tuple of Memory
    plans : tuple of WorkspacePlan
        One for each memory; buffers that are in a fast memory several times have a number after their name.
    moves : tuple of Move
        Copies between memories, by step.
    seconds : float
        Time that reading, writing and moving buffers takes, if nothing else limits it.
    slow_seconds : float
        The same if all of it were in the slowest memory.

    Examples
    --------
    >>> levels = [Memory("ub", 64, 1e12), Memory("hbm", 2**20, 1e11)]
    >>> device: DevicePlan = plan_memories([Lifetime("a", 0, 2, 100)], levels)
    >>> device.memory_of("a", 0), device.seconds == device.slow_seconds
    ('hbm', True)
    """

    memories: tuple[Memory, ...]
    plans: tuple[WorkspacePlan, ...]
    moves: tuple[Move, ...]
    seconds: float
    slow_seconds: float

    def to_svg(self) -> str:
        """One picture for each memory, fastest on top.

        Returns
        -------
        str
        """
        return self._view("svg")

    def memory_of(self, name: str, step: int) -> str:
        """The fastest memory in which a buffer is at a step; KeyError if it is in none.

        Parameters
        ----------
        name : str
        step : int

        Returns
        -------
        str
        """
        for memory, plan in zip(self.memories, self.plans, strict=True):
            for buffer in plan.live_at(step):
                if _name_of(buffer.name) == name:
                    return memory.name
        raise KeyError(f"{name!r} is in no memory at step {step}")


def check_capacity(
    lifetimes: Sequence[Lifetime],
    capacity: int,
    what: str = "the capacity",
    steps: Sequence[str] = (),
) -> None:
    """Refuse lifetimes that no plan can place within a capacity, naming step and buffers.

    Parameters
    ----------
    lifetimes : sequence of Lifetime
    capacity : int
        Bytes.
    what : str
        What has so many bytes.
    steps : sequence of str
        Names of the steps.

    Raises
    ------
    CapacityError
        When a fixed offset ends above the capacity, or more is in use at one step.

    Examples
    --------
    >>> check_capacity([Lifetime("a", 0, 2, 600), Lifetime("b", 1, 3, 500)], 1024)
    Traceback (most recent call last):
    ...
    aclnn.graph.planner.memories.CapacityError: the capacity is 1024 bytes, but at step 1 are needed at \
least 1152: a (600 bytes), b (500 bytes)
    """
    for life in lifetimes:
        if life.offset is not None and life.offset + life.nbytes > capacity:
            raise CapacityError(
                f"{what} is {capacity} bytes, but {life.name}, whose offset is fixed at {life.offset}, "
                f"ends at {life.offset + life.nbytes}"
            )
    if live_at_most(lifetimes) <= capacity:
        return
    live: dict[int, int] = {}
    for step in sorted({lower for life in lifetimes for lower, *_ in life.pieces()}):
        here = [one for one in lifetimes if one.lower <= step < one.upper]
        cut = [
            replace(one, lower=step, upper=step + 1, gaps=_at(one, step), uses=()) for one in here
        ]
        live[step] = live_at_most(cut)
        if live[step] > capacity:
            raise CapacityError(
                f"{what} is {capacity} bytes, but at {_step_words(step, steps)} are needed at least "
                f"{live[step]}: {_largest(here)}"
            )


def _at(life: Lifetime, step: int) -> tuple:
    return tuple(
        [
            replace(gap, lower=step, upper=step + 1)
            for gap in life.gaps
            if gap.lower <= step < gap.upper
        ]
    )


def _step_words(step: int, steps: Sequence[str]) -> str:
    return f"step {step}, {steps[step]}," if step < len(steps) else f"step {step}"


def _largest(lives: Iterable[Lifetime]) -> str:
    found = sorted(lives, key=lambda life: -life.nbytes)
    more = f" and {counted(len(found) - MOST_NAMED, 'other')}" if len(found) > MOST_NAMED else ""
    return listed(f"{one.name} ({one.nbytes} bytes)" for one in found[:MOST_NAMED]) + more


def fit_lifetimes(
    lifetimes: Iterable[Lifetime],
    capacity: int,
    strategy: str | Planner = "default",
    *,
    steps: Sequence[str] = (),
    timeout: float | None = None,
    what: str = "the capacity",
) -> WorkspacePlan:
    """A plan of at most `capacity` bytes.

    Where `strategy` needs more, and no bound forbids a smaller plan, 'exact' looks for one.

    Parameters
    ----------
    lifetimes : iterable of Lifetime
    capacity : int
        Bytes.
    strategy, steps, timeout
        As for `plan_lifetimes`.
    what : str
        What has so many bytes, in errors.

    Returns
    -------
    WorkspacePlan

    Raises
    ------
    CapacityError
        When there is none, or none was found; it says which.

    Examples
    --------
    >>> fit_lifetimes([Lifetime("a", 0, 2, 64), Lifetime("b", 1, 3, 64)], 128).size
    128
    """
    lives = tuple(lifetimes)
    distinct = merged(lives)[0] if any(life.same_as for life in lives) else lives
    check_capacity(distinct, capacity, what, steps)
    limit = timeout if strategy == "exact" else None
    plan = plan_lifetimes(lives, strategy, steps=steps, timeout=limit)
    if plan.size > capacity and plan.lower_bound <= capacity and strategy == "default":
        plan = plan_lifetimes(lives, "exact", steps=steps, timeout=timeout)
    if plan.size <= capacity:
        return plan
    live = plan.live_at(plan.peak_step)
    proved = plan.lower_bound > capacity
    verdict = f"no plan is below {plan.lower_bound}" if proved else "a smaller one was not found"
    raise CapacityError(
        f"{what} is {capacity} bytes, but the plan needs {plan.size}, and {verdict}; "
        f"at {_step_words(plan.peak_step, steps)} are live: "
        f"{_largest(life for life in lives if life.name in {one.name for one in live})}"
    )


def plan_memories(
    lifetimes: Iterable[Lifetime],
    memories: Iterable[Memory],
    strategy: str | Planner = "default",
    *,
    steps: Sequence[str] = (),
) -> DevicePlan:
    """Plan lifetimes in several memories.

    The memory of least bandwidth is the home of all that no faster one holds.  Faster ones are filled with
    what saves most time for the bytes and steps that it takes there: whole lifetimes, or stretches between
    uses, which cost copies.  Each memory's plan is as `plan_lifetimes` makes it.

    Parameters
    ----------
    lifetimes : iterable of Lifetime
        With `uses`, where these are known; else the first and the last step use it.
    memories : iterable of Memory
        In any order.
    strategy : str or callable
        As for `plan_lifetimes`.
    steps : sequence of str
        Names of the steps.

    Returns
    -------
    DevicePlan

    Raises
    ------
    CapacityError
        When the slowest memory cannot hold the rest.
    ValueError
        When there are no memories, or two of one name.

    Examples
    --------
    >>> lives = [Lifetime("a", 0, 2, 4096), Lifetime("b", 1, 9, 4096), Lifetime("c", 2, 4, 4096)]
    >>> made = plan_memories(lives, [Memory("ub", 8192, 1e12), Memory("hbm", 2**20, 1e11)])
    >>> [plan.size for plan in made.plans], made.memory_of("a", 1)
    ([8192, 0], 'ub')
    """
    levels = sorted(memories, key=lambda one: -one.bandwidth)
    if not levels:
        raise ValueError("memories: at least one is needed")
    names = [memory.name for memory in levels]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"memories: {names.count(name)} are called {name!r}")
    value = tuple(lifetimes)
    waiting, numbers = merged(value)  # which shares bytes is one buffer in all memories
    plan_lifetimes(value, steps=steps)  # refuses what can be in no memory
    # What is computed in place is written more than once: copies of it do not stay equal.
    written = {waiting[i].name for i, count in Counter(numbers).items() if count > 1}
    plans, moves, divided = [], [], []
    home = levels[-1]
    slow = sum([len(life.used) * life.nbytes / home.bandwidth for life in waiting])
    seconds = slow
    for memory in levels[:-1]:
        filled = _Level(memory, home, strategy, steps, written)
        waiting = filled.take(waiting)
        divided += filled.divided
        plans.append(filled.plan())
        moves += filled.moves
        seconds -= filled.saved
    own = [_in_memory(life, home) for life in (*waiting, *divided)]
    plans.append(fit_lifetimes(own, home.size, strategy, steps=steps, what=f"{home.name}'s size"))
    ordered = tuple(sorted(moves, key=lambda move: (move.step, move.name)))
    return DevicePlan(tuple(levels), tuple(plans), ordered, seconds, slow)


def _in_memory(life: Lifetime, memory: Memory) -> Lifetime:
    return replace(life, alignment=lcm(life.alignment, memory.alignment), hint=None)


def _name_of(name: str) -> str:
    """Name of a lifetime by that of a stretch of it: ``a#2`` is of ``a``."""
    head, mark, number = name.rpartition("#")
    return head if mark and number.isdecimal() else name


@dataclass
class _Level:
    """A fast memory while it is filled."""

    memory: Memory
    home: Memory
    strategy: str | Planner
    steps: Sequence[str]
    whole: Collection[str]
    held: list[Lifetime] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    divided: list[Lifetime] = field(default_factory=list)  # which are there for stretches
    saved: float = 0.0

    def take(self, lives: Sequence[Lifetime]) -> tuple[Lifetime, ...]:
        """Fill the memory; the lifetimes that are never there."""
        rest: dict[int, Lifetime] = dict(enumerate(lives))
        wishes = sorted(
            (-self._gain(life) / (life.nbytes * (life.upper - life.lower)), i)
            for i, life in enumerate(lives)
            if life.nbytes and life.offset is None
        )
        for _, i in wishes:
            life = lives[i]
            if self._fits(life):
                self.saved += self._gain(life)
                del rest[i]
            elif self._take_parts(life, self._stretches(life)):
                self.divided.append(rest.pop(i))
        return tuple(rest.values())

    def _gain(self, life: Lifetime) -> float:
        """Seconds that its uses take less than in the slowest memory."""
        return len(life.used) * life.nbytes * self._faster

    @property
    def _faster(self) -> float:
        return 1 / self.home.bandwidth - 1 / self.memory.bandwidth

    def _fits(self, life: Lifetime) -> bool:
        """Whether there is a place for it besides what is there; it is added then."""
        new = _in_memory(life, self.memory)
        offset = self._free_place(new)
        if offset + pad(new.nbytes) <= self.memory.size:
            self.held.append(new)
            self.offsets.append(offset)
            return True
        if len(self.held) >= MOST_PLANNED or live_at_most([*self.held, new]) > self.memory.size:
            return False
        made = plan_lifetimes([*self.held, new], self.strategy)
        if made.size > self.memory.size:
            return False
        self.held.append(new)
        self.offsets = [buffer.offset for buffer in made.buffers]
        return True

    def _free_place(self, new: Lifetime) -> int:
        """The lowest place for another lifetime."""
        own, taken = new.pieces(pad(new.nbytes)), []
        for life, offset in zip(self.held, self.offsets, strict=True):
            if not life.overlaps(new):
                continue
            for lower, upper, begin, end in life.pieces(pad(life.nbytes)):
                taken += [
                    (offset + begin - mine[3], offset + end - mine[2])
                    for mine in own
                    if lower < mine[1] and mine[0] < upper
                ]
        return lowest_free(taken, lcm(new.alignment, ALIGNMENT))

    def _stretches(self, life: Lifetime) -> list[tuple[int, ...]]:
        """Runs of uses in adjacent steps, which may be in the fast memory each by itself."""
        if life.gaps or life.name in self.whole:
            return []
        runs: list[list[int]] = []
        for step in life.used:
            if runs and step == runs[-1][-1] + 1:
                runs[-1].append(step)
            else:
                runs.append([step])
        return [tuple(run) for run in runs] if len(runs) > 1 else []

    def _take_parts(self, life: Lifetime, runs: Sequence[tuple[int, ...]]) -> bool:
        """Add the stretches that save more than their copies cost; whether there are any."""
        before = len(self.held)
        copy = life.nbytes / min(self.memory.bandwidth, self.home.bandwidth)
        for index, run in enumerate(runs):
            gain = len(run) * life.nbytes * self._faster - copy
            stretch = replace(
                life, name=f"{life.name}#{index + 1}", lower=run[0], upper=run[-1] + 1, uses=run
            )
            if gain <= 0 or not self._fits(stretch):
                continue
            self.saved += gain
            names = self.memory.name, self.home.name
            if index == 0:  # written here, and copied home once
                self.moves.append(Move(life.name, run[-1] + 1, *names, life.nbytes, copy))
            else:
                self.moves.append(Move(life.name, run[0], *names[::-1], life.nbytes, copy))
        return len(self.held) > before

    def plan(self) -> WorkspacePlan:
        made = plan_lifetimes(self.held, self.strategy, steps=self.steps)
        return made if made.size <= self.memory.size else self._as_filled()

    def _as_filled(self) -> WorkspacePlan:
        """The plan of the places that were found one after the other."""
        pinned = [
            replace(life, offset=offset)
            for life, offset in zip(self.held, self.offsets, strict=True)
        ]
        return plan_lifetimes(pinned, steps=self.steps)
