"""Writing and reading by indices, and what makes them."""

from __future__ import annotations

from .record import OnnxBody, Record, opaque

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
            maker=f"aclnn.compiler.indexing:make_{maker}",
            scratch=maker in ("spread", "solve"),
            onnx=[OnnxBody(one) for one in onnx],
        )
        for name, maker, inputs, outputs, *onnx in (
            ("scatter_along", "scatter", "base:whole index:whole source:whole", _ONE),
            ("put_at", "put", "base:whole values:whole index:whole", _ONE),
            ("take_at", "take", "table:whole index:whole", _ONE),
            ("one_hot_lines", "one_hot", "index:whole on:whole off:whole", _ONE),
            (
                "class_indices",
                "classes",
                "target:whole",
                _ONE,
                "Where(target == ignored, 0, target)",
            ),
            ("spread_counts", "spread", "counts:whole", _ONE),
            ("ramp", "ramp", "", _ONE),
            ("true_places", "truth", "x:whole", _AND_SHAPE),
            ("masked_elements", "truth", "x:whole mask:whole", _AND_SHAPE),
            ("solve_triangle", "solve", "right:whole matrix:whole", _ONE),
        )
    ]
)
