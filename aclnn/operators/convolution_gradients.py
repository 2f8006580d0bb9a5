"""Gradients of convolutions, also transposed ones, for input, weight and bias."""

from __future__ import annotations

import math
from collections.abc import Mapping

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    Call,
    Rule,
    dtype_among,
    has_shape,
    promoted,
    rule,
    same_shape,
    when,
)
from aclnn.operators.convolutions import (
    ANY_AXES,
    AXES,
    convolved,
    cube_math_of_convolution,
    geometry,
    groups_of,
    is_transposed,
    of_five,
    options_of_convolution,
    result_shape,
    shape_rules,
)
from aclnn.operators.declaration import Operator, argument, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.sizes import GRADIENTS, output_mask, requested_gradients_exist, three_flags
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
_OPERANDS = ("grad_output", "input", "weight")


def _channels(call: Call) -> int:
    """The number of the result's channels."""
    return call.shape("grad_output")[1]


# --- Rules ----------------------------------------------------------------------------------------


def _where_wanted(index: int, rule: Rule) -> Rule:
    return when(lambda call: output_mask(call)[index], rule, "where asked for, {}")


@rule(
    "`bias_sizes` is the number of the result's channels, where a gradient of the bias is asked for",
    "bias_sizes",
    "grad_output",
)
def _bias_sizes_fit(call: Call) -> str | None:
    sizes = call.switches["bias_sizes"]
    if not output_mask(call)[2] or sizes is None or tuple(sizes) == (_channels(call),):  # type: ignore[arg-type]
        return None
    return f"{call.names['bias_sizes']} is {sizes}, must be {(_channels(call),)}"


def _shape_of(call: Call, role: str) -> Shape:
    if role == "grad_bias":
        return (_channels(call),)
    return call.shape(role.removeprefix("grad_"))


def _rules() -> tuple[Rule, ...]:
    return (
        three_flags(),
        requested_gradients_exist(),
        *[dtype_among(role) for role in _OPERANDS],
        *[_where_wanted(index, dtype_among(role)) for index, role in enumerate(GRADIENTS)],
        *require("grad_output, input, weight: promote to FLOATING"),
        *shape_rules(
            ANY_AXES, None, ("input", "weight", "grad_output", "grad_input", "grad_weight")
        ),
        *require("grad_output: rank of input"),
        has_shape("grad_output", result_shape, "the shape of the convolution's result"),
        _bias_sizes_fit(),
        _where_wanted(0, same_shape("grad_input", "input")),
        _where_wanted(1, same_shape("grad_weight", "weight")),
        _where_wanted(
            2,
            has_shape("grad_bias", lambda call: (_channels(call),), "an element for each channel"),
        ),
        cube_math_of_convolution("input", "weight"),
    )


# --- Nodes ----------------------------------------------------------------------------------------


def _infer(call: Call) -> Mapping[str, tuple[aclDataType, Shape]]:
    requested = zip(GRADIENTS, output_mask(call), strict=True)
    return {
        role: (_dtype_of(call, role), _shape_of(call, role)) for role, asked in requested if asked
    }


def _dtype_of(call: Call, role: str) -> aclDataType:
    if role in call.tensors:
        return call.dtype(role)
    return call.dtype("weight" if role == "grad_bias" else role.removeprefix("grad_"))


def _lower(lowering: Lowering) -> Mapping[str, int]:
    makers = (_gradient_of_input, _gradient_of_weight, _gradient_of_bias)
    found = {}
    for role, make in zip(GRADIENTS, makers, strict=True):
        if not lowering.wants(role):
            continue
        dtype, shape = lowering.results[role]
        if 0 in (*shape, *lowering.call.shape("grad_output"), *lowering.call.shape("input")):
            found[role] = lowering.filled(0, dtype, shape)
        else:
            found[role] = make(lowering, dtype, shape)
    return found


def _gradient_of_input(lowering: Lowering, dtype: aclDataType, shape: Shape) -> int:
    """The convolution's transpose, of the result's gradient; of a transposed one the convolution."""
    call = lowering.call
    within = promoted(call, _OPERANDS)
    operands = [lowering.dense(role, within) for role in ("grad_output", "weight")]
    turned = not is_transposed(call)
    return convolved(lowering, operands, dtype, shape, transposed=turned, turns=True)


def _gradient_of_weight(lowering: Lowering, dtype: aclDataType, shape: Shape) -> int:
    """Rows of gradients times windows of images; of a transposed convolution both change places."""
    call, found = lowering.call, geometry(lowering.call)
    rows, image = ("grad_output", "input") if not is_transposed(call) else ("input", "grad_output")
    batch, channels, *positions = call.shape(rows)
    ones, none = (1,) * (AXES - len(positions)), (0,) * (AXES - len(positions))
    windows = lowering.dense(image)
    made = lowering.opaque(
        "convolution_slopes",
        [
            lowering.reshaped(lowering.dense(rows), (batch, channels, math.prod(positions))),
            lowering.reshaped(windows, of_five(lowering, windows)),
        ],
        dtype,
        (shape[0], math.prod(shape[1:])),
        positions=(*ones, *positions),
        taps=(*ones, *shape[2:]),
        stride=(*ones, *found.stride),
        padding=(*none, *found.before),
        dilation=(*ones, *found.dilation),
        groups=groups_of(call),
    )
    return lowering.reshaped(made, shape)


def _gradient_of_bias(lowering: Lowering, dtype: aclDataType, shape: Shape) -> int:
    batch, channels, *positions = lowering.call.shape("grad_output")
    wide = aclDataType.ACL_DOUBLE
    value = lowering.dense(
        lowering.reshaped("grad_output", (batch, channels, math.prod(positions)))
    )
    (value,) = lowering.rows("sum", [value], [(wide, (batch, channels, 1))], -1)
    (value,) = lowering.rows("sum", [value], [(dtype, (1, channels, 1))], -3)
    return lowering.reshaped(value, shape)


# --- The operator ---------------------------------------------------------------------------------

_LIKE = {
    role: {"shape": (1, 1, 1, 1), "format": 0}
    for role in ("grad_output", "input", "weight", "grad_input", "grad_weight")
}

convolution_backward = Operator(
    name="convolution_backward",
    summary="Gradients of a convolution, or of its transpose, for input, weight and bias.",
    expression=(
        "with g = grad_output: grad_input[n, c, stride·i + dilation·k - padding] = Σ weight[o, c, k]·g[n, o, i]; "
        "grad_weight[o, c, k] = Σ g[n, o, i]·input[n, c, stride·i + dilation·k - padding]; grad_bias[o] = "
        "Σ g[n, o, i]"
    ),
    notes=(
        "Sums are float32 and rounded once, those of the bias exact. What is added up together depends on shapes "
        "alone, not on threads. Gradients that `output_mask` does not ask for are None."
    ),
    inputs=_OPERANDS,
    outputs=GRADIENTS,
    optional=GRADIENTS,
    attributes=(
        argument("bias_sizes", None, "ints", "Number of the result's channels.", nullable=True),
        *options_of_convolution(),
        argument(
            "output_mask",
            (True, True, True),
            "bools",
            "Which gradients to make: of input, weight and bias.",
        ),
        *options_of_convolution(cube_math=True),
    ),
    sample_specs={
        **specs("grad_bias: [1]"),
        **_LIKE,
        "bias_sizes": (1,),
        "stride": (1, 1),
        "padding": (0, 0),
        "dilation": (1, 1),
        "output_padding": (0, 0),
        "output_mask": (True, True, True),
    },
    entries=(
        entry(
            "aclnnConvolutionBackward",
            "gradOutput=grad_output input weight biasSizes=bias_sizes:ints? stride:ints padding:ints dilation:ints "
            "transposed:bool outputPadding=output_padding:ints groups:int outputMask=output_mask:bools "
            "cubeMathType:int gradInput=grad_input:out? gradWeight=grad_weight:out? gradBias=grad_bias:out?",
        ),
    ),
    rules=_rules(),
    infer=_infer,
    lower=_lower,
    example=(
        "convolution_backward(np.float32([[[1, 1]]]), np.float32([[[1, 2, 3]]]), np.float32([[[1, -1]]]), (1,), "
        "(1,), (0,), (1,), False, (0,))",
        "(array([[[ 1.,  0., -1.]]], dtype=float32), array([[[3., 5.]]], dtype=float32), "
        "array([2.], dtype=float32))",
    ),
    seealso=("convolution",),
    accuracy=(
        "Results are within K·2⁻²⁴ of the sum of magnitudes, K being the number of terms, and half a unit of the "
        "last place."
    ),
    keeps_channels_last=True,
    gradient={
        "grad_output, input, weight": "second_gradients_of_convolution(grad, grad_grad_weight, grad_grad_bias, "
        "grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needed)"
    },
)
