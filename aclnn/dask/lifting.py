"""Compiled functions on arrays of Dask's."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

import dask.array as da
import numpy as np

from aclnn.acl._frames import boundary
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.errors import invalid
from aclnn.compiler.recording import Recording
from aclnn.compiler.settings import num_threads
from aclnn.dask.calls import besides, chunked, results_of, spread, stand_in, with_chunks
from aclnn.dask.layouts import Layout, aligned, is_elementwise
from aclnn.operators.checks import broadcast_shapes
from aclnn.tracing.array import TracedArray
from aclnn.tracing.compiled import Compiled
from aclnn.tracing.compiled import compile as compiled
from aclnn.tracing.nesting import ARRAY, put_together, taken_apart
from aclnn.tracing.recording import Trace


@boundary
def lift(
    function: Callable[..., Any], *, whole: int | Sequence[int] | None = None
) -> Callable[..., da.Array]:
    """Let a function of arrays go over the chunks of arrays of Dask's.

    The function is traced once for the arrays' shapes, and runs as one plan on each chunk, with one
    thread. Its arguments are broadcast, and its result has their shape. Several results, in tuples, lists
    and dicts, are computed together; along axes that are whole they may have other sizes.

    Parameters
    ----------
    function : callable
        A compiled function, or one that `aclnn.compile` takes.
    whole : int or sequence of int, optional
        Axes of the result, mostly negative ones, along which elements belong together: arrays are
        rechunked so that these are in one chunk. A function of elementwise operators alone needs none.

    Returns
    -------
    callable
        Takes arrays by position, of Dask's or others, and gives an array of Dask's. Arguments by name are
        handed through as they are. Several results are nested as the function's are.

    Raises
    ------
    AclnnError
        From the call, if a result is not of its arguments' shape, or if some operator or view
        may read elements of other positions and `whole` is not given.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> import aclnn.dask
    >>> @aclnn.compile
    ... def norm(x, weight):
    ...     return aclnn.silu(aclnn.rms_norm(x, 64, weight))
    >>> over_chunks = aclnn.dask.lift(norm, whole=-1)
    >>> x = da.ones((1000, 64), chunks=(250, 16), dtype=np.float32)
    >>> over_chunks(x, np.ones(64, np.float32)).chunks
    ((250, 250, 250, 250), (64,))
    """
    plan = function if isinstance(function, Compiled) else compiled(function)
    axes = _axes(whole)

    @boundary
    @functools.wraps(function)
    def over_chunks(*args: Any, out: Any = None, **named: Any) -> da.Array:
        if out is not None:
            raise invalid(f"{plan._name}: out is given, but Dask arrays cannot be written")
        operands = [chunked(one, f"argument {index}") for index, one in enumerate(args)]
        if arguments := [name for name, one in named.items() if isinstance(one, da.Array)]:
            raise invalid(
                f"{plan._name}: {arguments[0]} is a Dask array, which must be passed by position"
            )
        result, watched = _traced(plan, operands, named)
        shape = broadcast_shapes(*[one.shape for one in operands if isinstance(one, da.Array)])
        if shape is None:
            raise invalid(
                f"{plan._name}: its arguments do not broadcast, so it does not go over chunks"
            )
        leaves: list[Any] = []
        form = taken_apart(result, leaves)
        refuse_shapes(plan._name, leaves, shape, {axis % len(shape) for axis in axes if shape})
        if whole is None and watched.reasons:
            raise invalid(
                f"{plan._name}: {', '.join(dict.fromkeys(watched.reasons))} may read elements "
                "of other positions: aclnn.dask.lift(function, whole=axes) says which axes have to be "
                "in one chunk"
            )
        ndim = len(shape)
        if wrong := [axis for axis in axes if not -ndim <= axis < ndim]:
            raise invalid(f"{plan._name}: whole has {wrong[0]}, but the result has {ndim} axes")
        labels = aligned([getattr(one, "shape", None) for one in operands], ndim)
        together = {axis % ndim for axis in axes} | watched.held_axes(ndim)
        block = (
            _compute,
            {
                "plan": plan,
                "others": besides(operands),
                "named": named,
                "shapes": tuple([one.shape for one in leaves]),
                "single": form is ARRAY,
            },
        )
        layout = Layout(labels, frozenset(together))
        blocks = spread(block, operands, layout, shape, leaves[0].dtype, plan._name)
        if form is ARRAY:
            return blocks
        return put_together(form, iter(results_of(blocks, leaves, layout.whole, plan._name)))

    return over_chunks


def _axes(whole: Any) -> tuple[int, ...]:
    if whole is None:
        return ()
    if (alone := as_int(whole)) is not None:
        return (alone,)
    axes = [as_int(one) for one in whole]
    if None in axes:
        raise invalid(f"whole is {shown(whole)}, must be ints")
    return tuple([one for one in axes if one is not None])


def refuse_shapes(
    name: str, results: Sequence[Any], shape: tuple[int, ...], whole: Collection[int]
) -> None:
    """Refuse results that are not made chunk by chunk: an only one of another shape, and such of several
    that differ from the shape not only along whole axes."""
    for one in results:
        if not isinstance(one, TracedArray):
            raise invalid(
                f"{name}: gives an array that is not made of its arguments, of shape {one.shape}"
            )
        other = {axis for axis, (a, b) in enumerate(zip(one.shape, shape, strict=False)) if a != b}
        if one.ndim != len(shape) or not other <= (set(whole) if len(results) > 1 else set()):
            raise invalid(
                f"{name}: gives shape {one.shape} for arguments of shape {shape}; only functions whose "
                "results have the shape of their arguments go over chunks, several ones except along "
                "whole axes"
            )
    if not results:
        raise invalid(f"{name}: gives no array")


def _compute(
    *chunks: np.ndarray, plan: Compiled, others: Any, named: Any, shapes: Any, single: bool
) -> np.ndarray | tuple[np.ndarray, ...]:
    """The results of a chunk; `shapes` are those for the whole arrays."""
    plan.expect_many()
    with num_threads(1):
        made = plan(*with_chunks(others, chunks), **named)
    requested = np.broadcast_shapes(*[chunk.shape for chunk in chunks])
    found: list[Any] = []
    taken_apart(made, found)
    for one, whole in zip(found, shapes, strict=True):
        if any(n not in pair for n, *pair in zip(one.shape, requested, whole, strict=True)):
            raise invalid(f"{plan._name}: gives shape {one.shape} for chunks of shape {requested}")
    return found[0] if single else tuple(found)


# --- Tracing --------------------------------------------------------------------------------------


class _Watched(Recording):
    """A recording that notes calls that may read elements of other positions."""

    def __init__(self, trace: Trace):
        super().__init__(trace.recording.name)
        self.origin = trace.origin
        self.reasons: list[str] = []
        self.trace = trace

    def call(self, operator: Any, *args: Any, **named: Any) -> Any:
        if not is_elementwise(operator):
            self.reasons.append(operator.name)
        return super().call(operator, *args, **named)

    def held_axes(self, ndim: int) -> set[int]:
        """Axes along which arrays that the function closes over have several elements."""
        return {
            ndim - one.array.ndim + axis
            for one in self.trace.held
            for axis, size in enumerate(one.array.shape)
            if size > 1
        }


def _noted(method: str, what: str) -> Callable[..., Any]:
    original = getattr(Recording, method)

    def watched(self: _Watched, *args: Any, **named: Any) -> Any:
        self.reasons.append(what)
        return original(self, *args, **named)

    return functools.wraps(original)(watched)


for _method, _what in {
    "sliced": "a slice",
    "transposed": "a transposed view",
    "expanded": "a broadcast view",
    "reshaped": "a reshaped view",
    "strided": "a view",
    "replaced": "a part that is written",
    "opaque": "aclnn.call",
}.items():
    setattr(_Watched, _method, _noted(_method, _what))


def _traced(plan: Compiled, operands: Sequence[Any], named: dict[str, Any]) -> tuple[Any, _Watched]:
    """Results of a function for arrays of these shapes, and the calls that it makes."""
    function = plan._function
    trace = Trace(plan._name, TracedArray, function)
    watched = trace.recording = _Watched(trace)
    names = list(inspect.signature(function).parameters)
    names += [f"argument {index}" for index in range(len(names), len(operands))]
    value = [
        stand_in(trace, name, one) if isinstance(one, da.Array) else one
        for name, one in zip(names, operands, strict=False)
    ]
    return trace.run(value, named), watched
