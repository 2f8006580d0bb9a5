"""Losses of classes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    Call,
    Rule,
    answering,
    castable,
    has_shape,
    if_given,
    of_cann,
    rule,
    same_dtype,
    switch_among,
)
from aclnn.operators.declaration import Attribute, Operator, argument, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.sizes import PLANNING, has_rank, number, size_is
from aclnn.operators.words import require, specs

Shape = tuple[int, ...]
Inferred = Mapping[str, tuple[aclDataType, Shape]]

_SINGLE, _TRUTH, _LONG = aclDataType.ACL_FLOAT, aclDataType.ACL_BOOL, aclDataType.ACL_INT64
_ONE_ROW = {"shape": (1, 1), "strides": (1, 1)}


def _losses_shape(call: Call) -> tuple[int, ...]:
    return call.shape("input")[:1]


def _chosen(lowering: Lowering, condition: int, value: int, other: int) -> int:
    """Elements of one float32 value where a condition holds, of another elsewhere."""
    shape = lowering.builder.value(value).shape
    return lowering.point("where", [condition, value, other], _SINGLE, shape, reads="float32")


def _lower_probabilities(lowering: Lowering) -> Mapping[str, int]:
    """In float32; a class that has no probability adds nothing, even where its logarithm is -Inf."""
    call, builder = lowering.call, lowering.builder
    shape, made = call.shape("input"), {}
    if 0 in shape:
        return {
            role: lowering.filled(0, dtype, own) for role, (dtype, own) in lowering.results.items()
        }
    value, target = lowering.dense("input"), lowering.dense("target", _SINGLE)
    if lowering.wants("out"):
        dtype, losses = lowering.results["out"]
        (logs,) = lowering.rows("log_softmax", [value], [(_SINGLE, shape)], -1)
        weighted = lowering.point("mul", [target, logs], _SINGLE, shape)
        counted = builder.cast(target, graph_dtype(_TRUTH))
        terms = _chosen(lowering, counted, weighted, lowering.filled(0, _SINGLE, shape))
        (total,) = lowering.rows("sum", [terms], [(_SINGLE, (shape[0], 1))], -1)
        nothing = lowering.filled(0, _SINGLE, losses)
        operands = [nothing, lowering.reshaped(total, losses)]
        loss = lowering.point("sub", operands, _SINGLE, losses, params=(1.0,))
        made["out"] = builder.cast(loss, graph_dtype(dtype))
    if lowering.wants("backprop"):
        dtype, _ = lowering.results["backprop"]
        (chances,) = lowering.rows("softmax", [value], [(_SINGLE, shape)], -1)
        difference = lowering.point("sub", [chances, target], _SINGLE, shape, params=(1.0,))
        made["backprop"] = builder.cast(difference, graph_dtype(dtype))
    return made


softmax_cross_entropy_with_logits = Operator(
    name="softmax_cross_entropy_with_logits",
    summary="Cross entropy of rows of logits and of probabilities, and its gradient.",
    expression="out = -Σ target·log_softmax(input), backprop = softmax(input) - target, of each row",
    notes=(
        "`backprop` is the gradient of the loss for probabilities that add up to 1. A probability of 0 adds "
        "nothing to the loss, whatever the logit."
    ),
    inputs=("input", "target"),
    outputs=("out", "backprop"),
    sample_specs=specs("input, target: [1,1]"),
    entries=(
        entry(
            "aclnnSoftmaxCrossEntropyWithLogits",
            "features=input labels=target loss=out:out backprop=backprop:out",
        ),
    ),
    rules=(
        *require("input, target, out, backprop: FLOATING; out, backprop: dtype of input"),
        *require("input, target, out, backprop: at most 8 dims; input, target: 2 dims"),
        *require("target: shape of input"),
        has_shape("out", _losses_shape, "an element for each row of `input`"),
        *require("backprop: shape of input; input: if empty ends"),
    ),
    lower=_lower_probabilities,
    example=(
        "softmax_cross_entropy_with_logits(np.float32([[0, 0]]), np.float32([[1, 0]]))",
        "(array([0.6931472], dtype=float32), array([[-0.5,  0.5]], dtype=float32))",
    ),
    accuracy=(
        "Computed in float32: losses of probabilities are within 3 ULP; differences have the error of softmax "
        "and one more rounding. Half precision is rounded once more."
    ),
    seealso=("log_softmax", "softmax"),
    gradient={
        "input": "grad.unsqueeze(1) * (aten.softmax(input, 1) * target.sum(1, True) - target)",
        "target": "-grad.unsqueeze(1) * aten.log_softmax(input, 1)",
    },
)


# --- Losses of the class that is right ------------------------------------------------------------

_REDUCTIONS = ("none", "mean", "sum")
_RANGE = (
    "A target that is no class and not `ignore_index` ends the call with the status 161002 when it runs, and "
    "nothing is written."
)
_OF_CLASSES = {
    "input": _ONE_ROW,
    "target": {"dtype": _LONG, "shape": (1,), "strides": (1,)},
    "weight": {"shape": (1,), "strides": (1,)},
}

_OF_PIXELS = _OF_CLASSES | {
    "input": {"shape": (1, 1, 1, 1), "strides": (1, 1, 1, 1)},
    "target": {"dtype": _LONG, "shape": (1, 1, 1), "strides": (1, 1, 1)},
}


def _class_axis(call: Call) -> int:
    return min(1, len(call.shape("input")) - 1)


def _classes(call: Call) -> int:
    return call.shape("input")[_class_axis(call)]


def _targets(call: Call) -> Shape:
    """The shape of the input without that of classes."""
    shape, axis = call.shape("input"), _class_axis(call)
    return (*shape[:axis], *shape[axis + 1 :])


def _reduction(call: Call) -> object:
    """The mean where it is null."""
    return call.switches["reduction"] or "mean"


def _one_element(call: Call, role: str) -> Shape:
    """The shape of what has a single element: as the output has it, or without dimensions."""
    if role in call.tensors and call.shape(role) == (1,):
        return (1,)
    return ()


def _loss_shape(call: Call) -> Shape:
    return _targets(call) if _reduction(call) == "none" else _one_element(call, "out")


class _Picked(NamedTuple):
    """Losses of targets in float32, with their weights, and whether each counts."""

    counts: int
    weights: int
    losses: int


def _picked(lowering: Lowering, chances: int) -> _Picked:
    """The losses of targets, by logarithms of probabilities; one that is ignored has the loss 0."""
    call, shape = lowering.call, _targets(lowering.call)
    own, axis = call.shape("input"), _class_axis(lowering.call)
    skipped = number(call, "ignore_index")
    value = lowering.value("target") if shape else lowering.reshaped("target", (1,))
    places = lowering.opaque(
        "class_indices",
        [value],
        _LONG,
        shape or (1,),
        classes=_classes(call),
        ignored=skipped,
    )
    target = lowering.dense("target", _LONG)
    ignored = lowering.filled(skipped, _LONG, shape)
    counts = lowering.point("ne", [target, ignored], _TRUTH, shape, reads="int64")
    lines = (*own[:axis], 1, *own[axis + 1 :])
    index = lowering.reshaped(places, lines)
    chosen = lowering.taken("gather", [chances, index], _SINGLE, lines, axis=axis - len(own))
    losses = lowering.point("neg", [lowering.reshaped(chosen, shape)], _SINGLE, shape)
    nothing = lowering.filled(0, _SINGLE, shape)
    weights = lowering.filled(1, _SINGLE, shape)
    if lowering.has("weight"):
        table = lowering.dense("weight", _SINGLE)
        flat = lowering.reshaped(places, (math.prod(shape),))
        of_each = lowering.taken("gather", [table, flat], _SINGLE, (math.prod(shape),), axis=-1)
        weights = lowering.reshaped(of_each, shape)
        losses = lowering.point("mul", [losses, weights], _SINGLE, shape)
    return _Picked(
        counts,
        _chosen(lowering, counts, weights, nothing),
        _chosen(lowering, counts, losses, nothing),
    )


def _total(lowering: Lowering, value: int) -> int:
    """The sum of all elements, of shape (1, 1)."""
    size = math.prod(lowering.builder.value(value).shape)
    line = lowering.reshaped(value, (1, size))
    (total,) = lowering.rows("sum", [line], [(_SINGLE, (1, 1))], -1)
    return total


def _reduced(lowering: Lowering, losses: int, weights: int) -> int:
    """Losses as they are, their sum, or their mean by weights, in the dtype of the result."""
    call, (dtype, shape) = lowering.call, lowering.results["out"]
    made = losses
    if _reduction(call) != "none":
        made = _total(lowering, losses)
        if _reduction(call) == "mean":
            total = _total(lowering, weights)
            made = lowering.point("div", [made, total], _SINGLE, (1, 1))
    return lowering.reshaped(lowering.builder.cast(made, graph_dtype(dtype)), shape)


def _of_nothing(lowering: Lowering) -> Mapping[str, int]:
    """Results without targets: the mean of no losses is none."""
    number = math.nan if _reduction(lowering.call) == "mean" else 0
    return {
        role: lowering.filled(number if role == "out" else 0, dtype, shape)
        for role, (dtype, shape) in lowering.results.items()
    }


def _lower_nll(lowering: Lowering) -> Mapping[str, int]:
    if 0 in _targets(lowering.call):
        return _of_nothing(lowering)
    _, weights, losses = _picked(lowering, lowering.dense("input", _SINGLE))
    made = {"out": _reduced(lowering, losses, weights)}
    if lowering.wants("total_weight"):
        dtype, shape = lowering.results["total_weight"]
        total = lowering.builder.cast(_total(lowering, weights), graph_dtype(dtype))
        made["total_weight"] = lowering.reshaped(total, shape)
    return made


def _infer_nll(call: Call) -> Inferred:
    """PyTorch's total is 0 where there is no reduction; CANN's is not written then."""
    dtype = call.dtype("input")
    made = {"out": (dtype, _loss_shape(call))}
    if _reduction(call) != "none":
        made["total_weight"] = (dtype, _one_element(call, "total_weight"))
    return made


@rule("`input` has classes")
def _has_classes(call: Call) -> str | None:
    if _classes(call) or 0 in _targets(call):
        return None
    return f"{call.shaped('input')}, which has no classes"


def _loss_fits() -> Rule:
    return size_is("out", _loss_shape, "the shape of `target`, or a single element")


def _nll_rules(ranks: tuple[int, int], *outputs: str) -> tuple[Rule, ...]:
    return (
        *require("weight: dtype of input"),
        *[castable(("input",), role) for role in ("out", *outputs)],
        *require("input: FLOATING; target: INT32 INT64 UINT8"),
        switch_among("reduction", _REDUCTIONS),
        of_cann(has_rank("input", *ranks)),
        *require("input: 1 to 8 dims; input: at most 8 dims"),
        size_is("target", _targets, "the shape of `input` without that of classes"),
        size_is("weight", lambda call: (_classes(call),), "an element for each class"),
        _has_classes(),
        _loss_fits(),
        *[
            size_is(
                role,
                lambda call: _one_element(call, "total_weight"),
                "the shape of a single element",
            )
            for role in outputs
        ],
    )


_REDUCTION = argument(
    "reduction", "mean", "str", "What becomes of the losses.", choices=_REDUCTIONS
)
_IGNORED = argument("ignore_index", -100, "int", "The target that does not count.")
_NLL_GRADIENT = {
    "input": "gradient_of_nll(grad, input, target, weight, reduction, ignore_index)",
    "weight": "gradient_of_class_weights(grad, input, target, weight, out, reduction, ignore_index, 0)",
}
_NLL_ACCURACY = "Computed in float32: sums are rounded once, products and quotients once more."
_NLL: dict[str, Any] = {
    "inputs": ("input", "target", "weight"),
    "attributes": (_REDUCTION, _IGNORED),
    "lower": _lower_nll,
    "accuracy": _NLL_ACCURACY,
}
_NLL_SUM = "out = -weight[target]·input[target], of each target, their sum, or that divided by the sum of weights"


def _nll_forward(name: str, cann: str, ranks: tuple[int, int], **more: Any) -> Operator:
    return Operator(
        name=name,
        expression=f"{_NLL_SUM}; total_weight = Σ weight[target]",
        notes=(
            f"Without reduction there is no `total_weight`. {_RANGE} One that is ignored has no loss and no weight."
        ),
        outputs=("out", "total_weight"),
        optional=("total_weight",),
        entries=(
            entry(
                f"aclnn{cann}",
                "self=input target weight reduction:int ignoreIndex=ignore_index:int out:out "
                "totalWeightOut=total_weight:out",
            ),
        ),
        rules=_nll_rules(ranks, "total_weight"),
        infer=_infer_nll,
        sample_specs=_OF_CLASSES if ranks[0] < 4 else _OF_PIXELS,
        seealso=("nll_loss",),
        **_NLL,
        **more,
    )


nll_loss_forward = _nll_forward(
    "nll_loss_forward",
    "NLLLoss",
    (1, 2),
    summary="Negative log likelihood of the classes that are right, and the sum of their weights.",
    parameters=("input", "target", "weight", "reduction", "ignore_index"),
    example=(
        "nll_loss_forward(np.float32([[-1, -2], [-3, -4]]), np.int64([0, 1]), np.float32([1, 3]))",
        "(array(3.25, dtype=float32), array(4., dtype=float32))",
    ),
    gradient=_NLL_GRADIENT,
)
nll_loss2d_forward = _nll_forward(
    "nll_loss2d_forward",
    "NLLLoss2d",
    (4, 4),
    functional=False,
    form_of="nll_loss_forward",
    summary="Negative log likelihood of the classes that are right of each pixel.",
    example=(
        "nll_loss2d_forward(np.float32([[[[-1]], [[-2]]]]), np.int64([[[1]]]), np.float32([1, 3]))",
        "(array(2., dtype=float32), array(3., dtype=float32))",
    ),
)
nll_loss = Operator(
    name="nll_loss",
    sample_specs=_OF_CLASSES,
    summary="Negative log likelihood of the classes that are right.",
    expression=_NLL_SUM,
    notes=f"{_RANGE} One that is ignored has no loss and no weight.",
    optional=("weight",),
    entries=(),
    rules=_nll_rules((1, 8)),
    infer=lambda call: {"out": (call.dtype("input"), _loss_shape(call))},
    example=(
        "nll_loss(np.float32([[-1, -2], [-3, -4]]), np.int64([0, 1]))",
        "array(2.5, dtype=float32)",
    ),
    seealso=("cross_entropy_loss", "log_softmax"),
    gradient=_NLL_GRADIENT,
    **_NLL,
)


# --- Cross entropy --------------------------------------------------------------------------------


def _smoothed(lowering: Lowering, logs: int, picked: _Picked) -> int:
    """Losses with a share of the mean over all classes."""
    call, own = lowering.call, lowering.call.shape("input")
    shape = (own[0],)
    if call.scalars["label_smoothing"].zero:
        return picked.losses
    terms = logs
    if lowering.has("weight"):
        table = lowering.dense("weight", _SINGLE, own)
        terms = lowering.point("mul", [logs, table], _SINGLE, own)
    (total,) = lowering.rows("sum", [terms], [(_SINGLE, (own[0], 1))], -1)
    mean = lowering.point(
        "muls", [lowering.reshaped(total, shape)], _SINGLE, shape, params=(-1.0 / own[1],)
    )
    nothing = lowering.filled(0, _SINGLE, shape)
    mean = _chosen(lowering, picked.counts, mean, nothing)
    # Interpolated: the loss of the class, moved toward the mean.
    share = lowering.number("label_smoothing")
    return lowering.point("lerps", [picked.losses, mean], _SINGLE, shape, params=(share,))


def _lower_cross_entropy(lowering: Lowering) -> Mapping[str, int]:
    call, builder = lowering.call, lowering.builder
    shape = call.shape("input")
    if 0 in shape:
        return _of_nothing(lowering)
    (logs,) = lowering.rows("log_softmax", [lowering.dense("input")], [(_SINGLE, shape)], -1)
    picked = _picked(lowering, logs)
    made = {"out": _reduced(lowering, _smoothed(lowering, logs, picked), picked.weights)}
    if lowering.wants("log_prob"):
        dtype, _ = lowering.results["log_prob"]
        made["log_prob"] = builder.cast(logs, graph_dtype(dtype))
    return made


@rule("`label_smoothing` is from 0 to 1")
def _smoothing_within(call: Call) -> str | None:
    """Rule that is known of numbers that plans depend on."""
    found = call.scalars["label_smoothing"]
    above = found.whole and not (found.zero or found.one)
    most = call.scalars.get("most_smoothing")
    if most is not None:
        above = most.below
    if not (found.negative or found.nan or above):
        return None
    return f"{call.names['label_smoothing']} is {found.text}, must be from 0 to 1"


_SMOOTHING = argument(
    "label_smoothing",
    0.0,
    "float",
    "The share of the mean over all classes, from 0 to 1.",
    facts=("zero", "one", "whole", "nan"),
)


def _cross_entropy_rules(*outputs: Rule) -> tuple[Rule, ...]:
    return (
        *require("input: FLOATING; target: INT32 INT64; weight: FLOAT; out: dtype of input"),
        *outputs,
        *answering(
            PLANNING,
            *require("input: 2 dims"),
            size_is("target", lambda call: call.shape("input")[:1], "an element for each row"),
            size_is("weight", lambda call: call.shape("input")[1:], "an element for each class"),
            if_given("reduction", switch_among("reduction", _REDUCTIONS)),
            _smoothing_within(),
            _has_classes(),
            _loss_fits(),
        ),
    )


_CROSS_ENTROPY_GRADIENT = {
    "input": "gradient_of_cross_entropy(grad, input, target, weight, reduction, ignore_index, label_smoothing)",
    "weight": "gradient_of_class_weights(grad, aten.log_softmax(input, 1), target, weight, out, reduction, ignore_index, label_smoothing)",
}
_UNREAD = ("zloss", "lse_for_zloss")
_CROSS_ENTROPY_LIKE = {**_OF_CLASSES, **specs("weight: FLOAT[1]")}
_CROSS_ENTROPY: dict[str, Any] = {
    "inputs": ("input", "target", "weight"),
    "sample_specs": _CROSS_ENTROPY_LIKE,
    "lower": _lower_cross_entropy,
    "accuracy": _NLL_ACCURACY,
}
_CROSS_ENTROPY_SUM = "out = -weight[target]·log_softmax(input)[target], of each row, their sum, or that divided by the sum of weights"

cross_entropy_loss = Operator(
    name="cross_entropy_loss",
    summary="Cross entropy of rows of logits and the classes that are right.",
    expression=_CROSS_ENTROPY_SUM,
    notes=(
        "With `label_smoothing` losses are moved toward the mean over all classes, by that share. "
        f"{_RANGE} One that is ignored has no loss and no weight."
    ),
    optional=("weight",),
    attributes=(_REDUCTION, _IGNORED, _SMOOTHING),
    entries=(),
    rules=_cross_entropy_rules(),
    infer=lambda call: {"out": (call.dtype("input"), _loss_shape(call))},
    example=(
        "cross_entropy_loss(np.float32([[0, 0], [9, 9]]), np.int64([0, 1]))",
        "array(0.6931472, dtype=float32)",
    ),
    seealso=("nll_loss", "softmax_cross_entropy_with_logits"),
    gradient=_CROSS_ENTROPY_GRADIENT,
    **_CROSS_ENTROPY,
)
cross_entropy_loss_forward = Operator(
    name="cross_entropy_loss_forward",
    summary="Cross entropy of rows of logits and the classes that are right, and log_softmax.",
    expression=f"{_CROSS_ENTROPY_SUM}; log_prob = log_softmax(input)",
    notes=f"Outputs of the z-loss are left as they are; C-shaped calls have to give them. {_RANGE}",
    inputs=("input", "target", "weight", *_UNREAD),
    sample_specs=_CROSS_ENTROPY_LIKE,
    lower=_lower_cross_entropy,
    accuracy=_NLL_ACCURACY,
    optional=("weight", *_UNREAD),
    parameters=("input", "target", "weight", *_UNREAD),
    gradient=_CROSS_ENTROPY_GRADIENT,
    unread=_UNREAD,
    outputs=("out", "log_prob"),
    attributes=(
        Attribute(
            "reduction",
            "mean",
            "str",
            doc="What becomes of the losses.",
            choices=_REDUCTIONS,
            nullable=True,
        ),
        _IGNORED,
        _SMOOTHING,
        Attribute("most_smoothing", 1.0, "float", doc="Bound of `label_smoothing`: 1.", facts=("below",)),
        Attribute("lse_square_scale", 0.0, "float", doc="Has no effect."),
        Attribute("return_zloss", False, "bool", doc="Has no effect."),
    ),
    entries=(
        entry(
            "aclnnCrossEntropyLoss",
            "input target weightOptional=weight:in? reductionOptional=reduction:str? "
            "ignoreIndex=ignore_index:int labelSmoothing=label_smoothing:float "
            "lseSquareScaleForZloss=lse_square_scale:float returnZloss=return_zloss:bool lossOut=out:out "
            "logProbOut=log_prob:out zlossOut=zloss lseForZlossOut=lse_for_zloss",
            most_smoothing=1.0,
        ),
    ),
    rules=_cross_entropy_rules(
        *[same_dtype(role, "input") for role in ("log_prob", *_UNREAD)],
        *answering(PLANNING, *require("log_prob: shape of input")),
    ),
    infer=lambda call: {
        "out": (call.dtype("input"), _loss_shape(call)),
        "log_prob": (call.dtype("input"), call.shape("input")),
    },
    example=(
        "cross_entropy_loss_forward(np.float32([[0, 0]]), np.int64([0]), None, np.float32([0]), np.float32([0]))",
        "(array(0.6931472, dtype=float32), array([[-0.6931472, -0.6931472]], dtype=float32))",
    ),
    seealso=("cross_entropy_loss",),
)  # fmt: skip
