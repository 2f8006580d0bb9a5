"""Traces are made: the function runs once on arrays and numbers that stand for the arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aclnn.acl.arguments import did_you_mean, shown
from aclnn.acl.errors import AclnnError, NoMemoryError, invalid
from aclnn.compiler._settings import current_settings
from aclnn.compiler.recording import Recording
from aclnn.compiler.settings import strategy_number
from aclnn.execution._operand import describe
from aclnn.tracing.array import TracedArray
from aclnn.tracing.captured_variables import CapturedVariables
from aclnn.tracing.executors import unbound
from aclnn.tracing.given import Argument
from aclnn.tracing.integers import IntegersReadError
from aclnn.tracing.lines import add_line, place_of
from aclnn.tracing.nesting import names_of, owners_in, put_together, taken_apart
from aclnn.tracing.recording import Held, Memory, Trace
from aclnn.tracing.recordings import Traced, bits_of
from aclnn.tracing.requests import Parameters, Request
from aclnn.tracing.run_numbers import Numbers


class Tracer:
    """Makes the traces of one function.

    Parameters
    ----------
    function : callable
    name : str
    parameters : Parameters
        Of the function.
    options : mapping of str to object
        Those of `aclnn.compile`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        parameters: Parameters,
        options: Mapping[str, Any],
    ):
        self._function, self._name = function, name
        self._parameters, self._options = parameters, options
        self._strategy = strategy_number(options["strategy"])

    def trace(self, request: Request) -> tuple[Traced, list[Held]]:
        """A trace for a call, and the arrays that it found outside, which it does not keep."""
        inputs = request.inputs
        alone = list(range(len(inputs)))
        found = self._run_traced(request, alone)
        shared = _shared(inputs)
        if shared != alone and any(memory.version for memory in found.trace.inputs):
            # What is written through one argument is seen through the others.
            found = self._run_traced(request, shared)
        else:
            shared = alone
        if not found.trace.is_settled(request.owners):  # what it makes once may be there now
            with contextlib.suppress(AclnnError):
                found = self._run_traced(request, shared)
        trace = found.trace
        if trace.made_inside():
            again = self._run_traced(request, shared).trace
            self._refuse_unfollowed(trace, again)
            again.end()
        traced = Traced(self._name, self._settings(), self._options["threads"] or 0, shared)
        held = trace.held
        traced.recording, traced.held = trace.recording, held
        traced.run_forms = trace.run_forms
        traced.read = {index: bits_of(request.values[index]) for index in found.numbers.read}
        traced.conditions = found.numbers.conditions
        traced.guards, traced.texts = trace.guards(request.owners)
        traced.summary = place_of(self._function)
        traced.arguments = self._parameters.arguments(request.form)
        self._add_outputs(traced, trace, found.result)
        trace.end()
        if traced.guards is not None:
            traced.held = []
        traced.fixed = self._fixed_inputs(traced, len(inputs))
        traced.executor = unbound(traced)
        return traced, held

    def _run_traced(self, request: Request, shared: Sequence[int]) -> _Found:
        """Call the function once, on arrays and numbers that stand for the arguments.

        Raises
        ------
        IntegersReadError
            If it asked for the value of an integer.
        """
        if request.integers is None or not request.integers.places:
            return self._run_on_stand_ins(request, shared)
        captured = self._captured(request, self._parameters.arguments(request.form))
        if captured is not None and (captured.asks_for_types or captured.asks_for_integers):
            self._parameters.fixed_integers.fix(request.integers)
            raise IntegersReadError
        try:
            return self._run_on_stand_ins(request, shared)
        except Exception:
            self._parameters.fixed_integers.fix(request.integers)
            raise IntegersReadError from None

    def _run_on_stand_ins(self, request: Request, shared: Sequence[int]) -> _Found:
        numbers = Numbers(request.values)
        if not request.values:
            return self._call_traced(request, shared, (), numbers)
        try:
            return self._call_traced(request, shared, numbers.stand_ins(), numbers)
        except Exception:  # perhaps of code that takes nothing but a float
            numbers.read.update(range(len(request.values)))
            return self._call_traced(request, shared, request.values, numbers)

    def _call_traced(
        self, request: Request, shared: Sequence[int], values: Sequence[Any], numbers: Numbers
    ) -> _Found:
        arguments = self._parameters.arguments(request.form)
        captured = self._captured(request, arguments)
        if captured is not None and captured.asks_for_types:  # that of a stand-in is not float
            numbers.read.update(range(len(request.values)))
            values = request.values
        trace = Trace(self._name, TracedArray, self._function, captured)
        memories: list[Memory] = []
        names = [name for one in arguments for name in one.arrays]
        for index, (name, spec) in enumerate(zip(names, request.headers.specs(), strict=True)):
            memory = trace.argument(name, spec)
            memories.append(memory if shared[index] == index else memories[shared[index]])
        stand_ins, floats = iter([TracedArray(memory) for memory in memories]), iter(values)
        args = put_together(request.form[0], stand_ins, floats)
        named = {}
        if request.form[1] is not None:
            named = put_together(request.form[1], stand_ins, floats)
        try:
            result = trace.run(args, named)
            leaves: list[Any] = []
            nested = taken_apart(result, leaves)
            return _Found(trace, nested, [trace.taken(one) for one in leaves], numbers)
        except AclnnError as error:
            add_line(error, self._function)
            raise
        except NoMemoryError as outer:
            refused = outer.error.with_traceback(outer.__traceback__)
            add_line(refused, self._function)
            raise refused from None
        finally:
            if request.integers is not None:
                request.integers.read = trace.integers_read
                request.integers.positions = trace.positions

    def _captured(
        self, request: Request, arguments: Sequence[Argument]
    ) -> CapturedVariables | None:
        """Objects that the function reaches, unless nothing of that is ever bound to something else."""
        if getattr(self._function, "__aclnn_constant__", False):
            return None
        names = [one.name for one in arguments for _ in owners_in(one.form)]
        return CapturedVariables(self._function, request.owners, names)

    def _refuse_unfollowed(self, first: Trace, second: Trace) -> None:
        """Refuse arrays that the function gets from outside by a way that cannot be followed."""
        again = {id(one.given) for one in second.made_inside()}
        for one in first.made_inside():
            if id(one.given) in again:
                raise invalid(
                    f"{self._name}: an array, {describe(one.array)}, that is no argument cannot be "
                    "followed: it is reached by no name, attribute or element that calls could "
                    f"look up again; pass it as an argument\n  {one.line}"
                )
        for one in first.made_inside():
            if one.after:
                raise invalid(
                    f"{self._name}: an array, {describe(one.array)}, that the function makes may be "
                    f"computed of {one.after}, which holds its new elements only after the run; "
                    f"make it outside, or pass {one.after} as an argument\n  {one.line}"
                )
        if len(again) != len({id(one.given) for one in first.made_inside()}):
            return
        for one, other in zip(first.made_inside(), second.made_inside(), strict=False):
            if first.inputs[one.place].version == 0 and _differ(one.array, other.array):
                raise invalid(
                    f"{self._name}: an array, {describe(one.array)}, that the function makes has "
                    "other elements each time, which a plan cannot repeat; pass it as an argument"
                    f"\n  {one.line}"
                )

    def _add_outputs(self, traced: Traced, trace: Trace, result: tuple[Any, list[Any]]) -> None:
        """Add the outputs of a run: what the function returns, and arguments that it wrote."""
        traced.result, leaves = result
        recording = trace.recording
        # Functions of other libraries' models have names for what they return.
        names = getattr(self._function, "__aclnn_results__", None) or names_of(traced.result, "out")
        ties = []
        for name, leaf in zip(names, leaves, strict=True):
            recording.output(_apart(name, recording), leaf.value_in(trace))
            ties.append(-1)
        for index, memory in enumerate(trace.inputs):
            if memory.version == 0 or trace.is_own(index):
                continue
            value = recording.inputs[index]
            spec = recording.spec(value)
            if not spec.writable:
                raise invalid(f"{self._name}: {memory.name} is read-only, but is written in place")
            recording.output(f"{memory.name} afterwards", memory.value, spec, value)
            ties.append(index)
        traced.ties = tuple(ties) if any(tie >= 0 for tie in ties) else None

    def _fixed_inputs(self, traced: Traced, count: int) -> frozenset[str]:
        """Names of the inputs that the option `packed` promises not to change; `count` are arguments."""
        requested, recording = self._options["packed"], traced.recording
        if requested is False:
            return frozenset()
        written = {output.replaces for output in recording.outputs} - {None}
        pairs = list(zip(recording.input_names, recording.inputs, strict=True))
        if requested is True:
            return frozenset([name for name, value in pairs[count:] if value not in written])
        found: set[str] = set()
        for name in requested:
            parts = [one.arrays for one in traced.arguments if one.name == name]
            named = [*parts[0]] if parts else []
            named += [one for one in recording.input_names[count:] if one == name]
            if not named and name not in self._parameters.signature[0]:
                known = dict.fromkeys([*self._parameters.signature[0], *recording.input_names])
                raise invalid(
                    f"{self._name}: packed names {shown(name)}, which is no argument and no array that "
                    f"the function reaches: these are {', '.join(known)}{did_you_mean(name, known)}"
                )
            found.update(named)
        for name, value in pairs:
            if name in found and value in written:
                raise invalid(f"{self._name}: packed names {name}, which is written in place")
        return frozenset(found)

    def _settings(self) -> dict[str, Any]:
        settings = current_settings()
        if self._options["threads"] is not None:
            settings["threads"] = settings["planned_threads"] = self._options["threads"]
        settings["strategy"] = self._strategy
        settings["materialize"] = self._options["materialize"]
        return settings


@dataclass(frozen=True, slots=True)
class _Found:
    """One trace, what the function gave, and what it asked of its floats."""

    trace: Trace
    form: Any
    leaves: list[Any]
    numbers: Numbers

    @property
    def result(self) -> tuple[Any, list[Any]]:
        return self.form, self.leaves


def _differ(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays have other elements, bit by bit."""
    return one.shape != other.shape or one.tobytes() != other.tobytes()


def _apart(name: str, recording: Recording) -> str:
    """A name that no input has."""
    while name in recording.input_names:
        name += "_"
    return name


def _shared(inputs: Sequence[np.ndarray]) -> list[int]:
    """For each array the first one that is the same memory, seen alike."""
    first: dict[Any, int] = {}
    keys = [(a.ctypes.data, a.shape, a.strides, a.dtype.str) for a in inputs]
    return [first.setdefault(key, index) for index, key in enumerate(keys)]
