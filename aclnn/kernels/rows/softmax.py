"""Softmax, its logarithm, and gradients."""

from __future__ import annotations

from ..record import Operand, Record, row

_X, _Y = Operand("x", "input"), Operand("y", "out")
_GRAD, _OUTPUT, _DX = Operand("grad", "input"), Operand("output", "input", 1), Operand("dx", "out")

RECORDS: tuple[Record, ...] = (
    row(
        "softmax", [_X], [_Y], body="rows.softmax", cost=1.0, widened=True,
        onnx="Softmax(x, axis=axis)",
    ),
    row(
        "log_softmax", [_X], [_Y], body="rows.softmax", cost=1.0, widened=True,
        onnx="LogSoftmax(x, axis=axis)",
    ),
    row(
        "softmax_backward", [_GRAD, _OUTPUT], [_DX], body="rows.softmax", cost=0.5, widened=True,
        onnx="output * (grad - ReduceSum(grad * output, axes))",
    ),
    row(
        "log_softmax_backward", [_GRAD, _OUTPUT], [_DX], body="rows.softmax", cost=0.9, widened=True,
        onnx="grad - Exp(output) * ReduceSum(grad, axes)",
    ),
)  # fmt: skip
