"""A warning where every call of a compiled function is planned anew."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType

from aclnn.acl.arguments import shown
from aclnn.compiler._settings import current_settings
from aclnn.execution._operand import describe
from aclnn.tracing.lines import frames_to_caller
from aclnn.tracing.nesting import ARRAY, NUMBER, Itself
from aclnn.tracing.recordings import Traced
from aclnn.tracing.requests import Parameters, Request

MISSES_IN_A_ROW = 10


class Tally:
    """Counts calls in a row that were planned, and warns once.

    Parameters
    ----------
    name : str
        Of the function.
    parameters : Parameters
    """

    def __init__(self, name: str, parameters: Parameters):
        self._name, self._parameters = name, parameters
        self._in_a_row: int | None = 0  # None once that was reported
        self._hits = 0  # when the latest miss was noted
        self._latest_objects: list[Itself] = []  # held weakly: another may get the same id
        self._latest: dict[str, str] = {}  # what the latest miss was given, for that

    def begin(self) -> None:
        """Count from zero."""
        self._in_a_row = self._in_a_row and 0
        self._hits = 0

    def end(self) -> None:
        """Warn no more."""
        self._in_a_row = None

    def note(self, request: Request, known: Sequence[Traced], hits: int) -> None:
        """Count a miss, after so many hits; warn once where every call is planned anew.

        `known` are the traces of calls that are taken apart alike.
        """
        if self._in_a_row is None or not current_settings()["cache_limit"]:
            return
        if hits != self._hits:
            self._hits, self._in_a_row = hits, 0
        objects = [Itself(one) for one in request.owners if not isinstance(one, FunctionType)]
        if objects != self._latest_objects:  # which have plans of their own
            self._latest_objects, self._in_a_row = objects, 0
        self._in_a_row += 1
        before, self._latest = self._latest, dict(self._described(request))
        if self._in_a_row < MISSES_IN_A_ROW:
            return
        self._in_a_row = None
        what = self._changed(known, request, before)
        warnings.warn(
            f"{self._name} was planned {MISSES_IN_A_ROW} times in a row, each time for another "
            f"description: {what}",
            RuntimeWarning,
            stacklevel=frames_to_caller(),
        )

    def _changed(self, known: Sequence[Traced], now: Request, before: Mapping[str, str]) -> str:
        """Differences between two calls, for people."""
        for traced in known:
            return f"{traced.differing(now.owners, now.values)} changed"
        found = [
            f"{name} was {before[name]}, is {text}" if name in before else f"{name} is {text}"
            for name, text in self._latest.items()
            if before.get(name) != text
        ]
        return ", ".join(found) or "the memory that arguments share, or a setting, changed"

    def _described(self, request: Request) -> Iterator[tuple[str, str]]:
        """Descriptions of a call's arguments, by their names."""
        inputs = iter(request.inputs)
        owners = [f"<{type(one).__name__} at {id(one):#x}>" for one in request.owners]
        for one in self._parameters.arguments(request.form):
            for name in one.arrays:
                yield name, describe(next(inputs))
            if one.form is not ARRAY and one.form is not NUMBER:
                text = shown(one.form[-1])
                yield one.name, owners[0] if isinstance(one.form[-1], Itself) and owners else text
