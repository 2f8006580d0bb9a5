"""Reductions over dimensions, and running sums."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl import dtypes, socs
from aclnn.acl.constants import aclDataType
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import (
    FLOATING,
    FLOATING_AND_DOUBLE,
    Call,
    Rule,
    convertible_scalars,
    dtype_among,
    of_cann,
)
from aclnn.operators.declaration import REQUIRED, ROW_ACCURACY, Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.pointwise import only_on, unless_on
from aclnn.operators.words import require, specs

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


def reduced_axes(call: Call) -> frozenset[int]:
    """The dimensions that are summed over: none given stands for all."""
    rank = len(call.shape("input"))
    asked = call.switches.get("dim")
    if isinstance(asked, int):
        asked = (asked,)
    if not asked:
        return frozenset(range(rank))
    return frozenset([axis % builtins.max(1, rank) for axis in asked if rank])  # type: ignore[attr-defined]


def shape_left(call: Call) -> tuple[int, ...]:
    axes, shape = reduced_axes(call), call.shape("input")
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
    """CANN's function has no other dtypes than those of the result, integers among them."""
    if message := _test_dtype(call):
        return message
    if _result_dtype(call) in FLOATING_AND_DOUBLE or call.c_shaped:
        return None
    return f"{call.names['dtype']} is {call.word(_result_dtype(call))}, must be floating"


def _test_cast(call: Call) -> str | None:
    result = _result_dtype(call) if "dtype" in call.switches else call.dtype("input")
    if "out" not in call.tensors or dtypes.can_cast(result, call.dtype("out")):
        return None
    return f"{call.typed('out')}, to which the result's dtype {call.word(result)} cannot be cast"


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
    if "out" not in call.tensors or call.shape("out") == shape_left(call):
        return None
    return f"{call.shaped('out')}, must have {shape_left(call)}"


def _lone_shape(call: Call, role: str = "out") -> tuple[int, ...]:
    """The shape that is left; in C-shaped calls (1,) where an output without dimensions has that."""
    shape = shape_left(call)
    is_lone = call.c_shaped and role in call.tensors and call.shape(role) == (1,)
    return (1,) if is_lone and shape == () else shape


def _test_lone_shape(call: Call) -> str | None:
    if "out" not in call.tensors or call.shape("out") == _lone_shape(call):
        return None
    return f"{call.shaped('out')}, must have {shape_left(call)}"


def _runs(call: Call) -> list[tuple[int, bool]]:
    """Dimensions as they are walked: (size, whether it is summed over), neighbours that are as one.

    The shape alone decides, so that no stride changes an order of additions.
    """
    axes = reduced_axes(call)
    runs: list[tuple[int, bool]] = []
    for axis, size in enumerate(call.shape("input")):
        summed = axis in axes
        if size == 1:
            continue
        if runs and summed and runs[-1][1]:
            runs[-1] = (runs[-1][0] * size, True)
        else:
            runs.append((size, summed))
    return runs if builtins.any(summed for _, summed in runs) else [*runs, (1, True)]


def chained(
    lowering: Lowering, kernel: str, value: int, made: aclDataType, wide: aclDataType, **attrs: Any
) -> int:
    """One reduction after the other, the innermost first, with results of `wide` between them.

    The value has the shape of the runs; the result has 1 where it is reduced.
    """
    runs = _runs(lowering.call)
    sizes = [size for size, _ in runs]
    places = [index for index, (_, summed) in enumerate(runs) if summed]
    for index in reversed(places):
        sizes[index] = 1
        dtype = made if index == places[0] else wide
        (value,) = lowering.rows(
            kernel, [value], [(dtype, tuple(sizes))], index - len(runs), **attrs
        )
    return value


def in_runs(lowering: Lowering, dtype: aclDataType) -> int:
    """The input, with dimensions that are walked as one."""
    sizes = tuple([size for size, _ in _runs(lowering.call)])
    return lowering.dense(lowering.reshaped("input", sizes), dtype)


def _sum_shape(call: Call) -> tuple[int, ...]:
    """That of the output, where CANN's function looks at no more than its number of elements."""
    shape = shape_left(call)
    if not call.c_shaped or "out" not in call.tensors:
        return shape
    single = math.prod(shape) == 1 == call.tensors["out"].size
    return call.shape("out") if single or call.tensors["input"].size == 0 else shape


def _test_sum_shape(call: Call) -> str | None:
    requested = _sum_shape(call)
    if "out" not in call.tensors or call.shape("out") == requested:
        return None
    return f"{call.shaped('out')}, must have {requested}"


def _test_asked_dtype(call: Call) -> str | None:
    asked = _result_dtype(call)
    if "out" not in call.tensors or call.dtype("out") == asked:
        return None
    return f"{call.typed('out')}, must be {call.word(asked)}, as {call.names['dtype']}"


def _lower_sum(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    if 0 in lowering.call.shape("input"):
        return {"out": lowering.filled(0, dtype, shape)}
    if dtype == aclDataType.ACL_BOOL:
        return {"out": _any(lowering, shape)}
    floating = dtype in FLOATING_AND_DOUBLE
    wide = aclDataType.ACL_DOUBLE if floating else aclDataType.ACL_INT64
    attrs: dict[str, Any] = {} if floating else {"loads": _WHOLE_NAMES, "stores": ()}
    value = chained(lowering, "sum", in_runs(lowering, dtype), dtype, wide, **attrs)
    return {"out": lowering.builder.view(value, shape, contiguous_strides(shape))}


def _any(lowering: Lowering, shape: tuple[int, ...]) -> int:
    """Whether any element is true: more of them than 64 bits can count do not fit memory."""
    truth, whole = aclDataType.ACL_BOOL, aclDataType.ACL_INT64
    attrs: dict[str, Any] = {"loads": _WHOLE_NAMES, "stores": ()}
    count = chained(lowering, "sum", in_runs(lowering, truth), whole, whole, **attrs)
    value = lowering.builder.cast(count, graph_dtype(truth))
    return lowering.builder.view(value, shape, contiguous_strides(shape))


DIM = argument("dim", None, "ints", "The dimensions; none means all.")
KEEPDIM = argument("keepdim", False, "bool", "Whether reduced dimensions remain, with size 1.")
KNOWN_DIMS = Rule("`dim` has dimensions of `input`, none twice", _test_dims, ("dim", "input"))
_CASTABLE = Rule("the result's dtype can be cast to that of `out`", _test_cast, ("out",))
_SHAPE = Rule("`out` has the shape that is left", _test_shape, ("out", "input"))
_LONE_SHAPE = Rule(
    "`out` has the shape that is left; in C-shaped calls, (1,) will do for one without dimensions",
    _test_lone_shape,
    ("out", "input"),
)

sum = Operator(
    name="sum",
    summary="Sum over dimensions.",
    expression="Σ x over the elements along dim",
    notes=(
        "Float16, bfloat16 and float32 sums are exact and rounded once. Over dimensions that are "
        "not adjacent, sums of the inner ones are rounded to float64 first. Integers wrap around. "
        "Each element is cast to `dtype` first: floats to integers lose their fractions, and the "
        "sum of bools is whether any is true. The sum of no elements is 0. aclnnSum is another function, for lists of tensors."
    ),
    inputs=("input",),
    attributes=(
        DIM,
        KEEPDIM,
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
        *require("input: REAL"),
        Rule("`dtype` is one that sums have", _test_sum_dtype, ("dtype",)),
        of_cann(Rule("`out` has the dtype `dtype`", _test_asked_dtype, ("out", "dtype"))),
        _CASTABLE,
        *require("input: at most 8 dims"),
        KNOWN_DIMS,
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


def of_nothing(lowering: Lowering) -> int:
    """0/0: no number, which a graph has no word for."""
    dtype, shape = lowering.results["out"]
    return lowering.point("divs", [lowering.filled(0, dtype, shape)], dtype, shape, params=(0.0,))


def _lower_mean(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    if 0 in lowering.call.shape("input"):
        floating = dtype in FLOATING_AND_DOUBLE
        return {"out": of_nothing(lowering) if floating else lowering.filled(0, dtype, shape)}
    if dtype in FLOATING_AND_DOUBLE:
        value = chained(lowering, "mean", in_runs(lowering, dtype), dtype, aclDataType.ACL_DOUBLE)
    else:
        value = _whole_mean(lowering, dtype)
    return {"out": lowering.builder.view(value, shape, contiguous_strides(shape))}


def _whole_mean(lowering: Lowering, dtype: aclDataType) -> int:
    """The sum in 64 bits, divided toward zero."""
    whole, axes = aclDataType.ACL_INT64, reduced_axes(lowering.call)
    attrs: dict[str, Any] = {"loads": _WHOLE_NAMES, "stores": ()}
    total = chained(lowering, "sum", in_runs(lowering, dtype), whole, whole, **attrs)
    sizes = lowering.builder.value(total).shape
    count = lowering.filled(
        math.prod([lowering.call.shape("input")[axis] for axis in axes]), whole, sizes
    )
    quotient = lowering.point("div_trunc", [total, count], whole, sizes)
    return lowering.builder.cast(quotient, graph_dtype(dtype))


mean = Operator(
    name="mean",
    summary="Mean over dimensions.",
    expression="Σ x / n over the n elements along dim",
    notes=(
        "The mean is exact and rounded once. Over dimensions that are not adjacent, means of the "
        "inner ones are rounded to float64 first. The mean of no elements is NaN. "
        "Integers and BOOL need a floating `dtype`; CANN's function takes one of integers, too, where the sum "
        "is divided toward zero."
    ),
    inputs=("input",),
    attributes=(
        DIM,
        KEEPDIM,
        Attribute("dtype", None, "dtype", doc="The dtype to cast the input to first."),
    ),
    entries=(entry("aclnnMean", "self=input dim:ints keepDim=keepdim:bool dtype:dtype out:out"),),
    rules=(
        *require("input: REAL"),
        Rule(
            "`dtype` is floating, in C-shaped calls maybe one of integers, and `input` can be cast to it",
            _test_mean,
            ("input", "dtype"),
        ),
        _CASTABLE,
        *require("input: at most 8 dims"),
        KNOWN_DIMS,
        _LONE_SHAPE,
    ),
    infer=lambda call: {"out": (_result_dtype(call), _lone_shape(call))},
    lower=_lower_mean,
    example=("mean(np.float32([[1, 2], [3, 4]]), 1)", "array([1.5, 3.5], dtype=float32)"),
    seealso=("sum", "var"),
    accuracy=ROW_ACCURACY,
    gradient={
        "input": "repeated_along(grad, input, dim, keepdim) * (grad.numel() / (input.numel() or 1))"
    },
    chunking="means",
)


def freedom(call: Call) -> float:
    """Number of elements that each variance counts as being of."""
    axes, shape = reduced_axes(call), call.shape("input")
    correction = call.switches["correction"] if call.switches.get("unbiased", True) else 0
    assert isinstance(correction, int)
    return float(builtins.max(0, math.prod([shape[axis] for axis in axes]) - correction))


def _without_rest(lowering: Lowering, total: int, rest: int) -> int:
    """Squared distances from what the mean was rounded to are more: by the square of their sum / n."""
    double, sizes = aclDataType.ACL_DOUBLE, lowering.builder.value(total).shape
    shape = lowering.call.shape("input")
    count = math.prod([shape[axis] for axis in reduced_axes(lowering.call)])
    mean = lowering.point("divs", [rest], double, sizes, params=(float(count),))
    return lowering.point("addcmul", [total, rest, mean], double, sizes, params=(-1.0,))


def variance(lowering: Lowering, dtype: aclDataType) -> int:
    """The mean of squared distances from the mean, in float64."""
    double = aclDataType.ACL_DOUBLE
    value = in_runs(lowering, dtype)
    sizes = lowering.builder.value(value).shape
    middle = chained(lowering, "mean", value, double, double)
    operands = [lowering.dense(one, double, sizes) for one in (value, middle)]
    centered = lowering.point("sub", operands, double, sizes, params=(1.0,))
    squares = lowering.point("square", [centered], double, sizes)
    total = chained(lowering, "sum", squares, double, double)
    if dtype == double:
        total = _without_rest(lowering, total, chained(lowering, "sum", centered, double, double))
    made = lowering.builder.value(total).shape
    return lowering.point("divs", [total], double, made, params=(freedom(lowering.call),))


def _lower_var(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    if 0 in lowering.call.shape("input"):
        return {"out": of_nothing(lowering)}
    value = lowering.builder.cast(variance(lowering, dtype), graph_dtype(dtype))
    return {"out": lowering.builder.view(value, shape, contiguous_strides(shape))}


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
        DIM,
        argument("unbiased", True, "bool", "Whether to apply a correction."),
        KEEPDIM,
        Attribute(
            "correction", 1, "int", doc="Number that is subtracted from the number of elements."
        ),
    ),
    entries=(
        entry("aclnnVar", "self=input dim:ints? unbiased:bool keepdim:bool out:out"),
        entry("aclnnVarCorrection", "self=input dim:ints? correction:int keepdim:bool out:out"),
    ),
    rules=(
        *require("input: FLOATING_AND_DOUBLE"),
        _CASTABLE,
        *require("input: at most 8 dims"),
        KNOWN_DIMS,
        _SHAPE,
    ),
    infer=lambda call: {"out": (call.dtype("input"), shape_left(call))},
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
    if builtins.all(shape[axis] for axis in reduced_axes(call)) or 0 in shape_left(call):
        return None
    return f"{call.names['input']} has shape {shape}, without an element to be the largest"


_ELEMENTS = Rule("`input` has elements along `dim`", _test_elements, ("input",))


def largest(lowering: Lowering, dtype: aclDataType, shape: tuple[int, ...]) -> int:
    """In the input's dtype; integers in 64 bits, by a kernel that takes one run at a time."""
    value = in_runs(lowering, dtype)
    if dtype in FLOATING_AND_DOUBLE:
        value = chained(lowering, "amax", value, dtype, dtype)
    else:
        runs = _runs(lowering.call)
        for index in reversed([n for n, (_, reduced) in enumerate(runs) if reduced]):
            sizes = list(lowering.builder.value(value).shape)
            sizes[index] = 1
            axis = index - len(runs)
            value = lowering.opaque("most", [value], dtype, tuple(sizes), axis=axis)
    return lowering.builder.view(value, shape, contiguous_strides(shape))


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
            *require("input: REAL"),
            _CASTABLE,
            *require("input: at most 8 dims"),
            *((KNOWN_DIMS,) if by_dims else require("input, out: if empty ends")),
            _ELEMENTS,
            _SHAPE if by_dims else _LONE_SHAPE,
        ),
        infer=lambda call: {
            "out": (call.dtype("input"), shape_left(call) if by_dims else _lone_shape(call))
        },
        lower=lambda lowering: {"out": largest(lowering, *lowering.results["out"])},
        example=example,
        accuracy="Results are exact.",
        **more,
    )


amax = _largest(
    "amax",
    "The largest elements along dimensions.",
    ("aclnnAmax", "self=input dim:ints keepDim=keepdim:bool out:out"),
    ("amax(np.float32([[1, 2], [4, 3]]), 1)", "array([2., 4.], dtype=float32)"),
    attributes=(DIM, KEEPDIM),
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
    return _placed(lowering, "place")


def _placed(lowering: Lowering, kernel: str) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    value, axis = lowering.value("input"), _one_axis(lowering.call)
    if axis is None:  # of all elements, in their order
        value, axis = lowering.reshaped("input", (lowering.call.tensors["input"].size,)), 0
    sizes = list(lowering.builder.value(value).shape)
    sizes[axis] = 1
    found = lowering.opaque(kernel, [value], dtype, tuple(sizes), axis=axis - len(sizes))
    return {"out": lowering.reshaped(found, shape)}


def _one_axis(call: Call) -> int | None:
    dim, rank = call.switches.get("dim"), len(call.shape("input"))
    return dim % rank if isinstance(dim, int) and rank else None


def _lower_least_place(lowering: Lowering) -> Mapping[str, int]:
    return _placed(lowering, "smallest_place")


arg_max = Operator(
    name="arg_max",
    summary="Indices of the largest elements along a dimension.",
    expression="the least i with input[…, i, …] = max",
    notes="A NaN counts as the largest. Without `dim`, indices count all elements.",
    inputs=("input",),
    attributes=(
        argument("dim", None, "int", "The dimension; None means all elements."),
        KEEPDIM,
    ),
    sample_specs=specs("out: INT64"),
    entries=(entry("aclnnArgMax", "self=input dim:int keepdim:bool out:out"),),
    rules=(
        *require("input: FLOATING_AND_DOUBLE INTEGERS; out: INT32 INT64; input: at most 8 dims"),
        KNOWN_DIMS,
        *require("input, out: if empty ends"),
        _ELEMENTS,
        _LONE_SHAPE,
    ),
    infer=lambda call: {"out": (aclDataType.ACL_INT64, _lone_shape(call))},
    lower=_lower_place,
    example=("arg_max(np.float32([[1, 2], [4, 3]]), 1)", "array([1, 0])"),
    accuracy="Results are exact.",
    seealso=("amax",),
    chunking="reduced",
)


argmin = Operator(
    name="argmin",
    summary="Indices of the smallest elements along a dimension.",
    expression="the least i with input[…, i, …] = min",
    notes="A NaN counts as the smallest. Without `dim`, indices count all elements.",
    inputs=("input",),
    attributes=arg_max.attributes,
    sample_specs=arg_max.sample_specs,
    entries=(entry("aclnnArgMin", "self=input dim:int keepdim:bool out:out"),),
    rules=(
        KNOWN_DIMS,
        *require("input: FLOATING_AND_DOUBLE INTEGERS; out: INT32 INT64; input: at most 8 dims"),
        _ELEMENTS,
        *require("input, out: if empty ends"),
        _LONE_SHAPE,
    ),
    infer=arg_max.infer,
    lower=_lower_least_place,
    example=("argmin(np.float32([[1, 2], [4, 3]]), 1)", "array([0, 1])"),
    accuracy="Results are exact.",
    seealso=("amin", "arg_max"),
)


# --- Minima -------------------------------------------------------------------------------------------


def smallest(lowering: Lowering, dtype: aclDataType, shape: tuple[int, ...]) -> int:
    """Floats by the kernel of maxima, between two changes of sign."""
    value = in_runs(lowering, dtype)
    sizes = lowering.builder.value(value).shape
    if dtype in FLOATING_AND_DOUBLE:
        value = chained(
            lowering, "amax", lowering.point("neg", [value], dtype, sizes), dtype, dtype
        )
        value = lowering.point("neg", [value], dtype, lowering.builder.value(value).shape)
    else:
        runs = _runs(lowering.call)
        for index in reversed([n for n, (_, reduced) in enumerate(runs) if reduced]):
            made = list(lowering.builder.value(value).shape)
            made[index] = 1
            axis = index - len(runs)
            value = lowering.opaque("smallest", [value], dtype, tuple(made), axis=axis)
    return lowering.builder.view(value, shape, contiguous_strides(shape))


def _smallest(
    name: str, summary: str, item: tuple[str, str], example: tuple[str, str], **more: Any
):
    by_dims = "attributes" in more
    return Operator(
        name=name,
        summary=summary,
        expression="min x over the elements along dim" if by_dims else "min x over all elements",
        notes="If any element is NaN, the minimum is NaN.",
        inputs=("input",),
        entries=(entry(*item),),
        rules=(
            *(require("cann out: dtype of input") if by_dims else ()),
            *require("input: REAL"),
            *((_CASTABLE, KNOWN_DIMS) if by_dims else require("out: REAL")),
            *require("input, out: at most 8 dims"),
            *(() if by_dims else require("input, out: if empty ends")),
            _ELEMENTS,
            _SHAPE if by_dims else _SINGLE,
        ),
        infer=lambda call: {"out": (call.dtype("input"), _sum_shape(call))},
        lower=lambda lowering: {"out": smallest(lowering, *lowering.results["out"])},
        example=example,
        accuracy="Results are exact.",
        **more,
    )


_SINGLE = Rule(
    "`out` has the shape that is left; in C-shaped calls, any single element will do",
    _test_sum_shape,
    ("out", "input"),
)
amin = _smallest(
    "amin",
    "The smallest elements along dimensions.",
    ("aclnnAmin", "self=input dim:ints keepDim=keepdim:bool out:out"),
    ("amin(np.float32([[1, 2], [4, 3]]), 1)", "array([1., 3.], dtype=float32)"),
    attributes=(DIM, KEEPDIM),
    seealso=("min", "argmin"),
    gradient={"input": "shared_by_largest(grad, input, out, dim, keepdim)"},
)
min = _smallest(
    "min",
    "The smallest element.",
    ("aclnnMin", "self=input out:out"),
    ("min(np.float32([1, 4, 3]))", "array(1., dtype=float32)"),
    seealso=("amin",),
    gradient={"input": "shared_by_largest(grad, input, out, None, False)"},
)


# --- Extreme elements and their indices along a dimension ---------------------------------------------


def _lower_extreme(kernel: str) -> Callable[[Lowering], Mapping[str, int]]:
    """Places first, and the elements that are there."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        call, (dtype, shape) = lowering.call, lowering.results["out"]
        own = call.shape("input") or (1,)
        value, axis = lowering.reshaped("input", own), axis_of_one(call)
        made = (*own[:axis], 1, *own[axis + 1 :])
        axis -= len(own)
        places = lowering.opaque(kernel, [value], aclDataType.ACL_INT64, made, axis=axis)
        found = lowering.taken("gather", [value, places], dtype, made, axis=axis)
        results = {"out": lowering.reshaped(found, shape)}
        if lowering.wants("indices"):
            results["indices"] = lowering.reshaped(places, lowering.results["indices"][1])
        return results

    return lower


def axis_of_one(call: Call) -> int:
    """The dimension, counted from the first; of a tensor without dimensions the only one."""
    dim = call.switches["dim"]
    assert isinstance(dim, int)
    return dim % builtins.max(1, len(call.shape("input")))


def _test_indices_shape(call: Call) -> str | None:
    if "indices" not in call.tensors or call.shape("indices") == _lone_shape(call, "indices"):
        return None
    return f"{call.shaped('indices')}, must have {shape_left(call)}"


_EXTREME = (*FLOATING, aclDataType.ACL_INT64, aclDataType.ACL_BOOL)
_WITH_INT32 = (*_EXTREME, aclDataType.ACL_INT32)


def _extreme(name: str, word: str, cann: str, kernel: str, example: str) -> Operator:
    return Operator(
        name=name,
        summary=f"The {word} elements along a dimension, and their indices.",
        expression=f"out = input[indices], {name[:3]} x over the elements along dim",
        notes="A NaN precedes all others; of equal elements the first one is selected.",
        inputs=("input",),
        outputs=("out", "indices"),
        attributes=(
            argument("dim", REQUIRED, "int", "The dimension to look along."),
            KEEPDIM,
        ),
        sample_specs=specs("indices: INT64"),
        entries=(entry(cann, "self=input dim:int keepdim:bool out:out indices=indices:out"),),
        rules=(
            *require("input: REAL"),
            of_cann(unless_on("Ascend950", dtype_among("input", _EXTREME))),
            of_cann(only_on("Ascend950", dtype_among("input", _WITH_INT32))),
            *require("out: dtype of input; indices: INT32 INT64"),
            *require("input, out, indices: at most 8 dims; dim: axis of input"),
            *require("input: if empty ends"),
            _ELEMENTS,
            _LONE_SHAPE,
            Rule(
                "`indices` has the shape that is left; in C-shaped calls, (1,) will do for one "
                "without dimensions",
                _test_indices_shape,
                ("indices", "input"),
            ),
        ),
        infer=lambda call: {
            "out": (call.dtype("input"), _lone_shape(call)),
            "indices": (aclDataType.ACL_INT64, _lone_shape(call, "indices")),
        },
        lower=_lower_extreme(kernel),
        example=(f"{name}(np.float32([[1, 2], [4, 3]]), 1)", example),
        accuracy="Results are exact.",
        seealso=(name[:3], f"a{name[:3]}"),
        gradient={"input": "at_indices(grad, input, dim, indices, keepdim)"},
    )


max_dim = _extreme(
    "max_dim",
    "largest",
    "aclnnMaxDim",
    "place",
    "(array([2., 4.], dtype=float32), array([1, 0]))",
)
min_dim = _extreme(
    "min_dim",
    "smallest",
    "aclnnMinDim",
    "smallest_place",
    "(array([1., 3.], dtype=float32), array([0, 1]))",
)


# --- Bools --------------------------------------------------------------------------------------------


def _truth_dtype(call: Call) -> aclDataType:
    """As PyTorch has it: uint8 gives uint8."""
    byte = aclDataType.ACL_UINT8
    if not call.c_shaped and call.dtype("input") == byte:
        return byte
    return aclDataType.ACL_BOOL


def _lower_truth(every: bool) -> Callable[[Lowering], Mapping[str, int]]:
    """Lowering of `any` and `all`: of all elements, whether none is false."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        truth, whole = aclDataType.ACL_BOOL, aclDataType.ACL_INT64
        if 0 in lowering.call.shape("input"):
            return {"out": lowering.filled(float(every), dtype, shape)}
        value = in_runs(lowering, truth)
        if every:
            value = lowering.point(
                "logical_not", [value], truth, lowering.builder.value(value).shape
            )
        attrs: dict[str, Any] = {"loads": _WHOLE_NAMES, "stores": ()}
        count = chained(lowering, "sum", value, whole, whole, **attrs)
        found = lowering.builder.cast(count, graph_dtype(truth))
        if every:
            found = lowering.point(
                "logical_not", [found], truth, lowering.builder.value(found).shape
            )
        made = lowering.builder.view(found, shape, contiguous_strides(shape))
        return {"out": lowering.builder.cast(made, graph_dtype(dtype))}

    return lower


def _truth_of(name: str, words: str, empty: str, found: str) -> Operator:
    return Operator(
        name=name,
        summary=f"Whether {words} along dimensions.",
        expression=f"{name} x ≠ 0 over the elements along dim",
        notes=f"NaN is true. Of no elements it is {empty}. Of uint8 the result is uint8, as in PyTorch.",
        inputs=("input",),
        attributes=(DIM, KEEPDIM),
        sample_specs=specs("out: BOOL"),
        entries=(entry(f"aclnn{name.capitalize()}", "self=input dim:ints keepdim:bool out:out"),),
        rules=(
            *require("input: REAL; out: BOOL UINT8"),
            KNOWN_DIMS,
            *require("input, out: at most 8 dims"),
            _LONE_SHAPE,
        ),
        infer=lambda call: {"out": (_truth_dtype(call), _lone_shape(call))},
        lower=_lower_truth(name == "all"),
        example=(f"{name}(np.float32([[0, 2], [0, 0]]), 1)", f"array([{found}])"),
        accuracy="Results are exact.",
    )


any = _truth_of("any", "any element is true", "false", " True, False")
all = _truth_of("all", "all elements are true", "true", "False, False")


# --- Products -----------------------------------------------------------------------------------------


def _lower_product(lowering: Lowering) -> Mapping[str, int]:
    """Lowering of products; for bools, whether all are true."""
    call, (dtype, shape) = lowering.call, lowering.results["out"]
    if 0 in call.shape("input"):
        return {"out": lowering.filled(1, dtype, shape)}
    axis, value = _one_axis(call), lowering.dense("input", dtype)
    if axis is None:
        value, axis = lowering.reshaped(value, (call.tensors["input"].size,)), 0
    sizes = list(lowering.builder.value(value).shape)
    sizes[axis] = 1
    found = lowering.opaque("product_along", [value], dtype, tuple(sizes), axis=axis - len(sizes))
    return {"out": lowering.reshaped(found, shape)}


def _test_product_dtype(call: Call) -> str | None:
    return _test_among(call, (*_SUMMED, aclDataType.ACL_BOOL))


_PRODUCT_RULES = (
    *require("input: REAL"),
    Rule("`dtype` is one that products have", _test_product_dtype, ("dtype",)),
    of_cann(Rule("`out` has the dtype `dtype`", _test_asked_dtype, ("out", "dtype"))),
    _CASTABLE,
    *require("input, out: at most 8 dims"),
)
_PRODUCT: dict[str, Any] = {
    "notes": (
        "Products are in float64 and rounded once; integers wrap around. Each element is cast to `dtype` first. "
        "The product of no elements is 1. Complex operands, which CANN takes, are refused."
    ),
    "inputs": ("input",),
    "infer": lambda call: {"out": (_result_dtype(call), _sum_shape(call))},
    "lower": _lower_product,
    "accuracy": "Products are in float64, of n elements within n·2^-53, and rounded once.",
}
_PRODUCT_DTYPE = Attribute(
    "dtype",
    None,
    "dtype",
    doc="The dtype to cast the input to first; default: the input's, int64 for integers.",
)
prod = Operator(
    name="prod",
    summary="Product along a dimension, or of all elements.",
    expression="Π x over the elements along dim",
    attributes=(
        argument("dim", None, "int", "The dimension; None means all elements."),
        KEEPDIM,
        _PRODUCT_DTYPE,
    ),
    entries=(entry("aclnnProdDim", "self=input dim:int keepDim=keepdim:bool dtype:dtype out:out"),),
    rules=(*_PRODUCT_RULES, KNOWN_DIMS, _SHAPE),
    example=("prod(np.float32([[1, 2], [3, 4]]), 1)", "array([ 2., 12.], dtype=float32)"),
    seealso=("sum",),
    gradient={"input": "gradient_of_product(grad, input, out, dim, keepdim)"},
    **_PRODUCT,
)
prod_all = Operator(
    name="prod_all",
    functional=False,
    form_of="prod",
    summary="Product of all elements.",
    expression="Π x over all elements",
    attributes=(_PRODUCT_DTYPE,),
    entries=(entry("aclnnProd", "self=input dtype:dtype out:out"),),
    rules=(*_PRODUCT_RULES, _SINGLE),
    example=("prod_all(np.float32([2, 3]))", "array(6., dtype=float32)"),
    seealso=("prod",),
    **_PRODUCT,
)


# --- Norms --------------------------------------------------------------------------------------------


def _norm_dtype(call: Call) -> aclDataType:
    """Dtype that is computed and given."""
    asked, own = call.switches.get("dtype"), call.dtype("input")
    if asked is not None:
        return aclDataType(asked)  # type: ignore[arg-type]
    return own if own in FLOATING_AND_DOUBLE else aclDataType.ACL_FLOAT


def _lower_norm(number: str) -> Callable[[Lowering], Mapping[str, int]]:
    """Over one dimension, which has those that are reduced, the others before it."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        call, builder, (dtype, shape) = lowering.call, lowering.builder, lowering.results["out"]
        own, reduced = call.shape("input"), reduced_axes(call)
        if 0 in own:
            return {"out": lowering.filled(0, dtype, shape)}
        kept = [axis for axis in range(len(own)) if axis not in reduced]
        order = [*kept, *sorted(reduced)]
        operand = builder.value(lowering.value("input"))
        turned = builder.view(
            lowering.value("input"), [own[n] for n in order], [operand.strides[n] for n in order]
        )
        lines = math.prod([own[n] for n in kept])
        value = lowering.dense(lowering.reshaped(turned, (lines, math.prod(own) // lines)), dtype)
        made = lowering.opaque(
            "norm_along", [value], dtype, (lines, 1), axis=-1, params=(lowering.number(number),)
        )
        return {"out": lowering.reshaped(made, shape)}

    return lower


def _norm(
    name: str, number: str, item: tuple[str, str], own_rules: tuple[Rule, ...], *more: Attribute
) -> Operator:
    return Operator(
        name=name,
        summary="Norm over dimensions.",
        expression=f"(Σ |x|^{number})^(1/{number}) over the elements along dim",
        notes=(
            f"With infinite `{number}` it is the largest magnitude, or the smallest; with 0 the number of elements "
            f"that are not 0. A `{number}` of at least 2^31 - 1 counts as infinite. Powers and their sum are in "
            "float64, the result is rounded once. The norm of no elements is 0."
        ),
        inputs=("input",),
        attributes=(
            argument(number, 2.0, "scalar", "The exponent, a float32 number."),
            DIM,
            KEEPDIM,
            *more,
        ),
        entries=(entry(*item),),
        rules=(
            *require("input: REAL"),
            convertible_scalars(number),
            *own_rules,
            Rule("the result's dtype can be cast to that of `out`", _test_norm_cast, ("out",)),
            KNOWN_DIMS,
            *require("input, out: at most 8 dims"),
            _SHAPE,
        ),
        infer=lambda call: {"out": (_norm_dtype(call), shape_left(call))},
        lower=_lower_norm(number),
        example=(f"{name}(np.float32([[3, 4], [0, 2]]), 2, 1)", "array([5., 2.], dtype=float32)"),
        accuracy="Powers and sums are in float64, of n elements within n·2^-53, and rounded once.",
        seealso=("sum",),
        gradient={"input": f"gradient_of_norm(grad, input, out, {number}, dim, keepdim)"},
    )


def _test_norm_cast(call: Call) -> str | None:
    result = _norm_dtype(call)
    if "out" not in call.tensors or dtypes.can_cast(result, call.dtype("out")):
        return None
    return f"{call.typed('out')}, to which the result's dtype {call.word(result)} cannot be cast"


def _test_norm_dtype(call: Call) -> str | None:
    asked = call.switches["dtype"]
    result = _norm_dtype(call)
    if result not in FLOATING_AND_DOUBLE:
        return f"{call.names['dtype']} is {call.word(result)}, must be floating"
    if result == aclDataType.ACL_BF16 and not socs.supports_bfloat16(call.soc):
        return f"{call.names['dtype']} is {call.word(result)}, which {call.soc} does not support"
    return None if asked is None else _test_asked_norm_dtype(call)


def _test_asked_norm_dtype(call: Call) -> str | None:
    if not call.c_shaped or "out" not in call.tensors or call.dtype("out") == _norm_dtype(call):
        return None
    return f"{call.typed('out')}, must be {call.word(_norm_dtype(call))}, as {call.names['dtype']}"


norm = _norm(
    "norm",
    "p",
    ("aclnnNorm", "self=input pScalar=p:scalar dim:ints keepdim:bool out:out"),
    require("cann input, out: FLOATING"),
)
linalg_vector_norm = _norm(
    "linalg_vector_norm",
    "ord",
    (
        "aclnnLinalgVectorNorm",
        "self=input ord:scalar dims=dim:ints keepDims=keepdim:bool dtype:dtype out:out",
    ),
    (
        Rule("`dtype` is floating, and `out` has it", _test_norm_dtype, ("dtype", "out")),
        *require("cann input: FLOATING"),
    ),
    Attribute("dtype", None, "dtype", doc="The dtype to convert the input to first."),
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
        argument("dim", REQUIRED, "int", "The dimension to sum along."),
        Attribute(
            "dtype",
            None,
            "dtype",
            doc="The dtype to cast the input to first; default: the input's, int64 for integers.",
        ),
    ),
    entries=(entry("aclnnCumsum", "self=input dim:int dtype:dtype out:out"),),
    rules=(
        *require("input: REAL"),
        Rule("`input` can be cast to `dtype`", _test_dtype, ("input", "dtype")),
        _CASTABLE,
        *require("input, out: at most 8 dims; dim: axis of input; out: shape of input"),
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
