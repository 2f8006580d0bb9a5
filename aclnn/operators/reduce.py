"""Reductions over dimensions, and running sums."""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping
from typing import Any

from aclnn.acl import dtypes, socs
from aclnn.acl.constants import aclDataType
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import (
    FLOATING_AND_DOUBLE,
    REAL,
    Call,
    Rule,
    at_most_8_dims,
    axis_within,
    dtype_among,
    ends_if_empty,
    of_cann,
    same_shape,
)
from aclnn.operators.declaration import REQUIRED, ROW_ACCURACY, Attribute, Operator, entry
from aclnn.operators.lowering import Lowering, graph_dtype

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
    asked, own = call.switches.get("dtype"), call.dtype("input")
    if asked is not None:
        return aclDataType(asked)  # type: ignore[arg-type]
    return own if own in FLOATING_AND_DOUBLE else aclDataType.ACL_INT64


def _axes(call: Call) -> frozenset[int]:
    """The dimensions that are summed over: none given stands for all."""
    rank = len(call.shape("input"))
    asked = call.switches.get("dim")
    if isinstance(asked, int):
        asked = (asked,)
    if not asked:
        return frozenset(range(rank))
    return frozenset([axis % builtins.max(1, rank) for axis in asked if rank])  # type: ignore[attr-defined]


def _shape(call: Call) -> tuple[int, ...]:
    axes, shape = _axes(call), call.shape("input")
    if call.switches.get("keepdim"):
        return tuple([1 if axis in axes else size for axis, size in enumerate(shape)])
    return tuple([size for axis, size in enumerate(shape) if axis not in axes])


def _test_sum_dtype(call: Call) -> str | None:
    """Elements are cast to it, whatever they are."""
    return _test_among(call, (*_SUMMED, aclDataType.ACL_BOOL))


def _test_among(call: Call, allowed: tuple[aclDataType, ...]) -> str | None:
    result = _result_dtype(call)
    name = call.word(result)
    if result not in allowed:
        known = ", ".join(map(call.word, allowed))
        return f"{call.names['dtype']} is {name}, must be one of {known}"
    if result == aclDataType.ACL_BF16 and not socs.supports_bfloat16(call.soc):
        return f"{call.names['dtype']} is {name}, which {call.soc} does not support"
    return None


def _test_dtype(call: Call) -> str | None:
    result, own = _result_dtype(call), call.dtype("input")
    name = call.word(result)
    if message := _test_among(call, _SUMMED):
        return message
    if dtypes.can_cast(own, result):
        return None
    return (
        f"{call.names['dtype']} is {name}, to which {call.names['input']} of dtype "
        f"{call.word(own)} cannot be cast"
    )


def _test_mean(call: Call) -> str | None:
    """CANN's function has no other dtypes than those of the result."""
    if message := _test_dtype(call):
        return message
    if _result_dtype(call) in FLOATING_AND_DOUBLE:
        return None
    return f"{call.names['dtype']} is {call.word(_result_dtype(call))}, must be floating"


def _test_cast(call: Call) -> str | None:
    result = _result_dtype(call) if "dtype" in call.switches else call.dtype("input")
    if "out" not in call.tensors or dtypes.can_cast(result, call.dtype("out")):
        return None
    return (
        f"{call.names['out']} has dtype {call.word(call.dtype('out'))}, to which the result's "
        f"dtype {call.word(result)} cannot be cast"
    )


def _test_dims(call: Call) -> str | None:
    asked, rank = call.switches["dim"], builtins.max(1, len(call.shape("input")))
    asked = (asked,) if isinstance(asked, int) else asked or ()
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


def _chained(
    lowering: Lowering, kernel: str, value: int, made: aclDataType, wide: aclDataType, **attrs: Any
) -> int:
    """One reduction after the other, the innermost first, with results of `wide` between them.

    The value has the shape of the runs; the result has 1 where it is reduced.
    """
    runs = _runs(lowering.call)
    sizes = [size for size, _ in runs]
    places = [place for place, (_, summed) in enumerate(runs) if summed]
    for place in reversed(places):
        sizes[place] = 1
        dtype = made if place == places[0] else wide
        (value,) = lowering.rows(
            kernel, [value], [(dtype, tuple(sizes))], place - len(runs), **attrs
        )
    return value


def _in_runs(lowering: Lowering, dtype: aclDataType) -> int:
    """The input, with dimensions that are walked as one."""
    sizes = tuple([size for size, _ in _runs(lowering.call)])
    return lowering.dense(lowering.reshaped("input", sizes), dtype)


def _sum_shape(call: Call) -> tuple[int, ...]:
    """That of the output, where CANN's function looks at no more than its number of elements."""
    shape = _shape(call)
    if not call.c_shaped or "out" not in call.tensors:
        return shape
    single = math.prod(shape) == 1 == call.tensors["out"].size
    return call.shape("out") if single or call.tensors["input"].size == 0 else shape


def _test_sum_shape(call: Call) -> str | None:
    wanted = _sum_shape(call)
    if "out" not in call.tensors or call.shape("out") == wanted:
        return None
    return f"{call.names['out']} has shape {call.shape('out')}, must have {wanted}"


def _test_asked_dtype(call: Call) -> str | None:
    asked = _result_dtype(call)
    if "out" not in call.tensors or call.dtype("out") == asked:
        return None
    return (
        f"{call.names['out']} has dtype {call.word(call.dtype('out'))}, must be "
        f"{call.word(asked)}, as {call.names['dtype']}"
    )


def _lower_sum(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    if 0 in lowering.call.shape("input"):
        return {"out": lowering.filled(0, dtype, shape)}
    if dtype == aclDataType.ACL_BOOL:
        return {"out": _any(lowering, shape)}
    floating = dtype in FLOATING_AND_DOUBLE
    wide = aclDataType.ACL_DOUBLE if floating else aclDataType.ACL_INT64
    attrs: dict[str, Any] = {} if floating else {"loads": _WHOLE_NAMES, "stores": ()}
    value = _chained(lowering, "sum", _in_runs(lowering, dtype), dtype, wide, **attrs)
    return {"out": lowering.builder.view(value, shape, contiguous_strides(shape))}


def _any(lowering: Lowering, shape: tuple[int, ...]) -> int:
    """Whether any element is true: more of them than 64 bits can count do not fit memory."""
    truth, whole = aclDataType.ACL_BOOL, aclDataType.ACL_INT64
    attrs: dict[str, Any] = {"loads": _WHOLE_NAMES, "stores": ()}
    count = _chained(lowering, "sum", _in_runs(lowering, truth), whole, whole, **attrs)
    value = lowering.builder.cast(count, graph_dtype(truth))
    return lowering.builder.view(value, shape, contiguous_strides(shape))


_DIM = Attribute("dim", None, "ints", keyword_only=False, doc="The dimensions; none means all.")
_KEEPDIM = Attribute(
    "keepdim",
    False,
    "bool",
    keyword_only=False,
    doc="Whether reduced dimensions remain, with size 1.",
)
_DIMS = Rule("`dim` has dimensions of `input`, none twice", _test_dims, ("dim", "input"))
_CASTABLE = Rule("the result's dtype can be cast to that of `out`", _test_cast, ("out",))
_SHAPE = Rule("`out` has the shape that is left", _test_shape, ("out", "input"))

sum = Operator(
    name="sum",
    summary="Sum over dimensions.",
    expression="Σ x over the elements along dim",
    notes=(
        "Float16, bfloat16 and float32 sums are exact and rounded once. Over dimensions that are "
        "not adjacent, sums of the inner ones are rounded to float64 first. Integers wrap around. "
        "Each element is cast to `dtype` first: floats to integers lose their fractions, and the "
        "sum of truth values is whether any is true. The sum of no elements is 0. aclnnSum is another function, for lists of tensors."
    ),
    inputs=("input",),
    attributes=(
        _DIM,
        _KEEPDIM,
        Attribute(
            "dtype",
            None,
            "dtype",
            doc="The dtype to cast the input to first; default: the input's, int64 for integers.",
        ),
    ),
    entries=(
        entry(
            "aclnnReduceSum", "self=input dims=dim:ints keepDims=keepdim:bool dtype:dtype out:out"
        ),
    ),
    rules=(
        dtype_among("input", (*_SUMMED, aclDataType.ACL_BOOL)),
        Rule("`dtype` is one that sums have", _test_sum_dtype, ("dtype",)),
        of_cann(Rule("`out` has the dtype `dtype`", _test_asked_dtype, ("out", "dtype"))),
        _CASTABLE,
        at_most_8_dims("input"),
        _DIMS,
        Rule(
            "`out` has the shape that is left; in C-shaped calls, any single element will do for "
            "one, and anything for the sum of an empty `input`",
            _test_sum_shape,
            ("out", "input"),
        ),
    ),
    infer=lambda call: {"out": (_result_dtype(call), _sum_shape(call))},
    lower=_lower_sum,
    example=("sum(np.float32([[1, 2], [3, 4]]), 1)", "array([3., 7.], dtype=float32)"),
    accuracy=ROW_ACCURACY,
    gradient={"input": "repeated_along(grad, input, dim, keepdim)"},
    chunking="sums",
)


# --- Mean and variance --------------------------------------------------------------------------------


def _of_nothing(lowering: Lowering) -> int:
    """0/0: no number, which a graph has no word for."""
    dtype, shape = lowering.results["out"]
    return lowering.point("divs", [lowering.filled(0, dtype, shape)], dtype, shape, params=(0.0,))


def _lower_mean(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    if 0 in lowering.call.shape("input"):
        return {"out": _of_nothing(lowering)}
    value = _chained(lowering, "mean", _in_runs(lowering, dtype), dtype, aclDataType.ACL_DOUBLE)
    return {"out": lowering.builder.view(value, shape, contiguous_strides(shape))}


mean = Operator(
    name="mean",
    summary="Mean over dimensions.",
    expression="Σ x / n over the n elements along dim",
    notes=(
        "The mean is exact and rounded once. Over dimensions that are not adjacent, means of the "
        "inner ones are rounded to float64 first. The mean of no elements is NaN. "
        "Integers and BOOL need a floating `dtype`."
    ),
    inputs=("input",),
    attributes=(
        _DIM,
        _KEEPDIM,
        Attribute("dtype", None, "dtype", doc="The dtype to cast the input to first."),
    ),
    entries=(entry("aclnnMean", "self=input dim:ints keepDim=keepdim:bool dtype:dtype out:out"),),
    rules=(
        dtype_among("input", (*_SUMMED, aclDataType.ACL_BOOL)),
        Rule("`dtype` is floating, and `input` can be cast to it", _test_mean, ("input", "dtype")),
        _CASTABLE,
        at_most_8_dims("input"),
        _DIMS,
        _SHAPE,
    ),
    infer=lambda call: {"out": (_result_dtype(call), _shape(call))},
    lower=_lower_mean,
    example=("mean(np.float32([[1, 2], [3, 4]]), 1)", "array([1.5, 3.5], dtype=float32)"),
    seealso=("sum", "var"),
    accuracy=ROW_ACCURACY,
    gradient={
        "input": "repeated_along(grad, input, dim, keepdim) * (grad.numel() / (input.numel() or 1))"
    },
    chunking="means",
)


def _freedom(call: Call) -> float:
    """How many elements each variance counts as being of."""
    axes, shape = _axes(call), call.shape("input")
    correction = call.switches["correction"] if call.switches["unbiased"] else 0
    assert isinstance(correction, int)
    return float(builtins.max(0, math.prod([shape[axis] for axis in axes]) - correction))


def _without_rest(lowering: Lowering, total: int, rest: int) -> int:
    """Squared distances from what the mean was rounded to are more: by the square of their sum / n."""
    double, sizes = aclDataType.ACL_DOUBLE, lowering.builder.value(total).shape
    shape = lowering.call.shape("input")
    count = math.prod([shape[axis] for axis in _axes(lowering.call)])
    mean = lowering.point("divs", [rest], double, sizes, params=(float(count),))
    return lowering.point("addcmul", [total, rest, mean], double, sizes, params=(-1.0,))


def _lower_var(lowering: Lowering) -> Mapping[str, int]:
    """The mean of squared distances from the mean, in float64."""
    dtype, shape = lowering.results["out"]
    if 0 in lowering.call.shape("input"):
        return {"out": _of_nothing(lowering)}
    double = aclDataType.ACL_DOUBLE
    value = _in_runs(lowering, dtype)
    sizes = lowering.builder.value(value).shape
    middle = _chained(lowering, "mean", value, double, double)
    operands = [lowering.dense(one, double, sizes) for one in (value, middle)]
    apart = lowering.point("sub", operands, double, sizes, params=(1.0,))
    squares = lowering.point("square", [apart], double, sizes)
    total = _chained(lowering, "sum", squares, double, double)
    if dtype == double:
        total = _without_rest(lowering, total, _chained(lowering, "sum", apart, double, double))
    made = lowering.builder.value(total).shape
    value = lowering.point("divs", [total], double, made, params=(_freedom(lowering.call),))
    found = lowering.builder.view(
        lowering.builder.cast(value, graph_dtype(dtype)), shape, contiguous_strides(shape)
    )
    return {"out": found}


var = Operator(
    name="var",
    summary="Variance over dimensions.",
    expression="Σ (x - mean)² / (n - correction) over the n elements along dim",
    notes=(
        "Computed in float64 from the exact mean, and rounded once. With `unbiased` false the "
        "correction is 0. With fewer elements than the correction, the variance is NaN or "
        "infinite, as in PyTorch."
    ),
    inputs=("input",),
    attributes=(
        _DIM,
        Attribute(
            "unbiased", True, "bool", keyword_only=False, doc="Whether to apply a correction."
        ),
        _KEEPDIM,
        Attribute(
            "correction", 1, "int", doc="Number that is subtracted from the number of elements."
        ),
    ),
    entries=(
        entry("aclnnVar", "self=input dim:ints? unbiased:bool keepdim:bool out:out"),
        entry("aclnnVarCorrection", "self=input dim:ints? correction:int keepdim:bool out:out"),
    ),
    rules=(
        dtype_among("input", FLOATING_AND_DOUBLE),
        _CASTABLE,
        at_most_8_dims("input"),
        _DIMS,
        _SHAPE,
    ),
    infer=lambda call: {"out": (call.dtype("input"), _shape(call))},
    lower=_lower_var,
    example=("var(np.float32([1, 2, 3, 4]))", "array(1.6666666, dtype=float32)"),
    seealso=("mean",),
    accuracy=ROW_ACCURACY,
    gradient={
        "input": "gradient_of_variance(grad, input, dim, correction if unbiased else 0, keepdim)"
    },
    chunking="reduced",
)


# --- Maxima -------------------------------------------------------------------------------------------


def _test_elements(call: Call) -> str | None:
    """Nothing has no largest element; of no rows there is nothing to find."""
    shape = call.shape("input")
    if all(shape[axis] for axis in _axes(call)) or 0 in _shape(call):
        return None
    return f"{call.names['input']} has shape {shape}, without an element to be the largest"


_ELEMENTS = Rule("`input` has elements along `dim`", _test_elements, ("input",))


def _lower_most(lowering: Lowering) -> Mapping[str, int]:
    """In the input's dtype; integers in 64 bits, by a kernel that takes one run at a time."""
    dtype, shape = lowering.results["out"]
    value = _in_runs(lowering, dtype)
    if dtype in FLOATING_AND_DOUBLE:
        value = _chained(lowering, "amax", value, dtype, dtype)
    else:
        runs = _runs(lowering.call)
        for place in reversed([n for n, (_, reduced) in enumerate(runs) if reduced]):
            sizes = list(lowering.builder.value(value).shape)
            sizes[place] = 1
            axis = place - len(runs)
            value = lowering.opaque("most", [value], dtype, tuple(sizes), axis=axis)
    return {"out": lowering.builder.view(value, shape, contiguous_strides(shape))}


def _largest(name: str, summary: str, item: tuple[str, str], example: tuple[str, str], **more: Any):
    by_dims = "attributes" in more
    return Operator(
        name=name,
        summary=summary,
        expression="max x over the elements along dim" if by_dims else "max x over all elements",
        notes="If any element is NaN, the maximum is NaN.",
        inputs=("input",),
        entries=(entry(*item),),
        rules=(
            dtype_among("input", REAL),
            _CASTABLE,
            at_most_8_dims("input"),
            *((_DIMS,) if by_dims else (ends_if_empty("input", "out"),)),
            _ELEMENTS,
            _SHAPE,
        ),
        infer=lambda call: {"out": (call.dtype("input"), _shape(call))},
        lower=_lower_most,
        example=example,
        accuracy="Results are exact.",
        **more,
    )


amax = _largest(
    "amax",
    "The largest elements along dimensions.",
    ("aclnnAmax", "self=input dim:ints keepDim=keepdim:bool out:out"),
    ("amax(np.float32([[1, 2], [4, 3]]), 1)", "array([2., 4.], dtype=float32)"),
    attributes=(_DIM, _KEEPDIM),
    seealso=("max", "arg_max"),
    gradient={"input": "shared_by_largest(grad, input, out, dim, keepdim)"},
    chunking="maxima",
)
max = _largest(
    "max",
    "The largest element.",
    ("aclnnMax", "self=input out:out"),
    ("max(np.float32([1, 4, 3]))", "array(4., dtype=float32)"),
    seealso=("amax",),
    gradient={"input": "shared_by_largest(grad, input, out, None, False)"},
    chunking="maxima",
)


def _lower_place(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    value, axis = lowering.value("input"), _one_axis(lowering.call)
    if axis is None:  # of all elements, in their order
        value, axis = lowering.reshaped("input", (lowering.call.tensors["input"].size,)), 0
    sizes = list(lowering.builder.value(value).shape)
    sizes[axis] = 1
    found = lowering.opaque("place", [value], dtype, tuple(sizes), axis=axis - len(sizes))
    return {"out": lowering.reshaped(found, shape)}


def _one_axis(call: Call) -> int | None:
    dim, rank = call.switches["dim"], len(call.shape("input"))
    return dim % rank if isinstance(dim, int) and rank else None


arg_max = Operator(
    name="arg_max",
    summary="Indices of the largest elements along a dimension.",
    expression="the least i with input[…, i, …] = max",
    notes="A NaN counts as the largest. Without `dim`, indices count all elements.",
    inputs=("input",),
    attributes=(
        Attribute(
            "dim",
            None,
            "int",
            keyword_only=False,
            doc="The dimension; None means all elements.",
        ),
        _KEEPDIM,
    ),
    unlike={"out": {"dtype": aclDataType.ACL_INT64}},
    entries=(entry("aclnnArgMax", "self=input dim:int keepdim:bool out:out"),),
    rules=(
        dtype_among("input", (*FLOATING_AND_DOUBLE, *_WHOLE)),
        dtype_among("out", (aclDataType.ACL_INT32, aclDataType.ACL_INT64)),
        at_most_8_dims("input"),
        _DIMS,
        ends_if_empty("input", "out"),
        _ELEMENTS,
        _SHAPE,
    ),
    infer=lambda call: {"out": (aclDataType.ACL_INT64, _shape(call))},
    lower=_lower_place,
    example=("arg_max(np.float32([[1, 2], [4, 3]]), 1)", "array([1, 0])"),
    accuracy="Results are exact.",
    seealso=("amax",),
    chunking="reduced",
)


# --- Running sums -------------------------------------------------------------------------------------


def _lower_cumsum(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    rows = shape or (1,)
    axis = lowering.call.switches["dim"] % len(rows) - len(rows)  # type: ignore[operator]
    value = lowering.dense(lowering.reshaped("input", rows), dtype)
    return {
        "out": lowering.reshaped(lowering.opaque("cumsum", [value], dtype, rows, axis=axis), shape)
    }


cumsum = Operator(
    name="cumsum",
    summary="Cumulative sum along a dimension.",
    expression="out[…, i, …] = Σ input[…, j, …] over j ≤ i",
    notes=(
        "Sums have twice the digits of float64 and are rounded once; integers wrap around. "
        "BOOL counts as 0 and 1."
    ),
    inputs=("input",),
    attributes=(
        Attribute("dim", REQUIRED, "int", keyword_only=False, doc="The dimension to sum along."),
        Attribute(
            "dtype",
            None,
            "dtype",
            doc="The dtype to cast the input to first; default: the input's, int64 for integers.",
        ),
    ),
    entries=(entry("aclnnCumsum", "self=input dim:int dtype:dtype out:out"),),
    rules=(
        dtype_among("input", (*_SUMMED, aclDataType.ACL_BOOL)),
        Rule("`input` can be cast to `dtype`", _test_dtype, ("input", "dtype")),
        _CASTABLE,
        at_most_8_dims("input", "out"),
        axis_within("dim", "input"),
        same_shape("out", "input"),
    ),
    infer=lambda call: {"out": (_result_dtype(call), call.shape("input"))},
    lower=_lower_cumsum,
    example=("cumsum(np.float32([1, 2, 3]), 0)", "array([1., 3., 6.], dtype=float32)"),
    accuracy=ROW_ACCURACY,
    seealso=("sum",),
    gradient={
        "input": "aten.flip(cumsum(aten.flip(grad, [dim]), dim), [dim]) if grad.ndim else grad"
    },
    chunking="along_dim",
)
