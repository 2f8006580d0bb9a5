"""Softmax, log-softmax and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aclnn.acl.constants import aclDataType
from aclnn.operators.checks import Call, done_if_empty, ends_if_empty
from aclnn.operators.declaration import (
    GRADIENT_ACCURACY,
    REQUIRED,
    ROW_ACCURACY,
    Operator,
    argument,
    entry,
)
from aclnn.operators.lowering import Lowering
from aclnn.operators.words import require

_DIM = argument("dim", REQUIRED, "int", "The dimension whose elements belong together.")
_SPECIAL = (
    "A NaN or +Inf makes all elements along `dim` NaN, and so do elements that are all -Inf. "
    "A tensor without dimensions counts as one with a single element along one."
)
Inferred = Mapping[str, tuple[aclDataType, tuple[int, ...]]]


def _like_first(call: Call) -> Inferred:
    role = "grad_output" if "grad_output" in call.tensors else "input"
    return {"out": (call.dtype(role), call.shape(role))}


def _in_dtype_of_out(call: Call) -> Inferred:
    role = "out" if "out" in call.tensors else "input"
    return {"out": (call.dtype(role), call.shape("input"))}


def _along_dim(kernel: str, *roles: str) -> Callable[[Lowering], Mapping[str, int]]:
    """Lowering of an operator to a row-wise kernel that keeps the shape."""

    def lower(lowering: Lowering) -> Mapping[str, int]:
        dtype, shape = lowering.results["out"]
        rows = shape or (1,)
        axis = lowering.call.switches["dim"] % len(rows) - len(rows)  # type: ignore[operator]
        operands = [lowering.dense(lowering.reshaped(role, rows), dtype) for role in roles]
        (made,) = lowering.rows(kernel, operands, [(dtype, rows)], axis)
        return {"out": lowering.reshaped(made, shape)}

    return lower


softmax = Operator(
    name="softmax",
    summary="Softmax along a dimension.",
    expression="exp(x - max) / Σ exp(x - max), over the elements along dim",
    notes=f"{_SPECIAL} It is computed in the dtype of `input`, whatever that of `out`.",
    inputs=("input",),
    attributes=(_DIM,),
    entries=(entry("aclnnSoftmax", "self=input dim:int out:out"),),
    rules=(
        *require("input: if empty done; input, out: FLOATING_AND_DOUBLE; dim: axis of input"),
        *require("input, out: at most 8 dims; out: shape of input"),
    ),
    infer=_like_first,
    lower=_along_dim("softmax", "input"),
    example=(
        "softmax(np.float32([0, 0, 0, 0]), 0)",
        "array([0.25, 0.25, 0.25, 0.25], dtype=float32)",
    ),
    seealso=("softmax_backward", "log_softmax"),
    accuracy=ROW_ACCURACY,
    gradient={"input": "gradient_of_softmax(grad, out, dim)"},
    chunking="along_dim",
)

log_softmax = Operator(
    name="log_softmax",
    summary="Logarithm of softmax along a dimension.",
    expression="x - max - log Σ exp(x - max), over the elements along dim",
    notes=f"{_SPECIAL} `input` is cast to the dtype of `out` first, and computed in that.",
    inputs=("input",),
    attributes=(_DIM,),
    entries=(entry("aclnnLogSoftmax", "self=input dim:int out:out"),),
    rules=(
        *require("dim: axis of input; input, out: FLOATING_AND_DOUBLE; input, out: at most 8 dims"),
        *require("out: shape of input"),
    ),
    infer=_in_dtype_of_out,
    lower=_along_dim("log_softmax", "input"),
    example=(
        "log_softmax(np.float32([0, 0]), 0)",
        "array([-0.6931472, -0.6931472], dtype=float32)",
    ),
    seealso=("log_softmax_backward", "softmax"),
    accuracy=ROW_ACCURACY,
    gradient={"input": "gradient_of_log_softmax(grad, out, dim)"},
    chunking="along_dim",
)

softmax_backward = Operator(
    name="softmax_backward",
    summary="Gradient of softmax from its result.",
    expression="y·(g - Σ g·y), over the elements along dim",
    notes="PyTorch has it as torch._softmax_backward_data.",
    inputs=("grad_output", "output"),
    attributes=(_DIM,),
    entries=(entry("aclnnSoftmaxBackward", "gradOutput output dim:int out:out"),),
    rules=(
        done_if_empty("grad_output", "output", except_on=("Ascend950",)),
        *require("grad_output, output: FLOATING; output: dtype of grad_output"),
        *require("out: cast of grad_output; dim: axis of grad_output"),
        *require("grad_output, output, out: at most 8 dims; output, out: shape of grad_output"),
    ),
    lower=_along_dim("softmax_backward", "grad_output", "output"),
    accuracy=GRADIENT_ACCURACY,
    example=(
        "softmax_backward(np.float32([1, 0]), np.float32([0.5, 0.5]), 0)",
        "array([ 0.25, -0.25], dtype=float32)",
    ),
    seealso=("softmax",),
    gradient={
        "grad_output": "softmax_backward(grad, output, dim)",
        "output": "grad * (grad_output - sum(grad_output * output, dim, True)) - grad_output * sum(grad * output, dim, True)",
    },
    chunking="along_dim",
)

log_softmax_backward = Operator(
    name="log_softmax_backward",
    summary="Gradient of the logarithm of softmax from its result.",
    expression="g - exp(y)·Σ g, over the elements along dim",
    notes="PyTorch has it as torch._log_softmax_backward_data.",
    inputs=("grad_output", "output"),
    attributes=(_DIM,),
    entries=(entry("aclnnLogSoftmaxBackward", "gradOutput output dim:int out:out"),),
    rules=(
        ends_if_empty("grad_output", "output", except_on=("Ascend950",)),
        *require("grad_output, output: FLOATING; output: dtype of grad_output"),
        *require("out: cast of grad_output; grad_output, output, out: at most 8 dims"),
        *require("output, out: shape of grad_output; dim: axis of grad_output"),
    ),
    lower=_along_dim("log_softmax_backward", "grad_output", "output"),
    accuracy=GRADIENT_ACCURACY,
    example=(
        "log_softmax_backward(np.float32([1, 0]), np.float32([0, 0]), 0)",
        "array([ 0., -1.], dtype=float32)",
    ),
    seealso=("log_softmax",),
    gradient={
        "grad_output": "grad - sum(grad * exp(output), dim, True)",
        "output": "-grad * exp(output) * sum(grad_output, dim, True)",
    },
    chunking="along_dim",
)
