"""Norms of rows, their statistics, and gradients."""

from __future__ import annotations

from ..record import OnnxBody, Operand, Record, row

_X, _Y = Operand("x", "input"), Operand("y", "out")
_GRAD, _SECOND_X, _DX = Operand("grad", "input"), Operand("x", "input", 1), Operand("dx", "out")
_MEAN = Operand("mean", "result", 0, optional=True, statistic=True)
_RSTD = Operand("rstd", "result", 1, optional=True, statistic=True)
_DEVIATIONS = (
    "mean = ReduceMean(x, axes); d = x - mean; "
    "rstd = Reciprocal(Sqrt(ReduceMean(d * d, axes) + eps))"
)
_RMS = "rstd = Reciprocal(Sqrt(ReduceMean(x * x, axes) + eps))"

RECORDS: tuple[Record, ...] = (
    row(
        "moments",
        [_X],
        [
            Operand("mean", "result", 0, statistic=True),
            Operand("rstd", "result", 1, statistic=True),
        ],
        "eps",
        reference="layer_norm",
        body="rows.norm",
        cost=0.5,
        onnx=_DEVIATIONS,
    ),
    row(
        "layer_norm",
        [
            _X,
            Operand("weight", "column", 0, optional=True),
            Operand("bias", "column", 1, optional=True),
        ],
        [_Y, _MEAN, _RSTD],
        "eps",
        body="rows.norm",
        cost=0.7,
        onnx=(
            OnnxBody(
                "y, mean, rstd = LayerNormalization(x, weight, bias, axis=axis, epsilon=eps)",
                when="dtype == 'float32'",
                flat=("weight", "bias"),
            ),
            OnnxBody(f"{_DEVIATIONS}; y = d * rstd * weight + bias"),
            OnnxBody(
                "y, mean, rstd = LayerNormalization(x, weight, axis=axis, epsilon=eps)",
                when="dtype == 'float32'",
                takes="x weight",
                flat=("weight",),
            ),
            OnnxBody(f"{_DEVIATIONS}; y = d * rstd * weight", takes="x weight"),
            OnnxBody(f"{_DEVIATIONS}; y = d * rstd + bias", takes="x bias"),
            OnnxBody(f"{_DEVIATIONS}; y = d * rstd", takes="x"),
        ),
    ),
    row(
        "layer_norm_backward_input",
        [
            _GRAD,
            _SECOND_X,
            Operand("mean", "given", 0),
            Operand("rstd", "given", 1),
            Operand("weight", "column", 0, optional=True),
        ],
        [_DX],
        body="rows.norm",
        cost=0.9,
        onnx=(
            OnnxBody(
                "d = grad * weight; h = (x - mean) * rstd; "
                "rstd * (d - ReduceMean(d, axes) - h * ReduceMean(d * h, axes))"
            ),
            OnnxBody(
                "h = (x - mean) * rstd; "
                "rstd * (grad - ReduceMean(grad, axes) - h * ReduceMean(grad * h, axes))",
                takes="grad x mean rstd",
            ),
        ),
    ),
    row(
        # Along the rows of the norm: the columns of its tile are these rows.
        "layer_norm_backward_params",
        [
            _GRAD,
            Operand("x", "input", 1, needed_by="dweight"),
            Operand("mean", "column", 0, needed_by="dweight"),
            Operand("rstd", "column", 1, needed_by="dweight"),
        ],
        [
            Operand("dweight", "result", 0, optional=True),
            Operand("dbias", "result", 1, optional=True),
        ],
        reference="norm_parameters",
        body="rows.norm",
        cost=0.6,
        onnx=(
            OnnxBody(
                "dweight = ReduceSum(grad * (x - mean) * rstd, axes); dbias = ReduceSum(grad, axes)",
                when="{'dweight', 'dbias'} <= present",
            ),
            OnnxBody("ReduceSum(grad * (x - mean) * rstd, axes)", when="'dweight' in present"),
            OnnxBody("ReduceSum(grad, axes)", takes="grad"),
        ),
    ),
    row(
        "rms_norm",
        [_X, Operand("gamma", "column", 0, optional=True)],
        [_Y, Operand("rstd", "result", 0, optional=True, statistic=True)],
        "eps",
        body="rows.norm",
        cost=0.5,
        onnx=(
            OnnxBody(f"{_RMS}; y = x * rstd * gamma"),
            OnnxBody(f"{_RMS}; y = x * rstd", takes="x"),
        ),
    ),
    row(
        "rms_norm_backward_input",
        [
            _GRAD,
            _SECOND_X,
            Operand("rstd", "given", 1),
            Operand("gamma", "column", 0, optional=True),
        ],
        [_DX],
        body="rows.norm",
        cost=0.9,
        onnx=(
            OnnxBody("d = grad * gamma; rstd * (d - x * rstd * rstd * ReduceMean(d * x, axes))"),
            OnnxBody(
                "rstd * (grad - x * rstd * rstd * ReduceMean(grad * x, axes))", takes="grad x rstd"
            ),
        ),
    ),
    row(
        "rms_norm_backward_gamma",
        [_GRAD, _SECOND_X, Operand("rstd", "column", 1)],
        [Operand("dgamma", "result", 0)],
        reference="norm_parameters",
        body="rows.norm",
        cost=0.6,
        onnx="ReduceSum(grad * x * rstd, axes)",
    ),
)
