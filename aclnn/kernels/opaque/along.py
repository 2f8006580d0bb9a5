"""Running sums, maxima and their places along an axis."""

from __future__ import annotations

from ..record import OnnxBody, Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "cumsum", "x", body="opaque.along", cost=1.0, chunks="lines", loops="running_sums",
        onnx="CumSum(x, axes)",
    ),
    # The result has one element along the axis.
    opaque(
        "most", "x", body="opaque.along", cost=1.0, chunks="lines",
        onnx="ReduceMax(x, axes)",
    ),
    opaque(
        "place", "x", outputs="result:index", body="opaque.along", cost=1.0, chunks="lines",
        onnx="ArgMax(x, axis=axis)",
    ),
    opaque(
        "smallest", "x", body="opaque.along", cost=1.0, chunks="lines",
        onnx="ReduceMin(x, axes)",
    ),
    opaque(
        "smallest_place", "x", outputs="result:index", body="opaque.along", cost=1.0,
        chunks="lines", onnx="ArgMin(x, axis=axis)",
    ),
    opaque(
        "product_along", "x", body="opaque.along", cost=0.5, chunks="lines", loops="products",
        onnx="ReduceProd(x, axes)",
    ),
    opaque(
        "norm_along", "x", "p", body="opaque.along", cost=0.5, chunks="lines",
        loops="squares",
        onnx=(
            OnnxBody("ReduceL2(x, axes)", when="p == 2"),
            OnnxBody("ReduceL1(x, axes)", when="p == 1"),
            OnnxBody("ReduceMax(Abs(x), axes)", when="p > 2147483646"),
            OnnxBody("ReduceMin(Abs(x), axes)", when="p < -2147483646"),
            OnnxBody("ReduceSum(Abs(x) ** p, axes) ** (1 / p)", when="p != 0"),
            OnnxBody("ReduceSum(Where(x != 0, 1, 0), axes)"),
        ),
    ),
)  # fmt: skip
