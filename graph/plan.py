"""Workspace plans: where each intermediate lies, and how good that is.

A planner is a function from lifetimes to an `Assignment`; `plan_workspace` and `plan_lifetimes`
make a `WorkspacePlan` of it, which knows its lower bound, draws itself and can be compared.
`validate` shares no code with the planners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .ir import Graph
from .lifetime import Lifetime, TilePart, graph_lifetimes, scratch_per_thread
from .loops import ALIGNMENT, Tiling, pad

NPU_BLOCK = 512
NPU_EXTRA = 32
SEARCH_BUFFERS = 10
SEARCH_NODES = 20_000


class BudgetError(ValueError):
    """A plan needs more than it may; the message names what is live at the peak."""


class PlanError(ValueError):
    """A plan is wrong; raised by `validate`."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a planner decides: for every lifetime an offset and a padded size."""

    offsets: tuple[int, ...]
    padded: tuple[int, ...]
    size: int
    searched: bool = False  # exhaustively: no smaller assignment exists


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
    for order, tightest in _orders(lifetimes, padded):
        if best.size == bound:
            break
        offsets = _first_fit(lifetimes, padded, order, tightest)
        size = max(offset + nbytes for offset, nbytes in zip(offsets, padded, strict=True))
        if size < best.size:
            best = Assignment(offsets, padded, size)
    if best.size > bound and len(lifetimes) <= SEARCH_BUFFERS:
        best = _search(lifetimes, padded, bound, best)
    return best


STRATEGIES: dict[str, Planner] = {"default": default, "bucket": bucket, "naive": naive}


def lower_bound(lifetimes: Sequence[Lifetime], sizes: Sequence[int]) -> int:
    """Largest sum of sizes that are live at one step: no plan can be smaller."""
    return max(_live(lifetimes, sizes).values(), default=0)


def _live(lifetimes: Sequence[Lifetime], sizes: Sequence[int]) -> dict[int, int]:
    """Live bytes at every step at which something starts; the peak is at one of them."""
    starts = sorted({life.lower for life in lifetimes})
    return {
        t: sum(n for life, n in zip(lifetimes, sizes, strict=True) if life.lower <= t < life.upper)
        for t in starts
    }


def _orders(lifetimes: Sequence[Lifetime], padded: Sequence[int]):
    """Orders in which to place buffers, each with whether to prefer the tightest gap."""
    indices = range(len(lifetimes))
    span = [life.upper - life.lower for life in lifetimes]
    live = _live(lifetimes, padded)
    breadth = [
        max(bytes for t, bytes in live.items() if life.lower <= t < life.upper)
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


def _first_fit(
    lifetimes: Sequence[Lifetime], padded: Sequence[int], order: Sequence[int], tightest: bool
) -> tuple[int, ...]:
    """Place buffers in `order`, each in the lowest gap (or the tightest one) that holds it."""
    offsets = [-1] * len(lifetimes)
    for i in order:
        busy = sorted(
            (offsets[j], offsets[j] + padded[j])
            for j in range(len(lifetimes))
            if offsets[j] >= 0 and lifetimes[i].overlaps(lifetimes[j])
        )
        offsets[i] = _gap(busy, padded[i], tightest)
    return tuple(offsets)


def _gap(busy: Sequence[tuple[int, int]], size: int, tightest: bool) -> int:
    place, slack, top = -1, 0, 0
    for begin, end in busy:
        room = begin - top
        if room >= size and (place < 0 or room - size < slack):
            place, slack = top, room - size
            if not tightest:
                return place
        top = max(top, end)
    return top if place < 0 else place


def _search(
    lifetimes: Sequence[Lifetime], padded: tuple[int, ...], bound: int, best: Assignment
) -> Assignment:
    """Branch and bound over the orders in which buffers can be stacked by ascending offset.

    Some smallest plan has every buffer on the floor or on top of one that lives at the same
    time; placing buffers by ascending offset, each as low as what lies below it allows, visits
    all of those.  Gives up, with what it has, after a fixed number of nodes.
    """
    count = len(lifetimes)
    clash = [
        [i != j and lifetimes[i].overlaps(lifetimes[j]) for j in range(count)] for i in range(count)
    ]
    starts = sorted({life.lower for life in lifetimes})
    live = {
        t: [i for i, life in enumerate(lifetimes) if life.lower <= t < life.upper] for t in starts
    }
    offsets = [-1] * count
    found = best
    visited = 0

    def hopeless(floor: int) -> bool:
        for members in live.values():
            waiting = [padded[i] for i in members if offsets[i] < 0]
            tops = [offsets[i] + padded[i] for i in members if offsets[i] >= 0]
            if waiting and max([floor, *tops]) + sum(waiting) >= found.size:
                return True
        return False

    def place(floor: int, left: int) -> None:
        nonlocal found, visited
        visited += 1
        if left == 0:
            size = max(o + n for o, n in zip(offsets, padded, strict=True))
            if size < found.size:
                found = Assignment(tuple(offsets), padded, size)
            return
        if hopeless(floor):
            return
        options = []
        for i in range(count):
            if offsets[i] < 0:
                tops = [offsets[j] + padded[j] for j in range(count) if clash[i][j]]
                below = [t for t, j in zip(tops, (j for j in range(count) if clash[i][j]),
                                           strict=True) if offsets[j] >= 0]
                at = max(below, default=0)
                if at >= floor:
                    options.append((at, -padded[i], i))
        for at, _, i in sorted(options):
            if visited >= SEARCH_NODES or found.size == bound:
                return
            offsets[i] = at
            place(at, left - 1)
            offsets[i] = -1

    place(0, count)
    complete = visited < SEARCH_NODES
    return Assignment(found.offsets, found.padded, found.size, searched=complete)


# --- Plans ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Buffer:
    """One intermediate in the workspace.

    `first` and `last` are steps, both included.  `shared_with` names the buffers that use some
    of the same bytes at other times.  `parts` is filled for the tiles of a tile loop: where
    each lies in the space of one thread.
    """

    name: str
    offset: int
    nbytes: int
    padded: int
    first: int
    last: int
    shared_with: tuple[str, ...] = ()
    producer: str = ""
    consumers: tuple[str, ...] = ()
    parts: tuple[TilePart, ...] = ()

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.offset + self.padded


@dataclass(frozen=True, slots=True)
class WorkspacePlan:
    """Where everything lies in the workspace.

    Attributes
    ----------
    size : int
        Bytes to allocate; 0 when nothing needs space.
    lower_bound : int
        Largest sum of padded bytes live at one step, at 64 byte alignment.
    naive_size, bucket_size : int
        What the other two strategies would need for the same buffers.
    proof : {'optimal', 'feasible'}
        'optimal' when no plan can be smaller.
    buffers : tuple of Buffer
    strategy : str
    steps : tuple of str
        Names of the steps, for the pictures.
    threads : int
        How many threads there is scratch for.
    tiling : Tiling
    """

    size: int
    lower_bound: int
    naive_size: int
    bucket_size: int
    buffers: tuple[Buffer, ...]
    strategy: str
    proof: str
    steps: tuple[str, ...] = ()
    threads: int = 1
    tiling: Tiling = Tiling()
    scratch_per_thread: int = 0

    def buffer(self, name: str) -> Buffer:
        """The buffer with this name; KeyError when there is none."""
        for buffer in self.buffers:
            if buffer.name == name:
                return buffer
        raise KeyError(name)

    def live_at(self, step: int) -> tuple[Buffer, ...]:
        """Buffers needed at a step, by offset."""
        live = [buffer for buffer in self.buffers if buffer.first <= step <= buffer.last]
        return tuple(sorted(live, key=lambda buffer: buffer.offset))

    @property
    def peak_step(self) -> int:
        """The first step at which most bytes are live."""
        steps = sorted({buffer.first for buffer in self.buffers}) or [0]
        return max(steps, key=lambda t: sum(b.padded for b in self.live_at(t)))

    @property
    def peak_bytes(self) -> int:
        """Padded bytes live at the peak."""
        return sum(buffer.padded for buffer in self.live_at(self.peak_step))

    @property
    def fragmentation(self) -> float:
        """Share of the workspace that is not in use at the peak."""
        return 1 - self.peak_bytes / self.size if self.size else 0.0

    @property
    def must_shrink(self) -> tuple[Buffer, ...]:
        """The buffers live at the peak, largest first: only these can lower it."""
        return tuple(sorted(self.live_at(self.peak_step), key=lambda b: (-b.padded, b.offset)))

    def check(self, budget: int) -> WorkspacePlan:
        """Raise `BudgetError` with the reason when more than `budget` bytes are needed.

        >>> plan_lifetimes([Lifetime("a", 0, 1, 100)]).check(64)
        Traceback (most recent call last):
        ...
        aclnn.graph.plan.BudgetError: needs 128 bytes, 64 over the budget of 64; \
at the peak, step 0, live are: a (128 bytes)
        """
        if self.size <= budget:
            return self
        live = ", ".join(f"{b.name} ({b.padded} bytes)" for b in self.must_shrink)
        raise BudgetError(
            f"needs {self.size} bytes, {self.size - budget} over the budget of {budget}; "
            f"at the peak, step {self.peak_step}, live are: {live}"
        )

    def diff(self, other: WorkspacePlan) -> "PlanDiff":
        """What changes from this plan to `other`."""
        from .views.diff import plan_diff

        return plan_diff(self, other)

    def to_text(self) -> str:
        """Table and summary."""
        from .views.text import plan_to_text

        return plan_to_text(self)

    def to_json(self, indent: int | None = None) -> str:
        """A document of the schema described in `aclnn.graph.views.json`."""
        from .views.json import plan_to_json

        return plan_to_json(self, indent)

    @staticmethod
    def from_json(text: str) -> WorkspacePlan:
        """The plan that `to_json` wrote."""
        from .views.json import plan_from_json

        return plan_from_json(text)

    def to_svg(self) -> str:
        """Boxes over time, offset upwards."""
        from .views.svg import plan_to_svg

        return plan_to_svg(self)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def to_memory_snapshot(self) -> dict:
        """The plan in the format of PyTorch's memory viewer (pickle it and load it there)."""
        from .views.snapshot import plan_to_snapshot

        return plan_to_snapshot(self)

    def __str__(self) -> str:
        return self.to_text()


def plan_lifetimes(
    lifetimes: Iterable[Lifetime],
    strategy: str | Planner = "default",
    *,
    steps: Sequence[str] = (),
    threads: int = 1,
    tiling: Tiling | None = None,
) -> WorkspacePlan:
    """Plan a list of lifetimes, whoever made it.

    >>> plan = plan_lifetimes([Lifetime("a", 0, 2, 100), Lifetime("b", 1, 3, 60)])
    >>> plan.size, plan.lower_bound, plan.proof
    (192, 192, 'optimal')
    """
    lives = tuple(lifetimes)
    planner = STRATEGIES[strategy] if isinstance(strategy, str) else strategy
    name = strategy if isinstance(strategy, str) else strategy.__name__  # type: ignore[attr-defined]
    chosen = planner(lives)
    bound = lower_bound(lives, [pad(life.nbytes) for life in lives])
    optimal = chosen.searched or chosen.size == bound
    return WorkspacePlan(
        size=chosen.size,
        lower_bound=bound,
        naive_size=naive(lives).size,
        bucket_size=bucket(lives).size,
        buffers=_buffers(lives, chosen),
        strategy=name,
        proof="optimal" if optimal else "feasible",
        steps=tuple(steps),
        threads=threads,
        tiling=tiling or Tiling(),
        scratch_per_thread=scratch_per_thread(lives, threads),
    )


def plan_workspace(
    graph: Graph,
    strategy: str | Planner = "default",
    *,
    threads: int = 1,
    tiling: Tiling | None = None,
) -> WorkspacePlan:
    """Plan the intermediates of a graph, with tiles for `threads` threads.

    >>> from aclnn.graph import DType, GraphBuilder
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (100,), f32), b.output("out", (100,), f32)
    >>> b.view_copy(b.compute("g", [b.compute("f", [x], (100,), f32)], (100,), f32), out)
    >>> plan_workspace(b.build()).size
    896
    """
    tiling = tiling or Tiling()
    lives = graph_lifetimes(graph, threads=threads, tiling=tiling)
    steps = [step_name(step) for step in graph.steps()]
    return plan_lifetimes(lives, strategy, steps=steps, threads=threads, tiling=tiling)


def step_name(step: Sequence) -> str:
    """What a step is called: its nodes' names."""
    return "+".join(node.name for node in step)


def _buffers(lifetimes: Sequence[Lifetime], chosen: Assignment) -> tuple[Buffer, ...]:
    spans = [(o, o + n) for o, n in zip(chosen.offsets, chosen.padded, strict=True)]
    return tuple(
        Buffer(
            name=life.name,
            offset=begin,
            nbytes=life.nbytes,
            padded=end - begin,
            first=life.first,
            last=life.last,
            shared_with=tuple(
                other.name
                for other, (low, high) in zip(lifetimes, spans, strict=True)
                if other is not life and low < end and begin < high
            ),
            producer=life.producer,
            consumers=life.consumers,
            parts=life.parts,
        )
        for life, (begin, end) in zip(lifetimes, spans, strict=True)
    )


def validate(plan: WorkspacePlan) -> WorkspacePlan:
    """Raise `PlanError` when a plan is wrong; else return it.

    Checks that no two buffers in use at one step share a byte, that every buffer is aligned,
    large enough and inside the workspace, and that no space is asked for nothing.
    """
    for i, a in enumerate(plan.buffers):
        if a.offset < 0 or a.offset % ALIGNMENT:
            raise PlanError(f"{a.name}: offset {a.offset} is not a multiple of {ALIGNMENT}")
        if a.nbytes > a.padded or a.offset + a.padded > plan.size:
            raise PlanError(f"{a.name}: does not fit into its place or into the workspace")
        for b in plan.buffers[i + 1 :]:
            together = not (a.last < b.first or b.last < a.first)
            apart = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
            if together and not apart:
                raise PlanError(f"{a.name} and {b.name} are in use together and overlap")
    if not plan.buffers and plan.size:
        raise PlanError("asks for space without buffers")
    return plan
