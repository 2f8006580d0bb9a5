"""Objects of Python by the handles that programs in C have of them."""

from __future__ import annotations

import weakref
from typing import Any

from aclnn.acl import _runtime

_made_here: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_made_in_c: dict[int, Any] = {}  # until they are destroyed: captures know them by their objects
_numbered: dict[int, Any] = {}  # models and task groups that programs in C were given


def handle_of(made: Any) -> int:
    """The handle of a stream or event, which is looked up by it from now on."""
    handle = int(made.own_handle)
    if handle not in _made_in_c:
        _made_here[handle] = made
    return handle


def drop(destroyed: Any) -> None:
    """Forget a stream or event."""
    _made_here.pop(destroyed.own_handle, None)
    _made_in_c.pop(destroyed.own_handle, None)


def found(handle: int, kind: Any) -> Any:
    """The stream or event of a live handle, made for it if need be; None for anything else."""
    one = known(handle)
    if one is None:
        try:
            one = kind(handle)
        except ValueError:
            return None
        one = _made_in_c.setdefault(handle, one)
    return one


def known(handle: int) -> Any:
    """The stream or event of a handle that Python has an object of; None for others, which it has nothing to do with."""
    return _made_here.get(handle) or _made_in_c.get(handle)


def numbered(handle: int) -> Any:
    """The model or task group of a handle, or None."""
    return _numbered.get(handle)


def number(value: Any, kind: str) -> int:
    """The handle of a model ('m') or task group ('g')."""
    handle = getattr(value, "_handle", None)
    if handle is None:
        handle = value._handle = _runtime.Handle(kind)
        _numbered[handle.value] = value
    return int(handle.value)


def forget(value: Any) -> None:
    """End the handle of a model or task group, if it has one."""
    handle = getattr(value, "_handle", None)
    if handle is not None:
        _numbered.pop(handle.value, None)
        value._handle = None
