"""Numbers in equal steps."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from aclnn.acl import dtypes
from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    FLOATING_AND_DOUBLE,
    INTEGERS,
    REAL,
    Call,
    Rule,
    rule,
    scalar_dtype_among,
)
from aclnn.operators.declaration import REQUIRED, Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.sizes import number
from aclnn.operators.words import require

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]

_LONG, _FLOAT = aclDataType.ACL_INT64, aclDataType.ACL_FLOAT
_RANGES = (*FLOATING_AND_DOUBLE, aclDataType.ACL_INT32, _LONG)
_SPACES = (*FLOATING_AND_DOUBLE, *INTEGERS)
_DTYPE = Attribute("dtype", None, "dtype", doc="The dtype of the result.")


def _number(role: str, default: object, doc: str) -> Attribute:
    facts = ("value", "dtype")
    return argument(role, default, "scalar", doc, facts=facts)


def _made_dtype(call: Call, default: aclDataType) -> aclDataType:
    """Dtype of the result, which `out` has or an option says."""
    if "out" in call.tensors:
        return call.dtype("out")
    requested = call.switches["dtype"]
    return requested if isinstance(requested, aclDataType) else default


@rule("`dtype`, where it is given, is that of `out`")
def _dtype_allowed(call: Call, allowed: tuple[aclDataType, ...]) -> str | None:
    """Rule of functional forms, which take the dtype as an option."""
    requested = call.switches["dtype"]
    if not isinstance(requested, aclDataType):
        return None
    name = call.names["dtype"]
    if requested not in allowed:
        return f"{name} is {call.word(requested)}, must be {call.words(allowed)}"
    if "out" in call.tensors and call.dtype("out") != requested:
        return (
            f"{name} is {call.word(requested)}, but {call.names['out']} has dtype "
            f"{call.word(call.dtype('out'))}"
        )
    return None


# --- Arange ---------------------------------------------------------------------------------------


def _bounds(call: Call) -> tuple[float, float, float]:
    """The first number, the end and the step, as they are given; without an end from zero."""
    start, end, step = (call.scalars[role] for role in ("start", "end", "step"))
    if end.absent:
        return 0, start.value, step.value
    return start.value, end.value, step.value


def _range_dtype(call: Call) -> aclDataType:
    arguments = [one for one in call.scalars.values() if not one.absent]
    floating = any(one.dtype in FLOATING_AND_DOUBLE for one in arguments)
    return _made_dtype(call, _FLOAT if floating else _LONG)


def _seen(value: float, dtype: aclDataType) -> float:
    """A number in the kind of the result: integers are truncated, other floats of 32 bits."""
    if dtype in INTEGERS:
        return int(value)
    return float(value) if dtype == aclDataType.ACL_DOUBLE else float(np.float32(value))


@rule("`step`, in the kind of the result, is not 0, and leads from `start` to `end`")
def _range_is_one(call: Call) -> str | None:
    dtype = _range_dtype(call)
    arguments = dict(zip(("start", "end", "step"), _bounds(call), strict=True))
    for role, value in arguments.items():
        if dtype in INTEGERS and not math.isfinite(value):
            return f"{call.names[role]} is {value!r}, which {call.word(dtype)} cannot hold"
    with np.errstate(over="ignore"):
        start, end, step = (_seen(value, dtype) for value in arguments.values())
    if step == 0 or math.isnan(step):
        return f"{call.names['step']} is {arguments['step']!r}, must not be 0 as {call.word(dtype)}"
    if start > end if step > 0 else start < end:
        return (
            f"{call.names['start']} is {arguments['start']!r} and {call.names['end']} is {arguments['end']!r}, "
            f"which a {call.names['step']} of {arguments['step']!r} leads away from"
        )
    return None


def _count(call: Call) -> int | None:
    """Count of the numbers; None where it is not finite."""
    start, end, step = _bounds(call)
    if _range_dtype(call) in INTEGERS:
        start, end, step = int(start), int(end), int(step)
        return -((start - end) // step)
    found = (end - start) / step
    return max(0, math.ceil(found)) if math.isfinite(found) else None


@rule("in functional calls, `out` has the shape of the numbers from `start` to `end`")
def _has_an_end(call: Call) -> str | None:
    """Rule of functional forms: CANN's writes as many numbers as there is room for."""
    if call.c_shaped:
        return None
    count = _count(call)
    if count is None:
        start, end, _ = _bounds(call)
        return (
            f"{call.names['start']} is {start!r} and {call.names['end']} is {end!r}, must be finite"
        )
    if "out" in call.tensors and call.shape("out") != (count,):
        return f"{call.shaped('out')}, must have {(count,)}"
    return None


def _infer_range(call: Call) -> Inferred:
    if "out" in call.tensors:
        return {"out": (call.dtype("out"), call.shape("out"))}
    return {"out": (_range_dtype(call), (_count(call) or 0,))}


def _lower_range(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    start, _, step = _bounds(lowering.call)
    if dtype in INTEGERS:
        start, step = int(start), int(step)
    else:
        start, step = float(start), float(step)
    made = lowering.opaque("ramp", [], dtype, (math.prod(shape),), start=start, step=step)
    return {"out": lowering.reshaped(made, shape)}


arange = Operator(
    name="arange",
    differentiable=False,
    summary="Numbers from a first one up to an end, which is not among them.",
    expression="out[i] = start + i·step",
    notes=(
        "A single number is the end, and the first one is 0. Without `dtype` the result is INT64 if all "
        "numbers are integers, and FLOAT otherwise. aclnnArange writes as many numbers as `out` has elements."
    ),
    inputs=(),
    attributes=(
        _number("start", REQUIRED, "The first number."),
        _number("end", None, "Where the numbers end."),
        _number("step", 1, "Difference between adjacent elements."),
        _DTYPE,
    ),
    sample_specs={"start": {"value": 0}, "end": {"value": 6}, "step": {"value": 1}},
    entries=(entry("aclnnArange", "start:scalar end:scalar step:scalar out:out"),),
    rules=(
        *[scalar_dtype_among(role, REAL) for role in ("start", "end", "step")],
        *require("out: FLOATING_AND_DOUBLE INT32 INT64"),
        _dtype_allowed(_RANGES),
        _range_is_one(),
        _has_an_end(),
        *require("out: at most 8 dims"),
    ),
    infer=_infer_range,
    lower=_lower_range,
    example=("arange(1, 2, 0.25)", "array([1.  , 1.25, 1.5 , 1.75], dtype=float32)"),
    accuracy="Each number is rounded once; integers are exact and wrap around.",
    seealso=("linspace",),
    chunking="dask.array: arange",
)


# --- Linspace -------------------------------------------------------------------------------------


def _space_dtype(call: Call) -> aclDataType:
    return _made_dtype(call, _FLOAT)


def _held(call: Call, role: str, dtype: aclDataType) -> float:
    """A number as the result's dtype has it; CANN takes those of INT64 as of FLOAT."""
    value = call.scalars[role].value
    if dtype == _LONG:
        return int(float(np.float32(value))) if call.c_shaped else int(value)
    if dtype in INTEGERS:
        return int(np.int64(int(value)).astype(dtypes.NUMPY[dtype]))
    with np.errstate(over="ignore"):
        return float(np.float64(value).astype(dtypes.NUMPY[dtype]))


@rule("`start` and `end` are finite where the result is whole")
def _fits_integers(call: Call) -> str | None:
    dtype = _space_dtype(call)
    for role in ("start", "end") if dtype in INTEGERS else ():
        value = call.scalars[role].value
        if not (math.isfinite(value) and -(2**63) <= value < 2**63):
            return f"{call.names[role]} is {value!r}, which {call.word(dtype)} cannot hold"
    return None


def _steps_fit() -> tuple[Rule, Rule]:
    def some(call: Call) -> str | None:
        steps = number(call, "steps")
        return None if steps >= 0 else f"{call.names['steps']} is {steps}, must be at least 0"

    def room(call: Call) -> str | None:
        if "out" not in call.tensors or call.tensors["out"].size == number(call, "steps"):
            return None
        size = call.tensors["out"].size
        return f"{call.names['out']} has {size} elements, must have {number(call, 'steps')}"

    return (
        Rule("`steps` is at least 0", some, ("steps",)),
        Rule("`out` has a shape of as many elements as `steps` says", room, ("out", "steps")),
    )


def _infer_space(call: Call) -> Inferred:
    shape = call.shape("out") if "out" in call.tensors else (number(call, "steps"),)
    return {"out": (_space_dtype(call), shape)}


def _lower_space(lowering: Lowering) -> Mapping[str, int]:
    """The second half is counted back from the end, so that the last number is the end exactly."""
    call, (dtype, shape) = lowering.call, lowering.results["out"]
    start, end = (float(_held(call, role, dtype)) for role in ("start", "end"))
    steps = math.prod(shape)
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    last = end if steps > 1 else start
    made = lowering.opaque("ramp", [], dtype, (steps,), start=start, step=step, last=last)
    return {"out": lowering.reshaped(made, shape)}


linspace = Operator(
    name="linspace",
    differentiable=False,
    summary="Numbers at equal distances from a first one to a last one.",
    expression="out[i] = start + i·(end - start)/(steps - 1)",
    notes=(
        "Both numbers are converted to the result's dtype first; of INT64, aclnnLinspace takes them as FLOAT. "
        "Integers are truncated toward zero. A single number is `start`."
    ),
    inputs=(),
    attributes=(
        _number("start", REQUIRED, "The first number."),
        _number("end", REQUIRED, "The last number."),
        argument("steps", REQUIRED, "int", "How many there are."),
        _DTYPE,
    ),
    sample_specs={"start": {"value": 0}, "end": {"value": 5}, "steps": 6},
    entries=(entry("aclnnLinspace", "start:scalar end:scalar steps:int out:out"),),
    rules=(
        *[scalar_dtype_among(role, REAL) for role in ("start", "end")],
        *require("out: FLOATING_AND_DOUBLE INTEGERS"),
        _dtype_allowed(_SPACES),
        *_steps_fit(),
        _fits_integers(),
        *require("out: at most 8 dims"),
    ),
    infer=_infer_space,
    lower=_lower_space,
    example=("linspace(0, 1, 3)", "array([0. , 0.5, 1. ], dtype=float32)"),
    accuracy="Each number is rounded once, from a step of float64.",
    seealso=("arange",),
    chunking="dask.array: linspace",
)
