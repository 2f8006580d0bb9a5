"""Compiled functions: traced and planned once for each description, then run."""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from aclnn.acl._frames import boundary, calls_back
from aclnn.acl.arguments import as_int, as_truth, shown
from aclnn.acl.errors import invalid, wrong_kind
from aclnn.compiler._settings import current_settings, limit_of_thread
from aclnn.compiler.settings import num_threads, strategy_number
from aclnn.execution import array_kinds, arrays
from aclnn.execution._executor import aclOpExecutor
from aclnn.execution._joined import run_on, takes_outputs
from aclnn.execution._operand import call_key, read_headers
from aclnn.graph.runtime.abi import MAX_THREADS
from aclnn.tracing.array import TracedArray
from aclnn.tracing.cache import TraceCache
from aclnn.tracing.cache_misses import Tally
from aclnn.tracing.executors import bound, unbound
from aclnn.tracing.integers import Integers, IntegersReadError
from aclnn.tracing.nesting import mapped, taken_apart
from aclnn.tracing.recordings import Run, clock
from aclnn.tracing.requests import Parameters, Request, are_same, is_in_order
from aclnn.tracing.tracing import Tracer

P = ParamSpec("P")
R = TypeVar("R")


_NOT_GIVEN: Any = object()


def _with_workspace(named: Mapping[str, Any], workspace: Any) -> dict[str, Any]:
    return {**named} if workspace is None else {**named, "workspace": workspace}


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
        self._name = name = getattr(function, "__name__", type(function).__name__)
        self._parameters = Parameters(function, name)
        tracer = Tracer(function, name, self._parameters, self._options)
        self._tally = Tally(name, self._parameters)
        self._cache = TraceCache(tracer.trace, self._tally)

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
    def __call__(self, *args: Any, out: Any, workspace: Any = None, **named: Any) -> R: ...
    @overload
    def __call__(self, *args: Any, workspace: Any, **named: Any) -> R: ...
    @boundary
    def __call__(
        self, *args: Any, out: Any = None, workspace: Any = _NOT_GIVEN, **named: Any
    ) -> Any:
        if workspace is _NOT_GIVEN:
            workspace = None
        elif "workspace" in self._parameters.signature[0]:  # of the function's own
            named, workspace = {**named, "workspace": workspace}, None
        headers = None if named else read_headers(args, True)
        key: Any = None
        parts = None
        cache = self._cache
        if headers is not None:
            key = headers.key
            found = cache.plain.get(key)
            if found is not None and (out is None or found.takes(out)):
                guards = found.guards
                held = None if guards is None else guards.look_up(())
                if guards is None or held is not None:
                    cache.hits += 1
                    found.last_used = next(clock)
                    return run_on(found.executor, headers, out, None, held, None, workspace)
        else:
            parts = call_key(args, named)
            if parts is not None:
                key, headers, values, first = parts
                found = cache.plain.get(key)
                if found is not None and found.owner() is first:
                    run = found.fits((first,), values)
                    if run is not None and (out is None or found.takes(out)):
                        cache.hits += 1
                        found.last_used = next(clock)
                        return run_on(
                            found.executor, headers, out, None, run.held, run.numbers, workspace
                        )
        leaves: list[Any] = []
        numbers: list[float] = []
        owners: list[Any] = []
        integers = Integers(self._parameters.fixed_integers)
        form = self._parameters.form(args, named, leaves, numbers, owners, integers)
        if any(isinstance(one, TracedArray) for one in leaves):
            return self._inline(args, named, out)
        inputs = leaves
        if not all(type(one) is np.ndarray for one in leaves):
            if any(map(arrays.is_dask, leaves)):
                return array_kinds.function("dask", "lift")(self)(*args, out=out, **named)
            inputs = [arrays.readable(arrays.as_ndarray(x, "argument"), "argument") for x in leaves]
        if headers is None or inputs is not leaves or not are_same(headers.arrays, leaves):
            headers = read_headers(inputs)
        try:
            run = cache.run_for(Request(form, headers, owners, numbers, integers))
        except IntegersReadError:
            return self(*args, out=out, **_with_workspace(named, workspace))
        traced = run.traced
        if key is not None and (type(key) is bytes or is_in_order(parts, leaves, numbers, owners)):
            cache.keep_plain(traced, key, owners)
        kind = _kind(leaves) if inputs is not leaves else None
        executor = traced.executor if out is None else traced.executor_for(out, unbound)
        return run_on(executor, headers, out, kind, run.held, run.numbers, workspace)

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
        self._parameters.refuse_missing_object(args, named)
        leaves: list[Any] = []
        request = self._parameters.request(args, self._parameters.with_floats(args, named), leaves)
        try:
            run = self.run_for(request)
        except IntegersReadError:
            return self.executor(*args, out=out, **named)
        traced, arguments = run.traced, None
        if out is not None:
            arguments = traced.flat_outputs(out)
            if not takes_outputs(traced.executor, arguments):
                found = [arrays.as_ndarray(one, "out") for one in arguments]
                traced = traced.laid_out(found)
        return bound(self, traced, run, request, arguments, _kind(leaves))

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
            self.run_for(self._parameters.request(args, named, []))
        except IntegersReadError:
            self._plan_for(args, named)

    def cache_info(self) -> dict[str, int]:
        """Hits, misses, size and limit of the function's cache of plans."""
        return {
            "hits": self._cache.hits,
            "misses": self._cache.misses,
            "size": len(self._cache),
            "limit": current_settings()["cache_limit"],
        }

    def workspace_sizes(self) -> list[int]:
        """The bytes of workspace that each plan in the cache needs."""
        return [one.executor.workspace_size for one in self._cache]

    def executors(self) -> list[aclOpExecutor]:
        """The executors of the plans in the cache, which are bound to no arguments."""
        return [one.executor for one in self._cache]

    def executor_of(self, *args: Any) -> aclOpExecutor:
        """The executor that calls with these arguments run: it is bound to none of them."""
        try:
            return self.run_for(self._parameters.request(args, {}, [])).traced.executor
        except IntegersReadError:
            return self.executor_of(*args)

    def expect_many(self) -> None:
        """Let calls differ as they will: nobody is warned of plans that are made each time."""
        self._tally.end()

    def clear_cache(self) -> None:
        """Forget all plans, and packed operands with them."""
        self._cache.clear()

    def run_for(self, request: Request) -> Run:
        """A trace for a call, made if there is none yet, with what its run takes."""
        return self._cache.run_for(request)

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


def _packed_option(packed: Any) -> bool | tuple[str, ...]:
    """The option `packed`: True or False, or names."""
    if isinstance(packed, (bool, np.bool_)):
        return bool(packed)
    names = (packed,) if isinstance(packed, str) else packed
    found = tuple(names) if isinstance(names, Iterable) else (None,)
    if not all(isinstance(name, str) for name in found):
        raise invalid(f"packed is {shown(packed)}, must be True, False or names of arguments")
    return found


def _kind(leaves: Sequence[Any]) -> Any:
    """The library whose kind of array results get; None where all are NumPy's."""
    return arrays.library_of(next((x for x in leaves if not isinstance(x, np.ndarray)), None))


def _attribute(module: str, path: str) -> Any:
    """Object that an importable function is called by."""
    found = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


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
