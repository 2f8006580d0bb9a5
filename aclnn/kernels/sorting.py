"""Sorts, the largest elements, and what sampling keeps."""

from __future__ import annotations

from .record import Record, opaque

_SORT = """
    descending
    present, axis = attr("present", ()), attr("axis") % len(x)
    lines, n, k = lines_of(x, axis), x[axis], values[axis]
    """

RECORDS: tuple[Record, ...] = (
    opaque(
        "sort",
        "x",
        outputs="values indices",
        body="sorting",
        factory="sorting_kernels:sort_kernel",
        scratch=True,
        arguments=_SORT,
        onnx="TopK(x, axis=axis)",
    ),
    opaque(
        "topk",
        "x",
        outputs="values indices",
        body="sorting",
        factory="sorting_kernels:sort_kernel",
        scratch=True,
        arguments=_SORT,
        onnx="TopK(x, axis=axis)",
    ),
    opaque(
        "top_k_top_p",
        "x p k",
        outputs="result",
        body="sorting",
        factory="sorting_kernels:sample_kernel",
        scratch=True,
        arguments="present = attr('present', ()); lines, n = size_of(x[:-1]), x[-1]",
        onnx=(),
    ),
)
