"""Writing and reading by indices, and what makes them."""

from __future__ import annotations

from .record import Record, opaque

RECORDS: tuple[Record, ...] = tuple(
    [
        opaque(
            name,
            inputs,
            outputs="result:whole",
            body="indexing",
            cost=0.0,  # by its sizes
            maker="aclnn.compiler.indexing",
            onnx=(),
        )
        for name, inputs in (
            ("scatter_along", "base:whole index:whole source:whole"),
            ("put_at", "base:whole values:whole index:whole"),
            ("take_at", "table:whole index:whole"),
            ("one_hot_lines", "index:whole on:whole off:whole"),
            ("spread_counts", "counts:whole"),
            ("ramp", ""),
            ("solve_triangle", "right:whole matrix:whole"),
        )
    ]
)
