"""Sums, means and maxima of rows."""

from __future__ import annotations

from ..record import Operand, Record, row

_X, _REDUCED = Operand("x", "input"), Operand("reduced", "result")

RECORDS: tuple[Record, ...] = (
    row("sum", [_X], [_REDUCED], body="rows.reduce", cost=0.3, sums_integers=True, onnx="ReduceSum(x, axes)"),
    row("mean", [_X], [_REDUCED], body="rows.reduce", cost=0.3, onnx="ReduceMean(x, axes)"),
    row("amax", [_X], [_REDUCED], body="rows.reduce", cost=0.15, onnx="ReduceMax(x, axes)"),
)  # fmt: skip
