"""Convolutions."""

from __future__ import annotations

from ..record import Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "convolution",
        "input weight bias",
        body="convolutions",
        maker="aclnn.compiler.convolutions:kernel_of",
        scratch=True,
        onnx=(),
    ),
    opaque(
        "convolution_slopes",
        "grad input",
        body="convolutions",
        maker="aclnn.compiler.convolutions:slopes_of",
        scratch=True,
        onnx=(),
    ),
)
