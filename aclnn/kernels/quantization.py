"""Products of quantised matrices, and quantised elements."""

from __future__ import annotations

from .record import Record, opaque

_OF_X = "lines, n = size_of(x[:-1]), x[-1]"
_OF_RESULT = "lines, n = size_of(result[:-1]), result[-1]"


def _record(
    name: str,
    inputs: str,
    factory: str,
    arguments: str,
    parameters: str = "",
    outputs: str = "result",
    scratch: bool = False,
) -> Record:
    return opaque(
        name,
        inputs,
        parameters,
        outputs=outputs,
        body="quantized",
        factory=f"quantized_kernels:{factory}_kernel",
        arguments=arguments,
        scratch=scratch,
        onnx=(),
    )


RECORDS: tuple[Record, ...] = (
    _record(
        "quantized_product",
        "a b scale? per_token? offset? bias? antiquant_scale? antiquant_offset? groups?",
        "product",
        # Several operands may be a weight each. Elements of a may hold integers of four bits.
        """
        clears, shortens, nibbles
        present, along, list_kind = attr("present", ()), attr("along", 0), attr("list_kind", 0)
        activation, group_size = attr("activation", 0), attr("group_size", 0)
        batch = b[0] if len(b) > 2 else len(inputs) - len(present) - 1
        several = len(inputs) - len(present) - 1 if len(inputs) - len(present) > 2 else 0
        m, k, n = a[-2], a[-1] * {"uint8": 2, "int32": 8}.get(inputs[0], 1), result[-1]
        """,
        scratch=True,
    ),
    _record(
        "quantize",
        "x scale offset?",
        "quantize",
        f"divides, twice; bits, rounding = attr('bits', 8), attr('rounding', 0); {_OF_RESULT}",
    ),
    _record(
        "dynamic_quant",
        "x smooth? groups?",
        "dynamic_quant",
        f"bits = attr('bits', 8); {_OF_X}",
        outputs="result scale offset?",
        scratch=True,
    ),
    _record(
        "swiglu_quant",
        "x weight_scale? activation_scale? bias? quant_scale? quant_offset? groups?",
        "swiglu_quant",
        f"left, dynamic, mode, single, clears; present = attr('present', ()); {_OF_X}",
        "limit alpha bias",
        "result scale",
        scratch=True,
    ),
    _record("scale_bits", "scale offset?", "scale_bits", "n = result[0]"),
    _record("scale_of_bits", "bits", "scale_bits", "n = result[0]"),
    _record("pack4", "x", "nibbles", f"name = attr('kernel'); {_OF_RESULT}"),
    _record("unpack4", "x", "nibbles", f"name = attr('kernel'); {_OF_RESULT}"),
)
