"""Convolutions along one to three axes, also transposed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from aclnn.acl.constants import aclDataType, aclFormat
from aclnn.operators.checks import Call, Rule, has_shape, of_cann, promoted, rule
from aclnn.operators.declaration import Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.matmul import _CUBE_MATH, _MIXING
from aclnn.operators.matmul import _cube_math as cube_math_of_convolution
from aclnn.operators.words import require

AXES = 3
ANY_AXES = 0  # of convolutions
FEW_ROWS = 4  # of weights
LEAST_POSITIONS = 16
_FORMATS = {
    3: aclFormat.ACL_FORMAT_NCL,
    4: aclFormat.ACL_FORMAT_NCHW,
    5: aclFormat.ACL_FORMAT_NCDHW,
}


@dataclass(frozen=True, slots=True)
class _Geometry:
    """Numbers of a convolution along each of its axes; `before` and `after` pad."""

    stride: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]
    extra: tuple[int, ...]


def _numbers(call: Call, role: str, count: int, default: int) -> tuple[int, ...]:
    """A list option; one number counts for all axes."""
    found: Any = call.switches.get(role)
    found = (found,) if isinstance(found, int) else tuple(found or (default,))
    return found * count if len(found) == 1 else found


def is_transposed(call: Call, transposed: bool | None = None) -> bool:
    return bool(call.switches["transposed"]) if transposed is None else transposed


def _axes(call: Call) -> int:
    return len(call.shape("input")) - 2


def geometry(call: Call) -> _Geometry:
    axes = _axes(call)
    padding = _numbers(call, "padding", axes, 0)
    pairs = len(padding) == 2 * axes
    return _Geometry(
        _numbers(call, "stride", axes, 1),
        padding[::2] if pairs else padding,
        padding[1::2] if pairs else padding,
        _numbers(call, "dilation", axes, 1),
        _numbers(call, "output_padding", axes, 0),
    )


def groups_of(call: Call) -> int:
    return int(call.switches["groups"])  # type: ignore[call-overload]


def result_shape(call: Call, transposed: bool | None = None) -> tuple[int, ...]:
    turned, found = is_transposed(call, transposed), geometry(call)
    batch, _, *sizes = call.shape("input")
    first, second, *kernel = call.shape("weight")
    made = []
    for axis, size in enumerate(sizes):
        margins = found.before[axis] + found.after[axis]
        reach, step = found.dilation[axis] * (kernel[axis] - 1), found.stride[axis]
        if turned:
            made.append((size - 1) * step - margins + reach + found.extra[axis] + 1)
        else:
            made.append((size + margins - reach - 1) // step + 1)
    return (batch, second * groups_of(call) if turned else first, *made)


# --- Rules ----------------------------------------------------------------------------------------


def _ranks(axes: int) -> Rule:
    """`axes`: of the convolution, 0 for any."""
    least, most = (axes + 2, axes + 2) if axes else (3, 5)
    counts = str(least) if least == most else f"{least} to {most}"

    def test(call: Call) -> str | None:
        rank = len(call.shape("input"))
        if least <= rank <= most:
            return None
        return f"{call.names['input']} has {rank} dimensions, must have {counts}"

    return Rule(f"`input` has {counts} dimensions", test, ("input",))


def _lengths(role: str, *, pairs: bool = False) -> Rule:
    """One number for all axes, one for each, or maybe two for each."""

    def test(call: Call) -> str | None:
        found: Any = call.switches.get(role)
        axes = _axes(call)
        if role == "output_padding" and call.switches.get("transposed") is False:
            return None
        if found is None or isinstance(found, int) or len(found) in _counts(call, axes, pairs):
            return None
        return f"{call.names[role]} has {len(found)} numbers, must have {axes}"

    return Rule(f"`{role}` has a number for each axis", test, (role, "input"))


def _counts(call: Call, axes: int, pairs: bool) -> tuple[int, ...]:
    one = (() if axes > 1 else (1,)) if call.c_shaped else (0, 1)
    return (*one, axes, *((2 * axes,) if pairs and axes < AXES else ()))


@rule("`{role}` is at least {least}")
def _at_least(call: Call, role: str, least: int) -> str | None:
    found = _numbers(call, role, _axes(call), least)
    if min(found, default=least) >= least:
        return None
    return f"{call.names[role]} is {tuple(found)}, must be at least {least}"


@rule("the formats are NCL, NCHW or NCDHW, by the number of dimensions, or ND", "*roles")
def _formats(call: Call, *roles: str) -> str | None:
    """Beside CANN's formats, ND counts as the order that they name."""
    requested = _FORMATS[len(call.shape("input"))]
    for role in call.given(roles):
        found = call.tensors[role].format
        if found not in (requested, aclFormat.ACL_FORMAT_ND):
            name = aclFormat(found).name
            return f"{call.names[role]} has format {name}, must have {requested.name} or ND"
    return None


@rule("the kernel is not empty", "weight")
def _kernel_sizes(call: Call) -> str | None:
    shape = call.shape("weight")
    if min(shape[2:]) > 0:
        return None
    return f"{call.names['weight']} has shape {shape}, its kernel must not be empty"


@rule(
    "the input with its margins is at least as large as the kernel with its gaps", "input", "weight"
)
def _reaches(call: Call, transposed: bool | None) -> str | None:
    if is_transposed(call, transposed) or 0 in call.shape("input"):
        return None
    found, kernel = geometry(call), call.shape("weight")[2:]
    for axis, size in enumerate(call.shape("input")[2:]):
        padded = size + found.before[axis] + found.after[axis]
        reach = found.dilation[axis] * (kernel[axis] - 1) + 1
        if padded < reach:
            return (
                f"{call.names['input']} has {padded} elements along axis {axis + 2} with its "
                f"margins, fewer than the kernel of {call.names['weight']} reaches, {reach}"
            )
    return None


@rule("`groups` is positive")
def _positive_groups(call: Call) -> str | None:
    if groups_of(call) > 0:
        return None
    return f"{call.names['groups']} is {groups_of(call)}, must be positive"


@rule("the weight has the input's channels, by groups", "input", "weight", "groups")
def _channels(call: Call, transposed: bool | None) -> str | None:
    groups, channels = groups_of(call), call.shape("input")[1]
    first, second = call.shape("weight")[:2]
    shapes = f"{call.names['input']} {call.shape('input')}, {call.names['weight']} "
    shapes += f"{call.shape('weight')}, {call.names['groups']} {groups}"
    if is_transposed(call, transposed):
        if first != channels:
            return f"channels differ: {shapes}"
    elif second * groups != channels:
        return f"channels differ: {shapes}"
    if channels == 0:
        return f"there is no channel: {shapes}"
    return f"groups do not divide channels: {shapes}" if first % groups else None


@rule("of a transposed one, `output_padding` is less than stride or dilation")
def _extra_rows(call: Call, transposed: bool | None) -> str | None:
    if not is_transposed(call, transposed):
        return None
    found = geometry(call)
    for axis, extra in enumerate(found.extra):
        if not 0 <= extra < max(found.stride[axis], found.dilation[axis]):
            return (
                f"{call.names['output_padding']} is {found.extra}, must be less than stride "
                "or dilation, and not negative"
            )
    return None


@rule("`bias` has an element for each channel of the result", "bias", "weight")
def _bias_fits(call: Call, transposed: bool | None) -> str | None:
    if "bias" not in call.tensors:
        return None
    shape = call.shape("weight")
    rows = shape[1] * groups_of(call) if is_transposed(call, transposed) else shape[0]
    if call.shape("bias") == (rows,):
        return None
    return f"{call.shaped('bias')}, must have {(rows,)}"


@rule("the result has elements along each axis", "input", "weight")
def _result_exists(call: Call, transposed: bool | None) -> str | None:
    shape = result_shape(call, transposed)
    if min(shape) >= 0 and (min(shape[2:]) > 0 or 0 in call.shape("input")):
        return None
    return f"the result would have the shape {shape}"


def _dtype(call: Call) -> aclDataType:
    dtype = promoted(call, ("input", "weight"))
    assert dtype is not None
    single = aclDataType.ACL_FLOAT
    if call.soc in _MIXING and "out" in call.tensors and call.dtype("out") == single:
        return single
    return dtype


def shape_rules(
    axes: int, transposed: bool | None, tensors: tuple[str, ...], more: tuple[Rule, ...] = ()
) -> tuple[Rule, ...]:
    """Rules about options, formats of tensors, and the shapes of input and weight."""
    extra = () if transposed is False else (_lengths("output_padding"), _extra_rows(transposed))
    return (
        _ranks(axes),
        *require("weight: rank of input"),
        _lengths("stride"),
        _lengths("padding", pairs=True),
        _lengths("dilation"),
        *extra[:1],
        of_cann(_formats(*tensors)),
        _kernel_sizes(),
        _at_least("stride", 1),
        _at_least("dilation", 1),
        _at_least("padding", 0),
        _positive_groups(),
        _channels(transposed),
        *extra[1:],
        _reaches(transposed),
        *more,
        _result_exists(transposed),
    )


def _rules(axes: int, transposed: bool | None) -> tuple[Rule, ...]:
    tensors = ("input", "weight", "out")
    rank, weights, *rest = shape_rules(axes, transposed, tensors, (_bias_fits(transposed),))
    return (
        *require("bias, input, weight, out: FLOATING"),
        rank,
        weights,
        *require("out: rank of input; input, weight: promote to FLOATING"),
        *require("out: cast of input, weight"),
        *rest,
        has_shape("out", partial(result_shape, transposed=transposed), "the result's shape"),
        *((cube_math_of_convolution("input", "weight"),) if transposed is None else ()),
    )


# --- Nodes ----------------------------------------------------------------------------------------


def _infer(transposed: bool | None) -> Callable[[Call], Mapping[str, tuple[Any, tuple[int, ...]]]]:
    return lambda call: {"out": (_dtype(call), result_shape(call, transposed))}


def _lower(transposed: bool | None) -> Callable[[Lowering], Mapping[str, int]]:
    def lower(lowering: Lowering) -> Mapping[str, int]:
        call, (dtype, shape) = lowering.call, lowering.results["out"]
        turned = is_transposed(call, transposed)
        if 0 in shape:
            return {"out": lowering.filled(0, dtype, shape)}
        within = promoted(call, ("input", "weight"))
        operands = [lowering.dense(role, within) for role in ("input", "weight")]
        if lowering.has("bias"):
            operands.append(lowering.dense("bias"))
        return {"out": convolved(lowering, operands, dtype, shape, transposed=turned)}

    return lower


def convolved(
    lowering: Lowering,
    operands: list[int],
    dtype: aclDataType,
    shape: tuple[int, ...],
    *,
    transposed: bool,
    turns: bool = False,
) -> int:
    """A convolution of an image by weights as the call has them, maybe with a bias, of a known shape.

    `turns`: whether a transposed one with steps of 1 may be made as one by turned weights, which is faster where
    images are small.
    """
    call, found = lowering.call, geometry(lowering.call)
    kernel = call.shape("weight")[2:]
    plain = {*kernel, *found.stride} == {1} and not any((*found.before, *found.after))
    if (
        plain
        and (not transposed or not any(found.extra))
        and not _is_wide(lowering, dtype, shape, transposed)
    ):
        return _product(lowering, operands, dtype, shape, transposed=transposed)
    ones = (1,) * (AXES - len(kernel))
    none = (0,) * (AXES - len(kernel))
    image, weight, *bias = operands
    before, within = found.before, {}
    reaches = [gap * (size - 1) for gap, size in zip(found.dilation, kernel, strict=True)]
    if transposed and turns and {*found.stride} == {1}:
        margins = [reach - pad for reach, pad in zip(reaches, before, strict=True)]
        if min(margins) >= 0:
            weight, before, transposed = _turned(lowering, weight), tuple(margins), False
            within = {"within": True}  # as the transposed one does
    first, second, *_ = lowering.builder.shape(weight)
    taps = math.prod(kernel)
    rows, last = ((first, second), (taps,)) if transposed else ((first,), (taps * second,))
    return lowering.opaque(
        "convolution",
        [
            image,
            lowering.reshaped(weight, (*rows, *last)),
            *bias,
        ],
        dtype,
        shape,
        finishes=("float32",) if dtype == aclDataType.ACL_FLOAT else (),
        taps=(*ones, *kernel),
        stride=(*ones, *found.stride),
        padding=(*none, *before),
        dilation=(*ones, *found.dilation),
        groups=groups_of(call),
        transposed=transposed,
        **within,
    )


def _is_wide(
    lowering: Lowering, dtype: aclDataType, shape: tuple[int, ...], transposed: bool
) -> bool:
    """Whether a kernel of one element is multiplied as a convolution, which takes in what follows.

    Few rows of weights or positions are faster as a matrix product.
    """
    if transposed or dtype != aclDataType.ACL_FLOAT:
        return False
    return (
        shape[1] // groups_of(lowering.call) > FEW_ROWS and math.prod(shape[2:]) >= LEAST_POSITIONS
    )


def _turned(lowering: Lowering, weight: int) -> int:
    """Weights of a transposed convolution as those of one with steps of 1: inputs by outputs, from the end."""
    groups, builder = groups_of(lowering.call), lowering.builder
    first, second, *kernel = builder.shape(weight)
    grouped = lowering.reshaped(weight, (groups, first // groups, second, *kernel))
    group, row, column, *steps = builder.value(grouped).strides
    shape = (groups, second, first // groups, *kernel)
    offset = sum([(size - 1) * step for size, step in zip(kernel, steps, strict=True)])
    back = [-step for step in steps]
    made = builder.contiguous(builder.view(grouped, shape, (group, column, row, *back), offset))
    return lowering.reshaped(made, (groups * second, first // groups, *kernel))


def of_five(lowering: Lowering, value: int) -> tuple[int, ...]:
    first, second, *sizes = lowering.builder.value(value).shape
    return (first, second, *(1,) * (AXES - len(sizes)), *sizes)


def _product(
    lowering: Lowering,
    operands: list[int],
    dtype: aclDataType,
    shape: tuple[int, ...],
    *,
    transposed: bool,
) -> int:
    """A convolution with kernels of one element: weights times channels."""
    groups = groups_of(lowering.call)
    batch, channels, *sizes = lowering.builder.shape(operands[0])
    rows, points = shape[1] // groups, math.prod(sizes)
    image = lowering.reshaped(operands[0], (batch, groups, channels // groups, points))
    if transposed:
        weight = lowering.reshaped(operands[1], (1, groups, channels // groups, rows))
        weight = lowering.builder.transpose(weight, (0, 1, 3, 2))
    else:
        weight = lowering.reshaped(operands[1], (1, groups, rows, channels // groups))
    whole = (batch, groups, rows, points)
    matrices = [
        lowering.builder.broadcast_to(weight, (batch, groups, rows, channels // groups)),
        image,
    ]
    if len(operands) > 2:
        bias = lowering.reshaped(operands[2], (1, groups, rows, 1))
        matrices.append(lowering.builder.broadcast_to(bias, whole))
    made = lowering.opaque(
        "matmul",
        matrices,
        dtype,
        whole,
        loads=_HALVES_AND_SINGLE,
        round_inputs_to_half=False,
    )
    return lowering.reshaped(made, shape)


_HALVES_AND_SINGLE = ("float32", "float16", "bfloat16")

# --- Operators ------------------------------------------------------------------------------------

_NOTES = (
    "Sums are float32, with the bias added to them, and rounded once. A sum takes its terms in an "
    "order that depends on channels and kernel alone: results depend neither on the batch, nor on "
    "the size of the image, nor on threads."
)
_ACCURACY = (
    "Results are within K·2⁻²⁴ of the sum of magnitudes, K being the channels of a group times the "
    "size of the kernel, and half a unit of the last place."
)
_STRIDE = argument(
    "stride", (), "ints", "Steps of the kernel: one number, or one for each axis; none means 1."
)
_PADDING = argument(
    "padding",
    (),
    "ints",
    "Zeros around the input: one number, one for each axis, or two, before and after it.",
)
_DILATION = argument("dilation", (), "ints", "Steps between elements of the kernel.")
_TRANSPOSED = argument(
    "transposed",
    False,
    "bool",
    "Whether to compute the gradient of a convolution with respect to its input.",
)
_OUTPUT_PADDING = argument(
    "output_padding",
    None,
    "ints",
    "Elements more of a transposed convolution's result, along each axis.",
    nullable=True,
)
_GROUPS = argument("groups", 1, "int", "How many groups of channels there are, each by itself.")
_EXPRESSION = (
    "out[n, o, i] = bias[o] + Σ weight[o, c, k]·input[n, c, stride·i + dilation·k - padding]"
)
_TRANSPOSED_EXPRESSION = (
    "out[n, o, stride·i + dilation·k - padding] = bias[o] + Σ weight[c, o, k]·input[n, c, i]"
)


def options_of_convolution(*, cube_math: bool = False) -> tuple[Attribute, ...]:
    """The options of any convolution, or the one that changes no result."""
    if cube_math:
        return (_CUBE_MATH,)
    return (_STRIDE, _PADDING, _DILATION, _TRANSPOSED, _OUTPUT_PADDING, _GROUPS)


def _specs_of_rank(axes: int) -> dict[str, dict[str, Any]]:
    like = {"shape": (1,) * (axes + 2), "format": _FORMATS[axes + 2]}
    return {"input": like, "weight": like, "bias": {"shape": (1,)}, "out": like}


def _gradient(transposed: str, extra: str) -> dict[str, str]:
    return {
        "input, weight, bias": f"gradients_of_convolution(grad, input, weight, bias, stride, padding, "
        f"dilation, {transposed}, {extra}, groups, needed)"
    }


convolution = Operator(
    name="convolution",
    summary="Convolution along one to three axes, or its transpose.",
    expression=_EXPRESSION,
    notes=f"{_NOTES} The input has 3 to 5 dimensions: batch, channels and sizes.",
    inputs=("input", "weight", "bias"),
    optional=("bias",),
    attributes=(
        _STRIDE,
        _PADDING,
        _DILATION,
        _TRANSPOSED,
        _OUTPUT_PADDING,
        _GROUPS,
        _CUBE_MATH,
    ),
    entries=(
        entry(
            "aclnnConvolution",
            "input weight bias:in? stride:ints padding:ints dilation:ints transposed:bool "
            "outputPadding=output_padding:ints groups:int output=out:out cubeMathType:int",
        ),
    ),
    sample_specs={**_specs_of_rank(2), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)},
    rules=_rules(0, None),
    lower=_lower(None),
    example=(
        "convolution(np.float32([[[1, 2, 3, 4]]]), np.float32([[[1, -1]]]), None, (1,), (0,), (1,))",
        "array([[[-1., -1., -1.]]], dtype=float32)",
    ),
    seealso=("conv1d", "conv2d", "conv3d"),
    accuracy=_ACCURACY,
    keeps_channels_last=True,
    gradient=_gradient("transposed", "output_padding"),
)


def _along(axes: int) -> Operator:
    ones, ends = "[" * (axes - 1), "]" * (axes - 1)
    return Operator(
        name=f"conv{axes}d",
        summary=f"Convolution along {('one axis', 'two axes', 'three axes')[axes - 1]}.",
        expression=_EXPRESSION,
        notes=_NOTES,
        inputs=("input", "weight", "bias"),
        optional=("bias",),
        attributes=(_STRIDE, _PADDING, _DILATION, _GROUPS),
        entries=(),
        sample_specs=_specs_of_rank(axes),
        rules=_rules(axes, False),
        infer=_infer(False),
        lower=_lower(False),
        example=(
            f"conv{axes}d(np.float32([[{ones}[1, 2, 4]{ends}]]), np.float32([[{ones}[1, 1]{ends}]]))",
            f"array([[{ones}[3., 6.]{ends}]], dtype=float32)",
        ),
        seealso=("convolution",),
        accuracy=_ACCURACY,
        keeps_channels_last=True,
        gradient=_gradient("False", "(0,)"),
    )


def _transposed_along(axes: int) -> Operator:
    ones, ends = "[" * (axes - 1), "]" * (axes - 1)
    return Operator(
        name=f"conv_transpose{axes}d",
        summary=f"Transposed convolution along {('one axis', 'two axes')[axes - 1]}.",
        expression=_TRANSPOSED_EXPRESSION,
        notes=_NOTES,
        inputs=("input", "weight", "bias"),
        optional=("bias",),
        attributes=(_STRIDE, _PADDING, _OUTPUT_PADDING, _GROUPS, _DILATION),
        entries=(),
        sample_specs=_specs_of_rank(axes),
        rules=_rules(axes, True),
        infer=_infer(True),
        lower=_lower(True),
        example=(
            f"conv_transpose{axes}d(np.float32([[{ones}[1, 2]{ends}]]), np.float32([[{ones}[1, 3]{ends}]]))",
            f"array([[{ones}[1., 5., 6.]{ends}]], dtype=float32)",
        ),
        seealso=("convolution",),
        accuracy=_ACCURACY,
        keeps_channels_last=True,
        gradient=_gradient("True", "output_padding"),
    )


conv1d, conv2d, conv3d = _along(1), _along(2), _along(3)
conv_transpose1d, conv_transpose2d = _transposed_along(1), _transposed_along(2)
