"""Modules that are imported when something below them first needs them.

The package declares them by a word; whoever needs one asks by the word, and knows nothing of what is above it.
"""

from importlib import import_module
from types import ModuleType

_MODULES: dict[str, str] = {}


def declare(word: str, module: str) -> None:
    """Register the module that a word stands for."""
    _MODULES[word] = module


def load(word: str) -> ModuleType:
    """The module that a word stands for, imported if necessary."""
    return import_module(_MODULES[word])
