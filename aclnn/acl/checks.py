"""Checks that functions of the runtime share: handles, timeouts, devices, members of enumerations."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from aclnn.acl.arguments import as_int, as_member, shown
from aclnn.acl.constants import (
    ACL_ERROR_RT_INVALID_HANDLE,
    ACL_ERROR_RT_PARAM_INVALID,
    ACL_SUCCESS,
)
from aclnn.acl.errors import fail

OK = int(ACL_SUCCESS)


def bad_handle(function: str, name: str, handle: Any, kind: Any) -> int:
    """ACL_SUCCESS for a live handle, else 107017 and a message."""
    if handle is None:
        return fail(ACL_ERROR_RT_INVALID_HANDLE, f"{function}: {name} is null")
    if not isinstance(handle, kind):
        if isinstance(handle, int) and not isinstance(handle, bool):
            return fail(
                ACL_ERROR_RT_INVALID_HANDLE,
                f"{function}: {name} is {hex(handle)}, which is no live {kind.__name__}",
            )
        return fail(
            ACL_ERROR_RT_INVALID_HANDLE,
            f"{function}: {name} is {type(handle).__name__}, must be an {kind.__name__}",
        )
    return refuse_destroyed(function, name) if handle.destroyed else OK


def refuse_destroyed(function: str, name: str) -> int:
    """The status of a handle that is destroyed."""
    return fail(ACL_ERROR_RT_INVALID_HANDLE, f"{function}: {name} is destroyed")


LONGEST_MILLISECONDS = 10**10  # some months; clocks of some platforms end soon after


def milliseconds(function: str, timeout: Any) -> tuple[float | None, int]:
    """A limit in seconds, None for none; and the status of a timeout that is no limit."""
    number = as_int(timeout)
    if number is None or (number < 1 and number != -1):
        return None, fail(
            ACL_ERROR_RT_PARAM_INVALID,
            f"{function}: timeout is {shown(timeout)}, must be -1 or milliseconds from 1 on",
        )
    if number == -1:
        return None, OK
    return min(number, LONGEST_MILLISECONDS) / 1000, OK


def bad_member(function: str, name: str, value: Any, kind: type[IntEnum]) -> int:
    """ACL_SUCCESS for a member of an enumeration, or its number."""
    try:
        as_member(name, value, kind)
    except ValueError as error:
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"{function}: {error}")
    return OK
