"""Arrays of other libraries as operands of the functional layer.

Anything with ``__dlpack__`` (PyTorch's CPU tensors, bfloat16 included) or
``__array_interface__``, memoryviews and array.array are read in place; results come back in the caller's
kind. Lists and tuples become arrays. Numbers of Python's have no dtype, nor has a list of them: it gets
that of the arrays with it, as a single number does.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from aclnn.acl import _dlpack, dtypes
from aclnn.acl._buffer import refuse_mask
from aclnn.acl.arguments import shown
from aclnn.acl.constants import aclDataType
from aclnn.acl.errors import AclnnError, invalid, wrong_kind
from aclnn.execution import array_kinds
from aclnn.execution._operand import reads
from aclnn.execution.unreadable import refuse_unreadable
from aclnn.operators.checks import MAX_DIMS

Shape = tuple[int, ...]


def as_ndarray(value: Any, name: str) -> np.ndarray:
    """See another kind of array as a NumPy array, without copying.

    Parameters
    ----------
    value : object
        A NumPy array, a memoryview, an array.array, or anything with ``__dlpack__`` or
        ``__array_interface__``.
    name : str
        What the caller calls it, for messages.

    Raises
    ------
    AclnnError
        With status ACLNN_ERR_PARAM_INVALID, if it is no such thing, or a masked array.
    """
    if isinstance(value, np.ndarray):
        refuse_mask(value, name)
        return value
    if is_torch(value):
        refuse_unreadable(value, name)
    if is_dask(value):
        raise wrong_kind(f"{name} is an array of Dask's, not in memory; use {name}.compute()")
    try:
        if isinstance(value, memoryview | array):
            return np.asarray(value)
        found = _dlpack.array_of(_untracked(value))
    except Exception as error:  # whatever the object raises
        raise wrong_kind(f"{name} cannot be read as an array: {error}") from error
    if found is not None:
        return found
    if isinstance(value, list | tuple):
        raise wrong_kind(f"{name} is {_a(value)}, which cannot be written; give an array")
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        raise wrong_kind(f"{name} is {shown(value)}, must be an array")
    raise wrong_kind(
        f"{name} is {_a(value)}, must be an array, or have __dlpack__ or __array_interface__"
    )


def as_ndarrays(operator: Any, operands: Sequence[tuple[str, Any]]) -> list[np.ndarray | None]:
    """All inputs as NumPy arrays; None stays None.

    Parameters
    ----------
    operator : Operator
    operands : sequence of (str, object)
        With their roles, as `taken_apart` gives them.

    Examples
    --------
    >>> from aclnn.operators import REGISTRY
    >>> x = np.zeros(2, np.float16)
    >>> [one.dtype.name for one in as_ndarrays(REGISTRY["add"], [("self", x), ("other", [1, 2.5])])]
    ['float16', 'float16']
    """
    return [
        None if one is None else as_ndarray(one, role)
        for role, one in with_arrays_for_lists(operator, operands)
    ]


def with_arrays_for_lists(
    operator: Any, operands: Sequence[tuple[str, Any]]
) -> Sequence[tuple[str, Any]]:
    """Operands with NumPy arrays in the place of lists and tuples."""
    if not any(_is_list(one) for _, one in operands):
        return operands
    own = _with_own_dtype(operator)
    tensors = [
        _dtype_of(one, role)
        for role, one in operands
        if one is not None and role not in own and not _has_no_dtype(one)
    ]
    found = []
    for role, one in operands:
        read = _from_list(one, role) if _is_list(one) else one
        if _is_list(one) and _has_no_dtype(one):
            others = () if role in own else tensors
            read = read.astype(_dtype_with(_PYTHON[read.dtype.kind], others))
        found.append((role, read))
    return found


def _dtype_of(value: Any, role: str) -> np.dtype:
    if hasattr(type(value), "__aclnn_function__") or is_dask(value):
        return value.dtype
    return (_from_list(value, role) if _is_list(value) else as_ndarray(value, role)).dtype


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _has_no_dtype(value: Any) -> bool:
    """Whether a list has nothing but Python's own numbers."""
    if _is_list(value):
        return all(map(_has_no_dtype, value))
    return isinstance(value, _NUMBERS) and not isinstance(value, np.generic)


def _from_list(value: Any, name: str) -> np.ndarray:
    try:
        read = np.asarray(value)
    except Exception as error:  # rows of different lengths, or whatever the elements raise
        raise wrong_kind(f"{name} is {_a(value)} that is no array: {error}") from None
    if not dtypes.is_known(read.dtype):
        element = type(read.flat[0].item() if read.dtype.kind in "US" else read.flat[0]).__name__
        raise wrong_kind(f"{name} is {_a(value)} of {element}, must be one of numbers")
    return read


def alone(value: Any, name: str) -> np.ndarray:
    """An array, or a list as it is without arrays with it.

    >>> alone([1.0, 2.0], "x").dtype
    dtype('float32')
    """
    if not _is_list(value):
        return as_ndarray(value, name)
    read = _from_list(value, name)
    return from_list(value, name, _dtype_with(_PYTHON[read.dtype.kind], ()))


def from_list(value: Any, name: str, dtype: np.dtype) -> np.ndarray:
    """A list as an array of a planned dtype, unless it has one of its own."""
    read = _from_list(value, name)
    return read.astype(dtype) if _has_no_dtype(value) else read


def conversion(name: str, value: Any, dtype: aclDataType) -> str:
    """An expression that converts an operand as its library does.

    >>> conversion("x", np.zeros(3), aclDataType.ACL_FLOAT), conversion("x", [1], aclDataType.ACL_BF16)
    ('x.astype(np.float32)', 'np.asarray(x, ml_dtypes.bfloat16)')
    """
    if is_torch(value):
        return f"{name}.to(torch.{dtypes.name(dtype)})"
    if hasattr(value, "astype"):
        return f"{name}.astype({numpy_word(dtype)})"
    return f"np.asarray({name}, {numpy_word(dtype)})"


def numpy_word(dtype: aclDataType) -> str:
    """An expression for a dtype.

    >>> numpy_word(aclDataType.ACL_BOOL), numpy_word(aclDataType.ACL_BF16)
    ('np.bool', 'ml_dtypes.bfloat16')
    """
    name = dtypes.name(dtype)
    return f"np.{name}" if hasattr(np, name) else f"ml_dtypes.{name}"


def _a(value: Any) -> str:
    """
    >>> _a([]), _a(array("f"))
    ('a list', 'an array')
    """
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def is_torch(value: Any) -> bool:
    """Whether it is a tensor of PyTorch's; loads nothing."""
    return array_kinds.is_of("torch", value)


def prepare_for(operands: Sequence[Any], out: Any) -> None:
    """Load what takes calls over on tensors of PyTorch's that require grad, or have no memory, if one
    of them does."""
    torch = sys.modules.get("torch")
    kind = getattr(torch, "Tensor", None)
    if torch is None or kind is None:
        return
    several = [one if isinstance(one, list | tuple) else (one,) for one in (*operands, out)]
    for one in (one for group in several for one in group):
        if not isinstance(one, kind):
            continue
        if one.is_meta or (one.requires_grad and torch.is_grad_enabled()):
            array_kinds.load("torch")
            return


def _untracked(value: Any) -> Any:
    """A tensor of PyTorch's without its gradient, where gradients are switched off."""
    torch = sys.modules.get("torch")
    kind: Any = getattr(torch, "Tensor", None)
    if torch is None or kind is None or not isinstance(value, kind):
        return value
    requested = value.requires_grad and torch.is_grad_enabled()
    return value if requested else value.detach()


def like(kind: Any, array: np.ndarray) -> Any:
    """Hand `array` over as the kind of array that `kind` is, without copying."""
    return handed_to(library_of(kind), array)


def library_of(kind: Any) -> Any:
    """Library that takes arrays over as `kind`; None for NumPy's."""
    if isinstance(kind, np.ndarray | np.generic) or not hasattr(kind, "__dlpack__"):
        return None
    return next((one for one in _libraries_of(kind) if hasattr(one, "from_dlpack")), None)


def handed_to(library: Any, array: np.ndarray) -> Any:
    """An array as its library's kind, without copying."""
    return array if library is None else library.from_dlpack(_dlpack.to_dlpack(array))


def like_inputs(inputs: Sequence[Any], result: np.ndarray) -> Any:
    """Hand a result over as the kind of array that the first input has which is not NumPy's."""
    found = (library_of(value) for value in inputs)
    return handed_to(next((one for one in found if one is not None), None), result)


def mark_written(value: Any) -> None:
    """Tell the library of an array that its elements were changed, where it wants to know.

    PyTorch counts changes of a tensor, so that gradients that need what was there before are refused.
    """
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    if torch is not None and tensor is not None and isinstance(value, tensor):
        torch.autograd.graph.increment_version(value)


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
    return wrong_kind(f"{name} has dtype {array.dtype}, which no operator takes")


def call_foreign(
    handle: Any,
    arguments: Sequence[Any],
    out: Any,
    numbers: Sequence[Any],
    switches: Sequence[Any] | None,
) -> Any:
    """Run a functional form on operands of which at least one is no plain NumPy array, or a list.

    An operand that has `__aclnn_function__` takes the call over: it is called with the handle, all
    operands, `out`, numbers and switches. So does `aclnn.dask` for arrays of Dask's.
    """
    operands, callers = taken_apart(handle.handle.operator, arguments)
    for one in (*callers, *(out if isinstance(out, tuple | list) else (out,))):
        if hasattr(type(one), "__aclnn_function__"):
            return one.__aclnn_function__(handle, arguments, out, numbers, switches)
        if is_dask(one):
            return array_kinds.function("dask", "call")(handle, arguments, out, numbers, switches)
    found = as_ndarrays(handle.handle.operator, operands)
    deep = [one for one in found if one is not None and one.ndim > MAX_DIMS]
    if deep and handle.handle.operator.any_rank:
        named = [(role, one) for (role, _), one in zip(operands, found, strict=True)]
        if _is_flat(handle.handle.operator, named):
            return _call_flat(handle, named, callers, out, numbers, switches)
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
    places = [_writable(handle, name, target) for name, target in targets]
    made = handle.call(inputs, [temporary for temporary, _ in places], numbers, switches)
    for (temporary, target), (_, given_out) in zip(places, targets, strict=True):
        if target is not temporary:
            np.copyto(target, temporary)
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


def is_dask(value: Any) -> bool:
    """Whether this is an array of Dask's, which is not loaded for that."""
    return array_kinds.is_of("dask", value)


def _is_flat(operator: Any, inputs: Sequence[tuple[str, Any]]) -> bool:
    """Whether all inputs that are read have one shape."""
    shapes = {one.shape for role, one in inputs if role not in operator.unread}
    return len(shapes) == 1


def _call_flat(
    handle: Any,
    inputs: Sequence[tuple[str, Any]],
    callers: Sequence[Any],
    out: Any,
    numbers: Sequence[Any],
    switches: Sequence[Any] | None,
) -> Any:
    """Run on arrays of more dimensions than plans have as if they had one, or one and what is around it."""
    shape = inputs[0][1].shape
    flat, switches = _flattened(handle.handle.operator, shape, switches)
    arrays = [None if one is None else readable(one.reshape(flat), role) for role, one in inputs]
    roles = handle.outputs_of(arrays, switches)
    targets = [(name, None) for name in roles] if out is None else _targets(handle, roles, out)
    places = [_room_of(name, value, shape) for name, value in targets]
    temporaries = [None if one is None else np.empty(shape, one.dtype) for one in places]
    rooms = [None if one is None else one.reshape(flat) for one in temporaries]
    made = handle.call(arrays, rooms, numbers, switches)
    found = []
    for one, temporary, index, (_, value) in zip(made, temporaries, places, targets, strict=True):
        if index is None or temporary is None:
            found.append(like_inputs(callers, one.reshape(shape)))
            continue
        np.copyto(index, temporary)
        mark_written(value)
        found.append(value)
    if out is not None and all(value is not None for _, value in targets):
        return out
    return found[0] if len(found) == 1 else tuple(found)


def _flattened(
    operator: Any, shape: Shape, switches: Sequence[Any] | None
) -> tuple[Shape, Sequence[Any] | None]:
    """The shape that a call is run with, and its switches there: a dimension that one names is kept."""
    index = operator.dim_switch
    if index < 0:
        return (-1,), switches
    arguments = [a.default for a in operator.switches] if switches is None else [*switches]
    dim, rank = arguments[index], len(shape)
    if not -rank <= dim < rank:
        raise invalid(f"dim is {dim}, must be from {-rank} to {rank - 1}")
    axis, arguments[index] = dim % rank, 1
    return (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])), tuple(arguments)


def _room_of(name: str, value: Any, shape: Shape) -> Any:
    """The array that gets a result of a shape; None where it is made."""
    if value is None:
        return None
    target = as_ndarray(value, name)
    if target.shape != shape:
        raise invalid(f"{name} has shape {target.shape}, but must have {shape}")
    if not target.flags.writeable:
        raise invalid(f"{name} is read-only, but is the output")
    return target


def taken_apart(operator: Any, arguments: Sequence[Any]) -> tuple[list[tuple[str, Any]], list[Any]]:
    """The operands of a call with their roles, lists of arrays taken apart; and all that are there.

    An input that may be left out is None; numbers have become arrays without dimensions.
    """
    if operator.numbers:
        arguments = _with_arrays_for_numbers(operator, arguments)
    found: list[tuple[str, Any]] = []
    for role, operand in zip(operator.kernel_operands, arguments, strict=True):
        if role in operator.lists:
            missing = operand is None and role in operator.optional
            items = () if missing else _listed(role, operand)
            if operator.absent_items:
                items = _indices(role, items)
            found += [(f"{role}[{n}]", one) for n, one in enumerate(items)]
            if operator.is_ended(role):
                if any(one is None for one in items):
                    raise wrong_kind(f"{role} has None among its arrays")
                found.append((role, None))
        elif operand is None and role not in operator.optional:
            raise wrong_kind(f"{role} is None, must be an array")
        else:
            found.append((role, operand))
    return found, [operand for _, operand in found if operand is not None]


def _indices(role: str, items: Sequence[Any]) -> list[Any]:
    """Indices for each dimension: None is an empty array of uint8, a mask the indices of what is true.

    >>> [one.tolist() for one in _indices("indices", [None, np.array([True, False, True])])]
    [[], [0, 2]]
    """
    found: list[Any] = []
    for index, one in enumerate(items):
        if one is None:
            found.append(np.empty(0, np.uint8))
        elif hasattr(type(one), "__aclnn_function__"):
            found.append(one)
        else:
            array = _from_list(one, role) if _is_list(one) else as_ndarray(one, f"{role}[{index}]")
            is_mask = array.dtype == np.bool_ and array.ndim > 0
            found += np.nonzero(array) if is_mask else [one]
    return found


def _with_arrays_for_numbers(operator: Any, arguments: Sequence[Any]) -> list[Any]:
    """A number is of the dtype that tensors have, unless it is of another kind than these."""
    roles = operator.kernel_operands
    numbers = {
        role
        for role, one in zip(roles, arguments, strict=True)
        if role in operator.numbers
        and isinstance(one, _NUMBERS)
        and not isinstance(one, np.generic)
    }
    if not numbers:
        return list(arguments)
    own = _with_own_dtype(operator)
    tensors = [
        _dtype_of(one, role)
        for role, one in zip(roles, arguments, strict=True)
        if role not in numbers and role not in own and not _has_no_dtype(one)
    ]
    return [
        _array_of_number(one, role, tensors) if role in numbers else one
        for role, one in zip(roles, arguments, strict=True)
    ]


def _with_own_dtype(operator: Any) -> frozenset[str]:
    """Operands that have another dtype than the others: masks, indices."""
    return frozenset(
        [
            role
            for role in operator.kernel_operands
            if "dtype" in operator.sample_specs.get(role, {})
        ]
    )


_NUMBERS = (bool, int, float, complex)
_PYTHON = {"b": bool, "i": int, "u": int, "f": float, "c": complex}
# The kinds of dtypes in order, and what a number is with tensors of an earlier kind.
_KINDS = ("b", "iu", "fV", "c")
_OWN = {bool: np.bool_, int: np.int64, float: np.float32, complex: np.complex64}


def _array_of_number(number: Any, role: str, tensors: Sequence[np.dtype]) -> np.ndarray:
    kind = next(kind for kind in _NUMBERS if isinstance(number, kind))
    dtype = _dtype_with(kind, tensors)
    try:
        with np.errstate(all="ignore"):
            return np.asarray(number).astype(dtype)
    except (OverflowError, TypeError, ValueError):
        raise invalid(f"{role} is {shown(number)}, which {dtype} does not hold") from None


def _dtype_with(kind: type, tensors: Sequence[np.dtype]) -> np.dtype:
    """Dtype of a Python number in a call with tensors."""
    own = np.dtype(_OWN[kind])
    if kind is complex and np.dtype(np.float64) in tensors:
        return np.dtype(np.complex128)
    return next((one for one in tensors if _rank(one) >= _rank(own)), own)


def _rank(dtype: np.dtype) -> int:
    return next((n for n, kinds in enumerate(_KINDS) if dtype.kind in kinds), 0)


def _listed(role: str, operand: Any) -> Sequence[Any]:
    if isinstance(operand, str | bytes) or not hasattr(operand, "__iter__"):
        raise wrong_kind(f"{role} is {_a(operand)}, must be a sequence of arrays")
    return list(operand)


def _targets(handle: Any, roles: Sequence[str], out: Any) -> list[tuple[str, Any]]:
    """Arrays to write into, with the names of the outputs."""
    if len(roles) == 1 and not handle.handle.makes_list:
        return [(handle.names["out"], out)]
    if not isinstance(out, tuple | list) or len(out) != len(roles):
        raise invalid(f"out must be a tuple of {len(roles)} arrays: {', '.join(roles)}")
    return list(zip(roles, out, strict=True))


def _writable(handle: Any, name: str, out: Any) -> tuple[Any, Any]:
    """The array that kernels write, and the array that gets the result: mostly the same."""
    if out is None:
        return None, None
    if isinstance(out, np.generic):
        raise invalid(
            f"{name} is a NumPy scalar, which cannot be written; use an array of shape ()"
        )
    target = as_ndarray(out, name)
    check(target, name)
    if reads(target):
        return target, target
    if not target.flags.writeable:
        raise invalid(f"{name} is read-only")
    # Kernels cannot write there: compute elsewhere, then copy.
    return readable(target, name), target
