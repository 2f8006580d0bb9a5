"""Arrays of other libraries as operands of the functional layer.

Anything with ``__dlpack__`` (PyTorch's CPU tensors, bfloat16 included) or
``__array_interface__`` is read in place; results come back in the caller's kind.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from aclnn.acl import _dlpack, dtypes
from aclnn.acl._buffer import refuse_mask
from aclnn.acl.arguments import shown
from aclnn.acl.errors import AclnnError, invalid
from aclnn.execution._operand import reads
from aclnn.operators.checks import MAX_DIMS


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
        array = _dlpack.array_of(_untracked(given))
    except Exception as error:  # whatever the object raises
        raise invalid(f"{name} cannot be read as an array: {error}") from error
    if array is not None:
        return array
    raise invalid(
        f"{name} is {type(given).__name__}, must be a NumPy array or have __dlpack__ or "
        "__array_interface__"
    )


def prepare_for(operands: Sequence[Any], out: Any) -> None:
    """Load what takes calls over on tensors of PyTorch's that require grad, if one of them does."""
    torch = sys.modules.get("torch")
    kind = getattr(torch, "Tensor", None)
    if torch is None or kind is None:
        return
    several = [one if isinstance(one, list | tuple) else (one,) for one in (*operands, out)]
    for one in (one for group in several for one in group):
        if isinstance(one, kind) and one.requires_grad and torch.is_grad_enabled():
            importlib.import_module("aclnn.torch")
            return


def _untracked(given: Any) -> Any:
    """A tensor of PyTorch's without its gradient, where gradients are switched off."""
    torch = sys.modules.get("torch")
    kind: Any = getattr(torch, "Tensor", None)
    if torch is None or kind is None or not isinstance(given, kind):
        return given
    wanted = given.requires_grad and torch.is_grad_enabled()
    return given if wanted else given.detach()


def like(kind: Any, array: np.ndarray) -> Any:
    """Hand `array` over as the kind of array that `kind` is, without copying."""
    return handed_to(library_of(kind), array)


def library_of(kind: Any) -> Any:
    """What takes arrays over as the kind of array that `kind` is; None for NumPy's."""
    if isinstance(kind, np.ndarray | np.generic) or not hasattr(kind, "__dlpack__"):
        return None
    return next((one for one in _libraries_of(kind) if hasattr(one, "from_dlpack")), None)


def handed_to(library: Any, array: np.ndarray) -> Any:
    """An array as its library's kind, without copying."""
    return array if library is None else library.from_dlpack(_dlpack.to_dlpack(array))


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
    """Run a functional form on operands of which at least one is no plain NumPy array, or a list.

    An operand that has `__aclnn_function__` takes the call over: it is called with the handle, all
    operands, `out`, numbers and switches. So does `aclnn.dask` for arrays of Dask's.
    """
    operands, callers = taken_apart(handle.handle.operator, given)
    for one in (*callers, *(out if isinstance(out, tuple | list) else (out,))):
        if hasattr(type(one), "__aclnn_function__"):
            return one.__aclnn_function__(handle, given, out, numbers, switches)
        if is_dask(one):
            taker = importlib.import_module("aclnn.dask").call
            return taker(handle, given, out, numbers, switches)
    found = [None if one is None else as_ndarray(one, role) for role, one in operands]
    deep = [one for one in found if one is not None and one.ndim > MAX_DIMS]
    if deep and handle.handle.operator.any_rank:
        return _call_flat(handle, deep, callers, out, numbers, switches)
    inputs = [
        None if one is None else readable(one, role)
        for (role, _), one in zip(operands, found, strict=True)
    ]
    roles = handle.outputs_of(inputs, switches)
    single = len(roles) == 1 and not handle.handle.makes_list
    if out is None:
        made = handle.call(inputs, [None] * len(roles), numbers, switches)
        found = [None if one is None else like_inputs(callers, one) for one in made]
        return found[0] if single else tuple(found)
    targets = _targets(handle, roles, out)
    places = [_beside(handle, name, target) for name, target in targets]
    made = handle.call(inputs, [beside for beside, _ in places], numbers, switches)
    for (beside, target), (_, given_out) in zip(places, targets, strict=True):
        if target is not beside:
            np.copyto(target, beside)
        if given_out is not None:
            mark_written(given_out)
    if single or all(given_out is not None for _, given_out in targets):
        return out
    return tuple(
        [
            like_inputs(callers, one) if given_out is None and one is not None else given_out
            for one, (_, given_out) in zip(made, targets, strict=True)
        ]
    )


def is_dask(given: Any) -> bool:
    """Whether this is an array of Dask's, which is not loaded for that."""
    kind = getattr(sys.modules.get("dask.array"), "Array", None)
    return kind is not None and isinstance(given, kind)


def _call_flat(
    handle: Any,
    inputs: Sequence[np.ndarray],
    callers: Sequence[Any],
    out: Any,
    numbers: Sequence[Any],
    switches: Sequence[Any] | None,
) -> Any:
    """Run on arrays of more dimensions than plans have as if they had one."""
    shape = inputs[0].shape
    arrays = [readable(one.reshape(-1), "input") for one in inputs]
    if out is None:
        (made,) = handle.call(arrays, [None], numbers, switches)
        return like_inputs(callers, made.reshape(shape))
    target = as_ndarray(out, handle.names["out"])
    if target.shape != shape:
        raise invalid(f"{handle.names['out']} has shape {target.shape}, but must have {shape}")
    if not target.flags.writeable:
        raise invalid(f"{handle.names['out']} is read-only, but is the output")
    beside = np.empty(target.size, target.dtype)
    handle.call(arrays, [beside], numbers, switches)
    np.copyto(target, beside.reshape(shape))
    mark_written(out)
    return out


def taken_apart(operator: Any, given: Sequence[Any]) -> tuple[list[tuple[str, Any]], list[Any]]:
    """The operands of a call with their roles, lists of arrays taken apart; and all that are there.

    An input that may be left out is None; numbers have become arrays without dimensions.
    """
    if operator.numbers:
        given = _with_arrays_for_numbers(operator, given)
    found: list[tuple[str, Any]] = []
    for role, operand in zip(operator.kernel_operands, given, strict=True):
        if role in operator.lists:
            found += [(f"{role}[{n}]", one) for n, one in enumerate(_listed(role, operand))]
        elif operand is None and role not in operator.optional:
            raise invalid(f"{role} is None, must be an array")
        else:
            found.append((role, operand))
    return found, [operand for _, operand in found if operand is not None]


def _with_arrays_for_numbers(operator: Any, given: Sequence[Any]) -> list[Any]:
    """A number is of the dtype that tensors have, unless it is of another kind than these."""
    roles = operator.kernel_operands
    numbers = {
        role
        for role, one in zip(roles, given, strict=True)
        if role in operator.numbers
        and isinstance(one, _NUMBERS)
        and not isinstance(one, np.generic)
    }
    if not numbers:
        return list(given)
    own = {role for role in roles if "dtype" in operator.unlike.get(role, {})}
    tensors = [
        one.dtype
        if hasattr(type(one), "__aclnn_function__") or is_dask(one)
        else as_ndarray(one, role).dtype
        for role, one in zip(roles, given, strict=True)
        if role not in numbers and role not in own
    ]
    return [
        _array_of_number(one, role, tensors) if role in numbers else one
        for role, one in zip(roles, given, strict=True)
    ]


_NUMBERS = (bool, int, float, complex)
# The kinds of dtypes in order, and what a number is beside tensors of an earlier kind.
_KINDS = ("b", "iu", "fV", "c")
_OWN = {bool: np.bool_, int: np.int64, float: np.float32, complex: np.complex64}


def _array_of_number(number: Any, role: str, tensors: Sequence[np.dtype]) -> np.ndarray:
    kind = next(kind for kind in _NUMBERS if isinstance(number, kind))
    own = np.dtype(_OWN[kind])
    dtype = next((one for one in tensors if _rank(one) >= _rank(own)), own)
    if kind is complex and np.dtype(np.float64) in tensors:
        dtype = np.dtype(np.complex128)
    try:
        with np.errstate(all="ignore"):
            return np.asarray(number).astype(dtype)
    except (OverflowError, TypeError, ValueError):
        raise invalid(f"{role} is {shown(number)}, which {dtype} does not hold") from None


def _rank(dtype: np.dtype) -> int:
    return next((n for n, kinds in enumerate(_KINDS) if dtype.kind in kinds), 0)


def _listed(role: str, operand: Any) -> Sequence[Any]:
    if isinstance(operand, str | bytes) or not hasattr(operand, "__iter__"):
        raise invalid(f"{role} is {type(operand).__name__}, must be a sequence of arrays")
    return list(operand)


def _targets(handle: Any, roles: Sequence[str], out: Any) -> list[tuple[str, Any]]:
    """What a caller gave to write into, with the names of the outputs."""
    if len(roles) == 1 and not handle.handle.makes_list:
        return [(handle.names["out"], out)]
    if not isinstance(out, tuple | list) or len(out) != len(roles):
        raise invalid(
            f"{handle.name}: out must be a tuple of {len(roles)} arrays: {', '.join(roles)}"
        )
    return list(zip(roles, out, strict=True))


def _beside(handle: Any, name: str, out: Any) -> tuple[Any, Any]:
    """Where kernels write, and the array that gets it: mostly the same."""
    if out is None:
        return None, None
    if isinstance(out, np.generic):
        raise invalid(
            f"{handle.name}: {name} is a NumPy scalar, which cannot be written; "
            "use an array of shape ()"
        )
    target = as_ndarray(out, name)
    check(target, name)
    if reads(target):
        return target, target
    if not target.flags.writeable:
        raise invalid(f"{handle.name}: {name} is read-only")
    # Kernels cannot write there: compute beside it, then copy.
    return readable(target, name), target
