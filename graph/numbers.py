"""Numbers that callers give: what is taken for a whole one."""

from __future__ import annotations

from contextlib import suppress
from operator import index
from typing import Any


def whole_number(value: Any, what: str) -> int:
    """`value` as an int; `ValueError` says that `what` is none.  True and 1.0 are none.

    >>> whole_number(2, "threads")
    2
    >>> whole_number(2.0, "threads")
    Traceback (most recent call last):
    ...
    ValueError: threads is 2.0, must be an integer
    """
    if type(value) is int:
        return value
    if not isinstance(value, bool):
        with suppress(TypeError):
            return index(value)  # NumPy's integers have an index too
    raise ValueError(f"{what} is {value!r}, must be an integer")


def positive_number(value: Any, what: str) -> int:
    """`value` as an int that is at least 1; `ValueError` says that `what` is none.

    >>> positive_number(0, "threads")
    Traceback (most recent call last):
    ...
    ValueError: threads is 0, must be at least 1
    """
    count = whole_number(value, what)
    if count < 1:
        raise ValueError(f"{what} is {count}, must be at least 1")
    return count
