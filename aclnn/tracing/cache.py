"""The traces of a compiled function: found by what calls are given, made once, forgotten."""

from __future__ import annotations

import contextlib
import copy
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aclnn.compiler._settings import current_settings
from aclnn.tracing.cache_misses import Tally
from aclnn.tracing.executors import unbound
from aclnn.tracing.recording import Held
from aclnn.tracing.recordings import ProcessLock, Run, Traced, clock, nobody
from aclnn.tracing.requests import Request

LONGEST_WAIT = 10.0  # seconds for another thread's plan, which may wait for one of this


class TraceCache:
    """Traces of one function, by the descriptions of calls.

    Parameters
    ----------
    trace : callable
        Makes a trace for a call; gives it, and the arrays that it found outside.
    tally : Tally
        Warns where every call is planned anew.

    Attributes
    ----------
    plain : dict of object to Traced
        Traces that are found without taking calls apart.
    hits, misses : int
    """

    def __init__(self, trace: Callable[[Request], tuple[Traced, list[Held]]], tally: Tally):
        self._trace, self._tally = trace, tally
        self.plain: dict[Any, Traced] = {}
        self.hits = self.misses = 0
        self._found: dict[Any, list[Traced]] = {}
        self._of_owners: dict[Any, list[Any]] = {}  # weak references to the objects in a key
        self._planning: dict[Any, ProcessLock] = {}
        self._lock = ProcessLock()

    def __iter__(self) -> Iterator[Traced]:
        return iter([one for many in list(self._found.values()) for one in many])

    def __len__(self) -> int:
        return sum(map(len, list(self._found.values())))

    def clear(self) -> None:
        """Forget all traces, and count from zero."""
        with self._lock.here():
            self._found.clear()
            self.plain.clear()
            self._of_owners.clear()
            self.hits = self.misses = 0
            self._tally.begin()

    def run_for(self, request: Request) -> Run:
        """A trace for a call, made if there is none yet: once, however many threads ask for it."""
        key = request.form, request.headers.key
        run = self._known(key, request)
        if run is not None:
            return run
        with self._lock.here():
            own = self._planning.setdefault(key, ProcessLock()).here()
        # Traces may call other compiled functions, whose traces call this one.
        is_first = own.acquire(timeout=LONGEST_WAIT)
        try:
            run = self._known(key, request) if is_first else None
            return self._planned(key, request) if run is None else run
        finally:
            if is_first:
                own.release()
            with self._lock.here():
                self._planning.pop(key, None)

    def _known(self, key: Any, request: Request) -> Run | None:
        """A trace in the cache that is for a call."""
        for traced in self._found.get(key, ()):
            run = traced.fits(request.owners, request.values)
            if run is not None:
                self.hits += 1
                traced.last_used = next(clock)
                return run
        return None

    def _planned(self, key: Any, request: Request) -> Run:
        """A new trace, which goes into the cache."""
        self.misses += 1
        made, held = self._trace(request)
        self._tally.note(request, self._found.get(key, ()), self.hits)
        run = made.fits(request.owners, request.values)
        if run is None:  # the function, or another thread, has changed what is outside meanwhile
            alone = copy.copy(made)
            alone.guards, alone.held = None, held
            alone.executor = unbound(alone)
            run = Run(alone, None, alone.numbers_for(request.values) or b"")
        if current_settings()["cache_limit"]:
            self._keep(key, made, request.owners)
        return run

    def _keep(self, key: Any, made: Traced, owners: Sequence[Any]) -> None:
        limit = current_settings()["cache_limit"]
        with self._lock.here():
            if owners and key not in self._of_owners:
                self._of_owners[key] = self._watched(key, owners)
            self._found[key] = [made, *self._found.get(key, ())]
            while len(self) > limit:
                self._forget_oldest()

    def _forget_oldest(self) -> None:
        every = [(one.last_used, key) for key, many in list(self._found.items()) for one in many]
        last, key = min(every, key=lambda pair: pair[0])
        many = self._found.get(key, [])
        for one in many:
            if one.last_used == last and one.plain_key is not None:
                self.plain.pop(one.plain_key, None)
        left = [one for one in many if one.last_used != last]
        if left:
            self._found[key] = left
        else:
            self._forget(key)

    def _forget(self, key: Any) -> None:
        for one in self._found.pop(key, ()):
            self.plain.pop(one.plain_key, None)
        self._of_owners.pop(key, None)

    def _watched(self, key: Any, owners: Sequence[Any]) -> list[Any]:
        """References by which the plans for an object end with it."""
        own = weakref.ref(self)

        def ended(_: Any) -> None:  # at any moment, in any thread: takes no lock
            cache = own()
            if cache is not None:
                cache._forget(key)

        found = []
        for one in owners:
            with contextlib.suppress(TypeError):
                found.append(weakref.ref(one, ended))
        return found

    def keep_plain(self, traced: Traced, key: Any, owners: Sequence[Any]) -> None:
        """Let a trace that is in the cache be found without taking a call apart."""
        if traced.plain_key == key and self.plain.get(key) is traced:
            return
        with self._lock.here(), contextlib.suppress(TypeError):  # of what cannot be held weakly
            if any(traced is one for one in self):
                traced.owner = weakref.ref(owners[0]) if owners else nobody
                traced.plain_key = key
                self.plain[key] = traced
