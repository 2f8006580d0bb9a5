"""Calls of programs in C that the Python layer serves: captures, models, and what they forbid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aclnn import deferred
from aclnn.acl import (
    _runtime,
    capture,
    context,
    copies,
    device,
    event_queries,
    events,
    lifetime,
    model_capture,
    model_ri,
    model_trace,
    registry,
    stream,
    task_groups,
)
from aclnn.acl.arguments import as_int, shown
from aclnn.acl.checks import bad_handle
from aclnn.acl.constants import (
    ACL_ERROR_RT_INVALID_HANDLE,
    ACL_ERROR_RT_PARAM_INVALID,
    ACL_SUCCESS,
)
from aclnn.acl.errors import fail, latest_failure

OK = int(ACL_SUCCESS)
_STREAM, _EVENT = 1, 2  # the kinds of handles, in their last four bits
_MODULES = (
    *(lifetime, device, context, stream, events, event_queries),
    *(model_ri, model_capture, task_groups, model_trace),
)


def object_of(handle: int) -> Any:
    """The object of a live handle, None for 0; the handle itself where it is not live."""
    if handle == 0:
        return None
    kind = handle & 15
    if kind == _STREAM:
        found = registry.found(handle, stream.aclrtStream)
    elif kind == _EVENT:
        found = registry.found(handle, events.aclrtEvent)
    else:
        found = registry.numbered(handle)
    return handle if found is None else found


def handle_of(value: Any) -> int:
    """The handle of a stream, event, model or task group."""
    if isinstance(value, stream.aclrtStream | events.aclrtEvent):
        return int(value.handle)
    return registry.number(value, "m" if isinstance(value, model_ri.aclmdlRI) else "g")


def call(name: str, arguments: list[Any]) -> Any:
    """Results and status of a call, or the status alone."""
    special = _SPECIAL.get(name)
    if special is not None:
        return special(*arguments)
    for module in _MODULES:
        if name in module.__all__:
            return getattr(module, name)(*arguments)
    raise LookupError(f"no function of programs in C is called {name}")


def _soc_name() -> tuple[int, int]:
    return _runtime.lasting(deferred.load("settings").aclrtGetSocName()), OK


def _refuse_event(function: str, name: str, handle: int) -> int:
    """ACL_SUCCESS, or the status of a question about an event that a capture has recorded."""
    event = registry.known(handle)
    found = None if event is None else capture.capture_of_event(event)
    return OK if found is None else found.refuse_event(function, name, event)


def _refuse_stream(function: str, handle: int) -> int:
    """ACL_SUCCESS, or the status of a question about a stream that is captured."""
    one = registry.known(handle)
    found = capture.capture_of(one)
    return OK if found is None else found.refuse(function, one)


def _note_done(handle: int) -> int:
    """A thread has waited for a stream or an event, or for every stream."""
    if handle == 0:
        stream.finished()
    elif (one := registry.known(handle)) is not None:
        one.noted(True)
    return OK


def number_of(value: Any) -> int | None:
    """An argument that is no int of Python's as one; None for what is no integer."""
    return as_int(value)


# Of a parameter, what messages call it.
_NAMES = {"devPtr": "address", "hostPtr": "address", "peerDeviceId": "deviceId"}
_KINDS = {"stream": stream.aclrtStream, "event": events.aclrtEvent}


def explain(function: str, parameter: str, value: Any, status: int) -> int:
    """Have the message of a failure show a value that C was not given, as it is no number of C's; the status."""
    if parameter in _KINDS:
        if status != ACL_ERROR_RT_INVALID_HANDLE:
            return status
        return bad_handle(function, parameter, value, _KINDS[parameter])
    _, message = latest_failure() or (status, "")
    begin = f"{function}: {_NAMES.get(parameter, parameter)} is "
    if not message.startswith(begin):
        return status
    text = "null" if parameter == "context" and value is None else shown(value)
    return fail(status, begin + text + message[len(begin) :].lstrip("-0123456789abcdefx"))


def _copy_later(
    function: str,
    dst: int,
    dpitch: int,
    src: int,
    spitch: int,
    width: int,
    height: int,
    kind: int,
    value: Any,
) -> int:
    """Queue a copy, or have a capture record it: addresses may be of the program's own memory."""
    try:
        copy = copies.Copy.of_program(function, dst, dpitch, src, spitch, width, height, kind)
    except ValueError as error:
        return fail(ACL_ERROR_RT_PARAM_INVALID, f"{function}: {error}")
    return copies.queue_copy(copy, value)


def _fill_later(address: int, room: int, value: int, count: int, argument: Any) -> int:
    return copies.aclrtMemsetAsync(address, room, value, count, argument)


def _launch_call(value: Any, function: int, argument: int) -> int:
    def called(_: Any) -> None:
        _runtime.call_now(function, argument)

    return stream.aclrtLaunchHostFunc(value, called)


def _name_into(model: Any, room: int, address: int) -> int:
    name, status = model_ri.aclmdlRIGetName(model)
    if status == OK:
        _runtime.store_text(address, room, name)
    return status


_SPECIAL: dict[str, Callable[..., Any]] = {
    "aclrtGetSocName": _soc_name,
    "copy_later": _copy_later,
    "fill_later": _fill_later,
    "launch_call": _launch_call,
    "name_into": _name_into,
    "refuse_device": capture.refuse_device,
    "note_done": _note_done,
    "refuse_event": _refuse_event,
    "refuse_stream": _refuse_stream,
    "refuse_unsafe": capture.refuse_unsafe,
}
