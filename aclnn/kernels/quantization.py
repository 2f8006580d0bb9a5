"""Products of quantised matrices, and quantised elements."""

from __future__ import annotations

from .record import Record, opaque

RECORDS: tuple[Record, ...] = (
    opaque(
        "quantized_product",
        "a:whole b:whole scale:whole per_token:whole offset:whole bias:whole antiquant_scale:whole antiquant_offset:whole groups:whole",
        outputs="result:whole",
        body="quantized",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_product",
        scratch=True,
        onnx=(),
    ),
    opaque(
        "quantize",
        "x:whole scale:whole offset:whole",
        outputs="result:whole",
        body="quantized",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_quantize",
        onnx=(),
    ),
    opaque(
        "dynamic_quant",
        "x:whole smooth:whole groups:whole",
        outputs="result:whole scale:whole offset:whole",
        body="quantized",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_dynamic_quant",
        scratch=True,
        onnx=(),
    ),
    opaque(
        "swiglu_quant",
        "x:whole weight_scale:whole activation_scale:whole bias:whole quant_scale:whole quant_offset:whole groups:whole",
        "limit alpha bias",
        outputs="result:whole scale:whole",
        body="quantized",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_swiglu_quant",
        scratch=True,
        onnx=(),
    ),
    opaque(
        "scale_bits",
        "scale:whole offset:whole",
        outputs="result:whole",
        body="quantized",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_scale_bits",
        onnx=(),
    ),
    opaque(
        "scale_of_bits",
        "bits:whole",
        outputs="result:whole",
        body="quantized",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_scale_bits",
        onnx=(),
    ),
    opaque(
        "pack4",
        "x:whole",
        outputs="result:whole",
        body="quantized",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_nibbles",
        onnx=(),
    ),
    opaque(
        "unpack4",
        "x:whole",
        outputs="result:whole",
        body="quantized",
        cost=0.0,  # by its sizes
        maker="aclnn.compiler.inference:make_nibbles",
        onnx=(),
    ),
)
