"""Workspace plans: the offset of each intermediate, and how good that is.

`plan_workspace` (of a graph) and `plan_lifetimes` (of your own list) make a `WorkspacePlan` of
what a planner decides; it knows its lower bound, draws itself and can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any

from ..callables import called
from ..constraints import Count, Length, OneOf, Positive
from ..ir import Graph
from ..loops.tiling import DEFAULT_TILING, Tiling, pad
from ..names import listed
from ..numbers import positive_number, whole_number
from ..summaries import counted, printable
from ..view_methods import Tabled
from ._search import Search, sharers
from .demands import has_demands, planned_with_demands
from .lifetimes import Gap, Lifetime, PackedMemory, SpareMemory, TilePart, merged
from .liveness import ScratchOf, ThreadsOf, graph_lifetimes, spare_memory
from .outputs import Held, bound_beside, in_outputs
from .strategies import Assignment, Planner, live_bytes, planner_of

if TYPE_CHECKING:
    from ..views.diff import PlanDiff


MOST_SHARING = 16  # buffers that `shared_with` names
PROOFS = ("optimal", "feasible")
STEP_NAMES = 6  # nodes of a step that it is named after
BY_SIZE = ("bucket", "naive")  # strategies that know sizes alone
USE_OUTPUTS = ("default", "exact")  # strategies; the others do as the NPU library does


class BudgetError(ValueError):
    """A plan exceeds its budget; the message names the buffers that are live at the peak.

    >>> from aclnn.graph import Lifetime, plan_lifetimes
    >>> try:
    ...     plan_lifetimes([Lifetime("a", 0, 2, 100)]).check(64)
    ... except BudgetError as error:
    ...     print(error)
    needs 128 bytes, 64 over the budget of 64; at the peak, step 0, live are: a (128 bytes)
    """


@dataclass(frozen=True, slots=True)
class Buffer:
    """One intermediate in the workspace, or in the memory of the output that `output` names.

    Attributes
    ----------
    name : str
        Of the value, or of the tiles of a loop.
    offset : int
        Bytes from the start of the workspace, or of the output.
    nbytes : int
        Bytes that it needs.
    padded : int
        Bytes that it is given.
    first : int
        The step that writes it.
    last : int
        The last step that reads it.
    shared_with : tuple of str
        Buffers that use some of the same bytes at other times, at most 16 of them.
    producer : str
        The node that writes it.
    consumers : tuple of str
        The nodes that read it.
    parts : tuple of TilePart
        The tiles of a tile loop: the offset of each in one thread's memory.
    contents : str
        Dtype and shape.
    shared_count : int
        Number of the buffers that use some of the same bytes at other times.
    same_as : str
        The buffer that it overwrites, as a result in place does; else empty.
    output : str
        The output in whose memory it is before that is written; empty: the workspace.
    gaps : tuple of Gap
        Steps in which others may use its bytes, all or those outside a window.
    uses : tuple of int
        The steps that write or read it, where these are more than the first and the last.

    Examples
    --------
    >>> Buffer("a", offset=64, nbytes=100, padded=128, first=0, last=1).offset
    64
    """

    name: str
    offset: Count
    nbytes: Count
    padded: Count
    first: Count
    last: Count
    shared_with: Annotated[tuple[str, ...], Length(maximum=MOST_SHARING)] = ()
    producer: str = ""
    consumers: tuple[str, ...] = ()
    parts: tuple[TilePart, ...] = ()
    contents: str = ""
    shared_count: Count = 0
    same_as: str = ""
    output: str = ""
    gaps: tuple[Gap, ...] = field(default=(), metadata={"optional": True})
    uses: tuple[int, ...] = field(default=(), metadata={"optional": True})

    def __repr__(self) -> str:
        return printable(
            f"<Buffer {self.name}: {counted(self.nbytes, 'byte')} at {self.offset}, steps "
            f"{self.first} to {self.last}>"
        )

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.offset + self.padded

    @property
    def sharing(self) -> str:
        """`shared_with` in words, empty when nothing shares its bytes."""
        more = self.shared_count - len(self.shared_with)
        return ", ".join(self.shared_with) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True, eq=False)
class WorkspacePlan(Tabled):
    """Offsets of all buffers in the workspace.

    Plans compare by content, also with those of a derived class.

    Attributes
    ----------
    size : int
        Bytes to allocate; 0 when nothing needs space.
    lower_bound : int
        Largest sum of padded bytes live at one step, at 64 byte alignment, less what outputs could
        hold of them; for the strategy 'exact' the largest size that it proved no plan to be below.
    naive_size : int
        Bytes that the strategy 'naive' needs for the same buffers.
    bucket_size : int
        Bytes that the strategy 'bucket' needs for the same buffers.
    proof : {'optimal', 'feasible'}
        'optimal' when no plan can be smaller: of these lifetimes, thus for this order of steps.
    buffers : tuple of Buffer
        Every intermediate with its offset.
    strategy : str
        Name of the planner: default, bucket, naive, exact, or that of your own.
    steps : tuple of str
        Names of the steps, for the pictures.
    threads : int
        Number of threads that scratch memory is for.
    tiling : Tiling
        Size of tiles, in elements.
    scratch_per_thread : int
        Bytes of tiles that each thread has.
    spare : tuple of SpareMemory
        Outputs whose memory intermediates may use before it is written.
    packed : tuple of PackedMemory
        Inputs that are packed once for many runs, in separate memory outside the workspace.

    Examples
    --------
    Two that are never needed together share their bytes:

    >>> from aclnn.graph import Lifetime, WorkspacePlan, plan_lifetimes
    >>> lives = [Lifetime("a", 0, 2, 100), Lifetime("b", 1, 3, 50), Lifetime("c", 2, 4, 100)]
    >>> plan: WorkspacePlan = plan_lifetimes(lives)
    >>> plan.size, plan.naive_size, plan.proof
    (192, 1536, 'optimal')
    >>> [(buffer.name, buffer.offset) for buffer in plan.buffers]
    [('a', 0), ('b', 128), ('c', 0)]
    """

    size: Count
    lower_bound: Count
    naive_size: Count
    bucket_size: Count
    buffers: tuple[Buffer, ...]
    strategy: str
    proof: Annotated[str, OneOf(PROOFS)]
    steps: tuple[str, ...] = ()
    threads: Positive = 1
    tiling: Tiling = DEFAULT_TILING
    scratch_per_thread: Count = 0
    spare: tuple[SpareMemory, ...] = ()
    packed: tuple[PackedMemory, ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WorkspacePlan):
            return NotImplemented
        return self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def _facts(self) -> tuple[Any, ...]:
        """Fields that plans are compared by: those of this class, not those of a derived one."""
        return tuple(getattr(self, one.name) for one in fields(WorkspacePlan))

    def buffer(self, name: str) -> Buffer:
        """The buffer with this name.

        Parameters
        ----------
        name : str

        Returns
        -------
        Buffer

        Raises
        ------
        KeyError
            When there is none; the message lists the existing names.
        """
        for buffer in self.buffers:
            if buffer.name == name:
                return buffer
        known = listed(buffer.name for buffer in self.buffers)
        raise KeyError(f"no buffer is called {name!r}, there are {known}")

    def live_at(self, step: int) -> tuple[Buffer, ...]:
        """Buffers of the workspace that are needed at a step, by offset.

        Parameters
        ----------
        step : int

        Returns
        -------
        tuple of Buffer
        """
        live = [b for b in self.buffers if _is_live(b, step) and not b.output]
        return tuple(sorted(live, key=lambda buffer: buffer.offset))

    @property
    def lifetimes(self) -> tuple[Lifetime, ...]:
        """Lifetimes of the workspace's buffers, without those in outputs: planned again, the same plan."""
        inside = [buffer for buffer in self.buffers if not buffer.output]
        known = {buffer.name for buffer in inside}
        return tuple(
            [
                Lifetime(
                    one.name, one.first, one.last + 1, one.nbytes, one.producer, one.consumers,
                    one.parts, one.contents, one.same_as if one.same_as in known else "",
                    gaps=one.gaps, uses=one.uses,
                )
                for one in inside
            ]
        )  # fmt: skip

    @property
    def gap(self) -> int:
        """Bytes that the plan needs beyond its lower bound."""
        return self.size - self.lower_bound

    @property
    def peak_step(self) -> int:
        """The first step at which most bytes are live."""
        return self._peak()[0]

    @property
    def peak_bytes(self) -> int:
        """Padded bytes live at the peak."""
        return self._peak()[1]

    def _peak(self) -> tuple[int, int]:
        live = self._live()
        step = max(live, key=live.__getitem__, default=0)
        return step, live.get(step, 0)

    def _live(self, with_scratch: bool = True) -> dict[int, int]:
        """Padded bytes that are live, by the steps where that changes."""
        buffers = [b for b in self.buffers if not b.output and (with_scratch or not b.parts)]
        spans = [(b.first, b.last + 1, b.padded) for b in buffers]
        if any(buffer.same_as or buffer.gaps for buffer in buffers):
            places = merged([_as_lifetime(buffer) for buffer in buffers])[0]
            spans = _spans(places, [life.nbytes for life in places])
        return live_bytes(spans)

    @property
    def model_bytes(self) -> int:
        """Padded bytes of the model's buffers live at the step where they are most, without scratch."""
        return max(self._live(with_scratch=False).values(), default=0)

    @property
    def workspace_without_scratch(self) -> int:
        """Bytes of the workspace that are not scratch of the peak's step."""
        at_peak = sum([b.padded for b in self.live_at(self.peak_step) if b.parts])
        return self.size - at_peak

    @property
    def packed_bytes(self) -> int:
        """Bytes of inputs that are packed once, which are no part of the workspace."""
        return sum(memory.nbytes for memory in self.packed)

    @property
    def scratch_bytes(self) -> int:
        """Padded bytes of memory that kernels lend at the step that needs most, for all its threads."""
        return max([buffer.padded for buffer in self.buffers if buffer.parts], default=0)

    @property
    def fragmentation(self) -> float:
        """Share of the workspace that is not in use at the peak."""
        return 1 - self.peak_bytes / self.size if self.size else 0.0

    @property
    def must_shrink(self) -> tuple[Buffer, ...]:
        """The buffers live at the peak, largest first: only these can lower it."""
        return tuple(sorted(self.live_at(self.peak_step), key=lambda b: (-b.padded, b.offset)))

    def check(self, budget: int) -> WorkspacePlan:
        """Return this plan, raise `BudgetError` when it needs more bytes than `budget`.

        Parameters
        ----------
        budget : int
            Bytes.

        Returns
        -------
        WorkspacePlan
            This one.

        Raises
        ------
        BudgetError
            With the number of bytes above the budget, and the buffers that are live at the peak.
        ValueError
            If `budget` is not an integer.

        Examples
        --------
        >>> plan_lifetimes([Lifetime("a", 0, 1, 100)]).check(64)
        Traceback (most recent call last):
        ...
        aclnn.graph.planner.plan.BudgetError: needs 128 bytes, 64 over the budget of 64; \
at the peak, step 0, live are: a (128 bytes)
        """
        if self.size <= whole_number(budget, "budget"):
            return self
        live = listed(f"{b.name} ({b.padded} bytes)" for b in self.must_shrink)
        raise BudgetError(
            f"needs {self.size} bytes, {self.size - budget} over the budget of {budget}; "
            f"at the peak, step {self.peak_step}, live are: {live}"
        )

    def diff(self, other: WorkspacePlan) -> PlanDiff:
        """Changes from this plan to another.

        Parameters
        ----------
        other : WorkspacePlan

        Returns
        -------
        PlanDiff
            A string, falsy when nothing changes.

        Examples
        --------
        >>> one, two = (plan_lifetimes([Lifetime("a", 0, 1, size)]) for size in (64, 128))
        >>> bool(one.diff(one)), one.diff(two).resized
        (False, ('a',))
        """
        if not isinstance(other, WorkspacePlan):
            raise ValueError(f"other is {type(other).__name__}, must be a WorkspacePlan")
        return self._view("diff", other)

    def to_svg(self, heat: Any = None, whole: bool = False) -> str:
        """Boxes over time, offset upwards.

        Parameters
        ----------
        heat : {None, 'bytes'} or Heat, optional
            What colours the boxes: the bytes of buffers, or a quantity of your own.
        whole : bool
            Whether all steps are as wide as each other.  Else those at which nothing begins or ends
            take less room, and steps that come again are there once.

        Returns
        -------
        str
        """
        return self._view("svg", heat, whole)

    def to_header(self) -> str:
        """A header for programs in C or C++: numbers, names, offsets, sizes and lifetimes of buffers.

        Returns
        -------
        str
        """
        return self._view("header")

    def to_memory_snapshot(self) -> dict:
        """The plan in the format of PyTorch's memory viewer (pickle it and load it there).

        Returns
        -------
        dict
        """
        return self._view("memory_snapshot")

    def __repr__(self) -> str:
        return (
            f"<WorkspacePlan: {counted(self.size, 'byte')}, {counted(len(self.buffers), 'buffer')}, "
            f"strategy {self.strategy}, {self.proof}>"
        )


def plan_lifetimes(
    lifetimes: Iterable[Lifetime],
    strategy: str | Planner = "default",
    *,
    steps: Sequence[str] = (),
    threads: int = 1,
    tiling: Tiling | None = None,
    timeout: float | None = None,
    spare: Iterable[SpareMemory] = (),
) -> WorkspacePlan:
    """Plan a list of lifetimes of any origin.

    Parameters
    ----------
    lifetimes : iterable of Lifetime
        Each with a unique name.
    strategy : str or callable
        'default', 'bucket', 'naive' or 'exact', or a planner of your own, whatever can be called:
        it takes the lifetimes and gives an `Assignment`.  Lifetimes with `same_as` reach it as one;
        with alignments, hints or gaps, but no fixed offsets, it plans in units of the largest alignment, and
        simple packings are tried besides, which alone use gaps.  'bucket' and 'naive' refuse such.
    steps : sequence of str
        Names of the steps.
    threads : int
        Threads that lifetimes with `parts` hold tiles for.
    tiling : Tiling, optional
        The sizes that the tiles were cut by.
    timeout : float, optional
        Seconds that 'exact' may search for; 1 if not given.
    spare : iterable of SpareMemory
        Outputs whose memory 'default' and 'exact' may use besides.

    Returns
    -------
    WorkspacePlan

    Raises
    ------
    ValueError
        Naming the argument and its allowed values.

    Examples
    --------
    >>> plan = plan_lifetimes([Lifetime("a", 0, 2, 100), Lifetime("b", 1, 3, 60)])
    >>> plan.size, plan.lower_bound, plan.proof
    (192, 192, 'optimal')
    """
    lives, planner = tuple(lifetimes), planner_of(strategy, timeout)
    threads, spare = positive_number(threads, "threads"), tuple(spare)
    if not lives and not steps and tiling is None and isinstance(strategy, str):
        return _nothing(strategy, threads)
    _check_lifetimes(lives)
    name = strategy if isinstance(strategy, str) else called(strategy)
    distinct, places = merged(lives) if any(life.same_as for life in lives) else (lives, [])
    numbers = places or range(len(lives))
    heirs = _heirs(lives, numbers, spare)
    demands = any(map(has_demands, distinct))
    if demands and strategy in BY_SIZE:
        first = next(filter(has_demands, distinct))
        raise ValueError(
            f"strategy is {strategy!r}, which places by sizes alone, but {first.name} has an "
            "alignment, an offset, a hint or gaps"
        )
    if demands:
        planner = partial(planned_with_demands, planner=planner)
    uses_outputs = spare and strategy in USE_OUTPUTS and not demands
    held = in_outputs(distinct, spare, heirs) if uses_outputs else {}
    inside = [life for i, life in enumerate(distinct) if i not in held] if held else distinct
    chosen, search = planner(inside), Search(distinct)
    bound = bound_beside(distinct, spare, heirs) if held else max(search.peak, chosen.bound)
    if demands:  # places may have fewer bytes than others have, and ends that are fixed
        bound = max([*live_bytes(_spans(distinct, chosen.padded)).values(), chosen.bound])
    optimal = chosen.size == bound or (chosen.searched and not held)
    return WorkspacePlan(
        size=chosen.size,
        lower_bound=bound,
        naive_size=search.naive,
        bucket_size=search.bucket,
        buffers=_buffers(lives, _spots(len(distinct), chosen, held), numbers) if lives else (),
        strategy=name,
        proof="optimal" if optimal else "feasible",
        steps=tuple(steps),
        threads=threads,
        tiling=tiling or DEFAULT_TILING,
        scratch_per_thread=_scratch_per_thread(lives),
        spare=spare,
    )


def _heirs(
    lives: Sequence[Lifetime], numbers: Sequence[int], spare: Sequence[SpareMemory]
) -> dict[str, int]:
    """The numbers of lifetimes that outputs are written over, by names; others with such a number are
    over by then."""
    ends = {memory.heir: memory.until for memory in spare if memory.heir}
    if not ends:
        return {}
    found = {
        life.name: number for life, number in zip(lives, numbers, strict=True) if life.name in ends
    }
    late = {
        (number, until)
        for life, number in zip(lives, numbers, strict=True)
        for heir, until in ends.items()
        if life.name != heir and life.upper > until
    }
    return {name: number for name, number in found.items() if (number, ends[name]) not in late}


def _spots(count: int, chosen: Assignment, held: dict[int, Held]) -> list[Held]:
    """Place of each of `count` lifetimes; what no output holds is in the workspace."""
    inside = (Held("", *index) for index in zip(chosen.offsets, chosen.padded, strict=True))
    return [held[i] if i in held else next(inside) for i in range(count)]


@cache
def _nothing(strategy: str, threads: int) -> WorkspacePlan:
    """The plan of no lifetimes, which most calls have."""
    return WorkspacePlan(0, 0, 0, 0, (), strategy, "optimal", threads=threads)


def _check_lifetimes(lives: Sequence[Lifetime]) -> None:
    for index, life in enumerate(lives):
        if not isinstance(life, Lifetime):
            raise ValueError(f"lifetimes[{index}] is {life!r}, must be a Lifetime")
    if len({life.name for life in lives}) == len(lives):
        return
    (name, count), *_ = Counter(life.name for life in lives).most_common(1)
    raise ValueError(f"lifetimes: {count} are called {name!r}; each has a unique name")


def plan_workspace(
    graph: Graph,
    strategy: str | Planner = "default",
    *,
    threads: int = 1,
    tiling: Tiling | None = None,
    timeout: float | None = None,
    scratch_of: ScratchOf | None = None,
    threads_of: ThreadsOf | None = None,
    spare_outputs: Collection[str] = (),
    outputs_apart: bool = False,
) -> WorkspacePlan:
    """Plan the intermediates of a graph, with tiles for `threads` threads.

    Parameters
    ----------
    graph : Graph
        As built, or after passes.
    strategy, threads, tiling, timeout
        As for `plan_lifetimes`; the plan holds tiles for so many threads, or those that steps use.
    scratch_of, threads_of : callable, optional
        As for `graph_lifetimes`.
    spare_outputs : collection of str
        Names of outputs that overlap no input: before any output is written, 'default' and 'exact'
        put intermediates there.  A run that fails then leaves anything in them.  Of outputs that are
        an input, and overlap no other: these hold what they are written over, where the input may be
        written over by that.
    outputs_apart : bool
        Whether no output overlaps another: each is then used until it is written itself.

    Returns
    -------
    WorkspacePlan

    Raises
    ------
    ValueError
        Naming the argument and its allowed values.

    Examples
    --------
    >>> from aclnn.graph import DType, GraphBuilder
    >>> b, f32 = GraphBuilder(), DType("float32", 4)
    >>> x, out = b.input("x", (100,), f32), b.output("out", (100,), f32)
    >>> b.view_copy(b.compute("g", [b.compute("f", [x], (100,), f32)], (100,), f32), out)
    >>> plan = plan_workspace(b.build())
    >>> plan.size, [buffer.same_as for buffer in plan.buffers]
    (448, ['', 'f'])

    The result of `g` takes over the bytes of that of `f`, which nobody reads later.  Where the
    output overlaps no input, both may lie there:

    >>> plan = plan_workspace(b.build(), spare_outputs=["out"])
    >>> plan.size, [(buffer.output, buffer.offset) for buffer in plan.buffers]
    (0, [('out', 0), ('out', 0)])
    """
    lives = graph_lifetimes(
        graph, threads=threads, tiling=tiling, scratch_of=scratch_of, threads_of=threads_of
    )
    steps = [step_name(step) for step in graph.steps()]
    spare = spare_memory(graph, spare_outputs, outputs_apart) if lives and spare_outputs else ()
    return plan_lifetimes(
        lives, strategy, steps=steps, threads=threads, tiling=tiling, timeout=timeout, spare=spare
    )


def step_name(step: Sequence) -> str:
    """Name of a step: its nodes' names; of many the first ones, and how many more."""
    more = f"+{len(step) - STEP_NAMES}" if len(step) > STEP_NAMES else ""
    return "+".join([node.name for node in step[:STEP_NAMES]]) + more


def _buffers(
    lifetimes: Sequence[Lifetime], spots: Sequence[Held], numbers: Sequence[int]
) -> tuple[Buffer, ...]:
    """Buffers of lifetimes; those with one number have one place."""
    found: dict[int, Buffer] = {}
    for output in dict.fromkeys([spot.output for spot in spots]):
        here = [i for i, number in enumerate(numbers) if spots[number].output == output]
        places = [spots[numbers[i]] for i in here]
        offsets, padded = [one.offset for one in places], [one.padded for one in places]
        shared = sharers(offsets, padded, [lifetimes[i].name for i in here])
        for i, spot, (names, count) in zip(here, places, shared, strict=True):
            life = lifetimes[i]
            found[i] = Buffer(
                life.name, spot.offset, life.nbytes, spot.padded, life.lower, life.upper - 1,
                names, life.producer, life.consumers, life.parts, life.contents, count,
                life.same_as, output, life.gaps, life.uses,
            )  # fmt: skip
    return tuple([found[i] for i in range(len(lifetimes))])


def _scratch_per_thread(lives: Iterable[Lifetime]) -> int:
    """The bytes of one thread's tiles, in the step that has most."""
    ends = [part.offset + part.nbytes for life in lives for part in life.parts]
    return pad(max(ends, default=0))


def _as_lifetime(buffer: Buffer) -> Lifetime:
    """The lifetime of a buffer with its padding."""
    return Lifetime(
        buffer.name, buffer.first, buffer.last + 1, buffer.padded, same_as=buffer.same_as,
        gaps=buffer.gaps,
    )  # fmt: skip


def _spans(lives: Sequence[Lifetime], padded: Sequence[int]) -> list[tuple[int, int, int]]:
    """Steps and bytes in use of lifetimes that take so many bytes, without their gaps."""
    return [
        (lower, upper, end - begin)
        for life, size in zip(lives, padded, strict=True)
        for lower, upper, begin, end in life.pieces(size)
    ]


def _is_live(buffer: Buffer, step: int) -> bool:
    """Whether some of its bytes are in use at a step."""
    if not buffer.first <= step <= buffer.last:
        return False
    return not any(gap.lower <= step < gap.upper and not gap.window for gap in buffer.gaps)
