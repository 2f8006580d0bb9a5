"""Windows of images, and other sizes."""

from __future__ import annotations

from .record import Record, opaque

RECORDS: tuple[Record, ...] = tuple(
    [
        opaque(
            name,
            "x:whole",
            outputs=outputs,
            body="images",
            cost=0.0,  # by its sizes
            maker="aclnn.compiler.images:kernel_of",
            scratch=True,
            onnx=(),
        )
        for name, outputs in (
            ("window_maxima", "result:whole indices:whole"),
            ("window_means", "result:whole"),
            ("resize_nearest", "result:whole"),
            ("resize_linear", "result:whole"),
        )
    ]
)
