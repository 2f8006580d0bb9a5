"""Docstrings of functions that are alike."""

from collections.abc import Callable
from typing import Any


def describe(function: Callable[..., Any], text: str, **words: object) -> None:
    """Give a function its docstring: a text with `{name}`, which is its own, and words filled in.

    >>> def double(x): return 2 * x
    >>> describe(double, "{name}() of {what}.", what="numbers")
    >>> double.__doc__
    'double() of numbers.'
    """
    function.__doc__ = text.format(name=function.__name__, **words)
