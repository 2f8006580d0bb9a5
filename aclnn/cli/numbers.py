"""Numbers on the command line; what is none is bad usage, in words."""

from __future__ import annotations

import argparse

from aclnn.graph.abi import MAX_THREADS

LARGEST = 10**18 - 1  # everything that counts bytes or elements takes it


def natural(text: str) -> int:
    """A number that is not negative.

    >>> natural("12")
    12
    """
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST))):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {LARGEST}")
    return int(text)


def positive(text: str) -> int:
    """A number above zero.

    >>> positive("0")
    Traceback (most recent call last):
    ...
    argparse.ArgumentTypeError: 0 is not above zero
    """
    number = natural(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return number


def thread_count(text: str) -> int:
    """As many threads as `aclnn.set_num_threads` takes.

    >>> thread_count("5000")
    Traceback (most recent call last):
    ...
    argparse.ArgumentTypeError: 5000 is above 1024
    """
    number = positive(text)
    if number > MAX_THREADS:
        raise argparse.ArgumentTypeError(f"{text} is above {MAX_THREADS}")
    return number
