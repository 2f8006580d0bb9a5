"""Calls of anything: a Python function as a step of a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl._frames import boundary
from aclnn.acl.arguments import shown
from aclnn.acl.errors import invalid, wrong_kind
from aclnn.api.options import as_dtype, as_ints
from aclnn.compiler._python_kernel import python_kernel
from aclnn.execution import arrays
from aclnn.tracing.array import TracedArray


@boundary
def call(function: Callable[..., Any], *operands: Any, shape: Any, dtype: Any) -> Any:
    """Call a function that writes into an array; in a compiled function, the call is a step.

    Parameters
    ----------
    function : callable
        Called as ``function(*views, out=view)``, with NumPy arrays. In a compiled function these
        are views of planned memory, which are invalid after the call.
    *operands : array
        Its inputs.
    shape : int or tuple of int
        Of the result.
    dtype : dtype
        Of the result.

    Returns
    -------
    array
        The result, in the caller's kind.

    Raises
    ------
    AclnnError
        If an operand is not an array, or the shape or dtype is invalid. Exceptions of the function
        reach the caller; an executor with this step stays usable.

    Examples
    --------
    >>> import numpy as np
    >>> import aclnn
    >>> @aclnn.compile
    ... def sorted_gate(x):
    ...     y = aclnn.silu(x)
    ...     return aclnn.call(lambda y, out: np.copyto(out, np.sort(y)), y,
    ...                       shape=y.shape, dtype=y.dtype)
    >>> sorted_gate(np.float32([1, -1, 0]))
    array([-0.26894143,  0.        ,  0.7310586 ], dtype=float32)
    """
    if not callable(function):
        raise wrong_kind(f"call: {shown(function)} is no function")
    sizes, kind = as_ints("call: shape", shape), as_dtype("call: dtype", dtype)
    if min(sizes, default=0) < 0:
        raise invalid(f"call: shape is {shown(shape)}, must have no negative size")
    traced = next((one for one in operands if isinstance(one, TracedArray)), None)
    if traced is not None:
        return _step(traced, function, operands, sizes, kind)
    arguments = [arrays.as_ndarray(one, f"operand {n}") for n, one in enumerate(operands)]
    out = np.empty(sizes, dtypes.NUMPY[kind])
    function(*arguments, out=out)
    return arrays.like_inputs(operands, out)


def _step(
    traced: TracedArray, function: Callable[..., Any], operands: Any, shape: Any, dtype: Any
) -> TracedArray:
    trace = traced.trace
    values = [trace.value_of(one, f"operand {n}") for n, one in enumerate(operands)]
    kinds = [dtypes.NUMPY[trace.recording.spec(value).dtype] for value in values]
    name = getattr(function, "__name__", type(function).__name__).strip("<>")
    kernel = python_kernel(trace.unkept(function), [*kinds, dtypes.NUMPY[dtype]], name)
    return trace.made(trace.recording.opaque(kernel, values, dtype, shape, name))


def of_kernel(kernel: str, *operands: Any, shape: Any, dtype: Any, **attrs: Any) -> TracedArray:
    """The result of a kernel that no operator has on these operands, in a compiled function.

    Parameters
    ----------
    kernel : str
        The name of its record.
    *operands : array
        At least one is traced.
    shape, dtype
        Of the result.
    **attrs
        What the kernel's maker reads.
    """
    traced = next(one for one in operands if isinstance(one, TracedArray))
    trace = traced.trace
    values = [trace.value_of(one, f"operand {n}") for n, one in enumerate(operands)]
    sizes, kind = tuple(map(int, shape)), as_dtype(f"{kernel}: dtype", dtype)
    return trace.made(trace.recording.computed(kernel, values, kind, sizes, **attrs))
