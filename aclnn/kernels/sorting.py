"""Sorts, the largest elements, and what sampling keeps."""

from __future__ import annotations

from .record import Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "sort",
        "x:whole",
        outputs="values:whole indices:whole",
        body="sorting",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_sort",
        scratch=True,
        onnx="TopK(x, axis=axis)",
    ),
    opaque(
        "topk",
        "x:whole",
        outputs="values:whole indices:whole",
        body="sorting",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_sort",
        scratch=True,
        onnx="TopK(x, axis=axis)",
    ),
    opaque(
        "top_k_top_p",
        "x:whole p:whole k:whole",
        outputs="result:whole",
        body="sorting",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_sample",
        scratch=True,
        onnx=(),
    ),
)
