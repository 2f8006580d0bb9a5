"""Windows of images, and other sizes."""

from __future__ import annotations

from .record import Record, opaque

_SIZES = "name, rows, width, results = attr('kernel'), size_of(result[:3]), x[3], result[3]"
_WINDOWS = f"size, step, before, after, counts_margin; divisor = attr('divisor', 0); {_SIZES}"
_RESIZE = f"scale, corners, exact; {_SIZES}"

RECORDS: tuple[Record, ...] = tuple(
    [
        opaque(
            name,
            "x",
            outputs=outputs,
            body="images",
            factory=f"image_kernels:{factory}_kernel",
            scratch=True,
            arguments=arguments,
            onnx=(),
        )
        for name, outputs, factory, arguments in (
            ("window_maxima", "result indices", "windows", _WINDOWS),
            ("window_means", "result", "windows", _WINDOWS),
            ("resize_nearest", "result", "resize", _RESIZE),
            ("resize_linear", "result", "resize", _RESIZE),
        )
    ]
)
