"""Mixtures of experts: gates, the order of tokens, and their sums."""

from __future__ import annotations

from .record import Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "gate",
        "x:whole bias:whole finished:whole",
        "factor eps",
        outputs="result:whole experts:whole rows:whole normalized:whole",
        body="routing",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_gate",
        scratch=True,
        onnx=(),
    ),
    opaque(
        "route",
        "ids:whole",
        outputs="positions:whole sources:whole counts:whole",
        body="routing",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_route",
        scratch=True,
        onnx=(),
    ),
    opaque(
        "take_rows",
        "x:whole sources:whole",
        outputs="result:whole",
        body="routing",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_take_rows",
        onnx=(),
    ),
    opaque(
        "combine",
        "rows:whole places:whole scales:whole x1:whole x2:whole bias:whole experts:whole",
        outputs="result:whole",
        body="routing",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_combine",
        onnx=(),
    ),
)
