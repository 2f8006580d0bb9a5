"""Triangles of matrices."""

from __future__ import annotations

from ..record import Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "tril", "x", body="opaque.triangle", cost=0.3, moves=True, chunks="rows",
        onnx="Trilu(x, diagonal, upper=0)",
    ),
    opaque(
        "triu", "x", body="opaque.triangle", cost=0.3, moves=True, chunks="rows",
        onnx="Trilu(x, diagonal)",
    ),
)  # fmt: skip
