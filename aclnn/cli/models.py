"""Executors of models in ONNX, and those that Python files give."""

from __future__ import annotations

import importlib
import runpy
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aclnn.acl.arguments import shown
from aclnn.acl.errors import AclnnError, invalid
from aclnn.execution._executor import aclOpExecutor


def executor(named: str, options: Mapping[str, Any]) -> Any:
    """The executor that a function gives, named as `FILE.py:NAME` or `MODULE:NAME`."""
    made = given_by(named, options)
    if not isinstance(made, aclOpExecutor):
        raise invalid(f"{named} gives {shown(made)}, must be an executor")
    return made


def given_by(named: str, options: Mapping[str, Any]) -> Any:
    """The result of a function, or the value of a name.

    Errors of the file or function are reported as those of the command, in a line.
    """
    index, _, name = named.rpartition(":")
    if not index or not name:
        raise invalid(f"--model is {shown(named)}, must be FILE:NAME")
    try:
        found = _names_in(index)
    except AclnnError:
        raise
    except Exception as error:
        raise invalid(f"{index}: {type(error).__name__}: {error}") from error
    if name not in found:
        raise invalid(f"{index} has no {shown(name)}")
    made = found[name]
    if callable(made) and not isinstance(made, aclOpExecutor):
        try:
            made = made(**options)
        except AclnnError:
            raise
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            raise invalid(f"{named}: {words}") from error
    elif options:
        raise invalid(f"{named} is no function, and takes no {', '.join(options)}")
    return made


def onnx_executor(path: str, dims: Mapping[str, int], options: Mapping[str, Any]) -> aclOpExecutor:
    """The executor of a model in ONNX, for arrays of the shapes that it declares."""
    from aclnn.onnx.reading import from_onnx  # which other commands do without

    try:
        return from_onnx(path, dims=dims, **options).executor()
    except AclnnError as error:
        if "dims" not in str(error):
            raise
        raise invalid(f"{error}; on the command line --model-dim NAME=SIZE") from error


@contextmanager
def _beside(index: str) -> Iterator[None]:
    """Let a file import the modules next to it, as Python does for the file that it is given."""
    folder = str(Path(index).resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _names_in(index: str) -> Mapping[str, Any]:
    """Names that a file or module defines."""
    if index.endswith(".py"):
        with _beside(index):
            return runpy.run_path(index)
    return vars(importlib.import_module(index))
