"""Compiled functions: traced and planned once for each description, then run."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
import itertools
import linecache
import os
import struct
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl._frames import boundary, calls_back
from aclnn.acl.arguments import as_int, as_truth, did_you_mean, shown
from aclnn.acl.errors import AclnnError, invalid, wrong_kind
from aclnn.compiler._compiled_call import CompiledCall
from aclnn.compiler._settings import current_settings, limit_of_thread
from aclnn.compiler.compilation import compile_recording
from aclnn.compiler.phase_one import elements_meet
from aclnn.compiler.recording import IDENTICAL, Output, Recording
from aclnn.compiler.settings import num_threads, strategy_number
from aclnn.execution import array_kinds, arrays
from aclnn.execution._executor import (
    aclOpExecutor,
    join_executor,
    outputs_that_meet,
    pack_numbers,
    run_on,
    takes_outputs,
)
from aclnn.execution._operand import Headers, call_key, describe, read_headers
from aclnn.execution.specs import ArraySpec
from aclnn.graph.runtime.abi import MAX_THREADS
from aclnn.operators.checks import TensorSpec
from aclnn.tracing._outside import Outside
from aclnn.tracing.array import TracedArray
from aclnn.tracing.given import Argument, Given, arguments_of
from aclnn.tracing.integers import FixedIntegers, Integers, IntegersReadError
from aclnn.tracing.nesting import (
    ARRAY,
    NUMBER,
    Itself,
    mapped,
    names_of,
    owners_in,
    put_together,
    taken_apart,
)
from aclnn.tracing.reach import Reach
from aclnn.tracing.run_numbers import Condition, Numbers, Values
from aclnn.tracing.trace import PACKAGE, Held, Memory, RunForms, Trace, spec_of

P = ParamSpec("P")
R = TypeVar("R")

_clock = itertools.count()


_bits = struct.Struct("d").pack


def _nobody() -> None:
    return None


class _ProcessLock:
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
    outside : Outside or None
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
        self.outside: Outside | None = None
        self.texts: list[str] = []  # what the nodes of the outside are called
        self.run_forms: list[RunForms] = []
        self.fixed: frozenset[str] = frozenset()  # inputs that do not change, by name
        self.read: dict[int, bytes] = {}  # floats that are part of the description, by place
        self.conditions: list[Condition] = []
        self.result: Any = None
        self.arguments: list[Argument] = []
        self.ties: tuple[int, ...] | None = None
        self.shared = shared
        self.last_used = next(_clock)
        self.executor: aclOpExecutor
        self.plain_key: Any = None
        self.owner: Callable[[], Any] = _nobody  # the object in the first place of a call
        self._plans: dict[Any, CompiledCall] = {}
        self._others: dict[Any, aclOpExecutor] = {}  # for outputs that lie otherwise
        self._lock = _ProcessLock()

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
            for place, overlap in enumerate(row):
                if tie < 0 and overlap and place in written:
                    raise invalid(
                        f"{self.name}: {output.name} shares memory with {names[place]}, which the "
                        "function writes in place"
                    )
                alias = overlap == IDENTICAL and self.shared_with(place) == self.shared_with(tie)
                if tie >= 0 and overlap and place != tie and not alias:
                    raise invalid(
                        f"{self.name}: {names[tie]} is written in place and shares memory with "
                        f"{names[place]}, which may be read afterwards"
                    )

    def shared_with(self, place: int) -> int:
        """The first argument that has the same memory."""
        return self.shared[place] if place < len(self.shared) else place

    # What a call needs.

    def fits(self, owners: Sequence[Any], values: Values) -> Run | None:
        """Operands of runs for these arguments; None where the plan is for others."""
        held = None
        if self.outside is not None:
            held = self.outside.look_up(owners)
            if held is None:
                return None
        numbers = self.numbers_for(values)
        return None if numbers is None else Run(self, held, numbers)

    def numbers_for(self, values: Values) -> bytes | None:
        """The numbers that kernels read, of a run's floats; None where these shape the plan."""
        for place, bits in self.read.items():
            if _bits(values[place]) != bits:
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
        at = -1 if self.outside is None else self.outside.differing(owners)
        if at >= 0:
            return self.texts[at]
        names = [name for one in self.arguments for name in one.numbers]
        read = [place for place, bits in self.read.items() if _bits(values[place]) != bits]
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
        given = self.flat_outputs(out)
        if takes_outputs(self.executor, given):
            return self.executor
        found = [arrays.as_ndarray(one, "out") for one in given]
        key = tuple([(one.shape, one.strides, one.flags.writeable) for one in found])
        with self._lock.here():
            if key not in self._others:
                if len(self._others) >= MOST_LAYOUTS:
                    self._others.pop(next(iter(self._others)))
                self._others[key] = executor(self._laid_out(found))
            return self._others[key]

    def _laid_out(self, outs: Sequence[np.ndarray]) -> Traced:
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
            one, other = (arrays.as_ndarray(outs[place], "out") for place in (first, second))
            if np.shares_memory(one, other):
                raise invalid(
                    f"{self.name}: outputs {first} and {second} of out share memory; each needs its own"
                )


MOST_LAYOUTS = 16  # of results, for which a trace has plans


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


@dataclass(frozen=True, slots=True)
class Request:
    """A call's arguments, taken apart: the form, and what is in the places of its leaves."""

    form: Any
    headers: Headers
    owners: Sequence[Any]
    values: Values
    integers: Integers | None = None

    @property
    def inputs(self) -> Sequence[np.ndarray]:
        """The arrays."""
        return self.headers.arrays


class Compiled(Generic[P, R]):
    """A function whose calls run as one plan; made by `aclnn.compile`.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> @aclnn.compile
    ... def gate(x, y):
    ...     return aclnn.silu(x) * y
    >>> x = np.float32([-1, 0, 1])
    >>> gate(x, x)
    array([0.26894143, 0.        , 0.7310586 ], dtype=float32)
    >>> gate.cache_info()["size"]
    1
    """

    __aclnn_compiled__ = True

    def __init__(self, function: Callable[P, R], options: Mapping[str, Any]):
        functools.update_wrapper(self, function)
        self._function = function
        self._options = dict(options)
        self._strategy = strategy_number(options["strategy"])
        self._name = getattr(function, "__name__", type(function).__name__)
        self._found: dict[Any, list[Traced]] = {}
        self._plain: dict[Any, Traced] = {}  # those that are found without taking calls apart
        self._of_owners: dict[Any, list[Any]] = {}  # weak references to the objects in a key
        self._planning: dict[Any, _ProcessLock] = {}
        self._hits = self._misses = 0
        self._misses_in_a_row: int | None = 0  # None once that was reported
        self._fixed_integers = FixedIntegers()
        self._latest_objects: list[Itself] = []  # held weakly: another may get the same id
        self._latest: dict[str, str] = {}  # what the latest miss was given, for that
        self._lock = _ProcessLock()

    def __repr__(self) -> str:
        count = self.cache_info()["size"]
        return f"<compiled function {self._name}: {count} plan{'' if count == 1 else 's'}>"

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Compiled[P, R]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Callable[..., R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        path = (self._function.__module__, getattr(self._function, "__qualname__", ""))
        try:
            if _attribute(*path) is self:
                return _attribute, path
        except (ImportError, AttributeError):
            pass
        return Compiled, (self._function, self._options)

    @overload
    def __call__(self, *args: P.args, **named: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, out: Any, **named: Any) -> R: ...
    @boundary
    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        headers = None if named else read_headers(args, True)
        key: Any = None
        parts = None
        if headers is not None:
            key = headers.key
            found = self._plain.get(key)
            if found is not None and (out is None or found.takes(out)):
                outside = found.outside
                held = None if outside is None else outside.look_up(())
                if outside is None or held is not None:
                    self._hits += 1
                    self._misses_in_a_row = self._misses_in_a_row and 0
                    found.last_used = next(_clock)
                    return run_on(found.executor, headers, out, None, held)
        else:
            parts = call_key(args, named)
            if parts is not None:
                key, headers, values, first = parts
                found = self._plain.get(key)
                if found is not None and found.owner() is first:
                    run = found.fits((first,), values)
                    if run is not None and (out is None or found.takes(out)):
                        self._hits += 1
                        self._misses_in_a_row = self._misses_in_a_row and 0
                        found.last_used = next(_clock)
                        return run_on(found.executor, headers, out, None, run.held, run.numbers)
        leaves: list[Any] = []
        numbers: list[float] = []
        owners: list[Any] = []
        integers = Integers(self._fixed_integers)
        form = self._form(args, named, leaves, numbers, owners, integers)
        if any(isinstance(one, TracedArray) for one in leaves):
            return self._inline(args, named, out)
        inputs = leaves
        if not all(type(one) is np.ndarray for one in leaves):
            if any(map(arrays.is_dask, leaves)):
                return array_kinds.function("dask", "lift")(self)(*args, out=out, **named)
            inputs = [arrays.readable(arrays.as_ndarray(x, "argument"), "argument") for x in leaves]
        if headers is None or inputs is not leaves or not _are_same(headers.arrays, leaves):
            headers = read_headers(inputs)
        try:
            run = self._run_for(Request(form, headers, owners, numbers, integers))
        except IntegersReadError:
            return self(*args, out=out, **named)
        traced = run.traced
        if key is not None and (type(key) is bytes or _is_in_order(parts, leaves, numbers, owners)):
            self._keep_plain(traced, key, owners)
        kind = _kind(leaves) if inputs is not leaves else None
        executor = traced.executor if out is None else traced.executor_for(out, self._unbound)
        return run_on(executor, headers, out, kind, run.held, run.numbers)

    @overload
    def executor(self, *args: P.args, **named: P.kwargs) -> aclOpExecutor: ...
    @overload
    def executor(self, *args: Any, out: Any, **named: Any) -> aclOpExecutor: ...
    @boundary
    def executor(self, *args: Any, out: Any = None, **named: Any) -> aclOpExecutor:
        """An executor of the plan for these arguments, bound to them.

        Parameters
        ----------
        *args, **named
            As for a call.
        out : array or nesting of arrays, optional
            Where results go, nested as what the function returns; by default each run makes its own.

        Returns
        -------
        aclOpExecutor
            Repeatable, with graph, passes, plan, schedule and profile.
        """
        self._refuse_missing_object(args, named)
        leaves: list[Any] = []
        request = self._request(args, self._with_floats(args, named), leaves)
        try:
            run = self._run_for(request)
        except IntegersReadError:
            return self.executor(*args, out=out, **named)
        traced, given = run.traced, None
        if out is not None:
            given = traced.flat_outputs(out)
            if not takes_outputs(traced.executor, given):
                found = [arrays.as_ndarray(one, "out") for one in given]
                traced = traced._laid_out(found)
        return self._executor(traced, run, request, given, _kind(leaves))

    @boundary
    def warm_up(self, *args: Any, background: bool = False, **named: Any) -> Future[None]:
        """Plan for arguments like these ahead of the first call; nothing runs.

        Parameters
        ----------
        *args, **named
            As for a call. Of arrays only the descriptions count.
        background : bool
            Plan on a thread of its own, which lets others run, and return at once.

        Returns
        -------
        concurrent.futures.Future
            Done when the plan is there; `result` raises what a call would have raised.

        Examples
        --------
        >>> import numpy as np
        >>> import aclnn
        >>> @aclnn.compile
        ... def double(x):
        ...     return x * 2
        >>> double.warm_up(np.zeros(4, np.float32), background=True).result()
        >>> double.cache_info()["size"]
        1
        """
        made: Future[None] = Future()
        limit = limit_of_thread()

        def plan() -> None:
            try:
                with num_threads(limit) if limit else contextlib.nullcontext():
                    self._plan_for(args, named)
            except BaseException as error:
                made.set_exception(error)
            else:
                made.set_result(None)

        if background:
            threading.Thread(target=plan, name=f"aclnn plans {self._name}", daemon=True).start()
        else:
            self._plan_for(args, named)
            made.set_result(None)
        return made

    def _plan_for(self, args: Any, named: Any) -> None:
        try:
            self._run_for(self._request(args, named, []))
        except IntegersReadError:
            self._plan_for(args, named)

    def cache_info(self) -> dict[str, int]:
        """Hits, misses, size and limit of the function's cache of plans."""
        return {
            "hits": self._hits,
            "misses": self._misses,
            "size": sum(map(len, list(self._found.values()))),
            "limit": current_settings()["cache_limit"],
        }

    def workspace_sizes(self) -> list[int]:
        """The bytes of workspace that each plan in the cache needs."""
        return [one.executor.workspace_size for many in list(self._found.values()) for one in many]

    def executor_of(self, *args: Any) -> aclOpExecutor:
        """The executor that calls with these arguments run: it is bound to none of them."""
        try:
            return self._run_for(self._request(args, {}, [])).traced.executor
        except IntegersReadError:
            return self.executor_of(*args)

    def expect_many(self) -> None:
        """Let calls differ as they will: nobody is warned of plans that are made each time."""
        self._misses_in_a_row = None

    def clear_cache(self) -> None:
        """Forget all plans, and packed operands with them."""
        with self._lock.here():
            self._found.clear()
            self._plain.clear()
            self._of_owners.clear()
            self._hits = self._misses = 0
            self._misses_in_a_row = self._misses_in_a_row and 0

    # --- Looking up ---------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        settings = current_settings()
        if self._options["threads"] is not None:
            settings["threads"] = settings["planned_threads"] = self._options["threads"]
        settings["strategy"] = self._strategy
        settings["materialize"] = self._options["materialize"]
        return settings

    def _form(
        self,
        args: Any,
        named: Any,
        leaves: list[Any],
        numbers: list[float],
        owners: list[Any],
        integers: Integers,
    ) -> Any:
        """The form of a call's arguments; its arrays, floats and other objects go into the lists."""
        if named:
            named = {name: named[name] for name in self._signature[0] if name in named} | named
        whole = taken_apart(args, leaves, numbers, owners, integers)
        rest = taken_apart(named, leaves, numbers, owners, integers) if named else None
        if integers.places and not all(type(one) is np.ndarray for one in leaves):
            for one in (leaves, numbers, owners, integers.places):  # of other libraries' arrays
                one.clear()
            whole = taken_apart(args, leaves, numbers, owners)
            rest = taken_apart(named, leaves, numbers, owners) if named else None
        return whole, rest

    def _request(self, args: Any, named: Any, leaves: list[Any]) -> Request:
        numbers: list[float] = []
        owners: list[Any] = []
        integers = Integers(self._fixed_integers)
        form = self._form(args, named, leaves, numbers, owners, integers)
        headers = read_headers([arrays.as_ndarray(one, "argument") for one in leaves])
        return Request(form, headers, owners, numbers, integers)

    @functools.cached_property
    def _signature(self) -> tuple[list[str], int, str | None]:
        """The names of the function's parameters, how many go by position, and of the others."""
        try:
            found = inspect.signature(self._function).parameters.values()
        except (TypeError, ValueError):  # the call itself says what is wrong
            return [], 0, None
        plain = [one.name for one in found if one.kind in _BY_POSITION]
        rest = [one.name for one in found if one.kind is inspect.Parameter.VAR_POSITIONAL]
        return [one.name for one in found], len(plain), next(iter(rest), None)

    def _refuse_missing_object(self, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Say how executors of methods are made: `model.run.executor` does not know the model."""
        path = getattr(self._function, "__qualname__", "")
        owner = path.rpartition(".")[0]
        if not owner or owner.endswith("<locals>"):
            return
        try:
            signature = inspect.signature(self._function)
        except (TypeError, ValueError):
            return
        if not _takes(signature, args, named) and _takes(signature, (None, *args), named):
            call = f"{'.'.join(path.split('.')[-2:])}.executor"
            raise wrong_kind(
                f"{self._name}: the executor of a method takes the object first: {call}(object, ...)"
            )

    @functools.cached_property
    def _default_floats(self) -> dict[str, float]:
        """Float defaults of parameters that can be given by name."""
        try:
            found = inspect.signature(self._function).parameters.values()
        except (TypeError, ValueError):
            return {}
        return {
            one.name: one.default
            for one in found
            if type(one.default) is float and one.kind is not inspect.Parameter.POSITIONAL_ONLY
        }

    def _with_floats(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, with floats that are left to their defaults: runs may change them."""
        names, count, _ = self._signature
        by_position = names[: min(len(args), count)]
        rest = {n: x for n, x in self._default_floats.items() if n not in by_position}
        return {**rest, **named}

    def _run_for(self, request: Request) -> Run:
        """A trace for a call, made if there is none yet: once, however many threads ask for it."""
        key = request.form, request.headers.key
        run = self._known(key, request)
        if run is not None:
            return run
        with self._lock.here():
            own = self._planning.setdefault(key, _ProcessLock()).here()
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
                self._hits += 1
                self._misses_in_a_row = self._misses_in_a_row and 0
                traced.last_used = next(_clock)
                return run
        return None

    def _planned(self, key: Any, request: Request) -> Run:
        """A new trace, which goes into the cache."""
        self._misses += 1
        made, held = self._trace(request)
        self._tell_of_misses(key, request)
        run = made.fits(request.owners, request.values)
        if run is None:  # the function, or another thread, has changed what is outside meanwhile
            alone = copy.copy(made)
            alone.outside, alone.held = None, held
            alone.executor = self._unbound(alone)
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
            while sum(map(len, list(self._found.values()))) > limit:
                self._forget_oldest()

    def _forget_oldest(self) -> None:
        every = [(one.last_used, key) for key, many in list(self._found.items()) for one in many]
        last, key = min(every, key=lambda pair: pair[0])
        many = self._found.get(key, [])
        for one in many:
            if one.last_used == last and one.plain_key is not None:
                self._plain.pop(one.plain_key, None)
        left = [one for one in many if one.last_used != last]
        if left:
            self._found[key] = left
        else:
            self._forget(key)

    def _forget(self, key: Any) -> None:
        for one in self._found.pop(key, ()):
            self._plain.pop(one.plain_key, None)
        self._of_owners.pop(key, None)

    def _watched(self, key: Any, owners: Sequence[Any]) -> list[Any]:
        """References by which the plans for an object end with it."""
        own = weakref.ref(self)

        def ended(_: Any) -> None:  # at any moment, in any thread: takes no lock
            compiled = own()
            if compiled is not None:
                compiled._forget(key)

        found = []
        for one in owners:
            with contextlib.suppress(TypeError):
                found.append(weakref.ref(one, ended))
        return found

    def _keep_plain(self, traced: Traced, key: Any, owners: Sequence[Any]) -> None:
        """Let a trace that is in the cache be found without taking a call apart."""
        if traced.plain_key == key and self._plain.get(key) is traced:
            return
        with self._lock.here(), contextlib.suppress(TypeError):  # of what cannot be held weakly
            if any(traced is one for many in list(self._found.values()) for one in many):
                traced.owner = weakref.ref(owners[0]) if owners else _nobody
                traced.plain_key = key
                self._plain[key] = traced

    def _tell_of_misses(self, key: Any, request: Request) -> None:
        """Warn once where every call is planned anew."""
        if self._misses_in_a_row is None or not current_settings()["cache_limit"]:
            return
        objects = [Itself(one) for one in request.owners if not isinstance(one, FunctionType)]
        if objects != self._latest_objects:  # which have plans of their own
            self._latest_objects, self._misses_in_a_row = objects, 0
        self._misses_in_a_row += 1
        before, self._latest = self._latest, dict(self._told(request))
        if self._misses_in_a_row < MISSES_IN_A_ROW:
            return
        self._misses_in_a_row = None
        what = self._changed(key, request, before)
        warnings.warn(
            f"{self._name} was planned {MISSES_IN_A_ROW} times in a row, each time for another "
            f"description: {what}",
            RuntimeWarning,
            stacklevel=_frames_to_caller(),
        )

    def _changed(self, key: Any, now: Request, before: Mapping[str, str]) -> str:
        """Differences between two calls, for people."""
        for traced in self._found.get(key, ()):
            return f"{traced.differing(now.owners, now.values)} changed"
        found = [
            f"{name} was {before[name]}, is {text}" if name in before else f"{name} is {text}"
            for name, text in self._latest.items()
            if before.get(name) != text
        ]
        return ", ".join(found) or "the memory that arguments share, or a setting, changed"

    def _told(self, request: Request) -> Iterator[tuple[str, str]]:
        """Descriptions of a call's arguments, by their names."""
        inputs = iter(request.inputs)
        owners = [f"<{type(one).__name__} at {id(one):#x}>" for one in request.owners]
        for one in self._arguments(request.form):
            for name in one.arrays:
                yield name, describe(next(inputs))
            if one.form is not ARRAY and one.form is not NUMBER:
                text = shown(one.form[-1])
                yield one.name, owners[0] if isinstance(one.form[-1], Itself) and owners else text

    def _arguments(self, form: Any) -> list[Argument]:
        names, count, rest = self._signature
        return arguments_of(form, names[:count], rest)

    @calls_back
    def _inline(self, args: Any, named: Any, out: Any) -> Any:
        """Record a call among traced arrays, which becomes part of their trace."""
        result = self._function(*args, **named)
        if out is None:
            return result
        found: list[Any] = []
        form = taken_apart(result, found)
        targets: list[Any] = []
        if not mapped(form, out, targets.append):
            raise invalid(f"{self._name}: out is not nested as what the function returns")
        for target, one in zip(targets, found, strict=True):
            target.assign(one)
        return out

    # --- Tracing ------------------------------------------------------------------------------------

    def _trace(self, request: Request) -> tuple[Traced, list[Held]]:
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
        traced.read = {place: _bits(request.values[place]) for place in found.numbers.read}
        traced.conditions = found.numbers.conditions
        traced.outside, traced.texts = trace.outside(request.owners)
        traced.summary = _place(self._function)
        traced.arguments = self._arguments(request.form)
        self._add_outputs(traced, trace, found.result)
        trace.end()
        if traced.outside is not None:
            traced.held = []
        traced.fixed = self._fixed_inputs(traced, len(inputs))
        traced.executor = self._unbound(traced)
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
        reach = self._reach(request, self._arguments(request.form))
        if reach is not None and (reach.asks_for_types or reach.asks_for_integers):
            self._fixed_integers.fix(request.integers)
            raise IntegersReadError
        try:
            return self._run_on_stand_ins(request, shared)
        except Exception:
            self._fixed_integers.fix(request.integers)
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
        arguments = self._arguments(request.form)
        reach = self._reach(request, arguments)
        if reach is not None and reach.asks_for_types:  # that of a stand-in is not float
            numbers.read.update(range(len(request.values)))
            values = request.values
        trace = Trace(self._name, TracedArray, self._function, reach)
        memories: list[Memory] = []
        names = [name for one in arguments for name in one.arrays]
        for place, (name, spec) in enumerate(zip(names, request.headers.specs(), strict=True)):
            memory = trace.argument(name, spec)
            memories.append(memory if shared[place] == place else memories[shared[place]])
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
            _add_line(error, self._function)
            raise
        finally:
            if request.integers is not None:
                request.integers.read = trace.integers_read
                request.integers.positions = trace.positions

    def _reach(self, request: Request, arguments: Sequence[Argument]) -> Reach | None:
        """Objects that the function reaches, unless nothing of that is ever bound to something else."""
        if getattr(self._function, "__aclnn_constant__", False):
            return None
        names = [one.name for one in arguments for _ in owners_in(one.form)]
        return Reach(self._function, request.owners, names)

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
        recording, names = trace.recording, names_of(traced.result, "out")
        ties = []
        for name, leaf in zip(names, leaves, strict=True):
            recording.output(_apart(name, recording), leaf.value_in(trace))
            ties.append(-1)
        for place, memory in enumerate(trace.inputs):
            if memory.version == 0 or trace.is_own(place):
                continue
            value = recording.inputs[place]
            spec = recording.spec(value)
            if not spec.writable:
                raise invalid(f"{self._name}: {memory.name} is read-only, but is written in place")
            recording.output(f"{memory.name} afterwards", memory.value, spec, value)
            ties.append(place)
        traced.ties = tuple(ties) if any(tie >= 0 for tie in ties) else None

    def _fixed_inputs(self, traced: Traced, count: int) -> frozenset[str]:
        """Names of the inputs that the option `packed` promises not to change; `count` are arguments."""
        wanted, recording = self._options["packed"], traced.recording
        if wanted is False:
            return frozenset()
        written = {output.replaces for output in recording.outputs} - {None}
        pairs = list(zip(recording.input_names, recording.inputs, strict=True))
        if wanted is True:
            return frozenset([name for name, value in pairs[count:] if value not in written])
        found: set[str] = set()
        for name in wanted:
            parts = [one.arrays for one in traced.arguments if one.name == name]
            named = [*parts[0]] if parts else []
            named += [one for one in recording.input_names[count:] if one == name]
            if not named and name not in self._signature[0]:
                known = dict.fromkeys([*self._signature[0], *recording.input_names])
                raise invalid(
                    f"{self._name}: packed names {shown(name)}, which is no argument and no array that "
                    f"the function reaches: these are {', '.join(known)}{did_you_mean(name, known)}"
                )
            found.update(named)
        for name, value in pairs:
            if name in found and value in written:
                raise invalid(f"{self._name}: packed names {name}, which is written in place")
        return frozenset(found)

    def _unbound(self, traced: Traced) -> aclOpExecutor:
        """An executor that is bound to nothing that the caller may change."""
        count = len(traced.recording.inputs) - len(traced.held)
        held = [one.array for one in traced.held]
        return self._joined(traced, [*[None] * count, *held], None, None, b"")

    def _executor(
        self,
        traced: Traced,
        run: Run,
        request: Request,
        outputs: Sequence[Any] | None,
        kind: Any,
        bound: bool = True,
    ) -> aclOpExecutor:
        """An executor for the user, bound to the arguments of a call."""
        held = [one.array for one in traced.held]
        if traced.outside is not None:
            specs = map(traced.recording.spec, traced.recording.inputs[len(request.inputs) :])
            found = [] if run.held is None else run.held.arrays
            triples = zip(found, traced.outside.offsets, specs, strict=True)
            held = [_seen_at(*one) for one in triples]
        inputs = request.inputs if bound else [None] * len(request.inputs)
        given = Given(self._name, traced.arguments, request.values, traced.numbers_for)
        description = functools.partial(_description, self, request, given)
        return self._joined(
            traced, [*inputs, *held], outputs, kind, run.numbers, description, given
        )

    def _joined(
        self,
        traced: Traced,
        inputs: Sequence[Any],
        outputs: Sequence[Any] | None,
        kind: Any,
        numbers: bytes,
        description: Any = None,
        takes: Any = None,
    ) -> aclOpExecutor:
        recording = traced.recording
        own = [o for o in recording.outputs if o.replaces is None]
        given = [None] * len(own) if outputs is None else list(outputs)
        targets = [None if x is None else arrays.as_ndarray(x, "out") for x in given]
        tied = [None] * (len(recording.outputs) - len(own))
        return join_executor(
            traced.plan(),
            traced.plan,
            self._name,
            [*inputs, *targets, *tied],
            numbers,
            None if traced.result is ARRAY and traced.ties is None else traced,
            traced.ties,
            kind,
            [*given, *tied],
            description,
            takes,
        )


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


def _are_same(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether both are the same objects in the same order."""
    return len(found) == len(wanted) and all(a is b for a, b in zip(found, wanted, strict=True))


def _is_in_order(
    parts: Any, leaves: Sequence[Any], numbers: Sequence[Any], owners: Sequence[Any]
) -> bool:
    """Whether a quick look at a call found what taking it apart does."""
    _, headers, floats, first = parts
    same = _are_same([*headers.arrays, *floats], [*leaves, *numbers])
    return same and (not owners if first is None else len(owners) == 1 and owners[0] is first)


def _takes(signature: inspect.Signature, args: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether a function can be called like that."""
    try:
        signature.bind(*args, **named)
    except TypeError:
        return False
    return True


MISSES_IN_A_ROW = 10
LONGEST_WAIT = 10.0  # seconds for another thread's plan, which may wait for one of this
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _frames_to_caller() -> int:
    """Number of frames between a warning and the line outside of this package."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, count = frame.f_back, count + 1
    return count


def _packed_option(packed: Any) -> bool | tuple[str, ...]:
    """The option `packed`: True or False, or names."""
    if isinstance(packed, (bool, np.bool_)):
        return bool(packed)
    names = (packed,) if isinstance(packed, str) else packed
    found = tuple(names) if isinstance(names, Iterable) else (None,)
    if not all(isinstance(name, str) for name in found):
        raise invalid(f"packed is {shown(packed)}, must be True, False or names of arguments")
    return found


def _differ(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether arrays have other elements, bit by bit."""
    return one.shape != other.shape or one.tobytes() != other.tobytes()


class _Memory:
    """Memory that NumPy makes an array of, as long as another array owns it."""

    def __init__(self, owner: Any, interface: dict[str, Any]):
        self.owner = owner
        self.__array_interface__ = interface


def _seen_at(given: Any, offset: int, spec: TensorSpec) -> np.ndarray:
    """An array of a description, from a byte of another one on."""
    base = arrays.as_ndarray(given, "array")
    wanted = described(spec)
    if offset == 0 and (base.shape, base.strides, base.dtype) == (
        wanted.shape, wanted.strides, wanted.dtype,
    ):  # fmt: skip
        return base
    interface = {
        "data": (base.ctypes.data + offset, not base.flags.writeable),
        "shape": wanted.shape,
        "strides": wanted.strides,
        "typestr": f"|V{wanted.dtype.itemsize}",
        "version": 3,
    }
    return np.asarray(_Memory(base, interface)).view(wanted.dtype)


def _apart(name: str, recording: Recording) -> str:
    """A name that no input has."""
    while name in recording.input_names:
        name += "_"
    return name


def _shared(inputs: Sequence[np.ndarray]) -> list[int]:
    """For each array the first one that is the same memory, seen alike."""
    first: dict[Any, int] = {}
    keys = [(a.ctypes.data, a.shape, a.strides, a.dtype.str) for a in inputs]
    return [first.setdefault(key, place) for place, key in enumerate(keys)]


def _kind(leaves: Sequence[Any]) -> Any:
    """The library whose kind of array results get; None where all are NumPy's."""
    return arrays.library_of(next((x for x in leaves if not isinstance(x, np.ndarray)), None))


def _add_line(error: AclnnError, function: Callable[..., Any]) -> None:
    """Have the error of a single call name the line of the function that made it."""
    where = _line_in(error, function)
    if where and where not in str(error):
        error.message = f"{error}\n  {where}"
        error.args = (error.message,)


def _place(function: Callable[..., Any]) -> str:
    """Place of a function, for people."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f"Compiled from {code.co_filename}:{code.co_firstlineno}."


def _line_in(error: BaseException, function: Callable[..., Any]) -> str:
    """The line of the function, or of what it called, from which an error came."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    own = code.co_filename if code is not None else None
    found = None
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(PACKAGE) or file == own:
            inside = trace.tb_frame.f_code is code
            if inside or (found is not None and file == own):
                found = trace
        trace = trace.tb_next
    if found is None:
        return ""
    file, line = found.tb_frame.f_code.co_filename, found.tb_lineno
    text = linecache.getline(file, line, found.tb_frame.f_globals).strip()
    return f"in {found.tb_frame.f_code.co_name}, {file}:{line}: {text}".removesuffix(": ")


# --- Pickles --------------------------------------------------------------------------------------


def _attribute(module: str, path: str) -> Any:
    """Object that an importable function is called by."""
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _description(
    compiled: Compiled, request: Request, given: Given, executor: aclOpExecutor
) -> tuple[Any, Any]:
    """Description that pickles hold of an executor: the function, and its arguments' descriptions."""
    specs = [described(spec) for spec in request.headers.specs()]
    return _planned_anew, (compiled, request.form, tuple(specs), given.values)


def described(spec: TensorSpec) -> ArraySpec:
    """A description whose strides count bytes."""
    kind = dtypes.NUMPY[spec.dtype]
    strides = tuple([stride * kind.itemsize for stride in spec.strides])
    return ArraySpec(spec.shape, strides, kind)


def _planned_anew(
    compiled: Compiled, form: Any, specs: Sequence[ArraySpec], values: Values
) -> aclOpExecutor:
    """An executor for a description: its inputs are to be given to a run."""
    inputs = [spec.placeholder() for spec in specs]
    owners = [one for part in form for one in owners_in(part)]
    request = Request(form, read_headers(inputs), owners, values)
    run = compiled._run_for(request)
    return compiled._executor(run.traced, run, request, None, None, bound=False)


# --- The decorator --------------------------------------------------------------------------------


@overload
def compile(
    function: Callable[P, R],
    *,
    threads: int | None = None,
    strategy: str = "default",
    materialize: bool = False,
    packed: bool | str | Iterable[str] = False,
) -> Compiled[P, R]: ...
@overload
def compile(
    *,
    threads: int | None = None,
    strategy: str = "default",
    materialize: bool = False,
    packed: bool | str | Iterable[str] = False,
) -> Callable[[Callable[P, R]], Compiled[P, R]]: ...
@boundary
def compile(
    function: Callable[..., Any] | None = None,
    *,
    threads: int | None = None,
    strategy: str = "default",
    materialize: bool = False,
    packed: bool | str | Iterable[str] = False,
) -> Any:
    """Compile a function of arrays into one plan.

    The function is called once for each description of its arguments, with traced arrays in their
    place. What it does with them is recorded: functional forms, Python's operators, NumPy's
    functions that have an operator for a counterpart, and views. The calls become one op-graph,
    which is planned as a whole: chains share loops, intermediates share a workspace. Results are
    bitwise identical to those of single calls; those of operators and of NumPy's functions have
    NumPy's dtypes, and those of sums, differences, products, quotients and comparisons its bits.
    What would differ is refused with the line, such as ``/`` of integers. bfloat16 stays bfloat16
    with numbers and in products.

    Parameters
    ----------
    function : callable, optional
        The function; without it, `compile` returns a decorator with the options.
    threads : int, optional
        Number of threads that a run may use, and that the plan has scratch for.  By default, runs use
        those of `set_num_threads`, and plans, the same on every machine, have scratch for one, or for
        as many as `num_threads` limits runs to; a run borrows that of further threads.
    strategy : {'default', 'bucket', 'naive', 'exact'}
        The planning strategy.
    materialize : bool
        Whether to store every intermediate whole, for inspection.
    packed : bool, str or iterable of str
        Arrays whose elements do not change: names of arguments, or of what the function reaches, as
        ``executor(...).inputs`` shows them; True for all but its arguments. Where
        one of them is the right operand of a matrix product, it is packed once for each array, in
        memory of its own, which `plan` shows, as long as the plan is kept. Results have the same
        bits.

    Returns
    -------
    Compiled
        The function. Beside the arguments it takes ``out=``, nested as what it returns;
        ``executor(...)`` gives an aclOpExecutor, ``cache_info()`` and ``clear_cache()`` are about
        its plans.

    Notes
    -----
    Arrays are traced, also those in tuples, lists, dicts and dataclasses. Python floats are numbers
    of the run: other values need no other plan, unless a comparison or a rule comes out otherwise
    (``if t > 1``, the sign), the function asks for the value (``math.exp(t)``), or calls ``type``.
    Anything else is part of
    the description: plain values by their bits, other objects as themselves, whatever they compare
    equal to; plans for an object end with it. An object that cannot be held weakly lives as long as
    its plans are in the cache, which is bounded.

    Arrays that the function reaches otherwise are inputs too: through globals, what it closes over,
    and attributes and elements of objects, as far as names in its code lead. Each call looks them up
    again. Elements may have changed, another array of the same description may be there; plain
    values and functions that have changed make another plan. What the function changes itself
    outside is not looked at.

    Arrays that the function makes are constants; to tell them, it is called a second time. What it
    computes of arrays outside without a traced one, it computes while it is traced: such an array,
    if it is no input itself, is compared with its elements at each call where it is reached by a
    name or has no more than 4 KiB. An array from outside that no name leads to is refused, and so is
    one that has other elements each time.

    Packed arrays are looked up by the memory that a call gives, of which a plan keeps up to 16 for
    each operand; an executor packs again what it is given or bound to. After a change in place,
    ``clear_cache()`` of the function, or ``rebind`` of an executor, forgets what was packed. Products
    that are better computed as their transpose, operands of other kernels, and plans for outputs
    that overlap inputs read arrays as they are.

    A method is compiled once for all objects: ``Model.run.executor(model, x)`` takes the object first.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> @aclnn.compile
    ... def mlp(x, w1, b1, w2):
    ...     h = aclnn.gelu(x @ w1 + b1)
    ...     return aclnn.softmax(h @ w2, dim=-1)
    >>> x, w1, b1, w2 = (np.ones(shape, np.float32) for shape in ((2, 3), (3, 4), 4, (4, 2)))
    >>> mlp(x, w1, b1, w2)
    array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    >>> mlp.executor(x, w1, b1, w2).run().shape
    (2, 2)
    """
    count = None if threads is None else as_int(threads)
    if threads is not None and (count is None or not 1 <= count <= MAX_THREADS):
        raise invalid(f"threads is {shown(threads)}, must be an int from 1 to {MAX_THREADS}")
    strategy_number(strategy)
    whole = as_truth("materialize", materialize)
    names = _packed_option(packed)
    if function is None:
        return functools.partial(
            compile, threads=count, strategy=strategy, materialize=whole, packed=names
        )
    if not callable(function):
        raise wrong_kind(f"{shown(function)} cannot be compiled: it is no function")
    options = {"threads": count, "strategy": strategy, "materialize": whole, "packed": names}
    return Compiled(function, options)
