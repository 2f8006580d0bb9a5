"""Compiled functions: traced and planned once for each description, then run."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import linecache
import threading
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl._frames import boundary, calls_back
from aclnn.acl.arguments import as_int, as_truth, shown
from aclnn.acl.errors import AclnnError, invalid, wrong_kind
from aclnn.compiler._compiled_call import CompiledCall, current_settings
from aclnn.compiler.joining import Recording
from aclnn.compiler.phase_one import SAME
from aclnn.compiler.settings import strategy_number
from aclnn.execution import arrays
from aclnn.execution._executor import aclOpExecutor, join_executor, run_on
from aclnn.execution._operand import array_key
from aclnn.execution.specs import ArraySpec
from aclnn.graph.runtime.abi import MAX_THREADS
from aclnn.operators.checks import TensorSpec
from aclnn.tracing.array import TracedArray
from aclnn.tracing.nesting import ARRAY, mapped, names_of, put_together, taken_apart
from aclnn.tracing.trace import PACKAGE, Memory, Trace, spec_of

P = ParamSpec("P")
R = TypeVar("R")

_clock = itertools.count()


class Traced:
    """What a trace found out about a function for one description: its recording, and its plans.

    Attributes
    ----------
    recording : Recording
    held : list of array
        What the function closes over.
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
        self.held: list[np.ndarray] = []
        self.result: Any = None
        self.input_form: Any = None
        self.ties: tuple[int, ...] | None = None
        self.shared = shared
        self.last_used = next(_clock)
        self.executor: aclOpExecutor
        self.plain_key: bytes | None = None
        self._plans: dict[Any, CompiledCall] = {}

    def plan(self, overlaps: Sequence[Sequence[int]] | None = None) -> CompiledCall:
        """The plan for inputs that lie to outputs in some way."""
        key = None if overlaps is None else tuple(map(tuple, overlaps))
        if key is not None:
            self._refuse_overlaps(key)
        found = self._plans.get(key)
        if found is None:
            found = self.recording.plan(overlaps, self.settings, self.summary)
            found.own_threads = self.threads
            self._plans[key] = found
        return found

    def _refuse_overlaps(self, rows: tuple[tuple[int, ...], ...]) -> None:
        """What the function writes itself must not share memory with what it reads otherwise."""
        for tie, row in zip(self.ties or (), rows, strict=False):
            for place, lies in enumerate(row):
                alias = lies == SAME and self.shared_with(place) == self.shared_with(tie)
                if tie >= 0 and lies and place != tie and not alias:
                    names = self.recording.input_names
                    raise invalid(
                        f"{self.name}: {names[tie]} is written in place and shares memory with "
                        f"{names[place]}, which may be read afterwards"
                    )

    def shared_with(self, place: int) -> int:
        """The first argument that has the same memory."""
        return self.shared[place] if place < len(self.shared) else place

    # What executors ask of how outputs are nested.

    def built(self, results: Sequence[Any]) -> Any:
        """What the function returns, with the outputs of a run."""
        ties = self.ties
        own = results if ties is None else [r for r, t in zip(results, ties, strict=True) if t < 0]
        return put_together(self.result, iter(own))

    def flat_outputs(self, out: Any) -> list[Any]:
        """The arrays of `out`, which is nested as what the function returns."""
        found: list[Any] = []
        if not mapped(self.result, out, found.append):
            raise invalid(f"{self.name}: out is not nested as what the function returns")
        return found

    def flat_inputs(self, given: Sequence[Any]) -> list[Any]:
        """The arrays of positional arguments."""
        found: list[Any] = []
        taken_apart(tuple(given), found)
        return found


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

    def __init__(self, function: Callable[P, R], options: Mapping[str, Any]):
        functools.update_wrapper(self, function)
        self._function = function
        self._options = dict(options)
        self._strategy = strategy_number(options["strategy"])
        self._name = getattr(function, "__name__", type(function).__name__)
        self._found: dict[Any, Traced] = {}
        self._plain: dict[bytes, Traced] = {}  # those of nothing but arrays, by their key
        self._hits = self._misses = 0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        count = len(self._found)
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
        key = None if named else array_key(args, True)
        if key is not None:
            found = self._plain.get(key)
            if found is not None:
                self._hits += 1
                found.last_used = next(_clock)
                return run_on(found.executor, args, out, None)
        leaves: list[Any] = []
        form = (taken_apart(args, leaves), taken_apart(named, leaves) if named else None)
        if any(isinstance(one, TracedArray) for one in leaves):
            return self._inline(args, named, out)
        inputs = leaves
        if not all(type(one) is np.ndarray for one in leaves):
            if any(map(arrays.is_dask, leaves)):
                return importlib.import_module("aclnn.dask").lift(self)(*args, out=out, **named)
            inputs = [arrays.readable(arrays.as_ndarray(x, "argument"), "argument") for x in leaves]
        traced = self._traced(form, inputs)
        if key is not None:
            self._keep_plain(traced, key)
        kind = _kind(leaves) if inputs is not leaves else None
        return run_on(traced.executor, inputs, out, kind)

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
        leaves: list[Any] = []
        form = (taken_apart(args, leaves), taken_apart(named, leaves) if named else None)
        inputs = [arrays.as_ndarray(x, "argument") for x in leaves]
        traced = self._traced(form, inputs)
        given = None if out is None else traced.flat_outputs(out)
        return self._executor(traced, inputs, given, _kind(leaves), form)

    def cache_info(self) -> dict[str, int]:
        """Hits, misses, size and limit of the function's cache of plans."""
        return {
            "hits": self._hits,
            "misses": self._misses,
            "size": len(self._found),
            "limit": current_settings()["cache_limit"],
        }

    def workspace_sizes(self) -> list[int]:
        """The bytes of workspace that each plan in the cache needs."""
        return [traced.executor.workspace_size for traced in self._found.values()]

    def executor_of(self, *args: Any) -> aclOpExecutor:
        """The executor that calls with these arguments run: it is bound to none of them."""
        leaves: list[Any] = []
        form = (taken_apart(args, leaves), None)
        return self._traced(form, [arrays.as_ndarray(x, "argument") for x in leaves]).executor

    def clear_cache(self) -> None:
        """Forget all plans, and the arrays that the function closes over."""
        with self._lock:
            self._found.clear()
            self._plain.clear()
            self._hits = self._misses = 0

    # --- Looking up ---------------------------------------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        settings = current_settings()
        if self._options["threads"] is not None:
            settings["threads"] = self._options["threads"]
        settings["strategy"] = self._strategy
        settings["materialize"] = self._options["materialize"]
        return settings

    def _traced(self, form: Any, inputs: Sequence[np.ndarray]) -> Traced:
        settings = current_settings()
        key = form, array_key(inputs)
        found = self._found.get(key)
        if found is not None:
            self._hits += 1
            found.last_used = next(_clock)
            return found
        self._misses += 1
        found = self._trace(form, inputs)
        limit = settings["cache_limit"]
        if limit == 0:
            return found
        with self._lock:
            found = self._found.setdefault(key, found)
            while len(self._found) > limit:
                oldest = self._found.pop(min(self._found, key=lambda k: self._found[k].last_used))
                if oldest.plain_key is not None:
                    self._plain.pop(oldest.plain_key, None)
        return found

    def _keep_plain(self, traced: Traced, key: bytes) -> None:
        """Let a trace that is in the cache be found by its arrays alone."""
        with self._lock:
            if any(traced is one for one in self._found.values()):
                traced.plain_key = key
                self._plain[key] = traced

    @calls_back
    def _inline(self, args: Any, named: Any, out: Any) -> Any:
        """What a call among traced arrays does: it becomes part of their trace."""
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

    def _trace(self, form: Any, inputs: Sequence[np.ndarray]) -> Traced:
        alone = list(range(len(inputs)))
        trace, result = self._run_traced(form, inputs, alone)
        shared = _shared(inputs)
        if shared != alone and any(memory.version for memory in trace.inputs):
            # What is written through one argument is seen through the others.
            trace, result = self._run_traced(form, inputs, shared)
        else:
            shared = alone
        traced = Traced(self._name, self._settings(), self._options["threads"] or 0, shared)
        traced.recording, traced.held = trace.recording, trace.held
        traced.summary = _place(self._function)
        traced.input_form = form
        self._add_outputs(traced, trace, inputs, result)
        traced.executor = self._executor(traced, [None] * len(inputs), None, None, form)
        return traced

    def _run_traced(
        self, form: Any, inputs: Sequence[np.ndarray], shared: Sequence[int]
    ) -> tuple[Trace, Any]:
        """Call the function once, on arrays that stand for the arguments."""
        trace = Trace(self._name, TracedArray, self._function)
        memories: list[Memory] = []
        for place, (name, array) in enumerate(zip(self._names(form), inputs, strict=True)):
            memory = trace.argument(name, spec_of(array))
            memories.append(memory if shared[place] == place else memories[shared[place]])
        stand_ins = iter([TracedArray(memory) for memory in memories])
        args = put_together(form[0], stand_ins)
        named = put_together(form[1], stand_ins) if form[1] is not None else {}
        try:
            result = trace.run(args, named)
            leaves: list[Any] = []
            nested = taken_apart(result, leaves)
            return trace, (nested, [trace.taken(one) for one in leaves])
        except AclnnError as error:
            _add_line(error, self._function)
            raise

    def _names(self, form: Any) -> list[str]:
        """A name for each array among the arguments."""
        args, named = form
        bound: Mapping[str, Any]
        try:
            values = dict(zip(named[1], named[2], strict=True)) if named else {}
            bound = inspect.signature(self._function).bind(*args[1], **values).arguments
        except (TypeError, ValueError):  # the call itself says what is wrong
            bound = {f"arg{n}": one for n, one in enumerate(args[1])} | (values or {})
        found: dict[str, None] = {}
        for name, one in bound.items():
            for leaf in _names_in(one, name):
                while leaf in found:
                    leaf += "_"
                found[leaf] = None
        return list(found)

    def _add_outputs(
        self, traced: Traced, trace: Trace, inputs: Sequence[np.ndarray], result: Any
    ) -> None:
        """What a run leaves: what the function returns, and arguments that it wrote."""
        traced.result, leaves = result
        recording, names = trace.recording, names_of(traced.result, "out")
        ties = []
        for name, leaf in zip(names, leaves, strict=True):
            recording.output(_apart(name, recording), leaf.value_in(trace))
            ties.append(-1)
        for place, memory in enumerate(trace.inputs):
            if memory.version == 0:
                continue
            value = recording.inputs[place]
            spec = recording.spec(value)
            if not spec.writable:
                raise invalid(f"{self._name}: {memory.name} is read-only, but is written in place")
            recording.output(f"{memory.name} afterwards", memory.value, spec, value)
            ties.append(place)
        traced.ties = tuple(ties) if any(tie >= 0 for tie in ties) else None

    def _executor(
        self,
        traced: Traced,
        inputs: Sequence[Any],
        outputs: Sequence[Any] | None,
        kind: Any,
        form: Any,
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
            [*inputs, *traced.held, *targets, *tied],
            recording.numbers,
            None if traced.result is ARRAY and traced.ties is None else traced,
            traced.ties,
            kind,
            [*given, *tied],
            functools.partial(_description, self, traced, form),
        )


def _names_in(form: Any, name: str) -> list[str]:
    """The names of the arrays of an argument, of which * and ** make plain tuples and dicts."""
    if form is ARRAY or (isinstance(form, tuple) and form and isinstance(form[0], type)):
        return names_of(form, name)
    if isinstance(form, dict):
        return [leaf for key, one in form.items() for leaf in _names_in(one, key)]
    if isinstance(form, tuple):
        return [leaf for n, one in enumerate(form) for leaf in _names_in(one, f"{name}_{n}")]
    return []


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
    """Where a function is, for people."""
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
    """What an importable function is called by."""
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _description(compiled: Compiled, traced: Traced, form: Any, executor: Any) -> tuple[Any, Any]:
    """What pickles hold of an executor: the function, and what its arguments are like."""
    recording = traced.recording
    arguments = recording.inputs[: len(recording.inputs) - len(traced.held)]
    specs = [described(recording.spec(value)) for value in arguments]
    return _planned_anew, (compiled, form, tuple(specs))


def described(spec: TensorSpec) -> ArraySpec:
    """A description whose strides count bytes."""
    kind = dtypes.NUMPY[spec.dtype]
    strides = tuple([stride * kind.itemsize for stride in spec.strides])
    return ArraySpec(spec.shape, strides, kind)


def _planned_anew(compiled: Compiled, form: Any, specs: Sequence[ArraySpec]) -> aclOpExecutor:
    """An executor for a description: its inputs are to be given to a run."""
    traced = compiled._traced(form, [spec.placeholder() for spec in specs])
    return compiled._executor(traced, [None] * len(specs), None, None, form)


# --- The decorator --------------------------------------------------------------------------------


@overload
def compile(
    function: Callable[P, R],
    *,
    threads: int | None = None,
    strategy: str = "default",
    materialize: bool = False,
) -> Compiled[P, R]: ...
@overload
def compile(
    *,
    threads: int | None = None,
    strategy: str = "default",
    materialize: bool = False,
) -> Callable[[Callable[P, R]], Compiled[P, R]]: ...
@boundary
def compile(
    function: Callable[..., Any] | None = None,
    *,
    threads: int | None = None,
    strategy: str = "default",
    materialize: bool = False,
) -> Any:
    """Compile a function of arrays into one plan.

    The function is called once for each description of its arguments, with traced arrays in their
    place. What it does with them is recorded: functional forms, the operators ``+ - * / @ ** -x``,
    NumPy's functions that have an operator for a counterpart, and views. The calls become one
    op-graph, which is planned as a whole: chains share loops, intermediates share a workspace.
    Results are bitwise identical to those of single calls.

    Parameters
    ----------
    function : callable, optional
        The function; without it, `compile` returns a decorator with the options.
    threads : int, optional
        Number of threads that a run may use; default: that of `set_num_threads`.
    strategy : {'default', 'bucket', 'naive', 'exact'}
        The planning strategy.
    materialize : bool
        Whether to store every intermediate whole, for inspection.

    Returns
    -------
    Compiled
        The function. Beside the arguments it takes ``out=``, nested as what it returns;
        ``executor(...)`` gives an aclOpExecutor, ``cache_info()`` and ``clear_cache()`` are about
        its plans.

    Notes
    -----
    Arrays, and tuples, lists and dicts of them, are traced. Anything else is part of the
    description. Arrays that the function closes over stay bound: changes of their elements are
    seen at the next call, another array under their name is not. What the function computes
    without a traced array it computes once, while it is traced.

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
    if function is None:
        return functools.partial(compile, threads=count, strategy=strategy, materialize=whole)
    if not callable(function):
        raise wrong_kind(f"{shown(function)} cannot be compiled: it is no function")
    options = {"threads": count, "strategy": strategy, "materialize": whole}
    return Compiled(function, options)
