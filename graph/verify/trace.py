"""Whether a program keeps to its memory: traces of reads and writes, on streams, checked.

Two accesses are ordered when they are on one stream, or when events or synchronisation lead from one to
the other; vector clocks tell.  Nothing here knows how places were planned.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..constraints import Count

if TYPE_CHECKING:
    from ..planner.plan import Buffer, WorkspacePlan

ACCESSES = ("read", "write", "workspace")
ACTIONS = (*ACCESSES, "alloc", "free", "record", "wait", "sync")
PAGE = 1 << 16  # bytes; accesses are looked up by the pages that they touch
MOST_PAGES = 64  # of one access; what touches more is compared with everything
HOST = ""  # the stream of the program itself, which waits in `sync`

Clock = dict[str, int]


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One line of a trace.

    Attributes
    ----------
    row : int
        Number of the line, from 1.
    stream : str
        The stream on which it happens.
    action : str
        read, write, workspace (both, of memory for one kernel), alloc, free; record and wait, of an event;
        sync, in which the program waits for a stream, or for all.
    name : str
        The buffer, the event, or the stream waited for.
    offset : int or None
        First byte; of a read or write that of the buffer if not given.
    size : int or None
        Bytes; all of the buffer if not given.
    step : int or None
        Of the plan that has the buffer, if one has.

    Examples
    --------
    >>> TraceEvent(1, "s1", "alloc", "a", 0, 64).action
    'alloc'
    """

    row: Count
    stream: str
    action: str
    name: str = ""
    offset: int | None = None
    size: int | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class TraceFault:
    """Two lines of a trace that do not go together, or one that cannot be.

    Attributes
    ----------
    kind : str
        lifetime, bytes, overlap, race, workspace or free.
    rows : tuple of int
        The lines at fault.
    message : str
        The error, with names.

    Examples
    --------
    >>> print(TraceFault("free", (3,), "a is freed, but never allocated"))
    row 3: a is freed, but never allocated
    """

    kind: str
    rows: tuple[int, ...]
    message: str

    def __str__(self) -> str:
        rows = " and ".join(map(str, self.rows))
        return f"row{'s' * (len(self.rows) > 1)} {rows}: {self.message}"


@dataclass(slots=True)
class _Moment:
    """When something happened: its stream, and how far that was."""

    event: TraceEvent
    tick: int

    def is_before(self, clock: Clock) -> bool:
        return clock.get(self.event.stream, 0) >= self.tick


@dataclass(slots=True)
class _Memory:
    """A buffer while it is allocated, and its end."""

    name: str
    begin: int
    end: int
    born: _Moment
    died: _Moment | None = None


@dataclass(slots=True)
class _Access:
    moment: _Moment
    begin: int
    end: int
    writes: bool
    name: str

    @property
    def is_workspace(self) -> bool:
        return self.moment.event.action == "workspace"


@dataclass
class TraceChecker:
    """A trace that is checked event by event.

    Examples
    --------
    >>> checker = TraceChecker()
    >>> for row, words in enumerate([("s1", "alloc", "a", 0, 64), ("s2", "write", "a")], 1):
    ...     for fault in checker.take(TraceEvent(row, *words)):
    ...         print(fault)
    rows 1 and 2: write of a on stream s2 is not ordered after its alloc on stream s1
    """

    places: Mapping[str, Buffer] = field(default_factory=dict)
    tracks_allocations: bool = True
    clocks: dict[str, Clock] = field(default_factory=dict)
    recorded: dict[str, Clock] = field(default_factory=dict)
    memories: dict[str, list[_Memory]] = field(default_factory=dict)
    pages: dict[int, dict[tuple[str, bool, int, int], _Access]] = field(default_factory=dict)
    live: dict[int, set[int]] = field(default_factory=dict)
    all_memories: list[_Memory] = field(default_factory=list)

    def take(self, event: TraceEvent) -> Iterator[TraceFault]:
        """Check the next event; give the faults that it is part of."""
        clock = self._clock_of(event)
        if event.action == "record":
            self.recorded[event.name] = dict(clock)
        elif event.action == "wait":
            _join(clock, self.recorded.get(event.name, {}))
        elif event.action == "sync":
            self._synchronise(event)
        elif event.action == "alloc":
            yield from self._allocate(event, clock)
        elif event.action == "free":
            yield from self._free(event, clock)
        else:
            yield from self._access(event, clock)

    def clashes(self, event: TraceEvent) -> Iterator[TraceFault]:
        """Faults that an access to given bytes would be part of, which is not made."""
        clock = self._clock_of(event)
        begin, size = event.offset or 0, event.size or 0
        moment = self._moment(event, clock)
        new = _Access(moment, begin, begin + size, event.action != "read", event.name)
        for other in self._accesses(new.begin, new.end):
            if fault := _race(other, new, clock):
                yield fault

    def rows(self) -> set[int]:
        """Numbers of the accesses that later ones are compared with."""
        return {one.moment.event.row for page in self.pages.values() for one in page.values()}

    def forget(self, stream: str) -> None:
        """Drop accesses of a stream whose work is done, or of all: what follows is ordered after them."""
        for page in self.pages.values():
            for key in [key for key in page if stream in ("", key[0])]:
                del page[key]

    def _clock_of(self, event: TraceEvent) -> Clock:
        """The stream's clock, one tick on; a kernel that is launched is after what the program waited for."""
        clock = self.clocks.setdefault(event.stream, {})
        _join(clock, self.clocks.setdefault(HOST, {}))
        clock[event.stream] = clock.get(event.stream, 0) + 1
        return clock

    def _synchronise(self, event: TraceEvent) -> None:
        host = self.clocks[HOST]
        for name, clock in list(self.clocks.items()):
            if event.name in ("", name):
                _join(host, clock)

    def _moment(self, event: TraceEvent, clock: Clock) -> _Moment:
        return _Moment(event, clock[event.stream])

    def _allocate(self, event: TraceEvent, clock: Clock) -> Iterator[TraceFault]:
        begin, size = event.offset or 0, event.size or 0
        new = _Memory(event.name, begin, begin + size, self._moment(event, clock))
        older = self.memories.setdefault(event.name, [])
        if older and older[-1].died is None:
            rows = older[-1].born.event.row, event.row
            yield TraceFault(
                "overlap", rows, f"{event.name} is allocated again without being freed"
            )
            older[-1].died = new.born
        for other in self._near(new):
            if other.died is not None and other.died.is_before(clock):
                continue
            if other.name == new.name and other.died is new.born:
                continue
            state = "is in use" if other.died is None else "may still be in use"
            yield TraceFault(
                "overlap", (other.born.event.row, event.row),
                f"{new.name} is given bytes [{new.begin}, {new.end}), in which {other.name} at "
                f"[{other.begin}, {other.end}) {state}",
            )  # fmt: skip
        older.append(new)
        self.all_memories.append(new)
        for page in _pages(new.begin, new.end):
            self.live.setdefault(page, set()).add(len(self.all_memories) - 1)

    def _near(self, new: _Memory) -> list[_Memory]:
        pages = _pages(new.begin, new.end)
        numbers = {i for page in (*pages, -1) for i in self.live.get(page, ())}
        chosen = range(len(self.all_memories)) if -1 in pages else sorted(numbers)
        found = [self.all_memories[i] for i in chosen]
        return [one for one in found if one.begin < new.end and new.begin < one.end]

    def _free(self, event: TraceEvent, clock: Clock) -> Iterator[TraceFault]:
        known = self.memories.get(event.name)
        if not known:
            yield TraceFault("free", (event.row,), f"{event.name} is freed, but never allocated")
            return
        memory = known[-1]
        if memory.died is not None:
            rows = memory.died.event.row, event.row
            yield TraceFault("free", rows, f"{event.name} is freed twice")
            return
        memory.died = self._moment(event, clock)
        for access in self._accesses(memory.begin, memory.end):
            if access.name == event.name and not access.moment.is_before(clock):
                yield TraceFault(
                    "lifetime", (access.moment.event.row, event.row),
                    f"{event.name} is freed on stream {_words(event.stream)} while stream "
                    f"{_words(access.moment.event.stream)} may {_verb(access)} it",
                )  # fmt: skip

    def _access(self, event: TraceEvent, clock: Clock) -> Iterator[TraceFault]:
        known = self.memories.get(event.name)
        memory = known[-1] if known else None
        begin, size = event.offset, event.size
        if memory is None and (planned := self.places.get(event.name)):
            begin = planned.offset if begin is None else begin
            size = planned.offset + planned.nbytes - begin if size is None else size
            yield from _plan_faults(event, planned, begin, begin + size)
        elif memory is None and (
            begin is None
            or size is None
            or (event.action != "workspace" and self.tracks_allocations)
        ):
            yield TraceFault(
                "lifetime",
                (event.row,),
                f"{event.action} of {event.name}, which was never allocated",
            )
            return
        if memory is not None:
            begin = memory.begin if begin is None else begin
            size = memory.end - begin if size is None else size
            yield from self._lifetime_faults(event, memory, clock, begin, begin + size)
        assert begin is not None
        assert size is not None
        new = _Access(
            self._moment(event, clock), begin, begin + size, event.action != "read", event.name
        )
        for other in self._accesses(new.begin, new.end):
            fault = _race(other, new, clock)
            if fault:
                yield fault
        self._keep(new)

    def _lifetime_faults(
        self, event: TraceEvent, memory: _Memory, clock: Clock, begin: int, end: int
    ) -> Iterator[TraceFault]:
        what = f"{event.action} of {event.name} on stream {_words(event.stream)}"
        if memory.died is not None:
            verb = "is behind" if memory.died.is_before(clock) else "may be behind"
            rows = memory.died.event.row, event.row
            yield TraceFault("lifetime", rows, f"{what} {verb} its end")
        elif not memory.born.is_before(clock):
            rows = memory.born.event.row, event.row
            where = _words(memory.born.event.stream)
            yield TraceFault(
                "lifetime", rows, f"{what} is not ordered after its alloc on stream {where}"
            )
        if not memory.begin <= begin <= end <= memory.end:
            yield TraceFault(
                "bytes", (memory.born.event.row, event.row),
                f"{what} has bytes [{begin}, {end}), {event.name} is at [{memory.begin}, {memory.end})",
            )  # fmt: skip

    def _keep(self, new: _Access) -> None:
        """The last access of a stream to some bytes stands for the earlier ones."""
        key = (new.moment.event.stream, new.writes, new.begin, new.end)
        for page in _pages(new.begin, new.end):
            self.pages.setdefault(page, {})[key] = new

    def _accesses(self, begin: int, end: int) -> list[_Access]:
        pages = _pages(begin, end)
        if -1 in pages:
            found = {id(one): one for page in self.pages.values() for one in page.values()}
        else:
            found = {
                id(one): one for page in (*pages, -1) for one in self.pages.get(page, {}).values()
            }
        return [one for one in found.values() if one.begin < end and begin < one.end]


def _plan_faults(event: TraceEvent, planned: Buffer, begin: int, end: int) -> Iterator[TraceFault]:
    """Faults of an access to a buffer that a plan has."""
    what = f"{event.action} of {event.name}"
    low, high = planned.offset, planned.offset + planned.nbytes
    if not low <= begin <= end <= high:
        words = f"{what} has bytes [{begin}, {end}), its place is [{low}, {high})"
        yield TraceFault("bytes", (event.row,), words)
    step = event.step
    if step is None:
        return
    if not planned.first <= step <= planned.last:
        words = f"{what} at step {step}, its lifetime is steps {planned.first} to {planned.last}"
        yield TraceFault("lifetime", (event.row,), words)
    for gap in planned.gaps:
        first, last = (low + at for at in gap.window or (0, 0))
        if gap.lower <= step < gap.upper and not first <= begin <= end <= last:
            words = f"{what} at step {step}, in its gap from step {gap.lower} to {gap.upper - 1}"
            yield TraceFault("lifetime", (event.row,), words)


def _pages(begin: int, end: int) -> tuple[int, ...]:
    """Numbers of pages; -1 stands for all, of what is large."""
    if end <= begin:
        return ()
    first, last = begin // PAGE, (end - 1) // PAGE
    return tuple(range(first, last + 1)) if last - first < MOST_PAGES else (-1,)


def _race(a: _Access, b: _Access, clock: Clock) -> TraceFault | None:
    """The fault of two accesses to some of the same bytes, of which the second is at `clock`."""
    one, two = a.moment.event, b.moment.event
    if not (a.writes or b.writes) or a.moment.is_before(clock) or one.stream == two.stream:
        return None
    rows = one.row, two.row
    low, high = max(a.begin, b.begin), min(a.end, b.end)
    streams = f"streams {_words(one.stream)} and {_words(two.stream)}"
    if a.is_workspace and b.is_workspace:
        words = f"{streams} share bytes [{low}, {high}) of a workspace, and may run at once"
        return TraceFault("workspace", rows, words)
    words = f"{_noun(a)} of {a.name} and {_noun(b)} of {b.name}, bytes [{low}, {high}), may be at once: {streams}"
    return TraceFault("race", rows, words)


def _noun(access: _Access) -> str:
    return "use" if access.is_workspace else "write" if access.writes else "read"


def _verb(access: _Access) -> str:
    return "use" if access.is_workspace else "write" if access.writes else "read"


def _words(stream: str) -> str:
    return stream or "of the program"


def _join(clock: Clock, other: Mapping[str, int]) -> None:
    for stream, tick in other.items():
        if clock.get(stream, 0) < tick:
            clock[stream] = tick


def check_trace(
    events: Iterable[TraceEvent], plan: WorkspacePlan | None = None
) -> tuple[TraceFault, ...]:
    """All faults of a trace.

    Uses of a buffer before its allocation or after its end, allocations of bytes that are in use, accesses
    to the same bytes of which one writes and that may happen at once, workspaces that two streams share.

    Parameters
    ----------
    events : iterable of TraceEvent
        In the order in which the program issues them.
    plan : WorkspacePlan, optional
        Has the places and lifetimes of buffers that the trace does not allocate; lines that use them say at
        which step.

    Returns
    -------
    tuple of TraceFault
        Empty where the trace is sound.

    Examples
    --------
    >>> text = "stream,action,id,offset,size\\ns1,workspace,ws,0,512\\ns2,workspace,ws,256,512\\n"
    >>> print(*check_trace(trace_from_csv(text)))
    rows 1 and 2: streams s1 and s2 share bytes [256, 512) of a workspace, and may run at once
    """
    places = {} if plan is None else {one.name: one for one in plan.buffers if not one.output}
    checker = TraceChecker(places)
    return tuple([fault for event in events for fault in checker.take(event)])


def trace_from_csv(text: str) -> tuple[TraceEvent, ...]:
    """The trace in a CSV file with the columns stream, action and id, and perhaps offset, size and step.

    Parameters
    ----------
    text : str

    Returns
    -------
    tuple of TraceEvent

    Raises
    ------
    ValueError
        Names the missing columns, or the row and its fault.

    Examples
    --------
    >>> trace_from_csv("stream,action,id,offset,size\\ns,alloc,a,0,64\\n")[0].size
    64
    """
    rows = csv.DictReader(io.StringIO(text))
    missing = {"stream", "action", "id"} - set(rows.fieldnames or ())
    if missing:
        raise ValueError(f"columns missing: {', '.join(sorted(missing))}")
    try:
        return tuple([_event(index, row) for index, row in enumerate(rows, 1)])
    except csv.Error as error:
        raise ValueError(f"no CSV, line {rows.line_num + 1}: {error}") from None


def _event(index: int, row: Mapping[str, str | None]) -> TraceEvent:
    action, name = (row["action"] or "").strip(), row["id"] or ""
    if action not in ACTIONS:
        raise ValueError(f"row {index}: action is {action!r}, must be one of {', '.join(ACTIONS)}")
    if not name and action != "sync":
        raise ValueError(f"row {index}: {action} has no id")
    offset, size, step = (_number(index, row, column) for column in ("offset", "size", "step"))
    if action == "alloc" and (offset is None or size is None):
        raise ValueError(f"row {index}: alloc of {name} needs offset and size")
    return TraceEvent(index, row["stream"] or "", action, name, offset, size, step)


def _number(index: int, row: Mapping[str, str | None], column: str) -> int | None:
    text = (row.get(column) or "").strip()
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,19}", text, re.ASCII):
        raise ValueError(f"row {index}: {column} is {text!r}, must be a number from 0")
    return int(text)
