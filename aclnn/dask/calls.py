"""Functional forms on arrays of Dask's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod
from typing import Any

import dask.array as da
import numpy as np

from aclnn.acl import dtypes
from aclnn.acl.errors import invalid
from aclnn.api import functional
from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.compiler.settings import num_threads
from aclnn.dask.layouts import Facts, Layout, layout_of
from aclnn.execution import arrays
from aclnn.operators.checks import TensorSpec
from aclnn.tracing.array import TracedArray
from aclnn.tracing.recording import Trace


def call(
    handle: Any,
    arguments: Sequence[Any],
    out: Any,
    numbers: Sequence[Any],
    switches: Sequence[Any] | None,
) -> Any:
    """Take the call of a functional form over, of which at least one operand is an array of Dask's."""
    operator = handle.handle.operator
    if handle.name == operator.in_place or handle.name.endswith("_"):
        raise invalid("arrays of Dask's are not written; `=` binds a name to the result")
    if out is not None:
        raise invalid("out is given, but Dask arrays cannot be written")
    if operator.lists:
        layout_of(Facts(handle.name, (), (), {}))
    operands = [
        chunked(one, role) for role, one in zip(operator.kernel_operands, arguments, strict=True)
    ]
    result = traced_result(handle, operands, numbers, switches)
    first = result if isinstance(result, TracedArray) else result[0]
    options = {a.role: one for a, one in zip(operator.switches, switches or (), strict=False)}
    options = {a.role: a.default for a in operator.switches} | options
    shapes = tuple([one.shape if isinstance(one, da.Array) else None for one in operands])
    facts = Facts(handle.name, shapes, first.shape, options)
    if operator.chunking in BY_PARTS:
        return _reduce(facts, operands[0], first.dtype, operator.chunking)
    layout = layout_of(facts)
    block = _block_of(handle, operands, tuple(numbers), switches and tuple(switches))
    blocks = spread(block, operands, layout, first.shape, first.dtype, handle.name)
    if result is first:
        return blocks
    return results_of(blocks, result, layout.whole, handle.name)


# --- Operands -------------------------------------------------------------------------------------


def chunked(value: Any, role: str) -> Any:
    """An operand as an array of Dask's, others in one chunk; numbers, and what is left out, as they are."""
    if value is None or isinstance(value, bool | int | float | complex):
        return value
    array = (
        value
        if isinstance(value, da.Array)
        else da.asarray(arrays.as_ndarray(value, role), chunks=-1)
    )
    if any(np.isnan(size) for size in array.shape):
        raise invalid(f"{role} has chunks of unknown sizes; x.compute_chunk_sizes() finds them out")
    return array


def stand_in(trace: Trace, name: str, array: da.Array) -> TracedArray:
    """A traced array of an array's shape and dtype."""
    if not dtypes.is_known(array.dtype):
        raise invalid(f"{name} has dtype {array.dtype}, which no operator takes")
    strides = tuple([prod(array.shape[d + 1 :]) for d in range(array.ndim)])
    return TracedArray(
        trace.argument(name, TensorSpec(dtypes.of_numpy(array.dtype), array.shape, strides))
    )


def traced_result(
    handle: Any, operands: Sequence[Any], numbers: Sequence[Any], switches: Sequence[Any] | None
) -> Any:
    """Results of a call as traced arrays: checked as phase one does, without elements."""
    operator = handle.handle.operator
    trace = Trace(handle.name, TracedArray, getattr(functional, handle.name))
    value = [
        stand_in(trace, role, one) if isinstance(one, da.Array) else one
        for role, one in zip(operator.kernel_operands, operands, strict=True)
    ]
    return trace.call(handle, value, None, numbers, switches)


# --- Blocks ---------------------------------------------------------------------------------------


def _block_of(
    handle: Any, operands: Sequence[Any], numbers: Any, switches: Any
) -> tuple[Callable[..., np.ndarray], dict[str, Any]]:
    """The function that computes a block, and what it is called with besides chunks."""
    return _compute, {
        "form": handle.name,
        "by_number": handle is not HANDLES_BY_NAME[handle.name],
        "others": besides(operands),
        "numbers": numbers,
        "switches": switches,
    }


def besides(operands: Sequence[Any]) -> tuple[Any, ...]:
    """Operands that are no arrays, each in a tuple; None in the place of an array."""
    return tuple([None if isinstance(one, da.Array) else (one,) for one in operands])


def with_chunks(others: Sequence[Any], chunks: Sequence[Any]) -> list[Any]:
    """The operands of a block. Chunks that come from another worker may be misaligned."""
    left = iter(chunks)
    return [
        arrays.readable(np.asarray(next(left)), "a chunk") if one is None else one[0]
        for one in others
    ]


def _compute(
    *chunks: np.ndarray, form: str, by_number: bool, others: Any, numbers: Any, switches: Any
) -> np.ndarray:
    """One block of a result, in one thread: Dask runs several at a time."""
    handle: Any = functional.form(form)
    if by_number:
        handle = handle.number_form
    with num_threads(1):
        return arrays.call_foreign(handle, with_chunks(others, chunks), None, numbers, switches)


def spread(
    block: tuple[Callable[..., Any], dict[str, Any]],
    operands: Sequence[Any],
    layout: Layout,
    shape: tuple[int, ...],
    dtype: np.dtype,
    name: str,
) -> da.Array:
    """A function over chunks whose axes belong together as a layout says."""
    function, named = block
    pairs: list[Any] = []
    for array, labels in zip(operands, layout.operands, strict=True):
        if not isinstance(array, da.Array):
            continue
        assert labels is not None
        full = {axis: -1 for axis, label in enumerate(labels) if label in layout.whole}
        pairs += [array.rechunk(full) if full else array, labels]
    return da.blockwise(
        function,
        tuple(range(len(shape))),
        *pairs,
        dtype=dtype,
        meta=np.empty((0,) * len(shape), dtype),
        new_axes=dict(layout.sizes),
        concatenate=True,
        name=None,
        token=f"aclnn-{name}",
        **named,
    )


def results_of(
    blocks: da.Array, results: Sequence[Any], full: Collection[int], name: str
) -> tuple[da.Array | None, ...]:
    """An array for each result, of blocks that are tuples of them; None for those that are left out.

    Parameters
    ----------
    blocks : dask.array.Array
    results : sequence of (TracedArray or None)
    full : collection of int
        Axes of `blocks` that are in one chunk.
    name : str
    """
    return tuple(
        [
            None if one is None else _result_of(blocks, index, one, full, name)
            for index, one in enumerate(results)
        ]
    )


def _result_of(
    blocks: da.Array, index: int, result: TracedArray, full: Collection[int], name: str
) -> da.Array:
    """One result. Its axes are the first ones of the blocks; where these are whole, it may have other
    sizes, or none of them."""
    sizes = dict(enumerate(result.shape))
    other = [axis for axis in range(blocks.ndim) if sizes.get(axis) != blocks.shape[axis]]
    if result.ndim > blocks.ndim or not set(other) <= set(full):
        raise invalid(
            f"result {index} has shape {result.shape}, which is made of several chunks of a first one of "
            f"shape {blocks.shape}; dask.array.map_blocks calls it on each"
        )
    return da.blockwise(
        _item,
        tuple(range(result.ndim)),
        blocks,
        tuple(range(blocks.ndim)),
        index=index,
        adjust_chunks={axis: sizes[axis] for axis in other if axis in sizes},
        dtype=result.dtype,
        meta=np.empty((0,) * result.ndim, result.dtype),
        name=None,
        token=f"aclnn-{name}",
    )


def _item(block: Any, index: int) -> np.ndarray:
    """A result of a block, which is in lists where axes are left out."""
    while isinstance(block, list):
        (block,) = block
    return block[index]


# --- Reductions -----------------------------------------------------------------------------------


BY_PARTS = ("sums", "means", "maxima")  # what declarations say


def _reduce(facts: Facts, array: Any, dtype: np.dtype, kind: str) -> da.Array:
    """A reduction of the reductions of chunks; sums of these are in the widest dtype of their kind."""
    axes = facts.ints("dim", array.ndim) if "dim" in facts.options and array.ndim else None
    kept = bool(facts.options.get("keepdim", False))
    sums = kind != "maxima"
    wide = np.dtype(np.int64 if array.dtype.kind in "iub" and dtype.kind in "iu" else np.float64)
    found = da.reduction(
        array,
        _sum_of_chunk if sums else _largest_of_chunk,
        _sum_of_chunk if sums else _largest_of_chunk,
        axis=axes,
        keepdims=kept,
        dtype=wide if sums else dtype,
        meta=np.empty((0,) * len(facts.out), wide if sums else dtype),
        concatenate=True,
        name=f"aclnn-{facts.name}",
    )
    if kind == "means":
        count = prod(
            array.shape[axis] for axis in (axes if axes is not None else range(array.ndim))
        )
        found = found / count if count else found * np.nan
    return found if found.dtype == dtype else functional.cast(found, dtype)


def _sum_of_chunk(chunk: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    wide = np.int64 if chunk.dtype.kind in "iub" else np.float64
    with num_threads(1):
        return functional.sum(chunk, list(axis), keepdims, dtype=wide)


def _largest_of_chunk(chunk: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    if chunk.size == 0:  # what has no elements counts as what nothing is smaller than
        own = set(axis)
        kept = [1 if n in own else size for n, size in enumerate(chunk.shape)]
        left = kept if keepdims else [size for n, size in enumerate(kept) if n not in own]
        return np.full(left, _least(chunk.dtype), chunk.dtype)
    with num_threads(1):
        return functional.amax(chunk, list(axis), keepdims)


def _least(dtype: np.dtype) -> Any:
    """Smallest value of a dtype."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return False if dtype.kind == "b" else -np.inf
