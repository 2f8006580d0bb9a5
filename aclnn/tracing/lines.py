"""Lines of compiled functions, for errors and warnings."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable
from typing import Any

from aclnn.acl.errors import AclnnError
from aclnn.tracing.recording import PACKAGE


def frames_to_caller() -> int:
    """Number of frames between a warning and the line outside of this package."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, count = frame.f_back, count + 1
    return count


def add_line(error: AclnnError, function: Callable[..., Any]) -> None:
    """Have the error of a single call name the line of the function that made it."""
    where = _line_in(error, function)
    if where and where not in str(error):
        error.message = f"{error}\n  {where}"
        error.args = (error.message,)


def place_of(function: Callable[..., Any]) -> str:
    """Place of a function, for people."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f"Compiled from {code.co_filename}:{code.co_firstlineno}."


def _line_in(error: BaseException, function: Callable[..., Any]) -> str:
    """The line of the function, or of what it called, from which an error came."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    own = code.co_filename if code is not None else None
    found = None
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(PACKAGE) or file == own:
            inside = trace.tb_frame.f_code is code
            if inside or (found is not None and file == own):
                found = trace
        trace = trace.tb_next
    if found is None:
        return ""
    file, line = found.tb_frame.f_code.co_filename, found.tb_lineno
    text = linecache.getline(file, line, found.tb_frame.f_globals).strip()
    return f"in {found.tb_frame.f_code.co_name}, {file}:{line}: {text}".removesuffix(": ")
