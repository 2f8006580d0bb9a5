"""Convolutions."""

from __future__ import annotations

from ..record import Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "convolution",
        "input weight bias",
        body="convolutions",
        factory="convolution_kernels:convolution_kernel",
        arguments="""
            multiply, own = isa.product_kernels().multiply_floats_at(), attr("reads_itself", len(inputs))
            shapes, strides = (input, attr("taps"), result), strides_of(views)
            stride, padding, dilation, groups, transposed
            within = attr("within", False)
            end = steps and steps.end(isa.convolution_kernels().ends)
            steps = steps.kernels() if steps and end is None else None
            """,
        scratch=True,
        onnx=(),
    ),
    opaque(
        "convolution_slopes",
        "grad input",
        body="convolutions",
        factory="convolution_kernels:slopes_kernel",
        arguments="""
            multiply = isa.product_kernels().multiply_floats_at()
            shapes, rows = (attr("positions"), attr("taps"), input), grad[1]
            stride, padding, dilation, groups
            """,
        scratch=True,
        onnx=(),
    ),
)
