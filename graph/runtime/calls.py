"""Calls of kernels: what the ops of a step become, one each or several together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A kernel, and what it is called with for every tile.

    Attributes
    ----------
    nodes : tuple of str
    kernel : object
    operands : tuple of int
        Places in the step's operands; the last `outputs` of them are written.
    outputs, flags : int
    params : tuple
        Numbers that the kernel takes.
    scratch : int
        Where memory of its own lies in a thread's scratch, -1 without any.
    """

    nodes: tuple[str, ...]
    kernel: Any
    operands: tuple[int, ...]
    outputs: int
    flags: int
    params: tuple[Any, ...]
    scratch: int

    @staticmethod
    def of(op: Any, kernel: Any) -> Call:
        """The call of one op."""
        return Call((op.node,), kernel, op.operands, op.outputs, op.flags, op.params, op.scratch)


def calls_of(step: Any, kernels: Sequence[Any]) -> list[Call]:
    """The calls of a step.

    A kernel may have an attribute `join`: a function that turns ops of a step that follow each other
    into calls, given the step, the number of the first op, and the kernels. Neighbours with the same
    one are handed to it together.

    Parameters
    ----------
    step : Step
    kernels : sequence
        Of the step's ops.

    Returns
    -------
    list of Call
    """
    found: list[Call] = []
    begin = 0
    while begin < len(kernels):
        join = getattr(kernels[begin], "join", None)
        end = begin + 1
        while (
            join is not None and end < len(kernels) and getattr(kernels[end], "join", None) is join
        ):
            end += 1
        if join is not None and end - begin > 1:
            found += join(step, begin, kernels[begin:end])
        else:
            found.append(Call.of(step.ops[begin], kernels[begin]))
        begin = end
    return found
