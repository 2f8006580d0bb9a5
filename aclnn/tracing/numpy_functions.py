"""NumPy's functions on traced arrays: which operators and views are their counterparts."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from aclnn.acl.arguments import as_int, shown
from aclnn.acl.errors import AclnnError, invalid, wrong_kind
from aclnn.api import functional
from aclnn.tracing.numpy_forms import no_counterpart, ufunc, written
from aclnn.tracing.promotion import BOOL, common_dtype, number_in
from aclnn.tracing.recording import Trace, is_number

ours: Any = functional  # whose names are made from declarations


def array_function(array: Any, function: Any, args: Any, options: Any) -> Any:
    """Handle one of NumPy's functions that is called with a traced array."""
    name = _name(function)
    if function not in COUNTERPARTS:
        raise no_counterpart(name)
    record = COUNTERPARTS[function]
    options = {key: one for key, one in options.items() if one is not np._NoValue}
    try:
        inspect.signature(record).bind(array.trace, *args, **options)
    except TypeError as error:
        raise wrong_kind(
            f"np.{name}: {error} of what can be recorded; aclnn.call embeds it as a step of the plan"
        ) from None
    try:
        return record(array.trace, *args, **options)
    except AclnnError:
        raise
    except (IndexError, ValueError) as error:  # NumPy's own, about an axis
        raise invalid(f"np.{name}: {error}") from None


def _name(function: Any) -> str:
    home = function.__module__.removeprefix("numpy").removeprefix(".")
    return f"{home}.{function.__name__}" if home else str(function.__name__)


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Dimensions, counted from the first; None stands for all."""
    if axis is None:
        return tuple(range(rank))
    return np.lib.array_utils.normalize_axis_tuple(axis, rank)


def _axis(axis: Any, rank: int) -> int:
    return int(np.lib.array_utils.normalize_axis_index(axis, rank))


# --- Reductions -----------------------------------------------------------------------------------


def _sum_dtype(dtype: np.dtype) -> np.dtype:
    """Dtype that NumPy adds up in: small integers become those of 64 bits."""
    small = dtype.kind in "biu" and dtype.itemsize < 8
    return np.dtype("u8" if dtype.kind == "u" else "i8") if small else dtype


def _added(form: Callable[..., Any], array: Any, dtype: Any, *args: Any) -> Any:
    """A sum, in NumPy's dtype: operators know no integers without sign."""
    target = _sum_dtype(array.dtype) if dtype is None else np.dtype(dtype)
    if target.kind != "u":
        return form(array, *args, dtype=target)
    found: Any = form(array, *args, dtype=np.dtype("i8"))
    return found.astype(target)


def reduce_sum(array: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """Sum over dimensions; None stands for all."""
    _axes(axis, array.ndim)
    return _added(ours.sum, array, dtype, axis, bool(keepdims))


def _fractions(array: Any, dtype: Any = None) -> Any:
    """Dtype that NumPy takes the mean in: integers as float64."""
    if dtype is not None:
        return array.astype(dtype)
    return array.astype(np.float64) if array.dtype.kind in "biu" else array


def reduce_mean(array: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """Mean over dimensions; None stands for all."""
    _axes(axis, array.ndim)
    return ours.mean(_fractions(array, dtype), axis, bool(keepdims))


def reduce_max(array: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """Largest element along dimensions; None stands for all."""
    axes = _axes(axis, array.ndim)
    if not all(array.shape[one] for one in axes):
        raise invalid("zero-size array to reduction operation maximum which has no identity")
    if array.dtype == BOOL:
        found: Any = ours.amax(array.astype(np.int8), axis, bool(keepdims))
        return found.astype(BOOL)
    return ours.amax(array, axis, bool(keepdims))


def reduce_var(array: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    """Variance over dimensions, of which None stands for all; its divisor is smaller by `ddof`."""
    _axes(axis, array.ndim)
    return ours.var(_fractions(array), axis, correction=ddof, keepdim=bool(keepdims))


def cumulated(array: Any, axis: Any = None, dtype: Any = None) -> Any:
    """Sums of all elements up to each, along a dimension; None stands for all of them in a row."""
    if axis is None:
        array, axis = array.ravel(), 0
    return _added(ours.cumsum, array, dtype, _axis(axis, array.ndim))


def place_of_max(array: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The place of the largest element along a dimension; None stands for all of them in a row."""
    shape = array.shape
    if array.dtype == BOOL:
        array = array.astype(np.int8)
    if axis is None:
        found: Any = ours.arg_max(array.ravel(), 0, False)
        return found.reshape((1,) * len(shape)) if keepdims else found
    return ours.arg_max(array, _axis(axis, len(shape)), bool(keepdims))


def _max(trace: Trace, array: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return written(reduce_max(trace.taken(array), axis, keepdims), out)


def _std(
    trace: Trace,
    array: Any,
    axis: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Any:
    found = reduce_var(trace.taken(array), axis, ddof, keepdims)
    return ufunc(trace, np.sqrt, (found,), out)


# --- Choices --------------------------------------------------------------------------------------


def clipped(trace: Trace, array: Any, low: Any = None, high: Any = None) -> Any:
    """The elements, those beyond limits replaced by these."""
    limits = [one for one in (low, high) if one is not None]
    dtype = common_dtype([array, *limits])
    found = array if array.dtype == dtype else array.astype(dtype)
    if all(map(is_number, limits)) and dtype.kind not in "bc":
        numbers = [None if one is None else number_in(one, dtype) for one in (low, high)]
        return ours.clamp(found, *numbers) if limits else found.copy()
    if low is not None:
        found = ufunc(trace, np.maximum, (found, low))
    return found if high is None else ufunc(trace, np.minimum, (found, high))


def _clip(
    trace: Trace,
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,
    max: Any = None,
) -> Any:
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    low, high = [x if x is None or is_number(x) else trace.taken(x) for x in (low, high)]
    return written(clipped(trace, trace.taken(a), low, high), out)


def _where(trace: Trace, condition: Any, *pair: Any) -> Any:
    if len(pair) != 2:
        raise no_counterpart("where with one argument")
    condition = trace.taken(condition)
    if condition.dtype != BOOL:
        condition = ufunc(trace, np.not_equal, (condition, 0))
    pair = tuple([one if is_number(one) else trace.taken(one) for one in pair])
    dtype = common_dtype(pair)
    made = [trace.number(x, dtype) if is_number(x) else _cast(x, dtype) for x in pair]
    return trace.form("where", condition, *made)


def _cast(array: Any, dtype: np.dtype) -> Any:
    return array if array.dtype == dtype else array.astype(dtype)


def taken(array: Any, indices: Any, axis: Any = None) -> Any:
    """Slices along a dimension, by indices that count from the end where they are negative."""
    trace = array.trace
    if axis is None:
        array, axis = array.ravel(), 0
    axis = _axis(axis, array.ndim)
    if is_number(indices):
        return array[(slice(None),) * axis + (indices,)]
    return ours.gather_v2(
        array, axis, _positions(trace, indices)
    )  # which counts from the end itself


def put_at(array: Any, axis: int, indices: Any, value: Any) -> None:
    """Write slices along a dimension, where indices say; negative ones count from the end."""
    trace = array.trace
    places = _from_begin(trace, indices, array.shape[axis])
    if places.ndim > 1:
        raise invalid(
            f"positions to write at have {places.ndim} dimensions, must have 1 or none: .ravel() them"
        )
    shape = (*array.shape[:axis], *places.shape, *array.shape[axis + 1 :])
    source = trace.taken(np.asarray(value, array.dtype) if is_number(value) else value)
    source = _cast(source, array.dtype).broadcast_to(shape)
    if not places.ndim:
        places, source = places.reshape(1), source[(slice(None),) * axis + (None,)]
    if not _put_in_place(array, axis, places, source):
        ours.index_copy_(array, axis, places, source)


def _put_in_place(view: Any, axis: int, places: Any, source: Any) -> bool:
    """Write slices of a view into the memory that it shows, as rows of that; nothing else is written then.

    Rows are as long as elements that lie together, in the memory and in the source.
    """
    found = view.shown_rows()
    if found is None or not source.size:
        return False
    memory, offset = found
    steps = [n // view.dtype.itemsize for n in view.strides]
    others = [n for n in range(view.ndim) if n != axis]
    length, left = 1, list(others)
    while left and steps[left[-1]] == length:
        length *= view.shape[left.pop()]
    length = math.gcd(length, offset, memory.size, steps[axis], *[steps[n] for n in left])
    rows: np.ndarray = np.full((), offset // length, np.int64)
    for n in left:
        rows = rows[..., None] + np.arange(view.shape[n]) * (steps[n] // length)
    together = math.prod([view.shape[n] for n in others]) // (rows.size * length)
    rows = (rows[..., None] + np.arange(together)).reshape(-1)
    count = places.shape[0]
    places = places.astype(np.int64, copy=False).reshape(count, 1)
    size = view.shape[axis]
    outside = (places < 0) | (places >= size)
    first = rows.item() if rows.size == 1 else rows
    index = np.where(outside, -1, places * (steps[axis] // length) + first)
    source = source.transpose(axis, *others).reshape(count * rows.size, length)
    table = memory.reshape(memory.size // length, length)
    ours.index_copy_(table, 0, index.reshape(-1), source)
    return True


def _take(
    trace: Trace, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
) -> Any:
    if mode != "raise":
        raise invalid(
            f"mode is {shown(mode)}, must be 'raise'; aclnn.call embeds np.take with others"
        )
    return written(taken(trace.taken(a), indices, axis), out)


def _positions(trace: Trace, indices: Any) -> Any:
    """Indices as an array of signed integers."""
    places = trace.taken(np.asarray(indices) if isinstance(indices, list | tuple) else indices)
    if (index := places.place) is not None:
        trace.positions.add(index)
    if places.dtype.kind not in "iu" or places.dtype == np.uint64:
        raise wrong_kind(
            f"indices are {places.dtype}, must be integers: convert with .astype(np.int64)"
        )
    is_wide = places.dtype.itemsize > 2 and places.dtype.kind == "i"
    return places if is_wide else places.astype(np.int64)


def _from_begin(trace: Trace, indices: Any, size: int) -> Any:
    """Indices of which none is negative."""
    places = _positions(trace, indices)
    negative = ufunc(trace, np.less, (places, 0))
    return trace.form("where", negative, ufunc(trace, np.add, (places, size)), places)


def _take_along(trace: Trace, arr: Any, indices: Any, axis: Any = -1) -> Any:
    array, indices = trace.taken(arr), trace.taken(indices)
    if axis is None:
        array, axis = array.ravel(), 0
    axis = _axis(axis, array.ndim)
    apart = [shape[:axis] + shape[axis + 1 :] for shape in (array.shape, indices.shape)]
    if apart[0] != apart[1]:
        raise invalid(
            f"indices have shape {indices.shape}, must be {array.shape} but for axis {axis}"
        )
    return ours.gather(array, axis, _from_begin(trace, indices, array.shape[axis]))


# --- Joining and dividing -------------------------------------------------------------------------


def _concatenate(
    trace: Trace, arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None
) -> Any:
    parts = [trace.taken(one) for one in arrays]
    kind = common_dtype(parts) if dtype is None else np.dtype(dtype)
    parts = [_cast(one, kind) for one in parts]
    if axis is None:
        parts, axis = [one.ravel() for one in parts], 0
    return written(ours.cat(parts, _axis(axis, parts[0].ndim)), out)


def _stack(trace: Trace, arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None) -> Any:
    parts = [trace.taken(one) for one in arrays]
    if len({one.shape for one in parts}) > 1:
        raise invalid("all input arrays must have the same shape")
    parts = [_expand_dims(trace, one, axis) for one in parts]
    return _concatenate(trace, parts, axis, out, dtype=dtype)


def _vstack(trace: Trace, tup: Any, *, dtype: Any = None) -> Any:
    parts = [trace.taken(one) for one in tup]
    parts = [
        one[None, :] if one.ndim == 1 else one.reshape(1, 1) if not one.ndim else one
        for one in parts
    ]
    return _concatenate(trace, parts, 0, dtype=dtype)


def _hstack(trace: Trace, tup: Any, *, dtype: Any = None) -> Any:
    parts = [trace.taken(one) for one in tup]
    parts = [one if one.ndim else one.reshape(1) for one in parts]
    return _concatenate(trace, parts, 0 if parts[0].ndim == 1 else 1, dtype=dtype)


def _split(trace: Trace, ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    array = trace.taken(ary)
    count = as_int(indices_or_sections)
    size = array.shape[_axis(axis, array.ndim)]
    if count is not None and (count < 1 or size % count):
        raise invalid("array split does not result in an equal division")
    return _array_split(trace, array, indices_or_sections, axis)


def _array_split(trace: Trace, ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    array = trace.taken(ary)
    axis = _axis(axis, array.ndim)
    size, count = array.shape[axis], as_int(indices_or_sections)
    if count is None:
        ends = [*[int(one) for one in indices_or_sections], size]
    else:
        if count < 1:
            raise invalid("number sections must be larger than 0.")
        ends = np.cumsum([size // count + (n < size % count) for n in range(count)]).tolist()
    lead = (slice(None),) * axis
    return [array[(*lead, slice(a, b))] for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def _split_along(axis: int) -> Callable[..., Any]:
    def record(trace: Trace, ary: Any, indices_or_sections: Any) -> Any:
        array = trace.taken(ary)
        index = 0 if axis == 1 and array.ndim == 1 else axis
        return _split(trace, array, indices_or_sections, index)

    return record


# --- Repeating and padding ------------------------------------------------------------------------


def repeated(array: Any, repeats: Any, axis: Any = None) -> Any:
    """Each element, or slice along a dimension, several times."""
    count = as_int(repeats)
    if count is None or count < 0:
        raise invalid(
            f"repeats are {shown(repeats)}, must be one integer; aclnn.call embeds anything else"
        )
    if axis is None:
        array, axis = array.ravel(), 0
    axis, shape = _axis(axis, array.ndim), array.shape
    before, after = shape[: axis + 1], shape[axis + 1 :]
    wide = array.reshape((*before, 1, *after)).broadcast_to((*before, count, *after))
    return wide.copy().reshape((*shape[:axis], shape[axis] * count, *after))


def _tile(trace: Trace, A: Any, reps: Any) -> Any:  # noqa: N803
    array = trace.taken(A)
    counts = tuple(reps) if isinstance(reps, tuple | list) else (reps,)
    sizes = (1,) * max(0, array.ndim - len(counts)) + counts
    return ours.repeat(array, sizes)


def _pad(
    trace: Trace, array: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0
) -> Any:
    array = trace.taken(array)
    if mode != "constant" or not is_number(constant_values):
        raise invalid(
            "np.pad has a counterpart only with mode 'constant' and one number; aclnn.call embeds "
            "anything else"
        )
    widths = np.broadcast_to(np.asarray(pad_width), (array.ndim, 2)).tolist()
    if any(width < 0 for pair in widths for width in pair):
        raise invalid("index can't contain negative values")
    flat = [width for pair in reversed(widths) for width in pair]
    return ours.constant_pad_nd(array, flat, number_in(constant_values, array.dtype))


def _triangle(form: Callable[..., Any]) -> Callable[..., Any]:
    def record(trace: Trace, m: Any, k: Any = 0) -> Any:
        array = trace.taken(m)
        if array.ndim < 2:
            raise invalid(f"{array} has fewer than 2 dimensions")
        return form(array, k)

    return record


# --- Products -------------------------------------------------------------------------------------


def dotted(trace: Trace, a: Any, b: Any, out: Any = None) -> Any:
    """np.dot: a product of numbers, vectors or matrices."""
    if is_number(a) or is_number(b):
        raise wrong_kind(
            "np.dot of a number has no counterpart: NumPy makes an array of it first, whose dtype "
            "counts; * multiplies by numbers"
        )
    a, b = trace.taken(a), trace.taken(b)
    if not (a.ndim and b.ndim):
        return ufunc(trace, np.multiply, (a, b), out)
    if b.ndim > 2:
        raise invalid(
            f"np.dot of {a.ndim} and {b.ndim} dimensions has no counterpart: np.matmul multiplies "
            "batches; aclnn.call embeds np.dot"
        )
    return ufunc(trace, np.matmul, (a, b), out)


def _inner(trace: Trace, a: Any, b: Any) -> Any:
    if is_number(b):
        return dotted(trace, a, b)
    a, b = trace.taken(a), trace.taken(b)
    return dotted(trace, a, b.T if b.ndim <= 2 else b)


def _outer(trace: Trace, a: Any, b: Any, out: Any = None) -> Any:
    a, b = trace.taken(a).ravel(), trace.taken(b).ravel()
    return ufunc(trace, np.multiply, (a[:, None], b[None, :]), out)


# --- Views ----------------------------------------------------------------------------------------


def _expand_dims(trace: Trace, array: Any, axis: Any) -> Any:
    array = trace.taken(array)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    rank = array.ndim + len(axes)
    places = _axes(tuple(axes), rank)
    return array[tuple([None if n in places else slice(None) for n in range(rank)])]


def _moveaxis(trace: Trace, array: Any, source: Any, destination: Any) -> Any:
    array = trace.taken(array)
    old, new = _axes(source, array.ndim), _axes(destination, array.ndim)
    if len(old) != len(new):
        raise invalid("source and destination must have the same number of dimensions")
    order = [n for n in range(array.ndim) if n not in old]
    for to, at in sorted(zip(new, old, strict=True)):
        order.insert(to, at)
    return array.transpose(order)


def _flip(trace: Trace, array: Any, axis: Any = None) -> Any:
    array = trace.taken(array)
    places = _axes(axis, array.ndim)
    back = slice(None, None, -1)
    return array[tuple([back if n in places else slice(None) for n in range(array.ndim)])]


def _roll(trace: Trace, a: Any, shift: Any, axis: Any = None) -> Any:
    array, by = trace.taken(a), as_int(shift)
    if by is None or (axis is not None and as_int(axis) is None):
        raise invalid("np.roll has a counterpart only along one dimension; aclnn.call embeds it")
    if axis is None:
        return _roll(trace, array.ravel(), by, 0).reshape(array.shape)
    lead = (slice(None),) * _axis(axis, array.ndim)
    size = array.shape[len(lead)]
    cut = size - by % size if size else 0
    return ours.cat([array[(*lead, slice(cut, None))], array[(*lead, slice(cut))]], len(lead))


def _reshape(trace: Trace, a: Any, shape: Any, order: str = "C") -> Any:
    return trace.taken(a).reshape(shape, order=order)


def _ravel(trace: Trace, a: Any, order: str = "C") -> Any:
    if order != "C":
        raise invalid(f"order is {shown(order)}, must be 'C'")
    return trace.taken(a).ravel()


def _copy(trace: Trace, a: Any, order: str = "K", subok: bool = False) -> Any:
    return trace.taken(a).copy()


def _method(name: str) -> Callable[..., Any]:
    def record(trace: Trace, array: Any, *args: Any, **options: Any) -> Any:
        return getattr(trace.taken(array), name)(*args, **options)

    return record


def _like(trace: Trace, array: Any, number: Any, dtype: Any, shape: Any) -> Any:
    like = trace.taken(array)
    kind = like.dtype if dtype is None else np.dtype(dtype)
    sizes = like.shape if shape is None else tuple(np.atleast_1d(shape).tolist())
    return trace.number(number, kind).broadcast_to(sizes).copy()


def _full_like(
    trace: Trace,
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
) -> Any:
    return _like(trace, a, fill_value, dtype, shape)


def _constant_like(number: int) -> Callable[..., Any]:
    def record(
        trace: Trace,
        a: Any,
        dtype: Any = None,
        order: str = "K",
        subok: bool = True,
        shape: Any = None,
    ) -> Any:
        return _like(trace, a, number, dtype, shape)

    return record


def _size(trace: Trace, array: Any, axis: Any = None) -> int:
    axes = None if axis is None else _axes(axis, array.ndim)
    return int(array.size) if axes is None else math.prod(array.shape[one] for one in axes)


def _result_type(trace: Trace, *args: Any) -> np.dtype:
    known = [one.dtype if hasattr(type(one), "__aclnn_function__") else one for one in args]
    return np.result_type(*known)


COUNTERPARTS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.clip: _clip,
    np.take: _take,
    np.take_along_axis: _take_along,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.vstack: _vstack,
    np.hstack: _hstack,
    np.split: _split,
    np.array_split: _array_split,
    np.vsplit: _split_along(0),
    np.hsplit: _split_along(1),
    np.dsplit: _split_along(2),
    np.repeat: lambda trace, a, repeats, axis=None: repeated(trace.taken(a), repeats, axis),
    np.tile: _tile,
    np.pad: _pad,
    np.tril: _triangle(ours.tril),
    np.triu: _triangle(ours.triu),
    np.sum: lambda trace, a, axis=None, dtype=None, out=None, keepdims=False: written(
        reduce_sum(trace.taken(a), axis, dtype, keepdims), out
    ),
    np.mean: lambda trace, a, axis=None, dtype=None, out=None, keepdims=False: written(
        reduce_mean(trace.taken(a), axis, dtype, keepdims), out
    ),
    np.max: _max,
    np.amax: _max,
    np.var: lambda trace, a, axis=None, out=None, ddof=0, keepdims=False: written(
        reduce_var(trace.taken(a), axis, ddof, keepdims), out
    ),
    np.std: _std,
    np.cumsum: lambda trace, a, axis=None, dtype=None, out=None: written(
        cumulated(trace.taken(a), axis, dtype), out
    ),
    np.argmax: lambda trace, a, axis=None, out=None, *, keepdims=False: written(
        place_of_max(trace.taken(a), axis, keepdims), out
    ),
    np.dot: dotted,
    np.inner: _inner,
    np.outer: _outer,
    np.expand_dims: _expand_dims,
    np.moveaxis: _moveaxis,
    np.flip: _flip,
    np.fliplr: lambda trace, m: _flip(trace, m, 1),
    np.flipud: lambda trace, m: _flip(trace, m, 0),
    np.roll: _roll,
    np.transpose: lambda trace, a, axes=None: trace.taken(a).transpose(axes),
    np.matrix_transpose: lambda trace, x: trace.taken(x).mT,
    np.swapaxes: _method("swapaxes"),
    np.reshape: _reshape,
    np.ravel: _ravel,
    np.squeeze: _method("squeeze"),
    np.broadcast_to: lambda trace, array, shape, subok=False: trace.taken(array).broadcast_to(
        shape
    ),
    np.copy: _copy,
    np.astype: lambda trace, x, dtype, copy=True: trace.taken(x).astype(dtype, copy=copy),
    np.shape: lambda _, a: a.shape,
    np.ndim: lambda _, a: a.ndim,
    np.size: _size,
    np.zeros_like: _constant_like(0),
    np.ones_like: _constant_like(1),
    np.full_like: _full_like,
    np.result_type: _result_type,
}
