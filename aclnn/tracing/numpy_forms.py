"""NumPy's functions on traced arrays: which operators are their counterparts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aclnn.acl.arguments import shown
from aclnn.acl.errors import AclnnError, invalid
from aclnn.api import functional
from aclnn.api.functional import HANDLES_BY_NAME
from aclnn.tracing.trace import Trace, is_number

# Ufuncs whose operator has another name; any other has its own.
NAMES = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "negative": "neg",
    "absolute": "abs",
    "power": "pow",
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}


def no_counterpart(name: str) -> AclnnError:
    return invalid(
        f"np.{name} has no counterpart among the operators: aclnn.call(np.{name}, ..., shape=..., "
        "dtype=...) embeds it as a step of the plan"
    )


# --- Ufuncs ---------------------------------------------------------------------------------------


def array_ufunc(
    trace: Trace, function: Any, method: str, inputs: Sequence[Any], options: dict[str, Any]
) -> Any:
    """What NumPy hands over when a ufunc is called with a traced array."""
    name = function.__name__
    out = options.pop("out", None)
    if method == "reduce" and name == "add" and out is None:
        return reduce_sum(trace.taken(inputs[0]), *inputs[1:], **options)
    if method != "__call__":
        raise no_counterpart(f"{name}.{method}")
    if options:
        raise invalid(f"np.{name}: {next(iter(options))} cannot be traced; out can")
    if isinstance(out, tuple):
        (out,) = out
    return ufunc(trace, name, inputs, out=out)


def ufunc(trace: Trace, name: str, operands: Sequence[Any], out: Any = None) -> Any:
    """The result of a ufunc, recorded."""
    if name in _OWN:
        return _written(_OWN[name](trace, *operands), out)
    operator = NAMES.get(name, name)
    if operator not in HANDLES_BY_NAME:
        raise no_counterpart(name)
    if operator in _EXCHANGE and is_number(operands[0]):
        number, array = operands
        return _EXCHANGE[operator](trace, number, array, out)
    return trace.form(operator, *operands, out=out)


def _written(result: Any, out: Any) -> Any:
    if out is None:
        return result
    out.assign(result)
    return out


def _commuted(name: str) -> Callable[..., Any]:
    return lambda trace, a, b, out: trace.form(name, b, a, out=out)


def _number_minus(trace: Trace, number: Any, array: Any, out: Any) -> Any:
    return trace.form("add", trace.form("neg", array), number, out=out)  # the same bits


# What becomes of a number as the first operand; others take it as an array.
_EXCHANGE = {
    "add": _commuted("add"),
    "mul": _commuted("mul"),
    "sub": _number_minus,
    "eq": _commuted("eq"),
    "ne": _commuted("ne"),
    "lt": _commuted("gt"),
    "le": _commuted("ge"),
    "gt": _commuted("lt"),
    "ge": _commuted("le"),
}


def _power(trace: Trace, base: Any, exponent: Any) -> Any:
    if "pow" in HANDLES_BY_NAME:
        return trace.form("pow", base, exponent)
    if not is_number(exponent) or exponent not in _POWERS:
        known = ", ".join(str(one) for one in _POWERS)
        raise invalid(
            f"a power with the exponent {shown(exponent)} has no counterpart among the operators: "
            f"only {known}; aclnn.call embeds np.power as a step of the plan"
        )
    return _POWERS[exponent](trace, trace.taken(base))


_POWERS: dict[float, Callable[[Trace, Any], Any]] = {
    -1: lambda trace, x: trace.form("div", 1, x),
    0.5: lambda trace, x: trace.form("sqrt", x),
    1: lambda _, x: x.copy(),
    2: lambda trace, x: trace.form("mul", x, x),
    3: lambda trace, x: trace.form("mul", trace.form("mul", x, x), x),
}

_OWN: dict[str, Callable[..., Any]] = {
    "power": _power,
    "square": lambda trace, x: trace.form("mul", x, x),
    "positive": lambda _, x: x.copy(),
    "reciprocal": lambda trace, x: trace.form("div", 1, x),
}


# --- Functions ------------------------------------------------------------------------------------


def array_function(array: Any, function: Any, args: Any, options: Any) -> Any:
    """What NumPy hands over when one of its functions is called with a traced array."""
    if function not in COUNTERPARTS:
        home = function.__module__.removeprefix("numpy").removeprefix(".")
        raise no_counterpart(f"{home}.{function.__name__}" if home else function.__name__)
    return COUNTERPARTS[function](array.trace, *args, **options)


def reduce_sum(
    array: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False, **options: Any
) -> Any:
    """Sum over dimensions; None stands for all."""
    if options:
        raise invalid(f"np.sum: {next(iter(options))} cannot be traced")
    return functional.sum(array, axis, _kept(keepdims), dtype=dtype)


def reduce_mean(array: Any, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    """Mean over dimensions; None stands for all."""
    return functional.mean(array, axis, _kept(keepdims), dtype=dtype)


def reduce_max(array: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """Largest element along dimensions; None stands for all."""
    return functional.amax(array, axis, _kept(keepdims))


def reduce_var(array: Any, axis: Any = None, ddof: Any = 0, keepdims: Any = False) -> Any:
    """Variance over dimensions, of which None stands for all; its divisor is smaller by `ddof`."""
    return functional.var(array, axis, correction=ddof, keepdim=_kept(keepdims))


def clipped(array: Any, low: Any = None, high: Any = None) -> Any:
    """The elements, those beyond limits replaced by these."""
    return functional.clamp(array, low, high)


def _limits(low: Any, high: Any, least: Any, most: Any) -> tuple[Any, Any]:
    """Limits by either of the names that np.clip has for them."""
    return (least if low is None else low), (most if high is None else high)


def _kept(keepdims: Any) -> bool:
    return keepdims is not np._NoValue and bool(keepdims)


def _where(trace: Trace, condition: Any, *pair: Any) -> Any:
    if len(pair) != 2:
        raise no_counterpart("where with one argument")
    if all(map(is_number, pair)):
        raise invalid("np.where of two numbers: one of them must be an array")
    arrays = [one for one in pair if not is_number(one)]
    pair = tuple([trace.number(x, arrays[0].dtype) if is_number(x) else x for x in pair])
    return trace.form("where", condition, *pair)


def _concatenate(trace: Trace, arrays: Any, axis: Any = 0, out: Any = None, **options: Any) -> Any:
    if options:
        raise invalid(f"np.concatenate: {next(iter(options))} cannot be traced")
    parts = [trace.taken(one) for one in arrays]
    if axis is None:
        parts, axis = [one.reshape(-1) for one in parts], 0
    return functional.cat(parts, axis, out=out)


def _stack(trace: Trace, arrays: Any, axis: int = 0, out: Any = None) -> Any:
    parts = [_expand_dims(trace, one, axis) for one in arrays]
    return _concatenate(trace, parts, axis, out)


def _expand_dims(trace: Trace, array: Any, axis: Any) -> Any:
    array = trace.taken(array)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    rank = array.ndim + len(axes)
    places = {one % rank for one in axes}
    return array[tuple([None if n in places else slice(None) for n in range(rank)])]


def _moveaxis(trace: Trace, array: Any, source: Any, destination: Any) -> Any:
    array = trace.taken(array)
    moved = np.moveaxis(np.empty((1,) * array.ndim), source, destination)  # checks them
    del moved
    old = [one % array.ndim for one in np.atleast_1d(source).tolist()]
    new = [one % array.ndim for one in np.atleast_1d(destination).tolist()]
    order = [n for n in range(array.ndim) if n not in old]
    for to, at in sorted(zip(new, old, strict=True)):
        order.insert(to, at)
    return array.transpose(order)


def _flip(trace: Trace, array: Any, axis: Any = None) -> Any:
    array = trace.taken(array)
    axes = range(array.ndim) if axis is None else np.atleast_1d(axis).tolist()
    places = {one % array.ndim for one in axes}
    back = slice(None, None, -1)
    return array[tuple([back if n in places else slice(None) for n in range(array.ndim)])]


def _max(trace: Trace, array: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return _written(reduce_max(trace.taken(array), axis, keepdims), out)


def _method(name: str) -> Callable[..., Any]:
    return lambda trace, array, *args, **options: getattr(trace.taken(array), name)(
        *args, **options
    )


def _full_like(trace: Trace, array: Any, number: Any, dtype: Any = None) -> Any:
    like = trace.taken(array)
    kind = like.dtype if dtype is None else np.dtype(dtype)
    return trace.number(number, kind).broadcast_to(like.shape).copy()


COUNTERPARTS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.sum: lambda trace, array, axis=None, dtype=None, out=None, keepdims=False: _written(
        reduce_sum(trace.taken(array), axis, dtype, keepdims), out
    ),
    np.mean: lambda trace, array, axis=None, dtype=None, out=None, keepdims=False: _written(
        reduce_mean(trace.taken(array), axis, dtype, keepdims), out
    ),
    np.max: _max,
    np.amax: _max,
    np.var: lambda trace, array, axis=None, out=None, ddof=0, keepdims=False: _written(
        reduce_var(trace.taken(array), axis, ddof, keepdims), out
    ),
    np.clip: lambda trace, array, a_min=None, a_max=None, out=None, min=None, max=None: _written(
        clipped(trace.taken(array), *_limits(a_min, a_max, min, max)), out
    ),
    np.expand_dims: _expand_dims,
    np.moveaxis: _moveaxis,
    np.flip: _flip,
    np.transpose: lambda trace, array, axes=None: trace.taken(array).transpose(axes),
    np.permute_dims if hasattr(np, "permute_dims") else "permute_dims": (
        lambda trace, array, axes=None: trace.taken(array).transpose(axes)
    ),
    np.swapaxes: _method("swapaxes"),
    np.reshape: _method("reshape"),
    np.ravel: _method("ravel"),
    np.squeeze: _method("squeeze"),
    np.broadcast_to: _method("broadcast_to"),
    np.copy: _method("copy"),
    np.shape: lambda _, array: array.shape,
    np.ndim: lambda _, array: array.ndim,
    np.size: lambda _, array, axis=None: array.size if axis is None else array.shape[axis],
    np.zeros_like: lambda trace, array, dtype=None: _full_like(trace, array, 0, dtype),
    np.ones_like: lambda trace, array, dtype=None: _full_like(trace, array, 1, dtype),
    np.full_like: _full_like,
    np.result_type: lambda _, *args: np.result_type(
        *[one.dtype if hasattr(type(one), "__aclnn_function__") else one for one in args]
    ),
}
