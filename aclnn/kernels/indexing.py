"""Writing and reading by indices, and what makes them."""

from __future__ import annotations

from .record import Record, opaque

_ONE = "result:whole"
_AND_SHAPE = "result:whole shape:whole"

RECORDS: tuple[Record, ...] = tuple(
    [
        opaque(
            name,
            inputs,
            outputs=outputs,
            body="indexing",
            cost=0.0,  # by its sizes
            maker="aclnn.compiler.indexing",
            onnx=(),
        )
        for name, inputs, outputs in (
            ("scatter_along", "base:whole index:whole source:whole", _ONE),
            ("put_at", "base:whole values:whole index:whole", _ONE),
            ("take_at", "table:whole index:whole", _ONE),
            ("one_hot_lines", "index:whole on:whole off:whole", _ONE),
            ("spread_counts", "counts:whole", _ONE),
            ("ramp", "", _ONE),
            ("true_places", "x:whole", _AND_SHAPE),
            ("masked_elements", "x:whole mask:whole", _AND_SHAPE),
            ("solve_triangle", "right:whole matrix:whole", _ONE),
        )
    ]
)
