"""Names of functions and other callables."""

from __future__ import annotations

from typing import Any


def called(function: Any) -> str:
    """The name of a function; of anything else that can be called the name of its type.

    >>> from functools import partial
    >>> called(len), called(partial(len))
    ('len', 'partial')
    """
    return getattr(function, "__name__", type(function).__name__)
