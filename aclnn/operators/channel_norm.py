"""Norms with a factor for each channel: group norm, with SiLU after it, and batch norm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import Call, Rule, dtype_like_or, has_shape, rule, same_dtype
from aclnn.operators.declaration import REQUIRED, ROW_ACCURACY, Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering
from aclnn.operators.norm import Inferred, Shape
from aclnn.operators.sizes import like_input, rank_from
from aclnn.operators.words import require

_DOUBLE = aclDataType.ACL_DOUBLE
_EPS = argument("eps", 1e-5, "float", "Added to the variance.")
_PARAMETERS = "The weight defaults to 1, the bias to 0."


# --- Nodes ----------------------------------------------------------------------------------------


def of_channels(
    lowering: Lowering, formula: str, mean: int, rstd: int, shape: tuple[int, int, int, int]
) -> int:
    """(input - mean)·rstd·weight + bias; the shape has batch, groups, channels of each, elements.

    What belongs to a channel is multiplied and broadcast in float64, so that results are rounded once.
    """
    channels = (1, *shape[1:3], 1)
    weight, bias = (
        lowering.dense(lowering.reshaped(role, channels), _DOUBLE)
        if lowering.has(role)
        else lowering.filled(number, _DOUBLE, channels)
        for role, number in (("weight", 1.0), ("bias", 0.0))
    )
    sizes = lowering.builder.value(rstd).shape
    scaled = (sizes[0], *shape[1:3], 1)
    factors = [lowering.dense(one, _DOUBLE, scaled) for one in (rstd, weight)]
    scale = lowering.point("mul", factors, _DOUBLE, scaled)
    operands = [
        lowering.dense(lowering.reshaped("input", shape)),
        *[lowering.dense(one, _DOUBLE, shape) for one in (mean, scale, bias)],
    ]
    dtype = lowering.call.dtype("input")
    made = lowering.point(formula, operands, dtype, shape, reads="float64")
    return lowering.reshaped(made, lowering.call.shape("input"))


# --- Group norm -----------------------------------------------------------------------------------


def _groups(call: Call) -> int:
    role = next(r for r in ("group", "num_groups") if r in call.switches)
    return call.switches[role]  # type: ignore[return-value]


def _statistics_shape(call: Call) -> Shape:
    return (call.shape("input")[0], _groups(call))


def _lower_group_norm(lowering: Lowering) -> Mapping[str, int]:
    call = lowering.call
    batch, channels, *rest = call.shape("input")
    groups, elements = _groups(call), math.prod(rest)
    if elements == 0 or channels == 0:
        empty = {"mean": 0.0, "rstd": math.nan}
        requested = [role for role in empty if lowering.wants(role)]
        return {role: lowering.filled(empty[role], *lowering.results[role]) for role in requested}
    rows = lowering.dense(
        lowering.reshaped("input", (batch, groups, channels // groups * elements))
    )
    mean, rstd = lowering.rows(
        "moments",
        [rows],
        [(_DOUBLE, (batch, groups, 1))] * 2,
        -1,
        params=(lowering.number("eps", "exact"),),
    )
    # What V1 of the operator with SiLU fixes is the default of V2, and group norm has no such option.
    formula = "channel_norm_silu" if call.switches.get("activate_silu") else "channel_norm"
    shape = (batch, groups, channels // groups, elements)
    centre, spread = (lowering.reshaped(one, (batch, groups, 1, 1)) for one in (mean, rstd))
    found = {"out": of_channels(lowering, formula, centre, spread, shape)}
    for role, one in (("mean", mean), ("rstd", rstd)):
        if lowering.wants(role):
            dtype, sizes = lowering.results[role]
            found[role] = lowering.dense(lowering.reshaped(one, sizes), dtype)
    return found


def has_channels(role: str) -> Rule:
    return has_shape(role, lambda call: call.shape("input")[1:2], "an element for each channel")


@rule("`{role}` divides the number of channels")
def _groups_divide(call: Call, role: str, channels: Callable[[Call], Any]) -> str | None:
    count = channels(call)
    if count % _groups(call) == 0:
        return None
    return f"{call.names[role]} is {_groups(call)}, which does not divide {count} channels"


@rule("`{role}` is more than 0")
def _above_zero(call: Call, role: str) -> str | None:
    number = call.switches[role]
    assert isinstance(number, int)
    return None if number > 0 else f"{call.names[role]} is {number}, must be more than 0"


@rule("`{role}` is more than 0")
def _positive(call: Call, role: str) -> str | None:
    spec = call.scalars[role]
    if not (spec.negative or spec.zero or spec.nan):
        return None
    return f"{call.names[role]} is {spec.text}, must be more than 0"


@rule("`{role}` is how many {words} `input` has")
def _count_is(call: Call, role: str, words: str, count: Callable[[Shape], int]) -> str | None:
    requested = count(call.shape("input"))
    if call.switches[role] == requested:
        return None
    return f"{call.chosen(role)}, but {call.names['input']} has {requested} {words}"


def _number(role: str, doc: str) -> Attribute:
    return argument(role, REQUIRED, "int", doc)


_POSITIVE_EPS = argument("eps", 1e-5, "float", "Added to the variance.", facts=("zero", "nan"))
_GROUP_NORM = (
    "(x - mean)·rstd·weight + bias, rstd = 1/√(var + eps), over the channels of each group"
)
_STATISTICS = require("mean, rstd: dtype of input")
_STATISTICS_SHAPES = tuple(
    [has_shape(role, _statistics_shape, "an element for each group") for role in ("mean", "rstd")]
)
_GROUPED = {"input": {"shape": (1, 2)}, "weight": {"shape": (2,)}, "bias": {"shape": (2,)}}
_ONE_GROUP = {"mean": {"shape": (1, 1)}, "rstd": {"shape": (1, 1)}}

native_group_norm = Operator(
    name="native_group_norm",
    summary="Group norm with the mean and the inverse deviation of each group.",
    expression=_GROUP_NORM,
    notes=f"{_PARAMETERS} Mean and rstd have the dtype of `input`, and the shape (N, group).",
    inputs=("input", "weight", "bias"),
    outputs=("out", "mean", "rstd"),
    optional=("weight", "bias"),
    sample_specs={**_GROUPED, **_ONE_GROUP, "N": 1, "C": 2, "HxW": 1, "group": 1},
    attributes=(
        _number("N", "Size of the batch."),
        _number("C", "Number of channels."),
        _number("HxW", "Number of elements of each channel."),
        _number("group", "Number of groups of channels."),
        _POSITIVE_EPS,
    ),
    parameters=("input", "weight", "bias", "N", "C", "HxW", "group", "eps"),
    entries=(
        entry(
            "aclnnGroupNorm",
            "self=input gamma=weight:in? beta=bias:in? N=N:int C=C:int HxW=HxW:int group:int "
            "eps:float out:out meanOut=mean:out rstdOut=rstd:out",
        ),
    ),
    rules=(
        *require("input: FLOATING"),
        *[same_dtype(role, "input") for role in ("weight", "bias", "out")],
        *_STATISTICS,
        _above_zero("group"),
        _groups_divide("group", lambda call: call.switches["C"]),
        _positive("eps"),
        rank_from("input", 2),
        *require("out: shape of input"),
        _count_is("N", "batches", lambda shape: shape[0]),
        _count_is("C", "channels", lambda shape: shape[1]),
        _count_is("HxW", "elements in each channel", lambda shape: math.prod(shape[2:])),
        *_STATISTICS_SHAPES,
        has_channels("weight"),
        has_channels("bias"),
        *require("out: format of input"),
    ),
    lower=_lower_group_norm,
    example=(
        "native_group_norm(np.float32([[[3, 5]]]), None, np.float32([3]), 1, 1, 2, 1, 1e-9)",
        "(array([[[2., 4.]]], dtype=float32), array([[4.]], dtype=float32), "
        "array([[1.]], dtype=float32))",
    ),
    seealso=("group_norm", "group_norm_silu"),
    accuracy=ROW_ACCURACY,
    gradient={
        "input, weight, bias": "aten.native_group_norm_backward(grad.contiguous(), input.contiguous(), mean, rstd, weight, N, C, HxW, group, needed)"
    },
    keeps_channels_last=True,
)

group_norm = Operator(
    name="group_norm",
    summary="Group norm: channels in groups, each with mean 0 and variance 1.",
    expression=_GROUP_NORM,
    notes=_PARAMETERS,
    inputs=("input", "weight", "bias"),
    optional=("weight", "bias"),
    sample_specs={**_GROUPED, "num_groups": 1},
    attributes=(_number("num_groups", "Number of groups of channels."), _POSITIVE_EPS),
    parameters=("input", "num_groups", "weight", "bias", "eps"),
    entries=(),
    rules=(
        *require("input: FLOATING"),
        *[same_dtype(role, "input") for role in ("weight", "bias", "out")],
        _above_zero("num_groups"),
        _positive("eps"),
        rank_from("input", 2),
        _groups_divide("num_groups", lambda call: call.shape("input")[1]),
        *require("out: shape of input"),
        has_channels("weight"),
        has_channels("bias"),
    ),
    lower=_lower_group_norm,
    example=(
        "group_norm(np.float32([[[3, 5]]]), 1, eps=1e-9)",
        "array([[[-1.,  1.]]], dtype=float32)",
    ),
    seealso=("native_group_norm",),
    accuracy=ROW_ACCURACY,
    differentiated_as="ops.native_group_norm(input, weight, bias, *input.shape[:2], input.shape[2:].numel(), num_groups, eps)[0]",
    keeps_channels_last=True,
    chunking="channels",
)

group_norm_silu = Operator(
    name="group_norm_silu",
    summary="Group norm, then SiLU, with the mean and the inverse deviation of each group.",
    expression=f"silu({_GROUP_NORM.partition(',')[0]}), rstd = 1/√(var + eps), silu(y) = y/(1 + exp(-y))",
    notes=(
        f"{_PARAMETERS} SiLU is applied to the norm before rounding. Mean and rstd have the dtype "
        f"of "
        "`input`, and the shape (N, group)."
    ),
    inputs=("input", "weight", "bias"),
    outputs=("out", "mean", "rstd"),
    optional=("weight", "bias"),
    sample_specs={**_GROUPED, **_ONE_GROUP, "group": 1},
    attributes=(
        _number("group", "Number of groups of channels."),
        _POSITIVE_EPS,
        argument("activate_silu", True, "bool", "Whether to apply SiLU at the end."),
    ),
    entries=(
        entry(
            "aclnnGroupNormSilu",
            "self=input gamma=weight:in? beta=bias:in? group:int eps:float out:out "
            "meanOut=mean:out "
            "rstdOut=rstd:out",
            activate_silu=True,
        ),
        entry(
            "aclnnGroupNormSiluV2",
            "self=input gamma=weight:in? beta=bias:in? group:int eps:float activateSilu:bool "
            "out:out "
            "meanOut=mean:out rstdOut=rstd:out",
        ),
    ),
    rules=(
        *require("input: FLOATING; weight, bias: FLOAT or dtype of input; bias: dtype of weight"),
        *require("out: dtype of input"),
        *_STATISTICS,
        _above_zero("group"),
        _positive("eps"),
        rank_from("input", 2),
        _groups_divide("group", lambda call: call.shape("input")[1]),
        *require("out: shape of input"),
        *_STATISTICS_SHAPES,
        has_channels("weight"),
        has_channels("bias"),
    ),
    lower=_lower_group_norm,
    example=(
        "group_norm_silu(np.float32([[[3, 5]]]), None, None, 1, 1e-9)",
        "(array([[[-0.26894143,  0.7310586 ]]], dtype=float32), array([[4.]], dtype=float32), "
        "array([[1.]], dtype=float32))",
    ),
    seealso=("native_group_norm", "silu"),
    accuracy=ROW_ACCURACY,
    gradient={
        "input, weight, bias": "gradients_of_group_norm_silu(grad, input, weight, bias, mean, rstd, group, eps, activate_silu, needed)"
    },
    chunking="channels",
)


# --- Batch norm, as models are run ----------------------------------------------------------------


def _infer_all_of_batch_norm(call: Call) -> Inferred:
    """Results that training would save are left as they are, or empty."""
    nothing = {role: (call.dtype("running_mean"), (0,)) for role in ("save_mean", "save_invstd")}
    absent = {role: made for role, made in nothing.items() if role not in call.tensors}
    return {**like_input(call), **absent}


def _lower_batch_norm(lowering: Lowering) -> Mapping[str, int]:
    batch, channels, *rest = lowering.call.shape("input")
    one = (1, 1, channels, 1)
    mean, variance = (
        lowering.dense(lowering.reshaped(role, one), _DOUBLE)
        for role in ("running_mean", "running_var")
    )
    eps = lowering.number("eps", "exact")
    variance = lowering.point("adds", (variance,), _DOUBLE, one, params=(eps, 1.0))
    rstd = lowering.point("rsqrt", (variance,), _DOUBLE, one)
    shape = (batch, 1, channels, math.prod(rest))
    return {"out": of_channels(lowering, "channel_norm", mean, rstd, shape)}


@rule("`training` is false")
def _not_training(call: Call) -> str | None:
    if not call.switches["training"]:
        return None
    return f"{call.names['training']} is true, but statistics of batches are not computed"


@rule("`{role}` has an element for each channel, or none", "{role}", "input")
def channels_or_none(call: Call, role: str) -> str | None:
    channels = call.shape("input")[1:2]
    if role not in call.tensors or call.shape(role) in (channels, (0,)):
        return None
    return f"{call.shaped(role)}, must have {channels} or (0,)"


_TRAINING = (
    argument("training", False, "bool", "Must be false."),
    argument("momentum", 0.1, "float", "Only training uses it."),
    _EPS,
)
CHANNEL_ROLES = ("weight", "bias", "running_mean", "running_var")
_BATCH_NORM = "(x - running_mean)/√(running_var + eps)·weight + bias, for each channel"
_BATCH_NOTES = f"{_PARAMETERS} Running statistics are used as they are: batch norm for inference."
_BATCH_RULES = (
    *require("input: FLOATING"),
    *[dtype_like_or(role, "input") for role in CHANNEL_ROLES],
    *require("out: dtype of input"),
    rank_from("input", 2),
    *require("out: shape of input"),
    *[has_channels(role) for role in CHANNEL_ROLES],
    _not_training(),
)
CHANNELS = {"input": {"shape": (1, 2)}} | {role: {"shape": (2,)} for role in CHANNEL_ROLES}

native_batch_norm = Operator(
    name="native_batch_norm",
    summary="Batch norm for inference, with the additional results of training.",
    expression=_BATCH_NORM,
    notes=f"{_BATCH_NOTES} save_mean and save_invstd are empty, or left as they are.",
    inputs=("input", "weight", "bias", "running_mean", "running_var"),
    outputs=("out", "save_mean", "save_invstd"),
    optional=("weight", "bias", "save_mean", "save_invstd"),
    sample_specs=CHANNELS,
    attributes=_TRAINING,
    entries=(),
    rules=(
        *_BATCH_RULES,
        *require("save_mean, save_invstd: at most 8 dims"),
        *require("save_mean, save_invstd: FLOAT or dtype of running_mean"),
        channels_or_none("save_mean"),
        channels_or_none("save_invstd"),
    ),
    infer=_infer_all_of_batch_norm,
    lower=_lower_batch_norm,
    example=(
        "native_batch_norm(np.float32([[[3, 5]]]), None, None, np.float32([1]), np.float32([4]), "
        "eps=0.0)",
        "(array([[[1., 2.]]], dtype=float32), array([], dtype=float32), array([], dtype=float32))",
    ),
    seealso=("batch_norm",),
    accuracy=ROW_ACCURACY,
    gradient={
        "input, weight, bias": "aten.native_batch_norm_backward(grad, input, weight, running_mean, running_var, None, None, False, eps, needed)"
    },
    keeps_channels_last=True,
)

batch_norm = Operator(
    name="batch_norm",
    summary="Batch norm for inference: channels by their running statistics.",
    expression=_BATCH_NORM,
    notes=_BATCH_NOTES,
    inputs=("input", "running_mean", "running_var", "weight", "bias"),
    optional=("weight", "bias"),
    sample_specs=CHANNELS,
    attributes=_TRAINING,
    entries=(),
    rules=_BATCH_RULES,
    infer=like_input,
    lower=_lower_batch_norm,
    example=(
        "batch_norm(np.float32([[[3, 5]]]), np.float32([1]), np.float32([4]), eps=0.0)",
        "array([[[1., 2.]]], dtype=float32)",
    ),
    seealso=("native_batch_norm", "group_norm"),
    accuracy=ROW_ACCURACY,
    differentiated_as="native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]",
    keeps_channels_last=True,
    chunking="channels_alone",
)
