"""Products of matrices, and of batches of them."""

from __future__ import annotations

from ..record import OnnxBody, Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "matmul",
        "a b c:addend",
        "alpha beta",
        body="products",
        factory="product_kernels:product_kernel",
        arguments="""
            batch_shape, m, n, k = result[:-2], result[-2], result[-1], a[-1]
            strides, extras = strides_of(views), len(inputs) - attr("reads_itself", len(inputs))
            scaled = len(attr("params", ())) > (steps.numbers if steps else 0)
            round_inputs_to_half = attr("round_inputs_to_half", False)
            steps = steps and steps.kernels
            """,
        scratch=True,
        onnx=(
            OnnxBody("MatMul(a, b)", takes="a b", when="given == 0"),
            OnnxBody("alpha * MatMul(a, b)", takes="a b"),
            OnnxBody("Gemm(a, b, c)", when="given == 0 and rank == 2"),
            OnnxBody("c + MatMul(a, b)", when="given == 0"),
            OnnxBody("Gemm(a, b, c, alpha=alpha, beta=beta)", when="rank == 2"),
            OnnxBody("c + MatMul(a, b)", when="alpha == 1 and beta == 1"),
            OnnxBody("beta * c + alpha * MatMul(a, b)"),
        ),
    ),
)
