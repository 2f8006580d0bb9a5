"""Calls of kernels: what the ops of a step become, one each or several together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .abi import SCRATCH
from .kernel import Kernel


@dataclass(frozen=True, slots=True)
class Call:
    """A kernel, and what it is called with for every tile.

    Attributes
    ----------
    nodes : tuple of str
    kernel : Kernel
    operands : tuple of int
        Places in the step's operands; the last `outputs` of them are written.
    outputs, flags : int
    params : tuple
        Numbers that the kernel takes.
    scratch : int
        Offset of its own memory in a thread's scratch, -1 without any.
    """

    nodes: tuple[str, ...]
    kernel: Kernel
    operands: tuple[int, ...]
    outputs: int
    flags: int
    params: tuple[Any, ...]
    scratch: int

    @staticmethod
    def of(op: Any, kernel: Kernel) -> Call:
        """The call of one op."""
        return Call((op.node,), kernel, op.operands, op.outputs, op.flags, op.params, op.scratch)


# How many times as large as its own a step's tiles are where nothing of it lives in tiles any more.
LARGER = 4


def tile_of(step: Any, calls: Sequence[Call]) -> tuple[int, int]:
    """The rows and columns of a step's tiles.

    Tiles are small so that intermediates stay in the nearest cache; calls that keep these to themselves
    get larger ones.

    Parameters
    ----------
    step : Step
    calls : sequence of Call
        Of the step.

    Returns
    -------
    tuple of (int, int)
    """
    rows, cols = step.tile_rows, step.tile_cols
    if step.is_call or len(calls) == len(step.ops) or _in_tiles(step, calls):
        return rows, cols
    *_, all_rows, all_cols = step.shape
    if cols < all_cols or all_rows == 1:
        return rows, min(all_cols, LARGER * cols)
    return min(all_rows, LARGER * rows), cols


def _in_tiles(step: Any, calls: Sequence[Call]) -> bool:
    """Whether some operand of calls is in tiles, or some call has memory of its own there."""
    return any(
        call.scratch >= 0 or any(step.operands[index].base == SCRATCH for index in call.operands)
        for call in calls
    )


def calls_of(step: Any, kernels: Sequence[Kernel]) -> list[Call]:
    """The calls of a step.

    A kernel may have a `join`: a function that turns ops of a step that follow each other
    into calls, given the step, the number of the first op, the kernels, and for each place of the
    step's operands the number of the last op that reads it. Neighbours with the same one are handed
    to it together.

    Parameters
    ----------
    step : Step
    kernels : sequence of Kernel
        Of the step's ops.

    Returns
    -------
    list of Call
    """
    found: list[Call] = []
    last_reads = {
        index: at for at, op in enumerate(step.ops) for index in op.operands[: -op.outputs]
    }
    begin = 0
    while begin < len(kernels):
        join = kernels[begin].join
        end = begin + 1
        while join is not None and end < len(kernels) and kernels[end].join is join:
            end += 1
        if join is not None and end - begin > 1:
            found += join(step, begin, kernels[begin:end], last_reads)
        else:
            found.append(Call.of(step.ops[begin], kernels[begin]))
        begin = end
    return found
