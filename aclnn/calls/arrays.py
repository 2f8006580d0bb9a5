"""Arrays of other kinds: what the functional layer takes besides plain NumPy arrays.

Anything with ``__dlpack__`` (PyTorch's CPU tensors, bfloat16 included) or
``__array_interface__`` is read in place; results come back in the caller's kind.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from aclnn.acl import _dlpack, dtypes
from aclnn.acl._buffer import refuse_mask
from aclnn.acl.errors import AclnnError, invalid
from aclnn.calls._operand import reads
from aclnn.operators.rules import MAX_DIMS


def as_ndarray(given: Any, name: str) -> np.ndarray:
    """See another kind of array as a NumPy array, without copying.

    Parameters
    ----------
    given : object
        A NumPy array, or anything with ``__dlpack__`` or ``__array_interface__``.
    name : str
        What the caller calls it, for messages.

    Raises
    ------
    AclnnError
        With status ACLNN_ERR_PARAM_INVALID, if it is no such thing, or a masked array.
    """
    if isinstance(given, np.ndarray):
        refuse_mask(given, name)
        return given
    try:
        array = _dlpack.array_of(given)
    except Exception as error:  # whatever the object raises
        raise invalid(f"{name} cannot be read as an array: {error}") from error
    if array is not None:
        return array
    raise invalid(
        f"{name} is {type(given).__name__}, must be a NumPy array or have __dlpack__ or "
        "__array_interface__"
    )


def like(kind: Any, array: np.ndarray) -> Any:
    """Hand `array` over as the kind of array that `kind` is, without copying."""
    if isinstance(kind, np.ndarray | np.generic) or not hasattr(kind, "__dlpack__"):
        return array
    for library in _libraries_of(kind):
        if hasattr(library, "from_dlpack"):
            return library.from_dlpack(_dlpack.to_dlpack(array))
    return array


def like_inputs(inputs: Sequence[Any], result: np.ndarray) -> Any:
    """Hand a result over as the kind of array that the first input has which is not NumPy's."""
    kind = next((given for given in inputs if not isinstance(given, np.ndarray)), result)
    return like(kind, result)


def mark_written(given: Any) -> None:
    """Tell the library of an array that its elements were changed, where it wants to know.

    PyTorch counts changes of a tensor, so that gradients that need what was there before are refused.
    """
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    if torch is not None and tensor is not None and isinstance(given, tensor):
        torch.autograd.graph.increment_version(given)


def _libraries_of(kind: Any) -> Iterator[Any]:
    """The modules that may know how to make an array of this kind, the likeliest first."""
    if hasattr(kind, "__array_namespace__"):
        yield kind.__array_namespace__()
    for base in type(kind).__mro__:
        yield sys.modules.get(base.__module__.partition(".")[0])


def readable(array: np.ndarray, name: str) -> np.ndarray:
    """The array itself, or a copy where its bytes are swapped or misaligned."""
    check(array, name)
    if reads(array):
        return array
    copy = np.array(array, dtype=array.dtype.newbyteorder("="), order="C")
    if not reads(copy):
        raise _unknown(array, name)
    return copy


def check(array: np.ndarray, name: str) -> None:
    """Refuse what cannot be described to an operator at all."""
    if array.ndim > MAX_DIMS:
        raise invalid(f"{name} has {array.ndim} dimensions, at most {MAX_DIMS} are supported")
    if not dtypes.is_known(array.dtype):
        raise _unknown(array, name)


def _unknown(array: np.ndarray, name: str) -> AclnnError:
    return invalid(f"{name} has dtype {array.dtype}, which no operator takes")


def call_foreign(
    handle: Any,
    given: Sequence[Any],
    out: Any,
    numbers: Sequence[Any],
    switches: Sequence[Any] | None,
) -> Any:
    """Run a functional form on operands of which at least one is no plain NumPy array."""
    operands = [
        readable(as_ndarray(operand, role), role)
        for operand, role in zip(given, handle.handle.operator.kernel_operands, strict=True)
    ]
    if out is None:
        return like_inputs(given, handle.call(operands, None, numbers, switches))
    name = handle.names["out"]
    if isinstance(out, np.generic):
        raise invalid(
            f"{handle.name}: {name} is a NumPy scalar, which cannot be written; "
            "use an array of shape ()"
        )
    target = as_ndarray(out, name)
    check(target, name)
    if reads(target):
        handle.call(operands, target, numbers, switches)
        mark_written(out)
        return out
    if not target.flags.writeable:
        raise invalid(f"{handle.name}: {name} is read-only")
    # Kernels cannot write there: compute beside it, then copy.
    beside = readable(target, name)
    handle.call(operands, beside, numbers, switches)
    np.copyto(target, beside)
    mark_written(out)
    return out
