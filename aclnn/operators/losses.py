"""Losses of classes."""

from __future__ import annotations

from collections.abc import Mapping

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import (
    FLOATING,
    Call,
    at_most_8_dims,
    dtype_among,
    ends_if_empty,
    has_shape,
    same_dtype,
    same_shape,
)
from aclnn.operators.declaration import Operator, entry
from aclnn.operators.lowering import Lowering, graph_dtype
from aclnn.operators.sizes import has_rank

_SINGLE, _TRUTH = aclDataType.ACL_FLOAT, aclDataType.ACL_BOOL
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
    given, target = lowering.dense("input"), lowering.dense("target", _SINGLE)
    if lowering.wants("out"):
        dtype, losses = lowering.results["out"]
        (logs,) = lowering.rows("log_softmax", [given], [(_SINGLE, shape)], -1)
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
        (chances,) = lowering.rows("softmax", [given], [(_SINGLE, shape)], -1)
        apart = lowering.point("sub", [chances, target], _SINGLE, shape, params=(1.0,))
        made["backprop"] = builder.cast(apart, graph_dtype(dtype))
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
    unlike={"input": _ONE_ROW, "target": _ONE_ROW},
    entries=(
        entry(
            "aclnnSoftmaxCrossEntropyWithLogits",
            "features=input labels=target loss=out:out backprop=backprop:out",
        ),
    ),
    rules=(
        dtype_among("input", FLOATING),
        dtype_among("target", FLOATING),
        dtype_among("out", FLOATING),
        dtype_among("backprop", FLOATING),
        same_dtype("out", "input"),
        same_dtype("backprop", "input"),
        at_most_8_dims("input", "target", "out", "backprop"),
        has_rank("input", 2),
        has_rank("target", 2),
        same_shape("target", "input"),
        has_shape("out", _losses_shape, "an element for each row of `input`"),
        same_shape("backprop", "input"),
        ends_if_empty("input"),
    ),
    infer=lambda call: {
        "out": (call.dtype("input"), _losses_shape(call)),
        "backprop": (call.dtype("input"), call.shape("input")),
    },
    lower=_lower_probabilities,
    example=(
        "softmax_cross_entropy_with_logits(np.float32([[0, 0]]), np.float32([[1, 0]]))",
        "(array([0.6931472], dtype=float32), array([[-0.5,  0.5]], dtype=float32))",
    ),
    accuracy=(
        "Computed in float32: losses of probabilities lie within 3 ULP; differences have the error of softmax "
        "and one more rounding. Half precision is rounded once more."
    ),
    seealso=("log_softmax", "softmax"),
    gradient={
        "input": "grad.unsqueeze(1) * (aten.softmax(input, 1) * target.sum(1, True) - target)",
        "target": "-grad.unsqueeze(1) * aten.log_softmax(input, 1)",
    },
)
