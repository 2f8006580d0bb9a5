"""The runtime's functions for programs in C, by the functions in Python.

Handles are numbers that stand for the objects in Python.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import aclnn
from aclnn.acl import memory
from aclnn.acl.constants import (
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
    ACL_ERROR_RT_INVALID_HANDLE,
    ACL_ERROR_RT_PARAM_INVALID,
)
from aclnn.acl.errors import fail
from aclnn.acl.prototypes import RUNTIME, Parameter

_FUNCTIONS = tuple(RUNTIME.values())
_HANDLES = ("aclrtStream", "aclrtEvent", "aclmdlRI", "aclrtTaskGrp", "aclrtContext")
_RESULTS = {
    "float *": ctypes.c_float,
    "uint64_t *": ctypes.c_uint64,
    "int64_t *": ctypes.c_int64,
    "size_t *": ctypes.c_size_t,
    "uint32_t *": ctypes.c_uint32,
    "void **": ctypes.c_void_p,
}
_objects: dict[int, object] = {}
_numbers = itertools.count(1)
_texts: list[Any] = []


def n_arguments(number: int) -> int:
    """How many parameters a function has."""
    return len(_FUNCTIONS[number].parameters)


def gives_status(number: int) -> bool:
    """Whether a function returns a status."""
    return _FUNCTIONS[number].returns == "aclError"


def stream_of(handle: int) -> tuple[int, Any]:
    """A status, and the stream of a handle."""
    if handle == 0:
        return 0, None
    if handle not in _objects:
        return fail(ACL_ERROR_RT_INVALID_HANDLE, "stream is no live handle"), None
    return 0, _objects[handle]


def _is_result(parameter: Parameter) -> bool:
    return parameter.is_result or parameter.type == "void **"


def call(number: int, arguments: list[int]) -> int:
    """Call a function with its arguments as numbers."""
    one = _FUNCTIONS[number]
    function = getattr(aclnn, one.name, None)
    if function is None:
        return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, f"{one.name}: is not there yet")
    given, results = [], []
    for parameter, value in zip(one.parameters, arguments, strict=True):
        if _is_result(parameter):
            if value == 0:
                return fail(ACL_ERROR_RT_PARAM_INVALID, f"{one.name}: {parameter.name} is null")
            results.append((parameter.type, value))
        else:
            given.append(_argument(one.name, parameter, value, arguments))
    found = function(*given)
    if one.returns == "const char *":
        _texts.append(ctypes.create_string_buffer(found.encode()))
        return ctypes.addressof(_texts[-1])
    if one.returns != "aclError":
        return found
    *values, status = found if isinstance(found, tuple) else (found,)
    if status == 0:
        for (kind, address), value in zip(results, values, strict=True):
            _write(kind, address, value)
    return status


def _argument(function: str, parameter: Parameter, value: int, arguments: list[int]) -> Any:
    if parameter.type in _HANDLES:
        return _objects.get(value, value) if value else None
    if parameter.type == "const char *":
        return ctypes.string_at(value).decode() if value else None
    if parameter.type.startswith(("int32", "uint32", "acl")):
        return ctypes.c_int32(value & 0xFFFFFFFF).value
    copied = parameter.name in ("dst", "src") and function in ("aclrtMemcpy", "aclrtMemcpyAsync")
    if copied and value and memory.owner_of(value) is None:
        return (ctypes.c_char * arguments[3]).from_address(value)
    return value


def _write(kind: str, address: int, value: Any) -> None:
    if kind.removesuffix(" *") in _HANDLES:
        number = id(value) if value is not None else 0
        if value is not None:
            _objects[number] = value
        ctypes.c_void_p.from_address(address).value = number
        return
    result: Any = _RESULTS.get(kind, ctypes.c_int32)
    result.from_address(address).value = value
