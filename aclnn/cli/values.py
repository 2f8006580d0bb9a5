"""Parsers of options; anything else is bad usage."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import TypeVar

from aclnn.acl.arguments import shown
from aclnn.environment import truth, whole
from aclnn.graph.runtime.abi import MAX_THREADS

T = TypeVar("T")

MOST_COUNTED = 10**18 - 1  # everything that counts bytes or elements takes it


def option(parse: Callable[[str], T]) -> Callable[[str], T]:
    """`parse` as argparse wants it, which keeps the words of `ArgumentTypeError` only.

    >>> option(int)("12")
    12
    >>> threads("5000")
    Traceback (most recent call last):
    ...
    argparse.ArgumentTypeError: '5000' must be a whole number from 1 to 1024
    """

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except ValueError as rule:
            raise argparse.ArgumentTypeError(f"{shown(text)} {rule}") from None

    return parsed


def _duration(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9}", text) or not float(text):
        raise ValueError("must be a number of seconds above 0")
    return float(text)


_UNITS = {"": 1, "B": 1} | {
    f"{letter}{form}": base**power
    for power, letter in enumerate("KMGT", 1)
    for form, base in (("iB", 1024), ("B", 1000), ("", 1024))
}
_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([KMGT]?(?:i?B)?)\s*", re.IGNORECASE)


def _bytes(text: str) -> int:
    units = {unit.lower(): factor for unit, factor in _UNITS.items()}
    found = _SIZE.fullmatch(text)
    if not found or found[2].lower() not in units:
        raise ValueError("must be a number of bytes from 0 to 999999999999999999, or such as 3KiB")
    count = int(Decimal(found[1]) * units[found[2].lower()])
    if count > MOST_COUNTED:
        raise ValueError(f"must be at most {MOST_COUNTED} bytes")
    return count


natural = option(partial(whole, low=0, high=MOST_COUNTED))
positive = option(partial(whole, low=1, high=MOST_COUNTED))
threads = option(partial(whole, low=1, high=MAX_THREADS))
truth_value = option(truth)
seconds = option(_duration)
size = option(_bytes)
