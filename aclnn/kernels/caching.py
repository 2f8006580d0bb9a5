"""Rows of tokens that go into caches, and come out of them."""

from __future__ import annotations

from .record import Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "scatter_rows",
        "cache:whole rows:whole places:whole",
        outputs="result:whole",
        body="caches",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_scatter",
        onnx=(),
    ),
    opaque(
        "gather_pages",
        "rows:whole cache:whole table:whole lengths:whole first:whole",
        outputs="result:whole",
        body="caches",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_gather",
        onnx=(),
    ),
)
