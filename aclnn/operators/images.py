"""Images: maxima and means of windows, other sizes, columns of windows, reflected margins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl.arguments import shown
from aclnn.acl.constants import aclDataType, aclFormat
from aclnn.graph.strides import contiguous_strides
from aclnn.operators.checks import Call, Rule, exists_on, has_shape, of_cann, rule
from aclnn.operators.declaration import REQUIRED, Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.sizes import number, numbers
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]

_WITH_BF16 = ("Ascend910B", "Ascend910_93", "Ascend950")
_LONG = aclDataType.ACL_INT64


def pair(found: Shape) -> tuple[int, int]:
    """Along rows and columns; a single number holds for both."""
    return (found[0], found[-1])


def _has_length(role: str, *lengths: int) -> Rule:
    words = " or ".join(map(str, lengths))

    def test(call: Call) -> str | None:
        found = numbers(call, role)
        if len(found) in lengths:
            return None
        return f"{call.names[role]} is {shown(found)}, must have {words} numbers"

    return Rule(f"`{role}` has {words} numbers", test, (role,))


@rule("`{role}` has no number below {least}")
def _at_least(call: Call, role: str, least: int) -> str | None:
    found = numbers(call, role)
    if all(n >= least for n in found):
        return None
    return f"{call.names[role]} is {shown(found)}, must not have less than {least}"


def _is_image(*roles: str) -> Rule:
    """CANN's function refuses ND, which tensors have here that were made of arrays."""
    fits = {3: ("ND", "NCL"), 4: ("ND", "NCHW")}

    def test(call: Call) -> str | None:
        for role in call.given(roles):
            allowed = fits.get(len(call.shape(role)), ("ND", "NCL", "NCHW"))
            format = aclFormat(call.tensors[role].format).name.removeprefix("ACL_FORMAT_")
            if format not in allowed:
                return f"{call.names[role]} has format {format}, must be {' or '.join(allowed)}"
        return None

    return Rule("the format is ND, or NCL of three dimensions, NCHW of four", test, roles)


@rule("`{role}` has channels, rows and columns")
def _has_planes(call: Call, role: str = "input", but: int = 0) -> str | None:
    """All sizes but that of the batch; `but` says how many of the last count only."""
    shape = call.shape(role)
    if 0 not in shape[-3:]:
        return None
    return f"{call.names[role]} has shape {shape}, must have no size of 0 but that of the batch"


# --- Windows --------------------------------------------------------------------------------------


def _step(call: Call) -> tuple[int, int]:
    """That of a window if none is given; aclnnMaxPool then has 1."""
    value = numbers(call, "stride")
    if value:
        return pair(value)
    return (
        (1, 1)
        if "auto_pad" in call.switches and call.c_shaped
        else pair(numbers(call, "kernel_size"))
    )


def _margins(call: Call) -> tuple[tuple[int, int], tuple[int, int]]:
    """Before and after: along rows, and along columns."""
    arguments = numbers(call, "padding") or (0,)
    if len(arguments) == 4:  # top, left, bottom, right
        return (arguments[0], arguments[2]), (arguments[1], arguments[3])
    rows, columns = pair(arguments)
    return (rows, rows), (columns, columns)


def _sizes(call: Call) -> tuple[int, int]:
    """Rows and columns of the result."""
    found = []
    windows = zip(
        call.shape("input")[-2:],
        pair(numbers(call, "kernel_size")),
        _step(call),
        _margins(call),
        strict=True,
    )
    ceil = bool(call.switches["ceil_mode"])
    for length, size, step, (before, after) in windows:
        rest = length + before + after - size
        count = (rest + (step - 1 if ceil else 0)) // step + 1
        if ceil and (count - 1) * step >= length + before:
            count -= 1
        found.append(count)
    return found[0], found[1]


def _pooled_shape(call: Call) -> Shape:
    return (*call.shape("input")[:-2], *_sizes(call))


@rule("there is at least one window along each dimension", "input", "kernel_size")
def _has_windows(call: Call) -> str | None:
    rows, columns = _sizes(call)
    if rows >= 1 and columns >= 1:
        return None
    return f"{call.shaped('input')}, which has no window of {shown(numbers(call, 'kernel_size'))}"


@rule("`padding` is {words} `kernel_size`")
def _little_padding(
    call: Call, words: str, fits: Callable[[int, tuple[int, int]], bool]
) -> str | None:
    sizes = pair(numbers(call, "kernel_size"))
    if all(fits(size, margin) for size, margin in zip(sizes, _margins(call), strict=True)):
        return None
    return (
        f"{call.names['padding']} is {shown(numbers(call, 'padding'))}, {words} "
        f"{call.names['kernel_size']} {shown(numbers(call, 'kernel_size'))}"
    )


def _lower_windows(
    kernel: str, more: Callable[[Call], Mapping[str, Any]] = lambda call: {}
) -> Callable[[Lowering], Mapping[str, int]]:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        call, (dtype, shape) = lowering.call, lowering.results["out"]
        own = call.shape("input")
        made = shape if len(shape) == 4 else (1, *shape)
        value = lowering.reshaped("input", own if len(own) == 4 else (1, *own))
        rows, columns = _margins(call)
        outputs = [(dtype, made)]
        if lowering.wants("indices"):
            outputs.append((_LONG, made))
        found = lowering.opaque_all(
            kernel,
            [value],
            outputs,
            size=pair(numbers(call, "kernel_size")),
            step=_step(call),
            before=(rows[0], columns[0]),
            after=(rows[1], columns[1]),
            **more(call),
        )
        roles = ("out", "indices")[: len(found)]
        return {role: lowering.reshaped(one, shape) for role, one in zip(roles, found, strict=True)}

    return lower


_KERNEL = argument("kernel_size", REQUIRED, "ints", "Rows and columns of a window.")
_STRIDE = argument(
    "stride", (), "ints", "From one window to the next; none stands for the size of a window."
)
_PADDING = argument("padding", (0, 0), "ints", "How many rows and columns are added on each side.")
_CEIL = argument("ceil_mode", False, "bool", "Whether windows may extend beyond the padding.")

avg_pool2d = Operator(
    name="avg_pool2d",
    summary="Means of windows of an image.",
    expression="out[i, j] = Σ input over the window / its elements",
    notes=(
        "Sums are in float64 and rounded once. Without `count_include_pad` the elements that a window has are "
        "counted, with it those of the margin too; `divisor_override` divides instead, unless it is 0."
    ),
    inputs=("input",),
    attributes=(
        _KERNEL,
        _STRIDE,
        _PADDING,
        _CEIL,
        argument("count_include_pad", True, "bool", "Whether elements of the margin count."),
        argument(
            "divisor_override",
            0,
            "int",
            "What sums are divided by; 0: their elements.",
            nullable=True,
        ),
        Attribute("cube_math_type", 0, "int", doc="Has no effect."),
    ),
    sample_specs={**specs("input: [1,2,2]"), "kernel_size": (1, 1)},
    entries=(
        entry(
            "aclnnAvgPool2d",
            "self=input kernelSize=kernel_size:ints strides=stride:ints paddings=padding:ints "
            "ceilMode=ceil_mode:bool countIncludePad=count_include_pad:bool "
            "divisorOverride=divisor_override:int cubeMathType=cube_math_type:int out:out",
        ),
    ),
    rules=(
        *require("input: FLOATING_AND_DOUBLE; cann input: FLOATING; out: dtype of input"),
        _is_image("input", "out"),
        _at_least("kernel_size", 1),
        _at_least("stride", 1),
        _at_least("padding", 0),
        *require("input: 3 to 4 dims"),
        _has_planes(),
        _has_length("kernel_size", 1, 2),
        _has_length("stride", 0, 1, 2),
        of_cann(_has_length("padding", 1, 2)),
        _has_length("padding", 0, 1, 2),
        _little_padding("at most half of", lambda size, margin: 2 * margin[0] <= size),
        _has_windows(),
        has_shape("out", _pooled_shape, "the shape of the result"),
        Rule(
            "`cube_math_type` is from 0 to 4",
            lambda call: (
                None
                if 0 <= number(call, "cube_math_type") <= 4
                else f"{call.chosen('cube_math_type')}, must be from 0 to 4"
            ),
            ("cube_math_type",),
        ),
    ),
    lower=_lower_windows(
        "window_means",
        lambda call: {
            "counts_margin": bool(call.switches["count_include_pad"]),
            "divisor": float(call.switches["divisor_override"] or 0),  # type: ignore[arg-type]
        },
    ),
    example=(
        "avg_pool2d(np.float32([[[1, 2], [3, 6]]]), (2, 2))",
        "array([[[3.]]], dtype=float32)",
    ),
    accuracy="Sums are in float64 and rounded once.",
    keeps_channels_last=True,
    seealso=("adaptive_avg_pool2d", "max_pool2d"),
    gradient={
        "input": "gradient_of_mean_pool(grad, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)"
    },
)

_MAXIMA = "A NaN wins; windows without an element give -Inf."
_DILATION = argument("dilation", (1, 1), "ints", "From one element of a window to the next: 1.")


@rule("`dilation` is 1")
def _not_dilated(call: Call) -> str | None:
    found = numbers(call, "dilation")
    if all(n == 1 for n in found):
        return None
    return f"{call.names['dilation']} is {shown(found)}, must have nothing but 1"


max_pool2d = Operator(
    name="max_pool2d",
    summary="Maxima of windows of an image.",
    expression="out[i, j] = max input over the window",
    notes=(
        f"{_MAXIMA} In aclnnMaxPool no strides stand for 1, here for the size of a window; its pads may "
        "be four: top, left, bottom, right."
    ),
    inputs=("input",),
    attributes=(
        _KERNEL,
        _STRIDE,
        _PADDING,
        _DILATION,
        argument("ceil_mode", 0, "int", "Whether windows may extend beyond the padding, if not 0."),
        Attribute("auto_pad", 0, "int", doc="Must be 0."),
    ),
    sample_specs={**specs("input: [1,2,2]"), "kernel_size": (1, 1)},
    entries=(
        entry(
            "aclnnMaxPool",
            "self=input kernelShape=kernel_size:ints strides=stride:ints autoPad=auto_pad:int pads=padding:ints "
            "dilations=dilation:ints ceilMode=ceil_mode:int out:out",
        ),
    ),
    rules=(
        *require("input: FLOATING_AND_DOUBLE; cann input: FLOAT FLOAT16; out: dtype of input"),
        *require("input, out: plain format; input, out: one format; input: 3 to 4 dims"),
        _has_length("kernel_size", 1, 2),
        _has_length("stride", 0, 1, 2),
        _has_length("padding", 0, 1, 2, 4),
        _has_length("dilation", 0, 1, 2, 4),
        Rule(
            "`auto_pad` is 0",
            lambda call: (
                f"{call.chosen('auto_pad')}, must be 0" if number(call, "auto_pad") else None
            ),
            ("auto_pad",),
        ),
        _not_dilated(),
        _at_least("kernel_size", 1),
        _at_least("stride", 1),
        _at_least("padding", 0),
        _little_padding("together at most", lambda size, margin: sum(margin) <= size),
        _has_planes(),
        _has_windows(),
        has_shape("out", _pooled_shape, "the shape of the result"),
    ),
    lower=_lower_windows("window_maxima"),
    example=(
        "max_pool2d(np.float32([[[1, 2], [3, 6]]]), (2, 2))",
        "array([[[6.]]], dtype=float32)",
    ),
    accuracy="Results are exact.",
    keeps_channels_last=True,
    seealso=("max_pool2d_with_indices", "avg_pool2d"),
    gradient={
        "input": "gradient_of_max_pool(grad, input, kernel_size, stride, padding, ceil_mode)"
    },
)


def _indices_shape() -> Rule:
    return has_shape("indices", _pooled_shape, "the shape of the result")


max_pool2d_with_indices = Operator(
    name="max_pool2d_with_indices",
    summary="Maxima of windows of an image, and where they are.",
    expression="out[i, j] = max input over the window = input[indices[i, j]], counted in the plane",
    notes=(
        f"{_MAXIMA} Of equal elements the first one is meant, of NaNs the last one; indices count the rows and "
        "columns of a channel."
    ),
    inputs=("input",),
    outputs=("out", "indices"),
    attributes=(_KERNEL, _STRIDE, _PADDING, _DILATION, _CEIL),
    sample_specs={**specs("input: [1,2,2]; indices: INT64"), "kernel_size": (1, 1)},
    entries=(
        entry(
            "aclnnMaxPool2dWithIndices",
            "self=input kernelSize=kernel_size:ints stride:ints padding:ints dilation:ints "
            "ceilMode=ceil_mode:bool out:out indices=indices:out",
        ),
    ),
    rules=(
        of_cann(exists_on(_WITH_BF16)),
        *require("input: FLOATING_AND_DOUBLE; cann input: FLOATING; out: dtype of input"),
        *require("indices: INT32 INT64; input, out: plain format; input, out: one format"),
        *require("input: 3 to 4 dims"),
        _has_length("kernel_size", 1, 2),
        _has_length("stride", 0, 1, 2),
        of_cann(_has_length("padding", 1, 2)),
        _has_length("padding", 0, 1, 2),
        of_cann(_has_length("dilation", 1, 2)),
        _has_length("dilation", 0, 1, 2),
        _at_least("kernel_size", 1),
        _at_least("stride", 1),
        _at_least("padding", 0),
        _little_padding("at most half of", lambda size, margin: margin[0] <= size // 2),
        _not_dilated(),
        _has_planes(),
        _has_windows(),
        has_shape("out", _pooled_shape, "the shape of the result"),
        _indices_shape(),
    ),
    infer=lambda call: {
        "out": (call.dtype("input"), _pooled_shape(call)),
        "indices": (_LONG, _pooled_shape(call)),
    },
    lower=_lower_windows("window_maxima"),
    example=(
        "max_pool2d_with_indices(np.float32([[[1, 2], [3, 6]]]), (2, 2))",
        "(array([[[6.]]], dtype=float32), array([[[3]]]))",
    ),
    accuracy="Results are exact.",
    keeps_channels_last=True,
    seealso=("max_pool2d",),
    gradient={"input": "gradient_at_maxima(grad, input, indices)"},
)


# --- Means of as many windows as there are results ------------------------------------------------


def _adaptive_shape(call: Call) -> Shape:
    return (*call.shape("input")[:-2], *pair(numbers(call, "output_size")))


def _lower_adaptive(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    own = lowering.call.shape("input")
    found = lowering.opaque(
        "window_means",
        [lowering.reshaped("input", own if len(own) == 4 else (1, *own))],
        dtype,
        shape if len(shape) == 4 else (1, *shape),
        size=(0, 0),
        step=(1, 1),
        before=(0, 0),
        after=(0, 0),
    )
    return {"out": lowering.reshaped(found, shape)}


adaptive_avg_pool2d = Operator(
    name="adaptive_avg_pool2d",
    summary="Means of windows, for a requested number of results.",
    expression="out[i, j] = mean input over ⌊i·L/o⌋ … ⌈(i+1)·L/o⌉ in both dimensions",
    notes="Sums are in float64 and rounded once.",
    inputs=("input",),
    attributes=(argument("output_size", REQUIRED, "ints", "Rows and columns of the result."),),
    sample_specs={**specs("input: [1,2,2]"), "output_size": (1, 1)},
    entries=(entry("aclnnAdaptiveAvgPool2d", "self=input outputSize=output_size:ints out:out"),),
    rules=(
        *require("input: 3 to 4 dims; input: FLOATING_AND_DOUBLE; cann input: FLOATING"),
        *require("out: dtype of input"),
        _is_image("input", "out"),
        *require("input, out: one format"),
        of_cann(_has_length("output_size", 2)),
        _has_length("output_size", 1, 2),
        _at_least("output_size", 1),
        _has_planes(),
        has_shape("out", _adaptive_shape, "the shape of the result"),
    ),
    lower=_lower_adaptive,
    example=(
        "adaptive_avg_pool2d(np.float32([[[1, 2], [3, 6]]]), (1, 2))",
        "array([[[2., 4.]]], dtype=float32)",
    ),
    accuracy="Sums are in float64 and rounded once.",
    keeps_channels_last=True,
    seealso=("avg_pool2d",),
    gradient={"input": "aten._adaptive_avg_pool2d_backward(grad, input)"},
)


# --- Other sizes ----------------------------------------------------------------------------------


def _resized_shape(call: Call) -> Shape:
    return (*call.shape("input")[:-2], *numbers(call, "output_size"))


@rule("all sizes but that of the batch are positive", "input", "output_size")
def _has_sizes(call: Call) -> str | None:
    requested = (*call.shape("input")[1:], *numbers(call, "output_size"))
    if all(n > 0 for n in requested):
        return None
    return (
        f"{call.shaped('input')} and {call.names['output_size']} is "
        f"{shown(numbers(call, 'output_size'))}, must have no size of 0 but that of the batch"
    )


_SIZE = argument("output_size", REQUIRED, "ints", "Rows and columns of the result.")


def _lower_nearest(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    own = lowering.call.shape("input")
    scale = tuple([size / made for size, made in zip(own[2:], shape[2:], strict=True)])
    value = lowering.value("input")
    return {"out": lowering.opaque("resize_nearest", [value], dtype, shape, scale=scale)}


def _resizing(name: str, cann: str, summary: str, expression: str, **more: Any) -> Operator:
    signature = more.pop("signature", "")
    dtypes, own = more.pop("dtypes"), more.pop("rules", ())
    return Operator(
        name=name,
        summary=summary,
        expression=expression,
        inputs=("input",),
        sample_specs={**specs("input: [1,1,2,2]"), "output_size": (2, 2)},
        entries=(entry(cann, f"self=input outputSize=output_size:ints {signature} out:out"),),
        rules=(
            *dtypes,
            *require("out: dtype of input"),
            _is_image("input", "out"),
            *require("input, out: one format; input: 4 dims"),
            *own,
            _has_length("output_size", 2),
            _has_sizes(),
            has_shape("out", _resized_shape, "the shape of the result"),
        ),
        keeps_channels_last=True,
        **more,
    )


upsample_nearest2d = _resizing(
    "upsample_nearest2d",
    "aclnnUpsampleNearest2d",
    "An image in another size, of the elements that are there.",
    "out[i, j] = input[⌊i·L/o⌋, …], in both dimensions",
    notes="L/o is a float32. Elements keep their bits.",
    attributes=(_SIZE,),
    dtypes=require("input: FLOATING_AND_DOUBLE UINT8"),
    lower=_lower_nearest,
    example=(
        "upsample_nearest2d(np.float32([[[[1, 2]]]]), (1, 4))",
        "array([[[[1., 1., 2., 2.]]]], dtype=float32)",
    ),
    accuracy="Results are exact.",
    seealso=("upsample_bilinear2d",),
    gradient={
        "input": "aten.upsample_nearest2d_backward(grad, list(output_size), list(input.shape))"
    },
)


def _scale(size: int, made: int, corners: bool, value: float) -> float:
    if size == made:
        return 1.0
    if corners:
        return (size - 1) / (made - 1) if made > 1 else 0.0
    return 1 / value if value > 0 else size / made


def _lower_bilinear(lowering: Lowering) -> Mapping[str, int]:
    dtype, shape = lowering.results["out"]
    own, corners = lowering.call.shape("input"), bool(lowering.call.switches["align_corners"])
    sizes = zip(own[2:], shape[2:], strict=True)
    scale = tuple([_scale(size, made, corners, 0.0) for size, made in sizes])
    found = lowering.opaque(
        "resize_linear", [lowering.value("input")], dtype, shape, scale=scale, corners=corners
    )
    return {"out": found}


@rule("`scales_h` and `scales_w` are not negative")
def _scales_fit(call: Call) -> str | None:
    """Positions follow from the sizes; a scale is none of its own."""
    for role in ("scales_h", "scales_w"):
        if call.scalars[role].negative:
            return f"{call.names[role]} is {call.scalars[role].text}, must not be negative"
    return None


upsample_bilinear2d = _resizing(
    "upsample_bilinear2d",
    "aclnnUpsampleBilinear2d",
    "An image resized by interpolation.",
    "out[i, j] = the four elements around x = max(0, (i + 1/2)·L/o - 1/2), weighted by their distance, in both dimensions",
    notes=(
        "With `align_corners` x is i·(L - 1)/(o - 1). Positions follow from the sizes: scales must be 0, which CANN "
        "takes as none. Computed in float64 and rounded once."
    ),
    attributes=(
        _SIZE,
        argument(
            "align_corners", REQUIRED, "bool", "Whether the first elements and the last ones stay."
        ),
        argument("scales_h", 0.0, "float", "Must be 0, or what follows from sizes."),
        argument("scales_w", 0.0, "float", "Must be 0, or what follows from sizes."),
    ),
    signature="alignCorners=align_corners:bool scalesH=scales_h:float scalesW=scales_w:float",
    dtypes=require("input: FLOATING_AND_DOUBLE; cann input: FLOATING"),
    rules=(_scales_fit(),),
    lower=_lower_bilinear,
    example=(
        "upsample_bilinear2d(np.float32([[[[1, 2]]]]), (1, 4), False)",
        "array([[[[1.  , 1.25, 1.75, 2.  ]]]], dtype=float32)",
    ),
    accuracy="Computed in float64 and rounded once.",
    seealso=("upsample_nearest2d",),
    gradient={"input": "gradient_between(grad, input, align_corners)"},
)


# --- Columns of windows ---------------------------------------------------------------------------


def _counts(call: Call) -> tuple[int, int]:
    """Windows along rows and columns."""
    roles = ("kernel_size", "dilation", "padding", "stride")
    found = []
    for length, size, dilation, margin, step in zip(
        call.shape("input")[-2:], *[pair(numbers(call, role)) for role in roles], strict=True
    ):
        found.append((length + 2 * margin - dilation * (size - 1) - 1) // step + 1)
    return found[0], found[1]


def _columns_shape(call: Call) -> Shape:
    *lead, channels, _, _ = call.shape("input")
    rows, columns = _counts(call)
    size = pair(numbers(call, "kernel_size"))
    return (*lead, channels * size[0] * size[1], rows * columns)


@rule("there is at least one window along each dimension", "input", "kernel_size")
def _has_columns(call: Call) -> str | None:
    if min(_counts(call)) >= 1:
        return None
    return f"{call.shaped('input')}, which has no window of {shown(numbers(call, 'kernel_size'))}"


def _with_margin(lowering: Lowering, value: int, margin: tuple[int, int]) -> int:
    """Zeros around the last two dimensions."""
    builder = lowering.builder
    operand = builder.value(value)
    if margin == (0, 0):
        return value
    dtype = lowering.call.dtype("input")
    *lead, rows, columns = operand.shape
    shape = (*lead, rows + 2 * margin[0], columns + 2 * margin[1])
    strides = contiguous_strides(shape)
    whole = builder.buffer("padded", shape, operand.dtype)
    parts = [
        ((margin[0], shape[-1]), 0),
        ((margin[0], shape[-1]), (rows + margin[0]) * strides[-2]),
        ((rows, margin[1]), margin[0] * strides[-2]),
        ((rows, margin[1]), margin[0] * strides[-2] + margin[1] + columns),
    ]
    for size, offset in parts:
        if 0 not in size:
            zeros = lowering.filled(0, dtype, (*lead, *size))
            builder.view_copy(zeros, builder.view(whole, (*lead, *size), strides, offset))
    inside = builder.view(whole, operand.shape, strides, margin[0] * strides[-2] + margin[1])
    builder.view_copy(builder.contiguous(value), inside)
    return whole


def _lower_columns(lowering: Lowering) -> Mapping[str, int]:
    """A view of the image with its margin, copied."""
    call, builder, (dtype, shape) = lowering.call, lowering.builder, lowering.results["out"]
    own = call.shape("input")
    value = lowering.reshaped("input", own if len(own) == 4 else (1, *own))
    value = _with_margin(lowering, value, pair(numbers(call, "padding")))
    arguments = builder.value(value)
    size, step = pair(numbers(call, "kernel_size")), pair(numbers(call, "stride"))
    dilation, counts = pair(numbers(call, "dilation")), _counts(call)
    batch, channel, row, column = arguments.strides
    windows = builder.view(
        value,
        (*arguments.shape[:2], *size, *counts),
        (batch, channel, row * dilation[0], column * dilation[1], row * step[0], column * step[1]),
    )
    made = lowering.reshaped(builder.contiguous(windows), shape)
    return {"out": builder.cast(made, graph_dtype(dtype))}


def _list_option(role: str, default: Any, doc: str) -> Attribute:
    return argument(role, default, "ints", doc)


im2col = Operator(
    name="im2col",
    summary="Windows of an image as columns.",
    expression="out[c·KH·KW + i·KW + j, l] = input[c, i, j] of the l-th window",
    notes="Outside of the image are zeros. CANN's function converts to the dtype of `out`, whatever that is.",
    inputs=("input",),
    attributes=(
        _list_option("kernel_size", REQUIRED, "Rows and columns of a window."),
        _list_option("dilation", (1, 1), "From one element of a window to the next."),
        _list_option("padding", (0, 0), "How many zeros are added on each side."),
        _list_option("stride", (1, 1), "From one window to the next."),
    ),
    sample_specs={**specs("input: [1,2,2]"), "kernel_size": (1, 1)},
    entries=(
        entry(
            "aclnnIm2col",
            "self=input kernelSize=kernel_size:ints dilation:ints padding:ints stride:ints out:out",
        ),
    ),
    rules=(
        *require("input: NUMERIC; cann input: FLOATING; out: NUMERIC; input: 3 to 4 dims"),
        _has_planes(),
        *[_has_length(role, 1, 2) for role in ("kernel_size", "dilation", "padding", "stride")],
        *[_at_least(role, 1) for role in ("kernel_size", "stride", "dilation")],
        _at_least("padding", 0),
        _has_columns(),
        has_shape("out", _columns_shape, "the shape of the result"),
    ),
    infer=lambda call: {"out": (call.dtype("input"), _columns_shape(call))},
    lower=_lower_columns,
    example=(
        "im2col(np.float32([[[1, 2, 3]]]), (1, 2))",
        "array([[1., 2.],\n       [2., 3.]], dtype=float32)",
    ),
    accuracy="Results are exact.",
    seealso=("avg_pool2d",),
    gradient={
        "input": "aten.col2im(grad, input.shape[-2:], kernel_size, dilation, padding, stride)"
    },
)


# --- Reflected margins ----------------------------------------------------------------------------


def _reflected_shape(call: Call) -> Shape:
    *lead, size = call.shape("input")
    return (*lead, size + sum(numbers(call, "padding")))


@rule(
    "`padding` is less than the size of the last dimension, of which it leaves something",
    "padding",
    "input",
)
def _reflects(call: Call) -> str | None:
    size, pads = call.shape("input")[-1], numbers(call, "padding")
    if all(pad < size for pad in pads) and size + min(pads[0], 0) + min(pads[1], 0) > 0:
        return None
    return f"{call.names['padding']} is {shown(pads)}, must be less than the size {size} of the last dimension"


def _lower_reflected(lowering: Lowering) -> Mapping[str, int]:
    """The tensor between two of its ends, which are read backwards."""
    builder, (dtype, shape) = lowering.builder, lowering.results["out"]
    value, strides = lowering.value("input"), contiguous_strides(shape)
    arguments, pads = builder.value(value), numbers(lowering.call, "padding")
    *lead, size = arguments.shape
    step = arguments.strides[-1]
    whole = builder.buffer("padded", shape, graph_dtype(dtype))
    left, right = max(pads[0], 0), max(pads[1], 0)
    kept = size + min(pads[0], 0) + min(pads[1], 0)
    back = (*arguments.strides[:-1], -step)
    parts = (
        (left, 0, back, left * step),
        (kept, left, arguments.strides, -min(pads[0], 0) * step),
        (right, left + kept, back, (size - 2) * step),
    )
    for count, start, steps, offset in parts:
        if count:
            source = builder.view(value, (*lead, count), steps, offset)
            target = builder.view(whole, (*lead, count), strides, start)
            builder.view_copy(builder.contiguous(source), target)
    return {"out": whole}


reflection_pad1d = Operator(
    name="reflection_pad1d",
    summary="A tensor with its reflection on both sides of the last dimension.",
    expression="out[i] = input[|i - left|], reflected at the last element, too",
    notes="The element at an edge is not repeated. Negative margins remove elements.",
    inputs=("input",),
    attributes=(argument("padding", REQUIRED, "ints", "Margins on the left and on the right."),),
    sample_specs={**specs("input: [1,2]"), "padding": (0, 0)},
    entries=(entry("aclnnReflectionPad1d", "self=input padding:ints out:out"),),
    rules=(
        *require("input: NUMERIC; out: dtype of input; input, out: one format; input: 2 to 3 dims"),
        _has_length("padding", 2),
        *require("input, out: at most 8 dims"),
        _reflects(),
        has_shape("out", _reflected_shape, "the shape of the result"),
    ),
    lower=_lower_reflected,
    example=(
        "reflection_pad1d(np.float32([[1, 2, 3]]), (2, 1))",
        "array([[3., 2., 1., 2., 3., 2.]], dtype=float32)",
    ),
    accuracy="Results are exact.",
    seealso=("constant_pad_nd",),
    gradient={"input": "aten.reflection_pad1d_backward(grad, input, padding)"},
)
