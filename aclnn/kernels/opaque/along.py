"""Running sums, maxima and their places along an axis."""

from __future__ import annotations

from ..record import Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "cumsum", "x:whole", body="opaque.along", cost=1.0, chunks="lines", loops="running_sums",
        onnx="CumSum(x, axes)",
    ),
    # The result has one element along the axis.
    opaque(
        "most", "x:whole", body="opaque.along", cost=1.0, chunks="lines",
        onnx="ReduceMax(x, axes)",
    ),
    opaque(
        "place", "x:whole", outputs="result:index", body="opaque.along", cost=1.0, chunks="lines",
        onnx="ArgMax(x, axis=axis)",
    ),
)  # fmt: skip
