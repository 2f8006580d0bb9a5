"""Gathers: elements by their places."""

from __future__ import annotations

from ..record import Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "gather",
        "table index:index",  # the index has the result's shape
        body="opaque.gather",
        cost=0.3,
        moves=True,
        chunks="outer",
        failures=((101, "an index is {detail}, must be from {first} to {last}"),),
        onnx="GatherElements(table, index, axis=axis)",
    ),
)
