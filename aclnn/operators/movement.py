"""Data movement: casts, permutations, copies, pieces, repetitions, margins and triangles."""

import builtins
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from aclnn.acl import dtypes
from aclnn.acl.arguments import shown
from aclnn.acl.constants import aclDataType, aclFormat
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import (
    MAX_DIMS,
    NOTHING_TO_DO,
    Call,
    Rule,
    axis_of,
    convertible_scalars,
    dim_in_range,
    has_dims,
    has_shape,
    list_dtype_among,
    of_cann,
    option_dtype_among,
    rule,
    same_dtype,
    same_format,
    same_shape,
)
from aclnn.operators.declaration import REQUIRED, Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.sizes import number
from aclnn.operators.words import require, specs

_ANY = tuple(dtypes.NUMPY)


# --- Cast -----------------------------------------------------------------------------------------


def _infer_cast(call: Call) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
    return {"out": (call.switches["dtype"], call.shape("input"))}


def _lower_cast(lowering: Lowering) -> Mapping[str, int]:
    return {"out": lowering.dense("input", lowering.results["out"][0])}


cast = Operator(
    name="cast",
    summary="The same numbers in another dtype.",
    expression="input as dtype",
    notes=(
        "Rounded to nearest, ties to even. Conversions to integers truncate, and NaN becomes 0; "
        "complex numbers lose their imaginary part. If the output has yet another dtype, the "
        "result is converted once more."
    ),
    infer=_infer_cast,
    lower=_lower_cast,
    inputs=("input",),
    attributes=(argument("dtype", REQUIRED, "dtype", "The dtype of the result."),),
    entries=(entry("aclnnCast", "self=input dtype:dtype out:out"),),
    rules=(
        *require("input: FLOATING_AND_DOUBLE INTEGERS UINT16 UINT32 UINT64 BOOL COMPLEX"),
        option_dtype_among("dtype", _ANY),
        *require("out: FLOATING_AND_DOUBLE INTEGERS UINT16 UINT32 UINT64 BOOL COMPLEX"),
        *require("input, out: at most 8 dims; out: shape of input"),
    ),
    example=('cast(np.float32([1.75, -2.5]), "int32")', "array([ 1, -2], dtype=int32)"),
    gradient={"input": "grad"},
    elementwise=True,
)


# --- Permutation ------------------------------------------------------------------------------------


@rule("`dims` has every dimension of `input` once")
def _permutes(call: Call) -> str | None:
    dims, rank = call.switches["dims"], len(call.shape("input"))
    assert isinstance(dims, tuple)
    if len(dims) != rank:
        return (
            f"{call.names['dims']} has {len(dims)} numbers, but {call.names['input']} has "
            f"{rank} "
            "dimensions"
        )
    if len({dim % rank for dim in dims}) == rank:
        return None
    return f"{call.names['dims']} is {shown(dims)}, must not have a dimension twice"


@rule("`dims` are dimensions of `input`")
def _dims_in_range(call: Call) -> str | None:
    dims, rank = call.switches["dims"], len(call.shape("input"))
    assert isinstance(dims, tuple)
    if all(-rank <= dim < rank for dim in dims):
        return None
    return f"{call.names['dims']} is {shown(dims)}, must be from {-rank} to {rank - 1}"


def _axes(call: Call) -> list[int]:
    dims, rank = call.switches["dims"], len(call.shape("input"))
    assert isinstance(dims, tuple)
    return [dim % rank for dim in dims]


def _permuted_shape(call: Call) -> tuple[int, ...]:
    return tuple([call.shape("input")[axis] for axis in _axes(call)])


permute = Operator(
    name="permute",
    summary="A copy with the dimensions in another order.",
    expression="out[i] = input[j], j[dims[k]] = i[k]",
    notes="A view with other strides does the same without a copy.",
    lower=lambda lowering: {
        "out": lowering.builder.transpose(lowering.value("input"), _axes(lowering.call))
    },
    inputs=("input",),
    attributes=(
        argument(
            "dims",
            REQUIRED,
            "ints",
            "Dimensions of `input`, in their new order; negative ones count from the last.",
        ),
    ),
    entries=(entry("aclnnPermute", "self=input dims:ints out:out"),),
    rules=(
        *require("input: FLOATING_AND_DOUBLE INTEGERS UINT16 UINT32 UINT64 BOOL COMPLEX"),
        *require("out: dtype of input; out: rank of input"),
        _permutes(),
        *require("input, out: at most 8 dims"),
        _dims_in_range(),
        has_shape("out", _permuted_shape, "the shape of `input`, in the order of `dims`"),
    ),
    example=("permute(np.float32([[1], [2]]), (1, 0))", "array([[1., 2.]], dtype=float32)"),
    gradient={"input": "permuted_back(grad, dims)"},
    chunking="dask.array: transpose",
)


# --- Copies -----------------------------------------------------------------------------------------


def _lower_copy(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    return {"out": lowering.dense("src", dtype, shape)}


copy_ = Operator(
    name="copy_",
    in_place="copy_",
    summary="Copy elements, broadcast and converted, over those of another tensor.",
    expression="input = src",
    notes="Converts as `cast` does.",
    infer=lambda call: {"out": (call.dtype("input"), call.shape("input"))},
    lower=_lower_copy,
    inputs=("input", "src"),
    entries=(entry("aclnnInplaceCopy", "selfRef=input:inout src"),),
    rules=(
        *require("input, src: FLOATING_AND_DOUBLE INTEGERS UINT16 UINT32 UINT64 BOOL COMPLEX"),
        *require("input, src: at most 8 dims; src: broadcasts to input"),
    ),
    example=("copy_(np.float32([0, 0]), np.float32([7]))", "array([7., 7.], dtype=float32)"),
    differentiated_as="aten.copy_(input, src)",
)


# --- Concatenation ----------------------------------------------------------------------------------

_DIM = argument("dim", 0, "int", "The dimension to concatenate along.")


def _is_nothing(shape: tuple[int, ...]) -> bool:
    """An empty tensor of one dimension goes with any others."""
    return shape == (0,)


def _joined_shapes(call: Call) -> list[tuple[int, ...]]:
    shapes = [one.shape for one in call.lists["tensors"]]
    return [shape for shape in shapes if not _is_nothing(shape)] or shapes[:1]


def _joined_dtype(call: Call) -> aclDataType | None:
    result: aclDataType | None = call.lists["tensors"][0].dtype
    for one in call.lists["tensors"][1:]:
        result = dtypes.promote(result, one.dtype) if result is not None else None
    return result


def _joined_shape(call: Call) -> tuple[int, ...]:
    shapes = _joined_shapes(call)
    dim, first = call.switches["dim"], shapes[0]
    assert isinstance(dim, int)
    axis = dim % len(first)
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


@rule("`tensors` has at least one tensor")
def _some_tensors(call: Call) -> str | None:
    return None if call.lists["tensors"] else f"{call.names['tensors']} is empty"


@rule("the dtypes of `tensors` promote")
def _tensors_promote(call: Call) -> str | None:
    if _joined_dtype(call) is not None:
        return None
    kinds = dict.fromkeys(call.word(one.dtype) for one in call.lists["tensors"])
    return f"dtypes of {call.names['tensors']} do not promote: {', '.join(kinds)}"


def _not_wide_complex() -> Rule:
    wide = aclDataType.ACL_COMPLEX128

    def test(call: Call) -> str | None:
        if _joined_dtype(call) != wide:
            return None
        return f"dtypes of {call.names['tensors']} promote to {call.word(wide)}, which is not supported"

    return Rule(
        f"the dtypes of `tensors` do not promote to {dtypes.cann_name(wide)}", test, ("tensors",)
    )


@rule(f"`tensors` have 1 to {MAX_DIMS} dimensions")
def _tensors_of_dims(call: Call) -> str | None:
    for index, one in enumerate(call.lists["tensors"]):
        if not 1 <= len(one.shape) <= MAX_DIMS:
            return (
                f"{call.names['tensors']}[{index}] has {len(one.shape)} dimensions, must have "
                f"1 "
                f"to {MAX_DIMS}"
            )
    return None


@rule("`dim` is one of the dimensions of `tensors`")
def _dim_of_tensors(call: Call) -> str | None:
    dim, rank = call.switches["dim"], len(_joined_shapes(call)[0])
    if isinstance(dim, int) and -rank <= dim < rank:
        return None
    return f"{call.names['dim']} is {shown(dim)}, must be from {-rank} to {rank - 1}"


@rule("the shapes of `tensors` are the same but along `dim`; those of shape (0,) count for nothing")
def _shapes_join(call: Call) -> str | None:
    first, *others = _joined_shapes(call)
    dim = call.switches["dim"]
    assert isinstance(dim, int)
    axis = dim % len(first)
    for shape in others:
        if len(shape) != len(first) or any(
            a != b for k, (a, b) in enumerate(zip(first, shape, strict=True)) if k != axis
        ):
            return (
                f"{call.names['tensors']} have shapes {first} and {shape}, which differ not "
                f"only "
                f"along {call.names['dim']} {dim}"
            )
    return None


@rule("the result's dtype can be cast to that of `out`")
def _joined_castable(call: Call) -> str | None:
    if "out" not in call.tensors or dtypes.can_cast(_joined_dtype(call), call.dtype("out")):
        return None
    return (
        f"{call.names['out']} has dtype {call.dtype('out').name.removeprefix('ACL_')}, to "
        f"which "
        "the result cannot be cast"
    )


def _lower_cat(lowering: Lowering) -> Mapping[str, int]:
    """Every tensor becomes a part of the result, converted where it has to be."""
    builder, call = lowering.builder, lowering.call
    dtype, shape = lowering.results["out"]
    stored = call.dtype("out") if "out" in call.tensors else dtype
    dim = call.switches["dim"]
    assert isinstance(dim, int)
    axis, strides = dim % len(shape), contiguous_strides(shape)
    whole = builder.buffer("joined", shape, graph_dtype(stored))
    start = 0
    for value, spec in zip(lowering.values("tensors"), call.lists["tensors"], strict=True):
        if spec.size == 0:
            continue
        part = builder.view(whole, spec.shape, strides, start * strides[axis])
        joined = builder.cast(lowering.dense(value, dtype), graph_dtype(stored))
        builder.view_copy(joined, part)
        start += spec.shape[axis]
    return {"out": whole}


cat = Operator(
    name="cat",
    summary="Concatenation of tensors along a dimension.",
    expression="out = tensors[0] followed by tensors[1], …, along dim",
    notes="Different dtypes promote. Tensors of shape (0,) are compatible with all others.",
    infer=lambda call: {"out": (_joined_dtype(call), _joined_shape(call))},
    lower=_lower_cat,
    inputs=("tensors",),
    lists=("tensors",),
    attributes=(_DIM,),
    entries=(entry("aclnnCat", "tensors:tensors dim:int out:out"),),
    rules=(
        _some_tensors(),
        list_dtype_among("tensors", _ANY),
        _tensors_promote(),
        of_cann(_not_wide_complex()),
        _joined_castable(),
        *require("tensors, out: plain format; tensors, out: one format"),
        _tensors_of_dims(),
        _dim_of_tensors(),
        _shapes_join(),
        has_shape("out", _joined_shape, "the shape of the result"),
    ),
    example=("cat([np.float32([1]), np.float32([2, 3])])", "array([1., 2., 3.], dtype=float32)"),
    keeps_channels_last=True,
    gradient={"tensors": "parts_of_cat(grad, tensors, dim)"},
    chunking="dask.array: concatenate",
)


# --- Slices, pieces, repetitions --------------------------------------------------------------------

_END = 2**63 - 1


def _moved(
    name: str,
    summary: str,
    expression: str,
    item: tuple[str, str],
    example: tuple[str, str],
    shape: Callable[[Call], tuple[int, ...]],
    lower: Callable[[Lowering], int],
    *rules: Rule,
    own_rules: tuple[Rule, ...] = (),
    formats: tuple[Rule, ...] = (),
    **more: Any,
) -> Operator:
    """An operator that gives elements of one tensor in another shape."""
    return Operator(
        name=name,
        summary=summary,
        expression=expression,
        lower=lambda lowering: {"out": lower(lowering)},
        inputs=("input",),
        entries=(entry(*item),),
        rules=(
            *require("input: FLOATING_AND_DOUBLE INTEGERS UINT16 UINT32 UINT64 BOOL COMPLEX"),
            *own_rules,
            *require("out: dtype of input"),
            *formats,
            *require("input, out: at most 8 dims"),
            *rules,
            has_shape("out", shape, "the shape of the result"),
        ),
        example=example,
        **more,
    )


def _numbers(call: Call, role: str) -> tuple[int, ...]:
    found = call.switches[role]
    assert isinstance(found, tuple)
    return found


def _bounds(call: Call) -> tuple[int, int, int]:
    """The first element of a slice, how many there are, and from each to the next."""
    size = call.shape("input")[axis_of(call, "input")]
    chosen = builtins.slice(*[number(call, role) for role in ("start", "end", "step")])
    start, end, step = chosen.indices(size)
    return start, len(range(start, end, step)), step


def _with_size(call: Call, size: int) -> tuple[int, ...]:
    axis, shape = axis_of(call, "input"), call.shape("input")
    return (*shape[:axis], size, *shape[axis + 1 :])


@rule("`{role}` is positive")
def _positive(call: Call, role: str) -> str | None:
    if number(call, role) > 0:
        return None
    return f"{call.chosen(role)}, must be positive"


def _lower_slice(lowering: Lowering) -> int:
    call, builder, value = lowering.call, lowering.builder, lowering.value("input")
    (start, _, step), axis = _bounds(call), axis_of(call, "input")
    strides = list(builder.value(value).strides)
    offset = start * strides[axis]
    strides[axis] *= step
    return builder.view(value, lowering.results["out"][1], strides, offset)


_ALONG = argument("dim", 0, "int", "The dimension that is sliced.")

slice = _moved(
    "slice",
    "A copy of some of the elements along a dimension.",
    "input[…, start:end:step, …]",
    ("aclnnSlice", "self=input dim:int start:int end:int step:int out:out"),
    ("slice(np.float32([1, 2, 3, 4]), 0, 1, 4, 2)", "array([2., 4.], dtype=float32)"),
    lambda call: _with_size(call, _bounds(call)[1]),
    _lower_slice,
    has_dims("input"),
    dim_in_range("input"),
    _positive("step"),
    notes="Negative bounds count from the end; bounds beyond it stand for the end.",
    attributes=(
        _ALONG,
        argument("start", 0, "int", "The first element of the slice."),
        argument("end", _END, "int", "The first element after the slice."),
        argument("step", 1, "int", "From each element to the next."),
    ),
    gradient={"input": "aten.slice_backward(grad, input.shape, dim, start, end, step)"},
    chunking="dask.array: x[start:end]",
)


# --- Expansion and repetition -----------------------------------------------------------------------


def _expanded_shape(call: Call) -> tuple[int, ...]:
    """-1 stands for the size that there is."""
    size, shape = _numbers(call, "size"), call.shape("input")
    own = (1,) * (len(size) - len(shape)) + shape
    return tuple([had if n == -1 else n for n, had in zip(size, own, strict=True)])


@rule("`input` broadcasts to `size`, where -1 stands for its own", "size", "input")
def _expands(call: Call) -> str | None:
    size, shape = _numbers(call, "size"), call.shape("input")
    missing = len(size) - len(shape)
    if missing >= 0 and all(n >= 0 for n in size[:missing]):
        pairs = zip(size[missing:], shape, strict=True)
        if all(n == -1 or had == n or (had == 1 and n >= 0) for n, had in pairs):
            return None
    return (
        f"{call.names['size']} is {shown(size)}, to which {call.names['input']} of shape "
        f"{shape} "
        "does not expand"
    )


@rule("`{role}` has a count for each dimension of `input`")
def _counts(call: Call, role: str) -> str | None:
    """For each dimension, and of new ones before them."""
    numbers, rank = _numbers(call, role), len(call.shape("input"))
    if len(numbers) >= rank and all(n >= 0 for n in numbers):
        return None
    return f"{call.names[role]} is {shown(numbers)}, must be {rank} or more counts"


def _few_dims(role: str) -> Rule:
    def test(call: Call) -> str | None:
        if len(_numbers(call, role)) <= MAX_DIMS:
            return None
        return (
            f"{call.names[role]} has {len(_numbers(call, role))} numbers, at most {MAX_DIMS} are "
            "possible"
        )

    return Rule(f"`{role}` has at most {MAX_DIMS} numbers", test, (role,))


def _ints(role: str, doc: str) -> tuple[Attribute]:
    return (argument(role, REQUIRED, "ints", doc),)


expand = _moved(
    "expand",
    "A copy that is repeated along dimensions of size 1, and along new ones.",
    "out[…, i, …] = input[…, 0, …] where the size is 1",
    ("aclnnExpand", "self=input size:ints out:out"),
    (
        "expand(np.float32([[1], [2]]), (2, 2))",
        "array([[1., 1.],\n       [2., 2.]], dtype=float32)",
    ),
    _expanded_shape,
    lambda lowering: lowering.dense("input", None, lowering.results["out"][1]),
    _few_dims("size"),
    _expands(),
    own_rules=require("cann input: FLOATING UINT8 INT8 INT32 INT64 BOOL"),
    sample_specs={"size": (-1,)},
    attributes=_ints("size", "The new shape; -1 keeps the size of a dimension."),
    notes="A view with strides of 0 does the same without a copy.",
    seealso=("repeat",),
    gradient={"input": "grad"},
    chunking="dask.array: broadcast_to",
)


def _repeated_shape(call: Call) -> tuple[int, ...]:
    repeats, shape = _numbers(call, "repeats"), call.shape("input")
    own = (1,) * (len(repeats) - len(shape)) + shape
    return tuple([n * had for n, had in zip(repeats, own, strict=True)])


def _lower_repeat(lowering: Lowering) -> int:
    """Each count is one more dimension, with a stride of 0; one at a time, from the last."""
    builder, repeats = lowering.builder, _numbers(lowering.call, "repeats")
    own = lowering.call.shape("input")
    own = (1,) * (len(repeats) - len(own)) + own
    value = lowering.reshaped("input", own)
    for axis in reversed(range(len(own))):
        if repeats[axis] == 1:
            continue
        shape = builder.value(value).shape
        leading, trailing = math.prod(shape[:axis]), math.prod(shape[axis:])
        lines = builder.broadcast_to(
            lowering.reshaped(value, (leading, 1, trailing)), (leading, repeats[axis], trailing)
        )
        value = lowering.reshaped(
            lines, (*shape[:axis], repeats[axis] * shape[axis], *shape[axis + 1 :])
        )
    return value


repeat = _moved(
    "repeat",
    "A tensor repeated along its dimensions.",
    "out[i] = input[i mod size], in every dimension",
    ("aclnnRepeat", "self=input repeats:ints out:out"),
    ("repeat(np.float32([1, 2]), (2,))", "array([1., 2., 1., 2.], dtype=float32)"),
    _repeated_shape,
    _lower_repeat,
    _few_dims("repeats"),
    _counts("repeats"),
    attributes=_ints("repeats", "The number of repetitions along each dimension."),
    seealso=("expand",),
    gradient={"input": "sum_of_repetitions(grad, input.shape, repeats)"},
    chunking="dask.array: tile",
)


# --- Padding ----------------------------------------------------------------------------------------


def _margins(call: Call) -> list[tuple[int, int]]:
    """Before and after each dimension: the numbers begin with the last dimension."""
    pad, rank = _numbers(call, "pad"), len(call.shape("input"))
    pairs = list(zip(pad[::2], pad[1::2], strict=True))
    return [(0, 0)] * (rank - len(pairs)) + pairs[::-1]


def _padded_shape(call: Call) -> tuple[int, ...]:
    pairs = zip(call.shape("input"), _margins(call), strict=True)
    return tuple([before + size + after for size, (before, after) in pairs])


def _kept_sizes(call: Call) -> list[int]:
    """Number of elements along each dimension that are not removed."""
    pairs = zip(call.shape("input"), _margins(call), strict=True)
    return [size + min(before, 0) + min(after, 0) for size, (before, after) in pairs]


@rule("`pad` has pairs for the last dimensions of `input`")
def _pads(call: Call) -> str | None:
    pad, shape = _numbers(call, "pad"), call.shape("input")
    if len(pad) % 2 or len(pad) > 2 * len(shape):
        return (
            f"{call.names['pad']} is {shown(pad)}, must be pairs of numbers, at most {len(shape)}"
        )
    if min([*_padded_shape(call), *_kept_sizes(call)], default=0) >= 0:
        return None
    return f"{call.names['pad']} is {shown(pad)}, which leaves less than nothing of {shape}"


@rule("where `pad` pads, no dimension it names ends with size 0", "pad", "input")
def _no_empty_axes(call: Call) -> str | None:
    pad = _numbers(call, "pad")
    named = _padded_shape(call)[len(call.shape("input")) - len(pad) // 2 :]
    if 0 not in named or all(n <= 0 for n in pad):
        return None
    return f"{call.names['pad']} is {shown(pad)}, which pads, but leaves nothing of a dimension"


def _format_of_pad() -> Rule:
    same = same_format("input", "out")

    def test(call: Call) -> str | None:
        plain = call.tensors["input"].format == aclFormat.ACL_FORMAT_ND
        return None if plain else same.test(call)

    return Rule("`out` has the format of `input`, unless that is ND", test, ("input", "out"))


def _lower_pad(lowering: Lowering) -> int:
    """Copy what is kept, and pieces of the number around it: along each dimension, within those before."""
    builder, call = lowering.builder, lowering.call
    dtype, shape = lowering.results["out"]
    strides, value = contiguous_strides(shape), lowering.value("input")
    whole = builder.buffer("padded", shape, graph_dtype(dtype))
    own, operand = call.shape("input"), builder.value(value).strides
    margins, kept = _margins(call), _kept_sizes(call)
    starts, sizes = [0] * len(own), list(shape)

    def part() -> int:
        offset = sum([n * step for n, step in zip(starts, strides, strict=True)])
        return builder.view(whole, sizes, strides, offset)

    for axis, (before, after) in enumerate(margins):
        for size, start in ((before, 0), (after, shape[axis] - after)):
            starts[axis], sizes[axis] = start, size
            if size > 0 and 0 not in sizes:
                params = lowering.params(("value",), dtype)
                number = lowering.point("fill", (), dtype, tuple(sizes), params=params)
                builder.view_copy(number, part())
        starts[axis], sizes[axis] = max(before, 0), kept[axis]
    if 0 not in sizes:
        cut = [-min(b, 0) * step for (b, _), step in zip(margins, operand, strict=True)]
        builder.view_copy(builder.contiguous(builder.view(value, sizes, operand, sum(cut))), part())
    return whole


constant_pad_nd = _moved(
    "constant_pad_nd",
    "A tensor padded with a number.",
    "out[i + before] = input[i]; else value",
    ("aclnnConstantPadNd", "self=input pad:ints value:scalar out:out"),
    (
        "constant_pad_nd(np.float32([1, 2]), (1, 2), 5)",
        "array([5., 1., 2., 5., 5.], dtype=float32)",
    ),
    _padded_shape,
    _lower_pad,
    _pads(),
    of_cann(_no_empty_axes()),
    convertible_scalars("value"),
    formats=(_format_of_pad(),),
    attributes=(
        *_ints(
            "pad",
            "Margins before and after the last dimension, then of the dimension before it, etc.",
        ),
        argument("value", 0, "scalar", "The value of the padding."),
    ),
    sample_specs={"pad": (0, 0)},
    notes="Negative margins remove elements.",
    keeps_channels_last=True,
    gradient={"input": "without_padding(grad, pad)"},
    chunking="dask.array: pad",
)


# --- Stacks -----------------------------------------------------------------------------------------


def _stacked_shape(call: Call) -> tuple[int, ...]:
    shape, count = call.lists["tensors"][0].shape, len(call.lists["tensors"])
    axis = number(call, "dim") % (len(shape) + 1)
    return (*shape[:axis], count, *shape[axis:])


@rule("`tensors` have one shape")
def _one_shape(call: Call) -> str | None:
    first = call.lists["tensors"][0].shape
    for index, one in enumerate(call.lists["tensors"]):
        if one.shape != first:
            return (
                f"{call.names['tensors']}[{index}] has shape {one.shape}, must have that of "
                f"the first, {first}"
            )
    return None


@rule("`dim` is one of the dimensions of the result", "dim", "tensors")
def _new_dim(call: Call) -> str | None:
    dim, rank = call.switches["dim"], len(call.lists["tensors"][0].shape)
    if isinstance(dim, int) and -rank - 1 <= dim <= rank:
        return None
    return f"{call.names['dim']} is {shown(dim)}, must be from {-rank - 1} to {rank}"


@rule(f"the result has at most {MAX_DIMS} dimensions", "tensors")
def _few_stacked_dims(call: Call) -> str | None:
    rank = len(call.lists["tensors"][0].shape)
    if rank < MAX_DIMS:
        return None
    return f"{call.names['tensors']}[0] has {rank} dimensions, at most {MAX_DIMS - 1} are possible"


def _lower_stack(lowering: Lowering) -> Mapping[str, int]:
    """As pieces of size 1 along the new dimension."""
    builder, call = lowering.builder, lowering.call
    dtype, shape = lowering.results["out"]
    stored = call.dtype("out") if "out" in call.tensors else dtype
    axis, strides = number(call, "dim") % len(shape), contiguous_strides(shape)
    whole = builder.buffer("stacked", shape, graph_dtype(stored))
    for index, value in enumerate(lowering.values("tensors")):
        part = builder.view(
            whole,
            (*shape[:axis], *shape[axis + 1 :]),
            (*strides[:axis], *strides[axis + 1 :]),
            index * strides[axis],
        )
        builder.view_copy(builder.cast(lowering.dense(value, dtype), graph_dtype(stored)), part)
    return {"out": whole}


stack = Operator(
    name="stack",
    summary="Concatenation of tensors along a new dimension.",
    expression="out[…, n, …] = tensors[n]",
    notes="Different dtypes promote.",
    infer=lambda call: {"out": (_joined_dtype(call), _stacked_shape(call))},
    lower=_lower_stack,
    inputs=("tensors",),
    lists=("tensors",),
    attributes=(replace(_DIM, doc="The index of the new dimension."),),
    entries=(entry("aclnnStack", "tensors:tensors dim:int out:out"),),
    rules=(
        _some_tensors(),
        list_dtype_among("tensors", _ANY),
        _tensors_promote(),
        _joined_castable(),
        _few_stacked_dims(),
        _one_shape(),
        _new_dim(),
        has_shape("out", _stacked_shape, "the shape of the result"),
    ),
    example=(
        "stack([np.float32([1, 2]), np.float32([3, 4])])",
        "array([[1., 2.],\n       [3., 4.]], dtype=float32)",
    ),
    seealso=("cat",),
    gradient={"tensors": "grad.unbind(dim)"},
    keeps_channels_last=True,
    chunking="dask.array: stack",
)


# --- Triangles --------------------------------------------------------------------------------------


def _triangle(name: str, words: str, sign: str, found: str) -> Operator:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        # As far from the corners as there are elements; elements beyond count as much.
        far = max(shape[-2:])
        diagonal = max(-far, min(number(lowering.call, "diagonal"), far))
        operands = [lowering.value("input")]
        return {"out": lowering.opaque(name, operands, dtype, shape, diagonal=diagonal)}

    return Operator(
        name=name,
        in_place=f"{name}_",
        gradient={"input": f"{name}(grad, diagonal)"},
        chunking=f"dask.array: {name}",
        summary=f"Matrices with zeros {words} a diagonal.",
        expression=f"column - row {sign} diagonal: input; else 0",
        notes="Other elements keep their bits.",
        lower=lower,
        inputs=("input",),
        attributes=(
            argument(
                "diagonal",
                0,
                "int",
                "The diagonal: 0 is the main one, positive ones are to its right.",
            ),
        ),
        sample_specs=specs("input: [1,1]"),
        entries=(
            entry(f"aclnn{name.capitalize()}", "self=input diagonal:int out:out"),
            entry(f"aclnnInplace{name.capitalize()}", "selfRef=input:inout diagonal:int"),
        ),
        rules=(
            *require("input: FLOATING_AND_DOUBLE INTEGERS UINT16 UINT32 UINT64 BOOL COMPLEX"),
            *require("out: dtype of input"),
            *(require("input, out: plain format") if name == "triu" else ()),
            *require("input, out: one format"),
            *((_is_empty(),) if name == "triu" else ()),
            _is_matrix(),
            *require("input, out: at most 8 dims; out: shape of input"),
        ),
        example=(
            f"{name}(np.float32([[1, 2], [3, 4]]))",
            f"array([{found}], dtype=float32)",
        ),
    )


def _is_empty() -> Rule:
    same = same_shape("out", "input")

    def test(call: Call) -> str | None:
        return (same.test(call) or NOTHING_TO_DO) if call.tensors["input"].size == 0 else None

    return Rule("an empty `input` may have any number of dimensions", test, ("input", "out"))


@rule("`input` has at least 2 dimensions")
def _is_matrix(call: Call) -> str | None:
    rank = len(call.shape("input"))
    return (
        None if rank >= 2 else f"{call.names['input']} has {rank} dimensions, at least 2 are needed"
    )


tril = _triangle("tril", "above", "≤", "[1., 0.],\n       [3., 4.]")
triu = _triangle("triu", "below", "≥", "[1., 2.],\n       [0., 4.]")


# --- Split ------------------------------------------------------------------------------------------


def _made(call: Call) -> list[str]:
    """The results that the call was given, in order."""
    return [role for role in call.tensors if role.startswith("out")]


def _pieces(shape: tuple[int, ...], options: Mapping[str, Any]) -> tuple[int, ...]:
    """The size of each piece along the dimension."""
    if "split_sizes" in options:
        return tuple(options["split_sizes"])
    dim, size = options["dim"], options["split_size"]
    whole = shape[dim] if -len(shape) <= dim < len(shape) else 0
    if size <= 0 or whole == 0:
        return (whole,)
    return (*[size] * (whole // size), *([whole % size] if whole % size else ()))


def _sizes(call: Call) -> tuple[int, ...]:
    return _pieces(call.shape("input"), call.switches)


@rule("`split_sizes` add up to the size of `input` along `dim`", "split_sizes")
def _whole_size(call: Call) -> str | None:
    whole, sizes = call.shape("input")[axis_of(call, "input")], _numbers(call, "split_sizes")
    if sizes and builtins.min(sizes) >= 0 and sum(sizes) == whole:
        return None
    return (
        f"{call.names['split_sizes']} is {shown(sizes)}, must be sizes whose sum is {whole}, "
        f"that "
        f"of {call.names['input']} along {call.names['dim']} {call.switches['dim']}"
    )


@rule("`split_size` is positive, or nothing is split")
def _positive_size(call: Call) -> str | None:
    size = number(call, "split_size")
    if size > 0 or (size == 0 and call.shape("input")[axis_of(call, "input")] == 0):
        return None
    return f"{call.names['split_size']} is {size}, must be positive"


@rule("`out` have the dtype of `input`", "")
def _pieces_have_dtype(call: Call) -> str | None:
    return next(filter(None, [same_dtype(r, "input").test(call) for r in _made(call)]), None)


@rule("`out` have the shapes of the pieces", "")
def _pieces_have_shape(call: Call) -> str | None:
    roles, sizes = _made(call), _sizes(call)
    if roles and len(roles) != len(sizes):
        return f"there are {len(roles)} tensors for results, but {len(sizes)} pieces"
    for role, size in zip(roles, sizes, strict=False):
        if call.shape(role) != _with_size(call, size):
            return f"{call.shaped(role)}, but must have {_with_size(call, size)}"
    return None


def _lower_split(lowering: Lowering) -> Mapping[str, int]:
    """Every piece is a view of the input."""
    call, builder, value = lowering.call, lowering.builder, lowering.value("input")
    strides, axis = builder.value(value).strides, axis_of(call, "input")
    made, start = {}, 0
    for index, size in enumerate(_sizes(call)):
        role = f"out_{index}"
        if lowering.wants(role):
            shape = _with_size(call, size)
            made[role] = builder.view(value, shape, strides, start * strides[axis])
        start += size
    return made


def _split(
    name: str,
    summary: str,
    item: tuple[str, str],
    attribute: Attribute,
    rules: tuple[Rule, ...],
    example: str,
    **more: Any,
) -> Operator:
    return Operator(
        name=name,
        summary=summary,
        expression="out[n] = input[…, starts[n]:starts[n + 1], …], along dim",
        notes="Views do the same without copies.",
        infer=lambda call: {
            f"out_{index}": (call.dtype("input"), _with_size(call, size))
            for index, size in enumerate(_sizes(call))
        },
        lower=_lower_split,
        makes=lambda shapes, options: max(1, len(_pieces(shapes["input"], options))),
        inputs=("input",),
        attributes=(attribute, replace(_ALONG, doc="The dimension that is split.")),
        entries=(entry(*item),),
        rules=(
            *require("input: FLOATING_AND_DOUBLE INTEGERS UINT16 UINT32 UINT64 BOOL COMPLEX"),
            _pieces_have_dtype(),
            *require("input: at most 8 dims; input: dims; dim: dim of input"),
            *rules,
            _pieces_have_shape(),
        ),
        example=(
            example,
            "(array([1., 2.], dtype=float32), array([3.], dtype=float32))",
        ),
        **more,
    )


split = _split(
    "split",
    "Pieces of one size along a dimension, of which the last may be smaller.",
    ("aclnnSplitTensor", "self=input splitSections=split_size:int dim:int out:outs"),
    argument("split_size", REQUIRED, "int", "The size of each piece."),
    (_positive_size(), *require("input: if empty ends")),
    "split(np.float32([1, 2, 3]), 2)",
    sample_specs={"split_size": 2},
    seealso=("split_with_sizes",),
    differentiated_as="pieces(input, split_size, dim)",
    chunking="dask.array: x[start:end]",
)

split_with_sizes = _split(
    "split_with_sizes",
    "Pieces of any sizes along a dimension.",
    ("aclnnSplitWithSize", "self=input splitSize=split_sizes:ints dim:int out:outs"),
    argument("split_sizes", REQUIRED, "ints", "The size of each piece."),
    (_whole_size(),),
    "split_with_sizes(np.float32([1, 2, 3]), (2, 1))",
    sample_specs={"split_sizes": (2,)},
    seealso=("split",),
    differentiated_as="pieces(input, split_sizes, dim)",
    chunking="dask.array: x[start:end]",
)
