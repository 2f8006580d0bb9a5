"""Sums over dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from aclnn.acl import dtypes, socs
from aclnn.acl.constants import aclDataType
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import (
    FLOATING_AND_DOUBLE,
    Call,
    Rule,
    at_most_8_dims,
    dtype_among,
)
from aclnn.operators.declaration import ROW_ACCURACY, Attribute, Operator, entry
from aclnn.operators.lowering import Lowering

_WHOLE = (
    aclDataType.ACL_INT8,
    aclDataType.ACL_INT16,
    aclDataType.ACL_INT32,
    aclDataType.ACL_INT64,
    aclDataType.ACL_UINT8,
)
_SUMMED = (*FLOATING_AND_DOUBLE, *_WHOLE)
_WHOLE_NAMES = tuple([dtypes.name(dtype) for dtype in (*_WHOLE, aclDataType.ACL_BOOL)])


def _result_dtype(call: Call) -> aclDataType:
    """As asked for; else integers are summed up in 64 bits, as in PyTorch."""
    asked, own = call.switches["dtype"], call.dtype("input")
    if asked is not None:
        return aclDataType(asked)  # type: ignore[arg-type]
    return own if own in FLOATING_AND_DOUBLE else aclDataType.ACL_INT64


def _axes(call: Call) -> frozenset[int]:
    """The dimensions that are summed over: none given stands for all."""
    rank = len(call.shape("input"))
    asked = call.switches["dim"]
    if not asked:
        return frozenset(range(rank))
    return frozenset([axis % max(1, rank) for axis in asked if rank])  # type: ignore[attr-defined]


def _shape(call: Call) -> tuple[int, ...]:
    axes, shape = _axes(call), call.shape("input")
    if call.switches["keepdim"]:
        return tuple([1 if axis in axes else size for axis, size in enumerate(shape)])
    return tuple([size for axis, size in enumerate(shape) if axis not in axes])


def _test_dtype(call: Call) -> str | None:
    result, own = _result_dtype(call), call.dtype("input")
    name = dtypes.name(result)
    if result not in _SUMMED:
        known = ", ".join(map(dtypes.name, _SUMMED))
        return f"{call.names['dtype']} is {name}, must be one of {known}"
    if result == aclDataType.ACL_BF16 and not socs.supports_bfloat16(call.soc):
        return f"{call.names['dtype']} is {name}, which {call.soc} does not support"
    if dtypes.can_cast(own, result):
        return None
    return (
        f"{call.names['dtype']} is {name}, to which {call.names['input']} of dtype "
        f"{dtypes.name(own)} cannot be cast"
    )


def _test_cast(call: Call) -> str | None:
    result = _result_dtype(call)
    if "out" not in call.tensors or dtypes.can_cast(result, call.dtype("out")):
        return None
    return (
        f"{call.names['out']} has dtype {dtypes.name(call.dtype('out'))}, to which the result's "
        f"dtype {dtypes.name(result)} cannot be cast"
    )


def _test_dims(call: Call) -> str | None:
    asked, rank = call.switches["dim"] or (), max(1, len(call.shape("input")))
    name, seen = call.names["dim"], set()
    for axis in asked:  # type: ignore[attr-defined]
        if not -rank <= axis < rank:
            return f"{name} has {axis}, must be from {-rank} to {rank - 1}"
        if axis % rank in seen:
            return f"{name} is {asked}, which has dimension {axis % rank} twice"
        seen.add(axis % rank)
    return None


def _test_shape(call: Call) -> str | None:
    if "out" not in call.tensors or call.shape("out") == _shape(call):
        return None
    return f"{call.names['out']} has shape {call.shape('out')}, must have {_shape(call)}"


def _runs(call: Call) -> list[tuple[int, bool]]:
    """Dimensions as they are walked: (size, whether it is summed over), neighbours that are as one.

    The shape alone decides, so that no stride changes an order of additions.
    """
    axes = _axes(call)
    runs: list[tuple[int, bool]] = []
    for axis, size in enumerate(call.shape("input")):
        summed = axis in axes
        if size == 1:
            continue
        if runs and summed and runs[-1][1]:
            runs[-1] = (runs[-1][0] * size, True)
        else:
            runs.append((size, summed))
    return runs if any(summed for _, summed in runs) else [*runs, (1, True)]


def _lower_sum(lowering: Lowering) -> Mapping[str, int]:
    """One reduction after the other, the innermost first, with sums of 64 bits between them."""
    dtype, shape = lowering.results["out"]
    if 0 in lowering.call.shape("input"):
        return {"out": lowering.filled(0, dtype, shape)}
    runs = _runs(lowering.call)
    sizes = [size for size, _ in runs]
    value = lowering.dense(lowering.reshaped("input", tuple(sizes)), dtype)
    places = [place for place, (_, summed) in enumerate(runs) if summed]
    floating = dtype in FLOATING_AND_DOUBLE
    wide = aclDataType.ACL_DOUBLE if floating else aclDataType.ACL_INT64
    attrs = {} if floating else {"loads": _WHOLE_NAMES, "stores": ()}
    for place in reversed(places):
        sizes[place] = 1
        made = dtype if place == places[0] else wide
        (value,) = lowering.rows("sum", [value], [(made, tuple(sizes))], place - len(runs), **attrs)
    return {"out": lowering.builder.view(value, shape, contiguous_strides(shape))}


sum = Operator(
    name="sum",
    summary="Sum over dimensions.",
    expression="Σ x over the elements along dim",
    notes=(
        "Float16, bfloat16 and float32 sums are exact sums rounded once, but where dimensions that "
        "are not neighbours are summed over: then sums of the inner ones are rounded to float64 "
        "first. Integers wrap around. Without elements the sum is 0. aclnnSum is another "
        "function, of lists of tensors."
    ),
    inputs=("input",),
    attributes=(
        Attribute(
            "dim",
            None,
            "ints",
            keyword_only=False,
            doc="The dimensions that are summed over; none stands for all.",
        ),
        Attribute(
            "keepdim",
            False,
            "bool",
            keyword_only=False,
            doc="Whether these dimensions remain, with size 1.",
        ),
        Attribute(
            "dtype",
            None,
            "dtype",
            doc="What the input is cast to first; by default the input's, int64 for integers.",
        ),
    ),
    entries=(
        entry(
            "aclnnReduceSum", "self=input dims=dim:ints keepDims=keepdim:bool dtype:dtype out:out"
        ),
    ),
    rules=(
        dtype_among("input", (*_SUMMED, aclDataType.ACL_BOOL)),
        Rule("`input` can be cast to `dtype`", _test_dtype, ("input", "dtype")),
        Rule("the result's dtype can be cast to that of `out`", _test_cast, ("out", "dtype")),
        at_most_8_dims("input"),
        Rule("`dim` has dimensions of `input`, none twice", _test_dims, ("dim", "input")),
        Rule("`out` has the shape that is left", _test_shape, ("out", "dim", "keepdim", "input")),
    ),
    infer=lambda call: {"out": (_result_dtype(call), _shape(call))},
    lower=_lower_sum,
    example=("sum(np.float32([[1, 2], [3, 4]]), 1)", "array([3., 7.], dtype=float32)"),
    accuracy=ROW_ACCURACY,
    gradient={"input": "repeated_along(grad, input, dim, keepdim)"},
)
