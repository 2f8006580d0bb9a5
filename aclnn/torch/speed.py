"""What nodes cost, here and in PyTorch, by the number of their elements: what the backend goes by.

`speed.json` has what `tools/backend_speed.py` measured: the time of a call of each operator on three
numbers of elements, as a part of one node and as PyTorch's own. Times of another machine differ, their
quotients less so. In a chain a node costs less than alone, since it shares the call.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Sequence
from typing import NamedTuple

SIZES = (256, 16384, 262144)  # elements

# By form, µs: ours for each of `SIZES`, and PyTorch's.
TIMES: dict[str, tuple[list[float], list[float]]] = json.loads(
    (importlib.resources.files(__package__) / "speed.json").read_text()
)
CALL = min((ours[0] for ours, _ in TIMES.values()), default=1.0)  # of any part, whatever it does
STEP = 0.1  # µs that a node in a part takes at least
VIEW = 1.0  # µs that PyTorch takes for a view; a part takes nothing
REPEATED = (
    1.8  # a node whose operand repeats its elements along the last dimension, over one without
)
SLOWER_FROM = 1.25  # of PyTorch's time: from there a node stays with PyTorch, even in a chain
PAYS_UP_TO = 0.95  # of PyTorch's time for all nodes of a part

# Products take as long as in PyTorch, but for its call, up to so many multiplications, and half as long
# where they have one row. Larger ones use threads of BLAS, or take up to 1.9 times as long.
PRODUCTS = frozenset(["mm", "addmm", "bmm"])
SMALL_PRODUCT = 2**18
PRODUCT_GAINS = 1.5  # µs


def interpolated(times: Sequence[float], n: int) -> float:
    """The time for `n` elements: lines between what was measured, and on from the last."""
    if n <= SIZES[0]:
        return times[0]
    place = 1 if n <= SIZES[1] else 2
    low, high = SIZES[place - 1], SIZES[place]
    slope = (times[place] - times[place - 1]) / (high - low)
    return max(times[place - 1] + slope * (n - low), min(times))


class Call(NamedTuple):
    """A call of one of PyTorch's operators, as far as its time depends on it."""

    name: str  # of the form that does it
    n: int  # elements
    repeats: bool = False  # an operand's elements along the last dimension


def time_in_pytorch(call: Call) -> float:
    """µs of a call of PyTorch's."""
    if call.name in PRODUCTS:
        return STEP + PRODUCT_GAINS
    return interpolated(TIMES[call.name][1], call.n) if call.name in TIMES else CALL + STEP


def time_in_chain(call: Call) -> float:
    """µs of a node that shares a call with others."""
    if call.name not in TIMES:
        return STEP
    own = max(interpolated(TIMES[call.name][0], call.n) - CALL, STEP)
    return own * REPEATED if call.repeats else own


def is_slower(call: Call) -> bool:
    """Whether PyTorch's own kernel is faster than a node, be it in a chain."""
    return time_in_chain(call) >= SLOWER_FROM * time_in_pytorch(call)


def pays(calls: Sequence[Call], n_views: int = 0) -> bool:
    """Whether a part that makes these calls, and views between them, is faster than PyTorch."""
    ours = CALL + sum(map(time_in_chain, calls))
    theirs = VIEW * n_views + sum(map(time_in_pytorch, calls))
    return bool(calls) and ours <= PAYS_UP_TO * theirs
