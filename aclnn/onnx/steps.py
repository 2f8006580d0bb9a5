"""Nodes of models while they are recorded: inputs, attributes, and what operators have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aclnn.acl.errors import AclnnError, invalid
from aclnn.tracing.array import TracedArray


class NeededError(Exception):
    """Inputs of a node whose values a plan depends on, though they are computed.

    Attributes
    ----------
    places : tuple of int
    """

    def __init__(self, places: Sequence[int]):
        super().__init__(f"inputs {', '.join(map(str, places))} have to be known")
        self.places = tuple(places)


class BrokenRuleError(AclnnError):
    """A broken rule of an operator, so that no other means are asked for."""


@dataclass(frozen=True, slots=True)
class Step:
    """A node of a model while it is recorded.

    Attributes
    ----------
    kind, name : str
        The operator's name and the node's.
    opset : int
        The version of the operators.
    inputs : tuple
        Traced arrays, constants as NumPy's arrays, and None for what is left out.
    attributes : mapping
    n_outputs : int
        How many results are named.
    anchor : traced array or None
        Some array of the plan, for what reads none.
    """

    kind: str
    name: str
    opset: int
    inputs: tuple[Any, ...]
    attributes: Mapping[str, Any]
    n_outputs: int = 1
    anchor: TracedArray | None = None

    def given(self, index: int) -> Any:
        """An input, None where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def required(self, name: str) -> Any:
        """An attribute that has no default."""
        if name not in self.attributes:
            raise self.refused(f"it has no attribute {name}")
        return self.attributes[name]

    def constant(self, index: int, name: str = "") -> Any:
        """Constant that a plan depends on: an attribute in old versions, else an input that must be known."""
        if name in self.attributes:
            return np.asarray(self.attributes[name])
        found = self.given(index)
        if isinstance(found, TracedArray):
            raise NeededError([index])
        return found

    def whole(self, index: int, name: str = "") -> tuple[int, ...] | None:
        """Integers that plans depend on, or None where there are none."""
        found = self.constant(index, name)
        return None if found is None else tuple([int(one) for one in np.atleast_1d(found)])

    def scalar(self, index: int, name: str = "", default: Any = None) -> Any:
        found = self.constant(index, name)
        if found is None:
            return default
        if np.size(found) != 1:
            what = name or f"input {index}"
            raise self.broken(f"{what} has shape {list(np.shape(found))}, must be a scalar")
        return np.asarray(found).reshape(-1)[0].item()

    def refused(self, why: str) -> AclnnError:
        """The error of what is not supported: other means may do it."""
        return invalid(f"{self.kind} ({self.name}): {why}")

    def broken(self, why: str) -> BrokenRuleError:
        """The error of values that no operator of this kind takes."""
        error = self.refused(why)
        return BrokenRuleError(error.status, error.message)


Form = Callable[[Step], Any]


def from_start(axis: int, rank: int) -> int:
    """An axis that may count from the end, counted from the start."""
    if not -rank <= axis < rank:
        raise invalid(f"axis is {axis}, must be from {-rank} to {rank - 1}")
    return axis % rank


def number_to_take(step: Step, size: int) -> int:
    """The number of elements of an axis that a TopK takes."""
    count = int(step.scalar(1, "k"))
    if not 0 <= count <= size:
        raise step.broken(f"k is {count}, must be from 0 to {size}")
    return count


def margins(step: Step, sizes: Sequence[int], reach: Sequence[int]) -> tuple[Any, Any]:
    """The zeros before and after each axis."""
    axes, mode = len(sizes), step.attribute("auto_pad", "NOTSET")
    if mode == "NOTSET":
        pads = tuple(step.attribute("pads", (0,) * (2 * axes)))
        return pads[:axes], pads[axes:]
    if mode == "VALID":
        return (0,) * axes, (0,) * axes
    strides = step.attribute("strides", (1,) * axes)
    whole = [
        max(0, (-(-size // stride) - 1) * stride + length - size)
        for size, stride, length in zip(sizes, strides, reach, strict=True)
    ]
    less, more = [n // 2 for n in whole], [n - n // 2 for n in whole]
    return (less, more) if mode == "SAME_UPPER" else (more, less)


def dtype_of(number: int) -> np.dtype:
    import onnx

    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
