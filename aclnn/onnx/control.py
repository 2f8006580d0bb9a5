"""Branches and loops: If, Loop and Scan, whose bodies are programs of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aclnn.acl.errors import invalid
from aclnn.onnx.evaluation import titled

CONTROL = frozenset(["If", "Loop", "Scan"])
MOST_UNROLLED = 64  # iterations that become part of a plan

Body = Callable[[Any, Sequence[Any]], Sequence[Any]]  # runs a graph on the inputs that it declares


def graph_of(node: Any, name: str) -> Any:
    found = next((one.g for one in node.attribute if one.name == name), None)
    if found is None:
        raise invalid(f"{titled(node)}: it has no attribute {name}")
    return found


def branch_of(node: Any, condition: Any) -> Any:
    """The graph that a known condition chooses."""
    return graph_of(node, "then_branch" if truth_of(node, condition) else "else_branch")


def truth_of(node: Any, condition: Any) -> bool:
    """The truth of a condition of a node, an array of one element."""
    return bool(_only(node, condition, "its condition"))


def _only(node: Any, array: Any, what: str) -> Any:
    """The only element of an array."""
    array = np.asarray(array)
    if array.size != 1:
        raise invalid(
            f"{titled(node)}: {what} has shape {list(array.shape)}, must have one element"
        )
    return array.reshape(-1)[0]


def run_loop(
    node: Any, inputs: Sequence[Any], run: Body, known: Callable[[Any], bool], stacked: Any
) -> list[Any]:
    """The results of a Loop: carried values, then what each iteration gave, one after the other.

    Parameters
    ----------
    node : onnx.NodeProto
    inputs : sequence of array
        The count and the condition, which may be left out, and what is carried.
    run : callable
        Runs the body.
    known : callable
        The truth of a condition.
    stacked : callable
        Puts results together along a new first dimension.
    """
    body = graph_of(node, "body")
    count = inputs[0] if inputs else None
    most = None if count is None else int(_only(node, count, "its count"))
    goes_on = True if len(inputs) < 2 or inputs[1] is None else known(inputs[1])
    carried = list(inputs[2:])
    n_carried = len(carried)
    rows: list[list[Any]] = [[] for _ in body.output[1 + n_carried :]]
    at = 0
    while goes_on and (most is None or at < most):
        condition, *results = run(body, [np.asarray(at, np.int64), np.asarray(True), *carried])
        carried, rest = list(results[:n_carried]), results[n_carried:]
        for row, one in zip(rows, rest, strict=True):
            row.append(one)
        at += 1
        goes_on = known(condition)
    kinds = body.output[1 + n_carried :]
    return [*carried, *[stacked(row, kind, 0) for row, kind in zip(rows, kinds, strict=True)]]


def run_scan(
    node: Any, inputs: Sequence[Any], attribute: Callable[[str], Any], run: Body, stacked: Any
) -> list[Any]:
    """The results of a Scan (of version 9 on): states, then rows along the axes that it says."""
    body, n_rows = graph_of(node, "body"), attribute("num_scan_inputs")
    states, rows = list(inputs[: len(inputs) - n_rows]), inputs[len(inputs) - n_rows :]
    axes = attribute("scan_input_axes") or [0] * n_rows
    backwards = attribute("scan_input_directions") or [0] * n_rows
    n_out = len(body.output) - len(states)
    out_axes = attribute("scan_output_axes") or [0] * n_out
    out_backwards = attribute("scan_output_directions") or [0] * n_out
    lengths = {row.shape[axis] for row, axis in zip(rows, axes, strict=True)}
    if len(lengths) != 1:
        raise invalid(f"{titled(node)}: its inputs have lengths {sorted(lengths)}")
    (length,) = lengths
    found: list[list[Any]] = [[] for _ in range(n_out)]
    for at in range(length):
        taken = [
            _row(row, axis, length - 1 - at if back else at)
            for row, axis, back in zip(rows, axes, backwards, strict=True)
        ]
        results = run(body, [*states, *taken])
        states = list(results[: len(states)])
        for one, row in zip(results[len(states) :], found, strict=True):
            row.append(one)
    kinds = body.output[len(states) :]
    made = [
        stacked(row[::-1] if back else row, kind, axis)
        for row, kind, axis, back in zip(found, kinds, out_axes, out_backwards, strict=True)
    ]
    return [*states, *made]


def _row(array: Any, axis: int, at: int) -> Any:
    axis %= array.ndim
    return array[(*[slice(None)] * axis, at)]


def stacked_arrays(rows: Sequence[Any], kind: Any, axis: int) -> np.ndarray:
    """Arrays along a new dimension; where there are none, what a body's output declares."""
    if rows:
        return np.stack([np.asarray(one) for one in rows], axis)
    import onnx

    tensor = kind.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type or onnx.TensorProto.FLOAT)
    sizes = [max(one.dim_value, 0) for one in tensor.shape.dim]
    sizes.insert(axis % (len(sizes) + 1), 0)
    return np.empty(sizes, dtype)
