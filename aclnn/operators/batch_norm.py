"""Batch norm in training: statistics of the batch, running ones, and gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping

from aclnn.acl.constants import ACLNN_ERR_PARAM_NULLPTR, aclDataType
from aclnn.operators.channel_norm import (
    CHANNEL_ROLES,
    CHANNELS,
    channels_or_none,
    has_channels,
    of_channels,
)
from aclnn.operators.checks import Call, Rule, dtype_like_or, rule, when
from aclnn.operators.declaration import (
    GRADIENT_ACCURACY,
    ROW_ACCURACY,
    Operator,
    argument,
    entry,
)
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.norm import Inferred, Shape
from aclnn.operators.sizes import (
    GRADIENTS,
    output_mask,
    rank_from,
    requested_gradients_exist,
    three_flags,
)
from aclnn.operators.words import require, specs

_DOUBLE = aclDataType.ACL_DOUBLE
_SAVED = ("save_mean", "save_invstd")
_RUNNING = ("running_mean", "running_var")
_UPDATED = ("out_mean", "out_var")


# --- Statistics -----------------------------------------------------------------------------------


def _sizes(call: Call) -> tuple[int, int, int]:
    """Batch, channels, and elements of each channel."""
    batch, channels, *rest = call.shape("input")
    return batch, channels, math.prod(rest)


def _count(call: Call) -> int:
    """Number of elements that statistics of a channel are of."""
    batch, _, elements = _sizes(call)
    return batch * elements


def _saves_variance(call: Call) -> bool:
    """CANN's functions keep the variance in the place of its root's inverse, but for Ascend950."""
    return call.c_shaped and call.soc != "Ascend950"


def _of_batch(lowering: Lowering) -> tuple[int, int]:
    """Mean and variance of each channel in float64, of the shape (1, 1, channels, 1)."""
    batch, channels, elements = _sizes(lowering.call)
    one = (1, 1, channels, 1)
    if elements == 1:
        rows = lowering.dense(lowering.reshaped("input", (batch, channels)))
        mean, rstd = lowering.rows(
            "moments", [rows], [(_DOUBLE, (1, channels))] * 2, -2, params=(0.0,)
        )
        variance = _variance(lowering, rstd)
        return lowering.reshaped(mean, one), lowering.reshaped(variance, one)
    rows = lowering.dense(lowering.reshaped("input", (batch, channels, elements)))
    sizes = (batch, channels, 1)
    means, rstd = lowering.rows("moments", [rows], [(_DOUBLE, sizes)] * 2, -1, params=(0.0,))
    (mean,) = lowering.rows("mean", [means], [(_DOUBLE, (1, channels, 1))], -3)
    centered = lowering.point(
        "sub", [means, lowering.dense(mean, None, sizes)], _DOUBLE, sizes, params=(1.0,)
    )
    squares = lowering.point("square", [centered], _DOUBLE, sizes)
    both = [_variance(lowering, rstd), squares]
    spread = lowering.point("add", both, _DOUBLE, sizes, params=(1.0,))
    (variance,) = lowering.rows("mean", [spread], [(_DOUBLE, (1, channels, 1))], -3)
    return lowering.reshaped(mean, one), lowering.reshaped(variance, one)


def _variance(lowering: Lowering, rstd: int) -> int:
    """From the inverse deviation without an epsilon: infinite where there is none."""
    shape = lowering.builder.shape(rstd)
    square = lowering.point("square", [rstd], _DOUBLE, shape)
    return lowering.point("reciprocal", [square], _DOUBLE, shape)


def _inverse_deviation(lowering: Lowering, variance: int) -> int:
    shape = lowering.builder.shape(variance)
    eps = lowering.number("eps", "exact")
    moved = lowering.point("adds", (variance,), _DOUBLE, shape, params=(eps, 1.0))
    return lowering.point("rsqrt", (moved,), _DOUBLE, shape)


def _running(lowering: Lowering) -> tuple[int, int]:
    one = (1, 1, lowering.call.shape("input")[1], 1)
    mean, variance = (lowering.dense(lowering.reshaped(role, one), _DOUBLE) for role in _RUNNING)
    return mean, variance


def _updated(lowering: Lowering, role: str, new: int) -> int:
    """A running statistic moved toward that of the batch."""
    channels = (lowering.call.shape("input")[1],)
    old = lowering.dense(role, _DOUBLE)
    new = lowering.reshaped(new, channels)
    away = lowering.point("sub", [new, old], _DOUBLE, channels, params=(1.0,))
    momentum = lowering.number("momentum", "exact")
    return lowering.point("add", [old, away], _DOUBLE, channels, params=(momentum,))


# --- Rules ----------------------------------------------------------------------------------------


@rule(
    "in training `save_mean` and `save_invstd` are given",
    *_SAVED,
    "training",
    status=ACLNN_ERR_PARAM_NULLPTR,
)
def _saved_given(call: Call) -> str | None:
    if call.makes_absent or not call.switches["training"]:
        return None
    for role in _SAVED:
        if role not in call.tensors:
            return f"{call.names[role]} is null, but {call.names['training']} is true"
    return None


@rule(
    "running statistics are both given, in training both or none",
    *_RUNNING,
    status=ACLNN_ERR_PARAM_NULLPTR,
)
def _running_given(call: Call) -> str | None:
    arguments = [role in call.tensors for role in _RUNNING]
    if all(arguments) or (
        call.switches.get("training", call.switches.get("train")) and not any(arguments)
    ):
        return None
    missing = next(role for role in _RUNNING if role not in call.tensors)
    return (
        f"{call.names[missing]} is null: both are needed unless in training, where both may be null"
    )


def _in_training(rule: Rule) -> Rule:
    return when(lambda call: call.switches["training"], rule, "in training, {}")


# --- The norm -------------------------------------------------------------------------------------


def _dtype_of_statistics(call: Call) -> aclDataType:
    found = [role for role in ("running_mean", "weight", "input") if role in call.tensors]
    return call.dtype(found[0])


def _infer_norm(call: Call) -> Inferred:
    found = {"out": (call.dtype("input"), call.shape("input"))}
    channels = call.shape("input")[1:2] if call.switches["training"] else (0,)
    own = _dtype_of_statistics(call)
    for role in _SAVED:
        if call.switches["training"] or role not in call.tensors:
            found[role] = (call.dtype(role) if role in call.tensors else own, channels)
    if call.switches["training"] and "running_mean" in call.tensors:
        pairs = zip(_UPDATED, _RUNNING, strict=True)
        found |= {made: (call.dtype(role), call.shape(role)) for made, role in pairs}
    return found


def _lower_norm(lowering: Lowering) -> Mapping[str, int]:
    call, found = lowering.call, {}
    batch, channels, elements = _sizes(call)
    training = bool(call.switches["training"])
    if not _count(call) or not channels:
        empty = {"save_mean": 0.0, "save_invstd": math.nan}
        requested = [role for role in empty if lowering.wants(role) and training]
        left = zip(_UPDATED, _RUNNING, strict=True)
        found = {made: lowering.value(role) for made, role in left if lowering.wants(made)}
        return found | {
            one: lowering.filled(empty[one], *lowering.results[one]) for one in requested
        }
    mean, variance = _of_batch(lowering) if training else _running(lowering)
    rstd = _inverse_deviation(lowering, variance)
    shape = (batch, 1, channels, elements)
    found["out"] = of_channels(lowering, "channel_norm", mean, rstd, shape)
    if not training:
        return found
    saved = variance if _saves_variance(call) else rstd
    for role, value in zip(_SAVED, (mean, saved), strict=True):
        if lowering.wants(role):
            dtype, sizes = lowering.results[role]
            found[role] = lowering.builder.cast(lowering.reshaped(value, sizes), graph_dtype(dtype))
    if not lowering.wants("out_mean"):
        return found
    count = _count(call)
    one = lowering.builder.shape(variance)
    whole = lowering.point("muls", [variance], _DOUBLE, one, params=(count / max(1, count - 1),))
    for made, role, value in zip(_UPDATED, _RUNNING, (mean, whole), strict=True):
        moved = _updated(lowering, role, value)
        found[made] = lowering.builder.cast(moved, graph_dtype(lowering.results[made][0]))
    return found


_EPS = argument("eps", 1e-5, "float", "Added to the variance.")
_MOMENTUM = argument("momentum", 0.1, "float", "How far running statistics move.")
_LAID_OUT = {**CHANNELS, **{role: {"shape": (2,)} for role in (*_SAVED, *_UPDATED)}}
_STATISTICS = (
    "In training channels are normalised by the mean and the variance of the batch, and running statistics move by "
    "momentum toward the mean and the variance, with the correction of 1. The weight defaults to 1, the bias to 0."
)

native_batch_norm_functional = Operator(
    name="native_batch_norm_functional",
    summary="Batch norm, with what training saves and the running statistics after it.",
    expression=(
        "(x - mean)·invstd·weight + bias, invstd = 1/√(var + eps), for each channel; running_mean + "
        "momentum·(mean - running_mean), running_var likewise"
    ),
    notes=(
        f"{_STATISTICS} save_mean and save_invstd are those of the batch, and empty without training, as is what "
        "running statistics become None. CANN's function writes into the running statistics, and saves the variance in "
        "the place of invstd, except on Ascend950; its gradient takes it so."
    ),
    inputs=("input", *CHANNEL_ROLES),
    outputs=("out", *_SAVED, *_UPDATED),
    optional=(*CHANNEL_ROLES, *_SAVED, *_UPDATED),
    sample_specs=_LAID_OUT,
    attributes=(
        argument("training", True, "bool", "Whether to take statistics of the batch."),
        _MOMENTUM,
        _EPS,
    ),
    entries=(
        entry(
            "aclnnBatchNorm",
            "input weight=weight:in? bias=bias:in? runningMean=running_mean:inout? "
            "runningVar=running_var:inout? training:bool momentum:float eps:float output=out:out "
            "saveMean=save_mean:out? saveInvstd=save_invstd:out?",
            example=(  # saves the variance
                "native_batch_norm_functional(np.float32([[1], [3]]), None, None, np.float32([1]), "
                "np.float32([4]), True, 0.5, 3.0)",
                "(array([[-0.5],\n       [ 0.5]], dtype=float32), array([2.], dtype=float32), "
                "array([1.], dtype=float32), array([1.5], dtype=float32), "
                "array([3.], dtype=float32))",
            ),
        ),
    ),
    rules=(
        _saved_given(),
        *require("input: FLOATING; out: dtype of input"),
        *[dtype_like_or(role, "input") for role in (*_SAVED, *CHANNEL_ROLES)],
        rank_from("input", 2),
        *require("out: shape of input"),
        *[has_channels(role) for role in CHANNEL_ROLES],
        _running_given(),
        *require("save_mean, save_invstd: at most 8 dims"),
        *[_in_training(has_channels(role)) for role in _SAVED],
        *[channels_or_none(role) for role in _SAVED],
    ),
    infer=_infer_norm,
    lower=_lower_norm,
    example=(
        "native_batch_norm_functional(np.float32([[1], [3]]), None, None, np.float32([1]), np.float32([4]), True, 0.5, 3.0)",
        "(array([[-0.5],\n       [ 0.5]], dtype=float32), array([2.], dtype=float32), array([0.5], dtype=float32), "
        "array([1.5], dtype=float32), array([3.], dtype=float32))",
    ),
    seealso=("native_batch_norm", "native_batch_norm_backward"),
    accuracy=ROW_ACCURACY,
    gradient={
        "input, weight, bias": "ops.native_batch_norm_backward(grad, input, weight, running_mean, running_var, "
        "save_mean, save_invstd, training, eps, needed)"
    },
    keeps_channels_last=True,
)


# --- Its gradient ---------------------------------------------------------------------------------


@rule(
    "saved statistics are given in training, running ones otherwise",
    *_SAVED,
    *_RUNNING,
    "train",
    status=ACLNN_ERR_PARAM_NULLPTR,
)
def _statistics_given(call: Call) -> str | None:
    requested = _SAVED if call.switches["train"] else _RUNNING
    for role in requested:
        if role not in call.tensors:
            return f"{call.names[role]} is null, but {call.chosen('train')}"
    return None


@rule("in training, `{role}` has an element for each channel", "{role}", "input")
def _saved_has_channels(call: Call, role: str) -> str | None:
    """Without training what is saved may be empty."""
    return has_channels(role).test(call) if call.switches["train"] else None


def _infer_gradients(call: Call) -> Inferred:
    channels: Shape = call.shape("input")[1:2]
    parameter = call.dtype("weight") if "weight" in call.tensors else call.dtype("input")
    made = ((call.dtype("input"), call.shape("input")), *[(parameter, channels)] * 2)
    requested = zip(GRADIENTS, made, output_mask(call), strict=True)
    return {
        role: (call.dtype(role) if role in call.tensors else dtype, shape)
        for role, (dtype, shape), asked in requested
        if asked
    }


def _statistics(lowering: Lowering) -> tuple[int, int]:
    """Mean and inverse deviation that the norm took, in float64, of the shape (1, channels, 1)."""
    call, one = lowering.call, (1, lowering.call.shape("input")[1], 1)
    if not call.switches["train"]:
        mean, variance = _running(lowering)
        return lowering.reshaped(mean, one), lowering.reshaped(
            _inverse_deviation(lowering, variance), one
        )
    mean, saved = (lowering.dense(lowering.reshaped(role, one), _DOUBLE) for role in _SAVED)
    return mean, _inverse_deviation(lowering, saved) if _saves_variance(call) else saved


def _summed(lowering: Lowering, value: int) -> int:
    """The sum of (batch, channels, elements) for each channel, in float64."""
    batch, channels, _ = lowering.builder.shape(value)
    (value,) = lowering.rows("sum", [value], [(_DOUBLE, (batch, channels, 1))], -1)
    return lowering.rows("sum", [value], [(_DOUBLE, (1, channels, 1))], -3)[0]


def _lower_gradients(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    shape, count = _sizes(call), _count(call)
    if not count or not shape[1]:
        return {role: lowering.filled(0, *made) for role, made in lowering.results.items()}
    one = (1, shape[1], 1)
    grad = lowering.dense(lowering.reshaped("grad_out", shape))
    mean, rstd = _statistics(lowering)
    wide = [
        lowering.dense(lowering.reshaped("input", shape), _DOUBLE),
        lowering.dense(mean, None, shape),
    ]
    centered = lowering.point("sub", wide, _DOUBLE, shape, params=(1.0,))
    training = bool(call.switches["train"])
    found, sums = {}, {}
    if training or lowering.wants("grad_bias"):
        sums["grad_bias"] = _summed(lowering, grad)
    if training or lowering.wants("grad_weight"):
        products = lowering.point("mul", [lowering.dense(grad, _DOUBLE), centered], _DOUBLE, shape)
        total = _summed(lowering, products)
        sums["grad_weight"] = lowering.point("mul", [total, rstd], _DOUBLE, one)
    for role in ("grad_weight", "grad_bias"):
        if lowering.wants(role):
            dtype, sizes = lowering.results[role]
            found[role] = lowering.builder.cast(
                lowering.reshaped(sums[role], sizes), graph_dtype(dtype)
            )
    if not lowering.wants("grad_input"):
        return found
    factor = rstd
    if lowering.has("weight"):
        weight = lowering.dense(lowering.reshaped("weight", one), _DOUBLE)
        factor = lowering.point("mul", [rstd, weight], _DOUBLE, one)
    value = lowering.dense(grad, _DOUBLE)
    if training:
        value = _without_statistics(lowering, value, centered, rstd, sums, 1 / count)
    dtype, sizes = lowering.results["grad_input"]
    value = lowering.point(
        "mul", [value, lowering.dense(factor, None, shape)], dtype, shape, reads="float64"
    )
    found["grad_input"] = lowering.reshaped(value, sizes)
    return found


def _without_statistics(
    lowering: Lowering, grad: int, centered: int, rstd: int, sums: Mapping[str, int], share: float
) -> int:
    """The gradient less what goes through the mean and the variance of the batch."""
    shape, one = lowering.builder.shape(grad), lowering.builder.shape(rstd)
    slope = lowering.point("mul", [sums["grad_weight"], rstd], _DOUBLE, one)
    rest = [
        lowering.point("muls", [value], _DOUBLE, one, params=(share,))
        for value in (sums["grad_bias"], slope)
    ]
    mean, slope = (lowering.dense(value, None, shape) for value in rest)
    value = lowering.point("sub", [grad, mean], _DOUBLE, shape, params=(1.0,))
    along = lowering.point("mul", [centered, slope], _DOUBLE, shape)
    return lowering.point("sub", [value, along], _DOUBLE, shape, params=(1.0,))


native_batch_norm_backward = Operator(
    name="native_batch_norm_backward",
    summary="Gradients of batch norm for its input, weight and bias.",
    expression=(
        "with h = (x - mean)·invstd: grad_bias = Σ g, grad_weight = Σ g·h, grad_input = weight·invstd·(g - "
        "grad_bias/n - h·grad_weight/n), without training weight·invstd·g"
    ),
    notes=(
        "In training mean and invstd are save_mean and save_invstd, else those of the running statistics. CANN's "
        "function takes the variance in the place of save_invstd, except on Ascend950, as its forward function saves "
        "it. Gradients that `output_mask` does not ask for are None."
    ),
    inputs=("grad_out", "input", "weight", *_RUNNING, *_SAVED),
    outputs=GRADIENTS,
    optional=("weight", *_RUNNING, *_SAVED, *GRADIENTS),
    sample_specs={
        **specs("grad_out, grad_input: [1,2]; grad_weight, grad_bias: [2]"),
        **_LAID_OUT,
        "output_mask": (True, True, True),
    },
    attributes=(
        argument("train", True, "bool", "Whether statistics are those of the batch."),
        _EPS,
        argument(
            "output_mask",
            (True, True, True),
            "bools",
            "Which gradients to make: of input, weight and bias.",
        ),
    ),
    entries=(
        entry(
            "aclnnBatchNormBackward",
            "gradOut=grad_out input weight:in? runningMean=running_mean:in? runningVar=running_var:in? "
            "saveMean=save_mean:in? saveInvstd=save_invstd:in? training=train:bool eps:float "
            "outputMask=output_mask:bools gradInput=grad_input:out? gradWeight=grad_weight:out? "
            "gradBias=grad_bias:out?",
            example=(  # takes the variance
                "native_batch_norm_backward(np.float32([[2], [0]]), np.float32([[1], [3]]), None, "
                "None, None, np.float32([2]), np.float32([1]), True, 3.0)",
                "(array([[ 0.375],\n       [-0.375]], dtype=float32), array([-1.], dtype=float32), "
                "array([2.], dtype=float32))",
            ),
        ),
    ),
    rules=(
        three_flags(),
        requested_gradients_exist(),
        _statistics_given(),
        *require("grad_out: FLOATING; input: dtype of grad_out"),
        *[
            dtype_like_or(role, "input")
            for role in ("weight", *_RUNNING, *_SAVED, "grad_weight", "grad_bias")
        ],
        *require("grad_input: dtype of input"),
        rank_from("input", 2),
        *require("grad_out: shape of input"),
        *[has_channels(role) for role in ("weight", *_RUNNING)],
        *[_saved_has_channels(role) for role in _SAVED],
        *require("grad_input: shape of input"),
        has_channels("grad_weight"),
        has_channels("grad_bias"),
    ),
    infer=_infer_gradients,
    lower=_lower_gradients,
    example=(
        "native_batch_norm_backward(np.float32([[2], [0]]), np.float32([[1], [3]]), None, None, None, np.float32([2]), "
        "np.float32([0.5]))",
        "(array([[ 0.375],\n       [-0.375]], dtype=float32), array([-1.], dtype=float32), array([2.], dtype=float32))",
    ),
    seealso=("native_batch_norm_functional",),
    accuracy=GRADIENT_ACCURACY,
    keeps_channels_last=True,
    differentiable=False,
)
