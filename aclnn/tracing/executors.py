"""Executors of compiled functions, bound to the arguments of calls or to none, and their pickles."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aclnn.acl import dtypes
from aclnn.execution import arrays
from aclnn.execution._executor import aclOpExecutor
from aclnn.execution._joined import join_executor
from aclnn.execution._operand import read_headers
from aclnn.execution.array_specs import ArraySpec
from aclnn.operators.checks import TensorSpec
from aclnn.tracing.given import Given
from aclnn.tracing.nesting import ARRAY, owners_in
from aclnn.tracing.recordings import Run, Traced
from aclnn.tracing.requests import Request
from aclnn.tracing.run_numbers import Values

if TYPE_CHECKING:
    from aclnn.tracing.compiled import Compiled


def unbound(traced: Traced) -> aclOpExecutor:
    """An executor that is bound to nothing that the caller may change."""
    count = len(traced.recording.inputs) - len(traced.held)
    held = [one.array for one in traced.held]
    return _joined(traced, [*[None] * count, *held], None, None, b"")


def bound(
    compiled: Compiled[Any, Any],
    traced: Traced,
    run: Run,
    request: Request,
    outputs: Sequence[Any] | None,
    kind: Any,
    gives_inputs: bool = True,
) -> aclOpExecutor:
    """An executor for the user, bound to the arguments of a call."""
    held = [one.array for one in traced.held]
    if traced.guards is not None:
        specs = map(traced.recording.spec, traced.recording.inputs[len(request.inputs) :])
        found = [] if run.held is None else run.held.arrays
        triples = zip(found, traced.guards.offsets, specs, strict=True)
        held = [_seen_at(*one) for one in triples]
    inputs = request.inputs if gives_inputs else [None] * len(request.inputs)
    value = Given(traced.name, traced.arguments, request.values, traced.numbers_for)
    description = functools.partial(_description, compiled, request, value)
    return _joined(traced, [*inputs, *held], outputs, kind, run.numbers, description, value)


def _joined(
    traced: Traced,
    inputs: Sequence[Any],
    outputs: Sequence[Any] | None,
    kind: Any,
    numbers: bytes,
    description: Any = None,
    takes: Any = None,
) -> aclOpExecutor:
    recording = traced.recording
    own = [o for o in recording.outputs if o.replaces is None]
    arguments = [None] * len(own) if outputs is None else list(outputs)
    targets = [None if x is None else arrays.as_ndarray(x, "out") for x in arguments]
    tied = [None] * (len(recording.outputs) - len(own))
    return join_executor(
        traced.plan(),
        traced.plan,
        traced.name,
        [*inputs, *targets, *tied],
        numbers,
        None if traced.result is ARRAY and traced.ties is None else traced,
        traced.ties,
        kind,
        [*arguments, *tied],
        description,
        takes,
    )


class _Memory:
    """Memory that NumPy makes an array of, as long as another array owns it."""

    def __init__(self, owner: Any, interface: dict[str, Any]):
        self.owner = owner
        self.__array_interface__ = interface


def _seen_at(value: Any, offset: int, spec: TensorSpec) -> np.ndarray:
    """An array of a description, from a byte of another one on."""
    base = arrays.as_ndarray(value, "array")
    requested = described(spec)
    if offset == 0 and (base.shape, base.strides, base.dtype) == (
        requested.shape, requested.strides, requested.dtype,
    ):  # fmt: skip
        return base
    interface = {
        "data": (base.ctypes.data + offset, not base.flags.writeable),
        "shape": requested.shape,
        "strides": requested.strides,
        "typestr": f"|V{requested.dtype.itemsize}",
        "version": 3,
    }
    return np.asarray(_Memory(base, interface)).view(requested.dtype)


def _description(
    compiled: Compiled[Any, Any], request: Request, arguments: Given, executor: aclOpExecutor
) -> tuple[Any, Any]:
    """Description that pickles hold of an executor: the function, and its arguments' descriptions."""
    specs = [described(spec) for spec in request.headers.specs()]
    return _planned_anew, (compiled, request.form, tuple(specs), arguments.values)


def described(spec: TensorSpec) -> ArraySpec:
    """A description whose strides count bytes."""
    kind = dtypes.NUMPY[spec.dtype]
    strides = tuple([stride * kind.itemsize for stride in spec.strides])
    return ArraySpec(spec.shape, strides, kind)


def _planned_anew(
    compiled: Compiled[Any, Any], form: Any, specs: Sequence[ArraySpec], values: Values
) -> aclOpExecutor:
    """An executor for a description: its inputs are to be given to a run."""
    inputs = [spec.placeholder() for spec in specs]
    owners = [one for part in form for one in owners_in(part)]
    request = Request(form, read_headers(inputs), owners, values)
    run = compiled.run_for(request)
    return bound(compiled, run.traced, run, request, None, None, gives_inputs=False)
