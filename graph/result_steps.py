"""Steps on results: what the attribute `then` of an opaque node holds, a step after the other.

    (name, kind, kernel, result_dtype, reads, dtype, itemsize, numbers, inputs)

name to reads are those of the node that the step was, '' where it had none; dtype and itemsize are those of
what it makes, numbers is how many of the node's `params` it takes, after those of the steps before.
Inputs are places among the node's inputs; -1 stands for the node's own result, -2 for that of the first step,
and so on. The dtype of the node's own result is its attribute `sums`. `passes/results.py` makes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .ir import Node


class ResultStep(NamedTuple):
    """A step on results, as the attribute `then` has it."""

    name: str
    kind: str
    kernel: str
    result_dtype: str
    reads: str
    dtype: str
    itemsize: int
    numbers: int
    inputs: tuple[int, ...]


def steps_of(node: Node) -> tuple[ResultStep, ...]:
    """The steps on a node's results.

    >>> from aclnn.graph import Node
    >>> steps_of(Node("mm", "Compute", (0, 1), (2,)))
    ()
    """
    return tuple([ResultStep(*step) for step in node.attr("then", ())])
