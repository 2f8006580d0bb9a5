"""Packages that some views need and most installations lack."""

from __future__ import annotations

import importlib
from typing import Any


def need(module: str, what: str, extra: str = "", called: str = "") -> Any:
    """Import a module of an extra, or say which extra has it.

    `called` names what is missing where the package's name does not say it.

    >>> need("json", "documents").__name__
    'json'
    >>> need("no_such_module", "pictures", "plot")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: pictures need the package no_such_module: pip install 'aclnn-cpu[plot]'
    """
    package = module.partition(".")[0]
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise  # the package is there and broken, which is another story
        missing = called or f"the package {package}"
        hint = f"{what} need {missing}: pip install 'aclnn-cpu[{extra or package}]'"
        raise ModuleNotFoundError(hint, name=package) from None
    return importlib.import_module(module)
