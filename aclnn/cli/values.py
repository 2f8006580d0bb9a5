"""Parsers of options; anything else is bad usage."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from aclnn.acl.arguments import shown
from aclnn.environment import MOST_COUNTED, size_in_bytes, truth, whole
from aclnn.graph import Memory
from aclnn.graph.runtime.abi import MAX_THREADS

T = TypeVar("T")


def option(parse: Callable[[str], T]) -> Callable[[str], T]:
    """`parse` as argparse wants it, which keeps the words of `ArgumentTypeError` only.

    >>> option(int)("12")
    12
    >>> threads("5000")
    Traceback (most recent call last):
    ...
    argparse.ArgumentTypeError: '5000' must be an integer from 1 to 1024
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


_MEMORY = "must be NAME=SIZE:BANDWIDTH or NAME=SIZE:BANDWIDTH:ALIGNMENT, such as ub=192KiB:2TB/s:32"


def _memory(text: str) -> Memory:
    name, equals, rest = text.partition("=")
    words = rest.split(":")
    if not name or not equals or len(words) not in (2, 3) or not words[1].endswith("/s"):
        raise ValueError(_MEMORY)
    try:
        numbers = [size_in_bytes(one.removesuffix("/s")) for one in words]
    except ValueError:
        raise ValueError(_MEMORY) from None
    return Memory(name, numbers[0], float(numbers[1]), *numbers[2:])


def _share(text: str) -> float:
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{0,6})?)%", text)
    if not found:
        raise ValueError("must be a percentage, such as 1% or 0.5%")
    return float(found[1]) / 100


def _assumption(text: str) -> tuple[str, int]:
    names = {"kernels": "kernel_workspace", "runtime": "runtime"}
    name, equals, rest = text.partition("=")
    if name not in names or not equals:
        raise ValueError("must be kernels=BYTES or runtime=BYTES, such as kernels=16MiB")
    return names[name], size_in_bytes(rest)


memory = option(_memory)
assumption = option(_assumption)
share = option(_share)
