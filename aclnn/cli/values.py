"""Parsers of options; anything else is bad usage."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from aclnn.acl.arguments import shown
from aclnn.environment import MOST_COUNTED, size_in_bytes, truth, whole
from aclnn.graph.runtime.abi import MAX_THREADS

T = TypeVar("T")


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


natural = option(partial(whole, low=0, high=MOST_COUNTED))
positive = option(partial(whole, low=1, high=MOST_COUNTED))
threads = option(partial(whole, low=1, high=MAX_THREADS))
truth_value = option(truth)
seconds = option(_duration)
size = option(size_in_bytes)
