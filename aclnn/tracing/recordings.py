"""Traces of a function: one recording each, its plans, and whether a call may run them."""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aclnn.acl.errors import invalid
from aclnn.compiler._compiled_call import CompiledCall
from aclnn.compiler.compilation import compile_recording
from aclnn.compiler.phase_one import elements_meet
from aclnn.compiler.recording import IDENTICAL, Output, Recording
from aclnn.execution import arrays
from aclnn.execution._executor import aclOpExecutor
from aclnn.execution._joined import outputs_that_meet, pack_numbers, takes_outputs
from aclnn.execution._operand import Headers
from aclnn.operators.checks import TensorSpec
from aclnn.tracing._guards import Guards
from aclnn.tracing.given import Argument
from aclnn.tracing.nesting import ARRAY, mapped, put_together
from aclnn.tracing.recording import Held, RunForms, spec_of
from aclnn.tracing.run_numbers import Condition, Values

MOST_LAYOUTS = 16  # of results, for which a trace has plans

clock = itertools.count()  # tells which trace was used last
bits_of = struct.Struct("d").pack


def nobody() -> None:
    """In place of a reference to an object."""
    return


class ProcessLock:
    """A lock that a forked child finds open: the thread that held it is the parent's."""

    def __init__(self) -> None:
        self._locks = {os.getpid(): threading.RLock()}

    def here(self) -> Any:
        """The lock of this process."""
        own = os.getpid()
        return self._locks.get(own) or self._locks.setdefault(own, threading.RLock())


class Traced:
    """Trace of a function for one description: its recording, and its plans.

    Attributes
    ----------
    recording : Recording
    guards : Guards or None
        What has to be looked up at each call.
    result : object
        The form of what the function returns.
    ties : tuple of int or None
        For each output the input whose memory it is, or -1; None where there is none.
    """

    def __init__(self, name: str, settings: Mapping[str, Any], threads: int, shared: Sequence[int]):
        self.name = name
        self.summary = ""  # where the function is
        self.threads = threads  # that the function asks for; 0 where it does not
        self.settings = settings
        self.recording: Recording
        self.held: list[Held] = []
        self.guards: Guards | None = None
        self.texts: list[str] = []  # what the guards are called
        self.run_forms: list[RunForms] = []
        self.fixed: frozenset[str] = frozenset()  # inputs that do not change, by name
        self.read: dict[int, bytes] = {}  # floats that are part of the description, by place
        self.conditions: list[Condition] = []
        self.result: Any = None
        self.arguments: list[Argument] = []
        self.ties: tuple[int, ...] | None = None
        self.shared = shared
        self.last_used = next(clock)
        self.executor: aclOpExecutor
        self.plain_key: Any = None
        self.owner: Callable[[], Any] = nobody  # the object in the first place of a call
        self._plans: dict[Any, CompiledCall] = {}
        self._others: dict[Any, aclOpExecutor] = {}  # for outputs that lie otherwise
        self._lock = ProcessLock()

    def plan(self, overlaps: Sequence[Sequence[int]] | None = None) -> CompiledCall:
        """The plan for inputs that lie to outputs in some way."""
        key = None if overlaps is None else tuple(map(tuple, overlaps))
        if key is not None:
            self._refuse_overlaps(key)
        with self._lock.here():
            found = self._plans.get(key)
            if found is None:
                fixed = self.fixed if key is None else ()
                found = compile_recording(
                    self.recording, overlaps, self.settings, self.summary, fixed=fixed
                )
                found.own_threads = self.threads
                self._plans[key] = found
            return found

    def _refuse_overlaps(self, rows: tuple[tuple[int, ...], ...]) -> None:
        """Refuse memory that the function writes itself and reads or gives otherwise."""
        names, written = self.recording.input_names, {tie for tie in self.ties or () if tie >= 0}
        for tie, row, output in zip(self.ties or (), rows, self.recording.outputs, strict=False):
            for index, overlap in enumerate(row):
                if tie < 0 and overlap and index in written:
                    raise invalid(
                        f"{self.name}: {output.name} shares memory with {names[index]}, which the "
                        "function writes in place"
                    )
                alias = overlap == IDENTICAL and self.shared_with(index) == self.shared_with(tie)
                if tie >= 0 and overlap and index != tie and not alias:
                    raise invalid(
                        f"{self.name}: {names[tie]} is written in place and shares memory with "
                        f"{names[index]}, which may be read afterwards"
                    )

    def shared_with(self, index: int) -> int:
        """The first argument that has the same memory."""
        return self.shared[index] if index < len(self.shared) else index

    # What a call needs.

    def fits(self, owners: Sequence[Any], values: Values) -> Run | None:
        """Operands of runs for these arguments; None where the plan is for others."""
        held = None
        if self.guards is not None:
            held = self.guards.look_up(owners)
            if held is None:
                return None
        numbers = self.numbers_for(values)
        return None if numbers is None else Run(self, held, numbers)

    def numbers_for(self, values: Values) -> bytes | None:
        """The numbers that kernels read, of a run's floats; None where these shape the plan."""
        for index, bits in self.read.items():
            if bits_of(values[index]) != bits:
                return None
        forms: list[Any] = []
        try:
            if not all(one.holds(values) for one in self.conditions):
                return None
            for one in self.run_forms:
                found = one.forms(values)
                if found is None:
                    return None
                forms += found
        except ArithmeticError:  # the function itself raises it, then
            return None
        return pack_numbers(forms)

    def differing(self, owners: Sequence[Any], values: Values) -> str:
        """Difference between the plan's description and these arguments, for people."""
        at = -1 if self.guards is None else self.guards.differing(owners)
        if at >= 0:
            return self.texts[at]
        names = [name for one in self.arguments for name in one.numbers]
        read = [index for index, bits in self.read.items() if bits_of(values[index]) != bits]
        for one in self.conditions:
            with contextlib.suppress(ArithmeticError):
                read += () if one.holds(values) else one.places
        return names[read[0]] if read else names[0] if names else ""

    def takes(self, out: Any) -> bool:
        """Whether what is given for outputs has the planned layout."""
        return takes_outputs(
            self.executor, (out,) if self.result is ARRAY else self.flat_outputs(out)
        )

    def executor_for(self, out: Any, executor: Callable[[Traced], aclOpExecutor]) -> aclOpExecutor:
        """The executor for outputs that lie as those given; `executor` makes one of a trace."""
        arguments = self.flat_outputs(out)
        if takes_outputs(self.executor, arguments):
            return self.executor
        found = [arrays.as_ndarray(one, "out") for one in arguments]
        key = tuple([(one.shape, one.strides, one.flags.writeable) for one in found])
        with self._lock.here():
            if key not in self._others:
                if len(self._others) >= MOST_LAYOUTS:
                    self._others.pop(next(iter(self._others)))
                self._others[key] = executor(self.laid_out(found))
            return self._others[key]

    def laid_out(self, outs: Sequence[np.ndarray]) -> Traced:
        """The same trace, with results in memory that is laid out otherwise."""
        made = copy.copy(self)
        rest = self.recording.outputs[len(outs) :]
        pairs = zip(self.recording.outputs, outs, strict=False)
        specs = [_as_given(output, one) for output, one in pairs]
        made.recording = self.recording.with_outputs([*specs, *[one.spec for one in rest]])
        made._plans, made._others = {}, {}
        return made

    # What executors ask of how outputs are nested.

    def built(self, results: Sequence[Any]) -> Any:
        """Return value of the function, with the outputs of a run."""
        ties = self.ties
        own = results if ties is None else [r for r, t in zip(results, ties, strict=True) if t < 0]
        return put_together(self.result, iter(own))

    def flat_outputs(self, out: Any) -> list[Any]:
        """The arrays of `out`, which is nested as what the function returns."""
        found: list[Any] = []
        if not mapped(self.result, out, found.append):
            raise invalid(f"{self.name}: out is not nested as what the function returns")
        if len(found) > 1:
            self._refuse_shared(found)
        return found

    def _refuse_shared(self, outs: Sequence[Any]) -> None:
        """Refuse outputs that overlap each other: steps may read from one while another is written."""
        for first, second in outputs_that_meet(outs):
            one, other = (arrays.as_ndarray(outs[index], "out") for index in (first, second))
            if np.shares_memory(one, other):
                raise invalid(
                    f"{self.name}: outputs {first} and {second} of out share memory; each needs its own"
                )


def _as_given(output: Output, out: np.ndarray) -> TensorSpec:
    """The description of an output with the layout of an array of the same shape and dtype."""
    spec = spec_of(out)
    assert output.spec is not None, "compiled functions describe all of their outputs"
    if (spec.shape, spec.dtype) != (output.spec.shape, output.spec.dtype):
        return output.spec
    if not spec.writable:
        raise invalid(f"{output.name} is read-only")
    if elements_meet(spec):
        raise invalid(
            f"{output.name} has strides {out.strides} for shape {out.shape}, which make elements "
            "of the output share memory"
        )
    return spec


@dataclass(frozen=True, slots=True)
class Run:
    """A trace, with the arrays and numbers that a run takes besides its arguments' arrays."""

    traced: Traced
    held: Headers | None
    numbers: bytes
