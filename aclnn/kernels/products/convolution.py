"""Convolutions."""

from __future__ import annotations

from ..record import Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "convolution",
        "input:whole weight:whole bias:whole",
        body="convolutions",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.convolutions:kernel_of",
        scratch=True,
        onnx=(),
    ),
    opaque(
        "convolution_slopes",
        "grad:whole input:whole",
        body="convolutions",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.convolutions:slopes_of",
        scratch=True,
        onnx=(),
    ),
)
