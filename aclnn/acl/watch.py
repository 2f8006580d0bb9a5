"""Streams that are checked while they are used (`ACLNN_DEBUG=1`): what may run at once must not share bytes.

Every call that is queued on a stream says what it reads and writes, and which workspace it has. Events,
synchronisation and queries that find work done order calls; two that are not ordered, and share bytes that
one of them writes, are refused with both names. Calls on the default stream run at once, and streams that a
program in C made are its own: neither is looked at.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

from aclnn import deferred
from aclnn.acl import _runtime, dtypes, registry
from aclnn.acl.constants import ACLNN_ERR_PARAM_INVALID
from aclnn.acl.errors import fail
from aclnn.graph.verify.trace import TraceChecker, TraceEvent, TraceFault

OK = 0
MOST_RUNS = 256  # stretches of memory that an operand with gaps is followed by; one of more is not
Range = tuple[int, int]  # address, bytes


class Watch:
    """Accesses of queued calls, and how they are ordered."""

    def __init__(self) -> None:
        _runtime.watch()
        self._lock = threading.Lock()
        self._checker = TraceChecker(tracks_allocations=False)
        self._rows = itertools.count(1)
        self._streams: WeakSet[Any] = WeakSet()
        # Of the memory of accesses, by their numbers.
        self._owners: dict[int, Callable[[], Any]] = {}

    def add(self, stream: Any) -> None:
        """Look at a stream from now on."""
        registry.handle_of(stream)
        self._streams.add(stream)

    def launch(self, stream: Any, job: Any, function: str) -> int:
        """Check a call before it is queued; a status."""
        if stream not in self._streams or not hasattr(job, "scratch"):
            return OK
        accesses = [
            (owner, (action, f"{function} {name}", *one))
            for owner, action, name, one in _accesses(job)
        ]
        with self._lock:
            for _, access in accesses:
                if fault := self._clash(self._event(stream, *access)):
                    return fail(int(ACLNN_ERR_PARAM_INVALID), f"{function}: {fault.message}")
            for owner, access in accesses:  # none of what is refused, which never runs
                self._owners[self._take(stream, *access)] = owner
        return OK

    def _clash(self, event: TraceEvent) -> TraceFault | None:
        """The first clash with memory that is still there: what was freed may be given to others."""
        for fault in self._checker.clashes(event):
            if self._owners[fault.rows[0]]() is not None:
                return fault
        return None

    def _event(
        self,
        stream: Any,
        action: str,
        name: str,
        offset: int | None = None,
        size: int | None = None,
    ) -> TraceEvent:
        words = "" if stream is None else str(stream.number)
        return TraceEvent(next(self._rows), words, action, name, offset, size)

    def _take(self, stream: Any, action: str, name: str, *index: int) -> int:
        """Take note of what happens; its number."""
        event = self._event(stream, action, name, *index)
        for _ in self._checker.take(event):
            pass  # clashes were looked for before
        return event.row

    def record(self, event: Any, stream: Any) -> None:
        """An event is recorded on a stream."""
        registry.handle_of(event)
        with self._lock:
            self._take(stream, "record", str(event.number))

    def wait(self, event: Any, stream: Any) -> None:
        """A stream waits for an event; the default one is the program itself."""
        with self._lock:
            self._take(stream, "wait", str(event.number))

    def finished(self, stream: Any) -> None:
        """The program knows that a stream's work is done; of None that of all."""
        with self._lock:
            self._take(None, "sync", "" if stream is None else str(stream.number))
            self._checker.forget("" if stream is None else str(stream.number))
            there = self._checker.rows()
            self._owners = {row: owner for row, owner in self._owners.items() if row in there}


def _accesses(job: Any) -> Iterator[tuple[Callable[[], Any], str, str, Range]]:
    """Memory that a call reads and writes, and its workspace, with references to the owners."""
    inputs, owners = job.call()[1], [_reference(owner) for _, owner in job.owners()]
    for index, operand in enumerate(job.operands()):
        if operand is None:
            continue
        name, spec = operand
        for one in _stretches(spec):
            yield owners[index], "read" if index < inputs else "write", name, one
    address, nbytes, owner = job.scratch
    if nbytes:
        yield _reference(owner), "workspace", "workspace", (address, nbytes)


def _reference(owner: Any) -> Callable[[], Any]:
    """A weak reference to the owner of memory; of what takes none a strong one."""
    while (
        base := getattr(owner, "obj" if isinstance(owner, memoryview) else "base", None)
    ) is not None:
        owner = base
    try:
        return weakref.ref(owner)
    except TypeError:
        return lambda: owner


def _stretches(spec: Any) -> list[Range]:
    """Memory of a tensor, in stretches without gaps; none where there are too many."""
    itemsize = dtypes.NUMPY[spec.dtype].itemsize
    if 0 in spec.shape:
        return []
    axes = sorted(
        [
            (abs(stride), size, stride)
            for size, stride in zip(spec.shape, spec.strides, strict=True)
            if size > 1 and stride
        ]
    )
    start = spec.address + itemsize * sum(min(stride * (size - 1), 0) for _, size, stride in axes)
    length, starts = 1, [0]
    for step, size, _ in axes:
        if step <= length and len(starts) == 1:
            length = step * (size - 1) + length
        elif len(starts) * size > MOST_RUNS:
            return []
        else:
            starts = [at + step * k for at in starts for k in range(size)]
    return [(start + itemsize * at, itemsize * length) for at in starts]


_watch: list[Watch | None] = []


def watching() -> Watch | None:
    """The watch, if `ACLNN_DEBUG` asks for one; the variable is read when a stream is first used."""
    if not _watch:
        asks = deferred.load("environment variables").DEBUG.read()
        _watch.append(Watch() if asks else None)
    return _watch[0]
